//! TLS on the port: all protocols inside, and what happens to clients without it.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests are clients, which open sockets and write files")]

use futures_util::{SinkExt, StreamExt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Options};
use tidegraph_query::server::{CertificateFiles, Protocols, Tls};
use tidegraph_query::{http, server, session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;

/// Time limit of every wait. It is generous, because other programs may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);
const NEVER: Duration = Duration::from_secs(1_000_000);

const WIDE: server::Limits = server::Limits {
    connections: 1_000,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    write: NEVER,
    sessions: session::Limits { idle: NEVER, paused: NEVER },
};

async fn start(tls: Option<Tls>, limits: server::Limits) -> SocketAddr {
    let service = http::Service::new(Database::open(Options::default()).unwrap(), http::Limits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sessions = Some(service.sessions(None));
    let protocols = Protocols { http: service.router(), sessions, tls };
    tokio::spawn(server::serve(listener, protocols, limits, std::future::pending()));
    address
}

fn trusting(pem: &Path, protocols: &[&[u8]]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn connect(address: SocketAddr, connector: &TlsConnector) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    timeout(PATIENCE, connector.connect(name, socket)).await.unwrap()
}

async fn ask(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

async fn status_over_http2(stream: TlsStream<TcpStream>) -> u16 {
    let (mut requests, connection) = timeout(PATIENCE, h2::client::handshake(stream)).await.unwrap().unwrap();
    tokio::spawn(connection);
    let request = axum::http::Request::get("https://localhost/status").body(()).unwrap();
    let (answer, _) = requests.send_request(request, true).unwrap();
    timeout(PATIENCE, answer).await.unwrap().unwrap().status().as_u16()
}

const STATUS: &str = "GET /status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn all_protocols_are_spoken_inside() {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("certificate.pem");
    let tls = Tls::self_signed(vec!["localhost".to_owned()], &pem).unwrap();
    let address = start(Some(tls), WIDE).await;
    let mut stream = connect(address, &trusting(&pem, &[b"http/1.1"])).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(ask(&mut stream, STATUS).await.starts_with("HTTP/1.1 200"));

    let stream = connect(address, &trusting(&pem, &[b"h2", b"http/1.1"])).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(status_over_http2(stream).await, 200);
    // The client may know without having been told.
    let stream = connect(address, &trusting(&pem, &[])).await.unwrap();
    assert_eq!(status_over_http2(stream).await, 200);

    let connector = trusting(&pem, &[]);
    let mut stream = connect(address, &connector).await.unwrap();
    let greeting = [&[0x60, 0x60, 0xB0, 0x17, 0, 0, 8, 5][..], &[0; 12]].concat();
    stream.write_all(&greeting).await.unwrap();
    let mut version = [0; 4];
    timeout(PATIENCE, stream.read_exact(&mut version)).await.unwrap().unwrap();
    assert_eq!(version, [0, 0, 8, 5]);

    let stream = connect(address, &connector).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async("wss://localhost/gremlin", stream).await.unwrap();
    let request = r#"{"requestId":"00000000-0000-0000-0000-000000000001","op":"eval","args":{"gremlin":"g.inject(7)"}}"#;
    socket.send(Message::text(request)).await.unwrap();
    let answer = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    assert!(answer.to_text().unwrap().contains("\"@value\":7"), "{answer}");
}

#[tokio::test]
async fn a_client_without_tls_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("certificate.pem");
    let tls = Tls::self_signed(vec!["localhost".to_owned()], &pem).unwrap();
    let address = start(Some(tls), WIDE).await;
    let answer = ask(&mut TcpStream::connect(address).await.unwrap(), STATUS).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("this port speaks TLS"), "{answer}");
    // Bolt has no words for it, and some bytes only look like TLS.
    for bytes in [&[0x60, 0x60, 0xB0, 0x17][..], &[0x16; 64]] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut rest = vec![];
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();
    }
    // A client with TLS at a port without it reads an alert of TLS.
    let plain = start(None, WIDE).await;
    let error = connect(plain, &trusting(&pem, &[])).await.unwrap_err();
    assert!(error.to_string().contains("HandshakeFailure"), "{error}");
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::self_signed(vec!["localhost".to_owned()], &folder.path().join("c.pem")).unwrap();
    let limits = server::Limits { head: Duration::from_millis(100), ..WIDE };
    let address = start(Some(tls), limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
    let mut rest = vec![];
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();
}

fn write_certificate(files: &CertificateFiles) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&files.key, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
}

#[tokio::test]
async fn another_certificate_is_shown_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let files = CertificateFiles {
        certificate: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
    };
    write_certificate(&files);
    let tls = Tls::load(&files).unwrap();
    tokio::spawn(tls.clone().follow(files.clone()));
    let address = start(Some(tls), WIDE).await;
    let old = trusting(&files.certificate, &[]);
    let mut open = connect(address, &old).await.unwrap();
    write_certificate(&files);
    let new = trusting(&files.certificate, &[]);
    let changed = async {
        while connect(address, &new).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, changed).await.unwrap();
    assert!(connect(address, &old).await.is_err());
    assert!(ask(&mut open, STATUS).await.starts_with("HTTP/1.1 200"), "an open connection goes on");
}

#[test]
fn what_is_wrong_with_the_files_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let files = CertificateFiles {
        certificate: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
    };
    let problem = || Tls::load(&files).unwrap_err().to_string();
    assert!(problem().contains("certificate.pem: "), "{}", problem());
    std::fs::write(&files.certificate, "nothing").unwrap();
    assert!(problem().contains("no certificate"), "{}", problem());
    write_certificate(&files);
    assert!(Tls::load(&files).is_ok());
    std::fs::set_permissions(&files.key, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(problem().contains("key.pem: every user of the machine"), "{}", problem());
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&files.key, other.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&files.key, PermissionsExt::from_mode(0o600)).unwrap();
    assert!(problem().contains("key.pem: "), "{}", problem());
}
