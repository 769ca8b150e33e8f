//! The best few items by a value, and the first vertices of a scan by several.
//!
//! Order is the total order of `types::order` (openCypher's ORDER BY). A missing value is null, which is the largest:
//! last in ascending order, first in descending order. Of equal items those that were offered first are kept.

use crate::ScannedValues;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tidegraph_types::order::order;
use tidegraph_types::{Token, Value};

/// Selects the edges of an expansion that come first by a property.
///
/// ```
/// use tidegraph_apl::TopEdges;
/// use tidegraph_types::{Token, Value};
///
/// let mut best = TopEdges { key: Token(1), descending: true, count: 2, each: false }.best();
/// for (row, weight) in [(0, 5), (0, 7), (1, 6)] {
///     best.offer(row, Value::Long(weight), || weight);
/// }
/// assert_eq!(best.finish(), [7, 6]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopEdges {
    /// Property key.
    pub key: Token,
    /// Largest first.
    pub descending: bool,
    /// Number of edges to select; all edges if there are fewer.
    pub count: u32,
    /// Whether to select that number of edges of each vertex of the frontier, instead of all together.
    pub each: bool,
}

impl TopEdges {
    /// Makes an empty selection.
    #[must_use]
    pub fn best<T>(&self) -> Best<T> {
        Best { top: *self, row: None, offered: 0, kept: BinaryHeap::new(), done: Vec::new() }
    }
}

/// Keeps the best of the items that are offered. Rows must be offered in order.
#[derive(Debug)]
pub struct Best<T> {
    top: TopEdges,
    row: Option<u32>,
    offered: u64,
    /// The worst item that is kept is on top.
    kept: BinaryHeap<Kept<T>>,
    done: Vec<T>,
}

#[derive(Debug)]
struct Kept<T> {
    value: Value,
    descending: bool,
    number: u64,
    item: T,
}

fn ranked(a: &Value, b: &Value, descending: bool) -> Ordering {
    if descending { order(b, a) } else { order(a, b) }
}

impl<T> Ord for Kept<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        ranked(&self.value, &other.value, self.descending).then(self.number.cmp(&other.number))
    }
}

impl<T> PartialOrd for Kept<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Kept<T> {}

impl<T> Best<T> {
    /// Offers an item with its value. The item is made only if it is kept.
    pub fn offer(&mut self, row: u32, value: Value, item: impl FnOnce() -> T) {
        if self.top.each && self.row != Some(row) {
            self.flush();
            self.row = Some(row);
        }
        let descending = self.top.descending;
        if self.kept.len() >= self.top.count as usize {
            let Some(worst) = self.kept.peek() else { return };
            if ranked(&value, &worst.value, descending) != Ordering::Less {
                return;
            }
            self.kept.pop();
        }
        self.offered += 1;
        self.kept.push(Kept { value, descending, number: self.offered, item: item() });
    }

    fn flush(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        self.done.extend(kept.into_sorted_vec().into_iter().map(|kept| kept.item));
    }

    /// Returns the best items, best first; with `each`, row by row.
    #[must_use]
    pub fn finish(mut self) -> Vec<T> {
        self.flush();
        self.done
    }
}

/// Selects the vertices of a scan that come first by properties. Several values of a property are ordered as a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TopVertices {
    /// Property keys, each with whether the largest value comes first. A later key decides between vertices whose values
    /// of the earlier ones are equal.
    pub order: Vec<(Token, bool)>,
    /// Number of vertices to select; all vertices if there are fewer.
    pub count: u32,
}

impl TopVertices {
    /// Keeps the first of some vertices, in their order. `keys`: those of the columns.
    pub fn select(&self, keys: &[Token], found: &mut ScannedValues) {
        let places: Vec<(usize, bool)> = self
            .order
            .iter()
            .filter_map(|(key, descending)| Some((keys.iter().position(|k| k == key)?, *descending)))
            .collect();
        let columns: Vec<_> = found.columns.iter().map(|column| column.values()).collect();
        let compare = |a: &usize, b: &usize| {
            let by_key = places.iter().map(|(column, descending)| {
                let (a, b) = (listed(&columns[*column][*a]), listed(&columns[*column][*b]));
                ranked(&a, &b, *descending)
            });
            by_key.fold(Ordering::Equal, Ordering::then)
        };
        let mut rows: Vec<usize> = (0..found.vertices.len()).collect();
        // Equal vertices stay in their order.
        rows.sort_by(compare);
        rows.truncate(self.count as usize);
        found.vertices = rows.iter().map(|row| found.vertices[*row]).collect();
        for column in &mut found.columns {
            *column = column.gather(&rows);
        }
    }
}

/// Returns several values as a list.
pub(crate) fn listed(value: &Value) -> Value {
    match value {
        Value::Set(several) => Value::List(Arc::clone(several)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top(descending: bool, count: u32, each: bool, offered: &[(u32, Option<i64>)]) -> Vec<usize> {
        let mut best = TopEdges { key: Token(0), descending, count, each }.best();
        for (index, (row, value)) in offered.iter().enumerate() {
            best.offer(*row, value.map_or(Value::Null, Value::Long), || index);
        }
        best.finish()
    }

    #[test]
    fn the_first_vertices_are_those_of_all_keys() {
        let long = |numbers: [i64; 4]| numbers.map(Value::Long).to_vec();
        let mut found = ScannedValues {
            vertices: (0..4).map(tidegraph_types::Gui).collect(),
            columns: vec![long([1, 2, 2, 1]).into(), long([5, 6, 7, 4]).into()],
        };
        let top = TopVertices { order: vec![(Token(1), true), (Token(2), false)], count: 3 };
        top.select(&[Token(1), Token(2)], &mut found);
        assert_eq!(found.vertices, [1, 2, 3].map(tidegraph_types::Gui));
        assert_eq!(*found.columns[1].values(), [6, 7, 4].map(Value::Long));
    }

    #[test]
    fn the_best_are_kept_and_of_equal_ones_the_first() {
        let offered = [(0, Some(5)), (0, Some(7)), (0, None), (1, Some(7)), (1, Some(1)), (1, Some(5))];
        assert_eq!(top(false, 3, false, &offered), [4, 0, 5]);
        assert_eq!(top(true, 2, false, &offered), [2, 1]);
        assert_eq!(top(true, 2, true, &offered), [2, 1, 3, 5]);
        assert_eq!(top(false, 9, false, &offered), [4, 0, 5, 1, 3, 2]);
        assert_eq!(top(false, 0, true, &offered), [0_usize; 0]);
    }
}
