//! The load manager: one decision for each request, and one look around every half second.
//!
//! [`Manager::admit`] asks in this order, and the first that refuses is the reason: bytes, hot
//! key, tasks, the tenant's scorecard, the tenant's signals, the cut of the shedder (and of full
//! memory), the number of those that wait. Nothing of it depends on what comes later, so a
//! refused request has cost little and holds nothing.
//!
//! [`Manager::tick`] turns readings and signals into the level, and what each lane measured into
//! its cut, its in-flight limit and its longest wait. Calls share one manager by cloning it.
//!
//! Invariant: whatever a request holds is given back exactly once, also when its permit is
//! dropped. Lock order: `control`, then `signals`; a lane's gauge is never held beside another.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::time::{Duration, Timestamp};

use super::cut::Cut;
use super::lane::{Ended, Lane};
use super::level::{Level, LevelMachine};
use super::options::{Options, OptionsError};
use super::permit::{Hold, Permit, Working};
use super::pressure::{Pressures, Readings, Share, Source};
use super::regulator::{Bytes, HotKey, Memory, Tasks};
use super::rejector::Rejector;
use super::request::{Reason, Rejection, Request, Work};
use super::scorecard::{Scorecard, Scored};
use super::signal::{Reported, SignalError, SignalState, Signals};
use super::stats::{LaneStats, Stats, Totals};
use super::tier::Tier;
use super::tuning::{Collector, Tuning};

/// A look sooner than this after the last is no look: it would measure noise.
const TICK_MIN: Duration = Duration::from_millis(50);

/// Lanes, one for each kind of work.
const LANES: usize = Work::ALL.len();

/// See the module. Clones share one load manager.
#[derive(Clone, Debug)]
pub struct Manager(Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    options: Options,
    pub(super) lanes: [Lane; LANES],
    pub(super) totals: Totals,
    pub(super) bytes: Bytes,
    pub(super) scorecard: Scorecard,
    tasks: Tasks,
    hot_key: Option<Mutex<HotKey>>,
    signals: Mutex<Signals>,
    /// Whether any tenant's signal is kept: if not, no request asks for the lock.
    has_tenants: AtomicBool,
    /// The level in force, by number.
    level: AtomicU8,
    /// Whether the cuts are memory's and not the shedder's.
    cut_by_memory: AtomicBool,
    control: Mutex<Control>,
}

/// What only a look around touches.
#[derive(Debug)]
struct Control {
    machine: LevelMachine,
    pressures: Pressures,
    ticked_at: Timestamp,
    lanes: [LaneControl; LANES],
}

#[derive(Debug)]
struct LaneControl {
    rejector: Box<dyn Rejector>,
    tuning: Box<dyn Tuning>,
    collector: Collector,
    admit: f64,
}

impl Manager {
    pub fn new(options: Options, now: Timestamp) -> Result<Self, OptionsError> {
        options.complaint()?;
        let mut signals = Signals::new();
        for declaration in &options.signals {
            signals.declare(declaration.clone())?;
        }
        let lane_control = || LaneControl {
            rejector: options.rejector.build(),
            tuning: options.tuning.build(options.in_flight),
            collector: Collector::new(now),
            admit: 1.0,
        };
        let control = Control {
            machine: LevelMachine::new(options.thresholds),
            pressures: Pressures::default(),
            ticked_at: now,
            lanes: std::array::from_fn(|_| lane_control()),
        };
        Ok(Self(Arc::new(Shared {
            lanes: std::array::from_fn(|_| Lane::new(&options, now)),
            totals: Totals::default(),
            bytes: Bytes::new(options.bytes_max),
            scorecard: Scorecard::new(options.scorecard.clone())?,
            tasks: Tasks::new(options.tasks_max),
            hot_key: options.hot_key.map(|options| Mutex::new(HotKey::new(options, now))),
            signals: Mutex::new(signals),
            has_tenants: AtomicBool::new(false),
            level: AtomicU8::new(Level::Normal.number()),
            cut_by_memory: AtomicBool::new(false),
            control: Mutex::new(control),
            options,
        })))
    }

    /// Judges a request before any work is done for it; `dice` is its own throw of 32 bits. Who
    /// is admitted may go to wait for a place, and holds its share until the permit ends.
    pub fn admit(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        dice: u32,
    ) -> Result<Permit, Rejection> {
        let shared = &self.0;
        shared.totals.offer(request.tier);
        shared.lane(request.work).note_offered(request);
        match shared.judge(request, now, dice) {
            Ok(hold) => Ok(Permit::new(Arc::clone(shared), hold, now, dice)),
            Err(reason) => Err(shared.reject(request.tier, reason, dice)),
        }
    }

    /// Admits and begins at once, for a service in which nothing waits.
    pub fn enter(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        dice: u32,
    ) -> Result<Working, Rejection> {
        self.admit(request, now, dice)?.begin(now)
    }

    /// Looks around: to be called every [`SAMPLE_PERIOD`](super::SAMPLE_PERIOD) with what the
    /// machine shows. What the manager measures itself is added where `readings` does not tell
    /// it. Gives the level in force.
    pub fn tick(&self, readings: &Readings, now: Timestamp) -> Level {
        let shared = &self.0;
        let mut control = shared.control();
        let length = now.since(control.ticked_at);
        if length < TICK_MIN {
            return control.machine.level();
        }
        control.ticked_at = now;
        let ended: [Ended; LANES] =
            std::array::from_fn(|lane| shared.lanes[lane].end_interval(length, now));
        let readings = shared.with_own(readings, &ended);
        let level = shared.move_level(&mut control, &readings, now);
        let memory = Memory::refuse(control.pressures.of(Source::Memory).unwrap_or(0.0));
        shared.move_lanes(&mut control, &ended, (level, memory), now);
        level
    }

    /// Takes the latest value of a declared signal.
    pub fn report(&self, reported: Reported<'_>, now: Timestamp) -> Result<(), SignalError> {
        let mut signals = self.0.signals();
        signals.report(reported, now)?;
        self.0.has_tenants.store(signals.has_tenants(), Ordering::Relaxed);
        Ok(())
    }

    /// Tells how many tasks the runtime has alive.
    pub fn note_tasks(&self, alive: u64) {
        self.0.tasks.note_alive(alive);
    }

    /// Pins the level.
    pub fn force(&self, level: Level) {
        let mut control = self.0.control();
        control.machine.force(level);
        self.0.level.store(level.number(), Ordering::Relaxed);
    }

    /// Leaves the level to pressure again.
    pub fn auto(&self) {
        let mut control = self.0.control();
        control.machine.auto();
        self.0.level.store(control.machine.level().number(), Ordering::Relaxed);
    }

    /// The level in force.
    pub fn level(&self) -> Level {
        // The number was a level's when it was stored.
        Level::of_number(self.0.level.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// What is refused of this kind of work right now.
    pub fn cut(&self, work: Work) -> Cut {
        self.0.lane(work).cut()
    }

    /// How many of this kind of work may be in work at once: how many workers to keep busy.
    pub fn in_flight_max(&self, work: Work) -> u32 {
        self.0.lane(work).in_flight_max()
    }

    /// The longest that a request of this kind may wait: for the queue it waits in.
    pub fn timeout(&self, work: Work) -> Duration {
        self.0.lane(work).timeout()
    }

    /// Calls `show` with every declared signal as it stands.
    pub fn show_signals(&self, now: Timestamp, mut show: impl FnMut(SignalState<'_>)) {
        for state in self.0.signals().states(now) {
            show(state);
        }
    }

    pub fn stats(&self) -> Stats {
        let control = self.0.control();
        let lanes = std::array::from_fn(|number| {
            let lane = &self.0.lanes[number];
            let (waiting, in_flight) = lane.counts();
            LaneStats {
                waiting,
                in_flight,
                in_flight_max: lane.in_flight_max(),
                timeout: lane.timeout(),
                admit: control.lanes[number].admit,
                cut: lane.cut(),
            }
        });
        let mut stats = Stats::of(&self.0.totals, control.machine.level(), lanes);
        stats.forced = control.machine.forced();
        stats.pressure = control.machine.estimate();
        stats.pressures = control.pressures;
        stats
    }
}

impl Shared {
    pub(super) fn lane(&self, work: Work) -> &Lane {
        &self.lanes[work as usize]
    }

    /// Counts a refusal, and spreads when to come back.
    pub(super) fn reject(&self, tier: Tier, reason: Reason, dice: u32) -> Rejection {
        self.totals.refuse(tier, reason);
        let least_us = self.options.retry_min.as_micros();
        let room_us = self.options.retry_max.as_micros().saturating_sub(least_us);
        // The dice have decided already who is refused; turned over they are as good as new.
        let turned = u128::from(dice.wrapping_mul(0x9e37_79b1).rotate_left(16));
        let share_us = (turned * (u128::from(room_us) + 1)) >> 32;
        let retry_after = Duration::from_micros(least_us.saturating_add(share_us as u64));
        Rejection { reason, retry_after }
    }

    fn judge(&self, request: &Request<'_>, now: Timestamp, dice: u32) -> Result<Hold, Reason> {
        let bytes = self.bytes.begin(request.bytes).ok_or(Reason::Bytes)?;
        let mut hold = Hold { bytes, place: None, tier: request.tier, work: request.work };
        match self.judge_held(request, now, dice, &mut hold) {
            Ok(()) => Ok(hold),
            Err(reason) => {
                self.let_go(hold);
                Err(reason)
            }
        }
    }

    fn judge_held(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        dice: u32,
        hold: &mut Hold,
    ) -> Result<(), Reason> {
        if let (Some(key), Some(hot_key)) = (request.key, &self.hot_key)
            && !locked(hot_key).admits(key, now)
        {
            return Err(Reason::HotKey);
        }
        match self.scorecard.begin(request) {
            Scored::Free => {}
            Scored::Counted(place) => hold.place = Some(place),
            Scored::Refused { .. } => return Err(Reason::Scorecard),
        }
        if self.has_tenants.load(Ordering::Relaxed) && self.tenant_refuses(request, now, dice) {
            return Err(Reason::Tenant);
        }
        let lane = self.lane(request.work);
        if lane.cut().refuses(request.priority(), dice) {
            let by_memory = self.cut_by_memory.load(Ordering::Relaxed);
            return Err(if by_memory { Reason::Memory } else { Reason::Shed });
        }
        if !self.tasks.begin() {
            return Err(Reason::Tasks);
        }
        if lane.wait() { Ok(()) } else { Err(Reason::QueueFull) }
    }

    /// A tenant on which a signal presses beyond its limit passes as often as limit / value.
    fn tenant_refuses(&self, request: &Request<'_>, now: Timestamp, dice: u32) -> bool {
        let signals = self.signals();
        let Some((_, pressure)) = signals.highest_of(request.tenant, now) else { return false };
        pressure > 1.0 && f64::from(dice) / 2_f64.powi(32) >= 1.0 / pressure
    }

    /// Gives back what a request held beside its place in the lane.
    pub(super) fn let_go(&self, hold: Hold) {
        self.bytes.end(hold.bytes);
        if let Some(place) = hold.place {
            self.scorecard.end(place);
        }
    }

    /// The readings with what the manager itself measures.
    fn with_own(&self, readings: &Readings, ended: &[Ended; LANES]) -> Readings {
        let fullest = |share: &dyn Fn(&Lane, &Ended) -> Share| {
            let shares = self.lanes.iter().zip(ended).map(|(lane, ended)| share(lane, ended));
            shares
                .max_by(|one, other| (one.used / one.limit).total_cmp(&(other.used / other.limit)))
        };
        let in_flight = fullest(&|_, ended| {
            Share::new(ended.interval.in_flight, ended.interval.in_flight_max as f64)
        });
        let queue_delay = fullest(&|lane, ended| {
            let wait = ended.waits.quantile(0.9).unwrap_or(Duration::ZERO);
            Share::new(wait.as_micros() as f64, lane.timeout().as_micros().max(1) as f64)
        });
        let bytes = (self.bytes.most() != u64::MAX)
            .then(|| Share::new(self.bytes.held() as f64, self.bytes.most() as f64));
        Readings {
            in_flight: readings.in_flight.or(in_flight),
            queue_delay: readings.queue_delay.or(queue_delay),
            bytes: readings.bytes.or(bytes),
            ..*readings
        }
    }

    fn move_level(&self, control: &mut Control, readings: &Readings, now: Timestamp) -> Level {
        control.pressures = readings.pressures();
        let built_in = control.pressures.highest().map_or(0.0, |(_, pressure)| pressure);
        let declared = {
            let mut signals = self.signals();
            signals.sweep(now);
            self.has_tenants.store(signals.has_tenants(), Ordering::Relaxed);
            signals.highest(now).map_or(0.0, |(_, pressure)| pressure)
        };
        let level = control.machine.observe(built_in.max(declared));
        self.level.store(level.number(), Ordering::Relaxed);
        level
    }

    /// New cuts, limits and waits; `memory` is the share that full memory refuses.
    fn move_lanes(
        &self,
        control: &mut Control,
        ended: &[Ended; LANES],
        (level, memory): (Level, f64),
        now: Timestamp,
    ) {
        let mut capacity = 0.0;
        let mut shed_most = 0.0_f64;
        for ((lane, known), ended) in self.lanes.iter().zip(&mut control.lanes).zip(ended) {
            let interval = &ended.interval;
            known.admit = known.rejector.observe(interval);
            let shed = if level >= self.options.shed_from { 1.0 - known.admit } else { 0.0 };
            lane.set_cut(shed.max(memory));
            shed_most = shed_most.max(shed);
            if let Some(p90) = ended.served.quantile(0.9) {
                let longest = self.options.timeout_max;
                lane.set_timeout(p90.clamp(self.options.timeout_min, longest));
            }
            let (area, peak) = (ended.in_flight_us, ended.in_flight_peak);
            if let Some(window) = known.collector.add(&ended.served, area, peak, now) {
                lane.set_in_flight_max(known.tuning.observe(&window));
            }
            let places = interval.in_flight_max as f64;
            let length_s = interval.length.as_micros().max(1) as f64 / 1e6;
            capacity += interval.started as f64 * places / interval.in_flight.max(1.0) / length_s;
        }
        self.cut_by_memory.store(memory > shed_most, Ordering::Relaxed);
        if let Some(hot_key) = &self.hot_key {
            locked(hot_key).note_capacity(capacity);
        }
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        locked(&self.control)
    }

    fn signals(&self) -> MutexGuard<'_, Signals> {
        locked(&self.signals)
    }
}

/// Nothing that is locked here is left half done by a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
