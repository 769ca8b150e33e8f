//! The clients of one partition of a topic.

use super::login::{self, Login};
use super::{KafkaOptions, LOOK};
use crate::record::{PREFIX_BYTES, Prefix, decode_part, decode_signal};
use crate::sight::{Head, Rule};
use crate::{Body, Error};
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

/// What a mark has as its number among the messages of an append: none waits for it.
pub(super) const MARK: usize = usize::MAX;

/// Where a shard is.
#[derive(Debug)]
pub(super) struct Broker {
    pub options: KafkaOptions,
    pub shard: ShardId,
    /// Whether the shard is the whole log.
    pub rule: Rule,
}

impl Broker {
    /// A topic of which the shard is all.
    pub fn new(options: KafkaOptions, shard: ShardId) -> Self {
        Self { options, shard, rule: Rule::One }
    }

    /// One shard of several.
    pub fn of_several(options: KafkaOptions, shard: ShardId) -> Self {
        Self { rule: Rule::Several, ..Self::new(options, shard) }
    }

    fn partition(&self) -> i32 {
        i32::from(self.shard.0)
    }

    pub fn error(&self, operation: &'static str, reason: impl Into<String>) -> Error {
        let (topic, reason) = (self.options.topic.clone(), reason.into());
        Error::Broker { operation, topic, partition: self.shard.0, reason }
    }

    pub fn damaged(&self, offset: i64, reason: impl Into<String>) -> Error {
        metric::refused(metric::Refused::LogRecord);
        let (topic, reason) = (self.options.topic.clone(), reason.into());
        Error::Damaged { topic, partition: self.shard.0, offset, reason }
    }

    /// The partition, where an error has to name a file.
    pub fn as_path(&self) -> PathBuf {
        PathBuf::from(format!("kafka:{}/{}", self.options.topic, self.shard.0))
    }

    /// What stands before the body of a message.
    pub fn prefix(&self, offset: i64, payload: &[u8]) -> Result<Prefix, Error> {
        let prefix = Prefix::parse(payload)
            .ok_or_else(|| self.damaged(offset, format!("{} bytes are no record", payload.len())))?;
        if prefix.shard != self.shard {
            return Err(self.damaged(offset, format!("a record of shard {}", prefix.shard)));
        }
        Ok(prefix)
    }

    /// What decides whether a message counts.
    pub fn head(&self, offset: i64, payload: &[u8]) -> Result<Head, Error> {
        let Prefix { epoch, version, durable_bytes, .. } = self.prefix(offset, payload)?;
        let complete = Version(durable_bytes);
        let signal = match self.rule {
            Rule::Several if version == Version(0) => {
                let signal = decode_signal(&payload[PREFIX_BYTES..]);
                Some(signal.map_err(|source| self.undecodable(offset, version, source))?)
            }
            _ => None,
        };
        Ok(Head { version, epoch, complete, signal })
    }

    /// What a record's message says, and where its changes stood in the whole record.
    pub fn body(&self, offset: i64, payload: &[u8], version: Version) -> Result<(Body, Vec<u32>), Error> {
        decode_part(&payload[PREFIX_BYTES..]).map_err(|source| self.undecodable(offset, version, source))
    }

    fn undecodable(&self, offset: i64, version: Version, source: tidegraph_wire::Error) -> Error {
        match source {
            tidegraph_wire::Error::UnknownKind { .. } => {
                Error::Newer { version, file: self.as_path(), offset: offset as u64, source }
            }
            source => self.damaged(offset, source.to_string()),
        }
    }

    /// How many partitions the topic has.
    pub fn partitions(&self) -> Result<usize, Error> {
        let consumer = self.logged_in(&self.config())?;
        let clock = &*self.options.clock;
        let end = clock.now() + self.options.timeout;
        loop {
            let left = end.saturating_sub(clock.now());
            let reason = match consumer.fetch_metadata(Some(&self.options.topic), left.max(LOOK)) {
                Ok(metadata) => match metadata.topics().first().map(|topic| (topic.error(), topic)) {
                    Some((None, topic)) if !topic.partitions().is_empty() => {
                        return Ok(topic.partitions().len());
                    }
                    // One that was just made is not known to all brokers yet.
                    Some((Some(code), _)) => RDKafkaErrorCode::from(code).to_string(),
                    _ => "there is no such topic".into(),
                },
                Err(error) => error.to_string(),
            };
            if clock.now() >= end {
                return Err(self.error("read", reason));
            }
            clock.sleep(LOOK);
        }
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

    /// A consumer that has logged in.
    fn logged_in(&self, config: &ClientConfig) -> Result<Reader, Error> {
        let failed = |reason: String| self.error("read", reason);
        let consumer: Reader =
            config.create_with_context(self.login()).map_err(|error| failed(error.to_string()))?;
        self.login().begin(consumer.client()).map_err(failed)?;
        Ok(consumer)
    }

    fn most_message_bytes(&self) -> usize {
        self.options.most_record_bytes + (1 << 10)
    }

    pub fn producer(&self) -> Result<ThreadedProducer<Deliveries>, Error> {
        let millis = self.options.timeout.as_millis().max(1000).to_string();
        let failed = |reason: String| self.error("write to", reason);
        let producer: ThreadedProducer<Deliveries> = self
            .config()
            // Nothing twice, nothing out of order, and on every replica that is in sync.
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", "0")
            .set("message.timeout.ms", &millis)
            .set("message.max.bytes", self.most_message_bytes().to_string())
            .create_with_context(Deliveries { login: self.login(), ..Deliveries::default() })
            .map_err(|error| failed(error.to_string()))?;
        self.login().begin(producer.client()).map_err(failed)?;
        Ok(producer)
    }

    /// A consumer of the partition that begins at an offset.
    pub fn consumer(&self, offset: i64) -> Result<Reader, Error> {
        let most = self.most_message_bytes();
        let failed = |error: KafkaError| self.error("read", error.to_string());
        let mut config = self.config();
        config
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            // What is not there any more is an error and no reason to begin elsewhere.
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_uncommitted")
            .set("check.crcs", "true")
            .set("fetch.min.bytes", "1")
            .set("fetch.queue.backoff.ms", "1")
            .set("fetch.message.max.bytes", most.to_string())
            .set("fetch.max.bytes", most.to_string())
            .set("message.max.bytes", most.to_string())
            .set("receive.message.max.bytes", (most + (1 << 20)).to_string())
            // The client wants one; nothing is committed to it.
            .set("group.id", "tidegraph");
        let consumer = self.logged_in(&config)?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.options.topic, self.partition(), Offset::Offset(offset))
            .map_err(failed)?;
        consumer.assign(&list).map_err(failed)?;
        Ok(consumer)
    }

    /// Offsets of the oldest message and behind the newest one that all replicas in sync have.
    pub fn watermarks(&self) -> Result<(i64, i64), Error> {
        let failed = |error: KafkaError| self.error("read", error.to_string());
        let consumer = self.logged_in(&self.config())?;
        let clock = &*self.options.clock;
        let end = clock.now() + self.options.timeout;
        loop {
            let left = end.saturating_sub(clock.now());
            match consumer.fetch_watermarks(&self.options.topic, self.partition(), left.max(LOOK)) {
                Err(error) if will_pass(&error) && !left.is_zero() => clock.sleep(LOOK),
                other => return other.map_err(failed),
            }
        }
    }

    pub fn admin(&self) -> Result<AdminClient<Login>, Error> {
        let failed = |reason: String| self.error("manage", reason);
        let made = self.config().create_with_context(self.login());
        let admin: AdminClient<Login> = made.map_err(|error| failed(error.to_string()))?;
        self.login().begin(admin.inner()).map_err(failed)?;
        Ok(admin)
    }

    /// Deletes the messages before an offset.
    pub fn delete_before(&self, offset: i64) -> Result<(), Error> {
        let failed = |reason: String| self.error("trim", reason);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.options.topic, self.partition(), Offset::Offset(offset))
            .map_err(|error| failed(error.to_string()))?;
        let patience = AdminOptions::new().request_timeout(Some(self.options.timeout));
        let done = block_on(self.admin()?.delete_records(&list, &patience));
        let done = done.map_err(|error| failed(error.to_string()))?;
        for element in done.elements() {
            element.error().map_err(|error| failed(error.to_string()))?;
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
        let failed = |reason: String| self.error("write to", reason);
        let deliveries = producer.context();
        deliveries.begin(1);
        self.send(producer, 0, payload).map_err(|error| failed(error.to_string()))?;
        let end = self.options.clock.now() + self.options.timeout * 2;
        while !deliveries.wait(LOOK) {
            if self.options.clock.now() > end {
                return Err(failed("the broker does not answer".into()));
            }
        }
        deliveries.take().map(drop).map_err(failed)
    }
}

/// Whether the brokers are still finding out who leads the partition: after a start, or when it is new.
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

/// What became of the messages of one append.
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
    failed: Option<String>,
    lost_a_mark: bool,
    /// Offsets of marks, in the order in which they were sent.
    marks: Vec<i64>,
}

impl Deliveries {
    pub fn begin(&self, count: usize) {
        let mut delivered = self.delivered.lock();
        delivered.offsets = vec![-1; count];
        (delivered.missing, delivered.failed) = (count, None);
    }

    /// Waits until nothing is missing, or for so long; answers whether nothing is.
    pub fn wait(&self, most: Duration) -> bool {
        let mut delivered = self.delivered.lock();
        if delivered.missing > 0 {
            self.all.wait_for(&mut delivered, most);
        }
        delivered.missing == 0
    }

    /// Offsets of all messages, or the first failure.
    pub fn take(&self) -> Result<Vec<i64>, String> {
        let mut delivered = self.delivered.lock();
        let offsets = std::mem::take(&mut delivered.offsets);
        delivered.failed.take().map_or(Ok(offsets), Err)
    }

    /// Offsets of the marks that were delivered since the last time.
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
        self.login.token()
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
                delivered.failed.get_or_insert_with(|| error.to_string());
            }
        }
    }
}
