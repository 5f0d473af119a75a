//! Where admitted requests wait: by priority, for a bounded time, in bounded number.
//!
//! The most important waiting request goes first; of one priority the oldest, or the newest
//! while the queue has not been empty for 100 ms (adaptive LIFO). Who has waited too long is
//! handed out as expired, so that it can be told, and no work is done for somebody who has
//! given up. When the queue is full, a newcomer takes the place of the least important one that
//! waits, if that is less important than itself.
//!
//! The other discipline is the older one: priority does not count, and controlled delay decides.
//!
//! Invariant: `waiting` bits and lists tell the same; never more than `most` wait.

use std::collections::VecDeque;

use crate::time::{Duration, Timestamp};

use super::codel::{Order, Patience};
use super::tier::{PRIORITIES, Priority};

/// More would wait longer than anybody waits.
pub const WAITING_MAX: usize = 1 << 20;

const WORDS: usize = PRIORITIES.div_ceil(64);

/// Who goes next, and how long one may wait.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Discipline {
    /// The most important first, each for as long as the queue's timeout.
    #[default]
    Priority,
    /// Controlled delay with adaptive LIFO: see [`Patience`].
    Codel,
    /// The oldest first, each for as long as the queue's timeout.
    Fifo,
}

/// A bounded queue of requests that were admitted.
#[derive(Debug)]
pub struct Queue<T> {
    discipline: Discipline,
    most: usize,
    timeout: Duration,
    patience: Patience,
    /// By priority; a single list where priority does not count.
    lists: Vec<VecDeque<Waiting<T>>>,
    /// A bit for each list that is not empty.
    busy: [u64; WORDS],
    waiting: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    since: Timestamp,
}

/// What leaves a queue.
#[derive(Debug, Eq, PartialEq)]
pub enum Popped<T> {
    /// To be served now; it has waited this long.
    Ready(T, Duration),
    /// It has waited too long: tell it, and do nothing for it.
    Expired(T),
}

/// A queue that had no room; who has to go.
#[derive(Debug, Eq, PartialEq)]
pub enum Full<T> {
    /// The newcomer itself.
    Newcomer(T),
    /// One that waited, and was less important.
    Displaced(T),
}

impl<T> Queue<T> {
    /// For at most `most` requests, at least 1 and at most [`WAITING_MAX`].
    pub fn new(discipline: Discipline, most: usize, timeout: Duration, now: Timestamp) -> Self {
        let lists = match discipline {
            Discipline::Priority => PRIORITIES,
            Discipline::Codel | Discipline::Fifo => 1,
        };
        Self {
            discipline,
            most: most.clamp(1, WAITING_MAX),
            timeout,
            patience: Patience::new(now),
            lists: (0..lists).map(|_| VecDeque::new()).collect(),
            busy: [0; WORDS],
            waiting: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.waiting
    }

    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The longest wait from now on: the 90th percentile of service, say.
    pub fn change_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Lets a request wait; tells who had to go if there was no room.
    pub fn push(&mut self, item: T, priority: Priority, now: Timestamp) -> Result<(), Full<T>> {
        if self.is_empty() {
            self.patience.note_empty(now);
        }
        let list = usize::from(priority.number()) % self.lists.len();
        let mut displaced = Ok(());
        if self.waiting == self.most {
            match self.displace(list) {
                Some(lesser) => displaced = Err(Full::Displaced(lesser)),
                None => return Err(Full::Newcomer(item)),
            }
        }
        self.lists[list].push_back(Waiting { item, since: now });
        self.busy[list / 64] |= 1 << (list % 64);
        self.waiting += 1;
        displaced
    }

    /// The next to leave the queue.
    pub fn pop(&mut self, now: Timestamp) -> Option<Popped<T>> {
        let Some(list) = self.first_busy() else {
            self.patience.note_empty(now);
            return None;
        };
        let (timeout, order) = match self.discipline {
            Discipline::Priority => (self.timeout, self.patience.order(now)),
            Discipline::Codel => (self.patience.timeout(now), self.patience.order(now)),
            Discipline::Fifo => (self.timeout, Order::OldestFirst),
        };
        let has_expired = |waiting: &Waiting<T>| now.since(waiting.since) > timeout;
        // The oldest of the list are seen first in any case: who has given up makes room.
        let oldest_expired = self.lists[list].front().is_some_and(has_expired);
        let order = if oldest_expired { Order::OldestFirst } else { order };
        let waiting = self.take(list, order)?;
        let waited = now.since(waiting.since);
        Some(if oldest_expired {
            Popped::Expired(waiting.item)
        } else {
            Popped::Ready(waiting.item, waited)
        })
    }

    /// Hands out one that has waited too long, whatever its priority: to be asked until none is
    /// left, every few milliseconds, so that the less important learn of it as well.
    pub fn pop_expired(&mut self, now: Timestamp) -> Option<T> {
        let timeout = match self.discipline {
            Discipline::Codel => self.patience.timeout(now),
            Discipline::Priority | Discipline::Fifo => self.timeout,
        };
        let expired = |list: &VecDeque<Waiting<T>>| {
            list.front().is_some_and(|waiting| now.since(waiting.since) > timeout)
        };
        let list = self.busy_lists().find(|list| expired(&self.lists[*list]))?;
        self.take(list, Order::OldestFirst).map(|waiting| waiting.item)
    }

    /// The newest of the least important, if it is less important than `than`.
    fn displace(&mut self, than: usize) -> Option<T> {
        let least = (0..WORDS)
            .rev()
            .find(|word| self.busy[*word] != 0)
            .map(|word| word * 64 + 63 - self.busy[word].leading_zeros() as usize)?;
        if least <= than {
            return None;
        }
        self.take(least, Order::NewestFirst).map(|waiting| waiting.item)
    }

    fn first_busy(&self) -> Option<usize> {
        self.busy_lists().next()
    }

    fn busy_lists(&self) -> impl Iterator<Item = usize> {
        self.busy.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }

    fn take(&mut self, list: usize, order: Order) -> Option<Waiting<T>> {
        let waiting = match order {
            Order::OldestFirst => self.lists[list].pop_front(),
            Order::NewestFirst => self.lists[list].pop_back(),
        }?;
        if self.lists[list].is_empty() {
            self.busy[list / 64] &= !(1 << (list % 64));
        }
        self.waiting -= 1;
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tier::{Cohort, Tier};
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(tier: Tier, cohort: u64) -> Priority {
        Priority::new(tier, Cohort::of(cohort))
    }

    fn queue(discipline: Discipline, most: usize) -> Queue<u32> {
        Queue::new(discipline, most, ms(100), START)
    }

    #[test]
    fn most_important_goes_first_and_of_one_priority_the_oldest() {
        let mut queue = queue(Discipline::Priority, 10);
        let rows = [(1, at(Tier::T5, 127)), (2, at(Tier::T1, 64)), (3, at(Tier::T1, 63))];
        for (item, priority) in rows.into_iter().chain([(4, at(Tier::T1, 63))]) {
            queue.push(item, priority, START).expect("there is room");
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(START)).collect();
        assert_eq!(order, [3, 4, 2, 1].map(|item| Popped::Ready(item, Duration::ZERO)));
        assert!(queue.is_empty());
    }

    #[test]
    fn newest_goes_first_while_the_queue_stands() {
        for discipline in [Discipline::Priority, Discipline::Codel] {
            let mut queue = Queue::new(discipline, 10, ms(1_000), START);
            queue.push(0, at(Tier::T2, 0), START).expect("there is room");
            let now = START + ms(150);
            queue.push(1, at(Tier::T2, 0), now).expect("there is room");
            queue.push(2, at(Tier::T2, 0), now).expect("there is room");
            if discipline == Discipline::Codel {
                assert_eq!(queue.pop(now), Some(Popped::Expired(0)));
            }
            assert_eq!(queue.pop(now), Some(Popped::Ready(2, Duration::ZERO)));
        }
        let mut fifo = queue(Discipline::Fifo, 10);
        fifo.push(1, at(Tier::T5, 0), START).expect("there is room");
        fifo.push(2, at(Tier::T0, 0), START + ms(90)).expect("there is room");
        assert_eq!(fifo.pop(START + ms(99)), Some(Popped::Ready(1, ms(99))));
    }

    #[test]
    fn who_has_waited_too_long_is_told_and_not_served() {
        let mut queue = queue(Discipline::Priority, 10);
        queue.push(1, at(Tier::T0, 0), START).expect("there is room");
        queue.push(2, at(Tier::T4, 0), START).expect("there is room");
        queue.push(3, at(Tier::T0, 0), START + ms(50)).expect("there is room");
        assert_eq!(queue.pop_expired(START + ms(100)), None);
        let late = START + ms(101);
        assert_eq!(queue.pop(late), Some(Popped::Expired(1)));
        assert_eq!(queue.pop_expired(late), Some(2));
        assert_eq!(queue.pop_expired(late), None);
        assert_eq!(queue.pop(late), Some(Popped::Ready(3, ms(51))));
        queue.push(4, at(Tier::T0, 0), late).expect("there is room");
        queue.change_timeout(ms(5));
        assert_eq!(queue.pop(late + ms(6)), Some(Popped::Expired(4)));
    }

    #[test]
    fn full_queue_gives_the_place_of_the_least_important() {
        let mut queue = queue(Discipline::Priority, 3);
        for (item, tier) in [(1, Tier::T3), (2, Tier::T5), (3, Tier::T5)] {
            queue.push(item, at(tier, 0), START).expect("there is room");
        }
        assert_eq!(queue.push(4, at(Tier::T5, 0), START), Err(Full::Newcomer(4)));
        assert_eq!(queue.push(5, at(Tier::T5, 1), START), Err(Full::Newcomer(5)));
        assert_eq!(queue.push(6, at(Tier::T0, 0), START), Err(Full::Displaced(3)));
        assert_eq!(queue.push(7, at(Tier::T4, 0), START), Err(Full::Displaced(2)));
        assert_eq!(queue.push(8, at(Tier::T4, 1), START), Err(Full::Newcomer(8)));
        assert_eq!(queue.len(), 3);
    }

    #[test]
    fn lists_and_bits_tell_the_same_under_a_random_load() {
        let mut queue = Queue::new(Discipline::Priority, 50, ms(30), START);
        let mut seed = 7_u64;
        let (mut put, mut got) = (0, 0);
        for step in 0..20_000_u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let now = START + ms(step / 4);
            if seed >> 63 == 0 {
                let priority = at(Tier::ALL[(seed >> 40) as usize % 6], seed >> 20);
                put += 1;
                got += u32::from(queue.push(put, priority, now).is_err());
            } else {
                got += u32::from(queue.pop(now).is_some());
            }
            let waiting: usize = queue.lists.iter().map(VecDeque::len).sum();
            assert_eq!(
                (queue.len(), queue.busy_lists().count()),
                (waiting, queue.lists.iter().filter(|list| !list.is_empty()).count())
            );
            assert!(waiting <= 50 && put as usize == got as usize + waiting);
        }
    }
}
