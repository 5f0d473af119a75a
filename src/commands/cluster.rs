//! CLUSTER and its like: there is no cluster mode, and clients that probe for one read the error
//! for its word.

use super::call::{Answer, Call};
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use crate::protocol::{Error, Reply};

const fn spec(name: &'static str, summary: &'static str) -> Spec {
    let flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);
    Spec {
        since: "3.0.0",
        summary,
        handler: Handler::Plain(refuse),
        ..Spec::of(Group::Cluster, name, Arity::exactly(1), Keys::None, flags)
    }
}

pub(super) const SPECS: &[Spec] = &[
    Spec { flags: Flags::FAST, ..spec("ASKING", "There is no cluster mode.") },
    Spec {
        arity: Arity::at_least(2),
        flags: Flags::STALE,
        handler: Handler::Parent,
        subcommands: SUBCOMMANDS,
        ..spec("CLUSTER", "There is no cluster mode.")
    },
    spec("READONLY", "There is no cluster mode."),
    spec("READWRITE", "There is no cluster mode."),
];

const fn sub(name: &'static str, arity: Arity) -> Sub {
    Sub::plain(name, arity, "There is no cluster mode.", refuse)
}

const SUBCOMMANDS: &[Sub] = &[
    sub("ADDSLOTS", Arity::at_least(3)),
    sub("ADDSLOTSRANGE", Arity::at_least(4)),
    sub("BUMPEPOCH", Arity::exactly(2)),
    sub("COUNT-FAILURE-REPORTS", Arity::exactly(3)),
    sub("COUNTKEYSINSLOT", Arity::exactly(3)),
    sub("DELSLOTS", Arity::at_least(3)),
    sub("DELSLOTSRANGE", Arity::at_least(4)),
    sub("FAILOVER", Arity::at_least(2)),
    sub("FLUSHSLOTS", Arity::exactly(2)),
    sub("FORGET", Arity::exactly(3)),
    sub("GETKEYSINSLOT", Arity::exactly(4)),
    sub("HELP", Arity::exactly(2)),
    sub("INFO", Arity::exactly(2)),
    sub("KEYSLOT", Arity::exactly(3)),
    sub("LINKS", Arity::exactly(2)),
    sub("MEET", Arity::at_least(4)),
    sub("MYID", Arity::exactly(2)),
    sub("MYSHARDID", Arity::exactly(2)),
    sub("NODES", Arity::exactly(2)),
    sub("REPLICAS", Arity::exactly(3)),
    sub("REPLICATE", Arity::exactly(3)),
    sub("RESET", Arity::at_least(2)),
    sub("SAVECONFIG", Arity::exactly(2)),
    sub("SET-CONFIG-EPOCH", Arity::exactly(3)),
    sub("SETSLOT", Arity::at_least(4)),
    sub("SHARDS", Arity::exactly(2)),
    sub("SLAVES", Arity::exactly(3)),
    sub("SLOTS", Arity::exactly(2)),
];

fn refuse(_: &mut Call<'_, '_>, _: &mut Reply<'_>) -> Answer {
    Err(Error::ClusterDisabled)
}
