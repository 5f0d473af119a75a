//! Sliding log: every admitted request is remembered until it is a window old.
//!
//! Bound: never more than the capacity in any window `(s, s+W]`; a request stops counting
//! exactly one window after it was admitted. A closed window `[s, s+W]` may hold the capacity
//! and what was admitted at one of its ends. Requests of the same microsecond are one entry, so
//! that none is lost. The wait of a denial is exact if nothing else is admitted.
//!
//! Sliding window is the same with moments rounded up to slots, hence `slot_us`: one for the
//! exact log. Invariant: a denied request changes nothing that can be seen.

use super::ask::Ask;
use super::decision::Decision;
use super::log::Log;

/// The slots of the exact log.
pub(super) const EXACT_US: u64 = 1;

/// Slots of one window of a log that is begun in need: at most one more is alive at a time.
const ROUNDED_SLOTS: u64 = 16;

/// The slots of such a log.
pub(super) const fn rounded_us(window_us: u64) -> u64 {
    window_us.div_ceil(ROUNDED_SLOTS)
}

#[inline]
pub(super) fn check(log: &mut Log, ask: &Ask, slot_us: u64) -> Decision {
    if let Some(horizon_us) = ask.horizon_us() {
        log.expire(horizon_us);
    }
    let used = log.sum();
    if !ask.fits(used) {
        return deny(log, ask, 0);
    }
    if ask.cost == 0 {
        return ask.allow(used, reset_us(log, ask, used));
    }
    let at_us = log.push(stamp_us(ask, slot_us), ask.cost);
    ask.allow(used + ask.cost, left_us(at_us, ask))
}

/// The answer of [`check`], spending nothing.
pub(super) fn peek(log: &Log, ask: &Ask, slot_us: u64) -> Decision {
    let expired = ask.horizon_us().map_or(0, |horizon_us| log.sum_until(horizon_us));
    let used = log.sum() - expired;
    if !ask.fits(used) {
        return deny(log, ask, expired);
    }
    if ask.cost == 0 {
        return ask.allow(used, reset_us(log, ask, used));
    }
    let at_us = log.last_us().unwrap_or(0).max(stamp_us(ask, slot_us));
    ask.allow(used + ask.cost, left_us(at_us, ask))
}

/// Spends without asking, also above the capacity.
pub(super) fn charge(log: &mut Log, ask: &Ask, slot_us: u64) {
    if let Some(horizon_us) = ask.horizon_us() {
        log.expire(horizon_us);
    }
    log.push(stamp_us(ask, slot_us), ask.cost);
}

/// `expired` is the sum of the first entries that no longer count but still stand in the log.
fn deny(log: &Log, ask: &Ask, expired: u64) -> Decision {
    let used = log.sum() - expired;
    let opens_us = if ask.is_never() {
        None
    } else {
        log.reaches_us(expired.saturating_add(ask.excess(used)))
    };
    let retry_us = opens_us.map_or(0, |at_us| left_us(at_us, ask));
    ask.deny(used, retry_us, reset_us(log, ask, used))
}

fn reset_us(log: &Log, ask: &Ask, used: u64) -> u64 {
    match log.last_us() {
        Some(last_us) if used > 0 => left_us(last_us, ask),
        Some(_) | None => 0,
    }
}

/// For how long what was spent at `at_us` still counts.
const fn left_us(at_us: u64, ask: &Ask) -> u64 {
    at_us.saturating_add(ask.window_us).saturating_sub(ask.now_us)
}

/// The moment to remember: now, rounded up to slots.
const fn stamp_us(ask: &Ask, slot_us: u64) -> u64 {
    if slot_us == EXACT_US {
        ask.now_us
    } else {
        ask.now_us.div_ceil(slot_us).saturating_mul(slot_us)
    }
}
