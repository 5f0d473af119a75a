//! Writes policies to etcd: a document is a key.
//!
//! A connection is kept between orders. What fails is tried with every member once more: to write
//! the same text again, or to remove what has gone, changes nothing.

use bytes::Bytes;
use etcd_client::Client;
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
        let key = match order.source {
            Some(source) if source.starts_with(prefix) => String::from(source),
            _ => format!("{prefix}{}", order.tenant),
        };
        let mut fault = self.members.unreachable("no answer");
        // The connection may have been lost since the last write: that is no failure yet.
        for _ in 0..=self.members.count() {
            match self.try_write(&key, order.text.clone()).await {
                Ok(()) => return Ok(()),
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

    async fn try_write(&mut self, key: &str, text: Option<Bytes>) -> Result<(), Fault> {
        if self.client.is_none() {
            self.client = Some(self.members.connect().await?);
        }
        let client = self.client.as_mut().expect("it has just been made");
        let writing = async {
            match text {
                Some(text) => client.put(key, text, None).await.map(drop),
                None => client.delete(key, None).await.map(drop),
            }
        };
        match timeout(REQUEST_TIME_MAX.as_std(), writing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.members.fault(&error)),
            Err(_) => Err(self.members.unreachable("no answer")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::living_member::{Member, members};
    use etcd_client::{Error, GetOptions};

    fn order(source: Option<&str>, text: Option<&'static str>) -> PolicyOrder {
        let source = source.map(Into::into);
        PolicyOrder { tenant: "a".into(), source, text: text.map(Bytes::from) }
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
}
