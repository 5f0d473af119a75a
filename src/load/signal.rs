//! Signals from outside: what only the service itself knows about how full it is.
//!
//! A replica's lag, the depth of a queue, the connections left in a pool: whoever knows such a
//! figure declares it once, with the value that counts as full, and reports it from then on.
//! Pressure is value / full, 1.0 at the hard limit, as that of the built-in sources. A systemic
//! signal enters the pressure of the whole; one per tenant presses only on the requests of the
//! tenant that it was reported for.
//!
//! Invariants: a report counts for its time to live and not a moment longer, and one that has
//! expired says so; what is refused changes nothing. There are at most [`SIGNALS_MAX`] signals,
//! and [`TENANTS_MAX`] tenants of each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::time::{Duration, Timestamp};

use super::pressure::Source;

/// Signals that may be declared: all are looked at with every sample.
pub const SIGNALS_MAX: usize = 64;

/// Tenants that one signal may be reported for at a time.
pub const TENANTS_MAX: usize = 4_096;

/// Bytes of a signal's name: it stands in statistics.
pub const NAME_BYTES_MAX: usize = 64;

/// Bytes of a tenant's name.
pub const TENANT_BYTES_MAX: usize = 1_024;

/// The longest that a report may count: one that is older says nothing about now.
pub const EXPIRY_MAX: Duration = Duration::from_secs(86_400);

/// Whom a signal presses on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// All requests.
    Systemic,
    /// Those of the tenant that it was reported for.
    PerTenant,
}

impl Kind {
    /// `systemic` or `per_tenant`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Systemic => "systemic",
            Self::PerTenant => "per_tenant",
        }
    }
}

/// A signal that may be reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Letters, digits, `_`, `-` and `.`; at most [`NAME_BYTES_MAX`].
    pub name: String,
    pub kind: Kind,
    /// The value that counts as full, in the signal's own unit.
    pub full: f64,
    /// How long a report counts that does not say so itself.
    pub expiry: Duration,
}

/// Why a signal was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SignalError {
    #[error("`{0}` is no name of a signal: 1 to {NAME_BYTES_MAX} letters, digits, `_`, `-`, `.`")]
    Name(String),
    #[error("`{0}` is the name of a built-in signal")]
    BuiltIn(String),
    #[error("signal `{0}` is declared twice")]
    Twice(String),
    #[error("more than {SIGNALS_MAX} signals")]
    TooManySignals,
    #[error("the full value of a signal must be a number above 0, not {0}")]
    Full(f64),
    #[error("a signal counts for longer than zero and at most {EXPIRY_MAX}, not {0}")]
    Expiry(Duration),
    #[error("signal `{name}` is not declared; declared are: {declared}")]
    Undeclared { name: String, declared: String },
    #[error("{0} is no value of a signal: a finite number, not below 0")]
    Value(f64),
    #[error("signal `{0}` is per tenant: say which")]
    NeedsTenant(String),
    #[error("signal `{0}` is systemic: it takes no tenant")]
    TakesNoTenant(String),
    #[error("a tenant's name has 1 to {TENANT_BYTES_MAX} bytes")]
    Tenant,
    #[error("signal `{0}` is reported for {TENANTS_MAX} tenants already")]
    TooManyTenants(String),
}

/// One value, and when it was said and ends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Report {
    value: f64,
    at: Timestamp,
    until: Timestamp,
}

#[derive(Clone, Debug)]
struct Signal {
    declaration: Declaration,
    /// The latest, whether it still counts or not; none before the first.
    systemic: Option<Report>,
    tenants: HashMap<Box<[u8]>, Report>,
}

/// A report as it comes in.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    pub name: &'a [u8],
    /// In the signal's own unit.
    pub value: f64,
    /// For signals per tenant.
    pub tenant: Option<&'a [u8]>,
    /// How long it counts; as declared where none is given.
    pub ttl: Option<Duration>,
}

/// What can be said of a signal now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Freshness {
    /// Nobody has reported it.
    Silent,
    /// The latest report counts.
    Fresh,
    /// The latest report has ended this long ago; the signal says nothing until the next.
    Expired(Duration),
}

/// One signal as it stands; of one per tenant the tenant that it presses on most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalState<'a> {
    pub declaration: &'a Declaration,
    pub freshness: Freshness,
    /// The latest value, also of a report that has expired.
    pub value: Option<f64>,
    /// 1.0 at the hard limit; none unless it is fresh.
    pub pressure: Option<f64>,
    /// Tenants whose reports count.
    pub tenants: usize,
}

/// The signals that are declared, with what was reported last.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    signals: Vec<Signal>,
}

impl Signals {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a signal known, so that it may be reported.
    pub fn declare(&mut self, declaration: Declaration) -> Result<(), SignalError> {
        let name = &declaration.name;
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_named) {
            return Err(SignalError::Name(name.clone()));
        }
        if Source::ALL.iter().any(|source| source.name() == name) {
            return Err(SignalError::BuiltIn(name.clone()));
        }
        if self.find(name.as_bytes()).is_some() {
            return Err(SignalError::Twice(name.clone()));
        }
        if !(declaration.full.is_finite() && declaration.full > 0.0) {
            return Err(SignalError::Full(declaration.full));
        }
        expiry(declaration.expiry)?;
        if self.signals.len() >= SIGNALS_MAX {
            return Err(SignalError::TooManySignals);
        }
        self.signals.push(Signal { declaration, systemic: None, tenants: HashMap::new() });
        Ok(())
    }

    /// Takes the latest value of a signal.
    pub fn report(&mut self, reported: Reported<'_>, now: Timestamp) -> Result<(), SignalError> {
        let Some(at) = self.find(reported.name) else { return Err(self.undeclared(reported.name)) };
        if !(reported.value.is_finite() && reported.value >= 0.0) {
            return Err(SignalError::Value(reported.value));
        }
        let signal = &mut self.signals[at];
        let ttl = expiry(reported.ttl.unwrap_or(signal.declaration.expiry))?;
        let report = Report { value: reported.value, at: now, until: now + ttl };
        let name = || signal.declaration.name.clone();
        match (signal.declaration.kind, reported.tenant) {
            (Kind::Systemic, None) => {
                signal.systemic = Some(report);
                Ok(())
            }
            (Kind::Systemic, Some(_)) => Err(SignalError::TakesNoTenant(name())),
            (Kind::PerTenant, None) => Err(SignalError::NeedsTenant(name())),
            (Kind::PerTenant, Some(tenant)) => signal.report_of(tenant, report),
        }
    }

    /// The greatest pressure of all systemic signals that are fresh, and its name.
    pub fn highest(&self, now: Timestamp) -> Option<(&str, f64)> {
        let fresh = self.signals.iter().filter_map(|signal| {
            Some((signal.declaration.name.as_str(), signal.pressure(signal.systemic?, now)?))
        });
        fresh.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// The greatest pressure on one tenant alone, and the signal's name.
    pub fn highest_of(&self, tenant: &[u8], now: Timestamp) -> Option<(&str, f64)> {
        let fresh = self.signals.iter().filter_map(|signal| {
            let report = signal.tenants.get(tenant)?;
            Some((signal.declaration.name.as_str(), signal.pressure(*report, now)?))
        });
        fresh.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Every tenant that a fresh report is for, with its pressure; once for each signal.
    pub fn tenants(&self, now: Timestamp) -> impl Iterator<Item = (&[u8], f64)> {
        self.signals.iter().flat_map(move |signal| {
            let reports = signal.tenants.iter();
            reports.filter_map(move |(tenant, report)| {
                Some((&**tenant, signal.pressure(*report, now)?))
            })
        })
    }

    /// Whether any report for a tenant is kept: if not, no tenant need be looked up.
    pub fn has_tenants(&self) -> bool {
        self.signals.iter().any(|signal| !signal.tenants.is_empty())
    }

    /// Every declared signal as it stands, in the order of declaration.
    pub fn states(&self, now: Timestamp) -> impl Iterator<Item = SignalState<'_>> {
        self.signals.iter().map(move |signal| signal.state(now))
    }

    /// Forgets tenants whose reports have ended: worth doing now and then.
    pub fn sweep(&mut self, now: Timestamp) {
        for signal in &mut self.signals {
            signal.tenants.retain(|_, report| now < report.until);
        }
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        self.signals.iter().position(|signal| signal.declaration.name.as_bytes() == name)
    }

    fn undeclared(&self, name: &[u8]) -> SignalError {
        let names: Vec<&str> =
            self.signals.iter().map(|signal| signal.declaration.name.as_str()).collect();
        let declared = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let kept = &name[..name.len().min(NAME_BYTES_MAX)];
        SignalError::Undeclared { name: String::from_utf8_lossy(kept).into_owned(), declared }
    }
}

fn expiry(span: Duration) -> Result<Duration, SignalError> {
    if span.is_zero() || span > EXPIRY_MAX { Err(SignalError::Expiry(span)) } else { Ok(span) }
}

impl Signal {
    fn report_of(&mut self, tenant: &[u8], report: Report) -> Result<(), SignalError> {
        if tenant.is_empty() || tenant.len() > TENANT_BYTES_MAX {
            return Err(SignalError::Tenant);
        }
        if self.tenants.len() >= TENANTS_MAX && !self.tenants.contains_key(tenant) {
            // Room is made only when it is needed: to look at all of them is not cheap.
            self.tenants.retain(|_, known| report.at < known.until);
            if self.tenants.len() >= TENANTS_MAX {
                return Err(SignalError::TooManyTenants(self.declaration.name.clone()));
            }
        }
        match self.tenants.entry(tenant.into()) {
            Entry::Occupied(mut known) => *known.get_mut() = report,
            Entry::Vacant(free) => {
                free.insert(report);
            }
        }
        Ok(())
    }

    /// None where the report no longer counts.
    fn pressure(&self, report: Report, now: Timestamp) -> Option<f64> {
        (now < report.until).then_some(report.value / self.declaration.full)
    }

    fn state(&self, now: Timestamp) -> SignalState<'_> {
        let reports = || self.systemic.iter().chain(self.tenants.values());
        let fresh = reports().filter(|report| now < report.until);
        let worst = fresh.max_by(|one, other| one.value.total_cmp(&other.value));
        let latest = worst.or_else(|| reports().max_by_key(|report| report.until));
        let freshness = match latest {
            None => Freshness::Silent,
            Some(report) if now < report.until => Freshness::Fresh,
            Some(report) => Freshness::Expired(now.since(report.until)),
        };
        SignalState {
            declaration: &self.declaration,
            freshness,
            value: latest.map(|report| report.value),
            pressure: latest.and_then(|report| self.pressure(*report, now)),
            tenants: self.tenants.values().filter(|report| now < report.until).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000_000);

    fn declared(name: &str, kind: Kind) -> Declaration {
        Declaration { name: name.to_owned(), kind, full: 10.0, expiry: Duration::from_secs(5) }
    }

    fn signals() -> Signals {
        let mut signals = Signals::new();
        signals.declare(declared("lag", Kind::PerTenant)).expect("a good declaration");
        signals.declare(declared("pool", Kind::Systemic)).expect("another one");
        signals
    }

    fn value(name: &str, value: f64) -> Reported<'_> {
        Reported { name: name.as_bytes(), value, tenant: None, ttl: None }
    }

    fn of_tenant(tenant: &str, lag: f64) -> Reported<'_> {
        Reported { tenant: Some(tenant.as_bytes()), ..value("lag", lag) }
    }

    #[test]
    fn report_counts_until_it_expires_and_then_says_so() {
        let mut signals = signals();
        signals.report(value("pool", 9.0), START).expect("a good report");
        let end = START + Duration::from_secs(5);
        let last = end - Duration::from_micros(1);
        assert_eq!(signals.highest(last), Some(("pool", 0.9)));
        assert_eq!(signals.highest(end), None);
        let later = end + Duration::from_secs(2);
        let state = signals.states(later).nth(1).expect("two are declared");
        assert_eq!(state.freshness, Freshness::Expired(Duration::from_secs(2)));
        assert_eq!((state.value, state.pressure), (Some(9.0), None));
        let silent = signals.states(later).next().expect("two are declared");
        assert_eq!(silent.freshness, Freshness::Silent);
    }

    #[test]
    fn time_to_live_of_a_report_wins_over_the_declared_one() {
        let mut signals = signals();
        let brief = Reported { ttl: Some(Duration::from_secs(1)), ..value("pool", 20.0) };
        signals.report(brief, START).expect("a good report");
        assert_eq!(signals.highest(START), Some(("pool", 2.0)));
        assert_eq!(signals.highest(START + Duration::from_secs(1)), None);
    }

    #[test]
    fn signal_of_a_tenant_presses_on_no_other() {
        let mut signals = signals();
        signals.report(of_tenant("acme", 15.0), START).expect("a good report");
        assert_eq!(signals.highest(START), None);
        assert_eq!(signals.highest_of(b"acme", START), Some(("lag", 1.5)));
        assert_eq!(signals.highest_of(b"other", START), None);
        assert!(signals.has_tenants());
        signals.sweep(START + Duration::from_secs(5));
        assert!(!signals.has_tenants());
    }

    #[test]
    fn bad_reports_are_refused_by_name_and_change_nothing() {
        let mut signals = signals();
        signals.report(value("pool", 3.0), START).expect("a good report");
        let text = |error: Result<(), SignalError>| error.expect_err("a bad report").to_string();
        let undeclared = text(signals.report(value("poll", 1.0), START));
        assert_eq!(undeclared, "signal `poll` is not declared; declared are: lag, pool");
        for bad in [f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY] {
            let error = text(signals.report(value("pool", bad), START));
            assert!(error.ends_with("is no value of a signal: a finite number, not below 0"));
        }
        let tenant = Reported { tenant: Some(b"acme"), ..value("pool", 1.0) };
        let error = signals.report(tenant, START);
        assert_eq!(error, Err(SignalError::TakesNoTenant("pool".to_owned())));
        let error = signals.report(value("lag", 1.0), START);
        assert_eq!(error, Err(SignalError::NeedsTenant("lag".to_owned())));
        for ttl in [Duration::ZERO, Duration::from_secs(86_401)] {
            let error = signals.report(Reported { ttl: Some(ttl), ..value("pool", 1.0) }, START);
            assert_eq!(error, Err(SignalError::Expiry(ttl)));
        }
        assert_eq!(signals.report(of_tenant("", 1.0), START), Err(SignalError::Tenant));
        assert_eq!(signals.highest(START), Some(("pool", 0.3)));
    }

    #[test]
    fn bad_declarations_are_refused_by_name() {
        let mut signals = signals();
        let mut refused = |declaration| signals.declare(declaration).expect_err("a bad one");
        let good = || declared("new", Kind::Systemic);
        let named = |name: &str| Declaration { name: name.to_owned(), ..good() };
        assert_eq!(refused(named("lag")), SignalError::Twice("lag".to_owned()));
        assert_eq!(refused(named("cpu")), SignalError::BuiltIn("cpu".to_owned()));
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        for name in ["", "a b", "ä", long.as_str()] {
            assert_eq!(refused(named(name)), SignalError::Name(name.to_owned()));
        }
        assert_eq!(refused(Declaration { full: 0.0, ..good() }), SignalError::Full(0.0));
        assert!(matches!(refused(Declaration { full: f64::NAN, ..good() }), SignalError::Full(_)));
        let never = Declaration { expiry: Duration::ZERO, ..good() };
        assert_eq!(refused(never), SignalError::Expiry(Duration::ZERO));
    }

    #[test]
    fn signals_and_their_tenants_are_bounded() {
        let mut signals = signals();
        for number in 0..TENANTS_MAX {
            signals.report(of_tenant(&number.to_string(), 1.0), START).expect("there is room");
        }
        let full = Err(SignalError::TooManyTenants("lag".to_owned()));
        assert_eq!(signals.report(of_tenant("more", 1.0), START), full);
        assert_eq!(signals.report(of_tenant("7", 2.0), START), Ok(()));
        let later = START + Duration::from_secs(5);
        assert_eq!(signals.report(of_tenant("more", 1.0), later), Ok(()));
        assert_eq!(signals.states(later).next().map(|state| state.tenants), Some(1));
        for number in 2..SIGNALS_MAX {
            signals.declare(declared(&format!("s{number}"), Kind::Systemic)).expect("room");
        }
        let error = signals.declare(declared("one", Kind::Systemic));
        assert_eq!(error, Err(SignalError::TooManySignals));
    }
}
