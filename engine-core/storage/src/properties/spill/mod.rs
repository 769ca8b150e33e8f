//! Property pages beyond the memory budget: pages that were not used for a while are moved to a local file, and come
//! back when they are read.
//!
//! Roles: [`PageMemory`] counts the bytes of a store's pages, knows their limit, and owns the file with its free space
//! (`extents`). `evict` is the writer that moves pages out; [`super::page_table::PageTable`] reads them back; `lost`
//! reports a page that could not be read.
//!
//! Flow: the table entry of a page holds its address or, with the lowest bit set, its place in the file. The writer
//! of a partition visits its pages in a circle, like the clock algorithm: a page that was used since the last visit
//! gets a second chance, one with versions stays, any other is written (unless the file has an up-to-date image) and
//! leaves memory through the epoch. A reader that meets a spilled page reads and builds it, and puts it back by
//! compare-and-swap; the loser of a race drops its own copy. A scan keeps its copies private, so it does not evict
//! pages that others use.
//!
//! The file is temporary: it has no name, and nothing in it outlives the process. Each image carries its page's
//! number and a checksum.
//!
//! What must never happen: a place in the file reused while a reader may read it (so it waits for the epoch); bytes
//! of another page decoded as this one; a page with versions in the file.

pub(super) mod evict;
mod extents;
pub(crate) mod last_page;
pub(crate) mod lost;

use crate::arena::Limbo;
use crate::error::Cause;
use crate::store::MemoryBudget;
use crossbeam_epoch::pin;
use extents::Extents;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tidegraph_platform::{DiskError, ScratchFile};

/// Bytes of a block, the unit of allocation in the file.
const BLOCK: u64 = 4096;
/// Bytes before each image: number of the page (8), length (8), checksum of both and the image (4), unused (4).
const HEADER: usize = 24;
/// Pages that readers bring in are not kept if pages exceed their limit by this fraction.
const HARD: u64 = 16;

/// Why a page could not be moved out or read back.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the spill file cannot be made: {0}")]
    File(#[source] Arc<DiskError>),
    #[error("page {number} in the spill file, bytes {offset} to {end}: {source}")]
    Disk { number: u32, offset: u64, end: u64, source: Arc<DiskError> },
    #[error("spill file {file} is damaged at byte {offset}: {reason}")]
    Damaged {
        file: String,
        offset: u64,
        #[source]
        reason: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl From<Error> for tidegraph_apl::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::File(_) | Error::Disk { .. } => Self::Unavailable(error.to_string()),
            Error::Damaged { .. } => Self::Corrupt(error.to_string()),
        }
    }
}

/// A place in the file. Its word has the lowest bit set, so it is never an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// Number of the first block.
    first: u64,
    blocks: u64,
}

impl Extent {
    const BLOCKS_BITS: u32 = 23;

    pub fn to_word(self) -> u64 {
        self.first << (Self::BLOCKS_BITS + 1) | self.blocks << 1 | 1
    }

    /// Returns the place that a word stands for, if it is one.
    #[inline]
    pub fn of_word(word: u64) -> Option<Self> {
        (word & 1 == 1).then_some(Self {
            first: word >> (Self::BLOCKS_BITS + 1),
            blocks: word >> 1 & ((1 << Self::BLOCKS_BITS) - 1),
        })
    }

    fn offset(self) -> u64 {
        self.first * BLOCK
    }

    fn bytes(self) -> u64 {
        self.blocks * BLOCK
    }
}

/// The file and its free space.
struct Spilled {
    file: Box<dyn ScratchFile>,
    space: Mutex<Space>,
}

/// Free space of the file. Only writers lock it.
#[derive(Default)]
struct Space {
    extents: Extents,
    /// Places that current readers may be reading.
    limbo: Limbo<Extent>,
}

/// Bytes of all pages of a store, their limit, and the spill file.
pub(crate) struct PageMemory {
    /// Bytes of pages in memory, with what their cells own. Signed, because a page may be counted after it has gone.
    resident: AtomicI64,
    /// Limit of these bytes.
    allowed: AtomicU64,
    /// After a round that evicted too little, no other round starts before pages exceed this number of bytes.
    patient_to: AtomicU64,
    /// Bytes of the file in use.
    spilled: AtomicU64,
    /// Number of page tables so far.
    tables: AtomicU32,
    /// The budget and the place of the file, which is created with the first page.
    budget: Option<MemoryBudget>,
    spill: OnceLock<Spilled>,
    /// Why a change could not be applied. Nothing may be published afterwards.
    broken: OnceLock<Error>,
    /// Why the last page could not be moved out.
    stuck: Mutex<Option<Error>>,
}

impl Default for PageMemory {
    fn default() -> Self {
        Self {
            resident: AtomicI64::new(0),
            allowed: AtomicU64::new(u64::MAX),
            patient_to: AtomicU64::new(0),
            spilled: AtomicU64::new(0),
            tables: AtomicU32::new(0),
            budget: None,
            spill: OnceLock::new(),
            broken: OnceLock::new(),
            stuck: Mutex::new(None),
        }
    }
}

impl PageMemory {
    /// Makes a room with a budget, if there is one.
    pub fn new(budget: Option<MemoryBudget>) -> Self {
        let allowed = AtomicU64::new(budget.as_ref().map_or(u64::MAX, |budget| budget.bytes));
        Self { budget, allowed, ..Self::default() }
    }

    /// Returns the memory budget of the store, if it has one.
    #[inline]
    pub fn budget(&self) -> Option<u64> {
        self.budget.as_ref().map(|budget| budget.bytes)
    }

    /// Returns whether there is a budget.
    #[inline]
    pub fn is_bounded(&self) -> bool {
        self.budget.is_some()
    }

    /// Returns the limit of pages in bytes.
    pub fn allowed(&self) -> u64 {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Returns the file, creating it first if necessary. Only writers call it.
    fn file(&self, budget: &MemoryBudget) -> Result<&Spilled, DiskError> {
        /// Stores in the same directory need different files even on systems where open files keep their names.
        static FILES: AtomicU64 = AtomicU64::new(0);
        if let Some(spill) = self.spill.get() {
            return Ok(spill);
        }
        let name = format!("spill-{}", FILES.fetch_add(1, Ordering::Relaxed));
        budget.disk.create_dir_all(&budget.dir)?;
        let file = budget.disk.open_scratch(&budget.dir.join(name))?;
        Ok(self.spill.get_or_init(|| Spilled { file, space: Mutex::default() }))
    }

    /// Returns a number for a page table, which the images of its pages carry.
    pub fn number_table(&self) -> u32 {
        self.tables.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts bytes of pages that were added (or removed, below zero).
    #[inline]
    pub fn count(&self, bytes: i64) {
        self.resident.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of pages in memory.
    pub fn resident(&self) -> u64 {
        self.resident.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the bytes of the file in use.
    pub fn spilled(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    /// Sets the limit of pages in bytes.
    pub fn allow(&self, bytes: u64) {
        self.allowed.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes by which pages exceed their limit.
    #[inline]
    pub fn excess(&self) -> u64 {
        self.resident().saturating_sub(self.allowed.load(Ordering::Relaxed))
    }

    /// Returns whether pages exceed their limit and an eviction round is worth starting.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.resident() > self.allowed().max(self.patient_to.load(Ordering::Relaxed))
    }

    /// Notes whether a round evicted enough, and otherwise the number of further bytes after which another one may.
    pub fn note_round(&self, enough: bool, more: u64) {
        let patient_to = if enough { 0 } else { self.resident() + more };
        self.patient_to.store(patient_to, Ordering::Relaxed);
    }

    /// Returns whether pages that readers bring in can be kept.
    pub fn keeps_pages(&self) -> bool {
        let allowed = self.allowed.load(Ordering::Relaxed);
        self.resident() <= allowed.saturating_add(allowed / HARD)
    }

    /// Marks the store as broken: a change could not be applied, so nothing more may become visible.
    pub fn fail(&self, error: Error) {
        tracing::error!(%error, "a change cannot be applied");
        let _ = self.broken.set(error);
    }

    /// Returns why nothing may be written any more.
    pub fn broken(&self) -> Option<&Error> {
        self.broken.get()
    }

    /// Returns why pages could not be moved out the last time.
    pub fn stuck(&self) -> Option<Error> {
        self.stuck.lock().clone()
    }

    fn write(&self, owner: u64, image: &[u8]) -> Result<Option<Extent>, Error> {
        let Some(budget) = &self.budget else { return Ok(None) };
        let spill = self.file(budget).map_err(|source| Error::File(source.into()))?;
        let mut frame = Vec::with_capacity((HEADER + image.len()).next_multiple_of(BLOCK as usize));
        frame.extend(owner.to_le_bytes());
        frame.extend((image.len() as u64).to_le_bytes());
        frame.extend(checksum(owner, image).to_le_bytes());
        frame.resize(HEADER, 0);
        frame.extend_from_slice(image);
        frame.resize(frame.len().next_multiple_of(BLOCK as usize), 0);
        let blocks = frame.len() as u64 / BLOCK;
        if blocks >> Extent::BLOCKS_BITS != 0 {
            return Ok(None);
        }
        let extent = Extent { first: spill.space.lock().take(blocks), blocks };
        let written = spill.file.write_at(&frame, extent.offset());
        if let Err(source) = written {
            spill.space.lock().extents.give_back(extent.first, extent.blocks);
            return Err(disk_error(owner, extent, source));
        }
        self.spilled.fetch_add(extent.bytes(), Ordering::Relaxed);
        Ok(Some(extent))
    }

    /// Reads the image of a page. The caller's guard was pinned when the table named the place.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`] if the file cannot be read; [`Error::Damaged`] if it holds another page there, or the checksum
    /// differs.
    pub fn read(&self, owner: u64, extent: Extent) -> Result<Vec<u8>, Error> {
        let Some(spill) = self.spill.get() else {
            return Err(self.damaged(extent, "there is no spill file"));
        };
        let mut frame = vec![0; extent.bytes() as usize];
        spill
            .file
            .read_at(&mut frame, extent.offset())
            .map_err(|source| disk_error(owner, extent, source))?;
        let word =
            |at: usize| frame[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let (found, length, sum) = (word(0), word(8), word(16) as u32);
        if found != owner {
            return Err(self.damaged(extent, format!("it holds page {found:#x} instead of {owner:#x}")));
        }
        if length > (frame.len() - HEADER) as u64 {
            return Err(self.damaged(extent, format!("an image of {length} bytes does not fit")));
        }
        frame.truncate(HEADER + length as usize);
        frame.drain(..HEADER);
        let computed = checksum(owner, &frame);
        if computed != sum {
            let reason = format!("the checksum of {length} bytes is {computed:08x} instead of {sum:08x}");
            return Err(self.damaged(extent, reason));
        }
        Ok(frame)
    }

    /// Announces that an image will be read soon.
    pub fn read_ahead(&self, extent: Extent) {
        if let Some(spill) = self.spill.get() {
            spill.file.read_ahead(extent.offset(), extent.bytes());
        }
    }

    /// Gives back a place that no entry names any more. Readers may still be reading it.
    pub fn retire(&self, extent: Extent) {
        if let Some(spill) = self.spill.get() {
            self.spilled.fetch_sub(extent.bytes(), Ordering::Relaxed);
            spill.space.lock().limbo.push(extent, &pin());
        }
    }

    /// Frees the places that readers have left, and truncates the file if its end is free.
    pub fn tidy(&self) {
        let Some(spill) = self.spill.get() else { return };
        let mut space = spill.space.lock();
        let guard = pin();
        space.limbo.seal(&guard);
        space.collect();
        if let Some(blocks) = space.extents.cut()
            && let Err(error) = spill.file.truncate(blocks * BLOCK)
        {
            tracing::warn!(%error, "the spill file could not be cut");
        }
        drop(space);
        guard.flush();
    }

    /// Makes the error of bytes that are not what was written.
    pub fn damaged(&self, extent: Extent, reason: impl Into<Cause>) -> Error {
        let file = self.spill.get().map_or_else(String::new, |spill| spill.file.path().display().to_string());
        let reason: Cause = reason.into();
        Error::Damaged { file, offset: extent.offset(), reason: reason.into() }
    }
}

impl Space {
    fn collect(&mut self) {
        while let Some(free) = self.limbo.pop() {
            free.into_iter().for_each(|extent| self.extents.give_back(extent.first, extent.blocks));
        }
    }

    fn take(&mut self, blocks: u64) -> u64 {
        self.collect();
        self.extents.take(blocks)
    }
}

fn checksum(owner: u64, image: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&owner.to_le_bytes());
    let sum = crc32c::crc32c_append(sum, &(image.len() as u64).to_le_bytes());
    crc32c::crc32c_append(sum, image)
}

fn disk_error(owner: u64, extent: Extent, source: DiskError) -> Error {
    let (offset, end) = (extent.offset(), extent.offset() + extent.bytes());
    Error::Disk { number: owner as u32, offset, end, source: source.into() }
}
