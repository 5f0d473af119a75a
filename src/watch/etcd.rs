//! The source that is etcd: everything below a prefix, and every change from there on.
//!
//! All keys are read in pages at one revision, then the next revisions are watched. A watch
//! whose connection is gone tells an error once or twice and then nothing for ever; one behind a
//! compaction is cancelled. Whatever ends it, everything is read again: so nothing is missed, and
//! no position is ever moved forward over changes that were not seen. A member that answers no
//! keep-alive counts as gone.
//!
//! Memory: a page, and what one message of a watch holds, beside what the replica keeps.

use std::hash::{BuildHasher, RandomState};

use etcd_client::{
    Client, EventType, GetOptions, KeyValue, KvClient, ResponseHeader, WatchOptions, WatchResponse,
    WatchStream,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::etcd_store::EtcdStore;
use super::members::{Members, OUT_OF_RANGE, REQUEST_TIME_MAX, status_of};
use super::replica::{DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Document, Item};
use super::thread::{self, Error, Patience, Source, Target, Watch};
use super::{Fault, News, Options};
use crate::telemetry::PolicyFault;
use crate::time::Duration;

/// Keys of one page: a megabyte or less where documents are as large as most.
const PAGE_KEYS_MAX: i64 = 512;

/// Bytes of one message. Full pages of large documents have more; they are asked for with fewer
/// keys. One document has at most 1.5 MB by etcd's own default.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How long is waited when every member has failed: doubled each time, up to the second. Half of
/// it is by chance, so that servers do not come back together.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// Begins to watch etcd; waits for what there is, but not for ever.
pub(crate) fn watch_etcd(options: &Options, target: Target) -> Result<Watch, Error> {
    let members = Members::new(options.etcd.clone());
    let source = Etcd { members, page_keys: PAGE_KEYS_MAX };
    thread::start(options, target, (source, Patience::UpTo(options.etcd.start_wait)))
}

struct Etcd {
    members: Members,
    /// Keys that are asked for at once; fewer where they are too large for one message.
    page_keys: i64,
}

/// Nobody listens any longer.
struct Over;

/// What all pages hold.
#[derive(Default)]
struct Loaded {
    documents: Vec<Document>,
    /// Of documents that are more than can be held.
    kept: Vec<Box<str>>,
    revision: i64,
}

impl Source for Etcd {
    type Store = EtcdStore;

    /// By the last segment of its key.
    fn tenant(key: &str) -> Option<Box<str>> {
        key.rsplit('/').next().filter(|name| !name.is_empty()).map(Box::from)
    }

    fn store(&self) -> EtcdStore {
        EtcdStore::new(self.members.clone())
    }

    async fn follow(mut self, news: mpsc::Sender<News>) {
        let dice = RandomState::new();
        let mut failed = 0;
        loop {
            let (heard, fault) = match self.turn(&news).await {
                Ok(ended) => ended,
                Err(Over) => return,
            };
            debug!(member = self.members.name(), err = %fault.text, "a member of etcd failed");
            failed = if heard { 1 } else { failed + 1 };
            self.members.pass();
            // A member that is away is no fault while another answers.
            let round = self.members.count();
            if !heard && failed % round != 0 {
                continue;
            }
            if news.send(News::Fault(fault)).await.is_err() {
                return;
            }
            sleep(pause(failed / round, dice.hash_one(failed)).as_std()).await;
        }
    }
}

impl Etcd {
    /// One connection from its beginning to its end, and whether it told anything.
    async fn turn(&mut self, news: &mpsc::Sender<News>) -> Result<(bool, Fault), Over> {
        let client = match self.members.connect().await {
            Ok(client) => client,
            Err(fault) => return Ok((false, fault)),
        };
        let loaded = match self.load(&client).await {
            Ok(loaded) => loaded,
            Err(fault) => return Ok((false, fault)),
        };
        // Watched before they are handed on, so that a compaction meanwhile does no harm.
        let stream = self.watch(&client, loaded.revision + 1).await;
        let Loaded { documents, kept, revision } = loaded;
        let all = News::All { documents, kept, revision: revision.cast_unsigned() };
        news.send(all).await.map_err(|_closed| Over)?;
        let fault = match stream {
            Ok(stream) => self.hear(stream, news).await?,
            Err(fault) => fault,
        };
        Ok((true, fault))
    }

    /// Every document at one revision.
    async fn load(&mut self, client: &Client) -> Result<Loaded, Fault> {
        let mut kv = client.kv_client().max_decoding_message_size(MESSAGE_BYTES_MAX);
        let end = range_end(self.members.prefix().as_bytes());
        let mut from = self.members.prefix().as_bytes().to_vec();
        let (mut loaded, mut bytes) = (Loaded::default(), 0);
        loop {
            let options = GetOptions::new().with_range(end.clone()).with_revision(loaded.revision);
            let mut page = self.page(&mut kv, &from, options).await?;
            // Zero asks for the newest, which all further pages are of.
            let revision = page.header().map_or(0, ResponseHeader::revision);
            loaded.revision = loaded.revision.max(revision);
            let more = page.more();
            let keys = page.take_kvs();
            if let Some(last) = keys.last().filter(|_| more) {
                from = [last.key(), &[0]].concat();
            }
            let is_last = !more || keys.is_empty();
            for document in keys.into_iter().filter_map(document) {
                bytes += document.source.len() + document.text.len();
                // What is beyond does not fit the replica, which says so at the first.
                if loaded.documents.len() <= DOCUMENTS_MAX && bytes <= 2 * DOCUMENTS_BYTES_MAX {
                    loaded.documents.push(document);
                } else if loaded.kept.len() <= DOCUMENTS_MAX {
                    loaded.kept.push(document.source);
                }
            }
            if is_last {
                return Ok(loaded);
            }
        }
    }

    async fn page(
        &mut self,
        kv: &mut KvClient,
        from: &[u8],
        options: GetOptions,
    ) -> Result<etcd_client::GetResponse, Fault> {
        loop {
            let options = options.clone().with_limit(self.page_keys);
            let asked = timeout(REQUEST_TIME_MAX.as_std(), kv.get(from, Some(options))).await;
            match asked {
                Ok(Ok(page)) => {
                    self.page_keys = (self.page_keys * 2).min(PAGE_KEYS_MAX);
                    return Ok(page);
                }
                // Too large for one message; or compacted meanwhile, which fewer keys do not mend.
                Ok(Err(error)) if status_of(&error) == Some(OUT_OF_RANGE) && self.page_keys > 1 => {
                    self.page_keys /= 2;
                }
                Ok(Err(error)) => return Err(self.members.fault(&error)),
                Err(_) => return Err(self.members.unreachable("no answer")),
            }
        }
    }

    async fn watch(&self, client: &Client, from: i64) -> Result<WatchStream, Fault> {
        let mut watch = client.watch_client().max_decoding_message_size(MESSAGE_BYTES_MAX);
        let options = WatchOptions::new().with_prefix().with_fragment().with_start_revision(from);
        let beginning = watch.watch(self.members.prefix(), Some(options));
        match timeout(REQUEST_TIME_MAX.as_std(), beginning).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(self.members.fault(&error)),
            Err(_) => Err(self.members.unreachable("no answer")),
        }
    }

    /// Tells every change until the watch ends, and then why it has.
    async fn hear(
        &self,
        mut stream: WatchStream,
        news: &mpsc::Sender<News>,
    ) -> Result<Fault, Over> {
        loop {
            let response = match stream.message().await {
                Ok(Some(response)) => response,
                Ok(None) => return Ok(self.lost("the watch has ended")),
                Err(error) => {
                    let text = self.members.fault(&error).text;
                    return Ok(Fault::new(PolicyFault::Lost, text));
                }
            };
            if response.canceled() {
                return Ok(self.cancelled(&response));
            }
            let (items, revision) = items(&response);
            if items.is_empty() {
                continue;
            }
            news.send(News::Some { items, revision }).await.map_err(|_closed| Over)?;
        }
    }

    fn cancelled(&self, response: &WatchResponse) -> Fault {
        if response.compact_revision() != 0 {
            let text = "changes were compacted before they were seen, everything is read again";
            return Fault::new(PolicyFault::Compacted, text);
        }
        self.lost(&format!("the watch was cancelled: {}", response.cancel_reason()))
    }

    fn lost(&self, text: &str) -> Fault {
        Fault::new(PolicyFault::Lost, format!("ask {}: {text}", self.members.name()))
    }
}

fn items(response: &WatchResponse) -> (Vec<Item>, u64) {
    let mut newest = 0;
    let mut items = Vec::new();
    for event in response.events() {
        let Some(key) = event.kv() else { continue };
        let revision = key.mod_revision().cast_unsigned();
        newest = newest.max(revision);
        items.extend(match event.event_type() {
            EventType::Put => document(key.clone()).map(Item::Put),
            EventType::Delete => source(key).map(|source| Item::Gone { source, revision }),
        });
    }
    (items, newest)
}

/// A key that is no text is nobody's: a document says what it is for in text.
fn source(key: &KeyValue) -> Option<Box<str>> {
    key.key_str().ok().map(Box::from)
}

fn document(key: KeyValue) -> Option<Document> {
    let source = source(&key)?;
    let revision = key.mod_revision().cast_unsigned();
    let (_, text) = key.into_key_value();
    Some(Document { tenant: Etcd::tenant(&source), source, text: text.into(), revision })
}

/// Behind the last key that begins with `prefix`; a zero byte where every later key does.
fn range_end(prefix: &[u8]) -> Vec<u8> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX).map_or(0, |last| last + 1);
    let mut end = prefix[..kept].to_vec();
    match end.last_mut() {
        Some(last) => *last += 1,
        None => end.push(0),
    }
    end
}

/// How long to wait after so many rounds without an answer.
fn pause(rounds: usize, dice: u64) -> Duration {
    let doubled = PAUSE_MIN.as_micros() << rounds.saturating_sub(1).min(10);
    let half_us = doubled.min(PAUSE_MAX.as_micros()) / 2;
    Duration::from_micros(half_us + dice % half_us.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::living_member::{Member, members};

    #[test]
    fn range_ends_behind_every_key_with_the_prefix() {
        let rows: [(&[u8], &[u8]); 4] = [
            (b"/policies/", b"/policies0"),
            (b"a\xff", b"b"),
            (b"a\xffb\xff\xff", b"a\xffc"),
            (b"\xff\xff", b"\0"),
        ];
        for (prefix, end) in rows {
            assert_eq!(range_end(prefix), end, "{prefix:?}");
        }
    }

    #[test]
    fn pause_grows_to_its_most_and_is_never_nothing() {
        for rounds in 0..70 {
            for dice in [0, 1, u64::MAX] {
                let pause = pause(rounds, dice);
                assert!(pause.as_micros() >= PAUSE_MIN.as_micros() / 2, "{rounds}: {pause}");
                assert!(pause <= PAUSE_MAX, "{rounds}: {pause}");
            }
        }
        assert!(pause(70, 0) >= Duration::from_millis(1_500));
    }

    #[test]
    fn tenant_is_named_after_the_last_segment_of_its_key() {
        let tenant = Etcd::tenant;
        assert_eq!(tenant("/policies/acme").as_deref(), Some("acme"));
        assert_eq!(tenant("/policies/team/acme").as_deref(), Some("acme"));
        assert_eq!(tenant("/policies/"), None);
    }

    #[test]
    fn watch_behind_a_compaction_says_so() {
        let member = Member::start();
        let etcd = Etcd { members: members([member.url()]), page_keys: 1 };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let fault = runtime.expect("a runtime").block_on(async {
            let mut client = etcd.members.connect().await.expect("it answers");
            for _ in 0..3 {
                client.put("/policies/a", "x", None).await.expect("it answers");
            }
            client.compact(4, None).await.expect("it answers");
            let stream = etcd.watch(&client, 2).await.expect("it answers");
            let (news, _heard) = mpsc::channel(1);
            etcd.hear(stream, &news).await.ok().expect("somebody listens")
        });
        assert_eq!(fault.reason, PolicyFault::Compacted);
    }
}
