//! The page that a reader looked at last and that there was no room to keep.
//!
//! Rows of a frontier come in order of pages. Where a page of the file cannot be kept in memory, it would be read anew for
//! each of its rows, and all the copies would live until the reader's guard is gone. So the last one is remembered for as
//! long as that guard is held ([`Passing`]).
//!
//! What must never happen: a page found here after the guard under which it was read is gone.

use super::super::page::Block;
use crossbeam_epoch::pin;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

/// Whose page it is (address of the table, number there), the word that named it, and where it is.
#[derive(Clone, Copy)]
struct Last {
    table: usize,
    number: u32,
    word: usize,
    page: *mut Block,
}

const NONE: Last = Last { table: 0, number: 0, word: 0, page: ptr::null_mut() };

thread_local! {
    static LAST: Cell<Last> = const { Cell::new(NONE) };
    /// Guards of readers that this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, its thread has the same guard pinned throughout, and pages in passing are remembered.
pub(crate) struct Passing(PhantomData<*mut ()>);

impl Passing {
    /// To be made after a guard was pinned, and dropped before it goes.
    pub fn new() -> Self {
        HELD.set(HELD.get() + 1);
        Self(PhantomData)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        if !LAST.replace(NONE).page.is_null() {
            // Pages are large: they are not to wait until many came together.
            pin().flush();
        }
    }
}

/// The page of a number and word, if it is the last one.
pub(in super::super) fn find(table: usize, number: u32, word: usize) -> Option<*mut Block> {
    let last = LAST.get();
    let same = !last.page.is_null() && (last.table, last.number, last.word) == (table, number, word);
    same.then_some(last.page)
}

/// Remembers a page that lives until the guards of now are gone.
pub(in super::super) fn remember(table: usize, number: u32, word: usize, page: *mut Block) {
    if HELD.get() > 0 {
        LAST.set(Last { table, number, word, page });
    }
}
