//! Writes a rule that ends by itself into a document: what an operator does in an incident.
//!
//! The rule matches what an existing one for the endpoint matches, and has its name, so it counts
//! on in the same buckets; where there is none, it matches the endpoint alone. It takes the place
//! of an earlier one that ends. Only its own line of the document changes. Where the layout does
//! not let that be, the document is written anew, without its comments.
//!
//! Invariant: read again, the document says what it said, and the rule besides.

use serde_json::{Map, Value, json};

use crate::time::Timestamp;
use crate::yaml::{Complaint, Step, locate};

use super::compile::{Compiled, compile};
use super::options::Options;
use super::pattern::{Dimension, Pattern};
use super::rule::{Mode, Rule};
use super::tenant::Terms;

/// What shall hold for a while.
#[derive(Debug)]
pub(crate) struct Override<'a> {
    pub(crate) tenant: &'a str,
    /// As rules write it: exact, `prefix*` or `*`.
    pub(crate) endpoint: &'a str,
    /// A number, or `unlimited`.
    pub(crate) limit: &'a str,
    pub(crate) window: &'a str,
    pub(crate) until: Timestamp,
}

/// The document with the rule in it.
#[derive(Debug)]
pub(crate) struct Amended {
    pub(crate) text: String,
    /// Whether comments and layout are as they were.
    pub(crate) is_faithful: bool,
}

/// Why there is no such document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AmendError {
    #[error("{0}")]
    Document(Complaint),
    #[error("the document has no tenant `{0}`")]
    Tenant(String),
    #[error("several rules are for this endpoint ({0}); write the rule into the document")]
    Several(String),
}

/// The document with the override as the first of its tenant's rules.
pub(crate) fn amend(
    text: &str,
    wanted: &Override<'_>,
    options: &Options,
    now: Timestamp,
) -> Result<Amended, AmendError> {
    let read = |text: &str| {
        compile(text.as_bytes(), Some(wanted.tenant), options.document_bytes_max, now)
            .map_err(AmendError::Document)
    };
    let before = read(text)?;
    let at = before.drafts.iter().position(|(terms, _)| *terms.name == *wanted.tenant);
    let at = at.ok_or_else(|| AmendError::Tenant(wanted.tenant.to_owned()))?;
    let terms = &before.drafts[at].0;
    let base = base(terms, wanted.endpoint)?;
    let rule = written(wanted, base);
    let replaced = replaced(terms, base, wanted.endpoint);
    let place = Place { is_list: before.is_list, at, replaced };
    let is_right = |text: &str| read(text).is_ok_and(|after| place.only_adds(&before, &after));
    if let Some(text) = place.by_line(text, &rule).filter(|text| is_right(text)) {
        return Ok(Amended { text, is_faithful: true });
    }
    let text = place.anew(text, rule).unwrap_or_default();
    // A limit that cannot be is told as the document's own complaint.
    read(&text)?;
    Ok(Amended { text, is_faithful: false })
}

/// The rule in force for the endpoint whose place is taken; none where there is none.
fn base<'t>(terms: &'t Terms, endpoint: &str) -> Result<Option<&'t Rule>, AmendError> {
    let mut found: Vec<&Rule> =
        own_rules(terms).filter(|rule| rule.mode != Mode::Off && rule.until.is_none()).collect();
    found.retain(|rule| is_for(rule, endpoint));
    match *found.as_slice() {
        [] => Ok(None),
        [rule] => Ok(Some(rule)),
        _ => {
            let alone = found.iter().find(|rule| rule.matcher.constraints().len() == 1);
            let names: Vec<&str> = found.iter().map(|rule| &*rule.name).collect();
            alone.copied().map(Some).ok_or_else(|| AmendError::Several(names.join("; ")))
        }
    }
}

fn own_rules(terms: &Terms) -> impl Iterator<Item = &Rule> {
    terms.rules.iter().skip(usize::from(terms.has_limits))
}

fn is_for(rule: &Rule, endpoint: &str) -> bool {
    let mut constraints = rule.matcher.constraints().iter();
    constraints.any(|(dimension, pattern)| {
        *dimension == Dimension::Endpoint && pattern.to_string() == endpoint
    })
}

/// The place of an earlier rule that ends and matches the same.
fn replaced(terms: &Terms, base: Option<&Rule>, endpoint: &str) -> Option<usize> {
    own_rules(terms).position(|rule| {
        let is_same = match base {
            Some(base) => rule.matcher == base.matcher,
            None => rule.matcher.constraints().len() == 1 && is_for(rule, endpoint),
        };
        rule.until.is_some() && is_same
    })
}

/// The rule as a mapping: that of the document whose place it takes, with another limit.
fn written(wanted: &Override<'_>, base: Option<&Rule>) -> Value {
    let mut rule = Map::new();
    if let Some(base) = base {
        if base.is_named {
            rule.insert("name".into(), json!(*base.name));
        }
        let mut matches = Map::new();
        for (dimension, pattern) in base.matcher.constraints() {
            // What `per` alone constrains is any value.
            if base.per.contains(dimension) && *pattern == Pattern::Any {
                continue;
            }
            let pattern = json!(pattern.to_string());
            match dimension {
                Dimension::Endpoint | Dimension::Caller => {
                    rule.insert(dimension.name().into(), pattern);
                }
                Dimension::Attribute(name) => {
                    matches.insert(String::from(&**name), pattern);
                }
            }
        }
        if !matches.is_empty() {
            rule.insert("match".into(), matches.into());
        }
        if !base.per.is_empty() {
            let names: Vec<&str> = base.per.iter().map(Dimension::name).collect();
            rule.insert("per".into(), json!(names));
        }
    } else {
        rule.insert("endpoint".into(), json!(wanted.endpoint));
    }
    let limit = wanted.limit.parse::<u64>().map_or_else(|_| json!(wanted.limit), |n| json!(n));
    let is_unlimited = limit.is_string();
    rule.insert("limit".into(), limit);
    if !is_unlimited {
        rule.insert("window".into(), json!(wanted.window));
    }
    let until_s = i64::try_from(wanted.until.as_micros().div_ceil(1_000_000)).unwrap_or(i64::MAX);
    let until = jiff::Timestamp::from_second(until_s).unwrap_or(jiff::Timestamp::MAX);
    rule.insert("until".into(), json!(until.to_string()));
    rule.into()
}

/// Where in the document the rule goes.
struct Place {
    is_list: bool,
    /// Of the tenant.
    at: usize,
    /// The rule that goes.
    replaced: Option<usize>,
}

impl Place {
    /// Puts a line in front of the tenant's first rule, in the same column.
    fn by_line(&self, text: &str, rule: &Value) -> Option<String> {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let head = |line: &str, column: usize| {
            let head = line.get(..column.checked_sub(1)?)?;
            (head.trim_start() == "- ").then(|| head.to_owned())
        };
        let (first, column) = locate(text, &self.rule(0));
        let head_of_first = head(lines.get(first.checked_sub(1)?)?, column)?;
        if let Some(replaced) = self.replaced {
            let (line, column) = locate(text, &self.rule(replaced));
            let old = lines.get(line.checked_sub(1)?)?;
            head(old, column).filter(|_| old.trim_end().ends_with('}'))?;
            lines.remove(line - 1);
        }
        let added = format!("{head_of_first}{rule}\n");
        lines.insert(first - 1, &added);
        Some(lines.concat())
    }

    fn rule(&self, at: usize) -> Vec<Step> {
        let mut path = Vec::new();
        if self.is_list {
            path = vec![Step::Key("tenants".to_owned()), Step::Index(self.at)];
        }
        path.extend([Step::Key("rules".to_owned()), Step::Index(at)]);
        path
    }

    /// Writes the whole document again.
    fn anew(&self, text: &str, rule: Value) -> Option<String> {
        let mut document: Value = crate::yaml::read(text).ok()?;
        let tenant = if self.is_list {
            document.get_mut("tenants")?.get_mut(self.at)?
        } else {
            &mut document
        };
        let rules = tenant.as_object_mut()?.entry("rules").or_insert_with(|| json!([]));
        let rules = rules.as_array_mut()?;
        if let Some(replaced) = self.replaced {
            rules.remove(replaced);
        }
        rules.insert(0, rule);
        serde_yaml::to_string(&document).ok()
    }

    /// Whether the second says what the first does, but for the rule.
    fn only_adds(&self, before: &Compiled, after: &Compiled) -> bool {
        let pairs = before.drafts.iter().zip(&after.drafts).enumerate();
        let others_hold =
            pairs.clone().all(|(at, ((one, _), (two, _)))| at == self.at || one == two);
        let kept = |terms: &Terms| {
            let kept = own_rules(terms).enumerate().filter(|(at, _)| Some(*at) != self.replaced);
            kept.map(|(_, rule)| rule.name.clone()).collect::<Vec<_>>()
        };
        let [one, two] = [before, after].map(|compiled| &compiled.drafts[self.at].0);
        let rest: Vec<_> = own_rules(two).skip(1).map(|rule| rule.name.clone()).collect();
        before.drafts.len() == after.drafts.len()
            && others_hold
            && kept(one) == rest
            && own_rules(two).next().is_some_and(|rule| rule.until.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Unmatched;
    use crate::size::Bytes;

    fn amended(text: &str, limit: &str) -> Result<Amended, AmendError> {
        let options =
            Options { unmatched: Unmatched::Allow, document_bytes_max: Bytes::new(9_999) };
        let until = Timestamp::from_millis(1_700_000_000_000);
        let (tenant, endpoint, window) = ("a", "/x", "1s");
        amend(
            text,
            &Override { tenant, endpoint, limit, window, until },
            &options,
            Timestamp::EPOCH,
        )
    }

    #[test]
    fn rule_is_one_line_and_takes_the_place_of_the_one_before() {
        let text = "# ours\nname: a\nrules:\n  # slow\n  - name: x\n    endpoint: /x\n    \
                    per: [user]\n    limit: 5\n    window: 1s\n";
        let first = amended(text, "7").expect("it can be written");
        let line = "  - {\"endpoint\":\"/x\",\"limit\":7,\"name\":\"x\",\"per\":[\"user\"],\
                    \"until\":\"2023-11-14T22:13:20Z\",\"window\":\"1s\"}\n";
        assert_eq!(first.text, text.replace("  - name: x\n", &format!("{line}  - name: x\n")));
        assert!(first.is_faithful);
        let second = amended(&first.text, "9").expect("it can be written");
        assert_eq!(second.text, first.text.replace("\"limit\":7", "\"limit\":9"));
    }

    #[test]
    fn document_of_another_layout_is_written_anew() {
        let text = "tenants: [{name: b, rules: []}, {name: a}]\n";
        let amended = amended(text, "unlimited").expect("it can be written");
        assert!(!amended.is_faithful);
        assert!(amended.text.contains("limit: unlimited"), "{}", amended.text);
    }

    #[test]
    fn what_cannot_be_is_told() {
        let text = "name: a\nrules:\n  - {endpoint: /x, limit: 1, window: 1s}\n";
        assert!(matches!(amended(text, "lots"), Err(AmendError::Document(_))));
        assert!(matches!(amended("name: [", "1"), Err(AmendError::Document(_))));
        let other = text.replace("name: a", "name: b");
        assert!(matches!(amended(&other, "1"), Err(AmendError::Tenant(_))));
    }
}
