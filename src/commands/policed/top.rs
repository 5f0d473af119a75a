//! RL.TOP: who of a tenant is being limited now.
//!
//! Each tenant that has ever denied has a sketch of its most denied buckets, made with its first
//! denial. Who is never limited costs nothing but a look at a flag. Both the tenants with a sketch
//! and the buckets in one are bounded.

use dashmap::DashMap;
use parking_lot::Mutex;

use super::inquiry::Inquiry;
use super::verdict::Verdict;
use crate::commands::{
    limits::number,
    request::{Ground, Request},
};
use crate::engine::KeyHasher;
use crate::limit::{Hashed, Heavy};
use crate::policy::{Tenant, shown_bucket};
use crate::protocol::{Error, Reply};
use crate::time::{Duration, Timestamp};

/// Tenants that have a sketch; those that come later are counted, and not ranked.
const TENANTS_MAX: usize = 4_096;

/// Buckets that a sketch follows: anyone with more than this part of a tenant's denials is there.
const BUCKETS_MAX: usize = 64;

/// A bucket that is denied no longer has half its rank after this.
const HALF_LIFE: Duration = Duration::from_secs(30);

/// Rows that RL.TOP answers where it is not told how many.
const ROWS_DEFAULT: u64 = 10;

/// The most denied buckets of every tenant.
#[derive(Debug)]
pub(crate) struct Tops(DashMap<Box<[u8]>, Mutex<Heavy>, KeyHasher>);

impl Tops {
    pub(crate) fn new(hasher: KeyHasher) -> Self {
        Self(DashMap::with_hasher(hasher))
    }

    /// Another worker that is at the same tenant is not waited for: a sketch may miss a few.
    pub(super) fn note(
        &self,
        tenant: &Tenant,
        inquiry: &Inquiry<'_>,
        verdict: &Verdict<'_>,
        now: Timestamp,
    ) {
        let name = tenant.name.as_bytes();
        if !self.0.contains_key(name) && !verdict.is_allowed() && self.0.len() < TENANTS_MAX {
            let heavy = Heavy::new(BUCKETS_MAX, HALF_LIFE, now);
            self.0.entry(name.into()).or_insert_with(|| Mutex::new(heavy));
        }
        let Some(top) = self.0.get(name) else { return };
        let Some(mut top) = top.try_lock() else { return };
        let denied = inquiry.denied(verdict);
        for asked in inquiry.asked {
            let key = Hashed { bytes: asked.key.bytes(), hash: asked.key.hash() };
            match denied {
                Some(bucket) if bucket == asked.key.bytes() => top.add(key, 1, now),
                Some(_) => {}
                None => top.note_beside(key, 1, now),
            }
        }
    }
}

/// Rule and values of a bucket; of one that is no longer held by a rule, as its name tells.
fn shown(tenant: Option<&Tenant>, bucket: &[u8]) -> (String, String) {
    let owner = tenant.and_then(|tenant| tenant.owner_of(bucket));
    owner.map_or_else(
        || shown_bucket(bucket),
        |owner| {
            let values = owner.values.iter().map(|value| String::from_utf8_lossy(value));
            (owner.rule.name.to_string(), values.collect::<Vec<_>>().join(", "))
        },
    )
}

/// `RL.TOP tenant [COUNT n]`: an array of maps, the most denied first.
pub(super) fn top(
    request: &Request<'_>,
    _: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let rows = match request.args.get(2) {
        None => ROWS_DEFAULT,
        Some(word) if word.eq_ignore_ascii_case(b"COUNT") => match request.args.get(3) {
            Some(count) => number("COUNT", count)?,
            None => return Err(Error::missing_value("RL.TOP", word, "COUNT n")),
        },
        Some(word) => return Err(Error::bad_word("RL.TOP", word, "COUNT n")),
    };
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let Some(top) = request.service.tops().0.get(request.word(1)) else {
        reply.array(0);
        return Ok(());
    };
    let mut top = top.lock();
    let tenant = request.service.policies().snapshot().tenant(request.word(1)).cloned();
    let heaviest = top.top(rows, request.now);
    reply.array(heaviest.len());
    for row in heaviest {
        let (rule, key) = shown(tenant.as_deref(), row.key);
        reply.map(6);
        for (name, text) in [("rule", rule), ("key", key)] {
            reply.bulk(name);
            reply.bulk(text);
        }
        for (name, count) in [("denied", row.count), ("admitted", row.beside)] {
            reply.bulk(name);
            reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let rates =
            [("denied_per_second", row.per_second), ("admitted_per_second", row.beside_per_second)];
        for (name, rate) in rates {
            reply.bulk(name);
            reply.double((rate * 100.0).round() / 100.0);
        }
    }
    Ok(())
}
