//! Golden documents: what each makes, or the exact complaint.

use std::fmt::Write;

use super::{NOW, OPTIONS};
use crate::policy::{Terms, parse, rule_fields, tenant_fields};
use crate::size::Bytes;

/// Name, document and what is expected of it.
fn cases(golden: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    golden.split("\n### ").skip(1).map(|case| {
        let (name, rest) = case.split_once('\n').expect("a case has a name");
        let (document, expected) = rest.split_once("\n=>\n").expect("a case has an arrow");
        (name, document, expected.trim_end())
    })
}

fn shown(tenants: &[Terms]) -> String {
    let mut shown = String::new();
    for terms in tenants {
        shown += &terms.name;
        for (field, value) in tenant_fields(terms) {
            write!(shown, " {field}={value}").expect("a String takes it");
        }
        shown += "\n";
        for rule in &terms.rules {
            let fields: Vec<String> = rule_fields(rule)
                .into_iter()
                .filter(|(field, value)| {
                    *field != "match" || (*value != *rule.name && value != "*")
                })
                .map(|(field, value)| format!("{field}: {value}"))
                .collect();
            writeln!(shown, "  {} [{}] {}", rule.name, rule.class(), fields.join("; "))
                .expect("a String takes it");
        }
    }
    shown.trim_end().to_owned()
}

fn play(golden: &str) {
    let mut wrong = String::new();
    let mut played = 0;
    for (name, document, expected) in cases(golden) {
        let read = parse(document.as_bytes(), Some("source"), &OPTIONS, NOW);
        let found = match read {
            Ok(tenants) => shown(&tenants),
            Err(complaint) => complaint.to_string(),
        };
        if found != expected {
            write!(wrong, "### {name}\n{document}\n=>\n{found}\n").expect("a String takes it");
        }
        played += 1;
    }
    assert!(played > 5, "the cases were not found");
    assert!(wrong.is_empty(), "these came out otherwise:\n{wrong}");
}

#[test]
fn good_documents_make_what_they_say() {
    play(include_str!("../golden/accepted.txt"));
}

#[test]
fn bad_documents_are_told_the_place_and_what_is_right() {
    play(include_str!("../golden/refused.txt"));
}

#[test]
fn document_is_refused_by_its_size_before_it_is_read() {
    let mut options = OPTIONS;
    options.document_bytes_max = Bytes::new(8);
    let refused = parse(b"name: abcd", None, &options, NOW).expect_err("it has ten bytes");
    assert_eq!(refused.to_string(), "1:1: the document has 10 bytes, more than 8");
}

#[test]
fn document_that_is_no_text_is_told_where() {
    let refused = parse(b"name: a\nx: \xff", None, &OPTIONS, NOW).expect_err("no UTF-8");
    let expected = "2:4: the document is no text: here stands what is not UTF-8";
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn document_of_ten_thousand_rules_with_one_mistake_is_told_its_line() {
    let mut document = "name: a\nrules:\n".to_owned();
    for rule in 0..10_000 {
        writeln!(document, "  - {{endpoint: /{rule}, limit: 5, window: 1s}}").expect("a String");
    }
    document += "  - {endpoint: /77, limit: 5, window: 1s}\n";
    let refused = parse(document.as_bytes(), None, &OPTIONS, NOW).expect_err("a tie");
    assert_eq!(
        refused.to_string(),
        "10003:5: rules[10000]: rule `endpoint=/77` and rule `endpoint=/77` match equally; make \
         one more specific, or give one of them an `until` (the first stands at line 80)"
    );
}
