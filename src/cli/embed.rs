//! A server inside another program: for the tests of programs that use Tollgate.
//!
//! With a manual clock, a test moves time itself, and sees windows open without waiting.

use std::path::PathBuf;

use super::CommandLine;
use super::flags::SettingFlags;
use crate::roles::{self, Handle};
use crate::time::Clock;
use clap::Parser;

/// A server that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Running(Handle);

impl Running {
    /// Where it speaks RESP.
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// Where it answers by HTTP, unless `server.http.enabled` is off.
    pub fn http_port(&self) -> Option<u16> {
        self.0.http_port()
    }

    /// Stops as on SIGTERM: what was begun is finished. Returns once all is over.
    pub fn stop(self) -> anyhow::Result<()> {
        self.0.stop()
    }
}

/// Starts a server with the flags of `tollgate serve`, such as `["--port", "0"]`, under `clock`.
/// The environment is not read.
///
/// Fails with a sentence where a flag or setting is wrong or the port is taken.
///
/// ```
/// use tollgate::time::{Clock, Timestamp};
///
/// let clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
/// let server = tollgate::cli::start(&["--port", "0", "--http-port", "0"], clock)?;
/// assert_ne!(server.port(), 0);
/// server.stop()?;
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn start(flags: &[&str], clock: Clock) -> anyhow::Result<Running> {
    let command_line = CommandLine::try_parse_from(["tollgate"].iter().chain(flags))?;
    let flags: &SettingFlags = command_line.serve.settings();
    let file = flags.file().map(PathBuf::from);
    Ok(Running(roles::start(&flags.load_without_environment()?, file.as_deref(), clock)?))
}
