//! What can stand under a key: a limiter's state, a Redis string, or a collection.
//!
//! A string that reads as an integer is kept as one, as Redis does, so that counters cost no
//! allocation. Every value has one encoded form that begins with a version byte; whatever
//! outlives the process is written in it.

use crate::collection::{DecodeError as CollectionError, Hash, List, Set, SortedSet};
use crate::limit::{Ledger, State};
use crate::size::allocated_bytes;

use super::tickets::Ticket;

/// The version that [`Value::encode`] writes; [`Value::decode`] reads this and all before it.
const VERSION: u8 = 1;

const KIND_LIMIT: u8 = 0;
const KIND_INTEGER: u8 = 1;
const KIND_TEXT: u8 = 2;
const KIND_RAW: u8 = 3;
const KIND_HASH: u8 = 4;
const KIND_LIST: u8 = 5;
const KIND_SET: u8 = 6;
const KIND_SORTED_SET: u8 = 7;
const KIND_LEDGER: u8 = 8;
const KIND_TICKET: u8 = 9;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Limit(State),
    /// A policy's bucket that is held or in credit; no request can name it.
    Ledger(Box<Ledger>),
    /// What one request holds of some buckets; no request can name it either.
    Ticket(Box<Ticket>),
    /// A string that is the canonical text of this number.
    Integer(i64),
    /// A string as it was set.
    Text(Box<[u8]>),
    /// A string that has been appended to: it keeps room to grow.
    Raw(Vec<u8>),
    Hash(Box<Hash>),
    List(Box<List>),
    Set(Box<Set>),
    SortedSet(Box<SortedSet>),
}

const _: () = assert!(size_of::<Value>() <= 40);

/// How a value can be brought back to what it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Undoing {
    /// Only as a whole: it must be kept.
    Whole,
    /// It notes its changes from now on.
    Begins,
    /// It has been noting them.
    GoesOn,
}

/// Why bytes are not a value.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("the value was written by a newer version ({0})")]
    Newer(u8),
    #[error("the value is cut short or of an unknown kind")]
    Malformed,
    #[error("the limiter state is not valid: {0}")]
    Limit(#[from] crate::limit::DecodeError),
    #[error(transparent)]
    Collection(#[from] CollectionError),
}

impl Value {
    /// The string value of these bytes, in its smallest form.
    pub(crate) fn string(bytes: &[u8]) -> Self {
        match canonical_integer(bytes) {
            Some(number) => Self::Integer(number),
            None => Self::Text(bytes.into()),
        }
    }

    /// The name TYPE answers.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Limit(_) | Self::Ledger(_) => "tollgate-limit",
            Self::Ticket(_) => "tollgate-ticket",
            Self::Integer(_) | Self::Text(_) | Self::Raw(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
        }
    }

    pub(crate) fn as_limit(&self) -> Option<&State> {
        if let Self::Limit(state) = self { Some(state) } else { None }
    }

    pub(crate) fn as_limit_mut(&mut self) -> Option<&mut State> {
        if let Self::Limit(state) = self { Some(state) } else { None }
    }

    /// The collection of this kind, or `None` where the value is of another kind.
    pub(crate) fn as_collection<C: Collection>(&self) -> Option<&C> {
        C::of(self)
    }

    pub(crate) fn as_collection_mut<C: Collection>(&mut self) -> Option<&mut C> {
        C::of_mut(self)
    }

    /// From here on a collection notes the inverses of its changes.
    pub(super) fn begin_undo(&mut self) -> Undoing {
        let begins = match self {
            Self::Hash(hash) => hash.begin_undo(),
            Self::List(list) => list.begin_undo(),
            Self::Set(set) => set.begin_undo(),
            Self::SortedSet(set) => set.begin_undo(),
            Self::Limit(_)
            | Self::Ledger(_)
            | Self::Ticket(_)
            | Self::Integer(_)
            | Self::Text(_)
            | Self::Raw(_) => {
                return Undoing::Whole;
            }
        };
        if begins { Undoing::Begins } else { Undoing::GoesOn }
    }

    /// What a collection keeps to take its changes back.
    pub(super) fn undo_bytes(&self) -> usize {
        match self {
            Self::Hash(hash) => hash.undo_bytes(),
            Self::List(list) => list.undo_bytes(),
            Self::Set(set) => set.undo_bytes(),
            Self::SortedSet(set) => set.undo_bytes(),
            Self::Limit(_)
            | Self::Ledger(_)
            | Self::Ticket(_)
            | Self::Integer(_)
            | Self::Text(_)
            | Self::Raw(_) => 0,
        }
    }

    pub(super) fn forget_undo(&mut self) {
        match self {
            Self::Hash(hash) => hash.forget_undo(),
            Self::List(list) => list.forget_undo(),
            Self::Set(set) => set.forget_undo(),
            Self::SortedSet(set) => set.forget_undo(),
            Self::Limit(_)
            | Self::Ledger(_)
            | Self::Ticket(_)
            | Self::Integer(_)
            | Self::Text(_)
            | Self::Raw(_) => {}
        }
    }

    pub(super) fn roll_back(&mut self) {
        match self {
            Self::Hash(hash) => hash.roll_back(),
            Self::List(list) => list.roll_back(),
            Self::Set(set) => set.roll_back(),
            Self::SortedSet(set) => set.roll_back(),
            Self::Limit(_)
            | Self::Ledger(_)
            | Self::Ticket(_)
            | Self::Integer(_)
            | Self::Text(_)
            | Self::Raw(_) => {}
        }
    }

    /// A collection with nothing in it: it must not stay.
    pub(super) fn is_empty_collection(&self) -> bool {
        match self {
            Self::Hash(hash) => hash.len() == 0,
            Self::List(list) => list.len() == 0,
            Self::Set(set) => set.len() == 0,
            Self::SortedSet(set) => set.len() == 0,
            Self::Limit(_)
            | Self::Ledger(_)
            | Self::Ticket(_)
            | Self::Integer(_)
            | Self::Text(_)
            | Self::Raw(_) => false,
        }
    }

    /// Whether it is a limiter's: what is spent under a key or of a bucket.
    #[inline]
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self, Self::Limit(_) | Self::Ledger(_))
    }

    pub(super) fn is_ticket(&self) -> bool {
        matches!(self, Self::Ticket(_))
    }

    /// Whether forgetting it lets nothing pass that a limit would stop.
    #[inline]
    pub(super) fn may_be_evicted(&self) -> bool {
        !self.is_limit() && !self.is_ticket()
    }

    /// The bytes of a string; `digits` is where those of a number are written.
    pub(crate) fn bytes<'v>(&'v self, digits: &'v mut itoa::Buffer) -> Option<&'v [u8]> {
        match self {
            Self::Limit(_)
            | Self::Ledger(_)
            | Self::Ticket(_)
            | Self::Hash(_)
            | Self::List(_)
            | Self::Set(_)
            | Self::SortedSet(_) => None,
            Self::Integer(number) => Some(digits.format(*number).as_bytes()),
            Self::Text(bytes) => Some(bytes),
            Self::Raw(bytes) => Some(bytes),
        }
    }

    /// The bytes of a string, to change: it is kept as bytes from now on, and grows as
    /// [`reserve`] says. Nothing where it is no string.
    pub(crate) fn make_raw(&mut self) -> Option<&mut Vec<u8>> {
        let bytes = match self {
            Self::Limit(_)
            | Self::Ledger(_)
            | Self::Ticket(_)
            | Self::Hash(_)
            | Self::List(_)
            | Self::Set(_)
            | Self::SortedSet(_) => {
                return None;
            }
            Self::Integer(number) => itoa::Buffer::new().format(*number).as_bytes().to_vec(),
            Self::Text(bytes) => std::mem::take(bytes).into_vec(),
            Self::Raw(bytes) => return Some(bytes),
        };
        *self = Self::Raw(bytes);
        match self {
            Self::Raw(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Reads what the next request will of what the value owns; what this returns means nothing.
    /// A limiter does so by itself, in steps.
    pub(super) fn prefetch(&self) -> u64 {
        match self {
            Self::Ledger(ledger) => ledger.heap_bytes() as u64,
            Self::Limit(_) | Self::Integer(_) | Self::Ticket(_) => 0,
            Self::Text(bytes) => bytes.first().copied().map_or(0, u64::from),
            Self::Raw(bytes) => bytes.first().copied().map_or(0, u64::from),
            Self::Hash(hash) => hash.prefetch(),
            Self::List(list) => list.len() as u64,
            Self::Set(set) => set.prefetch(),
            Self::SortedSet(set) => set.prefetch(),
        }
    }

    /// What the value takes on the heap; O(1).
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Limit(state) => state.heap_bytes(),
            Self::Ledger(ledger) => ledger.boxed_bytes(),
            Self::Ticket(ticket) => ticket.boxed_bytes(),
            Self::Integer(_) => 0,
            Self::Text(bytes) => allocated_bytes(bytes.len()),
            Self::Raw(bytes) => allocated_bytes(bytes.capacity()),
            Self::Hash(hash) => hash.heap_bytes(),
            Self::List(list) => list.heap_bytes(),
            Self::Set(set) => set.heap_bytes(),
            Self::SortedSet(set) => set.heap_bytes(),
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        match self {
            Self::Limit(state) => {
                out.push(KIND_LIMIT);
                state.encode(out);
            }
            Self::Ledger(ledger) => {
                out.push(KIND_LEDGER);
                ledger.encode(out);
            }
            Self::Ticket(ticket) => {
                out.push(KIND_TICKET);
                ticket.encode(out);
            }
            Self::Integer(number) => {
                out.push(KIND_INTEGER);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::Text(bytes) => {
                out.push(KIND_TEXT);
                out.extend_from_slice(bytes);
            }
            Self::Raw(bytes) => {
                out.push(KIND_RAW);
                out.extend_from_slice(bytes);
            }
            Self::Hash(hash) => {
                out.push(KIND_HASH);
                hash.encode(out);
            }
            Self::List(list) => {
                out.push(KIND_LIST);
                list.encode(out);
            }
            Self::Set(set) => {
                out.push(KIND_SET);
                set.encode(out);
            }
            Self::SortedSet(set) => {
                out.push(KIND_SORTED_SET);
                set.encode(out);
            }
        }
    }

    /// The seed is that of a collection: the hash of its key.
    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let (&version, rest) = bytes.split_first().ok_or(DecodeError::Malformed)?;
        if version > VERSION {
            return Err(DecodeError::Newer(version));
        }
        let (&kind, body) = rest.split_first().ok_or(DecodeError::Malformed)?;
        match kind {
            KIND_LIMIT => Ok(Self::Limit(State::decode(body)?)),
            KIND_LEDGER => Ok(Self::Ledger(Box::new(Ledger::decode(body)?))),
            KIND_TICKET => {
                let ticket = Ticket::decode(body).ok_or(DecodeError::Malformed)?;
                Ok(Self::Ticket(Box::new(ticket)))
            }
            KIND_INTEGER => {
                let number = body.try_into().map_err(|_| DecodeError::Malformed)?;
                Ok(Self::Integer(i64::from_le_bytes(number)))
            }
            KIND_TEXT => Ok(Self::Text(body.into())),
            KIND_RAW => Ok(Self::Raw(body.to_vec())),
            KIND_HASH => Ok(Hash::decode(body, seed)?.into()),
            KIND_LIST => Ok(List::decode(body, seed)?.into()),
            KIND_SET => Ok(Set::decode(body, seed)?.into()),
            KIND_SORTED_SET => Ok(SortedSet::decode(body, seed)?.into()),
            _ => Err(DecodeError::Malformed),
        }
    }
}

/// A kind of collection that a value can be.
pub(crate) trait Collection: Into<Value> {
    /// An empty one; the seed makes it unpredictable from outside how it is kept.
    fn new(seed: u64) -> Self;
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn is_empty(&self) -> bool;
}

macro_rules! collection {
    ($kind:ident) => {
        impl From<$kind> for Value {
            fn from(collection: $kind) -> Self {
                Self::$kind(Box::new(collection))
            }
        }

        impl Collection for $kind {
            fn new(seed: u64) -> Self {
                Self::new(seed)
            }

            fn of(value: &Value) -> Option<&Self> {
                if let Value::$kind(collection) = value { Some(collection) } else { None }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$kind(collection) = value { Some(collection) } else { None }
            }

            fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

collection!(Hash);
collection!(List);
collection!(Set);
collection!(SortedSet);

/// Makes room for a string to grow to `len` bytes: twice what is needed, so that a string built
/// up by many appends is copied few times, but never more than a megabyte in vain.
pub(crate) fn reserve(bytes: &mut Vec<u8>, len: usize) {
    const SPARE_BYTES_MAX: usize = 1 << 20;
    if len > bytes.capacity() {
        let wanted = len + len.min(SPARE_BYTES_MAX);
        bytes.reserve_exact(wanted - bytes.len());
    }
}

/// The number whose only decimal text these bytes are: no sign but a minus, no leading zero.
fn canonical_integer(bytes: &[u8]) -> Option<i64> {
    /// The digits of the smallest number, with its sign.
    const LEN_MAX: usize = 20;
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let starts_well = match digits.first()? {
        b'0' => bytes.len() == 1,
        first => first.is_ascii_digit(),
    };
    if !starts_well || bytes.len() > LEN_MAX {
        return None;
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_canonical_numbers_become_integers() {
        for text in ["0", "7", "-1", "9223372036854775807", "-9223372036854775808"] {
            assert!(matches!(Value::string(text.as_bytes()), Value::Integer(_)), "{text}");
        }
        for text in ["", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "9223372036854775808"] {
            assert!(matches!(Value::string(text.as_bytes()), Value::Text(_)), "{text:?}");
        }
    }

    #[test]
    fn raw_string_grows_twofold_and_then_by_a_megabyte() {
        let mut value = Value::Integer(-12);
        let bytes = value.make_raw().expect("a string");
        assert_eq!(bytes, b"-12");
        reserve(bytes, 100);
        assert_eq!(bytes.capacity(), 200);
        reserve(bytes, 200);
        assert_eq!(bytes.capacity(), 200);
        reserve(bytes, 8 << 20);
        assert_eq!(bytes.capacity(), 9 << 20);
    }

    #[test]
    fn string_is_charged_what_its_allocation_takes() {
        for (len, charged) in [(0, 0), (1, 32), (24, 32), (25, 48), (40, 48), (41, 64)] {
            assert_eq!(Value::Text(vec![b'v'; len].into()).heap_bytes(), charged, "{len}");
            assert_eq!(Value::Raw(vec![b'v'; len]).heap_bytes(), charged, "{len}");
        }
    }

    #[test]
    fn newer_values_are_refused_by_name() {
        assert_eq!(
            Value::decode(&[VERSION + 1, 0], 0).err(),
            Some(DecodeError::Newer(VERSION + 1))
        );
    }

    proptest! {
        #[test]
        fn strings_decode_to_what_was_encoded(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            for value in [Value::string(&bytes), Value::Raw(bytes.clone())] {
                let mut encoded = Vec::new();
                value.encode(&mut encoded);
                let decoded = Value::decode(&encoded, 0).expect("just encoded");
                prop_assert_eq!(format!("{decoded:?}"), format!("{value:?}"));
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _: Result<Value, DecodeError> = Value::decode(&bytes, 0);
        }
    }
}
