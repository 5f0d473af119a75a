//! The commands of Redis, asked of both servers: the processor time of each for a million, and
//! how much of Redis's ours is.
//!
//! The rows of `throughput.rs` are about limits; these are about being put in the place of a
//! Redis server: collections, transactions, scripts.

use anyhow::Context;

use crate::Effort;
use crate::generator::Programs;
use crate::pipe::{self, Batch};
use crate::process::Server;
use crate::table::{Table, cell, median};
use crate::targets::Target;

/// Requests that fill the keys of a case before it is measured.
const FILL_REQUESTS: u64 = 200_000;

/// One command, or a few in a row.
#[derive(Debug)]
struct Case {
    name: &'static str,
    pipeline: u32,
    requests: u64,
    /// `DIGEST` stands for the digest of the script.
    command: &'static str,
    fill: Option<&'static str>,
    script: Option<&'static str>,
    /// Ours, as a share of Redis's, is to be at most this.
    share_max: f64,
}

/// A sliding log that nobody has a native twin for.
const SCRIPT: &str = include_str!("sliding_log.lua");
/// The one that everybody can have.
const KNOWN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua-compat/sliding-log/script.lua"));

const fn plain(name: &'static str, command: &'static str, fill: Option<&'static str>) -> Case {
    Case { name, pipeline: 32, requests: 1_000_000, command, fill, script: None, share_max: 1.0 }
}

const fn script(name: &'static str, text: &'static str, pipeline: u32, share_max: f64) -> Case {
    Case {
        name,
        pipeline,
        requests: if pipeline > 1 { 300_000 } else { 100_000 },
        command: "EVALSHA DIGEST 1 key:__rand_int__ 100000000 60000",
        fill: None,
        script: Some(text),
        share_max,
    }
}

const HASH: &str =
    "HSET key:__rand_int__ f0 v0 f1 v1 f2 v2 f3 v3 f4 v4 f5 v5 f6 v6 f7 v7 f8 v8 f9 v9";
const MEMBER: &str = "ZADD key:__rand_int__ __rand_int__ member:__rand_int__";

const CASES: &[Case] = &[
    script("EVALSHA sliding log, pipeline 32", SCRIPT, 32, 2.0 / 3.0),
    script("EVALSHA sliding log, no pipeline", SCRIPT, 1, 1.0),
    script("EVALSHA sliding log by its native twin, pipeline 32", KNOWN, 32, 0.1),
    script("EVALSHA sliding log by its native twin, no pipeline", KNOWN, 1, 0.7),
    plain("ZADD", MEMBER, None),
    plain("ZCARD", "ZCARD key:__rand_int__", Some(MEMBER)),
    plain("HINCRBY", "HINCRBY key:__rand_int__ field 1", None),
    plain("HGETALL of ten fields", "HGETALL key:__rand_int__", Some(HASH)),
    plain("SET", "SET key:__rand_int__ value", None),
    plain("GET", "GET key:__rand_int__", Some("SET key:__rand_int__ value")),
    plain("INCR", "INCR key:__rand_int__", None),
    plain("LPUSH", "LPUSH key:__rand_int__ value", None),
];

/// Of transactions: what a connection sends at once, and how many connections and rounds.
const TRANSACTION: [&str; 5] = ["MULTI", "SET KEY value", "GET KEY", "SET KEY value", "EXEC"];
const TRANSACTION_REPLIES: &str =
    "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n$5\r\nvalue\r\n+OK\r\n";
const TRANSACTIONS_A_BATCH: usize = 8;

#[derive(Debug)]
pub(crate) struct Results {
    rows: Vec<Row>,
    /// Two workers' throughput over one's, of scripts on different keys.
    pub(crate) both_cores: anyhow::Result<f64>,
    /// What a sorted set of 1,000 members takes in ours, as a share of Redis's.
    pub(crate) sorted_set_share: anyhow::Result<f64>,
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    share_max: f64,
    /// Processor seconds per million requests: ours and Redis's.
    samples: anyhow::Result<[Vec<f64>; 2]>,
}

impl Row {
    fn medians(&self) -> [Option<f64>; 2] {
        match &self.samples {
            Ok(samples) => samples.each_ref().map(|side| median(side.iter().copied())),
            Err(_) => [None, None],
        }
    }
}

pub(crate) fn measure(programs: &Programs, effort: &Effort) -> anyhow::Result<Results> {
    let sides = [Server::start(programs.tollgate())?, Server::start(programs.redis())?];
    let mut rows: Vec<_> = CASES
        .iter()
        .map(|case| (case.name, case.share_max))
        .chain([("MULTI and EXEC of three", 1.0)])
        .map(|(name, share_max)| Row { name, share_max, samples: Ok(Default::default()) })
        .collect();
    for round in 1..=effort.rounds {
        for (number, row) in rows.iter_mut().enumerate() {
            let Ok(samples) = &mut row.samples else { continue };
            eprintln!("commands, round {round}/{}: {}", effort.rounds, row.name);
            let taken = sides.each_ref().map(|server| match CASES.get(number) {
                Some(case) => sample(programs, server, case, effort),
                None => transactions(programs, server, effort),
            });
            match taken {
                [Ok(ours), Ok(theirs)] => {
                    samples[0].push(ours);
                    samples[1].push(theirs);
                }
                [Err(err), _] => row.samples = Err(err.context("Tollgate")),
                [_, Err(err)] => row.samples = Err(err.context("Redis")),
            }
        }
    }
    let sorted_set_share = sorted_set_share(programs, &sides);
    Ok(Results { rows, both_cores: both_cores(programs, effort), sorted_set_share })
}

/// Processor seconds per million requests.
fn sample(
    programs: &Programs,
    server: &Server,
    case: &Case,
    effort: &Effort,
) -> anyhow::Result<f64> {
    programs.ask(server, &["FLUSHALL"])?;
    let digest = match case.script {
        Some(text) => programs.ask(server, &["SCRIPT", "LOAD", text])?,
        None => String::new(),
    };
    let words = |line: &str| -> Vec<String> {
        line.split(' ').map(|word| word.replace("DIGEST", &digest)).collect()
    };
    if let Some(fill) = case.fill {
        programs.redis_benchmark(server, FILL_REQUESTS, 32, &words(fill)).context("fill")?;
    }
    let requests = case.requests / effort.divisor;
    let before_s = server.cpu_s()?;
    programs.redis_benchmark(server, requests, case.pipeline, &words(case.command))?;
    Ok((server.cpu_s()? - before_s) * 1e6 / requests as f64)
}

/// Processor seconds per million transactions.
fn transactions(programs: &Programs, server: &Server, effort: &Effort) -> anyhow::Result<f64> {
    programs.ask(server, &["FLUSHALL"])?;
    let rounds = 500 / effort.divisor.min(50);
    let batch = |connection: usize, round: u64| {
        let key = format!("key:{}", (connection as u64 * 7919 + round * 31) % 10_000);
        let lines: Vec<_> = TRANSACTION.iter().map(|line| line.replace("KEY", &key)).collect();
        let one = pipe::requests(lines.iter().map(String::as_str));
        Batch {
            requests: one.repeat(TRANSACTIONS_A_BATCH),
            replies: TRANSACTION_REPLIES.repeat(TRANSACTIONS_A_BATCH).into_bytes(),
        }
    };
    let before_s = server.cpu_s()?;
    pipe::run(server, 50, rounds, &batch)?;
    let transactions = rounds * 50 * TRANSACTIONS_A_BATCH as u64;
    Ok((server.cpu_s()? - before_s) * 1e6 / transactions as f64)
}

/// Scripts of about a millisecond on two keys, from two connections.
fn both_cores(programs: &Programs, effort: &Effort) -> anyhow::Result<f64> {
    const BUSY: &str =
        "local n = 0 for i = 1, 100000 do n = n + i % 7 end return redis.call('SET', KEYS[1], n)";
    let rounds = 400 / effort.divisor.min(20);
    let mut ratios = Vec::new();
    for _ in 0..effort.rounds {
        let mut per_s = [0.0; 2];
        for (rate, workers) in per_s.iter_mut().zip([1, 2]) {
            let server = Server::start(programs.tollgate_of(workers))?;
            let digest = programs.ask(&server, &["SCRIPT", "LOAD", BUSY])?;
            *rate = pipe::run(&server, 2, rounds, &|connection, _| Batch {
                requests: pipe::requests([format!("EVALSHA {digest} 1 key:{connection}").as_str()]),
                replies: b"+OK\r\n".to_vec(),
            })?;
        }
        ratios.push(per_s[1] / per_s[0]);
    }
    median(ratios).context("no round")
}

/// What MEMORY USAGE says of a sorted set of 1,000 members of 20 bytes.
fn sorted_set_share(programs: &Programs, sides: &[Server; 2]) -> anyhow::Result<f64> {
    let mut bytes = [0.0; 2];
    for (bytes, server) in bytes.iter_mut().zip(sides) {
        programs.ask(server, &["FLUSHALL"])?;
        let members: Vec<String> = (0..1_000)
            .flat_map(|number| {
                [format!("17000000001{number:05}"), format!("1700000000.{number:06}.{:02}", 42)]
            })
            .collect();
        let words = ["ZADD", "log"].into_iter().chain(members.iter().map(String::as_str));
        programs.ask(server, &words.collect::<Vec<_>>())?;
        let usage = programs.ask(server, &["MEMORY", "USAGE", "log", "SAMPLES", "0"])?;
        *bytes = usage.parse::<f64>().with_context(|| format!("no number: {usage}"))?;
    }
    Ok(bytes[0] / bytes[1])
}

impl Results {
    pub(crate) fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                let [ours, theirs] = row.medians();
                let share = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
                Target::at_most(&format!("CPU, {} / Redis", row.name), row.share_max, share)
            })
            .collect();
        targets.push(Target::at_least(
            "throughput, scripts on two keys, two workers / one worker",
            1.6,
            self.both_cores.as_ref().ok().copied(),
        ));
        targets.push(Target::at_most(
            "memory, a sorted set of 1,000 members / Redis",
            1.0,
            self.sorted_set_share.as_ref().ok().copied(),
        ));
        targets
    }

    pub(crate) fn markdown(&self) -> String {
        let headings = ["Command", "Tollgate, CPU s per million", "Redis", "share"];
        let mut table = Table::new(&headings);
        let mut failures = Vec::new();
        for row in &self.rows {
            let [ours, theirs] = row.medians();
            let share = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
            table.row(&[row.name.to_owned(), cell(ours), cell(theirs), cell(share)]);
            if let Err(err) = &row.samples {
                failures.push(format!("\nNot measured: {}: {err:#}\n", row.name));
            }
        }
        let others = [("both cores", &self.both_cores), ("sorted sets", &self.sorted_set_share)];
        for (name, other) in others {
            if let Err(err) = other {
                failures.push(format!("\nNot measured: {name}: {err:#}\n"));
            }
        }
        format!("## The commands of Redis\n\n{}{}", table.into_markdown(), failures.concat())
    }
}
