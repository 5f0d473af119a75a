//! The page of metrics as text: Prometheus's exposition format, version 0.0.4.
//!
//! Written by hand, because what these families show is counted already: the workers keep
//! counters and buckets of durations, and they may be reset. The exporter that `events` uses
//! wants to count for itself: it takes single samples of a histogram, never ready buckets, and an
//! absolute counter only upwards.
//!
//! Invariants: a family's samples stand together under its HELP and TYPE; buckets add up, and
//! the last one, `+Inf`, equals the count.

use std::fmt::{Display, Write};

/// How Prometheus reads the numbers of a family.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Name and value of a label; the value may hold anything.
pub(super) type Label<'a> = (&'static str, &'a str);

/// Where the samples of one family are written.
#[derive(Debug)]
pub(super) struct Family<'p> {
    page: &'p mut String,
    name: &'static str,
}

impl<'p> Family<'p> {
    /// Begins a family at the end of the page. `help` is one plain line.
    pub(super) fn begin(
        page: &'p mut String,
        name: &'static str,
        help: &'static str,
        kind: Kind,
    ) -> Self {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect(INFALLIBLE);
        Self { page, name }
    }

    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.line("", labels, value);
    }

    /// `buckets` are upper bounds in ascending order, each with what fell between it and the one
    /// before; `above` fell above the last.
    pub(super) fn histogram(
        &mut self,
        labels: &[Label<'_>],
        buckets: impl Iterator<Item = (f64, u64)>,
        above: u64,
        sum: f64,
    ) {
        let mut count = 0;
        for (bound, within) in buckets {
            count += within;
            self.bucket(labels, &bound.to_string(), count);
        }
        count += above;
        self.bucket(labels, "+Inf", count);
        self.line("_sum", labels, sum);
        self.line("_count", labels, count);
    }

    fn bucket(&mut self, labels: &[Label<'_>], bound: &str, count: u64) {
        let labels: Vec<Label<'_>> = labels.iter().copied().chain([("le", bound)]).collect();
        self.line("_bucket", &labels, count);
    }

    fn line(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        self.page.push_str(self.name);
        self.page.push_str(suffix);
        let mut separator = '{';
        for (name, value) in labels {
            self.page.push(separator);
            self.page.push_str(name);
            self.page.push_str("=\"");
            escape(value, self.page);
            self.page.push('"');
            separator = ',';
        }
        if !labels.is_empty() {
            self.page.push('}');
        }
        writeln!(self.page, " {value}").expect(INFALLIBLE);
    }
}

const INFALLIBLE: &str = "a String takes what is written to it";

/// The three characters that would end or bend a label's value.
fn escape(value: &str, page: &mut String) {
    for character in value.chars() {
        match character {
            '\\' => page.push_str("\\\\"),
            '"' => page.push_str("\\\""),
            '\n' => page.push_str("\\n"),
            plain => page.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_written_as_prometheus_reads_it() {
        let mut page = String::new();
        let mut family = Family::begin(&mut page, "checks_total", "Decisions.", Kind::Counter);
        family.sample(&[("outcome", "allowed")], 5_u64);
        family.sample(&[("outcome", "denied"), ("command", "RL.LIMIT")], 0_u64);
        let mut family = Family::begin(&mut page, "gap_seconds", "A gap.", Kind::Gauge);
        family.sample(&[], -0.25);
        let expected = "\
# HELP checks_total Decisions.
# TYPE checks_total counter
checks_total{outcome=\"allowed\"} 5
checks_total{outcome=\"denied\",command=\"RL.LIMIT\"} 0
# HELP gap_seconds A gap.
# TYPE gap_seconds gauge
gap_seconds -0.25
";
        assert_eq!(page, expected);
    }

    #[test]
    fn histogram_adds_up_and_ends_in_everything() {
        let mut page = String::new();
        let mut family = Family::begin(&mut page, "took_seconds", "Time.", Kind::Histogram);
        let buckets = [(0.000_000_25, 2), (0.000_001, 0), (0.5, 3)];
        family.histogram(&[("command", "PING")], buckets.into_iter(), 1, 2.75);
        let expected = "\
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{command=\"PING\",le=\"0.00000025\"} 2
took_seconds_bucket{command=\"PING\",le=\"0.000001\"} 2
took_seconds_bucket{command=\"PING\",le=\"0.5\"} 5
took_seconds_bucket{command=\"PING\",le=\"+Inf\"} 6
took_seconds_sum{command=\"PING\"} 2.75
took_seconds_count{command=\"PING\"} 6
";
        assert_eq!(page, expected);
    }

    #[test]
    fn label_value_cannot_break_out_of_its_quotes() {
        let mut page = String::new();
        Family::begin(&mut page, "a", "A.", Kind::Gauge).sample(&[("code", "x\"} 1\nb \\ é")], 1);
        assert!(page.ends_with("a{code=\"x\\\"} 1\\nb \\\\ é\"} 1\n"), "{page}");
    }
}
