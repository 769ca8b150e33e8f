//! The log of a fleet: a Kafka topic for each graph, a partition of it for each shard, a message for each record.
//!
//! Replication and durability are Kafka's: a write is acknowledged by all replicas that are in sync. What is left to say
//! here is which messages count, because a sequencer that was deposed may go on writing for a while. Every reader goes
//! through a partition in order of offset and takes a message if it has the version after the last one that was taken,
//! and no lower epoch (`sight.rs`). What does not fit is what somebody wrote who did not know of others' writes.
//! So all readers agree on what the log says, whenever they read it.
//!
//! Flow of an append: send all records → all replicas in sync have them → if they stand right behind what was seen last, nobody
//! else has written; if not, read the partition up to the last of them → acknowledge if every one of them counts. So nobody who was
//! deposed acknowledges anything, however late he learns of it.
//! With several shards there is one such log for each (`shard.rs`), and `ShardedLog` over them.
//!
//! Flow of opening: read what is retained, once, and note at which offsets versions stand. What a checkpoint holds is
//! deleted by `trim`, so that this is about what recovery replays.
//!
//! What must never happen: an acknowledgement before it is known what stands before the record; a message skipped by one reader that
//! another one takes; retention by time or size on the topic ([`create_topic`] turns it off).

mod broker;
mod follower;
mod latency;
mod login;
#[cfg(feature = "msk-iam")]
mod msk_iam;
mod options;
mod reading;
mod shard;
#[cfg(test)]
mod tests;

use crate::record;
use crate::sight::{History, Seen, Sight};
use crate::store::{Records, check_all, end_of};
use crate::{Error, LogStore, Record, Tail};
use broker::{Broker, Deliveries};
pub use follower::KafkaFollower;
pub use latency::write_latency;
pub use login::{KafkaTls, Token, Tokens};
#[cfg(feature = "msk-iam")]
pub use msk_iam::MskIam;
pub use options::{KafkaOptions, NewTopic, check_topic, create_topic, delete_topic};
use rdkafka::Message;
use rdkafka::producer::{Producer, ThreadedProducer};
use reading::{Mark, Messages, Read};
pub use shard::open_log;
use std::time::Duration;
use tidegraph_types::{ShardId, Version};

/// How long one look at the broker waits: bounds how late we notice that our own time is over.
const LOOK: Duration = Duration::from_millis(200);

/// How long we wait when the client has all that it can keep.
const FULL: Duration = Duration::from_millis(5);

/// A shard of the log in a partition of a Kafka topic.
pub struct KafkaLog {
    broker: Broker,
    producer: ThreadedProducer<Deliveries>,
    known: Known,
    /// Payloads that are to be sent next.
    prepared: Vec<Vec<u8>>,
    /// Payloads of marks that were sent and not seen.
    marked: Vec<Vec<u8>>,
    /// Offset of the next message.
    next: i64,
    poisoned: Option<String>,
}

/// What the messages below an offset say.
#[derive(Debug)]
struct Known {
    sight: Sight,
    history: History,
    /// Where some versions stand, in order; the first one is the oldest that can be read.
    marks: Vec<Mark>,
    bytes: u64,
}

impl Known {
    /// Looks at the next message; answers whether it counts.
    fn see(&mut self, broker: &Broker, offset: i64, payload: &[u8]) -> Result<bool, Error> {
        let head = broker.head(offset, payload)?;
        let (version, epoch) = (head.version, head.epoch);
        let seen = self.sight.take(head).map_err(|reason| broker.damaged(offset, reason))?;
        if seen == Seen::Instead {
            self.marks.retain(|mark| mark.version < version);
        }
        if matches!(seen, Seen::Next | Seen::Instead) {
            self.bytes += payload.len() as u64;
            self.history.note(version, epoch);
            if version.0.is_multiple_of(broker.options.mark_every) || self.marks.is_empty() {
                self.marks.push(Mark { version, offset });
            }
        } else if seen == Seen::PassedOver {
            tracing::info!(offset, %version, %epoch, "passed over: written by who did not know the tail");
        }
        Ok(seen != Seen::PassedOver)
    }
}

impl std::fmt::Debug for KafkaLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaLog")
            .field("broker", &self.broker)
            .field("tail", &self.known.sight.tail())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl KafkaLog {
    /// Opens the one shard of a topic that exists, and reads what it retains.
    ///
    /// Whoever opens a log to write to it has raised the epoch before: from the first record of that epoch on, nobody
    /// with an older one gets anything into the log.
    pub fn open(options: KafkaOptions, shard: ShardId) -> Result<Self, Error> {
        Self::read(Broker::new(options, shard))
    }

    fn read(broker: Broker) -> Result<Self, Error> {
        let (low, high) = broker.watermarks()?;
        let producer = broker.producer()?;
        let sight = Sight::new(broker.rule);
        let mut log = Self {
            broker,
            producer,
            known: Known { sight, history: History::default(), marks: Vec::new(), bytes: 0 },
            prepared: Vec::new(),
            marked: Vec::new(),
            next: low,
            poisoned: None,
        };
        log.look_up_to(high, |_, _| ())?;
        tracing::debug!(?log, first = ?log.first(), "opened");
        Ok(log)
    }

    /// Reads all messages below an offset. `each` learns of every one whether it counts.
    fn look_up_to(&mut self, end: i64, mut each: impl FnMut(&[u8], bool)) -> Result<(), Error> {
        self.marked.clear();
        if end <= self.next {
            return Ok(());
        }
        // Gone afterwards: it would go on and fetch all that is written.
        let consumer = self.broker.consumer(self.next)?;
        let mut messages = Messages::new(&self.broker, &consumer, self.next, end);
        while let Some(message) = messages.next()? {
            let (offset, payload) = (message.offset(), message.payload().unwrap_or_default());
            each(payload, self.known.see(&self.broker, offset, payload)?);
        }
        self.next = messages.next_offset();
        Ok(())
    }

    /// Sees what was sent without reading it, if it stands right behind what was seen before: then there is nothing between that
    /// somebody else wrote. Answers whether it does, and whether all of it counts.
    fn see_sent(&mut self, sent: &[Vec<u8>], offsets: &[i64]) -> Result<Option<bool>, Error> {
        let marked = self.producer.context().take_marks();
        let follow = marked.len() == self.marked.len()
            && marked.iter().chain(offsets).zip(self.next..).all(|(offset, expected)| *offset == expected);
        if !follow {
            return Ok(None);
        }
        let mut all = true;
        for payload in std::mem::take(&mut self.marked) {
            self.known.see(&self.broker, self.next, &payload)?;
            self.next += 1;
        }
        for payload in sent {
            all &= self.known.see(&self.broker, self.next, payload)?;
            self.next += 1;
        }
        Ok(Some(all))
    }

    /// Takes payloads that are to be sent together; none of them if one is too long.
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

    /// Begins to send what was prepared.
    fn begin_to_send(&mut self) -> Result<(), Sent> {
        let clock = &*self.broker.options.clock;
        let end = clock.now() + self.broker.options.timeout * 2;
        self.producer.context().begin(self.prepared.len());
        for (index, payload) in self.prepared.iter().enumerate() {
            while let Err(error) = self.broker.send(&self.producer, index, payload) {
                let is_full = error.rdkafka_error_code() == Some(rdkafka::types::RDKafkaErrorCode::QueueFull);
                if !is_full && index == 0 {
                    return Err(Sent::Nothing(error.to_string()));
                }
                if !is_full || clock.now() > end {
                    return Err(Sent::Perhaps(error.to_string()));
                }
                clock.sleep(FULL);
            }
        }
        Ok(())
    }

    /// Waits until what was sent is durable; answers the offsets that it got.
    fn sent(&self) -> Result<Vec<i64>, String> {
        let clock = &*self.broker.options.clock;
        // Kafka gives up by itself before that.
        let end = clock.now() + self.broker.options.timeout * 2;
        let deliveries = self.producer.context();
        while !deliveries.wait(LOOK) {
            if clock.now() > end {
                return Err("the broker does not answer".into());
            }
        }
        deliveries.take()
    }

    /// Waits until what was sent is durable, and makes sure that all of it counts.
    fn confirm_sent(&mut self) -> Result<(), Error> {
        let sent = std::mem::take(&mut self.prepared);
        let offsets = self.sent().map_err(|reason| self.poison(reason))?;
        let all = match self.see_sent(&sent, &offsets) {
            Ok(Some(all)) => Ok(all),
            Ok(None) => self.read_back(&sent, &offsets),
            Err(error) => Err(error),
        };
        match all {
            Ok(true) => Ok(()),
            Ok(false) => {
                let tail = self.known.sight.tail().map_or_else(String::new, |tail| {
                    format!(", which is now at version {} of epoch {}", tail.version, tail.epoch)
                });
                Err(self.poison(format!("another sequencer has written to the log{tail}")))
            }
            Err(error) => Err(self.poison(format!("what was written could not be read back: {error}"))),
        }
    }

    /// Reads what was sent and what stands before it; answers whether all of it counts.
    fn read_back(&mut self, sent: &[Vec<u8>], offsets: &[i64]) -> Result<bool, Error> {
        let is_known = offsets.iter().all(|offset| *offset >= 0);
        let end = match offsets.iter().max() {
            Some(last) if is_known => last + 1,
            // A message that was sent again because its answer got lost: the broker has it and does not say where.
            _ => self.broker.watermarks()?.1,
        };
        let mut counted = 0;
        self.look_up_to(end, |payload, counts| {
            counted += usize::from(counts && sent.iter().any(|sent| sent == payload));
        })?;
        Ok(counted == sent.len())
    }

    /// The parts of records from one version up to another; both are there.
    fn parts(&self, from: Version, last: Version) -> Result<Read<'_>, Error> {
        let after = self.known.marks.partition_point(|mark| mark.version <= from);
        let first = || Error::Trimmed { requested: from, first: self.first().unwrap_or_default() };
        let mark = *after.checked_sub(1).and_then(|at| self.known.marks.get(at)).ok_or_else(first)?;
        Read::new(&self.broker, &self.known.history, mark, from, last)
    }

    /// Deletes what stands before a version, or less; not the version itself, which counts.
    fn forget(&mut self, below: Version) -> Result<(), Error> {
        let keep = self.known.marks.partition_point(|mark| mark.version <= below).saturating_sub(1);
        if keep > 0 {
            self.broker.delete_before(self.known.marks[keep].offset)?;
            self.known.history.forget(self.known.marks[keep].version);
            self.known.marks.drain(..keep);
        }
        Ok(())
    }

    fn poison(&mut self, reason: String) -> Error {
        tracing::error!(reason, "the log takes no more records");
        self.poisoned = Some(reason.clone());
        Error::Poisoned { reason }
    }
}

/// What became of records that were sent, when not all is well.
enum Sent {
    Nothing(String),
    Perhaps(String),
}

impl LogStore for KafkaLog {
    fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        if records.is_empty() {
            return Ok(());
        }
        check_all(records, self.broker.shard, self.known.sight.tail())?;
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
        let Some(tail) = end_of(version, self.first(), self.known.sight.tail())? else {
            return Ok(Box::new(std::iter::empty()));
        };
        Ok(Box::new(self.parts(version, tail.version)?.map(|part| part.map(|part| part.record))))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        // The last record stays: it says where the log ends.
        self.forget(below.min(self.known.sight.tail().map_or(Version(0), |tail| tail.version)))
    }

    fn tail(&self) -> Option<Tail> {
        self.known.sight.tail()
    }

    fn first(&self) -> Option<Version> {
        self.known.marks.first().map(|mark| mark.version)
    }

    fn bytes(&self) -> u64 {
        self.known.bytes
    }
}
