//! A Redis-compatible rate-limit server.
//!
//! The rooms are listed from the ground up. A room may use only rooms listed above it,
//! and enters them by their `mod.rs`. `tests/tidy.rs` proves it.

// Core: synchronous, told the time, no I/O, no logging, no clock.
pub mod limit;
pub mod time; // when: Timestamp, Duration, Clock // may this pass: Quota, Cost, Decision, the algorithms
