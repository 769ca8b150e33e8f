//! Candidates on a map in memory and a shared log, with clocks that only the tests advance.

use super::*;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{Claim, Graph, MapStore, MemoryMap, SEQUENCER};
use tidegraph_log::testing::SharedLog;
use tidegraph_log::{Body, LogStore};
use tidegraph_platform::{Clock, ManualClock, Random, SeededRandom};
use tidegraph_types::{
    CommitRequest, Epoch, Gui, Key, Mutation, PartitionCount, RequestId, ShardId, Sid, Str, Token, Version,
};

const GRAPH: &str = "g";
const STEP: Duration = Duration::from_millis(300);

/// The services that the candidates share.
#[derive(Debug, Default)]
struct World {
    map: MemoryMap,
    log: SharedLog,
    base: Mutex<RecoveryBase>,
}

impl RecoverySource for World {
    fn base(&self) -> Result<RecoveryBase, crate::Error> {
        Ok(self.base.lock().clone())
    }

    fn open_log(&self, _: Epoch) -> Result<Box<dyn LogStore>, tidegraph_log::Error> {
        Ok(Box::new(self.log.writer(ShardId(0))))
    }
}

struct Process {
    candidate: Candidate,
    clock: Arc<ManualClock>,
}

impl Process {
    fn new(world: &Arc<World>, name: &str, unsure: Unsure) -> Self {
        let clock = Arc::new(ManualClock::default());
        let claim = Claim {
            holder: name.into(),
            endpoint: format!("{name}:1"),
            ttl: Duration::ZERO,
            above: Epoch(0),
        };
        let config = CandidateConfig { unsure, ..CandidateConfig::default() };
        let (map, time): (Arc<dyn MapStore>, Arc<dyn Clock>) = (Arc::new(world.map.clone()), clock.clone());
        let candidate = Candidate::without_thread(map, time, GRAPH, claim, world.clone(), config);
        Self { candidate, clock }
    }

    /// Does one step of the thread, and finishes a take-over.
    fn step(&self) {
        self.candidate.step();
        self.candidate.finish_takeover();
    }

    fn leadership(&self) -> Option<Arc<Leadership>> {
        self.candidate.leadership()
    }

    fn epoch(&self) -> Option<Epoch> {
        self.leadership().map(|leading| leading.epoch())
    }
}

fn world() -> Arc<World> {
    let world = World::default();
    let graph = Graph {
        name: GRAPH.into(),
        partitions: PartitionCount::ONE,
        shards: 1,
        hash_bits: 64,
        replication_factor: 1,
        gremlin: Default::default(),
        splits: Default::default(),
        shares_objects: false,
    };
    world.map.create_graph(&graph).unwrap();
    Arc::new(world)
}

fn request(id: u128) -> CommitRequest {
    CommitRequest {
        write_keys: vec![Key(1)],
        mutations: vec![Mutation::AddException { id: id.to_string().into(), gui: Gui(1) }],
        request: Some(RequestId(id)),
        ..CommitRequest::default()
    }
}

fn commit(leading: &Leadership, id: u128) -> Result<Version, tidegraph_txn::Error> {
    leading.sequencer().commit(request(id))
}

/// Advances the clocks of all processes; those in `active` do a step each time.
fn pass(all: &[&Process], steps: u32, active: &[&Process]) {
    for _ in 0..steps {
        all.iter().for_each(|process| process.clock.advance(STEP));
        active.iter().for_each(|process| process.step());
    }
}

#[test]
fn a_standby_takes_over_and_the_old_one_acknowledges_nothing() {
    for unsure in [Unsure::Stop, Unsure::GoOn] {
        let world = world();
        let (a, b) = (Process::new(&world, "a", unsure), Process::new(&world, "b", unsure));
        pass(&[&a, &b], 10, &[&a, &b]);
        assert_eq!((a.epoch(), b.epoch()), (Some(Epoch(1)), None));
        assert_eq!(b.candidate.seen().unwrap().endpoint, "a:1");
        let old = a.leadership().unwrap();
        let first = commit(&old, 1).unwrap();
        assert_eq!(old.newest().unwrap(), first);
        // a is paused. b waits for 1.8 s, and for no more than one further step.
        pass(&[&a, &b], 5, &[&b]);
        assert_eq!(b.epoch(), None);
        pass(&[&a, &b], 2, &[&b]);
        assert_eq!(b.epoch(), Some(Epoch(2)));
        let new = b.leadership().unwrap();
        // a continues, and does not know yet that it was deposed.
        let refused = commit(&old, 2).unwrap_err();
        let expected =
            if unsure == Unsure::Stop { "the lease of epoch 1 ended" } else { "another sequencer" };
        assert!(refused.to_string().contains(expected), "{refused}");
        assert!(old.newest().is_err());
        a.step();
        assert_eq!(a.epoch(), None);
        assert!(commit(&old, 3).is_err());
        // The log has what a acknowledged, and nothing else of a.
        assert_eq!(commit(&new, 1).unwrap(), first);
        assert_eq!(new.sequencer().outcome(RequestId(2), Version(0)).unwrap(), None);
        let second = commit(&new, 2).unwrap();
        assert!(second > first);
        assert_eq!(new.newest().unwrap(), second);
        // A process that closes hands the role over at once.
        b.candidate.close();
        a.step();
        assert_eq!(a.epoch(), Some(Epoch(3)));
        assert_eq!(commit(&a.leadership().unwrap(), 2).unwrap(), second);
    }
}

#[test]
fn without_the_map_it_goes_on_only_where_the_log_sees_to_it() {
    for unsure in [Unsure::Stop, Unsure::GoOn] {
        let world = world();
        let a = Process::new(&world, "a", unsure);
        pass(&[&a], 1, &[&a]);
        let leading = a.leadership().unwrap();
        commit(&leading, 1).unwrap();
        world.map.set_away(true);
        pass(&[&a], 4, &[&a]);
        commit(&leading, 2).unwrap();
        pass(&[&a], 2, &[&a]);
        let late = commit(&leading, 3);
        assert_eq!(late.is_ok(), unsure == Unsure::GoOn, "{late:?}");
        if unsure == Unsure::GoOn {
            // The leader proves that it still leads.
            let newest = leading.newest().unwrap();
            assert!(newest > late.unwrap());
        }
        world.map.set_away(false);
        pass(&[&a], 3, &[&a]);
        assert!(commit(&a.leadership().unwrap(), 4).is_ok());
    }
}

#[test]
fn after_a_failure_of_the_log_it_goes_on_under_the_next_epoch() {
    let world = world();
    let a = Process::new(&world, "a", Unsure::GoOn);
    pass(&[&a], 1, &[&a]);
    let before = commit(&a.leadership().unwrap(), 1).unwrap();
    world.log.set_away(true);
    let refused = commit(&a.leadership().unwrap(), 2).unwrap_err();
    assert_eq!(refused.code(), tidegraph_types::ErrorCode::CommitOutcomeUnknown);
    pass(&[&a], 20, &[&a]);
    assert_eq!(a.epoch(), None);
    world.log.set_away(false);
    pass(&[&a], 3, &[&a]);
    let leading = a.leadership().unwrap();
    assert!(leading.epoch() > Epoch(1));
    assert_eq!(commit(&leading, 1).unwrap(), before);
    assert!(commit(&leading, 2).unwrap() > before);
}

#[test]
fn what_a_checkpoint_says_and_what_was_handed_out_is_kept() {
    let world = world();
    let tokens: Vec<(Token, Str)> = vec![(Token(1), "a".into())];
    let (a, b) = (Process::new(&world, "a", Unsure::GoOn), Process::new(&world, "b", Unsure::GoOn));
    pass(&[&a, &b], 1, &[&a]);
    let old = a.leadership().unwrap();
    assert_eq!(old.sequencer().intern(&["a".into(), "b".into()]).unwrap(), [Token(1), Token(2)]);
    let handed = old.sequencer().hand_out_sids(10).unwrap();
    let (version, next_sid) = (commit(&old, 1).unwrap(), old.sequencer().next_sid());
    assert!(next_sid >= Sid(handed.end));
    *world.base.lock() = RecoveryBase { version: Version(2), epoch: Epoch(1), next_sid: Sid(1), tokens };
    pass(&[&a, &b], 8, &[&b]);
    let new = b.leadership().unwrap();
    assert_eq!(new.sequencer().tokens().len(), 2);
    assert!(new.sequencer().hand_out_sids(10).unwrap().start >= handed.end);
    assert_eq!(new.sequencer().outcome(RequestId(1), Version(2)).unwrap(), Some(version));
}

#[test]
fn requests_shortly_before_a_checkpoint_are_known_and_earlier_ones_are_refused() {
    let world = world();
    let a = Process::new(&world, "a", Unsure::GoOn);
    pass(&[&a], 1, &[&a]);
    let versions: Vec<Version> = (0..5000).map(|id| commit(&a.leadership().unwrap(), id).unwrap()).collect();
    let checkpoint = versions[4900];
    *world.base.lock() =
        RecoveryBase { version: checkpoint, epoch: Epoch(1), next_sid: Sid(1), tokens: Vec::new() };
    a.candidate.close();
    let b = Process::new(&world, "b", Unsure::GoOn);
    pass(&[&b], 1, &[&b]);
    let leading = b.leadership().unwrap();
    let outcome = |id: u128, since: Version| leading.sequencer().outcome(RequestId(id), since);
    let first = checkpoint.0 + 1 - CandidateConfig::default().asked_again;
    for (id, version) in versions.iter().enumerate().filter(|(_, version)| version.0 >= first) {
        assert_eq!(outcome(id as u128, Version(1)).unwrap(), Some(*version));
    }
    // A request that read before these versions may have been committed in them.
    assert!(outcome(9999, Version(first - 2)).is_err());
    assert_eq!(outcome(9999, Version(first - 1)).unwrap(), None);
}

#[test]
fn a_map_that_is_older_than_the_log_is_caught_up_with() {
    let world = world();
    let a = Process::new(&world, "a", Unsure::GoOn);
    pass(&[&a], 1, &[&a]);
    let version = commit(&a.leadership().unwrap(), 1).unwrap();
    a.candidate.close();
    drop(a);
    // The map was created again, and three other processes were elected on the old one.
    let others = Arc::new(World { log: world.log.clone(), ..World::default() });
    let graph = world.map.load(GRAPH, None).unwrap().graph().clone();
    others.map.create_graph(&graph).unwrap();
    for _ in 0..3 {
        let other = Process::new(&world, "other", Unsure::GoOn);
        pass(&[&other], 1, &[&other]);
        other.candidate.close();
    }
    let b = Process::new(&others, "b", Unsure::GoOn);
    pass(&[&b], 4, &[&b]);
    assert_eq!(b.epoch(), Some(Epoch(5)));
    assert_eq!(others.map.lease(GRAPH, SEQUENCER).unwrap().unwrap().epoch, Epoch(5));
    assert_eq!(commit(&b.leadership().unwrap(), 1).unwrap(), version);
}

/// TXN-4, LOG-1 and IDS-1: three processes are paused and continue, the map and the log go away and come back, clients
/// send requests to any process that was the sequencer once, and send them again after an error. At the end the log has
/// every acknowledged request once, at the version of its acknowledgement, and no SID was handed out twice.
#[test]
fn nothing_acknowledged_is_lost_whatever_is_paused() {
    for seed in 0..150 {
        let random = SeededRandom::new(seed);
        let world = world();
        let processes: Vec<Process> = (0..3)
            .map(|n| {
                Process::new(
                    &world,
                    &format!("p{n}"),
                    if seed % 2 == 0 { Unsure::Stop } else { Unsure::GoOn },
                )
            })
            .collect();
        let mut paused = [0_u64; 3];
        let (mut acknowledged, mut waiting) = (BTreeMap::new(), Vec::new());
        // Every process that was the sequencer once, because callers may still hold it.
        let mut known: Vec<Arc<Leadership>> = Vec::new();
        let (mut sids, mut next) = (Vec::new(), 0_u128);
        for _ in 0..300 {
            processes
                .iter()
                .for_each(|process| process.clock.advance(Duration::from_millis(100 + random.below(200))));
            for (process, paused) in processes.iter().zip(&mut paused) {
                *paused = paused.saturating_sub(1);
                if *paused == 0 {
                    process.step();
                    known.extend(process.leadership());
                }
                if random.one_in(40) {
                    *paused = 1 + random.below(20);
                }
            }
            world.map.set_away(random.one_in(10));
            world.log.set_away(random.one_in(30));
            if known.len() > 20 {
                known.drain(..10);
            }
            let Some(leading) = known.get(random.below(known.len() as u64) as usize) else { continue };
            if random.one_in(4) {
                sids.extend(leading.sequencer().hand_out_sids(3).into_iter().flatten());
            }
            let id = match waiting.pop() {
                Some(id) if random.one_in(2) => id,
                other => {
                    waiting.extend(other);
                    next += 1;
                    next
                }
            };
            match commit(leading, id) {
                Ok(version) => {
                    let before = acknowledged.insert(id, version);
                    assert!(before.is_none_or(|before| before == version), "seed {seed}, request {id}");
                    // Some clients lose the answer.
                    if random.one_in(3) {
                        waiting.push(id);
                    }
                }
                Err(_) => waiting.push(id),
            }
        }
        world.map.set_away(false);
        world.log.set_away(false);
        for _ in 0..30 {
            pass(&processes.iter().collect::<Vec<_>>(), 1, &processes.iter().collect::<Vec<_>>());
        }
        let leader = processes
            .iter()
            .find_map(Process::leadership)
            .unwrap_or_else(|| panic!("seed {seed}: no sequencer"));
        for id in waiting {
            let known = leader.sequencer().outcome(RequestId(id), Version(0)).unwrap();
            let version = commit(&leader, id).unwrap();
            assert!(known.is_none_or(|known| known == version), "seed {seed}");
            let before = acknowledged.insert(id, version);
            assert!(before.is_none_or(|before| before == version), "seed {seed}, request {id}");
        }
        let mut log = world.log.writer(ShardId(0));
        let mut found = BTreeMap::new();
        for record in log.read_from(Version(1)).unwrap() {
            let record = record.unwrap();
            if let Body::Commit { request: Some(id), .. } = record.body {
                assert_eq!(
                    found.insert(id.0, record.version),
                    None,
                    "seed {seed}: request {id} stands there twice"
                );
            }
        }
        assert_eq!(found, acknowledged, "seed {seed}");
        assert!(acknowledged.len() > 20, "seed {seed}: {}", acknowledged.len());
        let handed = sids.len();
        sids.sort_unstable();
        sids.dedup();
        assert_eq!(sids.len(), handed, "seed {seed}: a SID was handed out twice");
    }
}
