//! The simulated service, event by event: a request comes, work ends, the manager looks around.
//!
//! Moments are whole microseconds; only arrivals keep their fractions, for at thirty times the
//! capacity rounding them would change the load.

use std::collections::{BTreeMap, VecDeque};

use crate::load::{
    Cohort, Discipline, Full, Latencies, Level, LimitRange, Manager, Options, Outcome, Permit,
    Popped, Priority, Queue, Readings, Reason, RejectorKind, Request, SAMPLE_PERIOD, Tier,
    TuningKind, Work, Working, tier::mixed,
};
use crate::time::{Duration, Timestamp};

use super::{CAPACITY_PER_S, MIX, Measured, PATIENCE, PLACES, Phase, SERVICE_MEAN, Shield};

/// Requests that may wait.
const WAITING_MAX: u64 = 10_000;

/// For queues whose timeout is not the shield.
const FOREVER: Duration = Duration::from_secs(3_600);

const START: Timestamp = Timestamp::from_millis(1_000_000_000_000);

/// Numbers that look random, from a seed.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A span of an exponential distribution, in microseconds.
    fn span_us(&mut self, mean_us: f64) -> f64 {
        let unit = ((self.roll() >> 11) as f64 + 1.0) / 2_f64.powi(53);
        -unit.ln() * mean_us
    }

    fn tier(&mut self) -> Tier {
        let mut rest = (self.roll() % 1_000) as u32;
        for (tier, share) in Tier::ALL.into_iter().zip(MIX) {
            if rest < share {
                return tier;
            }
            rest -= share;
        }
        Tier::T5
    }
}

/// A request that was admitted.
#[derive(Debug)]
struct Admitted<T> {
    held: T,
    tier: Tier,
    came_at: Timestamp,
}

/// See the module.
#[derive(Debug)]
pub(super) struct World {
    shield: Shield,
    manager: Manager,
    dice: Dice,
    now: Timestamp,
    ticks_at: Timestamp,
    /// Where requests wait that the manager lets begin when a place is free.
    queue: Queue<Admitted<Permit>>,
    /// Where those wait that have begun, for a service without a queue: for its own places.
    inside: VecDeque<Admitted<Working>>,
    /// What is in a place, by the moment that it ends.
    running: BTreeMap<(Timestamp, u64), Working>,
    begun: u64,
    /// Of the phase.
    measures_from: Timestamp,
    phase_began: Timestamp,
    measured: Measured,
    useful_us: u64,
    waits: Latencies,
    /// Since the manager last looked: the most important that was shed, the least that was not.
    shed_least: Option<Priority>,
    passed_most: Option<Priority>,
}

fn options(shield: Shield) -> Options {
    let (rejector, tuning) = match shield {
        Shield::FeedForward => (RejectorKind::FeedForward, TuningKind::Fixed),
        Shield::Pid => (RejectorKind::Pid, TuningKind::Fixed),
        Shield::Dagor => (RejectorKind::Dagor, TuningKind::Fixed),
        Shield::Tuner => (RejectorKind::Off, TuningKind::Tuner),
        Shield::Gradient2 => (RejectorKind::Off, TuningKind::Gradient2),
        Shield::Codel | Shield::Off => (RejectorKind::Off, TuningKind::Fixed),
    };
    let in_flight = match tuning {
        TuningKind::Fixed => LimitRange::fixed(PLACES),
        TuningKind::Tuner | TuningKind::Gradient2 => LimitRange::default(),
    };
    let timeout = match shield {
        Shield::FeedForward | Shield::Pid | Shield::Dagor => PATIENCE,
        Shield::Codel | Shield::Tuner | Shield::Gradient2 | Shield::Off => FOREVER,
    };
    Options {
        shed_from: Level::Normal,
        rejector,
        tuning,
        in_flight,
        waiting_max: WAITING_MAX,
        timeout_min: timeout,
        timeout_max: timeout,
        ..Options::default()
    }
}

impl World {
    pub(super) fn new(shield: Shield, seed: u64) -> Self {
        let options = options(shield);
        let discipline = match shield {
            Shield::Codel => Discipline::Codel,
            Shield::FeedForward
            | Shield::Pid
            | Shield::Dagor
            | Shield::Tuner
            | Shield::Gradient2
            | Shield::Off => Discipline::Fifo,
        };
        let queue = Queue::new(discipline, WAITING_MAX as usize, options.timeout_max, START);
        let manager = Manager::new(options, START).expect("the options are made here");
        Self {
            shield,
            manager,
            dice: Dice(mixed(seed)),
            now: START,
            ticks_at: START + SAMPLE_PERIOD,
            queue,
            inside: VecDeque::new(),
            running: BTreeMap::new(),
            begun: 0,
            measures_from: START,
            phase_began: START,
            measured: Measured::default(),
            useful_us: 0,
            waits: Latencies::new(),
            shed_least: None,
            passed_most: None,
        }
    }

    pub(super) fn run(&mut self, phase: Phase) -> Measured {
        self.phase_began = self.now;
        self.measures_from = self.now + phase.settle;
        let ends_at = self.now + phase.length;
        let gap_us = 1e6 / (phase.load.max(1e-6) * CAPACITY_PER_S);
        let mut arrival_us = self.now.as_micros() as f64 + self.dice.span_us(gap_us);
        loop {
            let arrival = Timestamp::from_micros(arrival_us as u64);
            let finish = self.running.first_key_value().map_or(Timestamp::MAX, |(key, _)| key.0);
            self.now = arrival.min(finish).min(self.ticks_at).min(ends_at);
            if self.now == ends_at {
                break;
            } else if self.now == finish {
                self.finish();
            } else if self.now == self.ticks_at {
                self.tick();
            } else {
                self.arrive();
                arrival_us += self.dice.span_us(gap_us);
            }
            self.begin();
        }
        let length_us = ends_at.since(self.measures_from).as_micros().max(1);
        let mut measured = std::mem::take(&mut self.measured);
        let places_us = length_us as f64 * f64::from(PLACES);
        measured.utilisation = std::mem::take(&mut self.useful_us) as f64 / places_us;
        measured.waits = self.waits.take();
        measured
    }

    fn arrive(&mut self) {
        let tier = self.dice.tier();
        let cohort = Cohort::of_user(self.dice.roll() % 10_000, self.now);
        let request = Request::new(tier).cohort(cohort);
        let dice = self.dice.roll() as u32;
        self.count(|measured| &mut measured.offered, tier);
        let (now, came_at) = (self.now, self.now);
        let refused = match self.shield {
            Shield::Tuner | Shield::Gradient2 => {
                let entered = self.manager.enter(&request, now, dice);
                entered.map(|held| self.inside.push_back(Admitted { held, tier, came_at }))
            }
            Shield::FeedForward | Shield::Pid | Shield::Dagor | Shield::Codel | Shield::Off => {
                let admitted = self.manager.admit(&request, now, dice);
                admitted.map(|held| self.wait(Admitted { held, tier, came_at }, request.priority()))
            }
        };
        let least = &mut self.passed_most;
        match refused {
            Ok(()) => *least = (*least).max(Some(request.priority())),
            Err(rejection) => {
                if rejection.reason == Reason::Shed {
                    let most = self.shed_least.unwrap_or(request.priority());
                    self.shed_least = Some(most.min(request.priority()));
                }
                self.refuse(tier);
            }
        }
    }

    fn wait(&mut self, admitted: Admitted<Permit>, priority: Priority) {
        match self.queue.push(admitted, priority, self.now) {
            Ok(()) => {}
            Err(Full::Newcomer(other) | Full::Displaced(other)) => {
                other.held.reject(Reason::QueueFull);
                self.refuse(other.tier);
            }
        }
    }

    /// Work begins wherever there is a place and somebody waits.
    fn begin(&mut self) {
        while self.running.len() < PLACES as usize {
            if let Some(inside) = self.inside.pop_front() {
                self.work(inside.held, inside.tier, inside.came_at);
                continue;
            }
            match self.queue.pop(self.now) {
                None => break,
                Some(Popped::Expired(gone)) => {
                    gone.held.reject(Reason::QueueTimeout);
                    self.late(gone.tier);
                }
                Some(Popped::Ready(ready, _)) => match ready.held.begin(self.now) {
                    Ok(working) => self.work(working, ready.tier, ready.came_at),
                    Err(_) => self.late(ready.tier),
                },
            }
        }
    }

    fn work(&mut self, working: Working, tier: Tier, came_at: Timestamp) {
        let mean_us = SERVICE_MEAN.as_micros() as f64;
        let span = Duration::from_micros(self.dice.span_us(mean_us) as u64);
        let waited = self.now.since(came_at);
        if waited > PATIENCE {
            self.late(tier);
        } else {
            self.count(|measured| &mut measured.served, tier);
            if self.is_measured() {
                self.useful_us += span.as_micros();
            }
        }
        if self.is_measured() {
            self.waits.note(waited);
        }
        self.begun += 1;
        self.running.insert((self.now + span, self.begun), working);
    }

    fn finish(&mut self) {
        if let Some((_, working)) = self.running.pop_first() {
            working.done(self.now, Outcome::Served);
        }
    }

    fn tick(&mut self) {
        self.manager.tick(&Readings::default(), self.now);
        self.queue.change_timeout(self.manager.timeout(Work::Read));
        let (shed, passed) = (self.shed_least.take(), self.passed_most.take());
        let is_inverted = shed.zip(passed).is_some_and(|(shed, passed)| passed > shed);
        if is_inverted && self.is_measured() {
            self.measured.inversions += 1;
        }
        self.ticks_at = self.now + SAMPLE_PERIOD;
    }

    fn refuse(&mut self, tier: Tier) {
        self.count(|measured| &mut measured.refused, tier);
        self.note_refusal();
    }

    fn late(&mut self, tier: Tier) {
        self.count(|measured| &mut measured.late, tier);
        self.note_refusal();
    }

    fn note_refusal(&mut self) {
        if self.is_measured() {
            self.measured.last_refusal = Some(self.now.since(self.phase_began));
        }
    }

    fn count(&mut self, of: impl Fn(&mut Measured) -> &mut [u64; Tier::ALL.len()], tier: Tier) {
        if self.is_measured() {
            of(&mut self.measured)[usize::from(tier.number())] += 1;
        }
    }

    fn is_measured(&self) -> bool {
        self.now >= self.measures_from
    }
}
