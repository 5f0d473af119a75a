//! One connection: bytes in, batches answered, bytes out.
//!
//! A connection owns no buffer while it is idle: it reads into its worker's buffer and keeps
//! only a torn request, and replies that its reader has not taken. One turn reads once, answers
//! every complete request, and writes once. While replies are unsent nothing more is read, so
//! a slow reader holds up itself alone, and holds no more than one turn's replies, bounded by
//! `output_bytes_max`.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tracing::debug;

use super::answer::Answerer;
use super::hub::Hub;
use super::peer::PeerState;
use crate::commands::{GROUP_MAX, Outcome, Session};
use crate::protocol::{Args, ProtocolError, Reply, Scanner, Torn, Trust};

/// What one turn reads at most: also the size of a worker's buffer.
const READ_BYTES_MAX: usize = 64 << 10;

/// Replies are handed to the socket within a batch once they are this long.
const WRITE_BYTES_MIN: usize = 256 << 10;

/// A worker's buffer of replies that grew larger than this is given back.
const OUT_KEPT_MAX: usize = 1 << 20;

/// What the connections of one worker share: they run on one thread, one at a time.
pub(super) struct Scratch {
    scanner: Scanner,
    input: Box<[u8]>,
    out: Vec<u8>,
    answerer: Answerer,
}

impl Scratch {
    pub(super) fn new(scanner: Scanner, answerer: Answerer) -> Self {
        Self {
            scanner,
            input: vec![0; READ_BYTES_MAX].into(),
            out: Vec::with_capacity(READ_BYTES_MAX),
            answerer,
        }
    }
}

pub(super) struct Connection {
    stream: TcpStream,
    scratch: Rc<RefCell<Scratch>>,
    hub: Arc<Hub>,
    peer: Arc<PeerState>,
    session: Session,
    torn: Torn,
    /// What was read and not yet answered; empty while idle.
    tail: BytesMut,
    /// What the reader has not taken; empty while idle.
    unsent: BytesMut,
    /// Nothing more is answered: what is unsent goes out, then the end.
    closing: bool,
    /// The tail may hold complete requests that the last turn had no room for.
    more: bool,
}

/// Why a connection ends.
enum End {
    /// Either side is done, or the peer has gone.
    Done,
    /// The reader takes its replies too slowly.
    Unread,
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
        }
    }

    /// Goes on until the connection has to wait for its socket, or ends.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if let Some(end) = std::task::ready!(self.flush(cx)) {
                return Poll::Ready(end);
            }
            if self.closing || self.peer.is_killed() {
                return Poll::Ready(End::Done);
            }
            if self.hub.is_draining() && self.tail.is_empty() {
                return Poll::Ready(End::Done);
            }
            let turn = if self.more { self.again(cx) } else { self.read(cx) };
            if let Some(end) = std::task::ready!(turn) {
                return Poll::Ready(end);
            }
        }
    }

    /// Sends what is unsent. Ready with nothing once all is gone.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        while !self.unsent.is_empty() {
            // A killed connection's reader may never come back: its replies are not waited for.
            match Pin::new(&mut self.stream).poll_write(cx, &self.unsent) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    self.unsent.advance(written);
                    self.peer.sent(written);
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
            let input = std::mem::take(&mut scratch.input);
            let consumed = self.turn(cx, scratch, &input[..len]);
            self.tail.extend_from_slice(&input[consumed..len]);
            scratch.input = input;
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
            self.answer_tail(cx, scratch);
        }
        self.peer.set_torn(self.tail.len());
        Poll::Ready(self.overflowed())
    }

    /// Answers requests that have been read already.
    fn again(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let scratch = Rc::clone(&self.scratch);
        self.answer_tail(cx, &mut scratch.borrow_mut());
        Poll::Ready(self.overflowed())
    }

    fn answer_tail(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) {
        let mut tail = std::mem::take(&mut self.tail);
        let consumed = self.turn(cx, scratch, &tail);
        tail.advance(consumed);
        self.tail = if tail.is_empty() { BytesMut::new() } else { tail };
    }

    fn overflowed(&self) -> Option<End> {
        let unread = self.unsent.len() > self.hub.output_bytes_max();
        unread.then_some(End::Unread)
    }

    /// Answers the complete requests of `input` and sends the replies. Returns what was consumed.
    fn turn(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch, input: &[u8]) -> usize {
        let trust =
            if self.session.authenticated { Trust::Authenticated } else { Trust::Unauthenticated };
        let scanned = scratch.scanner.scan(&mut self.torn, input, trust);
        let Scratch { scanner, out, answerer, .. } = scratch;
        if !scanner.is_empty() {
            answerer.begin(&self.peer);
            let mut at = 0;
            while at < scanner.len() {
                let window: SmallVec<[Args<'_>; GROUP_MAX]> = (at..at + GROUP_MAX)
                    .map_while(|number| scanner.request(number, input))
                    .collect();
                let (answered, outcome) =
                    answerer.answer(&mut self.session, &*self.hub, &window, out);
                at += answered;
                if outcome == Outcome::Close {
                    self.closing = true;
                    break;
                }
                if out.len() >= WRITE_BYTES_MIN {
                    self.send(cx, out);
                    if self.overflowed().is_some() {
                        break;
                    }
                }
            }
            answerer.end();
            self.peer.answered(&mut self.session);
        }
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
        while self.unsent.is_empty() && sent < out.len() {
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

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        connection.peer.wake_with(cx.waker());
        let end = std::task::ready!(connection.advance(cx));
        if matches!(end, End::Unread) {
            connection.hub.count_unread(connection.session.id, connection.unsent.len());
        }
        Poll::Ready(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.hub.forget(self.session.id);
    }
}
