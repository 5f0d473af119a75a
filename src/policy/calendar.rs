//! Days, weeks, months and years of a time zone, as the periods of a calendar window.
//!
//! A day of a zone may have 23 or 25 hours; a week begins on Monday. Periods follow each other
//! without gap or overlap, so that a moment lies in exactly one.

use jiff::tz::TimeZone;

use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CalendarUnit {
    Day,
    Week,
    Month,
    Year,
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
    /// The period that `now` lies in.
    pub(crate) fn period(&self, now: Timestamp) -> Period {
        Period { start: now, end: now }
    }
}
