//! The turn of a load: commits that concern it wait.

use super::later::{PATIENCE, later};
use super::loads::{Narrow, load_of};
use super::*;
use std::sync::mpsc::{Receiver, TryRecvError};
use tidegraph_platform::ManualClock;
use tidegraph_types::{Footprint, LoadTurn, RequestId};

const LOAD: &str = "load-1";
/// The vertex and the key that the load has met.
const MET: u64 = 7;
const READ: u64 = 70;

fn load_id() -> RequestId {
    RequestId::of_text(LOAD)
}

fn turn(limit: Duration) -> LoadTurn {
    let mut footprint = Footprint::with_capacity(1);
    footprint.add_vertex(Gui(MET));
    footprint.add_edge_id(tidegraph_types::GuiHasher::default().edge_id("e"));
    LoadTurn { footprint, read_keys: vec![Key(READ)], limit }
}

const MINUTE: Duration = Duration::from_secs(60);

fn started(config: SequencerConfig) -> Arc<Sequencer> {
    let applier = Box::new(Numbers::default());
    Sequencer::start(config, Box::new(MemoryLog::default()), Recovered::default(), applier)
}

/// A sequencer that has a load with a turn of a minute, and the version at which the load reads.
fn with_turn(config: SequencerConfig) -> (Arc<Sequencer>, Arc<ManualClock>, Version) {
    let sequencer = started(config);
    let clock = Arc::new(ManualClock::default());
    sequencer.commit(request(Version(0), &[], &[(1, 1)])).unwrap();
    let since = begin(&sequencer, &clock, LOAD).unwrap();
    (sequencer, clock, since)
}

fn begin(sequencer: &Sequencer, clock: &Arc<ManualClock>, load: &str) -> Option<Version> {
    let clock: Arc<dyn Clock> = clock.clone();
    sequencer.begin_turn(RequestId::of_text(load), turn(MINUTE), &clock).unwrap()
}

fn write(mutation: Mutation) -> CommitRequest {
    CommitRequest { mutations: vec![mutation], ..request(Version(0), &[], &[]) }
}

fn delete(gui: u64) -> CommitRequest {
    write(Mutation::DeleteVertex { gui: Gui(gui), edges_left: false })
}

fn known_as(id: RequestId, request: CommitRequest) -> CommitRequest {
    CommitRequest { request: Some(id), ..request }
}

fn is_turn<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(error @ Error::LoadTurn { .. }) if error.code() == ErrorCode::ConcurrentModification)
}

/// Whether a commit has no answer yet.
fn is_open(end: &Receiver<Result<Version, Error>>) -> bool {
    matches!(end.try_recv(), Err(TryRecvError::Empty))
}

fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        std::thread::yield_now();
    }
}

/// Shows TXN-2: what waited is checked after the load.
#[test]
fn commits_that_concern_the_load_wait_until_it_is_committed() {
    let sequencer = started(SequencerConfig::default());
    let clock = Arc::new(ManualClock::default());
    let watch = sequencer.begin_load();
    let base = begin(&sequencer, &clock, LOAD).unwrap();
    assert_eq!(sequencer.version(), base);
    let edge = Edge { sid: Sid(1), source: Gui(1), target: Gui(2), label: Token(1) };
    let make = |id: &str| Mutation::CreateEdge { edge, id: Some(id.into()), properties: vec![] };
    let waiting = [
        delete(MET),
        write(make("e")),
        write(Mutation::AddException { id: "a".into(), gui: Gui(9) }),
        request(base, &[], &[(READ, 1)]),
        CommitRequest { read_keys: vec![Key(99)], read_version: base, ..delete(MET) },
    ];
    let ends: Vec<_> = waiting.into_iter().map(|request| later(&sequencer, request)).collect();
    assert_eq!(sequencer.set_aside(), ends.len());
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| sequencer.commit(delete(MET)).unwrap());
        wait_until(|| sequencer.set_aside() == ends.len() + 1);
        // Others do not wait, nor do other requests.
        sequencer.commit(request(base, &[], &[(1, 2)])).unwrap();
        sequencer.commit(delete(MET + 1)).unwrap();
        sequencer.commit(write(make("f"))).unwrap();
        sequencer.intern(&["name".into()]).unwrap();
        sequencer.trim(Version(0)).unwrap();
        let last = sequencer.prove().unwrap();
        assert!(ends.iter().all(is_open));
        let changes = sequencer.load_changes(base, 100).changes.len();
        assert_eq!(changes, 2);
        let vertices = Box::new(Narrow(Gui(MET)));
        let load = LoadCommit { vertices, read_keys: vec![Key(READ)], ..load_of(base, &[]) };
        let loaded = sequencer.commit_load(&watch, load).unwrap();
        assert_eq!(loaded, last.next());
        assert!(thread.join().unwrap() > loaded);
        let answers: Vec<_> = ends.iter().map(|end| end.recv_timeout(PATIENCE).unwrap()).collect();
        assert!(answers[..4].iter().all(|answer| answer.as_ref().is_ok_and(|version| *version > loaded)));
        // The load may have changed what this one read.
        assert!(is_conflict(answers[4].clone()));
    });
    assert_eq!(sequencer.set_aside(), 0);
    assert!(sequencer.commit(delete(MET)).is_ok(), "the turn is over");
}

#[test]
fn a_commit_waits_no_longer_than_its_limit_and_a_turn_lasts_no_longer_than_its_own() {
    let (sequencer, clock, _) = with_turn(SequencerConfig::default());
    let wait = SequencerConfig::default().turn_wait;
    let first = later(&sequencer, delete(MET));
    clock.advance(wait / 2);
    let second = later(&sequencer, delete(MET));
    clock.advance(wait / 2);
    assert!(is_open(&first));
    sequencer.prove().unwrap();
    assert!(is_turn(&first.recv_timeout(PATIENCE).unwrap()));
    assert!(is_open(&second));
    clock.advance(MINUTE);
    assert!(sequencer.commit(delete(MET)).is_ok());
    assert!(second.recv_timeout(PATIENCE).unwrap().is_ok());
}

/// No other request makes the sequencer look at the time.
#[test]
fn the_thread_of_a_turn_wakes_what_waits() {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let hour = Duration::from_secs(3600);
    let brief = Duration::from_millis(20);
    let sequencer = started(SequencerConfig { turn_wait: brief, ..SequencerConfig::default() });
    assert!(sequencer.begin_turn(load_id(), turn(hour), &clock).unwrap().is_some());
    assert!(is_turn(&sequencer.commit(delete(MET))));
    assert!(is_turn(&later(&sequencer, delete(MET)).recv_timeout(PATIENCE).unwrap()));
    let sequencer = started(SequencerConfig { turn_wait: hour, ..SequencerConfig::default() });
    for _ in 0..2 {
        assert!(sequencer.begin_turn(load_id(), turn(brief), &clock).unwrap().is_some());
        let end = later(&sequencer, delete(MET));
        assert!(sequencer.commit(delete(MET)).is_ok());
        assert!(end.recv_timeout(PATIENCE).unwrap().is_ok());
    }
}

/// Shows TXN-4.
#[test]
fn the_outcome_of_a_commit_that_waits_stays_true() {
    let (sequencer, _, base) = with_turn(SequencerConfig::default());
    let key = |request: &str| RequestId::of_key("caller", "key", format_args!("{request}"));
    let by_key = CommitRequest { by_key: true, first_asked: Some(base), ..known_as(key("a"), delete(MET)) };
    let unnamed = later(&sequencer, delete(MET));
    let named = later(&sequencer, known_as(RequestId(1), delete(MET)));
    let keyed = later(&sequencer, by_key.clone());
    assert_eq!(sequencer.set_aside(), 3);
    assert_eq!(sequencer.outcome(RequestId(1), base).unwrap(), None);
    assert!(is_turn(&named.recv_timeout(PATIENCE).unwrap()));
    assert_eq!(sequencer.outcome_of_key(key("b"), base).unwrap(), None);
    assert!(is_turn(&keyed.recv_timeout(PATIENCE).unwrap()));
    assert_eq!(sequencer.set_aside(), 1);
    sequencer.end_turn(load_id());
    unnamed.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(sequencer.outcome(RequestId(1), base).unwrap(), None);
    assert_eq!(sequencer.outcome_of_key(key("b"), base).unwrap(), None);
    sequencer.commit(by_key).unwrap();
}

/// Shows TXN-4.
#[test]
fn a_commit_that_is_sent_again_during_a_turn_is_known() {
    let sequencer = started(SequencerConfig { turn_waiting: 1, ..SequencerConfig::default() });
    let clock = Arc::new(ManualClock::default());
    let named = known_as(RequestId(1), delete(MET));
    let version = sequencer.commit(named.clone()).unwrap();
    begin(&sequencer, &clock, LOAD).unwrap();
    let waiting = later(&sequencer, named.clone());
    assert_eq!(sequencer.set_aside(), 1);
    // There is no place for more.
    assert_eq!(sequencer.commit(named).unwrap(), version);
    assert!(is_turn(&sequencer.commit(delete(MET))));
    clock.advance(SequencerConfig::default().turn_wait);
    sequencer.prove().unwrap();
    assert_eq!(waiting.recv_timeout(PATIENCE).unwrap().unwrap(), version);
}

#[test]
fn what_waits_has_a_limit_in_bytes() {
    let config = SequencerConfig { transaction_bytes: 200, ..SequencerConfig::default() };
    let (sequencer, _, _) = with_turn(config);
    let ends: Vec<_> = (0..10).map(|_| later(&sequencer, delete(MET))).collect();
    let waiting = sequencer.set_aside();
    assert!((1..10).contains(&waiting), "{waiting}");
    for (n, end) in ends.iter().enumerate() {
        if n < waiting {
            assert!(is_open(end));
        } else {
            assert!(is_turn(&end.recv_timeout(PATIENCE).unwrap()));
        }
    }
    sequencer.end_turn(load_id());
    assert!(ends[..waiting].iter().all(|end| end.recv_timeout(PATIENCE).unwrap().is_ok()));
}

#[test]
fn one_load_at_a_time_has_the_turn() {
    let (sequencer, clock, base) = with_turn(SequencerConfig::default());
    let watch = sequencer.begin_load();
    assert_eq!(begin(&sequencer, &clock, "other"), None);
    sequencer.end_turn(RequestId::of_text("other"));
    let waiting = later(&sequencer, delete(MET));
    // The load asks again; what waits goes on waiting.
    let since = begin(&sequencer, &clock, LOAD).unwrap();
    assert!(since > base);
    assert!(is_open(&waiting) && sequencer.set_aside() == 1);
    let other = || LoadCommit { load_id: "other".into(), ..load_of(sequencer.version(), &[]) };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| sequencer.commit_load(&watch, other()));
        wait_until(|| sequencer.set_aside() == 2);
        let loaded = sequencer.commit_load(&watch, load_of(since, &[])).unwrap();
        // The other load has not met what this one wrote.
        assert!(is_conflict(thread.join().unwrap()));
        assert!(waiting.recv_timeout(PATIENCE).unwrap().unwrap() > loaded);
    });
    assert!(begin(&sequencer, &clock, "other").is_some());
    assert_eq!(begin(&sequencer, &clock, LOAD), None);
}

#[test]
fn what_waits_is_answered_when_the_sequencer_goes() {
    let (sequencer, clock, _) = with_turn(SequencerConfig::default());
    let waiting = later(&sequencer, delete(MET));
    sequencer.shutdown();
    assert!(waiting.recv_timeout(PATIENCE).unwrap().is_ok(), "it came before the end");
    let clock_too: Arc<dyn Clock> = clock.clone();
    assert!(!matches!(sequencer.begin_turn(load_id(), turn(MINUTE), &clock_too), Ok(Some(_))));

    let (sequencer, ..) = with_turn(SequencerConfig::default());
    let waiting = later(&sequencer, delete(MET));
    // This vertex cannot be applied, which stops the sequencer.
    assert!(sequencer.commit(request(Version(0), &[], &[(666, 1)])).is_err());
    let answer = waiting.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");

    let (sequencer, ..) = with_turn(SequencerConfig::default());
    let waiting = later(&sequencer, delete(MET));
    drop(sequencer);
    assert!(waiting.recv_timeout(PATIENCE).unwrap().is_ok());
}

/// As in a simulation, which has one thread.
#[test]
fn without_time_to_wait_a_commit_is_refused_at_once() {
    let config = SequencerConfig { turn_wait: Duration::ZERO, ..SequencerConfig::default() };
    let (sequencer, clock, base) = with_turn(config);
    let answers = sequencer.commit_together(vec![delete(MET), delete(MET + 1)]);
    assert!(is_turn(&answers[0]) && answers[1].is_ok(), "{answers:?}");
    let watch = sequencer.begin_load();
    let other = LoadCommit { load_id: "other".into(), ..load_of(base, &[]) };
    assert!(is_turn(&sequencer.commit_load(&watch, other)));
    clock.advance(MINUTE);
    assert!(sequencer.commit_together(vec![delete(MET)])[0].is_ok());
}

/// Loads with a turn are committed at their first attempt, however many writers there are, and all writers go on.
#[test]
fn loads_take_turns_beside_many_writers() {
    // On a busy machine no commit may give up.
    let hour = Duration::from_secs(3600);
    let sequencer = started(SequencerConfig { turn_wait: hour, ..SequencerConfig::default() });
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let over = std::sync::atomic::AtomicBool::new(false);
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (sequencer, over, written) = (&sequencer, &over, &written);
            scope.spawn(move || {
                let mut ends = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let request = delete(if thread % 2 == 0 { MET } else { MET + thread });
                    match thread {
                        0 | 1 => assert!(sequencer.commit(request).is_ok()),
                        _ => ends.push(later(sequencer, request)),
                    }
                    if ends.len() > 8 {
                        ends.drain(..).for_each(|end| assert!(end.recv_timeout(PATIENCE).unwrap().is_ok()));
                    }
                    written.fetch_add(1, Ordering::Relaxed);
                }
                ends.into_iter().for_each(|end| assert!(end.recv_timeout(PATIENCE).unwrap().is_ok()));
            });
        }
        for n in 0..100 {
            let before = written.load(Ordering::Relaxed);
            let (id, watch) = (format!("load-{n}"), sequencer.begin_load());
            let since = sequencer.begin_turn(RequestId::of_text(&id), turn(hour), &clock).unwrap().unwrap();
            let vertices = Box::new(Narrow(Gui(MET)));
            let load = LoadCommit { load_id: id, vertices, ..load_of(since, &[]) };
            sequencer.commit_load(&watch, load).unwrap();
            wait_until(|| written.load(Ordering::Relaxed) > before + 4);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(sequencer.set_aside(), 0);
}
