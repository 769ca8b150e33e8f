//! Tests of the guard: who passes, what each role may do, and what is recorded.

use super::*;
use crate::http::Limits;
use axum::body::to_bytes;
use serde_json::Value;
use std::path::Path;
use tidegraph_engine::{Database, Options};
use tidegraph_platform::RealClock;
use tower::ServiceExt;

const PASSWORD: &str = "a password of the tests";
const ROLES: [&str; 5] = ["read", "write", "load", "admin", "none"];

#[expect(clippy::disallowed_methods, reason = "a test writes its file")]
fn write(file: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn service() -> Service {
    Service::new(Database::open(Options::default()).unwrap(), Limits::default())
}

/// A user for each role, named after it.
fn users(home: &Path) -> Authentication {
    let hash = crate::authentication::hash(PASSWORD).unwrap();
    let users = ROLES.map(|role| {
        let roles = if role == "none" { String::new() } else { format!("{role:?}") };
        format!("{{\"name\": {role:?}, \"password\": {hash:?}, \"roles\": [{roles}]}}")
    });
    let file = home.join("users.json");
    write(&file, &format!("{{\"users\": [{}]}}", users.join(", ")));
    let users = crate::authentication::Users::read(&file, Arc::new(RealClock::new())).unwrap();
    Authentication::Users(users)
}

struct Answer {
    status: u16,
    body: Value,
    challenge: bool,
}

impl Answer {
    fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

async fn ask(router: &Router, method: &str, target: &str, authorization: Option<&str>, body: &str) -> Answer {
    let mut request = Request::builder().method(method).uri(target);
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let answer = router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let challenge = answer.headers().contains_key(header::WWW_AUTHENTICATE);
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    Answer { status, body: serde_json::from_slice(&body).unwrap_or_default(), challenge }
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

#[tokio::test]
async fn only_the_whole_token_passes() {
    let router = service().guarded_router(Some("a token of the tests".to_owned()));
    let status = |authorization: &'static str| {
        let router = router.clone();
        async move { ask(&router, "GET", "/status", Some(authorization), "").await.status }
    };
    assert_eq!(status("Bearer a token of the tests").await, 200);
    for wrong in
        ["", "Bearer ", "Bearer a token of the test", "Bearer a token of the testS", "bearer", "Digest x"]
    {
        assert_eq!(status(wrong).await, 403, "{wrong:?}");
    }
    assert_eq!(ask(&router, "GET", "/status", None, "").await.status, 403);
    // As in Bolt, the token is the password of any user.
    let password = basic("any", "a token of the tests");
    assert_eq!(ask(&router, "GET", "/status", Some(&password), "").await.status, 200);
}

#[tokio::test]
async fn users_send_a_name_and_a_password() {
    let home = tempfile::tempdir().unwrap();
    let router = service().guarded_router(users(home.path()));
    let right = basic("read", PASSWORD);
    assert_eq!(ask(&router, "GET", "/status", Some(&right), "").await.status, 200);
    let wrong = [
        "Basic",
        "Basic x",
        "Basic YWRh",
        "Bearer a",
        "",
        &basic("read", "another"),
        &basic("eve", PASSWORD),
    ];
    for wrong in wrong.into_iter().map(Some).chain([None]) {
        let answer = ask(&router, "GET", "/status", wrong, "").await;
        assert_eq!((answer.status, answer.code()), (401, "UnauthorizedException"), "{wrong:?}");
        assert!(answer.challenge);
    }
    // With two headers nobody knows which of them a proxy has looked at.
    let request = Request::get("/status").header(header::AUTHORIZATION, &right);
    let request = request.header(header::AUTHORIZATION, &right).body(Body::empty()).unwrap();
    assert_eq!(router.oneshot(request).await.unwrap().status().as_u16(), 401);
}

#[tokio::test]
async fn each_role_may_do_what_it_says() {
    let home = tempfile::tempdir().unwrap();
    let router = service().guarded_router(users(home.path()));
    let read = &["read", "write", "admin"][..];
    let cases: [(&str, &str, &str, &[&str]); 18] = [
        ("POST", "/openCypher", "query=MATCH (n) RETURN count(n)", read),
        ("GET", "/gremlin?gremlin=g.V().count()", "", read),
        ("POST", "/openCypher", "query=CREATE (:A {k: 1})", &["write", "admin"]),
        ("POST", "/gremlin", "gremlin=g.addV('A')", &["write", "admin"]),
        ("POST", "/queries", "language=OPEN_CYPHER&query=CREATE (:A)", &["write", "admin"]),
        ("POST", "/openCypher/explain", "query=CREATE (:A)", read),
        ("POST", "/gremlin/profile", "gremlin=g.addV('A')", &["write", "admin"]),
        ("POST", "/openCypher", "query=CREATE INDEX IF NOT EXISTS FOR (n:A) ON (n.k)", &["admin"]),
        ("POST", "/openCypher", "query=SHOW INDEXES", read),
        ("GET", "/propertygraph/statistics", "", read),
        ("GET", "/pg/statistics/summary", "", read),
        ("GET", "/summary", "", read),
        ("POST", "/propertygraph/statistics", "mode=refresh", &["admin"]),
        ("GET", "/loader", "", &["load", "admin"]),
        ("GET", "/gremlin/status", "", &ROLES),
        ("GET", "/status", "", &ROLES),
        ("GET", "/metrics", "", &ROLES),
        ("GET", "/graphs/g", "", read),
    ];
    // Twice: the second time a query is tried on the thread that reads sockets, and its password is remembered.
    for (method, target, body, allowed) in cases.iter().chain(&cases) {
        for role in ROLES {
            let body = body.replace(' ', "+");
            let answer = ask(&router, method, target, Some(&basic(role, PASSWORD)), &body).await;
            let expected = if allowed.contains(&role) { (200, "") } else { (403, "AccessDeniedException") };
            assert_eq!((answer.status, answer.code()), expected, "{role}: {method} {target} {body}");
            let message = answer.body["detailedMessage"].as_str().unwrap_or_default();
            assert!(
                answer.status == 200 || message.contains(&format!("user:{role} lacks the role")),
                "{message}"
            );
        }
    }
    // What is not listed is the administrator's, so that a new path is closed until somebody thinks of it.
    for (method, target) in
        [("POST", "/system"), ("GET", "/gremlin/else"), ("DELETE", "/graphs/g"), ("GET", "/x")]
    {
        for role in ["write", "load", "none"] {
            let answer = ask(&router, method, target, Some(&basic(role, PASSWORD)), "").await;
            assert_eq!(answer.status, 403, "{role}: {method} {target}");
        }
        let answer = ask(&router, method, target, Some(&basic("admin", PASSWORD)), "").await;
        assert!(matches!(answer.status, 400 | 404 | 405), "{method} {target}: {}", answer.status);
    }
}

#[tokio::test]
async fn a_signed_request_is_read_within_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("keys.json");
    let key = "{\"accessKeyId\": \"AKIDEXAMPLE\", \"secretAccessKey\": \"0123456789abcdef\", \"roles\": [\"read\"]}";
    write(&file, &format!("{{\"credentials\": [{key}]}}"));
    let signers = Signers::read(&file, "eu-central-1".to_owned()).unwrap();
    let limits = Limits { body_bytes: 100, ..Limits::default() };
    let service = Service::new(Database::open(Options::default()).unwrap(), limits);
    let now = service.database.now();
    let router = service.guarded_router(Authentication::SigV4(signers));
    let answer = ask(&router, "POST", "/openCypher", None, "query=RETURN+1").await;
    assert_eq!((answer.status, answer.code()), (403, "AccessDeniedException"));
    assert_eq!(answer.body["detailedMessage"], "Missing Authentication Token");
    let date = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = &date[..8];
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{day}/eu-central-1/neptune-db/aws4_request, \
         SignedHeaders=host;x-amz-date, Signature=0"
    );
    let request = |bytes: usize, id: &str| {
        let request = Request::post("/openCypher").header(header::HOST, "localhost");
        let request = request.header("x-amz-date", &date);
        let request = request.header(header::AUTHORIZATION, authorization.replace("AKIDEXAMPLE", id));
        request.body(Body::from(vec![b'x'; bytes])).unwrap()
    };
    let status =
        |request: Request| async { router.clone().oneshot(request).await.unwrap().status().as_u16() };
    assert_eq!(status(request(10, "AKIDEXAMPLE")).await, 403);
    assert_eq!(status(request(101, "AKIDEXAMPLE")).await, 413);
    // The body of a stranger is not read at all.
    assert_eq!(status(request(101, "AKIDSTRANGER")).await, 403);
}

#[test]
fn a_path_that_is_not_listed_needs_an_administrator() {
    let of = |method: Method, path: &str| Needs::of(&method, path);
    assert_eq!(of(Method::GET, "/gremlin/"), Needs::Query);
    assert_eq!(of(Method::GET, "/propertygraph/stream"), Needs::Role(Role::Read));
    assert_eq!(of(Method::POST, "/pg/statistics"), Needs::Role(Role::Admin));
    for path in ["/", "/system", "/gremlin/other", "/status/x", "/Loader", "/metrics/x"] {
        assert_eq!(of(Method::GET, path), Needs::Role(Role::Admin), "{path}");
    }
}
