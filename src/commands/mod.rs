//! Argv to reply: the commands.

mod options;

pub(crate) use options::{LatencyOptions, LimitOptions, SlowlogOptions};
