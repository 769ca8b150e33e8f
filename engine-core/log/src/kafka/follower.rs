//! Following a partition that other processes write.
//!
//! A follower knows the version of its last record, not the offset. Versions grow by one from message to message,
//! except for messages that do not count. So the offset of a version is at least the offset of the oldest record plus
//! the difference of their versions. The follower starts reading there and skips lower versions.
//!
//! One shard of several also has signals and replaced records, which only move a version to a later offset. There the
//! follower hands out a record when a later message says that it is complete (LOG-4).
//!
//! What must never happen: a message that this reader accepts and another ignores. A follower that starts in the middle
//! knows version and epoch of the last record that counted, and so decides as if it had read everything.

use super::POLL;
use super::broker::{Broker, Reader};
use super::reading::is_fatal;
use crate::acceptor::FollowerState;
use crate::{Details, Error, Follower, KafkaOptions, Position, Record};
use rdkafka::Message;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegraph_types::{ShardId, Version};

/// Follows a shard of the log in Kafka.
pub struct KafkaFollower {
    broker: Broker,
    at: Position,
    reading: Option<Reading>,
    /// Details of the record that was handed out last.
    last: Option<Details>,
    /// End of the partition when it was last asked for. The partition ends there or later.
    high: i64,
}

struct Reading {
    consumer: Reader,
    following: FollowerState,
    /// Details of the records that were read and not handed out. A record that replaces others comes before them again,
    /// and so do their details.
    details: BTreeMap<Version, Details>,
    next: i64,
}

impl Reading {
    /// Takes the next message into account. Returns whether there was one.
    fn take(&mut self, broker: &Broker, at_most: Duration) -> Result<bool, Error> {
        let message = match self.consumer.poll(at_most) {
            Some(Ok(message)) => message,
            Some(Err(error)) if is_fatal(&error) => return Err(broker.error("read", error)),
            Some(Err(error)) => {
                tracing::warn!(%error, "following the log");
                return Ok(false);
            }
            None => return Ok(false),
        };
        let offset = message.offset();
        if offset < self.next {
            return Ok(true);
        }
        if offset > self.next {
            return Err(broker.missing(self.next, offset));
        }
        let payload = message.payload().unwrap_or_default();
        let head = broker.head(offset, payload)?;
        self.next = offset + 1;
        let details = &mut self.details;
        let record = || {
            let (version, epoch) = (head.version, head.epoch);
            let (body, places) = broker.body(offset, payload, version)?;
            details.insert(version, Details { written_ms: message.timestamp().to_millis(), places });
            Ok(Record { shard: broker.shard, epoch, version, body })
        };
        self.following.accept(head, |reason: String| broker.damaged(offset, reason), record)?;
        Ok(true)
    }
}

impl std::fmt::Debug for KafkaFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaFollower")
            .field("broker", &self.broker)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl KafkaFollower {
    /// Follows the only shard of a topic from behind a position on. Nothing is read yet.
    #[must_use]
    pub fn new(options: KafkaOptions, shard: ShardId, after: Position) -> Self {
        Self { broker: Broker::new(options, shard), at: after, reading: None, last: None, high: 0 }
    }

    /// Follows one shard of several from behind a position on. Hands out each record when it is complete.
    #[must_use]
    pub fn of_several(options: KafkaOptions, shard: ShardId, after: Position) -> Self {
        Self { broker: Broker::of_several(options, shard), at: after, reading: None, last: None, high: 0 }
    }

    /// Finds the offset to read from; `None` while the log is empty.
    fn begin(&self) -> Result<Option<Reading>, Error> {
        let (low, high) = self.broker.watermarks()?;
        if low >= high {
            return Ok(None);
        }
        let wanted = self.at.version.next();
        let consumer = self.broker.consumer(low)?;
        let Some((first, offset)) = self.first_record(&consumer, high)? else { return Ok(None) };
        if wanted < first {
            return Err(Error::Trimmed { requested: wanted, first });
        }
        let layout = self.broker.layout;
        if self.at.version < first {
            // From the first message on.
            let consumer = self.broker.consumer(low)?;
            return Ok(Some(Reading {
                consumer,
                following: FollowerState::from_start(layout, self.at),
                details: BTreeMap::new(),
                next: low,
            }));
        }
        let ahead = i64::try_from(wanted.0 - first.0).unwrap_or(i64::MAX);
        let next = offset.saturating_add(ahead).min(high);
        let following = FollowerState::behind(layout, self.at);
        let consumer = self.broker.consumer(next)?;
        Ok(Some(Reading { consumer, following, details: BTreeMap::new(), next }))
    }

    /// Version and offset of the oldest record; `None` if there is none yet. Only signals come before it.
    fn first_record(&self, consumer: &Reader, high: i64) -> Result<Option<(Version, i64)>, Error> {
        let clock = &*self.broker.options.clock;
        let end = clock.now() + self.broker.options.timeout;
        while clock.now() < end {
            match consumer.poll(POLL) {
                Some(Ok(message)) => {
                    let (offset, payload) = (message.offset(), message.payload().unwrap_or_default());
                    let head = self.broker.head(offset, payload)?;
                    if head.signal.is_none() {
                        return Ok(Some((head.version, offset)));
                    }
                    if offset + 1 >= high {
                        return Ok(None);
                    }
                }
                Some(Err(error)) if is_fatal(&error) => {
                    return Err(self.broker.error("read", error));
                }
                Some(Err(error)) => tracing::warn!(%error, "reading the log"),
                None => {}
            }
        }
        Ok(None)
    }
}

impl Follower for KafkaFollower {
    fn next(&mut self, at_most: Duration) -> Result<Option<Record>, Error> {
        let clock = self.broker.options.clock.clone();
        let end = clock.now() + at_most;
        loop {
            let left = end.saturating_sub(clock.now());
            let Some(reading) = &mut self.reading else {
                self.reading = self.begin()?;
                if self.reading.is_none() {
                    clock.sleep(left.min(POLL / 4));
                    if clock.now() >= end {
                        return Ok(None);
                    }
                }
                continue;
            };
            if let Some(record) = reading.following.next() {
                self.at = reading.following.at();
                self.last = reading.details.remove(&record.version);
                return Ok(Some(record));
            }
            // A message holds its consumer's client: `take` drops it before the consumer may go.
            match reading.take(&self.broker, left) {
                Ok(true) => {}
                Ok(false) if clock.now() >= end => return Ok(None),
                Ok(false) => {}
                Err(error) => {
                    // The next call starts again behind the last record that was handed out. If the log was trimmed, it
                    // looks where the log begins now.
                    self.reading = None;
                    return Err(error);
                }
            }
        }
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        let within = i64::try_from(within).unwrap_or(i64::MAX);
        let next = self.reading.as_ref().map(|reading| reading.next);
        // Asking the broker takes longer than reading a record: a follower with many records to read would fall behind
        // the writers if it asked each time.
        if next.is_some_and(|next| self.high.saturating_sub(next) > within) {
            return Ok(false);
        }
        let (low, high) = self.broker.watermarks()?;
        self.high = high;
        Ok(high.saturating_sub(next.unwrap_or(low)) <= within)
    }

    fn details(&self) -> Option<&Details> {
        self.last.as_ref()
    }
}
