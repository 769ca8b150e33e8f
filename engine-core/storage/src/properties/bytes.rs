//! A page as bytes, and back: everything that its rows hold, with no reference to anything outside of it.
//!
//! Only what all versions see alike is written: a page with undo records is refused. All numbers are little-endian:
//!
//! | part | bytes |
//! |---|---|
//! | kind of owner (0 vertex, 1 edge, 2 edge with ids), irregular (0, 1) | 1, 1 |
//! | labels: number, each | 4, 4 |
//! | columns: number, each key, type, cardinality | 4, 4, 1, 1 |
//! | rows ever used | 4 |
//! | for each row: present (0, 1), and if it is: owner, id, cells, overflow | 1, 8, … |
//!
//! A cell has the width of its column; a text is its length (4) and its bytes; an overflow is the length (4) of a list
//! of property images and the list as a protobuf message. Rows keep their numbers.
//!
//! What must never happen: bytes that are wrong becoming anything but an error.

use super::column::{ColumnType, Words, encode_text, with_text};
use super::overflow::{Entry, Overflow, Values};
use super::page::{Page, PageTable, ROWS, larger, load_pair, rows_of_new_page, store_pair};
use super::scalar::Scalar;
use super::sets::{ColumnShape, Kind, Set, Shape};
use super::undo::{overflow_at, overflow_word};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_types::{Cardinality, Str, Token, Value};
use tidegraph_wire::proto::{PropertyImage, VertexImage};
use tidegraph_wire::{Message, value};

/// Why a page could not be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Versions see it differently.
    #[error("page {number} has versions")]
    Versioned { number: u32 },
    #[error("there is no page {number}")]
    Missing { number: u32 },
    #[error("a value cannot be written: {0}")]
    Value(#[from] tidegraph_wire::Error),
    #[error("the bytes of a page end at {at}, where {what} should stand")]
    Short { at: usize, what: &'static str },
    #[error("byte {at} of a page is {found}, which is no {what}")]
    Wrong { at: usize, found: u64, what: &'static str },
    #[error("a text of a page is not UTF-8 at {at}")]
    Text { at: usize },
}

impl PageTable {
    /// The bytes of a page.
    pub fn to_bytes(&self, number: u32, guard: &Guard) -> Result<Vec<u8>, Error> {
        let page = self.get(number, guard).ok_or(Error::Missing { number })?;
        let set = page.set();
        let mut out = vec![
            match set.kind {
                Kind::Vertex => 0,
                Kind::Edge { with_id } => 1 + u8::from(with_id),
            },
            u8::from(set.irregular),
        ];
        let count = |out: &mut Vec<u8>, count: usize| out.extend((count as u32).to_le_bytes());
        count(&mut out, set.labels.len());
        set.labels.iter().for_each(|label| out.extend(label.0.to_le_bytes()));
        count(&mut out, set.columns.len());
        for column in &set.columns {
            out.extend(column.shape.key.0.to_le_bytes());
            out.extend([column.shape.column as u8, column.shape.cardinality as u8]);
        }
        let used = page.header().used.load(Ordering::Acquire) as usize;
        count(&mut out, used);
        for row in 0..used {
            let present = page.is_present(row);
            out.push(u8::from(present));
            if present {
                put_row(page, row, &mut out)?;
            }
        }
        // Last: what was written meanwhile shows here.
        std::sync::atomic::fence(Ordering::Acquire);
        if page.undo().is_some() {
            return Err(Error::Versioned { number });
        }
        Ok(out)
    }
}

fn put_text(words: Words, out: &mut Vec<u8>) {
    // SAFETY: the caller's page holds the text, and its guard is pinned.
    unsafe {
        with_text(words, |text| {
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        });
    }
}

fn put_row(page: Page<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    out.extend(page.owners()[row].load(Ordering::Relaxed).to_le_bytes());
    if let Some(ids) = page.ids() {
        put_text(load_pair(&ids[row]), out);
    }
    for (at, column) in (0..).zip(&page.set().columns) {
        let words = page.load(at, row);
        match column.shape.column {
            ColumnType::String => put_text(words, out),
            other => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                out.extend(&bytes[..other.width() as usize]);
            }
        }
    }
    if let Some(overflows) = page.overflows() {
        // SAFETY: the cell's own, and the guard is pinned.
        let overflow = unsafe { overflow_at(overflows[row].load(Ordering::Relaxed)) };
        let mut list = VertexImage::default();
        for entry in overflow.into_iter().flat_map(|overflow| &overflow.entries) {
            let values = entry.values.iter().map(|stored| value::encode(&Value::from(stored)));
            list.properties.push(PropertyImage {
                key: entry.key.0,
                cardinality: value::encode_cardinality(entry.cardinality).into(),
                values: values.collect::<Result<_, _>>()?,
            });
        }
        let bytes = list.encode_to_vec();
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    }
    Ok(())
}

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

    fn flag(&mut self, what: &'static str) -> Result<bool, Error> {
        match self.number(1, what)? {
            flag @ 0..=1 => Ok(flag == 1),
            other => self.wrong(1, other, what),
        }
    }

    fn text(&mut self) -> Result<Str, Error> {
        let length = self.number(4, "the length of a text")? as usize;
        let at = self.at;
        let text = std::str::from_utf8(self.take(length, "a text")?);
        text.map(Str::new).map_err(|_| Error::Text { at })
    }
}

/// A page with its rows, not yet in any table.
pub(crate) struct Loaded {
    page: Page<'static>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: nobody else knows the page; rows that are not there own nothing.
        unsafe {
            super::settle::drop_rows(self.page);
            self.page.free();
        }
    }
}

impl Loaded {
    /// The page of some bytes.
    pub fn from_bytes(number: u32, bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader { bytes, at: 0 };
        let shape = get_shape(&mut reader)?;
        let used = reader.number(4, "the number of rows")?;
        if used > ROWS as u64 {
            return reader.wrong(4, used, "number of rows");
        }
        let mut capacity = rows_of_new_page(0);
        while capacity < used as usize {
            capacity = larger(capacity).unwrap_or(ROWS);
        }
        let loaded = Self { page: Page::allocate(&Arc::new(Set::new(number, &shape)), capacity) };
        let page = loaded.page;
        page.header().used.store(used as u32, Ordering::Relaxed);
        for row in 0..used as usize {
            if reader.flag("mark of a row")? {
                get_row(&mut reader, page, row)?;
                page.present()[row / 64].fetch_or(1 << (row % 64), Ordering::Relaxed);
            }
        }
        match reader.bytes.len() - reader.at {
            0 => Ok(loaded),
            more => Err(Error::Wrong { at: reader.at, found: more as u64, what: "end of a page" }),
        }
    }

    /// The page, for a table, which gives it back.
    pub fn into_page(self) -> Page<'static> {
        std::mem::ManuallyDrop::new(self).page
    }
}

fn get_shape(reader: &mut Reader<'_>) -> Result<Shape, Error> {
    let kind = match reader.number(1, "the kind of owner")? {
        0 => Kind::Vertex,
        1 => Kind::Edge { with_id: false },
        2 => Kind::Edge { with_id: true },
        other => return reader.wrong(1, other, "kind of owner"),
    };
    let irregular = reader.flag("mark of irregular sets")?;
    let mut labels: SmallVec<[Token; 4]> = SmallVec::new();
    for _ in 0..reader.number(4, "the number of labels")? {
        labels.push(reader.token("a label")?);
    }
    let mut columns: SmallVec<[ColumnShape; 8]> = SmallVec::new();
    for _ in 0..reader.number(4, "the number of columns")? {
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
        columns.push(ColumnShape { key, column, cardinality });
    }
    Ok(Shape { kind, labels, columns, irregular })
}

fn get_row(reader: &mut Reader<'_>, page: Page<'_>, row: usize) -> Result<(), Error> {
    page.owners()[row].store(reader.number(8, "an owner")?, Ordering::Relaxed);
    if let Some(ids) = page.ids() {
        store_pair(&ids[row], encode_text(&reader.text()?));
    }
    for (at, column) in (0..).zip(&page.set().columns) {
        let width = column.shape.column.width() as usize;
        let words = match column.shape.column {
            ColumnType::String => encode_text(&reader.text()?),
            _ if width <= 8 => [reader.number(width, "a cell")?, 0],
            _ => [reader.number(8, "a cell")?, reader.number(8, "a cell")?],
        };
        page.column(at).store(row, words);
    }
    if let Some(overflows) = page.overflows() {
        let length = reader.number(4, "the length of an overflow")? as usize;
        let at = reader.at;
        let list = VertexImage::decode(reader.take(length, "an overflow")?).map_err(|_| Error::Wrong {
            at,
            found: length as u64,
            what: "overflow",
        })?;
        let mut entries = Vec::new();
        for image in list.properties {
            let cardinality = value::decode_cardinality(image.cardinality)?;
            let mut values = Vec::with_capacity(image.values.len());
            for one in image.values {
                values.push(Scalar::from(&value::decode(one)?));
            }
            if let Some(values) = Values::of(values) {
                entries.push(Entry { key: Token(image.key), cardinality, values });
            }
        }
        overflows[row].store(overflow_word(Overflow { entries: entries.into() }), Ordering::Relaxed);
    }
    Ok(())
}
