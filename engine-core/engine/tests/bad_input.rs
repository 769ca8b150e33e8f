//! Extreme values that a graph accepts keep every bit: in the log, in a checkpoint, and in both languages.

mod support;

use support::{ask, copy, open, run};
use tidegraph_engine::{Database, Parameters};
use tidegraph_types::Value;

fn with(database: &Database, text: &str, parameters: &[(&str, Value)]) -> Vec<Vec<Value>> {
    let parameters: Parameters = parameters.iter().map(|(k, v)| ((*k).into(), v.clone())).collect();
    match ask(database, text, &parameters) {
        Ok(rows) => rows,
        Err(error) => panic!("{text}\n{}: {error}", error.code()),
    }
}

/// Returns a text that is exact to the last bit: `==` does not distinguish 0.0 from -0.0.
fn exactly(value: &Value) -> String {
    match value {
        Value::Double(v) => format!("double {:016x}", v.to_bits()),
        Value::Float(v) => format!("float {:08x}", v.to_bits()),
        other => format!("{other:?}"),
    }
}

/// Runs a check on a live graph, on one that replays its log, and on one that starts from a checkpoint.
fn in_each_life(fill: impl Fn(&Database), check: impl Fn(&Database)) {
    let home = tempfile::tempdir().expect("a folder");
    let live = open(&home.path().join("live"));
    fill(&live);
    check(&live);
    copy(&home.path().join("live"), &home.path().join("replayed"));
    check(&open(&home.path().join("replayed")));
    live.checkpoint().expect("a checkpoint");
    copy(&home.path().join("live"), &home.path().join("restored"));
    let restored = open(&home.path().join("restored"));
    assert!(restored.status().checkpoint_version > 0);
    check(&restored);
}

#[test]
fn ids_of_one_byte_and_of_64_kib() {
    let ids = ["x".to_owned(), "\u{0}".to_owned(), "ü".to_owned(), "k".repeat(64 << 10), " ".to_owned()];
    in_each_life(
        |graph| {
            for (n, id) in ids.iter().enumerate() {
                let parameters = [("id", Value::string(id.as_str())), ("n", Value::Long(n as i64))];
                with(graph, "CREATE (:T {`~id`: $id, n: $n})", &parameters);
            }
            let ends = [("a", Value::string(ids[0].as_str())), ("b", Value::string(ids[3].as_str()))];
            with(graph, "MATCH (a), (b) WHERE id(a) = $a AND id(b) = $b CREATE (a)-[:R]->(b)", &ends);
        },
        |graph| {
            for (n, id) in ids.iter().enumerate() {
                let id = Value::string(id.as_str());
                let rows =
                    with(graph, "MATCH (t) WHERE id(t) = $id RETURN t.n, id(t)", &[("id", id.clone())]);
                assert_eq!(rows, [[Value::Long(n as i64), id.clone()]]);
                let rows = with(graph, "g.V(wanted).values('n')", &[("wanted", id)]);
                assert_eq!(rows, [[Value::Long(n as i64)]]);
            }
            let long = Value::string(ids[3].as_str());
            assert_eq!(with(graph, "MATCH ({n: 0})-[:R]->(b) RETURN id(b)", &[]), [[long]]);
        },
    );
}

#[test]
fn numbers_that_equal_in_strange_ways() {
    let values = [
        Value::Double(0.0),
        Value::Double(-0.0),
        Value::Double(f64::NAN),
        Value::Double(f64::INFINITY),
        Value::Double(f64::NEG_INFINITY),
        Value::Double(f64::MIN_POSITIVE / 2.0),
        Value::Float(f32::NAN),
        Value::Float(-0.0),
        Value::Long(i64::MIN),
        Value::Long(i64::MAX),
        Value::string(""),
    ];
    in_each_life(
        |graph| {
            for (n, value) in values.iter().enumerate() {
                let parameters = [("n", Value::Long(n as i64)), ("v", value.clone())];
                with(graph, "CREATE (:T {n: $n, v: $v})", &parameters);
            }
        },
        |graph| {
            let rows = with(graph, "MATCH (t:T) RETURN t.v ORDER BY t.n", &[]);
            let found: Vec<String> = rows.iter().map(|row| exactly(&row[0])).collect();
            assert_eq!(found, values.iter().map(exactly).collect::<Vec<_>>());
            // 0.0 and -0.0 are equal; NaN equals nothing.
            assert_eq!(run(graph, "MATCH (t:T) WHERE t.v = 0.0 RETURN count(t)"), ["3"]);
            assert_eq!(run(graph, "MATCH (t:T) WHERE t.v = t.v RETURN count(t)"), ["9"]);
            assert_eq!(run(graph, "MATCH (t:T) WHERE t.v = '' RETURN count(t), max(size(t.v))"), ["1 | 0"]);
        },
    );
}

#[test]
fn a_value_of_16_mb_and_one_of_another_type_than_its_column() {
    let large = "ä".repeat(8 << 20);
    in_each_life(
        |graph| {
            run(graph, "UNWIND range(0, 99) AS n CREATE (:T {n: n, v: n})");
            with(graph, "MATCH (t:T {n: 5}) SET t.v = $large", &[("large", Value::string(large.as_str()))]);
            run(graph, "MATCH (t:T {n: 6}) SET t.v = ''");
            run(graph, "MATCH (t:T {n: 7}) SET t.v = true");
            run(graph, "MATCH (t:T {n: 8}) SET t.v = 0.5");
        },
        |graph| {
            let rows = with(graph, "MATCH (t:T) WHERE t.n IN [4, 5, 6, 7, 8] RETURN t.v ORDER BY t.n", &[]);
            let expected = [
                Value::Long(4),
                Value::string(large.as_str()),
                Value::string(""),
                Value::Bool(true),
                Value::Double(0.5),
            ];
            assert!(rows.iter().map(|row| &row[0]).eq(expected.iter()), "values changed");
            assert_eq!(run(graph, "MATCH (t:T) WHERE t.v >= 90 RETURN count(t)"), ["10"]);
        },
    );
}

#[test]
fn a_hundred_thousand_property_keys() {
    const KEYS: usize = 100_000;
    const EACH: usize = 500;
    in_each_life(
        |graph| {
            for first in (0..KEYS).step_by(EACH) {
                let keys: Vec<String> =
                    (first..first + EACH).map(|key| format!("k{key}: {}", key + 1)).collect();
                run(graph, &format!("CREATE (:T {{first: {first}, {}}})", keys.join(", ")));
            }
        },
        |graph| {
            for key in [0, 1, 4_999, 31_337, KEYS - 1] {
                let text = format!("MATCH (t:T) WHERE t.k{key} = {} RETURN t.first, size(keys(t))", key + 1);
                assert_eq!(run(graph, &text), [format!("{} | {}", key / EACH * EACH, EACH + 1)]);
            }
            assert_eq!(run(graph, "MATCH (t:T) RETURN count(t)"), [(KEYS / EACH).to_string()]);
        },
    );
}
