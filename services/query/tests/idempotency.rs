//! Writes that are repeated under an `Idempotency-Key`, over HTTP.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use tidegraph_engine::{Database, Options};
use tidegraph_query::http;
use tower::ServiceExt;

async fn ask(router: &Router, path: &str, headers: &[(&str, &str)], body: Value) -> (u16, HeaderMap, Value) {
    let mut request = Request::post(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, headers, serde_json::from_slice(&body).unwrap())
}

fn service() -> Router {
    let database = Database::open(Options::default()).unwrap();
    http::Service::new(database, http::Limits::default()).router()
}

async fn count(router: &Router) -> Value {
    let query = json!({ "query": "MATCH (n:N) RETURN count(n) AS n" });
    // A read ignores the key.
    let (status, headers, body) = ask(router, "/openCypher", &[("idempotency-key", "k")], query).await;
    assert!(status == 200 && headers.get("idempotent-replayed").is_none(), "{body}");
    body["results"][0]["n"].clone()
}

#[tokio::test]
async fn a_repeated_write_is_answered_without_rows_and_says_so() {
    let router = service();
    let headers = [("idempotency-key", "k"), ("tidegraph-version", "0")];
    let create =
        |i: i64| json!({ "query": "CREATE (n:N {i: $i}) RETURN n.i AS i", "parameters": { "i": i } });
    let (status, first, body) = ask(&router, "/openCypher", &headers, create(1)).await;
    assert_eq!((status, &body["results"]), (200, &json!([{ "i": 1 }])));
    assert!(first.get("idempotent-replayed").is_none());
    let (status, again, body) = ask(&router, "/openCypher", &headers, create(1)).await;
    assert_eq!((status, &body["results"]), (200, &json!([])));
    assert_eq!(again["idempotent-replayed"], "true");
    assert_eq!(again["tidegraph-version"], first["tidegraph-version"]);
    let (status, _, body) = ask(&router, "/openCypher", &headers, create(2)).await;
    assert_eq!((status, &body["code"]), (422, &json!("IdempotencyKeyReusedException")));
    // The text of another language is another request too.
    let add = json!({ "gremlin": "g.addV('N')" });
    let (status, ..) = ask(&router, "/gremlin", &headers, add.clone()).await;
    assert_eq!(status, 422);
    assert_eq!(count(&router).await, 1);
    let headers = [("idempotency-key", "l"), ("tidegraph-version", "0")];
    for repeated in [false, true] {
        let (status, found, body) = ask(&router, "/gremlin", &headers, add.clone()).await;
        let rows = body["result"]["data"]["@value"].as_array().unwrap();
        assert_eq!((status, rows.is_empty()), (200, repeated), "{body}");
        assert_eq!(found.get("idempotent-replayed").is_some(), repeated);
    }
    assert_eq!(count(&router).await, 2);
}

#[tokio::test]
async fn a_wrong_key_is_refused_by_its_name() {
    let router = service();
    let long = "k".repeat(256);
    let body = json!({ "query": "CREATE (:N)" });
    for (headers, code) in [
        (vec![("idempotency-key", ""), ("tidegraph-version", "0")], "InvalidParameterException"),
        (vec![("idempotency-key", "a b"), ("tidegraph-version", "0")], "InvalidParameterException"),
        (vec![("idempotency-key", long.as_str()), ("tidegraph-version", "0")], "InvalidParameterException"),
        (vec![("idempotency-key", "a"), ("idempotency-key", "b")], "InvalidParameterException"),
    ] {
        let (status, _, answer) = ask(&router, "/openCypher", &headers, body.clone()).await;
        assert_eq!((status, answer["code"].as_str()), (400, Some(code)), "{headers:?}");
        let message = answer["detailedMessage"].as_str().unwrap().to_lowercase();
        assert!(message.contains("idempotency") && message.contains("key"), "{message}");
    }
    assert_eq!(count(&router).await, 0);
}
