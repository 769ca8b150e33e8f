//! The memory of all queries and unsent answers: its limit, the refusals, and that everything is given back.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets and wait")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_query::{admission, http, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;
use tower::ServiceExt;

/// Longest wait for what must happen: generous, since other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

fn service(memory_total_bytes: u64, query_memory_bytes: u64) -> Router {
    let database = Database::open(Options { query_memory_bytes, ..Options::default() }).unwrap();
    let queries = admission::Limits { memory_total_bytes, ..admission::Limits::default() };
    http::Service::new(database, http::Limits { queries, ..http::Limits::default() }).router()
}

async fn ask(router: &Router, query: Value) -> (u16, HeaderMap, Value) {
    let request = Request::post("/openCypher").header("content-type", "application/json");
    let answer = router.clone().oneshot(request.body(Body::from(query.to_string())).unwrap()).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, headers, serde_json::from_slice(&body).unwrap())
}

/// Returns the bytes that queries and answers hold, and their limit.
async fn held(router: &Router) -> (u64, u64) {
    let answer = router.clone().oneshot(Request::get("/status").body(Body::empty()).unwrap()).await.unwrap();
    let body: Value = serde_json::from_slice(&to_bytes(answer.into_body(), 1 << 20).await.unwrap()).unwrap();
    let memory = &body["queryMemory"];
    (memory["usedBytes"].as_u64().unwrap(), memory["limitBytes"].as_u64().unwrap())
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server::serve(listener, router, server::Limits::default(), std::future::pending()));
    address
}

/// Sends a write whose answer has 15.9 MB, and reads the status of the answer but not its body.
async fn never_reads(address: SocketAddr) -> (TcpStream, String) {
    let query = json!({
        "query": "MERGE (:N) WITH 1 AS one UNWIND range(1, 100) AS n RETURN $text AS text",
        "parameters": { "text": "x".repeat(159_000) },
    })
    .to_string();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(32 << 10).unwrap();
    let mut socket = socket.connect(address).await.unwrap();
    let head = format!(
        "POST /openCypher HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        query.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(query.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(PATIENCE, socket.read_exact(&mut status)).await.expect("an answer").unwrap();
    (socket, String::from_utf8(status.to_vec()).unwrap())
}

#[tokio::test]
async fn clients_that_never_read_stay_under_the_limit() {
    let router = service(160 * MIB, 1 << 30);
    let address = serve(router.clone()).await;
    let (mut reads_nothing, mut refused) = (Vec::new(), Vec::new());
    for n in 0..24 {
        let (client, status) = never_reads(address).await;
        match status.as_str() {
            "HTTP/1.1 200" => reads_nothing.push(client),
            "HTTP/1.1 503" => refused.push(client),
            other => panic!("client {n}: {other}"),
        }
        let (used, limit) = held(&router).await;
        assert!(used <= limit && limit == 160 * MIB, "client {n}: {used} of {limit}");
    }
    assert!(reads_nothing.len() >= 3 && refused.len() >= 10, "{} answers", reads_nothing.len());
    let mut answer = [0; 2_048];
    let bytes = timeout(PATIENCE, refused[0].read(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..bytes]).to_lowercase();
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    // Small queries still find room.
    let (status, _, body) = ask(&router, json!({ "query": "RETURN 1 AS one" })).await;
    assert_eq!((status, &body["results"][0]["one"]), (200, &json!(1)), "{body}");
    // One client reads its answer, the others go away.
    let mut reads = reads_nothing.pop().unwrap();
    drop(reads_nothing);
    let mut left = 15_900_000;
    let mut buffer = vec![0; 1 << 20];
    while left > 0 {
        let bytes = timeout(PATIENCE, reads.read(&mut buffer)).await.unwrap().unwrap();
        assert!(bytes > 0, "the answer ends {left} bytes too early");
        left -= bytes.min(left);
    }
    let all_given_back = async {
        while held(&router).await.0 > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, all_given_back).await.expect("the memory is given back");
    assert_eq!(never_reads(address).await.1, "HTTP/1.1 200");
}

#[tokio::test]
async fn the_error_names_the_limit_that_was_reached() {
    let collects = json!({ "query": "UNWIND range(1, 3000000) AS n RETURN collect(n) AS numbers" });
    let (status, headers, body) = ask(&service(16 * MIB, 1 << 30), collects.clone()).await;
    assert_eq!((status, &body["code"]), (503, &json!("MemoryLimitExceededException")), "{body}");
    assert_eq!(headers["retry-after"], "1");
    let message = body["detailedMessage"].as_str().unwrap();
    assert!(message.contains("--query-memory-total") && message.contains("16777216"), "{message}");
    let (status, headers, body) = ask(&service(16 * MIB, 4 * MIB), collects).await;
    assert_eq!((status, &body["code"]), (400, &json!("QueryLimitExceededException")), "{body}");
    assert!(headers.get("retry-after").is_none());
    assert!(body["detailedMessage"].as_str().unwrap().contains("its limit of 4194304"), "{body}");
}

#[tokio::test]
async fn a_query_is_refused_before_it_starts_if_nothing_is_left() {
    let router = service(1_000, 1 << 30);
    for _ in 0..2 {
        let (status, _, body) = ask(&router, json!({ "query": "CREATE (:N)" })).await;
        assert_eq!((status, &body["code"]), (503, &json!("MemoryLimitExceededException")), "{body}");
    }
    assert_eq!(held(&router).await.0, 0);
}

/// JSON writes each of these characters as six. So the rows fit into the memory, and the answer does not.
#[tokio::test]
async fn the_answer_to_a_committed_write_is_never_refused() {
    let router = service(4 * MIB, 1 << 30);
    let parameters = json!({ "text": "\u{1}".repeat(150_000) });
    let write = "CREATE (n:N) WITH n UNWIND range(1, 6) AS row RETURN $text AS text";
    // A write that changes nothing commits nothing.
    let read = "MERGE (m:M) WITH m UNWIND range(1, 6) AS row RETURN $text AS text";
    let (status, ..) = ask(&router, json!({ "query": "CREATE (:M)" })).await;
    assert_eq!(status, 200);
    let (status, ..) = ask(&router, json!({ "query": read, "parameters": parameters })).await;
    assert_eq!(status, 503);
    let (status, _, body) = ask(&router, json!({ "query": write, "parameters": parameters })).await;
    assert_eq!(status, 200, "{}", body["detailedMessage"]);
    assert_eq!(body["results"].as_array().unwrap().len(), 6);
    let (_, _, body) = ask(&router, json!({ "query": "MATCH (n:N) RETURN count(n) AS n" })).await;
    assert_eq!(body["results"][0]["n"], 1);
    assert_eq!(held(&router).await.0, 0);
}

/// A value takes far more memory than its text: two bytes of a list, and a hundred as a parameter.
#[tokio::test]
async fn bodies_count_before_they_are_read_and_parsed() {
    let router = service(16 * MIB, 1 << 30);
    let numbers = |count: usize| json!({ "query": "RETURN size($list) AS n", "parameters": { "list": vec![1; count] } });
    let (status, _, body) = ask(&router, numbers(50_000)).await;
    assert_eq!((status, &body["results"][0]["n"]), (200, &json!(50_000)), "{body}");
    let (status, headers, body) = ask(&router, numbers(500_000)).await;
    assert_eq!((status, &body["code"]), (503, &json!("MemoryLimitExceededException")), "{body}");
    assert_eq!(headers["retry-after"], "1");
    // The text alone is too much.
    let (status, ..) =
        ask(&router, json!({ "query": format!("RETURN 1 // {}", "x".repeat(15 << 20)) })).await;
    assert_eq!(status, 503);
    assert_eq!(held(&router).await.0, 0);
    // A body that is being sent counts.
    let address = serve(router.clone()).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = "POST /openCypher HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 6000000\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&vec![b' '; 5_000_000]).await.unwrap();
    let counts = async {
        while held(&router).await.0 < 5_000_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, counts).await.expect("the body counts");
    drop(socket);
    let given_back = async {
        while held(&router).await.0 > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, given_back).await.expect("the memory is given back");
}
