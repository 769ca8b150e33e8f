//! The disk of the machine.

#![expect(clippy::disallowed_methods, reason = "the one place that reaches the disk")]

use crate::disk::{Disk, DiskFile, DiskLock, Error, FileInfo, Operation, ScratchFile};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes that are read and written in one step when a file is written again.
const REWRITE_BYTES: usize = 1 << 20;

/// The disk of the machine, through `std::fs`.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealDisk;

fn at(operation: Operation, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::new(operation, path, source)
}

impl Disk for RealDisk {
    fn create_dir_all(&self, dir: &Path) -> Result<(), Error> {
        let is_new = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        let new: Vec<&Path> = dir.ancestors().take_while(is_new).collect();
        fs::create_dir_all(dir).map_err(at(Operation::CreateDir, dir))?;
        for dir in new.iter().rev() {
            let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            self.sync_dir(parent.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<FileInfo>, Error> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir).map_err(at(Operation::List, dir))? {
            let entry = entry.map_err(at(Operation::List, dir))?;
            let info = entry.metadata().map_err(at(Operation::List, dir))?;
            // Tidegraph creates no names that are not UTF-8.
            if let (true, Ok(name)) = (info.is_file(), entry.file_name().into_string()) {
                files.push(FileInfo { name, bytes: info.len() });
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, Error> {
        let file =
            OpenOptions::new().append(true).create(true).open(path).map_err(at(Operation::Open, path))?;
        Ok(Box::new(RealFile { file, path: path.to_path_buf() }))
    }

    fn open_read(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>, Error> {
        let mut file = File::open(path).map_err(at(Operation::Open, path))?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset)).map_err(at(Operation::Read, path))?;
        }
        Ok(Box::new(file))
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), Error> {
        File::open(dir).and_then(|d| d.sync_all()).map_err(at(Operation::SyncDir, dir))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        fs::rename(from, to).map_err(at(Operation::Rename, from))
    }

    fn remove(&self, path: &Path) -> Result<(), Error> {
        fs::remove_file(path).map_err(at(Operation::Remove, path))
    }

    fn lock(&self, path: &Path) -> Result<DiskLock, Error> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(at(Operation::Lock, path))?;
        match file.try_lock() {
            Ok(()) => Ok(DiskLock { _held: Box::new(file) }),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                Operation::Lock,
                path,
                io::Error::new(io::ErrorKind::WouldBlock, "another process holds the lock"),
            )),
            Err(TryLockError::Error(source)) => Err(Error::new(Operation::Lock, path, source)),
        }
    }

    fn open_scratch(&self, path: &Path) -> Result<Box<dyn ScratchFile>, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(path).map_err(at(Operation::Open, path))?;
        // An open file needs no name. However the process ends, its space is freed.
        fs::remove_file(path).map_err(at(Operation::Remove, path))?;
        Ok(Box::new(RealScratch { file, path: path.to_path_buf() }))
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64, Error> {
        let stat = rustix::fs::statvfs(dir).map_err(|error| at(Operation::Open, dir)(error.into()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

#[derive(Debug)]
struct RealScratch {
    file: File,
    path: PathBuf,
}

impl ScratchFile for RealScratch {
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.file.write_all_at(bytes, offset).map_err(at(Operation::Write, &self.path))
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), Error> {
        self.file.read_exact_at(bytes, offset).map_err(at(Operation::Read, &self.path))
    }

    fn read_ahead(&self, offset: u64, bytes: u64) {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let (offset, bytes) = (offset as libc::off_t, bytes as libc::off_t);
            // SAFETY: the descriptor is open as long as `self`; the call only gives a hint, whose failure has no
            // effect.
            unsafe { libc::posix_fadvise(self.file.as_raw_fd(), offset, bytes, libc::POSIX_FADV_WILLNEED) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, bytes);
    }

    fn truncate(&self, bytes: u64) -> Result<(), Error> {
        self.file.set_len(bytes).map_err(at(Operation::Truncate, &self.path))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
}

impl RealFile {
    /// Reads bytes and writes them to the same place. The handle that appends cannot write elsewhere.
    fn rewrite(&self, mut offset: u64) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        let mut bytes = vec![0; REWRITE_BYTES];
        loop {
            let read = file.read_at(&mut bytes, offset)?;
            if read == 0 {
                return Ok(());
            }
            file.write_all_at(&bytes[..read], offset)?;
            offset += read as u64;
        }
    }

    /// Fails if the path no longer leads to this file.
    fn check_name(&self) -> io::Result<()> {
        let gone =
            |what| io::Error::new(io::ErrorKind::NotFound, format!("the file was {what} while it was open"));
        let found = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(gone("removed or moved")),
            found => found?,
        };
        let own = self.file.metadata()?;
        if (own.dev(), own.ino()) == (found.dev(), found.ino()) { Ok(()) } else { Err(gone("replaced")) }
    }
}

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(at(Operation::Append, &self.path))
    }

    fn sync_data(&mut self) -> Result<(), Error> {
        self.file.sync_data().and_then(|()| self.check_name()).map_err(at(Operation::SyncData, &self.path))
    }

    fn write_again(&mut self, offset: u64) -> Result<(), Error> {
        self.rewrite(offset).map_err(at(Operation::Write, &self.path))
    }

    fn truncate(&mut self, bytes: u64) -> Result<(), Error> {
        self.file.set_len(bytes).map_err(at(Operation::Truncate, &self.path))
    }

    fn len(&self) -> Result<u64, Error> {
        Ok(self.file.metadata().map_err(at(Operation::Open, &self.path))?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_behave() {
        let dir = tempfile::tempdir().unwrap();
        crate::testing::disk::tests::disk_suite(&RealDisk, dir.path());
    }

    #[test]
    fn bytes_that_are_written_again_stay_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c/file");
        RealDisk.create_dir_all(path.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(2 * REWRITE_BYTES + 77).collect();
        let mut file = RealDisk.open_append(&path).unwrap();
        file.append(&bytes).unwrap();
        for offset in [0, 5, REWRITE_BYTES as u64, bytes.len() as u64] {
            file.write_again(offset).unwrap();
            file.sync_data().unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        file.append(b"more").unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), bytes.len() + 4);
    }

    /// `None` stands for a file that was only removed.
    #[test]
    fn a_sync_notices_that_its_file_is_gone() {
        for replacement in [None, Some("another file")] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            let mut file = RealDisk.open_append(&path).unwrap();
            file.append(b"kept").unwrap();
            file.sync_data().unwrap();
            fs::remove_file(&path).unwrap();
            if let Some(text) = replacement {
                fs::write(&path, text).unwrap();
            }
            file.append(b"lost").unwrap();
            let error = file.sync_data().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
            assert!(error.to_string().contains("while it was open"), "{error}");
        }
    }

    #[test]
    fn scratch_files_behave_and_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        crate::testing::scratch::tests::scratch_suite(&RealDisk, dir.path());
        assert_eq!(RealDisk.list(dir.path()).unwrap(), []);
    }

    #[test]
    fn errors_name_the_path() {
        let error = RealDisk.open_read(Path::new("/nowhere/at/all"), 0).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("cannot open file /nowhere/at/all: "), "{error}");
    }
}
