//! Durations between two values: in calendar parts, in months, in days, in seconds.

use super::super::error::Error;
use super::{Parts, invalid};
use jiff::Zoned;
use jiff::civil;
use jiff::tz::TimeZone;
use std::sync::Arc;
use tidegraph_plan::Between;
use tidegraph_types::temporal::{Duration, Malformed, add_days, add_months, epoch_days, zoned_from_local};
use tidegraph_types::{Temporal, Value};

/// Returns the duration from one value to another. A value without a zone is in the zone of the other one, a value
/// without a date on the date of the other one; in the latter case the duration is in seconds.
pub(crate) fn between(unit: Between, name: &'static str, from: &Value, to: &Value) -> Result<Value, Error> {
    let parts = |value: &Value| {
        Parts::of(value).ok_or_else(|| Error::of_type(name, "temporal values that are no durations", value))
    };
    let (a, b) = (parts(from)?, parts(to)?);
    let duration = of_parts(unit, &a, &b).map_err(|reason| invalid(name, from, &reason))?;
    Ok(Value::Temporal(Temporal::Duration(Arc::new(duration))))
}

fn of_parts(unit: Between, a: &Parts, b: &Parts) -> Result<Duration, Malformed> {
    let too_long = || Malformed("the duration is too long".to_owned());
    let have_dates = a.date.is_some() && b.date.is_some();
    let day = civil::date(1970, 1, 1);
    let local = |own: &Parts, other: &Parts| {
        own.date.or(other.date).unwrap_or(day).to_datetime(own.time.unwrap_or_default())
    };
    let (local_a, local_b) = (local(a, b), local(b, a));
    // Without a zone nothing but the clock counts, on dates for which there is no point in time too.
    if a.zone.is_none() && b.zone.is_none() {
        return split(unit, have_dates, local_a, local_b, |from, to| Ok(nanos_of(to) - nanos_of(from)))?
            .ok_or_else(too_long);
    }
    let zone_of = |own: &Parts, other: &Parts| -> TimeZone {
        own.zone.clone().or_else(|| other.zone.clone()).unwrap_or(TimeZone::UTC)
    };
    let zone = zone_of(a, b);
    let end = zoned_from_local(local_b, &zone_of(b, a))?;
    let end_here: Zoned = end.with_time_zone(zone.clone());
    let exact = |from: civil::DateTime, _: civil::DateTime| {
        let start = zoned_from_local(from, &zone)?;
        Ok(end.timestamp().as_nanosecond() - start.timestamp().as_nanosecond())
    };
    split(unit, have_dates, local_a, end_here.datetime(), exact)?.ok_or_else(too_long)
}

fn nanos_of(local: civil::DateTime) -> i128 {
    let (seconds, nanos) = tidegraph_types::temporal::epoch_seconds(local);
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}

/// Splits the way between two local times into months, days and the rest, which `rest` measures; `None` if it is too
/// long.
fn split(
    unit: Between,
    have_dates: bool,
    from: civil::DateTime,
    to: civil::DateTime,
    rest: impl Fn(civil::DateTime, civil::DateTime) -> Result<i128, Malformed>,
) -> Result<Option<Duration>, Malformed> {
    let out_of_range = || Malformed("a date between them is out of range".to_owned());
    if unit == Between::Seconds || (unit == Between::Parts && !have_dates) {
        return Ok(Duration::new(0, 0, 0, rest(from, to)?));
    }
    if !have_dates {
        return Ok(Some(Duration::default()));
    }
    // The last day counts only as far as its time of day comes up to that of the start.
    let end = match (to.date() > from.date(), to.date() < from.date()) {
        (true, _) if to.time() < from.time() => add_days(to.date(), -1),
        (_, true) if to.time() > from.time() => add_days(to.date(), 1),
        _ => Some(to.date()),
    };
    let end = end.ok_or_else(out_of_range)?;
    if unit == Between::Days {
        return Ok(Duration::new(0, epoch_days(end) - epoch_days(from.date()), 0, 0));
    }
    // Months by calendar; the day of the month is a fraction of less than 32.
    let place = |date: civil::Date| {
        (i64::from(date.year()) * 12 + i64::from(date.month())) * 32 + i64::from(date.day())
    };
    let months = (place(end) - place(from.date())) / 32;
    if unit == Between::Months {
        return Ok(Duration::new(months, 0, 0, 0));
    }
    let after_months = add_months(from.date(), months).ok_or_else(out_of_range)?;
    let days = epoch_days(end) - epoch_days(after_months);
    let after_days = add_days(after_months, days).ok_or_else(out_of_range)?;
    Ok(Duration::new(months, days, 0, rest(after_days.to_datetime(from.time()), to)?))
}
