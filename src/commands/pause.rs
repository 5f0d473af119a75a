//! CLIENT PAUSE and UNPAUSE: for a time, commands or only writes are not begun.
//!
//! Who looks whether there is a pause reads one word. A request that is held is not begun: its
//! connection asks again when the time is over, or when somebody ends the pause.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::call::{Answer, Call};
use super::session::Outcome;
use super::spec::{Flags, Spec};
use crate::protocol::{Error, Reply, parse_i64};
use crate::time::{Duration, Timestamp};

#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// In microseconds since the epoch; zero for none.
    until_us: AtomicU64,
    writes_only: AtomicBool,
}

impl Pause {
    /// Whether there is one, or was until a moment ago.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.until_us.load(Ordering::Relaxed) != 0
    }

    /// How long it still lasts.
    pub(crate) fn left(&self, now: Timestamp) -> Option<Duration> {
        let until_us = self.until_us.load(Ordering::Relaxed);
        let left = Timestamp::from_micros(until_us).since(now);
        if left.is_zero() {
            let ended = (until_us, 0, Ordering::Relaxed, Ordering::Relaxed);
            // Where it fails, another one has begun.
            let _ = self.until_us.compare_exchange(ended.0, ended.1, ended.2, ended.3);
            return None;
        }
        Some(left)
    }

    /// Whether a command is not to be begun now.
    pub(super) fn holds(&self, spec: &Spec, now: Timestamp) -> bool {
        let writes_only = self.writes_only.load(Ordering::Relaxed);
        self.left(now).is_some() && (!writes_only || may_change(spec))
    }

    /// Of two at one time, the longer and the stricter counts.
    fn begin(&self, until: Timestamp, writes_only: bool) {
        let on = self.until_us.fetch_max(until.as_micros(), Ordering::Relaxed) != 0;
        if on {
            self.writes_only.fetch_and(writes_only, Ordering::Relaxed);
        } else {
            self.writes_only.store(writes_only, Ordering::Relaxed);
        }
    }

    fn end(&self) {
        self.until_us.store(0, Ordering::Relaxed);
    }
}

/// Whether it changes anything that is kept or told to others.
fn may_change(spec: &Spec) -> bool {
    /// EXEC holds what it may hold; scripts may do anything.
    const OTHERS: [&str; 6] = ["EVAL", "EVALSHA", "EXEC", "FCALL", "PUBLISH", "SPUBLISH"];
    spec.flags.has(Flags::WRITE) || OTHERS.contains(&spec.name)
}

/// CLIENT PAUSE milliseconds [WRITE|ALL]
pub(super) fn pause(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let word = |place| call.args.get(place).unwrap_or_default();
    let mode = call.args.get(3).map(<[u8]>::to_ascii_uppercase);
    let writes_only = match (mode.as_deref(), call.args.len()) {
        (None | Some(b"ALL"), 3 | 4) => false,
        (Some(b"WRITE"), 4) => true,
        (Some(_), 4) => return Err(Error::text("CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Error::subcommand_or_arity("CLIENT", word(1))),
    };
    let ms = parse_i64(word(2));
    let ms = ms.ok_or_else(|| Error::text("timeout is not an integer or out of range"))?;
    let ms = u64::try_from(ms).map_err(|_| Error::text("timeout is negative"))?;
    if ms > 0 {
        call.service.pause().begin(call.now + Duration::from_millis(ms), writes_only);
    }
    reply.ok();
    Ok(Outcome::Reply)
}

pub(super) fn unpause(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    if call.service.pause().is_on() {
        call.service.pause().end();
        call.host.wake_all();
    }
    reply.ok();
    Ok(Outcome::Reply)
}
