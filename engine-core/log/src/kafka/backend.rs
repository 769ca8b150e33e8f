//! The log of a graph in Kafka: a topic with a partition for each shard.

use super::broker::Broker;
use super::topic::check_topic;
use super::{KafkaFollower, KafkaLog, create_topic};
use crate::shards::{Shard, ShardedLog};
use crate::{Error, Follower, KafkaOptions, LogBackend, LogCopies, LogStore, NewTopic, Position};
use tidegraph_types::{Epoch, ShardId, Sharding};

/// The log of a graph in Kafka.
#[derive(Debug)]
pub(crate) struct KafkaBackend {
    options: KafkaOptions,
    sharding: Sharding,
}

impl KafkaBackend {
    pub fn new(options: KafkaOptions, sharding: Sharding) -> Self {
        Self { options, sharding }
    }
}

impl LogBackend for KafkaBackend {
    fn create(&self, copies: LogCopies) -> Result<(), Error> {
        let LogCopies { total: replication, in_sync } = copies;
        create_topic(&self.options, NewTopic { shards: self.sharding.shards(), replication, in_sync })
    }

    /// Fences several shards. One shard needs no fence, since its first record of the epoch is one.
    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, Error> {
        let (options, sharding) = (&self.options, self.sharding);
        check_topic(options, sharding.shards())?;
        if sharding.shards() == 1 {
            return Ok(Box::new(KafkaLog::open(options.clone(), ShardId(0))?));
        }
        // The shards are read in parallel, because all writers wait meanwhile.
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

    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        let options = self.options.clone();
        Box::new(match self.sharding.shards() {
            1 => KafkaFollower::new(options, shard, after),
            _ => KafkaFollower::of_several(options, shard, after),
        })
    }
}
