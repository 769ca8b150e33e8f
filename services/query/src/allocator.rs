//! Options of the allocator, mimalloc.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_arena_eager_commit`.
const ARENA_EAGER_COMMIT: mi_option_t = 4;
/// `mi_option_purge_delay`, in milliseconds.
const PURGE_DELAY: mi_option_t = 15;

/// Makes the allocator take memory from the system as it is used. By default it takes 1 GiB at once and asks for pages of
/// 2 MiB in it. A thread spreads its first objects over three such pages, so that each of 256 queries that waited for
/// their clients held 6 MiB, whatever it used. Storage asks for such pages itself where they pay.
///
/// To be called before the first allocation.
pub fn take_memory_as_it_is_used() {
    // SAFETY: the allocator has this option; no other thread runs yet.
    unsafe { mi_option_set(ARENA_EAGER_COMMIT, 0) };
}

/// Makes the allocator return free memory to the system at once. By default it keeps the memory for a while, which
/// saves a little time, but under a memory budget that memory is missing for properties.
pub(crate) fn return_free_memory_at_once() {
    // SAFETY: the allocator has this option; no other code sets options at this time; a concurrent reader sees the old or
    // the new value.
    unsafe { mi_option_set(PURGE_DELAY, 0) };
}
