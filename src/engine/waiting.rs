//! Who waits for a key to hold something, and how a change serves it.
//!
//! A key that changes while somebody waits for it is remembered until the transaction has done
//! all that it does. Then, with the shards still locked, those who wait for it are served, the
//! oldest first, as long as there is anything under the key; what they take is gone before
//! anybody else looks. Serving changes keys, too, which may serve others.
//!
//! One that would also need a key of a shard that is not locked holds up those behind it; it is
//! served by a transaction over both keys right after this one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::key::KeyRef;
use super::places::Places;
use super::tracked::News;
use super::view::View;
use super::{Busy, Engine, Patience, Scope};
use crate::time::Timestamp;

/// A database and a key.
type Place = (usize, Box<[u8]>);

/// What waits, of one connection.
pub(crate) trait Waiter: fmt::Debug + Send + Sync {
    /// Takes what it waits for from the key, if it is there.
    fn serve(&self, view: &mut View<'_>, key: KeyRef<'_>) -> Served;
}

/// What became of who waits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Served {
    /// It waits no longer.
    Done,
    /// What is there is not what it waits for.
    Waits,
    /// There is something, but it needs this key as well.
    Needs(Box<[u8]>),
}

#[derive(Debug)]
struct Waiting {
    connection: u64,
    waiter: Arc<dyn Waiter>,
}

#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Oldest first.
    waiting: Places<VecDeque<Waiting>>,
    /// Keys that may hold something for one of them, in the order of their changes.
    stirred: VecDeque<Stirred>,
    /// Numbers the changes of all shards: what one transaction fills in several is served in order.
    order: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Stirred {
    order: u64,
    place: Place,
}

impl Waiters {
    pub(super) fn ordered_by(order: &Arc<AtomicU64>) -> Self {
        Self { order: Arc::clone(order), ..Self::default() }
    }

    pub(super) fn is_active(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn is_stirred(&self) -> bool {
        !self.stirred.is_empty()
    }

    /// The number of the first change that somebody may be served of; the last number if none.
    pub(super) fn first_stirred(&self) -> u64 {
        self.stirred.front().map_or(u64::MAX, |stirred| stirred.order)
    }

    /// The key has changed.
    pub(super) fn changed(&mut self, db: usize, key: &[u8]) {
        let is_stirred =
            || self.stirred.iter().any(|Stirred { place, .. }| place.0 == db && *place.1 == *key);
        if self.waiting.get(db, key).is_some() && !is_stirred() {
            let order = self.order.fetch_add(1, Ordering::Relaxed);
            self.stirred.push_back(Stirred { order, place: (db, key.into()) });
        }
    }

    /// Every key of the database that `touched` says so of has changed.
    pub(super) fn changed_all(&mut self, db: usize, touched: impl Fn(KeyRef<'_>) -> bool) {
        let keys = self.waiting.of_db(db).map(|(key, _)| key).filter(|key| touched(*key));
        self.stirred.extend(keys.map(|key| {
            let order = self.order.fetch_add(1, Ordering::Relaxed);
            Stirred { order, place: (db, key.bytes().into()) }
        }));
    }

    /// A wait is known by itself, and not by its connection: an earlier one of that connection,
    /// which has ended, may still stand here.
    fn add(&mut self, db: usize, key: KeyRef<'_>, waiting: Waiting) {
        let queue = self.waiting.get_or_default(db, key);
        if !queue.iter().any(|other| Arc::ptr_eq(&other.waiter, &waiting.waiter)) {
            queue.push_back(waiting);
        }
    }

    fn remove(&mut self, db: usize, key: &[u8], waiter: &Arc<dyn Waiter>) {
        if let Some(queue) = self.waiting.get_mut(db, key) {
            queue.retain(|waiting| !Arc::ptr_eq(&waiting.waiter, waiter));
            if queue.is_empty() {
                self.waiting.remove(db, key);
            }
        }
    }

    fn at(&self, (db, key): &Place, number: usize) -> Option<(u64, Arc<dyn Waiter>)> {
        let waiting = self.waiting.get(*db, key)?.get(number)?;
        Some((waiting.connection, Arc::clone(&waiting.waiter)))
    }
}

impl View<'_> {
    /// From here on the connection waits for the key; once, however often it asks.
    pub(crate) fn wait(&mut self, key: KeyRef<'_>, connection: u64, waiter: Arc<dyn Waiter>) {
        let (db, followers) = (self.db, &mut self.shard(key).followers);
        followers.wait(|waiters| waiters.add(db, key, Waiting { connection, waiter }));
    }

    pub(crate) fn wait_no_longer(&mut self, key: KeyRef<'_>, waiter: &Arc<dyn Waiter>) {
        let (db, followers) = (self.db, &mut self.shard(key).followers);
        followers.wait(|waiters| waiters.remove(db, key.bytes(), waiter));
    }

    /// Serves those who wait for keys that have changed. Returns whom, and who needs more.
    #[cold]
    pub(super) fn serve(&mut self) -> Vec<News> {
        let (mut news, home) = (Vec::new(), self.db);
        while let Some(place) = self.next_stirred() {
            self.db = place.0;
            self.serve_at(&place, &mut news);
        }
        self.db = home;
        news
    }

    fn next_stirred(&mut self) -> Option<Place> {
        let shards = self.guards.iter_mut().map(|(_, shard)| &mut shard.followers);
        let first = shards.min_by_key(|followers| followers.first_stirred())?;
        first.wait(|waiters| waiters.stirred.pop_front()).map(|stirred| stirred.place)
    }

    fn serve_at(&mut self, place: &Place, news: &mut Vec<News>) {
        let key = self.engine.key(&place.1);
        let mut number = 0;
        while self.look(key).is_some() {
            let waiting = self.shard(key).followers.wait(|waiters| waiters.at(place, number));
            let Some((connection, waiter)) = waiting else { return };
            match waiter.serve(self, key) {
                Served::Done => {
                    self.wait_no_longer(key, &waiter);
                    news.push(News::Served(connection));
                }
                Served::Waits => number += 1,
                Served::Needs(other) => {
                    news.push(News::Stalled { db: place.0 as u8, keys: [place.1.clone(), other] });
                    return;
                }
            }
        }
    }
}

impl Engine {
    /// Serves one who needed another key as well.
    pub(crate) fn serve_stalled(
        &self,
        db: u8,
        [key, other]: &[Box<[u8]>; 2],
        now: Timestamp,
        patience: Patience,
    ) -> Result<(), Busy> {
        let keys = [self.key(key), self.key(other)];
        let (scope, db) = (Scope::Keys(&keys), usize::from(db));
        let serve = |view: &mut View<'_>| {
            view.shard(keys[0]).followers.wait(|waiters| waiters.changed(db, key));
        };
        match patience {
            Patience::None => self.attempt(scope, db, now, serve),
            Patience::UntilBusy => self.try_transact(scope, db, now, serve),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Value;

    const NOW: Timestamp = Timestamp::from_micros(1);

    /// Takes the whole key, or wants another one, too.
    #[derive(Debug)]
    struct Taker(Option<Box<[u8]>>);

    impl Waiter for Taker {
        fn serve(&self, view: &mut View<'_>, key: KeyRef<'_>) -> Served {
            if let Some(other) = &self.0
                && !view.holds(view.key(other))
            {
                return Served::Needs(other.clone());
            }
            view.remove(key);
            Served::Done
        }
    }

    fn wait(engine: &Engine, name: &[u8], connection: u64, taker: Taker) -> Arc<dyn Waiter> {
        let key = engine.key(name);
        let waiter: Arc<dyn Waiter> = Arc::new(taker);
        engine.transact(Scope::Keys(&[key]), 0, NOW, |view| {
            view.wait(key, connection, Arc::clone(&waiter));
        });
        waiter
    }

    fn wait_no_longer(engine: &Engine, name: &[u8], waiter: &Arc<dyn Waiter>) {
        let key = engine.key(name);
        engine.transact(Scope::Keys(&[key]), 0, NOW, |view| view.wait_no_longer(key, waiter));
    }

    fn put(engine: &Engine, name: &[u8]) {
        let key = engine.key(name);
        engine.transact(Scope::Keys(&[key]), 0, NOW, |view| {
            view.insert(key, Value::string(b"v"), Timestamp::MAX);
            assert!(view.look(key).is_some(), "nobody is served before the end");
        });
    }

    fn is_there(engine: &Engine, name: &[u8]) -> bool {
        let key = engine.key(name);
        engine.transact(Scope::Keys(&[key]), 0, NOW, |view| view.look(key).is_some())
    }

    #[test]
    fn change_serves_the_oldest_and_then_the_next() {
        let engine = Engine::new(4, 7);
        wait(&engine, b"k", 5, Taker(None));
        wait(&engine, b"k", 3, Taker(None));
        for expected in [5, 3] {
            put(&engine, b"k");
            assert_eq!(engine.take_news(), [News::Served(expected)]);
            assert!(!is_there(&engine, b"k"));
        }
        put(&engine, b"k");
        assert!(is_there(&engine, b"k") && !engine.has_news());
    }

    #[test]
    fn keys_of_one_transaction_are_served_in_the_order_of_its_changes() {
        let engine = Engine::new(8, 7);
        let names: Vec<[u8; 1]> = (b'a'..=b'p').map(|name| [name]).collect();
        for (connection, name) in (1..).zip(&names) {
            wait(&engine, name, connection, Taker(None));
        }
        engine.transact(Scope::All, 0, NOW, |view| {
            for name in &names {
                view.insert(engine.key(name), Value::string(b"v"), Timestamp::MAX);
            }
        });
        let served: Vec<News> = (1..=names.len() as u64).map(News::Served).collect();
        assert_eq!(engine.take_news(), served);
    }

    #[test]
    fn who_waits_no_longer_is_not_served() {
        let engine = Engine::new(4, 7);
        let waiter = wait(&engine, b"k", 5, Taker(None));
        wait_no_longer(&engine, b"k", &waiter);
        put(&engine, b"k");
        assert!(is_there(&engine, b"k") && !engine.has_news());
    }

    #[test]
    fn later_wait_of_a_connection_is_another_one() {
        let engine = Engine::new(4, 7);
        let earlier = wait(&engine, b"k", 5, Taker(None));
        wait(&engine, b"k", 5, Taker(None));
        wait_no_longer(&engine, b"k", &earlier);
        put(&engine, b"k");
        assert_eq!(engine.take_news(), [News::Served(5)]);
        assert!(!is_there(&engine, b"k"));
    }

    #[test]
    fn key_of_another_shard_is_waited_for_and_nobody_overtakes() {
        let engine = Engine::new(4, 7);
        let shard = |name: &[u8]| engine.shard_of(engine.key(name));
        let mut names = (0..1_000).map(|number| number.to_string().into_bytes());
        let other: Box<[u8]> = names.find(|name| shard(name) != shard(b"k")).expect("one").into();
        wait(&engine, b"k", 5, Taker(Some(other.clone())));
        wait(&engine, b"k", 3, Taker(None));
        put(&engine, b"k");
        let stalled = News::Stalled { db: 0, keys: [Box::from(&b"k"[..]), other.clone()] };
        assert_eq!(engine.take_news(), [stalled]);
        assert!(is_there(&engine, b"k"));
        let keys = [Box::from(&b"k"[..]), other];
        engine.serve_stalled(0, &keys, NOW, Patience::None).expect("nobody holds a shard");
        assert_eq!(engine.take_news(), [News::Served(5)]);
        assert!(!is_there(&engine, b"k"));
    }
}
