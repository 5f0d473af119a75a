//! Lists, read and changed at any place: LRANGE, LINDEX, LSET, LINSERT, LREM, LTRIM, LPOS, LLEN.
//!
//! What happens at the ends of lists stands in `list_ends.rs`. A place counts from 0, or from
//! the end where it is negative. Some of Redis's list commands look at the key before they read
//! their numbers, others after: each does here what it does there.

use super::request::Request;
use super::spec::{Arity, Flags, Group, Keys, Spec, keyed};
use super::strings::{READ, STORE};
use crate::collection::{End, List};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_i64};

/// A row of this family.
pub(super) const fn list(name: &'static str, arity: Arity, flags: Flags) -> Spec {
    Spec::of(Group::List, name, arity, Keys::ONE, flags)
}

pub(super) const SPECS: &[Spec] = &[
    Spec {
        complexity: "O(n) in the chunks before the place",
        summary: "Read the element at a place of a list.",
        handler: keyed!(at_plan, lindex),
        ..list("LINDEX", Arity::exactly(3), Flags::READONLY)
    },
    Spec {
        since: "2.2.0",
        complexity: "O(n) in the elements up to the one that is looked for",
        summary: "Put an element before or after another one of a list.",
        handler: keyed!(linsert_plan, linsert),
        ..list("LINSERT", Arity::exactly(5), STORE)
    },
    Spec {
        summary: "Count the elements of a list.",
        handler: keyed!(Request::key, llen),
        ..list("LLEN", Arity::exactly(2), READ)
    },
    Spec {
        since: "6.0.6",
        complexity: "O(n) in the elements compared",
        summary: "Find where in a list an element stands.",
        handler: keyed!(lpos_plan, lpos),
        ..list("LPOS", Arity::at_least(3), Flags::READONLY)
    },
    Spec {
        complexity: "O(n) in the elements returned",
        summary: "Read a range of a list.",
        handler: keyed!(range_plan, lrange),
        ..list("LRANGE", Arity::exactly(4), Flags::READONLY)
    },
    Spec {
        complexity: "O(n) in the elements of the list",
        summary: "Remove elements of a list that equal one.",
        handler: keyed!(lrem_plan, lrem),
        ..list("LREM", Arity::exactly(4), Flags::WRITE)
    },
    Spec {
        complexity: "O(n) in the chunks before the place",
        summary: "Replace the element at a place of a list.",
        handler: keyed!(at_plan, lset),
        ..list("LSET", Arity::exactly(4), STORE)
    },
    Spec {
        complexity: "O(n) in the elements removed",
        summary: "Keep only a range of a list.",
        handler: keyed!(range_plan, ltrim),
        ..list("LTRIM", Arity::exactly(4), Flags::WRITE)
    },
];

fn llen(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let len = view.read_collection::<List>(key)?.map_or(0, List::len);
    reply.integer(len as i64);
    Ok(())
}

/// A place as it was asked for. What is no number is an error only if there is a list.
struct At<'a> {
    key: KeyRef<'a>,
    place: Result<i64, Error>,
    /// What LSET puts there.
    element: &'a [u8],
}

fn at_plan<'a>(request: &Request<'a>) -> Result<At<'a>, Error> {
    let element = request.word(3);
    request.check_string_length(element.len())?;
    let place = parse_i64(request.word(2)).ok_or(Error::NotInteger);
    Ok(At { key: request.keys[0], place, element })
}

/// A place that counts from the end where it is negative.
fn place(at: i64, len: usize) -> Option<usize> {
    usize::try_from(at).ok().or_else(|| len.checked_sub(usize::try_from(at.unsigned_abs()).ok()?))
}

fn lindex(view: &mut View<'_>, at: At<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Some(list) = view.read_collection::<List>(at.key)? else {
        reply.null();
        return Ok(());
    };
    match place(at.place?, list.len()).and_then(|place| list.get(place)) {
        Some(element) => reply.bulk(element),
        None => reply.null(),
    }
    Ok(())
}

fn lset(view: &mut View<'_>, at: At<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let set = |list: &mut List| {
        let place = place(at.place?, list.len()).filter(|place| *place < list.len());
        let place = place.ok_or_else(|| Error::text("index out of range"))?;
        Ok(((), list.set(place, at.element)))
    };
    view.change_existing(at.key, set)?.ok_or(Error::NoSuchKey)?;
    reply.ok();
    Ok(())
}

/// First and last place, both included.
#[derive(Clone, Copy)]
struct Range<'a> {
    key: KeyRef<'a>,
    first: i64,
    last: i64,
}

fn range_plan<'a>(request: &Request<'a>) -> Result<Range<'a>, Error> {
    let number = |at| parse_i64(request.word(at)).ok_or(Error::NotInteger);
    Ok(Range { key: request.keys[0], first: number(2)?, last: number(3)? })
}

impl Range<'_> {
    /// The first place and how many there are, in a list of this length.
    fn within(&self, len: usize) -> (usize, usize) {
        let first = place(self.first, len).unwrap_or(0);
        let behind = place(self.last, len).map_or(0, |last| last.saturating_add(1).min(len));
        (first, behind.saturating_sub(first))
    }
}

fn lrange(view: &mut View<'_>, range: Range<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Some(list) = view.read_collection::<List>(range.key)? else {
        reply.array(0);
        return Ok(());
    };
    let (first, count) = range.within(list.len());
    reply.array(count);
    for element in list.iter_from(first).take(count) {
        reply.bulk(element);
    }
    Ok(())
}

fn ltrim(view: &mut View<'_>, range: Range<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    view.change_existing(range.key, |list: &mut List| {
        let before = list.len();
        let (first, count) = range.within(before);
        list.trim(first, count);
        Ok(((), list.len() != before))
    })?;
    reply.ok();
    Ok(())
}

/// An element to put beside another one.
#[derive(Clone, Copy)]
struct Beside<'a> {
    key: KeyRef<'a>,
    behind: bool,
    pivot: &'a [u8],
    element: &'a [u8],
}

fn linsert_plan<'a>(request: &Request<'a>) -> Result<Beside<'a>, Error> {
    let word = request.word(2);
    let behind = word.eq_ignore_ascii_case(b"AFTER");
    if !behind && !word.eq_ignore_ascii_case(b"BEFORE") {
        return Err(Error::Syntax);
    }
    let (pivot, element) = (request.word(3), request.word(4));
    request.check_string_length(element.len())?;
    Ok(Beside { key: request.keys[0], behind, pivot, element })
}

fn linsert(view: &mut View<'_>, plan: Beside<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let len = view.change_existing(plan.key, |list: &mut List| {
        let Some(pivot) = list.iter().position(|element| element == plan.pivot) else {
            return Ok((-1, false));
        };
        list.insert(pivot + usize::from(plan.behind), plan.element);
        Ok((list.len() as i64, true))
    })?;
    reply.integer(len.unwrap_or(0));
    Ok(())
}

/// Which elements LREM removes: all where `max` is 0.
#[derive(Clone, Copy)]
struct Equal<'a> {
    key: KeyRef<'a>,
    element: &'a [u8],
    from: End,
    max: u64,
}

fn lrem_plan<'a>(request: &Request<'a>) -> Result<Equal<'a>, Error> {
    let count = parse_i64(request.word(2)).ok_or(Error::NotInteger)?;
    let from = if count < 0 { End::Right } else { End::Left };
    let max = count.unsigned_abs();
    Ok(Equal { key: request.keys[0], element: request.word(3), from, max })
}

fn lrem(view: &mut View<'_>, plan: Equal<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let removed = view.change_existing(plan.key, |list: &mut List| {
        let max = if plan.max == 0 { usize::MAX } else { plan.max as usize };
        let removed = list.remove_equal(plan.element, plan.from, max);
        Ok((removed, removed > 0))
    })?;
    reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}

/// What LPOS looks for.
#[derive(Clone, Copy)]
struct Search<'a> {
    key: KeyRef<'a>,
    element: &'a [u8],
    from: End,
    /// Matches that do not count.
    skipped: u64,
    /// Matches to return, or 0 for all; one, and not as an array, where nothing is said.
    count: Option<u64>,
    /// Elements to compare, or 0 for all.
    compared_max: u64,
}

fn lpos_plan<'a>(request: &Request<'a>) -> Result<Search<'a>, Error> {
    let mut search = Search {
        key: request.keys[0],
        element: request.word(2),
        from: End::Left,
        skipped: 0,
        count: None,
        compared_max: 0,
    };
    let options = request.args.skip(3);
    for at in (0..options.len()).step_by(2) {
        let word = options.get(at).unwrap_or_default();
        let number = options.get(at + 1).ok_or(Error::Syntax)?;
        let positive = |refused: &'static str| {
            let number = parse_i64(number).and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| Error::text(refused))
        };
        if word.eq_ignore_ascii_case(b"RANK") {
            let rank = parse_i64(number).ok_or(Error::NotInteger)?;
            if rank == i64::MIN {
                return Err(Error::out_of_range(-i64::MAX, i64::MAX));
            }
            search.from = if rank < 0 { End::Right } else { End::Left };
            let skipped = rank.unsigned_abs().checked_sub(1);
            search.skipped = skipped.ok_or_else(|| Error::text(RANK_ZERO))?;
        } else if word.eq_ignore_ascii_case(b"COUNT") {
            search.count = Some(positive("COUNT can't be negative")?);
        } else if word.eq_ignore_ascii_case(b"MAXLEN") {
            search.compared_max = positive("MAXLEN can't be negative")?;
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok(search)
}

const RANK_ZERO: &str = "RANK can't be zero: use 1 to start from the first match, 2 from the \
                         second ... or use negative to start from the end of the list";

impl Search<'_> {
    /// The places of what is found, in the order in which they are met.
    fn places(&self, list: &List) -> Vec<usize> {
        let all = |number: u64| if number == 0 { usize::MAX } else { number as usize };
        let (compared, count) = (all(self.compared_max), all(self.count.unwrap_or(1)));
        let matching = |(_, element): &(usize, &[u8])| *element == self.element;
        let skipped = self.skipped as usize;
        match self.from {
            End::Left => {
                let found = list.iter().enumerate().take(compared).filter(matching);
                found.skip(skipped).take(count).map(|(place, _)| place).collect()
            }
            End::Right => {
                let found = list.iter().rev().enumerate().take(compared).filter(matching);
                let places = found.skip(skipped).take(count);
                places.map(|(behind, _)| list.len() - 1 - behind).collect()
            }
        }
    }
}

fn lpos(view: &mut View<'_>, search: Search<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let list = view.read_collection::<List>(search.key)?;
    let places = list.map_or_else(Vec::new, |list| search.places(list));
    match (search.count, places.first()) {
        (Some(_), _) => {
            reply.array(places.len());
            for place in places {
                reply.integer(place as i64);
            }
        }
        (None, Some(place)) => reply.integer(*place as i64),
        (None, None) => reply.null(),
    }
    Ok(())
}
