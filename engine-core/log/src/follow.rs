//! Reading a log that another process writes.

use crate::{Error, LogBackend, Record};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{Epoch, ShardId, Version};

/// The last record that a reader of the log has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// Version of that record; 0 for none.
    pub version: Version,
    /// Epoch of that record, or a lower one.
    pub epoch: Epoch,
}

/// Reads the records of a shard in order, and waits for new ones.
pub trait Follower: Send {
    /// Returns the record after the last one, or `None` if none arrives within `at_most`.
    ///
    /// # Errors
    /// [`Error::Trimmed`] if the log no longer has the record: the reader must start from a newer checkpoint.
    /// [`Error::Unsupported`] if the backend cannot be followed. Other errors may pass; the caller may call again.
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, Error>;

    /// Whether at most about `within` records of those now in the log are still unread.
    ///
    /// # Errors
    /// The same as [`Follower::next`], without [`Error::Trimmed`].
    fn is_near_end(&mut self, within: u64) -> Result<bool, Error>;

    /// Returns what the log says about the record that [`Follower::next`] returned last; `None` if there is no such
    /// record, or if the log does not say it.
    fn details(&self) -> Option<&Details> {
        None
    }
}

/// What a log says about a record besides the record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Details {
    /// When the log took the record, in milliseconds since 1970; `None` if the log keeps no times.
    pub written_ms: Option<i64>,
    /// In one shard of several: indexes of the mutations in the whole transaction, rising. Empty if they were its first
    /// ones.
    pub places: Vec<u32>,
}

/// Gives readers of a log that its own process writes, or that others write. Readers do not hold up the writer.
pub trait Follow: Send + Sync {
    /// Reads the log from behind a version on. Nothing is read yet.
    ///
    /// [`Follower::next`] of a log in files or in memory does not wait: it returns `None` at the end.
    fn follow(&self, after: Version) -> Box<dyn Follower>;
}

/// Number of records that a reader of a log of others begins before the version that it was asked for.
///
/// A log of others can hold a message of a deposed sequencer behind a newer one of the same version. A reader knows
/// which of the two counts if it knows the epoch of the record before them, and a reader that begins anywhere does not.
/// Such messages stand together, at most as many as one append has. So a reader that begins this much earlier knows the
/// epoch when it comes to the version that it was asked for.
const LEAD: u64 = 20_000;

/// Gives readers of the first shard of a log that other processes write.
pub struct FirstShard(pub Arc<dyn LogBackend>);

impl Follow for FirstShard {
    fn follow(&self, after: Version) -> Box<dyn Follower> {
        let begin = Version(after.0.saturating_sub(LEAD));
        Box::new(Ahead { backend: self.0.clone(), follower: follow_first(&*self.0, begin), begin, after })
    }
}

fn follow_first(backend: &dyn LogBackend, begin: Version) -> Box<dyn Follower> {
    backend.follow(ShardId(0), Position { version: begin, epoch: Epoch(0) })
}

/// A follower that began before the version that it was asked for.
struct Ahead {
    backend: Arc<dyn LogBackend>,
    follower: Box<dyn Follower>,
    begin: Version,
    after: Version,
}

impl Follower for Ahead {
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, Error> {
        loop {
            match self.follower.next(at_most) {
                Ok(Some(record)) if record.version <= self.after => {}
                // Only a part of what leads up to the version was trimmed.
                Err(Error::Trimmed { first, .. }) if first <= self.after.next() => {
                    self.begin = Version(first.0.saturating_sub(1)).max(self.begin.next());
                    self.follower = follow_first(&*self.backend, self.begin);
                }
                Err(Error::Trimmed { first, .. }) => {
                    return Err(Error::Trimmed { requested: self.after.next(), first });
                }
                other => return other,
            }
        }
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        self.follower.is_near_end(within)
    }
}
