//! Constructors: from text, from a map, from another value, from the clock.

use super::super::error::Error;
use super::fields::Fields;
use super::{Parts, invalid};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::Arc;
use tidegraph_plan::TemporalType;
use tidegraph_types::temporal::{
    Duration, Malformed, Part, parse_date, parse_local_date_time, parse_local_time, parse_time, parse_zone,
    parse_zoned, time_of_nanos, timestamp_of, zoned, zoned_from_local,
};
use tidegraph_types::{Map, Temporal, Value};

/// Whether values of a type have a date, a time and a zone.
fn shape(kind: TemporalType) -> (bool, bool, bool) {
    match kind {
        TemporalType::Date => (true, false, false),
        TemporalType::LocalTime => (false, true, false),
        TemporalType::Time => (false, true, true),
        TemporalType::LocalDateTime => (true, true, false),
        TemporalType::DateTime => (true, true, true),
        TemporalType::Duration => (false, false, false),
    }
}

/// Makes a value of a text, a map, or a value of another type. A number is a `datetime` in milliseconds since 1970.
pub(crate) fn make(
    now: Timestamp,
    kind: TemporalType,
    name: &'static str,
    value: &Value,
) -> Result<Value, Error> {
    match value {
        Value::String(text) => parse(kind, text).map_err(|reason| invalid(name, value, &reason)),
        Value::Map(map) if kind == TemporalType::Duration => {
            duration_of(map).map_err(|reason| invalid(name, value, &reason))
        }
        Value::Map(map) => from_map(now, kind, map).map_err(|reason| invalid(name, value, &reason)),
        Value::Temporal(Temporal::Duration(_)) if kind == TemporalType::Duration => Ok(value.clone()),
        Value::Long(_) | Value::Int(_) | Value::Short(_) | Value::Byte(_)
            if kind == TemporalType::DateTime =>
        {
            from_epoch_millis(name, value)
        }
        _ => {
            let expected = "a string, a map or a temporal value";
            let parts = Parts::of(value).filter(|_| kind != TemporalType::Duration);
            let parts = parts.ok_or_else(|| Error::of_type(name, expected, value))?;
            let (has_date, has_time, _) = shape(kind);
            let lacks = (has_date && parts.date.is_none()) || (has_time && !has_date && parts.time.is_none());
            if lacks {
                return Err(Error::of_type(name, "a value with the parts of its type", value));
            }
            parts.value(kind).map_err(|reason| invalid(name, value, &reason))
        }
    }
}

fn parse(kind: TemporalType, text: &str) -> Result<Value, Malformed> {
    Ok(match kind {
        TemporalType::Date => Value::Temporal(Temporal::Date(parse_date(text)?)),
        TemporalType::LocalTime => Value::Temporal(Temporal::LocalTime(parse_local_time(text)?)),
        TemporalType::Time => Value::Temporal(Temporal::Time(parse_time(text)?)),
        TemporalType::LocalDateTime => Value::Temporal(Temporal::LocalDateTime(parse_local_date_time(text)?)),
        TemporalType::DateTime => zoned(parse_zoned(text)?.resolve(&TimeZone::UTC)?),
        TemporalType::Duration => duration(Duration::parse(text)?),
    })
}

fn duration(duration: Duration) -> Value {
    Value::Temporal(Temporal::Duration(Arc::new(duration)))
}

/// Makes a value of components.
fn from_map(now: Timestamp, kind: TemporalType, map: &Map) -> Result<Value, Malformed> {
    let (has_date, has_time, has_zone) = shape(kind);
    let Some(fields) = Fields::read(map, has_date, has_time, has_zone)? else { return Ok(Value::Null) };
    if let Some(at) = epoch(&fields)? {
        let zone = fields.timezone.as_deref().map_or(Ok(TimeZone::UTC), parse_zone)?;
        return Ok(zoned(at.to_zoned(zone)));
    }
    let (of_date, of_time) = (
        fields.date.as_ref().or(fields.datetime.as_ref()),
        fields.time.as_ref().or(fields.datetime.as_ref()),
    );
    let mut parts = Parts::default();
    if has_date {
        parts.date = Some(fields.date(of_date.and_then(|parts| parts.date))?);
    }
    if has_time {
        let base = of_time.and_then(|parts| parts.time);
        if !has_date && base.is_none() && !fields.has_time() {
            return Err(Malformed("the hour must be given".to_owned()));
        }
        parts.time = Some(fields.time(base, None)?);
    }
    if has_zone {
        (parts.zone, parts.offset) = of_time.map_or((None, None), |of| (of.zone.clone(), of.offset));
        if let Some(text) = &fields.timezone {
            let zone = parse_zone(text)?;
            if parts.zone.is_some() {
                return in_other_zone(&parts, kind, zone, now);
            }
            assign_zone(&mut parts, zone, now);
        }
    }
    parts.value(kind)
}

/// Gives a value a zone without a change of its local time.
pub(super) fn assign_zone(parts: &mut Parts, zone: TimeZone, now: Timestamp) {
    parts.offset = Some(zone.to_offset(now));
    parts.zone = Some(zone);
}

/// Returns the same point in time, or time of day in UTC, as another zone tells it.
fn in_other_zone(
    parts: &Parts,
    kind: TemporalType,
    zone: TimeZone,
    now: Timestamp,
) -> Result<Value, Malformed> {
    if kind == TemporalType::DateTime {
        let here = zoned_from_local(
            parts.date.unwrap_or_default().to_datetime(parts.time.unwrap_or_default()),
            parts.zone.as_ref().unwrap_or(&TimeZone::UTC),
        )?;
        return Ok(zoned(here.with_time_zone(zone)));
    }
    let (from, to) = (parts.offset.map_or(0, |offset| offset.seconds()), zone.to_offset(now));
    let nanos = i128::from(tidegraph_types::temporal::nanos_of_day(parts.time.unwrap_or_default()));
    let shifted = nanos + i128::from(to.seconds() - from) * 1_000_000_000;
    let parts =
        Parts { time: Some(time_of_nanos(shifted)), zone: Some(zone), offset: Some(to), date: parts.date };
    parts.value(kind)
}

/// Returns the point in time of `epochSeconds` or `epochMillis`, with parts of a second.
fn epoch(fields: &Fields) -> Result<Option<Timestamp>, Malformed> {
    match (fields.epoch_seconds, fields.epoch_millis) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Malformed("epochSeconds and epochMillis are both given".to_owned())),
        (Some(seconds), None) => timestamp_of(seconds, i64::from(fields.fraction(1_000_000_000)?)).map(Some),
        (None, Some(millis)) => {
            let nanos = millis.rem_euclid(1000) * 1_000_000 + i64::from(fields.fraction(1_000_000)?);
            timestamp_of(millis.div_euclid(1000), nanos).map(Some)
        }
    }
}

fn duration_of(map: &Map) -> Result<Value, Malformed> {
    let too_long = || Malformed("the duration is too long".to_owned());
    let mut sum = Duration::default();
    if map.is_empty() {
        return Err(Malformed("a duration needs at least one part".to_owned()));
    }
    for (key, value) in map {
        let key = key.as_str().unwrap_or_default();
        let part = match key.to_ascii_lowercase().as_str() {
            "years" => Part::Years,
            "quarters" => Part::Quarters,
            "months" => Part::Months,
            "weeks" => Part::Weeks,
            "days" => Part::Days,
            "hours" => Part::Hours,
            "minutes" => Part::Minutes,
            "seconds" => Part::Seconds,
            "milliseconds" => Part::Milliseconds,
            "microseconds" => Part::Microseconds,
            "nanoseconds" => Part::Nanoseconds,
            _ => return Err(Malformed(format!("there is no part {key:?} of a duration"))),
        };
        let made = match (value.as_i64(), value.as_f64()) {
            (Some(whole), _) => Duration::of_whole(part, whole),
            (None, Some(number)) => Duration::of_part(part, number),
            (None, None) if value.is_null() => return Ok(Value::Null),
            (None, None) => {
                return Err(Malformed(format!("{key} is a {}, not a number", value.type_name())));
            }
        };
        sum = made.and_then(|made| sum.checked_add(&made)).ok_or_else(too_long)?;
    }
    Ok(duration(sum))
}

/// Returns the time of the request in a zone, UTC if none is given.
pub(crate) fn now(
    now: Timestamp,
    kind: TemporalType,
    name: &'static str,
    zone: Option<&Value>,
) -> Result<Value, Error> {
    let zone = match zone {
        None => TimeZone::UTC,
        Some(Value::String(text)) => {
            parse_zone(text).map_err(|reason| invalid(name, &Value::String(text.clone()), &reason))?
        }
        Some(other) => return Err(Error::of_type(name, "the name of a time zone", other)),
    };
    let here = zoned(now.to_zoned(zone));
    let parts = Parts::of(&here).unwrap_or_default();
    match kind {
        TemporalType::DateTime => Ok(here),
        _ => parts.value(kind).map_err(|reason| invalid(name, &here, &reason)),
    }
}

fn integer(name: &'static str, value: &Value) -> Result<i64, Error> {
    value.as_i64().ok_or_else(|| Error::of_type(name, "an integer", value))
}

/// `datetime.fromEpoch(seconds, nanoseconds)`.
pub(crate) fn from_epoch(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let nanos = args.get(1).map_or(Ok(0), |nanos| integer(name, nanos))?;
    let at = timestamp_of(integer(name, &args[0])?, nanos);
    at.map(Value::DateTime).map_err(|reason| invalid(name, &args[0], &reason))
}

/// `datetime.fromEpochMillis(milliseconds)`.
pub(crate) fn from_epoch_millis(name: &'static str, value: &Value) -> Result<Value, Error> {
    let millis = integer(name, value)?;
    let at = timestamp_of(millis.div_euclid(1000), millis.rem_euclid(1000) * 1_000_000);
    at.map(Value::DateTime).map_err(|reason| invalid(name, value, &reason))
}
