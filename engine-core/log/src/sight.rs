//! Which messages of a shard count, as every reader decides it by itself, in the order in which they stand.
//!
//! A shard that is the whole log (ADR 0008): a message counts if its version follows that of the last one that counted and its
//! epoch is not lower. It is complete when it is there.
//!
//! One shard of several (ADR 0013): every version has one record in each of them, and counts for the graph when it stands in all,
//! which one shard alone does not show. So a record that counts is *complete* only when a later message of the shard says so.
//! What is not complete may be replaced: a *fence* of a higher epoch ends what lower epochs write, and the first record after it, of
//! its own epoch, takes the place of the record with its version and of all after that.
//!
//! What must never happen: two readers that differ on what counts, wherever they begin; a complete record that is replaced.

use crate::record::Signal;
use crate::{Position, Record, Tail};
use std::collections::VecDeque;
use tidegraph_types::{Epoch, Version};

/// Whether a shard is the whole log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// It is.
    #[cfg_attr(
        not(feature = "kafka"),
        allow(dead_code, reason = "logs on disk and in memory are written by one process")
    )]
    One,
    /// There are others.
    Several,
}

/// What is to be known of a message to decide whether it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// 0 for a signal.
    pub version: Version,
    pub epoch: Epoch,
    /// The newest version that its writer knew to be in all shards.
    pub complete: Version,
    pub signal: Option<Signal>,
}

/// What a message is to a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// It does not count.
    PassedOver,
    /// The next record.
    Next,
    /// A record in place of that of its version; those after it are void.
    Instead,
    /// A signal that counts.
    Signal,
}

/// Decides which messages count, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    rule: Rule,
    /// The last record that counted.
    tail: Option<Tail>,
    /// The highest epoch that counted, of records and fences.
    epoch: Epoch,
    /// No record has counted since the fence of that epoch.
    fenced: bool,
    /// Up to here, all records are complete.
    complete: Version,
}

impl Sight {
    /// Begins with the oldest message there is.
    pub fn new(rule: Rule) -> Self {
        Self { rule, tail: None, epoch: Epoch(0), fenced: false, complete: Version(0) }
    }

    /// Begins with any message up to the record behind a complete one.
    pub fn behind(rule: Rule, at: Position) -> Self {
        let tail = Some(Tail { version: at.version, epoch: at.epoch });
        Self { rule, tail, epoch: at.epoch, fenced: false, complete: at.version }
    }

    #[cfg(any(feature = "kafka", test))]
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn complete(&self) -> Version {
        self.complete
    }

    /// Looks at the next message. An error says that a complete record would have been replaced: what stands there was not
    /// written by this software, or something was lost.
    pub fn take(&mut self, head: Head) -> Result<Seen, String> {
        match (self.rule, head.signal) {
            (Rule::One, Some(_)) => Ok(Seen::PassedOver),
            (Rule::One, None) => Ok(self.take_next(head)),
            (Rule::Several, Some(Signal::Fence)) if head.epoch > self.epoch => {
                (self.epoch, self.fenced) = (head.epoch, true);
                self.complete = self.complete.max(head.complete);
                Ok(Seen::Signal)
            }
            (Rule::Several, Some(Signal::Mark)) if head.epoch >= self.epoch => {
                self.complete = self.complete.max(head.complete);
                Ok(Seen::Signal)
            }
            (Rule::Several, Some(_)) => Ok(Seen::PassedOver),
            (Rule::Several, None) => self.take_part(head),
        }
    }

    /// A record of a shard that is the whole log.
    fn take_next(&mut self, head: Head) -> Seen {
        if !self.follows(head) {
            return Seen::PassedOver;
        }
        self.count(head);
        self.complete = head.version;
        Seen::Next
    }

    fn take_part(&mut self, head: Head) -> Result<Seen, String> {
        let replaces = self.fenced
            && head.epoch == self.epoch
            && head.version > Version(0)
            && self.tail.is_some_and(|tail| head.version <= tail.version);
        if !replaces && !self.follows(head) {
            return Ok(Seen::PassedOver);
        }
        if replaces && head.version <= self.complete {
            let (version, epoch, complete) = (head.version, head.epoch, self.complete);
            return Err(format!(
                "version {version} of epoch {epoch} comes after version {complete} was complete"
            ));
        }
        self.count(head);
        self.complete = self.complete.max(head.complete);
        Ok(if replaces { Seen::Instead } else { Seen::Next })
    }

    fn follows(&self, head: Head) -> bool {
        match self.tail {
            // The oldest record of a shard counts: it is the very first one, or the log was trimmed up to it.
            None => head.version > Version(0) && head.epoch >= self.epoch,
            Some(tail) => head.version == tail.version.next() && head.epoch >= self.epoch,
        }
    }

    fn count(&mut self, head: Head) {
        self.tail = Some(Tail { version: head.version, epoch: head.epoch });
        self.epoch = head.epoch;
        self.fenced = false;
    }
}

/// Which epoch wrote the record of each version that counts.
#[derive(Clone, Default, Debug)]
pub(crate) struct History {
    /// Where the records of an epoch begin, in order.
    begins: Vec<Tail>,
    last: Version,
}

impl History {
    /// A record counts: the next one, or in place of one that is there.
    pub fn note(&mut self, version: Version, epoch: Epoch) {
        let kept = self.begins.partition_point(|begin| begin.version < version);
        self.begins.truncate(kept);
        if self.begins.last().is_none_or(|begin| begin.epoch != epoch) {
            self.begins.push(Tail { version, epoch });
        }
        self.last = version;
    }

    /// What is below a version is gone.
    pub fn forget(&mut self, below: Version) {
        let after = self.begins.partition_point(|begin| begin.version <= below);
        self.begins.drain(..after.saturating_sub(1));
        if let Some(first) = self.begins.first_mut() {
            first.version = first.version.max(below);
        }
    }

    /// Where the epoch of a version's record begins.
    fn begin_of(&self, version: Version) -> Option<Tail> {
        let after = self.begins.partition_point(|begin| begin.version <= version);
        (version <= self.last).then(|| self.begins.get(after.checked_sub(1)?).copied()).flatten()
    }

    /// The epoch that wrote the record of a version; `None` when it is not there.
    pub fn epoch_at(&self, version: Version) -> Option<Epoch> {
        Some(self.begin_of(version)?.epoch)
    }

    /// The last version of which all shards have the record of the same epoch, and so all the same records up to there.
    ///
    /// The lowest of the last versions is not enough: a sequencer that died while it took over may have replaced a record in one shard
    /// that another one still has.
    pub fn common(all: &[&Self]) -> Option<Tail> {
        let mut version = all.iter().map(|history| history.last).min()?;
        loop {
            let begins: Option<Vec<Tail>> = all.iter().map(|history| history.begin_of(version)).collect();
            let begins = begins?;
            let epoch = begins.iter().map(|begin| begin.epoch).max()?;
            if begins.iter().all(|begin| begin.epoch == epoch) {
                return Some(Tail { version, epoch });
            }
            // Epochs never fall, so below where the highest one begins, and only there, they may agree.
            let newest = begins.iter().filter(|begin| begin.epoch == epoch);
            version = Version(newest.map(|begin| begin.version.0).min()?.checked_sub(1)?);
        }
    }
}

/// The records of a shard as a follower gets them: each when it is complete.
#[derive(Debug)]
pub(crate) struct Following {
    sight: Sight,
    /// Those that count and were not handed out.
    waiting: VecDeque<Record>,
    at: Position,
}

impl Following {
    /// From the oldest message on; records up to `at` are not handed out.
    pub fn from_start(rule: Rule, at: Position) -> Self {
        Self { sight: Sight::new(rule), waiting: VecDeque::new(), at }
    }

    /// From a message up to the record behind `at`.
    pub fn behind(rule: Rule, at: Position) -> Self {
        Self { sight: Sight::behind(rule, at), waiting: VecDeque::new(), at }
    }

    /// Looks at the next message; `record` is asked for if it is one that will be handed out. Errors as [`Sight::take`].
    pub fn take<E>(
        &mut self,
        head: Head,
        damaged: impl FnOnce(String) -> E,
        record: impl FnOnce() -> Result<Record, E>,
    ) -> Result<(), E> {
        let seen = self.sight.take(head).map_err(damaged)?;
        if seen == Seen::Instead {
            self.waiting.retain(|record| record.version < head.version);
        }
        if matches!(seen, Seen::Next | Seen::Instead) && head.version > self.at.version {
            self.waiting.push_back(record()?);
        }
        Ok(())
    }

    /// The next record, if it is complete.
    pub fn next(&mut self) -> Option<Record> {
        if self.waiting.front()?.version > self.sight.complete() {
            return None;
        }
        let record = self.waiting.pop_front()?;
        self.at = Position { version: record.version, epoch: record.epoch };
        Some(record)
    }

    pub fn at(&self) -> Position {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(version: u64, epoch: u64, complete: u64) -> Head {
        let (version, epoch, complete) = (Version(version), Epoch(epoch), Version(complete));
        Head { version, epoch, complete, signal: None }
    }

    fn signal(signal: Signal, epoch: u64, complete: u64) -> Head {
        Head { signal: Some(signal), ..part(0, epoch, complete) }
    }

    #[test]
    fn the_first_of_two_with_the_same_version_counts() {
        let mut sight = Sight::new(Rule::One);
        let mut take = |version, epoch| sight.take(part(version, epoch, 0)) == Ok(Seen::Next);
        assert!(!take(0, 1), "version 0 is the empty graph");
        assert!(take(7, 1));
        assert!(!take(7, 1) && !take(9, 1) && !take(7, 5));
        assert!(take(8, 1));
        assert!(take(9, 3));
        assert!(!take(10, 2), "of who was deposed");
        assert!(take(10, 3));
        assert_eq!(sight.complete(), Version(10));
        assert_eq!(sight.take(signal(Signal::Fence, 9, 0)), Ok(Seen::PassedOver));
    }

    #[test]
    fn after_a_fence_the_first_record_replaces_what_is_not_complete() {
        let mut sight = Sight::new(Rule::Several);
        let mut take = |head| sight.take(head);
        assert_eq!(take(signal(Signal::Fence, 1, 0)), Ok(Seen::Signal));
        assert_eq!(take(part(1, 1, 0)), Ok(Seen::Next));
        assert_eq!(take(part(2, 1, 1)), Ok(Seen::Next));
        assert_eq!(take(part(3, 1, 1)), Ok(Seen::Next));
        assert_eq!(take(part(2, 1, 1)), Ok(Seen::PassedOver), "not without a fence");
        assert_eq!(take(signal(Signal::Fence, 1, 0)), Ok(Seen::PassedOver));
        assert_eq!(take(signal(Signal::Fence, 3, 0)), Ok(Seen::Signal));
        assert_eq!(take(signal(Signal::Fence, 2, 0)), Ok(Seen::PassedOver));
        assert_eq!(take(part(4, 1, 1)), Ok(Seen::PassedOver), "of who was deposed");
        assert_eq!(take(signal(Signal::Mark, 1, 3)), Ok(Seen::PassedOver));
        assert_eq!(take(part(5, 3, 1)), Ok(Seen::PassedOver), "a gap");
        assert!(take(part(1, 3, 1)).is_err(), "version 1 is complete");
        assert_eq!(take(part(2, 3, 1)), Ok(Seen::Instead));
        assert_eq!(take(part(2, 3, 1)), Ok(Seen::PassedOver), "only the first one");
        assert_eq!(take(part(3, 3, 2)), Ok(Seen::Next));
        assert_eq!(take(signal(Signal::Mark, 3, 3)), Ok(Seen::Signal));
        assert_eq!(sight.complete(), Version(3));
        assert_eq!(sight.tail(), Some(Tail { version: Version(3), epoch: Epoch(3) }));
    }

    #[test]
    fn shards_agree_up_to_where_the_same_epochs_wrote() {
        let history = |records: &[(u64, u64)]| {
            let mut history = History::default();
            records.iter().for_each(|(version, epoch)| history.note(Version(*version), Epoch(*epoch)));
            history
        };
        let common = |all: &[&[(u64, u64)]]| {
            let all: Vec<History> = all.iter().map(|records| history(records)).collect();
            let tail = History::common(&all.iter().collect::<Vec<_>>());
            tail.map(|tail| (tail.version.0, tail.epoch.0))
        };
        assert_eq!(common(&[&[(1, 1), (2, 1), (3, 1)], &[(1, 1), (2, 1)]]), Some((2, 1)));
        assert_eq!(common(&[&[(1, 1)], &[]]), None);
        // Version 2 was replaced in one of them, before its sequencer died.
        assert_eq!(common(&[&[(1, 1), (2, 1), (2, 2)], &[(1, 1), (2, 1), (3, 1)]]), Some((1, 1)));
        assert_eq!(common(&[&[(1, 1)], &[(1, 1), (1, 2)]]), None);
        assert_eq!(common(&[&[(7, 1), (8, 3), (9, 3)], &[(7, 1), (8, 2), (8, 3)]]), Some((8, 3)));
        let mut trimmed = history(&[(1, 1), (2, 1), (3, 2), (4, 2), (5, 4)]);
        trimmed.forget(Version(4));
        let at = |version| trimmed.epoch_at(Version(version)).map(|epoch| epoch.0);
        assert_eq!([at(3), at(4), at(5), at(6)], [None, Some(2), Some(4), None]);
    }

    #[test]
    fn a_follower_hands_out_what_is_complete_and_nothing_that_was_replaced() {
        use crate::suite::commit;
        let mut following = Following::from_start(Rule::Several, Position::default());
        let mut give = |head: Head, mark: &str| {
            following.take(head, |reason| reason, || Ok(commit(head.version.0, head.epoch.0, mark))).unwrap();
            std::iter::from_fn(|| following.next()).collect::<Vec<_>>()
        };
        assert!(give(part(1, 1, 0), "a").is_empty());
        assert_eq!(give(part(2, 1, 1), "void"), [commit(1, 1, "a")]);
        assert!(give(part(3, 1, 1), "void").is_empty());
        assert!(give(signal(Signal::Fence, 2, 0), "").is_empty());
        assert!(give(part(2, 2, 1), "b").is_empty());
        assert_eq!(give(signal(Signal::Mark, 2, 2), ""), [commit(2, 2, "b")]);
    }
}
