//! How a shard takes back what a transaction has done to it.
//!
//! A script that turns out to need keys it did not name is run again from the start, and what it
//! did until then has to go. While a shard is told to, it notes for each key how to bring back
//! what was there: an entry that is replaced or removed is kept, a string or a limiter that is
//! edited is copied once, and a collection notes its own changes element by element, so that a
//! change to a large one costs no copy of it. FLUSH and SWAPDB cannot be taken back: who may do
//! them holds every shard and need not.
//!
//! Invariant: once what a key held is kept, nothing more is noted of it; all that happened to
//! the key before stands in what is kept, and comes back from there.

use std::borrow::Cow;

use super::key::KeyRef;
use super::places::Places;
use super::shard::Shard;
use super::table::{Entry, Slot};
use super::value::{Undoing, Value};
use super::view::View;
use crate::size::allocated_bytes;
use crate::time::Timestamp;

/// What is kept to take a transaction back: it could be run over all shards for less.
const UNDO_BYTES_MAX: usize = 64 << 20;

/// What a key held when it was first made, replaced or removed, or edited as a whole.
#[derive(Debug, Default)]
enum Before {
    /// None of this has happened.
    #[default]
    Open,
    Nothing,
    Entry(Box<Entry>),
}

/// What is noted of one key.
#[derive(Debug, Default)]
struct Noted {
    before: Before,
    /// The collection has noted what was changed in it.
    rolls_back: bool,
    /// The first deadline, where it was moved.
    expires: Option<Timestamp>,
}

impl Noted {
    fn is_open(&self) -> bool {
        matches!(self.before, Before::Open)
    }
}

/// What is noted of all keys of a shard.
#[derive(Debug)]
pub(super) struct Undo {
    keys: Places<Noted>,
    bytes: usize,
}

impl Undo {
    fn of(&mut self, db: usize, key: KeyRef<'_>) -> &mut Noted {
        if self.keys.get(db, key.bytes()).is_none() {
            self.bytes += size_of::<Noted>() + allocated_bytes(key.bytes().len());
        }
        self.keys.get_or_default(db, key)
    }

    fn keep(&mut self, db: usize, entry: Cow<'_, Entry>) {
        let noted = self.of(db, entry.key_ref());
        if noted.is_open() {
            let bytes = entry.whole_bytes() + entry.value.undo_bytes();
            noted.before = Before::Entry(Box::new(entry.into_owned()));
            self.bytes += bytes;
        }
    }

    /// What a collection has noted took `before_bytes`, and takes `after_bytes` now.
    pub(super) fn count(&mut self, before_bytes: usize, after_bytes: usize) {
        self.bytes += after_bytes.saturating_sub(before_bytes);
    }
}

impl Shard {
    pub(super) fn begin_undo(&mut self) {
        self.undo = Some(Undo { keys: Places::default(), bytes: 0 });
    }

    /// What was done stays.
    pub(super) fn forget_undo(&mut self) {
        let Some(mut undo) = self.undo.take() else { return };
        for (db, key, noted) in undo.keys.all() {
            if noted.rolls_back
                && let Some(slot) = self.slot(db, key)
            {
                self.revalue(db, slot, Value::forget_undo);
            }
        }
    }

    pub(super) fn roll_back(&mut self) {
        let Some(mut undo) = self.undo.take() else { return };
        for (db, key, noted) in undo.keys.all() {
            let slot = self.slot(db, key);
            match (std::mem::take(&mut noted.before), slot) {
                (Before::Entry(entry), _) => self.store(db, key, *entry),
                (Before::Nothing, Some(slot)) => self.remove(db, slot),
                (Before::Nothing, None) | (Before::Open, _) => {}
            }
            let Some(slot) = self.slot(db, key) else { continue };
            if noted.rolls_back {
                self.revalue(db, slot, Value::roll_back);
            }
            if let Some(expires) = noted.expires {
                self.set_expires(db, slot, expires);
            }
        }
    }

    /// The value of the slot is about to change in place. Returns what it has noted until now,
    /// in bytes.
    pub(super) fn note_edit(&mut self, db: usize, slot: Slot) -> usize {
        let Some(mut undo) = self.undo.take() else { return 0 };
        let entry = self.entry(db, slot);
        let bytes = entry.value.undo_bytes();
        let noted = undo.of(db, entry.key_ref());
        if noted.is_open() {
            match entry.value.begin_undo() {
                Undoing::GoesOn => {}
                Undoing::Begins => noted.rolls_back = true,
                Undoing::Whole => undo.keep(db, Cow::Borrowed(entry)),
            }
        }
        self.undo = Some(undo);
        bytes
    }

    pub(super) fn note_expires(&mut self, db: usize, slot: Slot) {
        let Some(mut undo) = self.undo.take() else { return };
        let entry = self.entry(db, slot);
        let noted = undo.of(db, entry.key_ref());
        if noted.is_open() {
            noted.expires.get_or_insert(entry.expires);
        }
        self.undo = Some(undo);
    }

    /// The key held nothing until now.
    #[inline]
    pub(super) fn note_new(&mut self, db: usize, key: KeyRef<'_>) {
        let Some(undo) = &mut self.undo else { return };
        let noted = undo.of(db, key);
        if noted.is_open() {
            noted.before = Before::Nothing;
        }
    }

    /// The entry stood under its key until now.
    #[inline]
    pub(super) fn note_gone(&mut self, db: usize, entry: Cow<'_, Entry>) {
        if let Some(undo) = &mut self.undo {
            undo.keep(db, entry);
        }
    }
}

/// What is done through it is taken back when it is dropped, also by a panic, unless it is kept;
/// but for FLUSH and SWAPDB.
#[derive(Debug)]
pub(crate) struct Revocable<'v, 'e> {
    view: &'v mut View<'e>,
}

impl<'e> Revocable<'_, 'e> {
    pub(crate) fn view(&mut self) -> &mut View<'e> {
        self.view
    }

    /// What was done stays.
    pub(crate) fn keep(self) {
        self.view.guards.iter_mut().for_each(|(_, shard)| shard.forget_undo());
    }
}

impl Drop for Revocable<'_, '_> {
    /// Does nothing to what was kept: nothing is noted of it any more.
    fn drop(&mut self) {
        self.view.guards.iter_mut().for_each(|(_, shard)| shard.roll_back());
    }
}

impl<'e> View<'e> {
    pub(crate) fn revocable(&mut self) -> Revocable<'_, 'e> {
        self.guards.iter_mut().for_each(|(_, shard)| shard.begin_undo());
        Revocable { view: self }
    }

    /// Whether so much is kept to be brought back that it must not become more.
    pub(crate) fn is_undo_full(&self) -> bool {
        let undo = self.guards.iter().filter_map(|(_, shard)| shard.undo.as_ref());
        undo.map(|undo| undo.bytes).sum::<usize>() > UNDO_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{Hash, SortedSet};
    use crate::engine::{Cursor, Engine, Expires, Kept, Scope};
    use crate::protocol::Error;

    const NOW: Timestamp = Timestamp::from_micros(1);

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
        let now = NOW;
        let key = |name: &'static str| engine.key(name.as_bytes());
        let set = |value: f64| move |set: &mut SortedSet| Ok((set.set(b"m", value), true));
        engine.transact(Scope::All, 0, now, |view| {
            view.insert(key("text"), Value::string(b"before"), Timestamp::MAX);
            view.change::<SortedSet, _>(key("sorted"), set(1.0)).expect("a sorted set");
        });
        let (before, held) = (shown(&engine), engine.used_bytes());
        engine.transact(Scope::All, 0, now, |view| {
            let mut revocable = view.revocable();
            let view = revocable.view();
            view.insert(key("text"), Value::string(b"after"), Timestamp::MAX);
            view.set_expires(key("text"), Timestamp::from_micros(500));
            view.remove(key("text"));
            view.change::<SortedSet, _>(key("sorted"), set(2.0)).expect("a sorted set");
            view.remove(key("sorted"));
            view.change::<SortedSet, _>(key("sorted"), set(3.0)).expect("a sorted set");
            let field = |hash: &mut Hash| Ok((hash.set(b"f", b"v"), true));
            view.change::<Hash, _>(key("new"), field).expect("a hash");
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

    #[test]
    fn what_a_kept_change_frees_is_charged_no_more() {
        let engine = Engine::new(1, 7);
        let key = engine.key(b"z");
        engine.transact(Scope::All, 0, NOW, |view| {
            let fill = |set: &mut SortedSet| {
                for number in 0..5_000_u32 {
                    set.set(&number.to_be_bytes(), f64::from(number));
                }
                Ok(((), true))
            };
            view.change::<SortedSet, _>(key, fill).expect("a sorted set");
        });
        engine.transact(Scope::All, 0, NOW, |view| {
            let mut revocable = view.revocable();
            let cut = |set: &mut SortedSet| Ok((set.remove_ranks(0..4_990), true));
            revocable.view().change::<SortedSet, _>(key, cut).expect("a sorted set");
            revocable.keep();
        });
        engine.transact(Scope::All, 0, NOW, |view| view.remove(key));
        assert_eq!(engine.used_bytes(), 0);
    }

    fn append(view: &mut View<'_>, key: KeyRef<'_>) {
        let push = |value: &mut Value, _| {
            value.make_raw().ok_or(Error::WrongType)?.push(b'y');
            Ok::<_, Error>(((), Kept::Changed { expires: Expires::Keep }))
        };
        view.edit(key, push).expect("a string");
    }

    #[test]
    fn string_is_copied_once_however_often_it_is_edited() {
        let engine = Engine::new(1, 7);
        let key = engine.key(b"s");
        engine.transact(Scope::All, 0, NOW, |view| {
            view.insert(key, Value::string(&vec![b'x'; 1 << 20]), Timestamp::MAX);
            let mut revocable = view.revocable();
            let view = revocable.view();
            (0..500).for_each(|_| append(view, key));
            let bytes = view.guards[0].1.undo.as_ref().expect("it has begun").bytes;
            assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
            assert!(!view.is_undo_full());
        });
    }

    #[test]
    fn what_is_kept_of_many_values_and_of_a_collection_becomes_full() {
        const VALUE: &[u8] = &[b'x'; 1 << 20];
        let remove_a_string = |view: &mut View<'_>, number: u32| {
            let name = number.to_be_bytes();
            let key = view.key(&name);
            view.remove(key);
        };
        let fill_a_hash = |view: &mut View<'_>, number: u32| {
            let key = view.key(b"hash");
            let set = |hash: &mut Hash| {
                Ok((hash.set(b"f", &[VALUE, &number.to_be_bytes()].concat()), true))
            };
            view.change::<Hash, _>(key, set).expect("a hash");
        };
        for strings in [true, false] {
            let engine = Engine::new(1, 7);
            engine.transact(Scope::All, 0, NOW, |view| {
                fill_a_hash(view, 0);
                for number in 0..70_u32 {
                    let name = number.to_be_bytes();
                    view.insert(engine.key(&name), Value::string(VALUE), Timestamp::MAX);
                }
                let mut revocable = view.revocable();
                let view = revocable.view();
                let full = (0..70).find(|number| {
                    if strings {
                        remove_a_string(view, *number);
                    } else {
                        fill_a_hash(view, *number);
                    }
                    view.is_undo_full()
                });
                assert_eq!(full, Some(63));
            });
        }
    }

    #[test]
    fn panic_takes_back_what_was_done_and_notes_nothing_more() {
        let engine = Engine::new(1, 7);
        let key = engine.key(b"s");
        engine.transact(Scope::All, 0, NOW, |view| {
            view.insert(key, Value::string(b"before"), Timestamp::MAX);
        });
        let (before, held) = (shown(&engine), engine.used_bytes());
        let run = || {
            engine.transact(Scope::All, 0, NOW, |view| {
                let mut revocable = view.revocable();
                (0..100).for_each(|_| append(revocable.view(), key));
                panic!("a command");
            })
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("it panics");
        assert_eq!((shown(&engine), engine.used_bytes()), (before, held));
        engine.transact(Scope::All, 0, NOW, |view| {
            assert!(view.guards.iter().all(|(_, shard)| shard.undo.is_none()));
        });
    }
}
