//! Sets of documents: read from files or a server, looked over, compared.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::cli::{BAD_INPUT, FAILED};
use crate::config::Settings;
use crate::policy::{self, Book, Change, Difference, Snapshot, Terms, What};
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

/// All of them in force together; or how many are refused, once each was told.
pub(super) fn compile(changes: Vec<Change>) -> anyhow::Result<Result<Book, usize>> {
    let mut book = Book::new(&options()?);
    let applied = book.apply(changes, now());
    for refused in &applied.refused {
        let error = refused.error.as_deref().unwrap_or_default();
        eprintln!("error: {}:{}:{}: {error}", refused.source, refused.line, refused.column);
    }
    Ok(if applied.refused.is_empty() { Ok(book) } else { Err(applied.refused.len()) })
}

/// The tenants of a snapshot.
pub(super) fn terms(snapshot: &Snapshot) -> impl Iterator<Item = &Terms> {
    snapshot.tenants().map(|tenant| &***tenant)
}

pub(super) fn lint(paths: &[PathBuf], strict: bool) -> anyhow::Result<ExitCode> {
    let changes = read(paths)?;
    let (count, options, mut doubts) = (changes.len(), options()?, 0);
    for change in &changes {
        let Change::Put { source, tenant, text, .. } = change else { continue };
        // One that is refused is told below, together with those that only clash.
        let findings = policy::lint(text, tenant.as_deref(), &options, now()).unwrap_or_default();
        doubts += findings.len();
        for finding in findings {
            eprintln!("warning: {source}:{finding}");
        }
    }
    Ok(match compile(changes)? {
        Err(_) => ExitCode::from(BAD_INPUT),
        Ok(book) => {
            let tenants = book.snapshot().tenants().count();
            say(format_args!("{count} documents, {tenants} tenants, {doubts} warnings"))?;
            if strict && doubts > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
        }
    })
}

/// Prints differences, in colour where a person looks on. Returns how many.
pub(super) fn show(differences: &[Difference]) -> anyhow::Result<usize> {
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
    Ok(differences.len())
}

pub(in crate::cli) fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write the answer")
}

/// A document of a file, as text.
pub(super) fn text_of(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
