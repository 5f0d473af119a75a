//! The one table of metrics: a row each, with its name, unit, meaning, and where it is read.
//!
//! Nothing is counted here. The rooms count for themselves in plain numbers; a scrape reads
//! them once, so a metric costs nothing while nobody looks. Whoever adds one writes a row.
//! Rare events of the edge rooms, which nobody counts anyway, are the rows after the table:
//! `events` has their handles.
//!
//! Names follow Prometheus: the prefix `tollgate_`, base units (seconds, bytes), counters that
//! end in `_total`. A row that does not is refused by the compiler. Labels have few values, all
//! known beforehand; a command that was never called is left out.
//!
//! CONFIG RESETSTAT sets the counters of commands, errors and keys back to zero; for Prometheus
//! that is a counter that started again.

mod load;
mod store;
mod tenants;

use std::sync::atomic::Ordering;

use super::events::Events;
use super::render::{Family, Kind};
use crate::commands::{BUCKET_BOUNDS_NS, CommandCounts, Facts, Host, Service, StoreFacts};
use crate::engine::Stats;
use crate::time::Timestamp;

/// What the page is, for the one who reads it.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const METRICS: &[Metric] = &[
    counter(
        "tollgate_checks_total",
        Unit::None,
        "Decisions: on keys, those that only look among them, and by policies.",
        |from, to| {
            to.sample(&[("outcome", "allowed")], from.engine.allowed);
            let repeated = from.service.prefilter().counts().repeated;
            to.sample(&[("outcome", "denied")], from.engine.denied + repeated);
        },
    ),
    counter(
        "tollgate_commands_total",
        Unit::None,
        "Commands by what came of them: carried out, answered with an error, or refused before.",
        |from, to| {
            for (command, counts) in from.commands() {
                let ok = counts.calls - counts.failed;
                to.sample(&[("command", command), ("outcome", "ok")], ok);
                to.sample(&[("command", command), ("outcome", "failed")], counts.failed);
                to.sample(&[("command", command), ("outcome", "rejected")], counts.rejected);
            }
        },
    ),
    histogram(
        "tollgate_command_duration_seconds",
        Unit::Seconds,
        "Time to carry out a command; quick commands of one pipeline share its time evenly.",
        |from, to| {
            for (command, counts) in from.commands().filter(|(_, counts)| counts.calls > 0) {
                let [within @ .., above] = &counts.buckets;
                let bounds = BUCKET_BOUNDS_NS.iter().map(|bound_ns| seconds_of_nanos(*bound_ns));
                let buckets = bounds.zip(within.iter().copied());
                let sum = seconds_of_nanos(counts.nanos);
                to.histogram(&[("command", command)], buckets, *above, sum);
            }
        },
    ),
    counter(
        "tollgate_errors_total",
        Unit::None,
        "Errors answered, by the word they begin with.",
        |from, to| {
            for (code, count) in from.service.error_counts() {
                to.sample(&[("code", &code)], count);
            }
        },
    ),
    counter(
        "tollgate_prefilter_questions_total",
        Unit::None,
        "Questions to the memory of denials: answered from it, or passed on to the engine.",
        |from, to| {
            let counts = from.service.prefilter().counts();
            to.sample(&[("outcome", "answered")], counts.answered);
            to.sample(&[("outcome", "missed")], counts.missed);
        },
    ),
    counter(
        "tollgate_prefilter_denials_total",
        Unit::None,
        "Denials remembered, in a free place or over another that still held.",
        |from, to| {
            let counts = from.service.prefilter().counts();
            to.sample(&[("place", "free")], counts.remembered);
            to.sample(&[("place", "displaced")], counts.displaced);
        },
    ),
    counter(
        "tollgate_decision_log_lines_total",
        Unit::None,
        "Decisions of the sample: written to the decision log, or left out and why.",
        |from, to| {
            let counts = from.service.decision_log().counts();
            for (outcome, count) in [
                ("written", &counts.written),
                ("failed", &counts.unwritten),
                ("over_rate", &counts.over_rate),
                ("queue_full", &counts.queue_full),
            ] {
                to.sample(&[("outcome", outcome)], count.load(Ordering::Relaxed));
            }
        },
    ),
    gauge("tollgate_connections", Unit::None, "Clients connected now.", |from, to| {
        to.sample(&[], from.facts.connected);
    }),
    counter("tollgate_connections_received_total", Unit::None, "Clients let in.", |from, to| {
        to.sample(&[], from.facts.connections_received);
    }),
    counter(
        "tollgate_connections_rejected_total",
        Unit::None,
        "Clients turned away: too many, or protected mode.",
        |from, to| to.sample(&[], from.facts.connections_rejected),
    ),
    counter(
        "tollgate_connections_closed_total",
        Unit::None,
        "Clients the server closed: sent no request, left replies or pushes unread, or were idle.",
        |from, to| {
            to.sample(&[("reason", "protocol")], from.facts.closed_protocol);
            to.sample(&[("reason", "unread")], from.facts.closed_unread);
            to.sample(&[("reason", "pushes")], from.facts.closed_pushes);
            to.sample(&[("reason", "idle")], from.facts.closed_idle);
        },
    ),
    counter(
        "tollgate_network_input_bytes_total",
        Unit::Bytes,
        "Bytes read from clients.",
        |from, to| to.sample(&[], from.facts.input_bytes),
    ),
    counter(
        "tollgate_network_output_bytes_total",
        Unit::Bytes,
        "Bytes written to clients.",
        |from, to| to.sample(&[], from.facts.output_bytes),
    ),
    gauge(
        "tollgate_keys",
        Unit::None,
        "Keys held, by database; an empty one is left out, but for the first.",
        |from, to| {
            for (db, keys, _) in from.databases() {
                to.sample(&[("db", &db)], keys);
            }
        },
    ),
    gauge(
        "tollgate_keys_expiring",
        Unit::None,
        "Keys held that will expire, by database.",
        |from, to| {
            for (db, _, expiring) in from.databases() {
                to.sample(&[("db", &db)], expiring);
            }
        },
    ),
    counter("tollgate_keys_expired_total", Unit::None, "Keys whose time was over.", |from, to| {
        to.sample(&[], from.engine.expired);
    }),
    gauge(
        "tollgate_policy_buckets",
        Unit::None,
        "Buckets of policies held, reservations and leases among them.",
        |from, to| to.sample(&[], from.engine.buckets),
    ),
    counter(
        "tollgate_holds_expired_total",
        Unit::None,
        "Reservations and leases whose time was over before they were settled.",
        |from, to| to.sample(&[], from.engine.holds_expired),
    ),
    counter(
        "tollgate_keys_evicted_total",
        Unit::None,
        "Keys given up to make room.",
        |from, to| to.sample(&[], from.engine.evicted),
    ),
    gauge(
        "tollgate_scripts_running",
        Unit::None,
        "Scripts that run now; while one is long, other clients are answered BUSY.",
        |from, to| {
            let runs = from.service.script_runs();
            to.sample(&[("state", "short")], runs.running - runs.long);
            to.sample(&[("state", "long")], runs.long);
        },
    ),
    counter(
        "tollgate_scripts_total",
        Unit::None,
        "Scripts run over the shards of the keys they declared, or over all.",
        |from, to| {
            let runs = from.service.script_runs();
            to.sample(&[("keys", "declared")], runs.declared);
            to.sample(&[("keys", "all")], runs.all);
        },
    ),
    counter(
        "tollgate_scripts_rerun_total",
        Unit::None,
        "Scripts begun again over all shards, for a key they had not declared.",
        |from, to| to.sample(&[], from.service.script_runs().again),
    ),
    counter(
        "tollgate_script_twins_total",
        Unit::None,
        "Known scripts that ran without Lua, or whose native twin declined.",
        |from, to| {
            for twin in from.service.twin_counts() {
                let name = ("script", twin.name);
                to.sample(&[name, ("outcome", "answered")], twin.answered);
                to.sample(&[name, ("outcome", "declined")], twin.declined);
            }
        },
    ),
    counter(
        "tollgate_keyspace_hits_total",
        Unit::None,
        "Keys looked for and found.",
        |from, to| to.sample(&[], from.engine.hits),
    ),
    counter(
        "tollgate_keyspace_misses_total",
        Unit::None,
        "Keys looked for and not found.",
        |from, to| to.sample(&[], from.engine.misses),
    ),
    gauge(
        "tollgate_memory_used_bytes",
        Unit::Bytes,
        "Memory that keys and values are charged.",
        |from, to| to.sample(&[], from.engine.used_bytes),
    ),
    gauge(
        "tollgate_memory_max_bytes",
        Unit::Bytes,
        "The bound on that memory; 0 is none.",
        |from, to| to.sample(&[], from.service.engine().memory_max()),
    ),
    gauge(
        "tollgate_process_resident_bytes",
        Unit::Bytes,
        "Memory of the whole process as the system counts it.",
        |from, to| to.sample(&[], from.facts.resident_bytes),
    ),
    counter(
        "tollgate_process_cpu_seconds_total",
        Unit::Seconds,
        "Processor time of the process: its own code, and the system on its behalf.",
        |from, to| {
            to.sample(&[("mode", "user")], from.facts.cpu_user_s);
            to.sample(&[("mode", "system")], from.facts.cpu_system_s);
        },
    ),
    gauge(
        "tollgate_clock_gap_seconds",
        Unit::Seconds,
        "How far the wall clock is ahead of the clock that limits go by.",
        |from, to| to.sample(&[], from.facts.clock_gap_us as f64 / 1e6),
    ),
    gauge(
        "tollgate_uptime_seconds",
        Unit::Seconds,
        "Time since the server started.",
        |from, to| {
            let up = from.now.since(from.service.started());
            to.sample(&[], up.as_micros() as f64 / 1e6);
        },
    ),
    gauge(
        "tollgate_build_info",
        Unit::None,
        "Always 1; the labels say what is running.",
        |_, to| {
            let labels = [
                ("version", env!("CARGO_PKG_VERSION")),
                ("os", std::env::consts::OS),
                ("arch", std::env::consts::ARCH),
            ];
            to.sample(&labels, 1);
        },
    ),
];

pub(super) const CLOCK_STEPS: Event = event(
    "tollgate_clock_steps_total",
    "Large steps of the wall clock: followed forward, never backward.",
);
pub(super) const SWEEP_LAPS: Event =
    event("tollgate_sweep_laps_total", "Times the sweep for expired keys has seen every key.");
pub(super) const PANICS: Event =
    event("tollgate_panics_total", "Panics of the program's threads; each is a fault of ours.");
pub(super) const LOG_EVENTS: Event =
    event("tollgate_log_events_total", "Lines written to the log that tell of something wrong.");
pub(super) const HTTP_REQUESTS: Event = event(
    "tollgate_http_requests_total",
    "Requests answered on the HTTP port, but for those that could not be read.",
);
pub(super) const HTTP_DURATION: Event = event_histogram(
    "tollgate_http_request_duration_seconds",
    Unit::Seconds,
    "Time to make an answer on the HTTP port; to send it is not in it.",
);

pub(super) const POLICY_CHANGES: Event = event(
    "tollgate_policy_changes_total",
    "Versions of policy documents by what became of them; skipped ones were replaced at once.",
);
pub(super) const POLICY_RELOADS: Event =
    event("tollgate_policy_reloads_total", "Times that changed policy documents were taken over.");
pub(super) const POLICY_FAILURES: Event = event(
    "tollgate_policy_reload_failures_total",
    "Policies that were not taken over, and connections to their source that were lost.",
);
pub(super) const POLICY_DOCUMENTS: Event = event_gauge(
    "tollgate_policy_documents",
    Unit::None,
    "Policy documents: in force, in force in an earlier version, or not at all.",
);
pub(super) const POLICY_REVISION: Event = event_gauge(
    "tollgate_policy_revision",
    Unit::None,
    "The newest revision of a policy document that is in force.",
);
pub(super) const POLICY_SOURCE_REVISION: Event = event_gauge(
    "tollgate_policy_source_revision",
    Unit::None,
    "The revision of their source up to which policies are known.",
);
pub(super) const POLICY_SOURCE_UP: Event = event_gauge(
    "tollgate_policy_source_up",
    Unit::None,
    "Whether the source of policies can be read: 1, or 0 while the last good ones hold.",
);

/// What is counted as it happens.
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

struct Metric {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    read: Read,
}

type Read = fn(&Reading<'_>, &mut Family<'_>);

#[derive(Clone, Copy)]
enum Unit {
    /// A number of things.
    None,
    Seconds,
    Bytes,
}

/// What a scrape reads, once for all rows.
struct Reading<'a> {
    service: &'a Service,
    counts: Vec<CommandCounts>,
    engine: Stats,
    facts: Facts,
    store: Option<StoreFacts>,
    now: Timestamp,
}

impl Reading<'_> {
    /// Commands that were asked for at least once.
    fn commands(&self) -> impl Iterator<Item = (&'static str, &CommandCounts)> {
        let names = self.service.table().specs().iter().map(|spec| spec.name);
        names.zip(&self.counts).filter(|(_, counts)| counts.calls + counts.rejected > 0)
    }

    /// Number, keys and expiring keys of the databases that have any, and of the first.
    fn databases(&self) -> impl Iterator<Item = (String, usize, usize)> {
        let databases = self.engine.databases.iter().enumerate();
        databases
            .filter(|(db, database)| *db == 0 || database.keys > 0)
            .map(|(db, database)| (db.to_string(), database.keys, database.expiring))
    }
}

/// Every metric at this moment, as Prometheus reads it.
pub(crate) fn metrics_page(
    service: &Service,
    host: &dyn Host,
    events: &Events,
    now: Timestamp,
) -> String {
    let reading = Reading {
        service,
        counts: service.command_counts(),
        engine: service.engine().stats(),
        facts: host.facts(),
        store: host.store(),
        now,
    };
    let mut page = String::new();
    let rooms = [METRICS, load::METRICS, tenants::METRICS, store::METRICS];
    for metric in rooms.into_iter().flatten() {
        let mut family = Family::begin(&mut page, metric.name, metric.help, metric.kind);
        (metric.read)(&reading, &mut family);
    }
    page + &events.render()
}

fn seconds_of_nanos(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

const fn counter(name: &'static str, unit: Unit, help: &'static str, read: Read) -> Metric {
    let end = match unit {
        Unit::None => "_total",
        Unit::Seconds => "_seconds_total",
        Unit::Bytes => "_bytes_total",
    };
    assert!(ends_with(name, end), "a counter's name ends in its unit and _total");
    metric(name, Kind::Counter, help, read)
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str, read: Read) -> Metric {
    assert!(ends_with(name, unit.suffix()), "a gauge's name ends in its unit");
    assert!(!ends_with(name, "_total"), "only a counter's name ends in _total");
    metric(name, Kind::Gauge, help, read)
}

const fn histogram(name: &'static str, unit: Unit, help: &'static str, read: Read) -> Metric {
    assert!(ends_with(name, unit.suffix()), "a histogram's name ends in its unit");
    metric(name, Kind::Histogram, help, read)
}

/// Events are things, so their unit is none.
const fn event(name: &'static str, help: &'static str) -> Event {
    let Metric { name, help, .. } = counter(name, Unit::None, help, |_, _| {});
    Event { name, help }
}

const fn event_gauge(name: &'static str, unit: Unit, help: &'static str) -> Event {
    let Metric { name, help, .. } = gauge(name, unit, help, |_, _| {});
    Event { name, help }
}

const fn event_histogram(name: &'static str, unit: Unit, help: &'static str) -> Event {
    let Metric { name, help, .. } = histogram(name, unit, help, |_, _| {});
    Event { name, help }
}

const fn metric(name: &'static str, kind: Kind, help: &'static str, read: Read) -> Metric {
    assert!(begins_with(name, "tollgate_"), "a metric's name begins with tollgate_");
    Metric { name, kind, help, read }
}

impl Unit {
    const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "_seconds",
            Self::Bytes => "_bytes",
        }
    }
}

const fn begins_with(text: &str, beginning: &str) -> bool {
    stands_at(text, beginning, 0)
}

const fn ends_with(text: &str, end: &str) -> bool {
    text.len() >= end.len() && stands_at(text, end, text.len() - end.len())
}

/// Whether `part` stands in `text` at this byte. `str::ends_with` is not for constants yet.
const fn stands_at(text: &str, part: &str, place: usize) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    if text.len() < place + part.len() {
        return false;
    }
    let mut at = 0;
    while at < part.len() {
        if text[place + at] != part[at] {
            return false;
        }
        at += 1;
    }
    true
}
