//! Keeps clients busy for a time. Each client waits for its answer before it asks again.

use super::clients::{Call, Connection};
use super::report::Figure;
use hdrhistogram::Histogram;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tidegraph_engine::Database;

/// Makes the next call of a client.
pub type Next<'a> = dyn Fn(&mut ChaCha8Rng) -> Vec<Call> + Sync + 'a;

/// Returns the stream of random numbers of a seed.
pub fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Results of one round.
pub struct Round {
    /// Number of calls, failed ones included.
    pub calls: u64,
    /// The first error, if a call failed.
    pub error: Option<String>,
    seconds: f64,
    /// Latencies in nanoseconds.
    latencies: Histogram<u64>,
}

impl Round {
    /// Calls per second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    /// Returns rate and quantiles, without the processor time of servers.
    pub fn outcome(&self) -> Outcome {
        let quantiles = [0.5, 0.99, 0.999].map(|q| self.quantile_us(q));
        Outcome { rate: self.rate(), quantiles_us: Some(quantiles), server_cpu_us: None }
    }

    fn quantile_us(&self, q: f64) -> f64 {
        self.latencies.value_at_quantile(q) as f64 / 1e3
    }
}

/// Results of one round of a peer.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Calls per second.
    pub rate: f64,
    /// p50, p99 and p99.9 in microseconds, if the client reports them.
    pub quantiles_us: Option<[f64; 3]>,
    /// Processor time of the server for each call in microseconds, if there is a server.
    pub server_cpu_us: Option<f64>,
}

/// Returns the median, or `None` without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn histogram() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 600_000_000_000, 3)?)
}

/// Runs a round of calls inside this process, with a thread for each client.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
pub fn embedded(
    database: &Database,
    clients: usize,
    length: Duration,
    seed: u64,
    next: &Next,
) -> anyhow::Result<Round> {
    let (calls, error) = (AtomicU64::new(0), std::sync::Mutex::new(None));
    let start = Instant::now();
    let latencies = std::thread::scope(|scope| {
        let work = |client: u64| {
            let (calls, error) = (&calls, &error);
            scope.spawn(move || -> anyhow::Result<Histogram<u64>> {
                let mut random = ChaCha8Rng::seed_from_u64(seed ^ (client << 32));
                let mut latencies = histogram()?;
                while start.elapsed() < length {
                    for call in next(&mut random) {
                        let began = Instant::now();
                        let result = call.embedded(database);
                        latencies.saturating_record(began.elapsed().as_nanos() as u64);
                        calls.fetch_add(1, Ordering::Relaxed);
                        if let Err(e) = result {
                            let mut first = error.lock().unwrap_or_else(PoisonError::into_inner);
                            first.get_or_insert_with(|| format!("{e:#} in {call:?}"));
                        }
                    }
                }
                Ok(latencies)
            })
        };
        let handles: Vec<_> = (0..clients as u64).map(work).collect();
        let mut all = histogram()?;
        for handle in handles {
            let latencies = handle.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            all.add(latencies)?;
        }
        anyhow::Ok(all)
    })?;
    let error = error.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Round { calls: calls.into_inner(), error, seconds: start.elapsed().as_secs_f64(), latencies })
}

/// Runs a round of calls inside this process, with a task for each client on at most two threads. No thread waits for a
/// commit.
pub fn embedded_tasks(
    database: &Arc<Database>,
    clients: usize,
    length: Duration,
    seed: u64,
    next: &Next,
) -> anyhow::Result<Round> {
    on_threads(clients, |client| {
        let database = database.clone();
        async move {
            let mut database = Tasked(database);
            busy(client, length, seed, next, &mut database).await
        }
    })
}

/// Runs a round of calls over HTTP, with a connection for each client on at most two threads, as with pgbench.
pub fn network(
    address: &str,
    clients: usize,
    length: Duration,
    seed: u64,
    next: &Next,
) -> anyhow::Result<Round> {
    over(clients, length, seed, next, || Connection::open(address))
}

/// Runs a round of calls over connections that `open` opens, one for each client.
pub fn over<T: Target, F: Future<Output = anyhow::Result<T>>>(
    clients: usize,
    length: Duration,
    seed: u64,
    next: &Next,
    open: impl Fn() -> F + Sync,
) -> anyhow::Result<Round> {
    let open = &open;
    on_threads(clients, |client| async move {
        let mut connection = open().await?;
        busy(client, length, seed, next, &mut connection).await
    })
}

/// The database that a task calls.
pub trait Target {
    /// Sends a call and receives the whole answer.
    fn answer(&mut self, call: &Call) -> impl Future<Output = anyhow::Result<()>>;
}

impl Target for Connection {
    async fn answer(&mut self, call: &Call) -> anyhow::Result<()> {
        self.call(call).await.map(drop)
    }
}

/// A database in this process that tasks call.
pub struct Tasked(pub Arc<Database>);

impl Target for Tasked {
    async fn answer(&mut self, call: &Call) -> anyhow::Result<()> {
        call.embedded_task(&self.0).await.map(drop)
    }
}

/// Divides the clients among at most two threads.
fn on_threads<F: Future<Output = anyhow::Result<Round>>>(
    clients: usize,
    work: impl Fn(usize) -> F + Sync,
) -> anyhow::Result<Round> {
    let threads = clients.clamp(1, 2);
    let work = &work;
    let rounds = std::thread::scope(|scope| {
        let run = |thread: usize| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let clients = (thread..clients).step_by(threads).map(work);
            runtime.block_on(futures_util::future::try_join_all(clients))
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, anyhow::Result<Vec<Round>>>| {
            handle.join().map_err(|_| anyhow::anyhow!("a client panicked"))?
        };
        handles.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
    })?;
    let mut all = Round { calls: 0, error: None, seconds: 0.0, latencies: histogram()? };
    for round in rounds.into_iter().flatten() {
        all.calls += round.calls;
        all.error = all.error.or(round.error);
        all.seconds = all.seconds.max(round.seconds);
        all.latencies.add(round.latencies)?;
    }
    Ok(all)
}

/// Runs one client.
#[allow(clippy::disallowed_methods, reason = "this measures the world")]
async fn busy(
    client: usize,
    length: Duration,
    seed: u64,
    next: &Next<'_>,
    target: &mut impl Target,
) -> anyhow::Result<Round> {
    let start = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ ((client as u64) << 32));
    let mut latencies = histogram()?;
    let (mut calls, mut error) = (0, None);
    while start.elapsed() < length {
        for call in next(&mut random) {
            let began = Instant::now();
            let result = target.answer(&call).await;
            latencies.saturating_record(began.elapsed().as_nanos() as u64);
            calls += 1;
            if let Err(e) = result {
                error.get_or_insert_with(|| format!("{e:#} in {call:?}"));
            }
        }
    }
    Ok(Round { calls, error, seconds: start.elapsed().as_secs_f64(), latencies })
}

/// Returns a figure with the medians of rates and quantiles.
pub fn figure(metric: impl Into<String>, rounds: &[Round]) -> anyhow::Result<Figure> {
    if let Some(error) = rounds.iter().find_map(|r| r.error.as_ref()) {
        anyhow::bail!("a call ended in an error: {error}");
    }
    let median = |of: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let rate = median(&Round::rate);
    let quantile = |q: f64| median(&move |r: &Round| r.quantile_us(q));
    Ok(Figure::rate(metric, "op/s", rate).latency(quantile(0.5), quantile(0.99), quantile(0.999)))
}
