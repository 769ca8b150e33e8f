//! Tests of the sequencer on the log in memory and on disks that fail.

mod later;
mod loads;
mod reports;
mod retries;
mod turns;

use crate::{Applier, Error, LoadCommit, NewVertices, Recovered, Sequencer, SequencerConfig};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_log::{Body, FileLog, FileLogOptions, LogStore, MemoryLog, Record, Records, Tail};
use tidegraph_platform::{Clock, FaultyDisk, Random, RealClock, SeededRandom};
use tidegraph_types::{
    Cardinality, CommitRequest, Edge, Epoch, ErrorCode, Gui, Key, Mutation, PropertyWrite, ShardId, Sid, Str,
    Token, Value, Version,
};

/// A store of numbers that can be read at any version.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<BTreeMap<(u64, Version), i64>>>);

impl Numbers {
    fn read(&self, gui: u64, at: Version) -> i64 {
        self.0.lock().range((gui, Version(0))..=(gui, at)).next_back().map_or(0, |(_, n)| *n)
    }
}

impl Applier for Numbers {
    fn apply(&mut self, record: &Record) {
        let Body::Commit { mutations, .. } = &record.body else { return };
        for mutation in mutations {
            if let Mutation::SetVertexProperty { gui, write } = mutation {
                assert_ne!(gui.0, 666, "this vertex cannot be applied");
                self.0.lock().insert((gui.0, record.version), write.value.as_i64().unwrap());
            }
        }
    }
}

fn set(gui: u64, number: i64) -> Mutation {
    let value = Value::Long(number);
    let write = PropertyWrite { key: Token(1), cardinality: Cardinality::Single, value };
    Mutation::SetVertexProperty { gui: Gui(gui), write }
}

fn request(read: Version, read_keys: &[u64], writes: &[(u64, i64)]) -> CommitRequest {
    CommitRequest {
        read_version: read,
        read_keys: read_keys.iter().map(|k| Key(*k)).collect(),
        write_keys: writes.iter().map(|(k, _)| Key(*k)).collect(),
        mutations: writes.iter().map(|(k, n)| set(*k, *n)).collect(),
        request: None,
        first_asked: None,
        by_key: false,
        changes: None,
    }
}

fn start(log: impl LogStore + 'static) -> (Arc<Sequencer>, Numbers) {
    let numbers = Numbers::default();
    let applier = Box::new(numbers.clone());
    (Sequencer::start(SequencerConfig::default(), Box::new(log), Recovered::default(), applier), numbers)
}

fn in_memory() -> (Arc<Sequencer>, Numbers) {
    start(MemoryLog::default())
}

fn open_log(disk: &FaultyDisk) -> FileLog {
    FileLog::open(Arc::new(disk.clone()), Path::new("/log"), ShardId(0), FileLogOptions::default()).unwrap()
}

fn is_conflict<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Conflict { .. }))
}

#[test]
fn a_commit_can_be_read_when_it_is_answered() {
    let (sequencer, numbers) = in_memory();
    assert_eq!(sequencer.version(), Version(0));
    // Version 1 is the record that begins the epoch.
    for n in 2..10 {
        assert_eq!(sequencer.commit(request(Version(0), &[], &[(1, n)])).unwrap(), Version(n as u64));
        assert_eq!(sequencer.version(), Version(n as u64));
        assert_eq!(numbers.read(1, Version(n as u64)), n);
    }
}

#[test]
fn a_request_that_writes_nothing_is_answered_with_its_read_version() {
    let (sequencer, _) = in_memory();
    sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    assert_eq!(sequencer.commit(request(Version(0), &[1], &[])).unwrap(), Version(0));
    sequencer.shutdown();
    assert_eq!(sequencer.commit(request(Version(1), &[], &[])).unwrap(), Version(1));
}

/// Shows TXN-2.
#[test]
fn anomaly_lost_update() {
    let (sequencer, _) = in_memory();
    let base = sequencer.commit(request(Version(0), &[], &[(1, 10)])).unwrap();
    let first = sequencer.commit(request(base, &[1], &[(1, 11)])).unwrap();
    let error = sequencer.commit(request(base, &[1], &[(1, 11)])).unwrap_err();
    assert!(
        matches!(error, Error::Conflict { read_version, written } if read_version == base && written == first)
    );
    assert_eq!(error.code(), ErrorCode::ConcurrentModification);
    sequencer.commit(request(first, &[1], &[(1, 12)])).unwrap();
}

/// Shows TXN-2.
#[test]
fn anomaly_write_skew() {
    // Two doctors on call; each goes off because the other one is on.
    let (sequencer, _) = in_memory();
    let base = sequencer.commit(request(Version(0), &[], &[(1, 1), (2, 1)])).unwrap();
    sequencer.commit(request(base, &[1, 2], &[(1, 0)])).unwrap();
    assert!(is_conflict(sequencer.commit(request(base, &[1, 2], &[(2, 0)]))));
}

/// Shows TXN-2.
#[test]
fn anomaly_phantom() {
    // Both transactions count the people, find none, and create one.
    let (sequencer, _) = in_memory();
    let scan = Key::vertex_scan(Some(Token(7)));
    let make = |gui| CommitRequest {
        read_keys: vec![scan],
        write_keys: vec![Key::existence(Gui(gui)), scan],
        mutations: vec![set(gui, 1)],
        read_version: Version(0),
        request: None,
        first_asked: None,
        by_key: false,
        changes: None,
    };
    sequencer.commit(make(1)).unwrap();
    assert!(is_conflict(sequencer.commit(make(2))));
}

/// Shows TXN-2.
#[test]
fn anomaly_read_of_the_whole_graph() {
    let (sequencer, _) = in_memory();
    let base = sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    let mut all = request(base, &[], &[(9, 1)]);
    all.read_keys = vec![Key::GRAPH];
    let newest = sequencer.commit(all.clone()).unwrap();
    assert!(is_conflict(sequencer.commit(all.clone())));
    // Tokens do not change the graph.
    sequencer.intern(&["a".into()]).unwrap();
    all.read_version = newest;
    sequencer.commit(all).unwrap();
}

#[test]
fn blind_appends_do_not_conflict() {
    let (sequencer, _) = in_memory();
    let hub = Key::adjacency(Gui(1), true, None);
    for n in 0..10 {
        let edge = Edge { sid: Sid(n), source: Gui(1), target: Gui(n), label: Token(1) };
        let mutations = vec![Mutation::CreateEdge { edge, id: None, properties: vec![] }];
        let append = CommitRequest { write_keys: vec![hub], mutations, ..CommitRequest::default() };
        sequencer.commit(append).unwrap();
    }
    let mut reader = request(Version(5), &[], &[(1, 1)]);
    reader.read_keys = vec![hub];
    assert!(is_conflict(sequencer.commit(reader)));
}

/// Shows TXN-2.
#[test]
fn a_long_transaction_is_refused_when_its_keys_are_forgotten() {
    let config = SequencerConfig { remembered_keys: 10, ..SequencerConfig::default() };
    let log = Box::new(MemoryLog::default());
    let sequencer = Sequencer::start(config, log, Recovered::default(), Box::new(Numbers::default()));
    let base = sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    for n in 100..120 {
        sequencer.commit(request(Version(0), &[], &[(n, 1)])).unwrap();
    }
    assert!(is_conflict(sequencer.commit(request(base, &[1], &[(1, 2)]))));
    sequencer.commit(request(base, &[], &[(1, 2)])).unwrap();
    sequencer.commit(request(sequencer.version(), &[1], &[(1, 2)])).unwrap();
}

/// Appends as a slow disk does: `takes` returns when one is over.
struct SlowLog<F> {
    log: MemoryLog,
    takes: F,
}

impl<F: Fn() + Send> LogStore for SlowLog<F> {
    fn append(&mut self, records: &[Record]) -> Result<(), tidegraph_log::Error> {
        (self.takes)();
        self.log.append(records)
    }
    fn read_from(&mut self, version: Version) -> Result<Records<'_>, tidegraph_log::Error> {
        self.log.read_from(version)
    }
    fn trim(&mut self, below: Version) -> Result<(), tidegraph_log::Error> {
        self.log.trim(below)
    }
    fn tail(&self) -> Option<Tail> {
        self.log.tail()
    }
    fn first(&self) -> Option<Version> {
        self.log.first()
    }
    fn bytes(&self) -> u64 {
        self.log.bytes()
    }
}

#[test]
fn many_writers_share_appends() {
    let (appends, is_held) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, held) = (appends.clone(), is_held.clone());
    let takes = move || {
        count.fetch_add(1, Ordering::AcqRel);
        wait_until(|| !held.load(Ordering::Acquire));
    };
    let (sequencer, _) = start(SlowLog { log: MemoryLog::default(), takes });
    let before = appends.load(Ordering::Acquire);
    is_held.store(true, Ordering::Release);
    std::thread::scope(|scope| {
        let write = |key| {
            let sequencer = &sequencer;
            scope.spawn(move || sequencer.commit(request(Version(0), &[], &[(key, 1)])).unwrap());
        };
        write(0);
        // The first append is under way and has taken only the first commit.
        wait_until(|| appends.load(Ordering::Acquire) == before + 1);
        (1..32).for_each(write);
        wait_until(|| sequencer.queued() == 31);
        is_held.store(false, Ordering::Release);
    });
    assert_eq!(sequencer.version(), Version(1 + 32));
    assert_eq!(appends.load(Ordering::Acquire), before + 2, "the 31 commits that waited are one append");
}

/// Waits until `holds` returns true.
fn wait_until(holds: impl Fn() -> bool) {
    while !holds() {
        RealClock::new().sleep(Duration::from_micros(50));
    }
}

/// Returns the state after replaying the whole log.
fn recover(log: &mut dyn LogStore) -> Recovered {
    let mut recovered = Recovered { next_sid: Sid(1), ..Recovered::default() };
    for record in log.read_from(Version(1)).unwrap() {
        recovered.note(&record.unwrap());
    }
    recovered
}

/// Shows TXN-1.
#[test]
fn recovery_goes_on_with_versions_sids_tokens_and_epochs() {
    let disk = FaultyDisk::new(1);
    let (mut sids, mut names, mut version) = (1, Vec::<Str>::new(), Version(0));
    for life in 1..=4 {
        let mut log = open_log(&disk);
        let recovered = recover(&mut log);
        assert_eq!(recovered.version, version);
        let applier = Box::new(Numbers::default());
        let sequencer = Sequencer::start(SequencerConfig::default(), Box::new(log), recovered, applier);
        assert_eq!(sequencer.epoch(), Epoch(life));
        let tokens: Vec<_> = (1..).map(Token).zip(names.iter().cloned()).collect();
        assert_eq!(sequencer.tokens(), tokens);
        names.extend([format!("a{life}").into(), format!("b{life}").into()]);
        sequencer.intern(&names).unwrap();
        let range = sequencer.allocate_sids(100);
        assert_eq!(range, sids..sids + 100);
        sids = range.end;
        // After a restart, a request that read before it may conflict with anything.
        if life > 1 {
            assert!(is_conflict(sequencer.commit(request(Version(version.0 - 1), &[1], &[(1, 1)]))));
        }
        version = sequencer.commit(request(version, &[1], &[(1, 1)])).unwrap();
        assert_eq!(version, Version(3 * life));
    }
}

#[test]
fn tokens_are_assigned_once() {
    let (sequencer, _) = in_memory();
    let names: Vec<Str> = (0..50).map(|i| format!("name{i}").into()).collect();
    let all: Vec<Vec<Token>> = std::thread::scope(|scope| {
        let intern = |shift: usize| {
            let (sequencer, names) = (&sequencer, &names);
            scope.spawn(move || {
                let mine: Vec<Str> = names.iter().cycle().skip(shift).take(50).cloned().collect();
                let mut tokens: Vec<_> = mine.chunks(7).flat_map(|c| sequencer.intern(c).unwrap()).collect();
                tokens.rotate_right(shift);
                tokens
            })
        };
        let threads: Vec<_> = (0..8).map(|i| intern(i * 6)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(all.iter().all(|tokens| *tokens == all[0]));
    assert_eq!(sequencer.tokens().len(), 50);
    for (name, token) in names.iter().zip(&all[0]) {
        assert_eq!(sequencer.name(*token).as_ref(), Some(name));
        assert_eq!(sequencer.lookup(name), Some(*token));
    }
    let twice = sequencer.intern(&["new".into(), "new".into()]).unwrap();
    assert_eq!(twice[0], twice[1]);
}

/// Threads raise counters, and lower two numbers whose sum must not fall below zero. The
/// result must be one that the threads could reach one after the other.
/// Shows TXN-1 and TXN-2.
#[test]
fn concurrent_transactions_are_serializable() {
    let (sequencer, numbers) = in_memory();
    let raised: Vec<AtomicU64> = (0..5).map(|_| AtomicU64::new(0)).collect();
    let conflicts = AtomicU64::new(0);
    // In each round, all threads read before the first commits, so that some must be refused.
    let barrier = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (sequencer, numbers, raised, conflicts) = (&sequencer, &numbers, &raised, &conflicts);
            let barrier = &barrier;
            scope.spawn(move || {
                let random = SeededRandom::new(seed);
                for _ in 0..300 {
                    let at = sequencer.version();
                    let counter = random.below(5);
                    // 10 and 11 are the pair: lowering one of them is correct only while their sum is positive.
                    let pair = 10 + random.below(2);
                    let sum = numbers.read(10, at) + numbers.read(11, at);
                    let change = if sum > 0 { -1 } else { 1 };
                    let writes =
                        [(counter, numbers.read(counter, at) + 1), (pair, numbers.read(pair, at) + change)];
                    barrier.wait();
                    match sequencer.commit(request(at, &[counter, 10, 11], &writes)) {
                        Ok(version) => {
                            raised[counter as usize].fetch_add(1, Ordering::Relaxed);
                            assert!(
                                numbers.read(10, version) + numbers.read(11, version) >= 0,
                                "seed {seed}"
                            );
                        }
                        Err(Error::Conflict { .. }) => {
                            conflicts.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    let newest = sequencer.version();
    for (counter, raised) in raised.iter().enumerate() {
        assert_eq!(numbers.read(counter as u64, newest), raised.load(Ordering::Relaxed) as i64);
    }
    assert!((0..=1).contains(&(numbers.read(10, newest) + numbers.read(11, newest))));
    assert!(conflicts.load(Ordering::Relaxed) > 0);
}

/// Shows TXN-1.
#[test]
fn a_full_disk_refuses_and_leaves_no_trace() {
    let disk = FaultyDisk::new(1);
    let (sequencer, numbers) = start(open_log(&disk));
    let base = sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    disk.set_space(Some(0));
    for _ in 0..3 {
        let error = sequencer.commit(request(base, &[1], &[(1, 2)])).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unavailable);
        assert!(error.to_string().contains("no space left"), "{error}");
        assert!(sequencer.intern(&["new".into()]).is_err());
    }
    assert_eq!((sequencer.version(), numbers.read(1, base)), (base, 1));
    assert!(sequencer.is_writable());
    assert_eq!(sequencer.lookup("new"), None);
    disk.set_space(None);
    // The refused requests left no key that would conflict with this one.
    assert_eq!(sequencer.commit(request(base, &[1], &[(1, 3)])).unwrap(), base.next());
    assert_eq!(sequencer.intern(&["other".into()]).unwrap(), [Token(1)]);
}

#[test]
fn a_large_transaction_that_finds_no_room_keeps_no_small_one_out() {
    let disk = FaultyDisk::new(1);
    let (sequencer, _) = start(open_log(&disk));
    sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    disk.set_space(Some(20_000));
    let mut large = request(Version(0), &[], &[(2, 1)]);
    large.mutations = vec![Mutation::AddException { id: "x".repeat(50_000).into(), gui: Gui(1) }];
    std::thread::scope(|scope| {
        for n in 0..20 {
            let (sequencer, large) = (&sequencer, large.clone());
            scope.spawn(move || match n % 2 {
                0 => assert!(sequencer.commit(large).is_err()),
                _ => assert!(sequencer.commit(request(Version(0), &[], &[(n, 1)])).is_ok()),
            });
        }
    });
}

#[test]
fn a_poisoned_log_stops_every_write_and_no_read() {
    let disk = FaultyDisk::new(1);
    let (sequencer, numbers) = start(open_log(&disk));
    let base = sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    sequencer.intern(&["known".into()]).unwrap();
    disk.fail_syncs(1);
    // The record of the first one may be on the disk. The second one is not handed to the log.
    for code in [ErrorCode::CommitOutcomeUnknown, ErrorCode::Unavailable] {
        let error = sequencer.commit(request(base, &[], &[(1, 2)])).unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains("cannot sync file"), "{error}");
    }
    assert!(!sequencer.is_writable());
    assert_eq!(numbers.read(1, sequencer.version()), 1);
    assert_eq!(sequencer.intern(&["known".into()]).unwrap(), [Token(1)]);
    sequencer.shutdown();
    assert!(
        sequencer.commit(request(base, &[], &[(1, 2)])).unwrap_err().to_string().contains("cannot sync file")
    );
}

#[test]
fn a_record_that_cannot_be_applied_stops_the_sequencer() {
    let (sequencer, _) = in_memory();
    let base = sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    let error = sequencer.commit(request(base, &[], &[(666, 1)])).unwrap_err();
    assert!(error.to_string().contains("version 3 is durable but could not be applied"), "{error}");
    assert!(sequencer.commit(request(base, &[], &[(1, 1)])).is_err());
    assert_eq!(sequencer.version(), base);
}

#[test]
fn limits_and_wrong_requests() {
    let config =
        SequencerConfig { transaction_mutations: 3, transaction_bytes: 1000, ..SequencerConfig::default() };
    let log = Box::new(MemoryLog::default());
    let sequencer = Sequencer::start(config, log, Recovered::default(), Box::new(Numbers::default()));
    let many = sequencer.commit(request(Version(0), &[], &[(1, 1), (2, 1), (3, 1), (4, 1)])).unwrap_err();
    assert_eq!(many.to_string(), "the transaction has 4 changes, more than the limit of 3");
    assert_eq!(many.code(), ErrorCode::QueryLimitExceeded);
    let with = |mutation| {
        let mut wrong = request(Version(0), &[], &[]);
        wrong.mutations = vec![mutation];
        sequencer.commit(wrong).unwrap_err()
    };
    let large = with(Mutation::AddException { id: "x".repeat(2000).into(), gui: Gui(1) });
    assert!(matches!(large, Error::TooLarge { what: "bytes", .. }), "{large}");
    let write = PropertyWrite { key: Token(1), cardinality: Cardinality::Single, value: Value::Null };
    let null = with(Mutation::SetVertexProperty { gui: Gui(1), write });
    assert_eq!(null.to_string(), "a value of type null cannot be stored");
    let future = sequencer.commit(request(Version(9), &[], &[(1, 1)])).unwrap_err();
    assert!(matches!(future, Error::FutureVersion { newest: Version(0), .. }), "{future}");
    assert_eq!(sequencer.version(), Version(0));
}

#[test]
fn a_log_that_does_not_fit_the_graph_is_not_written_to() {
    let mut log = MemoryLog::default();
    let body = Body::EpochStart;
    log.append(&[Record { shard: ShardId(0), epoch: Epoch(1), version: Version(1), body }]).unwrap();
    let (sequencer, _) = start(log);
    let error = sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap_err();
    assert!(error.to_string().contains("the log ends at version 1, the graph is at version 0"), "{error}");
}

#[test]
fn shutdown_finishes_what_is_queued() {
    let takes = || RealClock::new().sleep(Duration::from_millis(2));
    let (sequencer, numbers) = start(SlowLog { log: MemoryLog::default(), takes });
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (sequencer, acknowledged) = (&sequencer, &acknowledged);
            scope.spawn(move || {
                for n in 0_u64.. {
                    match sequencer.commit(request(Version(0), &[], &[(thread * 1_000_000 + n, 1)])) {
                        Ok(_) => acknowledged.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            assert_eq!(error.code(), ErrorCode::Unavailable);
                            return;
                        }
                    };
                }
            });
        }
        RealClock::new().sleep(Duration::from_millis(30));
        sequencer.shutdown();
        sequencer.shutdown();
    });
    assert_eq!(numbers.0.lock().len() as u64, acknowledged.load(Ordering::Relaxed));
    assert!(!sequencer.is_writable());
}

#[test]
fn the_log_is_trimmed_and_measured() {
    let disk = FaultyDisk::new(1);
    let options = FileLogOptions { file_bytes: 500, ..FileLogOptions::default() };
    let log = FileLog::open(Arc::new(disk.clone()), Path::new("/log"), ShardId(0), options).unwrap();
    let (sequencer, _) = start(log);
    for n in 0..50 {
        sequencer.commit(request(Version(0), &[], &[(1, n)])).unwrap();
    }
    let bytes = sequencer.log_bytes();
    assert!(bytes > 50 * 34, "{bytes}");
    sequencer.trim(Version(40)).unwrap();
    assert_eq!(sequencer.log_bytes(), bytes);
    sequencer.shutdown();
    drop(sequencer);
    let first = open_log(&disk).first().unwrap().0;
    assert!((25..=40).contains(&first), "{first}");
}
