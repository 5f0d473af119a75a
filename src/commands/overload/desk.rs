//! Where the load manager's parts meet: signals to pressure, pressure to a level, a level to who
//! is refused.
//!
//! It is looked at twice a second, and by operators; no request waits for it. What requests go by
//! is one word, which is published from here.
//!
//! While requests are refused, their pressure is gone: nothing waits any longer. So that the level
//! does not fall for that, and rise again, workers without a pause hold it: they press with
//! [`BUSY_SHARE`] of the entry of level 1, which enters no level and leaves neither 1 nor 2.

use std::collections::HashMap;

use super::lane::Counts;
use crate::load::{
    Cut, Interval, Level, LevelMachine, Offered, Pressures, Readings, Rejector, RejectorKind,
    Reported, Share, SignalError, Signals, Standing, Thresholds,
};
use crate::time::{Duration, Timestamp};

/// What workers that never rest press with, of the pressure that enters level 1.
const BUSY_SHARE: f64 = 0.975;

/// The most that the server itself presses with: one request that takes a second is one peak, and
/// must not count as twenty.
const OWN_PRESSURE_MAX: f64 = 1.0;

/// Workers that have less to do than this are not late for it: others take the machine's time,
/// and to refuse requests would give them no more of it.
const WORKING_SHARE: f64 = 0.7;

/// The longest queue that the rejector is told of, in intervals of full work.
const QUEUE_INTERVALS_MAX: f64 = 2.0;

/// What the server found since it last looked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Of the machine and the process; what the desk knows better is put in here.
    pub(crate) readings: Readings,
    pub(crate) workers: usize,
    /// How long what is readable waits for its worker, on average.
    pub(crate) wait_mean: Duration,
    /// Requests that were read and not begun.
    pub(crate) queued: u64,
    /// Workers that have answered one connection since before the last sample.
    pub(crate) held_up: usize,
}

/// The parts, and what they said last.
#[derive(Debug)]
pub(super) struct Desk {
    machine: LevelMachine,
    thresholds: Thresholds,
    pub(super) signals: Signals,
    rejector_kind: RejectorKind,
    /// Anew for each time that requests are refused.
    rejector: Option<Box<dyn Rejector>>,
    /// When it last looked, and what was counted by then.
    before: (Timestamp, Counts),
    pub(super) pressures: Pressures,
    /// The greatest pressure, and whose it was.
    pub(super) highest: Option<(String, f64)>,
    /// Which share of the requests passes.
    pub(super) admit: f64,
    pub(super) cut: Cut,
}

/// Tenants that a signal of theirs presses on, with the level that this alone asks for.
pub(super) type Pressed = HashMap<Box<[u8]>, Level>;

impl Desk {
    pub(super) fn new(
        thresholds: Thresholds,
        signals: Signals,
        rejector_kind: RejectorKind,
        now: Timestamp,
    ) -> Self {
        Self {
            machine: LevelMachine::new(thresholds),
            thresholds,
            signals,
            rejector_kind,
            rejector: None,
            before: (now, Counts::default()),
            pressures: Pressures::default(),
            highest: None,
            admit: 1.0,
            cut: Cut::NONE,
        }
    }

    pub(super) fn machine(&self) -> &LevelMachine {
        &self.machine
    }

    /// Pins the level, or lets it go.
    pub(super) fn force(&mut self, level: Option<Level>) {
        match level {
            Some(level) => self.machine.force(level),
            None => self.machine.auto(),
        }
        self.settle_cut();
    }

    pub(super) fn report(
        &mut self,
        reported: Reported<'_>,
        now: Timestamp,
    ) -> Result<(), SignalError> {
        self.signals.report(reported, now)
    }

    pub(super) fn standing(&self) -> Standing {
        Standing { level: self.machine.level(), cut: self.cut }
    }

    /// Tenants that are pressed now.
    pub(super) fn pressed(&self, now: Timestamp) -> Pressed {
        let mut pressed = Pressed::new();
        for (tenant, pressure) in self.signals.tenants(now) {
            let level = self.thresholds.entered(pressure);
            if level > Level::Normal {
                let known = pressed.entry(tenant.into()).or_insert(level);
                *known = level.max(*known);
            }
        }
        pressed
    }

    /// Takes a sample: moves the level, and cuts off who is refused.
    pub(super) fn observe(
        &mut self,
        sample: &Sample,
        (counts, offered): (Counts, &Offered),
        now: Timestamp,
    ) {
        let (then, before) = std::mem::replace(&mut self.before, (now, counts));
        let length = now.since(then);
        let busy = match length.as_micros() {
            0 => 0.0,
            length_us => counts.busy_us.saturating_sub(before.busy_us) as f64 / length_us as f64,
        };
        // What is not finished has not been counted yet.
        let busy = (busy + sample.held_up as f64).min(sample.workers as f64);
        let holds_us = self.thresholds.entry(Level::Conserve) * BUSY_SHARE;
        let in_flight = Share::new(busy, sample.workers as f64 / holds_us);
        let readings = Readings { in_flight: Some(in_flight), ..sample.readings };
        self.pressures = readings.pressures();
        let is_working = busy >= sample.workers as f64 * WORKING_SHARE;
        let own = if is_working { self.pressures } else { at_leisure(&readings).pressures() };
        let own = own.highest();
        let own = own.map(|(source, x)| (source.name().to_owned(), x.min(OWN_PRESSURE_MAX)));
        let outer = self.signals.highest(now).map(|(name, x)| (name.to_owned(), x));
        self.highest = match (own, outer) {
            (Some(own), Some(outer)) => Some(if outer.1 > own.1 { outer } else { own }),
            (own, outer) => own.or(outer),
        };
        let level = self.machine.observe(self.highest.as_ref().map_or(0.0, |(_, x)| *x));
        if level.sheds() {
            let interval = interval(sample, (length, busy), (&before, &counts));
            let kind = self.rejector_kind;
            let rejector = self.rejector.get_or_insert_with(|| kind.build());
            self.admit = rejector.observe(&interval).clamp(0.0, 1.0);
            self.cut = offered.cut(1.0 - self.admit);
        }
        self.settle_cut();
        self.signals.sweep(now);
    }

    /// Where nothing is shed, nothing is cut off, and the next time begins afresh.
    fn settle_cut(&mut self) {
        if !self.machine.level().sheds() {
            self.rejector = None;
            self.admit = 1.0;
            self.cut = Cut::NONE;
        }
    }
}

/// Without what says how late the server is.
fn at_leisure(readings: &Readings) -> Readings {
    Readings { loop_lag_p99: None, queue_delay: None, ..*readings }
}

/// What the rejector is told. Places for work are counted in hundredths of a worker, so that a
/// single one may be half busy.
fn interval(
    sample: &Sample,
    (length, busy): (Duration, f64),
    (before, counts): (&Counts, &Counts),
) -> Interval {
    const PLACES: f64 = 100.0;
    let admitted = counts.admitted.saturating_sub(before.admitted);
    let length_us = length.as_micros().max(1) as f64;
    // By Little's law: what came while one waited for as long as they do on average.
    let waiting = admitted as f64 * (sample.wait_mean.as_micros() as f64 / length_us);
    let in_flight_max = sample.workers as f64 * PLACES;
    let in_flight = (busy * PLACES).min(in_flight_max);
    // Clients may have sent far more than will ever be of use to them. To refuse that takes next
    // to no time, so it is no reason to refuse those who could be served.
    let capacity = admitted as f64 * in_flight_max / in_flight.max(1.0);
    let queued = (sample.queued as f64 + waiting).min(capacity * QUEUE_INTERVALS_MAX);
    Interval {
        length,
        offered: counts.offered.saturating_sub(before.offered),
        admitted,
        started: admitted,
        queued: queued as u64,
        in_flight,
        free: (in_flight_max - in_flight) as u64,
        in_flight_max: in_flight_max as u64,
        queue_delay: sample.wait_mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Cohort, Declaration, Kind, Priority, Tier};

    const PERIOD: Duration = Duration::from_millis(500);

    fn desk() -> Desk {
        let mut signals = Signals::new();
        let expiry = Duration::from_secs(5);
        for (name, kind) in [("pool", Kind::Systemic), ("lag", Kind::PerTenant)] {
            let declaration = Declaration { name: name.into(), kind, full: 10.0, expiry };
            signals.declare(declaration).expect("a good one");
        }
        let kind = RejectorKind::FeedForward;
        Desk::new(Thresholds::default(), signals, kind, Timestamp::EPOCH)
    }

    fn report<'a>(name: &'a str, value: f64, tenant: Option<&'a [u8]>) -> Reported<'a> {
        Reported { name: name.as_bytes(), value, tenant, ttl: None }
    }

    /// Half a second after another: all workers busy, and so many requests of each tier.
    struct Day {
        desk: Desk,
        offered: Offered,
        counts: Counts,
        now: Timestamp,
    }

    impl Day {
        fn begin() -> Self {
            let (desk, now) = (desk(), Timestamp::EPOCH);
            Self { desk, offered: Offered::new(), counts: Counts::default(), now }
        }

        /// Offers requests to a worker that can do so many. What it does not come to waits.
        fn pass(&mut self, offered: u64, capacity: u64) {
            let seen = offered.min((capacity as f64 / self.desk.admit) as u64);
            let done = ((seen as f64 * self.desk.admit) as u64).min(capacity);
            let wait = Duration::from_millis(if seen < offered { 400 } else { 5 });
            let busy = done as f64 / capacity as f64;
            self.counts.busy_us += (busy * PERIOD.as_micros() as f64) as u64;
            self.counts.offered += seen;
            self.counts.admitted += done;
            for number in 0..1_000 {
                let tier = Tier::ALL[number % 6];
                self.offered.note(Priority::new(tier, Cohort::of(number as u64)));
            }
            self.now = self.now + PERIOD;
            let queue_delay = Some(Share::new(wait.as_micros() as f64, 100_000.0));
            let sample = Sample {
                readings: Readings { queue_delay, ..Readings::default() },
                workers: 1,
                wait_mean: wait,
                ..Sample::default()
            };
            let counted = (self.counts, &self.offered);
            self.desk.observe(&sample, counted, self.now);
        }
    }

    #[test]
    fn calm_machine_refuses_nobody() {
        let mut day = Day::begin();
        for _ in 0..20 {
            day.pass(100, 1_000);
        }
        assert!(day.desk.standing().is_calm());
    }

    #[test]
    fn overload_is_cut_off_and_the_level_holds_while_it_lasts() {
        let mut day = Day::begin();
        for _ in 0..8 {
            day.pass(10_000, 500);
        }
        assert_eq!(day.desk.standing().level, Level::Emergency);
        for _ in 0..60 {
            // What is refused waits no longer.
            day.pass(10_000, 500);
        }
        assert_eq!(day.desk.standing().level, Level::Approximate);
        assert!((0.04..0.06).contains(&day.desk.admit), "{}", day.desk.admit);
        let cut = day.desk.standing().cut;
        assert!(cut.refuses(Priority::new(Tier::T5, Cohort::of(0)), 0));
        assert!(!cut.refuses(Priority::new(Tier::T0, Cohort::of(0)), 0));
        for _ in 0..60 {
            day.pass(50, 500);
        }
        assert!(day.desk.standing().is_calm());
    }

    #[test]
    fn server_that_hardly_works_is_late_for_other_reasons() {
        let mut desk = desk();
        let late = Readings {
            loop_lag_p99: Some(Duration::from_secs(1)),
            queue_delay: Some(Share::new(9.0, 1.0)),
            ..Readings::default()
        };
        let idle = Sample { readings: late, workers: 2, ..Sample::default() };
        let offered = Offered::new();
        let mut now = Timestamp::EPOCH;
        let mut pass = |sample: &Sample| {
            now = now + PERIOD;
            desk.observe(sample, (Counts::default(), &offered), now);
            desk.standing().level
        };
        assert!((0..20).all(|_| pass(&idle) == Level::Normal));
        // One that is held up is not idle.
        let stuck = Sample { held_up: 2, ..idle };
        assert!((0..20).any(|_| pass(&stuck) == Level::Emergency));
    }

    #[test]
    fn forced_level_stands_and_ends_with_auto() {
        let mut desk = desk();
        desk.force(Some(Level::Emergency));
        let nothing = (Counts::default(), &Offered::new());
        desk.observe(&Sample::default(), nothing, Timestamp::from_millis(500));
        assert_eq!(desk.standing().level, Level::Emergency);
        desk.force(None);
        assert!(desk.standing().is_calm());
    }

    #[test]
    fn signal_presses_until_it_expires() {
        let mut desk = desk();
        let mut now = Timestamp::from_millis(500);
        desk.report(report("pool", 10.0, None), now).expect("it is declared");
        let offered = Offered::new();
        let mut pass = |desk: &mut Desk| {
            now = now + PERIOD;
            desk.observe(&Sample::default(), (Counts::default(), &offered), now);
            desk.standing().level
        };
        let levels: Vec<Level> = (0..4).map(|_| pass(&mut desk)).collect();
        assert_eq!(levels[3], Level::Emergency);
        assert_eq!(desk.highest, Some(("pool".to_owned(), 1.0)));
        assert!((0..60).any(|_| pass(&mut desk) == Level::Normal), "it ends by itself");
    }

    #[test]
    fn tenant_is_pressed_by_its_own_signal_alone() {
        let mut desk = desk();
        let now = Timestamp::from_millis(500);
        desk.report(report("lag", 9.8, Some(b"acme")), now).expect("it is declared");
        desk.report(report("lag", 2.0, Some(b"other")), now).expect("it is declared");
        let pressed = desk.pressed(now);
        assert_eq!(pressed.get(&b"acme"[..]), Some(&Level::Emergency));
        assert_eq!(pressed.len(), 1);
        assert!(desk.pressed(now + Duration::from_secs(5)).is_empty());
        assert!(desk.standing().is_calm());
    }
}
