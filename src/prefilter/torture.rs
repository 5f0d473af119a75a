//! Threads that write and read one set at once: no reader is ever shown a torn record.
//!
//! Every record is made of one number, so that one put together from two shows. All of them
//! belong to the same four places, and there are more threads than those.

use std::sync::atomic::{AtomicBool, Ordering};

use super::record::{Record, WORDS};
use super::table::{CHUNK_ENTRIES, Put, Table};
use crate::time::Timestamp;

const WRITERS: u64 = 3;
const READERS: u64 = 3;
const WRITES: u64 = 250_000;
const BUCKETS: u64 = 6;

/// The set is picked by the low bits, which are the same for all.
fn hash(bucket: u64) -> u64 {
    (bucket + 1) << 48
}

fn record(bucket: u64, number: u64) -> Record {
    let mut words = [number; WORDS];
    words[0] = hash(bucket);
    Record::from_words(words)
}

fn is_whole(record: &Record) -> bool {
    let [_, number, rest @ ..] = record.to_words();
    rest.iter().all(|word| *word == number)
}

#[test]
fn torn_record_is_never_shown() {
    let table = Table::new(CHUNK_ENTRIES);
    let writes_go_on = AtomicBool::new(true);
    let seen: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let table = &table;
                scope.spawn(move || {
                    (1..=WRITES)
                        .map(|number| record(number % BUCKETS, number * WRITERS + writer))
                        .filter(|record| table.put(record, Timestamp::EPOCH) != Put::Busy)
                        .count()
                })
            })
            .collect();
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let (table, writes_go_on) = (&table, &writes_go_on);
                scope.spawn(move || read(table, writes_go_on, reader))
            })
            .collect();
        let written = writers.into_iter().map(|writer| writer.join().expect("it ends"));
        assert!(written.sum::<usize>() > 0);
        writes_go_on.store(false, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().expect("no record is torn")).sum()
    });
    assert!(seen > 0);
}

/// How many records were seen, all of them whole.
fn read(table: &Table, writes_go_on: &AtomicBool, reader: u64) -> u64 {
    let mut seen = 0;
    let mut bucket = reader;
    while writes_go_on.load(Ordering::Relaxed) {
        bucket = (bucket + 1) % BUCKETS;
        let found = table.find(hash(bucket), |record| {
            assert!(is_whole(record), "torn: {record:?}");
            true
        });
        seen += u64::from(found.is_some());
    }
    seen
}
