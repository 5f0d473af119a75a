//! The table of commands: every family's rows, found by name.
//!
//! Commands are numbered in alphabetical order; after them come the subcommands, those of one
//! command together. The numbers index what is counted, and live no longer than the process.

use hashbrown::HashTable;

use super::details;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use super::{FAMILIES, KeyHasher};
use crate::protocol::{Args, Error};

/// Longest name of a command; a longer word is no command.
const NAME_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Table {
    specs: Vec<&'static Spec>,
    entries: Vec<Entry>,
    /// By number of the command, that of its first subcommand.
    subs_from: Vec<u16>,
    by_name: HashTable<u16>,
    hasher: KeyHasher,
}

/// A command, or one of its subcommands.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// As Redis lists it: `get`, `client|list`.
    pub(crate) name: String,
    pub(crate) spec: &'static Spec,
    pub(crate) sub: Option<&'static Sub>,
    /// All that Redis tells; the gate asks for them with each request of a transaction.
    pub(super) flags: Flags,
}

impl Entry {
    fn new(name: &str, spec: &'static Spec, sub: Option<&'static Sub>) -> Self {
        let entry = Self { name: name.to_ascii_lowercase(), spec, sub, flags: Flags::NONE };
        Self { flags: details::flags(&entry), ..entry }
    }

    pub(crate) fn arity(&self) -> Arity {
        self.sub.map_or(self.spec.arity, |sub| sub.arity)
    }

    pub(crate) fn keys(&self) -> Keys {
        self.sub.map_or(self.spec.keys, |sub| sub.keys)
    }

    /// Whether a request asks for what its words do not name: the whole keyspace, or buckets of
    /// a tenant.
    pub(super) fn sees_all(&self, args: Args<'_>) -> bool {
        let names_tenant = || args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"TENANT"));
        self.keys() == Keys::All || self.spec.group == Group::RateLimit && names_tenant()
    }

    pub(crate) fn handler(&self) -> Handler {
        self.sub.map_or(self.spec.handler, |sub| sub.handler)
    }

    /// For operators, where there is a password of theirs, and never shown to who monitors.
    pub(super) fn is_administrative(&self) -> bool {
        self.flags.has(Flags::ADMIN)
    }

    pub(crate) fn summary(&self) -> &'static str {
        self.sub.map_or(self.spec.summary, |sub| sub.summary)
    }
}

impl Table {
    pub(super) fn new(hasher: KeyHasher) -> Self {
        let mut specs: Vec<&'static Spec> = FAMILIES.iter().copied().flatten().collect();
        specs.sort_unstable_by_key(|spec| spec.name);
        let hash = |number: &u16| hasher.key(specs[usize::from(*number)].name.as_bytes()).hash();
        let mut by_name = HashTable::new();
        for number in 0..specs.len() as u16 {
            by_name.insert_unique(hash(&number), number, hash);
        }
        let mut entries: Vec<Entry> =
            specs.iter().map(|spec| Entry::new(spec.name, spec, None)).collect();
        let mut subs_from = Vec::new();
        for spec in &specs {
            subs_from.push(entries.len() as u16);
            entries.extend(
                spec.subcommands
                    .iter()
                    .map(|sub| Entry::new(&format!("{}|{}", spec.name, sub.name), spec, Some(sub))),
            );
        }
        Self { specs, entries, subs_from, by_name, hasher }
    }

    /// By number, in alphabetical order.
    pub(crate) fn specs(&self) -> &[&'static Spec] {
        &self.specs
    }

    /// Commands and subcommands, by number.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn entry(&self, number: u16) -> Option<&Entry> {
        self.entries.get(usize::from(number))
    }

    /// The subcommands of a command, by its number.
    pub(crate) fn subs(&self, number: u16) -> &[Entry] {
        let from = self.subs_from.get(usize::from(number)).copied().map_or(0, usize::from);
        let count = self.specs.get(usize::from(number)).map_or(0, |spec| spec.subcommands.len());
        self.entries.get(from..from + count).unwrap_or_default()
    }

    /// The command of this name, in any case, and its number.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<(u16, &'static Spec)> {
        let mut upper = [0_u8; NAME_MAX];
        let upper = upper.get_mut(..name.len())?;
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        let number = *self.by_name.find(self.hash(upper), |number| {
            self.specs[usize::from(*number)].name.as_bytes() == upper
        })?;
        Some((number, self.specs[usize::from(number)]))
    }

    /// The number of what a request names: its command, or its subcommand where it has such.
    #[inline]
    pub(crate) fn resolve(&self, args: Args<'_>) -> Result<u16, Error> {
        let (number, spec) = self.find(args.name()).ok_or_else(|| Error::unknown_command(args))?;
        match args.get(1) {
            Some(word) if !spec.subcommands.is_empty() => self
                .sub_number(number, spec, word)
                .ok_or_else(|| Error::unknown_subcommand(spec.name, word)),
            _ => Ok(number),
        }
    }

    /// A command or subcommand by the name that it is listed under: `get`, `client|list`.
    pub(crate) fn named(&self, name: &[u8]) -> Option<u16> {
        let mut words = name.splitn(2, |byte| *byte == b'|');
        let (number, spec) = self.find(words.next()?)?;
        match words.next() {
            Some(word) => self.sub_number(number, spec, word),
            None => Some(number),
        }
    }

    fn sub_number(&self, number: u16, spec: &Spec, word: &[u8]) -> Option<u16> {
        let is_named = |sub: &Sub| sub.name.as_bytes().eq_ignore_ascii_case(word);
        let place = spec.subcommands.iter().position(is_named)?;
        Some(self.subs_from.get(usize::from(number))? + place as u16)
    }

    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.key(name).hash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(KeyHasher::new(1))
    }

    #[test]
    fn every_command_is_found_under_its_name_in_any_case() {
        let table = table();
        for (number, spec) in table.specs().iter().enumerate() {
            let found = table.find(spec.name.to_ascii_lowercase().as_bytes());
            assert_eq!(found.map(|(at, spec)| (at, spec.name)), Some((number as u16, spec.name)));
        }
    }

    #[test]
    fn every_entry_is_found_under_its_listed_name() {
        let table = table();
        for (number, entry) in table.entries().iter().enumerate() {
            let upper = entry.name.to_ascii_uppercase();
            assert_eq!(table.named(upper.as_bytes()), Some(number as u16), "{upper}");
        }
        for name in ["client|", "client|nosuch", "get|", "|", "client|list|"] {
            assert_eq!(table.named(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn subcommands_stand_together_behind_all_commands() {
        let table = table();
        for (number, spec) in table.specs().iter().enumerate() {
            let names: Vec<&str> = spec.subcommands.iter().map(|sub| sub.name).collect();
            let subs = table.subs(number as u16).iter();
            let found: Vec<&str> = subs.filter_map(|entry| Some(entry.sub?.name)).collect();
            assert_eq!(found, names, "{}", spec.name);
        }
    }

    #[test]
    fn names_are_unique_upper_case_and_short() {
        let table = table();
        for pair in table.specs().windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands twice", pair[0].name);
        }
        for spec in table.specs() {
            assert!(spec.name.len() <= NAME_MAX);
            assert_eq!(spec.name, spec.name.to_ascii_uppercase());
        }
        for entry in table.entries() {
            assert!(entry.summary().ends_with('.'), "{}: a summary is a sentence", entry.name);
        }
    }

    #[test]
    fn other_words_are_no_commands() {
        for name in ["", "NOSUCH", "G", "GETT", &"X".repeat(100)] {
            assert!(table().find(name.as_bytes()).is_none(), "{name}");
        }
    }
}
