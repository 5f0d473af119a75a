//! Elements chosen by dice: HRANDFIELD, SRANDMEMBER and SPOP.
//!
//! A count of at least 0 asks for so many different elements, or all there are; one below 0 for
//! so many that may repeat each other.

use super::hashes::hash;
use super::request::Request;
use super::sets::set;
use super::spec::{Arity, Flags, Keys, Spec, keyed};
use super::strings::WRITE;
use crate::collection::{Hash, Set, at_places, one, one_place, places};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, Resp, parse_i64};

/// Elements that one call may ask to be repeated: more would hold up the shard for too long.
const REPEATED_MAX: u64 = 1 << 20;

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "6.2.0",
        complexity: "O(n) in the fields returned",
        summary: "Return random fields of a hash.",
        handler: keyed!(hrandfield_plan, hrandfield),
        ..hash("HRANDFIELD", Arity::at_least(2), Flags::READONLY)
    },
    Spec {
        complexity: "O(n) in the members returned",
        summary: "Remove random members from a set and return them.",
        handler: keyed!(spop_plan, spop),
        ..set("SPOP", Arity::at_least(2), Keys::ONE, WRITE)
    },
    Spec {
        complexity: "O(n) in the members returned",
        summary: "Return random members of a set.",
        handler: keyed!(srandmember_plan, srandmember),
        ..set("SRANDMEMBER", Arity::at_least(2), Keys::ONE, Flags::READONLY)
    },
];

/// How many elements are asked for, where that is said.
#[derive(Clone, Copy)]
enum Count {
    Different(usize),
    Repeated(u64),
}

impl Count {
    fn read(word: &[u8]) -> Result<Self, Error> {
        let count = parse_i64(word).ok_or(Error::NotInteger)?;
        match u64::try_from(count) {
            Ok(count) => Ok(Self::Different(usize::try_from(count).unwrap_or(usize::MAX))),
            Err(_) if count == i64::MIN => Err(Error::out_of_range(-i64::MAX, i64::MAX)),
            Err(_) => Ok(Self::Repeated(count.unsigned_abs())),
        }
    }

    fn size(self) -> u64 {
        match self {
            Self::Different(count) => count as u64,
            Self::Repeated(count) => count,
        }
    }

    fn choose<I>(self, elements: I, mut dice: impl FnMut() -> u64) -> Result<Vec<I::Item>, Error>
    where
        I: ExactSizeIterator + Clone,
        I::Item: Clone,
    {
        let len = elements.len();
        let count = match self {
            Self::Different(count) => {
                return Ok(at_places(elements, &places(len, count, &mut dice)).collect());
            }
            Self::Repeated(count) if count > REPEATED_MAX => return Err(out_of_range()),
            Self::Repeated(count) => count as usize,
        };
        let mut place = || one_place(len, &mut dice);
        if count < len {
            return Ok((0..count).filter_map(|_| elements.clone().nth(place())).collect());
        }
        let all: Vec<I::Item> = elements.collect();
        Ok((0..count).map(|_| all[place()].clone()).collect())
    }
}

fn out_of_range() -> Error {
    Error::text("value is out of range")
}

type Random<'a> = (KeyRef<'a>, Option<Count>);

fn srandmember_plan<'a>(request: &Request<'a>) -> Result<Random<'a>, Error> {
    if request.args.len() > 3 {
        return Err(Error::Syntax);
    }
    let count = request.args.get(2).map(Count::read).transpose()?;
    Ok((request.keys[0], count))
}

fn srandmember(
    view: &mut View<'_>,
    (key, count): Random<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut dice = view.dice();
    let set = view.read_collection::<Set>(key)?;
    let Some(count) = count else {
        match set.and_then(|set| one(set.iter(), &mut dice)) {
            Some(member) => reply.bulk(member),
            None => reply.null(),
        }
        return Ok(());
    };
    let members = set.map_or(Ok(Vec::new()), |set| count.choose(set.iter(), dice))?;
    reply.bulks(&members);
    Ok(())
}

/// What HRANDFIELD asks.
struct RandomFields<'a> {
    key: KeyRef<'a>,
    count: Option<Count>,
    with_values: bool,
}

fn hrandfield_plan<'a>(request: &Request<'a>) -> Result<RandomFields<'a>, Error> {
    /// Twice as many replies must be a number too.
    const PAIRS_MAX: u64 = i64::MAX as u64 / 2;
    let count = request.args.get(2).map(Count::read).transpose()?;
    let with_values = match request.args.get(3) {
        None => false,
        Some(word) if request.args.len() > 4 || !word.eq_ignore_ascii_case(b"WITHVALUES") => {
            return Err(Error::Syntax);
        }
        Some(_) => true,
    };
    if with_values && count.is_some_and(|count| count.size() > PAIRS_MAX) {
        return Err(out_of_range());
    }
    Ok(RandomFields { key: request.keys[0], count, with_values })
}

fn hrandfield(
    view: &mut View<'_>,
    RandomFields { key, count, with_values }: RandomFields<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut dice = view.dice();
    let hash = view.read_collection::<Hash>(key)?;
    let Some(count) = count else {
        match hash.and_then(|hash| one(hash.iter(), &mut dice)) {
            Some((field, _)) => reply.bulk(field),
            None => reply.null(),
        }
        return Ok(());
    };
    let fields = hash.map_or(Ok(Vec::new()), |hash| count.choose(hash.iter(), dice))?;
    let nested = with_values && reply.resp() == Resp::V3;
    let flat = if with_values && !nested { 2 } else { 1 };
    reply.array(flat * fields.len());
    for (field, value) in fields {
        if nested {
            reply.array(2);
        }
        reply.bulk(field);
        if with_values {
            reply.bulk(value);
        }
    }
    Ok(())
}

fn spop_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Option<usize>), Error> {
    if request.args.len() > 3 {
        return Err(Error::Syntax);
    }
    let count = request.args.get(2).map(|word| {
        let count = parse_i64(word).and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| Error::text("value is out of range, must be positive"))
    });
    Ok((request.keys[0], count.transpose()?))
}

fn spop(
    view: &mut View<'_>,
    (key, count): (KeyRef<'_>, Option<usize>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut dice = view.dice();
    let popped = view.change_existing(key, |set: &mut Set| {
        let places = places(set.len(), count.unwrap_or(1), &mut dice);
        if count.is_some() {
            reply.set(places.len());
        }
        for member in at_places(set.iter(), &places) {
            reply.bulk(member);
        }
        set.remove_places(&places);
        Ok(((), !places.is_empty()))
    })?;
    match (popped, count) {
        (Some(()), _) => {}
        (None, Some(_)) => reply.set(0),
        (None, None) => reply.null(),
    }
    Ok(())
}
