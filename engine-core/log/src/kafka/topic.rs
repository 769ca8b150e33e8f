//! Creating and deleting the topic of a graph.

use super::broker::{Broker, block_on};
use crate::{Error, KafkaOptions, NewTopic};
use rdkafka::admin::{AdminOptions, NewTopic as Topic, TopicReplication};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use tidegraph_types::ShardId;

/// Creates a graph's topic; does nothing if it exists with as many partitions. The topic keeps every record until the
/// log trims it: a record that Kafka deleted by itself would be lost.
///
/// # Errors
/// [`Error::Shards`] if the topic exists with another number of partitions; [`Error::Broker`] if Kafka refuses.
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

/// Refuses a topic whose partitions are not as many as the shards of a graph's log.
pub(super) fn check_topic(options: &KafkaOptions, shards: u16) -> Result<(), Error> {
    let partitions = Broker::new(options.clone(), ShardId(0)).partitions()?;
    if partitions == usize::from(shards) {
        return Ok(());
    }
    Err(Error::Shards { topic: options.topic.clone(), partitions, shards })
}

/// Deletes a topic and all its records.
///
/// # Errors
/// [`Error::Broker`] if Kafka refuses.
pub fn delete_topic(options: &KafkaOptions) -> Result<(), Error> {
    let broker = Broker::new(options.clone(), ShardId(0));
    let patience =
        AdminOptions::new().request_timeout(Some(options.timeout)).operation_timeout(Some(options.timeout));
    let deleted = block_on(broker.admin()?.delete_topics(&[&options.topic], &patience));
    let deleted = deleted.map_err(|error| broker.error("delete", error))?;
    for result in deleted {
        result.map_err(|(_, code)| broker.error("delete", KafkaError::AdminOp(code)))?;
    }
    Ok(())
}
