//! What is held of a bucket beside what is spent: reservations and leases, each with its end.
//!
//! A hold counts until just before its end and then no more, whether it has been dropped by then
//! or not. They lie in the order of their ends, so that what is over goes in one sweep, and who
//! is denied finds the next end without a search.
//!
//! Invariants: `sum` counts every hold that is kept; no amount is zero. How many there can be is
//! bounded by whoever gives out ids.

use std::collections::BTreeMap;

use crate::time::Timestamp;

/// Names what one request holds, in every bucket in which it does.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HoldId(pub u64);

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Holds {
    holds: BTreeMap<(Timestamp, HoldId), u64>,
    sum: u64,
}

/// What one hold takes in the tree, at its usual filling of two thirds.
const HOLD_BYTES: usize = 40;

impl Holds {
    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.holds.len()
    }

    /// In the order of their ends.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Timestamp, HoldId, u64)> {
        self.holds.iter().map(|((until, id), amount)| (*until, *id, *amount))
    }

    /// What is held at a moment.
    pub(super) fn held(&self, at: Timestamp) -> u64 {
        let over = self.iter().take_while(|(until, ..)| *until <= at);
        self.sum - over.map(|(.., amount)| amount).sum::<u64>()
    }

    /// The end of the last one; the epoch where there is none.
    pub(super) fn last(&self) -> Timestamp {
        self.holds.last_key_value().map_or(Timestamp::EPOCH, |((until, _), _)| *until)
    }

    /// The first moment from now on at which so much more, above zero, is given back.
    pub(super) fn freed(&self, amount: u64, now: Timestamp) -> Option<Timestamp> {
        let mut left = amount;
        let live = self.iter().skip_while(|(until, ..)| *until <= now);
        live.map(|(until, _, amount)| {
            left = left.saturating_sub(amount);
            (until, left)
        })
        .find(|(_, left)| *left == 0)
        .map(|(until, _)| until)
    }

    /// Cut where the sum would not fit 64 bits; under an id that is not there yet.
    pub(super) fn insert(&mut self, id: HoldId, until: Timestamp, amount: u64) {
        let amount = amount.min(u64::MAX - self.sum);
        if amount > 0 {
            self.sum += amount;
            let before = self.holds.insert((until, id), amount);
            debug_assert_eq!(before, None, "an id holds once");
        }
    }

    /// What the hold took, if it is there.
    pub(super) fn remove(&mut self, id: HoldId, until: Timestamp) -> Option<u64> {
        let amount = self.holds.remove(&(until, id))?;
        self.sum -= amount;
        Some(amount)
    }

    /// Drops what is over.
    pub(super) fn expire(&mut self, now: Timestamp) {
        while let Some(first) = self.holds.first_entry()
            && first.key().0 <= now
        {
            self.sum -= first.remove();
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.len() * HOLD_BYTES
    }
}
