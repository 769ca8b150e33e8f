//! Writes: each goes to the pending state at once, so that the next read sees it.
//!
//! Callers pass whole batches, so that ids, places, SIDs and the needed state of stored elements are read once a batch.
//! Callers have checked that values can be stored.

use super::View;
use super::pending::{Pending, PendingCell, PendingEdge, PendingVertex};
use crate::{Entropy, Error, Result};
use tidegraph_apl::{
    Cursor, EdgeRead, EdgeRows, Expand, Expansion, Projection, PropertyCell, VertexRead, VertexRows,
};
use tidegraph_types::{
    Cardinality, Direction, Edge, Gui, GuiHasher, Key, Mutation, PropertyWrite, Sid, Str, Token, Value,
    element,
};

/// Maximum number of deleted edges that a commit lists. Beyond this, edges that are deleted with their vertex are not
/// listed, unless the graph has a change stream, which tells each of them.
const MOST_LISTED: u64 = 1 << 16;

/// A vertex to create.
#[derive(Clone, PartialEq, Debug)]
pub struct NewVertex {
    /// The user's id; `None` for a random UUID.
    pub id: Option<Str>,
    /// Labels; repeated ones count once.
    pub labels: Vec<Token>,
    /// Properties, in order of writing.
    pub properties: Vec<PropertyWrite>,
}

/// An edge to create.
#[derive(Clone, PartialEq, Debug)]
pub struct NewEdge {
    /// The id that the user chose, if any.
    pub id: Option<Str>,
    /// Source vertex.
    pub source: Gui,
    /// Target vertex.
    pub target: Gui,
    /// Label.
    pub label: Token,
    /// Properties; the last value of a key counts.
    pub properties: Vec<(Token, Value)>,
}

/// Returns the values of a key in a row of storage's answer.
fn stored_cells(rows: &VertexRows, row: usize, key: Token) -> Vec<PendingCell> {
    let cells = (rows.first_cell_of(row)..).zip(rows.cells_of(row)).filter(|(_, cell)| cell.key == key);
    let cell = |(number, cell): (usize, &PropertyCell)| PendingCell {
        cell: cell.clone(),
        meta: rows.meta_of(number..number + 1).iter().map(|meta| (meta.key, meta.value.clone())).collect(),
    };
    cells.map(cell).collect()
}

impl View<'_> {
    /// Creates vertices and returns their GUIs.
    ///
    /// # Errors
    ///
    /// `Error::VertexExists` for an id that a vertex has already, `Error::Storage` if storage does not answer.
    pub fn create_vertices(&self, new: Vec<NewVertex>, entropy: &dyn Entropy) -> Result<Vec<Gui>> {
        let chosen: Vec<Str> = new.iter().filter_map(|v| v.id.clone()).collect();
        let mut found = vec![];
        if !chosen.is_empty() {
            self.resolve_vertices(&chosen, None, &mut found)?;
            if let Some(at) = found.iter().position(Option::is_some) {
                return Err(Error::VertexExists(chosen[at].clone()));
            }
        }
        let asked: Vec<(Str, u64)> =
            new.iter().map(|v| (v.id.clone().unwrap_or_else(|| entropy.uuid()), 0)).collect();
        let mut places = vec![];
        self.places(&asked, &mut places)?;
        let mut made = Vec::with_capacity(new.len());
        for ((vertex, (id, _)), place) in new.into_iter().zip(asked).zip(places) {
            made.push(self.create_vertex(id, vertex, place)?);
        }
        self.touch();
        Ok(made)
    }

    fn create_vertex(&self, id: Str, new: NewVertex, mut place: (Gui, u64)) -> Result<Gui> {
        // An id whose vertex this request deleted gets its old place back: to `place` it is still taken.
        let reused = self.reusable(&id)?;
        if let Some(gui) = reused {
            place = (gui, 0);
        } else {
            loop {
                match self.pending.borrow().vertices.get(&place.0) {
                    Some(v) if v.created.is_some() && v.id == id => return Err(Error::VertexExists(id)),
                    Some(v) if v.id != id && (v.created.is_some() || v.in_base) => {}
                    _ => break,
                }
                // Another new vertex has this hash: try the next salt.
                let mut next = vec![];
                self.places(&[(id.clone(), place.1 + 1)], &mut next)?;
                place = next.pop().ok_or_else(|| Error::Plan("storage gave no place".to_owned()))?;
            }
        }
        let (gui, salt) = place;
        self.record([Key::existence(gui)]);
        let mut pending = self.pending.borrow_mut();
        let index = pending.created_vertices.len();
        pending.created_vertices.push(gui);
        pending.vertex_ids.insert(id.clone(), gui);
        pending.bytes += size_of::<PendingVertex>() + 160 + 2 * id.len();
        pending.properties_written += new.properties.len() as u64;
        pending.touch(gui);
        let seq = pending.next_seq();
        let mut labels = vec![];
        for label in new.labels {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        pending.labels_added += labels.len() as u64;
        let old = pending.vertices.remove(&gui);
        let mut vertex = PendingVertex {
            seq,
            id,
            in_base: old.as_ref().is_some_and(|v| v.in_base),
            base_deleted: old.as_ref().is_some_and(|v| v.base_deleted),
            created: Some(index),
            salt,
            changed: false,
            base_labels: old.map(|v| v.base_labels).unwrap_or_default(),
            labels,
            cells: vec![],
        };
        for write in &new.properties {
            pending.bytes += size_of::<PropertyWrite>() + 24 + write.value.heap_bytes();
            vertex.write(write);
        }
        pending.vertices.insert(gui, vertex);
        Ok(gui)
    }

    /// Returns the place of the stored vertex with this id, if this request deleted it.
    fn reusable(&self, id: &Str) -> Result<Option<Gui>> {
        if self.pending.borrow().deleted_vertices.is_empty() {
            return Ok(None);
        }
        let mut base = vec![];
        self.apl.resolve_vertices(self.at, std::slice::from_ref(id), &mut base)?;
        let pending = self.pending.borrow();
        let Some(gui) = base.pop().flatten() else { return Ok(None) };
        match pending.vertices.get(&gui) {
            Some(v) if v.visible() => Err(Error::VertexExists(id.clone())),
            Some(_) => Ok(Some(gui)),
            None => Err(Error::VertexExists(id.clone())),
        }
    }

    /// Loads what changes of these vertices need: labels and, for keys with several values, the values. Called with a
    /// whole batch, it saves the changes a read each.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn prepare_vertices(&self, vertices: &[Gui], keys: &[Token]) -> Result<()> {
        let mut fresh: Vec<Gui> = {
            let pending = self.pending.borrow();
            let loaded = |gui: &Gui| {
                pending.vertices.get(gui).is_some_and(|v| {
                    v.created.is_some() || !v.visible() || keys.iter().all(|k| v.cells_of(*k).is_some())
                })
            };
            vertices.iter().copied().filter(|gui| !loaded(gui)).collect()
        };
        if fresh.is_empty() {
            return Ok(());
        }
        fresh.sort_unstable();
        fresh.dedup();
        self.record(fresh.iter().map(|gui| Key::content(*gui)));
        let properties = if keys.is_empty() { Projection::None } else { Projection::Keys(keys.to_vec()) };
        let read = VertexRead { ids: false, labels: true, properties, meta: true };
        let mut rows = VertexRows::default();
        self.stored_rows(&read, &fresh, &mut rows)?;
        let mut pending = self.pending.borrow_mut();
        for (row, gui) in fresh.iter().enumerate() {
            pending.load_vertex(*gui, rows.present[row], rows.labels_of(row));
            if let Some(vertex) = pending.vertices.get_mut(gui) {
                for key in keys {
                    if vertex.cells_of(*key).is_none() {
                        vertex.cells.push((*key, stored_cells(&rows, row, *key)));
                    }
                }
            }
        }
        self.touch();
        Ok(())
    }

    pub(super) fn with_vertex(
        &self,
        place: &'static str,
        gui: Gui,
        keys: &[Token],
        change: impl FnOnce(&mut PendingVertex) -> Vec<Mutation>,
    ) -> Result<()> {
        self.prepare_vertices(&[gui], keys)?;
        let mut guard = self.pending.borrow_mut();
        let pending: &mut Pending = &mut guard;
        let vertex = pending.vertices.get_mut(&gui).filter(|v| v.visible());
        let Some(vertex) = vertex else {
            return Err(Error::Gone { place, element: "the vertex".to_owned() });
        };
        let mutations = change(vertex);
        let is_changed = !mutations.is_empty();
        if vertex.created.is_none() && !mutations.is_empty() {
            vertex.changed = true;
            pending.bytes += mutations.len() * (size_of::<Mutation>() + 64);
            pending.changes.extend(mutations);
        }
        if is_changed {
            pending.touch(gui);
        }
        drop(guard);
        self.touch();
        Ok(())
    }

    /// Writes one value of a vertex property.
    ///
    /// # Errors
    ///
    /// `Error::Gone` if the vertex does not exist, `Error::Storage` if storage does not answer.
    pub fn set_vertex_property(&self, gui: Gui, write: PropertyWrite) -> Result<()> {
        let keys: &[Token] = if write.cardinality == Cardinality::Single { &[] } else { &[write.key] };
        let bytes = write.value.heap_bytes();
        self.with_vertex("setting a property", gui, keys, |vertex| {
            vertex.write(&write);
            vec![Mutation::SetVertexProperty { gui, write }]
        })?;
        let mut pending = self.pending.borrow_mut();
        pending.properties_written += 1;
        pending.bytes += 2 * bytes;
        Ok(())
    }

    /// Removes a property key of a vertex with all its values.
    ///
    /// # Errors
    ///
    /// `Error::Gone` if the vertex does not exist, `Error::Storage` if storage does not answer.
    pub fn remove_vertex_property(&self, gui: Gui, key: Token) -> Result<()> {
        self.with_vertex("removing a property", gui, &[], |vertex| {
            vertex.cells_mut(key).clear();
            vec![Mutation::RemoveVertexProperty { gui, key, value: None }]
        })?;
        self.pending.borrow_mut().properties_written += 1;
        Ok(())
    }

    /// Adds and removes labels of a vertex. Adding a label that it has, or removing one that it lacks, is no change.
    ///
    /// # Errors
    ///
    /// `Error::Gone` if the vertex does not exist, `Error::Storage` if storage does not answer.
    pub fn set_labels(&self, gui: Gui, add: &[Token], remove: &[Token]) -> Result<()> {
        let (mut added, mut removed) = (0, 0);
        self.with_vertex("setting labels", gui, &[], |vertex| {
            let mut new = vec![];
            for label in add {
                if !vertex.labels.contains(label) {
                    vertex.labels.push(*label);
                    new.push(*label);
                }
            }
            added = new.len() as u64;
            if new.is_empty() { vec![] } else { vec![Mutation::AddLabels { gui, labels: new }] }
        })?;
        self.with_vertex("removing labels", gui, &[], |vertex| {
            let old: Vec<Token> = remove.iter().copied().filter(|l| vertex.labels.contains(l)).collect();
            vertex.labels.retain(|label| !old.contains(label));
            removed = old.len() as u64;
            if old.is_empty() { vec![] } else { vec![Mutation::RemoveLabels { gui, labels: old }] }
        })?;
        let mut pending = self.pending.borrow_mut();
        pending.labels_added += added;
        pending.labels_removed += removed;
        Ok(())
    }

    /// Creates edges and returns their handles.
    ///
    /// # Errors
    ///
    /// `Error::EdgeExists` for an id that an edge has already, `Error::Gone` if an end does not exist, `Error::Storage`
    /// if storage does not answer.
    pub fn create_edges(&self, new: Vec<NewEdge>) -> Result<Vec<Edge>> {
        let ends: Vec<Gui> = new.iter().flat_map(|e| [e.source, e.target]).collect();
        let mut rows = VertexRows::default();
        self.vertices(&VertexRead::default(), &ends, &mut rows)?;
        if rows.present.iter().any(|present| !present) {
            return Err(Error::Gone { place: "making an edge", element: "one of its vertices".to_owned() });
        }
        let chosen: Vec<Str> = new.iter().filter_map(|e| e.id.clone()).collect();
        if !chosen.is_empty() {
            let mut found = vec![];
            self.resolve_edges(&chosen, &mut found)?;
            if let Some(at) = found.iter().position(Option::is_some) {
                return Err(Error::EdgeExists(chosen[at].clone()));
            }
            // A text in the form of a generated id was looked up as one, but a user
            // may have chosen it for another edge.
            let hasher = GuiHasher::default();
            self.record(chosen.iter().map(|id| Key::edge_id(hasher.edge_id(id))));
        }
        let sids = self.catalog.allocate_sids(new.len() as u64)?;
        let mut made = Vec::with_capacity(new.len());
        let mut pending = self.pending.borrow_mut();
        for (new, sid) in new.into_iter().zip(sids) {
            let edge = Edge { sid: Sid(sid), source: new.source, target: new.target, label: new.label };
            if let Some(id) = &new.id {
                let old = pending.edge_ids.get(id).and_then(|sid| pending.edges.get(sid));
                if old.is_some_and(|e| !e.deleted) {
                    return Err(Error::EdgeExists(id.clone()));
                }
                pending.edge_ids.insert(id.clone(), edge.sid);
                pending.bytes += 64 + id.len();
            }
            pending.properties_written += new.properties.len() as u64;
            let entry = pending.load_edge(edge);
            entry.created = true;
            entry.chosen_id = new.id;
            let mut bytes = 0;
            for (key, value) in new.properties {
                bytes += size_of::<(Token, Value)>() + value.heap_bytes();
                entry.put(key, Some(value));
            }
            pending.bytes += bytes;
            pending.created_edges.push(edge.sid);
            pending.add_to_adjacency(edge);
            made.push(edge);
        }
        drop(pending);
        self.touch();
        Ok(made)
    }

    /// Loads what changes of these edges need: whether they exist. Called with a
    /// whole batch, it saves the changes a read each.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn prepare_edges(&self, edges: &[Edge]) -> Result<()> {
        let fresh: Vec<Edge> = {
            let pending = self.pending.borrow();
            edges.iter().copied().filter(|e| !pending.edges.contains_key(&e.sid)).collect()
        };
        if fresh.is_empty() {
            return Ok(());
        }
        let mut rows = EdgeRows::default();
        self.edges(&EdgeRead::default(), &fresh, &mut rows)?;
        let mut pending = self.pending.borrow_mut();
        for (edge, present) in fresh.into_iter().zip(rows.present) {
            if present {
                pending.load_edge(edge);
            }
        }
        drop(pending);
        self.touch();
        Ok(())
    }

    /// Writes a property of an edge; `None` removes it.
    ///
    /// # Errors
    ///
    /// `Error::Gone` if the edge does not exist, `Error::Storage` if storage does not answer.
    pub fn set_edge_property(&self, edge: Edge, key: Token, value: Option<Value>) -> Result<()> {
        self.prepare_edges(&[edge])?;
        let gone = |pending: &Pending| !pending.edges.contains_key(&edge.sid) || pending.is_gone(&edge);
        if gone(&self.pending.borrow()) {
            return Err(Error::Gone { place: "setting a property", element: "the edge".to_owned() });
        }
        let mut guard = self.pending.borrow_mut();
        let pending: &mut Pending = &mut guard;
        pending.properties_written += 1;
        pending.bytes += size_of::<Mutation>() + 2 * value.as_ref().map_or(0, Value::heap_bytes);
        let entry: &mut PendingEdge = pending.load_edge(edge);
        entry.put(key, value.clone());
        if !entry.created {
            entry.changed = true;
            pending.changes.push(match value {
                Some(value) => Mutation::SetEdgeProperty { edge, key, value },
                None => Mutation::RemoveEdgeProperty { edge, key },
            });
        }
        drop(guard);
        self.touch();
        Ok(())
    }

    /// Deletes edges; those that do not exist are ignored.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn delete_edges(&self, edges: &[Edge]) -> Result<()> {
        let stored: Vec<Edge> = {
            let pending = self.pending.borrow();
            edges
                .iter()
                .copied()
                .filter(|e| !pending.is_gone(e) && pending.edges.get(&e.sid).is_none_or(|p| !p.created))
                .collect()
        };
        let mut rows = EdgeRows::default();
        if !stored.is_empty() {
            // A chosen id has an entry that is deleted with the edge, so the id must be read.
            self.record(stored.iter().map(|e| Key::edge(e.sid)));
            let read = EdgeRead { ids: true, properties: Projection::None };
            self.apl.edges(self.at, &read, &stored, &mut rows)?;
        }
        let mut pending = self.pending.borrow_mut();
        for (row, edge) in stored.into_iter().enumerate() {
            if !rows.present[row] {
                continue;
            }
            let entry = pending.load_edge(edge);
            if entry.deleted {
                continue;
            }
            entry.deleted = true;
            let id = &rows.ids[row];
            entry.chosen_id = (*id != element::generated_edge_id(edge.source, edge.sid)).then(|| id.clone());
            pending.deleted_edges.push(edge.sid);
            pending.remove_from_adjacency(edge, false);
        }
        for edge in edges {
            if let Some(entry) = pending.edges.get_mut(&edge.sid)
                && entry.created
                && !entry.deleted
            {
                entry.deleted = true;
                entry.cells.clear();
                pending.remove_from_adjacency(*edge, true);
            }
        }
        drop(pending);
        self.touch();
        Ok(())
    }

    /// Deletes vertices; those that do not exist are ignored. `detach` deletes their edges too. Without it, the request
    /// fails at its end if a deleted vertex still has edges.
    ///
    /// # Errors
    ///
    /// `Error::Storage` if storage does not answer.
    pub fn delete_vertices(&self, vertices: &[Gui], detach: bool) -> Result<()> {
        self.prepare_vertices(vertices, &[])?;
        let mut alive: Vec<Gui> = {
            let pending = self.pending.borrow();
            vertices
                .iter()
                .copied()
                .filter(|g| pending.vertices.get(g).is_some_and(PendingVertex::visible))
                .collect()
        };
        alive.sort_unstable();
        alive.dedup();
        if alive.is_empty() {
            return Ok(());
        }
        if detach {
            let mut degrees = vec![];
            let request = Expand { loops_once: true, ..Expand::all(Direction::Both) };
            self.degrees(&request, &alive, &mut degrees)?;
            let listed = self.pending.borrow().deleted_edges.len() as u64;
            let edges = degrees.iter().sum::<u64>();
            if edges == 0 {
                // The vertices have no edges, and the read of that is recorded.
            } else if self.streams || listed + edges <= MOST_LISTED {
                self.delete_edges_of(&alive)?;
            } else {
                for (gui, _) in alive.iter().zip(&degrees).filter(|(_, degree)| **degree > 0) {
                    self.detach(*gui, &request)?;
                }
            }
        }
        let mut rows = VertexRows::default();
        self.vertices_unrecorded(&VertexRead { ids: true, ..VertexRead::default() }, &alive, &mut rows)?;
        let mut guard = self.pending.borrow_mut();
        let pending: &mut Pending = &mut guard;
        for (gui, id) in alive.iter().zip(rows.ids) {
            let Some(vertex) = pending.vertices.get_mut(gui) else { continue };
            vertex.id = id;
            vertex.created = None;
            vertex.labels.clear();
            vertex.cells.clear();
            if vertex.in_base && !vertex.base_deleted {
                vertex.base_deleted = true;
                pending.deleted_vertices.push(*gui);
            }
            if !detach {
                pending.to_check.insert(*gui);
            }
        }
        drop(guard);
        self.touch();
        Ok(())
    }

    /// Deletes all edges of a vertex. The stored ones are not listed one by one, not even
    /// in the commit: they are deleted with their vertex.
    fn detach(&self, hub: Gui, request: &Expand) -> Result<()> {
        let created: Vec<Edge> = {
            let pending = self.pending.borrow();
            let added = pending.adjacency.get(&hub).into_iter();
            added.flat_map(|added| added.added_out.iter().chain(&added.added_in)).copied().collect()
        };
        self.delete_edges(&created)?;
        let mut stored = vec![];
        self.degrees(request, &[hub], &mut stored)?;
        let mut pending = self.pending.borrow_mut();
        pending.edges_detached += stored.iter().sum::<u64>();
        pending.detached.insert(hub);
        drop(pending);
        self.touch();
        Ok(())
    }

    fn delete_edges_of(&self, vertices: &[Gui]) -> Result<()> {
        let request = Expand { max_rows: 4096, loops_once: true, ..Expand::all(Direction::Both) };
        // A deletion does not move the cursor, which reads storage at a fixed version.
        let (mut cursor, mut found) = (Some(Cursor::default()), Expansion::default());
        while let Some(from) = cursor {
            found.clear();
            cursor = self.expand(&request, vertices, from, &mut found)?;
            let edges: Vec<Edge> = (0..found.len()).map(|i| found.edge(i, vertices)).collect();
            self.delete_edges(&edges)?;
        }
        Ok(())
    }
}

impl View<'_> {
    /// Whether a vertex exists.
    pub(crate) fn vertex_exists(&self, gui: Gui) -> Result<bool> {
        let mut rows = VertexRows::default();
        self.vertices(&VertexRead::default(), &[gui], &mut rows)?;
        Ok(rows.present == [true])
    }

    /// Whether an edge exists.
    pub(crate) fn edge_exists(&self, edge: Edge) -> Result<bool> {
        let mut rows = EdgeRows::default();
        self.edges(&EdgeRead::default(), &[edge], &mut rows)?;
        Ok(rows.present == [true])
    }
}
