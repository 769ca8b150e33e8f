//! Bytes of a directory of version 2, little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0–15 | number of pages, of groups of nodes, of groups of edge ids, and 0; 4 bytes each |
//! | 40 for each chunk | number, object, offset (8), length (8), CRC-32C, vertices, out-edges (8); others 4 bytes |
//!
//! Pages come first, then nodes, then edge ids; each kind in rising order of its numbers.

use crate::Error;
use crate::checkpoint::ManifestPartition;
use crate::checkpoint::directory::{ChunkEntry, ChunkKind, Directory};
use crate::checkpoint::manifest::damaged;

const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 40;

fn write_entry(entry: &ChunkEntry, out: &mut Vec<u8>) {
    out.extend(entry.number.to_le_bytes());
    out.extend(entry.object.to_le_bytes());
    out.extend(entry.offset.to_le_bytes());
    out.extend(entry.length.to_le_bytes());
    out.extend(entry.crc32c.to_le_bytes());
    out.extend(entry.vertices.to_le_bytes());
    out.extend(entry.edges.to_le_bytes());
}

fn read_entry(bytes: &[u8; ENTRY_BYTES]) -> ChunkEntry {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let (low, high) = (|at| word(at) as u32, |at| (word(at) >> 32) as u32);
    ChunkEntry {
        number: low(0),
        object: high(0),
        offset: word(8),
        length: word(16),
        crc32c: low(24),
        vertices: high(24),
        edges: word(32),
    }
}

/// Returns the bytes of a directory.
pub(in crate::checkpoint) fn encode(directory: &Directory) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + directory.all().count() * ENTRY_BYTES);
    for kind in ChunkKind::ALL {
        out.extend((directory.of(kind).len() as u32).to_le_bytes());
    }
    out.extend([0; 4]);
    directory.all().for_each(|(_, entry)| write_entry(entry, &mut out));
    out
}

/// Decodes the directory of a partition.
///
/// # Errors
///
/// [`Error::Damaged`] if it is too short or too long, or if a chunk lies outside the objects of the partition.
pub(super) fn decode(bytes: &[u8], partition: &ManifestPartition) -> Result<Directory, Error> {
    let own = partition.objects.first().map_or("", |own| own.path.as_str());
    let wrong = |at: usize, reason: &str| damaged(own, partition.directory_offset + at as u64, reason);
    let Some((header, entries)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(wrong(0, "its directory is cut short"));
    };
    let counts: Vec<usize> =
        header.as_chunks::<4>().0.iter().map(|count| u32::from_le_bytes(*count) as usize).collect();
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    if counts.iter().sum::<usize>() != entries.len() || counts[3] != 0 || !rest.is_empty() {
        return Err(wrong(0, "the length of its directory does not match its counts"));
    }
    let mut directory = Directory::default();
    let mut next = entries.iter().zip((HEADER_BYTES..).step_by(ENTRY_BYTES));
    for (kind, count) in ChunkKind::ALL.into_iter().zip(counts) {
        for (bytes, at) in next.by_ref().take(count) {
            let entry = read_entry(bytes);
            let object = partition.objects.get(entry.object as usize);
            let inside = entry.range().is_some_and(|range| {
                let end = match entry.object {
                    0 => partition.directory_offset,
                    _ => object.map_or(0, |object| object.bytes),
                };
                object.is_some() && range.end <= end
            });
            if !inside || directory.of(kind).last().is_some_and(|last| last.number >= entry.number) {
                return Err(wrong(at, "its directory names a chunk out of order or outside of its object"));
            }
            directory.push(kind, entry);
        }
    }
    Ok(directory)
}
