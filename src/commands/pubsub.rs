//! Channels: SUBSCRIBE and the like, PUBLISH, PUBSUB.
//!
//! What a connection subscribes to stands in `channels.rs`; the session keeps the counts, by
//! which RESP2 connections are held to the few commands that a subscriber may give.

use super::call::{Answer, Call};
use super::channels::{Channels, Name};
use super::command;
use super::host::Host;
use super::push::Kind;
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Plain, Spec, Sub};
use crate::protocol::{Error, Reply};

const fn spec(
    name: &'static str,
    arity: Arity,
    flags: Flags,
    since: &'static str,
    handler: Plain,
) -> Spec {
    let row = Spec::of(Group::PubSub, name, arity, Keys::None, flags);
    Spec { since, complexity: "O(n) in the names given", handler: Handler::Plain(handler), ..row }
}

const ANYWHERE: Flags = Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE);
const SUBSCRIBING: Flags = ANYWHERE.and(Flags::NOSCRIPT).and(Flags::SUBSCRIBER);

pub(super) const SPECS: &[Spec] = &[
    Spec {
        summary: "Receive what is published on channels that match patterns.",
        ..spec("PSUBSCRIBE", Arity::at_least(2), SUBSCRIBING, "2.0.0", |call, reply| {
            subscribe(call, Kind::Pattern, reply)
        })
    },
    Spec {
        complexity: "O(n) in the subscribers and in all patterns",
        summary: "Send a message to who subscribes to a channel.",
        ..spec("PUBLISH", Arity::exactly(3), ANYWHERE.and(Flags::FAST), "2.0.0", |call, reply| {
            publish(call, Kind::Channel, reply)
        })
    },
    Spec {
        complexity: "O(n) in the channels there are",
        summary: "Tell of channels and their subscribers.",
        subcommands: &[
            Sub::plain("CHANNELS", Arity::at_least(2), "List the channels.", |call, reply| {
                channels(call, Kind::Channel, reply)
            }),
            Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", command::help),
            Sub::plain("NUMPAT", Arity::exactly(2), "Count the patterns.", patterns),
            Sub::plain("NUMSUB", Arity::at_least(2), "Count subscribers.", |call, reply| {
                subscribers(call, Kind::Channel, reply)
            }),
            Sub::plain(
                "SHARDCHANNELS",
                Arity::at_least(2),
                "List the shard channels.",
                |call, reply| channels(call, Kind::Shard, reply),
            ),
            Sub::plain(
                "SHARDNUMSUB",
                Arity::at_least(2),
                "Count subscribers of shard channels.",
                |call, reply| subscribers(call, Kind::Shard, reply),
            ),
        ],
        handler: Handler::Parent,
        ..spec("PUBSUB", Arity::at_least(2), ANYWHERE, "2.8.0", patterns)
    },
    Spec {
        summary: "Receive no longer what is published on channels that match patterns.",
        ..spec("PUNSUBSCRIBE", Arity::at_least(1), SUBSCRIBING, "2.0.0", |call, reply| {
            unsubscribe(call, Kind::Pattern, reply)
        })
    },
    Spec {
        summary: "Send a message to who subscribes to a shard channel.",
        keys: Keys::ONE,
        ..spec("SPUBLISH", Arity::exactly(3), ANYWHERE.and(Flags::FAST), "7.0.0", |call, reply| {
            publish(call, Kind::Shard, reply)
        })
    },
    Spec {
        summary: "Receive what is published on shard channels.",
        keys: Keys::REST,
        ..spec("SSUBSCRIBE", Arity::at_least(2), SUBSCRIBING, "7.0.0", |call, reply| {
            subscribe(call, Kind::Shard, reply)
        })
    },
    Spec {
        summary: "Receive what is published on channels.",
        ..spec("SUBSCRIBE", Arity::at_least(2), SUBSCRIBING, "2.0.0", |call, reply| {
            subscribe(call, Kind::Channel, reply)
        })
    },
    Spec {
        summary: "Receive no longer what is published on shard channels.",
        keys: Keys::REST,
        ..spec("SUNSUBSCRIBE", Arity::at_least(1), SUBSCRIBING, "7.0.0", |call, reply| {
            unsubscribe(call, Kind::Shard, reply)
        })
    },
    Spec {
        summary: "Receive no longer what is published on channels.",
        ..spec("UNSUBSCRIBE", Arity::at_least(1), SUBSCRIBING, "2.0.0", |call, reply| {
            unsubscribe(call, Kind::Channel, reply)
        })
    },
];

/// What the confirmation of each kind is called.
fn verbs(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Channel => ("subscribe", "unsubscribe"),
        Kind::Pattern => ("psubscribe", "punsubscribe"),
        Kind::Shard => ("ssubscribe", "sunsubscribe"),
    }
}

/// One push for each name, also where it is subscribed to already.
fn subscribe(call: &mut Call<'_, '_>, kind: Kind, reply: &mut Reply<'_>) -> Answer {
    let (session, names) = (&mut *call.session, call.args.skip(1));
    let max = call.service.runtime().subscriptions_max();
    if session.subscriptions() + names.len() > max {
        return Err(Error::text(format!(
            "a connection has at most {max} subscriptions (server.subscriptions_max)"
        )));
    }
    for name in names.iter() {
        call.service.check_key_length(name)?;
    }
    for name in names.iter() {
        let is_new = call.service.channels().subscribe(session.id, kind, name);
        session.subscribed[kind as usize] += usize::from(is_new);
        confirm(verbs(kind).0, Some(name), session.subscriptions_told(kind), reply);
    }
    session.changed = true;
    Ok(Outcome::Pushed)
}

/// One push for each name; without names, for each one subscribed to, or one that there is none.
fn unsubscribe(call: &mut Call<'_, '_>, kind: Kind, reply: &mut Reply<'_>) -> Answer {
    let (session, channels) = (&mut *call.session, call.service.channels());
    let names: Vec<Name> = match call.args.len() {
        1 => channels.names(session.id, kind),
        _ => call.args.skip(1).iter().map(Name::from).collect(),
    };
    for name in &names {
        let had = channels.unsubscribe(session.id, kind, name);
        session.subscribed[kind as usize] -= usize::from(had);
        confirm(verbs(kind).1, Some(name), session.subscriptions_told(kind), reply);
    }
    if names.is_empty() {
        confirm(verbs(kind).1, None, session.subscriptions_told(kind), reply);
    }
    session.changed = true;
    session.unsubscribed = true;
    Ok(Outcome::Pushed)
}

fn confirm(verb: &str, name: Option<&[u8]>, subscriptions: usize, reply: &mut Reply<'_>) {
    reply.push(3);
    reply.bulk(verb);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(subscriptions as i64);
}

fn publish(call: &mut Call<'_, '_>, kind: Kind, reply: &mut Reply<'_>) -> Answer {
    let word = |place| call.args.get(place).unwrap_or_default();
    let (channels, channel, text) = (call.service.channels(), word(1), word(2));
    let receivers = match &mut call.session.held_back {
        Some(held_back) => {
            held_back.add(kind, channel, text);
            channels.receivers(kind, channel)
        }
        None => channels.publish(call.host, kind, channel, text),
    };
    reply.integer(receivers as i64);
    Ok(Outcome::Reply)
}

/// `PUBSUB CHANNELS | SHARDCHANNELS [pattern]`
fn channels(call: &mut Call<'_, '_>, kind: Kind, reply: &mut Reply<'_>) -> Answer {
    if call.args.len() > 3 {
        let name = call.args.get(1).unwrap_or_default();
        return Err(Error::subcommand_or_arity("PUBSUB", name));
    }
    reply.bulks(&call.service.channels().active(kind, call.args.get(2)));
    Ok(Outcome::Reply)
}

/// PUBSUB NUMSUB | SHARDNUMSUB [channel ...]
fn subscribers(call: &mut Call<'_, '_>, kind: Kind, reply: &mut Reply<'_>) -> Answer {
    let names = call.args.skip(2);
    reply.array(names.len() * 2);
    for name in names.iter() {
        reply.bulk(name);
        reply.integer(call.service.channels().subscribers(kind, name) as i64);
    }
    Ok(Outcome::Reply)
}

fn patterns(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.integer(call.service.channels().count(Kind::Pattern) as i64);
    Ok(Outcome::Reply)
}

/// Where, the channel, and the text.
type Publication = (Kind, Box<[u8]>, Box<[u8]>);

/// Messages of a script that may yet be taken back and run again. Sessions are copied to be
/// shown, and these are nobody else's: a copy has none.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    messages: Vec<Publication>,
    bytes: usize,
}

/// What is held back at most; a script that says more is run with nothing to take back.
const HELD_BACK_BYTES_MAX: usize = 1 << 20;

impl Clone for HeldBack {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl HeldBack {
    fn add(&mut self, kind: Kind, channel: &[u8], text: &[u8]) {
        self.bytes += channel.len() + text.len() + size_of::<Publication>();
        self.messages.push((kind, channel.into(), text.into()));
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= HELD_BACK_BYTES_MAX
    }

    pub(super) fn publish(self, channels: &Channels, host: &dyn Host) {
        for (kind, channel, text) in self.messages {
            channels.publish(host, kind, &channel, &text);
        }
    }
}
