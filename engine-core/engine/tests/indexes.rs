//! Indexes do not change answers, their definitions survive restarts and crashes, and errors name the mistake.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use support::{copy, empty, open, refused, run};
use tidegraph_engine::Database;

/// Conditions that an index can and cannot answer, in both languages.
const QUESTIONS: &[&str] = &[
    "MATCH (n:T {v: 7}) RETURN count(n), min(n.i)",
    "MATCH (n:T {v: 7.0}) RETURN n.i ORDER BY n.i LIMIT 5",
    "MATCH (n:T) WHERE n.v IN [1, 2, 'text 3', null] RETURN count(n)",
    "MATCH (n:T) WHERE n.v > 40 AND n.v <= 44.5 RETURN count(n), sum(n.i)",
    "MATCH (n:T) WHERE n.v >= 'text 2' RETURN count(n)",
    "MATCH (n:T) WHERE n.v STARTS WITH 'text 1' RETURN count(n)",
    "MATCH (n:T:Even) WHERE n.v = 8 RETURN count(n)",
    "MATCH (n:Even) WHERE n.v = 8 RETURN count(n)",
    "MATCH (n) WHERE n.v = 8 RETURN count(n)",
    "MATCH (n:T) WHERE n.v = null RETURN count(n)",
    "MATCH (n:T) WHERE n.v <> 3 RETURN count(n)",
    "UNWIND [1, 2, 3] AS x MATCH (n:T) WHERE n.v = x RETURN x, count(n) ORDER BY x",
    "g.V().has('T', 'v', 7).count()",
    "g.V().hasLabel('T').has('v', between(3, 6)).values('i').order().limit(10)",
    "g.V().hasLabel('T').has('v', within(3, 'text 5')).count()",
    "g.V().hasLabel('T').has('v', TextP.startingWith('text 4')).count()",
    "g.V().hasLabel('T').has('v', neq(3)).count()",
    "g.V().has('v', 7).count()",
];

fn answers(database: &Database) -> Vec<Vec<String>> {
    QUESTIONS.iter().map(|question| run(database, question)).collect()
}

fn fill(database: &Database) {
    run(
        database,
        "UNWIND range(0, 4999) AS i CREATE (n:T {i: i, v: CASE WHEN i % 3 = 0 THEN 'text ' + toString(i % 70) ELSE i % 100 END})",
    );
    run(database, "MATCH (n:T) WHERE n.i % 2 = 0 SET n:Even");
}

#[test]
fn answers_are_the_same_with_and_without() {
    let database = empty();
    fill(&database);
    let before = answers(&database);
    assert!(before.iter().all(|rows| !rows.is_empty()));
    run(&database, "CREATE INDEX t_v FOR (n:T) ON (n.v)");
    assert_eq!(answers(&database), before);
    run(&database, "CREATE INDEX FOR (x:Even) ON (x.v)");
    assert_eq!(answers(&database), before);
    assert_eq!(
        run(&database, "SHOW INDEXES"),
        [
            "index_Even_v | ONLINE | RANGE | NODE | [Even] | [v] | null",
            "t_v | ONLINE | RANGE | NODE | [T] | [v] | null",
        ]
    );
    // The index also finds later writes, and does not find deleted values.
    run(&database, "MATCH (n:T {v: 7}) SET n.v = 'seven'");
    run(&database, "MATCH (n:T {v: 8}) REMOVE n:T");
    run(&database, "MATCH (n:T {v: 10}) DELETE n");
    run(&database, "CREATE (:T {v: 7, i: -1})");
    let indexed = answers(&database);
    run(&database, "DROP INDEX t_v");
    run(&database, "DROP INDEX index_Even_v");
    assert_eq!(answers(&database), indexed);
    assert_eq!(run(&database, "SHOW INDEXES"), Vec::<String>::new());
    assert_ne!(indexed, before);
}

#[test]
fn writes_while_it_is_built_are_in_it() {
    let database = empty();
    fill(&database);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Relaxed) || n < 50 {
                run(&database, &format!("CREATE (:T {{v: 'new {n}', i: -1}})"));
                run(&database, &format!("MATCH (n:T {{i: {n}}}) SET n.v = 'moved'"));
                n += 1;
            }
        });
        for round in 0..5 {
            run(&database, &format!("CREATE INDEX i{round} FOR (n:T) ON (n.v)"));
            run(&database, &format!("DROP INDEX i{round}"));
        }
        run(&database, "CREATE INDEX last FOR (n:T) ON (n.v)");
        done.store(true, Ordering::Relaxed);
    });
    let count = |text: &str| run(&database, &format!("MATCH (n:T) WHERE {text} RETURN count(n)"));
    // An index cannot answer the second form.
    assert_eq!(count("n.v = 'moved'"), count("n.v + '' = 'moved'"));
    assert_eq!(count("n.v STARTS WITH 'new '"), count("n.v + '' STARTS WITH 'new '"));
}

#[test]
fn definitions_outlive_a_crash_and_a_checkpoint() {
    let home = tempfile::tempdir().expect("a folder");
    let (live, crashed, again) =
        (home.path().join("live"), home.path().join("crashed"), home.path().join("again"));
    let database = open(&live);
    fill(&database);
    run(&database, "CREATE INDEX t_v FOR (n:T) ON (n.v)");
    run(&database, "CREATE INDEX gone FOR (n:T) ON (n.i)");
    run(&database, "DROP INDEX gone");
    let before = answers(&database);
    let listed = ["t_v | ONLINE | RANGE | NODE | [T] | [v] | null"];
    copy(&live, &crashed);
    let after = open(&crashed);
    assert_eq!(run(&after, "SHOW INDEXES"), listed);
    assert_eq!(answers(&after), before);
    after.checkpoint().expect("a checkpoint");
    run(&after, "CREATE (:T {v: 7, i: 7})");
    let before = answers(&after);
    copy(&crashed, &again);
    let after = open(&again);
    assert!(after.status().checkpoint_version > 0);
    assert_eq!(run(&after, "SHOW INDEXES"), listed);
    assert_eq!(answers(&after), before);
}

#[test]
fn mistakes_are_named() {
    let database = empty();
    run(&database, "CREATE INDEX i FOR (n:A) ON (n.k)");
    for (text, expected) in [
        (
            "CREATE INDEX i FOR (n:B) ON (n.k)",
            "BadRequestException: an index with the name `i` exists already",
        ),
        (
            "CREATE INDEX FOR (n:A) ON (n.k)",
            "BadRequestException: an index over `A` and `k` exists already: `i`",
        ),
        ("DROP INDEX j", "BadRequestException: there is no index `j`"),
        ("DROP CONSTRAINT i", "BadRequestException: there is no constraint `i`"),
        (
            "CREATE INDEX FOR (n:A) ON (n.a, n.b)",
            "UnsupportedOperationException: not supported yet: composite index at 1:31",
        ),
    ] {
        assert_eq!(refused(&database, text), expected);
    }
    run(&database, "CREATE INDEX i IF NOT EXISTS FOR (n:B) ON (n.k)");
    run(&database, "CREATE INDEX IF NOT EXISTS FOR (n:A) ON (n.k)");
    run(&database, "DROP INDEX j IF EXISTS");
    assert_eq!(run(&database, "SHOW INDEXES").len(), 1);
    run(&database, "DROP INDEX i IF EXISTS");
    assert_eq!(run(&database, "SHOW INDEXES").len(), 0);
}
