//! Tasks alive: how many the runtime has, and how many may be.
//!
//! The runtime is asked now and then; between two looks each request that is admitted counts as
//! one more, and none as ended. So the bound holds at every moment, not only when it is looked.

use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub struct Tasks {
    most: u64,
    alive: AtomicU64,
}

impl Tasks {
    /// At most so many tasks; `u64::MAX` bounds nothing.
    pub const fn new(most: u64) -> Self {
        Self { most, alive: AtomicU64::new(0) }
    }

    /// So many are alive, as the runtime says.
    pub fn note_alive(&self, alive: u64) {
        self.alive.store(alive, Ordering::Relaxed);
    }

    /// Whether one more may be.
    pub fn begin(&self) -> bool {
        if self.most == u64::MAX {
            return true;
        }
        let fits = |alive: u64| (alive < self.most).then(|| alive + 1);
        self.alive.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_holds_between_two_looks() {
        let tasks = Tasks::new(10);
        tasks.note_alive(8);
        assert_eq!([(); 4].map(|()| tasks.begin()), [true, true, false, false]);
        tasks.note_alive(9);
        assert_eq!([(); 2].map(|()| tasks.begin()), [true, false]);
    }
}
