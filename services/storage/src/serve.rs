//! `tidegraph-node serve`: runs a storage node that is also a candidate for the sequencer, until a signal ends it.

use crate::connect::{LogArgs, MapArgs, objects};
use anyhow::Context;
use clap::{Args, ValueEnum};
use metrics_exporter_prometheus::PrometheusBuilder;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{Claim, MapStore, NodeId, Registration, Role, WatchConfig};
use tidegraph_fleet::access::{ManagedSecret, SecretPlace};
use tidegraph_fleet::role::{CheckpointRecovery, LeaderMaintenance, MaintenanceConfig, SequencerService};
use tidegraph_fleet::sequencing::{Candidate, CandidateConfig, Unsure};
use tidegraph_fleet::{NodeConfig, NodeParts, NodeService, StorageNode};
use tidegraph_platform::{Clock, Random, RealClock, RealDisk, RealRandom, metric};
use tidegraph_remote::{Security, SecurityConfig, Server, ServerConfig, TlsArgs};
use tidegraph_types::Epoch;

/// How often the process checks whether a signal or a failure ends it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RoleArg {
    Storage,
    Sequencer,
}

/// Flags of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    #[command(flatten)]
    map: MapArgs,
    #[command(flatten)]
    log: LogArgs,
    /// Name of the node; on AWS the id of its instance.
    #[arg(long, env = "TIDEGRAPH_NODE")]
    node: String,
    /// Availability zone.
    #[arg(long, env = "TIDEGRAPH_ZONE", default_value = "local")]
    zone: String,
    /// Address and port to listen on; port 0 takes a free one. An address that is not a loopback address needs
    /// --token-file, --token-secret or the --tls flags.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// `host:port` where others reach the node, if it differs from --listen.
    #[arg(long)]
    advertise: Option<String>,
    /// Checkpoints and segments: `s3://bucket`, or a directory that all nodes share.
    #[arg(long, env = "TIDEGRAPH_OBJECTS")]
    objects: String,
    /// Address and port of `GET /metrics` for Prometheus. Default: no metrics. It asks for no token, so keep it to a
    /// private network.
    #[arg(long)]
    metrics_listen: Option<SocketAddr>,
    /// Roles of the node.
    #[arg(long, value_delimiter = ',', default_values = ["storage", "sequencer"])]
    roles: Vec<RoleArg>,
    /// File whose first line is the secret that the whole fleet shares, and whose second line, if there is one, is the
    /// secret before it, which is still accepted. It is read again while the node runs.
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Name or ARN of the secret in AWS Secrets Manager, in place of --token-file. Its previous version is accepted too,
    /// and it is read again while the node runs.
    #[arg(long, env = "TIDEGRAPH_FLEET_SECRET", conflicts_with = "token_file")]
    token_secret: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Bytes of memory for all replicas. Properties that do not fit go to --spill-dir.
    #[arg(long)]
    memory_budget_bytes: Option<u64>,
    /// Local directory, best on NVMe.
    #[arg(long)]
    spill_dir: Option<PathBuf>,
    /// The node leaves the map if the disk of --spill-dir has fewer free bytes than this.
    #[arg(long, default_value_t = NodeConfig::default().least_free_bytes)]
    least_free_bytes: u64,
    /// Number of versions after which the next checkpoint of a replica is written.
    #[arg(long, default_value_t = NodeConfig::default().checkpoint_versions)]
    checkpoint_versions: u64,
    /// Milliseconds after which the next checkpoint is written in any case, if there is a new version.
    #[arg(long, default_value_t = 300_000)]
    checkpoint_after_ms: u64,
    /// Milliseconds between two refreshes of the map.
    #[arg(long, default_value_t = 1_000)]
    map_poll_ms: u64,
    /// Milliseconds without a heartbeat after which the sequencer marks a node as lost.
    #[arg(long, default_value_t = 10_000)]
    lost_after_ms: u64,
}

/// Installs the recorder of metrics, and serves `GET /metrics` at an address.
#[expect(clippy::disallowed_methods, reason = "the edge of the metrics")]
fn count_for(listen: SocketAddr) -> anyhow::Result<()> {
    // Bind the port here first, so that a port in use ends the node with an error and not a thread of the exporter.
    drop(
        std::net::TcpListener::bind(listen)
            .with_context(|| format!("cannot listen on {listen} for metrics"))?,
    );
    let exporter = PrometheusBuilder::new().set_buckets(&metric::BUCKETS)?.with_http_listener(listen);
    exporter.install().context("the exporter of metrics cannot be started")?;
    metric::describe();
    Ok(())
}

impl Serve {
    fn security(&self, clock: Arc<dyn Clock>) -> anyhow::Result<Security> {
        let place = match (&self.token_file, &self.token_secret) {
            (Some(path), _) => SecretPlace::File(path.clone()),
            (None, Some(id)) => {
                SecretPlace::SecretsManager(ManagedSecret { id: id.clone(), ..ManagedSecret::default() })
            }
            (None, None) => SecretPlace::Configuration,
        };
        let tls = self.tls.files()?;
        let host = self.listen.rsplit_once(':').map_or("", |(host, _)| host);
        let is_local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
        anyhow::ensure!(
            is_local || tls.is_some() || place != SecretPlace::Configuration,
            "{} can be reached from other machines: give --token-file, --token-secret or the --tls flags",
            self.listen
        );
        Ok(place.security(&SecurityConfig { token: String::new(), tls }, clock)?)
    }

    /// Runs until a signal or a failure of the node ends it.
    pub fn run(self) -> anyhow::Result<()> {
        if let Some(listen) = self.metrics_listen {
            count_for(listen)?;
        }
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let run_clock = clock.clone();
        let random: Arc<dyn Random> = Arc::new(RealRandom);
        let map_store: Arc<dyn MapStore> = self.map.open(&clock)?;
        let graph = self.map.graph.clone();
        let made =
            map_store.load(&graph, None).context("the graph's map cannot be loaded; `init` creates it")?;
        let objects = objects(&self.objects)?;
        let sharding = made.graph().sharding()?;
        let log = self.log.location(&graph)?.backend(sharding)?;
        let (service, sequencer_service) = (NodeService::default(), SequencerService::default());
        sequencer_service.tell_changes_of(log.clone(), clock.clone());
        let server_config = ServerConfig {
            listen: self.listen.clone(),
            node: self.node.clone(),
            graph: graph.clone(),
            ..ServerConfig::default()
        };
        let is = |role| self.roles.contains(&role);
        let services =
            service.services(is(RoleArg::Sequencer).then(|| Arc::new(sequencer_service.clone()) as _));
        let mut server =
            Server::start(server_config, self.security(clock.clone())?, services, clock.clone(), &*random)?;
        let endpoint = self.advertise.clone().unwrap_or_else(|| server.address().to_string());
        let mut roles = std::collections::BTreeSet::new();
        roles.extend(is(RoleArg::Storage).then_some(Role::Storage));
        roles.extend(is(RoleArg::Sequencer).then_some(Role::Sequencer));
        let registration = Registration {
            id: NodeId::new(&self.node)?,
            zone: self.zone.clone(),
            endpoint: endpoint.clone(),
            capacity_bytes: self.memory_budget_bytes.unwrap_or_default(),
            roles,
        };
        let config = NodeConfig {
            memory_budget_bytes: self.memory_budget_bytes,
            spill_dir: self.spill_dir.clone(),
            least_free_bytes: self.least_free_bytes,
            checkpoint_versions: self.checkpoint_versions,
            checkpoint_after: Duration::from_millis(self.checkpoint_after_ms),
            watch: WatchConfig { refresh_every: Duration::from_millis(self.map_poll_ms) },
            ..NodeConfig::default()
        };
        let parts = NodeParts {
            graph: graph.clone(),
            registration,
            map_store: map_store.clone(),
            log: log.clone(),
            objects: objects.clone(),
            clock: clock.clone(),
            random: random.clone(),
            disk: Arc::new(RealDisk),
        };
        let node = StorageNode::start(config, parts, &service)?;
        let leading = if is(RoleArg::Sequencer) {
            let claim = Claim {
                // No other process has or had this name (MAP-3).
                holder: format!("{}-{:016x}", self.node, random.next_u64()),
                endpoint,
                ttl: Duration::ZERO,
                above: Epoch(0),
            };
            let takeover = CheckpointRecovery {
                graph: graph.clone(),
                map_store: map_store.clone(),
                objects: objects.clone(),
                log,
            };
            // The log in Kafka refuses a deposed sequencer (LOG-1), so writes go on while the map does not answer.
            let config = CandidateConfig { unsure: Unsure::GoOn, ..CandidateConfig::default() };
            let candidate = Candidate::start(
                map_store.clone(),
                clock.clone(),
                &graph,
                claim,
                Arc::new(takeover),
                config,
            )?;
            let candidate = Arc::new(candidate);
            sequencer_service.attach(&candidate);
            let config = MaintenanceConfig {
                lost_after: Duration::from_millis(self.lost_after_ms),
                ..MaintenanceConfig::default()
            };
            let maintenance =
                LeaderMaintenance::start(&graph, map_store, objects, candidate.clone(), clock, config)?;
            Some((candidate, maintenance))
        } else {
            None
        };
        #[allow(clippy::print_stdout)] // Scripts wait for this line and read the address from it.
        {
            println!("node {} listens on {}", self.node, server.address());
        }
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
        let failure = loop {
            if signals.pending().next().is_some() {
                break None;
            }
            if let failure @ Some(_) = node.failure() {
                break failure;
            }
            run_clock.sleep(LOOK_EVERY);
        };
        tracing::info!("stopping");
        if let Some((candidate, mut maintenance)) = leading {
            maintenance.stop();
            candidate.close();
        }
        node.stop();
        server.stop();
        match failure {
            None => Ok(()),
            Some(reason) => Err(anyhow::anyhow!("the node ended by itself: {reason}")),
        }
    }
}
