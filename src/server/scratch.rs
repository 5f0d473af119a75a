//! What the connections of one worker share: buffers, what answers, and the doors onward.
//!
//! A connection has them for one turn. Only so does an idle one own no buffer.

use std::sync::Arc;

use super::answer::Answerer;
use super::doors::{Doors, Pulse};
use crate::protocol::Scanner;

/// What one turn reads at most: also the size of a worker's buffer.
pub(super) const READ_BYTES_MAX: usize = 64 << 10;

/// What the connections of one worker share: they run on one thread, one at a time.
pub(super) struct Scratch {
    pub(super) input: Box<[u8]>,
    pub(super) tools: Tools,
    /// Where connections at rest are handed on to; none but for the stand-in.
    pub(super) onward: Doors,
}

/// What answers a turn. A turn that panics ends its connection and leaves these as they are, so
/// each turn begins by clearing what the last one may have left.
pub(super) struct Tools {
    pub(super) scanner: Scanner,
    pub(super) out: Vec<u8>,
    pub(super) answerer: Answerer,
    pub(super) pulse: Arc<Pulse>,
}

impl Scratch {
    pub(super) fn new(
        scanner: Scanner,
        answerer: Answerer,
        pulse: Arc<Pulse>,
        onward: Doors,
    ) -> Self {
        let out = Vec::with_capacity(READ_BYTES_MAX);
        let tools = Tools { scanner, out, answerer, pulse };
        Self { input: vec![0; READ_BYTES_MAX].into(), tools, onward }
    }
}
