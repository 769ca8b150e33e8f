//! Values of a scan: columns of the requested keys, read from the page that was just scanned.
//!
//! The cells of all rows are loaded first; then the undo records show which rows have versions, as in
//! [`super::scan`]. Values of rows without records are decoded from the loaded cells, the others are read one by one.
//!
//! What must never happen: an address in a cell followed before the undo records were checked.

use super::column::{ColumnType, Words, decode};
use super::page::{Cells, Page};
use super::page_table::PageTable;
use super::read::{RowOwner, RowRequest, read_in};
use super::scan::Scan;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use tidegraph_apl::{Projection, ScannedColumn, ScannedValues};
use tidegraph_types::{Gui, Token, Value, Version, Width};

/// Keys to read, and buffers that are reused for each page.
pub(crate) struct Project<'r> {
    keys: &'r [Token],
    projection: Projection,
    rows: Vec<u16>,
    words: Vec<Words>,
    /// For each row that was found, whether it is read by itself.
    alone: Vec<bool>,
}

/// Where the values of a key are in the rows of one set.
enum Source {
    /// No row has any.
    Nowhere,
    /// In a column.
    Column(u16, ColumnType),
    /// In the overflow, or absent: each row needs a look.
    Overflow,
}

impl<'r> Project<'r> {
    pub fn new(keys: &'r [Token]) -> Self {
        let projection = Projection::Keys(keys.to_vec());
        Self { keys, projection, rows: Vec::new(), words: Vec::new(), alone: Vec::new() }
    }

    /// Appends the vertices of a page from a row on, with their values, as a version sees them. Returns the row to
    /// continue with if the answer reached its limit.
    pub fn page(
        &mut self,
        scan: &mut Scan<'_>,
        table: &PageTable,
        number: u32,
        first: usize,
        at: Version,
        guard: &Guard,
        limit: usize,
        out: &mut ScannedValues,
    ) -> Option<usize> {
        let (peek, bits) = scan.bits(table, number, first, at, guard)?;
        let page = peek.page();
        let begun = out.vertices.len();
        let mut next = None;
        self.rows.clear();
        'page: for (index, mut word) in bits.into_iter().enumerate().skip(first / 64) {
            while word != 0 {
                let row = index * 64 + word.trailing_zeros() as usize;
                if begun + self.rows.len() >= limit {
                    next = Some(row);
                    break 'page;
                }
                self.rows.push(row as u16);
                word &= word - 1;
            }
        }
        if self.rows.is_empty() {
            return next;
        }
        let owners = page.owners();
        let owner = |row: &u16| Gui(owners[usize::from(*row)].load(Ordering::Relaxed));
        out.vertices.extend(self.rows.iter().map(owner));
        let sources: Vec<Source> = self.keys.iter().map(|key| source(page, *key)).collect();
        if self.integers(page, &sources, begun, out) {
            return next;
        }
        self.words.clear();
        for source in &sources {
            if let Source::Column(at, _) = source {
                let cells = page.column(*at);
                self.words.extend(self.rows.iter().map(|row| cells.load(usize::from(*row))));
            }
        }
        fence(Ordering::Acquire);
        let any_alone = self.find_alone(page, &sources);
        let mut words = self.words.chunks_exact(self.rows.len());
        for (column, source) in out.columns.iter_mut().zip(&sources) {
            match source {
                Source::Nowhere | Source::Overflow => {
                    column.values_mut().resize(begun + self.rows.len(), Value::Null);
                }
                Source::Column(_, kind) => {
                    let Some(words) = words.next() else { continue };
                    append(*kind, words, any_alone.then_some(&self.alone[..]), column);
                }
            }
        }
        if any_alone {
            self.read_alone(page, table.begin(number), at, begun, out);
        }
        next
    }

    /// Appends the values of all columns if they are integers and no row has versions, as in most pages of a graph that was
    /// loaded: no value is made. Returns whether it did.
    fn integers(&self, page: Page<'_>, sources: &[Source], begun: usize, out: &mut ScannedValues) -> bool {
        let is_integer =
            |source: &Source| matches!(source, Source::Column(_, kind) if width_of(*kind).is_some());
        if page.undo().is_some() || !sources.iter().all(is_integer) {
            return false;
        }
        let mut fits = true;
        for (column, source) in out.columns.iter_mut().zip(sources) {
            let Source::Column(at, kind) = source else { continue };
            let integers = width_of(*kind).and_then(|width| column.integers_mut(width));
            let rows = self.rows.iter().map(|row| usize::from(*row));
            match (integers, page.column(*at)) {
                (Some(out), Cells::Longs(cells)) => {
                    out.extend(rows.map(|row| cells[row].load(Ordering::Relaxed) as i64));
                }
                (Some(out), Cells::Ints(cells)) => {
                    out.extend(rows.map(|row| i64::from(cells[row].load(Ordering::Relaxed) as i32)));
                }
                _ => fits = false,
            }
        }
        fence(Ordering::Acquire);
        fits = fits && page.undo().is_none();
        if !fits {
            out.columns.iter_mut().for_each(|column| column.truncate(begun));
        }
        fits
    }

    /// Finds the rows that must be read by themselves; returns whether there are any.
    fn find_alone(&mut self, page: Page<'_>, sources: &[Source]) -> bool {
        let all = sources.iter().any(|source| matches!(source, Source::Overflow));
        self.alone.clear();
        if all {
            self.alone.resize(self.rows.len(), true);
            return true;
        }
        let Some(heads) = page.undo() else { return false };
        let versioned = |row: &u16| !heads[usize::from(*row)].load(Ordering::Acquire).is_null();
        self.alone.extend(self.rows.iter().map(versioned));
        self.alone.contains(&true)
    }

    fn read_alone(&self, page: Page<'_>, begin: Version, at: Version, begun: usize, out: &mut ScannedValues) {
        let want = RowRequest { id: false, properties: &self.projection };
        for (index, row) in self.rows.iter().enumerate().filter(|(index, _)| self.alone[*index]) {
            let owner = RowOwner::Vertex(out.vertices[begun + index]);
            let mut counts: SmallVec<[usize; 8]> = SmallVec::from_elem(0, self.keys.len());
            for column in &mut out.columns {
                column.values_mut()[begun + index] = Value::Null;
            }
            // STO-1: the row was reused meanwhile, so its version was reclaimed and the answer is discarded.
            let Ok(Some(found)) = read_in(page, || begin, owner, usize::from(*row), at, want) else {
                continue;
            };
            found.for_each(want, |key, _, value| {
                let columns = self.keys.iter().zip(&mut out.columns).zip(&mut counts);
                for ((_, column), count) in columns.filter(|((other, _), _)| **other == key) {
                    add(&mut column.values_mut()[begun + index], *count, value.clone());
                    *count += 1;
                }
            });
        }
    }
}

fn source(page: Page<'_>, key: Token) -> Source {
    let set = page.set();
    match set.find(key) {
        Some(at) => match set.columns[usize::from(at)].shape.column {
            ColumnType::Elsewhere => Source::Overflow,
            kind => Source::Column(at, kind),
        },
        None if set.irregular => Source::Overflow,
        None => Source::Nowhere,
    }
}

/// Returns the width of the integers of a column; `None` for other values.
fn width_of(kind: ColumnType) -> Option<Width> {
    match kind {
        ColumnType::Long => Some(Width::Long),
        ColumnType::Int => Some(Width::Int),
        _ => None,
    }
}

/// Appends the values of cells; null for rows that are read by themselves.
fn append(kind: ColumnType, words: &[Words], alone: Option<&[bool]>, out: &mut ScannedColumn) {
    if let (None, Some(width)) = (alone, width_of(kind))
        && let Some(integers) = out.integers_mut(width)
    {
        match width {
            Width::Long => integers.extend(words.iter().map(|words| words[0] as i64)),
            Width::Int => integers.extend(words.iter().map(|words| i64::from(words[0] as i32))),
        }
        return;
    }
    let out = out.values_mut();
    // SAFETY: the words are of a column of this type. They were loaded before the check that found no undo record, so
    // they are the row's current ones, and what they point to lives while the caller's guard is pinned.
    let value = |words: &Words| unsafe { Value::from(decode(kind, *words)) };
    match (alone, kind) {
        // Without a branch for each value.
        (None, ColumnType::Long) => out.extend(words.iter().map(|words| Value::Long(words[0] as i64))),
        (None, ColumnType::Int) => out.extend(words.iter().map(|words| Value::Int(words[0] as i32))),
        (None, ColumnType::Double) => {
            out.extend(words.iter().map(|words| Value::Double(f64::from_bits(words[0]))));
        }
        (None, _) => out.extend(words.iter().map(value)),
        (Some(alone), _) => {
            let row = |(words, alone): (&Words, &bool)| if *alone { Value::Null } else { value(words) };
            out.extend(words.iter().zip(alone).map(row));
        }
    }
}

/// Adds a value to those that a key has already; several values become a set. One value may be a list.
fn add(there: &mut Value, count: usize, value: Value) {
    match (count, std::mem::take(there)) {
        (0, _) => *there = value,
        (1, one) => *there = Value::Set(Arc::new(vec![one, value])),
        (_, Value::Set(mut several)) => {
            Arc::make_mut(&mut several).push(value);
            *there = Value::Set(several);
        }
        (_, other) => *there = other,
    }
}
