//! SLOWLOG: the latest commands that took longer than the threshold.
//!
//! A command is kept with its words, but a password among them never is: as in Redis,
//! `(redacted)` stands in its place.

use std::collections::VecDeque;

use super::call::Call;
use super::config_command;
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use crate::protocol::{Args, Error, Reply, parse_i64};
use crate::time::{Duration, Timestamp};

/// Words kept of one command, and bytes of each: as Redis keeps them.
const WORDS_MAX: usize = 32;
const WORD_BYTES_MAX: usize = 128;

/// What stands for a password and its user.
const REDACTED: &[u8] = b"(redacted)";

/// What SLOWLOG GET shows where no number is given.
const SHOWN_DEFAULT: i64 = 10;

#[derive(Debug, Default)]
pub(super) struct SlowLog {
    next_id: i64,
    /// Newest first.
    entries: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: i64,
    began: Timestamp,
    took: Duration,
    words: Vec<Box<[u8]>>,
    address: String,
    client_name: Box<[u8]>,
}

impl SlowLog {
    pub(super) fn add(
        &mut self,
        args: Args<'_>,
        (began, took): (Timestamp, Duration),
        (address, client_name): (String, &[u8]),
        entries_max: usize,
    ) {
        let entry = Entry {
            id: self.next_id,
            began,
            took,
            words: kept_words(args),
            address,
            client_name: client_name.into(),
        };
        self.next_id += 1;
        self.entries.push_front(entry);
        self.entries.truncate(entries_max);
    }
}

fn kept_words(args: Args<'_>) -> Vec<Box<[u8]>> {
    let kept = if args.len() > WORDS_MAX { WORDS_MAX - 1 } else { args.len() };
    let mut words: Vec<Box<[u8]>> =
        (0..kept).map(|place| shown_word(args, place)).map(kept_word).collect();
    if args.len() > kept {
        words.push(format!("... ({} more arguments)", args.len() - kept).into_bytes().into());
    }
    words
}

/// The word at this place, unless nobody is to see it.
pub(super) fn shown_word(args: Args<'_>, place: usize) -> &[u8] {
    if is_secret(args, place) { REDACTED } else { word(args, place) }
}

fn word(args: Args<'_>, place: usize) -> &[u8] {
    args.get(place).unwrap_or_default()
}

/// Whether AUTH, HELLO or CONFIG SET takes the word at this place for a secret; rather a word
/// too many than one too few, where a request is wrong.
fn is_secret(args: Args<'_>, place: usize) -> bool {
    let is = |at: usize, name: &str| word(args, at).eq_ignore_ascii_case(name.as_bytes());
    if is(0, "AUTH") {
        return place >= 1;
    }
    if is(0, "HELLO") {
        return place >= 3 && (is(place - 1, "AUTH") || place >= 4 && is(place - 2, "AUTH"));
    }
    let is_value = place >= 3 && place % 2 == 1;
    is_value && is(0, "CONFIG") && is(1, "SET") && config_command::is_secret(word(args, place - 1))
}

fn kept_word(word: &[u8]) -> Box<[u8]> {
    match word.get(WORD_BYTES_MAX..) {
        None | Some([]) => word.into(),
        Some(rest) => {
            let mut kept = word[..WORD_BYTES_MAX].to_vec();
            kept.extend_from_slice(format!("... ({} more bytes)", rest.len()).as_bytes());
            kept.into()
        }
    }
}

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "SLOWLOG",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE),
    group: Group::Server,
    since: "2.2.12",
    complexity: "O(n) in the entries shown",
    summary: "Show the commands that took longest.",
    subcommands: &[
        Sub::plain("GET", Arity::at_least(2), "Return the latest entries.", get),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", super::command::help),
        Sub::plain("LEN", Arity::exactly(2), "Return the number of entries.", len),
        Sub::plain("RESET", Arity::exactly(2), "Forget all entries.", reset),
    ],
    handler: Handler::Parent,
}];

fn get(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    if call.args.len() > 3 {
        return Err(Error::subcommand_or_arity("SLOWLOG", call.args.get(1).unwrap_or_default()));
    }
    let shown = match call.args.get(2) {
        Some(word) => parse_i64(word)
            .filter(|shown| *shown >= -1)
            .ok_or_else(|| Error::text("count should be greater than or equal to -1"))?,
        None => SHOWN_DEFAULT,
    };
    let log = call.service.slowlog().lock();
    let shown = usize::try_from(shown).unwrap_or(usize::MAX).min(log.entries.len());
    reply.array(shown);
    for entry in log.entries.iter().take(shown) {
        reply.array(6);
        reply.integer(entry.id);
        reply.integer((entry.began.as_millis() / 1_000) as i64);
        reply.integer(entry.took.as_micros() as i64);
        reply.array(entry.words.len());
        for word in &entry.words {
            reply.bulk(word);
        }
        reply.bulk(entry.address.as_bytes());
        reply.bulk(&entry.client_name);
    }
    Ok(Outcome::Reply)
}

fn len(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    reply.integer(call.service.slowlog().lock().entries.len() as i64);
    Ok(Outcome::Reply)
}

fn reset(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    call.service.slowlog().lock().entries.clear();
    reply.simple("OK");
    Ok(Outcome::Reply)
}
