//! Which connections remember which keys of a shard (CLIENT TRACKING), and which of those keys
//! have changed.
//!
//! A key is remembered whatever its database, as in Redis. It is forgotten by its first change:
//! who was told forgets it, too, and asks again. What has changed is collected under the shard's
//! lock and leaves it as [`News`], in order, before the lock is released; the room above hands
//! it out. Remembered keys are bounded over all shards; one more pushes another one out, and its
//! readers are told as if it had changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use smallvec::SmallVec;

use super::key::KeyRef;
use super::view::View;

/// Connections that remember one key: more than connect by default. One more, and all are told
/// to forget it, which also sheds those that have gone.
const READERS_MAX: usize = 1 << 14;

/// Keys of one shard that one transaction tells of. More, and telling costs everyone more than
/// forgetting all does.
const NEWS_MAX: usize = 1 << 16;

/// Connections by their numbers, ascending.
pub(crate) type Readers = SmallVec<[u64; 2]>;

/// What others have to be told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum News {
    /// A key has changed, and who remembered it.
    Changed { key: Box<[u8]>, readers: Readers, by: u64 },
    /// Everything may have changed.
    Flushed,
    /// A connection has what it waited for.
    Served(u64),
    /// One who waits for the first of these keys needs the other one, too.
    Stalled { db: u8, keys: [Box<[u8]>; 2] },
}

/// The number of no connection: of what time or the memory bound does.
pub(crate) const NOBODY: u64 = 0;

#[derive(Debug)]
struct Changed {
    key: Box<[u8]>,
    readers: Readers,
    /// It was the transaction's doing; else that of time.
    is_deed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Tracked {
    readers: BTreeMap<Box<[u8]>, Readers>,
    /// Every change is told, remembered or not.
    broadcasts: bool,
    /// Remembered keys that have changed.
    changed: Vec<Changed>,
    /// Other keys that have, where every change is told, and whether that was a deed.
    broadcast: BTreeSet<(Box<[u8]>, bool)>,
    flushed: bool,
    /// What changes now has expired.
    expiring: bool,
    /// Keys forgotten since they were last counted.
    forgotten: usize,
    /// Where the search for a key to push out goes on.
    pushed_out: Box<[u8]>,
}

impl Tracked {
    /// Whether changes have to be told at all.
    pub(super) fn is_active(&self) -> bool {
        self.broadcasts || !self.readers.is_empty()
    }

    pub(super) fn broadcast(&mut self, on: bool) {
        self.broadcasts = on;
    }

    pub(super) fn expire(&mut self, expiring: bool) {
        self.expiring = expiring;
    }

    pub(super) fn changed(&mut self, key: &[u8]) {
        let is_deed = !self.expiring;
        if let Some((key, readers)) = self.readers.remove_entry(key) {
            self.forgotten += 1;
            self.changed.push(Changed { key, readers, is_deed });
        } else if self.broadcasts {
            self.broadcast.insert((key.into(), is_deed));
        }
        self.bound_news();
    }

    /// Where a transaction changes very many keys, it is told as if it had changed all.
    fn bound_news(&mut self) {
        if self.changed.len() + self.broadcast.len() > NEWS_MAX {
            self.changed.clear();
            self.broadcast.clear();
            self.flush();
        }
    }

    /// Everything is forgotten: a database was flushed, or exchanged.
    pub(super) fn flush(&mut self) {
        self.forgotten += std::mem::take(&mut self.readers).len();
        self.flushed = true;
    }

    /// Remembers a reader of the key. Returns whether the key was not remembered before.
    fn remember(&mut self, key: &[u8], reader: u64) -> bool {
        let Some(readers) = self.readers.get_mut(key) else {
            self.readers.insert(key.into(), SmallVec::from_elem(reader, 1));
            return true;
        };
        if let Err(place) = readers.binary_search(&reader) {
            readers.insert(place, reader);
            if readers.len() > READERS_MAX {
                self.forget(key);
            }
        }
        false
    }

    /// Forgets some key, not always the same ones.
    fn push_out(&mut self) {
        let behind = (Bound::Excluded(&*self.pushed_out), Bound::Unbounded);
        let next = self.readers.range::<[u8], _>(behind).next();
        if let Some((key, _)) = next.or_else(|| self.readers.first_key_value()) {
            self.pushed_out = key.clone();
            self.forget(&self.pushed_out.clone());
        }
    }

    fn forget(&mut self, key: &[u8]) {
        if let Some((key, readers)) = self.readers.remove_entry(key) {
            self.forgotten += 1;
            self.changed.push(Changed { key, readers, is_deed: false });
        }
    }

    pub(super) fn has_news(&self) -> bool {
        self.flushed || !self.changed.is_empty() || !self.broadcast.is_empty()
    }

    /// Hands over what has changed, and by whom. Returns how many keys were forgotten.
    pub(super) fn hand_over(&mut self, by: u64, news: &mut Vec<News>) -> usize {
        if std::mem::take(&mut self.flushed) && news.last() != Some(&News::Flushed) {
            news.push(News::Flushed);
        }
        let broadcast = std::mem::take(&mut self.broadcast).into_iter();
        let broadcast = broadcast.map(|(key, is_deed)| {
            let readers = Readers::new();
            Changed { key, readers, is_deed }
        });
        news.extend(self.changed.drain(..).chain(broadcast).map(|changed| {
            let Changed { key, readers, is_deed } = changed;
            News::Changed { key, readers, by: if is_deed { by } else { NOBODY } }
        }));
        std::mem::take(&mut self.forgotten)
    }

    /// Keys remembered, and readers of them in all.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.readers.len(), self.readers.values().map(SmallVec::len).sum())
    }
}

impl View<'_> {
    /// From here on what changes is this connection's doing.
    pub(crate) fn act_for(&mut self, connection: u64) {
        self.by = connection;
    }

    /// Tells the connection, once, when the key changes from here on.
    pub(crate) fn track(&mut self, key: KeyRef<'_>, reader: u64) {
        let engine = self.engine;
        let followers = &mut self.shard(key).followers;
        let is_new = followers.track(|tracked| tracked.remember(key.bytes(), reader));
        if is_new && engine.count_tracked() {
            followers.track(Tracked::push_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Patience, Scope, Value};
    use crate::time::Timestamp;

    const NOW: Timestamp = Timestamp::from_micros(1_000);

    fn put(engine: &Engine, name: &[u8], by: u64) {
        let key = engine.key(name);
        engine.transact(Scope::Keys(&[key]), 0, NOW, |view| {
            view.act_for(by);
            view.insert(key, Value::string(b"v"), Timestamp::from_micros(5_000));
        });
    }

    fn track(engine: &Engine, name: &[u8], reader: u64) {
        let key = engine.key(name);
        engine.transact(Scope::Keys(&[key]), 0, NOW, |view| view.track(key, reader));
    }

    fn changed(key: &[u8], readers: &[u64], by: u64) -> News {
        News::Changed { key: key.into(), readers: readers.into(), by }
    }

    #[test]
    fn readers_are_told_of_the_first_change_and_by_whom_it_is() {
        let engine = Engine::new(4, 7);
        track(&engine, b"k", 9);
        track(&engine, b"k", 3);
        track(&engine, b"k", 9);
        assert!(!engine.has_news());
        put(&engine, b"other", 5);
        put(&engine, b"k", 5);
        put(&engine, b"k", 5);
        assert_eq!(engine.take_news(), [changed(b"k", &[3, 9], 5)]);
        assert!(!engine.has_news());
    }

    #[test]
    fn expiry_is_nobodys_doing_whoever_notices_it() {
        let later = Timestamp::from_micros(6_000);
        let look = |engine: &Engine| {
            let key = engine.key(b"k");
            engine.transact(Scope::Keys(&[key]), 0, later, |view| {
                view.act_for(3);
                assert!(view.look(key).is_none());
            });
        };
        let sweep = |engine: &Engine| assert!(engine.sweep(later));
        let notices: [&dyn Fn(&Engine); 2] = [&look, &sweep];
        for notice in notices {
            let engine = Engine::new(1, 7);
            put(&engine, b"k", 5);
            track(&engine, b"k", 3);
            notice(&engine);
            assert_eq!(engine.take_news(), [changed(b"k", &[3], NOBODY)]);
        }
    }

    #[test]
    fn one_key_more_than_the_bound_pushes_another_one_out() {
        let engine = Engine::new(1, 7);
        engine.set_tracked_keys_max(2);
        for name in [b"a", b"b", b"c", b"d"] {
            track(&engine, name, 3);
        }
        let told = [changed(b"a", &[3], NOBODY), changed(b"b", &[3], NOBODY)];
        assert_eq!(engine.take_news(), told);
        let stats = engine.stats();
        assert_eq!((stats.tracked_keys, stats.tracked_readers), (2, 2));
    }

    #[test]
    fn flush_is_one_piece_of_news_and_forgets_all() {
        let engine = Engine::new(4, 7);
        for name in [b"a", b"b", b"c", b"d"] {
            track(&engine, name, 3);
        }
        engine.transact(Scope::All, 0, NOW, |view| drop(view.flush()));
        assert_eq!(engine.take_news(), [News::Flushed]);
        put(&engine, b"a", 5);
        assert!(!engine.has_news());
        assert_eq!(engine.stats().tracked_keys, 0);
    }

    #[test]
    fn broadcasting_tells_of_every_change_until_it_ends() {
        let engine = Engine::new(4, 7);
        engine.broadcast(|| true, Patience::UntilBusy).expect("nobody holds a shard");
        put(&engine, b"a", 5);
        assert_eq!(engine.take_news(), [changed(b"a", &[], 5)]);
        engine.broadcast(|| false, Patience::UntilBusy).expect("nobody holds a shard");
        put(&engine, b"a", 5);
        assert!(!engine.has_news());
    }

    #[test]
    fn news_of_one_transaction_are_told_once_and_bounded() {
        let mut tracked = Tracked::default();
        tracked.remember(b"remembered", 3);
        tracked.broadcast(true);
        let mut tell = |keys: u32| {
            for number in (0..keys).chain(0..keys) {
                tracked.changed(&number.to_be_bytes());
            }
            let mut news = Vec::new();
            tracked.hand_over(5, &mut news);
            news
        };
        assert_eq!(tell(2), [changed(&[0; 4], &[], 5), changed(&[0, 0, 0, 1], &[], 5)]);
        assert_eq!(tell(NEWS_MAX as u32).len(), NEWS_MAX);
        let news = tell(NEWS_MAX as u32 + 1);
        assert!(news[0] == News::Flushed && news.len() <= NEWS_MAX);
        assert_eq!(tracked.counts(), (0, 0));
    }

    #[test]
    fn readers_of_one_key_are_bounded() {
        let mut tracked = Tracked::default();
        for reader in 0..=READERS_MAX as u64 {
            tracked.remember(b"k", reader);
        }
        assert!(tracked.has_news());
        assert_eq!(tracked.counts(), (0, 0));
    }
}
