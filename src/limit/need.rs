//! Logs begun in need: never over the limit, small, and exact again once the need is over.
//!
//! Units: microseconds.

use crate::time::{Duration, Timestamp};

use super::reference::Random;
use super::state::Kind;
use super::{Algorithm, Cost, Quota, State, check, peek};

const WINDOW_US: u64 = 1_600;

fn quota(limit: u64) -> Quota {
    let window = Duration::from_micros(WINDOW_US);
    Quota::new(Algorithm::SlidingLog, limit, window).expect("a valid quota")
}

fn entries(state: &State) -> usize {
    match &state.kind {
        Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => log.len(),
        Kind::SlidingCounter(_) | Kind::FixedWindow(_) | Kind::Gcra(_) => 0,
    }
}

/// What passes at these moments in need or not, by turns.
fn passed(limit: u64, seed: u64, in_need: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut random = Random::seeded(seed);
    let exact = quota(limit);
    let mut at_us = 10 * WINDOW_US;
    let began = if in_need(at_us) { exact.in_need() } else { exact };
    let mut state = State::new(&began, Timestamp::from_micros(at_us));
    let mut passed = Vec::new();
    for _ in 0..2_000 {
        at_us += random.below(2 * WINDOW_US / limit + 2);
        let quota = if in_need(at_us) { exact.in_need() } else { exact };
        if check(&quota, &mut state, Cost::ONE, Timestamp::from_micros(at_us)).is_allowed() {
            passed.push(at_us);
        }
        assert!(!matches!(state.kind, Kind::RoundedLog(_)) || entries(&state) <= 17);
    }
    passed
}

#[test]
fn no_window_is_over_the_limit_however_need_comes_and_goes() {
    for seed in 0..60 {
        for limit in [1, 3, 20, 200] {
            let turns = [u64::MAX, 1, 3 * WINDOW_US, WINDOW_US / 3][seed as usize % 4];
            let passed = passed(limit, seed, |at_us| (at_us / turns).is_multiple_of(2));
            for (first, last) in passed.iter().zip(passed.iter().skip(limit as usize)) {
                assert!(last - first >= WINDOW_US, "seed {seed}: {first} to {last} of {limit}");
            }
        }
    }
}

#[test]
fn saturated_log_in_need_passes_nearly_what_an_exact_one_does() {
    let count = |in_need: bool| {
        let mut quota = quota(100);
        if in_need {
            quota = quota.in_need();
        }
        let mut state = State::new(&quota, Timestamp::EPOCH);
        let moments = 10 * WINDOW_US..110 * WINDOW_US;
        let ask = |at_us: &u64| {
            check(&quota, &mut state, Cost::ONE, Timestamp::from_micros(*at_us)).is_allowed()
        };
        moments.filter(ask).count()
    };
    let (exact, rounded) = (count(false), count(true));
    assert!(rounded < exact && rounded * 17 >= exact * 16 - 17 * 100, "{rounded} of {exact}");
}

#[test]
fn exact_log_stays_exact_in_need() {
    let exact = quota(10);
    let mut state = State::new(&exact, Timestamp::EPOCH);
    for at_us in 20_000..20_005 {
        check(&exact.in_need(), &mut state, Cost::ONE, Timestamp::from_micros(at_us));
    }
    assert!(matches!(state.kind, Kind::SlidingLog(_)));
    assert_eq!((entries(&state), state.is_coarse()), (5, false));
}

#[test]
fn rounded_log_goes_on_exactly_once_the_need_is_over() {
    let exact = quota(2);
    let now = Timestamp::from_micros(20_050);
    let mut state = State::new(&exact.in_need(), now);
    check(&exact.in_need(), &mut state, Cost::ONE, now);
    assert!(state.is_coarse());
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    let mut state = State::decode(&bytes).expect("what was written");
    assert!(matches!(state.kind, Kind::RoundedLog(_)));
    // It counts from the next slot of a hundred microseconds on.
    let decision = peek(&exact, &state, Cost(2), now);
    assert_eq!(decision.retry_after(), Some(Duration::from_micros(WINDOW_US + 50)));
    check(&exact, &mut state, Cost::ONE, Timestamp::from_micros(20_201));
    assert!(matches!(state.kind, Kind::SlidingLog(_)));
    let last = Timestamp::from_micros(20_300);
    assert_eq!(
        check(&exact, &mut state, Cost::ONE, last).retry_after(),
        Some(Duration::from_micros(20_100 + WINDOW_US - 20_300))
    );
}
