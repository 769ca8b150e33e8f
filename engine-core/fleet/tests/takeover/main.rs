//! Sequencers as processes, with a real broker, a real table and real signals (TXN-4, IDS-1, LOG-1).

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
#![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

mod servers;
mod snapshot;

use servers::{Server, signal};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tidegraph_cluster::dynamodb::{DynamoMap, DynamoOptions};
use tidegraph_cluster::testing::graph_named;
use tidegraph_cluster::{Graph, MapStore};
use tidegraph_log::{Body, KafkaOptions, LogBackend, LogCopies, LogLocation};
use tidegraph_platform::{Clock, RealClock, RealRandom, process};
use tidegraph_types::{Epoch, Sharding, Version};

/// Time limit of every wait, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Duration of the lease. A process that only stalls does not lose it.
const LEASE: Duration = Duration::from_secs(15);

/// Versions and epochs.
type Versions = Vec<(u64, u64)>;

struct World {
    kafka: Server,
    dynamodb: Server,
    log: Arc<dyn LogBackend>,
}

impl World {
    fn start() -> Self {
        let (kafka, dynamodb) = (Server::kafka(), Server::dynamodb());
        let options = KafkaOptions::new(format!("127.0.0.1:{}", kafka.port), "g");
        let log = LogLocation::Kafka(options).backend(Sharding::ONE).unwrap();
        // A broker listens on its port before it is ready.
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        while let Err(error) = log.create(LogCopies { total: 1, in_sync: 1 }) {
            assert!(clock.now() < PATIENCE, "{error}: {}", kafka.said());
            clock.sleep(Duration::from_millis(200));
        }
        let patient = DynamoOptions {
            attempt_timeout: Duration::from_secs(30),
            ..DynamoOptions::local(format!("http://127.0.0.1:{}", dynamodb.port))
        };
        let map = DynamoMap::open(&patient, clock, Arc::new(RealRandom)).unwrap();
        map.create_tables().unwrap();
        let graph = Graph { replication_factor: 1, ..graph_named("g", 1) };
        map.create_graph(&graph).unwrap();
        Self { kafka, dynamodb, log }
    }

    fn candidate(&self, name: &str) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegraph-candidate"))
            .arg(format!("http://127.0.0.1:{}", self.dynamodb.port))
            .arg(format!("127.0.0.1:{}", self.kafka.port))
            .args(["g", "g", name, &LEASE.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Process { child, lines, name: name.into() }
    }

    /// Returns the ids of requests in the log with their versions, and the versions and epochs of all records.
    fn log(&self) -> (Vec<(u128, u64)>, Versions) {
        let mut log = self.log.open(Epoch(0)).unwrap();
        let records: Vec<_> = log.read_from(Version(1)).unwrap().map(Result::unwrap).collect();
        let id = |body: &Body| match body {
            Body::Commit { request, .. } => request.map(|id| id.0),
            _ => None,
        };
        let ids = records.iter().filter_map(|record| Some((id(&record.body)?, record.version.0))).collect();
        (ids, records.iter().map(|record| (record.version.0, record.epoch.0)).collect())
    }
}

struct Process {
    child: Child,
    lines: Receiver<String>,
    name: String,
}

impl Process {
    fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Returns the next line that begins with one of these texts.
    fn hear(&self, beginnings: &[&str]) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{} does not say any of {beginnings:?}", self.name));
            if beginnings.iter().any(|beginning| line.starts_with(beginning)) {
                return line;
            }
        }
    }

    fn ask(&mut self, line: &str, beginnings: &[&str]) -> String {
        self.tell(line);
        self.hear(beginnings)
    }

    /// Commits a request, now or in an earlier attempt, and returns its version.
    fn commit(&mut self, id: u64) -> u64 {
        let answer = self.ask(&format!("commit {id} {id}"), &["committed", "refused"]);
        let version = answer.strip_prefix(&format!("committed {id} "));
        version.and_then(|version| version.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
    }

    fn leads(&self) -> u64 {
        self.hear(&["leads"]).trim_start_matches("leads ").parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_paused_sequencer_that_goes_on_acknowledges_nothing() {
    let world = World::start();
    let mut a = world.candidate("a");
    assert_eq!(a.leads(), 1);
    let mut b = world.candidate("b");
    b.hear(&["waits"]);
    let first: Vec<u64> = (1..=20).map(|id| a.commit(id)).collect();
    let sids = a.ask("sids 10", &["sids", "refused"]);
    assert_eq!(sids, "sids 1 11");
    // `a` is paused with a request in flight, and continues with it later.
    process::pause(a.child.id());
    a.tell("commit 100 100");
    let clock = RealClock::new();
    assert_eq!(b.leads(), 2);
    println!("the standby led after {:?}", clock.now());
    // A request that `a` acknowledged gets the same answer, and is committed once.
    assert_eq!(b.commit(20), first[19]);
    assert_eq!(b.ask("outcome 7", &["outcome", "refused"]), format!("outcome 7 {}", first[6]));
    assert_eq!(b.ask("outcome 100", &["outcome", "refused"]), "outcome 100 none");
    let second = b.commit(21);
    assert!(second > first[19]);
    let handed: u64 = b.ask("sids 10", &["sids"]).split(' ').nth(1).unwrap().parse().unwrap();
    assert!(handed >= 11, "{handed}");
    process::resume(a.child.id());
    // `a` learns from the lease and from the log, in either order, that it was deposed.
    let mut late: Vec<_> = (0..2).map(|_| a.hear(&["committed", "refused", "waits"])).collect();
    late.sort();
    assert!(late[0].starts_with("refused 100 ") && late[1].starts_with("waits"), "{late:?}");
    let again = a.ask("commit 101 101", &["committed", "refused"]);
    assert!(again.starts_with("refused 101 "), "{again}");
    // The client sends the request to `b`.
    let third = b.commit(100);
    assert!(third > second);
    assert_eq!(b.ask("newest", &["newest", "refused"]), format!("newest {third}"));
    let (ids, records) = world.log();
    let expected: Vec<(u128, u64)> = (1..=20).zip(first).chain([(21, second), (100, third)]).collect();
    assert_eq!(ids, expected);
    assert!(
        records.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1 && pair[1].1 >= pair[0].1),
        "{records:?}"
    );
    // A killed process does not release its lease, so `a` waits until the lease expires.
    signal(&b.child, "-KILL");
    let clock = RealClock::new();
    assert_eq!(a.leads(), 3);
    println!("after a kill the other one led after {:?}", clock.now());
    assert_eq!(a.commit(100), third);
    // A process that shuts down is replaced at once.
    let c = world.candidate("c");
    c.hear(&["waits"]);
    a.tell("quit");
    assert_eq!(c.leads(), 4);
}

#[test]
fn writes_go_on_while_the_table_is_away() {
    let world = World::start();
    let mut a = world.candidate("a");
    assert_eq!(a.leads(), 1);
    let first = a.commit(1);
    process::pause(world.dynamodb.id());
    // Longer than the lease and the additional wait of other candidates.
    RealClock::new().sleep(LEASE * 2);
    let second = a.commit(2);
    assert_eq!(second, first + 1);
    let newest: u64 = a.ask("newest", &["newest", "refused"]).split(' ').nth(1).unwrap().parse().unwrap();
    assert!(newest >= second, "{newest}");
    process::resume(world.dynamodb.id());
    let mut b = world.candidate("b");
    b.hear(&["waits"]);
    assert!(a.commit(3) > second);
    let refused = b.ask("commit 4 4", &["refused"]);
    assert_eq!(refused, "refused 4 it is not the sequencer");
}
