//! `tidegraph serve`: opens the database, listens, watches the drop folder, ends well on SIGTERM.

use super::size::MemorySize;
use crate::admission;
use crate::http::{Limits, Service};
use anyhow::Context;
use clap::Args;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tokio::signal::unix::{SignalKind, signal};

/// How a service listens, and what requests may take.
#[derive(Args, Debug)]
pub struct Listen {
    /// Port to listen on; 0 takes a free one and prints it.
    #[arg(long, default_value_t = 8182, env = "TIDEGRAPH_PORT")]
    port: u16,
    /// Address to listen on. Another one than a loopback address needs --token-file.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// A file whose first line every request must send as `Authorization: Bearer …`.
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Longest time of a query, in milliseconds.
    #[arg(long, default_value_t = Options::default().query_timeout_ms)]
    query_timeout_ms: u64,
    /// Most memory of one query, in bytes.
    #[arg(long, default_value_t = Options::default().query_memory_bytes)]
    query_memory_bytes: u64,
    /// Most rows of one answer.
    #[arg(long, default_value_t = Options::default().query_rows)]
    query_rows: u64,
    /// Largest request body, in bytes.
    #[arg(long, default_value_t = Limits::default().body_bytes)]
    body_bytes: usize,
    /// Queries that run at the same time; more wait.
    #[arg(long, default_value_t = admission::Limits::default().concurrent_queries)]
    concurrent_queries: usize,
    /// Time that running queries get after SIGTERM, in milliseconds.
    #[arg(long, default_value_t = 30_000)]
    grace_ms: u64,
}

/// Flags of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    #[command(flatten)]
    listen: Listen,
    /// Directory of the database; without it the graph is in memory and gone at the end.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Answers writes when the system has them, and makes the log durable so many milliseconds later, 1 to 60000. The end of
    /// this process loses nothing; a power failure may take the last writes. Without it each write is on disk when it is answered.
    #[arg(long, requires = "data", value_parser = clap::value_parser!(u64).range(1..=60_000), env = "TIDEGRAPH_SYNC_LOG_EVERY_MS")]
    sync_log_every_ms: Option<u64>,
    /// Folder to watch: files put below <DIR>/<load>/ are loaded when <DIR>/<load>/_SUCCESS appears.
    #[arg(long)]
    drop: Option<PathBuf>,
    /// Most memory of the graph: bytes, with a unit (`12GiB`, `500MB`), or a part of the machine's or container's (`75%`).
    /// Properties that do not fit are kept on disk. Without it the graph takes what it needs.
    #[arg(long, env = "TIDEGRAPH_MEMORY_BUDGET")]
    memory_budget: Option<MemorySize>,
    /// Local directory for properties that do not fit into memory: fast, best on NVMe. Without it: within --data.
    #[arg(long)]
    spill_dir: Option<PathBuf>,
    /// Partitions of a new graph, a power of two.
    #[arg(long, default_value_t = Options::default().partitions)]
    partitions: u16,
    /// Bytes of log after which a checkpoint is written. Where the last one had to write more than that again, because changes were all over
    /// the graph, the next one waits for as many bytes.
    #[arg(long, default_value_t = Options::default().checkpoint_log_bytes)]
    checkpoint_log_bytes: u64,
}

/// The first line of a file with a secret.
pub fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim().to_owned();
    anyhow::ensure!(token.len() >= 16, "the token in {} has fewer than 16 characters", path.display());
    Ok(token)
}

impl Serve {
    /// Runs until a signal ends it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let token = self.listen.token()?;
        if self.memory_budget.is_some() {
            give_back_at_once();
        }
        let mut options = Options {
            data_dir: self.data.clone(),
            sync_log_every_ms: self.sync_log_every_ms,
            memory_budget_bytes: self.memory_budget.map(MemorySize::bytes).transpose()?,
            spill_dir: self.spill_dir.clone(),
            partitions: self.partitions,
            checkpoint_log_bytes: self.checkpoint_log_bytes,
            ..Options::default()
        };
        self.listen.apply(&mut options);
        let database =
            Database::open(options).map_err(|e| anyhow::anyhow!("the database cannot be opened: {e}"))?;
        if let Some(folder) = &self.drop {
            database.loads().watch(folder)?;
        }
        self.listen.until_signal(&database, self.listen.limits(), token)
    }
}

impl Listen {
    /// The secret that requests have to send; one is needed where other machines reach the service.
    pub fn token(&self) -> anyhow::Result<Option<String>> {
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        anyhow::ensure!(
            self.host.is_loopback() || token.is_some(),
            "{} can be reached from other machines: give --token-file, so that requests must prove who they are",
            self.host
        );
        Ok(token)
    }

    /// Limits of requests.
    pub fn limits(&self) -> Limits {
        Limits {
            body_bytes: self.body_bytes,
            queries: admission::Limits {
                query_timeout: Duration::from_millis(self.query_timeout_ms),
                concurrent_queries: self.concurrent_queries,
                ..admission::Limits::default()
            },
        }
    }

    /// Sets what a query may take.
    pub fn apply(&self, options: &mut Options) {
        options.query_timeout_ms = self.query_timeout_ms;
        options.query_memory_bytes = self.query_memory_bytes;
        options.query_rows = self.query_rows;
    }

    /// Serves until a signal ends it, and closes the database.
    pub fn until_signal(
        &self,
        database: &Arc<Database>,
        limits: Limits,
        token: Option<String>,
    ) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(self.concurrent_queries.max(1) + 8)
            .build()?;
        let result = runtime.block_on(self.listen(database.clone(), limits, token));
        // A query that outlived its grace is cancelled by its dropped handler and must not keep the process.
        runtime.shutdown_timeout(Duration::from_secs(2));
        database.close();
        result?;
        Ok(ExitCode::SUCCESS)
    }

    async fn listen(
        &self,
        database: Arc<Database>,
        limits: Limits,
        token: Option<String>,
    ) -> anyhow::Result<()> {
        let address = (self.host, self.port);
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {}:{}", self.host, self.port))?;
        let listener = axum::serve::ListenerExt::tap_io(listener, |socket| {
            // Answers are small; waiting for more to send only delays them.
            if let Err(error) = socket.set_nodelay(true) {
                tracing::debug!(%error, "no delay could not be set");
            }
        });
        let local = axum::serve::Listener::local_addr(&listener)?;
        let router = crate::http::with_token(Service::new(database, limits).router(), token);
        // Scripts wait for this line and read the port from it.
        println!("Tidegraph listens on http://{local}");
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (stopping, stopped) = tokio::sync::oneshot::channel();
        let ended = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: no new connections, what runs is finished");
            let _ = stopping.send(());
        };
        let server = axum::serve(listener, router).with_graceful_shutdown(ended);
        let grace = async {
            if stopped.await.is_ok() {
                tokio::time::sleep(Duration::from_millis(self.grace_ms)).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            result = server => result?,
            () = grace => tracing::warn!(grace_ms = self.grace_ms, "queries still run after the grace time; they are cancelled"),
        }
        Ok(())
    }
}

/// Makes the allocator give back at once what is free. It would keep it for a while, which saves a little time; with a
/// memory budget it would keep it from properties.
fn give_back_at_once() {
    /// `mi_option_purge_delay`, in milliseconds.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: an option that the allocator has; nothing else sets options, and what reads it meanwhile finds either value.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
}
