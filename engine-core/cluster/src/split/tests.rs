//! Tests of the steps, over a map in memory: stopped at any point, with nodes that come and go.

use super::*;
use crate::testing::{graph, id, register};
use crate::{Graph, MapStore, MemoryMap, NodeRelease, Upgrade, change_all};
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::PartitionId;

fn partitions(count: u16) -> PartitionCount {
    PartitionCount::new(count).unwrap()
}

fn start(store: &MemoryMap, name: &str, n: usize) {
    let up = Change::SetNode { node: id(n), state: NodeState::Up };
    change_all(store, name, &[register(n), up]).unwrap();
    let generation = store.load(name, None).unwrap().node(&id(n)).unwrap().generation;
    store.note_release(name, &id(n), &NodeRelease { generation, release: Release::THIS }).unwrap();
}

/// Returns a whole graph of eight partitions with two replicas each on three nodes.
fn fleet() -> (MemoryMap, String, Rebalance) {
    let store = MemoryMap::default();
    let graph = Graph { shards: 2, ..graph(8) };
    store.create_graph(&graph).unwrap();
    (0..3).for_each(|n| start(&store, &graph.name, n));
    let rebalance = Rebalance::new(Arc::new(store.clone()), &graph.name);
    for _ in 0..20 {
        let plan = rebalance.plan(Goal::Balance).unwrap();
        rebalance.advance(&plan.moves).unwrap();
        bring_up(&store, &graph.name, usize::MAX);
    }
    rebalance.check_split(partitions(32)).unwrap();
    (store, graph.name, rebalance)
}

/// Takes at most `most` replicas on nodes that are up one state further.
fn bring_up(store: &MemoryMap, name: &str, most: usize) {
    let map = store.load(name, None).unwrap();
    let coming = map.held().flat_map(|(partition, replicas)| {
        replicas
            .iter()
            .map(move |replica| (partition, replica))
            .filter(|(_, replica)| !replica.state.answers())
    });
    let up = |node: &crate::NodeId| map.node(node).is_some_and(|node| node.state == NodeState::Up);
    for (partition, replica) in coming.filter(|(_, replica)| up(&replica.node)).take(most) {
        let states = match replica.state {
            crate::ReplicaState::Restoring => vec![crate::ReplicaState::CatchingUp],
            _ => vec![crate::ReplicaState::Serving],
        };
        for state in states {
            let change = Change::SetReplica { partition, node: replica.node.clone(), state };
            store.change(name, None, &[change]).unwrap();
        }
    }
}

/// MAP-4, MAP-2: readers find an answering replica of each partition that they ask, unless all nodes of it are down.
fn is_sound(map: &PartitionMap) {
    let graph = map.graph();
    graph.check().unwrap();
    assert!(graph.splits.into.is_none() || graph.splits.from.is_none(), "{graph:?}");
    for (partition, replicas) in map.held() {
        assert!(graph.has(partition), "{partition} {replicas:?}");
    }
    for (partition, replicas) in map.partitions() {
        assert!(replicas.iter().any(|replica| replica.state.answers()), "{partition}: {replicas:?}");
    }
}

fn load(store: &MemoryMap, name: &str) -> Arc<PartitionMap> {
    store.load(name, None).unwrap()
}

fn finish(store: &MemoryMap, name: &str, rebalance: &Rebalance, into: PartitionCount) {
    rebalance.begin_split(into).unwrap();
    for _ in 0..500 {
        match rebalance.advance_split(into, 16, 4).unwrap().stage {
            SplitStage::Restoring => bring_up(store, name, 7),
            SplitStage::Turned => rebalance.drop_former_partitions().unwrap(),
            SplitStage::Done => return,
            SplitStage::None => panic!("the split is gone"),
        }
        is_sound(&load(store, name));
    }
    panic!("no end");
}

#[test]
fn a_graph_is_split_and_split_again() {
    let (store, name, rebalance) = fleet();
    let before = load(&store, &name).graph().sharding().unwrap();
    finish(&store, &name, &rebalance, partitions(32));
    let map = load(&store, &name);
    let names: Vec<PartitionId> = map.held().map(|(partition, _)| partition).collect();
    assert_eq!(names, (32..64).map(PartitionId).collect::<Vec<_>>());
    assert!(map.partitions().all(|(_, replicas)| replicas.len() == 2));
    assert_eq!(map.graph().sharding().unwrap(), before, "the log stays as it is");
    // The work is spread over the nodes.
    let held: Vec<usize> = (0..3).map(|n| map.held_by(&id(n)).count()).collect();
    assert!(held.iter().all(|count| (20..=23).contains(count)), "{held:?}");
    let done = rebalance.advance_split(partitions(32), 16, 4).unwrap();
    assert_eq!((done.stage, done.replicas, done.serving, done.former), (SplitStage::Done, 64, 64, 0));
    assert!(rebalance.plan(Goal::Repair).unwrap().is_empty());
    assert!(!rebalance.abort_split().unwrap());
    finish(&store, &name, &rebalance, partitions(64));
    assert_eq!(load(&store, &name).held().count(), 64);
    assert_eq!(load(&store, &name).graph().created_with(), partitions(8));
    // Creating the same graph again finds it.
    let created = load(&store, &name).graph().unsplit();
    assert_eq!(created.partitions, partitions(8));
    store.create_graph(&created).unwrap();
}

#[test]
fn a_split_that_cannot_be_is_refused_with_the_reason() {
    let (store, name, rebalance) = fleet();
    let refused = |into| {
        let epoch = load(&store, &name).epoch();
        let error = rebalance.begin_split(partitions(into)).unwrap_err().to_string();
        assert_eq!(load(&store, &name).epoch(), epoch, "nothing changed: {error}");
        error
    };
    for into in [1, 4, 8] {
        let error = refused(into);
        assert!(error.contains(&format!("split into {into} partitions")), "{error}");
        assert!(error.contains("the graph has 8") || error.contains("was made with 8"), "{error}");
    }
    // A replica is missing, then moves.
    let map = load(&store, &name);
    let (partition, node) = map.held().map(|(p, replicas)| (p, replicas[0].node.clone())).next().unwrap();
    store.change(&name, None, &[Change::DropReplica { partition, node: node.clone() }]).unwrap();
    assert!(refused(32).contains("7 of 8 partitions have all their replicas"));
    store.change(&name, None, &[Change::AddReplica { partition, node }]).unwrap();
    assert!(refused(32).contains("7 of 8 partitions have all their replicas"));
    (0..2).for_each(|_| bring_up(&store, &name, 1));
    store.change(&name, None, &[Change::SetNode { node: id(1), state: NodeState::Draining }]).unwrap();
    assert!(refused(32).contains("replicas are being moved"));
    store.change(&name, None, &[Change::SetNode { node: id(1), state: NodeState::Up }]).unwrap();
    // A node whose release nobody knows.
    store.change(&name, None, &[register(9)]).unwrap();
    assert!(refused(32).contains("node node-009 runs a release that states none"));
    store.change(&name, None, &[Change::SetNode { node: id(9), state: NodeState::Gone }]).unwrap();
    // An upgrade.
    let upgrade = |state| Upgrade {
        serial: 1,
        release: Release::THIS,
        state,
        holder: "h".into(),
        capacity: 3,
        launched: false,
        reason: String::new(),
        floor: None,
    };
    store.write_upgrade(&name, None, &upgrade(UpgradeState::Running)).unwrap();
    assert!(refused(32).contains("is being upgraded to"));
    let stopped = upgrade(UpgradeState::Stopped);
    store.write_upgrade(&name, Some(&upgrade(UpgradeState::Running)), &stopped).unwrap();
    // Another split.
    rebalance.begin_split(partitions(32)).unwrap();
    assert!(refused(64).contains("a split into 32 partitions is unfinished"));
    assert!(refused(16).contains("a split into 32 partitions is unfinished"));
    let direct = store.change(&name, None, &[Change::BeginSplit { into: partitions(64) }]).unwrap_err();
    assert!(direct.to_string().contains("the graph is being split into 32 partitions"), "{direct}");
    rebalance.begin_split(partitions(32)).unwrap();
    let complete = store.change(&name, None, &[Change::CompleteSplit { into: partitions(64) }]).unwrap_err();
    assert!(complete.to_string().contains("no such split runs"), "{complete}");
    assert!(rebalance.advance_split(partitions(64), 1, 1).is_err());
}

#[test]
fn a_split_is_taken_back_until_readers_turn() {
    let (store, name, rebalance) = fleet();
    let before = load(&store, &name);
    for bring_ups in [0, 3, 60] {
        rebalance.begin_split(partitions(32)).unwrap();
        for _ in 0..bring_ups {
            let progress = rebalance.advance_split(partitions(32), 4, 2).unwrap();
            assert_eq!(progress.stage, SplitStage::Restoring);
            bring_up(&store, &name, 1);
        }
        assert!(rebalance.abort_split().unwrap());
        let map = load(&store, &name);
        is_sound(&map);
        assert_eq!(map.graph(), before.graph());
        let held = |map: &PartitionMap| map.held().map(|(p, r)| (p, r.to_vec())).collect::<Vec<_>>();
        assert_eq!(held(&map), held(&before));
    }
    assert!(!rebalance.abort_split().unwrap());
    rebalance.begin_split(partitions(32)).unwrap();
    while rebalance.advance_split(partitions(32), 64, 64).unwrap().stage != SplitStage::Turned {
        bring_up(&store, &name, usize::MAX);
    }
    let refused = rebalance.abort_split().unwrap_err().to_string();
    assert!(refused.contains("readers ask its 32 partitions already"), "{refused}");
    assert!(
        rebalance
            .check_split(partitions(64))
            .unwrap_err()
            .to_string()
            .contains("the last split is unfinished")
    );
    rebalance.drop_former_partitions().unwrap();
}

/// Two runs at once, since the lease of the first one ran out.
#[test]
fn a_split_that_another_run_completes_meanwhile_was_not_taken_back() {
    let (store, name, rebalance) = fleet();
    let into = partitions(32);
    rebalance.begin_split(into).unwrap();
    while store.load(&name, None).unwrap().partitions_of(Layout::new(partitions(8), into).unwrap()).any(
        |(partition, replicas)| {
            replicas.len() < 2 || store.load(&name, None).unwrap().serving(partition).len() < 2
        },
    ) {
        rebalance.advance_split(into, 64, 64).unwrap();
        bring_up(&store, &name, usize::MAX);
    }
    assert_eq!(load(&store, &name).graph().splits.into, Some(into));
    // Between the look at the graph and the first change.
    let (other, graph) = (store.clone(), name.clone());
    store.meanwhile("read the map", 1, move || {
        let epoch = other.load(&graph, None).unwrap().epoch();
        other.change(&graph, Some(epoch), &[Change::CompleteSplit { into }]).unwrap();
    });
    let refused = rebalance.abort_split().unwrap_err().to_string();
    assert!(refused.contains("readers ask its 32 partitions already"), "{refused}");
    assert_eq!(load(&store, &name).graph().partitions, into);
    rebalance.drop_former_partitions().unwrap();
    // Another run took it back meanwhile.
    rebalance.begin_split(partitions(64)).unwrap();
    let (other, graph) = (store.clone(), name.clone());
    store.meanwhile("read the map", 1, move || {
        other.change(&graph, None, &[Change::AbortSplit]).unwrap();
    });
    assert!(rebalance.abort_split().unwrap());
    assert_eq!(load(&store, &name).graph().splits.into, None);
}

#[test]
fn an_upgrade_that_begins_while_a_split_is_checked_keeps_it_from_beginning() {
    let (store, name, rebalance) = fleet();
    let (other, graph) = (store.clone(), name.clone());
    store.meanwhile("read releases", 0, move || {
        let upgrade = Upgrade {
            serial: 1,
            release: Release::THIS,
            state: UpgradeState::Running,
            holder: "h".into(),
            capacity: 3,
            launched: false,
            reason: String::new(),
            floor: None,
        };
        other.write_upgrade(&graph, None, &upgrade).unwrap();
    });
    let refused = rebalance.begin_split(partitions(32)).unwrap_err().to_string();
    assert!(refused.contains("is being upgraded to"), "{refused}");
    assert_eq!(load(&store, &name).graph().splits.into, None);
}

/// Any step may be the last one of its process, nodes die and come back, heals and drains run in between: the split ends
/// whole, or was taken back whole.
#[test]
fn a_split_that_is_stopped_anywhere_goes_on() {
    for seed in 0..60 {
        let (store, name, rebalance) = fleet();
        let random = SeededRandom::new(seed);
        let below = |end: usize| random.below(end as u64) as usize;
        let into = partitions([16, 32, 128][below(3)]);
        let mut ended = false;
        for _ in 0..400 {
            match below(12) {
                0 => _ = rebalance.begin_split(into),
                1..6 => _ = rebalance.advance_split(into, 1 + below(19), 4),
                6..9 => bring_up(&store, &name, 1 + below(29)),
                9 if below(10) == 0 => {
                    let node = id(below(3));
                    let gone = Change::SetNode { node, state: NodeState::Gone };
                    store.change(&name, None, &[gone]).unwrap();
                    let map = load(&store, &name);
                    let dead = map.nodes().find(|(_, node)| node.state == NodeState::Gone).unwrap().0.clone();
                    let number: usize = dead.as_str()[5..].parse().unwrap();
                    start(&store, &name, number);
                    for (partition, _) in load(&store, &name).held_by(&dead) {
                        // What the process had is gone, and the map still names it: the other replica stays.
                        let answers = map.replicas(partition).iter().filter(|r| r.state.answers()).count();
                        if answers > 1 {
                            let state = crate::ReplicaState::Restoring;
                            let again = Change::SetReplica { partition, node: dead.clone(), state };
                            store.change(&name, None, &[again]).unwrap();
                        }
                    }
                }
                10 => {
                    let plan = rebalance.plan(Goal::Repair).unwrap();
                    rebalance.advance(&plan.moves).unwrap();
                }
                11 if below(20) == 0 => _ = rebalance.abort_split(),
                11 if below(10) == 0 => rebalance.drop_former_partitions().unwrap(),
                _ => {}
            }
            is_sound(&load(&store, &name));
            ended |= load(&store, &name).graph().partitions == into;
        }
        for _ in 0..40 {
            let plan = rebalance.plan(Goal::Repair).unwrap();
            rebalance.advance(&plan.moves).unwrap();
            bring_up(&store, &name, usize::MAX);
        }
        finish(&store, &name, &rebalance, into);
        let map = load(&store, &name);
        assert_eq!(
            (map.graph().partitions, map.held().count()),
            (into, usize::from(into.get())),
            "{seed} {ended}"
        );
        assert!(map.partitions().all(|(_, replicas)| replicas.len() >= 2), "seed {seed}");
    }
}

#[test]
fn checkpoints_of_the_partition_before_stand_in_until_each_has_its_own() {
    let (store, name, rebalance) = fleet();
    let note = |partition, version| {
        let checkpoint = crate::Checkpoint {
            partition: PartitionId(partition),
            version: tidegraph_types::Version(version),
            prefix: format!("p{partition}"),
        };
        store.note_checkpoint(&name, &checkpoint).unwrap();
    };
    let lowest = || {
        let (map, noted) = (load(&store, &name), store.checkpoints(&name).unwrap());
        map.graph().restorable(&noted).map(|all| all.iter().map(|noted| noted.version.0).min().unwrap())
    };
    (0..7).for_each(|partition| note(partition, 100 + u64::from(partition)));
    assert_eq!(lowest(), None);
    note(7, 50);
    assert_eq!(lowest(), Some(50));
    // Those of a split that was taken back are older than what the log still has.
    note(16 + 3, 20);
    // Those of the next partitions count only once readers ask them.
    rebalance.begin_split(partitions(16)).unwrap();
    note(16 + 7, 200);
    assert_eq!(lowest(), Some(50));
    finish(&store, &name, &rebalance, partitions(16));
    assert_eq!(lowest(), Some(50));
    note(16 + 15, 200);
    assert_eq!(lowest(), Some(100));
    (16..32).for_each(|partition| note(partition, 300));
    assert_eq!(lowest(), Some(300));
    let unknown = crate::Checkpoint {
        partition: PartitionId(9),
        version: tidegraph_types::Version(1),
        prefix: "x".into(),
    };
    assert!(matches!(store.note_checkpoint(&name, &unknown), Err(Error::NotFound { .. })));
}
