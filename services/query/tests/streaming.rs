//! Answers over HTTP that leave while their query runs: memory, back pressure, and what ends them.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets and wait")]

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tidegraph_engine::{Database, InlineLimits, Language, Options, Parameters, Query};
use tidegraph_query::{admission, http, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;
use tower::ServiceExt;

/// Longest wait for what must happen: generous, since other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(300);
const MIB: u64 = 1 << 20;
/// Would answer with ten thousand million rows.
const ENDLESS: &str = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a, b";
const LATE_ERROR: &str = "UNWIND range(1, 1000000) AS i RETURN 1 / (900000 - i) AS x";

struct Settings {
    query_memory_bytes: u64,
    memory_total_bytes: u64,
    query_rows: u64,
    concurrent_queries: usize,
}

const SMALL: Settings = Settings {
    query_memory_bytes: 48 * MIB,
    memory_total_bytes: 64 * MIB,
    query_rows: 10_000_000,
    concurrent_queries: 8,
};

fn service(settings: &Settings) -> (std::sync::Arc<Database>, Router) {
    let Settings { query_memory_bytes, query_rows, memory_total_bytes, concurrent_queries } = *settings;
    let options = Options { query_memory_bytes, query_rows, ..Options::default() };
    let database = Database::open(options).unwrap();
    // The time of a try on the thread that read a text is not taken away by a busy machine.
    let inline = InlineLimits { time: Duration::from_secs(60), ..admission::INLINE };
    let queries =
        admission::Limits { memory_total_bytes, concurrent_queries, inline, ..admission::Limits::default() };
    let limits = http::Limits { queries, ..http::Limits::default() };
    let router = http::Service::new(database.clone(), limits).router();
    (database, router)
}

fn cypher(text: &str) -> Request<Body> {
    let body = json!({ "query": text, "queryId": "q" }).to_string();
    Request::post("/openCypher").header("content-type", "application/json").body(Body::from(body)).unwrap()
}

async fn ask(router: &Router, request: Request<Body>) -> Response<Body> {
    router.clone().oneshot(request).await.unwrap()
}

/// An answer that was read to its end.
struct Read {
    bytes: u64,
    /// The last bytes.
    tail: String,
    rows: usize,
    trailers: Option<HeaderMap>,
    /// The error that ended the body.
    error: Option<String>,
}

/// Reads an answer, and counts the places where `row` stands in it.
async fn read(answer: Response<Body>, row: &str) -> Read {
    let mut body = answer.into_body();
    let mut read = Read { bytes: 0, tail: String::new(), rows: 0, trailers: None, error: None };
    while let Some(frame) = timeout(PATIENCE, body.frame()).await.unwrap() {
        match frame.map(|frame| frame.into_data()) {
            Ok(Ok(bytes)) => {
                read.bytes += bytes.len() as u64;
                let kept = read.tail.len().saturating_sub(row.len() - 1);
                let text = read.tail.split_off(kept) + std::str::from_utf8(&bytes).unwrap();
                read.rows += text.matches(row).count();
                read.tail = text;
            }
            Ok(Err(frame)) => read.trailers = Some(frame.into_trailers().unwrap()),
            Err(error) => read.error = Some(error.to_string()),
        }
    }
    read
}

async fn status(router: &Router) -> Value {
    let answer = ask(router, Request::get("/status").body(Body::empty()).unwrap()).await;
    serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

async fn used(router: &Router) -> u64 {
    status(router).await["queryMemory"]["usedBytes"].as_u64().unwrap()
}

async fn running(router: &Router) -> u64 {
    let answer = ask(router, Request::get("/openCypher/status").body(Body::empty()).unwrap()).await;
    let body: Value =
        serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
    body["runningQueryCount"].as_u64().unwrap()
}

/// Waits until no query runs and no memory is held.
async fn becomes_free(router: &Router) {
    let free = async {
        while running(router).await > 0 || used(router).await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, free).await.expect("everything is given back");
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server::serve(listener, router, server::Limits::default(), std::future::pending()));
    address
}

/// Sends a query over a socket that takes little at once.
async fn send(address: SocketAddr, text: &str, headers: &str) -> TcpStream {
    let body = json!({ "query": text }).to_string();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(32 << 10).unwrap();
    let mut socket = socket.connect(address).await.unwrap();
    let head = format!(
        "POST /openCypher HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(body.as_bytes()).await.unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_would_not_fit_into_the_memory_are_sent() {
    let (database, router) = service(&SMALL);
    let none = Parameters::default();
    for from in (0..100_000).step_by(10_000) {
        let create = format!(
            "UNWIND range({from}, {}) AS i CREATE (:P {{i: i, text: 'a text of the vertex ' + toString(i)}})",
            from + 9_999
        );
        database.query(&Query::new(Language::OpenCypher, &create, &none)).unwrap();
    }
    let columns: Vec<String> = (0..100).map(|column| format!("i + {column} AS c{column}")).collect();
    let wide = format!("UNWIND range(1, 100000) AS i RETURN {}", columns.join(", "));
    let scan = "MATCH (p:P) RETURN p, p.i, p.text, p.text + ' again', [p.i, p.text], properties(p)";
    for (text, row, rows) in [
        ("UNWIND range(1, 1000000) AS i RETURN i, -i AS minus, toString(i) AS text", "{\"i\":", 1_000_000),
        (wide.as_str(), "{\"c0\":", 100_000),
        (scan, "{\"p\":", 100_000),
    ] {
        let mut whole = cypher(text);
        whole.extensions_mut().insert(http::Whole);
        let refused = ask(&router, whole).await;
        assert_eq!(refused.status(), 400, "{text}: the whole answer fits");
        drop(refused);
        becomes_free(&router).await;
        let answer = ask(&router, cypher(text)).await;
        assert_eq!(answer.status(), 200, "{text}");
        assert!(
            answer.headers().contains_key("tidegraph-version") && !answer.headers().contains_key("trailer")
        );
        let read = read(answer, row).await;
        assert_eq!((read.rows, read.error), (rows, None), "{text}");
        assert!(read.tail.ends_with("}]}"), "{}", read.tail);
        becomes_free(&router).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_answers_are_whole() {
    let (_, router) = service(&SMALL);
    let whole = async |text: &str| {
        let answer = ask(&router, cypher(text)).await;
        let length = answer.headers().get("content-length").map(|value| value.to_str().unwrap().to_owned());
        let read = read(answer, "{\"i\":").await;
        assert_eq!(read.rows, 700, "{text}");
        length.map(|length| assert_eq!(length, read.bytes.to_string()))
    };
    // Of a text that is not planned yet. An answer may begin before its end is known if the machine is busy.
    let is_whole = async {
        for number in 0.. {
            if whole(&format!("UNWIND range(1, 700) AS i RETURN i, {number} AS n")).await.is_some() {
                return;
            }
        }
    };
    timeout(PATIENCE, is_whole).await.expect("an answer with a length");
    // The query of a text that is planned runs on the thread that read it.
    let text = "UNWIND range(1, 700) AS i RETURN i";
    whole(text).await;
    assert!(whole(text).await.is_some());
    becomes_free(&router).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_bytes_come_while_the_query_runs() {
    let (_, router) = service(&SMALL);
    let mut body = ask(&router, cypher(ENDLESS)).await.into_body();
    let first = timeout(PATIENCE, body.frame()).await.unwrap().unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"{\"results\":[{\"a\":1,\"b\":1},"));
    drop(first);
    assert_eq!(running(&router).await, 1);
    let cancel = Request::delete("/openCypher/status/q").body(Body::empty()).unwrap();
    assert_eq!(ask(&router, cancel).await.status(), 200);
    let ended = read(Response::new(body), "{\"a\":").await;
    let error = ended.error.unwrap();
    assert!(error.contains("CancelledByUserException"), "{error}");
    becomes_free(&router).await;
}

/// After 50 rows there are no others, for which the query looks for a long time.
#[tokio::test(flavor = "multi_thread")]
async fn rows_do_not_wait_for_a_slow_one() {
    let (_, router) = service(&SMALL);
    let text = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a = 1 AND b <= 50 OR a < 0 RETURN b";
    let mut body = ask(&router, cypher(text)).await.into_body();
    let first = timeout(PATIENCE, body.frame()).await.unwrap().unwrap().unwrap().into_data().unwrap();
    assert!(first.ends_with(b"{\"b\":50}"), "{}", String::from_utf8_lossy(&first));
    drop(first);
    assert_eq!(running(&router).await, 1);
    drop(body);
    becomes_free(&router).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_the_first_byte_is_told() {
    let (_, router) = service(&Settings { query_rows: 500_000, ..SMALL });
    for (text, status) in [
        (LATE_ERROR, "400 QueryLimitExceededException"),
        ("UNWIND range(1, 400000) AS i RETURN 1 / (300000 - i) AS x", "400 InvalidArgumentException"),
    ] {
        let mut request = cypher(text);
        request.headers_mut().insert("te", "trailers".parse().unwrap());
        let answer = ask(&router, request).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["trailer"]),
            (200, &"X-Neptune-Status, X-Neptune-Detail".parse().unwrap())
        );
        let ended = read(answer, "{\"x\":").await;
        let trailers = ended.trailers.unwrap();
        assert_eq!((&trailers["x-neptune-status"], ended.error), (&status.parse().unwrap(), None));
        assert!(trailers["x-neptune-detail"].to_str().unwrap().contains("detailedMessage"));
        assert!(!ended.tail.ends_with("]}"), "{}", ended.tail);
        // Without trailers the body breaks.
        let ended = read(ask(&router, cypher(text)).await, "{\"x\":").await;
        assert!(ended.error.is_some() && !ended.tail.ends_with("]}"), "{}", ended.tail);
    }
    let mut request = cypher("UNWIND range(1, 100000) AS i RETURN i");
    request.headers_mut().insert("te", "trailers".parse().unwrap());
    let ended = read(ask(&router, request).await, "{\"i\":").await;
    assert_eq!(
        (ended.rows, &ended.trailers.unwrap()["x-neptune-status"]),
        (100_000, &"200 OK".parse().unwrap())
    );
    becomes_free(&router).await;
}

/// What a client sees that reads a socket to its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_answer_has_no_last_chunk() {
    let (_, router) = service(&SMALL);
    let address = serve(http::with_gzip(router.clone())).await;
    let all_of = async |text: &str, headers: &str| {
        let mut socket = send(address, text, headers).await;
        let mut bytes = vec![];
        timeout(PATIENCE, socket.read_to_end(&mut bytes)).await.unwrap().unwrap();
        bytes
    };
    let all = async |headers: &str| all_of(LATE_ERROR, headers).await;
    let cut = String::from_utf8(all("").await).unwrap();
    assert!(cut.starts_with("HTTP/1.1 200") && cut.contains("transfer-encoding: chunked"));
    assert!(!cut.contains("\r\n0\r\n"), "{}", &cut[cut.len() - 100..]);
    let told = String::from_utf8(all("te: trailers\r\nconnection: close\r\n").await).unwrap();
    let (_, trailers) = told.rsplit_once("\r\n0\r\n").unwrap();
    assert!(trailers.contains("x-neptune-status: 400 "), "{trailers}");
    let packed = all("accept-encoding: gzip\r\n").await;
    assert!(!packed.windows(5).any(|end| end == b"\r\n0\r\n"));
    let headers = "accept-encoding: gzip\r\nconnection: close\r\n";
    let packed = all_of("UNWIND range(1, 100000) AS i RETURN i", headers).await;
    assert!(packed.starts_with(b"HTTP/1.1 200") && packed.ends_with(b"\r\n0\r\n\r\n"));
    becomes_free(&router).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_when_its_client_leaves() {
    let (_, router) = service(&SMALL);
    let address = serve(router.clone()).await;
    let mut socket = send(address, ENDLESS, "").await;
    let mut begin = [0; 1_000];
    timeout(PATIENCE, socket.read_exact(&mut begin)).await.unwrap().unwrap();
    assert_eq!(running(&router).await, 1);
    drop(socket);
    becomes_free(&router).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_hold_little_and_keep_nobody_out() {
    let (_, router) = service(&Settings { memory_total_bytes: 24 * MIB, concurrent_queries: 2, ..SMALL });
    let address = serve(router.clone()).await;
    let mut clients = vec![];
    for _ in 0..8 {
        let mut socket = send(address, ENDLESS, "").await;
        let mut status = [0; 12];
        timeout(PATIENCE, socket.read_exact(&mut status)).await.unwrap().unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        clients.push(socket);
        let (used, limit) = (used(&router).await, 24 * MIB);
        assert!(used <= limit, "{used} of {limit}");
    }
    assert_eq!(running(&router).await, 8);
    // Both slots were given to others meanwhile. This text was not planned, so its query needs one.
    let answer = timeout(PATIENCE, ask(&router, cypher("RETURN 17 AS n"))).await.unwrap();
    assert_eq!(read(answer, "{\"n\":17}").await.rows, 1);
    // A client that goes on to read gets more.
    let mut buffer = vec![0; 4 << 20];
    timeout(PATIENCE, clients[0].read_exact(&mut buffer)).await.unwrap().unwrap();
    drop(clients);
    becomes_free(&router).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_limit_holds_for_a_client_that_does_not_read() {
    let (_, router) = service(&SMALL);
    let mut limit_ms = 250;
    let answer = loop {
        let body = json!({ "query": ENDLESS, "queryTimeoutMilliseconds": limit_ms }).to_string();
        let request = Request::post("/openCypher").header("content-type", "application/json");
        let request = request.header("te", "trailers").body(Body::from(body)).unwrap();
        let answer = ask(&router, request).await;
        // Another program may have kept the machine busy for so long.
        if answer.status() == 200 {
            break answer;
        }
        limit_ms *= 2;
    };
    let ended = async {
        while running(&router).await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the query ends by itself");
    let ended = read(answer, "{\"a\":").await;
    assert_eq!(ended.trailers.unwrap()["x-neptune-status"], "408 TimeLimitExceededException");
    becomes_free(&router).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gremlin_is_streamed_in_every_text_format() {
    let (database, router) = service(&SMALL);
    let none = Parameters::default();
    for from in (0..40_000).step_by(10_000) {
        let create = format!("UNWIND range({from}, {}) AS i CREATE (:P {{i: i}})", from + 9_999);
        database.query(&Query::new(Language::OpenCypher, &create, &none)).unwrap();
    }
    let ask_for = |accept: &str| {
        let body = json!({ "gremlin": "g.V().hasLabel('P').values('i')" }).to_string();
        let request = Request::post("/gremlin").header("content-type", "application/json");
        request.header("accept", accept).body(Body::from(body)).unwrap()
    };
    for accept in [
        "application/vnd.gremlin-v3.0+json",
        "application/vnd.gremlin-v2.0+json",
        "application/vnd.gremlin-v3.0+json;types=false",
    ] {
        let answer = ask(&router, ask_for(accept)).await;
        assert!(!answer.headers().contains_key("content-length"), "{accept}");
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(body["status"]["code"], 200);
        let data = &body["result"]["data"];
        let data = data.as_array().or_else(|| data["@value"].as_array()).unwrap();
        assert_eq!(data.len(), 40_000, "{accept}");
    }
    // The list of GraphBinary begins with its length, so its bytes are sent at the end.
    let answer = ask(&router, ask_for("application/vnd.graphbinary-v1.0")).await;
    assert!(answer.headers().contains_key("content-length"));
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(bytes[33..37], 40_000_u32.to_be_bytes());
    drop(bytes);
    becomes_free(&router).await;
}
