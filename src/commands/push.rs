//! What reaches a connection unasked.
//!
//! A push is made once and shared by all who get it; it waits in each one's bounded mailbox and
//! is written by the connection itself, between two replies and in the protocol that it speaks
//! then. RESP2 knows no pushes, so there only who asked for them gets any: a message would else
//! be read as the reply to another command.

use std::sync::Arc;

use super::session::Session;
use crate::protocol::{Reply, Resp};

/// What one subscribes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Shard,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];
}

/// What was published.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) channel: Box<[u8]>,
    pub(crate) text: Box<[u8]>,
}

#[derive(Clone, Debug)]
pub(crate) enum Push {
    /// To who subscribes to its channel.
    Message(Arc<Message>),
    /// To who subscribes to its shard channel.
    ShardMessage(Arc<Message>),
    /// To who subscribes to a pattern that fits.
    PatternMessage { pattern: Arc<[u8]>, message: Arc<Message> },
    /// These keys, or all, are no longer what was read.
    Invalidated { keys: Option<Keys>, redirected: bool },
    /// A command that somebody has given, as text.
    Monitored(Arc<[u8]>),
    /// Invalidations cannot reach the connection of this number any more.
    RedirectionBroken(u64),
}

/// Keys that have changed.
pub(crate) type Keys = Arc<[Box<[u8]>]>;

/// The channel on which RESP2 hears of invalidations.
const INVALIDATIONS: &str = "__redis__:invalidate";

/// What a push takes on the wire besides its texts: its header, its kind, lengths.
const FRAME_BYTES: usize = 64;

impl Push {
    /// About what it takes on the wire: a mailbox is bounded by it.
    pub(crate) fn bytes(&self) -> usize {
        let texts = match self {
            Self::Message(message) | Self::ShardMessage(message) => message.bytes(),
            Self::PatternMessage { pattern, message } => pattern.len() + message.bytes(),
            Self::Invalidated { keys, .. } => {
                keys.iter().flat_map(|keys| keys.iter()).map(|key| key.len() + FRAME_BYTES).sum()
            }
            Self::Monitored(line) => line.len(),
            Self::RedirectionBroken(_) => 0,
        };
        FRAME_BYTES + texts
    }

    /// Whether the connection still wants it.
    pub(super) fn subscription(&self) -> Option<(Kind, &[u8])> {
        match self {
            Self::Message(message) => Some((Kind::Channel, &message.channel)),
            Self::ShardMessage(message) => Some((Kind::Shard, &message.channel)),
            Self::PatternMessage { pattern, .. } => Some((Kind::Pattern, pattern)),
            Self::Invalidated { .. } | Self::Monitored(_) | Self::RedirectionBroken(_) => None,
        }
    }

    /// Writes what this connection is to read of it, if anything.
    pub(super) fn write(&self, session: &Session, out: &mut Vec<u8>) {
        let mut reply = Reply::new(out, session.resp);
        match self {
            Self::Message(message) => write_message("message", message, &mut reply),
            Self::ShardMessage(message) => write_message("smessage", message, &mut reply),
            Self::PatternMessage { pattern, message } => {
                reply.push(4);
                reply.bulk("pmessage");
                reply.bulk(pattern);
                reply.bulk(&message.channel);
                reply.bulk(&message.text);
            }
            Self::Invalidated { keys, redirected } => match session.resp {
                Resp::V3 => {
                    reply.push(2);
                    reply.bulk("invalidate");
                    write_keys(keys.as_ref(), &mut reply);
                }
                Resp::V2 if *redirected && session.subscriptions() > 0 => {
                    reply.push(3);
                    reply.bulk("message");
                    reply.bulk(INVALIDATIONS);
                    write_keys(keys.as_ref(), &mut reply);
                }
                Resp::V2 => {}
            },
            // No push in RESP3 either.
            Self::Monitored(line) if session.monitors => reply.simple(line),
            Self::Monitored(_) => {}
            Self::RedirectionBroken(connection) => {
                if session.resp == Resp::V3 {
                    reply.push(2);
                    reply.bulk("tracking-redir-broken");
                    reply.integer(*connection as i64);
                }
            }
        }
    }
}

impl Message {
    fn bytes(&self) -> usize {
        self.channel.len() + self.text.len()
    }
}

fn write_message(kind: &str, message: &Message, reply: &mut Reply<'_>) {
    reply.push(3);
    reply.bulk(kind);
    reply.bulk(&message.channel);
    reply.bulk(&message.text);
}

fn write_keys(keys: Option<&Keys>, reply: &mut Reply<'_>) {
    match keys {
        Some(keys) => reply.bulks(keys),
        None => reply.null(),
    }
}
