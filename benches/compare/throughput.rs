//! Throughput and processor time of every row, both servers taking turns.
//!
//! A row's cost is the server's own processor time for a million requests: unlike throughput
//! it does not depend on how fast the generator is. All servers run from the first round to the
//! last; those not being asked are idle. Keys are thrown away between rows.

use anyhow::Context;

use crate::Effort;
use crate::generator::Programs;
use crate::process::Server;
use crate::table::{Table, cell, figure, median};

/// Requests, per key of the keyspace, that make sure that a denied row is denied throughout.
const FILL_REQUESTS: u64 = 200_000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Row {
    Floor,
    FloorWords,
    RedisPing,
    LimitAllowed,
    ScriptAllowed,
    LimitDenied,
    ScriptDenied,
    Incr,
    RedisIncr,
    Set,
    RedisSet,
    Get,
    RedisGet,
    HotAllowed,
    HotDenied,
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Floor,
    Tollgate,
    Redis,
}

impl Row {
    /// In the order of a round: rivals are neighbours.
    const ALL: [Self; 15] = [
        Self::Floor,
        Self::FloorWords,
        Self::RedisPing,
        Self::LimitAllowed,
        Self::ScriptAllowed,
        Self::LimitDenied,
        Self::ScriptDenied,
        Self::Incr,
        Self::RedisIncr,
        Self::Set,
        Self::RedisSet,
        Self::Get,
        Self::RedisGet,
        Self::HotAllowed,
        Self::HotDenied,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Floor => "Tollgate floor (+PONG to everything), asked PING",
            Self::FloorWords => "Tollgate floor, asked RL.LIMIT",
            Self::RedisPing => "Redis PING",
            Self::LimitAllowed => "Tollgate RL.LIMIT, allowed",
            Self::ScriptAllowed => "Redis EVALSHA sliding log, allowed",
            Self::LimitDenied => "Tollgate RL.LIMIT, denied",
            Self::ScriptDenied => "Redis EVALSHA sliding log, denied",
            Self::Incr => "Tollgate INCR",
            Self::RedisIncr => "Redis INCR",
            Self::Set => "Tollgate SET",
            Self::RedisSet => "Redis SET",
            Self::Get => "Tollgate GET",
            Self::RedisGet => "Redis GET",
            Self::HotAllowed => "Tollgate RL.LIMIT, one hot key, allowed",
            Self::HotDenied => "Tollgate RL.LIMIT, one hot key, denied",
        }
    }

    fn side(self) -> Side {
        match self {
            Self::Floor | Self::FloorWords => Side::Floor,
            Self::LimitAllowed
            | Self::LimitDenied
            | Self::Incr
            | Self::Set
            | Self::Get
            | Self::HotAllowed
            | Self::HotDenied => Side::Tollgate,
            Self::RedisPing
            | Self::ScriptAllowed
            | Self::ScriptDenied
            | Self::RedisIncr
            | Self::RedisSet
            | Self::RedisGet => Side::Redis,
        }
    }

    fn is_script(self) -> bool {
        matches!(self, Self::ScriptAllowed | Self::ScriptDenied)
    }

    fn command(self, digest: &str) -> Vec<String> {
        let line = match self {
            Self::Floor | Self::RedisPing => "PING",
            Self::FloorWords | Self::LimitAllowed => "RL.LIMIT key:__rand_int__ 100000000 60s",
            Self::ScriptAllowed => "EVALSHA DIGEST 1 key:__rand_int__ 100000000 60000",
            Self::LimitDenied => "RL.LIMIT key:__rand_int__ 5 60s",
            Self::ScriptDenied => "EVALSHA DIGEST 1 key:__rand_int__ 5 60000",
            Self::Incr | Self::RedisIncr => "INCR key:__rand_int__",
            Self::Set | Self::RedisSet => "SET key:__rand_int__ value",
            Self::Get | Self::RedisGet => "GET key:__rand_int__",
            Self::HotAllowed => "RL.LIMIT hot 100000000 60s",
            Self::HotDenied => "RL.LIMIT hot 5 60s",
        };
        line.split(' ').map(|word| word.replace("DIGEST", digest)).collect()
    }

    /// What is sent, unmeasured, so that the row finds the keys it is about.
    fn fill(self, digest: &str) -> Option<Vec<String>> {
        match self {
            Self::LimitDenied | Self::ScriptDenied | Self::HotDenied => Some(self.command(digest)),
            Self::Get | Self::RedisGet => Some(Self::Set.command(digest)),
            Self::Floor
            | Self::FloorWords
            | Self::RedisPing
            | Self::LimitAllowed
            | Self::ScriptAllowed
            | Self::Incr
            | Self::RedisIncr
            | Self::Set
            | Self::RedisSet
            | Self::HotAllowed => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    per_s: f64,
    cpu_s_per_million: f64,
}

/// Everything measured at one depth of pipeline.
#[derive(Debug)]
pub(crate) struct Results {
    pipeline: u32,
    rows: Vec<(Row, anyhow::Result<Vec<Sample>>)>,
}

/// The servers of the whole comparison; the floor may be missing.
#[derive(Debug)]
struct Field {
    floor: anyhow::Result<Server>,
    tollgate: Server,
    redis: Server,
    digest: String,
}

pub(crate) fn measure(
    programs: &Programs,
    effort: &Effort,
    pipeline: u32,
) -> anyhow::Result<Results> {
    let redis = Server::start(programs.redis())?;
    let field = Field {
        floor: Server::start(programs.floor()),
        tollgate: Server::start(programs.tollgate())?,
        digest: programs.load_script(&redis)?,
        redis,
    };
    field.check_that_rivals_agree(programs)?;
    let hot = |row: &Row| matches!(row, Row::HotAllowed | Row::HotDenied);
    let rows = Row::ALL.into_iter().filter(|row| pipeline > 1 || !hot(row));
    let mut rows: Vec<_> = rows.map(|row| (row, Ok(Vec::new()))).collect();
    for round in 1..=effort.rounds {
        for (row, samples) in &mut rows {
            let Ok(taken) = samples else { continue };
            eprintln!("pipeline {pipeline}, round {round}/{}: {}", effort.rounds, row.label());
            let requests = effort.requests(pipeline, row.is_script());
            match field.sample(programs, *row, pipeline, requests) {
                Ok(sample) => taken.push(sample),
                Err(err) => *samples = Err(err),
            }
        }
    }
    Ok(Results { pipeline, rows })
}

impl Field {
    /// The script and RL.LIMIT answer the same to the same questions.
    fn check_that_rivals_agree(&self, programs: &Programs) -> anyhow::Result<()> {
        let script = ["EVALSHA", &self.digest, "1", "probe", "2", "60000"];
        let native = ["RL.LIMIT", "probe", "2", "60s"];
        for (limited, remaining) in [("0", "1"), ("0", "0"), ("1", "0")] {
            for (server, question) in [(&self.redis, &script[..]), (&self.tollgate, &native[..])] {
                let answer = programs.ask(server, question)?;
                let numbers: Vec<_> = answer.lines().collect();
                let expected = [limited, "2", remaining];
                anyhow::ensure!(
                    numbers.len() == 5 && numbers[..3] == expected,
                    "{question:?} answered {numbers:?}, which does not begin with {expected:?}"
                );
            }
        }
        Ok(())
    }

    fn sample(
        &self,
        programs: &Programs,
        row: Row,
        pipeline: u32,
        requests: u64,
    ) -> anyhow::Result<Sample> {
        let server = match row.side() {
            Side::Floor => self.floor.as_ref().map_err(|err| anyhow::anyhow!("{err:#}"))?,
            Side::Tollgate => &self.tollgate,
            Side::Redis => &self.redis,
        };
        programs.ask(server, &["FLUSHALL"])?;
        if let Some(command) = row.fill(&self.digest) {
            programs.redis_benchmark(server, FILL_REQUESTS, 32, &command).context("fill")?;
        }
        let before_s = server.cpu_s()?;
        let command = row.command(&self.digest);
        let per_s = programs.redis_benchmark(server, requests, pipeline, &command)?;
        let cpu_s = server.cpu_s()? - before_s;
        Ok(Sample { per_s, cpu_s_per_million: cpu_s * 1e6 / requests as f64 })
    }
}

impl Results {
    pub(crate) fn per_s(&self, row: Row) -> Option<f64> {
        self.median(row, |sample| sample.per_s)
    }

    /// Processor seconds per million requests.
    pub(crate) fn cpu(&self, row: Row) -> Option<f64> {
        self.median(row, |sample| sample.cpu_s_per_million)
    }

    /// The fastest of Redis's rows.
    pub(crate) fn best_redis_per_s(&self) -> Option<f64> {
        let redis = Row::ALL.into_iter().filter(|row| matches!(row.side(), Side::Redis));
        redis.filter_map(|row| self.per_s(row)).max_by(f64::total_cmp)
    }

    fn median(&self, row: Row, figure: impl Fn(&Sample) -> f64) -> Option<f64> {
        let (_, samples) = self.rows.iter().find(|(other, _)| *other == row)?;
        median(samples.as_ref().ok()?.iter().map(figure))
    }

    pub(crate) fn markdown(&self) -> String {
        let mut table = Table::new(&["Row", "requests/s", "CPU s per million", "lowest – highest"]);
        let mut failures = Vec::new();
        for (row, samples) in &self.rows {
            let spread = match samples {
                Ok(samples) => spread(samples.iter().map(|sample| sample.cpu_s_per_million)),
                Err(err) => {
                    failures.push(format!("\nNot measured: {}: {err:#}\n", row.label()));
                    "–".to_owned()
                }
            };
            let label = row.label().to_owned();
            table.row(&[label, cell(self.per_s(*row)), cell(self.cpu(*row)), spread]);
        }
        format!("## Pipeline {}\n\n{}{}", self.pipeline, table.into_markdown(), failures.concat())
    }
}

fn spread(values: impl Iterator<Item = f64> + Clone) -> String {
    let lowest = values.clone().fold(f64::INFINITY, f64::min);
    let highest = values.fold(f64::NEG_INFINITY, f64::max);
    format!("{} – {}", figure(lowest), figure(highest))
}
