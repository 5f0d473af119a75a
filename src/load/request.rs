//! What is asked, as far as load cares, and why it may be refused.
//!
//! A request is classified before any work is done for it: who asks, how important it is, what
//! kind of work it makes. Nothing here is looked at again later.

use crate::limit::Hashed;
use crate::time::Duration;

use super::tier::{Cohort, Priority, Tier};

/// What kind of work a request makes. Each kind has a queue of its own, so that slow work does
/// not stand in the way of quick.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum Work {
    #[default]
    Read,
    Write,
    Slow,
}

impl Work {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Slow];

    /// `read`, `write` or `slow`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Slow => "slow",
        }
    }
}

/// A request as the load manager sees it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub tier: Tier,
    pub cohort: Cohort,
    /// Empty where there are no tenants.
    pub tenant: &'a [u8],
    pub work: Work,
    /// Bytes that are held while it is in flight.
    pub bytes: u64,
    /// What it works on, if one key may become too hot.
    pub key: Option<Hashed<'a>>,
}

impl<'a> Request<'a> {
    /// A read of no particular tenant, user or key.
    pub const fn new(tier: Tier) -> Self {
        Self { tier, cohort: Cohort::of(0), tenant: b"", work: Work::Read, bytes: 0, key: None }
    }

    #[must_use]
    pub const fn cohort(self, cohort: Cohort) -> Self {
        Self { cohort, ..self }
    }

    #[must_use]
    pub const fn tenant(self, tenant: &'a [u8]) -> Self {
        Self { tenant, ..self }
    }

    #[must_use]
    pub const fn work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// Bytes that are held while it is in flight.
    #[must_use]
    pub const fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    #[must_use]
    pub const fn key(self, key: Hashed<'a>) -> Self {
        Self { key: Some(key), ..self }
    }

    pub const fn priority(&self) -> Priority {
        Priority::new(self.tier, self.cohort)
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum Reason {
    /// Too many bytes are in flight.
    Bytes,
    /// Its key takes too much of the whole.
    HotKey,
    /// Memory is nearly full.
    Memory,
    /// Too many tasks are alive.
    Tasks,
    /// Its tenant has enough in flight.
    Scorecard,
    /// A signal presses on its tenant.
    Tenant,
    /// More is asked for than can be done, and others are more important.
    Shed,
    /// As many wait as may.
    QueueFull,
    /// It waited too long.
    QueueTimeout,
    /// As many are in work as may.
    InFlight,
}

impl Reason {
    pub const ALL: [Self; 10] = [
        Self::Bytes,
        Self::HotKey,
        Self::Memory,
        Self::Tasks,
        Self::Scorecard,
        Self::Tenant,
        Self::Shed,
        Self::QueueFull,
        Self::QueueTimeout,
        Self::InFlight,
    ];

    /// As statistics name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::HotKey => "hot_key",
            Self::Memory => "memory",
            Self::Tasks => "tasks",
            Self::Scorecard => "scorecard",
            Self::Tenant => "tenant",
            Self::Shed => "shed",
            Self::QueueFull => "queue_full",
            Self::QueueTimeout => "queue_timeout",
            Self::InFlight => "in_flight",
        }
    }
}

/// A request that is refused: why, and when to come back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rejection {
    pub reason: Reason,
    /// A hint, spread by dice so that not all return together.
    pub retry_after: Duration,
}
