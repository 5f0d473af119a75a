//! Room for a tenant that has as many keys as it may: what is over goes before anybody is refused.
//!
//! An expired bucket counts until it is swept, and the sweep comes by only now and then. Who would
//! be refused for that looks for expired buckets himself: in the shards that he holds, and in those
//! that nobody holds just then, so nothing is waited for. That is dearer than a check and done
//! while shards are locked; so all requests together look once in [`LOOK_PERIOD`], over
//! [`LOOK_SLOTS_MAX`] slots, and the next look goes on where the last one ended.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::Engine;
use super::shard::Shard;
use super::table::Slot;
use super::tables::BUCKETS;
use super::tenants::Full;
use super::view::View;
use crate::time::{Duration, Timestamp};

/// A tenant that is full of what is over is refused for at most this long, where one look sees
/// all buckets.
const LOOK_PERIOD: Duration = Duration::from_millis(2);

/// Less than a tenth of a millisecond.
const LOOK_SLOTS_MAX: usize = 4_096;

/// When the last look was, and with which shard the next begins.
#[derive(Debug, Default)]
pub(super) struct Looks {
    last_us: AtomicU64,
    from: AtomicUsize,
}

impl Looks {
    /// Whether it is time for a look; then nobody else's is, for a while.
    fn begin(&self, now: Timestamp) -> bool {
        let (last_us, now_us) = (self.last_us.load(Ordering::Relaxed), now.as_micros());
        now_us >= last_us.saturating_add(LOOK_PERIOD.as_micros())
            && self
                .last_us
                .compare_exchange(last_us, now_us, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

impl View<'_> {
    /// Counts keys that will be stored at once, if the tenant may have them.
    pub(super) fn admit_keys(
        &mut self,
        tenant: &[u8],
        new: u64,
        keys_max: Option<u64>,
    ) -> Result<(), Full> {
        let admitted = self.engine.tenants.admit(tenant, new, keys_max);
        if admitted.is_ok() || !self.engine.looks.begin(self.now) {
            return admitted;
        }
        self.sweep_for_room();
        self.engine.tenants.admit(tenant, new, keys_max)
    }

    #[cold]
    fn sweep_for_room(&mut self) {
        let (engine, now) = (self.engine, self.now);
        let mut steps = LOOK_SLOTS_MAX;
        for (_, shard) in &mut self.guards {
            shard.sweep_buckets(now, &mut steps);
        }
        let from = engine.looks.from.load(Ordering::Relaxed);
        for at in 0..engine.shards.len() {
            let number = (from + at) % engine.shards.len();
            if steps == 0 {
                engine.looks.from.store(number, Ordering::Relaxed);
                return;
            }
            // Our own are held as well.
            if let Some(mut shard) = engine.shards[number].try_lock() {
                engine.sweep_unheld(&mut shard, now, &mut steps);
            }
        }
    }
}

impl Engine {
    fn sweep_unheld(&self, shard: &mut Shard, now: Timestamp, steps: &mut usize) {
        let before = shard.held();
        shard.sweep_buckets(now, steps);
        self.account(before, shard.held());
    }
}

impl Shard {
    /// Removes the expired buckets among its first `steps` ones.
    fn sweep_buckets(&mut self, now: Timestamp, steps: &mut usize) {
        self.latest = self.latest.max(now);
        let now = self.latest;
        let Some(table) = self.table(BUCKETS) else { return };
        let mut expired: SmallVec<[Slot; 64]> = SmallVec::new();
        table.walk(0, steps, |slot, entry| {
            if entry.is_expired(now) {
                expired.push(slot);
            }
            ControlFlow::Continue(())
        });
        for slot in expired {
            self.expire(BUCKETS, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_is_enough_for_a_while() {
        let (looks, now) = (Looks::default(), Timestamp::from_millis(1_000));
        assert!(looks.begin(now));
        assert!(!looks.begin(now) && !looks.begin(now + Duration::from_micros(1_999)));
        assert!(looks.begin(now + LOOK_PERIOD));
    }
}
