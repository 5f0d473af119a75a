//! A large sorted set: members in numbered slots, an index of them, and their order.
//!
//! A member stands once, in its slot with its score; up to [`INLINE_BYTES`] bytes cost no
//! allocation. The index finds a slot by its member's hash, the tree by score and rank.
//!
//! Invariants: a slot keeps its number while its member lives, but when the slots are packed
//! together, which only ever makes numbers smaller and keeps their order: a scan downwards misses
//! nobody. A free slot's score is no number.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::tree::{Item, Tree};
use super::{Direction, compare};
use crate::size::malloc_bytes;

/// Most limiters' entries are a moment or an identifier; with a length that is four words.
const INLINE_BYTES: usize = 24;

/// Fewer slots than this are not worth packing.
const PACKED_SLOTS_MIN: usize = 256;

type Member = SmallVec<[u8; INLINE_BYTES]>;

#[derive(Clone, Debug)]
struct Slot {
    member: Member,
    score: f64,
}

const _: () = assert!(size_of::<Slot>() == 40);

#[derive(Clone, Debug)]
pub(super) struct Indexed {
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: HashTable<u32>,
    order: Tree,
    hasher: FixedState,
    /// What members take that do not fit into their slot.
    spilled_bytes: usize,
}

impl Indexed {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            order: Tree::new(),
            hasher: FixedState::with_seed(seed),
            spilled_bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let block = |bytes| if bytes == 0 { 0 } else { malloc_bytes(bytes) };
        block(self.slots.capacity() * size_of::<Slot>())
            + block(self.free.capacity() * size_of::<u32>())
            + block(self.index.allocation_size())
            + self.order.heap_bytes()
            + self.spilled_bytes
    }

    pub(super) fn find(&self, member: &[u8]) -> Option<u32> {
        let hash = hash(&self.hasher, member);
        let is_it = |slot: &u32| *self.slots[*slot as usize].member == *member;
        self.index.find(hash, is_it).copied()
    }

    /// Of a slot that [`Indexed::find`] found.
    pub(super) fn score(&self, slot: u32) -> f64 {
        self.slots[slot as usize].score
    }

    /// Of a slot that [`Indexed::find`] found.
    pub(super) fn rank_of(&self, slot: u32) -> usize {
        let Slot { member, score } = &self.slots[slot as usize];
        self.order.rank(before(&self.slots, member, *score))
    }

    pub(super) fn rank(&self, before: impl Fn(f64, &[u8]) -> bool) -> usize {
        self.order.rank(|item| before(item.score, &self.slots[item.slot as usize].member))
    }

    /// Puts in a member that is not there.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) {
        let slot = Slot { member: Member::from_slice(member), score };
        self.spilled_bytes += spilled(&slot.member);
        let number = if let Some(number) = self.free.pop() {
            self.slots[number as usize] = slot;
            number
        } else {
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).expect("memory ends before 2^32 slots of 40 bytes")
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        let rehash = |other: &u32| hash(hasher, &slots[*other as usize].member);
        self.index.insert_unique(hash(hasher, member), number, rehash);
        self.order.insert(Item { score, slot: number }, before(slots, member, score));
    }

    /// Moves the member of a slot that [`Indexed::find`] found.
    pub(super) fn rescore(&mut self, slot: u32, score: f64) {
        let rank = self.rank_of(slot);
        self.order.drain(rank..rank + 1, |_| {});
        self.slots[slot as usize].score = score;
        let member = &self.slots[slot as usize].member;
        self.order.insert(Item { score, slot }, before(&self.slots, member, score));
    }

    /// Takes out the members of these ranks, which are there, and shows each.
    pub(super) fn drain(&mut self, ranks: Range<usize>, mut gone: impl FnMut(&[u8], f64)) {
        let Self { slots, free, index, order, hasher, spilled_bytes } = self;
        order.drain(ranks, |item| {
            let slot = &mut slots[item.slot as usize];
            let entry = index.find_entry(hash(hasher, &slot.member), |other| *other == item.slot);
            entry.expect("every member is in the index").remove();
            gone(&slot.member, slot.score);
            *spilled_bytes -= spilled(&slot.member);
            *slot = Slot { member: Member::new(), score: f64::NAN };
            free.push(item.slot);
        });
    }

    /// Packs the slots together where most are free.
    pub(super) fn shrink(&mut self) {
        if self.slots.len() < PACKED_SLOTS_MIN || self.len() > self.slots.len() / 4 {
            return;
        }
        let mut numbers = vec![0; self.slots.len()];
        let mut slots = Vec::with_capacity(self.len() * 2);
        for (number, slot) in numbers.iter_mut().zip(std::mem::take(&mut self.slots)) {
            if !slot.score.is_nan() {
                *number = slots.len() as u32;
                slots.push(slot);
            }
        }
        self.order.renumber(|slot| numbers[slot as usize]);
        let rehash = |slot: &u32| hash(&self.hasher, &slots[*slot as usize].member);
        self.index = HashTable::with_capacity(slots.len());
        for number in 0..slots.len() as u32 {
            self.index.insert_unique(rehash(&number), number, rehash);
        }
        self.free = Vec::new();
        self.slots = slots;
    }

    pub(super) fn visit(
        &self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], f64),
    ) {
        self.order.visit(ranks, direction, |item| {
            visit(&self.slots[item.slot as usize].member, item.score);
        });
    }

    /// Shows the members of at most `steps` slots below `cursor`, or from the top for zero.
    /// Returns where to go on; zero is the end.
    pub(super) fn scan(&self, cursor: u64, steps: usize, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        let slots = self.slots.len();
        let top = match usize::try_from(cursor) {
            Ok(0) | Err(_) => slots,
            Ok(top) => top.min(slots),
        };
        let low = top.saturating_sub(steps);
        for slot in self.slots[low..top].iter().rev().filter(|slot| !slot.score.is_nan()) {
            visit(&slot.member, slot.score);
        }
        low as u64
    }
}

/// Whether an item stands before this place in the order.
fn before<'s>(slots: &'s [Slot], member: &'s [u8], score: f64) -> impl Fn(&Item) -> bool + 's {
    move |item| {
        // Nearly always the scores differ, and the other member need not be looked at.
        if item.score < score {
            return true;
        }
        item.score <= score
            && compare((item.score, &slots[item.slot as usize].member), (score, member)).is_lt()
    }
}

fn hash(hasher: &FixedState, member: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(member);
    hasher.finish()
}

fn spilled(member: &Member) -> usize {
    if member.spilled() { malloc_bytes(member.capacity()) } else { 0 }
}
