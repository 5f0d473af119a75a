//! FUNCTION, FCALL and its read-only form: libraries of functions.

use super::call::{Answer, Call};
use super::command::help;
use super::glob;
use super::request::Ground;
use super::runner::Runner;
use super::running::Killer;
use super::script_run::{Access, Job, Program, Words, run};
use super::scripting::{RUNS, runs};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Nested, Spec, Sub};
use crate::lua::{Library, RestorePolicy, ScriptFlags, dump_libraries};
use crate::protocol::{Args, Error, Reply};

const READS: Flags = RUNS.and(Flags::READONLY);

pub(super) const SPECS: &[Spec] = &[
    runs("FCALL", RUNS, "7.0.0", "Call a function.", |runner, args, ground, reply| {
        fcall(runner, (args, Access::ReadWrite), ground, reply)
    }),
    runs(
        "FCALL_RO",
        READS,
        "7.0.0",
        "Call a function that only reads.",
        |runner, args, ground, reply| fcall(runner, (args, Access::ReadOnly), ground, reply),
    ),
    Spec {
        name: "FUNCTION",
        arity: Arity::at_least(2),
        keys: Keys::None,
        flags: Flags::NOSCRIPT,
        group: Group::Scripting,
        since: "7.0.0",
        complexity: "O(n) in the code or in the functions",
        summary: "Keep libraries of functions.",
        subcommands: &[
            Sub::plain("DELETE", Arity::exactly(3), "Forget a library.", delete),
            Sub::plain("DUMP", Arity::exactly(2), "Return all libraries as one value.", dump),
            Sub::plain("FLUSH", Arity::at_least(2), "Forget all libraries.", flush),
            Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", help),
            Sub::plain("KILL", Arity::exactly(2), "End the running function.", kill),
            Sub::plain("LIST", Arity::at_least(2), "Describe the libraries.", list),
            nested("LOAD", "Keep a library.", load),
            nested("RESTORE", "Keep the libraries of a dump.", restore),
            Sub::plain("STATS", Arity::exactly(2), "Tell of the running function.", stats),
        ],
        handler: Handler::Parent,
    },
];

const fn nested(name: &'static str, summary: &'static str, handler: Nested) -> Sub {
    let handler = Handler::Nested(handler);
    Sub { name, arity: Arity::at_least(3), keys: Keys::None, summary, handler }
}

fn fcall(
    runner: &mut Runner<'_>,
    (request, access): (Args<'_>, Access),
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Answer {
    let name = request.get(1).unwrap_or_default();
    let found = runner.worker.service.libraries().find(name);
    let found = found.ok_or_else(|| Error::text("Function not found"))?;
    let not_a_number = Error::text("Bad number of keys provided");
    let words = Words::read(request, not_a_number)?;
    let job = Job { program: Program::Function(&found), words, access };
    run(runner, &job, (request, ground), reply)
}

/// `FUNCTION LOAD [REPLACE] code`
fn load(
    runner: &mut Runner<'_>,
    request: Args<'_>,
    _: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Answer {
    let worker = runner.worker;
    let mut policy = RestorePolicy::Append;
    let options = request.len() - 3;
    for option in request.skip(2).first(options).iter() {
        if !option.eq_ignore_ascii_case(b"REPLACE") {
            return Err(Error::raw([b"ERR Unknown option given: ", option].concat()));
        }
        policy = RestorePolicy::Replace;
    }
    if worker.lacks_room(Flags::DENYOOM) {
        return Err(Error::OutOfMemory);
    }
    let code = request.get(request.len() - 1).unwrap_or_default();
    let name = worker.interpreter().load_library(worker.service.libraries(), code, policy)?;
    reply.bulk(name);
    Ok(Outcome::Reply)
}

/// FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE]
fn restore(
    runner: &mut Runner<'_>,
    request: Args<'_>,
    _: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Answer {
    let worker = runner.worker;
    if request.len() > 4 {
        return Err(wrong(request));
    }
    let policy = match request.get(3).map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"APPEND") => RestorePolicy::Append,
        Some(b"REPLACE") => RestorePolicy::Replace,
        Some(b"FLUSH") => RestorePolicy::Flush,
        Some(_) => {
            return Err(Error::text(
                "Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    if worker.lacks_room(Flags::DENYOOM) {
        return Err(Error::OutOfMemory);
    }
    let payload = request.get(2).unwrap_or_default();
    let libraries = worker.service.libraries();
    worker.interpreter().restore_libraries(libraries, payload, policy)?;
    reply.ok();
    Ok(Outcome::Reply)
}

fn wrong(request: Args<'_>) -> Error {
    Error::subcommand_or_arity("FUNCTION", request.get(1).unwrap_or_default())
}

fn delete(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.service.libraries().delete(call.args.get(2).unwrap_or_default())?;
    reply.ok();
    Ok(Outcome::Reply)
}

fn dump(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.bulk(dump_libraries(call.service.libraries()));
    Ok(Outcome::Reply)
}

/// FUNCTION FLUSH [ASYNC|SYNC]: both are the same here.
fn flush(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    if call.args.len() > 3 {
        return Err(wrong(call.args));
    }
    let mode = call.args.get(2).unwrap_or(b"SYNC").to_ascii_uppercase();
    if !matches!(mode.as_slice(), b"SYNC" | b"ASYNC") {
        return Err(Error::text("FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    call.service.libraries().flush();
    reply.ok();
    Ok(Outcome::Reply)
}

fn kill(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.service.running().kill(Killer::Function)?;
    reply.ok();
    Ok(Outcome::Reply)
}

/// What FUNCTION LIST is asked for.
#[derive(Default)]
struct Wanted<'a> {
    pattern: Option<&'a [u8]>,
    code: bool,
}

impl<'a> Wanted<'a> {
    fn read(words: Args<'a>) -> Result<Self, Error> {
        let mut wanted = Self::default();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            if !wanted.code && word.eq_ignore_ascii_case(b"WITHCODE") {
                wanted.code = true;
            } else if wanted.pattern.is_none() && word.eq_ignore_ascii_case(b"LIBRARYNAME") {
                let pattern = words.get(at);
                let missing = || Error::text("library name argument was not given");
                wanted.pattern = Some(pattern.ok_or_else(missing)?);
                at += 1;
            } else {
                return Err(Error::raw([b"ERR Unknown argument ", word].concat()));
            }
        }
        Ok(wanted)
    }

    fn matches(&self, library: &Library) -> bool {
        // As Redis, whatever the case.
        let lower = library.name.to_ascii_lowercase();
        self.pattern.is_none_or(|pattern| glob::matches(&pattern.to_ascii_lowercase(), &lower))
    }
}

/// `FUNCTION LIST [WITHCODE] [LIBRARYNAME pattern]`
fn list(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let wanted = Wanted::read(call.args.skip(2))?;
    let mut libraries = call.service.libraries().list();
    libraries.retain(|library| wanted.matches(library));
    reply.array(libraries.len());
    for library in libraries {
        reply.map(if wanted.code { 4 } else { 3 });
        reply.bulk("library_name");
        reply.bulk(&library.name);
        reply.bulk("engine");
        reply.bulk("LUA");
        reply.bulk("functions");
        describe(&library, reply);
        if wanted.code {
            reply.bulk("library_code");
            reply.bulk(&library.code);
        }
    }
    Ok(Outcome::Reply)
}

fn describe(library: &Library, reply: &mut Reply<'_>) {
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk("name");
        reply.bulk(&function.name);
        reply.bulk("description");
        match &function.description {
            Some(description) => reply.bulk(description),
            None => reply.null(),
        }
        reply.bulk("flags");
        let flags = ScriptFlags::NAMES.iter().filter(|(_, flag)| function.flags.has(*flag));
        let flags: Vec<&str> = flags.map(|(name, _)| *name).collect();
        super::entry::names(&flags, reply);
    }
}

fn stats(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.map(2);
    reply.bulk("running_script");
    match call.service.running().function(call.now) {
        None => reply.null(),
        Some(shown) => {
            reply.map(3);
            reply.bulk("name");
            reply.bulk(&shown.name);
            reply.bulk("command");
            let words = shown.words.as_args();
            reply.array(words.len());
            words.iter().for_each(|word| reply.bulk(word));
            reply.bulk("duration_ms");
            reply.integer(shown.took.as_millis() as i64);
        }
    }
    let stats = call.service.libraries().stats();
    reply.bulk("engines");
    reply.map(1);
    reply.bulk("LUA");
    reply.map(2);
    reply.bulk("libraries_count");
    reply.integer(stats.libraries as i64);
    reply.bulk("functions_count");
    reply.integer(stats.functions as i64);
    Ok(Outcome::Reply)
}
