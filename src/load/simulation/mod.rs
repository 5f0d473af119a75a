//! What each way of protecting a service does under load: the real code, simulated time.
//!
//! One service with [`PLACES`] places, each request in work for 10 ms on average (exponential),
//! so 1,600 requests a second; arrivals come by chance (Poisson) with a mix of tiers, and a
//! caller waits [`PATIENCE`] and no longer. Time is told, dice come from a seed: the same setup
//! gives the same figures, on any machine.
//!
//! Utilisation counts work that somebody still waited for. It is a toy of a service: it says how
//! the controllers compare, and nothing about any service in particular.

mod world;

use crate::time::Duration;

use super::latencies::Spread;
use super::tier::Tier;
use world::World;

/// Requests that the service works on at once.
pub const PLACES: u32 = 16;

/// How long one request is in work, on average.
pub const SERVICE_MEAN: Duration = Duration::from_millis(10);

/// How long a caller waits for the work to begin.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Requests that the service can do in a second.
pub const CAPACITY_PER_S: f64 = PLACES as f64 * 1e6 / SERVICE_MEAN.as_micros() as f64;

/// Of a thousand requests, how many are of each tier.
pub const MIX: [u32; Tier::ALL.len()] = [50, 400, 200, 150, 100, 100];

/// More load than this would be simulated for minutes.
pub const LOAD_MAX: f64 = 100.0;

/// How the service is protected.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Shield {
    /// The shedder by default.
    FeedForward,
    /// The shedder with a control loop.
    Pid,
    /// The shedder that steps.
    Dagor,
    /// No shedder; a queue with controlled delay and adaptive LIFO.
    Codel,
    /// No queue; an in-flight limit found by the auto tuner.
    Tuner,
    /// No queue; an in-flight limit found by the gradient of latency.
    Gradient2,
    /// A queue of ten thousand, and nothing else.
    Off,
}

impl Shield {
    pub const ALL: [Self; 7] = [
        Self::FeedForward,
        Self::Pid,
        Self::Dagor,
        Self::Codel,
        Self::Tuner,
        Self::Gradient2,
        Self::Off,
    ];

    /// `feed_forward`, `pid`, `dagor`, `codel`, `tuner`, `gradient2` or `off`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FeedForward => "feed_forward",
            Self::Pid => "pid",
            Self::Dagor => "dagor",
            Self::Codel => "codel",
            Self::Tuner => "tuner",
            Self::Gradient2 => "gradient2",
            Self::Off => "off",
        }
    }

    /// Reads a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shield| shield.name() == word)
    }
}

/// A stretch of even load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// What is offered, in capacities; at most [`LOAD_MAX`].
    pub load: f64,
    pub length: Duration,
    /// What comes within this of its begin is not measured: the controllers settle.
    pub settle: Duration,
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    pub shield: Shield,
    pub phases: Vec<Phase>,
    pub seed: u64,
}

/// What was seen of one phase, after it had settled.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Requests that came, by tier.
    pub offered: [u64; Tier::ALL.len()],
    /// Of these, refused at once, by tier.
    pub refused: [u64; Tier::ALL.len()],
    /// Of these, given up by their caller while they waited, by tier.
    pub late: [u64; Tier::ALL.len()],
    /// Requests whose work began in time, by tier.
    pub served: [u64; Tier::ALL.len()],
    /// The share of the places' time that went into work which somebody waited for.
    pub utilisation: f64,
    /// Waits of the requests whose work began.
    pub waits: Spread,
    /// When the last request was refused or late, from the begin of the phase.
    pub last_refusal: Option<Duration>,
    /// Looks of the manager between which a request was shed while a less important one was
    /// not.
    pub inversions: u64,
}

impl Measured {
    /// Requests late for each that was served.
    pub fn late_per_served(&self) -> f64 {
        ratio(self.late.iter().sum(), self.served.iter().sum())
    }

    /// The share of the requests that was refused at once.
    pub fn refused_share(&self) -> f64 {
        ratio(self.refused.iter().sum(), self.offered.iter().sum())
    }

    /// The share of a tier's requests that was served.
    pub fn served_share(&self, tier: Tier) -> f64 {
        let tier = usize::from(tier.number());
        ratio(self.served[tier], self.offered[tier])
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Runs the phases one after the other.
pub fn simulate(setup: &Setup) -> Vec<Measured> {
    let mut world = World::new(setup.shield, setup.seed);
    setup.phases.iter().map(|phase| world.run(*phase)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(shield: Shield, load: f64, seconds: u64) -> Measured {
        let phase = Phase {
            load,
            length: Duration::from_secs(seconds),
            settle: Duration::from_millis(1_500),
        };
        simulate(&Setup { shield, phases: vec![phase], seed: 1 }).remove(0)
    }

    #[test]
    fn shedder_keeps_the_service_busy_at_any_overload() {
        // I21: utilisation of at least .95, at most one in a hundred late.
        for load in [1.2, 2.0, 5.0, 10.0, 30.0] {
            let measured = steady(Shield::FeedForward, load, 30);
            assert!(measured.utilisation >= 0.95, "{load}: {}", measured.utilisation);
            assert!(measured.late_per_served() <= 0.01, "{load}: {}", measured.late_per_served());
            assert_eq!(measured.inversions, 0, "{load}");
        }
    }

    #[test]
    fn nothing_is_refused_while_there_is_room() {
        // I21: at .9 of the capacity and below.
        for load in [0.5, 0.8, 0.9] {
            let measured = steady(Shield::FeedForward, load, 30);
            assert_eq!(measured.refused.iter().sum::<u64>(), 0, "{load}");
        }
    }

    #[test]
    fn every_shield_does_more_than_none() {
        for shield in Shield::ALL {
            let useful = steady(shield, 5.0, 10).utilisation;
            let collapses = shield == Shield::Off;
            assert!(if collapses { useful < 0.01 } else { useful > 0.9 }, "{shield:?}: {useful}");
        }
    }

    #[test]
    fn recovery_takes_less_than_a_second() {
        // I21: after 30 s of ten times the capacity.
        let phase =
            |load, secs| Phase { load, length: Duration::from_secs(secs), settle: Duration::ZERO };
        let phases = vec![phase(10.0, 30), phase(0.9, 20)];
        let setup = Setup { shield: Shield::FeedForward, phases, seed: 1 };
        let after = &simulate(&setup)[1];
        let refused: u64 = after.refused.iter().sum();
        assert!(after.last_refusal <= Some(Duration::from_secs(1)), "{:?}", after.last_refusal);
        assert!(refused <= 1_440, "{refused}");
    }

    #[test]
    fn most_important_tier_is_served_whatever_is_offered() {
        for load in [2.0, 10.0] {
            let measured = steady(Shield::FeedForward, load, 10);
            assert!(measured.served_share(Tier::T0) > 0.99, "{load}");
            assert!(measured.served_share(Tier::T5) < 0.01, "{load}");
        }
        let unprotected = steady(Shield::Off, 2.0, 10);
        assert!(unprotected.served_share(Tier::T0) < 0.1);
    }

    #[test]
    fn same_seed_gives_the_same_figures() {
        for shield in Shield::ALL {
            assert_eq!(Shield::parse(shield.name()), Some(shield));
            let figures = || {
                let measured = steady(shield, 3.0, 4);
                (measured.offered, measured.refused, measured.late, measured.served)
            };
            assert_eq!(figures(), figures(), "{shield:?}");
        }
    }
}
