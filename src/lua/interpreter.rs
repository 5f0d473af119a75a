//! Lua itself: one state a worker, in which that worker's scripts run one after another.
//!
//! A script's text is compiled once and called again by its SHA-1. A client that sends the whole
//! text each time pays for comparing it, not for hashing and compiling it.
//!
//! Invariant: nothing of one run is seen by the next, except what a library keeps for itself and
//! how far `math.random` has come.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use foldhash::fast::FixedState;
use mlua::chunk::ChunkMode;
use mlua::{
    Either, Error as LuaError, Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value,
    Variadic,
};
use smallvec::SmallVec;

use super::EXTENSIONS;
use super::api::natives;
use super::call::{Call, Failure, Invocation};
use super::failure::{Caught, PRELUDE, Thrown};
use super::json;
use super::run::{Bound, Ended, Kind, Run, Stop, lend};
use super::scripts::{Origin, Script, Scripts};
use super::sha::Sha;
use super::shelf::CompiledLibraries;
use super::to_reply::Writer;
use crate::protocol::{Args, Error, Reply};

/// Compiled scripts of one worker; beyond that all are forgotten and compiled when next run.
const COMPILED_MAX: usize = 1_024;

/// Whole texts that are known again without hashing.
const TEXTS_MAX: usize = 256;

/// Longer texts are hashed each time, so that these take 16 MB at most, kept or not.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Keys or arguments that take no memory on their way to Lua.
const WORDS_USUAL: usize = 8;

/// What an interpreter is made with.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Version of Redis that scripts are told.
    pub(crate) redis_version: &'static str,
    /// Bytes that the state of one worker may take.
    pub(crate) memory_max: usize,
    /// Which of the workers it is for; each draws other random numbers.
    pub(crate) worker: u32,
    /// Whether `error_reply` leaves a code that stands alone without `ERR`.
    pub(crate) bare_codes: bool,
    /// Ends the running script soon after it is set. Who sets it takes it back.
    pub(crate) kill: Arc<AtomicBool>,
}

/// How a run has ended, and the values that it has left.
pub(super) type Left = mlua::Result<(Ended, MultiValue)>;

/// Runs scripts and functions on one thread.
#[derive(Debug)]
pub(crate) struct Interpreter {
    pub(super) lua: Lua,
    pub(super) run: Rc<Run>,
    pub(super) entry: Entry,
    compiled: HashMap<Sha, Rc<Function>, FixedState>,
    texts: HashMap<u64, Arc<Script>, FixedState>,
    generation: u64,
    pub(super) libraries: CompiledLibraries,
}

/// The prelude's ways in.
#[derive(Debug)]
pub(super) struct Entry {
    run: Function,
    run_on_key: Function,
    call_function: Function,
    call_function_on_key: Function,
    pub(super) load_library: Function,
    pub(super) library_environment: Table,
    walk: Function,
}

impl Entry {
    /// For keys and arguments as tables.
    fn of(&self, kind: Kind) -> &Function {
        match kind {
            Kind::Script => &self.run,
            Kind::Function => &self.call_function,
            Kind::Loading => &self.load_library,
        }
    }

    /// For one key, and arguments one by one.
    fn on_key(&self, kind: Kind) -> &Function {
        match kind {
            Kind::Script => &self.run_on_key,
            Kind::Function => &self.call_function_on_key,
            Kind::Loading => &self.load_library,
        }
    }
}

impl Interpreter {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self::made(setup).expect("an empty state takes its own prelude")
    }

    fn made(setup: &Setup) -> mlua::Result<Self> {
        let libs = StdLib::TABLE | StdLib::OS | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libs, LuaOptions::new())?;
        let extensions = lua.create_table()?;
        for (name, install) in EXTENSIONS {
            extensions.raw_set(*name, install(&lua)?)?;
        }
        let json = lua.remove_app_data::<json::Shared>().expect("`cjson` has left them");
        let run = Rc::new(Run::new(setup, json));
        lua.set_app_data(Rc::clone(&run));
        let compile = |text: &str| lua.load(text).set_name(PRELUDE).into_function();
        let prelude = compile(include_str!("prelude.lua"))?;
        let parts = (natives(&lua, &run)?, extensions, compile(include_str!("matching.lua"))?);
        let version = (setup.redis_version, version_number(setup.redis_version));
        let entry: Table = prelude.call((parts.0, parts.1, parts.2, version.0, version.1))?;
        let entry = Entry {
            run: entry.raw_get("run")?,
            run_on_key: entry.raw_get("run_on_key")?,
            call_function: entry.raw_get("call_function")?,
            call_function_on_key: entry.raw_get("call_function_on_key")?,
            load_library: entry.raw_get("load_library")?,
            library_environment: entry.raw_get("library_environment")?,
            walk: entry.raw_get("next")?,
        };
        Run::watch(&lua)?;
        let (compiled, texts) = (HashMap::default(), HashMap::default());
        let libraries = CompiledLibraries::default();
        Ok(Self { lua, run, entry, compiled, texts, generation: 0, libraries })
    }

    /// The script of that text, which is read, compiled and kept if it is new.
    pub(crate) fn load(
        &mut self,
        scripts: &Scripts,
        text: &[u8],
        origin: Origin,
    ) -> Result<Arc<Script>, Error> {
        self.follow(scripts);
        let hash = foldhash_of(text);
        if origin == Origin::Eval
            && let Some(script) = self.texts.get(&hash).filter(|script| script.text() == text)
        {
            return Ok(Arc::clone(script));
        }
        let sha = Sha::of(text);
        let script = match scripts.find(&sha) {
            Some(script) if origin == Origin::Eval => script,
            _ => {
                let script = scripts.read(text, sha)?;
                self.compile(&script)?;
                self.clear_up();
                scripts.keep(script, origin)?
            }
        };
        if text.len() > TEXT_BYTES_MAX {
            return Ok(script);
        }
        if self.texts.len() >= TEXTS_MAX {
            self.texts.clear();
        }
        self.texts.insert(hash, Arc::clone(&script));
        Ok(script)
    }

    /// Runs a script and writes the one reply that it leaves.
    pub(crate) fn run(
        &mut self,
        (scripts, script): (&Scripts, &Script),
        invocation: Invocation<'_>,
        call: &mut dyn Call,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        self.follow(scripts);
        let function = self.compile(script)?;
        scripts.note_run(script);
        let name = || script.sha().hex();
        self.carry_out((Kind::Script, &function), invocation, call, (name, reply))
    }

    /// Runs what is compiled, from beginning to end.
    pub(super) fn carry_out(
        &mut self,
        (kind, function): (Kind, &Function),
        invocation: Invocation<'_>,
        call: &mut dyn Call,
        (name, reply): (impl FnOnce() -> String, &mut Reply<'_>),
    ) -> Result<(), Failure> {
        self.run.begin(kind);
        let left = lend(call, || self.enter((kind, function), invocation));
        self.conclude(left, name, reply)
    }

    /// Bytes that Lua holds.
    pub(crate) fn used_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// Ends a run, and forgets what is compiled where that may be what fills the state: it is
    /// compiled again when next run.
    pub(super) fn clear_up(&mut self) {
        let mut ended = self.run.end(&self.lua);
        if ended.is_ok() && !self.compiled.is_empty() && self.run.is_crowded(&self.lua) {
            self.compiled.clear();
            ended = self.lua.gc_collect();
        }
        ended.expect("the state's bound and hook are ours to set");
    }

    fn follow(&mut self, scripts: &Scripts) {
        if self.generation != scripts.generation() {
            self.generation = scripts.generation();
            self.compiled.clear();
            self.texts.clear();
        }
    }

    fn compile(&mut self, script: &Script) -> Result<Rc<Function>, Error> {
        if let Some(function) = self.compiled.get(script.sha()) {
            return Ok(Rc::clone(function));
        }
        let chunk = self.lua.load(script.code()).set_name("@user_script");
        let function = chunk.set_mode(ChunkMode::Text).into_function().map_err(|error| {
            let text = compile_text(&error);
            Error::text(format!("Error compiling script (new function): {text}"))
        })?;
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.clear();
        }
        let function = Rc::new(function);
        self.compiled.insert(*script.sha(), Rc::clone(&function));
        Ok(function)
    }

    /// Calls Lua with the words of a run.
    fn enter(&self, (kind, function): (Kind, &Function), invocation: Invocation<'_>) -> Left {
        let Invocation { keys, args, .. } = invocation;
        if keys.len() == 1
            && let Some((keys, args)) = texts(keys).zip(texts(args))
            && args.len() <= WORDS_USUAL
        {
            let args = args.into_iter().map(Either::Left);
            let args: Variadic<_> = args.chain([Either::Right(Bound(&self.run))]).collect();
            return self.entry.on_key(kind).call((function, keys[0], args));
        }
        let (keys, args) = (self.sequence(keys)?, self.sequence(args)?);
        self.entry.of(kind).call((function, keys, args, Bound(&self.run)))
    }

    fn sequence(&self, words: Args<'_>) -> mlua::Result<Table> {
        if let Some(texts) = texts(words) {
            return self.lua.create_sequence_from(texts);
        }
        let table = self.lua.create_table_with_capacity(words.len(), 0)?;
        for word in words.iter() {
            table.raw_push(self.lua.create_string(word)?)?;
        }
        Ok(table)
    }

    /// Makes the reply of what a run has left.
    fn conclude(
        &mut self,
        left: Left,
        name: impl FnOnce() -> String,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let (Ended(how), values) = left.unwrap_or_else(|error| {
            (Ended(Ended::ERROR), MultiValue::from_vec(vec![Value::Error(Box::new(error))]))
        });
        self.clear_up();
        let values = values.into_vec();
        match self.run.stop.get() {
            Stop::Abandoned => return Err(Failure::Abandoned),
            Stop::No if how != Ended::ERROR => {}
            Stop::No | Stop::Killed | Stop::LoadedTooLong => {
                let late = || Caught::late(values.first().unwrap_or(&Value::Nil));
                let caught = self.run.caught.borrow_mut().take().unwrap_or_else(late);
                return Err(caught.reply(&name()).into());
            }
        }
        let start = reply.written();
        let resp = self.run.resp.get();
        let mut writer =
            Writer { reply, resp, start, run: &self.run, walk: &self.entry.walk, steps: 0 };
        let written = if how == Ended::ARRAY {
            writer.array(&values)
        } else {
            writer.top(values.first().unwrap_or(&Value::Nil))
        };
        written.map_err(|error| {
            reply.take_back(start);
            error.into()
        })
    }
}

/// The words, if all are UTF-8: such mlua hands to Lua without a detour.
fn texts(words: Args<'_>) -> Option<SmallVec<[&str; WORDS_USUAL]>> {
    words.iter().map(|word| str::from_utf8(word).ok()).collect()
}

/// What Lua says of a text that it cannot compile.
pub(super) fn compile_text(error: &LuaError) -> String {
    match error {
        LuaError::SyntaxError { message, .. } => message.clone(),
        other => String::from_utf8_lossy(&Thrown::of(other).text).into_owned(),
    }
}

/// `7.2.4` as 0x070204.
fn version_number(version: &str) -> i64 {
    version
        .split('.')
        .filter_map(|part| part.parse::<i64>().ok())
        .fold(0, |all, part| all << 8 | part)
}

/// Tells texts apart quickly. No secret is needed: who finds two of one hash makes the worker
/// hash and look up as for any text it does not know.
fn foldhash_of(text: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one(text)
}
