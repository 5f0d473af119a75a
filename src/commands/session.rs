//! What the server knows of one connection while it answers it.
//!
//! A [`Session`] belongs to its connection alone, so nothing here is locked. What other
//! connections may see of it (CLIENT LIST) is a copy that the edge publishes when
//! [`Session::changed`] says so.

use std::sync::Arc;

use super::acl;
use super::pubsub::HeldBack;
use super::push::Kind;
use super::tracking::Tracker;
use super::transaction::Transaction;
use super::waiting::Wait;
use crate::load::Tier;
use crate::protocol::Resp;

/// What a handler leaves behind: exactly one of these.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// One reply has been written.
    Reply,
    /// Pushes have been written, in place of a reply: they are sent whatever CLIENT REPLY says.
    Pushed,
    /// Nothing is to be sent.
    Silent,
    /// The request was not begun, and is to be asked again when the pause is over.
    Held,
    /// Nothing has been written: the reply comes once there is something to take, and nothing
    /// more is answered before.
    Block,
    /// A reply has been written; the connection ends after it.
    Close,
}

/// CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Replies {
    #[default]
    On,
    Off,
    /// CLIENT REPLY SKIP was just answered by silence: the next command is, too.
    SkipNext,
    /// The command being answered is that next one.
    SkipThis,
}

/// The number of no command.
pub(crate) const NO_COMMAND: u16 = u16::MAX;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the wire, each on its own")]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) db: usize,
    pub(crate) resp: Resp,
    pub(crate) authenticated: bool,
    /// It has given the operators' password.
    pub(super) is_operator: bool,
    pub(crate) replies: Replies,
    pub(crate) name: Box<[u8]>,
    pub(crate) library_name: Box<[u8]>,
    pub(crate) library_version: Box<[u8]>,
    /// Of its requests, where nothing else says one.
    pub(super) tier: Option<Tier>,
    pub(crate) no_evict: bool,
    pub(crate) no_touch: bool,
    /// What MULTI and WATCH have begun.
    pub(crate) transaction: Transaction,
    /// How many channels, patterns and shard channels are subscribed to, by [`Kind`].
    pub(super) subscribed: [usize; Kind::ALL.len()],
    /// Something was left since pushes were last written: some that wait may be for it.
    pub(super) unsubscribed: bool,
    /// Sees every command that is carried out.
    pub(super) monitors: bool,
    /// While a script runs that may be taken back: what it publishes meanwhile.
    pub(super) held_back: Option<HeldBack>,
    pub(super) tracking: Option<Arc<Tracker>>,
    /// CLIENT CACHING was the last command but for others of CLIENT.
    pub(super) caching: bool,
    /// What the last request waits for.
    pub(super) wait: Option<Arc<Wait>>,
    /// Its answer is not to be sent.
    pub(super) waits_silently: bool,
    /// The last command's number in the table; [`NO_COMMAND`] before the first.
    pub(crate) last_command: u16,
    /// Something that CLIENT LIST shows has changed since the edge last looked.
    pub(crate) changed: bool,
}

impl Session {
    pub(crate) fn new(id: u64, authenticated: bool) -> Self {
        Self {
            id,
            db: 0,
            resp: Resp::V2,
            authenticated,
            is_operator: false,
            replies: Replies::On,
            name: Box::default(),
            library_name: Box::default(),
            library_version: Box::default(),
            tier: None,
            no_evict: false,
            no_touch: false,
            transaction: Transaction::default(),
            subscribed: [0; Kind::ALL.len()],
            unsubscribed: false,
            monitors: false,
            held_back: None,
            tracking: None,
            caching: false,
            wait: None,
            waits_silently: false,
            last_command: NO_COMMAND,
            changed: true,
        }
    }

    /// By the name that ACL and CLIENT LIST tell.
    pub(super) fn user(&self) -> &'static str {
        if self.is_operator { acl::OPERATOR } else { acl::DEFAULT }
    }

    /// What the last request waits for.
    pub(crate) fn wait(&self) -> Option<&Wait> {
        self.wait.as_deref()
    }

    /// Whether it has asked to be told what others do.
    pub(crate) fn listens(&self) -> bool {
        self.subscriptions() > 0 || self.monitors
    }

    /// All that is subscribed to.
    pub(super) fn subscriptions(&self) -> usize {
        self.subscribed.iter().sum()
    }

    /// A subscriber that cannot tell pushes from replies: it may give few commands.
    #[inline]
    pub(super) fn is_restricted(&self) -> bool {
        self.resp == Resp::V2 && self.subscribed != [0; Kind::ALL.len()]
    }

    /// How many subscriptions a change of one of this kind tells: shard channels count by
    /// themselves.
    pub(super) fn subscriptions_told(&self, kind: Kind) -> usize {
        let [channels, patterns, shards] = self.subscribed;
        match kind {
            Kind::Channel | Kind::Pattern => channels + patterns,
            Kind::Shard => shards,
        }
    }

    /// Whether the keys that the next command reads are remembered.
    #[inline]
    pub(super) fn tracks(&self) -> bool {
        self.tracking.as_ref().is_some_and(|tracker| tracker.remembers(self.caching))
    }

    /// RESET: as a new connection is, apart from its number and its library's name.
    pub(crate) fn reset(&mut self, authenticated: bool) {
        let library_name = std::mem::take(&mut self.library_name);
        let library_version = std::mem::take(&mut self.library_version);
        let unsubscribed = true;
        *self = Self {
            library_name,
            library_version,
            unsubscribed,
            ..Self::new(self.id, authenticated)
        };
    }
}
