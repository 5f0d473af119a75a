//! A tenant in force: its rules, and which of them apply to a request.
//!
//! Made from a document once and never changed. Two tenants that say the same are equal whatever
//! their revisions, so that a document that was only touched changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::load::Tier;
use crate::time::Timestamp;

use super::bucket;
use super::counts::{RuleCounts, TenantCounts};
use super::facts::Facts;
use super::index::Index;
use super::options::Unmatched;
use super::rule::{Degrade, Mode, Rule, RuleQuota};

/// All that one tenant's document says.
#[derive(Debug)]
pub(crate) struct Tenant {
    /// Moves whenever this tenant changes, and never to a number that any tenant had before.
    pub(crate) revision: u64,
    /// The file or key that it comes from.
    pub(crate) source: Box<str>,
    /// Goes on under the tenant's name, whatever its document says.
    pub(crate) counts: Arc<TenantCounts>,
    pub(super) terms: Terms,
    pub(super) index: Index,
}

/// What the document says, which is all that two tenants can differ in.
#[derive(Debug, PartialEq)]
pub(crate) struct Terms {
    pub(crate) name: Box<str>,
    pub(crate) tier: Option<Tier>,
    /// The most buckets that it may have.
    pub(crate) keys_max: Option<u64>,
    pub(crate) unmatched: Option<Unmatched>,
    pub(crate) degrade: Option<Degrade>,
    /// The tenant's own `limits` first, if it has any, then the rules in their order.
    pub(crate) rules: Box<[Rule]>,
    /// Whether the first rule is the tenant's own `limits`, which always apply.
    pub(super) has_limits: bool,
}

/// A rule that applies to a request, and the values that its bucket is for.
#[derive(Debug)]
pub(crate) struct Match<'t> {
    pub(crate) rule: &'t Rule,
    /// The values of `per`, in the order endpoint, caller, attributes by name.
    pub(crate) values: SmallVec<[&'t [u8]; 2]>,
}

/// Whose bucket a name is.
#[derive(Debug)]
pub(crate) struct BucketOwner<'t, 'n> {
    pub(crate) rule: &'t Rule,
    pub(crate) quota: &'t RuleQuota,
    pub(crate) values: Vec<&'n [u8]>,
}

/// A tenant reads as what its document says.
impl std::ops::Deref for Tenant {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl Terms {
    /// Rules go on counting where those of the same name left off.
    pub(super) fn with_counts_of(mut self, before: &Self) -> Self {
        let known: HashMap<&str, &RuleCounts> =
            before.rules.iter().map(|rule| (&*rule.name, &rule.counts)).collect();
        for rule in &mut self.rules {
            if let Some(counts) = known.get(&*rule.name) {
                rule.counts = RuleCounts::clone(counts);
            }
        }
        self
    }
}

impl Tenant {
    /// The rules that apply, in the order of the document. Costs about the same however many
    /// rules there are.
    pub(crate) fn matching<'t, 'f: 't>(
        &'t self,
        facts: &Facts<'f>,
        now: Timestamp,
    ) -> SmallVec<[Match<'t>; 4]> {
        let mut matches = SmallVec::new();
        if self.has_limits && self.rules[0].mode != Mode::Off {
            matches.push(Match { rule: &self.rules[0], values: SmallVec::new() });
        }
        for at in self.index.find(&self.rules, facts, now) {
            let rule = &self.rules[at as usize];
            // Each of them is part of the class, so the request has it.
            let values = rule.per.iter().filter_map(|dimension| dimension.of(facts));
            let values = values.map(|value| -> &'t [u8] { value }).collect();
            matches.push(Match { rule, values });
        }
        matches
    }

    /// Writes what the names of all its buckets begin with, and those of no other tenant.
    pub(crate) fn bucket_prefix(&self, out: &mut Vec<u8>) {
        bucket::put_tenant(&self.name, out);
    }

    /// Whose bucket has this name; `None` where the rule or quota is gone. Looks at every rule.
    pub(crate) fn owner_of<'n>(&self, bucket_name: &'n [u8]) -> Option<BucketOwner<'_, 'n>> {
        self.rules.iter().find_map(|rule| {
            rule.quotas.iter().chain(rule.candidate.as_deref()).find_map(|quota| {
                let rest = bucket_name.strip_prefix(&*quota.bucket_prefix)?;
                let values = bucket::values(rest)?;
                (values.len() == rule.per.len()).then_some(BucketOwner { rule, quota, values })
            })
        })
    }
}

impl Match<'_> {
    /// Writes the name of the bucket of one of the rule's quotas, or of its candidate, part by
    /// part.
    pub(crate) fn bucket_name(&self, quota: &RuleQuota, mut put: impl FnMut(&[u8])) {
        put(&quota.bucket_prefix);
        for value in &self.values {
            bucket::put_value(value, &mut put);
        }
    }
}
