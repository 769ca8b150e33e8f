//! `micro kafka-rate`: appends to logs in Kafka with one shard and with several, follows them, and prints rates and
//! latencies. It creates topics and leaves them behind.
//!
//! Each record concerns one partition and therefore one shard; the other shards get an empty record. Turns of all shard
//! counts alternate.

use std::sync::Arc;
use std::time::Duration;
use tidegraph_log::{Body, KafkaOptions, LogBackend, LogCopies, LogLocation, LogStore, Position, Record};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::{Edge, Epoch, Gui, Mutation, PartitionCount, ShardId, Sharding, Sid, Token, Version};

const PARTITIONS: u16 = 8;
const SHARDS: [u16; 4] = [1, 2, 4, 8];
const TURNS: usize = 10;

fn record(version: u64) -> Record {
    let home = version << 48;
    let edge = Edge { sid: Sid(version), source: Gui(home | version), target: Gui(home), label: Token(1) };
    let mutations = vec![Mutation::CreateEdge { edge, id: None, properties: vec![] }; 2];
    let body = Body::Commit { mutations, next_sid: Sid(version), request: None, changes: None };
    Record { shard: ShardId(0), epoch: Epoch(1), version: Version(version), body }
}

struct Measured {
    backend: Arc<dyn LogBackend>,
    sharding: Sharding,
    log: Box<dyn LogStore>,
    version: u64,
}

impl Measured {
    fn new(brokers: &str, shards: u16) -> Self {
        let options = KafkaOptions::new(brokers, format!("rate-{}-{shards}", std::process::id()));
        let partitions = PartitionCount::new(PARTITIONS).expect("a power of two");
        let sharding = Sharding::new(partitions, shards).expect("fewer shards than partitions");
        let backend = LogLocation::Kafka(options).backend(sharding).expect("built with the feature");
        backend.create(LogCopies { total: 1, in_sync: 1 }).expect("the topic is created");
        let log = backend.open(Epoch(1)).expect("the log opens");
        Self { backend, sharding, log, version: 0 }
    }

    /// Appends a group of records and returns the duration.
    fn append(&mut self, clock: &RealClock, group: usize) -> Duration {
        let records: Vec<Record> = (1..=group as u64).map(|n| record(self.version + n)).collect();
        self.version += group as u64;
        let begin = clock.now();
        self.log.append(&records).expect("the records are written");
        let took = clock.now() - begin;
        self.log.on_idle();
        took
    }

    /// Returns the time that a follower of the first shard needs to read all records.
    fn follow(&self, clock: &RealClock) -> Duration {
        let mut follower = self.backend.follow(ShardId(0), Position::default());
        let begin = clock.now();
        (0..self.version).for_each(|_| {
            follower.next(Duration::from_secs(10)).expect("it can be read").expect("it is there");
        });
        clock.now() - begin
    }
}

/// Prints the rates; `brokers` are written as `host:port`.
pub fn run(brokers: &str) {
    let mut all: Vec<Measured> = SHARDS.iter().map(|shards| Measured::new(brokers, *shards)).collect();
    let clock = RealClock::new();
    for group in [1_usize, 64, 1024] {
        let appends = if group == 1024 { 5 } else { 50 };
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); all.len()];
        for _ in 0..TURNS {
            for (measured, times) in all.iter_mut().zip(&mut times) {
                times.extend((0..appends).map(|_| measured.append(&clock, group)));
            }
        }
        for (shards, times) in SHARDS.iter().zip(&mut times) {
            times.sort_unstable();
            let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
            let total: Duration = times.iter().sum();
            let rate = (group * times.len()) as f64 / total.as_secs_f64();
            println!(
                "{shards} shards, {group} records an append: p50 {p50:?}, p99 {p99:?}, {rate:.0} records/s"
            );
        }
    }
    for measured in &mut all {
        let (shards, count) = (measured.sharding.shards(), measured.version);
        let bytes = measured.log.bytes() / u64::from(shards) / count;
        let followed = measured.follow(&clock);
        let begin = clock.now();
        let mut log = measured.backend.open(Epoch(2)).expect("the log opens");
        let opened = clock.now() - begin;
        let begin = clock.now();
        let read = log.read_from(Version(1)).expect("it can be read").filter(Result::is_ok).count();
        let took = clock.now() - begin;
        println!(
            "{shards} shards, {count} records: {bytes} bytes a record in each shard, one shard followed in {followed:?}, opened in \
             {opened:?}, {read} read in {took:?}"
        );
    }
}
