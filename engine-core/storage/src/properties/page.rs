//! Pages: rows of one characteristic set, column after column (PAX).
//!
//! A page is one allocation: a header, a bit for each present row, then the columns: owner (GUI or SID), id,
//! overflow, keys. Cells are atomics of their width: the one writer stores, readers load. A page starts with 16 rows
//! and grows to 1,024. Growing copies it and retires the old one.
//!
//! What must never happen: a column accessed with another width than its own; a page kept longer than the guard under
//! which it was found.

use super::column::{ColumnType, Words};
use super::sets::Set;
use super::undo::Heads;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Rows of a page of full size.
pub(crate) const ROWS: usize = 1 << ROW_BITS;
pub(super) const ROW_BITS: u32 = 10;
/// Rows of a new set's first page.
const FIRST_ROWS: usize = 16;

/// The place of a row: number of its page, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct RowPlace(pub u32);

impl RowPlace {
    pub fn new(page: u32, row: usize) -> Self {
        debug_assert!(row < ROWS);
        Self(page << ROW_BITS | row as u32)
    }

    #[inline]
    pub fn page(self) -> u32 {
        self.0 >> ROW_BITS
    }

    #[inline]
    pub fn row(self) -> usize {
        self.0 as usize & (ROWS - 1)
    }
}

/// Header of a page in memory.
pub(crate) struct Block {
    /// Newest undo record of each row; null while no row has any.
    pub undo: AtomicPtr<Heads>,
    /// Number of rows ever used.
    pub used: AtomicU32,
    pub capacity: u32,
    /// Bytes that the page counts for, with what its cells own.
    pub bytes: AtomicU64,
    pub set: Arc<Set>,
}

/// Bytes before the bits of the rows.
const HEADER: usize = 64;
const _: () = assert!(size_of::<Block>() <= HEADER);

/// Returns the bytes before the columns.
fn base(capacity: usize) -> usize {
    HEADER + (capacity / 8).next_multiple_of(16)
}

fn layout(set: &Set, capacity: usize) -> Layout {
    let bytes = base(capacity) + capacity * set.row_bytes as usize;
    Layout::from_size_align(bytes, 64).expect("a page is far smaller than the address space")
}

/// A page during an epoch guard, or while no other code knows it.
#[derive(Clone, Copy)]
pub(crate) struct Page<'g> {
    block: NonNull<Block>,
    life: PhantomData<&'g Block>,
}

/// Returns the next larger capacity.
pub(crate) fn larger(capacity: usize) -> Option<usize> {
    (capacity < ROWS).then_some(capacity * 4)
}

impl<'g> Page<'g> {
    /// Allocates an empty page of a set; [`Self::free`] frees it.
    pub fn allocate(set: &Arc<Set>, capacity: usize) -> Self {
        let layout = layout(set, capacity);
        // SAFETY: the layout is not empty.
        let Some(block) = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<Block>()) else {
            handle_alloc_error(layout)
        };
        let header = Block {
            undo: AtomicPtr::default(),
            used: AtomicU32::new(0),
            capacity: capacity as u32,
            bytes: AtomicU64::new(0),
            set: set.clone(),
        };
        // SAFETY: room for a header, aligned, and not shared yet.
        unsafe { block.write(header) };
        Self { block, life: PhantomData }
    }

    /// # Safety
    ///
    /// The pointer is of a page that lives for `'g`.
    pub unsafe fn from_raw(block: *mut Block) -> Option<Self> {
        NonNull::new(block).map(|block| Self { block, life: PhantomData })
    }

    pub fn as_raw(self) -> *mut Block {
        self.block.as_ptr()
    }

    /// Frees a page, but not what its cells own, nor undo records.
    ///
    /// # Safety
    ///
    /// No other code has the page.
    pub unsafe fn free(self) {
        // SAFETY: made by `allocate` with this layout; the heads were boxed by the writer.
        unsafe {
            let layout = layout(self.set(), self.capacity());
            let heads = self.header().undo.load(Ordering::Relaxed);
            if !heads.is_null() {
                drop(Box::from_raw(heads));
            }
            self.block.drop_in_place();
            dealloc(self.block.as_ptr().cast(), layout);
        }
    }

    #[inline]
    pub fn header(self) -> &'g Block {
        // SAFETY: the page lives for `'g`, and the header changes only through its atomics.
        unsafe { self.block.as_ref() }
    }

    #[inline]
    pub fn set(self) -> &'g Arc<Set> {
        &self.header().set
    }

    #[inline]
    pub fn capacity(self) -> usize {
        self.header().capacity as usize
    }

    pub fn bytes(self) -> usize {
        layout(self.set(), self.capacity()).size()
    }

    /// Returns the heads of the undo chains, if any row has one.
    #[inline]
    pub fn undo(self) -> Option<&'g Heads> {
        let heads = self.header().undo.load(Ordering::Acquire);
        // SAFETY: heads are retired through the epoch after they were taken off the page.
        unsafe { heads.as_ref() }
    }

    /// Returns `count` cells that start `at` bytes into the page.
    ///
    /// # Safety
    ///
    /// `T` is the atomic of that column (or of the row bits), and the cells lie inside it.
    #[inline]
    unsafe fn cells<T>(self, at: usize, count: usize) -> &'g [T] {
        // SAFETY: inside the allocation, aligned (columns start at multiples of 16 bytes), initialised with zeros, and
        // accessed as this atomic only.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().cast::<u8>().add(at).cast::<T>(), count) }
    }

    /// Returns the bits of the rows that are present now.
    #[inline]
    pub fn present(self) -> &'g [AtomicU64] {
        // SAFETY: the bits follow the header, up to `base`.
        unsafe { self.cells(HEADER, self.capacity().div_ceil(64)) }
    }

    #[inline]
    pub fn is_present(self, row: usize) -> bool {
        self.present()[row / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1
    }

    #[inline]
    fn column_at(self, before: u32) -> usize {
        base(self.capacity()) + self.capacity() * before as usize
    }

    /// Returns the GUIs or SIDs of the rows.
    #[inline]
    pub fn owners(self) -> &'g [AtomicU64] {
        // SAFETY: the owner column is the first, 8 bytes a row.
        unsafe { self.cells(self.column_at(0), self.capacity()) }
    }

    /// Returns the ids, if the set has them.
    #[inline]
    pub fn ids(self) -> Option<&'g [[AtomicU64; 2]]> {
        // SAFETY: the id column is the second, 16 bytes a row.
        self.set().kind.with_id().then(|| unsafe { self.cells(self.column_at(8), self.capacity()) })
    }

    /// Returns the addresses of overflows, if the set has them.
    #[inline]
    pub fn overflows(self) -> Option<&'g [AtomicU64]> {
        let before = self.set().overflow?;
        // SAFETY: the overflow column, 8 bytes a row.
        Some(unsafe { self.cells(self.column_at(before), self.capacity()) })
    }

    /// Returns the cells of a column.
    #[inline]
    pub fn column(self, column: u16) -> Cells<'g> {
        let column = &self.set().columns[usize::from(column)];
        let (at, rows) = (self.column_at(column.before), self.capacity());
        // SAFETY: each type of column has its own width and atomic, which only this function chooses.
        unsafe {
            match column.shape.column.width() {
                1 => Cells::Bytes(self.cells(at, rows)),
                2 => Cells::Shorts(self.cells(at, rows)),
                4 => Cells::Ints(self.cells(at, rows)),
                8 => Cells::Longs(self.cells(at, rows)),
                16 => Cells::Pairs(self.cells(at, rows)),
                _ => Cells::None,
            }
        }
    }

    /// Prefetches the cell of a row in a column that starts `before` bytes into each row, if the page has full size.
    #[inline]
    pub fn prefetch(self, before: u32, width: u32, row: usize) {
        let at = base(ROWS) + ROWS * before as usize + row * width as usize;
        crate::hints::prefetch_address(self.block.as_ptr().cast::<u8>().wrapping_add(at));
    }

    #[inline]
    pub fn prefetch_header(self) {
        crate::hints::prefetch_address(self.block.as_ptr().cast::<u8>());
    }

    /// Prefetches the bit that says whether a row is present.
    #[inline]
    pub fn prefetch_presence(self, row: usize) {
        crate::hints::prefetch_address(self.block.as_ptr().cast::<u8>().wrapping_add(HEADER + row / 8));
    }

    /// Prefetches the bits of all rows.
    pub fn prefetch_present(self) {
        let bytes = (self.capacity() / 8).max(1);
        crate::hints::prefetch_lines(self.block.as_ptr().cast::<u8>().wrapping_add(HEADER), bytes);
    }

    /// Prefetches a whole column.
    pub fn prefetch_column(self, column: u16) {
        let column = &self.set().columns[usize::from(column)];
        let at = self.column_at(column.before);
        let bytes = self.capacity() * column.shape.column.width() as usize;
        crate::hints::prefetch_lines(self.block.as_ptr().cast::<u8>().wrapping_add(at), bytes);
    }

    /// Loads a cell with relaxed order; see [`super::read`].
    #[inline]
    pub fn load(self, column: u16, row: usize) -> Words {
        self.column(column).load(row)
    }
}

/// The cells of a column.
#[derive(Clone, Copy)]
pub(crate) enum Cells<'g> {
    None,
    Bytes(&'g [AtomicU8]),
    Shorts(&'g [AtomicU16]),
    Ints(&'g [AtomicU32]),
    Longs(&'g [AtomicU64]),
    Pairs(&'g [[AtomicU64; 2]]),
}

impl Cells<'_> {
    #[inline]
    pub fn load(self, row: usize) -> Words {
        match self {
            Self::None => [0; 2],
            Self::Bytes(cells) => [u64::from(cells[row].load(Ordering::Relaxed)), 0],
            Self::Shorts(cells) => [u64::from(cells[row].load(Ordering::Relaxed)), 0],
            Self::Ints(cells) => [u64::from(cells[row].load(Ordering::Relaxed)), 0],
            Self::Longs(cells) => [cells[row].load(Ordering::Relaxed), 0],
            Self::Pairs(cells) => load_pair(&cells[row]),
        }
    }

    /// Stores a cell with Release, after everything that it refers to.
    pub fn store(self, row: usize, words: Words) {
        match self {
            Self::None => {}
            Self::Bytes(cells) => cells[row].store(words[0] as u8, Ordering::Release),
            Self::Shorts(cells) => cells[row].store(words[0] as u16, Ordering::Release),
            Self::Ints(cells) => cells[row].store(words[0] as u32, Ordering::Release),
            Self::Longs(cells) => cells[row].store(words[0], Ordering::Release),
            Self::Pairs(cells) => store_pair(&cells[row], words),
        }
    }
}

#[inline]
pub(crate) fn load_pair(pair: &[AtomicU64; 2]) -> Words {
    [pair[0].load(Ordering::Relaxed), pair[1].load(Ordering::Relaxed)]
}

pub(crate) fn store_pair(pair: &[AtomicU64; 2], words: Words) {
    pair[0].store(words[0], Ordering::Release);
    pair[1].store(words[1], Ordering::Release);
}

/// Returns the rows of the next page of a set that has `pages` pages.
pub(crate) fn rows_of_new_page(pages: usize) -> usize {
    if pages == 0 { FIRST_ROWS } else { ROWS }
}

/// Returns the columns whose cells own memory: strings.
pub(crate) fn owning_columns(set: &Set) -> impl Iterator<Item = u16> {
    (0..)
        .zip(&set.columns)
        .filter(|(_, column)| column.shape.column == ColumnType::String)
        .map(|(index, _)| index)
}
