//! One request against the policy of its tenant: which quotas it must pass, and their buckets.
//!
//! All that is made here lies in an arena that the caller clears between batches, so a request
//! takes nothing from the heap, and an [`Inquiry`] is free to copy.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use super::asking::{Asking, Takes};
use crate::engine::{Asked, Engine, KeyRef, Scope};
use crate::limit::{Bound, Cost};
use crate::load::Tier;
use crate::policy::{Match, Mode, QuotaKind, Rule, RuleQuota, Snapshot, Tenant, Unmatched};
use crate::protocol::{Args, Error};
use crate::time::{Duration, Timestamp};

/// A quota that applies to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applied<'a> {
    pub(super) rule: &'a Rule,
    pub(super) quota: &'a RuleQuota,
    pub(super) is_candidate: bool,
}

/// What a request asks, and of which buckets. `applied`, `asked` and `keys` go together.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Inquiry<'a> {
    pub(super) tenant: Option<&'a Tenant>,
    pub(super) applied: &'a [Applied<'a>],
    pub(super) asked: &'a [Asked<'a>],
    pub(super) keys: &'a [KeyRef<'a>],
    /// Whether any rule applies, be it an unlimited one.
    pub(super) is_matched: bool,
    /// What holds where none does.
    pub(super) unmatched: Unmatched,
    pub(super) peek: bool,
    pub(super) detail: bool,
    pub(super) ttl: Option<Duration>,
    /// How important the request says it is.
    pub(super) tier: Option<Tier>,
    pub(super) caller: Option<&'a [u8]>,
}

/// Where the rules stand, and what their buckets are made with.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Court<'a> {
    pub(in crate::commands) snapshot: &'a Snapshot,
    pub(in crate::commands) engine: &'a Engine,
    pub(in crate::commands) arena: &'a Bump,
    pub(in crate::commands) now: Timestamp,
    /// Of a bucket's name, as of any key.
    pub(in crate::commands) key_bytes_max: usize,
}

impl<'a> Inquiry<'a> {
    /// Reads the words from the tenant on, and finds the rules that apply.
    pub(in crate::commands) fn read(
        court: Court<'a>,
        words: Args<'a>,
        takes: &Takes,
    ) -> Result<Self, Error> {
        let asking = Asking::read(words, takes)?;
        let Court { snapshot, arena, now, .. } = court;
        let tenant = snapshot.tenant(asking.tenant).map(|tenant| &**tenant);
        let unmatched = tenant.and_then(|tenant| tenant.unmatched).unwrap_or(snapshot.unmatched());
        let mut list = Lists::new(arena);
        let mut is_matched = false;
        if let Some(tenant) = tenant {
            for found in tenant.matching(&asking.facts, now) {
                is_matched = true;
                list.add(court, &found, asking.cost)?;
            }
        }
        Ok(Self {
            tenant,
            applied: list.applied.into_bump_slice(),
            asked: list.asked.into_bump_slice(),
            keys: list.keys.into_bump_slice(),
            is_matched,
            unmatched,
            peek: asking.peek,
            detail: asking.detail,
            ttl: asking.ttl,
            tier: asking.tier,
            caller: asking.facts.caller,
        })
    }

    pub(in crate::commands) fn keys(&self) -> &'a [KeyRef<'a>] {
        self.keys
    }

    pub(super) fn scope(&self) -> Scope<'a> {
        Scope::Keys(self.keys)
    }

    /// The same, whose new buckets take less memory.
    pub(super) fn in_need(self, arena: &'a Bump) -> Self {
        let asked = self.asked.iter().map(|asked| match asked.bound {
            Bound::Window(quota) => Asked { bound: Bound::Window(quota.in_need()), ..*asked },
            Bound::Credit(_) | Bound::Concurrency(_) => *asked,
        });
        Self { asked: arena.alloc_slice_fill_iter(asked), ..self }
    }

    /// The tenant's part of its buckets' names.
    pub(super) fn keys_max(&self) -> Option<u64> {
        self.tenant.and_then(|tenant| tenant.keys_max)
    }
}

/// The three lists while they grow.
struct Lists<'a> {
    applied: BumpVec<'a, Applied<'a>>,
    asked: BumpVec<'a, Asked<'a>>,
    keys: BumpVec<'a, KeyRef<'a>>,
}

impl<'a> Lists<'a> {
    fn new(arena: &'a Bump) -> Self {
        Self {
            applied: BumpVec::new_in(arena),
            asked: BumpVec::new_in(arena),
            keys: BumpVec::new_in(arena),
        }
    }

    fn add(
        &mut self,
        court: Court<'a>,
        found: &Match<'a>,
        cost: Option<Cost>,
    ) -> Result<(), Error> {
        let rule = found.rule;
        let cost = cost.unwrap_or(Cost(rule.cost));
        let enforced = rule.mode == Mode::Enforce && is_among(court.engine, rule.enforce_percent);
        let quotas = rule.quotas.iter().map(|quota| (quota, false));
        for (quota, is_candidate) in quotas.chain(rule.candidate.as_deref().map(|one| (one, true)))
        {
            let Some(bound) = bound(&quota.kind, court.now) else { continue };
            let mut name = BumpVec::with_capacity_in(NAME_BYTES, court.arena);
            found.bucket_name(quota, |part| name.extend_from_slice_copy(part));
            if name.len() > court.key_bytes_max {
                return Err(Error::key_too_long(name.len(), court.key_bytes_max));
            }
            let key = court.engine.key(name.into_bump_slice());
            self.applied.push(Applied { rule, quota, is_candidate });
            self.asked.push(Asked {
                key,
                bound,
                cost,
                enforced: enforced && !is_candidate,
                count_denied: rule.count_denied,
            });
            self.keys.push(key);
        }
        Ok(())
    }
}

/// What a bucket's name usually takes.
const NAME_BYTES: usize = 96;

/// What the quota holds a bucket to at this moment; nothing where it holds it to nothing.
pub(super) fn bound(kind: &QuotaKind, now: Timestamp) -> Option<Bound> {
    match kind {
        QuotaKind::Plain(quota) => Some(Bound::Window(*quota)),
        QuotaKind::Credit(credit) => Some(Bound::Credit(*credit)),
        QuotaKind::Calendar { quota, calendar } => {
            let period = calendar.period(now);
            Some(Bound::Window(quota.during(period.start, period.end)))
        }
        QuotaKind::Concurrency(most) => Some(Bound::Concurrency(*most)),
        QuotaKind::Unlimited => None,
    }
}

/// Whether a request is one of so many in a hundred.
fn is_among(engine: &Engine, percent: u8) -> bool {
    match percent {
        100.. => true,
        0 => false,
        _ => engine.draw_hold_id().0 % 100 < u64::from(percent),
    }
}
