//! Sums of temporal values and durations, and multiples of durations.

use super::super::error::Error;
use jiff::civil;
use std::sync::Arc;
use tidegraph_plan::Arithmetic;
use tidegraph_types::temporal::{
    Duration, Malformed, NANOS_OF_SECOND, OffsetTime, SECONDS_OF_DAY, add_days, add_months, as_zoned,
    epoch_seconds, local_of_epoch_seconds, nanos_of_day, time_of_nanos, zoned, zoned_from_local,
};
use tidegraph_types::{Temporal, Value};

fn as_duration(value: &Value) -> Option<&Duration> {
    match value {
        Value::Temporal(Temporal::Duration(duration)) => Some(duration),
        _ => None,
    }
}

/// Computes `a operator b` if one of them is a temporal value and the operator takes both; `None` otherwise.
pub(crate) fn apply(operator: Arithmetic, a: &Value, b: &Value) -> Option<Result<Value, Error>> {
    if !matches!(a, Value::Temporal(_) | Value::DateTime(_))
        && !matches!(b, Value::Temporal(_) | Value::DateTime(_))
    {
        return None;
    }
    let result = match (operator, as_duration(a), as_duration(b)) {
        (Arithmetic::Add, Some(x), Some(y)) => made(x.checked_add(y)),
        (Arithmetic::Subtract, Some(x), Some(y)) => made(y.checked_neg().and_then(|y| x.checked_add(&y))),
        (Arithmetic::Add, None, Some(y)) => moved(a, y)?,
        (Arithmetic::Add, Some(x), None) => moved(b, x)?,
        (Arithmetic::Subtract, None, Some(y)) => match y.checked_neg() {
            Some(back) => moved(a, &back)?,
            None => made(None),
        },
        (Arithmetic::Multiply, Some(x), None) => scaled(x, b)?,
        (Arithmetic::Multiply, None, Some(y)) => scaled(y, a)?,
        (Arithmetic::Divide, Some(x), None) => match b.as_i64() {
            Some(0) => {
                return Some(Err(Error::DivisionByZero(super::super::arithmetic::shown(operator, a, b))));
            }
            Some(1) => made(Some(*x)),
            _ => made(x.divided(b.as_f64()?)),
        },
        _ => return None,
    };
    Some(result.map_err(|reason| Error::Arithmetic {
        operation: super::super::arithmetic::shown(operator, a, b),
        reason: reason.0,
    }))
}

fn made(duration: Option<Duration>) -> Result<Value, Malformed> {
    match duration {
        Some(duration) => Ok(Value::Temporal(Temporal::Duration(Arc::new(duration)))),
        None => Err(Malformed("the duration is too long".to_owned())),
    }
}

fn scaled(duration: &Duration, factor: &Value) -> Option<Result<Value, Malformed>> {
    Some(made(match factor.as_i64() {
        Some(whole) => duration.checked_mul(whole),
        None => duration.scaled(factor.as_f64()?),
    }))
}

/// Adds a duration to a date or time; `None` if the value is neither.
fn moved(value: &Value, duration: &Duration) -> Option<Result<Value, Malformed>> {
    let on_clock = |time: civil::Time| time_of_nanos(i128::from(nanos_of_day(time)) + duration.nanos());
    Some(match value {
        Value::Temporal(Temporal::LocalTime(time)) => {
            Ok(Value::Temporal(Temporal::LocalTime(on_clock(*time))))
        }
        Value::Temporal(Temporal::Time(OffsetTime { time, offset })) => {
            let time = on_clock(*time);
            Ok(Value::Temporal(Temporal::Time(OffsetTime { time, offset: *offset })))
        }
        Value::Temporal(Temporal::Date(date)) => {
            let day = i128::from(SECONDS_OF_DAY) * i128::from(NANOS_OF_SECOND);
            // Whole days of the seconds count too.
            i64::try_from(duration.nanos() / day)
                .ok()
                .and_then(|days| add_days(on_calendar(*date, duration)?, days))
                .map(|date| Value::Temporal(Temporal::Date(date)))
                .ok_or_else(out_of_range)
        }
        Value::Temporal(Temporal::LocalDateTime(local)) => local_later(*local, duration)
            .map(|local| Value::Temporal(Temporal::LocalDateTime(local)))
            .ok_or_else(out_of_range),
        Value::DateTime(_) | Value::Temporal(Temporal::DateTime(_)) => zoned_later(value, duration),
        _ => return None,
    })
}

fn out_of_range() -> Malformed {
    Malformed("the result is not in the years -9999 to 9999".to_owned())
}

fn on_calendar(date: civil::Date, duration: &Duration) -> Option<civil::Date> {
    add_days(add_months(date, duration.months())?, duration.days())
}

fn local_later(local: civil::DateTime, duration: &Duration) -> Option<civil::DateTime> {
    let date = on_calendar(local.date(), duration)?;
    let (seconds, nanos) = epoch_seconds(date.to_datetime(local.time()));
    let second = i128::from(NANOS_OF_SECOND);
    let total = i128::from(seconds) * second + i128::from(nanos) + duration.nanos();
    local_of_epoch_seconds(i64::try_from(total.div_euclid(second)).ok()?, total.rem_euclid(second) as i32)
}

/// Months and days are counted by the calendar of the zone, seconds by the clock that never jumps.
fn zoned_later(value: &Value, duration: &Duration) -> Result<Value, Malformed> {
    let here = as_zoned(value).ok_or_else(out_of_range)?;
    let here = if duration.months() == 0 && duration.days() == 0 {
        here
    } else {
        let date = on_calendar(here.date(), duration).ok_or_else(out_of_range)?;
        zoned_from_local(date.to_datetime(here.time()), here.time_zone())?
    };
    let nanos = here.timestamp().as_nanosecond().checked_add(duration.nanos()).ok_or_else(out_of_range)?;
    let at = jiff::Timestamp::from_nanosecond(nanos).map_err(|_| out_of_range())?;
    Ok(zoned(at.to_zoned(here.time_zone().clone())))
}
