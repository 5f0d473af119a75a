//! Parameters of Redis that are taken and told again, and that nothing comes of.
//!
//! Tools and test harnesses set them as a matter of course, and would stop at an error. A row
//! stands here only if no promise is broken: it tunes how Redis keeps its memory, or parts that
//! are not there (a data folder, replicas). A parameter that bounds or protects something is
//! either carried out or refused, in `parameter_table.rs`.
//!
//! What was set is forgotten with the process. Defaults are those of Redis 7.

use super::parameters::{Fits, Parameter, Place, Write};

const fn row(
    name: &'static str,
    default: fn(&Place<'_>) -> String,
    fits: Fits,
    shared: &'static str,
) -> Parameter {
    Parameter { name, read: default, write: Write::Noted { fits, shared } }
}

/// A row whose value is its own; and one that shares it with a newer name.
macro_rules! noted {
    ($name:literal, $default:literal, $fits:expr) => {
        row($name, |_| $default.into(), $fits, $name)
    };
    ($name:literal, $default:literal, $fits:expr, as $shared:literal) => {
        row($name, |_| $default.into(), $fits, $shared)
    };
}

const SECRET: Fits = Fits::Secret;
const SWITCH: Fits = Fits::Switch;
const MEMORY: Fits = Fits::Memory;
const COUNT: Fits = Fits::Whole { min: 0, max: i64::MAX };
const NUMBER: Fits = Fits::Whole { min: 0, max: i32::MAX as i64 };
const POSITIVE: Fits = Fits::Whole { min: 1, max: i32::MAX as i64 };
const ANY_NUMBER: Fits = Fits::Whole { min: i32::MIN as i64, max: i32::MAX as i64 };

pub(super) const NOTED: &[Parameter] = &[
    // How small collections are kept: here by rules of our own.
    noted!("hash-max-listpack-entries", "512", COUNT),
    noted!("hash-max-listpack-value", "64", MEMORY),
    noted!("hash-max-ziplist-entries", "512", COUNT, as "hash-max-listpack-entries"),
    noted!("hash-max-ziplist-value", "64", MEMORY, as "hash-max-listpack-value"),
    noted!("list-compress-depth", "0", NUMBER),
    noted!("list-max-listpack-size", "-2", ANY_NUMBER),
    noted!("list-max-ziplist-size", "-2", ANY_NUMBER, as "list-max-listpack-size"),
    noted!("set-max-intset-entries", "512", COUNT),
    noted!("set-max-listpack-entries", "128", COUNT),
    noted!("set-max-listpack-value", "64", MEMORY),
    noted!("zset-max-listpack-entries", "128", COUNT),
    noted!("zset-max-listpack-value", "64", MEMORY),
    noted!("zset-max-ziplist-entries", "128", COUNT, as "zset-max-listpack-entries"),
    noted!("zset-max-ziplist-value", "64", MEMORY, as "zset-max-listpack-value"),
    // When memory is given back, and how eviction and expiry look for it.
    noted!("active-expire-effort", "1", Fits::Whole { min: 1, max: 10 }),
    noted!("activerehashing", "yes", SWITCH),
    noted!("dynamic-hz", "yes", SWITCH),
    noted!("lazyfree-lazy-eviction", "no", SWITCH),
    noted!("lazyfree-lazy-expire", "no", SWITCH),
    noted!("lazyfree-lazy-server-del", "no", SWITCH),
    noted!("lazyfree-lazy-user-del", "no", SWITCH),
    noted!("lazyfree-lazy-user-flush", "no", SWITCH),
    noted!("lfu-decay-time", "1", NUMBER),
    noted!("lfu-log-factor", "10", NUMBER),
    noted!("maxmemory-eviction-tenacity", "10", Fits::Whole { min: 0, max: 100 }),
    noted!("maxmemory-samples", "5", POSITIVE),
    noted!("replica-lazy-flush", "no", SWITCH),
    // How data is saved: none is.
    noted!("aof-load-truncated", "yes", SWITCH),
    noted!("aof-use-rdb-preamble", "yes", SWITCH),
    noted!("appendfsync", "everysec", Fits::OneOf(&["everysec", "always", "no"])),
    noted!("auto-aof-rewrite-min-size", "67108864", MEMORY),
    noted!("auto-aof-rewrite-percentage", "100", NUMBER),
    noted!("aof-rewrite-incremental-fsync", "yes", SWITCH),
    noted!("no-appendfsync-on-rewrite", "no", SWITCH),
    noted!("rdb-del-sync-files", "no", SWITCH),
    noted!("rdb-save-incremental-fsync", "yes", SWITCH),
    noted!("rdbcompression", "yes", SWITCH),
    noted!("stop-writes-on-bgsave-error", "yes", SWITCH),
    // How replicas are served: there are none.
    noted!("masterauth", "", SECRET),
    noted!("masteruser", "", SECRET),
    noted!("repl-backlog-size", "1048576", MEMORY),
    noted!("repl-backlog-ttl", "3600", NUMBER),
    noted!("repl-disable-tcp-nodelay", "no", SWITCH),
    noted!("repl-diskless-load", "disabled", Fits::OneOf(&["disabled", "on-empty-db", "swapdb"])),
    noted!("repl-diskless-sync", "yes", SWITCH),
    noted!("repl-diskless-sync-delay", "5", NUMBER),
    noted!("repl-diskless-sync-max-replicas", "0", NUMBER),
    noted!("repl-ping-replica-period", "10", POSITIVE),
    noted!("repl-ping-slave-period", "10", POSITIVE, as "repl-ping-replica-period"),
    noted!("repl-timeout", "60", POSITIVE),
    noted!("replica-ignore-maxmemory", "yes", SWITCH),
    noted!("replica-priority", "100", NUMBER),
    noted!("slave-priority", "100", NUMBER, as "replica-priority"),
    noted!("replica-serve-stale-data", "yes", SWITCH),
    noted!("slave-serve-stale-data", "yes", SWITCH, as "replica-serve-stale-data"),
];
