//! What the room is told by the settings.
//!
//! Not a section of its own: the room that watches documents has the settings, and hands these on.

use serde::{Deserialize, Serialize};

use crate::size::Bytes;

/// What holds for every document and every tenant that does not say otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The answer to a request that no rule matches.
    pub(crate) unmatched: Unmatched,
    /// Bytes of one document; a larger one is refused unread.
    pub(crate) document_bytes_max: Bytes,
}

/// The answer to a request of an unknown tenant, or that no rule matches.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unmatched {
    #[default]
    Allow,
    Deny,
}
