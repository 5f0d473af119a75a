//! Policies of a running server: what is in force there, read by RL.POLICY.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use redis_protocol::resp2::types::OwnedFrame;

use super::documents::{as_json, compile, complain, read, say, show, terms};
use crate::cli::{
    BAD_INPUT,
    resp::text,
    target::{Connection, Target, TargetArgs},
};
use crate::policy::{Change, diff};
use crate::yaml::nearest;

pub(super) fn get(tenant: &str, target: &Target) -> anyhow::Result<ExitCode> {
    let text = document(&mut target.connect()?, tenant)?;
    say(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Diff {
    /// A file or folder; with two, the first is compared instead of the server
    #[arg(required = true, num_args = 1..=2, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

impl Diff {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let one = |path: &PathBuf| read(std::slice::from_ref(path));
        let (before, after) = match self.paths.as_slice() {
            [before, after] => (one(before)?, one(after)?),
            [after] => (of_server(&mut self.target.into_target().connect()?)?, one(after)?),
            _ => bail!("one path or two"),
        };
        let (before, after) = match (compile(before)?, compile(after)?) {
            (Ok(before), Ok(after)) => (before.snapshot(), after.snapshot()),
            (before, after) => {
                [before, after].into_iter().filter_map(Result::err).for_each(|e| complain(&e));
                return Ok(ExitCode::from(BAD_INPUT));
            }
        };
        let differences = diff(terms(&before), terms(&after));
        if self.json {
            say(serde_json::to_string_pretty(&as_json(&differences))?)?;
        } else {
            show(&differences)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Every document in force on a server.
pub(super) fn of_server(connection: &mut Connection) -> anyhow::Result<Vec<Change>> {
    let mut known = HashSet::new();
    let mut changes = Vec::new();
    for tenant in tenants(connection)? {
        let text = document(connection, &tenant)?;
        // One of several tenants is told for each of them.
        if known.insert(text.clone()) {
            let source = format!("the server's {tenant}").into();
            let tenant = Some(tenant.into());
            changes.push(Change::Put { source, tenant, text: text.into(), revision: 0 });
        }
    }
    Ok(changes)
}

/// The names of a server's tenants.
pub(in crate::cli) fn tenants(connection: &mut Connection) -> anyhow::Result<Vec<String>> {
    let OwnedFrame::Array(names) = connection.ask_whole(&["RL.POLICY", "LIST"])? else {
        bail!("RL.POLICY LIST answered no list; is it Tollgate?");
    };
    Ok(names.iter().filter_map(text).collect())
}

/// The document in force of a tenant.
pub(super) fn document(connection: &mut Connection, tenant: &str) -> anyhow::Result<String> {
    if let Some(document) = text(&connection.ask_whole(&["RL.POLICY", "GET", tenant])?) {
        return Ok(document);
    }
    let known = tenants(connection)?;
    match nearest(tenant, known.iter().map(String::as_str)) {
        "" => bail!("there is no tenant `{tenant}`, nor any other"),
        nearest => bail!("there is no tenant `{tenant}`, the nearest is `{nearest}`"),
    }
}
