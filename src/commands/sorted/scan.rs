//! ZSCAN: a sorted set bit by bit.

use super::super::call::Request;
use super::super::spec::{Arity, Flags, Keys, Spec, keyed};
use super::super::{glob, keyspace};
use super::sorted;
use crate::collection::SortedSet;
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_i64};

pub(in super::super) const SPECS: &[Spec] = &[Spec {
    since: "2.8.0",
    complexity: "O(n) in COUNT for each call",
    summary: "List the members of a sorted set bit by bit.",
    handler: keyed!(plan, zscan),
    ..sorted("ZSCAN", Arity::at_least(3), Keys::ONE, Flags::READONLY)
}];

/// What a request asks for. What is wrong with its options matters only where there is a set.
struct Asked<'a> {
    key: KeyRef<'a>,
    cursor: u64,
    options: Result<Options<'a>, Error>,
}

struct Options<'a> {
    count: usize,
    pattern: Option<&'a [u8]>,
}

fn plan<'a>(request: &Request<'a>) -> Result<Asked<'a>, Error> {
    let cursor = keyspace::cursor(request.word(2)).ok_or(Error::InvalidCursor)?.number();
    Ok(Asked { key: request.keys[0], cursor, options: Options::read(request) })
}

impl<'a> Options<'a> {
    /// Slots looked at where COUNT does not say.
    const COUNT: usize = 10;

    fn read(request: &Request<'a>) -> Result<Self, Error> {
        let mut options = Self { count: Self::COUNT, pattern: None };
        let mut words = request.args.skip(3).iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(Error::Syntax)?;
            if word.eq_ignore_ascii_case(b"COUNT") {
                let count = parse_i64(value).ok_or(Error::NotInteger)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                options.count = count.ok_or(Error::Syntax)?;
            } else if word.eq_ignore_ascii_case(b"MATCH") {
                options.pattern = Some(value);
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

fn zscan(view: &mut View<'_>, asked: Asked<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Some(set) = view.read_collection::<SortedSet>(asked.key)? else {
        reply.array(2);
        reply.bulk_integer(0);
        reply.array(0);
        return Ok(());
    };
    let Options { count, pattern } = asked.options?;
    let mut found: Vec<(Box<[u8]>, f64)> = Vec::new();
    let next = set.scan(asked.cursor, count, |member, score| {
        if pattern.is_none_or(|pattern| glob::matches(pattern, member)) {
            found.push((member.into(), score));
        }
    });
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(found.len() * 2);
    for (member, score) in found {
        reply.bulk(member);
        reply.bulk_double(score);
    }
    Ok(())
}
