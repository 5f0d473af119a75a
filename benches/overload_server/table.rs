//! What was measured as Markdown.

use std::fmt::Write;

use crate::Manager;
use crate::load::Outcome;

/// A row for each tier, off and on beside each other.
pub(crate) fn write_tiers<'o>(
    page: &mut String,
    outcomes: impl Iterator<Item = (Manager, &'o Outcome)>,
) {
    page.push_str(
        "| load manager | tier | offered/s | good/s | good | refused | p50 ms | p99 ms |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for (manager, outcome) in outcomes {
        for (number, tier) in outcome.tiers.iter().enumerate() {
            let share = |part: u64| part as f64 * 100.0 / tier.offered.max(1) as f64;
            writeln!(
                page,
                "| {} | t{number} | {:.0} | {:.0} | {:.1} % | {:.1} % | {:.1} | {:.1} |",
                manager.name(),
                tier.offered as f64 / outcome.span_s,
                tier.good as f64 / outcome.span_s,
                share(tier.good),
                share(tier.refused),
                tier.percentile(0.5),
                tier.percentile(0.99),
            )
            .expect("a String takes all that is written");
        }
    }
}

/// All tiers together, and how far on differs from off.
pub(crate) fn write_sums(page: &mut String, outcomes: &[&Outcome]) {
    let [off, on] = outcomes else { return };
    let goodput = |outcome: &Outcome| {
        outcome.tiers.iter().map(|tier| tier.good).sum::<u64>() as f64 / outcome.span_s
    };
    let p99 = |outcome: &Outcome| {
        let all = outcome.tiers.iter().flat_map(|tier| tier.latencies.iter().copied());
        let mut all: Vec<f64> = all.collect();
        all.sort_by(f64::total_cmp);
        let at = (all.len() as f64 * 0.99) as usize;
        all.get(at.min(all.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    };
    page.push_str("\n| | off | on | change |\n|---|---:|---:|---:|\n");
    let rows = [
        ("good replies a second", goodput(off), goodput(on)),
        ("p99 of good replies, ms", p99(off), p99(on)),
        ("most resident memory, MB", off.resident_mb, on.resident_mb),
    ];
    for (name, off, on) in rows {
        let change = (on / off - 1.0) * 100.0;
        writeln!(page, "| {name} | {off:.1} | {on:.1} | {change:+.0} % |")
            .expect("a String takes all that is written");
    }
}
