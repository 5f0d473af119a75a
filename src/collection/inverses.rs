//! What a collection notes of its changes, so that they can be taken back.
//!
//! Nothing is noted until it begins. Inverses come back the latest first. What they own is summed
//! up as they are noted, so that who keeps them can bound it: in bytes, their own size included.

#[derive(Clone, Debug)]
pub(super) struct Inverses<T> {
    /// Oldest first.
    noted: Option<Vec<T>>,
    bytes: usize,
}

impl<T> Default for Inverses<T> {
    fn default() -> Self {
        Self { noted: None, bytes: 0 }
    }
}

impl<T> Inverses<T> {
    /// From here on changes are noted. False where that is so already.
    pub(super) fn begin(&mut self) -> bool {
        let begins = self.noted.is_none();
        self.noted.get_or_insert_default();
        begins
    }

    pub(super) fn are_noted(&self) -> bool {
        self.noted.is_some()
    }

    /// Notes an inverse and the bytes it owns, made only where changes are noted.
    pub(super) fn note(&mut self, inverse: impl FnOnce() -> (T, usize)) {
        if let Some(noted) = &mut self.noted {
            let (inverse, owned_bytes) = inverse();
            noted.push(inverse);
            self.bytes += owned_bytes + size_of::<T>();
        }
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Ends the noting. Returns the inverses in the order in which they take changes back.
    pub(super) fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(self).noted.unwrap_or_default().into_iter().rev()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
