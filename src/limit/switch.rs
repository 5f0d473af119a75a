//! From a log to two counters and back, without ever letting more pass than either would.
//!
//! For who gives up exactness to save memory, and takes it back later. A change of a policy goes
//! another way ([`adapt`](super::adapt)): there one entry stands for all that was spent.
//!
//! Log to counters: with `r` how far now is into its window `W`, the present counter takes what
//! counts since the window began, and the older one `ceil(n * W / (W - r))`, where `n` is what
//! counts from before. So the estimate of this moment is the exact count, rounded up. Counters to
//! log: one entry at now of both counters together, up to the capacity, which bounds from above
//! what was spent in the last window; the weighted estimate does not.

use crate::time::Timestamp;

use super::ask::{quotient, quotient_ceil};
use super::decision::Cost;
use super::quota::{Algorithm, Quota};
use super::sliding_counter::Counters;
use super::state::{Kind, State};

/// What was spent, as the quota counts it from now on; of a log for sliding-counter or of
/// counters for a log. Any other pair is carried over as by [`adapt`](super::adapt).
#[must_use]
pub fn switch(quota: &Quota, state: &State, now: Timestamp) -> State {
    let now = now.max(state.last);
    match (&state.kind, quota.algorithm()) {
        (
            Kind::SlidingLog(_) | Kind::RoundedLog(_) | Kind::SlidingWindow(_),
            Algorithm::SlidingCounter,
        ) => counters(quota, state, now),
        (Kind::SlidingCounter(counters), Algorithm::SlidingLog | Algorithm::SlidingWindow) => {
            let counters = counters.at(&state.ask(Cost::ZERO, now), state.last.as_micros());
            let sum = counters.previous.saturating_add(counters.current);
            let mut log = State::new(quota, now);
            log.charge(quota, Cost(sum.min(quota.capacity())), now);
            log
        }
        (
            Kind::SlidingLog(_)
            | Kind::RoundedLog(_)
            | Kind::SlidingWindow(_)
            | Kind::SlidingCounter(_)
            | Kind::FixedWindow(_)
            | Kind::Gcra(_),
            _,
        ) if state.fits(quota) => state.clone(),
        (
            Kind::SlidingLog(_)
            | Kind::RoundedLog(_)
            | Kind::SlidingWindow(_)
            | Kind::SlidingCounter(_)
            | Kind::FixedWindow(_)
            | Kind::Gcra(_),
            _,
        ) => state.adapted(quota, now),
    }
}

/// The counters that a log becomes, in the windows of the quota.
fn counters(quota: &Quota, state: &State, now: Timestamp) -> State {
    let (window_us, now_us) = (quota.window().as_micros(), now.as_micros());
    let into_us = now_us % window_us;
    let started_us = now_us - into_us;
    let used = state.used(now);
    // Up to the last moment before the window; a log counts up to and including one.
    let before = match started_us.checked_sub(1) {
        Some(last_us) => state.spent_until(last_us, now).min(used),
        None => 0,
    };
    let left_us = window_us - into_us;
    let previous = quotient_ceil(u128::from(before) * u128::from(window_us), left_us);
    // Less than all of it only where the older counter is as high as it goes.
    let covered = quotient(u128::from(previous) * u128::from(left_us), window_us);
    let current = used - before.min(covered);
    let kind = Kind::SlidingCounter(Counters { previous, current });
    State { window: quota.window(), last: now, kind }
}

#[cfg(test)]
mod tests {
    use super::super::reference::Random;
    use super::super::{check, peek};
    use super::*;
    use crate::time::Duration;

    const WINDOW_US: u64 = 1_000_000;

    fn quota(algorithm: Algorithm, limit: u64) -> Quota {
        Quota::new(algorithm, limit, Duration::from_micros(WINDOW_US)).expect("a valid quota")
    }

    /// Spends at random until a moment; the moments and costs of what passed.
    fn spend(
        random: &mut Random,
        (quota, state): (&Quota, &mut State),
        (from_us, until_us): (u64, u64),
    ) -> Vec<(u64, u64)> {
        let mut passed = Vec::new();
        let mut at_us = from_us;
        while at_us <= until_us {
            let cost = 1 + random.below(3);
            if check(quota, state, Cost(cost), Timestamp::from_micros(at_us)).is_allowed() {
                passed.push((at_us, cost));
            }
            at_us += random.below(WINDOW_US / 8);
        }
        passed
    }

    #[test]
    fn counters_made_of_a_log_begin_with_its_exact_count() {
        let mut random = Random::seeded(41);
        for _ in 0..500 {
            let limit = random.pick(&[1, 5, 20, 60]);
            let algorithm = random.pick(&[Algorithm::SlidingLog, Algorithm::SlidingWindow]);
            let (log_quota, counter) =
                (quota(algorithm, limit), quota(Algorithm::SlidingCounter, limit));
            let now_us = 3 * WINDOW_US + random.below(2 * WINDOW_US);
            let mut log = State::new(&log_quota, Timestamp::EPOCH);
            spend(&mut random, (&log_quota, &mut log), (WINDOW_US, now_us));
            let now = Timestamp::from_micros(now_us);
            let counters = switch(&counter, &log, now);
            let (exact, estimated) = (log.used(now), counters.used(now));
            assert!((exact..=exact + 1).contains(&estimated), "{exact}, {estimated} at {now_us}");
            let passes =
                |quota: &Quota, state: &State| peek(quota, state, Cost::ONE, now).is_allowed();
            assert!(passes(&log_quota, &log) || !passes(&counter, &counters), "at {now_us}");
        }
    }

    #[test]
    fn log_made_of_counters_keeps_every_window_to_the_capacity() {
        let mut random = Random::seeded(42);
        for _ in 0..500 {
            let limit = random.pick(&[1, 5, 20, 60]);
            let (log_quota, counter) =
                (quota(Algorithm::SlidingLog, limit), quota(Algorithm::SlidingCounter, limit));
            let mut state = State::new(&counter, Timestamp::EPOCH);
            let switch_us = 3 * WINDOW_US + random.below(2 * WINDOW_US);
            let before = spend(&mut random, (&counter, &mut state), (WINDOW_US, switch_us));
            let mut log = switch(&log_quota, &state, Timestamp::from_micros(switch_us));
            let end_us = switch_us + 2 * WINDOW_US;
            let after = spend(&mut random, (&log_quota, &mut log), (switch_us, end_us));
            let sum = |list: &[(u64, u64)], end_us: u64| -> u64 {
                let counts = |at_us: u64| at_us + WINDOW_US > end_us && at_us <= end_us;
                list.iter().filter(|(at_us, _)| counts(*at_us)).map(|(_, cost)| cost).sum()
            };
            for (end_us, _) in &after {
                // Counters may have let more pass than the capacity: of that, so much counts.
                let old = sum(&before, *end_us).min(limit);
                assert!(old + sum(&after, *end_us) <= limit, "ends {end_us}, switch {switch_us}");
            }
        }
    }

    #[test]
    fn switch_to_the_same_algorithm_changes_nothing() {
        let log_quota = quota(Algorithm::SlidingLog, 5);
        let mut log = State::new(&log_quota, Timestamp::EPOCH);
        let now = Timestamp::from_millis(100);
        check(&log_quota, &mut log, Cost(3), now);
        assert_eq!(switch(&log_quota, &log, now).used(now), 3);
        // Long before, and nothing of it left.
        let late = Timestamp::from_millis(9_000);
        assert_eq!(switch(&quota(Algorithm::SlidingCounter, 5), &log, late).used(late), 0);
    }

    #[test]
    fn huge_counts_neither_overflow_nor_open_the_limit() {
        let most = i64::MAX as u64;
        let (log_quota, counter) =
            (quota(Algorithm::SlidingLog, most), quota(Algorithm::SlidingCounter, most));
        let mut log = State::new(&log_quota, Timestamp::EPOCH);
        check(&log_quota, &mut log, Cost(most), Timestamp::from_micros(WINDOW_US - 1));
        let now = Timestamp::from_micros(2 * WINDOW_US - 2);
        let counters = switch(&counter, &log, now);
        assert!(!peek(&counter, &counters, Cost::ONE, now).is_allowed());
        let back = switch(&log_quota, &counters, now);
        assert_eq!(back.used(now), most);
    }
}
