//! The texts of scripts, shared by all workers and named by their SHA-1.
//!
//! A script that came by EVAL may be forgotten: those beyond [`EVAL_SCRIPTS_MAX`] go, the longest
//! unused first. One that was loaded stays until SCRIPT FLUSH, because clients that load once and
//! then send only the name never load again; their bytes have a maximum of their own, at which
//! loading is refused.
//!
//! Workers compile for themselves; a change of [`Scripts::generation`] tells them to forget what
//! they compiled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use parking_lot::RwLock;

use super::sha::Sha;
use super::shebang::{Heading, ScriptFlags, UnknownFlags, script_heading};
use crate::protocol::Error;

/// Scripts kept that came by EVAL: the figure of Redis 7.4.
const EVAL_SCRIPTS_MAX: usize = 500;

/// Bytes of scripts that came by EVAL; one that is longer runs without being kept.
const EVAL_BYTES_MAX: usize = 64 << 20;

/// Bytes of loaded scripts: far beyond any set of limiters, far below what hurts.
const LOADED_BYTES_MAX: usize = 256 << 20;

/// What a script takes beside its text.
const SCRIPT_BYTES: usize = 200;

/// How a script came here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    Eval,
    Load,
}

/// A script's text and what is known of it.
#[derive(Debug)]
pub(crate) struct Script {
    sha: Sha,
    text: Box<[u8]>,
    /// `None` for a script of the old kind, without `#!`.
    heading: Option<Heading>,
    /// It has touched a key that it did not declare, and runs over all shards since.
    wide: AtomicBool,
    loaded: AtomicBool,
    /// How many scripts had been added when this was last run.
    used: AtomicU64,
    /// The number of what does the same without Lua: who runs scripts gives the numbers.
    twin: OnceLock<Option<u16>>,
}

impl Script {
    fn new(text: &[u8], sha: Sha, unknown: UnknownFlags) -> Result<Self, Error> {
        Ok(Self {
            sha,
            heading: script_heading(text, unknown)?,
            text: text.into(),
            wide: AtomicBool::default(),
            loaded: AtomicBool::default(),
            used: AtomicU64::default(),
            twin: OnceLock::new(),
        })
    }

    /// The number of what does the same without Lua, which is looked for once.
    pub(crate) fn twin(&self, find: impl FnOnce(&Sha) -> Option<u16>) -> Option<u16> {
        *self.twin.get_or_init(|| find(&self.sha))
    }

    pub(crate) fn sha(&self) -> &Sha {
        &self.sha
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Without its first line, if that is a heading.
    pub(super) fn code(&self) -> &[u8] {
        &self.text[self.heading.map_or(0, |heading| heading.length)..]
    }

    /// What the first line says; `None` where a script has none.
    pub(crate) fn flags(&self) -> Option<ScriptFlags> {
        self.heading.map(|heading| heading.flags)
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.wide.load(Relaxed)
    }

    pub(crate) fn mark_wide(&self) {
        self.wide.store(true, Relaxed);
    }

    fn bytes(&self) -> usize {
        self.text.len() + SCRIPT_BYTES
    }
}

/// All scripts.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    unknown_flags: UnknownFlags,
    kept: RwLock<Kept>,
    generation: AtomicU64,
    added: AtomicU64,
    /// How many have been loaded.
    loads: AtomicU64,
    evicted: AtomicUsize,
}

#[derive(Debug, Default)]
struct Kept {
    by_sha: HashMap<Sha, Arc<Script>, FixedState>,
    evals: usize,
    eval_bytes: usize,
    loaded_bytes: usize,
}

/// The script that one worker was asked for last, by its name as it was sent: most clients ask
/// for the same one again and again.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    name: Vec<u8>,
    script: Option<Arc<Script>>,
    removals: u64,
}

/// What INFO tells.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ScriptStats {
    pub(crate) scripts: usize,
    pub(crate) bytes: usize,
    pub(crate) evicted: usize,
    /// Scripts that touched a key they had not declared.
    pub(crate) wide: usize,
}

impl Scripts {
    pub(crate) fn new(unknown_flags: UnknownFlags) -> Self {
        Self { unknown_flags, ..Self::default() }
    }

    pub(crate) fn find(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.kept.read().by_sha.get(sha).cloned()
    }

    /// The script of a name as it was sent; it is looked for only if it is not the one before.
    pub(crate) fn named(&self, name: &[u8], recent: &mut Recent) -> Option<Arc<Script>> {
        let removals = self.removals();
        if recent.removals != removals || recent.name != name {
            let script = self.find(&Sha::parse(name)?)?;
            *recent = Recent { name: name.to_vec(), script: Some(script), removals };
        }
        recent.script.clone()
    }

    /// Moves when a script is forgotten.
    fn removals(&self) -> u64 {
        self.generation() + self.evicted.load(Relaxed) as u64
    }

    /// Moves when what workers have compiled is to be forgotten.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// Moves when a script is loaded.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Relaxed)
    }

    /// The scripts that were loaded, and so stay.
    pub(crate) fn loaded(&self) -> Vec<Arc<Script>> {
        let kept = self.kept.read();
        kept.by_sha.values().filter(|script| script.loaded.load(Relaxed)).cloned().collect()
    }

    /// Loads a script that was loaded by another process: it compiled then.
    pub(crate) fn restore(&self, text: &[u8]) -> Result<(), Error> {
        let script = self.read(text, Sha::of(text))?;
        self.keep(script, Origin::Load).map(drop)
    }

    /// SCRIPT FLUSH.
    pub(crate) fn flush(&self) {
        *self.kept.write() = Kept::default();
        self.generation.fetch_add(1, Relaxed);
    }

    pub(crate) fn stats(&self) -> ScriptStats {
        let kept = self.kept.read();
        ScriptStats {
            scripts: kept.by_sha.len(),
            bytes: kept.eval_bytes + kept.loaded_bytes,
            evicted: self.evicted.load(Relaxed),
            wide: kept.by_sha.values().filter(|script| script.is_wide()).count(),
        }
    }

    /// Reads a script that is not kept yet.
    pub(super) fn read(&self, text: &[u8], sha: Sha) -> Result<Script, Error> {
        Script::new(text, sha, self.unknown_flags)
    }

    /// Keeps a script that was read and compiles.
    pub(super) fn keep(&self, script: Script, origin: Origin) -> Result<Arc<Script>, Error> {
        let mut kept = self.kept.write();
        let known = kept.by_sha.get(&script.sha).cloned();
        let script = known.clone().unwrap_or_else(|| Arc::new(script));
        let bytes = script.bytes();
        if origin == Origin::Load && !script.loaded.load(Relaxed) {
            if kept.loaded_bytes + bytes > LOADED_BYTES_MAX {
                return Err(Error::text("loaded scripts take too many bytes, SCRIPT FLUSH them"));
            }
            script.loaded.store(true, Relaxed);
            self.loads.fetch_add(1, Relaxed);
            kept.loaded_bytes += bytes;
            if known.is_some() {
                kept.evals -= 1;
                kept.eval_bytes -= bytes;
            }
        } else if known.is_none() {
            if bytes > EVAL_BYTES_MAX {
                return Ok(script);
            }
            kept.evals += 1;
            kept.eval_bytes += bytes;
        }
        if known.is_none() {
            script.used.store(self.added.fetch_add(1, Relaxed) + 1, Relaxed);
            kept.by_sha.insert(script.sha, Arc::clone(&script));
            self.evict(&mut kept);
        }
        Ok(script)
    }

    /// The script runs: it is not the longest unused.
    pub(crate) fn note_run(&self, script: &Script) {
        let added = self.added.load(Relaxed);
        if script.used.load(Relaxed) != added {
            script.used.store(added, Relaxed);
        }
    }

    fn evict(&self, kept: &mut Kept) {
        while kept.evals > EVAL_SCRIPTS_MAX || kept.eval_bytes > EVAL_BYTES_MAX {
            let evals = kept.by_sha.values().filter(|script| !script.loaded.load(Relaxed));
            let Some(oldest) = evals.min_by_key(|script| script.used.load(Relaxed)).cloned() else {
                return;
            };
            kept.by_sha.remove(&oldest.sha);
            kept.evals -= 1;
            kept.eval_bytes -= oldest.bytes();
            self.evicted.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(scripts: &Scripts, text: &str, origin: Origin) -> Arc<Script> {
        let read = scripts.read(text.as_bytes(), Sha::of(text.as_bytes())).unwrap();
        scripts.keep(read, origin).unwrap()
    }

    #[test]
    fn scripts_that_came_by_eval_go_the_longest_unused_first() {
        let scripts = Scripts::default();
        let first = add(&scripts, "return 'first'", Origin::Eval);
        let loaded = add(&scripts, "return 'loaded'", Origin::Load);
        let both = add(&scripts, "return 'both'", Origin::Eval);
        add(&scripts, "return 'both'", Origin::Load);
        let second = add(&scripts, "return 'second'", Origin::Eval);
        for number in 0..EVAL_SCRIPTS_MAX - 1 {
            add(&scripts, &format!("return {number}"), Origin::Eval);
            scripts.note_run(&first);
        }
        assert!(scripts.find(second.sha()).is_none());
        for kept in [&first, &loaded, &both] {
            assert!(scripts.find(kept.sha()).is_some());
        }
        assert_eq!(scripts.stats().scripts, EVAL_SCRIPTS_MAX + 2);
        assert_eq!(scripts.stats().evicted, 1);
        let generation = scripts.generation();
        scripts.flush();
        assert_eq!(scripts.stats(), ScriptStats { evicted: 1, ..ScriptStats::default() });
        assert_ne!(scripts.generation(), generation);
    }

    #[test]
    fn script_that_is_forgotten_is_not_found_as_the_one_before() {
        let (scripts, mut recent) = (Scripts::default(), Recent::default());
        let script = add(&scripts, "return 1", Origin::Eval);
        let (name, other) = (script.sha().hex(), Sha::of(b"return 2").hex());
        let mut is_found = |name: &String| scripts.named(name.as_bytes(), &mut recent).is_some();
        assert!(is_found(&name) && is_found(&name) && !is_found(&other) && is_found(&name));
        for number in 0..EVAL_SCRIPTS_MAX {
            add(&scripts, &format!("return '{number}'"), Origin::Eval);
        }
        assert!(!is_found(&name), "evicted");
        add(&scripts, "return 1", Origin::Load);
        assert!(is_found(&name));
        scripts.flush();
        assert!(!is_found(&name), "flushed");
    }
}
