//! Listening, accepting, and the threads that answer.
//!
//! Each worker is a thread with a runtime of its own and the connections it was given; nothing
//! of a connection ever moves between threads. One control thread accepts, gives each
//! connection to the worker with the fewest, keeps house (expiry, idle connections, the clock)
//! and hears signals, so it works on when every worker is busy.
//!
//! A script can hold up its worker for ever. There is one worker more, the stand-in, that is
//! given connections only while all others are held up: what may be asked then, SCRIPT KILL
//! first of all, is answered by it.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tracing::{debug, warn};

use super::answer::Answerer;
use super::connection::{self, Connection, Scratch};
use super::hub::Hub;
use super::meanwhile::Neighbours;
use super::peer::PeerState;
use crate::commands::{Session, Worker};
use crate::protocol::{Error as Refusal, Limits, Reply, Resp, Scanner};
use crate::time::{Duration, Timestamp};

/// A worker's stack. Two hundred calls of a script through C may nest, each with a buffer of eight
/// kilobytes, upon what a command takes; all of it is lent by the kernel only when touched.
const STACK_BYTES: usize = 4 << 20;

/// Connections that may wait for a worker to take them; the acceptor waits when it is full.
const HANDOVER_MAX: usize = 1_024;

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
    /// The last is the stand-in's.
    doors: Vec<Door>,
    threads: Vec<JoinHandle<()>>,
}

struct Door {
    pulse: Arc<Pulse>,
    sender: mpsc::Sender<Accepted>,
}

/// How a worker is doing, for who chooses among them.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Connections the worker has, or is about to have.
    load: AtomicUsize,
    /// When it began to answer what a connection has sent; zero while it does not.
    turn_began_us: AtomicU64,
}

impl Pulse {
    pub(super) fn begin_turn(&self, now: Timestamp) {
        self.turn_began_us.store(now.as_micros(), Ordering::Relaxed);
    }

    pub(super) fn end_turn(&self) {
        self.turn_began_us.store(0, Ordering::Relaxed);
    }

    fn is_held_up(&self, now: Timestamp, after: Duration) -> bool {
        let began_us = self.turn_began_us.load(Ordering::Relaxed);
        began_us != 0 && now.since(Timestamp::from_micros(began_us)) >= after
    }
}

struct Accepted {
    stream: std::net::TcpStream,
    peer: Arc<PeerState>,
    session: Session,
}

impl Workers {
    pub(super) fn start(hub: &Arc<Hub>, manner: &Manner) -> Result<Self, Error> {
        let (mut doors, mut threads) = (Vec::new(), Vec::new());
        let names = (0..manner.workers.max(1)).map(|number| format!("worker-{number}"));
        for name in names.chain(["stand-in".to_owned()]) {
            let (sender, receiver) = mpsc::channel(HANDOVER_MAX);
            let pulse = Arc::new(Pulse::default());
            let (hub, limits, pong) = (Arc::clone(hub), manner.limits, manner.pong);
            doors.push(Door { pulse: Arc::clone(&pulse), sender });
            let work = move || {
                let scratch = if pong {
                    Scratch::new(Scanner::new(limits), Answerer::Pong, Arc::clone(&pulse))
                } else {
                    answering(&hub, limits, &pulse)
                };
                // Answers while the worker is in a turn, and so says nothing of it.
                let other = Arc::clone(&hub);
                let neighbours =
                    Neighbours::new(move || answering(&other, limits, &Arc::default()));
                work(receiver, hub, pulse, (scratch, neighbours));
            };
            let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(work);
            threads.push(thread.map_err(Error::Thread)?);
        }
        Ok(Self { doors, threads })
    }

    /// Lets the workers end once their connections have.
    pub(super) fn join(self) {
        drop(self.doors);
        for thread in self.threads {
            if thread.join().is_err() {
                warn!("a worker thread panicked");
            }
        }
    }

    async fn hand_over(&self, accepted: Accepted, held_up: impl Fn(&Pulse) -> bool) {
        let (stand_in, workers) = self.doors.split_last().expect("there is a stand-in");
        let door = workers
            .iter()
            .filter(|door| !held_up(&door.pulse))
            .min_by_key(|door| door.pulse.load.load(Ordering::Relaxed))
            .unwrap_or(stand_in);
        door.pulse.load.fetch_add(1, Ordering::Relaxed);
        if door.sender.send(accepted).await.is_err() {
            warn!("a worker is gone, its connection is closed");
        }
    }
}

/// A connection's place in its worker's load, given back also when the connection panics.
struct Place(Arc<Pulse>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The life of one worker thread.
fn work(
    mut receiver: mpsc::Receiver<Accepted>,
    hub: Arc<Hub>,
    pulse: Arc<Pulse>,
    (scratch, neighbours): (Scratch, Neighbours),
) {
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
        while let Some(Accepted { stream, peer, session }) = receiver.recv().await {
            let id = session.id;
            let place = Place(Arc::clone(&pulse));
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
    neighbours.during(|| runtime.block_on(tasks));
}

/// What answers by the commands.
fn answering(hub: &Hub, limits: Limits, pulse: &Arc<Pulse>) -> Scratch {
    let worker = Worker::new(Arc::clone(hub.service()), hub.clock().clone());
    Scratch::new(Scanner::new(limits), Answerer::Commands(Box::new(worker)), Arc::clone(pulse))
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
            Ok(accepted) => {
                // Read once: without a script that runs for long nobody is held up.
                let busy_after = hub.service().long_after();
                let now = hub.clock().now();
                let held_up =
                    |pulse: &Pulse| busy_after.is_some_and(|after| pulse.is_held_up(now, after));
                workers.hand_over(accepted, held_up).await;
            }
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
