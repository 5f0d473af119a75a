//! LATENCY: spikes of the events that the monitor watches, and how commands are distributed.

use std::collections::{BTreeMap, VecDeque};

use super::call::{Answer, Call};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use super::table::{Entry, Table};
use super::tally::{BUCKET_BOUNDS_NS, CommandCounts};
use crate::protocol::Reply;
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
        Sub::plain("DOCTOR", Arity::exactly(2), "Return a report for people.", doctor),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", super::command::help),
        Sub::plain("HISTOGRAM", Arity::at_least(2), "Return durations of commands.", histogram),
        Sub::plain("HISTORY", Arity::exactly(3), "Return the spikes of an event.", history),
        Sub::plain("LATEST", Arity::exactly(2), "Return the latest spike of each event.", latest),
        Sub::plain("RESET", Arity::at_least(2), "Forget the spikes of events.", reset),
    ],
    handler: Handler::Parent,
}];

fn doctor(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let latency = call.service.latency().lock();
    let spikes = latency.events.iter().map(|(name, event)| {
        let (count, worst_ms) = (event.samples.len(), event.max_ms);
        format!("{name}: {count} spikes, the worst took {worst_ms} ms.\n")
    });
    let mut text: String = spikes.collect();
    if text.is_empty() {
        text = "No spikes have been seen. The monitor watches once latency-monitor-threshold \
                is above zero.\n"
            .into();
    }
    reply.verbatim(&text);
    Ok(Outcome::Reply)
}

fn history(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
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

fn latest(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
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

fn reset(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
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
/// most so many microseconds (cumulative). A command with subcommands stands for them.
fn histogram(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let table = call.service.table();
    let named: Vec<u16> = call.args.skip(2).iter().filter_map(|name| table.named(name)).collect();
    let all = call.args.len() == 2;
    let counts = call.service.baseline().entries_since(call.service.entry_counts());
    let is_asked = |number: u16| all || named.contains(&number) || is_below(table, &named, number);
    let shown: Vec<(&Entry, &CommandCounts)> = (0..)
        .zip(table.entries().iter().zip(&counts))
        .filter(|(number, (_, counts))| counts.calls > 0 && is_asked(*number))
        .map(|(_, shown)| shown)
        .collect();
    reply.map(shown.len());
    for (entry, counts) in shown {
        reply.bulk(&entry.name);
        reply.map(2);
        reply.bulk("calls");
        reply.integer(counts.calls as i64);
        reply.bulk("histogram_usec");
        let steps = steps(counts);
        reply.map(steps.len());
        for (bound_us, sum) in steps {
            reply.integer(bound_us as i64);
            reply.integer(sum as i64);
        }
    }
    Ok(Outcome::Reply)
}

/// Whether this is a subcommand of one of the named commands.
fn is_below(table: &Table, named: &[u16], number: u16) -> bool {
    let Some(entry) = table.entry(number).filter(|entry| entry.sub.is_some()) else { return false };
    named.iter().any(|name| {
        table
            .entry(*name)
            .is_some_and(|named| named.sub.is_none() && named.spec.name == entry.spec.name)
    })
}

/// Bounds in whole microseconds, and how many calls lie below; buckets that nothing fell into
/// are left out, and those of one bound are one.
fn steps(counts: &CommandCounts) -> Vec<(u64, u64)> {
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let mut sum = 0;
    for (bound_ns, count) in BUCKET_BOUNDS_NS.iter().zip(&counts.buckets) {
        sum += count;
        let bound_us = bound_ns.div_ceil(1_000);
        match steps.last_mut() {
            Some(last) if last.0 == bound_us => last.1 = sum,
            _ if *count > 0 => steps.push((bound_us, sum)),
            _ => {}
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_is_cumulative_and_has_each_bound_once() {
        let mut counts = CommandCounts::default();
        counts.buckets[..5].copy_from_slice(&[3, 2, 0, 4, 1]);
        assert_eq!(steps(&counts), [(1, 5), (16, 9), (64, 10)]);
        assert_eq!(steps(&CommandCounts::default()), []);
    }

    #[test]
    fn spikes_of_one_second_are_one_sample_and_old_ones_go() {
        let mut latency = Latency::default();
        for at_s in 0..200 {
            for took_ms in [5, 9, 7] {
                let at = Timestamp::from_millis(at_s * 1_000 + took_ms);
                latency.add("command", at, Duration::from_millis(took_ms));
            }
        }
        let event = &latency.events["command"];
        assert_eq!((event.max_ms, event.samples.len()), (9, SAMPLES_MAX));
        assert!(event.samples.iter().all(|(_, took_ms)| *took_ms == 9));
    }
}
