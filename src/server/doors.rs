//! The doors to the workers: who is given a connection, and how it gets there.
//!
//! A connection goes to the worker with the fewest, held up ones left out. Nobody waits at a
//! door: at most [`HANDOVER_MAX`] connections wait behind one, and where that is full the next
//! best door is taken. Those behind the door of a worker that turns out to be held up are taken
//! back. The stand-in has doors, too: it hands its connections on once they are at
//! rest and nobody is held up any longer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::hub::Hub;
use super::peer::PeerState;
use crate::commands::Session;
use crate::load::Latencies;
use crate::time::{Duration, Timestamp};

/// Connections that may wait for a worker to take them.
pub(super) const HANDOVER_MAX: usize = 1_024;

/// How a worker is doing, for who chooses among them.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Connections the worker has, or is about to have.
    load: AtomicUsize,
    /// When it began to answer what a connection has sent; zero while it does not.
    turn_began_us: AtomicU64,
    /// How late it comes to what is ready.
    pub(super) late: Latencies,
}

impl Pulse {
    pub(super) fn begin_turn(&self, now: Timestamp) {
        self.turn_began_us.store(now.as_micros(), Ordering::Relaxed);
    }

    pub(super) fn end_turn(&self) {
        self.turn_began_us.store(0, Ordering::Relaxed);
    }

    /// How long it has been answering one connection; nothing while it does not.
    pub(super) fn in_turn(&self, now: Timestamp) -> Option<Duration> {
        let began_us = self.turn_began_us.load(Ordering::Relaxed);
        (began_us != 0).then(|| now.since(Timestamp::from_micros(began_us)))
    }

    fn is_held_up(&self, now: Timestamp, after: Duration) -> bool {
        self.in_turn(now).is_some_and(|span| span >= after)
    }
}

/// A connection's place in its worker's load, given back also when the connection panics.
pub(super) struct Place(Arc<Pulse>);

impl Place {
    /// The load was raised when the connection was handed over.
    pub(super) fn new(pulse: &Arc<Pulse>) -> Self {
        Self(Arc::clone(pulse))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection on its way to a worker.
pub(super) struct Accepted {
    pub(super) stream: std::net::TcpStream,
    pub(super) peer: Arc<PeerState>,
    pub(super) session: Session,
}

/// A connection that waits behind a door, until one takes it: the worker, or who takes it back.
#[derive(Clone)]
pub(super) struct Waiting(Arc<Mutex<Option<Box<Accepted>>>>);

impl Waiting {
    fn new(accepted: Box<Accepted>) -> Self {
        Self(Arc::new(Mutex::new(Some(accepted))))
    }

    pub(super) fn take(&self) -> Option<Box<Accepted>> {
        self.0.lock().take()
    }

    fn is_taken(&self) -> bool {
        self.0.lock().is_none()
    }
}

#[derive(Clone)]
pub(super) struct Door {
    pulse: Arc<Pulse>,
    sender: mpsc::Sender<Waiting>,
    /// What was sent and perhaps not taken yet, oldest first; no more than may wait.
    sent: Arc<Mutex<VecDeque<Waiting>>>,
}

impl Door {
    /// A door behind which as many may wait, and its other side.
    pub(super) fn new(capacity: usize) -> (Self, Arc<Pulse>, mpsc::Receiver<Waiting>) {
        let (sender, receiver) = mpsc::channel(capacity);
        let pulse = Arc::new(Pulse::default());
        (Self { pulse: Arc::clone(&pulse), sender, sent: Arc::default() }, pulse, receiver)
    }

    /// Gives the connection back where the door is full, or its worker gone.
    pub(super) fn take(&self, accepted: Box<Accepted>) -> Result<(), Box<Accepted>> {
        self.pulse.load.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting::new(accepted);
        let mut sent = self.sent.lock();
        while sent.front().is_some_and(Waiting::is_taken) {
            sent.pop_front();
        }
        let refused = match self.sender.try_send(waiting.clone()) {
            Ok(()) => {
                sent.push_back(waiting);
                return Ok(());
            }
            Err(error) => error.into_inner(),
        };
        self.pulse.load.fetch_sub(1, Ordering::Relaxed);
        Err(refused.take().expect("nobody else has seen it"))
    }

    /// What waits behind the door; none of it will reach the worker.
    fn take_back(&self) -> Vec<Accepted> {
        let sent = std::mem::take(&mut *self.sent.lock());
        let back: Vec<_> =
            sent.iter().filter_map(Waiting::take).map(|accepted| *accepted).collect();
        self.pulse.load.fetch_sub(back.len(), Ordering::Relaxed);
        back
    }
}

/// The doors of the workers, the stand-in's not among them.
#[derive(Clone, Default)]
pub(super) struct Doors(Vec<Door>);

impl Doors {
    pub(super) fn push(&mut self, door: Door) {
        self.0.push(door);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How the workers behind them are doing.
    pub(super) fn pulses(&self) -> Vec<Arc<Pulse>> {
        self.0.iter().map(|door| Arc::clone(&door.pulse)).collect()
    }

    /// Gives the connection back where every worker is held up, or its door full.
    pub(super) fn take(&self, hub: &Hub, accepted: Box<Accepted>) -> Result<(), Box<Accepted>> {
        let is_held_up = held_up(hub);
        let mut doors: Vec<&Door> = self.0.iter().filter(|door| !is_held_up(door)).collect();
        doors.sort_by_key(|door| door.pulse.load.load(Ordering::Relaxed));
        doors
            .into_iter()
            .try_fold(accepted, |accepted, door| match door.take(accepted) {
                Ok(()) => Err(()),
                Err(back) => Ok(back),
            })
            .map_or(Ok(()), Err)
    }

    /// What waits behind the doors of workers that are held up.
    pub(super) fn take_back(&self, hub: &Hub) -> Vec<Accepted> {
        let is_held_up = held_up(hub);
        self.0.iter().filter(|door| is_held_up(door)).flat_map(Door::take_back).collect()
    }
}

/// Says of doors whether their workers are held up now.
fn held_up(hub: &Hub) -> impl Fn(&Door) -> bool + use<> {
    // Read once: without a script that runs for long nobody is held up.
    let busy_after = hub.service().long_after();
    let now = hub.clock().now();
    move |door| busy_after.is_some_and(|after| door.pulse.is_held_up(now, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::hub_for_test;

    fn accepted(id: u64) -> Box<Accepted> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let stream = std::net::TcpStream::connect(address).expect("it listens");
        let session = Session::new(id, true);
        let peer = PeerState::new((address, address), 0, session.clone(), Timestamp::EPOCH);
        Box::new(Accepted { stream, peer: Arc::new(peer), session })
    }

    #[test]
    fn full_door_is_passed_by_and_nobody_waits_at_the_last() {
        let hub = hub_for_test("", true);
        let (first, _pulse, _stuck) = Door::new(1);
        let (second, _pulse, mut other) = Door::new(1);
        let doors = Doors(vec![first, second]);
        for id in 1..=2 {
            assert!(doors.take(&hub, accepted(id)).is_ok());
        }
        let back = doors.take(&hub, accepted(3)).expect_err("both are full");
        assert_eq!(back.session.id, 3);
        assert!(other.try_recv().is_ok_and(|waiting| waiting.take().is_some()));
        assert!(doors.take(&hub, back).is_ok(), "though the first door is as full as before");
    }

    #[test]
    fn what_is_taken_back_is_waited_for_by_nobody() {
        let (door, pulse, mut worker) = Door::new(2);
        assert!(door.take(accepted(1)).is_ok() && door.take(accepted(2)).is_ok());
        let first = worker.try_recv().expect("it came").take();
        assert_eq!(first.expect("it is the worker's").session.id, 1);
        let back: Vec<u64> = door.take_back().iter().map(|accepted| accepted.session.id).collect();
        assert_eq!((back, pulse.load.load(Ordering::Relaxed)), (vec![2], 1));
        assert!(worker.try_recv().expect("its place").take().is_none());
    }
}
