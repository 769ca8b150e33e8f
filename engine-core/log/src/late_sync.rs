//! Makes what a log wrote durable some time later, beside those who write.
//!
//! Flow: who writes says up to where ([`LateSync::wrote`]) → a thread waits for the interval or for enough bytes, so that what comes meanwhile shares
//! the sync → it syncs by its own handle of the file → [`LateSync::durable_bytes`] grows. A file is synced whole by its writer
//! before the next one is begun, so only the last one is looked after here.
//!
//! Must never: say that bytes are durable that no sync covered from its beginning.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::DiskFile;

/// So much is not kept waiting for the interval: one long sync holds up more than several short ones.
const ENOUGH_BYTES: u64 = 4 << 20;
/// No more than this waits for a sync; who writes beyond it syncs. It bounds what a disk that is slower than its writers can lose.
const MOST_UNSYNCED_BYTES: u64 = 32 << 20;

/// Looks after the file that is written to.
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
    failed: Option<String>,
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

    /// A file is written to from here on, of which all is durable. The handle is another one than the writer's.
    pub fn begin(&self, file: Box<dyn DiskFile>, bytes: u64) {
        let mut state = self.shared.state.lock();
        state.number += 1;
        (state.written, state.durable) = (bytes, bytes);
        state.file = Some(file);
    }

    /// The file has so many bytes; whether its writer has to sync it now.
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

    /// Its writer synced the file, up to here at least.
    pub fn synced(&self, bytes: u64) {
        let mut state = self.shared.state.lock();
        state.durable = state.durable.max(bytes);
    }

    /// Bytes of the file that are durable; the reason when a sync failed, after which nobody can know.
    pub fn durable_bytes(&self) -> Result<u64, String> {
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
        // What was answered is durable before the log says that it is closed.
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
            // Its writer synced it before the next one was begun.
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "what was written to the log last could not be made durable");
                state.failed = Some(error.to_string());
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
