//! `tollgate bench`: load on any RESP server, and what it answers under it.
//!
//! The load runs on plain threads with a current-thread runtime each. All connections are
//! opened before the first request is sent, so that connecting is not measured. Every run is
//! bounded by a number of requests or a time, and ends when the server falls silent.
//!
//! One thread loads one core's worth of server; with more, the machine has to have the cores.

mod connection;
mod pace;
mod report;
mod template;
mod worker;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::builder::RangedU64ValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::report::{Report, Tally};
use self::worker::Share;
use super::target::{Target, TargetArgs};
use crate::time::{Clock, Duration};

/// One address has no more ports to connect from.
const CONNECTIONS_MAX: u64 = 60_000;
/// Deeper pipelines measure the buffers in between.
const PIPELINE_MAX: u64 = 10_000;
const THREADS_MAX: u64 = 256;
/// Microseconds do not tell the requests of a faster run apart.
const RATE_MAX: u64 = 10_000_000;
/// A day.
const SECONDS_MAX: u64 = 86_400;
const REQUESTS: u64 = 100_000;

/// Open files besides two for each connection: the runtimes', the terminal's.
const FILES_SPARE: u64 = 64;

const BAR: &str = "{bar:40} {human_pos}/{human_len}  {per_sec}  {eta} left";
const SPINNER: &str = "{spinner} {human_pos}  {per_sec}  after {elapsed}";

/// The empty style inside `{n}` is not shown; without it clap would print a line break for it.
const AFTER_HELP: &str = "\
{key} in the command is replaced by a random key of the keyspace, {n\x1b[m} by a number that
no other request of the run has. The default command is RL.LIMIT {key} 100 1s.

Without --rate the loop is closed: a connection sends a pipeline, waits for its answers, and
sends the next; throughput is what the server can do. With --rate it is open: requests are due
at fixed moments, and latency counts from the moment a request was due, so that a stall of the
server shows in full. --pipeline is then the most that may be unanswered on one connection.
Latency is measured in whole microseconds.

Exit codes: 0 done, 1 failed (no server, or nothing but errors), 2 wrong usage.

Examples:
  tollgate bench --pipeline 32
  tollgate bench --rate 20000 --seconds 30 RL.LIMIT {key} 5 1m
  tollgate bench --port 6380 --json - SET {key} {n\x1b[m}";

/// Load a RESP server (Tollgate or Redis) and tell its throughput and latency.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Bench {
    /// The command to send
    #[arg(trailing_var_arg = true)]
    command: Vec<String>,
    /// Connections, all opened before the first request
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = between(1, CONNECTIONS_MAX))]
    connections: u64,
    /// Requests sent together on one connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between(1, PIPELINE_MAX))]
    pipeline: u64,
    /// Threads; at most one for each connection is used
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between(1, THREADS_MAX))]
    threads: u64,
    /// How many keys {key} stands for
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = between(1, u64::MAX))]
    keys: u64,
    /// What stands before the number of every key
    #[arg(long, default_value = "key:")]
    key_prefix: String,
    /// Where the random keys begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stop after so many requests [default: 100000]
    #[arg(long, value_name = "N", value_parser = between(1, u64::MAX), conflicts_with = "seconds")]
    requests: Option<u64>,
    /// Stop after so many seconds
    #[arg(long, value_name = "N", value_parser = between(1, SECONDS_MAX))]
    seconds: Option<u64>,
    /// Open loop: requests per second over all connections
    #[arg(long, value_name = "N", value_parser = between(1, RATE_MAX))]
    rate: Option<u64>,
    /// Write the result as JSON to a file; - prints it instead of the table
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

/// A load, in every detail.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    /// Words of the request, with `{key}` and `{n}` in them.
    pub(crate) command: Vec<String>,
    pub(crate) key_prefix: String,
    pub(crate) keys: u64,
    pub(crate) seed: u64,
    pub(crate) connections: usize,
    pub(crate) pipeline: usize,
    /// At most as many as there are connections.
    pub(crate) threads: usize,
    pub(crate) length: Length,
    /// Requests per second of an open loop; none in a closed one.
    pub(crate) rate: Option<u64>,
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Requests(u64),
    Time(Duration),
}

fn between(min: u64, max: u64) -> RangedU64ValueParser {
    clap::value_parser!(u64).range(min..=max)
}

impl Bench {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let json = self.json.clone();
        let report = run(&self.into_plan())?;
        match json.as_deref() {
            Some(path) if path == Path::new("-") => print(&serde_json::to_string_pretty(&report)?)?,
            Some(path) => {
                print(&report.to_string())?;
                write_json(&report, path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            None => print(&report.to_string())?,
        }
        if let Some(error) = report.all_failed() {
            bail!("every answer was an error: {error}");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn into_plan(self) -> Plan {
        let command = if self.command.is_empty() {
            ["RL.LIMIT", "{key}", "100", "1s"].map(str::to_owned).to_vec()
        } else {
            self.command
        };
        let length = match self.seconds {
            Some(seconds) => Length::Time(Duration::from_secs(seconds)),
            None => Length::Requests(self.requests.unwrap_or(REQUESTS)),
        };
        Plan {
            target: self.target.into_target(),
            command,
            key_prefix: self.key_prefix,
            keys: self.keys,
            seed: self.seed,
            connections: self.connections as usize,
            pipeline: self.pipeline as usize,
            threads: self.threads.min(self.connections) as usize,
            length,
            rate: self.rate,
        }
    }
}

impl Plan {
    /// How many requests the run will send, where that is known beforehand.
    fn requests_planned(&self) -> Option<u64> {
        match (self.length, self.rate) {
            (Length::Requests(requests), _) => Some(requests),
            (Length::Time(span), Some(rate)) => {
                let planned = u128::from(span.as_micros()) * u128::from(rate) / 1_000_000;
                u64::try_from(planned).ok()
            }
            (Length::Time(_), None) => None,
        }
    }

    /// Connection `i` is in thread `i % threads`.
    fn connections_of(&self, thread: usize) -> usize {
        (self.connections - thread).div_ceil(self.threads)
    }

    #[cfg(test)]
    fn for_tests() -> Self {
        use clap::{Args, Command, FromArgMatches};
        let command = Bench::augment_args(Command::new("bench").no_binary_name(true));
        let matches = command.get_matches_from([""; 0]);
        Bench::from_arg_matches(&matches).expect("all flags have defaults").into_plan()
    }
}

/// Runs a load to its end.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Report> {
    allow_open_files(plan.connections as u64 * 2 + FILES_SPARE)?;
    let mut streams: Vec<Vec<TcpStream>> = Vec::with_capacity(plan.threads);
    for thread in 0..plan.threads {
        let connect = || plan.target.connect()?.into_nonblocking();
        streams
            .push((0..plan.connections_of(thread)).map(|_| connect()).collect::<Result<_, _>>()?);
    }
    let clock = Clock::system();
    let start = clock.now();
    let bar = progress_bar(plan);
    let tallies = std::thread::scope(|scope| {
        let threads: Vec<_> = streams
            .into_iter()
            .enumerate()
            .map(|(thread, streams)| {
                let (clock, bar) = (clock.clone(), bar.clone());
                let share = Share { thread, streams, start, clock, bar };
                scope.spawn(move || worker::drive(plan, share))
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<Tally>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
    });
    bar.finish_and_clear();
    let mut sum = Tally::new(start);
    tallies?.into_iter().for_each(|tally| sum.merge(tally));
    Ok(Report::new(plan, sum, start))
}

/// Raises our own limit on open files where it stands below `files`.
fn allow_open_files(files: u64) -> anyhow::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    if maximum.is_some_and(|maximum| maximum < files) {
        bail!("so many connections need {files} open files; raise the limit (ulimit -n)");
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })
        .context("cannot raise the limit on open files")
}

fn progress_bar(plan: &Plan) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match plan.requests_planned() {
        Some(requests) => (ProgressBar::new(requests), BAR),
        None => (ProgressBar::no_length(), SPINNER),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("a test reads both constants"))
}

fn print(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot write the result")
}

fn write_json(report: &Report, path: &Path) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    serde_json::to_writer_pretty(&mut file, report)?;
    Ok(writeln!(file)?)
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;

    #[test]
    fn progress_templates_are_valid() {
        for template in [BAR, SPINNER] {
            ProgressStyle::with_template(template).expect(template);
        }
    }

    #[test]
    fn help_names_both_holes() {
        let help = Bench::augment_args(Command::new("bench")).render_long_help().to_string();
        assert!(help.contains("{key}") && help.matches("{n}").count() == 2, "{help}");
    }

    #[test]
    fn unknown_flag_is_no_command() {
        let command = Bench::augment_args(Command::new("bench"));
        assert!(command.clone().try_get_matches_from(["bench", "--pipelin", "3"]).is_err());
        assert!(command.try_get_matches_from(["bench", "ECHO", "--pipelin"]).is_ok());
    }

    #[test]
    fn default_command_is_a_limit_on_a_random_key() {
        assert_eq!(Plan::for_tests().command.join(" "), "RL.LIMIT {key} 100 1s");
    }

    #[test]
    fn length_of_a_run_follows_from_rate_and_time() {
        let plan = Plan::for_tests();
        assert_eq!(plan.requests_planned(), Some(REQUESTS));
        let timed = Plan { length: Length::Time(Duration::from_secs(3)), ..plan };
        assert_eq!(timed.requests_planned(), None);
        assert_eq!(Plan { rate: Some(500), ..timed }.requests_planned(), Some(1_500));
    }
}
