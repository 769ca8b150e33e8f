//! Segments: writes the mutations of a load as sorted files for each partition in object storage, and reads them.
//!
//! Segments are applied in the order of their names, `loads/<load>/<kind>-p<partition>-<number>.seg`. Kind `a`
//! (exceptions) is before `v` (vertices), and `v` before `e` (edges). If a load has several writers, the name of the
//! writer is before the number. Within one partition and kind, later mutations are in segments with higher numbers.
//! Inside a segment, mutations are sorted by the vertex that they change in that partition; mutations of one vertex
//! keep their order. `docs/formats/segment.md` describes the format.
//!
//! An edge is in the partitions of its source, its target and the hash of its id. Only the copy of the source has
//! properties.
//!
//! Must never: buffer more than its budget, or lose the order of two changes of one element.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use tidegraph_platform::Objects;
use tidegraph_types::{Edge, Gui, GuiHasher, Mutation, PartitionCount, PartitionId, Str};
use tidegraph_wire::mutation::bytes;
use tidegraph_wire::segment::{SegmentHeader, SegmentReader as WireReader, SegmentWriter as WireWriter};

/// What the mutations of a segment change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// Ids that collide; applied first.
    Exceptions,
    /// Vertices with labels and properties.
    Vertices,
    /// Edges with properties; applied last.
    Edges,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Self::Exceptions => 'a',
            Self::Vertices => 'v',
            Self::Edges => 'e',
        }
    }

    /// Returns the kind of the segment with an object's name; `None` if the name is not one of a segment.
    #[must_use]
    pub fn of(object: &str) -> Option<Self> {
        match object.rsplit('/').next()?.split_once("-p")?.0 {
            "a" => Some(Self::Exceptions),
            "v" => Some(Self::Vertices),
            "e" => Some(Self::Edges),
            _ => None,
        }
    }
}

/// One written segment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentInfo {
    /// Path of the object.
    pub object: String,
    /// Partition.
    pub partition: PartitionId,
    /// What its mutations change.
    pub kind: Kind,
    /// Number of mutations.
    pub mutations: u64,
    /// Size of the object.
    pub bytes: u64,
}

/// Encoded mutations of one partition and kind that are not yet written.
///
/// The bytes are in chunks, so that they never move and little memory is unused.
#[derive(Default)]
struct Buffer {
    chunks: Vec<Vec<u8>>,
    order: Vec<Entry>,
    /// Bytes of all mutations.
    length: usize,
    number: u32,
}

/// Place of a mutation in a buffer, and the vertex that it changes in the partition.
struct Entry {
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
    fn size(&self) -> usize {
        self.length + self.order.len() * size_of::<Entry>()
    }

    fn is_full(&self) -> bool {
        self.chunks.len() >= MOST_CHUNKS
    }

    /// Adds the bytes that `fill` appends. Returns the growth of [`Buffer::size`].
    fn add(
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

    fn bytes(&self, entry: &Entry) -> &[u8] {
        let place = entry.start as usize & ((1 << CHUNK_BITS) - 1);
        &self.chunks[entry.start as usize >> CHUNK_BITS][place..place + entry.length as usize]
    }

    /// Removes all mutations and frees their memory.
    fn clear(&mut self) {
        (self.chunks, self.order, self.length) = (Vec::new(), Vec::new(), 0);
    }
}

/// Routes mutations to partitions and writes them as segments.
///
/// ```
/// use tidegraph_load::segments::{SegmentReader, SegmentWriter};
/// use tidegraph_platform::Objects;
/// use tidegraph_types::{GuiHasher, Mutation, PartitionCount};
///
/// let (objects, hasher) = (Objects::memory()?, GuiHasher::default());
/// let mut writer =
///     SegmentWriter::new(objects.clone(), "people", "load-1", PartitionCount::ONE, hasher, 1 << 20);
/// let (gui, id) = (hasher.gui("ann"), "ann".into());
/// let ann = Mutation::CreateVertex { gui, id, labels: vec![], properties: vec![] };
/// writer.push(&ann)?;
/// let segments = writer.finish()?;
/// assert_eq!(segments[0].object, "loads/load-1/v-p00000-000000.seg");
///
/// let mut reader = SegmentReader::open(&objects, &segments[0].object)?;
/// assert_eq!(reader.next_block()?, Some(vec![ann]));
/// assert_eq!(reader.next_block()?, None);
/// # Ok::<(), tidegraph_load::Error>(())
/// ```
pub struct SegmentWriter {
    objects: Objects,
    graph: String,
    load_id: String,
    /// Prefix of the numbers of segments, if several processes write segments of one load.
    writer: String,
    /// Whether single values that elements have stay when the load is applied.
    keeps_values: bool,
    partitions: PartitionCount,
    hasher: GuiHasher,
    budget_bytes: usize,
    buffered_bytes: usize,
    buffers: Vec<[Buffer; 3]>,
    written: Vec<SegmentInfo>,
}

impl SegmentWriter {
    /// Makes a writer that buffers about `budget_bytes` over all partitions.
    #[must_use]
    pub fn new(
        objects: Objects,
        graph: &str,
        load_id: &str,
        partitions: PartitionCount,
        hasher: GuiHasher,
        budget_bytes: usize,
    ) -> Self {
        Self {
            objects,
            graph: graph.to_owned(),
            load_id: load_id.to_owned(),
            writer: String::new(),
            keeps_values: false,
            partitions,
            hasher,
            budget_bytes,
            buffered_bytes: 0,
            buffers: partitions.all().map(|_| Default::default()).collect(),
            written: Vec::new(),
        }
    }

    /// Makes this one of several writers of a load, with a name that no other writer has. The segments of different
    /// writers must not depend on the order in which they are applied.
    #[must_use]
    pub fn named(mut self, writer: &str) -> Self {
        self.writer = format!("{writer}-");
        self
    }

    /// Says whether elements keep the single-cardinality values that they have when the load is applied. Otherwise the
    /// load's values replace them.
    #[must_use]
    pub fn keeping_values(mut self, keeps: bool) -> Self {
        self.keeps_values = keeps;
        self
    }

    /// Adds a mutation: an exception, or the creation or change of a vertex or an edge. Writes a segment if the buffers
    /// are full.
    ///
    /// # Errors
    ///
    /// * [`Error::Internal`] for a deletion: a load only adds.
    /// * [`Error::Segment`] or [`Error::Objects`] if a segment cannot be encoded or written.
    pub fn push(&mut self, mutation: &Mutation) -> Result<(), Error> {
        match mutation {
            Mutation::AddException { gui, .. } => self.buffer(Kind::Exceptions, *gui, mutation),
            Mutation::CreateVertex { gui, .. }
            | Mutation::AddLabels { gui, .. }
            | Mutation::SetVertexProperty { gui, .. } => self.buffer(Kind::Vertices, *gui, mutation),
            Mutation::SetEdgeProperty { edge, .. } => self.buffer(Kind::Edges, edge.source, mutation),
            Mutation::CreateEdge { edge, id, properties } => {
                let source = self.partitions.of(edge.source);
                let target = self.partitions.of(edge.target);
                if target != source {
                    self.bare(edge.target, edge, id.as_ref())?;
                }
                if let Some(id) = id {
                    let hash = self.hasher.edge_id(id);
                    let home = self.partitions.of(hash);
                    if home != source && home != target {
                        self.bare(hash, edge, Some(id))?;
                    }
                }
                self.add(Kind::Edges, edge.source, |out| {
                    bytes::append_edge(out, edge, id.as_ref(), properties)
                })
            }
            _ => Err(Error::Internal("a load only adds")),
        }
    }

    /// Adds the copy of an edge, without properties, to another partition than that of its source.
    fn bare(&mut self, key: Gui, edge: &Edge, id: Option<&Str>) -> Result<(), Error> {
        self.add(Kind::Edges, key, |out| bytes::append_edge(out, edge, id, &[]))
    }

    fn buffer(&mut self, kind: Kind, key: Gui, mutation: &Mutation) -> Result<(), Error> {
        self.add(kind, key, |out| bytes::append(out, mutation))
    }

    /// Adds the bytes that `fill` appends to the buffer of the partition of `key`.
    fn add(
        &mut self,
        kind: Kind,
        key: Gui,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), tidegraph_wire::Error>,
    ) -> Result<(), Error> {
        let partition = usize::from(self.partitions.of(key).0);
        let Some(buffer) = self.buffers.get_mut(partition).map(|kinds| &mut kinds[kind as usize]) else {
            return Err(Error::Internal("a partition beyond the last"));
        };
        let more = buffer.add(key, fill).map_err(|source| Error::Segment {
            object: object_name(&self.load_id, kind, partition, &self.writer, buffer.number),
            source,
        })?;
        let full = buffer.is_full();
        self.buffered_bytes += more;
        if full {
            return self.write(partition, kind);
        }
        if self.buffered_bytes < self.budget_bytes {
            return Ok(());
        }
        // Writing the largest buffer makes the fewest segments.
        let sizes = self.buffers.iter().enumerate().flat_map(|(p, kinds)| {
            kinds
                .iter()
                .zip([Kind::Exceptions, Kind::Vertices, Kind::Edges])
                .map(move |(b, k)| (b.size(), p, k))
        });
        match sizes.max_by_key(|(bytes, ..)| *bytes) {
            Some((_, partition, kind)) => self.write(partition, kind),
            None => Ok(()),
        }
    }

    /// Writes the buffered mutations of one kind.
    ///
    /// # Errors
    ///
    /// The same as [`SegmentWriter::push`].
    pub fn flush(&mut self, kind: Kind) -> Result<(), Error> {
        (0..self.buffers.len()).try_for_each(|partition| self.write(partition, kind))
    }

    /// Returns the written segments of one kind, in the order in which they are applied.
    #[must_use]
    pub fn segments(&self, kind: Kind) -> Vec<SegmentInfo> {
        let mut found: Vec<_> = self.written.iter().filter(|s| s.kind == kind).cloned().collect();
        found.sort_by(|a, b| a.object.cmp(&b.object));
        found
    }

    /// Writes the rest and returns all segments in the order in which they are applied.
    ///
    /// # Errors
    ///
    /// The same as [`SegmentWriter::push`].
    pub fn finish(mut self) -> Result<Vec<SegmentInfo>, Error> {
        for kind in [Kind::Exceptions, Kind::Vertices, Kind::Edges] {
            self.flush(kind)?;
        }
        self.written.sort_by(|a, b| (a.kind, &a.object).cmp(&(b.kind, &b.object)));
        Ok(self.written)
    }

    /// Removes the written segments of a load that failed (LOAD-1).
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if the store fails; some segments are then left.
    pub fn discard(self) -> Result<(), Error> {
        self.written.iter().try_for_each(|s| Ok(self.objects.delete(&s.object)?))
    }

    fn write(&mut self, partition: usize, kind: Kind) -> Result<(), Error> {
        let Some(buffer) = self.buffers.get_mut(partition).map(|b| &mut b[kind as usize]) else {
            return Ok(());
        };
        if buffer.order.is_empty() {
            return Ok(());
        }
        self.buffered_bytes -= buffer.size();
        let object = object_name(&self.load_id, kind, partition, &self.writer, buffer.number);
        buffer.number += 1;
        // `start` keeps the order of two changes of one element.
        buffer.order.sort_unstable_by_key(|entry| (entry.key, entry.start));
        let id = PartitionId(partition as u16);
        let header = SegmentHeader {
            graph: self.graph.clone(),
            partition: id,
            partition_count: self.partitions,
            load_id: self.load_id.clone(),
            keeps_values: self.keeps_values,
        };
        let failed = |source| Error::Segment { object: object.clone(), source };
        // A tag and a length are before each mutation.
        let expected = buffer.length + 5 * buffer.order.len() + 4096;
        let mut writer = WireWriter::create(Vec::with_capacity(expected), &header).map_err(failed)?;
        for entry in &buffer.order {
            writer.push_bytes(buffer.bytes(entry)).map_err(failed)?;
        }
        let mutations = buffer.order.len() as u64;
        buffer.clear();
        let (bytes, length) = writer.finish().map_err(failed)?;
        self.objects.put(&object, bytes)?;
        self.written.push(SegmentInfo { object, partition: id, kind, mutations, bytes: length });
        Ok(())
    }
}

fn object_name(load_id: &str, kind: Kind, partition: usize, writer: &str, number: u32) -> String {
    format!("loads/{load_id}/{}-p{partition:05}-{writer}{number:06}.seg", kind.letter())
}

/// Reads the blocks of one segment.
pub struct SegmentReader {
    inner: WireReader<tidegraph_platform::objects::ObjectReader>,
    object: String,
}

impl SegmentReader {
    /// Opens a segment and reads its header.
    ///
    /// # Errors
    ///
    /// [`Error::Objects`] if the object cannot be read; [`Error::Segment`] if it is no segment or its header is
    /// damaged.
    pub fn open(objects: &Objects, object: &str) -> Result<Self, Error> {
        let reader = objects.reader(object)?;
        let inner = WireReader::open(reader)
            .map_err(|source| Error::Segment { object: object.to_owned(), source })?;
        Ok(Self { inner, object: object.to_owned() })
    }

    /// Returns the header: graph, load and partition.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        self.inner.header()
    }

    /// Returns the mutations of the next block; `None` at the end, if the footer matches what was read.
    ///
    /// # Errors
    ///
    /// [`Error::Segment`] if the segment is damaged or cut short.
    pub fn next_block(&mut self) -> Result<Option<Vec<Mutation>>, Error> {
        self.inner.next_block().map_err(|source| Error::Segment { object: self.object.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Cardinality, PropertyWrite, Sid, Token, Value};

    fn vertex(hasher: GuiHasher, id: &str) -> Mutation {
        let write = PropertyWrite { key: Token(1), cardinality: Cardinality::Set, value: Value::string(id) };
        Mutation::CreateVertex {
            gui: hasher.gui(id),
            id: id.into(),
            labels: vec![Token(7)],
            properties: vec![write],
        }
    }

    /// Returns the vertex that a mutation touches in one partition.
    fn sort_key(
        mutation: &Mutation,
        here: PartitionId,
        partitions: PartitionCount,
        hasher: GuiHasher,
    ) -> Gui {
        match mutation {
            Mutation::CreateVertex { gui, .. } => *gui,
            Mutation::SetEdgeProperty { edge, .. } => edge.source,
            Mutation::CreateEdge { edge, id, .. } => {
                if partitions.of(edge.source) == here {
                    edge.source
                } else if partitions.of(edge.target) == here {
                    edge.target
                } else {
                    id.as_ref().map_or(edge.source, |id| hasher.edge_id(id))
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn read(objects: &Objects, segment: &SegmentInfo) -> Vec<Mutation> {
        let mut reader = SegmentReader::open(objects, &segment.object).unwrap();
        assert_eq!(reader.header().partition, segment.partition);
        let mut all = Vec::new();
        while let Some(block) = reader.next_block().unwrap() {
            all.extend(block);
        }
        assert_eq!(all.len() as u64, segment.mutations);
        all
    }

    #[test]
    fn mutations_come_back_from_their_partitions() {
        let objects = Objects::memory().unwrap();
        let partitions = PartitionCount::new(4).unwrap();
        let hasher = GuiHasher::default();
        let mut writer = SegmentWriter::new(objects.clone(), "g", "load-1", partitions, hasher, 20_000);
        let mut edges = 0;
        for i in 0..500 {
            writer.push(&vertex(hasher, &format!("v{i}"))).unwrap();
            let edge = Edge {
                sid: Sid(i),
                source: hasher.gui(&format!("v{i}")),
                target: hasher.gui(&format!("v{}", i / 2)),
                label: Token(3),
            };
            let id = Str::from(format!("e{i}"));
            let mut homes = vec![
                partitions.of(edge.source),
                partitions.of(edge.target),
                partitions.of(hasher.edge_id(&id)),
            ];
            homes.sort();
            homes.dedup();
            edges += homes.len();
            let properties = vec![(Token(9), Value::Int(5))];
            writer.push(&Mutation::CreateEdge { edge, id: Some(id), properties }).unwrap();
            writer.push(&Mutation::SetEdgeProperty { edge, key: Token(9), value: Value::Int(6) }).unwrap();
        }
        let written = writer.finish().unwrap();
        assert!(written.len() > 8, "the budget asks for several segments each");
        let kinds: Vec<_> = written.iter().map(|s| s.kind).collect();
        assert!(kinds.is_sorted());
        let (mut vertices, mut found_edges, mut properties) = (0, 0, 0);
        for segment in &written {
            assert_eq!(Kind::of(&segment.object), Some(segment.kind));
            let mut created = std::collections::BTreeSet::new();
            let mut last = Gui(0);
            for mutation in read(&objects, segment) {
                let key = sort_key(&mutation, segment.partition, partitions, hasher);
                assert!(key >= last);
                last = key;
                match mutation {
                    Mutation::CreateVertex { gui, .. } => {
                        assert_eq!(partitions.of(gui), segment.partition);
                        vertices += 1;
                    }
                    Mutation::CreateEdge { edge, properties: p, .. } => {
                        assert_eq!(!p.is_empty(), partitions.of(edge.source) == segment.partition);
                        found_edges += 1;
                        properties += p.len();
                        created.insert(edge.sid);
                    }
                    Mutation::SetEdgeProperty { edge, .. } => {
                        let later =
                            written.iter().any(|s| s.object < segment.object && s.kind == Kind::Edges);
                        assert!(created.contains(&edge.sid) || later);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!((vertices, found_edges, properties), (500, edges, 500));
    }

    #[test]
    fn damage_names_the_segment_and_the_place() {
        let objects = Objects::memory().unwrap();
        let hasher = GuiHasher::default();
        let mut writer = SegmentWriter::new(objects.clone(), "g", "l", PartitionCount::ONE, hasher, 1 << 20);
        (0..100).for_each(|i| writer.push(&vertex(hasher, &format!("v{i}"))).unwrap());
        let written = writer.finish().unwrap();
        let good = objects.get(&written[0].object).unwrap();
        let read_all = |bytes: Vec<u8>| {
            objects.put("bad.seg", bytes).unwrap();
            let mut reader = SegmentReader::open(&objects, "bad.seg")?;
            while reader.next_block()?.is_some() {}
            Ok::<(), Error>(())
        };
        read_all(good.to_vec()).unwrap();
        for cut in (0..good.len()).step_by(37) {
            let error = read_all(good[..cut].to_vec()).unwrap_err().to_string();
            assert!(error.starts_with("segment bad.seg: "), "{error}");
        }
        let mut flipped = good.to_vec();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        let error = read_all(flipped).unwrap_err();
        assert!(error.to_string().contains("byte"), "{error}");
        assert_eq!(error.code(), tidegraph_types::ErrorCode::Corrupt);
    }
}
