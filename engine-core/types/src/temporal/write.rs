//! Texts of temporal values: ISO 8601, without seconds where they are zero.

use super::{Duration, NANOS_OF_SECOND, OffsetTime, Temporal};
use jiff::civil;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use std::fmt::{self, Display, Formatter};

/// Shows a point in time in UTC as text: `2024-02-29T12:30Z`.
#[derive(Clone, Copy, Debug)]
pub struct Iso(pub Timestamp);

impl Display for Iso {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_local(TimeZone::UTC.to_datetime(self.0), f)?;
        f.write_str("Z")
    }
}

impl Display for Temporal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => write_date(*date, f),
            Self::LocalTime(time) => write_time(*time, f),
            Self::Time(OffsetTime { time, offset }) => {
                write_time(*time, f)?;
                f.write_str(&offset_text(*offset))
            }
            Self::LocalDateTime(local) => write_local(*local, f),
            Self::DateTime(zoned) => write_zoned(zoned, f),
            Self::Duration(duration) => duration.fmt(f),
        }
    }
}

/// Returns the text of an offset: `Z`, `+01:00` or `+00:53:28`.
#[must_use]
pub fn offset_text(offset: Offset) -> String {
    let seconds = offset.seconds();
    if seconds == 0 {
        return "Z".to_owned();
    }
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if rest == 0 {
        format!("{sign}{hours:02}:{minutes:02}")
    } else {
        format!("{sign}{hours:02}:{minutes:02}:{rest:02}")
    }
}

fn write_date(date: civil::Date, f: &mut Formatter<'_>) -> fmt::Result {
    let year = date.year();
    let sign = if year < 0 { "-" } else { "" };
    write!(f, "{sign}{:04}-{:02}-{:02}", year.unsigned_abs(), date.month(), date.day())
}

fn write_time(time: civil::Time, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{:02}:{:02}", time.hour(), time.minute())?;
    let nanos = time.subsec_nanosecond();
    if time.second() != 0 || nanos != 0 {
        write!(f, ":{:02}", time.second())?;
        write_fraction(nanos, f)?;
    }
    Ok(())
}

fn write_fraction(nanos: i32, f: &mut Formatter<'_>) -> fmt::Result {
    if nanos == 0 {
        return Ok(());
    }
    let digits = format!("{nanos:09}");
    write!(f, ".{}", digits.trim_end_matches('0'))
}

fn write_local(local: civil::DateTime, f: &mut Formatter<'_>) -> fmt::Result {
    write_date(local.date(), f)?;
    f.write_str("T")?;
    write_time(local.time(), f)
}

fn write_zoned(zoned: &Zoned, f: &mut Formatter<'_>) -> fmt::Result {
    write_local(zoned.datetime(), f)?;
    f.write_str(&offset_text(zoned.offset()))?;
    match zoned.time_zone().iana_name() {
        Some(name) => write!(f, "[{name}]"),
        None => Ok(()),
    }
}

impl Display for Duration {
    /// Writes `P1Y2M3DT4H5M6.7S`. Each part has its own sign; the parts of seconds share one.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let total = self.nanos();
        let seconds = total / i128::from(NANOS_OF_SECOND);
        let nanos = (total % i128::from(NANOS_OF_SECOND)) as i32;
        if total == 0 && self.months() == 0 && self.days() == 0 {
            return f.write_str("PT0S");
        }
        f.write_str("P")?;
        write_part(self.months() / 12, 'Y', f)?;
        write_part(self.months() % 12, 'M', f)?;
        write_part(self.days(), 'D', f)?;
        if total == 0 {
            return Ok(());
        }
        f.write_str("T")?;
        write_part((seconds / 3600) as i64, 'H', f)?;
        write_part((seconds / 60 % 60) as i64, 'M', f)?;
        let rest = (seconds % 60) as i64;
        if rest != 0 || nanos != 0 {
            let sign = if total < 0 { "-" } else { "" };
            write!(f, "{sign}{}", rest.abs())?;
            write_fraction(nanos.abs(), f)?;
            f.write_str("S")?;
        }
        Ok(())
    }
}

fn write_part(number: i64, unit: char, f: &mut Formatter<'_>) -> fmt::Result {
    if number == 0 { Ok(()) } else { write!(f, "{number}{unit}") }
}
