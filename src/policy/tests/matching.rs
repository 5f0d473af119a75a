//! Which rules apply: against a slow plain reference, and by example.

use std::cmp::Ordering;
use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use proptest::sample::select;

use super::{NOW, book};
use crate::policy::{Facts, Mode, Pattern, Rule, Tenant};
use crate::time::Duration;

/// The names of the rules that apply to a request, written as `endpoint caller name=value`.
fn matching(document: &str, request: &str) -> Vec<String> {
    let book = book(document);
    let snapshot = book.snapshot();
    let tenant = snapshot.tenants().next().expect("one tenant");
    names(tenant, &facts(request))
}

fn names(tenant: &Tenant, facts: &Facts<'_>) -> Vec<String> {
    tenant.matching(facts, NOW).iter().map(|found| found.rule.name.to_string()).collect()
}

/// `-` stands for none.
fn facts(request: &str) -> Facts<'_> {
    let mut facts = Facts::default();
    for (word, name) in request.split(' ').zip([Some("endpoint"), Some("caller")]) {
        if let Some(name) = name.filter(|_| word != "-") {
            facts.note(name.as_bytes(), word.as_bytes());
        }
    }
    for attribute in request.split(' ').skip(2) {
        let (name, value) = attribute.split_once('=').expect("name=value");
        facts.note(name.as_bytes(), value.as_bytes());
    }
    facts
}

const PRECEDENCE: &str = "
limits: [{limit: 9, window: 1s}]
rules:
  - {name: foo, caller: foo, limit: 9, window: 1s}
  - {name: each, caller: '*', per: [caller], limit: 9, window: 1s}
  - {name: get, endpoint: 'Get*', limit: 9, window: 1s}
  - {name: getuser, endpoint: GetUser, limit: 9, window: 1s}
  - {name: all, limit: 9, window: 1s}
  - {name: both, endpoint: 'Get*', caller: foo, limit: 9, window: 1s}
  - {name: off, endpoint: GetX, caller: foo, limit: 9, window: 1s, mode: off}
  - {name: ip, per: [ip], limit: 9, window: 1s}
";

#[test]
fn most_specific_rule_of_each_class_applies_in_the_order_of_the_document() {
    let rows = [
        ("GetUser foo", "limits foo getuser all both"),
        ("GetX bar", "limits each get all"),
        ("GetX foo", "limits foo get all both"),
        ("Put foo", "limits foo all"),
        ("- foo", "limits foo all"),
        ("- -", "limits all"),
        ("- - ip=10.0.0.1", "limits all ip"),
    ];
    for (request, expected) in rows {
        assert_eq!(matching(PRECEDENCE, request).join(" "), expected, "{request}");
    }
}

#[test]
fn endpoint_counts_before_caller_before_attributes_by_name() {
    let document = "
rules:
  - {name: e, endpoint: /a, match: {x: '*', caller: '*'}, limit: 1, window: 1s}
  - {name: c, endpoint: '/*', match: {x: '*', caller: c}, limit: 1, window: 1s}
  - {name: x, endpoint: '/*', match: {x: x, caller: 'c*'}, limit: 1, window: 1s}
";
    let rows = [("/a c x=x", "e"), ("/b c x=x", "c"), ("/b cc x=x", "x"), ("/b cc x=y", "")];
    for (request, expected) in rows {
        assert_eq!(matching(document, request).join(" "), expected, "{request}");
    }
}

#[test]
fn rule_in_shadow_displaces_none_that_enforces() {
    let document = "
rules:
  - {name: wide, endpoint: '/*', limit: 9, window: 1s}
  - {name: look, endpoint: '/a*', mode: shadow, limit: 1, window: 1s}
  - {name: percent, endpoint: '/ab*', enforce_percent: 0, limit: 1, window: 1s}
  - {name: exact, endpoint: '/abc', limit: 1, window: 1s}
";
    let rows =
        [("/x -", "wide"), ("/a -", "wide look"), ("/ab -", "wide percent"), ("/abc -", "exact")];
    for (request, expected) in rows {
        assert_eq!(matching(document, request).join(" "), expected, "{request}");
    }
}

#[test]
fn rule_with_an_end_stands_over_its_equal_until_then() {
    let document = "
rules:
  - {name: stays, endpoint: /a, limit: 9, window: 1s}
  - {name: ends, endpoint: /a, limit: 1, window: 1s, until: '2026-01-01T00:30:00Z'}
";
    let book = book(document);
    let snapshot = book.snapshot();
    let tenant = snapshot.tenants().next().expect("one tenant");
    let at = |now| tenant.matching(&facts("/a -"), now)[0].rule.name.to_string();
    let end = NOW + Duration::from_secs(1_800);
    assert_eq!(at(NOW), "ends");
    assert_eq!(at(end - Duration::from_micros(1)), "ends");
    assert_eq!(at(end), "stays");
}

#[test]
fn bucket_is_named_by_tenant_rule_quota_and_values() {
    let document = "
rules:
  - {name: r, per: [ip, caller], limits: [{limit: 1, window: 1s}, {limit: 9, window: 1m}]}
";
    let book = book(document);
    let snapshot = book.snapshot();
    let tenant = snapshot.tenants().next().expect("one tenant");
    let name = |request: &'static str, quota: usize| {
        let facts = facts(request);
        let found = &tenant.matching(&facts, NOW)[0];
        let mut name = Vec::new();
        found.bucket_name(&found.rule.quotas[quota], |part| name.extend_from_slice(part));
        name
    };
    let first = name("- ab ip=c", 0);
    assert_eq!(first, b"\x06source\x02nr\x02p\0\x05ca\x02ip\x02ab\x01c");
    for other in [name("- ab ip=c", 1), name("- a ip=bc", 0), name("/x abc ip=c", 0)] {
        assert_ne!(other, first);
    }
    let owner = tenant.owner_of(&first).expect("the rule is there");
    assert_eq!((&*owner.rule.name, owner.values), ("r", vec![&b"ab"[..], b"c"]));
    let mut prefix = Vec::new();
    tenant.bucket_prefix(&mut prefix);
    assert!(first.starts_with(&prefix));
}

/// Whether rule `left` is more specific than `right` of the same class, by the definition.
fn specific(left: &Rule, right: &Rule) -> Ordering {
    let rank = |pattern: &Pattern| match pattern {
        Pattern::Exact(_) => (2, 0),
        Pattern::Prefix(text) => (1, text.len()),
        Pattern::Any => (0, 0),
    };
    let ranks = |rule: &Rule| -> Vec<(usize, usize)> {
        rule.matcher.constraints().iter().map(|(_, pattern)| rank(pattern)).collect()
    };
    ranks(left).cmp(&ranks(right)).then(left.until.is_some().cmp(&right.until.is_some()))
}

fn applies(rule: &Rule, facts: &Facts<'_>) -> bool {
    let value = |name: &str| match name {
        "endpoint" => facts.endpoint,
        "caller" => facts.caller,
        other => {
            facts.attributes.iter().find(|(known, _)| *known == other.as_bytes()).map(|it| it.1)
        }
    };
    rule.mode != Mode::Off
        && rule.until.is_none_or(|until| NOW < until)
        && rule.matcher.constraints().iter().all(|(dimension, pattern)| {
            value(dimension.name()).is_some_and(|value| match pattern {
                Pattern::Exact(text) => value == text.as_bytes(),
                Pattern::Prefix(text) => value.starts_with(text.as_bytes()),
                Pattern::Any => true,
            })
        })
}

/// Looks at every rule.
fn reference(tenant: &Tenant, facts: &Facts<'_>) -> Vec<String> {
    let rules: Vec<&Rule> = tenant.rules.iter().filter(|rule| applies(rule, facts)).collect();
    let is_best = |rule: &Rule, among: &dyn Fn(&Rule) -> bool| {
        rules
            .iter()
            .filter(|other| other.class() == rule.class() && among(other))
            .all(|other| specific(other, rule) != Ordering::Greater)
    };
    let is_chosen = |rule: &&&Rule| {
        if rule.enforces() { is_best(rule, &Rule::enforces) } else { is_best(rule, &|_| true) }
    };
    rules.iter().filter(is_chosen).map(|rule| rule.name.to_string()).collect()
}

/// Rules over few words, so that they often meet; equal matchers are left out.
fn documents() -> impl Strategy<Value = String> {
    let patterns = || select(vec!["", "", "a", "ab", "abc", "b", "a*", "ab*", "b*", "*"]);
    let modes = select(vec!["enforce", "enforce", "enforce", "shadow", "off"]);
    let rule = (patterns(), patterns(), patterns(), patterns(), modes, any::<bool>());
    vec(rule, 1..60).prop_map(|rules| {
        let mut document = "rules:\n".to_owned();
        let mut known = std::collections::HashSet::new();
        for (at, (endpoint, caller, x, y, mode, ends)) in rules.into_iter().enumerate() {
            // Of equal ones only an enforced rule with an end may stand over one without.
            let ends = ends && mode == "enforce";
            if !known.insert((endpoint, caller, x, y, ends)) {
                continue;
            }
            let constraints: Vec<String> =
                [("endpoint", endpoint), ("caller", caller), ("x", x), ("y", y)]
                    .into_iter()
                    .filter(|(_, pattern)| !pattern.is_empty())
                    .map(|(name, pattern)| format!("{name}: '{pattern}'"))
                    .collect();
            let until = if ends { ", until: '2026-06-01T00:00:00Z'" } else { "" };
            writeln!(
                document,
                "  - {{name: r{at}, match: {{{}}}, limit: 1, window: 1s, mode: {mode}{until}}}",
                constraints.join(", ")
            )
            .expect("a String takes it");
        }
        document
    })
}

proptest! {
    #[test]
    fn search_finds_what_looking_at_every_rule_finds(
        document in documents(),
        requests in vec(vec(select(vec!["-", "a", "ab", "abc", "abcd", "b", "c"]), 4), 1..20),
    ) {
        let book = book(&document);
        let snapshot = book.snapshot();
        let tenant = snapshot.tenants().next().expect("one tenant");
        for values in &requests {
            let mut facts = Facts::default();
            for (name, value) in ["endpoint", "caller", "x", "y"].into_iter().zip(values) {
                if *value != "-" {
                    facts.note(name.as_bytes(), value.as_bytes());
                }
            }
            prop_assert_eq!(names(tenant, &facts), reference(tenant, &facts));
        }
    }
}
