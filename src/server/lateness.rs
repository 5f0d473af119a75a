//! How late a thread comes to what is ready: a histogram that is written and emptied without a
//! lock.
//!
//! A timer that is due waits for its turn just as a socket that has become readable does. So each
//! thread notes how late it is to a timer of [`BEAT`], and how long requests waited that it had
//! read and not come to. Bounds of the histogram lie a fifth apart; sums are exact.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::time::{Clock, Duration, Timestamp};

/// How often a thread looks how late it is.
pub(super) const BEAT: Duration = Duration::from_millis(10);

/// Parts of each doubling.
const STEPS: u32 = 4;

/// Up to half a minute; what is longer counts as that.
const SLOTS: usize = 25 * STEPS as usize;

/// Noted by one thread or more, emptied by another.
#[derive(Debug)]
pub(super) struct Lateness {
    slots: [AtomicU32; SLOTS],
    sum_us: AtomicU64,
}

/// What was noted between two looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Late {
    slots: [u32; SLOTS],
    sum_us: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { slots: [const { AtomicU32::new(0) }; SLOTS], sum_us: AtomicU64::new(0) }
    }
}

impl Default for Late {
    fn default() -> Self {
        Self { slots: [0; SLOTS], sum_us: 0 }
    }
}

impl Lateness {
    pub(super) fn note(&self, late: Duration) {
        let late_us = late.as_micros();
        self.slots[slot(late_us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(late_us, Ordering::Relaxed);
    }

    /// What was noted since the last time.
    pub(super) fn drain(&self) -> Late {
        let slots = std::array::from_fn(|at| self.slots[at].swap(0, Ordering::Relaxed));
        Late { slots, sum_us: self.sum_us.swap(0, Ordering::Relaxed) }
    }

    /// Notes for ever how late the thread is that this runs on.
    pub(super) async fn beat(&self, clock: &Clock) {
        let mut before: Timestamp = clock.now();
        loop {
            tokio::time::sleep(BEAT.as_std()).await;
            let now = clock.now();
            let late_us = now.since(before).as_micros().saturating_sub(BEAT.as_micros());
            self.note(Duration::from_micros(late_us));
            before = now;
        }
    }
}

impl Late {
    pub(super) fn add(&mut self, other: &Self) {
        self.slots.iter_mut().zip(&other.slots).for_each(|(sum, count)| *sum += count);
        self.sum_us += other.sum_us;
    }

    /// The bound below which this part of all lies; none where nothing was noted.
    pub(super) fn quantile(&self, part: f64) -> Option<Duration> {
        let all = self.count();
        let wanted = (part * all as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = self.slots.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        });
        place.map(|place| Duration::from_micros(bound_us(place)))
    }

    pub(super) fn mean(&self) -> Duration {
        Duration::from_micros(self.sum_us.checked_div(self.count()).unwrap_or(0))
    }

    fn count(&self) -> u64 {
        self.slots.iter().map(|count| u64::from(*count)).sum()
    }
}

/// The slot of a wait: each doubling has as many, of one width.
fn slot(late_us: u64) -> usize {
    let doubling = late_us.checked_ilog2().unwrap_or(0);
    if doubling < 2 {
        return late_us as usize;
    }
    let within = (late_us >> (doubling - 2)) & u64::from(STEPS - 1);
    (((doubling - 1) * STEPS) as usize + within as usize).min(SLOTS - 1)
}

/// The longest wait of a slot.
fn bound_us(slot: usize) -> u64 {
    let (doubling, within) = (slot as u32 / STEPS + 1, slot as u64 % u64::from(STEPS));
    if slot < STEPS as usize {
        return slot as u64;
    }
    ((u64::from(STEPS) + within + 1) << (doubling - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_each_other_and_hold_what_their_bounds_say() {
        let mut before = 0;
        for late_us in 0..200_000 {
            let slot = slot(late_us);
            assert!(slot == before || slot == before + 1, "{late_us}");
            assert!(bound_us(slot) >= late_us, "{late_us} in {slot}");
            assert!(slot == 0 || bound_us(slot - 1) < late_us, "{late_us} in {slot}");
            before = slot;
        }
        assert_eq!(slot(u64::MAX), SLOTS - 1);
    }

    #[test]
    fn quantiles_and_mean_are_those_of_what_was_noted_since() {
        let lateness = Lateness::default();
        assert_eq!(lateness.drain().quantile(0.9), None);
        for millis in 1..=100 {
            lateness.note(Duration::from_millis(millis));
        }
        let late = lateness.drain();
        assert_eq!(late.mean(), Duration::from_micros(50_500));
        let p90_us = late.quantile(0.9).expect("some were noted").as_micros();
        assert!((90_000..110_000).contains(&p90_us), "{p90_us}");
        assert_eq!(lateness.drain(), Late::default());
        let mut twice = late.clone();
        twice.add(&late);
        assert_eq!((twice.mean(), twice.count()), (late.mean(), 200));
    }
}
