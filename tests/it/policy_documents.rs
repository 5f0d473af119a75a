//! The example documents, and what stands in their folder of the fields that there are.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::server::command;

const README: &str = include_str!("../../config/policies/README.md");
const SCHEMA: &str = include_str!("../../config/policy.schema.json");

/// What is between these lines is made of the schema.
const BEGIN: &str = "<!-- fields: made of policy.schema.json -->\n";
const END: &str = "<!-- end of fields -->\n";

/// The parts of a document in the order of their tables.
const PARTS: [(&str, &str); 4] = [
    ("TenantDocument", "A tenant"),
    ("RuleDocument", "A rule"),
    ("LimitDocument", "An element of `limits`, and a `candidate`"),
    ("DefaultsDocument", "`defaults`"),
];

#[test]
fn examples_are_good_and_nothing_in_them_is_doubtful() {
    let output = command(&["policy", "lint", "--strict", "config/policies"]).output();
    let output = output.expect("the program is built");
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(told, "4 documents, 4 tenants, 0 warnings\n");
}

#[test]
fn list_of_fields_is_current() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("it is JSON");
    let kinds = schema["$defs"].as_object().expect("it defines kinds");
    let current = tables(kinds);
    let after = README.split_once(BEGIN).expect("the fields begin").1;
    let written = after.split_once(END).expect("and end").0;
    assert!(written == current, "config/policies/README.md should say:\n{current}");
}

fn tables(kinds: &Map<String, Value>) -> String {
    let mut tables = String::new();
    for (kind, title) in PARTS {
        write!(tables, "\n### {title}\n\n| field | takes | |\n|---|---|---|\n").expect("a string");
        let fields = kinds[kind]["properties"].as_object().expect("it has fields");
        for (name, field) in fields {
            let takes = takes(field, kinds);
            let sentence = field["description"].as_str().expect("a field has a sentence");
            writeln!(tables, "| `{name}` | {takes} | {sentence} |").expect("a string");
        }
    }
    tables + "\n"
}

/// What may stand behind a field, in words.
fn takes(field: &Value, kinds: &Map<String, Value>) -> String {
    if let Some(kind) = field["$ref"].as_str().and_then(|kind| kind.rsplit('/').next()) {
        return match kind {
            "LimitWord" => "a whole number, or `unlimited`".to_owned(),
            "WindowWord" => "a window".to_owned(),
            "Matches" => "patterns by attribute".to_owned(),
            "Pattern" => "a pattern".to_owned(),
            "Zone" => "a time zone".to_owned(),
            "DefaultsDocument" => "`defaults`, below".to_owned(),
            "LimitDocument" => "a limit, below".to_owned(),
            other => takes(&kinds[other], kinds),
        };
    }
    if let Some(words) = field["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`"));
        return words.collect::<Vec<_>>().join(", ");
    }
    match field["type"].as_str() {
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => match field["maximum"].as_u64() {
            Some(100) => "0 to 100".to_owned(),
            Some(_) | None => "a whole number".to_owned(),
        },
        Some("string") if field["format"] == "date-time" => "a moment".to_owned(),
        Some("string") => "text".to_owned(),
        Some("array") => match field["items"]["$ref"].as_str() {
            Some("#/$defs/RuleDocument") => "a list of rules, below".to_owned(),
            Some("#/$defs/LimitDocument") => "a list of limits, below".to_owned(),
            Some("#/$defs/Name") => "a list of names".to_owned(),
            Some(_) | None => panic!("in what words? {field}"),
        },
        Some(_) | None => panic!("in what words? {field}"),
    }
}
