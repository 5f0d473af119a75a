//! The server with its load manager off and on, offered ten times what it can serve.
//!
//! `cargo bench --bench overload_server` starts one server after another on a free loopback port,
//! finds how many scripts of about a millisecond it runs in a second, offers ten times as many
//! with mixed tiers, and writes what became of each tier. Then the same with cheap checks, where
//! to refuse costs as much as to answer. Nothing here asserts: read the table.

mod load;
mod server;
mod table;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::load::{Load, Outcome};
use crate::server::Server;

const TOLLGATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/release/tollgate");
const RESULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/overload_server.md");

/// Overload a Tollgate with its load manager off and on.
#[derive(Debug, Parser)]
struct Args {
    /// The Tollgate to measure
    #[arg(long, default_value = TOLLGATE)]
    tollgate: PathBuf,
    /// Where the table goes
    #[arg(long, default_value = RESULT)]
    out: PathBuf,
    /// Seconds that each overload lasts; the first five are left out
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(6..=120))]
    seconds: u64,
    /// How many times as much is offered as can be served
    #[arg(long, default_value_t = 10.0)]
    times: f64,
    /// Said by cargo bench; without it nothing runs, so that cargo test stays short
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !args.bench {
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn run(args: &Args) -> anyhow::Result<()> {
    let mut page = String::from(
        "# A server that is asked for too much\n\nMade by `cargo bench --bench overload_server`. \
         Good is a reply within a second that is no error; latencies are of good replies, from \
         the moment at which they were to be sent.\n",
    );
    let (script, capacity) = Server::start(&args.tollgate, Manager::Off)?.calibrate()?;
    eprintln!("{capacity:.0} scripts a second fit");
    let scripts_load = Load::of_scripts(script, capacity * args.times, args.seconds);
    let checks_load = Load::of_checks(args.seconds.min(10));
    let (mut scripts, mut checks) = (Vec::new(), Vec::new());
    for manager in [Manager::Off, Manager::On] {
        eprintln!("load manager {}", manager.name());
        let server = Server::start(&args.tollgate, manager)?;
        scripts.push((manager, scripts_load.run(&server)?));
        let server = Server::start(&args.tollgate, manager)?;
        checks.push((manager, checks_load.run(&server)?));
    }
    write!(
        page,
        "\n## Scripts of about a millisecond, offered {:.0} times what fits\n\n{capacity:.0} \
         scripts a second fit.\n\n",
        args.times
    )?;
    table::write_tiers(&mut page, scripts.iter().map(|(manager, outcome)| (*manager, outcome)));
    let both: Vec<&Outcome> = scripts.iter().map(|(_, outcome)| outcome).collect();
    table::write_sums(&mut page, &both);
    page.push_str("\n## Cheap checks, as many as the generator can send\n\n");
    table::write_tiers(&mut page, checks.iter().map(|(manager, outcome)| (*manager, outcome)));
    let both: Vec<&Outcome> = checks.iter().map(|(_, outcome)| outcome).collect();
    table::write_sums(&mut page, &both);
    println!("{page}");
    std::fs::write(&args.out, page).with_context(|| args.out.display().to_string())
}

/// Whether the server looks after itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manager {
    Off,
    On,
}

impl Manager {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}
