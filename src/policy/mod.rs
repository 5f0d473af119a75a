//! Which quotas apply to whom: policy documents to an immutable [`Snapshot`], and the facts of a
//! request to the rules that apply.
//!
//! A [`Book`] keeps every document that is known: of each the last good text and, where the
//! newest is refused, why. A change compiles the tenants it names and publishes a new snapshot.
//!
//! Which rules apply: a rule's *class* is the set of dimensions that it constrains (endpoint,
//! caller, each attribute of `match` or `per`). All classes hold together; within a class the most
//! specific rule applies, dimension by dimension, exact before longer prefix before `*`. A rule
//! in shadow never displaces an enforced one: it applies beside it. A rule that is off, or whose
//! `until` has passed, is as if it were not written.
//!
//! Invariants: a snapshot never changes and every quota in it is valid; a document that is
//! refused leaves the last good one of its source in force.

mod amend;
mod book;
mod bucket;
mod calendar;
mod compile;
mod counts;
mod describe;
mod diff;
mod document;
mod facts;
mod given;
mod index;
mod lint;
mod make;
mod make_quota;
mod make_rule;
mod options;
mod pattern;
mod rule;
mod schema;
mod snapshot;
mod tenant;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use amend::{AmendError, Amended, Override, amend};
pub(crate) use book::{Applied, Book, Change, DocumentStatus};
pub(crate) use bucket::shown_bucket;
pub(crate) use calendar::{Calendar, CalendarUnit, Period};
pub(crate) use compile::parse;
pub(crate) use counts::{Counted, RuleCounts, TenantCounts};
pub(crate) use describe::{Field, rule_fields, tenant_fields};
pub(crate) use diff::{Difference, What, diff};
pub(crate) use facts::Facts;
pub(crate) use lint::{Finding, lint};
pub(crate) use options::{Options, Unmatched};
pub(crate) use pattern::{Dimension, Matcher, Pattern};
pub(crate) use rule::{Degrade, Enforcement, ManagedBy, Mode, QuotaKind, Rule, RuleQuota, Scope};
pub(crate) use schema::schema;
pub(crate) use snapshot::Snapshot;
pub(crate) use tenant::{BucketOwner, Match, Tenant, Terms};
