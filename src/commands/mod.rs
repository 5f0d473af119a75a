//! Argv to reply: the table of commands, the gate before them, and their handlers.
//!
//! Each family is a file with its handlers and, above them, their rows of the table (`spec.rs`).
//! [`Worker`] answers requests one after another; what workers share is a [`Service`]; what
//! commands need of the outside they ask of a [`Host`].

mod acl;
mod baseline;
mod blocking;
mod call;
mod caller;
mod channels;
mod client;
mod client_kill;
mod client_list;
mod client_tracking;
mod cluster;
mod command;
mod config_command;
mod connection;
mod counters;
mod deadline;
mod debug;
mod degrade;
mod decision_log;
mod details;
mod element_scan;
mod entry;
mod expiry;
mod functions;
mod glob;
mod group;
mod hash_numbers;
mod hashes;
mod host;
mod increx;
mod info;
mod info_sections;
mod kept;
mod keys;
mod keyspace;
mod last_quota;
mod latency;
mod limits;
mod list_ends;
mod lists;
mod load_section;
mod memory;
mod monitor;
mod native;
mod noted_parameters;
mod object;
mod options;
mod overload;
mod parameter_table;
#[cfg(test)]
mod panicking;
mod parameters;
mod password;
mod pause;
mod policed;
mod policies;
mod policy_command;
mod policy_order;
mod runner;
mod random_elements;
mod request;
mod running;
mod pubsub;
mod push;
mod runtime;
mod saving;
mod scan_options;
mod script_log;
mod script_run;
mod scripting;
mod server_commands;
mod service;
mod session;
mod set;
mod set_algebra;
mod sets;
mod sifted;
mod slowlog;
mod sorted;
mod spec;
mod strings;
mod table;
mod tally;
mod throttle;
mod transaction;
mod waiting;
mod tracking;
mod twins;
mod usage;

pub(crate) use call::Worker;
#[cfg(test)]
pub(crate) use decision_log::Decided;
pub(crate) use decision_log::{DecisionLog, Next, Noted, NotedLines};
pub(crate) use group::GROUP_MAX;
pub(crate) use host::{Crowd, Facts, Host, Peer, Rates};
pub(crate) use kept::{LastSave, SaveAnswer, SaveOrder, SaveRefusal, StoreFacts};
pub(crate) use options::{
    DecisionLogOptions, LatencyOptions, LimitOptions, ScriptOptions, SlowlogOptions,
    ThrottleRounding,
};
pub(crate) use overload::{
    Instead, LoadOptions, Reason as OverloadReason, Sample, SignalStatus, Status as OverloadStatus,
};
pub(crate) use password::Password;
pub(crate) use policy_order::{PolicyAnswer, PolicyOrder, PolicyRefusal};
pub(crate) use push::Push;
pub(crate) use runtime::{Initial, Runtime};
pub(crate) use service::Service;
pub(crate) use session::{Outcome, Session};
pub(crate) use tally::{BUCKET_BOUNDS_NS, CommandCounts};
pub(crate) use waiting::{Unserved, Wait};

use crate::engine::KeyHasher;
use spec::Spec;

/// Every family's rows. A new family is its file and a line here.
const FAMILIES: &[&[Spec]] = &[
    #[cfg(test)]
    panicking::SPECS,
    acl::SPECS,
    blocking::SPECS,
    client::SPECS,
    cluster::SPECS,
    command::SPECS,
    config_command::SPECS,
    connection::SPECS,
    counters::SPECS,
    element_scan::SPECS,
    debug::SPECS,
    degrade::SPECS,
    expiry::SPECS,
    functions::SPECS,
    hash_numbers::SPECS,
    hashes::SPECS,
    increx::SPECS,
    info::SPECS,
    keys::SPECS,
    keyspace::SPECS,
    latency::SPECS,
    limits::SPECS,
    list_ends::SPECS,
    lists::SPECS,
    memory::SPECS,
    monitor::SPECS,
    object::SPECS,
    policed::SPECS,
    policy_command::SPECS,
    random_elements::SPECS,
    pubsub::SPECS,
    saving::SPECS,
    scripting::SPECS,
    server_commands::SPECS,
    set::SPECS,
    set_algebra::SPECS,
    sets::SPECS,
    slowlog::SPECS,
    sorted::ADDING,
    sorted::ALGEBRA,
    sorted::POPPING,
    sorted::RANDOM,
    sorted::RANGES,
    sorted::READING,
    sorted::REMOVING,
    strings::SPECS,
    throttle::SPECS,
    transaction::SPECS,
];
