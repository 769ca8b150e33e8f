//! Going through the messages of a partition.

use super::LOOK;
use super::broker::{Broker, Reader};
use crate::record::{PREFIX_BYTES, decode_body};
use crate::{Error, Record, Tail};
use rdkafka::Message;
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use std::time::Duration;
use tidegraph_types::{Epoch, Version};

/// Decides which messages count, in order of offset.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sight {
    /// The last one that did.
    pub tail: Option<Tail>,
}

impl Sight {
    /// Whether the next message counts.
    pub fn take(&mut self, version: Version, epoch: Epoch) -> bool {
        let counts = match self.tail {
            // The oldest message of a partition counts: it is the very first one, or the log was trimmed up to it.
            None => version > Version(0),
            Some(tail) => version == tail.version.next() && epoch >= tail.epoch,
        };
        if counts {
            self.tail = Some(Tail { version, epoch });
        }
        counts
    }
}

/// Where a version stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub version: Version,
    pub epoch: Epoch,
    pub offset: i64,
}

/// The messages of a partition from one offset up to another.
pub(super) struct Messages<'c> {
    broker: &'c Broker,
    consumer: &'c Reader,
    next: i64,
    end: i64,
    /// When the broker will have been silent for too long.
    patience: Duration,
}

impl<'c> Messages<'c> {
    /// The consumer stands at `next`.
    pub fn new(broker: &'c Broker, consumer: &'c Reader, next: i64, end: i64) -> Self {
        let patience = broker.options.clock.now() + broker.options.timeout;
        Self { broker, consumer, next, end, patience }
    }

    pub fn next_offset(&self) -> i64 {
        self.next
    }

    pub fn next(&mut self) -> Result<Option<BorrowedMessage<'c>>, Error> {
        let clock = &*self.broker.options.clock;
        while self.next < self.end {
            match self.consumer.poll(LOOK) {
                Some(Ok(message)) => {
                    if message.offset() != self.next {
                        let found = format!("the next message there is has offset {}", message.offset());
                        return Err(self.broker.damaged(self.next, found));
                    }
                    self.next += 1;
                    self.patience = clock.now() + self.broker.options.timeout;
                    return Ok(Some(message));
                }
                Some(Err(error)) if is_fatal(&error) => {
                    return Err(self.broker.error("read", error.to_string()));
                }
                // The client connects anew by itself.
                Some(Err(error)) => tracing::warn!(%error, "reading the log"),
                None => {}
            }
            if clock.now() > self.patience {
                let reason = format!("the broker does not answer for offset {}", self.next);
                return Err(self.broker.error("read", reason));
            }
        }
        Ok(None)
    }
}

/// Whether asking again may not help.
pub(super) fn is_fatal(error: &KafkaError) -> bool {
    use rdkafka::types::RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::Fatal
                | Code::AutoOffsetReset
                | Code::OffsetOutOfRange
                | Code::UnknownTopicOrPartition
                | Code::UnknownTopic
                | Code::UnknownPartition
                | Code::TopicAuthorizationFailed
                | Code::BadMessage
        )
    )
}

/// The records from one version up to another.
pub(super) struct Read<'b> {
    broker: &'b Broker,
    consumer: Reader,
    sight: Sight,
    next: i64,
    from: Version,
    last: Version,
    done: bool,
}

impl<'b> Read<'b> {
    /// Begins at a mark, which is not after `from`; `last` is there.
    pub fn new(broker: &'b Broker, mark: Mark, from: Version, last: Version) -> Result<Self, Error> {
        let consumer = broker.consumer(mark.offset)?;
        // The mark's own message counts.
        let before = Version(mark.version.0 - 1);
        let sight = Sight { tail: Some(Tail { version: before, epoch: mark.epoch }) };
        Ok(Self { broker, consumer, sight, next: mark.offset, from, last, done: false })
    }

    fn record(&mut self) -> Result<Option<Record>, Error> {
        loop {
            let mut messages = Messages::new(self.broker, &self.consumer, self.next, i64::MAX);
            let Some(message) = messages.next()? else { return Ok(None) };
            self.next = messages.next_offset();
            let (offset, payload) = (message.offset(), message.payload().unwrap_or_default());
            let prefix = self.broker.prefix(offset, payload)?;
            if !self.sight.take(prefix.version, prefix.epoch) || prefix.version < self.from {
                continue;
            }
            self.done = prefix.version == self.last;
            let body = decode_body(&payload[PREFIX_BYTES..]).map_err(|source| match source {
                tidegraph_wire::Error::UnknownKind { .. } => Error::Newer {
                    version: prefix.version,
                    file: self.broker.as_path(),
                    offset: offset as u64,
                    source,
                },
                source => self.broker.damaged(offset, source.to_string()),
            })?;
            let record = Record { shard: prefix.shard, epoch: prefix.epoch, version: prefix.version, body };
            return Ok(Some(record));
        }
    }
}

impl Iterator for Read<'_> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let record = self.record().transpose();
        self.done |= !matches!(record, Some(Ok(_)));
        record
    }
}
