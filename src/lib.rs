//! A Redis-compatible rate-limit server.
//!
//! The rooms are listed from the ground up. A room may use only rooms listed above it,
//! and enters them by their `mod.rs`. `tests/tidy.rs` proves it.

// Core: synchronous, told the time, no I/O, no logging, no clock.
#[cfg(feature = "server")]
mod protocol;
pub mod time; // when: Timestamp, Duration, Clock // the wire: RESP bytes to requests, replies to bytes

// For fuzz targets and benches.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing; // a public door to the scanner and the reply writer
