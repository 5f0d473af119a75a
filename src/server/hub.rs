//! The server as its connections and commands see it: the registry of connections, what is
//! counted of them, and the way to stop.
//!
//! Implements `commands::Host`, the door through which commands reach the outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use dashmap::DashMap;
use tokio::sync::Notify;
use tracing::warn;

use super::peer::PeerState;
use super::process::{self, Process};
use crate::commands::{Facts, Host, Peer, Service};
use crate::time::Clock;

/// Facts that are settled when the server starts.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Forty hex digits, new with each start.
    pub(crate) run_id: String,
    pub(crate) config_file: String,
    pub(crate) tcp_port: u16,
    pub(crate) http_port: Option<u16>,
    pub(crate) workers: usize,
    /// The effective settings, flattened: path and value.
    pub(crate) settings: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Hub {
    service: Arc<Service>,
    clock: Clock,
    identity: Identity,
    peers: DashMap<u64, Arc<PeerState>, foldhash::fast::RandomState>,
    next_id: AtomicU64,
    received: AtomicU64,
    rejected: AtomicU64,
    protocol_errors: AtomicU64,
    unread: AtomicU64,
    idle_closed: AtomicU64,
    /// Traffic of connections that have ended.
    past_input_bytes: AtomicU64,
    past_output_bytes: AtomicU64,
    clock_gap_us: AtomicI64,
    draining: AtomicBool,
    stop: Notify,
}

/// What is counted of connections, for the metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionCounts {
    pub(crate) connected: usize,
    pub(crate) received: u64,
    pub(crate) rejected: u64,
    pub(crate) protocol_errors: u64,
    pub(crate) unread: u64,
    pub(crate) idle_closed: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
}

impl Hub {
    pub(crate) fn new(service: Arc<Service>, clock: Clock, identity: Identity) -> Self {
        Self {
            service,
            clock,
            identity,
            peers: DashMap::default(),
            next_id: AtomicU64::new(1),
            received: AtomicU64::default(),
            rejected: AtomicU64::default(),
            protocol_errors: AtomicU64::default(),
            unread: AtomicU64::default(),
            idle_closed: AtomicU64::default(),
            past_input_bytes: AtomicU64::default(),
            past_output_bytes: AtomicU64::default(),
            clock_gap_us: AtomicI64::default(),
            draining: AtomicBool::default(),
            stop: Notify::new(),
        }
    }

    pub(crate) fn service(&self) -> &Arc<Service> {
        &self.service
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn output_bytes_max(&self) -> usize {
        self.service.runtime().output_bytes_max()
    }

    pub(super) fn next_id(&self) -> u64 {
        self.received.fetch_add(1, Ordering::Relaxed);
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn has_room(&self) -> bool {
        self.peers.len() < self.service.runtime().connections_max()
    }

    pub(super) fn admit(&self, id: u64, peer: Arc<PeerState>) {
        self.peers.insert(id, peer);
    }

    pub(super) fn forget(&self, id: u64) {
        if let Some((_, peer)) = self.peers.remove(&id) {
            let (input, output) = peer.traffic();
            self.past_input_bytes.fetch_add(input, Ordering::Relaxed);
            self.past_output_bytes.fetch_add(output, Ordering::Relaxed);
        }
    }

    pub(super) fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_protocol_error(&self) {
        self.protocol_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_unread(&self, connection: u64, unsent_bytes: usize) {
        self.unread.fetch_add(1, Ordering::Relaxed);
        warn!(connection, unsent_bytes, "closed a connection that does not read its replies");
    }

    /// Ends the connections that have been silent for longer than the idle time.
    pub(super) fn close_idle(&self) {
        let Some(timeout) = self.service.runtime().idle_timeout() else { return };
        let now = self.clock.now();
        for peer in &self.peers {
            if now.since(peer.last_active()) >= timeout && !peer.is_killed() {
                peer.kill();
                self.idle_closed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// From here on no request is read that is not begun already; wakes everyone who waits.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        for peer in &self.peers {
            peer.wake();
        }
    }

    /// Ends what is left of the connections.
    pub(super) fn kill_all(&self) -> usize {
        self.peers.iter().map(|peer| peer.kill()).count()
    }

    pub(super) fn connected(&self) -> usize {
        self.peers.len()
    }

    /// How far the wall clock was ahead of ours when last compared.
    pub(crate) fn clock_gap_us(&self) -> i64 {
        self.clock_gap_us.load(Ordering::Relaxed)
    }

    pub(super) fn note_clock_gap(&self, gap_us: i64) {
        self.clock_gap_us.store(gap_us, Ordering::Relaxed);
    }

    /// Resolves once somebody has asked the server to stop.
    pub(super) async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Asks the server to stop.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }

    pub(crate) fn counts(&self) -> ConnectionCounts {
        let mut counts = ConnectionCounts {
            connected: self.peers.len(),
            received: self.received.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            protocol_errors: self.protocol_errors.load(Ordering::Relaxed),
            unread: self.unread.load(Ordering::Relaxed),
            idle_closed: self.idle_closed.load(Ordering::Relaxed),
            input_bytes: self.past_input_bytes.load(Ordering::Relaxed),
            output_bytes: self.past_output_bytes.load(Ordering::Relaxed),
        };
        for peer in &self.peers {
            let (input, output) = peer.traffic();
            counts.input_bytes += input;
            counts.output_bytes += output;
        }
        counts
    }
}

impl Host for Hub {
    fn facts(&self) -> Facts {
        let counts = self.counts();
        let Process { resident_bytes, resident_peak_bytes, cpu_user_s, cpu_system_s } =
            process::read();
        Facts {
            process_id: std::process::id(),
            run_id: self.identity.run_id.clone(),
            tcp_port: self.identity.tcp_port,
            http_port: self.identity.http_port,
            os: process::os(),
            executable: process::executable(),
            config_file: self.identity.config_file.clone(),
            workers: self.identity.workers,
            connected: counts.connected,
            connections_received: counts.received,
            connections_rejected: counts.rejected,
            input_bytes: counts.input_bytes,
            output_bytes: counts.output_bytes,
            resident_bytes,
            resident_peak_bytes,
            machine_bytes: process::memory_limit_bytes(),
            cpu_user_s,
            cpu_system_s,
        }
    }

    fn peers(&self) -> Vec<Peer> {
        let now = self.clock.now();
        let mut peers: Vec<Peer> = self.peers.iter().map(|peer| peer.show(now)).collect();
        peers.sort_unstable_by_key(|peer| peer.session.id);
        peers
    }

    fn peer_address(&self, id: u64) -> String {
        self.peers.get(&id).map(|peer| peer.address.to_string()).unwrap_or_default()
    }

    fn kill(&self, id: u64) -> bool {
        self.peers.get(&id).map(|peer| peer.kill()).is_some()
    }

    fn shutdown(&self) {
        self.stop();
    }

    fn setting(&self, path: &str) -> Option<String> {
        let settings = &self.identity.settings;
        settings.iter().find(|(known, _)| known == path).map(|(_, value)| value.clone())
    }
}
