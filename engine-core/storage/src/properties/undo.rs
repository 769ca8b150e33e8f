//! Undo records: what the rows of a page were before their newest writes, newest record first.
//!
//! A page without versions has no [`Heads`]. The writer links a record before it stores the new words, so a reader
//! that loaded a new word and then looks here finds the record (STO-1). The reader takes the value in the oldest
//! record above its version. Linked records never change, except that their old end is cut off when no reader needs
//! it.
//!
//! What must never happen: a record freed while a reader may use it. So cut-off records are retired through the
//! epoch.

use super::column::{ColumnType, Words, drop_text};
use super::overflow::Overflow;
use super::page::RowPlace;
use super::sets::Set;
use crossbeam_epoch::Guard;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use tidegraph_types::Version;

/// Number of the overflow cell, in place of a column number.
pub(crate) const OVERFLOW: u16 = u16::MAX;

/// Where versions before `ended` find a row that has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Previous {
    pub place: RowPlace,
    pub ended: Version,
}

/// The effect of one write on a row.
#[derive(Debug)]
pub(crate) enum Undo {
    /// The row was inserted here.
    Inserted { previous: Option<Previous> },
    /// The row was removed. Its cells stay until no reader uses them.
    Removed,
    /// A cell had these words, which the record owns.
    Cell { column: u16, old: Words },
}

/// A record in a row's chain.
#[derive(Debug)]
pub(crate) struct Record {
    pub version: Version,
    pub undo: Undo,
    /// The next older record.
    pub next: AtomicPtr<Record>,
    /// Number of rows that link to it: only insertions without a previous place are shared. Only the writer uses it.
    rows: AtomicU32,
}

impl Record {
    pub fn new(version: Version, undo: Undo, next: *mut Self) -> *mut Self {
        let rows = AtomicU32::new(1);
        Box::into_raw(Box::new(Self { version, undo, next: AtomicPtr::new(next), rows }))
    }

    /// Counts one more row that links to it.
    pub fn share(&self) {
        self.rows.fetch_add(1, Ordering::Relaxed);
    }
}

/// The newest record of each row.
pub(crate) type Heads = Box<[AtomicPtr<Record>]>;

/// Makes empty heads.
pub(crate) fn heads(rows: usize) -> Heads {
    (0..rows).map(|_| AtomicPtr::default()).collect()
}

/// Frees what a cell owns.
///
/// # Safety
///
/// The words are of that column and own what they point to; they are not used afterwards.
pub(crate) unsafe fn drop_words(column: ColumnType, words: Words) {
    if column == ColumnType::String {
        // SAFETY: the caller's promise.
        unsafe { drop_text(words) };
    }
}

/// Returns the overflow of a cell, if it has one.
///
/// # Safety
///
/// The word is of an overflow cell, and what it points to lives for `'g`.
pub(crate) unsafe fn overflow_at<'g>(word: u64) -> Option<&'g Overflow> {
    let overflow: *const Overflow = std::ptr::with_exposed_provenance(word as usize);
    // SAFETY: null, or made by `overflow_word` and alive as the caller promises.
    unsafe { overflow.as_ref() }
}

/// Makes the cell of an overflow, which owns it.
pub(crate) fn overflow_word(overflow: Overflow) -> u64 {
    if overflow.entries.is_empty() {
        return 0;
    }
    Arc::into_raw(Arc::new(overflow)).expose_provenance() as u64
}

/// Frees the overflow that a cell owns.
///
/// # Safety
///
/// The word is of an overflow cell and owns its overflow; it is not used afterwards.
pub(crate) unsafe fn drop_overflow(word: u64) {
    let overflow: *const Overflow = std::ptr::with_exposed_provenance(word as usize);
    if !overflow.is_null() {
        // SAFETY: made by `Arc::into_raw`, owned by the cell.
        drop(unsafe { Arc::from_raw(overflow) });
    }
}

/// # Safety
///
/// Like [`drop_words`], for a column of a set or the overflow.
pub(crate) unsafe fn drop_cell(set: &Set, column: u16, words: Words) {
    // SAFETY: the caller's promise.
    unsafe {
        match set.columns.get(usize::from(column)) {
            Some(column) => drop_words(column.shape.column, words),
            None => drop_overflow(words[0]),
        }
    }
}

/// Drops a chain of records with what they own; a shared record loses one row.
///
/// # Safety
///
/// The chain belongs to the caller alone, except for shared records.
pub(crate) unsafe fn drop_chain(set: &Set, mut record: *mut Record) {
    while !record.is_null() {
        // SAFETY: a live record, made by `Record::new`; the last row that drops it frees it.
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

/// Drops a chain once no reader uses it.
///
/// # Safety
///
/// The chain was unlinked: no reader that pins its epoch from now on finds it.
pub(crate) unsafe fn retire_chain(set: &Arc<Set>, record: *mut Record, guard: &Guard) {
    if record.is_null() {
        return;
    }
    // The writer counts shared records down here, so the last row that drops one is also the last from which a reader
    // can reach it. Only the oldest record of a chain is ever shared.
    let mut before: Option<&Record> = None;
    // SAFETY: the chain lives until the closure below has run.
    let mut last = unsafe { &*record };
    // SAFETY: as above.
    while let Some(next) = unsafe { last.next.load(Ordering::Relaxed).as_ref() } {
        (before, last) = (Some(last), next);
    }
    if last.rows.fetch_sub(1, Ordering::Relaxed) > 1 {
        match before {
            // Readers that need the cut-off part have gone, so none misses it.
            Some(before) => before.next.store(std::ptr::null_mut(), Ordering::Release),
            None => return,
        }
    } else {
        last.rows.store(1, Ordering::Relaxed);
    }
    let set = set.clone();
    // SAFETY: no reader uses the chain when this runs, and any thread may free the records.
    unsafe { guard.defer_unchecked(move || drop_chain(&set, record)) };
}

/// What a version sees of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visibility {
    Here,
    Absent,
    /// Not here yet: look there.
    Before(Previous),
}

/// STO-1: walks a chain back to a version. Calls `cell` with the older words of cells, newest first.
///
/// # Safety
///
/// The chain was loaded under the caller's guard, which is still pinned.
pub(crate) unsafe fn walk(
    mut record: *const Record,
    present: bool,
    at: Version,
    mut cell: impl FnMut(u16, Words),
) -> Visibility {
    let mut present = present;
    // SAFETY: records stay alive while the guard is pinned (`retire_chain`).
    while let Some(step) = unsafe { record.as_ref() } {
        if step.version <= at {
            break;
        }
        match step.undo {
            Undo::Inserted { previous } => {
                return match previous {
                    Some(previous) if at < previous.ended => Visibility::Before(previous),
                    _ => Visibility::Absent,
                };
            }
            Undo::Removed => present = true,
            Undo::Cell { column, old } => cell(column, old),
        }
        record = step.next.load(Ordering::Acquire);
    }
    if present { Visibility::Here } else { Visibility::Absent }
}
