//! What outlives the process: snapshots and a journal in a data folder.
//!
//! A *snapshot* is everything at one moment; a *journal* is what has changed since, key by key.
//! Both are frames of records (`frame`), and a start reads the newest whole snapshot and the
//! journals behind it (`recovery`). One thread (`thread`) owns the folder and writes all of it
//! (`keeper`); what it is told of comes from marks that the engine sets where it changes
//! anything, so requests never wait for a disk unless the journal is `always`.
//!
//! After an orderly stop nothing is missing. After a crash at most the last second is, and of
//! keys that one transaction changed one may be of an earlier moment than another, within that
//! second.

mod durability;
mod error;
mod folder;
mod followed;
mod frame;
mod inspection;
mod keeper;
mod making;
mod options;
mod output;
mod reading;
mod recovery;
mod snapshots;
mod status;
#[cfg(test)]
mod tests;
mod thread;

pub(crate) use durability::Turn;
pub(crate) use error::Error;
pub(crate) use inspection::{Inspection, inspect};
pub(crate) use options::Options;
pub(crate) use thread::{Saver, Store, Target, open};
