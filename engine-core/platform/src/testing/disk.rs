//! A disk in memory that fails on demand, for tests of code that must survive a crash.
//!
//! Each file has visible bytes and durable bytes; each directory has visible names and changes of names that were not
//! synced. [`FaultyDisk::crash`] discards changes that were not synced, with choices drawn from the seed:
//! * the length of a file is anywhere between the shortest and the longest that the unsynced writes allow;
//! * each 512-byte sector that was not synced holds the new bytes, the old bytes, or zeros;
//! * truncated bytes come back unless the truncation was synced;
//! * of the unsynced changes of names in a directory, a prefix happened and the rest did not.
//!
//! A failed sync behaves as on Linux: the bytes stay visible, later syncs succeed, and the bytes never become durable.
//! Created directories are durable at once.

use super::SeededRandom;
use super::scratch::FaultyScratch;
use crate::Random;
use crate::disk::{Disk, DiskFile, DiskLock, Error, FileInfo, Operation, ScratchFile};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SECTOR_BYTES: usize = 512;

/// A disk in memory that fails on demand. Clones share the disk.
#[derive(Clone, Debug)]
pub struct FaultyDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    random: SeededRandom,
    files: BTreeMap<u64, FileState>,
    next_file: u64,
    dirs: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    pending: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// Number of crashes; handles of an older generation fail.
    generation: u64,
    space_left: Option<u64>,
    operations_left: Option<u64>,
    fail_syncs: u32,
    fail_reads: bool,
    syncs: u64,
}

#[derive(Debug, Default)]
struct FileState {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Bytes below this offset are equal in `seen` and `durable` and cannot be lost.
    safe: usize,
    /// A sync failed: visible bytes from `safe` on never become durable.
    lost: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl NameChange {
    fn dir(&self) -> Option<&Path> {
        match self {
            Self::Set(path, _) | Self::Rename(_, path) | Self::Remove(path) => path.parent(),
        }
    }

    fn apply(self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Self::Set(path, file) => {
                names.insert(path, file);
            }
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(&from) {
                    names.insert(to, file);
                }
            }
            Self::Remove(path) => {
                names.remove(&path);
            }
        }
    }
}

impl FaultyDisk {
    /// Makes an empty disk that draws its choices from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: SeededRandom::new(seed),
            files: BTreeMap::new(),
            next_file: 0,
            dirs: BTreeSet::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending: Vec::new(),
            locks: BTreeSet::new(),
            generation: 0,
            space_left: None,
            operations_left: None,
            fail_syncs: 0,
            fail_reads: false,
            syncs: 0,
        })))
    }

    /// Crashes and restarts the machine: unsynced changes are lost or torn, open files fail, locks are released,
    /// injected faults end.
    pub fn crash(&self) {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        state.generation += 1;
        state.locks.clear();
        state.space_left = None;
        state.operations_left = None;
        state.fail_syncs = 0;
        state.fail_reads = false;
        let mut kept: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for change in std::mem::take(&mut state.pending) {
            let dir = change.dir().map(Path::to_path_buf).unwrap_or_default();
            let goes_on = kept.entry(dir).or_insert(true);
            *goes_on = *goes_on && !state.random.one_in(3);
            if *goes_on {
                change.apply(&mut state.durable_names);
            }
        }
        state.names = state.durable_names.clone();
        for file in state.files.values_mut() {
            file.crash(&state.random);
        }
    }

    /// Releases all locks, as if the process had died and the machine had not.
    pub fn free_locks(&self) {
        self.0.lock().locks.clear();
    }

    /// Limits the disk to `bytes` more bytes; `None` for no limit.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.0.lock().space_left = bytes;
    }

    /// Brings the machine down at the `operations`-th change from now (a write, sync, truncation or change of names):
    /// that change happens in part, and every later operation fails until [`FaultyDisk::crash`].
    pub fn crash_after(&self, operations: u64) {
        self.0.lock().operations_left = Some(operations);
    }

    /// Makes the next `count` syncs of files fail. The bytes that they should have made durable never become durable.
    pub fn fail_syncs(&self, count: u32) {
        self.0.lock().fail_syncs = count;
    }

    /// Makes reads fail, or succeed again.
    pub fn fail_reads(&self, fail: bool) {
        self.0.lock().fail_reads = fail;
    }

    /// Returns the number of syncs of files so far.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.0.lock().syncs
    }

    /// Flips bits of one durable byte, as a failing medium does; does nothing if the byte does not exist.
    pub fn flip(&self, path: &Path, byte: usize, mask: u8) {
        let mut state = self.0.lock();
        let Some(id) = state.names.get(path).copied() else { return };
        if let Some(file) = state.files.get_mut(&id) {
            for bytes in [&mut file.seen, &mut file.durable] {
                if let Some(b) = bytes.get_mut(byte) {
                    *b ^= mask;
                }
            }
        }
    }

    /// Returns the visible bytes of a file; `None` if it does not exist.
    #[must_use]
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.0.lock();
        state.names.get(path).and_then(|id| state.files.get(id)).map(|f| f.seen.clone())
    }

    /// Creates a durable file.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.0.lock();
        let id = state.new_file();
        let file =
            FileState { seen: bytes.to_vec(), durable: bytes.to_vec(), safe: bytes.len(), lost: false };
        state.files.insert(id, file);
        state.names.insert(path.to_path_buf(), id);
        state.durable_names.insert(path.to_path_buf(), id);
    }
}

impl FileState {
    fn crash(&mut self, random: &SeededRandom) {
        let (seen, old) = (&self.seen, &self.durable);
        let longest = seen.len().max(old.len());
        let length = match random.below(4) {
            0 => old.len(),
            1 => seen.len(),
            _ => self.safe + random.below((longest - self.safe) as u64 + 1) as usize,
        };
        let mut bytes = seen[..self.safe].to_vec();
        while bytes.len() < length {
            let end = ((bytes.len() / SECTOR_BYTES + 1) * SECTOR_BYTES).min(length);
            let range = bytes.len()..end;
            let source: &[u8] = match random.below(4) {
                0 => &[],
                1 => old,
                _ => seen,
            };
            let part = source.get(range.start..end.min(source.len())).unwrap_or_default();
            bytes.extend_from_slice(part);
            bytes.resize(end, 0);
        }
        self.safe = bytes.len();
        self.durable = bytes.clone();
        self.seen = bytes;
        self.lost = false;
    }

    fn truncate(&mut self, length: usize, random: &SeededRandom) {
        // The kernel may have written the bytes back before the truncation; then they can come back.
        if !self.lost && random.one_in(2) {
            self.durable.clone_from(&self.seen);
        }
        self.seen.resize(length, 0);
        self.safe = self.safe.min(length);
        // Without the bytes in doubt, the file is safe again.
        self.lost = self.lost && self.safe < length;
    }

    fn sync(&mut self) {
        // After a failure, later bytes could become durable while earlier ones are not. The strictest model keeps the
        // whole file in doubt.
        if !self.lost {
            self.durable.clone_from(&self.seen);
            self.safe = self.seen.len();
        }
    }
}

impl State {
    fn new_file(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file
    }

    /// Counts a change. Returns true if all of it happens, false if the machine goes down during it.
    fn count(&mut self) -> io::Result<bool> {
        match &mut self.operations_left {
            None => Ok(true),
            Some(0) => Err(crashed()),
            Some(left) => {
                *left -= 1;
                Ok(*left > 0)
            }
        }
    }

    fn up(&self) -> io::Result<()> {
        if self.operations_left == Some(0) { Err(crashed()) } else { Ok(()) }
    }

    fn change(&mut self, change: NameChange) {
        change.clone().apply(&mut self.names);
        self.pending.push(change);
    }

    fn require(&self, path: &Path) -> io::Result<u64> {
        self.up()?;
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn crashed() -> io::Error {
    io::Error::other("the machine has crashed")
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "no space left on device")
}

impl FaultyDisk {
    /// Calls `work` with the bytes of a file as readers see them, and how many more fit onto the disk.
    pub(crate) fn with_bytes<T>(
        &self,
        operation: Operation,
        path: &Path,
        work: impl FnOnce(&mut Vec<u8>, &mut Option<u64>) -> io::Result<T>,
    ) -> Result<T, Error> {
        self.run(operation, path, |state| {
            let id = state.require(path)?;
            if operation == Operation::Read && state.fail_reads {
                return Err(io::Error::other("the medium cannot be read"));
            }
            let mut file = state.files.remove(&id).unwrap_or_default();
            let result = work(&mut file.seen, &mut state.space_left);
            state.files.insert(id, file);
            result
        })
    }

    fn run<T>(
        &self,
        operation: Operation,
        path: &Path,
        work: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> Result<T, Error> {
        work(&mut self.0.lock()).map_err(|source| Error::new(operation, path, source))
    }
}

impl Disk for FaultyDisk {
    fn create_dir_all(&self, dir: &Path) -> Result<(), Error> {
        self.run(Operation::CreateDir, dir, |state| {
            state.count()?;
            state.dirs.extend(dir.ancestors().map(Path::to_path_buf));
            Ok(())
        })
    }

    fn list(&self, dir: &Path) -> Result<Vec<FileInfo>, Error> {
        self.run(Operation::List, dir, |state| {
            state.up()?;
            if !state.dirs.contains(dir) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let files = state.names.iter().filter(|(path, _)| path.parent() == Some(dir));
            Ok(files
                .filter_map(|(path, id)| {
                    let name = path.file_name()?.to_str()?.to_owned();
                    Some(FileInfo { name, bytes: state.files.get(id)?.seen.len() as u64 })
                })
                .collect())
        })
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, Error> {
        self.run(Operation::Open, path, |state| {
            state.up()?;
            if !path.parent().is_some_and(|dir| state.dirs.contains(dir)) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let id = match state.names.get(path) {
                Some(id) => *id,
                None => {
                    state.count()?;
                    if state.space_left == Some(0) {
                        return Err(full());
                    }
                    let id = state.new_file();
                    state.files.insert(id, FileState::default());
                    state.change(NameChange::Set(path.to_path_buf(), id));
                    id
                }
            };
            let file =
                FaultyFile { disk: self.clone(), id, generation: state.generation, path: path.to_path_buf() };
            Ok(Box::new(file) as Box<dyn DiskFile>)
        })
    }

    fn open_read(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>, Error> {
        self.run(Operation::Open, path, |state| {
            let id = state.require(path)?;
            let reader = FaultyReader {
                disk: self.clone(),
                id,
                generation: state.generation,
                offset: offset as usize,
            };
            Ok(Box::new(reader) as Box<dyn Read + Send>)
        })
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), Error> {
        self.run(Operation::SyncDir, dir, |state| {
            if !state.count()? {
                return Err(crashed());
            }
            let (done, rest) =
                std::mem::take(&mut state.pending).into_iter().partition(|c| c.dir() == Some(dir));
            state.pending = rest;
            let done: Vec<NameChange> = done;
            for change in done {
                change.apply(&mut state.durable_names);
            }
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.run(Operation::Rename, from, |state| {
            state.require(from)?;
            state.count()?;
            state.change(NameChange::Rename(from.to_path_buf(), to.to_path_buf()));
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> Result<(), Error> {
        self.run(Operation::Remove, path, |state| {
            state.require(path)?;
            state.count()?;
            state.change(NameChange::Remove(path.to_path_buf()));
            Ok(())
        })
    }

    fn lock(&self, path: &Path) -> Result<DiskLock, Error> {
        self.run(Operation::Lock, path, |state| {
            state.up()?;
            if !state.locks.insert(path.to_path_buf()) {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds the lock"));
            }
            let (disk, path, generation) = (self.clone(), path.to_path_buf(), state.generation);
            Ok(DiskLock { _held: Box::new(HeldLock { disk, path, generation }) })
        })
    }

    fn open_scratch(&self, path: &Path) -> Result<Box<dyn ScratchFile>, Error> {
        let mut file = self.open_append(path)?;
        file.truncate(0)?;
        Ok(Box::new(FaultyScratch::new(self.clone(), path)))
    }

    fn free_bytes(&self, _dir: &Path) -> Result<u64, Error> {
        Ok(self.0.lock().space_left.unwrap_or(u64::MAX))
    }
}

struct HeldLock {
    disk: FaultyDisk,
    path: PathBuf,
    generation: u64,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let mut state = self.disk.0.lock();
        if state.generation == self.generation {
            state.locks.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    id: u64,
    generation: u64,
    path: PathBuf,
}

impl FaultyFile {
    fn run<T>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut State, &mut FileState) -> io::Result<T>,
    ) -> Result<T, Error> {
        self.disk.run(operation, &self.path, |state| {
            if state.generation != self.generation {
                return Err(crashed());
            }
            let mut file = state.files.remove(&self.id).unwrap_or_default();
            let result = work(state, &mut file);
            state.files.insert(self.id, file);
            result
        })
    }
}

impl DiskFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.run(Operation::Append, |state, file| {
            let whole = state.count()?;
            let room = state.space_left.unwrap_or(u64::MAX).min(bytes.len() as u64) as usize;
            let written = if whole { room } else { state.random.below(room as u64 + 1) as usize };
            file.seen.extend_from_slice(&bytes[..written]);
            if let Some(space) = &mut state.space_left {
                *space -= written as u64;
            }
            match (whole, room == bytes.len()) {
                (false, _) => Err(crashed()),
                (true, false) => Err(full()),
                (true, true) => Ok(()),
            }
        })
    }

    fn sync_data(&mut self) -> Result<(), Error> {
        self.run(Operation::SyncData, |state, file| {
            state.syncs += 1;
            if !state.count()? {
                // The data may be durable although the call fails.
                if state.random.one_in(2) {
                    file.sync();
                }
                return Err(crashed());
            }
            if state.fail_syncs > 0 {
                state.fail_syncs -= 1;
                file.lost = true;
                return Err(io::Error::other("input/output error"));
            }
            file.sync();
            Ok(())
        })
    }

    fn write_again(&mut self, offset: u64) -> Result<(), Error> {
        self.run(Operation::Write, |state, file| {
            // The bytes are the same, so a crash in between changes nothing.
            if state.count()? {
                file.lost = file.lost && offset > file.safe as u64;
                return Ok(());
            }
            Err(crashed())
        })
    }

    fn truncate(&mut self, bytes: u64) -> Result<(), Error> {
        self.run(Operation::Truncate, |state, file| {
            if !state.count()? {
                return Err(crashed());
            }
            if let Some(space) = &mut state.space_left {
                *space += (file.seen.len() as u64).saturating_sub(bytes);
            }
            file.truncate(bytes as usize, &state.random);
            Ok(())
        })
    }

    fn len(&self) -> Result<u64, Error> {
        self.run(Operation::Open, |state, file| {
            state.up()?;
            Ok(file.seen.len() as u64)
        })
    }
}

struct FaultyReader {
    disk: FaultyDisk,
    id: u64,
    generation: u64,
    offset: usize,
}

impl Read for FaultyReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.0.lock();
        if state.generation != self.generation {
            return Err(crashed());
        }
        state.up()?;
        if state.fail_reads {
            return Err(io::Error::other("input/output error"));
        }
        let rest = state.files.get(&self.id).and_then(|f| f.seen.get(self.offset..)).unwrap_or_default();
        // Returns short reads, as a real file may.
        let n = rest.len().min(out.len());
        let n = if n > 1 { 1 + state.random.below(n as u64) as usize } else { n };
        out[..n].copy_from_slice(&rest[..n]);
        self.offset += n;
        Ok(n)
    }
}

#[cfg(test)]
pub(crate) mod tests;
