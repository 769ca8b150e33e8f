//! `tidegraph serve`: opens the database, watches the drop folder, and serves HTTP until SIGTERM.

use super::access::Access;
use super::metrics_log::MetricsLogArgs;
use super::size::{ByteSize, MemorySize};
use crate::admission;
use crate::audit::Audit;
use crate::authentication::Authentication;
use crate::http::{AllowedClients, DEFAULT_GRAPH, Graphs, HostName, Limits, PageOrigin};
use crate::metrics::MetricsLog;
use crate::server::{CertificateFiles, Tls};
use crate::{server, session};
use anyhow::Context;
use clap::Args;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tidegraph_engine::loads::Allowed;
use tidegraph_engine::{Database, GremlinVersion, Options};
use tidegraph_types::{Cardinality, ElementIds};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// Time for connections to end if there never was a graph, so that each of their requests was refused.
const CLOSE_REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// Time for the last lines of the audit log to be written.
const CLOSE_AUDIT_WITHIN: Duration = Duration::from_secs(5);

/// Time for the last metrics to be written.
const CLOSE_METRICS_WITHIN: Duration = Duration::from_secs(1);

/// Flags of every service: where it listens, and the limits of requests.
#[derive(Args, Debug)]
pub struct Listen {
    /// Port to listen on. 0 takes a free port; the service prints it.
    #[arg(long, default_value_t = 8182, env = "TIDEGRAPH_PORT")]
    port: u16,
    /// Address to listen on. An address that is not a loopback address needs TLS, and one of --token-file, --users and
    /// --sigv4-credentials or --iam-callers; or --insecure.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    #[command(flatten)]
    access: Access,
    /// PEM file with the certificate that clients see. With it the port speaks TLS, in all protocols. The file and the
    /// key are read again when they change.
    #[arg(long, requires = "listen_tls_key", value_name = "FILE")]
    listen_tls_certificate: Option<PathBuf>,
    /// PEM file with the key of the certificate, which other users of the machine must not be able to read.
    #[arg(long, requires = "listen_tls_certificate", value_name = "FILE")]
    listen_tls_key: Option<PathBuf>,
    /// Speak TLS with a certificate that is made at the start for this machine's loopback names, for --host and for
    /// --allow-host. It is written to the file, so that clients can trust it.
    #[arg(long, conflicts_with = "listen_tls_certificate", value_name = "FILE")]
    listen_tls_self_signed: Option<PathBuf>,
    /// Further name under which clients reach the service, without a port; may be given more than once. Without a
    /// token, requests that name another Host than localhost, a loopback address or one of these are refused. With a
    /// token, names are checked only if this flag is given.
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    allow_host: Vec<HostName>,
    /// Origin of web pages that may use the service, such as `https://app.example.com`; may be given more than once.
    /// Requests of pages of other sites are refused.
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    allow_origin: Vec<PageOrigin>,
    /// Place that loads, LOAD CSV and io() may read: a folder, `s3://BUCKET` or `s3://BUCKET/PREFIX`, with all below it. The flag can be
    /// given several times. Without it, they read only what is in the drop folder.
    #[arg(long, value_name = "PLACE")]
    load_from: Vec<String>,
    /// Time limit of a query, in milliseconds.
    #[arg(long, default_value_t = Options::default().query_timeout.as_millis() as u64)]
    query_timeout_ms: u64,
    /// Memory limit of a query, in bytes.
    #[arg(long, default_value_t = Options::default().query_memory_bytes)]
    query_memory_bytes: u64,
    /// Memory limit of all queries and unsent answers together: bytes, an amount with a unit (`2GiB`), or a part of the
    /// memory of the machine or container (`25%`). Queries beyond it are refused with status 503. Default: 25%, or 1 GiB
    /// where the system does not report its memory.
    #[arg(long, env = "TIDEGRAPH_QUERY_MEMORY_TOTAL")]
    query_memory_total: Option<MemorySize>,
    /// Most bytes that all queries together may have in temporary files, where rows go that a query cannot hold in its
    /// memory: an amount with a unit (`20GiB`), or 0, so that such queries fail. Default: half of what is free.
    #[arg(long, env = "TIDEGRAPH_QUERY_SPILL_TOTAL")]
    query_spill_total: Option<ByteSize>,
    /// Most threads of a query, with its own: a long aggregation shares its work between them. Default: as many as there are
    /// processors.
    #[arg(long, env = "TIDEGRAPH_QUERY_THREADS", value_parser = clap::value_parser!(u16).range(1..))]
    query_threads: Option<u16>,
    /// The version of Gremlin of requests that name none: 3.7 or 3.8. TinkerPop's drivers name theirs.
    #[arg(long, env = "TIDEGRAPH_GREMLIN_VERSION", default_value_t = GremlinVersion::default())]
    gremlin_version: GremlinVersion,
    /// Largest number of rows in an answer.
    #[arg(long, default_value_t = Options::default().query_rows)]
    query_rows: u64,
    /// Largest request body, in bytes.
    #[arg(long, default_value_t = Limits::default().body_bytes)]
    body_bytes: usize,
    /// Number of queries that run at the same time; others wait, and their callers take turns. One connection, or one
    /// user, gets at most about three quarters of them.
    #[arg(long, default_value_t = admission::Limits::default().concurrent_queries)]
    concurrent_queries: usize,
    /// Largest number of open connections. For another one, the connection that has been idle longest is closed.
    /// Default: three quarters of the descriptors that the process may open (`ulimit -n`), at most 10000.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,
    /// Time for the head of a request to arrive, in milliseconds.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    head_timeout_ms: u64,
    /// Time for the body of a request to arrive, in milliseconds.
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..))]
    body_timeout_ms: u64,
    /// Time that a connection may be idle between two requests, in milliseconds.
    #[arg(long, default_value_t = 75_000, value_parser = clap::value_parser!(u64).range(1..))]
    idle_timeout_ms: u64,
    /// Time that a connection of a driver (Bolt, WebSocket) may be idle, in milliseconds. Drivers keep connections for an hour.
    #[arg(long, default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    session_idle_timeout_ms: u64,
    /// Time within which a client must take some bytes of its answer, in milliseconds.
    #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    write_timeout_ms: u64,
    /// Write into the log what each transaction changes, and tell it at /propertygraph/stream. Every process that writes
    /// to the graph needs the flag. Records of the log become two to four times as long.
    #[arg(long, env = "TIDEGRAPH_STREAMS")]
    streams: bool,
    #[command(flatten)]
    metrics_log: MetricsLogArgs,
    /// Time that running queries have to finish after SIGTERM, in milliseconds.
    #[arg(long, default_value_t = 30_000)]
    grace_ms: u64,
}

/// Flags of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    #[command(flatten)]
    listen: Listen,
    /// Directory of the database. Without it the graph is in memory only and is lost when the process ends.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Sync the log to disk this many milliseconds after a write, 1 to 60000, and answer the write before that. If only
    /// the process ends, no write is lost; a power failure may lose the last writes. Without it every write is on disk
    /// before it is answered.
    #[arg(long, requires = "data", value_parser = clap::value_parser!(u64).range(1..=60_000), env = "TIDEGRAPH_SYNC_LOG_EVERY_MS")]
    sync_log_every_ms: Option<u64>,
    /// Start although log files are missing, and continue from this version without the changes after it. The error of
    /// a start without it names the version.
    #[arg(long, requires = "data", value_name = "VERSION")]
    accept_loss: Option<u64>,
    /// Folder to watch. The files in <DROP>/<LOAD>/ are loaded when <DROP>/<LOAD>/_SUCCESS appears.
    #[arg(long)]
    drop: Option<PathBuf>,
    /// Memory limit of the graph: bytes, an amount with a unit (`12GiB`, `500MB`), or a part of the memory of the
    /// machine or container (`75%`). Properties that do not fit are kept on disk. Without it there is no limit.
    #[arg(long, env = "TIDEGRAPH_MEMORY_BUDGET")]
    memory_budget: Option<MemorySize>,
    /// Local directory for properties that do not fit into memory, and for temporary files of queries, best on NVMe. Without
    /// it: a directory inside --data.
    #[arg(long)]
    spill_dir: Option<PathBuf>,
    /// Number of partitions of a new graph, a power of two.
    #[arg(long, default_value_t = Options::default().partitions)]
    partitions: u16,
    /// Types of ids in Gremlin, of a new graph: strings (as in Neptune), typed (strings, integers and UUIDs), or longs (the
    /// same, and every integer is a Long). A graph keeps the setting with which it was made.
    #[arg(long, env = "TIDEGRAPH_IDS")]
    ids: Option<ElementIds>,
    /// Cardinality of vertex properties that Gremlin writes without one, of a new graph: set (as in Neptune), single (as in
    /// TinkerGraph and JanusGraph) or list. A graph keeps the setting with which it was made.
    #[arg(long, env = "TIDEGRAPH_DEFAULT_CARDINALITY")]
    default_cardinality: Option<Cardinality>,
    /// Bytes of log after which the next checkpoint is written. If the last checkpoint
    /// wrote more bytes than that, because changes were spread over the whole graph,
    /// the next one waits for as many bytes of log as the last one wrote.
    #[arg(long, default_value_t = Options::default().checkpoint_log_bytes)]
    checkpoint_log_bytes: u64,
}

impl Serve {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// If a flag is wrong, the database cannot be opened, or the address is not free.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let authentication = self.listen.authentication()?;
        let mut limits = self.listen.limits()?;
        if self.memory_budget.is_some() {
            crate::allocator::return_free_memory_at_once();
        }
        let mut options = Options {
            data_dir: self.data.clone(),
            sync_log_every: self.sync_log_every_ms.map(Duration::from_millis),
            accept_loss: self.accept_loss,
            memory_budget_bytes: self.memory_budget.map(MemorySize::bytes).transpose()?,
            spill_dir: self.spill_dir.clone(),
            partitions: self.partitions,
            ids: self.ids,
            default_cardinality: self.default_cardinality,
            checkpoint_log_bytes: self.checkpoint_log_bytes,
            ..Options::default()
        };
        self.listen.apply(&mut options);
        if let Some(folder) = &self.drop {
            make(folder)?;
            limits.load_from.add_folder(folder)?;
        }
        options.load_from = limits.load_from.clone();
        let database = Database::open(options).context("the database cannot be opened")?;
        if let Some(folder) = &self.drop {
            database.loads().watch(folder)?;
        }
        let port = self.listen.port(&[DEFAULT_GRAPH.to_owned()], limits, authentication)?;
        port.graphs.open(DEFAULT_GRAPH, database.clone());
        let (_never, failed) = oneshot::channel();
        let code = self.listen.until_signal(port, failed)?;
        database.close();
        Ok(code)
    }
}

/// What a service answers from, and who may ask it.
pub struct Port {
    /// The graphs, which others open.
    pub graphs: Graphs,
    authentication: Authentication,
    audit: Option<Audit>,
    metrics_log: Option<MetricsLog>,
}

#[expect(clippy::disallowed_methods, reason = "the drop folder is that of users")]
fn make(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the drop folder {}", folder.display()))
}

impl Listen {
    /// Returns how requests prove who sends them.
    ///
    /// # Errors
    ///
    /// If a file cannot be used, or other machines can reach the service and it is not protected.
    pub fn authentication(&self) -> anyhow::Result<Authentication> {
        let authentication = self.access.authentication()?;
        let has_tls = self.listen_tls_certificate.is_some() || self.listen_tls_self_signed.is_some();
        self.access.ensure_safe(self.host, has_tls, authentication.is_on())?;
        Ok(authentication)
    }

    /// Returns the limits of requests.
    ///
    /// # Errors
    ///
    /// If a place that loads may read is neither a folder nor a bucket.
    pub fn limits(&self) -> anyhow::Result<Limits> {
        let defaults = admission::Limits::default();
        let memory_total = self.query_memory_total.map(MemorySize::bytes).transpose()?;
        Ok(Limits {
            body_bytes: self.body_bytes,
            queries: admission::Limits {
                query_timeout: Duration::from_millis(self.query_timeout_ms),
                concurrent_queries: self.concurrent_queries,
                memory_total_bytes: memory_total.unwrap_or(defaults.memory_total_bytes),
                ..defaults
            },
            load_from: Allowed::parse(&self.load_from).context("--load-from")?,
        })
    }

    /// Returns the certificate of the port, and its files if they may change.
    fn tls(&self) -> anyhow::Result<(Option<Tls>, Option<CertificateFiles>)> {
        if let (Some(certificate), Some(key)) = (&self.listen_tls_certificate, &self.listen_tls_key) {
            let files = CertificateFiles { certificate: certificate.clone(), key: key.clone() };
            let tls = Tls::load(&files).context("the port cannot speak TLS")?;
            return Ok((Some(tls), Some(files)));
        }
        let Some(file) = &self.listen_tls_self_signed else { return Ok((None, None)) };
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        names.push(self.host.to_string());
        names.extend(self.allow_host.iter().map(ToString::to_string));
        names.sort();
        names.dedup();
        let tls = Tls::self_signed(names, file).context("the port cannot speak TLS")?;
        Ok((Some(tls), None))
    }

    /// Returns the limits of connections.
    fn connections(&self) -> server::Limits {
        let defaults = server::Limits::default();
        server::Limits {
            connections: self.connections.map_or(defaults.connections, |most| most as usize),
            head: Duration::from_millis(self.head_timeout_ms),
            body: Duration::from_millis(self.body_timeout_ms),
            idle: Duration::from_millis(self.idle_timeout_ms),
            write: Duration::from_millis(self.write_timeout_ms),
            sessions: session::Limits {
                idle: Duration::from_millis(self.session_idle_timeout_ms),
                // An answer that is not pulled, and a transaction that is not ended, are as bad as a long query.
                paused: Duration::from_millis(self.query_timeout_ms),
            },
        }
    }

    /// Returns which hosts and origins requests may name.
    fn allowed(&self, bound: IpAddr, has_token: bool) -> AllowedClients {
        AllowedClients {
            bound,
            has_token,
            hosts: self.allow_host.clone(),
            origins: self.allow_origin.clone(),
        }
    }

    /// Sets the limits of queries.
    pub fn apply(&self, options: &mut Options) {
        options.query_timeout = Duration::from_millis(self.query_timeout_ms);
        options.query_memory_bytes = self.query_memory_bytes;
        options.query_threads = self.query_threads.map(usize::from);
        options.gremlin_version = self.gremlin_version;
        options.query_spill_bytes = self.query_spill_total.map(|ByteSize(bytes)| bytes);
        options.query_rows = self.query_rows;
        options.streams = self.streams;
    }

    /// Makes the graphs of a service, none of which is open, and installs the recorders of metrics.
    ///
    /// # Errors
    ///
    /// If a name is none or given twice, the audit log cannot be opened, or dimensions of metrics are wrong.
    pub fn port(
        &self,
        graphs: &[String],
        limits: Limits,
        authentication: Authentication,
    ) -> anyhow::Result<Port> {
        let audit = self.access.audit()?;
        let graphs = Graphs::new(graphs, limits, authentication.clone(), audit.clone())?;
        let metrics_log = self.metrics_log.install()?;
        Ok(Port { graphs, authentication, audit, metrics_log })
    }

    /// Serves until SIGTERM or SIGINT, or until `failed` has an error. The databases stay open.
    ///
    /// # Errors
    ///
    /// If the address is not free, or the server fails; the error of `failed`.
    pub fn until_signal(
        &self,
        mut port: Port,
        failed: oneshot::Receiver<anyhow::Error>,
    ) -> anyhow::Result<ExitCode> {
        let audit = port.audit.clone();
        let graphs = port.graphs.clone();
        let start = |log: MetricsLog| log.start(move || graphs.note_metrics());
        let metrics_log = port.metrics_log.take().map(start).transpose()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(self.concurrent_queries.max(1) + admission::MOST_PARKED + 8)
            .build()?;
        let result = runtime.block_on(self.listen(port, failed));
        // A query that runs longer than the grace time is cancelled, because its handler is dropped; the process does
        // not wait for it.
        runtime.shutdown_timeout(Duration::from_secs(2));
        if let Some(audit) = audit {
            audit.close(CLOSE_AUDIT_WITHIN);
        }
        if let Some(log) = metrics_log {
            log.stop(CLOSE_METRICS_WITHIN);
        }
        result?;
        Ok(ExitCode::SUCCESS)
    }

    #[expect(clippy::disallowed_methods, reason = "the HTTP edge")]
    async fn listen(&self, port: Port, failed: oneshot::Receiver<anyhow::Error>) -> anyhow::Result<()> {
        let Port { graphs, authentication, audit, .. } = port;
        let address = (self.host, self.port);
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {}:{}", self.host, self.port))?;
        let local = listener.local_addr()?;
        let allowed = self.allowed(local.ip(), authentication.is_on());
        let (tls, files) = self.tls()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        if let (Some(tls), Some(files)) = (&tls, files) {
            tokio::spawn(tls.clone().follow(files));
        }
        if let Some(audit) = audit {
            tokio::spawn(reopen_at(signal(SignalKind::hangup())?, audit));
        }
        tokio::spawn(authentication.follow());
        let mut stop = Stop::new()?;
        // Scripts wait for this line and read the port.
        println!("Tidegraph listens on {scheme}://{local}");
        // Requests for a graph that is not open yet are refused. Connections stay for the requests after it.
        let (http, sessions) = (allowed.protect(graphs.router()), Some(graphs.sessions()));
        let protocols = server::Protocols { http, sessions, tls };
        let (stopping, stopped) = oneshot::channel::<()>();
        let stopped = async { _ = stopped.await };
        let server = tokio::spawn(server::serve(listener, protocols, self.connections(), stopped));
        let failure = tokio::select! {
            () = stop.signal() => None,
            Ok(failure) = failed => Some(failure),
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        let was_open = graphs.is_any_open();
        if was_open {
            tracing::info!("stopping: no new connections are accepted, running requests finish");
        }
        let _ = stopping.send(());
        let grace = if was_open { Duration::from_millis(self.grace_ms) } else { CLOSE_REFUSED_WITHIN };
        match tokio::time::timeout(grace, server).await {
            Ok(ended) => ended?,
            Err(_) if !was_open => {}
            Err(_) => {
                let grace_ms = self.grace_ms;
                tracing::warn!(grace_ms, "queries still run after the grace time and are cancelled");
            }
        }
        Ok(())
    }
}

/// The signals that end a service.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one of them.
    async fn signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Opens the audit log anew at each SIGHUP, which programs send that rotate logs.
async fn reopen_at(mut hang_up: Signal, audit: Audit) {
    while hang_up.recv().await.is_some() {
        audit.reopen();
    }
}
