//! What Redis tells of a command beyond what the server needs to know of it.
//!
//! COMMAND INFO and ACL CAT answer from a command's row by rules; here stand the exceptions to
//! them, by the name that the command is listed under. A command without an exception has no
//! row here.

use super::spec::{Flags, Group, Handler, Keys};
use super::table::Entry;

/// The ACL categories, in the order in which Redis lists them.
pub(super) const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// What a command does with its keys: one list for all of them, or one for each.
pub(super) type Access = &'static [&'static [&'static str]];

/// What is told of one command.
#[derive(Clone, Copy, Debug)]
struct Detail {
    /// Flags besides those of its row.
    flags: Flags,
    /// Categories besides those that flags and group tell.
    categories: &'static [&'static str],
    /// What it does with its keys; empty where the flags tell.
    access: Access,
    tips: &'static [&'static str],
}

const PLAIN: Detail = Detail { flags: Flags::NONE, categories: &[], access: &[], tips: &[] };

const ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
const ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const VARYING: &[&str] = &["nondeterministic_output"];
const UNORDERED: &[&str] = &["nondeterministic_output_order"];

const REPORTS: &[&str] =
    &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];
const SHARD_REPORTS: &[&str] =
    &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"];
const KILLING: &[&str] = &["request_policy:all_shards", "response_policy:one_succeeded"];
const SUMMED: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];

const LOOK: Access = &[&["RO"]];
const READ: Access = &[&["RO", "access"]];
const CHANGE: Access = &[&["RW", "access", "update"]];
const UPDATE: Access = &[&["RW", "update"]];
const OVERWRITE: Access = &[&["OW", "update"]];
const INSERT: Access = &[&["OW", "insert"]];
const SHIFT: Access = &[&["RW", "access", "delete"], &["RW", "insert"]];
const NO_KEY: Access = &[&["not_key"]];
const DELETE: Access = &[&["RM", "delete"]];
const STORE: Access = &[&["OW", "update"], &["RO", "access"]];
const TAKE: Access = &[&["RW", "access", "delete"]];
const TAKE_OUT: Access = &[&["RW", "delete"]];
const LENGTHEN: Access = &[&["RW", "insert"]];

const DETAILS: &[(&str, Detail)] = &[
    ("acl|getuser", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("acl|list", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("acl|users", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("append", Detail { access: LENGTHEN, ..PLAIN }),
    ("asking", Detail { categories: &["connection"], ..PLAIN }),
    ("blmove", Detail { access: SHIFT, ..PLAIN }),
    ("blmpop", Detail { access: TAKE, ..PLAIN }),
    ("blpop", Detail { access: TAKE, ..PLAIN }),
    ("brpop", Detail { access: TAKE, ..PLAIN }),
    ("brpoplpush", Detail { access: SHIFT, ..PLAIN }),
    ("bzmpop", Detail { access: TAKE, ..PLAIN }),
    ("bzpopmax", Detail { access: TAKE, ..PLAIN }),
    ("bzpopmin", Detail { access: TAKE, ..PLAIN }),
    ("client|info", Detail { tips: VARYING, ..PLAIN }),
    ("client|kill", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("client|list", Detail { flags: Flags::ADMIN, tips: VARYING, ..PLAIN }),
    ("client|no-evict", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("client|unblock", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("client|pause", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("client|unpause", Detail { flags: Flags::ADMIN, ..PLAIN }),
    ("command", Detail { categories: &["connection"], tips: UNORDERED, ..PLAIN }),
    ("command|count", Detail { categories: &["connection"], ..PLAIN }),
    ("command|docs", Detail { categories: &["connection"], tips: UNORDERED, ..PLAIN }),
    ("command|getkeys", Detail { categories: &["connection"], ..PLAIN }),
    ("command|getkeysandflags", Detail { categories: &["connection"], ..PLAIN }),
    ("command|help", Detail { categories: &["connection"], ..PLAIN }),
    ("command|info", Detail { categories: &["connection"], tips: UNORDERED, ..PLAIN }),
    ("command|list", Detail { categories: &["connection"], tips: UNORDERED, ..PLAIN }),
    ("config|set", Detail { tips: ALL_NODES, ..PLAIN }),
    ("copy", Detail { access: &[&["RO", "access"], &["OW", "update"]], ..PLAIN }),
    (
        "dbsize",
        Detail {
            categories: &["keyspace"],
            tips: &["request_policy:all_shards", "response_policy:agg_sum"],
            ..PLAIN
        },
    ),
    ("del", Detail { access: DELETE, tips: SUMMED, ..PLAIN }),
    ("eval", Detail { access: CHANGE, ..PLAIN }),
    ("evalsha", Detail { access: CHANGE, ..PLAIN }),
    ("exists", Detail { access: LOOK, tips: SUMMED, ..PLAIN }),
    ("expire", Detail { access: UPDATE, ..PLAIN }),
    ("expireat", Detail { access: UPDATE, ..PLAIN }),
    ("fcall", Detail { access: CHANGE, ..PLAIN }),
    ("flushall", Detail { categories: &["keyspace", "dangerous"], tips: ALL_SHARDS, ..PLAIN }),
    ("flushdb", Detail { categories: &["keyspace", "dangerous"], tips: ALL_SHARDS, ..PLAIN }),
    ("function|delete", Detail { flags: Flags::WRITE, tips: ALL_SHARDS, ..PLAIN }),
    ("function|flush", Detail { flags: Flags::WRITE, tips: ALL_SHARDS, ..PLAIN }),
    ("function|kill", Detail { flags: Flags::ALLOW_BUSY, tips: KILLING, ..PLAIN }),
    ("function|list", Detail { tips: UNORDERED, ..PLAIN }),
    (
        "function|load",
        Detail { flags: Flags::WRITE.and(Flags::DENYOOM), tips: ALL_SHARDS, ..PLAIN },
    ),
    (
        "function|restore",
        Detail { flags: Flags::WRITE.and(Flags::DENYOOM), tips: ALL_SHARDS, ..PLAIN },
    ),
    ("function|stats", Detail { flags: Flags::ALLOW_BUSY, tips: SHARD_REPORTS, ..PLAIN }),
    ("getdel", Detail { access: TAKE, ..PLAIN }),
    ("hdel", Detail { access: TAKE_OUT, ..PLAIN }),
    ("hexists", Detail { access: LOOK, ..PLAIN }),
    ("hgetall", Detail { tips: UNORDERED, ..PLAIN }),
    ("hkeys", Detail { tips: UNORDERED, ..PLAIN }),
    ("hlen", Detail { access: LOOK, ..PLAIN }),
    ("hmset", Detail { access: UPDATE, ..PLAIN }),
    ("hrandfield", Detail { tips: VARYING, ..PLAIN }),
    ("hscan", Detail { tips: VARYING, ..PLAIN }),
    ("hset", Detail { access: UPDATE, ..PLAIN }),
    ("hsetnx", Detail { access: LENGTHEN, ..PLAIN }),
    ("hstrlen", Detail { access: LOOK, ..PLAIN }),
    ("hvals", Detail { tips: UNORDERED, ..PLAIN }),
    ("info", Detail { categories: &["dangerous"], tips: SHARD_REPORTS, ..PLAIN }),
    (
        "keys",
        Detail {
            categories: &["dangerous"],
            tips: &["request_policy:all_shards", "nondeterministic_output_order"],
            ..PLAIN
        },
    ),
    ("lastsave", Detail { categories: &["admin", "dangerous"], tips: VARYING, ..PLAIN }),
    ("latency|doctor", Detail { tips: REPORTS, ..PLAIN }),
    ("latency|histogram", Detail { tips: REPORTS, ..PLAIN }),
    ("latency|history", Detail { tips: REPORTS, ..PLAIN }),
    ("latency|latest", Detail { tips: REPORTS, ..PLAIN }),
    ("latency|reset", Detail { tips: ALL_NODES, ..PLAIN }),
    ("linsert", Detail { access: LENGTHEN, ..PLAIN }),
    ("llen", Detail { access: LOOK, ..PLAIN }),
    ("lmove", Detail { access: SHIFT, ..PLAIN }),
    ("lmpop", Detail { access: TAKE, ..PLAIN }),
    ("lpop", Detail { access: TAKE, ..PLAIN }),
    ("lpush", Detail { access: LENGTHEN, ..PLAIN }),
    ("lpushx", Detail { access: LENGTHEN, ..PLAIN }),
    ("lrem", Detail { access: TAKE_OUT, ..PLAIN }),
    ("lset", Detail { access: UPDATE, ..PLAIN }),
    ("ltrim", Detail { access: TAKE_OUT, ..PLAIN }),
    ("memory|doctor", Detail { tips: SHARD_REPORTS, ..PLAIN }),
    ("memory|malloc-stats", Detail { tips: SHARD_REPORTS, ..PLAIN }),
    ("memory|purge", Detail { tips: ALL_SHARDS, ..PLAIN }),
    ("memory|stats", Detail { tips: SHARD_REPORTS, ..PLAIN }),
    ("memory|usage", Detail { flags: Flags::READONLY, access: LOOK, ..PLAIN }),
    ("mget", Detail { tips: &["request_policy:multi_shard"], ..PLAIN }),
    ("module|list", Detail { tips: UNORDERED, ..PLAIN }),
    (
        "mset",
        Detail {
            access: OVERWRITE,
            tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
            ..PLAIN
        },
    ),
    (
        "msetnx",
        Detail {
            access: INSERT,
            tips: &["request_policy:multi_shard", "response_policy:agg_min"],
            ..PLAIN
        },
    ),
    ("object|encoding", Detail { flags: Flags::READONLY, access: LOOK, tips: VARYING, ..PLAIN }),
    ("object|freq", Detail { flags: Flags::READONLY, access: LOOK, tips: VARYING, ..PLAIN }),
    ("object|idletime", Detail { flags: Flags::READONLY, access: LOOK, tips: VARYING, ..PLAIN }),
    ("object|refcount", Detail { flags: Flags::READONLY, access: LOOK, tips: VARYING, ..PLAIN }),
    ("persist", Detail { access: UPDATE, ..PLAIN }),
    ("pexpire", Detail { access: UPDATE, ..PLAIN }),
    ("pexpireat", Detail { access: UPDATE, ..PLAIN }),
    ("ping", Detail { tips: ALL_SHARDS, ..PLAIN }),
    ("psetex", Detail { access: OVERWRITE, ..PLAIN }),
    ("pttl", Detail { tips: VARYING, ..PLAIN }),
    (
        "randomkey",
        Detail { tips: &["request_policy:all_shards", "nondeterministic_output"], ..PLAIN },
    ),
    ("rename", Detail { access: &[&["RW", "access", "delete"], &["OW", "update"]], ..PLAIN }),
    ("renamenx", Detail { access: &[&["RW", "access", "delete"], &["OW", "insert"]], ..PLAIN }),
    ("readonly", Detail { categories: &["connection"], ..PLAIN }),
    ("readwrite", Detail { categories: &["connection"], ..PLAIN }),
    ("role", Detail { categories: &["admin", "dangerous"], ..PLAIN }),
    ("rpop", Detail { access: TAKE, ..PLAIN }),
    ("rpoplpush", Detail { access: SHIFT, ..PLAIN }),
    ("rpush", Detail { access: LENGTHEN, ..PLAIN }),
    ("rpushx", Detail { access: LENGTHEN, ..PLAIN }),
    ("sadd", Detail { access: LENGTHEN, ..PLAIN }),
    ("scan", Detail { tips: &["nondeterministic_output", "request_policy:special"], ..PLAIN }),
    (
        "script|exists",
        Detail { tips: &["request_policy:all_shards", "response_policy:agg_logical_and"], ..PLAIN },
    ),
    ("script|flush", Detail { tips: ALL_NODES, ..PLAIN }),
    ("script|kill", Detail { flags: Flags::ALLOW_BUSY, tips: KILLING, ..PLAIN }),
    ("script|load", Detail { flags: Flags::STALE, tips: ALL_NODES, ..PLAIN }),
    ("scard", Detail { access: LOOK, ..PLAIN }),
    ("sdiff", Detail { tips: UNORDERED, ..PLAIN }),
    ("sdiffstore", Detail { access: STORE, ..PLAIN }),
    ("set", Detail { access: &[&["RW", "access", "update", "variable_flags"]], ..PLAIN }),
    ("setex", Detail { access: OVERWRITE, ..PLAIN }),
    ("setnx", Detail { access: INSERT, ..PLAIN }),
    ("setrange", Detail { access: UPDATE, ..PLAIN }),
    ("sinter", Detail { tips: UNORDERED, ..PLAIN }),
    ("sinterstore", Detail { access: &[&["RW", "update"], &["RO", "access"]], ..PLAIN }),
    ("sismember", Detail { access: LOOK, ..PLAIN }),
    (
        "slowlog|get",
        Detail { tips: &["request_policy:all_nodes", "nondeterministic_output"], ..PLAIN },
    ),
    (
        "slowlog|len",
        Detail {
            tips: &[
                "request_policy:all_nodes",
                "response_policy:agg_sum",
                "nondeterministic_output",
            ],
            ..PLAIN
        },
    ),
    ("slowlog|reset", Detail { tips: ALL_NODES, ..PLAIN }),
    ("smembers", Detail { tips: UNORDERED, ..PLAIN }),
    ("smove", Detail { access: &[&["RW", "access", "delete"], &["RW", "insert"]], ..PLAIN }),
    ("spop", Detail { access: TAKE, tips: VARYING, ..PLAIN }),
    ("spublish", Detail { access: NO_KEY, ..PLAIN }),
    ("srandmember", Detail { tips: VARYING, ..PLAIN }),
    ("srem", Detail { access: TAKE_OUT, ..PLAIN }),
    ("sscan", Detail { tips: VARYING, ..PLAIN }),
    ("ssubscribe", Detail { access: NO_KEY, ..PLAIN }),
    ("strlen", Detail { access: LOOK, ..PLAIN }),
    ("sunion", Detail { tips: UNORDERED, ..PLAIN }),
    ("sunionstore", Detail { access: STORE, ..PLAIN }),
    ("sunsubscribe", Detail { access: NO_KEY, ..PLAIN }),
    ("swapdb", Detail { categories: &["keyspace", "dangerous"], ..PLAIN }),
    ("time", Detail { tips: VARYING, ..PLAIN }),
    ("touch", Detail { access: LOOK, tips: SUMMED, ..PLAIN }),
    ("ttl", Detail { tips: VARYING, ..PLAIN }),
    ("type", Detail { access: LOOK, ..PLAIN }),
    ("unlink", Detail { access: DELETE, tips: SUMMED, ..PLAIN }),
    ("wait", Detail { tips: &["request_policy:all_shards", "response_policy:agg_min"], ..PLAIN }),
    ("watch", Detail { access: LOOK, ..PLAIN }),
    ("zadd", Detail { access: UPDATE, ..PLAIN }),
    ("zcard", Detail { access: LOOK, ..PLAIN }),
    ("zdiffstore", Detail { access: STORE, ..PLAIN }),
    ("zinterstore", Detail { access: STORE, ..PLAIN }),
    ("zmpop", Detail { access: TAKE, ..PLAIN }),
    ("zpopmax", Detail { access: TAKE, ..PLAIN }),
    ("zpopmin", Detail { access: TAKE, ..PLAIN }),
    ("zrandmember", Detail { tips: VARYING, ..PLAIN }),
    ("zrangestore", Detail { access: STORE, ..PLAIN }),
    ("zrem", Detail { access: TAKE_OUT, ..PLAIN }),
    ("zremrangebylex", Detail { access: TAKE_OUT, ..PLAIN }),
    ("zremrangebyrank", Detail { access: TAKE_OUT, ..PLAIN }),
    ("zremrangebyscore", Detail { access: TAKE_OUT, ..PLAIN }),
    ("zscan", Detail { tips: VARYING, ..PLAIN }),
    ("zunionstore", Detail { access: STORE, ..PLAIN }),
];

fn detail(entry: &Entry) -> Detail {
    let row = DETAILS.iter().find(|(name, _)| *name == entry.name);
    row.map_or(PLAIN, |(_, detail)| *detail)
}

/// Of a command that only has subcommands Redis tells nothing but its name.
fn is_container(entry: &Entry) -> bool {
    entry.sub.is_none() && matches!(entry.spec.handler, Handler::Parent)
}

pub(super) fn flags(entry: &Entry) -> Flags {
    if is_container(entry) {
        return Flags::NONE;
    }
    if entry.sub.is_some_and(|sub| sub.name == "HELP") {
        return Flags::LOADING | Flags::STALE;
    }
    let movable = match entry.keys() {
        Keys::Counted { .. } => Flags::MOVABLE_KEYS,
        Keys::None | Keys::All | Keys::Range { .. } => Flags::NONE,
    };
    entry.spec.flags | detail(entry).flags | movable
}

/// By the rules of Redis: from flags and group, and what stands above.
pub(super) fn categories(entry: &Entry) -> impl Iterator<Item = &'static str> {
    let (flags, detail) = (flags(entry), detail(entry));
    let family = if is_container(entry) { None } else { family(entry.spec.group) };
    CATEGORIES.into_iter().filter(move |category| {
        let told = match *category {
            "write" => flags.has(Flags::WRITE),
            // What a script reads, its commands say.
            "read" => flags.has(Flags::READONLY) && family != Some("scripting"),
            "admin" | "dangerous" => flags.has(Flags::ADMIN),
            "blocking" => flags.has(Flags::BLOCKING),
            "pubsub" => flags.has(Flags::PUBSUB),
            "fast" => flags.has(Flags::FAST),
            "slow" => !flags.has(Flags::FAST),
            _ => false,
        };
        told || family == Some(*category) || detail.categories.contains(category)
    })
}

/// The category of a group's commands.
fn family(group: Group) -> Option<&'static str> {
    match group {
        Group::String => Some("string"),
        Group::Generic => Some("keyspace"),
        Group::Connection => Some("connection"),
        Group::Hash => Some("hash"),
        Group::List => Some("list"),
        Group::Set => Some("set"),
        Group::SortedSet => Some("sortedset"),
        Group::Transactions => Some("transaction"),
        Group::Scripting => Some("scripting"),
        Group::RateLimit | Group::PubSub | Group::Server | Group::Cluster => None,
    }
}

/// What the command does with its keys.
pub(super) fn access(entry: &Entry) -> Access {
    match detail(entry).access {
        [] if flags(entry).has(Flags::WRITE) => CHANGE,
        [] => READ,
        access => access,
    }
}

pub(super) fn tips(entry: &Entry) -> &'static [&'static str] {
    detail(entry).tips
}
