//! Finds pages by number, in memory or in the spill file.
//!
//! Flow: the writer inserts and removes pages; readers find them under an epoch guard. An entry is one word: the
//! address of a page, its place in the file ([`super::spill`]), or null. The first thread that needs a spilled page
//! brings it back by compare-and-swap; only the writer moves pages to the file.
//!
//! What must never happen: a page kept longer than the guard under which it was found; the image of a page in the
//! file used after the page has changed.

use super::bytes::{Loaded, Texts};
use super::column::text_heap_bytes;
use super::overflow::Overflow;
use super::page::{Block, Page, ROW_BITS, RowPlace, load_pair, owning_columns};
use super::sets::{Set, Sets, Shape};
use super::spill::{Error, Extent, PageMemory, last_page, lost};
use super::undo::overflow_at;
use crate::virtual_array::{VirtualArray, ZeroValid};
use crossbeam_epoch::Guard;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tidegraph_types::Version;

/// Largest number of pages of a partition. Higher places are marks of the index.
pub(super) const PAGES: usize = (1 << (32 - ROW_BITS)) - 1;

/// Entry of the page table.
struct PageEntry {
    /// Address of the page; or its place in the file, with the lowest bit set; or null.
    block: AtomicPtr<Block>,
    /// Version of the newest write.
    modified: AtomicU64,
    /// Place in the file of an up-to-date image; 0 if there is none. Only the writer changes it.
    image: AtomicU64,
    /// Versions before this one see nothing of the page.
    begin: AtomicU64,
    /// Number of the page's set. A scan that looks for nothing in the set does not touch the page.
    set: AtomicU32,
    /// Whether a row was looked up since the writer's last eviction round.
    used: AtomicBool,
}

// SAFETY: all zeros are a null pointer, numbers, and `false`.
unsafe impl ZeroValid for PageEntry {}

/// All pages of a partition by number, as readers see them.
pub(crate) struct PageTable {
    entries: VirtualArray<PageEntry>,
    end: AtomicU32,
    memory: Arc<PageMemory>,
    /// Distinguishes the images of this table from those of others.
    number: u32,
    /// The sets of pages, by number.
    sets: boxcar::Vec<Arc<Set>>,
}

impl Default for PageTable {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

/// A page for one look.
pub(crate) enum Peek<'g> {
    /// The page in the table.
    Shared(Page<'g>),
    /// A private copy.
    Own(Loaded),
}

impl Peek<'_> {
    #[inline]
    pub fn page(&self) -> Page<'_> {
        match self {
            Self::Shared(page) => *page,
            Self::Own(loaded) => loaded.page(),
        }
    }
}

/// Returns the bytes of a page with what its cells own.
pub(crate) fn whole_bytes(page: Page<'_>) -> u64 {
    let set = page.set();
    let mut bytes = page.bytes();
    for row in 0..page.header().used.load(Ordering::Relaxed) as usize {
        bytes += page.ids().map_or(0, |ids| text_heap_bytes(load_pair(&ids[row])));
        bytes += owning_columns(set).map(|column| text_heap_bytes(page.load(column, row))).sum::<usize>();
        let overflow = page.overflows().map_or(0, |overflows| overflows[row].load(Ordering::Relaxed));
        // SAFETY: the cell's own overflow; the page is the caller's.
        bytes += unsafe { overflow_at(overflow) }.map_or(0, Overflow::heap_bytes);
    }
    bytes as u64
}

impl PageTable {
    /// Makes an empty table whose pages count towards a memory budget.
    pub fn new(memory: Arc<PageMemory>) -> Self {
        let number = memory.number_table();
        Self {
            entries: VirtualArray::new(PAGES),
            end: AtomicU32::new(0),
            memory,
            number,
            sets: boxcar::Vec::new(),
        }
    }

    /// Returns the memory accounting of the store's pages.
    pub fn memory(&self) -> &PageMemory {
        &self.memory
    }

    /// Returns one more than the highest number ever used.
    #[inline]
    pub fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }

    #[inline]
    fn entry(&self, number: u32) -> Option<&PageEntry> {
        (number < self.end()).then(|| self.entries.get(number as usize))
    }

    /// Returns a page, reading it from the file if it is there. If that fails, returns `None` and leaves a note
    /// ([`lost`]).
    #[inline]
    pub fn get<'g>(&self, number: u32, guard: &'g Guard) -> Option<Page<'g>> {
        let entry = self.entry(number)?;
        let block = entry.block.load(Ordering::Acquire);
        if Extent::of_word(block.addr() as u64).is_some() {
            return self.bring(number, guard, false);
        }
        // Load first, so that readers of one page do not all write to its line.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        // SAFETY: a replaced page is retired through the epoch (`super::page_writer`), and the guard was pinned while
        // it was in the table.
        unsafe { Page::from_raw(block) }
    }

    /// Returns a page if it is in memory.
    #[inline]
    pub fn resident<'g>(&self, number: u32, _guard: &'g Guard) -> Option<Page<'g>> {
        let block = self.entry(number)?.block.load(Ordering::Acquire);
        if Extent::of_word(block.addr() as u64).is_some() {
            return None;
        }
        // SAFETY: as in `get`.
        unsafe { Page::from_raw(block) }
    }

    /// Returns whether the newest version has the row at a place. See [`super::PageWriter::is_present`].
    #[inline]
    pub fn has_now(&self, place: RowPlace, guard: &Guard) -> bool {
        self.resident(place.page(), guard).is_none_or(|page| page.is_present(place.row()))
    }

    /// Returns a page for one look, with at least some of its texts. A spilled page stays in the file, and the look
    /// does not count as use.
    pub fn peek<'g>(&self, number: u32, texts: Texts<'_>, _guard: &'g Guard) -> Option<Peek<'g>> {
        let block = self.entry(number)?.block.load(Ordering::Acquire);
        match Extent::of_word(block.addr() as u64) {
            Some(extent) if !lost::is_noted() => match self.load(number, extent, texts) {
                Ok(loaded) => Some(Peek::Own(loaded)),
                Err(error) => {
                    lost::note(error);
                    None
                }
            },
            Some(_) => None,
            // SAFETY: as in `get`. This is the word that was checked; by now the page may be in the file.
            None => unsafe { Page::from_raw(block) }.map(Peek::Shared),
        }
    }

    /// Announces that a page will be needed soon.
    pub fn read_ahead(&self, number: u32) {
        if let Some(entry) = self.entry(number)
            && let Some(extent) = Extent::of_word(entry.block.load(Ordering::Relaxed).addr() as u64)
        {
            self.memory.read_ahead(extent);
        }
    }

    /// Returns the number of a page among all pages of the store, and whether it is only in the file.
    #[inline]
    pub fn whereabouts(&self, number: u32) -> (u64, bool) {
        let block = self.entry(number).map_or(0, |entry| entry.block.load(Ordering::Relaxed).addr());
        (self.owner(number), Extent::of_word(block as u64).is_some())
    }

    /// Brings a page into memory for the writer, even beyond the budget. If that fails, the store refuses further
    /// changes.
    pub fn bring_to_write<'g>(&self, number: u32, guard: &'g Guard) -> Option<Page<'g>> {
        let page = self.bring_always(number, guard);
        if page.is_none()
            && let Some(error) = lost::take()
        {
            self.memory.fail(error);
        }
        page
    }

    /// Brings a page into memory, even beyond the budget.
    pub fn bring_always<'g>(&self, number: u32, guard: &'g Guard) -> Option<Page<'g>> {
        self.resident(number, guard).or_else(|| self.bring(number, guard, true))
    }

    #[cold]
    fn bring<'g>(&self, number: u32, guard: &'g Guard, always: bool) -> Option<Page<'g>> {
        let entry = self.entry(number)?;
        loop {
            let block = entry.block.load(Ordering::Acquire);
            let Some(extent) = Extent::of_word(block.addr() as u64) else {
                // SAFETY: as in `get`.
                return unsafe { Page::from_raw(block) };
            };
            if lost::is_noted() {
                return None;
            }
            let (table, word) = (ptr::from_ref(self).addr(), block.addr());
            if let Some(raw) = last_page::find(table, number, word).filter(|_| !always) {
                // SAFETY: this thread read the page under a guard that it still holds, so the page is alive, and the
                // word means the same image until then.
                return unsafe { Page::from_raw(raw) };
            }
            let loaded = match self.load(number, extent, Texts::All) {
                Ok(loaded) => loaded,
                Err(error) => {
                    lost::note(error);
                    return None;
                }
            };
            if !always && !self.memory.keeps_pages() {
                let raw = loaded.page().as_raw();
                // SAFETY: nobody else knows the page, and it lives until this guard has gone.
                unsafe { guard.defer_unchecked(move || drop(loaded)) };
                last_page::remember(table, number, word, raw);
                // SAFETY: as above.
                return unsafe { Page::from_raw(raw) };
            }
            let (raw, bytes) = (loaded.page().as_raw(), loaded.page().header().bytes.load(Ordering::Relaxed));
            // The same word means the same image: a place in the file is not reused while the guard is pinned.
            if entry.block.compare_exchange(block, raw, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.memory.count(bytes as i64);
                // SAFETY: the page now belongs to the table, which retires it through the epoch.
                return unsafe { Page::from_raw(loaded.into_page().as_raw()) };
            }
        }
    }

    fn load(&self, number: u32, extent: Extent, texts: Texts<'_>) -> Result<Loaded, Error> {
        let image = self.memory.read(self.owner(number), extent)?;
        let wrong = |reason: String| self.memory.damaged(extent, reason);
        let set = self.entries.get(number as usize).set.load(Ordering::Relaxed);
        let own = self.sets.get(set as usize).ok_or_else(|| wrong(format!("there is no set {set}")))?;
        let like_own =
            |shape: &Shape| if own.is(shape) { own.clone() } else { Arc::new(Set::new(set, shape)) };
        let loaded = Loaded::some_of_set(&image, texts, like_own)
            .map_err(|error| self.memory.damaged(extent, error))?;
        let page = loaded.page();
        if !Arc::ptr_eq(page.set(), own) {
            return Err(wrong(format!("the page is not of set {set}")));
        }
        page.header().bytes.store(whole_bytes(page), Ordering::Relaxed);
        Ok(loaded)
    }

    /// Returns the known sets.
    pub fn sets(&self) -> impl Iterator<Item = &Arc<Set>> {
        self.sets.iter().map(|(_, set)| set)
    }

    /// Makes sets known to readers: to read pages back, and to the planner. Only the writer calls it.
    pub fn publish_sets(&self, sets: &Sets) {
        while let Some(set) = sets.get(self.sets.count() as u32) {
            self.sets.push(set.clone());
        }
    }

    /// Returns the number of a page among all pages of the store, which its image carries.
    pub fn owner(&self, number: u32) -> u64 {
        u64::from(self.number) << 32 | u64::from(number)
    }

    /// Returns the place of the up-to-date image of a page.
    pub fn image(&self, number: u32) -> Option<Extent> {
        Extent::of_word(self.entries.get(number as usize).image.load(Ordering::Relaxed))
    }

    /// Replaces a page without versions by its place in the file. Returns the bytes that it counted for. The caller
    /// retires it.
    pub fn move_to_file(&self, number: u32, extent: Extent) -> u64 {
        let entry = self.entries.get(number as usize);
        let word = extent.to_word();
        entry.image.store(word, Ordering::Relaxed);
        // SAFETY: the page is in the table, and only the writer, which calls this, removes it.
        let page = unsafe { Page::from_raw(entry.block.load(Ordering::Relaxed)) };
        entry.block.store(ptr::without_provenance_mut(word as usize), Ordering::Release);
        let bytes = page.map_or(0, |page| page.header().bytes.load(Ordering::Relaxed));
        self.memory.count(-(bytes as i64));
        bytes
    }

    /// Returns whether a page was used since the last call.
    pub fn was_used(&self, number: u32) -> bool {
        let used = &self.entries.get(number as usize).used;
        used.load(Ordering::Relaxed) && used.swap(false, Ordering::Relaxed)
    }

    /// Returns the version from which on rows of a page are visible.
    #[inline]
    pub fn begin(&self, number: u32) -> Version {
        Version(self.entries.get(number as usize).begin.load(Ordering::Acquire))
    }

    /// Hides all rows of a page from earlier versions.
    pub fn set_begin(&self, number: u32, version: Version) {
        self.entries.get(number as usize).begin.store(version.0, Ordering::Release);
    }

    /// Returns the number of the set that a page has, or had before it was given back.
    #[inline]
    pub fn set_of(&self, number: u32) -> u32 {
        self.entries.get(number as usize).set.load(Ordering::Relaxed)
    }

    /// Returns the set that a page has, or had.
    #[inline]
    pub fn set(&self, number: u32) -> Option<&Set> {
        self.sets.get(self.set_of(number) as usize).map(|set| &**set)
    }

    /// Adds an entry for one more page.
    pub fn extend(&self) -> u32 {
        let number = self.end.load(Ordering::Relaxed);
        self.entries.reserve().unwrap_or_else(|error| panic!("no property page can be made: {error}"));
        let most = self.entries.capacity();
        assert!((number as usize) < most, "a partition has at most {most} property pages");
        self.end.store(number + 1, Ordering::Release);
        number
    }

    /// Replaces a page in memory, or none, and returns the old one.
    pub fn replace<'g>(&self, number: u32, page: Option<Page<'g>>) -> Option<Page<'g>> {
        let new = page.map_or(ptr::null_mut(), Page::as_raw);
        let entry = self.entries.get(number as usize);
        let old = entry.block.load(Ordering::Relaxed);
        debug_assert!(Extent::of_word(old.addr() as u64).is_none(), "the writer brings a page first");
        // SAFETY: it was in the table, and the caller decides what happens to it.
        let old = unsafe { Page::from_raw(old) };
        let bytes = |page: Page<'_>| page.header().bytes.load(Ordering::Relaxed);
        let before = old.map_or(0, bytes);
        match page {
            Some(page) => {
                let own = bytes(page).max(page.bytes() as u64);
                page.header().bytes.store(own, Ordering::Relaxed);
                self.memory.count(own as i64 - before as i64);
                entry.set.store(page.set().number, Ordering::Relaxed);
            }
            None => {
                self.memory.count(-(before as i64));
                entry.begin.store(0, Ordering::Release);
            }
        }
        self.forget_image(entry);
        entry.block.store(new, Ordering::Release);
        old
    }

    /// Notes that a version has written to a page.
    #[inline]
    pub fn modify(&self, number: u32, version: u64) {
        let entry = self.entries.get(number as usize);
        entry.modified.store(version, Ordering::Release);
        self.forget_image(entry);
    }

    /// Notes that a page was changed without a version.
    #[inline]
    pub fn forget_image_of(&self, number: u32) {
        self.forget_image(self.entries.get(number as usize));
    }

    #[inline]
    fn forget_image(&self, entry: &PageEntry) {
        if let Some(extent) = Extent::of_word(entry.image.load(Ordering::Relaxed)) {
            entry.image.store(0, Ordering::Relaxed);
            self.memory.retire(extent);
        }
    }

    /// Counts bytes that cells of a page own from now on.
    #[inline]
    pub fn add_bytes(&self, page: Page<'_>, bytes: usize) {
        if bytes > 0 {
            page.header().bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.memory.count(bytes as i64);
        }
    }

    /// Recounts the bytes of a page, because replaced texts are still counted.
    pub fn recount(&self, page: Page<'_>) {
        let bytes = whole_bytes(page);
        let before = page.header().bytes.swap(bytes, Ordering::Relaxed);
        self.memory.count(bytes as i64 - before as i64);
    }

    /// Returns the version of the newest write to a page.
    pub fn modified(&self, number: u32) -> u64 {
        self.entries.get(number as usize).modified.load(Ordering::Acquire)
    }

    pub fn bytes(&self) -> usize {
        self.end() as usize * size_of::<PageEntry>()
    }
}
