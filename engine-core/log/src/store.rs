//! The trait between the sequencer and a backend.

use crate::follow::Follow;
use crate::{Error, Record};
use std::sync::Arc;
use tidegraph_types::{Epoch, ShardId, Version};

/// The last record of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    /// Its version.
    pub version: Version,
    /// Its epoch.
    pub epoch: Epoch,
}

/// Records in order of version.
pub type Records<'a> = Box<dyn Iterator<Item = Result<Record, Error>> + Send + 'a>;

/// A log, of one shard or of several. Versions are those of the whole graph.
pub trait LogStore: Send {
    /// Appends records, with one write and one sync for the whole slice. When this returns `Ok`, all of them are
    /// durable, unless the log [syncs later](Self::syncs_later).
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`], [`Error::Broker`], [`Error::OutOfOrder`] and [`Error::Encode`] mean that no
    /// record was written; the log stays usable. [`Error::Poisoned`] means that it is unknown which records were
    /// written; the log takes no more records, and can still be read.
    fn append(&mut self, records: &[Record]) -> Result<(), Error>;

    /// Returns the records from `version` to the tail; none if `version` is after the tail. The iterator ends after its
    /// first error.
    ///
    /// # Errors
    /// [`Error::Trimmed`] if `version` is before the first record. Damage comes from the iterator, as
    /// [`Error::Corrupt`], [`Error::Damaged`], [`Error::Missing`], [`Error::Disagree`] or [`Error::Newer`].
    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error>;

    /// Deletes records with versions below `below`. A backend may keep some of them: it frees whole files. The log
    /// still knows its tail.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Broker`] if the backend fails; the log stays usable.
    fn trim(&mut self, below: Version) -> Result<(), Error>;

    /// The last record; `None` if there never was one. If a crash cut off the very first append, this is the version
    /// before it.
    fn tail(&self) -> Option<Tail>;

    /// The oldest version that can be read; `None` if there never was a record. The version after the tail if all
    /// records were trimmed.
    fn first(&self) -> Option<Version>;

    /// Called when no append follows at once. A log of several shards now sends its readers the mark that the next
    /// append would have carried; it does not wait. Other logs do nothing.
    fn on_idle(&mut self) {}

    /// Makes all appended records durable. Does nothing unless the log [syncs later](Self::syncs_later).
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the sync fails.
    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether an append returns before its records are durable, without waiting for a disk or a network.
    fn syncs_later(&self) -> bool {
        false
    }

    /// Bytes that the log had when it was opened plus bytes appended since; trimming does not lower it. Decides when a
    /// checkpoint is due. 0 for a log that takes no disk.
    fn bytes(&self) -> u64;

    /// Returns readers of the log that do not hold up appends; `None` if the log is read in another way
    /// ([`FirstShard`](crate::FirstShard)). A reader must not read beyond the newest version that was acknowledged.
    fn readers(&self) -> Option<Arc<dyn Follow>> {
        None
    }
}

/// Where the records from `version` on end; `None` if there are none. Errors as [`LogStore::read_from`].
pub(crate) fn end_of(
    version: Version,
    first: Option<Version>,
    tail: Option<Tail>,
) -> Result<Option<Tail>, Error> {
    match (first, tail) {
        (Some(first), Some(_)) if version < first => Err(Error::Trimmed { requested: version, first }),
        (Some(_), Some(tail)) if version <= tail.version => Ok(Some(tail)),
        _ => Ok(None),
    }
}

/// Refuses a record that may not follow `tail` (LOG-1). A first record may have any version but 0, which is the empty
/// graph.
pub(crate) fn check_order(record: &Record, shard: ShardId, tail: Option<Tail>) -> Result<(), Error> {
    let follows = tail.is_none_or(|t| record.version == t.version.next() && record.epoch >= t.epoch);
    if follows && record.shard == shard && record.version > Version(0) {
        return Ok(());
    }
    let tail = match tail {
        Some(t) => format!("version {} and epoch {} of shard {shard}", t.version, t.epoch),
        None => format!("the beginning of shard {shard}"),
    };
    Err(Error::OutOfOrder { version: record.version, epoch: record.epoch, shard: record.shard, tail })
}

/// Checks a whole slice with [`check_order`]; returns the tail after it.
pub(crate) fn check_all(
    records: &[Record],
    shard: ShardId,
    tail: Option<Tail>,
) -> Result<Option<Tail>, Error> {
    records.iter().try_fold(tail, |tail, record| {
        check_order(record, shard, tail)?;
        Ok(Some(Tail { version: record.version, epoch: record.epoch }))
    })
}
