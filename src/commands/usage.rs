//! How our own commands are asked: the `arguments` of COMMAND DOCS, from which clients such as
//! redis-cli make hints while somebody types.
//!
//! Of Redis's commands these are well known; only what no other server has is told here.

use crate::protocol::Reply;

/// One argument, in the order in which it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    name: &'static str,
    /// The word before it.
    token: Option<&'static str>,
    kind: Kind,
    presence: Presence,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Key,
    Integer,
    Text,
    /// A word that stands for itself.
    Token,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Presence {
    Required,
    Optional,
    Repeated,
}

const fn required(name: &'static str, kind: Kind) -> Argument {
    Argument { name, token: None, kind, presence: Presence::Required }
}

const fn optional(name: &'static str, token: Option<&'static str>, kind: Kind) -> Argument {
    Argument { name, token, kind, presence: Presence::Optional }
}

const KEY: Argument = required("key", Kind::Key);

const RL_LIMIT: &[Argument] = &[
    KEY,
    required("limit", Kind::Integer),
    required("window", Kind::Text),
    optional("cost", Some("COST"), Kind::Integer),
    optional("burst", Some("BURST"), Kind::Integer),
    optional("algorithm", Some("ALGORITHM"), Kind::Text),
    optional("align", Some("ALIGN"), Kind::OneOf(&["EPOCH", "FIRST"])),
    optional("peek", Some("PEEK"), Kind::Token),
];

const RL_REFUND: &[Argument] =
    &[required("kind", Kind::OneOf(&["KEY"])), KEY, required("n", Kind::Integer)];

const RL_RESET: &[Argument] = &[Argument { presence: Presence::Repeated, ..KEY }];

const THROTTLE: &[Argument] = &[
    KEY,
    required("max_burst", Kind::Integer),
    required("count", Kind::Integer),
    required("period", Kind::Integer),
    optional("quantity", None, Kind::Integer),
];

/// The arguments of one of our own commands.
pub(super) fn arguments(command: &str) -> &'static [Argument] {
    match command {
        "RL.LIMIT" => RL_LIMIT,
        "RL.REFUND" => RL_REFUND,
        "RL.RESET" => RL_RESET,
        "CL.THROTTLE" | "THROTTLE" => THROTTLE,
        _ => &[],
    }
}

/// The list under `arguments`.
pub(super) fn write(arguments: &[Argument], reply: &mut Reply<'_>) {
    reply.array(arguments.len());
    for argument in arguments {
        argument.write(reply);
    }
}

impl Argument {
    fn write(&self, reply: &mut Reply<'_>) {
        let is_key = matches!(self.kind, Kind::Key);
        let (kind, words) = match self.kind {
            Kind::Key => ("key", None),
            Kind::Integer => ("integer", None),
            Kind::Text => ("string", None),
            Kind::Token => ("pure-token", None),
            Kind::OneOf(words) => ("oneof", Some(words)),
        };
        let has_flags = self.presence != Presence::Required;
        let more = [is_key, self.token.is_some(), has_flags, words.is_some()];
        reply.map(2 + more.into_iter().filter(|there| *there).count());
        pair("name", self.name, reply);
        pair("type", kind, reply);
        if is_key {
            reply.bulk("key_spec_index");
            reply.integer(0);
        }
        if let Some(token) = self.token {
            pair("token", token, reply);
        }
        if has_flags {
            reply.bulk("flags");
            reply.set(1);
            reply.simple(match self.presence {
                Presence::Repeated => "multiple",
                Presence::Optional | Presence::Required => "optional",
            });
        }
        if let Some(words) = words {
            reply.bulk("arguments");
            reply.array(words.len());
            for word in words {
                reply.map(3);
                pair("name", &word.to_ascii_lowercase(), reply);
                pair("type", "pure-token", reply);
                pair("token", word, reply);
            }
        }
    }
}

fn pair(name: &str, value: &str, reply: &mut Reply<'_>) {
    reply.bulk(name);
    reply.bulk(value);
}
