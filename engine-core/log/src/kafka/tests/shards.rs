//! A log of several shards, which are partitions of one topic.

use super::server::Server;
use super::{PATIENCE, options};
use crate::kafka::{KafkaFollower, create_topic};
use crate::record::encode_part;
use crate::shards::{Part, split};
use crate::testing::{log_test_suite, read_all};
use crate::{Body, Error, Follower, KafkaOptions, LogLocation, LogStore, NewTopic, Position, Record, Tail};
use rdkafka::config::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::cell::Cell;
use std::time::Duration;
use tidegraph_types::{Epoch, Gui, Mutation, PartitionCount, ShardId, Sharding, Sid, Version};

pub(super) fn sharding(shards: u16) -> Sharding {
    Sharding::new(PartitionCount::new(8).unwrap(), shards).unwrap()
}

fn open_log(options: &KafkaOptions, sharding: Sharding, epoch: Epoch) -> Result<Box<dyn LogStore>, Error> {
    LogLocation::Kafka(options.clone()).open(sharding, epoch)
}

fn make(options: &KafkaOptions, shards: u16) {
    create_topic(options, NewTopic { shards, replication: 1, in_sync: 1 }).unwrap();
}

/// Returns a transaction with a change in each partition, the last partition first.
fn wide(version: u64, epoch: u64) -> Record {
    let vertex =
        |partition: u64| Mutation::DeleteVertex { gui: Gui(partition << 48 | version), edges_left: false };
    let mutations = (0..8).rev().map(vertex).collect();
    let body = Body::Commit { mutations, next_sid: Sid(version * 10), request: None, changes: None };
    Record { shard: ShardId(0), epoch: Epoch(epoch), version: Version(version), body }
}

fn epoch_start(version: u64, epoch: u64) -> Record {
    Record { body: Body::EpochStart, ..wide(version, epoch) }
}

/// Writes parts as a sequencer does, to one shard and without waiting for other shards.
fn write_parts(options: &KafkaOptions, parts: &[&Part], complete: u64) {
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", &options.brokers).create().unwrap();
    for part in parts {
        let mut payload = Vec::new();
        encode_part(&part.record, &part.places, complete, &mut payload).unwrap();
        let partition = i32::from(part.record.shard.0);
        producer
            .send(BaseRecord::<(), [u8]>::to(&options.topic).partition(partition).payload(&payload))
            .unwrap();
    }
    producer.flush(PATIENCE).unwrap();
}

/// Reads `count` records of a shard after a position, and one more if it arrives soon.
fn followed(options: &KafkaOptions, shard: u16, (version, epoch): (u64, u64), count: usize) -> Vec<Record> {
    let after = Position { version: Version(version), epoch: Epoch(epoch) };
    let mut follower = KafkaFollower::of_several(options.clone(), ShardId(shard), after);
    let mut records: Vec<_> = (0..count).map_while(|_| follower.next(PATIENCE).unwrap()).collect();
    records.extend(follower.next(Duration::from_millis(1500)).unwrap());
    records
}

fn of_shard(records: &[Record], shard: u16) -> Vec<Record> {
    records.iter().map(|record| split(sharding(3), record)[usize::from(shard)].record.clone()).collect()
}

#[test]
fn shards_together_behave_as_a_log() {
    let server = Server::start();
    for mark_every in [1, 7] {
        let count = Cell::new(0);
        log_test_suite(|| {
            count.set(count.get() + 1);
            let topic = format!("shards-{mark_every}-{}", count.get());
            let options = KafkaOptions { mark_every, ..options(&server, &topic) };
            make(&options, 3);
            open_log(&options, sharding(3), Epoch(1)).unwrap()
        });
    }
}

/// Shows LOG-4.
#[test]
fn a_transaction_that_some_shards_lack_is_not_committed() {
    let server = Server::start();
    let options = options(&server, "torn");
    make(&options, 3);
    let mut old = open_log(&options, sharding(3), Epoch(1)).unwrap();
    assert_eq!((old.tail(), old.first()), (None, None));
    let mut written = vec![epoch_start(1, 1), wide(2, 1)];
    old.append(&written).unwrap();
    // Readers do not know that the records are complete until a mark says so.
    assert!(followed(&options, 0, (0, 0), 0).is_empty());
    old.on_idle();
    for shard in 0..3 {
        assert_eq!(followed(&options, shard, (0, 0), 2), of_shard(&written, shard));
    }
    // The sequencer dies between the parts of two transactions.
    let (third, fourth) = (split(sharding(3), &wide(3, 1)), split(sharding(3), &wide(4, 1)));
    write_parts(&options, &[&third[0], &third[2], &fourth[2]], 2);
    for shard in 0..3 {
        assert!(followed(&options, shard, (2, 1), 0).is_empty(), "shard {shard}");
    }
    let mut new = open_log(&options, sharding(3), Epoch(2)).unwrap();
    assert_eq!(new.tail(), Some(Tail { version: Version(2), epoch: Epoch(1) }));
    assert_eq!(read_all(new.as_mut(), 1).unwrap(), written);
    // A part that was still in flight arrives.
    write_parts(&options, &[&third[1]], 2);
    let refused = old.append(&[wide(3, 1)]).unwrap_err();
    assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    let more = [epoch_start(3, 2), wide(4, 2)];
    new.append(&more).unwrap();
    new.on_idle();
    written.extend(more);
    for shard in 0..3 {
        let expected = of_shard(&written, shard);
        for (known, at) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2)].into_iter().enumerate() {
            assert_eq!(
                followed(&options, shard, at, expected.len() - known),
                expected[known..],
                "shard {shard} after {at:?}"
            );
        }
    }
    // The next sequencer finds all complete records. It must not reuse an epoch.
    let behind = open_log(&options, sharding(3), Epoch(2)).err().unwrap();
    assert!(matches!(behind, Error::Behind { epoch: Epoch(2), found: Epoch(2) }), "{behind}");
    let mut next = open_log(&options, sharding(3), Epoch(5)).unwrap();
    assert_eq!(read_all(next.as_mut(), 1).unwrap(), written);
    assert!(matches!(new.append(&[wide(5, 2)]), Err(Error::Poisoned { .. })));
    next.append(&(5..=30).map(|version| wide(version, 5)).collect::<Vec<_>>()).unwrap();
    next.on_idle();
    next.trim(Version(20)).unwrap();
    let mut last = open_log(&options, sharding(3), Epoch(6)).unwrap();
    let first = last.first().unwrap().0;
    assert!((16..=20).contains(&first), "{first}");
    let found = read_all(last.as_mut(), first).unwrap();
    assert_eq!(found, (first..=30).map(|version| wide(version, 5)).collect::<Vec<_>>());
    let late = Position { version: Version(3), epoch: Epoch(2) };
    let refused = KafkaFollower::of_several(options.clone(), ShardId(1), late).next(PATIENCE);
    assert!(matches!(refused, Err(Error::Trimmed { requested: Version(4), .. })), "{refused:?}");
    assert_eq!(followed(&options, 2, (28, 5), 2).len(), 2);
}

#[test]
fn a_topic_for_another_number_of_shards_is_refused() {
    let server = Server::start();
    let options = options(&server, "other");
    make(&options, 2);
    make(&options, 2);
    for shards in [1, 3] {
        let refused = open_log(&options, sharding(shards), Epoch(1)).err().unwrap().to_string();
        let expected = format!("has 2 partitions and the graph's log has {shards} shards");
        assert!(refused.contains(&expected), "{refused}");
        let refused = create_topic(&options, NewTopic { shards, replication: 1, in_sync: 1 });
        assert!(refused.unwrap_err().to_string().contains(&expected));
    }
}
