//! Windows of a calendar against the calendar itself, day by day through changes of the clocks.
//!
//! The reference keeps every admitted request with its moment, and counts those whose date in the
//! zone is of the same day, week, month or year. Seeds are fixed.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};

use crate::time::{Duration, Timestamp};

use super::reference::Random;
use super::{Algorithm, Cost, Quota, State, check, peek, refund};

#[derive(Clone, Copy, Debug)]
enum Unit {
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    fn first(self, date: Date) -> Date {
        match self {
            Self::Day => date,
            Self::Week => {
                let past = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_sub(past.days()).expect("within the calendar")
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

fn date(zone: &TimeZone, now: Timestamp) -> Date {
    let moment = jiff::Timestamp::from_microsecond(now.as_micros() as i64).expect("in range");
    moment.to_zoned_datetime(zone.clone()).date()
}

fn start(zone: &TimeZone, date: Date) -> Timestamp {
    let zoned = date.to_zoned_datetime(zone.clone()).expect("a day of the zone");
    Timestamp::from_micros(zoned.timestamp().as_microsecond() as u64)
}

fn period(zone: &TimeZone, unit: Unit, now: Timestamp) -> (Timestamp, Timestamp) {
    let first = unit.first(date(zone, now));
    let next = first.checked_add(unit.span()).expect("within the calendar");
    (start(zone, first), start(zone, next))
}

fn template(limit: u64) -> Quota {
    Quota::new(Algorithm::FixedWindow, limit, Duration::from_secs(86_400)).expect("a valid quota")
}

/// New York, Berlin, half an hour at Lord Howe, a day that Samoa left out, and none.
const ZONES: [&str; 5] =
    ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "UTC"];

#[test]
fn every_answer_counts_the_dates_of_one_period() {
    let hour_us = 3_600_000_000;
    for (seed, name) in (0..).zip(ZONES) {
        let zone = TimeZone::get(name).expect("a zone of the bundled ones");
        for unit in [Unit::Day, Unit::Week, Unit::Month, Unit::Year] {
            let mut random = Random::seeded(seed);
            // 2011-09-30, so that within a year all have changed their clocks, and Samoa its day.
            let mut now = Timestamp::from_micros(1_317_340_800_000_000);
            let limit = 40;
            let mut state: Option<State> = None;
            let mut admitted: Vec<(Date, u64)> = Vec::new();
            for _ in 0..4_000 {
                now = now + Duration::from_micros(random.below(5 * hour_us));
                let (begins, ends) = period(&zone, unit, now);
                let quota = template(limit).during(begins, ends);
                let state = state.get_or_insert_with(|| State::new(&quota, now));
                let today = unit.first(date(&zone, now));
                admitted.retain(|(day, _)| *day == today);
                let used: u64 = admitted.iter().map(|(_, cost)| cost).sum();
                let cost = random.below(12);
                let decision = check(&quota, state, Cost(cost), now);
                let allowed = cost == 0 || used + cost <= limit;
                assert_eq!(decision.is_allowed(), allowed, "{name} {unit:?} {now:?}");
                let spent = if allowed { cost } else { 0 };
                assert_eq!(decision.remaining, limit - used - spent, "{name} {unit:?} {now:?}");
                assert_eq!(decision.reset_after, ends.since(now));
                if !allowed {
                    assert_eq!(decision.retry_after(), Some(ends.since(now)));
                }
                admitted.push((today, spent));
                if random.below(20) == 0 {
                    let back = refund(state, Cost(3), now);
                    assert_eq!(back, (used + spent).min(3));
                    admitted = vec![(today, used + spent - back)];
                }
            }
        }
    }
}

#[test]
fn days_when_clocks_change_have_23_and_25_hours() {
    let zone = TimeZone::get("Europe/Berlin").expect("a zone of the bundled ones");
    let hours = |year, month, day| {
        let noon = start(&zone, jiff::civil::date(year, month, day)) + Duration::from_secs(43_200);
        let (begins, ends) = period(&zone, Unit::Day, noon);
        let quota = template(1).during(begins, ends);
        let mut state = State::new(&quota, begins);
        assert!(check(&quota, &mut state, Cost::ONE, begins).is_allowed());
        let last = ends - Duration::from_micros(1);
        assert!(!peek(&quota, &state, Cost::ONE, last).is_allowed());
        assert_eq!(state.expires_at(), ends);
        quota.window().as_micros() / 3_600_000_000
    };
    assert_eq!([hours(2024, 3, 31), hours(2024, 10, 27), hours(2024, 6, 1)], [23, 25, 24]);
}

/// A changed zone or unit is a changed limit: what was spent stays, in the period of now.
#[test]
fn count_is_carried_over_into_another_period_and_alignment() {
    let utc = TimeZone::UTC;
    let tokyo = TimeZone::get("Asia/Tokyo").expect("a zone of the bundled ones");
    let now = Timestamp::from_micros(1_700_000_000_000_000);
    let quota = |zone: &TimeZone, unit| {
        let (begins, ends) = period(zone, unit, now);
        template(10).during(begins, ends)
    };
    let day = quota(&utc, Unit::Day);
    let mut state = State::new(&day, now);
    check(&day, &mut state, Cost(4), now);
    let others = [quota(&tokyo, Unit::Day), quota(&utc, Unit::Month), template(10), day];
    for other in others {
        assert_eq!(peek(&other, &state, Cost::ZERO, now).remaining, 6, "{other:?}");
        check(&other, &mut state, Cost::ZERO, now);
        assert!(state.is_counted_by(&other));
        assert_eq!(state.used(now), 4);
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        let read = State::decode(&bytes).expect("what was written");
        assert_eq!(peek(&other, &read, Cost::ZERO, now).remaining, 6);
    }
}
