//! The client that limiters of Rust speak through: its handshakes, its pipeline, its script.
//!
//! What it says is the same at a real Redis; that a window opens is shown where the clock is ours.

use redis::{Client, Commands, Connection, Script, cmd, pipe};

use crate::redis::Redis;
use crate::server::Tollgate;

/// A fixed window of a second, three in it.
const FIXED_WINDOW: &str = "
    local count = redis.call('INCR', KEYS[1])
    if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
    return {count <= tonumber(ARGV[2]), redis.call('PTTL', KEYS[1])}
";

fn connect(port: u16, protocol: &str) -> Connection {
    let url = format!("redis://127.0.0.1:{port}/12?protocol={protocol}");
    Client::open(url).expect("an address").get_connection().expect("it answers")
}

/// Whether the next three pass and no fourth, by a transaction and by a script.
fn is_limited(connection: &mut Connection) -> bool {
    let script = Script::new(FIXED_WINDOW);
    let mut by_transaction = Vec::new();
    let mut by_script = Vec::new();
    for _ in 0..4 {
        let mut counter = pipe();
        counter.atomic().incr("counter", 1).cmd("EXPIRE").arg("counter").arg(1).arg("NX").ignore();
        let (count,): (i64,) = counter.query(connection).expect("a count");
        by_transaction.push(count <= 3);
        let (passes, left_ms): (bool, i64) =
            script.key("script").arg(1_000).arg(3).invoke(connection).expect("a decision");
        assert!((0..=1_000).contains(&left_ms), "{left_ms}");
        by_script.push(passes);
    }
    let expected = [true, true, true, false];
    by_transaction == expected && by_script == expected
}

#[test]
fn redis_rs_limits() {
    for protocol in ["resp2", "resp3"] {
        let redis = Redis::start();
        assert!(is_limited(&mut connect(redis.port, protocol)));
        let tollgate = Tollgate::start(&[]);
        let mut connection = connect(tollgate.port(), protocol);
        assert!(is_limited(&mut connection));
        tollgate.advance("1s");
        assert!(is_limited(&mut connection), "it opens again");
        assert_eq!(cmd("PING").query::<String>(&mut connection), Ok("PONG".into()));
        assert_eq!(connection.del::<_, i64>(&["counter", "script"][..]), Ok(2));
    }
}
