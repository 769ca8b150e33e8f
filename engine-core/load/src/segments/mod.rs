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

mod background;
mod buffer;

use crate::error::Error;
use background::{Background, Job};
use buffer::Buffer;
use serde::{Deserialize, Serialize};
use tidegraph_platform::Objects;
use tidegraph_types::{Edge, Gui, GuiHasher, Mutation, PartitionCount, PartitionId, Str, Token, Value};
use tidegraph_wire::mutation::bytes;
use tidegraph_wire::segment::{SegmentHeader, SegmentReader as WireReader};

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
    /// Bytes of all buffers and of the jobs that are not done.
    buffered_bytes: usize,
    buffers: Vec<[Buffer; 3]>,
    written: Vec<SegmentInfo>,
    /// The thread that writes segments; without it they are written where they become full.
    background: Option<Background>,
    /// The bytes of an edge that goes to several partitions.
    scratch: Vec<u8>,
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
            background: None,
            scratch: Vec::new(),
        }
    }

    /// Writes segments in a thread of its own while more is pushed. If no thread can be started, nothing changes.
    #[must_use]
    pub fn in_background(mut self) -> Self {
        self.background = Background::start(self.objects.clone());
        self
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
                let hash = id.as_ref().map(|id| self.hasher.edge_id(id));
                self.push_edge(edge, id.as_ref().zip(hash), properties)
            }
            _ => Err(Error::Internal("a load only adds")),
        }
    }

    /// Adds the creation of an edge. `id`: its id and the hash of that.
    ///
    /// # Errors
    ///
    /// The same as [`SegmentWriter::push`].
    pub fn push_edge(
        &mut self,
        edge: &Edge,
        id: Option<(&Str, Gui)>,
        properties: &[(Token, Value)],
    ) -> Result<(), Error> {
        let source = self.partitions.of(edge.source);
        let target = self.partitions.of(edge.target);
        let home = id.map(|(_, hash)| (hash, self.partitions.of(hash)));
        let text = id.map(|(text, _)| text);
        let mut bare = std::mem::take(&mut self.scratch);
        bare.clear();
        let encoded = bytes::append_edge(&mut bare, edge, text, &[]);
        encoded.map_err(|source| self.failed(Kind::Edges, target, source))?;
        // Other partitions than that of the source have the edge without its properties.
        if target != source {
            self.copy(edge.target, &bare)?;
        }
        if let Some((hash, home)) = home
            && home != source
            && home != target
        {
            self.copy(hash, &bare)?;
        }
        if properties.is_empty() {
            self.copy(edge.source, &bare)?;
        } else {
            self.add(Kind::Edges, edge.source, |out| bytes::append_edge(out, edge, text, properties))?;
        }
        self.scratch = bare;
        Ok(())
    }

    fn copy(&mut self, key: Gui, edge: &[u8]) -> Result<(), Error> {
        self.add(Kind::Edges, key, |out| {
            out.extend_from_slice(edge);
            Ok(())
        })
    }

    fn failed(&self, kind: Kind, partition: PartitionId, source: tidegraph_wire::Error) -> Error {
        let partition = usize::from(partition.0);
        let number = self.buffers.get(partition).map_or(0, |kinds| kinds[kind as usize].number);
        Error::Segment { object: object_name(&self.load_id, kind, partition, &self.writer, number), source }
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
        let in_flight = self.background.as_ref().map_or(0, Background::bytes);
        // With a thread, half of the budget fills while the other half is written.
        let most = if self.background.is_some() { self.budget_bytes / 2 } else { self.budget_bytes };
        if self.buffered_bytes - in_flight < most {
            return Ok(());
        }
        // Writing the largest buffer makes the fewest segments.
        let sizes = self.buffers.iter().enumerate().flat_map(|(p, kinds)| {
            kinds
                .iter()
                .zip([Kind::Exceptions, Kind::Vertices, Kind::Edges])
                .map(move |(b, k)| (b.size(), p, k))
        });
        if let Some((_, partition, kind)) = sizes.max_by_key(|(bytes, ..)| *bytes) {
            self.write(partition, kind)?;
        }
        while self.buffered_bytes >= self.budget_bytes && self.wait()? {}
        Ok(())
    }

    /// Waits for a job of the thread. Returns false if it has none.
    fn wait(&mut self) -> Result<bool, Error> {
        let done = self.background.as_mut().and_then(Background::next_done);
        self.note(done)
    }

    fn note(&mut self, done: Option<background::Done>) -> Result<bool, Error> {
        let Some((bytes, result)) = done else { return Ok(false) };
        self.buffered_bytes -= bytes;
        self.written.push(result?);
        Ok(true)
    }

    /// Writes the buffered mutations of one kind.
    ///
    /// # Errors
    ///
    /// The same as [`SegmentWriter::push`].
    pub fn flush(&mut self, kind: Kind) -> Result<(), Error> {
        (0..self.buffers.len()).try_for_each(|partition| self.write(partition, kind))?;
        while self.wait()? {}
        Ok(())
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
    pub fn discard(mut self) -> Result<(), Error> {
        // A job that fails leaves nothing to remove.
        while !matches!(self.wait(), Ok(false)) {}
        self.written.iter().try_for_each(|s| Ok(self.objects.delete(&s.object)?))
    }

    fn write(&mut self, partition: usize, kind: Kind) -> Result<(), Error> {
        let Some(buffer) = self.buffers.get_mut(partition).map(|b| &mut b[kind as usize]) else {
            return Ok(());
        };
        if buffer.order.is_empty() {
            return Ok(());
        }
        let buffer = buffer.take();
        let id = PartitionId(partition as u16);
        let header = SegmentHeader {
            graph: self.graph.clone(),
            partition: id,
            partition_count: self.partitions,
            load_id: self.load_id.clone(),
            keeps_values: self.keeps_values,
        };
        let object = object_name(&self.load_id, kind, partition, &self.writer, buffer.number);
        let job = Job { buffer, object, kind, header };
        match &mut self.background {
            Some(background) => {
                background.send(job)?;
                loop {
                    // A job that failed ends the load soon.
                    let done = self.background.as_mut().and_then(Background::done_already);
                    if !self.note(done)? {
                        return Ok(());
                    }
                }
            }
            None => {
                self.buffered_bytes -= job.buffer.size();
                self.written.push(job.run(&self.objects)?);
                Ok(())
            }
        }
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
