//! Bytes in flight: what requests hold from when they are admitted until they end.
//!
//! A few large requests fill memory while hardly any are in flight. A request larger than the
//! bound never passes; one byte more than the bound is never held.

use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub struct Bytes {
    most: u64,
    held: AtomicU64,
}

/// Bytes that a request holds: given back by [`Bytes::end`].
#[derive(Debug, Eq, PartialEq)]
pub struct Held(u64);

impl Bytes {
    /// At most so many bytes at once; `u64::MAX` bounds nothing.
    pub const fn new(most: u64) -> Self {
        Self { most, held: AtomicU64::new(0) }
    }

    /// Bytes held now.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The bound.
    pub const fn most(&self) -> u64 {
        self.most
    }

    /// Holds the bytes if there is room.
    pub fn begin(&self, bytes: u64) -> Option<Held> {
        if bytes > 0 {
            let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.most);
            self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        }
        Some(Held(bytes))
    }

    #[expect(clippy::needless_pass_by_value, reason = "what is held is given back once")]
    pub fn end(&self, held: Held) {
        if held.0 > 0 {
            self.held.fetch_sub(held.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_held_up_to_the_bound_and_given_back() {
        let bytes = Bytes::new(100);
        let held = bytes.begin(60).expect("there is room");
        assert_eq!(bytes.begin(41), None);
        let rest = bytes.begin(40).expect("to the last byte");
        assert_eq!((bytes.held(), bytes.begin(1)), (100, None));
        bytes.end(held);
        bytes.end(rest);
        assert_eq!((bytes.held(), bytes.begin(101), bytes.begin(u64::MAX)), (0, None, None));
        assert!(bytes.begin(0).is_some());
    }
}
