//! All tenants in force at one revision.

use std::collections::HashMap;
use std::sync::Arc;

use super::options::Unmatched;
use super::tenant::Tenant;

/// Never changes; a reader keeps it for as long as it answers a batch.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The newest revision of the store that is part of it.
    pub(crate) revision: u64,
    tenants: HashMap<Box<[u8]>, Arc<Tenant>>,
    unmatched: Unmatched,
}

impl Snapshot {
    pub(crate) fn tenant(&self, name: &[u8]) -> Option<&Arc<Tenant>> {
        self.tenants.get(name)
    }

    pub(crate) fn tenants(&self) -> impl Iterator<Item = &Arc<Tenant>> {
        self.tenants.values()
    }

    /// What holds where the tenant is unknown or does not say.
    pub(crate) fn unmatched(&self) -> Unmatched {
        self.unmatched
    }
}
