//! `tollgate policy`: look policy documents over, compare and write them, and say why a request
//! is decided as it is.
//!
//! Documents are read by the server's own reader, so what lint passes the server takes. What is
//! wrong with a document is bad input (exit code 2), and nothing is written then. Policies are
//! written by the running server to where they come from.

mod apply;
mod documents;
mod explain;
mod incident;
mod lint;
mod running;

pub(super) use documents::say;
pub(super) use running::tenants;

use std::process::ExitCode;

use super::target::TargetArgs;

/// Look policy documents over, compare and write them.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Policy {
    /// Look documents over: what is refused, and what is doubtful
    Lint(lint::Lint),
    /// Tell what differs between two sets of documents, or between a server and one
    Diff(running::Diff),
    /// Write documents to a server's policy store; tenants that they do not name stay
    Apply(apply::Apply),
    /// Print the document that is in force of a tenant
    Get {
        tenant: String,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show every quota that applies to a request, and which one binds
    Explain(explain::Explain),
    /// Change a limit for a while: a rule that ends by itself
    Override(incident::Override),
}

impl Policy {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Lint(lint) => lint.run(),
            Self::Diff(diff) => diff.run(),
            Self::Apply(apply) => apply.run(),
            Self::Get { tenant, target } => running::get(&tenant, &target.into_target()),
            Self::Explain(explain) => explain.run(),
            Self::Override(wanted) => wanted.run(),
        }
    }
}
