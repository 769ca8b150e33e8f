//! Tests of signatures. AWS's crate makes the signatures here, but for one that was made by hand. In `integration-tests/`
//! botocore makes them.

use super::*;

const ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const REGION: &str = "eu-central-1";
const NOW: &str = "2026-11-24T12:00:00Z";
const BODY: &[u8] = b"query=RETURN+1";

fn known(token: Option<&str>) -> impl Fn(&str) -> Option<Credentials> {
    let credentials = Credentials::new(ID, SECRET, token.map(str::to_owned), None, "test");
    move |id| (id == ID).then(|| credentials.clone())
}

fn now() -> jiff::Timestamp {
    NOW.parse().unwrap()
}

/// A request that is signed at a time.
struct Request {
    method: &'static str,
    target: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

struct Signer {
    region: &'static str,
    service: &'static str,
    secret: &'static str,
    id: &'static str,
    token: Option<&'static str>,
    at: &'static str,
}

const SIGNER: Signer =
    Signer { region: REGION, service: "neptune-db", secret: SECRET, id: ID, token: None, at: NOW };

impl Request {
    fn new(target: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "127.0.0.1:8182".parse().unwrap());
        headers.insert(header::CONTENT_TYPE, "application/x-www-form-urlencoded".parse().unwrap());
        Self { method: "POST", target: target.to_owned(), headers, body: BODY.to_vec() }
    }

    fn signed(mut self, signer: &Signer) -> Self {
        let credentials =
            Credentials::new(signer.id, signer.secret, signer.token.map(str::to_owned), None, "test");
        let identity = credentials.into();
        let at: jiff::Timestamp = signer.at.parse().unwrap();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(signer.region)
            .name(signer.service)
            .time(at.into())
            .settings(SigningSettings::default())
            .build()
            .unwrap();
        let headers: Vec<_> = self.headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        let uri = format!("http://127.0.0.1:8182{}", self.target);
        let request =
            SignableRequest::new(self.method, uri, headers.into_iter(), SignableBody::Bytes(&self.body))
                .unwrap();
        let (instructions, _) = sign(request, &parameters.into()).unwrap().into_parts();
        for (name, value) in instructions.headers() {
            self.headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        self
    }

    fn verify(&self) -> Result<String, String> {
        self.verify_as(known(None))
    }

    fn verify_as(&self, known: impl Fn(&str) -> Option<Credentials>) -> Result<String, String> {
        let signed = Signed { method: self.method, target: &self.target, headers: &self.headers };
        let checked = check(&signed, Scope { region: REGION }, now(), known).map_err(|error| {
            assert_eq!(error.code(), ErrorCode::AccessDenied);
            error.to_string()
        })?;
        checked.verify(&signed, &self.body).map(str::to_owned).map_err(|error| error.to_string())
    }

    fn says(&self, part: &str) {
        let error = self.verify().unwrap_err();
        assert!(error.contains(part), "{error}");
    }

    fn set(&mut self, name: &'static str, value: &str) {
        self.headers.insert(name, value.parse().unwrap());
    }

    fn authorization(&mut self, from: &str, to: &str) {
        let text = self.headers[header::AUTHORIZATION].to_str().unwrap();
        assert!(text.contains(from), "{text}");
        let text = text.replace(from, to);
        self.set("authorization", &text);
    }
}

#[test]
fn a_signed_request_names_its_access_key() {
    for service in SERVICES {
        let signer = Signer { service, ..SIGNER };
        let target = "/openCypher?a=b%20c&a=a&queryId=x%2Fy&empty=";
        assert_eq!(Request::new(target).signed(&signer).verify().as_deref(), Ok(ID));
    }
    for target in ["/loader/a%20b", "/", "/gremlin/status/1?cancelQuery"] {
        assert_eq!(Request::new(target).signed(&SIGNER).verify().as_deref(), Ok(ID), "{target}");
    }
}

#[test]
fn the_signature_is_the_one_of_the_specification() {
    // Made with Python's hmac, step by step as AWS documents it.
    let mut request = Request::new("/opencypher");
    request.method = "GET";
    request.body = vec![];
    request.headers.remove(header::CONTENT_TYPE);
    request.set("x-amz-date", "20261124T120000Z");
    request.set(
        "authorization",
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261124/eu-central-1/neptune-db/aws4_request, \
         SignedHeaders=host;x-amz-date, Signature=b658c6c6ee84446facb5bac23884fe8017813f63ad95f1ce05770d8c8424fbca",
    );
    assert_eq!(request.verify().as_deref(), Ok(ID));
}

#[test]
fn what_was_changed_after_signing_is_refused() {
    const MISMATCH: &str = "The request signature we calculated does not match";
    let signed = || Request::new("/openCypher?a=b").signed(&SIGNER);
    let mut request = signed();
    request.body = b"query=RETURN+2".to_vec();
    request.says(MISMATCH);
    let mut request = signed();
    request.target = "/openCypher?a=c".to_owned();
    request.says(MISMATCH);
    let mut request = signed();
    request.target = "/gremlin?a=b".to_owned();
    request.says(MISMATCH);
    let mut request = signed();
    request.method = "GET";
    request.says(MISMATCH);
    let mut request = signed();
    request.set("host", "other:8182");
    request.says(MISMATCH);
    let mut request = signed();
    request.set("content-type", "application/json");
    request.says(MISMATCH);
    let mut request = signed();
    request.authorization("Signature=", "Signature=0");
    request.says(MISMATCH);
    let mut request = signed();
    request.set("x-amz-date", "20261124T120001Z");
    request.says(MISMATCH);
    Request::new("/").signed(&Signer { secret: "another-secret-of-the-key", ..SIGNER }).says(MISMATCH);
}

#[test]
fn another_region_service_key_or_token_is_refused() {
    let of = |signer: Signer| Request::new("/openCypher").signed(&signer);
    of(Signer { region: "us-east-1", ..SIGNER }).says("valid region, not 'us-east-1'");
    of(Signer { service: "execute-api", ..SIGNER }).says("correct service: 'neptune-db' or 'neptune-graph'");
    let invalid = "The security token included in the request is invalid";
    of(Signer { id: "AKIDOTHER", ..SIGNER }).says(invalid);
    of(Signer { token: Some("a token that nobody gave"), ..SIGNER }).says(invalid);
    let with = || of(Signer { token: Some("session"), ..SIGNER });
    assert_eq!(with().verify_as(known(Some("session"))).as_deref(), Ok(ID));
    assert!(with().verify_as(known(Some("sessioN"))).unwrap_err().contains(invalid));
    assert!(of(SIGNER).verify_as(known(Some("session"))).unwrap_err().contains(invalid));
    let mut request = with();
    request.authorization(";x-amz-security-token", "");
    let error = request.verify_as(known(Some("session"))).unwrap_err();
    assert!(error.contains("'x-amz-security-token' must be a 'SignedHeader'"), "{error}");
}

#[test]
fn a_signature_holds_for_five_minutes() {
    let at = |at: &'static str| Request::new("/openCypher").signed(&Signer { at, ..SIGNER });
    for fresh in ["2026-11-24T11:55:00Z", "2026-11-24T12:05:00Z"] {
        assert_eq!(at(fresh).verify().as_deref(), Ok(ID), "{fresh}");
    }
    at("2026-11-24T11:54:59Z").says("Signature expired: 20261124T115459Z is now earlier than");
    at("2026-11-24T12:05:01Z").says("Signature not yet current: 20261124T120501Z is still later than");
    at("1999-01-01T00:00:00Z").says("Signature expired");
}

#[test]
fn a_hash_of_the_body_that_is_sent_must_be_right() {
    let with = |hash: &str| {
        let mut request = Request::new("/openCypher");
        request.set("x-amz-content-sha256", hash);
        request.signed(&SIGNER)
    };
    assert_eq!(with(&hexadecimal(&Sha256::digest(BODY))).verify().as_deref(), Ok(ID));
    with(&hexadecimal(&Sha256::digest(b"other"))).says("does not match what was computed");
    with("UNSIGNED-PAYLOAD").says("UNSIGNED-PAYLOAD is not accepted");
    let mut request = Request::new("/openCypher").signed(&SIGNER);
    request.set("x-amz-content-sha256", &hexadecimal(&Sha256::digest(BODY)));
    request.says("'x-amz-content-sha256' must be a 'SignedHeader'");
}

#[test]
fn a_header_that_is_not_one_of_signatures_is_refused() {
    let signed = || Request::new("/openCypher").signed(&SIGNER);
    Request::new("/openCypher").says("Missing Authentication Token");
    let wrong = [
        ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", "AWS4-HMAC-SHA256"),
        ("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA2567", "AWS4-HMAC-SHA256"),
        ("aws4_request", "aws4", "aws4_request"),
        ("aws4_request", "aws4_request/x", "aws4_request"),
        ("Signature=", "Sig=", "Signature"),
        ("Signature=", "SignedHeaders=host, Signature=", "twice"),
        ("host;", "", "'host' must be"),
        (";x-amz-date", "", "'x-amz-date' must be"),
        ("host;", "host;host;", "twice"),
        ("host;", "Host;", "lower case"),
        ("host;", "host;;", "lower case"),
        ("host;", "host;x-none;", "does not exist"),
        ("20261124/", "20261125/", "does not match"),
        ("20261124/", "2026112/", "does not match"),
        ("20261124/", "/", "does not match"),
    ];
    for (from, to, part) in wrong {
        let mut request = signed();
        request.authorization(from, to);
        request.says(part);
    }
    for date in ["", "20261124", "2026-11-24T12:00:00Z", "20261124T120000", "20261324T120000Z", "é"] {
        let mut request = signed();
        request.headers.insert("x-amz-date", HeaderValue::from_bytes(date.as_bytes()).unwrap());
        request.says(if date == "é" { "one header x-amz-date" } else { "basic format" });
    }
    let mut request = signed();
    request.headers.remove("x-amz-date");
    request.says("X-Amz-Date");
    let mut request = signed();
    let twice = request.headers[header::AUTHORIZATION].clone();
    request.headers.append(header::AUTHORIZATION, twice);
    request.says("one header authorization");
    let mut request = signed();
    request.set("authorization", "Bearer abc");
    request.says("AWS4-HMAC-SHA256");
}

#[test]
fn bolt_sends_the_signed_headers_as_its_password() {
    let mut request = Request::new(BOLT_PATH);
    request.method = "GET";
    request.body = vec![];
    request.headers.remove(header::CONTENT_TYPE);
    let request = request.signed(&SIGNER);
    let text = |name: &str| request.headers[name].to_str().unwrap().to_owned();
    let password = serde_json::json!({
        "Authorization": text("authorization"),
        "HttpMethod": "GET",
        "X-Amz-Date": text("x-amz-date"),
        "X-Amz-Security-Token": null,
        "Host": text("host"),
    });
    let verify = |password: &str| -> Result<String, String> {
        let (method, target, headers) = of_bolt(password).map_err(|error| error.to_string())?;
        let signed = Signed { method: &method, target, headers: &headers };
        let checked = check(&signed, Scope { region: REGION }, now(), known(None));
        let checked = checked.map_err(|error| error.to_string())?;
        checked.verify(&signed, &[]).map(str::to_owned).map_err(|error| error.to_string())
    };
    assert_eq!(verify(&password.to_string()).as_deref(), Ok(ID));
    let other = password.to_string().replace("GET", "POST");
    assert!(verify(&other).unwrap_err().contains("does not match"));
    for wrong in ["", "a password", "{}", "[]", "{\"Authorization\": 1}"] {
        assert_eq!(verify(wrong).unwrap_err(), "Missing Authentication Token", "{wrong}");
    }
    let broken = password.to_string().replace("127.0.0.1", "a\\nb");
    assert!(verify(&broken).unwrap_err().contains("host in the password"));
}

/// Makes a presigned URL.
fn presigned(target: &str, signer: &Signer, seconds: u64, headers: &[(&str, &str)]) -> Request {
    let credentials =
        Credentials::new(signer.id, signer.secret, signer.token.map(str::to_owned), None, "test");
    let identity = credentials.into();
    let at: jiff::Timestamp = signer.at.parse().unwrap();
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(Duration::from_secs(seconds));
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(signer.region)
        .name(signer.service)
        .time(at.into())
        .settings(settings)
        .build()
        .unwrap();
    let uri = format!("http://127.0.0.1:8182{target}");
    let request =
        SignableRequest::new("GET", uri, headers.iter().copied(), SignableBody::Bytes(&[])).unwrap();
    let (instructions, _) = sign(request, &parameters.into()).unwrap().into_parts();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(instructions.params());
    let separator = if target.contains('?') { '&' } else { '?' };
    let mut request = Request::new(&format!("{target}{separator}{}", query.finish()));
    request.method = "GET";
    request.body = vec![];
    request.headers.remove(header::CONTENT_TYPE);
    for (name, value) in headers {
        request.headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    request
}

impl Request {
    fn query(mut self, from: &str, to: &str) -> Self {
        assert!(self.target.contains(from), "{}", self.target);
        self.target = self.target.replace(from, to);
        self
    }
}

#[test]
fn a_presigned_url_names_its_access_key() {
    for service in SERVICES {
        let signer = Signer { service, ..SIGNER };
        for target in
            ["/gremlin", "/openCypher?query=RETURN%201&a=x%2Fy&empty=", "/gremlin/status/1?cancelQuery"]
        {
            let request = presigned(target, &signer, 60, &[]);
            assert_eq!(request.verify().as_deref(), Ok(ID), "{}", request.target);
            let signed = Signed { method: "GET", target: &request.target, headers: &request.headers };
            let checked = check(&signed, Scope { region: REGION }, now(), known(None)).unwrap();
            assert_eq!(checked.target(), target);
        }
    }
    let signed = presigned("/gremlin", &SIGNER, 60, &[("x-more", "signed")]);
    assert_eq!(signed.verify().as_deref(), Ok(ID));
    let mut changed = presigned("/gremlin", &SIGNER, 60, &[("x-more", "signed")]);
    changed.set("x-more", "changed");
    changed.says("does not match");
}

#[test]
fn the_signature_of_a_url_is_the_one_of_the_specification() {
    // Made with botocore's SigV4QueryAuth.
    let mut request = Request::new(concat!(
        "/openCypher?query=RETURN%201%20AS%20one&X-Amz-Algorithm=AWS4-HMAC-SHA256",
        "&X-Amz-Credential=AKIDEXAMPLE%2F20261124%2Feu-central-1%2Fneptune-db%2Faws4_request",
        "&X-Amz-Date=20261124T120000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=",
        "45bab648b1c29d4d84a8718d3208c1f215aea25dd38301046ea72fb376588a1a"
    ));
    request.method = "GET";
    request.body = vec![];
    request.headers.remove(header::CONTENT_TYPE);
    assert_eq!(request.verify().as_deref(), Ok(ID));
}

#[test]
fn a_presigned_url_holds_as_long_as_it_says_and_no_longer_than_a_week() {
    let at = |at: &'static str, seconds| presigned("/gremlin", &Signer { at, ..SIGNER }, seconds, &[]);
    for (date, seconds) in [
        ("2026-11-24T12:00:00Z", 1),
        ("2026-11-24T11:59:00Z", 60),
        ("2026-11-17T12:00:00Z", MOST_EXPIRES),
        ("2026-11-24T12:05:00Z", 60),
    ] {
        assert_eq!(at(date, seconds).verify().as_deref(), Ok(ID), "{date} and {seconds} s");
    }
    at("2026-11-24T11:58:59Z", 60)
        .says("Signature expired: 20261124T115859Z and 60 seconds are now earlier than");
    at("2026-11-17T11:59:59Z", MOST_EXPIRES).says("Signature expired");
    at("2026-11-24T12:05:01Z", 60).says("Signature not yet current");
    at("2026-11-24T12:00:00Z", MOST_EXPIRES + 1).says("must be from 1 to 604800 seconds, not 604801");
    at("2026-11-24T12:00:00Z", 0).says("must be from 1 to 604800 seconds");
    for wrong in ["", "-60", "+60", "060", "60.0", "1e3", "99999999999999999999999"] {
        presigned("/gremlin", &SIGNER, 60, &[])
            .query("X-Amz-Expires=60", &format!("X-Amz-Expires={}", wrong.replace('+', "%2B")))
            .says("should be a number of seconds");
    }
}

#[test]
fn a_url_that_was_changed_after_signing_is_refused() {
    const MISMATCH: &str = "The request signature we calculated does not match";
    let signed = || presigned("/openCypher?query=RETURN%201", &SIGNER, 60, &[]);
    signed().query("RETURN%201", "RETURN%202").says(MISMATCH);
    signed().query("/openCypher?", "/gremlin?").says(MISMATCH);
    signed().query("Expires=60", "Expires=61").says(MISMATCH);
    signed().query("T120000Z", "T120001Z").says(MISMATCH);
    signed().query("query=RETURN%201&", "query=RETURN%201&more=1&").says(MISMATCH);
    signed().query("Signature=", "Signature=0").says(MISMATCH);
    let mut request = signed();
    request.method = "POST";
    request.says(MISMATCH);
    let mut request = signed();
    request.body = b"query=RETURN+2".to_vec();
    request.says(MISMATCH);
    let mut request = signed();
    request.set("host", "other:8182");
    request.says(MISMATCH);
    presigned("/gremlin", &Signer { secret: "another-secret-of-the-key", ..SIGNER }, 60, &[]).says(MISMATCH);
}

#[test]
fn a_url_for_another_region_service_key_or_token_is_refused() {
    let of = |signer: Signer| presigned("/gremlin", &signer, 60, &[]);
    of(Signer { region: "us-east-1", ..SIGNER }).says("valid region, not 'us-east-1'");
    of(Signer { service: "execute-api", ..SIGNER }).says("correct service: 'neptune-db' or 'neptune-graph'");
    let invalid = "The security token included in the request is invalid";
    of(Signer { id: "AKIDOTHER", ..SIGNER }).says(invalid);
    of(Signer { token: Some("a token that nobody gave"), ..SIGNER }).says(invalid);
    let with = || of(Signer { token: Some("session/+="), ..SIGNER });
    assert_eq!(with().verify_as(known(Some("session/+="))).as_deref(), Ok(ID));
    assert!(with().verify_as(known(Some("other"))).unwrap_err().contains(invalid));
    assert!(of(SIGNER).verify_as(known(Some("session/+="))).unwrap_err().contains(invalid));
}

#[test]
fn a_query_string_that_is_not_one_of_signatures_is_refused() {
    let signed = || presigned("/gremlin", &SIGNER, 60, &[]);
    for name in PARAMETERS.into_iter().filter(|name| *name != "X-Amz-Security-Token") {
        signed().query(name, "other").says(&format!("'{name}' is missing"));
        signed().query("/gremlin?", &format!("/gremlin?{name}=1&")).says(&format!("has {name} twice"));
    }
    signed().query("HMAC-SHA256", "ECDSA-P256-SHA256").says("X-Amz-Algorithm only supports AWS4-HMAC-SHA256");
    signed().query("aws4_request", "aws4").says("ID/DATE/REGION/SERVICE/aws4_request");
    signed().query("Headers=host", "Headers=").says("lower case");
    signed().query("Headers=host", "Headers=host%3Bhost").says("twice");
    signed().query("Headers=host", "Headers=host%3Bx-none").says("does not exist");
    signed().query("Date=20261124T", "Date=20261125T").says("does not match");
    signed().query("Date=2026", "Date=%00026").says("basic format");
    let mut both = signed();
    both.set("authorization", "Bearer abc");
    both.says("Only one auth mechanism allowed");
    let mut hashed = signed();
    hashed.set("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    hashed.says("'x-amz-content-sha256' must be a 'SignedHeader'");
    presigned("/gremlin", &SIGNER, 60, &[("x-amz-content-sha256", "UNSIGNED-PAYLOAD")])
        .says("UNSIGNED-PAYLOAD is not accepted");
}
