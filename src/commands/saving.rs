//! SAVE, BGSAVE, LASTSAVE and BGREWRITEAOF: snapshots, made by the store.
//!
//! A snapshot ends the journal before it, so rewriting the journal is the same as saving. SAVE
//! waits for its end while others are served. `BGSAVE TO name` makes a file of its own in the
//! folder of backups, leaves everything else as it is, and waits as well: who makes a backup
//! wants to know when it can be fetched. SAVE itself takes no word, as in Redis. The name is only
//! a name: where files are written is the operator's to say, and never a client's.

use super::call::{Answer, Call};
use super::kept::{SaveOrder, SaveRefusal};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Plain, Spec};
use super::waiting::{self, Patience};
use crate::protocol::{Error, Reply};

const fn spec(
    name: &'static str,
    arity: Arity,
    flags: Flags,
    since: &'static str,
    handler: Plain,
) -> Spec {
    let row = Spec::of(Group::Server, name, arity, Keys::None, flags);
    Spec { since, handler: Handler::Plain(handler), ..row }
}

/// Bytes of a backup's name: more is no name of a file.
const NAME_BYTES_MAX: usize = 200;

const SAVING: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_ASYNC_LOADING);
const QUICK: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);

pub(super) const SPECS: &[Spec] = &[
    Spec {
        summary: "Begin a new journal behind a new snapshot.",
        ..spec("BGREWRITEAOF", Arity::exactly(1), SAVING, "1.0.0", rewrite)
    },
    Spec {
        summary: "Make a snapshot in the background, or a backup under a name.",
        ..spec("BGSAVE", Arity::at_least(1), SAVING, "1.0.0", background_save)
    },
    Spec {
        summary: "Return when data was saved last: the start, where nothing is saved.",
        ..spec("LASTSAVE", Arity::exactly(1), QUICK, "1.0.0", last_save)
    },
    Spec {
        summary: "Make a snapshot and wait for it.",
        ..spec("SAVE", Arity::exactly(1), SAVING.and(Flags::NO_MULTI), "1.0.0", save)
    },
];

fn save(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    Ok(wait_for(call, SaveOrder::Now, reply))
}

/// Answers when the order is carried out.
fn wait_for(call: &mut Call<'_, '_>, order: SaveOrder, reply: &Reply<'_>) -> Outcome {
    let (outcome, wait) =
        waiting::begin_for_word(call.service, call.session, (reply.resp(), Patience::Forever));
    let answer = move |result: Result<(), SaveRefusal>| {
        wait.tell(result.map_err(|refusal| Error::text(refusal.to_string())));
    };
    call.host.save(call.session.id, order, Box::new(answer));
    outcome
}

/// A name that is one part of a path, and no hidden one.
fn backup_name(name: &[u8]) -> Result<String, Error> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let is_name = !name.is_empty() && !name.starts_with(b".") && name.len() <= NAME_BYTES_MAX;
    match std::str::from_utf8(name) {
        Ok(text) if is_name && name.iter().all(is_plain) => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err(Error::argument(
            "name",
            "expected letters, digits, `-`, `_` and `.`; the folder is store.backup_path",
        )),
    }
}

/// `BGSAVE [SCHEDULE | TO name]`
fn background_save(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let order = match (call.args.get(1), call.args.get(2), call.args.len()) {
        (None, ..) => SaveOrder::Background,
        (Some(word), None, _) if word.eq_ignore_ascii_case(b"SCHEDULE") => SaveOrder::Background,
        (Some(word), Some(name), 3) if word.eq_ignore_ascii_case(b"TO") => {
            let backup = SaveOrder::Backup(backup_name(name)?);
            // Nothing waits within a transaction.
            if !call.is_within {
                return Ok(wait_for(call, backup, reply));
            }
            backup
        }
        (Some(_), ..) => return Err(Error::Syntax),
    };
    begin(call, order)?;
    reply.simple("Background saving started");
    Ok(Outcome::Reply)
}

fn rewrite(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    begin(call, SaveOrder::Background)?;
    reply.simple("Background append only file rewriting started");
    Ok(Outcome::Reply)
}

/// What comes of it, INFO and the log tell.
fn begin(call: &Call<'_, '_>, order: SaveOrder) -> Result<(), Error> {
    let refused = |refusal: SaveRefusal| Error::text(refusal.to_string());
    let facts = call.host.store().ok_or_else(|| refused(SaveRefusal::NoFolder))?;
    if facts.saving_since.is_some() {
        return Err(refused(SaveRefusal::Saving));
    }
    call.host.save(call.session.id, order, Box::new(drop));
    Ok(())
}

fn last_save(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let saved_at = call.host.store().map(|facts| facts.saved_at);
    let saved_at = saved_at.unwrap_or_else(|| call.service.started());
    reply.integer((saved_at.as_millis() / 1_000) as i64);
    Ok(Outcome::Reply)
}
