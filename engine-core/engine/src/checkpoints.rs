//! What goes on beside queries: a checkpoint after so many bytes of log and one at the end, the log below them trimmed,
//! old versions forgotten while nobody writes.

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
/// Records looked at in one go: a few milliseconds.
const RECLAIMED_AT_ONCE: usize = 50_000;

/// Writes checkpoints, one at a time.
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
    /// Versions of the checkpoints known to be there, oldest first.
    written: Mutex<Vec<Version>>,
    /// Log bytes at the newest checkpoint.
    log_bytes: AtomicU64,
    one_at_a_time: Arc<Mutex<()>>,
    /// Told which segments no checkpoint needs any more.
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
                tracing::error!(%error, "no thread for checkpoints: they are only written at the end");
                None
            }
        };
        Self { writer, thread: Mutex::new(thread), durable }
    }

    /// Version of the newest checkpoint; 0 for none.
    pub fn newest(&self) -> Version {
        self.writer.written.lock().last().copied().unwrap_or_default()
    }

    /// Held while a checkpoint is written.
    pub fn one_at_a_time(&self) -> Arc<Mutex<()>> {
        self.writer.one_at_a_time.clone()
    }

    /// From now on, segments that no checkpoint needs are removed.
    pub fn sweep_loads(&self, loads: &Arc<Loads>) {
        *self.writer.loads.lock() = Arc::downgrade(loads);
    }

    /// Writes one now.
    pub fn write(&self) -> Result<Version, Error> {
        self.writer.write()
    }

    /// Ends the thread and writes a last one if anything was written since.
    pub fn stop(&self) {
        let Some((stop, handle)) = self.thread.lock().take() else { return };
        drop(stop);
        if handle.join().is_err() {
            tracing::error!("the checkpoint thread ended by a defect");
        }
        if self.durable
            && self.writer.sequencer.version() > self.newest()
            && let Err(error) = self.writer.write()
        {
            // The log has everything: the next start is slower, nothing is lost.
            tracing::warn!(%error, "no last checkpoint could be written");
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
            self.store.reclaim(RECLAIMED_AT_ONCE);
            let grown = self.sequencer.log_bytes().saturating_sub(self.log_bytes.load(Ordering::Relaxed));
            // Changes here and there have most of a large graph written again, so that is done for as many bytes of log only:
            // what is written stays within some times of what was changed, however large the graph.
            if grown >= every_bytes.max(self.store.rewritten_bytes())
                && let Err(error) = self.write()
            {
                tracing::error!(%error, "a checkpoint could not be written; the log is kept");
                // Not again at once: the disk may be full.
                self.log_bytes.store(self.sequencer.log_bytes(), Ordering::Relaxed);
            }
        }
    }

    fn write(&self) -> Result<Version, Error> {
        let _only = self.one_at_a_time.lock();
        let log_bytes = self.sequencer.log_bytes();
        // What the sequencer says after the version is at least what the version needs.
        let pin = self.store.pin_published();
        // A checkpoint must not be ahead of the log that goes on from it.
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
        // The log is kept from the oldest kept checkpoint on, so that each of them can be started from.
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
