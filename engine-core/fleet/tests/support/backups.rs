//! A graph that is backed up, archived and restored.

// No test uses all of it.
#![allow(dead_code, clippy::unwrap_used)]

use crate::support::{GRAPH, TestFleet, ask};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{Graph, MapStore};
use tidegraph_engine::Database;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState};
use tidegraph_fleet::NodeConfig;
use tidegraph_fleet::backup::{Backup, BackupConfig, Backups, History, Source, Target};
use tidegraph_log::LogCopies;
use tidegraph_platform::{Objects, RealRandom};
use tidegraph_types::{PartitionCount, Value, Version};

pub const PARTITIONS: u16 = 4;

pub fn graph(shards: u16) -> Graph {
    Graph {
        name: GRAPH.into(),
        partitions: PartitionCount::new(PARTITIONS).unwrap(),
        shards,
        hash_bits: 64,
        replication_factor: 2,
        gremlin: Default::default(),
        splits: Default::default(),
        shares_objects: false,
    }
}

/// Nodes that write checkpoints after some versions.
pub fn checkpointing(versions: u64) -> NodeConfig {
    NodeConfig {
        beat: Duration::from_millis(50),
        checkpoint_versions: versions,
        checkpoint_after: Duration::from_secs(3600),
        ..NodeConfig::default()
    }
}

pub fn source(fleet: &TestFleet, shards: u16) -> Source {
    Source {
        graph: graph(shards),
        objects: fleet.objects.clone(),
        log: Arc::new(fleet.log.clone()),
        clock: fleet.clock.clone(),
        random: Arc::new(RealRandom),
    }
}

pub fn target(fleet: &TestFleet, graph: Graph) -> Target {
    Target {
        graph,
        map: fleet.map.clone(),
        objects: fleet.objects.clone(),
        log: Arc::new(fleet.log.clone()),
        log_is_new: true,
        copies: LogCopies { total: 1, in_sync: 1 },
    }
}

pub fn place() -> (Arc<Objects>, Backups) {
    let objects = Arc::new(Objects::memory().unwrap());
    let backups = Backups::new(objects.clone(), "a/b", GRAPH).unwrap();
    (objects, backups)
}

pub fn two_at_once() -> BackupConfig {
    BackupConfig { parallel: 2 }
}

pub fn write(database: &Database, n: usize) -> u64 {
    ask(database, OpenCypher, &format!("CREATE (:W {{n: {n}}})-[:TO {{n: {n}}}]->(:W {{n: {n}}})"))
        .unwrap()
        .version
        .0
}

pub fn number(database: &Database, text: &str) -> i64 {
    match ask(database, OpenCypher, text).unwrap().rows[0][0] {
        Value::Long(number) => number,
        ref other => panic!("{text}: {other:?}"),
    }
}

/// What was acknowledged.
pub struct Done {
    /// Versions of the writes, by their numbers.
    pub writes: Vec<u64>,
    /// A version before the second load, and one that has it.
    pub load: (u64, u64),
}

/// A backup without archives.
pub fn alone(backup: &Backup) -> History {
    History::alone(backup.clone())
}

/// Restores a version into a new fleet, and compares it with the versions of the acknowledged writes.
pub fn check_restored(backups: &Backups, history: &History, version: u64, shards: u16, done: &Done) {
    let mut fleet = TestFleet::without_graph(graph(shards), checkpointing(5));
    let restored = target(&fleet, graph(shards)).restore(backups, history, Version(version), 3).unwrap();
    assert_eq!(restored.version, Version(version));
    fleet.start_processes(2);
    let (database, _worker) = fleet.worker();
    let there: Vec<_> = (0_i64..).zip(&done.writes).filter(|(_, at)| **at <= version).collect();
    let (count, sum) = (there.len() as i64, there.iter().map(|(n, _)| *n).sum::<i64>());
    let context = format!(
        "version {version} of {} to {} with {shards} shards",
        history.backup.earliest,
        history.version()
    );
    assert_eq!(number(&database, "MATCH (w:W) RETURN count(w)"), 2 * count, "{context}");
    assert_eq!(number(&database, "MATCH (:W)-[t:TO]->(w:W) RETURN sum(t.n)"), sum, "{context}");
    assert_eq!(
        number(&database, "MATCH (:W)-[t:TO]->(w:W) WHERE t.n = w.n RETURN count(t)"),
        count,
        "{context}"
    );
    // Catalog and loads are there, and writes go on above.
    let people = number(&database, "MATCH (p:Person) RETURN count(p)");
    assert!(people == 60 || people == 30 && version < done.load.1, "{context}: {people}");
    assert!(people == 30 || version > done.load.0, "{context}: {people}");
    let twice = ask(&database, OpenCypher, "CREATE (:Only {n: 1})").unwrap_err().to_string();
    assert!(twice.contains("`Only`") && twice.contains("unique"), "{twice}");
    assert!(write(&database, 1_000_000) > version);
    assert_eq!(number(&database, "MATCH (w:W) RETURN count(w)"), 2 * count + 2, "{context}");
}

pub fn load(database: &Database, people: std::ops::Range<usize>) {
    let home = tempfile::tempdir().unwrap();
    let mut text = String::from("~id,~label,n:Int(single)\n");
    people.for_each(|n| writeln!(text, "p{n},Person,{n}").unwrap());
    std::fs::write(home.path().join("people.csv"), text).unwrap();
    let mut spec = LoadSpec::new(vec![format!("file://{}", home.path().display())], Some(Dialect::GREMLIN));
    spec.queue_request = true;
    let loads = database.loads();
    let id = loads.submit(spec).unwrap();
    assert_eq!(loads.wait(&id).unwrap().overall.state, LoadState::Completed);
}

/// A backup of a small graph with checkpoints.
pub fn small() -> (TestFleet, Arc<Objects>, Backups, Backup) {
    let fleet = TestFleet::start(PARTITIONS, 2, 2, 64, checkpointing(3));
    let (database, _worker) = fleet.worker();
    (0..10).for_each(|n| assert!(write(&database, n) > 0));
    fleet.wait_until("there are checkpoints", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
    let (objects, backups) = place();
    let backup = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    (fleet, objects, backups, backup)
}
