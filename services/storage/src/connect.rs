//! Flags that say where the map, the log and the object store are, and the functions that open them.

use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::Graph;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_log::kafka::MskIam;
use tidegraph_log::{KafkaOptions, KafkaTls, LogLocation};
use tidegraph_platform::{Clock, Objects, RealRandom, read_secret_file};

/// Flags that name the graph and the table of its map.
#[derive(Args, Clone, Debug)]
pub struct MapArgs {
    /// Name of the graph.
    #[arg(long, env = "TIDEGRAPH_GRAPH", default_value = "default")]
    pub graph: String,
    #[command(flatten)]
    table: TableArgs,
}

/// Flags that name the table of maps.
#[derive(Args, Clone, Debug)]
pub struct TableArgs {
    /// Prefix of the name of the table of maps.
    #[arg(long, env = "TIDEGRAPH_TABLE_PREFIX", default_value = "tidegraph-")]
    table_prefix: String,
    /// Endpoint of DynamoDB instead of the region's, such as DynamoDB Local's.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_ENDPOINT")]
    dynamodb_endpoint: Option<String>,
    /// The endpoint is DynamoDB Local, which takes any credentials.
    #[arg(long, env = "TIDEGRAPH_DYNAMODB_LOCAL")]
    dynamodb_local: bool,
}

/// Time limit of one request of a command to the map, and the number of attempts. They are generous, because creating a
/// table takes seconds. Only the daemon must give up soon, since it may lose its lease meanwhile.
const COMMAND_ATTEMPT: Duration = Duration::from_secs(20);
const COMMAND_ATTEMPTS: u32 = 5;

impl MapArgs {
    /// Opens the map for a command.
    pub fn open_for_command(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<DynamoMap>> {
        self.table.open_for_command(clock)
    }
}

impl TableArgs {
    /// Opens the maps for a command, which waits long for an answer.
    pub fn open_for_command(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<DynamoMap>> {
        let patient = DynamoOptions {
            attempt_timeout: COMMAND_ATTEMPT,
            attempts: COMMAND_ATTEMPTS,
            ..DynamoOptions::default()
        };
        self.open_with(clock, patient)
    }

    /// Opens the maps for the daemon, which must notice soon if they do not answer.
    pub fn open(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<DynamoMap>> {
        self.open_with(clock, DynamoOptions::default())
    }

    fn open_with(&self, clock: &Arc<dyn Clock>, base: DynamoOptions) -> anyhow::Result<Arc<DynamoMap>> {
        let mut options = match &self.dynamodb_endpoint {
            Some(endpoint) if self.dynamodb_local => DynamoOptions {
                attempt_timeout: base.attempt_timeout,
                attempts: base.attempts,
                ..DynamoOptions::local(endpoint.as_str())
            },
            None if self.dynamodb_local => bail!("--dynamodb-local needs --dynamodb-endpoint"),
            endpoint => DynamoOptions { endpoint: endpoint.clone(), ..base },
        };
        options.table_prefix.clone_from(&self.table_prefix);
        let map = DynamoMap::open(&options, clock.clone(), Arc::new(RealRandom));
        Ok(Arc::new(map.context("the map cannot be reached")?))
    }
}

/// Flags that name the log and how to connect to its brokers.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Kafka brokers: `host:port`, separated by commas.
    #[arg(long, env = "TIDEGRAPH_KAFKA_BROKERS")]
    kafka_brokers: String,
    /// Topic of the graph; not if there are several. Default: `tidegraph-` and the graph's name.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TOPIC")]
    kafka_topic: Option<String>,
    /// Use TLS with the brokers.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS")]
    kafka_tls: bool,
    /// PEM file with the authorities trusted to sign the brokers' certificates. Default: those of the system.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS_AUTHORITIES")]
    kafka_tls_authorities: Option<PathBuf>,
    /// PEM file with the certificate of this process, for brokers that ask for one.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS_CERTIFICATE", requires = "kafka_tls_key")]
    kafka_tls_certificate: Option<PathBuf>,
    /// PEM file with the key of that certificate.
    #[arg(long, env = "TIDEGRAPH_KAFKA_TLS_KEY", requires = "kafka_tls_certificate")]
    kafka_tls_key: Option<PathBuf>,
    /// Region of an Amazon MSK cluster to log in to with IAM, with the credentials of the process and TLS.
    #[arg(long, env = "TIDEGRAPH_KAFKA_IAM_REGION")]
    kafka_iam_region: Option<String>,
    /// ARN of a role to log in as.
    #[arg(long, env = "TIDEGRAPH_KAFKA_IAM_ROLE", requires = "kafka_iam_region")]
    kafka_iam_role: Option<String>,
    /// Setting of the Kafka client (librdkafka), `name=value`. May be given several times; overrides the other flags.
    #[arg(long = "kafka-property", value_name = "NAME=VALUE")]
    kafka_properties: Vec<String>,
}

impl LogArgs {
    /// Returns the location of the log of a graph.
    pub fn location(&self, graph: &str) -> anyhow::Result<LogLocation> {
        Ok(LogLocation::Kafka(self.kafka(graph)?))
    }

    /// Whether the flags name a topic, which can be that of one graph only.
    pub fn names_topic(&self) -> bool {
        self.kafka_topic.is_some()
    }

    /// Returns the topic of a graph and the options of the Kafka client.
    pub fn kafka(&self, graph: &str) -> anyhow::Result<KafkaOptions> {
        let topic = self.kafka_topic.clone().unwrap_or_else(|| format!("tidegraph-{graph}"));
        let mut options = KafkaOptions::new(self.kafka_brokers.as_str(), topic);
        options.tls = self.tls()?;
        if let Some(region) = &self.kafka_iam_region {
            let role = self.kafka_iam_role.clone();
            options.tokens = Some(Arc::new(MskIam::new(region, role, options.clock.clone())));
        }
        for property in &self.kafka_properties {
            let Some((name, value)) = property.split_once('=') else {
                // The value is not shown: it may be a password.
                bail!("a --kafka-property has no `=`: write it as NAME=VALUE");
            };
            options.properties.push((name.to_owned(), value.to_owned()));
        }
        Ok(options)
    }

    /// Returns the TLS settings, if any flag asks for TLS. Opens the files now, because the errors of the client say
    /// less about them.
    #[expect(clippy::disallowed_methods, reason = "flags name the files")]
    fn tls(&self) -> anyhow::Result<Option<KafkaTls>> {
        let certificate = self.kafka_tls_certificate.clone().zip(self.kafka_tls_key.clone());
        let authorities = self.kafka_tls_authorities.clone();
        let wanted = self.kafka_tls || self.kafka_iam_region.is_some();
        if !wanted && authorities.is_none() && certificate.is_none() {
            return Ok(None);
        }
        for file in authorities.iter().chain(certificate.iter().map(|(certificate, _)| certificate)) {
            std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        if let Some((_, key)) = &certificate {
            read_secret_file(key).with_context(|| format!("cannot use {}", key.display()))?;
        }
        Ok(Some(KafkaTls { authorities, certificate }))
    }
}

/// Returns the part of an object store that has the objects of a graph.
pub fn objects_of(whole: &Arc<Objects>, graph: &Graph) -> anyhow::Result<Arc<Objects>> {
    Ok(match graph.folder() {
        Some(folder) => Arc::new(whole.below(&folder)?),
        None => whole.clone(),
    })
}

/// Opens the object store of a URL: `s3://bucket`, or a local directory for one machine.
#[expect(clippy::disallowed_methods, reason = "a flag names the directory")]
pub fn objects(url: &str) -> anyhow::Result<Arc<Objects>> {
    let objects = match url.strip_prefix("s3://") {
        Some(bucket) if bucket.trim_end_matches('/').contains('/') => {
            bail!("{url} has a path: checkpoints and segments need a bucket of their own")
        }
        Some(bucket) => Objects::s3(bucket.trim_end_matches('/'), None, []),
        None => {
            let dir = Path::new(url.strip_prefix("file://").unwrap_or(url));
            std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
            Objects::local(dir)
        }
    };
    Ok(Arc::new(objects.with_context(|| format!("the object store {url} cannot be opened"))?))
}
