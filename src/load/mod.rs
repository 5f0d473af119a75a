//! How much may be done: signals to pressure, pressure to a level, and who is refused.
//!
//! The load manager decides before any work is done whether a request is admitted. It knows no
//! server: a service of any kind puts it in front of its own work.
//!
//! The way of a figure: [`Readings`] of the machine and [`Signals`] of the service become
//! pressures, 1.0 at the hard limit; the greatest of them moves the [`LevelMachine`]; at level 1
//! and above requests are refused by [`Priority`], the least important first.
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
pub mod simulation;
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
pub use self::stats::{LaneStats, Stats};
pub use self::tier::{COHORTS, Cohort, PRIORITIES, Priority, Tier};
pub use self::tuner::Tuner;
pub use self::tuning::{
    LimitRange, Tuning, TuningKind, WINDOW_MAX, WINDOW_MIN, WINDOW_REQUESTS, Window,
};
