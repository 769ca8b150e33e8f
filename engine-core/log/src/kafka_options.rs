//! The location of a log in Kafka and the options of its client. This module builds without the feature `kafka`, so
//! that every process can name such a log.

use crate::Cause;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock};

/// How to reach a log in Kafka.
#[derive(Clone)]
pub struct KafkaOptions {
    /// `host:port` of some brokers, separated by commas.
    pub brokers: String,
    /// The graph's topic.
    pub topic: String,
    /// TLS; `None` for plain TCP.
    pub tls: Option<KafkaTls>,
    /// Source of login tokens, if the brokers ask for them.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Other settings of the client, by librdkafka's names. They override all others.
    pub properties: Vec<(String, String)>,
    /// How long the brokers may take for one step. An append that takes longer may or may not have happened.
    pub timeout: Duration,
    /// Largest payload of a record, in bytes. At most the topic's `max.message.bytes`.
    pub most_record_bytes: usize,
    /// The offset of every `mark_every`-th version is kept. Bounds the records that are read before the version asked
    /// for, and those that stay when the log is trimmed.
    pub mark_every: u64,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
}

impl KafkaOptions {
    /// A topic at these brokers, with 10 seconds for a step and records of up to 64 MiB.
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
    /// Shows only the names of the other settings: their values may be passwords.
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

/// Settings of a new topic.
#[derive(Clone, Copy, Debug)]
pub struct NewTopic {
    /// Partitions, one for each shard of the log. Their number cannot change later.
    pub shards: u16,
    /// Copies of each partition.
    pub replication: u16,
    /// Copies that must have a record before Kafka acknowledges it.
    pub in_sync: u16,
}

/// TLS to the brokers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KafkaTls {
    /// PEM file with the authorities trusted to sign the brokers' certificates; `None` for those of the system.
    pub authorities: Option<PathBuf>,
    /// PEM files with this process's certificate and its key, for brokers that ask for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A token that proves to brokers who a client is (SASL/OAUTHBEARER).
#[derive(Clone)]
pub struct Token {
    /// The token itself, which is secret.
    pub value: String,
    /// The name that it is for.
    pub principal: String,
    /// When it expires, in milliseconds since 1970.
    pub ends_ms: i64,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the value, which is secret.
        f.debug_struct("Token").field("principal", &self.principal).field("ends_ms", &self.ends_ms).finish()
    }
}

/// A source of login tokens.
pub trait Tokens: Send + Sync {
    /// Returns a token that is valid for some minutes. May wait for the network; the clients' own threads call it.
    ///
    /// # Errors
    /// Any error that keeps the source from returning a token. The client tries again later.
    fn token(&self) -> Result<Token, Cause>;
}
