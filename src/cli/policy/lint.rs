//! `tollgate policy lint`: what is wrong with documents, and what is doubtful.
//!
//! For people a line for each complaint, with file, line and column in front, as editors read
//! them; for programs all of it as one object.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::documents::{compile, complain, now, options, read, say};
use crate::cli::{BAD_INPUT, FAILED};
use crate::policy::{Change, DocumentStatus, Finding, lint};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Lint {
    /// Files, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Fail where anything is doubtful, too
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Lint {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let changes = read(&self.paths)?;
        let documents = changes.len();
        let doubts = doubts(&changes)?;
        let (tenants, refused) = match compile(changes.clone())? {
            Ok(book) => (book.snapshot().tenants().count(), Vec::new()),
            Err(refused) => (0, refused),
        };
        if self.json {
            let errors: Vec<Value> = refused.iter().map(error).collect();
            let warnings: Vec<Value> = doubts.iter().map(warning).collect();
            let found = json!({
                "documents": documents,
                "tenants": tenants,
                "errors": errors,
                "warnings": warnings,
            });
            say(serde_json::to_string_pretty(&found)?)?;
        } else {
            for (source, finding) in &doubts {
                eprintln!("warning: {source}:{finding}");
            }
            complain(&refused);
            if refused.is_empty() {
                let warnings = doubts.len();
                say(format_args!("{documents} documents, {tenants} tenants, {warnings} warnings"))?;
            }
        }
        Ok(match (refused.is_empty(), self.strict && !doubts.is_empty()) {
            (false, _) => ExitCode::from(BAD_INPUT),
            (true, true) => ExitCode::from(FAILED),
            (true, false) => ExitCode::SUCCESS,
        })
    }
}

/// Findings, each with its document's source.
fn doubts(changes: &[Change]) -> anyhow::Result<Vec<(&str, Finding)>> {
    let options = options()?;
    let mut doubts = Vec::new();
    for change in changes {
        let Change::Put { source, tenant, text, .. } = change else { continue };
        // One that is refused is told together with those that only clash.
        let findings = lint(text, tenant.as_deref(), &options, now()).unwrap_or_default();
        doubts.extend(findings.into_iter().map(|finding| (&**source, finding)));
    }
    Ok(doubts)
}

fn error(refused: &DocumentStatus) -> Value {
    let DocumentStatus { source, error, line, column, .. } = refused;
    json!({"source": source, "line": line, "column": column, "text": error})
}

fn warning((source, finding): &(&str, Finding)) -> Value {
    let Finding { line, column, tenant, rule, text } = finding;
    json!({
        "source": source,
        "line": line,
        "column": column,
        "tenant": tenant,
        "rule": rule,
        "text": text,
    })
}
