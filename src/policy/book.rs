//! Every document that is known, and what is in force of it.
//!
//! A document that is refused leaves the last good one of its source in force. A tenant belongs
//! to the source that named it first; another that names it, too, is refused and looked at again
//! when the tenant becomes free. Texts that say what was said before change nothing.
//!
//! Invariants: each tenant in force is in the last good document of its owner; a new snapshot is
//! made only when a tenant or the revision changes; a batch copies the map of tenants once.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::time::Timestamp;
use crate::yaml::Complaint;

use super::compile::{Draft, compile};
use super::options::Options;
use super::snapshot::Snapshot;
use super::tenant::Tenant;

/// All documents: of each source the last good one, and why a newer one is refused.
#[derive(Debug)]
pub(crate) struct Book {
    options: Options,
    snapshot: Arc<Snapshot>,
    sources: BTreeMap<Box<str>, Source>,
    /// The revision that the last changed tenant got.
    tenant_revision: u64,
}

/// What is known of a file or key.
#[derive(Debug)]
struct Source {
    /// Of the newest text.
    revision: u64,
    /// The name that it gives to a tenant which does not say its own.
    tenant: Option<Box<str>>,
    good: Option<Good>,
    refused: Option<Refused>,
}

/// A document in force.
#[derive(Debug)]
struct Good {
    revision: u64,
    text: Bytes,
    tenants: Vec<Box<str>>,
}

#[derive(Debug)]
struct Refused {
    text: Bytes,
    complaint: Complaint,
    /// Whether it would be good if another source did not have one of its tenants.
    is_conflict: bool,
}

/// What has become of a document.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// It reads as `text` now.
    Put {
        /// The path of the file or the key in etcd.
        source: Box<str>,
        /// The name that source gives to a tenant which does not say its own.
        tenant: Option<Box<str>>,
        text: Bytes,
        revision: u64,
    },
    /// It has been removed, and its tenants with it.
    Gone { source: Box<str>, revision: u64 },
    /// After a full reload: every source that is not in this list is gone.
    Only { sources: Vec<Box<str>>, revision: u64 },
}

/// What a batch of changes did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Whether there is a new snapshot.
    pub(crate) is_new: bool,
    /// Tenants that are new or say something else than before.
    pub(crate) changed: Vec<Box<str>>,
    pub(crate) removed: Vec<Box<str>>,
    /// Documents that this batch has found wrong; not those that were refused before and have
    /// not changed.
    pub(crate) refused: Vec<DocumentStatus>,
}

/// How it stands with a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct DocumentStatus {
    pub(crate) source: Box<str>,
    /// Of the newest text of it.
    pub(crate) revision: u64,
    /// The revision whose text is in force.
    pub(crate) in_force: Option<u64>,
    /// Why the newest text is refused.
    pub(crate) error: Option<Box<str>>,
    /// Where the reason stands, from 1; zero where there is none.
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A batch while it is applied: the map of tenants is copied when the first of them changes.
struct Batch<'b> {
    tenants: Option<HashMap<Box<[u8]>, Arc<Tenant>, FixedState>>,
    before: &'b Snapshot,
    tenant_revision: u64,
    applied: Applied,
}

impl Book {
    pub(crate) fn new(options: &Options) -> Self {
        let snapshot = Snapshot { unmatched: options.unmatched, ..Snapshot::default() };
        Self {
            options: *options,
            snapshot: Arc::new(snapshot),
            sources: BTreeMap::new(),
            tenant_revision: 0,
        }
    }

    /// Takes a batch of changes; compiles only the documents in it, and those that waited for a
    /// tenant which another one had.
    pub(crate) fn apply(&mut self, changes: Vec<Change>, now: Timestamp) -> Applied {
        let before = Arc::clone(&self.snapshot);
        let mut batch = Batch {
            tenants: None,
            before: &before,
            tenant_revision: self.tenant_revision,
            applied: Applied::default(),
        };
        let mut revision = before.revision;
        for change in changes {
            revision = revision.max(self.take(change, &mut batch, now));
        }
        while self.retry(&mut batch, now) {}
        let refused = std::mem::take(&mut batch.applied.refused);
        // A conflict that ended within the batch was none.
        let is_refused = |status: &DocumentStatus| {
            self.sources.get(&status.source).is_some_and(|source| source.refused.is_some())
        };
        batch.applied.refused = refused.into_iter().filter(is_refused).collect();
        self.tenant_revision = batch.tenant_revision;
        let Batch { tenants, mut applied, .. } = batch;
        if let Some(tenants) = &tenants {
            // One that another document of the batch has taken over is still there.
            applied.removed.retain(|name| !tenants.contains_key(name.as_bytes()));
        }
        applied.is_new = tenants.is_some() || revision != before.revision;
        if applied.is_new {
            let tenants = tenants.unwrap_or_else(|| before.tenants.clone());
            let unmatched = self.options.unmatched;
            self.snapshot = Arc::new(Snapshot { revision, tenants, unmatched });
        }
        applied
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot)
    }

    /// One for each source, in the order of their names.
    pub(crate) fn status(&self) -> Vec<DocumentStatus> {
        self.sources.iter().map(|(name, source)| source.status(name)).collect()
    }

    /// The document that is in force of a tenant: its source and text.
    pub(crate) fn document(&self, tenant: &str) -> Option<(&str, &Bytes)> {
        let tenant = self.snapshot.tenant(tenant.as_bytes())?;
        let good = self.sources.get(&tenant.source)?.good.as_ref()?;
        Some((&tenant.source, &good.text))
    }

    /// Takes one change; the revision that it has.
    fn take(&mut self, change: Change, batch: &mut Batch<'_>, now: Timestamp) -> u64 {
        match change {
            Change::Put { source, tenant, text, revision } => {
                let known = self.sources.entry(source.clone()).or_insert_with(|| Source {
                    revision,
                    tenant: None,
                    good: None,
                    refused: None,
                });
                known.revision = revision;
                known.tenant = tenant;
                if !known.has_said(&text) {
                    self.put(&source, text, batch, now);
                }
                revision
            }
            Change::Gone { source, revision } => {
                self.forget(&source, batch);
                revision
            }
            Change::Only { sources, revision } => {
                let kept: HashSet<&str> = sources.iter().map(|source| &**source).collect();
                let gone: Vec<Box<str>> = self
                    .sources
                    .keys()
                    .filter(|known| !kept.contains(&***known))
                    .cloned()
                    .collect();
                for source in gone {
                    self.forget(&source, batch);
                }
                revision
            }
        }
    }

    /// Compiles a text of a source and puts it in force, or keeps why not.
    fn put(&mut self, name: &str, text: Bytes, batch: &mut Batch<'_>, now: Timestamp) {
        let Some(source) = self.sources.get_mut(name) else { return };
        let bytes_max = self.options.document_bytes_max;
        let compiled = compile(&text, source.tenant.as_deref(), bytes_max, now)
            .map_err(|complaint| (complaint, false))
            .and_then(|compiled| match batch.conflict(name, &compiled.drafts) {
                Some(complaint) => Err((complaint, true)),
                None => Ok(compiled.drafts),
            });
        match compiled {
            Ok(drafts) => {
                let tenants: Vec<Box<str>> =
                    drafts.iter().map(|(terms, _)| terms.name.clone()).collect();
                let before = source.good.take().map(|good| good.tenants).unwrap_or_default();
                for tenant in before.iter().filter(|tenant| !tenants.contains(tenant)) {
                    batch.remove(tenant);
                }
                for draft in drafts {
                    batch.insert(name, draft);
                }
                source.good = Some(Good { revision: source.revision, text, tenants });
                source.refused = None;
            }
            Err((complaint, is_conflict)) => {
                let is_new = source
                    .refused
                    .as_ref()
                    .is_none_or(|known| known.text != text || known.complaint != complaint);
                source.refused = Some(Refused { text, complaint, is_conflict });
                if is_new {
                    batch.applied.refused.push(source.status(name));
                }
            }
        }
    }

    fn forget(&mut self, source: &str, batch: &mut Batch<'_>) {
        let good = self.sources.remove(source).and_then(|source| source.good);
        for tenant in good.iter().flat_map(|good| &good.tenants) {
            batch.remove(tenant);
        }
    }

    /// Looks again at documents that waited for a tenant; whether one of them is in force now.
    fn retry(&mut self, batch: &mut Batch<'_>, now: Timestamp) -> bool {
        let waiting: Vec<(Box<str>, Bytes)> = self
            .sources
            .iter()
            .filter_map(|(name, source)| {
                let refused = source.refused.as_ref().filter(|refused| refused.is_conflict)?;
                Some((name.clone(), refused.text.clone()))
            })
            .collect();
        let mut is_done = false;
        for (name, text) in waiting {
            self.put(&name, text, batch, now);
            is_done |= self.sources.get(&name).is_some_and(|source| source.refused.is_none());
        }
        is_done
    }
}

impl Source {
    /// Whether this text is in force already. A refused one is looked at again: what was wrong
    /// may have passed, such as an `until`.
    fn has_said(&mut self, text: &Bytes) -> bool {
        match &mut self.good {
            Some(good) if good.text == text && self.refused.is_none() => {
                good.revision = self.revision;
                true
            }
            Some(_) | None => false,
        }
    }

    fn status(&self, name: &str) -> DocumentStatus {
        let complaint = self.refused.as_ref().map(|refused| &refused.complaint);
        DocumentStatus {
            source: name.into(),
            revision: self.revision,
            in_force: self.good.as_ref().map(|good| good.revision),
            error: complaint.map(|complaint| complaint.text.as_str().into()),
            line: complaint.map_or(0, |complaint| complaint.line),
            column: complaint.map_or(0, |complaint| complaint.column),
        }
    }
}

impl Batch<'_> {
    fn tenant(&self, name: &str) -> Option<&Arc<Tenant>> {
        self.tenants.as_ref().unwrap_or(&self.before.tenants).get(name.as_bytes())
    }

    fn tenants(&mut self) -> &mut HashMap<Box<[u8]>, Arc<Tenant>, FixedState> {
        self.tenants.get_or_insert_with(|| self.before.tenants.clone())
    }

    /// The complaint where another source has one of these tenants.
    fn conflict(&self, source: &str, drafts: &[Draft]) -> Option<Complaint> {
        drafts.iter().find_map(|(terms, _)| {
            let owner = &self.tenant(&terms.name)?.source;
            (**owner != *source).then(|| {
                let name = &terms.name;
                let text =
                    format!("tenant `{name}` is in `{owner}` already, and in `{source}` too");
                Complaint { line: 1, column: 1, text }
            })
        })
    }

    /// Puts a tenant in force; one that says what it said before stays what it is.
    fn insert(&mut self, source: &str, (terms, index): Draft) {
        if self.tenant(&terms.name).is_some_and(|known| known.terms == terms) {
            return;
        }
        self.tenant_revision += 1;
        self.applied.changed.push(terms.name.clone());
        let name = terms.name.as_bytes().into();
        let revision = self.tenant_revision;
        let known = self.tenant(&terms.name);
        let counts = known.map(|known| Arc::clone(&known.counts)).unwrap_or_default();
        let terms = match known {
            Some(known) => terms.with_counts_of(known),
            None => terms,
        };
        let tenant = Tenant { revision, source: source.into(), counts, terms, index };
        self.tenants().insert(name, Arc::new(tenant));
    }

    fn remove(&mut self, tenant: &str) {
        self.tenants().remove(tenant.as_bytes());
        self.applied.removed.push(tenant.into());
    }
}
