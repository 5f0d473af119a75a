//! The settings of the log.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use serde::{Deserialize, Serialize};

/// The section `log`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// How a line is written.
    pub(crate) format: LogFormat,
    /// The least important level that is written.
    pub(crate) level: LogLevel,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For machines: one object a line.
    Json,
}

/// How important a line of the log is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// A person must act.
    Error,
    /// Handled, but worse than usual.
    Warn,
    /// Something changed: start, stop, settings.
    Info,
    /// Each connection.
    Debug,
}
