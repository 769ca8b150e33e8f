//! What storage makes of vertices instead of rows for each of them.

use crate::Slot;
use tidegraph_types::{Direction, Str};

/// The edges of one step from a vertex.
#[derive(Clone, PartialEq, Debug)]
pub struct EdgeStep {
    /// The direction of the edges.
    pub direction: Direction,
    /// Labels of edges; empty: any label.
    pub labels: Vec<Str>,
    /// Whether a self-loop counts once (openCypher) or twice (Gremlin) in the direction `Both`.
    pub loops_once: bool,
}

/// What storage makes of the vertices of an [`Op::DigestScan`](crate::Op::DigestScan).
#[derive(Clone, PartialEq, Debug)]
pub enum Digest {
    /// Rows that are groups. Several may be the same group: what they hold is to be combined.
    Groups {
        /// The slots of the groups' keys, and the properties of the vertex that they are.
        keys: Vec<(Slot, Str)>,
        /// The slots of the results.
        items: Vec<(Slot, DigestItem)>,
        /// A vertex stands for a row for each choice of one edge of each step.
        steps: Vec<EdgeStep>,
        /// Whether the steps, which are two, must not choose the same edge.
        distinct: bool,
    },
    /// A row for each vertex at the other ends of their edges. Several rows may have the same vertex.
    Ends {
        /// The edges.
        step: EdgeStep,
        /// The slot of the vertex at the other end.
        to: Slot,
        /// The slot of the number of edges that end there.
        edges: Slot,
        /// The slot of the number of those that begin there, too.
        loops: Slot,
    },
}

/// What is computed of a group of vertices. Vertices without the property are skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DigestItem {
    /// The number of rows.
    Rows,
    /// The number of rows with the property.
    Values(Str),
    /// The sum of the property's values; null without any.
    Sum(Str),
    /// Their least value.
    Min(Str),
    /// Their greatest value.
    Max(Str),
}
