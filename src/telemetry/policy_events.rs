//! What becomes of policies, as the room that watches their source counts it.

use metrics::{Counter, Gauge};
use metrics_exporter_prometheus::PrometheusRecorder;

use super::events::{counter, gauge};
use super::metrics::{
    POLICY_CHANGES, POLICY_DOCUMENTS, POLICY_FAILURES, POLICY_RELOADS, POLICY_REVISION,
    POLICY_SOURCE_REVISION, POLICY_SOURCE_UP,
};

/// Why something is not in force.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PolicyFault {
    /// A document says something that cannot be.
    Document,
    /// A document is there and cannot be read.
    Unreadable,
    /// The path is not there, or no member of the cluster can be reached.
    Unreachable,
    /// The source answers, and will not have us: a wrong password, no right to read.
    Denied,
    /// What told of changes has ended.
    Lost,
    /// The source has forgotten the changes since the last one known; all is read again.
    Compacted,
    /// More documents, or more bytes, than are held.
    Full,
    /// The last good documents cannot be written, or not be read.
    LastGood,
}

impl PolicyFault {
    const ALL: [Self; 8] = [
        Self::Document,
        Self::Unreadable,
        Self::Unreachable,
        Self::Denied,
        Self::Lost,
        Self::Compacted,
        Self::Full,
        Self::LastGood,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Unreadable => "unreadable",
            Self::Unreachable => "unreachable",
            Self::Denied => "denied",
            Self::Lost => "lost",
            Self::Compacted => "compacted",
            Self::Full => "full",
            Self::LastGood => "last_good",
        }
    }
}

/// The events of one server's policies. A field is the handle of what it is named after.
#[derive(Debug)]
pub(crate) struct PolicyEvents {
    pub(crate) reloads: Counter,
    pub(crate) changes_applied: Counter,
    pub(crate) changes_refused: Counter,
    pub(crate) changes_removed: Counter,
    pub(crate) changes_skipped: Counter,
    /// Documents whose newest version holds.
    pub(crate) documents_in_force: Gauge,
    /// Documents of which an earlier version holds.
    pub(crate) documents_outdated: Gauge,
    /// Documents that never were right.
    pub(crate) documents_refused: Gauge,
    pub(crate) revision: Gauge,
    pub(crate) source_revision: Gauge,
    pub(crate) source_up: Gauge,
    failures: [Counter; PolicyFault::ALL.len()],
}

impl PolicyEvents {
    pub(super) fn new(recorder: &PrometheusRecorder) -> Self {
        let changes = |outcome| counter(recorder, &POLICY_CHANGES, &[("outcome", outcome)]);
        let documents = |state| gauge(recorder, &POLICY_DOCUMENTS, &[("state", state)]);
        Self {
            reloads: counter(recorder, &POLICY_RELOADS, &[]),
            changes_applied: changes("applied"),
            changes_refused: changes("refused"),
            changes_removed: changes("removed"),
            changes_skipped: changes("skipped"),
            documents_in_force: documents("in_force"),
            documents_outdated: documents("outdated"),
            documents_refused: documents("refused"),
            revision: gauge(recorder, &POLICY_REVISION, &[]),
            source_revision: gauge(recorder, &POLICY_SOURCE_REVISION, &[]),
            source_up: gauge(recorder, &POLICY_SOURCE_UP, &[]),
            failures: PolicyFault::ALL
                .map(|fault| counter(recorder, &POLICY_FAILURES, &[("reason", fault.name())])),
        }
    }

    pub(crate) fn failed(&self, fault: PolicyFault) {
        self.failures[fault as usize].increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Events;

    #[test]
    fn fault_is_counted_under_its_own_name() {
        let events = Events::new();
        let policies = events.policies();
        for (count, fault) in PolicyFault::ALL.into_iter().enumerate() {
            (0..=count).for_each(|_| policies.failed(fault));
        }
        let page = events.render();
        for (count, fault) in PolicyFault::ALL.into_iter().enumerate() {
            let line = format!("failures_total{{reason=\"{}\"}} {}\n", fault.name(), count + 1);
            assert!(page.contains(&line), "{line} in {page}");
        }
    }
}
