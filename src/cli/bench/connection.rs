//! One connection under load: send what is due, read what comes, account for it.
//!
//! Requests are written in one call where the socket takes them, and replies are read while
//! the rest of a batch still waits to be written, so a server that stops reading until it is
//! read cannot lock us up. Replies come in the order of the requests; the n-th reply belongs to
//! the n-th intended moment.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use anyhow::{Context, bail};
use bytes::{Buf, BytesMut};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::AsyncReadExt;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

use super::pace::Pace;
use super::worker::Worker;
use crate::cli::resp::{self, REPLY_BYTES_MAX, Reply};
use crate::time::{Duration, Timestamp};

/// Room for replies that each read offers.
const READ_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    worker: Rc<Worker>,
    pace: Pace,
    /// Only an open loop wakes up by itself.
    alarm: Option<Alarm>,
    unsent: Vec<u8>,
    unread: BytesMut,
    /// For each request in flight, the moment from which its latency counts.
    intended: VecDeque<Timestamp>,
}

impl Connection {
    pub(super) fn new(
        stream: std::net::TcpStream,
        worker: Rc<Worker>,
        pace: Pace,
    ) -> anyhow::Result<Self> {
        let alarm = match pace {
            Pace::Closed { .. } => None,
            Pace::Open(_) => Some(Alarm::new()?),
        };
        Ok(Self {
            stream: TcpStream::from_std(stream)?,
            worker,
            pace,
            alarm,
            unsent: Vec::new(),
            unread: BytesMut::new(),
            intended: VecDeque::new(),
        })
    }

    /// Runs until everything is sent and answered.
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        loop {
            let now = self.worker.clock.now();
            self.fill(now);
            self.write()?;
            if self.intended.is_empty() && self.pace.finished(now) {
                self.worker.tally.borrow_mut().unsent += self.pace.unsent();
                return Ok(());
            }
            self.wait().await?;
        }
    }

    fn fill(&mut self, now: Timestamp) {
        let mut draw = self.worker.draw.borrow_mut();
        let before = self.intended.len();
        for _ in 0..self.pace.room(before, self.worker.depth) {
            let Some(intended) = self.pace.take(now) else { break };
            self.worker.template.encode(draw.next(), &mut self.unsent);
            self.intended.push_back(intended);
        }
        self.worker.started(self.intended.len() - before);
    }

    fn write(&mut self) -> anyhow::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(length) if length == self.unsent.len() => self.unsent.clear(),
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(err) if err.kind() == ErrorKind::WouldBlock => break,
                Err(err) => return Err(self.lost(&err)),
            }
        }
        Ok(())
    }

    /// Waits for whichever comes first: replies, room to write, or the next due moment.
    async fn wait(&mut self) -> anyhow::Result<()> {
        let room = self.pace.room(self.intended.len(), self.worker.depth);
        let due = self.alarm.as_ref().zip(self.pace.wake_at()).filter(|_| room > 0);
        self.unread.reserve(READ_BYTES);
        let (mut reader, writer) = self.stream.split();
        let read = tokio::select! {
            biased;
            read = reader.read_buf(&mut self.unread) => read,
            woken = writer.writable(), if !self.unsent.is_empty() => return Ok(woken?),
            // Evaluated only where its condition holds, but built in any case.
            woken = Alarm::ring(due, self.worker.clock.now()), if due.is_some() => return woken,
        };
        match read {
            Ok(0) => bail!("{}", self.closed()),
            Ok(_) => self.account(),
            Err(err) => Err(self.lost(&err)),
        }
    }

    fn account(&mut self) -> anyhow::Result<()> {
        let now = self.worker.clock.now();
        let mut tally = self.worker.tally.borrow_mut();
        let mut answered = 0;
        while !self.unread.is_empty() {
            let Some((reply, length)) = resp::decode(&self.unread)
                .with_context(|| format!("{} does not speak RESP", self.worker.server))?
            else {
                if self.unread.len() > REPLY_BYTES_MAX {
                    bail!("{} answers without end", self.worker.server);
                }
                break;
            };
            if let Reply::Error(text) = reply
                && text.starts_with(b"NOAUTH")
            {
                return Err(self.worker.server.explain(text));
            }
            let Some(intended) = self.intended.pop_front() else {
                bail!("{} sent a reply that nothing had asked for", self.worker.server);
            };
            tally.record(reply, now.since(intended));
            self.unread.advance(length);
            answered += 1;
        }
        tally.latest = now;
        self.worker.answered(answered);
        Ok(())
    }

    fn lost(&self, err: &std::io::Error) -> anyhow::Error {
        match err.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => anyhow::anyhow!(self.closed()),
            _ => anyhow::anyhow!("lost a connection to {}: {err}", self.worker.server),
        }
    }

    fn closed(&self) -> String {
        let tally = self.worker.tally.borrow();
        let error = tally.first_error.as_deref().map(|text| format!("; it had said: {text}"));
        format!("{} closed a connection{}", self.worker.server, error.unwrap_or_default())
    }
}

/// A timer of the kernel's, set in microseconds; tokio's own rounds to milliseconds.
#[derive(Debug)]
struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    #[expect(
        deprecated,
        reason = "an owned descriptor stays open as long as it has to; the successor is unsafe"
    )]
    fn new() -> anyhow::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
            .context("cannot create a timer; is the limit on open files too low?")?;
        Ok(Self(AsyncFd::new(timer)?))
    }

    async fn ring(due: Option<(&Self, Timestamp)>, now: Timestamp) -> anyhow::Result<()> {
        let Some((Self(timer), at)) = due else { return Ok(()) };
        // A span of zero would disarm the timer.
        let span = at.since(now).max(Duration::from_micros(1)).as_std();
        let it_value =
            Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        // The count is never read: setting the timer clears it, and each expiry is a new edge.
        timer.readable().await?.clear_ready();
        Ok(())
    }
}
