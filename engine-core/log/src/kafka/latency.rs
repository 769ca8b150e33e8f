//! What brokers take for one message: the least that a commit can take, whatever is done around it.

use super::broker::Broker;
use super::{KafkaOptions, LOOK};
use crate::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_types::ShardId;

/// Writes so many messages of so many bytes, each when the one before was acknowledged by all replicas in sync; the time of each.
/// Meanwhile `followers` read all of it, as the nodes of a fleet read its log. The topic has to be there, and must be no graph's: what
/// stands in it afterwards is no record.
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
                    // What it reads, and whether it can, is of no interest here.
                    drop(reader.poll(LOOK));
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
