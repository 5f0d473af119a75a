//! The scorecard: how many requests of one tenant may be in flight, by a list of rules.
//!
//! The first rule that matches a request decides, and only it: the same request gets the same
//! answer whatever else goes on. Each tenant has a count of its own under each rule, so no tenant
//! takes another's places, busy or not. What no rule matches passes.
//!
//! Invariants: a rule that an earlier one always forestalls is refused when the list is made; a
//! count is there only while something is in flight.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::request::{Request, Work};
use super::tier::Tier;

/// Rules of one scorecard: each request that none matches looks at all of them.
pub const RULES_MAX: usize = 256;

/// Bytes of a rule's name or pattern.
pub const RULE_BYTES_MAX: usize = 256;

/// Tenants with requests in flight under rules; a newcomer beyond them passes uncounted, and is
/// told apart.
pub const COUNTED_MAX: usize = 65_536;

/// Requests in flight by rule and tenant.
type Counts = HashMap<(u16, Box<[u8]>), u32>;

/// Which tenants: all, those that begin so, or one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TenantPattern {
    Any,
    Prefix(Box<[u8]>),
    Exactly(Box<[u8]>),
}

impl TenantPattern {
    /// Reads `*`, `prefix*` or a whole name.
    pub fn parse(text: &str) -> Result<Self, ScorecardError> {
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() > RULE_BYTES_MAX {
            return Err(ScorecardError::Pattern(text.to_owned()));
        }
        match bytes.strip_suffix(b"*") {
            Some(prefix) if prefix.contains(&b'*') => Err(ScorecardError::Pattern(text.to_owned())),
            Some([]) => Ok(Self::Any),
            Some(prefix) => Ok(Self::Prefix(prefix.into())),
            None if bytes.contains(&b'*') => Err(ScorecardError::Pattern(text.to_owned())),
            None => Ok(Self::Exactly(bytes.into())),
        }
    }

    fn matches(&self, tenant: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Prefix(prefix) => tenant.starts_with(prefix),
            Self::Exactly(name) => **name == *tenant,
        }
    }

    /// Whether it matches all that the other matches.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Prefix(prefix), Self::Prefix(inner) | Self::Exactly(inner)) => {
                inner.starts_with(prefix)
            }
            (Self::Exactly(name), Self::Exactly(other)) => name == other,
            (Self::Prefix(_), Self::Any) | (Self::Exactly(_), Self::Any | Self::Prefix(_)) => false,
        }
    }
}

/// How many requests may be in flight of each tenant that matches.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScorecardRule {
    pub name: String,
    pub tenant: TenantPattern,
    /// Of this tier only, or of any.
    pub tier: Option<Tier>,
    /// Of this kind of work only, or of any.
    pub work: Option<Work>,
    /// At most so many at once; 0 refuses all.
    pub in_flight_max: u32,
}

impl ScorecardRule {
    fn matches(&self, request: &Request<'_>) -> bool {
        self.tier.is_none_or(|tier| tier == request.tier)
            && self.work.is_none_or(|work| work == request.work)
            && self.tenant.matches(request.tenant)
    }

    fn covers(&self, other: &Self) -> bool {
        (self.tier.is_none() || self.tier == other.tier)
            && (self.work.is_none() || self.work == other.work)
            && self.tenant.covers(&other.tenant)
    }
}

/// Why a list of rules is none.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ScorecardError {
    #[error("more than {RULES_MAX} rules")]
    TooMany,
    #[error("`{0}` is no name of a rule: 1 to {RULE_BYTES_MAX} bytes")]
    Name(String),
    #[error("rule `{0}` is there twice")]
    Twice(String),
    #[error("`{0}` is no pattern of tenants: a name, `prefix*` or `*`")]
    Pattern(String),
    #[error("rule `{rule}` matches nothing: `{earlier}` before it takes all that it would")]
    Unreachable { rule: String, earlier: String },
}

/// The rules, with what is in flight under each.
#[derive(Debug, Default)]
pub struct Scorecard {
    rules: Vec<ScorecardRule>,
    in_flight: Mutex<Counts>,
}

/// What the scorecard says of a request.
#[derive(Debug, Eq, PartialEq)]
pub enum Scored {
    /// No rule matches, or there is no room to count it.
    Free,
    /// It passes and is counted: [`Scorecard::end`] must be told when it ends.
    Counted(Place),
    /// The tenant has as many in flight as this rule lets it.
    Refused { rule: u16 },
}

/// One place under a rule that a request has.
#[derive(Debug, Eq, PartialEq)]
pub struct Place {
    rule: u16,
    tenant: Box<[u8]>,
}

impl Scorecard {
    pub fn new(rules: Vec<ScorecardRule>) -> Result<Self, ScorecardError> {
        if rules.len() > RULES_MAX {
            return Err(ScorecardError::TooMany);
        }
        for (place, rule) in rules.iter().enumerate() {
            let name = rule.name.clone();
            if name.is_empty() || name.len() > RULE_BYTES_MAX {
                return Err(ScorecardError::Name(name));
            }
            let earlier = &rules[..place];
            if earlier.iter().any(|earlier| earlier.name == name) {
                return Err(ScorecardError::Twice(name));
            }
            if let Some(earlier) = earlier.iter().find(|earlier| earlier.covers(rule)) {
                let earlier = earlier.name.clone();
                return Err(ScorecardError::Unreachable { rule: name, earlier });
            }
        }
        Ok(Self { rules, in_flight: Mutex::default() })
    }

    /// The name of a rule by its number.
    pub fn rule_name(&self, rule: u16) -> Option<&str> {
        self.rules.get(usize::from(rule)).map(|rule| rule.name.as_str())
    }

    /// Judges a request, and takes a place for it if it passes.
    pub fn begin(&self, request: &Request<'_>) -> Scored {
        let Some(number) = self.rules.iter().position(|rule| rule.matches(request)) else {
            return Scored::Free;
        };
        let most = self.rules[number].in_flight_max;
        let rule = u16::try_from(number).expect("there are at most RULES_MAX rules");
        let mut counts = self.counts();
        let is_full = counts.len() >= COUNTED_MAX;
        let key = (rule, Box::from(request.tenant));
        match counts.get_mut(&key) {
            Some(count) if *count >= most => return Scored::Refused { rule },
            Some(count) => *count += 1,
            None if most == 0 => return Scored::Refused { rule },
            None if is_full => return Scored::Free,
            None => {
                counts.insert(key.clone(), 1);
            }
        }
        Scored::Counted(Place { rule, tenant: key.1 })
    }

    /// A request that had a place has ended.
    pub fn end(&self, place: Place) {
        let mut counts = self.counts();
        let key = (place.rule, place.tenant);
        if let Some(count) = counts.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&key);
            }
        }
    }

    /// Tenants with requests in flight under rules.
    pub fn counted(&self) -> usize {
        self.counts().len()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, tenant: &str, in_flight_max: u32) -> ScorecardRule {
        let tenant = TenantPattern::parse(tenant).expect("a good pattern");
        ScorecardRule { name: name.to_owned(), tenant, tier: None, work: None, in_flight_max }
    }

    fn of(tenant: &str) -> Request<'_> {
        Request::new(Tier::T3).tenant(tenant.as_bytes())
    }

    #[test]
    fn first_rule_that_matches_decides_alone() {
        let rules = vec![
            rule("acme", "acme", 1),
            ScorecardRule { work: Some(Work::Slow), ..rule("slow", "a*", 0) },
            rule("all", "*", 2),
        ];
        let scorecard = Scorecard::new(rules).expect("good rules");
        let Scored::Counted(place) = scorecard.begin(&of("acme")) else { panic!("one may") };
        assert_eq!(scorecard.begin(&of("acme")), Scored::Refused { rule: 0 });
        let slow = of("abel").work(Work::Slow);
        assert_eq!(scorecard.begin(&slow), Scored::Refused { rule: 1 });
        scorecard.end(place);
        assert!(matches!(scorecard.begin(&of("acme")), Scored::Counted(_)));
        assert_eq!(scorecard.rule_name(1), Some("slow"));
    }

    #[test]
    fn no_tenant_takes_the_places_of_another() {
        let scorecard = Scorecard::new(vec![rule("all", "*", 2)]).expect("good rules");
        let places: Vec<Place> = ["a", "a", "b", "b"]
            .into_iter()
            .map(|tenant| match scorecard.begin(&of(tenant)) {
                Scored::Counted(place) => place,
                refused => panic!("{refused:?}"),
            })
            .collect();
        assert_eq!(scorecard.begin(&of("a")), Scored::Refused { rule: 0 });
        assert_eq!(scorecard.counted(), 2);
        for place in places {
            scorecard.end(place);
        }
        assert_eq!(scorecard.counted(), 0);
    }

    #[test]
    fn what_no_rule_matches_passes() {
        let scorecard = Scorecard::new(vec![rule("one", "acme", 1)]).expect("good rules");
        assert_eq!(scorecard.begin(&of("other")), Scored::Free);
        assert_eq!(Scorecard::default().begin(&of("acme")), Scored::Free);
    }

    #[test]
    fn rules_that_can_never_match_are_refused() {
        let unreachable = |rules: Vec<ScorecardRule>| Scorecard::new(rules).map(|_| ());
        let late = unreachable(vec![rule("a", "ac*", 1), rule("b", "acme", 1)]);
        let text = late.expect_err("`ac*` takes all").to_string();
        assert_eq!(text, "rule `b` matches nothing: `a` before it takes all that it would");
        let tiered = ScorecardRule { tier: Some(Tier::T5), ..rule("a", "*", 1) };
        assert_eq!(unreachable(vec![tiered.clone(), rule("b", "acme", 1)]), Ok(()));
        assert!(unreachable(vec![rule("b", "*", 1), tiered]).is_err());
        let twice = unreachable(vec![rule("a", "x", 1), rule("a", "y", 1)]);
        assert_eq!(twice, Err(ScorecardError::Twice("a".to_owned())));
        assert_eq!(unreachable(vec![rule("", "x", 1)]), Err(ScorecardError::Name(String::new())));
        for pattern in ["", "a*b", "**", "*a"] {
            let error = ScorecardError::Pattern(pattern.to_owned());
            assert_eq!(TenantPattern::parse(pattern), Err(error));
        }
    }
}
