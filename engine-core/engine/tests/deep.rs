//! The longest queries that the languages accept run on a thread with a small stack. None may crash the process.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use tidegraph_engine::{Database, Language, Options, Parameters, Query};
use tidegraph_types::ErrorCode;

fn on_a_small_stack(language: Language, text: String) -> Result<usize, ErrorCode> {
    let database = Database::open(Options::default()).unwrap();
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        let answer = database.query(&Query::new(language, &text, &Parameters::default()));
        answer.map(|answer| answer.rows.len()).map_err(|error| error.code())
    });
    thread.unwrap().join().unwrap()
}

#[test]
fn a_chain_of_as_many_steps_as_are_allowed() {
    let chain = |steps: usize| format!("g.V(){}", ".out()".repeat(steps));
    assert_eq!(on_a_small_stack(Language::Gremlin, chain(1_990)), Ok(0));
    assert!(on_a_small_stack(Language::Gremlin, chain(5_000)).is_err());
}

#[test]
fn nested_traversals() {
    let nested = |depth: usize| format!("g.V().{}out(){}", "not(".repeat(depth), ")".repeat(depth));
    assert_eq!(on_a_small_stack(Language::Gremlin, nested(40)), Ok(0));
    assert!(on_a_small_stack(Language::Gremlin, nested(20_000)).is_err());
}

#[test]
fn many_clauses_and_deep_expressions() {
    let clauses = |count: usize| {
        let with: String = (0..count).map(|n| format!("WITH x + {n} AS x ")).collect();
        format!("WITH 1 AS x {with}RETURN x")
    };
    assert_eq!(on_a_small_stack(Language::OpenCypher, clauses(480)), Ok(1));
    let matches: String = (0..240).map(|n| format!("MATCH (a{n})-[r{n}]->(b{n}) ")).collect();
    assert_eq!(on_a_small_stack(Language::OpenCypher, format!("{matches}RETURN 1")), Ok(0));
    let sum = format!("RETURN 0{}", " + 1".repeat(5_000));
    assert!(matches!(on_a_small_stack(Language::OpenCypher, sum), Ok(1) | Err(ErrorCode::MalformedQuery)));
}

#[test]
fn plans_in_the_cache_are_dropped_on_a_small_stack() {
    // The longest texts whose plans are kept.
    let hops = format!("MATCH (a){} RETURN 1", "-->()".repeat(810));
    assert_eq!(on_a_small_stack(Language::OpenCypher, hops), Ok(0));
    let steps = format!("g.V(){}", ".out()".repeat(680));
    assert_eq!(on_a_small_stack(Language::Gremlin, steps), Ok(0));
}

#[test]
fn the_longest_pattern() {
    let hops = |count: usize| format!("MATCH (a){} RETURN 1", "-->()".repeat(count));
    assert_eq!(on_a_small_stack(Language::OpenCypher, hops(1_249)), Ok(0));
    assert_eq!(on_a_small_stack(Language::OpenCypher, hops(1_250)), Err(ErrorCode::MalformedQuery));
    let nodes = (0..2_499).map(|_| "()").collect::<Vec<_>>().join(", ");
    assert_eq!(on_a_small_stack(Language::OpenCypher, format!("MATCH {nodes} RETURN 1")), Ok(0));
    let clauses = "WITH 1 + 1 AS x ".repeat(2_490);
    assert_eq!(on_a_small_stack(Language::OpenCypher, format!("{clauses}RETURN x")), Ok(1));
}

#[test]
fn a_create_of_many_patterns_with_many_names() {
    let (vertices, edges) = (3_000, 30_000);
    let made: String = (0..vertices).map(|n| format!("CREATE (a{n}:Airport {{n: {n}}})\n")).collect();
    let route = |n: usize| format!("(a{})-[:ROUTE {{n: {n}}}]->(a{})", n % vertices, (n * 7 + 1) % vertices);
    let text = format!("{made}CREATE {}", (0..edges).map(route).collect::<Vec<_>>().join(",\n"));
    let database = Database::open(Options::default()).unwrap();
    let asked = database.clone();
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        asked.query(&Query::new(Language::OpenCypher, &text, &Parameters::default())).map(|_| ())
    });
    thread.unwrap().join().unwrap().unwrap();
    let count = "MATCH (a:Airport)-[r:ROUTE]->(b) WHERE b.n = (r.n * 7 + 1) % 3000 RETURN count(DISTINCT a), count(r)";
    let answer = database.query(&Query::new(Language::OpenCypher, count, &Parameters::default())).unwrap();
    assert_eq!(answer.rows, [[3_000_i64.into(), 30_000_i64.into()]]);
}
