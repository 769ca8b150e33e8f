//! Temporary files of queries: rows beyond the memory of a query.
//!
//! All queries of a process share one limit, so that they leave room for the log, which may be on the same disk. A file
//! has no name, so nothing of it is left when its query or the process ends.

use crate::Options;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_exec::{SpillError, SpillFile, SpillFiles};
use tidegraph_platform::disk::{Disk, ScratchFile};
use tidegraph_platform::metric;
use tidegraph_types::ErrorCode;

/// Bytes of a file after which the free space is looked at again.
const STEP_BYTES: u64 = 16 << 20;

/// Where queries put their temporary files.
pub(crate) struct QuerySpill {
    shared: Arc<Shared>,
    /// Number of files since the start.
    made: AtomicU64,
}

struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Most bytes of all files; `None`: as many as are free.
    limit: Option<u64>,
    /// Bytes of all files.
    used: AtomicU64,
}

impl QuerySpill {
    /// `None`: queries may not use the disk.
    pub fn new(options: &Options, disk: Arc<dyn Disk>) -> Option<Self> {
        if options.query_spill_bytes == Some(0) {
            return None;
        }
        let own = || options.data_dir.as_ref().map_or_else(std::env::temp_dir, |dir| dir.join("spill"));
        let dir = options.spill_dir.clone().unwrap_or_else(own);
        let shared = Shared { disk, dir, limit: options.query_spill_bytes, used: AtomicU64::new(0) };
        Some(Self { shared: Arc::new(shared), made: AtomicU64::new(0) })
    }
}

impl SpillFiles for QuerySpill {
    fn create(&self) -> Result<Box<dyn SpillFile>, SpillError> {
        let Shared { disk, dir, .. } = &*self.shared;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("tidegraph-query-{}-{number}", std::process::id()));
        let file = disk.create_dir_all(dir).and_then(|()| disk.open_scratch(&path)).map_err(of_disk)?;
        Ok(Box::new(File { file, end: 0, looked_at: 0, shared: self.shared.clone() }))
    }
}

/// A temporary file.
struct File {
    file: Box<dyn ScratchFile>,
    end: u64,
    /// The end when the free space was last looked at.
    looked_at: u64,
    shared: Arc<Shared>,
}

impl File {
    /// Checks the limit before `bytes` more are written.
    fn make_room(&mut self, bytes: u64) -> Result<(), SpillError> {
        let refused = |message| Err(SpillError::new(ErrorCode::QueryLimitExceeded, message));
        let used = self.shared.used.load(Ordering::Relaxed) + bytes;
        if let Some(limit) = self.shared.limit.filter(|limit| used > *limit) {
            return refused(format!(
                "all queries together have as many bytes in temporary files as they may, {limit}"
            ));
        }
        if self.end == 0 || self.end >= self.looked_at + STEP_BYTES {
            self.looked_at = self.end;
            let dir = &self.shared.dir;
            let free = self.shared.disk.free_bytes(dir).map_err(of_disk)?;
            // Half of what was free stays for others.
            if used > free {
                return refused(format!(
                    "{} has {free} bytes left, and queries have {used} there already",
                    dir.display()
                ));
            }
        }
        Ok(())
    }
}

impl SpillFile for File {
    fn append(&mut self, bytes: &[u8]) -> Result<(), SpillError> {
        let length = bytes.len() as u64;
        self.make_room(length)?;
        self.file.write_at(bytes, self.end).map_err(of_disk)?;
        self.end += length;
        self.shared.used.fetch_add(length, Ordering::Relaxed);
        metric::query_spilled(length);
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), SpillError> {
        self.file.read_at(bytes, offset).map_err(of_disk)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.shared.used.fetch_sub(self.end, Ordering::Relaxed);
    }
}

fn of_disk(error: tidegraph_platform::disk::Error) -> SpillError {
    SpillError::new(ErrorCode::QueryLimitExceeded, error)
}
