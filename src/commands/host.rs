//! The door upwards: what commands need of the world outside.
//!
//! The server implements [`Host`]; tests implement it with a few lines. Handlers ask it while no
//! shard is locked, but within EXEC and scripts: there INFO reads `/proc`, which waits for no disk,
//! and pushes go into mailboxes. What may wait for a reader, as the log does, is told afterwards.

use super::kept::{LastSave, SaveAnswer, SaveOrder, StoreFacts};
use super::policy_order::{PolicyAnswer, PolicyOrder};
use super::push::Push;
use super::session::Session;
use crate::lua::LogLevel;
use crate::time::Duration;

/// Facts of the process, for INFO and HELLO.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) process_id: u32,
    /// Forty hex digits, new with each start: clients forget cached scripts when it changes.
    pub(crate) run_id: String,
    pub(crate) tcp_port: u16,
    pub(crate) http_port: Option<u16>,
    pub(crate) os: String,
    pub(crate) executable: String,
    pub(crate) config_file: String,
    pub(crate) workers: usize,
    pub(crate) connected: usize,
    pub(crate) connections_received: u64,
    pub(crate) connections_rejected: u64,
    /// Connections that the server ended, by why: bytes that are no request, replies not read,
    /// silence.
    pub(crate) closed_protocol: u64,
    pub(crate) closed_unread: u64,
    pub(crate) closed_idle: u64,
    /// Pushes not read.
    pub(crate) closed_pushes: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    /// Of the last whole second.
    pub(crate) rates: Rates,
    /// The most that keys and values have taken, looked at once a second.
    pub(crate) used_peak_bytes: usize,
    /// Resident memory of the process.
    pub(crate) resident_bytes: u64,
    /// Memory of the machine or its cgroup.
    pub(crate) machine_bytes: u64,
    pub(crate) cpu_user_s: f64,
    pub(crate) cpu_system_s: f64,
    /// How far the wall clock was ahead of the server's when last compared.
    pub(crate) clock_gap_us: i64,
}

/// How much happened in one second.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Rates {
    pub(crate) commands: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
}

/// What CLIENT LIST shows of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) session: Session,
    pub(crate) address: String,
    pub(crate) local_address: String,
    pub(crate) fd: i32,
    pub(crate) age_s: u64,
    pub(crate) idle_s: u64,
    /// Bytes of a torn request, and of replies not yet taken.
    pub(crate) input_bytes: usize,
    pub(crate) output_bytes: usize,
}

/// All connections taken together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Crowd {
    pub(crate) connections: usize,
    /// The most that one of them holds: bytes of a torn request, and of replies not yet taken.
    pub(crate) input_bytes_max: usize,
    pub(crate) output_bytes_max: usize,
}

pub(crate) trait Host {
    fn facts(&self) -> Facts;
    /// Every connection, by ascending number.
    fn peers(&self) -> Vec<Peer>;
    /// One connection; `None` where it has gone.
    fn peer(&self, id: u64) -> Option<Peer>;
    fn crowd(&self) -> Crowd;
    /// `host:port` of a connection's other end; empty where it has gone.
    fn peer_address(&self, id: u64) -> String;
    /// Ends a connection after what it was being sent. Returns whether it was there.
    fn kill(&self, id: u64) -> bool;
    /// Whether a connection's other end is on this machine; false where it has gone.
    fn is_local(&self, id: u64) -> bool;
    /// Holds up the thread that asks, and every connection that it serves.
    fn hold(&self, span: Duration);
    /// Puts a push into a connection's mailbox, and ends the connection where that is full.
    /// Returns whether the connection was there.
    fn push(&self, id: u64, push: Push) -> bool;
    /// Lets a connection look at what has come for it.
    fn wake(&self, id: u64);
    /// Answers the other connections of the thread that asks, because a script holds it up.
    fn serve_meanwhile(&self);
    /// The same of all connections.
    fn wake_all(&self);
    /// A line that a script has written to the log, told while nothing is locked.
    fn log_of_script(&self, level: LogLevel, text: &[u8]);
    /// Hands an order to the policy store and waits for nothing. Whoever carries it out gives
    /// the answer, on another thread, and wakes the connection then.
    fn write_policy(&self, connection: u64, order: PolicyOrder, answer: PolicyAnswer);
    /// How it stands with what outlives the process; `None` where nothing does.
    fn store(&self) -> Option<StoreFacts>;
    /// Hands an order to the store and waits for nothing. Whoever carries it out gives the
    /// answer, on another thread, and wakes the connection then.
    fn save(&self, connection: u64, order: SaveOrder, answer: SaveAnswer);
    /// Begins to stop the whole server.
    fn shutdown(&self, last: LastSave);
    /// Every setting as it was at the start, by its path, such as `server.port`.
    fn settings(&self) -> &[(String, String)];
}
