//! A connection that waits: for what its last request wishes for, or for a pause to end.
//!
//! Meanwhile it reads on, but for no more than one read at once: only so is it seen that the peer
//! goes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::connection::{Connection, End, taken};
use super::scratch::READ_BYTES_MAX;
use crate::commands::{Unserved, Wait};

impl Connection {
    /// Goes on once what the last request waits for has come, or its time is over.
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
