//! How much may be done: signals to pressure, pressure to a level, and who is refused.
//!
//! The load manager decides before any work is done whether a request is admitted. It knows no
//! server, socket or thread: a service of any kind puts it in front of its own work.
//! `examples/protect` is one.
//!
//! # The way of a request
//!
//! [`Manager::admit`] asks the regulators (bytes in flight, hot key, tasks), the tenant's
//! [`Scorecard`] and signals, the [`Cut`] of the shedder, and whether there is room to wait. The
//! first that refuses is the one [`Reason`]. Who is admitted has a [`Permit`], waits in a
//! [`Queue`] where there is one, [begins](Permit::begin) and is [done](Working::done).
//!
//! # The way of a figure
//!
//! | from | to | by |
//! |---|---|---|
//! | [`Readings`], [`Signals`] | pressure | used / limit of each, 1.0 at the limit; their maximum |
//! | pressure | [`Level`] | `e += (x > e ? 0.5 : 0.2) * (x - e)`; entered at .80, .90, .97 |
//! | [`Interval`] | admitted share | a [`Rejector`]: `(C - excess / 4) / O` by [`FeedForward`] |
//! | share, [`Offered`] | [`Cut`] | the least important priorities first, the last by chance |
//! | [`Window`] | in-flight limit | a [`Tuning`]: [`Tuner`] or [`Gradient`] |
//!
//! # Sources
//!
//! Tiers, cohorts, regulators and scorecard are as Uber's load managers are described; the
//! [`Pid`] after Cinnamon, whose gains are not published; the [`Tuner`] after failsafe-go; the
//! [`Gradient`] is Netflix's Gradient2; [`Dagor`] is Zhou et al. (2018); [`Codel`] Nichols and
//! Jacobson (2012), with adaptive LIFO as Facebook published it; the [`Caller`] throttles as
//! Google's book on reliability has it. Each file says what of it is ours. [`simulate`] shows
//! what each does, by a seed.
//!
//! # Example
//!
//! ```
//! use tollgate::load::{Cohort, LimitRange, Manager, Options, Outcome, Readings, Request, Tier};
//! use tollgate::time::{Clock, Duration, Timestamp};
//!
//! let clock = Clock::manual(Timestamp::from_millis(1_000));
//! let options = Options { in_flight: LimitRange::fixed(1), ..Options::default() };
//! let manager = Manager::new(options, clock.now())?;
//!
//! let request = Request::new(Tier::T2).cohort(Cohort::of_user(42, clock.now()));
//! let dice = 123_456_789; // 32 bits from the caller's own source
//! let working = manager.enter(&request, clock.now(), dice).expect("a place is free");
//! let refused = manager.enter(&request, clock.now(), dice).expect_err("the only one is taken");
//! assert_eq!(refused.reason.name(), "in_flight");
//!
//! clock.advance(Duration::from_millis(2));
//! working.done(clock.now(), Outcome::Served);
//! // Every half second, with what the machine shows:
//! manager.tick(&Readings::default(), clock.now());
//! # Ok::<(), tollgate::load::OptionsError>(())
//! ```
//!
//! Everything here is told the time and brings no dice. What can grow has a named maximum.

mod caller;
mod codel;
mod cut;
mod dagor;
mod estimate;
mod feed_forward;
mod gradient;
mod lane;
mod latencies;
mod level;
mod manager;
mod offered;
mod options;
mod permit;
mod pid;
mod pressure;
mod queue;
mod regulator;
mod rejector;
mod request;
mod scorecard;
mod signal;
mod simulation;
mod stats;
mod tier;
mod tuner;
mod tuning;

#[cfg(test)]
mod manager_tests;

pub use self::caller::{Caller, CallerOptions, UNSENT_MAX};
pub use self::codel::{Codel, Order, Patience};
pub use self::cut::{Cut, Standing};
pub use self::dagor::Dagor;
pub use self::estimate::Estimate;
pub use self::feed_forward::FeedForward;
pub use self::gradient::Gradient;
pub use self::latencies::{Latencies, Spread};
pub use self::level::{Level, LevelMachine, SAMPLE_PERIOD, Thresholds, ThresholdsError};
pub use self::manager::Manager;
pub use self::offered::{OFFERED_MAX, Offered};
pub use self::options::{Options, OptionsError};
pub use self::permit::{Outcome, Permit, Working};
pub use self::pid::{Gains, Pid};
pub use self::pressure::{BUSY_MAX, Pressures, Readings, Share, Source};
pub use self::queue::{Discipline, Full, Popped, Queue, WAITING_MAX};
pub use self::regulator::{Bytes, Held, HotKey, HotKeyOptions, Memory, Tasks};
pub use self::rejector::{Interval, Rejector, RejectorKind};
pub use self::request::{Reason, Rejection, Request, Work};
pub use self::scorecard::{
    COUNTED_MAX, Place, RULE_BYTES_MAX, RULES_MAX, Scorecard, ScorecardError, ScorecardRule,
    Scored, TenantPattern,
};
pub use self::signal::{
    Declaration, EXPIRY_MAX, Freshness, Kind, NAME_BYTES_MAX, Reported, SIGNALS_MAX, SignalError,
    SignalState, Signals, TENANT_BYTES_MAX, TENANTS_MAX,
};
pub use self::simulation::{
    CAPACITY_PER_S, LOAD_MAX, MIX, Measured, PATIENCE, PLACES, Phase, SERVICE_MEAN, Setup, Shield,
    simulate,
};
pub use self::stats::{LaneStats, Stats};
pub use self::tier::{COHORTS, Cohort, PRIORITIES, Priority, Tier};
pub use self::tuner::Tuner;
pub use self::tuning::{
    LimitRange, Tuning, TuningKind, WINDOW_MAX, WINDOW_MIN, WINDOW_REQUESTS, Window,
};
