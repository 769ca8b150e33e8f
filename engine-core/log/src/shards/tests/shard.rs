//! A shard whose messages are in flight for a while, and may be lost with their sender.

use super::{Bug, World};
use crate::Error;
use crate::acceptor::{Acceptor, EpochHistory};
use crate::record::Signal;
use crate::shards::{Message, Parts, Shard};
use crate::testing::Writer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegraph_platform::Random;
use tidegraph_types::{Epoch, ShardId, Version};

/// A shard as one sequencer has opened it. Its messages arrive later.
pub(super) struct TestShard {
    world: Arc<World>,
    writer: u64,
    shard: u16,
    inner: Writer,
    prepared: Vec<Message>,
    /// A fence that has not been sent yet: a planted defect.
    owed: Vec<Message>,
    acknowledges_early: bool,
    /// Where the shard ends, as if all of its records had one epoch: a planted defect.
    end: EpochHistory,
    /// Number of messages that were sent since the last `confirm`, without marks.
    sent: usize,
}

impl TestShard {
    pub fn new(world: Arc<World>, writer: Epoch, shard: ShardId) -> Result<Self, Error> {
        let inner = world.log.shard(shard).writer()?;
        let (prepared, owed, end) = (Vec::new(), Vec::new(), EpochHistory::default());
        let (writer, shard) = (writer.0, shard.0);
        Ok(Self { world, writer, shard, inner, prepared, owed, acknowledges_early: false, end, sent: 0 })
    }
}

fn died() -> Error {
    Error::poisoned("it died")
}

impl TestShard {
    /// Ends the sequencer. Its messages in flight from some message on may be lost.
    fn die(&self) -> Error {
        for ((writer, _), messages) in self.world.under_way.lock().iter_mut() {
            if *writer == self.writer && self.world.random.one_in(2) {
                let kept = self.world.random.below(messages.len() as u64 + 1) as usize;
                messages.truncate(kept);
            }
        }
        died()
    }

    fn has_under_way(&self) -> bool {
        let under_way = self.world.under_way.lock();
        under_way.get(&(self.writer, self.shard)).is_some_and(|messages| !messages.is_empty())
    }
}

impl Shard for TestShard {
    fn acceptor(&self) -> &Acceptor {
        self.inner.acceptor()
    }

    fn history(&self) -> &EpochHistory {
        if self.world.bug == Some(Bug::LowestEnd) { &self.end } else { self.inner.history() }
    }

    fn prepare(&mut self, messages: &[Message]) -> Result<(), Error> {
        self.prepared = messages.to_vec();
        self.acknowledges_early = self.world.bug == Some(Bug::AcknowledgeEarly)
            && self.shard > 0
            && matches!(messages.first(), Some(Message::Part { .. }));
        if self.world.bug == Some(Bug::FenceLate) {
            let is_fence =
                |message: &Message| matches!(message, Message::Signal { signal: Signal::Fence, .. });
            if self.prepared.iter().any(is_fence) {
                self.owed = std::mem::take(&mut self.prepared);
            } else {
                self.prepared.splice(0..0, self.owed.drain(..));
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        for message in std::mem::take(&mut self.prepared) {
            if self.world.strikes(60) {
                return Err(self.die());
            }
            let key = (self.writer, self.shard);
            self.world.under_way.lock().entry(key).or_default().push_back(message);
            self.sent += 1;
            self.world.meanwhile();
        }
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), Error> {
        if self.acknowledges_early {
            return Ok(());
        }
        while self.has_under_way() {
            if self.world.strikes(60) {
                return Err(self.die());
            }
            if self.world.is_calm() {
                self.world.deliver();
            }
            self.world.meanwhile();
        }
        // All messages of this writer have arrived. Reading back ends at the last of them.
        let mine = |message: &Message| {
            let head = message.head();
            head.epoch.0 == self.writer && head.signal != Some(Signal::Mark)
        };
        let from = self.inner.next_number();
        let sent: Vec<usize> = self
            .world
            .log
            .shard(ShardId(self.shard))
            .messages(from)
            .iter()
            .filter(|(_, message)| mine(message))
            .map(|(number, _)| *number)
            .collect();
        if sent.len() < std::mem::take(&mut self.sent) {
            // Another writer trimmed the log beyond them.
            return Err(Error::poisoned("what was written could not be read back"));
        }
        let Some(last) = sent.last() else { return Ok(()) };
        let mut passed = 0;
        let before = self.inner.acceptor().tail();
        let read = self.inner.read_up_to(last + 1, |number, counts| {
            passed += usize::from(!counts && sent.contains(&number));
        });
        match read {
            // Another writer trimmed messages that this one has not read.
            Err(Error::Missing { .. }) => return Err(died()),
            read => read?,
        }
        if before.is_some_and(|tail| self.inner.history().epoch_at(tail.version) != Some(tail.epoch)) {
            self.world.replaced.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(tail) = self.inner.acceptor().tail() {
            self.end = EpochHistory::default();
            self.end.note(Version(1), Epoch(1));
            self.end.note(tail.version, Epoch(1));
        }
        self.world.meanwhile();
        if passed > 0 {
            return Err(Error::poisoned("another sequencer has written to the log"));
        }
        Ok(())
    }

    fn mark(&mut self, epoch: Epoch, complete: Version) {
        let mark = Message::Signal { signal: Signal::Mark, epoch, complete };
        if !self.world.strikes(4) {
            let key = (self.writer, self.shard);
            self.world.under_way.lock().entry(key).or_default().push_back(mark);
        }
    }

    fn lost_a_mark(&self) -> bool {
        false
    }

    fn read(&mut self, from: Version, last: Version) -> Result<Parts<'_>, Error> {
        self.inner.read(from, last)
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        self.inner.trim(below)
    }

    fn first(&self) -> Option<Version> {
        self.inner.first()
    }

    fn bytes(&self) -> u64 {
        0
    }
}
