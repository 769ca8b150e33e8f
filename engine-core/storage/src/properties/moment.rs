//! Bounds of columns with dates and times, as words that compare like them.

use super::column::{ColumnType, date_word, local_words};
use std::cmp::Ordering;
use tidegraph_types::temporal::{as_zoned, seconds_and_nanos};
use tidegraph_types::{Temporal, Value};

/// The words of a point in time, or of a date and time.
pub(super) type Moment = (i64, u64);

/// A bound of a range, and whether the bound itself is inside.
type Bound<'v> = Option<&'v (Value, bool)>;

fn date(value: &Value) -> Option<i64> {
    match value {
        Value::Temporal(Temporal::Date(date)) => Some(i64::from(date_word(*date))),
        _ => None,
    }
}

/// Returns the least word of a date inside a lower bound; `None` if no date compares with it.
pub(super) fn first_date(low: Bound<'_>) -> Option<i64> {
    low.map_or(Some(i64::MIN), |(value, inside)| Some(date(value)? + i64::from(!inside)))
}

/// Returns the greatest word of a date inside an upper bound; `None` if no date compares with it.
pub(super) fn last_date(high: Bound<'_>) -> Option<i64> {
    high.map_or(Some(i64::MAX), |(value, inside)| Some(date(value)? - i64::from(!inside)))
}

/// Returns the words of a bound for a column, and how a cell with these words compares with it. Points in time in UTC
/// differ from those at the same instant in other zones. `None` if no cell compares with the bound.
fn moment(value: &Value, column: ColumnType) -> Option<(Moment, Ordering)> {
    match (value, column) {
        (Value::Temporal(Temporal::LocalDateTime(local)), ColumnType::LocalDateTime) => {
            let [first, nanos] = local_words(*local);
            Some(((first as i64, nanos), Ordering::Equal))
        }
        (_, ColumnType::DateTime) => {
            let zoned = as_zoned(value)?;
            let at = zoned.timestamp();
            let (seconds, nanos) = seconds_and_nanos(at);
            let order = tidegraph_types::order::compare(&Value::DateTime(at), value)?;
            Some(((seconds, nanos as u64), order))
        }
        _ => None,
    }
}

/// Returns the least words inside a lower bound; `None` if no cell compares with it.
pub(super) fn first(low: Bound<'_>, column: ColumnType) -> Option<Moment> {
    let Some((value, inside)) = low else { return Some((i64::MIN, 0)) };
    let ((seconds, nanos), order) = moment(value, column)?;
    let itself = order == Ordering::Greater || order == Ordering::Equal && *inside;
    Some((seconds, if itself { nanos } else { nanos + 1 }))
}

/// Returns the greatest words inside an upper bound; `None` if no cell compares with it.
pub(super) fn last(high: Bound<'_>, column: ColumnType) -> Option<Moment> {
    let Some((value, inside)) = high else { return Some((i64::MAX, u64::MAX)) };
    let ((seconds, nanos), order) = moment(value, column)?;
    let itself = order == Ordering::Less || order == Ordering::Equal && *inside;
    Some(match nanos {
        _ if itself => (seconds, nanos),
        0 => (seconds - 1, u64::MAX),
        _ => (seconds, nanos - 1),
    })
}
