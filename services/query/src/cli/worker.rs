//! `tidegraph worker`: answers queries over a fleet and holds no data.

use super::access::read_token;
use super::map::TableArgs;
use super::serve::Listen;
use crate::http::Graphs;
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
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
    #[command(flatten)]
    table: TableArgs,
    /// Availability zone of the worker. It asks replicas in this zone first.
    #[arg(long, env = "TIDEGRAPH_ZONE", default_value = "")]
    zone: String,
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

impl Worker {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// If a flag is wrong, the address is not free, or the only graph cannot be opened.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let authentication = self.listen.authentication()?;
        let limits = self.listen.limits()?;
        let mut config = WorkerConfig { zone: self.zone.clone(), ..WorkerConfig::default() };
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
