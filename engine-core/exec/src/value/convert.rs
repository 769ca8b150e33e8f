//! Conversions between types, and points in time.

use super::error::Error;
use super::text::to_text;
use jiff::civil;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tidegraph_plan::Function;
use tidegraph_types::Value;

/// 2^63 as a double; 64-bit integers are smaller.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// `toInteger`: truncates; null for text that is no number and for numbers outside of 64 bits.
pub(crate) fn to_integer(name: &'static str, value: &Value) -> Result<Value, Error> {
    match value {
        Value::Bool(v) => Ok(Value::Long(i64::from(*v))),
        Value::String(text) => {
            let text = text.trim();
            Ok(match text.parse::<i64>() {
                Ok(int) => Value::Long(int),
                Err(_) => parse_float(text).map_or(Value::Null, truncate),
            })
        }
        other => match (other.as_i64(), other.as_f64()) {
            (Some(int), _) => Ok(Value::Long(int)),
            (None, Some(float)) => Ok(truncate(float)),
            (None, None) => Err(Error::of_type(name, "a number, string or boolean", value)),
        },
    }
}

fn truncate(float: f64) -> Value {
    let whole = float.trunc();
    if (-TWO_63..TWO_63).contains(&whole) { Value::Long(whole as i64) } else { Value::Null }
}

/// Parses decimal text only: `inf`, `nan` and the like, which Rust accepts, are no numbers in a query.
fn parse_float(text: &str) -> Option<f64> {
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    if numeric { text.parse().ok() } else { None }
}

/// `toFloat`: null for text that is no number.
pub(crate) fn to_float(name: &'static str, value: &Value) -> Result<Value, Error> {
    match value {
        Value::String(text) => Ok(parse_float(text.trim()).map_or(Value::Null, Value::Double)),
        other => {
            other.as_f64().map(Value::Double).ok_or_else(|| Error::of_type(name, "a number or string", value))
        }
    }
}

/// `toBoolean`: null for text that is neither `true` nor `false` (in any case).
pub(crate) fn to_boolean(name: &'static str, value: &Value) -> Result<Value, Error> {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) => {
            let text = text.trim();
            Ok(if text.eq_ignore_ascii_case("true") {
                Value::Bool(true)
            } else if text.eq_ignore_ascii_case("false") {
                Value::Bool(false)
            } else {
                Value::Null
            })
        }
        other => match other.as_i64() {
            Some(int) => Ok(Value::Bool(int != 0)),
            None => Err(Error::of_type(name, "a boolean, string or integer", value)),
        },
    }
}

/// `toString`.
pub(crate) fn to_string(name: &'static str, value: &Value) -> Result<Value, Error> {
    to_text(value)
        .map(Value::String)
        .ok_or_else(|| Error::of_type(name, "a number, boolean, string or datetime", value))
}

/// `toIntegerOrNull` and its kin: null for a value of another type. `toIntegerList` and its kin: a list with such a value
/// for each item.
pub(crate) fn leniently(function: Function, name: &'static str, value: &Value) -> Result<Value, Error> {
    let convert = match function {
        Function::ToIntegerOrNull | Function::ToIntegerList => to_integer,
        Function::ToFloatOrNull | Function::ToFloatList => to_float,
        Function::ToTextOrNull | Function::ToTextList => to_string,
        _ => to_boolean,
    };
    let convert = |value: &Value| match value {
        Value::Null | Value::Unbound => Value::Null,
        other => convert(name, other).unwrap_or(Value::Null),
    };
    match function {
        Function::ToIntegerList | Function::ToFloatList | Function::ToTextList | Function::ToBooleanList => {
            let items = value.as_slice().ok_or_else(|| Error::of_type(name, "a list", value))?;
            Ok(Value::list(items.iter().map(convert).collect()))
        }
        _ => Ok(convert(value)),
    }
}

/// `datetime(value)`: ISO 8601 text (without an offset or zone: UTC; without a time: midnight), epoch milliseconds, or
/// a map of components.
pub(crate) fn datetime(name: &'static str, value: &Value) -> Result<Value, Error> {
    let out_of_range = || Error::argument(name, "is out of range", value);
    match value {
        Value::DateTime(_) => Ok(value.clone()),
        Value::String(text) => parse_datetime(text).map(Value::DateTime).ok_or_else(|| {
            Error::argument(name, "takes an ISO 8601 text such as 2024-02-29T12:30:00+01:00", value)
        }),
        Value::Map(_) => from_components(name, value),
        other => match other.as_i64() {
            Some(millis) => {
                Timestamp::from_millisecond(millis).map(Value::DateTime).map_err(|_| out_of_range())
            }
            None => Err(Error::of_type(name, "a string, integer or map", value)),
        },
    }
}

/// Returns the milliseconds since 1970 of a point in time, or its year, month or day in UTC.
pub(crate) fn part_of_time(function: Function, name: &'static str, value: &Value) -> Result<Value, Error> {
    let Value::DateTime(time) = value else { return Err(Error::of_type(name, "a datetime", value)) };
    let date = TimeZone::UTC.to_datetime(*time).date();
    Ok(Value::Long(match function {
        Function::Year => i64::from(date.year()),
        Function::Month => i64::from(date.month()),
        Function::Day => i64::from(date.day()),
        _ => time.as_millisecond(),
    }))
}

/// Parses a point in time from ISO 8601 text. An offset overrides the name of a zone after it.
fn parse_datetime(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let month = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => String::new(),
    };
    let pieces = Pieces::parse(if month.is_empty() { text } else { &month }).ok()?;
    let local = pieces.date().to_datetime(pieces.time().unwrap_or(civil::Time::midnight()));
    if let Some(offset) = pieces.to_numeric_offset() {
        return offset.to_timestamp(local).ok();
    }
    let zone = pieces.to_time_zone().ok()?.unwrap_or(TimeZone::UTC);
    local.to_zoned(zone).ok().map(|zoned| zoned.timestamp())
}

/// `datetime({year: …})` and `datetime({epochMillis: …})`.
fn from_components(name: &'static str, value: &Value) -> Result<Value, Error> {
    let Value::Map(map) = value else { return Err(Error::of_type(name, "a map", value)) };
    let (mut year, mut rest) = (None, [1_i64, 1, 0, 0, 0]);
    let mut nanos = 0_i64;
    for (key, item) in map.iter() {
        let Some(number) = item.as_i64() else {
            return Err(Error::of_type(name, "integer components", item));
        };
        let too_large = || Error::argument(name, "takes no component of this size", item);
        let mut fraction = |unit: i64| {
            nanos = number.checked_mul(unit).and_then(|n| nanos.checked_add(n)).ok_or_else(too_large)?;
            Ok::<(), Error>(())
        };
        match key.as_str().unwrap_or_default() {
            "epochMillis" | "epochmillis" => return datetime(name, item),
            "epochSeconds" | "epochseconds" => {
                return Timestamp::from_second(number).map(Value::DateTime).map_err(|_| too_large());
            }
            "year" => year = Some(number),
            "month" => rest[0] = number,
            "day" => rest[1] = number,
            "hour" => rest[2] = number,
            "minute" => rest[3] = number,
            "second" => rest[4] = number,
            "millisecond" => fraction(1_000_000)?,
            "microsecond" => fraction(1_000)?,
            "nanosecond" => fraction(1)?,
            _ => return Err(Error::argument(name, "does not know the component", key)),
        }
    }
    let Some(year) = year else {
        return Err(Error::of_type(name, "a map with a year", value));
    };
    let wrong = || Error::argument(name, "takes no date with this year", &Value::Long(year));
    let part = |index: usize| i8::try_from(rest[index]).ok();
    let made = (|| {
        let year = i16::try_from(year).ok()?;
        let local = civil::DateTime::new(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, 0).ok()?;
        let start = local.to_zoned(TimeZone::UTC).ok()?.timestamp();
        start.checked_add(SignedDuration::from_nanos(nanos)).ok()
    })();
    made.map(Value::DateTime).ok_or_else(wrong)
}
