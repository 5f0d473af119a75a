//! Scripts among several connections: isolation, and scripts that do not end.

use crate::http::metrics;
use crate::resp::{Connection, encode};
use crate::server::Tollgate;

/// Looks at the page of metrics, each of which takes about a millisecond.
const LOOKS_MAX: usize = 20_000;

/// A script that counts a key it has declared, and every thousandth time one it has not.
const STRAYING: &[u8] = b"
    local count = redis.call('INCR', KEYS[1])
    if count % 1000 == 0 then redis.call('INCR', ARGV[1]) end
    return count";

/// Waits until as many scripts run, or are long, as the page of metrics tells.
fn await_scripts(tollgate: &Tollgate, state: &str, count: f64) {
    let series = format!("tollgate_scripts_running{{state=\"{state}\"}}");
    let is_so = |_| (metrics(tollgate).value(&series) - count).abs() < f64::EPSILON;
    assert!((0..LOOKS_MAX).any(is_so), "{series} is not {count}");
}

/// Lets these connections run an endless script each, and time pass until others are told so.
fn hold_up(tollgate: &Tollgate, connections: &mut [Connection], request: &[&[u8]]) {
    for connection in &mut *connections {
        connection.send(&encode(request));
    }
    let count = connections.len() as f64;
    await_scripts(tollgate, "short", count);
    tollgate.advance("6s");
    await_scripts(tollgate, "long", count);
}

#[test]
fn scripts_that_leave_their_keys_in_opposite_order_lose_no_count() {
    const CONNECTIONS: usize = 8;
    const CALLS: usize = 4_000;
    let tollgate = Tollgate::start(&["--set", "server.workers=4"]);
    let port = tollgate.port();
    std::thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            scope.spawn(move || {
                let (own, other): (&[u8], &[u8]) =
                    if number % 2 == 0 { (b"a", b"b") } else { (b"b", b"a") };
                let mut connection = Connection::open(port);
                let request = encode(&[b"EVAL", STRAYING, b"1", own, other]);
                for _ in 0..CALLS / 100 {
                    connection.send(&request.repeat(100));
                    for _ in 0..100 {
                        let reply = connection.reply().concat();
                        assert!(reply.starts_with(':'), "{reply}");
                    }
                }
            });
        }
    });
    let mut connection = tollgate.connect();
    let mut count = |key: &str| -> usize {
        let text = connection.line(&format!("GET {key}"));
        text.trim_matches('"').parse().expect("a count")
    };
    // Each key was counted half of all times, and once more for each thousand of the other.
    let strayed = count("a") + count("b") - CONNECTIONS * CALLS;
    assert!((CONNECTIONS * CALLS / 1_000 - 2..=CONNECTIONS * CALLS / 1_000 + 2).contains(&strayed));
    let info = connection.line("INFO tollgate");
    assert!(info.contains("scripts_rerun:"), "{info}");
}

#[test]
fn script_that_runs_again_leaves_nothing_of_its_first_run() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    connection.line("SET n 1");
    connection.line("SET gone x PX 60000");
    connection.line("SETEX late 100 x");
    let script = b"
        redis.call('INCR', KEYS[1])
        redis.call('DEL', KEYS[2])
        redis.call('SET', KEYS[3], 'new')
        redis.call('PEXPIRE', KEYS[4], 5000)
        redis.call('APPEND', KEYS[5], 'y')
        if redis.call('EXISTS', 'undeclared') == 0 then error('as asked') end";
    let words: [&[u8]; 8] = [b"EVAL", script, b"5", b"n", b"gone", b"fresh", b"late", b"tail"];
    for times in 1..=3 {
        let reply = connection.ask(&words).concat();
        assert!(reply.contains("as asked"), "{reply}");
        let expected = format!("*3 \"{}\" \"new\" \"{}\"", times + 1, "y".repeat(times));
        assert_eq!(connection.line("MGET n fresh tail"), expected);
        assert_eq!(connection.line("EXISTS gone"), ":0");
        assert_eq!(connection.line("PTTL late"), ":5000");
    }
    let info = connection.line("INFO tollgate");
    assert!(info.contains("scripts_rerun:1\\r"), "only the first time: {info}");
}

#[test]
fn endless_script_on_every_worker_is_killed_from_a_new_connection() {
    let tollgate = Tollgate::start(&["--set", "server.workers=2"]);
    let mut held = [tollgate.connect(), tollgate.connect()];
    hold_up(&tollgate, &mut held, &[b"EVAL", b"while true do end", b"0"]);
    let mut other = tollgate.connect();
    let busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                NOSAVE.";
    for request in ["PING", "GET k", "EVAL x 0", "EXEC", "SHUTDOWN", "FUNCTION KILL"] {
        let expected = if request == "EXEC" {
            format!("-EXECABORT Transaction discarded because of: {}", &busy[1..])
        } else {
            busy.to_owned()
        };
        assert_eq!(other.line(request), expected, "{request}");
    }
    for (request, reply) in [("MULTI", "+OK"), ("DISCARD", "+OK"), ("UNWATCH", "+OK")] {
        assert_eq!(other.line(request), reply, "{request}");
    }
    assert_eq!(other.line("SCRIPT KILL"), "+OK");
    for held in &mut held {
        let reply = held.reply().concat();
        assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{reply}");
    }
    for held in &mut held {
        assert_eq!(held.line("PING"), "+PONG");
    }
    assert_eq!(other.line("PING"), "+PONG");
    assert_eq!(other.line("SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.");
}

#[test]
fn connection_that_came_before_the_script_counted_as_long_is_answered() {
    let tollgate = Tollgate::start(&["--set", "server.workers=1"]);
    let mut held = tollgate.connect();
    held.send(&encode(&[b"EVAL", b"while true do end", b"0"]));
    await_scripts(&tollgate, "short", 1.0);
    let mut early = tollgate.connect();
    early.send(&encode(&[b"PING"]));
    let is_in = |_| metrics(&tollgate).value("tollgate_connections") > 1.5;
    assert!((0..LOOKS_MAX).any(is_in), "it was never let in");
    tollgate.advance("6s");
    assert!(early.reply().concat().starts_with("-BUSY"));
    assert_eq!(early.line("SCRIPT KILL"), "+OK");
    assert!(held.reply().concat().contains("Script killed"));
    assert_eq!(early.line("PING"), "+PONG");
}

#[test]
fn one_call_of_the_pattern_library_holds_nobody_up_for_ever() {
    let (tollgate, mut held, [mut other]) = neighbours();
    let script = b"return ('a'):rep(1e5):find(('.-'):rep(20) .. 'b')";
    hold_up(&tollgate, std::slice::from_mut(&mut held), &[b"EVAL", script, b"0"]);
    assert!(other.line("PING").starts_with("-BUSY"));
    assert_eq!(other.line("SCRIPT KILL"), "+OK");
    assert!(held.reply().concat().contains("Script killed"));
}

#[test]
fn stand_in_hands_its_connections_on_and_is_never_held_up_itself() {
    const ENDLESS: [&[u8]; 3] = [b"EVAL", b"while true do end", b"0"];
    let tollgate = Tollgate::start(&["--set", "server.workers=1"]);
    let mut held = tollgate.connect();
    hold_up(&tollgate, std::slice::from_mut(&mut held), &ENDLESS);
    let mut other = tollgate.connect();
    assert_eq!(other.line("SELECT 0").split(' ').next(), Some("-BUSY"));
    assert_eq!(other.line("WATCH k"), "+OK");
    assert_eq!(other.line("SCRIPT KILL"), "+OK");
    assert!(held.reply().concat().contains("Script killed"));
    assert_eq!(held.line("SET k changed"), "+OK");
    assert_eq!(other.ask(&[b"EVAL", b"return 7", b"0"]), [":7"], "by a worker");
    assert_eq!((other.line("MULTI"), other.line("PING")), ("+OK".into(), "+QUEUED".into()));
    assert_eq!(other.line("EXEC"), "*-1", "what it watches went with it");
    hold_up(&tollgate, std::slice::from_mut(&mut other), &ENDLESS);
    let busy = held.ask(&ENDLESS).concat();
    assert!(busy.starts_with("-BUSY"), "whoever answers it does not run it: {busy}");
    assert_eq!(tollgate.connect().line("SCRIPT KILL"), "+OK", "a door is open");
    assert!(other.reply().concat().contains("Script killed"));
    hold_up(&tollgate, std::slice::from_mut(&mut held), &ENDLESS);
    assert_eq!(tollgate.connect().line("SCRIPT KILL"), "+OK");
    assert!(held.reply().concat().contains("Script killed"));
}

#[test]
fn script_that_has_written_is_not_killed_but_ends_with_the_server() {
    let tollgate = Tollgate::start(&["--set", "server.workers=1"]);
    let mut held = [tollgate.connect()];
    let script = b"redis.call('SET', KEYS[1], 1) while true do end";
    hold_up(&tollgate, &mut held, &[b"EVAL", script, b"1", b"held"]);
    let mut other = tollgate.connect();
    let reply = other.line("SCRIPT KILL");
    assert!(reply.starts_with("-UNKILLABLE Sorry the script already executed write"), "{reply}");
    assert!(other.line("PING").starts_with("-BUSY"));
    assert!(other.line("WATCH held").starts_with("-BUSY"), "its shard is held");
    assert_eq!(other.line("SHUTDOWN NOSAVE"), "(closed)");
    tollgate.stop();
}

#[test]
fn endless_function_is_shown_and_killed_by_its_own_command() {
    let tollgate = Tollgate::start(&["--set", "server.workers=1"]);
    let mut held = tollgate.connect();
    let code = b"#!lua name=lib\nredis.register_function('spin', function() while true do end end)";
    assert_eq!(held.ask(&[b"FUNCTION", b"LOAD", code]), ["\"lib\""]);
    hold_up(&tollgate, std::slice::from_mut(&mut held), &[b"FCALL", b"spin", b"0"]);
    let mut other = tollgate.connect();
    assert!(other.line("PING").contains("FUNCTION KILL"));
    let stats = other.line("FUNCTION STATS");
    let shown = "\"name\" \"spin\" \"command\" *3 \"FCALL\" \"spin\" \"0\" \"duration_ms\" :6000";
    assert!(stats.contains(shown), "{stats}");
    assert!(other.line("SCRIPT KILL").starts_with("-BUSY"));
    assert_eq!(other.line("FUNCTION KILL"), "+OK");
    let reply = held.reply().concat();
    assert!(reply.contains("Script killed by user with FUNCTION KILL"), "{reply}");
}

#[test]
fn script_that_runs_again_publishes_once_and_one_that_fails_still_does() {
    let tollgate = Tollgate::start(&[]);
    let (mut connection, mut listener) = (tollgate.connect(), tollgate.connect());
    listener.line("SUBSCRIBE news");
    let straying = b"redis.call('PUBLISH', 'news', ARGV[1]) redis.call('SET', 'undeclared', 1)";
    connection.ask(&[b"EVAL", straying, b"0", b"first"]);
    connection.ask(&[b"EVAL", straying, b"0", b"second"]);
    let failing = b"redis.call('PUBLISH', 'news', ARGV[1]) error('as asked')";
    connection.ask(&[b"EVAL", failing, b"0", b"third"]);
    for expected in ["first", "second", "third"] {
        assert_eq!(listener.reply().concat(), format!("*3\"message\"\"news\"\"{expected}\""));
    }
    assert_eq!(listener.line("PING"), "*2 \"pong\" \"\"");
}

#[test]
fn known_script_runs_by_its_twin_unless_that_is_turned_off() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/lua-compat/fixed-window/script.lua");
    let script = std::fs::read(path).expect("it is there");
    let request: [&[u8]; 7] = [b"EVAL", &script, b"1", b"k", b"3", b"1000", b"1"];
    let replies = ["true", "false"].map(|switch| {
        let tollgate = Tollgate::start(&["--set", &format!("lua.native_twins={switch}")]);
        let mut connection = tollgate.connect();
        let mut replies: Vec<String> = (0..4).map(|_| connection.ask(&request).join(" ")).collect();
        connection.line("MULTI");
        assert_eq!(connection.ask(&request), ["+QUEUED"]);
        replies.push(connection.line("EXEC"));
        let info = connection.line("INFO tollgate");
        let calls = if switch == "true" { 5 } else { 0 };
        assert!(info.contains(&format!("native_twin_calls:{calls}\\r")), "{info}");
        replies
    });
    assert_eq!(replies[0], replies[1]);
    assert!(replies[0][0].starts_with("*5 :0 :3 :2"), "{:?}", replies[0]);
}

/// One worker, and connections that it answers already.
fn neighbours<const OTHERS: usize>() -> (Tollgate, Connection, [Connection; OTHERS]) {
    let tollgate = Tollgate::start(&["--set", "server.workers=1"]);
    let others = std::array::from_fn(|_| {
        let mut other = tollgate.connect();
        assert_eq!(other.line("PING"), "+PONG");
        other
    });
    let held = tollgate.connect();
    (tollgate, held, others)
}

#[test]
fn neighbours_of_an_endless_script_are_told_so_and_may_end_it() {
    let (tollgate, mut held, [mut other, mut multi, mut quits]) = neighbours();
    let busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                NOSAVE.";
    hold_up(&tollgate, std::slice::from_mut(&mut held), &[b"EVAL", b"while true do end", b"0"]);
    assert_eq!(other.line("PING"), busy);
    other.send(&encode(&[b"GET", b"k"]).repeat(1_000));
    for _ in 0..1_000 {
        assert_eq!(other.reply(), [busy]);
    }
    assert_eq!(multi.line("MULTI"), "+OK");
    assert_eq!(multi.line("SET k 1"), busy);
    assert!(multi.line("EXEC").starts_with("-EXECABORT "));
    assert_eq!(quits.line("QUIT"), "+OK");
    assert_eq!(quits.reply(), ["(closed)"]);
    other.send(b"*2\r\n$6\r\nSCRIPT\r\n$4\r\nKI");
    assert_eq!(multi.line("GET k"), busy);
    other.send(b"LL\r\n");
    assert_eq!(other.reply(), ["+OK"]);
    let reply = held.reply().concat();
    assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{reply}");
    for mut connection in [held, other, multi] {
        assert_eq!(connection.line("PING"), "+PONG");
    }
}

#[test]
fn neighbours_of_a_script_that_has_written_may_only_end_the_server() {
    let (tollgate, mut held, [mut other]) = neighbours();
    let script = b"redis.call('SET', KEYS[1], 1) while true do end";
    let request: [&[u8]; 4] = [b"EVAL", script, b"1", b"held"];
    hold_up(&tollgate, std::slice::from_mut(&mut held), &request);
    assert!(other.line("WATCH held").starts_with("-BUSY"), "its shard is held");
    assert!(other.line("SCRIPT KILL").starts_with("-UNKILLABLE "));
    assert_eq!(other.line("SHUTDOWN NOSAVE"), "(closed)");
    tollgate.stop();
}

#[test]
fn script_whose_changes_are_too_many_to_take_back_goes_on_over_all_shards() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let keys: Vec<String> = (0..70).map(|number| format!("large:{number}")).collect();
    for key in &keys {
        assert_eq!(connection.line(&format!("SETRANGE {key} 1048575 x")), ":1048576");
    }
    let script = b"
        for _, key in ipairs(KEYS) do redis.call('SET', key, 'new') end
        return redis.call('GET', ARGV[1])";
    let count = keys.len().to_string();
    let mut words: Vec<&[u8]> = vec![b"EVAL", script, count.as_bytes()];
    words.extend(keys.iter().map(String::as_bytes));
    words.push(b"large:0");
    assert_eq!(connection.ask(&words), ["\"new\""]);
    for key in &keys {
        assert_eq!(connection.line(&format!("GET {key}")), "\"new\"");
    }
    let info = connection.line("INFO tollgate");
    assert!(info.contains("scripts_rerun:1\\r"), "{info}");
}

/// Case H46.
#[test]
fn flood_of_different_scripts_stays_bounded_and_what_was_loaded_stays() {
    const FLOOD: usize = 20_000;
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let used = |connection: &mut Connection| -> u64 {
        let info = connection.line("INFO memory");
        let value = |name: &str| {
            let line = info.split("\\r\\n").find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.parse::<u64>().ok()).expect("a figure")
        };
        value("used_memory:") + value("used_memory_lua:") + value("used_memory_scripts:")
    };
    let sha = connection.line("SCRIPT LOAD return'keep'");
    let before = used(&mut connection);
    for start in (0..FLOOD).step_by(1_000) {
        let numbers = start..start + 1_000;
        let requests = numbers
            .clone()
            .map(|number| encode(&[b"EVAL", format!("return {number}").as_bytes(), b"0"]));
        connection.send(&requests.collect::<Vec<_>>().concat());
        for number in numbers {
            assert_eq!(connection.reply(), [format!(":{number}")]);
        }
    }
    assert_eq!(connection.line(&format!("EVALSHA {} 0", sha.trim_matches('"'))), "\"keep\"");
    let info = connection.line("INFO memory");
    assert!(info.contains("number_of_cached_scripts:501\\r"), "{info}");
    let grown = used(&mut connection).saturating_sub(before);
    assert!(grown < 8 << 20, "by {grown} bytes");
}

/// Case H40.
#[test]
fn limiter_script_that_declares_no_key_counts_every_one_of_its_callers() {
    const CALLERS: usize = 40;
    let tollgate = Tollgate::start(&["--set", "server.workers=4"]);
    let script = b"local k = 'u:' .. ARGV[1] local n = tonumber(redis.call('GET', k) or '0') + 1 \
                   redis.call('SET', k, n) return n";
    let port = tollgate.port();
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(move || {
                for _ in 0..400 / CALLERS {
                    let reply = Connection::open(port).ask(&[b"EVAL", script, b"0", b"7"]);
                    assert!(reply.concat().starts_with(':'), "{reply:?}");
                }
            });
        }
    });
    assert_eq!(tollgate.connect().line("GET u:7"), "\"400\"");
}

/// Case H43: a window is opened by a count of 1, whenever it is looked at.
#[test]
fn no_count_is_carried_over_the_edge_of_its_window() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("SET w 99 PX 100"), "+OK");
    tollgate.advance("150ms");
    let first = b"return {redis.call('INCR', KEYS[1]), redis.call('PTTL', KEYS[1])}";
    assert_eq!(connection.ask(&[b"EVAL", first, b"1", b"w"]).join(" "), "*2 :1 :-1");
    let script = b"local n = redis.call('INCR', KEYS[1]) local t = redis.call('PTTL', KEYS[1]) \
                   if t <= 0 then redis.call('PEXPIRE', KEYS[1], 1000) t = 1000 end return {n, t}";
    let mut opened = 0;
    // Steps that meet the edge itself, and both its sides.
    for step in (0..600).map(|number| ["1ms", "99ms", "900ms", "333ms"][number % 4]) {
        let reply = connection.ask(&[b"EVAL", script, b"1", b"soak"]);
        if reply[2] == ":1000" {
            assert_eq!(reply[1], ":1", "after a step of {step}");
            opened += 1;
        }
        assert_ne!(reply[2], ":0");
        tollgate.advance(step);
    }
    assert!(opened > 100, "{opened} windows");
}
