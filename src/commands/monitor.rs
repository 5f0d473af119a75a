//! MONITOR: every command that is carried out, shown to who asks for it.
//!
//! Administrative commands are not shown, nor are passwords. EXEC is shown behind the requests
//! that it carries out, and a script's commands as those of `lua`. Without a monitor a command
//! costs one look at a word.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use super::call::{Answer, Call};
use super::host::Host;
use super::push::Push;
use super::session::{Outcome, Session};
use super::slowlog::shown_word;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec};
use crate::protocol::{Args, Error, Reply};
use crate::time::Timestamp;

/// Connections that monitor: each is one more write for every command.
const MONITORS_MAX: usize = 64;

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "MONITOR",
    arity: Arity::exactly(1),
    keys: Keys::None,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE),
    group: Group::Server,
    since: "1.0.0",
    complexity: "O(1)",
    summary: "Show every command that is carried out from here on.",
    subcommands: &[],
    handler: Handler::Plain(monitor),
}];

#[derive(Debug, Default)]
pub(crate) struct Monitors {
    connections: RwLock<BTreeSet<u64>>,
    any: AtomicBool,
}

/// Whose doing a command is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    Client,
    Script,
}

impl Monitors {
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn add(&self, connection: u64) -> Result<(), Error> {
        let mut connections = self.connections.write();
        if connections.len() >= MONITORS_MAX {
            return Err(Error::text(format!("at most {MONITORS_MAX} connections can monitor")));
        }
        connections.insert(connection);
        self.any.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn remove(&self, connection: u64) {
        let mut connections = self.connections.write();
        connections.remove(&connection);
        self.any.store(!connections.is_empty(), Ordering::Relaxed);
    }

    /// Shows a command.
    #[cold]
    pub(super) fn show(
        &self,
        host: &dyn Host,
        (session, origin): (&Session, Origin),
        args: Args<'_>,
        now: Timestamp,
    ) {
        let who = match origin {
            Origin::Client => host.peer_address(session.id),
            Origin::Script => "lua".into(),
        };
        let push = Push::Monitored(line(&who, session.db, args, now).into());
        for connection in &*self.connections.read() {
            host.push(*connection, push.clone());
        }
    }
}

fn line(who: &str, db: usize, args: Args<'_>, now: Timestamp) -> Vec<u8> {
    let (seconds, us) = (now.as_micros() / 1_000_000, now.as_micros() % 1_000_000);
    let mut line = format!("{seconds}.{us:06} [{db} {who}]").into_bytes();
    for place in 0..args.len() {
        line.push(b' ');
        quote(shown_word(args, place), &mut line);
    }
    line
}

/// In quotes, with what cannot be printed escaped.
fn quote(word: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    for byte in word {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0x07 => line.extend_from_slice(b"\\a"),
            0x08 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(*byte),
            other => line.extend_from_slice(format!("\\x{other:02x}").as_bytes()),
        }
    }
    line.push(b'"');
}

/// Who monitors already is told nothing, as in Redis.
fn monitor(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    if call.is_within {
        return Err(Error::text("MONITOR isn't allowed for DENY BLOCKING client"));
    }
    if call.session.monitors {
        return Ok(Outcome::Silent);
    }
    call.service.monitors().add(call.session.id)?;
    call.session.monitors = true;
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OwnedArgs;

    #[test]
    fn words_are_quoted_so_that_each_line_is_one() {
        let args = OwnedArgs::of([&b"SET"[..], b"k", b"\"a\\\n\r\t\x07\x08\x01\xff"]);
        let now = Timestamp::from_micros(1_500_000_000_000_007);
        let line = line("127.0.0.1:5", 3, args.as_args(), now);
        let expected = r#"1500000000.000007 [3 127.0.0.1:5] "SET" "k" "\"a\\\n\r\t\a\b\x01\xff""#;
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }
}
