//! Logs: to standard error, as text for people or as JSON for machines.

use tracing_subscriber::filter::LevelFilter;

use super::options::{LogFormat, LogLevel, Options};

/// Begins to log. A second call changes nothing: the first subscriber stays.
pub(crate) fn start_logging(options: &Options) {
    let level = match options.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    // An error means that a subscriber is there already.
    drop(match options.format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    });
}
