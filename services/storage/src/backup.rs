//! `tidegraph-node backup`, `backups`, `verify-backup` and `restore`.

use crate::admin::Init;
use crate::connect::{LogArgs, MapArgs, objects, objects_of};
use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tidegraph_cluster::{Graph, MapStore};
use tidegraph_fleet::backup::{Backup, BackupConfig, Backups, History, Point, Retention, Source, Target};
use tidegraph_platform::{Clock, Objects, RealClock, RealRandom};
use tidegraph_types::Version;

/// Flags of a graph, and of the place of its backups.
#[derive(Args, Debug)]
pub struct SourceArgs {
    #[command(flatten)]
    map: MapArgs,
    #[command(flatten)]
    log: LogArgs,
    /// Checkpoints and segments of the graph: `s3://bucket`, or a directory that all nodes share.
    #[arg(long, env = "TIDEGRAPH_OBJECTS")]
    objects: String,
    /// Where backups are: `s3://bucket` or `s3://bucket/folder`, of any account and region, or a directory.
    #[arg(long, value_name = "URL", env = "TIDEGRAPH_BACKUPS")]
    to: String,
    #[command(flatten)]
    place: PlaceArgs,
}

impl SourceArgs {
    /// Opens the graph and the place of its backups.
    pub fn open(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<(Source, Backups)> {
        let name = &self.map.graph;
        let map = self.map.open_for_command(clock)?;
        let graph = map.load(name, None).context("the graph's map cannot be loaded")?.graph().settled();
        let source = Source {
            log: self.log.location(name)?.backend(graph.sharding()?)?,
            objects: objects_of(&objects(&self.objects)?, &graph)?,
            clock: clock.clone(),
            random: Arc::new(RealRandom),
            graph,
        };
        Ok((source, open(&self.to, &self.place, name)?))
    }
}

/// Flags of `backup`.
#[derive(Args, Debug)]
pub struct BackUp {
    #[command(flatten)]
    source: SourceArgs,
    /// Remove backups beyond the newest N, and the archives before the oldest that stays, once this one is written.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Remove backups that are older than this number of days, once this one is written. With --keep too, a backup stays
    /// that one of both rules keeps.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    keep_days: Option<u32>,
    /// Number of objects that are copied at once. Each takes up to 40 MiB of memory.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
}

/// Flags that say more of the place of backups.
#[derive(Args, Clone, Debug)]
pub struct PlaceArgs {
    /// Region of the bucket of backups, if it is not that of this machine.
    #[arg(long, value_name = "REGION", env = "TIDEGRAPH_BACKUPS_REGION")]
    backups_region: Option<String>,
}

/// Flags that name a place of backups and a graph.
#[derive(Args, Clone, Debug)]
struct FromArgs {
    /// Where backups are: what `backup --to` was given.
    #[arg(long, value_name = "URL", env = "TIDEGRAPH_BACKUPS")]
    from: String,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Flags of `backups`.
#[derive(Args, Debug)]
pub struct ListBackups {
    #[command(flatten)]
    from: FromArgs,
    /// Name of the graph.
    #[arg(long, env = "TIDEGRAPH_GRAPH", default_value = "default")]
    graph: String,
}

/// Flags of `verify-backup`.
#[derive(Args, Debug)]
pub struct VerifyBackup {
    #[command(flatten)]
    from: FromArgs,
    /// Name of the graph.
    #[arg(long, env = "TIDEGRAPH_GRAPH", default_value = "default")]
    graph: String,
    /// Name of the backup. Default: the newest one.
    #[arg(long)]
    backup: Option<String>,
}

/// Flags of `restore`.
#[derive(Args, Debug)]
pub struct Restore {
    #[command(flatten)]
    init: Init,
    #[command(flatten)]
    from: FromArgs,
    /// Name that the graph had. Default: --graph, the name that it gets.
    #[arg(long)]
    backed_up_graph: Option<String>,
    /// Name of the backup. Default: the newest one that has the version or the time, or comes before it. Without --version and
    /// --time the graph is restored as it was at the end of this backup.
    #[arg(long)]
    backup: Option<String>,
    /// Restore the graph as it was at this version, which a backup or an archive behind it has. Default: the newest one.
    #[arg(long, conflicts_with = "time")]
    version: Option<u64>,
    /// Restore the graph as it was at this time, such as 2026-11-26T05:00:00Z.
    #[arg(long)]
    time: Option<jiff::Timestamp>,
    /// Number of objects that are copied at once. Each takes up to 40 MiB of memory.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
}

/// Opens the place of a graph's backups.
#[expect(clippy::disallowed_methods, reason = "a flag names the directory")]
pub fn open(url: &str, place: &PlaceArgs, graph: &str) -> anyhow::Result<Backups> {
    let (store, prefix) = match url.strip_prefix("s3://") {
        Some(rest) => {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            (Objects::s3(bucket, place.backups_region.as_deref(), []), prefix)
        }
        None => {
            ensure!(
                !url.contains("://") || url.starts_with("file://"),
                "{url} is no place of backups: give s3://bucket, s3://bucket/folder or a directory"
            );
            let dir = Path::new(url.strip_prefix("file://").unwrap_or(url));
            std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
            (Objects::local(dir), "")
        }
    };
    let store = store.with_context(|| format!("the place of backups {url} cannot be opened"))?;
    Ok(Backups::new(Arc::new(store), prefix, graph)?)
}

impl FromArgs {
    fn open(&self, graph: &str) -> anyhow::Result<Backups> {
        open(&self.from, &self.place, graph)
    }
}

/// Returns the fields of a backup that people look at.
fn shown(backup: &Backup) -> Value {
    json!({
        "name": backup.name,
        "graph": backup.graph.name,
        "partitions": backup.graph.partitions.get(),
        "earliest": backup.earliest,
        "earliestTime": backup.earliest_ms.map(time),
        "version": backup.version,
        "begun": time(backup.begun_ms),
        "time": time(backup.cut_ms),
        "objects": backup.objects.len() + backup.log.len(),
        "bytes": backup.bytes(),
        "release": backup.release,
    })
}

pub fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}

/// Prints the output of a command.
#[allow(clippy::print_stdout)]
pub fn print(value: &Value) {
    println!("{value:#}");
}

impl BackUp {
    pub fn run(self) -> anyhow::Result<()> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let (source, backups) = self.source.open(&clock)?;
        let begun = clock.now();
        let backup = source.back_up(&backups, BackupConfig { parallel: usize::from(self.parallel) })?;
        let took_ms = (clock.now() - begun).as_millis() as u64;
        // The new backup is there, whatever becomes of the old ones.
        let keep = self.keep.and_then(|keep| usize::try_from(keep).ok());
        let rules = Retention { keep, keep_days: self.keep_days };
        let removed = backups.retain(rules, clock.wall().as_millisecond()).with_context(|| {
            format!("backup {} is written, but older ones cannot be removed", backup.name)
        })?;
        let mut value = shown(&backup);
        value["tookMs"] = json!(took_ms);
        value["removed"] = json!(removed.backups);
        value["removedArchives"] = json!(removed.archives);
        print(&value);
        Ok(())
    }
}

impl ListBackups {
    pub fn run(self) -> anyhow::Result<()> {
        let listed = self.from.open(&self.graph)?.histories()?;
        let lines = listed.into_iter().map(|listed| match listed.history {
            Ok(history) => with_archives(&history),
            Err(error) => json!({ "name": listed.name, "error": error.to_string() }),
        });
        print(&Value::Array(lines.collect()));
        Ok(())
    }
}

/// Returns what a backup has, and up to where archives go on behind it.
fn with_archives(history: &History) -> Value {
    let mut value = shown(&history.backup);
    value["archives"] = json!(history.archives.len());
    value["archivedVersion"] = json!(history.version().0);
    value["archivedTime"] = json!(time(history.cut_ms()));
    if let Some(broken) = history.broken() {
        value["broken"] = json!(broken.to_string());
    }
    value
}

impl VerifyBackup {
    pub fn run(self) -> anyhow::Result<()> {
        let backups = self.from.open(&self.graph)?;
        let history = match &self.backup {
            Some(name) => backups.history(name)?,
            None => backups.find(Point::Newest)?,
        };
        let verified = backups.verify(&history)?;
        let mut value = with_archives(&history);
        value["verified"] = json!({
            "objects": verified.objects,
            "bytes": verified.bytes,
            "records": verified.records,
            "archives": verified.archives,
        });
        print(&value);
        Ok(())
    }
}

impl Restore {
    pub fn run(self) -> anyhow::Result<()> {
        let point = match (self.version, self.time) {
            (Some(version), _) => Point::Version(Version(version)),
            (None, Some(time)) => Point::Time(time.as_millisecond()),
            (None, None) => Point::Newest,
        };
        let url =
            self.init.objects.as_deref().context("--objects is needed: where the graph's objects go")?;
        let name = self.init.graph_name();
        let backups = self.from.open(self.backed_up_graph.as_deref().unwrap_or(name))?;
        let history = match &self.backup {
            Some(name) if point == Point::Newest => History::alone(backups.read(name)?),
            Some(name) => backups.history(name)?.up_to(point),
            None => backups.find(point)?,
        };
        let version = backups.version_at(&history, point)?;
        let backup = &history.backup;
        let wanted = self.init.graph()?;
        let gremlin = self.init.gremlin(backup.graph.gremlin);
        let (there, created_with) = (&backup.graph, backup.graph.created_with());
        if wanted.partitions != created_with {
            bail!(
                "backup {} was created with {} partitions: give --partitions {1}",
                backup.name,
                created_with.get()
            );
        }
        // What splits changed is as in the backup.
        let (partitions, splits) = (there.partitions, there.splits);
        let graph = Graph { hash_bits: there.hash_bits, gremlin, partitions, splits, ..wanted };
        let log = self.init.log_location()?;
        let target = Target {
            log_is_new: log.is_new()?,
            log: log.backend(graph.sharding()?)?,
            map: self.init.open_map()?,
            objects: objects_of(&objects(url)?, &graph)?,
            copies: self.init.copies(),
            graph,
        };
        let restored = target.restore(&backups, &history, version, usize::from(self.parallel))?;
        print(&json!({
            "graph": target.graph.name,
            "backup": backup.name,
            "archives": history.archives.len(),
            "version": restored.version.0,
            "objects": restored.objects,
            "bytes": restored.bytes,
            "records": restored.records,
        }));
        Ok(())
    }
}
