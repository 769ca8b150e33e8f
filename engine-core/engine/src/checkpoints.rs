//! Background work beside queries: writes a checkpoint after a number of bytes of log and one at the
//! end, trims the log below the oldest checkpoint, and reclaims old versions while there are no writes.

use crate::loads::Loads;
use crate::{Error, Options};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegraph_platform::Objects;
use tidegraph_storage::{CheckpointMeta, Store};
use tidegraph_txn::Sequencer;
use tidegraph_types::Version;

const PREFIX: &str = "checkpoints";
/// Records per pass of reclaiming, which takes a few milliseconds.
const RECLAIM_BATCH: usize = 50_000;

/// The checkpoints of a database, and the thread that writes them.
pub(crate) struct Checkpoints {
    writer: Arc<Writer>,
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
    durable: bool,
}

struct Writer {
    store: Arc<Store>,
    sequencer: Arc<Sequencer>,
    objects: Arc<Objects>,
    kept: usize,
    /// Versions of the existing checkpoints, oldest first.
    written: Mutex<Vec<Version>>,
    /// Log bytes at the newest checkpoint.
    log_bytes: AtomicU64,
    one_at_a_time: Arc<Mutex<()>>,
    /// Removes the segments that no checkpoint needs.
    loads: Mutex<Weak<Loads>>,
}

impl Checkpoints {
    pub fn start(
        options: &Options,
        store: Arc<Store>,
        sequencer: Arc<Sequencer>,
        objects: Arc<Objects>,
        newest: Version,
    ) -> Self {
        let writer = Arc::new(Writer {
            store,
            sequencer,
            objects,
            kept: options.checkpoints_kept.max(1),
            written: Mutex::new(if newest > Version::default() { vec![newest] } else { vec![] }),
            log_bytes: AtomicU64::new(0),
            one_at_a_time: Arc::default(),
            loads: Mutex::new(Weak::new()),
        });
        let durable = options.data_dir.is_some();
        let (stop, stopped) = bounded(1);
        let (every, of) = (if durable { options.checkpoint_log_bytes } else { u64::MAX }, writer.clone());
        let spawned = tidegraph_platform::spawn("upkeep", move || of.watch(every, &stopped));
        let thread = match spawned {
            Ok(handle) => Some((stop, handle)),
            Err(error) => {
                tracing::error!(%error, "no thread for checkpoints: only the last one is written");
                None
            }
        };
        Self { writer, thread: Mutex::new(thread), durable }
    }

    /// Returns the version of the newest checkpoint; 0 if there is none.
    pub fn newest(&self) -> Version {
        self.writer.written.lock().last().copied().unwrap_or_default()
    }

    /// Returns the lock that is held while a checkpoint is written.
    pub fn one_at_a_time(&self) -> Arc<Mutex<()>> {
        self.writer.one_at_a_time.clone()
    }

    /// Sets the loads whose segments are removed when no checkpoint needs them.
    pub fn sweep_loads(&self, loads: &Arc<Loads>) {
        *self.writer.loads.lock() = Arc::downgrade(loads);
    }

    /// Writes a checkpoint now.
    pub fn write(&self) -> Result<Version, Error> {
        self.writer.write()
    }

    /// Stops the thread and writes a last checkpoint if anything was committed since the newest one.
    pub fn stop(&self) {
        let Some((stop, handle)) = self.thread.lock().take() else { return };
        drop(stop);
        if handle.join().is_err() {
            tracing::error!("the thread of checkpoints panicked");
        }
        if self.durable
            && self.writer.sequencer.version() > self.newest()
            && let Err(error) = self.writer.write()
        {
            // The log has every record: the next start is slower, but nothing is lost.
            tracing::warn!(error = %error.chain(), "the last checkpoint could not be written");
        }
    }
}

impl Writer {
    fn watch(&self, every_bytes: u64, stopped: &Receiver<()>) {
        loop {
            match stopped.recv_timeout(Duration::from_millis(500)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.store.reclaim(RECLAIM_BATCH);
            let grown = self.sequencer.log_bytes().saturating_sub(self.log_bytes.load(Ordering::Relaxed));
            // Scattered changes make a checkpoint rewrite most of a large graph.
            // Waiting for as many bytes of log as that keeps the bytes written within
            // a constant factor of the bytes changed, whatever the size of the graph.
            if grown >= every_bytes.max(self.store.rewritten_bytes())
                && let Err(error) = self.write()
            {
                tracing::error!(error = %error.chain(), "a checkpoint could not be written; the log is kept");
                // Wait for as much log before the next attempt: the disk may be full.
                self.log_bytes.store(self.sequencer.log_bytes(), Ordering::Relaxed);
            }
        }
    }

    fn write(&self) -> Result<Version, Error> {
        let _only = self.one_at_a_time.lock();
        let log_bytes = self.sequencer.log_bytes();
        // The sequencer's state is read after the version, so it is at least as new.
        let pin = self.store.pin_published();
        // A checkpoint must not be ahead of the log that continues from it (LOG-5).
        self.sequencer.sync()?;
        let meta = CheckpointMeta {
            graph: "graph".to_owned(),
            epoch: self.sequencer.epoch(),
            next_sid: self.sequencer.next_sid().0,
            tokens: self.sequencer.tokens(),
        };
        let manifest = self.store.checkpoint(pin.version(), &self.objects, PREFIX, meta)?;
        drop(pin);
        self.log_bytes.store(log_bytes, Ordering::Relaxed);
        tidegraph_storage::checkpoint::prune(&self.objects, PREFIX, self.kept)?;
        let mut written = self.written.lock();
        written.push(manifest.version);
        // The log is kept from the oldest kept checkpoint on, so that recovery can start from each of them.
        let forgotten = written.len().saturating_sub(self.kept);
        if written.len() < self.kept {
            return Ok(manifest.version);
        }
        written.drain(..forgotten);
        let oldest = written[0];
        drop(written);
        self.sequencer.trim(oldest.next())?;
        if let Some(loads) = self.loads.lock().upgrade() {
            loads.sweep(oldest)?;
        }
        tracing::info!(version = manifest.version.0, "checkpoint written");
        Ok(manifest.version)
    }
}
