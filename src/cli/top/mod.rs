//! `tollgate top`: who is being limited now, of every tenant, in a table that stays up to date.
//!
//! On a terminal it is a screen of its own; elsewhere plain tables follow one another, or objects
//! of JSON, one a line. All figures come from the server by RESP; nothing is measured here but the
//! time between two looks.

mod glimpse;
mod live;
mod screen;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;

use anyhow::{Context, bail};
use clap::builder::RangedU64ValueParser;
use serde_json::Value;

use self::glimpse::{Glimpse, Looker, Scope};
use super::policy::say;
use super::table::table;
use super::target::TargetArgs;
use super::window;
use crate::time::Duration;

/// A look costs a request for each tenant.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// More than any screen has lines.
const ROWS_MAX: u64 = 1_000;

const AFTER_HELP: &str = "\
The count of a key fades by half in 30 seconds without a denial, so who is limited no longer sinks.

Examples:
  tollgate top
  tollgate top --tenant payment --every 5s
  tollgate top --once --json";

/// Show who is being limited now, live.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Top {
    /// Only this tenant; may be given more than once
    #[arg(long, value_name = "NAME")]
    tenant: Vec<String>,
    /// Rows at most
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = rows())]
    count: u64,
    /// How often to look
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = every)]
    every: Duration,
    /// Print one table, of two looks so far apart, and end
    #[arg(long)]
    once: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

fn rows() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=ROWS_MAX)
}

fn every(text: &str) -> Result<Duration, String> {
    let every = window(text)?;
    if every < EVERY_MIN { Err(format!("at least {EVERY_MIN}")) } else { Ok(every) }
}

/// What one look came to: the text of an error is for people.
type Look = Result<Glimpse, String>;

impl Top {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { tenant: tenants, count, every, once, json, target } = self;
        let scope = Scope { tenants, rows: count as usize };
        let mut looker = Looker::new(target.into_target(), scope);
        // What is wrong with the server or the password is said before anything is drawn.
        let first = looker.look()?;
        let is_live = !json && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        looking(looker, every, move |looks| {
            if once {
                let look = looks.recv().context("nobody looks at the server")?;
                tell(&look.map_err(anyhow::Error::msg)?, json)
            } else if is_live {
                live::run(first, &looks)
            } else {
                follow(&looks, json)
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Does something with what a thread sees that looks again and again.
fn looking(
    mut looker: Looker,
    every: Duration,
    then: impl FnOnce(Receiver<Look>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // Bounded: who looks waits for who shows it.
    let (told, looks) = sync_channel(1);
    let (stop, stopped) = sync_channel::<()>(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            while stopped.recv_timeout(every.as_std()) == Err(RecvTimeoutError::Timeout) {
                let look = looker.look().map_err(|error| format!("{error:#}"));
                if told.send(look).is_err() {
                    return;
                }
            }
        });
        // Dropped before the thread is waited for, whichever way this ends.
        let _stop = stop;
        then(looks)
    })
}

/// Prints until nobody reads it, or somebody ends it. A server that goes away may come back.
fn follow(looks: &Receiver<Look>, json: bool) -> anyhow::Result<()> {
    let mut away = None;
    for look in looks {
        match look {
            Ok(glimpse) => {
                tell(&glimpse, json)?;
                if !json {
                    say("")?;
                }
                away = None;
            }
            // Once, however long it lasts.
            Err(error) if away.as_ref() != Some(&error) => {
                eprintln!("tollgate: {error}");
                away = Some(error);
            }
            Err(_) => {}
        }
    }
    bail!("nobody looks at the server any longer")
}

fn tell(glimpse: &Glimpse, json: bool) -> anyhow::Result<()> {
    if json {
        return say(Value::from(glimpse));
    }
    for line in glimpse.heading() {
        say(line)?;
    }
    if glimpse.rows.is_empty() {
        return say(glimpse::NOBODY);
    }
    table(&glimpse::COLUMNS, &glimpse.rows).into_iter().try_for_each(say)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_not_closer_together_than_they_may_be() {
        assert_eq!(every("100ms"), Ok(EVERY_MIN));
        assert_eq!(every("99ms"), Err("at least 100ms".to_owned()));
        assert!(every("0s").is_err() && every("often").is_err());
    }
}
