//! Neptune's `/propertygraph/stream`, over HTTP.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use std::io::Read;
use tidegraph_engine::{Database, Options};
use tidegraph_query::authentication::Authentication;
use tidegraph_query::http;
use tower::ServiceExt;

fn service(streams: bool) -> Router {
    let database = Database::open(Options { streams, ..Options::default() }).unwrap();
    http::Service::new(database, http::Limits::default()).guarded_router(Authentication::Off)
}

async fn send(router: &Router, request: Request<Body>) -> (u16, HeaderMap, Vec<u8>) {
    let answer = router.clone().oneshot(request).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, to_bytes(answer.into_body(), usize::MAX).await.unwrap().to_vec())
}

async fn get(router: &Router, path: &str) -> (u16, Value) {
    let (status, _, body) = send(router, Request::get(path).body(Body::empty()).unwrap()).await;
    (status, serde_json::from_slice(&body).unwrap())
}

async fn write(router: &Router, query: &str) {
    let request = Request::post("/openCypher").header("content-type", "application/json");
    let request = request.body(Body::from(json!({ "query": query }).to_string())).unwrap();
    let (status, _, body) = send(router, request).await;
    assert_eq!(status, 200, "{query}: {}", String::from_utf8_lossy(&body));
}

#[tokio::test]
async fn records_have_the_shape_of_pg_json() {
    let router = service(true);
    write(
        &router,
        "CREATE (:A {`~id`: 'a', i: 7, d: 0.5, t: true, s: 'x'})-[:R {`~id`: 'e', w: 1}]->({`~id`: 'b'})",
    )
    .await;
    write(&router, "MATCH (a:A) SET a.i = 8").await;
    let (status, answer) = get(&router, "/propertygraph/stream?iteratorType=TRIM_HORIZON&limit=100").await;
    assert_eq!(status, 200, "{answer}");
    let records = answer["records"].as_array().unwrap();
    assert_eq!((answer["format"].as_str(), answer["totalRecords"].as_u64()), (Some("PG_JSON"), Some(10)));
    let data: Vec<Value> = records.iter().map(|record| json!([record["op"], record["data"]])).collect();
    let value = |value: Value, kind: &str| json!({ "value": value, "dataType": kind });
    let part = |op: &str, id: &str, kind: &str, key: &str, value: Value| json!([op, { "id": id, "type": kind, "key": key, "value": value }]);
    let expected = [
        part("ADD", "a", "vl", "label", value(json!("A"), "String")),
        part("ADD", "a", "vp", "i", value(json!(7), "Long")),
        part("ADD", "a", "vp", "d", value(json!(0.5), "Double")),
        part("ADD", "a", "vp", "t", value(json!(true), "Boolean")),
        part("ADD", "a", "vp", "s", value(json!("x"), "String")),
        part("ADD", "b", "vl", "label", value(json!("vertex"), "String")),
        json!(["ADD", { "id": "e", "type": "e", "key": "label", "value": value(json!("R"), "String"), "from": "a", "to": "b" }]),
        part("ADD", "e", "ep", "w", value(json!(1), "Long")),
        part("REMOVE", "a", "vp", "i", value(json!(7), "Long")),
        part("ADD", "a", "vp", "i", value(json!(8), "Long")),
    ];
    assert_eq!(data, expected);
    // Numbers of operations begin with 1 in each commit, and the last one is marked.
    let events: Vec<(u64, bool)> = records
        .iter()
        .map(|record| (record["eventId"]["opNum"].as_u64().unwrap(), record["isLastOp"] == json!(true)))
        .collect();
    let first: Vec<(u64, bool)> = (1..=8).map(|op| (op, op == 8)).collect();
    assert_eq!(events, [first, vec![(1, false), (2, true)]].concat());
    assert!(records[0].get("isLastOp").is_none());
    assert_eq!(answer["lastEventId"], records[9]["eventId"]);
    assert_eq!(answer["lastTrxTimestamp"], records[9]["commitTimestamp"]);
    assert!(records[0]["commitTimestamp"].as_i64().unwrap() > 1_600_000_000_000);
}

#[tokio::test]
async fn a_poller_reads_on_after_the_last_event_on_each_path() {
    let router = service(true);
    write(&router, "UNWIND range(1, 25) AS i CREATE ({`~id`: 'n' + toString(i)})").await;
    for path in ["/propertygraph/stream", "/pg/stream/", "/gremlin/stream"] {
        let mut ids = Vec::new();
        let mut query = "iteratorType=TRIM_HORIZON".to_owned();
        let last = loop {
            let (status, answer) = get(&router, &format!("{path}?{query}")).await;
            if status != 200 {
                break answer;
            }
            let records = answer["records"].as_array().unwrap();
            assert!(records.len() <= 10, "the limit is 10 unless it is set");
            ids.extend(records.iter().map(|record| record["data"]["id"].as_str().unwrap().to_owned()));
            let (commit, op) = (&answer["lastEventId"]["commitNum"], &answer["lastEventId"]["opNum"]);
            query = format!("iteratorType=AFTER_SEQUENCE_NUMBER&commitNum={commit}&opNum={op}");
        };
        assert_eq!(ids, (1..=25).map(|i| format!("n{i}")).collect::<Vec<_>>());
        assert_eq!(last["code"], "StreamRecordsNotFoundException");
    }
    let (_, latest) = get(&router, "/pg/stream?iteratorType=LATEST&limit=10").await;
    assert_eq!(
        (latest["totalRecords"].as_u64(), &latest["records"][0]["data"]["id"]),
        (Some(1), &json!("n25"))
    );
    // Without a type it is AT_SEQUENCE_NUMBER, without a number of an operation the first one.
    let commit = &latest["lastEventId"]["commitNum"];
    let (_, first) = get(&router, &format!("/pg/stream?commitNum={commit}&limit=1")).await;
    assert_eq!(first["records"][0]["data"]["id"], "n1");
}

#[tokio::test]
async fn a_long_answer_is_compressed_for_a_client_that_accepts_gzip() {
    let router = service(true);
    write(&router, "UNWIND range(1, 2000) AS i CREATE ({`~id`: 'n' + toString(i)})").await;
    let request = Request::get("/propertygraph/stream?iteratorType=TRIM_HORIZON&limit=100000");
    let request = request.header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    let (status, headers, body) = send(&router, request).await;
    assert_eq!((status, headers["content-encoding"].as_bytes()), (200, &b"gzip"[..]));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["totalRecords"], 2000);
    assert_eq!(answer["lastEventId"]["opNum"], 2000);
}

#[tokio::test]
async fn wrong_requests_are_refused_by_name() {
    let router = service(true);
    write(&router, "CREATE (:A)").await;
    for (query, word) in [
        ("iteratorType=TRIM_HORIZON&limit=0", "limit"),
        ("iteratorType=TRIM_HORIZON&limit=100001", "100001"),
        ("iteratorType=TRIM_HORIZON&limit=x", "limit"),
        ("iteratorType=OLDEST", "OLDEST"),
        ("", "commitNum"),
        ("iteratorType=AFTER_SEQUENCE_NUMBER", "commitNum"),
        ("commitNum=-1", "commitNum"),
        ("commitNum=1&opNum=99999999999999999999", "opNum"),
    ] {
        let (status, answer) = get(&router, &format!("/propertygraph/stream?{query}")).await;
        assert_eq!(
            (status, &answer["code"]),
            (400, &json!("InvalidParameterException")),
            "{query}: {answer}"
        );
        assert!(answer["detailedMessage"].as_str().unwrap().contains(word), "{query}: {answer}");
    }
    let most = u64::MAX;
    for kind in ["AT", "AFTER"] {
        let query = format!("iteratorType={kind}_SEQUENCE_NUMBER&commitNum={most}&opNum={most}");
        let (status, answer) = get(&router, &format!("/propertygraph/stream?{query}")).await;
        assert_eq!((status, &answer["code"]), (404, &json!("StreamRecordsNotFoundException")), "{answer}");
    }
    let post = Request::post("/propertygraph/stream").body(Body::empty()).unwrap();
    assert_eq!(send(&router, post).await.0, 405);
    let (status, answer) = get(&service(false), "/propertygraph/stream?iteratorType=LATEST").await;
    assert_eq!((status, &answer["code"]), (400, &json!("UnsupportedOperationException")));
    assert!(answer["detailedMessage"].as_str().unwrap().contains("--streams"));
}

#[tokio::test]
async fn a_fast_reset_expires_what_was_before_it() {
    let router = service(true);
    write(&router, "CREATE (:A)").await;
    let (_, before) = get(&router, "/pg/stream?iteratorType=LATEST").await;
    let form = |body: String| {
        let request = Request::post("/system").header("content-type", "application/x-www-form-urlencoded");
        request.body(Body::from(body)).unwrap()
    };
    let (_, _, token) = send(&router, form("action=initiateDatabaseReset".to_owned())).await;
    let token: Value = serde_json::from_slice(&token).unwrap();
    let token = token["payload"]["token"].as_str().unwrap();
    let (status, ..) = send(&router, form(format!("action=performDatabaseReset&token={token}"))).await;
    assert_eq!(status, 200);
    let commit = &before["lastEventId"]["commitNum"];
    let (status, answer) =
        get(&router, &format!("/pg/stream?iteratorType=AFTER_SEQUENCE_NUMBER&commitNum={commit}&opNum=1"))
            .await;
    assert_eq!((status, &answer["code"]), (400, &json!("ExpiredStreamException")), "{answer}");
}
