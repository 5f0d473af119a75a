//! Calls of many tasks over one connection: gathered, written together, answered in order.
//!
//! One half writes: it takes whatever waits, at once, and makes one write of it; while that is
//! under way more gathers. So an idle connection adds no delay, and a busy one makes pipelines
//! by itself. The other half reads and gives each reply to the oldest call that is unanswered.
//!
//! Invariants: a call is among the unanswered before its bytes are sent; one whose caller has
//! gone is not sent; a call that is dropped unanswered wakes its caller. Where answers are due
//! and nothing comes for `silence_max`, the connection is given up.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::error::Error;
use super::stats::Counters;
use crate::protocol::{Answer as Reply, Answers, Part};
use crate::time::Duration;

/// Calls that are taken from a queue at once.
const BATCH_MAX: usize = 512;

/// Calls that are sent and unanswered: more would wait in the kernel's buffers, for too long.
const IN_FLIGHT_MAX: usize = 4_096;
const _: () = assert!(BATCH_MAX <= IN_FLIGHT_MAX);

/// A batch of large requests is written in pieces of about this size.
const WRITE_BYTES: usize = 256 << 10;

/// Room for one read.
const READ_BYTES: usize = 16 << 10;

/// A request, and who waits for its reply.
pub(super) struct Call {
    pub(super) request: Vec<u8>,
    pub(super) done: Box<dyn Done>,
}

/// What to do with the reply to a request.
pub(super) trait Done: Send {
    fn is_wanted(&self) -> bool;
    fn done(self: Box<Self>, request: Vec<u8>, reply: Reply<'_>);
}

/// A caller that waits for what `read` makes of the reply.
pub(super) struct Waiting<T, Read> {
    pub(super) sender: oneshot::Sender<Result<T, Error>>,
    pub(super) read: Read,
}

impl<T, Read> Done for Waiting<T, Read>
where
    T: Send,
    Read: FnOnce(Vec<u8>, Reply<'_>) -> Result<T, Error> + Send,
{
    fn is_wanted(&self) -> bool {
        !self.sender.is_closed()
    }

    fn done(self: Box<Self>, request: Vec<u8>, reply: Reply<'_>) {
        let Self { sender, read } = *self;
        // The reply is read whether or not somebody still waits: it may tell of a denial to
        // remember, or of a lease to give back.
        let result = match reply.part(0) {
            Some(Part::Error(text)) => Err(Error::told(text)),
            _ => read(request, reply),
        };
        drop(sender.send(result));
    }
}

/// A call that nobody waits for.
pub(super) struct Background<Read>(pub(super) Read);

impl<Read: FnOnce(Reply<'_>) + Send> Done for Background<Read> {
    fn is_wanted(&self) -> bool {
        true
    }

    fn done(self: Box<Self>, _request: Vec<u8>, reply: Reply<'_>) {
        (self.0)(reply);
    }
}

/// The calls that wait to be sent.
pub(super) struct Queues {
    pub(super) calls: mpsc::Receiver<Call>,
    /// What gives something back has a queue of its own, so that too many calls do not keep it.
    pub(super) settlements: mpsc::Receiver<Call>,
}

impl Queues {
    /// Waits for a call and takes with it all that wait, up to [`BATCH_MAX`]; what gives back
    /// goes first. False once no more can come.
    async fn take(&mut self, batch: &mut Vec<Call>) -> bool {
        loop {
            let calls_end = self.calls.is_closed() && self.calls.is_empty();
            let settlements_end = self.settlements.is_closed() && self.settlements.is_empty();
            if calls_end && settlements_end {
                return false;
            }
            let first = tokio::select! {
                first = self.settlements.recv(), if !settlements_end => first,
                first = self.calls.recv(), if !calls_end => first,
            };
            let Some(first) = first else { continue };
            batch.push(first);
            while batch.len() < BATCH_MAX {
                let next = self.settlements.try_recv().or_else(|_| self.calls.try_recv());
                let Ok(next) = next else { break };
                batch.push(next);
            }
            return true;
        }
    }

    /// Drops calls as they come, which wakes their callers. Returns once no more can come.
    pub(super) async fn refuse_calls(&mut self) {
        let mut batch = Vec::new();
        while self.calls.recv_many(&mut batch, BATCH_MAX).await > 0 {
            batch.clear();
        }
    }
}

/// How a connection ended.
pub(super) enum Ended {
    /// Nobody is left who could ask.
    Finished,
    Lost {
        why: Error,
        /// Replies that came over it.
        answered: u64,
    },
}

/// Carries calls over a connection until it ends.
pub(super) async fn carry(
    stream: TcpStream,
    queues: &mut Queues,
    silence_max: Duration,
    counters: &Counters,
) -> Ended {
    let (read_half, write_half) = stream.into_split();
    let (sent, in_flight) = mpsc::channel(IN_FLIGHT_MAX);
    let mut reading = Reading {
        half: read_half,
        unread: BytesMut::with_capacity(READ_BYTES),
        in_flight,
        oldest: None,
        silence_max,
        answered: 0,
    };
    let why = {
        let mut receiving = std::pin::pin!(reading.run());
        tokio::select! {
            received = &mut receiving => received,
            written = write(write_half, queues, sent, counters) => match written {
                Err(why) => Err(why),
                // What was sent last is still answered.
                Ok(_open) => receiving.await,
            },
        }
    };
    match why {
        Ok(()) => Ended::Finished,
        Err(why) => Ended::Lost { why, answered: reading.answered },
    }
}

/// Writes until no more calls can come; gives the half back, since dropping it ends the
/// connection.
async fn write(
    mut half: OwnedWriteHalf,
    queues: &mut Queues,
    sent: mpsc::Sender<Call>,
    counters: &Counters,
) -> Result<OwnedWriteHalf, Error> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut bytes = Vec::new();
    while queues.take(&mut batch).await {
        // All that was taken before has been written, so its answers make room.
        let mut places = sent
            .reserve_many(batch.len())
            .await
            .map_err(|_| Error::lost("the other half has ended"))?;
        for call in batch.drain(..).filter(|call| call.done.is_wanted()) {
            let Some(place) = places.next() else { break };
            bytes.extend_from_slice(&call.request);
            place.send(call);
            counters.asked();
            if bytes.len() >= WRITE_BYTES {
                flush(&mut half, &mut bytes, counters).await?;
            }
        }
        flush(&mut half, &mut bytes, counters).await?;
    }
    Ok(half)
}

async fn flush(
    half: &mut OwnedWriteHalf,
    bytes: &mut Vec<u8>,
    counters: &Counters,
) -> Result<(), Error> {
    if bytes.is_empty() {
        return Ok(());
    }
    half.write_all(bytes).await.map_err(Error::lost)?;
    counters.written();
    bytes.clear();
    // One large request must not hold its room for ever.
    bytes.shrink_to(WRITE_BYTES);
    Ok(())
}

struct Reading {
    half: OwnedReadHalf,
    unread: BytesMut,
    in_flight: mpsc::Receiver<Call>,
    oldest: Option<Call>,
    silence_max: Duration,
    answered: u64,
}

impl Reading {
    /// Reads until the connection ends, or until all is answered that can ever be asked.
    async fn run(&mut self) -> Result<(), Error> {
        let mut answers = Answers::default();
        loop {
            if self.oldest.is_none() {
                self.oldest = self.in_flight.try_recv().ok();
            }
            let is_due = self.oldest.is_some();
            self.unread.reserve(READ_BYTES);
            tokio::select! {
                read = self.half.read_buf(&mut self.unread) => match read {
                    Ok(0) => return Err(Error::lost("the server closed it")),
                    Ok(_) => self.deal(&mut answers)?,
                    Err(err) => return Err(Error::lost(err)),
                },
                next = self.in_flight.recv(), if !is_due => match next {
                    Some(next) => self.oldest = Some(next),
                    None => return Ok(()),
                },
                () = tokio::time::sleep(self.silence_max.as_std()), if is_due => {
                    return Err(Error::lost("the server is silent"));
                }
            }
        }
    }

    /// Gives every whole reply to the call that it answers.
    fn deal(&mut self, answers: &mut Answers) -> Result<(), Error> {
        loop {
            let Some((reply, len)) = answers.read(&self.unread)? else { return Ok(()) };
            if !matches!(reply.part(0), Some(Part::Push(_))) {
                let oldest = self.oldest.take().or_else(|| self.in_flight.try_recv().ok());
                let Some(call) = oldest else {
                    return Err(Error::lost("the server answered what was not asked"));
                };
                self.answered += 1;
                call.done.done(call.request, reply);
            }
            drop(self.unread.split_to(len));
        }
    }
}
