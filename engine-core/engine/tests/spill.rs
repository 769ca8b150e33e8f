//! Queries whose rows do not fit into their memory and go to temporary files.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "a folder is taken away under the database")]

mod support;

use std::path::Path;
use std::sync::Arc;
use support::run;
use tidegraph_engine::{
    Database, Error, Head, Interrupt, Language, Options, Parameters, Query, RowSink, Stop,
};
use tidegraph_types::{ErrorCode, Value};

const MEMORY: u64 = 3 << 20;

/// Keeps all rows, which then no longer count as memory of the request.
#[derive(Default)]
struct Kept(Vec<Vec<Value>>);

impl RowSink for Kept {
    fn take(&mut self, _: &Head, rows: Vec<Vec<Value>>, _: &dyn Interrupt) -> Result<(), Stop> {
        self.0.extend(rows);
        Ok(())
    }
}

/// Opens a graph of 2,000 vertices, the same in the same order each time, with values of all types in `n.v`, repeated ones, and edges between some.
fn database(memory: u64, most: Option<u64>, dir: Option<&Path>) -> Arc<Database> {
    let database = Database::open(Options {
        query_memory_bytes: memory,
        query_spill_bytes: most,
        spill_dir: dir.map(Path::to_owned),
        ..Options::default()
    })
    .unwrap();
    for first in (0..2_000).step_by(200) {
        let text = format!(
            "UNWIND range({first}, {first} + 199) AS i
             CREATE (n:N {{`~id`: toString(i), i: i, text: 'text ' + (i * 7919) % 2000, v: CASE i % 12
               WHEN 0 THEN i % 100 WHEN 1 THEN i / 10.0 WHEN 2 THEN 'x' + i % 50
               WHEN 3 THEN date({{year: 2000 + i % 30}}) WHEN 4 THEN duration({{days: i % 40}})
               WHEN 5 THEN point({{x: i % 9, y: 1.0}}) WHEN 6 THEN [i % 3, 2]
               WHEN 7 THEN datetime({{year: 2024, month: 3, day: 1 + i % 20, timezone: 'Europe/Berlin'}}) WHEN 8 THEN true
               WHEN 9 THEN time({{hour: i % 24, timezone: '+02:00'}})
               WHEN 10 THEN localdatetime({{year: 1900 + i % 90}})
               ELSE datetime({{epochSeconds: i}}) END}})"
        );
        run(&database, &text);
    }
    run(
        &database,
        "MATCH (a:N) WHERE a.i < 300 MATCH (b:N) WHERE b.i = a.i + 1 CREATE (a)-[:E {w: a.i % 7}]->(b)",
    );
    database
}

fn rows(database: &Database, text: &str) -> Result<Vec<Vec<Value>>, Error> {
    let language = if text.starts_with("g.") { Language::Gremlin } else { Language::OpenCypher };
    let mut kept = Kept::default();
    let answer = database.stream(&Query::new(language, text, &Parameters::default()), &mut kept)?;
    kept.0.extend(answer.rows);
    Ok(kept.0)
}

const QUERIES: &[&str] = &[
    // More runs than are merged at once.
    "UNWIND range(1, 60) AS k MATCH (n:N) RETURN n.text, k, n.v ORDER BY n.text DESC, k",
    "UNWIND range(1, 20) AS k MATCH (n:N) RETURN n.v AS v, k ORDER BY v",
    // Equal keys stay in the order of arrival.
    "UNWIND range(1, 40) AS k MATCH (n:N) WITH n, k ORDER BY n.i % 3 RETURN n.i, k",
    "UNWIND range(1, 40) AS k MATCH (n:N) RETURN n.text, k ORDER BY k, n.text SKIP 30000 LIMIT 40000",
    "UNWIND range(1, 20) AS k MATCH (n:N) OPTIONAL MATCH p = (n)-[e:E]->(m)
     RETURN n.i, e.w, [x IN nodes(p) | x.i], {k: [k, null], m: m.i} AS map ORDER BY map.k[0] DESC, e.w",
    "UNWIND range(1, 40) AS k MATCH (n:N) RETURN DISTINCT n.text, k % 20",
    "UNWIND range(1, 40) AS k MATCH (n:N) WITH n, k ORDER BY n.text DESC, k RETURN DISTINCT n.v, k % 20",
    "UNWIND range(1, 40) AS k MATCH (n:N) RETURN n.text + k % 30 AS key, count(*), sum(k), avg(n.i), min(n.v), collect(k)",
    "UNWIND range(1, 40) AS k MATCH (n:N) RETURN n.v AS v, k % 20 AS m, count(DISTINCT n.i), max(n.text), percentileCont(n.i, 0.3)",
    // Distinct aggregates without keys, and of few groups. Which values come first decides lists and the last digits of sums.
    "UNWIND range(1, 40) AS k MATCH (n:N) RETURN count(DISTINCT n.text + k) AS c, count(*), max(n.i)",
    "UNWIND range(1, 40) AS k MATCH (n:N)
     RETURN sum(DISTINCT n.i / 7.0 + k), avg(DISTINCT n.i * 41 + k), stDev(DISTINCT k), collect(DISTINCT n.text)[..50], count(DISTINCT n.i + k)",
    "UNWIND range(1, 30) AS k MATCH (n:N) RETURN count(DISTINCT [n.v, k, n.i]), count(DISTINCT n), percentileDisc(DISTINCT n.i, 0.5)",
    "UNWIND range(1, 40) AS k MATCH (n:N) RETURN n.i % 3 AS g, count(DISTINCT n.text + k) AS c, sum(DISTINCT n.i / 7.0 + k)",
    "MATCH (n:N) UNWIND range(1, 30) AS k WITH n, k, count(*) AS c RETURN sum(c), max(k), count(n)",
    // Rows that wait for the end of the writes.
    "MATCH (n:N) UNWIND range(1, 40) AS k WITH n, n.text + k AS t
     FOREACH (x IN CASE n.i WHEN 5 THEN [1] ELSE [] END | CREATE (:M)) WITH t MATCH (m:M) RETURN count(m), max(t)",
    "g.V().hasLabel('N').as('a').V().hasLabel('N').limit(80000).order().by('text').by('i', desc).values('i')",
    "g.V().hasLabel('N').as('a').V().hasLabel('N').limit(60000).select('a').values('text').order()",
    "g.V().hasLabel('N').as('a').V().hasLabel('N').as('b').limit(60000).order().by('i', desc).dedup('a', 'b').by('text').select('b').values('i')",
];

#[test]
fn answers_beyond_memory_are_the_same() {
    let roomy = database(1 << 30, Some(0), None);
    let small = database(MEMORY, None, None);
    let without = database(MEMORY, Some(0), None);
    for text in QUERIES {
        let expected = rows(&roomy, text).unwrap();
        match rows(&small, text) {
            Ok(found) => assert!(found == expected, "{text}: {} and {} rows", found.len(), expected.len()),
            Err(error) => panic!("{text}: {error}"),
        }
        let refused = rows(&without, text).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::QueryLimitExceeded, "{text} needs no file");
    }
}

#[test]
fn files_have_a_limit_and_are_given_back() {
    let small = database(MEMORY, Some(2 << 20), None);
    let sort =
        |keys: i64| format!("UNWIND range(1, {keys}) AS k MATCH (n:N) RETURN n.text, k ORDER BY n.text, k");
    for _ in 0..3 {
        let refused = rows(&small, &sort(60)).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::QueryLimitExceeded);
        let message = "all queries together have as many bytes in temporary files as they may, 2097152";
        assert!(refused.to_string().contains(message), "{refused}");
        let distinct = "UNWIND range(1, 80) AS k MATCH (n:N) RETURN count(DISTINCT n.text + k)";
        let refused = rows(&small, distinct).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::QueryLimitExceeded);
        assert!(refused.to_string().contains(message), "{refused}");
        // What the refused ones had is free.
        assert_eq!(rows(&small, &sort(8)).unwrap().len(), 16_000);
    }
}

#[test]
fn a_folder_that_is_gone_fails_the_query_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("spill");
    let small = database(MEMORY, None, Some(&dir));
    let sort = "UNWIND range(1, 20) AS k MATCH (n:N) RETURN n.text, k ORDER BY n.text, k";
    assert_eq!(rows(&small, sort).unwrap().len(), 40_000);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "files have no names");
    // Removed, it is made again.
    std::fs::remove_dir(&dir).unwrap();
    assert_eq!(rows(&small, sort).unwrap().len(), 40_000);
    std::fs::remove_dir(&dir).unwrap();
    std::fs::write(&dir, "a file in its place").unwrap();
    let distinct = "UNWIND range(1, 40) AS k MATCH (n:N) RETURN count(DISTINCT n.text + k)";
    for text in [sort, distinct] {
        let refused = rows(&small, text).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::QueryLimitExceeded);
        assert!(refused.to_string().contains(&dir.display().to_string()), "{refused}");
    }
    assert_eq!(rows(&small, "MATCH (n:N) RETURN count(n)").unwrap(), [[Value::Long(2_000)]]);
}

/// A subquery answers for each of its rows, and `dedup` inside `repeat` compares the rows of all rounds: neither uses
/// files, and both answer the same.
#[test]
fn what_does_not_use_files_keeps_its_limit() {
    let (roomy, small) = (database(1 << 30, Some(0), None), database(MEMORY, None, None));
    for text in [
        "MATCH (n:N) WHERE n.i < 50 CALL (n) { MATCH (m:N) WHERE m.i < 20 RETURN m.text AS t ORDER BY t LIMIT 3 } RETURN n.i, t",
        "MATCH (n:N) WHERE n.i < 50 CALL (n) { MATCH (m:N) WHERE m.i < 20 RETURN DISTINCT m.i % 4 AS t } RETURN n.i, t",
        "MATCH (n:N) WHERE n.i < 50 CALL (n) { MATCH (m:N) WHERE m.i < 20 RETURN m.i % 4 AS t, count(*) AS c } RETURN n.i, t, c",
        "g.V().has('N', 'i', 0).repeat(both('E').dedup()).times(30).values('i')",
    ] {
        assert_eq!(rows(&roomy, text).unwrap(), rows(&small, text).unwrap(), "{text}");
    }
    let many =
        "MATCH (n:N) CALL (n) { MATCH (m:N) RETURN m.text AS t, n.i AS i, count(*) AS c } RETURN sum(c)";
    assert_eq!(rows(&small, many).unwrap_err().code(), ErrorCode::QueryLimitExceeded);
}
