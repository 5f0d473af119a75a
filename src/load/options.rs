//! What a load manager is made of.

use crate::time::Duration;

use super::level::{Level, Thresholds};
use super::queue::WAITING_MAX;
use super::regulator::HotKeyOptions;
use super::rejector::RejectorKind;
use super::scorecard::{ScorecardError, ScorecardRule};
use super::signal::{Declaration, SignalError};
use super::tuning::{LimitRange, TuningKind};

/// How a load manager behaves. The default suits a service of a few hundred requests a second
/// and place; whoever knows how many it may have in work should say so.
#[derive(Clone, Debug)]
pub struct Options {
    /// When levels are entered and left.
    pub thresholds: Thresholds,
    /// The level from which on requests are shed; [`Level::Normal`] for always.
    pub shed_from: Level,
    /// What says how much may pass.
    pub rejector: RejectorKind,
    /// What says how many may be in work.
    pub tuning: TuningKind,
    /// Requests in work at once, of each kind of work.
    pub in_flight: LimitRange,
    /// Requests that wait, of each kind of work; at most [`WAITING_MAX`].
    pub waiting_max: u64,
    /// The longest wait is the 90th percentile of service, brought between these two.
    pub timeout_min: Duration,
    pub timeout_max: Duration,
    /// Bytes of requests in flight; `u64::MAX` for no bound.
    pub bytes_max: u64,
    /// Tasks alive; `u64::MAX` for no bound.
    pub tasks_max: u64,
    /// When one key is too hot; none to follow no keys.
    pub hot_key: Option<HotKeyOptions>,
    /// Requests in flight by tenant: the first rule that matches decides.
    pub scorecard: Vec<ScorecardRule>,
    /// Signals that may be reported.
    pub signals: Vec<Declaration>,
    /// Who is refused is told to come back between these two, spread evenly.
    pub retry_min: Duration,
    pub retry_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::default(),
            shed_from: Level::Conserve,
            rejector: RejectorKind::default(),
            tuning: TuningKind::default(),
            in_flight: LimitRange::default(),
            waiting_max: 10_000,
            timeout_min: Duration::from_millis(5),
            timeout_max: Duration::from_secs(1),
            bytes_max: u64::MAX,
            tasks_max: u64::MAX,
            hot_key: None,
            scorecard: Vec::new(),
            signals: Vec::new(),
            retry_min: Duration::from_millis(500),
            retry_max: Duration::from_millis(2_000),
        }
    }
}

/// Why options make no load manager.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum OptionsError {
    #[error("scorecard: {0}")]
    Scorecard(#[from] ScorecardError),
    #[error("signals: {0}")]
    Signal(Box<str>),
    #[error("{name}: the least, {least}, is more than the most, {most}")]
    Order { name: &'static str, least: Duration, most: Duration },
    #[error("`{0}` must be longer than zero")]
    Zero(&'static str),
    #[error("`waiting_max` must be from 1 to {WAITING_MAX}, not {0}")]
    Waiting(u64),
}

impl From<SignalError> for OptionsError {
    fn from(error: SignalError) -> Self {
        Self::Signal(error.to_string().into())
    }
}

impl Options {
    /// What is wrong between the fields; rules and signals are read elsewhere.
    pub(super) fn complaint(&self) -> Result<(), OptionsError> {
        let pairs = [
            ("timeout", self.timeout_min, self.timeout_max),
            ("retry", self.retry_min, self.retry_max),
        ];
        for (name, least, most) in pairs {
            if least > most {
                return Err(OptionsError::Order { name, least, most });
            }
        }
        if self.timeout_max.is_zero() {
            return Err(OptionsError::Zero("timeout_max"));
        }
        let waiting = 1..=WAITING_MAX as u64;
        if !waiting.contains(&self.waiting_max) {
            return Err(OptionsError::Waiting(self.waiting_max));
        }
        Ok(())
    }
}
