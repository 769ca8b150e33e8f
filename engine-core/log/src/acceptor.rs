//! Decides which messages of a shard count. Every reader decides by itself, from the messages in their order.
//!
//! A shard that is the whole log (ADR 0008): a message counts if it has the version after the last message that
//! counted, and no lower epoch (LOG-1). It is complete at once.
//!
//! One shard of several (ADR 0013): every version has one record in each shard, and counts for the graph only if all
//! shards have it. One shard alone does not show that. So a record that counts is *complete* only when a later message
//! of the shard says so. A record that is not complete may be replaced: a *fence* of a higher epoch ends the writes of
//! lower epochs, and the first record after the fence, of the same epoch, replaces the record with its version and all
//! later ones.
//!
//! What must never happen (LOG-4): two readers that differ about what counts, wherever they begin; a complete record
//! that is replaced.

use crate::record::Signal;
use crate::{Position, Record, Tail};
use std::collections::VecDeque;
use tidegraph_types::{Epoch, Version};

/// Whether a shard is the whole log or one of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// The shard is the whole log.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "the logs of tests have several shards"))]
    Single,
    /// The shard is one of several.
    Sharded,
}

/// The part of a message that decides whether it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MessageHead {
    /// 0 for a signal.
    pub version: Version,
    pub epoch: Epoch,
    /// The newest version that the writer knew to be in all shards.
    pub complete: Version,
    pub signal: Option<Signal>,
}

/// The decision about a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The message does not count.
    Ignored,
    /// The message is the next record.
    Appended,
    /// The message replaces the record of its version. All later records are void.
    Replaced,
    /// The message is a signal that counts.
    Signal,
}

/// Decides which messages count, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acceptor {
    layout: Layout,
    /// The last record that counted.
    tail: Option<Tail>,
    /// The highest epoch of the records and fences that counted.
    epoch: Epoch,
    /// Whether no record has counted since the fence of that epoch.
    fenced: bool,
    /// All records up to this version are complete.
    complete: Version,
}

impl Acceptor {
    /// Starts at the oldest message of the shard.
    pub fn new(layout: Layout) -> Self {
        Self { layout, tail: None, epoch: Epoch(0), fenced: false, complete: Version(0) }
    }

    /// Starts behind the complete record `at`, at a message that is not after the next record.
    pub fn behind(layout: Layout, at: Position) -> Self {
        let tail = Some(Tail { version: at.version, epoch: at.epoch });
        Self { layout, tail, epoch: at.epoch, fenced: false, complete: at.version }
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

    /// Decides about the next message. It is an error if a complete record would be replaced: another software wrote
    /// the message, or a message was lost.
    pub fn accept(&mut self, head: MessageHead) -> Result<Verdict, String> {
        match (self.layout, head.signal) {
            (Layout::Single, Some(_)) => Ok(Verdict::Ignored),
            (Layout::Single, None) => Ok(self.accept_whole(head)),
            (Layout::Sharded, Some(Signal::Fence)) if head.epoch > self.epoch => {
                (self.epoch, self.fenced) = (head.epoch, true);
                self.complete = self.complete.max(head.complete);
                Ok(Verdict::Signal)
            }
            (Layout::Sharded, Some(Signal::Mark)) if head.epoch >= self.epoch => {
                self.complete = self.complete.max(head.complete);
                Ok(Verdict::Signal)
            }
            (Layout::Sharded, Some(_)) => Ok(Verdict::Ignored),
            (Layout::Sharded, None) => self.accept_part(head),
        }
    }

    /// Decides about a record of a shard that is the whole log.
    fn accept_whole(&mut self, head: MessageHead) -> Verdict {
        if !self.follows(head) {
            return Verdict::Ignored;
        }
        self.count(head);
        self.complete = head.version;
        Verdict::Appended
    }

    /// Decides about a record of one shard of several.
    fn accept_part(&mut self, head: MessageHead) -> Result<Verdict, String> {
        let replaces = self.fenced
            && head.epoch == self.epoch
            && head.version > Version(0)
            && self.tail.is_some_and(|tail| head.version <= tail.version);
        if !replaces && !self.follows(head) {
            return Ok(Verdict::Ignored);
        }
        if replaces && head.version <= self.complete {
            let (version, epoch, complete) = (head.version, head.epoch, self.complete);
            return Err(format!(
                "version {version} of epoch {epoch} comes after version {complete} was complete"
            ));
        }
        self.count(head);
        self.complete = self.complete.max(head.complete);
        Ok(if replaces { Verdict::Replaced } else { Verdict::Appended })
    }

    fn follows(&self, head: MessageHead) -> bool {
        match self.tail {
            // The oldest record of a shard counts: it is the first one ever, or the log was trimmed up to it.
            None => head.version > Version(0) && head.epoch >= self.epoch,
            Some(tail) => head.version == tail.version.next() && head.epoch >= self.epoch,
        }
    }

    fn count(&mut self, head: MessageHead) {
        self.tail = Some(Tail { version: head.version, epoch: head.epoch });
        self.epoch = head.epoch;
        self.fenced = false;
    }
}

/// The epoch of the record of each version that counts.
#[derive(Clone, Default, Debug)]
pub(crate) struct EpochHistory {
    /// The first record of each epoch, in order.
    begins: Vec<Tail>,
    last: Version,
}

impl EpochHistory {
    /// Notes a record that counts: the next one, or one that replaces another and all later ones.
    pub fn note(&mut self, version: Version, epoch: Epoch) {
        let kept = self.begins.partition_point(|begin| begin.version < version);
        self.begins.truncate(kept);
        if self.begins.last().is_none_or(|begin| begin.epoch != epoch) {
            self.begins.push(Tail { version, epoch });
        }
        self.last = version;
    }

    /// Forgets versions below `below`.
    pub fn forget(&mut self, below: Version) {
        let after = self.begins.partition_point(|begin| begin.version <= below);
        self.begins.drain(..after.saturating_sub(1));
        if let Some(first) = self.begins.first_mut() {
            first.version = first.version.max(below);
        }
    }

    /// The first record of the epoch that wrote a version.
    fn begin_of(&self, version: Version) -> Option<Tail> {
        let after = self.begins.partition_point(|begin| begin.version <= version);
        (version <= self.last).then(|| self.begins.get(after.checked_sub(1)?).copied()).flatten()
    }

    /// The epoch of the record of a version; `None` if there is no such record.
    pub fn epoch_at(&self, version: Version) -> Option<Epoch> {
        Some(self.begin_of(version)?.epoch)
    }

    /// The last version whose record has the same epoch in all shards. Up to it, all shards have the same records.
    ///
    /// The lowest of the last versions is not enough: a sequencer that died during a take-over may have replaced a
    /// record in one shard that another shard still has.
    pub fn common(all: &[&Self]) -> Option<Tail> {
        let mut version = all.iter().map(|history| history.last).min()?;
        loop {
            let begins: Option<Vec<Tail>> = all.iter().map(|history| history.begin_of(version)).collect();
            let begins = begins?;
            let epoch = begins.iter().map(|begin| begin.epoch).max()?;
            if begins.iter().all(|begin| begin.epoch == epoch) {
                return Some(Tail { version, epoch });
            }
            // Epochs never fall, so shards can agree only below the first record of the highest epoch.
            let newest = begins.iter().filter(|begin| begin.epoch == epoch);
            version = Version(newest.map(|begin| begin.version.0).min()?.checked_sub(1)?);
        }
    }
}

/// The state of a follower of a shard: it gets each record when it is complete (LOG-4).
#[derive(Debug)]
pub(crate) struct FollowerState {
    acceptor: Acceptor,
    /// Records that count and were not handed out.
    waiting: VecDeque<Record>,
    at: Position,
}

impl FollowerState {
    /// Starts at the oldest message. Records up to `at` are not handed out.
    pub fn from_start(layout: Layout, at: Position) -> Self {
        Self { acceptor: Acceptor::new(layout), waiting: VecDeque::new(), at }
    }

    /// Starts behind `at`, at a message that is not after the next record.
    pub fn behind(layout: Layout, at: Position) -> Self {
        Self { acceptor: Acceptor::behind(layout, at), waiting: VecDeque::new(), at }
    }

    /// Processes the next message. Calls `record` if its record will be handed out. Errors as [`Acceptor::accept`].
    pub fn accept<E>(
        &mut self,
        head: MessageHead,
        damaged: impl FnOnce(String) -> E,
        record: impl FnOnce() -> Result<Record, E>,
    ) -> Result<(), E> {
        let seen = self.acceptor.accept(head).map_err(damaged)?;
        if seen == Verdict::Replaced {
            self.waiting.retain(|record| record.version < head.version);
        }
        if matches!(seen, Verdict::Appended | Verdict::Replaced) && head.version > self.at.version {
            self.waiting.push_back(record()?);
        }
        Ok(())
    }

    /// The next record, if it is complete.
    pub fn next(&mut self) -> Option<Record> {
        if self.waiting.front()?.version > self.acceptor.complete() {
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

    fn part(version: u64, epoch: u64, complete: u64) -> MessageHead {
        let (version, epoch, complete) = (Version(version), Epoch(epoch), Version(complete));
        MessageHead { version, epoch, complete, signal: None }
    }

    fn signal(signal: Signal, epoch: u64, complete: u64) -> MessageHead {
        MessageHead { signal: Some(signal), ..part(0, epoch, complete) }
    }

    /// Shows LOG-1.
    #[test]
    fn the_first_of_two_with_the_same_version_counts() {
        let mut acceptor = Acceptor::new(Layout::Single);
        let mut take = |version, epoch| acceptor.accept(part(version, epoch, 0)) == Ok(Verdict::Appended);
        assert!(!take(0, 1), "version 0 is the empty graph");
        assert!(take(7, 1));
        assert!(!take(7, 1) && !take(9, 1) && !take(7, 5));
        assert!(take(8, 1));
        assert!(take(9, 3));
        assert!(!take(10, 2), "from a deposed writer");
        assert!(take(10, 3));
        assert_eq!(acceptor.complete(), Version(10));
        assert_eq!(acceptor.accept(signal(Signal::Fence, 9, 0)), Ok(Verdict::Ignored));
    }

    /// Shows LOG-4.
    #[test]
    fn after_a_fence_the_first_record_replaces_incomplete_ones() {
        let mut acceptor = Acceptor::new(Layout::Sharded);
        let mut take = |head| acceptor.accept(head);
        assert_eq!(take(signal(Signal::Fence, 1, 0)), Ok(Verdict::Signal));
        assert_eq!(take(part(1, 1, 0)), Ok(Verdict::Appended));
        assert_eq!(take(part(2, 1, 1)), Ok(Verdict::Appended));
        assert_eq!(take(part(3, 1, 1)), Ok(Verdict::Appended));
        assert_eq!(take(part(2, 1, 1)), Ok(Verdict::Ignored), "not without a fence");
        assert_eq!(take(signal(Signal::Fence, 1, 0)), Ok(Verdict::Ignored));
        assert_eq!(take(signal(Signal::Fence, 3, 0)), Ok(Verdict::Signal));
        assert_eq!(take(signal(Signal::Fence, 2, 0)), Ok(Verdict::Ignored));
        assert_eq!(take(part(4, 1, 1)), Ok(Verdict::Ignored), "from a deposed writer");
        assert_eq!(take(signal(Signal::Mark, 1, 3)), Ok(Verdict::Ignored));
        assert_eq!(take(part(5, 3, 1)), Ok(Verdict::Ignored), "a gap");
        assert!(take(part(1, 3, 1)).is_err(), "version 1 is complete");
        assert_eq!(take(part(2, 3, 1)), Ok(Verdict::Replaced));
        assert_eq!(take(part(2, 3, 1)), Ok(Verdict::Ignored), "only the first one");
        assert_eq!(take(part(3, 3, 2)), Ok(Verdict::Appended));
        assert_eq!(take(signal(Signal::Mark, 3, 3)), Ok(Verdict::Signal));
        assert_eq!(acceptor.complete(), Version(3));
        assert_eq!(acceptor.tail(), Some(Tail { version: Version(3), epoch: Epoch(3) }));
    }

    /// Shows LOG-4.
    #[test]
    fn shards_agree_up_to_where_the_same_epochs_wrote() {
        let history = |records: &[(u64, u64)]| {
            let mut history = EpochHistory::default();
            records.iter().for_each(|(version, epoch)| history.note(Version(*version), Epoch(*epoch)));
            history
        };
        let common = |all: &[&[(u64, u64)]]| {
            let all: Vec<EpochHistory> = all.iter().map(|records| history(records)).collect();
            let tail = EpochHistory::common(&all.iter().collect::<Vec<_>>());
            tail.map(|tail| (tail.version.0, tail.epoch.0))
        };
        assert_eq!(common(&[&[(1, 1), (2, 1), (3, 1)], &[(1, 1), (2, 1)]]), Some((2, 1)));
        assert_eq!(common(&[&[(1, 1)], &[]]), None);
        // Version 2 was replaced in one shard before its sequencer died.
        assert_eq!(common(&[&[(1, 1), (2, 1), (2, 2)], &[(1, 1), (2, 1), (3, 1)]]), Some((1, 1)));
        assert_eq!(common(&[&[(1, 1)], &[(1, 1), (1, 2)]]), None);
        assert_eq!(common(&[&[(7, 1), (8, 3), (9, 3)], &[(7, 1), (8, 2), (8, 3)]]), Some((8, 3)));
        let mut trimmed = history(&[(1, 1), (2, 1), (3, 2), (4, 2), (5, 4)]);
        trimmed.forget(Version(4));
        let at = |version| trimmed.epoch_at(Version(version)).map(|epoch| epoch.0);
        assert_eq!([at(3), at(4), at(5), at(6)], [None, Some(2), Some(4), None]);
    }

    /// Shows LOG-4.
    #[test]
    fn a_follower_hands_out_complete_records_and_no_replaced_ones() {
        use crate::testing::commit;
        let mut follower = FollowerState::from_start(Layout::Sharded, Position::default());
        let mut give = |head: MessageHead, mark: &str| {
            follower
                .accept(head, |reason| reason, || Ok(commit(head.version.0, head.epoch.0, mark)))
                .unwrap();
            std::iter::from_fn(|| follower.next()).collect::<Vec<_>>()
        };
        assert!(give(part(1, 1, 0), "a").is_empty());
        assert_eq!(give(part(2, 1, 1), "void"), [commit(1, 1, "a")]);
        assert!(give(part(3, 1, 1), "void").is_empty());
        assert!(give(signal(Signal::Fence, 2, 0), "").is_empty());
        assert!(give(part(2, 2, 1), "b").is_empty());
        assert_eq!(give(signal(Signal::Mark, 2, 2), ""), [commit(2, 2, "b")]);
    }
}
