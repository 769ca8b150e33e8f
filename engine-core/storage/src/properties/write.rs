//! Changing rows: one value, one key, the labels. What changes the set moves the row.

use super::column::{ColumnType, Words, clone_text, decode, encode, share_text};
use super::keeper::{Changed, Desk, Keeper, owned_bytes};
use super::overflow::{Content, Entry, MetaWrite, Overflow, Values};
use super::page::{Page, Place, load_pair};
use super::scalar::Scalar;
use super::sets::Shape;
use super::undo::{Heads, OVERFLOW, Previous, Undo, overflow_at, overflow_word};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_types::{Cardinality, PropertyWrite, Str, Token, Value, Version};

/// Whether the row came, or the cell was written, at this very version: then nobody sees what was before. `begin`: the
/// version that the page begins at, with all rows that no record says otherwise of.
fn is_unseen(heads: Option<&Heads>, row: usize, version: Version, column: u16, begin: Version) -> bool {
    let mut record = heads.map_or(ptr::null(), |heads| heads[row].load(Ordering::Relaxed).cast_const());
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
    begin == version
}

impl Keeper {
    /// Whether the newest version has the row. A row that is gone has an undo record until nothing names it any more, and
    /// a page in the file has none: so what is named there is present.
    pub fn is_present(&self, desk: Desk<'_>, place: Place) -> bool {
        desk.table.has_now(place, desk.guard)
    }

    /// The version that took a row away, if older ones may still see it.
    pub fn removed_at(&self, desk: Desk<'_>, place: Place) -> Option<Version> {
        let head = desk.page(place.page()).undo()?[place.row()].load(Ordering::Relaxed);
        // SAFETY: the writer's own records.
        let newest = unsafe { head.as_ref() }?;
        matches!(newest.undo, Undo::Removed).then_some(newest.version)
    }

    /// Labels of the newest version.
    pub fn labels(&self, desk: Desk<'_>, place: Place) -> &[Token] {
        self.sets.get(desk.table.set_of(place.page())).map_or(&[], |set| &set.labels)
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
                    // A text of its own allocation would look like another one.
                    if shape.column.owns() && there().is_same(value) {
                        return Changed::No;
                    }
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
        self.rewrite(desk, version, place, &labels, &content, &[key])
    }

    /// Writes several values, as one change: the row moves once at most.
    pub fn write_all(
        &mut self,
        desk: Desk<'_>,
        version: Version,
        place: Place,
        writes: &[&PropertyWrite],
    ) -> Changed {
        if let [one] = writes {
            return self.write(desk, version, place, one.key, one.cardinality, &one.value);
        }
        let mut content = self.content(desk, place);
        let changed = content.write_all(writes);
        if changed.is_empty() {
            return Changed::No;
        }
        let set = desk.page(place.page()).set();
        self.rewrite(desk, version, place, &set.labels, &content, &changed)
    }

    /// Writes or removes meta-properties, as one change.
    pub fn annotate(
        &mut self,
        desk: Desk<'_>,
        version: Version,
        place: Place,
        writes: &[MetaWrite<'_>],
    ) -> Changed {
        let set = desk.page(place.page()).set();
        if !set.irregular && writes.iter().all(|write| set.find(write.key).is_none()) {
            return Changed::No;
        }
        let mut content = self.content(desk, place);
        let changed = content.annotate(writes);
        if changed.is_empty() {
            return Changed::No;
        }
        self.rewrite(desk, version, place, &set.labels, &content, &changed)
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
        self.rewrite(desk, version, place, &set.labels, &content, &[key])
    }

    /// Gives a row other labels.
    pub fn relabel(&mut self, desk: Desk<'_>, version: Version, place: Place, labels: &[Token]) -> Changed {
        if *labels == *desk.page(place.page()).set().labels {
            return Changed::No;
        }
        let content = self.content(desk, place);
        self.rewrite(desk, version, place, labels, &content, &[])
    }

    /// Puts a row's new content in its place, or moves it to its new set. `keys`: those that changed.
    fn rewrite(
        &mut self,
        desk: Desk<'_>,
        version: Version,
        place: Place,
        labels: &[Token],
        content: &Content,
        keys: &[Token],
    ) -> Changed {
        let (page, row) = (desk.page(place.page()), place.row());
        let old = page.set();
        let set = self.sets.intern(&Shape::of(old.kind, labels, content)).clone();
        if !Arc::ptr_eq(&set, old) {
            let previous = self.previous(desk, page, place, version);
            let owner = page.owners()[row].load(Ordering::Relaxed);
            let id = page.ids().map_or([0; 2], |ids| {
                // SAFETY: the writer's own row.
                unsafe { clone_text(load_pair(&ids[row])) }
            });
            let new = self.insert_words(desk, Some(version), owner, id, &set, content, previous);
            self.remove(desk, version, place);
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
                && self.write_cell(desk, version, place, at, encode(value)) != Changed::No
            {
                changed = Changed::Here;
            }
        }
        if beyond && set.overflow.is_some() {
            let beyond = content.entries.iter().filter(|entry| column(entry.key).is_none());
            let word = overflow_word(Overflow { entries: beyond.cloned().collect() });
            self.write_cell(desk, version, place, OVERFLOW, [word, 0]);
            changed = Changed::Here;
        }
        changed
    }

    /// Where versions before this one find a row that moves now.
    fn previous(&self, desk: Desk<'_>, page: Page<'_>, place: Place, version: Version) -> Option<Previous> {
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
        // A row that came with its page is in no version before.
        here.filter(|_| desk.table.begin(place.page()) != version)
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
        if is_unseen(page.undo(), row, version, column, desk.table.begin(place.page())) {
            desk.retire_words(page.set(), column, old);
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
        // What went is counted until the page is counted anew: the undo record has it.
        desk.table.add_bytes(
            page,
            match overflows {
                // SAFETY: the cell's own overflow.
                Some(_) => unsafe { overflow_at(new[0]) }.map_or(0, Overflow::heap_bytes),
                None => owned_bytes(page.set(), column, new),
            },
        );
        desk.table.modify(place.page(), version.0);
        Changed::Here
    }
}
