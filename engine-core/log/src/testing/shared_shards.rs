//! Shards in memory that several writers share, as processes share a topic in Kafka.
//!
//! A shard keeps all messages that arrive. Each reader and writer decides by itself which of them count, as with Kafka.
//! A [`Carrier`] stands for the network between a process and the shards.

use crate::acceptor::{Acceptor, EpochHistory, FollowerState, Layout, MessageHead, Verdict};
use crate::error::cause;
use crate::record::Signal;
use crate::shards::{Message, Part, Parts, Shard, ShardedLog, merge};
use crate::{Details, Error, Follower, LogBackend, LogStore, Position, Record};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
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

/// One of its shards, as one process reaches it.
#[derive(Clone, Debug)]
pub struct SharedShard(Arc<Shared>, Option<Arc<dyn Carrier>>);

/// Decides what becomes of the messages that a process sends to shards.
pub trait Carrier: Send + Sync + std::fmt::Debug {
    /// Decides about some messages to a shard, which were sent together.
    fn carry(&self, shard: ShardId, messages: usize) -> Delivery;
}

/// What becomes of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// All of them arrive.
    Arrive,
    /// All of them arrive, but the sender does not learn it.
    Unanswered,
    /// This many of them arrive, and the sender does not learn which.
    Part(usize),
    /// They arrive when [`SharedShard::deliver`] is called with this number. The sender learns nothing.
    Late(u64),
    /// All of them arrive, and once more when [`SharedShard::deliver`] is called with this number.
    Twice(u64),
}

#[derive(Debug)]
struct Shared {
    shard: ShardId,
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Message>,
    /// Number of the oldest message that was not trimmed.
    low: usize,
    away: bool,
    /// Messages that are late, by their numbers.
    late: BTreeMap<u64, Vec<Message>>,
}

impl SharedShards {
    /// An empty log.
    #[must_use]
    pub fn new(sharding: Sharding) -> Self {
        let shard = |shard| Shared { shard, state: Mutex::default(), grown: Condvar::new() };
        let shards = sharding.all().map(|number| SharedShard(Arc::new(shard(number)), None)).collect();
        Self { sharding, shards }
    }

    /// Returns the log as a process reaches it through `carrier`.
    #[must_use]
    pub fn through(&self, carrier: &Arc<dyn Carrier>) -> Self {
        let shards = self.shards.iter().map(|shard| SharedShard(shard.0.clone(), Some(carrier.clone())));
        Self { sharding: self.sharding, shards: shards.collect() }
    }

    /// Returns an observer, which has seen nothing yet.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a shard is away, [`Error::Damaged`] if its messages contradict each other.
    pub fn observe(&self) -> Result<ShardsObserver, Error> {
        let writers = self.shards.iter().map(SharedShard::writer).collect::<Result<Vec<_>, _>>()?;
        let first = writers.iter().filter_map(|writer| writer.first).max();
        let from = vec![0; writers.len()];
        Ok(ShardsObserver { writers, from, next: first.unwrap_or(Version(1)) })
    }

    /// Opens all shards for writing, under an epoch that no other writer has.
    ///
    /// # Errors
    /// [`Error::Behind`] if the log has this epoch already, or a higher one; [`Error::Poisoned`] if a shard is away or
    /// another writer took over meanwhile.
    pub fn open(&self, epoch: Epoch) -> Result<ShardedLog, Error> {
        let shards = self.shards.iter().map(|shard| shard.open());
        ShardedLog::open(shards.collect::<Result<_, Error>>()?, self.sharding, epoch)
    }

    /// All shards, in order.
    #[must_use]
    pub fn shards(&self) -> &[SharedShard] {
        &self.shards
    }

    /// One of the shards.
    #[must_use]
    pub fn shard(&self, shard: ShardId) -> &SharedShard {
        &self.shards[usize::from(shard.0)]
    }

    /// Deletes versions below a complete one.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a shard is away.
    pub fn trim(&self, below: Version) -> Result<(), Error> {
        self.shards.iter().try_for_each(|shard| shard.writer()?.trim(below))
    }

    /// Makes all shards stop answering, or answer again.
    pub fn set_away(&self, away: bool) {
        self.shards.iter().for_each(|shard| shard.set_away(away));
    }
}

impl LogBackend for SharedShards {
    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, Error> {
        Ok(Box::new(SharedShards::open(self, epoch)?))
    }

    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        let shard = self.shards[usize::from(shard.0)].clone();
        Box::new(SharedFollower { shard, at: after, reading: None, details: BTreeMap::new(), last: None })
    }
}

/// Sees which records all shards have, whether or not the shards say so already. Once all shards have a record of the
/// same epoch, no later sequencer replaces it (ADR 0013).
pub struct ShardsObserver {
    writers: Vec<Writer>,
    /// Number of the message of each shard from which on the next record is searched.
    from: Vec<usize>,
    next: Version,
}

impl std::fmt::Debug for ShardsObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardsObserver").field("next", &self.next).finish_non_exhaustive()
    }
}

impl ShardsObserver {
    /// Returns the records that all shards have since the last call. Call it before the log is trimmed.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Missing`] if messages of a shard contradict each other or are gone,
    /// [`Error::Disagree`] if the shards do.
    pub fn look(&mut self) -> Result<Vec<Record>, Error> {
        for writer in &mut self.writers {
            let end = writer.shard.arrived();
            writer.read_up_to(end, |_, _| ())?;
        }
        let histories: Vec<&EpochHistory> = self.writers.iter().map(|writer| &writer.history).collect();
        let Some(last) = EpochHistory::common(&histories).filter(|tail| tail.version >= self.next) else {
            return Ok(vec![]);
        };
        let mut all: Vec<Parts<'_>> = Vec::new();
        for (writer, from) in self.writers.iter().zip(&mut self.from) {
            let (mut wanted, mut parts) = (self.next, Vec::new());
            for (number, message) in writer.shard.messages(*from) {
                let Message::Part { part, .. } = message else { continue };
                let Record { version, epoch, .. } = part.record;
                if version == wanted
                    && version <= last.version
                    && writer.history.epoch_at(version) == Some(epoch)
                {
                    (wanted, *from) = (wanted.next(), number + 1);
                    parts.push(Ok(part));
                }
            }
            all.push(Box::new(parts.into_iter()));
        }
        let records = merge(all, self.next, last.version).collect::<Result<Vec<_>, _>>()?;
        self.next = last.version.next();
        Ok(records)
    }
}

impl SharedShard {
    /// Lets late messages arrive.
    pub fn deliver(&self, number: u64) {
        let late = self.0.state.lock().late.remove(&number);
        self.arrive(late.unwrap_or_default());
    }

    /// Sends messages, through the carrier if there is one. Returns their numbers.
    fn send(&self, messages: Vec<Message>) -> Result<Range<usize>, Error> {
        let Some(carrier) = &self.1 else { return Ok(self.arrive(messages)) };
        let unknown = || Error::poisoned("it is not known whether the shard has the messages");
        let mut messages = messages;
        match carrier.carry(self.0.shard, messages.len()) {
            Delivery::Arrive => return Ok(self.arrive(messages)),
            Delivery::Twice(number) => {
                self.0.state.lock().late.insert(number, messages.clone());
                return Ok(self.arrive(messages));
            }
            Delivery::Late(number) => {
                self.0.state.lock().late.insert(number, messages);
            }
            Delivery::Unanswered => {
                self.arrive(messages);
            }
            Delivery::Part(count) => {
                messages.truncate(count);
                self.arrive(messages);
            }
        }
        Err(unknown())
    }

    /// Makes the shard stop answering, or answer again. A shard that is away refuses appends and gives followers
    /// nothing.
    pub fn set_away(&self, away: bool) {
        self.0.state.lock().away = away;
        self.0.grown.notify_all();
    }

    /// Number of messages that arrived, including those that do not count and those that were trimmed.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.0.state.lock().end()
    }

    fn state(&self, what: &'static str) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.0.state.lock();
        if state.away {
            let reason = format!("shard {} does not answer, to be {what}", self.0.shard);
            return Err(Error::poisoned(reason));
        }
        Ok(state)
    }

    /// Adds messages, one right after the other; returns their numbers.
    pub(crate) fn arrive(&self, messages: impl IntoIterator<Item = Message>) -> Range<usize> {
        let mut state = self.0.state.lock();
        let first = state.end();
        state.messages.extend(messages);
        self.0.grown.notify_all();
        first..state.end()
    }

    /// The messages from number `from` on, each with its number.
    pub(crate) fn messages(&self, from: usize) -> Vec<(usize, Message)> {
        let state = self.0.state.lock();
        let numbered = (state.low..).zip(&state.messages).skip(from.saturating_sub(state.low));
        numbered.map(|(number, message)| (number, message.clone())).collect()
    }

    /// Number of the oldest message that was not trimmed.
    #[cfg(test)]
    pub(crate) fn first_number(&self) -> Option<usize> {
        let state = self.0.state.lock();
        (!state.messages.is_empty()).then_some(state.low)
    }

    /// Opens the shard for writing, and reads what it has.
    pub(crate) fn open(&self) -> Result<Box<dyn Shard>, Error> {
        Ok(Box::new(self.writer()?))
    }

    pub(crate) fn writer(&self) -> Result<Writer, Error> {
        let (low, end) = {
            let state = self.state("opened")?;
            (state.low, state.end())
        };
        let mut writer = Writer {
            shard: self.clone(),
            acceptor: Acceptor::new(Layout::Sharded),
            history: EpochHistory::default(),
            next: low,
            first: None,
            prepared: Vec::new(),
            sent: Ok(0..0),
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
    /// The part of the message that decides whether it counts.
    pub(crate) fn head(&self) -> MessageHead {
        match self {
            Self::Signal { signal, epoch, complete } => {
                MessageHead { version: Version(0), epoch: *epoch, complete: *complete, signal: Some(*signal) }
            }
            Self::Part { part: Part { record, .. }, complete } => {
                let Record { version, epoch, .. } = *record;
                MessageHead { version, epoch, complete: *complete, signal: None }
            }
        }
    }
}

/// A shard, open for writing.
pub(crate) struct Writer {
    shard: SharedShard,
    acceptor: Acceptor,
    history: EpochHistory,
    /// Number of the next message to be read.
    next: usize,
    first: Option<Version>,
    prepared: Vec<Message>,
    /// Numbers of the messages sent last, or why it is not known whether they arrived.
    sent: Result<Range<usize>, Error>,
    lost_a_mark: bool,
}

impl Writer {
    fn damaged(&self, reason: String) -> Error {
        let (topic, partition) = ("memory".into(), self.shard.0.shard.0);
        Error::Damaged { topic, partition, offset: self.next as i64, reason: cause(reason) }
    }

    /// Number of the next message to be read.
    #[cfg(test)]
    pub(crate) fn next_number(&self) -> usize {
        self.next
    }

    /// Reads all messages below number `end`. `each` gets the number of every message and whether it counts.
    pub(crate) fn read_up_to(&mut self, end: usize, mut each: impl FnMut(usize, bool)) -> Result<(), Error> {
        for (number, message) in self.shard.messages(self.next) {
            if number > self.next {
                let (topic, partition) = ("memory".into(), self.shard.0.shard.0);
                return Err(Error::Missing {
                    topic,
                    partition,
                    offset: self.next as i64,
                    found: number as i64,
                });
            }
            if number >= end {
                break;
            }
            let head = message.head();
            let seen = self.acceptor.accept(head).map_err(|reason| self.damaged(reason))?;
            if matches!(seen, Verdict::Appended | Verdict::Replaced) {
                self.history.note(head.version, head.epoch);
                self.first = Some(self.first.map_or(head.version, |first| first.min(head.version)));
            }
            self.next = number + 1;
            each(number, seen != Verdict::Ignored);
        }
        Ok(())
    }
}

impl Shard for Writer {
    fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    fn history(&self) -> &EpochHistory {
        &self.history
    }

    fn prepare(&mut self, messages: &[Message]) -> Result<(), Error> {
        self.prepared = messages.to_vec();
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        drop(self.shard.state("written")?);
        // As with a broker, the sender learns the outcome only when it waits for it: the other shards get theirs, too.
        self.sent = self.shard.send(std::mem::take(&mut self.prepared));
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), Error> {
        drop(self.shard.state("read")?);
        let (sent, mut counted) = (std::mem::replace(&mut self.sent, Ok(0..0))?, 0);
        self.read_up_to(sent.end, |number, counts| {
            counted += usize::from(counts && sent.contains(&number));
        })?;
        if counted < sent.len() {
            return Err(Error::poisoned("another sequencer has written to the log"));
        }
        Ok(())
    }

    fn mark(&mut self, epoch: Epoch, complete: Version) {
        self.lost_a_mark = match self.shard.state("written") {
            Ok(state) => {
                drop(state);
                self.shard.send(vec![Message::Signal { signal: Signal::Mark, epoch, complete }]).is_err()
            }
            Err(_) => true,
        };
    }

    fn lost_a_mark(&self) -> bool {
        self.lost_a_mark
    }

    fn read(&mut self, from: Version, last: Version) -> Result<Parts<'_>, Error> {
        let messages = self.shard.messages(0);
        // Another writer may have trimmed the shard since this one opened it.
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

/// Follows one shard.
struct SharedFollower {
    shard: SharedShard,
    at: Position,
    /// State of the reader, and the number of the next message.
    reading: Option<(FollowerState, usize)>,
    /// Details of the records that were read and not handed out.
    details: BTreeMap<Version, Details>,
    /// Details of the record that was handed out last.
    last: Option<Details>,
}

/// Where to start reading behind a position: the state of the reader, and the number of a message that is not after
/// the next record.
pub(crate) fn begin(shard: &SharedShard, at: Position) -> Result<Option<(FollowerState, usize)>, Error> {
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
        return Ok(Some((FollowerState::from_start(Layout::Sharded, at), low)));
    }
    let ahead = (wanted.0 - first.0) as usize;
    let number = (number + ahead).min(messages.last().map_or(0, |(number, _)| number + 1));
    Ok(Some((FollowerState::behind(Layout::Sharded, at), number)))
}

impl SharedFollower {
    /// Returns the next complete record among the messages that have arrived.
    fn read(&mut self) -> Result<Option<Record>, Error> {
        let record = self.read_record()?;
        if let Some(record) = &record {
            self.last = self.details.remove(&record.version);
        }
        Ok(record)
    }

    fn read_record(&mut self) -> Result<Option<Record>, Error> {
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
            let damaged = |reason: String| {
                let reason = cause(reason);
                Error::Damaged { topic, partition, offset, reason }
            };
            let head = message.head();
            let details = &mut self.details;
            following.accept(head, damaged, || match message {
                Message::Part { part, .. } => {
                    details.insert(head.version, Details { written_ms: None, places: part.places });
                    Ok(part.record)
                }
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

    fn details(&self) -> Option<&Details> {
        self.last.as_ref()
    }
}
