//! Queries that try to take more than a request may: each ends with an error within its limits, and the process lives.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use support::{ask, empty, modern, refused, run};
use tidegraph_engine::{Answer, Database, Error, Language, Options, Parameters, Query};
use tidegraph_types::ErrorCode;

/// Longest wait for the end of a query. It is generous, because other programs may keep the machine busy: without an end
/// the queries here would run for hours.
const PATIENCE: Duration = Duration::from_secs(120);

/// A pattern of this many hops.
fn hops(count: usize) -> String {
    format!("MATCH (a){} RETURN count(*)", "-->()".repeat(count))
}

/// An empty graph whose queries may use this many bytes.
fn limited(query_memory_bytes: u64) -> Arc<Database> {
    Database::open(Options { query_memory_bytes, ..Options::default() }).expect("an empty graph")
}

/// The code of the error of a text, if it has one.
fn code(database: &Database, text: &str) -> Option<ErrorCode> {
    ask(database, text, &Parameters::default()).err().map(|error| error.code())
}

/// Runs a text on a thread of its own, and gives it this flag; returns where its end is told.
fn begun(
    database: &Arc<Database>,
    text: &str,
    timeout: Option<Duration>,
    cancel: &Arc<AtomicBool>,
) -> mpsc::Receiver<Result<Answer, Error>> {
    let (database, cancel, text) = (database.clone(), cancel.clone(), text.to_owned());
    let (told, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let none = Parameters::default();
        let query =
            Query { timeout, cancel: Some(&cancel), ..Query::new(Language::OpenCypher, &text, &none) };
        // A test that waits no more has failed.
        let _ = told.send(database.query(&query));
    });
    ended
}

/// Waits for the end of a query.
fn end(ended: &mpsc::Receiver<Result<Answer, Error>>, text: &str) -> Result<Answer, Error> {
    ended.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {text:.200}"))
}

/// Runs a text that would not end, and cancels it after a while; returns the code with which it ends.
fn cancelled(database: &Arc<Database>, text: &str, after: Duration) -> Option<ErrorCode> {
    let cancel = Arc::new(AtomicBool::new(false));
    let ended = begun(database, text, None, &cancel);
    std::thread::sleep(after);
    cancel.store(true, Ordering::Relaxed);
    end(&ended, text).err().map(|error| error.code())
}

#[test]
fn a_pattern_of_a_thousand_hops_runs_and_a_longer_one_is_refused_by_name() {
    let database = empty();
    assert_eq!(run(&database, &hops(1_000)), ["0"]);
    for count in [4_500, 20_000, 200_000] {
        let message = refused(&database, &hops(count));
        assert!(
            message.starts_with("MalformedQueryException: query is too long, expected at most"),
            "{message}"
        );
        assert!(message.contains(" operators at 1:"), "{message}");
    }
    // The same in a subquery, in a predicate, and spread over clauses.
    let long = "-->()".repeat(20_000);
    for text in [
        format!("MATCH (a) WHERE (a){long} RETURN a"),
        format!("MATCH (a) RETURN [(a){long} | 1]"),
        format!("RETURN EXISTS {{ MATCH (a){long} }}"),
        format!("{} RETURN 1", "MATCH ()-->() ".repeat(20_000)),
        format!("MERGE (a){} RETURN a", "-[:R]->()".repeat(20_000)),
        format!("MATCH (a){} RETURN 1", ", ()".repeat(20_000)),
    ] {
        let message = refused(&database, &text);
        assert!(message.contains("expected at most"), "{message}");
    }
}

#[test]
fn comparisons_and_operators_in_a_row_are_refused_before_they_nest() {
    let database = empty();
    for text in [
        format!("RETURN rand(){}", " < rand()".repeat(50_000)),
        format!("RETURN 1{}", " + 1".repeat(50_000)),
        format!("RETURN {}1{}", "[".repeat(50_000), "]".repeat(50_000)),
        format!("RETURN {}true", "NOT ".repeat(50_000)),
    ] {
        let message = refused(&database, &text);
        assert!(message.starts_with("MalformedQueryException"), "{message}");
        assert!(message.contains("expected at most"), "{message}");
    }
}

#[test]
fn planning_runs_under_the_limits_of_the_query() {
    let none = Parameters::default();
    // The texts are wrong at their end: who reads on finds that.
    let (cypher, gremlin) = (", 1".repeat(300_000), ", 1".repeat(300_000));
    for (language, text) in [
        (Language::OpenCypher, format!("RETURN [0{cypher}")),
        (Language::Gremlin, format!("g.inject(0{gremlin}")),
    ] {
        let database = empty();
        let asked = Query::new(language, &text, &none);
        let code = |query: &Query<'_>| database.query(query).expect_err("wrong").code();
        assert_eq!(code(&asked), ErrorCode::MalformedQuery);
        let cancel = Arc::new(AtomicBool::new(true));
        assert_eq!(code(&Query { cancel: Some(&cancel), ..asked }), ErrorCode::Cancelled);
        let timeout = Some(Duration::from_millis(1));
        assert_eq!(code(&Query { timeout, ..asked }), ErrorCode::TimeLimitExceeded);
        let error = limited(4 << 20).query(&asked).expect_err("too large");
        assert_eq!(error.code(), ErrorCode::QueryLimitExceeded);
        assert!(error.to_string().contains("memory limit of 4194304 bytes to be planned"), "{error}");
    }
}

#[test]
fn a_hundred_thousand_columns_end_by_the_time_limit_of_the_query_or_answer() {
    let database = empty();
    let items: Vec<String> = (0..100_000).map(|n| format!("{n} AS c{n}")).collect();
    let text = format!("RETURN {}", items.join(", "));
    let ended = begun(&database, &text, Some(Duration::from_secs(2)), &Arc::default());
    match end(&ended, &text) {
        Ok(answer) => assert_eq!(answer.columns.len(), 100_000),
        Err(error) => assert_eq!(error.code(), ErrorCode::TimeLimitExceeded, "{error}"),
    }
}

#[test]
fn values_that_double_are_refused_before_they_are_made() {
    let database = limited(64 << 20);
    let times = |step: &str, count: usize| format!("{} ", step).repeat(count);
    let doubled = |first: &str, step: &str| {
        format!("WITH {first} AS s {}RETURN size(s)", times(&format!("WITH {step} AS s"), 60))
    };
    for text in [
        "RETURN size(split(reduce(s = 'a,', i IN range(1, 23) | s + s), ','))".to_owned(),
        "RETURN size(split(reduce(s = 'ab', i IN range(1, 21) | s + s), ''))".to_owned(),
        doubled("'a,'", "s + s"),
        doubled("[1]", "s + s"),
        doubled("[1]", "[s, s]"),
        doubled("'ab'", "[s, s]"),
        doubled("[1, 2]", "[x IN s | s]"),
        doubled("'ab'", "replace(s, 'a', s + 'a')"),
        "RETURN size([x IN range(1, 100000) | reduce(s = 'ab', i IN range(1, 10) | s + s) + toString(x)])"
            .to_owned(),
        "WITH range(1, 1000000) AS l RETURN [l + 1, l + 2, l + 3, l + 4]".to_owned(),
        "WITH range(1, 1000000) AS a WITH a, a + 1 AS b WITH a, b, b + 1 AS c WITH a, b, c, c + 1 AS d \
         RETURN size(a) + size(b) + size(c) + size(d)"
            .to_owned(),
    ] {
        assert_eq!(code(&database, &text), Some(ErrorCode::QueryLimitExceeded), "{text}");
    }
}

#[test]
fn values_do_not_nest_without_bound() {
    let database = empty();
    for text in [
        "RETURN size(reduce(s = [], i IN range(1, 1000000) | [s]))",
        "RETURN reduce(s = {a: 1}, i IN range(1, 1000000) | {a: s})",
        "RETURN reduce(s = [1], i IN range(1, 1000000) | [] + [s])",
        "RETURN reduce(s = [1], i IN range(1, 1000000) | [x IN [1] | s])",
    ] {
        assert_eq!(
            refused(&database, text),
            "InvalidArgumentException: a list or map nests deeper than the limit of levels: 256",
            "{text}"
        );
    }
    assert_eq!(run(&database, "RETURN size(reduce(s = [1], i IN range(1, 200) | [s]))"), ["1"]);
    let folds = ".fold()".repeat(1_000);
    assert!(refused(&database, &format!("g.inject(1){folds}")).starts_with("InvalidArgumentException"));
}

#[test]
fn values_within_the_memory_limit_are_not_refused() {
    let database = limited(64 << 20);
    for (text, expected) in [
        // What an iteration needs for itself is given back.
        (
            "WITH reduce(s = 'ab', i IN range(1, 14) | s + s) AS s RETURN size([x IN range(1, 10000) | size(s + s)])",
            "10000",
        ),
        (
            "WITH reduce(s = 'ab', i IN range(1, 14) | s + s) AS s UNWIND range(1, 10000) AS x RETURN max(size(s + toString(x)))",
            "32773",
        ),
        (
            "WITH reduce(s = 'ab', i IN range(1, 14) | s + s) AS s RETURN all(x IN range(1, 10000) WHERE size(s + s) > 1)",
            "true",
        ),
        ("RETURN size(split(reduce(s = 'a,', i IN range(1, 15) | s + s), ','))", "32769"),
    ] {
        assert_eq!(run(&database, text), [expected], "{text}");
    }
}

#[test]
fn long_work_inside_expressions_ends_after_a_cancel() {
    let database = empty();
    let list = "WITH range(1, 1000000) AS l, range(1, 1000000) AS m ";
    for text in [
        // A list of floats is compared item by item; one of whole numbers becomes a set.
        format!("{list}WITH [x IN l | toFloat(x)] AS l UNWIND range(1, 1000000000) AS i RETURN count(-i IN l)"),
        format!("{list}UNWIND range(1, 1000000000) AS i WITH l, m, i WHERE l = m RETURN count(i)"),
        format!("{list}WITH [l] AS l, [m] AS m UNWIND range(1, 1000000000) AS i WITH l, m, i WHERE l = m RETURN count(i)"),
        format!("{list}UNWIND range(1, 1000000000) AS i RETURN sum(size(reverse(l)))"),
        "WITH reduce(s = 'ab', i IN range(1, 23) | s + s) AS s UNWIND range(1, 1000000000) AS i RETURN count(s =~ '(a|b)*c')"
            .to_owned(),
        "WITH range(1, 10000) AS l RETURN size([x IN l | size([y IN l | size([z IN l | x + y + z])])])".to_owned(),
    ] {
        let code = cancelled(&database, &text, Duration::from_millis(500));
        assert_eq!(code, Some(ErrorCode::Cancelled), "{text}");
    }
}

#[test]
fn outer_variables_stay_in_scope_in_subqueries() {
    let database = modern();
    for (text, expected) in [
        // `WITH` introduces a variable and keeps those of the outer query.
        (
            "MATCH (p:person) WHERE EXISTS { WITH 'ripple' AS x MATCH (p)-[:created]->(s) WHERE s.name = x } \
             RETURN p.name",
            &["josh"][..],
        ),
        (
            "MATCH (p:person) RETURN p.name, COUNT { WITH 'lop' AS x MATCH (p)-[:created]->(s) WHERE s.name = x } AS n \
             ORDER BY p.name",
            &["josh | 1", "marko | 1", "peter | 1", "vadas | 0"],
        ),
        (
            "MATCH (p:person) WHERE NOT EXISTS { WITH 'lop' AS x MATCH (p)-[:created]->(s) WHERE s.name = x } \
             RETURN p.name",
            &["vadas"],
        ),
        // After an aggregation and after DISTINCT too, also if no row is aggregated.
        (
            "MATCH (p:person) RETURN p.name, COUNT { MATCH (p)-[:created]->(s) WITH count(s) AS n \
             MATCH (p)-[:knows]->(q) WHERE n = 1 } AS n ORDER BY p.name",
            &["josh | 0", "marko | 2", "peter | 0", "vadas | 0"],
        ),
        (
            "MATCH (p:person) WHERE EXISTS { MATCH (p)-[:created]->(s) WITH count(s) AS n WHERE n = 0 AND p.age < 30 } \
             RETURN p.name",
            &["vadas"],
        ),
        (
            "MATCH (p:person) WHERE EXISTS { MATCH (p)-[:created]->(s) WITH DISTINCT s.lang AS lang \
             MATCH (p)-[:knows]->(q) WHERE lang = 'java' } RETURN p.name",
            &["marko"],
        ),
        (
            "MATCH (p:person) WHERE EXISTS { MATCH (p)-[:created]->(s) WITH s ORDER BY p.age LIMIT 1 \
             WITH s.name AS n WHERE p.name = 'josh' } RETURN p.name",
            &["josh"],
        ),
        // In a subquery of a subquery.
        (
            "MATCH (p:person) WHERE EXISTS { WITH 'lop' AS x MATCH (p)-[:knows]->(q) \
             WHERE EXISTS { WITH x AS y MATCH (q)-[:created]->(s) WHERE s.name = y AND p.age < q.age } } RETURN p.name",
            &["marko"],
        ),
    ] {
        let mut rows = run(&database, text);
        if !text.contains("ORDER BY p.name") {
            rows.sort();
        }
        assert_eq!(rows, expected, "{text}");
    }
}

#[test]
fn a_subquery_does_not_give_a_new_meaning_to_an_outer_variable() {
    let message = refused(&modern(), "MATCH (p:person) WHERE EXISTS { WITH 'a' AS p RETURN p } RETURN p");
    assert_eq!(
        message,
        "MalformedQueryException: variable `p` of the outer query cannot be declared again in a subquery, \
         expected another name at 1:45"
    );
}

#[test]
fn quantified_paths_of_a_dense_graph_end_by_the_limits_of_the_query() {
    let database = empty();
    run(&database, "UNWIND range(1, 12) AS i CREATE (:N {i: i})");
    run(&database, "MATCH (a:N), (b:N) WHERE a <> b CREATE (a)-[:T]->(b)");
    // A clique of 12 vertices has more trails than anyone can count.
    for text in [
        "MATCH ((a)-[r]->(b))* RETURN count(*)",
        "MATCH (:N {i: 1}) ((a)-[r]->(b)-[s]->(c) WHERE a.i <> c.i)+ (d) RETURN count(d)",
        "MATCH (s:N), (t:N), p = (s) ((a)--(b) WHERE EXISTS { (b)-->(a) })+ (t) RETURN max(length(p))",
        "MATCH p = SHORTEST 3 ((:N {i: 1}) ((a)-[r]-(b)){14,} (:N {i: 2}) WHERE size(r) > 13) RETURN length(p)",
        "MATCH (:N {i: 1}) ((a)-[r]->(b)){3,} ((c)-[s]->(d)){3,} RETURN size(r) + size(s) AS n LIMIT 1000000",
    ] {
        let ended = begun(&database, text, Some(Duration::from_millis(300)), &Arc::default());
        let code = end(&ended, text).expect_err(text).code();
        assert_eq!(code, ErrorCode::TimeLimitExceeded, "{text}");
        let code = cancelled(&database, text, Duration::from_millis(50));
        assert_eq!(code, Some(ErrorCode::Cancelled), "{text}");
    }
    // A search needs no trails beside those that it finds.
    let found = "MATCH p = SHORTEST 3 (:N {i: 1}) ((a)-[r]-(b)){14,} (:N {i: 2}) RETURN length(p)";
    assert_eq!(run(&database, found), ["14", "14", "14"]);
    // The first walks leave before the others are looked for.
    assert_eq!(run(&database, "MATCH ((a)-[r]->(b))+ RETURN 1 LIMIT 3"), ["1", "1", "1"]);
}

#[test]
fn a_long_quantified_path_is_charged_to_the_memory_of_the_query() {
    let database = limited(4 << 20);
    run(&database, "UNWIND range(0, 3000) AS i CREATE (:N {i: i})");
    run(&database, "MATCH (a:N), (b:N) WHERE b.i = a.i + 1 CREATE (a)-[:T]->(b)");
    assert_eq!(run(&database, "MATCH (:N {i: 0}) ((a)-[r]->(b)){100} RETURN size(a)"), ["100"]);
    run(&database, "UNWIND range(1, 8) AS i CREATE (:M {i: i})");
    run(&database, "MATCH (a:M), (b:M) WHERE a <> b CREATE (a)-[:T]->(b)");
    for text in [
        "MATCH (a:M {i: 1}), (b:M {i: 2}) MATCH p = SHORTEST 3 (a)-->+(b) RETURN length(p)",
        "MATCH p = SHORTEST 3 (:M {i: 1})-->+(:M {i: 2}) RETURN length(p)",
        "MATCH p = SHORTEST 3 (:M {i: 2})<--+(:M {i: 1}) RETURN length(p)",
        "MATCH p = SHORTEST 3 (:M {i: 1})--+(:M {i: 2}) RETURN length(p)",
        "MATCH p = SHORTEST 3 (:M {i: 1}) ((a)--(b)){20,} (:M {i: 2}) RETURN length(p)",
    ] {
        assert_eq!(run(&database, text).len(), 3, "{text}");
    }
    for text in [
        "MATCH (:N {i: 0}) ((a)-[r]->(b))+ (c) RETURN collect(a)",
        "MATCH p = SHORTEST 3 ((:M {i: 1}) ((a)-[r]-(b)){20,} (:M {i: 2}) WHERE size(r) > 19) RETURN length(p)",
        "MATCH p = SHORTEST 2 GROUPS ((:M {i: 1}) ((a)-[r]-(b))+ (:M) WHERE size(r) > 30) RETURN length(p)",
    ] {
        assert_eq!(code(&database, text), Some(ErrorCode::QueryLimitExceeded), "{text}");
    }
}
