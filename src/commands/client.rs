//! CLIENT: what connections are called, what they want, who they are, and how to end them.

use super::call::{Answer, Call};
use super::policed::tier;
use super::session::{Outcome, Replies};
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use super::waiting::Unserved;
use super::{client_kill, client_list, client_tracking, command, pause};
use crate::protocol::{Error, Reply, parse_i64};

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "CLIENT",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::SLOW),
    group: Group::Connection,
    since: "2.4.0",
    complexity: "O(n) in the connections that are looked at",
    summary: "Name, list, adjust and end connections.",
    subcommands: &[
        Sub::plain(
            "CACHING",
            Arity::exactly(3),
            "Track the next command's keys.",
            client_tracking::caching,
        ),
        Sub::plain("GETNAME", Arity::exactly(2), "Return the connection's name.", name),
        Sub::plain(
            "GETREDIR",
            Arity::exactly(2),
            "Return where invalidations go.",
            client_tracking::redirection,
        ),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", command::help),
        Sub::plain("ID", Arity::exactly(2), "Return the connection's number.", id),
        Sub::plain("INFO", Arity::exactly(2), "Describe this connection.", client_list::this),
        Sub::plain("KILL", Arity::at_least(3), "End connections.", client_kill::kill),
        Sub::plain("LIST", Arity::at_least(2), "Describe connections.", client_list::list),
        Sub::plain("NO-EVICT", Arity::exactly(3), "Spare this connection (ON|OFF).", no_evict),
        Sub::plain("NO-TOUCH", Arity::exactly(3), "Leave no trace on keys (ON|OFF).", no_touch),
        Sub::plain("PAUSE", Arity::at_least(3), "Hold commands (WRITE|ALL).", pause::pause),
        Sub::plain("REPLY", Arity::exactly(3), "Send replies, or none (ON|OFF|SKIP).", replies),
        Sub::plain(
            "SETINFO",
            Arity::exactly(4),
            "Tell the library or the tier (LIB-NAME|LIB-VER|TIER).",
            set_info,
        ),
        Sub::plain("SETNAME", Arity::exactly(3), "Name this connection.", set_name),
        Sub {
            keys: Keys::All,
            ..Sub::plain(
                "TRACKING",
                Arity::at_least(3),
                "Track keys that are read (ON|OFF).",
                client_tracking::tracking,
            )
        },
        Sub::plain(
            "TRACKINGINFO",
            Arity::exactly(2),
            "Describe the tracking.",
            client_tracking::tracking_info,
        ),
        Sub::plain("UNBLOCK", Arity::at_least(3), "End the wait of a connection.", unblock),
        Sub::plain("UNPAUSE", Arity::exactly(2), "End a pause of all connections.", pause::unpause),
    ],
    handler: Handler::Parent,
}];

/// A connection's name: printable, without blanks, so that CLIENT LIST stays one line each.
pub(super) fn checked_name(name: &[u8]) -> Result<&[u8], Error> {
    if is_one_word(name) {
        return Ok(name);
    }
    Err(Error::text("Client names cannot contain spaces, newlines or special characters."))
}

fn is_one_word(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn word<'c>(call: &Call<'c, '_>, place: usize) -> &'c [u8] {
    call.args.get(place).unwrap_or_default()
}

fn on_or_off(word: &[u8]) -> Result<bool, Error> {
    match word.to_ascii_uppercase().as_slice() {
        b"ON" => Ok(true),
        b"OFF" => Ok(false),
        _ => Err(Error::Syntax),
    }
}

fn id(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.integer(call.session.id as i64);
    Ok(Outcome::Reply)
}

fn name(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    match &*call.session.name {
        [] => reply.null(),
        name => reply.bulk(name),
    }
    Ok(Outcome::Reply)
}

fn set_name(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.session.name = checked_name(word(call, 2))?.into();
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

/// CLIENT SETINFO LIB-NAME name | LIB-VER version | TIER t
fn set_info(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let (attribute, value) = (word(call, 2), word(call, 3));
    if attribute.eq_ignore_ascii_case(b"TIER") {
        call.session.tier = Some(tier(value)?);
        reply.ok();
        return Ok(Outcome::Reply);
    }
    let (field, shown) = match attribute.to_ascii_uppercase().as_slice() {
        b"LIB-NAME" => (&mut call.session.library_name, "lib-name"),
        b"LIB-VER" => (&mut call.session.library_version, "lib-ver"),
        _ => return Err(Error::quoting("Unrecognized option", attribute)),
    };
    if !is_one_word(value) {
        return Err(Error::text(format!(
            "{shown} cannot contain spaces, newlines or special characters."
        )));
    }
    *field = value.into();
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

/// Connections are never closed to free memory, so there is nothing to be spared from; the wish
/// is kept for CLIENT LIST.
fn no_evict(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.session.no_evict = on_or_off(word(call, 2))?;
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

fn no_touch(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.session.no_touch = on_or_off(word(call, 2))?;
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

fn replies(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    match word(call, 2).to_ascii_uppercase().as_slice() {
        b"ON" => {
            call.session.replies = Replies::On;
            reply.ok();
            Ok(Outcome::Reply)
        }
        b"OFF" => {
            call.session.replies = Replies::Off;
            Ok(Outcome::Silent)
        }
        b"SKIP" => {
            if call.session.replies != Replies::Off {
                call.session.replies = Replies::SkipNext;
            }
            Ok(Outcome::Silent)
        }
        _ => Err(Error::Syntax),
    }
}

/// CLIENT UNBLOCK id [TIMEOUT|ERROR]
fn unblock(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let reason = call.args.get(3).map(<[u8]>::to_ascii_uppercase);
    let why = match (reason.as_deref(), call.args.len()) {
        (None | Some(b"TIMEOUT"), 3 | 4) => Unserved::TimedOut,
        (Some(b"ERROR"), 4) => Unserved::Unblocked,
        (Some(_), 4) => {
            return Err(Error::text("CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        _ => return Err(Error::subcommand_or_arity("CLIENT", word(call, 1))),
    };
    let id = parse_i64(word(call, 2)).ok_or(Error::NotInteger)?;
    let wait = u64::try_from(id).ok().and_then(|id| call.service.waits().get(&id));
    let ended = wait.is_some_and(|wait| wait.end(why));
    if ended {
        call.host.wake(id as u64);
    }
    reply.integer(ended.into());
    Ok(Outcome::Reply)
}
