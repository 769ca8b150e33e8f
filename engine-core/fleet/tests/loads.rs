//! Bulk loads into a fleet are visible completely or not at all, whichever process dies
//! in the meantime, and have the same result as in one process (LOAD-1, IDS-1).

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::{GRAPH, TestFleet, ask, rows};
use tidegraph_cluster::MapStore;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState, Mode};
use tidegraph_engine::{Database, Options, Parameters, Query};
use tidegraph_fleet::NodeConfig;
use tidegraph_platform::RealRandom;
use tidegraph_remote::{
    CommitOutcome, Commits, Error, LastChanges, LoadRequest, LoadStep, RemoteCommits, RequestId,
};
use tidegraph_types::{
    CommitRequest, Footprint, Gui, GuiHasher, Kind, LoadChange, LoadTurn, Mutation, Version,
};

fn fast() -> NodeConfig {
    NodeConfig { beat: Duration::from_millis(50), ..NodeConfig::default() }
}

/// Writes files with a ring of people who each know the next one. Some people have a second value or a second row.
fn write_files(dir: &Path, people: usize) {
    let mut vertices = String::from("~id,~label,n:Int(single),name:String(single),tag:String(set)\n");
    let mut edges = String::from("~id,~from,~to,~label,since:Int\n");
    for n in 0..people {
        let next = (n + 1) % people;
        writeln!(vertices, "v{n},Person,{n},p{n},t{}", n % 7).unwrap();
        if n % 10 == 0 {
            writeln!(vertices, "v{n},Tenth,,,second").unwrap();
        }
        writeln!(edges, "e{n},v{n},v{next},KNOWS,{}", n % 50).unwrap();
    }
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("people.csv"), vertices).unwrap();
    std::fs::write(dir.join("knows.csv"), edges).unwrap();
}

fn spec(dir: &Path) -> LoadSpec {
    let mut spec = LoadSpec::new(vec![format!("file://{}", dir.display())], Some(Dialect::GREMLIN));
    spec.mode = Mode::New;
    spec.queue_request = true;
    spec
}

const READS: &[&str] = &[
    "MATCH (a) RETURN count(a)",
    "MATCH ()-[r]->() RETURN type(r), count(r), sum(r.since)",
    "MATCH (a:Tenth) RETURN count(a), sum(a.n)",
    "MATCH (a:Person {n: 7})-[:KNOWS*1..3]->(b) RETURN b.name, b.n",
    "MATCH (a:Person)<-[:KNOWS]-(b) WHERE a.n < 5 RETURN a.name, b.name, labels(a)",
    "MATCH (a)-[r:KNOWS]->(b) WHERE id(a) = 'v11' RETURN id(r), id(b), a.tag",
];

fn same(fleet: &Database, one: &Database) {
    for text in READS {
        assert_eq!(rows(fleet, OpenCypher, text), rows(one, OpenCypher, text), "{text}");
    }
}

#[test]
fn a_load_is_as_in_one_process_once_and_twice() {
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    write_files(&first, 400);
    write_files(&second, 450);
    for hash_bits in [64, 8] {
        let fleet = TestFleet::start(4, 3, 2, hash_bits, fast());
        let (database, _worker) = fleet.worker();
        let (other, _other_worker) = fleet.worker();
        let one = Database::open(Options { partitions: 4, hash_bits, ..Options::default() }).unwrap();
        ask(&database, OpenCypher, "CREATE (:Before {n: 1})").unwrap();
        ask(&one, OpenCypher, "CREATE (:Before {n: 1})").unwrap();
        for dir in [&first, &first, &second] {
            // Edges with existing ids stay as they are; other edges are created. Both
            // databases report the same ones.
            let spec = spec(dir);
            let (here, there) = (database.loads(), one.loads());
            let (here_id, there_id) = (here.submit(spec.clone()).unwrap(), there.submit(spec).unwrap());
            let (here, there) = (here.wait(&here_id).unwrap(), there.wait(&there_id).unwrap());
            assert_eq!(here.overall.state, there.overall.state, "{here:?}\n{there:?}");
            assert_eq!(here.overall.counts, there.overall.counts);
            assert_eq!(here.errors, there.errors);
            same(&database, &one);
        }
        // Another worker lists the loads and sees the graph.
        let ids = other.loads().list(10, true);
        assert_eq!(ids.len(), 3);
        for id in ids {
            assert!(other.loads().status(&id).unwrap().overall.state.is_final());
        }
        fleet.wait_until("another worker sees it", |_| {
            rows(&other, OpenCypher, READS[0]) == rows(&one, OpenCypher, READS[0])
        });
        same(&other, &one);
        // Transactions continue on the loaded graph.
        for database in [&database, &one] {
            ask(database, OpenCypher, "MATCH (a:Tenth) SET a.seen = true").unwrap();
            ask(database, OpenCypher, "MATCH (a:Person {n: 3}) DETACH DELETE a").unwrap();
        }
        same(&database, &one);
    }
}

#[test]
fn a_database_without_threads_runs_its_loads_when_it_is_told_to() {
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    write_files(&first, 40);
    write_files(&second, 60);
    let fleet = TestFleet::start(2, 1, 1, 64, fast());
    let (_, worker) = fleet.worker();
    let (objects, clock, random) = (fleet.objects.clone(), fleet.clock.clone(), Arc::new(RealRandom));
    let database =
        Database::connect_without_threads(Options::default(), worker, objects, clock, random).unwrap();
    let loads = database.loads();
    // The rings end with different edges of one id.
    let spec = |dir| LoadSpec { fail_on_error: false, ..spec(dir) };
    let ids = [&first, &second].map(|dir| loads.submit(spec(dir)).unwrap());
    let third = loads.submit(spec(&first)).unwrap();
    loads.cancel(&third).unwrap();
    let state = |id: &String| loads.status(id).unwrap().overall.state;
    assert_eq!(ids.each_ref().map(state), [LoadState::NotStarted, LoadState::InQueue]);
    let count = || rows(&database, OpenCypher, "MATCH (a:Person) RETURN count(a)");
    assert_eq!(count(), ["[Long(0)]"]);
    loads.run_queued();
    assert_eq!(ids.each_ref().map(state), [LoadState::Completed; 2]);
    assert_eq!(state(&third), LoadState::Cancelled);
    let versions = ids.each_ref().map(|id| loads.status(id).unwrap().version.unwrap());
    assert!(versions[0] < versions[1], "{versions:?}");
    assert_eq!(count(), ["[Long(60)]"]);
    // Nothing is left: it returns at once.
    loads.run_queued();
    let next = loads.submit(spec(&first)).unwrap();
    assert_eq!(state(&next), LoadState::NotStarted, "no load runs");
}

#[test]
fn what_is_wrong_with_rows_is_said_and_nothing_is_visible() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("bad.csv"), "~id,~label,n:Int\nv1,Person,1\nv2,Person,many\n").unwrap();
    let fleet = TestFleet::start(2, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    let id = database.loads().submit(spec(home.path())).unwrap();
    let status = database.loads().wait(&id).unwrap();
    assert_eq!(status.overall.state, LoadState::Failed);
    assert_eq!(status.overall.counts.datatype_mismatch_errors, 1);
    assert_eq!(status.errors.len(), 1);
    assert_eq!(rows(&database, OpenCypher, "MATCH (a) RETURN count(a)"), ["[Long(0)]"]);
    assert!(fleet.objects.list("loads/").unwrap().is_empty(), "segments are left");
    // An unknown load, and texts that are no ids.
    for id in ["7f1b", "../jobs/x", ""] {
        let unknown = database.loads().status(id).unwrap_err();
        assert_eq!(unknown.code(), tidegraph_types::ErrorCode::BulkLoadIdNotFound, "{unknown}");
    }
}

/// Creates vertices whose ids share GUIs with those of the load, until the load is over.
fn make_until(database: &Database, over: &AtomicBool, made: &AtomicU64) {
    use tidegraph_types::ErrorCode;
    let mut in_doubt = false;
    // A commit in doubt is sent again until its outcome is known.
    while in_doubt || !over.load(Ordering::Relaxed) {
        let n = made.load(Ordering::Relaxed);
        let text = format!("CREATE (:Meanwhile {{`~id`: 'm{n}', n: {n}}})");
        match ask(database, OpenCypher, &text) {
            Ok(_) => in_doubt = false,
            // An earlier attempt, whose outcome was unknown, created the vertex.
            Err(error) if in_doubt && error.code() == ErrorCode::ConstraintViolation => in_doubt = false,
            // There is no sequencer, or the query conflicted with the load on every attempt.
            Err(error) => {
                let kind = error.code().kind();
                assert!(matches!(kind, Kind::Unavailable | Kind::Unknown | Kind::Conflict), "m{n}: {error}");
                // After such an error the outcome of the commit may be unknown.
                in_doubt |= kind == Kind::Unknown;
                continue;
            }
        }
        made.store(n + 1, Ordering::Relaxed);
    }
}

/// IDS-1: every vertex of the files, and every vertex that another worker created in the
/// meantime, exists once at version `known`.
fn check_all(database: &Database, people: usize, made: u64, known: u64) {
    let parameters = Parameters::default();
    let count = |text: &str| {
        let query = Query { at_least: Some(Version(known)), ..Query::new(OpenCypher, text, &parameters) };
        database.query(&query).unwrap().rows[0].clone()
    };
    let longs = |values: &[i64]| values.iter().map(|n| tidegraph_types::Value::Long(*n)).collect::<Vec<_>>();
    let (people, made) = (people as i64, made as i64);
    assert_eq!(
        count("MATCH (a:Person) RETURN count(a), sum(a.n)"),
        longs(&[people, people * (people - 1) / 2])
    );
    assert_eq!(count("MATCH (a:Meanwhile) RETURN count(a)"), longs(&[made]));
    assert_eq!(count("MATCH (a:Meanwhile) WHERE a:Person RETURN count(a)"), longs(&[0]));
    assert_eq!(
        count(
            "MATCH (a:Person)-[r:KNOWS]->(b:Person) WHERE b.n = (a.n + 1) % $people RETURN count(r)"
                .replace("$people", &people.to_string())
                .as_str()
        ),
        longs(&[people])
    );
    for n in 0..made {
        let text = format!("MATCH (a) WHERE id(a) = 'm{n}' RETURN a.n");
        assert_eq!(count(&text), longs(&[n]));
    }
}

#[test]
fn vertices_made_during_a_load_never_share_a_gui_with_it() {
    let home = tempfile::tempdir().unwrap();
    const PEOPLE: usize = 300;
    write_files(home.path(), PEOPLE);
    // With 9 bits nearly every GUI is shared by two ids.
    let fleet = TestFleet::start(4, 2, 2, 9, fast());
    let (database, _worker) = fleet.worker();
    let (other, _other_worker) = fleet.worker();
    let (over, made) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| make_until(&other, &over, &made));
        fleet.wait_until("some are made", |_| made.load(Ordering::Relaxed) > 3);
        // Each conflict makes the load start again. Against a writer that never stops, it may conflict every time.
        let id = database.loads().submit(spec(home.path())).unwrap();
        let status = loop {
            let status = database.loads().status(&id).unwrap();
            if status.overall.state.is_final() || made.load(Ordering::Relaxed) > 40 {
                over.store(true, Ordering::Relaxed);
                break database.loads().wait(&id).unwrap();
            }
            fleet.clock.sleep(Duration::from_millis(2));
        };
        over.store(true, Ordering::Relaxed);
        maker.join().unwrap();
        assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
    });
    check_all(&database, PEOPLE, made.load(Ordering::Relaxed), other.status().version);
}

#[test]
fn a_load_outlives_nodes_and_the_sequencer() {
    let home = tempfile::tempdir().unwrap();
    const PEOPLE: usize = 20_000;
    write_files(home.path(), PEOPLE);
    let config = NodeConfig { checkpoint_versions: 3, ..fast() };
    let mut fleet = TestFleet::start(4, 3, 2, 64, config);
    let (database, _worker) = fleet.worker();
    let (other, _other_worker) = fleet.worker();
    for n in 0..8 {
        ask(&database, OpenCypher, &format!("CREATE (:Before {{n: {n}}})")).unwrap();
    }
    fleet.wait_until("all have a checkpoint", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
    // Later writes are in the log only. The next sequencer knows no request from before the checkpoints: transactions
    // that read there run again, or their outcome stays unknown.
    fleet.config = fast();
    fleet.candidate.asked_again = 0;
    let (over, made) = (AtomicBool::new(false), AtomicU64::new(0));
    let id = database.loads().submit(spec(home.path())).unwrap();
    let mut gone = Vec::new();
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| make_until(&other, &over, &made));
        fleet.wait_until("it runs", |_| {
            let status = database.loads().status(&id).unwrap();
            status.bytes_read > 0 || status.overall.state.is_final()
        });
        gone.push(fleet.kill("n1"));
        fleet.stop_sequencer();
        fleet.clock.sleep(Duration::from_millis(200));
        fleet.start_sequencer();
        let status = database.loads().wait(&id).unwrap();
        over.store(true, Ordering::Relaxed);
        maker.join().unwrap();
        assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
    });
    let made = made.load(Ordering::Relaxed);
    let known = other.status().version;
    check_all(&database, PEOPLE, made, known);
    // A node that starts restores a checkpoint from before the load, and reads the segments of the load.
    fleet.hand_all_to("n9");
    gone.push(fleet.kill("n0"));
    gone.push(fleet.kill("n2"));
    check_all(&database, PEOPLE, made, known);
    drop(gone);
}

fn make(sequencer: &RemoteCommits, id: &str, number: u8) -> Version {
    let (gui, id) = (GuiHasher::with_bits(64).gui(id), id.into());
    write(sequencer, Mutation::CreateVertex { gui, id, labels: vec![], properties: vec![] }, number)
}

fn write(sequencer: &RemoteCommits, mutation: Mutation, number: u8) -> Version {
    try_to_write(sequencer, mutation, number).unwrap()
}

fn try_to_write(sequencer: &RemoteCommits, mutation: Mutation, number: u8) -> Result<Version, Error> {
    let read_version = sequencer.newest().unwrap().version;
    let request = CommitRequest {
        read_version,
        read_keys: vec![],
        write_keys: vec![],
        mutations: vec![mutation],
        request: None,
        first_asked: None,
        by_key: false,
        changes: None,
    };
    Ok(sequencer.commit(RequestId(u128::from_le_bytes([number; 16])), request)?.version)
}

/// TXN-4 and LOAD-1.
#[test]
fn a_commit_of_a_load_that_is_asked_for_again_happens_once() {
    let mut fleet = TestFleet::start(2, 1, 1, 64, fast());
    let first = fleet.sequencer();
    let id = |text: &str| RequestId::of_text(text);
    let request = |load_id: &str, read_version: Version, compared: Version| LoadRequest {
        load_id: load_id.into(),
        segments: vec![],
        read_version,
        read_keys: vec![],
        compared,
        changes_compared: None,
        first_asked: read_version,
        beginning: 1,
    };
    // A load that has not begun.
    let base = first.newest().unwrap().version;
    let unknown = first.commit_load(id("a"), request("a", base, base));
    assert!(matches!(unknown, Err(Error::LoadUnknown(_))), "{unknown:?}");
    let base = first.begin_load(id("a"), 1).unwrap();
    let other = first.commit_load(id("a"), request("b", base, base));
    assert!(matches!(other, Err(Error::NotAllowed(_))), "{other:?}");
    // The load first has to compare vertices created since its version. Commits wait for
    // its report, but only up to a limit.
    make(&first, "x", 1);
    let made = make(&first, "y", 2);
    let mut earlier = u64::MAX;
    for expected in [&["x", "y"][..], &["x", "y", "z"][..]] {
        let step = first.commit_load(id("a"), request("a", base, base)).unwrap();
        let LoadStep::Rest(rest) = step else { panic!("{step:?}") };
        // A report on an earlier question is late.
        let late = first.report_load_collision(id("a"), earlier, None);
        assert!(matches!(late, Err(Error::LoadUnknown(_))), "{late:?}");
        earlier = rest.question;
        assert_eq!(rest.vertices.iter().map(|made| made.id.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(rest.vertices[1].version, made);
        make(&first, "z", 3);
    }
    let since = first.watch_load(id("a"), base).unwrap();
    assert_eq!(since.vertices.len(), 3);
    // One vertex collides.
    let step = first.commit_load(id("a"), request("a", base, made)).unwrap();
    let LoadStep::Rest(rest) = step else { panic!("{step:?}") };
    assert_eq!(rest.vertices.len(), 1);
    first.report_load_collision(id("a"), rest.question, Some(made.next())).unwrap();
    fleet.wait_until("it is refused", |_| {
        first.outcome(id("a"), base).is_ok_and(|outcome| outcome == CommitOutcome::Refused)
    });
    // No vertex collides.
    let step = first.commit_load(id("a"), request("a", base, made)).unwrap();
    assert!(matches!(step, LoadStep::Rest(_)), "{step:?}");
    // A process of an earlier release does not name the question.
    first.report_load_collision(id("a"), 0, None).unwrap();
    let step = first.commit_load(id("a"), request("a", base, made)).unwrap();
    let LoadStep::Committed(version) = step else { panic!("{step:?}") };
    assert_eq!(first.newest().unwrap().load, version);
    assert_eq!(first.commit_load(id("a"), request("a", base, made)).unwrap(), step);
    first.end_load(id("a")).unwrap();
    // The next sequencer knows the load too.
    fleet.stop_sequencer();
    fleet.start_sequencer();
    let next = fleet.sequencer();
    assert_eq!(next.commit_load(id("a"), request("a", base, made)).unwrap(), step);
    assert_eq!(next.outcome(id("a"), base).unwrap(), CommitOutcome::Committed(version));
    let newest = next.newest().unwrap();
    assert_eq!((newest.load, newest.version > version), (version, true));
    // It does not know a load that began at another sequencer.
    let lost = next.watch_load(id("c"), base);
    assert!(matches!(lost, Err(Error::LoadUnknown(_))), "{lost:?}");
}

/// Shows TXN-2.
/// LOAD-1: the segments of an attempt that the load gave up may be gone.
#[test]
fn a_late_request_of_a_load_that_has_begun_again_commits_nothing() {
    let fleet = TestFleet::start(2, 1, 1, 64, fast());
    let sequencer = fleet.sequencer();
    let id = RequestId::of_text("a");
    let base = sequencer.begin_load(id, 1).unwrap();
    let commit = |beginning: u64, at: Version| {
        let load = LoadRequest {
            load_id: "a".into(),
            segments: vec![],
            read_version: at,
            read_keys: vec![],
            compared: at,
            changes_compared: Some(at),
            first_asked: at,
            beginning,
        };
        sequencer.commit_load(id, load)
    };
    make(&sequencer, "x", 1);
    let step = commit(1, base).unwrap();
    assert!(matches!(step, LoadStep::Rest(_)), "{step:?}");
    // While an attempt may still commit, the load does not begin again.
    fleet.wait_until("the attempt is over", |_| sequencer.begin_load(id, 2).is_ok());
    assert_eq!(sequencer.outcome(id, base).unwrap(), CommitOutcome::Refused);
    let newest = sequencer.newest().unwrap().version;
    for _ in 0..2 {
        let late = commit(1, newest);
        assert!(matches!(late, Err(Error::LoadUnknown(_))), "{late:?}");
        // The request with which it first began is late, too.
        let late = sequencer.begin_load(id, 1);
        assert!(matches!(late, Err(Error::LoadUnknown(_))), "{late:?}");
    }
    let LoadStep::Committed(version) = commit(2, newest).unwrap() else { panic!() };
    // A request that is late only learns what has become of the load.
    assert_eq!(commit(1, newest).unwrap(), LoadStep::Committed(version));
}

#[test]
fn a_load_of_another_process_compares_changes_itself() {
    let mut fleet = TestFleet::start(2, 1, 1, 64, fast());
    let sequencer = fleet.sequencer();
    let id = RequestId::of_text("a");
    let base = sequencer.begin_load(id, 1).unwrap();
    let delete =
        |gui, number| write(&sequencer, Mutation::DeleteVertex { gui: Gui(gui), edges_left: false }, number);
    let (first, second) = (delete(7, 1), delete(8, 2));
    let known = sequencer.load_changes(base).unwrap();
    assert!(known.since <= base && known.upto == second, "{known:?}");
    let deleted = [7, 8].map(|gui| LoadChange::Deleted(Gui(gui)));
    assert_eq!(known.changes, [(first, deleted[0]), (second, deleted[1])]);
    let ask = |changes_compared: Option<Version>| {
        let load = LoadRequest {
            load_id: "a".into(),
            segments: vec![],
            read_version: base,
            read_keys: vec![],
            compared: base,
            changes_compared,
            first_asked: base,
            beginning: 1,
        };
        sequencer.commit_load(id, load)
    };
    // A process of an earlier release compares no changes.
    assert!(matches!(ask(None), Err(Error::Conflict { .. })));
    // One that has compared the first change is asked about the second one.
    let LoadStep::Rest(rest) = ask(Some(first)).unwrap() else { panic!() };
    let question = rest.question;
    assert_eq!(rest, LastChanges { question, vertices: vec![], changes: vec![(second, deleted[1])] });
    sequencer.report_load_collision(id, question, Some(second)).unwrap();
    fleet.wait_until("it is refused", |_| {
        sequencer.outcome(id, base).is_ok_and(|outcome| outcome == CommitOutcome::Refused)
    });
    assert!(matches!(ask(Some(second)).unwrap(), LoadStep::Committed(_)));
    // The next sequencer does not know what happened before it took over.
    fleet.stop_sequencer();
    fleet.start_sequencer();
    let later = fleet.sequencer().load_changes(base).unwrap();
    assert!(later.since > second && later.changes.is_empty(), "{later:?}");
}

/// Shows TXN-4 for a commit that waits for the turn of a load.
#[test]
fn a_load_of_another_process_gets_its_turn() {
    let mut fleet = TestFleet::start(2, 1, 1, 64, fast());
    let sequencer = fleet.sequencer();
    let delete = |gui| Mutation::DeleteVertex { gui: Gui(gui), edges_left: false };
    let turn = || {
        let mut footprint = Footprint::with_capacity(1);
        footprint.add_vertex(Gui(7));
        Some(LoadTurn { footprint, read_keys: vec![], limit: Duration::from_secs(600) })
    };
    let [id, other] = ["a", "b"].map(RequestId::of_text);
    sequencer.begin_load(id, 1).unwrap();
    let since = sequencer.load_turn(id, turn()).unwrap().unwrap();
    assert_eq!(sequencer.load_turn(other, turn()).unwrap(), None);
    let refused = std::thread::scope(|scope| {
        let writer = scope.spawn(|| try_to_write(&sequencer, delete(7), 1));
        // A commit that waits gives up if its outcome is asked for.
        while !writer.is_finished() {
            let outcome = sequencer.outcome(RequestId(u128::from_le_bytes([1; 16])), since).unwrap();
            assert_eq!(outcome, CommitOutcome::Refused);
        }
        writer.join().unwrap()
    });
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    let deleted = write(&sequencer, delete(8), 2);
    let load = LoadRequest {
        load_id: "a".into(),
        segments: vec![],
        read_version: since,
        read_keys: vec![],
        compared: since,
        changes_compared: Some(deleted),
        first_asked: since,
        beginning: 1,
    };
    let LoadStep::Committed(loaded) = sequencer.commit_load(id, load).unwrap() else { panic!() };
    // The turn is over.
    assert!(write(&sequencer, delete(7), 3) > loaded);
    assert!(sequencer.load_turn(other, turn()).unwrap().is_some());
    assert_eq!(sequencer.load_turn(other, None).unwrap(), None);
    write(&sequencer, delete(7), 4);
    // The next sequencer does not know the turn.
    assert!(sequencer.load_turn(other, turn()).unwrap().is_some());
    fleet.stop_sequencer();
    fleet.start_sequencer();
    write(&fleet.sequencer(), delete(7), 5);
}

#[test]
fn a_load_beside_a_writer_that_never_rests_gets_its_turn() {
    let home = tempfile::tempdir().unwrap();
    const PEOPLE: usize = 3_000;
    write_files(home.path(), PEOPLE);
    let fleet = TestFleet::start(4, 2, 2, 64, fast());
    let (database, _worker) = fleet.worker();
    let (other, _other_worker) = fleet.worker();
    let over = AtomicBool::new(false);
    ask(&other, OpenCypher, "CREATE (:Person {`~id`: 'v7', n: 7})").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let text = "MATCH (a) WHERE id(a) = 'v7' DETACH DELETE a CREATE (:Person {`~id`: 'v7', n: 7})";
            while !over.load(Ordering::Relaxed) {
                if let Err(error) = ask(&other, OpenCypher, text) {
                    let kind = error.code().kind();
                    assert!(matches!(kind, Kind::Conflict | Kind::Unavailable | Kind::Unknown), "{error}");
                }
            }
        });
        let id = database.loads().submit(spec(home.path())).unwrap();
        let status = database.loads().wait(&id).unwrap();
        over.store(true, Ordering::Relaxed);
        assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
    });
    let count = || rows(&database, OpenCypher, "MATCH (a:Person) RETURN count(a)");
    fleet.wait_until("it is seen", |_| count() == [format!("[Long({PEOPLE})]")]);
}

#[test]
fn a_job_whose_worker_is_gone_gets_its_end() {
    let home = tempfile::tempdir().unwrap();
    write_files(home.path(), 50);
    let fleet = TestFleet::start(2, 1, 1, 64, fast());
    let (database, _worker) = fleet.worker();
    let id = database.loads().submit(spec(home.path())).unwrap();
    let version = database.loads().wait(&id).unwrap().version;
    // Restores the job file that a worker leaves if it dies before it records that the load is over.
    let path = format!("jobs/{id}.json");
    let mut kept: serde_json::Value = serde_json::from_slice(&fleet.objects.get(&path).unwrap()).unwrap();
    kept["state"] = "InProgress".into();
    kept["version"] = serde_json::Value::Null;
    kept["written"] = "2020-01-01T00:00:00Z".into();
    let write = |id: &str, mut kept: serde_json::Value| {
        kept["id"] = id.into();
        fleet.objects.put(&format!("jobs/{id}.json"), serde_json::to_vec(&kept).unwrap()).unwrap();
    };
    write(&id, kept.clone());
    write("never-committed", kept.clone());
    kept["written"] = "2999-01-01T00:00:00Z".into();
    write("still-there", kept);
    let (other, _other_worker) = fleet.worker();
    let status = |id: &str| other.loads().status(id).unwrap();
    assert_eq!((status(&id).overall.state, status(&id).version), (LoadState::Completed, version));
    let lost = status("never-committed");
    assert_eq!(lost.overall.state, LoadState::Failed, "{lost:?}");
    assert!(lost.overall.message.unwrap().contains("gone"));
    assert_eq!(status("still-there").overall.state, LoadState::InProgress);
    assert!(other.loads().cancel("still-there").is_err());
}
