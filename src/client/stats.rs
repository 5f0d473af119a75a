//! What the client has done so far, in numbers; every count only grows.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Error;

/// What a [`Client`](super::Client) has done since it was started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Requests sent, those in the background included.
    pub asked: u64,
    /// Writes that carried them: how many to a pipeline is `asked / writes`.
    pub writes: u64,
    /// Decisions answered by a remembered denial, with no request.
    pub recalled: u64,
    /// Requests in the background that asked whether a remembered denial still stands.
    pub refreshed: u64,
    /// Decisions made without the server.
    pub without_server: u64,
    /// Calls that ran into their deadline.
    pub late: u64,
    /// Calls that were not taken because too many waited.
    pub queue_full: u64,
    /// Leases and reservations that could not be given back, and end by themselves.
    pub unreturned: u64,
    /// Connections that stood.
    pub connections: u64,
    /// About how many denials are remembered now.
    pub remembered: u64,
}

impl Stats {
    /// The share of decisions that needed no request, from 0 to 1.
    pub fn recalled_ratio(&self) -> f64 {
        let all = self.recalled + self.asked.saturating_sub(self.refreshed);
        if all == 0 { 0.0 } else { self.recalled as f64 / all as f64 }
    }
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    asked: AtomicU64,
    writes: AtomicU64,
    recalled: AtomicU64,
    refreshed: AtomicU64,
    without_server: AtomicU64,
    late: AtomicU64,
    queue_full: AtomicU64,
    unreturned: AtomicU64,
    connections: AtomicU64,
}

impl Counters {
    pub(super) fn asked(&self) {
        one_more(&self.asked);
    }

    pub(super) fn written(&self) {
        one_more(&self.writes);
    }

    pub(super) fn recalled(&self) {
        one_more(&self.recalled);
    }

    pub(super) fn refreshed(&self) {
        one_more(&self.refreshed);
    }

    pub(super) fn without_server(&self) {
        one_more(&self.without_server);
    }

    pub(super) fn unreturned(&self) {
        one_more(&self.unreturned);
    }

    pub(super) fn connected(&self) {
        one_more(&self.connections);
    }

    pub(super) fn failed(&self, error: &Error) {
        match error {
            Error::Late => one_more(&self.late),
            Error::QueueFull => one_more(&self.queue_full),
            Error::Closed
            | Error::NotConnected(_)
            | Error::Lost(_)
            | Error::Unable(_)
            | Error::Refused(_)
            | Error::Unexpected => {}
        }
    }

    pub(super) fn read(&self, remembered: u64) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            asked: read(&self.asked),
            writes: read(&self.writes),
            recalled: read(&self.recalled),
            refreshed: read(&self.refreshed),
            without_server: read(&self.without_server),
            late: read(&self.late),
            queue_full: read(&self.queue_full),
            unreturned: read(&self.unreturned),
            connections: read(&self.connections),
            remembered,
        }
    }
}

fn one_more(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_counts_decisions_and_no_refreshes() {
        assert!(Stats::default().recalled_ratio().abs() < f64::EPSILON);
        let stats = Stats { asked: 15, refreshed: 5, recalled: 30, ..Stats::default() };
        assert!((stats.recalled_ratio() - 0.75).abs() < f64::EPSILON);
    }
}
