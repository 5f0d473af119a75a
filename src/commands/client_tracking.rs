//! CLIENT TRACKING and its companions: how a connection wants to hear that what it read has
//! changed.

use std::sync::Arc;

use super::call::{Answer, Call};
use super::session::Outcome;
use super::tracking::{Mode, Tracker};
use crate::protocol::{Args, Error, Reply, parse_i64};

/// Prefixes of one connection: each is compared with each other one.
const PREFIXES_MAX: usize = 1_024;

/// What Redis tells of a connection that does not track, and of one that is told itself.
const NOT_TRACKING: i64 = -1;
const NOT_REDIRECTED: i64 = 0;

/// `CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`
pub(super) fn tracking(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let asked = Asked::read(call)?;
    let on = call.args.get(2).unwrap_or_default();
    if on.eq_ignore_ascii_case(b"ON") {
        let tracker = Arc::new(asked.tracker(call.session.tracking.as_deref())?);
        call.service.tracking().begin(call.session.id, &tracker);
        call.session.tracking = Some(tracker);
    } else if on.eq_ignore_ascii_case(b"OFF") {
        call.service.tracking().end(call.session.id);
        call.session.tracking = None;
    } else {
        return Err(Error::Syntax);
    }
    call.settles = true;
    call.session.caching = false;
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

/// The words behind ON or OFF.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "words of the command, in any combination")]
struct Asked<'a> {
    redirect: Option<u64>,
    prefixes: Vec<&'a [u8]>,
    broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    noloop: bool,
}

impl<'a> Asked<'a> {
    fn read(call: &Call<'a, '_>) -> Result<Self, Error> {
        let words: Args<'a> = call.args.skip(3);
        let mut asked = Self::default();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let value = words.get(at + 1);
            match (word.to_ascii_uppercase().as_slice(), value) {
                (b"REDIRECT", Some(id)) => {
                    asked.redirect_to(id, call)?;
                    at += 1;
                }
                (b"PREFIX", Some(prefix)) => {
                    call.service.check_key_length(prefix)?;
                    asked.prefixes.push(prefix);
                    at += 1;
                }
                (b"BCAST", _) => asked.broadcast = true,
                (b"OPTIN", _) => asked.opt_in = true,
                (b"OPTOUT", _) => asked.opt_out = true,
                (b"NOLOOP", _) => asked.noloop = true,
                _ => return Err(Error::Syntax),
            }
            at += 1;
        }
        Ok(asked)
    }

    /// The other connection must be there now; it may go later.
    fn redirect_to(&mut self, id: &[u8], call: &Call<'_, '_>) -> Result<(), Error> {
        if self.redirect.is_some() {
            return Err(Error::text("A client can only redirect to a single other client"));
        }
        let id = parse_i64(id).ok_or(Error::NotInteger)?;
        let known = u64::try_from(id).ok().filter(|id| call.host.peer(*id).is_some());
        let unknown = || Error::text("The client ID you want redirect to does not exist");
        self.redirect = Some(known.ok_or_else(unknown)?);
        Ok(())
    }

    fn mode(&self) -> Mode {
        match self {
            Self { broadcast: true, .. } => Mode::Broadcast,
            Self { opt_in: true, .. } => Mode::OptIn,
            Self { opt_out: true, .. } => Mode::OptOut,
            _ => Mode::Reads,
        }
    }

    /// What is asked for, where it goes together and with what was asked for before.
    fn tracker(self, before: Option<&Tracker>) -> Result<Tracker, Error> {
        if !self.broadcast && !self.prefixes.is_empty() {
            return Err(Error::text("PREFIX option requires BCAST mode to be enabled"));
        }
        if before.is_some_and(|before| (before.mode == Mode::Broadcast) != self.broadcast) {
            return Err(Error::text(
                "You can't switch BCAST mode on/off before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            ));
        }
        if self.broadcast && (self.opt_in || self.opt_out) {
            return Err(Error::text("OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if self.opt_in && self.opt_out {
            return Err(Error::text("You can't specify both OPTIN mode and OPTOUT mode"));
        }
        let mode_before = before.map(|before| before.mode);
        let switches = self.opt_in && mode_before == Some(Mode::OptOut)
            || self.opt_out && mode_before == Some(Mode::OptIn);
        if switches {
            return Err(Error::text(
                "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            ));
        }
        let mut tracker = Tracker::new(self.mode(), self.noloop, self.redirect);
        if self.broadcast {
            let before = before.map(|before| before.prefixes.as_slice()).unwrap_or_default();
            tracker.prefixes = merged(before, &self.prefixes)?;
        }
        Ok(tracker)
    }
}

/// Prefixes that stand beside each other; without any, the empty one, with which all keys begin.
fn merged(before: &[Box<[u8]>], given: &[&[u8]]) -> Result<Vec<Box<[u8]>>, Error> {
    if before.len() + given.len() > PREFIXES_MAX {
        return Err(Error::text(format!("a connection has at most {PREFIXES_MAX} prefixes")));
    }
    for (at, prefix) in given.iter().enumerate() {
        if let Some(other) = before.iter().find(|other| overlap(prefix, other)) {
            return Err(overlapping(prefix, "an existing", other));
        }
        if let Some(other) = given[at + 1..].iter().find(|other| overlap(prefix, other)) {
            return Err(overlapping(prefix, "another provided", other));
        }
    }
    let mut prefixes: Vec<Box<[u8]>> = before.to_vec();
    prefixes.extend(given.iter().map(|prefix| Box::from(*prefix)));
    if prefixes.is_empty() {
        prefixes.push(Box::default());
    }
    prefixes.sort_unstable();
    Ok(prefixes)
}

fn overlap(one: &[u8], other: &[u8]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn overlapping(prefix: &[u8], which: &str, other: &[u8]) -> Error {
    let end = b"'. Prefixes for a single client must not overlap.";
    let middle = format!("' overlaps with {which} prefix '");
    Error::raw([b"ERR Prefix '", prefix, middle.as_bytes(), other, end].concat())
}

/// CLIENT CACHING YES|NO: the next command's keys are remembered, or are not.
pub(super) fn caching(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let Some(tracker) = &call.session.tracking else {
        return Err(Error::text(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    let (mode, complaint) =
        match call.args.get(2).unwrap_or_default().to_ascii_uppercase().as_slice() {
            b"YES" => (Mode::OptIn, "YES is only valid when tracking is enabled in OPTIN mode."),
            b"NO" => (Mode::OptOut, "NO is only valid when tracking is enabled in OPTOUT mode."),
            _ => return Err(Error::Syntax),
        };
    if tracker.mode != mode {
        return Err(Error::text(format!("CLIENT CACHING {complaint}")));
    }
    call.session.caching = true;
    reply.ok();
    Ok(Outcome::Reply)
}

pub(super) fn tracking_info(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let tracker = call.session.tracking.as_deref();
    let flags = tracker.map_or_else(|| vec!["off"], |tracker| flags(tracker, call.session.caching));
    reply.map(3);
    reply.bulk("flags");
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag);
    }
    reply.bulk("redirect");
    reply.integer(redirected_to(tracker));
    reply.bulk("prefixes");
    reply.bulks(tracker.map(|tracker| tracker.prefixes.as_slice()).unwrap_or_default());
    Ok(Outcome::Reply)
}

fn flags(tracker: &Tracker, caching: bool) -> Vec<&'static str> {
    let (mode, cached) = match tracker.mode {
        Mode::Reads => (None, None),
        Mode::OptIn => (Some("optin"), Some("caching-yes")),
        Mode::OptOut => (Some("optout"), Some("caching-no")),
        Mode::Broadcast => (Some("bcast"), None),
    };
    let set = [
        Some("on"),
        mode,
        cached.filter(|_| caching),
        tracker.noloop.then_some("noloop"),
        tracker.is_broken().then_some("broken_redirect"),
    ];
    set.into_iter().flatten().collect()
}

pub(super) fn redirected_to(tracker: Option<&Tracker>) -> i64 {
    tracker.map_or(NOT_TRACKING, |tracker| {
        tracker.redirect.map_or(NOT_REDIRECTED, |connection| connection as i64)
    })
}

pub(super) fn redirection(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.integer(redirected_to(call.session.tracking.as_deref()));
    Ok(Outcome::Reply)
}
