//! What outlives the process: stops, crashes, and files that are not as they should be.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tollgate::time::{Clock, Duration, Timestamp};

use crate::server::{Program, START, Tollgate, command};

/// Crashes of one run of the test; `make crash` says a hundred.
const CRASHES: u64 = match option_env!("CRASHES") {
    Some(_) => 100,
    None => 12,
};

const POLICY: &str = "tenants:\n- name: acme\n  rules:\n  - endpoint: /a\n    limits:\n\
    \x20   - {limit: 10, window: 1h}\n    - {limit: 100, window: 1d, algorithm: gcra}\n\
    \x20 - endpoint: /slow\n    concurrency: 3\n";

/// Requests that leave something of every kind, and need each other in this order.
const WRITES: [&str; 30] = [
    "SET text hello",
    "SET number 42",
    "APPEND raw grows",
    "SET brief x PX 60000",
    "HSET hash f v g w",
    "RPUSH list a b c",
    "SADD set x y z",
    "SADD numbers 1 2 3",
    "ZADD sorted 1.5 a 2 b",
    "SELECT 3",
    "SET elsewhere 1",
    "SWAPDB 3 4",
    "SET gone 1",
    "SELECT 5",
    "SET flushed 1",
    "FLUSHDB",
    "SET after 1",
    "SELECT 0",
    "SET deleted 1",
    "DEL deleted",
    "RENAME text renamed",
    "RL.LIMIT log 10 1h",
    "RL.LIMIT window 10 1h ALGORITHM sliding-window COST 3",
    "RL.LIMIT counter 10 1h ALGORITHM sliding-counter COST 4",
    "RL.LIMIT fixed 10 1h ALGORITHM fixed-window COST 5",
    "CL.THROTTLE throttle 14 30 60 6",
    "RL.CHECK acme /a COST 2",
    "RL.ACQUIRE acme /slow TTL 10m",
    "RL.RESERVE acme /a TTL 10m COST 3",
    "SCRIPT LOAD return(7)",
];

/// Questions whose answers must be the same ever after.
const READS: [&str; 27] = [
    "DBSIZE",
    "GET renamed",
    "GET number",
    "GET raw",
    "PTTL brief",
    "HGETALL hash",
    "LRANGE list 0 -1",
    "SCARD set",
    "SISMEMBER set y",
    "SMEMBERS numbers",
    "ZRANGE sorted 0 -1 WITHSCORES",
    "EXISTS deleted text",
    "RL.LIMIT log 10 1h PEEK",
    "RL.LIMIT window 10 1h ALGORITHM sliding-window PEEK",
    "RL.LIMIT counter 10 1h ALGORITHM sliding-counter PEEK",
    "RL.LIMIT fixed 10 1h ALGORITHM fixed-window PEEK",
    "CL.THROTTLE throttle 14 30 60 0",
    "RL.CHECK acme /a PEEK",
    "RL.EXPLAIN acme /a",
    "RL.EXPLAIN acme /slow",
    "FCALL seven 0",
    "SELECT 4",
    "GET elsewhere",
    "SELECT 5",
    "GET after",
    "DBSIZE",
    "SELECT 0",
];

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("policies.yaml"), POLICY).expect("it is written");
        Self { folder }
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    fn flags(&self, more: &[&str]) -> Vec<String> {
        let (data, policies) = (self.data(), self.folder.path().join("policies.yaml"));
        let flags = ["--data-dir", text(&data), "--policies", text(&policies)];
        flags.iter().chain(more).map(|flag| (*flag).to_owned()).collect()
    }

    fn start_at(&self, more: &[&str], clock: Clock) -> Tollgate {
        let flags = self.flags(more);
        Tollgate::start_with(&flags.iter().map(String::as_str).collect::<Vec<_>>(), clock)
    }

    fn start(&self, more: &[&str]) -> Tollgate {
        self.start_at(more, Clock::manual(START))
    }

    fn program(&self, more: &[&str]) -> Program {
        let flags = self.flags(more);
        Program::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The files of one kind, by their numbers.
    fn files(&self, kind: &str) -> Vec<u64> {
        let names = fs::read_dir(self.data()).expect("a folder");
        let names = names.map(|entry| entry.expect("an entry").file_name());
        let mut numbers: Vec<u64> = names
            .filter_map(|name| {
                let name = name.into_string().expect("text");
                name.strip_prefix(kind)?.strip_prefix('-')?.strip_suffix(".tollgate")?.parse().ok()
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    fn file(&self, kind: &str, number: u64) -> std::path::PathBuf {
        self.data().join(format!("{kind}-{number}.tollgate"))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("its name is text")
}

fn write_all(tollgate: &Tollgate) {
    let mut connection = tollgate.connect();
    for request in WRITES {
        let reply = connection.line(request);
        assert!(!reply.starts_with('-'), "{request}: {reply}");
    }
    let code = b"#!lua name=lib\nredis.register_function('seven', function() return 7 end)";
    assert_eq!(connection.ask(&[b"FUNCTION", b"LOAD", code]), ["\"lib\""]);
}

fn read_all(tollgate: &Tollgate) -> Vec<String> {
    let mut connection = tollgate.connect();
    let reads = READS.map(|request| format!("{request}: {}", connection.line(request)));
    reads.to_vec()
}

/// What is asked with the name that the script was given.
fn asks_script(tollgate: &Tollgate, sha: &str) -> String {
    tollgate.connect().line(&format!("EVALSHA {} 0", sha.trim_matches('"')))
}

#[test]
fn everything_is_as_it_was_after_a_stop_and_a_start() {
    let modes: [&[&str]; 3] =
        [&[], &["--set", "store.journal=always"], &["--set", "store.journal=off"]];
    for mode in modes {
        let place = Place::new();
        let tollgate = place.start(mode);
        write_all(&tollgate);
        let before = read_all(&tollgate);
        let sha = tollgate.connect().line("SCRIPT LOAD return(7)");
        tollgate.stop();
        for round in 0..2 {
            let tollgate = place.start(mode);
            assert_eq!(asks_script(&tollgate, &sha), ":7", "{mode:?}");
            assert_eq!(read_all(&tollgate), before, "{mode:?}, round {round}");
            tollgate.stop();
        }
    }
}

#[test]
fn snapshot_begins_a_new_journal_and_both_together_are_everything() {
    let place = Place::new();
    let tollgate = place.start(&["--set", "store.snapshots_kept=1"]);
    tollgate.connect().line("SET early 1");
    assert_eq!(tollgate.connect().line("SAVE"), "+OK");
    assert_eq!((place.files("snapshot"), place.files("journal")), (vec![2], vec![2]));
    write_all(&tollgate);
    let before = read_all(&tollgate);
    tollgate.stop();
    let tollgate = place.start(&["--set", "store.snapshots_kept=1"]);
    assert_eq!(read_all(&tollgate), before);
    assert_eq!(tollgate.connect().line("GET early"), "\"1\"");
    assert_eq!(tollgate.connect().line("SAVE"), "+OK");
    assert_eq!((place.files("snapshot"), place.files("journal")), (vec![4], vec![4]));
    tollgate.stop();
    assert_eq!(read_all(&place.start(&[])), before);
}

#[test]
fn backup_is_a_file_of_its_own_that_a_new_folder_starts_from() {
    let place = Place::new();
    let tollgate = place.start(&[]);
    write_all(&tollgate);
    let before = read_all(&tollgate);
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("BGSAVE TO monday.tollgate"), "+OK");
    let again = connection.line("BGSAVE TO monday.tollgate");
    assert!(again.starts_with("-ERR nothing was saved: there is a file"), "{again}");
    for name in ["../x", ".x", "a/b", ""] {
        let refused = connection.ask(&[b"BGSAVE", b"TO", name.as_bytes()]).join("");
        assert!(refused.starts_with("-ERR name: expected letters"), "{name}: {refused}");
    }
    assert!(place.files("snapshot").is_empty());
    let other = Place::new();
    fs::create_dir(other.data()).expect("it is new");
    let backup = place.data().join("backups/monday.tollgate");
    fs::copy(backup, other.file("snapshot", 1)).expect("it is there");
    assert_eq!(read_all(&other.start(&[])), before);
}

#[test]
fn journal_torn_at_any_byte_of_its_last_frame_loses_that_alone() {
    let place = Place::new();
    let tollgate = place.start(&[]);
    tollgate.connect().line("SET first 1");
    tollgate.stop();
    let tollgate = place.start(&[]);
    tollgate.connect().line("SET second 2");
    tollgate.stop();
    let file = place.file("journal", 2);
    let whole = fs::read(&file).expect("it is there");
    // Behind the record of `second` is the frame that says that the server stopped in order.
    let end_bytes = 24 + 17;
    let record_bytes = 24 + 17 + 22 + "second".len() + 10;
    let begins = whole.len() - end_bytes - record_bytes;
    for length in [0, 1, 9, 10].into_iter().chain(begins..=whole.len()) {
        let torn = Place::new();
        fs::create_dir(torn.data()).expect("it is new");
        fs::copy(place.file("journal", 1), torn.file("journal", 1)).expect("it is there");
        fs::write(torn.file("journal", 2), &whole[..length]).expect("it is written");
        let tollgate = torn.start(&[]);
        let mut connection = tollgate.connect();
        assert_eq!(connection.line("GET first"), "\"1\"", "{length} bytes");
        let expected = if length < begins + record_bytes { "$-1" } else { "\"2\"" };
        assert_eq!(connection.line("GET second"), expected, "{length} bytes");
        // A frame that is whole is not torn: also where the tear is between two.
        let damage = connection.line("INFO tollgate");
        let is_whole = [0, 10, begins, begins + record_bytes, whole.len()].contains(&length);
        assert_eq!(damage.contains("damaged_bytes:0\\r"), is_whole, "{length}: {damage}");
    }
}

#[test]
fn earlier_snapshot_and_its_journals_stand_in_for_one_that_is_broken() {
    let place = Place::new();
    let tollgate = place.start(&[]);
    write_all(&tollgate);
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("SAVE"), "+OK");
    assert_eq!(connection.line("SET between 1"), "+OK");
    assert_eq!(connection.line("SAVE"), "+OK");
    let before = read_all(&tollgate);
    tollgate.stop();
    let newest = place.file("snapshot", 3);
    let mut bytes = fs::read(&newest).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, bytes).expect("it is written");
    let tollgate = place.start(&[]);
    assert_eq!(read_all(&tollgate), before);
    assert_eq!(tollgate.connect().line("GET between"), "\"1\"");
}

#[test]
fn folder_that_is_not_ours_is_refused_in_a_sentence_and_left_alone() {
    let refusals: [(&str, &[u8], i32, &str); 5] = [
        ("dump.rdb", b"REDIS0011", 2, "holds files of a Redis (dump.rdb)"),
        ("snapshot-1.tollgate", b"REDIS0011xxxxx", 2, "is a dump of Redis"),
        ("snapshot-1.tollgate", b"hello, world", 2, "is no file of Tollgate"),
        ("journal-1.tollgate", b"TOLLGATEJ\x63more", 2, "by a newer Tollgate (format 99"),
        ("journal-1.tollgate", b"TOLLGATES\x01", 2, "a snapshot under the name of a journal"),
    ];
    for (name, bytes, code, text) in refusals {
        let place = Place::new();
        fs::create_dir(place.data()).expect("it is new");
        fs::write(place.data().join(name), bytes).expect("it is written");
        let output = command(&["--port", "0", "--data-dir", self::text(&place.data())]).output();
        let output = output.expect("the program is built");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(text), "{told}");
        assert_eq!(fs::read(place.data().join(name)).expect("it is there"), bytes);
    }
}

#[test]
fn folder_of_a_running_server_is_refused_until_that_ends() {
    let place = Place::new();
    let program = place.program(&[]);
    let second = || command(&["--port", "0", "--data-dir", text(&place.data())]).output();
    let output = second().expect("the program is built");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let holder = format!("belongs to another running server (process {})", program.id());
    assert!(told.contains(&holder), "{told}");
    assert_eq!(program.end_by("KILL").code(), None);
    drop(place.program(&[]));
}

#[test]
fn clock_goes_on_where_it_stood_whatever_the_wall_says() {
    let hour = Duration::from_secs(3_600);
    let rows: [(Timestamp, &str); 3] = [
        // Set back: nothing opens, and nothing is closed for longer than its window.
        (START - hour, "*5 :1 :2 :0 :60000 :60000"),
        (START, "*5 :1 :2 :0 :60000 :60000"),
        // Ahead: the machine was off for so long, and the window has passed.
        (START + hour, "*5 :0 :2 :1 :-1 :60000"),
    ];
    for (start, expected) in rows {
        let place = Place::new();
        let tollgate = place.start(&[]);
        for _ in 0..2 {
            tollgate.connect().line("RL.LIMIT k 2 1m");
        }
        tollgate.stop();
        let clock = Clock::manual(start);
        let tollgate = place.start_at(&[], clock);
        assert_eq!(tollgate.connect().line("RL.LIMIT k 2 1m"), expected);
        tollgate.advance("60s");
        assert!(tollgate.connect().line("RL.LIMIT k 2 1m").starts_with("*5 :0"));
    }
}

#[test]
fn what_has_expired_meanwhile_is_not_there_again() {
    let place = Place::new();
    let tollgate = place.start(&[]);
    tollgate.connect().line("SET brief x PX 1000");
    tollgate.stop();
    let tollgate = place.start_at(&[], Clock::manual(START + Duration::from_secs(1)));
    assert_eq!(tollgate.connect().line("GET brief"), "$-1");
}

/// Admits as fast as it can for this long, and tells when each was admitted.
fn load(program: &Program, span: Duration, pace: &Clock) -> Vec<Timestamp> {
    let request = crate::resp::encode(&[b"RL.LIMIT", b"k", b"1000000000", b"1d"]).repeat(16);
    let mut connection = program.connect();
    let (began, mut admitted) = (pace.now(), Vec::new());
    while pace.now().since(began) < span {
        connection.send(&request);
        for _ in 0..16 {
            assert_eq!(connection.reply()[..2], ["*5", ":0"]);
        }
        admitted.extend([pace.now(); 16]);
    }
    admitted
}

/// What `rounds` crashes cost, in admissions forgotten each time.
fn crash(rounds: u64) {
    let place = Place::new();
    let pace = Clock::system();
    let mut counted = 0;
    for round in 0..rounds {
        let program = place.program(&[]);
        assert_eq!(used(&program), counted, "round {round}");
        let span = Duration::from_millis(300 + round * 7_919 % 1_300);
        let admitted = load(&program, span, &pace);
        let killed = pace.now();
        program.end_by("KILL");
        let program = place.program(&[]);
        let after = used(&program);
        let late = admitted.iter().filter(|at| killed.since(**at) < Duration::from_secs(1));
        let total = counted + admitted.len() as u64;
        assert!(after <= total, "round {round}: {after} of {total}");
        let lost = total - after;
        assert!(lost <= late.clone().count() as u64, "round {round}: {lost} of {}", late.count());
        counted = after;
        program.end_by("TERM");
    }
}

fn used(program: &Program) -> u64 {
    let reply = program.connect().line("RL.LIMIT k 1000000000 1d PEEK COST 0");
    let numbers: Vec<&str> = reply.split(" :").collect();
    1_000_000_000 - numbers[3].parse::<u64>().expect("what remains")
}

#[test]
fn crash_forgets_no_more_than_the_last_second() {
    crash(CRASHES);
}

#[test]
fn inspection_tells_what_a_file_holds_and_where_it_is_broken() {
    let place = Place::new();
    let tollgate = place.start(&[]);
    write_all(&tollgate);
    assert_eq!(tollgate.connect().line("SAVE"), "+OK");
    tollgate.stop();
    let snapshot = place.file("snapshot", 2);
    let look = |code: i32, expected: &[&str]| {
        let output = command(&["inspect", text(&snapshot)]).output().expect("it is built");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in expected {
            assert!(words.contains(part), "{part} in {shown}");
        }
    };
    look(0, &["kind snapshot", "db0 zset ", "policies tollgate-limit", "scripts ", "whole yes"]);
    let whole = fs::read(&snapshot).expect("it is there");
    fs::write(&snapshot, &whole[..whole.len() - 1]).expect("it is written");
    look(1, &["torn end", "ended in order no", "whole no"]);
    fs::write(&snapshot, b"REDIS0011").expect("it is written");
    look(2, &[]);
}

#[test]
fn reply_is_sent_when_the_disk_has_it_where_the_journal_is_always() {
    let place = Place::new();
    let always = ["--set", "store.journal=always"];
    let program = place.program(&always);
    let mut connections = [program.connect(), program.connect()];
    let mut last = 0;
    for round in 0..200 {
        last += 1;
        let reply = connections[round % 2].line("INCR n");
        assert_eq!(reply, format!(":{last}"));
    }
    program.end_by("KILL");
    let program = place.program(&always);
    assert_eq!(program.connect().line("GET n"), format!("\"{last}\""));
}

#[test]
fn snapshot_under_load_is_of_what_was_there() {
    let place = Place::new();
    let tollgate = place.start(&[]);
    let mut connection = tollgate.connect();
    for number in 0..2_000 {
        connection.send(&crate::resp::encode(&[b"SET", format!("k{number}").as_bytes(), b"0"]));
    }
    (0..2_000).for_each(|_| assert_eq!(connection.reply(), ["+OK"]));
    // Keys move, change and go while the snapshot is made.
    assert_eq!(connection.line("BGSAVE"), "+Background saving started");
    for number in 0..500 {
        let (old, new) = (format!("k{number}"), format!("moved{number}"));
        assert_eq!(connection.line(&format!("RENAME {old} {new}")), "+OK");
        assert_eq!(connection.line(&format!("INCR {new}")), ":1");
        assert_eq!(connection.line(&format!("DEL k{}", 1_999 - number)), ":1");
    }
    assert_eq!(connection.line("SAVE"), "+OK");
    assert_eq!(connection.line("DBSIZE"), ":1500");
    tollgate.stop();
    for number in place.files("journal") {
        // The snapshots alone must do.
        fs::remove_file(place.file("journal", number)).expect("it is there");
    }
    let tollgate = place.start(&[]);
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("DBSIZE"), ":1500");
    for number in 0..500 {
        assert_eq!(connection.line(&format!("GET moved{number}")), "\"1\"");
        assert_eq!(connection.line(&format!("EXISTS k{number}")), ":0");
    }
}

/// The files are what `write_all` left to `BGSAVE TO`, and what `read_all` was told then.
#[test]
fn file_of_the_first_format_is_still_read() {
    let place = Place::new();
    fs::create_dir(place.data()).expect("it is new");
    fs::copy("tests/it/store/format-1.tollgate", place.file("snapshot", 1)).expect("it is kept");
    let shown = read_all(&place.start(&[])).join("\n") + "\n";
    let expected = fs::read_to_string("tests/it/store/format-1.txt").expect("it is kept");
    assert_eq!(shown, expected);
}
