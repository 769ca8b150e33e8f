//! Tests against a real broker.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod security;
mod server;
mod shards;

use super::{KafkaFollower, KafkaLog, create_topic};
use crate::testing::{commit, log_test_suite, read_all};
use crate::{Body, Error, Follower, KafkaOptions, LogStore, NewTopic, Position, Record, Tail};
use rdkafka::Message;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic as Topic, TopicReplication};
use rdkafka::config::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use server::{Brokers, Own, Server};
use std::cell::Cell;
use std::time::Duration;
use tidegraph_types::{Epoch, ShardId, Version};

/// Time limit of every wait: generous, because other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);
const ONE: NewTopic = NewTopic { shards: 1, replication: 1, in_sync: 1 };

fn options(server: &impl Brokers, topic: &str) -> KafkaOptions {
    KafkaOptions { mark_every: 4, timeout: PATIENCE, ..KafkaOptions::new(server.brokers(), topic) }
}

/// Creates a topic and opens its first shard.
fn made(options: &KafkaOptions) -> KafkaLog {
    create_topic(options, ONE).unwrap();
    open(options)
}

fn open(options: &KafkaOptions) -> KafkaLog {
    KafkaLog::open(options.clone(), ShardId(0)).unwrap()
}

fn epoch_start(version: u64, epoch: u64) -> Record {
    Record { shard: ShardId(0), epoch: Epoch(epoch), version: Version(version), body: Body::EpochStart }
}

fn versions(log: &mut KafkaLog) -> Vec<(u64, u64)> {
    let from = log.first().unwrap().0;
    read_all(log, from).unwrap().iter().map(|record| (record.version.0, record.epoch.0)).collect()
}

#[test]
fn behaves_as_a_log() {
    let server = Server::start();
    for mark_every in [1, 7, 256] {
        let count = Cell::new(0);
        log_test_suite(|| {
            count.set(count.get() + 1);
            let topic = format!("suite-{mark_every}-{}", count.get());
            Box::new(made(&KafkaOptions { mark_every, ..options(&server, &topic) }))
        });
    }
}

/// Shows LOG-2.
#[test]
fn keeps_what_it_acknowledged_through_restarts() {
    let mut server = Own::start();
    let options = options(&server, "restarts");
    let mut log = made(&options);
    let written: Vec<Record> = (1..=40).map(|version| commit(version, 1, "a")).collect();
    for records in written.chunks(3) {
        log.append(records).unwrap();
    }
    let tail = Some(Tail { version: Version(40), epoch: Epoch(1) });
    drop(log);
    server.crash_and_restart();
    let mut log = open(&options);
    assert_eq!((log.tail(), log.first()), (tail, Some(Version(1))));
    assert_eq!(read_all(&mut log, 1).unwrap(), written);
    log.trim(Version(30)).unwrap();
    drop(log);
    // Trimmed records are gone for every reader.
    let mut log = open(&options);
    let first = log.first().unwrap().0;
    assert!((26..=30).contains(&first), "{first}");
    assert_eq!(log.tail(), tail);
    assert_eq!(read_all(&mut log, 31).unwrap(), written[30..]);
    assert!(matches!(read_all(&mut log, first - 1), Err(Error::Trimmed { .. })));
    log.append(&[commit(41, 2, "b")]).unwrap();
    log.trim(Version(1000)).unwrap();
    drop(log);
    let mut log = open(&options);
    assert_eq!(log.tail(), Some(Tail { version: Version(41), epoch: Epoch(2) }));
    log.append(&[commit(42, 2, "c")]).unwrap();
    assert_eq!(read_all(&mut log, 42).unwrap(), [commit(42, 2, "c")]);
    // The broker crashes while the log is open.
    server.crash_and_restart();
    log.append(&[commit(43, 2, "d")]).unwrap();
    assert_eq!(open(&options).tail().unwrap().version, Version(43));
}

/// Shows LOG-1.
#[test]
fn a_deposed_writer_acknowledges_nothing() {
    let server = Server::start();
    let options = options(&server, "deposed");
    let mut old = made(&options);
    old.append(&[epoch_start(1, 1), commit(2, 1, "a"), commit(3, 1, "b")]).unwrap();
    // The next writer takes over, and the old one does not know it.
    let mut new = open(&options);
    new.append(&[epoch_start(4, 2)]).unwrap();
    for _ in 0..2 {
        let refused = old.append(&[commit(4, 1, "lost"), commit(5, 1, "lost")]).unwrap_err();
        let Error::Poisoned { reason } = &refused else { panic!("{refused}") };
        assert!(
            reason.to_string().contains("another sequencer")
                && reason.to_string().contains("version 4 of epoch 2"),
            "{reason}"
        );
    }
    new.append(&[commit(5, 2, "kept")]).unwrap();
    let expected = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)];
    for log in [&mut new, &mut open(&options)] {
        assert_eq!(versions(log), expected);
        assert_eq!(read_all(log, 5).unwrap(), [commit(5, 2, "kept")]);
    }
    // This time the old writer appends first: the log has its acknowledged records, and
    // the next writer must read again.
    let mut newest = open(&options);
    new.append(&[commit(6, 2, "kept too")]).unwrap();
    let refused = newest.append(&[epoch_start(6, 3)]).unwrap_err();
    assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    let mut newest = open(&options);
    newest.append(&[epoch_start(7, 3)]).unwrap();
    let refused = new.append(&[commit(7, 2, "lost")]).unwrap_err();
    assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    let expected = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3)];
    assert_eq!(versions(&mut newest), expected);
    assert_eq!(versions(&mut open(&options)), expected);
    // Every follower sees the same, wherever it starts.
    for (known, at) in std::iter::once((0, 0)).chain(expected).enumerate() {
        assert_eq!(followed(&options, at, expected.len() - known), expected[known..], "after {at:?}");
    }
    newest.append(&[commit(8, 3, "later")]).unwrap();
    assert_eq!(followed(&options, (7, 3), 1), [(8, 3)]);
}

/// Reads `count` records after a version and its epoch, and one more if it arrives soon.
fn followed(options: &KafkaOptions, (version, epoch): (u64, u64), count: usize) -> Vec<(u64, u64)> {
    let after = Position { version: Version(version), epoch: Epoch(epoch) };
    let mut follower = KafkaFollower::new(options.clone(), ShardId(0), after);
    let mut records: Vec<_> = (0..count).map_while(|_| follower.next(PATIENCE).unwrap()).collect();
    records.extend(follower.next(Duration::from_millis(1500)).unwrap());
    records.iter().map(|record| (record.version.0, record.epoch.0)).collect()
}

#[test]
fn a_follower_waits_for_records_and_reports_trimmed_ones() {
    let server = Server::start();
    let options = options(&server, "followed");
    let mut log = made(&options);
    let mut follower = KafkaFollower::new(options.clone(), ShardId(0), Position::default());
    assert_eq!(follower.next(Duration::from_millis(10)).unwrap(), None, "an empty log");
    let written: Vec<Record> = (1..=20).map(|version| commit(version, 1, "a")).collect();
    let reader = std::thread::spawn(move || {
        let mut next = || follower.next(PATIENCE).unwrap();
        let records: Vec<Record> = std::iter::from_fn(&mut next).take(20).collect();
        (records, follower)
    });
    written.chunks(7).for_each(|some| log.append(some).unwrap());
    let (read, mut follower) = reader.join().unwrap();
    assert_eq!(read, written);
    log.trim(Version(18)).unwrap();
    log.append(&[commit(21, 1, "b")]).unwrap();
    assert_eq!(follower.next(PATIENCE).unwrap(), Some(commit(21, 1, "b")));
    let late = Position { version: Version(3), epoch: Epoch(1) };
    let refused = KafkaFollower::new(options, ShardId(0), late).next(PATIENCE);
    assert!(matches!(refused, Err(Error::Trimmed { requested: Version(4), .. })), "{refused:?}");
}

/// Asking the broker takes longer than reading a record. A follower that asked after each
/// record would never approach the end of a busy log.
#[test]
fn a_follower_far_behind_asks_where_the_log_ends_only_when_it_may_be_near() {
    let server = Own::start();
    let patient = options(&server, "near");
    let mut log = made(&patient);
    // Limits how long the follower asks a broker that does not answer.
    let options = KafkaOptions { timeout: Duration::from_secs(20), ..patient };
    let written: Vec<Record> = (1..=60).map(|version| commit(version, 1, "a")).collect();
    log.append(&written[..40]).unwrap();
    let mut follower = KafkaFollower::new(options.clone(), ShardId(0), Position::default());
    let upto = |follower: &mut KafkaFollower, version: u64| {
        while follower.next(PATIENCE).unwrap().unwrap().version.0 < version {}
    };
    upto(&mut follower, 10);
    assert!(!follower.is_near_end(5).unwrap());
    server.pause(true);
    assert!(!follower.is_near_end(5).unwrap(), "it has asked, and is as far from there");
    assert!(follower.is_near_end(30).is_err(), "it has to ask");
    server.pause(false);
    log.append(&written[40..]).unwrap();
    upto(&mut follower, 36);
    assert!(!follower.is_near_end(5).unwrap(), "the log has gone on since it asked");
    upto(&mut follower, 56);
    assert!(follower.is_near_end(5).unwrap());
}

#[test]
fn a_broker_that_does_not_answer_leaves_it_open_what_was_written() {
    let server = Own::start();
    let patient = options(&server, "silent");
    // A new topic takes its time on a busy machine.
    made(&patient).append(&[commit(1, 1, "a")]).unwrap();
    let options = KafkaOptions { timeout: Duration::from_secs(10), ..patient.clone() };
    let mut log = open(&options);
    server.pause(true);
    let refused = log.append(&[commit(2, 1, "b")]).unwrap_err();
    assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    assert!(matches!(log.append(&[commit(2, 1, "b")]), Err(Error::Poisoned { .. })));
    let unreachable = KafkaLog::open(options, ShardId(0)).unwrap_err();
    assert!(matches!(unreachable, Error::Broker { .. }), "{unreachable}");
    server.pause(false);
    let mut log = open(&patient);
    let tail = log.tail().unwrap().version.0;
    assert!((1..=2).contains(&tail), "{tail}");
    log.append(&[commit(tail + 1, 1, "c")]).unwrap();
    assert_eq!(versions(&mut open(&patient)).len() as u64, tail + 1);
}

/// The settings of a topic for two shards, one of them changed, as other software may have created it.
fn create_with(server: &impl Brokers, name: &str, setting: (&str, &str)) {
    let admin: AdminClient<_> =
        ClientConfig::new().set("bootstrap.servers", server.brokers()).create().unwrap();
    let mut settings = vec![
        ("retention.ms", "-1"),
        ("retention.bytes", "-1"),
        ("unclean.leader.election.enable", "false"),
        ("max.message.bytes", "100000000"),
    ];
    settings.retain(|(name, _)| *name != setting.0);
    settings.push(setting);
    let topic = Topic::new(name, 2, TopicReplication::Fixed(1));
    let topic = settings.into_iter().fold(topic, |topic, (name, value)| topic.set(name, value));
    futures_executor::block_on(admin.create_topics([&topic], &AdminOptions::new())).unwrap();
}

#[test]
fn a_topic_that_would_lose_records_is_refused() {
    let server = Server::start();
    let two = NewTopic { shards: 2, ..ONE };
    create_with(&server, "kept", ("cleanup.policy", "delete"));
    create_topic(&options(&server, "kept"), two).unwrap();
    for (number, (setting, value)) in [
        ("cleanup.policy", "compact"),
        ("retention.ms", "604800000"),
        ("retention.bytes", "1000000"),
        ("unclean.leader.election.enable", "true"),
        ("max.message.bytes", "1000"),
    ]
    .into_iter()
    .enumerate()
    {
        let topic = format!("loses-{number}");
        create_with(&server, &topic, (setting, value));
        let refused = create_topic(&options(&server, &topic), two).unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, Error::TopicSetting { .. }), "{text}");
        assert!(text.contains(&topic) && text.contains(&format!("has {setting} {value}")), "{text}");
        let location = crate::LogLocation::Kafka(options(&server, &topic));
        let opened = location.open(shards::sharding(2), Epoch(1)).err();
        assert!(matches!(opened, Some(Error::TopicSetting { .. })), "{opened:?}");
    }
}

/// The end of a transaction takes an offset, and no reader gets it: for a reader it is a gap.
#[test]
fn a_follower_does_not_pass_over_a_gap_of_offsets() {
    let server = Server::start();
    let options = options(&server, "gap");
    let mut log = made(&options);
    log.append(&[commit(1, 1, "a")]).unwrap();
    let mut follower = KafkaFollower::new(options.clone(), ShardId(0), Position::default());
    assert_eq!(follower.next(PATIENCE).unwrap(), Some(commit(1, 1, "a")));
    let payload = {
        let consumer = crate::kafka::broker::Broker::new(options, ShardId(0)).consumer(0).unwrap();
        let message =
            std::iter::from_fn(|| Some(consumer.poll(PATIENCE))).flatten().find_map(Result::ok).unwrap();
        message.payload().unwrap().to_vec()
    };
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", server.brokers())
        .set("transactional.id", "gap")
        .create()
        .unwrap();
    producer.init_transactions(PATIENCE).unwrap();
    producer.begin_transaction().unwrap();
    producer.send(BaseRecord::<(), [u8]>::to("gap").partition(0).payload(&payload)).unwrap();
    producer.commit_transaction(PATIENCE).unwrap();
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", server.brokers()).create().unwrap();
    // The broker writes the end of the transaction some time after it acknowledged it.
    let refused = loop {
        producer.send(BaseRecord::<(), [u8]>::to("gap").partition(0).payload(&payload)).unwrap();
        producer.flush(PATIENCE).unwrap();
        match follower.next(Duration::from_millis(100)) {
            Ok(record) => assert_eq!(record, None, "copies do not count"),
            Err(refused) => break refused,
        }
    };
    let Error::Missing { offset, found, .. } = refused else { panic!("{refused}") };
    assert_eq!(found, offset + 1);
}

#[test]
fn bad_input_is_named() {
    let server = Server::start();
    let short = Duration::from_secs(10);
    let missing = KafkaOptions { timeout: short, ..options(&server, "nowhere") };
    let missing = KafkaLog::open(missing, ShardId(0)).unwrap_err();
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    let options = KafkaOptions { most_record_bytes: 1 << 20, ..options(&server, "bad") };
    let mut log = made(&options);
    let large = "x".repeat(2 << 20);
    let refused = log.append(&[commit(1, 1, "small"), commit(2, 1, &large)]).unwrap_err();
    assert!(matches!(refused, Error::Encode { version: Version(2), .. }), "{refused}");
    assert_eq!(log.tail(), None);
    log.append(&[commit(1, 1, "a")]).unwrap();
    // The topic does not have this shard.
    let wrong = KafkaOptions { timeout: short, ..options.clone() };
    let wrong = KafkaLog::open(wrong, ShardId(3)).unwrap_err();
    assert!(matches!(wrong, Error::Broker { .. }), "{wrong}");
    // A message that other software wrote.
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", server.brokers()).create().unwrap();
    producer.send(BaseRecord::<(), str>::to("bad").partition(0).payload("hello")).unwrap();
    producer.flush(PATIENCE).unwrap();
    let damaged = KafkaLog::open(options.clone(), ShardId(0)).unwrap_err().to_string();
    assert_eq!(damaged, "partition 0 of Kafka topic bad is damaged at offset 1: 5 bytes are no record");
    let secret = KafkaOptions { properties: vec![("sasl.password".into(), "hunter2".into())], ..options };
    assert!(!format!("{secret:?}").contains("hunter2"));
}
