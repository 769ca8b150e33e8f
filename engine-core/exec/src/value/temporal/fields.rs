//! The map of a constructor: `{year: 2024, month: 2}`, `{date: d, week: 1}`, `{time: t, timezone: '+01:00'}`.

use super::Parts;
use jiff::civil;
use tidegraph_types::temporal::{
    Malformed, epoch_days, ordinal_date, quarter_date, quarter_of, week_date, week_parts, year_of,
};
use tidegraph_types::{Map, Value};

type Result<T> = std::result::Result<T, Malformed>;

fn wrong<T>(problem: impl Into<String>) -> Result<T> {
    Err(Malformed(problem.into()))
}

/// Components by name, all of them optional.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Values that others are taken from.
    pub date: Option<Parts>,
    pub time: Option<Parts>,
    pub datetime: Option<Parts>,
    pub timezone: Option<String>,
    pub epoch_seconds: Option<i64>,
    pub epoch_millis: Option<i64>,
    year: Option<i64>,
    quarter: Option<i64>,
    month: Option<i64>,
    week: Option<i64>,
    day_of_week: Option<i64>,
    day_of_quarter: Option<i64>,
    ordinal_day: Option<i64>,
    day: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    millisecond: Option<i64>,
    microsecond: Option<i64>,
    nanosecond: Option<i64>,
}

impl Fields {
    /// Reads a map; `None` if an entry is null. A type with a date takes date components, one with a time takes time
    /// components, one with a zone takes a zone.
    pub fn read(map: &Map, has_date: bool, has_time: bool, has_zone: bool) -> Result<Option<Self>> {
        let mut fields = Self::default();
        if map.values().any(Value::is_null) {
            return Ok(None);
        }
        for (key, value) in map {
            let key = key.as_str().unwrap_or_default();
            let other = || match Parts::of(value) {
                Some(parts) => Ok(Some(parts)),
                None => wrong(format!("{key} is a {}, not a temporal value", value.type_name())),
            };
            let lower = key.to_ascii_lowercase();
            let (fits, number) = match lower.as_str() {
                "date" => {
                    fields.date = other()?.filter(|parts| parts.date.is_some());
                    if fields.date.is_none() {
                        return wrong(format!("{key} is a {}, which has no date", value.type_name()));
                    }
                    (has_date, None)
                }
                "time" => {
                    fields.time = other()?.filter(|parts| parts.time.is_some());
                    if fields.time.is_none() {
                        return wrong(format!("{key} is a {}, which has no time", value.type_name()));
                    }
                    (has_time, None)
                }
                "datetime" => {
                    fields.datetime = other()?.filter(|parts| parts.date.is_some() && parts.time.is_some());
                    if fields.datetime.is_none() {
                        return wrong(format!("{key} is a {}, not a datetime", value.type_name()));
                    }
                    (true, None)
                }
                "timezone" => {
                    let Some(text) = value.as_str() else {
                        return wrong(format!("{key} is a {}, not a string", value.type_name()));
                    };
                    fields.timezone = Some(text.to_owned());
                    (has_zone, None)
                }
                "epochseconds" => (has_date && has_zone, Some(&mut fields.epoch_seconds)),
                "epochmillis" => (has_date && has_zone, Some(&mut fields.epoch_millis)),
                "year" => (has_date, Some(&mut fields.year)),
                "quarter" => (has_date, Some(&mut fields.quarter)),
                "month" => (has_date, Some(&mut fields.month)),
                "week" => (has_date, Some(&mut fields.week)),
                "dayofweek" => (has_date, Some(&mut fields.day_of_week)),
                "dayofquarter" => (has_date, Some(&mut fields.day_of_quarter)),
                "ordinalday" => (has_date, Some(&mut fields.ordinal_day)),
                "day" => (has_date, Some(&mut fields.day)),
                "hour" => (has_time, Some(&mut fields.hour)),
                "minute" => (has_time, Some(&mut fields.minute)),
                "second" => (has_time, Some(&mut fields.second)),
                "millisecond" => (has_time, Some(&mut fields.millisecond)),
                "microsecond" => (has_time, Some(&mut fields.microsecond)),
                "nanosecond" => (has_time, Some(&mut fields.nanosecond)),
                _ => return wrong(format!("there is no component {key:?}")),
            };
            if !fits {
                return wrong(format!("this type has no component {key}"));
            }
            if let Some(number) = number {
                *number = value.as_i64();
                if number.is_none() {
                    return wrong(format!("{key} is a {}, not an integer", value.type_name()));
                }
            }
        }
        Ok(Some(fields))
    }

    /// Returns the date that the components name, with what they leave open from `base`.
    pub fn date(&self, base: Option<civil::Date>) -> Result<civil::Date> {
        let week = self.week.is_some() || self.day_of_week.is_some();
        let ordinal = self.ordinal_day.is_some();
        let quarter = self.quarter.is_some() || self.day_of_quarter.is_some();
        let calendar = self.month.is_some() || self.day.is_some();
        if [week, ordinal, quarter, calendar].into_iter().filter(|given| *given).count() > 1 {
            return wrong(
                "a date is given by month and day, by week, by quarter, or by the day of its year; not by two of these",
            );
        }
        let year = |of_base: Option<i64>| match self.year.or(of_base) {
            Some(year) => year_of(year),
            None => wrong("the year must be given"),
        };
        let base_year = base.map(|date| i64::from(date.year()));
        if week {
            let (base_year, base_week, base_day) = match base.map(week_parts) {
                Some((year, week, day)) => (Some(year), Some(week), Some(day)),
                None => (None, None, None),
            };
            let Some(week) = self.week.or(base_week) else { return wrong("a day of the week needs a week") };
            let day = self.day_of_week.or(base_day).unwrap_or(1);
            return week_date(year(base_year)?, small(week, "week")?, small(day, "day of the week")?);
        }
        if ordinal {
            return ordinal_date(year(base_year)?, self.ordinal_day.unwrap_or(1));
        }
        if quarter {
            let base_quarter = base.map(|date| i64::from(quarter_of(date.month())));
            let Some(quarter) = self.quarter.or(base_quarter) else {
                return wrong("a day of the quarter needs a quarter");
            };
            return match (self.day_of_quarter, base) {
                (None, Some(base)) if (1..=4).contains(&quarter) => {
                    let month = quarter * 3 - 2 + i64::from((base.month() - 1) % 3);
                    Ok(civil::Date::new(year(base_year)?, small(month, "month")?, base.day())?)
                }
                (day, _) => quarter_date(year(base_year)?, quarter, day.unwrap_or(1)),
            };
        }
        if base.is_none() && self.day.is_some() && self.month.is_none() {
            return wrong("a day needs a month");
        }
        let month = self.month.or(base.map(|date| i64::from(date.month()))).unwrap_or(1);
        let day = self.day.or(base.map(|date| i64::from(date.day()))).unwrap_or(1);
        Ok(civil::Date::new(year(base_year)?, small(month, "month")?, small(day, "day")?)?)
    }

    /// Whether a component of a time is given.
    pub fn has_time(&self) -> bool {
        let parts =
            [self.hour, self.minute, self.second, self.millisecond, self.microsecond, self.nanosecond];
        parts.iter().any(Option::is_some)
    }

    /// Returns the time that the components name, with what they leave open from `base`. If `base` was truncated, parts
    /// of a second are added to it and are less than `open` nanoseconds.
    pub fn time(&self, base: Option<civil::Time>, open: Option<i64>) -> Result<civil::Time> {
        if base.is_none() {
            let mut larger = self.hour;
            for (part, name) in [(self.minute, "minute"), (self.second, "second")] {
                if part.is_some() && larger.is_none() {
                    return wrong(format!("a {name} needs the larger parts of its time"));
                }
                larger = part;
            }
            if self.has_fraction() && self.second.is_none() {
                return wrong("a part of a second needs a second");
            }
        }
        let base = base.unwrap_or_default();
        let part = |given: Option<i64>, base: i8, name: &str| match given {
            Some(number) => small(number, name),
            None => Ok(base),
        };
        let hour = part(self.hour, base.hour(), "hour")?;
        let minute = part(self.minute, base.minute(), "minute")?;
        let second = part(self.second, base.second(), "second")?;
        let nanos = match (self.has_fraction(), open) {
            (false, _) => base.subsec_nanosecond(),
            (true, None) => self.fraction(1_000_000_000)?,
            (true, Some(open)) => base.subsec_nanosecond() + self.fraction(open)?,
        };
        Ok(civil::Time::new(hour, minute, second, nanos)?)
    }

    fn has_fraction(&self) -> bool {
        self.millisecond.is_some() || self.microsecond.is_some() || self.nanosecond.is_some()
    }

    /// Returns the nanoseconds of the given parts of a second, less than `open`. A part is less than one of the next
    /// larger part that is given.
    pub fn fraction(&self, open: i64) -> Result<i32> {
        let (mut open, mut sum) = (open, 0);
        let parts = [
            (self.millisecond, 1_000_000, "millisecond"),
            (self.microsecond, 1_000, "microsecond"),
            (self.nanosecond, 1, "nanosecond"),
        ];
        for (part, unit, name) in parts {
            let Some(number) = part else { continue };
            let most = open / unit - 1;
            if !(0..=most).contains(&number) {
                return wrong(format!("{name} {number} is not in 0 to {most}"));
            }
            sum += number * unit;
            open = unit;
        }
        Ok(sum as i32)
    }
}

fn small(number: i64, name: &str) -> Result<i8> {
    i8::try_from(number).map_err(|_| Malformed(format!("{name} {number} is out of range")))
}

/// Returns the first day of the year, week or the like that a date is in; `None` for a unit that is less than a day, or
/// none.
pub(super) fn truncated_date(date: civil::Date, unit: &str) -> Option<Result<civil::Date>> {
    let first_of_year = |length: i64| {
        let year = i64::from(date.year());
        year_of(year - year.rem_euclid(length)).and_then(|year| Ok(civil::Date::new(year, 1, 1)?))
    };
    Some(match unit {
        "millennium" => first_of_year(1000),
        "century" => first_of_year(100),
        "decade" => first_of_year(10),
        "year" => first_of_year(1),
        "weekyear" => year_of(week_parts(date).0).and_then(|year| week_date(year, 1, 1)),
        "quarter" => Ok(civil::date(date.year(), quarter_of(date.month()) * 3 - 2, 1)),
        "month" => Ok(civil::date(date.year(), date.month(), 1)),
        "week" => {
            let monday = epoch_days(date) - (week_parts(date).2 - 1);
            tidegraph_types::temporal::date_of_epoch_days(monday)
                .ok_or_else(|| Malformed("its week begins before the year -9999".to_owned()))
        }
        "day" => Ok(date),
        _ => return None,
    })
}
