//! Policies of a running server: read and written by RL.POLICY.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use redis_protocol::resp2::types::OwnedFrame;

use super::Override;
use super::documents::{compile, now, options, read, say, show, terms, text_of};
use crate::cli::{
    BAD_INPUT,
    resp::text,
    target::{Connection, Target},
};
use crate::policy::{self, Change, amend, diff as differences, parse};
use crate::yaml::nearest;

pub(super) fn get(tenant: &str, target: &Target) -> anyhow::Result<ExitCode> {
    let text = document(&mut target.connect()?, tenant)?;
    say(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn diff(paths: &[PathBuf], target: &Target) -> anyhow::Result<ExitCode> {
    let (before, after) = match paths {
        [before, after] => (read(std::slice::from_ref(before))?, after),
        [after] => (of_server(&mut target.connect()?)?, after),
        _ => bail!("one path or two"),
    };
    let (Ok(before), Ok(after)) = (compile(before)?, compile(read(std::slice::from_ref(after))?)?)
    else {
        return Ok(ExitCode::from(BAD_INPUT));
    };
    let (before, after) = (before.snapshot(), after.snapshot());
    show(&differences(terms(&before), terms(&after)))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn apply(path: &Path, target: &Target, dry_run: bool) -> anyhow::Result<ExitCode> {
    let changes = read(&[path.to_owned()])?;
    let Ok(after) = compile(changes.clone())? else { return Ok(ExitCode::from(BAD_INPUT)) };
    let after = after.snapshot();
    let mut connection = target.connect()?;
    let Ok(before) = compile(of_server(&mut connection)?)? else {
        bail!("{target} has documents that this version does not read");
    };
    let before = before.snapshot();
    let mut found = differences(terms(&before), terms(&after));
    found.retain(|difference| after.tenant(difference.tenant.as_bytes()).is_some());
    show(&found)?;
    if dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let changed: HashSet<&str> = found.iter().map(|difference| &*difference.tenant).collect();
    let (options, mut written) = (options()?, 0);
    for change in &changes {
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
    say(format_args!("{written} documents written, {} as they were", changes.len() - written))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn override_limit(wanted: Override) -> anyhow::Result<ExitCode> {
    let Override { tenant, endpoint, limit, window, span, file, target } = wanted;
    let now = now();
    let rule = policy::Override {
        tenant: &tenant,
        endpoint: &endpoint,
        limit: &limit,
        window: &window,
        until: now + span,
    };
    let mut server = match &file {
        Some(_) => None,
        None => Some(target.into_target().connect()?),
    };
    let text = match (&file, &mut server) {
        (Some(file), _) => text_of(file)?,
        (None, Some(server)) => document(server, &tenant)?,
        (None, None) => bail!("name a server or a file"),
    };
    let amended = match amend(&text, &rule, &options()?, now) {
        Ok(amended) => amended,
        Err(error) => {
            eprintln!("tollgate: {error}");
            return Ok(ExitCode::from(BAD_INPUT));
        }
    };
    if let Some(file) = &file {
        std::fs::write(file, &amended.text)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(server) = &mut server {
        server.ask_whole(&["RL.POLICY", "SET", &tenant, &amended.text])?;
    }
    if !amended.is_faithful {
        eprintln!("tollgate: the document was written anew, its comments and layout are gone");
    }
    say(format_args!("{tenant} {endpoint}: {limit} per {window} for {span}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Every document in force on a server.
fn of_server(connection: &mut Connection) -> anyhow::Result<Vec<Change>> {
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

fn document(connection: &mut Connection, tenant: &str) -> anyhow::Result<String> {
    if let Some(document) = text(&connection.ask_whole(&["RL.POLICY", "GET", tenant])?) {
        return Ok(document);
    }
    let known = tenants(connection)?;
    match nearest(tenant, known.iter().map(String::as_str)) {
        "" => bail!("there is no tenant `{tenant}`, nor any other"),
        nearest => bail!("there is no tenant `{tenant}`, the nearest is `{nearest}`"),
    }
}
