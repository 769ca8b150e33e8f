//! Several graphs at one port, over sockets: paths, roles, WebSocket, metrics, and graphs that are not there.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets and write files")]

use aws_credential_types::Credentials;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_platform::RealClock;
use tidegraph_query::authentication::{Authentication, Entry, Signers, Users, UsersFile, hash};
use tidegraph_query::http::{Graphs, Limits};
use tidegraph_query::server::Protocols;
use tidegraph_query::{server, session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// Time limit of every wait. It is generous, because other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);
const NEVER: Duration = Duration::from_secs(1_000_000);
const GRAPHSON: &str = "application/vnd.gremlin-v3.0+json";

const WIDE: server::Limits = server::Limits {
    connections: 1_000,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    write: NEVER,
    sessions: session::Limits { idle: NEVER, paused: NEVER },
};

struct Service {
    address: SocketAddr,
    graphs: Graphs,
}

impl Service {
    /// A service with graphs of which none is open.
    async fn closed(names: &[&str], authentication: Authentication) -> Self {
        Self::within(Limits::default(), names, authentication).await
    }

    async fn within(limits: Limits, names: &[&str], authentication: Authentication) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let graphs = Graphs::new(&names, limits, authentication, None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let protocols = Protocols { http: graphs.router(), sessions: Some(graphs.sessions()), tls: None };
        tokio::spawn(server::serve(listener, protocols, WIDE, std::future::pending()));
        Self { address, graphs }
    }

    async fn open(names: &[&str], authentication: Authentication) -> Self {
        Self::closed(names, authentication).await.with_data(names)
    }

    /// Opens the graphs.
    fn with_data(self, names: &[&str]) -> Self {
        for name in names {
            self.graphs.open(name, Database::open(Options::default()).unwrap());
        }
        self
    }

    /// Sends a request, and returns the status, the head and the body of its answer.
    async fn ask(&self, head: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    async fn query(&self, path: &str, user: Option<&str>, text: &str) -> (u16, String) {
        let authorization =
            user.map(|user| format!("Basic {}", STANDARD.encode(format!("{user}:{PASSWORD}"))));
        let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
        let (status, _, body) =
            self.ask(&format!("POST {path}/openCypher"), &headers, &format!("query={text}")).await;
        (status, body)
    }

    /// Returns the number of vertices that a path has.
    async fn count(&self, path: &str) -> i64 {
        let (status, body) = self.query(path, None, "MATCH (n) RETURN count(n) AS n").await;
        assert_eq!(status, 200, "{body}");
        let at = body.find("\"n\":").unwrap() + 4;
        body[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    }

    async fn web_socket(&self, path: &str) -> WebSocketStream<TcpStream> {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        timeout(PATIENCE, tokio_tungstenite::client_async(request, socket)).await.unwrap().unwrap().0
    }
}

const PASSWORD: &str = "a password of a test";

fn secret_file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file.json");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    (home, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_have_paths_and_data_of_their_own() {
    let service = Service::open(&["orders", "people"], Authentication::Off).await;
    for (path, vertices) in [("", 2), ("/graph/people", 3)] {
        let (status, body) =
            service.query(path, None, &format!("UNWIND range(1, {vertices}) AS i CREATE (:V)")).await;
        assert_eq!(status, 200, "{body}");
    }
    // The first one is the default, and has its name too.
    for (path, vertices) in [("", 2), ("/graph/orders", 2), ("/graph/people", 3)] {
        assert_eq!(service.count(path).await, vertices, "{path}");
    }
    let (status, _, body) = service.ask("POST /graph/people/gremlin", &[], "gremlin=g.V().count()").await;
    assert!(status == 200 && body.contains("\"@value\":3"), "{body}");
    let (status, _, body) = service.ask("GET /graph/people/status?x=1", &[], "").await;
    assert!(status == 200 && body.contains("healthy"), "{status}: {body}");
    let (status, _, body) = service.ask("GET /graph/people/openCypher?query=RETURN%207", &[], "").await;
    assert!(status == 200 && body.contains('7'), "{body}");
    // A graph of another name does not answer for it, and lists of queries and loads are apart.
    let (status, _, body) = service.ask("GET /graph/people/no/such/path", &[], "").await;
    assert!(status == 404 && body.contains("/no/such/path"), "{body}");
    let (_, _, metrics) = service.ask("GET /metrics", &[], "").await;
    assert!(metrics.contains("tidegraph_version"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_with_a_quota_has_a_part_of_the_memory() {
    let mut limits = Limits::default();
    limits.queries.memory_total_bytes = 512 << 20;
    limits.queries.graph_quotas.insert("small".into(), 1);
    let names = ["large", "small"];
    let service = Service::within(limits, &names, Authentication::Off).await.with_data(&names);
    let list = "UNWIND range(1, 1000000) AS n WITH collect(n) AS all RETURN size(all) AS n";
    let (status, body) = service.query("/graph/small", None, list).await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("MemoryLimitExceededException") && body.contains("--graph-quota"), "{body}");
    let (status, body) = service.query("/graph/large", None, list).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("1000000"), "{body}");
    let (status, body) = service.query("/graph/small", None, "RETURN 1 AS n").await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_names_no_graph_is_refused_by_its_name() {
    let service = Service::open(&["orders", "people"], Authentication::Off).await;
    let long = "x".repeat(65);
    for (name, expected, code) in [
        ("nobody", 404, "nobody"),
        ("Orders", 404, "Orders"),
        ("orders2", 404, "orders2"),
        (".", 400, "\\\".\\\""),
        ("..", 400, ".."),
        (".people", 400, ".people"),
        ("a%2Fb", 400, "a%2Fb"),
        ("%C3%BC", 400, "%C3%BC"),
        (long.as_str(), 400, long.as_str()),
    ] {
        let (status, _, body) =
            service.ask(&format!("POST /graph/{name}/openCypher"), &[], "query=RETURN 1").await;
        assert!(status == expected && body.contains(code), "{name}: {status} {body}");
    }
    for path in ["/graph", "/graph/", "/graph//openCypher", "/graph/people"] {
        let (status, _, body) = service.ask(&format!("GET {path}"), &[], "").await;
        assert_eq!(status, 404, "{path}: {body}");
    }
    assert_eq!(service.count("/graph/people").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_come_and_go_beside_each_other() {
    let service = Service::closed(&["orders", "people"], Authentication::Off).await;
    let (status, head, _) = service.ask("GET /graph/people/status", &[], "").await;
    assert!(status == 503 && head.contains("retry-after"), "{head}");
    // The default graph is not there, another one is.
    service.graphs.open("people", Database::open(Options::default()).unwrap());
    assert_eq!(service.count("/graph/people").await, 0);
    assert_eq!(service.ask("GET /status", &[], "").await.0, 503);
    let mut people = service.web_socket("/graph/people/gremlin").await;
    assert_eq!(gremlin(&mut people, "g.inject(7)").await, 200);
    // A graph that this service does not have is not opened.
    service.graphs.open("nobody", Database::open(Options::default()).unwrap());
    service.graphs.open("orders", Database::open(Options::default()).unwrap());
    assert_eq!(service.ask("GET /graph/nobody/status", &[], "").await.0, 404);
    service.graphs.close("people");
    let (status, _, body) = service.ask("GET /graph/people/status", &[], "").await;
    assert!(status == 404 && body.contains("people"), "{body}");
    assert_eq!(service.count("").await, 0);
    service.graphs.open("people", Database::open(Options::default()).unwrap());
    assert_eq!(service.count("/graph/people").await, 0);
}

/// Asks over WebSocket, and returns the status of the answer.
async fn gremlin(socket: &mut WebSocketStream<TcpStream>, text: &str) -> u64 {
    let id = json!({ "@type": "g:UUID", "@value": "00000000-0000-0000-0000-000000000001" });
    let request = json!({ "requestId": id, "op": "eval", "processor": "", "args": { "gremlin": text } });
    let bytes = [&[GRAPHSON.len() as u8][..], GRAPHSON.as_bytes(), request.to_string().as_bytes()].concat();
    socket.send(Message::binary(bytes)).await.unwrap();
    match timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap() {
        Message::Text(text) => {
            let answer: Json = serde_json::from_str(&text).unwrap();
            answer["status"]["code"].as_u64().unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_of_gremlin_choose_a_graph_with_their_path() {
    let service = Service::open(&["orders", "people"], Authentication::Off).await;
    let mut people = service.web_socket("/graph/people/gremlin").await;
    assert!(matches!(gremlin(&mut people, "g.addV('Person')").await, 200 | 204));
    let mut orders = service.web_socket("/gremlin").await;
    assert!(matches!(gremlin(&mut orders, "g.addV('Order').addV('Order')").await, 200 | 204));
    assert_eq!((service.count("/graph/people").await, service.count("").await), (1, 2));
    let socket = TcpStream::connect(service.address).await.unwrap();
    let nobody = format!("ws://{}/graph/nobody/gremlin", service.address).into_client_request().unwrap();
    let refused = tokio_tungstenite::client_async(nobody, socket).await.unwrap_err().to_string();
    assert!(refused.contains("404"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_in_one_graph_are_none_in_another() {
    let hashed = hash(PASSWORD).unwrap();
    let user = |name: &str, roles: &[&str]| Entry {
        name: name.into(),
        password: hashed.clone(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    };
    let users = [
        user("ada", &["orders:admin", "people:read"]),
        user("bob", &["people:write"]),
        user("root", &["admin"]),
    ];
    let (_home, file) = secret_file(&serde_json::to_string(&UsersFile { users: users.into() }).unwrap());
    let users = Users::read(&file, Arc::new(RealClock::new())).unwrap();
    let service = Service::open(&["orders", "people"], Authentication::Users(users)).await;
    let (read, write) = ("MATCH (n) RETURN count(n) AS n", "CREATE (:V)");
    for (user, path, text, expected) in [
        ("ada", "", write, 200),
        ("ada", "/graph/orders", write, 200),
        ("ada", "/graph/people", read, 200),
        ("ada", "/graph/people", write, 403),
        ("bob", "/graph/people", write, 200),
        ("bob", "", read, 403),
        ("bob", "/graph/orders", read, 403),
        ("root", "/graph/people", write, 200),
        ("root", "", write, 200),
    ] {
        let (status, body) = service.query(path, Some(user), text).await;
        assert_eq!(status, expected, "{user} {path} {text}: {body}");
        assert!(status == 200 || body.contains(user), "{body}");
    }
    // Who proves nothing does not learn which graphs there are.
    for graph in ["people", "nobody"] {
        let (status, body) = service.query(&format!("/graph/{graph}"), None, read).await;
        assert_eq!(status, 401, "{body}");
    }
    let (status, body) = service.query("/graph/nobody", Some("bob"), read).await;
    assert!(status == 404 && body.contains("nobody"), "{body}");
    // Other paths need their roles in the graph too.
    let bob = format!("Basic {}", STANDARD.encode(format!("bob:{PASSWORD}")));
    for (path, expected) in [("/graph/people/summary", 200), ("/summary", 403), ("/graph/people/loader", 403)]
    {
        let (status, _, body) = service.ask(&format!("GET {path}"), &[("authorization", &bob)], "").await;
        assert_eq!(status, expected, "{path}: {body}");
    }
}

/// The path that is signed is the one that was sent, with the name of the graph.
#[tokio::test(flavor = "multi_thread")]
async fn signed_requests_sign_the_name_of_their_graph() {
    let (id, secret) = ("AKIDPEOPLE", "a secret of a test that nobody uses");
    let keys = json!({ "credentials": [{ "accessKeyId": id, "secretAccessKey": secret, "roles": ["people:read"] }] });
    let (_home, file) = secret_file(&keys.to_string());
    let signers = Signers::read(&file, "eu-central-1".into()).unwrap();
    let service = Service::open(&["orders", "people"], Authentication::SigV4(signers)).await;
    let ask = async |signed: &str, sent: &str| {
        let headers = sign(Credentials::new(id, secret, None, None, "test"), signed);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (status, _, body) = service.ask(&format!("GET {sent}"), &headers, "").await;
        (status, body)
    };
    let of_people = "/graph/people/openCypher?query=RETURN%207";
    let (status, body) = ask(of_people, of_people).await;
    assert!(status == 200 && body.contains('7'), "{body}");
    let of_orders = "/graph/orders/openCypher?query=RETURN%207";
    let (status, body) = ask(of_orders, of_orders).await;
    assert!(status == 403 && body.contains(id), "{body}");
    // A signature for one graph is none for another.
    for sent in [of_orders, "/openCypher?query=RETURN%207"] {
        let (status, body) = ask(of_people, sent).await;
        assert!(status == 403 && body.contains("signature"), "{body}");
    }
}

/// Returns the headers of a signed GET without a body.
fn sign(credentials: Credentials, target: &str) -> Vec<(String, String)> {
    use aws_sigv4::http_request::{
        PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign,
    };
    use aws_sigv4::sign::v4;
    let identity = credentials.into();
    let mut settings = SigningSettings::default();
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region("eu-central-1")
        .name("neptune-db")
        .time(std::time::SystemTime::now())
        .settings(settings)
        .build()
        .unwrap()
        .into();
    let url = format!("http://localhost{target}");
    let headers = std::iter::once(("host", "localhost"));
    let request = SignableRequest::new("GET", url, headers, SignableBody::Bytes(b"")).unwrap();
    let (instructions, _) = sign(request, &params).unwrap().into_parts();
    instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
