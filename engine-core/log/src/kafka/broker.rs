//! The clients of one partition of a topic.

use super::POLL;
use super::login::{self, Login};
use crate::acceptor::{Layout, MessageHead};
use crate::error::cause;
use crate::record::{PREFIX_BYTES, Prefix, decode_part, decode_signal};
use crate::{Body, Cause, Error, KafkaOptions};
use parking_lot::{Condvar, Mutex};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::OAuthToken;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientContext, Message, Offset, TopicPartitionList};
use std::path::PathBuf;
use std::time::Duration;
use tidegraph_platform::metric;
use tidegraph_types::{ShardId, Version};

pub(super) use futures_executor::block_on;

/// A consumer that can log in.
pub(super) type Reader = BaseConsumer<Login>;

/// The index of a mark among the messages of an append: no append waits for a mark.
pub(super) const MARK: usize = usize::MAX;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A shard in Kafka, and how to reach it.
#[derive(Debug)]
pub(super) struct Broker {
    pub options: KafkaOptions,
    pub shard: ShardId,
    /// Whether the shard is the whole log or one of several.
    pub layout: Layout,
}

impl Broker {
    /// The only shard of a topic.
    pub fn new(options: KafkaOptions, shard: ShardId) -> Self {
        Self { options, shard, layout: Layout::Single }
    }

    /// One shard of several.
    pub fn of_several(options: KafkaOptions, shard: ShardId) -> Self {
        Self { layout: Layout::Sharded, ..Self::new(options, shard) }
    }

    fn partition(&self) -> i32 {
        i32::from(self.shard.0)
    }

    pub fn error(&self, operation: &'static str, reason: impl Into<AnyError>) -> Error {
        self.error_of(operation, cause(reason))
    }

    pub fn error_of(&self, operation: &'static str, reason: Cause) -> Error {
        Error::Broker { operation, topic: self.options.topic.clone(), partition: self.shard.0, reason }
    }

    pub fn damaged(&self, offset: i64, reason: impl Into<AnyError>) -> Error {
        metric::refused(metric::Refused::LogRecord);
        let topic = self.options.topic.clone();
        Error::Damaged { topic, partition: self.shard.0, offset, reason: cause(reason) }
    }

    pub fn missing(&self, offset: i64, found: i64) -> Error {
        metric::refused(metric::Refused::LogRecord);
        Error::Missing { topic: self.options.topic.clone(), partition: self.shard.0, offset, found }
    }

    /// The partition as a path, for errors that name a file.
    pub fn as_path(&self) -> PathBuf {
        PathBuf::from(format!("kafka:{}/{}", self.options.topic, self.shard.0))
    }

    /// Parses the prefix of a message.
    pub fn prefix(&self, offset: i64, payload: &[u8]) -> Result<Prefix, Error> {
        let prefix = Prefix::parse(payload)
            .ok_or_else(|| self.damaged(offset, format!("{} bytes are no record", payload.len())))?;
        if prefix.shard != self.shard {
            return Err(self.damaged(offset, format!("a record of shard {}", prefix.shard)));
        }
        Ok(prefix)
    }

    /// The part of a message that decides whether it counts.
    pub fn head(&self, offset: i64, payload: &[u8]) -> Result<MessageHead, Error> {
        let Prefix { epoch, version, durable_bytes, .. } = self.prefix(offset, payload)?;
        let complete = Version(durable_bytes);
        let signal = match self.layout {
            Layout::Sharded if version == Version(0) => {
                let signal = decode_signal(&payload[PREFIX_BYTES..]);
                Some(signal.map_err(|source| self.undecodable(offset, version, source))?)
            }
            _ => None,
        };
        Ok(MessageHead { version, epoch, complete, signal })
    }

    /// Decodes the body of a record's message, and the places of its mutations in the whole record.
    pub fn body(&self, offset: i64, payload: &[u8], version: Version) -> Result<(Body, Vec<u32>), Error> {
        decode_part(&payload[PREFIX_BYTES..]).map_err(|source| self.undecodable(offset, version, source))
    }

    fn undecodable(&self, offset: i64, version: Version, source: tidegraph_wire::Error) -> Error {
        match source {
            tidegraph_wire::Error::UnknownKind { .. } => {
                Error::Newer { version, file: self.as_path(), offset: offset as u64, source }
            }
            source => self.damaged(offset, source),
        }
    }

    /// The topic's partitions and their replicas.
    pub fn topic(&self) -> Result<TopicShape, Error> {
        let consumer = self.logged_in(&self.config())?;
        let clock = &*self.options.clock;
        let end = clock.now() + self.options.timeout;
        loop {
            let left = end.saturating_sub(clock.now());
            let reason = match consumer.fetch_metadata(Some(&self.options.topic), left.max(POLL)) {
                Ok(metadata) => match metadata.topics().first().map(|topic| (topic.error(), topic)) {
                    Some((None, topic)) if !topic.partitions().is_empty() => {
                        let partitions = topic.partitions();
                        let replicas = partitions.iter().map(|partition| partition.replicas().len()).min();
                        return Ok(TopicShape {
                            partitions: partitions.len(),
                            replicas: replicas.unwrap_or_default(),
                        });
                    }
                    // Not all brokers know a topic that was just created.
                    Some((Some(code), _)) => RDKafkaErrorCode::from(code).to_string(),
                    _ => "there is no such topic".into(),
                },
                Err(error) => error.to_string(),
            };
            if clock.now() >= end {
                return Err(self.error("read", reason));
            }
            clock.sleep(POLL);
        }
    }

    /// Returns whether there is no topic, or none of its partitions ever had a message.
    pub fn is_new(&self) -> Result<bool, Error> {
        let consumer = self.logged_in(&self.config())?;
        let (name, patience) = (&self.options.topic, self.options.timeout);
        let failed = |error: KafkaError| self.error("read", error);
        let metadata = consumer.fetch_metadata(Some(name), patience).map_err(failed)?;
        let Some(topic) = metadata.topics().first() else { return Ok(true) };
        match topic.error().map(RDKafkaErrorCode::from) {
            None => {}
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                return Ok(true);
            }
            Some(code) => return Err(failed(KafkaError::MetadataFetch(code))),
        }
        for shard in (0..topic.partitions().len() as u16).map(ShardId) {
            let (_, end) = Self::new(self.options.clone(), shard).watermarks()?;
            if end > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.options.brokers).set("client.id", "tidegraph");
        let millis = self.options.timeout.as_millis().max(1000).to_string();
        config.set("socket.timeout.ms", &millis).set("socket.connection.setup.timeout.ms", &millis);
        login::configure(&mut config, self.options.tls.as_ref(), self.options.tokens.is_some());
        for (name, value) in &self.options.properties {
            config.set(name, value);
        }
        config
    }

    fn login(&self) -> Login {
        Login(self.options.tokens.clone())
    }

    /// Returns a consumer that has logged in.
    fn logged_in(&self, config: &ClientConfig) -> Result<Reader, Error> {
        let consumer: Reader =
            config.create_with_context(self.login()).map_err(|error| self.error("read", error))?;
        self.login().begin(consumer.client()).map_err(|error| self.error("read", error))?;
        Ok(consumer)
    }

    fn most_message_bytes(&self) -> usize {
        self.options.most_record_bytes + (1 << 10)
    }

    pub fn producer(&self) -> Result<ThreadedProducer<Deliveries>, Error> {
        let millis = self.options.timeout.as_millis().max(1000).to_string();
        let producer: ThreadedProducer<Deliveries> = self
            .config()
            // No record twice or out of order, and every record on all replicas in sync.
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", "0")
            .set("message.timeout.ms", &millis)
            .set("message.max.bytes", self.most_message_bytes().to_string())
            .create_with_context(Deliveries { login: self.login(), ..Deliveries::default() })
            .map_err(|error| self.error("write to", error))?;
        self.login().begin(producer.client()).map_err(|error| self.error("write to", error))?;
        Ok(producer)
    }

    /// Returns a consumer of the partition that begins at an offset.
    pub fn consumer(&self, offset: i64) -> Result<Reader, Error> {
        let most = self.most_message_bytes();
        let failed = |error: KafkaError| self.error("read", error);
        let mut config = self.config();
        config
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            // A message that is gone is an error, not a reason to start elsewhere.
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_uncommitted")
            .set("check.crcs", "true")
            .set("fetch.min.bytes", "1")
            .set("fetch.queue.backoff.ms", "1")
            .set("fetch.message.max.bytes", most.to_string())
            .set("fetch.max.bytes", most.to_string())
            .set("message.max.bytes", most.to_string())
            .set("receive.message.max.bytes", (most + (1 << 20)).to_string())
            // The client asks for a group; nothing is committed to it.
            .set("group.id", "tidegraph");
        let consumer = self.logged_in(&config)?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.options.topic, self.partition(), Offset::Offset(offset))
            .map_err(failed)?;
        consumer.assign(&list).map_err(failed)?;
        Ok(consumer)
    }

    /// The offset of the oldest message, and the offset after the newest one that all replicas in sync have.
    pub fn watermarks(&self) -> Result<(i64, i64), Error> {
        let failed = |error: KafkaError| self.error("read", error);
        let clock = &*self.options.clock;
        let end = clock.now() + self.options.timeout;
        loop {
            // A new client each time: librdkafka keeps a partition without a leader in its cache for minutes, and
            // answers from there instead of asking again.
            let consumer = self.logged_in(&self.config())?;
            let left = end.saturating_sub(clock.now());
            match consumer.fetch_watermarks(&self.options.topic, self.partition(), left.max(POLL)) {
                Err(error) if will_pass(&error) && !left.is_zero() => clock.sleep(POLL),
                other => return other.map_err(failed),
            }
        }
    }

    pub fn admin(&self) -> Result<AdminClient<Login>, Error> {
        let made = self.config().create_with_context(self.login());
        let admin: AdminClient<Login> = made.map_err(|error: KafkaError| self.error("manage", error))?;
        self.login().begin(admin.inner()).map_err(|error| self.error("manage", error))?;
        Ok(admin)
    }

    /// Deletes all messages before an offset.
    pub fn delete_before(&self, offset: i64) -> Result<(), Error> {
        let failed = |error: KafkaError| self.error("trim", error);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.options.topic, self.partition(), Offset::Offset(offset))
            .map_err(failed)?;
        let patience = AdminOptions::new().request_timeout(Some(self.options.timeout));
        let done = block_on(self.admin()?.delete_records(&list, &patience));
        let done = done.map_err(failed)?;
        for element in done.elements() {
            element.error().map_err(failed)?;
        }
        Ok(())
    }

    pub fn send(
        &self,
        producer: &ThreadedProducer<Deliveries>,
        index: usize,
        payload: &[u8],
    ) -> Result<(), KafkaError> {
        let record = BaseRecord::<(), [u8], usize>::with_opaque_to(&self.options.topic, index)
            .partition(self.partition())
            .payload(payload);
        producer.send(record).map_err(|(error, _)| error)
    }
}

impl Broker {
    /// Sends one message and waits until all replicas in sync have it.
    pub fn send_one(&self, producer: &ThreadedProducer<Deliveries>, payload: &[u8]) -> Result<(), Error> {
        let deliveries = producer.context();
        deliveries.begin(1);
        self.send(producer, 0, payload).map_err(|error| self.error("write to", error))?;
        let end = self.options.clock.now() + self.options.timeout * 2;
        while !deliveries.wait(POLL) {
            if self.options.clock.now() > end {
                return Err(self.error("write to", "the broker does not answer"));
            }
        }
        deliveries.take().map(drop).map_err(|reason| self.error_of("write to", reason))
    }
}

/// Whether the brokers are still electing the leader of the partition, after a start or when it is new.
fn will_pass(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::NotLeaderForPartition
                | RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::UnknownPartition
        )
    )
}

/// How many partitions a topic has, and how many replicas each of them has at least.
pub(super) struct TopicShape {
    pub partitions: usize,
    pub replicas: usize,
}

/// The deliveries of the messages of one append.
#[derive(Default)]
pub(super) struct Deliveries {
    delivered: Mutex<Delivered>,
    all: Condvar,
    login: Login,
}

#[derive(Default)]
struct Delivered {
    offsets: Vec<i64>,
    missing: usize,
    failed: Option<Cause>,
    lost_a_mark: bool,
    /// Offsets of delivered marks, in the order in which they were sent.
    marks: Vec<i64>,
}

impl Deliveries {
    pub fn begin(&self, count: usize) {
        let mut delivered = self.delivered.lock();
        delivered.offsets = vec![-1; count];
        (delivered.missing, delivered.failed) = (count, None);
    }

    /// Waits at most `most` until all messages are delivered or failed; returns whether they are.
    pub fn wait(&self, most: Duration) -> bool {
        let mut delivered = self.delivered.lock();
        if delivered.missing > 0 {
            self.all.wait_for(&mut delivered, most);
        }
        delivered.missing == 0
    }

    /// Takes the offsets of all messages, or the first failure.
    pub fn take(&self) -> Result<Vec<i64>, Cause> {
        let mut delivered = self.delivered.lock();
        let offsets = std::mem::take(&mut delivered.offsets);
        delivered.failed.take().map_or(Ok(offsets), Err)
    }

    /// Takes the offsets of marks that were delivered since the last call.
    pub fn take_marks(&self) -> Vec<i64> {
        std::mem::take(&mut self.delivered.lock().marks)
    }

    pub fn set_lost_a_mark(&self, lost: bool) {
        self.delivered.lock().lost_a_mark = lost;
    }

    pub fn lost_a_mark(&self) -> bool {
        self.delivered.lock().lost_a_mark
    }
}

impl ClientContext for Deliveries {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        Ok(self.login.token()?)
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let mut delivered = self.delivered.lock();
        if index == MARK {
            match result {
                Ok(message) => delivered.marks.push(message.offset()),
                Err(_) => delivered.lost_a_mark = true,
            }
            return;
        }
        delivered.missing = delivered.missing.saturating_sub(1);
        if delivered.missing == 0 {
            self.all.notify_all();
        }
        match result {
            Ok(message) => {
                if let Some(offset) = delivered.offsets.get_mut(index) {
                    *offset = message.offset();
                }
            }
            Err((error, _)) => {
                delivered.failed.get_or_insert_with(|| cause(error.clone()));
            }
        }
    }
}
