//! Fast resets: what is left of a graph after one, after restarts and crashes, and beside other requests.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use std::path::Path;
use std::sync::Arc;
use support::{copy, empty, open, refused, run};
use tidegraph_engine::loads::{Dialect, LoadSpec, LoadState, Mode};
use tidegraph_engine::{Database, Language, Options, Parameters, Query, Transaction};
use tidegraph_types::{ErrorCode, Value};

fn reset(database: &Database) {
    let token = database.begin_reset().expect("a token");
    database.reset(&token).expect("it is reset");
}

/// Makes a graph with a bit of everything: ids, labels, properties of all kinds, edges with ids and a hub.
fn fill(database: &Database) {
    run(database, "CREATE INDEX IF NOT EXISTS FOR (p:Person) ON (p.n)");
    run(database, "CREATE CONSTRAINT names IF NOT EXISTS FOR (p:Person) REQUIRE p.name IS UNIQUE");
    run(
        database,
        "UNWIND range(1, 500) AS n CREATE (:Person {`~id`: 'p' + toString(n), n: n, name: 'name ' + toString(n)})",
    );
    run(
        database,
        "MATCH (hub:Person {n: 1}), (p:Person) WHERE p.n > 1 \
         CREATE (p)-[:KNOWS {`~id`: 'e' + toString(p.n), since: p.n}]->(hub)",
    );
    run(database, "g.V('p7').property(set,'tag','a').property(list,'place','ulm','from',1999)");
}

/// Checks that nothing is found in any way.
fn is_empty(database: &Database) {
    for text in [
        "MATCH (n) RETURN n",
        "MATCH ()-[e]->() RETURN e",
        "MATCH (p:Person) WHERE p.n > 3 RETURN p",
        "MATCH (p:Person {name: 'name 7'}) RETURN p",
        "MATCH (p) WHERE id(p) = 'p7' RETURN p",
        "MATCH (p)-[:KNOWS]->(q) WHERE id(q) = 'p1' RETURN p",
        "g.V('p7').properties('place')",
        "g.E('e7')",
        "g.E().has('since',7)",
    ] {
        assert_eq!(run(database, text), Vec::<String>::new(), "{text}");
    }
    let summary = database.summary();
    assert_eq!((summary.vertices, summary.edges), (0, 0));
    assert_eq!((summary.vertex_labels, summary.edge_labels), (vec![], vec![]));
    assert_eq!((summary.vertex_keys, summary.edge_keys), (vec![], vec![]));
}

/// Checks that the graph can be filled again, with the same ids, and that constraints hold.
fn can_be_filled(database: &Database) {
    fill(database);
    assert_eq!(run(database, "MATCH (p:Person)-[:KNOWS]->() RETURN count(*), sum(p.n)"), ["499 | 125249"]);
    assert_eq!(run(database, "g.E('e7').outV().id()"), ["p7"]);
    let refused = refused(database, "CREATE (:Person {name: 'name 7'})");
    assert!(refused.starts_with("UniqueConstraintViolationException"), "{refused}");
}

#[test]
fn nothing_is_left_but_indexes_and_constraints() {
    let database = empty();
    fill(&database);
    let before = database.status();
    assert_eq!((before.vertices, before.edges), (500, 499));
    reset(&database);
    is_empty(&database);
    assert_eq!(database.status().version, before.version + 1, "it is one record");
    assert_eq!(run(&database, "SHOW INDEXES").len(), 2);
    can_be_filled(&database);
    reset(&database);
    reset(&database);
    is_empty(&database);
    can_be_filled(&database);
}

#[test]
fn a_restart_finds_it_in_the_log_and_in_checkpoints() {
    let home = tempfile::tempdir().expect("a folder");
    let live = home.path().join("live");
    let crash = |name: &str| {
        let crashed = home.path().join(name);
        copy(&live, &crashed);
        open(&crashed)
    };
    let database = open(&live);
    fill(&database);
    reset(&database);
    is_empty(&crash("from the log alone"));
    fill(&database);
    database.checkpoint().expect("a checkpoint");
    run(&database, "MATCH (p:Person {n: 5}) SET p.n = 5000");
    reset(&database);
    is_empty(&crash("from a checkpoint before it"));
    run(&database, "CREATE (:Later {n: 1})");
    let after = crash("with a change after it");
    assert_eq!(run(&after, "MATCH (n) RETURN labels(n), n.n"), ["[Later] | 1"]);
    can_be_filled(&after);
    database.checkpoint().expect("a checkpoint of the new graph");
    let after = crash("from a checkpoint after it");
    assert_eq!(run(&after, "MATCH (n) RETURN labels(n), n.n"), ["[Later] | 1"]);
    can_be_filled(&after);
    drop(after);
    // The checkpoint of a checkpoint: only what changed is written.
    run(&database, "CREATE (:Later {n: 2})");
    database.checkpoint().expect("another checkpoint");
    assert_eq!(run(&crash("from the one after that"), "MATCH (n:Later) RETURN sum(n.n)"), ["3"]);
    reset(&database);
    drop(database);
    let database = open(&live);
    is_empty(&database);
    can_be_filled(&database);
}

#[test]
fn a_transaction_that_read_before_it_does_not_commit_after_it() {
    let database = empty();
    fill(&database);
    let none = Parameters::default();
    let ask = |transaction: &mut Transaction, text: &str| {
        database.query_within(transaction, &Query::new(Language::OpenCypher, text, &none))
    };
    let mut reads = Transaction::new(None, None, false);
    ask(&mut reads, "MATCH (p:Person {n: 7}) RETURN p").expect("it runs");
    let mut writes = Transaction::new(None, None, false);
    ask(&mut writes, "MATCH (p:Person {n: 7}) SET p.n = 8").expect("it runs");
    let mut creates = Transaction::new(None, None, false);
    ask(&mut creates, "CREATE (:Person {n: 1000})").expect("it runs");
    reset(&database);
    // Earlier versions stay readable.
    let seen = ask(&mut reads, "MATCH (p:Person)-[e]->() RETURN count(p), sum(e.since)").expect("it runs");
    assert_eq!(seen.rows, [[Value::Long(499), Value::Long(125_249)]]);
    for late in [writes, creates] {
        let error = database.commit_transaction(late).expect_err("it read what is gone");
        assert_eq!(error.code(), ErrorCode::ConcurrentModification, "{error}");
    }
    drop(reads);
    is_empty(&database);
}

#[test]
fn writers_beside_resets_lose_nothing_that_came_later() {
    let database = empty();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let database = &database;
                scope.spawn(move || {
                    for n in 0..60 {
                        // Both or neither are there, whatever comes in between.
                        let pair =
                            format!("CREATE (:A {{w: {writer}, n: {n}}})-[:E]->(:B {{w: {writer}, n: {n}}})");
                        run(database, &pair);
                        let found = run(
                            database,
                            "MATCH (a:A) OPTIONAL MATCH (a)-[:E]->(b:B) RETURN count(a) = count(b)",
                        );
                        assert_eq!(found, ["true"]);
                    }
                })
            })
            .collect();
        for _ in 0..15 {
            reset(&database);
            let found = run(&database, "MATCH (n) RETURN count(n)");
            assert!(found[0].parse::<u32>().expect("a count") <= 360, "{found:?}");
        }
        writers.into_iter().for_each(|writer| writer.join().expect("it ends well"));
    });
    let last = database.status();
    reset(&database);
    is_empty(&database);
    assert_eq!(database.status().version, last.version + 1);
}

fn load(database: &Arc<Database>, files: &Path) -> LoadState {
    let mut spec = LoadSpec::new(vec![format!("file://{}", files.display())], Some(Dialect::GREMLIN));
    spec.mode = Mode::New;
    let id = database.loads().submit(spec).expect("taken");
    database.loads().wait(&id).expect("known").overall.state
}

fn files_below(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[test]
fn loads_before_and_after_it() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, files) = (home.path().join("live"), home.path().join("files"));
    std::fs::create_dir_all(&files).expect("made");
    let vertices: String = (0..1000).map(|n| format!("v{n},P,{n}\n")).collect();
    let edges: String = (0..1000).map(|n| format!("e{n},v{n},v{},L\n", (n + 1) % 1000)).collect();
    std::fs::write(files.join("v.csv"), format!("~id,~label,n:Int(single)\n{vertices}")).expect("written");
    std::fs::write(files.join("e.csv"), format!("~id,~from,~to,~label\n{edges}")).expect("written");
    let database = open(&live);
    let count = |database: &Database| run(database, "MATCH (a)-[:L]->(b) RETURN count(*), sum(a.n)");
    assert_eq!(load(&database, &files), LoadState::Completed);
    assert_eq!(count(&database), ["1000 | 499500"]);
    assert!(files_below(&live.join("loads")) > 0);
    reset(&database);
    is_empty(&database);
    assert_eq!(load(&database, &files), LoadState::Completed);
    assert_eq!(count(&database), ["1000 | 499500"]);
    // Replays the load, the reset and the second load.
    let crashed = home.path().join("crashed");
    copy(&live, &crashed);
    assert_eq!(count(&open(&crashed)), ["1000 | 499500"]);
    // Segments that no checkpoint needs are removed, those of the graph before the reset too.
    reset(&database);
    for n in 0..3 {
        run(&database, &format!("CREATE (:N {{n: {n}}})"));
        database.checkpoint().expect("a checkpoint");
    }
    assert_eq!(files_below(&live.join("loads")), 0, "segments are left");
    drop(database);
    assert_eq!(run(&open(&live), "MATCH (n) RETURN count(n), sum(n.n)"), ["3 | 3"]);
}

#[test]
fn a_graph_that_does_not_fit_into_memory_is_reset_and_its_file_is_free() {
    let home = tempfile::tempdir().expect("a folder");
    let text = "a text of some length, so that the properties of the graph are most of it";
    let fill = |database: &Database| {
        for batch in 0..50 {
            run(
                database,
                &format!(
                    "UNWIND range({}, {}) AS i CREATE (:P {{i: i, text: '{text} ' + toString(i)}})",
                    batch * 200,
                    batch * 200 + 199
                ),
            );
        }
    };
    let open = |name: &str, budget| {
        let data_dir = Some(home.path().join(name));
        Database::open(Options { data_dir, memory_budget_bytes: budget, ..Options::default() })
            .expect("it opens")
    };
    let whole = open("whole", None);
    fill(&whole);
    let bytes = whole.status().memory_bytes;
    drop(whole);
    let database = open("graph", Some(bytes / 2));
    for _ in 0..3 {
        fill(&database);
        assert!(database.status().spilled_bytes > 0, "{:?}", database.status());
        assert_eq!(run(&database, "MATCH (n:P) RETURN count(n), sum(n.i)"), ["10000 | 49995000"]);
        reset(&database);
        is_empty(&database);
        // A thread frees what is gone.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while database.status().spilled_bytes > 0 {
            assert!(std::time::Instant::now() < deadline, "{:?}", database.status());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn a_token_is_valid_once() {
    let home = tempfile::tempdir().expect("a folder");
    let database = open(home.path());
    run(&database, "CREATE (:A)");
    let code = |database: &Database, token: &str| database.reset(token).expect_err("it is refused").code();
    for wrong in ["", "x", "../graph", "00000000-0000-4000-8000-000000000000", &"0".repeat(10_000)] {
        assert_eq!(code(&database, wrong), ErrorCode::InvalidParameter, "{wrong:.40}");
    }
    assert_eq!(run(&database, "MATCH (n) RETURN count(n)"), ["1"]);
    let (first, second) = (database.begin_reset().expect("one"), database.begin_reset().expect("another"));
    assert_ne!(first, second);
    database.reset(&first).expect("it is valid");
    run(&database, "CREATE (:B)");
    assert_eq!(code(&database, &first), ErrorCode::PreconditionsFailed);
    drop(database);
    // A token is valid in every process of the graph.
    let database = open(home.path());
    assert_eq!(code(&database, &first), ErrorCode::PreconditionsFailed);
    assert_eq!(run(&database, "MATCH (n) RETURN labels(n)"), ["[B]"]);
    database.reset(&second).expect("it is valid");
    is_empty(&database);
    // Their number is bounded.
    let error = (0..100).find_map(|_| database.begin_reset().err()).expect("there are too many");
    assert_eq!(error.code(), ErrorCode::TooManyRequests, "{error}");
}
