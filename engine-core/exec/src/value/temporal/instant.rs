//! Gremlin's steps over points in time: `asDate()`, `dateAdd()`, `dateDiff()`.

use super::super::error::Error;
use super::from_epoch_millis;
use jiff::{SignedDuration, Timestamp};
use tidegraph_plan::DateUnit;
use tidegraph_types::Value;
use tidegraph_types::temporal::parse_instant;

/// Returns the point in time of a value, or the beginning of a date in UTC.
fn instant(name: &'static str, value: &Value) -> Result<Timestamp, Error> {
    let found = match value {
        Value::DateTime(at) => Some(*at),
        Value::Temporal(temporal) => temporal.instant(),
        _ => None,
    };
    found.ok_or_else(|| Error::of_type(name, "a date", value))
}

/// `asDate()`
pub(crate) fn as_date(name: &'static str, value: &Value) -> Result<Value, Error> {
    match value {
        Value::String(text) => parse_instant(text)
            .map(Value::DateTime)
            .ok_or_else(|| Error::argument(name, "cannot read an ISO 8601 date from the string", value)),
        Value::DateTime(_) | Value::Temporal(_) => instant(name, value).map(Value::DateTime),
        other if other.as_i64().is_some() => from_epoch_millis(name, other),
        other => Err(Error::of_type(name, "an ISO 8601 string, whole milliseconds or a date", other)),
    }
}

/// `dateAdd()`
pub(crate) fn date_add(
    unit: DateUnit,
    name: &'static str,
    value: &Value,
    count: &Value,
) -> Result<Value, Error> {
    let at = instant(name, value)?;
    let count_of = count.as_i64().ok_or_else(|| Error::of_type(name, "an integer", count))?;
    let seconds = match unit {
        DateUnit::Second => 1,
        DateUnit::Minute => 60,
        DateUnit::Hour => 3_600,
        DateUnit::Day => 86_400,
    };
    let moved = count_of
        .checked_mul(seconds)
        .and_then(|seconds| at.checked_add(SignedDuration::from_secs(seconds)).ok());
    moved.map(Value::DateTime).ok_or_else(|| {
        Error::argument(name, "leaves the range of dates (years -9999 to 9999) with the number", count)
    })
}

/// `dateDiff()`: null stands for the beginning of 1970.
pub(crate) fn date_diff(name: &'static str, value: &Value, other: &Value) -> Result<Value, Error> {
    let at = instant(name, value)?;
    let other = if other.is_null() { Timestamp::UNIX_EPOCH } else { instant(name, other)? };
    Ok(Value::Long(at.as_millisecond() - other.as_millisecond()))
}
