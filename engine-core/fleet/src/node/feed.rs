//! One reader of a shard of the log for all replicas of a node that are in its group of partitions.
//!
//! Replicas that are as far as the reader are *fed*: each record goes to all of them. One that was just restored reads the
//! log by itself (`bring_up.rs`) until it stands where the reader stands, and joins then.
//!
//! What must never happen: a replica that misses a record, or gets one twice. Whoever joins, and whoever feeds, holds the
//! lock of the fed.

use super::Shared;
use super::replica::Replica;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_log::{Body, Follower, Position, Record};
use tidegraph_types::{ShardId, Version};

/// How long one look at the log waits.
const LOOK: Duration = Duration::from_millis(50);
/// How long the reader rests after an error.
const REST: Duration = Duration::from_millis(200);
/// Records behind the end of the log that do not matter: they come while one looks.
const NEAR: u64 = 1_000;

/// What is fed, and how far.
pub(super) struct Feed {
    shard: ShardId,
    state: Mutex<State>,
    /// The reader, and where it stands.
    reader: Mutex<Option<(Position, Box<dyn Follower>)>>,
    /// What is told of it, also while a long record is applied.
    told: Mutex<Stands>,
}

/// How far a feed is.
#[derive(Clone, Default, Debug)]
pub(super) struct Stands {
    /// The last version that was read.
    pub version: Version,
    /// Whether the end of the log was near once.
    pub near_end: bool,
    /// Why the log cannot be read, now.
    pub error: Option<String>,
    /// Whether there is any replica to be fed.
    pub feeds: bool,
}

/// How a look at the log ended.
pub(super) enum Looked {
    /// A record came, and was given to all that are fed.
    Fed,
    /// None came.
    Idle,
    /// There is nobody to feed.
    Nobody,
    /// The log cannot be read.
    Failed,
}

#[derive(Debug, Default)]
struct State {
    fed: Vec<Arc<Replica>>,
    at: Option<Position>,
    /// Whether the end of the log was near once.
    near_end: bool,
    /// Why the log cannot be read, now.
    error: Option<String>,
}

impl Feed {
    pub fn new(shard: ShardId) -> Self {
        Self { shard, state: Mutex::default(), reader: Mutex::default(), told: Mutex::default() }
    }

    /// Lets a replica in if it stands where the reader stands; the first one says where that is.
    pub fn join(&self, replica: &Arc<Replica>) -> Joined {
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
            return Joined::Yes;
        }
        if at < applied { Joined::Ahead } else { Joined::Behind(at) }
    }

    pub fn leave(&self, replica: &Replica) {
        self.state.lock().fed.retain(|fed| fed.partition != replica.partition);
    }

    pub fn standing(&self) -> Stands {
        let mut told = self.told.lock();
        if let Some(state) = self.state.try_lock() {
            *told = Stands {
                version: state.at.unwrap_or_default().version,
                near_end: state.near_end,
                error: state.error.clone(),
                feeds: !state.fed.is_empty(),
            };
        }
        told.clone()
    }

    /// Reads the log until the node stops.
    pub fn run(&self, shared: &Shared) {
        while !shared.is_stopping() {
            match self.look(shared) {
                Looked::Fed | Looked::Idle => {}
                Looked::Nobody => shared.clock.sleep(LOOK),
                Looked::Failed => shared.clock.sleep(REST),
            }
        }
    }

    /// Looks at the log once, for the next record.
    pub fn look(&self, shared: &Shared) -> Looked {
        let mut reader = self.reader.lock();
        let at = {
            let state = self.state.lock();
            state.at.filter(|_| !state.fed.is_empty())
        };
        let Some(at) = at else {
            *reader = None;
            return Looked::Nobody;
        };
        let (_, log) = match &mut *reader {
            Some(there) if there.0 == at => there,
            reader => reader.insert((at, shared.log.follow(self.shard, at))),
        };
        match log.next(LOOK) {
            Ok(Some(record)) => {
                self.give(shared, &record);
                let position = Position { version: record.version, epoch: record.epoch };
                *reader = reader.take().map(|(_, log)| (position, log));
                self.note_end(&mut reader);
                Looked::Fed
            }
            Ok(None) => {
                self.note_end(&mut reader);
                Looked::Idle
            }
            Err(error) => {
                self.say(Some(error.to_string()));
                if let tidegraph_log::Error::Trimmed { .. } = error {
                    // What was missed is in checkpoints only.
                    tracing::error!(%error, "the log has gone on without this node: replicas are restored anew");
                    self.let_go(shared);
                } else {
                    tracing::warn!(%error, "the log cannot be read");
                }
                *reader = None;
                Looked::Failed
            }
        }
    }

    /// Notes whether the end of the log is near; asks for it only while that is not known. That nothing came says
    /// nothing: the log may be out of reach.
    fn note_end(&self, follower: &mut Option<(Position, Box<dyn Follower>)>) {
        if self.state.lock().near_end {
            return;
        }
        let asked = follower.as_mut().map_or(Ok(false), |(_, log)| log.is_near_end(NEAR));
        let near = asked.unwrap_or_else(|error| {
            tracing::warn!(%error, "where the log ends is not known");
            false
        });
        let mut state = self.state.lock();
        state.near_end |= near;
        state.error = None;
    }

    fn say(&self, error: Option<String>) {
        self.state.lock().error = error;
    }

    fn give(&self, shared: &Shared, record: &Record) {
        let mut state = self.state.lock();
        shared.note(record);
        let failed: Vec<String> = if matches!(record.body, Body::Load { .. }) && state.fed.len() > 1 {
            side_by_side(&state.fed, record)
        } else {
            state
                .fed
                .iter()
                .filter_map(|replica| replica.apply(record).err())
                .map(|e| e.to_string())
                .collect()
        };
        for error in failed {
            tracing::error!(error, "a replica stands still");
        }
        // A replica that cannot go on is restored anew, and does not hold up the others.
        state.fed.retain(|replica| replica.broken().is_none() && !replica.is_dropped());
        state.at = Some(Position { version: record.version, epoch: record.epoch });
    }

    /// Gives all replicas up.
    fn let_go(&self, shared: &Shared) {
        let fed = std::mem::take(&mut self.state.lock().fed);
        fed.iter().for_each(|replica| shared.give_up(replica));
    }
}

/// How an attempt to join ended.
pub(super) enum Joined {
    /// It is fed from here on.
    Yes,
    /// The reader is further: read on up to this version.
    Behind(Version),
    /// The reader has yet to come here.
    Ahead,
}

/// Applies a record that is long to several replicas at once.
fn side_by_side(fed: &[Arc<Replica>], record: &Record) -> Vec<String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(fed.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut failed = Vec::new();
        while let Some(replica) = fed.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            failed.extend(replica.apply(record).err().map(|error| error.to_string()));
        }
        failed
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.flat_map(|failed| failed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}
