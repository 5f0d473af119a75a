//! What scripts are given, what they see of replies, and what becomes of what they return.

use super::super::{Invocation, LogLevel, Origin};
use super::Bench;
use crate::protocol::{OwnedArgs, Reply, Resp};

#[test]
fn recorded_scripts_give_the_recorded_replies() {
    let mut bench = Bench::new();
    let mut wrong = Vec::new();
    for row in include_str!("recorded.txt").lines().filter(|row| !row.starts_with('#')) {
        let (resp, rest) = row.split_once(' ').expect("a row begins with the protocol");
        let resp = if resp == "3" { Resp::V3 } else { Resp::V2 };
        let (script, expected) = rest.split_once(" => ").expect("a row has two sides");
        let script = script.replace('␤', "\n");
        let found = bench.bytes(&script, resp).replace("\r\n", "|").replace('\n', "␤");
        if found != expected {
            wrong.push(format!("{script}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn keys_and_arguments_arrive_however_many() {
    let mut bench = Bench::new();
    let text = "return {#KEYS, #ARGV, KEYS[#KEYS] or false, ARGV[#ARGV] or false}";
    let mut counts = vec![(0, 0), (0, 1), (2, 1), (3, 3), (100, 200), (300, 5_000)];
    counts.extend([0, 1, 4, 8, 9, 5_000].map(|args| (1, args)));
    for (keys, args) in counts {
        let keys: Vec<String> = (0..keys).map(|number| format!("k{number}")).collect();
        let args: Vec<String> = (0..args).map(|number| format!("a{number}")).collect();
        let words = [&keys, &args].map(|words| words.iter().map(String::as_str).collect());
        let [keys, args]: [Vec<&str>; 2] = words;
        let [last_key, last_arg] = [&keys, &args].map(|words| match words.last() {
            Some(word) => format!("${}\r\n{word}\r\n", word.len()),
            None => "$-1\r\n".to_owned(),
        });
        let lengths = format!("*4\r\n:{}\r\n:{}\r\n", keys.len(), args.len());
        let found = bench.outcome(text, [&keys, &args], Resp::V2).unwrap();
        assert_eq!(found, format!("{lengths}{last_key}{last_arg}"));
    }
}

#[test]
fn returned_arrays_are_read_to_their_end_whatever_else_is_in_the_table() {
    let mut bench = Bench::new();
    let rows = [
        ("return {}", "*0\r\n"),
        ("return {1, nil, 3}", "*1\r\n:1\r\n"),
        ("return {1, {2, {'x'}}}", "*2\r\n:1\r\n*2\r\n:2\r\n*1\r\n$1\r\nx\r\n"),
        (
            "return {1, 2, 3, 4, 5, 6, 7, 8}",
            "*8\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n",
        ),
        (
            "return {1, 2, 3, 4, 5, 6, 7, 8, false}",
            "*9\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n$-1\r\n",
        ),
        ("local t = {a = 1, b = 2, c = 3} t[1] = 7 return t", "*1\r\n:7\r\n"),
        ("local t = {a = 1, b = 2, c = 3} t[1] = 7 t.ok = 'fine' return t", "+fine\r\n"),
        ("return setmetatable({4}, {__index = function() error('asked') end})", "*1\r\n:4\r\n"),
        ("return 1, 2", ":1\r\n"),
    ];
    for (text, expected) in rows {
        assert_eq!(bench.outcome(text, [&[], &[]], Resp::V2).unwrap(), expected, "{text}");
    }
}

#[test]
fn bytes_that_are_no_text_pass_through() {
    let mut bench = Bench::new();
    let text = b"return {#ARGV[1], redis.call('echo', ARGV[1]) == ARGV[1], ARGV[1]}";
    let script = bench.interpreter.load(&bench.scripts, text, Origin::Load).unwrap();
    let (keys, args) = (OwnedArgs::default(), OwnedArgs::of([b"\xff\0\xfe"]));
    let invocation = Invocation { keys: keys.as_args(), args: args.as_args() };
    let mut out = Vec::new();
    let mut reply = Reply::new(&mut out, Resp::V2);
    let ran = (&bench.scripts, &*script);
    bench.interpreter.run(ran, invocation, &mut bench.fake, &mut reply).unwrap();
    assert_eq!(out, b"*3\r\n:3\r\n:1\r\n$3\r\n\xff\0\xfe\r\n");
}

#[test]
fn replies_of_every_kind_become_lua_values() {
    const SHOW: &str = "
        local function show(v)
            if type(v) ~= 'table' then return tostring(v) end
            local t = {}
            for k, x in pairs(v) do t[#t+1] = tostring(k) .. '=' .. show(x) end
            table.sort(t)
            return '{' .. table.concat(t, ',') .. '}'
        end
        return show(redis.pcall('raw', ARGV[1]))";
    let mut bench = Bench::new();
    let table = [
        (":-5\r\n", "-5"),
        ("$2\r\nhi\r\n", "hi"),
        ("$-1\r\n", "false"),
        ("*-1\r\n", "false"),
        ("_\r\n", "nil"),
        ("+OK\r\n", "{ok=OK}"),
        ("-ERR x\r\n", "{err=ERR x,ignore_error_stats_update=true}"),
        ("*3\r\n$1\r\na\r\n$-1\r\n:7\r\n", "{1=a,2=false,3=7}"),
        ("*2\r\n*1\r\n:1\r\n+OK\r\n", "{1={1=1},2={ok=OK}}"),
        ("*2\r\n_\r\n:1\r\n", "{2=1}"),
        ("#t\r\n", "true"),
        (",1.5\r\n", "{double=1.5}"),
        (",inf\r\n", "{double=inf}"),
        ("(123\r\n", "{big_number=123}"),
        ("=6\r\ntxt:hi\r\n", "{verbatim_string={format=txt,string=hi}}"),
        ("%1\r\n$1\r\na\r\n:1\r\n", "{map={a=1}}"),
        ("~1\r\n$1\r\na\r\n", "{set={a=true}}"),
        ("$5\r\nhi\r\n", "{err=ERR the command's reply could not be read}"),
    ];
    for (reply, expected) in table {
        let found = bench.outcome(SHOW, [&[], &[reply]], Resp::V2);
        if expected.contains("could not be read") {
            assert!(found.is_err(), "{reply}");
            continue;
        }
        assert_eq!(found.unwrap(), format!("${}\r\n{expected}\r\n", expected.len()), "{reply}");
    }
}

#[test]
fn nothing_of_one_run_is_seen_by_the_next() {
    let mut bench = Bench::new();
    for (text, found) in [
        ("table.insert(redis, 'x')", "Attempt to modify a readonly table script: SHA"),
        ("table.insert(_G, 'x')", "Attempt to modify a readonly table script: SHA"),
        ("table.insert(string, 1e6, 'x')", "Attempt to modify a readonly table script: SHA"),
        ("table.insert(string, -5, 'x')", "Attempt to modify a readonly table script: SHA"),
        ("table.insert(string)", "user_script:1: wrong number of arguments to 'insert'"),
        ("table.insert({}, 'x', 2)", "user_script:1: bad argument #2 to 'insert' (number expected"),
    ] {
        let reply = bench.eval(text);
        assert!(reply.starts_with(&format!("-ERR {found}")), "{text}: {reply}");
    }
    assert_eq!(bench.eval("return {#string, string[1e6] or 0, string[-5] or 0}").len(), 16);
    bench.eval("redis.setresp(3)");
    assert_eq!(bench.eval("return {#redis, #_G}"), "*2\r\n:0\r\n:0\r\n");
    assert_eq!(bench.eval("return true"), ":1\r\n");
}

#[test]
fn random_numbers_go_on_from_run_to_run_and_a_repeated_run_draws_them_again() {
    let mut bench = Bench::new();
    let draw = "return math.random(1000000)";
    assert_eq!(bench.eval(draw), ":396465\r\n");
    assert_eq!(bench.eval("math.random() redis.call('WIDE')"), "abandoned");
    assert_eq!(bench.eval(draw), ":840486\r\n");
    assert_eq!(bench.eval("math.randomseed(7) return math.random(1000000)"), ":266445\r\n");
    assert_eq!(bench.eval(draw), ":682036\r\n");
}

#[test]
fn a_log_line_arrives_with_its_level_and_a_command_is_asked_about() {
    let mut bench = Bench::new();
    bench.eval("redis.log(redis.LOG_WARNING, 'a', 5, {}, 'b')");
    assert_eq!(bench.fake.logged, [(LogLevel::Warning, b"a 5 b".to_vec())]);
    assert_eq!(bench.eval("return redis.acl_check_cmd('flushall')"), "$-1\r\n");
    assert_eq!(bench.eval("return redis.acl_check_cmd('get', 'a')"), ":1\r\n");
    let unknown = "-ERR Invalid command passed to redis.acl_check_cmd() script: SHA, on \
                   @user_script:1.\r\n";
    assert_eq!(bench.eval("return redis.acl_check_cmd('foo')"), unknown);
}
