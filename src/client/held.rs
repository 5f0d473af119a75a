//! What is held at the server until it is given back: a [`Lease`] of a concurrency limit, a
//! [`Reservation`] of an estimated cost.
//!
//! Both are guards. Dropped, they give back what they hold, by a bounded queue of its own and
//! without waiting; so does an answer that comes when nobody waits for it any more. What cannot
//! be brought to the server ends there by itself, after its span, and is counted here.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::answer::{Answer, held_id, settled};
use super::error::Error;
use super::pipeline::{Background, Call};
use super::request::{Check, Look, Words};
use super::{Client, Lane};
use crate::limit::Cost;
use crate::protocol::Answer as Reply;
use crate::time::Duration;

/// The answer to [`Client::acquire`].
#[derive(Debug)]
pub struct Acquired {
    pub answer: Answer,
    /// There if the server allowed it and holds something.
    pub lease: Option<Lease>,
}

/// The answer to [`Client::reserve`].
#[derive(Debug)]
pub struct Reserved {
    pub answer: Answer,
    /// There if the server allowed it and holds something.
    pub reservation: Option<Reservation>,
}

/// One place of a concurrency limit, held until this is dropped or its span is over.
#[derive(Debug)]
#[must_use = "a lease that is dropped is released"]
pub struct Lease(Held);

/// An estimate that is spent until the true cost is known. Dropped, it is cancelled.
#[derive(Debug)]
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reservation(Held);

impl Client {
    /// Takes a place of the tenant's concurrency limits, for at most `ttl`.
    pub async fn acquire(&self, check: &Check<'_>, ttl: Duration) -> Result<Acquired, Error> {
        let (answer, held) = self.hold(check, ttl, End::Release).await?;
        Ok(Acquired { answer, lease: held.map(Lease) })
    }

    /// Takes an estimate of a cost, to be settled within `ttl`.
    pub async fn reserve(&self, check: &Check<'_>, ttl: Duration) -> Result<Reserved, Error> {
        let (answer, held) = self.hold(check, ttl, End::Cancel).await?;
        Ok(Reserved { answer, reservation: held.map(Reservation) })
    }

    async fn hold(
        &self,
        check: &Check<'_>,
        ttl: Duration,
        end: End,
    ) -> Result<(Answer, Option<Held>), Error> {
        let mut words = check.words(&[end.beginning()]);
        words.push(b"TTL");
        words.push(ttl.to_string().as_bytes());
        let (client, tenant) = (self.clone(), Box::from(check.tenant));
        let read = move |_: Vec<u8>, reply: Reply<'_>| {
            let answer = Answer::read(&reply)?;
            let held = held_id(&reply).map(|id| Held { client, tenant, id, end });
            Ok((answer, held))
        };
        match self.ask(Lane::Calls, words.finish(Look::Spend), read).await {
            Ok(both) => Ok(both),
            Err(error) => Ok((self.or_without_server(Err(error))?, None)),
        }
    }
}

impl Lease {
    /// Gives the place back now; false if its span was over before.
    pub async fn release(self) -> Result<bool, Error> {
        self.0.settle(&[b"RL.RELEASE"], None).await
    }
}

impl Reservation {
    /// Spends what it really cost, in place of the estimate; false if its span was over before.
    pub async fn commit(self, actual: Cost) -> Result<bool, Error> {
        self.0.settle(&[b"RL.COMMIT"], Some(actual)).await
    }

    /// Gives the estimate back now; false if its span was over before.
    pub async fn cancel(self) -> Result<bool, Error> {
        self.0.settle(&[b"RL.CANCEL"], None).await
    }
}

/// How what is held is given back when nobody says how.
#[derive(Clone, Copy, Debug)]
enum End {
    Release,
    Cancel,
}

impl End {
    const fn beginning(self) -> &'static [u8] {
        match self {
            Self::Release => b"RL.ACQUIRE",
            Self::Cancel => b"RL.RESERVE",
        }
    }

    const fn word(self) -> &'static [u8] {
        match self {
            Self::Release => b"RL.RELEASE",
            Self::Cancel => b"RL.CANCEL",
        }
    }
}

/// Empty once it is settled.
struct Held {
    client: Client,
    tenant: Box<[u8]>,
    id: Box<[u8]>,
    end: End,
}

impl Held {
    async fn settle(mut self, verb: &[&[u8]], actual: Option<Cost>) -> Result<bool, Error> {
        let mut words = Words::of(verb);
        words.push(&self.id);
        if let Some(actual) = actual {
            words.number(actual.0);
        }
        self.client.shared.forget(&self.tenant);
        let (shared, tenant) = (Arc::clone(&self.client.shared), self.tenant.clone());
        let read = move |_: Vec<u8>, reply: Reply<'_>| {
            shared.forget(&tenant);
            Ok(settled(&reply))
        };
        // From here on it is on its way, whether or not somebody waits. One that the full queue
        // did not take is not cancelled either: it may have cost something.
        self.id = Box::default();
        let receiver = self.client.send(Lane::Settlements, words.finish(Look::Spend), read);
        if receiver.is_err() {
            self.client.shared.counters.unreturned();
        }
        self.client.answered(receiver?).await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let id = mem::take(&mut self.id);
        if id.is_empty() {
            return;
        }
        let request = Words::of(&[self.end.word(), &id]).finish(Look::Spend);
        let (shared, tenant) = (Arc::clone(&self.client.shared), mem::take(&mut self.tenant));
        let read = move |_: Reply<'_>| shared.forget(&tenant);
        let call = Call { request, done: Box::new(Background(read)) };
        if self.client.settlements.try_send(call).is_err() {
            self.client.shared.counters.unreturned();
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.end, self.id.escape_ascii())
    }
}
