//! What a bucket of a policy is held to: [`Bound`], and [`judge`], which spends nothing.
//!
//! Several quotas of one request are judged at one moment, each by itself, and only if all allow
//! is any spent. So judging and spending are two steps here, where [`check`](super::check) takes
//! both at once. Every bound is judged alike: of what it may hold at this moment, so much is used
//! and so much is held, and what is left is free.
//!
//! A credit lies on top of a window. Within the limit nothing is taken from it; what goes beyond,
//! up to limit and burst, is, and it fills again in ten windows. So in the long run no more passes
//! than the limit per window and the burst per ten windows.

use crate::time::{Duration, Timestamp};

use super::decision::{Cost, Decision};
use super::gcra::Bucket;
use super::ledger::Ledger;
use super::quota::{Algorithm, Quota, QuotaError};
use super::scale::Scale;
use super::state::State;

/// The windows in which a spent credit fills again.
const CREDIT_WINDOWS: u128 = 10;

/// What a bucket is held to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bound {
    /// A limit per window, or per period of a calendar.
    Window(Quota),
    Credit(Credit),
    /// At most so many held at once; nothing is ever spent of it.
    Concurrency(u64),
}

/// A limit per window and a credit above it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Credit {
    /// Limit and burst together in any one window.
    quota: Quota,
    /// Nanoseconds in which one unit comes back, rounded up.
    interval_ns: u64,
}

/// What becomes of the cost of an allowed request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Taking {
    /// It is spent.
    Spend,
    /// It is held, and given back then if nothing has become of it.
    Hold { until: Timestamp },
}

/// What is remembered of a bucket.
#[derive(Clone, Copy, Debug)]
pub enum Remembered<'r> {
    Nothing,
    State(&'r State),
    Ledger(&'r Ledger),
}

/// What is taken of a bucket.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Level {
    /// Rounded up.
    pub used: u64,
    pub held: u64,
}

impl Bound {
    /// The most that can be taken at once, and the figure reported to clients.
    pub const fn capacity(&self) -> u64 {
        match self {
            Self::Window(quota) => quota.capacity(),
            Self::Credit(credit) => credit.quota.capacity(),
            Self::Concurrency(most) => *most,
        }
    }

    /// By which a state counts what is spent.
    pub const fn quota(&self) -> Option<&Quota> {
        match self {
            Self::Window(quota) => Some(quota),
            Self::Credit(credit) => Some(&credit.quota),
            Self::Concurrency(_) => None,
        }
    }

    /// What a denied request is counted as, where denied ones count: its cost, but a bucket that
    /// drains evenly is filled to twice its capacity at most, or it would stay shut for as long as
    /// it was hammered.
    pub fn penalty(&self, remembered: Remembered<'_>, cost: Cost, now: Timestamp) -> Cost {
        match self {
            Self::Window(quota) if quota.algorithm() == Algorithm::Gcra => {
                let most = quota.capacity().saturating_mul(2);
                Cost(cost.0.min(most.saturating_sub(level(self, remembered, now).used)))
            }
            Self::Window(_) | Self::Credit(_) => cost,
            Self::Concurrency(_) => Cost::ZERO,
        }
    }

    /// The quota by which a state alone goes on counting when this cost is spent: no credit is
    /// taken.
    pub fn counts_alone(
        &self,
        state: Option<&State>,
        cost: Cost,
        now: Timestamp,
    ) -> Option<&Quota> {
        match self {
            Self::Window(quota) => Some(quota),
            Self::Credit(credit) => {
                let remembered = state.map_or(Remembered::Nothing, Remembered::State);
                let used = Scale::new(self, remembered, now).used(now);
                (credit.beyond(used, cost) == 0).then_some(&credit.quota)
            }
            Self::Concurrency(_) => None,
        }
    }
}

impl Credit {
    /// The quota's own burst counts nothing here.
    pub fn new(quota: Quota, burst: u64) -> Result<Self, QuotaError> {
        if quota.algorithm() == Algorithm::Gcra {
            return Err(QuotaError::CreditOfGcra);
        }
        let window_ns = u128::from(quota.window().as_micros()) * 1_000;
        let interval_ns = match burst {
            0 => 0,
            burst => (window_ns * CREDIT_WINDOWS).div_ceil(u128::from(burst)),
        };
        let interval_ns = u64::try_from(interval_ns).map_err(|_| QuotaError::BurstTooSlow)?;
        Ok(Self { quota: quota.with_burst(burst)?, interval_ns })
    }

    /// Limit and burst together in any one window.
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    const fn limit(&self) -> u64 {
        self.quota.limit()
    }

    pub(super) const fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// How much of a cost is taken from the credit where so much is used.
    pub(super) fn beyond(&self, used: u64, cost: Cost) -> u64 {
        used.saturating_add(cost.0).max(self.limit()) - used.max(self.limit())
    }

    /// What the window may hold at this moment, the credit that is left included.
    pub(super) fn most(&self, used: u64, credit: Bucket, now: Timestamp) -> u64 {
        let left = self.quota.burst().saturating_sub(credit.used(now.as_micros()));
        self.quota.capacity().min(used.max(self.limit()).saturating_add(left))
    }
}

/// Whether the cost may be taken, spending and holding nothing.
///
/// A denial's wait is exact if nothing else is taken and everything held is given back only when
/// it expires; what is given back earlier may shorten it. `reset_after` ends when all is as
/// fresh: nothing is spent, every hold is over and the credit is full.
pub fn judge(
    bound: &Bound,
    remembered: Remembered<'_>,
    cost: Cost,
    taking: Taking,
    now: Timestamp,
) -> Decision {
    if let (Bound::Window(quota), Taking::Spend) = (bound, taking) {
        match remembered {
            Remembered::Nothing => return super::peek(quota, &State::new(quota, now), cost, now),
            Remembered::State(state) => return super::peek(quota, state, cost, now),
            Remembered::Ledger(_) => {}
        }
    }
    let now = now.max(remembered.last());
    if bound.capacity() == 0 {
        return super::never(remembered.expires_at().since(now));
    }
    Scale::new(bound, remembered, now).decide(cost, taking, now)
}

/// What is used and what is held of a bucket.
pub fn level(bound: &Bound, remembered: Remembered<'_>, now: Timestamp) -> Level {
    let now = now.max(remembered.last());
    if bound.capacity() == 0 {
        return Level::default();
    }
    let scale = Scale::new(bound, remembered, now);
    Level { used: scale.used(now), held: scale.held(now) }
}

impl Remembered<'_> {
    pub(super) fn last(&self) -> Timestamp {
        match self {
            Self::Nothing => Timestamp::EPOCH,
            Self::State(state) => state.last,
            Self::Ledger(ledger) => ledger.last(),
        }
    }

    fn expires_at(&self) -> Timestamp {
        match self {
            Self::Nothing => Timestamp::EPOCH,
            Self::State(state) => state.expires_at(),
            Self::Ledger(ledger) => ledger.expires_at(),
        }
    }
}

/// The answer to a request that matched several quotas: while all allow, the one with the
/// smallest remaining; else limit and remaining of the first that fails, with the longest wait
/// and the longest reset of those that fail. Nothing where there are none.
pub fn combined<'d>(decisions: impl Iterator<Item = &'d Decision> + Clone) -> Option<Decision> {
    let mut failing = decisions.clone().filter(|decision| !decision.is_allowed());
    let Some(first) = failing.next() else {
        return decisions.min_by_key(|decision| decision.remaining).copied();
    };
    Some(failing.fold(*first, |answer, decision| Decision {
        verdict: answer.verdict.longest(decision.verdict),
        reset_after: answer.reset_after.max(decision.reset_after),
        ..answer
    }))
}

/// How long a span of nanoseconds is, rounded up.
pub(super) fn span(span_ns: u128) -> Duration {
    Duration::from_micros(super::ask::quotient_ceil(span_ns, 1_000))
}
