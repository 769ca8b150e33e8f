//! A graph pattern (openCypher MATCH) without an order of evaluation. `passes::match_order` chooses one and lowers the
//! pattern to scans, look-ups and expands.

use crate::{Expr, Op, Slot};
use tidegraph_types::{Direction, Str};

/// The pattern of a MATCH clause, or of several that follow each other. Its paths refer to nodes by index and may share them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MatchPattern {
    /// Vertices; each variable occurs once.
    pub nodes: Vec<PatternNode>,
    /// Edges. Two of them never match the same edge, unless they are of different clauses.
    pub edges: Vec<PatternEdge>,
    /// The clause of each edge, if there are several; edges beyond the end are of clause 0. An edge that may match what
    /// another one of its clause matches has a number of its own.
    pub clauses: Vec<u32>,
    /// `p = (…)-[…]-(…)`.
    pub paths: Vec<NamedPath>,
    /// WHERE, over slots of the pattern and outer ones.
    pub predicate: Option<Expr>,
}

/// A vertex of a pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct PatternNode {
    /// The slot of the vertex; anonymous vertices have one too.
    pub slot: Slot,
    /// Whether an earlier clause bound the vertex, so that the pattern only checks it. A null has no match.
    pub bound: bool,
    /// Labels; the vertex must have all.
    pub labels: Vec<Str>,
    /// Properties; all must be equal.
    pub properties: Vec<(Str, Expr)>,
}

/// An edge of a pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct PatternEdge {
    /// The slot of the edge, or of a list of edges if `length` is given.
    pub slot: Slot,
    /// Whether an earlier clause bound the edge.
    pub bound: bool,
    /// Index of the vertex written on the left.
    pub left: usize,
    /// Index of the vertex written on the right.
    pub right: usize,
    /// Direction, read from left to right.
    pub direction: Direction,
    /// Labels; the edge must have one. Empty: any label.
    pub labels: Vec<Str>,
    /// Properties; all must be equal, for each edge of a variable length pattern.
    pub properties: Vec<(Str, Expr)>,
    /// A local slot for an edge, and a condition on each edge of a variable length pattern. `None` if `length` is not given.
    pub filter: Option<(Slot, Expr)>,
    /// Bounds, if the length is variable.
    pub length: Option<Length>,
    /// The edge is the body of `shortestPath(…)`; `length` is given too.
    pub shortest: Option<Shortest>,
    /// The edge is a quantified path pattern, and `length` bounds its repetitions. `slot` holds the edges of all of them.
    pub body: Option<Box<PatternBody>>,
}

impl PatternEdge {
    /// Whether both ends should be bound before the edge is searched, because the search would otherwise look at all paths
    /// from one of them.
    #[must_use]
    pub fn needs_both_ends(&self) -> bool {
        let enumerates = |body: &PatternBody| {
            let selection = body.selection.as_ref();
            selection.is_some_and(|selection| {
                selection.count > 1
                    || selection.accept.is_some()
                    || !selection.directed
                    || body.steps.len() > 1
            })
        };
        self.shortest.is_some() || self.body.as_deref().is_some_and(enumerates)
    }
}

/// One repetition of a quantified path pattern, such as `(a)-[r]->(b) WHERE a.x < b.x`.
#[derive(Clone, PartialEq, Debug)]
pub struct PatternBody {
    /// A row for each match. Its first operator is a `Match` over [`Op::Argument`]; none of its vertices is bound.
    pub plan: Op,
    /// Index of the first vertex in that pattern.
    pub first: usize,
    /// Index of the last vertex in that pattern.
    pub last: usize,
    /// Slots of the edges, from left to right.
    pub steps: Vec<Slot>,
    /// Slots of the named vertices and edges, each with the slot of the list that collects them.
    pub groups: Vec<(Slot, Slot)>,
    /// Which of the paths between two vertices match; `None`: all.
    pub selection: Option<Selection>,
    /// Whether an edge may occur in several repetitions.
    pub repeats: bool,
}

/// Chooses some of the paths between two vertices, the shortest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    /// The largest number of paths, or of their lengths.
    pub count: u32,
    /// Whether `count` is about lengths: all paths of these lengths match.
    pub groups: bool,
    /// Whether a path that repeats a vertex is never shorter than one without, so that the search need not follow it: each
    /// repetition is one edge in a given direction.
    pub directed: bool,
    /// A condition on the paths to choose from, over their lists and ends.
    pub accept: Option<Expr>,
}

/// The number of shortest paths between two vertices to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortest {
    /// `shortestPath`
    One,
    /// `allShortestPaths`
    All,
}

/// `*min..max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Length {
    /// Smallest number of edges.
    pub min: u32,
    /// Largest number of edges; `None`: no bound.
    pub max: Option<u32>,
}

/// A path variable.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedPath {
    /// The slot of the path.
    pub slot: Slot,
    /// Index of its first vertex.
    pub start: usize,
    /// Indices of its edges, in order, and whether each is walked from its left to its right end.
    pub edges: Vec<(usize, bool)>,
}
