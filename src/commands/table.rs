//! The table of commands: every family's rows, found by name.

use hashbrown::HashTable;

use super::spec::{Spec, Sub};
use super::{FAMILIES, KeyHasher};
use crate::protocol::{Args, Error};

/// Longest name of a command; a longer word is no command.
const NAME_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Table {
    specs: Vec<&'static Spec>,
    by_name: HashTable<u16>,
    hasher: KeyHasher,
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
        Self { specs, by_name, hasher }
    }

    /// By number, in alphabetical order.
    pub(crate) fn specs(&self) -> &[&'static Spec] {
        &self.specs
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

    /// The subcommand that a request of this parent names, its arity checked.
    pub(crate) fn subcommand(&self, spec: &Spec, args: Args<'_>) -> Result<&'static Sub, Error> {
        let word = args.get(1).unwrap_or_default();
        let sub = find_subcommand(spec, word)
            .ok_or_else(|| Error::unknown_subcommand(spec.name, word))?;
        if !sub.arity.allows(args.len()) {
            return Err(Error::wrong_arity(&format!("{}|{}", spec.name, sub.name)));
        }
        Ok(sub)
    }

    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.key(name).hash()
    }
}

pub(super) fn find_subcommand(spec: &Spec, word: &[u8]) -> Option<&'static Sub> {
    spec.subcommands.iter().find(|sub| sub.name.as_bytes().eq_ignore_ascii_case(word))
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
    fn names_are_unique_upper_case_and_short() {
        let table = table();
        for pair in table.specs().windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands twice", pair[0].name);
        }
        for spec in table.specs() {
            assert!(spec.name.len() <= NAME_MAX);
            assert_eq!(spec.name, spec.name.to_ascii_uppercase());
            assert!(spec.summary.ends_with('.'), "{}: a summary is a sentence", spec.name);
        }
    }

    #[test]
    fn other_words_are_no_commands() {
        for name in ["", "NOSUCH", "G", "GETT", &"X".repeat(100)] {
            assert!(table().find(name.as_bytes()).is_none(), "{name}");
        }
    }
}
