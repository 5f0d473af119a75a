//! A ring of log entries in one allocation: what a small log is, and what a large one is made of.
//!
//! An entry is its gap of 32 bits from the entry before, and nothing more while every cost is one
//! and no gap reaches 71 minutes. Where they do not fit, the whole chunk is made again with a
//! further word per gap, or with costs of 16 or 64 bits beside the gaps. The moments of the first
//! and the last entry stand in full in the header: most questions are about these two, and a
//! question that reads the header alone waits for one line of memory. Sizes are chosen so that a
//! block of the system's allocator, which spends 8 bytes and rounds up to 16, has no unused byte.
//!
//! Invariants: moments never decrease from first to last; no cost is zero; `sum` is the sum of
//! the costs and fits 64 bits, which the log sees to; `first_us` and `last_us` are the moments of
//! the first and the last entry, if there is one. Units: microseconds.

use crate::size::malloc_bytes;

/// Entries of a chunk as a log grows. The last size is that of every chunk of a large log.
const SLOTS: [u16; 5] = [2, 10, 30, 62, 126];
const SLOTS_MAX: u16 = SLOTS[SLOTS.len() - 1];

/// One moment of a log and what was spent at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    pub(super) at_us: u64,
    pub(super) cost: u64,
}

/// The ring. `words` holds the low words of the gaps, then the high words of a wide chunk, then
/// the costs: two to a word, or one in two words. The gap of the first entry means nothing.
#[derive(Debug)]
pub(super) struct Chunk<W: ?Sized = [u32]> {
    first_us: u64,
    last_us: u64,
    sum: u64,
    head: u16,
    len: u16,
    slots: u16,
    shape: Shape,
    words: W,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Shape {
    /// Gaps of 64 bits.
    wide: bool,
    costs: Costs,
}

/// How costs are kept.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Costs {
    /// Not at all: each is one.
    Ones,
    Bits16,
    Bits64,
}

impl Costs {
    const fn for_cost(cost: u64) -> Self {
        if cost == 1 {
            Self::Ones
        } else if cost <= u16::MAX as u64 {
            Self::Bits16
        } else {
            Self::Bits64
        }
    }
}

impl Shape {
    const NARROW: Self = Self { wide: false, costs: Costs::Ones };

    const fn costs_at(self, slots: usize) -> usize {
        if self.wide { 2 * slots } else { slots }
    }

    const fn words(self, slots: usize) -> usize {
        self.costs_at(slots)
            + match self.costs {
                Costs::Ones => 0,
                Costs::Bits16 => slots / 2,
                Costs::Bits64 => 2 * slots,
            }
    }
}

impl<const N: usize> Chunk<[u32; N]> {
    fn boxed(slots: u16, shape: Shape) -> Box<Chunk> {
        Box::new(Self {
            first_us: 0,
            last_us: 0,
            sum: 0,
            head: 0,
            len: 0,
            slots,
            shape,
            words: [0; N],
        })
    }
}

impl Chunk {
    /// An empty chunk of the smallest size.
    pub(super) fn smallest() -> Box<Self> {
        Self::shaped(SLOTS[0], Shape::NARROW)
    }

    /// An empty chunk of the size that large logs are made of.
    pub(super) fn largest() -> Box<Self> {
        Self::shaped(SLOTS_MAX, Shape::NARROW)
    }

    fn shaped(slots: u16, shape: Shape) -> Box<Self> {
        match shape.words(slots.into()) {
            0..=2 => Chunk::<[u32; 2]>::boxed(slots, shape),
            3..=6 => Chunk::<[u32; 6]>::boxed(slots, shape),
            7..=10 => Chunk::<[u32; 10]>::boxed(slots, shape),
            11..=18 => Chunk::<[u32; 18]>::boxed(slots, shape),
            19..=26 => Chunk::<[u32; 26]>::boxed(slots, shape),
            27..=30 => Chunk::<[u32; 30]>::boxed(slots, shape),
            31..=46 => Chunk::<[u32; 46]>::boxed(slots, shape),
            47..=62 => Chunk::<[u32; 62]>::boxed(slots, shape),
            63..=94 => Chunk::<[u32; 94]>::boxed(slots, shape),
            95..=126 => Chunk::<[u32; 126]>::boxed(slots, shape),
            127..=190 => Chunk::<[u32; 190]>::boxed(slots, shape),
            191..=254 => Chunk::<[u32; 254]>::boxed(slots, shape),
            255..=378 => Chunk::<[u32; 378]>::boxed(slots, shape),
            _ => Chunk::<[u32; 506]>::boxed(slots, shape),
        }
    }

    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) const fn is_largest(&self) -> bool {
        self.slots == SLOTS_MAX
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len == self.slots
    }

    /// Not empty, so that there is a first entry.
    pub(super) const fn first_us(&self) -> u64 {
        self.first_us
    }

    /// Not empty, so that there is a last entry.
    pub(super) const fn last_us(&self) -> u64 {
        self.last_us
    }

    pub(super) fn first_cost(&self) -> Option<u64> {
        (self.len > 0).then(|| self.cost(self.head.into()))
    }

    /// Reads the word of the next entry's gap.
    pub(super) fn prefetch_tail(&self) -> u64 {
        self.words.get(self.slot(self.len)).copied().map_or(0, u64::from)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let mut at_us = self.first_us;
        (0..self.len).map(move |index| {
            let slot = self.slot(index);
            if index > 0 {
                at_us += self.gap(slot);
            }
            Entry { at_us, cost: self.cost(slot) }
        })
    }

    /// Where the ring keeps the entry that is `index` places after the first.
    #[inline(always)]
    fn slot(&self, index: u16) -> usize {
        let slot = self.head + index;
        usize::from(if slot >= self.slots { slot - self.slots } else { slot })
    }

    #[inline(always)]
    fn gap(&self, slot: usize) -> u64 {
        let low = u64::from(self.words[slot]);
        if self.shape.wide {
            low | u64::from(self.words[usize::from(self.slots) + slot]) << 32
        } else {
            low
        }
    }

    #[inline(always)]
    fn cost(&self, slot: usize) -> u64 {
        let costs_at = self.shape.costs_at(self.slots.into());
        match self.shape.costs {
            Costs::Ones => 1,
            Costs::Bits16 => u64::from(self.words[costs_at + slot / 2] >> (slot % 2 * 16) & 0xffff),
            Costs::Bits64 => {
                let low = u64::from(self.words[costs_at + 2 * slot]);
                low | u64::from(self.words[costs_at + 2 * slot + 1]) << 32
            }
        }
    }

    fn put_gap(&mut self, slot: usize, gap: u64) {
        self.words[slot] = gap as u32;
        if self.shape.wide {
            self.words[usize::from(self.slots) + slot] = (gap >> 32) as u32;
        }
    }

    fn put_cost(&mut self, slot: usize, cost: u64) {
        let costs_at = self.shape.costs_at(self.slots.into());
        match self.shape.costs {
            Costs::Ones => {}
            Costs::Bits16 => {
                let shift = slot % 2 * 16;
                let word = &mut self.words[costs_at + slot / 2];
                *word = *word & !(0xffff << shift) | (cost as u32) << shift;
            }
            Costs::Bits64 => {
                self.words[costs_at + 2 * slot] = cost as u32;
                self.words[costs_at + 2 * slot + 1] = (cost >> 32) as u32;
            }
        }
    }

    /// Appends to a chunk that is not full; `entry` is not before the last one. By how many bytes
    /// the chunk had to grow.
    #[inline]
    pub(super) fn push(this: &mut Box<Self>, entry: Entry) -> usize {
        if this.len == 0 {
            (this.first_us, this.last_us) = (entry.at_us, entry.at_us);
        }
        let gap = entry.at_us - this.last_us;
        if this.shape == Shape::NARROW
            && entry.cost == 1
            && let Ok(low) = u32::try_from(gap)
        {
            let slot = this.slot(this.len);
            this.words[slot] = low;
            this.last_us = entry.at_us;
            this.len += 1;
            this.sum += 1;
            return 0;
        }
        Self::push_any(this, entry)
    }

    fn push_any(this: &mut Box<Self>, entry: Entry) -> usize {
        let gap = entry.at_us - this.last_us;
        let grown = Self::make_fit(this, gap, entry.cost);
        let slot = this.slot(this.len);
        this.put_gap(slot, gap);
        this.put_cost(slot, entry.cost);
        this.last_us = entry.at_us;
        this.len += 1;
        this.sum += entry.cost;
        grown
    }

    /// Adds to the cost of the last entry; there is one. By how many bytes the chunk had to grow.
    pub(super) fn add_to_last(this: &mut Box<Self>, cost: u64) -> usize {
        let slot = this.slot(this.len - 1);
        let whole = this.cost(slot) + cost;
        let grown = Self::make_fit(this, 0, whole);
        let slot = this.slot(this.len - 1);
        this.put_cost(slot, whole);
        this.sum += cost;
        grown
    }

    /// Forgets the entries up to and including `horizon_us`.
    #[inline(always)]
    pub(super) fn expire(&mut self, horizon_us: u64) {
        while self.first_us <= horizon_us && self.len > 0 {
            self.pop();
        }
    }

    /// Forgets the first entry; there is one.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.sum -= self.cost(self.head.into());
        self.head = self.slot(1) as u16;
        self.len -= 1;
        if self.len > 0 {
            self.first_us += self.gap(self.head.into());
        }
    }

    /// Takes up to `cost` away from the first entry, all of it if that is what it holds.
    pub(super) fn reduce_first(&mut self, cost: u64) {
        let slot = self.head.into();
        let left = self.cost(slot).saturating_sub(cost);
        if left == 0 {
            self.pop();
        } else {
            self.put_cost(slot, left);
            self.sum -= cost;
        }
    }

    pub(super) fn clear(&mut self) {
        (self.head, self.len, self.sum) = (0, 0, 0);
    }

    /// The sum of the costs up to and including `horizon_us`.
    pub(super) fn sum_until(&self, horizon_us: u64) -> u64 {
        if self.first_us > horizon_us {
            return 0;
        }
        let live = |entry: &Entry| entry.at_us <= horizon_us;
        self.entries().take_while(live).map(|entry| entry.cost).sum()
    }

    /// The moment of the entry at which the costs, added up from the first, reach `need`, which
    /// is above zero and at most the sum.
    #[inline(always)]
    pub(super) fn reaches_us(&self, need: u64) -> u64 {
        if need == 1 {
            return self.first_us;
        }
        if self.shape.costs == Costs::Ones {
            return self.nth_us(need as usize - 1);
        }
        self.walk_to_us(need)
    }

    /// The moment of the entry that is `index` places after the first.
    fn nth_us(&self, index: usize) -> u64 {
        let start = usize::from(self.head) + 1;
        let end = start + index;
        let slots = usize::from(self.slots);
        if self.shape.wide {
            let gap = |place: usize| self.gap(if place < slots { place } else { place - slots });
            return self.first_us + (start..end).map(gap).sum::<u64>();
        }
        let total = |words: &[u32]| words.iter().map(|gap| u64::from(*gap)).sum::<u64>();
        let ring = &self.words[..slots];
        let wrapped = end.saturating_sub(slots);
        self.first_us + total(&ring[start..end.min(slots)]) + total(&ring[..wrapped])
    }

    fn walk_to_us(&self, need: u64) -> u64 {
        let mut sum = 0;
        for entry in self.entries() {
            sum += entry.cost;
            if sum >= need {
                return entry.at_us;
            }
        }
        self.last_us()
    }

    /// The same entries with more room: the next size, at most [`SLOTS_MAX`].
    pub(super) fn grown(&self) -> Box<Self> {
        let next = SLOTS.into_iter().find(|slots| *slots > self.slots).unwrap_or(SLOTS_MAX);
        self.copied(next, self.shape)
    }

    pub(super) fn duplicate(&self) -> Box<Self> {
        self.copied(self.slots, self.shape)
    }

    fn copied(&self, slots: u16, shape: Shape) -> Box<Self> {
        let mut copy = Self::shaped(slots, shape);
        for index in 0..self.len {
            let slot = self.slot(index);
            copy.put_gap(index.into(), self.gap(slot));
            copy.put_cost(index.into(), self.cost(slot));
        }
        (copy.first_us, copy.last_us) = (self.first_us, self.last_us);
        (copy.len, copy.sum) = (self.len, self.sum);
        copy
    }

    /// Changes the shape, where needed, so that the gap and the cost can be written. By how many
    /// bytes the chunk had to grow.
    fn make_fit(this: &mut Box<Self>, gap: u64, cost: u64) -> usize {
        let shape = Shape {
            wide: this.shape.wide || gap > u32::MAX.into(),
            costs: this.shape.costs.max(Costs::for_cost(cost)),
        };
        if shape == this.shape {
            return 0;
        }
        let before = this.heap_bytes();
        *this = this.copied(this.slots, shape);
        this.heap_bytes() - before
    }

    /// What the chunk costs in memory.
    pub(super) fn heap_bytes(&self) -> usize {
        malloc_bytes(size_of_val(self))
    }
}
