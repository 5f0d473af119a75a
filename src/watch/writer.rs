//! The way to write policies: to where they come from, and nowhere else.
//!
//! An order is taken, carried out on the thread of the watch, and answered in any case, a stop
//! included. What was written comes back by the watch, and only then is it in force.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use tokio::sync::mpsc;

use super::disk;
use super::files::is_document;
use crate::commands::{PolicyAnswer, PolicyOrder, PolicyRefusal};

/// Orders that wait to be carried out; people give them.
const ORDERS_MAX: usize = 64;

/// Bytes of a tenant's name that can be the name of a file: it gets an ending, and the system
/// takes 255.
const NAME_BYTES_MAX: usize = 200;

/// Takes orders from any thread.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    orders: mpsc::Sender<(PolicyOrder, Answering)>,
}

impl Writer {
    /// Takes an order, without waiting for anything. `answer` is called on another thread, or here
    /// where too many wait.
    pub(crate) fn submit(&self, order: PolicyOrder, answer: PolicyAnswer) {
        let refused = self.orders.try_send((order, Answering(Some(answer))));
        if let Err(mpsc::error::TrySendError::Full((_, answering))) = refused {
            answering.answer(Err(PolicyRefusal::Busy));
        }
    }
}

/// Answers when it is dropped, at the latest.
pub(super) struct Answering(Option<PolicyAnswer>);

impl Answering {
    fn answer(mut self, result: Result<(), PolicyRefusal>) {
        if let Some(answer) = self.0.take() {
            answer(result);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer(Err(PolicyRefusal::Failed("the server stops".to_owned())));
        }
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}

pub(super) type Orders = mpsc::Receiver<(PolicyOrder, Answering)>;

/// Where orders are carried out.
pub(super) trait Store {
    async fn carry_out(&mut self, order: PolicyOrder) -> Result<(), PolicyRefusal>;
}

pub(super) fn new() -> (Writer, Orders) {
    let (orders, taken) = mpsc::channel(ORDERS_MAX);
    (Writer { orders }, taken)
}

/// Carries orders out, one after another.
pub(super) async fn serve(mut store: impl Store, mut orders: Orders) {
    while let Some((order, answering)) = orders.recv().await {
        answering.answer(store.carry_out(order).await);
    }
    // Nobody can give orders any longer; that is no reason for the watch to end.
    std::future::pending::<()>().await;
}

/// A folder, where each tenant has a file.
#[derive(Debug)]
pub(super) struct FolderStore(pub(super) PathBuf);

impl Store for FolderStore {
    async fn carry_out(&mut self, order: PolicyOrder) -> Result<(), PolicyRefusal> {
        let failed = |error: std::io::Error| PolicyRefusal::Failed(error.to_string());
        if !std::fs::metadata(&self.0).map_err(failed)?.is_dir() {
            return Err(PolicyRefusal::OneFile(self.0.display().to_string()));
        }
        let path = self.place(&order)?;
        if let Some(expected) = &order.instead_of {
            // Our own orders come one after another; whoever else writes into the folder may come
            // between this look and the writing, for a folder knows no transactions.
            match disk::read(&path, expected.len()) {
                Ok(found) if found == *expected => {}
                Ok(_) => return Err(PolicyRefusal::Changed),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(PolicyRefusal::Changed);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        match order.text {
            Some(text) => disk::replace(&path, &text).map_err(failed),
            None => std::fs::remove_file(&path).map_err(failed),
        }
    }
}

impl FolderStore {
    /// Within the folder, whatever the order says.
    fn place(&self, order: &PolicyOrder) -> Result<PathBuf, PolicyRefusal> {
        let known = order.source.as_deref().map(Path::new).filter(|path| {
            let inside = path.strip_prefix(&self.0);
            let is_plain = |part| matches!(part, Component::Normal(_));
            inside.is_ok_and(|inside| inside.components().all(is_plain)) && is_document(path)
        });
        if let Some(path) = known {
            return Ok(path.to_owned());
        }
        let name = &*order.tenant;
        let is_name = !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && !name.starts_with('.')
            && !name.contains(['/', '\0']);
        is_name.then(|| self.0.join(format!("{name}.yaml"))).ok_or(PolicyRefusal::Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use bytes::Bytes;
    use std::sync::mpsc::sync_channel;

    fn order(tenant: &str, source: Option<&str>, text: Option<&'static str>) -> PolicyOrder {
        PolicyOrder {
            tenant: tenant.into(),
            source: source.map(Into::into),
            text: text.map(|text| Bytes::from_static(text.as_bytes())),
            instead_of: None,
        }
    }

    fn carry_out(path: &Path, order: PolicyOrder) -> Result<(), PolicyRefusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(FolderStore(path.to_owned()).carry_out(order))
    }

    #[test]
    fn tenant_of_a_folder_has_a_file_until_it_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("acme.yaml");
        carry_out(folder.path(), order("acme", None, Some("one"))).expect("it is written");
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "one");
        let source = file.to_str();
        carry_out(folder.path(), order("other", source, Some("two"))).expect("it is written");
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "two");
        carry_out(folder.path(), order("acme", source, None)).expect("it is removed");
        assert!(!file.exists());
        let again = carry_out(folder.path(), order("acme", source, None));
        assert!(matches!(again, Err(PolicyRefusal::Failed(_))));
    }

    #[test]
    fn file_is_written_only_in_place_of_what_was_meant() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("acme.yaml");
        let in_place_of = |before, text| {
            let instead_of = Some(Bytes::from_static(before));
            let order = PolicyOrder { instead_of, ..order("acme", None, Some(text)) };
            carry_out(folder.path(), order)
        };
        assert_eq!(in_place_of(b"", "new"), Err(PolicyRefusal::Changed), "it is not there");
        std::fs::write(&file, "one").expect("it is written");
        for other in [b"on".as_slice(), b"one ", b"ONE", b""] {
            assert_eq!(in_place_of(other, "new"), Err(PolicyRefusal::Changed));
        }
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "one");
        assert_eq!(in_place_of(b"one", "two"), Ok(()));
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "two");
    }

    #[test]
    fn no_order_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let outside = inner.join("../outside.yaml");
        carry_out(&inner, order("a", outside.to_str(), Some("x"))).expect("by its name");
        assert!(inner.join("a.yaml").exists() && !folder.path().join("outside.yaml").exists());
        for name in ["", "..", ".hidden", "../b", "a/b", "a\0b", &"n".repeat(201)] {
            assert_eq!(carry_out(&inner, order(name, None, Some("x"))), Err(PolicyRefusal::Name));
        }
    }

    #[test]
    fn single_file_is_not_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("all.yaml");
        std::fs::write(&file, "mine").expect("it is written");
        let refused = carry_out(&file, order("acme", None, Some("x")));
        assert!(matches!(refused, Err(PolicyRefusal::OneFile(_))));
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");
    }

    #[test]
    fn order_is_answered_though_nobody_carries_it_out() {
        let (answers, heard) = sync_channel(ORDERS_MAX + 2);
        let (writer, orders) = new();
        for _ in 0..=ORDERS_MAX {
            let answers = answers.clone();
            let answer = move |result| answers.send(result).expect("there is room");
            writer.submit(order("a", None, None), Box::new(answer));
        }
        assert_eq!(heard.try_recv(), Ok(Err(PolicyRefusal::Busy)));
        drop(orders);
        for _ in 0..ORDERS_MAX {
            assert!(matches!(heard.try_recv(), Ok(Err(PolicyRefusal::Failed(_)))));
        }
        writer.submit(order("a", None, None), Box::new(move |result| drop(answers.send(result))));
        assert!(matches!(heard.try_recv(), Ok(Err(PolicyRefusal::Failed(_)))));
    }
}
