//! Controlled delay: a queue that never runs empty is too long, however short the wait in it.
//!
//! Two forms of the idea are here. [`Codel`] looks at the **least** wait of each 100 ms: where
//! even the luckiest request waited longer than 5 ms, the queue stands, and for the next 100 ms
//! whoever has waited longer than twice the target is refused. The first of an interval never is,
//! so something always gets through. [`Patience`] asks when the queue was last empty: within 100
//! ms a request may wait 100 ms, else 5 ms, and it tells in which order to serve. While a queue
//! stands, the newest go first: the oldest will give up anyway.
//!
//! After Nichols and Jacobson (2012), in the forms that Facebook published and folly has.

use crate::time::{Duration, Timestamp};

/// How long the least wait is looked for, and how long a queue may stand.
const INTERVAL: Duration = Duration::from_millis(100);

/// The wait that is well.
const TARGET: Duration = Duration::from_millis(5);

/// Judges each wait by the least wait of the interval before.
#[derive(Clone, Copy, Debug)]
pub struct Codel {
    interval: Duration,
    target: Duration,
    ends_at: Timestamp,
    /// Of the interval that runs.
    least: Option<Duration>,
    is_overloaded: bool,
}

impl Default for Codel {
    fn default() -> Self {
        Self::new(INTERVAL, TARGET)
    }
}

impl Codel {
    pub const fn new(interval: Duration, target: Duration) -> Self {
        Self { interval, target, ends_at: Timestamp::EPOCH, least: None, is_overloaded: false }
    }

    /// Whether a request is refused that leaves the queue now, after this wait.
    pub fn refuses(&mut self, waited: Duration, now: Timestamp) -> bool {
        if now >= self.ends_at {
            self.is_overloaded = self.least.is_some_and(|least| least > self.target);
            self.least = Some(waited);
            self.ends_at = now + self.interval;
            return false;
        }
        self.least = Some(self.least.map_or(waited, |least| least.min(waited)));
        self.is_overloaded && waited.as_micros() > self.target.as_micros().saturating_mul(2)
    }

    /// Whether the queue stands.
    pub const fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }
}

/// Which end of a queue is served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
}

/// How long a request may wait, by when the queue was last empty.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    empty_at: Timestamp,
}

impl Patience {
    /// A queue that is empty now.
    pub const fn new(now: Timestamp) -> Self {
        Self { empty_at: now }
    }

    /// The queue is empty at this moment.
    pub fn note_empty(&mut self, now: Timestamp) {
        self.empty_at = self.empty_at.max(now);
    }

    /// The longest wait: 100 ms, or 5 ms while the queue stands.
    pub fn timeout(self, now: Timestamp) -> Duration {
        if self.stands(now) { TARGET } else { INTERVAL }
    }

    /// The newest first while the queue stands.
    pub fn order(self, now: Timestamp) -> Order {
        if self.stands(now) { Order::NewestFirst } else { Order::OldestFirst }
    }

    /// Whether the queue has not been empty for 100 ms.
    fn stands(self, now: Timestamp) -> bool {
        now.since(self.empty_at) > INTERVAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn waits_are_refused_after_an_interval_without_a_short_one() {
        let mut codel = Codel::default();
        // (moment, wait, refused)
        let rows = [
            (0, 50, false),
            (50, 50, false),
            (99, 6, false),
            (100, 50, false), // the first of an interval, whatever it waited
            (110, 50, true),
            (120, 10, false), // not longer than twice the target
            (130, 11, true),
            (140, 5, false),
            (150, 50, true),
            (200, 50, false),
            (210, 50, false), // the interval before had a short one
        ];
        for (at, waited, refused) in rows {
            assert_eq!(codel.refuses(ms(waited), START + ms(at)), refused, "at {at} ms");
        }
        assert!(!codel.is_overloaded());
    }

    #[test]
    fn patience_ends_with_a_queue_that_stands() {
        let mut patience = Patience::new(START);
        for (at, timeout, order) in [
            (0, 100, Order::OldestFirst),
            (100, 100, Order::OldestFirst),
            (101, 5, Order::NewestFirst),
        ] {
            assert_eq!(patience.timeout(START + ms(at)), ms(timeout), "at {at} ms");
            assert_eq!(patience.order(START + ms(at)), order, "at {at} ms");
        }
        patience.note_empty(START + ms(500));
        assert_eq!(patience.timeout(START + ms(600)), ms(100));
        patience.note_empty(START);
        assert_eq!(patience.timeout(START + ms(600)), ms(100));
    }
}
