//! The command line: one subcommand a file or folder.
//!
//! Exit codes are the same for all: 0 done, 1 failed, 2 wrong usage or bad input; a command
//! with one more says so in its help. A failure is one sentence on the standard error.

mod bench;
mod check;
mod resp;
mod target;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

/// A Redis-compatible rate-limit server.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Check),
    Bench(bench::Bench),
}

/// Runs the program with the process's own arguments.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Check(check) => check.run(),
        Command::Bench(bench) => bench.run(),
    };
    done.unwrap_or_else(|err| {
        // Nobody is left to tell when the standard error is closed too.
        let _ = writeln!(std::io::stderr(), "error: {err:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
