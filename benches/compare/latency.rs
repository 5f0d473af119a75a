//! Latency at half of saturation: two rivals at the same absolute rate, in an open loop.
//!
//! The rate is half of what the slower of a pair answers without pipeline in a closed loop of
//! the same generator. Each request's latency counts from the moment it was due, so the figures
//! hold the generator's own delay too, alike for both.

use crate::Effort;
use crate::generator::{KEYS, Latency, Load, Programs};
use crate::process::Server;
use crate::table::{Table, cell, median};

const LIMIT: &str = "RL.LIMIT {key} 100000000 60s";

/// RL.LIMIT against one rival.
#[derive(Debug)]
pub(crate) struct Duel {
    rival: &'static str,
    rate_per_s: u64,
    ours: Vec<Latency>,
    theirs: Vec<Latency>,
}

pub(crate) fn measure(programs: &Programs, effort: &Effort) -> anyhow::Result<[Duel; 2]> {
    let tollgate = Server::start(programs.tollgate())?;
    let redis = Server::start(programs.redis())?;
    let digest = programs.load_script(&redis)?;
    let script = format!("EVALSHA {digest} 1 {{key}} 100000000 60000");
    let limit_per_s = saturation(programs, effort, &tollgate, LIMIT)?;
    let duel = |rival, command: &str| {
        let rival_per_s = saturation(programs, effort, &redis, command)?;
        let rate_per_s = (rival_per_s.min(limit_per_s) / 2.0) as u64;
        let load = Load::Rate { per_s: rate_per_s, seconds: effort.latency_s };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 1..=effort.rounds {
            eprintln!("latency against {rival} at {rate_per_s}/s, round {round}/{}", effort.rounds);
            for (server, command, found) in
                [(&tollgate, LIMIT, &mut ours), (&redis, command, &mut theirs)]
            {
                programs.ask(server, &["FLUSHALL"])?;
                found.push(programs.latency(server, load, command)?);
            }
        }
        anyhow::Ok(Duel { rival, rate_per_s, ours, theirs })
    };
    Ok([duel("Redis EVALSHA sliding log", &script)?, duel("Redis INCR", "INCR {key}")?])
}

/// What a closed loop without pipeline gets, per second.
fn saturation(
    programs: &Programs,
    effort: &Effort,
    server: &Server,
    command: &str,
) -> anyhow::Result<f64> {
    eprintln!("saturation: {command}");
    programs.ask(server, &["FLUSHALL"])?;
    let load = Load::Requests { count: effort.requests(1, true), pipeline: 1, keys: KEYS };
    let report = programs.tollgate_bench(server, load, command)?;
    Ok(report["throughput_per_s"].as_f64().unwrap_or(0.0))
}

impl Duel {
    /// Ours over theirs at one percentile.
    pub(crate) fn ratio(&self, percentile: fn(&Latency) -> f64) -> Option<f64> {
        let [ours, theirs] = [&self.ours, &self.theirs].map(|runs| median_at(runs, percentile));
        Some(ours? / theirs?)
    }

    pub(crate) fn markdown(&self) -> String {
        let heading = format!("At {} requests/s (us)", self.rate_per_s);
        let mut table = Table::new(&[&heading, "p50", "p99", "p99.9"]);
        let percentiles: [fn(&Latency) -> f64; 3] = [|at| at.p50, |at| at.p99, |at| at.p999];
        for (label, runs) in [("Tollgate RL.LIMIT", &self.ours), (self.rival, &self.theirs)] {
            let figures = percentiles.map(|percentile| cell(median_at(runs, percentile)));
            table.row(&[vec![label.to_owned()], figures.to_vec()].concat());
        }
        table.into_markdown()
    }
}

fn median_at(runs: &[Latency], percentile: fn(&Latency) -> f64) -> Option<f64> {
    median(runs.iter().map(percentile))
}
