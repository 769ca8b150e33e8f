//! Transactions of several requests: their rows, their limits and their end.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_committed_whole_or_not_at_all() {
    let server = Server::start(WIDE, None).await;
    let (mut writer, mut reader) = (server.client().await, server.client().await);
    let count = "MATCH (p:P) RETURN count(p)";
    let counted = |n: i64| vec![row(&[Value::Long(n)])];

    writer.succeeds(BEGIN, &[map(&[])]).await;
    let (_, summary) = writer.rows("CREATE (:P)").await;
    assert_eq!(field(&summary, "bookmark"), &Value::Null);
    let (_, summary) = writer.rows("CREATE (:P), (:P)").await;
    assert_eq!(field(field(&summary, "stats"), "nodes-created"), &Value::Long(2));
    assert_eq!(writer.rows(count).await.0, counted(3));
    assert_eq!(reader.rows(count).await.0, counted(0));
    let committed = writer.succeeds(COMMIT, &[]).await;
    let extra = map(&[("bookmarks", Value::list(vec![field(&committed, "bookmark").clone()]))]);
    reader.succeeds(RUN, &[count.into(), map(&[]), extra]).await;
    reader.send(&pull(-1)).await;
    assert_eq!(reader.records().await.0, counted(3));

    writer.succeeds(BEGIN, &[map(&[])]).await;
    writer.rows("MATCH (p:P) DELETE p").await;
    writer.succeeds(ROLLBACK, &[]).await;
    assert_eq!(writer.rows(count).await.0, counted(3));

    // A failure ends the transaction.
    writer.succeeds(BEGIN, &[map(&[])]).await;
    writer.rows("CREATE (:P)").await;
    writer.send(&[run("RETURN 1 +"), message(COMMIT, &[])].concat()).await;
    writer.failure().await;
    writer.ignored().await;
    writer.succeeds(RESET, &[]).await;
    assert_eq!(writer.rows(count).await.0, counted(3));
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_answers_of_a_transaction_are_open_at_once() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.succeeds(BEGIN, &[map(&[("mode", "r".into())])]).await;
    let mut open = vec![];
    for from in [1, 11] {
        let text = format!("UNWIND range({from}, {from} + 4) AS n RETURN n");
        let head = client.succeeds(RUN, &[text.as_str().into(), map(&[]), map(&[])]).await;
        open.push(field(&head, "qid").clone());
    }
    let part = |n: i64, answer: &Value| message(PULL, &[map(&[("n", n.into()), ("qid", answer.clone())])]);
    client.send(&part(2, &open[0])).await;
    assert_eq!(client.records().await.0, [1, 2].map(|n| row(&[Value::Long(n)])));
    client.send(&pull(1)).await;
    assert_eq!(client.records().await.0, [row(&[Value::Long(11)])]);
    client.send(&part(-1, &open[0])).await;
    assert_eq!(client.records().await.0, [3, 4, 5].map(|n| row(&[Value::Long(n)])));
    // The transaction may only read.
    client.send(&run("CREATE (:P)")).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Statement.AccessMode");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_a_transaction_come_while_the_query_runs() {
    let server = Server::with_memory(16 << 20, WIDE, None).await;
    let mut client = server.client().await;
    let discard = message(DISCARD, &[map(&[("n", (-1_i64).into())])]);
    for ends in [Some(discard), None] {
        client.succeeds(BEGIN, &[map(&[("mode", "r".into())])]).await;
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
        // The transaction goes on without the rows that nobody wants, and its commit ends a query.
        if let Some(ends) = ends {
            client.send(&ends).await;
            assert_eq!(field(&client.success().await, "has_more"), &Value::Null);
            assert_eq!(client.rows("RETURN 7").await.0, [row(&[Value::Long(7)])]);
        }
        client.succeeds(COMMIT, &[]).await;
        server.becomes_free().await;
    }
    for ends in [ROLLBACK, RESET] {
        client.succeeds(BEGIN, &[map(&[])]).await;
        client.send(&[run(MANY), pull(10)].concat()).await;
        client.success().await;
        client.records().await;
        client.succeeds(ends, &[]).await;
        server.becomes_free().await;
    }
    // All at once, until the connection is gone.
    client.succeeds(BEGIN, &[map(&[])]).await;
    client.send(&[run(MANY), pull(-1)].concat()).await;
    client.success().await;
    for _ in 0..100_000 {
        assert_eq!(client.receive().await.unwrap().0, RECORD);
    }
    drop(client);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_records_of_a_transaction_need_little_memory() {
    let options = Options { query_memory_bytes: 32 << 20, ..Options::default() };
    let server = Server::of(options, 48 << 20, WIDE, None).await;
    let mut client = server.client().await;
    client.succeeds(BEGIN, &[map(&[("mode", "r".into())])]).await;
    client.send(&run("UNWIND range(1, 1000000) AS n RETURN n, toString(n), [n, n]")).await;
    client.success().await;
    let (mut count, mut goes_on) = (0, true);
    while goes_on {
        client.send(&pull(1_000)).await;
        let (rows, more) = client.records().await;
        count += rows.len();
        goes_on = field(&more, "has_more") == &Value::Bool(true);
    }
    assert_eq!(count, 1_000_000);
    client.succeeds(COMMIT, &[]).await;
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_the_first_records_ends_the_transaction() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.succeeds(BEGIN, &[map(&[])]).await;
    client.rows("CREATE (:P)").await;
    client.send(&[run("UNWIND range(1, 100000) AS i RETURN 1 / (90000 - i)"), pull(10)].concat()).await;
    client.success().await;
    assert_eq!(client.records().await.0.len(), 10);
    client.send(&[pull(-1), message(COMMIT, &[])].concat()).await;
    let code = loop {
        match client.receive().await.unwrap() {
            (RECORD, _) => {}
            (FAILURE, metadata) => break field(&metadata, "neo4j_code").clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, Value::from("Neo.ClientError.Statement.TypeError"));
    client.ignored().await;
    client.succeeds(RESET, &[]).await;
    assert_eq!(client.rows("MATCH (p:P) RETURN count(p)").await.0, [row(&[Value::Long(0)])]);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_a_transaction_waits_for_the_one_before() {
    let options = Options { query_memory_bytes: 4 << 20, ..Options::default() };
    let server = Server::of(options, 256 << 20, WIDE, None).await;
    let mut client = server.client().await;
    client.succeeds(BEGIN, &[map(&[])]).await;
    let head =
        client.succeeds(RUN, &["UNWIND range(1, 100000) AS n RETURN n".into(), map(&[]), map(&[])]).await;
    let first = field(&head, "qid").clone();
    client.send(&pull(10)).await;
    assert_eq!(client.records().await.0.len(), 10);
    // For each row another query, as programs do it.
    for n in 1..=3 {
        let text = format!("CREATE (p:P {{n: {n}}}) RETURN p.n");
        assert_eq!(client.rows(&text).await.0, [row(&[Value::Long(n)])]);
    }
    client.send(&message(PULL, &[map(&[("n", 90_i64.into()), ("qid", first.clone())])])).await;
    let (rows, more) = client.records().await;
    assert_eq!((&rows[0], field(&more, "has_more")), (&row(&[Value::Long(11)]), &Value::Bool(true)));
    client.send(&message(PULL, &[map(&[("n", (-1_i64).into()), ("qid", first)])])).await;
    let (rows, _) = client.records().await;
    assert_eq!((rows.len(), rows.last()), (99_900, Some(&row(&[Value::Long(100_000)]))));
    // What is kept of an answer has the limit of a query.
    client.send(&run(MANY)).await;
    client.success().await;
    client.send(&run("RETURN 1")).await;
    assert_eq!(client.failure().await, "Neo.ClientError.General.TransactionOutOfMemoryError");
    client.succeeds(RESET, &[]).await;
    assert_eq!(client.rows("MATCH (p:P) RETURN count(p)").await.0, [row(&[Value::Long(0)])]);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_write_come_when_all_of_it_is_written() {
    let server = Server::start(WIDE, None).await;
    let (mut client, mut other) = (server.client().await, server.client().await);
    client.succeeds(BEGIN, &[map(&[])]).await;
    client
        .send(&[run("UNWIND range(1, 20000) AS i CREATE (p:P {i: i}) RETURN p.i"), pull(100)].concat())
        .await;
    client.success().await;
    assert_eq!(client.records().await.0.len(), 100);
    client.send(&message(DISCARD, &[map(&[("n", (-1_i64).into())])])).await;
    let summary = client.success().await;
    assert_eq!(field(&summary, "type"), &Value::from("rw"));
    assert_eq!(field(field(&summary, "stats"), "nodes-created"), &Value::Long(20_000));
    let count = "MATCH (p:P) RETURN count(p)";
    assert_eq!(client.rows(count).await.0, [row(&[Value::Long(20_000)])]);
    assert_eq!(other.rows(count).await.0, [row(&[Value::Long(0)])]);
    client.succeeds(COMMIT, &[]).await;
    assert_eq!(other.rows(count).await.0, [row(&[Value::Long(20_000)])]);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_conflict_can_be_tried_again() {
    let server = Server::start(WIDE, None).await;
    let (mut one, mut other) = (server.client().await, server.client().await);
    one.rows("CREATE (:Counter {n: 0})").await;
    let add = "MATCH (c:Counter) SET c.n = c.n + 1 RETURN c.n";
    for client in [&mut one, &mut other] {
        client.succeeds(BEGIN, &[map(&[])]).await;
        assert_eq!(client.rows(add).await.0, [row(&[Value::Long(1)])]);
    }
    one.succeeds(COMMIT, &[]).await;
    other.send(&message(COMMIT, &[])).await;
    assert_eq!(other.failure().await, "Neo.TransientError.Transaction.Outdated");
    other.succeeds(RESET, &[]).await;
    other.succeeds(BEGIN, &[map(&[])]).await;
    assert_eq!(other.rows(add).await.0, [row(&[Value::Long(2)])]);
    other.succeeds(COMMIT, &[]).await;
}
