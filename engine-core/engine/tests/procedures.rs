//! Procedures that a program adds to its database.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_engine::plan::{CallError, Procedure, Procedures, Signature, TypeTest, ValueType};
use tidegraph_engine::{Answer, Database, Error, Language, Options, Parameters, Query};
use tidegraph_types::{ErrorCode, Value};

fn or_null(kind: ValueType) -> TypeTest {
    TypeTest::or_null(kind)
}

/// `test.countdown(from, step = 1)`: integers from `from` down to 1.
fn countdown() -> Procedure {
    let signature = Signature::new("test.countdown")
        .describe("Counts down to 1.")
        .argument("from", TypeTest { any_of: vec![(ValueType::Integer, false)] })
        .optional("step", or_null(ValueType::Integer), 1)
        .column("n", or_null(ValueType::Integer));
    Procedure::new(signature, |arguments, rows| {
        let step = arguments[1].as_i64().unwrap_or(1);
        let step = usize::try_from(step).ok().filter(|step| *step > 0);
        let step = step.ok_or_else(|| CallError::Failed("a step is at least 1".to_owned()))?;
        let from = arguments[0].as_i64().unwrap_or_default();
        (1..=from).rev().step_by(step).try_for_each(|n| rows.add(vec![n.into()]))
    })
}

/// Opens a graph with `test.countdown`, `test.half`, `test.mark`, `test.wrong` and `test.endless`; `marks` counts the
/// calls of `test.mark`.
fn open(marks: &Arc<AtomicU64>) -> Arc<Database> {
    let float = || or_null(ValueType::Float);
    let half = Signature::new("test.half").argument("x", float()).column("half", float());
    let half = Procedure::new(half, |arguments, rows| match arguments[0].as_f64() {
        Some(x) => rows.add(vec![(x / 2.0).into()]),
        None => Ok(()),
    });
    let counted = Arc::clone(marks);
    let mark = Signature::new("test.mark").argument("what", or_null(ValueType::Any));
    let mark = Procedure::new(mark, move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let wrong = Signature::new("test.wrong").column("n", or_null(ValueType::Integer));
    // The function does not stop at the error, which the caller gets nevertheless.
    let wrong = Procedure::new(wrong, |_, rows| rows.add(vec!["one".into()]).or(Ok(())));
    let endless = Signature::new("test.endless").argument("rows", or_null(ValueType::Boolean));
    let endless = Procedure::new(endless.column("n", or_null(ValueType::Integer)), |arguments, rows| {
        let with_rows = arguments[0] == Value::Bool(true);
        loop {
            if with_rows { rows.add(vec![1.into()])? } else { rows.check()? }
        }
    });
    let all = [countdown(), half, mark, wrong, endless];
    let procedures =
        all.into_iter().try_fold(Procedures::default(), |procedures, one| procedures.with(one)).unwrap();
    let query_memory_bytes = 4 << 20;
    Database::open(Options { procedures, query_memory_bytes, partitions: 2, ..Options::default() }).unwrap()
}

fn with(database: &Database, text: &str, parameters: &[(&str, Value)]) -> Result<Answer, Error> {
    let parameters: Parameters =
        parameters.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
    database.query(&Query::new(Language::OpenCypher, text, &parameters))
}

fn ask(database: &Database, text: &str) -> Vec<Vec<Value>> {
    with(database, text, &[]).unwrap_or_else(|error| panic!("{text}: {error}")).rows
}

#[test]
fn procedures_are_called_with_their_arguments() {
    let database = open(&Arc::default());
    let integers = |all: &[i64]| all.iter().map(|n| vec![Value::Long(*n)]).collect::<Vec<_>>();
    for (text, expected) in [
        ("CALL test.countdown(3)", &[3, 2, 1][..]),
        ("CALL Test.CountDown(3, 2) YIELD *", &[3, 1]),
        ("CALL test.countdown(5, 2) YIELD n AS m WHERE m < 5", &[3, 1]),
        ("UNWIND [2, 0, 1] AS i CALL test.countdown(i) YIELD n RETURN n", &[2, 1, 1]),
        ("UNWIND [2, 0] AS i OPTIONAL CALL test.countdown(i) YIELD n RETURN coalesce(n, -i)", &[2, 1, 0]),
        (
            "CALL test.countdown(2) YIELD n CALL test.countdown(n) YIELD n AS m RETURN n * 10 + m",
            &[22, 21, 11],
        ),
        ("UNWIND range(1, 3000) AS i CALL test.countdown(2) YIELD n RETURN count(n)", &[6000]),
        ("RETURN COUNT { CALL test.countdown(4) YIELD n RETURN n } AS n", &[4]),
        // Rows are released once they were yielded: at one time these calls hold more than the memory limit.
        ("UNWIND range(1, 200) AS i CALL test.countdown(5000) YIELD n RETURN count(n)", &[1_000_000]),
    ] {
        assert_eq!(ask(&database, text), integers(expected), "{text}");
    }
    assert_eq!(ask(&database, "CALL test.half(3)"), [[Value::Double(1.5)]]);
    assert_eq!(ask(&database, "CALL test.half(null)"), Vec::<Vec<Value>>::new());
}

#[test]
fn functions_are_listed() {
    let database = open(&Arc::default());
    let text = "CALL dbms.functions() YIELD name, signature, category, aggregating \
                WHERE name IN ['toUpper', 'count'] RETURN name, signature, aggregating ORDER BY name";
    let row = |name: &str, aggregates: bool| {
        vec![name.into(), Value::string(format!("{name}()")), Value::Bool(aggregates)]
    };
    assert_eq!(ask(&database, text), [row("count", true), row("toUpper", false)]);
    let counts =
        "CALL dbms.functions() YIELD name, description RETURN count(DISTINCT name), count(description)";
    let listed = ask(&database, "SHOW FUNCTIONS").len() as i64;
    assert_eq!(ask(&database, counts), [[Value::Long(listed), Value::Long(listed)]]);
    assert_eq!(ask(&database, "SHOW PROCEDURES YIELD name WHERE name = 'dbms.functions'").len(), 1);
}

#[test]
fn parameters_are_arguments_of_a_call_without_parentheses() {
    let database = open(&Arc::default());
    let answer = with(&database, "CALL test.countdown", &[("from", 2.into())]).unwrap();
    assert_eq!((&*answer.columns, answer.rows.len()), (&["n".into()][..], 2));
    let missing = with(&database, "CALL test.countdown", &[]).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::MissingParameter, "{missing}");
}

#[test]
fn a_procedure_without_columns_keeps_the_rows() {
    let marks = Arc::default();
    let database = open(&marks);
    assert_eq!(ask(&database, "CALL test.mark(1)"), Vec::<Vec<Value>>::new());
    assert_eq!(ask(&database, "UNWIND [1, 2] AS i CALL test.mark(i) RETURN i").len(), 2);
    assert_eq!(marks.load(Ordering::Relaxed), 3);
    ask(
        &database,
        "UNWIND range(1, 5) AS i CALL (i) { CALL test.mark(i) CREATE (:N {i: i}) } IN TRANSACTIONS OF 2 ROWS",
    );
    assert_eq!(marks.load(Ordering::Relaxed), 8);
    assert_eq!(ask(&database, "MATCH (n:N) RETURN count(n)"), [[Value::Long(5)]]);
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let database = open(&Arc::default());
    let text = |text: &str| Value::string(text);
    for (query, x, code, expected) in [
        (
            "CALL test.countdown()",
            Value::Null,
            ErrorCode::MalformedQuery,
            "has 0 arguments, expected 1 to 2: from, step",
        ),
        ("CALL test.half(1, 2)", Value::Null, ErrorCode::MalformedQuery, "has 2 arguments, expected 1: x"),
        (
            "CALL test.half(true)",
            Value::Null,
            ErrorCode::MalformedQuery,
            "has a boolean for x, expected FLOAT",
        ),
        ("CALL test.half YIELD half RETURN half", Value::Null, ErrorCode::MalformedQuery, "in parentheses"),
        (
            "CALL test.mark(1) YIELD x",
            Value::Null,
            ErrorCode::MalformedQuery,
            "yields no x: it has no columns",
        ),
        ("CALL test.half($x)", text("a"), ErrorCode::InvalidArgument, "for argument x, expected FLOAT"),
        (
            "CALL test.countdown($x)",
            Value::Null,
            ErrorCode::InvalidArgument,
            "for argument from, expected INTEGER NOT NULL",
        ),
        (
            "CALL test.countdown(3, $x)",
            Value::Long(0),
            ErrorCode::InvalidArgument,
            "test.countdown(): a step is at least 1",
        ),
        ("CALL test.wrong()", Value::Null, ErrorCode::Internal, "for column n :: INTEGER"),
        ("CALL test.none()", Value::Null, ErrorCode::MalformedQuery, "unknown procedure: test.none"),
        ("CALL test.endless(true)", Value::Null, ErrorCode::QueryLimitExceeded, "memory"),
    ] {
        let error = with(&database, query, &[("x", x)]).expect_err(query);
        assert_eq!(error.code(), code, "{query}: {error}");
        assert!(error.to_string().contains(expected), "{query}: {error}");
    }
}

#[test]
fn traversals_call_procedures_of_the_program() {
    let marks = Arc::default();
    let database = open(&marks);
    let ask = |text: &str| {
        let parameters = Parameters::from_iter([("m".into(), Value::map(Default::default()))]);
        database.query(&Query::new(Language::Gremlin, text, &parameters))
    };
    let values = |text: &str| -> Vec<Value> {
        let answer = ask(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        answer.rows.into_iter().flatten().collect()
    };
    let integers = |all: &[i64]| all.iter().map(|n| Value::Long(*n)).collect::<Vec<_>>();
    for (text, expected) in [
        ("g.call('test.countdown', ['from': 3])", &[3, 2, 1][..]),
        ("g.call('test.countdown', m).with('from', 3).with('step', 2)", &[3, 1]),
        ("g.call('test.countdown', ['from': 1], project('from').by(constant(2)))", &[2, 1]),
        ("g.inject(1, 2).as('n').call('test.countdown').with('from', select('n'))", &[1, 2, 1]),
        ("g.call('Test.Countdown').with('from', 2).is(gt(1))", &[2]),
    ] {
        assert_eq!(values(text), integers(expected), "{text}");
    }
    assert_eq!(values("g.inject(5, 6).call('test.mark').with('what', 1)"), [Value::Int(5), Value::Int(6)]);
    assert_eq!(marks.load(Ordering::Relaxed), 2);
    let names = values("g.call('--list')");
    assert!(names.contains(&"test.half".into()) && !names.contains(&"db.labels".into()), "{names:?}");
    assert_eq!(values("g.call('--list').with('service', 'test.half')"), ["test.half".into()]);
    for (text, expected) in [
        ("g.call('test.countdown')", "call() of test.countdown lacks the parameter 'from'"),
        ("g.call('db.labels')", "no service is named 'db.labels' at 1:3"),
        ("g.call('test.mark').with('what', 1)", "call() of a procedure without columns after g at 1:3"),
    ] {
        let error = ask(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_long_call_ends_at_the_time_limit() {
    let database = open(&Arc::default());
    let parameters = Parameters::default();
    let query = Query::new(Language::OpenCypher, "CALL test.endless(false)", &parameters);
    let error = database.query(&Query { timeout: Some(Duration::from_millis(50)), ..query }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TimeLimitExceeded, "{error}");
}

#[test]
fn procedures_are_listed() {
    let database = open(&Arc::default());
    let signature = "test.countdown(from :: INTEGER NOT NULL, step = 1 :: INTEGER) :: (n :: INTEGER)";
    let expected = [[Value::string("Counts down to 1."), Value::string(signature)]];
    for text in [
        "SHOW PROCEDURES YIELD name, description, signature WHERE name = 'test.countdown' RETURN description, signature",
        "CALL dbms.procedures() YIELD name, description, signature WHERE name = 'test.countdown' RETURN description, signature",
    ] {
        assert_eq!(ask(&database, text), expected, "{text}");
    }
    let plain = Database::open(Options::default()).unwrap();
    let error = with(&plain, "CALL test.countdown(1)", &[]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MalformedQuery, "{error}");
}
