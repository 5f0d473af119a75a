//! Tollgate beside a Redis server: throughput, processor time, memory, latency, in one run.
//!
//! `cargo bench --bench compare` starts both on free loopback ports, lets the same generators
//! load them in turns, and writes a Markdown table with the targets beside the figures. Rounds
//! are interleaved and medians reported, so that what disturbs the machine disturbs both.
//! `benches/README.md` says how to read it. Nothing here asserts: a target that is not met is
//! printed as not met.

mod commands;
mod generator;
mod latency;
mod memory;
mod persistence;
mod pipe;
mod process;
mod table;
mod targets;
mod throughput;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Parser;
use tollgate::time::Duration;

use crate::generator::Programs;
use crate::latency::Duel;
use crate::process::output_of;

const TOLLGATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/release/tollgate");
const RESULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/compare.md");

/// Measure Tollgate beside a Redis server.
#[derive(Debug, Parser)]
struct Args {
    /// The Tollgate to measure
    #[arg(long, default_value = TOLLGATE)]
    tollgate: PathBuf,
    /// Where the table goes
    #[arg(long, default_value = RESULT)]
    out: PathBuf,
    /// How often everything is measured; medians are reported
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// One short round, to see that everything works; its figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Said by cargo bench; without it nothing runs, so that cargo test stays short
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Part {
    Pipelined,
    Single,
    Memory,
    Latency,
    Commands,
    Persistence,
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: u32,
    /// Divides the number of requests.
    divisor: u64,
    memory_divisor: u64,
    latency_s: u64,
    /// How long idle connections are left alone before memory is read.
    settle: Duration,
}

impl Effort {
    fn new(rounds: u32, quick: bool) -> Self {
        if quick {
            let settle = Duration::from_secs(1);
            Self { rounds: 1, divisor: 20, memory_divisor: 20, latency_s: 1, settle }
        } else {
            let settle = Duration::from_secs(5);
            Self { rounds, divisor: 1, memory_divisor: 1, latency_s: 5, settle }
        }
    }

    /// Scripts are much dearer; their figure is as steady with fewer requests.
    fn requests(&self, pipeline: u32, is_script: bool) -> u64 {
        let full = match (pipeline, is_script) {
            (1, true) => 100_000,
            (1, false) => 200_000,
            (_, true) => 300_000,
            (_, false) => 2_000_000,
        };
        full / self.divisor
    }
}

/// What was measured; a part that failed is told at its place.
#[derive(Debug)]
struct Findings {
    pipelined: Option<anyhow::Result<throughput::Results>>,
    single: Option<anyhow::Result<throughput::Results>>,
    memory: Option<memory::Results>,
    latency: Option<anyhow::Result<[Duel; 2]>>,
    commands: Option<anyhow::Result<commands::Results>>,
    persistence: Option<anyhow::Result<persistence::Results>>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !args.bench {
        eprintln!("nothing measured: run it by `cargo bench --bench compare`");
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("error: {err:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn run(args: &Args) -> anyhow::Result<()> {
    let programs = Programs::find(&args.tollgate)?;
    let effort = Effort::new(args.rounds, args.quick);
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let findings = Findings {
        pipelined: wanted(Part::Pipelined).then(|| throughput::measure(&programs, &effort, 32)),
        single: wanted(Part::Single).then(|| throughput::measure(&programs, &effort, 1)),
        memory: wanted(Part::Memory).then(|| memory::measure(&programs, &effort)),
        latency: wanted(Part::Latency).then(|| latency::measure(&programs, &effort)),
        commands: wanted(Part::Commands).then(|| commands::measure(&programs, &effort)),
        persistence: wanted(Part::Persistence).then(|| persistence::measure(&programs, &effort)),
    };
    let report = format!("{}\n{}", preamble(&programs, args)?, findings.markdown());
    println!("{report}");
    write(&args.out, &report)
}

fn write(path: &Path, report: &str) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(cannot)?;
    }
    fs::write(path, report).with_context(cannot)
}

fn preamble(programs: &Programs, args: &Args) -> anyhow::Result<String> {
    let version = |program: &Path| {
        let printed = output_of(Command::new(program).arg("--version"))?;
        anyhow::Ok(printed.lines().next().unwrap_or_default().to_owned())
    };
    let effort = match Effort::new(args.rounds, args.quick).rounds {
        _ if args.quick => "one quick round: not to be quoted".to_owned(),
        rounds => format!("medians of {rounds} interleaved rounds"),
    };
    let cores = std::thread::available_parallelism()?;
    Ok(format!(
        "# Tollgate beside Redis\n\n\
         - {}\n- {}\n- {cores} processors: {}\n- {effort}\n",
        version(&programs.tollgate)?,
        version(&programs.redis_server)?,
        processor_name().unwrap_or_else(|| "unknown".to_owned()),
    ))
}

fn processor_name() -> Option<String> {
    let facts = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = facts.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(": ")?.1.to_owned())
}

impl Findings {
    fn markdown(&self) -> String {
        let mut parts = vec![format!("## Targets\n\n{}", targets::markdown(self))];
        for results in [&self.pipelined, &self.single].into_iter().flatten() {
            parts.push(match results {
                Ok(results) => results.markdown(),
                Err(err) => format!("## Throughput\n\nNot measured: {err:#}\n"),
            });
        }
        parts.extend(self.memory.as_ref().map(memory::Results::markdown));
        parts.extend(self.latency.as_ref().map(|duels| match duels {
            Ok(duels) => format!(
                "## Latency without pipeline at half of saturation\n\n{}",
                duels.each_ref().map(Duel::markdown).join("\n")
            ),
            Err(err) => format!("## Latency\n\nNot measured: {err:#}\n"),
        }));
        parts.extend(self.commands.as_ref().map(|commands| match commands {
            Ok(results) => results.markdown(),
            Err(err) => format!("## The commands of Redis\n\nNot measured: {err:#}\n"),
        }));
        parts.extend(self.persistence.as_ref().map(|kept| match kept {
            Ok(results) => results.markdown(),
            Err(err) => format!("## Keeping data\n\nNot measured: {err:#}\n"),
        }));
        parts.join("\n")
    }
}
