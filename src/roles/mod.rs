//! Who is made of what: puts the rooms together to the program that was asked for.

use crate::config::Settings;

/// Serves until the process is told to stop.
pub(crate) fn serve(settings: &Settings) -> anyhow::Result<()> {
    anyhow::bail!("serve on port {}: the server is not part of this build", settings.server.port)
}
