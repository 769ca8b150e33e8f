//! Changes rows: one value, one key, the labels. A change of the set moves the row.

use super::column::{ColumnType, Words, clone_text, decode, encode, share_text};
use super::overflow::{Content, Entry, MetaWrite, Overflow, Values};
use super::page::{Page, RowPlace, load_pair};
use super::page_writer::{Changed, PageWriter, TableView, owned_bytes};
use super::scalar::Scalar;
use super::sets::Shape;
use super::undo::{Heads, OVERFLOW, Previous, Undo, overflow_at, overflow_word};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_types::{Cardinality, PropertyWrite, Str, Token, Value, Version};

/// Returns whether the row was inserted, or the cell written, at this version, so that no reader sees what was before.
/// `begin` is the version of all rows of the page without a record.
fn is_unseen(heads: Option<&Heads>, row: usize, version: Version, column: u16, begin: Version) -> bool {
    let mut record = heads.map_or(ptr::null(), |heads| heads[row].load(Ordering::Relaxed).cast_const());
    // SAFETY: the writer's own records, linked and not cut off yet.
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
    begin == version
}

/// Returns the properties of a row.
///
/// # Safety
///
/// The row is present, and no other thread changes it meanwhile.
pub(super) unsafe fn content_of(page: Page<'_>, row: usize) -> Content {
    let set = page.set();
    let overflow = page.overflows().and_then(|overflows| {
        // SAFETY: the caller's promise.
        unsafe { overflow_at(overflows[row].load(Ordering::Relaxed)) }
    });
    let mut entries = Vec::with_capacity(set.columns.len() + 1);
    for (at, column) in (0..).zip(&set.columns) {
        let shape = &column.shape;
        if shape.column != ColumnType::Elsewhere {
            // SAFETY: the caller's promise.
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

/// Returns the id of a row; `None` if rows of its set have none.
///
/// # Safety
///
/// The same as for [`content_of`].
pub(super) unsafe fn id_of(page: Page<'_>, row: usize) -> Option<Str> {
    // SAFETY: the caller's promise.
    page.ids().map(|ids| unsafe { share_text(load_pair(&ids[row])) })
}

impl PageWriter {
    /// Returns whether the newest version has the row. A removed row has an undo record until nothing names it, and a
    /// spilled page has no records, so its named rows are present.
    pub fn is_present(&self, view: TableView<'_>, place: RowPlace) -> bool {
        view.table.has_now(place, view.guard)
    }

    /// Returns the version that removed a row, if older ones may still see it.
    pub fn removed_at(&self, view: TableView<'_>, place: RowPlace) -> Option<Version> {
        let head = view.page(place.page()).undo()?[place.row()].load(Ordering::Relaxed);
        // SAFETY: the writer's own records.
        let newest = unsafe { head.as_ref() }?;
        matches!(newest.undo, Undo::Removed).then_some(newest.version)
    }

    /// Returns the labels in the newest version.
    pub fn labels(&self, view: TableView<'_>, place: RowPlace) -> &[Token] {
        self.sets.get(view.table.set_of(place.page())).map_or(&[], |set| &set.labels)
    }

    /// Returns the id in the newest version.
    pub fn id(&self, view: TableView<'_>, place: RowPlace) -> Option<Str> {
        // SAFETY: the writer's own row, so its words are alive.
        unsafe { id_of(view.page(place.page()), place.row()) }
    }

    /// Returns the properties in the newest version.
    pub fn content(&self, view: TableView<'_>, place: RowPlace) -> Content {
        // SAFETY: as in `id`.
        unsafe { content_of(view.page(place.page()), place.row()) }
    }

    /// Returns whether the newest version has a value of a key.
    pub fn has_value(&self, view: TableView<'_>, place: RowPlace, key: Token) -> bool {
        let page = view.page(place.page());
        let set = page.set();
        let may_overflow = match set.find(key) {
            Some(at) if set.columns[usize::from(at)].shape.column != ColumnType::Elsewhere => return true,
            Some(_) => true,
            None => set.irregular,
        };
        let overflow = page.overflows().filter(|_| may_overflow).and_then(|overflows| {
            // SAFETY: as in `id`.
            unsafe { overflow_at(overflows[place.row()].load(Ordering::Relaxed)) }
        });
        overflow.is_some_and(|overflow| overflow.find(key).is_some())
    }

    /// Writes one value.
    pub fn write(
        &mut self,
        view: TableView<'_>,
        version: Version,
        place: RowPlace,
        key: Token,
        cardinality: Cardinality,
        value: &Value,
    ) -> Changed {
        let (page, row) = (view.page(place.page()), place.row());
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
                    // The same text in another allocation would look different.
                    if shape.column.owns() && there().is_same(value) {
                        return Changed::No;
                    }
                    return self.write_cell(view, version, place, at, encode(&scalar));
                }
                if cardinality == Cardinality::Set && there().equivalent(value) {
                    return Changed::No;
                }
            }
        }
        let mut content = self.content(view, place);
        if !content.write(key, cardinality, value) {
            return Changed::No;
        }
        let labels = page.set().labels.clone();
        self.rewrite(view, version, place, &labels, &content, &[key])
    }

    /// Writes several values as one change, so the row moves at most once.
    pub fn write_all(
        &mut self,
        view: TableView<'_>,
        version: Version,
        place: RowPlace,
        writes: &[&PropertyWrite],
    ) -> Changed {
        if let [one] = writes {
            return self.write(view, version, place, one.key, one.cardinality, &one.value);
        }
        let mut content = self.content(view, place);
        let changed = content.write_all(writes);
        if changed.is_empty() {
            return Changed::No;
        }
        let set = view.page(place.page()).set();
        self.rewrite(view, version, place, &set.labels, &content, &changed)
    }

    /// Writes or removes meta-properties as one change.
    pub fn annotate(
        &mut self,
        view: TableView<'_>,
        version: Version,
        place: RowPlace,
        writes: &[MetaWrite<'_>],
    ) -> Changed {
        let set = view.page(place.page()).set();
        if !set.irregular && writes.iter().all(|write| set.find(write.key).is_none()) {
            return Changed::No;
        }
        let mut content = self.content(view, place);
        let changed = content.annotate(writes);
        if changed.is_empty() {
            return Changed::No;
        }
        self.rewrite(view, version, place, &set.labels, &content, &changed)
    }

    /// Removes one value of a key, or all of them.
    pub fn erase(
        &mut self,
        view: TableView<'_>,
        version: Version,
        place: RowPlace,
        key: Token,
        value: Option<&Value>,
    ) -> Changed {
        let set = view.page(place.page()).set();
        if set.find(key).is_none() && !set.irregular {
            return Changed::No;
        }
        let mut content = self.content(view, place);
        if !content.remove(key, value) {
            return Changed::No;
        }
        self.rewrite(view, version, place, &set.labels, &content, &[key])
    }

    /// Changes the labels of a row.
    pub fn relabel(
        &mut self,
        view: TableView<'_>,
        version: Version,
        place: RowPlace,
        labels: &[Token],
    ) -> Changed {
        if *labels == *view.page(place.page()).set().labels {
            return Changed::No;
        }
        let content = self.content(view, place);
        self.rewrite(view, version, place, labels, &content, &[])
    }

    /// Stores new content in a row, or moves the row to its new set. `keys` are the ones that changed.
    fn rewrite(
        &mut self,
        view: TableView<'_>,
        version: Version,
        place: RowPlace,
        labels: &[Token],
        content: &Content,
        keys: &[Token],
    ) -> Changed {
        let (page, row) = (view.page(place.page()), place.row());
        let old = page.set();
        let set = self.sets.intern(&Shape::of(old.kind, labels, content)).clone();
        if !Arc::ptr_eq(&set, old) {
            let previous = self.previous(view, page, place, version);
            let owner = page.owners()[row].load(Ordering::Relaxed);
            let id = page.ids().map_or([0; 2], |ids| {
                // SAFETY: the writer's own row.
                unsafe { clone_text(load_pair(&ids[row])) }
            });
            let new = self.insert_words(view, Some(version), owner, id, &set, content, previous);
            self.remove(view, version, place);
            return Changed::Moved(new);
        }
        let column = |key: Token| {
            set.find(key).filter(|at| set.columns[usize::from(*at)].shape.column != ColumnType::Elsewhere)
        };
        let (mut changed, mut beyond) = (Changed::No, false);
        for (index, key) in keys.iter().enumerate() {
            let Some(at) = column(*key) else {
                beyond = true;
                continue;
            };
            if keys[..index].contains(key) {
                continue;
            }
            let entry = content.entries.iter().find(|entry| entry.key == *key);
            if let Some(Values::One(value)) = entry.map(|entry| &entry.values)
                && self.write_cell(view, version, place, at, encode(value)) != Changed::No
            {
                changed = Changed::Here;
            }
        }
        if beyond && set.overflow.is_some() {
            let beyond = content.entries.iter().filter(|entry| column(entry.key).is_none());
            let word = overflow_word(Overflow { entries: beyond.cloned().collect() });
            self.write_cell(view, version, place, OVERFLOW, [word, 0]);
            changed = Changed::Here;
        }
        changed
    }

    /// Returns where versions before this one find a row that moves now.
    fn previous(
        &self,
        view: TableView<'_>,
        page: Page<'_>,
        place: RowPlace,
        version: Version,
    ) -> Option<Previous> {
        let here = Some(Previous { place, ended: version });
        let mut record =
            page.undo().map_or(ptr::null(), |heads| heads[place.row()].load(Ordering::Relaxed).cast_const());
        // SAFETY: the writer's own records.
        while let Some(step) = unsafe { record.as_ref() } {
            if step.version != version {
                return here;
            }
            if let Undo::Inserted { previous } = step.undo {
                return previous;
            }
            record = step.next.load(Ordering::Relaxed);
        }
        // A row that was inserted with its page is in no earlier version.
        here.filter(|_| view.table.begin(place.page()) != version)
    }

    fn write_cell(
        &mut self,
        view: TableView<'_>,
        version: Version,
        place: RowPlace,
        column: u16,
        new: Words,
    ) -> Changed {
        let (page, row) = (view.page(place.page()), place.row());
        let overflows = page.overflows().filter(|_| column == OVERFLOW);
        let old = match overflows {
            Some(overflows) => [overflows[row].load(Ordering::Relaxed), 0],
            None => page.load(column, row),
        };
        if old == new {
            // Equal words that own something are the same allocation, owned twice.
            if overflows.is_none() && page.set().columns[usize::from(column)].shape.column.owns() {
                view.retire_words(page.set(), column, new);
            }
            return Changed::No;
        }
        if is_unseen(page.undo(), row, version, column, view.table.begin(place.page())) {
            view.retire_words(page.set(), column, old);
        } else {
            self.link(page, place, version, Undo::Cell { column, old });
        }
        match overflows {
            Some(overflows) => overflows[row].store(new[0], Ordering::Release),
            None => {
                page.set().profile.widen(column, page.set().columns[usize::from(column)].shape.column, new);
                page.column(column).store(row, new);
            }
        }
        // Replaced memory stays counted until the page is recounted, because the undo record owns it.
        view.table.add_bytes(
            page,
            match overflows {
                // SAFETY: the cell's own overflow.
                Some(_) => unsafe { overflow_at(new[0]) }.map_or(0, Overflow::heap_bytes),
                None => owned_bytes(page.set(), column, new),
            },
        );
        view.table.modify(place.page(), version.0);
        Changed::Here
    }
}
