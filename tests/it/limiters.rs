//! Libraries that limit by Redis, unmodified, pointed at Tollgate.
//!
//! Each has a program in `limiters/` that limits with it over a socket: so many pass, the next is
//! refused, and it opens again. The program is played at a real Redis at the same time, which
//! proves the program. Windows last a second or two by the real clock, so the program is asked
//! until they open, and nothing waits for longer than it must.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::clients::{libraries, run};
use crate::redis::Redis;
use crate::server::Program;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/limiters").join(name)
}

/// Plays a program, by its language, at the server on this port.
pub(crate) fn play(name: &str, port: u16) {
    let path = program(name);
    let language = path.extension().and_then(|name| name.to_str());
    let mut command = match language.expect("it is the end of its name") {
        "py" => Command::new(libraries().join("venv/bin/python")),
        "mjs" => Command::new(libraries().join("node")),
        "rb" => Command::new("ruby"),
        "php" => Command::new("php"),
        "pl" => Command::new("perl"),
        "go" => go(),
        other => panic!("who runs `{other}`?"),
    };
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let printed = run(command.arg(&path).arg(port.to_string()).arg(libraries()));
    assert_eq!(printed, "done", "{name}");
}

/// Go as Debian packages its libraries: as sources in a folder, without modules.
fn go() -> Command {
    let mut command = Command::new("go");
    command.arg("run").env("GO111MODULE", "off").env("GOPATH", "/usr/share/gocode");
    command.env("GOCACHE", libraries().join("go"));
    command
}

fn limits_at_tollgate(name: &str) {
    play(name, Program::start(&[]).port);
}

fn limits_at_both(name: &str) {
    thread::scope(|scope| {
        scope.spawn(|| play(name, Redis::start().port));
        limits_at_tollgate(name);
    });
}

#[test]
fn limits_limits() {
    limits_at_both("with_limits.py");
}

#[test]
fn flask_limiter_limits_and_tells_when_to_come_back() {
    limits_at_both("with_flask_limiter.py");
}

#[test]
fn pyrate_limiter_limits() {
    limits_at_both("with_pyrate_limiter.py");
}

#[test]
fn throttled_limits() {
    limits_at_both("with_throttled.py");
}

#[test]
fn django_ratelimit_limits() {
    limits_at_both("with_django_ratelimit.py");
}

#[test]
fn redis_rate_limiters_hands_out_turns_and_places() {
    limits_at_both("with_redis_rate_limiters.py");
}

#[test]
fn rate_limiter_flexible_limits() {
    limits_at_both("with_rate_limiter_flexible.mjs");
}

#[test]
fn express_rate_limit_limits_and_tells_when_to_come_back() {
    limits_at_both("with_rate_limit_redis.mjs");
}

#[test]
fn fastify_limits_and_tells_when_to_come_back() {
    limits_at_both("with_fastify_rate_limit.mjs");
}

#[test]
fn bottleneck_limits_over_two_processes() {
    limits_at_both("with_bottleneck.mjs");
}

#[test]
fn bottleneck_knows_the_codes_of_its_scripts() {
    limits_at_tollgate("with_bottleneck_codes.mjs");
}

#[test]
fn upstash_ratelimit_limits() {
    limits_at_tollgate("with_upstash_ratelimit.mjs");
}

#[test]
fn ratelimiter_limits() {
    limits_at_both("with_ratelimiter.mjs");
}

#[test]
fn async_ratelimiter_limits() {
    limits_at_both("with_async_ratelimiter.mjs");
}

#[test]
fn redis_gcra_limits() {
    limits_at_both("with_redis_gcra.mjs");
}

#[test]
fn rolling_rate_limiter_limits() {
    limits_at_both("with_rolling_rate_limiter.mjs");
}

#[test]
fn rack_attack_limits_and_tells_when_to_come_back() {
    limits_at_both("with_rack_attack.rb");
}

#[test]
fn laravel_throttles_and_funnels() {
    limits_at_both("with_laravel.php");
}

#[test]
fn symfony_limits() {
    limits_at_both("with_symfony.php");
}

#[test]
fn perl_limits() {
    limits_at_both("with_redis.pl");
}

#[test]
fn redigo_limits() {
    limits_at_both("with_redigo.go");
}
