//! `tollgate config`: print the settings in force.

use std::io::{self, Write};

use anyhow::Context;

use super::flags::SettingFlags;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    settings: SettingFlags,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings = arguments.settings.load()?;
    io::stdout().write_all(settings.render().as_bytes()).context("print the settings")
}
