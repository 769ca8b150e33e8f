//! Encodes and decodes a page: everything that its rows hold, without references to anything outside.
//!
//! Columns have the same bytes as in memory, so most of a page is copied. All numbers are little-endian:
//!
//! | part | bytes |
//! |---|---|
//! | kind of owner (0 vertex, 1 edge, 2 edge with ids), irregular (0, 1), rows | 1, 1, 2 |
//! | number of labels, number of columns | 4, 4 |
//! | labels | 4 each |
//! | columns: key, type, cardinality, zeros | 4, 1, 1, 2 each |
//! | a bit for each row that is present, in words | 8 for 64 rows |
//! | owners | 8 a row |
//! | each column of numbers | its width a row |
//! | each column of texts, ids first: lengths, then the texts | 4 a row, … |
//! | overflows, if the set has them: lengths, then protobuf messages | 4 a row, … |
//!
//! Rows keep their numbers. A row that is not present is all zeros.
//!
//! Roles: this file encodes, `load` decodes. Flow of encoding: copy all cells, then read the undo records and restore
//! what the version saw, and only then follow the addresses of texts and overflows (as [`super::read`] does for a
//! row).
//!
//! What must never happen: wrong bytes that decode to anything but an error; a page that mixes versions (STO-1).

mod load;

pub(crate) use load::{Loaded, Texts};

use super::column::{ColumnType, Words, with_text};
use super::overflow::{Entry, Overflow};
use super::page::{Cells, Page, load_pair};
use super::page_table::PageTable;
use super::sets::{RowKind, Set};
use super::undo::{Heads, Visibility, overflow_at, walk};
use crossbeam_epoch::Guard;
use std::sync::atomic::{Ordering, fence};
use tidegraph_types::{Value, Version};
use tidegraph_wire::proto::{MetaImage, PropertyImage, PropertyImages};
use tidegraph_wire::{Message, value};

/// Bytes of a column's description.
const COLUMN: usize = 8;

/// Why a page could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The page differs between versions.
    #[error("page {number} has versions")]
    Versioned { number: u32 },
    #[error("there is no page {number}")]
    Missing { number: u32 },
    #[error("a value cannot be written or read: {0}")]
    Value(#[from] tidegraph_wire::Error),
    #[error("the bytes of a page end at {at}, where {what} is expected")]
    Short { at: usize, what: &'static str },
    #[error("byte {at} of a page is {found}, not a valid {what}")]
    Wrong { at: usize, found: u64, what: &'static str },
    #[error("a text of a page is not UTF-8 at {at}")]
    Text { at: usize },
}

impl Error {
    /// Returns the offset of the error in the bytes, as far as it is known.
    pub fn offset(&self) -> usize {
        match self {
            Self::Short { at, .. } | Self::Wrong { at, .. } | Self::Text { at } => *at,
            Self::Versioned { .. } | Self::Missing { .. } | Self::Value(_) => 0,
        }
    }
}

/// Buffers for a page's cells before its undo records are read; reused from page to page.
#[derive(Default)]
pub(crate) struct Scratch {
    present: Vec<u64>,
    /// Cells of texts, column after column, ids first.
    texts: Vec<Words>,
    overflows: Vec<u64>,
}

impl PageTable {
    /// Encodes a page in memory that looks the same to all versions that see it. Refuses a page with undo records.
    pub fn to_bytes(&self, number: u32, guard: &Guard) -> Result<Vec<u8>, Error> {
        let page = self.resident(number, guard).ok_or(Error::Missing { number })?;
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        let copied = copy(page, &mut scratch, &mut out);
        // Checked last, so that concurrent writes show here.
        fence(Ordering::Acquire);
        if page.undo().is_some() {
            return Err(Error::Versioned { number });
        }
        finish(&copied, &mut scratch, &mut out)?;
        Ok(out)
    }

    /// Appends the bytes of a page as a pinned version sees it, and returns the number of its rows. Appends nothing
    /// if there are none. A page that cannot be read counts as empty and leaves a note
    /// ([`lost`](super::spill::lost)).
    pub fn append_bytes_at(
        &self,
        number: u32,
        at: Version,
        guard: &Guard,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let Some(peek) = self.peek(number, Texts::All, guard) else { return Ok(0) };
        let page = peek.page();
        let start = out.len();
        let copied = copy(page, scratch, out);
        // STO-1: a cell that was loaded too new comes with the undo record that restores it.
        fence(Ordering::Acquire);
        if let Some(heads) = page.undo() {
            rewind(&copied, heads, at, scratch, out);
        }
        if self.begin(number) > at {
            scratch.present.fill(0);
        }
        let rows = scratch.present.iter().map(|word| word.count_ones() as usize).sum();
        let written = if rows > 0 { finish(&copied, scratch, out) } else { Ok(()) };
        if rows == 0 || written.is_err() {
            out.truncate(start);
        }
        written.map(|()| rows)
    }
}

/// A page as `copy` left it.
struct Copied<'g> {
    set: &'g Set,
    rows: usize,
    /// Offset of the row bits in the output; owners and columns of numbers follow.
    bits: usize,
}

impl Copied<'_> {
    fn owners(&self) -> usize {
        self.bits + self.rows.div_ceil(64) * 8
    }

    /// Returns the type of each column and its offset, in the output or among the texts.
    fn columns(&self) -> impl Iterator<Item = (ColumnType, usize)> {
        let (mut bytes, mut texts) = (self.owners() + self.rows * 8, 0);
        if self.set.kind.with_id() {
            texts += self.rows;
        }
        self.set.columns.iter().map(move |column| {
            let column = column.shape.column;
            let (next, width) = match column {
                ColumnType::String => (&mut texts, 1),
                _ => (&mut bytes, column.width() as usize),
            };
            let at = *next;
            *next += width * self.rows;
            (column, at)
        })
    }
}

/// Appends everything of fixed width, and loads the rest into the scratch.
fn copy<'g>(page: Page<'g>, scratch: &mut Scratch, out: &mut Vec<u8>) -> Copied<'g> {
    let set: &Set = page.set();
    let rows = page.header().used.load(Ordering::Acquire) as usize;
    out.push(match set.kind {
        RowKind::Vertex => 0,
        RowKind::Edge { with_id } => 1 + u8::from(with_id),
    });
    out.push(u8::from(set.irregular));
    out.extend((rows as u16).to_le_bytes());
    out.extend((set.labels.len() as u32).to_le_bytes());
    out.extend((set.columns.len() as u32).to_le_bytes());
    set.labels.iter().for_each(|label| out.extend(label.0.to_le_bytes()));
    for column in &set.columns {
        out.extend(column.shape.key.0.to_le_bytes());
        out.extend([column.shape.column as u8, column.shape.cardinality as u8, 0, 0]);
    }
    let copied = Copied { set, rows, bits: out.len() };
    scratch.present.clear();
    for (index, word) in page.present()[..rows.div_ceil(64)].iter().enumerate() {
        // Rows that were added after their number was loaded belong to a later version.
        let mask = u64::MAX >> (64 - (rows - index * 64).min(64));
        scratch.present.push(word.load(Ordering::Relaxed) & mask);
    }
    out.resize(out.len() + scratch.present.len() * 8, 0);
    append(Cells::Longs(page.owners()), rows, out);
    scratch.texts.clear();
    if let Some(ids) = page.ids() {
        scratch.texts.extend(ids[..rows].iter().map(load_pair));
    }
    for (at, column) in (0..).zip(&set.columns) {
        match page.column(at) {
            Cells::Pairs(cells) if column.shape.column == ColumnType::String => {
                scratch.texts.extend(cells[..rows].iter().map(load_pair));
            }
            cells => append(cells, rows, out),
        }
    }
    scratch.overflows.clear();
    if let Some(overflows) = page.overflows() {
        scratch.overflows.extend(overflows[..rows].iter().map(|word| word.load(Ordering::Relaxed)));
    }
    copied
}

/// Appends cells unchanged.
fn append(cells: Cells<'_>, rows: usize, out: &mut Vec<u8>) {
    fn all<const N: usize, T>(cells: &[T], out: &mut Vec<u8>, bytes: impl Fn(&T) -> [u8; N]) {
        let start = out.len();
        out.resize(start + cells.len() * N, 0);
        for (to, cell) in out[start..].as_chunks_mut::<N>().0.iter_mut().zip(cells) {
            *to = bytes(cell);
        }
    }
    let relaxed = Ordering::Relaxed;
    match cells {
        Cells::None => {}
        Cells::Bytes(cells) => all(&cells[..rows], out, |cell| [cell.load(relaxed)]),
        Cells::Shorts(cells) => all(&cells[..rows], out, |cell| cell.load(relaxed).to_le_bytes()),
        Cells::Ints(cells) => all(&cells[..rows], out, |cell| cell.load(relaxed).to_le_bytes()),
        Cells::Longs(cells) => all(&cells[..rows], out, |cell| cell.load(relaxed).to_le_bytes()),
        Cells::Pairs(cells) => all(&cells[..rows], out, |pair| pair_bytes(load_pair(pair))),
    }
}

fn pair_bytes(words: Words) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_le_bytes());
    bytes[8..].copy_from_slice(&words[1].to_le_bytes());
    bytes
}

/// Restores what a version sees from the copy and the undo records.
fn rewind(copied: &Copied<'_>, heads: &Heads, at: Version, scratch: &mut Scratch, out: &mut [u8]) {
    let places: Vec<(ColumnType, usize)> = copied.columns().collect();
    let Scratch { present, texts, overflows, .. } = scratch;
    for (row, head) in heads[..copied.rows].iter().enumerate() {
        let head = head.load(Ordering::Acquire);
        if head.is_null() {
            continue;
        }
        let (word, bit) = (&mut present[row / 64], 1 << (row % 64));
        let older = |column: u16, old: Words| match places.get(usize::from(column)) {
            Some((ColumnType::String, texts_at)) => texts[texts_at + row] = old,
            Some((column, at)) => {
                let width = column.width() as usize;
                out[at + row * width..][..width].copy_from_slice(&pair_bytes(old)[..width]);
            }
            None => overflows[row] = old[0],
        };
        // SAFETY: loaded under the caller's guard.
        match unsafe { walk(head, *word & bit != 0, at, older) } {
            Visibility::Here => *word |= bit,
            // A row that was in another page then is written with that page.
            Visibility::Absent | Visibility::Before(_) => *word &= !bit,
        }
    }
}

/// Clears rows that are not present, and appends texts and overflows.
fn finish(copied: &Copied<'_>, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<(), Error> {
    let rows = copied.rows;
    let bits = out[copied.bits..].as_chunks_mut::<8>().0;
    bits.iter_mut().zip(&scratch.present).for_each(|(to, word)| *to = word.to_le_bytes());
    let absent = |row: &usize| scratch.present[row / 64] >> (row % 64) & 1 == 0;
    for row in (0..rows).filter(absent) {
        out[copied.owners() + row * 8..][..8].fill(0);
        for (column, at) in copied.columns().filter(|(column, _)| *column != ColumnType::String) {
            let width = column.width() as usize;
            out[at + row * width..][..width].fill(0);
        }
        scratch.texts.iter_mut().skip(row).step_by(rows).for_each(|words| *words = [0; 2]);
        if let Some(word) = scratch.overflows.get_mut(row) {
            *word = 0;
        }
    }
    for texts in scratch.texts.chunks(rows.max(1)) {
        let lengths = out.len();
        out.resize(lengths + rows * 4, 0);
        for (row, words) in texts.iter().enumerate() {
            // SAFETY: the page, or an undo record, held the text when the caller's guard was pinned.
            unsafe {
                with_text(*words, |text| {
                    out[lengths + row * 4..][..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
                    out.extend_from_slice(text.as_bytes());
                });
            }
        }
    }
    let lengths = out.len();
    out.resize(lengths + scratch.overflows.len() * 4, 0);
    for (row, word) in scratch.overflows.iter().enumerate() {
        // SAFETY: as for texts.
        let Some(overflow) = (unsafe { overflow_at(*word) }) else { continue };
        let start = out.len();
        overflow_image(overflow)?.encode_raw(out);
        let length = (out.len() - start) as u32;
        out[lengths + row * 4..][..4].copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

fn overflow_image(overflow: &Overflow) -> Result<PropertyImages, Error> {
    let image = |entry: &Entry| {
        let values = entry.values.iter().map(|stored| value::encode(&Value::from(stored)));
        let mut meta = Vec::new();
        for (of, stored) in (0..).zip(entry.values.iter()) {
            for (key, stored) in stored.meta() {
                let value = Some(value::encode(&Value::from(stored))?);
                meta.push(MetaImage { of, key: key.0, value });
            }
        }
        Ok(PropertyImage {
            key: entry.key.0,
            cardinality: value::encode_cardinality(entry.cardinality).into(),
            values: values.collect::<Result<_, _>>()?,
            meta,
        })
    };
    Ok(PropertyImages { properties: overflow.entries.iter().map(image).collect::<Result<_, Error>>()? })
}
