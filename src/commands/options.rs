//! The settings of the commands: limits of the limiters, the slow log, the latency monitor.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// The section `limits`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitOptions {
    /// Entries that the log of one key may hold before its oldest half is rounded and merged.
    pub(crate) log_entries_max: NonZeroUsize,
    /// Whose way of rounding CL.THROTTLE follows.
    pub(crate) throttle_rounding: ThrottleRounding,
}

/// How CL.THROTTLE turns a wait into whole seconds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ThrottleRounding {
    /// As the module that brought the command: the wait in whole milliseconds, rounded up.
    RedisCell,
    /// As Dragonfly: one second above the whole ones, wherever there is anything to wait for.
    Dragonfly,
}

/// The section `slowlog`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlowlogOptions {
    /// A command that took at least this long is remembered; zero remembers every one.
    pub(crate) threshold: Duration,
    /// Commands remembered; the oldest go first, and zero remembers none.
    pub(crate) entries_max: usize,
}

/// The section `latency`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LatencyOptions {
    /// An event that took at least this long is remembered; zero turns the monitor off.
    pub(crate) threshold: Duration,
}
