//! The page that a reader loaded last and that there was no room to keep.
//!
//! Rows of a frontier come in order of pages. A spilled page that cannot be kept in memory would be read again for
//! each of its rows, and all copies would live until the reader's guard has gone. So the last copy is remembered
//! while that guard is held ([`LastPageScope`]).
//!
//! What must never happen: a page found here after the guard under which it was read has gone.

use super::super::page::Block;
use crossbeam_epoch::pin;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

/// The table (by address), number and word of the page, and its copy.
#[derive(Clone, Copy)]
struct LastPage {
    table: usize,
    number: u32,
    word: usize,
    page: *mut Block,
}

const NONE: LastPage = LastPage { table: 0, number: 0, word: 0, page: ptr::null_mut() };

thread_local! {
    static LAST: Cell<LastPage> = const { Cell::new(NONE) };
    /// Number of readers' guards that this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, its thread holds one epoch guard throughout, and the last page is remembered.
pub(crate) struct LastPageScope(PhantomData<*mut ()>);

impl LastPageScope {
    /// Make it after the guard was pinned, and drop it before the guard.
    pub fn new() -> Self {
        HELD.set(HELD.get() + 1);
        Self(PhantomData)
    }
}

impl Drop for LastPageScope {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        if !LAST.replace(NONE).page.is_null() {
            // Pages are large, so they should not wait until many have collected.
            pin().flush();
        }
    }
}

/// Returns the page of a table, number and word, if it is the last one.
pub(in super::super) fn find(table: usize, number: u32, word: usize) -> Option<*mut Block> {
    let last = LAST.get();
    let same = !last.page.is_null() && (last.table, last.number, last.word) == (table, number, word);
    same.then_some(last.page)
}

/// Remembers a page that lives until the current guards have gone.
pub(in super::super) fn remember(table: usize, number: u32, word: usize, page: *mut Block) {
    if HELD.get() > 0 {
        LAST.set(LastPage { table, number, word, page });
    }
}
