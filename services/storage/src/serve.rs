//! `tidegraph-node serve`: runs a storage node that is also a candidate for the sequencer, until a signal ends it.
//!
//! A daemon with one graph ends when the graph's node fails; systemd then starts it again. A daemon with several has a
//! thread for each ([`member::supervise`]): a graph that is not made yet, fails or is dropped stops no other one.

mod copies;
mod member;
mod restores;

use crate::archive::ArchiveArgs;
use crate::connect::{LogArgs, TableArgs, objects};
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use copies::{CopyArgs, CopyFolder};
use member::{Member, Quota, supervise};
use metrics_exporter_prometheus::PrometheusBuilder;
use metrics_util::MetricKindMask;
use restores::RestoreArgs;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegraph_cluster::{Graph, check_graph_name};
use tidegraph_fleet::access::{ManagedCertificates, ManagedSecret, SecretPlace};
use tidegraph_fleet::{NodeConfig, RestoreReads};
use tidegraph_platform::{Clock, Objects, Random, RealClock, RealRandom, metric};
use tidegraph_remote::{Graphs, Security, SecurityConfig, Server, ServerConfig, TlsArgs};

/// Largest part of a graph in what graphs share.
const MOST_PARTS: u32 = 1_000;

/// Time after which a gauge that nobody sets is no longer told: that of a replica which the node no longer holds. The
/// slowest gauge is set every five minutes, with the certificates.
const GAUGE_LASTS: Duration = Duration::from_secs(900);

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
    /// Name of the graph; may be given more than once, or with commas. The daemon serves all of them on its port. A graph of
    /// several that does not exist yet is waited for.
    #[arg(
        long = "graph",
        env = "TIDEGRAPH_GRAPH",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "default"
    )]
    graphs: Vec<String>,
    /// Part of a graph in --memory-budget-bytes, in relation to the others, such as `orders=3`. Default: 1 for each.
    #[arg(long, env = "TIDEGRAPH_GRAPH_SHARE", value_name = "NAME=PART", value_delimiter = ',')]
    graph_share: Vec<String>,
    #[command(flatten)]
    table: TableArgs,
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
    /// Bytes of memory for all replicas of all graphs. Properties that do not fit go to --spill-dir.
    #[arg(long)]
    memory_budget_bytes: Option<u64>,
    /// Local directory, best on NVMe.
    #[arg(long)]
    spill_dir: Option<PathBuf>,
    /// The node leaves the map if the disk of --spill-dir has fewer free bytes than this.
    #[arg(long, default_value_t = NodeConfig::default().least_free_bytes)]
    least_free_bytes: u64,
    #[command(flatten)]
    restores: RestoreArgs,
    #[command(flatten)]
    copies: CopyArgs,
    #[command(flatten)]
    archive: ArchiveArgs,
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
    let exporter = PrometheusBuilder::new()
        .set_buckets(&metric::BUCKETS)?
        .idle_timeout(MetricKindMask::GAUGE, Some(GAUGE_LASTS))
        .with_http_listener(listen);
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
        let certificates = self.tls.secret().map(|(id, every)| ManagedCertificates {
            secret: ManagedSecret { id, ..ManagedSecret::default() },
            every,
        });
        let host = self.listen.rsplit_once(':').map_or("", |(host, _)| host);
        let is_local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
        anyhow::ensure!(
            is_local || tls.is_some() || certificates.is_some() || place != SecretPlace::Configuration,
            "{} can be reached from other machines: give --token-file, --token-secret or the --tls flags",
            self.listen
        );
        Ok(place.security(&SecurityConfig { token: String::new(), tls }, certificates.as_ref(), clock)?)
    }

    fn is(&self, role: RoleArg) -> bool {
        self.roles.contains(&role)
    }

    /// Returns the graphs with their quotas.
    fn quotas(&self) -> anyhow::Result<Vec<(String, Quota)>> {
        let parts = parts(&self.graphs, &self.graph_share)?;
        ensure!(
            parts.len() == 1 || !self.log.names_topic(),
            "--kafka-topic is the topic of one graph, and there are {}: {}",
            parts.len(),
            self.graphs.join(", ")
        );
        let all: u64 = parts.iter().map(|(_, part)| u64::from(*part)).sum();
        let quota = |part: u32| Quota {
            memory_bytes: self.memory_budget_bytes.map(|bytes| part_of(bytes, u64::from(part), all)),
            restores_at_once: self.restores.at_once(parts.len()),
        };
        Ok(parts.iter().map(|(graph, part)| (graph.clone(), quota(*part))).collect())
    }

    /// Runs until a signal ends it, or its only graph fails or is dropped.
    pub fn run(self) -> anyhow::Result<()> {
        let quotas = self.quotas()?;
        if let Some(listen) = self.metrics_listen {
            count_for(listen)?;
        }
        if quotas.len() > 1 {
            metric::name_graphs();
        }
        let daemon = Arc::new(Daemon::start(self)?);
        let mut supervised = Vec::new();
        let alone = match quotas.as_slice() {
            [(graph, quota)] => Some(Member::start(&daemon, graph, *quota)?),
            several => {
                for (graph, quota) in several {
                    let (of, graph, quota) = (daemon.clone(), graph.clone(), *quota);
                    let name = format!("graph {graph}");
                    supervised.push(tidegraph_platform::spawn(name, move || supervise(&of, &graph, quota))?);
                }
                None
            }
        };
        #[allow(clippy::print_stdout)] // Scripts wait for this line and read the address from it.
        {
            println!("node {} listens on {}", daemon.serve.node, daemon.server.address());
        }
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
        let failure = loop {
            if signals.pending().next().is_some() {
                break None;
            }
            if let failure @ Some(_) = alone.as_ref().and_then(Member::failure) {
                break failure;
            }
            if alone.as_ref().is_some_and(Member::is_dropped) {
                break Some("its graph was dropped".into());
            }
            daemon.clock.sleep(LOOK_EVERY);
        };
        tracing::info!("stopping");
        daemon.stopping.store(true, Ordering::Release);
        if let Some(alone) = alone {
            alone.stop(&daemon);
        }
        for thread in supervised {
            if thread.join().is_err() {
                tracing::error!("the thread of a graph panicked");
            }
        }
        drop(daemon);
        match failure {
            None => Ok(()),
            Some(reason) => Err(anyhow::anyhow!("the node ended by itself: {reason}")),
        }
    }
}

/// Returns the graphs with their parts in what they share.
fn parts(graphs: &[String], shares: &[String]) -> anyhow::Result<Vec<(String, u32)>> {
    let mut parts: Vec<(String, u32)> = Vec::new();
    for graph in graphs {
        check_graph_name(graph)?;
        ensure!(parts.iter().all(|(other, _)| other != graph), "the graph {graph:?} is given twice");
        parts.push((graph.clone(), 1));
    }
    for share in shares {
        let Some((graph, part)) = share.split_once('=') else {
            bail!("--graph-share {share:?}: write it as NAME=PART");
        };
        let known = parts.iter_mut().find(|(name, _)| name == graph);
        let known = known.with_context(|| format!("--graph-share {share:?}: there is no --graph {graph}"))?;
        known.1 = match part.parse() {
            Ok(part @ 1..=MOST_PARTS) => part,
            _ => bail!("--graph-share {share:?}: the part is a number from 1 to {MOST_PARTS}"),
        };
    }
    Ok(parts)
}

/// Returns a part of some bytes, out of `all` parts.
fn part_of(bytes: u64, part: u64, all: u64) -> u64 {
    // The product of the two may be longer than 64 bits.
    let bytes = u128::from(bytes) * u128::from(part) / u128::from(all.max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What all graphs of the daemon share.
struct Daemon {
    serve: Serve,
    objects: Arc<Objects>,
    reads: Arc<RestoreReads>,
    copies: Option<CopyFolder>,
    graphs: Graphs,
    server: Server,
    /// Where others reach the daemon.
    endpoint: String,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// The graph that has the root of the object store.
    at_root: Mutex<Option<String>>,
    stopping: AtomicBool,
}

impl Daemon {
    /// Listens. No graph is served yet.
    fn start(serve: Serve) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let random: Arc<dyn Random> = Arc::new(RealRandom);
        let graphs = Graphs::default();
        let config = ServerConfig {
            listen: serve.listen.clone(),
            node: serve.node.clone(),
            ..ServerConfig::default()
        };
        let objects = objects(&serve.objects)?;
        let copies = serve.copies.open(&serve.graphs)?;
        let server = Server::start(config, serve.security(clock.clone())?, &graphs, clock.clone(), &*random)?;
        let endpoint = serve.advertise.clone().unwrap_or_else(|| server.address().to_string());
        let (at_root, stopping) = (Mutex::default(), AtomicBool::new(false));
        let reads = Arc::new(serve.restores.reads(clock.clone()));
        Ok(Self { serve, objects, reads, copies, graphs, server, endpoint, clock, random, at_root, stopping })
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Refuses a second graph whose objects would be among those of another one.
    fn take_root(&self, graph: &Graph) -> anyhow::Result<()> {
        if graph.shares_objects {
            return Ok(());
        }
        let mut at_root = self.at_root.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = at_root.get_or_insert_with(|| graph.name.clone());
        ensure!(
            *owner == graph.name,
            "the graphs {owner:?} and {:?} were both made to have the object store {} to themselves: make the second one \
             with `init --share-objects`",
            graph.name,
            self.serve.objects
        );
        Ok(())
    }

    fn end_stale_connections(&self) {
        self.server.end_stale_connections();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(graphs: &[&str], shares: &[&str]) -> anyhow::Result<Vec<(String, u32)>> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        parts(&owned(graphs), &owned(shares))
    }

    #[test]
    fn graphs_have_parts_in_what_they_share() {
        let found = of(&["orders", "people"], &["people=3"]).unwrap();
        assert_eq!(found, [("orders".to_owned(), 1), ("people".to_owned(), 3)]);
        assert_eq!([1, 3].map(|part| part_of(100, part, 4)), [25, 75]);
        assert_eq!(part_of(u64::MAX, 999, 1_000) / (u64::MAX / 1_000), 999);
    }

    #[test]
    fn wrong_graphs_and_parts_are_refused_by_their_name() {
        let cases: [(&[&str], &[&str], &str); 8] = [
            (&["a/b"], &[], "a/b"),
            (&["a", ".."], &[], ".."),
            (&["a", "b", "a"], &[], "\"a\" is given twice"),
            (&["a"], &["b=1"], "no --graph b"),
            (&["a"], &["a"], "NAME=PART"),
            (&["a"], &["a=0"], "a=0"),
            (&["a"], &["a=1001"], "a=1001"),
            (&["a"], &["a=much"], "a=much"),
        ];
        for (graphs, shares, wrong) in cases {
            let error = of(graphs, shares).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
