//! Pages that could not be read: a note of the thread that tried.
//!
//! Rows of such a page look absent. The code that finishes an answer takes the note ([`take`]) and discards the answer,
//! as it does with an answer whose version was reclaimed meanwhile. So functions in between need not pass on a rare
//! error, and a batch checks it once.
//!
//! What must never happen: an answer given while there is a note.

use super::Error;
use std::cell::RefCell;

thread_local! {
    static LOST: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Notes why a page could not be read; the first of several notes stays.
pub(crate) fn note(error: Error) {
    LOST.with_borrow_mut(|lost| {
        lost.get_or_insert(error);
    });
}

/// Returns whether there is a note.
pub(crate) fn is_noted() -> bool {
    LOST.with_borrow(Option::is_some)
}

/// Removes and returns the note, if there is one.
#[inline]
pub(crate) fn take() -> Option<Error> {
    LOST.with_borrow_mut(Option::take)
}
