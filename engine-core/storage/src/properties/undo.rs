//! Undo: what a page was before its newest writes, row by row, newest record first.
//!
//! A page without versions has no [`Heads`]. The writer links a record before it stores the new words, so that a reader
//! who loaded a new word, and then looks here, finds the record; the reader takes what stands in the oldest record
//! above its version. Records are never changed after they are linked, but for being cut off at the old end, when no
//! reader needs what comes there.
//!
//! What must never happen: a record freed while a reader may be at it. So what is cut off goes through the epoch.

use super::column::{ColumnType, Words, drop_text};
use super::overflow::Overflow;
use super::page::Place;
use super::sets::Set;
use crossbeam_epoch::Guard;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use tidegraph_types::Version;

/// Number of the overflow cell, where columns are meant.
pub(crate) const OVERFLOW: u16 = u16::MAX;

/// Where a row was before it moved, for versions before `ended`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Previous {
    pub place: Place,
    pub ended: Version,
}

/// What one write did to a row.
#[derive(Debug)]
pub(crate) enum Undo {
    /// It came here.
    Inserted { previous: Option<Previous> },
    /// It left. Its cells stay until nobody reads them.
    Removed,
    /// A cell had these words, which the record owns.
    Cell { column: u16, old: Words },
}

/// A step of a row's chain.
#[derive(Debug)]
pub(crate) struct Record {
    pub version: Version,
    pub undo: Undo,
    /// The next older one.
    pub next: AtomicPtr<Record>,
    /// Rows that it is linked to: only insertions without a previous place are shared. The writer's own.
    rows: AtomicU32,
}

impl Record {
    pub fn new(version: Version, undo: Undo, next: *mut Self) -> *mut Self {
        let rows = AtomicU32::new(1);
        Box::into_raw(Box::new(Self { version, undo, next: AtomicPtr::new(next), rows }))
    }

    /// One more row is linked to it.
    pub fn share(&self) {
        self.rows.fetch_add(1, Ordering::Relaxed);
    }
}

/// The newest record of each row.
pub(crate) type Heads = Box<[AtomicPtr<Record>]>;

/// Heads of as many rows, all empty.
pub(crate) fn heads(rows: usize) -> Heads {
    (0..rows).map(|_| AtomicPtr::default()).collect()
}

/// Gives back what a cell owns.
///
/// # Safety
///
/// The words are of that column and own what they point to; nobody uses them after this.
pub(crate) unsafe fn drop_words(column: ColumnType, words: Words) {
    if column == ColumnType::String {
        // SAFETY: the caller's promise.
        unsafe { drop_text(words) };
    }
}

/// The overflow behind a cell, if there is any.
///
/// # Safety
///
/// The word is of an overflow cell and what it points to lives for `'g`.
pub(crate) unsafe fn overflow_at<'g>(word: u64) -> Option<&'g Overflow> {
    let overflow: *const Overflow = std::ptr::with_exposed_provenance(word as usize);
    // SAFETY: null, or made by `overflow_word` and alive by the caller's promise.
    unsafe { overflow.as_ref() }
}

/// The cell of an overflow; it owns it.
pub(crate) fn overflow_word(overflow: Overflow) -> u64 {
    if overflow.entries.is_empty() {
        return 0;
    }
    Arc::into_raw(Arc::new(overflow)).expose_provenance() as u64
}

/// Gives back the overflow that a cell owns.
///
/// # Safety
///
/// The word is of an overflow cell and owns its overflow; nobody uses it after this.
pub(crate) unsafe fn drop_overflow(word: u64) {
    let overflow: *const Overflow = std::ptr::with_exposed_provenance(word as usize);
    if !overflow.is_null() {
        // SAFETY: made by `Arc::into_raw`, owned by the cell.
        drop(unsafe { Arc::from_raw(overflow) });
    }
}

/// # Safety
///
/// As [`drop_words`], for a column of a set or the overflow.
pub(crate) unsafe fn drop_cell(set: &Set, column: u16, words: Words) {
    // SAFETY: the caller's promise.
    unsafe {
        match set.columns.get(usize::from(column)) {
            Some(column) => drop_words(column.shape.column, words),
            None => drop_overflow(words[0]),
        }
    }
}

/// Drops a chain of records with what they own; shared ones lose one row.
///
/// # Safety
///
/// The chain is the caller's alone, but for shared records.
pub(crate) unsafe fn drop_chain(set: &Set, mut record: *mut Record) {
    while !record.is_null() {
        // SAFETY: a live record, made by `Record::new`; the last row to let go of it frees it.
        unsafe {
            let next = (*record).next.load(Ordering::Relaxed);
            if (*record).rows.fetch_sub(1, Ordering::AcqRel) == 1 {
                let record = Box::from_raw(record);
                if let Undo::Cell { column, old } = record.undo {
                    drop_cell(set, column, old);
                }
            }
            record = next;
        }
    }
}

/// Lets a chain go once no reader is at it.
///
/// # Safety
///
/// The chain was unlinked: no reader that pins its epoch from now on finds it.
pub(crate) unsafe fn retire_chain(set: &Arc<Set>, record: *mut Record, guard: &Guard) {
    if record.is_null() {
        return;
    }
    // Shared records are counted down here, by the writer, so that the last row to let go of one is also the last that a
    // reader can come from. Only the oldest record of a chain is ever shared.
    let mut before: Option<&Record> = None;
    // SAFETY: the chain is alive until the closure below has run.
    let mut last = unsafe { &*record };
    // SAFETY: as above.
    while let Some(next) = unsafe { last.next.load(Ordering::Relaxed).as_ref() } {
        (before, last) = (Some(last), next);
    }
    if last.rows.fetch_sub(1, Ordering::Relaxed) > 1 {
        match before {
            // Readers that need what was cut off are gone, so none misses the rest of it.
            Some(before) => before.next.store(std::ptr::null_mut(), Ordering::Release),
            None => return,
        }
    } else {
        last.rows.store(1, Ordering::Relaxed);
    }
    let set = set.clone();
    // SAFETY: nobody is at the chain when this runs; the records may be freed by any thread.
    unsafe { guard.defer_unchecked(move || drop_chain(&set, record)) };
}

/// What a version sees of a row, given its newest state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Here,
    Absent,
    /// Not here yet: look there.
    Before(Previous),
}

/// Walks a chain back to a version. `cell` gets the older words of cells, newest first.
///
/// # Safety
///
/// The chain was loaded under the guard of the caller, which is still pinned.
pub(crate) unsafe fn walk(
    mut record: *const Record,
    present: bool,
    at: Version,
    mut cell: impl FnMut(u16, Words),
) -> Seen {
    let mut present = present;
    // SAFETY: records stay alive while the guard is pinned (`retire_chain`).
    while let Some(step) = unsafe { record.as_ref() } {
        if step.version <= at {
            break;
        }
        match step.undo {
            Undo::Inserted { previous } => {
                return match previous {
                    Some(previous) if at < previous.ended => Seen::Before(previous),
                    _ => Seen::Absent,
                };
            }
            Undo::Removed => present = true,
            Undo::Cell { column, old } => cell(column, old),
        }
        record = step.next.load(Ordering::Acquire);
    }
    if present { Seen::Here } else { Seen::Absent }
}
