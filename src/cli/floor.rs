//! `tollgate floor`: a listener that answers `+PONG` to everything, for measurements.
//!
//! What a request costs here is what the listener alone costs; no command can cost less.

use super::flags::SettingFlags;
use crate::roles::{self, Listener};

/// Answer +PONG to everything: the floor that measurements compare with.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    settings: SettingFlags,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings = arguments.settings.load()?;
    roles::serve(&settings, arguments.settings.file(), Listener::Pong)
}
