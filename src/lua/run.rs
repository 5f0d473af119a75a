//! The state of one worker's run, as the functions that scripts call see it.
//!
//! Functions of the server outlive any run, and the transaction that a run works in does not. So
//! a run lends its [`Call`] through a slot of the thread, for just as long as it lasts.
//!
//! Lua's memory is bounded only while Lua itself works: under a bound, each touch of the state
//! by mlua would be a protected call of its own, which costs more than a short script does.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mlua::{FromLua, HookTriggers, IntoLua, Lua, Value, VmState};

use super::call::{Abandon, Call, LogLevel};
use super::failure::{Caught, Thrown};
use super::interpreter::Setup;
use super::json::Shared;
use super::random::Random;
use super::register::Registered;
use crate::protocol::{Args, OwnedArgs, Resp};

/// Between two looks at the kill flag: a millisecond or so of a busy script.
const HOOK_INSTRUCTIONS: u32 = 100_000;

/// Looks at the clockless budget of a library that is being loaded; half a second or so.
const LOADING_LOOKS_MAX: u32 = 600;

scoped_tls_hkt::scoped_thread_local!(static mut CALL: for<'a> &'a mut (dyn Call + 'a));

/// Runs `f` while scripts of this thread reach the server by `call`.
pub(super) fn lend<R>(call: &mut dyn Call, f: impl FnOnce() -> R) -> R {
    CALL.set(call, f)
}

/// Why a run must end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stop {
    #[default]
    No,
    Abandoned,
    Killed,
    LoadedTooLong,
}

/// What the current run is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Kind {
    #[default]
    Script,
    Function,
    Loading,
}

/// Shared by all functions of one interpreter.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) kind: Cell<Kind>,
    /// The protocol that the script asked for.
    pub(super) resp: Cell<Resp>,
    pub(super) random: Cell<Random>,
    random_before: Cell<Random>,
    pub(super) stop: Cell<Stop>,
    /// What ended the run, noticed where it happened.
    pub(super) caught: RefCell<Option<Caught>>,
    /// The functions that the library being loaded has registered.
    pub(super) registered: RefCell<Vec<Registered>>,
    pub(super) bare_codes: bool,
    pub(super) memory_max: usize,
    kill: Arc<AtomicBool>,
    looks: Cell<u32>,
    /// What the script has set of the global `cjson`.
    json: Shared,
    words: RefCell<OwnedArgs>,
    reply: RefCell<Vec<u8>>,
}

impl Run {
    pub(super) fn new(setup: &Setup, json: Shared) -> Self {
        let random = Cell::new(Random::of_worker(setup.worker));
        Self {
            kind: Cell::default(),
            resp: Cell::default(),
            random_before: random.clone(),
            random,
            stop: Cell::default(),
            caught: RefCell::default(),
            registered: RefCell::default(),
            bare_codes: setup.bare_codes,
            memory_max: setup.memory_max,
            kill: Arc::clone(&setup.kill),
            looks: Cell::default(),
            json,
            words: RefCell::default(),
            reply: RefCell::default(),
        }
    }

    /// Forgets the run before.
    pub(super) fn begin(&self, kind: Kind) {
        self.kind.set(kind);
        self.resp.set(Resp::V2);
        self.random_before.set(self.random.get());
        self.stop.set(Stop::No);
        self.looks.set(0);
        self.json.take();
        *self.caught.borrow_mut() = None;
    }

    /// Lua may take so much from here on.
    pub(super) fn bound_memory(&self, lua: &Lua) -> mlua::Result<()> {
        lua.set_memory_limit(self.memory_max).map(|_| ())
    }

    pub(super) fn free_memory(lua: &Lua) -> mlua::Result<()> {
        lua.set_memory_limit(0).map(|_| ())
    }

    /// Collects what a greedy run has left; Lua 5.1 does not collect when it runs out. A run that
    /// was abandoned has drawn nothing: the one that repeats it draws the same numbers.
    pub(super) fn end(&self, lua: &Lua) -> mlua::Result<()> {
        Self::free_memory(lua)?;
        if self.stop.get() == Stop::Abandoned {
            self.random.set(self.random_before.get());
        }
        if self.stop.get() != Stop::No {
            Self::watch(lua)?;
        }
        if self.is_crowded(lua) {
            lua.gc_collect()?;
        }
        Ok(())
    }

    /// Whether so much is left of this run that the next may not have enough.
    pub(super) fn is_crowded(&self, lua: &Lua) -> bool {
        lua.used_memory() > self.memory_max / 2
    }

    /// Carries out the command whose words `fill` writes, and reads the reply by `read`.
    pub(super) fn call<R>(
        &self,
        lua: &Lua,
        fill: impl FnOnce(&mut OwnedArgs, usize) -> Result<(), &'static str>,
        read: impl FnOnce(&[u8]) -> mlua::Result<R>,
    ) -> mlua::Result<Result<R, &'static str>> {
        if self.stop.get() != Stop::No {
            return Err(Thrown::stopped(self).into());
        }
        let mut words = self.words.borrow_mut();
        words.clear();
        if let Err(text) = fill(&mut words, self.memory_max) {
            return Ok(Err(text));
        }
        let mut reply = self.reply.borrow_mut();
        reply.clear();
        let lent =
            |call: &mut (dyn Call + '_)| call.call(words.as_args(), self.resp.get(), &mut reply);
        if let Err(Abandon) = CALL.with(lent) {
            return Err(self.stop_now(lua, Stop::Abandoned));
        }
        let value = read(&reply).map(Ok);
        if reply.capacity() > SCRATCH_BYTES_MAX {
            *reply = Vec::new();
        }
        if words.heap_bytes() > SCRATCH_BYTES_MAX {
            *words = OwnedArgs::default();
        }
        value
    }

    pub(super) fn allows(
        &self,
        fill: impl FnOnce(&mut OwnedArgs, usize) -> Result<(), &'static str>,
    ) -> Result<Option<bool>, &'static str> {
        let mut words = self.words.borrow_mut();
        words.clear();
        fill(&mut words, self.memory_max)?;
        let words: Args<'_> = words.as_args();
        Ok(CALL.with(|call| call.allows(words)))
    }

    /// Also while a library is loaded, which lends nothing: then the line goes nowhere.
    pub(super) fn log(level: LogLevel, text: &[u8]) {
        if CALL.is_set() {
            CALL.with(|call| call.log(level, text));
        }
    }

    /// Looks at the kill flag from time to time, in coroutines too.
    pub(super) fn watch(lua: &Lua) -> mlua::Result<()> {
        let triggers = HookTriggers::new().every_nth_instruction(HOOK_INSTRUCTIONS);
        lua.set_global_hook(triggers, |lua, _| {
            let run = lua.app_data_ref::<Rc<Self>>();
            run.expect("the interpreter has put it there").look(lua)
        })
    }

    /// For where no hook looks: what Rust does on its own.
    pub(super) fn is_killed(&self) -> bool {
        self.kill.load(Relaxed)
    }

    pub(super) fn look(&self, lua: &Lua) -> mlua::Result<VmState> {
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        let stop = match self.stop.get() {
            Stop::No if self.is_killed() => Stop::Killed,
            Stop::No if self.kind.get() == Kind::Loading && looks > LOADING_LOOKS_MAX => {
                Stop::LoadedTooLong
            }
            other => other,
        };
        if stop != Stop::No {
            return Err(self.stop_now(lua, stop));
        }
        if CALL.is_set() {
            CALL.with(|call| call.pause());
        }
        Ok(VmState::Continue)
    }

    /// Ends the run: from here on each instruction raises anew, so that no `pcall` holds it.
    fn stop_now(&self, lua: &Lua, stop: Stop) -> mlua::Error {
        self.stop.set(stop);
        let triggers = HookTriggers::new().every_nth_instruction(1);
        let armed = lua.set_global_hook(triggers, |lua, _| {
            let run = lua.app_data_ref::<Rc<Self>>();
            Err(Thrown::stopped(&run.expect("the interpreter has put it there")).into())
        });
        armed.err().unwrap_or_else(|| Thrown::stopped(self).into())
    }
}

/// Bounds Lua's memory when it is handed over, so it is the last of what an entry is given.
pub(super) struct Bound<'r>(pub(super) &'r Run);

impl IntoLua for Bound<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        self.0.bound_memory(lua).map(|()| Value::Nil)
    }
}

/// What kind of value a run has left, by the prelude's number. It is the first that an entry
/// gives back, and lifts the bound for the others.
pub(super) struct Ended(pub(super) i64);

impl Ended {
    pub(super) const ERROR: i64 = 0;
    pub(super) const ARRAY: i64 = 2;
}

impl FromLua for Ended {
    fn from_lua(value: Value, lua: &Lua) -> mlua::Result<Self> {
        Run::free_memory(lua)?;
        i64::from_lua(value, lua).map(Self)
    }
}

/// Buffers of a run that grew beyond this are not kept for the next.
const SCRATCH_BYTES_MAX: usize = 1 << 20;
