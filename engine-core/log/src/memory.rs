//! A log in memory, for graphs that end with their process and for tests.

use crate::store::{Records, check_all};
use crate::{Error, LogStore, Record, Tail};
use std::collections::VecDeque;
use tidegraph_types::{ShardId, Version};

/// A log in memory. Dropping it deletes it.
#[derive(Debug, Default)]
pub struct MemoryLog {
    shard: ShardId,
    records: VecDeque<Record>,
    tail: Option<Tail>,
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
        self.records.extend(records.iter().cloned());
        Ok(())
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        if let Some(first) = self.first()
            && version < first
        {
            return Err(Error::Trimmed { requested: version, first });
        }
        Ok(Box::new(self.records.iter().skip_while(move |r| r.version < version).cloned().map(Ok)))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        while self.records.front().is_some_and(|r| r.version < below) {
            self.records.pop_front();
        }
        Ok(())
    }

    fn tail(&self) -> Option<Tail> {
        self.tail
    }

    fn first(&self) -> Option<Version> {
        self.records.front().map(|r| r.version).or_else(|| self.tail.map(|t| t.version.next()))
    }

    fn syncs_later(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        0
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
