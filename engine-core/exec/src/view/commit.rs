//! Makes the commit request from the pending writes.
//!
//! A commit is the difference between storage and the final state, in an order in which each step can be applied: ids
//! of colliding hashes; deleted edges (those of a hub are deleted with the hub); deleted vertices; new vertices with
//! labels and properties; new edges with properties; changes of stored elements in the order of the request. An element
//! that was created and deleted again leaves nothing.

use super::View;
use super::pending::{Pending, PendingCell};
use crate::{Error, Result};
use rustc_hash::FxHashSet;
use tidegraph_apl::Expand;
use tidegraph_types::{
    Changes, CommitRequest, Direction, Edge, Gui, GuiHasher, Key, Mutation, PropertyWrite, Sid, Str, Token,
};

/// Counts of what a request changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Vertices that did not exist before.
    pub vertices_created: u64,
    /// Deleted vertices that existed before.
    pub vertices_deleted: u64,
    /// Edges that did not exist before.
    pub edges_created: u64,
    /// Deleted edges that existed before.
    pub edges_deleted: u64,
    /// Property values written and keys removed; repeated writes count each time.
    pub properties_written: u64,
    /// Labels that vertices got, those of new vertices included; repeated changes count each time.
    pub labels_added: u64,
    /// Labels that vertices lost, but for those that were deleted.
    pub labels_removed: u64,
    /// Indexes that a command made.
    pub indexes_added: u64,
    /// Indexes that a command dropped.
    pub indexes_removed: u64,
    /// Constraints that a command made. Their indexes count only with them.
    pub constraints_added: u64,
    /// Constraints that a command dropped.
    pub constraints_removed: u64,
}

impl Counters {
    /// Adds the counts of another request.
    pub fn add(&mut self, other: &Self) {
        self.vertices_created += other.vertices_created;
        self.vertices_deleted += other.vertices_deleted;
        self.edges_created += other.edges_created;
        self.edges_deleted += other.edges_deleted;
        self.properties_written += other.properties_written;
    }

    /// Returns what came after `earlier`. An element that was created earlier and is gone now counts as neither.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            vertices_created: self.vertices_created.saturating_sub(earlier.vertices_created),
            vertices_deleted: self.vertices_deleted.saturating_sub(earlier.vertices_deleted),
            edges_created: self.edges_created.saturating_sub(earlier.edges_created),
            edges_deleted: self.edges_deleted.saturating_sub(earlier.edges_deleted),
            properties_written: self.properties_written.saturating_sub(earlier.properties_written),
            labels_added: self.labels_added.saturating_sub(earlier.labels_added),
            labels_removed: self.labels_removed.saturating_sub(earlier.labels_removed),
            // Commands are requests of their own.
            ..Self::default()
        }
    }
}

impl View<'_> {
    /// Checks what must hold at the end of a request and makes the commit request; `None` if nothing changed.
    ///
    /// # Errors
    ///
    /// [`Error::VertexHasEdges`], [`Error::NotUnique`], or storage does not answer.
    pub fn commit_request(&self) -> Result<(Option<CommitRequest>, Counters)> {
        self.check_deleted_vertices()?;
        let pending = self.pending.borrow();
        let mutations = pending.mutations();
        let counters = pending.counters();
        if mutations.is_empty() {
            return Ok((None, counters));
        }
        let unique = self.check_unique(&pending)?;
        self.record(unique.read);
        let changes = self.changes(&pending)?.map(|list| Changes { taken_ms: 0, list });
        let read_keys = self.keys.as_ref().map(|keys| keys.borrow().sorted()).unwrap_or_default();
        let mut write_keys = pending.write_keys();
        write_keys.extend(unique.written);
        write_keys.sort_unstable();
        write_keys.dedup();
        Ok((
            Some(CommitRequest {
                read_version: self.at.version,
                read_keys,
                write_keys,
                mutations,
                request: None,
                first_asked: None,
                by_key: false,
                changes,
            }),
            counters,
        ))
    }

    fn check_deleted_vertices(&self) -> Result<()> {
        let mut check: Vec<Gui> = {
            let pending = self.pending.borrow();
            let gone = |gui: &Gui| pending.vertices.get(gui).is_some_and(|v| !v.visible());
            pending.to_check.iter().copied().filter(gone).collect()
        };
        if check.is_empty() {
            return Ok(());
        }
        check.sort_unstable();
        let request = Expand { loops_once: true, ..Expand::all(Direction::Both) };
        let mut degrees = vec![];
        self.degrees(&request, &check, &mut degrees)?;
        let pending = self.pending.borrow();
        match check.iter().zip(degrees).find(|(_, degree)| *degree > 0) {
            None => Ok(()),
            Some((gui, edges)) => {
                let id = pending.vertices.get(gui).map(|v| v.id.clone()).unwrap_or_default();
                Err(Error::VertexHasEdges { id, edges })
            }
        }
    }
}

impl Pending {
    /// Counts what [`Pending::mutations`] would do.
    pub(super) fn counters(&self) -> Counters {
        let is_created =
            |(index, gui): &(usize, &Gui)| self.vertices.get(gui).is_some_and(|v| v.created == Some(*index));
        let edge_is_left = |sid: &&Sid| self.edges.get(sid).is_some_and(|edge| !edge.deleted);
        Counters {
            vertices_created: self.created_vertices.iter().enumerate().filter(is_created).count() as u64,
            vertices_deleted: self.deleted_vertices.len() as u64,
            edges_created: self.created_edges.iter().filter(edge_is_left).count() as u64,
            edges_deleted: self.deleted_edges.len() as u64 + self.edges_detached,
            properties_written: self.properties_written,
            labels_added: self.labels_added,
            labels_removed: self.labels_removed,
            ..Counters::default()
        }
    }

    fn mutations(&self) -> Vec<Mutation> {
        let mut all = vec![];
        let created = || {
            self.created_vertices.iter().enumerate().filter_map(|(index, gui)| {
                self.vertices.get(gui).filter(|v| v.created == Some(index)).map(|v| (*gui, v))
            })
        };
        for (gui, vertex) in created().filter(|(_, v)| v.salt > 0) {
            all.push(Mutation::AddException { id: vertex.id.clone(), gui });
        }
        for edge in self.deleted_edges.iter().filter_map(|sid| self.edges.get(sid)) {
            all.push(Mutation::DeleteEdge { edge: edge.edge, id: edge.chosen_id.clone() });
        }
        let deleted = self.deleted_vertices.iter();
        all.extend(
            deleted.map(|gui| Mutation::DeleteVertex { gui: *gui, edges_left: self.detached.contains(gui) }),
        );
        for (gui, vertex) in created() {
            let cells = vertex.cells.iter().flat_map(|(_, cells)| cells);
            let properties = cells.map(|PendingCell { cell, .. }| PropertyWrite {
                key: cell.key,
                cardinality: cell.cardinality,
                value: cell.value.clone(),
            });
            all.push(Mutation::CreateVertex {
                gui,
                id: vertex.id.clone(),
                labels: vertex.labels.clone(),
                properties: properties.collect(),
            });
            all.extend(vertex.meta_writes(gui, None));
        }
        for edge in self.created_edges.iter().filter_map(|sid| self.edges.get(sid)).filter(|e| !e.deleted) {
            let properties = edge.cells.iter().filter_map(|(key, v)| v.clone().map(|v| (*key, v)));
            all.push(Mutation::CreateEdge {
                edge: edge.edge,
                id: edge.chosen_id.clone(),
                properties: properties.collect(),
            });
        }
        all.extend(self.changes.iter().filter(|change| !self.is_moot(change)).cloned());
        all
    }

    /// Whether the element of a change was deleted later.
    fn is_moot(&self, change: &Mutation) -> bool {
        match change {
            Mutation::AddLabels { gui, .. }
            | Mutation::RemoveLabels { gui, .. }
            | Mutation::SetVertexProperty { gui, .. }
            | Mutation::RemoveVertexProperty { gui, .. }
            | Mutation::SetMetaProperty { gui, .. } => self.vertices.get(gui).is_some_and(|v| v.base_deleted),
            Mutation::SetEdgeProperty { edge, .. } | Mutation::RemoveEdgeProperty { edge, .. } => {
                self.is_gone(edge)
            }
            _ => false,
        }
    }

    fn write_keys(&self) -> Vec<Key> {
        let mut keys = FxHashSet::default();
        if !self.detached.is_empty() {
            // Stands for the keys of all those edges and of the vertices at their other ends.
            keys.insert(Key::GRAPH);
        }
        for (gui, v) in &self.vertices {
            let entered_or_left = v.base_deleted || v.created.is_some();
            if entered_or_left {
                keys.insert(Key::existence(*gui));
            }
            if entered_or_left || v.changed {
                keys.insert(Key::content(*gui));
                keys.insert(Key::vertex_scan(None));
                keys.extend(v.base_labels.iter().chain(&v.labels).map(|l| Key::vertex_scan(Some(*l))));
            }
        }
        for e in self.edges.values() {
            if e.created == e.deleted {
                // Created and deleted again, or only changed.
                if e.changed && !e.deleted {
                    keys.insert(Key::edge(e.edge.sid));
                }
            } else {
                edge_keys(e.edge, e.chosen_id.as_ref(), &mut keys);
            }
        }
        let mut keys: Vec<Key> = keys.into_iter().collect();
        keys.sort_unstable();
        keys
    }
}

fn edge_keys(edge: Edge, chosen_id: Option<&Str>, keys: &mut FxHashSet<Key>) {
    keys.insert(Key::edge(edge.sid));
    let labels: [Option<Token>; 2] = [None, Some(edge.label)];
    for label in labels {
        keys.insert(Key::edge_scan(label));
        keys.insert(Key::adjacency(edge.source, true, label));
        keys.insert(Key::adjacency(edge.target, false, label));
    }
    if let Some(id) = chosen_id {
        keys.insert(Key::edge_id(GuiHasher::default().edge_id(id)));
    }
}
