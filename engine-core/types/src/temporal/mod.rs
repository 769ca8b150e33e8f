//! Dates, times and durations, as openCypher has them.
//!
//! A point in time in UTC is [`Value::DateTime`](crate::Value::DateTime), which both languages share. The other types
//! are here: a [`Temporal`] is a date, a time of day with or without an offset, a date and time without a zone, a point
//! in time with its zone, or a [`Duration`].

mod duration;
mod read;
mod write;

pub use duration::{Duration, Part};
pub use read::{
    Malformed, ZonedText, day_of_quarter, offset_of_seconds, ordinal_date, parse_date, parse_instant,
    parse_local_date_time, parse_local_time, parse_time, parse_zone, parse_zoned, quarter_date, timestamp_of,
    week_date, week_parts, year_of, zoned_from_local,
};
pub use write::{Iso, offset_text};

use crate::Value;
use jiff::civil::{self, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Nanoseconds of a second.
pub const NANOS_OF_SECOND: i64 = 1_000_000_000;
/// Seconds of a day without a change of the clock.
pub const SECONDS_OF_DAY: i64 = 86_400;

/// A value of a temporal type other than [`Value::DateTime`](crate::Value::DateTime). Years are -9999 to 9999.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Temporal {
    /// A date.
    Date(civil::Date),
    /// A time of day.
    LocalTime(civil::Time),
    /// A time of day with an offset from UTC.
    Time(OffsetTime),
    /// A date and a time of day, without a zone.
    LocalDateTime(civil::DateTime),
    /// A point in time and the zone that it is told in, which is not UTC. [`zoned`] decides.
    DateTime(Arc<Zoned>),
    /// A length of time.
    Duration(Arc<Duration>),
}

/// A time of day with an offset from UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OffsetTime {
    /// The time of day where the offset holds.
    pub time: civil::Time,
    /// The offset, at most 18 hours.
    #[serde(serialize_with = "write_offset", deserialize_with = "read_offset")]
    pub offset: Offset,
}

fn write_offset<S: Serializer>(offset: &Offset, serializer: S) -> Result<S::Ok, S::Error> {
    offset.seconds().serialize(serializer)
}

fn read_offset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Offset, D::Error> {
    Offset::from_seconds(i32::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

impl OffsetTime {
    /// Returns the nanoseconds since midnight in UTC; negative on the day before.
    #[must_use]
    pub fn utc_nanos(self) -> i64 {
        nanos_of_day(self.time) - i64::from(self.offset.seconds()) * NANOS_OF_SECOND
    }
}

impl Temporal {
    /// Returns the name of the type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Date(_) => "date",
            Self::LocalTime(_) => "local time",
            Self::Time(_) => "time",
            Self::LocalDateTime(_) => "local datetime",
            Self::DateTime(_) => "datetime",
            Self::Duration(_) => "duration",
        }
    }

    /// Returns the bytes outside the value itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::DateTime(_) => size_of::<Zoned>() + 16,
            Self::Duration(_) => size_of::<Duration>() + 16,
            _ => 0,
        }
    }

    /// Returns the instant at which the value begins in UTC, for languages that have points in time only; `None` for
    /// times of day and durations, and outside the range of points in time.
    #[must_use]
    pub fn instant(&self) -> Option<Timestamp> {
        match self {
            Self::Date(date) => Offset::UTC.to_timestamp(date.to_datetime(civil::Time::midnight())).ok(),
            Self::LocalDateTime(local) => Offset::UTC.to_timestamp(*local).ok(),
            Self::DateTime(zoned) => Some(zoned.timestamp()),
            Self::LocalTime(_) | Self::Time(_) | Self::Duration(_) => None,
        }
    }

    /// Compares two values as `<` does: values of one type in time; `None` for durations, whose months and days have
    /// no one length, and for different types.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Duration(_), _) | (_, Self::Duration(_)) => None,
            _ if self.rank() == other.rank() => Some(self.order(other)),
            _ => None,
        }
    }

    /// Position of the type in the total order of openCypher, behind paths and before strings.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::DateTime(_) => DATE_TIME_RANK,
            Self::LocalDateTime(_) => DATE_TIME_RANK + 1,
            Self::Date(_) => DATE_TIME_RANK + 2,
            Self::Time(_) => DATE_TIME_RANK + 3,
            Self::LocalTime(_) => DATE_TIME_RANK + 4,
            Self::Duration(_) => DATE_TIME_RANK + 5,
        }
    }

    /// Compares two values in the total order.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::LocalTime(a), Self::LocalTime(b)) => a.cmp(b),
            (Self::Time(a), Self::Time(b)) => {
                (a.utc_nanos(), a.offset.seconds()).cmp(&(b.utc_nanos(), b.offset.seconds()))
            }
            (Self::LocalDateTime(a), Self::LocalDateTime(b)) => a.cmp(b),
            (Self::DateTime(a), Self::DateTime(b)) => place_of_zoned(a).cmp(&place_of_zoned(b)),
            (Self::Duration(a), Self::Duration(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Rank of points in time among the types of openCypher's total order; the other temporal types follow.
pub(crate) const DATE_TIME_RANK: u8 = 9;

/// A point in time as it is ordered: by instant, then from west to east, then by the name of the zone. Two values at one
/// instant in different zones are not equal.
pub(crate) type Place<'a> = (Timestamp, i32, &'a str);

fn place_of_zoned(zoned: &Zoned) -> Place<'_> {
    (zoned.timestamp(), zoned.offset().seconds(), zoned.time_zone().iana_name().unwrap_or_default())
}

/// Returns a point in time, in UTC or another zone, as it is ordered; `None` for other values.
pub(crate) fn place(value: &Value) -> Option<Place<'_>> {
    match value {
        Value::DateTime(at) => Some((*at, 0, "")),
        Value::Temporal(Temporal::DateTime(zoned)) => Some(place_of_zoned(zoned)),
        _ => None,
    }
}

impl Hash for Temporal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Date(date) => date.hash(state),
            Self::LocalTime(time) => time.hash(state),
            Self::Time(time) => (time.utc_nanos(), time.offset.seconds()).hash(state),
            Self::LocalDateTime(local) => local.hash(state),
            Self::DateTime(zoned) => place_of_zoned(zoned).hash(state),
            Self::Duration(duration) => duration.hash(state),
        }
    }
}

/// Makes a point in time. In UTC it is a [`Value::DateTime`], in any other zone it keeps the zone.
#[must_use]
pub fn zoned(zoned: Zoned) -> Value {
    let is_utc = match zoned.time_zone().iana_name() {
        Some(name) => name == "UTC",
        None => zoned.offset() == Offset::UTC,
    };
    if is_utc {
        Value::DateTime(zoned.timestamp())
    } else {
        Value::Temporal(Temporal::DateTime(Arc::new(zoned)))
    }
}

/// Returns a point in time with its zone; `None` for other values.
#[must_use]
pub fn as_zoned(value: &Value) -> Option<Zoned> {
    match value {
        Value::DateTime(at) => Some(at.to_zoned(TimeZone::UTC)),
        Value::Temporal(Temporal::DateTime(zoned)) => Some((**zoned).clone()),
        _ => None,
    }
}

/// Returns the nanoseconds of a time since midnight.
#[must_use]
pub fn nanos_of_day(time: civil::Time) -> i64 {
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    seconds * NANOS_OF_SECOND + i64::from(time.subsec_nanosecond())
}

/// Returns the time of a number of nanoseconds since midnight, counted on from midnight again after a day.
#[must_use]
pub fn time_of_nanos(nanos: i128) -> civil::Time {
    const DAY: i128 = SECONDS_OF_DAY as i128 * NANOS_OF_SECOND as i128;
    let nanos = nanos.rem_euclid(DAY) as i64;
    let (seconds, nanos) = (nanos / NANOS_OF_SECOND, (nanos % NANOS_OF_SECOND) as i32);
    civil::time((seconds / 3600) as i8, (seconds / 60 % 60) as i8, (seconds % 60) as i8, nanos)
}

const EPOCH: civil::Date = civil::date(1970, 1, 1);

/// Returns the days of a date since 1970-01-01.
#[must_use]
pub fn epoch_days(date: civil::Date) -> i64 {
    date.duration_since(EPOCH).as_hours() / 24
}

/// Returns the date a number of days after 1970-01-01; `None` outside the years -9999 to 9999.
#[must_use]
pub fn date_of_epoch_days(days: i64) -> Option<civil::Date> {
    add_days(EPOCH, days)
}

/// Returns the date some days later; `None` outside the years -9999 to 9999.
#[must_use]
pub fn add_days(date: civil::Date, days: i64) -> Option<civil::Date> {
    date.checked_add(jiff::Span::new().try_days(days).ok()?).ok()
}

/// Returns the date some months later, on the last day of the month if the month is too short; `None` outside the
/// years -9999 to 9999.
#[must_use]
pub fn add_months(date: civil::Date, months: i64) -> Option<civil::Date> {
    date.checked_add(jiff::Span::new().try_months(months).ok()?).ok()
}

/// Returns the seconds of a local date and time since 1970-01-01T00:00, rounded down, and the nanoseconds after them.
#[must_use]
pub fn epoch_seconds(local: civil::DateTime) -> (i64, i32) {
    let nanos = nanos_of_day(local.time());
    (epoch_days(local.date()) * SECONDS_OF_DAY + nanos / NANOS_OF_SECOND, (nanos % NANOS_OF_SECOND) as i32)
}

/// Returns the local date and time of a number of seconds since 1970-01-01T00:00 and the nanoseconds after them; `None`
/// outside the years -9999 to 9999 and for nanoseconds outside a second.
#[must_use]
pub fn local_of_epoch_seconds(seconds: i64, nanos: i32) -> Option<civil::DateTime> {
    if !(0..NANOS_OF_SECOND).contains(&i64::from(nanos)) {
        return None;
    }
    let date = date_of_epoch_days(seconds.div_euclid(SECONDS_OF_DAY))?;
    let within =
        i128::from(seconds.rem_euclid(SECONDS_OF_DAY)) * i128::from(NANOS_OF_SECOND) + i128::from(nanos);
    Some(date.to_datetime(time_of_nanos(within)))
}

/// Returns the seconds of a point in time since 1970, rounded down, and the nanoseconds after them.
#[must_use]
pub fn seconds_and_nanos(at: Timestamp) -> (i64, i32) {
    // jiff gives both parts one sign.
    let (seconds, nanos) = (at.as_second(), at.subsec_nanosecond());
    if nanos < 0 { (seconds - 1, nanos + NANOS_OF_SECOND as i32) } else { (seconds, nanos) }
}

/// Returns the quarter of a month, 1 to 4.
#[must_use]
pub fn quarter_of(month: i8) -> i8 {
    (month - 1) / 3 + 1
}

/// Returns the number of a weekday, 1 (Monday) to 7.
#[must_use]
pub fn number_of_weekday(day: Weekday) -> i8 {
    day.to_monday_one_offset()
}

#[cfg(test)]
mod tests;
