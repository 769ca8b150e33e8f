//! A bottom-up step of a breadth-first search: from the unreached vertices to the reached ones.
//!
//! A top-down step reads all edges of the frontier, though most of them lead to vertices that were reached before. Once
//! many vertices are reached it is less work to ask each unreached vertex for one reached neighbour, and to stop at the
//! first (Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012).
//! [`breadth_first`](super::breadth_first) chooses the direction of each step.

use super::VertexSet;
use crate::fallback::AT_ONCE;
use crate::{Apl, At, Cursor, Error, Expand, Expansion, ScanCursor, VertexScan};
use tidegraph_types::{Gui, Sid, Token};

/// A bottom-up step: which unreached vertices have a reached neighbour?
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BottomUp<'s> {
    /// Which edges of the unreached vertices to follow, in which direction from there, and how many rows to answer at
    /// once. `loops_once` is ignored.
    pub edges: &'s Expand,
    /// The reached vertices; with `inverse`, the unreached ones.
    pub set: &'s VertexSet,
    /// Whether `set` holds the unreached vertices. Not for a search along edges in one direction, because a vertex that
    /// no edge leads to would count as reached.
    pub inverse: bool,
    /// Whether the previous step was bottom-up too. Then every vertex reached since is in its answer, and storage need
    /// not look up an unexplored vertex in the set.
    pub follows: bool,
    /// Whether to answer also the unreached vertices with edges of which none leads to a reached vertex:
    /// [`Parents::rest`].
    pub rest: bool,
}

/// Vertices that later bottom-up steps skip: they were reached, or have no edge of the kind. Storage reads and writes
/// it; the caller carries it from one step to the next. Valid for the same graph at the same version and for edges of
/// the same kind, as long as every answered vertex counts as reached in the next step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explored {
    /// For each partition, one bit for each vertex, as storage numbers them.
    pub partitions: Vec<Vec<u64>>,
}

impl Explored {
    /// Returns the size on the heap in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.partitions.iter().map(|words| words.len() * 8).sum()
    }

    /// Returns how many of the vertices seen so far are not explored; `None` before the first step.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        let words = || self.partitions.iter().flatten();
        (words().count() > 0).then(|| words().map(|word| u64::from(word.count_zeros())).sum())
    }
}

/// Newly reached vertices, each with an edge to a vertex that was reached before: aligned columns. `sid`, `label` and
/// `outgoing` may be empty if the request needed neighbours only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parents {
    /// The vertex.
    pub vertex: Vec<Gui>,
    /// Its reached neighbour.
    pub parent: Vec<Gui>,
    /// The edge between them.
    pub sid: Vec<Sid>,
    /// Its label.
    pub label: Vec<Token>,
    /// Whether the vertex is the edge's source.
    pub outgoing: Vec<bool>,
    /// Unreached vertices with edges of which none leads to a reached vertex. Not aligned with the other columns; empty
    /// unless requested.
    pub rest: Vec<Gui>,
}

impl Parents {
    /// Empties all columns and keeps their memory.
    pub fn clear(&mut self) {
        self.vertex.clear();
        self.parent.clear();
        self.sid.clear();
        self.label.clear();
        self.outgoing.clear();
        self.rest.clear();
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vertex.len()
    }

    /// Returns whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vertex.is_empty()
    }
}

/// Answers [`Searches::bottom_up`] by `scan_vertices` and `expand`. Tests compare storage with it.
///
/// # Errors
///
/// The errors of the requests that it makes.
pub fn bottom_up_by_scan<A: Apl + ?Sized>(
    apl: &A,
    at: At,
    step: &BottomUp<'_>,
    from: ScanCursor,
    out: &mut Parents,
) -> Result<Option<ScanCursor>, Error> {
    let reached = |gui: Gui| step.set.contains(gui) != step.inverse;
    let scan = VertexScan { max_rows: step.edges.max_rows.min(AT_ONCE), ..VertexScan::default() };
    let mut others = Vec::new();
    let next = apl.scan_vertices(at, &scan, from, &mut others)?;
    others.retain(|gui| !reached(*gui));
    // For each vertex: 0 no edge seen, 1 an edge seen, 2 an edge to a reached vertex seen.
    let mut seen = vec![0_u8; others.len()];
    let request = Expand { max_rows: AT_ONCE, ..step.edges.clone() };
    let (mut cursor, mut found) = (Some(Cursor::default()), Expansion::default());
    while let Some(from) = cursor {
        found.clear();
        cursor = apl.expand(at, &request, &others, from, &mut found)?;
        for index in 0..found.len() {
            let (row, parent) = (found.row[index] as usize, found.neighbour[index]);
            seen[row] = seen[row].max(1);
            if seen[row] == 1 && reached(parent) {
                seen[row] = 2;
                out.vertex.push(others[row]);
                out.parent.push(parent);
                if !request.neighbours_only {
                    out.sid.push(found.sid[index]);
                    out.label.push(found.label[index]);
                    out.outgoing.push(found.outgoing[index]);
                }
            }
        }
    }
    if step.rest {
        let rest = others.into_iter().zip(seen).filter(|(_, seen)| *seen == 1);
        out.rest.extend(rest.map(|(gui, _)| gui));
    }
    Ok(next)
}
