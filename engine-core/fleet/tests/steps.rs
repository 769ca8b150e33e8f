//! Bulk loads whose steps several processes carry out, with the same result as in one process, even if a process
//! forgets its work (LOAD-1).

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use support::{TestFleet, ask, patient, rows};
use tidegraph_engine::Language::{Gremlin, OpenCypher};
use tidegraph_engine::loads::{Ahead, Ingest, LoadSpec, LoadState, Stage};
use tidegraph_engine::{Backend, Database, Options, Parameters, Query};
use tidegraph_fleet::{NodeConfig, WorkerConfig};
use tidegraph_platform::RealRandom;
use tidegraph_remote::{Commits, Error, LoadRequest, RequestId};
use tidegraph_types::{ErrorCode, Value};

fn fast() -> NodeConfig {
    NodeConfig { beat: Duration::from_millis(50), ..NodeConfig::default() }
}

/// Writes files with a ring of people who each know the next one. Some people have a second value or a second row.
fn write_files(dir: &Path, people: usize) {
    let mut vertices = String::from("~id,~label,n:Int(single),name:String(single),tag:String(set)\n");
    let mut edges = String::from("~id,~from,~to,~label,since:Int\n");
    let mut friends = String::from("~id,~from,~to,~label\n");
    for n in 0..people {
        let next = (n + 1) % people;
        writeln!(vertices, "v{n},Person,{n},p{n},t{}", n % 7).unwrap();
        if n % 10 == 0 {
            writeln!(vertices, "v{n},Tenth,,,\"second\nline\"").unwrap();
        }
        writeln!(edges, "e{n},v{n},v{next},KNOWS,{}", n % 50).unwrap();
        writeln!(friends, "f{n},v{n},v{},FRIEND", (n * 7) % people).unwrap();
    }
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("people.csv"), vertices).unwrap();
    std::fs::write(dir.join("knows.csv"), edges).unwrap();
    std::fs::write(dir.join("friends.csv"), friends).unwrap();
}

fn spec(dir: &Path) -> LoadSpec {
    LoadSpec::new(vec![format!("file://{}", dir.display())], None)
}

const READS: &[&str] = &[
    "MATCH (a) RETURN count(a)",
    "MATCH ()-[r]->() RETURN type(r), count(r), sum(r.since)",
    "MATCH (a:Tenth) RETURN count(a), sum(a.n)",
    "MATCH (a:Person {n: 7})-[:KNOWS*1..3]->(b) RETURN b.name, b.n",
    "MATCH (a:Person)<-[:FRIEND]-(b) WHERE a.n < 5 RETURN a.name, b.name, labels(a)",
    "MATCH (a)-[r:KNOWS]->(b) WHERE id(a) = 'v11' RETURN id(r), id(b), a.tag",
];

fn same(fleet: &Database, one: &Database) {
    for text in READS {
        assert_eq!(rows(fleet, OpenCypher, text), rows(one, OpenCypher, text), "{text}");
    }
}

/// Starts a process that runs steps: a worker of its own, with tasks of some kilobytes.
fn steps(fleet: &TestFleet) -> Ingest {
    let (_, worker) = fleet.worker();
    Ingest::new(worker, fleet.objects.clone(), fleet.clock.clone(), Arc::new(RealRandom), 2_000)
}

/// Runs all tasks of a stage in two processes at the same time, each task twice.
fn work(two: &[Ingest; 2], id: &str, stage: Stage, round: u32, tasks: &[u32]) {
    std::thread::scope(|scope| {
        for ingest in two {
            scope.spawn(move || {
                for task in tasks {
                    ingest.work(id, stage, round, *task).unwrap();
                }
            });
        }
    });
}

/// Runs the load to its end, each step in another process. Calls `before_commit` before each commit.
fn go_on(
    fleet: &TestFleet,
    id: &str,
    mut ahead: Ahead,
    mut before_commit: impl FnMut(u32),
) -> (LoadState, String) {
    loop {
        let two = [steps(fleet), steps(fleet)];
        ahead = match ahead {
            Ahead::Work { stage, round, tasks } => {
                work(&two, id, stage, round, &tasks);
                two[0].next(id, stage, round).unwrap()
            }
            Ahead::Commit { round } => {
                before_commit(round);
                two[0].commit(id, round).unwrap()
            }
            Ahead::Ended { state, report } => return (state, report),
        };
    }
}

fn load(fleet: &TestFleet, id: &str, spec: LoadSpec) -> (LoadState, serde_json::Value) {
    let ahead = steps(fleet).begin(id, spec, None).unwrap();
    let (state, report) = go_on(fleet, id, ahead, |_| {});
    (state, serde_json::from_slice(&fleet.objects.get(&report).unwrap()).unwrap())
}

#[test]
fn a_load_in_steps_is_as_in_one_process_once_and_twice() {
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    write_files(&first, 400);
    write_files(&second, 450);
    for hash_bits in [64, 8] {
        let fleet = TestFleet::start(4, 3, 2, hash_bits, fast());
        let (database, _worker) = fleet.worker();
        let one = Database::open(Options { partitions: 4, hash_bits, ..Options::default() }).unwrap();
        for (number, dir) in (0..).zip([&first, &first, &second]) {
            let id = format!("load-{number}");
            // Edges with existing ids and different ends are refused.
            let spec = || LoadSpec { fail_on_error: false, ..spec(dir) };
            let (state, report) = load(&fleet, &id, spec());
            let there = one.loads().submit(spec()).unwrap();
            let there = one.loads().wait(&there).unwrap();
            assert_eq!(state, there.overall.state, "{report}");
            let counts = there.overall.counts;
            assert_eq!(report["totalRecords"], counts.total_records);
            assert_eq!(report["totalDuplicates"], counts.total_duplicates);
            assert_eq!(report["insertErrors"], counts.insert_errors);
            // Every worker reports the load.
            let told = database.loads().status(&id).unwrap();
            assert_eq!((told.overall.state, told.overall.counts), (state, counts));
            assert_eq!(told.version, report["version"].as_u64());
            fleet.wait_until("it is seen", |_| {
                rows(&database, OpenCypher, READS[1]) == rows(&one, OpenCypher, READS[1])
            });
            same(&database, &one);
            // A repeated call changes nothing.
            let again = steps(&fleet).begin(&id, spec(), None).unwrap();
            assert!(matches!(again, Ahead::Ended { state: LoadState::Completed, .. }), "{again:?}");
        }
        let left: Vec<_> = fleet.objects.list("ingest/").unwrap().into_iter().map(|o| o.path).collect();
        let is_kept = |path: &String| path.ends_with("/report.json") || path.ends_with("/asked");
        assert!(left.iter().all(is_kept), "{left:?}");
        for database in [&database, &one] {
            ask(database, OpenCypher, "MATCH (a:Person {n: 3}) DETACH DELETE a").unwrap();
        }
        same(&database, &one);
    }
}

#[test]
fn rows_that_are_refused_end_it_or_are_told() {
    let home = tempfile::tempdir().unwrap();
    write_files(home.path(), 50);
    std::fs::write(home.path().join("bad.csv"), "~id,~label,n:Int\nw1,Person,1\nw2,Person,many\n").unwrap();
    std::fs::write(home.path().join("gone.csv"), "~id,~from,~to\nx1,w1,nobody\nx2,w1,v1\n").unwrap();
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    let (state, report) = load(&fleet, "strict", spec(home.path()));
    assert_eq!(state, LoadState::Failed);
    assert_eq!(
        (&report["datatypeMismatchErrors"], &report["version"]),
        (&1.into(), &serde_json::Value::Null)
    );
    assert_eq!(report["errorLogs"][0]["recordNum"], 3);
    assert!(report["message"].as_str().unwrap().contains("failOnError"), "{report}");
    assert_eq!(rows(&database, OpenCypher, READS[0]), ["[Long(0)]"]);
    assert_eq!(fleet.objects.list("loads/").unwrap(), []);
    let told = database.loads().status("strict").unwrap();
    assert_eq!((told.overall.state, told.errors.len()), (LoadState::Failed, 1));
    let (state, report) = load(&fleet, "mild", LoadSpec { fail_on_error: false, ..spec(home.path()) });
    assert_eq!(state, LoadState::Completed);
    assert_eq!((&report["datatypeMismatchErrors"], &report["insertErrors"]), (&1.into(), &1.into()));
    fleet.wait_until("it is seen", |_| rows(&database, OpenCypher, READS[0]) == ["[Long(51)]"]);
}

#[test]
fn what_cannot_be_read_fails_the_load_and_is_told() {
    let home = tempfile::tempdir().unwrap();
    let fleet = TestFleet::start(2, 2, 2, 64, fast());
    let empty = spec(home.path());
    let Ahead::Ended { state, report } = steps(&fleet).begin("empty", empty, None).unwrap() else { panic!() };
    assert_eq!(state, LoadState::Failed);
    let report = String::from_utf8(fleet.objects.get(&report).unwrap().to_vec()).unwrap();
    assert!(report.contains("there are no files"), "{report}");
    std::fs::write(home.path().join("a.csv"), "~id\na\n").unwrap();
    let named = Some(vec!["/b.csv".to_owned()]);
    let Ahead::Ended { state, report } = steps(&fleet).begin("named", spec(home.path()), named).unwrap()
    else {
        panic!()
    };
    assert_eq!(state, LoadState::Failed);
    let report = String::from_utf8(fleet.objects.get(&report).unwrap().to_vec()).unwrap();
    assert!(report.contains("/b.csv") && report.contains("manifest"), "{report}");
    // A load that never began, and a task that the load does not have.
    let unknown = steps(&fleet).next("nobody", Stage::Parse, 0).unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::BulkLoadIdNotFound);
    let begun = steps(&fleet).begin("some", spec(home.path()), None).unwrap();
    assert_eq!(begun, Ahead::Work { stage: Stage::Parse, round: 0, tasks: vec![0] });
    let beyond = steps(&fleet).work("some", Stage::Parse, 0, 7).unwrap_err();
    assert!(beyond.to_string().contains('7'), "{beyond}");
    let early = steps(&fleet).next("some", Stage::Parse, 0).unwrap_err();
    assert_eq!(early.code(), ErrorCode::NotFound, "{early}");
    // The file is gone when its task runs: the load fails, and cannot complete without it.
    std::fs::remove_file(home.path().join("a.csv")).unwrap();
    let gone = steps(&fleet).work("some", Stage::Parse, 0, 0).unwrap_err();
    assert!(gone.to_string().contains("a.csv"), "{gone}");
    // No process does the remaining work.
    let given_up = steps(&fleet).abandon("some", "States.Timeout", "too long").unwrap();
    assert!(matches!(given_up, Ahead::Ended { state: LoadState::Failed, .. }));
    let (database, _worker) = fleet.worker();
    let told = database.loads().status("some").unwrap();
    assert!(told.overall.message.unwrap().contains("States.Timeout: too long"));
}

/// IDS-1: with 9 bits nearly every GUI is shared by two ids, so vertices of transactions collide with the load.
#[test]
fn vertices_made_meanwhile_never_share_a_gui_with_it() {
    let home = tempfile::tempdir().unwrap();
    write_files(home.path(), 300);
    let fleet = TestFleet::start(4, 2, 2, 9, fast());
    let (database, _worker) = fleet.worker();
    let ahead = steps(&fleet).begin("l", spec(home.path()), None).unwrap();
    let mut rounds = Vec::new();
    let (state, _) = go_on(&fleet, "l", ahead, |round| {
        rounds.push(round);
        if round < 2 {
            for n in 0..20 {
                let text = format!("CREATE (:Meanwhile {{`~id`: 'm{round}-{n}', n: {n}}})");
                ask(&database, OpenCypher, &text).unwrap();
            }
        }
    });
    assert_eq!((state, &rounds[..]), (LoadState::Completed, &[0, 1, 2][..]));
    let count = |text: &str| rows(&database, OpenCypher, text);
    fleet.wait_until("it is seen", |_| count("MATCH (a:Person) RETURN count(a)") == ["[Long(300)]"]);
    assert_eq!(count("MATCH (a:Meanwhile) RETURN count(a)"), ["[Long(40)]"]);
    assert_eq!(count("MATCH (a:Meanwhile) WHERE a:Person RETURN count(a)"), ["[Long(0)]"]);
    assert_eq!(count("MATCH ()-[r:KNOWS]->() RETURN count(r)"), ["[Long(300)]"]);
    assert_eq!(count("MATCH (a) WHERE id(a) = 'm1-7' RETURN a.n"), ["[Long(7)]"]);
}

/// What transactions delete, and which ids edges get, concerns a load only if the load has met it.
#[test]
fn changes_meanwhile_begin_another_round_only_if_they_concern_it() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "UNWIND range(0, 40) AS n CREATE (:Old {`~id`: 'o' + toString(n)})").unwrap();
    // Rows with vertices, with edges between the load and the graph, and with edges of the graph alone.
    std::fs::write(dir.join("vertices.csv"), "~id,~label\na,New\nb,New\n").unwrap();
    let edges = "~id,~from,~to,~label\ne1,a,o1,R\ne2,o2,b,R\ne3,o3,o4,R\n";
    std::fs::write(dir.join("edges.csv"), edges).unwrap();
    let gremlin = |text: &str| ask(&database, Gremlin, text).unwrap();
    let delete = |n: usize| gremlin(&format!("g.V('o{n}').drop()"));
    let connect = |n: usize, id: &str| {
        gremlin(&format!("g.V('o{n}').addE('S').to(__.V('o{}')).property(id, '{id}')", n + 1))
    };
    let rounds_of = |id: &str, mut meanwhile: Box<dyn FnMut(u32) + '_>| {
        let ahead = steps(&fleet).begin(id, LoadSpec { fail_on_error: false, ..spec(dir) }, None).unwrap();
        let mut rounds = 0;
        let (state, report) = go_on(&fleet, id, ahead, |round| {
            meanwhile(round);
            rounds = round + 1;
        });
        assert_eq!(state, LoadState::Completed);
        let report: serde_json::Value = serde_json::from_slice(&fleet.objects.get(&report).unwrap()).unwrap();
        (rounds, report["insertErrors"].as_u64().unwrap())
    };
    let other = |round| {
        delete(30 + round as usize);
        connect(20, &format!("other{round}"));
    };
    assert_eq!(rounds_of("unconcerned", Box::new(other)), (1, 0));
    // Each of these is met by the load: a vertex of a row, the ends of edges, the id of an edge.
    let first = |act: Box<dyn Fn()>| {
        Box::new(move |round| {
            if round == 0 {
                act()
            }
        })
    };
    gremlin("g.V('a').drop()");
    gremlin("g.E('e2', 'e3').drop()");
    assert_eq!(rounds_of("end", first(Box::new(|| drop(delete(4))))), (2, 1));
    gremlin("g.E('e2').drop()");
    assert_eq!(rounds_of("id", first(Box::new(|| drop(connect(10, "e2"))))).0, 2);
    assert_eq!(rounds_of("vertex", first(Box::new(|| drop(gremlin("g.V('b').drop()"))))).0, 2);
}

/// What was deleted before a round began is not compared when the load is committed.
#[test]
fn a_task_at_a_worker_that_is_behind_reads_at_the_version_of_its_round() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("edges.csv"), "~id,~from,~to,~label\ne,a,b,R\n").unwrap();
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:Old {`~id`: 'a'}), (:Old {`~id`: 'b'})").unwrap();
    // It asks for the newest version only when it is told to.
    let config = WorkerConfig { version_every: Duration::ZERO, ..patient() };
    let (_, behind) = fleet.worker_with(config, fleet.clock.clone());
    assert!(behind.refresh_version());
    ask(&database, OpenCypher, "MATCH (b) WHERE id(b) = 'b' DELETE b").unwrap();
    let spec = LoadSpec { fail_on_error: false, ..spec(home.path()) };
    let mut ahead = steps(&fleet).begin("l", spec, None).unwrap();
    assert!(behind.status().version < worker.status().version);
    let tasks_of =
        Ingest::new(behind, fleet.objects.clone(), fleet.clock.clone(), Arc::new(RealRandom), 2_000);
    let report = loop {
        ahead = match ahead {
            Ahead::Work { stage, round, tasks } => {
                for task in tasks {
                    tasks_of.work("l", stage, round, task).unwrap();
                }
                steps(&fleet).next("l", stage, round).unwrap()
            }
            Ahead::Commit { round } => steps(&fleet).commit("l", round).unwrap(),
            Ahead::Ended { report, .. } => break report,
        };
    };
    let report: serde_json::Value = serde_json::from_slice(&fleet.objects.get(&report).unwrap()).unwrap();
    assert_eq!(report["insertErrors"], 1, "{report}");
    assert_eq!(report["errorLogs"][0]["errorCode"], "FROM_OR_TO_VERTEX_ARE_MISSING", "{report}");
}

#[test]
fn a_load_that_lost_three_rounds_gets_its_turn() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("vertices.csv"), "~id,~label\na,New\nb,New\n").unwrap();
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:Old {`~id`: 'a', n: 0})").unwrap();
    let write = || {
        let text = "MATCH (a) WHERE id(a) = 'a' WITH a, a.n + 1 AS n DETACH DELETE a \
                    CREATE (:Old {`~id`: 'a', n: n})";
        ask(&database, OpenCypher, text).unwrap().version
    };
    let ahead = steps(&fleet).begin("l", spec(home.path()), None).unwrap();
    let mut rounds = 0;
    let last = std::thread::scope(|scope| {
        let mut last = None;
        let (state, report) = go_on(&fleet, "l", ahead, |round| {
            rounds = round + 1;
            if round < 3 {
                write();
                return;
            }
            let (told, written) = mpsc::channel();
            last = Some(scope.spawn(move || {
                let version = write();
                let _ = told.send(());
                version
            }));
            // It waits for the turn of the load. Without the turn it would be committed.
            let _ = written.recv_timeout(Duration::from_secs(1));
        });
        assert_eq!((state, rounds), (LoadState::Completed, 4), "{report}");
        last.unwrap().join().unwrap()
    });
    let (other, _other_worker) = fleet.worker();
    assert!(last.0 > other.loads().status("l").unwrap().version.unwrap());
    let parameters = Parameters::default();
    let text = "MATCH (a) RETURN id(a), labels(a), a.n ORDER BY id(a)";
    let query = Query { at_least: Some(last), ..Query::new(OpenCypher, text, &parameters) };
    let list = |text: &str| Value::list(vec![Value::string(text)]);
    let expected =
        [[Value::string("a"), list("Old"), Value::Long(4)], [Value::string("b"), list("New"), Value::Null]];
    assert_eq!(other.query(&query).unwrap().rows, expected);
}

#[test]
fn what_is_unique_stays_so() {
    let home = tempfile::tempdir().unwrap();
    write_files(home.path(), 40);
    std::fs::write(home.path().join("twice.csv"), "~id,~label,n:Int(single)\nz,Person,7\n").unwrap();
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    let mild = LoadSpec { fail_on_error: false, ..spec(home.path()) };
    let ahead = steps(&fleet).begin("l", mild, None).unwrap();
    let mut rounds = 0;
    let (state, report) = go_on(&fleet, "l", ahead, |round| {
        rounds = round + 1;
        if round == 0 {
            // The constraint is created after the load has checked all rows.
            let text = "CREATE CONSTRAINT one FOR (p:Person) REQUIRE p.n IS UNIQUE";
            ask(&database, OpenCypher, text).unwrap();
        }
    });
    assert_eq!((state, rounds), (LoadState::Completed, 2));
    let report: serde_json::Value = serde_json::from_slice(&fleet.objects.get(&report).unwrap()).unwrap();
    assert_eq!(report["insertErrors"], 1, "{report}");
    assert_eq!(report["errorLogs"][0]["errorCode"], "UNIQUE_CONSTRAINT_VIOLATION");
    fleet.wait_until("it is seen", |_| rows(&database, OpenCypher, READS[0]) == ["[Long(40)]"]);
}

#[test]
fn a_commit_whose_answer_was_lost_is_found_and_a_sequencer_that_goes_is_none_the_less() {
    let home = tempfile::tempdir().unwrap();
    write_files(home.path(), 200);
    let mut fleet = TestFleet::start(4, 3, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    ask(&database, OpenCypher, "CREATE (:Before)").unwrap();
    let mut ahead = steps(&fleet).begin("l", spec(home.path()), None).unwrap();
    let mut gone = None;
    loop {
        let two = [steps(&fleet), steps(&fleet)];
        ahead = match ahead {
            Ahead::Work { stage, round, tasks } => {
                work(&two, "l", stage, round, &tasks);
                if stage == Stage::Vertices && gone.is_none() {
                    gone = Some(fleet.kill("n1"));
                    fleet.stop_sequencer();
                    fleet.clock.sleep(Duration::from_millis(200));
                    fleet.start_sequencer();
                }
                two[1].next("l", stage, round).unwrap()
            }
            // The next sequencer does not know what was written before it took over, so
            // the load goes over its rows again.
            Ahead::Commit { round: 0 } => two[0].commit("l", 0).unwrap(),
            Ahead::Commit { round } => {
                assert_eq!(round, 1);
                break;
            }
            Ahead::Ended { .. } => panic!("{ahead:?}"),
        };
    }
    // Restores the state that a process leaves if it commits and dies before it records the commit.
    let job = fleet.objects.get("jobs/l.json").unwrap();
    let kept = fleet.objects.list("ingest/l/").unwrap().into_iter().map(|object| object.path);
    let kept: Vec<_> = kept.map(|path| (fleet.objects.get(&path).unwrap(), path)).collect();
    let first = steps(&fleet).commit("l", 1).unwrap();
    assert!(matches!(first, Ahead::Ended { state: LoadState::Completed, .. }), "{first:?}");
    let version = database.loads().status("l").unwrap().version;
    fleet.objects.put("jobs/l.json", job.clone()).unwrap();
    for (bytes, path) in &kept {
        fleet.objects.put(path, bytes.clone()).unwrap();
    }
    let report = |ahead: &Ahead| -> serde_json::Value {
        let Ahead::Ended { report, .. } = ahead else { panic!("{ahead:?}") };
        let mut told: serde_json::Value =
            serde_json::from_slice(&fleet.objects.get(report).unwrap()).unwrap();
        told["totalTimeSpent"].take();
        told
    };
    let told = report(&first);
    // A repeated commit gets the same answer, and so does an attempt to abandon the load.
    let second = steps(&fleet).commit("l", 1).unwrap();
    assert_eq!((report(&second), &second), (told.clone(), &first));
    fleet.objects.put("jobs/l.json", job).unwrap();
    for (bytes, path) in kept {
        fleet.objects.put(&path, bytes).unwrap();
    }
    let third = steps(&fleet).abandon("l", "States.Timeout", "").unwrap();
    assert_eq!((report(&third), &third), (told, &first));
    let (other, _other_worker) = fleet.worker();
    assert_eq!(other.loads().status("l").unwrap().version, version);
    fleet.wait_until("it is seen", |_| {
        rows(&other, OpenCypher, "MATCH ()-[r:KNOWS]->() RETURN count(r)") == ["[Long(200)]"]
    });
    // Abandoning the load does not change its outcome.
    let given_up = steps(&fleet).abandon("l", "States.Timeout", "").unwrap();
    assert_eq!(given_up, first);
    drop(gone);
}

#[test]
fn a_load_whose_segments_another_process_removes_is_not_committed() {
    let home = tempfile::tempdir().unwrap();
    write_files(home.path(), 50);
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    let mut ahead = steps(&fleet).begin("l", spec(home.path()), None).unwrap();
    let round = loop {
        let two = [steps(&fleet), steps(&fleet)];
        ahead = match ahead {
            Ahead::Work { stage, round, tasks } => {
                work(&two, "l", stage, round, &tasks);
                two[0].next("l", stage, round).unwrap()
            }
            Ahead::Commit { round } => break round,
            Ahead::Ended { .. } => panic!("{ahead:?}"),
        };
    };
    let objects = &fleet.objects;
    let read = [objects.list("jobs/").unwrap(), objects.list("ingest/l/").unwrap()].concat();
    let read: Vec<_> =
        read.into_iter().map(|object| (objects.get(&object.path).unwrap(), object.path)).collect();
    let given_up = steps(&fleet).abandon("l", "States.Timeout", "too long").unwrap();
    assert!(matches!(given_up, Ahead::Ended { state: LoadState::Failed, .. }), "{given_up:?}");
    assert_eq!(objects.list("loads/").unwrap(), []);
    // Restores what a process has read that began to commit before the load was abandoned.
    for (bytes, path) in read {
        objects.put(&path, bytes).unwrap();
    }
    let refused = steps(&fleet).commit("l", round).unwrap();
    assert!(matches!(refused, Ahead::Ended { state: LoadState::Failed, .. }), "{refused:?}");
    // Replicas go on.
    ask(&database, OpenCypher, "CREATE (:After)").unwrap();
    fleet.wait_until("it is seen", |_| rows(&database, OpenCypher, READS[0]) == ["[Long(1)]"]);
    // A later attempt to remove the segments of a committed load finds them kept.
    write_files(&home.path().join("other"), 20);
    let (state, _) = load(&fleet, "other", spec(&home.path().join("other")));
    assert_eq!(state, LoadState::Completed);
    assert!(!objects.put_new("ingest/other/asked", "removed").unwrap());
}

/// LOAD-1: what a process sent before it died may arrive after the load was abandoned.
#[test]
fn a_late_commit_of_a_load_that_was_abandoned_commits_nothing() {
    let home = tempfile::tempdir().unwrap();
    write_files(home.path(), 5);
    let fleet = TestFleet::start(2, 1, 1, 64, fast());
    steps(&fleet).begin("l", spec(home.path()), None).unwrap();
    let (sequencer, id) = (fleet.sequencer(), RequestId::of_text("l"));
    let base = sequencer.begin_load(id, 1).unwrap();
    let given_up = steps(&fleet).abandon("l", "States.Timeout", "too long").unwrap();
    assert!(matches!(given_up, Ahead::Ended { state: LoadState::Failed, .. }), "{given_up:?}");
    let load = LoadRequest {
        load_id: "l".into(),
        segments: vec![],
        read_version: base,
        read_keys: vec![],
        compared: base,
        changes_compared: Some(base),
        first_asked: base,
        beginning: 1,
    };
    let late = sequencer.commit_load(id, load);
    assert!(matches!(late, Err(Error::LoadUnknown(_))), "{late:?}");
}
