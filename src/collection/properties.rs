//! What hashes and sets promise, tried with random changes in every form they are kept in.
//!
//! Each is compared with a plain map that is changed in the same way. Few different fields and
//! lengths, so that changes meet each other; one long word is enough to make a table.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Hash, Set};

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
}

type Shown = (Vec<(Vec<u8>, Vec<u8>)>, &'static str);

/// A hash, or a set whose members have nothing as their value.
trait Subject {
    const HAS_VALUES: bool;

    fn empty() -> Self;
    fn change(&mut self, change: &Change);
    fn shown(&self) -> Shown;
    /// What a scan meets from a cursor on, and its next one.
    fn scanned(&self, cursor: u64) -> (Vec<Vec<u8>>, u64);
    fn begin_undo(&mut self) -> bool;
    fn roll_back(&mut self);
}

impl Subject for Hash {
    const HAS_VALUES: bool = true;

    fn empty() -> Self {
        Self::new(7)
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Put(field, value) => {
                let is_new = self.get(field).is_none();
                assert_eq!(self.set(field, value), is_new);
                assert_eq!(self.get(field), Some(&value[..]));
            }
            Change::Remove(field) => {
                let was_there = self.get(field).is_some();
                assert_eq!(self.remove(field), was_there);
                assert_eq!(self.get(field), None);
            }
        }
    }

    fn shown(&self) -> Shown {
        let all = self.iter().map(|(field, value)| (field.to_vec(), value.to_vec()));
        assert_eq!(all.len(), self.len());
        (all.collect(), self.encoding())
    }

    fn scanned(&self, cursor: u64) -> (Vec<Vec<u8>>, u64) {
        let (met, next) = self.scan(cursor, 3);
        (met.map(|(field, _)| field.to_vec()).collect(), next)
    }

    fn begin_undo(&mut self) -> bool {
        Self::begin_undo(self)
    }

    fn roll_back(&mut self) {
        Self::roll_back(self);
    }
}

impl Subject for Set {
    const HAS_VALUES: bool = false;

    fn empty() -> Self {
        Self::new(7)
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Put(member, _) => {
                let is_new = !self.contains(member);
                assert_eq!(self.add(member), is_new);
                assert!(self.contains(member));
            }
            Change::Remove(member) => {
                let was_there = self.contains(member);
                assert_eq!(self.remove(member), was_there);
                assert!(!self.contains(member));
            }
        }
    }

    fn shown(&self) -> Shown {
        let all = self.iter().map(|member| (member.to_vec(), Vec::new()));
        assert_eq!(all.len(), self.len());
        (all.collect(), self.encoding())
    }

    fn scanned(&self, cursor: u64) -> (Vec<Vec<u8>>, u64) {
        let (met, next) = self.scan(cursor, 3);
        (met.map(|member| member.to_vec()).collect(), next)
    }

    fn begin_undo(&mut self) -> bool {
        Self::begin_undo(self)
    }

    fn roll_back(&mut self) {
        Self::roll_back(self);
    }
}

fn build<S: Subject>(changes: &[Change]) -> S {
    let mut subject = S::empty();
    for change in changes {
        subject.change(change);
    }
    subject
}

/// The changed collection is what a map would be.
fn follows_a_map<S: Subject>(changes: &[Change]) {
    let shown: BTreeMap<_, _> = build::<S>(changes).shown().0.into_iter().collect();
    let mut model = BTreeMap::new();
    for change in changes {
        match change {
            Change::Put(field, value) => {
                let value = if S::HAS_VALUES { value.clone() } else { Vec::new() };
                drop(model.insert(field.clone(), value));
            }
            Change::Remove(field) => drop(model.remove(field)),
        }
    }
    assert_eq!(shown, model);
}

fn comes_back<S: Subject>(before: &[Change], after: &[Change]) {
    let mut subject = build::<S>(before);
    let shown = subject.shown();
    assert!(subject.begin_undo());
    assert!(!subject.begin_undo());
    for change in after {
        subject.change(change);
    }
    assert!(!subject.begin_undo());
    subject.roll_back();
    assert_eq!(subject.shown(), shown);
    // What was rolled back can be changed, and rolled back, again.
    assert!(subject.begin_undo());
    for change in after.iter().rev() {
        subject.change(change);
    }
    subject.roll_back();
    assert_eq!(subject.shown(), shown);
}

/// Changes happen between the steps of a scan; what is there throughout is met.
fn scan_meets_all<S: Subject>(before: &[Change], between: &[Change]) {
    let fields = |subject: &S| -> BTreeSet<Vec<u8>> {
        subject.shown().0.into_iter().map(|(field, _)| field).collect()
    };
    let mut subject = build::<S>(before);
    let mut throughout = fields(&subject);
    let mut met = BTreeSet::new();
    let (mut cursor, mut changes) = (0, between.iter());
    loop {
        let (some, next) = subject.scanned(cursor);
        met.extend(some);
        cursor = next;
        if cursor == 0 {
            break;
        }
        if let Some(change) = changes.next() {
            subject.change(change);
            throughout = throughout.intersection(&fields(&subject)).cloned().collect();
        }
    }
    assert!(throughout.is_subset(&met), "{throughout:?} of which {met:?} were met");
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0..12_i64).prop_map(|number| number.to_string().into_bytes()),
        4 => (0..12_i64).prop_map(|number| (number << 40).to_string().into_bytes()),
        8 => (0..12_usize).prop_map(|number| format!("field:{number}").into_bytes()),
        1 => Just(Vec::new()),
        1 => (63..66_usize).prop_map(|len| vec![b'w'; len]),
    ]
}

fn changes(max: usize) -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        2 => (word(), word()).prop_map(|(field, value)| Change::Put(field, value)),
        1 => word().prop_map(Change::Remove),
    ];
    proptest::collection::vec(change, 0..max)
}

/// So many fields that even short ones make a table.
fn many() -> Vec<Change> {
    let field = |number: usize| format!("field:{number}").into_bytes();
    (0..700).map(|number| Change::Put(field(number), field(number))).collect()
}

fn only_numbers(changes: Vec<Change>) -> Vec<Change> {
    let is_number = |field: &[u8]| field.first().is_some_and(u8::is_ascii_digit);
    let keep = |change: &Change| match change {
        Change::Put(field, _) | Change::Remove(field) => is_number(field),
    };
    changes.into_iter().filter(keep).collect()
}

proptest! {
    #[test]
    fn changed_collections_are_what_a_map_would_be(changes in changes(80)) {
        follows_a_map::<Hash>(&changes);
        follows_a_map::<Set>(&changes);
        follows_a_map::<Set>(&only_numbers(changes));
    }

    #[test]
    fn rolled_back_collections_are_what_they_were(before in changes(40), after in changes(40)) {
        comes_back::<Hash>(&before, &after);
        comes_back::<Set>(&before, &after);
        comes_back::<Set>(&only_numbers(before), &after);
    }

    #[test]
    fn scan_meets_what_is_there_throughout(before in changes(60), between in changes(40)) {
        scan_meets_all::<Hash>(&before, &between);
        scan_meets_all::<Set>(&before, &between);
        let long = [Change::Put(vec![b'l'; 99], Vec::new())];
        scan_meets_all::<Set>(&[&before, &long[..]].concat(), &between);
    }

    #[test]
    fn collections_decode_to_what_was_encoded(changes in changes(60)) {
        let (hash, set) = (build::<Hash>(&changes), build::<Set>(&changes));
        let mut encoded = Vec::new();
        hash.encode(&mut encoded);
        let decoded = Hash::decode(&encoded, 9).expect("just encoded");
        prop_assert_eq!(decoded.shown().0, hash.shown().0);
        encoded.clear();
        set.encode(&mut encoded);
        let decoded: BTreeSet<_> =
            Set::decode(&encoded, 9).expect("just encoded").shown().0.into_iter().collect();
        prop_assert_eq!(decoded, set.shown().0.into_iter().collect::<BTreeSet<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn rolled_back_large_collections_are_what_they_were(after in changes(60)) {
        comes_back::<Hash>(&many(), &after);
        comes_back::<Set>(&many(), &after);
    }
}

#[test]
fn forms_follow_the_thresholds_of_redis() {
    let number = |number: usize| number.to_string().into_bytes();
    let word = |number: usize| format!("m{number}").into_bytes();
    let put = |name: &dyn Fn(usize) -> Vec<u8>, count: usize| -> Vec<Change> {
        (0..count).map(|at| Change::Put(name(at), Vec::new())).collect()
    };
    let set = |changes: &[Change]| build::<Set>(changes).encoding();
    let hash = |changes: &[Change]| build::<Hash>(changes).encoding();
    assert_eq!((set(&put(&number, 512)), set(&put(&number, 513))), ("intset", "hashtable"));
    assert_eq!((set(&put(&word, 128)), set(&put(&word, 129))), ("listpack", "hashtable"));
    let with_word = |count| set(&[put(&number, count), put(&word, 1)].concat());
    assert_eq!((with_word(127), with_word(128)), ("listpack", "hashtable"));
    assert_eq!((hash(&put(&word, 512)), hash(&put(&word, 513))), ("listpack", "hashtable"));
    for (len, encoding) in [(64, "listpack"), (65, "hashtable")] {
        let long = vec![b'l'; len];
        assert_eq!(set(&[Change::Put(long.clone(), Vec::new())]), encoding);
        assert_eq!(hash(&[Change::Put(long.clone(), Vec::new())]), encoding);
        let replaced = [b"1", b"2"].map(|value| Change::Put(b"f".to_vec(), value.to_vec()));
        let grown = [&replaced[..], &[Change::Put(b"f".to_vec(), long)]].concat();
        assert_eq!(hash(&grown), encoding);
    }
}

#[test]
fn memory_is_given_back_as_elements_go() {
    let (few, many) = (build::<Hash>(&many()[..20]), many());
    let mut hash = build::<Hash>(&many);
    let full = hash.heap_bytes();
    for change in &many[20..] {
        let Change::Put(field, _) = change else { continue };
        hash.change(&Change::Remove(field.clone()));
    }
    assert!(hash.heap_bytes() < full / 8, "{full} {}", hash.heap_bytes());
    assert!(few.heap_bytes() < 700, "twenty fields and values of 8 bytes: {}", few.heap_bytes());
}
