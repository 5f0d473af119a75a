//! The thread of the watch: how it begins, and how it ends.
//!
//! The start waits for the first documents, so that no client is answered by no policy at all
//! while there are some. A path that is not there is most likely a slip of the pen, and an error;
//! etcd may well come later than we do, and is waited for only so long. In both cases the last
//! good documents, where there are any, are a start.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use tracing::{error, info, warn};

use super::folder::Folder;
use super::keeper::Keeper;
use super::writer::{self, Orders, Store, Writer};
use super::{Fault, News, Options};
use crate::commands::Service;
use crate::telemetry::PolicyEvents;
use crate::time::{Clock, Duration};

/// News that wait for the keeper; then their source waits.
const NEWS_MAX: usize = 64;

/// Whom the watch works for.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) service: Arc<Service>,
    pub(crate) events: PolicyEvents,
    pub(crate) clock: Clock,
}

/// Why there is no watch; the text is for the person who started it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
    #[error("{0}; name a folder or file of policies that is there, or leave policies.path empty")]
    Path(String),
}

/// Where documents are, and who writes them there.
pub(super) trait Source: Send + Sized + 'static {
    type Store: Store;

    /// Names a tenant after the source of its document.
    fn tenant(source: &str) -> Option<Box<str>>;

    fn store(&self) -> Self::Store;

    /// Tells all and every change, until nobody listens.
    async fn follow(self, news: mpsc::Sender<News>);
}

/// What a start does about a source that is away.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// Nothing comes of waiting: without last good documents it fails.
    None,
    /// Goes on after this long, and is told when the source is there.
    UpTo(Duration),
}

/// A watch that runs until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    writer: Writer,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// By which policies are written to where they come from.
    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Ends the watch, once what is in force is on disk.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Errors mean that the thread has ended already.
        self.stop.take().map(|stop| stop.send(()));
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            error!("the thread that watches policies panicked, the last ones hold");
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Begins to watch the file or folder of the settings, where they name one.
pub(crate) fn watch_path(options: &Options, target: Target) -> Result<Option<Watch>, Error> {
    let Some(path) = options.path() else { return Ok(None) };
    let folder = Folder {
        path: path.to_owned(),
        poll_period: options.poll_period,
        document_bytes_max: options.document_bytes_max.as_usize(),
    };
    start(options, target, (folder, Patience::None)).map(Some)
}

pub(super) fn start<S: Source>(
    options: &Options,
    target: Target,
    (source, patience): (S, Patience),
) -> Result<Watch, Error> {
    let (first, known) = sync_channel(1);
    let mut keeper = Keeper::new(target, options.last_good().map(Into::into), first);
    let begun_with = keeper.begin(S::tenant);
    let (writer, orders) = writer::new();
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new()
        .name("policies".into())
        .spawn(move || runtime.block_on(watch(source, keeper, (orders, stopped))))?;
    let watch = Watch { writer, stop: Some(stop), thread: Some(thread) };
    let answer = match patience {
        Patience::None => known.recv().map_err(|_ended| RecvTimeoutError::Disconnected),
        Patience::UpTo(wait) => known.recv_timeout(wait.as_std()),
    };
    match answer {
        Ok(Ok(())) => {}
        Ok(Err(Fault { text, .. })) if begun_with == 0 && matches!(patience, Patience::None) => {
            return Err(Error::Path(text));
        }
        Ok(Err(_)) | Err(_) if begun_with > 0 => {
            info!(documents = begun_with, "policies begin with the last good ones");
        }
        Ok(Err(_)) | Err(_) => warn!("there are no policies until their source answers"),
    }
    Ok(watch)
}

async fn watch<S: Source>(
    source: S,
    mut keeper: Keeper,
    (orders, stopped): (Orders, oneshot::Receiver<()>),
) {
    let (sender, news) = mpsc::channel(NEWS_MAX);
    let writing = writer::serve(source.store(), orders);
    tokio::select! {
        ((), ()) = async { tokio::join!(source.follow(sender), keeper.keep(news)) } => {}
        () = writing => {}
        // An error means that the watch was dropped, and so stopped as well.
        _ = stopped => {}
    }
    keeper.write();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Initial, Password, PolicyOrder, PolicyRefusal, Runtime};
    use crate::engine::Engine;
    use crate::policy::Unmatched;
    use crate::telemetry::Events;
    use crate::watch::options::{EtcdOptions, TlsOptions};
    use bytes::Bytes;
    use std::path::{Path, PathBuf};

    fn target() -> Target {
        let clock = Clock::manual(crate::time::Timestamp::EPOCH);
        let runtime = Runtime::new(Initial::small());
        let service = Arc::new(Service::new(Engine::new(4, 1), runtime, clock.now()));
        Target { service, events: Events::new().policies(), clock }
    }

    fn options(path: &Path) -> Options {
        Options {
            path: path.to_owned(),
            poll_period: Duration::from_secs(60),
            unmatched: Unmatched::Allow,
            document_bytes_max: "1kb".parse().expect("a size"),
            last_good: PathBuf::new(),
            etcd: EtcdOptions {
                enabled: false,
                endpoints: Vec::new(),
                prefix: "/policies/".to_owned(),
                user: String::new(),
                password: serde_yaml::from_str::<Password>("''").expect("text"),
                start_wait: Duration::from_secs(1),
                tls: TlsOptions {
                    ca: PathBuf::new(),
                    certificate: PathBuf::new(),
                    key: PathBuf::new(),
                    server_name: String::new(),
                },
            },
        }
    }

    /// What comes of an order.
    fn submit(watch: &Watch, text: Option<&'static [u8]>) -> Result<(), PolicyRefusal> {
        let (answer, answered) = sync_channel(1);
        let order = PolicyOrder {
            tenant: "a".into(),
            source: None,
            text: text.map(Bytes::from_static),
            instead_of: None,
        };
        let tell = move |result| answer.send(result).expect("it is waited for");
        watch.writer().submit(order, Box::new(tell));
        answered.recv().expect("every order is answered")
    }

    #[test]
    fn order_is_carried_out_where_policies_come_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let watch = watch_path(&options(folder.path()), target()).expect("it is there");
        let watch = watch.expect("a path was given");
        assert_eq!(submit(&watch, Some(b"name: a")), Ok(()));
        let file = folder.path().join("a.yaml");
        assert_eq!(std::fs::read(&file).expect("it is there"), b"name: a");
        assert_eq!(submit(&watch, None), Ok(()));
        assert!(!file.exists());
        assert!(matches!(submit(&watch, None), Err(PolicyRefusal::Failed(_))));
    }

    #[test]
    fn without_a_path_there_is_nothing_to_watch() {
        assert!(watch_path(&options(Path::new("")), target()).expect("no fault").is_none());
    }
}
