//! Shards in memory that several share as they would share a topic in Kafka: for tests and simulations.
//!
//! A shard keeps all messages that arrive; what counts each reader and writer decides by itself, as with the real one.

use super::{Message, Part, Parts, Shard, ShardedLog};
use crate::record::Signal;
use crate::sight::{Following, Head, History, Rule, Seen, Sight};
use crate::{Error, Follower, Position, Record};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::{Epoch, ShardId, Sharding, Version};

/// A log of several shards that several handles write and read.
#[derive(Clone, Debug)]
pub struct SharedShards {
    sharding: Sharding,
    shards: Vec<SharedShard>,
}

/// One of its shards.
#[derive(Clone, Debug)]
pub struct SharedShard(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    shard: ShardId,
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Message>,
    /// Number of the oldest message that is there.
    low: usize,
    away: bool,
}

impl SharedShards {
    /// An empty log.
    #[must_use]
    pub fn new(sharding: Sharding) -> Self {
        let shard = |shard| Shared { shard, state: Mutex::default(), grown: Condvar::new() };
        let shards = sharding.all().map(|number| SharedShard(Arc::new(shard(number)))).collect();
        Self { sharding, shards }
    }

    /// Opens it to write, under an epoch that nobody else has.
    pub fn open(&self, epoch: Epoch) -> Result<ShardedLog, Error> {
        let shards = self.shards.iter().map(|shard| shard.open());
        ShardedLog::open(shards.collect::<Result<_, Error>>()?, self.sharding, epoch)
    }

    /// Follows a shard from behind a position on.
    #[must_use]
    pub fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        let shard = self.shards[usize::from(shard.0)].clone();
        Box::new(SharedFollower { shard, at: after, reading: None })
    }

    /// One of the shards.
    #[must_use]
    pub fn shard(&self, shard: ShardId) -> &SharedShard {
        &self.shards[usize::from(shard.0)]
    }

    /// Forgets what is below a complete version.
    pub fn trim(&self, below: Version) -> Result<(), Error> {
        self.shards.iter().try_for_each(|shard| shard.writer()?.trim(below))
    }

    /// Whether any of them answers.
    pub fn set_away(&self, away: bool) {
        self.shards.iter().for_each(|shard| shard.set_away(away));
    }
}

impl SharedShard {
    /// Whether it answers: a shard that is away refuses to be written, and gives nothing to those who follow it.
    pub fn set_away(&self, away: bool) {
        self.0.state.lock().away = away;
        self.0.grown.notify_all();
    }

    /// How many messages arrived, also those that do not count or were trimmed.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.0.state.lock().end()
    }

    fn state(&self, what: &'static str) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.0.state.lock();
        if state.away {
            let reason = format!("shard {} does not answer, to be {what}", self.0.shard);
            return Err(Error::Poisoned { reason });
        }
        Ok(state)
    }

    /// Messages arrive, one right after the other; answers their numbers.
    pub(super) fn arrive(&self, messages: impl IntoIterator<Item = Message>) -> Range<usize> {
        let mut state = self.0.state.lock();
        let first = state.end();
        state.messages.extend(messages);
        self.0.grown.notify_all();
        first..state.end()
    }

    /// The messages from a number on, each with its number.
    pub(super) fn messages(&self, from: usize) -> Vec<(usize, Message)> {
        let state = self.0.state.lock();
        let numbered = (state.low..).zip(&state.messages).skip(from.saturating_sub(state.low));
        numbered.map(|(number, message)| (number, message.clone())).collect()
    }

    /// Number of the oldest message that is there.
    #[cfg(test)]
    pub(super) fn first_number(&self) -> Option<usize> {
        let state = self.0.state.lock();
        (!state.messages.is_empty()).then_some(state.low)
    }

    /// Opens it to write, with what it has read.
    pub(super) fn open(&self) -> Result<Box<dyn Shard>, Error> {
        Ok(Box::new(self.writer()?))
    }

    pub(super) fn writer(&self) -> Result<Writer, Error> {
        let (low, end) = {
            let state = self.state("opened")?;
            (state.low, state.end())
        };
        let mut writer = Writer {
            shard: self.clone(),
            sight: Sight::new(Rule::Several),
            history: History::default(),
            next: low,
            first: None,
            prepared: Vec::new(),
            sent: 0..0,
            lost_a_mark: false,
        };
        writer.read_up_to(end, |_, _| ())?;
        Ok(writer)
    }
}

impl State {
    fn end(&self) -> usize {
        self.low + self.messages.len()
    }
}

impl Message {
    /// What decides whether it counts.
    pub(crate) fn head(&self) -> Head {
        match self {
            Self::Signal { signal, epoch, complete } => {
                Head { version: Version(0), epoch: *epoch, complete: *complete, signal: Some(*signal) }
            }
            Self::Part { part: Part { record, .. }, complete } => {
                let Record { version, epoch, .. } = *record;
                Head { version, epoch, complete: *complete, signal: None }
            }
        }
    }
}

/// A shard, open to write.
pub(super) struct Writer {
    shard: SharedShard,
    sight: Sight,
    history: History,
    /// Number of the next message to be read.
    next: usize,
    first: Option<Version>,
    prepared: Vec<Message>,
    /// Numbers that what was sent got.
    sent: Range<usize>,
    lost_a_mark: bool,
}

impl Writer {
    fn damaged(&self, reason: String) -> Error {
        let (topic, partition) = ("memory".into(), self.shard.0.shard.0);
        Error::Damaged { topic, partition, offset: self.next as i64, reason }
    }

    /// Number of the next message to be read.
    #[cfg(test)]
    pub(super) fn next_number(&self) -> usize {
        self.next
    }

    /// Reads all messages below a number. `each` learns of every one whether it counts.
    pub(super) fn read_up_to(&mut self, end: usize, mut each: impl FnMut(usize, bool)) -> Result<(), Error> {
        for (number, message) in self.shard.messages(self.next) {
            if number > self.next {
                return Err(self.damaged(format!("the next message there is has number {number}")));
            }
            if number >= end {
                break;
            }
            let head = message.head();
            let seen = self.sight.take(head).map_err(|reason| self.damaged(reason))?;
            if matches!(seen, Seen::Next | Seen::Instead) {
                self.history.note(head.version, head.epoch);
                self.first = Some(self.first.map_or(head.version, |first| first.min(head.version)));
            }
            self.next = number + 1;
            each(number, seen != Seen::PassedOver);
        }
        Ok(())
    }
}

impl Shard for Writer {
    fn sight(&self) -> &Sight {
        &self.sight
    }

    fn history(&self) -> &History {
        &self.history
    }

    fn prepare(&mut self, messages: &[Message]) -> Result<(), Error> {
        self.prepared = messages.to_vec();
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        drop(self.shard.state("written")?);
        self.sent = self.shard.arrive(self.prepared.drain(..));
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), Error> {
        drop(self.shard.state("read")?);
        let (sent, mut counted) = (self.sent.clone(), 0);
        self.read_up_to(sent.end, |number, counts| {
            counted += usize::from(counts && sent.contains(&number));
        })?;
        if counted < sent.len() {
            return Err(Error::Poisoned { reason: "another sequencer has written to the log".into() });
        }
        Ok(())
    }

    fn mark(&mut self, epoch: Epoch, complete: Version) {
        self.lost_a_mark = match self.shard.state("written") {
            Ok(state) => {
                drop(state);
                self.shard.arrive([Message::Signal { signal: Signal::Mark, epoch, complete }]);
                false
            }
            Err(_) => true,
        };
    }

    fn lost_a_mark(&self) -> bool {
        self.lost_a_mark
    }

    fn read(&mut self, from: Version, last: Version) -> Result<Parts<'_>, Error> {
        let messages = self.shard.messages(0);
        // Another one may have trimmed since this one was opened.
        let there = messages.iter().map(|(_, message)| message.head()).find(|head| head.signal.is_none());
        if let Some(first) = there.map(|head| head.version).filter(|first| *first > from) {
            return Err(Error::Trimmed { requested: from, first });
        }
        let history = &self.history;
        let mut wanted = from;
        let parts = messages.into_iter().filter_map(move |(_, message)| {
            let Message::Part { part, .. } = message else { return None };
            let Record { version, epoch, .. } = part.record;
            if version != wanted || version > last || history.epoch_at(version) != Some(epoch) {
                return None;
            }
            wanted = wanted.next();
            Some(Ok(part))
        });
        Ok(Box::new(parts))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        let mut state = self.shard.state("trimmed")?;
        let kept = |message: &Message| {
            let head = message.head();
            head.version == below && self.history.epoch_at(below) == Some(head.epoch)
        };
        if let Some(gone) = state.messages.iter().position(kept) {
            state.messages.drain(..gone);
            state.low += gone;
            drop(state);
            self.history.forget(below);
            self.first = Some(below);
        }
        Ok(())
    }

    fn first(&self) -> Option<Version> {
        self.first
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// Follows a shard.
struct SharedFollower {
    shard: SharedShard,
    at: Position,
    /// What was read, and the number of the next message.
    reading: Option<(Following, usize)>,
}

/// Where to begin to read behind a position: what follows it, and the number of a message up to the next record's.
pub(super) fn begin(shard: &SharedShard, at: Position) -> Result<Option<(Following, usize)>, Error> {
    let messages = shard.messages(0);
    let Some((number, first)) = messages.iter().find(|(_, message)| message.head().signal.is_none()) else {
        return Ok(None);
    };
    let (wanted, first) = (at.version.next(), first.head().version);
    if wanted < first {
        return Err(Error::Trimmed { requested: wanted, first });
    }
    if at.version < first {
        let low = messages.first().map_or(0, |(number, _)| *number);
        return Ok(Some((Following::from_start(Rule::Several, at), low)));
    }
    let ahead = (wanted.0 - first.0) as usize;
    let number = (number + ahead).min(messages.last().map_or(0, |(number, _)| number + 1));
    Ok(Some((Following::behind(Rule::Several, at), number)))
}

impl SharedFollower {
    /// Reads what has arrived.
    fn read(&mut self) -> Result<Option<Record>, Error> {
        if self.shard.0.state.lock().away {
            return Ok(None);
        }
        if self.reading.is_none() {
            self.reading = begin(&self.shard, self.at)?;
        }
        let Some((following, next)) = &mut self.reading else { return Ok(None) };
        if let Some(record) = following.next() {
            self.at = following.at();
            return Ok(Some(record));
        }
        let (low, arrived) = {
            let state = self.shard.0.state.lock();
            (state.low, state.end())
        };
        if *next < low {
            let first = self.shard.messages(low).first().map_or(Version(0), |(_, m)| m.head().version);
            self.reading = None;
            return Err(Error::Trimmed { requested: self.at.version.next(), first });
        }
        if *next >= arrived {
            return Ok(None);
        }
        for (number, message) in self.shard.messages(*next) {
            let (topic, partition, offset) = ("memory".into(), self.shard.0.shard.0, number as i64);
            let damaged = |reason| Error::Damaged { topic, partition, offset, reason };
            let head = message.head();
            following.take(head, damaged, || match message {
                Message::Part { part, .. } => Ok(part.record),
                Message::Signal { .. } => {
                    Err(Error::Disagree { version: head.version, reason: "a signal has no record".into() })
                }
            })?;
            *next = number + 1;
        }
        let record = following.next();
        self.at = following.at();
        Ok(record)
    }
}

impl Follower for SharedFollower {
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, Error> {
        let before = self.shard.arrived();
        if let Some(record) = self.read()? {
            return Ok(Some(record));
        }
        {
            let mut state = self.shard.0.state.lock();
            if state.away || state.end() == before {
                self.shard.0.grown.wait_for(&mut state, at_most);
            }
        }
        self.read()
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        let next = self.reading.as_ref().map_or(0, |(_, next)| *next);
        Ok(self.shard.arrived().saturating_sub(next) as u64 <= within)
    }
}
