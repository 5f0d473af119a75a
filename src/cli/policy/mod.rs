//! `tollgate policy`: look policy documents over, compare and write them, and say why a request
//! is decided as it is.
//!
//! Documents are read by the server's own reader, so what lint passes the server takes. What is
//! wrong with a document is bad input (exit code 2), and nothing is written then. Policies are
//! written by the running server to where they come from.

mod documents;
mod explain;
mod running;

pub(super) use documents::say;
pub(super) use running::tenants;

use std::path::PathBuf;
use std::process::ExitCode;

use super::target::TargetArgs;
use super::window;
use crate::time::Duration;

/// Look policy documents over, compare and write them.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Policy {
    /// Look documents over: what is refused, and what is doubtful
    Lint {
        /// Files, or folders of them
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Fail where anything is doubtful, too
        #[arg(long)]
        strict: bool,
    },
    /// Tell what differs between two sets of documents, or between a server and one
    Diff {
        /// A file or folder; with two, the first is compared instead of the server
        #[arg(required = true, num_args = 1..=2, value_name = "PATH")]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Write documents to a server's policy store; tenants that they do not name stay
    Apply {
        /// A file or folder
        path: PathBuf,
        /// Tell what would change, and write nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Print the document that is in force of a tenant
    Get {
        tenant: String,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show every quota that applies to a request, and which one binds
    Explain(explain::Explain),
    /// Change a limit for a while: a rule that ends by itself
    Override(Override),
}

#[derive(Debug, clap::Args)]
pub(super) struct Override {
    tenant: String,
    /// As rules write it: exact, or `prefix*`
    endpoint: String,
    /// A number, or `unlimited`
    limit: String,
    /// 500ms, 30s, 5m, 1h, 1d, or day, week, month, year
    window: String,
    /// How long it holds, such as 30m
    #[arg(long = "for", value_name = "SPAN", value_parser = window)]
    span: Duration,
    /// Change this document instead of a server's
    #[arg(long, conflicts_with_all = ["url", "host", "port", "password"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

impl Policy {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Lint { paths, strict } => documents::lint(&paths, strict),
            Self::Diff { paths, target } => running::diff(&paths, &target.into_target()),
            Self::Apply { path, dry_run, target } => {
                running::apply(&path, &target.into_target(), dry_run)
            }
            Self::Get { tenant, target } => running::get(&tenant, &target.into_target()),
            Self::Explain(explain) => explain.run(),
            Self::Override(wanted) => running::override_limit(wanted),
        }
    }
}
