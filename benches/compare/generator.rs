//! The load generators, all of them programs of their own: the same ones for both sides.
//!
//! `redis-benchmark` measures throughput; `tollgate bench` loads memory and measures latency in
//! an open loop; `redis-cli` asks single questions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::process::{Program, Server, output_of};

pub(crate) const CONNECTIONS: u32 = 50;
pub(crate) const KEYS: u32 = 10_000;

/// The sorted-set script that RL.LIMIT is compared with.
const SLIDING_LOG: &str = include_str!("sliding_log.lua");

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) tollgate: PathBuf,
    pub(crate) redis_server: PathBuf,
    redis_benchmark: PathBuf,
    redis_cli: PathBuf,
}

/// Latency of one open-loop run, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
}

/// How `tollgate bench` is to load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// Closed loop.
    Requests { count: u64, pipeline: u32, keys: u32 },
    /// Open loop.
    Rate { per_s: u64, seconds: u64 },
}

impl Programs {
    pub(crate) fn find(tollgate: &Path) -> anyhow::Result<Self> {
        if !tollgate.is_file() {
            bail!(
                "there is no {}; build it by `cargo build --release`, or name another by \
                 --tollgate PATH",
                tollgate.display()
            );
        }
        Ok(Self {
            tollgate: tollgate.to_owned(),
            redis_server: on_path("redis-server", "redis-server")?,
            redis_benchmark: on_path("redis-benchmark", "redis-tools")?,
            redis_cli: on_path("redis-cli", "redis-tools")?,
        })
    }

    pub(crate) fn tollgate(&self) -> Program<'_> {
        Program::Tollgate(&self.tollgate)
    }

    pub(crate) fn tollgate_of(&self, workers: u32) -> Program<'_> {
        Program::TollgateOf(&self.tollgate, workers)
    }

    pub(crate) fn floor(&self) -> Program<'_> {
        Program::Floor(&self.tollgate)
    }

    pub(crate) fn redis(&self) -> Program<'_> {
        Program::Redis(&self.redis_server)
    }

    /// Runs `redis-benchmark`; returns requests per second.
    pub(crate) fn redis_benchmark(
        &self,
        server: &Server,
        requests: u64,
        pipeline: u32,
        command: &[String],
    ) -> anyhow::Result<f64> {
        let mut run = Command::new(&self.redis_benchmark);
        run.args(["-h", "127.0.0.1", "-p", &server.port.to_string()]);
        run.args(["-n", &requests.to_string(), "-r", &KEYS.to_string()]);
        run.args(["-P", &pipeline.to_string(), "-c", &CONNECTIONS.to_string()]);
        run.args(["--threads", "1", "--csv"]).args(command);
        let printed = output_of(&mut run)?;
        rate_in_csv(&printed)
            .with_context(|| format!("redis-benchmark told no figure: {}", printed.trim()))
    }

    /// Asks one question; an error reply is a failure.
    pub(crate) fn ask(&self, server: &Server, words: &[&str]) -> anyhow::Result<String> {
        let port = server.port.to_string();
        let mut run = Command::new(&self.redis_cli);
        let answer = output_of(run.args(["-e", "-h", "127.0.0.1", "-p", &port]).args(words))?;
        Ok(answer.trim_end().to_owned())
    }

    /// Loads the script that [`Programs::redis`] is asked with; returns its digest.
    pub(crate) fn load_script(&self, redis: &Server) -> anyhow::Result<String> {
        self.ask(redis, &["SCRIPT", "LOAD", SLIDING_LOG])
    }

    /// Runs `tollgate bench`; returns its JSON.
    pub(crate) fn tollgate_bench(
        &self,
        server: &Server,
        load: Load,
        command: &str,
    ) -> anyhow::Result<serde_json::Value> {
        let mut run = Command::new(&self.tollgate);
        run.args(["bench", "--json", "-", "--port", &server.port.to_string()]);
        run.args(["--connections", &CONNECTIONS.to_string()]);
        let (pipeline, keys) = match load {
            Load::Requests { count, pipeline, keys } => {
                run.args(["--requests", &count.to_string()]);
                (pipeline, keys)
            }
            Load::Rate { per_s, seconds } => {
                run.args(["--rate", &per_s.to_string(), "--seconds", &seconds.to_string()]);
                (1, KEYS)
            }
        };
        run.args(["--pipeline", &pipeline.to_string(), "--keys", &keys.to_string()]);
        let printed = output_of(run.args(command.split(' ')))?;
        let report: serde_json::Value = serde_json::from_str(&printed)?;
        if report["errors"] != 0 {
            bail!("`{command}` was answered by errors: {}", report["first_error"]);
        }
        Ok(report)
    }

    /// Latency at a fixed rate.
    pub(crate) fn latency(
        &self,
        server: &Server,
        load: Load,
        command: &str,
    ) -> anyhow::Result<Latency> {
        let report = self.tollgate_bench(server, load, command)?;
        let micros = |name| report["latency_us"][name].as_f64().context("no latency in the report");
        Ok(Latency { p50: micros("p50")?, p99: micros("p99")?, p999: micros("p999")? })
    }
}

/// The second column of the last line; the first, the command, is quoted and may hold commas.
fn rate_in_csv(printed: &str) -> Option<f64> {
    let (_command, figures) = printed.trim_end().lines().next_back()?.split_once("\",\"")?;
    figures.split('"').next()?.parse().ok()
}

fn on_path(name: &str, package: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("`{name}` is not installed (apt package {package})"))
}
