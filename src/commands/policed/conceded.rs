//! Answers that are made up, because no exact one can be given or none is owed.
//!
//! The rule says how, else the tenant, else its importance: open (allowed), closed (denied), or by
//! ratio, which lets pass what share the tenant's own limits did in the last ten seconds. No state
//! is touched, and DETAIL says `degraded` and why.

use super::inquiry::Inquiry;
use super::verdict::{Reason, Source, Verdict};
use crate::commands::overload::{self, Asker, Concession, Instead, Need};
use crate::engine::Full;
use crate::load::Tier;
use crate::policy::{Degrade, Rule, TenantCounts};
use crate::time::Timestamp;

/// A wait to tell where nobody knows one, in milliseconds: room comes as other keys expire.
const RETRY_UNKNOWN_MS: i64 = 1_000;

impl<'a> Inquiry<'a> {
    /// What holds for the request under strain; nothing while all is calm.
    #[inline]
    pub(super) fn concession(&self, need: Need<'_>, now: Timestamp) -> Option<Concession> {
        if need.strain.is_calm() {
            return None;
        }
        let tenant = self.tenant.map(|tenant| tenant.name.as_bytes());
        Some(need.concede(&self.asker(), tenant, now))
    }

    /// The answer that the request gets instead of an exact one, if it gets one.
    pub(super) fn made_up(&self, concession: Concession, need: Need<'_>) -> Option<Verdict<'a>> {
        let reason = why_not(concession, need)?;
        let mut verdict = self.degraded(need, Reason::Overload(reason), concession.priority.tier());
        if !verdict.is_allowed() {
            verdict.figures[3] = i64::try_from(need.retry_after_ms()).unwrap_or(i64::MAX);
        }
        if !self.peek {
            let instead = if verdict.is_allowed() { Instead::Allowed } else { Instead::Denied };
            need.count(reason, instead);
        }
        Some(verdict)
    }

    /// Why a request that only an exact answer is of use to gets none.
    pub(super) fn refusal(&self, need: Need<'_>, now: Timestamp) -> Option<overload::Reason> {
        why_not(self.concession(need, now)?, need)
    }

    /// The answer where a new bucket has no place.
    #[cold]
    pub(super) fn without_room(&self, need: Need<'_>, full: Full) -> Verdict<'a> {
        let reason = match full {
            Full::Tenant => Reason::KeysMax,
            Full::Memory => Reason::Memory,
        };
        let mut verdict = self.degraded(need, reason, need.tier(&self.asker()));
        if !verdict.is_allowed() {
            verdict.figures[3] = RETRY_UNKNOWN_MS;
        }
        verdict
    }

    /// Every enforced quota would have to allow, so the strictest answer holds. One that is not
    /// enforced denies nobody, and one of nothing denies everybody, however busy we are.
    fn degraded(&self, need: Need<'_>, reason: Reason, tier: Tier) -> Verdict<'a> {
        let enforced = self.asked.iter().zip(self.applied).filter(|(asked, _)| asked.enforced);
        let answers = enforced.map(|(asked, applied)| match asked.bound.capacity() {
            0 => Degrade::Closed,
            _ => self.degrade_of(applied.rule).unwrap_or(default_of(tier)),
        });
        let is_allowed = match answers.max_by_key(|answer| strictness(*answer)) {
            None | Some(Degrade::Open) => true,
            Some(Degrade::Closed) => false,
            Some(Degrade::Ratio) => need.draws(
                self.tenant.map_or(1.0, |tenant| TenantCounts::admitted_share(&tenant.counts)),
            ),
        };
        Verdict { source: Source::Degraded, ..Verdict::plain(is_allowed, reason) }
    }

    fn degrade_of(&self, rule: &Rule) -> Option<Degrade> {
        rule.degrade.or(self.tenant.and_then(|tenant| tenant.degrade))
    }

    fn asker(&self) -> Asker<'a> {
        Asker {
            rule: self.applied.iter().filter_map(|applied| applied.rule.tier).min(),
            request: self.tier,
            tenant: self.tenant.and_then(|tenant| tenant.tier),
            user: self.caller.or(self.tenant.map(|tenant| tenant.name.as_bytes())).unwrap_or(b""),
        }
    }
}

fn why_not(concession: Concession, need: Need<'_>) -> Option<overload::Reason> {
    let is_shed = || need.sheds(concession.priority).then_some(overload::Reason::Shed);
    concession.given_up.or_else(is_shed)
}

const fn strictness(answer: Degrade) -> u8 {
    match answer {
        Degrade::Open => 0,
        Degrade::Ratio => 1,
        Degrade::Closed => 2,
    }
}

/// What holds where neither rule nor tenant says.
const fn default_of(tier: Tier) -> Degrade {
    match tier {
        Tier::T0 | Tier::T1 => Degrade::Open,
        Tier::T2 | Tier::T3 | Tier::T4 | Tier::T5 => Degrade::Ratio,
    }
}
