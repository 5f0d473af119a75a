//! Who subscribes to what: channels, patterns and shard channels, each with its subscribers.
//!
//! Each name has its subscribers, and each subscriber its names; only the subscriber's own
//! thread changes either. While a message is handed to the subscribers of a channel that channel
//! is locked, so whoever has left it gets no message that was not on its way already.

use std::collections::BTreeSet;
use std::sync::Arc;

use dashmap::DashMap;

use super::glob;
use super::host::Host;
use super::push::{Kind, Message, Push};
use crate::engine::KeyHasher;

/// A channel or a pattern.
pub(super) type Name = Arc<[u8]>;

#[derive(Debug)]
pub(crate) struct Channels {
    /// Subscribers by name, for each [`Kind`].
    subscribers: [DashMap<Name, BTreeSet<u64>, KeyHasher>; Kind::ALL.len()],
    /// Names by subscriber, for each [`Kind`].
    names: DashMap<u64, [BTreeSet<Name>; Kind::ALL.len()], KeyHasher>,
}

impl Channels {
    pub(super) fn new(hasher: &KeyHasher) -> Self {
        Self {
            subscribers: Kind::ALL.map(|_| DashMap::with_hasher(hasher.clone())),
            names: DashMap::with_hasher(hasher.clone()),
        }
    }

    /// Returns whether the connection has not subscribed before.
    pub(super) fn subscribe(&self, connection: u64, kind: Kind, name: &[u8]) -> bool {
        let name = Name::from(name);
        let is_new = self.names.entry(connection).or_default()[kind as usize].insert(name.clone());
        if is_new {
            self.subscribers[kind as usize].entry(name).or_default().insert(connection);
        }
        is_new
    }

    /// Returns whether the connection had subscribed.
    pub(super) fn unsubscribe(&self, connection: u64, kind: Kind, name: &[u8]) -> bool {
        let mut had = false;
        self.names.remove_if_mut(&connection, |_, names| {
            had = names[kind as usize].remove(name);
            names.iter().all(BTreeSet::is_empty)
        });
        if had {
            self.drop_subscriber(connection, kind, name);
        }
        had
    }

    /// Ends all that a connection subscribes to.
    pub(super) fn leave(&self, connection: u64) {
        let Some((_, names)) = self.names.remove(&connection) else { return };
        for (kind, names) in Kind::ALL.into_iter().zip(names) {
            for name in names {
                self.drop_subscriber(connection, kind, &name);
            }
        }
    }

    fn drop_subscriber(&self, connection: u64, kind: Kind, name: &[u8]) {
        self.subscribers[kind as usize].remove_if_mut(name, |_, subscribers| {
            subscribers.remove(&connection);
            subscribers.is_empty()
        });
    }

    pub(super) fn subscribes(&self, connection: u64, kind: Kind, name: &[u8]) -> bool {
        self.names.get(&connection).is_some_and(|names| names[kind as usize].contains(name))
    }

    /// What the connection subscribes to, in order.
    pub(super) fn names(&self, connection: u64, kind: Kind) -> Vec<Name> {
        let names = self.names.get(&connection);
        names.map(|names| names[kind as usize].iter().cloned().collect()).unwrap_or_default()
    }

    /// How many would be handed a message on this channel.
    pub(super) fn receivers(&self, kind: Kind, channel: &[u8]) -> usize {
        let direct = self.subscribers(kind, channel);
        if kind == Kind::Shard {
            return direct;
        }
        let patterns = &self.subscribers[Kind::Pattern as usize];
        let fitting = patterns.iter().filter(|entry| glob::matches(entry.key(), channel));
        direct + fitting.map(|entry| entry.value().len()).sum::<usize>()
    }

    /// Hands a message to all who subscribe to its channel, or to a pattern that fits. Returns
    /// how many there were. Shard channels have no patterns.
    pub(super) fn publish(
        &self,
        host: &dyn Host,
        kind: Kind,
        channel: &[u8],
        text: &[u8],
    ) -> usize {
        let mut made = None;
        let mut message = || {
            let make = || Arc::new(Message { channel: channel.into(), text: text.into() });
            Arc::clone(made.get_or_insert_with(make))
        };
        let mut receivers = 0;
        if let Some(subscribers) = self.subscribers[kind as usize].get(channel) {
            receivers += subscribers.len();
            let push = match kind {
                Kind::Shard => Push::ShardMessage(message()),
                Kind::Channel | Kind::Pattern => Push::Message(message()),
            };
            hand_out(host, &subscribers, &push);
        }
        if kind == Kind::Shard {
            return receivers;
        }
        for entry in &self.subscribers[Kind::Pattern as usize] {
            if glob::matches(entry.key(), channel) {
                receivers += entry.value().len();
                let pattern = Name::clone(entry.key());
                hand_out(
                    host,
                    entry.value(),
                    &Push::PatternMessage { pattern, message: message() },
                );
            }
        }
        receivers
    }

    /// Names that anybody subscribes to, of those that match, in order.
    pub(super) fn active(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Name> {
        let mut names: Vec<Name> = self.subscribers[kind as usize]
            .iter()
            .map(|entry| Name::clone(entry.key()))
            .filter(|name| pattern.is_none_or(|pattern| glob::matches(pattern, name)))
            .collect();
        names.sort_unstable();
        names
    }

    pub(super) fn count(&self, kind: Kind) -> usize {
        self.subscribers[kind as usize].len()
    }

    /// How many subscribe to this very name.
    pub(super) fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        self.subscribers[kind as usize].get(name).map_or(0, |subscribers| subscribers.len())
    }
}

fn hand_out(host: &dyn Host, receivers: &BTreeSet<u64>, push: &Push) {
    for receiver in receivers {
        // Who has just gone was still counted.
        host.push(*receiver, push.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_subscribes_to_nothing_is_not_remembered() {
        let channels = Channels::new(&KeyHasher::new(7));
        for kind in Kind::ALL {
            assert!(channels.subscribe(5, kind, b"a") && channels.subscribe(5, kind, b"b"));
        }
        for kind in Kind::ALL {
            assert!(channels.unsubscribe(5, kind, b"a"));
            assert!(!channels.unsubscribe(5, kind, b"a"));
            assert!(channels.subscribes(5, kind, b"b"));
            assert!(channels.unsubscribe(5, kind, b"b"));
        }
        assert!(channels.names.is_empty() && channels.subscribers.iter().all(DashMap::is_empty));
    }
}
