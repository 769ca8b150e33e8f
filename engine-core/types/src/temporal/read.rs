//! Reads temporal values from ISO 8601 text: the calendar, week, quarter and ordinal dates, with and without separators,
//! that openCypher knows.

use super::{Duration, OffsetTime, Part, add_days, number_of_weekday, quarter_of};
use jiff::civil::{self, ISOWeekDate, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use std::fmt::{self, Display, Formatter};

/// Why a text is not a value of a temporal type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed(pub String);

impl Display for Malformed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl From<jiff::Error> for Malformed {
    fn from(error: jiff::Error) -> Self {
        Self(error.to_string())
    }
}

type Result<T> = std::result::Result<T, Malformed>;

fn wrong<T>(problem: impl Into<String>) -> Result<T> {
    Err(Malformed(problem.into()))
}

/// Longest text that is read. The longest sensible one, with a zone, has fewer than 80 characters.
const LONGEST: usize = 128;
/// Seconds of the largest offset from UTC.
const LARGEST_OFFSET: i32 = 18 * 3600;

/// What is left of a text.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Result<Self> {
        if text.len() > LONGEST {
            return wrong(format!("the text has {} characters, more than {LONGEST}", text.chars().count()));
        }
        Ok(Self { rest: text.trim() })
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Consumes a character if it is next.
    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Returns how many digits are next.
    fn digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    /// Consumes a number of exactly some digits.
    fn number(&mut self, digits: usize, what: &str) -> Result<i64> {
        if self.digits() < digits {
            return wrong(format!("{what} needs {digits} digits, found {:?}", self.rest));
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        number.parse().map_err(|_| Malformed(format!("{what} {number} is too large")))
    }

    fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { wrong(format!("unexpected {:?}", self.rest)) }
    }
}

fn small(number: i64, what: &str) -> Result<i8> {
    i8::try_from(number).map_err(|_| Malformed(format!("{what} {number} is too large")))
}

/// Makes the date of an ISO week; the day is 1 (Monday) to 7.
///
/// # Errors
///
/// If the year has no such week, or the week no such day.
pub fn week_date(year: i16, week: i8, day: i8) -> Result<civil::Date> {
    let weekday = Weekday::from_monday_one_offset(day)?;
    Ok(ISOWeekDate::new(year, week, weekday)?.date())
}

/// Makes the date of a day of a year, 1 to 366.
///
/// # Errors
///
/// If the year has no such day.
pub fn ordinal_date(year: i16, day: i64) -> Result<civil::Date> {
    let first = civil::Date::new(year, 1, 1)?;
    let days = i64::from(first.days_in_year());
    if !(1..=days).contains(&day) {
        return wrong(format!("day {day} is not in 1 to {days}, the days of the year {year}"));
    }
    add_days(first, day - 1).ok_or_else(|| Malformed(format!("day {day} of the year {year} is out of range")))
}

/// Makes the date of a day of a quarter, 1 to 92.
///
/// # Errors
///
/// If the quarter has no such day.
pub fn quarter_date(year: i16, quarter: i64, day: i64) -> Result<civil::Date> {
    if !(1..=4).contains(&quarter) {
        return wrong(format!("quarter {quarter} is not in 1 to 4"));
    }
    let first = civil::Date::new(year, (quarter * 3 - 2) as i8, 1)?;
    let made = if (1..=92).contains(&day) { add_days(first, day - 1) } else { None };
    match made.filter(|made| i64::from(quarter_of(made.month())) == quarter && made.year() == year) {
        Some(date) => Ok(date),
        None => wrong(format!("day {day} is not in quarter {quarter} of the year {year}")),
    }
}

/// Returns a year that this type of date can have.
///
/// # Errors
///
/// If the year is not in -9999 to 9999.
pub fn year_of(number: i64) -> Result<i16> {
    match i16::try_from(number) {
        Ok(year @ -9999..=9999) => Ok(year),
        _ => wrong(format!("the year {number} is not in -9999 to 9999")),
    }
}

/// Reads a date and leaves what follows it.
fn date(reader: &mut Reader<'_>) -> Result<civil::Date> {
    let negative = reader.take('-');
    let is_signed = negative || reader.take('+');
    // With a sign the year may have up to nine digits, and a separator must follow.
    let digits = if is_signed { reader.digits().clamp(4, 9) } else { 4 };
    let number = reader.number(digits, "the year")?;
    let year = year_of(if negative { -number } else { number })?;
    let separated = reader.take('-');
    if reader.take('W') {
        let week = small(reader.number(2, "the week")?, "week")?;
        let has_day = if separated { reader.take('-') } else { reader.digits() > 0 };
        let day = if has_day { small(reader.number(1, "the day of the week")?, "day")? } else { 1 };
        return week_date(year, week, day);
    }
    if reader.take('Q') {
        let quarter = reader.number(1, "the quarter")?;
        let has_day = if separated { reader.take('-') } else { reader.digits() > 0 };
        let day = if has_day { reader.number(2, "the day of the quarter")? } else { 1 };
        return quarter_date(year, quarter, day);
    }
    match (separated, reader.digits()) {
        (false, 0) => Ok(civil::Date::new(year, 1, 1)?),
        (_, 3) => {
            let day = reader.number(3, "the day of the year")?;
            ordinal_date(year, day)
        }
        (true, _) => {
            let month = small(reader.number(2, "the month")?, "month")?;
            let day = if reader.take('-') { small(reader.number(2, "the day")?, "day")? } else { 1 };
            Ok(civil::Date::new(year, month, day)?)
        }
        (false, digits) => {
            let month = small(reader.number(2, "the month")?, "month")?;
            let day = if digits > 2 { small(reader.number(2, "the day")?, "day")? } else { 1 };
            Ok(civil::Date::new(year, month, day)?)
        }
    }
}

/// Reads a time of day and leaves what follows it.
fn time(reader: &mut Reader<'_>) -> Result<civil::Time> {
    let hour = small(reader.number(2, "the hour")?, "hour")?;
    let separated = reader.peek() == Some(':');
    let part = |reader: &mut Reader<'_>, what: &str| -> Result<Option<i8>> {
        let follows = if separated { reader.take(':') } else { reader.digits() > 0 };
        if follows { Ok(Some(small(reader.number(2, what)?, what)?)) } else { Ok(None) }
    };
    let Some(minute) = part(reader, "the minute")? else { return Ok(civil::Time::new(hour, 0, 0, 0)?) };
    let Some(second) = part(reader, "the second")? else { return Ok(civil::Time::new(hour, minute, 0, 0)?) };
    let mut nanos = 0;
    if reader.take('.') || reader.take(',') {
        let digits = reader.digits();
        if !(1..=9).contains(&digits) {
            return wrong(format!("a second has 1 to 9 digits after its point, not {digits}"));
        }
        nanos = reader.number(digits, "the fraction")? as i32 * 10_i32.pow(9 - digits as u32);
    }
    Ok(civil::Time::new(hour, minute, second, nanos)?)
}

/// Reads `Z` or an offset such as `+01:00`, `-0130`, `+02` or `+02:05:59`, if one is next.
fn offset(reader: &mut Reader<'_>) -> Result<Option<Offset>> {
    if reader.take('Z') || reader.take('z') {
        return Ok(Some(Offset::UTC));
    }
    let sign = if reader.take('+') {
        1
    } else if reader.take('-') || reader.take('−') {
        -1
    } else {
        return Ok(None);
    };
    let hours = reader.number(2, "the hours of the offset")?;
    let separated = reader.peek() == Some(':');
    let part = |reader: &mut Reader<'_>, what: &str| -> Result<i64> {
        let follows = if separated { reader.take(':') } else { reader.digits() > 0 };
        let number = if follows { reader.number(2, what)? } else { 0 };
        if number < 60 { Ok(number) } else { wrong(format!("{what} {number} is not in 0 to 59")) }
    };
    let minutes = part(reader, "the minutes of the offset")?;
    let seconds = part(reader, "the seconds of the offset")?;
    offset_of_seconds(sign * (hours * 3600 + minutes * 60 + seconds)).map(Some)
}

/// Returns the offset of some seconds.
///
/// # Errors
///
/// More than 18 hours.
pub fn offset_of_seconds(seconds: i64) -> Result<Offset> {
    match i32::try_from(seconds) {
        Ok(seconds) if seconds.abs() <= LARGEST_OFFSET => Ok(Offset::from_seconds(seconds)?),
        _ => wrong(format!("an offset of {seconds} seconds is more than 18 hours")),
    }
}

/// Returns the zone of a name such as `Europe/Stockholm`, or of an offset.
///
/// # Errors
///
/// If the database of time zones does not have the name.
pub fn parse_zone(text: &str) -> Result<TimeZone> {
    let mut reader = Reader::new(text)?;
    if let Some(offset) = offset(&mut reader)? {
        reader.end()?;
        return Ok(if offset == Offset::UTC { TimeZone::UTC } else { TimeZone::fixed(offset) });
    }
    match TimeZone::get(reader.rest) {
        Ok(zone) => Ok(zone),
        Err(_) => wrong(format!("{:?} is not the name of a time zone", reader.rest)),
    }
}

/// Reads a date: `2015-07-21`, `20150721`, `2015-07`, `2015-W30-2`, `2015W302`, `2015-Q3-20`, `2015-202`, `2015` and the
/// like.
///
/// # Errors
///
/// The part that is wrong.
pub fn parse_date(text: &str) -> Result<civil::Date> {
    let mut reader = Reader::new(text)?;
    let date = date(&mut reader)?;
    reader.end()?;
    Ok(date)
}

/// Reads a time of day: `21:40:32.142`, `2140`, `21` and the like.
///
/// # Errors
///
/// The part that is wrong.
pub fn parse_local_time(text: &str) -> Result<civil::Time> {
    let mut reader = Reader::new(text)?;
    let time = time(&mut reader)?;
    reader.end()?;
    Ok(time)
}

/// Reads a time of day with an offset; without one, in UTC.
///
/// # Errors
///
/// The part that is wrong.
pub fn parse_time(text: &str) -> Result<OffsetTime> {
    let mut reader = Reader::new(text)?;
    let time = time(&mut reader)?;
    let offset = offset(&mut reader)?.unwrap_or(Offset::UTC);
    reader.end()?;
    Ok(OffsetTime { time, offset })
}

fn local(reader: &mut Reader<'_>) -> Result<civil::DateTime> {
    let date = date(reader)?;
    let has_time = reader.take('T') || reader.take('t') || reader.take(' ');
    let time = if has_time { time(reader)? } else { civil::Time::midnight() };
    Ok(date.to_datetime(time))
}

/// Reads a date and a time of day, joined by `T`; without a time, midnight.
///
/// # Errors
///
/// The part that is wrong.
pub fn parse_local_date_time(text: &str) -> Result<civil::DateTime> {
    let mut reader = Reader::new(text)?;
    let local = local(&mut reader)?;
    reader.end()?;
    Ok(local)
}

/// A date and time as text gives it, before its point in time is known.
#[derive(Clone, Debug)]
pub struct ZonedText {
    local: civil::DateTime,
    offset: Option<Offset>,
    zone: Option<TimeZone>,
}

/// Reads a point in time: a date and time, then an offset, the name of a zone in brackets, or both.
///
/// # Errors
///
/// The part that is wrong.
pub fn parse_zoned(text: &str) -> Result<ZonedText> {
    let mut reader = Reader::new(text)?;
    let local = local(&mut reader)?;
    let offset = offset(&mut reader)?;
    let mut zone = None;
    if reader.take('[') {
        let Some(end) = reader.rest.find(']') else { return wrong("the name of the zone has no ]") };
        let (name, rest) = reader.rest.split_at(end);
        zone = Some(parse_zone(name)?);
        reader.rest = &rest[1..];
    }
    reader.end()?;
    Ok(ZonedText { local, offset, zone })
}

impl ZonedText {
    /// Returns the point in time. A text without offset and zone is in `default`.
    ///
    /// # Errors
    ///
    /// If the zone never has the offset at this time.
    pub fn resolve(self, default: &TimeZone) -> Result<Zoned> {
        match (self.offset, self.zone) {
            (None, zone) => zoned_from_local(self.local, zone.as_ref().unwrap_or(default)),
            (Some(offset), None) if offset == Offset::UTC => zoned_from_local(self.local, &TimeZone::UTC),
            (Some(offset), None) => zoned_from_local(self.local, &TimeZone::fixed(offset)),
            (Some(offset), Some(zone)) => {
                let zoned = offset.to_timestamp(self.local)?.to_zoned(zone);
                if zoned.offset() == offset {
                    return Ok(zoned);
                }
                let (name, offset) =
                    (zoned.time_zone().iana_name().unwrap_or("the zone"), super::offset_text(offset));
                wrong(format!(
                    "the offset of {name} at this time is {}, not {offset}",
                    super::offset_text(zoned.offset())
                ))
            }
        }
    }
}

/// Returns the point in time of a local date and time in a zone: the later one where the clock skips it, the earlier one
/// where the clock shows it twice.
///
/// # Errors
///
/// Outside the range of points in time.
pub fn zoned_from_local(local: civil::DateTime, zone: &TimeZone) -> Result<Zoned> {
    Ok(local.to_zoned(zone.clone())?)
}

impl Duration {
    /// Reads a duration: `P1Y2M3DT4H5M6.7S`, parts of which may be negative and may have fractions, `P2.5W`, or
    /// `P2012-02-02T14:37:21.545`.
    ///
    /// # Errors
    ///
    /// The part that is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader::new(text)?;
        let negative = reader.take('-');
        if !negative {
            reader.take('+');
        }
        if !(reader.take('P') || reader.take('p')) {
            return wrong("a duration begins with P");
        }
        let is_date = reader.rest.len() > 4 && reader.digits() == 4 && reader.rest.as_bytes()[4] == b'-';
        let duration = if is_date { Self::as_date(&mut reader)? } else { Self::of_parts(&mut reader)? };
        if negative { duration.checked_neg().ok_or_else(overflow) } else { Ok(duration) }
    }

    fn as_date(reader: &mut Reader<'_>) -> Result<Self> {
        let years = reader.number(4, "the years")?;
        let next = |reader: &mut Reader<'_>, what: &str, most: i64| -> Result<i64> {
            if !reader.take('-') {
                return wrong(format!("expected - before {what}"));
            }
            let number = reader.number(2, what)?;
            if number <= most { Ok(number) } else { wrong(format!("{what} {number} are more than {most}")) }
        };
        let months = next(reader, "the months", 12)?;
        let days = next(reader, "the days", 31)?;
        let time = if reader.take('T') { time(reader)? } else { civil::Time::midnight() };
        reader.end()?;
        let nanos = i128::from(super::nanos_of_day(time));
        Self::new(years * 12 + months, days, 0, nanos).ok_or_else(overflow)
    }

    fn of_parts(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut sum, mut in_time, mut found) = (Self::default(), false, false);
        let mut last = 0;
        while !reader.rest.is_empty() {
            if !in_time && (reader.take('T') || reader.take('t')) {
                (in_time, found) = (true, false);
                continue;
            }
            let end = reader.rest.find(|c: char| c.is_ascii_alphabetic());
            let Some(end) = end else { return wrong(format!("{:?} has no unit", reader.rest)) };
            let (number, rest) = reader.rest.split_at(end);
            let (unit, rest) = rest.split_at(1);
            reader.rest = rest;
            let (place, part) = match (in_time, unit.to_ascii_uppercase().as_str()) {
                (false, "Y") => (1, Part::Years),
                (false, "M") => (2, Part::Months),
                (false, "W") => (3, Part::Weeks),
                (false, "D") => (4, Part::Days),
                (true, "H") => (5, Part::Hours),
                (true, "M") => (6, Part::Minutes),
                (true, "S") => (7, Part::Seconds),
                _ => return wrong(format!("{unit} is not a unit here")),
            };
            if place <= last {
                return wrong(format!("{number}{unit} comes too late"));
            }
            (last, found) = (place, true);
            let one = Self::of_text(part, &number.replace(',', "."))?;
            sum = sum.checked_add(&one).ok_or_else(overflow)?;
        }
        if found { Ok(sum) } else { wrong("a duration needs at least one part") }
    }

    /// Makes the duration of a decimal number of a part.
    fn of_text(part: Part, number: &str) -> Result<Self> {
        let not_a_number = || Malformed(format!("{number:?} is not a number"));
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(not_a_number());
        }
        match number.split_once('.') {
            None => {
                let whole = number.parse().map_err(|_| overflow())?;
                Self::of_whole(part, whole).ok_or_else(overflow)
            }
            // Decimal digits of a second are nanoseconds, without a detour over a binary fraction.
            Some((whole, fraction))
                if part == Part::Seconds && fraction.len() <= 9 && !fraction.is_empty() =>
            {
                let sign = if number.starts_with('-') { -1 } else { 1 };
                let seconds: i64 = match whole {
                    "" | "-" | "+" => 0,
                    whole => whole.parse().map_err(|_| overflow())?,
                };
                let nanos: i128 = format!("{fraction:0<9}").parse().map_err(|_| not_a_number())?;
                Self::new(0, 0, seconds, sign * nanos).ok_or_else(overflow)
            }
            Some(_) => {
                let number: f64 = number.parse().map_err(|_| not_a_number())?;
                Self::of_part(part, number).ok_or_else(overflow)
            }
        }
    }
}

fn overflow() -> Malformed {
    Malformed("the duration is too long".to_owned())
}

/// Returns the day of a date's quarter, 1 to 92.
#[must_use]
pub fn day_of_quarter(date: civil::Date) -> i64 {
    let first = date.with().month(quarter_of(date.month()) * 3 - 2).day(1).build();
    first.map_or(1, |first| super::epoch_days(date) - super::epoch_days(first) + 1)
}

/// Returns the year, week and day of the week of a date.
#[must_use]
pub fn week_parts(date: civil::Date) -> (i64, i64, i64) {
    let week = date.iso_week_date();
    (i64::from(week.year()), i64::from(week.week()), i64::from(number_of_weekday(week.weekday())))
}

/// Returns the point in time of some seconds and nanoseconds since 1970.
///
/// # Errors
///
/// Outside the years -9999 to 9999.
pub fn timestamp_of(seconds: i64, nanos: i64) -> Result<Timestamp> {
    let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Ok(Timestamp::from_nanosecond(nanos)?)
}

/// Parses an ISO 8601 date as Gremlin does, with or without a time and an offset. Without an offset it is in UTC. `None`
/// for any other text.
///
/// ```
/// use tidegraph_types::temporal::parse_instant;
///
/// assert_eq!(parse_instant("2023-08-02"), parse_instant("2023-08-02T02:00:00+02:00"));
/// assert_eq!(parse_instant("yesterday"), None);
/// ```
#[must_use]
pub fn parse_instant(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let civil = text
        .parse::<civil::DateTime>()
        .or_else(|_| text.parse::<civil::Date>().map(|date| date.at(0, 0, 0, 0)))
        .ok()?;
    // The formats above would ignore an offset or zone that the first attempt refused.
    let after_date = text.get(10..).unwrap_or("");
    if after_date.contains(['Z', 'z', '+', '-', '[']) {
        return None;
    }
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}
