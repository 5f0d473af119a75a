//! The shape in which COMMAND INFO and COMMAND DOCS tell of one command.

use super::details;
use super::spec::Keys;
use super::table::Entry;
use super::usage;
use crate::protocol::{Args, Reply};

/// The ten elements of COMMAND INFO.
pub(super) fn describe(entry: &Entry, subs: &[Entry], reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(&entry.name);
    reply.integer(entry.arity().as_redis());
    let flags: Vec<&str> = entry.flags.names().collect();
    names(&flags, reply);
    let (first, last, step) = match entry.keys() {
        Keys::None | Keys::All | Keys::Counted { first: None, .. } => (0, 0, 0),
        Keys::Counted { first: Some(first), .. } => (first as i64, first as i64, 1),
        Keys::Range { first, last, step } => (first as i64, i64::from(last), step as i64),
    };
    for number in [first, last, step] {
        reply.integer(number);
    }
    let categories: Vec<String> =
        details::categories(entry).map(|category| format!("@{category}")).collect();
    names(&categories, reply);
    let tips = details::tips(entry);
    reply.set(tips.len());
    for tip in tips {
        reply.bulk(tip);
    }
    key_specs(entry, reply);
    reply.set(subs.len());
    for sub in subs {
        describe(sub, &[], reply);
    }
}

/// A set of flags or categories.
pub(super) fn names<T: AsRef<str>>(names: &[T], reply: &mut Reply<'_>) {
    reply.set(names.len());
    for name in names {
        reply.simple(name.as_ref());
    }
}

/// One for each list of what is done with keys: one key each, and the last list all the others.
fn key_specs(entry: &Entry, reply: &mut Reply<'_>) {
    let access = details::access(entry);
    let specs = if matches!(entry.keys(), Keys::None | Keys::All) { 0 } else { access.len() };
    reply.set(specs);
    for (number, access) in access.iter().enumerate().take(specs) {
        let is_last = number + 1 == specs;
        match entry.keys() {
            Keys::None | Keys::All => {}
            Keys::Range { first, last, step } if is_last => {
                let first = first + number * step;
                let last = if last < 0 { last } else { last - first as i32 };
                key_range(access, (first, last, step), reply);
            }
            Keys::Range { first, step, .. } => {
                key_range(access, (first + number * step, 0, 1), reply);
            }
            Keys::Counted { count, .. } if is_last => counted_keys(access, count, reply),
            Keys::Counted { first, .. } => key_range(access, (first.unwrap_or(1), 0, 1), reply),
        }
    }
}

/// Keys from the word `first` on; the last counted from there, or from the end.
fn key_range(access: &[&str], (first, last, step): (usize, i32, usize), reply: &mut Reply<'_>) {
    begin_search(access, first, reply);
    let range = [("lastkey", i64::from(last)), ("keystep", step as i64), ("limit", 0)];
    search("range", &range, reply);
}

/// As many keys as the word at `count` says, behind it.
fn counted_keys(access: &[&str], count: usize, reply: &mut Reply<'_>) {
    begin_search(access, count, reply);
    search("keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)], reply);
}

/// The map of a key specification, but for how the keys are found from the word `first` on.
fn begin_search(access: &[&str], first: usize, reply: &mut Reply<'_>) {
    reply.map(3);
    reply.bulk("flags");
    names(access, reply);
    reply.bulk("begin_search");
    search("index", &[("index", first as i64)], reply);
    reply.bulk("find_keys");
}

fn search(kind: &str, spec: &[(&str, i64)], reply: &mut Reply<'_>) {
    reply.map(2);
    reply.bulk("type");
    reply.bulk(kind);
    reply.bulk("spec");
    reply.map(spec.len());
    for (name, value) in spec {
        reply.bulk(name);
        reply.integer(*value);
    }
}

/// What a request does with the key of this number among its keys.
pub(super) fn access(entry: &Entry, number: usize, request: Args<'_>) -> &'static [&'static str] {
    let access = details::access(entry);
    let access = access.get(number).or(access.last()).copied().unwrap_or_default();
    let varies = access.contains(&"variable_flags");
    if varies && !request.skip(3).iter().any(|word| word.eq_ignore_ascii_case(b"GET")) {
        return &["OW", "update"];
    }
    access.strip_suffix(&["variable_flags"]).unwrap_or(access)
}

/// The map of COMMAND DOCS.
pub(super) fn document(entry: &Entry, subs: &[Entry], reply: &mut Reply<'_>) {
    let arguments = usage::arguments(entry.spec.name);
    reply.map(4 + usize::from(!arguments.is_empty()) + usize::from(!subs.is_empty()));
    let lines = [
        ("summary", entry.summary()),
        ("since", entry.spec.since),
        ("group", entry.spec.group.name()),
        ("complexity", entry.spec.complexity),
    ];
    for (name, value) in lines {
        reply.bulk(name);
        reply.bulk(value);
    }
    if !arguments.is_empty() {
        reply.bulk("arguments");
        usage::write(arguments, reply);
    }
    if subs.is_empty() {
        return;
    }
    reply.bulk("subcommands");
    reply.map(subs.len());
    for sub in subs {
        reply.bulk(&sub.name);
        document(sub, &[], reply);
    }
}
