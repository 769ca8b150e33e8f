//! Creating and deleting the topic of a graph.

use super::broker::{Broker, block_on};
use crate::{Error, KafkaOptions, NewTopic};
use rdkafka::admin::{AdminOptions, NewTopic as Topic, ResourceSpecifier, TopicReplication};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use tidegraph_types::ShardId;

/// Most bytes of a message beyond those of its record.
const RECORD_OVERHEAD_BYTES: usize = 1 << 10;

/// Creates a graph's topic; does nothing if it exists with as many partitions. The topic keeps every record until the
/// log trims it: a record that Kafka deleted by itself would be lost.
///
/// # Errors
/// [`Error::Shards`] if the topic exists with another number of partitions; [`Error::TopicSetting`] if it exists, or is
/// to be made, with settings that can lose records; [`Error::Broker`] if Kafka refuses.
pub fn create_topic(options: &KafkaOptions, new: NewTopic) -> Result<(), Error> {
    let in_sync = |name: &str| (name == "min.insync.replicas").then(|| new.in_sync.to_string());
    check_entries(options, usize::from(new.replication), in_sync)?;
    let broker = Broker::new(options.clone(), ShardId(0));
    let (in_sync, bytes) =
        (new.in_sync.to_string(), (options.most_record_bytes + RECORD_OVERHEAD_BYTES).to_string());
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
    let made = made.map_err(|error| broker.error("create", error))?;
    for result in made {
        match result {
            Ok(_) => {}
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => check_topic(options, new.shards)?,
            Err((_, code)) => return Err(broker.error("create", KafkaError::AdminOp(code))),
        }
    }
    Ok(())
}

/// Returns whether there is no topic, or it never had a message.
pub(crate) fn is_new(options: &KafkaOptions) -> Result<bool, Error> {
    Broker::new(options.clone(), ShardId(0)).is_new()
}

/// Refuses a topic that has not as many partitions as the graph's log has shards, or that does not keep what it
/// acknowledges.
pub(super) fn check_topic(options: &KafkaOptions, shards: u16) -> Result<(), Error> {
    let broker = Broker::new(options.clone(), ShardId(0));
    let topic = broker.topic()?;
    if topic.partitions != usize::from(shards) {
        let partitions = topic.partitions;
        return Err(Error::Shards { topic: options.topic.clone(), partitions, shards });
    }
    check_settings(&broker, topic.replicas)
}

/// Refuses a topic that deletes records by itself, or may lose acknowledged ones. Other software may have created it,
/// and its settings can change while it is in use.
pub(super) fn check_settings(broker: &Broker, replicas: usize) -> Result<(), Error> {
    let options = &broker.options;
    let patience = AdminOptions::new().request_timeout(Some(options.timeout));
    let resource = ResourceSpecifier::Topic(&options.topic);
    let described = block_on(broker.admin()?.describe_configs([&resource], &patience));
    let described = described.map_err(|error| broker.error("describe", error))?;
    for found in described {
        match found {
            Ok(found) => check_entries(options, replicas, |name| found.get(name)?.value.clone())?,
            Err(RDKafkaErrorCode::TopicAuthorizationFailed) => tracing::warn!(
                topic = options.topic,
                "Kafka does not let this process read the topic's settings, so they are not checked"
            ),
            Err(code) => return Err(broker.error("describe", KafkaError::AdminOp(code))),
        }
    }
    Ok(())
}

/// Checks settings by name. A setting that the broker does not tell is not checked.
fn check_entries(
    options: &KafkaOptions,
    replicas: usize,
    value: impl Fn(&str) -> Option<String>,
) -> Result<(), Error> {
    let refuse = |setting: &'static str, found: String, needed: String| {
        Err(Error::TopicSetting { topic: options.topic.clone(), setting, found, needed })
    };
    for (setting, needed) in [
        ("cleanup.policy", "delete"),
        ("retention.ms", "-1"),
        ("retention.bytes", "-1"),
        ("unclean.leader.election.enable", "false"),
    ] {
        if let Some(found) = value(setting).filter(|found| found != needed) {
            return refuse(setting, found, needed.to_owned());
        }
    }
    // Of several replicas, one alone may be lost with what only it has.
    let at_least = [
        ("min.insync.replicas", replicas.min(2)),
        ("max.message.bytes", options.most_record_bytes + RECORD_OVERHEAD_BYTES),
    ];
    for (setting, needed) in at_least {
        let Some(found) = value(setting) else { continue };
        if found.parse::<usize>().is_ok_and(|found| found < needed) {
            return refuse(setting, found, format!("{needed} or more"));
        }
    }
    Ok(())
}

/// Deletes a topic and all its records.
///
/// # Errors
/// [`Error::Broker`] if Kafka refuses, also if there is no such topic.
pub fn delete_topic(options: &KafkaOptions) -> Result<(), Error> {
    delete(options, |_| false)
}

/// Deletes a topic and all its records; does nothing if there is none.
pub(crate) fn delete_topic_if_exists(options: &KafkaOptions) -> Result<(), Error> {
    delete(options, |code| code == RDKafkaErrorCode::UnknownTopicOrPartition)
}

/// Deletes a topic. `may_be` says which refusals are no error.
fn delete(options: &KafkaOptions, may_be: impl Fn(RDKafkaErrorCode) -> bool) -> Result<(), Error> {
    let broker = Broker::new(options.clone(), ShardId(0));
    let patience =
        AdminOptions::new().request_timeout(Some(options.timeout)).operation_timeout(Some(options.timeout));
    let deleted = block_on(broker.admin()?.delete_topics(&[&options.topic], &patience));
    let deleted = deleted.map_err(|error| broker.error("delete", error))?;
    for result in deleted {
        match result {
            Err((_, code)) if !may_be(code) => return Err(broker.error("delete", KafkaError::AdminOp(code))),
            _ => {}
        }
    }
    Ok(())
}
