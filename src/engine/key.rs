//! Keys: how they are stored, how they are asked for, and which shard is theirs.
//!
//! A stored key of up to [`INLINE_MAX`] bytes costs no allocation. A key that is asked for is a
//! borrowed slice with its hash, computed once per request. Keys are bytes; two different keys
//! are never merged, so a hash only ever narrows the search.

use std::hash::{BuildHasher, Hasher};

use super::table::Slot;

/// Longest key stored inside its slot: most limiter keys are shorter, and 24 bytes with the
/// length is what a boxed slice would cost anyway.
const INLINE_MAX: usize = 22;

/// A key as its slot holds it.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Boxed(Box<[u8]>),
}

const _: () = assert!(size_of::<Key>() == 24);

impl Key {
    pub(crate) fn new(key: &[u8]) -> Self {
        match u8::try_from(key.len()) {
            Ok(len) if key.len() <= INLINE_MAX => {
                let mut bytes = [0; INLINE_MAX];
                bytes[..key.len()].copy_from_slice(key);
                Self::Inline { len, bytes }
            }
            _ => Self::Boxed(key.into()),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Boxed(bytes) => bytes,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Inline { .. } => 0,
            Self::Boxed(bytes) => bytes.len(),
        }
    }
}

/// A key that a request names, with its hash, and where it seems to stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRef<'a> {
    bytes: &'a [u8],
    hash: u64,
    /// A guess, to be compared: the slot in its table.
    pub(super) slot: Slot,
    /// Another one: which of the locked shards is its own.
    pub(super) place: u16,
}

impl<'a> KeyRef<'a> {
    /// No key has this slot.
    pub(super) const NOWHERE: Slot = Slot::MAX;

    fn new(bytes: &'a [u8], hash: u64) -> Self {
        Self { bytes, hash, slot: Self::NOWHERE, place: 0 }
    }

    /// A key to look up in the shard it is known to be in, by what its slot remembers.
    pub(super) fn within_shard(bytes: &'a [u8], tag: u32) -> Self {
        Self::new(bytes, u64::from(tag))
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// What picks the shard: bits that the index inside the shard does not use.
    pub(super) fn shard_bits(&self) -> usize {
        (self.hash >> 32) as usize
    }

    /// What the slot remembers of the hash.
    pub(super) fn tag(&self) -> u32 {
        self.hash as u32
    }
}

/// Spreads a slot's 32 remembered bits over the 64 that the index wants: it takes its control
/// tag from the top and its position from the bottom.
pub(super) fn index_hash(tag: u32) -> u64 {
    (u64::from(tag) << 32) | u64::from(tag)
}

/// Hashes keys under a seed drawn at start, so that nobody outside can choose colliding keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyHasher(foldhash::fast::FixedState);

impl BuildHasher for KeyHasher {
    type Hasher = <foldhash::fast::FixedState as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

impl KeyHasher {
    pub(crate) fn new(seed: u64) -> Self {
        Self(foldhash::fast::FixedState::with_seed(seed))
    }

    pub(crate) fn key<'a>(&self, bytes: &'a [u8]) -> KeyRef<'a> {
        let mut hasher = self.0.build_hasher();
        hasher.write(bytes);
        KeyRef::new(bytes, hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_come_back_whole() {
        for len in 0..=300_usize {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            assert_eq!(Key::new(&bytes).as_bytes(), bytes);
        }
    }

    #[test]
    fn only_long_keys_take_the_heap() {
        assert_eq!(Key::new(&[b'k'; INLINE_MAX]).heap_bytes(), 0);
        assert_eq!(Key::new(&[b'k'; INLINE_MAX + 1]).heap_bytes(), INLINE_MAX + 1);
    }
}
