//! What the source is known to hold, and what of it has not been handed on yet.
//!
//! Sources tell more than is news: a full reload repeats everything, a file may be touched
//! without a change, a key may change a thousand times a second. Here all that becomes the least
//! that the book of policies must be told: for each document its newest text, once, and only
//! where it differs from the one before. No I/O, no time; the keeper decides when to take.
//!
//! Invariants: one pending version a document. Documents and their bytes in all are bounded; what
//! does not fit is refused and leaves its earlier version.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Documents of one source. A tenant has one; ten times as many as a large platform has.
pub(super) const DOCUMENTS_MAX: usize = 100_000;

/// Bytes of all documents together: about two and a half kilobytes for each of that many.
pub(super) const DOCUMENTS_BYTES_MAX: usize = 256 << 20;

/// A document as its source holds it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Document {
    /// Path of the file, or key in etcd.
    pub(super) source: Box<str>,
    /// Whose it is where the text does not say: by the name of the file or key.
    pub(super) tenant: Option<Box<str>>,
    pub(super) text: Bytes,
    /// By which the source counts; later ones are greater.
    pub(super) revision: u64,
}

/// A change of one document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Item {
    Put(Document),
    Gone { source: Box<str>, revision: u64 },
}

impl Item {
    fn order(&self) -> (bool, u64, &str) {
        match self {
            Self::Gone { source, revision } => (false, *revision, source),
            Self::Put(document) => (true, document.revision, &document.source),
        }
    }
}

/// More documents than are held, or more bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Full;

#[derive(Debug)]
pub(super) struct Replica {
    documents_max: usize,
    bytes_max: usize,
    known: HashMap<Box<str>, Known>,
    known_bytes: usize,
    pending: HashMap<Box<str>, Item>,
    /// Versions that a later one replaced before they were taken.
    skipped: u64,
}

#[derive(Debug)]
struct Known {
    digest: [u8; 32],
    bytes: usize,
}

impl Default for Replica {
    fn default() -> Self {
        Self::bounded(DOCUMENTS_MAX, DOCUMENTS_BYTES_MAX)
    }
}

impl Replica {
    fn bounded(documents_max: usize, bytes_max: usize) -> Self {
        Self {
            documents_max,
            bytes_max,
            known: HashMap::new(),
            known_bytes: 0,
            pending: HashMap::new(),
            skipped: 0,
        }
    }

    /// Everything that the source holds now, and what stays because it cannot be read. Returns
    /// how many documents did not fit.
    pub(super) fn all(
        &mut self,
        documents: Vec<Document>,
        kept: &[Box<str>],
        revision: u64,
    ) -> usize {
        let read: HashSet<&str> = documents.iter().map(|document| &*document.source).collect();
        let kept: HashSet<&str> = kept.iter().map(|source| &**source).collect();
        // What cannot be read may be a folder with all that is in it.
        let stays = |source: &str| {
            let mut above = source.match_indices('/').map(|(end, _)| &source[..end]);
            kept.contains(source) || !kept.is_empty() && above.any(|above| kept.contains(above))
        };
        let gone = self.known.keys().filter(|source| !read.contains(&***source) && !stays(source));
        for source in gone.cloned().collect::<Vec<_>>() {
            self.gone(source, revision);
        }
        documents.into_iter().filter_map(|document| self.put(document).err()).count()
    }

    pub(super) fn item(&mut self, item: Item) -> Result<(), Full> {
        match item {
            Item::Put(document) => return self.put(document),
            Item::Gone { source, revision } => self.gone(source, revision),
        }
        Ok(())
    }

    fn put(&mut self, document: Document) -> Result<(), Full> {
        let bytes = document.source.len() + document.text.len();
        let digest: [u8; 32] = Sha256::digest(&document.text).into();
        let before = self.known.get(&document.source);
        if before.is_some_and(|known| known.digest == digest) {
            return Ok(());
        }
        let others_bytes = self.known_bytes - before.map_or(0, |known| known.bytes);
        let is_new = usize::from(before.is_none());
        if self.known.len() + is_new > self.documents_max || others_bytes + bytes > self.bytes_max {
            return Err(Full);
        }
        self.known_bytes = others_bytes + bytes;
        self.known.insert(document.source.clone(), Known { digest, bytes });
        self.pend(document.source.clone(), Item::Put(document));
        Ok(())
    }

    fn gone(&mut self, source: Box<str>, revision: u64) {
        if let Some(known) = self.known.remove(&source) {
            self.known_bytes -= known.bytes;
            self.pend(source.clone(), Item::Gone { source, revision });
        }
    }

    fn pend(&mut self, source: Box<str>, version: Item) {
        if self.pending.insert(source, version).is_some() {
            self.skipped += 1;
        }
    }

    /// Versions that nobody will see, since the last time this was asked.
    pub(super) fn skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    /// What to hand on: first what has gone, so that a tenant may move from one document to
    /// another in one go; then the rest, older revisions first.
    pub(super) fn take(&mut self) -> Vec<Item> {
        let mut items: Vec<Item> = self.pending.drain().map(|(_, item)| item).collect();
        items.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(source: &str, text: &str, revision: u64) -> Document {
        Document {
            source: source.into(),
            tenant: None,
            text: Bytes::copy_from_slice(text.as_bytes()),
            revision,
        }
    }

    fn gone(source: &str, revision: u64) -> Item {
        Item::Gone { source: source.into(), revision }
    }

    fn put(source: &str, text: &str, revision: u64) -> Item {
        Item::Put(document(source, text, revision))
    }

    #[test]
    fn thousand_changes_of_one_document_are_handed_on_as_its_last() {
        let mut replica = Replica::default();
        for revision in 1..=1_000 {
            replica.item(put("a", &revision.to_string(), revision)).expect("it fits");
        }
        assert_eq!(replica.skipped(), 999);
        assert_eq!(replica.take(), [put("a", "1000", 1_000)]);
        assert!(replica.take().is_empty());
    }

    #[test]
    fn same_text_again_is_no_news() {
        let mut replica = Replica::default();
        assert_eq!(replica.all(vec![document("a", "x", 1), document("b", "y", 2)], &[], 9), 0);
        replica.take();
        assert_eq!(replica.all(vec![document("a", "x", 7), document("b", "y", 8)], &[], 9), 0);
        replica.item(put("a", "x", 9)).expect("it fits");
        assert!(replica.take().is_empty());
    }

    #[test]
    fn full_reload_finds_what_has_gone_and_what_has_changed() {
        let mut replica = Replica::default();
        replica.all(
            vec![document("a", "x", 1), document("b", "y", 2), document("c", "z", 3)],
            &[],
            9,
        );
        replica.take();
        replica.all(vec![document("c", "z", 3), document("b", "new", 5)], &[], 9);
        assert_eq!(replica.take(), [gone("a", 9), put("b", "new", 5)]);
    }

    #[test]
    fn full_reload_keeps_what_could_not_be_read() {
        let mut replica = Replica::default();
        let sources = ["a", "b", "c/d", "cc/d"];
        replica.all(sources.map(|source| document(source, "x", 1)).to_vec(), &[], 9);
        replica.take();
        replica.all(Vec::new(), &["b".into(), "c".into()], 9);
        assert_eq!(replica.take(), [gone("a", 9), gone("cc/d", 9)]);
    }

    #[test]
    fn what_has_gone_is_told_before_what_has_come() {
        let mut replica = Replica::default();
        replica.item(put("z", "1", 1)).expect("it fits");
        replica.take();
        replica.item(put("b", "2", 4)).expect("it fits");
        replica.item(put("a", "3", 5)).expect("it fits");
        replica.item(gone("z", 9)).expect("it fits");
        assert_eq!(replica.take(), [gone("z", 9), put("b", "2", 4), put("a", "3", 5)]);
    }

    #[test]
    fn document_that_nobody_knew_leaves_nothing_when_it_goes() {
        let mut replica = Replica::default();
        replica.item(gone("a", 9)).expect("it fits");
        assert!(replica.take().is_empty());
    }

    #[test]
    fn document_that_does_not_fit_leaves_its_earlier_version() {
        let mut replica = Replica::bounded(2, 100);
        let large = "#".repeat(50);
        assert_eq!(replica.all(vec![document("a", &large, 1), document("b", "x", 2)], &[], 9), 0);
        replica.take();
        assert_eq!(replica.item(put("b", &large, 3)), Err(Full));
        assert_eq!(replica.item(put("c", "x", 3)), Err(Full));
        assert!(replica.take().is_empty());
        replica.item(gone("a", 9)).expect("it fits");
        assert_eq!(replica.item(put("b", &large, 3)), Ok(()));
        assert_eq!(replica.item(put("c", "x", 3)), Ok(()));
    }
}
