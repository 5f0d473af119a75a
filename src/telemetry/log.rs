//! Logs: to standard error, as text for people or as JSON for machines, one object a line.
//!
//! A line is a constant phrase with its facts as fields, so that a search finds all of a kind.
//! Colours are for terminals only. What panics is one line of the log like any other error.
//! Lines that tell of something wrong are counted, so that an alert needs no search.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal};
use std::panic::{self, PanicHookInfo};

use metrics::Counter;
use tracing::{Event, Level, Subscriber, error};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::events::Events;
use super::options::{LogFormat, LogLevel, Options};

/// Begins to log. A second call changes nothing: the first subscriber stays.
pub(crate) fn start_logging(options: &Options, events: &Events) {
    let tally = Tally::of(events);
    let subscriber = subscriber(options, tally, io::stderr, io::stderr().is_terminal());
    // An error means that a subscriber is there already.
    drop(tracing::subscriber::set_global_default(subscriber));
}

/// From here on a panic is counted, and an error in the log instead of lines of its own.
pub(crate) fn log_panics(events: &Events) {
    let panics = events.panics.clone();
    panic::set_hook(Box::new(move |panic| log_panic(panic, &panics)));
}

fn log_panic(panic: &PanicHookInfo<'_>, panics: &Counter) {
    panics.increment(1);
    let payload = panic.payload();
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = panic.location().map(ToString::to_string);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    // Captured only where RUST_BACKTRACE asks for it.
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    error!(
        panic = message.unwrap_or("a value that is no text"),
        place, thread, backtrace, "a thread panicked"
    );
}

/// Counts what is written at the two levels that ask for attention.
#[derive(Debug)]
struct Tally {
    errors: Counter,
    warnings: Counter,
}

impl Tally {
    fn of(events: &Events) -> Self {
        Self { errors: events.log_errors.clone(), warnings: events.log_warnings.clone() }
    }
}

impl<S: Subscriber> Layer<S> for Tally {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        match *event.metadata().level() {
            Level::ERROR => self.errors.increment(1),
            Level::WARN => self.warnings.increment(1),
            _ => {}
        }
    }
}

fn subscriber<W>(
    options: &Options,
    tally: Tally,
    writer: W,
    is_terminal: bool,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let level = match options.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(writer);
    // Left to itself, the builder asks only NO_COLOR.
    let builder = if is_terminal { builder } else { builder.with_ansi(false) };
    match options.format {
        LogFormat::Text => Box::new(builder.with_target(false).finish().with(tally)),
        LogFormat::Json => Box::new(builder.json().flatten_event(true).finish().with(tally)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics with it").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written to the log while `work` runs.
    fn logged(format: LogFormat, work: impl FnOnce()) -> String {
        logged_and_counted(format, &Events::new(), work)
    }

    fn logged_and_counted(format: LogFormat, events: &Events, work: impl FnOnce()) -> String {
        let options = Options { format, level: LogLevel::Info };
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = subscriber(&options, Tally::of(events), move || writer.clone(), false);
        tracing::subscriber::with_default(subscriber, work);
        let bytes = lines.0.lock().expect("no test panics with it").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn json_log_is_one_object_a_line_with_its_facts_as_fields() {
        let text = logged(LogFormat::Json, || {
            tracing::warn!(connection = 7, unsent_bytes = 12_u64, "closed \"it\"\nthen");
            tracing::debug!("below the level");
            tracing::info!(http_port = None::<u16>, "ready");
        });
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["level"], "WARN");
        assert_eq!(lines[0]["message"], "closed \"it\"\nthen");
        assert_eq!(lines[0]["connection"], 7);
        assert_eq!(lines[0]["unsent_bytes"], 12);
        assert!(lines[0]["timestamp"].is_string());
        assert!(lines[1].get("http_port").is_none());
    }

    #[test]
    fn text_log_has_no_colours_where_nobody_looks() {
        let text = logged(LogFormat::Text, || tracing::info!(port = 6379, "ready"));
        assert!(text.ends_with(" INFO ready port=6379\n"), "{text}");
    }

    #[test]
    fn lines_that_tell_of_something_wrong_are_counted_in_either_format() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let events = Events::new();
            logged_and_counted(format, &events, || {
                tracing::error!("one");
                tracing::warn!("two");
                tracing::warn!("three");
                tracing::info!("nothing wrong");
            });
            let page = events.render();
            assert!(page.contains("tollgate_log_events_total{level=\"error\"} 1\n"), "{page}");
            assert!(page.contains("tollgate_log_events_total{level=\"warn\"} 2\n"), "{page}");
        }
    }

    #[test]
    fn panic_is_counted_and_an_error_line_with_its_place() {
        let events = Events::new();
        let panics = events.panics.clone();
        let ours = std::thread::current().id();
        let others = panic::take_hook();
        // The hook is the process's: other tests' panics go on as before.
        panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == ours {
                log_panic(panic, &panics);
            } else {
                others(panic);
            }
        }));
        let text = logged(LogFormat::Json, || {
            panic::catch_unwind(|| panic!("no {}", "luck")).expect_err("it panics");
        });
        assert!(events.render().contains("\ntollgate_panics_total 1\n"), "{}", events.render());
        let line: serde_json::Value = serde_json::from_str(&text).expect("one object");
        assert_eq!(line["level"], "ERROR");
        assert_eq!(line["message"], "a thread panicked");
        assert_eq!(line["panic"], "no luck");
        let place = line["place"].as_str().expect("text");
        assert!(place.starts_with("src/telemetry/log.rs:"), "{place}");
    }
}
