//! The published vectors of each algorithm, row by row, and the limits' edges.
//!
//! A row is the moment in milliseconds, the cost, the verdict, and whichever of remaining, retry
//! and reset (milliseconds) the vector states.

use crate::time::{Duration, Timestamp};

use super::{Algorithm, Align, Cost, Decision, Quota, State, check, peek, refund};

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn quota(algorithm: Algorithm, limit: u64) -> Quota {
    Quota::new(algorithm, limit, Duration::from_secs(1)).expect("a valid quota")
}

/// Verdict and figures that a row states; -1 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    at_ms: u64,
    cost: u64,
    allowed: bool,
    remaining: Option<u64>,
    retry_ms: Option<i64>,
    reset_ms: Option<i64>,
}

fn allow(at_ms: u64, cost: u64) -> Row {
    Row { at_ms, cost, allowed: true, ..Row::default() }
}

fn deny(at_ms: u64, cost: u64, retry_ms: i64) -> Row {
    Row { at_ms, cost, retry_ms: Some(retry_ms), ..Row::default() }
}

impl Row {
    fn left(self, remaining: u64) -> Self {
        Self { remaining: Some(remaining), ..self }
    }

    fn reset(self, reset_ms: i64) -> Self {
        Self { reset_ms: Some(reset_ms), ..self }
    }

    fn agrees(self, decision: Decision) -> bool {
        self.allowed == decision.is_allowed()
            && self.remaining.is_none_or(|remaining| remaining == decision.remaining)
            && self.retry_ms.is_none_or(|retry_ms| retry_ms == decision.retry_after_ms())
            && self.reset_ms.is_none_or(|reset_ms| reset_ms == decision.reset_after_ms())
    }
}

fn run(quota: &Quota, rows: &[Row]) {
    let mut state = State::new(quota, Timestamp::EPOCH);
    for row in rows {
        let peeked = peek(quota, &state, Cost(row.cost), ms(row.at_ms));
        let decision = check(quota, &mut state, Cost(row.cost), ms(row.at_ms));
        assert!(row.agrees(decision), "{row:?} but {decision:?} of {quota:?}");
        assert_eq!(peeked, decision, "peek before {row:?}");
    }
}

#[test]
fn sliding_log_follows_its_vectors() {
    run(
        &quota(Algorithm::SlidingLog, 3),
        &[
            allow(0, 1).left(2).reset(1_000),
            allow(0, 1).left(1).reset(1_000),
            allow(400, 1).left(0).reset(1_000),
            deny(400, 1, 600).left(0).reset(1_000),
            deny(999, 1, 1).reset(401),
            allow(1_000, 1).left(1).reset(1_000),
            deny(1_000, 2, 400).left(1).reset(1_000),
            allow(1_399, 1).left(0),
            allow(1_400, 1).left(0),
            allow(2_000, 0).left(1).reset(400),
            deny(2_001, 4, -1).left(1).reset(399),
            allow(2_400, 3).left(0),
            deny(2_400, 1, 1_000).reset(1_000),
        ],
    );
}

#[test]
fn sliding_log_waits_for_as_many_entries_as_the_cost_needs() {
    run(
        &quota(Algorithm::SlidingLog, 5),
        &[
            allow(0, 1).left(4),
            allow(100, 2).left(2),
            allow(200, 2).left(0),
            deny(300, 2, 800),
            deny(300, 3, 800),
            deny(300, 4, 900),
            deny(300, 5, 900),
            deny(300, 6, -1),
            allow(1_100, 3).left(0),
        ],
    );
}

#[test]
fn logs_never_go_back_in_time() {
    let rows = [allow(500, 1), allow(100, 1), deny(200, 1, 1_000), deny(1_400, 1, 100)];
    for algorithm in [Algorithm::SlidingLog, Algorithm::SlidingWindow] {
        run(&quota(algorithm, 2), &rows);
    }
    run(&quota(Algorithm::SlidingLog, 2), &[&rows[..], &[allow(1_500, 1)]].concat());
}

#[test]
fn limit_of_zero_always_denies() {
    for algorithm in Algorithm::ALL {
        let never = deny(5, 1, -1).left(0).reset(0);
        let quota = quota(algorithm, 0).with_burst(7).expect("a valid quota");
        run(&quota, &[never, Row { cost: 0, ..never }, Row { at_ms: 5_000, ..never }]);
    }
}

#[test]
fn refund_forgets_the_oldest() {
    let quota = quota(Algorithm::SlidingLog, 2);
    let mut state = State::new(&quota, Timestamp::EPOCH);
    let mut run = |row: Row| {
        let decision = check(&quota, &mut state, Cost(row.cost), ms(row.at_ms));
        assert!(row.agrees(decision), "{row:?} but {decision:?}");
        row.at_ms
    };
    run(allow(0, 1));
    run(allow(500, 1));
    run(deny(600, 1, 400));
    assert_eq!(refund(&mut state, Cost(1), ms(600)), 1);
    let mut run = |row: Row| {
        let decision = check(&quota, &mut state, Cost(row.cost), ms(row.at_ms));
        assert!(row.agrees(decision), "{row:?} but {decision:?}");
    };
    run(allow(600, 1));
    run(deny(1_000, 1, 500));
    run(allow(1_500, 1));
}

#[test]
fn sliding_counter_follows_its_vectors() {
    run(
        &quota(Algorithm::SlidingCounter, 10),
        &[
            allow(0, 10).left(0),
            deny(500, 1, 600),
            deny(1_000, 1, 100),
            deny(1_099, 1, 1),
            allow(1_100, 1).left(0),
            allow(1_500, 4).left(0),
            deny(1_500, 1, 100),
            allow(1_600, 1).left(0),
            allow(3_500, 10).left(0),
        ],
    );
}

#[test]
fn fixed_window_follows_its_vectors() {
    run(
        &quota(Algorithm::FixedWindow, 3),
        &[
            allow(999, 3).left(0).reset(1),
            deny(999, 1, 1),
            allow(1_000, 3).left(0),
            deny(1_000, 1, 1_000),
            deny(1_999, 1, 1),
            deny(2_000, 4, -1).left(3),
        ],
    );
}

#[test]
fn fixed_window_from_the_first_begins_with_what_it_admits() {
    run(
        &quota(Algorithm::FixedWindow, 3).with_align(Align::First),
        &[
            allow(300, 0).left(3).reset(0),
            deny(300, 4, -1).left(3).reset(0),
            allow(400, 2).left(1).reset(1_000),
            allow(1_399, 1).left(0).reset(1),
            deny(1_399, 1, 1).reset(1),
            allow(1_400, 0).left(3).reset(0),
            allow(1_900, 1).left(2).reset(1_000),
        ],
    );
}

#[test]
fn gcra_follows_its_vectors() {
    run(
        &quota(Algorithm::Gcra, 10).with_burst(5).expect("a valid quota"),
        &[
            allow(0, 1).left(4).reset(100),
            allow(0, 4).left(0).reset(500),
            deny(0, 1, 100),
            deny(99, 1, 1),
            allow(100, 1).left(0),
            deny(100, 1, 100),
            deny(250, 2, 50).left(1),
            allow(300, 2).left(0),
            deny(300, 6, -1),
            allow(1_300, 5).left(0),
        ],
    );
}
