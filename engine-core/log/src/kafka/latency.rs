//! Measures how long brokers take for one message: the least time that a commit can take.

use super::POLL;
use super::broker::Broker;
use crate::{Error, KafkaOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_types::ShardId;

/// Writes `writes` messages of `bytes` bytes, each after all replicas in sync acknowledged the one before; returns the
/// time of each. Meanwhile `followers` consumers read the topic, as the nodes of a fleet read its log. The topic must
/// exist and must not be a graph's: the messages are not records.
///
/// # Errors
/// [`Error::Broker`] if Kafka refuses or does not answer.
pub fn write_latency(
    options: &KafkaOptions,
    writes: usize,
    bytes: usize,
    followers: usize,
) -> Result<Vec<Duration>, Error> {
    let broker = Broker::new(options.clone(), ShardId(0));
    let readers = (0..followers).map(|_| broker.consumer(0)).collect::<Result<Vec<_>, Error>>()?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in &readers {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Only the load on the brokers matters here.
                    drop(reader.poll(POLL));
                }
            });
        }
        let times = one_by_one(&broker, writes, bytes);
        over.store(true, Ordering::Relaxed);
        times
    })
}

fn one_by_one(broker: &Broker, writes: usize, bytes: usize) -> Result<Vec<Duration>, Error> {
    let clock = &broker.options.clock;
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
