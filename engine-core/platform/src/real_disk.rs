//! The disk of the machine.

#![expect(clippy::disallowed_methods, reason = "the one place that reaches the disk")]

use crate::disk::{Disk, DiskFile, DiskLock, Error, FileInfo, Operation, ScratchFile};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The disk of the machine, through `std::fs`.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealDisk;

fn at(operation: Operation, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::new(operation, path, source)
}

impl Disk for RealDisk {
    fn create_dir_all(&self, dir: &Path) -> Result<(), Error> {
        fs::create_dir_all(dir).map_err(at(Operation::CreateDir, dir))
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

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(at(Operation::Append, &self.path))
    }

    fn sync_data(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(at(Operation::SyncData, &self.path))
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
