//! The mark of a log: the version that the log must reach. It distinguishes lost files from files that never existed.
//!
//! The mark is a file beside the log's directory with the first version of the newest log file. It is written when that
//! file is durable, so after any crash the log reaches at least this version. A checkpoint says the same of its own
//! version: the log held every record up to it when the checkpoint was written.

use crate::Error;
use crate::error::cause;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use tidegraph_platform::{Disk, DiskError, Operation};
use tidegraph_types::Version;

/// First bytes of a mark.
const MAGIC: &[u8; 8] = b"TIDEEND\0";
/// Magic, version, and the checksum of both.
const MARK_BYTES: usize = 20;
/// What the name of a prepared mark ends with.
const NEXT: &str = ".next";

/// Returns the version that a mark names; `None` if there is no mark.
pub(crate) fn read(disk: &dyn Disk, mark: &Path) -> Result<Option<Version>, Error> {
    let reader = match disk.open_read(mark, 0) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::disk)?,
    };
    let mut bytes = Vec::new();
    let all = reader.take(MARK_BYTES as u64 + 1).read_to_end(&mut bytes);
    all.map_err(|source| Error::disk(DiskError::new(Operation::Read, mark, source)))?;
    let corrupt =
        |reason: String| Error::Corrupt { file: mark.to_path_buf(), offset: 0, reason: cause(reason) };
    let bytes: [u8; MARK_BYTES] = bytes
        .try_into()
        .map_err(|bytes: Vec<u8>| corrupt(format!("it has {} bytes instead of {MARK_BYTES}", bytes.len())))?;
    let (head, crc) = bytes.split_at(MARK_BYTES - 4);
    let (magic, version) = head.split_at(MAGIC.len());
    if magic != MAGIC || crc32c::crc32c(head).to_le_bytes() != *crc {
        return Err(corrupt("it is not the mark of a log, or its checksum is wrong".into()));
    }
    Ok(version.try_into().ok().map(u64::from_le_bytes).map(Version))
}

/// Replaces a mark.
pub(crate) fn write(disk: &dyn Disk, mark: &Path, version: Version) -> Result<(), DiskError> {
    prepare(disk, mark, version)?;
    replace(disk, mark)
}

/// Makes the next mark durable beside the present one. A failure changes nothing.
pub(crate) fn prepare(disk: &dyn Disk, mark: &Path, version: Version) -> Result<(), DiskError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version.0.to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    let mut file = disk.open_append(&with_suffix(mark, NEXT))?;
    // A write that failed before may have left bytes.
    file.truncate(0)?;
    file.append(&bytes)?;
    file.sync_data()
}

/// Puts the prepared mark in the place of the present one. After a failure, either of them stands.
pub(crate) fn replace(disk: &dyn Disk, mark: &Path) -> Result<(), DiskError> {
    disk.rename(&with_suffix(mark, NEXT), mark)?;
    let dir = mark.parent().filter(|dir| !dir.as_os_str().is_empty());
    disk.sync_dir(dir.unwrap_or(Path::new(".")))
}

/// The path with more text at its end.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(suffix);
    path.into()
}
