//! A bucket on the scale: what is used, held and free of it at any moment from now on.
//!
//! If nothing else is taken, what is used and held only ever becomes less, and what a credit
//! allows on top only ever more. So what is free grows, and the moment at which a cost fits is
//! found by halving the span in which it must lie, whatever counts: no formula for each mixture.
//!
//! Units: microseconds.

use std::borrow::Cow;

use crate::time::{Duration, Timestamp};

use super::bound::{Bound, Remembered, Taking, span};
use super::decision::{Cost, Decision, Verdict};
use super::gcra::Bucket;
use super::holds::Holds;
use super::quota::Quota;
use super::state::State;

/// What is remembered, as a bound above zero counts it.
#[derive(Debug)]
pub(super) struct Scale<'s> {
    bound: &'s Bound,
    /// What a bound spends by, and by which quota.
    spent: Option<(Cow<'s, State>, &'s Quota)>,
    /// What is taken from the credit; of no meaning where the bound has none.
    credit: Bucket,
    holds: Option<&'s Holds>,
}

impl<'s> Scale<'s> {
    /// `now` is not before the last moment that is remembered.
    pub(super) fn new(bound: &'s Bound, remembered: Remembered<'s>, now: Timestamp) -> Self {
        let (state, credit, holds) = match remembered {
            Remembered::Nothing => (None, None, None),
            Remembered::State(state) => (Some(state), None, None),
            Remembered::Ledger(ledger) => (ledger.spent(), ledger.credit(), Some(ledger.holds())),
        };
        let spent = bound.quota().map(|quota| {
            let state = match state {
                Some(state) if state.fits(quota) => Cow::Borrowed(state),
                Some(state) => Cow::Owned(state.adapted(quota, now)),
                None => Cow::Owned(State::new(quota, now)),
            };
            (state, quota)
        });
        let interval_ns = match bound {
            Bound::Credit(credit) => credit.interval_ns(),
            Bound::Window(_) | Bound::Concurrency(_) => 0,
        };
        let credit = match credit {
            Some(credit) => credit.scaled(interval_ns, now.as_micros()),
            None => Bucket::new(interval_ns, now.as_micros()),
        };
        Self { bound, spent, credit, holds }
    }

    pub(super) fn decide(&self, cost: Cost, taking: Taking, now: Timestamp) -> Decision {
        let (limit, free) = (self.bound.capacity(), self.free(now));
        if cost.0 > free {
            let retry_after = (cost.0 <= limit).then(|| self.opens(cost, now).since(now));
            let reset_after = self.reset_after(Cost::ZERO, now);
            return Decision {
                verdict: Verdict::Deny { retry_after },
                limit,
                remaining: free,
                reset_after,
            };
        }
        let reset_after = match taking {
            Taking::Hold { until } if cost > Cost::ZERO => {
                self.reset_after(Cost::ZERO, now).max(until.since(now))
            }
            Taking::Spend | Taking::Hold { .. } => self.reset_after(cost, now),
        };
        Decision { verdict: Verdict::Allow, limit, remaining: free - cost.0, reset_after }
    }

    pub(super) fn used(&self, at: Timestamp) -> u64 {
        self.spent.as_ref().map_or(0, |(state, quota)| state.weigh(quota, Cost::ZERO, at).0)
    }

    pub(super) fn held(&self, at: Timestamp) -> u64 {
        self.holds.map_or(0, |holds| holds.held(at))
    }

    fn free(&self, at: Timestamp) -> u64 {
        let used = self.used(at);
        let most = match self.bound {
            Bound::Window(_) | Bound::Concurrency(_) => self.bound.capacity(),
            Bound::Credit(credit) => credit.most(used, self.credit, at),
        };
        most.saturating_sub(used).saturating_sub(self.held(at))
    }

    /// From now until everything is as fresh, if the cost is spent too and nothing else.
    fn reset_after(&self, cost: Cost, now: Timestamp) -> Duration {
        let (used, spent) = match &self.spent {
            Some((state, quota)) => state.weigh(quota, cost, now),
            None => (0, Duration::ZERO),
        };
        let beyond = match self.bound {
            Bound::Credit(credit) => credit.beyond(used, cost),
            Bound::Window(_) | Bound::Concurrency(_) => 0,
        };
        let mut credit = self.credit;
        credit.charge(beyond, now.as_micros());
        let holds = self.holds.map_or(Duration::ZERO, |holds| holds.last().since(now));
        spent.max(span(credit.debt_ns(now.as_micros()))).max(holds)
    }

    /// The first moment at which the cost fits, which is not above the capacity but does not now.
    fn opens(&self, cost: Cost, now: Timestamp) -> Timestamp {
        let lacking = cost.0 - self.free(now);
        let all_fresh = now + self.reset_after(Cost::ZERO, now);
        // Holds that are over by then are enough by themselves, where nothing is overdrawn.
        let freed = self.holds.and_then(|holds| holds.freed(lacking, now));
        let soon = freed.filter(|freed| cost.0 <= self.free(*freed)).unwrap_or(all_fresh);
        let (mut before, mut after) = (now.as_micros(), soon.min(all_fresh).as_micros());
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if cost.0 <= self.free(Timestamp::from_micros(middle)) {
                after = middle;
            } else {
                before = middle;
            }
        }
        Timestamp::from_micros(after)
    }
}
