//! What README says of the program, held to what the program says of itself.
//!
//! A part of README that repeats what the code knows is a view of it: the tests here build the
//! part anew, and one that differs fails with the rows to paste.

use std::collections::{BTreeMap, BTreeSet};

use crate::server::Tollgate;
use crate::transcript::{Section, all};

const README: &str = include_str!("../../README.md");

/// The rows between a heading's table head and the next empty line, or its list likewise.
fn part<'r>(heading: &str, head: &str) -> Vec<&'r str> {
    let after = README.split_once(&format!("\n## {heading}\n")).map(|(_, after)| after);
    let section = after.unwrap_or_else(|| panic!("README has no heading `{heading}`"));
    let rows = section.lines().skip_while(|line| !line.starts_with(head));
    rows.take_while(|line| !line.is_empty()).collect()
}

fn assert_same(named: &str, found: &[&str], expected: &[String]) {
    assert!(
        found == expected,
        "README's {named} should be:\n\n{}\n\nWhat differs:\n{}",
        expected.join("\n"),
        differing(found, expected).join("\n")
    );
}

fn differing(found: &[&str], expected: &[String]) -> Vec<String> {
    let added = expected.iter().filter(|row| !found.contains(&row.as_str()));
    let gone = found.iter().filter(|row| !expected.iter().any(|one| one == *row));
    added.map(|row| format!("+ {row}")).chain(gone.map(|row| format!("- {row}"))).collect()
}

#[test]
fn readme_lists_every_command_under_its_group() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in connection.ask(&[b"COMMAND", b"LIST"]).iter().skip(1) {
        let name = name.trim_matches('"');
        let docs = connection.ask(&[b"COMMAND", b"DOCS", name.as_bytes()]);
        let told = |field: &str| {
            let at = docs.iter().position(|line| *line == format!("\"{field}\""));
            let value = at.and_then(|at| docs.get(at + 1)).expect("every command tells it");
            value.trim_matches('"').to_owned()
        };
        let row = format!("| `{}` | {} |", name.to_uppercase(), told("summary"));
        groups.entry(told("group")).or_default().push(row);
    }
    let mut expected = vec!["| command | what it does |".to_owned(), "|---|---|".to_owned()];
    for (group, mut rows) in groups {
        rows.sort();
        expected.push(format!("| **{group}** | |"));
        expected.append(&mut rows);
    }
    assert_same("commands", &part("Commands", "| command |"), &expected);
}

/// The set is closed: a row of a transcript that differs from Redis 7.0 is a decision.
#[test]
fn readme_lists_every_difference_from_redis_7_0() {
    let transcripts = all();
    let sections = transcripts.iter().flat_map(|transcript| &transcript.sections);
    let reasons: BTreeSet<&str> = sections.flat_map(Section::differences).collect();
    let expected: Vec<String> = reasons
        .into_iter()
        .map(|reason| format!("- {}", reason.strip_prefix("7.2: ").unwrap_or(reason)))
        .collect();
    let found = part("Where Tollgate differs from Redis 7.0", "- ");
    assert_same("list of differences", &found, &expected);
}
