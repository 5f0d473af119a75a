//! The server as its connections and commands see it: the registry of connections, what is
//! counted of them, and the way to stop.
//!
//! Implements `commands::Host`, the door through which commands reach the outside.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{debug, info, warn};

use super::mailbox::Full;
use super::meanwhile;
use super::peer::PeerState;
use super::rates::{LineRate, RateMeter};
use crate::commands::{
    Crowd, Facts, Host, LastSave, Peer, PolicyAnswer, PolicyOrder, PolicyRefusal, Push, Rates,
    SaveAnswer, SaveOrder, SaveRefusal, Service, StoreFacts,
};
use crate::lua::LogLevel;
use crate::machine::{self, Machine, Process};
use crate::store::{Saver, Turn};
use crate::telemetry::Events;
use crate::time::{Clock, Duration};
use crate::watch::Writer;

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
    pushes_unread: AtomicU64,
    /// Of connections that have ended. Held while one ends and while all are summed, so that no
    /// connection is missing from the sum, and none is in it twice.
    past: Mutex<Traffic>,
    clock_gap_us: AtomicI64,
    readiness: AtomicU8,
    meter: RateMeter,
    script_lines: LineRate,
    events: Events,
    /// Where policies are written to; empty where they come from nowhere.
    policy_writer: OnceLock<Writer>,
    /// By whom snapshots are made; empty where nothing outlives the process.
    saver: OnceLock<Saver>,
    draining: AtomicBool,
    stop: Notify,
    hurry: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) input_bytes: u64,
    pub(super) output_bytes: u64,
}

/// Whether new clients should be sent here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Readiness {
    /// Not listening yet.
    Starting,
    Ready,
    /// Asked to stop: what was begun is finished, nothing new is taken.
    Draining,
}

impl Hub {
    pub(crate) fn new(
        service: Arc<Service>,
        clock: Clock,
        identity: Identity,
        events: Events,
    ) -> Self {
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
            pushes_unread: AtomicU64::default(),
            past: Mutex::default(),
            clock_gap_us: AtomicI64::default(),
            readiness: AtomicU8::new(Readiness::Starting as u8),
            meter: RateMeter::default(),
            script_lines: LineRate::default(),
            events,
            policy_writer: OnceLock::new(),
            saver: OnceLock::new(),
            draining: AtomicBool::default(),
            stop: Notify::new(),
            hurry: Notify::new(),
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

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Policies are written by this from here on. Said once, before anybody is served.
    pub(crate) fn write_policies_by(&self, writer: Writer) {
        let is_first = self.policy_writer.set(writer).is_ok();
        debug_assert!(is_first, "there is one policy store");
    }

    /// Snapshots are made by this from here on. Said once, before anybody is served.
    pub(crate) fn save_by(&self, saver: Saver) {
        let is_first = self.saver.set(saver).is_ok();
        debug_assert!(is_first, "there is one data folder");
    }

    /// The turn of the journal that replies made until now have to wait for, if any.
    #[inline]
    pub(super) fn ask_turn(&self) -> Option<Turn> {
        self.saver.get()?.ask()
    }

    /// Whether that turn is over.
    pub(super) fn poll_turn(&self, turn: Turn, cx: &mut Context<'_>) -> Poll<()> {
        self.saver.get().map_or(Poll::Ready(()), |saver| saver.poll(turn, cx))
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
        debug!(connection = id, address = %peer.address, "a connection began");
        self.peers.insert(id, peer);
    }

    pub(super) fn forget(&self, id: u64) {
        let mut past = self.past.lock();
        if let Some((_, peer)) = self.peers.remove(&id) {
            past.add(&peer);
            drop(past);
            debug!(connection = id, address = %peer.address, "a connection ended");
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
        let output_bytes_max = self.output_bytes_max();
        warn!(
            connection,
            unsent_bytes,
            output_bytes_max,
            "closed a connection that left more replies unread than server.output_bytes_max"
        );
    }

    fn end_slow_listener(&self, connection: u64, peer: &PeerState, full: Full) {
        if peer.is_killed() {
            return;
        }
        peer.kill();
        self.pushes_unread.fetch_add(1, Ordering::Relaxed);
        let push_bytes_max = self.service.runtime().push_bytes_max();
        warn!(
            connection,
            waiting_bytes = full.bytes,
            push_bytes_max,
            "closed a connection that left more pushes unread than server.push_bytes_max"
        );
    }

    /// Ends the connections that have been silent for longer than the idle time.
    pub(super) fn close_idle(&self) {
        let Some(timeout) = self.service.runtime().idle_timeout() else { return };
        let now = self.clock.now();
        for peer in &self.peers {
            let is_idle = now.since(peer.last_active()) >= timeout;
            if is_idle && !peer.is_killed() && !peer.is_listener() {
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
        self.wake_all();
    }

    /// Ends what is left of the connections.
    pub(super) fn kill_all(&self) -> usize {
        self.peers.iter().map(|peer| peer.kill()).count()
    }

    pub(super) fn connected(&self) -> usize {
        self.peers.len()
    }

    /// How far the wall clock was ahead of ours when last compared.
    pub(super) fn note_clock_gap(&self, gap_us: i64) {
        self.clock_gap_us.store(gap_us, Ordering::Relaxed);
    }

    /// Once a second: what has happened since the last time.
    pub(super) fn measure(&self) {
        let commands = self.service.command_counts().iter().map(|counts| counts.calls).sum();
        let Traffic { input_bytes, output_bytes } = self.traffic();
        let totals = Rates { commands, input_bytes, output_bytes };
        self.meter.look(self.clock.now(), totals, self.service.engine().used_bytes());
    }

    /// Resolves once somebody has asked the server to stop.
    pub(super) async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Asks the server to stop.
    pub(crate) fn stop(&self) {
        self.readiness.store(Readiness::Draining as u8, Ordering::Relaxed);
        self.stop.notify_one();
    }

    /// Resolves once somebody cannot wait for the server to stop in order.
    pub(super) async fn hurried(&self) {
        self.hurry.notified().await;
    }

    /// Asks the server, which is stopping, to stop at once.
    pub(crate) fn hurry(&self) {
        self.hurry.notify_one();
    }

    /// From here on clients are accepted; does not undo a stop.
    pub(super) fn open(&self) {
        let (starting, ready) = (Readiness::Starting as u8, Readiness::Ready as u8);
        // An error means that the server was asked to stop already.
        let _ =
            self.readiness.compare_exchange(starting, ready, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn readiness(&self) -> Readiness {
        match self.readiness.load(Ordering::Relaxed) {
            ready if ready == Readiness::Starting as u8 => Readiness::Starting,
            ready if ready == Readiness::Ready as u8 => Readiness::Ready,
            _ => Readiness::Draining,
        }
    }

    /// The same answer, after which the connection that waits for it looks at it.
    fn and_wake<T: 'static>(
        &self,
        connection: u64,
        answer: Box<dyn FnOnce(T) + Send>,
    ) -> Box<dyn FnOnce(T) + Send> {
        let peer = self.peers.get(&connection).map(|peer| Arc::clone(&peer));
        Box::new(move |result| {
            answer(result);
            if let Some(peer) = peer {
                peer.wake();
            }
        })
    }

    /// Why protected mode answers nothing to this address: without a password, only this
    /// machine is served.
    pub(crate) fn shut_out(&self, address: IpAddr) -> Option<&'static str> {
        let runtime = self.service.runtime();
        (runtime.is_protected() && !runtime.has_password() && is_elsewhere(address)).then_some(
            "Tollgate is in protected mode and has no password, so it answers only on this \
             machine. Set `server.password`, or `server.protected_mode: false` where the network \
             itself is trusted, and start it again.",
        )
    }

    /// Bytes of torn requests and of replies that were not taken, of all connections.
    pub(super) fn in_flight_bytes(&self) -> usize {
        let held = self.peers.iter().map(|peer| peer.held());
        held.map(|(torn_bytes, unsent_bytes)| torn_bytes + unsent_bytes).sum()
    }

    /// Bytes to and from all connections there have been.
    pub(super) fn traffic(&self) -> Traffic {
        let past = self.past.lock();
        let mut traffic = *past;
        for peer in &self.peers {
            traffic.add(&peer);
        }
        traffic
    }
}

impl Traffic {
    fn add(&mut self, peer: &PeerState) {
        let (input_bytes, output_bytes) = peer.traffic();
        self.input_bytes += input_bytes;
        self.output_bytes += output_bytes;
    }
}

/// Whether an address belongs to another machine.
pub(crate) fn is_elsewhere(address: IpAddr) -> bool {
    !address.to_canonical().is_loopback()
}

impl Host for Hub {
    fn facts(&self) -> Facts {
        let Traffic { input_bytes, output_bytes } = self.traffic();
        let machine = Machine::here();
        let Process { resident_bytes, cpu_user_s, cpu_system_s } = machine.process();
        Facts {
            process_id: std::process::id(),
            run_id: self.identity.run_id.clone(),
            tcp_port: self.identity.tcp_port,
            http_port: self.identity.http_port,
            os: machine::os(),
            executable: machine::executable(),
            config_file: self.identity.config_file.clone(),
            workers: self.identity.workers,
            connected: self.peers.len(),
            connections_received: self.received.load(Ordering::Relaxed),
            connections_rejected: self.rejected.load(Ordering::Relaxed),
            closed_protocol: self.protocol_errors.load(Ordering::Relaxed),
            closed_unread: self.unread.load(Ordering::Relaxed),
            closed_idle: self.idle_closed.load(Ordering::Relaxed),
            closed_pushes: self.pushes_unread.load(Ordering::Relaxed),
            input_bytes,
            output_bytes,
            rates: self.meter.rates(),
            used_peak_bytes: self.meter.used_peak_bytes(self.service.engine().used_bytes()),
            resident_bytes,
            machine_bytes: machine.memory_limit_bytes(),
            cpu_user_s,
            cpu_system_s,
            clock_gap_us: self.clock_gap_us.load(Ordering::Relaxed),
        }
    }

    fn peers(&self) -> Vec<Peer> {
        let now = self.clock.now();
        let mut peers: Vec<Peer> = self.peers.iter().map(|peer| peer.show(now)).collect();
        peers.sort_unstable_by_key(|peer| peer.session.id);
        peers
    }

    fn peer(&self, id: u64) -> Option<Peer> {
        self.peers.get(&id).map(|peer| peer.show(self.clock.now()))
    }

    fn crowd(&self) -> Crowd {
        self.peers.iter().fold(Crowd::default(), |crowd, peer| {
            let (torn_bytes, unsent_bytes) = peer.held();
            Crowd {
                connections: crowd.connections + 1,
                input_bytes_max: crowd.input_bytes_max.max(torn_bytes),
                output_bytes_max: crowd.output_bytes_max.max(unsent_bytes),
            }
        })
    }

    fn is_local(&self, id: u64) -> bool {
        self.peers.get(&id).is_some_and(|peer| !is_elsewhere(peer.address.ip()))
    }

    #[expect(clippy::disallowed_methods, reason = "to be held up is what was asked for")]
    fn hold(&self, span: Duration) {
        std::thread::sleep(std::time::Duration::from_micros(span.as_micros()));
    }

    fn peer_address(&self, id: u64) -> String {
        self.peers.get(&id).map(|peer| peer.address.to_string()).unwrap_or_default()
    }

    fn kill(&self, id: u64) -> bool {
        self.peers.get(&id).map(|peer| peer.kill()).is_some()
    }

    fn push(&self, id: u64, push: Push) -> bool {
        let Some(peer) = self.peers.get(&id) else { return false };
        match peer.mailbox.put(push, self.service.runtime().push_bytes_max()) {
            Ok(()) => peer.wake(),
            Err(full) => self.end_slow_listener(id, &peer, full),
        }
        true
    }

    fn serve_meanwhile(&self) {
        meanwhile::serve();
    }

    fn wake(&self, id: u64) {
        if let Some(peer) = self.peers.get(&id) {
            peer.wake();
        }
    }

    fn wake_all(&self) {
        self.peers.iter().for_each(|peer| peer.wake());
    }

    fn log_of_script(&self, level: LogLevel, text: &[u8]) {
        let Some(left_out) = self.script_lines.admit(self.clock.now()) else { return };
        if left_out > 0 {
            warn!(lines = left_out, "scripts said more than is told in one second");
        }
        let text = String::from_utf8_lossy(text);
        match level {
            LogLevel::Debug | LogLevel::Verbose => debug!(%text, "a script says"),
            LogLevel::Notice => info!(%text, "a script says"),
            LogLevel::Warning => warn!(%text, "a script says"),
        }
    }

    fn write_policy(&self, connection: u64, order: PolicyOrder, answer: PolicyAnswer) {
        match self.policy_writer.get() {
            Some(writer) => writer.submit(order, self.and_wake(connection, answer)),
            None => answer(Err(PolicyRefusal::NoStore)),
        }
    }

    fn store(&self) -> Option<StoreFacts> {
        self.saver.get().map(Saver::facts)
    }

    fn save(&self, connection: u64, order: SaveOrder, answer: SaveAnswer) {
        match self.saver.get() {
            Some(saver) => saver.submit(order, self.and_wake(connection, answer)),
            None => answer(Err(SaveRefusal::NoFolder)),
        }
    }

    fn shutdown(&self, last: LastSave) {
        if let Some(saver) = self.saver.get() {
            saver.set_last(last);
        }
        self.stop();
    }

    fn settings(&self) -> &[(String, String)] {
        &self.identity.settings
    }
}
