//! What a store takes, by purpose.

/// Bytes in memory, as asked from the allocator (which adds its own 8 or so for each allocation).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Hash indexes of vertices, edges and edge ids.
    pub indexes: usize,
    /// Nodes of vertices, 64 each, and their rows without properties, 24 each.
    pub vertices: usize,
    /// Blocks of adjacency, free ones among them: 12 bytes an entry, 32 until it is settled.
    pub adjacency: usize,
    /// The part of `adjacency` that is no block in use: free blocks, ends of segments.
    pub adjacency_free: usize,
    /// Rows of edges that have ids or properties, without them: 8 each, 24 with an id.
    pub edges: usize,
    /// Entries of edge ids that users chose: 24 each.
    pub edge_ids: usize,
    /// Property values, 1 to 16 each by type, with longer strings, and the unused rows of pages.
    pub properties: usize,
    /// Ids longer than 12 bytes.
    pub ids: usize,
    /// Characteristic sets.
    pub labels: usize,
    /// Older versions, and notes of what is to be forgotten.
    pub versions: usize,
}

impl Memory {
    /// All of it.
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
