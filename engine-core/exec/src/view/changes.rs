//! What a request changed, as the change stream tells it.
//!
//! The changes are the difference between storage and the final state, by the user's ids and with the values that are
//! replaced or removed. Storage is read at the request's version, and what is read is recorded: if another transaction
//! changes it first, this one is refused, so a former value is never an older one.
//!
//! Order: what is deleted (properties before their element, edges before vertices); new vertices; new edges; changed
//! vertices and edges. A reader that applies the changes in order always finds the element that a change is about.

use super::View;
use super::pending::{Pending, PendingCell, PendingEdge};
use crate::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem::discriminant;
use tidegraph_apl::{EdgeRead, EdgeRows, Projection, PropertyCell, VertexRead, VertexRows};
use tidegraph_types::{Change, Changed, Edge, Gui, Key, Mutation, Sid, Str, Token, Value};

/// Maximum bytes of the changes of one transaction: the most that the sequencer takes of one.
const MOST_BYTES: usize = 64 << 20;
/// Number of elements that are read at a time.
const BATCH: usize = 1024;

/// The changes found so far.
struct List {
    changes: Vec<Change>,
    bytes: usize,
}

impl List {
    fn push(&mut self, removed: bool, id: &Str, what: Changed) -> Result<()> {
        let change = Change { removed, id: id.clone(), what };
        self.bytes += change.bytes();
        if self.bytes > MOST_BYTES {
            return Err(Error::TooManyChanges { limit_bytes: MOST_BYTES });
        }
        self.changes.push(change);
        Ok(())
    }

    fn labels(&mut self, removed: bool, id: &Str, labels: &[Token]) -> Result<()> {
        if labels.is_empty() {
            return self.push(removed, id, Changed::VertexLabel(None));
        }
        labels.iter().try_for_each(|label| self.push(removed, id, Changed::VertexLabel(Some(*label))))
    }

    fn edge(&mut self, removed: bool, id: &Str, edge: &Edge, ids: &FxHashMap<Gui, Str>) -> Result<()> {
        let end = |gui: &Gui| ids.get(gui).cloned().unwrap_or_default();
        let (from, to) = (end(&edge.source), end(&edge.target));
        self.push(removed, id, Changed::Edge { label: edge.label, from, to })
    }

    /// Adds the difference between two lists of values of a vertex property. Values that stay keep their order.
    fn values(&mut self, id: &Str, key: Token, base: &[&Value], now: &[PendingCell]) -> Result<()> {
        let mut now = now.iter().map(|cell| &cell.cell.value).peekable();
        for value in base {
            if now.next_if(|next| is_same(next, value)).is_none() {
                self.push(true, id, Changed::VertexProperty(key, (*value).clone()))?;
            }
        }
        now.try_for_each(|value| self.push(false, id, Changed::VertexProperty(key, value.clone())))
    }
}

/// Whether two values are the same, type included.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => discriminant(a) == discriminant(b) && a == b,
    }
}

impl View<'_> {
    /// Returns what the request changes; `None` if the graph has no stream.
    pub(super) fn changes(&self, pending: &Pending) -> Result<Option<Vec<Change>>> {
        if !self.streams {
            return Ok(None);
        }
        let mut list = List { changes: Vec::new(), bytes: 0 };
        self.deleted(pending, &mut list)?;
        self.created(pending, &mut list)?;
        self.changed_vertices(pending, &mut list)?;
        self.changed_edges(pending, &mut list)?;
        Ok(Some(list.changes))
    }

    fn deleted(&self, pending: &Pending, list: &mut List) -> Result<()> {
        let edges: Vec<Edge> =
            pending.deleted_edges.iter().filter_map(|sid| pending.edges.get(sid)).map(|e| e.edge).collect();
        let mut rows = EdgeRows::default();
        for edges in edges.chunks(BATCH) {
            let ids = self.ids_of_ends(edges, |guis, rows| {
                let read = VertexRead { ids: true, ..VertexRead::default() };
                self.stored_rows(&read, guis, rows)
            })?;
            self.edges_before(&EdgeRead { ids: true, properties: Projection::All }, edges, &mut rows)?;
            for (row, edge) in edges.iter().enumerate().filter(|(row, _)| rows.present[*row]) {
                let id = &rows.ids[row];
                for PropertyCell { key, value, .. } in rows.cells_of(row) {
                    list.push(true, id, Changed::EdgeProperty(*key, value.clone()))?;
                }
                list.edge(true, id, edge, &ids)?;
            }
        }
        let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
        let mut rows = VertexRows::default();
        for vertices in pending.deleted_vertices.chunks(BATCH) {
            self.vertices_before(&read, vertices, &mut rows)?;
            for row in (0..vertices.len()).filter(|row| rows.present[*row]) {
                let id = &rows.ids[row];
                for PropertyCell { key, value, .. } in rows.cells_of(row) {
                    list.push(true, id, Changed::VertexProperty(*key, value.clone()))?;
                }
                list.labels(true, id, rows.labels_of(row))?;
            }
        }
        Ok(())
    }

    fn created(&self, pending: &Pending, list: &mut List) -> Result<()> {
        let created = pending.created_vertices.iter().enumerate();
        let created = created.filter_map(|(index, gui)| {
            pending.vertices.get(gui).filter(|vertex| vertex.created == Some(index))
        });
        for vertex in created {
            list.labels(false, &vertex.id, &vertex.labels)?;
            for PendingCell { cell, .. } in vertex.cells.iter().flat_map(|(_, cells)| cells) {
                list.push(false, &vertex.id, Changed::VertexProperty(cell.key, cell.value.clone()))?;
            }
        }
        let created: Vec<&PendingEdge> = pending
            .created_edges
            .iter()
            .filter_map(|sid| pending.edges.get(sid))
            .filter(|e| !e.deleted)
            .collect();
        for created in created.chunks(BATCH) {
            let edges: Vec<Edge> = created.iter().map(|created| created.edge).collect();
            let ids = self.ids_of_ends(&edges, |guis, rows| {
                self.vertices_unrecorded(&VertexRead { ids: true, ..VertexRead::default() }, guis, rows)
            })?;
            for created in created {
                let id = created.id();
                list.edge(false, &id, &created.edge, &ids)?;
                for (key, value) in &created.cells {
                    if let Some(value) = value {
                        list.push(false, &id, Changed::EdgeProperty(*key, value.clone()))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn changed_vertices(&self, pending: &Pending, list: &mut List) -> Result<()> {
        let mut seen = FxHashSet::default();
        let changed = pending.changes.iter().filter_map(|change| match change {
            Mutation::AddLabels { gui, .. }
            | Mutation::RemoveLabels { gui, .. }
            | Mutation::SetVertexProperty { gui, .. }
            | Mutation::RemoveVertexProperty { gui, .. } => Some(*gui),
            _ => None,
        });
        let is_left = |gui: &Gui| {
            pending.vertices.get(gui).is_some_and(|v| v.in_base && !v.base_deleted && v.created.is_none())
        };
        let changed: Vec<Gui> = changed.filter(|gui| seen.insert(*gui)).filter(is_left).collect();
        let mut rows = VertexRows::default();
        for vertices in changed.chunks(BATCH) {
            let now = |gui: &Gui| pending.vertices.get(gui);
            let keys: FxHashSet<Token> = vertices
                .iter()
                .filter_map(now)
                .flat_map(|vertex| vertex.cells.iter().map(|(key, _)| *key))
                .collect();
            let properties = Projection::Keys(keys.into_iter().collect());
            let read = VertexRead { ids: true, labels: true, properties, meta: false };
            self.vertices_before(&read, vertices, &mut rows)?;
            for (row, gui) in vertices.iter().enumerate().filter(|(row, _)| rows.present[*row]) {
                let Some(vertex) = now(gui) else { continue };
                let id = &rows.ids[row];
                list_labels(list, id, rows.labels_of(row), &vertex.labels)?;
                for (key, cells) in &vertex.cells {
                    let base = rows.cells_of(row).iter().filter(|cell| cell.key == *key);
                    let base: Vec<&Value> = base.map(|cell| &cell.value).collect();
                    list.values(id, *key, &base, cells)?;
                }
            }
        }
        Ok(())
    }

    fn changed_edges(&self, pending: &Pending, list: &mut List) -> Result<()> {
        let mut seen = FxHashSet::<Sid>::default();
        let changed = pending.changes.iter().filter_map(|change| match change {
            Mutation::SetEdgeProperty { edge, .. } | Mutation::RemoveEdgeProperty { edge, .. } => Some(*edge),
            _ => None,
        });
        let changed: Vec<Edge> =
            changed.filter(|edge| !pending.is_gone(edge) && seen.insert(edge.sid)).collect();
        let mut rows = EdgeRows::default();
        for edges in changed.chunks(BATCH) {
            self.edges_before(&EdgeRead { ids: true, properties: Projection::All }, edges, &mut rows)?;
            for (row, edge) in edges.iter().enumerate().filter(|(row, _)| rows.present[*row]) {
                let Some(now) = pending.edges.get(&edge.sid) else { continue };
                let id = &rows.ids[row];
                for (key, value) in &now.cells {
                    let base = rows.cells_of(row).iter().find(|cell| cell.key == *key);
                    match (base.map(|cell| &cell.value), value) {
                        (Some(base), Some(value)) if is_same(base, value) => continue,
                        (Some(base), _) => list.push(true, id, Changed::EdgeProperty(*key, base.clone()))?,
                        (None, _) => {}
                    }
                    if let Some(value) = value {
                        list.push(false, id, Changed::EdgeProperty(*key, value.clone()))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads vertices as storage has them, and records that they were read.
    fn vertices_before(&self, read: &VertexRead, vertices: &[Gui], rows: &mut VertexRows) -> Result<()> {
        self.record(vertices.iter().map(|gui| Key::content(*gui)));
        rows.clear();
        self.stored_rows(read, vertices, rows)
    }

    /// Reads edges as storage has them, and records that they were read.
    fn edges_before(&self, read: &EdgeRead, edges: &[Edge], rows: &mut EdgeRows) -> Result<()> {
        self.record(edges.iter().map(|edge| Key::edge(edge.sid)));
        rows.clear();
        Ok(self.apl.edges(self.at, read, edges, rows)?)
    }

    /// Returns the ids of the vertices at the ends of edges. An id never changes, so nothing is recorded.
    fn ids_of_ends(
        &self,
        edges: &[Edge],
        read: impl Fn(&[Gui], &mut VertexRows) -> Result<()>,
    ) -> Result<FxHashMap<Gui, Str>> {
        let mut ends: Vec<Gui> = edges.iter().flat_map(|edge| [edge.source, edge.target]).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut rows = VertexRows::default();
        read(&ends, &mut rows)?;
        Ok(ends.into_iter().zip(rows.ids).collect())
    }
}

/// Adds the difference between the labels of a vertex. New ones come first, so that the vertex always has one.
fn list_labels(list: &mut List, id: &Str, base: &[Token], now: &[Token]) -> Result<()> {
    let no_label = |labels: &[Token]| labels.is_empty();
    for label in now.iter().filter(|label| !base.contains(label)) {
        list.push(false, id, Changed::VertexLabel(Some(*label)))?;
    }
    if no_label(now) && !no_label(base) {
        list.push(false, id, Changed::VertexLabel(None))?;
    }
    for label in base.iter().filter(|label| !now.contains(label)) {
        list.push(true, id, Changed::VertexLabel(Some(*label)))?;
    }
    if no_label(base) && !no_label(now) {
        list.push(true, id, Changed::VertexLabel(None))?;
    }
    Ok(())
}
