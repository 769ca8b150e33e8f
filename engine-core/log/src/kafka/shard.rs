//! A partition of a topic as one shard of several.

use super::broker::MARK;
use super::{KafkaLog, Sent};
use crate::acceptor::{Acceptor, EpochHistory};
use crate::error::cause;
use crate::record::{Prefix, Signal, encode_part, encode_signal};
use crate::shards::{Message, Parts, Shard};
use crate::{Error, LogStore};
use rdkafka::producer::Producer;
use tidegraph_types::{Epoch, Version};

impl KafkaLog {
    fn encoded(&self, message: &Message) -> (Version, Result<Vec<u8>, tidegraph_wire::Error>) {
        let mut payload = Vec::new();
        match message {
            Message::Signal { signal, epoch, complete } => {
                let (shard, version) = (self.broker.shard, Version(0));
                let prefix = Prefix { shard, epoch: *epoch, version, durable_bytes: complete.0 };
                (version, encode_signal(*signal, prefix, &mut payload).map(|()| payload))
            }
            Message::Part { part, complete } => {
                let encoded = encode_part(&part.record, &part.places, complete.0, &mut payload);
                (part.record.version, encoded.map(|()| payload))
            }
        }
    }
}

impl Shard for KafkaLog {
    fn acceptor(&self) -> &Acceptor {
        &self.state.acceptor
    }

    fn history(&self) -> &EpochHistory {
        &self.state.history
    }

    fn prepare(&mut self, messages: &[Message]) -> Result<(), Error> {
        let payloads: Vec<_> = messages.iter().map(|message| self.encoded(message)).collect();
        self.prepare_all(payloads.into_iter())
    }

    fn send(&mut self) -> Result<(), Error> {
        self.begin_to_send().map_err(|sent| match sent {
            Sent::Nothing(reason) | Sent::Perhaps(reason) => self.poison(reason),
        })
    }

    fn confirm(&mut self) -> Result<(), Error> {
        self.confirm_sent()
    }

    fn mark(&mut self, epoch: Epoch, complete: Version) {
        let message = Message::Signal { signal: Signal::Mark, epoch, complete };
        let deliveries = self.producer.context();
        deliveries.set_lost_a_mark(false);
        let sent = self.encoded(&message).1.map_err(cause).and_then(|payload| {
            let sent = self.broker.send(&self.producer, MARK, &payload);
            self.marked.push(payload);
            sent.map_err(cause)
        });
        if let Err(error) = sent {
            tracing::warn!(%error, "a mark was not sent: readers do not know yet which records are complete");
            deliveries.set_lost_a_mark(true);
        }
    }

    fn lost_a_mark(&self) -> bool {
        self.producer.context().lost_a_mark()
    }

    fn read(&mut self, from: Version, last: Version) -> Result<Parts<'_>, Error> {
        Ok(Box::new(self.parts(from, last)?))
    }

    fn trim(&mut self, below: Version) -> Result<(), Error> {
        self.forget(below)
    }

    fn first(&self) -> Option<Version> {
        LogStore::first(self)
    }

    fn bytes(&self) -> u64 {
        LogStore::bytes(self)
    }
}
