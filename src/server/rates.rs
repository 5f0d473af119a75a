//! What happens in a second: differences between two looks at counters that only grow.
//!
//! Housekeeping looks once a second; INFO tells the latest difference, scaled to one second.

use parking_lot::Mutex;

use crate::commands::Rates;
use crate::time::{Duration, Timestamp};

#[derive(Debug, Default)]
pub(super) struct RateMeter(Mutex<Looks>);

#[derive(Debug, Default)]
struct Looks {
    at: Timestamp,
    totals: Rates,
    rates: Rates,
    used_peak_bytes: usize,
}

impl RateMeter {
    /// `totals` is what the counters say now.
    pub(super) fn look(&self, now: Timestamp, totals: Rates, used_bytes: usize) {
        let mut looks = self.0.lock();
        let elapsed_us = now.since(looks.at).as_micros();
        if elapsed_us == 0 {
            return;
        }
        let before = looks.totals;
        let rate = |total: u64, before: u64| {
            // A counter that was reset begins at zero.
            let grown = u128::from(total.checked_sub(before).unwrap_or(total));
            (grown * 1_000_000 / u128::from(elapsed_us)) as u64
        };
        if looks.at != Timestamp::EPOCH {
            looks.rates = Rates {
                commands: rate(totals.commands, before.commands),
                input_bytes: rate(totals.input_bytes, before.input_bytes),
                output_bytes: rate(totals.output_bytes, before.output_bytes),
            };
        }
        looks.at = now;
        looks.totals = totals;
        looks.used_peak_bytes = looks.used_peak_bytes.max(used_bytes);
    }

    pub(super) fn rates(&self) -> Rates {
        self.0.lock().rates
    }

    /// The most memory seen, `used_bytes` of now among it.
    pub(super) fn used_peak_bytes(&self, used_bytes: usize) -> usize {
        let mut looks = self.0.lock();
        looks.used_peak_bytes = looks.used_peak_bytes.max(used_bytes);
        looks.used_peak_bytes
    }
}

/// Lines of scripts that are told in a second: a script can be called very often.
const LINES_PER_SECOND_MAX: u32 = 100;

/// Lets so many lines of scripts pass each second.
#[derive(Debug, Default)]
pub(super) struct LineRate(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began: Timestamp,
    told: u32,
    left_out: u64,
}

impl LineRate {
    /// Whether a line may be told now: with how many were left out before it.
    pub(super) fn admit(&self, now: Timestamp) -> Option<u64> {
        const SECOND: Duration = Duration::from_secs(1);
        let mut window = self.0.lock();
        if now.since(window.began) >= SECOND {
            (window.began, window.told) = (now, 0);
        }
        if window.told >= LINES_PER_SECOND_MAX {
            window.left_out += 1;
            return None;
        }
        window.told += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(commands: u64) -> Rates {
        Rates { commands, ..Rates::default() }
    }

    #[test]
    fn rate_is_the_difference_scaled_to_a_second() {
        let meter = RateMeter::default();
        for (at_ms, commands, rate) in
            [(1_000, 500, 0), (2_000, 600, 100), (4_000, 800, 100), (5_000, 30, 30)]
        {
            meter.look(Timestamp::from_millis(at_ms), totals(commands), 0);
            assert_eq!(meter.rates().commands, rate, "at {at_ms} ms");
        }
    }

    #[test]
    fn peak_is_the_most_ever_seen() {
        let meter = RateMeter::default();
        meter.look(Timestamp::from_millis(1), totals(0), 10);
        assert_eq!(meter.used_peak_bytes(7), 10);
        assert_eq!(meter.used_peak_bytes(12), 12);
        assert_eq!(meter.used_peak_bytes(0), 12);
    }

    #[test]
    fn scripts_are_told_of_so_often_in_a_second_and_no_more() {
        let (rate, second) = (LineRate::default(), Timestamp::from_millis(1_000));
        for _ in 0..LINES_PER_SECOND_MAX {
            assert_eq!(rate.admit(second), Some(0));
        }
        assert_eq!((rate.admit(second), rate.admit(second)), (None, None));
        let next = Timestamp::from_millis(2_000);
        assert_eq!((rate.admit(next), rate.admit(next)), (Some(2), Some(0)));
    }
}
