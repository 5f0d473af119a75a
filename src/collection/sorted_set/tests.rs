//! A sorted set against the plainest one there is: a list that is sorted after each change.

use proptest::prelude::*;

use super::{Direction, SortedSet, compare};
use crate::size::malloc_bytes;

/// What is known to be right: members and scores in order.
#[derive(Clone, Debug, Default)]
struct Reference(Vec<(Vec<u8>, f64)>);

impl Reference {
    fn set(&mut self, member: &[u8], score: f64) {
        self.remove(member);
        self.0.push((member.to_vec(), score));
        self.0.sort_by(|one, other| compare((one.1, &one.0), (other.1, &other.0)));
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let before = self.0.len();
        self.0.retain(|(other, _)| other != member);
        self.0.len() < before
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, f64),
    Remove(Vec<u8>),
    /// Where a range begins and how long it is, in thousandths of what there is.
    RemoveRanks(usize, usize),
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        20 => (0_u32..400).prop_map(|number| format!("member:{number}").into_bytes()),
        1 => (0_u32..9).prop_map(|number| format!("{number:064}").into_bytes()),
        1 => Just(Vec::new()),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-50_i32..50).prop_map(f64::from),
        1 => prop_oneof![Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(0.5)],
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (member(), score()).prop_map(|(member, score)| Step::Set(member, score)),
        2 => member().prop_map(Step::Remove),
        1 => (0_usize..1_000, 0_usize..300).prop_map(|(at, of)| Step::RemoveRanks(at, of)),
    ]
}

fn take(step: &Step, set: &mut SortedSet, reference: &mut Reference) {
    match step {
        Step::Set(member, score) => {
            set.set(member, *score);
            reference.set(member, *score);
        }
        Step::Remove(member) => {
            assert_eq!(set.remove(member).is_some(), reference.remove(member));
        }
        Step::RemoveRanks(at, of) => {
            let len = reference.0.len();
            let start = len * at / 1_000;
            let end = (start + len * of / 1_000).min(len);
            set.remove_ranks(start..end);
            reference.0.drain(start..end);
        }
    }
}

fn shown(set: &SortedSet) -> Vec<(Vec<u8>, f64)> {
    let mut shown = Vec::new();
    set.visit_all(|member, score| shown.push((member.to_vec(), score)));
    shown
}

fn check(set: &SortedSet, reference: &Reference) {
    assert_eq!(set.len(), reference.0.len());
    assert_eq!(shown(set), reference.0);
    for (rank, (member, score)) in reference.0.iter().enumerate() {
        assert_eq!(set.rank(member), Some((rank, *score)));
        assert_eq!(set.score(member), Some(*score));
    }
    assert_eq!(set.rank(b"nobody"), None);
    for bound in [-50.0, -1.0, 0.0, 0.5, 49.0, f64::INFINITY] {
        let below = reference.0.iter().filter(|(_, score)| *score < bound).count();
        assert_eq!(set.rank_where(|score, _| score < bound), below);
    }
    let (from, to) = (set.len() / 3, set.len() / 3 * 2);
    let mut back = Vec::new();
    set.visit(from..to, Direction::Descending, |member, _| back.push(member.to_vec()));
    let expected = reference.0[from..to].iter().rev().map(|(member, _)| member.clone());
    assert_eq!(back, expected.collect::<Vec<_>>());
}

fn set_of(members: usize) -> SortedSet {
    let mut set = SortedSet::new(7);
    for number in 0..members {
        set.set(format!("{number:020}").as_bytes(), number as f64);
    }
    set
}

fn scanned(set: &SortedSet, mut between: impl FnMut()) -> Vec<Vec<u8>> {
    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = set.scan(cursor, 10, |member, _| seen.push(member.to_vec()));
        between();
        if cursor == 0 {
            return seen;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn behaves_as_a_sorted_list(steps in proptest::collection::vec(step(), 0..700)) {
        let (mut set, mut reference) = (SortedSet::new(7), Reference::default());
        for (number, step) in steps.iter().enumerate() {
            take(step, &mut set, &mut reference);
            if number % 100 == 0 {
                check(&set, &reference);
            }
        }
        check(&set, &reference);
        check(&set.clone(), &reference);
        let mut encoded = Vec::new();
        set.encode(&mut encoded);
        check(&SortedSet::decode(&encoded, 3).expect("just encoded"), &reference);
    }

    #[test]
    fn rolled_back_set_is_as_it_was(
        before in proptest::collection::vec(step(), 0..500),
        after in proptest::collection::vec(step(), 0..500),
    ) {
        let (mut set, mut reference) = (SortedSet::new(7), Reference::default());
        for step in &before {
            take(step, &mut set, &mut reference);
        }
        let original = reference.clone();
        prop_assert!(set.begin_undo() && !set.begin_undo());
        for step in &after {
            take(step, &mut set, &mut reference);
        }
        check(&set, &reference);
        set.roll_back();
        check(&set, &original);
    }
}

#[test]
fn form_changes_where_that_of_redis_does() {
    assert_eq!(set_of(128).encoding(), "listpack");
    let mut set = set_of(129);
    assert_eq!(set.encoding(), "skiplist");
    set.remove_ranks(1..129);
    assert_eq!(set.encoding(), "skiplist");
    for (len, encoding) in [(64, "listpack"), (65, "skiplist")] {
        let mut set = SortedSet::new(7);
        set.set(&vec![b'm'; len], 1.0);
        assert_eq!(set.encoding(), encoding, "{len}");
    }
    let mut full = set_of(128);
    full.set(b"00000000000000000005", 500.0);
    assert_eq!(full.encoding(), "listpack", "no member is new");
}

/// What MEMORY USAGE of Redis 7.0.15 answers for the same sets.
#[test]
fn takes_no_more_memory_than_redis() {
    for (members, redis_bytes) in [(10, 432), (128, 5_168), (1_000, 118_184), (1_025, 136_816)] {
        let bytes = set_of(members).heap_bytes();
        assert!(bytes <= redis_bytes, "{members} members: {bytes} bytes, not {redis_bytes}");
    }
}

#[test]
fn memory_is_given_back() {
    let mut set = set_of(10_000);
    let full = set.heap_bytes();
    set.remove_ranks(100..10_000);
    assert!(set.heap_bytes() < full / 20, "{} of {full} bytes", set.heap_bytes());
    assert_eq!((set.score(b"00000000000000000099"), set.len()), (Some(99.0), 100));
}

#[test]
fn long_members_are_counted_as_what_they_take() {
    let mut set = set_of(200);
    let before = set.heap_bytes();
    set.set(&[b'm'; 100], 1_000.0);
    assert_eq!(set.heap_bytes(), before + malloc_bytes(100));
    set.remove(&[b'm'; 100]);
    // The list of free slots has been made.
    assert_eq!(set.heap_bytes(), before + malloc_bytes(4 * size_of::<u32>()));
}

#[test]
fn scan_shows_everyone_once() {
    for members in [0, 5, 128, 129, 1_000] {
        let mut seen = scanned(&set_of(members), || {});
        seen.sort();
        let all: Vec<Vec<u8>> =
            (0..members).map(|number| format!("{number:020}").into_bytes()).collect();
        assert_eq!(seen, all);
    }
}

#[test]
fn scan_misses_nobody_while_others_go_and_come() {
    let mut set = set_of(4_000);
    let (mut seen, mut cursor, mut round) = (std::collections::BTreeSet::new(), 0, 0);
    loop {
        cursor = set.scan(cursor, 50, |member, _| seen.extend([member.to_vec()]));
        if cursor == 0 {
            break;
        }
        round += 1;
        // Every fortieth member stays: the slots are packed together in the middle of the scan.
        for number in (0..4_000).filter(|number| number % 40 != 0 && number % 10 == round % 10) {
            set.remove(format!("{number:020}").as_bytes());
        }
        set.set(format!("new {round}").as_bytes(), f64::from(round));
    }
    for number in (0..4_000).filter(|number| number % 40 == 0) {
        assert!(seen.contains(format!("{number:020}").as_bytes()), "{number} was missed");
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let mut encoded = Vec::new();
    set_of(2).encode(&mut encoded);
    let len = encoded.len();
    assert!(SortedSet::decode(&encoded[..len - 1], 7).is_err());
    encoded[len - 8..].copy_from_slice(&f64::NAN.to_le_bytes());
    assert!(SortedSet::decode(&encoded, 7).is_err());
}
