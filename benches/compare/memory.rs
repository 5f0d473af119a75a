//! Memory: what the resident set of a fresh server grows by, for a key, an event, a connection.
//!
//! Each case has a server of its own, which has served one pipelined load of PINGs before the
//! first reading, so that buffers and arenas of first use are not charged to the keys.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tollgate::time::Duration;

use crate::Effort;
use crate::generator::{Load, Programs};
use crate::process::{Program, Server, pause};
use crate::table::{Table, cell};

const PIPELINE: u32 = 100;
const IDLE_CONNECTIONS: u64 = 10_000;
/// Files of our own besides the connections.
const FILES_SPARE: u64 = 64;

/// Keys of the two logs, and events in each key.
const SHORT_LOG: (u64, u64) = (100_000, 10);
const LONG_LOG: (u64, u64) = (2_000, 1_000);
const COUNTERS: u64 = 1_000_000;

/// Growth of the resident set in bytes.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) short_log_per_key: Option<f64>,
    pub(crate) long_log_per_event: Option<f64>,
    /// The worst of the algorithms, without the key's name.
    pub(crate) counter_per_key: Option<f64>,
    pub(crate) idle_per_connection: Option<f64>,
    markdown: String,
}

impl Results {
    pub(crate) fn markdown(&self) -> String {
        format!("## Memory, bytes by growth of the resident set\n\n{}", self.markdown)
    }
}

struct Book<'a> {
    programs: &'a Programs,
    settle: Duration,
    table: Table,
    failures: Vec<String>,
}

pub(crate) fn measure(programs: &Programs, effort: &Effort) -> Results {
    let table = Table::new(&["Case", "Tollgate", "Redis"]);
    let mut book = Book { programs, settle: effort.settle, table, failures: Vec::new() };
    let cut = effort.memory_divisor;
    let short_log_per_key = book.short_log(SHORT_LOG.0 / cut, SHORT_LOG.1);
    let long_log_per_event = book.long_log(LONG_LOG.0 / cut, LONG_LOG.1);
    let counter_per_key = book.counters(COUNTERS / cut);
    let idle_per_connection = book.idle(IDLE_CONNECTIONS / cut);
    let markdown = book.table.into_markdown() + &book.failures.concat();
    Results {
        short_log_per_key,
        long_log_per_event,
        counter_per_key,
        idle_per_connection,
        markdown,
    }
}

/// One pass of `tollgate bench` over a server.
struct Pass {
    requests: u64,
    keys: u64,
    command: String,
}

impl Book<'_> {
    fn short_log(&mut self, keys: u64, events: u64) -> Option<f64> {
        let pass = |command: String| Pass { requests: keys, keys, command };
        let native = (0..events).map(|_| pass("RL.LIMIT log:{n} 1000000 1h".to_owned()));
        let zset = (0..events)
            .map(|event| {
                pass(format!(
                    "ZADD log:{{n}} 17000000001234{event:02} 1700000000.{event:06}.{event}"
                ))
            })
            .chain([pass("PEXPIRE log:{n} 3600000".to_owned())]);
        let label = format!("sliding log, {keys} keys of {events} events: per key");
        self.pair(&label, keys, native.collect(), zset.collect())
    }

    fn long_log(&mut self, keys: u64, events: u64) -> Option<f64> {
        let requests = keys * events;
        let pass = |requests, command: &str| Pass { requests, keys, command: command.to_owned() };
        let native = vec![pass(requests, "RL.LIMIT {key} 1000000 1h")];
        let zset = vec![
            pass(requests, "ZADD {key} 1700000{n} 1700000000.{n}.500"),
            pass(keys, "PEXPIRE key:{n} 3600000"),
        ];
        let label = format!("sliding log, {keys} keys of about {events} events: per event");
        self.pair(&label, requests, native, zset)
    }

    fn counters(&mut self, keys: u64) -> Option<f64> {
        let pass = |command: String| Pass { requests: keys, keys, command };
        let name_bytes = mean_name_bytes("counter:", keys);
        let mut worst: Option<f64> = None;
        for algorithm in ["fixed-window", "sliding-counter", "gcra"] {
            let command = format!("RL.LIMIT counter:{{n}} 5 1h ALGORITHM {algorithm}");
            let growth = self.growth(self.programs.tollgate(), vec![pass(command)]);
            let per_key = growth.map(|bytes| bytes / keys as f64);
            let label = format!("{algorithm}, {keys} keys: per key, its name included");
            let bytes = self.note(&label, per_key);
            self.table.row(&[label, cell(bytes), "–".to_owned()]);
            let over = bytes.map(|bytes| bytes - name_bytes);
            worst = worst.into_iter().chain(over).max_by(f64::total_cmp);
        }
        let command = "SET counter:{n} 1 PX 3600000".to_owned();
        let growth = self.growth(self.programs.redis(), vec![pass(command)]);
        let label = format!("string counter with a TTL, {keys} keys: per key, its name included");
        let bytes = self.note(&label, growth.map(|bytes| bytes / keys as f64));
        self.table.row(&[label, "–".to_owned(), cell(bytes)]);
        worst
    }

    fn idle(&mut self, connections: u64) -> Option<f64> {
        let label = format!("{connections} idle connections: per connection");
        let [ours, theirs] = [self.programs.tollgate(), self.programs.redis()].map(|program| {
            eprintln!("memory: {program}, {label}");
            idle_growth(program, connections, self.settle)
        });
        let [ours, theirs] = [ours, theirs]
            .map(|growth| self.note(&label, growth.map(|bytes| bytes / connections as f64)));
        self.table.row(&[label, cell(ours), cell(theirs)]);
        ours
    }

    fn pair(&mut self, label: &str, units: u64, ours: Vec<Pass>, theirs: Vec<Pass>) -> Option<f64> {
        let ours = self.growth(self.programs.tollgate(), ours);
        let theirs = self.growth(self.programs.redis(), theirs);
        let [ours, theirs] =
            [ours, theirs].map(|growth| self.note(label, growth.map(|bytes| bytes / units as f64)));
        self.table.row(&[label.to_owned(), cell(ours), cell(theirs)]);
        ours
    }

    fn growth(&self, program: Program<'_>, passes: Vec<Pass>) -> anyhow::Result<f64> {
        eprintln!("memory: {program}, {}", passes[0].command);
        let server = Server::start(program)?;
        let load = |requests, keys, command: &str| {
            let load = Load::Requests { count: requests, pipeline: PIPELINE, keys: keys as u32 };
            self.programs.tollgate_bench(&server, load, command)
        };
        load(50_000, 1, "PING")?;
        let before = server.rss_bytes()?;
        for Pass { requests, keys, command } in passes {
            load(requests, keys, &command)?;
        }
        Ok(server.rss_bytes()? as f64 - before as f64)
    }

    /// The figure, or a line below the table that says why there is none.
    fn note(&mut self, label: &str, figure: anyhow::Result<f64>) -> Option<f64> {
        figure.map_err(|err| self.failures.push(format!("\nNot measured: {label}: {err:#}\n"))).ok()
    }
}

fn idle_growth(program: Program<'_>, connections: u64, settle: Duration) -> anyhow::Result<f64> {
    allow_open_files(connections + FILES_SPARE)?;
    let server = Server::start(program)?;
    let before = server.rss_bytes()?;
    let open: Vec<_> = (0..connections).map(|_| server.connect()).collect::<anyhow::Result<_>>()?;
    // Servers give buffers of silent connections back after a while.
    pause(settle);
    let growth = server.rss_bytes()? as f64 - before as f64;
    drop(open);
    Ok(growth)
}

/// Raises the limit on open files of ourselves and of the servers started from here.
fn allow_open_files(files: u64) -> anyhow::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < files) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })?;
    }
    Ok(())
}

/// Mean length of `prefix` with a number below `keys` behind it.
fn mean_name_bytes(prefix: &str, keys: u64) -> f64 {
    let digits: u64 = (0..keys).map(|number| u64::from(number.max(1).ilog10()) + 1).sum();
    prefix.len() as f64 + digits as f64 / keys as f64
}
