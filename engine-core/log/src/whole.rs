//! Following a log that other processes write, all of its shards at once.
//!
//! A follower of one shard hands out parts of transactions. [`WholeFollower`] joins the parts of each version, so that its
//! records are what the sequencer appended, whatever the number of shards is.

use crate::archive::Entry;
use crate::shards::{Part, join};
use crate::{Error, Follower, LogBackend, Position};
use std::time::Duration;
use tidegraph_types::{Sharding, Version};

/// Follows all shards of a log.
pub struct WholeFollower {
    shards: Vec<ShardReader>,
    next: Version,
}

struct ShardReader {
    follower: Box<dyn Follower>,
    /// The part of the next version, if it was read, and the time of its message.
    read: Option<(Part, Option<i64>)>,
}

impl std::fmt::Debug for WholeFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WholeFollower").field("next", &self.next).finish_non_exhaustive()
    }
}

impl WholeFollower {
    /// Follows a log from behind a position on. Nothing is read yet.
    #[must_use]
    pub fn new(log: &dyn LogBackend, sharding: Sharding, after: Position) -> Self {
        let reader = |shard| ShardReader { follower: log.follow(shard, after), read: None };
        Self { shards: sharding.all().map(reader).collect(), next: after.version.next() }
    }

    /// Returns the record after the last one, or `None` if a shard does not have it within `at_most`.
    ///
    /// # Errors
    /// Those of [`Follower::next`]; [`Error::Disagree`] if the parts do not fit together; [`Error::Unsupported`] if the
    /// log has several shards and does not say where mutations stand in their transaction.
    pub fn next(&mut self, at_most: Duration) -> Result<Option<Entry>, Error> {
        let (is_one, mut wait, mut is_whole) = (self.shards.len() == 1, at_most, true);
        for shard in &mut self.shards {
            if shard.read.is_none() && !shard.read_next(wait, is_one)? {
                // The other shards are read all the same: what they have besides records must not count as unread.
                (wait, is_whole) = (Duration::ZERO, false);
            }
        }
        if !is_whole {
            return Ok(None);
        }
        let read: Vec<_> = self.shards.iter_mut().filter_map(|shard| shard.read.take()).collect();
        let written_ms = read.first().and_then(|(_, written_ms)| *written_ms);
        let parts = read.into_iter().map(|(part, _)| part).collect();
        let version = self.next;
        let record = join(version, parts).map_err(|reason| Error::Disagree { version, reason })?;
        self.next = version.next();
        Ok(Some(Entry { record, written_ms }))
    }

    /// Whether at most about `within` messages of each shard are still unread, of those now in the log.
    ///
    /// # Errors
    /// Those of [`Follower::is_near_end`].
    pub fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        for shard in &mut self.shards {
            if !shard.follower.is_near_end(within)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl ShardReader {
    /// Reads the next part; returns whether there is one.
    fn read_next(&mut self, at_most: Duration, is_one: bool) -> Result<bool, Error> {
        let Some(record) = self.follower.next(at_most)? else { return Ok(false) };
        let details = self.follower.details();
        let places = match details {
            Some(details) => details.places.clone(),
            None if is_one => Vec::new(),
            None => {
                let operation = "say where mutations stand in their transaction";
                return Err(Error::Unsupported { backend: "this kind of shards", operation });
            }
        };
        let written_ms = details.and_then(|details| details.written_ms);
        self.read = Some((Part { record, places }, written_ms));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SharedLog, SharedShards};
    use crate::{Body, LogStore, Record};
    use tidegraph_types::{Epoch, Gui, Mutation, PartitionCount, RequestId, ShardId, Sid};

    const SOON: Duration = Duration::from_millis(1);

    fn commit(version: u64, partitions: &[u64]) -> Record {
        let vertex = |partition: &u64| Mutation::DeleteVertex {
            gui: Gui(partition << 48 | version),
            edges_left: false,
        };
        let body = Body::Commit {
            mutations: partitions.iter().map(vertex).collect(),
            next_sid: Sid(version),
            request: Some(RequestId(u128::from(version))),
            changes: None,
        };
        Record { shard: ShardId(0), epoch: Epoch(1), version: Version(version), body }
    }

    fn records() -> Vec<Record> {
        vec![commit(1, &[7, 0, 3, 1]), commit(2, &[]), commit(3, &[5, 5, 2]), commit(4, &[0, 1, 2, 3, 4])]
    }

    fn read(follower: &mut WholeFollower) -> Vec<Record> {
        std::iter::from_fn(|| follower.next(SOON).unwrap()).map(|entry| entry.record).collect()
    }

    /// Shows LOG-4.
    #[test]
    fn records_of_several_shards_are_whole() {
        for shards in [1, 2, 8] {
            let sharding = Sharding::new(PartitionCount::new(8).unwrap(), shards).unwrap();
            let log = SharedShards::new(sharding);
            let mut writer = log.open(Epoch(1)).unwrap();
            writer.append(&records()).unwrap();
            let mut follower = WholeFollower::new(&log, sharding, Position::default());
            assert!(!follower.is_near_end(0).unwrap());
            writer.on_idle();
            assert_eq!(read(&mut follower), records(), "{shards} shards");
            assert!(follower.is_near_end(0).unwrap());
            let after = Position { version: Version(2), epoch: Epoch(1) };
            assert_eq!(read(&mut WholeFollower::new(&log, sharding, after)), records()[2..]);
            // A sequencer that takes over leaves signals in all shards, and no record.
            drop(log.open(Epoch(2)).unwrap());
            assert!(read(&mut follower).is_empty());
            assert!(follower.is_near_end(0).unwrap(), "{shards} shards");
        }
    }

    #[test]
    fn one_shard_is_read_as_it_is_and_tells_what_was_trimmed() {
        let log = SharedLog::new();
        let mut writer = log.writer(ShardId(0));
        writer.append(&records()).unwrap();
        assert_eq!(read(&mut WholeFollower::new(&log, Sharding::ONE, Position::default())), records());
        writer.trim(Version(3)).unwrap();
        let mut late = WholeFollower::new(&log, Sharding::ONE, Position::default());
        assert!(matches!(late.next(SOON), Err(Error::Trimmed { first: Version(3), .. })));
    }
}
