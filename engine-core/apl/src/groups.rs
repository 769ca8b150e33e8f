//! Groups of vertices, made where the vertices are stored, and the weights of vertices that stand for several rows.
//!
//! Values of keys that are equal but not identical, such as 1 and 1.0, are different groups, because the caller may compute
//! with them.
//!
//! A group is partial: other partitions may answer with the same group, and one answer may hold it several times. The
//! caller combines what it gets: numbers of rows and of values are added, and so are sums.

use crate::top::listed;
use crate::{Expand, ScannedValues};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use tidegraph_types::order::order;
use tidegraph_types::{Direction, Token, Value};

/// Which groups to make of vertices.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Grouping {
    /// Vertices with the same values of these keys are a group.
    pub keys: Vec<Token>,
    /// What to compute of each group; at least one item.
    pub items: Vec<GroupItem>,
    /// How many rows a vertex stands for. Only numbers are computed of vertices that stand for several rows, not sums.
    pub weight: Weight,
}

/// What to compute of a group. Vertices without a value of the key are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupItem {
    /// The number of rows.
    Rows,
    /// The number of rows with a value of the key.
    Values(Token),
    /// The sum of the values: a long or a double. A vertex with another value is a group of its own, whose sum is that
    /// value. Null without values.
    Sum(Token),
    /// The first value in openCypher's order; null without values. Several values of a vertex are
    /// ordered as a list.
    Min(Token),
    /// The last value in openCypher's order; null without values.
    Max(Token),
}

impl GroupItem {
    /// Returns the key that it reads.
    #[must_use]
    pub fn key(self) -> Option<Token> {
        match self {
            Self::Rows => None,
            Self::Values(key) | Self::Sum(key) | Self::Min(key) | Self::Max(key) => Some(key),
        }
    }
}

/// How many rows a vertex stands for: the number of choices of one edge for each step. The default is one row.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Weight {
    /// The edges of each step.
    pub steps: Vec<Expand>,
    /// Whether the steps, which are two, must not choose the same edge.
    pub distinct: bool,
}

/// The choices of two steps that are the same edge.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shared {
    /// Each of these edges.
    Edges(Expand),
    /// Those of these edges that end where they begin.
    Loops(Expand),
}

impl Weight {
    /// Returns what to take off the product of the degrees.
    pub(crate) fn shared(&self) -> Option<Shared> {
        let [first, second] = &self.steps[..] else { return None };
        if !self.distinct {
            return None;
        }
        let labels = match (&first.labels, &second.labels) {
            (None, labels) | (labels, None) => labels.clone(),
            (Some(first), Some(second)) => {
                Some(first.iter().filter(|label| second.contains(label)).copied().collect())
            }
        };
        let of = |direction| Expand { labels, loops_once: true, ..Expand::all(direction) };
        Some(match (first.direction, second.direction) {
            (Direction::Both, other) | (other, Direction::Both) => Shared::Edges(of(other)),
            (one, other) if one == other => Shared::Edges(of(one)),
            _ => Shared::Loops(of(Direction::Out)),
        })
    }
}

/// Groups of vertices: columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The last group that began with these values of the keys.
    index: FxHashMap<Box<[Value]>, usize>,
    /// For each group in the index the one before it with equal values of the keys.
    before: FxHashMap<usize, usize>,
    /// A column for each key. Null stands for no value, a set for several values, as in [`ScannedValues`].
    pub keys: Vec<Vec<Value>>,
    /// A column for each item.
    pub items: Vec<Vec<Value>>,
    bytes: usize,
}

impl Groups {
    /// Makes groups without an index, as a message holds them.
    #[must_use]
    pub fn of_columns(keys: Vec<Vec<Value>>, items: Vec<Vec<Value>>) -> Self {
        Self { keys, items, ..Self::default() }
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.first().map_or(0, Vec::len)
    }

    /// Returns whether there is no group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Estimates the bytes of the groups.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds vertices that a scan found with the values of `tokens`. `weights`: how many rows each stands for.
    pub fn add(&mut self, grouping: &Grouping, tokens: &[Token], found: &ScannedValues, weights: &[u64]) {
        let column = |key: Token| tokens.iter().position(|token| *token == key).unwrap_or(usize::MAX);
        let key_columns: Vec<usize> = grouping.keys.iter().map(|key| column(*key)).collect();
        let item_columns: Vec<usize> =
            grouping.items.iter().map(|item| item.key().map_or(usize::MAX, column)).collect();
        let value = |column: usize, row: usize| {
            found.columns.get(column).and_then(|values| values.get(row)).unwrap_or_default()
        };
        let (mut keys, mut cells) = (Vec::new(), Vec::new());
        for (row, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            keys.clear();
            keys.extend(key_columns.iter().map(|column| value(*column, row)));
            let rows = i64::try_from(*weight).unwrap_or(i64::MAX);
            cells.clear();
            cells.extend(grouping.items.iter().zip(&item_columns).map(|(item, column)| match item {
                GroupItem::Rows => Value::Long(rows),
                GroupItem::Values(_) => Value::Long(if value(*column, row).is_null() { 0 } else { rows }),
                GroupItem::Sum(_) => summand(value(*column, row)),
                GroupItem::Min(_) | GroupItem::Max(_) => value(*column, row),
            }));
            self.add_row(&grouping.items, &keys, &mut cells);
        }
    }

    /// Adds the groups of another answer to the same request. Returns false if its columns do not fit.
    #[must_use]
    pub fn merge(&mut self, grouping: &Grouping, other: &Self) -> bool {
        let rows = other.len();
        let all = || other.keys.iter().chain(&other.items);
        // Without groups there are no columns.
        if all().all(Vec::is_empty) {
            return true;
        }
        if other.keys.len() != grouping.keys.len()
            || other.items.len() != grouping.items.len()
            || all().any(|column| column.len() != rows)
        {
            return false;
        }
        let (mut keys, mut cells) = (Vec::new(), Vec::new());
        for row in 0..rows {
            keys.clear();
            keys.extend(other.keys.iter().map(|column| column[row].clone()));
            cells.clear();
            cells.extend(other.items.iter().map(|column| column[row].clone()));
            self.add_row(&grouping.items, &keys, &mut cells);
        }
        true
    }

    /// Adds what one vertex, or one partial group, contributes.
    fn add_row(&mut self, items: &[GroupItem], keys: &[Value], cells: &mut Vec<Value>) {
        let is_sum = |item: &GroupItem| matches!(item, GroupItem::Sum(_));
        let is_foldable = |cell: &Value| matches!(cell, Value::Null | Value::Long(_) | Value::Double(_));
        if items.iter().zip(&*cells).any(|(item, cell)| is_sum(item) && !is_foldable(cell)) {
            self.push(keys, cells);
            return;
        }
        if let Some(group) = self.group(keys) {
            let sums = items.iter().zip(&self.items).zip(&*cells).map(|((item, column), cell)| {
                if is_sum(item) { sum_of(&column[group], cell) } else { Some(Value::Null) }
            });
            // If a sum would be too large, the group begins again.
            if let Some(sums) = sums.collect::<Option<Vec<Value>>>() {
                let (bytes, columns) = (&mut self.bytes, self.items.iter_mut());
                for (((item, column), cell), sum) in items.iter().zip(columns).zip(cells.drain(..)).zip(sums)
                {
                    combine(*item, &mut column[group], cell, sum, bytes);
                }
                return;
            }
        }
        let group = self.len();
        if let Some(before) = self.index.insert(keys.into(), group) {
            self.before.insert(group, before);
        }
        self.push(keys, cells);
    }

    /// Returns the group that rows with these values of the keys join.
    fn group(&self, keys: &[Value]) -> Option<usize> {
        let mut group = self.index.get(keys).copied();
        while let Some(at) = group {
            if self.keys.iter().zip(keys).all(|(column, key)| are_identical(&column[at], key)) {
                return Some(at);
            }
            group = self.before.get(&at).copied();
        }
        None
    }

    fn push(&mut self, keys: &[Value], cells: &mut Vec<Value>) {
        self.keys.resize_with(keys.len(), Vec::new);
        self.items.resize_with(cells.len(), Vec::new);
        let heap: usize = keys.iter().chain(&*cells).map(Value::heap_bytes).sum();
        // Keys are in the index, too.
        self.bytes += 2 * heap + (2 * keys.len() + cells.len()) * size_of::<Value>() + 48;
        self.keys.iter_mut().zip(keys).for_each(|(column, key)| column.push(key.clone()));
        self.items.iter_mut().zip(cells.drain(..)).for_each(|(column, cell)| column.push(cell));
    }
}

/// Whether equal values are identical: numbers have the same type and sign.
fn are_identical(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Double(one), Value::Double(other)) => one.to_bits() == other.to_bits(),
        (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
        (Value::List(one), Value::List(other)) | (Value::Set(one), Value::Set(other)) => {
            one.len() == other.len() && one.iter().zip(&**other).all(|(a, b)| are_identical(a, b))
        }
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

/// Returns what a value adds to a sum: a long or a double if it can.
fn summand(value: Value) -> Value {
    value.as_i64().map_or(value, Value::Long)
}

/// Adds two sums; `None` if a long cannot hold the result.
fn sum_of(sum: &Value, more: &Value) -> Option<Value> {
    match (sum, more) {
        (Value::Null, one) | (one, Value::Null) => Some(one.clone()),
        (Value::Long(sum), Value::Long(more)) => sum.checked_add(*more).map(Value::Long),
        _ => Some(Value::Double(sum.as_f64()? + more.as_f64()?)),
    }
}

fn combine(item: GroupItem, so_far: &mut Value, cell: Value, sum: Value, bytes: &mut usize) {
    let wanted = match item {
        GroupItem::Sum(_) => {
            *so_far = sum;
            return;
        }
        GroupItem::Rows | GroupItem::Values(_) => {
            let rows = so_far.as_i64().unwrap_or(0).saturating_add(cell.as_i64().unwrap_or(0));
            *so_far = Value::Long(rows);
            return;
        }
        GroupItem::Min(_) => Ordering::Less,
        GroupItem::Max(_) => Ordering::Greater,
    };
    if !cell.is_null() && (so_far.is_null() || order(&listed(&cell), &listed(so_far)) == wanted) {
        *bytes += cell.heap_bytes();
        *so_far = cell;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Token = Token(1);
    const OTHER: Token = Token(2);

    fn grouping() -> Grouping {
        let items =
            vec![GroupItem::Rows, GroupItem::Values(OTHER), GroupItem::Sum(OTHER), GroupItem::Max(OTHER)];
        Grouping { keys: vec![KEY], items, weight: Weight::default() }
    }

    fn groups(rows: &[(i64, Value)]) -> Groups {
        let found = ScannedValues {
            vertices: vec![tidegraph_types::Gui(0); rows.len()],
            columns: vec![
                rows.iter().map(|(key, _)| Value::Long(*key)).collect(),
                rows.iter().map(|(_, value)| value.clone()).collect(),
            ],
        };
        let mut groups = Groups::default();
        groups.add(&grouping(), &[KEY, OTHER], &found, &vec![1; rows.len()]);
        groups
    }

    fn rows(groups: &Groups) -> Vec<Vec<Value>> {
        let row =
            |at: usize| groups.keys.iter().chain(&groups.items).map(|column| column[at].clone()).collect();
        (0..groups.len()).map(row).collect()
    }

    fn longs<const N: usize>(numbers: [i64; N]) -> Vec<Value> {
        numbers.map(Value::Long).into()
    }

    #[test]
    fn groups_are_merged() {
        let mut all = groups(&[(1, Value::Int(5)), (2, Value::Long(7)), (1, Value::Null)]);
        assert_eq!(rows(&all), [longs([1, 2, 1, 5, 5]), longs([2, 1, 1, 7, 7])]);
        assert!(all.merge(&grouping(), &groups(&[(1, Value::Long(9)), (3, Value::Long(1))])));
        assert_eq!(rows(&all), [longs([1, 3, 2, 14, 9]), longs([2, 1, 1, 7, 7]), longs([3, 1, 1, 1, 1])]);
        assert!(
            !all.merge(&grouping(), &Groups::of_columns(vec![], vec![longs([1])])),
            "a column is missing"
        );
    }

    #[test]
    fn values_that_cannot_be_added_are_groups_of_their_own() {
        let text = || Value::string("x");
        let all =
            groups(&[(1, Value::Long(i64::MAX)), (1, text()), (1, Value::Long(1)), (1, Value::Long(2))]);
        let of_text = vec![Value::Long(1), Value::Long(1), Value::Long(1), text(), text()];
        let max = i64::MAX;
        assert_eq!(rows(&all), [longs([1, 1, 1, max, max]), of_text, longs([1, 2, 2, 3, 2])]);
    }

    #[test]
    fn equal_keys_of_other_types_are_other_groups() {
        let found = |keys: &[Value]| ScannedValues {
            vertices: vec![tidegraph_types::Gui(0); keys.len()],
            columns: vec![keys.to_vec().into()],
        };
        let grouping = Grouping { keys: vec![KEY], items: vec![GroupItem::Rows], weight: Weight::default() };
        let mut groups = Groups::default();
        let lists = [Value::list(vec![Value::Long(1)]), Value::list(vec![Value::Double(1.0)])];
        let keys =
            [Value::Long(0), Value::Double(0.0), Value::Double(-0.0), lists[0].clone(), lists[1].clone()];
        for _ in 0..3 {
            groups.add(&grouping, &[KEY], &found(&keys), &[1; 5]);
        }
        assert_eq!(groups.items, [longs([3; 5])]);
        let shown = |keys: &[Value]| keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>();
        assert_eq!(shown(&groups.keys[0]), shown(&keys));
    }

    #[test]
    fn the_same_edge_is_taken_off_where_both_steps_may_choose_it() {
        let step =
            |direction, label: u32| Expand { labels: Some(vec![Token(label)]), ..Expand::all(direction) };
        let shared = |first, second| Weight { steps: vec![first, second], distinct: true }.shared();
        let once = |expand: Expand| Expand { loops_once: true, ..expand };
        let (out, inward, both) = (Direction::Out, Direction::In, Direction::Both);
        assert_eq!(shared(step(out, 1), step(out, 1)), Some(Shared::Edges(once(step(out, 1)))));
        assert_eq!(shared(step(inward, 1), step(out, 1)), Some(Shared::Loops(once(step(out, 1)))));
        assert_eq!(shared(step(both, 1), Expand::all(inward)), Some(Shared::Edges(once(step(inward, 1)))));
        let none = Expand { labels: Some(vec![]), ..once(step(both, 1)) };
        assert_eq!(shared(step(both, 1), step(both, 2)), Some(Shared::Edges(none)));
        assert_eq!(Weight { steps: vec![step(out, 1), step(out, 1)], distinct: false }.shared(), None);
    }
}
