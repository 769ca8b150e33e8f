//! Reading a log in files beside the writer.
//!
//! The writer and its readers share an [`Extent`]: the files, and how many bytes of the last one are acknowledged. A
//! reader never reads beyond them, because the writer may cut bytes behind them again. It opens a file, reads up to the
//! acknowledged end, and opens it again there when there is more.
//!
//! Readers share an [`Index`] from versions to places, with an entry for each [`INDEXED_BYTES`] that one of them read.
//! A reader that begins in the middle of a file so reads little that it does not need.

use crate::error::cause;
use crate::file::{HEADER_BYTES, LogFile, limited};
use crate::follow::Follow;
use crate::record::{self, PREFIX_BYTES};
use crate::recovery;
use crate::{Error, Follower, Record};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Disk, metric};
use tidegraph_types::{ShardId, Version};
use tidegraph_wire::frame::FrameReader;

/// Distance between two entries of the index.
const INDEXED_BYTES: u64 = 256 << 10;
const READ_BUFFER_BYTES: usize = 64 << 10;

/// What readers may read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    /// Oldest first.
    pub files: Vec<LogFile>,
    /// Acknowledged bytes of the last file.
    pub last_bytes: u64,
}

/// Readers of a log in files.
#[derive(Debug)]
pub(crate) struct FileReaders {
    pub disk: Arc<dyn Disk>,
    pub shard: ShardId,
    pub extent: Arc<Mutex<Extent>>,
    pub index: Arc<Mutex<Index>>,
}

/// Places of records: the version of each with the first version of its file and its offset there.
#[derive(Debug, Default)]
pub(crate) struct Index(BTreeMap<Version, (Version, u64)>);

impl Index {
    /// Returns the last known place at or before a version in a file.
    fn before(&self, version: Version, file: Version) -> Option<(Version, u64)> {
        let (found, (first, offset)) = self.0.range(file..=version).next_back()?;
        (*first == file).then_some((*found, *offset))
    }

    fn note(&mut self, version: Version, file: Version, offset: u64) {
        let near = |(first, other): (Version, u64)| first == file && offset < other + INDEXED_BYTES;
        let before = self.0.range(..=version).next_back().map(|(_, place)| *place);
        if !before.is_some_and(near) {
            self.0.insert(version, (file, offset));
        }
    }

    /// Drops the places of files that are gone.
    pub fn forget_below(&mut self, first: Version) {
        self.0 = self.0.split_off(&first);
    }
}

impl Follow for FileReaders {
    fn follow(&self, after: Version) -> Box<dyn Follower> {
        let (disk, extent, index) = (self.disk.clone(), self.extent.clone(), self.index.clone());
        Box::new(FileFollower { disk, shard: self.shard, extent, index, wanted: after.next(), open: None })
    }
}

struct FileFollower {
    disk: Arc<dyn Disk>,
    shard: ShardId,
    extent: Arc<Mutex<Extent>>,
    index: Arc<Mutex<Index>>,
    /// The next version to hand out.
    wanted: Version,
    open: Option<Open>,
}

/// The file that is open.
struct Open {
    file: LogFile,
    frames: FrameReader<Box<dyn Read + Send>>,
    /// Version of the next frame.
    next: Version,
    /// Acknowledged bytes when it was opened; `u64::MAX` for a file that is full.
    limit: u64,
}

impl FileFollower {
    /// Opens the file of the wanted version at the place before it that is known; `None` at the end of the log.
    fn open(&mut self) -> Result<Option<Open>, Error> {
        let (file, limit) = {
            let extent = self.extent.lock();
            let at = extent.files.partition_point(|file| file.first <= self.wanted);
            let Some(file) = at.checked_sub(1).and_then(|at| extent.files.get(at)) else {
                return match extent.files.first() {
                    Some(LogFile { first, .. }) => {
                        Err(Error::Trimmed { requested: self.wanted, first: *first })
                    }
                    None => Ok(None),
                };
            };
            (file.clone(), if at == extent.files.len() { extent.last_bytes } else { u64::MAX })
        };
        let known = self.index.lock().before(self.wanted, file.first);
        let (next, offset) = known.unwrap_or((file.first, HEADER_BYTES));
        self.open_at(file, next, offset, limit).map(Some)
    }

    fn open_at(&self, file: LogFile, next: Version, offset: u64, limit: u64) -> Result<Open, Error> {
        let reader = self.disk.open_read(&file.path, offset).map_err(Error::disk)?;
        let frames = FrameReader::at(limited(reader, limit, offset, READ_BUFFER_BYTES), offset);
        Ok(Open { file, frames, next, limit })
    }

    /// Opens what follows the end of the open file: more of it, or the next file. `None` at the end of the log.
    fn go_on(&self, ended: &Open) -> Result<Option<Open>, Error> {
        let offset = ended.frames.offset();
        let (is_last, last_bytes) = {
            let extent = self.extent.lock();
            let is_last = extent.files.last().is_some_and(|file| file.first == ended.file.first);
            (is_last, extent.last_bytes)
        };
        let limit = if is_last { last_bytes } else { u64::MAX };
        if limit > ended.limit {
            // The writer went on, perhaps in another file since.
            return self.open_at(ended.file.clone(), ended.next, offset, limit).map(Some);
        }
        if is_last {
            return Ok(None);
        }
        let file = {
            let extent = self.extent.lock();
            extent.files.iter().find(|file| file.first == ended.next).cloned()
        };
        let Some(file) = file else {
            let first = self.extent.lock().files.first().map_or(ended.next, |file| file.first);
            return Err(Error::Trimmed { requested: ended.next, first });
        };
        let limit = {
            let extent = self.extent.lock();
            let is_last = extent.files.last().is_some_and(|last| last.first == file.first);
            if is_last { extent.last_bytes } else { u64::MAX }
        };
        self.open_at(file, ended.next, HEADER_BYTES, limit).map(Some)
    }

    /// Reads the next frame: `None` at the end of what is open, `Some(None)` for a record before the wanted one.
    fn read(&self, open: &mut Open) -> Result<Option<Option<Record>>, Error> {
        let offset = open.frames.offset();
        let payload = match open.frames.next_frame() {
            Ok(None) => return Ok(None),
            Ok(Some(payload)) => payload,
            Err(error) => return Err(recovery::frame_error(&open.file.path, error)),
        };
        let corrupt = |reason: Box<dyn std::error::Error + Send + Sync>| {
            metric::refused(metric::Refused::LogRecord);
            Error::Corrupt { file: open.file.path.clone(), offset, reason: cause(reason) }
        };
        let prefix = recovery::check_prefix(payload, self.shard, open.next)
            .map_err(|reason| corrupt(reason.into()))?;
        let (epoch, version) = (prefix.epoch, prefix.version);
        open.next = version.next();
        self.index.lock().note(version, open.file.first, offset);
        if version < self.wanted {
            return Ok(Some(None));
        }
        match record::decode_body(&payload[PREFIX_BYTES..]) {
            Ok(body) => Ok(Some(Some(Record { shard: self.shard, epoch, version, body }))),
            Err(source @ tidegraph_wire::Error::UnknownKind { .. }) => {
                Err(Error::Newer { version, file: open.file.path.clone(), offset, source })
            }
            Err(error) => Err(corrupt(error.into())),
        }
    }
}

impl Follower for FileFollower {
    fn next(&mut self, _at_most: Duration) -> Result<Option<Record>, Error> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match self.open()? {
                Some(open) => open,
                None => return Ok(None),
            },
        };
        loop {
            match self.read(&mut open)? {
                Some(Some(record)) => {
                    self.wanted = record.version.next();
                    self.open = Some(open);
                    return Ok(Some(record));
                }
                Some(None) => {}
                None => match self.go_on(&open)? {
                    Some(next) => open = next,
                    None => {
                        self.open = Some(open);
                        return Ok(None);
                    }
                },
            }
        }
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        let extent = self.extent.lock();
        Ok(self.open.as_ref().is_some_and(|open| {
            extent.files.last().is_some_and(|last| last.first == open.file.first)
                && extent.last_bytes.saturating_sub(open.frames.offset()) <= within
        }))
    }
}
