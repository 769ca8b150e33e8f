//! A graph is split into more partitions while clients read, write and load: nothing is lost, and every read finds the
//! same graph (MAP-4).

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

#[path = "support/gate.rs"]
mod gate;
mod support;

use gate::Gate;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::{GRAPH, TestFleet, ask, patient, rows};
use tidegraph_cluster::testing::graph_named;
use tidegraph_cluster::{Change, Graph, MapStore, Rebalance, SplitStage, WatchConfig};
use tidegraph_engine::Database;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState, Mode};
use tidegraph_fleet::{NodeConfig, WorkerConfig};
use tidegraph_platform::Objects;
use tidegraph_types::{Layout, PartitionCount, PartitionId, Version};

fn config() -> NodeConfig {
    NodeConfig {
        beat: Duration::from_millis(50),
        checkpoint_versions: 20,
        checkpoint_after: Duration::from_millis(200),
        ..NodeConfig::default()
    }
}

/// Queries, and the numbers of their answers.
const READS: &[(&str, &str)] = &[
    ("MATCH (a:Fixed) RETURN count(a), sum(a.n)", "500,124750"),
    ("MATCH (:Fixed)-[r:NEXT]->(:Fixed) RETURN count(r), sum(r.w)", "500,124750"),
    ("MATCH (a:Fixed {n: 41})-[:NEXT*1..3]->(b) RETURN sum(b.n)", "129"),
    ("MATCH (a:Fixed) WHERE a.name = 'fixed 7' RETURN count(a)", "1"),
];

/// Returns the numbers of an answer.
fn numbers(database: &Database, text: &str) -> String {
    let found = rows(database, OpenCypher, text).join("");
    found.chars().filter(|c| c.is_ascii_digit() || *c == ',').collect()
}

fn check(database: &Database) {
    for (text, expected) in READS {
        assert_eq!(numbers(database, text), *expected, "{text}");
    }
}

/// Loads people, and returns whether they are visible: transactions may win every time.
fn load(database: &Database, dir: &Path, people: usize) -> bool {
    std::fs::create_dir_all(dir).unwrap();
    let vertices: String = (0..people).map(|n| format!("p{n},Person,{n}\n")).collect();
    let edges: String = (0..people).map(|n| format!("k{n},p{n},p{},KNOWS\n", n / 2)).collect();
    std::fs::write(dir.join("people.csv"), format!("~id,~label,n:Int(single)\n{vertices}")).unwrap();
    std::fs::write(dir.join("knows.csv"), format!("~id,~from,~to,~label\n{edges}")).unwrap();
    let mut spec = LoadSpec::new(vec![format!("file://{}", dir.display())], Some(Dialect::GREMLIN));
    spec.mode = Mode::New;
    let id = database.loads().submit(spec).unwrap();
    let done = database.loads().wait(&id).unwrap();
    let counts = done.overall.counts;
    assert_eq!((counts.parsing_errors, counts.insert_errors), (0, 0), "{:?}", done.errors);
    done.overall.state == LoadState::Completed
}

/// Returns the people that are there twice, have the id of no person, or lack their number.
fn odd_people(database: &Database) -> Vec<String> {
    let all = rows(database, OpenCypher, "MATCH (a:Person) RETURN id(a), labels(a), a.n");
    let id = |row: &String| row.split(',').next().unwrap_or_default().to_owned();
    let is_odd = |at: usize| {
        let (row, own) = (&all[at], id(&all[at]));
        let twice = [at.wrapping_sub(1), at + 1]
            .into_iter()
            .filter_map(|next| all.get(next))
            .any(|next| id(next) == own);
        twice
            || !own.contains("\"p")
            || row.contains("Null")
            || row.contains("\"W\"")
            || row.contains("\"X\"")
    };
    (0..all.len()).filter(|at| is_odd(*at)).map(|at| all[at].clone()).collect()
}

fn split(fleet: &TestFleet, rebalance: &Rebalance, into: PartitionCount) {
    rebalance.begin_split(into).unwrap();
    let end = fleet.clock.now() + support::PATIENCE;
    loop {
        let progress = rebalance.advance_split(into, 64, 4).unwrap();
        match progress.stage {
            SplitStage::Done => return,
            SplitStage::Turned => {
                // Workers look at the map, and queries end.
                fleet.clock.sleep(Duration::from_millis(2_500));
                rebalance.drop_former_partitions().unwrap();
            }
            _ => fleet.clock.sleep(Duration::from_millis(50)),
        }
        assert!(fleet.clock.now() < end, "{progress:?}");
    }
}

#[test]
fn a_graph_is_split_under_reads_writes_and_loads() {
    let home = tempfile::tempdir().unwrap();
    let mut fleet = TestFleet::start_sharded(2, 4, 3, 2, 10, config());
    let maintenance = fleet.maintain();
    let (database, _worker) = fleet.worker();
    let (reader, _reading) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(0, 499) AS n CREATE (:Fixed {n: n, name: 'fixed ' + n})")
        .unwrap();
    ask(&database, OpenCypher, "CREATE INDEX fixed FOR (n:Fixed) ON (n.n)").unwrap();
    let link = "MATCH (a:Fixed), (b:Fixed) WHERE b.n = (a.n + 1) % 500 CREATE (a)-[:NEXT {w: a.n}]->(b)";
    ask(&database, OpenCypher, link).unwrap();
    fleet.wait_until("another worker sees it", |_| numbers(&reader, READS[1].0) == READS[1].1);
    check(&reader);
    let rebalance = Rebalance::new(fleet.map.clone(), GRAPH);
    let (stop, written, loads) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let loaded = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                check(&reader);
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let n = written.load(Ordering::Acquire);
                ask(&database, OpenCypher, &format!("CREATE (:W {{n: {n}}})-[:OF]->(:X {{n: {n}}})"))
                    .unwrap();
                written.store(n + 1, Ordering::Release);
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let n = loads.load(Ordering::Acquire);
                let people = 200 + 20 * n;
                if load(&database, &home.path().join(format!("load-{n}")), people as usize) {
                    loaded.store(people, Ordering::Release);
                    let found = numbers(&database, "MATCH (a:Person) RETURN count(a)");
                    assert_eq!(found, people.to_string(), "after load {n}: {:#?}", odd_people(&database));
                }
                loads.store(n + 1, Ordering::Release);
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            split(&fleet, &rebalance, PartitionCount::new(16).unwrap());
            split(&fleet, &rebalance, PartitionCount::new(32).unwrap());
        }));
        stop.store(true, Ordering::Release);
        ended.unwrap();
    });
    let (written, loads) = (written.load(Ordering::Acquire), loads.load(Ordering::Acquire));
    assert!(written > 10 && loads > 1, "{written} writes, {loads} loads");
    let counts = |database: &Database| {
        let people = loaded.load(Ordering::Acquire).to_string();
        let found = numbers(database, "MATCH (a:Person) RETURN count(a)");
        assert_eq!(found, people, "{:#?}", odd_people(database));
        assert_eq!(numbers(database, "MATCH ()-[r:KNOWS]->() RETURN count(r)"), people);
        assert_eq!(numbers(database, "MATCH (:W)-[r:OF]->(:X) RETURN count(r)"), written.to_string());
        assert_eq!(numbers(database, "MATCH (a:W) RETURN count(DISTINCT a.n)"), written.to_string());
        check(database);
    };
    counts(&database);
    let map = fleet.map.load(GRAPH, None).unwrap();
    assert_eq!(
        map.held().map(|(partition, _)| partition.0).collect::<Vec<_>>(),
        (32..64).collect::<Vec<_>>()
    );
    // Nodes that start again restore the new partitions, of checkpoints and what is left of the log.
    fleet.wait_until("every partition has a checkpoint of its own", |fleet| {
        let noted = fleet.map.checkpoints(GRAPH).unwrap();
        noted.iter().filter(|noted| noted.partition.0 >= 32).count() == 32
    });
    for name in ["n0", "n1", "n2"] {
        drop(fleet.kill(name));
        fleet.join(name);
        fleet.wait_until("all serve", |fleet| {
            let map = fleet.map.load(GRAPH, None).unwrap();
            map.partitions().all(|(partition, replicas)| map.serving(partition).len() == replicas.len())
        });
    }
    let (database, _worker) = fleet.worker();
    counts(&database);
    drop(maintenance);
}

#[test]
fn a_split_is_taken_back_and_nodes_give_its_replicas_up() {
    let fleet = TestFleet::start(2, 2, 2, 64, config());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(0, 99) AS n CREATE (:Fixed {n: n})").unwrap();
    let rebalance = Rebalance::new(fleet.map.clone(), GRAPH);
    let into = PartitionCount::new(8).unwrap();
    rebalance.begin_split(into).unwrap();
    // Some of them at once, so that not all serve.
    rebalance.advance_split(into, 3, 3).unwrap();
    let held = |fleet: &TestFleet| -> Vec<String> {
        fleet
            .members
            .iter()
            .flat_map(|member| {
                let status = member.node.status();
                let replicas = status["replicas"].as_array().unwrap().clone();
                replicas.into_iter().map(|replica| replica["partition"].to_string())
            })
            .collect()
    };
    fleet.wait_until("nodes hold some", |fleet| held(fleet).len() > 4);
    assert!(rebalance.abort_split().unwrap());
    fleet.wait_until("nodes hold none", |fleet| {
        let mut held = held(fleet);
        held.sort();
        held == ["0", "0", "1", "1"]
    });
    let found = rows(&database, OpenCypher, "MATCH (a:Fixed) RETURN count(a)");
    assert!(found[0].contains("100"), "{found:?}");
    split(&fleet, &rebalance, into);
    let found = rows(&database, OpenCypher, "MATCH (a:Fixed) RETURN count(a)");
    assert!(found[0].contains("100"), "{found:?}");
}

/// Found by a simulated world: the worker asked only for the partitions that it knew, for as long as it waited.
#[test]
fn a_worker_that_missed_a_split_finds_the_indexes_of_the_new_partitions() {
    let fleet = TestFleet::start(2, 2, 2, 64, config());
    let (database, _worker) = fleet.worker();
    let never = WatchConfig { refresh_every: Duration::from_secs(100_000) };
    let (late, _late) = fleet.worker_with(WorkerConfig { watch: never, ..patient() }, fleet.clock.clone());
    ask(&database, OpenCypher, "UNWIND range(0, 99) AS n CREATE (:Fixed {n: n})").unwrap();
    split(&fleet, &Rebalance::new(fleet.map.clone(), GRAPH), PartitionCount::new(8).unwrap());
    ask(&late, OpenCypher, "CREATE INDEX fixed FOR (n:Fixed) ON (n.n)").unwrap();
    let found = rows(&late, OpenCypher, "SHOW INDEXES");
    assert!(found.len() == 1 && found[0].contains("fixed"), "{found:?}");
}

#[test]
fn checkpoints_of_the_partitions_before_a_split_are_removed() {
    let home = tempfile::tempdir().unwrap();
    let mut fleet = TestFleet::without_graph(graph_named(GRAPH, 2), config());
    fleet.objects = Arc::new(Objects::local(home.path()).unwrap());
    fleet.map.create_graph(&fleet.graph).unwrap();
    fleet.start_processes(2);
    let _maintenance = fleet.maintain();
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(0, 99) AS n CREATE (:Fixed {n: n})").unwrap();
    let in_folder = |partition: u16| -> usize {
        let folder = home.path().join(format!("checkpoints/p{partition:05}"));
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|node| files(&node.path())).sum()
    };
    fleet.wait_until("both have checkpoints", |_| (0..2).all(|partition| in_folder(partition) > 0));
    let rebalance = Rebalance::new(fleet.map.clone(), GRAPH);
    let into = |count| PartitionCount::new(count).unwrap();
    // What a split that was taken back has left stays: the graph may be split into these partitions again.
    rebalance.begin_split(into(16)).unwrap();
    rebalance.advance_split(into(16), 1, 1).unwrap();
    fleet.wait_until("a next partition has a checkpoint", |_| {
        (16..32).any(|partition| in_folder(partition) > 0)
    });
    assert!(rebalance.abort_split().unwrap());
    split(&fleet, &rebalance, into(8));
    let written = AtomicU64::new(100);
    fleet.wait_until("those before the split are gone", |_| {
        ask(&database, OpenCypher, "CREATE (:Fixed {n: 0})").unwrap();
        written.fetch_add(1, Ordering::Relaxed);
        (0..2).all(|partition| in_folder(partition) == 0)
    });
    assert!((8..16).all(|partition| in_folder(partition) > 0));
    assert!((16..32).any(|partition| in_folder(partition) > 0));
    for name in ["n0", "n1"] {
        drop(fleet.kill(name));
        fleet.join(name);
        fleet.wait_until("all serve", |fleet| {
            let map = fleet.map.load(GRAPH, None).unwrap();
            map.partitions().all(|(partition, _)| map.serving(partition).len() == 2)
        });
    }
    let (database, _worker) = fleet.worker();
    let found = numbers(&database, "MATCH (a:Fixed) RETURN count(a)");
    assert_eq!(found, written.load(Ordering::Relaxed).to_string());
}

/// The version of the newest checkpoint of a partition that the map notes.
fn noted(fleet: &TestFleet, partition: PartitionId) -> Option<Version> {
    let all = fleet.map.checkpoints(GRAPH).unwrap();
    all.iter().find(|noted| noted.partition == partition).map(|noted| noted.version)
}

/// A fleet of one node, which writes a checkpoint for each record, with a gate before its objects.
fn gated() -> (TestFleet, Gate) {
    let graph = Graph { replication_factor: 1, ..graph_named(GRAPH, 2) };
    let config = NodeConfig {
        checkpoint_versions: 1,
        checkpoint_after: Duration::from_secs(3_600),
        beat: Duration::from_millis(50),
        ..NodeConfig::default()
    };
    let mut fleet = TestFleet::without_graph(graph, config);
    let (objects, gate) = Gate::objects();
    fleet.objects = objects;
    fleet.map.create_graph(&fleet.graph).unwrap();
    fleet.start_processes(1);
    (fleet, gate)
}

#[test]
fn a_damaged_checkpoint_of_the_partition_before_does_not_hide_that_of_the_next_one() {
    let (made, next) = (PartitionCount::new(2).unwrap(), PartitionId(4));
    let layout = Layout::of_partition(made, next).unwrap();
    let before = layout.ancestors(next).next().unwrap();
    let folder = |partition: PartitionId| format!("checkpoints/p{:05}/", partition.0);
    let (mut fleet, gate) = gated();
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(0, 99) AS n CREATE (:Fixed {n: n})").unwrap();
    let (rebalance, into) = (Rebalance::new(fleet.map.clone(), GRAPH), PartitionCount::new(4).unwrap());
    rebalance.begin_split(into).unwrap();
    rebalance.advance_split(into, 64, 4).unwrap();
    fleet.wait_until("the next partition has a checkpoint", |fleet| noted(fleet, next).is_some());
    gate.close_for_writes(&folder(next));
    fleet.wait_until("the partition before has a newer one", |fleet| {
        ask(&database, OpenCypher, "CREATE (:Fixed {n: 0})").unwrap();
        noted(fleet, before) > noted(fleet, next)
    });
    for object in fleet.objects.list(&folder(before)).unwrap() {
        if !object.path.contains("/manifest-") {
            fleet.objects.put(&object.path, vec![0; object.bytes as usize]).unwrap();
        }
    }
    fleet.join("a");
    let a = fleet.members[1].id.clone();
    fleet.map.change(GRAPH, None, &[Change::AddReplica { partition: next, node: a.clone() }]).unwrap();
    fleet.wait_until("the next partition serves at another node", |fleet| {
        let map = fleet.map.load(GRAPH, None).unwrap();
        map.serving(next).iter().any(|(id, _)| **id == a)
    });
    assert!(noted(&fleet, next) < noted(&fleet, before));
    gate.open();
}

/// The checkpoints of a partition before a split are removed once, and a later note would name what is gone.
#[test]
fn a_checkpoint_of_a_replica_that_was_taken_is_not_noted() {
    let (mut fleet, gate) = gated();
    let (database, _worker) = fleet.worker();
    let (taken, n0) = (PartitionId(0), fleet.members[0].id.clone());
    fleet.wait_until("a checkpoint of all is noted", |fleet| {
        noted(fleet, taken).is_some_and(|version| version == fleet.members[0].node.applied())
    });
    let newest_manifest = |fleet: &TestFleet| {
        let all = fleet.objects.list("checkpoints/p00000/").unwrap();
        all.into_iter().map(|object| object.path).filter(|path| path.contains("/manifest-")).max()
    };
    let before = (noted(&fleet, taken), newest_manifest(&fleet));
    gate.close_for_writes("checkpoints/p00000/");
    ask(&database, OpenCypher, "UNWIND range(0, 99) AS n CREATE (:Fixed {n: n})").unwrap();
    fleet.wait_until("a checkpoint is being written", |_| gate.waiting() > 0);
    // The other node writes none.
    fleet.config.checkpoint_versions = u64::MAX;
    fleet.join("a");
    fleet.assign_all_to("a");
    fleet.map.change(GRAPH, None, &[Change::DropReplica { partition: taken, node: n0 }]).unwrap();
    fleet.wait_until("the node gives the replica up", |fleet| {
        let status = fleet.members[0].node.status();
        status["replicas"].as_array().unwrap().iter().all(|replica| replica["partition"] != 0)
    });
    gate.open();
    fleet.wait_until("the checkpoint is written", |fleet| newest_manifest(fleet) > before.1);
    // Its end waits for what is being written.
    fleet.kill("n0").node.stop();
    assert_eq!(noted(&fleet, taken), before.0);
}

/// Counts the files below a folder.
fn files(path: &Path) -> usize {
    match std::fs::read_dir(path) {
        Ok(inside) => inside.flatten().map(|entry| files(&entry.path())).sum(),
        Err(_) => 1,
    }
}
