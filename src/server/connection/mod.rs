//! One connection: bytes in, batches answered, bytes out.
//!
//! A connection owns no buffer while it is idle: it reads into its worker's buffer and keeps
//! only a torn request, and replies that its reader has not taken. One turn reads once, answers
//! every complete request, and writes once. While replies are unsent nothing more is read, so
//! a slow reader holds up itself alone, and holds no more than one turn's replies, bounded by
//! `output_bytes_max`.

mod waiting;

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tracing::debug;

use super::hub::Hub;
use super::meanwhile::Seat;
use super::peer::PeerState;
use super::scratch::{READ_BYTES_MAX, Scratch, Tools};
use crate::commands::{GROUP_MAX, Outcome, Session, Wait};
use crate::protocol::{Args, ProtocolError, Reply, Torn, Trust};
use crate::store::Turn;
use crate::time::Timestamp;

/// Replies are handed to the socket within a batch once they are this long.
const WRITE_BYTES_MIN: usize = 256 << 10;

/// A worker's buffer of replies that grew larger than this is given back.
const OUT_KEPT_MAX: usize = 1 << 20;

/// How long an ended connection is read on for, and how much of it.
const LINGER_MAX: std::time::Duration = std::time::Duration::from_secs(1);
const DISCARDED_BYTES_MAX: usize = 16 << 20;

#[expect(clippy::struct_excessive_bools, reason = "facts of its own each, in any combination")]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    scratch: Rc<RefCell<Scratch>>,
    hub: Arc<Hub>,
    pub(super) peer: Arc<PeerState>,
    pub(super) session: Session,
    torn: Torn,
    /// What was read and not yet answered; empty while idle.
    pub(super) tail: BytesMut,
    /// What the reader has not taken; empty while idle.
    pub(super) unsent: BytesMut,
    /// Nothing more is answered: what is unsent goes out, then the end.
    pub(super) closing: bool,
    /// The last turn had no room for all: the tail may hold complete requests, or the socket
    /// more than was read at once.
    pub(super) more: bool,
    /// Another reply would have come on top of more than its reader may leave unread.
    overflowed: bool,
    /// What was read after the end.
    discarded_bytes: usize,
    /// The next request is not begun before a pause is over.
    held: bool,
    /// When the wait of the last request is over, or the pause.
    timer: Option<Pin<Box<Sleep>>>,
    /// What is unsent is not to be sent before the journal has had this turn.
    sealed: Option<Turn>,
    /// Another worker has it: nothing of it is to be forgotten.
    handed_on: bool,
    /// The last turn took long and left requests to the next.
    cut_short: bool,
    /// Since when requests wait that were read and not answered.
    unanswered_since: Option<Timestamp>,
}

/// Why a connection ends.
enum End {
    /// Either side is done, or the peer has gone.
    Done,
    /// The reader takes its replies too slowly.
    Unread,
    /// Another worker takes it from here.
    HandOn,
}

impl Connection {
    pub(super) fn new(
        stream: TcpStream,
        scratch: Rc<RefCell<Scratch>>,
        hub: Arc<Hub>,
        peer: Arc<PeerState>,
        session: Session,
    ) -> Self {
        Self {
            stream,
            scratch,
            hub,
            peer,
            session,
            torn: Torn::default(),
            tail: BytesMut::new(),
            unsent: BytesMut::new(),
            closing: false,
            more: false,
            overflowed: false,
            discarded_bytes: 0,
            held: false,
            timer: None,
            sealed: None,
            handed_on: false,
            cut_short: false,
            unanswered_since: None,
        }
    }

    /// Goes on until the connection has to wait for its socket, has had its turn, or ends.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        // What others send must not keep a connection from its own requests.
        let mut delivered = false;
        loop {
            if let Some(end) = std::task::ready!(self.flush(cx)) {
                return Poll::Ready(end);
            }
            if self.closing || self.peer.is_killed() {
                return Poll::Ready(End::Done);
            }
            if self.may_be_handed_on() {
                return Poll::Ready(End::HandOn);
            }
            let is_served = || self.session.wait().is_some_and(Wait::is_served);
            if !delivered && !self.peer.mailbox.is_empty() && !is_served() {
                self.deliver(cx);
                delivered = true;
                continue;
            }
            if self.session.wait().is_some() || self.held {
                let waited = if self.held { self.hold(cx) } else { self.wait(cx) };
                match waited {
                    Poll::Ready(Some(end)) => return Poll::Ready(end),
                    Poll::Ready(None) => continue,
                    Poll::Pending if self.hub.is_draining() => return Poll::Ready(End::Done),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let turn = if self.more { self.again(cx) } else { self.read(cx) };
            match turn {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) if self.more => {
                    // The others have their turn before this one goes on; after a long one also
                    // those of whom the reactor has not been asked meanwhile.
                    if !self.cut_short || pin!(tokio::task::yield_now()).poll(cx).is_ready() {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(None) => delivered = false,
                // Draining: what had arrived is answered, and nothing more is waited for.
                Poll::Pending if self.hub.is_draining() && self.tail.is_empty() => {
                    return Poll::Ready(End::Done);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.peer.wake_with(cx.waker());
        self.advance(cx)
    }

    /// Says that nothing more will be sent, and waits for the peer to say so, too.
    fn discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if std::task::ready!(Pin::new(&mut self.stream).poll_shutdown(cx)).is_err() {
            return Poll::Ready(());
        }
        loop {
            let scratch = &mut *self.scratch.borrow_mut();
            let mut buffer = ReadBuf::new(&mut scratch.input);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
            let read = std::task::ready!(read.map(|read| taken(read, &buffer)));
            self.discarded_bytes += read.unwrap_or(DISCARDED_BYTES_MAX);
            if self.discarded_bytes >= DISCARDED_BYTES_MAX {
                return Poll::Ready(());
            }
        }
    }

    /// Sends what is unsent. Ready with nothing once all is gone.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        if let Some(turn) = self.sealed {
            std::task::ready!(self.hub.poll_turn(turn, cx));
            self.sealed = None;
        }
        while !self.unsent.is_empty() {
            // A killed connection's reader may never come back: its replies are not waited for.
            match Pin::new(&mut self.stream).poll_write(cx, &self.unsent) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    self.unsent.advance(written);
                    self.peer.sent(written);
                    self.peer.active(self.hub.clock().now());
                }
                Poll::Ready(_) => return Poll::Ready(Some(End::Done)),
                Poll::Pending if self.peer.is_killed() => return Poll::Ready(Some(End::Done)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.unsent.capacity() > 0 {
            self.unsent = BytesMut::new();
            self.peer.set_unsent(0);
        }
        Poll::Ready(None)
    }

    /// Reads once and answers what is complete.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let scratch = Rc::clone(&self.scratch);
        let scratch = &mut *scratch.borrow_mut();
        if self.tail.is_empty() {
            let mut buffer = ReadBuf::new(&mut scratch.input);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
            let Some(len) = std::task::ready!(read.map(|read| taken(read, &buffer))) else {
                return Poll::Ready(Some(End::Done));
            };
            self.peer.received(len);
            let Scratch { input, tools, .. } = scratch;
            let consumed = self.turn(cx, tools, &input[..len]);
            self.tail.extend_from_slice(&input[consumed..len]);
            self.more |= len == READ_BYTES_MAX;
        } else {
            let held = self.tail.len();
            // Grown by what is announced, but never by more than one read on credit.
            let want = self.torn.needs().clamp(1 << 10, READ_BYTES_MAX);
            self.tail.resize(held + want, 0);
            let mut buffer = ReadBuf::new(&mut self.tail[held..]);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
            let read = read.map(|read| taken(read, &buffer));
            let len = if let Poll::Ready(Some(len)) = read { len } else { 0 };
            self.tail.truncate(held + len);
            if std::task::ready!(read).is_none() {
                return Poll::Ready(Some(End::Done));
            }
            self.peer.received(len);
            self.answer_tail(cx, &mut scratch.tools);
            self.more |= len == want;
        }
        self.peer.set_torn(self.tail.len());
        Poll::Ready(self.end())
    }

    /// Answers requests that have been read already.
    fn again(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let scratch = Rc::clone(&self.scratch);
        self.answer_tail(cx, &mut scratch.borrow_mut().tools);
        Poll::Ready(self.end())
    }

    pub(super) fn answer_tail(&mut self, cx: &mut Context<'_>, tools: &mut Tools) {
        let mut tail = std::mem::take(&mut self.tail);
        let consumed = self.turn(cx, tools, &tail);
        tail.advance(consumed);
        self.tail = if tail.is_empty() { BytesMut::new() } else { tail };
    }

    fn end(&self) -> Option<End> {
        self.overflowed.then_some(End::Unread)
    }

    /// Answers the complete requests of `input` and sends the replies. Returns what was consumed.
    fn turn(&mut self, cx: &mut Context<'_>, tools: &mut Tools, input: &[u8]) -> usize {
        tools.out.clear();
        let trusted = self.hub.service().lets_in(&self.session);
        let trust = if trusted { Trust::Authenticated } else { Trust::Unauthenticated };
        let scanned = tools.scanner.scan(&mut self.torn, input, trust);
        let mut answered = 0;
        if tools.scanner.is_empty() {
            self.peer.active(self.hub.clock().now());
        } else {
            answered = self.answer(cx, tools, input);
        }
        if self.session.wait().is_some() || self.held || self.cut_short {
            // What comes behind stays unread, or waits for the next turn.
            self.torn = Torn::default();
            self.more = self.cut_short;
            self.send(cx, &mut tools.out);
            return tools.scanner.end_of(answered);
        }
        let Tools { scanner, out, .. } = tools;
        self.more = scanned.consumed > 0 && scanned.consumed < input.len() && !scanner.is_empty();
        if let Some(error) = scanned.failed
            && !self.closing
        {
            self.closing = true;
            self.refuse(error, out);
        }
        self.send(cx, out);
        if out.capacity() > OUT_KEPT_MAX {
            *out = Vec::with_capacity(READ_BYTES_MAX);
        }
        scanned.consumed
    }

    /// Answers the requests that were scanned, until one ends the connection or has to wait.
    /// Returns how many.
    fn answer(&mut self, cx: &mut Context<'_>, tools: &mut Tools, input: &[u8]) -> usize {
        let Tools { scanner, out, answerer, pulse } = tools;
        let began = answerer.begin(&self.peer, self.hub.clock());
        pulse.begin_turn(began);
        if let Some(since) = self.unanswered_since {
            pulse.late.note(began.since(since));
        }
        let turn_max = self.hub.service().runtime().turn_max();
        self.cut_short = false;
        let mut at = 0;
        // The requests from `at` on, as far ahead as a group reaches.
        let mut window: SmallVec<[Args<'_>; GROUP_MAX]> = SmallVec::new();
        while at < scanner.len() {
            // The bound is for what piles up: a single reply may be longer.
            if self.unsent.len() > self.hub.output_bytes_max() {
                self.overflowed = true;
                break;
            }
            let unseen = at + window.len()..at + GROUP_MAX;
            window.extend(unseen.map_while(|number| scanner.request(number, input)));
            let (answered, outcome) = answerer.answer(&mut self.session, &*self.hub, &window, out);
            at += answered;
            window.drain(..answered);
            match outcome {
                Outcome::Close => {
                    self.closing = true;
                    break;
                }
                Outcome::Held => {
                    self.held = true;
                    break;
                }
                Outcome::Block => break,
                Outcome::Reply | Outcome::Pushed | Outcome::Silent => {}
            }
            if !self.peer.mailbox.is_empty() {
                self.take_mail(out);
            }
            if out.len() >= WRITE_BYTES_MIN {
                self.send(cx, out);
            }
            if at < scanner.len() && answerer.is_over(began, turn_max) {
                self.cut_short = true;
                break;
            }
        }
        self.unanswered_since = self.cut_short.then(|| self.unanswered_since.unwrap_or(began));
        answerer.end(&*self.hub);
        if !self.peer.mailbox.is_empty() {
            self.take_mail(out);
        }
        pulse.end_turn();
        self.peer.answered(&mut self.session);
        at
    }

    /// Writes what has come for this connection behind the replies that are there.
    fn take_mail(&mut self, out: &mut Vec<u8>) {
        let pushes = self.peer.mailbox.take();
        self.hub.service().write_pushes(&mut self.session, pushes, out);
    }

    /// Sends what has come for this connection while it had nothing to answer.
    fn deliver(&mut self, cx: &mut Context<'_>) {
        let scratch = Rc::clone(&self.scratch);
        let out = &mut scratch.borrow_mut().tools.out;
        out.clear();
        self.take_mail(out);
        self.send(cx, out);
        self.peer.active(self.hub.clock().now());
    }

    fn refuse(&self, error: ProtocolError, out: &mut Vec<u8>) {
        debug!(connection = self.session.id, %error, "protocol error");
        self.hub.count_protocol_error();
        // A browser that was made to speak to us must not learn that we are here.
        if error != ProtocolError::CrossProtocol {
            Reply::new(out, self.session.resp).error(&error.into());
        }
    }

    /// Hands replies to the socket; what it does not take now is unsent.
    fn send(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) {
        let mut sent = 0;
        if !out.is_empty() {
            self.sealed = self.hub.ask_turn().or(self.sealed);
        }
        while self.sealed.is_none() && self.unsent.is_empty() && sent < out.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &out[sent..]) {
                Poll::Ready(Ok(written)) if written > 0 => sent += written,
                Poll::Ready(_) => {
                    self.closing = true;
                    sent = out.len();
                }
                Poll::Pending => break,
            }
        }
        self.peer.sent(sent);
        if sent < out.len() {
            self.unsent.extend_from_slice(&out[sent..]);
            self.peer.set_unsent(self.unsent.len());
        }
        out.clear();
    }
}

/// How many bytes a read brought; `None` at the end of the stream or on an error.
fn taken(read: std::io::Result<()>, buffer: &ReadBuf<'_>) -> Option<usize> {
    read.ok().map(|()| buffer.filled().len()).filter(|len| *len > 0)
}

/// Answers until the connection ends; then reads on for a moment and throws away what comes:
/// closing with unread requests would take back replies that are still on their way.
pub(super) async fn serve(connection: Rc<RefCell<Connection>>, seat: Seat) {
    let end = poll_fn(|cx| connection.borrow_mut().poll(cx)).await;
    drop(seat);
    let sole = Rc::into_inner(connection).expect("others hold it only while they answer");
    let mut connection = sole.into_inner();
    if matches!(end, End::HandOn) && connection.hand_on() {
        return;
    }
    connection.hub.forget(connection.session.id);
    let now = connection.hub.clock().now();
    connection.hub.service().forget(&mut connection.session, now);
    if matches!(end, End::Unread) {
        connection.hub.count_unread(connection.session.id, connection.unsent.len());
        return;
    }
    let linger = poll_fn(|cx| connection.discard(cx));
    // Who neither reads nor closes has had its time.
    drop(tokio::time::timeout(LINGER_MAX, linger).await);
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.handed_on {
            return;
        }
        self.hub.service().forget(&mut self.session, self.hub.clock().now());
        self.hub.forget(self.session.id);
    }
}
