//! The book: what is in force after which changes, and what is said of the rest.

use super::{NOW, OPTIONS, book, put};
use crate::policy::{Applied, Book, Change, Facts, QuotaKind};

const GOOD: &str = "rules: [{limit: 3, window: 1s}]";

fn gone(source: &str) -> Change {
    Change::Gone { source: source.into(), revision: 0 }
}

/// The limit in force for a tenant, if it is in force.
fn limit(book: &Book, tenant: &str) -> Option<u64> {
    let snapshot = book.snapshot();
    let tenant = snapshot.tenant(tenant.as_bytes())?;
    let matches = tenant.matching(&Facts::default(), NOW);
    match &matches.first()?.rule.quotas[0].kind {
        QuotaKind::Plain(quota) => Some(quota.limit()),
        _ => None,
    }
}

fn rule(limit: u64) -> String {
    format!("rules: [{{limit: {limit}, window: 1s}}]")
}

fn refused(applied: &Applied) -> Vec<&str> {
    applied.refused.iter().map(|status| &*status.source).collect()
}

#[test]
fn bad_document_among_good_ones_leaves_its_last_good_one() {
    let mut book = Book::new(&OPTIONS);
    book.apply(vec![put("b", &rule(7), 1)], NOW);
    let batch = vec![put("a", &rule(3), 2), put("b", "{broken", 3), put("c", &rule(4), 4)];
    let applied = book.apply(batch, NOW);
    assert_eq!(refused(&applied), ["b"]);
    assert_eq!(["a", "b", "c"].map(|name| limit(&book, name)), [Some(3), Some(7), Some(4)]);
    let status = &book.status()[1];
    assert_eq!((status.revision, status.in_force, status.line), (3, Some(1), 1));
    assert!(status.error.is_some());
    book.apply(vec![put("b", &rule(5), 5)], NOW);
    assert_eq!(limit(&book, "b"), Some(5));
    assert_eq!(book.status()[1].error, None);
    assert_eq!(book.snapshot().revision, 5);
}

#[test]
fn document_that_was_never_good_has_no_tenant() {
    let mut book = Book::new(&OPTIONS);
    book.apply(vec![put("a", "limit: x", 1)], NOW);
    assert_eq!(limit(&book, "a"), None);
    assert_eq!(book.status()[0].in_force, None);
}

#[test]
fn same_complaint_is_told_once() {
    let mut book = Book::new(&OPTIONS);
    assert_eq!(refused(&book.apply(vec![put("a", "{broken", 1)], NOW)), ["a"]);
    assert_eq!(refused(&book.apply(vec![put("a", "{broken", 2)], NOW)), Vec::<&str>::new());
    assert_eq!(refused(&book.apply(vec![put("a", "broken}", 3)], NOW)), ["a"]);
}

#[test]
fn text_that_says_the_same_changes_no_tenant() {
    let mut book = book(GOOD);
    let before = book.snapshot();
    for text in [GOOD.to_owned(), format!("{GOOD} \n# as before\n")] {
        let applied = book.apply(vec![put("source", &text, 2)], NOW);
        assert!(applied.changed.is_empty());
    }
    let tenant = |snapshot: &crate::policy::Snapshot| {
        std::sync::Arc::as_ptr(snapshot.tenant(b"source").expect("it is in force"))
    };
    assert_eq!(tenant(&before), tenant(&book.snapshot()));
    assert_eq!(book.status()[0].in_force, Some(2));
}

#[test]
fn change_moves_the_revision_of_its_tenant_alone() {
    let mut book = Book::new(&OPTIONS);
    book.apply(vec![put("a", GOOD, 1), put("b", GOOD, 2)], NOW);
    let revision = |book: &Book, name: &str| {
        book.snapshot().tenant(name.as_bytes()).map(|tenant| tenant.revision)
    };
    let (a, b) = (revision(&book, "a"), revision(&book, "b"));
    let applied = book.apply(vec![put("b", &rule(9), 3)], NOW);
    assert_eq!(applied.changed.join(" "), "b");
    assert_eq!(revision(&book, "a"), a);
    assert!(revision(&book, "b") > b);
    book.apply(vec![gone("b")], NOW);
    book.apply(vec![put("b", &rule(9), 4)], NOW);
    assert!(revision(&book, "b") > Some(b.unwrap() + 1), "it never comes back to an old one");
}

#[test]
fn tenant_in_two_documents_refuses_the_later_one_and_names_both() {
    let mut book = Book::new(&OPTIONS);
    let named = |limit| format!("name: rl\n{}", rule(limit));
    book.apply(vec![put("cfg/a.yaml", &named(1), 1), put("other", GOOD, 1)], NOW);
    let applied = book.apply(vec![put("cfg/b.yaml", &named(2), 2)], NOW);
    assert_eq!(refused(&applied), ["cfg/b.yaml"]);
    let error = applied.refused[0].error.as_deref();
    assert_eq!(error, Some("tenant `rl` is in `cfg/a.yaml` already, and in `cfg/b.yaml` too"));
    assert_eq!((limit(&book, "rl"), limit(&book, "other")), (Some(1), Some(3)));
    book.apply(vec![gone("cfg/a.yaml")], NOW);
    assert_eq!(limit(&book, "rl"), Some(2), "the other takes over when it is free");
}

#[test]
fn tenant_moves_between_documents_in_any_order_of_one_batch() {
    let named = "name: rl\nrules: [{limit: 5, window: 1s}]";
    for is_reversed in [false, true] {
        let mut book = Book::new(&OPTIONS);
        book.apply(vec![put("old", named, 1)], NOW);
        let mut batch = vec![put("new", named, 2), gone("old")];
        if is_reversed {
            batch.reverse();
        }
        let applied = book.apply(batch, NOW);
        assert!(applied.refused.is_empty() && applied.removed.is_empty());
        assert_eq!(limit(&book, "rl"), Some(5));
        assert_eq!(book.document("rl").map(|(source, _)| source), Some("new"));
    }
}

#[test]
fn removed_document_removes_its_tenants() {
    let list = "tenants: [{name: x, rules: []}, {name: y, limits: [{limit: 3, window: 1s}]}]";
    let mut book = book(list);
    assert_eq!(book.snapshot().tenants().count(), 2);
    let shorter = "tenants: [{name: y, limits: [{limit: 3, window: 1s}]}]";
    let applied = book.apply(vec![put("source", shorter, 2)], NOW);
    assert_eq!((applied.removed.join(" "), applied.changed.len()), ("x".to_owned(), 0));
    let applied = book.apply(vec![gone("source")], NOW);
    assert_eq!(applied.removed.join(" "), "y");
    assert_eq!(book.snapshot().tenants().count(), 0);
    assert!(book.status().is_empty());
}

#[test]
fn full_reload_forgets_what_it_does_not_name() {
    let mut book = Book::new(&OPTIONS);
    book.apply(vec![put("a", GOOD, 1), put("b", GOOD, 1)], NOW);
    let only = Change::Only { sources: vec!["b".into()], revision: 9 };
    let applied = book.apply(vec![only], NOW);
    assert_eq!(applied.removed.join(" "), "a");
    assert_eq!(book.snapshot().revision, 9);
    assert_eq!(limit(&book, "b"), Some(3));
}

#[test]
fn empty_document_removes_nobody() {
    let mut book = book(GOOD);
    let applied = book.apply(vec![put("source", "", 2)], NOW);
    assert_eq!(refused(&applied), ["source"]);
    assert_eq!(limit(&book, "source"), Some(3));
}
