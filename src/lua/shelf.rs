//! Libraries in one worker: read, compiled, and their functions called.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Value};

use super::call::{Call, Failure, Invocation};
use super::dump::{read_payload, write_payload};
use super::failure::{Caught, Thrown};
use super::interpreter::{Interpreter, Left, compile_text};
use super::libraries::{Found, Libraries, Library, LibraryFunction, RestorePolicy};
use super::register::{Registered, WRONG_NAME, is_name};
use super::run::{Bound, Ended, Kind, Run, Stop};
use super::shebang::library_heading;
use crate::protocol::{Error, Reply};

/// What this worker has compiled, by the name of the library.
#[derive(Debug, Default)]
pub(super) struct CompiledLibraries {
    by_name: HashMap<Vec<u8>, Compiled>,
    generation: u64,
}

/// A library and its functions, in the order of its rows.
type Compiled = (Arc<Library>, Rc<[Function]>);

impl CompiledLibraries {
    fn follow(&mut self, libraries: &Libraries) {
        if self.generation != libraries.generation() {
            self.generation = libraries.generation();
            self.by_name.retain(|_, (library, _)| libraries.holds(library));
        }
    }

    fn find(&self, library: &Arc<Library>) -> Option<Rc<[Function]>> {
        let (held, functions) = self.by_name.get(&library.name)?;
        Arc::ptr_eq(held, library).then(|| Rc::clone(functions))
    }

    fn keep(&mut self, library: Arc<Library>, functions: Rc<[Function]>) {
        self.by_name.insert(library.name.clone(), (library, functions));
    }
}

impl Interpreter {
    /// FUNCTION LOAD; the name of the library.
    pub(crate) fn load_library(
        &mut self,
        libraries: &Libraries,
        code: &[u8],
        policy: RestorePolicy,
    ) -> Result<Vec<u8>, Error> {
        let (name, _) = checked_heading(code)?;
        if policy == RestorePolicy::Append && libraries.has(&name) {
            return Err(Error::raw([b"ERR Library '", &*name, b"' already exists"].concat()));
        }
        let (library, functions) = self.read_library(code)?;
        libraries.add(&[Arc::clone(&library)], policy)?;
        self.libraries.keep(library, functions);
        Ok(name)
    }

    /// FUNCTION RESTORE.
    pub(crate) fn restore_libraries(
        &mut self,
        libraries: &Libraries,
        payload: &[u8],
        policy: RestorePolicy,
    ) -> Result<(), Error> {
        let mut read = Vec::new();
        for code in read_payload(payload)? {
            read.push(self.read_library(&code)?);
        }
        let new: Vec<Arc<Library>> = read.iter().map(|(library, _)| Arc::clone(library)).collect();
        libraries.add(&new, policy)?;
        for (library, functions) in read {
            self.libraries.keep(library, functions);
        }
        Ok(())
    }

    /// FCALL.
    pub(crate) fn call_function(
        &mut self,
        (libraries, found): (&Libraries, &Found),
        invocation: Invocation<'_>,
        call: &mut dyn Call,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        self.libraries.follow(libraries);
        let functions = if let Some(functions) = self.libraries.find(&found.library) {
            functions
        } else {
            let (_, functions) = self.read_library(&found.library.code)?;
            self.libraries.keep(Arc::clone(&found.library), Rc::clone(&functions));
            functions
        };
        let Some(function) = functions.get(found.place) else {
            // The code registers something else than it did when it was loaded.
            return Err(Error::text("Function not found").into());
        };
        let name = || String::from_utf8_lossy(&found.function().name).into_owned();
        self.carry_out((Kind::Function, function), invocation, call, (name, reply))
    }

    /// Compiles a library and lets it register its functions.
    fn read_library(&mut self, code: &[u8]) -> Result<Compiled, Error> {
        let (name, heading) = checked_heading(code)?;
        let chunk = self.lua.load(&code[heading..]).set_name("@user_function");
        let chunk = chunk
            .set_environment(self.entry.library_environment.clone())
            .set_mode(ChunkMode::Text)
            .into_function()
            .map_err(|error| {
                Error::text(format!("Error compiling function: {}", compile_text(&error)))
            })?;
        self.run.begin(Kind::Loading);
        self.run.registered.borrow_mut().clear();
        let left = self.entry.load_library.call((chunk, Bound(&self.run)));
        self.clear_up();
        let registered = std::mem::take(&mut *self.run.registered.borrow_mut());
        if let Some(line) = loading_error(&self.run, left) {
            return Err(Error::raw([b"ERR Error registering functions: ", &*line].concat()));
        }
        if registered.is_empty() {
            return Err(Error::text("No functions registered"));
        }
        let functions: Rc<[Function]> =
            registered.iter().map(|registered| registered.function.clone()).collect();
        let rows = registered.into_iter().map(Registered::into_row).collect();
        let library = Library { name, code: code.to_vec(), functions: rows };
        Ok((Arc::new(library), functions))
    }
}

/// FUNCTION DUMP.
pub(crate) fn dump_libraries(libraries: &Libraries) -> Vec<u8> {
    write_payload(libraries.list().iter().map(|library| library.code.as_slice()))
}

fn checked_heading(code: &[u8]) -> Result<(Vec<u8>, usize), Error> {
    let heading = library_heading(code)?;
    if is_name(&heading.0) { Ok(heading) } else { Err(Error::text(WRONG_NAME)) }
}

/// Why a library could not be loaded.
fn loading_error(run: &Run, left: Left) -> Option<Vec<u8>> {
    let late = match left {
        Ok((Ended(how), values)) if run.stop.get() == Stop::No => match how {
            Ended::ERROR => values.front().cloned().unwrap_or(Value::Nil),
            _ => return None,
        },
        Ok(_) => Value::Error(Box::new(Thrown::stopped(run).into())),
        Err(error) => Value::Error(Box::new(error)),
    };
    let caught = run.caught.borrow_mut().take();
    Some(caught.unwrap_or_else(|| Caught::late(&late)).text)
}

impl Registered {
    fn into_row(self) -> LibraryFunction {
        LibraryFunction { name: self.name, description: self.description, flags: self.flags }
    }

    pub(super) fn has_name_of(&self, other: &Self) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }
}
