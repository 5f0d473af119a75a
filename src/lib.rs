//! A Redis-compatible rate-limit server.
//!
//! The rooms are listed from the ground up. A room may use only rooms listed above it,
//! and enters them by their `mod.rs`. `tests/tidy.rs` proves it.

// Core: synchronous, told the time, no I/O, no logging, no clock.
pub mod time; // when: Timestamp, Duration, Clock
pub mod size; // how much: Bytes, amounts left to the machine
#[cfg(feature = "server")]
mod yaml; // documents of people: read strictly, a complaint with its place
pub mod limit; // may this pass: Quota, Cost, Decision, the algorithms
pub mod load; // how much may be done: signals, levels, who is refused
#[cfg(any(feature = "server", feature = "client-central"))]
mod protocol; // the wire: RESP bytes to requests, replies to bytes
#[cfg(feature = "server")]
mod collection; // what else a key can hold: hashes, lists, sets, sorted sets
#[cfg(feature = "server")]
#[cfg_attr(not(test), expect(dead_code, reason = "the commands that ask it come next"))]
#[expect(unused_imports, reason = "the commands that ask it come next")]
mod policy; // which quotas apply to whom
#[cfg(feature = "server")]
mod engine; // what is remembered: keyspace, values, expiry, memory
#[cfg(feature = "server")]
mod prefilter; // a short memory of denials, asked before the engine
#[cfg(feature = "server")]
mod lua; // scripts: cache, sandbox, conversion
#[cfg(feature = "server")]
mod commands; // argv to reply: the table, the gate, the handlers

// Edges: sockets, files, tasks, logs. May use tokio.
pub mod machine; // what the system says of this process: processor, memory, stalls
#[cfg(feature = "server")]
mod telemetry; // metric names, log setup
#[cfg(feature = "client-central")]
pub mod client; // asks a server from a caller's process: pipelines, remembers denials
#[cfg(feature = "server")]
mod watch; // where policies come from: etcd, files
#[cfg(feature = "server")]
mod server; // the RESP listener
#[cfg(feature = "server")]
mod admin; // the HTTP API

// Assembly.
#[cfg(feature = "server")]
mod config; // every setting and its default
#[cfg(feature = "server")]
mod roles; // who is made of what
#[cfg(feature = "server")]
pub mod cli; // the command line

// For fuzz targets and benches.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing; // a public door to the scanner and the reply writer
