//! Characteristic sets: the labels and keys of a row, with the type and cardinality of each key.
//!
//! Rows of one set share pages, in which each key of the set is a column and every row has a value in every column.
//! The order of labels and keys is part of the set. It is the order of first writing, which answers keep.
//!
//! A key has a column while it has one value of a type with columns. Otherwise the set records that its values are in
//! the overflow. If a graph has too many sets or a row too many keys, keys go to the overflow without being part of
//! the set (*irregular* sets).

use super::column::ColumnType;
use super::overflow::{Content, Values};
use super::profile::Profile;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegraph_types::{Cardinality, Token};

/// Number of sets of a partition that list their keys; later ones are irregular.
const MOST_SETS: usize = 4096;
/// Number of keys that a set lists.
pub(crate) const MOST_COLUMNS: usize = 128;
/// Number of columns from which a table pays for look-ups by key.
const MANY_COLUMNS: usize = 12;

/// Kind of the elements that own the rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RowKind {
    Vertex,
    Edge { with_id: bool },
}

impl RowKind {
    pub fn with_id(self) -> bool {
        self != Self::Edge { with_id: false }
    }
}

/// A key of a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ColumnShape {
    pub key: Token,
    pub column: ColumnType,
    pub cardinality: Cardinality,
}

/// What identifies a set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    pub kind: RowKind,
    pub labels: SmallVec<[Token; 4]>,
    pub columns: SmallVec<[ColumnShape; 8]>,
    pub irregular: bool,
}

impl Shape {
    pub fn of(kind: RowKind, labels: &[Token], content: &Content) -> Self {
        let columns = content.entries.iter().take(MOST_COLUMNS).map(|entry| {
            let column = match &entry.values {
                Values::One(value) => ColumnType::of(value),
                _ => ColumnType::Elsewhere,
            };
            ColumnShape { key: entry.key, column, cardinality: entry.cardinality }
        });
        Self {
            kind,
            labels: labels.into(),
            columns: columns.collect(),
            irregular: content.entries.len() > MOST_COLUMNS,
        }
    }

    /// Returns whether rows have an overflow cell.
    pub fn has_overflow(&self) -> bool {
        self.irregular || self.columns.iter().any(|column| column.column == ColumnType::Elsewhere)
    }

    /// Returns the shape that takes any row with these labels.
    fn irregular(&self) -> Self {
        Self { kind: self.kind, labels: self.labels.clone(), columns: SmallVec::new(), irregular: true }
    }
}

/// A column of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub shape: ColumnShape,
    /// Bytes of one row in the columns before it.
    pub before: u32,
}

/// A characteristic set.
#[derive(Debug)]
pub(crate) struct Set {
    pub number: u32,
    pub kind: RowKind,
    pub labels: Box<[Token]>,
    /// Columns in order of first writing.
    pub columns: Box<[Column]>,
    /// Whether rows may have keys in their overflow that the set does not list.
    pub irregular: bool,
    /// Bytes of one row before its overflow cell, if rows have one.
    pub overflow: Option<u32>,
    /// Bytes of one row.
    pub row_bytes: u32,
    pub profile: Profile,
    by_key: FxHashMap<Token, u16>,
}

impl Set {
    pub fn new(number: u32, shape: &Shape) -> Self {
        let mut before = 8 + if shape.kind.with_id() { 16 } else { 0 };
        let overflow = shape.has_overflow().then(|| {
            before += 8;
            before - 8
        });
        let columns: Box<[Column]> = shape
            .columns
            .iter()
            .map(|column| {
                let at = before;
                before += column.column.width();
                Column { shape: *column, before: at }
            })
            .collect();
        let by_key = if columns.len() < MANY_COLUMNS {
            FxHashMap::default()
        } else {
            (0..).zip(&columns).map(|(index, column)| (column.shape.key, index)).collect()
        };
        Self {
            number,
            kind: shape.kind,
            labels: Box::from(&shape.labels[..]),
            columns,
            irregular: shape.irregular,
            overflow,
            row_bytes: before,
            profile: Profile::new(shape.columns.len()),
            by_key,
        }
    }

    /// Returns whether its rows are vertices.
    pub fn is_of_vertices(&self) -> bool {
        self.kind == RowKind::Vertex
    }

    /// Returns the column of a key.
    #[inline]
    pub fn find(&self, key: Token) -> Option<u16> {
        if self.columns.len() < MANY_COLUMNS {
            return self.columns.iter().position(|column| column.shape.key == key).map(|index| index as u16);
        }
        self.by_key.get(&key).copied()
    }

    /// Returns whether this is the set of a shape.
    pub fn is(&self, shape: &Shape) -> bool {
        self.kind == shape.kind
            && self.irregular == shape.irregular
            && *self.labels == shape.labels[..]
            && self.columns.iter().map(|column| &column.shape).eq(&shape.columns)
    }

    fn bytes(&self) -> usize {
        2 * size_of::<Self>() + size_of_val(&*self.labels) * 2 + size_of_val(&*self.columns) * 2
    }
}

/// All sets of a partition. They are never removed: there are as many as combinations ever used.
#[derive(Default)]
pub(crate) struct Sets {
    sets: Vec<Arc<Set>>,
    numbers: FxHashMap<Shape, u32>,
    /// Number of the last result, because loads ask for the same set many times.
    last: u32,
}

impl Sets {
    /// Returns the set of a shape; if there are too many sets, the irregular one of its labels.
    pub fn intern(&mut self, shape: &Shape) -> &Arc<Set> {
        let last = self.last as usize;
        if self.sets.get(last).is_some_and(|set| set.is(shape)) {
            return &self.sets[last];
        }
        let known = self.numbers.get(shape).copied();
        let full = self.sets.len() >= MOST_SETS && !shape.columns.is_empty();
        let number = match known {
            Some(number) => number,
            None if full => self.number(&shape.irregular()),
            None => self.number(shape),
        };
        self.last = number;
        &self.sets[number as usize]
    }

    /// Returns the set of exactly this shape, which a checkpoint has, however many sets there are.
    pub fn adopt(&mut self, shape: &Shape) -> &Arc<Set> {
        let number = self.number(shape);
        &self.sets[number as usize]
    }

    fn number(&mut self, shape: &Shape) -> u32 {
        if let Some(&number) = self.numbers.get(shape) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.sets.push(Arc::new(Set::new(number, shape)));
        self.numbers.insert(shape.clone(), number);
        number
    }

    /// Returns the set of a number.
    pub fn get(&self, number: u32) -> Option<&Arc<Set>> {
        self.sets.get(number as usize)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    pub fn bytes(&self) -> usize {
        self.sets.iter().map(|set| set.bytes()).sum::<usize>() + self.numbers.capacity() * size_of::<Shape>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::Value;

    fn content(keys: impl IntoIterator<Item = u32>) -> Content {
        let properties: Vec<_> = keys.into_iter().map(|key| (Token(key), Value::Int(1))).collect();
        Content::of_properties(&properties)
    }

    #[test]
    fn order_and_types_make_sets() {
        let mut sets = Sets::default();
        let mut number = |labels: &[Token], content: &Content| {
            sets.intern(&Shape::of(RowKind::Vertex, labels, content)).number
        };
        let ab = number(&[Token(1)], &content([5, 6]));
        assert_eq!(number(&[Token(1)], &content([5, 6])), ab);
        assert_ne!(number(&[Token(1)], &content([6, 5])), ab);
        assert_ne!(number(&[Token(2)], &content([5, 6])), ab);
        let mut other = content([5, 6]);
        other.write(Token(6), Cardinality::Single, &Value::Long(1));
        assert_ne!(number(&[Token(1)], &other), ab);
        other.write(Token(6), Cardinality::List, &Value::Long(1));
        let listed = number(&[Token(1)], &other);
        assert_eq!(sets.sets[listed as usize].columns[1].shape.column, ColumnType::Elsewhere);
        assert_eq!(sets.sets[listed as usize].overflow, Some(24));
        assert_eq!(sets.sets[listed as usize].row_bytes, 8 + 16 + 8 + 4);
    }

    #[test]
    fn too_many_sets_or_keys_become_irregular() {
        let mut sets = Sets::default();
        for key in 0..MOST_SETS as u32 {
            let set = sets.intern(&Shape::of(RowKind::Vertex, &[], &content([key])));
            assert_eq!(set.find(Token(key)), Some(0));
        }
        let first = sets.intern(&Shape::of(RowKind::Vertex, &[], &content([100_000]))).clone();
        assert!(first.irregular && first.columns.is_empty());
        assert_eq!(sets.intern(&Shape::of(RowKind::Vertex, &[], &content([200_000]))).number, first.number);
        assert_eq!(sets.intern(&Shape::of(RowKind::Vertex, &[], &content([17]))).find(Token(17)), Some(0));
        let mut sets = Sets::default();
        let wide = sets.intern(&Shape::of(RowKind::Edge { with_id: false }, &[], &content(0..200)));
        assert!(wide.irregular);
        assert_eq!(wide.columns.len(), MOST_COLUMNS);
        assert_eq!(wide.find(Token(127)), Some(127));
        assert_eq!(wide.find(Token(128)), None);
    }
}
