//! A fleet answers as one process does, while its nodes join and leave (FLT-1, APL-2).

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::{GRAPH, TestFleet, ask, rows};
use tidegraph_apl::{Cursor, Error, Expand, Expansion, ScanCursor, VertexScan};
use tidegraph_cluster::{Change, MapStore};
use tidegraph_engine::Language::{Gremlin, OpenCypher};
use tidegraph_engine::{Backend, Database, Options, Parameters, Query, ReadOptions};
use tidegraph_fleet::NodeConfig;
use tidegraph_types::{
    Cardinality, Direction, ElementIds, ErrorCode, GremlinSettings, GuiHasher, PartitionId, ShardId, Str,
};

const WRITES: &[&str] = &[
    "UNWIND range(0, 199) AS n CREATE (:Person {id: n, name: 'p' + toString(n), age: n % 50})",
    "MATCH (a:Person), (b:Person) WHERE b.id = (a.id * 7 + 3) % 200 CREATE (a)-[:KNOWS {since: a.id}]->(b)",
    "MATCH (a:Person), (b:Person) WHERE b.id = a.id / 10 AND a.id > 0 CREATE (a)-[:REPORTS_TO]->(b)",
    "MATCH (a:Person) WHERE a.age = 7 SET a:Seven, a.lucky = true",
    "MATCH (a:Person)-[k:KNOWS]->() WHERE a.id % 9 = 0 SET k.weight = a.id * 1.5",
    "MATCH (a:Person {id: 11})-[k:KNOWS]->() DELETE k",
    "MATCH (a:Person {id: 5}) DETACH DELETE a",
    "MATCH (a:Person) WHERE a.id >= 190 REMOVE a.name",
];

const READS: &[&str] = &[
    "MATCH (a) RETURN count(a)",
    "MATCH ()-[r]->() RETURN type(r), count(r)",
    "MATCH (a:Person {id: 7})-[:KNOWS]->(b) RETURN b.id, b.name",
    "MATCH (a:Person)<-[:REPORTS_TO]-(b) RETURN a.id, count(b)",
    "MATCH (a:Person {id: 3})-[:KNOWS*1..3]-(b) RETURN DISTINCT b.id",
    "MATCH (a:Seven) RETURN a.id, a.lucky, labels(a)",
    "MATCH (a:Person)-[k:KNOWS]->(b) WHERE k.weight > 100 RETURN a.id, k.weight, b.id",
    "MATCH (a:Person) WHERE a.age >= 45 AND a.id < 120 RETURN a.id ORDER BY a.id DESC LIMIT 7",
    "MATCH (a:Person) RETURN a.age, count(*)",
    "MATCH p = shortestPath((a:Person {id: 1})-[*..6]-(b:Person {id: 150})) RETURN length(p)",
    "MATCH (a:Person) WHERE a.name IS NULL RETURN a.id",
    "MATCH (a:Person {id: 5}) RETURN a.name, labels(a), keys(a)",
];

const STEPS: &[&str] = &[
    "g.V().hasLabel('Person').has('age', 7).out('KNOWS').values('id')",
    "g.V().has('Person', 'id', 42).both().values('id')",
    "g.E().hasLabel('KNOWS').has('weight').count()",
    "g.V().hasLabel('Person').values('age').dedup()",
    "g.V().has('Person', 'id', 3).repeat(out('KNOWS')).times(3).values('id')",
    "g.V().hasLabel('Person').where(inE('REPORTS_TO').count().is(gt(5))).values('id')",
];

#[test]
fn a_worker_has_the_settings_of_its_graph() {
    let settings = GremlinSettings { ids: ElementIds::Typed, default_cardinality: Cardinality::Single };
    let fleet = TestFleet::start_with(settings, 4, 2, 2, fast());
    let (_, worker) = fleet.worker();
    let database = fleet.database(Options::default(), &worker);
    assert_eq!(database.status().gremlin, settings);
    ask(&database, Gremlin, "g.addV('t').property(T.id, 1).property('k', 1).property('k', 2)").unwrap();
    ask(&database, Gremlin, "g.addV('t').property(T.id, '1').property('k', 3)").unwrap();
    assert_eq!(rows(&database, Gremlin, "g.V(1L).values('k')"), ["[Int(2)]"]);
    assert_eq!(rows(&database, Gremlin, "g.V('1').values('k')"), ["[Int(3)]"]);
    assert_eq!(rows(&database, Gremlin, "g.V(1).id()"), ["[Int(1)]"]);
    let other = Options { ids: Some(ElementIds::Strings), ..Options::default() };
    let refused = Database::connect(other, worker.clone(), fleet.objects.clone()).err().unwrap();
    assert_eq!(refused.code(), ErrorCode::InvalidParameter);
    assert!(
        refused.to_string().contains("made with ids typed and cannot be opened with strings"),
        "{refused}"
    );
}

fn same(fleet: &Database, one: &Database) {
    for text in READS {
        assert_eq!(rows(fleet, OpenCypher, text), rows(one, OpenCypher, text), "{text}");
    }
    for text in STEPS {
        assert_eq!(rows(fleet, Gremlin, text), rows(one, Gremlin, text), "{text}");
    }
}

fn fast() -> NodeConfig {
    NodeConfig { beat: Duration::from_millis(50), ..NodeConfig::default() }
}

#[test]
fn answers_as_one_process_does() {
    for (hash_bits, shards) in [(64, 1), (9, 2), (64, 4)] {
        let fleet = TestFleet::start_sharded(shards, 4, 3, 2, hash_bits, fast());
        let (database, _worker) = fleet.worker();
        let one = Database::open(Options { partitions: 4, ..Options::default() }).unwrap();
        for text in WRITES {
            for database in [&database, &one] {
                ask(database, OpenCypher, text).unwrap_or_else(|error| panic!("{text}: {error}"));
            }
            same(&database, &one);
        }
        // Another worker sees the whole graph.
        let (other, _worker) = fleet.worker();
        same(&other, &one);
    }
}

#[test]
fn indexes_and_constraints_hold_over_all_partitions() {
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, WRITES[0]).unwrap();
    ask(&database, OpenCypher, "CREATE INDEX ages FOR (p:Person) ON (p.age)").unwrap();
    assert_eq!(rows(&database, OpenCypher, "SHOW INDEXES").len(), 1);
    assert!(rows(&database, OpenCypher, "SHOW INDEXES")[0].contains("ONLINE"));
    assert_eq!(rows(&database, OpenCypher, "MATCH (p:Person) WHERE p.age = 7 RETURN p.id").len(), 4);
    let unique = "CREATE CONSTRAINT ids FOR (p:Person) REQUIRE p.id IS UNIQUE";
    ask(&database, OpenCypher, unique).unwrap();
    let again = ask(&database, OpenCypher, "CREATE (:Person {id: 17})").unwrap_err();
    assert_eq!(again.code(), ErrorCode::UniqueViolation, "{again}");
    let (other, _worker) = fleet.worker();
    let again = ask(&other, OpenCypher, "MATCH (p:Person {id: 1}) SET p.id = 199").unwrap_err();
    assert_eq!(again.code(), ErrorCode::UniqueViolation, "{again}");
    // Ages repeat, in whatever partitions they are.
    ask(&database, OpenCypher, "DROP INDEX ages").unwrap();
    let unique = "CREATE CONSTRAINT ages FOR (p:Person) REQUIRE p.age IS UNIQUE";
    let refused = ask(&database, OpenCypher, unique).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::UniqueViolation, "{refused}");
    assert_eq!(rows(&database, OpenCypher, "SHOW CONSTRAINTS").len(), 1);
}

#[test]
fn a_constraint_holds_for_workers_that_knew_of_none() {
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let ((one, _a), (other, _b)) = (fleet.worker(), fleet.worker());
    for number in 0..3 {
        // Both workers have asked which values are unique, and know that the constraints have not changed since.
        for database in [&one, &other] {
            ask(database, OpenCypher, &format!("CREATE (:Person {{id: {number}, of: '{number}'}})")).unwrap();
        }
        ask(&other, OpenCypher, "MATCH (p:Person) DELETE p").unwrap();
        ask(&one, OpenCypher, "CREATE (:Person {id: 17})").unwrap();
        ask(&other, OpenCypher, "CREATE CONSTRAINT ids FOR (p:Person) REQUIRE p.id IS UNIQUE").unwrap();
        for database in [&one, &other] {
            let again = ask(database, OpenCypher, "CREATE (:Person {id: 17})").unwrap_err();
            assert_eq!(again.code(), ErrorCode::UniqueViolation, "{again}");
            ask(database, OpenCypher, &format!("MERGE (:Person {{id: {}}})", number + 100)).unwrap();
        }
        let dropped = ask(&one, OpenCypher, "DROP CONSTRAINT ids").unwrap().version;
        for database in [&other, &one] {
            // The other worker may not know yet that the constraint was dropped.
            let parameters = Parameters::default();
            let query = Query::new(OpenCypher, "CREATE (:Person {id: 17})", &parameters);
            database.query(&Query { at_least: Some(dropped), ..query }).unwrap();
        }
        ask(&one, OpenCypher, "MATCH (p:Person) DELETE p").unwrap();
    }
}

#[test]
fn what_names_a_vertex_by_its_id_asks_a_node_once() {
    let fleet = TestFleet::start(8, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    let requests = || -> u64 {
        fleet.members.iter().map(|member| member.server.counters().requests.load(Ordering::Relaxed)).sum()
    };
    let texts = [
        ("CREATE (:Person {`~id`: $id, age: 7, name: 'Ada'})", 1),
        ("MATCH (p:Person) WHERE id(p) = $id RETURN p.age AS age", 1),
        ("MATCH (p:Person) WHERE id(p) = $id RETURN p", 1),
        (
            "MATCH (p:Person) WHERE id(p) = $id WITH p AS q WHERE q.age < 9 RETURN q.name AS n, labels(q) AS l",
            1,
        ),
        ("MATCH (p:Person) WHERE id(p) = $id SET p.age = 8", 1),
        ("MATCH (p:Nobody) WHERE id(p) = $id RETURN p.age AS age", 1),
        // The deletion needs one more request, for the edges of the vertex.
        ("MATCH (p:Person) WHERE id(p) = $id DETACH DELETE p", 2),
    ];
    let mut fewest = [u64::MAX; 7];
    // The first rounds load plans, tokens and constraints. In any round, a slow answer may be requested twice.
    for round in 0..20 {
        let parameters: Parameters =
            [("id".into(), Str::from(format!("v{round}")).into())].into_iter().collect();
        for ((text, _), fewest) in texts.iter().zip(&mut fewest) {
            let before = requests();
            database.query(&Query::new(OpenCypher, text, &parameters)).unwrap();
            *fewest = (*fewest).min(requests() - before);
        }
    }
    assert_eq!(fewest, texts.map(|(_, requests)| requests), "{texts:?}");
}

#[test]
fn what_is_read_ahead_counts_as_memory_and_is_let_go_where_there_is_no_room() {
    let fleet = TestFleet::start(2, 1, 1, 64, fast());
    let (database, worker) = fleet.worker();
    let text = Str::from("x".repeat(1 << 20));
    let parameters: Parameters = [("text".into(), text.clone().into())].into_iter().collect();
    let write = "CREATE (:Big {`~id`: 'big', k: 1, text: $text})";
    database.query(&Query::new(OpenCypher, write, &parameters)).unwrap();
    let options = Options { query_memory_bytes: 1 << 18, ..Options::default() };
    let tight = Database::connect(options, worker, fleet.objects.clone()).unwrap();
    let requests = || -> u64 {
        fleet.members.iter().map(|member| member.server.counters().requests.load(Ordering::Relaxed)).sum()
    };
    // The query needs the text but does not return it, because rows of an answer count against the same limit.
    let one = "MATCH (n:Big) WHERE id(n) = 'big' AND n.k = 1 RETURN size(n.text) AS length";
    // The minimum over some rounds: the first rounds load what is not cached, and a slow answer is requested twice.
    let fewest = |database: &Database| {
        let counted = (0..10).map(|_| {
            let before = requests();
            assert_eq!(rows(database, OpenCypher, one).len(), 1);
            requests() - before
        });
        counted.min().unwrap_or_default()
    };
    assert_eq!(fewest(&database), 1);
    // The text exceeds the limit of reading ahead, so it is requested again where it is needed.
    assert!(fewest(&tight) > 1);
}

#[test]
fn a_lost_node_is_not_noticed_by_readers() {
    let mut fleet = TestFleet::start(8, 3, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    for text in WRITES {
        ask(&database, OpenCypher, text).unwrap();
    }
    let expected: Vec<_> = READS.iter().map(|text| rows(&database, OpenCypher, text)).collect();
    let (stop, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        for (text, expected) in READS.iter().zip(&expected) {
                            assert_eq!(rows(&database, OpenCypher, text), *expected, "{text}");
                            asked.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        let wait = |fleet: &TestFleet, more: u64| {
            let until = asked.load(Ordering::Relaxed) + more;
            fleet.wait_until("queries were answered", |_| {
                asked.load(Ordering::Relaxed) >= until || readers.iter().any(|reader| reader.is_finished())
            });
        };
        wait(&fleet, 50);
        let lost = fleet.kill("n1");
        wait(&fleet, 200);
        // The node comes back as another process, and then another node is killed.
        drop(lost);
        fleet.join("n1");
        fleet.wait_until("it serves again", |fleet| {
            let map = fleet.map.load(GRAPH, None).unwrap();
            (0..8).all(|p| map.serving(PartitionId(p)).len() == 2)
        });
        let lost = fleet.kill("n2");
        wait(&fleet, 200);
        stop.store(true, Ordering::Relaxed);
        drop(lost);
    });
}

#[test]
fn a_replica_comes_from_a_checkpoint_and_the_rest_of_the_log() {
    [1, 2, 4].into_iter().for_each(a_replica_comes_from_a_checkpoint);
}

fn a_replica_comes_from_a_checkpoint(shards: u16) {
    let config = NodeConfig { checkpoint_versions: 3, ..fast() };
    let mut fleet = TestFleet::start_sharded(shards, 4, 2, 1, 64, config);
    let (database, _worker) = fleet.worker();
    let one = Database::open(Options { partitions: 4, ..Options::default() }).unwrap();
    let write = |text: &str| {
        for database in [&database, &one] {
            ask(database, OpenCypher, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    };
    WRITES.iter().for_each(|text| write(text));
    fleet.wait_until("all have a checkpoint", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
    let least = fleet.map.checkpoints(GRAPH).unwrap().iter().map(|c| c.version).min().unwrap();
    // The log no longer has the records that checkpoints cover.
    fleet.log.trim(least);
    write("CREATE (:Late {id: 1000})");
    fleet.hand_all_to("n9");
    let _gone = [fleet.kill("n0"), fleet.kill("n1")];
    same(&database, &one);
    write("MATCH (l:Late) SET l.seen = true");
    assert_eq!(
        rows(&database, OpenCypher, "MATCH (l:Late) RETURN l.seen"),
        rows(&one, OpenCypher, "MATCH (l:Late) RETURN l.seen")
    );
}

#[test]
fn a_replica_that_was_taken_and_given_back_at_once_serves_again() {
    let fleet = TestFleet::start(2, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:A {n: 1})").unwrap();
    let node = fleet.map.load(GRAPH, None).unwrap().replicas(PartitionId(0))[0].node.clone();
    // In between, the node cannot see the map.
    let changes = [
        Change::DropReplica { partition: PartitionId(0), node: node.clone() },
        Change::AddReplica { partition: PartitionId(0), node },
    ];
    fleet.map.change(GRAPH, None, &changes).unwrap();
    assert_eq!(fleet.map.load(GRAPH, None).unwrap().serving(PartitionId(0)).len(), 1);
    fleet.wait_until("it serves again", |fleet| {
        fleet.map.load(GRAPH, None).unwrap().serving(PartitionId(0)).len() == 2
    });
    assert_eq!(rows(&database, OpenCypher, "MATCH (a:A) RETURN a.n").len(), 1);
}

/// Damages all objects of the checkpoints of a partition, and returns them as they were.
fn damage_checkpoints(fleet: &TestFleet, partition: &str) -> Vec<(String, Vec<u8>)> {
    let all = fleet.objects.list(&format!("checkpoints/{partition}/")).unwrap();
    let data = all.into_iter().map(|object| object.path).filter(|path| !path.contains("/manifest-"));
    let before: Vec<_> = data
        .map(|path| {
            let bytes = fleet.objects.get(&path).unwrap().to_vec();
            fleet.objects.put(&path, vec![0; bytes.len()]).unwrap();
            (path, bytes)
        })
        .collect();
    assert!(!before.is_empty());
    before
}

#[test]
fn a_replica_that_cannot_be_restored_does_not_keep_others_from_it() {
    let config = NodeConfig { checkpoint_versions: 1, restores_at_once: 1, ..fast() };
    let mut fleet = TestFleet::start(2, 1, 1, 64, config);
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(0, 99) AS n CREATE (:A {n: n})").unwrap();
    fleet.wait_until("there are checkpoints of all", |fleet| {
        let (noted, applied) = (fleet.map.checkpoints(GRAPH).unwrap(), fleet.members[0].node.applied());
        noted.len() == 2 && noted.iter().all(|noted| noted.version == applied)
    });
    let before = damage_checkpoints(&fleet, "p00000");
    fleet.join("a");
    let a = fleet.members[1].id.clone();
    let add = |partition| Change::AddReplica { partition, node: a.clone() };
    let both = [PartitionId(0), PartitionId(1)];
    fleet.map.change(GRAPH, None, &both.map(add)).unwrap();
    let serves = |fleet: &TestFleet, partition| {
        fleet.map.load(GRAPH, None).unwrap().serving(partition).iter().any(|(id, _)| **id == a)
    };
    fleet.wait_until("the other one serves", |fleet| serves(fleet, both[1]));
    assert!(!serves(&fleet, both[0]));
    for (path, bytes) in before {
        fleet.objects.put(&path, bytes).unwrap();
    }
    fleet.wait_until("it serves too", |fleet| {
        fleet.node_clock.advance(Duration::from_secs(1));
        serves(fleet, both[0])
    });
    assert_eq!(rows(&database, OpenCypher, "MATCH (a:A) RETURN a.n").len(), 100);
}

#[test]
fn reads_go_on_without_a_sequencer_and_writes_when_there_is_one() {
    let mut fleet = TestFleet::start(2, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:A {n: 1})").unwrap();
    fleet.stop_sequencer();
    assert_eq!(rows(&database, OpenCypher, "MATCH (a:A) RETURN a.n").len(), 1);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| ask(&database, OpenCypher, "CREATE (:A {n: 2})"));
        fleet.clock.sleep(Duration::from_millis(300));
        assert!(!writing.is_finished(), "it waits for a sequencer");
        assert_eq!(rows(&database, OpenCypher, "MATCH (a:A) RETURN a.n").len(), 1);
        fleet.start_sequencer();
        writing.join().unwrap().unwrap();
    });
    assert_eq!(rows(&database, OpenCypher, "MATCH (a:A) RETURN a.n").len(), 2);
}

/// Transactions change both shards, and one shard does not answer while they are written, so their parts
/// reach only the other shard. The sequencer cannot know what is in the log, and the next one replaces it.
#[test]
fn what_stands_in_one_shard_only_is_seen_by_nobody() {
    const WHOLE: &str = "MATCH (a:A) WITH a.n AS n, count(*) AS found WHERE found <> 16 RETURN n, found";
    let fleet = TestFleet::start_sharded(2, 4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    let first = |n: u64| format!("UNWIND range(0, 15) AS i CREATE (:A {{n: {n}, i: i}})");
    ask(&database, OpenCypher, &first(0)).unwrap();
    let lacking = fleet.log.shard(ShardId(1));
    let other = fleet.log.shard(ShardId(0));
    for n in 1..=3 {
        // All replicas have the last transaction, so none of its records is still in flight.
        assert_eq!(rows(&database, OpenCypher, WHOLE), [""; 0]);
        let before = other.arrived();
        lacking.set_away(true);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| ask(&database, OpenCypher, &first(n)));
            fleet.wait_until("a part of it is there", |_| other.arrived() > before);
            for _ in 0..20 {
                assert_eq!(rows(&database, OpenCypher, WHOLE), [""; 0], "transaction {n}");
                fleet.clock.sleep(Duration::from_millis(5));
            }
            assert!(!writing.is_finished(), "no process can say that it was written");
            lacking.set_away(false);
            writing.join().unwrap().unwrap();
        });
        // All replicas have the transaction once, and completely.
        assert_eq!(rows(&database, OpenCypher, WHOLE), [""; 0]);
        let all = rows(&database, OpenCypher, "MATCH (a:A) RETURN a.n, a.i");
        assert_eq!(all.len() as u64, 16 * (n + 1));
        let (worker, _worker) = fleet.worker();
        fleet.wait_until("another worker knows it", |_| {
            rows(&worker, OpenCypher, "MATCH (a:A) RETURN a.n, a.i") == all
        });
    }
}

#[test]
fn a_worker_that_knows_no_version_does_not_answer_as_if_there_were_nothing() {
    let mut fleet = TestFleet::start(2, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:A {n: 1})").unwrap();
    fleet.stop_sequencer();
    let (late, _worker) = fleet.worker();
    let refused = ask(&late, OpenCypher, "MATCH (a:A) RETURN a.n").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable, "{refused}");
    fleet.start_sequencer();
    fleet.wait_until("it knows", |_| ask(&late, OpenCypher, "MATCH (a:A) RETURN a.n").is_ok());
    assert_eq!(rows(&late, OpenCypher, "MATCH (a:A) RETURN a.n").len(), 1);
}

/// APL-2: a node that drops a replica and restores it again in the same process refuses positions in the earlier store.
#[test]
fn a_scan_does_not_continue_in_a_replica_that_was_restored() {
    let fleet = TestFleet::start(1, 2, 2, 64, NodeConfig::default());
    let (database, worker) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(0, 2999) AS n CREATE (:Person {n: n})").unwrap();
    ask(&database, OpenCypher, "CREATE (:Hub {`~id`: 'hub'})").unwrap();
    ask(&database, OpenCypher, "MATCH (h:Hub), (p:Person) CREATE (h)-[:KNOWS]->(p)").unwrap();
    let at = worker.snapshot(None).unwrap().at;
    let scan = VertexScan { max_rows: 2, ..VertexScan::default() };
    let reader = worker.reader(ReadOptions::default());
    let next = reader.scan_vertices(at, &scan, ScanCursor::default(), &mut Vec::new()).unwrap().unwrap();
    reader.scan_vertices(at, &scan, next, &mut Vec::new()).unwrap();
    // The same for a position among the edges of one vertex.
    let (hub, expand) =
        ([GuiHasher::with_bits(64).gui("hub")], Expand { max_rows: 20, ..Expand::all(Direction::Out) });
    let expanded =
        reader.expand(at, &expand, &hub, Cursor::default(), &mut Expansion::default()).unwrap().unwrap();
    assert!(expanded.offset > 0 && expanded.replica > 0, "{expanded:?}");
    reader.expand(at, &expand, &hub, expanded, &mut Expansion::default()).unwrap();
    let partition = PartitionId(0);
    // One node after the other, since the last replica that serves cannot be dropped.
    for member in &fleet.members {
        let node = member.id.clone();
        let change = |change: Change| fleet.map.change(GRAPH, None, &[change]).unwrap();
        change(Change::DropReplica { partition, node: node.clone() });
        fleet.wait_until("the replica is given up", |_| member.node.replicas().is_empty());
        change(Change::AddReplica { partition, node: node.clone() });
        fleet.wait_until("the replica is restored", |fleet| {
            let map = fleet.map.load(GRAPH, None).unwrap();
            map.serving(partition).len() == 2 && member.node.replicas().iter().all(|(_, _, ready)| *ready)
        });
    }
    let is_refused = |answer: Result<bool, Error>| match answer {
        Err(Error::Unavailable(reason)) => reason.contains("restored"),
        // The node has not heard yet that it serves.
        Err(Error::NotHere { .. } | Error::WrongEpoch { .. } | Error::Behind { .. }) => false,
        other => panic!("a position of another store was used: {other:?}"),
    };
    fleet.wait_until("the replica refuses", |_| {
        let scanned = reader.scan_vertices(at, &scan, next, &mut Vec::new()).map(|next| next.is_some());
        let rows = reader.expand(at, &expand, &hub, expanded, &mut Expansion::default());
        is_refused(scanned) && is_refused(rows.map(|next| next.is_some()))
    });
    assert_eq!(rows(&database, OpenCypher, "MATCH (p:Person) RETURN count(p)"), ["[Long(3000)]"]);
}

/// A worker knows the names of each version that it reads, also if another worker made them and the sequencer is gone.
#[test]
fn names_are_known_without_a_sequencer() {
    let mut fleet = TestFleet::start(2, 2, 2, 64, NodeConfig::default());
    let (first, _) = fleet.worker();
    let (second, worker) = fleet.worker();
    let written = ask(&first, OpenCypher, "CREATE (:Person {`~id`: 'p', email: 'x'})").unwrap();
    fleet.wait_until("the other worker hears of it", |_| worker.status().version >= written.version);
    fleet.stop_sequencer();
    let parameters = Parameters::default();
    let at_least = |text| {
        let query = Query { at_least: Some(written.version), ..Query::new(OpenCypher, text, &parameters) };
        format!("{:?}", second.query(&query).unwrap().rows)
    };
    assert_eq!(at_least("MATCH (p:Person {email: 'x'}) RETURN count(p)"), "[[Long(1)]]");
    let labels = at_least("MATCH (p) WHERE id(p) = 'p' RETURN labels(p), keys(p)");
    assert!(labels.contains("Person") && labels.contains("email"), "{labels}");
    // What no worker ever named is not in the graph.
    assert_eq!(at_least("MATCH (p:Stranger) RETURN count(p)"), "[[Long(0)]]");
    // A write that waits for the next sequencer finds the vertex too.
    std::thread::scope(|scope| {
        let text = "MERGE (p:Person {email: 'x'}) ON MATCH SET p.found = true RETURN id(p)";
        let merging = scope.spawn(|| rows(&second, OpenCypher, text));
        fleet.start_sequencer();
        assert_eq!(merging.join().unwrap(), rows(&first, OpenCypher, "MATCH (p) RETURN id(p)"));
    });
}
