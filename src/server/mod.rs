//! The RESP listener: sockets, connections, and the life of the server around them.
//!
//! Knows no command: it scans requests, hands them to `commands` and sends the replies. It
//! stops gracefully: on SIGTERM, SIGINT or SHUTDOWN it accepts no more, lets every connection
//! finish what it has begun, and after `drain_timeout`, or when asked again, ends what is left.

mod answer;
mod beat;
mod connection;
mod doors;
mod house;
mod hub;
mod listen;
mod load_watch;
mod mailbox;
mod meanwhile;
mod options;
mod peer;
mod rates;
#[cfg(test)]
mod repeated_denials;
mod scratch;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use socket2::Socket;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tracing::{info, warn};

pub(crate) use hub::{Hub, Identity, Readiness, is_elsewhere};
pub(crate) use listen::{Error, Manner, accept_one, bind, bind_http, local_port};
pub(crate) use options::{HTTP_PORT_OFFSET, Options};
#[cfg(test)]
pub(crate) use tests::hub as hub_for_test;

use crate::time::Duration;
pub(crate) use house::HouseOptions;
use listen::Workers;
pub(crate) use load_watch::WatchOptions;

/// What runs a server besides its hub.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) sockets: Vec<Socket>,
    pub(crate) manner: Manner,
    pub(crate) house: HouseOptions,
    pub(crate) watch: WatchOptions,
    pub(crate) drain_timeout: Duration,
}

/// How a server came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// What was begun is finished, or had the time for it.
    InOrder,
    /// Connections were ended at once, because somebody could not wait.
    Hurried,
    /// A thread did not end, whatever was done: it ends with the process.
    Abandoned,
}

/// How long threads are waited for that have nothing left to do.
const JOIN_PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// Serves until asked to stop, on the calling thread's runtime and the workers' own.
pub(crate) async fn serve(hub: Arc<Hub>, plan: Plan) -> Result<Ending, Error> {
    let workers = Arc::new(Workers::start(&hub, &plan.manner)?);
    let mut accepting = JoinSet::new();
    for socket in plan.sockets {
        let listener = listener(socket)?;
        let (hub, workers) = (Arc::clone(&hub), Arc::clone(&workers));
        accepting.spawn(listen::accept(listener, hub, workers, plan.manner.keepalive));
    }
    accepting.spawn(listen::relieve(Arc::clone(&hub), Arc::clone(&workers)));
    if plan.watch.enabled {
        accepting.spawn(load_watch::watch(Arc::clone(&hub), workers.pulses(), plan.watch));
    }
    hub.open();
    let house = tokio::spawn(house::keep(Arc::clone(&hub), plan.house));
    hub.stopped().await;
    info!(connections = hub.connected(), "stopping: finishing what has begun");
    accepting.shutdown().await;
    let ending = drain(&hub, plan.drain_timeout).await;
    hub.service().end_scripts();
    house.abort();
    if let Some(workers) = Arc::into_inner(workers)
        && !workers.join(JOIN_PATIENCE).await
    {
        warn!("stopped, though a worker still runs a script that could not be ended");
        return Ok(Ending::Abandoned);
    }
    info!("stopped");
    Ok(ending)
}

async fn drain(hub: &Hub, timeout: Duration) -> Ending {
    /// How often the remaining connections are counted.
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(10);
    hub.drain();
    // Who would wait for a script that runs for long has done so already.
    if hub.service().long_after().is_some() {
        hub.service().end_scripts();
    }
    let done = async {
        while hub.connected() > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = done => Ending::InOrder,
        () = tokio::time::sleep(timeout.as_std()) => {
            let connections = hub.kill_all();
            warn!(connections, "ended connections that did not finish in time");
            Ending::InOrder
        }
        () = hub.hurried() => {
            let connections = hub.kill_all();
            warn!(connections, "asked again to stop: ended connections at once");
            if connections > 0 { Ending::Hurried } else { Ending::InOrder }
        }
    }
}

fn listener(socket: Socket) -> Result<TcpListener, Error> {
    TcpListener::from_std(socket.into()).map_err(Error::Thread)
}

/// The signals that ask a server to stop.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on these signals no longer end the process.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Resolves to the name of the next of them that comes.
    pub(crate) async fn heard(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
