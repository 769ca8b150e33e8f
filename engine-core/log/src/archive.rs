//! Records that are kept outside of a log: the log of a backup.
//!
//! An archive begins with [`MAGIC`], whose last byte is the version of the format. Frames follow it, one for each record,
//! in order of version. `docs/formats/backup.md` has the bytes.

use crate::error::cause;
use crate::record::{self, PREFIX_BYTES, Prefix};
use crate::{Error, Record};
use std::io::{Read, Write};
use std::path::PathBuf;
use tidegraph_types::Formats;
use tidegraph_wire::frame::{FrameReader, write_frame};

/// Formats of archives.
pub const FORMATS: Formats = Formats::only(1);

/// The first letters of an archive; the version of the format follows them.
const LETTERS: &[u8; 7] = b"TIDEARC";

/// The first bytes of an archive that this release writes.
pub const MAGIC: [u8; 8] = *b"TIDEARC\x01";

/// A record, and when the log took it.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// When the log took it, in milliseconds since 1970; `None` if the log did not say it.
    pub written_ms: Option<i64>,
}

/// Writes an archive.
#[derive(Debug)]
pub struct ArchiveWriter<W> {
    out: W,
    /// Frames that were not passed on yet, at most about [`BUFFER_BYTES`].
    buffer: Vec<u8>,
    payload: Vec<u8>,
    written: u64,
}

/// Bytes that a writer collects before it passes them on.
const BUFFER_BYTES: usize = 1 << 20;

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive.
    pub fn new(out: W) -> Self {
        Self { out, buffer: MAGIC.to_vec(), payload: Vec::new(), written: MAGIC.len() as u64 }
    }

    /// Appends a record.
    ///
    /// # Errors
    /// [`Error::Encode`] if the record is too large; [`Error::Archive`] if it cannot be written.
    pub fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        let version = entry.record.version;
        let encode = |source| Error::Encode { version, source };
        self.payload.clear();
        let time = entry.written_ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or_default();
        record::encode(&entry.record, time, &mut self.payload).map_err(encode)?;
        let before = self.buffer.len();
        write_frame(&mut self.buffer, &self.payload).map_err(encode)?;
        self.written += (self.buffer.len() - before) as u64;
        if self.buffer.len() >= BUFFER_BYTES { self.pass_on() } else { Ok(()) }
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.buffer).map_err(|source| Error::Archive { source })?;
        self.buffer.clear();
        Ok(())
    }

    /// Returns the number of bytes of the archive so far.
    pub fn bytes(&self) -> u64 {
        self.written
    }

    /// Ends the archive, and returns what it was written to.
    ///
    /// # Errors
    /// [`Error::Archive`] if the rest cannot be written.
    pub fn finish(mut self) -> Result<W, Error> {
        self.pass_on()?;
        Ok(self.out)
    }
}

/// Reads an archive.
#[derive(Debug)]
pub struct ArchiveReader<R> {
    frames: FrameReader<R>,
    /// Name of the archive in errors.
    name: PathBuf,
}

impl<R: Read> ArchiveReader<R> {
    /// Begins to read an archive. `name` is in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is no archive of a version that this release reads; [`Error::Archive`] if it cannot be
    /// read.
    pub fn new(mut from: R, name: &str) -> Result<Self, Error> {
        let name = PathBuf::from(name);
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic).map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => corrupt(&name, 0, "it ends before its first record"),
            _ => Error::Archive { source },
        })?;
        match magic.strip_prefix(LETTERS) {
            Some([found]) => {
                FORMATS.check(u32::from(*found)).map_err(|unknown| corrupt(&name, 0, unknown.to_string()))?
            }
            _ => return Err(corrupt(&name, 0, "it does not begin with the letters of an archive")),
        }
        Ok(Self { frames: FrameReader::at(from, MAGIC.len() as u64), name })
    }

    /// Returns the offset of the next record in bytes.
    pub fn offset(&self) -> u64 {
        self.frames.offset()
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are damaged; [`Error::Newer`] if a newer release wrote the record;
    /// [`Error::Archive`] if they cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        let offset = self.frames.offset();
        let payload = match self.frames.next_frame() {
            Ok(Some(payload)) => payload,
            Ok(None) => return Ok(None),
            Err(tidegraph_wire::Error::Io { source, .. }) => return Err(Error::Archive { source }),
            Err(error) => return Err(corrupt(&self.name, offset, error)),
        };
        let Some(Prefix { shard, epoch, version, durable_bytes: time }) = Prefix::parse(payload) else {
            return Err(corrupt(&self.name, offset, "a record is too short"));
        };
        let body = record::decode_body(&payload[PREFIX_BYTES..]).map_err(|source| match source {
            tidegraph_wire::Error::UnknownKind { .. } => {
                Error::Newer { version, file: self.name.clone(), offset, source }
            }
            source => corrupt(&self.name, offset, source),
        })?;
        let written_ms = i64::try_from(time).ok().filter(|ms| *ms > 0);
        Ok(Some(Entry { record: Record { shard, epoch, version, body }, written_ms }))
    }
}

fn corrupt(
    name: &std::path::Path,
    offset: u64,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::Corrupt { file: name.to_owned(), offset, reason: cause(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;
    use crate::testing::commit;
    use tidegraph_types::{Epoch, ShardId, Str, Token, Version};

    fn entries() -> Vec<Entry> {
        let tokens = Body::Tokens { assigned: vec![(Token(1), Str::from("Person"))] };
        let head =
            |version, body| Record { shard: ShardId(0), epoch: Epoch(2), version: Version(version), body };
        vec![
            Entry { record: head(1, Body::EpochStart), written_ms: None },
            Entry { record: head(2, tokens), written_ms: Some(1_764_000_000_000) },
            Entry { record: commit(3, 2, "a"), written_ms: Some(1_764_000_000_005) },
        ]
    }

    fn written() -> Vec<u8> {
        let mut writer = ArchiveWriter::new(Vec::new());
        entries().iter().for_each(|entry| writer.append(entry).unwrap());
        let bytes = writer.bytes();
        let out = writer.finish().unwrap();
        assert_eq!(bytes, out.len() as u64);
        out
    }

    fn read(bytes: &[u8]) -> Result<Vec<Entry>, Error> {
        let mut reader = ArchiveReader::new(bytes, "log/1")?;
        std::iter::from_fn(|| reader.next_entry().transpose()).collect()
    }

    #[test]
    fn records_come_back_with_their_times() {
        assert_eq!(read(&written()).unwrap(), entries());
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let good = written();
        for (bytes, part) in [
            (&good[..5], "ends before its first record"),
            (&good[..good.len() - 1], "log/1 is damaged at byte"),
            (b"TIDELOG\x01", "letters of an archive"),
            (b"TIDEARC\x07", "it has format 7, this release reads 1"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }));
            assert!(error.to_string().contains(part), "{error}");
        }
        for byte in MAGIC.len()..good.len() {
            let mut bad = good.clone();
            bad[byte] ^= 0x10;
            assert!(read(&bad).is_err(), "byte {byte}");
        }
    }
}
