//! A log of several shards: each holds what concerns its group of partitions, and versions go over all of them.
//!
//! Roles: [`ShardedLog`] is a [`LogStore`] over shards; [`split`] makes parts of a record and puts it together again; a [`Shard`] is what a
//! backend brings: `kafka.rs`'s partition, and one of [`SharedShards`] in memory. Which messages count in a shard, and when a
//! record is complete, says `sight.rs`. Why it is so: ADR 0013.
//!
//! Flow of an append: each record becomes one part for each shard, perhaps an empty one → all parts are sent to all shards →
//! each shard is confirmed → acknowledged when all parts of all records count. What is complete is said by the parts of the
//! next append or, when none follows at once, by a *mark* ([`LogStore::rest`]).
//!
//! Flow of opening, which only a new sequencer does: a *fence* of its epoch in every shard, read back → from here on nothing of an
//! earlier epoch counts anywhere, so where the shards end is fixed → the last version that all of them have from the same epoch is
//! the last complete one. What stands above it in some shards, the first record of the new epoch replaces.
//!
//! What must never happen: an acknowledgement before all shards have all parts; a record that is handed to readers of one shard and
//! is not, or not the same, in another one; a choice of the last complete version before all fences stand.

mod memory;
mod split;
#[cfg(test)]
mod tests;

pub use memory::{SharedShard, SharedShards};
pub(crate) use split::Part;
#[cfg(all(test, feature = "kafka"))]
pub(crate) use split::split;

use crate::record::Signal;
use crate::sight::{History, Sight};
use crate::store::{Records, check_all, end_of};
use crate::{Error, LogStore, Record, Tail};
use tidegraph_types::{Epoch, ShardId, Sharding, Version};

/// What is sent to a shard.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Message {
    /// What has no version.
    Signal {
        signal: Signal,
        epoch: Epoch,
        complete: Version,
    },
    Part {
        part: Part,
        complete: Version,
    },
}

/// Parts in order of version.
pub(crate) type Parts<'a> = Box<dyn Iterator<Item = Result<Part, Error>> + Send + 'a>;

/// One shard, open to write.
pub(crate) trait Shard: Send {
    /// What counts, as far as it was read.
    fn sight(&self) -> &Sight;

    /// Which epoch wrote what counts.
    fn history(&self) -> &History;

    /// Takes what is to be sent next. An error means that a message cannot be written, and that nothing is to be sent.
    fn prepare(&mut self, messages: &[Message]) -> Result<(), Error>;

    /// Begins to write what was prepared. After an error it is not known what arrives.
    fn send(&mut self) -> Result<(), Error>;

    /// Waits until what was sent is durable, and reads up to there; an error if not all of it counts, or if that cannot be told.
    fn confirm(&mut self) -> Result<(), Error>;

    /// Sends a mark and does not wait for it.
    fn mark(&mut self, epoch: Epoch, complete: Version);

    /// Whether a mark could not be written.
    fn lost_a_mark(&self) -> bool;

    /// The parts from one version to another; both are there, and complete.
    fn read(&mut self, from: Version, last: Version) -> Result<Parts<'_>, Error>;

    /// Forgets versions below one that is complete, or fewer. That one stays.
    fn trim(&mut self, below: Version) -> Result<(), Error>;

    /// The oldest version that can be read.
    fn first(&self) -> Option<Version>;

    /// Bytes of what counts.
    fn bytes(&self) -> u64;
}

/// A log of several shards, opened by the sequencer of an epoch.
pub struct ShardedLog {
    shards: Vec<Box<dyn Shard>>,
    sharding: Sharding,
    epoch: Epoch,
    /// The last complete version.
    tail: Option<Tail>,
    poisoned: Option<String>,
    /// What is complete was not yet said to readers.
    owes_marks: bool,
}

impl std::fmt::Debug for ShardedLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardedLog")
            .field("shards", &self.shards.len())
            .field("epoch", &self.epoch)
            .field("tail", &self.tail)
            .finish_non_exhaustive()
    }
}

impl ShardedLog {
    /// Fences all shards under an epoch that nobody else has, and finds the last complete version.
    ///
    /// [`Error::Behind`] when the epoch is not above that of every shard; [`Error::Poisoned`] when another one took over meanwhile, or when
    /// it is not known whether all fences stand. After any error the next attempt needs an epoch of its own.
    pub(crate) fn open(
        mut shards: Vec<Box<dyn Shard>>,
        sharding: Sharding,
        epoch: Epoch,
    ) -> Result<Self, Error> {
        let found = shards.iter().map(|shard| shard.sight().epoch()).max().unwrap_or_default();
        if found >= epoch {
            return Err(Error::Behind { epoch, found });
        }
        let complete = shards.iter().map(|shard| shard.sight().complete()).max().unwrap_or_default();
        let fence = Message::Signal { signal: Signal::Fence, epoch, complete };
        for shard in &mut shards {
            shard.prepare(std::slice::from_ref(&fence))?;
        }
        write(&mut shards)?;
        let tail = common_tail(&shards)?;
        tracing::debug!(%epoch, ?tail, shards = shards.len(), "all shards are fenced");
        Ok(Self { shards, sharding, epoch, tail, poisoned: None, owes_marks: true })
    }

    fn poison(&mut self, error: Error) -> Error {
        let reason = match error {
            Error::Poisoned { reason } => reason,
            other => other.to_string(),
        };
        self.poisoned = Some(reason.clone());
        Error::Poisoned { reason }
    }
}

/// Sends what was prepared to all shards, and waits for all of them.
fn write(shards: &mut [Box<dyn Shard>]) -> Result<(), Error> {
    for shard in shards.iter_mut() {
        shard.send()?;
    }
    for shard in shards {
        shard.confirm()?;
    }
    Ok(())
}

/// The last complete version of shards of which the ends are fixed.
fn common_tail(shards: &[Box<dyn Shard>]) -> Result<Option<Tail>, Error> {
    let histories: Vec<&History> = shards.iter().map(|shard| shard.history()).collect();
    let tail = History::common(&histories);
    let version = tail.map_or(Version(0), |tail| tail.version);
    let said = shards.iter().map(|shard| shard.sight().complete()).max().unwrap_or_default();
    if version < said {
        let reason = format!("version {said} was complete, all shards have the same up to version {version}");
        return Err(Error::Disagree { version: version.next(), reason });
    }
    Ok(tail)
}

impl LogStore for ShardedLog {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        let tail = check_all(records, ShardId(0), self.tail)?;
        if records.is_empty() {
            return Ok(());
        }
        let complete = self.tail.map_or(Version(0), |tail| tail.version);
        let mut messages: Vec<Vec<Message>> = self.shards.iter().map(|_| Vec::new()).collect();
        for record in records {
            for (part, messages) in split::split(self.sharding, record).into_iter().zip(&mut messages) {
                messages.push(Message::Part { part, complete });
            }
        }
        for (shard, messages) in self.shards.iter_mut().zip(&messages) {
            shard.prepare(messages)?;
        }
        // From here on nobody can say what stands in some shards only.
        write(&mut self.shards).map_err(|error| self.poison(error))?;
        self.tail = tail;
        self.owes_marks = true;
        Ok(())
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        let Some(tail) = end_of(version, self.first(), self.tail)? else {
            return Ok(Box::new(std::iter::empty()));
        };
        let shards: Result<Vec<Parts<'_>>, Error> =
            self.shards.iter_mut().map(|shard| shard.read(version, tail.version)).collect();
        Ok(Box::new(Merged { shards: shards?, next: version, last: tail.version }))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        let Some(tail) = self.tail else { return Ok(()) };
        let below = below.min(tail.version);
        self.shards.iter_mut().try_for_each(|shard| shard.trim(below))
    }

    fn tail(&self) -> Option<Tail> {
        self.tail
    }

    fn first(&self) -> Option<Version> {
        self.tail?;
        self.shards.iter().map(|shard| shard.first()).max()?
    }

    fn rest(&mut self) {
        let Some(tail) = self.tail.filter(|_| self.poisoned.is_none()) else { return };
        if self.owes_marks || self.shards.iter().any(|shard| shard.lost_a_mark()) {
            self.shards.iter_mut().for_each(|shard| shard.mark(self.epoch, tail.version));
            self.owes_marks = false;
        }
    }

    fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes()).sum()
    }
}

/// Records put together from their parts.
struct Merged<'a> {
    shards: Vec<Parts<'a>>,
    next: Version,
    last: Version,
}

impl Merged<'_> {
    fn record(&mut self) -> Result<Record, Error> {
        let version = self.next;
        let missing = || Error::Disagree { version, reason: "a part of it is missing".into() };
        let parts: Result<Vec<Part>, Error> =
            self.shards.iter_mut().map(|shard| shard.next().ok_or_else(missing)?).collect();
        split::join(version, parts?).map_err(|reason| Error::Disagree { version, reason })
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.last {
            return None;
        }
        let record = self.record();
        // The iterator ends after its first error.
        self.next = if record.is_ok() { self.next.next() } else { self.last.next() };
        Some(record)
    }
}
