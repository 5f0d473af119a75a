//! Which decisions are told one by one, and how they get to the thread that writes them.
//!
//! A sample of them: of each outcome the share that the settings say, taken evenly and not by
//! chance, and of those at most so many in one second. What is taken goes through a channel of
//! fixed length to whoever writes; where that is full the decision is not told, and counted. No
//! request ever waits for the log, and where it is off, it costs a branch.
//!
//! A key passes here as it is, shortened; who writes tells its hash alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;

use super::options::DecisionLogOptions;
use crate::time::Timestamp;

/// Decisions on their way to the writer: more than it writes between two looks at the disk.
const QUEUE_MAX: usize = 8_192;

/// Bytes of one name in a line: longer ones are cut.
const NAME_BYTES_MAX: usize = 256;

/// What is told of one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided<'a> {
    pub(crate) tenant: &'a [u8],
    /// The rule that bound, by its name or its matcher; empty where none matched.
    pub(crate) rule: &'a [u8],
    /// The values that picked the bucket.
    pub(crate) key: &'a [u8],
    pub(crate) allowed: bool,
    /// Why, in one word of a known few.
    pub(crate) reason: &'static str,
    /// As they were answered: -1 for none.
    pub(crate) limit: i64,
    pub(crate) remaining: i64,
}

/// The same, for the one who writes.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) at: Timestamp,
    pub(crate) tenant: Box<[u8]>,
    pub(crate) rule: Box<[u8]>,
    pub(crate) key: Box<[u8]>,
    pub(crate) allowed: bool,
    pub(crate) reason: &'static str,
    pub(crate) limit: i64,
    pub(crate) remaining: i64,
}

/// What became of the decisions of the sample.
#[derive(Debug, Default)]
pub(crate) struct DecisionCounts {
    pub(crate) written: AtomicU64,
    /// The writer failed.
    pub(crate) unwritten: AtomicU64,
    /// There were more in one second than may be told.
    pub(crate) over_rate: AtomicU64,
    /// The writer was behind.
    pub(crate) queue_full: AtomicU64,
}

/// The log as those see it who decide.
#[derive(Debug, Default)]
pub(crate) struct DecisionLog {
    /// `None` where it is off.
    sampler: Option<Sampler>,
    counts: Arc<DecisionCounts>,
}

/// The other end: what is to be written, until the log is ended.
#[derive(Debug)]
pub(crate) struct NotedLines {
    queue: Receiver<Option<Noted>>,
    pub(crate) counts: Arc<DecisionCounts>,
}

#[derive(Debug)]
struct Sampler {
    allowed: Share,
    denied: Share,
    per_second_max: u64,
    /// The second of the latest line, and how many it had.
    second: Mutex<(u64, u64)>,
    /// `None` ends the log.
    queue: SyncSender<Option<Noted>>,
}

/// An even share of what comes: 1 in 4 is every fourth.
#[derive(Debug)]
struct Share {
    /// Of 2^32.
    step: u64,
    sum: AtomicU64,
}

impl DecisionLog {
    /// Both ends of a log that is on; else one that does nothing.
    pub(crate) fn new(options: &DecisionLogOptions) -> (Self, Option<NotedLines>) {
        if !options.enabled {
            return (Self::default(), None);
        }
        let (sender, queue) = sync_channel(QUEUE_MAX);
        let counts = Arc::new(DecisionCounts::default());
        let sampler = Sampler {
            allowed: Share::new(options.sample_allowed.number()),
            denied: Share::new(options.sample_denied.number()),
            per_second_max: options.per_second_max,
            second: Mutex::default(),
            queue: sender,
        };
        let lines = NotedLines { queue, counts: Arc::clone(&counts) };
        (Self { sampler: Some(sampler), counts }, Some(lines))
    }

    /// Whether anything is told at all.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.sampler.is_some()
    }

    /// Tells a decision, if it is of the sample.
    #[inline]
    pub(crate) fn note(&self, decided: &Decided<'_>, now: Timestamp) {
        if let Some(sampler) = &self.sampler {
            sampler.note(decided, now, &self.counts);
        }
    }

    /// What was noted before is still written; what comes later is not.
    pub(crate) fn end(&self) {
        if let Some(sampler) = &self.sampler {
            // An error means that the writer has gone already.
            drop(sampler.queue.send(None));
        }
    }

    pub(crate) fn counts(&self) -> &DecisionCounts {
        &self.counts
    }
}

impl NotedLines {
    /// Waits for the next; `None` once the log has ended.
    pub(crate) fn next(&self) -> Option<Noted> {
        self.queue.recv().ok().flatten()
    }

    /// The next if it is there already.
    pub(crate) fn next_now(&self) -> Next {
        match self.queue.try_recv() {
            Ok(Some(noted)) => Next::Line(noted),
            Ok(None) => Next::End,
            // A log that has gone without an end is found by who waits for its next.
            Err(_) => Next::NotYet,
        }
    }
}

/// What stands next in the queue.
#[derive(Debug)]
pub(crate) enum Next {
    Line(Noted),
    NotYet,
    End,
}

impl Sampler {
    fn note(&self, decided: &Decided<'_>, now: Timestamp, counts: &DecisionCounts) {
        let share = if decided.allowed { &self.allowed } else { &self.denied };
        if !share.takes_next() {
            return;
        }
        if !self.is_within_rate(now) {
            counts.over_rate.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match self.queue.try_send(Some(Noted::of(decided, now))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                counts.queue_full.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn is_within_rate(&self, now: Timestamp) -> bool {
        let second = now.as_millis() / 1_000;
        let mut latest = self.second.lock();
        // Another thread's batch may have begun a little earlier: it counts in the later second.
        if second > latest.0 {
            *latest = (second, 0);
        }
        latest.1 += 1;
        latest.1 <= self.per_second_max
    }
}

impl Share {
    fn new(ratio: f64) -> Self {
        Self { step: (ratio * 2_f64.powi(32)) as u64, sum: AtomicU64::default() }
    }

    fn takes_next(&self) -> bool {
        if self.step == 0 {
            return false;
        }
        let before = self.sum.fetch_add(self.step, Ordering::Relaxed);
        before.wrapping_add(self.step) >> 32 != before >> 32
    }
}

impl Noted {
    fn of(decided: &Decided<'_>, at: Timestamp) -> Self {
        let Decided { tenant, rule, key, allowed, reason, limit, remaining } = *decided;
        let cut = |name: &[u8]| name[..name.len().min(NAME_BYTES_MAX)].into();
        let (tenant, rule, key) = (cut(tenant), cut(rule), cut(key));
        Self { at, tenant, rule, key, allowed, reason, limit, remaining }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(5_000);

    fn log(allowed: f64, denied: f64, per_second_max: u64) -> (DecisionLog, NotedLines) {
        let options = DecisionLogOptions {
            enabled: true,
            sample_allowed: allowed.try_into().expect("a ratio"),
            sample_denied: denied.try_into().expect("a ratio"),
            per_second_max,
            ..DecisionLogOptions::off()
        };
        let (log, lines) = DecisionLog::new(&options);
        (log, lines.expect("it is on"))
    }

    fn decided(allowed: bool) -> Decided<'static> {
        let (tenant, rule, key) = (&b"acme"[..], &b"login"[..], &b"u42"[..]);
        Decided { tenant, rule, key, allowed, reason: "limit", limit: 10, remaining: 0 }
    }

    fn count(lines: &NotedLines) -> usize {
        std::iter::from_fn(|| match lines.next_now() {
            Next::Line(noted) => Some(noted),
            Next::NotYet | Next::End => None,
        })
        .count()
    }

    #[test]
    fn each_outcome_has_its_own_even_share() {
        let (log, lines) = log(0.25, 1.0, u64::MAX);
        for _ in 0..1_000 {
            log.note(&decided(true), NOW);
        }
        assert_eq!(count(&lines), 250);
        for _ in 0..1_000 {
            log.note(&decided(false), NOW);
        }
        assert_eq!(count(&lines), 1_000);
    }

    #[test]
    fn no_second_has_more_lines_than_it_may() {
        let (log, lines) = log(1.0, 0.0, 3);
        for millis in [5_000, 5_100, 5_200, 5_999, 6_000, 5_999, 6_500, 6_600] {
            log.note(&decided(true), Timestamp::from_millis(millis));
        }
        log.note(&decided(false), NOW);
        assert_eq!(count(&lines), 6);
        assert_eq!(log.counts().over_rate.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn full_queue_is_counted_and_nobody_waits() {
        let (log, lines) = log(1.0, 1.0, u64::MAX);
        for _ in 0..QUEUE_MAX + 5 {
            log.note(&decided(true), NOW);
        }
        assert_eq!(log.counts().queue_full.load(Ordering::Relaxed), 5);
        assert_eq!(count(&lines), QUEUE_MAX);
    }

    #[test]
    fn what_was_noted_before_the_end_comes_before_it() {
        let (log, lines) = log(1.0, 1.0, u64::MAX);
        log.note(&Decided { key: &[b'k'; 1_000], ..decided(false) }, NOW);
        log.end();
        let noted = lines.next().expect("noted before");
        assert_eq!((noted.at, noted.key.len(), noted.allowed), (NOW, NAME_BYTES_MAX, false));
        assert!(lines.next().is_none());
    }

    #[test]
    fn log_that_is_off_has_no_lines() {
        let (log, lines) = DecisionLog::new(&DecisionLogOptions::off());
        log.note(&decided(true), NOW);
        log.end();
        assert!(lines.is_none());
    }
}
