//! What was promised, and what became of it: met, not met, or not measured.
//!
//! A ratio is that of the medians printed further down, so that a reader can do the sum.

use crate::Findings;
use crate::commands;
use crate::latency::Duel;
use crate::memory;
use crate::table::{Table, cell, figure};
use crate::throughput::{Results, Row};

/// One thing that was promised.
#[derive(Debug)]
pub(crate) struct Target {
    promise: String,
    bound: Bound,
    /// None where a figure it needs could not be measured.
    measured: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// Every target with its verdict.
pub(crate) fn markdown(findings: &Findings) -> String {
    let pipelined = findings.pipelined.as_ref().and_then(|results| results.as_ref().ok());
    let single = findings.single.as_ref().and_then(|results| results.as_ref().ok());
    let duels = findings.latency.as_ref().and_then(|duels| duels.as_ref().ok());
    let commands = findings.commands.as_ref().and_then(|results| results.as_ref().ok());
    let mut table = Table::new(&["Target", "wanted", "measured", "verdict"]);
    let targets = pipelined_targets(pipelined)
        .into_iter()
        .chain(single_targets(single))
        .chain(memory_targets(findings.memory.as_ref()))
        .chain(latency_targets(duels))
        .chain(commands.map(commands::Results::targets).unwrap_or_default());
    for Target { promise, bound, measured } in targets {
        let wanted = match bound {
            Bound::AtMost(most) => format!("<= {}", figure(most)),
            Bound::AtLeast(least) => format!(">= {}", figure(least)),
        };
        let verdict = match (bound, measured) {
            (_, None) => "not measured",
            (Bound::AtMost(most), Some(value)) if value <= most => "met",
            (Bound::AtLeast(least), Some(value)) if value >= least => "met",
            (Bound::AtMost(_) | Bound::AtLeast(_), Some(_)) => "**not met**",
        };
        table.row(&[promise, wanted, cell(measured), verdict.to_owned()]);
    }
    table.into_markdown()
}

impl Target {
    pub(crate) fn at_most(promise: &str, most: f64, measured: Option<f64>) -> Self {
        Self { promise: promise.to_owned(), bound: Bound::AtMost(most), measured }
    }

    pub(crate) fn at_least(promise: &str, least: f64, measured: Option<f64>) -> Self {
        Self { promise: promise.to_owned(), bound: Bound::AtLeast(least), measured }
    }
}

fn over(ours: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    Some(ours? / theirs?)
}

fn cpu_over(results: Option<&Results>, ours: Row, theirs: Row) -> Option<f64> {
    over(results?.cpu(ours), results?.cpu(theirs))
}

fn throughput_over(results: Option<&Results>, ours: Row, theirs: Row) -> Option<f64> {
    over(results?.per_s(ours), results?.per_s(theirs))
}

fn pipelined_targets(results: Option<&Results>) -> Vec<Target> {
    let cpu = |ours, theirs| cpu_over(results, ours, theirs);
    let per_s = |ours, theirs| throughput_over(results, ours, theirs);
    vec![
        Target::at_most(
            "pipeline 32: CPU, RL.LIMIT allowed / Redis script allowed",
            1.0 / 15.0,
            cpu(Row::LimitAllowed, Row::ScriptAllowed),
        ),
        Target::at_most(
            "pipeline 32: CPU, RL.LIMIT denied / Redis script denied",
            1.0 / 9.0,
            cpu(Row::LimitDenied, Row::ScriptDenied),
        ),
        Target::at_most(
            "pipeline 32: CPU, RL.LIMIT allowed / Redis INCR",
            1.0,
            cpu(Row::LimitAllowed, Row::RedisIncr),
        ),
        Target::at_most(
            "pipeline 32: CPU, RL.LIMIT allowed / Tollgate floor",
            2.0,
            cpu(Row::LimitAllowed, Row::Floor),
        ),
        Target::at_most(
            "pipeline 32: CPU, RL.LIMIT allowed / Tollgate floor, asked the same",
            2.0,
            cpu(Row::LimitAllowed, Row::FloorWords),
        ),
        Target::at_least(
            "pipeline 32: throughput, one hot key / 10,000 keys, allowed",
            0.8,
            per_s(Row::HotAllowed, Row::LimitAllowed),
        ),
        Target::at_least(
            "pipeline 32: throughput, one hot key / 10,000 keys, denied",
            0.8,
            per_s(Row::HotDenied, Row::LimitDenied),
        ),
    ]
}

fn single_targets(results: Option<&Results>) -> Vec<Target> {
    let best = results.and_then(Results::best_redis_per_s);
    let ours = results.and_then(|results| results.per_s(Row::LimitAllowed));
    vec![
        Target::at_most(
            "no pipeline: CPU, RL.LIMIT allowed / Redis INCR",
            1.0,
            cpu_over(results, Row::LimitAllowed, Row::RedisIncr),
        ),
        Target::at_most(
            "no pipeline: CPU, RL.LIMIT allowed / Redis script allowed",
            0.65,
            cpu_over(results, Row::LimitAllowed, Row::ScriptAllowed),
        ),
        Target::at_least(
            "no pipeline: throughput, RL.LIMIT allowed / the fastest row of Redis",
            0.95,
            over(ours, best),
        ),
    ]
}

fn memory_targets(results: Option<&memory::Results>) -> Vec<Target> {
    let bytes = |of: fn(&memory::Results) -> Option<f64>| results.and_then(of);
    vec![
        Target::at_most(
            "memory: bytes per event of a log of 1,000",
            8.0,
            bytes(|results| results.long_log_per_event),
        ),
        Target::at_most(
            "memory: bytes per key with a log of 10 events",
            250.0,
            bytes(|results| results.short_log_per_key),
        ),
        Target::at_most(
            "memory: bytes per counter over its name's length, the worst algorithm",
            100.0,
            bytes(|results| results.counter_per_key),
        ),
        Target::at_most(
            "memory: bytes per idle connection",
            10_240.0,
            bytes(|results| results.idle_per_connection),
        ),
    ]
}

fn latency_targets(duels: Option<&[Duel; 2]>) -> Vec<Target> {
    let duel = |at: usize| duels.and_then(|duels| duels.get(at));
    [(duel(0), "script"), (duel(1), "INCR")]
        .into_iter()
        .flat_map(|(duel, rival)| {
            [
                Target::at_most(
                    &format!("latency p99, RL.LIMIT / Redis {rival}"),
                    1.1,
                    duel.and_then(|duel| duel.ratio(|at| at.p99)),
                ),
                Target::at_most(
                    &format!("latency p99.9, RL.LIMIT / Redis {rival}"),
                    1.1,
                    duel.and_then(|duel| duel.ratio(|at| at.p999)),
                ),
            ]
        })
        .collect()
}
