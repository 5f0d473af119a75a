//! What is remembered of a bucket beyond a plain state: [`Ledger`], with what is held of it and
//! what is taken from its credit.
//!
//! Most buckets are never held and never reach into a credit, so they are a [`State`] alone; one
//! becomes a ledger with its first hold, and a state again when the last is over.
//!
//! Invariants: `last` never decreases; once something is held of a bound that spends, there is a
//! state, so that what the hold becomes can be counted even if the bound is gone by then.

use crate::size::malloc_bytes;
use crate::time::Timestamp;

use super::bound::{Bound, Remembered};
use super::decision::Cost;
use super::gcra::Bucket;
use super::holds::{HoldId, Holds};
use super::scale::Scale;
use super::state::State;
use super::{charge, refund};

/// A bucket that is held or in credit.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) last: Timestamp,
    pub(super) spent: Option<State>,
    pub(super) credit: Option<Bucket>,
    pub(super) holds: Holds,
}

impl Ledger {
    /// Goes on from what a plain state has counted, or from nothing.
    pub fn new(spent: Option<State>) -> Self {
        let last = spent.as_ref().map_or(Timestamp::EPOCH, |state| state.last);
        Self { last, spent, credit: None, holds: Holds::default() }
    }

    pub(super) const fn last(&self) -> Timestamp {
        self.last
    }

    pub(super) const fn spent(&self) -> Option<&State> {
        self.spent.as_ref()
    }

    pub(super) const fn credit(&self) -> Option<Bucket> {
        self.credit
    }

    pub(super) const fn holds(&self) -> &Holds {
        &self.holds
    }

    /// Whether what is spent here was counted just as the bound counts.
    pub fn is_counted_by(&self, bound: &Bound) -> bool {
        match (&self.spent, bound.quota()) {
            (Some(state), Some(quota)) => state.is_counted_by(quota),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// How many holds are kept.
    pub fn holds_kept(&self) -> usize {
        self.holds.len()
    }

    /// Spends without asking, also above the capacity: the caller has judged it, or it has
    /// happened already.
    pub fn spend(&mut self, bound: &Bound, cost: Cost, now: Timestamp) {
        let now = self.advance(now);
        if bound.capacity() == 0 || cost == Cost::ZERO {
            return;
        }
        self.credit = match bound {
            Bound::Credit(credit) => {
                let used = Scale::new(bound, Remembered::Ledger(self), now).used(now);
                let fresh = Bucket::new(credit.interval_ns(), now.as_micros());
                let taken = self.credit.unwrap_or(fresh);
                let mut taken = taken.scaled(credit.interval_ns(), now.as_micros());
                taken.charge(credit.beyond(used, cost), now.as_micros());
                Some(taken)
            }
            Bound::Window(_) => None,
            Bound::Concurrency(_) => return,
        };
        if let Some(quota) = bound.quota() {
            let state = self.spent.get_or_insert_with(|| State::new(quota, now));
            charge(quota, state, cost, now);
        }
    }

    /// Holds without asking, under an id that holds nothing here yet.
    pub fn hold(
        &mut self,
        bound: &Bound,
        (id, cost): (HoldId, Cost),
        until: Timestamp,
        now: Timestamp,
    ) {
        let now = self.advance(now);
        if let Some(quota) = bound.quota() {
            self.spent.get_or_insert_with(|| State::new(quota, now));
        }
        if until > now {
            self.holds.insert(id, until, cost.0);
        }
    }

    /// Ends a hold; how much it was. Nothing where it is over.
    pub fn release(&mut self, id: HoldId, until: Timestamp, now: Timestamp) -> Option<u64> {
        self.advance(now);
        self.holds.remove(id, until)
    }

    /// Spends without a bound, counted as everything here was; a credit is left as it is.
    pub fn spend_as_counted(&mut self, cost: Cost, now: Timestamp) {
        let now = self.advance(now);
        if let Some(state) = &mut self.spent
            && cost != Cost::ZERO
        {
            state.charge_as_counted(cost, now);
        }
    }

    /// Gives back up to `cost` of what is spent, that from the credit first; how much that was.
    /// What is held is not spent.
    pub fn refund(&mut self, bound: Option<&Bound>, cost: Cost, now: Timestamp) -> u64 {
        let now = self.advance(now);
        let used = bound.map(|bound| Scale::new(bound, Remembered::Ledger(self), now).used(now));
        let Some(state) = &mut self.spent else { return 0 };
        let given = refund(state, cost, now);
        if let (Some(Bound::Credit(credit)), Some(used), Some(taken)) =
            (bound, used, &mut self.credit)
        {
            let left = used.saturating_sub(given);
            taken.refund(credit.beyond(left, Cost(used - left)), now.as_micros());
        }
        given
    }

    /// The moment from which nothing is spent or held and the credit is full.
    pub fn expires_at(&self) -> Timestamp {
        let spent = self.spent.as_ref().map_or(Timestamp::EPOCH, State::expires_at);
        let credit = self.credit.map_or(Timestamp::EPOCH, |credit| {
            self.last + super::bound::span(credit.debt_ns(self.last.as_micros()))
        });
        spent.max(credit).max(self.holds.last()).max(self.last)
    }

    /// The state that says it all, where one does: nothing is held and the credit is full.
    pub fn take_plain(&mut self) -> Option<State> {
        let last_us = self.last.as_micros();
        let in_credit = self.credit.is_some_and(|credit| credit.debt_ns(last_us) > 0);
        if in_credit || !self.holds.is_empty() { None } else { self.spent.take() }
    }

    /// What stands on the heap beside the ledger itself, holds by an estimate. In constant time.
    pub fn heap_bytes(&self) -> usize {
        self.spent.as_ref().map_or(0, State::heap_bytes) + self.holds.heap_bytes()
    }

    /// What the ledger takes in a box, all it owns included.
    pub fn boxed_bytes(&self) -> usize {
        malloc_bytes(size_of::<Self>()) + self.heap_bytes()
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.last = self.last.max(now);
        self.holds.expire(self.last);
        self.last
    }
}
