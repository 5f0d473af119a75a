//! Denials that still stand, remembered in front of the network.
//!
//! An entry is named by the bytes of the request, so another cost, quota or attribute is
//! another entry and two requests are never merged. It ends [`ROUNDED_UP`] before what the
//! server promised, counted from before the request was sent, and a share of 0.2 to 5 % sooner:
//! the spread keeps callers from returning together, and its least covers two clocks that run
//! differently. It is never believed for longer than `believed_max`.
//!
//! Invariants: only denials are remembered. An entry is dead once its *subject* (a key, or a
//! tenant) may have changed: each subject has a generation, which moves when this client gives
//! something back or resets, and when a newer policy revision is seen; a lost connection moves
//! all. What is asked before such a move and answered after it is not remembered.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use moka::Expiry;
use moka::sync::Cache;

use super::answer::{Answer, Left, Source};
use super::dice::Dice;
use super::options::MemoryOptions;
use crate::limit::Verdict;
use crate::time::{Duration, Timestamp};

/// Retries come rounded up to this.
const ROUNDED_UP: Duration = Duration::from_millis(1);

/// What ends sooner is not worth an entry.
const WORTH_MIN: Duration = Duration::from_millis(2);

/// Bytes that an entry takes beside its words.
const ENTRY_BYTES: u32 = 200;

/// Subjects share generations by hash; two that do only forget too much.
const GENERATIONS: usize = 1 << 12;

/// Tenants whose revision is known; with more, all is forgotten and learned again.
const REVISIONS_MAX: usize = 1 << 16;

/// What is remembered, for one server.
#[derive(Debug)]
pub(super) struct Memory {
    denials: Cache<Box<[u8]>, Arc<Denial>>,
    generations: Box<[AtomicU64]>,
    subjects: RandomState,
    revisions: Mutex<HashMap<Box<[u8]>, u64>>,
    refresh_after: Duration,
    believed_max: Duration,
    dice: Dice,
}

/// Taken before a request is sent: what its answer must be measured against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    subject: usize,
    generation: u64,
    sent_at: Timestamp,
}

#[derive(Debug)]
struct Denial {
    ticket: Ticket,
    until: Timestamp,
    retry_at: Timestamp,
    reset_at: Timestamp,
    quota: Option<Left>,
    refreshing: AtomicBool,
}

/// What was remembered of a request.
#[derive(Debug)]
pub(super) struct Recalled {
    pub(super) answer: Answer,
    /// Whether to ask the server again in the background; true for one caller only.
    pub(super) refresh: bool,
}

impl Memory {
    pub(super) fn new(options: &MemoryOptions) -> Self {
        let denials = Cache::<Box<[u8]>, Arc<Denial>>::builder()
            .max_capacity(options.bytes_max)
            .weigher(|request, _| {
                u32::try_from(request.len()).unwrap_or(u32::MAX).saturating_add(ENTRY_BYTES)
            })
            .expire_after(TillDeath)
            .build();
        Self {
            denials,
            generations: (0..GENERATIONS).map(|_| AtomicU64::new(0)).collect(),
            subjects: RandomState::new(),
            revisions: Mutex::default(),
            refresh_after: options.refresh_after,
            believed_max: options.believed_max,
            dice: Dice::new(),
        }
    }

    /// For a request about `subject` that is about to be sent.
    pub(super) fn ticket(&self, subject: &[u8], now: Timestamp) -> Ticket {
        let subject = self.subjects.hash_one(subject) as usize % GENERATIONS;
        Ticket { subject, generation: self.generation(subject), sent_at: now }
    }

    /// The denial of this request, if one still stands.
    pub(super) fn recall(&self, request: &[u8], now: Timestamp) -> Option<Recalled> {
        let denial = self.denials.get(request)?;
        // When moka lets an entry go is its own affair.
        let stands = now < denial.until && now >= denial.ticket.sent_at;
        if !stands || denial.ticket.generation != self.generation(denial.ticket.subject) {
            return None;
        }
        let is_old = now.since(denial.ticket.sent_at) >= self.refresh_after;
        let refresh = is_old && !denial.refreshing.swap(true, Ordering::Relaxed);
        let answer = Answer {
            verdict: Verdict::Deny { retry_after: Some(denial.retry_at.since(now)) },
            quota: denial.quota,
            reset_after: denial.reset_at.since(now),
            source: Source::Memory,
        };
        Some(Recalled { answer, refresh })
    }

    /// Takes in what the server answered: `stands` is how long its denial does.
    pub(super) fn learn(
        &self,
        request: Box<[u8]>,
        ticket: Ticket,
        answer: &Answer,
        stands: Option<Duration>,
    ) {
        let (Some(stands), Some(retry_after)) = (stands, answer.retry_after()) else {
            // It may replace a denial that was refreshed.
            if answer.is_allowed() {
                self.denials.invalidate(&request);
            }
            return;
        };
        if stands < WORTH_MIN || ticket.generation != self.generation(ticket.subject) {
            return;
        }
        let denial = Denial {
            ticket,
            until: ticket.sent_at + self.shortened(stands),
            retry_at: ticket.sent_at + retry_after,
            reset_at: ticket.sent_at + answer.reset_after,
            quota: answer.quota,
            refreshing: AtomicBool::new(false),
        };
        self.denials.insert(request, Arc::new(denial));
    }

    /// Takes in the revision that a tenant's policy has: another than before forgets it.
    pub(super) fn see(&self, tenant: &[u8], revision: u64) {
        let mut revisions = self.revisions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = revisions.get_mut(tenant) {
            if *known != revision {
                *known = revision;
                self.forget(tenant);
            }
            return;
        }
        if revisions.len() >= REVISIONS_MAX {
            revisions.clear();
            self.forget_all();
        }
        revisions.insert(tenant.into(), revision);
    }

    /// What was spent on `subject` may have become less.
    pub(super) fn forget(&self, subject: &[u8]) {
        let subject = self.subjects.hash_one(subject) as usize % GENERATIONS;
        self.generations[subject].fetch_add(1, Ordering::AcqRel);
    }

    /// The server may have started anew.
    pub(super) fn forget_all(&self) {
        for generation in &self.generations {
            generation.fetch_add(1, Ordering::AcqRel);
        }
        self.denials.invalidate_all();
    }

    /// About how many denials there are.
    pub(super) fn len(&self) -> u64 {
        self.denials.entry_count()
    }

    fn generation(&self, subject: usize) -> u64 {
        self.generations[subject].load(Ordering::Acquire)
    }

    /// Of what the server promised, what is surely true here.
    fn shortened(&self, stands: Duration) -> Duration {
        let exact_us = stands.as_micros() - ROUNDED_UP.as_micros().min(stands.as_micros());
        let (least, most) = (exact_us / 500, exact_us / 20);
        let cut = self.dice.between(Duration::from_micros(least), Duration::from_micros(most));
        Duration::from_micros(exact_us - cut.as_micros()).min(self.believed_max)
    }
}

/// Entries leave when they are dead. Both ways in count: moka would keep the end of the entry
/// that is replaced.
struct TillDeath;

impl TillDeath {
    fn life(denial: &Denial) -> Option<std::time::Duration> {
        Some(denial.until.since(denial.ticket.sent_at).as_std())
    }
}

impl Expiry<Box<[u8]>, Arc<Denial>> for TillDeath {
    fn expire_after_create(
        &self,
        _request: &Box<[u8]>,
        denial: &Arc<Denial>,
        _now: std::time::Instant,
    ) -> Option<std::time::Duration> {
        Self::life(denial)
    }

    fn expire_after_update(
        &self,
        _request: &Box<[u8]>,
        denial: &Arc<Denial>,
        _now: std::time::Instant,
        _left: Option<std::time::Duration>,
    ) -> Option<std::time::Duration> {
        Self::life(denial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const KEY: &[u8] = b"key";

    fn ms(span: u64) -> Duration {
        Duration::from_millis(span)
    }

    fn memory() -> Memory {
        let options = MemoryOptions {
            refresh_after: ms(500),
            believed_max: ms(1_000_000),
            bytes_max: 1 << 20,
        };
        Memory::new(&options)
    }

    fn denied(retry: Duration) -> Answer {
        Answer {
            verdict: Verdict::Deny { retry_after: Some(retry) },
            quota: Some(Left { limit: 1, remaining: 0 }),
            reset_after: retry,
            source: Source::Server,
        }
    }

    fn learned(memory: &Memory, retry: Duration) {
        let ticket = memory.ticket(KEY, START);
        memory.learn(b"request".as_slice().into(), ticket, &denied(retry), Some(retry));
    }

    fn recalled(memory: &Memory, after: Duration) -> Option<Answer> {
        memory.recall(b"request", START + after).map(|recalled| recalled.answer)
    }

    #[test]
    fn denial_stands_till_shortly_before_its_retry() {
        for _ in 0..100 {
            let memory = memory();
            learned(&memory, ms(10_001));
            let early = recalled(&memory, ms(9_499)).expect("5 % is the most that is cut");
            assert_eq!(early.retry_after(), Some(ms(502)));
            assert_eq!(early.source, Source::Memory);
            assert!(recalled(&memory, ms(9_981)).is_none(), "0.2 % is the least that is cut");
        }
    }

    #[test]
    fn short_denial_is_not_worth_an_entry() {
        for (retry, is_kept) in [(1, false), (2, true)] {
            let memory = memory();
            learned(&memory, ms(retry));
            assert_eq!(recalled(&memory, ms(0)).is_some(), is_kept, "{retry}");
        }
    }

    #[test]
    fn no_denial_is_believed_for_longer_than_told() {
        let options = MemoryOptions { believed_max: ms(50), ..MemoryOptions::default() };
        let memory = Memory::new(&options);
        learned(&memory, ms(60_000));
        assert!(recalled(&memory, ms(49)).is_some());
        assert!(recalled(&memory, ms(50)).is_none());
    }

    #[test]
    fn subject_that_changes_forgets_also_what_is_still_under_way() {
        let memory = memory();
        learned(&memory, ms(10_000));
        let under_way = memory.ticket(KEY, START);
        memory.forget(KEY);
        assert!(recalled(&memory, ms(1)).is_none());
        let request: Box<[u8]> = b"request".as_slice().into();
        memory.learn(request, under_way, &denied(ms(10_000)), Some(ms(10_000)));
        assert!(recalled(&memory, ms(1)).is_none());
        learned(&memory, ms(10_000));
        assert!(recalled(&memory, ms(1)).is_some());
        memory.forget_all();
        assert!(recalled(&memory, ms(1)).is_none());
    }

    #[test]
    fn another_revision_forgets_the_tenant() {
        let memory = memory();
        for (revision, is_kept) in [(7, true), (7, true), (8, false), (8, true), (3, false)] {
            learned(&memory, ms(10_000));
            memory.see(KEY, revision);
            assert_eq!(recalled(&memory, ms(1)).is_some(), is_kept, "{revision}");
        }
    }

    #[test]
    fn old_denial_asks_one_caller_to_refresh_it() {
        let memory = memory();
        learned(&memory, ms(10_000));
        let refresh =
            |after| memory.recall(b"request", START + after).map(|recalled| recalled.refresh);
        assert_eq!(refresh(ms(499)), Some(false));
        assert_eq!(refresh(ms(500)), Some(true));
        assert_eq!(refresh(ms(501)), Some(false));
        let ticket = memory.ticket(KEY, START + ms(500));
        let allowed = Answer { verdict: Verdict::Allow, ..denied(ms(1)) };
        memory.learn(b"request".as_slice().into(), ticket, &allowed, None);
        assert_eq!(refresh(ms(502)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let options = MemoryOptions { bytes_max: 10_000, ..MemoryOptions::default() };
        let memory = Memory::new(&options);
        for number in 0..1_000_u32 {
            let ticket = memory.ticket(KEY, START);
            let request = number.to_le_bytes().as_slice().into();
            memory.learn(request, ticket, &denied(ms(10_000)), Some(ms(10_000)));
        }
        memory.denials.run_pending_tasks();
        assert!(memory.len() <= 49, "{}", memory.len());
    }
}
