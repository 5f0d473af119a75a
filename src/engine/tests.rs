//! The engine against a plain map: the same operations, the same contents.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::table::Table;
use super::*;
use crate::limit::{Algorithm, Quota, State};
use crate::time::Duration;

pub(super) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn engine() -> Engine {
    Engine::new(4, 7)
}

pub(super) fn put(engine: &Engine, key: &[u8], number: i64, expires: Timestamp, now: Timestamp) {
    let key = engine.key(key);
    engine.transact(Scope::Keys(&[key]), 0, now, |view| {
        view.insert(key, Value::Integer(number), expires);
    });
}

pub(super) fn get(engine: &Engine, key: &[u8], now: Timestamp) -> Option<i64> {
    let key = engine.key(key);
    engine.transact(Scope::Keys(&[key]), 0, now, |view| match view.read(key)?.value {
        Value::Integer(number) => Some(*number),
        _ => None,
    })
}

fn contents(engine: &Engine, db: usize, now: Timestamp) -> BTreeMap<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    engine.transact(Scope::All, db, now, |view| {
        let end = view.scan(Cursor::default(), &mut { usize::MAX }, |key, value| {
            let twice = all.insert(key.to_vec(), format!("{value:?}"));
            assert!(twice.is_none(), "shown twice");
        });
        assert_eq!(end, None);
    });
    all
}

/// What changes and walks give, as a snapshot and a journal take it.
#[derive(Default)]
pub(super) struct Follower {
    collector: Collector,
    records: Vec<u8>,
}

impl Follower {
    /// Takes what has changed in all shards, some of them first.
    pub(super) fn collect(&mut self, engine: &Engine, first: usize) {
        for shard in 0..engine.shards() {
            let shard = (shard + first) % engine.shards();
            let mut place = Place::default();
            while let Step::More(next) = engine
                .collect_changes(&mut self.collector, (shard, place), &mut self.records)
                .expect("fewer than overflow")
            {
                place = next;
            }
        }
    }

    /// Walks over all there is.
    fn walk(&mut self, engine: &Engine, now: Timestamp) {
        for shard in 0..engine.shards() {
            let mut place = Place::default();
            while let Step::More(next) = engine.walk_shard((shard, place), now, &mut self.records) {
                place = next;
            }
        }
    }

    pub(super) fn replay(&self, into: &Engine, now: Timestamp) {
        let mut records = self.records.as_slice();
        while let Some(record) = Record::next(&mut records).expect("just written") {
            into.restore(&record, now).expect("just written");
        }
    }
}

/// Databases that the operations go to.
const MODEL_DATABASES: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Put(u8, i64, Option<u16>),
    Add(u8, i64),
    Remove(u8),
    Expire(u8, u16),
    Wait(u16),
    Sweep,
    Select(usize),
    Swap(usize),
    Flush,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<u8>(), any::<i64>(), proptest::option::of(1_u16..500))
            .prop_map(|(key, number, ttl)| Op::Put(key, number, ttl)),
        8 => (any::<u8>(), -5_i64..5).prop_map(|(key, by)| Op::Add(key, by)),
        8 => any::<u8>().prop_map(Op::Remove),
        8 => (any::<u8>(), 0_u16..500).prop_map(|(key, ttl)| Op::Expire(key, ttl)),
        8 => (1_u16..100).prop_map(Op::Wait),
        8 => Just(Op::Sweep),
        4 => (0..MODEL_DATABASES).prop_map(Op::Select),
        2 => (0..MODEL_DATABASES).prop_map(Op::Swap),
        1 => Just(Op::Flush),
    ]
}

#[derive(Default)]
struct Model {
    databases: [HashMap<u8, (i64, Timestamp)>; MODEL_DATABASES],
    db: usize,
}

impl Model {
    fn forget_expired(&mut self, now: Timestamp) {
        for database in &mut self.databases {
            database.retain(|_, (_, expires)| *expires > now);
        }
    }

    fn contents(&self, db: usize) -> BTreeMap<Vec<u8>, String> {
        self.databases[db]
            .iter()
            .map(|(key, (number, _))| (vec![*key], format!("{:?}", Value::Integer(*number))))
            .collect()
    }
}

fn apply(op: &Op, engine: &Engine, model: &mut Model, now: &mut Timestamp) {
    model.forget_expired(*now);
    let at = |ttl: u16| *now + Duration::from_millis(u64::from(ttl));
    let db = model.db;
    let keys = &mut model.databases[db];
    let name = match *op {
        Op::Put(key, ..) | Op::Add(key, _) | Op::Remove(key) | Op::Expire(key, _) => [key],
        Op::Wait(_) | Op::Sweep | Op::Select(_) | Op::Swap(_) | Op::Flush => [0],
    };
    let asked = engine.key(&name);
    let scope = Scope::Keys(std::slice::from_ref(&asked));
    match *op {
        Op::Put(key, number, ttl) => {
            let expires = ttl.map_or(Timestamp::MAX, at);
            engine.transact(scope, db, *now, |view| {
                view.insert(asked, Value::Integer(number), expires);
            });
            keys.insert(key, (number, expires));
        }
        Op::Add(key, by) => {
            let sum = engine.transact(scope, db, *now, |view| add(view, asked, by));
            let held = keys.entry(key).or_insert((0, Timestamp::MAX));
            held.0 = held.0.wrapping_add(by);
            assert_eq!(sum, Ok(held.0));
        }
        Op::Remove(key) => {
            let was = engine.transact(scope, db, *now, |view| view.remove(asked));
            assert_eq!(was, keys.remove(&key).is_some());
        }
        Op::Expire(key, ttl) => {
            engine.transact(scope, db, *now, |view| view.set_expires(asked, at(ttl)));
            if let Some((_, expires)) = keys.get_mut(&key) {
                *expires = at(ttl);
            }
        }
        Op::Wait(ms) => *now = *now + Duration::from_millis(u64::from(ms)),
        Op::Sweep => while !engine.sweep(*now) {},
        Op::Select(chosen) => model.db = chosen,
        Op::Swap(other) => {
            engine.transact(Scope::All, db, *now, |view| view.swap(other));
            model.databases.swap(db, other);
        }
        Op::Flush => {
            engine.transact(Scope::All, db, *now, |view| drop(view.flush()));
            keys.clear();
        }
    }
}

fn add(view: &mut View<'_>, key: KeyRef<'_>, by: i64) -> Result<i64, OutOfMemory> {
    view.update(
        key,
        |_| Value::Integer(0),
        |value, _| {
            let Value::Integer(number) = value else { panic!("only integers here") };
            *number = number.wrapping_add(by);
            Ok((*number, Kept::Changed { expires: Expires::Keep }))
        },
    )
}

proptest! {
    #[test]
    fn engine_holds_what_a_plain_map_holds(ops in proptest::collection::vec(op(), 1..300)) {
        let engine = engine();
        engine.track_changes(true);
        let (mut model, mut now) = (Model::default(), START);
        let (mut all, mut late) = (Follower::default(), Follower::default());
        for (number, op) in ops.iter().enumerate() {
            apply(op, &engine, &mut model, &mut now);
            if number % 7 == 6 {
                // Both are told the same, but one begins with a walk in the middle of it.
                let before = all.records.len();
                all.collect(&engine, number);
                late.records.extend_from_slice(&all.records[before..]);
            }
            if number == ops.len() / 2 {
                late.records.clear();
                late.walk(&engine, now);
            }
        }
        let before = all.records.len();
        all.collect(&engine, 0);
        late.records.extend_from_slice(&all.records[before..]);
        model.forget_expired(now);
        // Another seed and other shards: a file is read by another process.
        let (replica, late_replica) = (Engine::new(8, 8), Engine::new(2, 9));
        all.replay(&replica, now);
        late.replay(&late_replica, now);
        for db in 0..MODEL_DATABASES {
            let expected = model.contents(db);
            prop_assert_eq!(&contents(&engine, db, now), &expected);
            prop_assert_eq!(&contents(&replica, db, now), &expected);
            prop_assert_eq!(&contents(&late_replica, db, now), &expected);
        }

        while !engine.sweep(now) {}
        let stats = engine.stats();
        for db in 0..MODEL_DATABASES {
            prop_assert_eq!(stats.databases[db].keys, model.databases[db].len());
        }
        prop_assert_eq!(stats.used_bytes, engine.used_bytes());
        for db in 0..MODEL_DATABASES {
            engine.transact(Scope::All, db, now, |view| drop(view.flush()));
        }
        prop_assert_eq!(engine.used_bytes(), 0);
    }

    #[test]
    fn scan_shows_each_lasting_key_once_while_others_come_and_go(
        lasting in proptest::collection::hash_set(0_u16..5_000, 1..400),
        churn in proptest::collection::vec((5_000_u16..6_000, any::<bool>()), 0..2_000),
        page in 1_usize..200,
    ) {
        let engine = engine();
        for key in &lasting {
            put(&engine, &key.to_be_bytes(), 1, Timestamp::MAX, START);
        }
        let mut churn = churn.into_iter();
        let (mut cursor, mut seen) = (Cursor::default(), Vec::new());
        loop {
            let next = engine.transact(Scope::All, 0, START, |view| {
                view.scan(cursor, &mut { page }, |key, _| {
                    seen.push(u16::from_be_bytes(key.try_into().expect("two bytes")));
                })
            });
            for (key, add) in churn.by_ref().take(50) {
                let name = key.to_be_bytes();
                if add {
                    put(&engine, &name, 2, Timestamp::MAX, START);
                } else {
                    let asked = engine.key(&name);
                    engine.transact(Scope::Keys(&[asked]), 0, START, |view| view.remove(asked));
                }
            }
            let Some(next) = next else { break };
            prop_assert_ne!(next, Cursor::default());
            cursor = next;
        }
        seen.retain(|key| *key < 5_000);
        seen.sort_unstable();
        let mut expected: Vec<u16> = lasting.into_iter().collect();
        expected.sort_unstable();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn time_never_goes_back_inside_a_shard() {
    let engine = engine();
    let key = engine.key(b"k");
    let later = START + Duration::from_secs(10);
    engine.transact(Scope::Keys(&[key]), 0, later, |view| assert_eq!(view.now(), later));
    engine.transact(Scope::Keys(&[key]), 0, START, |view| assert_eq!(view.now(), later));
}

#[test]
fn expired_key_is_gone_at_its_deadline_and_not_before() {
    let engine = engine();
    let deadline = START + Duration::from_millis(5);
    put(&engine, b"k", 1, deadline, START);
    assert_eq!(get(&engine, b"k", deadline - Duration::from_micros(1)), Some(1));
    assert_eq!(get(&engine, b"k", deadline), None);
    assert_eq!(engine.stats().expired, 1);
}

#[test]
fn removing_most_keys_gives_their_memory_back() {
    let engine = engine();
    for number in 0..20_000_u32 {
        put(&engine, &number.to_be_bytes(), 1, Timestamp::MAX, START);
    }
    for number in 10..20_000_u32 {
        let name = number.to_be_bytes();
        let key = engine.key(&name);
        engine.transact(Scope::Keys(&[key]), 0, START, |view| view.remove(key));
    }
    let slots: u32 =
        engine.shards.iter().map(|shard| shard.lock().table(0).map_or(0, Table::slots)).sum();
    assert!(slots <= 16 * 4, "{slots} slots for ten keys");
}

#[test]
fn empty_slots_are_charged_until_their_chunk_is_given_back() {
    let engine = Engine::new(1, 7);
    for number in 0..6_400_u32 {
        put(&engine, &number.to_be_bytes(), 1, Timestamp::MAX, START);
    }
    // Every 32nd key stays: one in every second chunk.
    for number in (0..6_400_u32).filter(|number| number % 32 != 0) {
        let name = number.to_be_bytes();
        let key = engine.key(&name);
        engine.transact(Scope::Keys(&[key]), 0, START, |view| view.remove(key));
    }
    let slot_bytes = engine.used_bytes() / 200;
    assert!((16 * 80..17 * 80 + 32).contains(&slot_bytes), "{slot_bytes} bytes for a key");
    assert_eq!(engine.stats().used_bytes, engine.used_bytes());
}

/// What remembers a denial may go on repeating it while the generation stands.
#[test]
fn limiter_generation_stands_through_a_spend_and_moves_at_any_other_change() {
    let engine = Engine::new(1, 7);
    let key = engine.key(b"k");
    let quota = Quota::new(Algorithm::FixedWindow, 5, Duration::from_secs(60)).expect("plain");
    let limiter = || Value::Limit(State::new(&quota, START));
    let moved = |change: &dyn Fn(&mut View<'_>)| {
        let before = engine.shards[0].lock().limiter_generation();
        engine.transact(Scope::Keys(&[key]), 0, START, |view| change(view));
        engine.shards[0].lock().limiter_generation() != before
    };
    let edit = |kept: Kept| {
        move |view: &mut View<'_>| {
            view.edit(key, |_, _| Ok::<_, OutOfMemory>(((), kept))).expect("nothing fails");
        }
    };
    assert!(moved(&|view| view.insert(key, limiter(), Timestamp::MAX)));
    assert!(!moved(&edit(Kept::Unchanged)));
    assert!(!moved(&edit(Kept::Spent { expires: START + Duration::from_secs(60) })));
    assert!(moved(&edit(Kept::Changed { expires: Expires::Keep })));
    assert!(moved(&|view| assert!(view.set_expires(key, START + Duration::from_secs(1)))));
    assert!(moved(&|view| view.insert(key, Value::Integer(1), Timestamp::MAX)));
    assert!(!moved(&edit(Kept::Changed { expires: Expires::Keep })), "no limiter any more");
    assert!(!moved(&|view| assert!(view.remove(key))));
    assert!(moved(&|view| view.insert(key, limiter(), Timestamp::MAX)));
    assert!(moved(&|view| assert!(view.remove(key))));
    let spend = |view: &mut View<'_>| {
        let kept = Kept::Spent { expires: START + Duration::from_secs(60) };
        let spent = |_: &mut Value, _| Ok::<_, OutOfMemory>(((), kept));
        view.update(key, |_| limiter(), spent).expect("there is room");
    };
    assert!(!moved(&spend), "the first spend of a key is a spend");
}

#[test]
fn new_key_at_the_memory_bound_is_refused_and_a_live_one_is_not() {
    let engine = engine();
    put(&engine, b"old", 1, Timestamp::MAX, START);
    engine.set_memory_max(engine.used_bytes());
    let add = |name: &[u8]| {
        let key = engine.key(name);
        engine.transact(Scope::Keys(&[key]), 0, START, |view| {
            view.update(
                key,
                |_| Value::Integer(0),
                |_, _| Ok::<_, OutOfMemory>(((), Kept::Changed { expires: Expires::Keep })),
            )
        })
    };
    assert_eq!(add(b"old"), Ok(()));
    assert_eq!(add(b"new"), Err(OutOfMemory));
}

fn draws(engine: &Engine, now: Timestamp) -> HashMap<Vec<u8>, usize> {
    let mut drawn = HashMap::new();
    for _ in 0..20_000 {
        let key = engine.transact(Scope::All, 0, now, |view| {
            view.random_key().expect("twenty live").as_bytes().to_vec()
        });
        *drawn.entry(key).or_default() += 1;
    }
    drawn
}

#[test]
fn random_key_finds_every_live_key_about_as_often() {
    let engine = engine();
    assert!(engine.transact(Scope::All, 0, START, |view| view.random_key().is_none()));
    for number in 0..20_u8 {
        put(&engine, &[number], 1, Timestamp::MAX, START);
    }
    put(&engine, b"gone", 1, START + Duration::from_secs(1), START);
    let drawn = draws(&engine, START + Duration::from_secs(1));
    assert_eq!(drawn.len(), 20);
    assert!(drawn.values().all(|count| (800..1_200).contains(count)), "{drawn:?}");
}

#[test]
fn random_key_finds_every_key_that_a_large_table_has_left() {
    let engine = engine();
    for number in 0..20_000_u16 {
        put(&engine, &number.to_be_bytes(), 1, START + Duration::from_secs(1), START);
        if number % 1_000 == 0 {
            put(&engine, &[b'k', (number / 1_000) as u8, 0], 1, Timestamp::MAX, START);
        }
    }
    let later = START + Duration::from_secs(1);
    while !engine.sweep(later) {}
    assert_eq!(draws(&engine, later).len(), 20);
}

#[test]
fn swapped_databases_have_each_others_keys() {
    let engine = engine();
    put(&engine, b"a", 1, START + Duration::from_secs(9), START);
    let used = engine.used_bytes();
    engine.transact(Scope::All, 0, START, |view| view.swap(3));
    assert_eq!(get(&engine, b"a", START), None);
    let databases = engine.stats().databases;
    assert_eq!((databases[0].keys, databases[3].keys, databases[3].expiring), (0, 1, 1));
    assert_eq!(engine.used_bytes(), used);
    engine.transact(Scope::All, 3, START, |view| view.swap(0));
    assert_eq!(get(&engine, b"a", START), Some(1));
}

#[test]
fn scan_ends_at_a_cursor_beyond_all_shards() {
    let engine = engine();
    put(&engine, b"a", 1, Timestamp::MAX, START);
    for number in [u64::MAX, 4 << 32, 3 << 32 | 0xFFFF_FFFF] {
        let cursor = Cursor::from_number(number);
        let (shown, next) = engine.transact(cursor.scope(), 0, START, |view| {
            let mut shown = 0;
            let next = view.scan(cursor, &mut { usize::MAX }, |_, _| shown += 1);
            (shown, next)
        });
        assert_eq!((shown, next), (0, None));
    }
}

#[test]
fn key_that_the_transaction_did_not_name_is_never_looked_up_elsewhere() {
    let engine = engine();
    let named = engine.key(b"named");
    let names: Vec<[u8; 1]> = (0..=u8::MAX).map(|byte| [byte]).collect();
    let stranger = names
        .iter()
        .map(|name| engine.key(name))
        .find(|key| engine.shard_of(*key) != engine.shard_of(named))
        .expect("of so many keys one is in another shard");
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        engine.transact(Scope::Keys(&[named]), 0, START, |view| view.look(stranger).is_some())
    }));
    assert!(looked.is_err());
}
