//! The house rules, proven on the tree as it stands.
//!
//! Plain file reading: no build, no dependency. Each rule is a function from the tree to
//! findings, and a finding names the place, the rule and what to do instead. Beside the tree,
//! each rule is shown a small bad sample, so that none can rot into one that never fails.
//!
//! CONTRIBUTING.md says why the rules are as they are.

#[path = "tidy/layout.rs"]
mod layout;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/words.rs"]
mod words;

use tree::Tree;

/// A broken rule: `file:line: what is wrong; what to do instead`.
type Finding = String;

/// A rule, and a small tree that breaks it: each file in `bad`, and none in `beside`.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
    beside: &'static [(&'static str, &'static str)],
    bad: &'static [(&'static str, &'static str)],
}

const RULES: [&[Rule]; 4] = [rooms::RULES, words::RULES, shape::RULES, layout::RULES];

#[test]
fn the_tree_keeps_every_house_rule() {
    let tree = Tree::read(env!("CARGO_MANIFEST_DIR"));
    assert!(tree.files.len() > 5, "the tree was not found");
    let findings: Vec<Finding> =
        RULES.into_iter().flatten().flat_map(|rule| (rule.check)(&tree)).collect();
    assert!(findings.is_empty(), "{} broken rules:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn every_rule_can_fail() {
    for rule in RULES.into_iter().flatten() {
        let findings = (rule.check)(&Tree::of([rule.beside, rule.bad].concat()));
        let is_found = |path: &str| findings.iter().any(|found| found.starts_with(path));
        for (path, _) in rule.bad {
            assert!(is_found(path), "`{}` found nothing wrong in {path}", rule.name);
        }
        for (path, _) in rule.beside {
            assert!(!is_found(path), "`{}` found fault in {path}", rule.name);
        }
    }
}

#[test]
fn a_clean_tree_breaks_no_rule() {
    let tree = Tree::of([
        (
            "src/lib.rs",
            "//! A.\n\n// Core: b.\npub mod time; // when\nmod engine;\n// Edges\nmod server;\n",
        ),
        ("src/time/mod.rs", "//! When.\n\npub struct Timestamp;\n"),
        ("src/engine/mod.rs", "//! B.\n\nuse crate::time::{Clock, Timestamp};\n\nmod slab;\n"),
        (
            "src/engine/slab.rs",
            "//! C: says \"tokio::spawn\" only here.\n\n// As std::fs would.\n\
             const TEXT: &str = \"crate::server::x\";\n\
             #[cfg(test)]\nmod tests {\n    use super::*;\n    fn a() { b.unwrap(); }\n}\n",
        ),
        ("src/server/mod.rs", "//! D.\n\nuse crate::engine::Engine;\nuse tokio::net;\n"),
    ]);
    for rule in RULES.into_iter().flatten() {
        assert_eq!((rule.check)(&tree), Vec::<Finding>::new(), "{}", rule.name);
    }
}
