//! Listening, accepting, and the threads that answer.
//!
//! Each worker is a thread with a runtime of its own and the connections it was given; nothing
//! of a connection that is busy ever moves between threads. One control thread accepts, gives each
//! connection to the worker with the fewest, keeps house (expiry, idle connections, the clock)
//! and hears signals, so it works on when every worker is busy.
//!
//! A script can hold up its worker for ever. There is one worker more, the stand-in, that is
//! given connections only while all others are held up: what may be asked then, SCRIPT KILL
//! first of all, is answered by it. It runs no script, so that it is not held up itself, and hands
//! its connections on once nothing runs for long.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tracing::{debug, warn};

use super::answer::Answerer;
use super::beat::beat;
use super::connection::{self, Connection};
use super::doors::{Accepted, Door, Doors, HANDOVER_MAX, Place, Pulse, Waiting};
use super::hub::Hub;
use super::meanwhile::Neighbours;
use super::peer::PeerState;
use super::scratch::Scratch;
use crate::commands::{Session, Worker};
use crate::protocol::{Error as Refusal, Limits, Reply, Resp, Scanner};
use crate::time::Duration;

/// A worker's stack. Two hundred calls of a script through C may nest, each with a buffer of eight
/// kilobytes, upon what a command takes; all of it is lent by the kernel only when touched.
const STACK_BYTES: usize = 4 << 20;

/// Probes and scrapes that the kernel holds while earlier ones are answered: both come seldom.
const HTTP_BACKLOG: u32 = 128;

/// Why the server cannot listen; the text is for the person who started it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot resolve the address {address}")]
    Resolve { address: String, source: io::Error },
    #[error(
        "cannot listen on {address}: another program is listening there already; choose another \
         port with {flag}, or stop that program"
    )]
    InUse { address: SocketAddr, flag: &'static str },
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// How workers treat what they are given.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) limits: Limits,
    pub(crate) workers: usize,
    pub(crate) keepalive: Duration,
    /// Answer `+PONG` to everything: to measure the listener alone.
    pub(crate) pong: bool,
    /// Each worker notes how late it is.
    pub(crate) beats: bool,
}

/// Opens the listening sockets. Port 0 lets the system choose one, the same for all addresses.
pub(crate) fn bind(hosts: &[String], port: u16, backlog: u32) -> Result<Vec<Socket>, Error> {
    let mut port = port;
    let mut sockets = Vec::new();
    for host in hosts {
        let resolved = (host.as_str(), port)
            .to_socket_addrs()
            .map_err(|source| Error::Resolve { address: host.clone(), source })?;
        for address in resolved {
            let socket = bind_one(address, backlog, "--port")?;
            port = local_port(&socket).unwrap_or(port);
            sockets.push(socket);
        }
    }
    Ok(sockets)
}

/// Opens the socket of the HTTP port; port 0 lets the system choose.
pub(crate) fn bind_http(host: IpAddr, port: u16) -> Result<Socket, Error> {
    bind_one(SocketAddr::new(host, port), HTTP_BACKLOG, "--http-port")
}

/// `flag` is the one that changes the port, for the person who has to.
fn bind_one(address: SocketAddr, backlog: u32, flag: &'static str) -> Result<Socket, Error> {
    open(address, backlog).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::InUse { address, flag },
        _ => Error::Listen { address, source },
    })
}

fn open(address: SocketAddr, backlog: u32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket)
}

pub(crate) fn local_port(socket: &Socket) -> Option<u16> {
    socket.local_addr().ok()?.as_socket().map(|address| address.port())
}

/// The worker threads, and how to hand them connections.
pub(super) struct Workers {
    doors: Doors,
    stand_in: Door,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    pub(super) fn start(hub: &Arc<Hub>, manner: &Manner) -> Result<Self, Error> {
        let (mut doors, mut threads) = (Doors::default(), Vec::new());
        for number in 0..manner.workers.max(1) {
            let name = format!("worker-{number}");
            let (door, thread) = start_worker(hub, manner, (name, Doors::default()))?;
            doors.push(door);
            threads.push(thread);
        }
        let named = ("stand-in".to_owned(), doors.clone());
        let (stand_in, thread) = start_worker(hub, manner, named)?;
        threads.push(thread);
        Ok(Self { doors, stand_in, threads })
    }

    /// Lets the workers end once their connections have. Returns whether all have ended in time:
    /// a thread cannot be made to.
    pub(super) async fn join(self, patience: std::time::Duration) -> bool {
        const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(1);
        drop((self.doors, self.stand_in));
        let ended = async {
            while !self.threads.iter().all(JoinHandle::is_finished) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(patience, ended).await.is_err() {
            return false;
        }
        for thread in self.threads {
            if thread.join().is_err() {
                warn!("a worker thread panicked");
            }
        }
        true
    }

    /// How the workers are doing, the stand-in left out.
    pub(super) fn pulses(&self) -> Vec<Arc<Pulse>> {
        self.doors.pulses()
    }

    fn hand_over(&self, hub: &Hub, accepted: Box<Accepted>) {
        let taken = self.doors.take(hub, accepted);
        if let Err(accepted) = taken.or_else(|accepted| self.stand_in.take(accepted)) {
            debug!("every worker has as many connections before it as may wait");
            hub.count_rejected();
            hub.forget(accepted.session.id);
        }
    }
}

/// Starts a thread that answers. With doors it is the stand-in, which hands on by them.
fn start_worker(
    hub: &Arc<Hub>,
    manner: &Manner,
    (name, onward): (String, Doors),
) -> Result<(Door, JoinHandle<()>), Error> {
    let (door, pulse, receiver) = Door::new(HANDOVER_MAX);
    let (hub, limits, pong) = (Arc::clone(hub), manner.limits, manner.pong);
    let beats = manner.beats && onward.is_empty();
    let work = move || {
        let scratch = if pong {
            Scratch::new(Scanner::new(limits), Answerer::Pong, Arc::clone(&pulse), onward)
        } else {
            answering(&hub, limits, (Arc::clone(&pulse), onward))
        };
        // Answers while the worker is in a turn, and so says nothing of it.
        let other = Arc::clone(&hub);
        let neighbours = Neighbours::new(move || answering(&other, limits, Default::default()));
        work(receiver, hub, (pulse, beats), (scratch, neighbours));
    };
    let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(work);
    Ok((door, thread.map_err(Error::Thread)?))
}

/// The life of one worker thread.
fn work(
    mut receiver: mpsc::Receiver<Waiting>,
    hub: Arc<Hub>,
    (pulse, beats): (Arc<Pulse>, bool),
    (scratch, neighbours): (Scratch, Neighbours),
) {
    let clock = beats.then(|| hub.clock().clone());
    let own = Arc::clone(&pulse);
    let (scratch, neighbours) = (Rc::new(RefCell::new(scratch)), Rc::new(neighbours));
    let seats = Rc::clone(&neighbours);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            warn!(%error, "a worker could not start");
            return;
        }
    };
    let tasks = LocalSet::new();
    tasks.spawn_local(async move {
        while let Some(waiting) = receiver.recv().await {
            // It was taken back while the worker was held up.
            let Some(accepted) = waiting.take() else { continue };
            let Accepted { stream, peer, session } = *accepted;
            let id = session.id;
            let place = Place::new(&pulse);
            match TcpStream::from_std(stream) {
                Ok(stream) => {
                    let (scratch, hub) = (Rc::clone(&scratch), Arc::clone(&hub));
                    let connection = Connection::new(stream, scratch, hub, peer, session);
                    let connection = Rc::new(RefCell::new(connection));
                    let seat = seats.seat(id, &connection);
                    tokio::task::spawn_local(async move {
                        let _place = place;
                        connection::serve(connection, seat).await;
                    });
                }
                Err(error) => {
                    debug!(%error, "an accepted connection was gone already");
                    hub.forget(id);
                }
            }
        }
    });
    // Ends when the door is closed and the last connection has ended.
    neighbours.during(|| {
        runtime.block_on(async {
            match &clock {
                // A beat has no end of its own.
                Some(clock) => tokio::select! {
                    biased;
                    () = tasks => {}
                    () = beat(&own.late, clock) => {}
                },
                None => tasks.await,
            }
        });
    });
}

/// What answers by the commands. With doors it is the stand-in's, which no script may hold up.
fn answering(hub: &Hub, limits: Limits, (pulse, onward): (Arc<Pulse>, Doors)) -> Scratch {
    let mut worker = Worker::new(Arc::clone(hub.service()), hub.clock().clone());
    if !onward.is_empty() {
        worker.refuse_scripts();
    }
    Scratch::new(Scanner::new(limits), Answerer::Commands(Box::new(worker)), pulse, onward)
}

/// Looks after connections that were given to a worker before it was known to be held up, until
/// the server drains.
pub(super) async fn relieve(hub: Arc<Hub>, workers: Arc<Workers>) {
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(20);
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        for accepted in workers.doors.take_back(&hub) {
            workers.hand_over(&hub, Box::new(accepted));
        }
    }
}

/// Accepts until the server drains.
pub(super) async fn accept(
    listener: TcpListener,
    hub: Arc<Hub>,
    workers: Arc<Workers>,
    keepalive: Duration,
) {
    loop {
        let (stream, address) = accept_one(&listener).await;
        if let Some(refusal) = refusal(&hub, address) {
            hub.count_rejected();
            // The reply fits the socket's empty buffer; who does not read it learns nothing.
            let mut out = Vec::new();
            Reply::new(&mut out, Resp::default()).error(&refusal);
            if let Err(error) = stream.try_write(&out) {
                debug!(%error, "a refused connection did not take its reason");
            }
            continue;
        }
        match admit(&hub, stream, address, keepalive) {
            Ok(accepted) => workers.hand_over(&hub, Box::new(accepted)),
            Err(error) => debug!(%error, "an accepted connection was gone already"),
        }
    }
}

/// The next connection, however often accepting fails before.
pub(crate) async fn accept_one(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                // Out of descriptors, most likely: those in use must end first.
                warn!(%error, "could not accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

/// What a connection is told that may not come in.
fn refusal(hub: &Hub, address: SocketAddr) -> Option<Refusal> {
    match hub.shut_out(address.ip()) {
        Some(reason) => Some(Refusal::Text { code: "DENIED", text: reason.into() }),
        None => (!hub.has_room()).then_some(Refusal::MaxClients),
    }
}

fn admit(
    hub: &Hub,
    stream: TcpStream,
    address: SocketAddr,
    keepalive: Duration,
) -> io::Result<Accepted> {
    use std::os::fd::AsRawFd;

    let local = stream.local_addr()?;
    stream.set_nodelay(true)?;
    if !keepalive.is_zero() {
        let keepalive = TcpKeepalive::new().with_time(keepalive.as_std());
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    }
    let stream = stream.into_std()?;
    let id = hub.next_id();
    let session = Session::new(id, !hub.service().runtime().has_password());
    let fd = stream.as_raw_fd();
    let peer = PeerState::new((address, local), fd, session.clone(), hub.clock().now());
    let peer = Arc::new(peer);
    hub.admit(id, Arc::clone(&peer));
    Ok(Accepted { stream, peer, session })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as wires;

    use super::*;

    #[tokio::test]
    async fn thread_that_does_not_end_is_not_waited_for() {
        let (let_go, held) = wires::channel::<()>();
        let thread = std::thread::spawn(move || assert!(held.recv().is_err()));
        let (stand_in, ..) = Door::new(1);
        let workers = Workers { doors: Doors::default(), stand_in, threads: vec![thread] };
        assert!(!workers.join(std::time::Duration::from_millis(5)).await);
        drop(let_go);
    }
}
