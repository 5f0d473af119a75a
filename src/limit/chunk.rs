//! A ring of log entries in one allocation: what a small log is, and what a large one is made of.
//!
//! An entry is an offset of 32 bits from the chunk's base, and nothing more while every cost is
//! one and the entries lie within 71 minutes. Where they do not, the whole chunk is made again
//! with a further word per offset, or with costs of 16 or 64 bits beside the offsets. Sizes are
//! chosen so that a block of the system's allocator, which spends 8 bytes and rounds up to 16,
//! has no unused byte.
//!
//! Invariants: moments never decrease from first to last; no cost is zero; `sum` is the sum of
//! the costs and fits 64 bits, which the log sees to. Units: microseconds.

/// Entries of a chunk as a log grows. The last size is that of every chunk of a large log.
const SLOTS: [u16; 5] = [4, 12, 28, 60, 124];
const SLOTS_MAX: u16 = SLOTS[SLOTS.len() - 1];

/// One moment of a log and what was spent at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    pub(super) at_us: u64,
    pub(super) cost: u64,
}

/// The ring. `words` holds the low words of the offsets, then the high words of a wide chunk,
/// then the costs: two to a word, or one in two words.
#[derive(Debug)]
pub(super) struct Chunk<W: ?Sized = [u32]> {
    base_us: u64,
    sum: u64,
    head: u16,
    len: u16,
    slots: u16,
    shape: Shape,
    words: W,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Shape {
    /// Offsets of 64 bits.
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
        Box::new(Self { base_us: 0, sum: 0, head: 0, len: 0, slots, shape, words: [0; N] })
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
            0..=4 => Chunk::<[u32; 4]>::boxed(slots, shape),
            5..=8 => Chunk::<[u32; 8]>::boxed(slots, shape),
            9..=12 => Chunk::<[u32; 12]>::boxed(slots, shape),
            13..=20 => Chunk::<[u32; 20]>::boxed(slots, shape),
            21..=28 => Chunk::<[u32; 28]>::boxed(slots, shape),
            29..=36 => Chunk::<[u32; 36]>::boxed(slots, shape),
            37..=48 => Chunk::<[u32; 48]>::boxed(slots, shape),
            49..=60 => Chunk::<[u32; 60]>::boxed(slots, shape),
            61..=92 => Chunk::<[u32; 92]>::boxed(slots, shape),
            93..=124 => Chunk::<[u32; 124]>::boxed(slots, shape),
            125..=188 => Chunk::<[u32; 188]>::boxed(slots, shape),
            189..=252 => Chunk::<[u32; 252]>::boxed(slots, shape),
            253..=376 => Chunk::<[u32; 376]>::boxed(slots, shape),
            _ => Chunk::<[u32; 496]>::boxed(slots, shape),
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
    pub(super) fn first_us(&self) -> u64 {
        self.base_us + self.offset(self.head.into())
    }

    /// Not empty, so that there is a last entry.
    #[inline(always)]
    pub(super) fn last_us(&self) -> u64 {
        self.base_us + self.offset(self.slot(self.len - 1))
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.len).map(|index| {
            let slot = self.slot(index);
            Entry { at_us: self.base_us + self.offset(slot), cost: self.cost(slot) }
        })
    }

    /// Where the ring keeps the entry that is `index` places after the first.
    #[inline(always)]
    fn slot(&self, index: u16) -> usize {
        let slot = self.head + index;
        usize::from(if slot >= self.slots { slot - self.slots } else { slot })
    }

    #[inline(always)]
    fn offset(&self, slot: usize) -> u64 {
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

    fn put_offset(&mut self, slot: usize, offset: u64) {
        self.words[slot] = offset as u32;
        if self.shape.wide {
            self.words[usize::from(self.slots) + slot] = (offset >> 32) as u32;
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
            this.base_us = entry.at_us;
        }
        let offset = entry.at_us - this.base_us;
        if this.shape == Shape::NARROW
            && entry.cost == 1
            && let Ok(low) = u32::try_from(offset)
        {
            let slot = this.slot(this.len);
            this.words[slot] = low;
            this.len += 1;
            this.sum += 1;
            return 0;
        }
        Self::push_any(this, entry)
    }

    fn push_any(this: &mut Box<Self>, entry: Entry) -> usize {
        let grown = Self::make_fit(this, entry);
        let slot = this.slot(this.len);
        this.put_offset(slot, entry.at_us - this.base_us);
        this.put_cost(slot, entry.cost);
        this.len += 1;
        this.sum += entry.cost;
        grown
    }

    /// Adds to the cost of the last entry; there is one. By how many bytes the chunk had to grow.
    pub(super) fn add_to_last(this: &mut Box<Self>, cost: u64) -> usize {
        let slot = this.slot(this.len - 1);
        let entry = Entry { at_us: this.last_us(), cost: this.cost(slot) + cost };
        let grown = Self::make_fit(this, entry);
        let slot = this.slot(this.len - 1);
        this.put_cost(slot, entry.cost);
        this.sum += cost;
        grown
    }

    /// Forgets the entries up to and including `horizon_us`.
    #[inline(always)]
    pub(super) fn expire(&mut self, horizon_us: u64) {
        let Some(reach) = horizon_us.checked_sub(self.base_us) else { return };
        while self.len > 0 && self.offset(self.head.into()) <= reach {
            self.pop();
        }
    }

    /// Forgets the first entry; there is one.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.sum -= self.cost(self.head.into());
        self.head = self.slot(1) as u16;
        self.len -= 1;
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
        let live = |entry: &Entry| entry.at_us <= horizon_us;
        self.entries().take_while(live).map(|entry| entry.cost).sum()
    }

    /// The moment of the entry at which the costs, added up from the first, reach `need`, which
    /// is above zero and at most the sum.
    #[inline(always)]
    pub(super) fn reaches_us(&self, need: u64) -> u64 {
        if self.shape.costs == Costs::Ones {
            return self.base_us + self.offset(self.slot((need - 1) as u16));
        }
        self.walk_to_us(need)
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
        copy.base_us = self.first_or_base_us();
        for (slot, entry) in self.entries().enumerate() {
            let offset = entry.at_us - copy.base_us;
            copy.put_offset(slot, offset);
            copy.put_cost(slot, entry.cost);
        }
        (copy.len, copy.sum) = (self.len, self.sum);
        copy
    }

    fn first_or_base_us(&self) -> u64 {
        if self.is_empty() { self.base_us } else { self.first_us() }
    }

    /// Changes base and shape, where needed, so that the moment and the cost can be written. By
    /// how many bytes the chunk had to grow.
    fn make_fit(this: &mut Box<Self>, entry: Entry) -> usize {
        let offset_fits = this.shape.wide || u32::try_from(entry.at_us - this.base_us).is_ok();
        if offset_fits && Costs::for_cost(entry.cost) <= this.shape.costs {
            return 0;
        }
        let before = this.heap_bytes();
        Self::reshape(this, entry);
        this.heap_bytes() - before
    }

    #[cold]
    fn reshape(this: &mut Box<Self>, entry: Entry) {
        let mut shape = this.shape;
        shape.costs = shape.costs.max(Costs::for_cost(entry.cost));
        let fits = |base_us: u64| u32::try_from(entry.at_us - base_us).is_ok();
        if !shape.wide && !fits(this.base_us) {
            let first_us = this.first_or_base_us();
            if fits(first_us) {
                this.rebase(first_us);
            } else {
                shape.wide = true;
            }
        }
        if shape != this.shape {
            *this = this.copied(this.slots, shape);
        }
    }

    fn rebase(&mut self, base_us: u64) {
        let moved = base_us - self.base_us;
        for index in 0..self.len {
            let slot = self.slot(index);
            self.put_offset(slot, self.offset(slot) - moved);
        }
        self.base_us = base_us;
    }

    /// What the chunk costs in memory.
    pub(super) fn heap_bytes(&self) -> usize {
        malloc_bytes(size_of_val(self))
    }
}

/// What the system's allocator spends on a block: a word before it, in steps of 16, at least 32.
pub(super) const fn malloc_bytes(size: usize) -> usize {
    let spent = (size + 8).next_multiple_of(16);
    if spent < 32 { 32 } else { spent }
}
