//! May this pass: [`Quota`], [`Cost`], [`State`], [`Decision`], and the algorithms.
//!
//! Everything here is told the time and does no input or output. A [`Quota`] says how much per
//! how long and how it is counted; a [`State`] remembers what was spent; [`check`] decides and
//! spends. What each algorithm promises stands at the head of its file and at [`Algorithm`].
//!
//! A state serves any quota: where the quota counts otherwise than the state was counted, what
//! was spent is carried over first. History that has been dropped does not come back.
//!
//! Invariants: a denied request changes nothing that can be seen; time never runs back for a
//! state; no number overflows, whatever the costs and limits.

mod ask;
mod bound;
mod chunk;
mod decision;
mod encoding;
mod ends;
mod fixed_window;
mod gcra;
mod holds;
mod ledger;
mod ledger_encoding;
mod heavy;
mod log;
mod queue;
mod quota;
mod scale;
mod sliding_counter;
mod sliding_log;
mod sliding_window;
mod state;
mod switch;
mod throttle;

#[cfg(test)]
mod bounds;
#[cfg(all(test, feature = "server"))]
mod calendars;
#[cfg(test)]
mod ledgers;
#[cfg(test)]
mod need;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod vectors;

use crate::time::{Duration, Timestamp};

pub use self::bound::{Bound, Credit, Level, Remembered, Taking, combined, judge, level};
pub use self::decision::{Cost, Decision, Verdict};
pub use self::encoding::DecodeError;
pub use self::heavy::{COUNTERS_MAX, Hashed, Heaviest, Heavy, KEY_BYTES_MAX};
pub use self::holds::HoldId;
pub use self::ledger::Ledger;
pub use self::quota::{
    Algorithm, Align, DRAIN_MAX, LOG_ENTRIES_MAX_DEFAULT, LOG_ENTRIES_MAX_LOWEST, Quota,
    QuotaError, WINDOW_MAX,
};
pub use self::state::State;
pub use self::switch::switch;
pub use self::throttle::{Rounding, Throttle, ThrottleError, ThrottleOutcome, ThrottleRequest};

/// Decides whether the request may pass, and spends its cost if it may.
#[inline]
pub fn check(quota: &Quota, state: &mut State, cost: Cost, now: Timestamp) -> Decision {
    let now = now.max(state.last);
    if quota.capacity() == 0 {
        return closed(state, now);
    }
    if state.fits(quota) {
        return state.check(quota, cost, now);
    }
    // Another algorithm takes what was spent as spent at this moment: of a denied request that
    // must not stay, or callers who disagree would keep a key shut for ever.
    let mut adapted = state.adapted(quota, now);
    let decision = adapted.check(quota, cost, now);
    if decision.is_allowed() || state.algorithm() == quota.algorithm() {
        *state = adapted;
    }
    decision
}

/// Answers as [`check`] would, and spends nothing.
pub fn peek(quota: &Quota, state: &State, cost: Cost, now: Timestamp) -> Decision {
    let now = now.max(state.last);
    if quota.capacity() == 0 {
        return closed(state, now);
    }
    if !state.fits(quota) {
        return state.adapted(quota, now).peek(quota, cost, now);
    }
    state.peek(quota, cost, now)
}

/// Spends without asking, also above the capacity: for what has happened already, such as a
/// reservation that cost more than its estimate.
pub fn charge(quota: &Quota, state: &mut State, cost: Cost, now: Timestamp) {
    let now = now.max(state.last);
    if quota.capacity() == 0 {
        return;
    }
    if !state.fits(quota) {
        *state = state.adapted(quota, now);
    }
    state.charge(quota, cost, now);
}

/// Gives back up to `cost` of what is spent, never more; how much that was. A log gives back its
/// oldest entries, since the newer ones count longer.
pub fn refund(state: &mut State, cost: Cost, now: Timestamp) -> u64 {
    state.refund(cost, now)
}

/// Carries what was spent over to a changed quota, as [`check`] does by itself: a log keeps its
/// entries, gcra scales its debt, a counter goes on in the window of now; another algorithm gets
/// what is used, up to the capacity, as spent now.
pub fn adapt(quota: &Quota, state: &mut State, now: Timestamp) {
    if quota.capacity() == 0 {
        return;
    }
    if !state.fits(quota) {
        *state = state.adapted(quota, now);
    }
    state.window = quota.window();
}

/// A limit of zero: never, whatever was spent, which stays as it is.
fn closed(state: &State, now: Timestamp) -> Decision {
    never(state.expires_at().since(now))
}

const fn never(reset_after: Duration) -> Decision {
    let verdict = Verdict::Deny { retry_after: None };
    Decision { verdict, limit: 0, remaining: 0, reset_after }
}
