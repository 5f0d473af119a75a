//! What states may cost, and what no input may do to them.
//!
//! Memory is counted as the system's allocator spends it. Bytes and numbers are arbitrary here:
//! nothing may panic, and tests run with overflow checks.

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

use crate::time::{Duration, Timestamp};

use super::reference::Random;
use super::{
    Algorithm, Align, Cost, Quota, State, Throttle, ThrottleRequest, WINDOW_MAX, adapt, charge,
    check, peek, refund,
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
const START_US: u64 = 1_700_000_000_000_000;

fn quota(algorithm: Algorithm, limit: u64, window: Duration) -> Quota {
    Quota::new(algorithm, limit, window).expect("a valid quota")
}

/// As many admitted events of cost one, spread over the window.
fn filled(quota: &Quota, events: u64) -> State {
    let mut state = State::new(quota, Timestamp::from_micros(START_US));
    let step_us = quota.window().as_micros() / quota.limit();
    for event in 0..events {
        let now = Timestamp::from_micros(START_US + event * step_us);
        assert!(check(quota, &mut state, Cost::ONE, now).is_allowed());
    }
    state
}

#[test]
fn ten_events_take_at_most_150_bytes() {
    for window in [SECOND, Duration::from_secs(3_600), DAY] {
        for events in [1, 4, 10, 1_000] {
            let state = filled(&quota(Algorithm::SlidingLog, 10, window), events);
            assert!(state.heap_bytes() <= 150, "{} for {window}", state.heap_bytes());
        }
    }
}

#[test]
fn thousand_events_take_at_most_8_bytes_each() {
    // When filled for the first time, and in the steady state of any length.
    for events in [1_000, 1_001, 1_100, 50_000] {
        let state = filled(&quota(Algorithm::SlidingLog, 1_000, SECOND), events);
        assert!(state.heap_bytes() <= 6_000, "{} after {events}", state.heap_bytes());
    }
    let state = filled(&quota(Algorithm::SlidingLog, 100_000, DAY), 60_000);
    assert!(state.heap_bytes() <= 60_000 * 5, "{}", state.heap_bytes());
}

#[test]
fn only_logs_have_a_heap_and_only_once_something_is_spent() {
    for algorithm in Algorithm::ALL {
        let quota = quota(algorithm, 10, SECOND);
        let mut state = State::new(&quota, Timestamp::EPOCH);
        check(&quota, &mut state, Cost(11), Timestamp::EPOCH);
        check(&quota, &mut state, Cost::ZERO, Timestamp::EPOCH);
        assert_eq!(state.heap_bytes(), 0);
        check(&quota, &mut state, Cost::ONE, Timestamp::EPOCH);
        let is_log = matches!(algorithm, Algorithm::SlidingLog | Algorithm::SlidingWindow);
        assert_eq!(state.heap_bytes() > 0, is_log);
    }
}

#[test]
fn slots_bound_the_memory_of_a_sliding_window() {
    let quota = quota(Algorithm::SlidingWindow, 1_000_000, SECOND);
    let mut state = State::new(&quota, Timestamp::EPOCH);
    for tick in 0..100_000 {
        let now = Timestamp::from_micros(tick * 100);
        check(&quota, &mut state, Cost(1 + tick % 7), now);
        assert!(state.heap_bytes() <= 1_024, "{}", state.heap_bytes());
    }
}

#[test]
fn too_many_entries_are_made_coarse_and_never_pass_the_limit() {
    let limit = 3_000;
    let exact = quota(Algorithm::SlidingLog, limit, SECOND);
    let coarse = exact.with_log_entries_max(1_000).expect("a valid quota");
    let (mut state, mut admitted) = (State::new(&coarse, Timestamp::EPOCH), Vec::new());
    let (mut random, mut now_us, mut was_coarse) = (Random::seeded(1), START_US, false);
    for _ in 0..20_000 {
        now_us += random.below(400);
        let now = Timestamp::from_micros(now_us);
        let decision = check(&coarse, &mut state, Cost::ONE, now);
        if decision.is_allowed() {
            admitted.push(now_us);
        } else {
            let opens = now + decision.retry_after().expect("it opens again");
            assert!(peek(&coarse, &state, Cost::ONE, opens).is_allowed());
            assert!(
                !peek(&coarse, &state, Cost::ONE, opens - Duration::from_micros(1)).is_allowed()
            );
        }
        was_coarse |= state.is_coarse();
        assert!(state.heap_bytes() <= 10_000);
        let mut bytes = Vec::new();
        if random.below(500) == 0 {
            state.encode(&mut bytes);
            let read = State::decode(&bytes).expect("what was written");
            assert_eq!(read.is_coarse(), state.is_coarse());
        }
    }
    assert!(was_coarse);
    for (index, start_us) in admitted.iter().enumerate() {
        let window = admitted[index..].iter().take_while(|at_us| **at_us < start_us + 1_000_000);
        assert!(window.count() as u64 <= limit);
    }
    let later = Timestamp::from_micros(now_us + 2_000_000);
    check(&coarse, &mut state, Cost::ONE, later);
    assert!(!state.is_coarse());
}

#[test]
fn limits_and_costs_beyond_32_bits_are_counted_exactly() {
    for algorithm in Algorithm::ALL {
        let quota = quota(algorithm, 3_000_000_000, DAY);
        let now = Timestamp::from_micros(START_US);
        let mut state = State::new(&quota, now);
        let mut left = |cost| {
            let decision = check(&quota, &mut state, Cost(cost), now);
            decision.is_allowed().then_some(decision.remaining)
        };
        assert_eq!(left(1), Some(2_999_999_999));
        assert_eq!(left(2_999_999_999), Some(0));
        assert_eq!(left(1), None);
        assert!(state.heap_bytes() <= 128);
    }
}

#[test]
fn charge_may_pass_the_limit_and_counts_in_full() {
    for algorithm in Algorithm::ALL {
        let quota = quota(algorithm, 10, SECOND);
        let now = Timestamp::from_micros(START_US);
        let mut state = State::new(&quota, now);
        charge(&quota, &mut state, Cost(25), now);
        assert_eq!(state.used(now), 25);
        let decision = check(&quota, &mut state, Cost::ONE, now);
        assert_eq!((decision.is_allowed(), decision.remaining), (false, 0));
        let opens = now + decision.retry_after().expect("it opens again");
        assert!(check(&quota, &mut state, Cost::ONE, opens).is_allowed());
        charge(&quota, &mut state, Cost(u64::MAX), opens);
        charge(&quota, &mut state, Cost(u64::MAX), opens);
        assert!(!check(&quota, &mut state, Cost::ONE, opens).is_allowed());
    }
}

fn any_number() -> impl Strategy<Value = u64> {
    let top = i64::MAX as u64;
    prop_oneof![
        0_u64..4,
        any::<u64>(),
        any::<u32>().prop_map(u64::from),
        Just(u64::MAX),
        top - 2..top + 2,
    ]
}

fn any_quota() -> impl Strategy<Value = Quota> {
    let algorithm = (0..Algorithm::ALL.len()).prop_map(|index| Algorithm::ALL[index]);
    let align = prop_oneof![Just(Align::Epoch), Just(Align::First)];
    let numbers = (any_number(), any_number(), any_number());
    (algorithm, align, numbers).prop_map(|(algorithm, align, (limit, burst, window_us))| {
        let window = Duration::from_micros(window_us.clamp(1, WINDOW_MAX.as_micros()));
        let quota = quota(algorithm, limit.min(i64::MAX as u64), window);
        quota.with_burst(burst).unwrap_or(quota).with_align(align)
    })
}

/// Uses a state in every way.
fn use_up(state: &mut State, quota: &Quota, numbers: &[u64]) {
    for pair in numbers.chunks_exact(2) {
        let (cost, now) = (Cost(pair[0]), Timestamp::from_micros(pair[1]));
        let peeked = peek(quota, state, cost, now);
        let decision = check(quota, state, cost, now);
        assert_eq!(peeked, decision);
        assert!(decision.remaining <= decision.limit);
        charge(quota, state, cost, now);
        assert!(refund(state, cost, now) <= cost.0);
        adapt(quota, state, now);
        assert!(state.used(state.expires_at()) == 0 || state.expires_at() == Timestamp::MAX);
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert!(State::decode(&bytes).is_ok());
    }
}

proptest! {
    #[test]
    fn no_numbers_overflow(
        quotas in proptest::collection::vec(any_quota(), 1..4),
        numbers in proptest::collection::vec(any_number(), 2..12),
    ) {
        let mut state = State::new(&quotas[0], Timestamp::EPOCH);
        for quota in &quotas {
            use_up(&mut state, quota, &numbers);
        }
    }

    #[test]
    fn no_bytes_break_the_reader(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        algorithm in 0_u8..5,
        quota in any_quota(),
        numbers in proptest::collection::vec(any_number(), 4),
    ) {
        let mut framed = vec![1, algorithm];
        framed.extend(&bytes);
        for bytes in [bytes, framed] {
            if let Ok(mut state) = State::decode(&bytes) {
                use_up(&mut state, &quota, &numbers);
            }
        }
    }

    #[test]
    fn no_throttle_numbers_panic(
        numbers in proptest::array::uniform4(any_number()),
        quota in any_quota(),
        now_us in any_number(),
    ) {
        let [max_burst, count_per_period, period_s, quantity] =
            numbers.map(|number| number as i64);
        let request = ThrottleRequest { max_burst, count_per_period, period_s, quantity };
        let now = Timestamp::from_micros(now_us);
        for throttle in [Throttle::cell(request), Throttle::crab(request)].into_iter().flatten() {
            for mut state in [throttle.fresh(now), State::new(&quota, now)] {
                throttle.check(&mut state, now).cell_reply(super::Rounding::Dragonfly);
                throttle.check(&mut state, Timestamp::MAX).crab_reply();
                use_up(&mut state, &quota, &[1, now_us]);
            }
        }
    }
}
