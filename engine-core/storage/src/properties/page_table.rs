//! The table that finds pages by number: in memory, or in the spill file.
//!
//! Flow: the writer puts pages in and takes them out; readers find them under an epoch guard. An entry is one word: the
//! address of a page, or its place in the file ([`super::spill`]), or nothing. A page in the file comes back by
//! compare-and-swap, whoever needs it first; only the writer sends it there.
//!
//! What must never happen: a page kept beyond the guard under which it was found; the file's image of a page used after
//! the page was changed.

use super::bytes::{Loaded, Texts};
use super::column::text_heap_bytes;
use super::overflow::Overflow;
use super::page::{Block, Page, Place, ROW_BITS, load_pair, owning_columns};
use super::sets::{Set, Sets, Shape};
use super::spill::{Error, Extent, Room, lost, passing};
use super::undo::overflow_at;
use crate::virtual_array::{VirtualArray, ZeroValid};
use crossbeam_epoch::Guard;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tidegraph_types::Version;

/// Pages of a partition at most: the highest places are marks of the index.
pub(super) const PAGES: usize = (1 << (32 - ROW_BITS)) - 1;

/// Entry of the page table.
struct PageEntry {
    /// Address of the page; or, with the lowest bit set, its place in the file; or null.
    block: AtomicPtr<Block>,
    /// Version of the newest write.
    modified: AtomicU64,
    /// Where the file has the page as it is now; 0: nowhere. Only the writer changes it.
    image: AtomicU64,
    /// No version before this one sees anything of the page.
    begin: AtomicU64,
    /// Number of its set: where a scan has nothing to look for, it does not touch the page.
    set: AtomicU32,
    /// Somebody looked for a row since the writer came by.
    used: AtomicBool,
}

// SAFETY: a null pointer, numbers that are zero, and `false`.
unsafe impl ZeroValid for PageEntry {}

/// All pages of a partition by number: what readers see.
pub(crate) struct PageTable {
    entries: VirtualArray<PageEntry>,
    end: AtomicU32,
    room: Arc<Room>,
    /// Tells the images of this table from those of others.
    number: u32,
    /// Sets that pages are of, by number.
    sets: boxcar::Vec<Arc<Set>>,
}

impl Default for PageTable {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

/// A page for one look at it.
pub(crate) enum Peek<'g> {
    /// The one that all see.
    Shared(Page<'g>),
    /// A copy that goes with this.
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

/// Bytes of a page with what its cells own.
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
    /// An empty table, whose pages count for a room.
    pub fn new(room: Arc<Room>) -> Self {
        let number = room.number_table();
        Self {
            entries: VirtualArray::new(PAGES),
            end: AtomicU32::new(0),
            room,
            number,
            sets: boxcar::Vec::new(),
        }
    }

    pub fn room(&self) -> &Room {
        &self.room
    }

    /// One more than the highest number ever used.
    #[inline]
    pub fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }

    #[inline]
    fn entry(&self, number: u32) -> Option<&PageEntry> {
        (number < self.end()).then(|| self.entries.get(number as usize))
    }

    /// A page, if there is one of that number; it is read from the file if it is there. If that fails, there is none and a
    /// note ([`lost`]) says why.
    #[inline]
    pub fn get<'g>(&self, number: u32, guard: &'g Guard) -> Option<Page<'g>> {
        let entry = self.entry(number)?;
        let block = entry.block.load(Ordering::Acquire);
        if Extent::of_word(block.addr() as u64).is_some() {
            return self.bring(number, guard, false);
        }
        // Read first: readers of one page should not all write to its line.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        // SAFETY: a page lives until the epoch has moved on after it was replaced (`super::keeper`), and the guard
        // was pinned when it was still there.
        unsafe { Page::from_raw(block) }
    }

    /// A page, if it is in memory.
    #[inline]
    pub fn hot<'g>(&self, number: u32, _guard: &'g Guard) -> Option<Page<'g>> {
        let block = self.entry(number)?.block.load(Ordering::Acquire);
        if Extent::of_word(block.addr() as u64).is_some() {
            return None;
        }
        // SAFETY: as in `get`.
        unsafe { Page::from_raw(block) }
    }

    /// Whether the newest version has a row that something names. See [`super::Keeper::is_present`].
    #[inline]
    pub fn has_now(&self, place: Place, guard: &Guard) -> bool {
        self.hot(place.page(), guard).is_none_or(|page| page.is_present(place.row()))
    }

    /// A page for one look, with some of its texts at least: what is in the file stays there, and nothing is noted of its
    /// use.
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
            // The word that was looked at: by now the page may be in the file.
            // SAFETY: as in `get`.
            None => unsafe { Page::from_raw(block) }.map(Peek::Shared),
        }
    }

    /// Says that a page will be needed soon.
    pub fn read_ahead(&self, number: u32) {
        if let Some(entry) = self.entry(number)
            && let Some(extent) = Extent::of_word(entry.block.load(Ordering::Relaxed).addr() as u64)
        {
            self.room.read_ahead(extent);
        }
    }

    /// A number of a page among all pages of the store, and whether it is in the file only.
    #[inline]
    pub fn whereabouts(&self, number: u32) -> (u64, bool) {
        let block = self.entry(number).map_or(0, |entry| entry.block.load(Ordering::Relaxed).addr());
        (self.owner(number), Extent::of_word(block as u64).is_some())
    }

    /// Brings a page into memory for the writer, whatever room there is. If that fails, nothing may be written any more.
    pub fn bring_to_write<'g>(&self, number: u32, guard: &'g Guard) -> Option<Page<'g>> {
        let page = self.bring_always(number, guard);
        if page.is_none()
            && let Some(error) = lost::take()
        {
            self.room.fail(error);
        }
        page
    }

    /// Brings a page into memory, whatever room there is.
    pub fn bring_always<'g>(&self, number: u32, guard: &'g Guard) -> Option<Page<'g>> {
        self.hot(number, guard).or_else(|| self.bring(number, guard, true))
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
            if let Some(raw) = passing::find(table, number, word).filter(|_| !always) {
                // SAFETY: this thread read it under a guard that it still holds: it lives as long, and the word means
                // the same image until then.
                return unsafe { Page::from_raw(raw) };
            }
            let loaded = match self.load(number, extent, Texts::All) {
                Ok(loaded) => loaded,
                Err(error) => {
                    lost::note(error);
                    return None;
                }
            };
            if !always && !self.room.keeps() {
                let raw = loaded.page().as_raw();
                // SAFETY: nobody else knows the page, and it lives until this guard is gone.
                unsafe { guard.defer_unchecked(move || drop(loaded)) };
                passing::remember(table, number, word, raw);
                // SAFETY: as above.
                return unsafe { Page::from_raw(raw) };
            }
            let (raw, bytes) = (loaded.page().as_raw(), loaded.page().header().bytes.load(Ordering::Relaxed));
            // The same word means the same image: a place in the file is not used anew while the guard is pinned.
            if entry.block.compare_exchange(block, raw, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.room.count(bytes as i64);
                // Now the table's. SAFETY: it lives until the epoch has moved on after it is replaced.
                return unsafe { Page::from_raw(loaded.into_page().as_raw()) };
            }
        }
    }

    fn load(&self, number: u32, extent: Extent, texts: Texts<'_>) -> Result<Loaded, Error> {
        let image = self.room.read(self.owner(number), extent)?;
        let wrong = |reason: String| self.room.damaged(extent, reason);
        let set = self.entries.get(number as usize).set.load(Ordering::Relaxed);
        let own = self.sets.get(set as usize).ok_or_else(|| wrong(format!("there is no set {set}")))?;
        let like_own =
            |shape: &Shape| if own.is(shape) { own.clone() } else { Arc::new(Set::new(set, shape)) };
        let loaded =
            Loaded::some_of_set(&image, texts, like_own).map_err(|error| wrong(error.to_string()))?;
        let page = loaded.page();
        if !Arc::ptr_eq(page.set(), own) {
            return Err(wrong(format!("the page is not of set {set}")));
        }
        page.header().bytes.store(whole_bytes(page), Ordering::Relaxed);
        Ok(loaded)
    }

    /// The sets that are known.
    pub fn sets(&self) -> impl Iterator<Item = &Arc<Set>> {
        self.sets.iter().map(|(_, set)| set)
    }

    /// Says that the sets of these pages may be needed: to read them back, and by who plans. Only the writer calls it.
    pub fn know(&self, sets: &Sets) {
        while let Some(set) = sets.get(self.sets.count() as u32) {
            self.sets.push(set.clone());
        }
    }

    /// Number of a page among all pages of the store: its image carries it.
    pub fn owner(&self, number: u32) -> u64 {
        u64::from(self.number) << 32 | u64::from(number)
    }

    /// Where the file has a page as it is now.
    pub fn image(&self, number: u32) -> Option<Extent> {
        Extent::of_word(self.entries.get(number as usize).image.load(Ordering::Relaxed))
    }

    /// Leaves a page without versions, which the file has, to the file. Answers the bytes that its memory was counted
    /// for. The caller retires it.
    pub fn chill(&self, number: u32, extent: Extent) -> u64 {
        let entry = self.entries.get(number as usize);
        let word = extent.to_word();
        entry.image.store(word, Ordering::Relaxed);
        // SAFETY: in the table, and only the writer takes it out: this one.
        let page = unsafe { Page::from_raw(entry.block.load(Ordering::Relaxed)) };
        entry.block.store(ptr::without_provenance_mut(word as usize), Ordering::Release);
        let bytes = page.map_or(0, |page| page.header().bytes.load(Ordering::Relaxed));
        self.room.count(-(bytes as i64));
        bytes
    }

    /// Whether a page was used since this was asked the last time.
    pub fn was_used(&self, number: u32) -> bool {
        let used = &self.entries.get(number as usize).used;
        used.load(Ordering::Relaxed) && used.swap(false, Ordering::Relaxed)
    }

    /// The version from which on rows of a page are seen.
    #[inline]
    pub fn begin(&self, number: u32) -> Version {
        Version(self.entries.get(number as usize).begin.load(Ordering::Acquire))
    }

    /// Hides all rows of a page from versions before this one.
    pub fn set_begin(&self, number: u32, version: Version) {
        self.entries.get(number as usize).begin.store(version.0, Ordering::Release);
    }

    /// Number of the set that a page has, or had before it was given back.
    #[inline]
    pub fn set_of(&self, number: u32) -> u32 {
        self.entries.get(number as usize).set.load(Ordering::Relaxed)
    }

    /// The set that a page has, or had.
    #[inline]
    pub fn set(&self, number: u32) -> Option<&Set> {
        self.sets.get(self.set_of(number) as usize).map(|set| &**set)
    }

    /// Makes room for one more page.
    pub fn extend(&self) -> u32 {
        let number = self.end.load(Ordering::Relaxed);
        self.entries.reserve().unwrap_or_else(|error| panic!("no property page can be made: {error}"));
        let most = self.entries.capacity();
        assert!((number as usize) < most, "a partition has at most {most} property pages");
        self.end.store(number + 1, Ordering::Release);
        number
    }

    /// Puts a page in the place of one in memory, or of none, and answers the one that was there.
    pub fn replace<'g>(&self, number: u32, page: Option<Page<'g>>) -> Option<Page<'g>> {
        let new = page.map_or(ptr::null_mut(), Page::as_raw);
        let entry = self.entries.get(number as usize);
        let old = entry.block.load(Ordering::Relaxed);
        debug_assert!(Extent::of_word(old.addr() as u64).is_none(), "the writer brings a page first");
        // SAFETY: it was in the table, and the caller decides what becomes of it.
        let old = unsafe { Page::from_raw(old) };
        let bytes = |page: Page<'_>| page.header().bytes.load(Ordering::Relaxed);
        let before = old.map_or(0, bytes);
        match page {
            Some(page) => {
                let own = bytes(page).max(page.bytes() as u64);
                page.header().bytes.store(own, Ordering::Relaxed);
                self.room.count(own as i64 - before as i64);
                entry.set.store(page.set().number, Ordering::Relaxed);
            }
            None => {
                self.room.count(-(before as i64));
                entry.begin.store(0, Ordering::Release);
            }
        }
        self.forget_image(entry);
        entry.block.store(new, Ordering::Release);
        old
    }

    /// Notes that a page was written to.
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
            self.room.retire(extent);
        }
    }

    /// Counts bytes that cells of a page own from now on.
    #[inline]
    pub fn add_bytes(&self, page: Page<'_>, bytes: usize) {
        if bytes > 0 {
            page.header().bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.room.count(bytes as i64);
        }
    }

    /// Counts anew what a page takes: texts that were replaced are still counted.
    pub fn recount(&self, page: Page<'_>) {
        let bytes = whole_bytes(page);
        let before = page.header().bytes.swap(bytes, Ordering::Relaxed);
        self.room.count(bytes as i64 - before as i64);
    }

    /// Version of the newest write to a page.
    pub fn modified(&self, number: u32) -> u64 {
        self.entries.get(number as usize).modified.load(Ordering::Acquire)
    }

    pub fn bytes(&self) -> usize {
        self.end() as usize * size_of::<PageEntry>()
    }
}
