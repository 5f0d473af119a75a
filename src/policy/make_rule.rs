//! Makes a rule of what its document says, on the tenant's defaults.
//!
//! A quota belongs to its rule's identity: see `bucket`.

use crate::yaml::Step;

use super::bucket::{QuotaIdentity, RuleIdentity, prefix};
use super::document::{DefaultsDocument, LimitDocument, RuleDocument};
use super::given::Given;
use super::make::{Problem, spelled};
use super::make_quota::{Habits, make_quota};
use super::pattern::{Dimension, Matcher, Pattern};
use super::rule::{Enforcement, QuotaKind, Rule, RuleQuota};
use super::words::{Count, EnforcementWord, Name, Percent, Spelled};

/// Quotas of one rule: all are judged at every request that matches.
const QUOTAS_MAX: usize = 8;

/// Dimensions that one rule constrains: each is a level of the search.
const DIMENSIONS_MAX: usize = 8;

/// Makes the rules of one tenant.
pub(super) struct Maker<'d> {
    tenant: &'d str,
    defaults: &'d DefaultsDocument,
    habits: Habits,
}

/// Where the quotas of a rule are counted.
#[derive(Clone, Copy)]
struct Buckets<'a> {
    tenant: &'a str,
    rule: RuleIdentity<'a>,
    per: &'a [Dimension],
}

impl Buckets<'_> {
    fn quota(&self, name: Option<&str>, identity: QuotaIdentity<'_>, kind: QuotaKind) -> RuleQuota {
        let bucket_prefix = prefix(self.tenant, self.rule, identity, self.per);
        RuleQuota { name: name.map(Into::into), kind, bucket_prefix }
    }
}

impl<'d> Maker<'d> {
    pub(super) fn new(tenant: &'d str, defaults: &'d DefaultsDocument) -> Result<Self, Problem> {
        let path = [Step::Key("defaults".to_owned())];
        cost(&defaults.cost, &path)?;
        enforcement(&defaults.enforcement, &path)?;
        Ok(Self { tenant, defaults, habits: Habits::of_tenant(defaults) })
    }

    /// The tenant's own `limits`: a rule for all its requests, beside all others.
    pub(super) fn tenant_limits(&self, limits: &[LimitDocument]) -> Result<Rule, Problem> {
        let buckets = Buckets { tenant: self.tenant, rule: RuleIdentity::Tenant, per: &[] };
        let quotas = quotas(limits, &self.habits, buckets, &[])?;
        let conduct = self.conduct(&RuleDocument::default(), &[])?;
        Ok(Rule { name: "limits".into(), quotas: quotas.into(), ..conduct })
    }

    pub(super) fn rule(&self, document: &RuleDocument, path: &[Step]) -> Result<Rule, Problem> {
        let per = per(document, path)?;
        let matcher = matcher(document, &per, path)?;
        let written = text(&document.name);
        let rule = written.map_or(RuleIdentity::Matching(&matcher), RuleIdentity::Named);
        let buckets = Buckets { tenant: self.tenant, rule, per: &per };
        let habits = self.habits.over(document);
        let mut quotas = match &document.limits.0 {
            Some(limits) => {
                stands_alone(document, path)?;
                quotas(limits, &habits, buckets, path)?
            }
            None => only_quota(document, &habits, buckets, path)?.into_iter().collect(),
        };
        if let Some(Count(most)) = document.concurrency.0 {
            let kind = QuotaKind::Concurrency(most);
            quotas.push(buckets.quota(None, QuotaIdentity::Concurrency, kind));
        }
        if quotas.is_empty() {
            let text = "a rule needs `limit` and `window`, or `limits`, or `concurrency`";
            return Err(Problem { path: path.to_vec(), other: None, text: text.to_owned() });
        }
        let candidate = match &document.candidate.0 {
            Some(candidate) => {
                let path = [path, &[Step::Key("candidate".to_owned())]].concat();
                let kind = make_quota(candidate, &habits)
                    .map_err(|(field, text)| Problem::at(&path, field, text))?;
                let name = text(&candidate.name);
                Some(Box::new(buckets.quota(name, QuotaIdentity::Candidate, kind)))
            }
            None => None,
        };
        let name = written.map_or_else(|| matcher.to_string().into(), Into::into);
        let conduct = self.conduct(document, path)?;
        let (quotas, is_named) = (quotas.into(), written.is_some());
        Ok(Rule { name, is_named, quotas, candidate, matcher, per: per.into(), ..conduct })
    }

    /// A rule that says how it acts, and neither for whom nor how much.
    fn conduct(&self, document: &RuleDocument, path: &[Step]) -> Result<Rule, Problem> {
        let defaults = self.defaults;
        let enforcement = match enforcement(&document.enforcement, path)? {
            Some(enforcement) => enforcement,
            None => enforcement_of(&defaults.enforcement),
        };
        Ok(Rule {
            name: Box::default(),
            is_named: false,
            matcher: Matcher::default(),
            per: Box::default(),
            quotas: Box::default(),
            candidate: None,
            mode: chosen(&document.mode, &defaults.mode).unwrap_or_default(),
            enforce_percent: document
                .enforce_percent
                .0
                .or(defaults.enforce_percent.0)
                .map_or(100, |Percent(percent)| percent),
            cost: cost(&document.cost, path)?
                .or(defaults.cost.0.map(|Count(cost)| cost))
                .unwrap_or(1),
            tier: chosen(&document.tier, &defaults.tier),
            degrade: chosen(&document.degrade, &defaults.degrade),
            count_denied: document.count_denied.0.or(defaults.count_denied.0).unwrap_or(false),
            until: document.until.0.map(|until| until.0),
            scope: chosen(&document.scope, &defaults.scope).unwrap_or_default(),
            enforcement,
            managed_by: chosen(&document.managed_by, &defaults.managed_by).unwrap_or_default(),
        })
    }
}

fn chosen<T: Copy>(own: &Given<Spelled<T>>, default: &Given<Spelled<T>>) -> Option<T> {
    spelled(own).or(spelled(default))
}

fn text(name: &Given<Name>) -> Option<&str> {
    name.0.as_ref().map(|Name(name)| name.as_str())
}

fn cost(given: &Given<Count>, path: &[Step]) -> Result<Option<u64>, Problem> {
    match given.0 {
        Some(Count(0)) => {
            let text = "a cost of 0 would never count; write `mode: off`, or a cost from 1";
            Err(Problem::at(path, "cost", text))
        }
        given => Ok(given.map(|Count(cost)| cost)),
    }
}

fn enforcement(
    given: &Given<Spelled<EnforcementWord>>,
    path: &[Step],
) -> Result<Option<Enforcement>, Problem> {
    let known = spelled(given).map(EnforcementWord::known).transpose();
    known.map_err(|text| Problem::at(path, "enforcement", text))
}

/// The tenant's enforcement, which was looked at when its defaults were.
fn enforcement_of(defaults: &Given<Spelled<EnforcementWord>>) -> Enforcement {
    spelled(defaults).and_then(|word| word.known().ok()).unwrap_or_default()
}

/// The attributes of `per` as dimensions, in their order.
fn per(document: &RuleDocument, path: &[Step]) -> Result<Vec<Dimension>, Problem> {
    let names = document.per.0.as_deref().unwrap_or_default();
    let mut dimensions: Vec<Dimension> = Vec::new();
    for Name(name) in names {
        let dimension = Dimension::named(name);
        if dimensions.contains(&dimension) {
            return Err(Problem::at(path, "per", format!("`{name}` stands here twice")));
        }
        dimensions.push(dimension);
    }
    dimensions.sort();
    Ok(dimensions)
}

fn matcher(document: &RuleDocument, per: &[Dimension], path: &[Step]) -> Result<Matcher, Problem> {
    let mut constraints: Vec<(Dimension, Pattern)> = Vec::new();
    let well_known =
        [(Dimension::Endpoint, &document.endpoint), (Dimension::Caller, &document.caller)];
    for (dimension, given) in well_known {
        constraints.extend(given.0.clone().map(|pattern| (dimension, pattern)));
    }
    let matches = document.matches.0.iter().flat_map(|matches| &matches.0);
    for (Name(name), pattern) in matches {
        let dimension = Dimension::named(name);
        if constraints.iter().any(|(known, _)| *known == dimension) {
            let text = format!("`{name}` is constrained beside `match` already");
            return Err(Problem::at(path, "match", text));
        }
        constraints.push((dimension, pattern.clone()));
    }
    for dimension in per {
        if constraints.iter().all(|(known, _)| known != dimension) {
            constraints.push((dimension.clone(), Pattern::Any));
        }
    }
    if constraints.len() > DIMENSIONS_MAX {
        let text = format!("a rule constrains at most {DIMENSIONS_MAX} dimensions");
        return Err(Problem { path: path.to_vec(), other: None, text });
    }
    Ok(Matcher::new(constraints))
}

/// The numbers of a list stand in the list.
fn stands_alone(document: &RuleDocument, path: &[Step]) -> Result<(), Problem> {
    let beside = [
        ("limit", document.limit.is_given()),
        ("window", document.window.is_given()),
        ("burst", document.burst.is_given()),
    ];
    match beside.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => {
            let text = format!("`{field}` cannot stand beside `limits`; write it in the list");
            Err(Problem::at(path, field, text))
        }
        None => Ok(()),
    }
}

/// The quota that a rule without a list has, if it has one.
fn only_quota(
    document: &RuleDocument,
    habits: &Habits,
    buckets: Buckets<'_>,
    path: &[Step],
) -> Result<Option<RuleQuota>, Problem> {
    let limit = document.own_limit();
    if !limit.limit.is_given() && !limit.window.is_given() && !limit.burst.is_given() {
        return Ok(None);
    }
    let kind =
        make_quota(&limit, habits).map_err(|(field, text)| Problem::at(path, field, text))?;
    Ok(Some(buckets.quota(None, QuotaIdentity::Place(0), kind)))
}

fn quotas(
    limits: &[LimitDocument],
    habits: &Habits,
    buckets: Buckets<'_>,
    path: &[Step],
) -> Result<Vec<RuleQuota>, Problem> {
    if limits.is_empty() || limits.len() > QUOTAS_MAX {
        let text = format!("expected from 1 to {QUOTAS_MAX} limits, not {}", limits.len());
        return Err(Problem::at(path, "limits", text));
    }
    let mut quotas: Vec<RuleQuota> = Vec::with_capacity(limits.len());
    for (place, limit) in limits.iter().enumerate() {
        let path = [path, &[Step::Key("limits".to_owned()), Step::Index(place)]].concat();
        let kind =
            make_quota(limit, habits).map_err(|(field, text)| Problem::at(&path, field, text))?;
        let name = text(&limit.name);
        let is_known = |quota: &RuleQuota| name.is_some() && quota.name.as_deref() == name;
        if quotas.iter().any(is_known) {
            return Err(Problem::at(&path, "name", "a second limit has this name"));
        }
        let identity = name.map_or(QuotaIdentity::Place(place), QuotaIdentity::Named);
        quotas.push(buckets.quota(name, identity, kind));
    }
    Ok(quotas)
}
