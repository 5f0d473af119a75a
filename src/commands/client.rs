//! CLIENT: what connections are called, who they are, and how to end them.

use crate::protocol::Error;

use super::spec::Spec;

pub(super) const SPECS: &[Spec] = &[];

/// A connection's name: printable, without blanks, so that CLIENT LIST stays one line each.
pub(super) fn checked_name(name: &[u8]) -> Result<&[u8], Error> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(name);
    }
    Err(Error::text("Client names cannot contain spaces, newlines or special characters."))
}
