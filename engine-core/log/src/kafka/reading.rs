//! Reading the messages of a partition.

use super::POLL;
use super::broker::{Broker, Reader};
use crate::acceptor::EpochHistory;
use crate::shards::Part;
use crate::{Error, Record};
use rdkafka::Message;
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use std::time::Duration;
use tidegraph_types::Version;

/// The offset of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub version: Version,
    pub offset: i64,
}

/// Reads the messages of a partition from one offset up to another.
pub(super) struct Messages<'c> {
    broker: &'c Broker,
    consumer: &'c Reader,
    next: i64,
    end: i64,
    /// Time at which the broker has been silent for too long.
    patience: Duration,
}

impl<'c> Messages<'c> {
    /// `consumer` begins at offset `next`.
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
            match self.consumer.poll(POLL) {
                Some(Ok(message)) => {
                    if message.offset() != self.next {
                        return Err(self.broker.missing(self.next, message.offset()));
                    }
                    self.next += 1;
                    self.patience = clock.now() + self.broker.options.timeout;
                    return Ok(Some(message));
                }
                Some(Err(error)) if is_fatal(&error) => {
                    return Err(self.broker.error("read", error));
                }
                // The client connects again by itself.
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

/// Whether another poll cannot help.
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

/// Reads the records from one version up to another. Of each version, the record of the epoch that the history names
/// counts.
pub(super) struct Read<'b> {
    broker: &'b Broker,
    history: &'b EpochHistory,
    consumer: Reader,
    next: i64,
    /// The next version to find.
    wanted: Version,
    from: Version,
    last: Version,
    done: bool,
}

impl<'b> Read<'b> {
    /// Begins at a mark that is not after `from`; `last` exists.
    pub fn new(
        broker: &'b Broker,
        history: &'b EpochHistory,
        mark: Mark,
        from: Version,
        last: Version,
    ) -> Result<Self, Error> {
        let consumer = broker.consumer(mark.offset)?;
        let (next, wanted) = (mark.offset, mark.version);
        Ok(Self { broker, history, consumer, next, wanted, from, last, done: false })
    }

    fn part(&mut self) -> Result<Option<Part>, Error> {
        loop {
            let mut messages = Messages::new(self.broker, &self.consumer, self.next, i64::MAX);
            let Some(message) = messages.next()? else { return Ok(None) };
            self.next = messages.next_offset();
            let (offset, payload) = (message.offset(), message.payload().unwrap_or_default());
            let prefix = self.broker.prefix(offset, payload)?;
            let (version, epoch) = (prefix.version, prefix.epoch);
            if version != self.wanted || self.history.epoch_at(version) != Some(epoch) {
                continue;
            }
            self.wanted = version.next();
            if version < self.from {
                continue;
            }
            self.done = version == self.last;
            let (body, places) = self.broker.body(offset, payload, version)?;
            return Ok(Some(Part { record: Record { shard: prefix.shard, epoch, version, body }, places }));
        }
    }
}

impl Iterator for Read<'_> {
    type Item = Result<Part, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let part = self.part().transpose();
        self.done |= !matches!(part, Some(Ok(_)));
        part
    }
}
