//! Recovery of a [`crate::FileLog`] (LOG-3): find the files, find the tail, cut the bytes that were never synced.
//!
//! What a crash may leave, and what recovery does with it:
//! * A last file with part of a header. Headers are durable before the first record is written, so the file never held
//!   a record: recovery removes it.
//! * Bytes after the last good record of the last file: a *torn tail*, part of appends that were not synced. Recovery
//!   cuts it and syncs the cut.
//!
//! A crash cannot leave anything else. The following is [`Error::Corrupt`], and nothing is changed: damage in the last
//! file before bytes that were synced (found here); damage in an earlier file, which was durable before the next one
//! was started; and a gap between versions (both found when the records are read).
//!
//! How recovery tells damage from a torn tail: each record notes up to which byte the file was durable when the record
//! was written. If a record anywhere behind the damage notes a byte behind it, the damaged bytes had been durable.
//!
//! A crash never removes a whole file either. Recovery knows how far the log must reach (`reach.rs`); if it does not,
//! that is [`Error::Lost`], and nothing is changed unless the caller accepts the loss.
//!
//! Recovery cannot tell a torn tail from damage of bytes appended since the last sync but one. Where every append is
//! synced, that is the very last append.

use crate::error::cause;
use crate::file::{FileHeader, FileLogOptions, HEADER_BYTES, LogFile, file_name, limited};
use crate::reach;
use crate::record::{PREFIX_BYTES, Prefix};
use crate::{Error, Tail};
use std::io::Read;
use std::path::Path;
use tidegraph_platform::Disk;
use tidegraph_platform::{DiskError, Operation};
use tidegraph_types::{Epoch, ShardId, Version};
use tidegraph_wire::frame::{self, FrameReader};

/// What recovery cut when it opened a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// Bytes of a torn tail that were cut.
    pub torn_bytes: u64,
    /// Files with part of a header that were removed: 0 or 1.
    pub torn_files: u64,
}

/// A recovered log.
#[derive(Default)]
pub(crate) struct Recovered {
    pub files: Vec<LogFile>,
    pub tail: Option<Tail>,
    pub last_file_bytes: u64,
    /// Up to here, a sync of the last file certainly succeeded.
    pub durable_bytes: u64,
    /// Total length of all files.
    pub bytes: u64,
    pub report: Recovery,
}

/// The directory of a log.
pub(crate) struct Place<'a> {
    pub disk: &'a dyn Disk,
    pub dir: &'a Path,
    /// Names how far the log must reach ([`reach`]).
    pub mark: &'a Path,
    pub shard: ShardId,
}

/// Finds the tail of a log and cuts a torn tail.
pub(crate) fn recover(place: &Place<'_>, options: &FileLogOptions) -> Result<Recovered, Error> {
    let (disk, dir) = (place.disk, place.dir);
    let mut files = list(disk, dir)?;
    let marked = reach::read(disk, place.mark)?;
    let newest = files.last().map(|(file, _)| file.first);
    if marked > newest || options.checkpoint.is_some() {
        let tail = match newest {
            Some(_) => find_tail(place, &files)?,
            None => Version::default(),
        };
        let reached = options.checkpoint.map_or(Version::default(), |checkpoint| checkpoint.version);
        if marked > newest || tail < reached {
            accept_loss(place, options, marked.unwrap_or_default().max(reached), tail)?;
            files = list(disk, dir)?;
        }
    }
    let mut report = Recovery::default();
    if let Some((last, bytes)) = files.last()
        && is_torn_header(disk, last, *bytes)?
    {
        tracing::warn!(file = %last.path.display(), bytes, "removing a log file whose header is not whole");
        disk.remove(&last.path).and_then(|()| disk.sync_dir(dir)).map_err(Error::disk)?;
        report.torn_files = 1;
        files.pop();
    }
    let Some((last, _)) = files.last().cloned() else {
        return Ok(Recovered { report, ..Recovered::default() });
    };
    let end = find_end(disk, &last, place.shard)?;
    if end.torn_bytes > 0 {
        tracing::warn!(
            file = %last.path.display(),
            offset = end.offset,
            bytes = end.torn_bytes,
            "cutting the torn tail of the log, which was never synced"
        );
        let mut file = disk.open_append(&last.path).map_err(Error::disk)?;
        file.truncate(end.offset).and_then(|()| file.sync_data()).map_err(Error::disk)?;
        report.torn_bytes = end.torn_bytes;
    }
    let bytes = files.iter().map(|(_, bytes)| bytes).sum::<u64>() - end.torn_bytes;
    let files: Vec<LogFile> = files.into_iter().map(|(file, _)| file).collect();
    let tail = Some(Tail { version: end.last_version(&last), epoch: end.epoch });
    let durable_bytes = end.durable_bytes.min(end.offset);
    Ok(Recovered { files, tail, last_file_bytes: end.offset, durable_bytes, bytes, report })
}

/// The files of a log with their lengths, oldest first.
fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<(LogFile, u64)>, Error> {
    let mut files = Vec::new();
    for info in disk.list(dir).map_err(Error::disk)? {
        let Some(digits) = info.name.strip_suffix(".log").filter(|d| d.len() == 20) else { continue };
        if let Ok(first) = digits.parse() {
            files.push((LogFile { path: dir.join(&info.name), first: Version(first) }, info.bytes));
        }
    }
    Ok(files)
}

/// The last version in these files, read without a change to them.
fn find_tail(place: &Place<'_>, files: &[(LogFile, u64)]) -> Result<Version, Error> {
    let mut newest_first = files.iter().rev();
    let mut last = newest_first.next();
    if let Some((file, bytes)) = last
        && is_torn_header(place.disk, file, *bytes)?
    {
        last = newest_first.next();
    }
    let Some((file, _)) = last else { return Ok(Version::default()) };
    Ok(find_end(place.disk, file, place.shard)?.last_version(file))
}

/// Makes a log that lost files whole again, if the caller accepts that loss: it ends at its last record, or begins anew
/// after the checkpoint. Files that hold nothing after the checkpoint are kept under another name.
fn accept_loss(
    place: &Place<'_>,
    options: &FileLogOptions,
    least: Version,
    tail: Version,
) -> Result<(), Error> {
    let (disk, dir) = (place.disk, place.dir);
    let beyond = options.checkpoint.filter(|checkpoint| checkpoint.version > tail);
    let left = beyond.map_or(tail, |checkpoint| checkpoint.version);
    if options.accept_loss != Some(left) {
        return Err(Error::Lost { dir: dir.to_path_buf(), least, tail, left });
    }
    tracing::warn!(least = least.0, left = left.0, "the log lost records, and this was accepted");
    let mut newest = list(disk, dir)?.last().map(|(file, _)| file.first);
    if let Some(checkpoint) = beyond {
        for (file, _) in list(disk, dir)? {
            disk.rename(&file.path, &reach::with_suffix(&file.path, ".lost")).map_err(Error::disk)?;
        }
        let first = checkpoint.version.next();
        let header = FileHeader { shard: place.shard, first, epoch: checkpoint.epoch };
        let mut file = disk.open_append(&dir.join(file_name(first))).map_err(Error::disk)?;
        let written = file.truncate(0).and_then(|()| file.append(&header.to_bytes()));
        written.and_then(|()| file.sync_data()).and_then(|()| disk.sync_dir(dir)).map_err(Error::disk)?;
        newest = Some(first);
    }
    reach::write(disk, place.mark, newest.unwrap_or_default()).map_err(Error::disk)
}

/// Whether the last file has only part of a header, or a header that was never whole.
fn is_torn_header(disk: &dyn Disk, file: &LogFile, bytes: u64) -> Result<bool, Error> {
    if bytes > HEADER_BYTES {
        // Records were written, so the header was durable. If it is bad now, that is damage.
        return Ok(false);
    }
    let header = read_header(disk, file)?;
    Ok(FileHeader::parse(&header).is_err())
}

/// The end of the last file.
struct End {
    offset: u64,
    records: u64,
    epoch: Epoch,
    /// What the last record notes: the file was durable up to here when it was written.
    durable_bytes: u64,
    torn_bytes: u64,
}

impl End {
    /// The version of the last record. A file without records shows it too: its header has the version and epoch before
    /// its first record.
    fn last_version(&self, file: &LogFile) -> Version {
        Version((file.first.0 + self.records).saturating_sub(1))
    }
}

fn find_end(disk: &dyn Disk, file: &LogFile, shard: ShardId) -> Result<End, Error> {
    let (header, mut frames) = open_frames(disk, file, shard, u64::MAX, 1 << 20)?;
    let mut end =
        End { offset: HEADER_BYTES, records: 0, epoch: header.epoch, durable_bytes: 0, torn_bytes: 0 };
    loop {
        let next = Version(file.first.0 + end.records);
        let reason = match frames.next_frame() {
            Ok(None) => return Ok(end),
            Ok(Some(payload)) => {
                let corrupt = |reason: String| Error::Corrupt {
                    file: file.path.clone(),
                    offset: end.offset,
                    reason: cause(reason),
                };
                let prefix = check_prefix(payload, shard, next).map_err(corrupt)?;
                if prefix.epoch < end.epoch {
                    return Err(corrupt(format!("epoch {} follows epoch {}", prefix.epoch, end.epoch)));
                }
                end.epoch = prefix.epoch;
                end.durable_bytes = prefix.durable_bytes;
                end.records += 1;
                end.offset = frames.offset();
                continue;
            }
            Err(error @ tidegraph_wire::Error::Io { .. }) => return Err(frame_error(&file.path, error)),
            Err(error) => error.to_string(),
        };
        let rest = read_rest(disk, file, end.offset)?;
        if let Some((offset, version)) = find_proof(&rest, end.offset, shard, next) {
            let reason = format!(
                "{reason}, but the record of version {version} at byte {offset} was written after it"
            );
            return Err(Error::Corrupt {
                file: file.path.clone(),
                offset: end.offset,
                reason: cause(reason),
            });
        }
        end.torn_bytes = rest.len() as u64;
        return Ok(end);
    }
}

/// Looks behind the damage for a whole record that was written when the damaged bytes were already durable.
fn find_proof(rest: &[u8], damage: u64, shard: ShardId, next: Version) -> Option<(u64, Version)> {
    // A frame may begin at any byte, since the length of the damaged one cannot be trusted. The cheap tests come first;
    // a checksum is computed only if all of them pass.
    (1..rest.len()).find_map(|at| {
        let header = rest.get(at..at + frame::HEADER_BYTES)?.try_into().ok()?;
        let (length, crc) = frame::parse_header(header);
        let start = at + frame::HEADER_BYTES;
        let payload = rest.get(start..start.checked_add(length as usize)?)?;
        let prefix = Prefix::parse(payload)?;
        let offset = damage + at as u64;
        let plausible = prefix.shard == shard
            && prefix.version > next
            && prefix.durable_bytes > damage
            && prefix.durable_bytes <= offset;
        (plausible && crc32c::crc32c(payload) == crc).then_some((offset, prefix.version))
    })
}

/// Parses the prefix of the payload that must hold the record of version `next`. The error says what is wrong with it.
pub(crate) fn check_prefix(payload: &[u8], shard: ShardId, next: Version) -> Result<Prefix, String> {
    let prefix = Prefix::parse(payload).ok_or_else(|| {
        format!("the record has {} bytes, fewer than the {PREFIX_BYTES} of its prefix", payload.len())
    })?;
    if prefix.shard != shard {
        return Err(format!("the record belongs to shard {}, the log to shard {shard}", prefix.shard));
    }
    if prefix.version != next {
        return Err(format!("the record has version {} where {next} must be", prefix.version));
    }
    Ok(prefix)
}

/// Reads and checks the header of a file; returns it and a reader of the frames up to byte `limit`.
pub(crate) fn open_frames(
    disk: &dyn Disk,
    file: &LogFile,
    shard: ShardId,
    limit: u64,
    buffer_bytes: usize,
) -> Result<(FileHeader, FrameReader<Box<dyn Read + Send>>), Error> {
    let corrupt =
        |reason: String| Error::Corrupt { file: file.path.clone(), offset: 0, reason: cause(reason) };
    let header = FileHeader::parse(&read_header(disk, file)?).map_err(corrupt)?;
    if header.shard != shard {
        return Err(corrupt(format!("the file belongs to shard {}, the log to shard {shard}", header.shard)));
    }
    if header.first != file.first {
        return Err(corrupt(format!(
            "the file begins with version {}, its name says {}",
            header.first, file.first
        )));
    }
    let reader = disk.open_read(&file.path, HEADER_BYTES).map_err(Error::disk)?;
    Ok((header, FrameReader::at(limited(reader, limit, HEADER_BYTES, buffer_bytes), HEADER_BYTES)))
}

fn read_header(disk: &dyn Disk, file: &LogFile) -> Result<Vec<u8>, Error> {
    read(disk.open_read(&file.path, 0).map_err(Error::disk)?.take(HEADER_BYTES), file)
}

fn read_rest(disk: &dyn Disk, file: &LogFile, offset: u64) -> Result<Vec<u8>, Error> {
    read(disk.open_read(&file.path, offset).map_err(Error::disk)?, file)
}

fn read(mut reader: impl Read, file: &LogFile) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    match reader.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(source) => Err(Error::disk(DiskError::new(Operation::Read, &file.path, source))),
    }
}

/// The error of a bad frame in a place where every frame was durable.
pub(crate) fn frame_error(file: &Path, error: tidegraph_wire::Error) -> Error {
    use tidegraph_wire::Error as Wire;
    let offset = match error {
        Wire::Io { source, .. } => return Error::disk(DiskError::new(Operation::Read, file, source)),
        Wire::Truncated { offset, .. }
        | Wire::BadChecksum { offset, .. }
        | Wire::TooLong { offset, .. }
        | Wire::EmptyFrame { offset } => offset,
        _ => 0,
    };
    Error::Corrupt { file: file.to_path_buf(), offset, reason: cause(error) }
}
