//! DEBUG, where the settings let this machine use it.

use crate::server::Tollgate;

#[test]
fn debug_answers_as_redis_does() {
    let tollgate = Tollgate::start(&["--set", "server.debug=local"]);
    let mut connection = tollgate.connect();
    let unknown = |name: &str| {
        format!(
            "-ERR unknown subcommand or wrong number of arguments for '{name}'. Try DEBUG HELP."
        )
    };
    for (request, expected) in [
        ("SLEEP 0", "+OK".to_owned()),
        ("SLEEP 0.001", "+OK".to_owned()),
        ("SLEEP -1", "+OK".to_owned()),
        ("SLEEP x", "+OK".to_owned()),
        ("SLEEP", unknown("SLEEP")),
        ("sleep 0 1", unknown("sleep")),
        ("SLEEP 61", "-ERR DEBUG SLEEP: at most 60 seconds".to_owned()),
        ("SLEEP inf", "-ERR DEBUG SLEEP: at most 60 seconds".to_owned()),
        ("ERROR MY-own", "-MY-own".to_owned()),
        ("ERROR", unknown("ERROR")),
        ("QUICKLIST-PACKED-THRESHOLD 100b", "+OK".to_owned()),
        ("QUICKLIST-PACKED-THRESHOLD 0", "+OK".to_owned()),
        (
            "QUICKLIST-PACKED-THRESHOLD 4gb",
            "-ERR argument must be a memory value bigger than 1 and smaller than 4gb".to_owned(),
        ),
        ("SET-ACTIVE-EXPIRE 0", "+OK".to_owned()),
        ("SET-ACTIVE-EXPIRE 1", "+OK".to_owned()),
        ("NOSUCH", unknown("NOSUCH")),
    ] {
        assert_eq!(connection.line(&format!("DEBUG {request}")), expected, "{request}");
    }
    assert!(connection.ask(&[b"DEBUG", b"HELP"]).len() > 5);
    let told = connection.ask(&[b"CONFIG", b"GET", b"enable-debug-command"]);
    assert_eq!(told[2], "\"local\"");
}
