//! The few file operations that a log and a cache need, as a trait.
//!
//! What is durable: bytes appended, after [`DiskFile::sync_data`]; names made, renamed or removed in a directory, after
//! [`Disk::sync_dir`]. Whatever was not synced may be there after a crash, or not, or in part.

use std::fmt::{self, Debug};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tidegraph_types::ErrorCode;

/// Files and directories.
pub trait Disk: Send + Sync + Debug {
    /// Makes a directory and those above it; nothing happens if it is there.
    fn create_dir_all(&self, dir: &Path) -> Result<(), Error>;
    /// The files (not directories) of a directory, sorted by name.
    fn list(&self, dir: &Path) -> Result<Vec<FileInfo>, Error>;
    /// Opens a file to append to; makes it if it is not there.
    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, Error>;
    /// Reads a file from byte `offset` on.
    fn open_read(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>, Error>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<(), Error>;
    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), Error>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<(), Error>;
    /// Takes a lock that no other process can hold at the same time; freed when dropped or when the process ends.
    /// `io::ErrorKind::WouldBlock` when another one holds it. Makes the file.
    fn lock(&self, path: &Path) -> Result<DiskLock, Error>;
    /// Makes an empty file for what may be forgotten when the process ends. Its name goes as soon as the system can do
    /// without it, so that nothing is left behind.
    fn open_scratch(&self, path: &Path) -> Result<Box<dyn ScratchFile>, Error>;
    /// Bytes that this process can still write where a directory is.
    fn free_bytes(&self, dir: &Path) -> Result<u64, Error>;
}

/// A file that is written and read anywhere, by several threads at once, and is gone with the process.
pub trait ScratchFile: Send + Sync + Debug {
    /// Writes all of `bytes` from byte `offset` on.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error>;
    /// Fills `bytes` from byte `offset` on; an error if the file ends before that.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), Error>;
    /// Says that these bytes will be read soon.
    fn read_ahead(&self, offset: u64, bytes: u64) {
        let _ = (offset, bytes);
    }
    /// Cuts the file to `bytes`.
    fn truncate(&self, bytes: u64) -> Result<(), Error>;
    /// What it was made as, for messages.
    fn path(&self) -> &Path;
}

/// A file open for appending.
pub trait DiskFile: Send + Debug {
    /// Writes all of `bytes` at the end. After an error some of them may be there.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error>;
    /// Makes what was written durable. After an error nothing is known of what was written since the last success,
    /// and a later success does not change that.
    fn sync_data(&mut self) -> Result<(), Error>;
    /// Cuts the file to `bytes`.
    fn truncate(&mut self, bytes: u64) -> Result<(), Error>;
    /// Length in bytes.
    fn len(&self) -> Result<u64, Error>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }
}

/// Holds a lock until it is dropped.
pub struct DiskLock {
    pub(crate) _held: Box<dyn Send + Sync>,
}

impl Debug for DiskLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskLock")
    }
}

/// A file in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// Name within the directory.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
}

/// What was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The names say it.
pub enum Operation {
    CreateDir,
    List,
    Open,
    Read,
    Append,
    Write,
    SyncData,
    Truncate,
    SyncDir,
    Rename,
    Remove,
    Lock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CreateDir => "make directory",
            Self::List => "list directory",
            Self::Open => "open file",
            Self::Read => "read file",
            Self::Append | Self::Write => "write file",
            Self::SyncData => "sync file",
            Self::Truncate => "truncate file",
            Self::SyncDir => "sync directory",
            Self::Rename => "rename file",
            Self::Remove => "remove file",
            Self::Lock => "lock file",
        })
    }
}

/// An operation that the disk did not carry out.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct Error {
    /// What was tried.
    pub operation: Operation,
    /// On which file or directory.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl Error {
    /// An error of an operation on a path.
    pub fn new(operation: Operation, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self { operation, path: path.into(), source }
    }

    /// Why it failed, coarsely.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether there was no room: disk full, quota reached, file too large.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }

    /// The stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        ErrorCode::Unavailable
    }
}
