//! `tidegraph worker`: answers queries over a fleet and holds no data.

use super::access::read_token;
use super::map::TableArgs;
use super::serve::Listen;
use crate::http::Graphs;
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_fleet::WorkerConfig;
use tidegraph_fleet::access::{Access, ManagedCertificates, ManagedSecret, SecretPlace};
use tidegraph_platform::{Objects, chain, metric};
use tidegraph_remote::{SecurityConfig, TlsArgs};
use tokio::sync::oneshot;

/// Time between two attempts to connect to the fleet.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Time limit of ECS's metadata, which the same machine answers.
const METADATA_PATIENCE: Duration = Duration::from_secs(2);
/// Time before a graph that cannot be opened is tried again.
const AGAIN_AFTER_ERROR: Duration = Duration::from_secs(5);

/// Flags of `worker`.
#[derive(Args, Debug)]
pub struct Worker {
    #[command(flatten)]
    listen: Listen,
    /// Name of the graph; may be given more than once, or with commas. Paths without a graph, and drivers that name none, mean
    /// the first one; the others are at /graph/NAME/, and in Bolt the databases of their names.
    #[arg(
        long = "graph",
        env = "TIDEGRAPH_GRAPH",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "default"
    )]
    graphs: Vec<String>,
    /// Largest part of the running queries and of the memory of queries that a graph of several may have at once, in percent;
    /// may be given more than once, or with commas. Without it a graph may have all of the memory and about three
    /// quarters of the running queries.
    #[arg(
        long = "graph-quota",
        env = "TIDEGRAPH_GRAPH_QUOTA",
        value_name = "NAME=PERCENT",
        value_delimiter = ','
    )]
    graph_quotas: Vec<GraphQuota>,
    #[command(flatten)]
    table: TableArgs,
    /// Availability zone of the worker. It asks replicas in this zone first.
    #[arg(long, env = "TIDEGRAPH_ZONE", default_value = "")]
    zone: String,
    /// Address of ECS's metadata of a task, which tells the zone if --zone does not.
    #[arg(long, env = "ECS_CONTAINER_METADATA_URI_V4", value_name = "URL", hide = true)]
    ecs_metadata: Option<String>,
    /// Object store with checkpoints and segments: `s3://BUCKET`, or a directory that all nodes share.
    #[arg(long, env = "TIDEGRAPH_OBJECTS")]
    objects: String,
    /// File whose first line is the token that all processes of the fleet share, and whose second line, if there is one,
    /// is the token before it. It is read again while the worker runs.
    #[arg(long)]
    fleet_token_file: Option<PathBuf>,
    /// Name or ARN of the token in AWS Secrets Manager, in place of --fleet-token-file. It is read again while the worker
    /// runs.
    #[arg(long, env = "TIDEGRAPH_FLEET_SECRET", conflicts_with = "fleet_token_file")]
    fleet_token_secret: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Milliseconds between two reads of the partition map.
    #[arg(long, default_value_t = 1_000)]
    map_poll_ms: u64,
    /// Time limit for a write to find a sequencer, in milliseconds.
    #[arg(long, default_value_t = WorkerConfig::default().patience.as_millis() as u64)]
    write_patience_ms: u64,
}

/// The part of a worker that a graph may have.
#[derive(Clone, PartialEq, Eq, Debug)]
struct GraphQuota {
    graph: String,
    percent: u8,
}

impl FromStr for GraphQuota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (graph, percent) = text.split_once('=').ok_or("write it as NAME=PERCENT")?;
        match percent.parse() {
            Ok(percent @ 1..=100) => Ok(Self { graph: graph.to_owned(), percent }),
            _ => Err("the part is a number from 1 to 100, in percent".to_owned()),
        }
    }
}

impl Worker {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// If a flag is wrong, the address is not free, or the only graph cannot be opened.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let authentication = self.listen.authentication()?;
        let mut limits = self.listen.limits()?;
        for GraphQuota { graph, percent } in &self.graph_quotas {
            if limits.queries.graph_quotas.insert(graph.as_str().into(), *percent).is_some() {
                anyhow::bail!("--graph-quota: the graph {graph:?} is given twice");
            }
        }
        let mut config = WorkerConfig { zone: self.zone(), ..WorkerConfig::default() };
        config.watch.refresh_every = Duration::from_millis(self.map_poll_ms);
        config.patience = Duration::from_millis(self.write_patience_ms);
        let mut options = Options::default();
        self.listen.apply(&mut options);
        options.load_from = limits.load_from.clone();
        let (security, secret) = (self.security()?, self.secret()?);
        let objects = self.objects()?;
        let port = self.listen.port(&self.graphs, limits, authentication)?;
        if self.graphs.len() > 1 {
            metric::name_graphs();
        }
        let (failure, failed) = oneshot::channel();
        let mut failure = Some(failure).filter(|_| self.graphs.len() == 1);
        let stopping = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for graph in &self.graphs {
            let access = Access {
                graph: graph.clone(),
                table: self.table.table(),
                security: security.clone(),
                secret: secret.clone(),
                certificates: self.certificates(),
                worker: config.clone(),
            };
            let of_graph = OfGraph {
                access,
                options: options.clone(),
                objects: objects.clone(),
                graphs: port.graphs.clone(),
                stopping: stopping.clone(),
            };
            let failure = failure.take();
            let name = format!("graph {graph}");
            threads.push(tidegraph_platform::spawn(name, move || of_graph.run(failure))?);
        }
        let code = self.listen.until_signal(port, failed);
        stopping.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the thread of a graph panicked");
            }
        }
        code
    }

    /// Returns the availability zone; nothing if it is not known.
    fn zone(&self) -> String {
        let Some(metadata) = self.ecs_metadata.as_ref().filter(|_| self.zone.is_empty()) else {
            return self.zone.clone();
        };
        zone_of_task(metadata).unwrap_or_else(|error| {
            let error = format!("{error:#}");
            tracing::warn!(error, "ECS does not tell the zone; replicas of all zones are asked alike");
            String::new()
        })
    }

    fn objects(&self) -> anyhow::Result<Arc<Objects>> {
        let url = &self.objects;
        let objects = match url.strip_prefix("s3://") {
            Some(bucket) => Objects::s3(bucket.trim_end_matches('/'), None, []),
            None => Objects::local(std::path::Path::new(url.strip_prefix("file://").unwrap_or(url))),
        };
        Ok(Arc::new(objects.with_context(|| format!("the object store {url} cannot be opened"))?))
    }

    fn security(&self) -> anyhow::Result<SecurityConfig> {
        Ok(SecurityConfig { token: String::new(), tls: self.tls.files()? })
    }

    fn certificates(&self) -> Option<ManagedCertificates> {
        self.tls.secret().map(|(id, every)| ManagedCertificates {
            secret: ManagedSecret { id, ..ManagedSecret::default() },
            every,
        })
    }

    fn secret(&self) -> anyhow::Result<SecretPlace> {
        Ok(match (&self.fleet_token_file, &self.fleet_token_secret) {
            (Some(path), _) => {
                // A wrong file is reported before the worker listens.
                read_token(path)?;
                SecretPlace::File(path.clone())
            }
            (None, Some(id)) => {
                SecretPlace::SecretsManager(ManagedSecret { id: id.clone(), ..ManagedSecret::default() })
            }
            (None, None) => SecretPlace::Configuration,
        })
    }
}

/// One graph of the worker, which its own thread opens and closes.
struct OfGraph {
    access: Access,
    options: Options,
    objects: Arc<Objects>,
    graphs: Graphs,
    stopping: Arc<AtomicBool>,
}

impl OfGraph {
    /// Keeps the graph open until the worker stops. If it is dropped, it is waited for again. An error ends the worker, if
    /// `failure` takes it; otherwise the graph is tried again.
    fn run(self, mut failure: Option<oneshot::Sender<anyhow::Error>>) {
        while !self.is_stopping() {
            match self.open() {
                Ok(Some((worker, database))) => {
                    self.graphs.open(&self.access.graph, database.clone());
                    while !self.is_stopping() && !worker.is_dropped() {
                        pause(AGAIN_AFTER);
                    }
                    if !self.is_stopping() {
                        tracing::warn!(
                            graph = self.access.graph,
                            "the graph was dropped; requests get status 404"
                        );
                        self.graphs.close(&self.access.graph);
                    }
                    database.close();
                    worker.stop();
                }
                Ok(None) => return,
                Err(error) => {
                    if let Some(failure) = failure.take() {
                        // Nobody listens after a signal.
                        let _ = failure.send(error);
                        return;
                    }
                    let error = chain(error.as_ref());
                    tracing::error!(graph = self.access.graph, %error, "the graph cannot be opened; it is tried again");
                    pause(AGAIN_AFTER_ERROR);
                }
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Opens the graph; `None` if the worker stops meanwhile.
    fn open(&self) -> anyhow::Result<Option<(Arc<tidegraph_fleet::Worker>, Arc<Database>)>> {
        let Some(worker) = self.connect()? else { return Ok(None) };
        let objects = match worker.graph().folder() {
            Some(folder) => Arc::new(self.objects.below(&folder)?),
            None => self.objects.clone(),
        };
        let database = Database::connect(self.options.clone(), worker.clone(), objects)?;
        Ok(Some((worker, database)))
    }

    /// Connects to the fleet. While there is no map, or it cannot be reached, it tries again: a worker may start before the
    /// first deployment has made the graph.
    fn connect(&self) -> anyhow::Result<Option<Arc<tidegraph_fleet::Worker>>> {
        let mut told = false;
        while !self.is_stopping() {
            match self.access.connect() {
                Ok(worker) => return Ok(Some(worker)),
                Err(error) if may_pass(&error) => {
                    if !std::mem::replace(&mut told, true) {
                        let error = chain(&error);
                        tracing::warn!(graph = self.access.graph, %error, "there is no graph yet; requests are refused");
                    }
                }
                Err(error) => return Err(error.into()),
            }
            pause(AGAIN_AFTER);
        }
        Ok(None)
    }
}

/// Asks ECS for the availability zone of this task
/// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v4-response.html>).
fn zone_of_task(metadata: &str) -> anyhow::Result<String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(METADATA_PATIENCE)).build();
    let url = format!("{metadata}/task");
    let asked = ureq::Agent::from(config).get(&url).call().with_context(|| url.clone())?;
    let task: serde_json::Value = asked.into_body().read_json().with_context(|| url.clone())?;
    let zone = task.get("AvailabilityZone").and_then(serde_json::Value::as_str);
    Ok(zone.with_context(|| format!("{url}: there is no AvailabilityZone"))?.to_owned())
}

#[expect(clippy::disallowed_methods, reason = "the process's own thread")]
fn pause(time: Duration) {
    std::thread::park_timeout(time);
}

/// Whether a map, or the secret of the fleet, may be read later that cannot be read now.
fn may_pass(error: &tidegraph_fleet::Error) -> bool {
    use tidegraph_cluster::Error as Map;
    use tidegraph_fleet::Error;
    matches!(
        error,
        Error::Map(Map::NotFound { .. } | Map::Unavailable { .. } | Map::Throttled { .. })
            | Error::Remote(tidegraph_remote::Error::Secret(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// Answers one request on the loopback. Returns where, and the thread, which returns the first line of the request.
    #[expect(clippy::disallowed_methods, reason = "the test stands for ECS's metadata")]
    fn metadata(status: &'static str, body: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v4/task-1", listener.local_addr().unwrap());
        let answering = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut asked = String::new();
            BufReader::new(&socket).read_line(&mut asked).unwrap();
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            socket.write_all((head + body).as_bytes()).unwrap();
            asked
        });
        (url, answering)
    }

    #[test]
    fn ecs_tells_the_zone() {
        // A part of the answer that AWS documents.
        let (url, answering) = metadata("200 OK", r#"{"TaskARN":"arn","AvailabilityZone":"us-west-2d"}"#);
        assert_eq!(zone_of_task(&url).unwrap(), "us-west-2d");
        assert_eq!(answering.join().unwrap(), "GET /v4/task-1/task HTTP/1.1\r\n");
        for (status, body) in [("200 OK", "{}"), ("200 OK", "no JSON"), ("500 Internal Server Error", "{}")] {
            let (url, answering) = metadata(status, body);
            let error = format!("{:#}", zone_of_task(&url).unwrap_err());
            assert!(error.contains(&url), "{error}");
            answering.join().unwrap();
        }
    }

    #[test]
    fn a_quota_names_a_graph_and_a_part() {
        let quota = |text: &str| text.parse::<GraphQuota>();
        assert_eq!(quota("orders=25"), Ok(GraphQuota { graph: "orders".into(), percent: 25 }));
        assert_eq!(quota("orders=100").map(|quota| quota.percent), Ok(100));
        assert!(quota("orders").unwrap_err().contains("NAME=PERCENT"));
        for wrong in ["orders=0", "orders=101", "orders=-1", "orders=2.5", "orders=", "orders=25%"] {
            assert!(quota(wrong).unwrap_err().contains("from 1 to 100"), "{wrong}");
        }
    }
}
