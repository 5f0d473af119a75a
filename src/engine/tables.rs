//! The tables of one shard: its part of each database, and of the space of policy buckets.
//!
//! The space of buckets is numbered like a database, so that expiry, undo and changes treat it
//! alike; its number is beyond all that SELECT can choose, so no request gets there by a name.
//! The first database and the buckets are there for free, the others come when first written to.

use std::ops::{Index, IndexMut};

use super::DATABASES;
use super::table::{Held, Table};

/// The number of the space of policy buckets.
pub(crate) const BUCKETS: usize = DATABASES;

#[derive(Debug, Default)]
pub(super) struct Tables {
    first: Table,
    buckets: Table,
    /// The second database and those after it.
    others: Vec<Table>,
}

impl Tables {
    #[inline]
    pub(super) fn get(&self, db: usize) -> Option<&Table> {
        match db {
            0 => Some(&self.first),
            BUCKETS => Some(&self.buckets),
            db => self.others.get(db - 1),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, db: usize) -> Option<&mut Table> {
        match db {
            0 => Some(&mut self.first),
            BUCKETS => Some(&mut self.buckets),
            db => self.others.get_mut(db - 1),
        }
    }

    /// From here on the database has a table.
    #[inline]
    pub(super) fn make(&mut self, db: usize) {
        while self.get(db).is_none() {
            self.others.push(Table::default());
        }
    }

    /// Both have a table.
    pub(super) fn swap(&mut self, db: usize, other: usize) {
        if db == other {
            return;
        }
        let one = std::mem::take(&mut self[db]);
        self[db] = std::mem::replace(&mut self[other], one);
    }

    #[inline]
    pub(super) fn held(&self) -> Held {
        let held = self.first.held().plus(self.buckets.held());
        self.others.iter().fold(held, |held, table| held.plus(table.held()))
    }

    /// The next one with anything to expire, on a lap over all of them; the buckets are the last.
    pub(super) fn next_expiring(&self, db: usize) -> Option<usize> {
        let next = |db: usize| match db {
            BUCKETS => None,
            db if db < self.others.len() => Some(db + 1),
            _ => Some(BUCKETS),
        };
        let mut later = std::iter::successors(next(db), |db| next(*db));
        later.find(|db| self[*db].expiring() > 0)
    }
}

impl Index<usize> for Tables {
    type Output = Table;

    #[inline]
    fn index(&self, db: usize) -> &Table {
        self.get(db).expect("a slot or an entry was found there, or it has just been made")
    }
}

impl IndexMut<usize> for Tables {
    #[inline]
    fn index_mut(&mut self, db: usize) -> &mut Table {
        self.get_mut(db).expect("a slot or an entry was found there, or it has just been made")
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Entry;
    use super::super::{KeyHasher, Value};
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn lap_visits_what_may_expire_and_the_buckets_last() {
        let lap = |tables: &Tables| -> Vec<usize> {
            std::iter::successors(Some(0), |db| tables.next_expiring(*db)).collect()
        };
        let hasher = KeyHasher::new(7);
        let put = |tables: &mut Tables, db, expires| {
            tables.make(db);
            let key = hasher.key(b"k");
            tables[db].insert(Entry::new(key, Value::Integer(1), expires, Timestamp::EPOCH));
        };
        let mut tables = Tables::default();
        assert_eq!(lap(&tables), [0]);
        put(&mut tables, BUCKETS, Timestamp::from_millis(1));
        put(&mut tables, 2, Timestamp::from_millis(1));
        put(&mut tables, 3, Timestamp::MAX);
        assert_eq!(lap(&tables), [0, 2, BUCKETS]);
        tables.swap(2, 3);
        tables.swap(2, 2);
        assert_eq!(lap(&tables), [0, 3, BUCKETS]);
    }
}
