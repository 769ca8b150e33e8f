//! The writes of a request that are not committed yet, as deltas by element.
//!
//! An element that the request created is held whole. Of a stored element only the delta is held: all labels (they
//! decide which keys a change writes) and all values of each changed property key. Changes of stored elements are also
//! listed in order, and that list is committed.

use super::unique::Holders;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use tidegraph_apl::PropertyCell;
use tidegraph_types::{Cardinality, Edge, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value, element};

/// One value of a property, with its meta-properties in order of first writing.
#[derive(Clone)]
pub(super) struct PendingCell {
    pub(super) cell: PropertyCell,
    pub(super) meta: Vec<(Token, Value)>,
}

/// A vertex that was created, changed, deleted, or read in order to change it.
pub(super) struct PendingVertex {
    /// Number of the vertex in the order of becoming pending; a scan that began before sees storage's state.
    pub(super) seq: u64,
    /// The user's id; empty unless the request created or deleted the vertex.
    pub(super) id: Str,
    /// Whether storage has the vertex.
    pub(super) in_base: bool,
    /// Whether storage has the vertex and the request deleted it.
    pub(super) base_deleted: bool,
    /// Position in `Pending::created_vertices`, if the request created the vertex (perhaps again).
    pub(super) created: Option<usize>,
    /// Number of collisions of its hash.
    pub(super) salt: u64,
    /// Whether anything but its existence changed.
    pub(super) changed: bool,
    /// Labels in storage.
    pub(super) base_labels: Vec<Token>,
    /// Labels now.
    pub(super) labels: Vec<Token>,
    /// Keys that differ from storage (all keys of a created vertex) with all their values.
    pub(super) cells: Vec<(Token, Vec<PendingCell>)>,
}

impl PendingVertex {
    pub(super) fn visible(&self) -> bool {
        self.created.is_some() || (self.in_base && !self.base_deleted)
    }

    pub(super) fn cells_of(&self, key: Token) -> Option<&Vec<PendingCell>> {
        self.cells.iter().find(|(k, _)| *k == key).map(|(_, cells)| cells)
    }

    /// Returns the values of a key for a change. The caller has loaded storage's values if the change needs them.
    pub(super) fn cells_mut(&mut self, key: Token) -> &mut Vec<PendingCell> {
        let index = match self.cells.iter().position(|(k, _)| *k == key) {
            Some(index) => index,
            None => {
                self.cells.push((key, vec![]));
                self.cells.len() - 1
            }
        };
        &mut self.cells[index].1
    }

    pub(super) fn write(&mut self, write: &PropertyWrite) {
        let cells = self.cells_mut(write.key);
        match write.cardinality {
            Cardinality::Single => cells.clear(),
            Cardinality::Set if cells.iter().any(|c| c.cell.cardinality != Cardinality::Set) => {
                // The newest write's cardinality holds for the key, and a set has no value twice.
                let all = std::mem::take(cells);
                for cell in all {
                    if !cells.iter().any(|other| other.cell.value == cell.cell.value) {
                        cells.push(cell);
                    }
                }
            }
            Cardinality::Set | Cardinality::List => {}
        }
        for cell in cells.iter_mut() {
            cell.cell.cardinality = write.cardinality;
        }
        let there = || cells.iter().any(|cell| cell.cell.value == write.value);
        if write.cardinality != Cardinality::Set || !there() {
            let PropertyWrite { key, cardinality, value } = write.clone();
            cells.push(PendingCell { cell: PropertyCell { key, cardinality, value }, meta: vec![] });
        }
    }

    /// Returns the position of the `nth` of the values that are equivalent to `value`.
    pub(super) fn place_of(&self, key: Token, value: &Value, nth: u32) -> Option<usize> {
        let cells = self.cells_of(key)?.iter().enumerate();
        cells.filter(|(_, cell)| cell.cell.value == *value).nth(nth as usize).map(|(at, _)| at)
    }

    /// Counts the values that are equivalent to `value`.
    pub(super) fn count_of(&self, key: Token, value: &Value) -> usize {
        let cells = self.cells_of(key).map_or(&[][..], Vec::as_slice);
        cells.iter().filter(|cell| cell.cell.value == *value).count()
    }

    /// Returns the mutations that write all meta-properties of the values held here.
    pub(super) fn meta_writes(&self, gui: Gui, key: Option<Token>) -> impl Iterator<Item = Mutation> {
        let cells = self.cells.iter().filter(move |(other, _)| key.is_none_or(|key| key == *other));
        cells.flat_map(move |(key, cells)| {
            cells.iter().enumerate().filter(|(_, cell)| !cell.meta.is_empty()).flat_map(move |(at, cell)| {
                let of = &cell.cell.value;
                let nth = cells[..at].iter().filter(|other| other.cell.value == *of).count() as u32;
                cell.meta.iter().map(move |(meta_key, value)| Mutation::SetMetaProperty {
                    gui,
                    key: *key,
                    of: of.clone(),
                    nth,
                    meta_key: *meta_key,
                    value: Some(value.clone()),
                })
            })
        })
    }
}

/// An edge that was created, changed or deleted.
pub(super) struct PendingEdge {
    /// The handle.
    pub(super) edge: Edge,
    /// The id that the user chose; set only for edges that the request created or deleted.
    pub(super) chosen_id: Option<Str>,
    /// Whether the request created the edge.
    pub(super) created: bool,
    /// Whether the request deleted the edge.
    pub(super) deleted: bool,
    /// Whether a property changed.
    pub(super) changed: bool,
    /// Keys that differ from storage; `None` for a removed one.
    pub(super) cells: Vec<(Token, Option<Value>)>,
}

impl PendingEdge {
    pub(super) fn id(&self) -> Str {
        let edge = self.edge;
        self.chosen_id.clone().unwrap_or_else(|| element::generated_edge_id(edge.source, edge.sid))
    }

    pub(super) fn put(&mut self, key: Token, value: Option<Value>) {
        match self.cells.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => *old = value,
            None => self.cells.push((key, value)),
        }
    }
}

/// How a vertex's edges differ from storage.
#[derive(Default)]
pub(super) struct PendingAdjacency {
    pub(super) added_out: Vec<Edge>,
    pub(super) added_in: Vec<Edge>,
    pub(super) deleted_out: Vec<Edge>,
    pub(super) deleted_in: Vec<Edge>,
}

/// All pending writes of a request.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) vertices: FxHashMap<Gui, PendingVertex>,
    pub(super) edges: FxHashMap<Sid, PendingEdge>,
    pub(super) adjacency: FxHashMap<Gui, PendingAdjacency>,
    /// Ids of created vertices, which may be deleted again.
    pub(super) vertex_ids: FxHashMap<Str, Gui>,
    /// Chosen ids of created edges.
    pub(super) edge_ids: FxHashMap<Str, Sid>,
    pub(super) created_vertices: Vec<Gui>,
    pub(super) created_edges: Vec<Sid>,
    pub(super) deleted_vertices: Vec<Gui>,
    pub(super) deleted_edges: Vec<Sid>,
    /// Changes of stored elements, in order.
    pub(super) changes: Vec<Mutation>,
    /// Stored vertices that were deleted with all their stored edges, which are too many to list one by one.
    pub(super) detached: FxHashSet<Gui>,
    /// Number of those edges.
    pub(super) edges_detached: u64,
    /// Vertices that were deleted without their edges: checked at the end of the request.
    pub(super) to_check: FxHashSet<Gui>,
    /// What a transaction of several requests has given under unique constraints.
    pub(super) holders: Option<Holders>,
    pub(super) seq: u64,
    pub(super) properties_written: u64,
    pub(super) labels_added: u64,
    pub(super) labels_removed: u64,
    pub(super) bytes: usize,
}

impl Pending {
    /// Notes that a vertex is created or changed.
    pub(super) fn touch(&mut self, gui: Gui) {
        if let Some(holders) = &mut self.holders {
            self.bytes += holders.touch(gui);
        }
    }

    pub(super) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq - 1
    }

    /// Whether the edge was deleted, by itself or with one of its vertices.
    pub(super) fn is_gone(&self, edge: &Edge) -> bool {
        match self.edges.get(&edge.sid) {
            Some(e) if e.deleted => true,
            // The edge was created after its vertex was deleted and created again.
            Some(e) if e.created => false,
            _ => self.is_detached(edge),
        }
    }

    /// Whether a stored edge was deleted with one of its vertices.
    pub(super) fn is_detached(&self, edge: &Edge) -> bool {
        !self.detached.is_empty()
            && (self.detached.contains(&edge.source) || self.detached.contains(&edge.target))
    }

    pub(super) fn patch_resolved_vertices(&self, ids: &[Str], found: &mut [Option<Gui>]) {
        for (id, found) in ids.iter().zip(found) {
            if let Some(gui) = self.vertex_ids.get(id) {
                *found = self.vertices.get(gui).filter(|v| v.visible() && v.id == *id).map(|_| *gui);
            } else if let Some(gui) = *found
                && self.vertices.get(&gui).is_some_and(|v| !v.visible())
            {
                *found = None;
            }
        }
    }

    pub(super) fn patch_resolved_edges(&self, ids: &[Str], found: &mut [Option<Edge>]) {
        let alive = |sid: Sid| self.edges.get(&sid).filter(|e| !self.is_gone(&e.edge));
        for (id, found) in ids.iter().zip(found) {
            if let Some(sid) = self.edge_ids.get(id) {
                *found = alive(*sid).map(|e| e.edge);
            } else if let Some(edge) = *found {
                if self.is_gone(&edge) {
                    *found = None;
                }
            } else if let Some((source, sid)) = element::parse_generated_edge_id(id) {
                *found = alive(sid)
                    .filter(|e| e.created && e.chosen_id.is_none() && e.edge.source == source)
                    .map(|e| e.edge);
            }
        }
    }

    /// Adds the pending state of a stored vertex, without its properties.
    pub(super) fn load_vertex(&mut self, gui: Gui, present: bool, labels: &[Token]) {
        let seq = self.seq;
        if let Entry::Vacant(entry) = self.vertices.entry(gui) {
            entry.insert(PendingVertex {
                seq,
                id: Str::default(),
                in_base: present,
                base_deleted: false,
                created: None,
                salt: 0,
                changed: false,
                base_labels: labels.to_vec(),
                labels: labels.to_vec(),
                cells: vec![],
            });
            self.seq += 1;
            self.bytes += size_of::<PendingVertex>() + 32 + 8 * labels.len();
        }
    }

    /// Returns the pending state of a stored edge; adds it if it is missing.
    pub(super) fn load_edge(&mut self, edge: Edge) -> &mut PendingEdge {
        let bytes = &mut self.bytes;
        self.edges.entry(edge.sid).or_insert_with(|| {
            *bytes += size_of::<PendingEdge>() + 32;
            PendingEdge {
                edge,
                chosen_id: None,
                created: false,
                deleted: false,
                changed: false,
                cells: vec![],
            }
        })
    }

    pub(super) fn add_to_adjacency(&mut self, edge: Edge) {
        self.adjacency.entry(edge.source).or_default().added_out.push(edge);
        self.adjacency.entry(edge.target).or_default().added_in.push(edge);
        self.bytes += 2 * size_of::<Edge>() + 64;
    }

    pub(super) fn remove_from_adjacency(&mut self, edge: Edge, created: bool) {
        fn take(edges: &mut Vec<Edge>, sid: Sid) {
            // From the back: the edge to delete is usually the newest.
            if let Some(index) = edges.iter().rposition(|e| e.sid == sid) {
                edges.remove(index);
            }
        }
        let source = self.adjacency.entry(edge.source).or_default();
        if created {
            take(&mut source.added_out, edge.sid);
        } else {
            source.deleted_out.push(edge);
        }
        let target = self.adjacency.entry(edge.target).or_default();
        if created {
            take(&mut target.added_in, edge.sid);
        } else {
            target.deleted_in.push(edge);
            self.bytes += 2 * size_of::<Edge>();
        }
    }
}
