//! LATENCY: spikes of the events that the monitor watches, and how commands are distributed.

use std::collections::{BTreeMap, VecDeque};

use super::call::Call;
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use super::tally::BUCKET_BOUNDS_NS;
use crate::protocol::{Error, Reply};
use crate::time::{Duration, Timestamp};

/// Spikes kept of one event: as many as Redis keeps.
const SAMPLES_MAX: usize = 160;

#[derive(Debug, Default)]
pub(super) struct Latency {
    events: BTreeMap<&'static str, Event>,
}

#[derive(Debug, Default)]
struct Event {
    max_ms: u64,
    /// Second and milliseconds, oldest first.
    samples: VecDeque<(u64, u64)>,
}

impl Latency {
    pub(super) fn add(&mut self, name: &'static str, at: Timestamp, took: Duration) {
        let event = self.events.entry(name).or_default();
        let (at_s, took_ms) = (at.as_millis() / 1_000, took.as_millis());
        event.max_ms = event.max_ms.max(took_ms);
        match event.samples.back_mut() {
            // One sample a second, the worst.
            Some((last_s, last_ms)) if *last_s == at_s => *last_ms = took_ms.max(*last_ms),
            _ => event.samples.push_back((at_s, took_ms)),
        }
        if event.samples.len() > SAMPLES_MAX {
            event.samples.pop_front();
        }
    }
}

const fn sub(
    name: &'static str,
    arity: Arity,
    summary: &'static str,
    handler: fn(&mut Call<'_, '_>, &mut Reply<'_>) -> Result<Outcome, Error>,
) -> Sub {
    Sub { name, arity, keys: Keys::None, summary, handler: Handler::Plain(handler) }
}

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "LATENCY",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE),
    group: Group::Server,
    since: "2.8.13",
    complexity: "O(1)",
    summary: "Show latency spikes and distributions.",
    subcommands: &[
        sub("DOCTOR", Arity::exactly(2), "Return a report for people.", doctor),
        sub("HELP", Arity::exactly(2), "Return helpful text.", super::command::help),
        sub("HISTOGRAM", Arity::at_least(2), "Return durations of commands.", histogram),
        sub("HISTORY", Arity::exactly(3), "Return the spikes of an event.", history),
        sub("LATEST", Arity::exactly(2), "Return the latest spike of each event.", latest),
        sub("RESET", Arity::at_least(2), "Forget the spikes of events.", reset),
    ],
    handler: Handler::Parent,
}];

fn doctor(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    let latency = call.service.latency().lock();
    let mut text = String::new();
    for (name, event) in &latency.events {
        let count = event.samples.len();
        text += &format!("{name}: {count} spikes, the worst took {} ms.\n", event.max_ms);
    }
    if text.is_empty() {
        text = "No spikes have been seen. The monitor watches once latency-monitor-threshold \
                is above zero.\n"
            .into();
    }
    reply.verbatim(&text);
    Ok(Outcome::Reply)
}

fn history(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    let name = call.args.get(2).unwrap_or_default();
    let latency = call.service.latency().lock();
    let event = latency.events.iter().find(|(known, _)| known.as_bytes() == name);
    let samples = event.map(|(_, event)| &event.samples);
    reply.array(samples.map_or(0, VecDeque::len));
    for (at_s, took_ms) in samples.into_iter().flatten() {
        reply.integers(&[*at_s as i64, *took_ms as i64]);
    }
    Ok(Outcome::Reply)
}

fn latest(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    let latency = call.service.latency().lock();
    reply.array(latency.events.len());
    for (name, event) in &latency.events {
        let (at_s, took_ms) = event.samples.back().copied().unwrap_or_default();
        reply.array(4);
        reply.bulk(name.as_bytes());
        reply.integer(at_s as i64);
        reply.integer(took_ms as i64);
        reply.integer(event.max_ms as i64);
    }
    Ok(Outcome::Reply)
}

fn reset(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    let mut latency = call.service.latency().lock();
    let before = latency.events.len();
    if call.args.len() == 2 {
        latency.events.clear();
    } else {
        let named: Vec<&[u8]> = call.args.iter().skip(2).collect();
        latency.events.retain(|name, _| !named.contains(&name.as_bytes()));
    }
    reply.integer((before - latency.events.len()) as i64);
    Ok(Outcome::Reply)
}

/// LATENCY HISTOGRAM [command ...]: for each command that was called, how many calls took at
/// most so many microseconds (cumulative).
fn histogram(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Result<Outcome, Error> {
    let named: Vec<&[u8]> = call.args.iter().skip(2).collect();
    let counts = call.service.command_counts();
    let asked = |name: &str| {
        named.is_empty() || named.iter().any(|word| name.as_bytes().eq_ignore_ascii_case(word))
    };
    let specs = call.service.table().specs();
    let shown: Vec<_> =
        specs.iter().zip(&counts).filter(|(s, c)| c.calls > 0 && asked(s.name)).collect();
    reply.map(shown.len());
    for (spec, counts) in shown {
        reply.bulk(spec.name.to_ascii_lowercase().as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(counts.calls as i64);
        reply.bulk(b"histogram_usec");
        let steps = || {
            let bounded = BUCKET_BOUNDS_NS.iter().zip(&counts.buckets);
            bounded.scan(0, |sum, (bound, count)| {
                *sum += count;
                Some((bound.div_ceil(1_000), *sum, *count))
            })
        };
        let filled = || steps().filter(|(_, _, count)| *count > 0);
        reply.map(filled().count());
        for (bound_us, sum, _) in filled() {
            reply.integer(bound_us as i64);
            reply.integer(sum as i64);
        }
    }
    Ok(Outcome::Reply)
}
