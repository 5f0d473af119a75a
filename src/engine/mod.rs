//! What is remembered: the keyspace.

mod options;

pub(crate) use options::Options;
