//! A partition of a topic as one shard of several.

use super::broker::{Broker, MARK};
use super::{KafkaLog, KafkaOptions, Sent, check_topic};
use crate::record::{Prefix, Signal, encode_part, encode_signal};
use crate::shards::{Message, Parts, Shard, ShardedLog};
use crate::sight::{History, Sight};
use crate::{Error, LogStore};
use rdkafka::producer::Producer;
use tidegraph_types::{Epoch, ShardId, Sharding, Version};

/// Opens a graph's log to write to it, under an epoch that nobody else has. The topic has to have a partition for each shard.
///
/// With several shards they are fenced here ([`Error::Behind`] if the epoch is not above theirs); one shard needs no fence, since its
/// first record of the epoch is one.
pub fn open_log(
    options: &KafkaOptions,
    sharding: Sharding,
    epoch: Epoch,
) -> Result<Box<dyn LogStore>, Error> {
    check_topic(options, sharding.shards())?;
    if sharding.shards() == 1 {
        return Ok(Box::new(KafkaLog::open(options.clone(), ShardId(0))?));
    }
    // Each reads what it retains: side by side, since all writers wait meanwhile.
    let shards = std::thread::scope(|scope| {
        let open = |shard| move || KafkaLog::read(Broker::of_several(options.clone(), shard));
        let opening: Vec<_> = sharding.all().map(|shard| scope.spawn(open(shard))).collect();
        let opened = opening.into_iter().map(|thread| {
            let opened = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            opened.map(|shard| Box::new(shard) as Box<dyn Shard>)
        });
        opened.collect::<Result<Vec<_>, Error>>()
    })?;
    Ok(Box::new(ShardedLog::open(shards, sharding, epoch)?))
}

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
    fn sight(&self) -> &Sight {
        &self.known.sight
    }

    fn history(&self) -> &History {
        &self.known.history
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
        let sent = self.encoded(&message).1.map_err(|error| error.to_string()).and_then(|payload| {
            let sent = self.broker.send(&self.producer, MARK, &payload);
            self.marked.push(payload);
            sent.map_err(|error| error.to_string())
        });
        if let Err(error) = sent {
            tracing::warn!(error, "readers are not told yet what is complete");
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
