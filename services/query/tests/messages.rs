//! Messages of Gremlin's drivers in bodies of HTTP requests.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tidegraph_engine::{Database, Language, Options, Parameters, Query};
use tidegraph_query::http;
use tower::ServiceExt;

const ID: &str = "00000000-0000-0000-0000-000000000007";
const BINARY: &str = "application/vnd.graphbinary-v1.0";
const GRAPHSON: &str = "application/vnd.gremlin-v3.0+json";

fn service() -> Router {
    let database = Database::open(Options::default()).unwrap();
    http::Service::new(database, http::Limits::default()).router()
}

/// Sends a body to `/gremlin`, and returns the status, the type and the bytes of the answer.
async fn ask(
    router: &Router,
    content_type: &str,
    accept: Option<&str>,
    body: Vec<u8>,
) -> (u16, String, Vec<u8>) {
    let mut request = Request::post("/gremlin").header(header::CONTENT_TYPE, content_type);
    if let Some(accept) = accept {
        request = request.header(header::ACCEPT, accept);
    }
    let answer = router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let kind = answer.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    (status, kind, to_bytes(answer.into_body(), usize::MAX).await.unwrap().to_vec())
}

/// Sends a body that is refused, and returns the status and the body of the refusal.
async fn refusal(router: &Router, content_type: &str, body: Vec<u8>) -> (u16, Value) {
    let (status, kind, body) = ask(router, content_type, None, body).await;
    assert_eq!(kind, "application/json", "{}", String::from_utf8_lossy(&body));
    (status, serde_json::from_slice(&body).unwrap())
}

fn text(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
}

fn typed(value: &str) -> Vec<u8> {
    [&[3, 0][..], &text(value)].concat()
}

/// A request of GraphBinary, without the name of its format.
fn binary(op: &str, processor: &str, arguments: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0x81];
    bytes.extend(ID.parse::<uuid::Uuid>().unwrap().as_bytes());
    bytes.extend(text(op));
    bytes.extend(text(processor));
    bytes.extend(u32::try_from(arguments.len()).unwrap().to_be_bytes());
    for (name, value) in arguments {
        bytes.extend(typed(name));
        bytes.extend(value);
    }
    bytes
}

/// Bytecode of steps without arguments.
fn bytecode(steps: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0x15, 0];
    bytes.extend(u32::try_from(steps.len()).unwrap().to_be_bytes());
    for step in steps {
        bytes.extend(text(step));
        bytes.extend([0; 4]);
    }
    bytes.extend([0; 4]);
    bytes
}

/// Begins a body as drivers do.
fn named(format: &str, body: &[u8]) -> Vec<u8> {
    [&[u8::try_from(format.len()).unwrap()], format.as_bytes(), body].concat()
}

/// Returns the code of an answer in GraphBinary and the bytes of its values.
fn answer(bytes: &[u8]) -> (u32, Vec<u8>) {
    assert_eq!((bytes[0], bytes[1]), (0x81, 0));
    assert_eq!(&bytes[2..18], ID.parse::<uuid::Uuid>().unwrap().as_bytes());
    let code = u32::from_be_bytes(bytes[18..22].try_into().unwrap());
    // No message, no attributes, no facts about the answer.
    assert_eq!(bytes[22..31], [1, 0, 0, 0, 0, 0, 0, 0, 0]);
    (code, bytes[31..].to_vec())
}

#[tokio::test]
async fn scripts_and_bytecode_in_graphbinary_are_answered_in_graphbinary() {
    let router = service();
    let bindings = [&[0x0A, 0, 0, 0, 0, 1][..], &typed("x"), &[1, 0, 0, 0, 0, 5]].concat();
    let script = binary("eval", "", &[("gremlin", typed("g.inject(x)")), ("bindings", bindings)]);
    let five = [9, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 5];
    for body in [script.clone(), named(BINARY, &script)] {
        for accept in [None, Some("*/*"), Some(BINARY)] {
            let (status, kind, bytes) = ask(&router, BINARY, accept, body.clone()).await;
            assert_eq!((status, kind.as_str()), (200, BINARY), "{}", String::from_utf8_lossy(&bytes));
            assert_eq!(answer(&bytes), (200, five.to_vec()));
        }
    }
    let (status, kind, bytes) = ask(&router, BINARY, Some("application/json"), script).await;
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((status, kind.as_str(), &json["requestId"]), (200, GRAPHSON, &json!(ID)));
    // Who sends steps wants traversers.
    let steps = binary("bytecode", "traversal", &[("gremlin", bytecode(&["V", "count"]))]);
    let (_, _, bytes) = ask(&router, BINARY, None, named(BINARY, &steps)).await;
    let traverser = [&[9, 0, 0, 0, 0, 1, 0x21, 0][..], &1_u64.to_be_bytes(), &[2, 0], &[0; 8]].concat();
    assert_eq!(answer(&bytes), (200, traverser));
}

/// Asks with bytecode, whose answer has traversers.
#[tokio::test(flavor = "multi_thread")]
async fn long_answers_to_messages_are_streamed_in_graphson_and_whole_in_graphbinary() {
    let database = Database::open(Options::default()).unwrap();
    let create = "UNWIND range(1, 5000) AS i CREATE (:P {i: i})";
    database.query(&Query::new(Language::OpenCypher, create, &Parameters::default())).unwrap();
    let router = http::Service::new(database, http::Limits::default()).router();
    let steps = binary("bytecode", "traversal", &[("gremlin", bytecode(&["V", "id"]))]);
    for (accept, is_whole) in [(GRAPHSON, false), (BINARY, true)] {
        let request = Request::post("/gremlin").header(header::CONTENT_TYPE, BINARY);
        let request = request.header(header::ACCEPT, accept).header(header::TE, "trailers");
        let answer = router.clone().oneshot(request.body(Body::from(steps.clone())).unwrap()).await.unwrap();
        let (head, body) = answer.into_parts();
        assert_eq!(head.headers[header::CONTENT_TYPE], accept);
        assert_eq!(head.headers.contains_key(header::CONTENT_LENGTH), is_whole, "{accept}");
        let body = body.collect().await.unwrap();
        assert_eq!(
            body.trailers().map(|told| told["x-neptune-status"].to_str().unwrap()),
            (!is_whole).then_some("200 OK")
        );
        let bytes = body.to_bytes();
        if is_whole {
            let (code, values) = self::answer(&bytes);
            assert_eq!((code, &values[2..6]), (200, &5_000_u32.to_be_bytes()[..]));
            continue;
        }
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&json["requestId"], &json["status"]["code"]), (&json!(ID), &json!(200)));
        let values = json["result"]["data"]["@value"].as_array().unwrap();
        assert_eq!(values.len(), 5_000);
        assert!(values.iter().all(|value| value["@type"] == "g:Traverser"));
    }
}

#[tokio::test]
async fn messages_in_graphson_are_told_from_parameters() {
    let router = service();
    let script = json!({
        "requestId": { "@type": "g:UUID", "@value": ID },
        "op": "eval",
        "processor": "",
        "args": { "@type": "g:Map", "@value": ["gremlin", "g.inject(x)", "bindings", { "@type": "g:Map",
            "@value": ["x", { "@type": "g:Int64", "@value": 5 }] }] },
    });
    let script = script.to_string().into_bytes();
    let cases = [
        (GRAPHSON, script.clone()),
        (GRAPHSON, named(GRAPHSON, &script)),
        ("application/json", script.clone()),
        ("application/vnd.gremlin-v2.0+json", script),
    ];
    for (kind, body) in cases {
        let (status, answered, bytes) = ask(&router, kind, None, body).await;
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((status, &json["requestId"]), (200, &json!(ID)), "{json}");
        assert!(answered == kind || kind == "application/json", "{answered}");
        assert!(json.to_string().contains(r#"{"@type":"g:Int64","@value":5}"#), "{json}");
    }
    let parameters = json!({ "gremlin": "g.inject(x)", "bindings": { "x": 5 }, "op": "eval", "args": {} });
    for kind in [GRAPHSON, "application/json"] {
        let (status, _, bytes) = ask(&router, kind, None, parameters.to_string().into_bytes()).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_message_is_told_under_its_id() {
    let router = service();
    let eval = |value: Vec<u8>| binary("eval", "", &[("gremlin", value)]);
    let deep = [[9, 0, 0, 0, 0, 1].repeat(10_000), vec![0xFE, 1]].concat();
    let cases = [
        (eval(deep), 400, "nested more than"),
        (eval(vec![3, 0, 0x7F, 0xFF, 0xFF, 0xFF]), 400, "do not fit"),
        (eval(vec![3, 0, 0, 0, 0, 1, 0xFF]), 400, "not valid UTF-8"),
        (eval(vec![0x77, 0]), 400, "is not a type"),
        (eval(typed("g.V().map{ it.get() }")), 400, "MalformedQueryException"),
        (eval(typed("System.exit(1)")), 400, "MalformedQueryException"),
        (eval(vec![1, 0, 0, 0, 0, 5]), 400, "has a text in gremlin"),
        (binary("bytecode", "", &[("gremlin", bytecode(&["noSuchStep"]))]), 400, "noSuchStep"),
        (binary("bytecode", "", &[("gremlin", bytecode(&["V().drop"]))]), 400, "is not the name of a step"),
        (binary("brew", "", &[]), 400, "there is no operation"),
        (binary("close", "session", &[("session", typed("s"))]), 400, "needs a connection of WebSocket"),
        (
            binary("eval", "session", &[("session", typed("s")), ("gremlin", typed("g.V()"))]),
            400,
            "need a connection of WebSocket",
        ),
    ];
    for (body, status, part) in cases {
        let (found, refusal) = refusal(&router, BINARY, body).await;
        assert_eq!((found, &refusal["requestId"]), (status, &json!(ID)), "{refusal}");
        assert!(refusal.to_string().contains(part), "{part}: {refusal}");
    }
    let without_id = [
        (BINARY, vec![]),
        (BINARY, vec![0x82]),
        (BINARY, eval(typed("g.V()"))[..10].to_vec()),
        (BINARY, named("application/yaml", &eval(typed("g.V()")))),
        (GRAPHSON, br#"{"op": "eval", "args": {}}"#.to_vec()),
        // A form of any web page can send these bytes as a text.
        ("text/plain", named(BINARY, &eval(typed("g.addV()")))),
    ];
    for (kind, body) in without_id {
        let (status, refusal) = refusal(&router, kind, body.clone()).await;
        assert_eq!(status, 400, "{body:?}: {refusal}");
    }
}
