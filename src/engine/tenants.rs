//! What each tenant takes of the space of buckets: keys, counted to the one, and bytes.
//!
//! A tenant's buckets lie in all shards, so its sums are shared. They are written when a bucket
//! comes, goes or takes another amount of memory, never by a request that finds its bucket and
//! fits it; and read before a bucket comes, so that no tenant has more than its `keys_max`, also
//! not for a moment.
//!
//! Locks: taken while a shard is locked, and nothing is locked under them. A tenant without a key
//! is not kept.

use dashmap::DashMap;

use super::key::KeyHasher;

/// What a tenant takes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Usage {
    /// Buckets, reservations and leases, those that are over and not yet swept included.
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
}

/// A new bucket has no place.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Full {
    #[error("the tenant has as many buckets as it may")]
    Tenant,
    #[error("the memory bound is reached")]
    Memory,
}

impl From<super::OutOfMemory> for Full {
    fn from(_: super::OutOfMemory) -> Self {
        Self::Memory
    }
}

#[derive(Debug)]
pub(super) struct Tenants(DashMap<Box<[u8]>, Usage, KeyHasher>);

/// The part of a bucket's name that is its tenant's: the length, seven bits a byte and the lowest
/// first, and as many bytes. A name that is cut short belongs to nobody in particular.
pub(super) fn tenant_of(name: &[u8]) -> &[u8] {
    /// More would be no length.
    const LENGTH_BYTES_MAX: usize = 9;
    let mut length = 0;
    for (at, byte) in name.iter().enumerate().take(LENGTH_BYTES_MAX) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let end = (at + 1).checked_add(length);
            return end.and_then(|end| name.get(..end)).unwrap_or_default();
        }
    }
    &[]
}

impl Tenants {
    pub(super) fn new(hasher: KeyHasher) -> Self {
        Self(DashMap::with_hasher(hasher))
    }

    pub(super) fn usage(&self, tenant: &[u8]) -> Usage {
        self.0.get(tenant).map(|usage| *usage).unwrap_or_default()
    }

    /// Counts keys that will be stored at once, if the tenant may have them.
    pub(super) fn admit(&self, tenant: &[u8], new: u64, keys_max: Option<u64>) -> Result<(), Full> {
        let keys_max = keys_max.unwrap_or(u64::MAX);
        let fits = |keys: u64| keys.saturating_add(new) <= keys_max;
        if let Some(mut usage) = self.0.get_mut(tenant) {
            if !fits(usage.keys) {
                return Err(Full::Tenant);
            }
            usage.keys += new;
            return Ok(());
        }
        if !fits(0) {
            return Err(Full::Tenant);
        }
        let mut usage = self.0.entry(tenant.into()).or_default();
        // Somebody else may have been as quick.
        if !fits(usage.keys) {
            return Err(Full::Tenant);
        }
        usage.keys += new;
        Ok(())
    }

    /// A key has come, its number admitted already or not.
    pub(super) fn stored(&self, tenant: &[u8], keys: u64, bytes: usize) {
        if let Some(mut usage) = self.0.get_mut(tenant) {
            usage.keys += keys;
            usage.bytes += bytes as u64;
            return;
        }
        let mut usage = self.0.entry(tenant.into()).or_default();
        usage.keys += keys;
        usage.bytes += bytes as u64;
    }

    pub(super) fn removed(&self, tenant: &[u8], bytes: usize) {
        let Some(mut usage) = self.0.get_mut(tenant) else { return };
        usage.keys = usage.keys.saturating_sub(1);
        usage.bytes = usage.bytes.saturating_sub(bytes as u64);
        let is_gone = usage.keys == 0;
        drop(usage);
        if is_gone {
            self.0.remove_if(tenant, |_, usage| usage.keys == 0);
        }
    }

    pub(super) fn recharged(&self, tenant: &[u8], before_bytes: usize, after_bytes: usize) {
        if let Some(mut usage) = self.0.get_mut(tenant) {
            let bytes = usage.bytes + after_bytes as u64;
            usage.bytes = bytes.saturating_sub(before_bytes as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_is_the_first_part_of_a_name_with_its_length() {
        assert_eq!(tenant_of(b"\x03abcrest"), b"\x03abc");
        assert_eq!(tenant_of(b"\x00rest"), b"\x00");
        let long = [&[0x80, 0x01][..], &[b'n'; 130]].concat();
        assert_eq!(tenant_of(&long), &long[..130]);
        for cut in [&b"\x09abc"[..], b"\x80", &[0xff; 40], &[0xff; 8], b""] {
            assert_eq!(tenant_of(cut), b"");
        }
    }

    #[test]
    fn tenant_is_kept_while_it_has_keys_and_never_beyond_its_bound() {
        let tenants = Tenants::new(KeyHasher::new(7));
        assert_eq!(tenants.admit(b"t", 3, Some(2)), Err(Full::Tenant));
        assert_eq!(tenants.admit(b"t", 2, Some(2)), Ok(()));
        assert_eq!(tenants.admit(b"t", 1, Some(2)), Err(Full::Tenant));
        assert_eq!(tenants.admit(b"u", 1, Some(1)), Ok(()));
        tenants.stored(b"t", 0, 100);
        tenants.recharged(b"t", 40, 60);
        assert_eq!(tenants.usage(b"t"), Usage { keys: 2, bytes: 120 });
        tenants.removed(b"t", 60);
        tenants.removed(b"t", 60);
        assert_eq!(tenants.usage(b"t"), Usage::default());
        assert_eq!(tenants.0.len(), 1);
    }
}
