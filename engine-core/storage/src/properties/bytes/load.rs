//! Decodes a page. Nothing in its bytes is trusted: no length, no text, no number of rows.

use super::super::column::{ColumnType, encode_str};
use super::super::overflow::{Entry, Overflow, Values};
use super::super::page::{Cells, Page, ROWS, larger, rows_of_new_page, store_pair};
use super::super::scalar::Scalar;
use super::super::sets::{ColumnShape, MOST_COLUMNS, RowKind, Set, Shape};
use super::super::undo::overflow_word;
use super::{COLUMN, Error};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_types::{Cardinality, Token};
use tidegraph_wire::proto::PropertyImages;
use tidegraph_wire::{Message, value};

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'b [u8], Error> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..count));
        let taken = taken.ok_or(Error::Short { at: self.at, what })?;
        self.at += count;
        Ok(taken)
    }

    fn number(&mut self, width: usize, what: &'static str) -> Result<u64, Error> {
        let mut word = [0; 8];
        word[..width].copy_from_slice(self.take(width, what)?);
        Ok(u64::from_le_bytes(word))
    }

    fn token(&mut self, what: &'static str) -> Result<Token, Error> {
        Ok(Token(self.number(4, what)? as u32))
    }

    fn wrong<T>(&self, width: usize, found: u64, what: &'static str) -> Result<T, Error> {
        Err(Error::Wrong { at: self.at - width, found, what })
    }

    /// Reads `rows` 4-byte numbers; returns them and their sum.
    fn lengths(&mut self, rows: usize, what: &'static str) -> Result<(Vec<usize>, usize), Error> {
        let bytes = self.take(rows * 4, what)?.as_chunks::<4>().0;
        let lengths: Vec<usize> = bytes.iter().map(|length| u32::from_le_bytes(*length) as usize).collect();
        let sum = lengths.iter().sum();
        Ok((lengths, sum))
    }
}

/// Which texts of a page to decode.
#[derive(Clone, Copy)]
pub(crate) enum Texts<'k> {
    /// All texts and ids.
    All,
    /// Those of these keys.
    Of(&'k [Token]),
}

impl Texts<'_> {
    fn has(self, key: Token) -> bool {
        match self {
            Self::All => true,
            Self::Of(keys) => keys.contains(&key),
        }
    }
}

/// A decoded page that is in no table yet.
pub(crate) struct Loaded {
    page: Page<'static>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: nobody else knows the page; rows that are not present own nothing.
        unsafe {
            super::super::reclaim::drop_rows(self.page);
            self.page.free();
        }
    }
}

impl Loaded {
    /// Decodes a page into a set of its own with the given number.
    pub fn from_bytes(number: u32, bytes: &[u8]) -> Result<Self, Error> {
        Self::of_set(bytes, |shape| Arc::new(Set::new(number, shape)))
    }

    /// Decodes a page into the set that `intern` returns for its shape.
    pub fn of_set(bytes: &[u8], intern: impl FnOnce(&Shape) -> Arc<Set>) -> Result<Self, Error> {
        Self::some_of_set(bytes, Texts::All, intern)
    }

    /// Like [`Self::of_set`], but leaves out texts that are not wanted: the page is for one look.
    pub fn some_of_set(
        bytes: &[u8],
        wanted: Texts<'_>,
        intern: impl FnOnce(&Shape) -> Arc<Set>,
    ) -> Result<Self, Error> {
        let mut reader = Reader { bytes, at: 0 };
        let (shape, rows) = get_shape(&mut reader)?;
        // Checked before anything is allocated: each row takes at least this many bytes.
        let columns = shape.columns.iter().map(|column| match column.column {
            ColumnType::String => 4,
            other => other.width() as usize,
        });
        let lengths = usize::from(shape.kind.with_id()) + usize::from(shape.has_overflow());
        let least = rows.div_ceil(64) * 8 + rows * (8 + columns.sum::<usize>() + 4 * lengths);
        if bytes.len() - reader.at < least {
            return Err(Error::Short { at: bytes.len(), what: "rows" });
        }
        let mut capacity = rows_of_new_page(0);
        while capacity < rows {
            capacity = larger(capacity).unwrap_or(ROWS);
        }
        let loaded = Self { page: Page::allocate(&intern(&shape), capacity) };
        loaded.page.header().used.store(rows as u32, Ordering::Relaxed);
        fill(&mut reader, loaded.page, rows, wanted)?;
        match bytes.len() - reader.at {
            0 => Ok(loaded),
            more => Err(Error::Wrong { at: reader.at, found: more as u64, what: "end of a page" }),
        }
    }

    /// Returns the page while it is not in a table.
    pub fn page(&self) -> Page<'_> {
        self.page
    }

    /// Returns the page for a table, which frees it later.
    pub fn into_page(self) -> Page<'static> {
        std::mem::ManuallyDrop::new(self).page
    }
}

fn get_shape(reader: &mut Reader<'_>) -> Result<(Shape, usize), Error> {
    let kind = match reader.number(1, "the kind of owner")? {
        0 => RowKind::Vertex,
        1 => RowKind::Edge { with_id: false },
        2 => RowKind::Edge { with_id: true },
        other => return reader.wrong(1, other, "kind of owner"),
    };
    let irregular = match reader.number(1, "mark of irregular sets")? {
        flag @ 0..=1 => flag == 1,
        other => return reader.wrong(1, other, "mark of irregular sets"),
    };
    let rows = reader.number(2, "the number of rows")?;
    if rows > ROWS as u64 {
        return reader.wrong(2, rows, "number of rows");
    }
    let labels = reader.number(4, "the number of labels")? as usize;
    let columns = reader.number(4, "the number of columns")?;
    if columns > MOST_COLUMNS as u64 {
        return reader.wrong(4, columns, "number of columns");
    }
    let tokens = reader.take(labels.saturating_mul(4), "labels")?.as_chunks::<4>().0;
    let labels = tokens.iter().map(|label| Token(u32::from_le_bytes(*label))).collect();
    let mut shapes: SmallVec<[ColumnShape; 8]> = SmallVec::new();
    for _ in 0..columns {
        let end = reader.at + COLUMN;
        let key = reader.token("a key")?;
        let number = reader.number(1, "a type")?;
        let Some(&column) = ColumnType::ALL.get(number as usize) else {
            return reader.wrong(1, number, "type of a column");
        };
        let cardinality = match reader.number(1, "a cardinality")? {
            n if n == Cardinality::Single as u64 => Cardinality::Single,
            n if n == Cardinality::Set as u64 => Cardinality::Set,
            n if n == Cardinality::List as u64 => Cardinality::List,
            other => return reader.wrong(1, other, "cardinality"),
        };
        match reader.number(end - reader.at, "padding")? {
            0 => shapes.push(ColumnShape { key, column, cardinality }),
            other => return reader.wrong(2, other, "padding"),
        }
    }
    Ok((Shape { kind, labels, columns: shapes, irregular }, rows as usize))
}

fn fill(reader: &mut Reader<'_>, page: Page<'_>, rows: usize, wanted: Texts<'_>) -> Result<(), Error> {
    let start = reader.at;
    let bits = reader.take(rows.div_ceil(64) * 8, "the bits of rows")?.as_chunks::<8>().0;
    let bits: SmallVec<[u64; 16]> = bits.iter().map(|word| u64::from_le_bytes(*word)).collect();
    if let Some(last) = bits.last()
        && !rows.is_multiple_of(64)
        && last >> (rows % 64) > 0
    {
        return Err(Error::Wrong { at: start, found: *last, what: "word of row bits" });
    }
    let present = |row: usize| bits[row / 64] >> (row % 64) & 1 == 1;
    store(reader, Cells::Longs(page.owners()), rows)?;
    let columns = || (0..).zip(&page.set().columns);
    for (at, column) in columns() {
        if column.shape.column != ColumnType::String {
            store(reader, page.column(at), rows)?;
        }
    }
    if let Some(ids) = page.ids() {
        match wanted {
            Texts::All => get_texts(reader, ids, rows, present)?,
            Texts::Of(_) => skip_texts(reader, rows)?,
        }
    }
    for (at, column) in columns() {
        if let Cells::Pairs(cells) = page.column(at)
            && column.shape.column == ColumnType::String
        {
            if wanted.has(column.shape.key) {
                get_texts(reader, cells, rows, present)?;
            } else {
                skip_texts(reader, rows)?;
            }
        }
    }
    if let Some(overflows) = page.overflows() {
        get_overflows(reader, overflows, rows, present)?;
    }
    for (to, word) in page.present().iter().zip(&bits) {
        to.store(*word, Ordering::Relaxed);
    }
    Ok(())
}

fn skip_texts(reader: &mut Reader<'_>, rows: usize) -> Result<(), Error> {
    let (_, sum) = reader.lengths(rows, "the lengths of texts")?;
    reader.take(sum, "texts").map(|_| ())
}

/// Stores a column of cells.
fn store(reader: &mut Reader<'_>, cells: Cells<'_>, rows: usize) -> Result<(), Error> {
    fn all<const N: usize, T>(
        reader: &mut Reader<'_>,
        cells: &[T],
        put: impl Fn(&T, [u8; N]),
    ) -> Result<(), Error> {
        let bytes = reader.take(cells.len() * N, "a column")?.as_chunks::<N>().0;
        cells.iter().zip(bytes).for_each(|(cell, bytes)| put(cell, *bytes));
        Ok(())
    }
    let relaxed = Ordering::Relaxed;
    match cells {
        Cells::None => Ok(()),
        Cells::Bytes(cells) => all(reader, &cells[..rows], |cell, [byte]| cell.store(byte, relaxed)),
        Cells::Shorts(cells) => {
            all(reader, &cells[..rows], |cell, bytes| cell.store(u16::from_le_bytes(bytes), relaxed))
        }
        Cells::Ints(cells) => {
            all(reader, &cells[..rows], |cell, bytes| cell.store(u32::from_le_bytes(bytes), relaxed))
        }
        Cells::Longs(cells) => {
            all(reader, &cells[..rows], |cell, bytes| cell.store(u64::from_le_bytes(bytes), relaxed))
        }
        Cells::Pairs(cells) => all(reader, &cells[..rows], |pair, bytes: [u8; 16]| {
            let words = u128::from_le_bytes(bytes);
            store_pair(pair, [words as u64, (words >> 64) as u64]);
        }),
    }
}

fn get_texts(
    reader: &mut Reader<'_>,
    cells: &[[AtomicU64; 2]],
    rows: usize,
    present: impl Fn(usize) -> bool,
) -> Result<(), Error> {
    let (lengths, sum) = reader.lengths(rows, "lengths of texts")?;
    let start = reader.at;
    let bytes = reader.take(sum, "texts")?;
    let texts =
        std::str::from_utf8(bytes).map_err(|error| Error::Text { at: start + error.valid_up_to() })?;
    let mut at = 0;
    for (row, length) in lengths.into_iter().enumerate() {
        let text = texts.get(at..at + length).ok_or(Error::Text { at: start + at })?;
        if length > 0 && !present(row) {
            return Err(Error::Wrong { at: start + at, found: row as u64, what: "row with texts" });
        }
        store_pair(&cells[row], encode_str(text));
        at += length;
    }
    Ok(())
}

/// Decodes a value that must be present.
fn get_value(message: Option<tidegraph_wire::proto::Value>) -> Result<Scalar, Error> {
    let missing = tidegraph_wire::Error::Missing { message: "MetaImage", field: "value" };
    Ok(Scalar::from(&value::decode(message.ok_or(missing)?)?))
}

fn get_overflows(
    reader: &mut Reader<'_>,
    cells: &[AtomicU64],
    rows: usize,
    present: impl Fn(usize) -> bool,
) -> Result<(), Error> {
    let (lengths, _) = reader.lengths(rows, "lengths of overflows")?;
    for (row, length) in lengths.into_iter().enumerate().filter(|(_, length)| *length > 0) {
        let at = reader.at;
        let wrong = Error::Wrong { at, found: length as u64, what: "overflow" };
        if !present(row) {
            return Err(wrong);
        }
        let Ok(list) = PropertyImages::decode(reader.take(length, "an overflow")?) else { return Err(wrong) };
        let mut entries = Vec::with_capacity(list.properties.len());
        for image in list.properties {
            let cardinality = value::decode_cardinality(image.cardinality)?;
            let mut values = Vec::with_capacity(image.values.len());
            for one in image.values {
                values.push(Scalar::from(&value::decode(one)?));
            }
            for of_one in image.meta.chunk_by(|a, b| a.of == b.of) {
                let of = of_one[0].of as usize;
                let Some(value) = values.get_mut(of).filter(|value| value.meta().is_empty()) else {
                    return Err(Error::Wrong { at, found: of as u64, what: "value with meta-properties" });
                };
                let meta = of_one.iter().map(|one| Ok((Token(one.key), get_value(one.value.clone())?)));
                *value = value.clone().annotated(meta.collect::<Result<_, Error>>()?);
            }
            if let Some(values) = Values::of(values) {
                entries.push(Entry { key: Token(image.key), cardinality, values });
            }
        }
        cells[row].store(overflow_word(Overflow { entries: entries.into() }), Ordering::Relaxed);
    }
    Ok(())
}
