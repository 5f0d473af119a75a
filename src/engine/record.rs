//! What a key holds, or that it is gone, as bytes: what snapshots and journals are made of.
//!
//! A record says what is so from then on and not what was done, so reading one twice, or one that
//! a later one overtakes, does no harm. A tag, the database, then numbers of fixed width, little-
//! endian, each length before its bytes. Nothing a reader is given makes it panic or allocate.
//!
//! The value is in the encoding of `value.rs`, which has a version of its own.

use super::tables::BUCKETS;
use super::value::{DecodeError, Value};
use super::{Engine, Scope};
use crate::time::Timestamp;

const STORED: u8 = 1;
const REMOVED: u8 = 2;
const FLUSHED: u8 = 3;

/// One record, as it lies in the bytes that it is read from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Record<'b> {
    /// The key holds this value until this moment.
    Stored { db: u8, key: &'b [u8], value: &'b [u8], expires: Timestamp },
    /// The key is gone.
    Removed { db: u8, key: &'b [u8] },
    /// Every key of this database in every shard is gone.
    Flushed { db: u8 },
}

/// Why a record cannot be taken over.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("a record is cut short or of an unknown kind")]
    Malformed,
    #[error(transparent)]
    Value(#[from] DecodeError),
}

/// Appends what the key holds.
pub(super) fn put_stored(
    out: &mut Vec<u8>,
    db: usize,
    (key, expires): (&[u8], Timestamp),
    value: &Value,
) {
    out.extend_from_slice(&[STORED, db as u8]);
    out.extend_from_slice(&expires.as_micros().to_le_bytes());
    put_bytes(out, key);
    let place = out.len();
    out.extend_from_slice(&[0; 8]);
    value.encode(out);
    let length = (out.len() - place - 8) as u64;
    out[place..place + 8].copy_from_slice(&length.to_le_bytes());
}

/// Appends that the key is gone.
pub(super) fn put_removed(out: &mut Vec<u8>, db: usize, key: &[u8]) {
    out.extend_from_slice(&[REMOVED, db as u8]);
    put_bytes(out, key);
}

/// Appends that nothing is left of a database.
pub(super) fn put_flushed(out: &mut Vec<u8>, db: usize) {
    out.extend_from_slice(&[FLUSHED, db as u8]);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

impl<'b> Record<'b> {
    /// Takes the next record from the front of `bytes`; nothing at the end.
    pub(crate) fn next(bytes: &mut &'b [u8]) -> Result<Option<Self>, RecordError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        read(bytes).map(Some).ok_or(RecordError::Malformed)
    }

    /// What TYPE would say of what is stored; nothing where nothing is, or it cannot be read.
    pub(crate) fn type_name(&self) -> Option<&'static str> {
        match self {
            Self::Stored { value, .. } => {
                Value::decode(value, 0).ok().map(|value| value.type_name())
            }
            Self::Removed { .. } | Self::Flushed { .. } => None,
        }
    }
}

fn read<'b>(bytes: &mut &'b [u8]) -> Option<Record<'b>> {
    let [tag, db] = take(bytes, 2)?.try_into().ok()?;
    if usize::from(db) > BUCKETS {
        return None;
    }
    match tag {
        STORED => {
            let expires = Timestamp::from_micros(number(bytes)?);
            let key = key(bytes)?;
            let length = usize::try_from(number(bytes)?).ok()?;
            Some(Record::Stored { db, key, value: take(bytes, length)?, expires })
        }
        REMOVED => Some(Record::Removed { db, key: key(bytes)? }),
        FLUSHED => Some(Record::Flushed { db }),
        _ => None,
    }
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?))
}

fn key<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?);
    take(bytes, usize::try_from(length).ok()?)
}

impl Engine {
    /// Takes a record over. Whoever restores is alone with the engine, and tracks no changes.
    ///
    /// A key whose deadline has passed at `now` is left out.
    pub(crate) fn restore(&self, record: &Record<'_>, now: Timestamp) -> Result<(), RecordError> {
        match *record {
            Record::Stored { db, key, value, expires } => {
                let key = self.key(key);
                let value = Value::decode(value, key.hash())?;
                self.alone(Scope::Keys(&[key]), db, now, |view| view.insert(key, value, expires));
            }
            Record::Removed { db, key } => {
                let key = self.key(key);
                self.alone(Scope::Keys(&[key]), db, now, |view| view.remove(key));
            }
            Record::Flushed { db } => self.alone(Scope::All, db, now, |view| drop(view.flush())),
        }
        Ok(())
    }

    /// Forgets every key, for who begins to restore anew.
    pub(crate) fn forget_all(&self, now: Timestamp) {
        for db in 0..=BUCKETS {
            self.alone(Scope::All, db as u8, now, |view| drop(view.flush()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(mut bytes: &[u8]) -> Result<Vec<Record<'_>>, RecordError> {
        let mut records = Vec::new();
        while let Some(record) = Record::next(&mut bytes)? {
            records.push(record);
        }
        Ok(records)
    }

    proptest! {
        #[test]
        fn records_read_back_and_no_beginning_is_taken_for_the_whole(
            db in 0..=BUCKETS,
            key in prop::collection::vec(any::<u8>(), 0..40),
            number in any::<i64>(),
            expires in any::<u64>(),
        ) {
            let (mut bytes, expires) = (Vec::new(), Timestamp::from_micros(expires));
            put_flushed(&mut bytes, db);
            put_removed(&mut bytes, db, &key);
            let mut value = Vec::new();
            Value::Integer(number).encode(&mut value);
            let begins = bytes.len();
            put_stored(&mut bytes, db, (&key, expires), &Value::Integer(number));
            let (db, key, value) = (db as u8, &*key, &*value);
            let expected = vec![
                Record::Flushed { db },
                Record::Removed { db, key },
                Record::Stored { db, key, value, expires },
            ];
            prop_assert_eq!(all(&bytes), Ok(expected));
            for length in begins + 1..bytes.len() {
                prop_assert_eq!(all(&bytes[..length]), Err(RecordError::Malformed));
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(all(&bytes));
        }
    }
}
