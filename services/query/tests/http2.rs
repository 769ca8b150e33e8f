//! HTTP/2 on the port: requests beside each other, and what becomes of clients that are slow or hostile.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets")]

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, Request, Response, StatusCode};
use axum::routing::get;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_query::server::{Protocols, Tls};
use tidegraph_query::{http, server, session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Time limit of every wait. It is generous, because other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);
const SOON: Duration = Duration::from_millis(200);
const NEVER: Duration = Duration::from_secs(1_000_000);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty frame of settings, which follows the preface.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Limits that no test reaches.
const WIDE: server::Limits = server::Limits {
    connections: 1_000,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    write: NEVER,
    sessions: session::Limits { idle: NEVER, paused: NEVER },
};

/// A server that ends when `stop` is sent.
struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl Server {
    async fn start(limits: server::Limits, protocols: impl Into<Protocols> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server::serve(listener, protocols, limits, async move {
            let _ = stopped.await;
        }));
        Self { address, stop, ended }
    }

    async fn client(&self) -> Client {
        Client::new(TcpStream::connect(self.address).await.unwrap(), &h2::client::Builder::new()).await
    }

    /// A client whose connection has room for more than one request may be sent ahead.
    async fn roomy_client(&self) -> Client {
        let mut builder = h2::client::Builder::new();
        builder.initial_connection_window_size(1 << 20);
        Client::new(TcpStream::connect(self.address).await.unwrap(), &builder).await
    }

    /// A client that has sent some bytes.
    async fn raw(&self, bytes: &[u8]) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        socket
    }

    /// Whether the server answers a new client.
    async fn works(&self) {
        assert_eq!(self.client().await.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
    }
}

struct Client {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    async fn new(
        socket: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        builder: &h2::client::Builder,
    ) -> Self {
        let handshake = timeout(PATIENCE, builder.handshake(socket)).await.unwrap();
        let (requests, connection) = handshake.unwrap();
        Self { requests, connection: tokio::spawn(connection) }
    }

    /// Begins a request whose body may follow.
    async fn begin(
        &mut self,
        method: Method,
        path: &str,
        has_body: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let request = Request::builder().method(method).uri(format!("http://localhost{path}")).body(());
        let mut ready = timeout(PATIENCE, self.requests.clone().ready()).await.unwrap().unwrap();
        ready.send_request(request.unwrap(), !has_body).unwrap()
    }

    async fn ask(&mut self, method: Method, path: &str, body: &str) -> (StatusCode, String) {
        let (answer, mut sent) = self.begin(method, path, !body.is_empty()).await;
        if !body.is_empty() {
            sent.send_data(Bytes::from(body.to_owned()), true).unwrap();
        }
        whole(answer).await
    }

    /// Waits for the end of the connection.
    async fn ends(self) -> Result<(), h2::Error> {
        timeout(PATIENCE, self.connection).await.expect("the connection ends").unwrap()
    }
}

async fn head(answer: ResponseFuture) -> Result<Response<RecvStream>, h2::Error> {
    timeout(PATIENCE, answer).await.expect("an answer")
}

/// Reads an answer and its body.
async fn whole(answer: ResponseFuture) -> (StatusCode, String) {
    let (parts, mut body) = head(answer).await.unwrap().into_parts();
    let mut all = vec![];
    while let Some(data) = timeout(PATIENCE, body.data()).await.unwrap() {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        all.extend_from_slice(&data);
    }
    (parts.status, String::from_utf8(all).unwrap())
}

/// Reads frames until the server closes the connection, and returns their types and payloads.
async fn frames(socket: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    let mut bytes = vec![];
    let read = timeout(PATIENCE, socket.read_to_end(&mut bytes)).await.expect("the server closes");
    assert!(read.is_ok() || !bytes.is_empty(), "{read:?}");
    let (mut rest, mut frames) = (&bytes[..], vec![]);
    while let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        frames.push((*kind, after[..length].to_vec()));
        rest = &after[length..];
    }
    frames
}

/// Returns the reason of the last GOAWAY.
async fn goodbye(socket: &mut TcpStream) -> Reason {
    let frames = frames(socket).await;
    let payload = frames.iter().rev().find(|(kind, _)| *kind == 7).map(|(_, payload)| payload);
    let payload = payload.unwrap_or_else(|| panic!("no GOAWAY in {frames:?}"));
    u32::from_be_bytes(payload[4..8].try_into().unwrap()).into()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The block of headers of a GET, from the static table and literals without an index.
fn headers(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    for (name, value) in [(4, path), (1, "localhost")] {
        block.extend([name, u8::try_from(value.len()).unwrap()]);
        block.extend(value.bytes());
    }
    block
}

fn graph() -> Protocols {
    let limits = http::Limits { body_bytes: 1 << 20, ..http::Limits::default() };
    let service = http::Service::new(Database::open(Options::default()).unwrap(), limits);
    let sessions = Some(service.sessions(None));
    Protocols { http: http::with_gzip(service.router()), sessions, tls: None }
}

/// The service, and a path whose answer comes once it is told to.
fn slow() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let shared = (begun.clone(), go_on.clone());
    let handler = get(move || async move {
        shared.0.notify_one();
        shared.1.notified().await;
        "done"
    });
    (graph().http.route("/slow", handler), begun, go_on)
}

/// Asks with a query, for trailers.
async fn ask_for_rows(client: &Client, text: &str, has_trailers: bool) -> Response<RecvStream> {
    let request = Request::post("http://localhost/openCypher");
    let request = if has_trailers { request.header("te", "trailers") } else { request };
    let mut ready = timeout(PATIENCE, client.requests.clone().ready()).await.unwrap().unwrap();
    let (answer, mut sent) = ready.send_request(request.body(()).unwrap(), false).unwrap();
    sent.send_data(Bytes::from(serde_json::json!({ "query": text }).to_string()), true).unwrap();
    head(answer).await.unwrap()
}

/// Reads a body to its end; returns its bytes, or the error that ended it.
async fn rest(body: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut all = vec![];
    while let Some(data) = timeout(PATIENCE, body.data()).await.unwrap() {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        all.extend_from_slice(&data);
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_leave_while_their_query_runs_and_trailers_tell_the_end() {
    let server = Server::start(WIDE, graph()).await;
    let client = server.client().await;
    let fails = "UNWIND range(1, 100000) AS i RETURN 1 / (90000 - i) AS x";
    for (text, status) in
        [("UNWIND range(1, 100000) AS i RETURN i", "200 OK"), (fails, "400 InvalidArgumentException")]
    {
        let mut answer = ask_for_rows(&client, text, true).await;
        assert_eq!((answer.status(), answer.headers().get("content-length")), (StatusCode::OK, None));
        let all = rest(answer.body_mut()).await.unwrap();
        let trailers = timeout(PATIENCE, answer.body_mut().trailers()).await.unwrap().unwrap().unwrap();
        assert_eq!(trailers["x-neptune-status"], status);
        assert_eq!(all.ends_with(b"]}"), text != fails);
    }
    // Without trailers the request is reset.
    let mut answer = ask_for_rows(&client, fails, false).await;
    let error = rest(answer.body_mut()).await.unwrap_err();
    assert!(error.is_reset(), "{error}");
    server.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_waits_for_a_client_that_reads_slowly_beside_its_other_requests() {
    let server = Server::start(WIDE, graph()).await;
    let mut client = server.roomy_client().await;
    let endless = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a, b";
    let mut answer = ask_for_rows(&client, endless, true).await;
    // The client takes nothing: its other requests have room on the connection, and the query waits.
    let used = async |client: &mut Client| {
        let (status, body) = client.ask(Method::GET, "/status", "").await;
        assert_eq!(status, StatusCode::OK);
        let status: serde_json::Value = serde_json::from_str(&body).unwrap();
        status["queryMemory"]["usedBytes"].as_u64().unwrap()
    };
    for _ in 0..20 {
        let used = used(&mut client).await;
        assert!(used < 8 << 20, "{used}");
    }
    let mut taken = 0;
    while taken < 4 << 20 {
        let data = timeout(PATIENCE, answer.body_mut().data()).await.unwrap().unwrap().unwrap();
        answer.body_mut().flow_control().release_capacity(data.len()).unwrap();
        taken += data.len();
    }
    // A request that is given up ends its query.
    drop(answer);
    let ended = async { while used(&mut client).await > 0 {} };
    timeout(PATIENCE, ended).await.expect("the query ends");
}

#[tokio::test]
async fn both_languages_answer_and_errors_are_those_of_http() {
    let server = Server::start(WIDE, graph()).await;
    let mut client = server.client().await;
    let write = r#"{"query":"CREATE (:Person {name: 'Ada'})"}"#;
    assert_eq!(client.ask(Method::POST, "/openCypher", write).await.0, StatusCode::OK);
    let (status, body) =
        client.ask(Method::POST, "/openCypher", r#"{"query":"MATCH (p) RETURN p.name"}"#).await;
    assert!(status == StatusCode::OK && body.contains("Ada"), "{body}");
    let (status, body) = client.ask(Method::POST, "/gremlin", r#"{"gremlin":"g.V().values('name')"}"#).await;
    assert!(status == StatusCode::OK && body.contains("Ada"), "{body}");
    let (status, body) = client.ask(Method::POST, "/openCypher", r#"{"query":"RETURN"}"#).await;
    assert!(status == StatusCode::BAD_REQUEST && body.contains("MalformedQueryException"), "{body}");
    assert_eq!(client.ask(Method::GET, "/nothing", "").await.0, StatusCode::NOT_FOUND);
    let long = format!(r#"{{"query":"RETURN '{}'"}}"#, "x".repeat(2 << 20));
    let (status, body) = client.ask(Method::POST, "/openCypher", &long).await;
    assert!(status == StatusCode::PAYLOAD_TOO_LARGE && body.contains("RequestTooLarge"), "{body}");
    let many = r#"{"query":"UNWIND range(1, 200000) AS i RETURN i"}"#;
    let (status, body) = client.ask(Method::POST, "/openCypher", many).await;
    assert!(status == StatusCode::OK && body.contains("200000"), "{} bytes", body.len());
}

#[tokio::test]
async fn requests_of_a_connection_run_beside_each_other() {
    let (router, begun, go_on) = slow();
    let server = Server::start(WIDE, router).await;
    let mut client = server.client().await;
    let (first, _) = client.begin(Method::GET, "/slow", false).await;
    timeout(PATIENCE, begun.notified()).await.unwrap();
    let answers = (0..50).map(|_| {
        let mut client =
            Client { requests: client.requests.clone(), connection: tokio::spawn(async { Ok(()) }) };
        tokio::spawn(async move { client.ask(Method::GET, "/status", "").await })
    });
    for answer in answers.collect::<Vec<_>>() {
        assert_eq!(answer.await.unwrap().0, StatusCode::OK);
    }
    go_on.notify_one();
    assert_eq!(whole(first).await, (StatusCode::OK, "done".to_owned()));
}

#[tokio::test]
async fn a_request_ends_when_its_client_resets_it() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let shared = (begun.clone(), dropped.clone());
    let endless = get(move || async move {
        let _dropped = Dropped(shared.1);
        shared.0.notify_one();
        std::future::pending::<()>().await;
    });
    let server = Server::start(WIDE, Router::new().route("/endless", endless)).await;
    let mut client = server.client().await;
    let (_answer, mut sent) = client.begin(Method::GET, "/endless", true).await;
    timeout(PATIENCE, begun.notified()).await.unwrap();
    sent.send_reset(Reason::CANCEL);
    timeout(PATIENCE, dropped.notified()).await.expect("the handler is dropped");
}

#[tokio::test]
async fn a_client_that_sends_no_request_is_told_and_closed() {
    let server = Server::start(server::Limits { head: SOON, ..WIDE }, graph()).await;
    // It does not even send its settings.
    for bytes in [&PREFACE[..1], &PREFACE[..20], PREFACE] {
        let mut socket = server.raw(bytes).await;
        let mut rest = vec![];
        let _ = timeout(PATIENCE, socket.read_to_end(&mut rest)).await.expect("the server closes");
    }
    let mut silent = server.raw(&[PREFACE, &SETTINGS].concat()).await;
    assert_eq!(goodbye(&mut silent).await, Reason::NO_ERROR);
    server.client().await.ends().await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_ends_and_its_client_is_told() {
    let server = Server::start(server::Limits { idle: SOON, ..WIDE }, graph()).await;
    let mut client = server.client().await;
    assert_eq!(client.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
    client.ends().await.unwrap();
}

#[tokio::test]
async fn a_late_body_is_answered_with_408_and_the_connection_goes_on() {
    let server = Server::start(server::Limits { body: SOON, ..WIDE }, graph()).await;
    let mut client = server.client().await;
    let (late, mut sent) = client.begin(Method::POST, "/openCypher", true).await;
    sent.send_data(Bytes::from_static(b"query=RET"), false).unwrap();
    let (status, body) = whole(late).await;
    assert!(status == StatusCode::REQUEST_TIMEOUT && body.contains("200 ms"), "{status} {body}");
    assert_eq!(client.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_request_whose_answer_is_not_taken_is_reset_and_others_go_on() {
    let large = graph().http.route("/large", get(|| async { vec![b'x'; 64 << 20] }));
    let server = Server::start(server::Limits { write: SOON, ..WIDE }, large).await;
    let mut client = server.client().await;
    let (answer, _) = client.begin(Method::GET, "/large", false).await;
    let mut body = head(answer).await.unwrap().into_body();
    let reset = loop {
        match timeout(PATIENCE, body.data()).await.expect("the request is reset") {
            // The client reads, and does not say that it has room for more.
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the answer has ended"),
        }
    };
    assert_eq!(reset.reason(), Some(Reason::CANCEL));
    drop(body);
    assert_eq!(client.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_closed() {
    let large = Router::new().route("/large", get(|| async { vec![b'x'; 64 << 20] }));
    let server = Server::start(server::Limits { write: SOON, ..WIDE }, large).await;
    let room = 0x7FFF_0000_u32.to_be_bytes();
    let wide_window = frame(4, 0, 0, &[&[0, 4], &room[..]].concat());
    let asks = [PREFACE, &wide_window, &frame(8, 0, 0, &room), &frame(1, 5, 1, &headers("/large"))].concat();
    let mut client = server.raw(&asks).await;
    client.read_exact(&mut [0; 1 << 10]).await.unwrap();
    // The server ends only once the connection has.
    server.stop.send(()).unwrap();
    timeout(PATIENCE, server.ended).await.expect("the server ends").unwrap();
}

#[tokio::test]
async fn connections_make_room_unless_a_request_of_them_runs() {
    let (router, begun, go_on) = slow();
    let server = Server::start(server::Limits { connections: 2, ..WIDE }, router).await;
    let mut runs = server.client().await;
    let (running, _) = runs.begin(Method::GET, "/slow", false).await;
    timeout(PATIENCE, begun.notified()).await.unwrap();
    let (_half, _sent) = runs.begin(Method::POST, "/openCypher", true).await;
    let mut idle = server.client().await;
    assert_eq!(idle.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
    server.works().await;
    assert!(idle.ends().await.is_ok(), "the idle one was told");
    go_on.notify_one();
    assert_eq!(whole(running).await, (StatusCode::OK, "done".to_owned()));
}

#[tokio::test]
async fn a_connection_with_nothing_but_half_bodies_makes_room() {
    let server = Server::start(server::Limits { connections: 1, ..WIDE }, graph()).await;
    let mut half = server.client().await;
    let mut sent = vec![];
    for _ in 0..10 {
        sent.push(half.begin(Method::POST, "/openCypher", true).await);
    }
    server.works().await;
    let _ = half.ends().await;
}

#[tokio::test]
async fn the_end_of_the_service_waits_for_requests_and_not_for_clients() {
    let (router, begun, go_on) = slow();
    let server = Server::start(WIDE, router).await;
    let mut client = server.client().await;
    let (running, _) = client.begin(Method::GET, "/slow", false).await;
    let (late, mut sent) = client.begin(Method::POST, "/openCypher", true).await;
    sent.send_data(Bytes::from_static(b"query=RET"), false).unwrap();
    timeout(PATIENCE, begun.notified()).await.unwrap();
    let mut idle = server.client().await;
    assert_eq!(idle.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
    let mut deaf = server.raw(&[PREFACE, &SETTINGS].concat()).await;
    let mut settings = [0; 9];
    timeout(PATIENCE, deaf.read_exact(&mut settings)).await.expect("settings").unwrap();
    deaf.read_exact(&mut vec![0; usize::from(settings[2])]).await.unwrap();
    server.stop.send(()).unwrap();
    idle.ends().await.unwrap();
    // It does not answer that it knows.
    assert_eq!(goodbye(&mut deaf).await, Reason::NO_ERROR);
    let (status, body) = whole(late).await;
    assert!(status == StatusCode::SERVICE_UNAVAILABLE && body.contains("stopping"), "{status} {body}");
    go_on.notify_one();
    assert_eq!(whole(running).await, (StatusCode::OK, "done".to_owned()));
    client.ends().await.unwrap();
    timeout(PATIENCE, server.ended).await.expect("the server ends").unwrap();
}

#[tokio::test]
async fn requests_that_are_reset_at_once_end_the_connection() {
    let server = Server::start(WIDE, graph()).await;
    let mut flood = [PREFACE, &SETTINGS].concat();
    for request in 0..20_000 {
        let stream = 2 * request + 1;
        flood.extend(frame(1, 0x05, stream, &headers("/status")));
        flood.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let (mut reads, mut writes) = socket.split();
    let flooded = async {
        let _ = writes.write_all(&flood).await;
        std::future::pending::<()>().await;
    };
    let mut rest = vec![];
    let closed = timeout(PATIENCE, async {
        tokio::select! { () = flooded => {}, _ = reads.read_to_end(&mut rest) => {} }
    });
    closed.await.expect("the server closes the connection");
    server.works().await;
}

#[tokio::test]
async fn a_client_that_waits_a_moment_before_it_resets_is_closed_too() {
    let (router, begun, _) = slow();
    let server = Server::start(WIDE, router).await;
    let mut client = server.client().await;
    for _ in 0..200 {
        let (_, mut sent) = client.begin(Method::GET, "/slow", true).await;
        timeout(PATIENCE, begun.notified()).await.unwrap();
        sent.send_reset(Reason::CANCEL);
    }
    // An answer makes up for one of them.
    assert_eq!(client.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
    for _ in 0..2 {
        let (_, mut sent) = client.begin(Method::GET, "/slow", true).await;
        timeout(PATIENCE, begun.notified()).await.unwrap();
        sent.send_reset(Reason::CANCEL);
    }
    let _ = client.ends().await;
    server.works().await;
}

#[tokio::test]
async fn what_breaks_the_protocol_is_told_and_ends_the_connection() {
    let server = Server::start(WIDE, graph()).await;
    let long_list = vec![0; 40 << 10];
    let cases: [(&str, Vec<u8>, Reason); 7] = [
        ("a frame longer than allowed", frame(0, 0, 1, &vec![0; 20 << 10]), Reason::FRAME_SIZE_ERROR),
        ("data of a request that there is not", frame(0, 0, 1, b"x"), Reason::PROTOCOL_ERROR),
        ("an even stream", frame(1, 5, 2, &headers("/status")), Reason::PROTOCOL_ERROR),
        ("headers that are not of HPACK", frame(1, 5, 1, &[0xFF; 40]), Reason::PROTOCOL_ERROR),
        (
            "a window that grows too far",
            frame(8, 0, 0, &0x7FFF_FFFF_u32.to_be_bytes()),
            Reason::FLOW_CONTROL_ERROR,
        ),
        ("settings of a request", frame(4, 0, 1, &[]), Reason::PROTOCOL_ERROR),
        (
            "a head that never ends",
            std::iter::once(frame(1, 1, 1, &headers("/status")))
                .chain((0..64).map(|_| frame(9, 0, 1, &long_list[..16 << 10])))
                .flatten()
                .collect(),
            Reason::ENHANCE_YOUR_CALM,
        ),
    ];
    for (what, bytes, reason) in cases {
        let mut socket = server.raw(&[PREFACE, &SETTINGS].concat()).await;
        let _ = socket.write_all(&bytes).await;
        assert_eq!(goodbye(&mut socket).await, reason, "{what}");
    }
    // HTTP/1.1 that asks for HTTP/2, as Java's client does, stays what it is.
    let asks = b"GET /status HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, http2-settings, close\r\n\
                 upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n";
    let mut rest = String::new();
    timeout(PATIENCE, server.raw(asks).await.read_to_string(&mut rest)).await.expect("an end").unwrap();
    assert!(rest.starts_with("HTTP/1.1 200"), "{rest}");
    let mut socket = server.raw(b"PRI * HTTP/2.0\r\n\r\nSMALL").await;
    let mut rest = String::new();
    let _ = timeout(PATIENCE, socket.read_to_string(&mut rest)).await.expect("the server closes");
    assert!(rest.starts_with("HTTP/1.1 400"), "{rest}");
    server.works().await;
}

#[tokio::test]
async fn a_long_head_is_refused_and_the_connection_goes_on() {
    let server = Server::start(WIDE, graph()).await;
    let mut client = server.client().await;
    let path = format!("/openCypher?query={}", "x".repeat(17 << 10));
    assert_eq!(client.ask(Method::GET, &path, "").await.0, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(client.ask(Method::GET, "/status", "").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_client_without_tls_is_told_in_http2() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::self_signed(vec!["localhost".to_owned()], &folder.path().join("c.pem")).unwrap();
    let server = Server::start(WIDE, Protocols { tls: Some(tls), ..graph() }).await;
    let (status, body) = server.client().await.ask(Method::GET, "/status", "").await;
    assert!(status == StatusCode::BAD_REQUEST && body.contains("this port speaks TLS"), "{status} {body}");
}
