//! What happens in a second: differences between two looks at counters that only grow.
//!
//! Housekeeping looks once a second; INFO tells the latest difference, scaled to one second.

use parking_lot::Mutex;

use crate::commands::Rates;
use crate::time::Timestamp;

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
}
