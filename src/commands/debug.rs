//! DEBUG: what test harnesses ask of a server, for those whom the setting `server.debug` lets.
//!
//! Redis lists no subcommands of it, so they are read here. Its many others look into parts that
//! are not there.

use std::sync::atomic::Ordering;

use super::call::{Answer, Call};
use super::parameters::Place;
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec};
use crate::protocol::{Error, Reply};
use crate::size::Bytes;
use crate::time::Duration;

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "DEBUG",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE).and(Flags::SLOW),
    group: Group::Server,
    since: "1.0.0",
    complexity: "O(1)",
    summary: "Hold up a thread, stop the sweep, and the like, for tests.",
    subcommands: &[],
    handler: Handler::Plain(debug),
}];

/// The longest that a client may hold up a thread, and the others that it serves.
const SLEEP_S_MAX: u32 = 60;

const HELP: [&str; 11] = [
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ERROR <text>",
    "    Return the text as an error.",
    "QUICKLIST-PACKED-THRESHOLD <bytes>",
    "    Taken, without effect: elements of any size are kept alike.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether expired keys are looked for.",
    "SLEEP <seconds>",
    "    Hold up the thread of this connection; decimals are allowed.",
    "HELP",
    "    Return this text.",
];

fn debug(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    if !is_allowed(call) {
        return Err(Error::DebugRefused);
    }
    let name = call.args.get(1).unwrap_or_default();
    let argument = call.args.get(2);
    match (name.to_ascii_uppercase().as_slice(), argument, call.args.len()) {
        (b"ERROR", Some(text), 3) => return Err(Error::raw(text)),
        (b"HELP", None, _) => {
            reply.array(HELP.len());
            for line in HELP {
                reply.simple(line);
            }
            return Ok(Outcome::Reply);
        }
        (b"QUICKLIST-PACKED-THRESHOLD", Some(bytes), 3) => check_threshold(bytes)?,
        (b"SET-ACTIVE-EXPIRE", Some(word), 3) => {
            // Whatever is no number is 0, as in Redis.
            let sweeps = number(word).is_some_and(|number| number.trunc() != 0.0);
            call.service.runtime().sweeps.store(sweeps, Ordering::Relaxed);
        }
        (b"SLEEP", Some(seconds), 3) => call.host.hold(sleep(seconds)?),
        _ => return Err(Error::subcommand_or_arity("DEBUG", name)),
    }
    reply.ok();
    Ok(Outcome::Reply)
}

fn is_allowed(call: &Call<'_, '_>) -> bool {
    let place = Place { service: call.service, host: call.host };
    match place.setting("server.debug").as_str() {
        "everyone" => true,
        "local" => call.host.is_local(call.session.id),
        _ => false,
    }
}

fn number(word: &[u8]) -> Option<f64> {
    str::from_utf8(word).ok()?.parse().ok()
}

/// What is no number, or none above 0, is no time at all.
fn sleep(word: &[u8]) -> Result<Duration, Error> {
    let seconds = number(word).unwrap_or(0.0).max(0.0);
    if seconds > f64::from(SLEEP_S_MAX) {
        return Err(Error::text(format!("DEBUG SLEEP: at most {SLEEP_S_MAX} seconds")));
    }
    Ok(Duration::from_micros((seconds * 1e6) as u64))
}

fn check_threshold(word: &[u8]) -> Result<(), Error> {
    let bytes = str::from_utf8(word).ok().and_then(|text| text.parse::<Bytes>().ok());
    match bytes.map(Bytes::as_u64) {
        Some(0..0x1_0000_0000) => Ok(()),
        Some(_) | None => {
            Err(Error::text("argument must be a memory value bigger than 1 and smaller than 4gb"))
        }
    }
}
