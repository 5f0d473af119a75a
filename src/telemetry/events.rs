//! What edge rooms count as it happens: rare events, by the crate `metrics` and its exporter.
//!
//! Whoever counts holds a handle that was registered once, so an event costs one atomic addition
//! and never a look-up. What happens on a worker for each request is not counted here: see
//! `metrics`, which also has the names.
//!
//! Each server owns its recorder, none is global: two servers in one process share no count.
//! Counts begin at zero with the server, and CONFIG RESETSTAT leaves them alone.
//!
//! Invariant: samples of histograms wait in memory only until the next `upkeep`, once a second.

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use super::metrics::{
    CLOCK_STEPS, Event, HTTP_DURATION, HTTP_REQUESTS, LOG_EVENTS, PANICS, SWEEP_LAPS,
};
use super::policy_events::PolicyEvents;
use crate::time::Duration;

/// Upper bounds, in seconds: a probe takes some tens of microseconds, a scrape milliseconds.
const HTTP_BOUNDS_S: [f64; 6] = [0.000_1, 0.000_5, 0.001, 0.005, 0.05, 0.5];

/// The codes that pages answer with; any other is counted as `other`.
const HTTP_CODES: [u16; 6] = [200, 403, 404, 405, 413, 503];

/// The label of what is known by no name of its own.
const OTHER: &str = "other";

const METADATA: Metadata<'_> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The events of one server. A field is the handle of what it is named after.
#[derive(Debug)]
pub(crate) struct Events {
    /// The wall clock was far ahead, and ours stepped to it.
    pub(crate) clock_forward: Counter,
    /// The wall clock was found set back, and ours went on.
    pub(crate) clock_backward: Counter,
    /// The sweep for expired keys has seen every key once more.
    pub(crate) sweep_laps: Counter,
    pub(super) panics: Counter,
    pub(super) log_errors: Counter,
    pub(super) log_warnings: Counter,
    recorder: PrometheusRecorder,
}

impl Events {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let bounded = Matcher::Full(HTTP_DURATION.name.to_owned());
        let builder = builder.set_buckets_for_metric(bounded, &HTTP_BOUNDS_S);
        let recorder = builder.expect("there are buckets").build_recorder();
        Self {
            clock_forward: counter(&recorder, &CLOCK_STEPS, &[("direction", "forward")]),
            clock_backward: counter(&recorder, &CLOCK_STEPS, &[("direction", "backward")]),
            sweep_laps: counter(&recorder, &SWEEP_LAPS, &[]),
            panics: counter(&recorder, &PANICS, &[]),
            log_errors: counter(&recorder, &LOG_EVENTS, &[("level", "error")]),
            log_warnings: counter(&recorder, &LOG_EVENTS, &[("level", "warn")]),
            recorder,
        }
    }

    /// The events of an HTTP port that has these pages.
    pub(crate) fn http(&self, paths: &[&'static str]) -> HttpEvents {
        let page = |path| PageEvents::new(&self.recorder, path);
        HttpEvents { pages: paths.iter().copied().map(page).collect(), other: page(OTHER) }
    }

    /// What becomes of the policies of this server.
    pub(crate) fn policies(&self) -> PolicyEvents {
        PolicyEvents::new(&self.recorder)
    }

    /// Sorts waiting samples into their buckets; once a second, whether anybody scrapes or not.
    pub(crate) fn upkeep(&self) {
        self.recorder.handle().run_upkeep();
    }

    /// Every family, as it stands on the page of metrics.
    pub(super) fn render(&self) -> String {
        // The exporter keeps no order, and ends a family with an empty line.
        let text = self.recorder.handle().render();
        let mut families: Vec<&str> = text.split_terminator("\n\n").collect();
        families.sort_unstable();
        families.join("\n") + "\n"
    }
}

/// What was answered on the HTTP port.
#[derive(Debug)]
pub(crate) struct HttpEvents {
    pages: Vec<PageEvents>,
    /// Requests for what is not there.
    other: PageEvents,
}

#[derive(Debug)]
struct PageEvents {
    path: &'static str,
    by_code: [Counter; HTTP_CODES.len()],
    other_code: Counter,
    duration: Histogram,
}

impl HttpEvents {
    pub(crate) fn answered(&self, path: &str, code: u16, took: Duration) {
        let page = self.pages.iter().find(|page| page.path == path).unwrap_or(&self.other);
        let known = HTTP_CODES.iter().position(|known| *known == code);
        known.map_or(&page.other_code, |place| &page.by_code[place]).increment(1);
        page.duration.record(took.as_micros() as f64 / 1e6);
    }
}

impl PageEvents {
    fn new(recorder: &PrometheusRecorder, path: &'static str) -> Self {
        let answers =
            |code: &str| counter(recorder, &HTTP_REQUESTS, &[("path", path), ("code", code)]);
        Self {
            path,
            by_code: HTTP_CODES.map(|code| answers(&code.to_string())),
            other_code: answers(OTHER),
            duration: histogram(recorder, &HTTP_DURATION, &[("path", path)]),
        }
    }
}

pub(super) fn counter(
    recorder: &PrometheusRecorder,
    event: &Event,
    labels: &[(&'static str, &str)],
) -> Counter {
    recorder.describe_counter(event.name.into(), None, event.help.into());
    recorder.register_counter(&key(event, labels), &METADATA)
}

pub(super) fn gauge(
    recorder: &PrometheusRecorder,
    event: &Event,
    labels: &[(&'static str, &str)],
) -> Gauge {
    recorder.describe_gauge(event.name.into(), None, event.help.into());
    recorder.register_gauge(&key(event, labels), &METADATA)
}

fn histogram(
    recorder: &PrometheusRecorder,
    event: &Event,
    labels: &[(&'static str, &str)],
) -> Histogram {
    recorder.describe_histogram(event.name.into(), None, event.help.into());
    recorder.register_histogram(&key(event, labels), &METADATA)
}

fn key(event: &Event, labels: &[(&'static str, &str)]) -> Key {
    let labels = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned()));
    Key::from_parts(event.name, labels.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_that_nobody_knows_and_code_that_nobody_expects_are_counted_as_other() {
        let events = Events::new();
        let http = events.http(&["/metrics"]);
        http.answered("/metrics", 200, Duration::from_millis(1));
        http.answered("/admin.php", 404, Duration::ZERO);
        http.answered("/../etc", 418, Duration::ZERO);
        let text = events.render();
        for line in [
            "tollgate_http_requests_total{path=\"/metrics\",code=\"200\"} 1\n",
            "tollgate_http_requests_total{path=\"other\",code=\"404\"} 1\n",
            "tollgate_http_requests_total{path=\"other\",code=\"other\"} 1\n",
            "tollgate_http_request_duration_seconds_bucket{path=\"/metrics\",le=\"0.0005\"} 0\n",
            "tollgate_http_request_duration_seconds_bucket{path=\"/metrics\",le=\"0.001\"} 1\n",
            "tollgate_http_request_duration_seconds_count{path=\"other\"} 2\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains(".php"), "{text}");
    }

    #[test]
    fn two_servers_of_one_process_share_no_count() {
        let (one, other) = (Events::new(), Events::new());
        one.sweep_laps.increment(1);
        assert!(one.render().contains("\ntollgate_sweep_laps_total 1\n"));
        assert!(other.render().contains("\ntollgate_sweep_laps_total 0\n"));
    }

    #[test]
    fn upkeep_loses_no_sample() {
        let events = Events::new();
        let http = events.http(&["/"]);
        for _ in 0..3 {
            http.answered("/", 200, Duration::ZERO);
            events.upkeep();
        }
        let count = "tollgate_http_request_duration_seconds_count{path=\"/\"} 3\n";
        assert!(events.render().contains(count), "{}", events.render());
    }
}
