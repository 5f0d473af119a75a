//! SET with its options, and the commands that are a SET with some of them: SETEX, PSETEX, GETEX.
//!
//! Options stand in any order and case. One of a kind may be given twice, and the last counts;
//! two of different kinds that exclude each other are a syntax error.

use super::deadline::{Deadline, Form};
use super::request::Request;
use super::spec::{Arity, Keys, Spec, keyed};
use super::strings::{STORE, WRITE, answer, bytes, string};
use crate::engine::{KeyRef, Value, View};
use crate::protocol::{Error, Reply};
use crate::time::Timestamp;

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "6.2.0",
        summary: "Read a string and move or remove its deadline.",
        handler: keyed!(getex_plan, getex),
        ..string("GETEX", Arity::at_least(2), Keys::ONE, WRITE)
    },
    Spec {
        since: "2.6.0",
        summary: "Set a string that lives for some milliseconds.",
        handler: keyed!(|request| setex_plan(request, Form::Px, "psetex"), set),
        ..string("PSETEX", Arity::exactly(4), Keys::ONE, STORE)
    },
    Spec {
        summary: "Set a string, whatever the key held, or under a condition.",
        handler: keyed!(set_plan, set),
        ..string("SET", Arity::at_least(3), Keys::ONE, STORE)
    },
    Spec {
        since: "2.0.0",
        summary: "Set a string that lives for some seconds.",
        handler: keyed!(|request| setex_plan(request, Form::Ex, "setex"), set),
        ..string("SETEX", Arity::exactly(4), Keys::ONE, STORE)
    },
];

/// What SET asks.
struct Set<'a> {
    key: KeyRef<'a>,
    value: Value,
    condition: Option<Condition>,
    lifetime: Lifetime<Deadline>,
    /// Answer the old value.
    get: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Condition {
    Absent,
    Present,
}

/// What becomes of the deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lifetime<D> {
    /// Nothing was said: SET removes it, GETEX leaves it.
    Unsaid,
    Keep,
    Persist,
    Until(D),
}

fn set_plan<'a>(request: &Request<'a>) -> Result<Set<'a>, Error> {
    let mut options = Options { condition: None, lifetime: Lifetime::Unsaid, get: false };
    let mut at = 3;
    while let Some(word) = request.args.get(at) {
        at += options.take(word, request.args.get(at + 1), true)?;
    }
    Ok(Set {
        key: request.keys[0],
        value: request.value(2)?,
        condition: options.condition,
        lifetime: options.lifetime.read(request.now, "set")?,
        get: options.get,
    })
}

fn setex_plan<'a>(
    request: &Request<'a>,
    form: Form,
    command: &'static str,
) -> Result<Set<'a>, Error> {
    let deadline = form.read_positive(request.word(2), request.now, command)?;
    Ok(Set {
        key: request.keys[0],
        value: request.value(3)?,
        condition: None,
        lifetime: Lifetime::Until(deadline),
        get: false,
    })
}

/// A deadline as it was written: its number is read last, after all option words.
type Written<'a> = Lifetime<(Form, &'a [u8])>;

struct Options<'a> {
    condition: Option<Condition>,
    lifetime: Written<'a>,
    get: bool,
}

impl<'a> Options<'a> {
    /// Takes one option of SET, or of GETEX, and returns how many words it was.
    fn take(&mut self, word: &[u8], next: Option<&'a [u8]>, of_set: bool) -> Result<usize, Error> {
        let is = |name: &str| name.as_bytes().eq_ignore_ascii_case(word);
        let condition = if is("NX") { Condition::Absent } else { Condition::Present };
        if of_set && (is("NX") || is("XX")) && self.condition.is_none_or(|set| set == condition) {
            self.condition = Some(condition);
            return Ok(1);
        }
        if of_set && is("GET") {
            self.get = true;
            return Ok(1);
        }
        let (lifetime, words) = match (Form::of_word(word), next) {
            (Some(form), Some(number)) => (Lifetime::Until((form, number)), 2),
            (None, _) if of_set && is("KEEPTTL") => (Lifetime::Keep, 1),
            (None, _) if !of_set && is("PERSIST") => (Lifetime::Persist, 1),
            _ => return Err(Error::Syntax),
        };
        if !self.lifetime.allows(&lifetime) {
            return Err(Error::Syntax);
        }
        self.lifetime = lifetime;
        Ok(words)
    }
}

impl Written<'_> {
    /// Whether `next` may be said after this.
    fn allows(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Unsaid, _) | (Self::Keep, Self::Keep) | (Self::Persist, Self::Persist) => true,
            (Self::Until((form, _)), Self::Until((next, _))) => form == next,
            (Self::Keep | Self::Persist | Self::Until(_), _) => false,
        }
    }

    fn read(self, now: Timestamp, command: &'static str) -> Result<Lifetime<Deadline>, Error> {
        Ok(match self {
            Self::Unsaid => Lifetime::Unsaid,
            Self::Keep => Lifetime::Keep,
            Self::Persist => Lifetime::Persist,
            Self::Until((form, number)) => {
                Lifetime::Until(form.read_positive(number, now, command)?)
            }
        })
    }
}

fn set(view: &mut View<'_>, set: Set<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Set { key, value, condition, lifetime, get } = set;
    if get {
        answer(view.read(key).map(|found| found.value), reply)?;
    }
    if let Some(condition) = condition
        && view.look(key).is_some() != (condition == Condition::Present)
    {
        if !get {
            reply.null();
        }
        return Ok(());
    }
    let expires = match lifetime {
        Lifetime::Until(deadline) => deadline.moment(view.now()),
        Lifetime::Keep => view.look(key).map_or(Timestamp::MAX, |found| found.expires),
        Lifetime::Unsaid | Lifetime::Persist => Timestamp::MAX,
    };
    view.insert(key, value, expires);
    if !get {
        reply.ok();
    }
    Ok(())
}

/// What GETEX asks. A deadline that cannot be read is an error only if there is a string.
struct GetEx<'a> {
    key: KeyRef<'a>,
    lifetime: Result<Lifetime<Deadline>, Error>,
}

fn getex_plan<'a>(request: &Request<'a>) -> Result<GetEx<'a>, Error> {
    let mut options = Options { condition: None, lifetime: Lifetime::Unsaid, get: false };
    let mut at = 2;
    while let Some(word) = request.args.get(at) {
        at += options.take(word, request.args.get(at + 1), false)?;
    }
    Ok(GetEx { key: request.keys[0], lifetime: options.lifetime.read(request.now, "getex") })
}

fn getex(view: &mut View<'_>, plan: GetEx<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let value = view.read(plan.key).map(|found| found.value);
    let lifetime = match value {
        None => Lifetime::Unsaid,
        Some(value) => {
            // A wrong type is told before a wrong lifetime.
            bytes(value, &mut itoa::Buffer::new())?;
            plan.lifetime?
        }
    };
    answer(value, reply)?;
    match lifetime {
        Lifetime::Unsaid | Lifetime::Keep => {}
        Lifetime::Persist => {
            view.set_expires(plan.key, Timestamp::MAX);
        }
        Lifetime::Until(deadline) => {
            let expires = deadline.moment(view.now());
            view.set_expires(plan.key, expires);
        }
    }
    Ok(())
}
