//! `RL.REFUND TENANT` and `RL.RESET TENANT`: giving back, and forgetting, by a tenant's policy.

use super::asking::Takes;
use super::inquiry::Inquiry;
use crate::commands::request::{Ground, Request};
use crate::engine::Scope;
use crate::limit::Cost;
use crate::protocol::{Error, Reply};

const REFUND: Takes = Takes {
    name: "RL.REFUND TENANT",
    usage: "CALLER c, ATTR name value, COST n or TIER t",
    options: &[b"COST"],
};

const RESET: Takes = Takes {
    name: "RL.RESET TENANT",
    usage: "endpoint, CALLER c, ATTR name value or TIER t",
    options: &[],
};

/// Gives the cost back to every quota that applies; answers the most that one of them took back.
pub(in crate::commands) fn refund_tenant(
    request: &Request<'_>,
    mut ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let held = request.hold_court();
    let inquiry = Inquiry::read(request.court(&held), request.args.skip(2), &REFUND)?;
    let given = ground.transact_over(inquiry.scope(), request, |view| {
        let refund = |asked: &crate::engine::Asked<'_>| {
            view.refund_bucket(asked.key, &asked.bound, Cost(asked.cost.0))
        };
        inquiry.asked.iter().map(refund).max().unwrap_or(0)
    })?;
    reply.integer(i64::try_from(given).unwrap_or(i64::MAX));
    Ok(())
}

/// Forgets the buckets that apply to the request, or all of a tenant where only that is named;
/// answers how many there were.
pub(in crate::commands) fn reset_tenant(
    request: &Request<'_>,
    mut ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let words = request.args.skip(2);
    let held = request.hold_court();
    let inquiry = Inquiry::read(request.court(&held), words, &RESET)?;
    let forgotten = if words.len() == 1 {
        let Some(tenant) = inquiry.tenant else {
            reply.integer(0);
            return Ok(());
        };
        let mut name = Vec::new();
        tenant.bucket_prefix(&mut name);
        ground.transact_over(Scope::All, request, |view| view.forget_tenant(&name))?
    } else {
        ground.transact_over(inquiry.scope(), request, |view| {
            inquiry.keys().iter().filter(|key| view.forget_bucket(**key)).count()
        })?
    };
    reply.integer(forgotten as i64);
    Ok(())
}
