//! What pins of versions synchronize with. A module of its own, because the model checker in `tests/pins` compiles `versions`
//! with other atomics in its place.

use std::cell::Cell;
use std::sync::atomic::AtomicUsize;

pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Pins that need no lock.
pub(crate) const SLOTS: usize = 64;

/// Where a thread looks for a free slot first: its own, as long as there are not too many threads.
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
