//! Letting go: undo records and rows that no version needs, pages without rows, and what all of it takes.

use super::column::{drop_text, text_heap_bytes};
use super::keeper::{Book, Bytes, Desk, Freed, Keeper, SetBook};
use super::overflow::Overflow;
use super::page::{Page, Place, load_pair, owning_columns, store_pair};
use super::page_table::PageTable;
use super::read::Owner;
use super::sets::{Kind, Set};
use super::undo::{OVERFLOW, Record, Undo, drop_cell, drop_chain, overflow_at, retire_chain};
use std::sync::atomic::Ordering;
use tidegraph_types::Version;

impl Keeper {
    /// Whether a page has to be noted for settling at a version; asked once for each.
    pub fn note(&mut self, page: u32, version: Version) -> bool {
        let noted = &mut self.books[page as usize].noted;
        std::mem::replace(noted, version) != version
    }

    /// Forgets what no version from `oldest` on needs of a row. Answers it if the row has become free.
    pub fn settle(&mut self, desk: Desk<'_>, place: Place, oldest: Version) -> Option<Freed> {
        // A page in the file has nothing to settle.
        let page = desk.table.hot(place.page(), desk.guard)?;
        self.settle_in(desk, page, place, oldest)
    }

    fn settle_in(&mut self, desk: Desk<'_>, page: Page<'_>, place: Place, oldest: Version) -> Option<Freed> {
        let row = place.row();
        let head = page.undo()?.get(row)?;
        let mut link = head;
        let mut record = link.load(Ordering::Relaxed);
        if record.is_null() {
            return None;
        }
        let book = &mut self.books[place.page() as usize];
        if book.inserted.is_some_and(|(version, _)| version <= oldest) {
            book.inserted = None;
        }
        // SAFETY: the writer's own records, linked and not cut off yet.
        while let Some(step) = unsafe { record.as_ref() } {
            if step.version <= oldest {
                link.store(std::ptr::null_mut(), Ordering::Release);
                // SAFETY: just unlinked.
                unsafe { retire_chain(page.set(), record, desk.guard) };
                break;
            }
            link = &step.next;
            record = link.load(Ordering::Relaxed);
        }
        if !head.load(Ordering::Relaxed).is_null() {
            return None;
        }
        book.versioned -= 1;
        if book.versioned == 0 {
            let heads = page.header().undo.swap(std::ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: taken off the page, so that only readers from before have it.
            unsafe { desk.guard.defer_unchecked(move || drop(Box::from_raw(heads))) };
        }
        if page.is_present(row) {
            return None;
        }
        let owner = Owner::of(page.set().kind, page.owners()[row].load(Ordering::Relaxed));
        self.free_row(desk, page, place);
        Some(Freed { owner, place })
    }

    fn free_row(&mut self, desk: Desk<'_>, page: Page<'_>, place: Place) {
        let (set, row) = (page.set(), place.row());
        for column in owning_columns(set) {
            desk.retire_words(set, column, page.load(column, row));
            page.column(column).store(row, [0; 2]);
        }
        if let Some(ids) = page.ids() {
            let id = load_pair(&ids[row]);
            if text_heap_bytes(id) > 0 {
                // SAFETY: the row is nobody's any more; readers from before are waited for.
                unsafe { desk.guard.defer_unchecked(move || drop_text(id)) };
            }
            store_pair(&ids[row], [0; 2]);
        }
        if let Some(overflows) = page.overflows() {
            desk.retire_words(set, OVERFLOW, [overflows[row].load(Ordering::Relaxed), 0]);
            overflows[row].store(0, Ordering::Release);
        }
        set.profile.count(false);
        let number = place.page();
        let book = &mut self.books[number as usize];
        book.kept -= 1;
        book.free.push(row as u16);
        let by_set = &mut self.by_set[book.set as usize];
        if book.kept == 0 && book.versioned == 0 {
            *book = Book::default();
            by_set.pages -= 1;
            if by_set.pages == 0 {
                by_set.open = Vec::new();
            }
            self.free_numbers.push(number);
            if let Some(page) = desk.table.replace(number, None) {
                let page = page.as_raw();
                // SAFETY: no longer in the table; its rows own nothing any more.
                unsafe { desk.guard.defer_unchecked(move || Page::from_raw(page).map(|page| page.free())) };
            }
        } else if !std::mem::replace(&mut book.open, true) {
            by_set.open.push(number);
        }
    }

    /// Settles every row of a page.
    pub fn settle_page(&mut self, desk: Desk<'_>, number: u32, oldest: Version, freed: &mut Vec<Freed>) {
        let Some(page) = desk.table.hot(number, desk.guard) else { return };
        for row in 0..page.header().used.load(Ordering::Relaxed) as usize {
            if page.undo().is_none() {
                break;
            }
            freed.extend(self.settle_in(desk, page, Place::new(number, row), oldest));
        }
    }

    /// Bytes of what the writer knows of pages.
    pub fn book_bytes(&self) -> usize {
        self.books.capacity() * size_of::<Book>()
    }

    /// Bytes of everything. Walks all of it.
    pub fn bytes(&self, desk: Desk<'_>) -> Bytes {
        let mut bytes = Bytes {
            sets: self.sets.bytes() + self.known.bytes() + self.by_set.capacity() * size_of::<SetBook>(),
            properties: desk.table.bytes() + self.book_bytes(),
            ..Bytes::default()
        };
        for number in 0..desk.table.end() {
            let Some(page) = desk.table.hot(number, desk.guard) else { continue };
            let set = page.set();
            let fixed = page.capacity() * if set.kind.with_id() { 24 } else { 8 };
            match set.kind {
                Kind::Vertex => bytes.vertices += fixed,
                Kind::Edge { .. } => bytes.edges += fixed,
            }
            bytes.properties += page.bytes() - fixed;
            for row in 0..page.header().used.load(Ordering::Relaxed) as usize {
                bytes.ids += page.ids().map_or(0, |ids| text_heap_bytes(load_pair(&ids[row])));
                let text = |column| text_heap_bytes(page.load(column, row));
                bytes.properties += owning_columns(set).map(text).sum::<usize>();
                let overflow = page.overflows().map_or(0, |overflows| overflows[row].load(Ordering::Relaxed));
                // SAFETY: the cell's own overflow.
                bytes.properties += unsafe { overflow_at(overflow) }.map_or(0, Overflow::heap_bytes);
            }
            bytes.versions +=
                page.undo().map_or(0, |heads| heads.iter().map(|head| 8 + chain_bytes(set, head)).sum());
        }
        bytes
    }
}

/// Bytes of a row's undo records, with what they own.
fn chain_bytes(set: &Set, head: &std::sync::atomic::AtomicPtr<Record>) -> usize {
    let mut bytes = 0;
    let mut record = head.load(Ordering::Acquire).cast_const();
    // SAFETY: the caller's guard was pinned before the chain was loaded.
    while let Some(step) = unsafe { record.as_ref() } {
        bytes += size_of::<Record>();
        if let Undo::Cell { column, old } = step.undo {
            bytes += match set.columns.get(usize::from(column)) {
                Some(column) if column.shape.column.owns() => text_heap_bytes(old),
                Some(_) => 0,
                // SAFETY: the record owns it.
                None => unsafe { overflow_at(old[0]) }.map_or(0, Overflow::heap_bytes),
            };
        }
        record = step.next.load(Ordering::Acquire);
    }
    bytes
}

/// Gives back what the rows of a page own, with their undo records.
///
/// # Safety
///
/// Nobody else has the page, and nobody looks at its rows after this.
pub(crate) unsafe fn drop_rows(page: Page<'_>) {
    let set = page.set();
    // SAFETY: the caller's promise; rows that were freed own nothing.
    unsafe {
        for row in 0..page.header().used.load(Ordering::Relaxed) as usize {
            for column in owning_columns(set) {
                drop_cell(set, column, page.load(column, row));
            }
            if let Some(ids) = page.ids() {
                drop_text(load_pair(&ids[row]));
            }
            if let Some(overflows) = page.overflows() {
                drop_cell(set, OVERFLOW, [overflows[row].load(Ordering::Relaxed), 0]);
            }
            if let Some(heads) = page.undo() {
                drop_chain(set, heads[row].load(Ordering::Relaxed));
            }
        }
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        // SAFETY: nobody else has the table.
        let guard = unsafe { crossbeam_epoch::unprotected() };
        for number in 0..self.end() {
            if let Some(page) = self.hot(number, guard) {
                // SAFETY: nobody else has the page, and nobody will.
                unsafe {
                    drop_rows(page);
                    page.free();
                }
            }
        }
    }
}
