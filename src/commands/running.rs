//! The scripts that run right now: for how long, whether they have written, how to end them.
//!
//! Each worker runs one script at a time and says so in a [`Slot`] of its own. The control thread
//! looks at all slots some times a second and declares a script long that has outlasted
//! `lua.busy_after`; from then on the gate answers BUSY to most commands, and nobody waits for
//! the shards that it holds. A script is killed by a flag that its interpreter polls.
//!
//! Invariant: a script that was killed has written nothing and writes nothing more. Both are
//! decided under the slot's lock. Only the end of the whole server breaks this: it ends every
//! script, and from then on none begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::twins::{Tally, TwinCounts};
use crate::engine::Long;
use crate::protocol::{Args, Error, OwnedArgs};
use crate::time::{Duration, Timestamp};

/// How a script came to run.
#[derive(Debug)]
pub(super) enum Kind {
    Eval,
    /// The function's name, and the words of the FCALL.
    Function {
        name: Box<[u8]>,
        words: OwnedArgs,
    },
}

impl Kind {
    pub(super) fn function(name: &[u8], words: Args<'_>) -> Self {
        Self::Function { name: name.into(), words: OwnedArgs::copy(words) }
    }
}

#[derive(Debug)]
struct Run {
    kind: Kind,
    began: Timestamp,
    has_written: bool,
    is_long: bool,
}

/// The script of one worker, if it runs one, and what its worker has counted.
#[derive(Debug, Default)]
pub(super) struct Slot {
    run: Mutex<Option<Run>>,
    killed: Arc<AtomicBool>,
    /// The same of all slots.
    ending: Arc<AtomicBool>,
    declared: AtomicU64,
    all: AtomicU64,
    again: AtomicU64,
    twins: Tally,
    lua_bytes: AtomicU64,
}

/// How many scripts run, and how they have run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ScriptRuns {
    /// Right now, those included that are long.
    pub(crate) running: u64,
    pub(crate) long: u64,
    /// Over the shards of the keys that they declared, from the first command to the last.
    pub(crate) declared: u64,
    /// Over all shards.
    pub(crate) all: u64,
    /// Of these, after they had been taken back for a key that they had not declared.
    pub(crate) again: u64,
    /// What Lua holds.
    pub(crate) lua_bytes: u64,
}

impl Slot {
    /// A script runs from here on, until what is returned is dropped. None begins once the
    /// server ends.
    pub(super) fn begin<'s>(
        &'s self,
        kind: Kind,
        now: Timestamp,
        long: &'s Long,
    ) -> Option<Running<'s>> {
        let mut run = self.run.lock();
        if self.ending.load(Ordering::Relaxed) {
            return None;
        }
        self.killed.store(false, Ordering::Relaxed);
        *run = Some(Run { kind, began: now, has_written: false, is_long: false });
        Some(Running { slot: self, long })
    }

    /// The script is about to write. False where it has been killed and must not.
    pub(super) fn begin_write(&self) -> bool {
        let mut run = self.run.lock();
        if self.killed.load(Ordering::Relaxed) {
            return false;
        }
        if let Some(run) = &mut *run {
            run.has_written = true;
        }
        true
    }

    /// What it had written was taken back.
    pub(super) fn forget_writes(&self) {
        if let Some(run) = &mut *self.run.lock() {
            run.has_written = false;
        }
    }

    pub(super) fn is_long(&self) -> bool {
        self.run.lock().as_ref().is_some_and(|run| run.is_long)
    }

    pub(super) fn note_lua_bytes(&self, bytes: usize) {
        self.lua_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    pub(super) fn count_declared(&self) {
        self.declared.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_all(&self, again: bool) {
        self.all.fetch_add(1, Ordering::Relaxed);
        self.again.fetch_add(again.into(), Ordering::Relaxed);
    }

    /// Of the scripts that ran by their native twins.
    pub(super) fn twins(&self) -> &Tally {
        &self.twins
    }

    /// Set when the script is to end; its interpreter polls it.
    pub(super) fn killed(&self) -> &Arc<AtomicBool> {
        &self.killed
    }
}

/// While it lives, a script runs; also one whose command panics ends.
pub(super) struct Running<'s> {
    slot: &'s Slot,
    long: &'s Long,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.slot.run.lock().take().is_some_and(|run| run.is_long) {
            self.long.end();
        }
    }
}

/// Which of the two commands for it asks to kill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Killer {
    Script,
    Function,
}

impl Killer {
    /// Whether it is the one for such scripts.
    fn fits(self, kind: &Kind) -> bool {
        matches!((self, kind), (Self::Script, Kind::Eval) | (Self::Function, Kind::Function { .. }))
    }
}

/// A function that runs, for FUNCTION STATS.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) name: Box<[u8]>,
    pub(super) words: OwnedArgs,
    pub(super) took: Duration,
}

/// The slots of all workers.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Mutex<Vec<Arc<Slot>>>,
    ending: Arc<AtomicBool>,
}

impl Slots {
    /// The slot of one more worker, and its number.
    pub(super) fn new_slot(&self) -> (Arc<Slot>, u32) {
        let slot = Arc::new(Slot { ending: Arc::clone(&self.ending), ..Slot::default() });
        let mut slots = self.slots.lock();
        let number = slots.len() as u32;
        slots.push(Arc::clone(&slot));
        (slot, number)
    }

    /// Declares the scripts long that have run for longer than this.
    pub(super) fn look(&self, now: Timestamp, busy_after: Duration, long: &Long) {
        for slot in self.slots.lock().iter() {
            if let Some(run) = &mut *slot.run.lock()
                && !run.is_long
                && now.since(run.began) >= busy_after
            {
                run.is_long = true;
                long.begin();
            }
        }
    }

    pub(super) fn counts(&self) -> ScriptRuns {
        self.slots.lock().iter().fold(ScriptRuns::default(), |sum, slot| {
            let run = slot.run.lock();
            let long = run.as_ref().is_some_and(|run| run.is_long);
            ScriptRuns {
                running: sum.running + u64::from(run.is_some()),
                long: sum.long + u64::from(long),
                declared: sum.declared + slot.declared.load(Ordering::Relaxed),
                all: sum.all + slot.all.load(Ordering::Relaxed),
                again: sum.again + slot.again.load(Ordering::Relaxed),
                lua_bytes: sum.lua_bytes + slot.lua_bytes.load(Ordering::Relaxed),
            }
        })
    }

    pub(super) fn twin_counts(&self) -> Vec<TwinCounts> {
        let mut sums = TwinCounts::none();
        self.slots.lock().iter().for_each(|slot| slot.twins.add_to(&mut sums));
        sums
    }

    /// What others are told while a script is long.
    pub(super) fn busy(&self) -> Error {
        let is_function = |slot: &Arc<Slot>| {
            let run = slot.run.lock();
            run.as_ref().is_some_and(|run| run.is_long && Killer::Function.fits(&run.kind))
        };
        if self.slots.lock().iter().any(is_function) { Error::BusyFunction } else { Error::Busy }
    }

    /// Ends every script of this kind that has not written yet.
    pub(super) fn kill(&self, killer: Killer) -> Result<(), Error> {
        let (mut killed, mut refusal) = (false, Error::NotBusy);
        for slot in self.slots.lock().iter() {
            match &*slot.run.lock() {
                None => {}
                Some(run) if !killer.fits(&run.kind) => {
                    refusal = match killer {
                        Killer::Script => Error::BusyFunction,
                        Killer::Function => Error::Busy,
                    };
                }
                Some(run) if run.has_written => refusal = Error::Unkillable,
                Some(_) => {
                    slot.killed.store(true, Ordering::Relaxed);
                    killed = true;
                }
            }
        }
        if killed { Ok(()) } else { Err(refusal) }
    }

    /// The server ends, and every script with it, those included that would begin later.
    pub(super) fn end_all(&self) {
        self.ending.store(true, Ordering::Relaxed);
        for slot in self.slots.lock().iter() {
            // A script that begins at this moment is either told here, or sees that all end.
            let _run = slot.run.lock();
            slot.killed.store(true, Ordering::Relaxed);
        }
    }

    /// Some function that runs.
    pub(super) fn function(&self, now: Timestamp) -> Option<Shown> {
        self.slots.lock().iter().find_map(|slot| match &*slot.run.lock() {
            Some(Run { kind: Kind::Function { name, words }, began, .. }) => {
                Some(Shown { name: name.clone(), words: words.clone(), took: now.since(*began) })
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINS: &str = "the server does not end";
    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn script_is_long_from_its_time_on_until_it_ends() {
        let (slots, long) = (Slots::default(), Long::default());
        let (slot, _) = slots.new_slot();
        let run = slot.begin(Kind::Eval, at(10), &long).expect(BEGINS);
        slots.look(at(10), SECOND, &long);
        assert!(!long.is_any());
        slots.look(at(11), SECOND, &long);
        slots.look(at(12), SECOND, &long);
        assert!(long.is_any());
        drop(run);
        assert!(!long.is_any());
    }

    #[test]
    fn script_is_killed_only_before_it_writes() {
        let (slots, long) = (Slots::default(), Long::default());
        let (slot, _) = slots.new_slot();
        assert_eq!(slots.kill(Killer::Script), Err(Error::NotBusy));
        let run = slot.begin(Kind::Eval, at(0), &long).expect(BEGINS);
        assert!(slot.begin_write());
        assert_eq!(slots.kill(Killer::Script), Err(Error::Unkillable));
        assert_eq!(slots.kill(Killer::Function), Err(Error::Busy));
        slot.forget_writes();
        assert_eq!(slots.kill(Killer::Script), Ok(()));
        assert!(slot.killed().load(Ordering::Relaxed) && !slot.begin_write());
        drop(run);
        let _run = slot.begin(Kind::Eval, at(1), &long).expect(BEGINS);
        assert!(slot.begin_write(), "the next script is not meant");
    }

    #[test]
    fn no_script_begins_once_the_server_ends() {
        let (slots, long) = (Slots::default(), Long::default());
        let (slot, _) = slots.new_slot();
        let run = slot.begin(Kind::Eval, at(0), &long).expect(BEGINS);
        assert!(slot.begin_write());
        slots.end_all();
        assert!(slot.is_killed(), "though it has written");
        drop(run);
        assert!(slot.begin(Kind::Eval, at(1), &long).is_none());
        assert!(slots.new_slot().0.begin(Kind::Eval, at(1), &long).is_none());
    }

    #[test]
    fn function_is_shown_and_has_a_command_of_its_own_to_be_killed() {
        let (slots, long) = (Slots::default(), Long::default());
        let (slot, _) = slots.new_slot();
        let words = OwnedArgs::of(["FCALL", "f", "0"]);
        let function = Kind::function(b"f", words.as_args());
        let _run = slot.begin(function, at(0), &long).expect(BEGINS);
        slots.look(at(2), SECOND, &long);
        assert_eq!(slots.busy(), Error::BusyFunction);
        assert_eq!(slots.kill(Killer::Script), Err(Error::BusyFunction));
        let shown = slots.function(at(2)).expect("it runs");
        assert_eq!((&*shown.name, shown.took), (&b"f"[..], Duration::from_secs(2)));
        assert_eq!(slots.kill(Killer::Function), Ok(()));
    }
}
