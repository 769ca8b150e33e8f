//! A step of a search upwards: from the vertices that were not reached to those that were.
//!
//! A breadth-first search that goes down from its frontier looks at all edges of it, though most of them lead to where it
//! was before. Once much is reached it is less work to ask each vertex that was not for one neighbour that was, and to stop
//! at the first (Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012). [`breadth_first`]
//! decides which way to go.
//!
//! [`breadth_first`]: crate::breadth_first

use crate::{Expand, VertexSet};
use tidegraph_types::{Gui, Sid, Token};

/// A step of a search upwards: which vertices have a neighbour among those that were reached.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BottomUp<'s> {
    /// Which edges of the vertices that were not reached are followed, in which direction from there, and how many rows
    /// are answered at once. `loops_once` is not looked at.
    pub edges: &'s Expand,
    /// Some vertices.
    pub set: &'s VertexSet,
    /// Reached are not the vertices of the set, but all others. Not for a search along edges in one direction: of it a
    /// vertex that no edge leads to is in neither.
    pub inverse: bool,
    /// The step follows another one: all that was reached since is what that one answered, so that no vertex which is not
    /// explored need be looked up in the set.
    pub follows: bool,
    /// Answer also the vertices that were not reached and have edges, but none to one that was: `Parents::rest`.
    pub rest: bool,
}

/// Vertices that a search upwards passes over from now on: those that were reached, or have no edge of the kind. It is the
/// storage's to read and to write, and the caller's to carry from one step to the next: of the same graph at the same
/// version, with edges of the same kind, as long as all that was answered counts as reached in the next step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explored {
    /// For each partition a bit for each of its vertices, as storage numbers them.
    pub partitions: Vec<Vec<u64>>,
}

impl Explored {
    /// Bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.partitions.iter().map(|words| words.len() * 8).sum()
    }

    /// How many vertices are left to look at, of those that were looked at so far; none, if no step was taken yet.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        let words = || self.partitions.iter().flatten();
        (words().count() > 0).then(|| words().map(|word| u64::from(word.count_zeros())).sum())
    }
}

/// Vertices that were not reached, each with an edge to one that was: aligned columns. The last three of them may be empty
/// if the request wanted neighbours only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parents {
    /// The vertex.
    pub vertex: Vec<Gui>,
    /// Its neighbour that was reached.
    pub parent: Vec<Gui>,
    /// The edge between them.
    pub sid: Vec<Sid>,
    /// Its label.
    pub label: Vec<Token>,
    /// Whether the vertex is the edge's source.
    pub outgoing: Vec<bool>,
    /// Not aligned with the others: vertices with edges, but none to one that was reached; empty unless asked for.
    pub rest: Vec<Gui>,
}

impl Parents {
    /// Empties all columns, keeping their memory.
    pub fn clear(&mut self) {
        self.vertex.clear();
        self.parent.clear();
        self.sid.clear();
        self.label.clear();
        self.outgoing.clear();
        self.rest.clear();
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vertex.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vertex.is_empty()
    }
}
