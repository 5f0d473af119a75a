//! The JSON Schema of policy documents, for editors and for whoever writes documents by program.
//!
//! Made of the structs that read a document; checked in as `config/policy.schema.json`. It is a
//! little wider than the reader: ties and impossible numbers only show when all is understood.

use schemars::schema_for;

use super::document::Document;

/// The schema as it is checked in.
pub(crate) fn schema() -> String {
    let schema = schema_for!(Document);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is a tree of JSON");
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_in_the_tree_is_current() {
        let current = schema();
        let checked_in = include_str!("../../config/policy.schema.json");
        assert!(current == checked_in, "config/policy.schema.json should read:\n{current}");
    }
}
