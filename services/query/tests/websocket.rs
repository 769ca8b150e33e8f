//! Connections of WebSocket: what clients send, good and bad, and what they get.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use std::net::SocketAddr;
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_query::server::Protocols;
use tidegraph_query::{admission, http, server, session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// Time limit of every wait. It is generous, because other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);
const NEVER: Duration = Duration::from_secs(1_000_000);
const TOKEN: &str = "a token for drivers";
const ID: &str = "00000000-0000-0000-0000-000000000001";
const GRAPHSON: &str = "application/vnd.gremlin-v3.0+json";
const BINARY: &str = "application/vnd.graphbinary-v1.0";
/// Doubles a number of traversers this often; with 40 it never ends.
const ENDLESS: &str = "g.inject(0).repeat(union(identity(), identity())).times(40).count()";

/// Yields two to the power of 40 traversers, one after the other.
fn many() -> String {
    format!("g.inject(0){}", ".union(identity(), identity())".repeat(40))
}

const WIDE: server::Limits = server::Limits {
    connections: 1_000,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    write: NEVER,
    sessions: session::Limits { idle: NEVER, paused: NEVER },
};

struct Server {
    address: SocketAddr,
}

struct Client {
    socket: WebSocketStream<TcpStream>,
}

impl Server {
    async fn start(limits: server::Limits, token: Option<&str>) -> Self {
        Self::with_memory(256 << 20, limits, token).await
    }

    async fn with_memory(memory_total_bytes: u64, limits: server::Limits, token: Option<&str>) -> Self {
        let queries = http::Limits {
            body_bytes: 1 << 20,
            queries: admission::Limits { memory_total_bytes, ..admission::Limits::default() },
            ..http::Limits::default()
        };
        let service = http::Service::new(Database::open(Options::default()).unwrap(), queries);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sessions = Some(service.sessions(token.map(str::to_owned)));
        let http = service.guarded_router(token.map(str::to_owned));
        tokio::spawn(server::serve(
            listener,
            Protocols { http, sessions, tls: None },
            limits,
            std::future::pending(),
        ));
        Self { address }
    }

    async fn client(&self) -> Client {
        self.client_of("").await
    }

    /// Returns a client that names its driver.
    async fn client_of(&self, agent: &str) -> Client {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let mut request = format!("ws://{}/gremlin", self.address).into_client_request().unwrap();
        request.headers_mut().insert("user-agent", agent.parse().unwrap());
        let (socket, _) =
            timeout(PATIENCE, tokio_tungstenite::client_async(request, socket)).await.unwrap().unwrap();
        Client { socket }
    }

    /// Sends a request of HTTP and returns the answer's head and body.
    async fn http(&self, head: &str) -> String {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{head}\r\nhost: localhost\r\nconnection: close, upgrade\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    }

    /// Waits until no query runs and no memory is held.
    async fn becomes_free(&self) {
        let free = async {
            while !self.http("GET /status HTTP/1.1").await.contains("\"usedBytes\":0") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, free).await.unwrap();
    }

    /// Waits until a number of queries run.
    async fn runs(&self, count: usize) {
        let text = format!("\"runningQueryCount\":{count},");
        let running = async {
            while !self.http("GET /gremlin/status HTTP/1.1").await.contains(&text) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, running).await.unwrap();
    }
}

fn framed(format: &str, bytes: &[u8]) -> Message {
    Message::binary([&[format.len() as u8][..], format.as_bytes(), bytes].concat())
}

fn eval(text: &str, more: Json) -> Json {
    let mut args = json!({ "gremlin": text });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "requestId": { "@type": "g:UUID", "@value": ID }, "op": "eval", "processor": "", "args": args })
}

fn in_session(text: &str, name: &str) -> Json {
    let mut request = eval(text, json!({ "session": name }));
    request["processor"] = "session".into();
    request
}

impl Client {
    async fn send(&mut self, request: &Json) {
        self.socket.send(framed(GRAPHSON, request.to_string().as_bytes())).await.unwrap();
    }

    /// Returns the next message of the server; `None` if it has ended the connection.
    async fn next(&mut self) -> Option<Json> {
        match timeout(PATIENCE, self.socket.next()).await.unwrap() {
            Some(Ok(Message::Text(text))) => Some(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => None,
            Some(Ok(other)) => panic!("{other:?}"),
        }
    }

    async fn ask(&mut self, request: &Json) -> Json {
        self.send(request).await;
        self.next().await.unwrap()
    }

    /// Sends a request that is refused, and returns the number and the text of the refusal.
    async fn refusal(&mut self, message: Message) -> (u64, String) {
        self.socket.send(message).await.unwrap();
        match timeout(PATIENCE, self.socket.next()).await.unwrap().unwrap().unwrap() {
            Message::Text(text) => status(&serde_json::from_str(&text).unwrap()),
            Message::Binary(bytes) => {
                // A version, a flag and an id come before the number.
                let number = u32::from_be_bytes(bytes[18..22].try_into().unwrap());
                (number.into(), String::from_utf8_lossy(&bytes).into_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    async fn works(&mut self) {
        let answer = self.ask(&eval("g.inject(7)", json!({}))).await;
        assert_eq!(values(&answer), json!([{ "@type": "g:Int32", "@value": 7 }]), "{answer}");
    }

    /// Waits until the server ends the connection, and returns the reason that it gives.
    async fn ends(&mut self) -> Option<u16> {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}

fn status(answer: &Json) -> (u64, String) {
    let status = &answer["status"];
    (status["code"].as_u64().unwrap(), status["message"].as_str().unwrap().to_owned())
}

fn values(answer: &Json) -> Json {
    answer["result"]["data"]["@value"].clone()
}

#[tokio::test]
async fn a_request_speaks_the_version_of_its_language_or_of_its_driver() {
    let server = Server::start(WIDE, None).await;
    let (older, newer) = ("NotAvailable Gremlin-Python.3.7.5 3.12 Linux", "x Gremlin-Java.3.8.1 17 Linux");
    // A part of one item is the item in 3.7 and a list in 3.8.
    let text = "g.inject([1,2]).limit(local,1)";
    let cases = [
        ("", None, "g:List"),
        ("curl/8", Some("gremlin-lang"), "g:List"),
        (older, None, "g:Int32"),
        (older, Some("gremlin-groovy"), "g:Int32"),
        (older, Some("gremlin-lang-3.8"), "g:List"),
        (newer, None, "g:List"),
        (newer, Some("gremlin-lang-3.7"), "g:Int32"),
    ];
    for (agent, language, expected) in cases {
        let mut client = server.client_of(agent).await;
        let more = language.map_or_else(|| json!({}), |language| json!({ "language": language }));
        let answer = client.ask(&eval(text, more)).await;
        assert_eq!(values(&answer)[0]["@type"], expected, "{agent:?} {language:?}: {answer}");
        let asked = language.map_or_else(String::new, |language| format!("&language={language}"));
        let head = format!("GET /gremlin?gremlin={text}{asked} HTTP/1.1\r\nuser-agent: {agent}");
        let answer = server.http(&head).await;
        let values = format!("\"data\":{{\"@type\":\"g:List\",\"@value\":[{{\"@type\":\"{expected}\"");
        assert!(answer.contains(&values), "{agent:?} {language:?}: {answer}");
    }
    let mut client = server.client().await;
    let unknown = client.ask(&eval(text, json!({ "language": "gremlin-lang-2.6" }))).await;
    assert!(status(&unknown).1.contains("gremlin-lang-2.6"), "{unknown}");
}

#[tokio::test]
async fn answers_come_in_batches() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let text = "g.inject(1, 2, 3, 4, 5)";
    client.send(&eval(text, json!({ "batchSize": 2 }))).await;
    let mut sizes = vec![];
    loop {
        let answer = client.next().await.unwrap();
        assert_eq!(answer["requestId"], ID);
        sizes.push(values(&answer).as_array().unwrap().len());
        if status(&answer).0 == 200 {
            break;
        }
        assert_eq!(status(&answer).0, 206);
    }
    assert_eq!(sizes, [2, 2, 1]);
    let nothing = client.ask(&eval("g.V()", json!({}))).await;
    assert_eq!((status(&nothing).0, &nothing["result"]["data"]), (204, &Json::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_come_while_the_query_runs() {
    let server = Server::with_memory(16 << 20, WIDE, None).await;
    let mut client = server.client().await;
    client.send(&eval(&many(), json!({}))).await;
    for _ in 0..200 {
        let answer = client.next().await.unwrap();
        assert_eq!((status(&answer).0, values(&answer).as_array().unwrap().len()), (206, 256));
    }
    server.runs(1).await;
    // Others are answered between its batches.
    let mut quick = eval("g.inject(7)", json!({}));
    quick["requestId"] = "00000000-0000-0000-0000-000000000002".into();
    client.send(&quick).await;
    while client.next().await.unwrap()["requestId"] != quick["requestId"] {}
    drop(client);
    server.runs(0).await;
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_the_first_batches_is_the_last_message() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&eval(&many(), json!({}))).await;
    for _ in 0..10 {
        assert_eq!(status(&client.next().await.unwrap()).0, 206);
    }
    server.http(&format!("DELETE /gremlin/status/{ID} HTTP/1.1")).await;
    let last = loop {
        let answer = client.next().await.unwrap();
        if status(&answer).0 != 206 {
            break answer;
        }
    };
    assert_eq!((status(&last).0, &last["requestId"]), (597, &json!(ID)), "{last}");
    assert!(status(&last).1.contains("CancelledByUserException"), "{last}");
    client.works().await;
    server.becomes_free().await;
}

/// The id of a request beside another one.
const OTHER: &str = "00000000-0000-0000-0000-000000000002";

/// Reads until the request [`OTHER`] has ended; the request beside it was rolled back.
async fn is_rolled_back(client: &mut Client) {
    let mut failures = vec![];
    loop {
        let answer = client.next().await.unwrap();
        match (status(&answer).0, answer["requestId"] == OTHER) {
            (206, false) => {}
            (204, true) => break,
            (_, false) => failures.push(status(&answer)),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(&failures[..], [(597, said)] if said.contains("rolled back")), "{failures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_session_of_steps_ends_its_running_traversal() {
    let server = Server::with_memory(16 << 20, WIDE, None).await;
    let mut client = server.client().await;
    let mut steps = in_session("", "s");
    steps["op"] = "bytecode".into();
    steps["args"]["gremlin"] = json!({ "@type": "g:Bytecode", "@value": { "step": [["addV", "p"]] } });
    assert_eq!(status(&client.ask(&steps).await).0, 200);
    client.send(&in_session(&many(), "s")).await;
    for _ in 0..10 {
        assert_eq!(status(&client.next().await.unwrap()).0, 206);
    }
    let mut close = in_session("", "s");
    close["op"] = "close".into();
    close["requestId"] = OTHER.into();
    client.send(&close).await;
    is_rolled_back(&mut client).await;
    server.becomes_free().await;
    client.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_a_session_come_while_the_query_runs() {
    let server = Server::with_memory(16 << 20, WIDE, None).await;
    let mut client = server.client().await;
    assert_eq!(status(&client.ask(&in_session("g.addV('p')", "s")).await).0, 200);
    client.send(&in_session(&many(), "s")).await;
    for _ in 0..200 {
        let answer = client.next().await.unwrap();
        assert_eq!((status(&answer).0, values(&answer).as_array().unwrap().len()), (206, 256));
    }
    server.runs(1).await;
    // A rollback does not wait for the end of the answer.
    let mut rollback = in_session("g.tx().rollback()", "s");
    rollback["requestId"] = OTHER.into();
    client.send(&rollback).await;
    is_rolled_back(&mut client).await;
    server.becomes_free().await;
    // A query waits for the rows of the one before, and sees what it wrote.
    let values_of =
        "g.addV('p').iterate(); g.inject('a')".to_owned() + &".union(identity(), identity())".repeat(12);
    client.send(&in_session(&values_of, "s")).await;
    let mut count = in_session("g.V().hasLabel('p').count()", "s");
    count["requestId"] = OTHER.into();
    client.send(&count).await;
    let mut received = 0;
    let counted = loop {
        let answer = client.next().await.unwrap();
        if answer["requestId"] == OTHER {
            break answer;
        }
        received += values(&answer).as_array().unwrap().len();
    };
    assert_eq!((received, &values(&counted)[0]["@value"]), (4_096, &json!(1)));
    assert_eq!(status(&client.ask(&in_session("g.tx().commit()", "s")).await).0, 204);
    // The end of the connection ends the query of a session.
    client.send(&in_session(&many(), "s")).await;
    assert_eq!(status(&client.next().await.unwrap()).0, 206);
    drop(client);
    server.runs(0).await;
    server.becomes_free().await;
}

#[tokio::test]
async fn the_same_rows_in_every_format() {
    let server = Server::start(WIDE, None).await;
    let text = "g.addV('p').property(id, 'a').property('n', 1)";
    let request = eval(text, json!({ "materializeProperties": "all" })).to_string();
    let mut client = server.client().await;
    let mut get = async |format: &str, text: &str| {
        client.socket.send(framed(format, text.as_bytes())).await.unwrap();
        client.next().await.unwrap()
    };
    let third = get("application/json", &request).await;
    let vertex = &values(&third)[0];
    assert_eq!((&vertex["@type"], &vertex["@value"]["id"]), (&json!("g:Vertex"), &json!("a")));
    let read = eval("g.V('a')", json!({})).to_string();
    let second = get("application/vnd.gremlin-v2.0+json", &read).await;
    assert_eq!(second["result"]["data"][0]["@value"]["properties"]["n"][0]["@value"]["value"]["@value"], 1);
    for untyped in ["application/vnd.gremlin-v1.0+json", "application/vnd.gremlin-v3.0+json;types=false"] {
        let plain = get(untyped, &read).await;
        assert_eq!(plain["result"]["data"][0]["properties"]["n"][0]["value"], 1, "{plain}");
    }
    let tokens = eval("g.V('a')", json!({ "materializeProperties": "tokens" })).to_string();
    let shown = get(GRAPHSON, &tokens).await;
    assert_eq!(values(&shown)[0]["@value"], json!({ "id": "a", "label": "p" }));
    // The same without a head, in a message of text.
    client.socket.send(Message::text(read)).await.unwrap();
    assert_eq!(status(&client.next().await.unwrap()).0, 200);
}

#[tokio::test]
async fn what_is_wrong_is_said_and_the_connection_goes_on() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let op = |op: &str, args: Json| {
        let request = json!({ "requestId": ID, "op": op, "processor": "", "args": args });
        framed(GRAPHSON, request.to_string().as_bytes())
    };
    let bytecode = |steps: Json| {
        op("bytecode", json!({ "gremlin": { "@type": "g:Bytecode", "@value": { "step": steps } } }))
    };
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    // A message of GraphBinary with one argument, whose value follows.
    let binary = |value: &[u8]| {
        let head =
            [&[0x81][..], &[7; 16], b"\0\0\0\x04eval", b"\0\0\0\0", b"\0\0\0\x01", b"\x03\0\0\0\0\x01x"];
        framed(BINARY, &[&head.concat(), value].concat())
    };
    let deep_list = [9, 0, 0, 0, 0, 1].repeat(10_000);
    let refused = [
        (Message::binary(vec![]), 498, "length and the name of its format"),
        (Message::binary(vec![200, 1, 2]), 498, "length and the name of its format"),
        (framed("text/html", b""), 498, "there is no format"),
        (Message::text("hello"), 498, "not valid JSON"),
        (Message::text("[]"), 498, "not valid JSON"),
        (framed(GRAPHSON, deep.as_bytes()), 498, "not valid JSON"),
        (framed(GRAPHSON, b"{}"), 498, "requestId"),
        (framed(BINARY, b""), 498, "byte 0: the message ends"),
        (framed(BINARY, &[0x80; 40]), 498, "0x80 is not version 1"),
        (framed(BINARY, &[0x81; 40]), 498, "do not fit into"),
        (binary(&[9, 0, 0x7F, 0xFF, 0xFF, 0xFF]), 498, "2147483647 values do not fit into the 0 bytes"),
        (binary(&[3, 0, 0xFF, 0xFF, 0xFF, 0xFF]), 498, "-1 bytes do not fit"),
        (binary(&[3, 0, 0, 0, 0, 1, 0xFF]), 498, "not valid UTF-8"),
        (binary(&[0x77, 0]), 498, "0x77 is not a type"),
        (binary(&[1, 9]), 498, "0x09 does not say whether there is a value"),
        (binary(&[0x2B, 0]), 498, "values of the type Tree are not supported"),
        (binary(&[1, 0, 0, 0, 0, 1, 1]), 498, "goes on after its last value"),
        (binary(&deep_list), 498, "nested more than 128 deep"),
        (op("explode", json!({})), 498, "there is no operation"),
        (op("eval", json!({})), 499, "has a text in gremlin"),
        (op("eval", json!({ "gremlin": "g.V()", "language": "sql" })), 499, "language \"sql\""),
        (op("eval", json!({ "gremlin": "g.V()", "evaluationTimeout": "soon" })), 499, "evaluationTimeout"),
        (op("eval", json!({ "gremlin": "g.V()", "batchSize": 0 })), 499, "batchSize"),
        (
            op("eval", json!({ "gremlin": "g.V()", "aliases": { "g": "other" } })),
            499,
            "traversal source \"other\"",
        ),
        (op("eval", json!({ "gremlin": "1 + System.exit(1)" })), 597, "MalformedQueryException"),
        (op("eval", json!({ "gremlin": "g.tx().commit()" })), 499, "needs a session"),
        (op("bytecode", json!({ "gremlin": "g.V()" })), 499, "has bytecode in gremlin"),
        (bytecode(json!([["V"], ["explode"]])), 597, "unknown step explode()"),
        (bytecode(json!([["V().drop().V"]])), 499, "is not the name of a step"),
        (bytecode(json!([["map", { "@type": "g:Lambda", "@value": {} }]])), 499, "never evaluated"),
        (
            bytecode(json!([["V", { "@type": "g:Unheard", "@value": 1 }]])),
            498,
            "\"g:Unheard\" are not supported",
        ),
        (bytecode(json!([[7]])), 498, "is not a value of the type"),
    ];
    for (message, number, text) in refused {
        let (found, said) = client.refusal(message).await;
        let said = said.replace('\\', "");
        assert!(found == number && said.contains(text), "{found} {said}, expected {number} {text}");
    }
    client.works().await;
    server.becomes_free().await;
}

#[tokio::test]
async fn long_messages_end_the_connection() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let long = eval(&format!("g.inject('{}')", "x".repeat(2 << 20)), json!({})).to_string();
    client.socket.send(framed(GRAPHSON, long.as_bytes())).await.unwrap();
    assert!(matches!(client.ends().await, Some(1009) | None));
    server.client().await.works().await;
    server.becomes_free().await;
}

#[tokio::test]
async fn frames_that_are_wrong_end_the_connection() {
    let server = Server::start(WIDE, None).await;
    let masked = |head: &[u8]| [head, &[0; 4]].concat();
    let long = |bytes: u64| masked(&[&[0x82, 0xFF][..], &bytes.to_be_bytes()].concat());
    for (frame, code) in [
        // Lengths of 100 MB and of more than there is.
        (long(100_000_000), 1009),
        (long(u64::MAX >> 1), 1009),
        // A text that is not UTF-8.
        ([masked(&[0x81, 0x81]), vec![0xFF]].concat(), 1007),
        // Without a mask, of an unknown kind, with a reserved bit, and a part of a message that did not begin.
        (vec![0x82, 0x01, 0x00], 1002),
        (masked(&[0x83, 0x80]), 1002),
        (masked(&[0xC2, 0x80]), 1002),
        (masked(&[0x80, 0x80]), 1002),
    ] {
        let mut client = server.client().await;
        client.socket.get_mut().write_all(&frame).await.unwrap();
        assert_eq!(client.ends().await, Some(code), "{frame:?}");
    }
    // Frames of a message that never ends. The client writes until the server has closed.
    let client = server.client().await;
    let (mut reads, mut writes) = tokio::io::split(client.socket.into_inner());
    let part = |kind: u8| [masked(&[kind, 0xFE, 0xFF, 0xFF]), vec![0; 65_535]].concat();
    let closed = async {
        let mut kind = 0x02;
        while writes.write_all(&part(kind)).await.is_ok() {
            kind = 0;
        }
    };
    let drained = async {
        let mut bytes = vec![];
        let _ = reads.read_to_end(&mut bytes).await;
    };
    timeout(PATIENCE, async { tokio::join!(closed, drained) }).await.unwrap();
    server.client().await.works().await;
    server.becomes_free().await;
}

#[tokio::test]
async fn a_message_that_is_cut_is_refused() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let text = |text: &[u8]| [&[3, 0, 0, 0, 0, text.len() as u8][..], text].concat();
    let whole = [
        &[0x81][..],
        &[7; 16],
        b"\0\0\0\x04eval\0\0\0\0\0\0\0\x01",
        &text(b"gremlin"),
        &text(b"g.inject(7)"),
    ]
    .concat();
    for end in 0..whole.len() {
        let (number, said) = client.refusal(framed(BINARY, &whole[..end])).await;
        assert_eq!(number, 498, "{end} bytes: {said}");
    }
    client.works().await;
    // A client that leaves in the middle of a frame.
    let frame = [&[0x82, 0x80 | 100, 1, 2, 3, 4][..], &[0; 100]].concat();
    for end in [1, 2, 5, 6, 105] {
        let mut leaves = server.client().await;
        leaves.socket.get_mut().write_all(&frame[..end]).await.unwrap();
    }
    client.works().await;
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_no_values_is_closed() {
    let limits = server::Limits { write: Duration::from_millis(200), ..WIDE };
    let server = Server::with_memory(16 << 20, limits, None).await;
    for request in [eval(&many(), json!({})), in_session(&many(), "s")] {
        let mut client = server.client().await;
        client.send(&request).await;
        let mut begin = [0; 1_000];
        let socket = client.socket.get_mut();
        while timeout(PATIENCE, socket.peek(&mut begin)).await.unwrap().unwrap() < begin.len() {}
        server.runs(0).await;
        server.becomes_free().await;
    }
}

#[tokio::test]
async fn messages_count_as_memory_of_the_queries() {
    let server = Server::with_memory(600 << 10, WIDE, None).await;
    let mut client = server.client().await;
    let long = eval(&format!("g.inject('{}')", "x".repeat(900 << 10)), json!({})).to_string();
    client.socket.send(framed(GRAPHSON, long.as_bytes())).await.unwrap();
    // 1013: try again later. A client that still writes may find the connection broken.
    assert!(matches!(client.ends().await, Some(1013) | None));
    server.becomes_free().await;
    server.client().await.works().await;
}

#[tokio::test]
async fn a_query_ends_with_its_connection() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&eval(ENDLESS, json!({}))).await;
    server.runs(1).await;
    drop(client);
    server.runs(0).await;
    server.becomes_free().await;
}

#[tokio::test]
async fn a_slow_request_does_not_hold_up_others() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    client.send(&eval(ENDLESS, json!({}))).await;
    server.runs(1).await;
    let mut quick = eval("g.inject(7)", json!({}));
    quick["requestId"] = "00000000-0000-0000-0000-000000000002".into();
    let answer = client.ask(&quick).await;
    assert_eq!(answer["requestId"], quick["requestId"]);
    // A ping is answered too.
    client.socket.send(Message::Ping("are you there".into())).await.unwrap();
    let pong = timeout(PATIENCE, client.socket.next()).await.unwrap();
    assert!(matches!(pong, Some(Ok(Message::Pong(_)))), "{pong:?}");
}

fn password(password: &str) -> Json {
    let sasl = STANDARD.encode(format!("\0anybody\0{password}"));
    json!({ "requestId": ID, "op": "authentication", "args": { "sasl": sasl, "saslMechanism": "PLAIN" } })
}

#[tokio::test]
async fn a_client_proves_itself_before_it_asks() {
    let server = Server::start(WIDE, Some(TOKEN)).await;
    let mut client = server.client().await;
    let request = eval("g.inject(7)", json!({}));
    for _ in 0..2 {
        let asked = client.ask(&request).await;
        assert_eq!(status(&asked).0, 407);
        let refused = client.ask(&password("wrong")).await;
        assert_eq!((status(&refused).0, &refused["requestId"]), (401, &json!(ID)));
    }
    assert_eq!(status(&client.ask(&request).await).0, 407);
    // A request that is sent meanwhile waits.
    let mut second = request.clone();
    second["requestId"] = "00000000-0000-0000-0000-000000000002".into();
    client.send(&second).await;
    client.send(&password(TOKEN)).await;
    let answered = [client.next().await.unwrap(), client.next().await.unwrap()];
    assert!(answered.iter().all(|answer| status(answer).0 == 200), "{answered:?}");
    assert_ne!(answered[0]["requestId"], answered[1]["requestId"]);
    client.works().await;

    let mut guesser = server.client().await;
    for _ in 0..3 {
        assert_eq!(status(&guesser.ask(&password("guessed")).await).0, 401);
    }
    assert_eq!(guesser.ends().await, Some(1008));

    let mut long = server.client().await;
    let message = eval(&format!("g.inject('{}')", "x".repeat(100 << 10)), json!({})).to_string();
    long.socket.send(framed(GRAPHSON, message.as_bytes())).await.unwrap();
    assert!(matches!(long.ends().await, Some(1009) | None));

    let mut many = server.client().await;
    for _ in 0..64 {
        many.send(&request).await;
    }
    many.send(&request).await;
    assert_eq!(many.ends().await, Some(1008));
}

#[tokio::test]
async fn only_the_drivers_path_is_open_without_a_token() {
    let server = Server::start(WIDE, Some(TOKEN)).await;
    let key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    let upgrade = format!("upgrade: websocket\r\nsec-websocket-version: 13\r\n{key}");
    for request in ["GET /status", "GET /openCypher?query=RETURN%201", "POST /gremlin", "GET /gremlin/status"]
    {
        let answer = server.http(&format!("{request} HTTP/1.1\r\n{upgrade}")).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{request}: {answer}");
    }
    let answer = server.http("GET /gremlin?gremlin=g.V() HTTP/1.1").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let answer = server.http("GET /gremlin HTTP/1.1\r\nauthorization: Bearer wrong").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let incomplete = [
        (format!("upgrade: websocket\r\n{key}"), "version 13"),
        ("upgrade: websocket\r\nsec-websocket-version: 13".to_owned(), "Sec-WebSocket-Key"),
    ];
    for (headers, text) in incomplete {
        let answer = server.http(&format!("GET /gremlin HTTP/1.1\r\n{headers}")).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(text), "{answer}");
    }
}

#[tokio::test]
async fn clients_that_do_nothing_are_closed() {
    let soon = Duration::from_millis(100);
    let limits = server::Limits { sessions: session::Limits { idle: soon, paused: NEVER }, ..WIDE };
    let server = Server::start(limits, None).await;
    assert_eq!(server.client().await.ends().await, None);

    // A message that has begun and does not go on.
    let limits = server::Limits { head: soon, body: soon, ..WIDE };
    let server = Server::start(limits, None).await;
    let mut client = server.client().await;
    client.socket.get_mut().write_all(&[0x82, 0xFE, 0x10]).await.unwrap();
    assert_eq!(client.ends().await, None);
    let mut client = server.client().await;
    let begun = [&[0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4][..], &[0; 30_000]].concat();
    client.socket.get_mut().write_all(&begun).await.unwrap();
    assert_eq!(client.ends().await, None);

    // One that does not prove itself.
    let limits = server::Limits { idle: soon, ..WIDE };
    let server = Server::start(limits, Some(TOKEN)).await;
    assert_eq!(server.client().await.ends().await, None);

    // One whose transaction stays open.
    let limits = server::Limits { sessions: session::Limits { idle: NEVER, paused: soon }, ..WIDE };
    let server = Server::start(limits, None).await;
    let mut client = server.client().await;
    client.ask(&in_session("g.addV('left')", "s")).await;
    assert_eq!(client.ends().await, None);
    let answer = server.client().await.ask(&eval("g.V().hasLabel('left').count()", json!({}))).await;
    assert_eq!(values(&answer)[0]["@value"], 0);
    server.becomes_free().await;
}

#[tokio::test]
async fn a_session_is_one_transaction() {
    let server = Server::start(WIDE, None).await;
    let (mut client, mut other) = (server.client().await, server.client().await);
    let count = eval("g.V().hasLabel('p').count()", json!({}));
    client.ask(&in_session("g.addV('p')", "s")).await;
    assert_eq!(values(&client.ask(&in_session("g.V().hasLabel('p').count()", "s")).await)[0]["@value"], 1);
    assert_eq!(values(&other.ask(&count).await)[0]["@value"], 0);
    assert_eq!(status(&client.ask(&in_session("g.tx().commit()", "s")).await).0, 204);
    assert_eq!(values(&other.ask(&count).await)[0]["@value"], 1);

    // A failure ends the transaction, and nothing of it is committed later.
    client.ask(&in_session("g.addV('p')", "s")).await;
    assert_eq!(status(&client.ask(&in_session("g.V(", "s")).await).0, 597);
    for text in ["g.addV('p')", "g.tx().commit()"] {
        let (number, said) = status(&client.ask(&in_session(text, "s")).await);
        assert!(number == 597 && said.contains("roll it back"), "{said}");
    }
    assert_eq!(status(&client.ask(&in_session("g.tx().rollback()", "s")).await).0, 204);
    assert_eq!(values(&other.ask(&count).await)[0]["@value"], 1);

    // Each request a transaction of its own.
    let mut managed = in_session("g.addV('p')", "managed");
    managed["args"]["manageTransaction"] = true.into();
    client.ask(&managed).await;
    assert_eq!(values(&other.ask(&count).await)[0]["@value"], 2);

    // The end of a session commits what scripts wrote, the end of its connection does not.
    client.ask(&in_session("g.addV('p')", "s")).await;
    let close = json!({ "requestId": ID, "op": "close", "processor": "session", "args": { "session": "s" } });
    assert_eq!(status(&client.ask(&close).await).0, 204);
    assert_eq!(values(&other.ask(&count).await)[0]["@value"], 3);
    client.ask(&in_session("g.addV('p')", "s")).await;
    drop(client);
    server.becomes_free().await;
    assert_eq!(values(&other.ask(&count).await)[0]["@value"], 3);

    let mut many = server.client().await;
    for name in 0..64 {
        assert_eq!(status(&many.ask(&in_session("g.inject(1)", &name.to_string())).await).0, 200);
    }
    let (number, said) = status(&many.ask(&in_session("g.inject(1)", "one more")).await);
    assert!(number == 596 && said.contains("64 sessions"), "{said}");
}
