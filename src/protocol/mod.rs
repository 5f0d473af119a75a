//! The wire: RESP bytes to requests, replies to bytes.
//!
//! A [`Scanner`] takes every complete request out of a buffer as slices and leaves the torn
//! tail; a [`Reply`] appends to the worker's output buffer; an [`Error`] is all that a client
//! can be told went wrong. This room knows no command.
//!
//! Requests are scanned by hand because a general RESP decoder recurses on what a client sends,
//! copies each argument, and starts again at each read; it stays the oracle of the tests.
//!
//! Invariants: never panics, never recurses on input, and refuses a request as soon as its
//! announced size is over a limit rather than after holding it.

mod args;
mod binary;
mod double;
mod error;
mod extended;
mod float;
mod inline;
mod native;
mod number;
mod owned;
#[cfg(any(test, feature = "fuzzing"))]
mod pieces;
mod reply;
mod request;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use args::Args;
pub(crate) use double::{parse_bound, parse_f64};
pub(crate) use error::Error;
pub(crate) use extended::Extended;
pub(crate) use float::FloatText;
pub(crate) use number::{parse_i64, parse_u64};
pub(crate) use owned::OwnedArgs;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use pieces::{cut, scan_pieces};
pub(crate) use reply::{Reply, Resp};
pub(crate) use request::{Limits, ProtocolError, Scanner, Torn, Trust};
