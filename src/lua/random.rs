//! `math.random`: the 48-bit generator of `drand48`, which Redis carries for its scripts.
//!
//! A script goes on where the one before it stopped, so numbers drawn by two scripts differ. Each
//! worker has a sequence of its own; that of the first is Redis's.

/// The multiplier and addend that POSIX gives for `drand48`.
const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const ADDEND: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// The low sixteen bits after seeding.
const SEED_LOW: u64 = 0x330E;

/// The seed of a generator that nobody has seeded, by POSIX.
const UNSEEDED: u32 = 0x1234_ABCD;

/// Redis divides by the largest number of 31 bits, not by how many there are.
const LARGEST: u64 = i32::MAX as u64;

/// Where the sequence stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Where the sequence of a worker begins.
    pub(super) fn of_worker(number: u32) -> Self {
        Self::seeded(UNSEEDED.wrapping_add(number))
    }

    pub(super) fn seeded(seed: u32) -> Self {
        Self((u64::from(seed) << 16) | SEED_LOW)
    }

    /// The next number, from zero up to but not one.
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(ADDEND) & MASK;
        ((self.0 >> 17) % LARGEST) as f64 / LARGEST as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_redis() {
        let mut random = Random::seeded(0);
        let drawn: Vec<u32> = (0..3).map(|_| (random.next() * 1e6) as u32 + 1).collect();
        assert_eq!(drawn, [170_829, 749_902, 96_372]);
        assert_eq!((Random::seeded(7).next() * 1e6) as u32 + 1, 266_445);
    }

    #[test]
    fn the_first_worker_begins_as_redis_does_and_others_elsewhere() {
        let first = |number| (Random::of_worker(number).next() * 1e6) as u32;
        assert_eq!(first(0), 396_464);
        assert_ne!(first(1), first(0));
    }
}
