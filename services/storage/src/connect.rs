//! How a process reaches the map, the log and the object store.

use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_fleet::LogAccess;
use tidegraph_log::kafka::{KafkaFollower, KafkaOptions, KafkaTls, MskIam, open_log};
use tidegraph_log::{Follower, LogStore, Position};
use tidegraph_platform::{Clock, Objects, RealRandom};
use tidegraph_types::{Epoch, ShardId, Sharding};

/// Where the map is.
#[derive(Args, Clone, Debug)]
pub struct MapArgs {
    /// Name of the graph.
    #[arg(long, env = "TIDEGRAPH_GRAPH", default_value = "default")]
    pub graph: String,
    /// What the name of the table of maps begins with.
    #[arg(long, env = "TIDEGRAPH_TABLE_PREFIX", default_value = "tidegraph-")]
    table_prefix: String,
    /// Another endpoint than the region's, such as DynamoDB Local's.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_ENDPOINT")]
    dynamodb_endpoint: Option<String>,
    /// The endpoint is DynamoDB Local, which takes any credentials.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_LOCAL")]
    dynamodb_local: bool,
}

impl MapArgs {
    pub fn open(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<DynamoMap>> {
        let mut options = match &self.dynamodb_endpoint {
            Some(endpoint) if self.dynamodb_local => DynamoOptions::local(endpoint.as_str()),
            None if self.dynamodb_local => bail!("--dynamodb-local needs --dynamodb-endpoint"),
            endpoint => DynamoOptions { endpoint: endpoint.clone(), ..DynamoOptions::default() },
        };
        options.table_prefix.clone_from(&self.table_prefix);
        let map = DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom));
        Ok(Arc::new(map.context("the map cannot be reached")?))
    }
}

/// Where the log is.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Kafka brokers: `host:port`, with commas between them.
    #[arg(long, env = "TIDEGRAPH_KAFKA_BROKERS")]
    kafka_brokers: String,
    /// The graph's topic; without it, `tidegraph-` and the graph's name.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TOPIC")]
    kafka_topic: Option<String>,
    /// Speak TLS with the brokers.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS")]
    kafka_tls: bool,
    /// PEM file with the authorities that brokers' certificates may come from; without it, those of the system.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS_AUTHORITIES")]
    kafka_tls_authorities: Option<PathBuf>,
    /// PEM file with a certificate to show to brokers.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS_CERTIFICATE", requires = "kafka_tls_key")]
    kafka_tls_certificate: Option<PathBuf>,
    /// PEM file with its key.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS_KEY", requires = "kafka_tls_certificate")]
    kafka_tls_key: Option<PathBuf>,
    /// Log in to Amazon MSK with IAM: its region. The credentials are those of the process; TLS is used.
    #[arg(long, env = "TIDEGRAPH_KAFKA_IAM_REGION")]
    kafka_iam_region: Option<String>,
    /// The ARN of a role to log in as.
    #[arg(long, env = "TIDEGRAPH_KAFKA_IAM_ROLE", requires = "kafka_iam_region")]
    kafka_iam_role: Option<String>,
    /// A setting of the Kafka client (librdkafka), `name=value`; several are allowed, and go before the others.
    #[arg(long = "kafka-property", value_name = "NAME=VALUE")]
    kafka_properties: Vec<String>,
}

impl LogArgs {
    pub fn options(&self, graph: &str) -> anyhow::Result<KafkaOptions> {
        let topic = self.kafka_topic.clone().unwrap_or_else(|| format!("tidegraph-{graph}"));
        let mut options = KafkaOptions::new(self.kafka_brokers.as_str(), topic);
        options.tls = self.tls()?;
        if let Some(region) = &self.kafka_iam_region {
            let role = self.kafka_iam_role.clone();
            options.tokens = Some(Arc::new(MskIam::new(region, role, options.clock.clone())));
        }
        for property in &self.kafka_properties {
            let Some((name, value)) = property.split_once('=') else {
                // Not the value: it may be a password.
                bail!("--kafka-property has to be NAME=VALUE, one has no `=`");
            };
            options.properties.push((name.to_owned(), value.to_owned()));
        }
        Ok(options)
    }

    /// TLS, where anything asks for it. Files are looked for now: the client says less about them.
    #[expect(clippy::disallowed_methods, reason = "flags name the files")]
    fn tls(&self) -> anyhow::Result<Option<KafkaTls>> {
        let certificate = self.kafka_tls_certificate.clone().zip(self.kafka_tls_key.clone());
        let authorities = self.kafka_tls_authorities.clone();
        let wanted = self.kafka_tls || self.kafka_iam_region.is_some();
        if !wanted && authorities.is_none() && certificate.is_none() {
            return Ok(None);
        }
        let pair = certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        for file in authorities.iter().chain(pair) {
            std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        Ok(Some(KafkaTls { authorities, certificate }))
    }
}

/// The log in Kafka.
pub struct Kafka {
    pub options: KafkaOptions,
    pub sharding: Sharding,
}

impl LogAccess for Kafka {
    fn follow(&self, shard: ShardId, after: Position) -> Box<dyn Follower> {
        let options = self.options.clone();
        Box::new(match self.sharding.shards() {
            1 => KafkaFollower::new(options, shard, after),
            _ => KafkaFollower::of_several(options, shard, after),
        })
    }

    fn open(&self, epoch: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        open_log(&self.options, self.sharding, epoch)
    }
}

/// Opens the object store of a URL: `s3://bucket`, or a local directory for one machine.
#[expect(clippy::disallowed_methods, reason = "a flag names the directory")]
pub fn objects(url: &str) -> anyhow::Result<Arc<Objects>> {
    let objects = match url.strip_prefix("s3://") {
        Some(bucket) if bucket.trim_end_matches('/').contains('/') => {
            bail!("{url}: checkpoints and segments lie at the root of a bucket of their own")
        }
        Some(bucket) => Objects::s3(bucket.trim_end_matches('/'), None, []),
        None => {
            let dir = Path::new(url.strip_prefix("file://").unwrap_or(url));
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            Objects::local(dir)
        }
    };
    Ok(Arc::new(objects.with_context(|| format!("the object store {url} cannot be opened"))?))
}
