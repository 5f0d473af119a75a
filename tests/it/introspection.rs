//! What a server tells of itself and of its connections, where a transcript cannot say it.

use crate::redis::Redis;
use crate::resp::Connection;
use crate::server::{Program, Tollgate};

/// What COMMAND INFO tells otherwise than Redis 7.0, on purpose.
const DIFFERENT: [(&str, &str); 17] = [
    ("blmove", "7.2 lets scripts give it"),
    ("blpop", "7.2 lets scripts give it"),
    ("brpop", "7.2 lets scripts give it"),
    ("brpoplpush", "7.2 lets scripts give it"),
    ("bzpopmax", "7.2 lets scripts give it"),
    ("bzpopmin", "7.2 lets scripts give it"),
    ("command|getkeys", "7.2 takes a request of one word"),
    ("command|getkeysandflags", "7.2 takes a request of one word"),
    ("eval", "the note on its key specification is left out"),
    ("eval_ro", "the note on its key specification is left out"),
    ("fcall", "the note on its key specification is left out"),
    ("fcall_ro", "the note on its key specification is left out"),
    ("getex", "the note on its key specification is left out"),
    ("set", "the note on its key specification is left out"),
    ("wait", "7.2 calls it blocking"),
    ("zrank", "7.2 takes WITHSCORE"),
    ("zrevrank", "7.2 takes WITHSCORE"),
];

#[test]
fn commands_are_described_as_redis_describes_them() {
    let (tollgate, redis) = (Tollgate::start(&[]), Redis::start());
    let (mut ours, mut theirs) = (tollgate.connect(), Connection::open(redis.port));
    let names = ours.ask(&[b"COMMAND", b"LIST", b"FILTERBY", b"PATTERN", b"*"]);
    let names: Vec<&str> = names[1..].iter().map(|name| name.trim_matches('"')).collect();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for name in &names {
        let is_container = names.iter().any(|other| other.starts_with(&format!("{name}|")));
        let is_different = DIFFERENT.iter().any(|(different, _)| different == name);
        // Nothing of the cluster is there but its error.
        if is_container || is_different || name.starts_with("cluster|") {
            continue;
        }
        let request: [&[u8]; 3] = [b"COMMAND", b"INFO", name.as_bytes()];
        let (ours, theirs) = (ours.ask(&request), theirs.ask(&request));
        // What came after 7.0, and what is our own, it does not know.
        if theirs.len() > 2 {
            compared += 1;
            if ours != theirs {
                wrong.push(format!("{name}:\n  not {theirs:?}\n  but {ours:?}"));
            }
        }
    }
    assert!(compared > 60, "only {compared} were compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What clients, exporters and limiter libraries look for.
const FIELDS: &str = "redis_version redis_mode tollgate_version os arch_bits run_id tcp_port \
    uptime_in_seconds process_id connected_clients maxclients blocked_clients used_memory \
    used_memory_human used_memory_rss used_memory_peak maxmemory maxmemory_policy \
    number_of_cached_scripts mem_fragmentation_ratio loading rdb_last_save_time aof_enabled \
    total_connections_received total_commands_processed instantaneous_ops_per_sec expired_keys \
    evicted_keys keyspace_hits keyspace_misses rejected_connections total_error_replies role \
    connected_slaves master_replid used_cpu_sys used_cpu_user cmdstat_get errorstat_ERR \
    latency_percentiles_usec_client|setname cluster_enabled db0 db3 version workers shards \
    decisions_allowed decisions_denied clock_gap_usec";

#[test]
fn info_has_every_field_that_somebody_looks_for() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let requests = "SET k v|GET k|GET missing|NOSUCH|CLIENT SETNAME me|RL.LIMIT l 1 1s|\
        RL.LIMIT l 1 1s|SELECT 3|SET k v EX 9|EXPIRE k 8";
    for request in requests.split('|') {
        connection.line(request);
    }
    let text = connection.line("INFO everything");
    let lines: Vec<&str> = text.trim_matches('"').split("\\r\\n").collect();
    let value = |field: &str| lines.iter().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    for field in FIELDS.split_whitespace() {
        assert!(value(field).is_some(), "{field} is missing in {lines:#?}");
    }
    let rows = [
        ("redis_version", "7.2.4"),
        ("keyspace_hits", "1"),
        ("keyspace_misses", "1"),
        ("db0", "keys=2,expires=1,avg_ttl=0"),
        ("db3", "keys=1,expires=1,avg_ttl=0"),
        ("decisions_allowed", "1"),
        ("decisions_denied", "1"),
        ("total_error_replies", "1"),
        ("connected_clients", "1"),
    ];
    for (field, expected) in rows {
        assert_eq!(value(field), Some(expected), "{field}");
    }
}

#[test]
fn command_list_names_subcommands_too() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let names = connection.ask(&[b"COMMAND", b"LIST"]);
    for name in ["\"config\"", "\"config|get\""] {
        assert_eq!(names.iter().filter(|listed| *listed == name).count(), 1, "{name}");
    }
}

/// The fields of a CLIENT LIST line, in order.
const LINE: &str = "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free \
    argv-mem multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver";

#[test]
fn client_list_tells_what_each_connection_is_like() {
    let tollgate = Tollgate::start(&[]);
    let (mut one, mut other) = (tollgate.connect(), tollgate.connect());
    for request in [
        "CLIENT SETNAME me",
        "CLIENT SETINFO LIB-NAME probe",
        "CLIENT SETINFO LIB-VER 9.5",
        "CLIENT NO-EVICT ON",
        "CLIENT NO-TOUCH ON",
        "SELECT 3",
        "GET k",
    ] {
        assert!(!one.line(request).starts_with('-'), "{request}");
    }
    tollgate.advance("7s");
    let list = other.line("CLIENT LIST");
    let lines: Vec<&str> = list.trim_matches('"').trim_end_matches("\\n").split("\\n").collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let fields = |line: &str| -> Vec<(String, String)> {
        let fields = line.split(' ').filter_map(|field| field.split_once('='));
        fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let (named, asking) = (fields(lines[0]), fields(lines[1]));
    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, LINE.split_whitespace().collect::<Vec<_>>());
    let value = |fields: &[(String, String)], wanted: &str| -> String {
        let found = fields.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    for (name, expected) in [
        ("name", "me"),
        ("age", "7"),
        ("idle", "7"),
        ("flags", "eT"),
        ("db", "3"),
        ("cmd", "get"),
        ("user", "default"),
        ("resp", "2"),
        ("lib-name", "probe"),
        ("lib-ver", "9.5"),
    ] {
        assert_eq!(value(&named, name), expected, "{name}");
    }
    assert_eq!(value(&asking, "cmd"), "client|list");
    assert_eq!(value(&asking, "flags"), "N");
    assert_eq!(value(&asking, "idle"), "0");
    assert_eq!((value(&named, "qbuf"), value(&asking, "qbuf")), ("0".into(), "26".into()));
}

#[test]
fn killed_connections_end_and_the_others_go_on() {
    let tollgate = Tollgate::start(&[]);
    let mut killer = tollgate.connect();
    let address = |connection: &mut Connection, field: &str| {
        let line = connection.line("CLIENT INFO");
        let value = line.split(' ').find_map(|word| word.strip_prefix(field)?.strip_prefix('='));
        value.expect("it is told").to_owned()
    };
    for filter in ["ID id", "ADDR addr"] {
        let (word, field) = filter.split_once(' ').expect("two words");
        let mut victim = tollgate.connect();
        let field = if field == "id" { "\"id" } else { field };
        let value = address(&mut victim, field);
        assert_eq!(killer.line(&format!("CLIENT KILL {word} {value}")), ":1", "{filter}");
        assert_eq!(victim.reply(), ["(closed)"], "{filter}");
    }
    let mut victim = tollgate.connect();
    let value = address(&mut victim, "addr");
    assert_eq!(killer.line(&format!("CLIENT KILL {value}")), "+OK");
    assert_eq!(victim.reply(), ["(closed)"]);
    assert_eq!(killer.line("CLIENT KILL TYPE normal"), ":0");
    assert_eq!(killer.line("PING"), "+PONG");
}

#[test]
fn shutdown_ends_the_program_without_a_reply() {
    let program = Program::start(&[]);
    let mut connection = program.connect();
    assert!(connection.line("SHUTDOWN SAVE").starts_with("-ERR"));
    assert_eq!(connection.line("SHUTDOWN NOSAVE"), "(closed)");
    assert!(program.wait().success());
}
