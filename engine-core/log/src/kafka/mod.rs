//! The log of a fleet: a Kafka topic for each graph, a partition for each shard, a message for each record.
//!
//! Kafka replicates records and makes them durable: all replicas in sync acknowledge a write. This module decides which
//! messages count, because a deposed sequencer may go on writing for a while. Every reader goes through a partition in
//! order of offset and accepts a message if it has the version after the last accepted one, and no lower epoch
//! (`acceptor.rs`, LOG-1). A message that does not fit came from a writer that did not know of others' writes. So all
//! readers agree about the log, whenever they read it.
//!
//! Flow of an append: send all records → all replicas in sync have them → if their offsets come right after the
//! last message that was read, nobody else has written; if not, read the partition up to the last of them →
//! acknowledge if every one of them counts. So a deposed sequencer acknowledges nothing, however late it learns that it
//! was deposed. With several shards there is one such log for each (`shard.rs`), and `ShardedLog` over them.
//!
//! Flow of opening: read the retained messages once, and note the offsets of versions. `trim` deletes what a checkpoint
//! holds, so this reads about as much as recovery replays.
//!
//! What must never happen: an acknowledgement before every message before the record is known; a message that one
//! reader ignores and another accepts; retention by time or size on the topic ([`create_topic`] turns it off).

mod backend;
mod broker;
mod follower;
mod latency;
mod login;
#[cfg(feature = "msk-iam")]
mod msk_iam;
mod reading;
mod shard;
#[cfg(test)]
mod tests;
mod topic;

use crate::acceptor::{Acceptor, EpochHistory, Verdict};
use crate::error::cause;
use crate::record;
use crate::store::{Records, check_all, end_of};
use crate::{Cause, Error, KafkaOptions, LogStore, Record, Tail};
pub(crate) use backend::KafkaBackend;
use broker::{Broker, Deliveries};
pub use follower::KafkaFollower;
pub use latency::write_latency;
#[cfg(feature = "msk-iam")]
pub use msk_iam::MskIam;
use rdkafka::Message;
use rdkafka::producer::{Producer, ThreadedProducer};
use reading::{Mark, Messages, Read};
use std::time::Duration;
use tidegraph_types::{ShardId, Version};
pub use topic::{create_topic, delete_topic};
pub(crate) use topic::{delete_topic_if_exists, is_new};

/// How long one poll of the broker waits. Bounds how late a caller notices its own timeout.
const POLL: Duration = Duration::from_millis(200);

/// How long to wait when the client's queue is full.
const FULL: Duration = Duration::from_millis(5);

/// A shard of the log in a partition of a Kafka topic.
pub struct KafkaLog {
    broker: Broker,
    producer: ThreadedProducer<Deliveries>,
    state: ReadState,
    /// Payloads to send next.
    prepared: Vec<Vec<u8>>,
    /// Payloads of marks that were sent and not yet read.
    marked: Vec<Vec<u8>>,
    /// Offset of the next message.
    next: i64,
    poisoned: Option<Cause>,
}

/// The state of the log after the messages below an offset.
#[derive(Debug)]
struct ReadState {
    acceptor: Acceptor,
    history: EpochHistory,
    /// Offsets of some versions, in order. The first one is the oldest version that can be read.
    marks: Vec<Mark>,
    bytes: u64,
}

impl ReadState {
    /// Processes the next message; returns whether it counts.
    fn accept(&mut self, broker: &Broker, offset: i64, payload: &[u8]) -> Result<bool, Error> {
        let head = broker.head(offset, payload)?;
        let (version, epoch) = (head.version, head.epoch);
        let seen = self.acceptor.accept(head).map_err(|reason| broker.damaged(offset, reason))?;
        if seen == Verdict::Replaced {
            self.marks.retain(|mark| mark.version < version);
        }
        if matches!(seen, Verdict::Appended | Verdict::Replaced) {
            self.bytes += payload.len() as u64;
            self.history.note(version, epoch);
            if version.0.is_multiple_of(broker.options.mark_every) || self.marks.is_empty() {
                self.marks.push(Mark { version, offset });
            }
        } else if seen == Verdict::Ignored {
            tracing::info!(offset, %version, %epoch, "ignored a message from a writer that did not know the tail");
        }
        Ok(seen != Verdict::Ignored)
    }
}

impl std::fmt::Debug for KafkaLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaLog")
            .field("broker", &self.broker)
            .field("tail", &self.state.acceptor.tail())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl KafkaLog {
    /// Opens the one shard of a topic that exists, and reads the retained messages.
    ///
    /// A writer has raised the epoch before. From its first record on, no writer with a lower epoch gets a record into
    /// the log.
    ///
    /// # Errors
    /// [`Error::Broker`] if Kafka does not answer; [`Error::Damaged`] or [`Error::Missing`] if a message is not a
    /// record of this log, or is gone.
    pub fn open(options: KafkaOptions, shard: ShardId) -> Result<Self, Error> {
        Self::read(Broker::new(options, shard))
    }

    fn read(broker: Broker) -> Result<Self, Error> {
        let (low, high) = broker.watermarks()?;
        let producer = broker.producer()?;
        let acceptor = Acceptor::new(broker.layout);
        let mut log = Self {
            broker,
            producer,
            state: ReadState { acceptor, history: EpochHistory::default(), marks: Vec::new(), bytes: 0 },
            prepared: Vec::new(),
            marked: Vec::new(),
            next: low,
            poisoned: None,
        };
        log.read_up_to(high, |_, _| ())?;
        tracing::debug!(?log, first = ?log.first(), "opened");
        Ok(log)
    }

    /// Reads all messages below offset `end`. `each` gets the payload of every message and whether it counts.
    fn read_up_to(&mut self, end: i64, mut each: impl FnMut(&[u8], bool)) -> Result<(), Error> {
        self.marked.clear();
        if end <= self.next {
            return Ok(());
        }
        // Dropped afterwards: otherwise it would continue to fetch everything that is written.
        let consumer = self.broker.consumer(self.next)?;
        let mut messages = Messages::new(&self.broker, &consumer, self.next, end);
        while let Some(message) = messages.next()? {
            let (offset, payload) = (message.offset(), message.payload().unwrap_or_default());
            each(payload, self.state.accept(&self.broker, offset, payload)?);
        }
        self.next = messages.next_offset();
        Ok(())
    }

    /// Processes the sent messages without reading them, if their offsets come right after the last message that was
    /// read: then no other process wrote in between. Returns `None` if they do not, and otherwise whether all of them
    /// count.
    fn accept_sent(&mut self, sent: &[Vec<u8>], offsets: &[i64]) -> Result<Option<bool>, Error> {
        let marked = self.producer.context().take_marks();
        let follow = marked.len() == self.marked.len()
            && marked.iter().chain(offsets).zip(self.next..).all(|(offset, expected)| *offset == expected);
        if !follow {
            return Ok(None);
        }
        let mut all = true;
        for payload in std::mem::take(&mut self.marked) {
            self.state.accept(&self.broker, self.next, &payload)?;
            self.next += 1;
        }
        for payload in sent {
            all &= self.state.accept(&self.broker, self.next, payload)?;
            self.next += 1;
        }
        Ok(Some(all))
    }

    /// Takes payloads to send together; none of them if one is too long.
    fn prepare_all(
        &mut self,
        payloads: impl Iterator<Item = (Version, Result<Vec<u8>, tidegraph_wire::Error>)>,
    ) -> Result<(), Error> {
        let most = self.broker.options.most_record_bytes;
        let checked = payloads.map(|(version, payload)| {
            let payload = payload.and_then(|payload| {
                if payload.len() > most {
                    let (length, max) = (payload.len() as u64, most as u64);
                    return Err(tidegraph_wire::Error::TooLong { offset: 0, length, max });
                }
                Ok(payload)
            });
            payload.map_err(|source| Error::Encode { version, source })
        });
        self.prepared = checked.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Starts to send the prepared payloads.
    fn begin_to_send(&mut self) -> Result<(), Sent> {
        let clock = &*self.broker.options.clock;
        let end = clock.now() + self.broker.options.timeout * 2;
        self.producer.context().begin(self.prepared.len());
        for (index, payload) in self.prepared.iter().enumerate() {
            while let Err(error) = self.broker.send(&self.producer, index, payload) {
                let is_full = error.rdkafka_error_code() == Some(rdkafka::types::RDKafkaErrorCode::QueueFull);
                if !is_full && index == 0 {
                    return Err(Sent::Nothing(cause(error)));
                }
                if !is_full || clock.now() > end {
                    return Err(Sent::Perhaps(cause(error)));
                }
                clock.sleep(FULL);
            }
        }
        Ok(())
    }

    /// Waits until the sent messages are durable; returns their offsets.
    fn sent(&self) -> Result<Vec<i64>, Cause> {
        let clock = &*self.broker.options.clock;
        // Kafka gives up by itself before this.
        let end = clock.now() + self.broker.options.timeout * 2;
        let deliveries = self.producer.context();
        while !deliveries.wait(POLL) {
            if clock.now() > end {
                return Err(cause("the broker does not answer"));
            }
        }
        deliveries.take()
    }

    /// Waits until the sent messages are durable, and checks that all of them count.
    fn confirm_sent(&mut self) -> Result<(), Error> {
        let sent = std::mem::take(&mut self.prepared);
        let offsets = self.sent().map_err(|reason| self.poison(reason))?;
        let all = match self.accept_sent(&sent, &offsets) {
            Ok(Some(all)) => Ok(all),
            Ok(None) => self.read_back(&sent, &offsets),
            Err(error) => Err(error),
        };
        match all {
            Ok(true) => Ok(()),
            Ok(false) => {
                let tail = self.state.acceptor.tail().map_or_else(String::new, |tail| {
                    format!(", which is now at version {} of epoch {}", tail.version, tail.epoch)
                });
                Err(self.poison(cause(format!("another sequencer has written to the log{tail}"))))
            }
            Err(error) => {
                tracing::warn!(%error, "records that were sent could not be read back");
                Err(self.poison(cause(error)))
            }
        }
    }

    /// Reads the sent messages and those before them; returns whether all that were sent count.
    fn read_back(&mut self, sent: &[Vec<u8>], offsets: &[i64]) -> Result<bool, Error> {
        let is_known = offsets.iter().all(|offset| *offset >= 0);
        let end = match offsets.iter().max() {
            Some(last) if is_known => last + 1,
            // The client sent a message again because an answer was lost: the broker has it and does not say where.
            _ => self.broker.watermarks()?.1,
        };
        let mut counted = 0;
        self.read_up_to(end, |payload, counts| {
            counted += usize::from(counts && sent.iter().any(|sent| sent == payload));
        })?;
        Ok(counted == sent.len())
    }

    /// The parts of records from version `from` to version `last`, both of which exist.
    fn parts(&self, from: Version, last: Version) -> Result<Read<'_>, Error> {
        let after = self.state.marks.partition_point(|mark| mark.version <= from);
        let first = || Error::Trimmed { requested: from, first: self.first().unwrap_or_default() };
        let mark = *after.checked_sub(1).and_then(|at| self.state.marks.get(at)).ok_or_else(first)?;
        Read::new(&self.broker, &self.state.history, mark, from, last)
    }

    /// Deletes messages before a version that counts; some of them may stay.
    fn forget(&mut self, below: Version) -> Result<(), Error> {
        let keep = self.state.marks.partition_point(|mark| mark.version <= below).saturating_sub(1);
        if keep > 0 {
            // Somebody may have changed the topic since it was opened.
            topic::check_settings(&self.broker, self.broker.topic()?.replicas)?;
            self.broker.delete_before(self.state.marks[keep].offset)?;
            self.state.history.forget(self.state.marks[keep].version);
            self.state.marks.drain(..keep);
        }
        Ok(())
    }

    fn poison(&mut self, reason: Cause) -> Error {
        tracing::error!(%reason, "the log takes no more records");
        self.poisoned = Some(reason.clone());
        Error::Poisoned { reason }
    }
}

/// How sending failed: no record was sent, or some may have been.
enum Sent {
    Nothing(Cause),
    Perhaps(Cause),
}

impl LogStore for KafkaLog {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        if records.is_empty() {
            return Ok(());
        }
        check_all(records, self.broker.shard, self.state.acceptor.tail())?;
        self.prepare_all(records.iter().map(|record| {
            let mut payload = Vec::new();
            (record.version, record::encode(record, 0, &mut payload).map(|()| payload))
        }))?;
        match self.begin_to_send() {
            Ok(()) => self.confirm_sent(),
            Err(Sent::Nothing(reason)) => Err(self.broker.error("write to", reason)),
            Err(Sent::Perhaps(reason)) => Err(self.poison(reason)),
        }
    }

    fn read_from(&mut self, version: Version) -> Result<Records<'_>, Error> {
        let Some(tail) = end_of(version, self.first(), self.state.acceptor.tail())? else {
            return Ok(Box::new(std::iter::empty()));
        };
        Ok(Box::new(self.parts(version, tail.version)?.map(|part| part.map(|part| part.record))))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        // The last record stays: it shows where the log ends.
        self.forget(below.min(self.state.acceptor.tail().map_or(Version(0), |tail| tail.version)))
    }

    fn tail(&self) -> Option<Tail> {
        self.state.acceptor.tail()
    }

    fn first(&self) -> Option<Version> {
        self.state.marks.first().map(|mark| mark.version)
    }

    fn bytes(&self) -> u64 {
        self.state.bytes
    }
}
