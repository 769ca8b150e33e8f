//! The priority of threads that run queries in slots.

use std::cell::Cell;

/// Step below the usual priority (`nice`), the largest: with 10, the 99th percentile of short queries beside 16 long ones
/// was 5 to 7 times that of short ones alone, with 19 it was 3 to 4 times.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// Lowers the priority of this thread below that of the threads that serve sockets. Those run short queries, which
/// would otherwise wait for a processor behind each long query. A thread cannot raise its priority again.
pub(super) fn lower() {
    thread_local! {
        static IS_LOW: Cell<bool> = const { Cell::new(false) };
    }
    if IS_LOW.replace(true) {
        return;
    }
    // Linux takes this for the thread that calls; other systems take it for the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "the priority of a thread could not be lowered");
    }
}
