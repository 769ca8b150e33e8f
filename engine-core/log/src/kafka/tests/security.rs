//! Brokers that require certificates or tokens. The tokens here are unsigned: only MSK can verify its own tokens.

use super::server::Own;
use super::{ONE, PATIENCE, commit, made, open};
use crate::error::cause;
use crate::kafka::{KafkaFollower, KafkaLog, create_topic};
use crate::testing::read_all;
use crate::{Cause, Follower, KafkaOptions, KafkaTls, LogStore, Position, Record, Token, Tokens};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegraph_platform::free_port;
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::{ShardId, Version};

/// A certificate authority, and files with certificates that it signed.
struct Authority {
    folder: tempfile::TempDir,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        // The name is set, because a certificate whose name is that of its issuer counts as self-signed.
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("authority.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: rcgen::Issuer::new(params, key) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes files with a certificate for an address or a name, and with its key.
    fn certificate(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = (self.file(&format!("{name}-certificate.pem")), self.file(&format!("{name}-key.pem")));
        std::fs::write(&files.0, certificate.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }

    fn trusted(&self) -> KafkaTls {
        KafkaTls { authorities: Some(self.file("authority.pem")), certificate: None }
    }

    /// Starts a broker with a listener that requires certificates and one that requires
    /// tokens. Returns it with their ports.
    fn broker(&self, name: &str) -> (Own, u16, u16) {
        let (certificate, key) = self.certificate(name);
        let read = |path| std::fs::read_to_string(path).unwrap();
        let store = self.file(&format!("{name}-store.pem"));
        std::fs::write(&store, format!("{}{}", read(&key), read(&certificate))).unwrap();
        let ports = (free_port(), free_port());
        let listeners = [
            (format!("CERTIFICATES://127.0.0.1:{}", ports.0), "SSL"),
            (format!("TOKENS://127.0.0.1:{}", ports.1), "SASL_SSL"),
        ];
        let settings = format!(
            "ssl.keystore.type=PEM\nssl.keystore.location={}\nssl.truststore.type=PEM\n\
             ssl.truststore.location={}\nlistener.name.certificates.ssl.client.auth=required\n\
             listener.name.tokens.sasl.enabled.mechanisms=OAUTHBEARER\n\
             listener.name.tokens.oauthbearer.connections.max.reauth.ms=60000\n\
             listener.name.tokens.oauthbearer.sasl.jaas.config=\
             org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;\n",
            store.display(),
            self.file("authority.pem").display()
        );
        (Own::start_with(&listeners, &settings), ports.0, ports.1)
    }
}

/// Makes unsigned tokens, which brokers accept in tests.
struct Unsigned {
    clock: RealClock,
    lasts_s: i64,
    made: AtomicUsize,
    /// Seconds that are added to the time from which a token is valid.
    late_s: AtomicI64,
}

impl Unsigned {
    fn new(lasts_s: i64) -> Arc<Self> {
        let clock = RealClock::new();
        Arc::new(Self { clock, lasts_s, made: AtomicUsize::new(0), late_s: AtomicI64::new(0) })
    }
}

impl Tokens for Unsigned {
    fn token(&self) -> Result<Token, Cause> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let begins = self.clock.wall().as_second() + self.late_s.load(Ordering::Relaxed);
        let ends = begins + self.lasts_s;
        let text = |json: String| BASE64_URL_SAFE_NO_PAD.encode(json);
        let claims = format!(r#"{{"sub":"tidegraph","iat":{begins},"exp":{ends}}}"#);
        let value = format!("{}.{}.", text(r#"{"alg":"none"}"#.into()), text(claims));
        Ok(Token { value, principal: "tidegraph".into(), ends_ms: ends * 1000 })
    }
}

struct NoTokens;

impl Tokens for NoTokens {
    fn token(&self) -> Result<Token, Cause> {
        Err(cause("the credentials are gone"))
    }
}

fn at(port: u16, topic: &str) -> KafkaOptions {
    KafkaOptions { timeout: PATIENCE, ..KafkaOptions::new(format!("127.0.0.1:{port}"), topic) }
}

/// Writes through one log, and reads through another and through a follower.
fn writes_and_reads(options: &KafkaOptions) {
    let written: Vec<Record> = (1..=5).map(|version| commit(version, 1, "a")).collect();
    let mut log = made(options);
    log.append(&written).unwrap();
    assert_eq!(read_all(&mut open(options), 1).unwrap(), written);
    let mut follower = KafkaFollower::new(options.clone(), ShardId(0), Position::default());
    let read: Vec<Record> = std::iter::from_fn(|| follower.next(PATIENCE).unwrap()).take(5).collect();
    assert_eq!(read, written);
    log.trim(Version(5)).unwrap();
}

#[test]
fn with_certificates_and_with_tokens() {
    let (ours, others) = (Authority::new(), Authority::new());
    let (_server, certificates, tokens) = ours.broker("127.0.0.1");
    let pair = Some(ours.certificate("tidegraph"));
    let shown = KafkaTls { certificate: pair.clone(), ..ours.trusted() };
    writes_and_reads(&KafkaOptions { tls: Some(shown), ..at(certificates, "certificates") });
    let source = Unsigned::new(3_600);
    let with_tokens =
        |topic| KafkaOptions { tls: Some(ours.trusted()), tokens: Some(source.clone()), ..at(tokens, topic) };
    writes_and_reads(&with_tokens("tokens"));
    assert!(source.made.load(Ordering::Relaxed) > 0);

    // The broker or the client refuses each of these.
    let refused = |options: KafkaOptions, what: &str| {
        let options = KafkaOptions { timeout: Duration::from_secs(3), ..options };
        assert!(KafkaLog::open(options.clone(), ShardId(0)).is_err(), "{what}");
        assert!(create_topic(&options, ONE).is_err(), "{what}");
    };
    refused(at(certificates, "certificates"), "without TLS");
    refused(KafkaOptions { tls: Some(ours.trusted()), ..at(certificates, "certificates") }, "no certificate");
    let foreign = KafkaTls { certificate: Some(others.certificate("tidegraph")), ..ours.trusted() };
    refused(KafkaOptions { tls: Some(foreign), ..at(certificates, "certificates") }, "who signed for us");
    let distrusts = KafkaTls { certificate: pair, ..others.trusted() };
    refused(KafkaOptions { tls: Some(distrusts), ..at(certificates, "certificates") }, "who signed for it");
    refused(KafkaOptions { tokens: None, ..with_tokens("tokens") }, "no token");
    refused(KafkaOptions { tls: None, ..with_tokens("tokens") }, "a token without TLS");
    let late = Unsigned::new(3_600);
    late.late_s.store(100_000, Ordering::Relaxed);
    refused(KafkaOptions { tokens: Some(late), ..with_tokens("tokens") }, "a token that has not begun");
    let timeout = Duration::from_secs(20);
    let none = KafkaOptions { tokens: Some(Arc::new(NoTokens)), timeout, ..with_tokens("tokens") };
    let error = KafkaLog::open(none, ShardId(0)).unwrap_err().to_string();
    assert!(error.contains("the credentials are gone"), "{error}");
}

#[test]
fn a_broker_with_another_name_is_refused() {
    let authority = Authority::new();
    let (_server, _, tokens) = authority.broker("imposter.example");
    let options = KafkaOptions {
        tls: Some(authority.trusted()),
        tokens: Some(Unsigned::new(3_600)),
        timeout: Duration::from_secs(3),
        ..at(tokens, "imposter")
    };
    assert!(KafkaLog::open(options.clone(), ShardId(0)).is_err());
    // The same broker without the check of its name accepts the client, so nothing else was wrong.
    let lax = ("ssl.endpoint.identification.algorithm".to_owned(), "none".to_owned());
    writes_and_reads(&KafkaOptions { properties: vec![lax], timeout: PATIENCE, ..options });
}

#[test]
fn expired_tokens_are_replaced() {
    let authority = Authority::new();
    let (_server, _, tokens) = authority.broker("127.0.0.1");
    let source = Unsigned::new(8);
    let options =
        KafkaOptions { tls: Some(authority.trusted()), tokens: Some(source.clone()), ..at(tokens, "short") };
    let mut log = made(&options);
    let begun = source.made.load(Ordering::Relaxed);
    let clock = RealClock::new();
    // Both clients of the log get two more tokens in this time, so their first tokens have long expired.
    let mut version = 0;
    while source.made.load(Ordering::Relaxed) < begun + 4 {
        version += 1;
        log.append(&[commit(version, 1, "a")]).unwrap();
        clock.sleep(Duration::from_millis(200));
        assert!(clock.now() < 5 * PATIENCE, "the client asks for no other token");
    }
    log.append(&[commit(version + 1, 1, "b")]).unwrap();
    assert_eq!(read_all(&mut open(&options), 1).unwrap().len() as u64, version + 1);
}

#[cfg(feature = "msk-iam")]
#[test]
fn tokens_for_msk_are_signed_with_the_credentials_of_the_process() {
    use crate::kafka::MskIam;
    // The test runs in another process, because credentials come from the environment.
    const ASKED: &str = "TIDEGRAPH_TEST_SIGNS";
    if std::env::var_os(ASKED).is_none() {
        let name = "kafka::tests::security::tokens_for_msk_are_signed_with_the_credentials_of_the_process";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ASKED, "1")
            .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_SESSION_TOKEN", "session")
            .env_remove("AWS_PROFILE")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let clock = Arc::new(RealClock::new());
    let iam = MskIam::new("eu-west-3", None, clock.clone());
    let token = iam.token().unwrap();
    let url = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(&token.value).unwrap()).unwrap();
    assert!(
        url.starts_with("https://kafka.eu-west-3.amazonaws.com/?Action=kafka-cluster%3AConnect&"),
        "{url}"
    );
    for part in [
        "X-Amz-Algorithm=AWS4-HMAC-SHA256",
        "X-Amz-Credential=AKIDEXAMPLE%2F",
        "%2Feu-west-3%2Fkafka-cluster%2Faws4_request",
        "X-Amz-Expires=900",
        "X-Amz-Security-Token=session",
        "X-Amz-Signature=",
        "User-Agent=",
    ] {
        assert!(url.contains(part), "{part} in {url}");
    }
    let left_ms = token.ends_ms - clock.wall().as_millisecond();
    assert!((1..=900_000).contains(&left_ms), "{left_ms}");
    // The token is reused, and never printed.
    assert_eq!(iam.token().unwrap().value, token.value);
    assert!(!format!("{token:?} {iam:?}").contains(&token.value));
}
