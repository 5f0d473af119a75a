//! How a shard takes back what a transaction has done to it.
//!
//! A script that turns out to need keys it did not name is run again from the start, and what it
//! did until then has to go. While a shard is told to, it notes the inverse of each change: an
//! entry that is replaced or removed is kept, and a collection notes its own changes element by
//! element, so that a change to a large one costs no copy of it. FLUSH and SWAPDB cannot be
//! taken back: who may do them holds every shard and need not.

use super::effect::Mark;
use super::key::{Key, KeyRef};
use super::shard::Shard;
use super::table::{Entry, Slot};
use super::value::{Undoing, Value};
use super::view::View;
use crate::time::Timestamp;

/// The inverse of one change of one shard.
#[derive(Debug)]
enum Inverse {
    /// The key held this entry, or nothing.
    Put {
        db: usize,
        key: Key,
        tag: u32,
        before: Option<Box<Entry>>,
    },
    /// The collection under the key has noted what was changed in it.
    RollBack {
        db: usize,
        key: Key,
        tag: u32,
    },
    Expire {
        db: usize,
        key: Key,
        tag: u32,
        expires: Timestamp,
    },
}

/// The inverses, oldest first.
#[derive(Debug)]
pub(super) struct Undo {
    inverses: Vec<Inverse>,
    effects: Mark,
}

impl Shard {
    pub(super) fn begin_undo(&mut self) {
        self.undo = Some(Undo { inverses: Vec::new(), effects: self.effects.mark() });
    }

    /// What was done stays.
    pub(super) fn forget_undo(&mut self) {
        for inverse in self.undo.take().map(|undo| undo.inverses).unwrap_or_default() {
            if let Inverse::RollBack { db, key, tag } = inverse
                && let Some(slot) = self.slot(db, KeyRef::within_shard(key.as_bytes(), tag))
            {
                self.entry(db, slot).value.forget_undo();
            }
        }
    }

    pub(super) fn roll_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for inverse in undo.inverses.into_iter().rev() {
            match inverse {
                Inverse::Put { db, key, tag, before } => {
                    let key = KeyRef::within_shard(key.as_bytes(), tag);
                    match (before, self.slot(db, key)) {
                        (Some(entry), _) => self.store(db, key, *entry),
                        (None, Some(slot)) => drop(self.remove(db, slot)),
                        (None, None) => {}
                    }
                }
                Inverse::RollBack { db, key, tag } => {
                    let key = KeyRef::within_shard(key.as_bytes(), tag);
                    if let Some(slot) = self.slot(db, key) {
                        self.revalue(db, slot, Value::roll_back);
                    }
                }
                Inverse::Expire { db, key, tag, expires } => {
                    let key = KeyRef::within_shard(key.as_bytes(), tag);
                    if let Some(slot) = self.slot(db, key) {
                        self.set_expires(db, slot, expires);
                    }
                }
            }
        }
        self.effects.rewind(undo.effects);
    }

    /// The value of the slot is about to change in place.
    pub(super) fn note_edit(&mut self, db: usize, slot: Slot) {
        let Some(mut undo) = self.undo.take() else { return };
        let entry = self.entry(db, slot);
        let (key, tag) = (entry.key.clone(), entry.tag());
        match entry.value.begin_undo() {
            Undoing::GoesOn => {}
            Undoing::Begins => undo.inverses.push(Inverse::RollBack { db, key, tag }),
            Undoing::Whole => {
                let before = Some(Box::new(entry.clone()));
                undo.inverses.push(Inverse::Put { db, key, tag, before });
            }
        }
        self.undo = Some(undo);
    }

    pub(super) fn note_expires(&mut self, db: usize, slot: Slot) {
        let Some(mut undo) = self.undo.take() else { return };
        let entry = self.entry(db, slot);
        let (key, tag, expires) = (entry.key.clone(), entry.tag(), entry.expires);
        undo.inverses.push(Inverse::Expire { db, key, tag, expires });
        self.undo = Some(undo);
    }

    /// The key held this entry until now, or nothing.
    pub(super) fn note_put(&mut self, db: usize, key: KeyRef<'_>, before: Option<&Entry>) {
        let Some(undo) = &mut self.undo else { return };
        let before = before.cloned().map(Box::new);
        let (key, tag) = (Key::new(key.bytes()), key.tag());
        undo.inverses.push(Inverse::Put { db, key, tag, before });
    }
}

impl View<'_> {
    /// From here on the transaction can be taken back, but for FLUSH and SWAPDB.
    pub(crate) fn begin_undo(&mut self) {
        self.guards.iter_mut().for_each(|(_, shard)| shard.begin_undo());
    }

    /// What was done stays.
    pub(crate) fn forget_undo(&mut self) {
        self.guards.iter_mut().for_each(|(_, shard)| shard.forget_undo());
    }

    /// Takes back what was done since [`View::begin_undo`].
    pub(crate) fn roll_back(&mut self) {
        self.guards.iter_mut().for_each(|(_, shard)| shard.roll_back());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{Hash, SortedSet};
    use crate::engine::{Cursor, Engine, Scope};

    /// Everything a shard shows of its keys.
    fn shown(engine: &Engine) -> Vec<(Vec<u8>, String)> {
        engine.transact(Scope::All, 0, Timestamp::from_micros(1), |view| {
            let mut shown = Vec::new();
            view.scan(Cursor::default(), &mut { usize::MAX }, |key, value| {
                let mut encoded = Vec::new();
                value.encode(&mut encoded);
                shown.push((key.to_vec(), format!("{encoded:?}")));
            });
            shown.sort();
            shown
        })
    }

    #[test]
    fn rolled_back_transaction_leaves_what_was_there_before() {
        let engine = Engine::new(1, 7);
        let now = Timestamp::from_micros(1);
        let key = |name: &'static str| engine.key(name.as_bytes());
        let set = |value: f64| move |set: &mut SortedSet| Ok((set.set(b"m", value), true));
        engine.transact(Scope::All, 0, now, |view| {
            view.insert(key("text"), Value::string(b"before"), Timestamp::MAX);
            view.change::<SortedSet, _>(key("sorted"), set(1.0)).expect("a sorted set");
        });
        let (before, held) = (shown(&engine), engine.used_bytes());
        engine.transact(Scope::All, 0, now, |view| {
            view.begin_undo();
            view.insert(key("text"), Value::string(b"after"), Timestamp::MAX);
            view.set_expires(key("text"), Timestamp::from_micros(500));
            view.remove(key("text"));
            view.change::<SortedSet, _>(key("sorted"), set(2.0)).expect("a sorted set");
            view.remove(key("sorted"));
            view.change::<SortedSet, _>(key("sorted"), set(3.0)).expect("a sorted set");
            let field = |hash: &mut Hash| Ok((hash.set(b"f", b"v"), true));
            view.change::<Hash, _>(key("new"), field).expect("a hash");
            view.roll_back();
        });
        assert_eq!(shown(&engine), before);
        assert_eq!(engine.used_bytes(), held);
    }

    #[test]
    fn collection_that_an_edit_empties_is_gone() {
        let engine = Engine::new(1, 7);
        let now = Timestamp::from_micros(1);
        let key = engine.key(b"k");
        engine.transact(Scope::All, 0, now, |view| {
            let add = |hash: &mut Hash| Ok((hash.set(b"f", b"v"), true));
            view.change::<Hash, _>(key, add).expect("a hash");
            let take = |hash: &mut Hash| Ok((hash.remove(b"f"), true));
            view.change_existing::<Hash, _>(key, take).expect("a hash");
            assert!(view.look(key).is_none());
        });
    }
}
