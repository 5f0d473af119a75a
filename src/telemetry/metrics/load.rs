//! The rows of the load manager: its level, its signals, and what was given up and why.

use super::{Metric, Reading, Unit, counter, gauge};
use crate::commands::{Instead, OverloadReason, OverloadStatus, SignalStatus};
use crate::load::Freshness;

pub(super) const METRICS: &[Metric] = &[
    gauge(
        "tollgate_degrade_level",
        Unit::None,
        "What is given up: 0 nothing, 1 conserve, 2 approximate, 3 emergency.",
        |from, to| to.sample(&[], status(from).level.number()),
    ),
    gauge(
        "tollgate_degrade_forced",
        Unit::None,
        "Whether somebody has pinned the level: 1, or 0 while pressure moves it.",
        |from, to| to.sample(&[], u8::from(status(from).forced.is_some())),
    ),
    gauge(
        "tollgate_load_pressure_ratio",
        Unit::None,
        "The smoothed pressure that moves the level; 1 is the hard limit.",
        |from, to| to.sample(&[], status(from).estimate),
    ),
    gauge(
        "tollgate_load_signal_pressure_ratio",
        Unit::None,
        "The pressure of each signal; one of which nothing is known now is left out.",
        |from, to| {
            for signal in status(from).signals {
                if let Some(pressure) = signal.pressure {
                    to.sample(&[("signal", &signal.name)], pressure);
                }
            }
        },
    ),
    gauge(
        "tollgate_load_signal_value",
        Unit::None,
        "What was last reported of each signal from outside, also where it has expired.",
        |from, to| {
            for signal in declared(from) {
                if let Some(value) = signal.value {
                    to.sample(&[("signal", &signal.name)], value);
                }
            }
        },
    ),
    gauge(
        "tollgate_load_signal_expired",
        Unit::None,
        "Whether a signal from outside is no longer reported: 1 from its expiry on.",
        |from, to| {
            for signal in declared(from) {
                let is_expired = matches!(signal.freshness, Freshness::Expired(_));
                to.sample(&[("signal", &signal.name)], u8::from(is_expired));
            }
        },
    ),
    gauge(
        "tollgate_load_admitted_ratio",
        Unit::None,
        "The share of requests that is not shed; 1 while none are.",
        |from, to| to.sample(&[], status(from).admit),
    ),
    counter(
        "tollgate_load_given_up_total",
        Unit::None,
        "Requests that got no exact answer for lack of time or room, by why and what they got.",
        |from, to| {
            let counts = from.service.overload().counts();
            for (reason, row) in OverloadReason::ALL.into_iter().zip(counts.given_up) {
                for (instead, count) in Instead::ALL.into_iter().zip(row) {
                    let labels = [("reason", reason.name()), ("answer", instead.name())];
                    to.sample(&labels, count);
                }
            }
        },
    ),
];

fn status(from: &Reading<'_>) -> OverloadStatus {
    from.service.overload().status(from.now)
}

/// Those that are not built in.
fn declared(from: &Reading<'_>) -> impl Iterator<Item = SignalStatus> {
    status(from).signals.into_iter().filter(|signal| !signal.is_built_in)
}
