//! Settings that can change while the server runs: CONFIG SET writes them, everyone reads.
//!
//! Each is one atomic word, except the password and what is only noted. They start as the
//! settings file says.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::options::{LogEntries, ScriptOptions};
use super::overload::LoadOptions;
use crate::policy;
use crate::prefilter;
use crate::size::BytesMax;
use crate::time::Duration;

/// Slower than this is what the slow log is for; a lower threshold asks for every command to be
/// timed by itself.
const QUICK: Duration = Duration::from_millis(1);

/// What SHA-256 makes of a password.
type Digested = sha2::digest::Output<Sha256>;

#[derive(Debug)]
pub(crate) struct Runtime {
    pub(super) password: RwLock<String>,
    /// SHA-256 of what operators say, as the settings file has it; `None` where there is nobody
    /// to tell apart.
    operator: Option<Digested>,
    pub(super) protected: AtomicBool,
    pub(super) connections_max: AtomicUsize,
    /// In seconds; zero for never.
    pub(super) idle_timeout_s: AtomicU64,
    pub(super) output_bytes_max: AtomicUsize,
    pub(super) push_bytes_max: AtomicUsize,
    /// As it was at the start; zero for no bound.
    turn_max: Duration,
    pub(super) subscriptions_max: AtomicUsize,
    pub(super) key_bytes_max: AtomicUsize,
    pub(super) value_bytes_max: AtomicUsize,
    pub(super) log_entries_max: AtomicU32,
    pub(super) dragonfly_rounding: AtomicBool,
    /// As they were at the start.
    pub(super) scripts: ScriptOptions,
    /// As they were at the start.
    pub(super) prefilter: prefilter::Options,
    pub(super) policies: policy::Options,
    /// As they were at the start.
    pub(super) load: LoadOptions,
    /// In microseconds; zero for never.
    pub(super) busy_after_us: AtomicU64,
    /// In microseconds; negative for no slow log.
    pub(super) slowlog_threshold_us: AtomicI64,
    pub(super) slowlog_entries_max: AtomicUsize,
    /// In microseconds; zero for no latency monitor.
    pub(super) latency_threshold_us: AtomicU64,
    /// Expired keys are looked for, as they are unless DEBUG stops that.
    pub(super) sweeps: AtomicBool,
    /// What was set of the parameters that are only noted: at most each of them, by name.
    pub(super) noted: RwLock<BTreeMap<&'static str, String>>,
}

/// What the settings file says of all this.
#[derive(Clone, Debug)]
pub(crate) struct Initial {
    pub(crate) password: String,
    pub(crate) operator_password: Option<String>,
    pub(crate) protected: bool,
    pub(crate) connections_max: usize,
    pub(crate) idle_timeout: Duration,
    pub(crate) output_bytes_max: BytesMax,
    pub(crate) push_bytes_max: BytesMax,
    pub(crate) turn_max: Duration,
    pub(crate) subscriptions_max: usize,
    pub(crate) key_bytes_max: BytesMax,
    pub(crate) value_bytes_max: BytesMax,
    pub(crate) log_entries_max: LogEntries,
    pub(crate) dragonfly_rounding: bool,
    pub(crate) scripts: ScriptOptions,
    pub(crate) prefilter: prefilter::Options,
    pub(crate) policies: policy::Options,
    pub(crate) load: LoadOptions,
    pub(crate) slowlog_threshold: Duration,
    pub(crate) slowlog_entries_max: usize,
    pub(crate) latency_threshold: Duration,
}

#[cfg(test)]
impl Initial {
    /// Small bounds, no password, nothing timed: what most tests of rooms above need.
    pub(crate) fn small() -> Self {
        Self {
            password: String::new(),
            operator_password: None,
            protected: false,
            connections_max: 10,
            idle_timeout: Duration::ZERO,
            output_bytes_max: "1mb".parse().expect("a size"),
            push_bytes_max: "1mb".parse().expect("a size"),
            turn_max: Duration::ZERO,
            subscriptions_max: 10,
            key_bytes_max: "1kb".parse().expect("a size"),
            value_bytes_max: "1kb".parse().expect("a size"),
            log_entries_max: 1_024.try_into().expect("at least the lowest"),
            dragonfly_rounding: false,
            scripts: ScriptOptions {
                busy_after: Duration::from_secs(5),
                worker_bytes_max: "64mb".parse().expect("a size"),
                native_twins: true,
                bare_error_codes: true,
                accept_unknown_flags: true,
            },
            prefilter: prefilter::Options::small(true),
            policies: policy::Options {
                unmatched: policy::Unmatched::Allow,
                document_bytes_max: "1mb".parse().expect("a size"),
            },
            load: LoadOptions::off(),
            slowlog_threshold: Duration::from_secs(1),
            slowlog_entries_max: 0,
            latency_threshold: Duration::ZERO,
        }
    }
}

impl Runtime {
    pub(crate) fn new(initial: Initial) -> Self {
        Self {
            password: RwLock::new(initial.password),
            operator: initial.operator_password.map(Sha256::digest),
            protected: initial.protected.into(),
            connections_max: initial.connections_max.into(),
            idle_timeout_s: initial.idle_timeout.as_millis().div_ceil(1_000).into(),
            output_bytes_max: initial.output_bytes_max.as_usize().into(),
            push_bytes_max: initial.push_bytes_max.as_usize().into(),
            turn_max: initial.turn_max,
            subscriptions_max: initial.subscriptions_max.into(),
            key_bytes_max: initial.key_bytes_max.as_usize().into(),
            value_bytes_max: initial.value_bytes_max.as_usize().into(),
            log_entries_max: initial.log_entries_max.number().into(),
            dragonfly_rounding: initial.dragonfly_rounding.into(),
            busy_after_us: initial.scripts.busy_after.as_micros().into(),
            scripts: initial.scripts,
            prefilter: initial.prefilter,
            policies: initial.policies,
            load: initial.load,
            slowlog_threshold_us: (initial.slowlog_threshold.as_micros() as i64).into(),
            slowlog_entries_max: initial.slowlog_entries_max.into(),
            latency_threshold_us: initial.latency_threshold.as_micros().into(),
            sweeps: true.into(),
            noted: RwLock::default(),
        }
    }

    /// How long one connection's requests may be answered while others wait.
    pub(crate) fn turn_max(&self) -> Option<Duration> {
        (!self.turn_max.is_zero()).then_some(self.turn_max)
    }

    pub(crate) fn has_password(&self) -> bool {
        !self.password.read().is_empty()
    }

    /// How Redis shows a password: its digest in hex. `None` where nobody is asked.
    pub(super) fn password_digest(&self) -> Option<String> {
        let password = self.password.read();
        if password.is_empty() {
            return None;
        }
        Some(format!("{:x}", Sha256::digest(password.as_bytes())))
    }

    /// Compares in constant time: digests of equal length, whatever was given.
    pub(crate) fn password_matches(&self, given: &[u8]) -> bool {
        let expected = Sha256::digest(self.password.read().as_bytes());
        Sha256::digest(given).as_slice().ct_eq(expected.as_slice()).into()
    }

    #[inline]
    pub(super) fn has_operator_password(&self) -> bool {
        self.operator.is_some()
    }

    /// As Redis shows a password.
    pub(super) fn operator_digest(&self) -> Option<String> {
        self.operator.map(|digest| format!("{digest:x}"))
    }

    /// In constant time, and never where there is none.
    pub(super) fn operator_password_matches(&self, given: &[u8]) -> bool {
        self.operator
            .is_some_and(|expected| Sha256::digest(given).as_slice().ct_eq(&expected).into())
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.protected.load(Ordering::Relaxed)
    }

    pub(crate) fn connections_max(&self) -> usize {
        self.connections_max.load(Ordering::Relaxed)
    }

    /// `None` for never.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        let seconds = self.idle_timeout_s.load(Ordering::Relaxed);
        (seconds != 0).then(|| Duration::from_secs(seconds))
    }

    pub(crate) fn output_bytes_max(&self) -> usize {
        self.output_bytes_max.load(Ordering::Relaxed)
    }

    pub(crate) fn push_bytes_max(&self) -> usize {
        self.push_bytes_max.load(Ordering::Relaxed)
    }

    pub(super) fn subscriptions_max(&self) -> usize {
        self.subscriptions_max.load(Ordering::Relaxed)
    }

    pub(crate) fn key_bytes_max(&self) -> usize {
        self.key_bytes_max.load(Ordering::Relaxed)
    }

    pub(crate) fn value_bytes_max(&self) -> usize {
        self.value_bytes_max.load(Ordering::Relaxed)
    }

    pub(crate) fn log_entries_max(&self) -> u32 {
        self.log_entries_max.load(Ordering::Relaxed)
    }

    pub(crate) fn dragonfly_rounding(&self) -> bool {
        self.dragonfly_rounding.load(Ordering::Relaxed)
    }

    /// Whether keys past their deadline are looked for, and not only met.
    pub(crate) fn sweeps(&self) -> bool {
        self.sweeps.load(Ordering::Relaxed)
    }

    /// From when on a script makes others be answered BUSY; `None` for never.
    pub(super) fn busy_after(&self) -> Option<Duration> {
        let busy_after_us = self.busy_after_us.load(Ordering::Relaxed);
        (busy_after_us != 0).then(|| Duration::from_micros(busy_after_us))
    }

    pub(super) fn times_every_command(&self) -> bool {
        let slow_us = self.slowlog_threshold_us.load(Ordering::Relaxed);
        let latent_us = self.latency_threshold_us.load(Ordering::Relaxed);
        let quick_us = QUICK.as_micros();
        (0..quick_us as i64).contains(&slow_us) || (1..quick_us).contains(&latent_us)
    }

    pub(super) fn is_slow(&self, took: Duration) -> bool {
        let threshold_us = self.slowlog_threshold_us.load(Ordering::Relaxed);
        u64::try_from(threshold_us).is_ok_and(|threshold_us| took.as_micros() >= threshold_us)
    }

    pub(super) fn slowlog_entries_max(&self) -> usize {
        self.slowlog_entries_max.load(Ordering::Relaxed)
    }

    pub(super) fn is_latent(&self, took: Duration) -> bool {
        let threshold_us = self.latency_threshold_us.load(Ordering::Relaxed);
        threshold_us != 0 && took.as_micros() >= threshold_us
    }
}
