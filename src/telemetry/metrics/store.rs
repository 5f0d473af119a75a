//! The rows of what outlives the process; without a data folder they have no samples.

use super::{Metric, Reading, Unit, counter, gauge};
use crate::commands::StoreFacts;
use crate::telemetry::render::Family;

pub(super) const METRICS: &[Metric] = &[
    gauge(
        "tollgate_store_degraded",
        Unit::None,
        "Whether the disk refuses what is counted: 1, and a crash would lose it, or 0.",
        |from, to| sample(from, to, |kept| u64::from(!kept.journal_ok)),
    ),
    counter(
        "tollgate_store_failed_writes_total",
        Unit::None,
        "Times that the disk did not take a journal or a snapshot.",
        |from, to| sample(from, to, |kept| kept.failures),
    ),
    counter(
        "tollgate_store_overflows_total",
        Unit::None,
        "Times that keys were deleted faster than the disk could follow.",
        |from, to| sample(from, to, |kept| kept.overflows),
    ),
    gauge(
        "tollgate_store_journal_bytes",
        Unit::Bytes,
        "The journals behind the last snapshot: what a start would have to read besides.",
        |from, to| sample(from, to, |kept| kept.journal_bytes),
    ),
    counter(
        "tollgate_store_journal_written_bytes_total",
        Unit::Bytes,
        "Bytes written to journals.",
        |from, to| sample(from, to, |kept| kept.journal_written_bytes),
    ),
    counter(
        "tollgate_store_syncs_total",
        Unit::None,
        "Times that the journal was made to reach the disk.",
        |from, to| sample(from, to, |kept| kept.syncs),
    ),
    counter(
        "tollgate_store_sync_seconds_total",
        Unit::Seconds,
        "Time that the disk took for that.",
        |from, to| sample(from, to, |kept| kept.sync_time.as_micros() as f64 / 1e6),
    ),
    gauge(
        "tollgate_store_sync_last_seconds",
        Unit::Seconds,
        "Time that the disk took for it last.",
        |from, to| sample(from, to, |kept| kept.last_sync_time.as_micros() as f64 / 1e6),
    ),
    gauge(
        "tollgate_store_snapshot_age_seconds",
        Unit::Seconds,
        "Time since the last snapshot was whole, or since the start where there was none.",
        |from, to| {
            let now = from.now;
            sample(from, to, |kept| now.since(kept.saved_at).as_micros() as f64 / 1e6);
        },
    ),
    gauge("tollgate_store_snapshot_bytes", Unit::Bytes, "The last snapshot.", |from, to| {
        sample(from, to, |kept| kept.saved_bytes);
    }),
    gauge(
        "tollgate_store_snapshot_running",
        Unit::None,
        "Whether a snapshot is being made: 1 or 0.",
        |from, to| sample(from, to, |kept| u64::from(kept.saving_since.is_some())),
    ),
    counter(
        "tollgate_store_snapshots_total",
        Unit::None,
        "Snapshots and backups made.",
        |from, to| sample(from, to, |kept| kept.saves),
    ),
    gauge(
        "tollgate_store_restored_records",
        Unit::None,
        "What the start took over from the data folder.",
        |from, to| sample(from, to, |kept| kept.restored),
    ),
    gauge("tollgate_store_restore_seconds", Unit::Seconds, "Time that this took.", |from, to| {
        sample(from, to, |kept| kept.restore_time.as_micros() as f64 / 1e6);
    }),
    gauge(
        "tollgate_store_damaged_bytes",
        Unit::Bytes,
        "What the start could not read of the data folder.",
        |from, to| sample(from, to, |kept| kept.damaged_bytes),
    ),
];

fn sample<V: std::fmt::Display>(
    from: &Reading<'_>,
    to: &mut Family<'_>,
    value: impl FnOnce(&StoreFacts) -> V,
) {
    if let Some(kept) = &from.store {
        to.sample(&[], value(kept));
    }
}
