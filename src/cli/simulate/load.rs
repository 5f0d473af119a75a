//! `tollgate simulate load`: what each way of protecting a service does, from calm to thirty
//! times what it can serve.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::RangedU64ValueParser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::load::{Phase, Setup, Shield, simulate};
use crate::time::Duration;

use super::plot;
use super::report::{Recovery, Report, Steady};

/// A longer run shows nothing more.
const SECONDS_MAX: u64 = 600;

/// What is offered, in capacities.
const LOADS: [f64; 6] = [0.9, 1.2, 2.0, 5.0, 10.0, 30.0];

/// The first three looks of the controllers, which have seen nothing before.
const SETTLE: Duration = Duration::from_millis(1_500);

/// The overload that is recovered from, and what comes then.
const OVERLOAD: f64 = 10.0;
const AFTER: f64 = 0.9;
const AFTER_LENGTH: Duration = Duration::from_secs(20);

const BAR: &str = "{bar:40} {pos}/{len} {msg}";

const AFTER_HELP: &str = "\
A service with 16 places and 10 ms of work a request (1,600 requests a second) is offered 0.9 to
30 times that. Arrivals come by chance, in six tiers; a caller waits 100 ms. `useful` is the share
of the places' time that went into work somebody still waited for, `late` the requests whose
caller gave up, for each that was served. `recovery` is what comes after ten times the capacity.

The rejectors: feed_forward, pid and dagor shed by priority in front of a queue; codel is a queue
with controlled delay; tuner and gradient2 find an in-flight limit; off is a queue alone.

Examples:
  tollgate simulate load
  tollgate simulate load --rejector feed_forward --rejector off --seed 7
  tollgate simulate load --scenario recovery --json -
  tollgate simulate load --svg load.svg";

/// Show what each way of protecting a service does under load.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(in crate::cli) struct Load {
    /// Only these ways to protect it; may be given several times
    #[arg(long, value_name = "NAME", value_parser = shield)]
    rejector: Vec<Shield>,
    /// What to show
    #[arg(long, value_enum, default_value_t = Scenario::All)]
    scenario: Scenario,
    /// Simulated seconds of each steady load
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = seconds())]
    seconds: u64,
    /// Where the dice begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the figures as JSON to a file; - prints them instead of the table
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Draw the figures into a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Scenario {
    /// Even loads, from calm to thirty times the capacity
    Steady,
    /// What is refused after an overload has ended
    Recovery,
    /// Both
    All,
}

fn seconds() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(2..=SECONDS_MAX)
}

fn shield(word: &str) -> Result<Shield, String> {
    let names = Shield::ALL.map(Shield::name).join(", ");
    Shield::parse(word).ok_or_else(|| format!("expected one of {names}"))
}

impl Load {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let report = self.simulate()?;
        let is_printed = |path: &PathBuf| path.as_path() == Path::new("-");
        let json = serde_json::to_string_pretty(&report)? + "\n";
        if self.json.as_ref().is_some_and(is_printed) {
            print(&json)?;
        } else {
            print(&report.to_string())?;
            if let Some(path) = &self.json {
                write(path, &json)?;
            }
        }
        if let Some(path) = &self.svg {
            write(path, &plot::svg(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn simulate(&self) -> anyhow::Result<Report> {
        let mut shields = self.rejector.clone();
        if shields.is_empty() {
            shields = Shield::ALL.to_vec();
        }
        let is_steady = self.scenario != Scenario::Recovery;
        let recovers = self.scenario != Scenario::Steady;
        let runs = usize::from(is_steady) * LOADS.len() + usize::from(recovers);
        let bar = progress_bar((runs * shields.len()) as u64)?;
        let mut report = Report::new(self.seed, self.seconds);
        for shield in shields {
            bar.set_message(shield.name());
            for load in LOADS.into_iter().filter(|_| is_steady) {
                report.steady.push(self.steady(shield, load));
                bar.inc(1);
            }
            if recovers {
                report.recovery.push(self.recovery(shield));
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(report)
    }

    fn steady(&self, shield: Shield, load: f64) -> Steady {
        let phase = Phase { load, length: Duration::from_secs(self.seconds), settle: SETTLE };
        let setup = Setup { shield, phases: vec![phase], seed: self.seed };
        Steady::new(shield, load, &simulate(&setup)[0])
    }

    fn recovery(&self, shield: Shield) -> Recovery {
        let overload = Phase {
            load: OVERLOAD,
            length: Duration::from_secs(self.seconds),
            settle: Duration::ZERO,
        };
        let after = Phase { load: AFTER, length: AFTER_LENGTH, settle: Duration::ZERO };
        let setup = Setup { shield, phases: vec![overload, after], seed: self.seed };
        Recovery::new(shield, &simulate(&setup)[1])
    }
}

fn progress_bar(runs: u64) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    Ok(ProgressBar::new(runs).with_style(ProgressStyle::with_template(BAR)?))
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("cannot write the figures")
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn load(line: &str) -> Result<Load, clap::Error> {
        let command = Load::augment_args(Command::new("load"));
        Load::from_arg_matches(&command.try_get_matches_from(line.split(' '))?)
    }

    #[test]
    fn progress_template_is_valid() {
        ProgressStyle::with_template(BAR).expect("the constant reads");
    }

    #[test]
    fn unknown_rejector_is_told_the_known_ones() {
        let error = load("load --rejector vegas").expect_err("there is none").to_string();
        assert!(error.contains("expected one of feed_forward, pid, dagor, codel"), "{error}");
        assert!(load("load --seconds 1").is_err() && load("load --scenario x").is_err());
    }

    #[test]
    fn chosen_rejectors_and_scenarios_alone_are_run() {
        let line = "load --rejector off --rejector feed_forward --scenario recovery --seconds 2";
        let report = load(line).expect("good flags").simulate().expect("it runs");
        let shields: Vec<&str> = report.recovery.iter().map(|row| row.rejector).collect();
        assert_eq!((shields, report.steady.len()), (vec!["off", "feed_forward"], 0));
    }

    #[test]
    fn same_seed_prints_the_same_figures() {
        let report = || {
            let arguments = load("load --rejector pid --scenario steady --seconds 2 --seed 9");
            arguments.expect("good flags").simulate().expect("it runs").to_string()
        };
        assert_eq!(report(), report());
        assert_eq!(report().lines().filter(|line| line.starts_with("pid")).count(), LOADS.len());
    }
}
