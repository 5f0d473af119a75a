//! Commands about the server as a whole: its time, its role, its end.
//!
//! Nothing is replicated: the commands for that say so, or answer as a Redis does that has no
//! replicas.

use super::call::{Answer, Call};
use super::command;
use super::connection::REDIS_VERSION;
use super::kept::{LastSave, SaveRefusal};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Plain, Spec, Sub};
use crate::protocol::{Error, Reply, parse_i64};

const fn spec(
    name: &'static str,
    arity: Arity,
    flags: Flags,
    since: &'static str,
    handler: Plain,
) -> Spec {
    let row = Spec::of(Group::Server, name, arity, Keys::None, flags);
    Spec { since, handler: Handler::Plain(handler), ..row }
}

const QUICK: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);
const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT);

pub(super) const SPECS: &[Spec] = &[
    Spec {
        summary: "Show the version.",
        ..spec("LOLWUT", Arity::at_least(1), Flags::READONLY.and(Flags::FAST), "5.0.0", lolwut)
    },
    Spec {
        summary: "List modules: there are none.",
        subcommands: &[
            Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", command::help),
            Sub::plain("LIST", Arity::exactly(2), "Return the modules: none.", modules),
        ],
        handler: Handler::Parent,
        ..spec("MODULE", Arity::at_least(2), ADMIN, "4.0.0", modules)
    },
    Spec {
        summary: "Return the role in replication: a master without replicas.",
        ..spec("ROLE", Arity::exactly(1), Flags::NOSCRIPT.and(QUICK), "2.8.12", role)
    },
    Spec {
        summary: "Stop the server.",
        flags: ADMIN
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::NO_MULTI)
            .and(Flags::ALLOW_BUSY),
        ..spec("SHUTDOWN", Arity::at_least(1), ADMIN, "1.0.0", shutdown)
    },
    Spec {
        summary: "Return the server's clock: seconds and microseconds.",
        ..spec("TIME", Arity::exactly(1), QUICK, "2.6.0", time)
    },
    Spec {
        summary: "Wait for replicas: there are none.",
        group: Group::Connection,
        ..spec("WAIT", Arity::exactly(3), Flags::BLOCKING, "3.0.0", wait)
    },
];

fn time(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let micros = call.now.as_micros() as i64;
    reply.array(2);
    reply.bulk_integer(micros / 1_000_000);
    reply.bulk_integer(micros % 1_000_000);
    Ok(Outcome::Reply)
}

fn role(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.array(3);
    reply.bulk("master");
    reply.integer(0);
    reply.array(0);
    Ok(Outcome::Reply)
}

fn modules(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.array(0);
    Ok(Outcome::Reply)
}

/// WAIT numreplicas timeout: nobody will ever acknowledge, so nothing is waited for.
fn wait(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let number = |place| parse_i64(call.args.get(place).unwrap_or_default());
    number(1).ok_or(Error::NotInteger)?;
    let timeout_ms =
        number(2).ok_or_else(|| Error::text("timeout is not an integer or out of range"))?;
    if timeout_ms < 0 {
        return Err(Error::text("timeout is negative"));
    }
    reply.integer(0);
    Ok(Outcome::Reply)
}

fn lolwut(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let versions = format!("Tollgate ver. {VERSION}, Redis ver. {REDIS_VERSION}");
    reply.verbatim(format!("  ___||___\n |  toll  |   one may pass\n |__gate__|   {versions}\n"));
    Ok(Outcome::Reply)
}

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] | ABORT`: no reply, the connection ends.
fn shutdown(call: &mut Call<'_, '_>, _: &mut Reply<'_>) -> Answer {
    let (mut save, mut no_save, mut abort, mut others) = (false, false, false, false);
    for word in call.args.skip(1).iter() {
        match word.to_ascii_uppercase().as_slice() {
            b"SAVE" => save = true,
            b"NOSAVE" => no_save = true,
            b"NOW" | b"FORCE" => others = true,
            b"ABORT" => abort = true,
            _ => return Err(Error::Syntax),
        }
    }
    if (save && no_save) || (abort && (save || no_save || others)) {
        return Err(Error::Syntax);
    }
    if abort {
        return Err(Error::text("No shutdown in progress."));
    }
    if save && call.host.store().is_none() {
        return Err(Error::text(SaveRefusal::NoFolder.to_string()));
    }
    if !no_save && call.service.engine().long().is_any() {
        return Err(call.service.running().busy());
    }
    call.host.shutdown(match (save, no_save) {
        (true, _) => LastSave::Snapshot,
        (_, true) => LastSave::None,
        (false, false) => LastSave::AsSet,
    });
    Ok(Outcome::Close)
}
