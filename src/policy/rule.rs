//! A rule in force, and its quotas.
//!
//! Made only from a document that was accepted, so nothing here is checked again.

use crate::limit::{Credit, Quota};
use crate::load::Tier;
use crate::time::Timestamp;

use super::calendar::Calendar;
use super::counts::RuleCounts;
use super::pattern::{Dimension, Matcher};

/// One rule of a tenant.
#[derive(Debug, PartialEq)]
pub(crate) struct Rule {
    /// For people, errors and metrics: the name in the document, else the canonical matcher.
    pub(crate) name: Box<str>,
    /// Whether the document gives it that name.
    pub(super) is_named: bool,
    pub(crate) matcher: Matcher,
    /// Each value of these has a bucket of its own; they are constrained by the matcher, too.
    pub(crate) per: Box<[Dimension]>,
    pub(crate) mode: Mode,
    /// Of a hundred requests, how many are enforced; the others are as in shadow.
    pub(crate) enforce_percent: u8,
    /// All of them must allow; none where the limit is `unlimited`.
    pub(crate) quotas: Box<[RuleQuota]>,
    /// Judged beside `quotas` and never enforced.
    pub(crate) candidate: Option<Box<RuleQuota>>,
    /// What a request costs that does not say.
    pub(crate) cost: u64,
    pub(crate) tier: Option<Tier>,
    pub(crate) degrade: Option<Degrade>,
    pub(crate) count_denied: bool,
    /// From this moment on the rule is gone.
    pub(crate) until: Option<Timestamp>,
    pub(crate) scope: Scope,
    pub(crate) enforcement: Enforcement,
    pub(crate) managed_by: ManagedBy,
    pub(crate) counts: RuleCounts,
}

impl Rule {
    /// The class of a rule for all requests.
    const TENANT_CLASS: &str = "tenant";

    /// The dimensions that it constrains, such as `endpoint+caller`: what EXPLAIN calls its
    /// class.
    pub(crate) fn class(&self) -> String {
        let names: Vec<&str> =
            self.matcher.constraints().iter().map(|(dimension, _)| dimension.name()).collect();
        if names.is_empty() { Self::TENANT_CLASS.to_owned() } else { names.join("+") }
    }

    /// Whether it may deny anything; else it decides beside others and lets pass.
    pub(crate) fn enforces(&self) -> bool {
        self.mode == Mode::Enforce && self.enforce_percent > 0
    }

    /// Whether its `until` has not come.
    pub(crate) fn lasts(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// One quota of a rule.
#[derive(Debug, PartialEq)]
pub(crate) struct RuleQuota {
    /// Its name in `limits:`, if it has one.
    pub(crate) name: Option<Box<str>>,
    pub(crate) kind: QuotaKind,
    /// The bucket's name up to the values of `per`; see `bucket`.
    pub(super) bucket_prefix: Box<[u8]>,
}

/// What is counted, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum QuotaKind {
    /// A limit per window with its burst, if any, on top (gcra: as the size of the bucket).
    Plain(Quota),
    /// A limit per window, and above it a credit of `burst` that refills in ten windows.
    Credit(Credit),
    /// A fixed window, with its burst on top, whose beginning and length the calendar says; that
    /// of the quota itself means nothing.
    Calendar { quota: Quota, calendar: Calendar },
    /// At most so many in flight: only leases and reservations count.
    Concurrency(u64),
    /// Everything passes; the rule takes the place of less specific ones.
    Unlimited,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Mode {
    #[default]
    Enforce,
    /// Decide and count, but let pass.
    Shadow,
    /// As if the rule were not written.
    Off,
}

/// The answer where no exact one can be given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Degrade {
    Open,
    Closed,
    Ratio,
}

/// Where a distributed limit is added up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Scope {
    Zone,
    Region,
    #[default]
    Global,
}

/// Who decides; `distributed` comes later and is refused until then.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Enforcement {
    #[default]
    Central,
}

/// Who may change the rule.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ManagedBy {
    #[default]
    Human,
    Rlc,
}
