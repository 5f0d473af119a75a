//! Sets of documents: read from files or a server, looked over, compared.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use crate::config::Settings;
use crate::policy::{self, Book, Change, Difference, DocumentStatus, Snapshot, Terms, What};
use crate::time::{Clock, Timestamp};
use crate::watch;

/// What the settings say of documents where nobody has changed them.
pub(super) fn options() -> anyhow::Result<policy::Options> {
    Ok(Settings::load(None, [], &[])?.policies.for_policies())
}

pub(super) fn now() -> Timestamp {
    Clock::system().now()
}

/// The documents of files and folders, unread.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Change>> {
    let bytes_max = options()?.document_bytes_max.as_usize();
    let mut changes = Vec::new();
    for path in paths {
        let documents = watch::documents(path, bytes_max);
        changes.extend(documents.with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(changes)
}

/// All of them in force together; or what is refused.
pub(super) fn compile(changes: Vec<Change>) -> anyhow::Result<Result<Book, Vec<DocumentStatus>>> {
    let mut book = Book::new(&options()?);
    let refused = book.apply(changes, now()).refused;
    Ok(if refused.is_empty() { Ok(book) } else { Err(refused) })
}

/// Tells a person what is refused.
pub(super) fn complain(refused: &[DocumentStatus]) {
    for DocumentStatus { source, error, line, column, .. } in refused {
        eprintln!("error: {source}:{line}:{column}: {}", error.as_deref().unwrap_or_default());
    }
}

/// The tenants of a snapshot.
pub(super) fn terms(snapshot: &Snapshot) -> impl Iterator<Item = &Terms> {
    snapshot.tenants().map(|tenant| &***tenant)
}

/// Prints differences, in colour where a person looks on.
pub(super) fn show(differences: &[Difference]) -> anyhow::Result<()> {
    let is_coloured = std::io::stdout().is_terminal();
    for difference in differences {
        let (sign, colour) = match difference.what {
            What::Added => ('+', "\x1b[32m"),
            What::Removed => ('-', "\x1b[31m"),
            What::Changed { .. } => ('~', "\x1b[33m"),
        };
        let [on, off] = if is_coloured { [colour, "\x1b[0m"] } else { ["", ""] };
        say(format_args!("{on}{sign} {difference}{off}"))?;
    }
    Ok(())
}

/// Differences for a program.
pub(super) fn as_json(differences: &[Difference]) -> Value {
    let json = |difference: &Difference| {
        let Difference { tenant, rule, what } = difference;
        let mut json = json!({"tenant": tenant, "rule": rule});
        match what {
            What::Added => json["what"] = json!("added"),
            What::Removed => json["what"] = json!("removed"),
            What::Changed { field, before, after } => {
                json["what"] = json!("changed");
                json["field"] = json!(field);
                // Null is the default of a side that does not say.
                json["before"] = json!(before);
                json["after"] = json!(after);
            }
        }
        json
    };
    differences.iter().map(json).collect()
}

pub(in crate::cli) fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write the answer")
}

/// A document of a file, as text.
pub(super) fn text_of(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
