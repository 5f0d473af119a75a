//! The commands that decide by a tenant's policy.
//!
//! A request names a tenant and its own facts: endpoint, caller, attributes. The policy in force
//! says which quotas those must pass; all are judged at one moment and spent together or not at
//! all. Every decision answers five integers, as RL.LIMIT does: `limited`, `limit`, `remaining`,
//! `retry_after` and `reset_after` in milliseconds.
//!
//! A denial that can be repeated from memory is answered before any lock ([`crate::prefilter`]).
//! In a script or between MULTI and EXEC these commands see every shard, since the words do not
//! say which buckets they mean.

mod answer;
mod asking;
mod check;
mod conceded;
mod explain;
mod forget;
mod holds;
mod inquiry;
mod top;
mod verdict;

use std::sync::Arc;

use super::request::Request;
use super::spec::{Arity, Flags, Group, Handler, Keyed, Keys, Spec};

pub(super) use asking::tier;
pub(super) use check::{Checked, Witness, check_words};
pub(super) use forget::{refund_tenant, reset_tenant};
pub(super) use inquiry::Court;
pub(crate) use top::Tops;

const WRITES: Flags = Flags::WRITE.and(Flags::FAST).and(Flags::MAKES_KEYS);

const fn spec(
    name: &'static str,
    arity: Arity,
    flags: Flags,
    summary: &'static str,
    handler: Keyed,
) -> Spec {
    Spec {
        name,
        arity,
        keys: Keys::All,
        flags,
        group: Group::RateLimit,
        since: "0.1.0",
        complexity: "O(1) amortised for each quota that applies",
        summary,
        subcommands: &[],
        handler: Handler::Keyed(handler),
    }
}

pub(super) const SPECS: &[Spec] = &[
    spec(
        "RL.ACQUIRE",
        Arity::at_least(5),
        WRITES,
        "Take a place within a tenant's concurrency limits, for a time.",
        holds::acquire,
    ),
    spec("RL.CANCEL", Arity::exactly(2), WRITES, "Give a reservation back unspent.", holds::cancel),
    spec(
        "RL.CHECK",
        Arity::at_least(3),
        WRITES,
        "Decide by a tenant's policy whether a request may pass, and spend its cost.",
        check::check,
    ),
    spec(
        "RL.COMMIT",
        Arity::exactly(3),
        WRITES,
        "Settle a reservation at what it really cost.",
        holds::commit,
    ),
    spec(
        "RL.EXPLAIN",
        Arity::at_least(3),
        Flags::READONLY,
        "Show every quota that applies to a request, and which one binds.",
        explain::explain,
    ),
    spec(
        "RL.RELEASE",
        Arity::exactly(2),
        WRITES,
        "Give a place back that RL.ACQUIRE took.",
        holds::release,
    ),
    spec(
        "RL.RESERVE",
        Arity::at_least(5),
        WRITES,
        "Hold an estimated cost, to be settled by RL.COMMIT or RL.CANCEL.",
        holds::reserve,
    ),
    spec(
        "RL.TOP",
        Arity::between(2, 4),
        Flags::READONLY,
        "Show who of a tenant is being limited now.",
        top::top,
    ),
];

impl<'a> Request<'a> {
    /// What the rules are looked up in, for a command that keeps the snapshot and the arena.
    fn court<'c>(&self, held: &'c Held<'a>) -> Court<'c>
    where
        'a: 'c,
    {
        let Held { snapshot, arena, engine } = held;
        let key_bytes_max = self.service.runtime().key_bytes_max();
        Court { snapshot, engine, arena, now: self.now, key_bytes_max }
    }

    fn hold_court(&self) -> Held<'a> {
        Held {
            snapshot: Arc::clone(&self.service.policies().snapshot()),
            arena: bumpalo::Bump::new(),
            engine: self.service.engine(),
        }
    }
}

/// What one request by itself works with: the policies in force, and room for what it makes.
struct Held<'a> {
    snapshot: Arc<crate::policy::Snapshot>,
    arena: bumpalo::Bump,
    engine: &'a crate::engine::Engine,
}
