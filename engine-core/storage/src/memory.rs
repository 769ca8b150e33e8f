//! What a store takes, by purpose.

/// Bytes in memory, as asked from the allocator (which adds its own 8 or so for each allocation).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Hash indexes of vertices, edges and edge ids.
    pub indexes: usize,
    /// Nodes and bodies of vertices: 96 each.
    pub vertices: usize,
    /// Adjacency lists beyond the first entry, 24 an entry.
    pub adjacency: usize,
    /// Records of edges that have ids or properties: 48 each.
    pub edges: usize,
    /// Entries of edge ids that users chose: 24 each.
    pub edge_ids: usize,
    /// Property values, 32 each, with long strings.
    pub properties: usize,
    /// Ids longer than 23 bytes.
    pub ids: usize,
    /// Label sets and members of labels.
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
