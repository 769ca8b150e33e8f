//! Rows for which a subplan answers the same, because the slots that it reads have the same values: it runs for the first
//! of them.
//!
//! Only vertices, edges, whole numbers, booleans, short texts and missing values are compared. Values of other types may be
//! equal and still not the same, as 1.0 and 1 or the lists of them are, and take long to compare.

use crate::{Batch, Column};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;
use std::mem::Discriminant;
use tidegraph_plan::Slot;
use tidegraph_types::{Edge, Gui, Value};

/// Longest text, in bytes, that is compared.
const SHORT_TEXT: usize = 64;

/// The rows of a batch, grouped.
pub(super) struct Groups {
    /// The first row of each group, ascending.
    pub firsts: Vec<u32>,
    /// The group of each row.
    pub of: Vec<u32>,
}

/// Returns the groups of rows with the same values in some slots; `None` if no two rows have, or values are not compared.
pub(super) fn groups(batch: &Batch, slots: &[Slot]) -> Option<Groups> {
    // All rows are the same in a constant, and in a slot that is not bound.
    let varies = |column: &&Column| !matches!(column, Column::Constant(..));
    let columns: SmallVec<[&Column; 4]> =
        slots.iter().filter_map(|slot| batch.column(*slot)).map(|column| &**column).filter(varies).collect();
    let handles: Option<SmallVec<[Handles<'_>; 4]>> =
        columns.iter().map(|column| Handles::of(column)).collect();
    let groups = match handles.as_deref() {
        Some([one]) => grouped((0..batch.len).map(|row| Some(one.get(row)))),
        Some(several) => {
            let key = |row: usize| several.iter().map(|handles| handles.get(row)).collect();
            grouped((0..batch.len).map(|row| -> Option<SmallVec<[u64; 3]>> { Some(key(row)) }))
        }
        None => {
            let key = |row: usize| columns.iter().map(|column| part(column, row)).collect();
            grouped((0..batch.len).map(|row| -> Option<SmallVec<[Part; 2]>> { key(row) }))
        }
    };
    groups.filter(|groups| groups.firsts.len() < batch.len)
}

/// A column of handles.
#[derive(Clone, Copy)]
enum Handles<'b> {
    Vertices(&'b [Gui]),
    Edges(&'b [Edge]),
}

impl<'b> Handles<'b> {
    fn of(column: &'b Column) -> Option<Self> {
        match column {
            Column::Vertices(vertices) => Some(Self::Vertices(vertices)),
            Column::Edges(edges) => Some(Self::Edges(edges)),
            _ => None,
        }
    }

    fn get(self, row: usize) -> u64 {
        match self {
            Self::Vertices(vertices) => vertices[row].0,
            Self::Edges(edges) => edges[row].sid.0,
        }
    }
}

/// A value that is equal only to the same value.
type Part = (Discriminant<Value>, Value);

fn part(column: &Column, row: usize) -> Option<Part> {
    let value = column.get(row);
    let is_compared = match &value {
        Value::Null
        | Value::Unbound
        | Value::Bool(_)
        | Value::Byte(_)
        | Value::Short(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::Vertex(_)
        | Value::Edge(_) => true,
        Value::String(text) => text.len() <= SHORT_TEXT,
        _ => false,
    };
    is_compared.then(|| (std::mem::discriminant(&value), value))
}

/// Returns the groups of equal keys; `None` if there is no key for a row.
fn grouped<K: Hash + Eq>(keys: impl ExactSizeIterator<Item = Option<K>>) -> Option<Groups> {
    let mut groups = Groups { firsts: vec![], of: Vec::with_capacity(keys.len()) };
    let mut known: FxHashMap<K, u32> = FxHashMap::default();
    for (row, key) in keys.enumerate() {
        let next = groups.firsts.len() as u32;
        let group = *known.entry(key?).or_insert(next);
        if group == next {
            groups.firsts.push(row as u32);
        }
        groups.of.push(group);
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(columns: Vec<Column>) -> Option<(Vec<u32>, Vec<u32>)> {
        let mut batch = Batch::unbound(columns[0].len(), 0);
        let slots: Vec<Slot> = (0..columns.len() as u32).map(Slot).collect();
        slots.iter().zip(columns).for_each(|(slot, column)| batch.set(*slot, column));
        groups(&batch, &slots).map(|groups| (groups.firsts, groups.of))
    }

    #[test]
    fn rows_with_the_same_values_are_a_group() {
        let vertices = || Column::Vertices([1, 2, 1, 2].map(Gui).to_vec());
        assert_eq!(firsts(vec![vertices()]), Some((vec![0, 1], vec![0, 1, 0, 1])));
        let values = Column::Values(vec!["a".into(), Value::Null, "a".into(), "b".into()]);
        assert_eq!(firsts(vec![vertices(), values]), Some((vec![0, 1, 3], vec![0, 1, 0, 2])));
        assert_eq!(firsts(vec![Column::Constant(Value::Double(1.5), 3)]), Some((vec![0], vec![0; 3])));
        assert_eq!(firsts(vec![Column::Vertices([1, 2].map(Gui).to_vec())]), None);
    }

    #[test]
    fn equal_values_that_are_not_the_same_are_no_group() {
        assert_eq!(firsts(vec![Column::Values(vec![Value::Int(1), Value::Long(1)])]), None);
        assert_eq!(firsts(vec![Column::Values(vec![Value::Null, Value::Unbound])]), None);
        assert_eq!(
            firsts(vec![Column::Values(vec![Value::Double(1.5), Value::Double(1.5)])]),
            None,
            "floats are not compared"
        );
        let lists = vec![Value::list(vec![1.into()]), Value::list(vec![Value::Double(1.0)])];
        assert_eq!(firsts(vec![Column::Values(lists)]), None);
        let long = Value::string("x".repeat(100));
        assert_eq!(firsts(vec![Column::Values(vec![long.clone(), long])]), None);
    }
}
