//! The rows of tenants and their rules.
//!
//! A label may have few values, and tenants come from documents: those with the most decisions
//! are told by name, all others together as `other`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Metric, Reading, Unit, counter, gauge};
use crate::policy::{Counted, Tenant};

/// Tenants that are told by name.
const TENANTS_MAX: usize = 100;

/// Rules of them that are told by name.
const RULES_MAX: usize = 1_000;

/// What stands for all that are not told by name.
const OTHER: &str = "other";

pub(super) const METRICS: &[Metric] = &[
    counter(
        "tollgate_tenant_checks_total",
        Unit::None,
        "Decisions by a tenant's policy, and reservations that came to more than their estimate.",
        |from, to| {
            for (tenant, counts) in by_tenant(from) {
                for (outcome, count) in Counted::ALL.iter().zip(counts) {
                    to.sample(&[("tenant", &tenant), ("outcome", outcome.name())], count);
                }
            }
        },
    ),
    counter(
        "tollgate_rule_denials_total",
        Unit::None,
        "What a rule denied, or would have in shadow or by its candidate.",
        |from, to| {
            for ((tenant, rule), counts) in by_rule(from) {
                for (mode, count) in ["enforce", "shadow", "candidate"].into_iter().zip(counts) {
                    to.sample(&[("tenant", &tenant), ("rule", &rule), ("mode", mode)], count);
                }
            }
        },
    ),
    counter(
        "tollgate_unknown_tenant_checks_total",
        Unit::None,
        "Checks of tenants that no policy knows.",
        |from, to| to.sample(&[], from.service.unknown_tenants()),
    ),
    gauge(
        "tollgate_tenant_keys",
        Unit::None,
        "Buckets, reservations and leases of a tenant.",
        |from, to| {
            for (tenant, keys) in keys_by_tenant(from) {
                to.sample(&[("tenant", &tenant)], keys);
            }
        },
    ),
];

/// Those with the most decisions first; the same among equals.
fn ranked(from: &Reading<'_>) -> Vec<Arc<Tenant>> {
    let mut tenants: Vec<_> = from.service.policies().snapshot().tenants().cloned().collect();
    tenants.sort_by_cached_key(|tenant| {
        let decisions = tenant.counts.of(Counted::Allowed) + tenant.counts.of(Counted::Denied);
        (std::cmp::Reverse(decisions), tenant.name.clone())
    });
    tenants
}

fn by_tenant(from: &Reading<'_>) -> BTreeMap<String, [u64; Counted::ALL.len()]> {
    let mut sums: BTreeMap<String, [u64; Counted::ALL.len()]> = BTreeMap::new();
    for (rank, tenant) in ranked(from).iter().enumerate() {
        let name = if rank < TENANTS_MAX { &*tenant.name } else { OTHER };
        let sum = sums.entry(name.to_owned()).or_default();
        for (sum, what) in sum.iter_mut().zip(Counted::ALL) {
            *sum += tenant.counts.of(what);
        }
    }
    sums
}

fn by_rule(from: &Reading<'_>) -> BTreeMap<(String, String), [u64; 3]> {
    let mut sums: BTreeMap<(String, String), [u64; 3]> = BTreeMap::new();
    for (rank, tenant) in ranked(from).iter().enumerate() {
        for rule in &tenant.rules {
            let counts = [&rule.counts.denied, &rule.counts.shadow_denied]
                .into_iter()
                .chain([&rule.counts.candidate_denied])
                .map(|count| count.load(Ordering::Relaxed));
            let is_named = rank < TENANTS_MAX && sums.len() < RULES_MAX;
            let (tenant, rule) =
                if is_named { (&*tenant.name, &*rule.name) } else { (OTHER, OTHER) };
            let sum = sums.entry((tenant.to_owned(), rule.to_owned())).or_default();
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    sums
}

fn keys_by_tenant(from: &Reading<'_>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (rank, tenant) in ranked(from).iter().enumerate() {
        let name = if rank < TENANTS_MAX { &*tenant.name } else { OTHER };
        let mut prefix = Vec::new();
        tenant.bucket_prefix(&mut prefix);
        let usage = from.service.engine().tenant_usage(&prefix);
        *sums.entry(name.to_owned()).or_default() += usage.keys;
    }
    sums
}
