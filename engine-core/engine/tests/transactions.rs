//! Transactions of several requests.

use tidegraph_engine::{Database, Language, Options, Parameters, Query, Transaction};
use tidegraph_types::{ErrorCode, Value, Version};

fn cypher<'a>(text: &'a str, parameters: &'a Parameters) -> Query<'a> {
    Query::new(Language::OpenCypher, text, parameters)
}

struct Graph {
    database: std::sync::Arc<Database>,
    none: Parameters,
}

impl Graph {
    fn new() -> Self {
        Self {
            database: Database::open(Options::default()).expect("a graph in memory"),
            none: Parameters::default(),
        }
    }

    fn rows(&self, text: &str) -> Vec<Vec<Value>> {
        self.database.query(&cypher(text, &self.none)).expect("it runs").rows
    }

    fn within(&self, transaction: &mut Transaction, text: &str) -> Vec<Vec<Value>> {
        self.database.query_within(transaction, &cypher(text, &self.none)).expect("it runs").rows
    }

    fn refused(&self, transaction: &mut Transaction, text: &str) -> ErrorCode {
        self.database.query_within(transaction, &cypher(text, &self.none)).expect_err("it is refused").code()
    }
}

/// Neo4j's drivers send each text of `execute_query` in a transaction.
#[test]
fn a_profile_is_a_request_of_a_transaction() {
    let graph = Graph::new();
    graph.rows("CREATE (:P {n: 1})");
    let mut transaction = begin();
    graph.within(&mut transaction, "CREATE (:P {n: 2})");
    let none = Parameters::default();
    let profile = cypher("PROFILE MATCH (p:P) SET p.n = p.n + 10 RETURN p.n", &none);
    let answer = graph.database.query_within(&mut transaction, &profile).expect("a profile");
    assert_eq!(&*answer.columns[0], "operator");
    assert!(answer.wrote && answer.counters.properties_written == 2, "{:?}", answer.counters);
    let scans = |row: &&Vec<Value>| row[0].as_str().is_some_and(|line| line.contains("scan vertices"));
    let scan = answer.rows.iter().find(scans).expect("a scan");
    assert_eq!(scan[2], Value::Long(2), "{:?}", answer.rows);
    let explained = graph.within(&mut transaction, "EXPLAIN MATCH (p:P) DELETE p");
    assert!(explained.len() > 1 && explained[0].len() == 1);
    // A command has no operators.
    assert_eq!(graph.within(&mut transaction, "PROFILE SHOW INDEXES"), [["SHOW INDEXES".into()]]);
    let read = "MATCH (p:P) RETURN p.n ORDER BY p.n";
    assert_eq!(graph.within(&mut transaction, read), [[Value::Long(11)], [Value::Long(12)]]);
    graph.database.commit_transaction(transaction).expect("it is committed");
    assert_eq!(graph.rows(read), [[Value::Long(11)], [Value::Long(12)]]);
}

#[test]
fn a_profile_of_a_transaction_keeps_its_rules() {
    let graph = Graph::new();
    let mut reads = Transaction::new(None, None, true);
    assert_eq!(graph.refused(&mut reads, "PROFILE CREATE (:P)"), ErrorCode::MethodNotAllowed);
    let mut failed = begin();
    assert_eq!(graph.refused(&mut failed, "PROFILE RETURN 1 + {}"), ErrorCode::InvalidArgument);
    assert_eq!(graph.refused(&mut failed, "RETURN 1"), ErrorCode::BadRequest);
}

const INDEX: &str = "CREATE INDEX names FOR (p:P) ON (p.name)";

fn begin() -> Transaction {
    Transaction::new(None, None, false)
}

#[test]
fn requests_see_the_writes_of_earlier_ones_and_nothing_of_others() {
    let graph = Graph::new();
    graph.rows("CREATE (:P {`~id`: 'a', n: 1}), (:P {`~id`: 'b', n: 2})");
    let mut transaction = begin();
    assert_eq!(graph.within(&mut transaction, "MATCH (p:P) RETURN sum(p.n)"), [[Value::Long(3)]]);
    // Another transaction writes after the first request.
    graph.rows("CREATE (:P {`~id`: 'c', n: 10})");
    graph.within(&mut transaction, "MATCH (p:P {n: 1}) SET p.n = 100");
    graph.within(&mut transaction, "MATCH (p:P {n: 2}) DELETE p");
    graph.within(&mut transaction, "CREATE (:P {`~id`: 'd', n: 1000})-[:E {w: 1}]->(:Q)");
    graph.within(&mut transaction, "MATCH (:P)-[e:E]->(:Q) SET e.w = 2");
    let inside = "MATCH (p:P) OPTIONAL MATCH (p)-[e:E]->() RETURN p.n, e.w ORDER BY p.n";
    let expected = [[Value::Long(100), Value::Null], [Value::Long(1_000), Value::Long(2)]];
    assert_eq!(graph.within(&mut transaction, inside), expected);
    assert_eq!(graph.rows("MATCH (p:P) RETURN sum(p.n)"), [[Value::Long(13)]]);
}

#[test]
fn all_of_it_is_committed_as_one_version() {
    let graph = Graph::new();
    let mut transaction = begin();
    for n in 0..50 {
        graph.within(&mut transaction, &format!("CREATE (:P {{n: {n}}})"));
    }
    graph.within(&mut transaction, "MATCH (p:P) WHERE p.n < 10 DELETE p");
    // New names have a version of their own.
    let before = Version(graph.database.status().version);
    let version = graph.database.commit_transaction(transaction).expect("it commits");
    assert_eq!(version, before.next());
    assert_eq!(graph.rows("MATCH (p:P) RETURN count(p)"), [[Value::Long(40)]]);
}

#[test]
fn what_is_dropped_leaves_nothing() {
    let graph = Graph::new();
    let mut transaction = begin();
    graph.within(&mut transaction, "CREATE (:P {`~id`: 'a'})");
    drop(transaction);
    assert_eq!(graph.rows("MATCH (p) RETURN count(p)"), [[Value::Long(0)]]);
    graph.rows("CREATE (:P {`~id`: 'a'})");
}

#[test]
fn a_transaction_conflicts_by_what_any_of_its_requests_read() {
    let graph = Graph::new();
    graph.rows("CREATE (:A {n: 1}), (:B {n: 1})");
    let mut transaction = begin();
    // It only reads A.
    graph.within(&mut transaction, "MATCH (a:A) RETURN a.n");
    graph.within(&mut transaction, "MATCH (b:B) SET b.n = 2");
    graph.rows("MATCH (a:A) SET a.n = 2");
    let refused = graph.database.commit_transaction(transaction).expect_err("it read A");
    assert_eq!(refused.code(), ErrorCode::ConcurrentModification);
    assert_eq!(graph.rows("MATCH (b:B) RETURN b.n"), [[Value::Long(1)]]);

    // A transaction that only reads has no conflicts.
    let mut transaction = begin();
    graph.within(&mut transaction, "MATCH (a:A) RETURN a.n");
    graph.rows("MATCH (a:A) SET a.n = 3");
    assert_eq!(graph.within(&mut transaction, "MATCH (a:A) RETURN a.n"), [[Value::Long(2)]]);
    let read = transaction.version().expect("it has read");
    assert_eq!(graph.database.commit_transaction(transaction).expect("it wrote nothing"), read);
}

#[test]
fn after_a_failure_it_can_only_be_dropped() {
    let graph = Graph::new();
    let mut transaction = begin();
    graph.within(&mut transaction, "CREATE (:P)");
    assert_eq!(graph.refused(&mut transaction, "MATCH (p:P) RETURN p.name +"), ErrorCode::MalformedQuery);
    assert_eq!(graph.refused(&mut transaction, "RETURN 1"), ErrorCode::BadRequest);
    let refused = graph.database.commit_transaction(transaction).expect_err("a request failed");
    assert_eq!(refused.code(), ErrorCode::BadRequest);
    assert_eq!(graph.rows("MATCH (p:P) RETURN count(p)"), [[Value::Long(0)]]);
}

#[test]
fn a_deleted_vertex_may_have_edges_until_the_commit() {
    let graph = Graph::new();
    graph.rows("CREATE (:P)-[:E]->(:Q)");
    let mut transaction = begin();
    graph.within(&mut transaction, "MATCH (q:Q) DELETE q");
    let refused = graph.database.commit_transaction(transaction).expect_err("it has an edge");
    assert_eq!(refused.code(), ErrorCode::ConstraintViolation);
    let mut transaction = begin();
    graph.within(&mut transaction, "MATCH (q:Q) DELETE q");
    graph.within(&mut transaction, "MATCH (:P)-[e:E]->() DELETE e");
    graph.database.commit_transaction(transaction).expect("the edge is gone, too");
}

#[test]
fn what_does_not_belong_into_a_transaction_is_refused() {
    let graph = Graph::new();
    for text in ["CREATE (:P)", INDEX] {
        let mut reading = Transaction::new(None, None, true);
        assert_eq!(graph.refused(&mut reading, text), ErrorCode::MethodNotAllowed, "{text}");
    }
    // Nobody keeps a list.
    assert_eq!(graph.refused(&mut begin(), "SHOW TRANSACTIONS"), ErrorCode::UnsupportedOperation);
    let mut late = Transaction::new(Some(Version(1_000_000)), None, false);
    let query = Query { timeout: Some(std::time::Duration::from_secs(2)), ..cypher("RETURN 1", &graph.none) };
    let refused = graph.database.query_within(&mut late, &query).expect_err("the version is far");
    assert_eq!(refused.code(), ErrorCode::Unavailable);
}

/// Clients send commands in transactions, too: `executeQuery` of Neo4j's drivers makes one of each text.
#[test]
fn commands_take_effect_at_once_and_do_not_go_with_writes() {
    let graph = Graph::new();
    graph.rows("CREATE (:P {name: 'Ada'})");
    let mut transaction = begin();
    graph.within(&mut transaction, "MATCH (p:P) RETURN p.name");
    graph.within(&mut transaction, INDEX);
    let shown = [[Value::string("names")]];
    assert_eq!(graph.within(&mut transaction, "SHOW INDEXES YIELD name"), shown);
    let read = "MATCH (p:P {name: 'Ada'}) RETURN p.name";
    assert_eq!(graph.within(&mut transaction, read), [[Value::string("Ada")]]);
    assert_eq!(graph.refused(&mut transaction, "CREATE (:P)"), ErrorCode::BadRequest);
    drop(transaction);
    assert_eq!(graph.rows("SHOW INDEXES YIELD name"), shown, "the rollback leaves it");

    let mut transaction = begin();
    graph.within(&mut transaction, "CREATE (:P)");
    assert_eq!(graph.within(&mut transaction, "SHOW INDEXES YIELD name"), shown);
    assert_eq!(graph.refused(&mut transaction, "DROP INDEX names"), ErrorCode::BadRequest);
    assert!(graph.database.commit_transaction(transaction).is_err(), "a request of it failed");

    let mut transaction = begin();
    graph.within(&mut transaction, "DROP INDEX names");
    let version = graph.database.commit_transaction(transaction).expect("there is nothing to commit");
    assert_eq!(version, Version(graph.database.status().version), "a bookmark covers the command");
    assert!(graph.rows("SHOW INDEXES").is_empty());
}

#[test]
fn its_memory_has_the_limit_of_a_request() {
    let options = Options { query_memory_bytes: 4 << 20, ..Options::default() };
    let graph =
        Graph { database: Database::open(options).expect("a graph in memory"), none: Parameters::default() };
    let mut transaction = begin();
    let text = "UNWIND range(1, 1000) AS n CREATE (:P {text: 'a text that takes some of the memory'})";
    let refused = (0..100)
        .find_map(|_| graph.database.query_within(&mut transaction, &cypher(text, &graph.none)).err());
    assert_eq!(refused.expect("100,000 vertices do not fit").code(), ErrorCode::QueryLimitExceeded);
}

#[test]
fn counters_are_those_of_each_request() {
    let graph = Graph::new();
    let mut transaction = begin();
    let mut counted = |text: &str| {
        let answer =
            graph.database.query_within(&mut transaction, &cypher(text, &graph.none)).expect("it runs");
        (answer.counters.vertices_created, answer.counters.edges_created, answer.wrote)
    };
    assert_eq!(counted("CREATE (:P)-[:E]->(:P)"), (2, 1, true));
    assert_eq!(counted("MATCH (p:P) RETURN p"), (0, 0, false));
    assert_eq!(counted("CREATE (:P)"), (1, 0, true));
    assert_eq!(counted("MERGE (q:Q) MERGE (:Q)"), (1, 0, true));
    let mut labels = |text: &str| {
        let answer =
            graph.database.query_within(&mut transaction, &cypher(text, &graph.none)).expect("it runs");
        (answer.counters.labels_added, answer.counters.labels_removed)
    };
    assert_eq!(labels("CREATE (:A:B), (:A), ()"), (3, 0));
    assert_eq!(labels("MATCH (a:A) SET a:B:C"), (3, 0));
    assert_eq!(labels("MATCH (a:A) REMOVE a:B:D"), (0, 2));
    assert_eq!(labels("MATCH (a:A) RETURN a"), (0, 0));
}

#[test]
fn the_request_fails_that_gives_a_value_twice() {
    let graph = Graph::new();
    graph.rows("CREATE CONSTRAINT ids FOR (p:P) REQUIRE p.id IS UNIQUE");
    graph.rows("CREATE (:P {id: 1}), (:P {id: 2}), (:Q {id: 1})");
    let refused = |earlier: &[&str], text: &str| {
        let mut transaction = begin();
        for text in earlier {
            graph.within(&mut transaction, text);
        }
        assert_eq!(graph.refused(&mut transaction, text), ErrorCode::UniqueViolation, "{earlier:?} {text}");
    };
    refused(&[], "CREATE (:P {id: 1})");
    refused(&[], "MATCH (p:P {id: 1}) SET p.id = 2");
    refused(&[], "MATCH (q:Q) SET q:P");
    refused(&[], "UNWIND [3, 4, 3] AS id CREATE (:P {id: id})");
    refused(&["CREATE (:P {id: 3})"], "CREATE (:P {id: 3})");
    refused(&["CREATE (:P {id: 3})", "CREATE (:P {id: 4})"], "MATCH (p:P {id: 4}) SET p.id = 3.0");
    // The value of a vertex that loses it is free, until another has it.
    refused(&["MATCH (p:P {id: 1}) SET p.id = 9", "CREATE (:P {id: 1})"], "MATCH (p:P {id: 9}) SET p.id = 1");
    refused(&["MATCH (p:P {id: 1}) REMOVE p:P", "CREATE (:P {id: 1})"], "MATCH (n {id: 1}) SET n:P");
    let mut transaction = begin();
    for text in [
        "MATCH (p:P {id: 1}), (o:P {id: 2}) SET p.id = 2, o.id = 1",
        "MATCH (p:P {id: 1}) DELETE p",
        "CREATE (:P {id: 1})",
        "MATCH (p:P {id: 1}) SET p.id = 1",
        "CREATE (:P {id: 5})",
        "MATCH (p:P {id: 5}) SET p.id = 6",
        "CREATE (:P {id: 5})",
        "MATCH (p:P {id: 6}) DELETE p",
        "CREATE (:P {id: 6})",
        "CREATE (:P {name: 'without an id'}), (:P {id: 0.0 / 0.0}), (:P {id: 0.0 / 0.0})",
    ] {
        graph.within(&mut transaction, text);
    }
    graph.database.commit_transaction(transaction).expect("each value is there once");

    // Another transaction gives the value after the request that gave it here.
    let mut transaction = begin();
    graph.within(&mut transaction, "CREATE (:P {id: 100})");
    graph.rows("CREATE (:P {id: 100})");
    let refused = graph.database.commit_transaction(transaction).expect_err("the value is taken");
    assert_eq!(refused.code(), ErrorCode::ConcurrentModification);
}
