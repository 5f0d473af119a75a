//! `tollgate serve`: serve until told to stop.

use crate::roles::{self, Listener};

use super::flags::SettingFlags;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    settings: SettingFlags,
}

impl Arguments {
    pub(super) fn settings(&self) -> &SettingFlags {
        &self.settings
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings = arguments.settings.load()?;
    roles::serve(&settings, arguments.settings.file(), Listener::Commands)
}
