//! Encoded mutations that are not yet written.

use tidegraph_types::Gui;

/// Encoded mutations of one partition and kind that are not yet written.
///
/// The bytes are in chunks, so that they never move and little memory is unused.
#[derive(Default)]
pub(super) struct Buffer {
    chunks: Vec<Vec<u8>>,
    pub order: Vec<Entry>,
    /// Bytes of all mutations.
    pub length: usize,
    /// Number of the next segment that is written from it.
    pub number: u32,
}

/// Place of a mutation in a buffer, and the vertex that it changes in the partition.
pub(super) struct Entry {
    key: Gui,
    /// Number of the chunk in the high bits, offset in the chunk in the low [`CHUNK_BITS`]. It grows with every
    /// mutation.
    start: u32,
    length: u32,
}

/// Number of bits of an offset in a chunk.
const CHUNK_BITS: u32 = 18;
/// Size at which a chunk is full. The rest of its capacity is for the mutation that begins before this size.
const FULL: usize = 3 << (CHUNK_BITS - 2);
/// Limit of chunks of a buffer, so that the number of a chunk fits into [`Entry::start`].
const MOST_CHUNKS: usize = (1 << (32 - CHUNK_BITS)) - 1;

impl Buffer {
    /// Returns the memory of the buffer, in bytes.
    pub fn size(&self) -> usize {
        self.length + self.order.len() * size_of::<Entry>()
    }

    pub fn is_full(&self) -> bool {
        self.chunks.len() >= MOST_CHUNKS
    }

    /// Adds the bytes that `fill` appends. Returns the growth of [`Buffer::size`].
    pub fn add(
        &mut self,
        key: Gui,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), tidegraph_wire::Error>,
    ) -> Result<usize, tidegraph_wire::Error> {
        if self.chunks.last().is_none_or(|last| last.len() >= FULL) {
            // The first chunk grows from nothing: a load may have many small buffers.
            let room = if self.chunks.is_empty() { 0 } else { 1 << CHUNK_BITS };
            self.chunks.push(Vec::with_capacity(room));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let place = chunk.len();
        if let Err(error) = fill(chunk) {
            chunk.truncate(place);
            return Err(error);
        }
        let length = chunk.len() - place;
        let start = (number << CHUNK_BITS | place) as u32;
        self.order.push(Entry { key, start, length: length as u32 });
        self.length += length;
        Ok(length + size_of::<Entry>())
    }

    pub fn bytes(&self, entry: &Entry) -> &[u8] {
        let place = entry.start as usize & ((1 << CHUNK_BITS) - 1);
        &self.chunks[entry.start as usize >> CHUNK_BITS][place..place + entry.length as usize]
    }

    /// Sorts the mutations by the vertex that they change; those of one vertex keep their order.
    pub fn sort(&mut self) {
        self.order.sort_unstable_by_key(|entry| (entry.key, entry.start));
    }

    /// Takes all mutations out, for one segment.
    pub fn take(&mut self) -> Self {
        let number = self.number;
        std::mem::replace(self, Self { number: number + 1, ..Self::default() })
    }
}
