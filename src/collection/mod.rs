//! What a key can hold beside a limit or a string: hashes, lists, sets and sorted sets.
//!
//! Each type is Redis's, told as data: it knows neither keys nor commands nor time. A collection
//! counts its own memory, has one encoded form, and can take its latest changes back: after
//! [`Hash::begin_undo`] (and its likes) every change notes its inverse, until they are forgotten
//! or rolled back.
//!
//! Invariants: `heap_bytes` is known in constant time; decoding never panics; rolling back
//! leaves a collection that shows the same elements in the same order as before.

mod algebra;
mod coded;
mod fields;
mod hash;
mod integers;
mod inverses;
mod list;
mod packed;
#[cfg(test)]
mod properties;
mod sample;
mod set;
mod sorted_set;
mod table;

pub(crate) use algebra::{difference, intersection, union};
pub(crate) use coded::DecodeError;
pub(crate) use hash::Hash;
pub(crate) use integers::Digits;
pub(crate) use list::{End, List};
pub(crate) use sample::{at_places, one, one_place, places};
pub(crate) use set::{Member, Set};
pub(crate) use sorted_set::{Direction, SortedSet};
