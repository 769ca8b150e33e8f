//! What brokers take for one message: the least that a commit can take, whatever is done around it.

use super::KafkaOptions;
use super::broker::Broker;
use crate::Error;
use std::time::Duration;
use tidegraph_types::ShardId;

/// Writes so many messages of so many bytes, each when the one before was acknowledged by all replicas in sync; the time of each.
/// The topic has to be there, and must be no graph's: what stands in it afterwards is no record.
pub fn write_latency(options: &KafkaOptions, writes: usize, bytes: usize) -> Result<Vec<Duration>, Error> {
    let clock = options.clock.clone();
    let broker = Broker::new(options.clone(), ShardId(0));
    let producer = broker.producer()?;
    let payload = vec![b'x'; bytes];
    let mut times = Vec::with_capacity(writes);
    for _ in 0..writes {
        let begin = clock.now();
        broker.send_one(&producer, &payload)?;
        times.push(clock.now() - begin);
    }
    Ok(times)
}
