//! How much is given up: four levels, and the machine that moves between them.
//!
//! Pressure jumps about, so it is smoothed first: `e += w * (x - e)`, with `w` 0.5 upwards and
//! 0.2 downwards, so that trouble is believed sooner than its end. A level is entered when `e`
//! has stood at its entry for a few samples, the higher the level the fewer; it is left one level
//! at a time, each after ten samples below its exit. Entry and exit lie apart, so a load that
//! swings between the two changes nothing.
//!
//! Invariants: it rises only after two samples have come; it never falls by more than one level,
//! nor sooner than `down` samples after it last moved. Samples come every [`SAMPLE_PERIOD`].

use crate::time::Duration;

use super::tier::Tier;

/// How often pressure is meant to be looked at: the counts of samples are made for it.
pub const SAMPLE_PERIOD: Duration = Duration::from_millis(500);

/// Samples that only set the estimate: one peak at the start says nothing.
const WARM_UP: u8 = 2;

/// What is above this counts as this: an absurd sample must not be remembered for minutes.
const PRESSURE_MAX: f64 = 2.0;

/// More samples than an hour of them is a mistake.
const SAMPLES_MAX: u32 = 7_200;

/// How much is given up.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Level {
    /// Nothing: exact everywhere.
    #[default]
    Normal,
    /// Samples of logs and traces, figures by key, refreshing ahead; the shedder is active.
    Conserve,
    /// For tiers t2 to t5 exactness of new keys, never the limit; t5 and t4 are shed first.
    Approximate,
    /// Tiers t2 to t5 are answered without touching state; t0 and t1 stay exact.
    Emergency,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::Normal, Self::Conserve, Self::Approximate, Self::Emergency];

    /// 0 to 3.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The level of a number from 0 to 3.
    pub const fn of_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Normal),
            1 => Some(Self::Conserve),
            2 => Some(Self::Approximate),
            3 => Some(Self::Emergency),
            _ => None,
        }
    }

    /// `normal`, `conserve`, `approximate` or `emergency`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Conserve => "conserve",
            Self::Approximate => "approximate",
            Self::Emergency => "emergency",
        }
    }

    /// Whether what only tells (logs, traces, figures by key) is sampled at one in a hundred.
    pub const fn samples(self) -> bool {
        self.number() >= Self::Conserve.number()
    }

    /// Whether requests may be shed.
    pub const fn sheds(self) -> bool {
        self.number() >= Self::Conserve.number()
    }

    /// Whether new keys of the tier are counted by a cheaper algorithm that is never over the
    /// limit.
    pub const fn approximates(self, tier: Tier) -> bool {
        self.number() >= Self::Approximate.number() && tier.number() >= Tier::T2.number()
    }

    /// Whether requests of the tier are answered without looking at what was spent.
    pub const fn makes_up_answers(self, tier: Tier) -> bool {
        self.number() >= Self::Emergency.number() && tier.number() >= Tier::T2.number()
    }
}

/// When a level is entered and left. Each list goes from level 1 to level 3.
///
/// Invariants: entries rise and are at most 2; exits rise, are above 0, and each lies below its
/// entry; counts are at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    enter: [f64; 3],
    exit: [f64; 3],
    up: [u32; 3],
    down: u32,
}

/// Why thresholds are none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ThresholdsError {
    #[error("entry {0} is no number above 0 and at most {PRESSURE_MAX}")]
    Entry(f64),
    #[error("exit {0} is no number above 0")]
    Exit(f64),
    #[error("entries must rise from level to level, and exits as well")]
    Order,
    #[error("exit {exit} of level {level} must be below its entry {enter}")]
    NoGap { level: u8, enter: f64, exit: f64 },
    #[error("{0} is no number of samples from 1 to {SAMPLES_MAX}")]
    Samples(u32),
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { enter: [0.80, 0.90, 0.97], exit: [0.65, 0.75, 0.85], up: [3, 2, 1], down: 10 }
    }
}

impl Thresholds {
    /// `enter` and `exit` are pressures, 1.0 the hard limit; `up` and `down` count samples.
    pub fn new(
        enter: [f64; 3],
        exit: [f64; 3],
        up: [u32; 3],
        down: u32,
    ) -> Result<Self, ThresholdsError> {
        let is_entry = |value: f64| value > 0.0 && value <= PRESSURE_MAX;
        if let Some(wrong) = enter.into_iter().find(|value| !is_entry(*value)) {
            return Err(ThresholdsError::Entry(wrong));
        }
        if let Some(wrong) = exit.into_iter().find(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(ThresholdsError::Exit(wrong));
        }
        let rises = |list: [f64; 3]| list[0] < list[1] && list[1] < list[2];
        if !rises(enter) || !rises(exit) {
            return Err(ThresholdsError::Order);
        }
        for (level, (enter, exit)) in (1..).zip(enter.into_iter().zip(exit)) {
            if exit >= enter {
                return Err(ThresholdsError::NoGap { level, enter, exit });
            }
        }
        let counts = up.into_iter().chain([down]);
        match counts.into_iter().find(|count| !(1..=SAMPLES_MAX).contains(count)) {
            Some(wrong) => Err(ThresholdsError::Samples(wrong)),
            None => Ok(Self { enter, exit, up, down }),
        }
    }
}

impl Thresholds {
    /// The pressure at which a level is entered; that of level 0 is 0.
    pub const fn entry(&self, level: Level) -> f64 {
        match level {
            Level::Normal => 0.0,
            Level::Conserve => self.enter[0],
            Level::Approximate => self.enter[1],
            Level::Emergency => self.enter[2],
        }
    }

    /// The highest level whose entry a pressure reaches.
    pub fn entered(&self, pressure: f64) -> Level {
        Level::ALL[self.enter.iter().filter(|enter| pressure >= **enter).count()]
    }
}

/// The machine: a pressure in, a level out.
#[derive(Clone, Debug, Default)]
pub struct LevelMachine {
    thresholds: Thresholds,
    /// Smoothed pressure; none before the first sample.
    estimate: Option<f64>,
    warmed_up: u8,
    level: Level,
    samples_above: u32,
    samples_below: u32,
    forced: Option<Level>,
}

impl LevelMachine {
    pub fn new(thresholds: Thresholds) -> Self {
        Self { thresholds, ..Self::default() }
    }

    /// The level in force.
    pub fn level(&self) -> Level {
        self.forced.unwrap_or(self.level)
    }

    /// The level that pressure asks for, whatever is forced.
    pub fn own_level(&self) -> Level {
        self.level
    }

    /// The level that somebody has pinned.
    pub fn forced(&self) -> Option<Level> {
        self.forced
    }

    /// Smoothed pressure; 0 before the first sample.
    pub fn estimate(&self) -> f64 {
        self.estimate.unwrap_or(0.0)
    }

    /// Pins the level; what pressure asks for is still followed beneath.
    pub fn force(&mut self, level: Level) {
        self.forced = Some(level);
    }

    /// Back to what pressure asks for.
    pub fn auto(&mut self) {
        self.forced = None;
    }

    /// Takes one sample of pressure and tells the level in force. What is no number counts as
    /// the estimate so far: it says nothing, and changes nothing.
    pub fn observe(&mut self, pressure: f64) -> Level {
        let before = self.estimate.unwrap_or(0.0);
        let sample = if pressure.is_nan() { before } else { pressure.clamp(0.0, PRESSURE_MAX) };
        let estimate = self.estimate.map_or(sample, |estimate| smoothed(estimate, sample));
        self.estimate = Some(estimate);
        if self.warmed_up < WARM_UP {
            self.warmed_up += 1;
        } else {
            self.step(estimate);
        }
        self.level()
    }

    fn step(&mut self, estimate: f64) {
        let target = self.thresholds.entered(estimate);
        let own = usize::from(self.level.number());
        if target > self.level {
            self.samples_above += 1;
            self.samples_below = 0;
            if self.samples_above >= self.thresholds.up[usize::from(target.number()) - 1] {
                self.level = target;
                self.samples_above = 0;
            }
        } else if own > 0 && estimate < self.thresholds.exit[own - 1] {
            self.samples_below += 1;
            self.samples_above = 0;
            if self.samples_below >= self.thresholds.down {
                self.level = Level::ALL[own - 1];
                self.samples_below = 0;
            }
        } else {
            self.samples_above = 0;
            self.samples_below = 0;
        }
    }
}

fn smoothed(estimate: f64, sample: f64) -> f64 {
    let weight = if sample > estimate { 0.5 } else { 0.2 };
    estimate + weight * (sample - estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels after each sample of a list of (pressure, how often).
    fn levels(samples: &[(f64, usize)]) -> Vec<u8> {
        let mut machine = LevelMachine::default();
        let each = samples.iter().flat_map(|(pressure, times)| vec![*pressure; *times]);
        each.map(|pressure| machine.observe(pressure).number()).collect()
    }

    fn runs(runs: &[(u8, usize)]) -> Vec<u8> {
        runs.iter().flat_map(|(level, times)| vec![*level; *times]).collect()
    }

    #[test]
    fn level_machine_answers_its_vectors() {
        assert_eq!(
            levels(&[(0.5, 4), (0.95, 8), (0.70, 20), (0.5, 20)]),
            runs(&[(0, 7), (2, 21), (1, 14), (0, 10)])
        );
        assert_eq!(levels(&[(0.70, 1), (0.82, 1)].repeat(40)), runs(&[(0, 80)]));
        assert_eq!(levels(&[(0.99, 6)]), [0, 0, 3, 3, 3, 3]);
        assert_eq!(levels(&[(0.5, 10), (1.0, 1), (0.5, 30)]), runs(&[(0, 41)]));
        assert_eq!(levels(&[(0.95, 4), (0.60, 4)].repeat(6)), runs(&[(0, 3), (2, 45)]));
    }

    #[test]
    fn level_falls_one_at_a_time_at_least_ten_samples_apart() {
        // I22, for the worst there is: everything, and then nothing at all.
        let levels = levels(&[(1.0, 10), (0.0, 100)]);
        let mut last_change = 0;
        for (at, pair) in levels.windows(2).enumerate() {
            if pair[1] < pair[0] {
                assert_eq!(pair[0] - pair[1], 1, "at sample {at}");
                assert!(at - last_change >= 10, "at sample {at}, after {last_change}");
                last_change = at;
            }
        }
        assert_eq!((levels[10], levels[109]), (3, 0));
    }

    #[test]
    fn absurd_samples_are_forgotten_and_what_is_no_number_changes_nothing() {
        let mut machine = LevelMachine::default();
        for pressure in [f64::NAN, f64::INFINITY, 1e300, f64::NAN] {
            machine.observe(pressure);
        }
        assert_eq!(machine.level(), Level::Emergency);
        for _ in 0..60 {
            machine.observe(0.1);
        }
        assert_eq!(machine.level(), Level::Normal);
        assert!(machine.estimate() < 0.2);
    }

    #[test]
    fn forced_level_holds_until_it_is_left_to_pressure() {
        let mut machine = LevelMachine::default();
        machine.force(Level::Approximate);
        for _ in 0..20 {
            assert_eq!(machine.observe(0.1), Level::Approximate);
        }
        assert_eq!((machine.own_level(), machine.forced()), (Level::Normal, Some(Level::ALL[2])));
        machine.auto();
        assert_eq!(machine.level(), Level::Normal);
    }

    #[test]
    fn thresholds_that_would_flap_are_refused() {
        let new = Thresholds::new;
        let good = ([0.8, 0.9, 0.97], [0.65, 0.75, 0.85]);
        assert_eq!(new(good.0, good.1, [3, 2, 1], 10), Ok(Thresholds::default()));
        let gap = ThresholdsError::NoGap { level: 2, enter: 0.9, exit: 0.9 };
        assert_eq!(new(good.0, [0.65, 0.9, 0.95], [3, 2, 1], 10), Err(gap));
        assert_eq!(new([0.9, 0.8, 1.0], good.1, [3, 2, 1], 10), Err(ThresholdsError::Order));
        assert_eq!(new(good.0, [0.0, 0.5, 0.6], [1; 3], 10), Err(ThresholdsError::Exit(0.0)));
        assert!(matches!(new([f64::NAN; 3], good.1, [1; 3], 1), Err(ThresholdsError::Entry(_))));
        assert_eq!(new(good.0, good.1, [3, 0, 1], 10), Err(ThresholdsError::Samples(0)));
    }

    #[test]
    fn important_tiers_are_never_answered_by_guess() {
        for level in Level::ALL {
            assert_eq!(Level::of_number(level.number()), Some(level));
            for tier in [Tier::T0, Tier::T1] {
                assert!(!level.approximates(tier) && !level.makes_up_answers(tier));
            }
        }
        assert_eq!(Level::of_number(4), None);
        assert!(Level::Emergency.makes_up_answers(Tier::T2) && !Level::Normal.sheds());
        assert!(Level::Approximate.approximates(Tier::T5) && Level::Conserve.samples());
    }
}
