//! The connection between two processes: authentication, refusals, limits, and giving up.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use parking_lot::{Condvar, Mutex};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock, RealRandom};
use tidegraph_remote::{
    ClientConfig, CommitOutcome, Commits, Committed, Earlier, Error, Graphs, LastChanges, LoadRequest,
    LoadStep, Newest, RemoteCommits, RemoteNode, RequestId, Security, SecurityConfig, Server, ServerConfig,
    Services, Status, TlsFiles, TokenSource, Tokens,
};
use tidegraph_types::{
    CommitRequest, Epoch, Footprint, Gui, Key, LoadChange, LoadChanges, LoadTurn, MadeSince, MadeVertex,
    Mutation, PropertyWrite, Str, Token, Value, Version,
};
use tidegraph_wire::proto;

const LONG: Duration = Duration::from_secs(120);

/// A gate at which status requests wait, so that a test decides when they are answered.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    waiting: Mutex<usize>,
}

impl Gate {
    fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }
}

impl Status for Gate {
    fn status(&self) -> String {
        *self.waiting.lock() += 1;
        let mut open = self.open.lock();
        while !*open {
            self.opened.wait(&mut open);
        }
        r#"{"state":"serving"}"#.into()
    }
}

/// A sequencer that records the requests that it receives.
#[derive(Default)]
struct Log(Mutex<Vec<(RequestId, CommitRequest)>>);

impl Commits for Log {
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Committed, Error> {
        if request.read_version == Version(99) {
            return Err(Error::Conflict { read_version: Version(99), written: Version(100) });
        }
        let mut log = self.0.lock();
        let earlier = request.by_key.then_some(Earlier::OtherRequest);
        log.push((id, request));
        let newest_token = Some(Token(6));
        Ok(Committed { version: Version(log.len() as u64), schema: Version(5), newest_token, earlier })
    }
    fn outcome(&self, id: RequestId, _: Version) -> Result<CommitOutcome, Error> {
        let log = self.0.lock();
        let found = log.iter().position(|(known, _)| *known == id);
        Ok(found.map_or(CommitOutcome::Unknown, |at| CommitOutcome::Committed(Version(at as u64 + 1))))
    }
    fn outcome_of_key(&self, _: RequestId, since: Version) -> Result<CommitOutcome, Error> {
        Ok(CommitOutcome::OtherRequest(since))
    }
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        Ok(names.iter().map(|name| Token(name.len() as u32)).collect())
    }
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        Ok(100..100 + count)
    }
    fn newest(&self) -> Result<Newest, Error> {
        Ok(newest())
    }
    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error> {
        Ok(vec![(Token(above.0 + 1), "name".into())])
    }
    fn begin_load(&self, _: RequestId, beginning: u64) -> Result<Version, Error> {
        Ok(Version(beginning))
    }
    fn watch_load(&self, id: RequestId, above: Version) -> Result<MadeSince, Error> {
        if id != RequestId(7) {
            return Err(Error::LoadUnknown("another load".into()));
        }
        Ok(MadeSince { upto: above.next(), vertices: made() })
    }
    fn load_changes(&self, above: Version) -> Result<LoadChanges, Error> {
        Ok(LoadChanges { since: Version(3), upto: above.next(), changes: changed() })
    }
    fn load_turn(&self, id: RequestId, turn: Option<LoadTurn>) -> Result<Option<Version>, Error> {
        assert!(turn.is_none_or(|other| other == load_turn()));
        Ok((id == RequestId(7)).then_some(Version(12)))
    }
    fn end_load(&self, _: RequestId) -> Result<(), Error> {
        Ok(())
    }
    fn commit_load(&self, _: RequestId, load: LoadRequest) -> Result<LoadStep, Error> {
        assert_eq!(load, load_request(load.compared));
        Ok(match load.compared {
            Version(0) => LoadStep::Ask,
            Version(1) => LoadStep::Rest(LastChanges { question: 5, vertices: made(), changes: changed() }),
            compared => LoadStep::Committed(compared.next()),
        })
    }
    fn report_load_collision(
        &self,
        _: RequestId,
        asked: u64,
        collision: Option<Version>,
    ) -> Result<(), Error> {
        assert_eq!(asked, 5);
        match collision {
            None => Ok(()),
            Some(written) => Err(Error::Conflict { read_version: Version(0), written }),
        }
    }
}

fn newest() -> Newest {
    let (version, load, schema) = (Version(7), Version(2), Version(5));
    Newest { version, epoch: Epoch(3), load, schema, newest_token: Token(6), halted: Some(Version(8)) }
}

fn made() -> Vec<MadeVertex> {
    vec![
        MadeVertex { version: Version(8), gui: Gui(u64::MAX), id: "a".into() },
        MadeVertex { version: Version(9), gui: Gui(0), id: "".into() },
    ]
}

fn changed() -> Vec<(Version, LoadChange)> {
    vec![
        (Version(8), LoadChange::Deleted(Gui(u64::MAX))),
        (Version(8), LoadChange::EdgeId(Gui(1))),
        (Version(9), LoadChange::Any),
    ]
}

fn load_turn() -> LoadTurn {
    let mut footprint = Footprint::with_capacity(100);
    footprint.add_vertex(Gui(7));
    LoadTurn { footprint, read_keys: vec![Key(6), Key(u64::MAX)], limit: Duration::from_micros(1_500_001) }
}

fn load_request(compared: Version) -> LoadRequest {
    LoadRequest {
        load_id: "load".into(),
        segments: vec!["loads/load/v-p00000-000000.seg".into()],
        read_version: Version(5),
        read_keys: vec![Key(6)],
        compared,
        changes_compared: (compared > Version(1)).then_some(compared),
        first_asked: Version(4),
        beginning: 7,
    }
}

#[test]
fn loads_travel_in_steps() {
    let services = Services { commits: Some(Arc::new(Log::default())), ..Services::default() };
    let server = server(ServerConfig::default(), Security::none(), services);
    let commits = RemoteCommits::new(node(&server, ClientConfig::default(), Security::none()), LONG);
    let id = RequestId(7);
    assert_eq!(commits.begin_load(id, 7).unwrap(), Version(7));
    let since = commits.watch_load(id, Version(0)).unwrap();
    assert_eq!(since, MadeSince { upto: Version(1), vertices: made() });
    let other = commits.watch_load(RequestId(8), Version(9));
    assert!(matches!(other, Err(Error::LoadUnknown(_))), "{other:?}");
    let step = |compared| commits.commit_load(id, load_request(Version(compared))).unwrap();
    assert_eq!(step(0), LoadStep::Ask);
    assert_eq!(step(1), LoadStep::Rest(LastChanges { question: 5, vertices: made(), changes: changed() }));
    assert_eq!(step(2), LoadStep::Committed(Version(3)));
    let changes = commits.load_changes(Version(11)).unwrap();
    assert_eq!(changes, LoadChanges { since: Version(3), upto: Version(12), changes: changed() });
    assert_eq!(commits.load_turn(id, Some(load_turn())).unwrap(), Some(Version(12)));
    assert_eq!(commits.load_turn(RequestId(8), Some(load_turn())).unwrap(), None);
    assert_eq!(commits.load_turn(RequestId(8), None).unwrap(), None);
    commits.report_load_collision(id, 5, None).unwrap();
    let refused = commits.report_load_collision(id, 5, Some(Version(9)));
    assert!(matches!(refused, Err(Error::Conflict { written: Version(9), .. })), "{refused:?}");
    commits.end_load(id).unwrap();
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(RealClock::new())
}

fn server(config: ServerConfig, security: Security, services: Services) -> Server {
    Server::start(config, security, &Graphs::one("default", services), clock(), &RealRandom).unwrap()
}

fn node(server: &Server, config: ClientConfig, security: Security) -> Arc<RemoteNode> {
    let address = server.address().to_string();
    RemoteNode::new(&address, config, security, clock(), Arc::new(RealRandom))
}

fn with_status(gate: &Arc<Gate>) -> Services {
    Services { status: Some(gate.clone()), ..Services::default() }
}

fn opened() -> Arc<Gate> {
    let gate = Arc::new(Gate::default());
    gate.open();
    gate
}

fn token(token: &str) -> Security {
    Security::load(&SecurityConfig { token: token.into(), tls: None }).unwrap()
}

#[test]
fn commits_travel_with_their_errors() {
    let log = Arc::new(Log::default());
    let services = Services { commits: Some(log.clone()), ..Services::default() };
    let server = server(ServerConfig::default(), Security::none(), services);
    let commits = RemoteCommits::new(node(&server, ClientConfig::default(), Security::none()), LONG);
    let write = PropertyWrite {
        key: Token(4),
        cardinality: tidegraph_types::Cardinality::Set,
        value: Value::string("x"),
    };
    let request = CommitRequest {
        read_version: Version(5),
        read_keys: vec![Key(1), Key(u64::MAX)],
        write_keys: vec![Key(3)],
        mutations: vec![Mutation::SetVertexProperty { gui: Gui(9), write }],
        request: None,
        first_asked: None,
        by_key: false,
        changes: None,
    };
    let id = RequestId(7);
    assert_eq!(commits.outcome(id, Version(0)).unwrap(), CommitOutcome::Unknown);
    let newest_token = Some(Token(6));
    let committed = Committed { version: Version(1), schema: Version(5), newest_token, earlier: None };
    assert_eq!(commits.commit(id, request.clone()).unwrap(), committed);
    assert_eq!(commits.outcome(id, Version(0)).unwrap(), CommitOutcome::Committed(Version(1)));
    assert_eq!(*log.0.lock(), [(id, request.clone())]);
    let other = CommitOutcome::OtherRequest(Version(3));
    assert_eq!(commits.outcome_of_key(id, Version(3)).unwrap(), other);
    let keyed = CommitRequest { first_asked: Some(Version(4)), by_key: true, ..request.clone() };
    let earlier = Some(Earlier::OtherRequest);
    assert_eq!(
        commits.commit(RequestId(8), keyed.clone()).unwrap(),
        Committed { version: Version(2), earlier, ..committed }
    );
    assert_eq!(log.0.lock()[1], (RequestId(8), keyed));
    let late = CommitRequest { read_version: Version(99), ..request };
    assert!(matches!(
        commits.commit(id, late),
        Err(Error::Conflict { read_version: Version(99), written: Version(100) })
    ));
    assert_eq!(commits.intern(&["ab".into(), "".into()]).unwrap(), [Token(2), Token(0)]);
    assert_eq!(commits.allocate_sids(8).unwrap(), 100..108);
    assert_eq!(commits.newest().unwrap(), newest());
    assert_eq!(commits.tokens(Token(4)).unwrap(), [(Token(5), "name".into())]);
    // The node does not have this service.
    let status = commits_node(&server).status(LONG);
    assert!(matches!(status, Err(Error::Unknown(_))), "{status:?}");
}

fn commits_node(server: &Server) -> Arc<RemoteNode> {
    node(server, ClientConfig::default(), Security::none())
}

#[test]
fn strangers_are_refused_with_the_reason() {
    let server = server(ServerConfig::default(), token("secret"), with_status(&opened()));
    let refused = |config: ClientConfig, security: Security, text: &str| {
        let status = node(&server, config, security).status(LONG);
        let Err(Error::Refused { reason, .. }) = &status else { panic!("{status:?}") };
        assert!(reason.contains(text), "{reason}");
    };
    refused(ClientConfig::default(), token("guess"), "token");
    refused(ClientConfig::default(), Security::none(), "token");
    refused(ClientConfig { graph: "other".into(), ..ClientConfig::default() }, token("secret"), "graph");
    let status = node(&server, ClientConfig::default(), token("secret")).status(LONG);
    assert_eq!(status.unwrap(), r#"{"state":"serving"}"#);
}

/// The versions of the protocol of a release before and after, as a socket that speaks for them sends them.
#[test]
fn two_releases_use_the_newest_protocol_that_both_have() {
    use tidegraph_wire::Message;
    let tidegraph_types::Formats { oldest, newest } = tidegraph_remote::PROTOCOLS;
    let server = server(ServerConfig::default(), token("secret"), with_status(&opened()));
    let answer = |oldest, newest| raw(&server, &hello(&proto::Hello { oldest, newest, ..ours() }));
    for (from, to) in [(newest, newest), (oldest - 1, newest), (newest, newest + 1), (oldest - 1, newest + 9)]
    {
        let bytes = answer(from, to);
        let welcome = proto::Welcome::decode(&bytes[8 + 20..]).unwrap();
        assert_eq!((bytes[8 + 16], welcome.version), (2, newest), "{from} to {to}");
    }
    // Two releases apart: the server's message names the versions of both, and what to do.
    for (from, to) in [(newest + 1, newest + 2), (oldest - 1, oldest - 1), (newest + 1, oldest - 1)] {
        let bytes = answer(from, to);
        let goodbye = proto::Goodbye::decode(&bytes[8 + 20..]).unwrap();
        assert_eq!((bytes[8 + 16], goodbye.oldest, goodbye.newest), (3, oldest, newest), "{from} to {to}");
        let ours =
            format!("protocol {}: the releases of a fleet may differ by one", tidegraph_remote::PROTOCOLS);
        assert!(goodbye.text.contains(&ours) && goodbye.text.contains(&to.to_string()), "{}", goodbye.text);
    }
    // A node that chooses a version which it was not offered.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let node = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let welcome =
            proto::Welcome { version: newest + 1, request_bytes: 1000, in_flight: 10, ..Default::default() };
        let answer = [b"TIDEWIRE".as_slice(), &frame(2, 0, &welcome.encode_to_vec())].concat();
        socket.write_all(&answer).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let client =
        RemoteNode::new(&address, ClientConfig::default(), Security::none(), clock(), Arc::new(RealRandom));
    let status = client.status(LONG);
    let Err(Error::Refused { reason, .. }) = &status else { panic!("{status:?}") };
    let chosen = format!("it chose protocol {}, this process", newest + 1);
    assert!(reason.contains(&chosen) && reason.contains("upgrade the older side first"), "{reason}");
    drop(client);
    node.join().unwrap();
}

/// A place of secrets that can be rotated, and stop answering.
struct Rotating(Mutex<Result<Tokens, String>>);

impl Rotating {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Ok(secrets(0)))))
    }
}

/// The secrets after this many rotations.
fn secrets(rotations: u32) -> Tokens {
    let previous = rotations.checked_sub(1).map(|before| format!("secret {before}"));
    Tokens { current: format!("secret {rotations}"), previous }
}

impl TokenSource for Rotating {
    fn read(&self) -> Result<Tokens, String> {
        self.0.lock().clone()
    }
}

#[test]
fn a_rotation_refuses_nobody_whoever_learns_of_it_first() {
    // The secrets that the server and the client have read, and then find: all pairs in which one knows the other's.
    for (of_server, of_client) in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0)] {
        let (servers, clients) = (Rotating::new(), Rotating::new());
        *servers.0.lock() = Ok(secrets(of_server));
        *clients.0.lock() = Ok(secrets(of_client));
        let follow = |place: &Arc<Rotating>| Security::follow(None, place.clone(), clock()).unwrap();
        let (of_the_server, of_the_client) = (follow(&servers), follow(&clients));
        let newest = secrets(of_server.max(of_client));
        *servers.0.lock() = Ok(newest.clone());
        *clients.0.lock() = Ok(newest);
        let server = server(ServerConfig::default(), of_the_server, with_status(&opened()));
        let status = node(&server, ClientConfig::default(), of_the_client).status(LONG);
        assert_eq!(status.unwrap(), r#"{"state":"serving"}"#, "{of_server} {of_client}");
    }
}

#[test]
fn a_server_that_cannot_read_the_new_secret_is_shown_the_one_before() {
    let (servers, clients) = (Rotating::new(), Rotating::new());
    let follow = |place: &Arc<Rotating>| Security::follow(None, place.clone(), clock()).unwrap();
    let server = server(ServerConfig::default(), follow(&servers), with_status(&opened()));
    *servers.0.lock() = Err("it does not answer".into());
    *clients.0.lock() = Ok(secrets(1));
    let status = node(&server, ClientConfig::default(), follow(&clients)).status(LONG);
    assert_eq!(status.unwrap(), r#"{"state":"serving"}"#);
    // After two rotations the server does not know the secret before either.
    *clients.0.lock() = Ok(secrets(2));
    let status = node(&server, ClientConfig::default(), follow(&clients)).status(LONG);
    assert!(matches!(&status, Err(Error::Refused { reason, .. }) if reason.contains("token")), "{status:?}");
}

fn ours() -> proto::Hello {
    proto::Hello {
        oldest: tidegraph_remote::PROTOCOLS.oldest,
        newest: tidegraph_remote::PROTOCOLS.newest,
        graph: "default".into(),
        token: "secret".into(),
        software: String::new(),
        incarnation: String::new(),
    }
}

fn frame(kind: u8, id: u64, payload: &[u8]) -> Vec<u8> {
    let mut rest = id.to_le_bytes().to_vec();
    rest.extend([kind, 0, 0, 0]);
    rest.extend(payload);
    let mut out = (payload.len() as u32).to_le_bytes().to_vec();
    out.extend(crc32c::crc32c(&rest).to_le_bytes());
    out.extend(rest);
    out
}

fn hello(hello: &proto::Hello) -> Vec<u8> {
    use tidegraph_wire::Message;
    [b"TIDEWIRE".as_slice(), &frame(1, 0, &hello.encode_to_vec())].concat()
}

/// Sends bytes, closes the sending side, and returns all bytes that the server sent back.
fn raw(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.address()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    // The server may close the connection before it has read everything.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "it never ended"),
    }
    answer
}

#[test]
fn whatever_is_sent_the_server_goes_on() {
    let server = server(ServerConfig::default(), token("secret"), with_status(&opened()));
    let good = hello(&ours());
    let huge = [good.clone(), frame(4, 1, b"")[..16].to_vec()].concat();
    let mut huge_length = huge;
    let at = good.len();
    huge_length.extend([4, 0, 0, 0]);
    huge_length[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let cases = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        b"TIDEWIRE".to_vec(),
        good[..good.len() - 1].to_vec(),
        frame(4, 1, b""),
        [b"TIDEWIRE".as_slice(), &frame(4, 1, b"")].concat(),
        [good.clone(), frame(99, 1, b"")].concat(),
        [good.clone(), frame(2, 1, b"")].concat(),
        [good.clone(), frame(4, 1, b"\xff\xff\xff")].concat(),
        [good.clone(), frame(4, 1, b"\x4a\x00"), frame(4, 1, b"\x4a\x00")].concat(),
        huge_length,
    ];
    for case in &cases {
        raw(&server, case);
    }
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let noise = (prop::collection::vec(any::<u8>(), 0..300), 0_u8..3, 0_u8..10);
    let tried = runner.run(&noise, |(bytes, way, kind)| {
        let bytes = match way {
            0 => bytes,
            1 => [good.clone(), bytes].concat(),
            _ => [good.clone(), frame(kind, 1, &bytes)].concat(),
        };
        raw(&server, &bytes);
        Ok(())
    });
    tried.unwrap();
    assert!(server.counters().refused.load(Ordering::Relaxed) >= 9);
    let status = node(&server, ClientConfig::default(), token("secret")).status(LONG);
    assert_eq!(status.unwrap(), r#"{"state":"serving"}"#);
}

#[test]
fn a_message_that_is_too_large_is_refused_before_it_is_sent() {
    let config = ServerConfig { request_bytes: 1000, reply_bytes: 16, ..ServerConfig::default() };
    let services =
        Services { commits: Some(Arc::new(Log::default())), status: Some(opened()), ..Services::default() };
    let server = server(config, Security::none(), services);
    let node = commits_node(&server);
    let commits = RemoteCommits::new(node.clone(), LONG);
    let long = commits.intern(&[Str::from("x".repeat(2000))]);
    assert!(matches!(long, Err(Error::TooLarge { limit: 1000, .. })), "{long:?}");
    let answer = node.status(LONG);
    assert!(matches!(answer, Err(Error::TooLarge { limit: 16, .. })), "{answer:?}");
    assert_eq!(commits.newest().unwrap().version, Version(7), "the connection is still good");
}

#[test]
fn requests_that_wait_are_bounded_and_do_not_hold_up_others() {
    let gate = Arc::new(Gate::default());
    let services = Services {
        commits: Some(Arc::new(Log::default())),
        status: Some(gate.clone()),
        ..Services::default()
    };
    let server = server(ServerConfig { in_flight: 4, ..ServerConfig::default() }, Security::none(), services);
    let node = node(&server, ClientConfig { connections: 1, ..ClientConfig::default() }, Security::none());
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3).map(|_| scope.spawn(|| node.status(LONG))).collect();
        while *gate.waiting.lock() < 3 {
            std::thread::yield_now();
        }
        // Three of four places are taken; the fourth serves all short requests.
        let commits = RemoteCommits::new(node.clone(), LONG);
        for _ in 0..100 {
            assert_eq!(commits.newest().unwrap().version, Version(7));
        }
        let fourth = scope.spawn(|| node.status(LONG));
        while *gate.waiting.lock() < 4 {
            std::thread::yield_now();
        }
        let fifth = RemoteCommits::new(node.clone(), Duration::from_millis(50)).newest();
        assert!(matches!(fifth, Err(Error::Unavailable(_))), "{fifth:?}");
        gate.open();
        for caller in callers.into_iter().chain([fourth]) {
            assert!(caller.join().unwrap().is_ok());
        }
    });
}

/// A sequencer whose log does not answer until a test opens the gate.
#[derive(Default)]
struct Stalled {
    gate: Gate,
    log: Log,
}

impl Commits for Stalled {
    fn commit(&self, id: RequestId, request: CommitRequest) -> Result<Committed, Error> {
        self.gate.status();
        self.log.commit(id, request)
    }
    fn outcome(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error> {
        self.log.outcome(id, since)
    }
    fn outcome_of_key(&self, id: RequestId, since: Version) -> Result<CommitOutcome, Error> {
        self.log.outcome_of_key(id, since)
    }
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        self.log.intern(names)
    }
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        self.log.allocate_sids(count)
    }
    fn newest(&self) -> Result<Newest, Error> {
        self.log.newest()
    }
    fn tokens(&self, above: Token) -> Result<Vec<(Token, Str)>, Error> {
        self.log.tokens(above)
    }
    fn begin_load(&self, id: RequestId, beginning: u64) -> Result<Version, Error> {
        self.log.begin_load(id, beginning)
    }
    fn watch_load(&self, id: RequestId, above: Version) -> Result<MadeSince, Error> {
        self.log.watch_load(id, above)
    }
    fn load_changes(&self, above: Version) -> Result<LoadChanges, Error> {
        self.log.load_changes(above)
    }
    fn load_turn(&self, id: RequestId, turn: Option<LoadTurn>) -> Result<Option<Version>, Error> {
        self.log.load_turn(id, turn)
    }
    fn end_load(&self, id: RequestId) -> Result<(), Error> {
        self.log.end_load(id)
    }
    fn commit_load(&self, id: RequestId, load: LoadRequest) -> Result<LoadStep, Error> {
        self.log.commit_load(id, load)
    }
    fn report_load_collision(
        &self,
        id: RequestId,
        asked: u64,
        collision: Option<Version>,
    ) -> Result<(), Error> {
        self.log.report_load_collision(id, asked, collision)
    }
}

/// Commits take their places, wait for places, and give up; all the time the same connections answer everything else.
#[test]
fn reads_never_wait_for_commits() {
    let stalled = Arc::new(Stalled::default());
    let services = Services { commits: Some(stalled.clone()), status: Some(opened()), ..Services::default() };
    // Ten commits run or wait at the server, and four are in flight on a connection.
    let config = ServerConfig { committers: 2, in_flight: 8, ..ServerConfig::default() };
    let server = server(config, Security::none(), services);
    // A silent server would count as lost soon.
    let config = ClientConfig {
        connections: 1,
        ping_after: Duration::from_millis(100),
        dead_after: Duration::from_secs(20),
        ..ClientConfig::default()
    };
    let nodes: Vec<_> = (0..4).map(|_| node(&server, config.clone(), Security::none())).collect();
    let answers_others = || {
        for node in &nodes {
            for _ in 0..20 {
                assert_eq!(RemoteCommits::new(node.clone(), LONG).newest().unwrap().version, Version(7));
                assert!(node.status(LONG).is_ok());
            }
        }
    };
    let commit = |number: usize, at_most: Duration| {
        let commits = RemoteCommits::new(nodes[number % nodes.len()].clone(), at_most);
        commits.commit(RequestId(number as u128), CommitRequest::default())
    };
    std::thread::scope(|scope| {
        // These wait until the log answers, or are refused: four connections have 16 places, the server has ten.
        let patient: Vec<_> = (0..16).map(|number| scope.spawn(move || commit(number, LONG))).collect();
        let refused = || patient.iter().filter(|caller| caller.is_finished()).count();
        let clock = RealClock::new();
        while refused() < 6 || *stalled.gate.waiting.lock() < 2 {
            assert!(clock.now() < LONG, "{} are refused", refused());
            std::thread::yield_now();
        }
        answers_others();
        // The client gives these up; the server has them still, or refuses them.
        for number in 16..64 {
            let answer = commit(number, Duration::from_millis(5));
            assert!(matches!(answer, Err(Error::InDoubt(_) | Error::Unavailable(_))), "{answer:?}");
        }
        answers_others();
        stalled.gate.open();
        let answers: Vec<_> = patient.into_iter().map(|caller| caller.join().unwrap()).collect();
        let committed = answers.iter().filter(|answer| answer.is_ok()).count();
        let refused = answers.iter().filter(|answer| matches!(answer, Err(Error::Unavailable(_)))).count();
        // Two fewer if the server's threads had not started yet.
        assert!(committed + refused == 16 && (8..=10).contains(&committed), "{answers:?}");
    });
}

#[test]
fn a_caller_gives_up_at_its_deadline_and_the_node_hears_of_it() {
    let gate = Arc::new(Gate::default());
    let server = server(ServerConfig::default(), Security::none(), with_status(&gate));
    let node = commits_node(&server);
    // On a busy machine the time of a request may be over before a thread of the node takes it.
    let mut at_most = Duration::from_millis(30);
    while *gate.waiting.lock() == 0 {
        let late = node.status(at_most);
        assert!(matches!(late, Err(Error::Overdue)), "{late:?}");
        at_most *= 2;
    }
    while server.counters().cancelled.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    gate.open();
    assert!(node.status(LONG).is_ok());
}

#[test]
fn a_node_that_falls_silent_is_given_up() {
    // The listener accepts the connection, sends its greeting, and then nothing more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let silent = std::thread::spawn(move || {
        use tidegraph_wire::Message;
        let (mut socket, _) = listener.accept().unwrap();
        let welcome = proto::Welcome {
            version: tidegraph_remote::PROTOCOLS.newest,
            request_bytes: 1000,
            in_flight: 10,
            ..Default::default()
        };
        let hello = [b"TIDEWIRE".as_slice(), &frame(2, 0, &welcome.encode_to_vec())].concat();
        socket.write_all(&hello).unwrap();
        let mut sink = Vec::new();
        // Reads until the client closes the connection.
        let _ = socket.read_to_end(&mut sink);
        sink
    });
    let config = ClientConfig {
        ping_after: Duration::from_millis(20),
        dead_after: Duration::from_secs(5),
        ..ClientConfig::default()
    };
    let node = RemoteNode::new(&address, config, Security::none(), clock(), Arc::new(RealRandom));
    let status = node.status(LONG);
    let Err(Error::Lost { reason, .. }) = &status else { panic!("{status:?}") };
    assert!(reason.contains("nothing was heard"), "{reason}");
    let sent = silent.join().unwrap();
    assert!(sent.windows(20).any(|bytes| bytes == frame(7, 0, b"")), "it was asked whether it is there");
}

#[test]
fn a_node_that_comes_back_is_connected_to_again() {
    let mut first = server(ServerConfig::default(), Security::none(), with_status(&opened()));
    let node = node(
        &first,
        ClientConfig {
            first_pause: Duration::from_millis(1),
            longest_pause: Duration::from_millis(5),
            ..ClientConfig::default()
        },
        Security::none(),
    );
    assert!(node.status(LONG).is_ok());
    let listen = first.address().to_string();
    first.stop();
    let lost = node.status(LONG);
    assert!(matches!(lost, Err(Error::Lost { .. } | Error::Unreachable { .. })), "{lost:?}");
    let config = ServerConfig { listen, ..ServerConfig::default() };
    let _second = server(config, Security::none(), with_status(&opened()));
    let clock = RealClock::new();
    while node.status(LONG).is_err() {
        assert!(clock.now() < LONG, "it never connected again");
        std::thread::yield_now();
    }
}

/// A certificate authority, and the files of processes with certificates that it signed.
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
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("authority.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: rcgen::Issuer::new(params, key) }
    }

    /// Returns security with a certificate of this authority that trusts `trusts`.
    fn security(&self, trusts: &Self, name: &str) -> Security {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |file: &str| self.folder.path().join(format!("{name}-{file}"));
        std::fs::write(path("certificate.pem"), certificate.pem()).unwrap();
        std::fs::write(path("key.pem"), key.serialize_pem()).unwrap();
        std::fs::set_permissions(path("key.pem"), PermissionsExt::from_mode(0o600)).unwrap();
        let tls = TlsFiles {
            authorities: trusts.folder.path().join("authority.pem"),
            certificate: path("certificate.pem"),
            key: path("key.pem"),
            server_name: Some("node.fleet".into()),
            ..TlsFiles::default()
        };
        Security::load(&SecurityConfig { token: String::new(), tls: Some(tls) }).unwrap()
    }
}

#[test]
fn with_certificates_both_sides_show_theirs() {
    let (fleet, other) = (Authority::new(), Authority::new());
    let serving =
        server(ServerConfig::default(), fleet.security(&fleet, "node.fleet"), with_status(&opened()));
    let ask = |security: Security| node(&serving, ClientConfig::default(), security).status(LONG);
    assert_eq!(ask(fleet.security(&fleet, "worker.fleet")).unwrap(), r#"{"state":"serving"}"#);
    // Three refused clients: one with a certificate of another authority, one that does
    // not trust the fleet's authority, and one without TLS.
    assert!(ask(other.security(&fleet, "worker.other")).is_err());
    assert!(ask(fleet.security(&other, "worker.fleet")).is_err());
    let config = ClientConfig { connect_limit: Duration::from_millis(300), ..ClientConfig::default() };
    assert!(node(&serving, config, Security::none()).status(LONG).is_err());
    // The name in the server's certificate is not the one that the client expects.
    let imposter =
        server(ServerConfig::default(), fleet.security(&fleet, "imposter"), with_status(&opened()));
    let node = node(&imposter, ClientConfig::default(), fleet.security(&fleet, "worker.fleet"));
    assert!(node.status(LONG).is_err());
    // Large messages of many callers, encrypted.
    let services = Services { commits: Some(Arc::new(Log::default())), ..Services::default() };
    let serving = server(ServerConfig::default(), fleet.security(&fleet, "node.fleet"), services);
    let node = self::node(&serving, ClientConfig::default(), fleet.security(&fleet, "worker.fleet"));
    std::thread::scope(|scope| {
        for caller in 0..8 {
            let commits = RemoteCommits::new(node.clone(), LONG);
            scope.spawn(move || {
                for length in [1, 100_000, 3] {
                    let names = [Str::from("x".repeat(length + caller)), Str::from("y")];
                    let tokens = commits.intern(&names).unwrap();
                    assert_eq!(tokens, [Token((length + caller) as u32), Token(1)]);
                }
            });
        }
    });
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.pem");
    std::fs::write(&file, "nothing").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let (authorities, certificate) = (file.clone(), file.clone());
    let tls = TlsFiles { authorities, certificate, key: file, ..TlsFiles::default() };
    let loaded = Security::load(&SecurityConfig { token: String::new(), tls: Some(tls) });
    assert!(loaded.is_err_and(|error| error.to_string().contains("empty.pem")));
}
