//! The table of records: sets of four, of a fixed number, read and written without a lock.
//!
//! A hash picks the set. Each set has one word of four tags, sixteen bits of hash each: a bucket
//! that is not there costs the load of that word and nothing else. A record is words under a
//! sequence word that is odd while one thread writes; a reader that sees it odd or moved has
//! read nothing. Who finds another thread writing gives up rather than wait, so no thread ever
//! waits for another here.
//!
//! Records take their memory by the thousand, when the first of them is written: a server that
//! denies nobody pays for the tags alone.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::record::{Record, WORDS};
use crate::time::Timestamp;

/// Records that one hash may go to.
const WAYS: usize = 4;

const CHUNK_SETS: usize = 256;

/// Records that are allocated together.
pub(super) const CHUNK_ENTRIES: usize = CHUNK_SETS * WAYS;

const TAG_BITS: usize = u64::BITS as usize / WAYS;

#[derive(Debug)]
pub(super) struct Table {
    /// By set.
    tags: Box<[AtomicU64]>,
    chunks: Box<[OnceLock<Box<[Set]>>]>,
}

type Set = [Entry; WAYS];

/// A record that may be written while it is read.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Entry {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Entry>() == 128);

/// Where a record went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Put {
    /// Where none was that still held, or one of the same bucket and cost.
    Free,
    /// Over one that still held.
    Displaced,
    /// Nowhere.
    Busy,
}

impl Table {
    /// As many records as can be of at most `entries`, which are at least [`CHUNK_ENTRIES`]: a
    /// power of two.
    pub(super) fn new(entries: usize) -> Self {
        let chunks = 1 << (entries / CHUNK_ENTRIES).max(1).ilog2();
        let tags = std::iter::repeat_with(AtomicU64::default);
        let records = std::iter::repeat_with(OnceLock::new);
        Self {
            tags: tags.take(chunks * CHUNK_SETS).collect(),
            chunks: records.take(chunks).collect(),
        }
    }

    /// Whether it is worth to look for a bucket of this hash.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let tags = self.tags[self.set(hash)].load(Ordering::Relaxed);
        (0..WAYS).any(|way| tag_at(tags, way) == tag(hash))
    }

    /// The first record of this hash that will do.
    pub(super) fn find(&self, hash: u64, will_do: impl Fn(&Record) -> bool) -> Option<Record> {
        let set = self.set(hash);
        let tags = self.tags[set].load(Ordering::Relaxed);
        let records = self.records(set)?;
        (0..WAYS)
            .filter(|way| tag_at(tags, *way) == tag(hash))
            .filter_map(|way| records[way].read())
            .find(will_do)
    }

    /// Keeps a record, over the one that is least of use: of the same bucket and cost, else
    /// the one that ends first, where an empty place has ended long ago.
    pub(super) fn put(&self, record: &Record, now: Timestamp) -> Put {
        let hash = record.bucket[0];
        let set = self.set(hash);
        let chunk = self.chunks[set / CHUNK_SETS].get_or_init(new_chunk);
        let records = &chunk[set % CHUNK_SETS];
        let is_same = |found: &Record| found.bucket == record.bucket && found.cost == record.cost;
        let worth = |found: &Record| {
            if is_same(found) { Timestamp::EPOCH } else { found.until }
        };
        let least = (0..WAYS)
            .filter_map(|way| Some((way, records[way].read()?)))
            .min_by_key(|(_, found)| worth(found));
        let Some((way, found)) = least else { return Put::Busy };
        let written = records[way].write(record, || {
            self.set_tag(set, way, tag(hash));
        });
        match written {
            false => Put::Busy,
            true if is_same(&found) || found.until <= now => Put::Free,
            true => Put::Displaced,
        }
    }

    fn set(&self, hash: u64) -> usize {
        // The number of sets is a power of two.
        hash as usize & (self.tags.len() - 1)
    }

    fn records(&self, set: usize) -> Option<&Set> {
        Some(&self.chunks[set / CHUNK_SETS].get()?[set % CHUNK_SETS])
    }

    fn set_tag(&self, set: usize, way: usize, tag: u64) {
        let shift = way * TAG_BITS;
        let others = !(u64::MAX >> (u64::BITS as usize - TAG_BITS) << shift);
        let change = |tags: u64| Some(tags & others | tag << shift);
        self.tags[set]
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change)
            .expect("the change is never none");
    }
}

fn new_chunk() -> Box<[Set]> {
    std::iter::repeat_with(Set::default).take(CHUNK_SETS).collect()
}

/// The bits that pick no set; never zero, which is the tag of an empty place.
fn tag(hash: u64) -> u64 {
    (hash >> (u64::BITS as usize - TAG_BITS)).max(1)
}

fn tag_at(tags: u64, way: usize) -> u64 {
    tags >> (way * TAG_BITS) & (u64::MAX >> (u64::BITS as usize - TAG_BITS))
}

impl Entry {
    /// `None` while somebody writes, or has written meanwhile.
    fn read(&self) -> Option<Record> {
        self.read_while(|_| ())
    }

    /// The same; `meanwhile` runs before each word is read, told which.
    fn read_while(&self, mut meanwhile: impl FnMut(usize)) -> Option<Record> {
        let before = self.sequence.load(Ordering::Acquire);
        if !before.is_multiple_of(2) {
            return None;
        }
        let words: [u64; WORDS] = std::array::from_fn(|at| {
            meanwhile(at);
            self.words[at].load(Ordering::Relaxed)
        });
        // The words are read before the sequence is read again.
        fence(Ordering::Acquire);
        let after = self.sequence.load(Ordering::Relaxed);
        (after == before).then(|| Record::from_words(words))
    }

    /// Whether this thread could write; `meanwhile` runs while no other can.
    fn write(&self, record: &Record, meanwhile: impl FnOnce()) -> bool {
        let before = self.sequence.load(Ordering::Relaxed);
        let claim = |from| {
            let (ok, failed) = (Ordering::Acquire, Ordering::Relaxed);
            self.sequence.compare_exchange(from, from + 1, ok, failed).is_ok()
        };
        if !before.is_multiple_of(2) || !claim(before) {
            return false;
        }
        // Whoever sees one of the new words sees the odd sequence, too.
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(record.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
        meanwhile();
        self.sequence.store(before + 2, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    /// All in one set.
    fn record(number: u64, until_ms: u64) -> Record {
        let mut words = [number; WORDS];
        words[0] = (number + 1) << 48;
        words[6] = Timestamp::from_millis(until_ms).as_micros();
        Record::from_words(words)
    }

    fn has(table: &Table, record: &Record) -> bool {
        table.may_have(record.bucket[0])
            && table.find(record.bucket[0], |found| found == record).is_some()
    }

    #[test]
    fn full_set_gives_up_what_ends_first() {
        let table = Table::new(CHUNK_ENTRIES);
        let records: Vec<Record> = [5, 3, 4, 6, 7].map(|s| record(s, s * 1_000)).into();
        let put: Vec<Put> = records.iter().map(|record| table.put(record, NOW)).collect();
        assert_eq!(put, [Put::Free, Put::Free, Put::Free, Put::Free, Put::Displaced]);
        let kept: Vec<bool> = records.iter().map(|record| has(&table, record)).collect();
        assert_eq!(kept, [true, false, true, true, true]);
    }

    #[test]
    fn what_has_ended_leaves_its_place() {
        let table = Table::new(CHUNK_ENTRIES);
        for number in 0..4 {
            table.put(&record(number, 1_000 + number), NOW);
        }
        let later = Timestamp::from_millis(1_000);
        assert_eq!(table.put(&record(9, 5_000), later), Put::Free);
    }

    #[test]
    fn same_bucket_and_cost_keep_one_record() {
        let table = Table::new(CHUNK_ENTRIES);
        for until_ms in 2_000..2_010 {
            assert_eq!(table.put(&record(1, until_ms), NOW), Put::Free);
        }
        assert!(has(&table, &record(1, 2_009)));
        let found = table.find(record(1, 0).bucket[0], |found| *found != record(1, 2_009));
        assert_eq!(found, None);
    }

    #[test]
    fn entry_being_written_is_neither_read_nor_written() {
        let entry = Entry::default();
        let written = entry.write(&record(1, 2_000), || {
            assert_eq!(entry.read(), None);
            assert!(!entry.write(&record(2, 2_000), || ()));
        });
        assert!(written);
        assert_eq!(entry.read(), Some(record(1, 2_000)));
    }

    #[test]
    fn record_written_while_it_is_read_is_not_read() {
        for at in 0..WORDS {
            let entry = Entry::default();
            entry.write(&record(1, 2_000), || ());
            let read = entry.read_while(|word| {
                if word == at {
                    entry.write(&record(2, 3_000), || ());
                }
            });
            assert_eq!(read, None, "word {at}");
        }
    }

    #[test]
    fn size_is_the_power_of_two_within_what_is_allowed() {
        for (entries, sets) in [(1_024, 256), (2_047, 256), (2_048, 512), (100_000, 16_384)] {
            assert_eq!(Table::new(entries).tags.len(), sets, "{entries}");
        }
    }
}
