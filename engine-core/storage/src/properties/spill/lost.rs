//! A page that could not be read: a note of the thread that met it.
//!
//! Rows of such a page look as if they were not there. Whoever finishes an answer takes the note ([`take`]) and throws the
//! answer away, as it does with an answer whose version was forgotten meanwhile. So not every function between them
//! has to hand an error on that hardly ever comes, and a batch pays for it once.
//!
//! What must never happen: an answer given while there is a note.

use super::Error;
use std::cell::RefCell;

thread_local! {
    static LOST: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Notes why a page could not be read; the first of several stays.
pub(crate) fn note(error: Error) {
    LOST.with_borrow_mut(|lost| {
        lost.get_or_insert(error);
    });
}

/// Whether there is a note.
pub(crate) fn is_noted() -> bool {
    LOST.with_borrow(Option::is_some)
}

/// The note, if there is one; then there is none any more.
#[inline]
pub(crate) fn take() -> Option<Error> {
    LOST.with_borrow_mut(Option::take)
}
