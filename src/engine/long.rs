//! Transactions that take long, and who waits for them.
//!
//! A script can run for ever. Whoever needs a shard that it holds waits, but not without end:
//! once the script has been declared long, waiting for any shard fails with [`Busy`] and the
//! client is told to come again, or to end the script. Without one, every lock is given back
//! soon, and waiting has no bound.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// A transaction has held shards for too long to wait for them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a script has been running for long")]
pub(crate) struct Busy;

/// How somebody waits for a shard that is held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Patience {
    /// Not at all: who keeps house has to be there for everyone.
    None,
    UntilBusy,
}

/// How often somebody who waits looks whether a transaction has become long.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Counts the transactions that have been declared long.
#[derive(Debug, Default)]
pub(crate) struct Long(AtomicUsize);

impl Long {
    /// A transaction has run for longer than others should have to wait.
    pub(crate) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// It has ended after all.
    pub(crate) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(super) fn lock<'m, T>(
        &self,
        mutex: &'m Mutex<T>,
        patience: Patience,
    ) -> Result<MutexGuard<'m, T>, Busy> {
        match mutex.try_lock() {
            Some(guard) => Ok(guard),
            None if patience == Patience::None => Err(Busy),
            None => self.wait(mutex),
        }
    }

    #[cold]
    fn wait<'m, T>(&self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>, Busy> {
        loop {
            if let Some(guard) = mutex.try_lock_for(LOOK_EVERY) {
                return Ok(guard);
            }
            if self.is_any() {
                return Err(Busy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_waited_for_until_its_holder_is_long() {
        let (long, mutex) = (Long::default(), Mutex::new(()));
        let held = mutex.lock();
        long.begin();
        assert!(long.lock(&mutex, Patience::UntilBusy).is_err());
        drop(held);
        assert!(long.lock(&mutex, Patience::UntilBusy).is_ok(), "nobody holds it");
        long.end();
        let held = mutex.lock();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| long.lock(&mutex, Patience::UntilBusy).is_ok());
            drop(held);
            assert!(waits.join().expect("it does not panic"));
        });
    }
}
