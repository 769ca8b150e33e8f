//! Following a partition that others write.
//!
//! A reader knows the version that it has, not the offset of its message. Versions grow by one from message to message,
//! but for messages that do not count; so the message of a version stands as far behind the oldest one as their versions are
//! apart, or further. Reading begins at the nearest place, and what is below the version is passed over.
//!
//! What must never happen: a message taken that another reader passes over. Whoever starts in the middle knows version and
//! epoch of the last record that counted, and with that decides as one who has read everything.

use super::broker::{Broker, Reader};
use super::reading::{Sight, is_fatal};
use super::{KafkaOptions, LOOK};
use crate::record::{PREFIX_BYTES, decode_body};
use crate::{Error, Follower, Position, Record, Tail};
use rdkafka::Message;
use std::time::Duration;
use tidegraph_types::{ShardId, Version};

/// Follows a shard of the log in Kafka.
pub struct KafkaFollower {
    broker: Broker,
    at: Position,
    reading: Option<Reading>,
}

struct Reading {
    consumer: Reader,
    sight: Sight,
    next: i64,
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
    /// Follows a shard of a topic from behind a position on. Nothing is read yet.
    #[must_use]
    pub fn new(options: KafkaOptions, shard: ShardId, after: Position) -> Self {
        Self { broker: Broker::new(options, shard), at: after, reading: None }
    }

    /// Finds the place to read from; `None` while the log is empty.
    fn begin(&self) -> Result<Option<Reading>, Error> {
        let (low, high) = self.broker.watermarks()?;
        if low >= high {
            return Ok(None);
        }
        let wanted = self.at.version.next();
        let consumer = self.broker.consumer(low)?;
        let Some(first) = self.first_version(&consumer)? else { return Ok(None) };
        if wanted < first {
            return Err(Error::Trimmed { requested: wanted, first });
        }
        if self.at.version < first {
            // From the very first one on, which counts whatever it says.
            let consumer = self.broker.consumer(low)?;
            return Ok(Some(Reading { consumer, sight: Sight::default(), next: low }));
        }
        let ahead = i64::try_from(wanted.0 - first.0).unwrap_or(i64::MAX);
        let next = low.saturating_add(ahead).min(high);
        let sight = Sight { tail: Some(Tail { version: self.at.version, epoch: self.at.epoch }) };
        Ok(Some(Reading { consumer: self.broker.consumer(next)?, sight, next }))
    }

    fn first_version(&self, consumer: &Reader) -> Result<Option<Version>, Error> {
        let clock = &*self.broker.options.clock;
        let end = clock.now() + self.broker.options.timeout;
        while clock.now() < end {
            match consumer.poll(LOOK) {
                Some(Ok(message)) => {
                    let payload = message.payload().unwrap_or_default();
                    return Ok(Some(self.broker.prefix(message.offset(), payload)?.version));
                }
                Some(Err(error)) if is_fatal(&error) => {
                    return Err(self.broker.error("read", error.to_string()));
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
                    clock.sleep(left.min(LOOK / 4));
                    if clock.now() >= end {
                        return Ok(None);
                    }
                }
                continue;
            };
            match reading.consumer.poll(left) {
                Some(Ok(message)) => {
                    let offset = message.offset();
                    if offset < reading.next {
                        continue;
                    }
                    let payload = message.payload().unwrap_or_default();
                    let prefix = self.broker.prefix(offset, payload)?;
                    reading.next = offset + 1;
                    if !reading.sight.take(prefix.version, prefix.epoch) {
                        continue;
                    }
                    let (version, epoch) = (prefix.version, prefix.epoch);
                    if version <= self.at.version {
                        continue;
                    }
                    let body = decode_body(&payload[PREFIX_BYTES..]).map_err(|source| match source {
                        tidegraph_wire::Error::UnknownKind { .. } => Error::Newer {
                            version,
                            file: self.broker.as_path(),
                            offset: offset as u64,
                            source,
                        },
                        source => self.broker.damaged(offset, source.to_string()),
                    })?;
                    self.at = Position { version, epoch };
                    return Ok(Some(Record { shard: prefix.shard, epoch, version, body }));
                }
                Some(Err(error)) if is_fatal(&error) => {
                    // Trimmed meanwhile, say: the next call looks where the log begins now.
                    self.reading = None;
                    return Err(self.broker.error("read", error.to_string()));
                }
                Some(Err(error)) => tracing::warn!(%error, "following the log"),
                None => {}
            }
            if clock.now() >= end {
                return Ok(None);
            }
        }
    }

    fn is_near_end(&mut self, within: u64) -> Result<bool, Error> {
        let (low, high) = self.broker.watermarks()?;
        let next = self.reading.as_ref().map_or(low, |reading| reading.next);
        Ok(high.saturating_sub(next) <= i64::try_from(within).unwrap_or(i64::MAX))
    }
}
