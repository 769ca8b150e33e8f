//! Rows between the steps of a load, as frames of [`proto::LoadRows`].
//!
//! A run is a sequence of frames. An index beside it holds its end and its number of rows, so that a run cut off
//! between two frames is detected by the count.

use crate::frame::{self, FrameReader};
use crate::mutation::bytes::{self, Cursor};
use crate::{Error, proto};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key};
use std::io::Read;
use tidegraph_types::{Mutation, Str};

/// Size at which a block is closed, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// Field of `LoadRows`.
const ROWS: u32 = 1;

/// A row of a file, as the vertex or the edge that it makes.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadRow {
    /// Number of the file in the plan.
    pub file: u32,
    /// Line on which the row begins.
    pub line: u64,
    /// The mutation that the row makes. The SID of an edge is 0, and so is each end that was not looked up yet.
    pub mutation: Mutation,
    /// Ids of the ends, if the row makes an edge.
    pub ends: Option<(Str, Str)>,
}

/// Encodes the rows of a run.
#[derive(Debug, Default)]
pub struct RunBuffer {
    frames: Vec<u8>,
    block: Vec<u8>,
    rows: u64,
}

impl RunBuffer {
    /// Appends a row.
    ///
    /// # Errors
    ///
    /// [`Error::NotStorable`] for a value that no property can have; [`Error::TooLong`] for a row longer than a frame.
    pub fn push(&mut self, row: &LoadRow) -> Result<(), Error> {
        let start = self.block.len();
        let added = bytes::put_nested(&mut self.block, ROWS, |out| append(out, row));
        if added.is_err() {
            self.block.truncate(start);
        }
        added?;
        self.rows += 1;
        if self.block.len() >= BLOCK_BYTES { self.close() } else { Ok(()) }
    }

    /// Returns the number of bytes so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.frames.len() + self.block.len()
    }

    /// Returns the bytes and the number of the rows, and empties the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] if the last block is longer than a frame.
    pub fn take(&mut self) -> Result<(Vec<u8>, u64), Error> {
        if !self.block.is_empty() {
            self.close()?;
        }
        Ok((std::mem::take(&mut self.frames), std::mem::take(&mut self.rows)))
    }

    fn close(&mut self) -> Result<(), Error> {
        frame::write_frame(&mut self.frames, &self.block)?;
        self.block.clear();
        Ok(())
    }
}

fn append(out: &mut Vec<u8>, row: &LoadRow) -> Result<(), Error> {
    if row.file != 0 {
        prost::encoding::uint32::encode(1, &row.file, out);
    }
    if row.line != 0 {
        prost::encoding::uint64::encode(2, &row.line, out);
    }
    bytes::put_nested(out, 3, |out| bytes::append(out, &row.mutation))?;
    if let Some((from, to)) = &row.ends {
        bytes::put_bytes(out, 4, from.as_bytes());
        bytes::put_bytes(out, 5, to.as_bytes());
    }
    Ok(())
}

/// Reads the rows of a run.
#[derive(Debug)]
pub struct RunReader<R> {
    frames: FrameReader<R>,
    left: u64,
}

impl<R: Read> RunReader<R> {
    /// Reads a run of `rows` rows.
    pub fn new(inner: R, rows: u64) -> Self {
        Self { frames: FrameReader::new(inner), left: rows }
    }

    /// Returns the rows of the next block, or `None` after the last row.
    ///
    /// # Errors
    ///
    /// The errors of decoding; [`Error::CountMismatch`] if the run has another number of rows.
    pub fn next_block(&mut self) -> Result<Option<Vec<LoadRow>>, Error> {
        let offset = self.frames.offset();
        let Some(payload) = self.frames.next_frame()? else {
            return match self.left {
                0 => Ok(None),
                _ => Err(Error::Truncated { offset, found: 0, expected: frame::HEADER_BYTES as u64 }),
            };
        };
        let mut block = Cursor(payload);
        let mut rows = Vec::new();
        while !block.0.is_empty() {
            let bytes = block.only(ROWS).ok_or(Error::UnknownKind { message: "LoadRows" })?;
            rows.push(row(bytes)?);
        }
        let found = rows.len() as u64;
        self.left = self.left.checked_sub(found).ok_or(Error::CountMismatch {
            what: "rows of a run",
            expected: self.left,
            found,
        })?;
        Ok(Some(rows))
    }
}

fn row(bytes: &[u8]) -> Result<LoadRow, Error> {
    let usual = usual(bytes);
    if let Some(row) = usual {
        return row;
    }
    let message = proto::LoadRow::decode(bytes)?;
    let mutation = message.mutation.ok_or(Error::UnknownKind { message: "LoadRow" })?;
    let mutation = crate::mutation::decode(mutation)?;
    let is_edge = matches!(mutation, Mutation::CreateEdge { .. });
    let ends = is_edge.then(|| (message.from.into(), message.to.into()));
    Ok(LoadRow { file: message.file, line: message.line, mutation, ends })
}

/// Decodes a row whose fields are in the order in which this module writes them.
fn usual(bytes: &[u8]) -> Option<Result<LoadRow, Error>> {
    let mut cursor = Cursor(bytes);
    let (mut file, mut line, mut last) = (0_u32, 0_u64, 0);
    let (mut mutation, mut from, mut to) = (None, None, None);
    while !cursor.0.is_empty() {
        let (number, wire) = decode_key(&mut cursor.0).ok()?;
        if number <= last {
            return None;
        }
        last = number;
        let context = DecodeContext::default;
        match number {
            1 => prost::encoding::uint32::merge(wire, &mut file, &mut cursor.0, context()).ok()?,
            2 => prost::encoding::uint64::merge(wire, &mut line, &mut cursor.0, context()).ok()?,
            3 if wire == WireType::LengthDelimited => mutation = Some(cursor.bytes()?),
            4 => from = Some(cursor.text(wire)?),
            5 => to = Some(cursor.text(wire)?),
            _ => return None,
        }
    }
    let mutation = match bytes::from_bytes(mutation?) {
        Ok(mutation) => mutation,
        Err(error) => return Some(Err(error)),
    };
    let is_edge = matches!(mutation, Mutation::CreateEdge { .. });
    let ends = is_edge.then(|| (from.unwrap_or_default(), to.unwrap_or_default()));
    Some(Ok(LoadRow { file, line, mutation, ends }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::tests::{any_mutation, any_str};
    use proptest::prelude::*;

    fn read(bytes: &[u8], rows: u64) -> Result<Vec<LoadRow>, Error> {
        let mut reader = RunReader::new(bytes, rows);
        let mut all = Vec::new();
        while let Some(block) = reader.next_block()? {
            all.extend(block);
        }
        Ok(all)
    }

    proptest! {
        #[test]
        fn rows_come_back(
            given in prop::collection::vec((any::<u32>(), any::<u64>(), any_mutation(), any_str(), any_str()), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let rows: Vec<LoadRow> = given.into_iter().map(|(file, line, mutation, from, to)| {
                let ends = matches!(mutation, Mutation::CreateEdge { .. }).then_some((from, to));
                LoadRow { file, line, mutation, ends }
            }).collect();
            let mut run = RunBuffer::default();
            for row in &rows {
                run.push(row).unwrap();
            }
            let (bytes, count) = run.take().unwrap();
            prop_assert_eq!(count, rows.len() as u64);
            // Debug text, because values of different width are equal.
            prop_assert_eq!(format!("{:?}", read(&bytes, count).unwrap()), format!("{rows:?}"));
            // The generated code writes the same bytes, and reads them the same way.
            for row in &rows {
                let mut ours = Vec::new();
                append(&mut ours, row).unwrap();
                let message = proto::LoadRow::decode(&ours[..]).unwrap();
                prop_assert_eq!((message.file, message.line), (row.file, row.line));
            }
            if !bytes.is_empty() {
                let cut = cut.index(bytes.len());
                prop_assert!(read(&bytes[..cut], count).is_err());
                prop_assert!(read(&bytes, count - 1).is_err());
                prop_assert!(read(&bytes, count + 1).is_err());
            }
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut framed = Vec::new();
            let _ = frame::write_frame(&mut framed, &bytes);
            let _ = read(&framed, 3);
            let _ = read(&bytes, 3);
        }
    }
}
