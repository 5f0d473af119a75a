//! CLIENT LIST and CLIENT INFO: one line for each connection, with the fields of Redis.
//!
//! A connection of ours owns no buffer while it is idle, so the buffer sizes that Redis shows
//! beside what lies in them are zero.

use std::io::Write;

use super::call::{Answer, Call};
use super::client_tracking::redirected_to;
use super::host::Peer;
use super::session::Outcome;
use super::table::Table;
use super::tracking::{Mode, Tracker};
use crate::protocol::{Args, Error, Reply, Resp, parse_i64};

/// The kinds of connections that Redis tells apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Normal,
    Master,
    Replica,
    Pubsub,
}

impl Kind {
    pub(super) fn parse(word: &[u8]) -> Result<Self, Error> {
        match word.to_ascii_uppercase().as_slice() {
            b"NORMAL" => Ok(Self::Normal),
            b"MASTER" => Ok(Self::Master),
            b"REPLICA" | b"SLAVE" => Ok(Self::Replica),
            b"PUBSUB" => Ok(Self::Pubsub),
            _ => Err(Error::quoting("Unknown client type", word)),
        }
    }

    /// There is no replication.
    pub(super) fn of(peer: &Peer) -> Self {
        if peer.session.subscriptions() > 0 { Self::Pubsub } else { Self::Normal }
    }
}

/// Every connection; of the one that asks, what it knows of itself is newer.
pub(super) fn peers(call: &Call<'_, '_>) -> Vec<Peer> {
    let mut peers = call.host.peers();
    if let Some(this) = peers.iter_mut().find(|peer| peer.session.id == call.session.id) {
        update(this, call);
    }
    peers
}

/// In Redis's eyes a request lies in its buffer until it is answered.
fn update(this: &mut Peer, call: &Call<'_, '_>) {
    this.session = call.session.clone();
    this.input_bytes += wire_bytes(call.args);
}

/// What a request takes as an array of bulk strings.
fn wire_bytes(args: Args<'_>) -> usize {
    let head = |number: usize| "*\r\n".len() + 1 + number.checked_ilog10().unwrap_or(0) as usize;
    let words = args.iter().map(|word| head(word.len()) + word.len() + "\r\n".len());
    head(args.len()) + words.sum::<usize>()
}

/// CLIENT INFO
pub(super) fn this(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let mut lines = Vec::new();
    if let Some(mut peer) = call.host.peer(call.session.id) {
        update(&mut peer, call);
        line(&peer, call.service.table(), &mut lines);
    }
    reply.verbatim(&lines);
    Ok(Outcome::Reply)
}

/// CLIENT LIST [TYPE kind | ID id [id ...]]
pub(super) fn list(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let choice = Choice::parse(call.args.skip(2))?;
    let peers = peers(call);
    let mut lines = Vec::new();
    let mut show = |peer: &Peer| line(peer, call.service.table(), &mut lines);
    match choice {
        Choice::All => peers.iter().for_each(show),
        Choice::Of(kind) => peers.iter().filter(|peer| Kind::of(peer) == kind).for_each(show),
        Choice::Named(ids) => {
            for id in ids {
                peers.iter().filter(|peer| peer.session.id as i64 == id).for_each(&mut show);
            }
        }
    }
    reply.verbatim(&lines);
    Ok(Outcome::Reply)
}

enum Choice {
    All,
    Of(Kind),
    Named(Vec<i64>),
}

impl Choice {
    fn parse(args: Args<'_>) -> Result<Self, Error> {
        let Some(word) = args.get(0) else { return Ok(Self::All) };
        match (word.to_ascii_uppercase().as_slice(), args.get(1), args.len()) {
            (b"TYPE", Some(kind), 2) => Ok(Self::Of(Kind::parse(kind)?)),
            (b"ID", Some(_), _) => {
                let ids = args.skip(1).iter().map(parse_i64).collect::<Option<Vec<i64>>>();
                Ok(Self::Named(ids.ok_or_else(|| Error::text("Invalid client ID"))?))
            }
            _ => Err(Error::Syntax),
        }
    }
}

fn line(peer: &Peer, table: &Table, out: &mut Vec<u8>) {
    let session = &peer.session;
    let command = table.entry(session.last_command).map_or("NULL", |entry| &entry.name);
    let events = if peer.output_bytes > 0 { "rw" } else { "r" };
    let resp = match session.resp {
        Resp::V2 => 2,
        Resp::V3 => 3,
    };
    let (id, address, local) = (session.id, &peer.address, &peer.local_address);
    let (name, user, fd) = (Bytes(&session.name), session.user(), peer.fd);
    let (age, idle, db) = (peer.age_s, peer.idle_s, session.db);
    let (input, output) = (peer.input_bytes, peer.output_bytes);
    let (queued, queued_bytes) = session.transaction.queued().unzip();
    let multi = queued.map_or(-1, |queued| queued as i64);
    let queued_bytes = queued_bytes.unwrap_or(0);
    let total = size_of::<Peer>() + input + output + queued_bytes;
    let flags = flags(peer);
    let [channels, patterns, shards] = session.subscribed;
    let redirection = redirected_to(session.tracking.as_deref());
    writeln!(
        out,
        "id={id} addr={address} laddr={local} fd={fd} name={name} age={age} idle={idle} \
         flags={flags} db={db} sub={channels} psub={patterns} ssub={shards} multi={multi} \
         qbuf={input} qbuf-free=0 argv-mem=0 multi-mem={queued_bytes} rbs=0 rbp=0 obl={output} \
         oll=0 omem={output} tot-mem={total} events={events} cmd={command} user={user} \
         redir={redirection} resp={resp} lib-name={} lib-ver={}",
        Bytes(&session.library_name),
        Bytes(&session.library_version),
    )
    .expect("a Vec takes all that is written");
}

fn flags(peer: &Peer) -> String {
    let session = &peer.session;
    let tracker = session.tracking.as_deref();
    let set = [
        (session.monitors, 'O'),
        (session.subscriptions() > 0, 'P'),
        (session.transaction.is_open(), 'x'),
        (session.wait().is_some(), 'b'),
        (tracker.is_some(), 't'),
        (tracker.is_some_and(Tracker::is_broken), 'R'),
        (tracker.is_some_and(|tracker| tracker.mode == Mode::Broadcast), 'B'),
        (session.no_evict, 'e'),
        (session.no_touch, 'T'),
    ];
    let letters: String = set.into_iter().filter(|(is, _)| *is).map(|(_, letter)| letter).collect();
    if letters.is_empty() { "N".into() } else { letters }
}

/// Names are printable ASCII: `checked_name` saw to it.
struct Bytes<'a>(&'a [u8]);

impl std::fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}
