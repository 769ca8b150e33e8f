//! Segment files: the mutations of one bulk load for one partition.
//!
//! Flow, writing: [`SegmentWriter::create`] writes magic and header, [`SegmentWriter::push`] gathers mutations into
//! blocks, [`SegmentWriter::finish`] writes the footer. Reading: [`SegmentReader::open`], then
//! [`SegmentReader::next_block`] until `None`, which it returns only after a footer that agrees with what was read. So
//! a truncated file, even one cut between two blocks, is an error, never a smaller load. The byte table is in
//! `docs/formats/segment.md`.

use crate::Error;
use crate::frame::{self, FrameReader};
use crate::mutation::{self, bytes, bytes::Cursor};
use crate::proto::{self, SegmentFooter, SegmentFrame, segment_frame::Kind};
use prost::Message;
use std::io::{Read, Write};
use tidegraph_types::{Formats, Mutation, PartitionCount, PartitionId};

/// First bytes of every segment file.
pub const MAGIC: &[u8; 8] = b"TIDESEG\x01";

/// Formats of segments. The header states the format; the magic stays.
pub const FORMATS: Formats = Formats::only(1);

/// Size at which a block is written, in bytes.
const BLOCK_BYTES: usize = 256 << 10;

const WHAT: &str = "segment";

/// Field of `SegmentBlock`.
const MUTATIONS: u32 = 1;
/// Field of `SegmentFrame`.
const BLOCK: u32 = 2;

/// The header of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// Name of the graph.
    pub graph: String,
    /// The partition of the mutations.
    pub partition: PartitionId,
    /// Number of partitions of the graph.
    pub partition_count: PartitionCount,
    /// Id of the load that wrote the segment.
    pub load_id: String,
    /// Whether elements keep the single-cardinality values that they have when the segment is applied. Otherwise the
    /// segment's values replace them.
    pub keeps_values: bool,
}

/// Writes one segment.
#[derive(Debug)]
pub struct SegmentWriter<W> {
    inner: W,
    /// The content of a [`proto::SegmentBlock`] so far.
    block: Vec<u8>,
    footer: SegmentFooter,
    written: u64,
    buffer: Vec<u8>,
}

impl<W: Write> SegmentWriter<W> {
    /// Starts a segment: writes magic and header.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the target fails.
    pub fn create(inner: W, header: &SegmentHeader) -> Result<Self, Error> {
        let mut writer = Self {
            inner,
            block: Vec::new(),
            footer: SegmentFooter::default(),
            written: 0,
            buffer: MAGIC.to_vec(),
        };
        writer.write(Kind::Header(proto::SegmentHeader {
            format: FORMATS.newest,
            graph: header.graph.clone(),
            partition: u32::from(header.partition.0),
            partition_count: u32::from(header.partition_count.get()),
            load_id: header.load_id.clone(),
            keeps_values: header.keeps_values,
        }))?;
        Ok(writer)
    }

    /// Appends one mutation.
    ///
    /// # Errors
    ///
    /// [`Error::NotStorable`] for a value that no property can have; [`Error::Io`] if the target fails.
    pub fn push(&mut self, mutation: &Mutation) -> Result<(), Error> {
        let start = self.block.len();
        let added = bytes::put_nested(&mut self.block, MUTATIONS, |out| bytes::append(out, mutation));
        if added.is_err() {
            self.block.truncate(start);
        }
        added?;
        self.pushed()
    }

    /// Appends the bytes of one mutation, as [`bytes::append`] made them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the target fails.
    pub fn push_bytes(&mut self, mutation: &[u8]) -> Result<(), Error> {
        bytes::put_bytes(&mut self.block, MUTATIONS, mutation);
        self.pushed()
    }

    fn pushed(&mut self) -> Result<(), Error> {
        self.footer.mutations += 1;
        if self.block.len() >= BLOCK_BYTES { self.flush_block() } else { Ok(()) }
    }

    /// Writes the last block and the footer. Returns the target and the length of the file in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the target fails.
    pub fn finish(mut self) -> Result<(W, u64), Error> {
        self.flush_block()?;
        self.write(Kind::Footer(self.footer))?;
        self.inner.flush().map_err(|source| Error::Io { offset: self.written, source })?;
        Ok((self.inner, self.written))
    }

    fn flush_block(&mut self) -> Result<(), Error> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.footer.blocks += 1;
        let block = std::mem::take(&mut self.block);
        frame::write_frame_with(&mut self.buffer, |out| {
            bytes::put_bytes(out, BLOCK, &block);
        })?;
        self.block = block;
        self.block.clear();
        self.write_buffer()
    }

    fn write(&mut self, kind: Kind) -> Result<(), Error> {
        let message = SegmentFrame { kind: Some(kind) };
        frame::write_frame(&mut self.buffer, &message.encode_to_vec())?;
        self.write_buffer()
    }

    fn write_buffer(&mut self) -> Result<(), Error> {
        self.inner.write_all(&self.buffer).map_err(|source| Error::Io { offset: self.written, source })?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Reads one segment.
#[derive(Debug)]
pub struct SegmentReader<R> {
    frames: FrameReader<R>,
    header: SegmentHeader,
    read: SegmentFooter,
    done: bool,
}

impl<R: Read> SegmentReader<R> {
    /// Opens a segment: reads magic and header.
    ///
    /// # Errors
    ///
    /// [`Error::WrongFormat`] if the file is not a segment or has an unknown version; the errors of reading a frame.
    pub fn open(mut inner: R) -> Result<Self, Error> {
        let mut magic = Vec::new();
        inner
            .by_ref()
            .take(MAGIC.len() as u64)
            .read_to_end(&mut magic)
            .map_err(|source| Error::Io { offset: 0, source })?;
        if magic != MAGIC {
            return Err(wrong(format!("it begins with the bytes {magic:02x?}")));
        }
        let mut frames = FrameReader::at(inner, MAGIC.len() as u64);
        let header = match next(&mut frames)? {
            Some(Kind::Header(header)) => decode_header(header)?,
            Some(_) => return Err(wrong("its first frame is not a header".into())),
            None => return Err(wrong("it has no header".into())),
        };
        Ok(Self { frames, header, read: SegmentFooter::default(), done: false })
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Returns the mutations of the next block, or `None` at the end of a complete segment.
    ///
    /// # Errors
    ///
    /// The errors of reading a frame and of decoding; [`Error::CountMismatch`] if the footer differs from what was
    /// read.
    pub fn next_block(&mut self) -> Result<Option<Vec<Mutation>>, Error> {
        if self.done {
            return Ok(None);
        }
        let Some(payload) = self.frames.next_frame()? else {
            let offset = self.frames.offset();
            return Err(Error::Truncated { offset, found: 0, expected: frame::HEADER_BYTES as u64 });
        };
        if let Some(block) = block_of(payload) {
            let mutations = block?;
            self.read.blocks += 1;
            self.read.mutations += mutations.len() as u64;
            return Ok(Some(mutations));
        }
        match kind_of(payload)? {
            Kind::Block(block) => {
                self.read.blocks += 1;
                self.read.mutations += block.mutations.len() as u64;
                Ok(Some(mutation::decode_all(block.mutations)?))
            }
            Kind::Footer(footer) => {
                check("blocks of the segment", footer.blocks, self.read.blocks)?;
                check("mutations of the segment", footer.mutations, self.read.mutations)?;
                if next(&mut self.frames)?.is_some() {
                    return Err(wrong(format!(
                        "something follows its footer at byte {}",
                        self.frames.offset()
                    )));
                }
                self.done = true;
                Ok(None)
            }
            Kind::Header(_) => Err(wrong("it has a second header".into())),
        }
    }
}

fn next<R: Read>(frames: &mut FrameReader<R>) -> Result<Option<Kind>, Error> {
    frames.next_frame()?.map(kind_of).transpose()
}

fn kind_of(payload: &[u8]) -> Result<Kind, Error> {
    SegmentFrame::decode(payload)?.kind.ok_or(Error::UnknownKind { message: "SegmentFrame" })
}

/// Returns the mutations of a frame that is a block in its usual form, with nothing but mutations; otherwise `None`.
fn block_of(payload: &[u8]) -> Option<Result<Vec<Mutation>, Error>> {
    let mut frame = Cursor(payload);
    let mut block = Cursor(frame.only(BLOCK).filter(|_| frame.0.is_empty())?);
    let mut mutations = Vec::new();
    while !block.0.is_empty() {
        match bytes::from_bytes(block.only(MUTATIONS)?) {
            Ok(mutation) => mutations.push(mutation),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(mutations))
}

fn decode_header(header: proto::SegmentHeader) -> Result<SegmentHeader, Error> {
    FORMATS.check(header.format).map_err(|unknown| wrong(unknown.to_string()))?;
    let range = |field, value: u32| Error::OutOfRange { field, value: i128::from(value) };
    let count = u16::try_from(header.partition_count).ok().and_then(|c| PartitionCount::new(c).ok());
    let partition_count = count.ok_or(range("partition_count", header.partition_count))?;
    let partition = u16::try_from(header.partition).ok().filter(|p| *p < partition_count.get());
    Ok(SegmentHeader {
        graph: header.graph,
        partition: PartitionId(partition.ok_or(range("partition", header.partition))?),
        partition_count,
        load_id: header.load_id,
        keeps_values: header.keeps_values,
    })
}

fn check(what: &'static str, expected: u64, found: u64) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::CountMismatch { what, expected, found }) }
}

fn wrong(found: String) -> Error {
    Error::WrongFormat { expected: WHAT, found }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
mod tests {
    use super::*;
    use crate::mutation::tests::any_mutation;
    use proptest::prelude::*;
    use prost_reflect::{DescriptorPool, DynamicMessage};
    use std::path::{Path, PathBuf};
    use tidegraph_types::{Cardinality, Edge, Gui, PropertyWrite, Sid, Token, Value};

    fn header() -> SegmentHeader {
        SegmentHeader {
            graph: "g".into(),
            partition: PartitionId(3),
            partition_count: PartitionCount::new(4).unwrap(),
            load_id: "load-1".into(),
            keeps_values: false,
        }
    }

    fn write_all(mutations: &[Mutation]) -> Vec<u8> {
        let mut writer = SegmentWriter::create(Vec::new(), &header()).unwrap();
        for mutation in mutations {
            writer.push(mutation).unwrap();
        }
        let (bytes, length) = writer.finish().unwrap();
        assert_eq!(bytes.len() as u64, length);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Mutation>, Error> {
        let mut reader = SegmentReader::open(bytes)?;
        assert_eq!(reader.header(), &header());
        let mut all = Vec::new();
        while let Some(block) = reader.next_block()? {
            all.extend(block);
        }
        assert!(reader.next_block()?.is_none());
        Ok(all)
    }

    #[test]
    fn a_segment_of_many_blocks_is_read_back() {
        let id = "x".repeat(1000);
        let mutations: Vec<_> =
            (0..1000).map(|i| Mutation::AddException { id: id.as_str().into(), gui: Gui(i) }).collect();
        assert_eq!(read(&write_all(&mutations)).unwrap(), mutations);
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = write_all(&[Mutation::DeleteVertex { gui: Gui(1), edges_left: false }]);
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(read(&longer).is_err());
    }

    /// Returns the file as protobuf's own JSON, decoded without the generated code.
    fn describe(bytes: &[u8]) -> serde_json::Value {
        let root = contracts().join("proto");
        let files = protox::compile([root.join("tidegraph/v1/segment.proto")], [root]).unwrap();
        let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
        let message = pool.get_message_by_name("tidegraph.v1.SegmentFrame").unwrap();
        let mut frames = FrameReader::at(&bytes[8..], 8);
        let mut described = Vec::new();
        loop {
            let offset = frames.offset();
            let Some(payload) = frames.next_frame().unwrap() else { break };
            let frame = DynamicMessage::decode(message.clone(), payload).unwrap();
            described.push(serde_json::json!({ "offset": offset, "frame": frame }));
        }
        serde_json::Value::Array(described)
    }

    fn contracts() -> PathBuf {
        Path::new("../../contracts").to_owned()
    }

    /// `TIDEGRAPH_BLESS=1 cargo test -p tidegraph-wire golden` writes the files again. Do so only for a new format.
    #[test]
    fn golden_file_of_format_1() {
        let edge = Edge { sid: Sid(1000), source: Gui(1), target: Gui(u64::MAX), label: Token(2) };
        let write = PropertyWrite { key: Token(3), cardinality: Cardinality::Set, value: Value::Int(-5) };
        let mutations = [
            Mutation::CreateVertex {
                gui: Gui(1),
                id: "v1".into(),
                labels: vec![Token(4)],
                properties: vec![write],
            },
            Mutation::CreateEdge { edge, id: None, properties: vec![(Token(5), Value::string("grüße"))] },
        ];
        let written = write_all(&mutations);
        let (bin, json) =
            (contracts().join("golden/segment-v1.bin"), contracts().join("golden/segment-v1.json"));
        if std::env::var_os("TIDEGRAPH_BLESS").is_some() {
            std::fs::write(&bin, &written).unwrap();
            std::fs::write(&json, serde_json::to_string_pretty(&describe(&written)).unwrap() + "\n").unwrap();
        }
        let golden = std::fs::read(&bin).unwrap();
        let described: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(describe(&golden), described);
        // Debug text, because values of different width are equal.
        assert_eq!(format!("{:?}", read(&golden).unwrap()), format!("{mutations:?}"));
        assert!(written == golden, "this version writes other bytes than format 1");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_segment_comes_back(mutations in prop::collection::vec(any_mutation(), 0..20)) {
            let back = read(&write_all(&mutations)).unwrap();
            prop_assert_eq!(format!("{back:?}"), format!("{mutations:?}"));
        }
    }
}
