//! EVAL, EVALSHA, their read-only forms, and SCRIPT.

use super::call::{Answer, Call};
use super::command::help;
use super::request::Ground;
use super::runner::Runner;
use super::running::Killer;
use super::script_run::{Access, Job, Program, Words, run};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Nested, Spec, Sub};
use crate::lua::{Origin, Sha};
use crate::protocol::{Args, Error, Reply};

pub(super) const RUNS: Flags = Flags::NOSCRIPT
    .and(Flags::STALE)
    .and(Flags::SKIP_MONITOR)
    .and(Flags::NO_MANDATORY_KEYS)
    .and(Flags::SLOW);

/// A command that runs a script.
pub(super) const fn runs(
    name: &'static str,
    flags: Flags,
    since: &'static str,
    summary: &'static str,
    handler: Nested,
) -> Spec {
    Spec {
        name,
        arity: Arity::at_least(3),
        keys: Keys::Counted { count: 2, first: None },
        flags,
        group: Group::Scripting,
        since,
        complexity: "What the script takes",
        summary,
        subcommands: &[],
        handler: Handler::Nested(handler),
    }
}

const READS: Flags = RUNS.and(Flags::READONLY);

pub(super) const SPECS: &[Spec] = &[
    runs("EVAL", RUNS, "2.6.0", "Run a script.", |runner, args, ground, reply| {
        eval(runner, (args, Access::ReadWrite), ground, reply)
    }),
    runs("EVALSHA", RUNS, "2.6.0", "Run a script by its SHA-1.", |runner, args, ground, reply| {
        eval_sha(runner, (args, Access::ReadWrite), ground, reply)
    }),
    runs(
        "EVALSHA_RO",
        READS,
        "7.0.0",
        "Run a script that only reads by its SHA-1.",
        |runner, args, ground, reply| eval_sha(runner, (args, Access::ReadOnly), ground, reply),
    ),
    runs(
        "EVAL_RO",
        READS,
        "7.0.0",
        "Run a script that only reads.",
        |runner, args, ground, reply| eval(runner, (args, Access::ReadOnly), ground, reply),
    ),
    Spec {
        name: "SCRIPT",
        arity: Arity::at_least(2),
        keys: Keys::None,
        flags: Flags::NOSCRIPT,
        group: Group::Scripting,
        since: "2.6.0",
        complexity: "O(n) in the text or in the scripts",
        summary: "Load and forget scripts, and end one.",
        subcommands: &[
            Sub::plain("DEBUG", Arity::exactly(3), "Debug scripts: only NO is known.", debug),
            Sub::plain("EXISTS", Arity::at_least(3), "Tell which scripts are kept.", exists),
            Sub::plain("FLUSH", Arity::at_least(2), "Forget all scripts.", flush),
            Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", help),
            Sub::plain("KILL", Arity::exactly(2), "End the running script.", kill),
            Sub {
                name: "LOAD",
                arity: Arity::exactly(3),
                keys: Keys::None,
                summary: "Keep a script and return its SHA-1.",
                handler: Handler::Nested(load),
            },
        ],
        handler: Handler::Parent,
    },
];

fn eval(
    runner: &mut Runner<'_>,
    (request, access): (Args<'_>, Access),
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Answer {
    let worker = runner.worker;
    let text = request.get(1).unwrap_or_default();
    let words = Words::read(request, Error::NotInteger)?;
    let script = worker.interpreter().load(worker.service.scripts(), text, Origin::Eval)?;
    let job = Job { program: Program::Script(&script), words, access };
    run(runner, &job, (request, ground), reply)
}

fn eval_sha(
    runner: &mut Runner<'_>,
    (request, access): (Args<'_>, Access),
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Answer {
    let name = request.get(1).unwrap_or_default();
    let script = runner.worker.script(name);
    if script.is_none() && Sha::parse(name).is_none() {
        return Err(Error::NoScript);
    }
    let words = Words::read(request, Error::NotInteger)?;
    let script = script.ok_or(Error::NoScript)?;
    let job = Job { program: Program::Script(&script), words, access };
    run(runner, &job, (request, ground), reply)
}

fn load(
    runner: &mut Runner<'_>,
    request: Args<'_>,
    _: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Answer {
    let worker = runner.worker;
    let text = request.get(2).unwrap_or_default();
    let script = worker.interpreter().load(worker.service.scripts(), text, Origin::Load)?;
    reply.bulk(script.sha().hex());
    Ok(Outcome::Reply)
}

/// SCRIPT DEBUG YES|SYNC|NO
fn debug(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let mode = call.args.get(2).unwrap_or_default().to_ascii_uppercase();
    match mode.as_slice() {
        b"NO" => reply.ok(),
        b"YES" | b"SYNC" => return Err(Error::text("SCRIPT DEBUG: there is no debugger")),
        _ => return Err(Error::text("Use SCRIPT DEBUG YES/SYNC/NO")),
    }
    Ok(Outcome::Reply)
}

fn exists(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let names = call.args.skip(2);
    reply.array(names.len());
    for name in names.iter() {
        let found = Sha::parse(name).and_then(|sha| call.service.scripts().find(&sha));
        reply.integer(found.is_some().into());
    }
    Ok(Outcome::Reply)
}

/// SCRIPT FLUSH [ASYNC|SYNC]: both are the same here.
fn flush(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let mode = call.args.get(2).unwrap_or(b"SYNC").to_ascii_uppercase();
    if call.args.len() > 3 || !matches!(mode.as_slice(), b"SYNC" | b"ASYNC") {
        return Err(Error::text("SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    call.service.scripts().flush();
    reply.ok();
    Ok(Outcome::Reply)
}

fn kill(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.service.running().kill(Killer::Script)?;
    reply.ok();
    Ok(Outcome::Reply)
}
