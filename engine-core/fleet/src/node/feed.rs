//! Feeds: one reader for each shard of the log, which applies each record to all replicas of the shard's partitions.
//!
//! Replicas at the version of the reader are *fed*: each record goes to all of them. A replica that was just restored
//! reads the log by itself (`bring_up.rs`) up to the version of the reader, and joins then.
//!
//! All replicas get the same records in the same order, so they are equal once all have
//! applied the whole log (FLT-3).
//!
//! What must never happen: a replica misses a record, or gets one twice (FLT-1). Both
//! joining and feeding take the lock of the state.

use super::Shared;
use super::replica::Replica;
use crate::Error;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_log::{Body, Follower, Position, Record};
use tidegraph_types::{ShardId, Version};

/// Longest wait for the next record.
const POLL: Duration = Duration::from_millis(50);
/// Pause after an error of the log.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// Distance from the end of the log, in records, at which a replica may serve. One poll can bring
/// as many records as this.
const NEAR_END: u64 = 1_000;

/// The fed replicas of a shard, and the reader of its log.
pub(super) struct Feed {
    shard: ShardId,
    state: Mutex<State>,
    /// The reader, and its position.
    reader: Mutex<Option<(Position, Box<dyn Follower>)>>,
    /// The last known status, for callers that ask while a long record is applied.
    last_status: Mutex<FeedStatus>,
}

/// Status of a feed.
#[derive(Clone, Default, Debug)]
pub(super) struct FeedStatus {
    /// The last version that was applied.
    pub version: Version,
    /// Whether the feed was near the end of the log since it started.
    pub near_end: bool,
    /// Why the log cannot be read at the moment.
    pub error: Option<String>,
    /// Whether any replica is fed.
    pub feeds: bool,
}

/// Result of one poll of the log.
pub(super) enum PollResult {
    /// A record came and was applied.
    Applied,
    /// No record came.
    Idle,
    /// There is no replica to feed.
    NoReplicas,
    /// The log cannot be read.
    Failed,
}

#[derive(Debug, Default)]
struct State {
    fed: Vec<Arc<Replica>>,
    at: Option<Position>,
    /// Whether the feed was near the end of the log since it started.
    near_end: bool,
    /// Why the log cannot be read at the moment.
    error: Option<String>,
}

impl Feed {
    pub fn new(shard: ShardId) -> Self {
        Self { shard, state: Mutex::default(), reader: Mutex::default(), last_status: Mutex::default() }
    }

    /// Adds a replica that is at the version of the reader. The first replica sets that version.
    pub fn join(&self, replica: &Arc<Replica>) -> JoinResult {
        let mut state = self.state.lock();
        let applied = replica.applied();
        let at = match state.at.filter(|_| !state.fed.is_empty()) {
            Some(at) => at.version,
            None => {
                state.at = Some(replica.position());
                state.near_end = false;
                applied
            }
        };
        if at == applied {
            state.fed.push(replica.clone());
            return JoinResult::Joined;
        }
        if at < applied { JoinResult::Ahead } else { JoinResult::Behind(at) }
    }

    pub fn leave(&self, replica: &Replica) {
        self.state.lock().fed.retain(|fed| fed.store_id != replica.store_id);
    }

    pub fn status(&self) -> FeedStatus {
        let mut last_status = self.last_status.lock();
        if let Some(state) = self.state.try_lock() {
            *last_status = FeedStatus {
                version: state.at.unwrap_or_default().version,
                near_end: state.near_end,
                error: state.error.clone(),
                feeds: !state.fed.is_empty(),
            };
        }
        last_status.clone()
    }

    /// Reads the log until the node stops.
    pub fn run(&self, shared: &Shared) {
        while !shared.is_stopping() {
            match self.poll(shared) {
                PollResult::Applied | PollResult::Idle => {}
                PollResult::NoReplicas => shared.clock.sleep(POLL),
                PollResult::Failed => shared.clock.sleep(RETRY_AFTER),
            }
        }
    }

    /// Waits briefly for the next record and applies it.
    pub fn poll(&self, shared: &Shared) -> PollResult {
        let mut reader = self.reader.lock();
        let at = {
            let state = self.state.lock();
            state.at.filter(|_| !state.fed.is_empty())
        };
        let Some(at) = at else {
            *reader = None;
            return PollResult::NoReplicas;
        };
        let (_, log) = match &mut *reader {
            Some(there) if there.0 == at => there,
            reader => reader.insert((at, shared.log.follow(self.shard, at))),
        };
        match log.next(POLL) {
            Ok(Some(record)) => {
                self.apply_to_all(shared, &record);
                let position = Position { version: record.version, epoch: record.epoch };
                *reader = reader.take().map(|(_, log)| (position, log));
                self.note_end(&mut reader);
                PollResult::Applied
            }
            Ok(None) => {
                self.note_end(&mut reader);
                PollResult::Idle
            }
            Err(error) => {
                self.set_error(Some(error.to_string()));
                if let tidegraph_log::Error::Trimmed { .. } = error {
                    // The missed records are in checkpoints only.
                    tracing::error!(%error, "the log was trimmed above this node's version: its replicas are restored again");
                    self.give_all_up(shared);
                } else {
                    tracing::warn!(%error, "cannot read the log");
                }
                *reader = None;
                PollResult::Failed
            }
        }
    }

    /// Notes whether the end of the log is near, and asks the log only until it is. A poll without a record proves
    /// nothing: the log may be out of reach.
    fn note_end(&self, follower: &mut Option<(Position, Box<dyn Follower>)>) {
        if self.state.lock().near_end {
            return;
        }
        let asked = follower.as_mut().map_or(Ok(false), |(_, log)| log.is_near_end(NEAR_END));
        let near = asked.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot ask for the end of the log");
            false
        });
        let mut state = self.state.lock();
        state.near_end |= near;
        state.error = None;
    }

    fn set_error(&self, error: Option<String>) {
        self.state.lock().error = error;
    }

    fn apply_to_all(&self, shared: &Shared, record: &Record) {
        let mut state = self.state.lock();
        shared.note(record);
        let failed: Vec<Error> = if matches!(record.body, Body::Load { .. }) && state.fed.len() > 1 {
            apply_in_parallel(&state.fed, record)
        } else {
            state.fed.iter().filter_map(|replica| replica.apply(record).err()).collect()
        };
        for error in failed {
            tracing::error!(%error, "a replica cannot apply a record");
        }
        // A broken replica is fed no longer; the others continue without it.
        state.fed.retain(|replica| replica.broken().is_none() && !replica.is_dropped());
        state.at = Some(Position { version: record.version, epoch: record.epoch });
    }

    /// Gives all replicas up, so that they are restored again.
    fn give_all_up(&self, shared: &Shared) {
        let fed = std::mem::take(&mut self.state.lock().fed);
        fed.iter().for_each(|replica| shared.give_up(replica));
    }
}

/// Result of an attempt to join a feed.
pub(super) enum JoinResult {
    /// The replica is fed from now on.
    Joined,
    /// The reader is further: the replica has to read up to this version by itself.
    Behind(Version),
    /// The replica is further: it has to wait for the reader.
    Ahead,
}

/// Applies a record to several replicas in parallel.
fn apply_in_parallel(fed: &[Arc<Replica>], record: &Record) -> Vec<Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(fed.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut failed = Vec::new();
        while let Some(replica) = fed.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            failed.extend(replica.apply(record).err());
        }
        failed
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.flat_map(|failed| failed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}
