//! A log of several shards. Each holds the records of its group of partitions; versions are those of the whole graph.
//!
//! Roles: [`ShardedLog`] is a [`LogStore`] over shards. [`split`] divides a record into parts and joins them again. A
//! [`Shard`] is one shard of a backend: a partition of a Kafka topic, or a shard of `testing::SharedShards`.
//! `acceptor.rs` decides which messages of a shard count and when a record is complete. ADR 0013 has the reasons.
//!
//! Flow of an append: divide each record into one part for each shard, which may be empty → send all parts to all
//! shards → confirm each shard → acknowledge when all parts of all records count. The parts of the next append say
//! which records are complete; if none follows at once, a *mark* does ([`LogStore::on_idle`]).
//!
//! Flow of opening, which only a new sequencer does: write a *fence* of its epoch to every shard and read it back →
//! from here on no record of a lower epoch counts in any shard, so the ends of the shards are fixed → the last
//! version that all shards have from the same epoch is the last complete one. The first record of the new epoch
//! replaces all records above it.
//!
//! What must never happen (LOG-4): an acknowledgement before all shards have all parts; a record that is handed to
//! readers of one shard, and is missing or different in another; a choice of the last complete version before all
//! fences are written.

mod split;
#[cfg(test)]
mod tests;

#[cfg(all(test, feature = "kafka"))]
pub(crate) use split::split;
pub(crate) use split::{Part, join};

use crate::acceptor::{Acceptor, EpochHistory};
use crate::record::Signal;
use crate::store::{Records, check_all, end_of};
use crate::{Cause, Error, LogStore, Record, Tail};
use tidegraph_types::{Epoch, ShardId, Sharding, Version};

/// A message to a shard.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Message {
    /// A message without a version.
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

/// One shard, open for writing.
pub(crate) trait Shard: Send {
    /// The decisions about all messages that were read.
    fn acceptor(&self) -> &Acceptor;

    /// The epochs of the records that count.
    fn history(&self) -> &EpochHistory;

    /// Encodes the messages to send next. After an error nothing must be sent: a message cannot be encoded.
    fn prepare(&mut self, messages: &[Message]) -> Result<(), Error>;

    /// Starts to write the prepared messages. After an error, it is unknown which of them arrive.
    fn send(&mut self) -> Result<(), Error>;

    /// Waits until the sent messages are durable, and reads up to them. An error if one of them does not count, or if
    /// that is unknown.
    fn confirm(&mut self) -> Result<(), Error>;

    /// Sends a mark, without waiting for it.
    fn mark(&mut self, epoch: Epoch, complete: Version);

    /// Whether a mark could not be written.
    fn lost_a_mark(&self) -> bool;

    /// Reads the parts from version `from` to version `last`, both of which exist and are complete.
    fn read(&mut self, from: Version, last: Version) -> Result<Parts<'_>, Error>;

    /// Deletes versions below a complete one, which stays. Some of them may stay too.
    fn trim(&mut self, below: Version) -> Result<(), Error>;

    /// The oldest version that can be read.
    fn first(&self) -> Option<Version>;

    /// Bytes of the messages that count.
    fn bytes(&self) -> u64;
}

/// A log of several shards, opened by the sequencer of an epoch.
pub struct ShardedLog {
    shards: Vec<Box<dyn Shard>>,
    sharding: Sharding,
    epoch: Epoch,
    /// The last complete version.
    tail: Option<Tail>,
    poisoned: Option<Cause>,
    /// Whether readers do not know yet which records are complete.
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
    /// Fences all shards under an epoch that no other process has, and finds the last complete version.
    ///
    /// # Errors
    /// [`Error::Behind`] if the epoch is not above that of every shard; [`Error::Poisoned`] if another process took
    /// over meanwhile, or if a fence may not be written; [`Error::Disagree`] if the shards lost a complete record. The
    /// next attempt needs a new epoch.
    pub(crate) fn open(
        mut shards: Vec<Box<dyn Shard>>,
        sharding: Sharding,
        epoch: Epoch,
    ) -> Result<Self, Error> {
        let found = shards.iter().map(|shard| shard.acceptor().epoch()).max().unwrap_or_default();
        if found >= epoch {
            return Err(Error::Behind { epoch, found });
        }
        let complete = shards.iter().map(|shard| shard.acceptor().complete()).max().unwrap_or_default();
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
            other => Cause::from(Box::from(other) as Box<dyn std::error::Error + Send + Sync>),
        };
        self.poisoned = Some(reason.clone());
        Error::Poisoned { reason }
    }
}

/// Sends the prepared messages to all shards, and waits for all of them.
fn write(shards: &mut [Box<dyn Shard>]) -> Result<(), Error> {
    for shard in shards.iter_mut() {
        shard.send()?;
    }
    for shard in shards {
        shard.confirm()?;
    }
    Ok(())
}

/// The last complete version of shards whose ends are fixed.
fn common_tail(shards: &[Box<dyn Shard>]) -> Result<Option<Tail>, Error> {
    let histories: Vec<&EpochHistory> = shards.iter().map(|shard| shard.history()).collect();
    let tail = EpochHistory::common(&histories);
    let version = tail.map_or(Version(0), |tail| tail.version);
    let said = shards.iter().map(|shard| shard.acceptor().complete()).max().unwrap_or_default();
    if version < said {
        let reason =
            format!("version {said} was complete, and all shards agree only up to version {version}");
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
        // After a failure, some shards may have the records and others not. There is no way to tell.
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
        Ok(merge(shards?, version, tail.version))
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

    fn on_idle(&mut self) {
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

/// Joins the records from version `next` to version `last` from the parts of all shards.
pub(crate) fn merge(shards: Vec<Parts<'_>>, next: Version, last: Version) -> Records<'_> {
    Box::new(Merged { shards, next, last })
}

/// Joins records from their parts.
struct Merged<'a> {
    shards: Vec<Parts<'a>>,
    next: Version,
    last: Version,
}

impl Merged<'_> {
    fn record(&mut self) -> Result<Record, Error> {
        let version = self.next;
        let missing = || Error::Disagree { version, reason: "a part is missing".into() };
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
