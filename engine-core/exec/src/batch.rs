//! Batches of rows, column by column.
//!
//! A [`Batch`] holds a shared [`Column`] for each slot of the plan, or nothing: then every row is `Unbound` there.
//! Columns are never changed in place. An operator makes new ones and shares the rest, so that passing a batch on costs
//! one reference count for each bound slot.
//!
//! *Origin*: inside a subplan each row has the number of its outer row; without origins all rows belong to row 0.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidegraph_plan::Slot;
use tidegraph_types::{Edge, Gui, Integers, Value};

/// Rows of a full batch.
pub const BATCH_ROWS: usize = 1024;
/// Rows of the first batch, so that short queries and small limits read little.
pub const FIRST_ROWS: usize = 64;

/// The values of one slot for all rows of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Column {
    /// Handles of vertices, one in every row.
    Vertices(Vec<Gui>),
    /// Handles of edges, one in every row.
    Edges(Vec<Edge>),
    /// Integers of the same width, one in every row.
    Integers(Integers),
    /// Any values.
    Values(Vec<Value>),
    /// The same value for this many rows.
    Constant(Value, usize),
}

impl Column {
    /// Makes the smallest column for these values: handles if all are handles of one kind.
    #[must_use]
    pub fn from_values(values: Vec<Value>) -> Self {
        match values.first() {
            Some(Value::Vertex(_)) if values.iter().all(|v| matches!(v, Value::Vertex(_))) => {
                Self::Vertices(values.iter().filter_map(Value::as_vertex).collect())
            }
            Some(Value::Edge(_)) if values.iter().all(|v| matches!(v, Value::Edge(_))) => {
                Self::Edges(values.iter().filter_map(Value::as_edge).collect())
            }
            _ => Self::Values(values),
        }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Vertices(v) => v.len(),
            Self::Edges(v) => v.len(),
            Self::Integers(v) => v.values.len(),
            Self::Values(v) => v.len(),
            Self::Constant(_, len) => *len,
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a row; `Unbound` beyond the end.
    #[must_use]
    pub fn get(&self, row: usize) -> Value {
        match self {
            Self::Vertices(v) => v.get(row).map_or(Value::Unbound, |gui| Value::Vertex(*gui)),
            Self::Edges(v) => v.get(row).map_or(Value::Unbound, |edge| Value::Edge(*edge)),
            Self::Integers(v) => v.get(row).unwrap_or(Value::Unbound),
            Self::Values(v) => v.get(row).cloned().unwrap_or(Value::Unbound),
            Self::Constant(v, len) if row < *len => v.clone(),
            Self::Constant(..) => Value::Unbound,
        }
    }

    /// Returns the GUI if the row holds a vertex, without making a `Value`.
    #[must_use]
    pub fn vertex(&self, row: usize) -> Option<Gui> {
        match self {
            Self::Vertices(v) => v.get(row).copied(),
            Self::Edges(_) | Self::Integers(_) => None,
            Self::Values(v) => v.get(row).and_then(Value::as_vertex),
            Self::Constant(v, len) => v.as_vertex().filter(|_| row < *len),
        }
    }

    /// Returns the handle if the row holds an edge.
    #[must_use]
    pub fn edge(&self, row: usize) -> Option<Edge> {
        match self {
            Self::Edges(v) => v.get(row).copied(),
            Self::Vertices(_) | Self::Integers(_) => None,
            Self::Values(v) => v.get(row).and_then(Value::as_edge),
            Self::Constant(v, len) => v.as_edge().filter(|_| row < *len),
        }
    }

    /// Whether the row is null or unbound.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Vertices(_) | Self::Edges(_) | Self::Integers(_) => false,
            Self::Values(v) => v.get(row).is_none_or(Value::is_null),
            Self::Constant(v, _) => v.is_null(),
        }
    }

    /// Returns the column of these rows in this order. Rows may repeat or be left out.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Self {
        match self {
            Self::Vertices(v) => Self::Vertices(rows.iter().map(|r| v[*r as usize]).collect()),
            Self::Edges(v) => Self::Edges(rows.iter().map(|r| v[*r as usize]).collect()),
            Self::Integers(Integers { width, values }) => {
                let values = rows.iter().map(|r| values[*r as usize]).collect();
                Self::Integers(Integers { width: *width, values })
            }
            Self::Values(v) => Self::Values(rows.iter().map(|r| v[*r as usize].clone()).collect()),
            Self::Constant(v, _) => Self::Constant(v.clone(), rows.len()),
        }
    }

    /// Estimates the memory of the column in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let own = match self {
            Self::Vertices(v) => v.len() * size_of::<Gui>(),
            Self::Edges(v) => v.len() * size_of::<Edge>(),
            Self::Integers(v) => v.values.len() * size_of::<i64>(),
            Self::Values(v) => v.len() * size_of::<Value>(),
            Self::Constant(..) => size_of::<Value>(),
        };
        own + self.heap_bytes()
    }

    /// Estimates the bytes that the values hold outside the column (long strings, lists, maps, paths). A value that
    /// successive rows share counts once. Handles hold nothing.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Vertices(_) | Self::Edges(_) | Self::Integers(_) => 0,
            Self::Constant(v, _) => v.heap_bytes(),
            Self::Values(values) => unshared(values).map(Value::heap_bytes).sum(),
        }
    }

    /// Estimates the bytes that the largest value holds outside the column.
    pub(crate) fn largest_value_bytes(&self) -> usize {
        match self {
            Self::Values(values) => unshared(values).map(Value::heap_bytes).max().unwrap_or(0),
            // Handles and integers are small, and a constant is not compared.
            Self::Vertices(_) | Self::Edges(_) | Self::Integers(_) | Self::Constant(..) => 0,
        }
    }
}

/// Returns the values that are not shared with the value before.
fn unshared(values: &[Value]) -> impl Iterator<Item = &Value> {
    let before = [&Value::Null].into_iter().chain(values);
    before.zip(values).filter(|(before, value)| !shares(before, value)).map(|(_, value)| value)
}

/// Whether two values are the same allocation, as clones of a long string, list, map or path are.
pub(crate) fn shares(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => std::ptr::eq(a.as_ptr(), b.as_ptr()),
        (Value::List(a), Value::List(b)) | (Value::Set(a), Value::Set(b)) => Arc::ptr_eq(a, b),
        (Value::Map(a), Value::Map(b)) | (Value::Tree(a), Value::Tree(b)) => Arc::ptr_eq(a, b),
        (Value::Graph(a), Value::Graph(b)) => Arc::ptr_eq(a, b),
        (Value::Path(a), Value::Path(b)) => Arc::ptr_eq(a, b),
        (Value::Property(a), Value::Property(b)) => Arc::ptr_eq(a, b),
        (Value::Entry(a), Value::Entry(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// Rows, column by column.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// Number of rows; operators never yield an empty batch.
    pub len: usize,
    /// The column of each slot of the plan; `None`, or beyond the end, the slot is unbound in every row.
    pub columns: Vec<Option<Arc<Column>>>,
    /// The outer row of each row; `None` for row 0 everywhere.
    pub origin: Option<Arc<Vec<u32>>>,
}

impl Batch {
    /// Makes rows with nothing bound.
    #[must_use]
    pub fn unbound(len: usize, slots: usize) -> Self {
        Self { len, columns: vec![None; slots], origin: None }
    }

    /// Returns the column of a slot.
    #[must_use]
    pub fn column(&self, slot: Slot) -> Option<&Arc<Column>> {
        self.columns.get(slot.0 as usize).and_then(Option::as_ref)
    }

    /// Returns the value of a slot in a row.
    #[must_use]
    pub fn value(&self, slot: Slot, row: usize) -> Value {
        self.column(slot).map_or(Value::Unbound, |column| column.get(row))
    }

    /// Binds a slot.
    pub fn set(&mut self, slot: Slot, column: Column) {
        self.set_shared(slot, Arc::new(column));
    }

    /// Binds a slot to a shared column.
    pub fn set_shared(&mut self, slot: Slot, column: Arc<Column>) {
        debug_assert_eq!(column.len(), self.len, "column of {slot}");
        let index = slot.0 as usize;
        if self.columns.len() <= index {
            self.columns.resize(index + 1, None);
        }
        self.columns[index] = Some(column);
    }

    /// Returns the outer row of a row.
    #[must_use]
    pub fn origin_of(&self, row: usize) -> u32 {
        self.origin.as_ref().map_or(0, |origin| origin[row])
    }

    /// Returns these rows in this order.
    #[must_use]
    pub fn gather(&self, rows: &[u32]) -> Self {
        Self {
            len: rows.len(),
            columns: self.columns.iter().map(|c| c.as_ref().map(|c| Arc::new(c.gather(rows)))).collect(),
            origin: self.gather_origin(rows),
        }
    }

    /// Returns these rows with only some slots.
    #[must_use]
    pub fn gather_slots(&self, rows: &[u32], keep: &[Slot]) -> Self {
        let mut columns = vec![None; self.columns.len()];
        for slot in keep {
            if let Some(column) = self.column(*slot) {
                columns[slot.0 as usize] = Some(Arc::new(column.gather(rows)));
            }
        }
        Self { len: rows.len(), columns, origin: self.gather_origin(rows) }
    }

    fn gather_origin(&self, rows: &[u32]) -> Option<Arc<Vec<u32>>> {
        self.origin.as_ref().map(|origin| Arc::new(rows.iter().map(|r| origin[*r as usize]).collect()))
    }

    /// Returns these rows, which must ascend without repeats; the batch itself if they are all of it.
    #[must_use]
    pub fn select(self, rows: &[u32]) -> Self {
        if rows.len() == self.len { self } else { self.gather(rows) }
    }

    /// Joins the rows of several batches.
    #[must_use]
    pub fn concat(mut batches: Vec<Batch>) -> Self {
        if batches.len() <= 1 {
            return batches.pop().unwrap_or_default();
        }
        let len = batches.iter().map(|b| b.len).sum();
        let slots = batches.iter().map(|b| b.columns.len()).max().unwrap_or(0);
        let columns = (0..slots).map(|slot| concat_slot(&batches, Slot(slot as u32), len)).collect();
        let origin = batches
            .iter()
            .any(|b| b.origin.is_some())
            .then(|| Arc::new(batches.iter().flat_map(|b| (0..b.len).map(|row| b.origin_of(row))).collect()));
        Self { len, columns, origin }
    }

    /// Estimates the memory of the batch in bytes; shared columns count fully.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().flatten().map(|c| c.bytes()).sum::<usize>()
            + self.columns.len() * size_of::<Option<Arc<Column>>>()
            + self.origin.as_ref().map_or(0, |o| o.len() * size_of::<u32>())
    }
}

fn concat_slot(batches: &[Batch], slot: Slot, len: usize) -> Option<Arc<Column>> {
    let parts: Vec<Option<&Column>> = batches.iter().map(|b| b.column(slot).map(|c| &**c)).collect();
    if parts.iter().all(Option::is_none) {
        return None;
    }
    let vertices: Option<Vec<&Vec<Gui>>> =
        parts.iter().map(|p| if let Some(Column::Vertices(v)) = p { Some(v) } else { None }).collect();
    if let Some(vertices) = vertices {
        return Some(Arc::new(Column::Vertices(vertices.into_iter().flatten().copied().collect())));
    }
    let edges: Option<Vec<&Vec<Edge>>> =
        parts.iter().map(|p| if let Some(Column::Edges(v)) = p { Some(v) } else { None }).collect();
    if let Some(edges) = edges {
        return Some(Arc::new(Column::Edges(edges.into_iter().flatten().copied().collect())));
    }
    if let Some(integers) = concat_integers(&parts, len) {
        return Some(Arc::new(Column::Integers(integers)));
    }
    let mut values = Vec::with_capacity(len);
    for (part, batch) in parts.iter().zip(batches) {
        match part {
            Some(column) => values.extend((0..batch.len).map(|row| column.get(row))),
            None => values.resize(values.len() + batch.len, Value::Unbound),
        }
    }
    Some(Arc::new(Column::Values(values)))
}

/// Joins columns of integers of one width; `None` if one of them holds other values.
fn concat_integers(parts: &[Option<&Column>], len: usize) -> Option<Integers> {
    let Some(Some(Column::Integers(Integers { width, .. }))) = parts.first() else { return None };
    let mut values = Vec::with_capacity(len);
    for part in parts {
        match part {
            Some(Column::Integers(part)) if part.width == *width => values.extend_from_slice(&part.values),
            _ => return None,
        }
    }
    Some(Integers { width: *width, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::Width;

    #[test]
    fn gather_repeats_and_drops_rows() {
        let mut batch = Batch::unbound(3, 3);
        batch.set(Slot(0), Column::Vertices(vec![Gui(1), Gui(2), Gui(3)]));
        batch.set(Slot(1), Column::Constant(7.into(), 3));
        batch.origin = Some(Arc::new(vec![4, 5, 6]));
        let gathered = batch.gather(&[2, 2, 0]);
        assert_eq!(gathered.len, 3);
        assert_eq!(gathered.value(Slot(0), 1), Value::Vertex(Gui(3)));
        assert_eq!(gathered.value(Slot(1), 2), Value::Int(7));
        assert_eq!(gathered.value(Slot(2), 0), Value::Unbound);
        assert_eq!(gathered.origin_of(2), 4);
        assert!(batch.gather_slots(&[0], &[Slot(1)]).column(Slot(0)).is_none());
    }

    #[test]
    fn integers_are_gathered_and_joined_as_integers_of_their_width() {
        let of = |width, values: &[i64]| {
            let mut batch = Batch::unbound(values.len(), 1);
            batch.set(Slot(0), Column::Integers(Integers { width, values: values.to_vec() }));
            batch
        };
        let long = of(Width::Long, &[1, i64::MIN, 3]);
        assert!(matches!(&**long.column(Slot(0)).unwrap(), column if column.bytes() == 24));
        let joined = Batch::concat(vec![long.gather(&[2, 1]), long.clone()]);
        assert!(
            matches!(&**joined.column(Slot(0)).unwrap(), Column::Integers(found) if found.values.len() == 5)
        );
        assert!(matches!(joined.value(Slot(0), 1), Value::Long(i64::MIN)));
        let mixed = Batch::concat(vec![long, of(Width::Int, &[-7]), Batch::unbound(1, 1)]);
        assert!(matches!(mixed.value(Slot(0), 0), Value::Long(1)));
        assert!(matches!(mixed.value(Slot(0), 3), Value::Int(-7)));
        assert_eq!(mixed.value(Slot(0), 4), Value::Unbound);
    }

    #[test]
    fn concat_joins_columns_of_different_shapes() {
        let mut a = Batch::unbound(1, 2);
        a.set(Slot(0), Column::Vertices(vec![Gui(1)]));
        let mut b = Batch::unbound(2, 2);
        b.set(Slot(0), Column::Constant(Value::Null, 2));
        b.set(Slot(1), Column::Values(vec![1.into(), 2.into()]));
        let all = Batch::concat(vec![a, b]);
        assert_eq!(all.len, 3);
        assert_eq!(all.value(Slot(0), 0), Value::Vertex(Gui(1)));
        assert_eq!(all.value(Slot(0), 2), Value::Null);
        assert_eq!(all.value(Slot(1), 0), Value::Unbound);
        assert_eq!(all.value(Slot(1), 2), Value::Int(2));
    }

    #[test]
    fn a_value_that_successive_rows_share_counts_once() {
        let list = || Value::list(vec![Value::Int(1); 100]);
        let (shared, alone) = (list(), list().heap_bytes());
        assert!(alone >= 100 * size_of::<Value>());
        let of = |values| Column::Values(values).heap_bytes();
        assert_eq!(of(vec![shared.clone(), shared.clone(), Value::Null]), alone);
        assert_eq!(of(vec![list(), list()]), 2 * alone);
        assert_eq!(of(vec![shared.clone(), Value::Null, shared.clone()]), 2 * alone);
        assert_eq!(Column::Constant(shared, 1_000).heap_bytes(), alone);
        assert_eq!(Column::Vertices(vec![Gui(1); 10]).bytes(), 10 * size_of::<Gui>());
    }

    #[test]
    fn handles_make_tight_columns() {
        let column = Column::from_values(vec![Value::Vertex(Gui(1)), Value::Vertex(Gui(2))]);
        assert!(matches!(column, Column::Vertices(_)));
        assert!(matches!(Column::from_values(vec![Value::Vertex(Gui(1)), Value::Null]), Column::Values(_)));
    }
}
