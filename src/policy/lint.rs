//! What a document may say, and probably does not mean.
//!
//! Findings are warnings; what cannot be is refused when the document is read.

use std::fmt;

use crate::limit::{Algorithm, LOG_ENTRIES_MAX_DEFAULT};
use crate::time::Timestamp;
use crate::yaml::{Complaint, Step, locate};

use super::compile::compile;
use super::options::Options;
use super::rule::{Mode, QuotaKind, Rule, Scope};
use super::tenant::Terms;

/// A warning about a document that is good.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) tenant: Box<str>,
    /// The rule that is meant; none where it is the tenant.
    pub(crate) rule: Option<Box<str>>,
    pub(crate) text: String,
}

/// What is doubtful in a document, or why it is refused. `tenant` is the name that its source
/// gives to a single tenant.
pub(crate) fn lint(
    text: &[u8],
    tenant: Option<&str>,
    options: &Options,
    now: Timestamp,
) -> Result<Vec<Finding>, Complaint> {
    let compiled = compile(text, tenant, options.document_bytes_max, now)?;
    let written = std::str::from_utf8(text).expect("it has been read as text");
    let mut findings = Vec::new();
    for (at, (terms, _)) in compiled.drafts.iter().enumerate() {
        let mut base = Vec::new();
        if compiled.is_list {
            base = vec![Step::Key("tenants".to_owned()), Step::Index(at)];
        }
        let mut tell = |path: &[Step], rule: Option<&Rule>, text: String| {
            let (line, column) = locate(written, &[&base[..], path].concat());
            let rule = rule.map(|rule| rule.name.clone());
            findings.push(Finding { line, column, tenant: terms.name.clone(), rule, text });
        };
        if tenant.is_some_and(|tenant| *tenant != *terms.name) && !compiled.is_list {
            let text = "the file or key has another name than the tenant".to_owned();
            tell(&[Step::Key("name".to_owned())], None, text);
        }
        if terms.rules.is_empty() {
            tell(&[], None, "no rules and no limits: every request is unmatched".to_owned());
        }
        for (place, rule) in terms.rules.iter().enumerate() {
            let path = match place.checked_sub(usize::from(terms.has_limits)) {
                Some(place) => vec![Step::Key("rules".to_owned()), Step::Index(place)],
                None => vec![Step::Key("limits".to_owned())],
            };
            for text in doubts(terms, rule, now) {
                tell(&path, Some(rule), text);
            }
        }
    }
    Ok(findings)
}

/// What is doubtful about one rule.
fn doubts(terms: &Terms, rule: &Rule, now: Timestamp) -> Vec<String> {
    let mut doubts = Vec::new();
    if !rule.lasts(now) {
        doubts.push("its `until` has passed, so it does nothing; remove it".to_owned());
    }
    if rule.mode == Mode::Shadow && rule.enforce_percent < 100 {
        doubts.push("`enforce_percent` means nothing in shadow".to_owned());
    }
    if rule.scope != Scope::Global {
        doubts.push("`scope` means nothing where enforcement is central".to_owned());
    }
    for quota in &rule.quotas {
        doubts.extend(doubts_of_quota(rule, &quota.kind));
    }
    for (at, quota) in rule.quotas.iter().enumerate() {
        let binds_less = |other: &QuotaKind| never_binds(&quota.kind, other);
        if rule
            .quotas
            .iter()
            .enumerate()
            .any(|(place, other)| place != at && binds_less(&other.kind))
        {
            doubts.push(format!("`{quota}` never binds: another limit is reached before it"));
        }
    }
    if rule.per.is_empty() || terms.keys_max.is_some() {
        return doubts;
    }
    doubts.push("each value of `per` has a bucket: give the tenant a `keys_max`".to_owned());
    doubts
}

fn doubts_of_quota(rule: &Rule, kind: &QuotaKind) -> Vec<String> {
    let mut doubts = Vec::new();
    let Some((capacity, algorithm)) = (match kind {
        QuotaKind::Plain(quota) | QuotaKind::Calendar { quota, .. } => {
            Some((quota.capacity(), quota.algorithm()))
        }
        QuotaKind::Credit(credit) => Some((credit.quota().capacity(), credit.quota().algorithm())),
        QuotaKind::Concurrency(most) => Some((*most, Algorithm::FixedWindow)),
        QuotaKind::Unlimited => None,
    }) else {
        return doubts;
    };
    if capacity > 0 && rule.cost > capacity {
        doubts.push(format!(
            "a request of the cost {} never passes, for `{kind}` has room for {capacity}",
            rule.cost
        ));
    }
    if algorithm == Algorithm::SlidingLog && capacity > u64::from(LOG_ENTRIES_MAX_DEFAULT) {
        doubts.push(format!(
            "`{kind}` remembers up to {capacity} requests; sliding-window takes a bounded memory"
        ));
    }
    doubts
}

/// Whether one quota cannot deny before the other does: it grants no less in no more time.
fn never_binds(one: &QuotaKind, other: &QuotaKind) -> bool {
    let (QuotaKind::Plain(one), QuotaKind::Plain(other)) = (one, other) else { return false };
    // What starts again can let twice its limit pass, so only a log is sure to be first.
    let is_sure = [one, other].iter().all(|quota| quota.algorithm() == Algorithm::SlidingLog);
    let is_wider = one.capacity() >= other.capacity() && one.window() <= other.window();
    is_sure && is_wider && one != other
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: ", self.line, self.column, self.tenant)?;
        if let Some(rule) = &self.rule {
            write!(f, "{rule}: ")?;
        }
        f.write_str(&self.text)
    }
}
