//! What can be seen from outside: logs.

mod options;

pub(crate) use options::Options;
