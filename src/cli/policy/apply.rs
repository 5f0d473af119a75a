//! `tollgate policy apply`: documents of files to a server's policy store.
//!
//! All is read and compared before anything is written, and shown. Only what says something else
//! than the server's is written. Tenants go only where that is asked for twice: by `--prune`, and
//! by a person's yes or `--yes`.

use std::collections::{BTreeMap, HashSet};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};

use super::documents::{compile, complain, now, options, read, say, show, terms};
use super::running::of_server;
use crate::cli::{
    BAD_INPUT,
    target::{Connection, TargetArgs},
};
use crate::policy::{Change, Snapshot, diff, parse};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Apply {
    /// A file or folder
    path: PathBuf,
    /// Remove the tenants that these documents do not name; those that they name may stay
    #[arg(long)]
    prune: bool,
    /// Remove without asking
    #[arg(long, requires = "prune")]
    yes: bool,
    /// Tell what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// The tenants of one of the server's documents.
type Named<'s> = Vec<&'s str>;

impl Apply {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let changes = read(&[self.path])?;
        let after = match compile(changes.clone())? {
            Ok(book) => book.snapshot(),
            Err(refused) => {
                complain(&refused);
                return Ok(ExitCode::from(BAD_INPUT));
            }
        };
        let target = self.target.into_target();
        let mut connection = target.connect()?;
        let Ok(before) = compile(of_server(&mut connection)?)? else {
            bail!("{target} has documents that this version does not read");
        };
        let before = before.snapshot();
        let mut found = diff(terms(&before), terms(&after));
        let stays = |tenant: &str| after.tenant(tenant.as_bytes()).is_some();
        if !self.prune {
            found.retain(|difference| stays(&difference.tenant));
        }
        let doomed = if self.prune { doomed(&before, stays)? } else { Vec::new() };
        show(&found)?;
        if self.dry_run {
            return Ok(ExitCode::SUCCESS);
        }
        let tenants = doomed.iter().map(Vec::len).sum();
        if tenants > 0 && !self.yes && !may_remove(tenants)? {
            eprintln!("tollgate: nothing was written; --yes removes without asking");
            return Ok(ExitCode::from(BAD_INPUT));
        }
        let changed: HashSet<&str> = found.iter().map(|difference| &*difference.tenant).collect();
        let written = write(&mut connection, &changes, &changed)?;
        for names in &doomed {
            let words = [&["RL.POLICY", "DEL"], names.as_slice()].concat();
            connection.ask_whole(&words).with_context(|| format!("cannot remove {names:?}"))?;
        }
        let removed =
            if self.prune { format!(", {} removed", doomed.len()) } else { String::new() };
        let same = changes.len() - written;
        say(format_args!("{written} documents written, {same} as they were{removed}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The documents of a server of which no tenant stays.
fn doomed(before: &Snapshot, stays: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Named<'_>>> {
    let mut documents: BTreeMap<&str, Named<'_>> = BTreeMap::new();
    for tenant in before.tenants() {
        documents.entry(&tenant.source).or_default().push(&tenant.name);
    }
    let mut doomed = Vec::new();
    for mut names in documents.into_values() {
        names.sort_unstable();
        match names.iter().partition::<Vec<&str>, _>(|name| stays(name)) {
            (staying, going) if staying.is_empty() => doomed.push(going),
            (_, going) if going.is_empty() => {}
            (staying, going) => bail!(
                "the server has `{}` in one document with `{}`, which would stay: edit that \
                 document",
                going.join("`, `"),
                staying.join("`, `")
            ),
        }
    }
    Ok(doomed)
}

/// Asks whoever is at the terminal; where nobody is, the answer is no.
fn may_remove(tenants: usize) -> anyhow::Result<bool> {
    let plural = if tenants == 1 { "" } else { "s" };
    if !std::io::stdin().is_terminal() {
        eprintln!("tollgate: {tenants} tenant{plural} would be removed");
        return Ok(false);
    }
    eprint!("Remove {tenants} tenant{plural}? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes the documents of the tenants that have changed. Returns how many.
fn write(
    connection: &mut Connection,
    changes: &[Change],
    changed: &HashSet<&str>,
) -> anyhow::Result<usize> {
    let (options, mut written) = (options()?, 0);
    for change in changes {
        let Change::Put { source, tenant, text, .. } = change else { continue };
        let tenants = parse(text, tenant.as_deref(), &options, now())
            .map_err(|complaint| anyhow!("{source}:{complaint}"))?;
        let Some(first) = tenants.iter().find(|terms| changed.contains(&*terms.name)) else {
            continue;
        };
        let words = [&b"RL.POLICY"[..], b"SET", first.name.as_bytes(), text];
        connection.ask_whole(&words).with_context(|| format!("cannot write {source}"))?;
        written += 1;
    }
    Ok(written)
}
