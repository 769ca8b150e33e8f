//! Scratch files on the disk that fails on demand. They keep their name, so that a test can damage their content.

use super::FaultyDisk;
use crate::disk::{Error, Operation, ScratchFile};
use std::io;
use std::path::{Path, PathBuf};

/// A scratch file of a [`FaultyDisk`].
#[derive(Debug)]
pub(crate) struct FaultyScratch {
    disk: FaultyDisk,
    path: PathBuf,
}

impl FaultyScratch {
    pub fn new(disk: FaultyDisk, path: &Path) -> Self {
        Self { disk, path: path.to_path_buf() }
    }
}

impl ScratchFile for FaultyScratch {
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.disk.with_bytes(Operation::Write, &self.path, |file, space| {
            let end = offset as usize + bytes.len();
            let more = end.saturating_sub(file.len()) as u64;
            if let Some(space) = space {
                *space = space
                    .checked_sub(more)
                    .ok_or_else(|| io::Error::new(io::ErrorKind::StorageFull, "no space left on device"))?;
            }
            file.resize(end.max(file.len()), 0);
            file[offset as usize..end].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), Error> {
        self.disk.with_bytes(Operation::Read, &self.path, |file, _| {
            let there = file.get(offset as usize..).and_then(|rest| rest.get(..bytes.len()));
            bytes.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn truncate(&self, bytes: u64) -> Result<(), Error> {
        self.disk.with_bytes(Operation::Truncate, &self.path, |file, _| {
            file.resize(bytes as usize, 0);
            Ok(())
        })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Disk;

    /// Checks what every disk must do with scratch files.
    pub(crate) fn scratch_suite(disk: &dyn Disk, dir: &Path) {
        disk.create_dir_all(dir).unwrap();
        let path = dir.join("scratch");
        let file = disk.open_scratch(&path).unwrap();
        file.write_at(b"later", 10).unwrap();
        file.write_at(b"first", 0).unwrap();
        file.write_at(b"LATER", 10).unwrap();
        let mut bytes = [0; 15];
        file.read_ahead(0, 15);
        file.read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"first\0\0\0\0\0LATER");
        let error = file.read_at(&mut bytes, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("scratch"), "{error}");
        file.truncate(5).unwrap();
        assert!(file.read_at(&mut bytes[..5], 0).is_ok());
        assert!(file.read_at(&mut bytes[..6], 0).is_err());
        assert_eq!(file.path(), path);
    }

    #[test]
    fn scratch_files_behave() {
        scratch_suite(&FaultyDisk::new(1), Path::new("/dir"));
    }

    #[test]
    fn scratch_files_fail_on_demand() {
        let (disk, path) = (FaultyDisk::new(1), Path::new("/dir/scratch"));
        disk.create_dir_all(Path::new("/dir")).unwrap();
        let file = disk.open_scratch(path).unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        disk.set_space(Some(10));
        assert!(file.write_at(&[2; 20], 95).unwrap_err().is_full());
        file.write_at(&[2; 10], 95).unwrap();
        disk.flip(path, 3, 0xff);
        let mut bytes = [0; 5];
        file.read_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [1, 1, 1, 0xfe, 1]);
        disk.fail_reads(true);
        assert!(file.read_at(&mut bytes, 0).is_err());
    }
}
