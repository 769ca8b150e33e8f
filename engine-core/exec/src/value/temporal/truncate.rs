//! `date.truncate('week', value, {dayOfWeek: 2})`: the beginning of a unit, with some components set anew.

use super::super::error::Error;
use super::fields::{Fields, truncated_date};
use super::make::assign_zone;
use super::{Parts, invalid};
use jiff::Timestamp;
use jiff::civil;
use tidegraph_plan::TemporalType;
use tidegraph_types::temporal::{Malformed, nanos_of_day, parse_zone, time_of_nanos};
use tidegraph_types::{Map, Value};

/// Truncates. Args unit, value (the time of the request if absent), map of components.
pub(crate) fn truncate(
    now: Timestamp,
    kind: TemporalType,
    name: &'static str,
    args: &[Value],
) -> Result<Value, Error> {
    let Value::String(unit) = &args[0] else {
        return Err(Error::of_type(name, "the name of a unit", &args[0]));
    };
    let at = Value::DateTime(now);
    let value = args.get(1).unwrap_or(&at);
    let Some(parts) = Parts::of(value) else {
        return Err(Error::of_type(name, "a temporal value that is no duration", value));
    };
    let none = Map::new();
    let map = match args.get(2) {
        None => &none,
        Some(Value::Map(map)) => map,
        Some(other) => return Err(Error::of_type(name, "a map of components", other)),
    };
    of_parts(now, kind, &unit.to_ascii_lowercase(), parts, map)
        .map_err(|reason| invalid(name, value, &reason))
}

/// Nanoseconds of a unit that is less than a day.
fn nanos_of_unit(unit: &str) -> Option<i64> {
    Some(match unit {
        "hour" => 3_600_000_000_000,
        "minute" => 60_000_000_000,
        "second" => 1_000_000_000,
        "millisecond" => 1_000_000,
        "microsecond" => 1_000,
        _ => return None,
    })
}

fn of_parts(
    now: Timestamp,
    kind: TemporalType,
    unit: &str,
    mut parts: Parts,
    map: &Map,
) -> Result<Value, Malformed> {
    let has_date = matches!(kind, TemporalType::Date | TemporalType::LocalDateTime | TemporalType::DateTime);
    let has_time = kind != TemporalType::Date;
    let has_zone = matches!(kind, TemporalType::Time | TemporalType::DateTime);
    let Some(fields) = Fields::read(map, has_date, has_time, has_zone)? else { return Ok(Value::Null) };
    let cannot = |problem: &str| Malformed(format!("{problem} {unit:?}"));
    let mut open = 1_000_000_000;
    match nanos_of_unit(unit) {
        Some(nanos) if has_time => {
            let Some(time) = parts.time else { return Err(cannot("it has no time, and so no")) };
            if has_date && parts.date.is_none() {
                return Err(Malformed("it has no date".to_owned()));
            }
            let whole = nanos_of_day(time) / nanos * nanos;
            parts.time = Some(time_of_nanos(i128::from(whole)));
            open = open.min(nanos);
        }
        Some(_) => return Err(cannot("a date has no unit")),
        None => {
            match parts.date.map(|date| truncated_date(date, unit)) {
                Some(None) => return Err(cannot("there is no unit")),
                Some(Some(_)) | None if !has_date && unit != "day" => {
                    return Err(cannot("a time of day has no unit"));
                }
                Some(Some(date)) => parts.date = Some(date?),
                None if has_date => return Err(cannot("it has no date, and so no")),
                None => {}
            }
            if has_time && !has_date && parts.time.is_none() {
                return Err(cannot("it has no time, and so no"));
            }
            parts.time = Some(civil::Time::midnight());
        }
    }
    if has_date {
        parts.date = Some(fields.date(parts.date)?);
    }
    if has_time {
        parts.time = Some(fields.time(parts.time, Some(open))?);
    }
    // Here a zone is not converted to, other than in a constructor.
    if let Some(text) = &fields.timezone {
        assign_zone(&mut parts, parse_zone(text)?, now);
    }
    parts.value(kind)
}
