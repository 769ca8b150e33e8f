//! `tidegraph worker`: answers queries over a fleet and holds no data.

use super::access::read_token;
use super::map::MapArgs;
use super::serve::{Listen, Opened};
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_fleet::WorkerConfig;
use tidegraph_fleet::access::{Access, ManagedSecret, SecretPlace};
use tidegraph_platform::{Objects, chain};
use tidegraph_remote::{SecurityConfig, TlsArgs};
use tokio::sync::oneshot;

/// Time between two attempts to connect to the fleet.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Flags of `worker`.
#[derive(Args, Debug)]
pub struct Worker {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    map: MapArgs,
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
    /// If a flag is wrong, the fleet cannot be reached, or the address is not free.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let authentication = self.listen.authentication()?;
        let limits = self.listen.limits()?;
        let mut config = WorkerConfig { zone: self.zone.clone(), ..WorkerConfig::default() };
        config.watch.refresh_every = Duration::from_millis(self.map_poll_ms);
        config.patience = Duration::from_millis(self.write_patience_ms);
        let (graph, table) = (self.map.graph.clone(), self.map.table());
        let (security, secret) = (self.security()?, self.secret()?);
        let access = Access { graph, table, security, secret, worker: config };
        let mut options = Options::default();
        self.listen.apply(&mut options);
        options.load_from = limits.load_from.clone();
        let objects = self.objects()?;
        let (sender, opened) = oneshot::channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let (stop, connected) = (stopping.clone(), Arc::new(OnceLock::new()));
        let fleet = connected.clone();
        let opening = tidegraph_platform::spawn("connect", move || {
            let database = connect(&access, &stop).and_then(|worker| {
                let Some(worker) = worker else { return Ok(None) };
                let _ = fleet.set(worker.clone());
                Ok(Some(Database::connect(options, worker, objects)?))
            });
            if let Some(database) = database.transpose() {
                // Nobody listens after a signal.
                let _ = sender.send(database);
            }
        })?;
        let code = self.listen.until_signal(Opened::Later(opened), limits, authentication);
        stopping.store(true, Ordering::Relaxed);
        opening.thread().unpark();
        let _ = opening.join();
        if let Some(worker) = connected.get() {
            worker.stop();
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

/// Connects to the fleet. While there is no map, or it cannot be reached, it tries again: a worker may start before the
/// first deployment has made the graph. Returns `None` if `stop` is set meanwhile.
#[expect(clippy::disallowed_methods, reason = "the process's own thread, before there is a fleet")]
fn connect(access: &Access, stop: &AtomicBool) -> anyhow::Result<Option<Arc<tidegraph_fleet::Worker>>> {
    let mut told = false;
    while !stop.load(Ordering::Relaxed) {
        match access.connect() {
            Ok(worker) => return Ok(Some(worker)),
            Err(error) if may_pass(&error) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!(error = %chain(&error), "there is no graph yet; requests get status 503");
                }
            }
            Err(error) => return Err(error.into()),
        }
        std::thread::park_timeout(AGAIN_AFTER);
    }
    Ok(None)
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
