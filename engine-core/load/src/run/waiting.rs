//! Rows that depend on what an earlier row of the same load wrote.
//!
//! The load does not keep all its values in memory for the few rows that repeat an element. Such rows wait until their
//! phase ends or they exceed [`super::Config::waiting_bytes`]. The written segments are then read once, only what
//! waiting rows need is kept, and the rows are applied in order. Each such pass reads the segments of one kind, so a
//! load that repeats most of its single-cardinality rows takes longer but no more memory.

use super::edges::Resolved;
use super::vertices::show;
use super::{Load, Stop};
use crate::error::Error;
use crate::rows::{Name, VertexRow};
use crate::segments::{Kind, SegmentReader};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use tidegraph_types::{Cardinality, Edge, Gui, Mutation, Sid, Str, Token, Value};

pub(super) struct WaitingVertex {
    pub file: usize,
    pub gui: Gui,
    pub row: VertexRow,
}

pub(super) struct WaitingEdge {
    pub file: usize,
    pub row: Resolved,
}

/// Rows that wait, with their size in memory.
#[derive(Default)]
pub(super) struct WaitingRows {
    vertices: VecDeque<WaitingVertex>,
    edges: VecDeque<WaitingEdge>,
    pub bytes: usize,
}

impl WaitingRows {
    pub fn push_vertex(&mut self, waiting: WaitingVertex) {
        let values = waiting.row.properties.iter().map(|p| size_of_val(p) + p.value.heap_bytes());
        self.bytes += size_of::<WaitingVertex>() + waiting.row.id.len() + values.sum::<usize>();
        self.vertices.push_back(waiting);
    }

    pub fn push_edge(&mut self, waiting: WaitingEdge) {
        let values = waiting.row.properties.iter().map(|p| size_of_val(p) + p.1.heap_bytes());
        let id = waiting.row.id.as_ref().map_or(0, |id| id.text.len());
        self.bytes += size_of::<WaitingEdge>() + id + values.sum::<usize>();
        self.edges.push_back(waiting);
    }
}

/// An edge id of waiting rows: its edge, if one exists, and the edge's values.
#[derive(Default)]
struct EdgeState {
    edge: Option<Edge>,
    values: FxHashMap<Token, Value>,
}

impl Load<'_> {
    /// Applies the waiting vertex rows: Gremlin rows with single-cardinality values of vertices that the load has met.
    pub(super) fn apply_waiting_vertices(&mut self) -> Result<(), Stop> {
        let waiting = std::mem::take(&mut self.waiting.vertices);
        if waiting.is_empty() {
            return Ok(());
        }
        self.waiting.bytes = 0;
        let mut values: FxHashMap<(Gui, Token), Value> = FxHashMap::default();
        let wanted: FxHashSet<(Gui, Token)> =
            waiting.iter().flat_map(|w| self.single_keys(w.file, &w.row, w.gui)).collect();
        let asked: Vec<_> = wanted.iter().copied().collect();
        for (key, found) in asked.iter().zip(self.graph_vertex_values(&asked)?) {
            if let Some(value) = found.into_iter().next() {
                values.insert(*key, value);
            }
        }
        let partitions: FxHashSet<_> = waiting.iter().map(|w| self.context.partitions.of(w.gui)).collect();
        // The labels that the load wrote to these vertices, so that a row that adds nothing is not written again.
        let mut labels: FxHashMap<Gui, FxHashSet<Token>> =
            waiting.iter().map(|w| (w.gui, FxHashSet::default())).collect();
        self.writer.flush(Kind::Vertices)?;
        for segment in self.writer.segments(Kind::Vertices) {
            if !partitions.contains(&segment.partition) {
                continue;
            }
            let mut reader = SegmentReader::open(self.context.objects, &segment.object)?;
            while let Some(block) = reader.next_block()? {
                for mutation in block {
                    let Mutation::CreateVertex { gui, labels: written, properties, .. } = mutation else {
                        continue;
                    };
                    let Some(labels) = labels.get_mut(&gui) else { continue };
                    labels.extend(written);
                    for write in properties {
                        let key = (gui, write.key);
                        if write.cardinality == Cardinality::Single && wanted.contains(&key) {
                            values.insert(key, write.value);
                        }
                    }
                }
            }
        }
        for WaitingVertex { file, gui, mut row } in waiting {
            let key = |name: Name| (gui, self.names.token(file, name));
            let single = || row.properties.iter().filter(|p| p.cardinality == Cardinality::Single);
            let violation = single().find_map(|p| {
                let old = values.get(&key(p.name))?;
                (*old != p.value).then(|| (p.name, show(old), show(&p.value)))
            });
            if let Some((name, old, new)) = violation {
                let name = self.key_name(file, name);
                let rejected = self.single_violation(file, row.line, "vertex", &row.id, &name, &old, &new);
                self.reject(file, rejected)?;
                continue;
            }
            // Without a violation, an existing single value equals the row's.
            row.properties
                .retain(|p| p.cardinality != Cardinality::Single || !values.contains_key(&key(p.name)));
            let known = labels.entry(gui).or_default();
            let new_labels: Vec<Token> = row
                .labels
                .iter()
                .map(|l| self.names.token(file, *l))
                .filter(|l| !known.contains(l))
                .collect();
            if new_labels.is_empty() && row.properties.is_empty() {
                continue;
            }
            let single = row.properties.iter().filter(|p| p.cardinality == Cardinality::Single);
            let written: Vec<_> = single.map(|p| (key(p.name), p.value.clone())).collect();
            if self.merge_vertex(file, gui, row)? {
                values.extend(written);
                known.extend(new_labels);
            }
        }
        Ok(())
    }

    /// Applies the waiting edge rows: rows with an id that the load has met.
    pub(super) fn apply_waiting_edges(&mut self) -> Result<(), Stop> {
        let waiting = std::mem::take(&mut self.waiting.edges);
        if waiting.is_empty() {
            return Ok(());
        }
        self.waiting.bytes = 0;
        let mut known: FxHashMap<Str, EdgeState> = FxHashMap::default();
        for row in waiting.iter().map(|w| &w.row) {
            known.entry(row.id_text()).or_default();
        }
        self.known_in_graph(&waiting, &mut known)?;
        self.known_in_load(&mut known)?;
        for WaitingEdge { file, row } in waiting {
            let id = row.id_text();
            let mut entry = known.remove(&id).unwrap_or_default();
            match entry.edge {
                // The first row of the load was applied already.
                Some(_) if self.rules(file).first_edge_row_wins() => {}
                Some(edge) => {
                    let written = self.merge_edge(file, row, edge, &entry.values)?;
                    entry.values.extend(written);
                }
                // Two ids have one hash; this edge is new.
                None => {
                    entry.values = row.properties.iter().cloned().collect();
                    entry.edge = Some(self.create_edge(row)?);
                }
            }
            known.insert(id, entry);
        }
        Ok(())
    }

    fn known_in_graph(
        &self,
        waiting: &VecDeque<WaitingEdge>,
        known: &mut FxHashMap<Str, EdgeState>,
    ) -> Result<(), Error> {
        let edges = self.find_edges(known.keys())?;
        let mut wanted = Vec::new();
        for row in waiting.iter().map(|w| &w.row) {
            let id = row.id_text();
            if let Some(Some(edge)) = edges.get(&id) {
                wanted.extend(row.properties.iter().map(|(key, _)| (id.clone(), *edge, *key)));
                known.entry(id).or_default().edge = Some(*edge);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let asked: Vec<_> = wanted.iter().map(|(_, edge, key)| (*edge, *key)).collect();
        for ((id, _, key), value) in wanted.into_iter().zip(self.context.target.edge_values(&asked)?) {
            if let Some(value) = value {
                known.entry(id).or_default().values.insert(key, value);
            }
        }
        Ok(())
    }

    fn known_in_load(&mut self, known: &mut FxHashMap<Str, EdgeState>) -> Result<(), Error> {
        self.writer.flush(Kind::Edges)?;
        // `SetEdgeProperty` names the edge by SID and follows its `CreateEdge` in the partition of the source.
        let mut by_sid: FxHashMap<Sid, Str> =
            known.iter().filter_map(|(id, k)| Some((k.edge?.sid, id.clone()))).collect();
        for segment in self.writer.segments(Kind::Edges) {
            let mut reader = SegmentReader::open(self.context.objects, &segment.object)?;
            while let Some(block) = reader.next_block()? {
                for mutation in block {
                    match mutation {
                        Mutation::CreateEdge { edge, id: Some(id), properties } => {
                            let Some(entry) = known.get_mut(&id) else { continue };
                            entry.edge = Some(edge);
                            entry.values.extend(properties);
                            by_sid.insert(edge.sid, id);
                        }
                        Mutation::SetEdgeProperty { edge, key, value } => {
                            if let Some(entry) = by_sid.get(&edge.sid).and_then(|id| known.get_mut(id)) {
                                entry.values.insert(key, value);
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}
