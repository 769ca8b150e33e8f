//! Sessions of Bolt over sockets: what clients send, good and bad, and what they get.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets")]

mod bad_input;
mod client;
mod graphs;
mod transactions;

use client::*;
use std::time::Duration;
use tidegraph_bolt::write_chunks;
use tidegraph_engine::Options;
use tidegraph_query::{server, session};
use tidegraph_types::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn row(values: &[Value]) -> Value {
    Value::list(values.to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_has_fields_records_and_a_summary() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let (rows, summary) = client.rows("CREATE (:P {name: 'Ada'})-[:KNOWS]->(:P {name: 'Grace'})").await;
    assert!(rows.is_empty());
    assert_eq!(field(&summary, "type"), &Value::from("w"));
    assert_eq!(field(field(&summary, "stats"), "nodes-created"), &Value::Long(2));
    assert_eq!(field(field(&summary, "stats"), "relationships-created"), &Value::Long(1));
    assert_eq!(field(field(&summary, "stats"), "labels-added"), &Value::Long(2));
    assert_eq!(field(field(&summary, "stats"), "labels-removed"), &Value::Null);
    let bookmark = field(&summary, "bookmark").clone();

    for (command, counter) in [
        ("CREATE INDEX names FOR (p:P) ON (p.name)", "indexes-added"),
        ("DROP INDEX names", "indexes-removed"),
        ("CREATE CONSTRAINT one FOR (p:P) REQUIRE p.name IS UNIQUE", "constraints-added"),
        ("DROP CONSTRAINT one", "constraints-removed"),
    ] {
        let (_, summary) = client.rows(command).await;
        let stats = map(&[(counter, 1_i64.into()), ("contains-updates", true.into())]);
        assert_eq!(
            (field(&summary, "stats"), field(&summary, "type")),
            (&stats, &Value::from("s")),
            "{command}"
        );
    }
    assert_eq!(field(&client.rows("DROP INDEX names IF EXISTS").await.1, "stats"), &Value::Null);
    let text = "MATCH (p:P) WHERE p.name > $after RETURN p.name AS name, 1.5 AS half ORDER BY name";
    let extra = map(&[("bookmarks", Value::list(vec![bookmark])), ("mode", "r".into())]);
    let head = client.succeeds(RUN, &[text.into(), map(&[("after", "A".into())]), extra]).await;
    assert_eq!(field(&head, "fields"), &row(&["name".into(), "half".into()]));
    client.send(&pull(-1)).await;
    let (rows, summary) = client.records().await;
    let half = Value::Double(1.5);
    assert_eq!(rows, [row(&["Ada".into(), half.clone()]), row(&["Grace".into(), half])]);
    assert_eq!(field(&summary, "type"), &Value::from("r"));
    assert_eq!(field(&summary, "has_more"), &Value::Null);
    client.send(&message(GOODBYE, &[])).await;
    client.is_closed().await;
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_in_the_parts_that_the_client_asks_for() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&run("UNWIND range(1, 10) AS n RETURN n")).await;
    client.success().await;
    client.send(&pull(3)).await;
    let (rows, more) = client.records().await;
    assert_eq!((rows.len(), field(&more, "has_more")), (3, &Value::Bool(true)));
    client.send(&message(DISCARD, &[map(&[("n", 4_i64.into())])])).await;
    assert_eq!(field(&client.success().await, "has_more"), &Value::Bool(true));
    client.send(&pull(100)).await;
    let (rows, summary) = client.records().await;
    assert_eq!(rows, [8, 9, 10].map(|n| row(&[Value::Long(n)])));
    assert_eq!(field(&summary, "has_more"), &Value::Null);
    // Nothing is open now.
    client.send(&pull(1)).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Request.Invalid");
    client.is_closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_arrives_whole_in_parts() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&run("UNWIND range(1, 20000) AS n RETURN n, 'some text to make rows longer' AS text")).await;
    client.success().await;
    let mut count = 0;
    loop {
        client.send(&pull(999)).await;
        let (rows, more) = client.records().await;
        for row in rows {
            count += 1;
            assert_eq!(row.as_slice().unwrap()[0], Value::Long(count));
        }
        if field(&more, "has_more") != &Value::Bool(true) {
            break;
        }
    }
    assert_eq!(count, 20_000);
    server.becomes_free().await;
}

/// Would answer with ten thousand million rows.
const MANY: &str = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a, b";

#[tokio::test(flavor = "multi_thread")]
async fn records_come_while_the_query_runs_until_nobody_wants_more() {
    let server = Server::with_memory(16 << 20, WIDE, None).await;
    let mut client = server.client().await;
    for ends in [message(RESET, &[]), message(DISCARD, &[map(&[("n", (-1_i64).into())])])] {
        client.send(&run(MANY)).await;
        client.success().await;
        for _ in 0..20 {
            client.send(&pull(1_000)).await;
            let (rows, more) = client.records().await;
            assert_eq!((rows.len(), field(&more, "has_more")), (1_000, &Value::Bool(true)));
        }
        client.send(&message(DISCARD, &[map(&[("n", 10_000_i64.into())])])).await;
        assert_eq!(field(&client.success().await, "has_more"), &Value::Bool(true));
        client.send(&pull(1)).await;
        assert_eq!(client.records().await.0, [row(&[Value::Long(1), Value::Long(30_001)])]);
        client.send(&ends).await;
        client.success().await;
        server.becomes_free().await;
    }
    // All at once, until the connection is gone.
    client.send(&[run(MANY), pull(-1)].concat()).await;
    client.success().await;
    for _ in 0..100_000 {
        assert_eq!(client.receive().await.unwrap().0, RECORD);
    }
    drop(client);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_records_need_little_memory() {
    let server = Server::with_memory(48 << 20, WIDE, None).await;
    let mut client = server.client().await;
    client
        .send(&[run("UNWIND range(1, 1000000) AS n RETURN n, toString(n), [n, n]"), pull(-1)].concat())
        .await;
    client.success().await;
    let mut count = 0;
    let summary = loop {
        match client.receive().await.unwrap() {
            (RECORD, _) => count += 1,
            (SUCCESS, summary) => break summary,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((count, field(&summary, "type")), (1_000_000, &Value::from("r")));
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_the_first_records_is_a_failure() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&[run("UNWIND range(1, 100000) AS i RETURN 1 / (90000 - i)"), pull(-1)].concat()).await;
    client.success().await;
    let mut count = 0;
    let code = loop {
        match client.receive().await.unwrap() {
            (RECORD, _) => count += 1,
            (FAILURE, metadata) => break field(&metadata, "neo4j_code").clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, Value::from("Neo.ClientError.Statement.TypeError"));
    assert!((1..90_000).contains(&count), "{count}");
    client.succeeds(RESET, &[]).await;
    assert_eq!(client.rows("RETURN 1").await.0.len(), 1);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_all_is_ignored_until_reset() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&[run("RETURN"), pull(-1), run("RETURN 1"), pull(-1)].concat()).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Statement.SyntaxError");
    for _ in 0..3 {
        client.ignored().await;
    }
    client.succeeds(RESET, &[]).await;
    assert_eq!(client.rows("RETURN 1").await.0, [row(&[Value::Long(1)])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_queries_are_answered_in_order() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let queries: Vec<u8> = (0..500).flat_map(|n| [run(&format!("RETURN {n}")), pull(-1)].concat()).collect();
    client.send(&queries).await;
    for n in 0..500 {
        client.success().await;
        assert_eq!(client.records().await.0, [row(&[Value::Long(n)])]);
    }
}

/// A query that runs until something ends it.
const ENDLESS: &str =
    "UNWIND range(1, 100000000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a + b < 0 RETURN a";

#[tokio::test(flavor = "multi_thread")]
async fn reset_ends_a_query_that_runs() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&[run(ENDLESS), pull(-1)].concat()).await;
    while server.memory().await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client.send(&message(RESET, &[])).await;
    assert_eq!(client.failure().await, "Neo.TransientError.Transaction.Terminated");
    client.ignored().await;
    client.success().await;
    assert_eq!(client.rows("RETURN 1").await.0.len(), 1);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_with_its_connection() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&[run(ENDLESS), pull(-1)].concat()).await;
    while server.memory().await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(client);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_and_a_transaction_end_at_the_time_limit_of_their_client() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let extra = map(&[("tx_timeout", 50_i64.into())]);
    client.send(&message(RUN, &[ENDLESS.into(), map(&[]), extra.clone()])).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Transaction.TransactionTimedOut");
    client.succeeds(RESET, &[]).await;
    client.succeeds(BEGIN, &[extra]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.send(&run("CREATE (:P)")).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Transaction.TransactionTimedOut");
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_leaves_open_ends_by_itself() {
    let paused = session::Limits { idle: NEVER, paused: Duration::from_millis(100) };
    let server = Server::start(server::Limits { sessions: paused, ..WIDE }, None).await;
    let mut client = server.client().await;
    client.succeeds(BEGIN, &[map(&[])]).await;
    client.is_closed().await;
    let mut client = server.client().await;
    client.send(&run("UNWIND range(1, 100) AS n RETURN n")).await;
    client.success().await;
    client.is_closed().await;
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_logs_off_may_log_on_again_and_does_not_keep_its_place() {
    let sessions = session::Limits { idle: Duration::from_millis(100), paused: NEVER };
    let server = Server::start(server::Limits { sessions, ..WIDE }, None).await;
    let mut client = server.greeted([0, 0, 8, 5]).await;
    let logon = message(LOGON, &[map(&[("scheme", "none".into())])]);
    let logoff = message(LOGOFF, &[]);
    // At once, so that the client is never idle in between.
    client.send(&[&message(HELLO, &[map(&[])])[..], &logon, &logoff, &logon, &logoff].concat()).await;
    for _ in 0..5 {
        client.success().await;
    }
    client.is_closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_come_in_is_closed() {
    let server = Server::start(server::Limits { head: Duration::from_millis(200), ..WIDE }, None).await;
    let greeting = [&[0x60, 0x60, 0xB0, 0x17, 0, 0, 8, 5][..], &[0; 12]].concat();
    let hello = [&greeting[..], &message(HELLO, &[map(&[])])].concat();
    for sent in [&greeting[..2], &greeting, &hello] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        // On a busy machine the limit may pass before the bytes are written.
        let _ = socket.write_all(sent).await;
        let _ = timeout(PATIENCE, socket.read_to_end(&mut vec![])).await.expect("the server closes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_makes_room_for_another_connection() {
    let server = Server::start(server::Limits { connections: 2, ..WIDE }, None).await;
    let mut first = server.client().await;
    let mut second = server.client().await;
    second.succeeds(BEGIN, &[map(&[])]).await;
    let mut third = server.client().await;
    first.is_closed().await;
    // An open transaction is not closed for another connection.
    second.succeeds(COMMIT, &[]).await;
    assert_eq!(third.rows("RETURN 1").await.0.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_is_the_token() {
    let server = Server::start(WIDE, Some("a token of the service")).await;
    let auth = |password: &str| {
        map(&[("scheme", "basic".into()), ("principal", "any".into()), ("credentials", password.into())])
    };
    for wrong in [auth("another"), auth(""), map(&[("scheme", "none".into())]), map(&[])] {
        let mut client = server.greeted([0, 0, 8, 5]).await;
        client.succeeds(HELLO, &[map(&[])]).await;
        client.send(&message(LOGON, &[wrong])).await;
        assert_eq!(client.failure().await, "Neo.ClientError.Security.Unauthorized");
        client.is_closed().await;
    }
    let mut client = server.greeted([0, 0, 8, 5]).await;
    client.succeeds(HELLO, &[map(&[])]).await;
    // Nothing is answered before.
    client.send(&run("RETURN 1")).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Request.Invalid");
    client.is_closed().await;
    let mut client = server.greeted([0, 0, 8, 5]).await;
    client.succeeds(HELLO, &[map(&[])]).await;
    client.succeeds(LOGON, &[auth("a token of the service")]).await;
    assert_eq!(client.rows("RETURN 1").await.0.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_transactions_and_wrong_passwords_are_counted() {
    let server = Server::start(WIDE, Some("a token of drivers")).await;
    let metrics = async || {
        let mut http = TcpStream::connect(server.address).await.unwrap();
        http.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, http.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    let becomes = async |line: &str| {
        let found = async {
            while !metrics().await.lines().any(|found| found == line) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(timeout(PATIENCE, found).await.is_ok(), "{line} not in {}", metrics().await);
    };
    let login = |password: &str| map(&[("scheme", "basic".into()), ("credentials", Value::from(password))]);
    let mut wrong = server.greeted([0, 0, 8, 5]).await;
    wrong.succeeds(HELLO, &[map(&[])]).await;
    wrong.send(&message(LOGON, &[login("a guess")])).await;
    wrong.failure().await;
    becomes("tidegraph_authentication_failures_total{protocol=\"bolt\"} 1").await;
    let mut client = server.greeted([0, 0, 8, 5]).await;
    client.succeeds(HELLO, &[map(&[])]).await;
    client.succeeds(LOGON, &[login("a token of drivers")]).await;
    becomes("tidegraph_connections{protocol=\"bolt\"} 1").await;
    becomes("tidegraph_connections{protocol=\"http/1.1\"} 1").await;
    for ends in [COMMIT, ROLLBACK] {
        client.succeeds(BEGIN, &[map(&[])]).await;
        becomes("tidegraph_transactions{protocol=\"bolt\"} 1").await;
        client.succeeds(ends, &[]).await;
    }
    client.succeeds(BEGIN, &[map(&[])]).await;
    drop(client);
    for outcome in ["committed", "rolled_back", "failed"] {
        let labels = format!("{{protocol=\"bolt\",outcome=\"{outcome}\"}}");
        becomes(&format!("tidegraph_transactions_ended_total{labels} 1")).await;
    }
    becomes("tidegraph_transactions{protocol=\"bolt\"} 0").await;
    becomes("tidegraph_connections{protocol=\"bolt\"} 0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_clients_speak_4_4() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.greeted([0, 0, 4, 4]).await;
    let hello = map(&[("scheme", "none".into()), ("patch_bolt", Value::list(vec!["utc".into()]))]);
    let head = client.succeeds(HELLO, &[hello]).await;
    assert_eq!(field(&head, "patch_bolt"), &Value::list(vec!["utc".into()]));
    assert_eq!(client.rows("RETURN 1").await.0.len(), 1);
    client.send(&run("RETURN")).await;
    let (tag, metadata) = client.receive().await.unwrap();
    assert_eq!((tag, field(&metadata, "neo4j_code")), (FAILURE, &Value::Null));
    assert_eq!(field(&metadata, "code"), &Value::from("Neo.ClientError.Statement.SyntaxError"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_routes_is_sent_where_it_came_from() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let routing = map(&[("address", "graph.example:8182".into())]);
    let fields = [routing, Value::list(vec![]), map(&[("db", "neo4j".into())])];
    let table = client.succeeds(ROUTE, &fields).await;
    let servers = field(field(&table, "rt"), "servers").as_slice().unwrap().to_vec();
    let roles: Vec<_> = servers.iter().map(|server| field(server, "role").as_str().unwrap()).collect();
    assert_eq!(roles, ["ROUTE", "READ", "WRITE"]);
    for server in &servers {
        assert_eq!(field(server, "addresses"), &Value::list(vec!["graph.example:8182".into()]));
    }
    let elsewhere = map(&[("db", "other".into())]);
    client.send(&message(RUN, &["RETURN 1".into(), map(&[]), elsewhere])).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Database.DatabaseNotFound");
}
