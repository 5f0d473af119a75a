//! The command line: what the program is asked to do, and how it says what came of it.
//!
//! Each subcommand is a file of this room with its arguments and a `run`; adding one is that
//! file and a variant of `Command`. Serving is what the program does without a word.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage or bad input; `check` has one more.

mod bench;
mod check;
mod config;
mod embed;
mod flags;
mod floor;
mod policy;
mod resp;
mod serve;
mod simulate;
mod target;

pub use embed::{Running, start};

use check::window;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::Error as SettingsError;

const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;

/// Tollgate answers one question, very fast: may this request pass now? It speaks Redis's
/// protocol, so every Redis client is already a client of it.
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    args_conflicts_with_subcommands = true,
    after_long_help = EXAMPLES
)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Those of `serve`, for a command line without a word.
    #[command(flatten)]
    serve: serve::Arguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve until told to stop: what happens when no command is given.
    Serve(serve::Arguments),
    /// Print the settings in force, as a document to start your own from.
    Config(config::Arguments),
    Check(check::Check),
    #[command(subcommand)]
    Policy(policy::Policy),
    Bench(bench::Bench),
    #[command(subcommand)]
    Simulate(simulate::Simulate),
    Floor(floor::Arguments),
}

impl Command {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Serve(arguments) => serve::run(&arguments).map(|()| ExitCode::SUCCESS),
            Self::Config(arguments) => config::run(&arguments).map(|()| ExitCode::SUCCESS),
            Self::Check(arguments) => arguments.run(),
            Self::Policy(policy) => policy.run(),
            Self::Bench(arguments) => arguments.run(),
            Self::Simulate(what) => what.run(),
            Self::Floor(arguments) => floor::run(&arguments).map(|()| ExitCode::SUCCESS),
        }
    }
}

const EXAMPLES: &str = "\
Try it:
  tollgate                                  serve on 127.0.0.1:6379, HTTP on 127.0.0.1:7379
  redis-cli RL.LIMIT user:42 10 1m          may user:42 pass? at most 10 times in any minute

  The answer is five integers, times in milliseconds:
    1) 0       limited: 0 pass, 1 do not
    2) 10      the limit
    3) 9       remaining
    4) -1      retry after; -1 when allowed, or when waiting does not help
    5) 60000   reset after: when nothing is left of what was spent

  redis-cli RL.LIMIT user:42 10 1m COST 3   spend three at once
  redis-cli RL.LIMIT user:42 10 1m PEEK     look, spend nothing
  redis-cli RL.RESET user:42                forget what was spent
  redis-cli CL.THROTTLE user:42 14 30 60    the same question as the module redis-cell puts it

  tollgate check user:42 10 1m              the same from the shell, in words
  tollgate policy lint policies/            look documents over; also diff, apply, explain
  tollgate bench                            load a running server, see its numbers
  tollgate simulate load                    what each shedder does at 0.9 to 30 times the load
  curl http://127.0.0.1:7379/metrics        what Prometheus reads; /health/live, /health/ready

Settings:
  tollgate config > my.yaml                 every setting, to edit
  tollgate --config my.yaml --port 7000     a file, and flags over it
  TOLLGATE_SERVER_PORT=7000 tollgate        the environment lies between the two
  tollgate --set engine.memory_max=512mb    any setting by its name

Signals: SIGTERM or SIGINT finishes what was begun and ends with 0; a second one ends what is
left at once, and with 1 if anything was.

Exit codes: 0 done, 1 failed, 2 wrong usage or bad input; of check also 3, denied.";

/// Runs the program on the arguments of this process.
pub fn main() -> ExitCode {
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(err) => return usage(&err),
    };
    let command = command_line.command.unwrap_or(Command::Serve(command_line.serve));
    match command.run() {
        Ok(code) => code,
        Err(err) => {
            eprintln!("tollgate: {err:#}");
            ExitCode::from(if err.is::<SettingsError>() { BAD_INPUT } else { FAILED })
        }
    }
}

/// Prints help, the version, or what is wrong with the command line.
fn usage(err: &clap::Error) -> ExitCode {
    // There is nobody left to tell when the terminal is gone.
    let printed = err.print();
    match (err.use_stderr(), printed) {
        (true, _) => ExitCode::from(BAD_INPUT),
        (false, Ok(())) => ExitCode::SUCCESS,
        (false, Err(_)) => ExitCode::from(FAILED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<CommandLine, clap::Error> {
        CommandLine::try_parse_from(line.split(' '))
    }

    #[test]
    fn command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn serving_needs_no_word() {
        assert!(parse("tollgate").expect("nothing is asked for").command.is_none());
        assert!(parse("tollgate --port 7000").expect("flags alone").command.is_none());
        let with_word = parse("tollgate serve --port 7000").expect("the word and a flag");
        assert!(matches!(with_word.command, Some(Command::Serve(_))));
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in [
            "tollgate --prot 1",
            "tollgate --port 65536",
            "tollgate --bind localhost",
            "tollgate --set port",
            "tollgate swerve",
            "tollgate --port 1 serve",
        ] {
            assert!(parse(line).expect_err(line).use_stderr(), "{line}");
        }
    }

    #[test]
    fn help_and_version_are_no_failure() {
        for line in ["tollgate --help", "tollgate --version", "tollgate config --help"] {
            assert!(!parse(line).expect_err(line).use_stderr(), "{line}");
        }
    }
}
