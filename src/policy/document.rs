//! A policy document as it is written: the fields, with the sentences of the JSON Schema.
//!
//! A field that is not written is not there; one that is written with nothing behind it is
//! refused, since nobody can tell what was meant. What the fields mean together is looked at
//! when a tenant is made of them, in `make`.
//!
//! A document is a list `tenants:` or a single tenant.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};

use crate::limit::{Algorithm, Align};
use crate::load::Tier;

use super::given::{Given, Matches};
use super::options::Unmatched;
use super::pattern::Pattern;
use super::rule::{Degrade, ManagedBy, Mode, Scope};
use super::words::{
    BurstMode, Count, EnforcementWord, LimitWord, Moment, Name, Percent, Spelled, WindowWord, Zone,
};

/// Rate limits of tenants: a list `tenants`, or the fields of a single tenant.
#[derive(JsonSchema)]
#[schemars(untagged, title = "Tollgate policy document")]
pub(super) enum Document {
    Many(TenantsDocument),
    One(Box<TenantDocument>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantsDocument {
    pub(super) tenants: Vec<TenantDocument>,
}

/// One tenant: whom the rules are for.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TenantDocument {
    /// The tenant, as callers name it. In etcd and in a folder the key or file name may say it.
    pub(super) name: Given<Name>,
    /// How important its requests are, t0 most; what rules say goes before.
    pub(super) tier: Given<Spelled<Tier>>,
    /// What its rules and limits say that do not say it themselves.
    pub(super) defaults: Given<DefaultsDocument>,
    /// The most buckets that it may have; without it, memory alone is the bound.
    pub(super) keys_max: Given<Count>,
    /// Quotas that all its requests share.
    pub(super) limits: Given<Vec<LimitDocument>>,
    /// Quotas for some of its requests.
    pub(super) rules: Given<Vec<RuleDocument>>,
    /// The answer while no exact one can be given; what rules say goes before.
    pub(super) degrade: Given<Spelled<Degrade>>,
    /// The answer to a request that no rule matches.
    pub(super) unmatched: Given<Spelled<Unmatched>>,
}

/// Defaults of a tenant's rules and limits.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DefaultsDocument {
    /// How limits are counted; `sliding-log` where nothing is said.
    pub(super) algorithm: Given<Spelled<Algorithm>>,
    /// Where a fixed window begins; `epoch` where nothing is said.
    pub(super) align: Given<Spelled<Align>>,
    /// How a burst is granted; `additive` where nothing is said.
    pub(super) burst_mode: Given<Spelled<BurstMode>>,
    /// The zone of calendar windows; UTC where nothing is said.
    pub(super) time_zone: Given<Zone>,
    /// What rules do; `enforce` where nothing is said.
    pub(super) mode: Given<Spelled<Mode>>,
    /// Of a hundred requests, how many are enforced; 100 where nothing is said.
    pub(super) enforce_percent: Given<Percent>,
    /// What a request costs that does not say; 1 where nothing is said.
    pub(super) cost: Given<Count>,
    /// How important requests are.
    pub(super) tier: Given<Spelled<Tier>>,
    /// The answer while no exact one can be given.
    pub(super) degrade: Given<Spelled<Degrade>>,
    /// Whether denied requests count as well; false where nothing is said.
    pub(super) count_denied: Given<bool>,
    /// Where a distributed limit is added up; `global` where nothing is said.
    pub(super) scope: Given<Spelled<Scope>>,
    /// Who decides; `central` where nothing is said.
    pub(super) enforcement: Given<Spelled<EnforcementWord>>,
    /// Who may change rules; `human` where nothing is said.
    pub(super) managed_by: Given<Spelled<ManagedBy>>,
}

/// A quota, or several, for the requests that match.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RuleDocument {
    /// For people, errors and metrics. Buckets of a rule with a name survive a changed matcher.
    pub(super) name: Given<Name>,
    /// The endpoint: exact, `prefix*`, or `*` for any.
    pub(super) endpoint: Given<Pattern>,
    /// The caller: exact, `prefix*`, or `*` for any.
    pub(super) caller: Given<Pattern>,
    /// Attributes by name, each exact, `prefix*`, or `*` for any.
    #[serde(rename = "match")]
    pub(super) matches: Given<Matches>,
    /// Attributes of which each value has a bucket of its own.
    pub(super) per: Given<Vec<Name>>,
    /// How much per window, or `unlimited`.
    pub(super) limit: Given<LimitWord>,
    /// How long: `500ms`, `30s`, `5m`, `1h`, `1d`, milliseconds, or day, week, month, year.
    pub(super) window: Given<WindowWord>,
    /// An allowance on top of the limit; for gcra the size of the bucket.
    pub(super) burst: Given<Count>,
    /// How the burst is granted: on top in every window, or as a credit that refills slowly.
    pub(super) burst_mode: Given<Spelled<BurstMode>>,
    /// How the limit is counted.
    pub(super) algorithm: Given<Spelled<Algorithm>>,
    /// Where a fixed window begins.
    pub(super) align: Given<Spelled<Align>>,
    /// The zone of a calendar window.
    pub(super) time_zone: Given<Zone>,
    /// Several quotas that hold together, instead of `limit` and `window`.
    pub(super) limits: Given<Vec<LimitDocument>>,
    /// What a request costs that does not say.
    pub(super) cost: Given<Count>,
    /// The most requests in flight at once.
    pub(super) concurrency: Given<Count>,
    /// Enforce; or decide and count, but let pass; or nothing at all.
    pub(super) mode: Given<Spelled<Mode>>,
    /// Of a hundred requests, how many are enforced.
    pub(super) enforce_percent: Given<Percent>,
    /// A quota that is judged beside the enforced ones and never enforced itself.
    pub(super) candidate: Given<LimitDocument>,
    /// How important these requests are, t0 most.
    pub(super) tier: Given<Spelled<Tier>>,
    /// The answer while no exact one can be given.
    pub(super) degrade: Given<Spelled<Degrade>>,
    /// Whether denied requests count as well.
    pub(super) count_denied: Given<bool>,
    /// The moment from which on the rule is gone.
    pub(super) until: Given<Moment>,
    /// Where a distributed limit is added up.
    pub(super) scope: Given<Spelled<Scope>>,
    /// Who decides.
    pub(super) enforcement: Given<Spelled<EnforcementWord>>,
    /// Who may change the rule.
    pub(super) managed_by: Given<Spelled<ManagedBy>>,
}

/// A quota: a limit per window.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitDocument {
    /// Keeps the buckets when the list is sorted otherwise.
    pub(super) name: Given<Name>,
    /// How much per window, or `unlimited`.
    pub(super) limit: Given<LimitWord>,
    /// How long: `500ms`, `30s`, `5m`, `1h`, `1d`, milliseconds, or day, week, month, year.
    pub(super) window: Given<WindowWord>,
    /// An allowance on top of the limit; for gcra the size of the bucket.
    pub(super) burst: Given<Count>,
    /// How the burst is granted: on top in every window, or as a credit that refills slowly.
    pub(super) burst_mode: Given<Spelled<BurstMode>>,
    /// How the limit is counted.
    pub(super) algorithm: Given<Spelled<Algorithm>>,
    /// Where a fixed window begins.
    pub(super) align: Given<Spelled<Align>>,
    /// The zone of a calendar window.
    pub(super) time_zone: Given<Zone>,
}

impl RuleDocument {
    /// What the rule says in place of a list.
    pub(super) fn own_limit(&self) -> LimitDocument {
        LimitDocument {
            name: Given::default(),
            limit: self.limit.clone(),
            window: self.window.clone(),
            burst: self.burst.clone(),
            burst_mode: self.burst_mode.clone(),
            algorithm: self.algorithm.clone(),
            align: self.align.clone(),
            time_zone: self.time_zone.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Whole)
    }
}

const LIST: &str = "tenants";

/// The one slip that would be taken for a field of a tenant.
const LIST_MISSPELT: &str = "tenant";

/// Reads a document by its first key: `tenants`, or a field of a single tenant.
struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list `tenants:` or the fields of a tenant; `tenants: []` for none")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let first: Option<String> = map.next_key()?;
        let first_word = first.as_deref().unwrap_or_default();
        let is_list = first_word == LIST;
        // The fields of a tenant are no likelier then.
        if first_word == LIST_MISSPELT {
            let text = format!("unknown field `{LIST_MISSPELT}`, the nearest is `{LIST}`");
            return Err(de::Error::custom(text));
        }
        let map = MapAccessDeserializer::new(Resumed { first, map });
        if is_list {
            return TenantsDocument::deserialize(map).map(Document::Many);
        }
        TenantDocument::deserialize(map).map(|tenant| Document::One(Box::new(tenant)))
    }

    fn visit_none<E: de::Error>(self) -> Result<Document, E> {
        self.visit_unit()
    }

    /// What is empty may be a file that is being written: that removes nobody.
    fn visit_unit<E: de::Error>(self) -> Result<Document, E> {
        Err(E::custom("the document is empty; write `tenants: []` for no tenants"))
    }
}

/// A mapping whose first key has been read already.
struct Resumed<A> {
    first: Option<String>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Resumed<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(key) => seed.deserialize(key.into_deserializer()).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
