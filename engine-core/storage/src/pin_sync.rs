//! The synchronization primitives of version pins. They have a module of their own because the model checker in
//! `tests/pins` compiles `versions` with loom's atomics in their place.

use std::cell::Cell;
use std::sync::atomic::AtomicUsize;

pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Number of pins that take no lock.
pub(crate) const SLOTS: usize = 64;

/// Returns the slot where this thread starts to look for a free one. Threads have slots of their own while there are
/// no more than [`SLOTS`] of them.
pub(crate) fn first_slot() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static FIRST: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    FIRST.with(|first| {
        if first.get() == usize::MAX {
            first.set(THREADS.fetch_add(1, Ordering::Relaxed) % SLOTS);
        }
        first.get()
    })
}
