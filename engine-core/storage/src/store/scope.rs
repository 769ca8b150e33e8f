//! A store of one partition of a graph whose other partitions are in other stores.
//!
//! The store receives whole transactions and takes what concerns its partition: of an edge the source, the target,
//! the entry of its id, or several of these. It does not know what other partitions hold. The log guarantees that
//! every partition takes its part, and the transaction, which read both ends, guarantees that they exist (STO-2).
//!
//! What must never happen: a part of an edge that stays when the edge is deleted.

use super::{Generation, Store};
use crate::partition::Writer;
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, PartitionId, Str, Token, Value};

/// The partition of a graph that a store holds: of a graph that has `partitions` partitions, the one with the number
/// `partition` among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Number of partitions of the graph.
    pub partitions: PartitionCount,
    /// The partition that is here.
    pub partition: PartitionId,
}

impl Scope {
    /// Returns whether a GUI belongs to this partition.
    #[inline]
    #[must_use]
    pub fn holds(&self, gui: Gui) -> bool {
        self.partitions.of(gui) == self.partition
    }

    /// Returns whether every GUI of another partition belongs to this one too: they are the same, or the graph was
    /// split and this is the partition from which the other came.
    #[must_use]
    pub fn covers(&self, other: Self) -> bool {
        self.partitions.get() <= other.partitions.get()
            && other.partition.0 & (self.partitions.get() - 1) == self.partition.0
    }
}

/// The parts of an edge that a store holds.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub source: bool,
    pub target: bool,
    /// The hash of the user-chosen id, if its entry is here.
    pub id: Option<Gui>,
}

impl Store {
    /// Returns whether a GUI belongs to this store.
    #[must_use]
    pub fn holds(&self, gui: Gui) -> bool {
        self.config.scope.is_none_or(|scope| scope.holds(gui))
    }
}

impl Generation {
    /// Returns whether a GUI belongs to this store.
    #[inline]
    #[must_use]
    pub fn holds(&self, gui: Gui) -> bool {
        self.config.scope.is_none_or(|scope| scope.holds(gui))
    }

    /// Returns the parts of an edge that are here.
    pub(super) fn parts(&self, edge: &Edge, id: Option<&Str>, hasher: GuiHasher) -> Parts {
        let id = id.map(|id| hasher.edge_id(id)).filter(|hash| self.holds(*hash));
        Parts { source: self.holds(edge.source), target: self.holds(edge.target), id }
    }

    /// STO-2: creates the parts of an edge that are here, all of them or none; returns false if one of them has no
    /// vertex.
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

    /// Deletes the parts of an edge that are here.
    pub(super) fn delete_parts(&self, w: &mut Writer<'_>, edge: &Edge, id: Option<&Str>) {
        let mut parts = self.parts(edge, id, self.config.hasher);
        let mut open = self.partitions[0].open();
        if parts.source {
            let Some(own) = open.remove_out(w, edge) else { return };
            // A mutation that deletes a vertex with its edges does not carry their ids.
            parts.id = own.map(|id| self.config.hasher.edge_id(&id)).filter(|hash| self.holds(*hash));
        }
        if parts.target {
            open.remove_in(w, edge);
        }
        if let Some(hash) = parts.id {
            open.remove_edge_id(w, hash.0, edge.sid);
        }
    }

    /// Deletes the parts here of all edges of a vertex in another store. Looks at all adjacency, because nothing says
    /// which lists hold a vertex of another partition.
    pub(super) fn sweep_edges_of(&self, w: &mut Writer<'_>, gone: Gui) {
        let edges = self.partitions[0].open().edges_with(gone);
        for edge in &edges {
            self.delete_parts(w, edge, None);
        }
    }
}
