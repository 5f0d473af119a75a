//! What the server gives up under load: the load manager as the commands see it.
//!
//! Twice a second the edge brings what it has measured, and a desk makes of it a level and whom to
//! refuse. Both are published as one word that a worker reads once a batch. While all is calm that
//! word is zero, and nothing else happens: one comparison for a group of requests.
//!
//! Under strain every request has a tier, and with it a priority: that of the rule that applies
//! to it, else its own TIER, its tenant's, its connection's, or `load.default_tier`. RL.CHECK may
//! get a made-up answer, by the `degrade` of its rule or tenant; all other commands that work on
//! keys are exact or answered OVERLOADED. What administers the server, ends what was begun or
//! only asks how it stands is never refused.

mod desk;
mod lane;
mod options;
mod sieve;
mod strain;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::load::{
    Freshness, Kind, Level, Offered, Reported, SignalError, Signals, Source, Thresholds, Tier,
};
use crate::time::{Duration, Timestamp};
use desk::{Desk, Pressed};

pub(crate) use desk::Sample;
pub(crate) use lane::{Counts, Instead, Lane, Reason};
pub(crate) use options::LoadOptions;
pub(super) use sieve::Sieve;
pub(super) use strain::{Asker, Concession, Need, Strain};

/// The load manager of one server.
#[derive(Debug)]
pub(crate) struct Overload {
    /// [`Strain`] as a word; zero while all is calm.
    word: CachePadded<AtomicU64>,
    pressed: ArcSwap<Pressed>,
    desk: Mutex<Desk>,
    /// The priorities that came lately, while requests are shed.
    offered: Offered,
    lanes: Mutex<Vec<Arc<Lane>>>,
    default_tier: Tier,
    retry_after: (Duration, Duration),
}

/// How it stands, for who asks.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) level: Level,
    /// What pressure alone asks for.
    pub(crate) own_level: Level,
    pub(crate) forced: Option<Level>,
    /// Smoothed pressure.
    pub(crate) estimate: f64,
    /// The greatest pressure at the last sample, and whose it was.
    pub(crate) highest: Option<(String, f64)>,
    /// Which share of the requests passes.
    pub(crate) admit: f64,
    /// The tier at which requests are cut off.
    pub(crate) cut_at: Option<Tier>,
    pub(crate) signals: Vec<SignalStatus>,
}

/// One signal, built in or declared.
#[derive(Clone, Debug)]
pub(crate) struct SignalStatus {
    pub(crate) name: String,
    pub(crate) is_built_in: bool,
    pub(crate) kind: Kind,
    /// As it was reported; none of a built-in one.
    pub(crate) value: Option<f64>,
    /// 1.0 at the hard limit; none where nothing is known now.
    pub(crate) pressure: Option<f64>,
    pub(crate) freshness: Freshness,
    /// Tenants whose reports count.
    pub(crate) tenants: usize,
}

impl Overload {
    /// What contradicts itself among the options is refused before ([`LoadOptions`]); here it
    /// would be as if it were not said.
    pub(crate) fn new(options: &LoadOptions, now: Timestamp) -> Self {
        let thresholds = options.thresholds();
        debug_assert!(thresholds.is_ok(), "proven with the other relations: {thresholds:?}");
        let signals = options.declared();
        debug_assert!(signals.is_ok(), "proven with the other relations: {signals:?}");
        let (thresholds, signals): (Thresholds, Signals) =
            (thresholds.unwrap_or_default(), signals.unwrap_or_default());
        Self {
            word: CachePadded::default(),
            pressed: ArcSwap::default(),
            desk: Mutex::new(Desk::new(thresholds, signals, options.rejector.0, now)),
            offered: Offered::new(),
            lanes: Mutex::default(),
            default_tier: options.default_tier.0,
            retry_after: (options.retry_after_min, options.retry_after_max),
        }
    }

    /// What holds for a batch.
    #[inline]
    pub(super) fn strain(&self) -> Strain {
        Strain::of_word(self.word.load(Ordering::Relaxed))
    }

    /// Where one thread counts, and throws its dice.
    pub(super) fn new_lane(&self) -> Arc<Lane> {
        let mut lanes = self.lanes.lock();
        let lane = Arc::new(Lane::new(lanes.len() as u64 + 1));
        lanes.push(Arc::clone(&lane));
        lane
    }

    /// What all threads have counted.
    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.lanes.lock().iter().for_each(|lane| lane.add_to(&mut sum));
        sum
    }

    /// Takes what the edge has measured since the last time. Returns the level before and after.
    pub(crate) fn observe(&self, sample: &Sample, now: Timestamp) -> (Level, Level) {
        let counts = self.counts();
        let mut desk = self.desk.lock();
        let before = desk.standing().level;
        desk.observe(sample, (counts, &self.offered), now);
        self.publish(&desk, now);
        (before, desk.standing().level)
    }

    /// Pins the level, or lets pressure move it again.
    pub(super) fn force(&self, level: Option<Level>, now: Timestamp) {
        let mut desk = self.desk.lock();
        desk.force(level);
        self.publish(&desk, now);
    }

    /// Takes the value of a declared signal.
    pub(super) fn report(&self, reported: Reported<'_>, now: Timestamp) -> Result<(), SignalError> {
        let mut desk = self.desk.lock();
        desk.report(reported, now)?;
        self.publish(&desk, now);
        Ok(())
    }

    /// Now and then: what was reported of tenants may have ended.
    pub(super) fn upkeep(&self, now: Timestamp) {
        self.publish(&self.desk.lock(), now);
    }

    pub(crate) fn level(&self) -> Level {
        self.strain().standing().level
    }

    pub(crate) fn status(&self, now: Timestamp) -> Status {
        let desk = self.desk.lock();
        let machine = desk.machine();
        let built_in = Source::ALL.map(|source| {
            let pressure = desk.pressures.of(source);
            SignalStatus {
                name: source.name().to_owned(),
                is_built_in: true,
                kind: Kind::Systemic,
                value: None,
                pressure,
                freshness: if pressure.is_some() { Freshness::Fresh } else { Freshness::Silent },
                tenants: 0,
            }
        });
        let declared = desk.signals.states(now).map(|state| SignalStatus {
            name: state.declaration.name.clone(),
            is_built_in: false,
            kind: state.declaration.kind,
            value: state.value,
            pressure: state.pressure,
            freshness: state.freshness,
            tenants: state.tenants,
        });
        Status {
            level: machine.level(),
            own_level: machine.own_level(),
            forced: machine.forced(),
            estimate: machine.estimate(),
            highest: desk.highest.clone(),
            admit: desk.admit,
            cut_at: desk.cut.at().map(|number| {
                Tier::ALL[usize::from(number / crate::load::COHORTS).min(Tier::ALL.len() - 1)]
            }),
            signals: built_in.into_iter().chain(declared).collect(),
        }
    }

    /// Makes what the desk says hold, from the next batch of each worker on.
    fn publish(&self, desk: &Desk, now: Timestamp) {
        let pressed = desk.pressed(now);
        let is_any_pressed = !pressed.is_empty();
        // Only a change is worth the allocation.
        if is_any_pressed || !self.pressed.load().is_empty() {
            self.pressed.store(Arc::new(pressed));
        }
        let word = Strain::new(desk.standing(), is_any_pressed).word();
        self.word.store(word, Ordering::Relaxed);
    }

    /// The level that a tenant's own signals ask for.
    fn level_of(&self, tenant: &[u8]) -> Level {
        self.pressed.load().get(tenant).copied().unwrap_or_default()
    }

    /// A moment to come back, spread so that those refused together do not return together.
    fn retry_after_ms(&self, lane: &Lane) -> u64 {
        let (min, max) = (self.retry_after.0.as_millis(), self.retry_after.1.as_millis());
        let span = u64::from(lane.throw()) * (max.saturating_sub(min) + 1);
        (min + (span >> 32)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overload() -> Overload {
        Overload::new(&LoadOptions::off(), Timestamp::EPOCH)
    }

    #[test]
    fn word_is_zero_until_something_is_given_up_and_again_after() {
        let overload = overload();
        assert!(overload.strain().is_calm());
        overload.force(Some(Level::Conserve), Timestamp::EPOCH);
        assert_eq!(overload.strain().standing().level, Level::Conserve);
        overload.force(None, Timestamp::EPOCH);
        assert!(overload.strain().is_calm());
    }

    #[test]
    fn pressed_tenant_is_known_by_a_bit_and_its_name() {
        let overload = overload();
        let lag = |value| Reported { name: b"lag", value, tenant: Some(b"acme"), ttl: None };
        overload.report(lag(11.0), Timestamp::EPOCH).expect("it is declared");
        let strain = overload.strain();
        assert!(strain.has_pressed_tenants() && strain.standing().is_calm());
        assert_eq!(overload.level_of(b"acme"), Level::Emergency);
        assert_eq!(overload.level_of(b"other"), Level::Normal);
        overload.report(lag(1.0), Timestamp::EPOCH).expect("it is declared");
        assert!(overload.strain().is_calm());
    }

    #[test]
    fn hints_are_spread_over_their_span() {
        let (overload, lane) = (overload(), Lane::new(3));
        let hints: Vec<u64> = (0..2_000).map(|_| overload.retry_after_ms(&lane)).collect();
        assert!(hints.iter().all(|hint| (500..=1_500).contains(hint)));
        let early = hints.iter().filter(|hint| **hint < 750).count();
        assert!((400..600).contains(&early), "{early}");
    }
}
