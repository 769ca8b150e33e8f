//! What is not computed is not missed: sorted slices, subqueries of rows that are alike, and heads of lists answer what they
//! answer when everything is computed.

mod support;

use std::sync::Arc;
use support::{ask, empty, refused, run};
use tidegraph_engine::{Database, Explain, Language, Parameters, Query};
use tidegraph_types::Value;

/// A hub with 3,000 messages of 40 dates, some without a date, and 5 topics that messages share.
fn graph() -> Arc<Database> {
    let database = empty();
    run(&database, "UNWIND range(0, 4) AS i CREATE (:Topic {n: i})");
    run(
        &database,
        "CREATE (h:Hub) WITH h UNWIND range(0, 2999) AS i MATCH (t:Topic {n: i * 7 % 5}) \
         CREATE (h)-[:HAS]->(m:Message {id: i * 7919 % 3001, text: 'text ' + i})-[:ABOUT]->(t) \
         SET m.date = CASE WHEN i % 17 = 0 THEN null ELSE i * 31 % 40 END",
    );
    database
}

#[test]
fn the_first_rows_by_two_keys_are_those_of_the_whole_order() {
    let database = graph();
    for (condition, order) in [
        ("m.date <= 30", "date DESC, id"),
        ("m.date <= 30", "date, id DESC"),
        ("m.text STARTS WITH 'text 2'", "date DESC, id"),
        ("true", "date, id"),
        ("true", "date DESC, m.text, id"),
    ] {
        let all = format!(
            "MATCH (:Hub)-[:HAS]->(m:Message) WHERE {condition} \
             RETURN m.date AS date, m.id AS id, m.text AS text ORDER BY {order}"
        );
        let rows = run(&database, &all);
        for (skip, limit) in [(0, 1), (0, 20), (5, 100), (0, 10_000)] {
            let end = (skip + limit).min(rows.len());
            assert_eq!(run(&database, &format!("{all} SKIP {skip} LIMIT {limit}")), rows[skip..end], "{all}");
        }
    }
}

#[test]
fn a_profile_of_a_sorted_slice_counts_the_rows_of_its_filter() {
    let database = graph();
    let text = "MATCH (:Hub)-[:HAS]->(m) WHERE m.date <= 30 RETURN m.id AS id, m.date AS date \
                ORDER BY date DESC, id LIMIT 20";
    let count = run(&database, "MATCH (:Hub)-[:HAS]->(m) WHERE m.date <= 30 RETURN count(*)");
    let parameters = Parameters::default();
    let query =
        Query { explain: Some(Explain::Profile), ..Query::new(Language::OpenCypher, text, &parameters) };
    let rows = database.query(&query).unwrap().rows;
    let of = |operator: &str| {
        let found =
            rows.iter().find(|row| row[0].as_str().is_some_and(|line| line.trim().starts_with(operator)));
        found.unwrap_or_else(|| panic!("no {operator}: {rows:?}"))[2].clone()
    };
    assert_eq!(of("filter").as_i64().map(|rows| rows.to_string()), Some(count[0].clone()));
    // The slice runs them.
    assert_eq!((of("let"), of("sort"), of("slice").as_i64()), (Value::Null, Value::Null, Some(20)));
}

#[test]
fn errors_of_rows_that_are_not_among_the_first_remain() {
    let database = graph();
    let of = |order| {
        format!("MATCH (:Hub)-[:HAS]->(m) RETURN m.id AS id, 1 / m.id AS part ORDER BY {order} LIMIT 1")
    };
    for order in ["id DESC", "id DESC, part"] {
        assert!(refused(&database, &of(order)).contains("zero"), "{order}");
    }
    let deleted = "MATCH (:Hub)-[r:HAS]->(m) WITH collect(m) AS all UNWIND all AS m DETACH DELETE m \
                   WITH m WHERE true RETURN m.date AS date, m.id AS id ORDER BY date, id LIMIT 1";
    refused(&database, deleted);
}

#[test]
fn subqueries_of_rows_that_are_alike_answer_as_those_of_each_row() {
    let database = graph();
    let alike = |value: &str| {
        let text = format!(
            "UNWIND range(0, 299) AS i MATCH (t:Topic {{n: i % 5}}) WITH t, i, i % 3 AS k, toFloat(i % 2) AS f \
             RETURN i, {value} AS value ORDER BY i"
        );
        run(&database, &text)
    };
    let alone = |value: &str| -> Vec<String> {
        let one = |i| {
            let text = format!(
                "MATCH (t:Topic {{n: {}}}) WITH t, {i} AS i, {} AS k, toFloat({}) AS f RETURN i, {value} AS value",
                i % 5,
                i % 3,
                i % 2
            );
            run(&database, &text)
        };
        (0..300).flat_map(one).collect()
    };
    for value in [
        "size([(t)<-[:ABOUT]-(m) WHERE m.date = k | m.id])",
        "COUNT { (t)<-[:ABOUT]-(m) WHERE m.date > k }",
        "EXISTS { (t)<-[:ABOUT]-(m) WHERE m.date = k + 38 }",
        "COLLECT { MATCH (t)<-[:ABOUT]-(m) WHERE m.date = f RETURN m.id ORDER BY m.id LIMIT 2 }",
        "[x IN [(t)<-[:ABOUT]-(m) WHERE m.id < 9 | m.id + k] WHERE x % 2 = 0 | x * f][0]",
        "COLLECT { MATCH (h:Hub) RETURN labels(h) }",
    ] {
        assert_eq!(alike(value), alone(value), "{value}");
    }
}

#[test]
fn a_subquery_that_draws_numbers_draws_them_for_each_row() {
    let database = graph();
    let text = "UNWIND [1, 1, 1, 1] AS i WITH i, COLLECT { MATCH (h:Hub) RETURN rand() + i } AS drawn \
                RETURN count(DISTINCT drawn)";
    assert_eq!(run(&database, text), ["4"]);
}

#[test]
fn the_head_of_a_list_is_its_first_value() {
    let database = graph();
    let text = |head: &str| {
        format!(
            "MATCH (t:Topic)<-[:ABOUT]-(m) WITH t, m ORDER BY m.date DESC, m.id \
             WITH t, {head} AS newest RETURN t.n, newest ORDER BY t.n"
        )
    };
    let first = run(&database, &text("head(collect({id: m.id, date: m.date}))"));
    assert_eq!(first, run(&database, &text("collect({id: m.id, date: m.date})[0]")));
    let listed = "MATCH (t:Topic)<-[:ABOUT]-(m) WITH t, m ORDER BY m.date DESC, m.id \
                  WITH t, collect({id: m.id, date: m.date}) AS all RETURN t.n, all[0], size(all) > 1 ORDER BY t.n";
    let expected: Vec<String> =
        run(&database, listed).iter().map(|row| row.trim_end_matches(" | true").to_owned()).collect();
    assert_eq!(first, expected);
    // Nulls are not collected, and without values there is no head.
    let dates = "MATCH (m:Message) WHERE m.date IS NULL WITH m ORDER BY m.id RETURN head(collect(m.date)), head(collect(m.id))";
    let least = run(&database, "MATCH (m:Message) WHERE m.date IS NULL RETURN min(m.id)");
    assert_eq!(run(&database, dates), [format!("null | {}", least[0])]);
    assert_eq!(run(&database, "MATCH (n:Nobody) RETURN head(collect(n.x))"), ["null"]);
    assert!(ask(&database, &text("head(collect(DISTINCT m.date))"), &Parameters::default()).is_ok());
}
