//! A tenant in force: its rules, and which of them apply to a request.

use smallvec::SmallVec;

use crate::time::Timestamp;

use super::facts::Facts;
use super::options::Unmatched;
use super::rule::{Degrade, Rule, RuleQuota, Tier};

/// All that one tenant's document says.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) name: Box<str>,
    /// Moves whenever this tenant changes, and never to a number that it had before.
    pub(crate) revision: u64,
    /// The file or key that it comes from.
    pub(crate) source: Box<str>,
    pub(crate) tier: Option<Tier>,
    /// The most buckets that it may have.
    pub(crate) keys_max: Option<u64>,
    pub(crate) unmatched: Option<Unmatched>,
    pub(crate) degrade: Option<Degrade>,
    rules: Box<[Rule]>,
}

/// A rule that applies to a request, and the values that its bucket is for.
#[derive(Debug)]
pub(crate) struct Match<'t> {
    pub(crate) rule: &'t Rule,
    /// The values of `per`, in the order endpoint, caller, attributes by name.
    pub(crate) values: SmallVec<[&'t [u8]; 2]>,
}

impl Tenant {
    /// Every rule, in the order of the document; the tenant's own `limits` are the first.
    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rules that apply, in the order of the document. Costs about the same however many
    /// rules there are.
    pub(crate) fn matching<'t>(
        &'t self,
        facts: &Facts<'t>,
        now: Timestamp,
    ) -> SmallVec<[Match<'t>; 4]> {
        let _ = (facts, now);
        SmallVec::new()
    }

    /// What the names of all its buckets begin with, and of no other tenant's.
    pub(crate) fn bucket_prefix(&self, out: &mut Vec<u8>) {
        let _ = (self, out);
    }
}

impl Match<'_> {
    /// Writes the name of the bucket of one of the rule's quotas, or of its candidate, behind
    /// what `out` holds.
    pub(crate) fn bucket_name(&self, quota: &RuleQuota, out: &mut Vec<u8>) {
        out.extend_from_slice(&quota.bucket_prefix);
    }
}
