//! A tenant and its rules as fields of text: what a difference is told in, and what tests read.
//!
//! Only what differs from the default is told, so that a field of a later version changes no
//! description.

use std::fmt;

use crate::limit::{Algorithm, Align, Quota};

use super::pattern::Dimension;
use super::rule::{ManagedBy, Mode, QuotaKind, Rule, RuleQuota, Scope};
use super::tenant::Terms;
use super::words::{Word, spelling};

/// A field by its name in the document, and its value.
pub(crate) type Field = (&'static str, String);

/// What a tenant says beside its rules.
pub(crate) fn tenant_fields(terms: &Terms) -> Vec<Field> {
    let mut fields = Vec::new();
    word(&mut fields, "tier", terms.tier);
    fields.extend(terms.keys_max.map(|most| ("keys_max", most.to_string())));
    word(&mut fields, "unmatched", terms.unmatched);
    word(&mut fields, "degrade", terms.degrade);
    fields
}

/// What a rule says beside its name.
pub(crate) fn rule_fields(rule: &Rule) -> Vec<Field> {
    let mut fields = vec![("match", rule.matcher.to_string())];
    if !rule.per.is_empty() {
        let names: Vec<&str> = rule.per.iter().map(Dimension::name).collect();
        fields.push(("per", names.join(", ")));
    }
    let quotas: Vec<String> = rule.quotas.iter().map(ToString::to_string).collect();
    fields.push(("limits", quotas.join("; ")));
    fields.extend(rule.candidate.as_ref().map(|quota| ("candidate", quota.to_string())));
    word(&mut fields, "mode", Some(rule.mode).filter(|mode| *mode != Mode::Enforce));
    if rule.enforce_percent != 100 {
        fields.push(("enforce_percent", rule.enforce_percent.to_string()));
    }
    if rule.cost != 1 {
        fields.push(("cost", rule.cost.to_string()));
    }
    word(&mut fields, "tier", rule.tier);
    word(&mut fields, "degrade", rule.degrade);
    if rule.count_denied {
        fields.push(("count_denied", "true".to_owned()));
    }
    if let Some(until) = rule.until {
        let micros = i64::try_from(until.as_micros()).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
        fields.push(("until", moment.to_string()));
    }
    word(&mut fields, "scope", Some(rule.scope).filter(|scope| *scope != Scope::Global));
    let managed_by = Some(rule.managed_by).filter(|by| *by != ManagedBy::Human);
    word(&mut fields, "managed_by", managed_by);
    fields
}

fn word<T: Word>(fields: &mut Vec<Field>, name: &'static str, meaning: Option<T>) {
    fields.extend(meaning.map(|meaning| (name, spelling(meaning).to_owned())));
}

impl fmt::Display for RuleQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}: {}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

/// As people say it: `1000 per 1s, burst 50`.
impl fmt::Display for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(quota) => {
                write!(f, "{} per {}", quota.limit(), quota.window())?;
                burst(f, quota)?;
                if quota.algorithm() != Algorithm::default() {
                    write!(f, ", {}", spelling(quota.algorithm()))?;
                }
                if quota.align() == Align::First {
                    f.write_str(", from the first")?;
                }
                Ok(())
            }
            Self::Credit(credit) => {
                let quota = credit.quota();
                let (limit, window) = (quota.limit(), quota.window());
                write!(f, "{limit} per {window}, credit {}", quota.burst())?;
                if quota.algorithm() != Algorithm::default() {
                    write!(f, ", {}", spelling(quota.algorithm()))?;
                }
                Ok(())
            }
            Self::Calendar { quota, calendar } => {
                let zone = calendar.zone.iana_name().unwrap_or("a zone without name");
                write!(f, "{} per {} of {zone}", quota.limit(), calendar.unit.name())?;
                burst(f, quota)
            }
            Self::Concurrency(most) => write!(f, "{most} in flight"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

fn burst(f: &mut fmt::Formatter<'_>, quota: &Quota) -> fmt::Result {
    if quota.burst() == 0 { Ok(()) } else { write!(f, ", burst {}", quota.burst()) }
}
