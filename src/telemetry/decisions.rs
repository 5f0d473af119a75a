//! The decision log: a line of JSON for each decision of the sample, to a file or stdout.
//!
//! A thread of its own writes, so that a slow disk holds up nobody; what it cannot write is
//! counted. Whatever waits is written before it is flushed, and it is flushed whenever nothing
//! waits. Keys are told by their hash under a secret that is drawn at the start: equal keys can
//! be seen to be equal, until the next start, and no key can be found by guessing.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use serde::Serialize;
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::commands::{Next, Noted, NotedLines};
use crate::time::Timestamp;

/// Bytes of a key's hash in a line: enough that two keys are not taken for one.
const HASH_BYTES: usize = 8;

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct DecisionWriter(JoinHandle<()>);

impl DecisionWriter {
    /// Begins to write, behind what the file holds; without a path to stdout.
    pub(crate) fn start(
        lines: NotedLines,
        path: Option<&Path>,
        secret: [u8; 32],
    ) -> io::Result<Self> {
        let to: Box<dyn Write + Send> = match path {
            Some(path) => Box::new(OpenOptions::new().create(true).append(true).open(path)?),
            None => Box::new(io::stdout()),
        };
        let thread = std::thread::Builder::new().name("decisions".into());
        thread.spawn(move || write_all(&lines, BufWriter::new(to), secret)).map(Self)
    }

    /// Waits until all is written that was noted before the log was ended.
    pub(crate) fn join(self) {
        if self.0.join().is_err() {
            warn!("the decision log did not stop as it should");
        }
    }
}

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    tenant: &'a str,
    rule: &'a str,
    outcome: &'static str,
    reason: &'static str,
    limit: i64,
    remaining: i64,
    key_hash: String,
}

fn write_all(lines: &NotedLines, mut to: impl Write, secret: [u8; 32]) {
    let mut told = false;
    while let Some(first) = lines.next() {
        let mut count = 0;
        let mut next = Next::Line(first);
        let mut written = Ok(());
        while let Next::Line(noted) = next {
            count += 1;
            written = written.and_then(|()| write_line(&mut to, &noted, secret));
            next = lines.next_now();
        }
        let written = written.and_then(|()| to.flush());
        let counter = match written {
            Ok(()) => &lines.counts.written,
            Err(_) => &lines.counts.unwritten,
        };
        counter.fetch_add(count, Ordering::Relaxed);
        if let (Err(error), false) = (&written, told) {
            warn!(%error, "the decision log could not be written");
        }
        told = written.is_err();
        if matches!(next, Next::End) {
            return;
        }
    }
}

fn write_line(to: &mut impl Write, noted: &Noted, secret: [u8; 32]) -> io::Result<()> {
    let line = Line {
        time: told(noted.at),
        tenant: &String::from_utf8_lossy(&noted.tenant),
        rule: &String::from_utf8_lossy(&noted.rule),
        outcome: if noted.allowed { "allowed" } else { "denied" },
        reason: noted.reason,
        limit: noted.limit,
        remaining: noted.remaining,
        key_hash: hashed(&noted.key, secret),
    };
    let mut text = serde_json::to_vec(&line).expect("numbers and text");
    text.push(b'\n');
    to.write_all(&text)
}

fn told(at: Timestamp) -> String {
    i64::try_from(at.as_micros())
        .ok()
        .and_then(|micros| jiff::Timestamp::from_microsecond(micros).ok())
        .map_or_else(String::new, |at| at.to_string())
}

fn hashed(key: &[u8], secret: [u8; 32]) -> String {
    let digest = Sha256::new().chain_update(secret).chain_update(key).finalize();
    let (head, _) = digest.split_first_chunk::<HASH_BYTES>().expect("it has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Decided, DecisionLog, DecisionLogOptions};

    const SECRET: [u8; 32] = [7; 32];

    fn log() -> (DecisionLog, NotedLines) {
        let (log, lines) = DecisionLog::new(&DecisionLogOptions::everything());
        (log, lines.expect("it is on"))
    }

    fn note(log: &DecisionLog, key: &[u8], allowed: bool) {
        let decided = Decided {
            tenant: b"ac\"me",
            rule: b"log\xffin",
            key,
            allowed,
            reason: "limit",
            limit: 10,
            remaining: -1,
        };
        log.note(&decided, Timestamp::from_micros(1_700_000_000_123_456));
    }

    #[test]
    fn decision_is_one_object_a_line_without_its_key() {
        let (log, lines) = log();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("decisions.json");
        let writer = DecisionWriter::start(lines, Some(&path), SECRET).expect("it can be made");
        for (key, allowed) in [(b"u42", false), (b"u42", true), (b"u43", true)] {
            note(&log, key, allowed);
        }
        log.end();
        writer.join();
        let text = std::fs::read_to_string(&path).expect("text");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[0]["time"], "2023-11-14T22:13:20.123456Z");
        assert_eq!(lines[0]["tenant"], "ac\"me");
        assert_eq!(lines[0]["rule"], "log\u{fffd}in");
        assert_eq!(
            (&lines[0]["outcome"], &lines[1]["outcome"]),
            (&"denied".into(), &"allowed".into())
        );
        assert_eq!((&lines[0]["limit"], &lines[0]["remaining"]), (&10.into(), &(-1).into()));
        assert_eq!(lines[0]["key_hash"], lines[1]["key_hash"]);
        assert_ne!(lines[0]["key_hash"], lines[2]["key_hash"]);
        assert_eq!(lines[0]["key_hash"].as_str().map(str::len), Some(2 * HASH_BYTES));
        assert!(!text.contains("u42"), "{text}");
        assert_eq!(log.counts().written.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn same_key_hashes_otherwise_under_another_secret() {
        assert_ne!(hashed(b"u42", SECRET), hashed(b"u42", [8; 32]));
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_the_log_goes_on() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (log, lines) = log();
        for _ in 0..3 {
            note(&log, b"k", true);
        }
        log.end();
        write_all(&lines, Full, SECRET);
        assert_eq!(log.counts().unwritten.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn log_that_goes_without_an_end_ends_its_writer() {
        let (log, lines) = log();
        note(&log, b"k", true);
        drop(log);
        let mut text = Vec::new();
        write_all(&lines, &mut text, SECRET);
        assert!(text.ends_with(b"}\n"));
    }
}
