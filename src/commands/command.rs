//! COMMAND: the table of commands, told to clients.

use super::call::Call;
use super::session::Outcome;
use super::spec::Spec;
use crate::protocol::{Error, Reply};

pub(super) const SPECS: &[Spec] = &[];

/// HELP of any command with subcommands: one line each, from the table.
pub(super) fn help(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    let Some((_, spec)) = call.service.table().find(call.args.name()) else {
        return Err(Error::Syntax);
    };
    reply.array(1 + 2 * spec.subcommands.len());
    reply.simple(format!("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", spec.name));
    for sub in spec.subcommands {
        reply.simple(sub.name);
        reply.simple(format!("    {}", sub.summary));
    }
    Ok(Outcome::Reply)
}
