//! Real clients and tools, unmodified: what they send unasked must work, and they must limit.
//!
//! `make test` installs them; one that is missing fails here.

use std::path::PathBuf;
use std::process::Command;

use crate::server::Tollgate;

/// Where `scripts/needs.sh` puts the client libraries.
pub(crate) fn libraries() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    std::env::current_dir().expect("a folder").join(target).join("clients")
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(name)
}

pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("it is installed: `make test` sees to it");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn redis_py_limits() {
    let tollgate = Tollgate::start(&[]);
    let python = libraries().join("venv/bin/python");
    let port = tollgate.port().to_string();
    assert_eq!(run(Command::new(python).arg(script("redis_py.py")).arg(port)), "done");
}

#[test]
fn node_redis_and_ioredis_limit() {
    for name in ["node_redis.mjs", "ioredis.mjs"] {
        let tollgate = Tollgate::start(&[]);
        let (node, port) = (libraries().join("node"), tollgate.port().to_string());
        let mut command = Command::new(node);
        assert_eq!(run(command.arg(script(name)).arg(port).arg(libraries())), "done");
    }
}

#[test]
fn redis_cli_asks_in_every_way_it_knows() {
    let tollgate = Tollgate::start(&[]);
    let port = tollgate.port().to_string();
    let cli = |words: &[&str]| run(Command::new("redis-cli").args(["-p", &port]).args(words));
    assert_eq!(cli(&["RL.LIMIT", "k", "5", "1m"]), "0\n5\n4\n-1\n60000");
    assert_eq!(cli(&["-3", "RL.LIMIT", "k", "5", "1m"]), "0\n5\n3\n-1\n60000");
    assert_eq!(cli(&["-n", "3", "SET", "key", "value"]), "OK");
    assert_eq!(cli(&["-n", "3", "--scan"]), "key");
    assert!(cli(&["INFO"]).contains("redis_version:7.2"));
    assert!(cli(&["-n", "3", "--bigkeys"]).contains("1 strings"));
    assert!(cli(&["--json", "COMMAND", "DOCS", "RL.LIMIT"]).contains("rl.limit"));
}

#[test]
fn redis_benchmark_runs_its_counter_tests_and_a_command_line() {
    let tollgate = Tollgate::start(&[]);
    let port = tollgate.port().to_string();
    let load = ["-p", &port, "-n", "2000", "-c", "10", "-P", "8", "-r", "100", "-q"];
    let mut benchmark = Command::new("redis-benchmark");
    let printed = run(benchmark.args(load).args(["-t", "ping,set,get,incr,mset"]));
    for name in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"] {
        assert!(printed.contains(&format!("{name}: ")), "{printed}");
    }
    let mut benchmark = Command::new("redis-benchmark");
    run(benchmark.args(load).args(["RL.LIMIT", "rl:__rand_int__", "5", "1d"]));
    let denied = tollgate.connect().line("RL.LIMIT rl:000000000001 5 1d PEEK");
    assert!(denied.starts_with("*5 :1 :5 :0"), "{denied}");
}
