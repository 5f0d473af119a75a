//! HSCAN, SSCAN and ZSCAN: a collection's elements bit by bit.
//!
//! A small collection is shown at once, whatever COUNT says. Of a large one a call looks at COUNT
//! elements; an element that is there throughout a scan is shown at least once, however the
//! collection changes meanwhile (see `collection/table.rs`).

use super::hashes::hash;
use super::request::Request;
use super::scan_options::{ScanOptions, Scanned, cursor};
use super::sets::set;
use super::sorted::sorted;
use super::spec::{Arity, Flags, Keys, Spec, keyed};
use crate::collection::{Hash, Set, SortedSet};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "2.8.0",
        complexity: "O(n) in COUNT for each call",
        summary: "List the fields and values of a hash bit by bit.",
        handler: keyed!(plan, hscan),
        ..hash("HSCAN", Arity::at_least(3), Flags::READONLY)
    },
    Spec {
        since: "2.8.0",
        complexity: "O(n) in COUNT for each call",
        summary: "List the members of a set bit by bit.",
        handler: keyed!(plan, sscan),
        ..set("SSCAN", Arity::at_least(3), Keys::ONE, Flags::READONLY)
    },
    Spec {
        since: "2.8.0",
        complexity: "O(n) in COUNT for each call",
        summary: "List the members of a sorted set bit by bit.",
        handler: keyed!(plan, zscan),
        ..sorted("ZSCAN", Arity::at_least(3), Keys::ONE, Flags::READONLY)
    },
];

/// What a scan of a collection asks.
struct ElementScan<'a> {
    key: KeyRef<'a>,
    cursor: u64,
    /// Wrong ones are an error only once the key is known to hold a collection.
    options: Result<ScanOptions<'a>, Error>,
}

fn plan<'a>(request: &Request<'a>) -> Result<ElementScan<'a>, Error> {
    let cursor = cursor(request.word(2))?;
    let options = ScanOptions::read(request.args.skip(3), Scanned::Elements);
    Ok(ElementScan { key: request.keys[0], cursor, options })
}

/// Where the scan goes on, and how many replies follow as its elements.
fn answer(next: u64, replies: usize, reply: &mut Reply<'_>) {
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(next));
    reply.array(replies);
}

fn hscan(view: &mut View<'_>, scan: ElementScan<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Some(hash) = view.read_collection::<Hash>(scan.key)? else {
        answer(0, 0, reply);
        return Ok(());
    };
    let options = scan.options?;
    let (fields, next) = hash.scan(scan.cursor, options.count);
    let wanted = fields.filter(|(field, _)| options.wants(field));
    answer(next, 2 * wanted.clone().count(), reply);
    for (field, value) in wanted {
        reply.bulk(field);
        reply.bulk(value);
    }
    Ok(())
}

fn sscan(view: &mut View<'_>, scan: ElementScan<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Some(set) = view.read_collection::<Set>(scan.key)? else {
        answer(0, 0, reply);
        return Ok(());
    };
    let options = scan.options?;
    let (members, next) = set.scan(scan.cursor, options.count);
    let wanted = members.filter(|member| options.wants(member));
    answer(next, wanted.clone().count(), reply);
    for member in wanted {
        reply.bulk(member);
    }
    Ok(())
}

fn zscan(view: &mut View<'_>, scan: ElementScan<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Some(set) = view.read_collection::<SortedSet>(scan.key)? else {
        answer(0, 0, reply);
        return Ok(());
    };
    let options = scan.options?;
    let mut found: Vec<(Box<[u8]>, f64)> = Vec::new();
    let next = set.scan(scan.cursor, options.count, |member, score| {
        if options.wants(member) {
            found.push((member.into(), score));
        }
    });
    answer(next, found.len() * 2, reply);
    for (member, score) in found {
        reply.bulk(member);
        reply.bulk_double(score);
    }
    Ok(())
}
