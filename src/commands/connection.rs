//! Commands about the connection itself: PING, ECHO, SELECT, AUTH, HELLO, RESET, QUIT.

use super::acl;
use super::call::{Answer, Call};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec};
use crate::engine::DATABASES;
use crate::protocol::{Error, Reply, Resp, parse_i64};

/// The version of Redis whose behaviour is followed, and that clients may ask for.
pub(super) const REDIS_VERSION: &str = "7.2.4";

const fn spec(
    name: &'static str,
    arity: Arity,
    flags: Flags,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    Spec { since, summary, ..Spec::of(Group::Connection, name, arity, Keys::None, flags) }
}

const ALWAYS: Flags = Flags::NOSCRIPT
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST)
    .and(Flags::NO_AUTH)
    .and(Flags::ALLOW_BUSY);

const LEAVING: Flags = ALWAYS.and(Flags::AT_ONCE).and(Flags::SUBSCRIBER);

const PING: Flags = Flags::FAST.and(Flags::SUBSCRIBER);

const QUICK: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);

pub(super) const SPECS: &[Spec] = &[
    Spec {
        handler: Handler::Plain(auth),
        ..spec("AUTH", Arity::at_least(2), ALWAYS, "1.0.0", "Authenticate the connection.")
    },
    Spec {
        handler: Handler::Plain(echo),
        ..spec("ECHO", Arity::exactly(2), QUICK, "1.0.0", "Return the given string.")
    },
    Spec {
        handler: Handler::Plain(hello),
        ..spec("HELLO", Arity::at_least(1), ALWAYS, "6.0.0", "Choose the protocol version.")
    },
    Spec {
        handler: Handler::Plain(ping),
        ..spec("PING", Arity::at_least(1), PING, "1.0.0", "Ask whether the server answers.")
    },
    Spec {
        handler: Handler::Plain(quit),
        ..spec("QUIT", Arity::at_least(1), LEAVING, "1.0.0", "Close the connection.")
    },
    Spec {
        handler: Handler::Plain(reset),
        ..spec("RESET", Arity::exactly(1), LEAVING, "6.2.0", "Make the connection as new.")
    },
    Spec {
        handler: Handler::Plain(select),
        ..spec("SELECT", Arity::exactly(2), QUICK, "1.0.0", "Choose the database.")
    },
];

fn ping(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    match call.args.len() {
        // What a subscriber reads looks like a push.
        1 | 2 if call.session.is_restricted() => {
            reply.bulks(&[b"pong", call.args.get(1).unwrap_or_default()]);
        }
        1 => reply.simple("PONG"),
        2 => reply.bulk(call.args.get(1).unwrap_or_default()),
        _ => return Err(Error::wrong_arity("PING")),
    }
    Ok(Outcome::Reply)
}

fn echo(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.bulk(call.args.get(1).unwrap_or_default());
    Ok(Outcome::Reply)
}

fn quit(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.ok();
    Ok(Outcome::Close)
}

fn reset(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.service.forget(call.session, call.now);
    call.session.reset(!call.service.runtime().has_password());
    reply.switch(call.session.resp);
    reply.simple("RESET");
    Ok(Outcome::Reply)
}

fn select(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let db = parse_i64(call.args.get(1).unwrap_or_default()).ok_or(Error::NotInteger)?;
    call.session.db = database(db)?;
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

pub(super) fn database(number: i64) -> Result<usize, Error> {
    usize::try_from(number).ok().filter(|db| *db < DATABASES).ok_or(Error::DbOutOfRange)
}

fn auth(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let word = |place| call.args.get(place).unwrap_or_default();
    match call.args.len() {
        2 => {
            let runtime = call.service.runtime();
            if !runtime.has_password() && !runtime.operator_password_matches(word(1)) {
                return Err(Error::NoPassword);
            }
            log_in(call, acl::DEFAULT.as_bytes(), word(1))?;
        }
        3 => log_in(call, word(1), word(2))?,
        _ => return Err(Error::Syntax),
    }
    reply.ok();
    Ok(Outcome::Reply)
}

/// Whoever says the operators' password is one, as `default`, too, so that clients which know of
/// no users can. Where no password is set, `default` has any.
fn log_in(call: &mut Call<'_, '_>, user: &[u8], password: &[u8]) -> Result<(), Error> {
    let runtime = call.service.runtime();
    let is_operator = runtime.operator_password_matches(password);
    let is_default = !runtime.has_password() || runtime.password_matches(password);
    let is_right = match user {
        user if user == acl::DEFAULT.as_bytes() => is_operator || is_default,
        user if user == acl::OPERATOR.as_bytes() => is_operator,
        _ => false,
    };
    if !is_right {
        return Err(Error::WrongPass);
    }
    call.session.authenticated = true;
    call.session.is_operator = is_operator;
    call.session.changed = true;
    Ok(())
}

/// HELLO [protover [AUTH username password] [SETNAME clientname]]
fn hello(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let word = |place: usize| call.args.get(place);
    let resp = match word(1).map(|word| parse_i64(word).ok_or(Error::ProtocolNotInteger)) {
        None => call.session.resp,
        Some(Ok(2)) => Resp::V2,
        Some(Ok(3)) => Resp::V3,
        Some(Ok(_)) => return Err(Error::NoProto),
        Some(Err(error)) => return Err(error),
    };
    let (mut login, mut name) = (None, None);
    let mut at = 2;
    while let Some(option) = word(at) {
        if option.eq_ignore_ascii_case(b"AUTH")
            && let (Some(user), Some(password)) = (word(at + 1), word(at + 2))
        {
            login = Some((user, password));
            at += 3;
        } else if option.eq_ignore_ascii_case(b"SETNAME")
            && let Some(given) = word(at + 1)
        {
            name = Some(super::client::checked_name(given)?);
            at += 2;
        } else {
            return Err(Error::hello_option(option));
        }
    }
    if let Some((user, password)) = login {
        log_in(call, user, password)?;
    }
    if !call.service.lets_in(call.session) {
        return Err(Error::NoAuthHello);
    }
    if let Some(name) = name {
        call.session.name = name.into();
    }
    call.session.resp = resp;
    call.session.changed = true;
    reply.switch(resp);
    greeting(call, reply);
    Ok(Outcome::Reply)
}

fn greeting(call: &Call<'_, '_>, reply: &mut Reply<'_>) {
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(name);
        reply.bulk(value);
    }
    reply.bulk("proto");
    reply.integer(match call.session.resp {
        Resp::V2 => 2,
        Resp::V3 => 3,
    });
    reply.bulk("id");
    reply.integer(call.session.id as i64);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name);
        reply.bulk(value);
    }
    reply.bulk("modules");
    reply.array(0);
}
