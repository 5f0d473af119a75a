//! A map by database and key, for what a shard keeps about some of its keys beside the tables.
//!
//! A look-up borrows the key: nothing is allocated to find that a key is not there. Each key is
//! kept with its tag, so that it can be looked up in a table without its whole hash.
//!
//! Invariant: a database with no key is not kept, so an empty map says so with one look.

use std::collections::BTreeMap;

use super::key::KeyRef;

#[derive(Debug)]
struct Tagged<T> {
    tag: u32,
    value: T,
}

#[derive(Debug)]
pub(super) struct Places<T> {
    databases: BTreeMap<usize, BTreeMap<Box<[u8]>, Tagged<T>>>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { databases: BTreeMap::new() }
    }
}

impl<T> Places<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.databases.is_empty()
    }

    pub(super) fn get(&self, db: usize, key: &[u8]) -> Option<&T> {
        self.databases.get(&db)?.get(key).map(|tagged| &tagged.value)
    }

    pub(super) fn get_mut(&mut self, db: usize, key: &[u8]) -> Option<&mut T> {
        self.databases.get_mut(&db)?.get_mut(key).map(|tagged| &mut tagged.value)
    }

    pub(super) fn get_or_default(&mut self, db: usize, key: KeyRef<'_>) -> &mut T
    where
        T: Default,
    {
        let keys = self.databases.entry(db).or_default();
        if !keys.contains_key(key.bytes()) {
            keys.insert(key.bytes().into(), Tagged { tag: key.tag(), value: T::default() });
        }
        &mut keys.get_mut(key.bytes()).expect("if it was not there, it has been put there").value
    }

    pub(super) fn remove(&mut self, db: usize, key: &[u8]) {
        if let Some(keys) = self.databases.get_mut(&db) {
            keys.remove(key);
            if keys.is_empty() {
                self.databases.remove(&db);
            }
        }
    }

    /// The keys of a database, in order; fit to be looked up within the shard only.
    pub(super) fn of_db(&mut self, db: usize) -> impl Iterator<Item = (KeyRef<'_>, &mut T)> {
        self.databases.get_mut(&db).into_iter().flatten().map(|(key, tagged)| in_shard(key, tagged))
    }

    /// All keys with their databases, in order.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (usize, KeyRef<'_>, &mut T)> {
        self.databases.iter_mut().flat_map(|(db, keys)| {
            keys.iter_mut().map(|(key, tagged)| {
                let (key, value) = in_shard(key, tagged);
                (*db, key, value)
            })
        })
    }
}

fn in_shard<'p, T>(key: &'p [u8], tagged: &'p mut Tagged<T>) -> (KeyRef<'p>, &'p mut T) {
    (KeyRef::within_shard(key, tagged.tag), &mut tagged.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_kept_with_its_tag_until_it_is_removed() {
        let mut places: Places<u8> = Places::default();
        *places.get_or_default(3, KeyRef::within_shard(b"k", 7)) = 5;
        assert_eq!((places.get(3, b"k"), places.get(0, b"k")), (Some(&5), None));
        let kept: Vec<_> = places
            .all()
            .map(|(db, key, value)| (db, key.bytes().to_vec(), key.tag(), *value))
            .collect();
        assert_eq!(kept, [(3, b"k".to_vec(), 7, 5)]);
        assert_eq!((places.of_db(3).count(), places.of_db(0).count()), (1, 0));
        places.remove(3, b"k");
        assert!(places.is_empty());
    }
}
