//! What scripts find besides the language: the probes in `lua/libraries.txt`, played at a real
//! Redis and at Tollgate.

use crate::redis::Redis;
use crate::resp::Connection;
use crate::server::Tollgate;

const SHOW: &str = include_str!("lua/show.lua");
const PROBES: &str = include_str!("lua/libraries.txt");

#[test]
fn probes_of_the_libraries_hold_at_redis() {
    let redis = Redis::start();
    let wrong = play(&mut Connection::open(redis.port));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn probes_of_the_libraries_hold_at_tollgate() {
    let tollgate = Tollgate::start(&[]);
    let wrong = play(&mut tollgate.connect());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Asks every probe; returns what was answered otherwise.
fn play(connection: &mut Connection) -> Vec<String> {
    let (mut wrong, mut body) = (Vec::new(), "");
    for line in PROBES.lines() {
        if let Some(next) = line.strip_prefix("> ") {
            body = next;
        }
        let Some(expected) = line.strip_prefix('<') else { continue };
        let script = SHOW.replace("BODY", body);
        let got = connection.ask(&[b"EVAL", script.as_bytes(), b"0"]);
        let expected = crate::resp::quoted(expected.trim_start().as_bytes());
        if got != [expected.as_str()] {
            wrong.push(format!("{body}\n  not {expected}\n  but {got:?}"));
        }
    }
    wrong
}
