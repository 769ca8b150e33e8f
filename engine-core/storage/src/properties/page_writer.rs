//! The writer of a page table: chooses places for rows, grows pages, links undo records, inserts and removes rows.
//!
//! One [`PageWriter`] changes a [`PageTable`] while any number of readers read it. `write` changes rows, `reclaim`
//! frees what no reader needs. Each change links the undo record first, then stores the cells, then sets the row's
//! bit. What is replaced (grown pages, texts, undo records) is retired through the epoch.
//!
//! Rows that fill a fresh page at one version have no undo records; instead the whole page begins at that version. So
//! the rows of a load are read at full speed at once.
//!
//! Contract (STO-1): versions never decrease; a version is written before any reader asks for it; a reader whose
//! version was reclaimed while it read discards what it read. Nothing that such a reader may find leads it to freed
//! memory.

use super::column::{ColumnType, Words, encode, encode_text, text_heap_bytes};
use super::load::SetCache;
use super::overflow::{Content, Entry, Overflow, Values};
use super::page::{Page, RowPlace, larger, load_pair, rows_of_new_page, store_pair};
use super::page_table::PageTable;
use super::read::RowOwner;
use super::sets::{RowKind, Set, Sets, Shape};
use super::undo::{Heads, Previous, Record, Undo, drop_cell, heads, overflow_word};
use crossbeam_epoch::Guard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_types::{Str, Token, Version};

/// The writer's state of a page.
#[derive(Default)]
pub(super) struct PageState {
    pub(super) set: u32,
    /// Number of rows that are present or that older versions may see.
    pub(super) kept: u32,
    /// Number of rows with undo records.
    pub(super) versioned: u32,
    /// Rows that may be reused.
    pub(super) free: Vec<u16>,
    /// Whether the page is listed as having room.
    pub(super) open: bool,
    /// The record that all rows inserted at one version share.
    pub(super) inserted: Option<(Version, *mut Record)>,
    /// Version of the newest note to reclaim the whole page.
    pub(super) noted: Version,
}

/// The pages of a set.
#[derive(Default)]
pub(super) struct SetPages {
    /// Pages that may have room; the last one is filled first.
    pub(super) open: Vec<u32>,
    pub(super) pages: usize,
}

/// The only writer of a page table.
#[derive(Default)]
pub(crate) struct PageWriter {
    pub(super) sets: Sets,
    pub(super) by_set: Vec<SetPages>,
    pub(super) page_states: Vec<PageState>,
    pub(super) free_numbers: Vec<u32>,
    pub(super) known: SetCache,
    /// The page to consider next for eviction.
    pub(super) clock_hand: u32,
}

// SAFETY: the thread that drops the last reference to a shared record of a page state frees it; any thread may do so.
unsafe impl Send for PageWriter {}
// SAFETY: a shared reference only allows reading numbers.
unsafe impl Sync for PageWriter {}

/// A row that has become free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Freed {
    pub owner: RowOwner,
    pub place: RowPlace,
}

/// Result of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changed {
    No,
    Here,
    /// The row is at a new place. The old place holds what older versions see.
    Moved(RowPlace),
}

/// Bytes of rows, by purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bytes {
    pub vertices: usize,
    pub edges: usize,
    pub properties: usize,
    pub ids: usize,
    pub sets: usize,
    pub versions: usize,
}

/// A page table with the epoch guard of one change.
#[derive(Clone, Copy)]
pub(crate) struct TableView<'g> {
    pub table: &'g PageTable,
    pub guard: &'g Guard,
}

impl<'g> TableView<'g> {
    /// Returns a page that the writer has brought into memory.
    pub(super) fn page(self, number: u32) -> Page<'g> {
        self.table
            .resident(number, self.guard)
            .expect("the writer names pages that are there, and brings them first")
    }

    /// Frees words once no reader uses them.
    pub(super) fn retire_words(self, set: &Arc<Set>, column: u16, words: Words) {
        let owns = match set.columns.get(usize::from(column)) {
            Some(column) => column.shape.column.owns() && text_heap_bytes(words) > 0,
            None => words[0] != 0,
        };
        if owns {
            let set = set.clone();
            // SAFETY: the words were replaced in their cell, so only earlier readers still have them.
            unsafe { self.guard.defer_unchecked(move || drop_cell(&set, column, words)) };
        }
    }
}

impl PageWriter {
    /// Returns the number of characteristic sets.
    #[cfg(test)]
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Adds a row that is visible from a version on; without a version, always.
    pub fn insert(
        &mut self,
        view: TableView<'_>,
        version: Option<Version>,
        owner: RowOwner,
        id: Option<&Str>,
        labels: &[Token],
        content: &Content,
        previous: Option<Previous>,
    ) -> RowPlace {
        let kind = match owner {
            RowOwner::Vertex(_) => RowKind::Vertex,
            RowOwner::Edge(_) => RowKind::Edge { with_id: id.is_some() },
        };
        let set = self.sets.intern(&Shape::of(kind, labels, content)).clone();
        let id = id.map_or([0; 2], encode_text);
        self.insert_words(view, version, owner.word(), id, &set, content, previous)
    }

    /// Adds a row whose owner and id are encoded already.
    pub(super) fn insert_words(
        &mut self,
        view: TableView<'_>,
        version: Option<Version>,
        owner: u64,
        id: Words,
        set: &Arc<Set>,
        content: &Content,
        previous: Option<Previous>,
    ) -> RowPlace {
        let place = self.claim(view, set);
        let (page, row) = (view.page(place.page()), place.row());
        match version {
            Some(version) => {
                self.link_insertion(view, page, place, version, previous);
                view.table.modify(place.page(), version.0);
            }
            None => view.table.forget_image_of(place.page()),
        }
        let mut owned = text_heap_bytes(id);
        page.owners()[row].store(owner, Ordering::Release);
        if let Some(ids) = page.ids() {
            store_pair(&ids[row], id);
        }
        let mut beyond: Vec<Entry> = Vec::new();
        for entry in &content.entries {
            match (set.find(entry.key), &entry.values) {
                (Some(at), Values::One(value))
                    if set.columns[usize::from(at)].shape.column != ColumnType::Elsewhere =>
                {
                    let words = encode(value);
                    owned += owned_bytes(set, at, words);
                    set.profile.widen(at, set.columns[usize::from(at)].shape.column, words);
                    page.column(at).store(row, words);
                }
                _ => beyond.push(entry.clone()),
            }
        }
        if let Some(overflows) = page.overflows() {
            let overflow = Overflow { entries: beyond.into() };
            owned += overflow.heap_bytes();
            overflows[row].store(overflow_word(overflow), Ordering::Release);
        }
        view.table.add_bytes(page, owned);
        let bits = &page.present()[row / 64];
        bits.store(bits.load(Ordering::Relaxed) | 1 << (row % 64), Ordering::Release);
        place
    }

    /// Claims an unused row of a set.
    pub(super) fn claim(&mut self, view: TableView<'_>, set: &Arc<Set>) -> RowPlace {
        let number = set.number as usize;
        if self.by_set.len() <= number {
            self.by_set.resize_with(number + 1, SetPages::default);
        }
        loop {
            let Some(&last) = self.by_set[number].open.last() else {
                self.open_page(view, set);
                continue;
            };
            let state = &mut self.page_states[last as usize];
            if !state.open || state.set != set.number {
                // The page was given back since it was listed.
                self.by_set[number].open.pop();
                continue;
            }
            let Some(mut page) = view.table.bring_to_write(last, view.guard) else {
                // The page cannot be read back. The store refuses further changes, so it only matters that this ends.
                state.open = false;
                self.by_set[number].open.pop();
                continue;
            };
            state.kept += 1;
            if let Some(row) = state.free.pop() {
                set.profile.count(true);
                return RowPlace::new(last, usize::from(row));
            }
            let row = page.header().used.load(Ordering::Relaxed) as usize;
            if row == page.capacity() {
                if larger(row).is_none() {
                    state.kept -= 1;
                    state.open = false;
                    self.by_set[number].open.pop();
                    continue;
                }
                page = grow(view, last, page);
            }
            page.header().used.store(row as u32 + 1, Ordering::Release);
            set.profile.count(true);
            return RowPlace::new(last, row);
        }
    }

    fn open_page(&mut self, view: TableView<'_>, set: &Arc<Set>) {
        let number = self.free_numbers.pop().unwrap_or_else(|| view.table.extend());
        let by_set = &mut self.by_set[set.number as usize];
        by_set.open.push(number);
        by_set.pages += 1;
        view.table.publish_sets(&self.sets);
        let page = Page::allocate(set, rows_of_new_page(by_set.pages - 1));
        view.table.replace(number, Some(page));
        if self.page_states.len() <= number as usize {
            self.page_states.resize_with(number as usize + 1, PageState::default);
        }
        self.page_states[number as usize] = PageState { set: set.number, open: true, ..PageState::default() };
    }

    fn heads<'g>(page: Page<'g>) -> &'g Heads {
        if page.undo().is_none() {
            let heads = Box::into_raw(Box::new(heads(page.capacity())));
            page.header().undo.store(heads, Ordering::Release);
        }
        page.undo().expect("the heads were just put there, by the only writer")
    }

    /// Sets the version from which a claimed row is visible, before the row is made present.
    pub(super) fn link_insertion(
        &mut self,
        view: TableView<'_>,
        page: Page<'_>,
        place: RowPlace,
        version: Version,
        previous: Option<Previous>,
    ) {
        let state = &mut self.page_states[place.page() as usize];
        if previous.is_none() {
            if state.kept == 1 {
                // This is the only row in the page that anyone may see, so the page begins at its version.
                view.table.set_begin(place.page(), version);
            }
            if view.table.begin(place.page()) == version {
                return;
            }
        }
        let head = &Self::heads(page)[place.row()];
        debug_assert!(head.load(Ordering::Relaxed).is_null(), "a row is used again only when it is settled");
        state.versioned += 1;
        let record = match state.inserted {
            Some((at, record)) if at == version && previous.is_none() => {
                // SAFETY: linked to a row that was not reclaimed, so alive.
                unsafe { (*record).share() };
                record
            }
            _ => {
                let record = Record::new(version, Undo::Inserted { previous }, std::ptr::null_mut());
                if previous.is_none() {
                    state.inserted = Some((version, record));
                }
                record
            }
        };
        head.store(record, Ordering::Release);
    }

    /// Links an undo record to a row.
    pub(super) fn link(&mut self, page: Page<'_>, place: RowPlace, version: Version, undo: Undo) {
        let head = &Self::heads(page)[place.row()];
        let next = head.load(Ordering::Relaxed);
        self.page_states[place.page() as usize].versioned += u32::from(next.is_null());
        head.store(Record::new(version, undo, next), Ordering::Release);
    }

    /// Removes a row from a version on.
    pub fn remove(&mut self, view: TableView<'_>, version: Version, place: RowPlace) {
        let (page, row) = (view.page(place.page()), place.row());
        self.link(page, place, version, Undo::Removed);
        page.set().profile.count(false);
        let bits = &page.present()[row / 64];
        bits.store(bits.load(Ordering::Relaxed) & !(1 << (row % 64)), Ordering::Release);
        view.table.modify(place.page(), version.0);
    }
}

/// Returns the bytes on the heap that a cell of a column owns.
pub(super) fn owned_bytes(set: &Set, column: u16, words: Words) -> usize {
    if set.columns[usize::from(column)].shape.column.owns() { text_heap_bytes(words) } else { 0 }
}

/// Copies a full page into a larger one, which replaces it.
fn grow<'g>(view: TableView<'g>, number: u32, old: Page<'g>) -> Page<'g> {
    let set = old.set();
    let rows = old.capacity();
    let new = Page::allocate(set, larger(rows).unwrap_or(rows));
    for (to, from) in new.present().iter().zip(old.present()) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    for (to, from) in new.owners().iter().zip(old.owners()) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    if let (Some(to), Some(from)) = (new.ids(), old.ids()) {
        (0..rows).for_each(|row| store_pair(&to[row], load_pair(&from[row])));
    }
    if let (Some(to), Some(from)) = (new.overflows(), old.overflows()) {
        (0..rows).for_each(|row| to[row].store(from[row].load(Ordering::Relaxed), Ordering::Relaxed));
    }
    for at in 0..set.columns.len() as u16 {
        let (to, from) = (new.column(at), old.column(at));
        (0..rows).for_each(|row| to.store(row, from.load(row)));
    }
    if let Some(chains) = old.undo() {
        let copies = heads(new.capacity());
        for (to, from) in copies.iter().zip(chains.iter()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        new.header().undo.store(Box::into_raw(Box::new(copies)), Ordering::Relaxed);
    }
    new.header().used.store(old.header().used.load(Ordering::Relaxed), Ordering::Relaxed);
    let owned = old.header().bytes.load(Ordering::Relaxed).saturating_sub(old.bytes() as u64);
    new.header().bytes.store(new.bytes() as u64 + owned, Ordering::Relaxed);
    view.table.replace(number, Some(new));
    let old = old.as_raw();
    // SAFETY: no longer in the table; the new page owns its texts and undo records.
    unsafe { view.guard.defer_unchecked(move || Page::from_raw(old).map(|page| page.free())) };
    new
}
