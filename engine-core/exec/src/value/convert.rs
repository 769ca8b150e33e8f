//! Conversions between types, and points in time.

use super::error::Error;
use super::temporal;
use super::text::to_text;
use tidegraph_plan::Function;
use tidegraph_types::{Temporal, Value};

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
pub(super) fn parse_float(text: &str) -> Option<f64> {
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
        .ok_or_else(|| Error::of_type(name, "a number, boolean, string, point or temporal value", value))
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

/// Returns the milliseconds since 1970 of a point in time, or the year, month or day of a value with a date; as in
/// Neptune, those of a point in time are those in UTC.
pub(crate) fn part_of_time(function: Function, name: &'static str, value: &Value) -> Result<Value, Error> {
    let key = match function {
        Function::Year => "year",
        Function::Month => "month",
        Function::Day => "day",
        _ => "epochMillis",
    };
    match value {
        Value::Temporal(Temporal::DateTime(zoned)) => {
            temporal::component(&Value::DateTime(zoned.timestamp()), key)
        }
        Value::DateTime(_) | Value::Temporal(_) => temporal::component(value, key),
        _ => Err(Error::of_type(name, "a datetime", value)),
    }
}
