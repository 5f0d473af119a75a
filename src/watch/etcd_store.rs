//! Writes policies to etcd: a document is a key.
//!
//! A connection is kept between orders. What fails is tried with every member once more: to write
//! the same text again, or to remove what has gone, changes nothing. What shall be written in place
//! of one text only is written in a transaction on the revision at which that was read.

use etcd_client::{Client, Compare, CompareOp, Error, Txn, TxnOp};
use tokio::time::timeout;

use super::Fault;
use super::members::{Members, REQUEST_TIME_MAX};
use super::writer::Store;
use crate::commands::{PolicyOrder, PolicyRefusal};
use crate::telemetry::PolicyFault;

#[derive(Clone)]
pub(super) struct EtcdStore {
    members: Members,
    client: Option<Client>,
}

impl Store for EtcdStore {
    async fn carry_out(&mut self, order: PolicyOrder) -> Result<(), PolicyRefusal> {
        let prefix = self.members.prefix();
        let key = match &order.source {
            Some(source) if source.starts_with(prefix) => String::from(&**source),
            _ => format!("{prefix}{}", order.tenant),
        };
        let mut fault = self.members.unreachable("no answer");
        // The connection may have been lost since the last write: that is no failure yet.
        for _ in 0..=self.members.count() {
            match self.try_write(&key, &order).await {
                Ok(Written::Yes) => return Ok(()),
                Ok(Written::Changed) => return Err(PolicyRefusal::Changed),
                Err(failed) => fault = failed,
            }
            self.client = None;
            if fault.reason == PolicyFault::Denied {
                break;
            }
            self.members.pass();
        }
        Err(PolicyRefusal::Failed(fault.text))
    }
}

impl EtcdStore {
    pub(super) fn new(members: Members) -> Self {
        Self { members, client: None }
    }

    async fn try_write(&mut self, key: &str, order: &PolicyOrder) -> Result<Written, Fault> {
        if self.client.is_none() {
            self.client = Some(self.members.connect().await?);
        }
        let client = self.client.as_mut().expect("it has just been made");
        match timeout(REQUEST_TIME_MAX.as_std(), write(client, key, order)).await {
            Ok(Ok(written)) => Ok(written),
            Ok(Err(error)) => Err(self.members.fault(&error)),
            Err(_) => Err(self.members.unreachable("no answer")),
        }
    }
}

/// What became of a document that a member has answered to.
enum Written {
    Yes,
    /// Another text is there than was meant.
    Changed,
}

async fn write(client: &mut Client, key: &str, order: &PolicyOrder) -> Result<Written, Error> {
    let change = match order.text.clone() {
        Some(text) => TxnOp::put(key, text, None),
        None => TxnOp::delete(key, None),
    };
    let mut transaction = Txn::new();
    if let Some(expected) = &order.instead_of {
        let found = client.get(key, None).await?;
        let Some(found) = found.kvs().first() else { return Ok(Written::Changed) };
        if order.text.as_ref().is_some_and(|text| *text == found.value()) {
            // Most likely by ourselves, and the answer was lost.
            return Ok(Written::Yes);
        }
        if *expected != found.value() {
            return Ok(Written::Changed);
        }
        let same = Compare::mod_revision(key, CompareOp::Equal, found.mod_revision());
        transaction = transaction.when([same]);
    }
    let done = client.txn(transaction.and_then([change])).await?;
    Ok(if done.succeeded() { Written::Yes } else { Written::Changed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::living_member::{Member, members};
    use bytes::Bytes;
    use etcd_client::GetOptions;

    fn order(source: Option<&str>, text: Option<&'static str>) -> PolicyOrder {
        let source = source.map(Into::into);
        PolicyOrder { tenant: "a".into(), source, text: text.map(Bytes::from), instead_of: None }
    }

    async fn keys(store: &EtcdStore) -> Result<Vec<String>, Error> {
        let mut client = store.client.clone().expect("it was connected");
        let all = client.get("", Some(GetOptions::new().with_all_keys())).await?;
        all.kvs().iter().map(|key| key.key_str().map(str::to_owned)).collect()
    }

    #[test]
    fn order_is_carried_out_by_the_member_that_answers() {
        let mut member = Member::start();
        let dead = "http://127.0.0.1:1".to_owned();
        let mut store = EtcdStore::new(members([dead, member.url()]));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            for source in [None, Some("/policies/x"), Some("/other/x")] {
                store.carry_out(order(source, Some("one"))).await.expect("it is written");
            }
            assert_eq!(keys(&store).await.expect("it answers"), ["/policies/a", "/policies/x"]);
            store.carry_out(order(Some("/policies/x"), None)).await.expect("it is removed");
            assert_eq!(keys(&store).await.expect("it answers"), ["/policies/a"]);
            member.kill();
            let failed = store.carry_out(order(None, None)).await;
            assert!(matches!(failed, Err(PolicyRefusal::Failed(_))), "{failed:?}");
        });
    }

    #[test]
    fn document_is_written_only_in_place_of_what_was_meant() {
        let member = Member::start();
        let mut store = EtcdStore::new(members([member.url()]));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let mut in_place_of = async |before: &'static str, text| {
                let instead_of = Some(Bytes::from(before));
                store.carry_out(PolicyOrder { instead_of, ..order(None, Some(text)) }).await
            };
            let changed = Err(PolicyRefusal::Changed);
            assert_eq!(in_place_of("", "one").await, changed, "it is not there");
            let mut client = Client::connect([member.url()], None).await.expect("it answers");
            client.put("/policies/a", "one", None).await.expect("it answers");
            assert_eq!(in_place_of("other", "two").await, changed);
            assert_eq!(in_place_of("one", "two").await, Ok(()));
            assert_eq!(in_place_of("one", "two").await, Ok(()), "as after a lost answer");
            assert_eq!(in_place_of("one", "three").await, changed);
            let found = client.get("/policies/a", None).await.expect("it answers");
            assert_eq!(found.kvs()[0].value(), b"two");
        });
    }
}
