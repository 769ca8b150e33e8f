//! Memory that a store uses, by purpose.

/// Bytes in memory as requested from the allocator, which adds about 8 bytes to each allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Hash indexes of vertices, edges and edge ids.
    pub indexes: usize,
    /// Nodes of vertices (64 bytes each) and their rows without properties (24 bytes each).
    pub vertices: usize,
    /// Blocks of adjacency, free ones included: 12 bytes an entry, 32 bytes until it is folded into the base of its
    /// list.
    pub adjacency: usize,
    /// The part of `adjacency` that no block in use occupies: free blocks and ends of segments.
    pub adjacency_free: usize,
    /// Rows of edges that have an id or properties, without them: 8 bytes each, 24 with an id.
    pub edges: usize,
    /// Entries of edge ids that users chose (24 bytes each).
    pub edge_ids: usize,
    /// Property values (1 to 16 bytes each, by type), long strings, and unused rows of pages.
    pub properties: usize,
    /// Ids longer than 12 bytes.
    pub ids: usize,
    /// Characteristic sets.
    pub labels: usize,
    /// Older versions, and the notes of what to reclaim.
    pub versions: usize,
}

impl Memory {
    /// Returns the sum of all parts.
    #[must_use]
    pub fn total(&self) -> usize {
        self.indexes
            + self.vertices
            + self.adjacency
            + self.edges
            + self.edge_ids
            + self.properties
            + self.ids
            + self.labels
            + self.versions
    }
}
