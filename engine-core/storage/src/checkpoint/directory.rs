//! The directory of a partition's chunks, at the end of its object.
//!
//! | bytes | field |
//! |---|---|
//! | 0–15 | numbers of pages, of groups of nodes, of groups of edge ids, and 0, little-endian, 4 bytes each |
//! | 40 for each chunk | see [`Entry`]; pages first, then nodes, then edge ids, each in order of their numbers |

use super::ManifestPartition;
use super::manifest::damaged;
use crate::Error;
use std::ops::Range;

/// Kinds of chunks, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Pages,
    Nodes,
    EdgeIds,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Pages, Self::Nodes, Self::EdgeIds];
}

const HEADER: usize = 16;
const ENTRY: usize = 40;

/// Where a chunk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// Its number among those of its kind (4 bytes).
    pub number: u32,
    /// Number of the object that it is in, in the manifest (4 bytes).
    pub object: u32,
    /// Where it begins there (8 bytes).
    pub offset: u64,
    /// Its length (8 bytes).
    pub length: u64,
    /// Its CRC-32C (4 bytes).
    pub crc32c: u32,
    /// Vertices in it, if it holds nodes (4 bytes).
    pub vertices: u32,
    /// Out-edges in it, if it holds nodes (8 bytes).
    pub edges: u64,
}

impl Entry {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.number.to_le_bytes());
        out.extend(self.object.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.extend(self.crc32c.to_le_bytes());
        out.extend(self.vertices.to_le_bytes());
        out.extend(self.edges.to_le_bytes());
    }

    fn read(bytes: &[u8; ENTRY]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let (low, high) = (|at| word(at) as u32, |at| (word(at) >> 32) as u32);
        Self {
            number: low(0),
            object: high(0),
            offset: word(8),
            length: word(16),
            crc32c: low(24),
            vertices: high(24),
            edges: word(32),
        }
    }

    /// Its bytes in its object; nothing if they would end beyond all numbers.
    pub fn range(&self) -> Option<Range<u64>> {
        Some(self.offset..self.offset.checked_add(self.length)?)
    }
}

/// The chunks of a partition.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Directory {
    chunks: [Vec<Entry>; 3],
}

impl Directory {
    /// The chunks of a kind, in order of their numbers.
    pub fn of(&self, kind: Kind) -> &[Entry] {
        &self.chunks[kind as usize]
    }

    /// All chunks.
    pub fn all(&self) -> impl Iterator<Item = (Kind, &Entry)> {
        Kind::ALL.into_iter().flat_map(|kind| self.of(kind).iter().map(move |entry| (kind, entry)))
    }

    /// Adds a chunk behind those of its kind.
    pub fn push(&mut self, kind: Kind, entry: Entry) {
        self.chunks[kind as usize].push(entry);
    }

    /// Bytes of chunks in the checkpoint's own object that an earlier checkpoint had already.
    pub fn rewritten_bytes(&self, before: &Self) -> u64 {
        let rewritten = |kind: Kind, entry: &Entry| {
            let had = before.of(kind).binary_search_by_key(&entry.number, |entry| entry.number).is_ok();
            (had && entry.object == 0).then_some(entry.length)
        };
        self.all().filter_map(|(kind, entry)| rewritten(kind, entry)).sum()
    }

    /// Vertices and out-edges.
    pub fn counts(&self) -> (u64, u64) {
        let nodes = self.of(Kind::Nodes).iter();
        nodes.fold((0, 0), |(vertices, edges), entry| {
            (vertices + u64::from(entry.vertices), edges.saturating_add(entry.edges))
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + self.all().count() * ENTRY);
        for chunks in &self.chunks {
            out.extend((chunks.len() as u32).to_le_bytes());
        }
        out.extend([0; 4]);
        self.all().for_each(|(_, entry)| entry.write(&mut out));
        out
    }

    /// The directory of a partition, all of its chunks inside of the partition's objects.
    pub fn decode(bytes: &[u8], partition: &ManifestPartition) -> Result<Self, Error> {
        let own = partition.objects.first().map_or("", |own| own.path.as_str());
        let wrong = |at: usize, reason: &str| damaged(own, partition.directory_offset + at as u64, reason);
        let Some((header, entries)) = bytes.split_at_checked(HEADER) else {
            return Err(wrong(0, "its directory is cut short"));
        };
        let counts: Vec<usize> =
            header.as_chunks::<4>().0.iter().map(|count| u32::from_le_bytes(*count) as usize).collect();
        let (entries, rest) = entries.as_chunks::<ENTRY>();
        if counts.iter().sum::<usize>() != entries.len() || counts[3] != 0 || !rest.is_empty() {
            return Err(wrong(0, "its directory is not as long as it says"));
        }
        let mut directory = Self::default();
        let mut next = entries.iter().zip((HEADER..).step_by(ENTRY));
        for (kind, count) in Kind::ALL.into_iter().zip(counts) {
            for (bytes, at) in next.by_ref().take(count) {
                let entry = Entry::read(bytes);
                let chunks = &mut directory.chunks[kind as usize];
                let object = partition.objects.get(entry.object as usize);
                let inside = entry.range().is_some_and(|range| {
                    let end = match entry.object {
                        0 => partition.directory_offset,
                        _ => object.map_or(0, |object| object.bytes),
                    };
                    object.is_some() && range.end <= end
                });
                if !inside || chunks.last().is_some_and(|last: &Entry| last.number >= entry.number) {
                    return Err(wrong(at, "its directory names a chunk that cannot be"));
                }
                chunks.push(entry);
            }
        }
        Ok(directory)
    }
}
