//! Tests that a slow client holds neither connections and descriptors nor the end of the service for long.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the tests are clients, which open sockets and start the program"
)]

use axum::Router;
use axum::routing::get;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_query::authentication::Authentication;
use tidegraph_query::{http, server, session};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Time limit of every wait. It is generous, because other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);
const SOON: Duration = Duration::from_millis(200);
const NEVER: Duration = Duration::from_secs(1_000_000);

/// Limits that no test reaches.
const WIDE: server::Limits = server::Limits {
    connections: 1_000,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    write: NEVER,
    sessions: session::Limits { idle: NEVER, paused: NEVER },
};

const ASK: &[u8] = b"GET /status HTTP/1.1\r\nhost: localhost\r\n\r\n";
const HALF_BODY: &[u8] =
    b"POST /openCypher HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nquery=RET";

/// A server that ends when `stop` is sent.
struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl Server {
    async fn start(limits: server::Limits, router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server::serve(listener, router, limits, async move {
            let _ = stopped.await;
        }));
        Self { address, stop, ended }
    }

    /// A client that has sent some bytes.
    async fn client(&self, bytes: &[u8]) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        socket
    }

    /// Stops the server and waits for the end of its connections.
    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(PATIENCE, self.ended).await.expect("the server ends").unwrap();
    }
}

fn graph() -> Router {
    let database = Database::open(Options::default()).unwrap();
    http::Service::new(database, http::Limits::default()).router()
}

/// Reads until the server closes the connection.
async fn rest(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read =
        timeout(PATIENCE, socket.read_to_end(&mut bytes)).await.expect("the server closes the connection");
    // A connection that is closed with unread bytes is reset.
    assert!(read.is_ok() || bytes.is_empty(), "{read:?} after {} bytes", bytes.len());
    String::from_utf8(bytes).unwrap()
}

/// Reads the answer to a request for `/status`.
async fn answer(socket: &mut TcpStream) -> String {
    let mut socket = BufReader::new(socket);
    let (mut first, mut length) = (String::new(), 0);
    timeout(PATIENCE, socket.read_line(&mut first)).await.expect("an answer").unwrap();
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.unwrap();
    first
}

#[tokio::test]
async fn connections_without_a_whole_head_are_closed() {
    let server = Server::start(server::Limits { head: SOON, ..WIDE }, graph()).await;
    let mut clients = Vec::new();
    for bytes in [&b""[..], b"GET", b"GET /status HTTP/1.1\r\nhost: loc"].iter().cycle().take(60) {
        clients.push(server.client(bytes).await);
    }
    for client in &mut clients {
        assert_eq!(rest(client).await, "");
    }
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_has_the_same_deadline() {
    let server = Server::start(server::Limits { head: SOON, ..WIDE }, graph()).await;
    let client = server.client(b"GET /status HTTP/1.1\r\nx: ").await;
    let (mut reads, mut writes) = client.into_split();
    let drip = async move {
        while writes.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SOON / 20).await
        }
    };
    let closed = async move { reads.read(&mut [0; 16]).await.unwrap_or(0) };
    let closed = timeout(PATIENCE, async {
        tokio::select! { () = drip => 0, bytes = closed => bytes }
    });
    assert_eq!(closed.await.expect("the server closes the connection"), 0);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_answered_with_408() {
    let server = Server::start(server::Limits { body: SOON, ..WIDE }, graph()).await;
    for request in [
        HALF_BODY,
        b"POST /gremlin HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n9\r\ngremlin=g\r\n",
    ] {
        let answer = rest(&mut server.client(request).await).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("TimeLimitExceededException") && answer.contains("200 ms"), "{answer}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_the_next_request_has_its_own_deadline() {
    let server = Server::start(server::Limits { idle: SOON, ..WIDE }, graph()).await;
    let mut client = server.client(ASK).await;
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(&mut client).await, "");
    let server = Server::start(server::Limits { head: SOON, ..WIDE }, graph()).await;
    let mut client = server.client(ASK).await;
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200"));
    client.write_all(b"GET /sta").await.unwrap();
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn a_client_that_takes_no_bytes_of_its_answer_is_closed() {
    let large = Router::new().route("/status", get(|| async { vec![b'x'; 64 << 20] }));
    let server = Server::start(server::Limits { write: SOON, ..WIDE }, large).await;
    let mut client = server.client(ASK).await;
    client.read_exact(&mut [0; 16]).await.unwrap();
    // The server ends only once the connection has.
    server.stop().await;
}

#[tokio::test]
async fn connections_stay_when_the_graph_is_there() {
    let names = [http::DEFAULT_GRAPH.to_owned()];
    let graphs = http::Graphs::new(&names, http::Limits::default(), Authentication::Off, None).unwrap();
    let server = Server::start(WIDE, graphs.router()).await;
    let mut asked = server.client(ASK).await;
    assert!(answer(&mut asked).await.starts_with("HTTP/1.1 503"));
    let mut silent = server.client(b"").await;
    let mut half = server.client(&ASK[..20]).await;
    // Each of them is accepted before the graph is open.
    let mut last = server.client(ASK).await;
    assert!(answer(&mut last).await.starts_with("HTTP/1.1 503"));
    graphs.open(http::DEFAULT_GRAPH, Database::open(Options::default()).unwrap());
    half.write_all(&ASK[20..]).await.unwrap();
    for early in [&mut asked, &mut silent, &mut last] {
        early.write_all(ASK).await.unwrap();
        assert!(answer(early).await.starts_with("HTTP/1.1 200"));
    }
    assert!(answer(&mut half).await.starts_with("HTTP/1.1 200"));
    server.stop().await;
}

#[tokio::test]
async fn the_oldest_idle_connection_makes_room() {
    let server = Server::start(server::Limits { connections: 3, ..WIDE }, graph()).await;
    let mut sends_body = server.client(HALF_BODY).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(server.client(ASK).await);
        answer(clients.last_mut().unwrap()).await;
    }
    let mut newest = server.client(ASK).await;
    assert!(answer(&mut newest).await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(&mut clients[0]).await, "");
    clients[1].write_all(ASK).await.unwrap();
    assert!(answer(&mut clients[1]).await.starts_with("HTTP/1.1 200"));
    // A connection whose body arrives is not idle. It is closed only if no idle connection is left.
    sends_body.write_all(&[b' '; 91]).await.unwrap();
    assert!(answer(&mut sends_body).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn many_idle_connections_lock_nobody_out() {
    let server = Server::start(server::Limits { connections: 4, ..WIDE }, graph()).await;
    let mut idle = Vec::new();
    for bytes in [&b"GET"[..], HALF_BODY].iter().cycle().take(40) {
        idle.push(server.client(bytes).await);
    }
    let mut client = server.client(ASK).await;
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_running_request_is_never_closed_for_room() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let shared = (begun.clone(), go_on.clone());
    let slow = get(move || async move {
        shared.0.notify_one();
        shared.1.notified().await;
        "done"
    });
    let router = graph().route("/slow", slow);
    let server = Server::start(server::Limits { connections: 1, ..WIDE }, router).await;
    let mut first = server.client(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    timeout(PATIENCE, begun.notified()).await.unwrap();
    let mut second = server.client(ASK).await;
    go_on.notify_one();
    assert!(answer(&mut first).await.starts_with("HTTP/1.1 200"));
    assert!(answer(&mut second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn connections_that_wait_for_clients_do_not_delay_the_end() {
    let server = Server::start(WIDE, graph()).await;
    let head = b"POST /openCypher HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 100\r\n\r\n";
    let mut half_body = server.client(head).await;
    // The service says that it waits for the body.
    let mut go_on = [0; 25];
    half_body.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    let mut half_head = server.client(b"GET /st").await;
    let mut idle = server.client(ASK).await;
    answer(&mut idle).await;
    server.stop().await;
    let late = rest(&mut half_body).await;
    assert!(late.starts_with("HTTP/1.1 503 ") && late.contains("stopping"), "{late}");
    assert_eq!((rest(&mut half_head).await, rest(&mut idle).await), (String::new(), String::new()));
}

#[test]
fn a_part_of_the_descriptors_is_kept_for_files() {
    let cases = [(0, 1), (33, 1), (64, 32), (256, 192), (1_024, 768), (u64::MAX, 10_000)];
    for (descriptors, connections) in cases {
        assert_eq!(server::connections_for(descriptors), connections, "{descriptors} descriptors");
    }
}

/// A process that is killed at the end of a test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_service_with_64_descriptors_answers_beside_200_idle_connections() {
    let program = env!("CARGO_BIN_EXE_tidegraph");
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -n 64; exec \"$0\" serve --port 0", program]);
    let mut process = Process(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let stdout = process.0.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let address = line.trim().rsplit('/').next().unwrap().to_owned();
    let mut idle = Vec::new();
    for _ in 0..200 {
        let connected = timeout(PATIENCE, TcpStream::connect(&address)).await;
        idle.push(connected.expect("room for a connection").unwrap());
    }
    let mut client = TcpStream::connect(&address).await.unwrap();
    client.write_all(ASK).await.unwrap();
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200"));
}

/// A client that is refused before it has sent its body must not send its next request on the same connection.
#[tokio::test]
async fn an_answer_before_the_whole_body_says_that_the_connection_ends() {
    let database = Database::open(Options::default()).unwrap();
    let token = Some("a-token-of-sixteen-and-more".to_owned());
    let router = http::Service::new(database, http::Limits::default()).guarded_router(token);
    let server = Server::start(WIDE, router).await;
    let refused = rest(&mut server.client(HALF_BODY).await).await;
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("connection: close\r\n"), "{refused}");
    // A refusal of a request without a body keeps the connection.
    let mut socket = server.client(ASK).await;
    for _ in 0..2 {
        assert!(answer(&mut socket).await.starts_with("HTTP/1.1 403 "));
        socket.write_all(ASK).await.unwrap();
    }
    drop(socket);
    server.stop().await;
}
