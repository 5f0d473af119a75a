//! Who answers: the commands, or for measuring the listener alone, a bare `+PONG`.

use crate::commands::{Host, Outcome, Session, Worker};
use crate::protocol::Args;
use crate::time::{Clock, Duration, Timestamp};

use super::peer::PeerState;

pub(super) enum Answerer {
    Commands(Box<Worker>),
    /// The floor: what a request costs with nothing done for it.
    Pong,
}

impl Answerer {
    pub(super) fn begin(&mut self, peer: &PeerState, clock: &Clock) -> Timestamp {
        let now = match self {
            Self::Commands(worker) => worker.begin(),
            Self::Pong => clock.now(),
        };
        peer.active(now);
        now
    }

    /// Answers at least the first of these requests. Returns how many, and what the last one
    /// left behind.
    #[inline]
    pub(super) fn answer(
        &mut self,
        session: &mut Session,
        host: &dyn Host,
        requests: &[Args<'_>],
        out: &mut Vec<u8>,
    ) -> (usize, Outcome) {
        match self {
            Self::Commands(worker) => worker.call_some(session, host, requests, out),
            Self::Pong => {
                for _ in requests {
                    out.extend_from_slice(b"+PONG\r\n");
                }
                (requests.len(), Outcome::Reply)
            }
        }
    }

    /// Whether this turn, which began then, has gone on for long.
    #[inline]
    pub(super) fn is_over(&self, began: Timestamp, turn_max: Option<Duration>) -> bool {
        match (self, turn_max) {
            (Self::Commands(worker), Some(turn_max)) => worker.now().since(began) >= turn_max,
            (Self::Commands(_), None) | (Self::Pong, _) => false,
        }
    }

    pub(super) fn end(&mut self, host: &dyn Host) {
        if let Self::Commands(worker) = self {
            worker.end(host);
        }
    }
}
