//! The parameters of CONFIG, one row each.
//!
//! First those of Redis that mean something here, under Redis's names and in its units; then our
//! own settings that can change at run time, by their paths and in the units of the settings
//! file. Every other setting of ours is shown as it was at the start. A new parameter is a row.

use std::sync::atomic::Ordering::Relaxed;

use super::noted_parameters::NOTED;
use super::options::LogEntries;
use super::parameters::{Fits, Parameter, Place, Write};
use super::service::Service;
use crate::engine::{DATABASES, MemoryPolicy};
use crate::size::Bytes;
use crate::time::Duration;

const AT_START: &str = "it is settled at the start; change the settings file and start again";
const NO_FOLDER: &str = "no data folder is set, so nothing is kept on disk";
const NO_DEFRAG: &str = "memory is not moved to make it denser";
const NO_EVENTS: &str = "keyspace notifications are not supported";
const NO_REPLICAS: &str = "there is no replication";
const OUTPUT_BYTES: &str = "set server.output_bytes_max or server.push_bytes_max instead";

const CLIENT_BYTES: &str = "each connection is bounded, by server.request_bytes_max and \
                            server.output_bytes_max";

const fn row(name: &'static str, read: fn(&Place<'_>) -> String, write: Write) -> Parameter {
    Parameter { name, read, write }
}

const CONNECTIONS: Write = Write::Whole {
    min: 1,
    max: u32::MAX as i64,
    set: |service, count| service.runtime().connections_max.store(count as usize, Relaxed),
};

/// The sweep has a setting of its own; the number tunes nothing more, and is only noted.
const HZ: Write = Write::Noted { fits: Fits::Whole { min: 0, max: i32::MAX as i64 }, shared: "hz" };

const MEMORY: Write = Write::Memory(|service, bytes| {
    service.engine().set_memory_max(usize::try_from(bytes).unwrap_or(usize::MAX));
});

const POLICY: Write = Write::OneOf {
    names: || MemoryPolicy::ALL.iter().map(|policy| policy.name()).collect(),
    set: |service, name| {
        if let Some(policy) = MemoryPolicy::parse(name.as_bytes()) {
            service.engine().set_policy(policy);
        }
    },
};

const PASSWORD: Write = Write::Secret(|service, password| {
    password.clone_into(&mut service.runtime().password.write());
});

const PROTECTED: Write =
    Write::Switch(|service, on| service.runtime().protected.store(on, Relaxed));

const SLOWLOG_ENTRIES: Write = Write::Whole {
    min: 0,
    max: i64::MAX,
    set: |service, count| service.runtime().slowlog_entries_max.store(count as usize, Relaxed),
};

/// Every parameter: those of this file, and those that are only noted.
pub(super) fn parameters() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.iter().chain(NOTED)
}

const TRACKED_KEYS: Write = Write::Whole {
    min: 1,
    max: i64::MAX,
    set: |service, keys| service.engine().set_tracked_keys_max(keys as usize),
};

const PARAMETERS: &[Parameter] = &[
    row("activedefrag", |_| "no".into(), Write::Same(NO_DEFRAG)),
    row("appendonly", |_| "no".into(), Write::Same(NO_FOLDER)),
    row("bind", bind, Write::Same(AT_START)),
    row("busy-reply-threshold", busy_after_ms, BUSY_AFTER),
    row("client-output-buffer-limit", output_limits, Write::Same(OUTPUT_BYTES)),
    row(
        "client-query-buffer-limit",
        |place| bytes(place, "server.request_bytes_max"),
        Write::Same(AT_START),
    ),
    row("cluster-enabled", |_| "no".into(), Write::Never),
    row("daemonize", |_| "no".into(), Write::Never),
    row("databases", |_| DATABASES.to_string(), Write::Never),
    row("dbfilename", |_| String::new(), Write::Same(NO_FOLDER)),
    row("dir", |_| String::new(), Write::Same(NO_FOLDER)),
    row("enable-debug-command", debug_users, Write::Never),
    row("hz", sweeps_a_second, HZ),
    row("io-threads", |place| place.host.facts().workers.to_string(), Write::Never),
    row(
        "latency-monitor-threshold",
        |place| (place.service.runtime().latency_threshold_us.load(Relaxed) / 1_000).to_string(),
        Write::Whole {
            min: 0,
            max: i64::MAX,
            set: |service, ms| latency_threshold(service, Duration::from_millis(ms as u64)),
        },
    ),
    row("lua-time-limit", busy_after_ms, BUSY_AFTER),
    row("maxclients", |place| place.service.runtime().connections_max().to_string(), CONNECTIONS),
    row("maxmemory", |place| place.service.engine().memory_max().to_string(), MEMORY),
    row("maxmemory-policy", |place| place.service.engine().policy().name().into(), POLICY),
    row("maxmemory-clients", |_| "0".into(), Write::Same(CLIENT_BYTES)),
    row("min-replicas-to-write", |_| "0".into(), Write::Same(NO_REPLICAS)),
    row("notify-keyspace-events", |_| String::new(), Write::Same(NO_EVENTS)),
    row("port", |place| place.host.facts().tcp_port.to_string(), Write::Same(AT_START)),
    row(
        "protected-mode",
        |place| if place.service.runtime().is_protected() { "yes" } else { "no" }.into(),
        PROTECTED,
    ),
    row("proto-max-bulk-len", |place| bytes(place, "server.bulk_bytes_max"), Write::Same(AT_START)),
    row("replica-read-only", |_| "yes".into(), Write::Same(NO_REPLICAS)),
    row("replicaof", |_| String::new(), Write::Never),
    row("requirepass", |place| place.service.runtime().password.read().clone(), PASSWORD),
    row("save", |_| String::new(), Write::Same(NO_FOLDER)),
    row("slave-read-only", |_| "yes".into(), Write::Same(NO_REPLICAS)),
    row("slaveof", |_| String::new(), Write::Never),
    row(
        "slowlog-log-slower-than",
        |place| place.service.runtime().slowlog_threshold_us.load(Relaxed).to_string(),
        Write::Whole {
            min: -1,
            max: i64::MAX,
            set: |service, us| service.runtime().slowlog_threshold_us.store(us, Relaxed),
        },
    ),
    row("slowlog-max-len", slowlog_entries, SLOWLOG_ENTRIES),
    row("tcp-backlog", |place| place.setting("server.backlog"), Write::Never),
    row("tcp-keepalive", |place| seconds(place, "server.keepalive"), Write::Same(AT_START)),
    row(
        "timeout",
        |place| place.service.runtime().idle_timeout_s.load(Relaxed).to_string(),
        Write::Whole {
            min: 0,
            max: i32::MAX as i64,
            set: |service, s| service.runtime().idle_timeout_s.store(s as u64, Relaxed),
        },
    ),
    row("tracking-table-max-keys", tracked_keys, TRACKED_KEYS),
    // Our own, by their paths.
    row(
        "engine.key_bytes_max",
        |place| size(place.service.runtime().key_bytes_max()),
        Write::MemoryMax(|service, max| {
            service.runtime().key_bytes_max.store(max.as_usize(), Relaxed);
        }),
    ),
    row("engine.memory_max", |place| size(place.service.engine().memory_max()), MEMORY),
    row("engine.memory_policy", |place| place.service.engine().policy().name().into(), POLICY),
    row("engine.tracked_keys_max", tracked_keys, TRACKED_KEYS),
    row(
        "engine.value_bytes_max",
        |place| size(place.service.runtime().value_bytes_max()),
        Write::MemoryMax(|service, max| {
            service.runtime().value_bytes_max.store(max.as_usize(), Relaxed);
        }),
    ),
    row(
        "latency.threshold",
        |place| span(place.service.runtime().latency_threshold_us.load(Relaxed)),
        Write::Span(latency_threshold),
    ),
    row(
        "limits.log_entries_max",
        |place| place.service.runtime().log_entries_max().to_string(),
        Write::Whole {
            min: LogEntries::MIN as i64,
            max: LogEntries::MAX as i64,
            set: |service, n| service.runtime().log_entries_max.store(n as u32, Relaxed),
        },
    ),
    row("limits.throttle_rounding", rounding, ROUNDING),
    row(
        "lua.busy_after",
        |place| span(place.service.runtime().busy_after_us.load(Relaxed)),
        Write::Span(busy_after),
    ),
    row(
        "server.connections_max",
        |place| place.service.runtime().connections_max().to_string(),
        CONNECTIONS,
    ),
    row(
        "server.idle_timeout",
        |place| place.service.runtime().idle_timeout().unwrap_or_default().to_string(),
        Write::Span(|service, span| {
            let seconds = span.as_millis_ceil().div_ceil(1_000);
            service.runtime().idle_timeout_s.store(seconds, Relaxed);
        }),
    ),
    row(
        "server.output_bytes_max",
        |place| size(place.service.runtime().output_bytes_max()),
        Write::MemoryMax(|service, max| {
            service.runtime().output_bytes_max.store(max.as_usize(), Relaxed);
        }),
    ),
    row(
        "server.password",
        |place| if place.service.runtime().has_password() { "***" } else { "" }.into(),
        PASSWORD,
    ),
    row(
        "server.protected_mode",
        |place| place.service.runtime().is_protected().to_string(),
        PROTECTED,
    ),
    row(
        "server.push_bytes_max",
        |place| size(place.service.runtime().push_bytes_max()),
        Write::MemoryMax(|service, max| {
            service.runtime().push_bytes_max.store(max.as_usize(), Relaxed);
        }),
    ),
    row(
        "server.subscriptions_max",
        |place| place.service.runtime().subscriptions_max().to_string(),
        Write::Whole {
            min: 1,
            max: u32::MAX as i64,
            set: |service, count| {
                service.runtime().subscriptions_max.store(count as usize, Relaxed);
            },
        },
    ),
    row("slowlog.entries_max", slowlog_entries, SLOWLOG_ENTRIES),
    row(
        "slowlog.threshold",
        |place| span(place.service.runtime().slowlog_threshold_us.load(Relaxed).max(0) as u64),
        Write::Span(|service, span| {
            let us = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
            service.runtime().slowlog_threshold_us.store(us, Relaxed);
        }),
    ),
];

/// The names under which the settings file knows both ways of rounding.
const ROUNDINGS: [&str; 2] = ["redis-cell", "dragonfly"];

const ROUNDING: Write = Write::OneOf {
    names: || ROUNDINGS.to_vec(),
    set: |service, name| {
        service.runtime().dragonfly_rounding.store(name == ROUNDINGS[1], Relaxed);
    },
};

fn rounding(place: &Place<'_>) -> String {
    ROUNDINGS[usize::from(place.service.runtime().dragonfly_rounding())].into()
}

const BUSY_AFTER: Write = Write::Whole {
    min: 0,
    max: i64::MAX,
    set: |service, ms| busy_after(service, Duration::from_millis(ms as u64)),
};

fn busy_after(service: &Service, span: Duration) {
    service.runtime().busy_after_us.store(span.as_micros(), Relaxed);
}

fn busy_after_ms(place: &Place<'_>) -> String {
    (place.service.runtime().busy_after_us.load(Relaxed) / 1_000).to_string()
}

fn latency_threshold(service: &Service, threshold: Duration) {
    service.runtime().latency_threshold_us.store(threshold.as_micros(), Relaxed);
}

fn tracked_keys(place: &Place<'_>) -> String {
    place.service.engine().tracked_keys_max().to_string()
}

fn slowlog_entries(place: &Place<'_>) -> String {
    place.service.runtime().slowlog_entries_max().to_string()
}

/// Addresses with blanks between them, as Redis writes them; a setting is a YAML list.
fn bind(place: &Place<'_>) -> String {
    let list = place.setting("server.bind");
    let addresses: Vec<&str> = list.lines().map(|line| line.trim_start_matches("- ")).collect();
    addresses.join(" ")
}

/// In Redis's words.
fn debug_users(place: &Place<'_>) -> String {
    match place.setting("server.debug").as_str() {
        "everyone" => "yes",
        "local" => "local",
        _ => "no",
    }
    .into()
}

fn sweeps_a_second(place: &Place<'_>) -> String {
    let period = place.setting("engine.expiry_period").parse::<Duration>().unwrap_or_default();
    1_000_000_u64.checked_div(period.as_micros()).unwrap_or_default().to_string()
}

/// Replies have one limit whatever the class of the connection, and pushes another; both are
/// hard.
fn output_limits(place: &Place<'_>) -> String {
    let runtime = place.service.runtime();
    let (max, pushes_max) = (runtime.output_bytes_max(), runtime.push_bytes_max());
    format!("normal {max} 0 0 slave {max} 0 0 pubsub {pushes_max} 0 0")
}

fn size(bytes: usize) -> String {
    Bytes::new(bytes as u64).to_string()
}

fn span(us: u64) -> String {
    Duration::from_micros(us).to_string()
}

/// A size among the settings as Redis writes it: a bare number of bytes.
fn bytes(place: &Place<'_>, path: &str) -> String {
    place.setting(path).parse::<Bytes>().unwrap_or_default().as_u64().to_string()
}

/// A span among the settings as Redis writes it: whole seconds.
fn seconds(place: &Place<'_>, path: &str) -> String {
    let span = place.setting(path).parse::<Duration>().unwrap_or_default();
    (span.as_millis_ceil().div_ceil(1_000)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_stands_twice() {
        let mut names: Vec<&str> = parameters().map(|parameter| parameter.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
