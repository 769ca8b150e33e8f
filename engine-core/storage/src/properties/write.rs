//! The writer's side: inserting, changing, moving and removing rows, and settling what no reader needs any more.
//!
//! One [`Keeper`] writes to a [`PageTable`] while any number of readers read it. Order of each change: link the undo
//! record, store the cells, set the row's bit. What is taken out (pages that grew, replaced texts, undo records) goes
//! through the epoch.
//!
//! Contract: versions never go down; a version is written before any reader asks for it; settling up to a version
//! happens only when no reader, now or later, asks for an older one.

use super::column::{
    ColumnType, Words, clone_text, decode, drop_text, encode, encode_text, share_text, text_heap_bytes,
};
use super::overflow::{Content, Entry, Overflow, Values};
use super::page::{Page, PageTable, Place, larger, load_pair, owning_columns, rows_of_new_page, store_pair};
use super::read::Owner;
use super::scalar::Scalar;
use super::sets::{Kind, Set, Sets, Shape};
use super::undo::{
    Heads, OVERFLOW, Previous, Record, Undo, drop_cell, drop_chain, heads, overflow_at, overflow_word,
    retire_chain,
};
use crossbeam_epoch::Guard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_types::{Cardinality, Str, Token, Value, Version};

/// What the writer knows of a page.
#[derive(Default)]
struct Book {
    set: u32,
    /// Rows that are present or that older versions may see.
    kept: u32,
    /// Rows with undo records.
    versioned: u32,
    /// Rows that may be used again.
    free: Vec<u16>,
    /// Listed as having room.
    open: bool,
    /// The record that all rows inserted at one version share.
    inserted: Option<(Version, *mut Record)>,
    /// Version of the newest note that the whole page is to be settled.
    noted: Version,
}

#[derive(Default)]
struct SetBook {
    /// Pages that may have room; the last one is filled first.
    open: Vec<u32>,
    pages: usize,
}

/// The writer of a page table. See the module.
#[derive(Default)]
pub(crate) struct Keeper {
    sets: Sets,
    by_set: Vec<SetBook>,
    books: Vec<Book>,
    free_numbers: Vec<u32>,
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
    fn page(self, number: u32) -> Page<'g> {
        self.table.get(number, self.guard).expect("the writer names pages that are there")
    }

    /// Lets words go once nobody reads them.
    fn retire_words(self, set: &Arc<Set>, column: u16, words: Words) {
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

/// Whether the row came, or the cell was written, at this very version: then nobody sees what was before.
fn is_unseen(heads: &Heads, row: usize, version: Version, column: u16) -> bool {
    let mut record = heads[row].load(Ordering::Relaxed).cast_const();
    // SAFETY: the writer's own records, linked and not yet cut off.
    while let Some(step) = unsafe { record.as_ref() } {
        if step.version != version {
            return false;
        }
        match step.undo {
            Undo::Inserted { .. } => return true,
            Undo::Cell { column: other, .. } if other == column => return true,
            _ => record = step.next.load(Ordering::Relaxed),
        }
    }
    false
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

    fn insert_words(
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
        if let Some(version) = version {
            self.link_insertion(page, place, version, previous);
            desk.table.modify(place.page(), version.0);
        }
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
                    page.column(at).store(row, encode(value));
                }
                _ => beyond.push(entry.clone()),
            }
        }
        if let Some(overflows) = page.overflows() {
            overflows[row].store(overflow_word(Overflow { entries: beyond.into() }), Ordering::Release);
        }
        let bits = &page.present()[row / 64];
        bits.store(bits.load(Ordering::Relaxed) | 1 << (row % 64), Ordering::Release);
        place
    }

    /// A row of a set that nothing is in.
    fn claim(&mut self, desk: Desk<'_>, set: &Arc<Set>) -> Place {
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
            book.kept += 1;
            if let Some(row) = book.free.pop() {
                return Place::new(last, usize::from(row));
            }
            let mut page = desk.page(last);
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
            return Place::new(last, row);
        }
    }

    fn open_page(&mut self, desk: Desk<'_>, set: &Arc<Set>) {
        let number = self.free_numbers.pop().unwrap_or_else(|| desk.table.extend());
        let by_set = &mut self.by_set[set.number as usize];
        by_set.open.push(number);
        by_set.pages += 1;
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

    fn link_insertion(&mut self, page: Page<'_>, place: Place, version: Version, previous: Option<Previous>) {
        let head = &Self::heads(page)[place.row()];
        let book = &mut self.books[place.page() as usize];
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

    fn link(&mut self, page: Page<'_>, place: Place, version: Version, undo: Undo) {
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

    /// Whether the newest version has the row.
    pub fn is_present(&self, desk: Desk<'_>, place: Place) -> bool {
        desk.page(place.page()).is_present(place.row())
    }

    /// The version that took a row away, if older ones may still see it.
    pub fn removed_at(&self, desk: Desk<'_>, place: Place) -> Option<Version> {
        let head = desk.page(place.page()).undo()?[place.row()].load(Ordering::Relaxed);
        // SAFETY: the writer's own records.
        let newest = unsafe { head.as_ref() }?;
        matches!(newest.undo, Undo::Removed).then_some(newest.version)
    }

    /// Labels of the newest version.
    pub fn labels<'g>(&self, desk: Desk<'g>, place: Place) -> &'g [Token] {
        &desk.page(place.page()).set().labels
    }

    /// Id of the newest version.
    pub fn id(&self, desk: Desk<'_>, place: Place) -> Option<Str> {
        let ids = desk.page(place.page()).ids()?;
        // SAFETY: the row is the writer's own: its words are alive.
        Some(unsafe { share_text(load_pair(&ids[place.row()])) })
    }

    /// Properties of the newest version.
    pub fn content(&self, desk: Desk<'_>, place: Place) -> Content {
        let (page, row) = (desk.page(place.page()), place.row());
        let set = page.set();
        let overflow = page.overflows().and_then(|overflows| {
            // SAFETY: as in `id`.
            unsafe { overflow_at(overflows[row].load(Ordering::Relaxed)) }
        });
        let mut entries = Vec::with_capacity(set.columns.len() + 1);
        for (at, column) in (0..).zip(&set.columns) {
            let shape = &column.shape;
            if shape.column != ColumnType::Elsewhere {
                // SAFETY: as in `id`.
                let value = unsafe { decode(shape.column, page.load(at, row)) };
                let (key, cardinality) = (shape.key, shape.cardinality);
                entries.push(Entry { key, cardinality, values: Values::One(value) });
            } else if let Some(entry) = overflow.and_then(|overflow| overflow.find(shape.key)) {
                entries.push(entry.clone());
            }
        }
        if set.irregular {
            let rest = overflow.into_iter().flat_map(|overflow| &overflow.entries);
            entries.extend(rest.filter(|entry| set.find(entry.key).is_none()).cloned());
        }
        Content { entries }
    }

    /// Writes one value.
    pub fn write(
        &mut self,
        desk: Desk<'_>,
        version: Version,
        place: Place,
        key: Token,
        cardinality: Cardinality,
        value: &Value,
    ) -> Changed {
        let (page, row) = (desk.page(place.page()), place.row());
        if let Some(at) = page.set().find(key) {
            let shape = page.set().columns[usize::from(at)].shape;
            let scalar = Scalar::from(value);
            if shape.column == ColumnType::of(&scalar)
                && shape.column != ColumnType::Elsewhere
                && shape.cardinality == cardinality
            {
                let old = page.load(at, row);
                // SAFETY: the writer's own row.
                let there = || unsafe { decode(shape.column, old) };
                if cardinality == Cardinality::Single {
                    return self.write_cell(desk, version, place, at, encode(&scalar));
                }
                if cardinality == Cardinality::Set && there().equivalent(value) {
                    return Changed::No;
                }
            }
        }
        let mut content = self.content(desk, place);
        if !content.write(key, cardinality, value) {
            return Changed::No;
        }
        let labels = page.set().labels.clone();
        self.rewrite(desk, version, place, &labels, &content, Some(key))
    }

    /// Removes one value, or all, of a key.
    pub fn erase(
        &mut self,
        desk: Desk<'_>,
        version: Version,
        place: Place,
        key: Token,
        value: Option<&Value>,
    ) -> Changed {
        let set = desk.page(place.page()).set();
        if set.find(key).is_none() && !set.irregular {
            return Changed::No;
        }
        let mut content = self.content(desk, place);
        if !content.remove(key, value) {
            return Changed::No;
        }
        self.rewrite(desk, version, place, &set.labels, &content, None)
    }

    /// Gives a row other labels.
    pub fn relabel(&mut self, desk: Desk<'_>, version: Version, place: Place, labels: &[Token]) -> Changed {
        if *labels == *desk.page(place.page()).set().labels {
            return Changed::No;
        }
        let content = self.content(desk, place);
        self.rewrite(desk, version, place, labels, &content, None)
    }

    /// Puts a row's new content in its place, or moves it to its new set. `key`: the only one that may have changed
    /// in a column.
    fn rewrite(
        &mut self,
        desk: Desk<'_>,
        version: Version,
        place: Place,
        labels: &[Token],
        content: &Content,
        key: Option<Token>,
    ) -> Changed {
        let (page, row) = (desk.page(place.page()), place.row());
        let old = page.set();
        let set = self.sets.intern(&Shape::of(old.kind, labels, content)).clone();
        if !Arc::ptr_eq(&set, old) {
            let previous = self.previous(page, place, version);
            let owner = page.owners()[row].load(Ordering::Relaxed);
            let id = page.ids().map_or([0; 2], |ids| {
                // SAFETY: the writer's own row.
                unsafe { clone_text(load_pair(&ids[row])) }
            });
            let new = self.insert_words(desk, Some(version), owner, id, &set, content, previous);
            self.remove(desk, version, place);
            return Changed::Moved(new);
        }
        let typed = key
            .and_then(|key| set.find(key))
            .filter(|at| set.columns[usize::from(*at)].shape.column != ColumnType::Elsewhere);
        if let Some(at) = typed {
            let key = set.columns[usize::from(at)].shape.key;
            let entry = content.entries.iter().find(|entry| entry.key == key);
            if let Some(Values::One(value)) = entry.map(|entry| &entry.values) {
                return self.write_cell(desk, version, place, at, encode(value));
            }
        }
        if set.overflow.is_none() {
            return Changed::No;
        }
        let beyond = content.entries.iter().filter(|entry| {
            set.find(entry.key)
                .is_none_or(|at| set.columns[usize::from(at)].shape.column == ColumnType::Elsewhere)
        });
        let word = overflow_word(Overflow { entries: beyond.cloned().collect() });
        self.write_cell(desk, version, place, OVERFLOW, [word, 0])
    }

    /// Where versions before this one find a row that moves now.
    fn previous(&self, page: Page<'_>, place: Place, version: Version) -> Option<Previous> {
        let mut record = page
            .undo()
            .map_or(std::ptr::null(), |heads| heads[place.row()].load(Ordering::Relaxed).cast_const());
        // SAFETY: the writer's own records.
        while let Some(step) = unsafe { record.as_ref() }.filter(|step| step.version == version) {
            if let Undo::Inserted { previous } = step.undo {
                return previous;
            }
            record = step.next.load(Ordering::Relaxed);
        }
        Some(Previous { place, ended: version })
    }

    fn write_cell(
        &mut self,
        desk: Desk<'_>,
        version: Version,
        place: Place,
        column: u16,
        new: Words,
    ) -> Changed {
        let (page, row) = (desk.page(place.page()), place.row());
        let overflows = page.overflows().filter(|_| column == OVERFLOW);
        let old = match overflows {
            Some(overflows) => [overflows[row].load(Ordering::Relaxed), 0],
            None => page.load(column, row),
        };
        if old == new {
            // Equal words that own something are one and the same thing, owned twice.
            if overflows.is_none() && page.set().columns[usize::from(column)].shape.column.owns() {
                desk.retire_words(page.set(), column, new);
            }
            return Changed::No;
        }
        if page.undo().is_some_and(|heads| is_unseen(heads, row, version, column)) {
            desk.retire_words(page.set(), column, old);
        } else {
            self.link(page, place, version, Undo::Cell { column, old });
        }
        match overflows {
            Some(overflows) => overflows[row].store(new[0], Ordering::Release),
            None => page.column(column).store(row, new),
        }
        desk.table.modify(place.page(), version.0);
        Changed::Here
    }

    /// Whether a page has to be noted for settling at a version; asked once for each.
    pub fn note(&mut self, page: u32, version: Version) -> bool {
        let noted = &mut self.books[page as usize].noted;
        std::mem::replace(noted, version) != version
    }

    /// Forgets what no version from `oldest` on needs of a row. Answers it if the row has become free.
    pub fn settle(&mut self, desk: Desk<'_>, place: Place, oldest: Version) -> Option<Freed> {
        let page = desk.table.get(place.page(), desk.guard)?;
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
        let Some(page) = desk.table.get(number, desk.guard) else { return };
        for row in 0..page.header().used.load(Ordering::Relaxed) as usize {
            if page.undo().is_none() {
                break;
            }
            freed.extend(self.settle_in(desk, page, Place::new(number, row), oldest));
        }
    }

    /// Bytes of everything. Walks all of it.
    pub fn bytes(&self, desk: Desk<'_>) -> Bytes {
        let mut bytes = Bytes {
            sets: self.sets.bytes() + self.by_set.capacity() * size_of::<SetBook>(),
            properties: desk.table.bytes() + self.books.capacity() * size_of::<Book>(),
            ..Bytes::default()
        };
        for number in 0..desk.table.end() {
            let Some(page) = desk.table.get(number, desk.guard) else { continue };
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
                page.undo().map_or(0, |heads| heads.iter().map(|head| 8 + chain_bytes(head)).sum());
        }
        bytes
    }
}

fn chain_bytes(head: &std::sync::atomic::AtomicPtr<Record>) -> usize {
    let mut bytes = 0;
    let mut record = head.load(Ordering::Acquire).cast_const();
    // SAFETY: the caller's guard was pinned before the chain was loaded.
    while let Some(step) = unsafe { record.as_ref() } {
        bytes += size_of::<Record>();
        record = step.next.load(Ordering::Acquire);
    }
    bytes
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
    desk.table.replace(number, Some(new));
    let old = old.as_raw();
    // SAFETY: no longer in the table; what its cells own, and its undo records, have gone over to the new page.
    unsafe { desk.guard.defer_unchecked(move || Page::from_raw(old).map(|page| page.free())) };
    new
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
            if let Some(page) = self.get(number, guard) {
                // SAFETY: nobody else has the page, and nobody will.
                unsafe {
                    drop_rows(page);
                    page.free();
                }
            }
        }
    }
}
