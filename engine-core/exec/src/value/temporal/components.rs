//! Components: `date.year`, `datetime.epochMillis`, `duration.minutesOfHour`.

use super::super::error::Error;
use super::Parts;
use jiff::Timestamp;
use jiff::civil;
use jiff::tz::Offset;
use tidegraph_types::temporal::{self, Duration, NANOS_OF_SECOND};
use tidegraph_types::{Temporal, Value};

/// Returns a component of a temporal value.
pub(crate) fn component(value: &Value, key: &str) -> Result<Value, Error> {
    let found = match value {
        Value::Temporal(Temporal::Duration(duration)) => of_duration(duration, key).map(Value::Long),
        _ => Parts::of(value).and_then(|parts| {
            let at = temporal::as_zoned(value).map(|zoned| zoned.timestamp());
            of_parts(&parts, at, key)
        }),
    };
    found.ok_or_else(|| {
        let key = Value::string(key);
        Error::argument(format!("a {}", value.type_name()), "has no such component", &key)
    })
}

fn of_parts(parts: &Parts, at: Option<Timestamp>, key: &str) -> Option<Value> {
    let number = parts.date.and_then(|date| of_date(date, key));
    let number = number.or_else(|| parts.time.and_then(|time| of_time(time, key)));
    let number = number.or_else(|| at.and_then(|at| of_instant(at, key)));
    match number {
        Some(number) => Some(Value::Long(number)),
        None => of_zone(parts, key),
    }
}

fn of_date(date: civil::Date, key: &str) -> Option<i64> {
    Some(match key {
        "year" => i64::from(date.year()),
        "quarter" => i64::from(temporal::quarter_of(date.month())),
        "month" => i64::from(date.month()),
        "week" => temporal::week_parts(date).1,
        "weekYear" => temporal::week_parts(date).0,
        "day" => i64::from(date.day()),
        "ordinalDay" => i64::from(date.day_of_year()),
        "weekDay" | "dayOfWeek" => temporal::week_parts(date).2,
        "dayOfQuarter" => temporal::day_of_quarter(date),
        _ => return None,
    })
}

fn of_time(time: civil::Time, key: &str) -> Option<i64> {
    let nanos = i64::from(time.subsec_nanosecond());
    Some(match key {
        "hour" => i64::from(time.hour()),
        "minute" => i64::from(time.minute()),
        "second" => i64::from(time.second()),
        "millisecond" => nanos / 1_000_000,
        "microsecond" => nanos / 1_000,
        "nanosecond" => nanos,
        _ => return None,
    })
}

fn of_instant(at: Timestamp, key: &str) -> Option<i64> {
    Some(match key {
        "epochSeconds" => temporal::seconds_and_nanos(at).0,
        "epochMillis" => at.as_nanosecond().div_euclid(1_000_000) as i64,
        _ => return None,
    })
}

fn of_zone(parts: &Parts, key: &str) -> Option<Value> {
    let offset: Offset = parts.offset?;
    Some(match key {
        "timezone" => {
            match parts.zone.as_ref().and_then(|zone| zone.iana_name()).filter(|name| *name != "UTC") {
                Some(name) => Value::from(name),
                None => Value::string(temporal::offset_text(offset)),
            }
        }
        "offset" => Value::string(temporal::offset_text(offset)),
        "offsetMinutes" => Value::Long(i64::from(offset.seconds() / 60)),
        "offsetSeconds" => Value::Long(i64::from(offset.seconds())),
        _ => return None,
    })
}

fn of_duration(duration: &Duration, key: &str) -> Option<i64> {
    let (months, days, seconds) = (duration.months(), duration.days(), duration.seconds());
    let nanos = i64::from(duration.subsec_nanos());
    let total = |unit: i128| i64::try_from(duration.nanos().div_euclid(unit)).unwrap_or(i64::MAX);
    Some(match key {
        "years" => months / 12,
        "quarters" => months / 3,
        "months" => months,
        "weeks" => days / 7,
        "days" => days,
        "hours" => seconds / 3600,
        "minutes" => seconds / 60,
        "seconds" => seconds,
        "milliseconds" => total(1_000_000),
        "microseconds" => total(1_000),
        "nanoseconds" => total(1),
        "quartersOfYear" => months / 3 % 4,
        "monthsOfQuarter" => months % 3,
        "monthsOfYear" => months % 12,
        "daysOfWeek" => days % 7,
        "minutesOfHour" => seconds / 60 % 60,
        "secondsOfMinute" => seconds % 60,
        "millisecondsOfSecond" => nanos * 1_000 / NANOS_OF_SECOND,
        "microsecondsOfSecond" => nanos / 1_000,
        "nanosecondsOfSecond" => nanos,
        _ => return None,
    })
}
