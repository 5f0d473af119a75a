//! Strings, read and written whole or in part: GET, MGET, MSET, APPEND, GETRANGE and the like.
//!
//! SET and the other commands with a deadline stand in `set.rs`, those that count in
//! `counters.rs`. What holds no string (a limiter) answers WRONGTYPE, except to the commands
//! that overwrite a key whatever it holds, and to MGET, which answers null.

use super::request::Request;
use super::spec::{Arity, Flags, Group, KeyList, Keys, Spec, keyed};
use crate::engine::{Expires, Kept, KeyRef, Value, View, reserve};
use crate::protocol::{Error, Reply, parse_i64};
use crate::time::Timestamp;

/// A row of this family.
pub(super) const fn string(name: &'static str, arity: Arity, keys: Keys, flags: Flags) -> Spec {
    Spec::of(Group::String, name, arity, keys, flags)
}

pub(super) const READ: Flags = Flags::READONLY.and(Flags::FAST);
pub(super) const WRITE: Flags = Flags::WRITE.and(Flags::FAST);
/// What may make a value, or make one larger.
pub(super) const STORE: Flags = Flags::WRITE.and(Flags::DENYOOM);
pub(super) const STORE_FAST: Flags = STORE.and(Flags::FAST);
/// Keys and values in turn.
const PAIRS: Keys = Keys::Range { first: 1, last: -1, step: 2 };

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "2.0.0",
        complexity: "O(n) in the bytes appended, amortised",
        summary: "Append to a string.",
        handler: keyed!(append_plan, append),
        ..string("APPEND", Arity::exactly(3), Keys::ONE, STORE_FAST)
    },
    Spec {
        summary: "Read a string.",
        handler: keyed!(Request::key, get),
        ..string("GET", Arity::exactly(2), Keys::ONE, READ)
    },
    Spec {
        since: "6.2.0",
        summary: "Read a string and delete its key.",
        handler: keyed!(Request::key, getdel),
        ..string("GETDEL", Arity::exactly(2), Keys::ONE, WRITE)
    },
    Spec {
        since: "2.4.0",
        complexity: "O(n) in the bytes returned",
        summary: "Read part of a string.",
        handler: keyed!(getrange_plan, getrange),
        ..string("GETRANGE", Arity::exactly(4), Keys::ONE, Flags::READONLY)
    },
    Spec {
        summary: "Set a string and return the one before.",
        handler: keyed!(value_plan, getset),
        ..string("GETSET", Arity::exactly(3), Keys::ONE, STORE_FAST)
    },
    Spec {
        complexity: "O(n) in the keys",
        summary: "Read several strings.",
        handler: keyed!(Request::all_keys, mget),
        ..string("MGET", Arity::at_least(2), Keys::REST, READ)
    },
    Spec {
        since: "1.0.1",
        complexity: "O(n) in the keys",
        summary: "Set several strings at one moment.",
        handler: keyed!(pairs_plan, mset),
        ..string("MSET", Arity::at_least(3), PAIRS, STORE)
    },
    Spec {
        since: "1.0.1",
        complexity: "O(n) in the keys",
        summary: "Set several strings, or none if one of the keys exists.",
        handler: keyed!(pairs_plan, msetnx),
        ..string("MSETNX", Arity::at_least(3), PAIRS, STORE)
    },
    Spec {
        summary: "Set a string unless the key exists.",
        handler: keyed!(value_plan, setnx),
        ..string("SETNX", Arity::exactly(3), Keys::ONE, STORE_FAST)
    },
    Spec {
        since: "2.2.0",
        complexity: "O(n) in the bytes written and in those that the string grows by",
        summary: "Overwrite part of a string.",
        handler: keyed!(setrange_plan, setrange),
        ..string("SETRANGE", Arity::exactly(4), Keys::ONE, STORE)
    },
    Spec {
        since: "2.2.0",
        summary: "Tell the length of a string.",
        handler: keyed!(Request::key, strlen),
        ..string("STRLEN", Arity::exactly(2), Keys::ONE, READ)
    },
    Spec {
        complexity: "O(n) in the bytes returned",
        summary: "Read part of a string, by GETRANGE's older name.",
        handler: keyed!(getrange_plan, getrange),
        ..string("SUBSTR", Arity::exactly(4), Keys::ONE, Flags::READONLY)
    },
];

/// The bytes of a string value.
pub(super) fn bytes<'v>(value: &'v Value, digits: &'v mut itoa::Buffer) -> Result<&'v [u8], Error> {
    value.bytes(digits).ok_or(Error::WrongType)
}

/// Answers a string value, or null where there is none.
pub(super) fn answer(value: Option<&Value>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match value {
        Some(value) => reply.bulk(bytes(value, &mut itoa::Buffer::new())?),
        None => reply.null(),
    }
    Ok(())
}

fn get(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    answer(view.read(key).map(|found| found.value), reply)
}

fn getdel(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    get(view, key, reply)?;
    view.remove(key);
    Ok(())
}

fn value_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Value), Error> {
    Ok((request.keys[0], request.value(2)?))
}

fn getset(
    view: &mut View<'_>,
    (key, value): (KeyRef<'_>, Value),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    get(view, key, reply)?;
    view.insert(key, value, Timestamp::MAX);
    Ok(())
}

fn setnx(
    view: &mut View<'_>,
    (key, value): (KeyRef<'_>, Value),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let absent = view.look(key).is_none();
    if absent {
        view.insert(key, value, Timestamp::MAX);
    }
    reply.integer(i64::from(absent));
    Ok(())
}

fn mget(view: &mut View<'_>, keys: KeyList<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.array(keys.len());
    for key in keys {
        let mut digits = itoa::Buffer::new();
        // What is no string is passed over, not refused.
        match view.read(key).and_then(|found| found.value.bytes(&mut digits)) {
            Some(bytes) => reply.bulk(bytes),
            None => reply.null(),
        }
    }
    Ok(())
}

fn pairs_plan<'a>(request: &Request<'a>) -> Result<Vec<(KeyRef<'a>, Value)>, Error> {
    if request.args.len().is_multiple_of(2) {
        return Err(Error::wrong_arity(&String::from_utf8_lossy(request.args.name())));
    }
    let places = (2..).step_by(2);
    request.keys.iter().zip(places).map(|(key, place)| Ok((*key, request.value(place)?))).collect()
}

fn mset(
    view: &mut View<'_>,
    pairs: Vec<(KeyRef<'_>, Value)>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    for (key, value) in pairs {
        view.insert(key, value, Timestamp::MAX);
    }
    reply.ok();
    Ok(())
}

fn msetnx(
    view: &mut View<'_>,
    pairs: Vec<(KeyRef<'_>, Value)>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    if pairs.iter().any(|(key, _)| view.look(*key).is_some()) {
        reply.integer(0);
        return Ok(());
    }
    for (key, value) in pairs {
        view.insert(key, value, Timestamp::MAX);
    }
    reply.integer(1);
    Ok(())
}

fn strlen(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let len = match view.read(key) {
        Some(found) => bytes(found.value, &mut itoa::Buffer::new())?.len(),
        None => 0,
    };
    reply.integer(len as i64);
    Ok(())
}

fn append_plan<'a>(request: &Request<'a>) -> Result<Part<'a>, Error> {
    let bytes = request.word(2);
    request.check_string_length(bytes.len())?;
    let len_max = request.service.runtime().value_bytes_max();
    Ok(Part { key: request.keys[0], at: None, bytes, len_max })
}

fn setrange_plan<'a>(request: &Request<'a>) -> Result<Part<'a>, Error> {
    let at = parse_i64(request.word(2)).ok_or(Error::NotInteger)?;
    let at = usize::try_from(at).map_err(|_| Error::text("offset is out of range"))?;
    let len_max = request.service.runtime().value_bytes_max();
    Ok(Part { key: request.keys[0], at: Some(at), bytes: request.word(3), len_max })
}

/// Bytes to write into a string.
#[derive(Clone, Copy)]
struct Part<'a> {
    key: KeyRef<'a>,
    /// Where they begin; `None` for the end.
    at: Option<usize>,
    bytes: &'a [u8],
    len_max: usize,
}

impl Part<'_> {
    /// Where they end in a string of `len` bytes.
    fn end(&self, len: usize) -> Result<usize, Error> {
        let end = self.at.unwrap_or(len).checked_add(self.bytes.len());
        end.filter(|end| *end <= self.len_max).ok_or(Error::StringTooLong)
    }

    /// Writes them up to `end`, over zeros where the string is too short; its new length.
    fn write(&self, string: &mut Vec<u8>, end: usize) -> usize {
        if end > string.len() {
            reserve(string, end);
            string.resize(end, 0);
        }
        string[end - self.bytes.len()..end].copy_from_slice(self.bytes);
        string.len()
    }
}

fn append(view: &mut View<'_>, part: Part<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let len = if let Some(len) = write_part(view, part)? {
        len
    } else {
        view.insert(part.key, Value::string(part.bytes), Timestamp::MAX);
        part.bytes.len()
    };
    reply.integer(len as i64);
    Ok(())
}

fn setrange(view: &mut View<'_>, part: Part<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if part.bytes.is_empty() {
        return strlen(view, part.key, reply);
    }
    let len = if let Some(len) = write_part(view, part)? {
        len
    } else {
        let mut string = Vec::new();
        let len = part.write(&mut string, part.end(0)?);
        view.insert(part.key, Value::Raw(string), Timestamp::MAX);
        len
    };
    reply.integer(len as i64);
    Ok(())
}

/// Nothing where there is no key.
fn write_part(view: &mut View<'_>, part: Part<'_>) -> Result<Option<usize>, Error> {
    view.edit(part.key, |value, _| {
        let end = part.end(bytes(value, &mut itoa::Buffer::new())?.len())?;
        let string = value.make_raw().ok_or(Error::WrongType)?;
        Ok((part.write(string, end), Kept::Changed { expires: Expires::Keep }))
    })
}

/// First and last place, both included; negative ones count from the end.
#[derive(Clone, Copy)]
struct Range<'a> {
    key: KeyRef<'a>,
    first: i64,
    last: i64,
}

impl Range<'_> {
    fn of<'b>(&self, string: &'b [u8]) -> &'b [u8] {
        let len = string.len() as i64;
        if self.first < 0 && self.last < 0 && self.first > self.last {
            return &[];
        }
        let place = |at: i64| if at < 0 { (at + len).max(0) } else { at };
        let (first, last) = (place(self.first), place(self.last).min(len - 1));
        if first > last { &[] } else { &string[first as usize..=last as usize] }
    }
}

fn getrange_plan<'a>(request: &Request<'a>) -> Result<Range<'a>, Error> {
    let place = |at| parse_i64(request.word(at)).ok_or(Error::NotInteger);
    Ok(Range { key: request.keys[0], first: place(2)?, last: place(3)? })
}

fn getrange(view: &mut View<'_>, range: Range<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match view.read(range.key) {
        Some(found) => reply.bulk(range.of(bytes(found.value, &mut itoa::Buffer::new())?)),
        None => reply.bulk(""),
    }
    Ok(())
}
