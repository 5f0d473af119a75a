//! What keeping data costs, and how long a start takes: with a data folder and without.
//!
//! Tollgate's journal is `everysec`, Redis's append-only file too, each in a folder of its own.
//! The snapshot is made of a million keys while the load runs. A start is timed from the process
//! to its first answer, behind a kill, so that it is the journal that is read.

use tempfile::TempDir;
use tollgate::time::{Clock, Duration};

use crate::Effort;
use crate::generator::{Load, Programs};
use crate::pipe;
use crate::process::{Program, Server, pause};
use crate::table::{Table, cell, median};

const PIPELINE: u32 = 32;

/// Keys of the snapshot and of the start.
const MANY: u64 = 1_000_000;

/// Keys of one batch of that load.
const BATCH: u64 = 1_000;

/// Longer than what a crash may cost.
const JOURNALED_AFTER: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(crate) struct Results(String);

impl Results {
    pub(crate) fn markdown(&self) -> String {
        format!("## Keeping data\n\n{}", self.0)
    }
}

/// A column of the table.
#[derive(Clone, Copy, Debug)]
enum Rival {
    Memory,
    Kept,
    RedisMemory,
    RedisKept,
}

impl Rival {
    const ALL: [Self; 4] = [Self::Memory, Self::Kept, Self::RedisMemory, Self::RedisKept];

    fn start(self, programs: &Programs, folder: &TempDir) -> anyhow::Result<Server> {
        let folder = folder.path();
        Server::start(match self {
            Self::Memory => programs.tollgate(),
            Self::Kept => Program::TollgateIn(&programs.tollgate, folder),
            Self::RedisMemory => programs.redis(),
            Self::RedisKept => Program::RedisIn(&programs.redis_server, folder),
        })
    }

    fn is_redis(self) -> bool {
        matches!(self, Self::RedisMemory | Self::RedisKept)
    }
}

pub(crate) fn measure(programs: &Programs, effort: &Effort) -> anyhow::Result<Results> {
    let mut table = Table::new(&[
        "Requests per second",
        "Tollgate in memory",
        "with a folder",
        "Redis in memory",
        "with AOF",
    ]);
    for (name, command) in [("INCR", "INCR k:__rand_int__"), ("RL.LIMIT", LIMIT)] {
        table.row(&row(name, throughput(programs, effort, command)?));
    }
    let snapshot = snapshot(programs, effort)?;
    let starts = starts(programs, effort)?;
    let p99 = latency(programs, effort)?;
    Ok(Results(format!(
        "{}\nA snapshot of {} keys while INCR runs: {} requests per second, {} without it; the \
         resident set grew by {} MB.\n\nA start with {} keys in the journal, in seconds: Tollgate \
         {}, Redis {}.\n\nRL.LIMIT at a fixed rate, p99 in microseconds: {} in memory, {} with a \
         folder.\n",
        table.into_markdown(),
        MANY / effort.memory_divisor,
        cell(Some(snapshot[1])),
        cell(Some(snapshot[0])),
        cell(Some(snapshot[2] / 1e6)),
        MANY / effort.memory_divisor,
        cell(Some(starts[0])),
        cell(Some(starts[1])),
        cell(Some(p99[0])),
        cell(Some(p99[1])),
    )))
}

const LIMIT: &str = "RL.LIMIT k:__rand_int__ 1000000 1s ALGORITHM gcra";

fn row(name: &str, figures: [Option<f64>; 4]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(figures.map(cell)).collect()
}

fn throughput(
    programs: &Programs,
    effort: &Effort,
    command: &str,
) -> anyhow::Result<[Option<f64>; 4]> {
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let mut figures: [Vec<f64>; 4] = Default::default();
    for _ in 0..effort.rounds {
        for (rival, figures) in Rival::ALL.into_iter().zip(&mut figures) {
            if rival.is_redis() && words[0] != "INCR" {
                continue;
            }
            let folder = tempfile::tempdir()?;
            let server = rival.start(programs, &folder)?;
            let requests = effort.requests(PIPELINE, false);
            figures.push(programs.redis_benchmark(&server, requests, PIPELINE, &words)?);
        }
    }
    Ok(figures.map(median))
}

fn fill(server: &Server, keys: u64) -> anyhow::Result<()> {
    let batch = |_, round: u64| {
        let lines: Vec<String> =
            (0..BATCH).map(|key| format!("SET key:{:07} 1", round * BATCH + key)).collect();
        let requests = pipe::requests(lines.iter().map(String::as_str));
        pipe::Batch { requests, replies: b"+OK\r\n".repeat(BATCH as usize) }
    };
    pipe::run(server, 1, keys / BATCH, &batch)?;
    Ok(())
}

/// Requests per second without a snapshot and with one, and what the process grew by meanwhile.
fn snapshot(programs: &Programs, effort: &Effort) -> anyhow::Result<[f64; 3]> {
    let folder = tempfile::tempdir()?;
    let server = Rival::Kept.start(programs, &folder)?;
    fill(&server, MANY / effort.memory_divisor)?;
    let words = ["INCR", "n:__rand_int__"].map(str::to_owned);
    let requests = effort.requests(PIPELINE, false);
    let run = || programs.redis_benchmark(&server, requests, PIPELINE, &words);
    run()?;
    let alone = run()?;
    let before = server.rss_bytes()?;
    programs.ask(&server, &["BGSAVE"])?;
    let beside = run()?;
    let grown = server.rss_bytes()?.saturating_sub(before);
    Ok([alone, beside, grown as f64])
}

/// Seconds until the first answer.
fn starts(programs: &Programs, effort: &Effort) -> anyhow::Result<[f64; 2]> {
    let start = |rival: Rival| {
        let folder = tempfile::tempdir()?;
        let server = rival.start(programs, &folder)?;
        fill(&server, MANY / effort.memory_divisor)?;
        pause(JOURNALED_AFTER);
        drop(server);
        let clock = Clock::system();
        let began = clock.now();
        let _server = rival.start(programs, &folder)?;
        anyhow::Ok(clock.now().since(began).as_micros() as f64 / 1e6)
    };
    Ok([start(Rival::Kept)?, start(Rival::RedisKept)?])
}

/// The 99th percentile in memory and with a folder, at a rate that both can do with ease.
fn latency(programs: &Programs, effort: &Effort) -> anyhow::Result<[f64; 2]> {
    const PER_S: u64 = 20_000;
    let p99 = |rival: Rival| {
        let folder = tempfile::tempdir()?;
        let server = rival.start(programs, &folder)?;
        let load = Load::Rate { per_s: PER_S, seconds: effort.latency_s };
        let latency = programs.latency(&server, load, "RL.LIMIT {key} 1000000 1s")?;
        anyhow::Ok(latency.p99)
    };
    Ok([p99(Rival::Memory)?, p99(Rival::Kept)?])
}
