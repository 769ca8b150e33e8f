//! Applies mutations: which partitions a mutation concerns, and in which order.

use super::Generation;
use crate::partition::{Tally, Writer};
use crate::properties::MetaWrite;
use smallvec::SmallVec;
use tidegraph_types::{Cardinality, Edge, Gui, Mutation, PropertyWrite, Str, Token, Value, Version};

/// Number of versions between two counts of the memory that stays resident.
const APPLIES_PER_COUNT: u64 = 64;
/// The same while pages exceed their share.
const APPLIES_PER_COUNT_WHEN_SHORT: u64 = 4;

impl Generation {
    /// Applies mutations of one committed transaction, none of which is a reset. The store calls it for one version
    /// after the other.
    pub fn apply(&self, version: Version, mutations: &[Mutation]) {
        if !mutations.is_empty() {
            self.note_changes();
        }
        let mut tally = Tally::default();
        let mut writer = Writer { version, bulk: false, keeps: None, tally: &mut tally };
        let mut rest = mutations;
        while let Some((first, more)) = rest.split_first() {
            rest = more;
            let (Mutation::SetVertexProperty { gui, .. } | Mutation::SetMetaProperty { gui, .. }) = first
            else {
                self.apply_one(&mut writer, first);
                continue;
            };
            if !self.holds(*gui) {
                continue;
            }
            // Consecutive writes to one vertex are applied as one change.
            let mut run = Run::default();
            run.add(first, *gui);
            while let Some((next, more)) = rest.split_first()
                && run.add(next, *gui)
            {
                rest = more;
            }
            if !run.values.is_empty() {
                self.set_properties(&mut writer, *gui, &run.values);
            }
            if !run.meta.is_empty() {
                // No index covers meta-properties.
                self.partitions[self.number(*gui)].open().set_meta_properties(&mut writer, *gui, &run.meta);
            }
        }
        self.count(tally);
        let (oldest, budget) = (self.versions.oldest(), 256 + 8 * mutations.len());
        self.indexes.reclaim(oldest, budget);
        self.reclaim_one(oldest, budget);
        self.note_lost();
        // Other memory changes slowly, but pages with versions, which cannot be evicted, may soon be too many.
        let every =
            if self.page_memory.keeps_pages() { APPLIES_PER_COUNT } else { APPLIES_PER_COUNT_WHEN_SHORT };
        if version.0.is_multiple_of(every) {
            self.keep_to_budget();
        } else {
            self.make_room();
        }
    }

    /// Returns the number of a GUI's partition.
    pub(super) fn number(&self, gui: Gui) -> usize {
        usize::from(self.config.partitions.of(gui).0)
    }

    /// Applies one mutation and updates the indexes that it concerns.
    pub(super) fn apply_one(&self, w: &mut Writer<'_>, mutation: &Mutation) {
        let Some(mut update) = self.index_update(mutation).filter(|update| self.holds(update.gui())) else {
            return self.change(w, mutation);
        };
        let partition = &self.partitions[self.number(update.gui())];
        update.before = update.indexed_values(partition);
        self.change(w, mutation);
        self.update_indexes(w, update, partition);
    }

    fn set_properties(&self, w: &mut Writer<'_>, gui: Gui, writes: &[&PropertyWrite]) {
        let partition = &self.partitions[self.number(gui)];
        let update = self.index_update_of(gui, writes).map(|mut update| {
            update.before = update.indexed_values(partition);
            update
        });
        partition.open().set_properties(w, gui, writes);
        if let Some(update) = update {
            self.update_indexes(w, update, partition);
        }
    }

    fn change(&self, w: &mut Writer<'_>, mutation: &Mutation) {
        let write = |gui: Gui| self.partitions[self.number(gui)].open();
        if self.config.scope.is_some() && self.is_elsewhere(w, mutation) {
            return;
        }
        match mutation {
            Mutation::CreateVertex { gui, id, labels, properties } => {
                write(*gui).create_vertex(w, *gui, id, labels, properties);
            }
            Mutation::DeleteVertex { gui, .. } => {
                // The transaction deletes its edges first. If some are left, they must not outlive the vertex.
                let edges = self.partitions[self.number(*gui)].open().live_edges(*gui);
                for edge in &edges {
                    self.delete_edge(w, edge, None);
                }
                write(*gui).delete_vertex(w, *gui);
            }
            Mutation::AddLabels { gui, labels } => write(*gui).add_labels(w, *gui, labels),
            Mutation::RemoveLabels { gui, labels } => write(*gui).remove_labels(w, *gui, labels),
            Mutation::SetVertexProperty { gui, write: value } => {
                write(*gui).set_properties(w, *gui, &[value]);
            }
            Mutation::RemoveVertexProperty { gui, key, value } => {
                write(*gui).remove_property(w, *gui, *key, value.as_ref());
            }
            Mutation::SetMetaProperty { gui, .. } => {
                if let Some((_, meta)) = meta_write(mutation) {
                    write(*gui).set_meta_properties(w, *gui, &[meta]);
                }
            }
            Mutation::CreateEdge { edge, id, properties } => {
                self.create_edge(w, edge, id.as_ref(), properties);
            }
            Mutation::DeleteEdge { edge, id } => self.delete_edge(w, edge, id.as_ref()),
            Mutation::SetEdgeProperty { edge, key, value } => {
                write(edge.source).set_edge_property(w, edge, *key, value);
            }
            Mutation::RemoveEdgeProperty { edge, key } => {
                write(edge.source).remove_edge_property(w, edge, *key);
            }
            Mutation::AddException { id, gui } => {
                self.add_exceptions(&[(id.clone(), *gui)]);
            }
            Mutation::DefineIndex { index } => self.define_index(index, w.version),
            Mutation::DropIndex { name } => self.indexes.drop_index(name),
            // The store begins another generation, and passes none on; nor has the segment of a load any.
            Mutation::Reset => {}
        }
    }

    /// Returns true if a mutation changes nothing here, or only the edges of a vertex in another store, which it then
    /// deletes.
    fn is_elsewhere(&self, w: &mut Writer<'_>, mutation: &Mutation) -> bool {
        if !mutation.concerns(|gui| self.holds(gui)) {
            return true;
        }
        match mutation {
            Mutation::DeleteVertex { gui, .. } if !self.holds(*gui) => {
                self.sweep_edges_of(w, *gui);
                true
            }
            _ => false,
        }
    }

    /// STO-2: creates both copies of an edge, or none. Returns false if a vertex is missing.
    pub(super) fn create_edge(
        &self,
        w: &mut Writer<'_>,
        edge: &Edge,
        id: Option<&Str>,
        properties: &[(Token, Value)],
    ) -> bool {
        if self.config.scope.is_some() {
            return self.create_parts(w, edge, id, properties);
        }
        let write = |gui: Gui| self.partitions[self.number(gui)].open();
        if !write(edge.target).add_in(w, edge) {
            return false;
        }
        if !write(edge.source).add_out(w, edge, id, properties) {
            write(edge.target).remove_in(w, edge);
            return false;
        }
        if let Some(id) = id {
            let hash = self.config.hasher.edge_id(id);
            write(hash).add_edge_id(w, hash.0, edge.source, edge.sid);
        }
        true
    }

    /// STO-2: deletes both copies of an edge, and the entry of its id.
    fn delete_edge(&self, w: &mut Writer<'_>, edge: &Edge, id: Option<&Str>) {
        if self.config.scope.is_some() {
            return self.delete_parts(w, edge, id);
        }
        let write = |gui: Gui| self.partitions[self.number(gui)].open();
        let Some(id) = write(edge.source).remove_out(w, edge) else { return };
        write(edge.target).remove_in(w, edge);
        if let Some(id) = id {
            let hash = self.config.hasher.edge_id(&id);
            write(hash).remove_edge_id(w, hash.0, edge.sid);
        }
    }

    /// Finds the edge that has a user-chosen id now.
    pub(super) fn live_edge_with_id(&self, id: &Str) -> Option<Edge> {
        let hash = self.config.hasher.edge_id(id);
        let mut candidates = Vec::new();
        self.partitions[self.number(hash)].edge_id_candidates(hash.0, &mut candidates);
        candidates.iter().find_map(|candidate| {
            let source = self.partitions[self.number(candidate.source)].open();
            source
                .has_edge_with_id(candidate.sid, id)
                .then(|| source.live_edge(candidate.source, candidate.sid))
                .flatten()
        })
    }
}

/// Largest number of writes that are applied together.
const LONGEST_RUN: usize = 1024;

/// Writes to one vertex that are applied together: the values first, then their meta-properties.
///
/// So a value that comes after a meta-property must not change the values before it, nor their numbers among
/// equivalent ones. A value that is added to a set or a list does not, unless it is equivalent to the value of the
/// meta-property.
#[derive(Default)]
struct Run<'m> {
    values: SmallVec<[&'m PropertyWrite; 8]>,
    meta: SmallVec<[MetaWrite<'m>; 4]>,
}

impl<'m> Run<'m> {
    /// Adds a write; returns false if it does not belong to this run.
    fn add(&mut self, mutation: &'m Mutation, gui: Gui) -> bool {
        if self.values.len() + self.meta.len() >= LONGEST_RUN {
            return false;
        }
        if let Some((_, write)) = meta_write(mutation).filter(|(of, _)| *of == gui) {
            self.meta.push(write);
            return true;
        }
        let Mutation::SetVertexProperty { gui: of, write } = mutation else { return false };
        let adds = || {
            write.cardinality != Cardinality::Single
                && self.values.iter().all(|other| other.cardinality == write.cardinality)
                && !self.meta.iter().any(|meta| meta.key == write.key && *meta.of == write.value)
        };
        let fits = *of == gui && (self.meta.is_empty() || adds());
        if fits {
            self.values.push(write);
        }
        fits
    }
}

/// Returns what a mutation writes to the meta-properties of a vertex.
fn meta_write(mutation: &Mutation) -> Option<(Gui, MetaWrite<'_>)> {
    let Mutation::SetMetaProperty { gui, key, of, nth, meta_key, value } = mutation else { return None };
    let (key, nth, meta_key, value) = (*key, *nth, *meta_key, value.as_ref());
    Some((*gui, MetaWrite { key, of, nth, meta_key, value }))
}
