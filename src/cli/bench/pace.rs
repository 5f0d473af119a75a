//! When a connection may send its next request, and from when its latency counts.
//!
//! Closed loop: a batch goes out when the batch before is answered, and counts from then. A
//! server that stalls is asked less, which hides the stall.
//!
//! Open loop: request number `i` of the run is due at `start + i / rate`, whatever the server
//! does, and its latency counts from that moment, also when it could only be sent later.
//! The numbers are dealt out to the connections in turn.

use std::cell::Cell;
use std::rc::Rc;

use crate::time::{Duration, Timestamp};

/// In an open loop bounded by time, requests overdue by more than this at the end are not sent.
const OVERDUE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Pace {
    Closed {
        /// What the connections of this thread may still send.
        budget: Rc<Cell<u64>>,
        until: Timestamp,
    },
    Open(Slots),
}

/// The requests of one connection in an open loop.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) start: Timestamp,
    /// Requests per second of the whole run.
    pub(super) rate: u64,
    /// Number of the next request.
    pub(super) next: u64,
    /// From one of our numbers to the next: how many connections there are.
    pub(super) stride: u64,
    /// The number after the run's last.
    pub(super) end: u64,
    pub(super) until: Timestamp,
}

impl Slots {
    fn due(&self) -> Timestamp {
        let micros = u128::from(self.next) * 1_000_000 / u128::from(self.rate);
        self.start + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Pace {
    /// How many requests may join the `in_flight` ones, where `depth` is the most.
    pub(super) fn room(&self, in_flight: usize, depth: usize) -> usize {
        match self {
            Self::Closed { .. } if in_flight > 0 => 0,
            Self::Closed { .. } | Self::Open(_) => depth.saturating_sub(in_flight),
        }
    }

    /// Takes the next request if its turn has come: the moment from which its latency counts.
    pub(super) fn take(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.finished(now) {
            return None;
        }
        match self {
            Self::Closed { budget, .. } => {
                budget.set(budget.get() - 1);
                Some(now)
            }
            Self::Open(slots) => {
                let due = slots.due();
                (due <= now).then(|| {
                    slots.next += slots.stride;
                    due
                })
            }
        }
    }

    /// Nothing is left to send.
    pub(super) fn finished(&self, now: Timestamp) -> bool {
        match self {
            Self::Closed { budget, until } => budget.get() == 0 || now >= *until,
            Self::Open(slots) => slots.next >= slots.end || now >= slots.until + OVERDUE_MAX,
        }
    }

    /// When the next request is due although no answer comes.
    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        match self {
            Self::Closed { .. } => None,
            Self::Open(slots) => (slots.next < slots.end).then(|| slots.due()),
        }
    }

    /// How many requests were due and never sent.
    pub(super) fn unsent(&self) -> u64 {
        match self {
            Self::Closed { .. } => 0,
            Self::Open(slots) => slots.end.saturating_sub(slots.next).div_ceil(slots.stride),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000);

    fn after_us(micros: u64) -> Timestamp {
        START + Duration::from_micros(micros)
    }

    fn open(next: u64, end: u64) -> Pace {
        Pace::Open(Slots { start: START, rate: 1_000, next, stride: 2, end, until: Timestamp::MAX })
    }

    #[test]
    fn open_loop_is_due_at_its_own_moments() {
        let mut pace = open(1, 6);
        assert_eq!(pace.take(after_us(999)), None);
        assert_eq!(pace.wake_at(), Some(after_us(1_000)));
        assert_eq!(pace.take(after_us(1_000)), Some(after_us(1_000)));
        assert_eq!(pace.wake_at(), Some(after_us(3_000)));
    }

    #[test]
    fn latency_counts_from_the_intended_moment_after_a_stall() {
        let mut pace = open(0, 6);
        let stalled_until = after_us(50_000);
        let taken: Vec<_> = std::iter::from_fn(|| pace.take(stalled_until)).collect();
        assert_eq!(taken, [after_us(0), after_us(2_000), after_us(4_000)]);
        assert!(pace.finished(stalled_until));
        assert_eq!(pace.unsent(), 0);
    }

    #[test]
    fn connections_share_out_every_number_once() {
        let late = after_us(1_000_000);
        let mut due: Vec<_> = [0, 1]
            .into_iter()
            .flat_map(|first| {
                let mut pace = open(first, 7);
                std::iter::from_fn(move || pace.take(late)).collect::<Vec<_>>()
            })
            .collect();
        due.sort_unstable();
        assert_eq!(due, (0..7).map(|number| after_us(number * 1_000)).collect::<Vec<_>>());
    }

    #[test]
    fn overdue_requests_at_the_end_are_counted_unsent() {
        let until = after_us(10_000);
        let slots = Slots { start: START, rate: 1_000, next: 0, stride: 2, end: 10, until };
        let mut pace = Pace::Open(slots);
        assert!(pace.take(until).is_some());
        let end = until + OVERDUE_MAX;
        assert!(pace.finished(end));
        assert_eq!(pace.take(end), None);
        assert_eq!(pace.unsent(), 4);
    }

    #[test]
    fn closed_loop_waits_for_the_whole_batch() {
        let budget = Rc::new(Cell::new(5));
        let mut pace = Pace::Closed { budget: Rc::clone(&budget), until: Timestamp::MAX };
        assert_eq!(pace.room(0, 3), 3);
        assert_eq!(pace.room(1, 3), 0);
        assert_eq!(std::iter::from_fn(|| pace.take(START)).count(), 5);
        assert!(pace.finished(START));
    }

    #[test]
    fn closed_loop_ends_at_its_time() {
        let budget = Rc::new(Cell::new(5));
        let mut pace = Pace::Closed { budget, until: after_us(10) };
        assert_eq!(pace.take(after_us(9)), Some(after_us(9)));
        assert_eq!(pace.take(after_us(10)), None);
    }

    #[test]
    fn open_loop_fills_up_to_the_depth() {
        assert_eq!(open(0, 1).room(1, 3), 2);
        assert_eq!(open(0, 1).room(3, 3), 0);
    }
}
