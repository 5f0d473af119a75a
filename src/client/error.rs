//! Why a call has no answer of the server.
//!
//! Two kinds. An *outage* would not be mended by another request: the server is away, late, full
//! or does not let us in. Decisions do not fail by it, they are made as
//! [`WithoutServer`](super::WithoutServer) says. A *refusal* says that the request itself is
//! wrong; every call fails by it.

use std::sync::Arc;

use crate::protocol::Malformed;

/// Why a call has no answer of the server.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("no answer within the deadline")]
    Late,
    /// Too many calls wait for the connection.
    #[error("too many calls wait to be sent")]
    QueueFull,
    /// The client has been closed, or the runtime it lived in.
    #[error("the client is closed")]
    Closed,
    #[error("not connected: {0}")]
    NotConnected(Arc<str>),
    /// The connection ended between a request and its answer: it may have been carried out.
    #[error("the connection was lost: {0}")]
    Lost(Arc<str>),
    /// The server answers, but not this: it is full, busy, loading, or wants a password.
    #[error("the server cannot answer: {0}")]
    Unable(Arc<str>),
    /// The request is wrong, or this server does not know it.
    #[error("the server refused the request: {0}")]
    Refused(Arc<str>),
    /// The reply is none that the request can have.
    #[error("the server answered something else than a limiter does")]
    Unexpected,
}

/// The codes of errors that are about the request; all others are about the server.
const REFUSALS: [&[u8]; 3] = [b"ERR", b"WRONGTYPE", b"NOPERM"];

impl Error {
    /// What an error reply means.
    pub(super) fn told(text: &[u8]) -> Self {
        let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let text = String::from_utf8_lossy(text).into();
        if REFUSALS.contains(&code) { Self::Refused(text) } else { Self::Unable(text) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "`map_err` hands over what it has")]
    pub(super) fn not_connected(why: impl ToString) -> Self {
        Self::NotConnected(why.to_string().into())
    }

    #[expect(clippy::needless_pass_by_value, reason = "`map_err` hands over what it has")]
    pub(super) fn lost(why: impl ToString) -> Self {
        Self::Lost(why.to_string().into())
    }

    /// Whether a decision is made without the server because of it.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Late
            | Self::QueueFull
            | Self::Closed
            | Self::NotConnected(_)
            | Self::Lost(_)
            | Self::Unable(_) => true,
            Self::Refused(_) | Self::Unexpected => false,
        }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::lost(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_tells_a_refusal_from_an_outage() {
        for (text, is_outage) in [
            ("ERR limit: a whole number from 0 to 2^63-1, not 'x'", false),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", false),
            ("NOPERM this user has no permissions", false),
            ("OOM command not allowed when used memory > 'maxmemory'.", true),
            ("OVERLOADED try again later", true),
            ("BUSY a script runs", true),
            ("NOAUTH Authentication required.", true),
            ("", true),
        ] {
            assert_eq!(Error::told(text.as_bytes()).is_outage(), is_outage, "{text}");
        }
    }
}
