//! What differs between two sets of tenants, in the words of their documents.
//!
//! A rule is the same one as long as its buckets are: by its name, else by its matcher.

use std::collections::BTreeMap;
use std::fmt;

use super::describe::{Field, rule_fields, tenant_fields};
use super::rule::Rule;
use super::tenant::Terms;

/// One difference: of a tenant, or of one of its rules.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Difference {
    pub(crate) tenant: Box<str>,
    /// The rule's name; none where the tenant itself is meant.
    pub(crate) rule: Option<Box<str>>,
    pub(crate) what: What,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum What {
    Added,
    Removed,
    /// A field that is not written on one side is at its default there.
    Changed {
        field: &'static str,
        before: Option<String>,
        after: Option<String>,
    },
}

/// In the order of tenants by name, then of rules by name.
pub(crate) fn diff<'t>(
    before: impl IntoIterator<Item = &'t Terms>,
    after: impl IntoIterator<Item = &'t Terms>,
) -> Vec<Difference> {
    let by_name = |terms: &'t Terms| (&*terms.name, terms);
    let before: BTreeMap<&str, &Terms> = before.into_iter().map(by_name).collect();
    let after: BTreeMap<&str, &Terms> = after.into_iter().map(by_name).collect();
    let mut differences = Vec::new();
    for (name, both) in paired(before, after) {
        let mut tell = |rule: Option<&str>, what| {
            let rule = rule.map(Into::into);
            differences.push(Difference { tenant: name.into(), rule, what });
        };
        match both {
            Both::Before(_) => tell(None, What::Removed),
            Both::After(_) => tell(None, What::Added),
            Both::Kept(before, after) => {
                for what in changes(tenant_fields(before), tenant_fields(after)) {
                    tell(None, what);
                }
                compare_rules(before, after, tell);
            }
        }
    }
    differences
}

fn compare_rules(before: &Terms, after: &Terms, mut tell: impl FnMut(Option<&str>, What)) {
    for ((name, ..), both) in paired(rules(before), rules(after)) {
        match both {
            Both::Before(_) => tell(Some(name), What::Removed),
            Both::After(_) => tell(Some(name), What::Added),
            Both::Kept(before, after) => {
                for what in changes(rule_fields(before), rule_fields(after)) {
                    tell(Some(name), what);
                }
            }
        }
    }
}

/// A rule that ends and one that is off may have the name of one that is in force.
type RuleKey<'t> = (&'t str, bool, usize);

fn rules(terms: &Terms) -> BTreeMap<RuleKey<'_>, &Rule> {
    let mut rules = BTreeMap::new();
    for rule in &terms.rules {
        let mut key = (&*rule.name, rule.until.is_some(), 0);
        while rules.contains_key(&key) {
            key.2 += 1;
        }
        rules.insert(key, rule);
    }
    rules
}

enum Both<T> {
    Before(T),
    After(T),
    Kept(T, T),
}

/// Every key of either side, in order.
fn paired<K: Ord, T>(before: BTreeMap<K, T>, after: BTreeMap<K, T>) -> BTreeMap<K, Both<T>> {
    let mut paired: BTreeMap<K, Both<T>> =
        before.into_iter().map(|(key, value)| (key, Both::Before(value))).collect();
    for (key, value) in after {
        let both = match paired.remove(&key) {
            Some(Both::Before(before)) => Both::Kept(before, value),
            Some(Both::After(_) | Both::Kept(..)) | None => Both::After(value),
        };
        paired.insert(key, both);
    }
    paired
}

fn changes(before: Vec<Field>, after: Vec<Field>) -> impl Iterator<Item = What> {
    let paired = paired(before.into_iter().collect(), after.into_iter().collect());
    paired.into_iter().filter_map(|(field, both)| {
        let (before, after) = match both {
            Both::Before(before) => (Some(before), None),
            Both::After(after) => (None, Some(after)),
            Both::Kept(before, after) if before == after => return None,
            Both::Kept(before, after) => (Some(before), Some(after)),
        };
        Some(What::Changed { field, before, after })
    })
}

/// A line such as `payment: endpoint=/pay: limits: 5 per 1s -> 7 per 1s`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.tenant)?;
        if let Some(rule) = &self.rule {
            write!(f, "{rule}: ")?;
        }
        match &self.what {
            What::Added => f.write_str("added"),
            What::Removed => f.write_str("removed"),
            What::Changed { field, before, after } => {
                let shown = |side: &Option<String>| side.clone().unwrap_or("(default)".to_owned());
                write!(f, "{field}: {} -> {}", shown(before), shown(after))
            }
        }
    }
}
