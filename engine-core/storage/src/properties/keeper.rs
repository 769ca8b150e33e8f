//! The writer's side: where rows go. Pages with room, growing, undo records, inserting and removing.
//!
//! One [`Keeper`] writes to a [`PageTable`] while any number of readers read it; `write` changes rows, `settle` lets go
//! of what no reader needs any more. Order of each change: link the undo record, store the cells, set the row's bit.
//! What is taken out (pages that grew, replaced texts, undo records) goes through the epoch.
//!
//! Rows that fill a fresh page at one version have no undo records: the page as a whole begins at that version. So what a
//! load leaves behind is read at full speed at once.
//!
//! Contract: versions never go down; a version is written before any reader asks for it; a reader of a version that was
//! settled away while it read throws away what it read. Nothing that such a reader may find leads it to freed memory.

use super::column::{ColumnType, Words, encode, encode_text, text_heap_bytes};
use super::load::Known;
use super::overflow::{Content, Entry, Overflow, Values};
use super::page::{Page, Place, larger, load_pair, rows_of_new_page, store_pair};
use super::page_table::PageTable;
use super::read::Owner;
use super::sets::{Kind, Set, Sets, Shape};
use super::undo::{Heads, Previous, Record, Undo, drop_cell, heads, overflow_word};
use crossbeam_epoch::Guard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_types::{Str, Token, Version};

/// What the writer knows of a page.
#[derive(Default)]
pub(super) struct Book {
    pub(super) set: u32,
    /// Rows that are present or that older versions may see.
    pub(super) kept: u32,
    /// Rows with undo records.
    pub(super) versioned: u32,
    /// Rows that may be used again.
    pub(super) free: Vec<u16>,
    /// Listed as having room.
    pub(super) open: bool,
    /// The record that all rows inserted at one version share.
    pub(super) inserted: Option<(Version, *mut Record)>,
    /// Version of the newest note that the whole page is to be settled.
    pub(super) noted: Version,
}

#[derive(Default)]
pub(super) struct SetBook {
    /// Pages that may have room; the last one is filled first.
    pub(super) open: Vec<u32>,
    pub(super) pages: usize,
}

/// The writer of a page table. See the module.
#[derive(Default)]
pub(crate) struct Keeper {
    pub(super) sets: Sets,
    pub(super) by_set: Vec<SetBook>,
    pub(super) books: Vec<Book>,
    pub(super) free_numbers: Vec<u32>,
    pub(super) known: Known,
    /// The page that is looked at next for moving it out.
    pub(super) hand: u32,
}

// SAFETY: the shared records that books point to are freed by whoever lets go of them last, on any thread.
unsafe impl Send for Keeper {}
// SAFETY: a shared reference allows looking at numbers only.
unsafe impl Sync for Keeper {}

/// A row that has become free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Freed {
    pub owner: Owner,
    pub place: Place,
}

/// What became of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changed {
    No,
    Here,
    /// The row is there now, and its old place holds what older versions see.
    Moved(Place),
}

/// Bytes that rows take, by purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bytes {
    pub vertices: usize,
    pub edges: usize,
    pub properties: usize,
    pub ids: usize,
    pub sets: usize,
    pub versions: usize,
}

/// The writer's view of a table for one change.
#[derive(Clone, Copy)]
pub(crate) struct Desk<'g> {
    pub table: &'g PageTable,
    pub guard: &'g Guard,
}

impl<'g> Desk<'g> {
    pub(super) fn page(self, number: u32) -> Page<'g> {
        self.table
            .hot(number, self.guard)
            .expect("the writer names pages that are there, and brings them first")
    }

    /// Lets words go once nobody reads them.
    pub(super) fn retire_words(self, set: &Arc<Set>, column: u16, words: Words) {
        let owns = match set.columns.get(usize::from(column)) {
            Some(column) => column.shape.column.owns() && text_heap_bytes(words) > 0,
            None => words[0] != 0,
        };
        if owns {
            let set = set.clone();
            // SAFETY: the words were replaced in their cell, so that only readers from before still have them.
            unsafe { self.guard.defer_unchecked(move || drop_cell(&set, column, words)) };
        }
    }
}

impl Keeper {
    /// Number of characteristic sets.
    #[cfg(test)]
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Adds a row, visible from a version on; without one it has always been there.
    pub fn insert(
        &mut self,
        desk: Desk<'_>,
        version: Option<Version>,
        owner: Owner,
        id: Option<&Str>,
        labels: &[Token],
        content: &Content,
        previous: Option<Previous>,
    ) -> Place {
        let kind = match owner {
            Owner::Vertex(_) => Kind::Vertex,
            Owner::Edge(_) => Kind::Edge { with_id: id.is_some() },
        };
        let set = self.sets.intern(&Shape::of(kind, labels, content)).clone();
        let id = id.map_or([0; 2], encode_text);
        self.insert_words(desk, version, owner.word(), id, &set, content, previous)
    }

    pub(super) fn insert_words(
        &mut self,
        desk: Desk<'_>,
        version: Option<Version>,
        owner: u64,
        id: Words,
        set: &Arc<Set>,
        content: &Content,
        previous: Option<Previous>,
    ) -> Place {
        let place = self.claim(desk, set);
        let (page, row) = (desk.page(place.page()), place.row());
        match version {
            Some(version) => {
                self.link_insertion(desk, page, place, version, previous);
                desk.table.modify(place.page(), version.0);
            }
            None => desk.table.forget_image_of(place.page()),
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
        desk.table.add_bytes(page, owned);
        let bits = &page.present()[row / 64];
        bits.store(bits.load(Ordering::Relaxed) | 1 << (row % 64), Ordering::Release);
        place
    }

    /// A row of a set that nothing is in.
    pub(super) fn claim(&mut self, desk: Desk<'_>, set: &Arc<Set>) -> Place {
        let number = set.number as usize;
        if self.by_set.len() <= number {
            self.by_set.resize_with(number + 1, SetBook::default);
        }
        loop {
            let Some(&last) = self.by_set[number].open.last() else {
                self.open_page(desk, set);
                continue;
            };
            let book = &mut self.books[last as usize];
            if !book.open || book.set != set.number {
                // A note from before the page was given back.
                self.by_set[number].open.pop();
                continue;
            }
            let Some(mut page) = desk.table.bring_to_write(last, desk.guard) else {
                // It cannot be read any more. The store takes nothing more; this only has to end well.
                book.open = false;
                self.by_set[number].open.pop();
                continue;
            };
            book.kept += 1;
            if let Some(row) = book.free.pop() {
                set.profile.count(true);
                return Place::new(last, usize::from(row));
            }
            let row = page.header().used.load(Ordering::Relaxed) as usize;
            if row == page.capacity() {
                if larger(row).is_none() {
                    book.kept -= 1;
                    book.open = false;
                    self.by_set[number].open.pop();
                    continue;
                }
                page = grow(desk, last, page);
            }
            page.header().used.store(row as u32 + 1, Ordering::Release);
            set.profile.count(true);
            return Place::new(last, row);
        }
    }

    fn open_page(&mut self, desk: Desk<'_>, set: &Arc<Set>) {
        let number = self.free_numbers.pop().unwrap_or_else(|| desk.table.extend());
        let by_set = &mut self.by_set[set.number as usize];
        by_set.open.push(number);
        by_set.pages += 1;
        desk.table.know(&self.sets);
        let page = Page::allocate(set, rows_of_new_page(by_set.pages - 1));
        desk.table.replace(number, Some(page));
        if self.books.len() <= number as usize {
            self.books.resize_with(number as usize + 1, Book::default);
        }
        self.books[number as usize] = Book { set: set.number, open: true, ..Book::default() };
    }

    fn heads<'g>(page: Page<'g>) -> &'g Heads {
        if page.undo().is_none() {
            let heads = Box::into_raw(Box::new(heads(page.capacity())));
            page.header().undo.store(heads, Ordering::Release);
        }
        page.undo().expect("the heads were just put there, by the only writer")
    }

    /// Says from which version on a row that was just claimed is seen, before it is made present.
    pub(super) fn link_insertion(
        &mut self,
        desk: Desk<'_>,
        page: Page<'_>,
        place: Place,
        version: Version,
        previous: Option<Previous>,
    ) {
        let book = &mut self.books[place.page() as usize];
        if previous.is_none() {
            if book.kept == 1 {
                // The only row that anybody may see in the page: the page begins with it.
                desk.table.set_begin(place.page(), version);
            }
            if desk.table.begin(place.page()) == version {
                return;
            }
        }
        let head = &Self::heads(page)[place.row()];
        debug_assert!(head.load(Ordering::Relaxed).is_null(), "a row is used again only when it is settled");
        book.versioned += 1;
        let record = match book.inserted {
            Some((at, record)) if at == version && previous.is_none() => {
                // SAFETY: linked to a row that is not settled, so alive.
                unsafe { (*record).share() };
                record
            }
            _ => {
                let record = Record::new(version, Undo::Inserted { previous }, std::ptr::null_mut());
                if previous.is_none() {
                    book.inserted = Some((version, record));
                }
                record
            }
        };
        head.store(record, Ordering::Release);
    }

    pub(super) fn link(&mut self, page: Page<'_>, place: Place, version: Version, undo: Undo) {
        let head = &Self::heads(page)[place.row()];
        let next = head.load(Ordering::Relaxed);
        self.books[place.page() as usize].versioned += u32::from(next.is_null());
        head.store(Record::new(version, undo, next), Ordering::Release);
    }

    /// Takes a row away from a version on.
    pub fn remove(&mut self, desk: Desk<'_>, version: Version, place: Place) {
        let (page, row) = (desk.page(place.page()), place.row());
        self.link(page, place, version, Undo::Removed);
        let bits = &page.present()[row / 64];
        bits.store(bits.load(Ordering::Relaxed) & !(1 << (row % 64)), Ordering::Release);
        desk.table.modify(place.page(), version.0);
    }
}

/// Bytes on the heap that a cell of a column owns.
pub(super) fn owned_bytes(set: &Set, column: u16, words: Words) -> usize {
    if set.columns[usize::from(column)].shape.column.owns() { text_heap_bytes(words) } else { 0 }
}

/// Copies a full page into a larger one, which takes its place.
fn grow<'g>(desk: Desk<'g>, number: u32, old: Page<'g>) -> Page<'g> {
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
    desk.table.replace(number, Some(new));
    let old = old.as_raw();
    // SAFETY: no longer in the table; what its cells own, and its undo records, have gone over to the new page.
    unsafe { desk.guard.defer_unchecked(move || Page::from_raw(old).map(|page| page.free())) };
    new
}
