//! A worker that is held up by a script: its other connections are answered in between.
//!
//! A connection never leaves its thread, and a script can hold that up for ever. Once it has been
//! declared long, it is its own interpreter that comes here between two stretches of Lua, so
//! whoever shares the thread with it is told BUSY, or may end it, as anyone on another thread.
//! The reactor does not run meanwhile: each socket is asked itself, a few at a time.
//!
//! Invariant: the connection whose request runs the script is never answered here.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::{Rc, Weak};

use super::connection::Connection;
use super::scratch::Scratch;

/// Sockets that are asked at a time: some microseconds, of a millisecond that Lua has had.
const ASKED_MAX: usize = 64;

scoped_tls_hkt::scoped_thread_local!(static NEIGHBOURS: Neighbours);

/// The connections of one worker.
pub(super) struct Neighbours {
    connections: RefCell<BTreeMap<u64, Weak<RefCell<Connection>>>>,
    /// Up to which connection they have been asked.
    asked: Cell<u64>,
    /// What answers them: all that the worker has of its own is in use. Made when first needed.
    scratch: OnceCell<RefCell<Scratch>>,
    make: Box<dyn Fn() -> Scratch>,
}

impl Neighbours {
    pub(super) fn new(make: impl Fn() -> Scratch + 'static) -> Self {
        Self {
            connections: RefCell::default(),
            asked: Cell::default(),
            scratch: OnceCell::new(),
            make: Box::new(make),
        }
    }

    /// Runs a worker's life, of whose thread these are the connections.
    pub(super) fn during<R>(&self, life: impl FnOnce() -> R) -> R {
        NEIGHBOURS.set(self, life)
    }

    pub(super) fn seat(self: &Rc<Self>, id: u64, connection: &Rc<RefCell<Connection>>) -> Seat {
        self.connections.borrow_mut().insert(id, Rc::downgrade(connection));
        Seat { neighbours: Rc::clone(self), id }
    }

    /// Those whose turn it is: round and round.
    fn next(&self) -> Vec<Rc<RefCell<Connection>>> {
        let connections = self.connections.borrow();
        let after = (Bound::Excluded(self.asked.get()), Bound::Unbounded);
        let asked: Vec<_> = connections.range(after).take(ASKED_MAX).collect();
        let is_lap_over = asked.len() < ASKED_MAX;
        self.asked.set(asked.last().filter(|_| !is_lap_over).map_or(0, |(id, _)| **id));
        asked.into_iter().filter_map(|(_, connection)| connection.upgrade()).collect()
    }
}

/// A connection's place among its neighbours, given up also when it panics.
pub(super) struct Seat {
    neighbours: Rc<Neighbours>,
    id: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.neighbours.connections.borrow_mut().remove(&self.id);
    }
}

/// Answers what has come for the other connections of this thread, for some of them.
pub(super) fn serve() {
    if !NEIGHBOURS.is_set() {
        return;
    }
    NEIGHBOURS.with(|neighbours| {
        let scratch = neighbours.scratch.get_or_init(|| RefCell::new((neighbours.make)()));
        for connection in neighbours.next() {
            // The one that runs the script is in use.
            if let Ok(mut connection) = connection.try_borrow_mut() {
                connection.answer_meanwhile(&mut scratch.borrow_mut());
            }
        }
    });
}
