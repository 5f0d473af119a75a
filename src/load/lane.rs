//! One kind of work on its way: how many wait, how many are in work, and how that goes.
//!
//! A lane has a bounded number of waiting requests, an in-flight limit and a longest wait, and
//! measures what its rejector and its tuning want to know. Requests in work are averaged exactly
//! over time, by the area under their number.
//!
//! Lock order: `gauge` alone, and never while anything else is locked.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::time::{Duration, Timestamp};

use super::cut::{Cut, Standing};
use super::latencies::{Latencies, Spread};
use super::level::Level;
use super::offered::Offered;
use super::options::Options;
use super::rejector::Interval;
use super::request::{Reason, Request};

/// What changes with each request.
#[derive(Clone, Copy, Debug)]
struct Gauge {
    waiting: u64,
    in_flight: u64,
    /// The most in flight since the last interval began.
    peak: u64,
    /// Request-microseconds in flight, up to `changed_at`.
    area_us: u64,
    changed_at: Timestamp,
    /// Since the last interval began.
    admitted: u64,
    started: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lane {
    gauge: Mutex<Gauge>,
    waiting_max: u64,
    in_flight_max: AtomicU32,
    timeout_us: AtomicU64,
    offered: Offered,
    /// Since the last interval began.
    offered_count: AtomicU64,
    /// Spans of work that was served.
    pub(super) served: Latencies,
    /// Waits of requests whose work began.
    waits: Latencies,
    /// A [`Standing`], of which the cut counts.
    cut: AtomicU64,
}

/// What a lane shows of an interval that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) interval: Interval,
    pub(super) in_flight_us: f64,
    pub(super) in_flight_peak: u64,
    pub(super) served: Spread,
    pub(super) waits: Spread,
}

impl Lane {
    pub(super) fn new(options: &Options, now: Timestamp) -> Self {
        Self {
            gauge: Mutex::new(Gauge {
                waiting: 0,
                in_flight: 0,
                peak: 0,
                area_us: 0,
                changed_at: now,
                admitted: 0,
                started: 0,
            }),
            waiting_max: options.waiting_max,
            in_flight_max: AtomicU32::new(options.in_flight.initial()),
            timeout_us: AtomicU64::new(options.timeout_max.as_micros()),
            offered: Offered::new(),
            offered_count: AtomicU64::new(0),
            served: Latencies::new(),
            waits: Latencies::new(),
            cut: AtomicU64::new(Standing::CALM.word()),
        }
    }

    /// A request came, whatever becomes of it.
    pub(super) fn note_offered(&self, request: &Request<'_>) {
        self.offered_count.fetch_add(1, Ordering::Relaxed);
        self.offered.note(request.priority());
    }

    /// What is refused of this lane right now.
    pub(super) fn cut(&self) -> Cut {
        Standing::of_word(self.cut.load(Ordering::Relaxed)).cut
    }

    pub(super) fn set_cut(&self, refuse: f64) -> Cut {
        let cut = self.offered.cut(refuse);
        let word = Standing { level: Level::Normal, cut }.word();
        self.cut.store(word, Ordering::Relaxed);
        cut
    }

    pub(super) fn in_flight_max(&self) -> u32 {
        self.in_flight_max.load(Ordering::Relaxed)
    }

    pub(super) fn set_in_flight_max(&self, most: u32) {
        self.in_flight_max.store(most, Ordering::Relaxed);
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_micros(self.timeout_us.load(Ordering::Relaxed))
    }

    pub(super) fn set_timeout(&self, timeout: Duration) {
        self.timeout_us.store(timeout.as_micros(), Ordering::Relaxed);
    }

    /// (waiting, in flight)
    pub(super) fn counts(&self) -> (u64, u64) {
        let gauge = self.gauge();
        (gauge.waiting, gauge.in_flight)
    }

    /// A request goes to wait; false if as many wait as may.
    pub(super) fn wait(&self) -> bool {
        let mut gauge = self.gauge();
        if gauge.waiting >= self.waiting_max {
            return false;
        }
        gauge.waiting += 1;
        gauge.admitted += 1;
        true
    }

    /// A request has stopped to wait and will not be worked on.
    pub(super) fn give_up(&self) {
        let mut gauge = self.gauge();
        gauge.waiting = gauge.waiting.saturating_sub(1);
    }

    /// The work for a request that waited begins, or why not. It waits no more in either case.
    pub(super) fn begin(&self, waited: Duration, now: Timestamp) -> Result<(), Reason> {
        let is_late = waited > self.timeout();
        {
            let mut gauge = self.gauge();
            gauge.waiting = gauge.waiting.saturating_sub(1);
            if is_late {
                return Err(Reason::QueueTimeout);
            }
            if gauge.in_flight >= u64::from(self.in_flight_max()) {
                return Err(Reason::InFlight);
            }
            gauge.advance(now);
            gauge.in_flight += 1;
            gauge.peak = gauge.peak.max(gauge.in_flight);
            gauge.started += 1;
        }
        self.waits.note(waited);
        Ok(())
    }

    /// The work for a request has ended.
    pub(super) fn end(&self, now: Timestamp) {
        let mut gauge = self.gauge();
        gauge.advance(now);
        gauge.in_flight = gauge.in_flight.saturating_sub(1);
    }

    /// Ends the interval that began `length` ago.
    pub(super) fn end_interval(&self, length: Duration, now: Timestamp) -> Ended {
        let offered = self.offered_count.swap(0, Ordering::Relaxed);
        let ended = {
            let mut gauge = self.gauge();
            gauge.advance(now);
            let ended = *gauge;
            gauge.area_us = 0;
            gauge.admitted = 0;
            gauge.started = 0;
            gauge.peak = gauge.in_flight;
            ended
        };
        let (served, waits) = (self.served.take(), self.waits.take());
        let in_flight_max = u64::from(self.in_flight_max());
        let in_flight_us = ended.area_us as f64;
        let interval = Interval {
            length,
            offered,
            admitted: ended.admitted,
            started: ended.started,
            queued: ended.waiting,
            in_flight: in_flight_us / length.as_micros().max(1) as f64,
            free: in_flight_max.saturating_sub(ended.in_flight),
            in_flight_max,
            queue_delay: waits.mean(),
        };
        Ended { interval, in_flight_us, in_flight_peak: ended.peak, served, waits }
    }

    fn gauge(&self) -> MutexGuard<'_, Gauge> {
        self.gauge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gauge {
    /// Threads may come with moments out of order by a little: none is taken back.
    fn advance(&mut self, now: Timestamp) {
        let passed_us = now.since(self.changed_at).as_micros();
        self.area_us = self.area_us.saturating_add(passed_us.saturating_mul(self.in_flight));
        self.changed_at = self.changed_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000);

    fn at(ms: u64) -> Timestamp {
        START + Duration::from_millis(ms)
    }

    #[test]
    fn requests_in_flight_are_averaged_over_time() {
        let lane = Lane::new(&Options::default(), START);
        let begin = |ms| {
            assert!(lane.wait());
            lane.begin(Duration::from_millis(1), at(ms)).expect("there is room");
        };
        begin(100);
        begin(200);
        lane.end(at(400));
        let ended = lane.end_interval(Duration::from_millis(500), at(500));
        assert!((ended.interval.in_flight - 1.2).abs() < 1e-9, "{:?}", ended.interval);
        assert_eq!((ended.interval.started, ended.in_flight_peak), (2, 2));
        let ended = lane.end_interval(Duration::from_millis(500), at(1_000));
        assert!((ended.interval.in_flight - 1.0).abs() < 1e-9);
        assert_eq!((ended.interval.started, ended.in_flight_peak), (0, 1));
    }

    #[test]
    fn waiting_and_work_are_bounded() {
        let options = Options {
            waiting_max: 2,
            in_flight: super::super::tuning::LimitRange::fixed(1),
            ..Options::default()
        };
        let lane = Lane::new(&options, START);
        assert_eq!([(); 3].map(|()| lane.wait()), [true, true, false]);
        assert_eq!(lane.begin(Duration::ZERO, START), Ok(()));
        assert_eq!(lane.begin(Duration::ZERO, START), Err(Reason::InFlight));
        assert_eq!(lane.counts(), (0, 1));
        assert!(lane.wait());
        let late = lane.begin(Duration::from_secs(2), START);
        assert_eq!((late, lane.counts()), (Err(Reason::QueueTimeout), (0, 1)));
    }
}
