//! The two ends of a large log, which stand in its header: its oldest and its newest entries.
//!
//! A request asks about the ends of a log and changes nothing but these. A few entries of each
//! end are kept beside the sums, so that most requests read and write the header alone; one in
//! [`STAGED`] reaches for a chunk, which may be several misses of the cache away.
//!
//! Staged are only entries of cost one, as gaps between neighbours, of less than 32 bits. The
//! oldest are counted from the first moment on, the newest from the last one back, and the log
//! needs both moments anyway. Units: microseconds.

use super::chunk::{Chunk, Entry};

/// How many entries an end holds.
const STAGED: usize = 16;

/// Between each entry and the one after it.
type Gaps = [u32; STAGED - 1];

/// The first entries of a log.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Oldest {
    gaps: Gaps,
    /// Which gap is the first.
    at: u16,
    len: u16,
    /// The moment of the first entry of the log, also where nothing is staged. It stands beside
    /// what every request reads.
    first_us: u64,
}

/// The last entries of a log.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Newest {
    /// The moment of the last entry of the log, also where nothing is staged.
    last_us: u64,
    len: u32,
    gaps: Gaps,
}

impl Oldest {
    /// Nothing is staged; the first entry stands in a chunk.
    pub(super) const fn unstaged(first_us: u64) -> Self {
        Self { first_us, at: 0, len: 0, gaps: [0; STAGED - 1] }
    }

    /// Takes as many entries from the chunk, which is not empty, as can be staged; none are yet.
    pub(super) fn take_from(&mut self, chunk: &mut Chunk) {
        (self.first_us, self.at) = (chunk.first_us(), 0);
        let mut last_us = self.first_us;
        while self.len() < STAGED && chunk.first_cost() == Some(1) {
            let at_us = chunk.first_us();
            if self.len > 0 {
                let Ok(gap) = u32::try_from(at_us - last_us) else { break };
                self.gaps[self.len() - 1] = gap;
            }
            self.len += 1;
            last_us = at_us;
            chunk.pop();
        }
    }

    pub(super) const fn first_us(&self) -> u64 {
        self.first_us
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn moments(&self) -> impl Iterator<Item = u64> {
        let gaps = self.gaps[self.at.into()..].iter();
        moments(self.first_us, gaps).take(self.len.into())
    }

    /// Forgets the first entry; there is one.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.len -= 1;
        if self.len > 0 {
            self.first_us += u64::from(self.gaps[usize::from(self.at)]);
            self.at += 1;
        }
    }

    /// Forgets the entries up to and including `horizon_us`; how many.
    #[inline(always)]
    pub(super) fn expire(&mut self, horizon_us: u64) -> usize {
        let before = self.len();
        while self.len > 0 && self.first_us <= horizon_us {
            self.pop();
        }
        before - self.len()
    }
}

impl Newest {
    /// Nothing is staged; the last entry stands before this end.
    pub(super) const fn unstaged(last_us: u64) -> Self {
        Self { last_us, len: 0, gaps: [0; STAGED - 1] }
    }

    /// Goes on after a last entry that stands before this end, as what was staged now does.
    pub(super) const fn restart_after(&mut self, last_us: u64) {
        (self.last_us, self.len) = (last_us, 0);
    }

    /// Goes on with one entry, of cost one; what was staged now stands before this end.
    pub(super) const fn restart_with(&mut self, at_us: u64) {
        (self.last_us, self.len) = (at_us, 1);
    }

    pub(super) const fn last_us(&self) -> u64 {
        self.last_us
    }

    /// Whether the next entry does not fit beside these.
    pub(super) const fn is_full(&self) -> bool {
        self.len as usize == STAGED
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Reads where the next entry would stand.
    pub(super) fn prefetch(&self) -> u64 {
        self.gaps.get(self.len().saturating_sub(1)).copied().map_or(0, u64::from)
    }

    pub(super) fn moments(&self) -> impl Iterator<Item = u64> {
        let gaps = &self.gaps[..self.len().saturating_sub(1)];
        let span_us: u64 = gaps.iter().map(|gap| u64::from(*gap)).sum();
        moments(self.last_us - span_us, gaps.iter()).take(self.len())
    }

    /// Whether an entry of cost one could be staged: there is room, and it comes after the last
    /// entry, but not too long after.
    #[inline(always)]
    pub(super) fn push(&mut self, at_us: u64) -> bool {
        let len = self.len();
        match at_us.checked_sub(self.last_us).map(u32::try_from) {
            Some(Ok(gap)) if gap > 0 && len < STAGED => {
                // The gap of the first entry is of no use; the second overwrites it.
                self.gaps[len.saturating_sub(1)] = gap;
                self.len += 1;
                self.last_us = at_us;
                true
            }
            Some(Ok(_) | Err(_)) | None => false,
        }
    }

    /// What is staged here, as the oldest entries of a log that holds no others.
    pub(super) fn take_as_oldest(&mut self) -> Oldest {
        let first_us = self.moments().next().unwrap_or(self.last_us);
        let oldest = Oldest { first_us, at: 0, len: self.len as u16, gaps: self.gaps };
        self.len = 0;
        oldest
    }
}

/// A staged entry in full.
pub(super) const fn entry(at_us: u64) -> Entry {
    Entry { at_us, cost: 1 }
}

fn moments<'gaps>(
    first_us: u64,
    gaps: impl Iterator<Item = &'gaps u32>,
) -> impl Iterator<Item = u64> {
    let later = gaps.scan(first_us, |at_us, gap| {
        *at_us += u64::from(*gap);
        Some(*at_us)
    });
    std::iter::once(first_us).chain(later)
}
