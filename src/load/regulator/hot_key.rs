//! A hot key: one of very many that takes a third of everything.
//!
//! The keys of the last second are followed by a space-saving sketch of 64. One that surely has
//! more than 30 % of the requests, and more than 5 % of what the service can do, is capped: it
//! gets so much a second, and what is above is refused, until it is no longer hot. Below 5 % of the
//! capacity a hot key does no harm; a quiet service is not to refuse its only user.
//!
//! At most three keys can have more than 30 %, so the list of capped ones is short. Seconds are
//! counted from the first request.

use crate::limit::{Hashed, Heavy};
use crate::time::{Duration, Timestamp};

/// Keys that are followed.
const FOLLOWED: usize = 64;

/// Keys that can be hot at once.
const CAPPED_MAX: usize = 3;

/// Far longer than a sketch is used: within its second nothing is to fade.
const HALF_LIFE: Duration = Duration::from_secs(86_400);

const SECOND: Duration = Duration::from_secs(1);

/// When a key is hot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotKeyOptions {
    /// The share of all requests that a key may have, 0.0 to 1.0.
    pub share_max: f64,
    /// The share of the capacity that a key has in any case, 0.0 to 1.0.
    pub capacity_share: f64,
}

impl Default for HotKeyOptions {
    fn default() -> Self {
        Self { share_max: 0.3, capacity_share: 0.05 }
    }
}

/// A key that is capped.
#[derive(Clone, Copy, Debug)]
struct Capped {
    hash: u64,
    /// Requests that it may have in a second.
    most: u64,
    /// Those that it had in this one.
    had: u64,
}

/// See the module.
#[derive(Debug)]
pub struct HotKey {
    options: HotKeyOptions,
    heavy: Heavy,
    requests: u64,
    second_ends: Timestamp,
    /// What the service can do in a second.
    capacity: f64,
    capped: Vec<Capped>,
}

impl HotKey {
    pub fn new(options: HotKeyOptions, now: Timestamp) -> Self {
        Self {
            options,
            heavy: Heavy::new(FOLLOWED, HALF_LIFE, now),
            requests: 0,
            second_ends: now + SECOND,
            capacity: 0.0,
            capped: Vec::with_capacity(CAPPED_MAX),
        }
    }

    /// What the service can do in a second, as it is known now.
    pub fn note_capacity(&mut self, per_second: f64) {
        self.capacity = per_second.max(0.0);
    }

    /// Counts a request of the key and tells whether it may pass. Keys that hash alike are taken
    /// for one key here: the hash is seeded, and a cap is no limit of anybody's.
    pub fn admits(&mut self, key: Hashed<'_>, now: Timestamp) -> bool {
        if now >= self.second_ends {
            self.end_second(now);
        }
        self.requests += 1;
        self.heavy.add(key, 1, now);
        let Some(capped) = self.capped.iter_mut().find(|capped| capped.hash == key.hash) else {
            return true;
        };
        capped.had += 1;
        capped.had <= capped.most
    }

    /// Whether any key is capped.
    pub fn is_any_capped(&self) -> bool {
        !self.capped.is_empty()
    }

    fn end_second(&mut self, now: Timestamp) {
        let all = self.requests as f64;
        let most = (self.options.share_max * all).max(self.options.capacity_share * self.capacity);
        self.capped.clear();
        for hot in self.heavy.top(CAPPED_MAX, now) {
            if (hot.count - hot.error) as f64 > most {
                let capped = Capped { hash: hot.hash, most: most as u64, had: 0 };
                self.capped.push(capped);
            }
        }
        self.heavy = Heavy::new(FOLLOWED, HALF_LIFE, now);
        self.requests = 0;
        self.second_ends = now + SECOND;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000);

    fn key(number: u64) -> [u8; 8] {
        number.to_le_bytes()
    }

    /// One second in which `hot` of a thousand requests are of key 0; how many of them passed,
    /// and how many of the others.
    fn second(hot_key: &mut HotKey, number: u64, hot: u64) -> (u64, u64) {
        let mut passed = (0, 0);
        for step in 0..1_000_u64 {
            let number_of_key = if step * 7 % 1_000 < hot { 0 } else { step + 1 };
            let bytes = key(number_of_key);
            let hashed = Hashed { bytes: &bytes, hash: number_of_key.wrapping_mul(0x9e37_79b9) };
            let now = START + Duration::from_millis(number * 1_000 + step);
            if hot_key.admits(hashed, now) {
                if number_of_key == 0 { passed.0 += 1 } else { passed.1 += 1 }
            }
        }
        passed
    }

    #[test]
    fn hot_key_is_capped_and_freed_when_it_cools() {
        let mut hot_key = HotKey::new(HotKeyOptions::default(), START);
        hot_key.note_capacity(2_000.0);
        assert_eq!(second(&mut hot_key, 0, 500), (500, 500));
        assert_eq!(second(&mut hot_key, 1, 500), (300, 500));
        assert!(hot_key.is_any_capped());
        assert_eq!(second(&mut hot_key, 2, 100), (100, 900));
        assert_eq!(second(&mut hot_key, 3, 300), (300, 700));
        assert!(!hot_key.is_any_capped());
    }

    #[test]
    fn quiet_service_refuses_no_only_user() {
        let mut hot_key = HotKey::new(HotKeyOptions::default(), START);
        hot_key.note_capacity(20_000.0);
        for number in 0..3 {
            assert_eq!(second(&mut hot_key, number, 1_000), (1_000, 0));
        }
    }
}
