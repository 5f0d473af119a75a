//! Deadlines of keys that are there already: EXPIRE and its forms, TTL and its forms, PERSIST.
//!
//! A deadline that has passed deletes the key at once. A limiter's deadline is the moment at
//! which it is as good as new, so it may be brought forward, which forgets what was spent
//! sooner, but neither put off nor taken away.

use super::deadline::{Deadline, Form, told_ms};
use super::keys::generic;
use super::request::Request;
use super::spec::{Arity, Keys, Spec, keyed};
use super::strings::{READ, WRITE};
use crate::engine::{Found, KeyRef, View};
use crate::protocol::{Error, Reply};
use crate::time::Timestamp;

const fn moves(name: &'static str) -> Spec {
    generic(name, Arity::at_least(3), Keys::ONE, WRITE)
}

const fn tells(name: &'static str) -> Spec {
    generic(name, Arity::exactly(2), Keys::ONE, READ)
}

pub(super) const SPECS: &[Spec] = &[
    Spec {
        summary: "Let a key live for some seconds.",
        handler: keyed!(|request| expire_plan(request, Form::Ex, "expire"), expire),
        ..moves("EXPIRE")
    },
    Spec {
        since: "1.2.0",
        summary: "Let a key live until a moment, in seconds.",
        handler: keyed!(|request| expire_plan(request, Form::ExAt, "expireat"), expire),
        ..moves("EXPIREAT")
    },
    Spec {
        since: "7.0.0",
        summary: "Tell the moment at which a key goes, in seconds.",
        handler: keyed!(Request::key, |view, key, reply| tell(view, (key, Told::AT_S), reply)),
        ..tells("EXPIRETIME")
    },
    Spec {
        since: "2.2.0",
        summary: "Take a key's deadline away.",
        handler: keyed!(Request::key, persist),
        ..generic("PERSIST", Arity::exactly(2), Keys::ONE, WRITE)
    },
    Spec {
        since: "2.6.0",
        summary: "Let a key live for some milliseconds.",
        handler: keyed!(|request| expire_plan(request, Form::Px, "pexpire"), expire),
        ..moves("PEXPIRE")
    },
    Spec {
        since: "2.6.0",
        summary: "Let a key live until a moment, in milliseconds.",
        handler: keyed!(|request| expire_plan(request, Form::PxAt, "pexpireat"), expire),
        ..moves("PEXPIREAT")
    },
    Spec {
        since: "7.0.0",
        summary: "Tell the moment at which a key goes, in milliseconds.",
        handler: keyed!(Request::key, |view, key, reply| tell(view, (key, Told::AT_MS), reply)),
        ..tells("PEXPIRETIME")
    },
    Spec {
        since: "2.6.0",
        summary: "Tell how long a key still lives, in milliseconds.",
        handler: keyed!(Request::key, |view, key, reply| tell(view, (key, Told::LEFT_MS), reply)),
        ..tells("PTTL")
    },
    Spec {
        summary: "Tell how long a key still lives, in seconds.",
        handler: keyed!(Request::key, |view, key, reply| tell(view, (key, Told::LEFT_S), reply)),
        ..tells("TTL")
    },
];

/// What EXPIRE and its forms ask.
#[derive(Clone, Copy)]
struct Expire<'a> {
    key: KeyRef<'a>,
    deadline: Deadline,
    condition: Condition,
}

/// When the deadline may be moved: every option that was given must hold.
#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    /// NX false, XX true: whether there must be a deadline.
    has: Option<bool>,
    /// GT or LT: the new one must be this, against the current one.
    order: Option<Order>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    Later,
    Earlier,
}

impl Condition {
    fn read(request: &Request<'_>) -> Result<Self, Error> {
        let [mut nx, mut xx, mut gt, mut lt] = [false; 4];
        for word in request.args.skip(3).iter() {
            let is = |name: &str| name.as_bytes().eq_ignore_ascii_case(word);
            let option = match () {
                () if is("NX") => &mut nx,
                () if is("XX") => &mut xx,
                () if is("GT") => &mut gt,
                () if is("LT") => &mut lt,
                () => return Err(Error::raw([b"ERR Unsupported option ", word].concat())),
            };
            *option = true;
        }
        if nx && (xx || gt || lt) {
            return Err(Error::text(
                "NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if gt && lt {
            return Err(Error::text("GT and LT options at the same time are not compatible"));
        }
        let order = match (gt, lt) {
            (true, _) => Some(Order::Later),
            (_, true) => Some(Order::Earlier),
            (false, false) => None,
        };
        Ok(Self { has: (nx || xx).then_some(xx), order })
    }

    /// No deadline counts as the latest there is.
    fn allows(self, current: Timestamp, next: Timestamp) -> bool {
        let has = current != Timestamp::MAX;
        // Compared as they are told, so that a deadline that was read back is not a later one.
        let (current_ms, next_ms) = (told_ms(current), told_ms(next));
        self.has.is_none_or(|wanted| wanted == has)
            && match self.order {
                None => true,
                Some(Order::Later) => has && next_ms > current_ms,
                Some(Order::Earlier) => !has || next_ms < current_ms,
            }
    }
}

fn expire_plan<'a>(
    request: &Request<'a>,
    form: Form,
    command: &'static str,
) -> Result<Expire<'a>, Error> {
    let condition = Condition::read(request)?;
    let deadline = form.read(request.word(2), request.now, command)?;
    Ok(Expire { key: request.keys[0], deadline, condition })
}

fn expire(view: &mut View<'_>, plan: Expire<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let expires = plan.deadline.moment(view.now());
    let moves = view.look(plan.key).is_some_and(|Found { value, expires: current, .. }| {
        plan.condition.allows(current, expires) && (!value.is_limit() || expires < current)
    });
    if moves {
        view.set_expires(plan.key, expires);
    }
    reply.integer(i64::from(moves));
    Ok(())
}

fn persist(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let removes = view
        .look(key)
        .is_some_and(|found| found.expires != Timestamp::MAX && !found.value.is_limit());
    if removes {
        view.set_expires(key, Timestamp::MAX);
    }
    reply.integer(i64::from(removes));
    Ok(())
}

/// How TTL and its forms tell a deadline.
#[derive(Clone, Copy)]
struct Told {
    /// Since the epoch, not from now.
    absolute: bool,
    /// In milliseconds, not in seconds.
    millis: bool,
}

impl Told {
    const LEFT_S: Self = Self { absolute: false, millis: false };
    const LEFT_MS: Self = Self { absolute: false, millis: true };
    const AT_S: Self = Self { absolute: true, millis: false };
    const AT_MS: Self = Self { absolute: true, millis: true };
}

/// Answers -1 without a deadline and -2 without a key. Seconds are rounded to the nearest, as
/// Redis rounds them.
fn tell(
    view: &mut View<'_>,
    (key, told): (KeyRef<'_>, Told),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let now = view.now();
    reply.integer(match view.glance(key).map(|found| found.expires) {
        None => -2,
        Some(Timestamp::MAX) => -1,
        Some(expires) => {
            let since = if told.absolute { Timestamp::EPOCH } else { now };
            let millis = expires.since(since).as_millis_ceil() as i64;
            if told.millis { millis } else { (millis + 500) / 1_000 }
        }
    });
    Ok(())
}
