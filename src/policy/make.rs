//! Makes a tenant of what its document says.
//!
//! Fields by themselves were looked at while they were read; here is what they mean together,
//! and the defaults of what is not said. A problem names its place as a path from the tenant.

use std::collections::HashMap;

use crate::time::Timestamp;
use crate::yaml::Step;

use super::document::{DefaultsDocument, TenantDocument};
use super::given::Given;
use super::index::{Index, Tie};
use super::make_rule::Maker;
use super::rule::{Mode, Rule};
use super::tenant::Terms;
use super::words::{Count, Name, Spelled};

/// Rules of one tenant: bounds what a search can turn back through.
const RULES_MAX: usize = 16_384;

/// Sets of dimensions among a tenant's rules: each is searched at every request.
const CLASSES_MAX: usize = 32;

/// What is wrong with a tenant, and where.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) path: Vec<Step>,
    /// The place of another part that it does not go with.
    pub(super) other: Option<Vec<Step>>,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn at(path: &[Step], field: &str, text: impl Into<String>) -> Self {
        let path = [path, &[Step::Key(field.to_owned())]].concat();
        Self { path, other: None, text: text.into() }
    }
}

/// The tenant and the index of its rules. `name` is what the source calls a tenant that does not
/// say its own name.
pub(super) fn make(
    document: &TenantDocument,
    name: Option<&str>,
    now: Timestamp,
) -> Result<(Terms, Index), Problem> {
    let written = document.name.0.as_ref().map(|Name(name)| name.as_str());
    let Some(name) = written.or(name) else {
        return Err(Problem::at(&[], "name", "a tenant needs a name"));
    };
    if document.keys_max.0 == Some(Count(0)) {
        return Err(Problem::at(&[], "keys_max", "a tenant needs at least one bucket, not 0"));
    }
    let nothing = DefaultsDocument::default();
    let maker = Maker::new(name, document.defaults.0.as_ref().unwrap_or(&nothing))?;
    let mut rules = Vec::new();
    let limits = document.limits.0.as_deref().unwrap_or_default();
    if !limits.is_empty() {
        rules.push(maker.tenant_limits(limits)?);
    }
    let has_limits = !rules.is_empty();
    let written = document.rules.0.as_deref().unwrap_or_default();
    if written.len() > RULES_MAX {
        let text = format!("{} rules are more than {RULES_MAX}", written.len());
        return Err(Problem::at(&[], "rules", text));
    }
    for (at, rule) in written.iter().enumerate() {
        rules.push(maker.rule(rule, &rule_path(at))?);
    }
    names_differ(&rules, has_limits)?;
    let index = index(&rules, has_limits, now)?;
    let terms = Terms {
        name: name.into(),
        tier: spelled(&document.tier),
        keys_max: document.keys_max.0.map(|Count(most)| most),
        unmatched: spelled(&document.unmatched),
        degrade: spelled(&document.degrade),
        rules: rules.into(),
        has_limits,
    };
    Ok((terms, index))
}

fn rule_path(at: usize) -> Vec<Step> {
    vec![Step::Key("rules".to_owned()), Step::Index(at)]
}

fn index(rules: &[Rule], has_limits: bool, now: Timestamp) -> Result<Index, Problem> {
    let first = usize::from(has_limits);
    let mut index = Index::default();
    for (at, rule) in rules.iter().enumerate().skip(first) {
        if rule.mode == Mode::Off || !rule.lasts(now) {
            continue;
        }
        let at = u32::try_from(at).expect("RULES_MAX fits 32 bits");
        index.insert(rules, at).map_err(|Tie { earlier, later }| {
            let [earlier, later] = [earlier as usize, later as usize];
            let looks_on = [earlier, later]
                .iter()
                .any(|at| rules[*at].until.is_some() && !rules[*at].enforces());
            let what = if looks_on && rules[earlier].until != rules[later].until {
                "a rule in shadow cannot stand over an equal one; write `candidate`"
            } else {
                "make one more specific, or give one of them an `until`"
            };
            let text = format!(
                "rule `{}` and rule `{}` match equally; {what}",
                rules[earlier].name, rules[later].name
            );
            let other = Some(rule_path(earlier - first));
            Problem { path: rule_path(later - first), other, text }
        })?;
        if index.classes() > CLASSES_MAX {
            let text = format!("the rules constrain more than {CLASSES_MAX} sets of dimensions");
            return Err(Problem { path: rule_path(at as usize - first), other: None, text });
        }
    }
    index.finish();
    Ok(index)
}

/// Rules of one name would share a bucket; those that match equally are never in force together.
fn names_differ(rules: &[Rule], has_limits: bool) -> Result<(), Problem> {
    let first = usize::from(has_limits);
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (at, rule) in rules.iter().enumerate().skip(first).filter(|(_, rule)| rule.is_named) {
        let Some(earlier) = known.insert(&rule.name, at) else { continue };
        if rules[earlier].matcher != rule.matcher || rules[earlier].per != rule.per {
            let text = format!("a second rule has the name `{}`", rule.name);
            let path = [rule_path(at - first), vec![Step::Key("name".to_owned())]].concat();
            return Err(Problem { path, other: Some(rule_path(earlier - first)), text });
        }
    }
    Ok(())
}

pub(super) fn spelled<T: Copy>(given: &Given<Spelled<T>>) -> Option<T> {
    given.0.map(|Spelled(meant)| meant)
}
