//! Tests of loads that run beside transactions.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use super::job::Job;
use super::{Dialect, LoadSpec, LoadState, LoadStatus, Mode, SEGMENTS, steps, turn};
use crate::{Database, Language, Options, Parameters, Query};
use jiff::{SignedDuration, Timestamp};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tidegraph_platform::Objects;
use tidegraph_types::{ErrorCode, Footprint, GuiHasher, LoadTurn, Value, Version};

/// Hash bits, so few that many ids share a GUI.
const BITS: u32 = 4;

fn run(database: &Database, text: &str) -> Vec<Vec<Value>> {
    let parameters = Parameters::default();
    database.query(&Query::new(Language::OpenCypher, text, &parameters)).expect(text).rows
}

fn open(data: &Path) -> Arc<Database> {
    let options = Options { data_dir: Some(data.to_owned()), hash_bits: BITS, ..Options::default() };
    Database::open(options).expect("a graph")
}

/// Checks that each expected vertex and edge is found by its id, with its own properties and no others.
fn check(database: &Database, meanwhile: &str) {
    let count = run(database, "MATCH (n) RETURN count(n)");
    assert_eq!(count, [[Value::Long(9)]]);
    for n in 0..8 {
        let text = format!(
            "MATCH (a)-[r:L]->(b) WHERE id(a) = 'v{n}' RETURN a.n, id(b), size(labels(a)), labels(a)[0]"
        );
        let next = Value::string(format!("v{}", (n + 1) % 8));
        assert_eq!(run(database, &text), [[Value::Long(n), next, Value::Long(1), Value::string("P")]]);
    }
    let text = format!("MATCH (a) WHERE id(a) = '{meanwhile}' RETURN a.n, labels(a)[0], size(labels(a))");
    assert_eq!(run(database, &text), [[Value::Long(-1), Value::string("Q"), Value::Long(1)]]);
    let edges = run(database, &format!("MATCH (a)-[r]-() WHERE id(a) = '{meanwhile}' RETURN count(r)"));
    assert_eq!(edges, [[Value::Long(0)]]);
}

#[test]
fn a_vertex_made_during_a_load_never_shares_the_gui_of_a_loaded_one() {
    let home = tempfile::tempdir().expect("a folder");
    let (files, data) = (home.path().join("files"), home.path().join("data"));
    std::fs::create_dir_all(&files).expect("made");
    let vertices: String = (0..8).map(|n| format!("v{n},P,{n}\n")).collect();
    let edges: String = (0..8).map(|n| format!("e{n},v{n},v{},L\n", (n + 1) % 8)).collect();
    std::fs::write(files.join("v.csv"), format!("~id,~label,n:Int(single)\n{vertices}")).expect("written");
    std::fs::write(files.join("e.csv"), format!("~id,~from,~to,~label\n{edges}")).expect("written");
    let hasher = GuiHasher::with_bits(BITS);
    let colliding = (0..).map(|n| format!("w{n}")).find(|id| hasher.gui(id) == hasher.gui("v3"));
    let meanwhile = colliding.expect("one of many");

    let database = open(&data);
    // A load takes this lock before it commits, so it waits here as it would for a checkpoint.
    let held = database.loads().shared.commit.lock();
    let source = format!("file://{}", files.display());
    let id = database.loads().submit(LoadSpec::new(vec![source], Some(Dialect::GREMLIN))).expect("taken");
    // The feed counts are complete once all files have been read.
    loop {
        let status = database.loads().status(&id).expect("known");
        assert!(!status.overall.state.is_final(), "it has not been let through: {status:?}");
        if status.feed_count == [("LOAD_COMPLETED", 2)] {
            break;
        }
        std::thread::yield_now();
    }
    run(&database, &format!("CREATE (:Q {{`~id`: '{meanwhile}', n: -1}})"));
    assert_eq!(database.local.as_ref().unwrap().store.exceptions(), [], "the transaction found the GUI free");
    drop(held);
    let status = database.loads().wait(&id).expect("known");
    assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
    check(&database, &meanwhile);
    // The same holds after a restart.
    drop(database);
    let database = open(&data);
    check(&database, &meanwhile);
}

#[test]
fn segments_go_when_nobody_can_need_them_any_more() {
    let objects = Objects::memory().expect("a store");
    let begun = Timestamp::from_second(1_000_000).expect("a time");
    let job = |id: &str, end: &dyn Fn(&Job)| {
        let spec = LoadSpec::new(vec!["file:///x".into()], Some(Dialect::GREMLIN));
        let mut job = Job::new(id.into(), 1, spec, None, None, false, begun);
        job.set_patience(1);
        end(&job);
        objects.put(&super::job_path(id), job.to_bytes(begun).expect("bytes")).expect("written");
        objects.put(&format!("{SEGMENTS}/{id}/0"), "x").expect("written");
    };
    let committed = |version| {
        move |job: &Job| {
            job.committed(Version(version));
            job.end(LoadState::Completed, None, begun);
        }
    };
    job("old", &committed(5));
    job("new", &committed(9));
    job("failed", &|job| job.end(LoadState::Failed, None, begun));
    job("cancelled", &|job| job.end(LoadState::Cancelled, None, begun));
    job("unknown", &|job| job.end_open("nobody knows".into(), begun));
    job("running", &|_| {});
    objects.put(&format!("{SEGMENTS}/nobody/0"), "x").expect("written");
    let left = |version, hours: i64| {
        let now = begun + SignedDuration::from_hours(hours);
        super::sweep_below(&objects, Version(version), now).expect("swept");
        let ids = objects.list(&format!("{SEGMENTS}/")).expect("listed").into_iter();
        let mut ids: Vec<_> = ids.filter_map(|o| Some(o.path.split('/').nth(1)?.to_owned())).collect();
        ids.sort();
        ids.join(" ")
    };
    assert_eq!(left(4, 1), "cancelled failed new nobody old running unknown");
    assert_eq!(left(5, 23), "cancelled failed new nobody running unknown");
    let may_be_committed = |id: &str| steps::decide(&objects, id, steps::Fate::Commit).expect("decided");
    assert_eq!(may_be_committed("cancelled"), steps::Fate::Commit);
    assert_eq!(left(8, 24), "new nobody running unknown");
    assert_eq!(may_be_committed("failed"), steps::Fate::Removed);
    assert_eq!(left(9, 1000), "nobody running unknown");
}

/// Waits until a load has ended, and returns its status.
fn loaded(database: &Database, source: &str, mode: Mode) -> LoadStatus {
    let spec = LoadSpec { mode, ..LoadSpec::new(vec![source.to_owned()], Some(Dialect::GREMLIN)) };
    let id = database.loads().submit(spec).expect("taken");
    database.loads().wait(&id).expect("known")
}

#[test]
fn a_file_that_has_changed_is_loaded_again_and_skipped_ones_are_told() {
    let home = tempfile::tempdir().expect("a folder");
    let database = Database::open(Options::default()).expect("a graph");
    let source = format!("file://{}/", home.path().display());
    std::fs::write(home.path().join("a.csv"), "~id\na1\n").expect("written");
    std::fs::write(home.path().join("b.csv"), "~id\nb1\n").expect("written");
    assert_eq!(loaded(&database, &source, Mode::Auto).skipped, Vec::<String>::new());
    let again = loaded(&database, &source, Mode::Auto);
    assert_eq!((again.overall.state, again.skipped.len()), (LoadState::Completed, 2));
    let message = again.overall.message.expect("what was skipped");
    assert!(message.contains("skipped 2 of 2 files") && message.contains("/a.csv"), "{message}");

    std::fs::write(home.path().join("a.csv"), "~id\na1\na2\n").expect("written");
    for mode in [Mode::Auto, Mode::Resume] {
        let changed = loaded(&database, &source, mode);
        assert_eq!(changed.overall.state, LoadState::Completed, "{changed:?}");
        assert_eq!(run(&database, "MATCH (n) RETURN count(n)"), [[Value::Long(3)]]);
        assert!(changed.skipped.iter().any(|name| name.ends_with("/b.csv")), "{changed:?}");
        // Of the file that was loaded twice the second stamp is kept.
        assert_eq!(changed.skipped.len(), if mode == Mode::Auto { 1 } else { 2 }, "{changed:?}");
    }
    // The same size, another time.
    std::fs::write(home.path().join("b.csv"), "~id\nb9\n").expect("written");
    let file = std::fs::File::options().write(true).open(home.path().join("b.csv")).expect("there");
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).expect("set");
    loaded(&database, &source, Mode::Auto);
    assert_eq!(run(&database, "MATCH (n) RETURN count(n)"), [[Value::Long(4)]]);
}

#[test]
fn a_source_that_is_not_there_is_refused_at_once() {
    let database = Database::open(Options::default()).expect("a graph");
    let refused = |source: &str, region: Option<&str>| {
        let spec = LoadSpec::new(vec![source.to_owned()], None);
        let spec = LoadSpec { region: region.map(str::to_owned), ..spec };
        let error = database.loads().submit(spec).expect_err(source);
        (error.code(), error.to_string())
    };
    let (code, message) = refused("file:///no/such/folder/", None);
    assert_eq!(code, ErrorCode::BadRequest);
    assert!(message.contains("there is no file or folder /no/such/folder/"), "{message}");
    assert_eq!(refused("s3://some-bucket/x", Some("@127.0.0.1:8390/")).0, ErrorCode::InvalidParameter);
    assert_eq!(refused("s3://Some@Bucket/x", None).0, ErrorCode::InvalidParameter);
    assert_eq!(database.loads().list(10, true), Vec::<String>::new());
}

#[test]
fn the_drop_folder_is_left_by_no_link() {
    let home = tempfile::tempdir().expect("a folder");
    let (dropped, outside) = (home.path().join("drop"), home.path().join("outside"));
    for folder in [&dropped.join("a-report"), &dropped.join("b-file"), &dropped.join("d-plain"), &outside] {
        std::fs::create_dir_all(folder).expect("made");
        std::fs::write(folder.join("v.csv"), "~id\nv\n").expect("written");
    }
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, dropped.join(name)).expect("a link");
    };
    link("../../outside/report.json", "a-report/_REPORT.json");
    link("../../outside/report.json", "d-plain/_REPORT.json.part");
    link("../../outside/v.csv", "b-file/w.csv");
    link("../outside", "c-folder");
    for folder in ["a-report", "b-file", "c-folder", "d-plain"] {
        std::fs::write(dropped.join(folder).join("_SUCCESS"), "").expect("written");
    }
    let database = Database::open(Options::default()).expect("a graph");
    database.loads().watch(&dropped).expect("watched");
    // The folders are taken in the order of their names.
    while !dropped.join("d-plain/_REPORT.json").exists() || !dropped.join("b-file/_REPORT.json").exists() {
        std::thread::yield_now();
    }
    let told = std::fs::read_to_string(dropped.join("b-file/_REPORT.json")).expect("a report");
    assert!(told.contains("LOAD_FAILED") && told.contains("w.csv is a link"), "{told}");
    let told = std::fs::read_to_string(dropped.join("d-plain/_REPORT.json")).expect("a report");
    assert!(told.contains("LOAD_COMPLETED"), "{told}");
    assert!(!outside.join("report.json").exists() && !outside.join("_REPORT.json").exists());
    assert_eq!(database.loads().list(10, true).len(), 2);
}

/// Runs a load of files into a graph. Calls `meanwhile`, with the folder of the files, after the load has read all of
/// them and before it commits.
fn load_beside(
    database: &Database,
    spec: &LoadSpec,
    files: &[(&str, &str)],
    meanwhile: impl FnOnce(&Path),
) -> LoadStatus {
    let home = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(home.path().join(name), text).expect("written");
    }
    let held = database.loads().shared.commit.lock();
    let spec = LoadSpec { sources: vec![format!("file://{}", home.path().display())], ..spec.clone() };
    let id = database.loads().submit(spec).expect("taken");
    // The feed counts are complete once all files have been read.
    loop {
        let status = database.loads().status(&id).expect("known");
        assert!(!status.overall.state.is_final(), "it has not been let through: {status:?}");
        if status.feed_count == [("LOAD_COMPLETED", files.len() as u64)] {
            break;
        }
        std::thread::yield_now();
    }
    meanwhile(home.path());
    drop(held);
    database.loads().wait(&id).expect("known")
}

const OLD_AND_NEW: &str = "MATCH (a {p: 1})-[r]->() RETURN id(a), a.n, r.w ORDER BY id(a)";

/// A load beside transactions that set `n` of an old and of a new vertex, and `w` of an old edge.
fn values_after_a_load(spec: &LoadSpec, files: &[(&str, &str)]) -> Vec<Vec<Value>> {
    let database = Database::open(Options::default()).expect("a graph");
    run(&database, "CREATE (a:P {`~id`: 'old', p: 1})-[:L {`~id`: 'e'}]->(:Z {`~id`: 'z', n: 0, w: 0})");
    let meanwhile = [
        "MATCH (a) WHERE id(a) = 'old' AND a.n IS NULL SET a.n = 5",
        "MATCH (z:Z) CREATE (a:P {`~id`: 'new', p: 1, n: 6})-[:L {w: 1}]->(z)",
        "MATCH (a)-[r:L]->() WHERE id(a) = 'old' AND r.w IS NULL SET r.w = 7",
    ];
    let meanwhile = |_: &Path| meanwhile.iter().for_each(|text| _ = run(&database, text));
    let status = load_beside(&database, spec, files, meanwhile);
    assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
    let added = run(&database, "MATCH (a) WHERE id(a) IN ['old', 'new'] RETURN sum(a.m)");
    assert_eq!(added, [[Value::Long(4)]], "values that only the load has are added");
    run(&database, OLD_AND_NEW)
}

#[test]
fn a_load_keeps_the_values_that_transactions_wrote_meanwhile() {
    let row = |id: &str, n: i64, w: i64| vec![Value::string(id), Value::Long(n), Value::Long(w)];
    let mut spec = LoadSpec::new(vec![], Some(Dialect::OPENCYPHER));
    let files = [
        ("v.csv", ":ID,n:Long,m:Long,:LABEL\nold,70,2,P\nnew,71,2,P\n"),
        ("e.csv", ":ID,:START_ID,:END_ID,:TYPE,w:Long\ne,old,z,L,72\n"),
    ];
    spec.user_provided_edge_ids = true;
    assert_eq!(values_after_a_load(&spec, &files), [row("new", 6, 1), row("old", 5, 7)]);
    let files = [
        ("v.csv", "~id,n:Long(single),m:Long(single),~label\nold,70,2,P\nnew,71,2,P\n"),
        ("e.csv", "~id,~from,~to,~label,w:Long\ne,old,z,L,72\n"),
    ];
    let mut spec = LoadSpec::new(vec![], Some(Dialect::GREMLIN));
    assert_eq!(values_after_a_load(&spec, &files), [row("new", 6, 1), row("old", 5, 7)]);
    // With this setting, the user wants the values of the load.
    spec.update_single_cardinality_properties = true;
    assert_eq!(values_after_a_load(&spec, &files), [row("new", 71, 1), row("old", 70, 72)]);
}

#[test]
fn a_load_is_read_again_only_for_a_change_of_what_it_met() {
    let database = Database::open(Options::default()).expect("a graph");
    run(&database, "UNWIND ['a', 'b', 'c', 'd'] AS id CREATE (:Old {`~id`: id})");
    let spec = LoadSpec::new(vec![], Some(Dialect::OPENCYPHER));
    let nodes = ("v.csv", ":ID,:LABEL\nd,P\nx,P\n");
    let edges = |round: &str| format!(":ID,:START_ID,:END_ID,:TYPE\n{round},a,x,L\n");
    let load = |name: &str, changes: &[&str]| {
        let (first, again) = (edges(&format!("{name}-1")), edges(&format!("{name}-2")));
        load_beside(&database, &spec, &[nodes, ("e.csv", &first)], |folder| {
            changes.iter().for_each(|text| _ = run(&database, text));
            // A load that reads its files again finds another edge.
            std::fs::write(folder.join("e.csv"), again).expect("written");
        })
    };
    let status = load(
        "s",
        &[
            "MATCH (a) WHERE id(a) = 'b' DETACH DELETE a",
            "MATCH (c) WHERE id(c) = 'c' CREATE (c)-[:L {`~id`: 'other'}]->(c)",
            "MATCH (a) WHERE id(a) = 'a' SET a.n = 1",
        ],
    );
    assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
    let found =
        |id: &str| run(&database, &format!("MATCH ()-[r:L]->() WHERE id(r) = '{id}' RETURN count(r)"));
    assert_eq!((found("s-1"), found("s-2")), (vec![vec![Value::Long(1)]], vec![vec![Value::Long(0)]]));
    // A vertex that it merged into, and an edge id that it took.
    let taken = "MATCH (c) WHERE id(c) = 'c' CREATE (c)-[:L {`~id`: 'u-1'}]->(c)";
    for (name, change) in [("t", "MATCH (d) WHERE id(d) = 'd' DETACH DELETE d"), ("u", taken)] {
        let status = load(name, &[change]);
        assert_eq!(status.overall.state, LoadState::Completed, "{status:?}");
        assert_eq!(found(&format!("{name}-2")), [[Value::Long(1)]], "it was read again");
    }
    // The end of an edge.
    let status = load("w", &["MATCH (a) WHERE id(a) = 'a' DETACH DELETE a"]);
    assert_eq!(status.overall.state, LoadState::Failed, "{status:?}");
    assert_eq!(status.errors[0]["errorCode"], "FROM_OR_TO_VERTEX_ARE_MISSING", "{status:?}");
}

/// Runs a load beside a writer that never rests: after each attempt of the load, and before its commit, the writer runs a
/// statement that concerns the load. Returns the status of the load, the number of its attempts, and what became of the
/// last statement.
fn load_beside_a_writer(
    database: &Arc<Database>,
    files: &[(&str, &str)],
    statement: &str,
) -> (LoadStatus, usize, Result<Version, ErrorCode>) {
    /// How long an attempt waits for a commit that cannot be answered, because it waits for the load's turn.
    const WRITTEN_WITHIN: Duration = Duration::from_secs(1);
    const ATTEMPT_WITH_TURN: u32 = turn::LOST_BEFORE_TURN + 1;
    let home = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(home.path().join(name), text).expect("written");
    }
    let (begun, writers) = mpsc::channel();
    let (writes_to, statement) = (database.clone(), statement.to_owned());
    let mut attempts = 0;
    let before_commit = move || {
        attempts += 1;
        let (database, statement) = (writes_to.clone(), statement.clone());
        let (told, answered) = mpsc::channel();
        let write = move || {
            let parameters = Parameters::default();
            let answer = database.query(&Query::new(Language::OpenCypher, &statement, &parameters));
            let _ = told.send(());
            answer.map(|answer| answer.version).map_err(|error| error.code())
        };
        begun.send(std::thread::spawn(write)).expect("it is waited for");
        if attempts < ATTEMPT_WITH_TURN {
            answered.recv().expect("no panic");
        } else {
            let _ = answered.recv_timeout(WRITTEN_WITHIN);
        }
    };
    *database.loads().shared.before_commit.lock() = Some(Box::new(before_commit));
    let source = format!("file://{}", home.path().display());
    let id = database.loads().submit(LoadSpec::new(vec![source], Some(Dialect::OPENCYPHER))).expect("taken");
    let status = database.loads().wait(&id).expect("known");
    *database.loads().shared.before_commit.lock() = None;
    let mut answers: Vec<_> = writers.iter().map(|writer| writer.join().expect("no panic")).collect();
    let (attempts, last) = (answers.len(), answers.pop().expect("there was an attempt"));
    assert!(answers.iter().all(Result::is_ok), "they conflict with nothing: {answers:?}");
    (status, attempts, last)
}

#[test]
fn a_load_that_lost_three_times_gets_its_turn() {
    let database = Database::open(Options::default()).expect("a graph");
    run(&database, "CREATE (:P {`~id`: 'a', n: 0})");
    let statement = "MATCH (a) WHERE id(a) = 'a' WITH a, a.n + 1 AS n DETACH DELETE a \
                     CREATE (:P {`~id`: 'a', n: n})";
    let files =
        [("v.csv", ":ID,:LABEL\na,Loaded\nb,Loaded\n"), ("e.csv", ":ID,:START_ID,:END_ID,:TYPE\nr,a,b,L\n")];
    let (status, attempts, last) = load_beside_a_writer(&database, &files, statement);
    assert_eq!((status.overall.state, attempts), (LoadState::Completed, 4), "{status:?}");
    // The last statement was committed after the load, and read what the load wrote.
    assert!(last.expect("committed").0 > status.version.expect("visible"));
    assert_eq!(
        run(&database, "MATCH (a) WHERE id(a) = 'a' RETURN a.n, labels(a)"),
        [[Value::Long(4), Value::list(vec![Value::string("P")])]]
    );
    assert_eq!(run(&database, "MATCH (b:Loaded) RETURN id(b)"), [[Value::string("b")]]);
}

#[test]
fn a_load_under_a_constraint_gets_its_turn() {
    let database = Database::open(Options::default()).expect("a graph");
    run(&database, "CREATE CONSTRAINT one FOR (p:P) REQUIRE p.n IS UNIQUE");
    run(&database, "CREATE (:P {`~id`: 'a', n: 1})");
    let files = [("v.csv", ":ID,:LABEL,n:Long\nb,P,-1\nc,P,-2\n")];
    let statement = "MATCH (a) WHERE id(a) = 'a' SET a.n = a.n + 1";
    let (status, attempts, last) = load_beside_a_writer(&database, &files, statement);
    assert_eq!((status.overall.state, attempts), (LoadState::Completed, 4), "{status:?}");
    assert!(last.expect("committed").0 > status.version.expect("visible"));
    let all = run(&database, "MATCH (p:P) RETURN p.n ORDER BY p.n");
    assert_eq!(all, [[Value::Long(-2)], [Value::Long(-1)], [Value::Long(5)]]);
}

/// A load whose turn ends without a commit leaves no writer waiting.
#[test]
fn a_turn_ends_with_its_load() {
    let database = Database::open(Options::default()).expect("a graph");
    let backend = &*database.loads().shared.backend;
    let asked = || LoadTurn { footprint: Footprint::everything(), read_keys: vec![], limit: Duration::MAX };
    let turn = turn::Turn::begin(backend, "one", asked()).expect("a turn");
    assert!(turn.since > Version(0) && turn::Turn::begin(backend, "other", asked()).is_none());
    run(&database, "CREATE (:P {`~id`: 'a'})");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| run(&database, "MATCH (a:P) DELETE a"));
        drop(turn);
        writer.join().expect("no panic");
    });
    assert_eq!(run(&database, "MATCH (a) RETURN count(a)"), [[Value::Long(0)]]);
    assert!(turn::Turn::begin(backend, "other", asked()).is_some());
}
