//! The wire: RESP bytes to requests, replies to bytes.
//!
//! A `Scanner` takes every complete request out of a buffer as slices and leaves the torn
//! tail; a `Reply` appends to the worker's output buffer; an `Error` is all that a client
//! can be told went wrong. The two files of a caller, which asks and reads answers, serve the
//! client library, and come without the rest. This room knows no command.
//!
//! Requests are scanned by hand because a general RESP decoder recurses on what a client sends,
//! copies each argument, and starts again at each read; it stays the oracle of the tests.
//!
//! Invariants: never panics, never recurses on input, and refuses a request as soon as its
//! announced size is over a limit rather than after holding it.

#[cfg(feature = "client-central")]
mod answer;
#[cfg(feature = "server")]
mod args;
mod ask;
#[cfg(feature = "server")]
mod binary;
#[cfg(feature = "server")]
mod double;
#[cfg(feature = "server")]
mod error;
#[cfg(feature = "server")]
mod extended;
#[cfg(feature = "server")]
mod float;
#[cfg(feature = "server")]
mod inline;
#[cfg(feature = "server")]
mod native;
mod number;
#[cfg(feature = "server")]
mod owned;
#[cfg(all(feature = "server", any(test, feature = "fuzzing")))]
mod pieces;
#[cfg(feature = "server")]
mod reply;
#[cfg(feature = "server")]
mod request;
#[cfg(feature = "server")]
mod scan;
#[cfg(all(test, feature = "server"))]
mod tests;

#[cfg(feature = "client-central")]
pub(crate) use answer::{Answer, Answers, Malformed, Part};
#[cfg(feature = "server")]
pub(crate) use args::Args;
pub(crate) use ask::{write_header, write_request, write_word};
#[cfg(feature = "server")]
pub(crate) use double::{parse_bound, parse_f64};
#[cfg(feature = "server")]
pub(crate) use error::Error;
#[cfg(feature = "server")]
pub(crate) use extended::Extended;
#[cfg(feature = "server")]
pub(crate) use float::FloatText;
#[cfg(feature = "server")]
pub(crate) use number::{parse_i64, parse_u64};
#[cfg(feature = "server")]
pub(crate) use owned::OwnedArgs;
#[cfg(all(feature = "server", any(test, feature = "fuzzing")))]
pub(crate) use pieces::{cut, scan_pieces};
#[cfg(feature = "server")]
pub(crate) use reply::{Reply, Resp};
#[cfg(feature = "server")]
pub(crate) use request::{Limits, ProtocolError, Scanner, Torn, Trust};
