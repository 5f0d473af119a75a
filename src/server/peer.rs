//! What others may know of a connection: CLIENT LIST reads it, CLIENT KILL ends it.
//!
//! Written by the connection once a turn; read by anyone at any time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

use super::mailbox::Mailbox;
use crate::commands::{Peer, Session};
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct PeerState {
    pub(super) address: SocketAddr,
    local: SocketAddr,
    fd: AtomicI32,
    since: Timestamp,
    /// In microseconds since the epoch.
    active_us: AtomicU64,
    session: Mutex<Session>,
    last_command: AtomicUsize,
    torn_bytes: AtomicUsize,
    unsent_bytes: AtomicUsize,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    killed: AtomicBool,
    waker: Mutex<Option<Waker>>,
    pub(super) mailbox: Mailbox,
}

impl PeerState {
    pub(super) fn new(
        (address, local): (SocketAddr, SocketAddr),
        fd: i32,
        session: Session,
        now: Timestamp,
    ) -> Self {
        Self {
            address,
            local,
            fd: fd.into(),
            since: now,
            active_us: now.as_micros().into(),
            last_command: usize::from(session.last_command).into(),
            session: Mutex::new(session),
            torn_bytes: AtomicUsize::default(),
            unsent_bytes: AtomicUsize::default(),
            received_bytes: AtomicU64::default(),
            sent_bytes: AtomicU64::default(),
            killed: AtomicBool::default(),
            waker: Mutex::default(),
            mailbox: Mailbox::default(),
        }
    }

    /// It goes on by another descriptor.
    pub(super) fn set_fd(&self, fd: i32) {
        self.fd.store(fd, Ordering::Relaxed);
    }

    pub(super) fn active(&self, now: Timestamp) {
        self.active_us.store(now.as_micros(), Ordering::Relaxed);
    }

    pub(super) fn last_active(&self) -> Timestamp {
        Timestamp::from_micros(self.active_us.load(Ordering::Relaxed))
    }

    /// After a turn: publishes what CLIENT LIST shows.
    pub(super) fn answered(&self, session: &mut Session) {
        self.last_command.store(usize::from(session.last_command), Ordering::Relaxed);
        if std::mem::take(&mut session.changed) {
            *self.session.lock() = session.clone();
        }
    }

    pub(super) fn received(&self, bytes: usize) {
        add(&self.received_bytes, bytes as u64);
    }

    pub(super) fn sent(&self, bytes: usize) {
        add(&self.sent_bytes, bytes as u64);
    }

    /// Bytes received and sent since the connection began.
    pub(super) fn traffic(&self) -> (u64, u64) {
        (self.received_bytes.load(Ordering::Relaxed), self.sent_bytes.load(Ordering::Relaxed))
    }

    pub(super) fn set_torn(&self, bytes: usize) {
        self.torn_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_unsent(&self, bytes: usize) {
        self.unsent_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of a torn request, and of replies not yet taken.
    pub(super) fn held(&self) -> (usize, usize) {
        (self.torn_bytes.load(Ordering::Relaxed), self.unsent_bytes.load(Ordering::Relaxed))
    }

    pub(super) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    pub(super) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// A connection's task keeps one waker for life: it is stored once.
    pub(super) fn wake_with(&self, waker: &Waker) {
        let mut stored = self.waker.lock();
        if !stored.as_ref().is_some_and(|stored| stored.will_wake(waker)) {
            *stored = Some(waker.clone());
        }
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
    }

    /// Silence is what it has asked for: it waits for what others do.
    pub(super) fn is_listener(&self) -> bool {
        let session = self.session.lock();
        session.listens() || session.wait().is_some()
    }

    pub(super) fn show(&self, now: Timestamp) -> Peer {
        let mut session = self.session.lock().clone();
        session.last_command = self.last_command.load(Ordering::Relaxed) as u16;
        let (input_bytes, output_bytes) = self.held();
        Peer {
            session,
            address: self.address.to_string(),
            local_address: self.local.to_string(),
            fd: self.fd.load(Ordering::Relaxed),
            age_s: now.since(self.since).as_millis() / 1_000,
            idle_s: now.since(self.last_active()).as_millis() / 1_000,
            input_bytes,
            output_bytes,
        }
    }
}

/// Only the connection writes its counters.
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}
