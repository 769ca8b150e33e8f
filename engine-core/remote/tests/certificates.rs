//! Two processes whose certificates, authority and mode change while they are connected.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_platform::{RealClock, RealRandom};
use tidegraph_remote::{
    CertificateSource, CertificateTexts, ClientConfig, Error, Graphs, Pem, RemoteNode, Security, Server,
    ServerConfig, Services, Status, TlsMode, Tokens,
};

const LONG: Duration = Duration::from_secs(120);
const SECRET: &str = "a-secret-of-the-fleet";

/// An authority of a fleet.
struct Authority {
    pem: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: rcgen::Issuer::new(params, key) }
    }

    /// Returns certificates of a process that trusts these authorities.
    fn sign(&self, kind: Kind, trusted: &[&Self], mode: TlsMode) -> CertificateTexts {
        let key = rcgen::KeyPair::generate().unwrap();
        let (names, uses) = match kind {
            Kind::Node => (vec!["node.fleet".to_owned()], vec![SERVER, CLIENT]),
            Kind::Worker => (Vec::new(), vec![CLIENT]),
        };
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.extended_key_usages = uses;
        let pem = |text: String| Pem { text, place: "a test".into() };
        CertificateTexts {
            authorities: pem(trusted.iter().map(|authority| authority.pem.as_str()).collect()),
            certificate: pem(params.signed_by(&key, &self.issuer).unwrap().pem()),
            key: pem(key.serialize_pem()),
            server_name: Some("node.fleet".into()),
            mode,
        }
    }
}

const SERVER: rcgen::ExtendedKeyUsagePurpose = rcgen::ExtendedKeyUsagePurpose::ServerAuth;
const CLIENT: rcgen::ExtendedKeyUsagePurpose = rcgen::ExtendedKeyUsagePurpose::ClientAuth;

#[derive(Clone, Copy)]
enum Kind {
    Node,
    Worker,
}

/// Certificates that a test replaces, which are read before each use.
struct Place(Mutex<CertificateTexts>);

impl Place {
    fn new(texts: CertificateTexts) -> Arc<Self> {
        Arc::new(Self(Mutex::new(texts)))
    }

    fn put(&self, texts: CertificateTexts) {
        *self.0.lock() = texts;
    }

    fn follow(self: &Arc<Self>) -> Security {
        let tokens = Tokens { current: SECRET.into(), previous: None };
        Security::follow(Some(self.clone()), Arc::new(tokens), Arc::new(RealClock::new())).unwrap()
    }
}

impl CertificateSource for Place {
    fn read(&self) -> Result<CertificateTexts, String> {
        Ok(self.0.lock().clone())
    }

    fn every(&self) -> Duration {
        Duration::ZERO
    }
}

/// A node that says that it is up.
struct Up;

impl Status for Up {
    fn status(&self) -> String {
        "up".into()
    }
}

fn serve(security: Security) -> Server {
    let services = Services { status: Some(Arc::new(Up)), ..Services::default() };
    let (graphs, clock) = (Graphs::one("default", services), Arc::new(RealClock::new()));
    Server::start(ServerConfig::default(), security, &graphs, clock, &RealRandom).unwrap()
}

fn client(server: &Server, security: Security) -> Arc<RemoteNode> {
    let address = server.address().to_string();
    let (clock, random) = (Arc::new(RealClock::new()), Arc::new(RealRandom));
    RemoteNode::new(&address, ClientConfig::default(), security, clock, random)
}

fn ask(server: &Server, place: &Arc<Place>) -> Result<String, Error> {
    client(server, place.follow()).status(LONG)
}

#[test]
fn certificates_and_then_the_authority_change_while_connections_stay() {
    let (old, new, other) = (Authority::new("old"), Authority::new("new"), Authority::new("other"));
    let require = TlsMode::Require;
    let node = Place::new(old.sign(Kind::Node, &[&old], require));
    let worker = Place::new(old.sign(Kind::Worker, &[&old], require));
    let server = serve(node.follow());
    let (security, steady) = (worker.follow(), client(&server, worker.follow()));
    assert_eq!(steady.status(LONG).unwrap(), "up");
    // A new certificate, the new authority beside the old one, certificates of it, and the old one's end: for the node
    // first, for the worker first, and so on. A new connection succeeds after each.
    let both = [&old, &new];
    let steps: [(&Arc<Place>, CertificateTexts); 8] = [
        (&node, old.sign(Kind::Node, &[&old], require)),
        (&worker, old.sign(Kind::Worker, &[&old], require)),
        (&worker, old.sign(Kind::Worker, &both, require)),
        (&node, old.sign(Kind::Node, &both, require)),
        (&node, new.sign(Kind::Node, &both, require)),
        (&worker, new.sign(Kind::Worker, &both, require)),
        (&node, new.sign(Kind::Node, &[&new], require)),
        (&worker, new.sign(Kind::Worker, &[&new], require)),
    ];
    for (step, (place, texts)) in steps.into_iter().enumerate() {
        place.put(texts);
        let status = client(&server, security.clone()).status(LONG);
        assert_eq!(status.unwrap(), "up", "step {step}");
        let connections = server.counters().connections.load(Ordering::Relaxed);
        assert_eq!(steady.status(LONG).unwrap(), "up", "step {step}");
        assert_eq!(
            server.counters().connections.load(Ordering::Relaxed),
            connections,
            "it stays, step {step}"
        );
    }
    // The old authority and another one are strangers now, even if they trust the new one.
    for stranger in [&old, &other] {
        let trusted = [stranger, &new];
        assert!(ask(&server, &Place::new(stranger.sign(Kind::Worker, &trusted, require))).is_err());
    }
}

#[test]
fn a_worker_cannot_pose_as_a_node() {
    let fleet = Authority::new("fleet");
    let worker = || Place::new(fleet.sign(Kind::Worker, &[&fleet], TlsMode::Require));
    let imposter = serve(worker().follow());
    let error = ask(&imposter, &worker()).unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    let node = serve(Place::new(fleet.sign(Kind::Node, &[&fleet], TlsMode::Require)).follow());
    assert_eq!(ask(&node, &worker()).unwrap(), "up");
}

#[test]
fn modes_that_are_a_step_apart_reach_each_other() {
    let fleet = Authority::new("fleet");
    let of = |kind, mode| Place::new(fleet.sign(kind, &[&fleet], mode));
    let plain = || {
        let tokens = Tokens { current: SECRET.into(), previous: None };
        Security::follow(None, Arc::new(tokens), Arc::new(RealClock::new())).unwrap()
    };
    let modes = [TlsMode::Accept, TlsMode::Prefer, TlsMode::Require];
    for (at, mode) in modes.into_iter().enumerate() {
        let server = serve(of(Kind::Node, mode).follow());
        for (other_at, other) in modes.into_iter().enumerate() {
            let answer = ask(&server, &of(Kind::Worker, other));
            let is_reached = !(mode == TlsMode::Require && other == TlsMode::Accept);
            assert_eq!(answer.is_ok(), is_reached, "{mode:?} is asked by {other:?}: {answer:?}");
            assert!(is_reached || at.abs_diff(other_at) > 1);
        }
        // Processes that know no certificates.
        let answer = client(&server, plain()).status(LONG);
        assert_eq!(answer.is_ok(), mode != TlsMode::Require, "{mode:?}: {answer:?}");
    }
    let before = serve(plain());
    assert!(ask(&before, &of(Kind::Worker, TlsMode::Accept)).is_ok());
    assert!(ask(&before, &of(Kind::Worker, TlsMode::Prefer)).is_err());
}

#[test]
fn a_mode_changes_while_a_process_runs() {
    let fleet = Authority::new("fleet");
    let node = Place::new(fleet.sign(Kind::Node, &[&fleet], TlsMode::Accept));
    let worker = Place::new(fleet.sign(Kind::Worker, &[&fleet], TlsMode::Accept));
    let server = serve(node.follow());
    let security = worker.follow();
    let wrong = Place::new(fleet.sign(Kind::Worker, &[&fleet], TlsMode::Accept));
    for mode in [TlsMode::Accept, TlsMode::Prefer, TlsMode::Require] {
        // Each side may be the first to know.
        node.put(fleet.sign(Kind::Node, &[&fleet], mode));
        assert_eq!(client(&server, security.clone()).status(LONG).unwrap(), "up", "{mode:?}");
        worker.put(fleet.sign(Kind::Worker, &[&fleet], mode));
        assert_eq!(client(&server, security.clone()).status(LONG).unwrap(), "up", "{mode:?}");
        assert_eq!(ask(&server, &wrong).is_ok(), mode != TlsMode::Require);
    }
}
