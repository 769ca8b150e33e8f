//! The ends of edges with the numbers of edges that lead there, instead of a row for each edge.

use rustc_hash::FxHashMap;
use tidegraph_types::Gui;

/// Ends of edges: columns of equal length, each end once.
#[derive(Clone, Debug, Default)]
pub struct EndCounts {
    index: FxHashMap<Gui, usize>,
    /// The vertices where edges end.
    pub ends: Vec<Gui>,
    /// Number of edges to each, from all vertices together.
    pub edges: Vec<u64>,
    /// How many of these edges begin where they end.
    pub loops: Vec<u64>,
}

impl EndCounts {
    /// Most ends of the edges that one call looks at. A call that would find more fails with
    /// [`crate::Error::TooLarge`].
    pub const MOST: usize = 1 << 18;
    /// Estimated bytes of an end.
    pub const BYTES: usize = 4 * size_of::<Gui>() + 24;

    /// Makes ends without an index, as a message holds them.
    #[must_use]
    pub fn of_columns(ends: Vec<Gui>, edges: Vec<u64>, loops: Vec<u64>) -> Self {
        Self { ends, edges, loops, ..Self::default() }
    }

    /// Adds edges to an end.
    pub fn add(&mut self, end: Gui, edges: u64, loops: u64) {
        let at = *self.index.entry(end).or_insert_with(|| {
            self.ends.push(end);
            self.edges.push(0);
            self.loops.push(0);
            self.ends.len() - 1
        });
        self.edges[at] = self.edges[at].saturating_add(edges);
        self.loops[at] = self.loops[at].saturating_add(loops);
    }

    /// Adds the ends of another answer.
    pub fn merge(&mut self, other: &Self) {
        for ((end, edges), loops) in other.ends.iter().zip(&other.edges).zip(&other.loops) {
            self.add(*end, *edges, *loops);
        }
    }

    /// Returns the number of ends.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
