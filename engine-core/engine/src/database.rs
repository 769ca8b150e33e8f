//! Opening, recovering and closing a database.
//!
//! A directory holds `graph.json` (the settings that are fixed when the graph is
//! made), `log/` (the log, the only truth), `checkpoints/` (images to start from),
//! `loads/` (segments of committed loads), `jobs/` (one file for each load) and `resets/` (tokens of resets).
//!
//! Recovery: restore the newest complete checkpoint; apply the log from there; fill the indexes; raise the epoch. A
//! record that a crash left half-written in the log was never acknowledged and is cut. The file `log.end` says how far
//! the log must reach: a log that ends before has lost files, and the graph is not opened.

use crate::applier::StoreApplier;
use crate::backend::{Backend, Local};
use crate::changes::ChangeFeed;
use crate::checkpoints::Checkpoints;
use crate::commands::with_language_procedures;
use crate::helpers::FreeThreads;
use crate::learning::WorstRatio;
use crate::loads::{Loads, Parts};
use crate::plans::{CachedPlan, PlanKey};
use crate::query_spill::QuerySpill;
use crate::schema::{self, Filling};
use crate::{Error, Options};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_log::{FileLogOptions, LogLocation, LogStore, Tail};
use tidegraph_platform::{Clock, Disk, Objects, Random, RealClock, RealDisk, RealRandom};
use tidegraph_storage::{Manifest, MemoryBudget, Store, StoreConfig};
use tidegraph_txn::{Recovered, Sequencer, SequencerConfig};
use tidegraph_types::{
    Epoch, ErrorCode, GremlinSettings, GuiHasher, PartitionCount, Sharding, Sid, Str, Token, Version,
};

/// An open graph. All threads share it.
pub struct Database {
    pub(crate) options: Options,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) plans: quick_cache::sync::Cache<PlanKey, Arc<CachedPlan>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// What Gremlin means by ids and by properties without a cardinality.
    pub(crate) gremlin: GremlinSettings,
    /// Files of the graph beside the log: segments, jobs, tokens of resets.
    pub(crate) objects: Arc<Objects>,
    pub(crate) filling: Filling,
    /// How wrong estimates of plans were at most.
    pub(crate) worst_ratio: WorstRatio,
    /// Threads that help long queries.
    pub(crate) threads: FreeThreads,
    /// Temporary files of queries, if they may use any.
    pub(crate) spill: Option<QuerySpill>,
    loads: Arc<Loads>,
    /// The parts of a graph in this process; `None` for a graph on other machines.
    pub(crate) local: Option<Embedded>,
}

/// The parts of a graph in this process.
pub(crate) struct Embedded {
    pub store: Arc<Store>,
    sequencer: Arc<Sequencer>,
    checkpoints: Checkpoints,
    /// Keeps other processes out of the directory.
    lock: Mutex<Option<tidegraph_platform::disk::DiskLock>>,
}

/// The state of a database: versions, counts, memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Newest version that can be read.
    pub version: u64,
    /// Term of the sequencer.
    pub epoch: u64,
    /// Number of vertices, estimated.
    pub vertices: u64,
    /// Number of edges, estimated.
    pub edges: u64,
    /// Number of partitions.
    pub partitions: u16,
    /// The settings of Gremlin with which the graph was made.
    #[serde(flatten)]
    pub gremlin: GremlinSettings,
    /// Version of the newest checkpoint; 0 if there is none.
    pub checkpoint_version: u64,
    /// Whether commits are accepted; `false` after the disk failed.
    pub writable: bool,
    /// Memory budget of the graph; `None` for no limit.
    pub memory_budget_bytes: Option<u64>,
    /// Memory of the graph, without older versions.
    pub memory_bytes: u64,
    /// Bytes of properties on disk because of the budget.
    pub spilled_bytes: u64,
}

/// The settings that are fixed when a graph is created: the contents of `graph.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphFile {
    format: u32,
    partitions: PartitionCount,
    hash_bits: u32,
    #[serde(default, skip_serializing_if = "GremlinSettings::is_default")]
    gremlin: GremlinSettings,
}

const GRAPH_FORMAT: u32 = 1;
const CHECKPOINTS: &str = "checkpoints";

/// Clock, randomness and disk of a database; tests provide their own.
pub(crate) struct Environment {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub disk: Arc<dyn Disk>,
}

impl Database {
    /// Opens the graph in the directory of `options`, which is made if it is missing, or an empty graph in memory.
    ///
    /// ```
    /// use tidegraph_engine::{Database, Options};
    ///
    /// let options = Options { query_memory_bytes: 64 << 20, ..Options::default() };
    /// let database = Database::open(options)?;
    /// assert!(database.status().writable);
    /// database.close();
    /// # Ok::<(), tidegraph_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidParameter` for invalid options or those of another graph, `Unavailable` if another process has the directory open or the disk
    /// fails, `Corrupt` if stored bytes are damaged or files are missing ([`Options::accept_loss`]).
    pub fn open(options: Options) -> Result<Arc<Self>, Error> {
        let environment = Environment {
            clock: Arc::new(RealClock::new()),
            random: Arc::new(RealRandom),
            disk: Arc::new(RealDisk),
        };
        Self::open_with(options, environment)
    }

    pub(crate) fn open_with(options: Options, environment: Environment) -> Result<Arc<Self>, Error> {
        let Environment { clock, random, disk } = environment;
        let options = with_procedures(options);
        let began = clock.now();
        let (objects, lock) = match &options.data_dir {
            None => (Objects::memory()?, None),
            Some(dir) => {
                disk.create_dir_all(dir)?;
                let lock = disk.lock(&dir.join("lock")).map_err(|e| in_use(dir, e))?;
                (Objects::local(dir)?, Some(lock))
            }
        };
        let objects = Arc::new(objects);
        let graph = graph_file(&options, &objects)?;
        let config = StoreConfig {
            partitions: graph.partitions,
            hasher: GuiHasher::with_bits(graph.hash_bits),
            memory: memory_budget(&options, &disk)?,
            ..StoreConfig::new(clock.clone())
        };
        let (store, manifest) = restore(config, &objects)?;
        let store = Arc::new(store);
        // The sequencer raises the epoch, because only one process at a time opens the directory.
        let mut log = log_location(&options, &disk, manifest.as_ref())?.open(Sharding::ONE, Epoch(0))?;
        let applier = StoreApplier { store: store.clone(), objects: objects.clone() };
        let (recovered, replayed) = replay(&applier, manifest.as_ref(), &mut *log)?;
        tracing::info!(
            version = recovered.version.0,
            epoch = recovered.epoch.0,
            checkpoint = manifest.as_ref().map_or(0, |m| m.version.0),
            took_ms = (clock.now() - began).as_millis() as u64,
            "recovered"
        );
        let feed = log.readers().map(|log| ChangeFeed::new(log, clock.clone()));
        let sequencer = Sequencer::start(SequencerConfig::default(), log, recovered, Box::new(applier));
        let local = Local::new(store.clone(), sequencer.clone(), clock.clone(), feed, graph.gremlin);
        let backend: Arc<dyn Backend> = Arc::new(local);
        schema::complete_all(&*backend)?;
        let checkpoints = Checkpoints::start(
            &options,
            store.clone(),
            sequencer.clone(),
            objects.clone(),
            manifest.map_or(Version::default(), |m| m.version),
        );
        let parts = Parts {
            backend: backend.clone(),
            objects: objects.clone(),
            clock: clock.clone(),
            random: random.clone(),
            commit: checkpoints.one_at_a_time(),
            replayed: Some(replayed),
            threads: true,
        };
        let loads = Arc::new(Loads::open(parts)?);
        checkpoints.sweep_loads(&loads);
        Ok(Arc::new(Self {
            plans: quick_cache::sync::Cache::new(options.cached_plans),
            worst_ratio: WorstRatio::default(),
            threads: FreeThreads::new(options.query_threads),
            spill: QuerySpill::new(&options, disk),
            gremlin: graph.gremlin,
            options,
            backend,
            clock,
            random,
            objects,
            filling: Filling::default(),
            loads,
            local: Some(Embedded { store, sequencer, checkpoints, lock: Mutex::new(lock) }),
        }))
    }

    /// Creates a database over a graph on other machines. `objects` holds the segments of
    /// loads and the jobs of this process's loads.
    ///
    /// # Errors
    ///
    /// `InvalidParameter` for options of another graph, `Unavailable` if the object store does not answer, `Internal` if no
    /// thread can be started.
    pub fn connect(
        options: Options,
        backend: Arc<dyn Backend>,
        objects: Arc<Objects>,
    ) -> Result<Arc<Self>, Error> {
        let (clock, random) = (Arc::new(RealClock::new()), Arc::new(RealRandom));
        Self::connected(options, backend, objects, clock, random, true)
    }

    /// Creates a database as [`Database::connect`] does, without threads of its own: what they would do is done on the
    /// thread of the caller. An index is filled inside of the command that creates it, and a load runs inside of
    /// [`Loads::run_queued`]. For simulations, which also bring clock and randomness.
    ///
    /// # Errors
    ///
    /// The same as [`Database::connect`], except for threads.
    pub fn connect_without_threads(
        options: Options,
        backend: Arc<dyn Backend>,
        objects: Arc<Objects>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Self>, Error> {
        Self::connected(options, backend, objects, clock, random, false)
    }

    fn connected(
        options: Options,
        backend: Arc<dyn Backend>,
        objects: Arc<Objects>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        threads: bool,
    ) -> Result<Arc<Self>, Error> {
        let options = with_procedures(options);
        let gremlin = backend.gremlin();
        options.check_gremlin(gremlin)?;
        let parts = Parts {
            backend: backend.clone(),
            objects: objects.clone(),
            clock: clock.clone(),
            random: random.clone(),
            commit: Arc::default(),
            replayed: None,
            threads,
        };
        // A simulation has no disk of its own for them.
        let spill = if threads { QuerySpill::new(&options, Arc::new(RealDisk)) } else { None };
        Ok(Arc::new(Self {
            plans: quick_cache::sync::Cache::new(options.cached_plans),
            worst_ratio: WorstRatio::default(),
            threads: FreeThreads::new(Some(1)),
            spill,
            gremlin,
            options,
            backend,
            clock,
            random,
            objects,
            filling: if threads { Filling::default() } else { Filling::without_threads() },
            loads: Arc::new(Loads::open(parts)?),
            local: None,
        }))
    }

    /// Returns the bulk loads of this database.
    #[must_use]
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Returns the memory limit of one request in bytes.
    #[must_use]
    pub fn query_memory_bytes(&self) -> u64 {
        self.options.query_memory_bytes
    }

    /// Returns the time of day by the database's clock.
    #[must_use]
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.wall()
    }

    /// Returns versions, counts and memory.
    #[must_use]
    pub fn status(&self) -> Status {
        let status = self.backend.status();
        let (vertices, edges) = self.backend.totals();
        let checkpoints = self.local.as_ref().map(|local| &local.checkpoints);
        Status {
            version: status.version.0,
            epoch: status.epoch.0,
            vertices,
            edges,
            partitions: self.backend.partitions().get(),
            gremlin: self.gremlin,
            checkpoint_version: checkpoints.map_or(0, |checkpoints| checkpoints.newest().0),
            writable: status.writable,
            memory_budget_bytes: status.memory_budget,
            memory_bytes: status.memory,
            spilled_bytes: status.spilled,
        }
    }

    /// Returns the state of all nodes of a fleet as JSON; `None` without a fleet. Asks all nodes.
    #[must_use]
    pub fn fleet_report(&self) -> Option<String> {
        self.backend.fleet_report()
    }

    /// Returns the bytes that storage in this process holds in memory. Walks all of
    /// storage: for reports, not for requests.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory().total() as u64
    }

    /// Writes a checkpoint now and returns its version. Reads and writes continue meanwhile.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the log or the object store cannot be written, `BadRequest` for a graph on other machines,
    /// whose nodes write its checkpoints.
    pub fn checkpoint(&self) -> Result<Version, Error> {
        match &self.local {
            Some(local) => local.checkpoints.write(),
            None => Err(Error::new(ErrorCode::BadRequest, "the graph's storage nodes write its checkpoints")),
        }
    }

    /// Stops loads, commits queued requests, writes a last checkpoint and unlocks the
    /// directory. Later writes fail with `Unavailable`.
    pub fn close(&self) {
        self.loads.stop();
        self.filling.stop();
        if let Some(local) = &self.local {
            local.checkpoints.stop();
            local.sequencer.shutdown();
            local.lock.lock().take();
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.close();
    }
}

/// Creates the memory budget of the options. Checks now, rather than when memory is
/// short, that the spill directory can be written.
fn memory_budget(options: &Options, disk: &Arc<dyn Disk>) -> Result<Option<MemoryBudget>, Error> {
    let Some(bytes) = options.memory_budget_bytes else { return Ok(None) };
    let own = || options.data_dir.as_ref().map_or_else(std::env::temp_dir, |dir| dir.join("spill"));
    let dir = options.spill_dir.clone().unwrap_or_else(own);
    disk.create_dir_all(&dir)?;
    let name = format!("tidegraph-{}", std::process::id());
    disk.open_scratch(&dir.join(name))?.write_at(&[0], 0)?;
    let process_bytes: fn() -> Option<u64> = tidegraph_platform::memory::resident_bytes;
    Ok(Some(MemoryBudget { bytes, disk: disk.clone(), dir, process_bytes: Some(process_bytes) }))
}

fn in_use(dir: &Path, error: tidegraph_platform::disk::Error) -> Error {
    if error.kind() == std::io::ErrorKind::WouldBlock {
        let message = format!("{} is in use by another process", dir.display());
        return Error::new(ErrorCode::Unavailable, message).with_source(error);
    }
    Error::from(error)
}

/// Reads `graph.json`, or writes it for a new graph.
fn with_procedures(options: Options) -> Options {
    Options { procedures: with_language_procedures(options.procedures), ..options }
}

fn graph_file(options: &Options, objects: &Objects) -> Result<GraphFile, Error> {
    const NAME: &str = "graph.json";
    if objects.list("")?.iter().any(|object| object.path == NAME) {
        let bytes = objects.get(NAME)?;
        let graph: GraphFile = serde_json::from_slice(&bytes)
            .map_err(|e| Error::new(ErrorCode::Corrupt, format!("{NAME} is damaged: {e}")).with_source(e))?;
        if graph.format != GRAPH_FORMAT {
            let message = format!("{NAME} has format {}, this version reads {GRAPH_FORMAT}", graph.format);
            return Err(Error::new(ErrorCode::Corrupt, message));
        }
        options.check_gremlin(graph.gremlin)?;
        return Ok(graph);
    }
    let partitions =
        PartitionCount::new(options.partitions).map_err(|e| Error::new(ErrorCode::InvalidParameter, e))?;
    let (hash_bits, gremlin) = (options.hash_bits, options.new_gremlin());
    let graph = GraphFile { format: GRAPH_FORMAT, partitions, hash_bits, gremlin };
    let bytes = serde_json::to_vec_pretty(&graph).map_err(|e| Error::caused_by(ErrorCode::Internal, e))?;
    objects.put(NAME, bytes)?;
    Ok(graph)
}

fn restore(config: StoreConfig, objects: &Objects) -> Result<(Store, Option<Manifest>), Error> {
    Ok(match tidegraph_storage::checkpoint::restore_newest(&config, objects, CHECKPOINTS)? {
        Some(restored) => (restored.store, Some(restored.manifest)),
        None => (Store::new(config), None),
    })
}

/// A graph that may lose more than the writes of a minute needs no log.
const LONGEST_SYNC_INTERVAL: Duration = Duration::from_secs(60);

/// The log of an embedded graph: in its directory, or in memory where it has none.
fn log_location(
    options: &Options,
    disk: &Arc<dyn Disk>,
    checkpoint: Option<&Manifest>,
) -> Result<LogLocation, Error> {
    let Some(dir) = &options.data_dir else { return Ok(LogLocation::Memory) };
    let options = FileLogOptions {
        sync_every: options.sync_log_every.map(log_sync_interval).transpose()?,
        checkpoint: checkpoint.map(|manifest| Tail { version: manifest.version, epoch: manifest.epoch }),
        accept_loss: options.accept_loss.map(Version),
        ..FileLogOptions::default()
    };
    Ok(LogLocation::File { disk: disk.clone(), dir: dir.join("log"), options })
}

fn log_sync_interval(interval: Duration) -> Result<Duration, Error> {
    if !(Duration::from_millis(1)..=LONGEST_SYNC_INTERVAL).contains(&interval) {
        let message =
            format!("the log is synced after 1 ms to {LONGEST_SYNC_INTERVAL:?}, not after {interval:?}");
        return Err(Error::new(ErrorCode::InvalidParameter, message));
    }
    Ok(interval)
}

/// Most versions below the checkpoint that a start reads for the ids of requests that are sent again (TXN-4).
const ASKED_AGAIN: u64 = 4_096;

/// Notes the requests of records at or below the checkpoint, as far as the log still has them (TXN-4). Nothing else
/// needs these records, so a damaged one only limits what is known.
fn note_requests(recovered: &mut Recovered, log: &mut dyn LogStore) {
    recovered.forgotten = recovered.version;
    let next = recovered.version.next();
    let asked_again = Version(next.0.saturating_sub(ASKED_AGAIN).max(1));
    let Some(first) = log.first().map(|first| first.max(asked_again)).filter(|first| *first < next) else {
        return;
    };
    let mut below = Recovered::default();
    let records = match log.read_from(first) {
        Ok(records) => records,
        Err(error) => return tracing::warn!(%error, "keys of requests below the checkpoint are forgotten"),
    };
    for record in records {
        match record {
            Ok(record) if record.version < next => below.note(&record),
            Ok(_) => break,
            Err(error) => {
                return tracing::warn!(%error, "keys of requests below the checkpoint are forgotten");
            }
        }
    }
    // A log that ends before the checkpoint lost records, and requests with them.
    if below.version != recovered.version {
        return;
    }
    recovered.requests = below.requests;
    recovered.forgotten = Version(first.0 - 1);
}

/// Applies the log from the checkpoint on. Returns the state that the sequencer
/// continues from, and the loads in the log.
fn replay(
    applier: &StoreApplier,
    manifest: Option<&Manifest>,
    log: &mut dyn LogStore,
) -> Result<(Recovered, Vec<(String, Version)>), Error> {
    let mut loads = vec![];
    let mut recovered = Recovered {
        version: manifest.map_or(Version::default(), |m| m.version),
        epoch: manifest.map_or(Epoch::default(), |m| m.epoch),
        next_sid: manifest.map_or(Sid(1), |m| Sid(m.next_sid)),
        tokens: manifest.map_or_else(Vec::<(Token, Str)>::new, |m| m.tokens.clone()),
        ..Recovered::default()
    };
    note_requests(&mut recovered, log);
    let records = log.read_from(recovered.version.next()).map_err(|error| match error {
        tidegraph_log::Error::Trimmed { first, .. } => {
            let message = format!(
                "checkpoints are missing: the log begins at version {first}, and the newest whole checkpoint has version \
                 {}. Put the files of `{CHECKPOINTS}/` back",
                recovered.version
            );
            Error::new(ErrorCode::Corrupt, message).with_source(error)
        }
        error => error.into(),
    })?;
    for record in records {
        let record = record?;
        recovered.note(&record);
        if let tidegraph_log::Body::Load { load_id, .. } = &record.body {
            loads.push((load_id.clone(), record.version));
        }
        applier.try_apply(&record)?;
    }
    Ok((recovered, loads))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_log::{Body, MemoryLog, Record};
    use tidegraph_types::ShardId;

    #[test]
    fn a_log_without_the_records_after_the_checkpoint_is_corrupt() {
        let mut log = MemoryLog::new(ShardId(0));
        let start = |version| Record {
            shard: ShardId(0),
            epoch: Epoch(version),
            version: Version(version),
            body: Body::EpochStart,
        };
        log.append(&[start(1), start(2), start(3)]).unwrap();
        let store = Arc::new(Store::new(StoreConfig::new(Arc::new(RealClock::new()))));
        let applier = StoreApplier { store, objects: Arc::new(Objects::memory().unwrap()) };
        assert_eq!(replay(&applier, None, &mut log).unwrap().0.version, Version(3));
        log.trim(Version(3)).unwrap();
        let error = replay(&applier, None, &mut log).expect_err("two records are missing");
        assert_eq!(error.code(), ErrorCode::Corrupt);
        assert!(
            error.to_string().contains("checkpoints are missing: the log begins at version 3"),
            "{error}"
        );
    }
}
