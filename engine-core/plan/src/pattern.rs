//! A graph pattern before an order of evaluation is chosen (openCypher MATCH). `passes::match_order` lowers it to
//! scans, look-ups and expands.

use crate::{Expr, Slot};
use tidegraph_types::{Direction, Str};

/// Everything that one MATCH clause asks for. Nodes are shared between its paths by index.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MatchPattern {
    /// Vertices, each variable once.
    pub nodes: Vec<PatternNode>,
    /// Edges. Any two of one MATCH are different edges.
    pub edges: Vec<PatternEdge>,
    /// `p = (…)-[…]-(…)`.
    pub paths: Vec<NamedPath>,
    /// WHERE, over the pattern's slots and outer ones.
    pub predicate: Option<Expr>,
}

/// A vertex of a pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct PatternNode {
    /// Where it is bound; anonymous ones have a slot too.
    pub slot: Slot,
    /// Bound by an earlier clause: only checked here. Null there: no match.
    pub bound: bool,
    /// All of these labels.
    pub labels: Vec<Str>,
    /// All of these properties are equal.
    pub properties: Vec<(Str, Expr)>,
}

/// An edge of a pattern.
#[derive(Clone, PartialEq, Debug)]
pub struct PatternEdge {
    /// Where it is bound: an edge, or a list of edges if `length` is given.
    pub slot: Slot,
    /// Bound by an earlier clause.
    pub bound: bool,
    /// Index of the vertex written on the left.
    pub left: usize,
    /// Index of the vertex written on the right.
    pub right: usize,
    /// From left to right.
    pub direction: Direction,
    /// One of these labels; empty: any.
    pub labels: Vec<Str>,
    /// All of these properties are equal (each edge of a variable length pattern).
    pub properties: Vec<(Str, Expr)>,
    /// Variable length.
    pub length: Option<Length>,
    /// `shortestPath((…)-[…]-(…))` around this edge; `length` is given then.
    pub shortest: Option<Shortest>,
}

/// Which shortest paths.
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
    /// Fewest edges.
    pub min: u32,
    /// Most edges; `None`: no bound.
    pub max: Option<u32>,
}

/// A path variable.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedPath {
    /// Where it is bound.
    pub slot: Slot,
    /// Index of its first vertex.
    pub start: usize,
    /// Indices of its edges, in order, and whether each is walked from its left to its right end.
    pub edges: Vec<(usize, bool)>,
}
