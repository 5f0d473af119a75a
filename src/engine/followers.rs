//! Who follows the keys of a shard: transactions that watch some, connections that remember what
//! they have read (`tracked.rs`), and those that wait for something to take (`waiting.rs`).
//!
//! The one place of mutation tells of each key that changes, under the shard's lock. Where nobody
//! follows anything, that costs one branch.
//!
//! A watched key counts its changes; who watches remembers the count and compares it later. So
//! nothing reaches from a change to a connection, and a count never goes back while it is kept.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::key::KeyRef;
use super::places::Places;
use super::tracked::Tracked;
use super::view::View;
use super::waiting::Waiters;

/// Keeps the changes of one key.
#[derive(Debug, Default)]
struct Watched {
    changes: u64,
    watchers: u32,
}

#[derive(Debug, Default)]
pub(super) struct Followers {
    /// There is somebody below whom changes concern, or something to tell.
    any: bool,
    watched: Places<Watched>,
    tracked: Tracked,
    waiters: Waiters,
}

impl Followers {
    /// Those of a shard whose changes are numbered with those of others.
    pub(super) fn ordered_by(order: &Arc<AtomicU64>) -> Self {
        Self { waiters: Waiters::ordered_by(order), ..Self::default() }
    }

    /// The key was stored, changed or removed, or its deadline has moved.
    #[inline]
    pub(super) fn changed(&mut self, db: usize, key: &[u8]) {
        if self.any {
            self.tell(db, key);
        }
    }

    #[cold]
    fn tell(&mut self, db: usize, key: &[u8]) {
        self.track(|tracked| tracked.changed(key));
        if self.waiters.is_active() {
            self.waiters.changed(db, key);
        }
        if let Some(watched) = self.watched.get_mut(db, key) {
            watched.changes += 1;
        }
    }

    fn settle(&mut self) {
        self.any = !self.watched.is_empty()
            || self.tracked.is_active()
            || self.tracked.has_news()
            || self.waiters.is_active()
            || self.waiters.is_stirred();
    }

    /// Whether there is anybody whom changes concern, or anything to tell: with one look.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        self.any
    }

    /// The one way to what is tracked.
    pub(super) fn track<R>(&mut self, change: impl FnOnce(&mut Tracked) -> R) -> R {
        let result = change(&mut self.tracked);
        self.settle();
        result
    }

    /// The one way to who waits.
    pub(super) fn wait<R>(&mut self, change: impl FnOnce(&mut Waiters) -> R) -> R {
        let result = change(&mut self.waiters);
        self.settle();
        result
    }

    /// As [`Waiters::first_stirred`].
    pub(super) fn first_stirred(&self) -> u64 {
        self.waiters.first_stirred()
    }

    /// Whether somebody who waits may be served.
    #[inline]
    pub(super) fn is_stirred(&self) -> bool {
        self.waiters.is_stirred()
    }

    /// What changes now has expired, or no longer.
    pub(super) fn expire(&mut self, expiring: bool) {
        self.tracked.expire(expiring);
    }

    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.tracked.has_news()
    }

    /// Keys tracked, and readers of them in all.
    pub(super) fn tracked_counts(&self) -> (usize, usize) {
        self.tracked.counts()
    }

    /// Every key of the database that `touched` says so of has changed.
    pub(super) fn changed_all(&mut self, db: usize, touched: impl Fn(KeyRef<'_>) -> bool) {
        self.waiters.changed_all(db, &touched);
        for (key, watched) in self.watched.of_db(db) {
            watched.changes += u64::from(touched(key));
        }
    }

    /// Counts the key's changes from here on. Returns the count to compare with.
    pub(super) fn watch(&mut self, db: usize, key: KeyRef<'_>) -> u64 {
        let watched = self.watched.get_or_default(db, key);
        watched.watchers += 1;
        let changes = watched.changes;
        self.settle();
        changes
    }

    /// One watcher less.
    pub(super) fn unwatch(&mut self, db: usize, key: &[u8]) {
        if let Some(watched) = self.watched.get_mut(db, key) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.watched.remove(db, key);
                self.settle();
            }
        }
    }

    /// How often the key has changed, as [`Followers::watch`] counts.
    pub(super) fn changes(&self, db: usize, key: &[u8]) -> Option<u64> {
        self.watched.get(db, key).map(|watched| watched.changes)
    }
}

impl View<'_> {
    /// Counts the key's changes from here on, until [`View::unwatch`]. Returns the count to
    /// compare with. A key past its deadline is removed first: that is no change to see.
    pub(crate) fn watch(&mut self, key: KeyRef<'_>) -> u64 {
        self.look(key);
        let db = self.db;
        self.shard(key).followers.watch(db, key)
    }

    pub(crate) fn unwatch(&mut self, key: KeyRef<'_>) {
        let db = self.db;
        self.shard(key).followers.unwatch(db, key.bytes());
    }

    /// How often a watched key has changed; a deadline that has passed is a change.
    pub(crate) fn changes(&mut self, key: KeyRef<'_>) -> Option<u64> {
        self.look(key);
        let db = self.db;
        self.shard(key).followers.changes(db, key.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Scope, Value};
    use crate::time::Timestamp;

    #[test]
    fn watched_key_counts_its_changes_and_no_others() {
        let mut followers = Followers::default();
        let seen = followers.watch(0, KeyRef::within_shard(b"k", 7));
        followers.changed(0, b"other");
        followers.changed(1, b"k");
        assert_eq!(followers.changes(0, b"k"), Some(seen));
        followers.changed(0, b"k");
        assert_eq!(followers.changes(0, b"k"), Some(seen + 1));
    }

    #[test]
    fn key_is_forgotten_with_its_last_watcher() {
        let mut followers = Followers::default();
        followers.watch(0, KeyRef::within_shard(b"k", 7));
        followers.watch(0, KeyRef::within_shard(b"k", 7));
        followers.unwatch(0, b"k");
        assert!(followers.changes(0, b"k").is_some());
        followers.unwatch(0, b"k");
        assert_eq!(followers.changes(0, b"k"), None);
    }

    #[test]
    fn watched_key_tells_of_every_kind_of_change() {
        let engine = Engine::new(1, 7);
        let now = Timestamp::from_micros(1);
        let key = engine.key(b"k");
        engine.transact(Scope::All, 0, now, |view| {
            let mut seen = view.watch(key);
            let mut changed = |view: &mut View<'_>| {
                let before = std::mem::replace(&mut seen, view.changes(key).expect("watched"));
                before != seen
            };
            assert!(!changed(view));
            view.insert(key, Value::string(b"1"), Timestamp::MAX);
            assert!(changed(view));
            view.set_expires(key, Timestamp::from_micros(9));
            assert!(changed(view));
            view.remove(key);
            assert!(changed(view));
            view.remove(key);
            assert!(!changed(view));
            view.insert(key, Value::string(b"1"), Timestamp::MAX);
            assert!(changed(view));
            drop(view.flush());
            assert!(changed(view));
            drop(view.flush());
            assert!(!changed(view));
        });
    }
}
