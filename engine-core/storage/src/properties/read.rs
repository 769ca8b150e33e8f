//! Reads one row at a version, without a lock.
//!
//! Flow (STO-1): load the requested words; fence; check the row's owner and its undo chain; only then follow
//! addresses in the words. The writer links undo records before it stores words, so a word that is too new comes with
//! the record that restores the old one. In a page without versions this takes one check, not one for each cell.

use super::column::{ColumnType, Words, decode, share_text, with_text};
use super::overflow::{Entry, Overflow};
use super::page::{Page, RowPlace, load_pair};
use super::page_table::PageTable;
use super::scalar::Scalar;
use super::sets::{RowKind, Set};
use super::spill::lost;
use super::undo::{OVERFLOW, Previous, Visibility, overflow_at, walk};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::sync::atomic::{Ordering, fence};
use tidegraph_apl::{Projection, PropertyPredicate};
use tidegraph_types::{Cardinality, Gui, Sid, Str, Token, Value, Version};

/// The element that owns a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowOwner {
    Vertex(Gui),
    Edge(Sid),
}

impl RowOwner {
    pub fn word(self) -> u64 {
        match self {
            Self::Vertex(gui) => gui.0,
            Self::Edge(sid) => sid.0,
        }
    }

    pub fn of(kind: RowKind, word: u64) -> Self {
        match kind {
            RowKind::Vertex => Self::Vertex(Gui(word)),
            RowKind::Edge { .. } => Self::Edge(Sid(word)),
        }
    }

    fn has(self, kind: RowKind) -> bool {
        matches!(self, Self::Vertex(_)) == (kind == RowKind::Vertex)
    }
}

/// The requested parts of a row.
#[derive(Clone, Copy)]
pub(crate) struct RowRequest<'r> {
    pub id: bool,
    pub properties: &'r Projection,
}

impl RowRequest<'_> {
    pub const NOTHING: RowRequest<'static> = RowRequest { id: false, properties: &Projection::None };
    pub const ID: RowRequest<'static> = RowRequest { id: true, properties: &Projection::None };
    #[cfg(test)]
    pub const ALL: RowRequest<'static> = RowRequest { id: true, properties: &Projection::All };
}

/// The row now belongs to another element: look up its place again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stale;

#[expect(clippy::large_enum_variant, reason = "lives for one read, on the stack")]
enum ReadStep<'g> {
    Row(Row<'g>),
    Absent,
    /// The row came from there, after the version.
    Before(Previous),
}

/// A row as one version sees it.
pub(crate) struct Row<'g> {
    set: &'g Set,
    id: Words,
    /// The requested cells, in order of the set's columns.
    cells: SmallVec<[(u16, Words); 8]>,
    /// Address of the overflow, if it was requested.
    overflow: u64,
}

/// A row without versions, whose requested cells were handed over while it was read.
pub(crate) struct PlainRow<'g> {
    set: &'g Set,
    id: Words,
}

/// Largest number of keys that [`PageTable::read_plain`] reads.
const PLAIN_KEYS: usize = 4;

impl PageTable {
    /// Reads a row as [`Self::read`] does, but only if the row has no undo records and its set has a column for each
    /// requested key that it has. Calls `each` with the values, in order of the set's columns. Returns `None`, without
    /// a call, if the row must be read with [`Self::read`]: also if it is absent.
    #[inline]
    pub fn read_plain<'g>(
        &self,
        owner: RowOwner,
        place: RowPlace,
        at: Version,
        want: RowRequest<'_>,
        guard: &'g Guard,
        mut each: impl FnMut(Token, Cardinality, Value),
    ) -> Option<PlainRow<'g>> {
        let page = self.get(place.page(), guard)?;
        let (set, row): (&Set, usize) = (page.set(), place.row());
        let keys = match want.properties {
            Projection::None => &[],
            Projection::Keys(keys) if keys.len() <= PLAIN_KEYS => &keys[..],
            _ => return None,
        };
        if row >= page.capacity() || !owner.has(set.kind) || set.irregular {
            return None;
        }
        let mut cells = [(0_u16, [0_u64; 2]); PLAIN_KEYS];
        let mut count = 0;
        for key in keys {
            let Some(column) = set.find(*key) else { continue };
            if set.columns[usize::from(column)].shape.column == ColumnType::Elsewhere {
                return None;
            }
            let place = cells[..count].partition_point(|(before, _)| *before < column);
            if cells[..count].get(place).is_some_and(|(same, _)| *same == column) {
                continue;
            }
            cells.copy_within(place..count, place + 1);
            cells[place] = (column, page.load(column, row));
            count += 1;
        }
        let id = page.ids().filter(|_| want.id).map_or([0; 2], |ids| load_pair(&ids[row]));
        let present = page.is_present(row);
        fence(Ordering::Acquire);
        if page.owners()[row].load(Ordering::Relaxed) != owner.word() {
            return None;
        }
        let is_versioned = page.undo().is_some_and(|heads| !heads[row].load(Ordering::Acquire).is_null());
        // As in `look`, `begin` comes last.
        if is_versioned || !present || self.begin(place.page()) > at {
            return None;
        }
        for (column, words) in &cells[..count] {
            let shape = &set.columns[usize::from(*column)].shape;
            // SAFETY: the words are of this column and, as no record undoes them, the row's at this version. The writer
            // retires what they point to through the epoch.
            let value = unsafe { decode(shape.column, *words) };
            each(shape.key, shape.cardinality, value.into());
        }
        Some(PlainRow { set, id })
    }

    /// Reads the row of an owner at a version; returns `None` if it is absent then.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the row was reused for another element.
    #[inline]
    pub fn read<'g>(
        &self,
        owner: RowOwner,
        mut place: RowPlace,
        at: Version,
        want: RowRequest<'_>,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, Stale> {
        let mut ended = Version(u64::MAX);
        loop {
            match self.look(owner, place, at, want, guard)? {
                ReadStep::Row(row) => return Ok(Some(row)),
                ReadStep::Absent => return Ok(None),
                ReadStep::Before(before) if before.ended <= ended => {
                    (place, ended) = (before.place, before.ended);
                }
                // A step forward in time: the row was reused, because no reader may ask for the version any more.
                ReadStep::Before(_) => return Err(Stale),
            }
        }
    }

    /// Returns the place of the row that a version sees of an owner.
    ///
    /// # Errors
    ///
    /// [`Stale`] if the row was reused for another element.
    pub fn place_at(
        &self,
        owner: RowOwner,
        mut place: RowPlace,
        at: Version,
        guard: &Guard,
    ) -> Result<Option<RowPlace>, Stale> {
        let mut ended = Version(u64::MAX);
        loop {
            if self.whereabouts(place.page()).1 {
                // A page in the file has no versions, and a row that something names is present.
                return Ok((self.begin(place.page()) <= at).then_some(place));
            }
            match self.look(owner, place, at, RowRequest::NOTHING, guard)? {
                ReadStep::Row(_) => return Ok(Some(place)),
                ReadStep::Absent => return Ok(None),
                ReadStep::Before(before) if before.ended <= ended => {
                    (place, ended) = (before.place, before.ended);
                }
                ReadStep::Before(_) => return Err(Stale),
            }
        }
    }

    #[inline]
    fn look<'g>(
        &self,
        owner: RowOwner,
        place: RowPlace,
        at: Version,
        want: RowRequest<'_>,
        guard: &'g Guard,
    ) -> Result<ReadStep<'g>, Stale> {
        match self.get(place.page(), guard) {
            Some(page) => look(page, || self.begin(place.page()), owner, place.row(), at, want),
            // STO-1: the note makes the caller discard its answer.
            None if lost::is_noted() => Ok(ReadStep::Absent),
            None => Err(Stale),
        }
    }
    /// Returns whether the row at a place belongs to `owner`.
    #[inline]
    pub fn is_of(&self, owner: RowOwner, place: RowPlace, guard: &Guard) -> bool {
        self.get(place.page(), guard).is_some_and(|page| page.is_owned_by(owner, place.row()))
    }

    /// Prefetches the lines that reading a row needs, without touching the page: its header is one of these lines,
    /// and the table knows its set. The addresses are wrong for pages below full size, but then the set is small.
    #[inline]
    pub fn prefetch(&self, place: RowPlace, want: RowRequest<'_>, guard: &Guard) {
        /// The number of lines that a processor can fetch at a time.
        const LINES: usize = 8;
        let Some(page) = self.resident(place.page(), guard) else { return };
        let Some(set) = self.set(place.page()) else { return };
        let row = place.row();
        page.prefetch_header();
        page.prefetch(0, 8, row);
        page.prefetch_presence(row);
        if want.id && set.kind.with_id() {
            page.prefetch(8, 16, row);
        }
        let column =
            |at: usize| page.prefetch(set.columns[at].before, set.columns[at].shape.column.width(), row);
        match want.properties {
            Projection::None => {}
            Projection::All => (0..set.columns.len().min(LINES)).for_each(column),
            Projection::Keys(keys) => {
                keys.iter()
                    .take(LINES)
                    .filter_map(|key| set.find(*key))
                    .for_each(|at| column(usize::from(at)));
            }
        }
    }
}

impl Page<'_> {
    /// Returns whether a row belongs to `owner`.
    #[inline]
    pub fn is_owned_by(self, owner: RowOwner, row: usize) -> bool {
        row < self.capacity()
            && owner.has(self.set().kind)
            && self.owners()[row].load(Ordering::Acquire) == owner.word()
    }
}

/// Reads the row of an owner in a page, as a version sees it. Does not follow a row to the page where it was then.
pub(super) fn read_in<'g>(
    page: Page<'g>,
    begin: impl Fn() -> Version,
    owner: RowOwner,
    row: usize,
    at: Version,
    want: RowRequest<'_>,
) -> Result<Option<Row<'g>>, Stale> {
    Ok(match look(page, begin, owner, row, at, want)? {
        ReadStep::Row(row) => Some(row),
        ReadStep::Absent | ReadStep::Before(_) => None,
    })
}

/// Looks at a row of a page. `begin` is called last: it replaces undo records that were reclaimed.
#[inline]
fn look<'g>(
    page: Page<'g>,
    begin: impl Fn() -> Version,
    owner: RowOwner,
    row: usize,
    at: Version,
    want: RowRequest<'_>,
) -> Result<ReadStep<'g>, Stale> {
    let set: &Set = page.set();
    if row >= page.capacity() || !owner.has(set.kind) {
        return Err(Stale);
    }
    let mut found = Row { set, id: [0; 2], cells: SmallVec::new(), overflow: 0 };
    if want.id
        && let Some(ids) = page.ids()
    {
        found.id = load_pair(&ids[row]);
    }
    let mut beyond = false;
    match want.properties {
        Projection::None => {}
        Projection::All => {
            for at in 0..set.columns.len() as u16 {
                found.cells.push((at, page.load(at, row)));
            }
            beyond = true;
        }
        Projection::Keys(keys) => {
            for key in keys {
                match set.find(*key) {
                    Some(at) if found.cells.iter().all(|(there, _)| *there != at) => {
                        beyond |= set.columns[usize::from(at)].shape.column == ColumnType::Elsewhere;
                        found.cells.push((at, page.load(at, row)));
                    }
                    Some(_) => {}
                    None => beyond |= set.irregular,
                }
            }
            found.cells.sort_unstable_by_key(|(at, _)| *at);
        }
    }
    if beyond && let Some(overflows) = page.overflows() {
        found.overflow = overflows[row].load(Ordering::Relaxed);
    }
    let present = page.is_present(row);
    fence(Ordering::Acquire);
    if page.owners()[row].load(Ordering::Relaxed) != owner.word() {
        return Err(Stale);
    }
    let Some(heads) = page.undo() else {
        return Ok(if present && begin() <= at { ReadStep::Row(found) } else { ReadStep::Absent });
    };
    let head = heads[row].load(Ordering::Acquire);
    let older = |column: u16, old: Words| {
        if column == OVERFLOW {
            found.overflow = if beyond { old[0] } else { 0 };
        } else if let Some(cell) = found.cells.iter_mut().find(|(at, _)| *at == column) {
            cell.1 = old;
        }
    };
    // SAFETY: loaded under the guard.
    Ok(match unsafe { walk(head, present, at, older) } {
        Visibility::Here if begin() <= at => ReadStep::Row(found),
        Visibility::Here => ReadStep::Absent,
        Visibility::Absent => ReadStep::Absent,
        Visibility::Before(before) => ReadStep::Before(before),
    })
}

impl<'g> PlainRow<'g> {
    pub fn labels(&self) -> &'g [Token] {
        &self.set.labels
    }

    /// Returns the id, if it was requested and the row has one.
    pub fn id(&self) -> Option<Str> {
        // SAFETY: as for the cells in `read_plain`.
        self.set.kind.with_id().then(|| unsafe { share_text(self.id) })
    }
}

impl<'g> Row<'g> {
    pub fn labels(&self) -> &'g [Token] {
        &self.set.labels
    }

    /// Returns the id, if it was requested and the row has one.
    pub fn id(&self) -> Option<Str> {
        // SAFETY: the words belong to the row at this version, and the writer retires what they point to through the
        // epoch.
        self.set.kind.with_id().then(|| unsafe { share_text(self.id) })
    }

    /// Returns whether the id, which must have been requested, equals `id`.
    pub fn has_id(&self, id: &str) -> bool {
        // SAFETY: as in `id`.
        self.set.kind.with_id() && unsafe { with_text(self.id, |own| own == id) }
    }

    fn overflow(&self) -> Option<&'g Overflow> {
        // SAFETY: as in `id`.
        unsafe { overflow_at(self.overflow) }
    }

    /// Calls `each` with every requested value: values of a key together, keys in order of first writing.
    pub fn for_each(&self, want: RowRequest<'_>, mut each: impl FnMut(Token, Cardinality, Value)) {
        if *want.properties == Projection::None {
            return;
        }
        for (at, words) in &self.cells {
            let shape = &self.set.columns[usize::from(*at)].shape;
            if shape.column != ColumnType::Elsewhere {
                // SAFETY: the words are of this column; alive as in `id`.
                let value = unsafe { decode(shape.column, *words) };
                each(shape.key, shape.cardinality, value.into());
            } else if let Some(entry) = self.overflow().and_then(|overflow| overflow.find(shape.key)) {
                entry.values.iter().for_each(|value| each(shape.key, entry.cardinality, Value::from(value)));
            }
        }
        if !self.set.irregular {
            return;
        }
        for entry in self.overflow().into_iter().flat_map(|overflow| &overflow.entries) {
            let wanted = match want.properties {
                Projection::Keys(keys) => keys.contains(&entry.key),
                _ => true,
            };
            if wanted && self.set.find(entry.key).is_none() {
                entry.values.iter().for_each(|value| each(entry.key, entry.cardinality, Value::from(value)));
            }
        }
    }

    /// Calls `each` with every meta-property of the requested values, and the number of its value in the order of
    /// [`Self::for_each`].
    pub fn for_each_meta(&self, want: RowRequest<'_>, mut each: impl FnMut(u32, Token, Value)) {
        // A value with meta-properties has no column.
        let Some(overflow) = self.overflow() else { return };
        let mut number = 0;
        let mut values = |entry: &Entry| {
            for value in entry.values.iter() {
                value.meta().iter().for_each(|(key, value)| each(number, *key, Value::from(value)));
                number += 1;
            }
        };
        for (at, _) in &self.cells {
            let shape = &self.set.columns[usize::from(*at)].shape;
            if shape.column != ColumnType::Elsewhere {
                values(&Entry::PLAIN);
            } else if let Some(entry) = overflow.find(shape.key) {
                values(entry);
            }
        }
        if !self.set.irregular {
            return;
        }
        for entry in &overflow.entries {
            let wanted = match want.properties {
                Projection::Keys(keys) => keys.contains(&entry.key),
                _ => true,
            };
            if wanted && self.set.find(entry.key).is_none() {
                values(entry);
            }
        }
    }

    /// Returns whether every predicate passes. Their keys must have been requested.
    pub fn passes(&self, predicates: &[PropertyPredicate]) -> bool {
        predicates.iter().all(|predicate| self.passes_one(predicate))
    }

    fn passes_one(&self, predicate: &PropertyPredicate) -> bool {
        let key = predicate.key;
        let column = self.set.find(key).and_then(|at| self.cells.iter().find(|(there, _)| *there == at));
        if let Some((at, words)) = column {
            let shape = &self.set.columns[usize::from(*at)].shape;
            if shape.column != ColumnType::Elsewhere {
                // SAFETY: the words are of this column; alive as in `id`.
                let value: Scalar = unsafe { decode(shape.column, *words) };
                return predicate.test.passes(&value.into());
            }
        }
        let Some(entry) = self.overflow().and_then(|overflow| overflow.find(key)) else { return false };
        if predicate.sole && entry.values.iter().nth(1).is_some() {
            return false;
        }
        entry.values.iter().any(|value| predicate.test.passes(&Value::from(value)))
    }
}
