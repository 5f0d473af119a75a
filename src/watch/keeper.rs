//! Hands news to the book of policies, and tells what came of it: to the log, to who counts, and
//! to the disk.
//!
//! A fault is told once, however often it is met; so is its end. Every batch that changes
//! something is one line of the log.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

use super::last_good::{self, Kept};
use super::replica::{DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Document, Item, Replica};
use super::thread::Target;
use super::{Fault, News, is_away};
use crate::policy::{Applied, Change, DocumentStatus};
use crate::telemetry::PolicyFault;
use crate::time::Duration;

/// Changes within this time are one: a tenant that changes without end is compiled twenty
/// times a second, and no more.
pub(super) const COALESCE: Duration = Duration::from_millis(50);

/// How often the last good documents may be written anew, and what a crash may cost of them.
const WRITE_PERIOD: Duration = Duration::from_secs(2);

/// Faults remembered as told. Beyond them one may be told again.
const TOLD_MAX: usize = 1_000;

/// Names a tenant after the source of its document.
pub(super) type TenantOf = fn(&str) -> Option<Box<str>>;

#[derive(Debug)]
pub(super) struct Keeper {
    target: Target,
    replica: Replica,
    last_good: Option<PathBuf>,
    /// There is something in force that the disk does not hold.
    unwritten: bool,
    source_revision: u64,
    /// The source was away when it was last asked, and somebody was told.
    away: bool,
    /// Of each fault told, what it is of, and in which round it was last met.
    told: HashMap<String, (PolicyFault, u64)>,
    /// Times that everything was read.
    round: u64,
    /// Who waits for the first time that something is known of the source.
    first: Option<SyncSender<Result<(), Fault>>>,
}

impl Keeper {
    pub(super) fn new(
        target: Target,
        last_good: Option<PathBuf>,
        first: SyncSender<Result<(), Fault>>,
    ) -> Self {
        Self {
            target,
            replica: Replica::default(),
            last_good,
            unwritten: false,
            source_revision: 0,
            away: false,
            told: HashMap::new(),
            round: 0,
            first: Some(first),
        }
    }

    /// Begins with what was last good. Returns how many documents that are.
    pub(super) fn begin(&mut self, tenant_of: TenantOf) -> usize {
        let Some(path) = &self.last_good else { return 0 };
        match last_good::read(path) {
            Ok(kept) => {
                let count = kept.len();
                let documents = kept.into_iter().map(|Kept { source, revision, text }| Document {
                    tenant: tenant_of(&source),
                    source,
                    text,
                    revision,
                });
                self.replica.all(documents.collect(), &[], 0);
                self.hand_on();
                self.unwritten = false;
                count
            }
            Err(error) => {
                let text = format!("read {}: {error}", path.display());
                self.fault(&Fault::new(PolicyFault::LastGood, text));
                0
            }
        }
    }

    /// Keeps policies up to date until the source has ended.
    pub(super) async fn keep(&mut self, mut news: mpsc::Receiver<News>) {
        let mut write = interval(WRITE_PERIOD.as_std());
        write.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                told = news.recv() => {
                    let Some(told) = told else { break };
                    self.hear(told);
                    self.hear_more(&mut news).await;
                    self.hand_on();
                    if self.round > 0 {
                        self.answer_first(Ok(()));
                    }
                }
                _ = write.tick() => self.write(),
            }
        }
    }

    /// Hears what else comes soon. What is complete anyway need not wait.
    async fn hear_more(&mut self, news: &mut mpsc::Receiver<News>) {
        if self.first.is_some() {
            return;
        }
        let over = sleep(COALESCE.as_std());
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                told = news.recv() => match told {
                    Some(told) => self.hear(told),
                    None => return,
                }
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::All { documents, kept, revision } => {
                let over = self.replica.all(documents, &kept, revision);
                (0..over).for_each(|_| self.full());
                self.source_revision = revision;
                self.is_back();
                self.end_round();
            }
            News::Some { items, revision } => {
                for item in items {
                    if self.replica.item(item).is_err() {
                        self.full();
                    }
                }
                self.source_revision = revision;
                self.is_back();
            }
            News::Fault(fault) => self.fault(&fault),
        }
    }

    fn full(&mut self) {
        let text = format!(
            "there are more than {DOCUMENTS_MAX} documents, or more than {DOCUMENTS_BYTES_MAX} \
             bytes of them"
        );
        self.fault(&Fault::new(PolicyFault::Full, text));
    }

    fn fault(&mut self, fault: &Fault) {
        self.target.events.failed(fault.reason);
        if is_away(fault.reason) {
            self.target.events.source_up.set(0.0);
            self.away = true;
            self.answer_first(Err(fault.clone()));
        }
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        let reason = fault.reason.name();
        if self.told.insert(fault.text.clone(), (fault.reason, self.round)).is_none() {
            warn!(reason, err = %fault.text, "policies could not be read, the last good ones hold");
        }
    }

    /// The source answers.
    fn is_back(&mut self) {
        self.target.events.source_up.set(1.0);
        if std::mem::take(&mut self.away) {
            self.told.retain(|_, (reason, _)| !is_away(*reason));
            info!(revision = self.source_revision, "the source of policies answers again");
        }
    }

    /// Everything was read: what was not met on the way is over, and told when it is met again.
    fn end_round(&mut self) {
        let round = self.round;
        self.told.retain(|_, (reason, met)| {
            *met == round || !matches!(reason, PolicyFault::Unreadable | PolicyFault::Full)
        });
        self.round += 1;
    }

    fn answer_first(&mut self, answer: Result<(), Fault>) {
        if let Some(first) = self.first.take() {
            // An error means that nobody waits any longer.
            drop(first.send(answer));
        }
    }

    /// Gives the book what is news.
    fn hand_on(&mut self) {
        let events = &self.target.events;
        events.changes_skipped.increment(self.replica.skipped());
        let batch = self.replica.take();
        if batch.is_empty() {
            self.count_revisions();
            return;
        }
        let removed = batch.iter().filter(|item| matches!(item, Item::Gone { .. })).count();
        let (documents, now) = (batch.len(), self.target.clock.now());
        let changes = batch.into_iter().map(change).collect();
        let applied = self.target.service.policies().apply(changes, now);
        let refused = applied.refused.len();
        events.reloads.increment(1);
        events.changes_removed.increment(removed as u64);
        events.changes_refused.increment(refused as u64);
        events.changes_applied.increment(documents.saturating_sub(removed + refused) as u64);
        self.unwritten |= applied.is_new;
        self.tell(&applied, documents);
        self.count_documents();
        self.count_revisions();
    }

    fn tell(&self, applied: &Applied, documents: usize) {
        for DocumentStatus { source, revision, error, line, column, .. } in &applied.refused {
            self.target.events.failed(PolicyFault::Document);
            let err = error.as_deref().unwrap_or_default();
            warn!(
                %source, revision, line, column, err,
                "a policy document is refused, its last good version holds"
            );
        }
        info!(
            revision = self.source_revision,
            documents,
            tenants_changed = applied.changed.len(),
            tenants_removed = applied.removed.len(),
            refused = applied.refused.len(),
            "policies taken over"
        );
    }

    fn count_documents(&self) {
        let [mut in_force, mut outdated, mut refused] = [0_u32; 3];
        for status in self.target.service.policies().status() {
            match (status.error, status.in_force) {
                (None, _) => in_force += 1,
                (Some(_), Some(_)) => outdated += 1,
                (Some(_), None) => refused += 1,
            }
        }
        let events = &self.target.events;
        events.documents_in_force.set(in_force);
        events.documents_outdated.set(outdated);
        events.documents_refused.set(refused);
    }

    fn count_revisions(&self) {
        let events = &self.target.events;
        events.revision.set(self.target.service.policies().snapshot().revision as f64);
        events.source_revision.set(self.source_revision as f64);
    }

    /// Writes what is in force to disk, where that is kept and not there yet.
    pub(super) fn write(&mut self) {
        let Some(path) = self.last_good.as_ref().filter(|_| self.unwritten) else { return };
        match last_good::write(path, &self.in_force()) {
            Ok(()) => {
                self.unwritten = false;
                self.told.retain(|_, (reason, _)| *reason != PolicyFault::LastGood);
            }
            // Tried again, for it may be a disk that is full just now.
            Err(error) => {
                let text = format!("write {}: {error}", path.display());
                self.fault(&Fault::new(PolicyFault::LastGood, text));
            }
        }
    }

    fn in_force(&self) -> Vec<Kept> {
        let policies = self.target.service.policies();
        let status = policies.status();
        let snapshot = Arc::clone(&policies.snapshot());
        let mut tenants: HashMap<&str, &str> = HashMap::new();
        for tenant in snapshot.tenants() {
            tenants.insert(&tenant.source, &tenant.name);
        }
        let kept = status.iter().filter_map(|status| {
            let (source, text) = policies.document(tenants.get(&*status.source)?)?;
            Some(Kept { source, revision: status.in_force?, text })
        });
        kept.collect()
    }
}

fn change(item: Item) -> Change {
    match item {
        Item::Put(Document { source, tenant, text, revision }) => {
            Change::Put { source, tenant, text, revision }
        }
        Item::Gone { source, revision } => Change::Gone { source, revision },
    }
}
