//! The list of fields in `config/policies/README.md` is what the schema of documents says, and the
//! examples beside it are documents that pass without a doubt.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::server::command;

const README: &str = include_str!("../../config/policies/README.md");
const SCHEMA: &str = include_str!("../../config/policy.schema.json");

/// The parts of a document, as the schema calls them and as the page does.
const PARTS: [(&str, &str); 4] = [
    ("TenantDocument", "A tenant"),
    ("RuleDocument", "A rule"),
    ("LimitDocument", "A limit"),
    ("DefaultsDocument", "Defaults"),
];

/// What may stand in a field, in words.
fn values(schema: &Value, field: &Value) -> String {
    if let Some(words) = field["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", text(word))).collect();
        return words.join(", ");
    }
    if let Some(path) = field["$ref"].as_str() {
        let name = path.rsplit('/').next().expect("a name");
        return match name {
            "DefaultsDocument" => "defaults, below".into(),
            "LimitDocument" => "a limit, below".into(),
            "LimitWord" => "a number, or `unlimited`".into(),
            "Matches" => "patterns, by attribute".into(),
            "Moment" => "a moment, such as `2030-01-31T12:00:00Z`".into(),
            "Name" => "a text".into(),
            "Pattern" => "a pattern".into(),
            "RuleDocument" => "a rule, below".into(),
            "WindowWord" => "a window".into(),
            "Zone" => "a time zone, such as `Europe/Berlin`".into(),
            _ => values(schema, &schema["$defs"][name]),
        };
    }
    match field["type"].as_str() {
        Some("array") => format!("a list: {}", values(schema, &field["items"])),
        Some("boolean") => "`true`, `false`".into(),
        Some("integer") if field["maximum"] == 100 => "0 to 100".into(),
        Some("integer") => "a number".into(),
        _ => panic!("no words for {field}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn fields_of_documents_are_listed_as_the_schema_has_them() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("it is JSON");
    for (name, heading) in PARTS {
        let fields = schema["$defs"][name]["properties"].as_object().expect("fields");
        let rows = fields.iter().map(|(field, told)| {
            format!("| `{field}` | {} | {} |", values(&schema, told), text(&told["description"]))
        });
        let rows: Vec<String> = rows.collect();
        let table = format!("\n## {heading}\n\n| field | value | meaning |\n|---|---|---|\n");
        let expected = format!("{table}{}\n", rows.join("\n"));
        assert!(README.contains(&expected), "config/policies/README.md should say:\n{expected}");
    }
}

#[test]
fn examples_of_documents_pass_without_a_doubt() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/policies");
    let entries = fs::read_dir(&folder).expect("it is there").map(|entry| entry.expect("a file"));
    let names = entries.map(|entry| entry.file_name().into_string().expect("a plain name"));
    let mut documents: Vec<String> = names.filter(|name| name != "README.md").collect();
    documents.sort();
    for name in &documents {
        assert!(README.contains(&format!("({name})")), "the page does not tell of {name}");
    }
    let folder = folder.to_str().expect("a plain name");
    let lint = command(&["policy", "lint", "--strict", folder]).output().expect("it is built");
    assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stderr));
    let told = String::from_utf8_lossy(&lint.stdout).into_owned();
    assert!(told.starts_with(&format!("{} documents", documents.len())), "{told}");
}
