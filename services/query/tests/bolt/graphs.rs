//! Graphs as databases of Bolt.

use super::client::*;
use tidegraph_engine::{Database, Options};
use tidegraph_query::authentication::Authentication;
use tidegraph_query::http::{Graphs, Limits};
use tidegraph_query::server::Protocols;
use tidegraph_types::Value;

async fn of_graphs(open: &[&str]) -> (Server, Graphs) {
    let names = ["orders", "people", "later"].map(str::to_owned);
    let graphs = Graphs::new(&names, Limits::default(), Authentication::Off, None).unwrap();
    for name in open {
        graphs.open(name, Database::open(Options::default()).unwrap());
    }
    let protocols = Protocols { http: graphs.router(), sessions: Some(graphs.sessions()), tls: None };
    (Server::speaking(protocols, WIDE).await, graphs)
}

fn within(database: &str) -> Value {
    map(&[("db", database.into())])
}

impl Client {
    /// Runs a query in a database, and returns the number in its row and the database of the summary.
    async fn number_in(&mut self, database: &str, text: &str) -> (i64, String) {
        self.send(&[message(RUN, &[text.into(), map(&[]), within(database)]), pull(-1)].concat()).await;
        self.success().await;
        let (rows, summary) = self.records().await;
        let Some(Value::Long(number)) = rows[0].as_slice().and_then(|row| row.first()) else {
            panic!("{rows:?}")
        };
        (*number, field(&summary, "db").as_str().unwrap().to_owned())
    }

    async fn count_in(&mut self, database: &str) -> i64 {
        self.number_in(database, "MATCH (n) RETURN count(n)").await.0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_graph_is_a_database() {
    let (server, _graphs) = of_graphs(&["orders", "people"]).await;
    let mut client = server.client().await;
    let create = |n: i64| format!("UNWIND range(1, {n}) AS i CREATE (v) RETURN count(v)");
    assert_eq!(client.number_in("people", &create(3)).await, (3, "people".to_owned()));
    // The first graph is the default, under the name that drivers know and under its own.
    assert_eq!(client.number_in("neo4j", &create(2)).await, (2, "neo4j".to_owned()));
    assert_eq!(client.number_in("orders", &create(2)).await, (2, "orders".to_owned()));
    assert_eq!(client.rows("MATCH (n) RETURN count(n)").await.0, [Value::list(vec![4.into()])]);
    assert_eq!((client.count_in("people").await, client.count_in("orders").await), (3, 4));

    // A transaction stays in the graph in which it began.
    client.succeeds(BEGIN, &[within("people")]).await;
    client.rows("CREATE ()").await;
    client.succeeds(COMMIT, &[]).await;
    assert_eq!((client.count_in("people").await, client.count_in("neo4j").await), (4, 4));
    client.succeeds(BEGIN, &[within("people")]).await;
    client.send(&message(RUN, &["CREATE ()".into(), map(&[]), within("orders")])).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Request.Invalid");
    client.succeeds(RESET, &[]).await;
    assert_eq!((client.count_in("people").await, client.count_in("orders").await), (4, 4));
    let routing = map(&[("address", "graph.example:8182".into())]);
    let table = client.succeeds(ROUTE, &[routing, Value::list(vec![]), within("people")]).await;
    assert_eq!(field(field(&table, "rt"), "db"), &Value::from("people"));
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_that_are_not_there_are_refused_by_their_name() {
    let (server, graphs) = of_graphs(&["people"]).await;
    // A client is let in while the default graph is not open.
    let mut client = server.client().await;
    assert_eq!(client.count_in("people").await, 0);
    for (database, code) in [
        ("nobody", "Neo.ClientError.Database.DatabaseNotFound"),
        ("People", "Neo.ClientError.Database.DatabaseNotFound"),
        ("../people", "Neo.ClientError.Database.DatabaseNotFound"),
        ("later", "Neo.TransientError.General.DatabaseUnavailable"),
        ("neo4j", "Neo.TransientError.General.DatabaseUnavailable"),
        ("", "Neo.TransientError.General.DatabaseUnavailable"),
    ] {
        client.send(&message(RUN, &["RETURN 1".into(), map(&[]), within(database)])).await;
        assert_eq!(client.failure().await, code, "{database}");
        client.succeeds(RESET, &[]).await;
        client.send(&message(BEGIN, &[within(database)])).await;
        assert_eq!(client.failure().await, code, "{database}");
        client.succeeds(RESET, &[]).await;
    }
    graphs.open("later", Database::open(Options::default()).unwrap());
    assert_eq!(client.count_in("later").await, 0);
    graphs.close("later");
    client.send(&message(RUN, &["RETURN 1".into(), map(&[]), within("later")])).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Database.DatabaseNotFound");
}
