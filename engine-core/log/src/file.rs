//! The log of a graph in one process: rolling files in one directory.
//!
//! Naming: `<first version, 20 digits>.log`, so that names sort as versions do; `lock` keeps a second process out. The
//! mark of `reach.rs` stands beside the directory.
//! The byte table is `docs/formats/log.md`.
//!
//! Flow of an append: encode all records → start a new file if this one is full → one write → one fdatasync →
//! acknowledge (LOG-2). A new file's header and name are durable before its first record is written. With
//! [`FileLogOptions::sync_every`] another thread syncs later (`late_sync.rs`, LOG-5).
//!
//! What happens when the disk fails:
//! 1. A write fails (disk full): the log truncates the file to its former end and syncs it, so that no part of a
//!    refused transaction can come back after a crash (LOG-1). The log stays usable.
//! 2. A sync fails: the kernel may have dropped the pages and report nothing at the next sync, so nobody can know what
//!    is durable. The log is poisoned and must never acknowledge a write again.

use crate::error::cause;
use crate::file_follower::{Extent, FileReaders, Index};
use crate::follow::Follow;
use crate::late_sync::LateSync;
use crate::reach;
use crate::record::{self, PREFIX_BYTES, Prefix};
use crate::recovery::{self, Place, Recovery};
use crate::store::{Records, check_all, end_of};
use crate::{Cause, Error, LogStore, Record, Tail};
use parking_lot::Mutex;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Disk, DiskFile, DiskLock, metric};
use tidegraph_types::{Epoch, Formats, ShardId, Version};
use tidegraph_wire::frame::{self, FrameReader};

/// First bytes of every log file.
pub(crate) const MAGIC: &[u8; 8] = b"TIDELOG\0";
/// Formats of log files.
pub const FORMATS: Formats = Formats::only(1);
/// Length of the file header in bytes.
pub(crate) const HEADER_BYTES: u64 = 36;

/// A buffer that one large append made larger than this is shrunk again.
const KEPT_BUFFER_BYTES: usize = 4 << 20;
const READ_BUFFER_BYTES: usize = 256 << 10;

/// Settings of a [`FileLog`].
#[derive(Clone, Debug)]
pub struct FileLogOptions {
    /// The log starts a new file when this many bytes are full.
    pub file_bytes: u64,
    /// `None`: an append returns when its records are durable. Otherwise they are synced this much later (LOG-5). If
    /// the process dies, nothing is lost. If the machine dies, the records of the last interval and of one sync may be
    /// lost, in order from the end, and never more than 32 MiB.
    pub sync_every: Option<Duration>,
    /// The version and epoch of the checkpoint that the caller has. A log that does not reach it has lost files.
    pub checkpoint: Option<Tail>,
    /// Opens a log that has lost files if exactly this version is left of it and of the checkpoint; see
    /// [`Error::Lost`].
    pub accept_loss: Option<Version>,
}

impl Default for FileLogOptions {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, sync_every: None, checkpoint: None, accept_loss: None }
    }
}

/// A log in a directory.
#[derive(Debug)]
pub struct FileLog {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Names how far the log must reach.
    mark: PathBuf,
    shard: ShardId,
    options: FileLogOptions,
    /// Oldest first. Appends go to the last one.
    files: Vec<LogFile>,
    /// What readers beside this log may read, and where they found records.
    extent: Arc<Mutex<Extent>>,
    index: Arc<Mutex<Index>>,
    current: Option<Current>,
    late: Option<LateSync>,
    tail: Option<Tail>,
    poisoned: Option<Cause>,
    recovery: Recovery,
    bytes: u64,
    buffer: Vec<u8>,
    _lock: DiskLock,
}

/// One file of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogFile {
    pub path: PathBuf,
    pub first: Version,
}

/// The file that appends go to.
#[derive(Debug)]
struct Current {
    file: Box<dyn DiskFile>,
    /// Its length.
    bytes: u64,
}

/// The header of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileHeader {
    pub shard: ShardId,
    /// Version of the first record.
    pub first: Version,
    /// Epoch of the record before the first one; of the first one itself if there is none before it.
    pub epoch: Epoch,
}

impl FileHeader {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMATS.newest.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.shard.0.to_le_bytes());
        // 14 and 15 are reserved.
        bytes[16..24].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.epoch.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Parses a header. The error says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let bytes: &[u8; HEADER_BYTES as usize] =
            bytes.try_into().map_err(|_| format!("the file header has {} bytes", bytes.len()))?;
        let part = |at: usize| {
            let mut out = [0; 8];
            out.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(out)
        };
        if &bytes[..8] != MAGIC {
            return Err(format!(
                "the file begins with {:02x?}, not with the magic bytes of a log",
                &bytes[..8]
            ));
        }
        let crc = (part(28) >> 32) as u32;
        let found = crc32c::crc32c(&bytes[..32]);
        if !frame::is_intact(found, crc) {
            return Err(format!("the file header has checksum {found:08x} instead of {crc:08x}"));
        }
        FORMATS.check(part(8) as u32).map_err(|unknown| unknown.to_string())?;
        Ok(Self { shard: ShardId((part(8) >> 32) as u16), first: Version(part(16)), epoch: Epoch(part(24)) })
    }
}

pub(crate) fn file_name(first: Version) -> String {
    format!("{:020}.log", first.0)
}

impl FileLog {
    /// Opens the log in a directory, or starts one, and recovers it: cuts a torn tail (LOG-3). [`FileLog::recovery`]
    /// says what was cut.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has the directory open; [`Error::Corrupt`] if anything but the tail is
    /// damaged, and [`Error::Lost`] if files are missing (nothing is changed then); [`Error::Full`] or [`Error::Io`]
    /// if the disk fails.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        shard: ShardId,
        options: FileLogOptions,
    ) -> Result<Self, Error> {
        disk.create_dir_all(dir).map_err(Error::disk)?;
        let lock = disk.lock(&dir.join("lock")).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => Error::InUse(error),
            _ => Error::disk(error),
        })?;
        let mark = reach::with_suffix(dir, ".end");
        let place = Place { disk: disk.as_ref(), dir, mark: &mark, shard };
        let recovered = recovery::recover(&place, &options)?;
        let late = options.sync_every.and_then(LateSync::start);
        let current = match recovered.files.last() {
            Some(last) => {
                let mut file = disk.open_append(&last.path).map_err(Error::disk)?;
                // The process that wrote it may have died before its sync, or because of it. From here on it counts as
                // durable.
                file.write_again(recovered.durable_bytes)
                    .and_then(|()| file.sync_data())
                    .and_then(|()| disk.sync_dir(dir))
                    .map_err(Error::disk)?;
                let bytes = recovered.last_file_bytes;
                if let Some(late) = &late {
                    late.begin(disk.open_append(&last.path).map_err(Error::disk)?, bytes);
                }
                Some(Current { file, bytes })
            }
            None => None,
        };
        let last_bytes = current.as_ref().map_or(0, |current| current.bytes);
        let extent = Arc::new(Mutex::new(Extent { files: recovered.files.clone(), last_bytes }));
        Ok(Self {
            extent,
            index: Arc::default(),
            disk,
            dir: dir.to_path_buf(),
            mark,
            shard,
            options,
            files: recovered.files,
            current,
            late,
            tail: recovered.tail,
            poisoned: None,
            recovery: recovered.report,
            bytes: recovered.bytes,
            buffer: Vec::new(),
            _lock: lock,
        })
    }

    /// What recovery cut when the log was opened.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Refuses all appends from now on: after this failure it is unknown where the log ends.
    fn poison(&mut self, reason: Cause) -> Error {
        tracing::error!(
            error = %reason,
            shard = self.shard.0,
            "the log is poisoned and takes no more records"
        );
        self.poisoned = Some(reason.clone());
        Error::Poisoned { reason }
    }

    /// Starts a new file whose first record is `record`. A failure leaves no trace, or poisons the log.
    fn roll(&mut self, record: &Record) -> Result<(), Error> {
        let header = FileHeader {
            shard: self.shard,
            first: record.version,
            epoch: self.tail.map_or(record.epoch, |t| t.epoch),
        };
        reach::prepare(&*self.disk, &self.mark, header.first).map_err(Error::disk)?;
        let path = self.dir.join(file_name(header.first));
        let mut file = self.disk.open_append(&path).map_err(Error::disk)?;
        // A roll that failed before may have left bytes.
        let written = file.truncate(0).and_then(|()| file.append(&header.to_bytes()));
        if let Err(error) = written {
            // Recovery would remove a file with part of a header. Better leave none.
            drop(file);
            return Err(match self.disk.remove(&path) {
                Ok(()) => Error::disk(error),
                Err(_) => self.poison(cause(error)),
            });
        }
        let durable = file
            .sync_data()
            .and_then(|()| self.disk.sync_dir(&self.dir))
            .and_then(|()| reach::replace(&*self.disk, &self.mark));
        if let Err(error) = durable {
            return Err(self.poison(cause(error)));
        }
        if let Some(late) = &self.late {
            match self.disk.open_append(&path) {
                Ok(file) => late.begin(file, HEADER_BYTES),
                Err(error) => return Err(self.poison(cause(error))),
            }
        }
        self.files.push(LogFile { path, first: header.first });
        self.current = Some(Current { file, bytes: HEADER_BYTES });
        Ok(())
    }

    /// Lets readers read what was acknowledged.
    fn show_readers(&self) {
        let mut extent = self.extent.lock();
        let ends = |files: &[LogFile]| (files.len(), files.last().map(|file| file.first));
        if ends(&extent.files) != ends(&self.files) {
            extent.files.clone_from(&self.files);
        }
        extent.last_bytes = self.current.as_ref().map_or(0, |current| current.bytes);
    }

    /// Number of bytes of the current file that are durable.
    fn durable_bytes(&mut self) -> Result<u64, Error> {
        let Some(current) = &self.current else { return Ok(HEADER_BYTES) };
        match &self.late {
            None => Ok(current.bytes),
            Some(late) => late.durable_bytes().map_err(|reason| self.poison(reason)),
        }
    }

    /// Makes the current file durable.
    fn sync_current(&mut self) -> Result<(), Error> {
        let Some(current) = &mut self.current else { return Ok(()) };
        if let Err(error) = current.file.sync_data() {
            return Err(self.poison(cause(error)));
        }
        if let Some(late) = &self.late {
            late.synced(current.bytes);
        }
        Ok(())
    }

    /// Encodes all records as if the file were durable up to `durable_bytes`.
    fn encode(&mut self, records: &[Record], durable_bytes: u64) -> Result<(), Error> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER_BYTES);
        for record in records {
            let mut result = Ok(());
            let framed = frame::write_frame_with(&mut self.buffer, |out| {
                result = record::encode(record, durable_bytes, out);
            });
            result.and(framed).map_err(|source| Error::Encode { version: record.version, source })?;
        }
        Ok(())
    }
}

impl LogStore for FileLog {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        let Some(first) = records.first() else { return Ok(()) };
        let tail = check_all(records, self.shard, self.tail)?;
        let durable_bytes = self.durable_bytes()?;
        self.encode(records, durable_bytes)?;
        let full = |c: &Current| {
            c.bytes > HEADER_BYTES && c.bytes + self.buffer.len() as u64 > self.options.file_bytes
        };
        if self.current.as_ref().is_none_or(full) {
            if durable_bytes != HEADER_BYTES {
                self.encode(records, HEADER_BYTES)?;
            }
            if self.late.is_some() {
                self.sync()?;
            }
            self.roll(first)?;
        }
        let Some(current) = &mut self.current else {
            return Err(Error::poisoned("there is no file to write to"));
        };
        let before = current.bytes;
        if let Err(error) = current.file.append(&self.buffer) {
            return match current.file.truncate(before).and_then(|()| current.file.sync_data()) {
                Ok(()) => Err(Error::disk(error)),
                Err(_) => Err(self.poison(cause(error))),
            };
        }
        current.bytes += self.buffer.len() as u64;
        let must_sync = self.late.as_ref().is_none_or(|late| late.wrote(current.bytes));
        if must_sync {
            self.sync_current()?;
        }
        self.bytes += self.buffer.len() as u64;
        self.tail = tail;
        self.show_readers();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        if self.late.is_none() {
            return Ok(());
        }
        // If a sync of the other thread failed, the kernel may not report that again: look before and after.
        self.durable_bytes()?;
        self.sync_current()?;
        self.durable_bytes().map(drop)
    }

    fn syncs_later(&self) -> bool {
        self.late.is_some()
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        let Some(tail) = end_of(version, self.first(), self.tail)? else {
            return Ok(Box::new(std::iter::empty()));
        };
        // The last file that begins at or before the version.
        let start = self.files.partition_point(|f| f.first <= version).saturating_sub(1);
        let scan = Scan {
            disk: self.disk.as_ref(),
            shard: self.shard,
            files: &self.files[start..],
            open: None,
            wanted: version,
            next: self.files.get(start).map_or(version, |f| f.first),
            end: tail.version.next(),
            last_file_bytes: self.current.as_ref().map_or(0, |c| c.bytes),
        };
        Ok(Box::new(scan))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        // A file can go if the next one begins at or below `below`, so the last one always stays.
        while self.files.get(1).is_some_and(|next| next.first <= below) {
            self.disk.remove(&self.files[0].path).map_err(Error::disk)?;
            self.files.remove(0);
            // One by one, so that a crash cannot leave a gap between files.
            self.disk.sync_dir(&self.dir).map_err(Error::disk)?;
        }
        self.show_readers();
        if let Some(first) = self.first() {
            self.index.lock().forget_below(first);
        }
        Ok(())
    }

    fn readers(&self) -> Option<Arc<dyn Follow>> {
        let (disk, extent, index) = (self.disk.clone(), self.extent.clone(), self.index.clone());
        Some(Arc::new(FileReaders { disk, shard: self.shard, extent, index }))
    }

    fn tail(&self) -> Option<Tail> {
        self.tail
    }

    fn first(&self) -> Option<Version> {
        self.tail.and(self.files.first()).map(|f| f.first)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reads record after record, file after file.
struct Scan<'a> {
    disk: &'a dyn Disk,
    shard: ShardId,
    /// The file that is open, or is opened next, and those after it.
    files: &'a [LogFile],
    open: Option<FrameReader<Box<dyn Read + Send>>>,
    wanted: Version,
    /// Version of the next record in the file.
    next: Version,
    /// The version after the last one.
    end: Version,
    /// Length of the last file. Bytes beyond it were never acknowledged.
    last_file_bytes: u64,
}

impl Scan<'_> {
    fn corrupt(
        &self,
        file: &Path,
        offset: u64,
        reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        metric::refused(metric::Refused::LogRecord);
        Error::Corrupt { file: file.to_path_buf(), offset, reason: cause(reason) }
    }

    /// Reads the next record: `None` at the end of the open file, `Some(None)` for one before `wanted`, whose body is
    /// not decoded.
    fn read(&mut self, file: &LogFile) -> Result<Option<Option<Record>>, Error> {
        let Some(frames) = &mut self.open else { return Ok(None) };
        let offset = frames.offset();
        let payload = match frames.next_frame() {
            Ok(None) => return Ok(None),
            Ok(Some(payload)) => payload,
            Err(error) => return Err(recovery::frame_error(&file.path, error)),
        };
        let prefix = match recovery::check_prefix(payload, self.shard, self.next) {
            Ok(prefix) => prefix,
            Err(reason) => return Err(self.corrupt(&file.path, offset, reason)),
        };
        if prefix.version < self.wanted {
            return Ok(Some(None));
        }
        let Prefix { shard, epoch, version, .. } = prefix;
        match record::decode_body(&payload[PREFIX_BYTES..]) {
            Ok(body) => Ok(Some(Some(Record { shard, epoch, version, body }))),
            Err(source @ tidegraph_wire::Error::UnknownKind { .. }) => {
                Err(Error::Newer { version, file: file.path.clone(), offset, source })
            }
            Err(error) => Err(self.corrupt(&file.path, offset, error)),
        }
    }

    fn advance(&mut self) -> Result<Option<Record>, Error> {
        while self.next < self.end {
            let Some((file, rest)) = self.files.split_first() else {
                let file = Path::new("after the last file");
                return Err(self.corrupt(file, 0, format!("version {} is missing", self.next)));
            };
            if self.open.is_none() {
                if file.first != self.next {
                    let reason =
                        format!("the file begins with version {} instead of {}", file.first, self.next);
                    return Err(self.corrupt(&file.path, 0, reason));
                }
                let limit = if rest.is_empty() { self.last_file_bytes } else { u64::MAX };
                self.open =
                    Some(recovery::open_frames(self.disk, file, self.shard, limit, READ_BUFFER_BYTES)?.1);
            }
            match self.read(file)? {
                None => {
                    self.open = None;
                    self.files = rest;
                }
                Some(record) => {
                    self.next = self.next.next();
                    if record.is_some() {
                        return Ok(record);
                    }
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.advance();
        if result.is_err() {
            self.end = Version(0);
        }
        result.transpose()
    }
}

/// Returns a buffered reader that ends at byte `limit` of the file and starts at byte `offset`.
pub(crate) fn limited(
    inner: Box<dyn Read + Send>,
    limit: u64,
    offset: u64,
    buffer_bytes: usize,
) -> Box<dyn Read + Send> {
    Box::new(BufReader::with_capacity(buffer_bytes, inner.take(limit.saturating_sub(offset))))
}
