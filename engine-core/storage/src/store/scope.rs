//! A store of one partition of a graph whose others are elsewhere.
//!
//! It is given whole transactions and takes what concerns its partition. Of an edge that is its source, its target or the
//! entry of its id, each by itself: what the other partitions hold is not known here. That all of them take their part is
//! the log's promise, and that both ends of an edge are there is what its transaction made sure of (it read them).
//!
//! What must never happen: a part of an edge that stays when the edge has gone.

use super::Store;
use crate::partition::Writer;
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, PartitionId, Str, Token, Value};

/// Which partition of a graph a store holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// How many partitions the graph has.
    pub partitions: PartitionCount,
    /// The one that is here.
    pub partition: PartitionId,
}

impl Scope {
    /// Whether what a GUI stands for is in this partition.
    #[inline]
    #[must_use]
    pub fn holds(&self, gui: Gui) -> bool {
        self.partitions.of(gui) == self.partition
    }
}

/// Which parts of an edge a store holds.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub source: bool,
    pub target: bool,
    /// The entry of the id that the user chose, by its hash.
    pub id: Option<Gui>,
}

impl Store {
    /// Whether what a GUI stands for is in this store.
    #[inline]
    #[must_use]
    pub fn holds(&self, gui: Gui) -> bool {
        self.config.scope.is_none_or(|scope| scope.holds(gui))
    }

    pub(super) fn parts(&self, edge: &Edge, id: Option<&Str>, hasher: GuiHasher) -> Parts {
        let id = id.map(|id| hasher.edge_id(id)).filter(|hash| self.holds(*hash));
        Parts { source: self.holds(edge.source), target: self.holds(edge.target), id }
    }

    /// Makes the parts of an edge that are here; false if one of them has no vertex.
    pub(super) fn create_parts(
        &self,
        w: &mut Writer<'_>,
        edge: &Edge,
        id: Option<&Str>,
        properties: &[(Token, Value)],
    ) -> bool {
        let parts = self.parts(edge, id, self.config.hasher);
        let mut open = self.partitions[0].open();
        if parts.target && !open.add_in(w, edge) {
            return false;
        }
        if parts.source && !open.add_out(w, edge, id, properties) {
            if parts.target {
                open.remove_in(w, edge);
            }
            return false;
        }
        if let Some(hash) = parts.id {
            open.add_edge_id(w, hash.0, edge.source, edge.sid);
        }
        true
    }

    /// Ends the parts of an edge that are here.
    pub(super) fn delete_parts(&self, w: &mut Writer<'_>, edge: &Edge, id: Option<&Str>) {
        let mut parts = self.parts(edge, id, self.config.hasher);
        let mut open = self.partitions[0].open();
        if parts.source {
            let Some(own) = open.remove_out(w, edge) else { return };
            // Whoever deletes a vertex with its edges does not say their ids.
            parts.id = own.map(|id| self.config.hasher.edge_id(&id)).filter(|hash| self.holds(*hash));
        }
        if parts.target {
            open.remove_in(w, edge);
        }
        if let Some(hash) = parts.id {
            open.remove_edge_id(w, hash.0, edge.sid);
        }
    }

    /// Ends what is here of the edges of a vertex that is elsewhere. Looks at all adjacency: nothing here says which
    /// lists a vertex of another partition is in.
    pub(super) fn sweep_edges_of(&self, w: &mut Writer<'_>, gone: Gui) {
        let edges = self.partitions[0].open().edges_with(gone);
        for edge in &edges {
            self.delete_parts(w, edge, None);
        }
    }
}
