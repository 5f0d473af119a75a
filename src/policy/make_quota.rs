//! Makes a quota of a limit, a window and how it is counted.
//!
//! What stands beside the limit and can mean nothing there is refused; what is only a default of
//! the rule or tenant is passed over where it means nothing.

use jiff::tz::TimeZone;

use crate::limit::{Algorithm, Align, Quota, QuotaError};
use crate::time::Duration;

use super::calendar::{Calendar, CalendarUnit};
use super::document::{DefaultsDocument, LimitDocument, RuleDocument};
use super::make::spelled;
use super::rule::QuotaKind;
use super::words::{BurstMode, Count, LimitWord, WindowWord};

/// The field that is wrong, and why.
pub(super) type QuotaProblem = (&'static str, String);

/// A credit refills in ten windows; as nanoseconds these must fit 64 bits.
const CREDIT_WINDOW_MAX: Duration = Duration::from_secs(3_652 * 86_400);

/// How limits are counted that do not say.
#[derive(Clone, Debug)]
pub(super) struct Habits {
    algorithm: Algorithm,
    align: Align,
    burst_mode: BurstMode,
    zone: TimeZone,
}

impl Habits {
    pub(super) fn of_tenant(defaults: &DefaultsDocument) -> Self {
        Self {
            algorithm: spelled(&defaults.algorithm).unwrap_or_default(),
            align: spelled(&defaults.align).unwrap_or_default(),
            burst_mode: spelled(&defaults.burst_mode).unwrap_or(BurstMode::Additive),
            zone: defaults.time_zone.0.clone().map_or(TimeZone::UTC, |zone| zone.0),
        }
    }

    /// What a rule says holds for its list.
    pub(super) fn over(&self, rule: &RuleDocument) -> Self {
        Self {
            algorithm: spelled(&rule.algorithm).unwrap_or(self.algorithm),
            align: spelled(&rule.align).unwrap_or(self.align),
            burst_mode: spelled(&rule.burst_mode).unwrap_or(self.burst_mode),
            zone: rule.time_zone.0.clone().map_or_else(|| self.zone.clone(), |zone| zone.0),
        }
    }
}

pub(super) fn make_quota(
    document: &LimitDocument,
    habits: &Habits,
) -> Result<QuotaKind, QuotaProblem> {
    let limit = match document.limit.0 {
        Some(LimitWord::Count(limit)) => limit,
        Some(LimitWord::Unlimited) => return unlimited(document),
        None => return Err(wrong("limit", "a limit is missing: a whole number, or unlimited")),
    };
    match document.window.0 {
        Some(WindowWord::Span(window)) => plain(document, habits, limit, window),
        Some(WindowWord::Calendar(unit)) => calendar(document, habits, limit, unit),
        None => {
            let text = "a limit needs a window such as 500ms, 30s, 5m, 1h, 1d, day or month";
            Err(wrong("window", text))
        }
    }
}

fn unlimited(document: &LimitDocument) -> Result<QuotaKind, QuotaProblem> {
    let beside = [("window", document.window.is_given()), ("burst", document.burst.is_given())];
    match beside.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(wrong(field, "what is unlimited has neither window nor burst")),
        None => Ok(QuotaKind::Unlimited),
    }
}

fn plain(
    document: &LimitDocument,
    habits: &Habits,
    limit: u64,
    window: Duration,
) -> Result<QuotaKind, QuotaProblem> {
    if document.time_zone.is_given() {
        let text = "only a calendar window (day, week, month, year) has a time zone";
        return Err(wrong("time_zone", text));
    }
    let algorithm = spelled(&document.algorithm).unwrap_or(habits.algorithm);
    let align = spelled(&document.align);
    if align.is_some() && algorithm != Algorithm::FixedWindow {
        let text = format!("only fixed-window is aligned, and this is {}", algorithm.name());
        return Err(wrong("align", text));
    }
    let quota = Quota::new(algorithm, limit, window)
        .map_err(from_quota)?
        .with_align(align.unwrap_or(habits.align));
    let burst = burst(document);
    let is_credit = spelled(&document.burst_mode).unwrap_or(habits.burst_mode) == BurstMode::Credit;
    if !is_credit || (burst == 0 && !document.burst_mode.is_given()) {
        return Ok(QuotaKind::Plain(quota.with_burst(burst).map_err(from_quota)?));
    }
    if burst == 0 {
        return Err(wrong("burst_mode", "a credit needs a burst above 0"));
    }
    if algorithm == Algorithm::Gcra {
        return Err(wrong("burst_mode", "the burst of gcra is the size of its bucket, no credit"));
    }
    if window > CREDIT_WINDOW_MAX {
        return Err(wrong("window", "a credit refills in ten windows, which are too long here"));
    }
    quota.with_burst(burst).map_err(from_quota)?;
    Ok(QuotaKind::Credit { quota, burst })
}

fn calendar(
    document: &LimitDocument,
    habits: &Habits,
    limit: u64,
    unit: CalendarUnit,
) -> Result<QuotaKind, QuotaProblem> {
    let algorithm = spelled(&document.algorithm);
    if algorithm.is_some_and(|algorithm| algorithm != Algorithm::FixedWindow) {
        let text = format!("a {} of the calendar is a fixed-window", unit.name());
        return Err(wrong("algorithm", text));
    }
    if document.align.is_given() {
        return Err(wrong("align", format!("a {} begins where the calendar says", unit.name())));
    }
    if spelled(&document.burst_mode) == Some(BurstMode::Credit) {
        return Err(wrong("burst_mode", "a calendar window has no credit"));
    }
    let quota = Quota::new(Algorithm::FixedWindow, limit, Duration::from_secs(86_400))
        .and_then(|quota| quota.with_burst(burst(document)))
        .map_err(from_quota)?;
    let zone = document.time_zone.0.clone().map_or_else(|| habits.zone.clone(), |zone| zone.0);
    Ok(QuotaKind::Calendar { quota, calendar: Calendar { unit, zone } })
}

fn burst(document: &LimitDocument) -> u64 {
    document.burst.0.map_or(0, |Count(burst)| burst)
}

fn wrong(field: &'static str, text: impl Into<String>) -> QuotaProblem {
    (field, text.into())
}

fn from_quota(err: QuotaError) -> QuotaProblem {
    let field = match err {
        QuotaError::WindowZero | QuotaError::WindowTooLong => "window",
        QuotaError::LimitTooLarge | QuotaError::LogEntriesTooFew => "limit",
        QuotaError::BurstTooLarge | QuotaError::BurstTooSlow => "burst",
    };
    (field, err.to_string())
}
