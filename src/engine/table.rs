//! One database's part of one shard: a slab of slots and an index over them.
//!
//! A slot never moves while its key lives. So the index holds 4 bytes a key, SCAN's cursor is
//! simply a slot number (a key present throughout a scan is met exactly once, however the table
//! grows), and expiry walks the slots in memory order instead of keeping an index of deadlines.
//!
//! Invariants: every live slot is in the index under its tag; `free` has a bit for each slot of
//! a chunk that holds no entry; a chunk with no entry owns no memory; what is held counts every
//! entry and every chunk that owns memory, its empty slots included.

use std::ops::ControlFlow;

use hashbrown::HashTable;

use super::key::{Key, KeyRef, index_hash};
use super::value::Value;
use crate::limit::State;
use crate::size::{allocated_bytes, malloc_bytes};
use crate::time::Timestamp;

/// Slots a chunk. Few, so that a shard with few keys stays small, and so that chunks become empty
/// and are given back where most keys have gone.
const CHUNK_SLOTS: usize = 16;

/// The free bits of a chunk with no entry.
const ALL_FREE: u16 = u16::MAX;

const _: () = assert!(ALL_FREE.count_ones() as usize == CHUNK_SLOTS);

/// Where an entry stands: chunk number times [`CHUNK_SLOTS`] plus place.
pub(crate) type Slot = u32;

/// A key and what is remembered under it.
///
/// What a search compares stands first and together: it is mostly on one line of the cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Entry {
    tag: u32,
    /// When the key was last asked for, in whole seconds since the epoch.
    pub(super) accessed_s: u32,
    pub(super) key: Key,
    /// The first moment at which the entry is gone; [`Timestamp::MAX`] for never.
    pub(super) expires: Timestamp,
    pub(super) value: Value,
}

const _: () = assert!(size_of::<Option<Entry>>() <= 80, "a slot is most of a small key's cost");

/// What a chunk takes, however many of its slots are empty.
const CHUNK_BYTES: usize = malloc_bytes(size_of::<Slots>()) + size_of::<Chunk>();

/// An entry's share of the index, at the index's usual filling.
const INDEX_BYTES: usize = 8;

/// What the first key of a table is charged at least.
pub(super) const KEY_BYTES_MIN: usize = CHUNK_BYTES + INDEX_BYTES;

impl Entry {
    pub(super) fn new(key: KeyRef<'_>, value: Value, expires: Timestamp, now: Timestamp) -> Self {
        let accessed_s = seconds(now);
        Self { key: Key::new(key.bytes()), expires, accessed_s, tag: key.tag(), value }
    }

    /// What the entry is charged beside its slot, which the chunk is charged: its share of the
    /// index, and what it owns.
    pub(super) fn charge_bytes(&self) -> usize {
        INDEX_BYTES + allocated_bytes(self.key.heap_bytes()) + self.value.heap_bytes()
    }

    /// What the entry takes in all, its slot included.
    pub(super) fn whole_bytes(&self) -> usize {
        CHUNK_BYTES / CHUNK_SLOTS + self.charge_bytes()
    }

    /// The name that begins with the tenant's, of a bucket or of what holds some.
    pub(super) fn tenant_name(&self) -> &[u8] {
        match &self.value {
            Value::Ticket(ticket) => ticket.tenant(),
            Value::Limit(_)
            | Value::Ledger(_)
            | Value::Integer(_)
            | Value::Text(_)
            | Value::Raw(_)
            | Value::Hash(_)
            | Value::List(_)
            | Value::Set(_)
            | Value::SortedSet(_) => self.key.as_bytes(),
        }
    }

    /// The key, fit to be looked up within its shard.
    pub(super) fn key_ref(&self) -> KeyRef<'_> {
        KeyRef::within_shard(self.key.as_bytes(), self.tag)
    }

    fn is_of(&self, key: KeyRef<'_>) -> bool {
        self.tag == key.tag() && self.key.as_bytes() == key.bytes()
    }

    /// Reads a word of each line of the cache that the entry is on. What this and the two below
    /// return means nothing; it depends on what was read, that is all.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        u64::from(self.tag) ^ self.value.as_limit().map_or(0, State::prefetch)
    }

    /// Reads what the next request will of what the value owns.
    #[inline]
    pub(super) fn prefetch_owned(&self) -> u64 {
        match &self.value {
            Value::Limit(state) => state.prefetch_owned(),
            other => other.prefetch(),
        }
    }

    /// Reads what can be found only by what [`Entry::prefetch_owned`] has read.
    #[inline]
    pub(super) fn prefetch_tail(&self) -> u64 {
        self.value.as_limit().map_or(0, State::prefetch_tail)
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires <= now
    }
}

/// Whole seconds since the epoch; enough until the year 2106.
pub(super) fn seconds(now: Timestamp) -> u32 {
    u32::try_from(now.as_millis() / 1_000).unwrap_or(u32::MAX)
}

type Slots = [Option<Entry>; CHUNK_SLOTS];

#[derive(Debug)]
struct Chunk {
    free: u16,
    /// A bit for each entry that has changed since it was last collected.
    changed: u16,
    /// Nothing where all are free.
    slots: Option<Box<Slots>>,
}

impl Chunk {
    const EMPTY: Self = Self { free: ALL_FREE, changed: 0, slots: None };
}

/// What a table, a shard or the engine holds: the sums that somebody asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Held {
    /// What entries and chunks are charged.
    pub(super) bytes: usize,
    /// Entries that may be evicted, and those of them that have a deadline.
    pub(super) strings: usize,
    pub(super) expiring_strings: usize,
}

impl Held {
    fn of(entry: &Entry) -> Self {
        let is_string = entry.value.may_be_evicted();
        let expires = entry.expires != Timestamp::MAX;
        Self {
            bytes: entry.charge_bytes(),
            strings: usize::from(is_string),
            expiring_strings: usize::from(is_string && expires),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            strings: self.strings + other.strings,
            expiring_strings: self.expiring_strings + other.expiring_strings,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes - other.bytes,
            strings: self.strings - other.strings,
            expiring_strings: self.expiring_strings - other.expiring_strings,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    index: HashTable<Slot>,
    chunks: Vec<Chunk>,
    /// No chunk before this one has a free slot.
    open: usize,
    /// How many entries have a deadline.
    expiring: usize,
    /// How many are marked as changed.
    changed: usize,
    held: Held,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn expiring(&self) -> usize {
        self.expiring
    }

    pub(super) fn held(&self) -> Held {
        self.held
    }

    /// One past the largest slot number in use.
    pub(super) fn slots(&self) -> Slot {
        (self.chunks.len() * CHUNK_SLOTS) as Slot
    }

    /// Looks first where the key was last seen to stand.
    #[inline]
    pub(super) fn find(&self, key: KeyRef<'_>) -> Option<Slot> {
        let is_there = self.entry(key.slot).is_some_and(|entry| entry.is_of(key));
        if is_there { Some(key.slot) } else { self.search(key) }
    }

    fn search(&self, key: KeyRef<'_>) -> Option<Slot> {
        let is_at = |&slot: &Slot| self.entry(slot).is_some_and(|entry| entry.is_of(key));
        self.index.find(index_hash(key.tag()), is_at).copied()
    }

    /// Where the key stands if it is there: not compared, and so without looking at the slot.
    pub(super) fn guess(&self, key: KeyRef<'_>) -> Option<Slot> {
        self.index.iter_hash(index_hash(key.tag())).next().copied()
    }

    pub(super) fn entry(&self, slot: Slot) -> Option<&Entry> {
        entry_in(&self.chunks, slot)
    }

    /// The entry in a slot that [`Table::find`] or [`Table::insert`] has just named.
    pub(super) fn at(&mut self, slot: Slot) -> &mut Entry {
        self.chunks[slot as usize / CHUNK_SLOTS]
            .slots
            .as_mut()
            .and_then(|slots| slots[slot as usize % CHUNK_SLOTS].as_mut())
            .expect("the index names live slots only")
    }

    /// The value in the slot is charged another sum than before.
    pub(super) fn recharge(&mut self, before_bytes: usize, after_bytes: usize) {
        self.held.bytes = self.held.bytes + after_bytes - before_bytes;
    }

    /// Exchanges the entry in a slot for another one under the same key.
    pub(super) fn replace(&mut self, slot: Slot, entry: Entry) -> Entry {
        self.count(&entry);
        let old = std::mem::replace(self.at(slot), entry);
        self.uncount(&old);
        old
    }

    fn count(&mut self, entry: &Entry) {
        self.expiring += usize::from(entry.expires != Timestamp::MAX);
        self.held = self.held.plus(Held::of(entry));
    }

    fn uncount(&mut self, entry: &Entry) {
        self.expiring -= usize::from(entry.expires != Timestamp::MAX);
        self.held = self.held.minus(Held::of(entry));
    }

    pub(super) fn set_expires(&mut self, slot: Slot, expires: Timestamp) {
        let entry = self.at(slot);
        let had = usize::from(entry.expires != Timestamp::MAX);
        let has = usize::from(expires != Timestamp::MAX);
        entry.expires = expires;
        let is_string = usize::from(entry.value.may_be_evicted());
        self.expiring = self.expiring + has - had;
        let held = &mut self.held.expiring_strings;
        *held = *held + has * is_string - had * is_string;
    }

    /// Adds an entry whose key is not there yet.
    pub(super) fn insert(&mut self, entry: Entry) -> Slot {
        while self.chunks.get(self.open).is_some_and(|chunk| chunk.free == 0) {
            self.open += 1;
        }
        if self.open == self.chunks.len() {
            self.chunks.push(Chunk::EMPTY);
        }
        self.count(&entry);
        let chunk = &mut self.chunks[self.open];
        if chunk.slots.is_none() {
            self.held.bytes += CHUNK_BYTES;
        }
        let slots = chunk.slots.get_or_insert_with(|| Box::new([const { None }; CHUNK_SLOTS]));
        let place = chunk.free.trailing_zeros() as usize;
        chunk.free &= chunk.free - 1;
        let tag = entry.tag;
        slots[place] = Some(entry);
        let slot = (self.open * CHUNK_SLOTS + place) as Slot;
        let chunks = &self.chunks;
        self.index.insert_unique(index_hash(tag), slot, |&other| tag_hash(chunks, other));
        slot
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Entry> {
        let number = slot as usize / CHUNK_SLOTS;
        let place = slot as usize % CHUNK_SLOTS;
        let chunk = self.chunks.get_mut(number)?;
        let entry = chunk.slots.as_mut()?[place].take()?;
        if let Ok(found) = self.index.find_entry(index_hash(entry.tag), |&other| other == slot) {
            found.remove();
        }
        chunk.free |= 1 << place;
        self.changed -= usize::from(chunk.changed >> place & 1);
        chunk.changed &= !(1 << place);
        self.open = self.open.min(number);
        if chunk.free == ALL_FREE {
            chunk.slots = None;
            self.held.bytes -= CHUNK_BYTES;
            while self.chunks.last().is_some_and(|chunk| chunk.free == ALL_FREE) {
                self.chunks.pop();
            }
            self.open = self.open.min(self.chunks.len());
            self.shrink();
        }
        self.uncount(&entry);
        Some(entry)
    }

    /// Calls `visit` for the live slots from `from` on, until it breaks or `steps` are used up:
    /// each live slot takes one, and each empty chunk, so that empty slots are nearly free.
    /// Returns the slot to go on with, or `None` at the end.
    pub(super) fn walk(
        &self,
        from: Slot,
        steps: &mut usize,
        mut visit: impl FnMut(Slot, &Entry) -> ControlFlow<()>,
    ) -> Option<Slot> {
        let mut place = from as usize % CHUNK_SLOTS;
        for (number, chunk) in self.chunks.iter().enumerate().skip(from as usize / CHUNK_SLOTS) {
            if *steps == 0 {
                return Some((number * CHUNK_SLOTS + place) as Slot);
            }
            let mut live = !chunk.free & (ALL_FREE << place);
            if live == 0 {
                *steps -= 1;
            }
            while live != 0 {
                place = live.trailing_zeros() as usize;
                let slot = (number * CHUNK_SLOTS + place) as Slot;
                if *steps == 0 {
                    return Some(slot);
                }
                *steps -= 1;
                live &= live - 1;
                if let Some(entry) = entry_in(&self.chunks, slot)
                    && visit(slot, entry).is_break()
                {
                    return (slot + 1 < self.slots()).then_some(slot + 1);
                }
            }
            place = 0;
        }
        None
    }

    /// The entry in the slot has changed.
    pub(super) fn mark(&mut self, slot: Slot) {
        let chunk = &mut self.chunks[slot as usize / CHUNK_SLOTS];
        let bit = 1 << (slot as usize % CHUNK_SLOTS);
        self.changed += usize::from(chunk.changed & bit == 0);
        chunk.changed |= bit;
    }

    pub(super) fn is_marked(&self, slot: Slot) -> bool {
        let chunk = self.chunks.get(slot as usize / CHUNK_SLOTS);
        chunk.is_some_and(|chunk| chunk.changed >> (slot as usize % CHUNK_SLOTS) & 1 == 1)
    }

    /// Every entry has changed.
    pub(super) fn mark_all(&mut self) {
        self.changed = self.len();
        self.chunks.iter_mut().for_each(|chunk| chunk.changed = !chunk.free);
    }

    pub(super) fn forget_changes(&mut self) {
        self.changed = 0;
        self.chunks.iter_mut().for_each(|chunk| chunk.changed = 0);
    }

    /// Shows the entries that have changed from a slot on, until `visit` breaks; what was shown
    /// counts as changed no more. Returns where to go on.
    pub(super) fn collect(
        &mut self,
        from: Slot,
        mut visit: impl FnMut(&Entry) -> ControlFlow<()>,
    ) -> Option<Slot> {
        for number in from as usize / CHUNK_SLOTS..self.chunks.len() {
            if self.changed == 0 {
                return None;
            }
            while self.chunks[number].changed != 0 {
                let place = self.chunks[number].changed.trailing_zeros() as usize;
                self.chunks[number].changed &= !(1 << place);
                self.changed -= 1;
                let slot = (number * CHUNK_SLOTS + place) as Slot;
                if entry_in(&self.chunks, slot).is_some_and(|entry| visit(entry).is_break()) {
                    return Some(slot);
                }
            }
        }
        None
    }

    /// Some live slot, each as likely as another where at least one slot in some tens is live.
    pub(super) fn pick(&self, dice: &mut impl FnMut() -> u64) -> Option<Slot> {
        /// With a sixteenth of the slots live, all of these miss once in sixty million.
        const TRIES: usize = 256;
        if self.len() == 0 {
            return None;
        }
        for _ in 0..TRIES {
            let slot = (dice() % u64::from(self.slots())) as Slot;
            if self.entry(slot).is_some() {
                return Some(slot);
            }
        }
        let start = (dice() % u64::from(self.slots())) as Slot;
        let mut picked = None;
        for from in [start, 0] {
            self.walk(from, &mut { usize::MAX }, |slot, _| {
                picked = Some(slot);
                ControlFlow::Break(())
            });
            if picked.is_some() {
                break;
            }
        }
        picked
    }

    /// Gives index memory back once it is three quarters empty.
    fn shrink(&mut self) {
        if self.index.capacity() > 4 * self.index.len().max(CHUNK_SLOTS) {
            let chunks = &self.chunks;
            self.index.shrink_to(2 * self.index.len(), |&other| tag_hash(chunks, other));
        }
    }
}

fn entry_in(chunks: &[Chunk], slot: Slot) -> Option<&Entry> {
    let chunk = chunks.get(slot as usize / CHUNK_SLOTS)?;
    chunk.slots.as_ref()?[slot as usize % CHUNK_SLOTS].as_ref()
}

fn tag_hash(chunks: &[Chunk], slot: Slot) -> u64 {
    index_hash(entry_in(chunks, slot).expect("the index names live slots only").tag)
}
