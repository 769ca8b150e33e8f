//! Vertices of a scan with values of their properties.

use crate::VertexRows;
use std::borrow::Cow;
use std::sync::Arc;
use tidegraph_types::{Gui, Integers, Token, Value, Width};

/// Vertices that pass a scan, with values of some property keys: aligned columns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScannedValues {
    /// The vertices.
    pub vertices: Vec<Gui>,
    /// One column for each key of the request, in that order: the value of each vertex, null if it has none, a set if it
    /// has several, in their order and with repetitions. A list is one value, which is a list.
    pub columns: Vec<ScannedColumn>,
}

/// The values of one key. Integers of one width, which a scan may find in all its vertices, need no value for each row.
#[derive(Clone, Debug)]
pub enum ScannedColumn {
    /// Any values.
    Values(Vec<Value>),
    /// An integer of the same width in every row.
    Integers(Integers),
}

impl Default for ScannedColumn {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

impl From<Vec<Value>> for ScannedColumn {
    fn from(values: Vec<Value>) -> Self {
        Self::Values(values)
    }
}

impl FromIterator<Value> for ScannedColumn {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Self::Values(values.into_iter().collect())
    }
}

impl PartialEq for ScannedColumn {
    fn eq(&self, other: &Self) -> bool {
        self.values() == other.values()
    }
}

impl ScannedColumn {
    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Integers(integers) => integers.values.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a row; `None` beyond the end.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<Value> {
        match self {
            Self::Values(values) => values.get(row).cloned(),
            Self::Integers(integers) => integers.get(row),
        }
    }

    /// Returns all values.
    #[must_use]
    pub fn values(&self) -> Cow<'_, [Value]> {
        match self {
            Self::Values(values) => Cow::Borrowed(values),
            Self::Integers(integers) => Cow::Owned(integers.iter().collect()),
        }
    }

    /// Returns the values to change or to append to.
    pub fn values_mut(&mut self) -> &mut Vec<Value> {
        match self {
            Self::Values(values) => values,
            Self::Integers(integers) => {
                let values = integers.iter().collect();
                *self = Self::Values(values);
                self.values_mut()
            }
        }
    }

    /// Returns the integers to append to, if all rows hold integers of this width.
    pub fn integers_mut(&mut self, width: Width) -> Option<&mut Vec<i64>> {
        if self.is_empty() {
            *self = Self::Integers(Integers { width, values: Vec::new() });
        }
        match self {
            Self::Integers(integers) if integers.width == width => Some(&mut integers.values),
            _ => None,
        }
    }

    /// Keeps the first rows.
    pub fn truncate(&mut self, rows: usize) {
        match self {
            Self::Values(values) => values.truncate(rows),
            Self::Integers(integers) => integers.values.truncate(rows),
        }
    }

    /// Appends the rows of another column.
    pub fn extend(&mut self, more: Self) {
        match more {
            more if self.is_empty() => *self = more,
            Self::Values(more) => self.values_mut().extend(more),
            Self::Integers(more) => match self.integers_mut(more.width) {
                Some(integers) => integers.extend(more.values),
                None => self.values_mut().extend(more.iter()),
            },
        }
    }

    /// Returns these rows in this order.
    #[must_use]
    pub fn gather(&self, rows: &[usize]) -> Self {
        match self {
            Self::Values(values) => Self::Values(rows.iter().map(|row| values[*row].clone()).collect()),
            Self::Integers(Integers { width, values }) => {
                let values = rows.iter().map(|row| values[*row]).collect();
                Self::Integers(Integers { width: *width, values })
            }
        }
    }
}

impl ScannedValues {
    /// Empties all columns and makes one for each key.
    pub fn begin(&mut self, keys: usize) {
        self.vertices.clear();
        self.columns.clear();
        self.columns.resize_with(keys, ScannedColumn::default);
    }

    /// Appends another answer with the same keys.
    pub fn extend(&mut self, more: Self) {
        self.vertices.extend(more.vertices);
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            column.extend(more);
        }
    }

    /// Appends the values of rows that were read with exactly these keys.
    pub fn append(&mut self, vertices: &[Gui], rows: &VertexRows, keys: &[Token]) {
        for (column, key) in self.columns.iter_mut().zip(keys) {
            column.values_mut().extend((0..vertices.len()).map(|row| {
                let cells = rows.cells_of(row).iter().filter(|cell| cell.key == *key);
                let values: Vec<Value> = cells.map(|cell| cell.value.clone()).collect();
                match values.len() {
                    0 => Value::Null,
                    1 => values.into_iter().next().unwrap_or_default(),
                    _ => Value::Set(Arc::new(values)),
                }
            }));
        }
        self.vertices.extend_from_slice(vertices);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stay_integers_until_another_value_comes() {
        let mut column = ScannedColumn::default();
        column.integers_mut(Width::Long).expect("an empty column").extend([1, 2]);
        let more = column.clone();
        column.extend(more);
        assert!(matches!(&column, ScannedColumn::Integers(found) if found.values == [1, 2, 1, 2]));
        assert_eq!(column.get(1), Some(Value::Long(2)));
        assert!(matches!(column.gather(&[3, 0]), ScannedColumn::Integers(found) if found.values == [2, 1]));
        assert!(column.integers_mut(Width::Int).is_none());
        let mut narrow = ScannedColumn::default();
        narrow.integers_mut(Width::Int).expect("an empty column").push(-7);
        column.extend(narrow);
        column.extend(vec![Value::Null].into());
        let all = [Value::Long(1), 2_i64.into(), 1_i64.into(), 2_i64.into(), Value::Int(-7), Value::Null];
        assert_eq!(*column.values(), all);
        assert!(matches!(column.get(4), Some(Value::Int(-7))));
        assert_eq!(column.get(6), None);
    }
}
