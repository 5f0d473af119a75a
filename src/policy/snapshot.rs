//! All tenants in force at one revision.
//!
//! A reader takes it once for a batch and keeps it that long; a newer one is another snapshot.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::options::Unmatched;
use super::tenant::Tenant;

/// Never changes.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The newest revision of the store that has been looked at for it.
    pub(crate) revision: u64,
    pub(super) tenants: HashMap<Box<[u8]>, Arc<Tenant>, FixedState>,
    pub(super) unmatched: Unmatched,
}

impl Snapshot {
    pub(crate) fn tenant(&self, name: &[u8]) -> Option<&Arc<Tenant>> {
        self.tenants.get(name)
    }

    /// In no particular order.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &Arc<Tenant>> {
        self.tenants.values()
    }

    /// What holds where the tenant is unknown or does not say.
    pub(crate) fn unmatched(&self) -> Unmatched {
        self.unmatched
    }
}
