//! `tollgate inspect`: what a snapshot or journal holds, and where it is broken.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use crate::store::{self, Inspection};

/// Bytes between two steps of the bar.
const STEP_BYTES: u64 = 8 << 20;

/// Show what a snapshot or journal of a data folder holds, and where it is broken
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Exit codes: 0 it is whole, 1 it is damaged or cannot be read, \
    2 it is no file of Tollgate, or one of a newer version.")]
pub(super) struct Inspect {
    /// The file, such as data/snapshot-7.tollgate; it is only read
    file: PathBuf,
}

impl Inspect {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        // Drawn on a terminal only.
        let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {eta}")?;
        let bar = ProgressBar::new(0).with_style(style);
        let mut told = 0;
        let found = store::inspect(&self.file, |at, of| {
            if at >= told + STEP_BYTES {
                told = at;
                bar.set_length(of);
                bar.set_position(at);
            }
        })?;
        bar.finish_and_clear();
        io::stdout().write_all(render(&found).as_bytes()).context("print what was found")?;
        Ok(if found.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(super::FAILED) })
    }
}

fn render(found: &Inspection) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        writeln!(out, "{name:<18} {value}").expect("a String takes all that is written");
    };
    line("kind", &found.kind.unwrap_or("unknown: it ends before it says"));
    line("bytes", &found.bytes);
    line("frames", &found.frames);
    if !found.version.is_empty() {
        line("written by", &format_args!("tollgate {}", found.version));
    }
    if let Some(from) = found.from {
        line("begun at", &format_args!("{} ms since the epoch", from.as_millis()));
        line("written for", &found.span());
    }
    line("ended in order", &if found.is_ended { "yes" } else { "no" });
    for ((place, kind), count) in &found.stored {
        line(&format!("{place} {kind}"), count);
    }
    for (name, count) in [
        ("removed keys", found.removed),
        ("flushes", found.flushed),
        ("scripts", found.scripts),
        ("library dumps", found.library_dumps),
        ("unreadable records", found.unreadable),
    ] {
        line(name, &count);
    }
    for (at, bytes, is_tail) in &found.damage {
        let what = if *is_tail { "torn end" } else { "damage" };
        line(what, &format_args!("{bytes} bytes from byte {at}"));
    }
    line("whole", &if found.is_whole() { "yes" } else { "no" });
    out
}
