//! Reclaims undo records and rows that no version needs, and pages without rows. Also counts the memory of all rows.

use super::column::{drop_text, text_heap_bytes};
use super::overflow::Overflow;
use super::page::{Page, RowPlace, load_pair, owning_columns, store_pair};
use super::page_table::PageTable;
use super::page_writer::{Bytes, Freed, PageState, PageWriter, SetPages, TableView};
use super::read::RowOwner;
use super::sets::{RowKind, Set};
use super::undo::{OVERFLOW, Record, Undo, drop_cell, drop_chain, overflow_at, retire_chain};
use std::sync::atomic::Ordering;
use tidegraph_types::Version;

impl PageWriter {
    /// Returns whether a page needs a note for reclaiming at a version: true once for each version.
    pub fn note(&mut self, page: u32, version: Version) -> bool {
        let noted = &mut self.page_states[page as usize].noted;
        std::mem::replace(noted, version) != version
    }

    /// Drops the undo records of a row that no version from `oldest` on needs. Returns the row if it has become free.
    pub fn reclaim_row(&mut self, view: TableView<'_>, place: RowPlace, oldest: Version) -> Option<Freed> {
        // A page in the file has nothing to reclaim.
        let page = view.table.resident(place.page(), view.guard)?;
        self.reclaim_in(view, page, place, oldest)
    }

    fn reclaim_in(
        &mut self,
        view: TableView<'_>,
        page: Page<'_>,
        place: RowPlace,
        oldest: Version,
    ) -> Option<Freed> {
        let row = place.row();
        let head = page.undo()?.get(row)?;
        let mut link = head;
        let mut record = link.load(Ordering::Relaxed);
        if record.is_null() {
            return None;
        }
        let state = &mut self.page_states[place.page() as usize];
        if state.inserted.is_some_and(|(version, _)| version <= oldest) {
            state.inserted = None;
        }
        // SAFETY: the writer's own records, linked and not cut off.
        while let Some(step) = unsafe { record.as_ref() } {
            if step.version <= oldest {
                link.store(std::ptr::null_mut(), Ordering::Release);
                // SAFETY: just unlinked.
                unsafe { retire_chain(page.set(), record, view.guard) };
                break;
            }
            link = &step.next;
            record = link.load(Ordering::Relaxed);
        }
        if !head.load(Ordering::Relaxed).is_null() {
            return None;
        }
        state.versioned -= 1;
        if state.versioned == 0 {
            let heads = page.header().undo.swap(std::ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: taken off the page, so only earlier readers have it.
            unsafe { view.guard.defer_unchecked(move || drop(Box::from_raw(heads))) };
        }
        if page.is_present(row) {
            return None;
        }
        let owner = RowOwner::of(page.set().kind, page.owners()[row].load(Ordering::Relaxed));
        self.free_row(view, page, place);
        Some(Freed { owner, place })
    }

    fn free_row(&mut self, view: TableView<'_>, page: Page<'_>, place: RowPlace) {
        let (set, row) = (page.set(), place.row());
        for column in owning_columns(set) {
            view.retire_words(set, column, page.load(column, row));
            page.column(column).store(row, [0; 2]);
        }
        if let Some(ids) = page.ids() {
            let id = load_pair(&ids[row]);
            if text_heap_bytes(id) > 0 {
                // SAFETY: the row has no owner any more, and earlier readers are waited for.
                unsafe { view.guard.defer_unchecked(move || drop_text(id)) };
            }
            store_pair(&ids[row], [0; 2]);
        }
        if let Some(overflows) = page.overflows() {
            view.retire_words(set, OVERFLOW, [overflows[row].load(Ordering::Relaxed), 0]);
            overflows[row].store(0, Ordering::Release);
        }
        let number = place.page();
        let state = &mut self.page_states[number as usize];
        state.kept -= 1;
        state.free.push(row as u16);
        let by_set = &mut self.by_set[state.set as usize];
        if state.kept == 0 && state.versioned == 0 {
            *state = PageState::default();
            by_set.pages -= 1;
            if by_set.pages == 0 {
                by_set.open = Vec::new();
            }
            self.free_numbers.push(number);
            if let Some(page) = view.table.replace(number, None) {
                let page = page.as_raw();
                // SAFETY: no longer in the table; its rows own nothing any more.
                unsafe { view.guard.defer_unchecked(move || Page::from_raw(page).map(|page| page.free())) };
            }
        } else if !std::mem::replace(&mut state.open, true) {
            by_set.open.push(number);
        }
    }

    /// Reclaims every row of a page.
    pub fn reclaim_page(
        &mut self,
        view: TableView<'_>,
        number: u32,
        oldest: Version,
        freed: &mut Vec<Freed>,
    ) {
        let Some(page) = view.table.resident(number, view.guard) else { return };
        for row in 0..page.header().used.load(Ordering::Relaxed) as usize {
            if page.undo().is_none() {
                break;
            }
            freed.extend(self.reclaim_in(view, page, RowPlace::new(number, row), oldest));
        }
    }

    /// Returns the bytes of the writer's state of pages.
    pub fn page_state_bytes(&self) -> usize {
        self.page_states.capacity() * size_of::<PageState>()
    }

    /// Returns the bytes of everything. Walks all of it.
    pub fn bytes(&self, view: TableView<'_>) -> Bytes {
        let mut bytes = Bytes {
            sets: self.sets.bytes() + self.known.bytes() + self.by_set.capacity() * size_of::<SetPages>(),
            properties: view.table.bytes() + self.page_state_bytes(),
            ..Bytes::default()
        };
        for number in 0..view.table.end() {
            let Some(page) = view.table.resident(number, view.guard) else { continue };
            let set = page.set();
            let fixed = page.capacity() * if set.kind.with_id() { 24 } else { 8 };
            match set.kind {
                RowKind::Vertex => bytes.vertices += fixed,
                RowKind::Edge { .. } => bytes.edges += fixed,
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

/// Returns the bytes of a row's undo records, with what they own.
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

/// Frees what the rows of a page own, and their undo records.
///
/// # Safety
///
/// No other code has the page, and its rows are not read afterwards.
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
        // SAFETY: no other code has the table.
        let guard = unsafe { crossbeam_epoch::unprotected() };
        for number in 0..self.end() {
            // The store may live on, and its budget and its file with it.
            self.forget_image_of(number);
            if let Some(page) = self.resident(number, guard) {
                self.memory().count(-(page.header().bytes.load(Ordering::Relaxed) as i64));
                // SAFETY: no other code has the page, now or later.
                unsafe {
                    drop_rows(page);
                    page.free();
                }
            }
        }
    }
}
