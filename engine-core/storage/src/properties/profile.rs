//! Profile of a characteristic set for the planner: number of rows, and bounds of each column.
//!
//! The writer counts and widens while it changes rows; the planner reads without a lock. Bounds do not narrow when
//! values are removed: they cover everything written since the set, or its checkpoint, was loaded.
//!
//! What must never happen: a value outside the bounds of its column.

use super::column::{ColumnType, Words, decode};
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_types::Value;

/// Bounds of one column, as words in the order of the values. Without values the least is above the greatest.
#[derive(Debug)]
struct Spread {
    least: AtomicU64,
    greatest: AtomicU64,
}

/// Counts and bounds of a set.
#[derive(Debug)]
pub(crate) struct Profile {
    rows: AtomicU64,
    columns: Box<[Spread]>,
}

/// Maps a number to a word that sorts like it.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn number(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

/// Returns the number of a cell, for points in time and dates the seconds since 1970 in UTC; `None` for NaN and for types
/// without such a number.
fn as_number(column: ColumnType, words: Words) -> Option<f64> {
    let word = words[0];
    let value = match column {
        ColumnType::Byte => f64::from(word as u8 as i8),
        ColumnType::Short => f64::from(word as u16 as i16),
        ColumnType::Int => f64::from(word as u32 as i32),
        ColumnType::Long | ColumnType::DateTime => word as i64 as f64,
        ColumnType::Float => f64::from(f32::from_bits(word as u32)),
        ColumnType::Double => f64::from_bits(word),
        ColumnType::Date | ColumnType::LocalDateTime => {
            // SAFETY: cells of these types own nothing.
            return Value::from(&unsafe { decode(column, words) }).epoch_seconds();
        }
        ColumnType::Bool | ColumnType::String | ColumnType::Elsewhere => return None,
    };
    (!value.is_nan()).then_some(value)
}

impl Profile {
    pub fn new(columns: usize) -> Self {
        let spread = || Spread { least: AtomicU64::new(u64::MAX), greatest: AtomicU64::new(0) };
        Self { rows: AtomicU64::new(0), columns: std::iter::repeat_with(spread).take(columns).collect() }
    }

    /// Adds or removes a row. Only the writer calls it.
    pub fn count(&self, more: bool) {
        let rows = self.rows.load(Ordering::Relaxed);
        self.rows.store(if more { rows + 1 } else { rows.saturating_sub(1) }, Ordering::Relaxed);
    }

    /// Adds rows of a checkpoint. Only the writer calls it.
    pub fn adopt(&self, rows: u64) {
        self.rows.store(self.rows.load(Ordering::Relaxed) + rows, Ordering::Relaxed);
    }

    /// Widens the bounds to a written cell. Only the writer calls it.
    #[inline]
    pub fn widen(&self, at: u16, column: ColumnType, words: Words) {
        let Some(word) = as_number(column, words).map(ordered) else { return };
        let spread = &self.columns[usize::from(at)];
        if word < spread.least.load(Ordering::Relaxed) {
            spread.least.store(word, Ordering::Relaxed);
        }
        if word > spread.greatest.load(Ordering::Relaxed) {
            spread.greatest.store(word, Ordering::Relaxed);
        }
    }

    /// Returns the number of rows of the newest version.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Returns the bounds of a column, if it ever held a number.
    pub fn bounds(&self, at: u16) -> Option<(f64, f64)> {
        let spread = &self.columns[usize::from(at)];
        let (least, greatest) =
            (spread.least.load(Ordering::Relaxed), spread.greatest.load(Ordering::Relaxed));
        (least <= greatest).then(|| (number(least), number(greatest)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::column::encode;
    use super::super::scalar::Scalar;
    use super::*;
    use tidegraph_types::Temporal;

    #[test]
    fn bounds_hold_every_number() {
        let values = [
            Value::Byte(-3),
            Value::Short(300),
            Value::Int(-70_000),
            Value::Long(i64::MIN),
            Value::Float(-0.5),
            Value::Double(f64::NAN),
            Value::Double(-1e300),
            Value::Double(f64::INFINITY),
            Value::Temporal(Temporal::Date(jiff::civil::date(1970, 1, 2))),
        ];
        let profile = Profile::new(1);
        assert_eq!(profile.bounds(0), None);
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in &values {
            let scalar = Scalar::from(value);
            profile.widen(0, ColumnType::of(&scalar), encode(&scalar));
            let number = value.as_f64().or_else(|| value.epoch_seconds());
            if let Some(number) = number.filter(|number| !number.is_nan()) {
                (least, greatest) = (least.min(number), greatest.max(number));
            }
            assert_eq!(profile.bounds(0), Some((least, greatest)), "{value:?}");
        }
        assert!(Profile::new(1).bounds(0).is_none());
    }
}
