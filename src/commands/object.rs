//! OBJECT: how a value is kept.
//!
//! The encodings of strings follow Redis's rules, because its tests and some tools ask for them.
//! A limiter's is the name of its algorithm.

use super::command::help;
use super::keys::generic;
use super::request::Request;
use super::spec::{Arity, Flags, Handler, Keys, Spec, Sub, keyed};
use crate::engine::{KeyRef, Value, View};
use crate::limit::State;
use crate::protocol::{Error, Reply};

pub(super) const SPECS: &[Spec] = &[Spec {
    since: "2.2.3",
    summary: "Look at how values are kept.",
    subcommands: &[
        sub("ENCODING", "Tell how a value is kept.", keyed!(Request::key, encoding)),
        sub("FREQ", "Tell how often a key was used; not counted here.", keyed!(Request::key, freq)),
        Sub {
            arity: Arity::exactly(2),
            keys: Keys::None,
            ..sub("HELP", "List the subcommands.", Handler::Plain(help))
        },
        sub("IDLETIME", "Tell the seconds since a key was used.", keyed!(Request::key, idletime)),
        sub("REFCOUNT", "Tell how many share a value.", keyed!(Request::key, refcount)),
    ],
    ..generic("OBJECT", Arity::at_least(2), Keys::None, Flags::NONE)
}];

const fn sub(name: &'static str, summary: &'static str, handler: Handler) -> Sub {
    let keys = Keys::Range { first: 2, last: 2, step: 1 };
    Sub { name, arity: Arity::exactly(3), keys, summary, handler }
}

/// The longest string that Redis keeps in one piece with its header.
const EMBEDDED_BYTES_MAX: usize = 44;

fn encoding(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match view.glance(key).map(|found| found.value) {
        None => reply.null(),
        Some(Value::Integer(_)) => reply.bulk("int"),
        Some(Value::Text(bytes)) if bytes.len() <= EMBEDDED_BYTES_MAX => reply.bulk("embstr"),
        Some(Value::Text(_) | Value::Raw(_)) => reply.bulk("raw"),
        Some(Value::Limit(state)) => reply.bulk(counted_by(state)),
        Some(Value::Ledger(_) | Value::Ticket(_)) => reply.bulk("unnamed"),
        Some(Value::Hash(hash)) => reply.bulk(hash.encoding()),
        Some(Value::List(list)) => reply.bulk(list.encoding()),
        Some(Value::Set(set)) => reply.bulk(set.encoding()),
        Some(Value::SortedSet(set)) => reply.bulk(set.encoding()),
    }
    Ok(())
}

/// The algorithm, and whether its log had to be thinned out.
fn counted_by(state: &State) -> String {
    let name = state.algorithm().name();
    if state.is_coarse() { format!("{name}-coarse") } else { name.to_owned() }
}

fn freq(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if view.glance(key).is_some() {
        return Err(Error::text(
            "An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
             that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        ));
    }
    reply.null();
    Ok(())
}

fn idletime(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match view.glance(key) {
        Some(found) => reply.integer((found.idle.as_millis() / 1_000) as i64),
        None => reply.null(),
    }
    Ok(())
}

fn refcount(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    /// Redis has one value each for the numbers below this, and says of it that all share it.
    const SHARED_INTEGERS: i64 = 10_000;
    match view.glance(key).map(|found| found.value) {
        None => reply.null(),
        Some(Value::Integer(0..SHARED_INTEGERS)) => reply.integer(i32::MAX.into()),
        Some(_) => reply.integer(1),
    }
    Ok(())
}
