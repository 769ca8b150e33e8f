//! How to reach a Kafka log, and making its topic.

use super::broker::{Broker, block_on};
use super::login::{KafkaTls, Tokens};
use crate::Error;
use rdkafka::admin::{AdminOptions, NewTopic as Topic, TopicReplication};
use rdkafka::types::RDKafkaErrorCode;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::ShardId;

/// How to reach a log in Kafka.
#[derive(Clone)]
pub struct KafkaOptions {
    /// `host:port` of some brokers, with commas between them.
    pub brokers: String,
    /// The graph's topic.
    pub topic: String,
    /// TLS; `None`: plain TCP.
    pub tls: Option<KafkaTls>,
    /// Where tokens to log in with come from, if brokers want them.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Other settings of the client (librdkafka's names). They go before all others.
    pub properties: Vec<(String, String)>,
    /// How long the brokers may take for one step. An append that takes longer than this may or may not have happened.
    pub timeout: Duration,
    /// The largest record, in bytes of its payload. Not more than the topic's `max.message.bytes`.
    pub most_record_bytes: usize,
    /// One version in so many has its place noted: bounds what is read before the version that was asked for, and what
    /// stays when the log is trimmed.
    pub mark_every: u64,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

impl KafkaOptions {
    /// A topic at some brokers, with 10 seconds for a step and records of up to 64 MiB.
    #[must_use]
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            topic: topic.into(),
            tls: None,
            tokens: None,
            properties: Vec::new(),
            timeout: Duration::from_secs(10),
            most_record_bytes: 64 << 20,
            mark_every: 256,
            clock: Arc::new(RealClock::new()),
        }
    }
}

impl std::fmt::Debug for KafkaOptions {
    /// Names of the other settings only: there are passwords among their values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.properties.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("KafkaOptions")
            .field("brokers", &self.brokers)
            .field("topic", &self.topic)
            .field("tls", &self.tls)
            .field("tokens", &self.tokens.is_some())
            .field("properties", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What a graph's topic is made with.
#[derive(Clone, Copy, Debug)]
pub struct NewTopic {
    /// Partitions: shards of the log. They cannot become fewer or more.
    pub shards: u16,
    /// Copies of each.
    pub replication: u16,
    /// Copies that have to have a record before it is acknowledged.
    pub in_sync: u16,
}

/// Makes a graph's topic, or finds it with as many partitions. It keeps everything until it is told to delete records: what the log forgets by itself is lost.
pub fn create_topic(options: &KafkaOptions, new: NewTopic) -> Result<(), Error> {
    let broker = Broker::new(options.clone(), ShardId(0));
    let (in_sync, bytes) = (new.in_sync.to_string(), (options.most_record_bytes + (1 << 10)).to_string());
    let replication = TopicReplication::Fixed(i32::from(new.replication));
    let topic = Topic::new(&options.topic, i32::from(new.shards), replication)
        .set("cleanup.policy", "delete")
        .set("retention.ms", "-1")
        .set("retention.bytes", "-1")
        .set("min.insync.replicas", &in_sync)
        .set("unclean.leader.election.enable", "false")
        .set("message.timestamp.type", "LogAppendTime")
        .set("max.message.bytes", &bytes);
    let patience =
        AdminOptions::new().request_timeout(Some(options.timeout)).operation_timeout(Some(options.timeout));
    let made = block_on(broker.admin()?.create_topics([&topic], &patience));
    let made = made.map_err(|error| broker.error("create", error.to_string()))?;
    for result in made {
        match result {
            Ok(_) => {}
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => check_topic(options, new.shards)?,
            Err((_, code)) => return Err(broker.error("create", code.to_string())),
        }
    }
    Ok(())
}

/// Refuses a topic with another number of partitions than a graph's log has shards.
pub fn check_topic(options: &KafkaOptions, shards: u16) -> Result<(), Error> {
    let partitions = Broker::new(options.clone(), ShardId(0)).partitions()?;
    if partitions == usize::from(shards) {
        return Ok(());
    }
    Err(Error::Shards { topic: options.topic.clone(), partitions, shards })
}

/// Deletes a topic with all that stands in it.
pub fn delete_topic(options: &KafkaOptions) -> Result<(), Error> {
    let broker = Broker::new(options.clone(), ShardId(0));
    let patience =
        AdminOptions::new().request_timeout(Some(options.timeout)).operation_timeout(Some(options.timeout));
    let deleted = block_on(broker.admin()?.delete_topics(&[&options.topic], &patience));
    let deleted = deleted.map_err(|error| broker.error("delete", error.to_string()))?;
    for result in deleted {
        result.map_err(|(_, code)| broker.error("delete", code.to_string()))?;
    }
    Ok(())
}
