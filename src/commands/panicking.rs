//! A command that panics, for the tests of what a panic may and may not do. Not in the program.

use super::call::{Answer, Call};
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec};
use crate::protocol::Reply;

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "PANIC",
    arity: Arity::exactly(1),
    keys: Keys::None,
    flags: Flags::NONE,
    group: Group::Server,
    since: "0.1.0",
    complexity: "O(1)",
    summary: "Panic.",
    subcommands: &[],
    handler: Handler::Plain(panic),
}];

fn panic(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.simple("half a reply");
    panic!("as asked");
}
