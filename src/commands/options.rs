//! The settings of the commands: limits of the limiters, the slow log, the latency monitor.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::connection::REDIS_VERSION;
use crate::limit::LOG_ENTRIES_MAX_LOWEST;
use crate::lua::Setup;
use crate::size::BytesMax;
use crate::time::Duration;

/// The section `limits`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitOptions {
    /// Entries that the log of one key may hold before its oldest half is rounded and merged.
    pub(crate) log_entries_max: LogEntries,
    /// Whose way of rounding CL.THROTTLE follows.
    pub(crate) throttle_rounding: ThrottleRounding,
}

/// Entries of one log: [`LogEntries::MIN`] to [`LogEntries::MAX`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "i64", into = "u32")]
pub(crate) struct LogEntries(u32);

impl LogEntries {
    /// A log of fewer cannot be made coarse.
    pub(crate) const MIN: u32 = LOG_ENTRIES_MAX_LOWEST;
    pub(crate) const MAX: u32 = u32::MAX;

    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

impl TryFrom<i64> for LogEntries {
    type Error = String;

    fn try_from(count: i64) -> Result<Self, String> {
        let (min, max) = (Self::MIN, Self::MAX);
        let fitting = u32::try_from(count).ok().filter(|count| *count >= min);
        fitting.map(Self).ok_or_else(|| format!("expected a whole number from {min} to {max}"))
    }
}

impl From<LogEntries> for u32 {
    fn from(entries: LogEntries) -> Self {
        entries.0
    }
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

/// The section `lua`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptOptions {
    /// A script that runs for this long makes others be answered BUSY; zero for never.
    pub(crate) busy_after: Duration,
    /// Bytes that the scripts of one worker may take while they run.
    pub(crate) worker_bytes_max: BytesMax,
    /// Known limiter scripts are done without Lua.
    pub(crate) native_twins: bool,
    /// `redis.error_reply` with a code alone sends it alone, as before Redis 7.
    pub(crate) bare_error_codes: bool,
    /// Flags in a script's first line that no Redis knows are passed over.
    pub(crate) accept_unknown_flags: bool,
}

impl ScriptOptions {
    /// What an interpreter is made with for one of the workers.
    pub(super) fn setup(&self, worker: u32, kill: Arc<AtomicBool>) -> Setup {
        Setup {
            redis_version: REDIS_VERSION,
            memory_max: self.worker_bytes_max.as_usize(),
            worker,
            bare_codes: self.bare_error_codes,
            kill,
        }
    }
}

/// The section `decision_log`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionLogOptions {
    /// Tell decisions one by one.
    pub(crate) enabled: bool,
    /// The file it is written to; empty for stdout.
    pub(crate) path: PathBuf,
    /// Which share of the allowed requests is told.
    pub(crate) sample_allowed: Share,
    /// Which share of the denied requests is told.
    pub(crate) sample_denied: Share,
    /// Lines in one second.
    pub(crate) per_second_max: u64,
}

/// A share of a whole: 0 to 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub(crate) struct Share(f64);

impl Share {
    pub(crate) const fn number(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(share: f64) -> Result<Self, String> {
        let fitting = (0.0..=1.0).contains(&share);
        fitting.then_some(Self(share)).ok_or_else(|| "expected a number from 0 to 1".into())
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

#[cfg(test)]
impl DecisionLogOptions {
    pub(crate) fn off() -> Self {
        let (none, path) = (Share(0.0), PathBuf::new());
        let (enabled, per_second_max) = (false, u64::MAX);
        Self { enabled, path, sample_allowed: none, sample_denied: none, per_second_max }
    }

    pub(crate) fn everything() -> Self {
        let all = Share(1.0);
        Self { enabled: true, sample_allowed: all, sample_denied: all, ..Self::off() }
    }
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
