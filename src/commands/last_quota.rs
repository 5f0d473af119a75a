//! The quota that RL.LIMIT was last asked with, so that the same words need not be read again.
//!
//! A pipeline asks of many keys by one quota. Comparing two short words costs much less than
//! reading them, judging what they say and making a quota of it. Each worker has one of these.
//!
//! Invariant: the quota is what its two words say, without further words.

use std::cell::RefCell;

use crate::limit::Quota;

/// Longer words are read each time: any that is of use is shorter.
const WORD_BYTES_MAX: usize = 15;

#[derive(Debug, Default)]
pub(super) struct LastQuota(RefCell<Option<Known>>);

#[derive(Debug)]
struct Known {
    limit: Word,
    window: Word,
    quota: Quota,
}

#[derive(Debug)]
struct Word {
    len: u8,
    bytes: [u8; WORD_BYTES_MAX],
}

impl Word {
    /// Nothing of a word that is too long.
    fn new(word: &[u8]) -> Option<Self> {
        let mut bytes = [0; WORD_BYTES_MAX];
        bytes.get_mut(..word.len())?.copy_from_slice(word);
        Some(Self { len: word.len() as u8, bytes })
    }

    fn is(&self, word: &[u8]) -> bool {
        self.bytes[..usize::from(self.len)] == *word
    }
}

impl LastQuota {
    /// The quota of these words, if they are those of the last one and `log_entries_max` is, too.
    pub(super) fn of(&self, [limit, window]: [&[u8]; 2], log_entries_max: u32) -> Option<Quota> {
        let known = self.0.borrow();
        let known = known.as_ref()?;
        let is_same = known.limit.is(limit)
            && known.window.is(window)
            && known.quota.log_entries_max() == log_entries_max;
        is_same.then_some(known.quota)
    }

    pub(super) fn keep(&self, [limit, window]: [&[u8]; 2], quota: Quota) {
        if let (Some(limit), Some(window)) = (Word::new(limit), Word::new(window)) {
            *self.0.borrow_mut() = Some(Known { limit, window, quota });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Algorithm;
    use crate::time::Duration;

    fn quota(limit: u64) -> Quota {
        Quota::new(Algorithm::SlidingLog, limit, Duration::from_secs(1)).expect("a valid quota")
    }

    #[test]
    fn quota_is_known_by_exactly_its_words_and_bound() {
        let last = LastQuota::default();
        let entries_max = quota(5).log_entries_max();
        assert_eq!(last.of([b"5", b"1s"], entries_max), None);
        last.keep([b"5", b"1s"], quota(5));
        assert_eq!(last.of([b"5", b"1s"], entries_max), Some(quota(5)));
        for words in [[b"5".as_slice(), b"1"], [b"5", b"1s0"], [b"51", b"s"], [b"", b"1s"]] {
            assert_eq!(last.of(words, entries_max), None, "{words:?}");
        }
        assert_eq!(last.of([b"5", b"1s"], entries_max + 1), None);
    }

    #[test]
    fn longer_words_leave_the_last_quota_known() {
        let last = LastQuota::default();
        last.keep([b"5", b"1s"], quota(5));
        last.keep([b"1000000000000000", b"1s"], quota(1_000_000_000_000_000));
        assert_eq!(last.of([b"5", b"1s"], quota(5).log_entries_max()), Some(quota(5)));
    }
}
