//! The RESP listener.

mod options;

pub(crate) use options::{HTTP_PORT_OFFSET, Options};
