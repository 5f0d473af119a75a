//! What can be seen from outside: logs.

mod log;
mod options;

pub(crate) use log::start_logging;
pub(crate) use options::Options;
