//! The seam between the sequencer and a backend.

use crate::{Error, Record};
use tidegraph_types::{Epoch, ShardId, Version};

/// Where the log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    /// Version of the last record.
    pub version: Version,
    /// Epoch of the last record.
    pub epoch: Epoch,
}

/// Records in order of version.
pub type Records<'a> = Box<dyn Iterator<Item = Result<Record, Error>> + Send + 'a>;

/// A log, of one shard or of several: versions, and what is said of them, are those of the whole graph.
pub trait LogStore: Send {
    /// Writes records after those that are there. When it answers `Ok`, all of them are durable, unless the log
    /// [is late](Self::is_late); this is one write and one sync for the whole slice, however long it is.
    ///
    /// An error of [`Error::Full`], [`Error::Io`], [`Error::OutOfOrder`] or [`Error::Encode`] means that none was
    /// written and that the log can go on. [`Error::Poisoned`] means that it is not known which were, and that the
    /// log takes no more; reading goes on.
    fn append(&mut self, records: &[Record]) -> Result<(), Error>;

    /// The records from `version` to the tail; none when `version` is after the tail. [`Error::Trimmed`] when it is
    /// before the first one. The iterator ends after its first error.
    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error>;

    /// Forgets records with versions below `below`, or fewer: a backend frees whole files. The tail stays known.
    fn trim(&mut self, below: Version) -> Result<(), Error>;

    /// The last record; `None` when there never was one. A log whose very first append was cut off by a crash answers
    /// the version before it.
    fn tail(&self) -> Option<Tail>;

    /// The oldest version that can be read; `None` when there never was a record. One after the tail when all were
    /// trimmed.
    fn first(&self) -> Option<Version>;

    /// No append follows at once: what readers are still to be told, for want of a record that says it, is sent to them now.
    /// Does not wait. A log of which every record says all has nothing to do.
    fn rest(&mut self) {}

    /// Makes everything durable that was appended. A log that is not late has nothing to do.
    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether an append is answered when the system has it, before it is durable: it does not wait for a disk or a network.
    fn is_late(&self) -> bool {
        false
    }

    /// Bytes that were there when the log was opened and bytes appended since; trimming does not lower it. Tells when
    /// a checkpoint is due. 0 for a log that takes no disk.
    fn bytes(&self) -> u64;
}

/// Where the records from a version on end; `None` when there are none. As [`LogStore::read_from`] says it.
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

/// Whether `record` may follow `tail`. A first record may have any version but 0, which is the empty graph.
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

/// Checks a whole slice; answers the tail after it.
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
