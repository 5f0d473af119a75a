//! What a script writes to the log, kept until no shard is locked.
//!
//! Writing a log may wait for its reader, and a script has shards locked that others wait for. So
//! its lines are kept until its request is carried out, a transaction around it included. What a
//! run said that was taken back is not told: the script says it again.

use super::host::Host;
use crate::lua::LogLevel;

/// What is kept of one request at most: lines beyond it are counted alone.
const LINES_MAX: usize = 64;
const LINE_BYTES_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct ScriptLog {
    lines: Vec<(LogLevel, Box<[u8]>)>,
    lost: u64,
}

impl ScriptLog {
    pub(super) fn add(&mut self, level: LogLevel, text: &[u8]) {
        if self.lines.len() < LINES_MAX {
            self.lines.push((level, text[..text.len().min(LINE_BYTES_MAX)].into()));
        } else {
            self.lost += 1;
        }
    }

    /// Nothing of it was said: the script runs again.
    pub(super) fn take_back(&mut self) {
        *self = Self::default();
    }

    pub(super) fn tell(self, host: &dyn Host) {
        for (level, text) in &self.lines {
            host.log_of_script(*level, text);
        }
        if self.lost > 0 {
            let text = format!("and {} lines more, which are left out", self.lost);
            host.log_of_script(LogLevel::Warning, text.as_bytes());
        }
    }
}
