//! How fast a log in Kafka is: `cargo run --release -p tidegraph-log --features kafka --example kafka_rate -- BROKERS`.
//! Makes a topic of its own, which stays.

use tidegraph_log::kafka::{KafkaLog, KafkaOptions, NewTopic, create_topic};
use tidegraph_log::{Body, LogStore, Record};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::{Edge, Epoch, Gui, Mutation, ShardId, Sid, Token, Version};

fn record(version: u64) -> Record {
    let edge = Edge { sid: Sid(version), source: Gui(version), target: Gui(!version), label: Token(1) };
    let mutations = vec![Mutation::CreateEdge { edge, id: None, properties: vec![] }; 2];
    let body = Body::Commit { mutations, next_sid: Sid(version), request: None };
    Record { shard: ShardId(0), epoch: Epoch(1), version: Version(version), body }
}

fn main() {
    let brokers = std::env::args().nth(1).expect("the brokers, as host:port");
    let options = KafkaOptions::new(brokers, format!("rate-{}", std::process::id()));
    create_topic(&options, NewTopic { shards: 1, replication: 1, in_sync: 1 }).expect("the topic is made");
    let mut log = KafkaLog::open(options.clone(), ShardId(0)).expect("the log opens");
    let clock = RealClock::new();
    let mut version = 0;
    for group in [1_usize, 64, 1024] {
        let appends = if group == 1024 { 100 } else { 1000 };
        let mut micros: Vec<u128> = (0..appends)
            .map(|_| {
                let records: Vec<Record> = (0..group as u64).map(|n| record(version + n + 1)).collect();
                version += group as u64;
                let begin = clock.now();
                log.append(&records).expect("the records are written");
                (clock.now() - begin).as_micros()
            })
            .collect();
        micros.sort_unstable();
        let (p50, p99) = (micros[micros.len() / 2], micros[micros.len() * 99 / 100]);
        let total: u128 = micros.iter().sum();
        let rate = (group * appends) as f64 / (total as f64 / 1e6);
        println!("{group} records an append: p50 {p50} us, p99 {p99} us, {rate:.0} records/s");
    }
    let begin = clock.now();
    let mut log = KafkaLog::open(options, ShardId(0)).expect("the log opens");
    println!("opened with {version} records in {:?}", clock.now() - begin);
    let begin = clock.now();
    let count = log.read_from(Version(1)).expect("it can be read").filter(Result::is_ok).count();
    println!("{count} records read in {:?}", clock.now() - begin);
}
