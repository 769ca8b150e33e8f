//! Tests of callers that AWS knows. STS itself is played by moto in `integration-tests/test/access.test.ts`, which verifies
//! signatures; here it is what the network may do.

use super::*;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use tidegraph_engine::Role;
use tidegraph_platform::ManualClock;

const ROLE: &str = "arn:aws:iam::123456789012:role/team/Analysts";
const SESSION: &str = "arn:aws:sts::123456789012:assumed-role/Analysts/ada@example.com";
const USER: &str = "arn:aws:iam::123456789012:user/bob";

fn text(callers: &[(&str, &[&str])]) -> String {
    let callers: Vec<_> =
        callers.iter().map(|(arn, roles)| serde_json::json!({"arn": arn, "roles": roles})).collect();
    serde_json::json!({ "callers": callers }).to_string()
}

fn answer(arn: &str) -> String {
    format!(
        "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult>\
         <Arn>{arn}</Arn><UserId>AIDA</UserId><Account>123456789012</Account></GetCallerIdentityResult>\
         <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
    )
}

/// An endpoint that gives one answer to each connection, and tells the requests.
struct Endpoint {
    url: String,
    requests: std::sync::mpsc::Receiver<String>,
}

#[expect(clippy::disallowed_methods, reason = "a test plays STS")]
fn endpoint(answers: Vec<(u16, String)>) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (send, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut connection, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (String::new(), [0; 4096]);
            while !request.ends_with(BODY) {
                let read = connection.read(&mut buffer).unwrap();
                request.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            }
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
            let location = if status == 307 { "location: http://127.0.0.1:1/\r\n" } else { "" };
            write!(connection, "{head}{location}\r\n{body}").unwrap();
            send.send(request).unwrap();
        }
    });
    Endpoint { url, requests }
}

struct Fixture {
    _home: tempfile::TempDir,
    file: std::path::PathBuf,
    clock: Arc<ManualClock>,
    callers: Arc<Callers>,
    sts: Sts,
}

#[expect(clippy::disallowed_methods, reason = "a test writes its file")]
fn write_file(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

impl Fixture {
    fn new(callers: &[(&str, &[&str])], url: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("callers.json");
        write_file(&file, &text(callers));
        let clock = Arc::new(ManualClock::default());
        let sts = Sts::new("orders", "eu-central-1", Some(url)).unwrap();
        let callers = Callers::read(&file, sts.clone(), clock.clone()).unwrap();
        Self { _home: home, file, clock, callers, sts }
    }

    fn prove(&self) -> String {
        let keys = aws_credential_types::Credentials::new(
            "AKIDTEST",
            "a secret",
            Some("token".into()),
            None,
            "test",
        );
        self.sts.prove(&keys, self.clock.wall()).unwrap()
    }

    async fn verify(&self, proof: &str) -> Result<Principal, Refusal> {
        self.callers.verify(proof, Some("10.0.0.1".parse().unwrap())).await
    }
}

#[tokio::test]
async fn the_signer_has_the_roles_of_its_role_and_is_remembered() {
    let sts = endpoint(vec![(200, answer(SESSION)), (200, answer(USER))]);
    let fixture = Fixture::new(&[(ROLE, &["write"])], &sts.url);
    let proof = fixture.prove();
    let ada = fixture.verify(&proof).await.unwrap();
    assert_eq!(ada, Principal::Iam(SESSION.into(), [Role::Write].into_iter().collect()));
    let request = sts.requests.recv().unwrap();
    let lower = request.to_ascii_lowercase();
    assert!(request.starts_with("POST / HTTP/1.1\r\n") && request.ends_with(BODY), "{request}");
    for header in
        ["x-tidegraph-graph: orders", "x-amz-security-token: token", "authorization: aws4-hmac-sha256 "]
    {
        assert!(lower.contains(header), "{header}: {request}");
    }
    // Remembered: STS gets no second request for it. A changed file holds at once, for open sessions too.
    assert_eq!(fixture.verify(&proof).await, Ok(ada.clone()));
    let authentication = super::super::Authentication::Aws(fixture.callers.clone());
    write_file(&fixture.file, &text(&[(ROLE, &["read"])]));
    fixture.callers.look().unwrap();
    assert!(!authentication.still_known(&ada, "default").unwrap().may(Role::Write));
    assert!(!fixture.verify(&proof).await.unwrap().may(Role::Write));
    write_file(&fixture.file, &text(&[]));
    fixture.callers.look().unwrap();
    assert_eq!(authentication.still_known(&ada, "default").unwrap_err().code(), ErrorCode::AccessDenied);
    // Another proof: STS knows the signer, the file does not.
    fixture.clock.advance(Duration::from_secs(61));
    let refused = fixture.verify(&fixture.prove()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AccessDenied);
    assert!(refused.to_string().contains(USER), "{refused}");
}

#[tokio::test]
async fn proofs_for_others_are_refused_before_sts_is_asked() {
    // Nobody listens there.
    let fixture = Fixture::new(&[(ROLE, &["read"])], "http://127.0.0.1:9");
    let keys = aws_credential_types::Credentials::new("AKIDTEST", "a secret", None, None, "test");
    let now = fixture.clock.wall();
    let of = |graph: &str, region: &str, url: &str| {
        Sts::new(graph, region, Some(url)).unwrap().prove(&keys, now).unwrap()
    };
    let proof = Proof::read(&fixture.prove()).unwrap();
    let changed = |change: &dyn Fn(&mut Proof)| {
        let mut proof = proof.clone();
        change(&mut proof);
        proof.to_text()
    };
    let (long, here) = ("x".repeat(20_000), "http://127.0.0.1:9");
    for (sent, reason) in [
        (of("other", "eu-central-1", here), "is for the graph 'other'"),
        (of("orders", "us-east-1", here), "not 'us-east-1'"),
        (of("orders", "eu-central-1", "https://sts.example.com"), "is for 'sts.example.com'"),
        (long, "20000 bytes"),
        ("not Base64!".into(), "not a proof"),
        ("e30".into(), "missing field"),
        (changed(&|p| p.authorization = p.authorization.replace("/sts/", "/s3/")), "correct service"),
        (
            changed(&|p| p.authorization = p.authorization.replace(";x-tidegraph-graph", "")),
            "must be a 'SignedHeader'",
        ),
        (changed(&|p| p.authorization = p.authorization.replace("host;", "host;range;")), "no such header"),
        (changed(&|p| p.date = "20000101T000000Z".into()), "does not match"),
        (changed(&|p| p.token = None), "no such header"),
    ] {
        let refused = fixture.verify(&sent).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::AccessDenied, "{refused}");
        assert!(refused.to_string().contains(reason), "{reason}: {refused}");
    }
    let proof = fixture.prove();
    fixture.clock.advance(Duration::from_secs(15 * 60));
    let expired = fixture.verify(&proof).await.unwrap_err();
    assert!(expired.to_string().contains("expired"), "{expired}");
}

#[tokio::test]
async fn what_aws_refuses_is_limited_and_its_absence_is_not_the_callers_fault() {
    let refusal = "<ErrorResponse><Error><Type>Sender</Type><Code>SignatureDoesNotMatch</Code><Message>m</Message></Error>\
                   </ErrorResponse>";
    let mut answers = vec![(503, String::new()), (307, String::new()), (200, "<Other/>".to_owned())];
    answers.extend(vec![(403, refusal.to_owned()); 20]);
    let sts = endpoint(answers);
    let fixture = Fixture::new(&[(ROLE, &["read"])], &sts.url);
    let proof = fixture.prove();
    for _ in 0..3 {
        assert_eq!(fixture.verify(&proof).await.unwrap_err().code(), ErrorCode::Unavailable);
    }
    for _ in 0..20 {
        let refused = fixture.verify(&proof).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::AccessDenied);
        assert!(refused.to_string().ends_with("SignatureDoesNotMatch"), "{refused}");
    }
    assert_eq!(fixture.verify(&proof).await.unwrap_err().code(), ErrorCode::TooManyRequests);
    fixture.clock.advance(Duration::from_secs(120));
    // Nobody listens any more.
    assert_eq!(fixture.verify(&proof).await.unwrap_err().code(), ErrorCode::Unavailable);
}

#[test]
fn sessions_are_their_roles() {
    assert_eq!(identity(ROLE).as_deref(), Some("arn:aws:iam::123456789012:role/Analysts"));
    assert_eq!(identity(SESSION), identity(ROLE));
    assert_eq!(identity(USER).as_deref(), Some(USER));
    assert_ne!(identity("arn:aws-cn:iam::123456789012:role/Analysts"), identity(ROLE));
    for other in [
        "",
        "role/Analysts",
        "arn:aws:iam::123456789012:root",
        "arn:aws:iam::1234:user/bob",
        "arn:aws:iam::123456789012:user/",
        "arn:aws:iam::123456789012:role/*",
        "arn:aws:iam:eu-central-1:123456789012:user/bob",
        "arn:aws:sts::123456789012:assumed-role/Analysts",
        "arn:aws:sts::123456789012:assumed-role/Analysts/a/b",
        "arn:aws:sts::123456789012:federated-user/bob",
    ] {
        assert_eq!(identity(other), None, "{other}");
    }
}

#[test]
fn files_and_flags_are_checked() {
    assert_eq!(parse(&text(&[(ROLE, &["read"]), (USER, &["load", "write"])])).unwrap().len(), 2);
    for (text, reason) in [
        (text(&[("arn:aws:iam::123456789012:role/*", &["read"])]), "role/*"),
        (text(&[(ROLE, &["reed"])]), "reed"),
        (text(&[(ROLE, &["read"]), (&ROLE.replace("team/", ""), &[])]), "two callers"),
        ("{}".into(), "callers"),
    ] {
        let problem = parse(&text).unwrap_err();
        assert!(problem.contains(reason), "{problem}");
    }
    let url = |region| Sts::new("g", region, None).unwrap().url;
    assert_eq!(url("eu-central-1"), "https://sts.eu-central-1.amazonaws.com");
    assert_eq!(url("cn-north-1"), "https://sts.cn-north-1.amazonaws.com.cn");
    for (graph, region, endpoint) in [
        ("g", "eu central", None),
        ("g", "@example.com/", None),
        ("", "eu-central-1", None),
        ("g\r\nx", "eu-central-1", None),
        ("g", "eu-central-1", Some("http://sts.example.com")),
        ("g", "eu-central-1", Some("https://user@sts.example.com")),
        ("g", "eu-central-1", Some("https://sts.example.com/path")),
        ("g", "eu-central-1", Some("sts.example.com")),
    ] {
        Sts::new(graph, region, endpoint).unwrap_err();
    }
}
