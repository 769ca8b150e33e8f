//! A log in memory that several writers share, as processes share one in Kafka.
//!
//! A handle stands for a process. It keeps the tail that it last knew, so a deposed handle
//! writes as a deposed process would write into Kafka. The log accepts records by the same rule.

use crate::error::cause;
use crate::store::{Records, check_all};
use crate::{Cause, Error, Follower, LogBackend, LogStore, Position, Record, Tail};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{Epoch, ShardId, Version};

/// A log that several handles write and read.
#[derive(Clone, Debug, Default)]
pub struct SharedLog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The accepted records, in order of version.
    records: Vec<Record>,
    tail: Option<Tail>,
    away: bool,
}

impl SharedLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the log stop answering, or answer again. A log that is away refuses appends and gives followers nothing.
    pub fn set_away(&self, away: bool) {
        self.0.state.lock().away = away;
        self.0.grown.notify_all();
    }

    /// Returns a handle for writing, at the current tail.
    #[must_use]
    pub fn writer(&self, shard: ShardId) -> SharedLogHandle {
        let tail = self.0.state.lock().tail;
        SharedLogHandle { log: self.clone(), shard, tail, poisoned: None }
    }

    /// Follows the log from behind a position.
    #[must_use]
    pub fn follow(&self, after: Position) -> SharedLogFollower {
        SharedLogFollower { log: self.clone(), at: after.version }
    }
}

impl LogBackend for SharedLog {
    fn open(&self, _epoch: Epoch) -> Result<Box<dyn LogStore>, Error> {
        Ok(Box::new(self.writer(ShardId(0))))
    }

    fn follow(&self, _shard: ShardId, after: Position) -> Box<dyn Follower> {
        Box::new(SharedLog::follow(self, after))
    }
}

/// One process's view of a [`SharedLog`].
#[derive(Debug)]
pub struct SharedLogHandle {
    log: SharedLog,
    shard: ShardId,
    tail: Option<Tail>,
    poisoned: Option<Cause>,
}

impl LogStore for SharedLogHandle {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        let tail = check_all(records, self.shard, self.tail)?;
        let mut state = self.log.0.state.lock();
        if state.away {
            let reason = self.poisoned.insert(cause("the log does not answer"));
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        for record in records {
            let follows = state
                .tail
                .is_none_or(|tail| record.version == tail.version.next() && record.epoch >= tail.epoch);
            if !follows {
                let reason = self.poisoned.insert(cause("another sequencer has written to the log"));
                return Err(Error::Poisoned { reason: reason.clone() });
            }
            state.tail = Some(Tail { version: record.version, epoch: record.epoch });
            state.records.push(record.clone());
        }
        drop(state);
        self.tail = tail;
        self.log.0.grown.notify_all();
        Ok(())
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        let state = self.log.0.state.lock();
        if let Some(first) = state.first()
            && version < first
        {
            return Err(Error::Trimmed { requested: version, first });
        }
        let records: Vec<Record> = state.records.iter().filter(|r| r.version >= version).cloned().collect();
        Ok(Box::new(records.into_iter().map(Ok)))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        let mut state = self.log.0.state.lock();
        let gone = state.records.partition_point(|record| record.version < below);
        state.records.drain(..gone);
        Ok(())
    }

    fn tail(&self) -> Option<Tail> {
        self.tail
    }

    fn first(&self) -> Option<Version> {
        self.log.0.state.lock().first()
    }

    fn bytes(&self) -> u64 {
        0
    }
}

impl State {
    fn first(&self) -> Option<Version> {
        let first = self.records.first().map(|record| record.version);
        first.or_else(|| self.tail.map(|tail| tail.version.next()))
    }
}

/// Follows a [`SharedLog`].
#[derive(Debug)]
pub struct SharedLogFollower {
    log: SharedLog,
    at: Version,
}

impl Follower for SharedLogFollower {
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, Error> {
        let mut state = self.log.0.state.lock();
        let wanted = self.at.next();
        let there = |state: &State| !state.away && state.tail.is_some_and(|tail| tail.version >= wanted);
        if !there(&state) {
            self.log.0.grown.wait_for(&mut state, at_most);
        }
        if !there(&state) {
            return Ok(None);
        }
        match state.first() {
            Some(first) if wanted < first => Err(Error::Trimmed { requested: wanted, first }),
            first => {
                let index = (wanted.0 - first.unwrap_or(wanted).0) as usize;
                self.at = wanted;
                Ok(state.records.get(index).cloned())
            }
        }
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        let tail = self.log.0.state.lock().tail.map_or(0, |tail| tail.version.0);
        Ok(tail.saturating_sub(self.at.0) <= within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;

    fn record(version: u64, epoch: u64) -> Record {
        Record { shard: ShardId(0), epoch: Epoch(epoch), version: Version(version), body: Body::EpochStart }
    }

    #[test]
    fn behaves_as_a_log() {
        crate::testing::log_test_suite(|| Box::new(SharedLog::new().writer(ShardId(0))));
    }

    /// Shows LOG-1.
    #[test]
    fn a_deposed_writer_gets_nothing_in() {
        let log = SharedLog::new();
        let mut old = log.writer(ShardId(0));
        old.append(&[record(1, 1)]).unwrap();
        let mut new = log.writer(ShardId(0));
        new.append(&[record(2, 2)]).unwrap();
        assert!(matches!(old.append(&[record(2, 1)]), Err(Error::Poisoned { .. })));
        let mut follower = log.follow(Position::default());
        let mut next = || follower.next(Duration::ZERO).unwrap();
        assert_eq!(next(), Some(record(1, 1)));
        assert_eq!(next(), Some(record(2, 2)));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_follower_hears_that_its_record_was_trimmed() {
        let log = SharedLog::new();
        let mut handle = log.writer(ShardId(0));
        handle.append(&[record(1, 1), record(2, 1), record(3, 1)]).unwrap();
        handle.trim(Version(3)).unwrap();
        let mut late = log.follow(Position { version: Version(1), epoch: Epoch(1) });
        assert!(matches!(late.next(Duration::ZERO), Err(Error::Trimmed { .. })));
        let mut follower = log.follow(Position { version: Version(2), epoch: Epoch(1) });
        assert_eq!(follower.next(Duration::ZERO).unwrap(), Some(record(3, 1)));
    }
}
