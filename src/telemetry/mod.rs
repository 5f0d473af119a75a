//! What can be seen from outside: logs and metrics.

mod decisions;
mod events;
mod log;
mod metrics;
mod options;
mod policy_events;
mod render;

pub(crate) use decisions::DecisionWriter;
pub(crate) use events::{Events, HttpEvents};
pub(crate) use log::{log_panics, start_logging};
pub(crate) use metrics::{CONTENT_TYPE as METRICS_CONTENT_TYPE, metrics_page};
pub(crate) use options::{LogFormat, Options};
pub(crate) use policy_events::{PolicyEvents, PolicyFault};
