//! The section `Load` of INFO: how the load manager stands, and what was given up.

use std::fmt::Write;

use super::call::Call;
use super::degrade::state;
use super::overload::{Instead, Reason};

pub(super) fn load(call: &Call<'_, '_>, out: &mut String) {
    let overload = call.service.overload();
    let status = overload.status(call.now);
    let forced = status.forced.map_or("no", |level| level.name());
    let (signal, pressure) = status.highest.unwrap_or(("none".to_owned(), 0.0));
    let cut_at = status.cut_at.map_or("none", |tier| tier.name());
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        writeln!(out, "{name}:{value}").expect("a String takes all that is written");
    };
    line("degrade_level", &status.level.number());
    line("degrade_gives_up", &status.level.name());
    line("degrade_forced", &forced);
    line("load_pressure", &format_args!("{:.3}", status.estimate));
    line("load_highest", &format_args!("{signal}={pressure:.3}"));
    line("load_admitted", &format_args!("{:.3}", status.admit));
    line("load_cut_at", &cut_at);
    for signal in status.signals {
        let pressure = signal.pressure.map_or("none".to_owned(), |number| format!("{number:.3}"));
        let state = state(signal.freshness);
        line(
            &format!("load_signal_{}", signal.name),
            &format_args!("pressure={pressure},state={state},kind={}", signal.kind.name()),
        );
    }
    for (reason, row) in Reason::ALL.into_iter().zip(overload.counts().given_up) {
        let counts = Instead::ALL.into_iter().zip(row);
        let counts = counts.map(|(instead, count)| format!("{}={count}", instead.name()));
        let counts = counts.collect::<Vec<_>>().join(",");
        line(&format!("load_given_up_{}", reason.name()), &counts);
    }
}
