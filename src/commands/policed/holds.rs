//! RL.RESERVE, RL.COMMIT, RL.CANCEL, RL.ACQUIRE, RL.RELEASE: what is held for a time.
//!
//! A reservation holds an estimate of every quota and is settled at what it really came to, even
//! above the limit. A lease takes a place of every concurrency limit and spends of all other
//! quotas. Both go by themselves when their time is over; an id names either, and nothing else.

use std::sync::Arc;

use super::asking::Takes;
use super::inquiry::{Inquiry, bound};
use super::verdict::Verdict;
use crate::commands::{
    limits::number,
    request::{Ground, Request},
};
use crate::engine::{Hold, KeyRef, Manner, Scope, Settled, Ticket, View, ticket_name};
use crate::limit::{Cost, HoldId};
use crate::policy::{Counted, Snapshot};
use crate::protocol::{Error, Reply};

const RESERVE: Takes = Takes {
    name: "RL.RESERVE",
    usage: "TTL window, CALLER c, ATTR name value, COST n or TIER t",
    options: &[b"TTL", b"COST"],
};

const ACQUIRE: Takes = Takes { name: "RL.ACQUIRE", ..RESERVE };

/// Answers the five integers and an id, or null where nothing was held.
pub(super) fn reserve(
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    hold(request, ground, reply, (&RESERVE, Manner::Reserve))
}

/// The same of a lease.
pub(super) fn acquire(
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    hold(request, ground, reply, (&ACQUIRE, Manner::Lease))
}

fn hold(
    request: &Request<'_>,
    mut ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
    (takes, manner): (&Takes, fn(Hold) -> Manner),
) -> Result<(), Error> {
    let held = request.hold_court();
    let inquiry = Inquiry::read(request.court(&held), request.args.skip(1), takes)?;
    let (engine, witness) = (request.service.engine(), request.witness());
    if let Some(reason) = inquiry.refusal(witness.need, request.now) {
        return Err(witness.need.refusal(reason));
    }
    let id = engine.draw_hold_id();
    let name = ticket_name(id);
    let keys: Vec<KeyRef<'_>> = inquiry.keys().iter().copied().chain([engine.key(&name)]).collect();
    ground.transact_over(Scope::Keys(&keys), request, |view| {
        let ttl = inquiry.ttl.expect("who reads the words wants it");
        let judgement =
            inquiry.judge(witness.need, view, manner(Hold { id, until: view.now() + ttl }));
        let verdict = judgement.verdict;
        witness.tell(&inquiry, &verdict, view.now());
        write_held(&verdict, view.ticket(id).map(|_| id), reply);
    })
}

/// Nothing is held where it is denied, and where no bucket applies there is nothing to hold:
/// then the id is null, too.
fn write_held(verdict: &Verdict<'_>, id: Option<HoldId>, reply: &mut Reply<'_>) {
    reply.array(verdict.figures.len() + 1);
    verdict.figures.iter().for_each(|figure| reply.integer(*figure));
    match id {
        Some(id) => reply.bulk(format!("{:016x}", id.0)),
        None => reply.null(),
    }
}

/// `RL.COMMIT id actual`: answers how much more than the estimate it was (below zero: less), or
/// null where the id is not known any more.
pub(super) fn commit(
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let actual = Cost(number("actual", request.word(2))?);
    match settle(request, ground, actual)? {
        Some(settled) => {
            reply.integer((actual.0 as i64).saturating_sub(settled.estimate.0 as i64));
        }
        None => reply.null(),
    }
    Ok(())
}

/// `RL.CANCEL id`: answers 1, or 0 where the id is not known any more.
pub(super) fn cancel(
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let settled = settle(request, ground, Cost::ZERO)?;
    reply.integer(i64::from(settled.is_some()));
    Ok(())
}

/// `RL.RELEASE id`: the same of a lease.
pub(super) fn release(
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    cancel(request, ground, reply)
}

fn settle(
    request: &Request<'_>,
    mut ground: Ground<'_, '_>,
    actual: Cost,
) -> Result<Option<Settled>, Error> {
    let id = id(request.word(1))?;
    let engine = request.service.engine();
    let snapshot = Arc::clone(&request.service.policies().snapshot());
    let ticket = match &mut ground {
        Ground::Lock(_) => engine.ticket(id, request.now)?,
        Ground::Within(view) => view.ticket(id),
    };
    let Some(ticket) = ticket else { return Ok(None) };
    let name = ticket_name(id);
    let keys: Vec<KeyRef<'_>> =
        ticket.buckets().chain([&name[..]]).map(|bytes| engine.key(bytes)).collect();
    let settled = ground.transact_over(Scope::Keys(&keys), request, |view: &mut View<'_>| {
        view.settle(id, actual, |bucket, now| {
            let quota = snapshot.quota_of_bucket(bucket)?;
            bound(&quota.kind, now)
        })
    })?;
    if let Some(settled) = settled
        && actual > settled.estimate
    {
        count_overspent(&snapshot, &ticket);
    }
    Ok(settled)
}

fn count_overspent(snapshot: &Snapshot, ticket: &Ticket) {
    if let Some(tenant) = ticket.buckets().next().and_then(|name| snapshot.tenant_of_bucket(name)) {
        tenant.counts.count(Counted::Overspent);
    }
}

fn id(word: &[u8]) -> Result<HoldId, Error> {
    let is_id = word.len() == 16 && word.iter().all(u8::is_ascii_hexdigit);
    let text = str::from_utf8(word).ok().filter(|_| is_id);
    let number = text.and_then(|text| u64::from_str_radix(text, 16).ok());
    number.map(HoldId).ok_or_else(|| {
        Error::bad_argument("id", word, "the 16 hex digits that RL.RESERVE or RL.ACQUIRE answered")
    })
}
