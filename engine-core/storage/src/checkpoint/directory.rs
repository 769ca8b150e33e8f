//! The directory of a partition's chunks, at the end of the partition's object.
//! [`super::format`] defines its bytes.

use std::ops::Range;

/// Kinds of chunks, in the order in which a checkpoint holds them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkKind {
    Pages,
    Nodes,
    EdgeIds,
}

impl ChunkKind {
    pub const ALL: [Self; 3] = [Self::Pages, Self::Nodes, Self::EdgeIds];
}

/// Where a chunk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChunkEntry {
    /// Its number among the chunks of its kind.
    pub number: u32,
    /// The object that holds it: an index into the objects that the manifest lists for the partition.
    pub object: u32,
    /// Offset of its first byte in the object.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Its CRC-32C.
    pub crc32c: u32,
    /// Number of vertices in it; 0 unless it holds nodes.
    pub vertices: u32,
    /// Number of out-edges in it; 0 unless it holds nodes.
    pub edges: u64,
}

impl ChunkEntry {
    /// Returns its range of bytes in its object, or `None` if the end overflows.
    pub fn range(&self) -> Option<Range<u64>> {
        Some(self.offset..self.offset.checked_add(self.length)?)
    }
}

/// The chunks of a partition.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Directory {
    chunks: [Vec<ChunkEntry>; 3],
}

impl Directory {
    /// Returns the chunks of a kind, in order of their numbers.
    pub fn of(&self, kind: ChunkKind) -> &[ChunkEntry] {
        &self.chunks[kind as usize]
    }

    /// Returns all chunks, in order of kind and number.
    pub fn all(&self) -> impl Iterator<Item = (ChunkKind, &ChunkEntry)> {
        ChunkKind::ALL.into_iter().flat_map(|kind| self.of(kind).iter().map(move |entry| (kind, entry)))
    }

    /// Adds a chunk after the others of its kind.
    pub fn push(&mut self, kind: ChunkKind, entry: ChunkEntry) {
        self.chunks[kind as usize].push(entry);
    }

    /// Returns the bytes of the chunks in the checkpoint's own object that the checkpoint `before` already had.
    pub fn rewritten_bytes(&self, before: &Self) -> u64 {
        let rewritten = |kind: ChunkKind, entry: &ChunkEntry| {
            let had = before.of(kind).binary_search_by_key(&entry.number, |entry| entry.number).is_ok();
            (had && entry.object == 0).then_some(entry.length)
        };
        self.all().filter_map(|(kind, entry)| rewritten(kind, entry)).sum()
    }

    /// Returns the numbers of vertices and out-edges.
    pub fn counts(&self) -> (u64, u64) {
        let nodes = self.of(ChunkKind::Nodes).iter();
        nodes.fold((0, 0), |(vertices, edges), entry| {
            (vertices + u64::from(entry.vertices), edges.saturating_add(entry.edges))
        })
    }
}
