//! Days, weeks, months and years of a time zone, as the periods of a calendar window.
//!
//! A day of a zone may have 23 or 25 hours, or begin at one o'clock; a week begins on Monday.
//! Periods follow each other without gap or overlap, so a moment lies in exactly one.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CalendarUnit {
    Day,
    Week,
    Month,
    Year,
}

impl CalendarUnit {
    const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Year];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == word)
    }

    /// The first day of the period that `date` lies in.
    fn first(self, date: Date) -> Date {
        match self {
            Self::Day => date,
            Self::Week => {
                let days = i64::from(date.weekday().to_monday_zero_offset());
                date.saturating_sub(days.days())
            }
            Self::Month => date.first_of_month(),
            Self::Year => date.first_of_year(),
        }
    }

    fn span(self) -> Span {
        match self {
            Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::Month => 1.month(),
            Self::Year => 1.year(),
        }
    }
}

/// A unit in a time zone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calendar {
    pub(crate) unit: CalendarUnit,
    pub(crate) zone: TimeZone,
}

/// From `start` to just before `end`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Period {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl Calendar {
    /// The period that `now` lies in; one that reaches beyond the year 9999 does not end.
    pub(crate) fn period(&self, now: Timestamp) -> Period {
        let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
        let first = self.unit.first(moment.to_zoned_datetime(self.zone.clone()).date());
        let start = self.begin(first).unwrap_or(Timestamp::EPOCH);
        let next = first.checked_add(self.unit.span()).ok();
        let end = next.and_then(|next| self.begin(next)).unwrap_or(Timestamp::MAX);
        Period { start, end }
    }

    /// The first moment of a day; what lies before 1970 begins then.
    fn begin(&self, date: Date) -> Option<Timestamp> {
        let begin = date.to_zoned_datetime(self.zone.clone()).ok()?.timestamp().as_microsecond();
        Some(Timestamp::from_micros(u64::try_from(begin).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn calendar(unit: CalendarUnit, zone: &str) -> Calendar {
        Calendar { unit, zone: TimeZone::get(zone).expect("a zone") }
    }

    fn at(text: &str) -> Timestamp {
        let moment: jiff::Timestamp = text.parse().expect("a moment");
        Timestamp::from_micros(moment.as_microsecond() as u64)
    }

    #[test]
    fn period_is_that_of_the_zone() {
        let rows = [
            (CalendarUnit::Day, "UTC", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"),
            (CalendarUnit::Week, "UTC", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"),
            (CalendarUnit::Month, "UTC", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            (CalendarUnit::Year, "UTC", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            (CalendarUnit::Day, "Asia/Tokyo", "2026-11-30T15:00:00Z", "2026-12-01T15:00:00Z"),
            (
                CalendarUnit::Month,
                "America/New_York",
                "2026-11-01T04:00:00Z",
                "2026-12-01T05:00:00Z",
            ),
        ];
        for (unit, zone, start, end) in rows {
            let period = calendar(unit, zone).period(at("2026-11-30T23:30:00Z"));
            assert_eq!(period, Period { start: at(start), end: at(end) }, "{unit:?} {zone}");
        }
    }

    #[test]
    fn periods_follow_each_other_without_gap() {
        for zone in ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia"] {
            for unit in CalendarUnit::ALL {
                let calendar = calendar(unit, zone);
                let mut period = calendar.period(at("2011-01-01T12:00:00Z"));
                for _ in 0..1_500 {
                    let next = calendar.period(period.end);
                    assert_eq!(next.start, period.end, "{unit:?} {zone}");
                    assert_eq!(calendar.period(next.end - Duration::from_micros(1)), next);
                    period = next;
                }
            }
        }
    }

    #[test]
    fn end_of_time_has_a_period() {
        for unit in CalendarUnit::ALL {
            let period = calendar(unit, "UTC").period(Timestamp::MAX);
            assert_eq!(period.end, Timestamp::MAX);
            assert_eq!(calendar(unit, "UTC").period(Timestamp::EPOCH).start, Timestamp::EPOCH);
        }
    }
}
