//! Dates, times and durations: openCypher's constructors, components, truncation and arithmetic, and Gremlin's steps over
//! points in time.

mod arithmetic;
mod between;
mod components;
mod fields;
mod instant;
mod make;
mod truncate;

pub(crate) use arithmetic::apply;
pub(crate) use between::between;
pub(crate) use components::component;
pub(crate) use instant::{as_date, date_add, date_diff};
pub(crate) use make::{from_epoch, from_epoch_millis, make, now};
pub(crate) use truncate::truncate;

use super::error::Error;
use jiff::civil;
use jiff::tz::{Offset, TimeZone};
use tidegraph_plan::TemporalType;
use tidegraph_types::temporal::{Malformed, OffsetTime, zoned, zoned_from_local};
use tidegraph_types::{Temporal, Value};

/// What a temporal value other than a duration consists of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub date: Option<civil::Date>,
    pub time: Option<civil::Time>,
    /// The zone, or the offset of a time of day.
    pub zone: Option<TimeZone>,
    /// The offset where there is a zone.
    pub offset: Option<Offset>,
}

impl Parts {
    /// Takes a value apart; `None` for durations and values of other types.
    pub fn of(value: &Value) -> Option<Self> {
        let local = |local: civil::DateTime| Self {
            date: Some(local.date()),
            time: Some(local.time()),
            ..Self::default()
        };
        Some(match value {
            Value::DateTime(at) => Self {
                zone: Some(TimeZone::UTC),
                offset: Some(Offset::UTC),
                ..local(TimeZone::UTC.to_datetime(*at))
            },
            Value::Temporal(temporal) => match temporal {
                Temporal::Date(date) => Self { date: Some(*date), ..Self::default() },
                Temporal::LocalTime(time) => Self { time: Some(*time), ..Self::default() },
                Temporal::Time(OffsetTime { time, offset }) => Self {
                    time: Some(*time),
                    zone: Some(offset.to_time_zone()),
                    offset: Some(*offset),
                    ..Self::default()
                },
                Temporal::LocalDateTime(at) => local(*at),
                Temporal::DateTime(zoned) => Self {
                    zone: Some(zoned.time_zone().clone()),
                    offset: Some(zoned.offset()),
                    ..local(zoned.datetime())
                },
                Temporal::Duration(_) => return None,
            },
            _ => return None,
        })
    }

    /// Makes a value. Absent parts are midnight and UTC. The date must be there for types that have one.
    pub fn value(&self, kind: TemporalType) -> Result<Value, Malformed> {
        let date = || self.date.ok_or_else(|| Malformed("it has no date".to_owned()));
        let time = self.time.unwrap_or_default();
        Ok(match kind {
            TemporalType::Date => Value::Temporal(Temporal::Date(date()?)),
            TemporalType::LocalTime => Value::Temporal(Temporal::LocalTime(time)),
            TemporalType::Time => {
                let offset = self.offset.unwrap_or(Offset::UTC);
                Value::Temporal(Temporal::Time(OffsetTime { time, offset }))
            }
            TemporalType::LocalDateTime => {
                Value::Temporal(Temporal::LocalDateTime(date()?.to_datetime(time)))
            }
            TemporalType::DateTime => {
                let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
                zoned(zoned_from_local(date()?.to_datetime(time), &zone)?)
            }
            TemporalType::Duration => return Err(Malformed("a duration has no date or time".to_owned())),
        })
    }
}

/// Makes the error of a value that a function cannot take, with its reason.
pub(crate) fn invalid(name: &'static str, value: &Value, reason: &Malformed) -> Error {
    Error::invalid(name, value, &reason.0)
}
