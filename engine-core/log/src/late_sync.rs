//! Syncs the log some time after a write, on a thread of its own.
//!
//! Flow: the writer notes the new length of the file ([`LateSync::wrote`]) → the thread waits for the interval or for
//! enough bytes, so that later writes share the sync → it syncs with its own handle of the file →
//! [`LateSync::durable_bytes`] grows. The writer syncs a whole file before it starts the next one, so only the last
//! file is synced here.
//!
//! What must never happen (LOG-5): bytes counted as durable that were written after the sync began.

use crate::Cause;
use crate::error::cause;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::DiskFile;

/// With this many bytes, the sync does not wait for the interval: one long sync delays writers more than several short
/// ones.
const ENOUGH_BYTES: u64 = 4 << 20;
/// With more unsynced bytes than this, the writer syncs by itself. This bounds the loss when the disk is slower than
/// its writers.
const MOST_UNSYNCED_BYTES: u64 = 32 << 20;

/// Syncs the file that appends go to.
#[derive(Debug)]
pub(crate) struct LateSync {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    interval: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// `None` while it is synced.
    file: Option<Box<dyn DiskFile>>,
    /// Grows with each file.
    number: u64,
    written: u64,
    durable: u64,
    failed: Option<Cause>,
    stopped: bool,
}

impl State {
    fn is_due(&self) -> bool {
        self.written > self.durable && self.failed.is_none() && self.file.is_some()
    }

    fn has_enough(&self) -> bool {
        self.written - self.durable >= ENOUGH_BYTES
    }
}

impl LateSync {
    /// `None`: the system gives no thread for it.
    pub fn start(interval: Duration) -> Option<Self> {
        let shared = Arc::new(Shared { interval, state: Mutex::default(), changed: Condvar::new() });
        let of = shared.clone();
        let spawned = tidegraph_platform::spawn("log-sync", move || of.run());
        let thread = spawned
            .inspect_err(|error| tracing::warn!(%error, "no thread syncs the log: each write is synced"))
            .ok()?;
        Some(Self { shared, thread: Some(thread) })
    }

    /// Starts with a file that is durable up to `bytes`, its length. `file` is a handle of its own, not the writer's.
    pub fn begin(&self, file: Box<dyn DiskFile>, bytes: u64) {
        let mut state = self.shared.state.lock();
        state.number += 1;
        (state.written, state.durable) = (bytes, bytes);
        state.file = Some(file);
    }

    /// Notes that the file has grown to `bytes`. Returns whether the writer must sync it now.
    #[must_use]
    pub fn wrote(&self, bytes: u64) -> bool {
        let mut state = self.shared.state.lock();
        let (was_due, had_enough) = (state.is_due(), state.has_enough());
        state.written = bytes;
        if !was_due || !had_enough && state.has_enough() {
            self.shared.changed.notify_one();
        }
        bytes - state.durable > MOST_UNSYNCED_BYTES
    }

    /// Notes that the writer synced the file, at least up to `bytes`.
    pub fn synced(&self, bytes: u64) {
        let mut state = self.shared.state.lock();
        state.durable = state.durable.max(bytes);
    }

    /// Number of bytes of the file that are durable. An error is that of a failed sync, after which this is unknown.
    pub fn durable_bytes(&self) -> Result<u64, Cause> {
        let state = self.shared.state.lock();
        state.failed.clone().map_or(Ok(state.durable), Err)
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        while !state.stopped {
            if !state.is_due() {
                self.changed.wait(&mut state);
                continue;
            }
            if !state.has_enough() && !self.changed.wait_for(&mut state, self.interval).timed_out() {
                continue;
            }
            self.sync(&mut state);
        }
        // Acknowledged records are durable before the log is closed.
        if state.is_due() {
            self.sync(&mut state);
        }
    }

    fn sync(&self, state: &mut MutexGuard<'_, State>) {
        let (number, written) = (state.number, state.written);
        let Some(mut file) = state.file.take() else { return };
        let result = MutexGuard::unlocked(state, || file.sync_data());
        let is_current = state.number == number;
        if is_current {
            state.file = Some(file);
        }
        match result {
            Ok(()) if is_current => state.durable = state.durable.max(written),
            // The writer synced this file before it started the next one.
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "the last records of the log could not be synced");
                state.failed = Some(cause(error));
            }
        }
    }
}

impl Drop for LateSync {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that syncs the log ended by a defect");
        }
    }
}
