//! COMMAND: the table of commands, told to clients.

use super::call::{Answer, Call};
use super::details;
use super::entry;
use super::glob;
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use super::table::Entry;
use crate::protocol::{Args, Error, Reply};

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "COMMAND",
    arity: Arity::at_least(1),
    keys: Keys::None,
    flags: Flags::LOADING.and(Flags::STALE),
    group: Group::Server,
    since: "2.8.13",
    complexity: "O(n) in the commands there are",
    summary: "Describe all commands.",
    subcommands: &[
        Sub::plain("COUNT", Arity::exactly(2), "Return how many commands there are.", count),
        Sub::plain("DOCS", Arity::at_least(2), "Return what commands are for.", docs),
        Sub::plain("GETKEYS", Arity::at_least(3), "Find the keys of a request.", keys),
        Sub::plain(
            "GETKEYSANDFLAGS",
            Arity::at_least(3),
            "Find the keys of a request, and what it does with them.",
            keys_and_flags,
        ),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", help),
        Sub::plain("INFO", Arity::at_least(2), "Describe the named commands.", some),
        Sub::plain("LIST", Arity::at_least(2), "Return the names of commands.", list),
    ],
    handler: Handler::Plain(all),
}];

/// HELP of any command with subcommands: one line each, from the table.
pub(super) fn help(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let Some((_, spec)) = call.service.table().find(call.args.name()) else {
        return Err(Error::Syntax);
    };
    reply.array(1 + 2 * spec.subcommands.len());
    reply.simple(format!("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", spec.name));
    for sub in spec.subcommands {
        reply.simple(sub.name);
        reply.simple(format!("    {}", sub.summary));
    }
    Ok(Outcome::Reply)
}

/// COMMAND: every command, its subcommands within it.
fn all(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let table = call.service.table();
    reply.array(table.specs().len());
    for (number, entry) in (0..).zip(&table.entries()[..table.specs().len()]) {
        entry::describe(entry, table.subs(number), reply);
    }
    Ok(Outcome::Reply)
}

fn count(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.integer(call.service.table().specs().len() as i64);
    Ok(Outcome::Reply)
}

/// COMMAND INFO [command ...]
fn some(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let names = call.args.skip(2);
    if names.is_empty() {
        return all(call, reply);
    }
    let table = call.service.table();
    reply.array(names.len());
    for name in names.iter() {
        match table.named(name).and_then(|number| Some((number, table.entry(number)?))) {
            Some((number, entry)) => entry::describe(entry, table.subs(number), reply),
            None => reply.null(),
        }
    }
    Ok(Outcome::Reply)
}

/// COMMAND DOCS [command ...]
fn docs(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let names = call.args.skip(2);
    let table = call.service.table();
    let numbers: Vec<u16> = if names.is_empty() {
        (0..table.specs().len() as u16).collect()
    } else {
        names.iter().filter_map(|name| table.named(name)).collect()
    };
    reply.map(numbers.len());
    for number in numbers {
        if let Some(entry) = table.entry(number) {
            reply.bulk(&entry.name);
            entry::document(entry, table.subs(number), reply);
        }
    }
    Ok(Outcome::Reply)
}

/// COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]
fn list(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let table = call.service.table();
    let filter = filter(call.args)?;
    let passes = |entry: &&Entry| filter.as_ref().is_none_or(|filter| filter.passes(entry));
    let passing = table.entries().iter().filter(passes);
    let names: Vec<&str> = passing.map(|entry| entry.name.as_str()).collect();
    reply.bulks(&names);
    Ok(Outcome::Reply)
}

enum Filter<'a> {
    /// No command comes from a module.
    Module,
    Category(&'a [u8]),
    Pattern(&'a [u8]),
}

fn filter(args: Args<'_>) -> Result<Option<Filter<'_>>, Error> {
    match (args.get(2), args.get(3), args.get(4), args.len()) {
        (None, ..) => Ok(None),
        (Some(word), Some(kind), Some(value), 5) if word.eq_ignore_ascii_case(b"FILTERBY") => {
            match kind.to_ascii_uppercase().as_slice() {
                b"MODULE" => Ok(Some(Filter::Module)),
                b"ACLCAT" => Ok(Some(Filter::Category(value))),
                b"PATTERN" => Ok(Some(Filter::Pattern(value))),
                _ => Err(Error::Syntax),
            }
        }
        _ => Err(Error::Syntax),
    }
}

impl Filter<'_> {
    fn passes(&self, entry: &Entry) -> bool {
        match self {
            Self::Module => false,
            Self::Category(name) => details::categories(entry)
                .any(|category| category.as_bytes().eq_ignore_ascii_case(name)),
            Self::Pattern(pattern) => {
                glob::matches(&pattern.to_ascii_lowercase(), entry.name.as_bytes())
            }
        }
    }
}

/// The command that a request names, and where its keys stand: it has some, and as many words
/// as it needs.
fn keyed_entry<'t>(
    call: &Call<'t, '_>,
    request: Args<'_>,
) -> Result<(&'t Entry, Vec<usize>), Error> {
    let table = call.service.table();
    let number = table.resolve(request);
    let entry = number.ok().and_then(|number| table.entry(number));
    let entry = entry.ok_or_else(|| Error::text("Invalid command specified"))?;
    if matches!(entry.keys(), Keys::None | Keys::All) {
        return Err(Error::text("The command has no key arguments"));
    }
    if !entry.arity().allows(request.len()) {
        return Err(Error::text("Invalid number of arguments specified for command"));
    }
    let places: Vec<usize> = entry.keys().places(request).collect();
    // A script alone can do without the keys that are counted.
    if let Keys::Counted { first, .. } = entry.keys()
        && places.len() == usize::from(first.is_some())
        && entry.spec.group != Group::Scripting
    {
        return Err(Error::text("Invalid arguments specified for command"));
    }
    Ok((entry, places))
}

fn keys(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let request = call.args.skip(2);
    let (_, places) = keyed_entry(call, request)?;
    let keys: Vec<&[u8]> = places.into_iter().filter_map(|place| request.get(place)).collect();
    reply.bulks(&keys);
    Ok(Outcome::Reply)
}

fn keys_and_flags(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let request = call.args.skip(2);
    let (entry, places) = keyed_entry(call, request)?;
    reply.array(places.len());
    for (number, place) in places.into_iter().enumerate() {
        reply.array(2);
        reply.bulk(request.get(place).unwrap_or_default());
        entry::names(entry::access(entry, number, request), reply);
    }
    Ok(Outcome::Reply)
}
