//! The HTTP API: metrics for Prometheus, health for whoever decides where clients go.
//!
//! It runs on the control thread, where accepting and housekeeping are, so it answers while
//! every worker is busy, and costs them nothing. It goes on while the server drains, so that
//! who asks is told, and stops last.
//!
//! One request a connection: probes and scrapes come seconds apart, and so no silent client can
//! keep another out. Everything a client could make grow or last has a bound here.

mod pages;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::Socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, warn};

use crate::server::{Hub, accept_one};
use crate::time::Duration;
use pages::Caller;

/// Connections answered at one time; more wait in the kernel until one of these has ended.
const CONNECTIONS_MAX: usize = 64;

/// Bytes of the head of a request: a scraper's headers are a few hundred.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// How long a client may take to send the head of its request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a connection may last in all, its reader's slowness included.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a stop waits for answers under way.
const STOP_TIME_MAX: Duration = Duration::from_secs(1);

const _: () = assert!(HEAD_TIME_MAX.as_micros() < CONNECTION_TIME_MAX.as_micros());

/// The HTTP port while it is served.
#[derive(Debug)]
pub(crate) struct Http {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Http {
    /// Begins to answer on a socket that listens already, on the calling thread's runtime.
    pub(crate) fn start(socket: Socket, hub: Arc<Hub>) -> io::Result<Self> {
        let listener = TcpListener::from_std(socket.into())?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(listener, pages::router(hub), stopped));
        Ok(Self { stop, task })
    }

    /// Accepts no more, and returns when what was begun has been answered or was too slow.
    pub(crate) async fn stop(self) {
        // An error means that the task has ended already, which is awaited next.
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            warn!(%error, "the http port did not stop as it should");
        }
    }
}

async fn serve(listener: TcpListener, pages: Router, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            (stream, address) = accept_one(&listener), if connections.len() < CONNECTIONS_MAX => {
                connections.spawn(answer(stream, address, pages.clone()));
            }
        }
    }
    drop(listener);
    let answered = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_TIME_MAX.as_std(), answered).await.is_err() {
        connections.shutdown().await;
    }
}

async fn answer(stream: TcpStream, address: SocketAddr, pages: Router) {
    let pages = pages.layer(Extension(Caller(address.ip())));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX.as_std())
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
    match tokio::time::timeout(CONNECTION_TIME_MAX.as_std(), connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%address, %error, "an http connection failed"),
        Err(_) => debug!(%address, "an http connection took too long"),
    }
}
