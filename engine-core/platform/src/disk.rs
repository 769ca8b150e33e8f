//! The file operations that a log and a cache need, as a trait.
//!
//! Appended bytes are durable after [`DiskFile::sync_data`]; names that were created, renamed or removed in a directory
//! are durable after [`Disk::sync_dir`]. After a crash, changes that were not synced may be there, be missing, or be
//! there in part.

use std::fmt::{self, Debug};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tidegraph_types::ErrorCode;

/// Files and directories. Every method returns the [`Error`] of the operation, with its path.
pub trait Disk: Send + Sync + Debug {
    /// Creates a directory and its parents, and makes their names durable; does nothing if it exists.
    fn create_dir_all(&self, dir: &Path) -> Result<(), Error>;
    /// Lists the files (not the directories) of a directory, sorted by name.
    fn list(&self, dir: &Path) -> Result<Vec<FileInfo>, Error>;
    /// Opens a file to append to; creates it if it does not exist.
    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, Error>;
    /// Opens a file to read from byte `offset` on.
    fn open_read(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>, Error>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<(), Error>;
    /// Renames a file; replaces a file that has the new name.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), Error>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<(), Error>;
    /// Takes a lock that only one process can hold. It is released when it is dropped or the process ends. Creates the
    /// file.
    ///
    /// # Errors
    ///
    /// Kind `io::ErrorKind::WouldBlock` if another process holds the lock.
    fn lock(&self, path: &Path) -> Result<DiskLock, Error>;
    /// Creates an empty file for data that the process needs only while it runs. Its name is removed as soon as the
    /// system allows, so that nothing is left behind.
    fn open_scratch(&self, path: &Path) -> Result<Box<dyn ScratchFile>, Error>;
    /// Returns how many bytes this process can still write to the file system of a directory.
    fn free_bytes(&self, dir: &Path) -> Result<u64, Error>;
}

/// A file that several threads read and write at any offset, and that is removed with the process.
pub trait ScratchFile: Send + Sync + Debug {
    /// Writes all of `bytes` from byte `offset` on.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error>;
    /// Fills `bytes` from byte `offset` on.
    ///
    /// # Errors
    ///
    /// Kind `io::ErrorKind::UnexpectedEof` if the file ends before that.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), Error>;
    /// Hints that these bytes will be read soon.
    fn read_ahead(&self, offset: u64, bytes: u64) {
        let _ = (offset, bytes);
    }
    /// Cuts the file to `bytes`.
    fn truncate(&self, bytes: u64) -> Result<(), Error>;
    /// Returns the path under which it was created, for messages.
    fn path(&self) -> &Path;
}

/// A file open for appending.
pub trait DiskFile: Send + Debug {
    /// Writes all of `bytes` at the end. After an error a part of them may be written.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error>;
    /// Makes the written bytes durable. After an error, bytes written since the last success may be lost, and a later
    /// success does not change that.
    ///
    /// # Errors
    ///
    /// Kind `io::ErrorKind::NotFound` if the file was removed, moved or replaced since it was opened: nobody will find
    /// its bytes.
    fn sync_data(&mut self) -> Result<(), Error>;
    /// Writes the bytes from `offset` on once more, unchanged, so that the next sync makes them durable. After a sync
    /// that failed, in this process or in one before, the system may show bytes that the disk does not have, and report
    /// no error at later syncs.
    fn write_again(&mut self, offset: u64) -> Result<(), Error>;
    /// Cuts the file to `bytes`.
    fn truncate(&mut self, bytes: u64) -> Result<(), Error>;
    /// Returns the length in bytes.
    fn len(&self) -> Result<u64, Error>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }
}

/// A held lock; dropping it releases the lock.
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

/// The operation that failed.
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

/// A failed operation of a disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct Error {
    /// The operation.
    pub operation: Operation,
    /// The file or directory.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl Error {
    /// Makes the error of an operation on a path.
    pub fn new(operation: Operation, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self { operation, path: path.into(), source }
    }

    /// Returns the kind of the system's error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether there was no space: the disk is full, a quota is reached, or the file is too large.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }

    /// Returns the stable code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        ErrorCode::Unavailable
    }
}
