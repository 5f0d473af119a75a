//! `tollgate simulate`: the real controllers in simulated time, by a seed.
//!
//! The same seed gives the same figures on any machine, so a figure can be argued about.

mod load;
mod plot;
mod report;

use std::process::ExitCode;

/// Run the real controllers in simulated time: the same seed, the same figures.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Simulate {
    Load(load::Load),
}

impl Simulate {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Load(arguments) => arguments.run(),
        }
    }
}
