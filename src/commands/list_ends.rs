//! The ends of lists: pushing, popping, and moving an element from one list to another.
//!
//! [`pop`] and [`shift`] are what every command that takes elements away is made of, also one
//! that had to wait for them.

use super::lists::list;
use super::request::Request;
use super::spec::{Arity, Flags, KeyList, Keys, Spec, keyed};
use super::strings::{STORE, STORE_FAST, WRITE};
use crate::collection::{End, List};
use crate::engine::{KeyRef, View};
use crate::protocol::{Args, Error, Reply, parse_i64};

/// Two keys, the first arguments.
pub(super) const TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "6.2.0",
        keys: TWO,
        summary: "Move an element from one end of a list to one of another.",
        handler: keyed!(lmove_plan, move_one),
        ..list("LMOVE", Arity::exactly(5), STORE)
    },
    Spec {
        since: "7.0.0",
        keys: Keys::Counted { count: 1, first: None },
        complexity: "O(n) in the keys and in the elements returned",
        summary: "Take elements from the first of several lists that has any.",
        handler: keyed!(lmpop_plan, lmpop),
        ..list("LMPOP", Arity::at_least(4), Flags::WRITE)
    },
    Spec {
        complexity: "O(n) in the elements returned",
        summary: "Take elements from the left end of a list.",
        handler: keyed!(|request| pop_plan(request, End::Left), pop_one_or_some),
        ..list("LPOP", Arity::between(2, 3), WRITE)
    },
    Spec {
        complexity: "O(n) in the elements pushed",
        summary: "Push elements to the left end of a list, one by one.",
        handler: keyed!(|request| push_plan(request, End::Left), push),
        ..list("LPUSH", Arity::at_least(3), STORE_FAST)
    },
    Spec {
        since: "2.2.0",
        complexity: "O(n) in the elements pushed",
        summary: "Push elements to the left end of a list if it exists.",
        handler: keyed!(|request| push_plan(request, End::Left), push_existing),
        ..list("LPUSHX", Arity::at_least(3), STORE_FAST)
    },
    Spec {
        complexity: "O(n) in the elements returned",
        summary: "Take elements from the right end of a list.",
        handler: keyed!(|request| pop_plan(request, End::Right), pop_one_or_some),
        ..list("RPOP", Arity::between(2, 3), WRITE)
    },
    Spec {
        since: "1.2.0",
        keys: TWO,
        summary: "Move an element from the right end of a list to the left end of another.",
        handler: keyed!(rpoplpush_plan, move_one),
        ..list("RPOPLPUSH", Arity::exactly(3), STORE)
    },
    Spec {
        complexity: "O(n) in the elements pushed",
        summary: "Push elements to the right end of a list, one by one.",
        handler: keyed!(|request| push_plan(request, End::Right), push),
        ..list("RPUSH", Arity::at_least(3), STORE_FAST)
    },
    Spec {
        since: "2.2.0",
        complexity: "O(n) in the elements pushed",
        summary: "Push elements to the right end of a list if it exists.",
        handler: keyed!(|request| push_plan(request, End::Right), push_existing),
        ..list("RPUSHX", Arity::at_least(3), STORE_FAST)
    },
];

/// Elements to push, one after the other.
#[derive(Clone, Copy)]
struct Pushing<'a> {
    key: KeyRef<'a>,
    end: End,
    elements: Args<'a>,
}

fn push_plan<'a>(request: &Request<'a>, end: End) -> Result<Pushing<'a>, Error> {
    let elements = request.args.skip(2);
    elements.iter().try_for_each(|element| request.check_string_length(element.len()))?;
    Ok(Pushing { key: request.keys[0], end, elements })
}

impl Pushing<'_> {
    /// The length of the list afterwards.
    fn onto(self, list: &mut List) -> (i64, bool) {
        for element in self.elements.iter() {
            list.push(self.end, element);
        }
        (list.len() as i64, true)
    }
}

fn push(view: &mut View<'_>, plan: Pushing<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let len = view.change(plan.key, |list| Ok(plan.onto(list)))?;
    reply.integer(len);
    Ok(())
}

fn push_existing(
    view: &mut View<'_>,
    plan: Pushing<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let len = view.change_existing(plan.key, |list| Ok(plan.onto(list)))?;
    reply.integer(len.unwrap_or(0));
    Ok(())
}

/// Elements to take from an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Popping {
    pub(super) end: End,
    pub(super) count: usize,
}

/// Takes up to so many elements from a list and answers each, behind what `before` writes: it is
/// told how many will follow. False, and nothing is written, where there is no list.
pub(super) fn pop<'r>(
    view: &mut View<'_>,
    key: KeyRef<'_>,
    plan: Popping,
    reply: &mut Reply<'r>,
    before: impl FnOnce(&mut Reply<'r>, usize),
) -> Result<bool, Error> {
    let popped = view.change_existing(key, |list: &mut List| {
        let count = plan.count.min(list.len());
        before(reply, count);
        for _ in 0..count {
            list.pop(plan.end, |element| reply.bulk(element));
        }
        Ok(((), count > 0))
    })?;
    Ok(popped.is_some())
}

/// The key, where the elements stand, and how many: `None` for one that is no array.
type Pop<'a> = (KeyRef<'a>, End, Option<usize>);

fn pop_plan<'a>(request: &Request<'a>, end: End) -> Result<Pop<'a>, Error> {
    let read = |word| {
        let count = parse_i64(word).and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| Error::text("value is out of range, must be positive"))
    };
    Ok((request.keys[0], end, request.args.get(2).map(read).transpose()?))
}

fn pop_one_or_some(
    view: &mut View<'_>,
    (key, end, count): Pop<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    match count {
        None => {
            if !pop(view, key, Popping { end, count: 1 }, reply, |_, _| {})? {
                reply.null();
            }
        }
        Some(count) => {
            if !pop(view, key, Popping { end, count }, reply, Reply::array)? {
                reply.null_array();
            }
        }
    }
    Ok(())
}

/// Several lists, and what to take from the first that is there.
struct PopFirst<'a> {
    keys: KeyList<'a>,
    popping: Popping,
}

fn lmpop_plan<'a>(request: &Request<'a>) -> Result<PopFirst<'a>, Error> {
    let popping = read_counted(request, 1)?;
    Ok(PopFirst { keys: request.all_keys()?, popping })
}

/// `numkeys key [key ...] LEFT | RIGHT [COUNT count]` from this place on; the keys are those of
/// the request.
pub(super) fn read_counted(request: &Request<'_>, at: usize) -> Result<Popping, Error> {
    let positive = |word, name| {
        let number = parse_i64(word).filter(|number| *number > 0);
        let refused = move || Error::text(format!("{name} should be greater than 0"));
        number.and_then(|number| usize::try_from(number).ok()).ok_or_else(refused)
    };
    let keys = positive(request.word(at), "numkeys")?;
    let options = request.args.skip(at.saturating_add(keys).saturating_add(1));
    let end = options.get(0).and_then(read_end).ok_or(Error::Syntax)?;
    let count = match (options.get(1), options.get(2), options.len()) {
        (None, ..) => 1,
        (Some(word), Some(count), 3) if word.eq_ignore_ascii_case(b"COUNT") => {
            positive(count, "count")?
        }
        (Some(_), ..) => return Err(Error::Syntax),
    };
    Ok(Popping { end, count })
}

fn read_end(word: &[u8]) -> Option<End> {
    if word.eq_ignore_ascii_case(b"LEFT") {
        Some(End::Left)
    } else if word.eq_ignore_ascii_case(b"RIGHT") {
        Some(End::Right)
    } else {
        None
    }
}

fn lmpop(view: &mut View<'_>, plan: PopFirst<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    for key in plan.keys {
        if pop_named(view, key, plan.popping, reply)? {
            return Ok(());
        }
    }
    reply.null_array();
    Ok(())
}

/// Answers the key and an array of what was taken from it.
pub(super) fn pop_named(
    view: &mut View<'_>,
    key: KeyRef<'_>,
    popping: Popping,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    pop(view, key, popping, reply, |reply, count| {
        reply.array(2);
        reply.bulk(key.bytes());
        reply.array(count);
    })
}

/// One element's way from the end of a list to the end of another, or of the same one.
#[derive(Clone, Copy)]
pub(super) struct Shift<'a> {
    pub(super) from: KeyRef<'a>,
    pub(super) to: KeyRef<'a>,
    pub(super) taken: End,
    pub(super) put: End,
}

fn lmove_plan<'a>(request: &Request<'a>) -> Result<Shift<'a>, Error> {
    let (taken, put) = read_ends(request)?;
    let (from, to) = (request.keys[0], request.keys[1]);
    Ok(Shift { from, to, taken, put })
}

/// Where an element is taken, and where it is put: `LEFT | RIGHT LEFT | RIGHT` behind two keys.
pub(super) fn read_ends(request: &Request<'_>) -> Result<(End, End), Error> {
    let end = |at| read_end(request.word(at)).ok_or(Error::Syntax);
    Ok((end(3)?, end(4)?))
}

fn rpoplpush_plan<'a>(request: &Request<'a>) -> Result<Shift<'a>, Error> {
    let (from, to) = (request.keys[0], request.keys[1]);
    Ok(Shift { from, to, taken: End::Right, put: End::Left })
}

fn move_one(view: &mut View<'_>, plan: Shift<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if !shift(view, plan, reply)? {
        reply.null();
    }
    Ok(())
}

/// Moves an element and answers it. False, and nothing is written, where there is no list.
///
/// It is put before it is taken: where there is no room for it, it stays where it was.
pub(super) fn shift(
    view: &mut View<'_>,
    plan: Shift<'_>,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    let Shift { from, to, taken, put } = plan;
    let found = view.look(from).map(|found| {
        let list = found.value.as_collection::<List>().ok_or(Error::WrongType)?;
        let element = list.outermost(taken).unwrap_or_default();
        Ok::<Box<[u8]>, Error>(element.into())
    });
    let Some(element) = found.transpose()? else { return Ok(false) };
    if from.bytes() == to.bytes() {
        view.change_existing(from, |list: &mut List| {
            list.pop(taken, |_| {});
            list.push(put, &element);
            Ok(((), true))
        })?;
    } else {
        view.change(to, |list: &mut List| {
            list.push(put, &element);
            Ok(((), true))
        })?;
        view.change_existing(from, |list: &mut List| Ok((list.pop(taken, |_| {}), true)))?;
    }
    reply.bulk(element);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Scope};
    use crate::protocol::Resp;
    use crate::time::Timestamp;

    /// Another request may fill the memory after this one has passed the gate.
    #[test]
    fn element_that_finds_no_room_stays_where_it_was() {
        let engine = Engine::new(1, 7);
        let (from, to) = (engine.key(b"from"), engine.key(b"to"));
        engine.transact(Scope::All, 0, Timestamp::from_micros(1), |view| {
            let fill = |list: &mut List| Ok((list.push(End::Right, b"e"), true));
            view.change::<List, _>(from, fill).expect("there is room");
        });
        engine.set_memory_max(1);
        engine.transact(Scope::All, 0, Timestamp::from_micros(1), |view| {
            let mut out = Vec::new();
            let plan = Shift { from, to, taken: End::Left, put: End::Left };
            let result = shift(view, plan, &mut Reply::new(&mut out, Resp::V2));
            assert_eq!((result, out.as_slice()), (Err(Error::OutOfMemory), &b""[..]));
            let left = view.read_collection::<List>(from).expect("it is a list");
            assert_eq!(left.map(List::len), Some(1));
        });
    }
}
