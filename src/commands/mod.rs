//! Argv to reply: the table of commands, the gate before them, and their handlers.
//!
//! Each family is a file with its handlers and, above them, their rows of the table (`spec.rs`).
//! [`Worker`] answers requests one after another; what workers share is a [`Service`]; what
//! commands need of the outside they ask of a [`Host`].

mod acl;
mod baseline;
mod call;
mod caller;
mod client;
mod client_kill;
mod client_list;
mod cluster;
mod command;
mod config_command;
mod connection;
mod counters;
mod deadline;
mod details;
mod entry;
mod expiry;
mod functions;
mod glob;
mod group;
mod host;
mod increx;
mod info;
mod info_sections;
mod keys;
mod keyspace;
mod latency;
mod limits;
mod memory;
mod object;
mod options;
mod parameter_table;
#[cfg(test)]
mod panicking;
mod parameters;
mod runner;
mod running;
mod runtime;
mod script_run;
mod scripting;
mod server_commands;
mod service;
mod session;
mod set;
mod slowlog;
mod spec;
mod strings;
mod table;
mod tally;
mod throttle;
mod transaction;

pub(crate) use call::Worker;
pub(crate) use group::GROUP_MAX;
pub(crate) use host::{Crowd, Facts, Host, Peer, Rates};
pub(crate) use options::{
    LatencyOptions, LimitOptions, ScriptOptions, SlowlogOptions, ThrottleRounding,
};
pub(crate) use runtime::{Initial, Runtime};
pub(crate) use service::Service;
pub(crate) use session::{Outcome, Session};
pub(crate) use tally::{BUCKET_BOUNDS_NS, CommandCounts};

use crate::engine::KeyHasher;
use spec::Spec;

/// Every family's rows. A new family is its file and a line here.
const FAMILIES: &[&[Spec]] = &[
    #[cfg(test)]
    panicking::SPECS,
    acl::SPECS,
    client::SPECS,
    cluster::SPECS,
    command::SPECS,
    config_command::SPECS,
    connection::SPECS,
    counters::SPECS,
    expiry::SPECS,
    functions::SPECS,
    increx::SPECS,
    info::SPECS,
    keys::SPECS,
    keyspace::SPECS,
    latency::SPECS,
    limits::SPECS,
    memory::SPECS,
    object::SPECS,
    scripting::SPECS,
    server_commands::SPECS,
    set::SPECS,
    slowlog::SPECS,
    strings::SPECS,
    throttle::SPECS,
    transaction::SPECS,
];
