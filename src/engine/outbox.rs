//! What has happened in the shards and others must be told, from the shards to who tells them.
//!
//! Filled while the shards of a transaction are still locked, so news of one key stands in the
//! order of its changes; emptied by whoever has made the transaction, right after it. So it holds
//! no more than what the transactions under way have made. Looking whether there is any is one
//! load of memory that is seldom written.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::shard::Shard;
use super::tracked::{NOBODY, News};
use super::{Busy, Engine, Patience, View};

#[derive(Debug)]
pub(super) struct Outbox {
    news: Mutex<Vec<News>>,
    /// On a line of its own: every request reads it.
    any: CachePadded<AtomicBool>,
    /// Keys tracked in all shards, and how many may be.
    tracked_keys: AtomicUsize,
    tracked_keys_max: AtomicUsize,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            news: Mutex::default(),
            any: CachePadded::default(),
            tracked_keys: AtomicUsize::default(),
            tracked_keys_max: AtomicUsize::new(usize::MAX),
        }
    }
}

impl Engine {
    /// Takes the news out of locked shards.
    #[cold]
    pub(super) fn post<'s>(&self, shards: impl Iterator<Item = &'s mut Shard>, by: u64) {
        let mut news = self.outbox.news.lock();
        let mut forgotten = 0;
        for shard in shards {
            forgotten += shard.followers.track(|tracked| tracked.hand_over(by, &mut news));
        }
        self.outbox.tracked_keys.fetch_sub(forgotten, Ordering::Relaxed);
        self.outbox.any.store(true, Ordering::Release);
    }

    /// Adds news that is no shard's.
    pub(super) fn post_more(&self, more: Vec<News>) {
        self.outbox.news.lock().extend(more);
        self.outbox.any.store(true, Ordering::Release);
    }

    /// The same of one shard, for what time and the memory bound have done.
    pub(super) fn post_of(&self, shard: &mut Shard) {
        if shard.followers.has_news() {
            self.post(std::iter::once(shard), NOBODY);
        }
    }

    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.outbox.any.load(Ordering::Acquire)
    }

    /// What has happened since the last call, in order.
    pub(crate) fn take_news(&self) -> Vec<News> {
        let mut news = self.outbox.news.lock();
        self.outbox.any.store(false, Ordering::Release);
        std::mem::take(&mut *news)
    }

    /// From here on every change is news, or only those of tracked keys, as `on` says once a
    /// shard is locked: who asks last decides.
    pub(crate) fn broadcast(&self, on: impl Fn() -> bool, patience: Patience) -> Result<(), Busy> {
        for number in 0..self.shards.len() {
            let (_, mut shard) = self.lock_shard(number, patience)?;
            shard.followers.track(|tracked| tracked.broadcast(on()));
        }
        Ok(())
    }

    /// Counts one more tracked key. Returns whether that is one too many.
    pub(super) fn count_tracked(&self) -> bool {
        let before = self.outbox.tracked_keys.fetch_add(1, Ordering::Relaxed);
        before >= self.tracked_keys_max()
    }

    pub(crate) fn tracked_keys_max(&self) -> usize {
        self.outbox.tracked_keys_max.load(Ordering::Relaxed)
    }

    pub(crate) fn set_tracked_keys_max(&self, keys: usize) {
        self.outbox.tracked_keys_max.store(keys, Ordering::Relaxed);
    }
}

impl View<'_> {
    /// The same in the locked shards.
    pub(crate) fn broadcast(&mut self, on: bool) {
        for (_, shard) in &mut self.guards {
            shard.followers.track(|tracked| tracked.broadcast(on));
        }
    }
}
