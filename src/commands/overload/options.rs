//! The settings of the load manager.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else. Relations between them are proven by
//! the room `load` itself, when its parts are made of them.

use serde::{Deserialize, Serialize};

use crate::load::{Declaration, Kind, RejectorKind, Signals, Thresholds, Tier};
use crate::size::BytesMax;
use crate::time::Duration;

/// The section `load`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadOptions {
    /// Look at the machine and follow it.
    pub(crate) enabled: bool,
    /// How often the signals are looked at.
    pub(crate) sample_period: Duration,
    /// The pressure at which levels 1, 2 and 3 are entered.
    pub(crate) enter: [f64; 3],
    /// The pressure below which they are left.
    pub(crate) exit: [f64; 3],
    /// Samples at or above its entry until a level is entered.
    pub(crate) up: [u32; 3],
    /// Samples below its exit until a level is left.
    pub(crate) down: u32,
    /// The tier of a request of which nothing else says one.
    pub(crate) default_tier: TierWord,
    /// Decides which share of the requests is refused.
    pub(crate) rejector: RejectorWord,
    /// The wait of a readable request that counts as full.
    pub(crate) queue_timeout: Duration,
    /// Bytes of torn requests and unsent replies, of all clients, that count as full.
    pub(crate) in_flight_bytes_max: BytesMax,
    /// The hint when to come back is spread from here.
    pub(crate) retry_after_min: Duration,
    /// And to here.
    pub(crate) retry_after_max: Duration,
    /// Signals from outside.
    pub(crate) signals: Vec<SignalWords>,
}

impl LoadOptions {
    /// When levels are entered and left, or which of the settings contradict each other.
    pub(crate) fn thresholds(&self) -> Result<Thresholds, String> {
        Thresholds::new(self.enter, self.exit, self.up, self.down).map_err(|err| err.to_string())
    }

    /// The declared signals, or what is wrong with them.
    pub(crate) fn declared(&self) -> Result<Signals, String> {
        let mut signals = Signals::new();
        for SignalWords(declaration) in &self.signals {
            signals.declare(declaration.clone()).map_err(|err| err.to_string())?;
        }
        Ok(signals)
    }
}

/// A tier by its name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct TierWord(pub(crate) Tier);

impl TryFrom<String> for TierWord {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let tier = Tier::parse(word.as_bytes()).map(Self);
        tier.ok_or_else(|| "expected t0, t1, t2, t3, t4 or t5".into())
    }
}

impl From<TierWord> for String {
    fn from(TierWord(tier): TierWord) -> Self {
        tier.name().into()
    }
}

/// A rejector by its name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct RejectorWord(pub(crate) RejectorKind);

impl TryFrom<String> for RejectorWord {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let names = RejectorKind::ALL.map(RejectorKind::name).join(", ");
        let kind = RejectorKind::parse(&word).map(Self);
        kind.ok_or_else(|| format!("expected one of {names}"))
    }
}

impl From<RejectorWord> for String {
    fn from(RejectorWord(kind): RejectorWord) -> Self {
        kind.name().into()
    }
}

/// A declared signal as one line: `name kind full expiry`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct SignalWords(pub(crate) Declaration);

impl TryFrom<String> for SignalWords {
    type Error = String;

    fn try_from(line: String) -> Result<Self, String> {
        let expected = || {
            "expected `name systemic|per_tenant full expiry`, such as `lag per_tenant 100 30s`"
                .to_owned()
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, kind, full, expiry] = words[..] else { return Err(expected()) };
        let kinds = [Kind::Systemic, Kind::PerTenant];
        let kind = kinds.into_iter().find(|known| known.name() == kind).ok_or_else(expected)?;
        let full: f64 = full.parse().map_err(|_| expected())?;
        let has_unit = expiry.ends_with(|last: char| last.is_ascii_alphabetic());
        let expiry: Option<Duration> = expiry.parse().ok().filter(|_| has_unit);
        let expiry = expiry.ok_or_else(expected)?;
        let declaration = Declaration { name: name.to_owned(), kind, full, expiry };
        // Of its own kind; what holds between several is proven when all are there.
        let alone = Signals::new().declare(declaration.clone());
        alone.map_err(|err| format!("expected something else: {err}"))?;
        Ok(Self(declaration))
    }
}

impl From<SignalWords> for String {
    fn from(SignalWords(declaration): SignalWords) -> Self {
        let Declaration { name, kind, full, expiry } = declaration;
        format!("{name} {} {full} {expiry}", kind.name())
    }
}

#[cfg(test)]
impl LoadOptions {
    /// Off, with a systemic signal `pool` and `lag` of tenants, both full at 10.
    pub(crate) fn off() -> Self {
        let signal = |line: &str| SignalWords::try_from(line.to_owned()).expect("a declaration");
        Self {
            enabled: false,
            sample_period: Duration::from_millis(500),
            enter: [0.80, 0.90, 0.97],
            exit: [0.65, 0.75, 0.85],
            up: [3, 2, 1],
            down: 10,
            default_tier: TierWord(Tier::T2),
            rejector: RejectorWord(RejectorKind::FeedForward),
            queue_timeout: Duration::from_millis(100),
            in_flight_bytes_max: "1mb".parse().expect("a size"),
            retry_after_min: Duration::from_millis(500),
            retry_after_max: Duration::from_millis(1_500),
            signals: vec![signal("pool systemic 10 5s"), signal("lag per_tenant 10 5s")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_and_written_as_a_line() {
        let line = "commit_lag per_tenant 2.5 30s";
        let words = SignalWords::try_from(line.to_owned()).expect("a declaration");
        assert_eq!(words.0.kind, Kind::PerTenant);
        assert_eq!(words.0.expiry, Duration::from_secs(30));
        assert_eq!(String::from(words), line);
    }

    #[test]
    fn lines_that_declare_nothing_say_what_would() {
        for (line, complaint) in [
            ("lag", "expected `name systemic|per_tenant full expiry`"),
            ("lag global 1 1s", "expected `name systemic|per_tenant full expiry`"),
            ("lag systemic x 1s", "expected `name systemic|per_tenant full expiry`"),
            ("lag systemic 1 1", "expected `name systemic|per_tenant full expiry`"),
            ("lag systemic 0 1s", "expected something else: the full value of a signal must"),
            ("lag systemic NaN 1s", "expected something else: the full value of a signal must"),
            ("cpu systemic 1 1s", "expected something else: `cpu` is the name of a built-in"),
            ("lag systemic 1 0s", "expected something else: a signal counts for longer than"),
        ] {
            let refused = SignalWords::try_from(line.to_owned()).expect_err(line);
            assert!(refused.starts_with(complaint), "{line}: {refused}");
        }
    }

    #[test]
    fn words_read_back() {
        for tier in Tier::ALL {
            assert_eq!(TierWord::try_from(tier.name().to_owned()).map(|word| word.0), Ok(tier));
        }
        assert!(TierWord::try_from("t6".to_owned()).is_err());
        for kind in RejectorKind::ALL {
            let word = RejectorWord::try_from(kind.name().to_owned());
            assert_eq!(word.map(String::from).as_deref(), Ok(kind.name()));
        }
        assert!(RejectorWord::try_from("dice".to_owned()).is_err());
    }

    #[test]
    fn signals_that_contradict_each_other_are_told() {
        let twice = LoadOptions { signals: Vec::new(), ..LoadOptions::off() };
        let signal = LoadOptions::off().signals[0].clone();
        let twice = LoadOptions { signals: vec![signal.clone(), signal], ..twice };
        assert_eq!(twice.declared().err().as_deref(), Some("signal `pool` is declared twice"));
    }
}
