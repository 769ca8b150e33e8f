//! Durations: months, days, seconds and nanoseconds apart, because a month has no fixed number of days and a day no
//! fixed number of seconds.

use super::{NANOS_OF_SECOND, SECONDS_OF_DAY};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Seconds of an average month: a twelfth of 365.2425 days.
const SECONDS_OF_MONTH: i64 = 2_629_746;

/// A length of time. Equal durations have equal parts: a day is not 24 hours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Duration {
    months: i64,
    days: i64,
    /// Rounded down.
    seconds: i64,
    /// 0 to 999,999,999.
    nanos: i32,
}

/// A part of a duration that may have a fraction. The fraction is carried on to smaller parts: half a month is 15 days
/// and 18,873 seconds on average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// 12 months.
    Years,
    /// 3 months.
    Quarters,
    /// Months.
    Months,
    /// 7 days.
    Weeks,
    /// Days.
    Days,
    /// 3,600 seconds.
    Hours,
    /// 60 seconds.
    Minutes,
    /// Seconds.
    Seconds,
    /// Thousandths of a second.
    Milliseconds,
    /// Millionths of a second.
    Microseconds,
    /// Thousand-millionths of a second.
    Nanoseconds,
}

impl Duration {
    /// Makes a duration. `None` if the seconds and nanoseconds do not fit into 64 bits of seconds.
    #[must_use]
    pub fn new(months: i64, days: i64, seconds: i64, nanos: i128) -> Option<Self> {
        let second = i128::from(NANOS_OF_SECOND);
        let seconds = i128::from(seconds).checked_add(nanos.div_euclid(second))?;
        let seconds = i64::try_from(seconds).ok()?;
        Some(Self { months, days, seconds, nanos: nanos.rem_euclid(second) as i32 })
    }

    /// Returns the months.
    #[must_use]
    pub fn months(&self) -> i64 {
        self.months
    }

    /// Returns the days.
    #[must_use]
    pub fn days(&self) -> i64 {
        self.days
    }

    /// Returns the seconds, rounded down.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        self.seconds
    }

    /// Returns the nanoseconds after the seconds, 0 to 999,999,999.
    #[must_use]
    pub fn subsec_nanos(&self) -> i32 {
        self.nanos
    }

    /// Returns the seconds and nanoseconds as nanoseconds.
    #[must_use]
    pub fn nanos(&self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS_OF_SECOND) + i128::from(self.nanos)
    }

    /// Adds two durations part by part. `None` if a part overflows.
    #[must_use]
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        let seconds = self.seconds.checked_add(other.seconds)?;
        let nanos = i128::from(self.nanos) + i128::from(other.nanos);
        Self::new(self.months.checked_add(other.months)?, self.days.checked_add(other.days)?, seconds, nanos)
    }

    /// Returns the duration backwards. `None` if a part overflows.
    #[must_use]
    pub fn checked_neg(&self) -> Option<Self> {
        let seconds = self.seconds.checked_neg()?;
        Self::new(self.months.checked_neg()?, self.days.checked_neg()?, seconds, -i128::from(self.nanos))
    }

    /// Multiplies each part by a whole number. `None` if a part overflows.
    #[must_use]
    pub fn checked_mul(&self, factor: i64) -> Option<Self> {
        let nanos = self.nanos().checked_mul(i128::from(factor))?;
        Self::new(self.months.checked_mul(factor)?, self.days.checked_mul(factor)?, 0, nanos)
    }

    /// Multiplies each part by a number and carries fractions on. `None` if a part overflows or is not a number.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Option<Self> {
        self.mapped(|part| part * factor)
    }

    /// Divides each part by a number and carries fractions on. `None` if a part overflows or is not a number.
    #[must_use]
    pub fn divided(&self, divisor: f64) -> Option<Self> {
        self.mapped(|part| part / divisor)
    }

    fn mapped(&self, map: impl Fn(f64) -> f64) -> Option<Self> {
        let scale = |part: i64| map(part as f64);
        let mut sum = Self::of_part(Part::Months, scale(self.months))?;
        sum = sum.checked_add(&Self::of_part(Part::Days, scale(self.days))?)?;
        sum = sum.checked_add(&Self::of_part(Part::Seconds, scale(self.seconds))?)?;
        sum.checked_add(&Self::of_part(Part::Nanoseconds, scale(i64::from(self.nanos)))?)
    }

    /// Makes a duration of a number of a part. `None` if it overflows or is not a number.
    #[must_use]
    pub fn of_part(part: Part, number: f64) -> Option<Self> {
        let second = NANOS_OF_SECOND as f64;
        let (months, days, nanos) = match part {
            Part::Years => return Self::of_part(Part::Months, number * 12.0),
            Part::Quarters => return Self::of_part(Part::Months, number * 3.0),
            Part::Weeks => return Self::of_part(Part::Days, number * 7.0),
            Part::Months => {
                let (whole, rest) = split(number)?;
                // Rounded once; the rest is exact.
                let rest = (rest * SECONDS_OF_MONTH as f64 * second).round() as i128;
                let day = i128::from(SECONDS_OF_DAY) * i128::from(NANOS_OF_SECOND);
                (whole, (rest / day) as i64, rest % day)
            }
            Part::Days => {
                let (whole, rest) = split(number)?;
                (0, whole, (rest * SECONDS_OF_DAY as f64 * second).round() as i128)
            }
            Part::Hours => return Self::of_seconds(number, 3600),
            Part::Minutes => return Self::of_seconds(number, 60),
            Part::Seconds => return Self::of_seconds(number, 1),
            Part::Milliseconds => return Self::of_nanos(number, 1_000_000),
            Part::Microseconds => return Self::of_nanos(number, 1_000),
            Part::Nanoseconds => return Self::of_nanos(number, 1),
        };
        Self::new(months, days, 0, nanos)
    }

    fn of_seconds(number: f64, seconds: i64) -> Option<Self> {
        let (whole, rest) = split(number)?;
        let nanos = (rest * (seconds * NANOS_OF_SECOND) as f64).round() as i128;
        Self::new(0, 0, whole.checked_mul(seconds)?, nanos)
    }

    fn of_nanos(number: f64, nanos: i64) -> Option<Self> {
        let (whole, rest) = split(number)?;
        // Parts of a nanosecond are dropped.
        Self::new(0, 0, 0, i128::from(whole) * i128::from(nanos) + (rest * nanos as f64) as i128)
    }

    /// Makes a duration of a whole number of a part. `None` if it overflows.
    #[must_use]
    pub fn of_whole(part: Part, number: i64) -> Option<Self> {
        let seconds = |length: i64| Self::new(0, 0, number.checked_mul(length)?, 0);
        let nanos = |length: i128| Self::new(0, 0, 0, i128::from(number) * length);
        match part {
            Part::Years => Self::new(number.checked_mul(12)?, 0, 0, 0),
            Part::Quarters => Self::new(number.checked_mul(3)?, 0, 0, 0),
            Part::Months => Self::new(number, 0, 0, 0),
            Part::Weeks => Self::new(0, number.checked_mul(7)?, 0, 0),
            Part::Days => Self::new(0, number, 0, 0),
            Part::Hours => seconds(3600),
            Part::Minutes => seconds(60),
            Part::Seconds => seconds(1),
            Part::Milliseconds => nanos(1_000_000),
            Part::Microseconds => nanos(1_000),
            Part::Nanoseconds => nanos(1),
        }
    }

    /// Returns the average length in nanoseconds, which orders durations.
    fn average(&self) -> i128 {
        let seconds = i128::from(self.months) * i128::from(SECONDS_OF_MONTH)
            + i128::from(self.days) * i128::from(SECONDS_OF_DAY)
            + i128::from(self.seconds);
        seconds * i128::from(NANOS_OF_SECOND) + i128::from(self.nanos)
    }
}

/// Splits a number into its whole part and the rest. `None` if the whole part does not fit into 64 bits.
fn split(number: f64) -> Option<(i64, f64)> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    let whole = number.trunc();
    (-BEYOND..BEYOND).contains(&whole).then_some((whole as i64, number - whole))
}

impl Ord for Duration {
    /// Compares average lengths, then parts, so that only equal durations are equal.
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = |d: &Self| (d.months, d.days, d.seconds, d.nanos);
        self.average().cmp(&other.average()).then_with(|| parts(self).cmp(&parts(other)))
    }
}

impl PartialOrd for Duration {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
