//! Random traces: the algorithms against their references, and what each promises.
//!
//! A trace mixes ties, short and long steps, steps back, costs of zero, one, many and too many,
//! and changes of the limit. Seeds are fixed. Units: microseconds.

use crate::time::{Duration, Timestamp};

use super::reference::{Answer, Model, Random};
use super::{Algorithm, Align, Cost, Decision, Quota, State, check, peek, refund};

/// Requests of one trace.
const STEPS: usize = 100;

fn quota(random: &mut Random, algorithm: Algorithm, window: Duration) -> Quota {
    let limit = random.pick(&[1, 2, 3, 5, 10, 40, 300]);
    let burst = random.pick(&[0, 0, 1, 7]);
    let align = random.pick(&[Align::Epoch, Align::First]);
    Quota::new(algorithm, limit, window)
        .and_then(|quota| quota.with_burst(burst))
        .expect("a valid quota")
        .with_align(align)
}

/// Also shorter than a hundred microseconds, and longer than 32 bits of them.
fn window(random: &mut Random) -> Duration {
    Duration::from_micros(random.pick(&[1, 7, 100, 1_234, 1_000_000, 60_000_000, 86_400_000_000]))
}

fn cost(random: &mut Random, quota: &Quota) -> u64 {
    match random.below(10) {
        0 => 0,
        1 => random.below(quota.capacity() + 2),
        2 => random.below(4),
        _ => 1,
    }
}

/// The next moment: the same, shortly or long after, or before.
fn step(random: &mut Random, quota: &Quota, now_us: u64) -> u64 {
    let window_us = quota.window().as_micros();
    match random.below(20) {
        0..5 => now_us,
        5 => now_us.saturating_sub(random.below(window_us + 1)),
        6 => now_us + random.below(3 * window_us),
        7 => now_us + window_us,
        8..12 => now_us + 1 + random.below(window_us / 10 + 1),
        _ => now_us + random.below(2 * window_us / quota.capacity() + 2),
    }
}

fn answer(decision: Decision) -> Answer {
    Answer {
        allowed: decision.is_allowed(),
        remaining: decision.remaining,
        retry_us: decision.retry_after().map(Duration::as_micros),
        reset_us: decision.reset_after.as_micros(),
    }
}

/// A trace of one algorithm, its model beside it.
struct Trace {
    random: Random,
    quota: Quota,
    state: State,
    model: Model,
    now_us: u64,
}

impl Trace {
    fn new(algorithm: Algorithm, seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let window = window(&mut random);
        let quota = quota(&mut random, algorithm, window);
        let now_us = random.pick(&[0, 999, 1_700_000_000_000_000]);
        let state = State::new(&quota, Timestamp::EPOCH);
        Self { random, quota, state, model: Model::new(), now_us }
    }

    /// Moves on, and returns the next cost and moment.
    fn next(&mut self) -> (Cost, Timestamp) {
        self.now_us = step(&mut self.random, &self.quota, self.now_us);
        let cost = Cost(cost(&mut self.random, &self.quota));
        (cost, Timestamp::from_micros(self.now_us))
    }

    fn check(&mut self, cost: Cost, now: Timestamp) -> Decision {
        check(&self.quota, &mut self.state, cost, now)
    }

    fn peek(&self, cost: Cost, now: Timestamp) -> Decision {
        peek(&self.quota, &self.state, cost, now)
    }

    fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        bytes
    }
}

fn traces(algorithm: Algorithm, count: u64) -> impl Iterator<Item = Trace> {
    (0..count).map(move |seed| Trace::new(algorithm, seed))
}

#[test]
fn every_answer_is_that_of_the_reference() {
    for algorithm in Algorithm::ALL {
        for mut trace in traces(algorithm, 2_000) {
            for _ in 0..STEPS {
                if trace.random.below(40) == 0 {
                    // The align is kept: a change of it carries a count over.
                    let (window, align) = (trace.quota.window(), trace.quota.align());
                    trace.quota = quota(&mut trace.random, algorithm, window).with_align(align);
                }
                let (cost, now) = trace.next();
                let expected = trace.model.check(&trace.quota, cost.0, now);
                let peeked = trace.peek(cost, now);
                let decision = trace.check(cost, now);
                assert_eq!(answer(decision), expected, "{cost:?} at {now:?} of {:?}", trace.quota);
                assert_eq!(peeked, decision, "a peek, {cost:?} at {now:?} of {:?}", trace.quota);
            }
        }
    }
}

#[test]
fn denied_request_passes_exactly_at_retry_after() {
    let mut denials = 0;
    for algorithm in Algorithm::ALL {
        for mut trace in traces(algorithm, 1_500) {
            for _ in 0..STEPS {
                let (cost, now) = trace.next();
                let decision = trace.check(cost, now);
                let Some(retry_after) = decision.retry_after() else { continue };
                denials += 1;
                let opens = trace.state.last + retry_after;
                assert!(!retry_after.is_zero());
                assert!(trace.peek(cost, opens).is_allowed(), "{decision:?} of {:?}", trace.quota);
                let before = opens - Duration::from_micros(1);
                assert!(!trace.peek(cost, before).is_allowed(), "{decision:?}");
            }
        }
    }
    assert!(denials >= 100_000, "{denials}");
}

#[test]
fn no_window_holds_more_than_its_bound() {
    for algorithm in Algorithm::ALL {
        for mut trace in traces(algorithm, 1_000) {
            let (capacity, window_us) = (trace.quota.capacity(), trace.quota.window().as_micros());
            let interval_ns = u128::from(trace.quota.interval_ns().max(1));
            let mut admitted: Vec<(u64, u64)> = Vec::new();
            for _ in 0..2 * STEPS {
                let (cost, now) = trace.next();
                if trace.check(cost, now).is_allowed() {
                    admitted.push((trace.state.last.as_micros(), cost.0));
                }
                // All windows that end with this request, the longest first.
                let (end_us, mut sum) = (trace.state.last.as_micros(), 0);
                for (at_us, cost) in admitted.iter().rev() {
                    sum += cost;
                    let span_us = end_us - at_us;
                    let bound = match algorithm {
                        Algorithm::Gcra => {
                            capacity + (u128::from(span_us) * 1_000 / interval_ns) as u64
                        }
                        _ if span_us >= window_us => break,
                        Algorithm::SlidingLog | Algorithm::SlidingWindow => capacity,
                        Algorithm::SlidingCounter | Algorithm::FixedWindow => 2 * capacity,
                    };
                    assert!(sum <= bound, "{sum} in {span_us} us of {:?}", trace.quota);
                }
            }
        }
    }
}

#[test]
fn saturated_slots_pass_nearly_what_the_exact_log_passes() {
    let second = Duration::from_secs(1);
    let passed = |algorithm| {
        let quota = Quota::new(algorithm, 100, second).expect("a valid quota");
        let mut state = State::new(&quota, Timestamp::EPOCH);
        let moments = (0..200_000).map(|tick| Timestamp::from_micros(tick * 503));
        moments.filter(|now| check(&quota, &mut state, Cost::ONE, *now).is_allowed()).count()
    };
    let (exact, slots) = (passed(Algorithm::SlidingLog), passed(Algorithm::SlidingWindow));
    assert!(slots <= exact);
    assert!(slots * 101 >= exact * 100, "{slots} of {exact}");
}

#[test]
fn denied_request_changes_nothing() {
    for algorithm in Algorithm::ALL {
        for mut trace in traces(algorithm, 300) {
            for _ in 0..STEPS {
                let (cost, now) = trace.next();
                let before = trace.state.clone();
                if trace.check(cost, now).is_allowed() {
                    continue;
                }
                for ahead_us in [0, 1, trace.quota.window().as_micros()] {
                    let later = trace.state.last + Duration::from_micros(ahead_us);
                    for cost in [Cost::ZERO, Cost::ONE, cost] {
                        let expected = peek(&trace.quota, &before, cost, later);
                        assert_eq!(trace.peek(cost, later), expected, "{:?}", trace.quota);
                    }
                }
            }
        }
    }
}

#[test]
fn states_read_back_as_they_were_written() {
    for algorithm in Algorithm::ALL {
        for mut trace in traces(algorithm, 300) {
            for _ in 0..2 * STEPS {
                let (cost, now) = trace.next();
                trace.check(cost, now);
            }
            let bytes = trace.encoded();
            trace.state = State::decode(&bytes).expect("what was written");
            assert_eq!(trace.encoded(), bytes);
            assert!(State::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}

#[test]
fn state_equals_a_fresh_one_from_its_expiry_and_not_before() {
    for algorithm in Algorithm::ALL {
        for mut trace in traces(algorithm, 300) {
            for _ in 0..STEPS {
                let (cost, now) = trace.next();
                trace.check(cost, now);
            }
            let expiry = trace.state.expires_at();
            let fresh = State::new(&trace.quota, expiry);
            for cost in [Cost::ZERO, Cost::ONE] {
                let expected = peek(&trace.quota, &fresh, cost, expiry);
                assert_eq!(trace.peek(cost, expiry), expected, "{:?}", trace.quota);
            }
            assert_eq!(trace.state.used(expiry), 0);
            if expiry > trace.state.last {
                let before = trace.peek(Cost::ZERO, expiry - Duration::from_micros(1));
                assert_eq!(before.reset_after, Duration::from_micros(1));
            }
        }
    }
}

#[test]
fn refund_of_a_log_takes_the_oldest() {
    for algorithm in [Algorithm::SlidingLog, Algorithm::SlidingWindow] {
        for mut trace in traces(algorithm, 500) {
            for _ in 0..STEPS {
                let (cost, now) = trace.next();
                let expected = trace.model.check(&trace.quota, cost.0, now);
                assert_eq!(answer(trace.check(cost, now)), expected);
                if trace.random.below(4) == 0 {
                    let cost = trace.random.below(trace.quota.capacity() + 2);
                    let given = refund(&mut trace.state, Cost(cost), now);
                    assert_eq!(given, trace.model.refund_log(&trace.quota, cost, now));
                }
            }
        }
    }
}

#[test]
fn refund_gives_back_what_is_used_and_never_more() {
    for algorithm in Algorithm::ALL {
        for mut trace in traces(algorithm, 500) {
            for _ in 0..STEPS {
                let (cost, now) = trace.next();
                trace.check(cost, now);
                let now = trace.state.last;
                let (used, asked) = (trace.state.used(now), trace.random.below(6));
                let given = refund(&mut trace.state, Cost(asked), now);
                assert!(given <= asked);
                if algorithm != Algorithm::SlidingCounter {
                    // Its older counter is worth less than it holds.
                    assert_eq!(given, asked.min(used), "{:?}", trace.quota);
                    assert_eq!(trace.state.used(now), used - given);
                }
                let all = refund(&mut trace.state, Cost(u64::MAX), now);
                assert!(all >= used - given);
                let free = trace.peek(Cost::ZERO, now).remaining;
                assert_eq!(free, trace.quota.capacity(), "{:?}", trace.quota);
            }
        }
    }
}

#[test]
fn another_algorithm_carries_over_what_is_used() {
    for (seed, (from, to)) in (0..).zip(pairs()) {
        for mut trace in traces(from, 100) {
            for _ in 0..STEPS {
                let (cost, now) = trace.next();
                trace.check(cost, now);
            }
            let now = trace.state.last;
            let used = trace.state.used(now);
            let mut random = Random::seeded(seed);
            let changed = quota(&mut random, to, trace.quota.window());
            let peeked = peek(&changed, &trace.state, Cost::ZERO, now);
            super::adapt(&changed, &mut trace.state, now);
            assert_eq!(trace.state.algorithm(), to);
            assert_eq!(trace.state.used(now), used.min(changed.capacity()));
            assert_eq!(peek(&changed, &trace.state, Cost::ZERO, now), peeked);
        }
    }
}

fn pairs() -> impl Iterator<Item = (Algorithm, Algorithm)> {
    let all = Algorithm::ALL.into_iter();
    all.flat_map(|from| Algorithm::ALL.map(|to| (from, to))).filter(|(from, to)| from != to)
}
