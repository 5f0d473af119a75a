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

mod cut;
mod dagor;
mod estimate;
mod feed_forward;
mod level;
mod offered;
mod pid;
mod pressure;
mod rejector;
mod signal;
mod tier;

pub use self::cut::{Cut, Standing};
pub use self::dagor::Dagor;
pub use self::estimate::Estimate;
pub use self::feed_forward::FeedForward;
pub use self::level::{Level, LevelMachine, SAMPLE_PERIOD, Thresholds, ThresholdsError};
pub use self::offered::{OFFERED_MAX, Offered};
pub use self::pid::{Gains, Pid};
pub use self::pressure::{BUSY_MAX, Pressures, Readings, Share, Source};
pub use self::rejector::{Interval, Rejector, RejectorKind};
pub use self::signal::{
    Declaration, EXPIRY_MAX, Freshness, Kind, NAME_BYTES_MAX, Reported, SIGNALS_MAX, SignalError,
    SignalState, Signals, TENANT_BYTES_MAX, TENANTS_MAX,
};
pub use self::tier::{COHORTS, Cohort, PRIORITIES, Priority, Tier};
