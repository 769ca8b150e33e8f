//! A log in memory, for graphs that end with their process and for tests.

use crate::follow::Follow;
use crate::store::{Records, check_all};
use crate::{Error, Follower, LogStore, Record, Tail};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{ShardId, Version};

/// A log in memory. It ends with its last reader.
#[derive(Debug, Default)]
pub struct MemoryLog {
    shard: ShardId,
    kept: Kept,
    tail: Option<Tail>,
}

/// The records that are kept, in order of version, which the log shares with its readers.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    records: VecDeque<Record>,
    /// The version after the last record that was trimmed or kept; 0 before the first record.
    end: Version,
}

impl Kept {
    /// Returns the record of a version, and none after the last one.
    fn get(&self, version: Version) -> Result<Option<Record>, Error> {
        let kept = self.0.lock();
        let first = kept.records.front().map_or(kept.end, |record| record.version);
        match version.0.checked_sub(first.0) {
            None => Err(Error::Trimmed { requested: version, first }),
            Some(at) => Ok(usize::try_from(at).ok().and_then(|at| kept.records.get(at).cloned())),
        }
    }
}

impl MemoryLog {
    /// An empty log of a shard.
    #[must_use]
    pub fn new(shard: ShardId) -> Self {
        Self { shard, ..Self::default() }
    }
}

impl LogStore for MemoryLog {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        self.tail = check_all(records, self.shard, self.tail)?;
        let mut kept = self.kept.0.lock();
        kept.records.extend(records.iter().cloned());
        kept.end = self.tail.map_or(kept.end, |tail| tail.version.next());
        Ok(())
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        if let Some(first) = self.first()
            && version < first
        {
            return Err(Error::Trimmed { requested: version, first });
        }
        let mut next = version.max(self.first().unwrap_or_default());
        let kept = &self.kept;
        Ok(Box::new(std::iter::from_fn(move || {
            let record = kept.get(next).transpose()?;
            next = next.next();
            Some(record)
        })))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        let mut kept = self.kept.0.lock();
        while kept.records.front().is_some_and(|r| r.version < below) {
            kept.records.pop_front();
        }
        Ok(())
    }

    fn tail(&self) -> Option<Tail> {
        self.tail
    }

    fn first(&self) -> Option<Version> {
        let kept = self.kept.0.lock();
        kept.records.front().map(|r| r.version).or_else(|| self.tail.map(|t| t.version.next()))
    }

    fn syncs_later(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn readers(&self) -> Option<Arc<dyn Follow>> {
        Some(Arc::new(self.kept.clone()))
    }
}

impl Follow for Kept {
    fn follow(&self, after: Version) -> Box<dyn Follower> {
        Box::new(MemoryFollower { kept: self.clone(), next: after.next() })
    }
}

struct MemoryFollower {
    kept: Kept,
    next: Version,
}

impl Follower for MemoryFollower {
    fn next(&mut self, _at_most: Duration) -> Result<Option<Record>, Error> {
        let record = self.kept.get(self.next)?;
        if record.is_some() {
            self.next = self.next.next();
        }
        Ok(record)
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        Ok(self.kept.0.lock().end.0.saturating_sub(self.next.0) <= within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_as_a_log() {
        crate::testing::log_test_suite(|| Box::new(MemoryLog::new(ShardId(0))));
    }
}
