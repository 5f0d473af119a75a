//! Who wants to hear that what it read has changed, and telling it.
//!
//! The engine remembers who read which key, and says when it changes; here stands how each
//! connection wants to be told: itself or by another connection, of its own changes or not, of
//! what it read or of all keys with a prefix. News is handed out right after the transaction that
//! made it, by whoever made it. Where nobody tracks there is none. What all hear of that begins so
//! is gathered until the batch ends, and told as one message for each prefix, as Redis does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use parking_lot::{Mutex, RwLock};

use super::host::Host;
use super::push::{Keys, Push};
use crate::engine::{Engine, KeyHasher, News, Patience, Readers};
use crate::time::Timestamp;

/// Of which keys a connection hears.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Of those it has read.
    Reads,
    /// Of those it has read right after CLIENT CACHING YES.
    OptIn,
    /// Of those it has read, but for right after CLIENT CACHING NO.
    OptOut,
    /// Of all with one of its prefixes, read or not.
    Broadcast,
}

/// What a connection has asked for by CLIENT TRACKING ON.
#[derive(Debug)]
pub(crate) struct Tracker {
    pub(super) mode: Mode,
    /// Nothing is told of its own changes.
    pub(super) noloop: bool,
    /// The connection that is told in its place.
    pub(super) redirect: Option<u64>,
    /// In order, none the beginning of another one; only for [`Mode::Broadcast`].
    pub(super) prefixes: Vec<Box<[u8]>>,
    broken: AtomicBool,
}

impl Tracker {
    pub(super) fn new(mode: Mode, noloop: bool, redirect: Option<u64>) -> Self {
        Self { mode, noloop, redirect, prefixes: Vec::new(), broken: AtomicBool::default() }
    }

    /// The connection that should be told has gone.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Whether a command's keys are remembered; `caching` says that CLIENT CACHING came before.
    pub(super) fn remembers(&self, caching: bool) -> bool {
        match self.mode {
            Mode::Reads => true,
            Mode::OptIn => caching,
            Mode::OptOut => !caching,
            Mode::Broadcast => false,
        }
    }

    /// Tells `reader`, whose tracker this is, or who is told in its place.
    fn tell(&self, host: &dyn Host, reader: u64, keys: Option<Keys>) {
        let redirected = self.redirect.is_some();
        let receiver = self.redirect.unwrap_or(reader);
        let is_there = host.push(receiver, Push::Invalidated { keys, redirected });
        if !is_there && redirected {
            self.broken.store(true, Ordering::Relaxed);
            host.push(reader, Push::RedirectionBroken(receiver));
        }
    }
}

/// Prefixes, and who wants to hear of keys that begin so.
type Prefixes = BTreeMap<Box<[u8]>, BTreeSet<u64>>;

/// Keys that are gathered before they are told: one transaction's.
const GATHERED_MAX: usize = 1 << 16;

/// A key that has changed, and by whom.
type Changed = (Box<[u8]>, u64);

/// A database, and two of its keys.
type Stalled = (u8, [Box<[u8]>; 2]);

#[derive(Debug)]
pub(crate) struct Tracking {
    trackers: DashMap<u64, Arc<Tracker>, KeyHasher>,
    prefixes: RwLock<Prefixes>,
    /// What who hears of prefixes has still to be told, and whether there is any.
    gathered: Mutex<Vec<Changed>>,
    any_gathered: AtomicBool,
    /// Pairs of keys, one of which was held when one who waits for both could be served. Each is
    /// here once, so there are no more than are waited for; they are tried again within a second.
    stalled: Mutex<BTreeSet<Stalled>>,
}

/// How many track, and what.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TrackingCounts {
    pub(super) clients: usize,
    pub(super) prefixes: usize,
}

impl Tracking {
    pub(super) fn new(hasher: &KeyHasher) -> Self {
        let trackers = DashMap::with_hasher(hasher.clone());
        Self {
            trackers,
            prefixes: RwLock::default(),
            gathered: Mutex::default(),
            any_gathered: AtomicBool::default(),
            stalled: Mutex::default(),
        }
    }

    /// From here on the connection is told as its tracker says.
    pub(super) fn begin(&self, connection: u64, tracker: &Arc<Tracker>) {
        self.trackers.insert(connection, Arc::clone(tracker));
        if tracker.prefixes.is_empty() {
            return;
        }
        let mut prefixes = self.prefixes.write();
        for prefix in &tracker.prefixes {
            prefixes.entry(prefix.clone()).or_default().insert(connection);
        }
    }

    pub(super) fn end(&self, connection: u64) {
        let Some((_, tracker)) = self.trackers.remove(&connection) else { return };
        if tracker.prefixes.is_empty() {
            return;
        }
        let mut prefixes = self.prefixes.write();
        for prefix in &tracker.prefixes {
            if let Some(readers) = prefixes.get_mut(prefix) {
                readers.remove(&connection);
                if readers.is_empty() {
                    prefixes.remove(prefix);
                }
            }
        }
    }

    /// Whether every change is to be told of. Whenever that may have changed, the engine has to
    /// be told; until then it tells too much, never too little.
    pub(super) fn broadcasts(&self) -> bool {
        !self.prefixes.read().is_empty()
    }

    pub(super) fn counts(&self) -> TrackingCounts {
        TrackingCounts { clients: self.trackers.len(), prefixes: self.prefixes.read().len() }
    }

    /// Tells everyone what concerns it of what has happened in the engine, but for what
    /// [`Tracking::broadcast`] tells.
    pub(super) fn hand_out(
        &self,
        engine: &Engine,
        host: &dyn Host,
        (now, patience): (Timestamp, Patience),
    ) {
        let mut changed = Vec::new();
        let broadcasts = self.broadcasts();
        for news in engine.take_news() {
            match news {
                News::Flushed => {
                    for tracker in &self.trackers {
                        tracker.value().tell(host, *tracker.key(), None);
                    }
                }
                News::Changed { key, readers, by } => {
                    self.tell_readers(host, &key, &readers, by);
                    if broadcasts {
                        changed.push((key, by));
                    }
                }
                News::Served(connection) => host.wake(connection),
                News::Stalled { db, keys } => {
                    if engine.serve_stalled(db, &keys, now, patience).is_err() {
                        self.stalled.lock().insert((db, keys));
                    }
                }
            }
        }
        self.gather(host, changed);
    }

    fn gather(&self, host: &dyn Host, changed: Vec<Changed>) {
        if changed.is_empty() {
            return;
        }
        let mut gathered = self.gathered.lock();
        gathered.extend(changed);
        self.any_gathered.store(true, Ordering::Release);
        if gathered.len() > GATHERED_MAX {
            drop(gathered);
            self.broadcast(host);
        }
    }

    /// Tells of all that was gathered, by one push for each prefix, with all its keys in order.
    #[inline]
    pub(super) fn broadcast(&self, host: &dyn Host) {
        if self.any_gathered.load(Ordering::Acquire) {
            let changed = {
                let mut gathered = self.gathered.lock();
                self.any_gathered.store(false, Ordering::Release);
                std::mem::take(&mut *gathered)
            };
            self.tell_of_prefixes(host, &changed);
        }
    }

    /// Serves those who wait, and whose keys were held when they could have been served.
    pub(super) fn serve_stalled(&self, engine: &Engine, now: Timestamp) {
        let stalled = std::mem::take(&mut *self.stalled.lock());
        for (db, keys) in stalled {
            if engine.serve_stalled(db, &keys, now, Patience::None).is_err() {
                self.stalled.lock().insert((db, keys));
            }
        }
    }

    fn tell_readers(&self, host: &dyn Host, key: &[u8], readers: &Readers, by: u64) {
        let mut keys = None;
        for reader in readers {
            // Who tracks no longer, or has gone, is still among the readers.
            // And who hears of prefixes by now is told of this one with the others.
            let Some(tracker) = self.tracker(*reader) else { continue };
            if tracker.mode != Mode::Broadcast && !(tracker.noloop && *reader == by) {
                let keys = keys.get_or_insert_with(|| Keys::from([Box::from(key)]));
                tracker.tell(host, *reader, Some(Keys::clone(keys)));
            }
        }
    }

    #[cold]
    fn tell_of_prefixes(&self, host: &dyn Host, changed: &[Changed]) {
        for (prefix, readers) in &*self.prefixes.read() {
            let all = beginning_with(prefix, changed, |_| true);
            for reader in readers {
                let Some(tracker) = self.tracker(*reader) else { continue };
                let keys = if tracker.noloop {
                    beginning_with(prefix, changed, |by| by != *reader)
                } else {
                    all.clone()
                };
                if keys.is_some() {
                    tracker.tell(host, *reader, keys);
                }
            }
        }
    }

    fn tracker(&self, reader: u64) -> Option<Arc<Tracker>> {
        self.trackers.get(&reader).map(|tracker| Arc::clone(&tracker))
    }
}

/// The keys that begin so and were changed by whom `wanted` says; `None` where there are none.
fn beginning_with(
    prefix: &[u8],
    changed: &[Changed],
    wanted: impl Fn(u64) -> bool,
) -> Option<Keys> {
    let fitting = changed.iter().filter(|(key, by)| key.starts_with(prefix) && wanted(*by));
    let keys: BTreeSet<Box<[u8]>> = fitting.map(|(key, _)| key.clone()).collect();
    (!keys.is_empty()).then(|| keys.into_iter().collect())
}
