//! What a script reaches of the server, and what a run is given and leaves.
//!
//! [`Call`] is the door upwards: this room owns it and knows no command; `commands` implements
//! it on the view that is locked while the script runs.

use crate::protocol::{Args, Error, Resp};

/// The run cannot go on where it stands: it needs what its transaction does not hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Abandon;

/// Of `redis.log`, by Redis's own numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// The server, as a script sees it.
pub(crate) trait Call {
    /// Carries out one command and writes its one reply, an error being a reply, in the
    /// protocol that the script asked for. `Err` ends the script at once; no `pcall` holds it.
    fn call(&mut self, words: Args<'_>, resp: Resp, out: &mut Vec<u8>) -> Result<(), Abandon>;

    /// `redis.log`.
    fn log(&mut self, level: LogLevel, text: &[u8]);

    /// The script has worked for a while: whoever it holds up may be looked after.
    fn pause(&mut self) {}

    /// `redis.acl_check_cmd`: whether the caller may do this; `None` where there is no such
    /// command.
    fn allows(&mut self, words: Args<'_>) -> Option<bool>;
}

/// What one run is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invocation<'a> {
    pub(crate) keys: Args<'a>,
    pub(crate) args: Args<'a>,
}

/// How a run can fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Failure {
    /// [`Call::call`] asked for it. Nothing was written to the reply.
    Abandoned,
    /// The client is to be told this; also where the script returned an error.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
