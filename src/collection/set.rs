//! A set: members, each once, in no promised order.
//!
//! Whole numbers alone are kept in order; other members, while they are few and short, stand in
//! the order in which they came.

use std::ops::Deref;

use super::coded::{DecodeError, Pieces, put_bytes, put_len};
use super::fields::{Fields, Iter};
use super::integers::{Digits, Integers};
use crate::protocol::parse_i64;
use crate::size::malloc_bytes;

/// Members of the largest set that is packed: Redis's default of set-max-listpack-entries.
const PACKED_MAX: u32 = 128;

/// Members of the largest set of numbers: Redis's default of set-max-intset-entries.
const INTEGERS_MAX: usize = 512;

#[derive(Clone, Debug)]
enum Form {
    Integers(Integers),
    /// The members are fields, with nothing as their value.
    Fields(Fields),
}

#[derive(Clone, Debug)]
pub(crate) struct Set {
    form: Form,
    /// What it was before the first change that may have to be taken back, if it was numbers.
    before: Option<Box<Integers>>,
    seed: u64,
}

impl Set {
    /// Nothing yet. The seed makes it unpredictable from outside how it is kept.
    pub(crate) fn new(seed: u64) -> Self {
        Self { form: Form::Integers(Integers::EMPTY), before: None, seed }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.form {
            Form::Integers(integers) => integers.len(),
            Form::Fields(fields) => fields.len(),
        }
    }

    pub(crate) fn contains(&self, member: &[u8]) -> bool {
        self.find(member).is_some()
    }

    /// Returns whether the member is new.
    pub(crate) fn add(&mut self, member: &[u8]) -> bool {
        match (&mut self.form, parse_i64(member)) {
            (Form::Integers(integers), Some(number)) => {
                let added = integers.insert(number);
                if integers.len() > INTEGERS_MAX {
                    self.make_fields();
                }
                added
            }
            (Form::Integers(_), None) => {
                self.make_fields();
                self.add(member)
            }
            (Form::Fields(fields), _) => {
                let added = fields.find(member).is_none();
                if added {
                    fields.push(member, &[]);
                }
                added
            }
        }
    }

    /// Returns whether the member was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let found = self.find(member);
        if let Some(at) = found {
            match &mut self.form {
                Form::Integers(integers) => integers.remove(at),
                Form::Fields(fields) => fields.remove(at),
            }
        }
        found.is_some()
    }

    /// Takes out the members in these places of [`Set::iter`], which ascend.
    pub(crate) fn remove_places(&mut self, places: &[usize]) {
        // From behind, where nothing moves that is yet to go.
        for place in places.iter().rev() {
            match &mut self.form {
                Form::Integers(integers) => integers.remove(*place),
                Form::Fields(fields) => fields.remove_place(*place),
            }
        }
    }

    pub(crate) fn iter(&self) -> Members<'_> {
        match &self.form {
            Form::Integers(integers) => Members(Walk::Integers(integers, 0)),
            Form::Fields(fields) => Members(Walk::Fields(fields.iter())),
        }
    }

    /// Those that a scan meets next, some `count` of them, and where it goes on. Zero begins, and
    /// zero ends; a member that is there throughout is met.
    pub(crate) fn scan(&self, cursor: u64, count: usize) -> (Members<'_>, u64) {
        match &self.form {
            Form::Integers(_) => (self.iter(), 0),
            Form::Fields(fields) => {
                let (fields, next) = fields.scan(cursor, count);
                (Members(Walk::Fields(fields)), next)
            }
        }
    }

    /// What OBJECT ENCODING answers: Redis's name for how it would keep such a collection.
    pub(crate) fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Integers(_) => "intset",
            Form::Fields(fields) if fields.is_packed() => "listpack",
            Form::Fields(_) => "hashtable",
        }
    }

    /// Its own block and all that it owns.
    pub(crate) fn heap_bytes(&self) -> usize {
        let owned = match &self.form {
            Form::Integers(integers) => integers.heap_bytes(),
            Form::Fields(fields) => fields.heap_bytes(),
        };
        malloc_bytes(size_of::<Self>()) + owned
    }

    /// Reads some of what the next request will; the result means nothing.
    pub(crate) fn prefetch(&self) -> u64 {
        match &self.form {
            Form::Integers(integers) => integers.prefetch(),
            Form::Fields(fields) => fields.prefetch(),
        }
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(crate) fn begin_undo(&mut self) -> bool {
        if self.before.is_some() {
            return false;
        }
        match &mut self.form {
            Form::Integers(integers) => {
                self.before = Some(Box::new(integers.clone()));
                true
            }
            Form::Fields(fields) => fields.begin_undo(),
        }
    }

    /// What is kept to take changes back.
    pub(crate) fn undo_bytes(&self) -> usize {
        let before = self.before.as_ref().map_or(0, |integers| integers.heap_bytes());
        match &self.form {
            Form::Integers(_) => before,
            Form::Fields(fields) => before + fields.undo_bytes(),
        }
    }

    pub(crate) fn forget_undo(&mut self) {
        self.before = None;
        if let Form::Fields(fields) = &mut self.form {
            fields.forget_undo();
        }
    }

    pub(crate) fn roll_back(&mut self) {
        match (self.before.take(), &mut self.form) {
            (Some(integers), form) => *form = Form::Integers(*integers),
            (None, Form::Fields(fields)) => fields.roll_back(),
            (None, Form::Integers(_)) => {}
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        for member in self.iter() {
            put_bytes(&member, out);
        }
    }

    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let mut pieces = Pieces(bytes);
        let mut set = Self::new(seed);
        for _ in 0..pieces.len()? {
            if !set.add(pieces.bytes()?) {
                return Err(DecodeError);
            }
        }
        pieces.end().map(|()| set)
    }

    /// Where the member stands, until something changes.
    fn find(&self, member: &[u8]) -> Option<usize> {
        match &self.form {
            Form::Integers(integers) => integers.find(parse_i64(member)?),
            Form::Fields(fields) => fields.find(member),
        }
    }

    /// No longer only numbers from now on.
    fn make_fields(&mut self) {
        let mut fields = Fields::new(self.seed, PACKED_MAX);
        for member in self.iter() {
            fields.push(&member, &[]);
        }
        self.form = Form::Fields(fields);
    }
}

/// A member of a set, as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Member<'s> {
    Bytes(&'s [u8]),
    Number(Digits),
}

impl Deref for Member<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(digits) => digits,
        }
    }
}

impl AsRef<[u8]> for Member<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Members, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Members<'s>(Walk<'s>);

#[derive(Clone, Debug)]
enum Walk<'s> {
    /// Of the numbers, from a place on.
    Integers(&'s Integers, usize),
    Fields(Iter<'s>),
}

impl<'s> Iterator for Members<'s> {
    type Item = Member<'s>;

    fn next(&mut self) -> Option<Member<'s>> {
        self.nth(0)
    }

    /// Goes there at once, unless the set is packed.
    fn nth(&mut self, places: usize) -> Option<Member<'s>> {
        match &mut self.0 {
            Walk::Integers(integers, place) => {
                let number = integers.at(place.saturating_add(places))?;
                *place += places + 1;
                Some(Member::Number(Digits::new(number)))
            }
            Walk::Fields(fields) => fields.nth(places).map(|(member, _)| Member::Bytes(member)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Walk::Integers(integers, place) => {
                let left = integers.len() - place;
                (left, Some(left))
            }
            Walk::Fields(fields) => fields.size_hint(),
        }
    }
}

impl ExactSizeIterator for Members<'_> {}
