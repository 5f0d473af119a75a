//! All tenants in force at one revision.
//!
//! A reader takes it once for a batch and keeps it that long; a newer one is another snapshot.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::options::Unmatched;
use super::rule::RuleQuota;
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

    /// Whose bucket has this name.
    pub(crate) fn tenant_of_bucket(&self, name: &[u8]) -> Option<&Arc<Tenant>> {
        self.tenant(super::bucket::tenant_of(name)?.as_bytes())
    }

    /// The quota that holds this bucket; `None` where it is gone.
    pub(crate) fn quota_of_bucket(&self, name: &[u8]) -> Option<&RuleQuota> {
        self.tenant_of_bucket(name)?.owner_of(name).map(|owner| owner.quota)
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
