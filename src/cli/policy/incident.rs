//! `tollgate policy override`: a limit that holds for a while, and ends by itself.
//!
//! The rule is written into the document that is there, and only in place of that very text: two
//! people in one incident lose nothing of each other. Who comes second reads again and tries again,
//! a bounded number of times.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::documents::{now, options, say, text_of};
use super::running::document;
use crate::cli::{
    BAD_INPUT,
    resp::Reply,
    target::{Connection, Target, TargetArgs},
    window,
};
use crate::policy::{self, AmendError, Amended, amend};
use crate::time::{Duration, Timestamp};
use crate::watch::replace;

/// With the pauses between them, time enough for what is in the store to come back by the watch.
const TRIES_MAX: usize = 10;

const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Override {
    tenant: String,
    /// As rules write it: exact, or `prefix*`
    endpoint: String,
    /// A number, or `unlimited`
    limit: String,
    /// 500ms, 30s, 5m, 1h, 1d, or day, week, month, year
    window: String,
    /// How long it holds, such as 30m
    #[arg(long = "for", value_name = "SPAN", value_parser = window)]
    span: Duration,
    /// Change this document instead of a server's
    #[arg(long, conflicts_with_all = ["url", "host", "port", "password"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

impl Override {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { tenant, endpoint, limit, window, span, file, target } = &self;
        let now = now();
        let rule = policy::Override { tenant, endpoint, limit, window, until: now + *span };
        let mut place = match file {
            Some(file) => Place::File(file),
            None => Place::server(target.clone().into_target())?,
        };
        let amended = match place.amend(&rule, now)? {
            Ok(amended) => amended,
            Err(error) => {
                eprintln!("tollgate: {error}");
                return Ok(ExitCode::from(BAD_INPUT));
            }
        };
        if !amended.is_faithful {
            eprintln!("tollgate: the document was written anew, its comments and layout are gone");
        }
        say(format_args!("{tenant} {endpoint}: {limit} per {window} for {span}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Where the document is.
enum Place<'a> {
    File(&'a Path),
    Server(Connection, Target),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Written {
    Yes,
    /// The document is another by now.
    Changed,
}

impl Place<'_> {
    fn server(target: Target) -> anyhow::Result<Self> {
        Ok(Self::Server(target.connect()?, target))
    }

    /// Writes the rule into the document that is there.
    fn amend(
        &mut self,
        rule: &policy::Override<'_>,
        now: Timestamp,
    ) -> anyhow::Result<Result<Amended, AmendError>> {
        let options = options()?;
        for _ in 0..TRIES_MAX {
            let before = self.read(rule.tenant)?;
            let amended = match amend(&before, rule, &options, now) {
                Ok(amended) => amended,
                Err(error) => return Ok(Err(error)),
            };
            if self.write(rule.tenant, &before, &amended.text)? == Written::Yes {
                return Ok(Ok(amended));
            }
            pause();
        }
        bail!(
            "the document of `{}` in the store is not the one in force, {TRIES_MAX} times over: \
             it changes all the time, or is refused (RL.POLICY STATUS says so)",
            rule.tenant
        )
    }

    fn read(&mut self, tenant: &str) -> anyhow::Result<String> {
        match self {
            Self::File(file) => text_of(file),
            Self::Server(connection, _) => document(connection, tenant),
        }
    }

    fn write(&mut self, tenant: &str, before: &str, after: &str) -> anyhow::Result<Written> {
        match self {
            Self::File(file) => {
                if text_of(file)? != before {
                    return Ok(Written::Changed);
                }
                replace(file, after.as_bytes())
                    .with_context(|| format!("cannot write {}", file.display()))?;
                Ok(Written::Yes)
            }
            Self::Server(connection, target) => {
                let words = ["RL.POLICY", "SET", tenant, after, "IFEQ", before];
                connection.ask(&words, |reply| match reply {
                    Reply::Error(error) if error.starts_with(b"CHANGED ") => Ok(Written::Changed),
                    Reply::Error(error) => Err(target.explain(error)),
                    Reply::Decision(_) | Reply::Other => Ok(Written::Yes),
                })?
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing tells when a store's change is in force")]
fn pause() {
    std::thread::sleep(PAUSE.as_std());
}
