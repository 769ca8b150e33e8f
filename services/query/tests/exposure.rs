//! Tests what a web page of another origin, or a foreign name of this machine, can do with a service without a token.

#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, header};
use tidegraph_engine::{Database, Options};
use tidegraph_query::http::{AllowedClients, HostName, Limits, PageOrigin, Service};
use tower::ServiceExt;

/// A service over an empty graph in memory.
fn service() -> Router {
    Service::new(Database::open(Options::default()).unwrap(), Limits::default()).router()
}

/// Sends a request and returns the status, the `Allow` header and the body.
async fn ask(router: &Router, request: Request<Body>) -> (u16, String, serde_json::Value) {
    let answer: Response<Body> = router.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let allow = answer.headers().get(header::ALLOW).map_or(String::new(), |v| v.to_str().unwrap().to_owned());
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, allow, serde_json::from_slice(&body).unwrap_or_default())
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// Counts the vertices of the graph.
async fn vertices(router: &Router) -> serde_json::Value {
    let (status, _, body) =
        ask(router, get("/openCypher?query=MATCH%20(n)%20RETURN%20count(n)%20AS%20n")).await;
    assert_eq!(status, 200, "{body}");
    body["results"][0]["n"].clone()
}

#[tokio::test]
async fn get_never_writes() {
    let router = service();
    let writes = [
        "/openCypher?query=CREATE%20(n)",
        "/opencypher?query=CREATE%20(n)%20RETURN%20n",
        "/openCypher?query=MERGE%20(n:A%20%7Bid:1%7D)%20RETURN%20n",
        "/openCypher?query=CREATE%20INDEX%20FOR%20(n:A)%20ON%20(n.k)",
        "/gremlin?gremlin=g.addV()",
        "/gremlin?gremlin=g.inject(1).addV('A')",
        "/gremlin?gremlin=g.V().drop()",
    ];
    // Each twice: the second one finds its plan in the cache, and is tried on the thread that serves the socket.
    for path in writes.iter().chain(&writes) {
        let (status, allow, body) = ask(&router, get(path)).await;
        assert_eq!((status, allow.as_str()), (405, "POST"), "{path}: {body}");
        assert_eq!(body["code"], "MethodNotAllowedException", "{path}");
        assert!(body["detailedMessage"].as_str().unwrap().contains("POST"), "{body}");
        let head = Request::head(*path).body(Body::empty()).unwrap();
        assert_eq!(ask(&router, head).await.0, 405, "HEAD {path}");
    }
    assert_eq!(vertices(&router).await, 0);
    let posted = Request::post("/openCypher").body(Body::from("query=CREATE%20(n)")).unwrap();
    assert_eq!(ask(&router, posted).await.0, 200);
    assert_eq!(vertices(&router).await, 1);
}

/// A service that listens on 127.0.0.1 and checks hosts and origins.
fn guarded(has_token: bool, hosts: &[&str], origins: &[&str]) -> Router {
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let origins = origins.iter().map(|origin| origin.parse().unwrap()).collect();
    AllowedClients { bound: "127.0.0.1".parse().unwrap(), has_token, hosts, origins }.protect(service())
}

/// Sends a write with these headers, and returns the status and the message of a refusal.
async fn write(router: &Router, headers: &[(&str, &str)]) -> (u16, String) {
    let request = headers
        .iter()
        .fold(Request::post("/openCypher"), |request, (name, value)| request.header(*name, *value));
    let (status, _, body) = ask(router, request.body(Body::from("query=CREATE%20(n)")).unwrap()).await;
    (status, body["detailedMessage"].as_str().unwrap_or_default().to_owned())
}

/// Checks the statuses of writes, and that the refused ones wrote nothing.
async fn check(router: Router, cases: &[(u16, &[(&str, &str)])]) {
    for (expected, headers) in cases {
        let (status, message) = write(&router, headers).await;
        assert_eq!(status, *expected, "{headers:?}: {message}");
    }
    let request = Request::get("/openCypher?query=MATCH%20(n)%20RETURN%20count(n)%20AS%20n");
    let (_, _, body) = ask(&router, request.header("host", "localhost").body(Body::empty()).unwrap()).await;
    let written = cases.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!(body["results"][0]["n"], written, "{body}");
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[tokio::test]
async fn a_page_of_another_site_writes_nothing() {
    let host = ("host", "localhost:8182");
    let cases: &[(u16, &[(&str, &str)])] = &[
        // curl, boto3 and drivers send neither header.
        (200, &[host]),
        (200, &[host, FORM]),
        (200, &[host, FORM, ("origin", "http://localhost:8182"), ("sec-fetch-site", "same-origin")]),
        (200, &[host, FORM, ("sec-fetch-site", "none")]),
        (403, &[host, FORM, ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]),
        (403, &[host, FORM, ("origin", "https://evil.example")]),
        (403, &[host, FORM, ("origin", "null")]),
        (403, &[host, FORM, ("origin", "")]),
        (403, &[host, FORM, ("origin", "http://localhost:3000")]),
        (403, &[host, FORM, ("origin", "http://localhost")]),
        (403, &[host, FORM, ("origin", "http://localhost:8182.evil.example")]),
        (403, &[host, FORM, ("origin", "http://x@localhost:8182")]),
        (403, &[host, FORM, ("origin", "file://localhost:8182")]),
        (400, &[host, FORM, ("origin", "http://localhost:8182"), ("origin", "https://evil.example")]),
        (403, &[host, FORM, ("sec-fetch-site", "cross-site")]),
        (403, &[host, FORM, ("sec-fetch-site", "same-site")]),
        // What a form can send without a preflight request.
        (400, &[host, ("content-type", "multipart/form-data; boundary=x")]),
        (400, &[host, ("content-type", "text/plain")]),
    ];
    check(guarded(false, &[], &[]), cases).await;
}

#[tokio::test]
async fn json_of_another_content_type_is_refused() {
    let router = service();
    for (kind, expected) in [
        ("text/plain", 400),
        ("text/plain; charset=application/json", 400),
        ("TEXT/PLAIN;x=json", 400),
        ("multipart/form-data", 400),
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/x-www-form-urlencoded", 200),
    ] {
        let request = Request::post("/openCypher").header(header::CONTENT_TYPE, kind);
        let body = Body::from(r#"{"query": "CREATE (n)"}"#);
        let (status, _, body) = ask(&router, request.body(body).unwrap()).await;
        assert_eq!(status, expected, "{kind}: {body}");
    }
    assert_eq!(vertices(&router).await, 3);
}

#[tokio::test]
async fn a_page_cannot_reach_the_service_under_a_name_of_its_own() {
    let cases: &[(u16, &[(&str, &str)])] = &[
        (200, &[("host", "localhost")]),
        (200, &[("host", "LOCALHOST.:8182")]),
        (200, &[("host", "127.0.0.1:8182")]),
        (200, &[("host", "127.8.9.1")]),
        (200, &[("host", "[::1]:8182")]),
        (403, &[("host", "evil.example:8182"), ("origin", "http://evil.example:8182")]),
        (403, &[("host", "evil.example")]),
        (403, &[("host", "localhost.evil.example")]),
        (403, &[("host", "127.0.0.1.evil.example")]),
        (403, &[("host", "192.0.2.1:8182")]),
        (400, &[("host", "")]),
        (400, &[("host", "localhost:port")]),
        (400, &[("host", "localhost@evil.example")]),
        (400, &[("host", "localhost"), ("host", "evil.example")]),
        (400, &[]),
    ];
    check(guarded(false, &[], &[]), cases).await;
    let absolute = Request::get("http://evil.example/status").header("host", "localhost");
    let (status, ..) = ask(&guarded(false, &[], &[]), absolute.body(Body::empty()).unwrap()).await;
    assert_eq!(status, 403);
    let (status, message) = write(&guarded(false, &[], &[]), &[("host", "db.example.com:80")]).await;
    assert!(status == 403 && message.contains("--allow-host db.example.com"), "{message}");
}

#[tokio::test]
async fn names_and_origins_of_the_command_line_are_allowed() {
    let app = ("origin", "https://app.example.com");
    let cases: &[(u16, &[(&str, &str)])] = &[
        (200, &[("host", "db.example.com:8182")]),
        (200, &[("host", "10.0.0.7")]),
        (200, &[("host", "localhost"), app, ("sec-fetch-site", "cross-site")]),
        (200, &[("host", "db.example.com"), ("origin", "https://db.example.com")]),
        (403, &[("host", "other.example.com")]),
        (403, &[("host", "localhost"), ("origin", "http://app.example.com")]),
        (403, &[("host", "localhost"), ("origin", "https://app.example.com:444")]),
    ];
    let router = || guarded(false, &["DB.example.com", "10.0.0.7"], &["https://App.example.com:443"]);
    check(router(), cases).await;
    let preflight = |origin: &'static str| {
        let request = Request::options("/openCypher").header("host", "localhost").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        router().oneshot(
            request.header("access-control-request-headers", "content-type").body(Body::empty()).unwrap(),
        )
    };
    let answer = preflight("https://app.example.com").await.unwrap();
    assert_eq!(answer.status(), 200);
    let of = |name: &str| answer.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    assert_eq!(of("access-control-allow-origin"), "https://app.example.com");
    assert!(of("access-control-allow-methods").contains("POST"), "{:?}", answer.headers());
    assert!(of("access-control-allow-headers").contains("content-type"), "{:?}", answer.headers());
    let refused = preflight("https://evil.example").await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(!refused.headers().contains_key("access-control-allow-origin"));
    let request = Request::get("/status").header("host", "localhost").header("origin", app.1);
    let answer = router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], app.1);
}

#[tokio::test]
async fn with_a_token_any_name_passes_unless_names_are_listed() {
    let pages: &[(u16, &[(&str, &str)])] = &[
        (200, &[("host", "db.example.com")]),
        (200, &[("host", "db.example.com"), ("origin", "https://db.example.com")]),
        (403, &[("host", "db.example.com"), ("origin", "https://evil.example")]),
    ];
    check(guarded(true, &[], &[]), pages).await;
    let listed: &[(u16, &[(&str, &str)])] = &[
        (200, &[("host", "db.example.com")]),
        (200, &[("host", "localhost")]),
        (403, &[("host", "other.example")]),
    ];
    check(guarded(true, &["db.example.com"], &[]), listed).await;
}

#[test]
fn flags_that_are_no_host_or_origin_are_refused() {
    for wrong in ["", "http://db", "db:8182", "db/path", "*", "a@b", "a b"] {
        assert!(wrong.parse::<HostName>().is_err(), "{wrong:?}");
    }
    for wrong in [
        "",
        "*",
        "null",
        "db.example.com",
        "ftp://db",
        "https://",
        "https://db/",
        "https://u@db",
        "http://h:x",
    ] {
        assert!(wrong.parse::<PageOrigin>().is_err(), "{wrong:?}");
    }
}
