//! The caller's side: not even asking a service that refuses most of what it is asked.
//!
//! To refuse costs the service as well, and ten thousand callers that go on asking keep it busy
//! with that alone. So each caller throttles itself, as Google's book on reliability describes
//! it: with the requests and the accepts of the last two minutes,
//!
//! ```text
//! p = max(0, (requests - K * accepts) / (requests + 1))     at most 0.9
//! ```
//!
//! is the chance that a request is not sent. With `K` of 2 at most about half of what the service
//! is asked is refused. Requests count before they are sent, and those not sent count too; one
//! in ten is always sent, or nobody would notice that the service is well again. The span must
//! be longer than the longest call.

use crate::time::{Duration, Timestamp};

/// Parts of the span: the oldest is forgotten as a whole.
const PARTS: usize = 24;

/// The largest chance that a request is not sent.
pub const UNSENT_MAX: f64 = 0.9;

/// How a caller throttles itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallerOptions {
    /// How many times the accepts may be asked for: 1.1 is strict, 2 is usual. At least 1.
    pub multiplier: f64,
    /// How far back it looks.
    pub span: Duration,
}

impl Default for CallerOptions {
    fn default() -> Self {
        Self { multiplier: 2.0, span: Duration::from_secs(120) }
    }
}

/// Requests and accepts of a part of the span.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    requests: u64,
    accepts: u64,
}

/// One caller of one service.
#[derive(Clone, Debug)]
pub struct Caller {
    multiplier: f64,
    part_us: u64,
    parts: [Part; PARTS],
    /// The number of the newest part, counted from the epoch.
    newest: u64,
}

impl Caller {
    /// What makes no sense is brought to the nearest that does.
    pub fn new(options: CallerOptions, now: Timestamp) -> Self {
        let part_us = (options.span.as_micros() / PARTS as u64).max(1);
        Self {
            multiplier: if options.multiplier >= 1.0 { options.multiplier } else { 1.0 },
            part_us,
            parts: [Part::default(); PARTS],
            newest: now.as_micros() / part_us,
        }
    }

    /// Whether to send a request that is due, which counts in any case; `dice` is its own throw
    /// of 32 bits.
    pub fn may_send(&mut self, now: Timestamp, dice: u32) -> bool {
        self.advance(now);
        let chance = self.unsent_chance();
        self.part().requests += 1;
        f64::from(dice) / 2_f64.powi(32) >= chance
    }

    /// The service has accepted a request: it did the work, whatever came of it.
    pub fn accepted(&mut self, now: Timestamp) {
        self.advance(now);
        self.part().accepts += 1;
    }

    /// The chance that the next request is not sent, 0.0 to [`UNSENT_MAX`].
    pub fn unsent_chance(&self) -> f64 {
        let requests: u64 = self.parts.iter().map(|part| part.requests).sum();
        let accepts: u64 = self.parts.iter().map(|part| part.accepts).sum();
        chance(requests, accepts, self.multiplier)
    }

    /// Forgets what is older than the span.
    fn advance(&mut self, now: Timestamp) {
        let number = now.as_micros() / self.part_us;
        let passed = number.saturating_sub(self.newest).min(PARTS as u64);
        for back in 0..passed {
            self.parts[((number - back) % PARTS as u64) as usize] = Part::default();
        }
        self.newest = self.newest.max(number);
    }

    fn part(&mut self) -> &mut Part {
        &mut self.parts[(self.newest % PARTS as u64) as usize]
    }
}

fn chance(requests: u64, accepts: u64, multiplier: f64) -> f64 {
    let requests = requests as f64;
    ((requests - multiplier * accepts as f64) / (requests + 1.0)).clamp(0.0, UNSENT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000_000_000);

    #[test]
    fn chance_answers_its_vectors() {
        let rows = [
            ((100, 50, 2.0), 0.0),
            ((100, 40, 2.0), 0.198),
            ((1000, 100, 2.0), 0.799),
            ((1000, 100, 1.1), 0.889),
        ];
        for ((requests, accepts, multiplier), right) in rows {
            let found = chance(requests, accepts, multiplier);
            assert!((found - right).abs() < 0.000_5, "{found}, not {right}");
        }
        assert!((chance(1_000_000, 0, 2.0) - UNSENT_MAX).abs() < f64::EPSILON);
    }

    #[test]
    fn dead_service_is_asked_a_tenth_and_a_living_one_always_again() {
        let mut caller = Caller::new(CallerOptions::default(), START);
        let mut sent = 0;
        for step in 0..10_000_u32 {
            let now = START + Duration::from_millis(u64::from(step));
            sent += u32::from(caller.may_send(now, step.wrapping_mul(2_654_435_769)));
        }
        assert!((1_000..1_200).contains(&sent), "{sent}");
        let later = START + Duration::from_secs(10 + 120);
        assert!(caller.may_send(later, 0));
        assert!(caller.unsent_chance() < 0.51, "{}", caller.unsent_chance());
    }

    #[test]
    fn time_that_stands_or_jumps_forgets_no_more_than_it_must() {
        let mut caller = Caller::new(CallerOptions::default(), START);
        for _ in 0..100 {
            caller.may_send(START, 0);
        }
        caller.accepted(Timestamp::EPOCH);
        assert!(caller.unsent_chance() > 0.89);
        caller.advance(START + Duration::from_secs(114));
        assert!(caller.unsent_chance() > 0.89);
        caller.advance(Timestamp::MAX);
        assert!(caller.unsent_chance() < f64::EPSILON);
    }
}
