//! Libraries of functions, shared by all workers: their code, and what was registered.
//!
//! A library is read by an interpreter before it comes here, so it is known to load. Workers
//! compile it for themselves when they first call one of its functions; they know it by identity,
//! so a library that was replaced is compiled anew and the others keep what they remember.
//!
//! Invariant: a function's name, whatever its case, is in one library only.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::RwLock;

use super::shebang::ScriptFlags;
use crate::protocol::Error;

/// Bytes of code of all libraries.
const CODE_BYTES_MAX: usize = 64 << 20;

/// A function of a library.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LibraryFunction {
    pub(crate) name: Vec<u8>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: ScriptFlags,
}

/// A library, as it was loaded.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Library {
    pub(crate) name: Vec<u8>,
    /// Its whole text, heading included.
    pub(crate) code: Vec<u8>,
    /// In the order in which they were registered.
    pub(crate) functions: Vec<LibraryFunction>,
}

/// A function and the library that it is in.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(super) library: Arc<Library>,
    pub(super) place: usize,
    wide: Arc<AtomicBool>,
}

impl Found {
    pub(crate) fn function(&self) -> &LibraryFunction {
        &self.library.functions[self.place]
    }

    /// It has touched a key that it did not declare, and runs over all shards since.
    pub(crate) fn is_wide(&self) -> bool {
        self.wide.load(Relaxed)
    }

    pub(crate) fn mark_wide(&self) {
        self.wide.store(true, Relaxed);
    }
}

/// What FUNCTION RESTORE does with what is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RestorePolicy {
    /// Refuse if a library of a name is there.
    Append,
    Replace,
    Flush,
}

/// What FUNCTION STATS and INFO tell.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct LibraryStats {
    pub(crate) libraries: usize,
    pub(crate) functions: usize,
    pub(crate) bytes: usize,
}

/// All libraries.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    shelf: RwLock<Shelf>,
    generation: AtomicU64,
}

#[derive(Clone, Debug, Default)]
struct Shelf {
    libraries: BTreeMap<Vec<u8>, Arc<Library>>,
    /// By name in lower case.
    functions: HashMap<Vec<u8>, Found>,
}

impl Libraries {
    /// The function of that name, whatever its case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Found> {
        self.shelf.read().functions.get(&name.to_ascii_lowercase()).cloned()
    }

    /// Every library, by name.
    pub(crate) fn list(&self) -> Vec<Arc<Library>> {
        self.shelf.read().libraries.values().cloned().collect()
    }

    pub(crate) fn delete(&self, name: &[u8]) -> Result<(), Error> {
        let mut shelf = self.shelf.write();
        shelf.take(name).ok_or_else(|| Error::text("Library not found"))?;
        self.generation.fetch_add(1, Relaxed);
        Ok(())
    }

    pub(crate) fn flush(&self) {
        *self.shelf.write() = Shelf::default();
        self.generation.fetch_add(1, Relaxed);
    }

    pub(crate) fn stats(&self) -> LibraryStats {
        let shelf = self.shelf.read();
        LibraryStats {
            libraries: shelf.libraries.len(),
            functions: shelf.functions.len(),
            bytes: shelf.code_bytes(),
        }
    }

    /// Moves when a library comes or goes.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    pub(super) fn holds(&self, library: &Arc<Library>) -> bool {
        let shelf = self.shelf.read();
        shelf.libraries.get(&library.name).is_some_and(|held| Arc::ptr_eq(held, library))
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.shelf.read().libraries.contains_key(name)
    }

    /// Takes libraries in, all or none.
    pub(super) fn add(&self, new: &[Arc<Library>], policy: RestorePolicy) -> Result<(), Error> {
        let mut held = self.shelf.write();
        let mut shelf =
            if policy == RestorePolicy::Flush { Shelf::default() } else { held.clone() };
        for library in new {
            if policy == RestorePolicy::Replace {
                shelf.take(&library.name);
            }
            shelf.put(library)?;
        }
        *held = shelf;
        self.generation.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl Shelf {
    fn code_bytes(&self) -> usize {
        self.libraries.values().map(|library| library.code.len()).sum()
    }

    fn put(&mut self, library: &Arc<Library>) -> Result<(), Error> {
        if self.libraries.contains_key(&library.name) {
            let text = [b"ERR Library ", &*library.name, b" already exists"].concat();
            return Err(Error::raw(text));
        }
        if self.code_bytes() + library.code.len() > CODE_BYTES_MAX {
            return Err(Error::text("libraries take too many bytes, FUNCTION DELETE some"));
        }
        for (place, function) in library.functions.iter().enumerate() {
            let library = Arc::clone(library);
            let found = Found { library, place, wide: Arc::default() };
            let key = function.name.to_ascii_lowercase();
            if self.functions.insert(key, found).is_some() {
                let text = [b"ERR Function ", &*function.name, b" already exists"].concat();
                return Err(Error::raw(text));
            }
        }
        self.libraries.insert(library.name.clone(), Arc::clone(library));
        Ok(())
    }

    fn take(&mut self, name: &[u8]) -> Option<Arc<Library>> {
        let library = self.libraries.remove(name)?;
        for function in &library.functions {
            self.functions.remove(&function.name.to_ascii_lowercase());
        }
        Some(library)
    }
}
