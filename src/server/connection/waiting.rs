//! A connection that does not answer now: it waits for what a command waits for, for the end of
//! a pause, or to be handed on to another worker.
//!
//! Meanwhile it reads on, but for no more than one read at once: only so is it seen that the
//! peer goes, and nobody can make it hold more than that.

use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::super::doors::Accepted;
use super::super::scratch::READ_BYTES_MAX;
use super::{Connection, End, taken};
use crate::commands::{Session, Unserved, Wait};

impl Connection {
    /// Whether the stand-in has it for no reason any longer, and it is at rest.
    pub(super) fn may_be_handed_on(&self) -> bool {
        !self.scratch.borrow().onward.is_empty()
            && !self.hub.service().engine().long().is_any()
            && !self.hub.is_draining()
            && self.tail.is_empty()
            && !self.more
            && !self.held
            && self.session.wait().is_none()
    }

    /// Lets another worker go on with it. False where none can, or the socket has gone.
    pub(super) fn hand_on(&mut self) -> bool {
        let Ok(fd) = self.stream.as_fd().try_clone_to_owned() else { return false };
        self.peer.set_fd(fd.as_raw_fd());
        let empty = Session::new(self.session.id, false);
        let session = std::mem::replace(&mut self.session, empty);
        let accepted = Accepted { stream: fd.into(), peer: Arc::clone(&self.peer), session };
        // From here on it may be answered, and forgotten, by the other one.
        match self.scratch.borrow().onward.take(&self.hub, Box::new(accepted)) {
            Ok(()) => self.handed_on = true,
            Err(back) => self.session = back.session,
        }
        self.handed_on
    }

    /// Goes on once what the last request waits for has come, or its time is over. Meanwhile
    /// reads on, but for no more than one read at once: only so is it seen that the peer goes.
    pub(super) fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let timeout = self.session.wait().and_then(Wait::timeout);
        if self.timer.is_none()
            && let Some(timeout) = timeout
        {
            self.timer = Some(Box::pin(tokio::time::sleep(timeout.as_std())));
        }
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
            && let Some(wait) = self.session.wait()
        {
            wait.end(Unserved::TimedOut);
        }
        let now = self.hub.clock().now();
        let (hub, session) = (&*self.hub, &mut self.session);
        if let Some(mut answer) = hub.service().waited(session, hub, now) {
            self.timer = None;
            self.more = !self.tail.is_empty();
            self.peer.answered(&mut self.session);
            self.peer.active(now);
            self.send(cx, &mut answer);
            return Poll::Ready(None);
        }
        self.read_ahead(cx)
    }

    /// Goes on once the pause is over, or should be.
    pub(super) fn hold(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let left = self.hub.service().pause().left(self.hub.clock().now());
        let over = left.is_none_or(|left| {
            let sleep = || Box::pin(tokio::time::sleep(left.as_std()));
            self.timer.get_or_insert_with(sleep).as_mut().poll(cx).is_ready()
        });
        if over {
            self.timer = None;
            self.held = false;
            self.more = true;
            return Poll::Ready(None);
        }
        self.read_ahead(cx)
    }

    /// Reads what is not answered yet, up to a bound. Ready at the end of the stream.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let input = &mut self.scratch.borrow_mut().input;
        while self.tail.len() < READ_BYTES_MAX {
            let mut buffer = ReadBuf::new(input);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
            let Some(len) = std::task::ready!(read.map(|read| taken(read, &buffer))) else {
                return Poll::Ready(Some(End::Done));
            };
            self.peer.received(len);
            self.tail.extend_from_slice(&input[..len]);
        }
        Poll::Pending
    }
}
