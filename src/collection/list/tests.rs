//! A list against a plain sequence, rolled back, and its memory.
//!
//! The property tests use few different elements of very different lengths: so equal ones meet,
//! and chunks fill up, part and are joined within few changes.

use proptest::prelude::*;

use super::chunk::CHUNK_BYTES_MAX;
use super::*;

#[derive(Clone, Debug)]
enum Change {
    Push(End, Vec<u8>),
    Pop(End),
    Set(usize, Vec<u8>),
    Insert(usize, Vec<u8>),
    RemoveEqual(Vec<u8>, End, usize),
    Trim(usize, usize),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Left), Just(End::Right)]
}

/// Mostly short and often alike; some so long that few, or only one, fit a chunk.
fn element() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |len| (0..4_u8).prop_map(move |byte| vec![byte; len]);
    prop_oneof![
        8 => (0..12_usize).prop_flat_map(bytes),
        4 => (200..3_000_usize).prop_flat_map(bytes),
        1 => (8_000..9_000_usize).prop_flat_map(bytes),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let place = 0..40_usize;
    prop_oneof![
        8 => (end(), element()).prop_map(|(end, element)| Change::Push(end, element)),
        3 => end().prop_map(Change::Pop),
        3 => (place.clone(), element()).prop_map(|(at, element)| Change::Set(at, element)),
        6 => (place.clone(), element()).prop_map(|(at, element)| Change::Insert(at, element)),
        2 => (element(), end(), 0..4_usize)
            .prop_map(|(element, from, max)| Change::RemoveEqual(element, from, max)),
        1 => (0..4_usize, 20..60_usize).prop_map(|(first, count)| Change::Trim(first, count)),
    ]
}

fn apply(list: &mut List, change: &Change) {
    match change {
        Change::Push(end, element) => list.push(*end, element),
        Change::Pop(end) => drop(list.pop(*end, |_| {})),
        Change::Set(place, element) => drop(list.set(*place, element)),
        Change::Insert(place, element) => list.insert((*place).min(list.len()), element),
        Change::RemoveEqual(element, from, max) => {
            list.remove_equal(element, *from, *max);
        }
        Change::Trim(first, count) => list.trim(*first, *count),
    }
}

/// The same, told as simply as can be.
fn apply_plainly(list: &mut VecDeque<Vec<u8>>, change: &Change) {
    match change {
        Change::Push(End::Left, element) => list.push_front(element.clone()),
        Change::Push(End::Right, element) => list.push_back(element.clone()),
        Change::Pop(End::Left) => drop(list.pop_front()),
        Change::Pop(End::Right) => drop(list.pop_back()),
        Change::Set(place, element) => {
            if let Some(held) = list.get_mut(*place) {
                held.clone_from(element);
            }
        }
        Change::Insert(place, element) => {
            list.insert((*place).min(list.len()), element.clone());
        }
        Change::RemoveEqual(element, from, max) => {
            for _ in 0..*max {
                let place = match from {
                    End::Left => list.iter().position(|held| held == element),
                    End::Right => list.iter().rposition(|held| held == element),
                };
                place.and_then(|place| list.remove(place));
            }
        }
        Change::Trim(first, count) => {
            *list = list.iter().skip(*first).take(*count).cloned().collect();
        }
    }
}

fn check(list: &List, plain: &VecDeque<Vec<u8>>) -> Result<(), TestCaseError> {
    prop_assert!(list.iter().eq(plain.iter().map(Vec::as_slice)));
    prop_assert!(list.iter().rev().eq(plain.iter().rev().map(Vec::as_slice)));
    prop_assert_eq!(list.len(), plain.len());
    prop_assert!(list.chunks.iter().all(|chunk| chunk.len() > 0));
    let sum: usize = list.chunks.iter().map(Chunk::heap_bytes).sum();
    prop_assert_eq!(list.buffer_bytes, sum);
    for place in 0..=plain.len() {
        prop_assert_eq!(list.get(place), plain.get(place).map(Vec::as_slice));
    }
    let from = plain.len() / 2;
    prop_assert!(list.iter_from(from).eq(plain.range(from..).map(Vec::as_slice)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn list_is_what_a_plain_sequence_is(changes in prop::collection::vec(change(), 0..60)) {
        let (mut list, mut plain) = (List::new(0), VecDeque::new());
        for change in &changes {
            apply(&mut list, change);
            apply_plainly(&mut plain, change);
            check(&list, &plain)?;
        }
        let mut encoded = Vec::new();
        list.encode(&mut encoded);
        check(&List::decode(&encoded, 0).expect("just encoded"), &plain)?;
    }

    #[test]
    fn rolled_back_list_is_what_it_was(
        before in prop::collection::vec(change(), 0..60),
        after in prop::collection::vec(change(), 0..60),
    ) {
        let (mut list, mut plain) = (List::new(0), VecDeque::new());
        for change in &before {
            apply(&mut list, change);
            apply_plainly(&mut plain, change);
        }
        prop_assert!(list.begin_undo());
        prop_assert!(!list.begin_undo());
        for change in &after {
            apply(&mut list, change);
        }
        list.roll_back();
        check(&list, &plain)?;
    }
}

fn filled(count: usize) -> List {
    let mut list = List::new(0);
    (0..count).for_each(|number| list.push(End::Right, number.to_string().as_bytes()));
    list
}

#[test]
fn long_list_takes_little_more_than_its_elements() {
    let list = filled(100_000);
    let bytes: usize = list.iter().map(<[u8]>::len).sum();
    assert!(list.heap_bytes() < bytes + 100_000 * 2 + 20_000, "{}", list.heap_bytes());
}

#[test]
fn list_of_one_short_element_takes_three_small_blocks() {
    let list = filled(1);
    assert_eq!(list.heap_bytes(), malloc_bytes(size_of::<List>()) + 48 + 32);
}

#[test]
fn drained_list_gives_its_memory_back() {
    let mut list = filled(100_000);
    while list.len() > 1 {
        list.pop(End::Left, |_| {});
    }
    assert!(list.heap_bytes() < 1_000, "{}", list.heap_bytes());
}

/// Each removal and each insertion would leave one chunk more behind.
#[test]
fn edits_in_the_middle_leave_no_trail_of_small_chunks() {
    let mut list = filled(20_000);
    let full = list.chunks.len();
    for number in 0..19_000_usize {
        list.remove_equal(number.to_string().as_bytes(), End::Left, 1);
    }
    assert!(list.chunks.len() <= 2, "{} chunks", list.chunks.len());
    let mut list = filled(20_000);
    for number in 0..2_000 {
        list.insert(5 * number, &[b'e'; 40]);
    }
    let held: usize = list.iter().map(|element| element.len() + 2).sum();
    assert!(list.chunks.len() > full);
    assert!(list.chunks.len() < 4 * held / CHUNK_BYTES_MAX, "{} chunks", list.chunks.len());
}
