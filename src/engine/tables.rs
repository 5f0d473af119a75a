//! The tables of one shard: its part of each database, and of the space of policy buckets.
//!
//! The space of buckets is numbered like a database, so that expiry, undo and effects treat it
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
        let one = std::mem::take(&mut self[db]);
        self[db] = std::mem::replace(&mut self[other], one);
    }

    #[inline]
    pub(super) fn held(&self) -> Held {
        let held = self.first.held().plus(self.buckets.held());
        self.others.iter().fold(held, |held, table| held.plus(table.held()))
    }

    /// The one that a lap over all of them visits next; the buckets are the last.
    pub(super) fn after(&self, db: usize) -> Option<usize> {
        match db {
            BUCKETS => None,
            db if db < self.others.len() => Some(db + 1),
            _ => Some(BUCKETS),
        }
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
    use super::*;

    #[test]
    fn lap_visits_every_database_there_is_and_then_the_buckets() {
        let lap = |tables: &Tables| -> Vec<usize> {
            std::iter::successors(Some(0), |db| tables.after(*db)).collect()
        };
        let mut tables = Tables::default();
        assert_eq!(lap(&tables), [0, BUCKETS]);
        tables.make(2);
        assert_eq!(lap(&tables), [0, 1, 2, BUCKETS]);
        tables.make(BUCKETS);
        tables.make(DATABASES - 1);
        assert_eq!(lap(&tables), (0..=BUCKETS).collect::<Vec<_>>());
    }
}
