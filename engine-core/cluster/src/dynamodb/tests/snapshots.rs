//! Snapshots of large maps against DynamoDB Local.

use super::super::snapshot::{
    self, BODY, EPOCH, FIRST_PAGE, FORMAT_KEY, INCARNATION, LOOK_EVERY, MOST_CHANGED,
};
use super::*;
use crate::testing::graph as properties;
use crate::{NodeState, change_all};
use aws_sdk_dynamodb::primitives::Blob;
use tidegraph_platform::ManualClock;

/// A table, and the map in it as several processes see it.
struct Table {
    server: Server,
    clock: Arc<ManualClock>,
}

impl Table {
    fn start() -> Self {
        let table = Self { server: Server::start(), clock: Arc::new(ManualClock::default()) };
        table.process(0).create_tables().unwrap();
        table
    }

    /// A process, which knows nothing.
    fn process(&self, seed: u64) -> DynamoMap {
        let random = Arc::new(SeededRandom::new(seed));
        DynamoMap::open(&patient(&self.server), self.clock.clone(), random).unwrap()
    }

    /// Loads the map as a process that starts. Returns it, the requests, and the read units.
    fn start_of(&self, graph: &str) -> (Arc<PartitionMap>, u64, f64) {
        let process = self.process(1);
        let map = process.load(graph, None).unwrap();
        let usage = process.usage();
        (map, usage.requests, usage.read_units)
    }
}

fn place(partition: u16, node: usize) -> Change {
    Change::AddReplica { partition: PartitionId(partition), node: id(node) }
}

/// Makes a graph whose partitions have a replica each, on two nodes.
fn fill(store: &DynamoMap, graph: &str, partitions: u16) {
    let nodes = [register(1), register(2)];
    let places = (0..partitions).map(|p| place(p, 1 + usize::from(p % 2)));
    change_all(store, graph, &nodes.into_iter().chain(places).collect::<Vec<_>>()).unwrap();
}

fn new_large(store: &DynamoMap, partitions: u16) -> String {
    let graph = new_graph(store, partitions);
    fill(store, &graph, partitions);
    graph
}

/// Changes this number of partitions.
fn touch(store: &DynamoMap, graph: &str, partitions: impl IntoIterator<Item = u16>) {
    let map = store.load(graph, None).unwrap();
    let state = |p: u16| map.replicas(PartitionId(p))[0].clone();
    let next = |state| match state {
        crate::ReplicaState::Restoring => crate::ReplicaState::CatchingUp,
        crate::ReplicaState::CatchingUp => crate::ReplicaState::Serving,
        _ => crate::ReplicaState::Restoring,
    };
    let changes = partitions.into_iter().map(|p| {
        let replica = state(p);
        Change::SetReplica { partition: PartitionId(p), node: replica.node, state: next(replica.state) }
    });
    change_all(store, graph, &changes.collect::<Vec<_>>()).unwrap();
}

fn refresh(store: &DynamoMap, graph: &str) {
    store.refresh_snapshot(graph, &store.load(graph, None).unwrap()).unwrap();
}

/// Returns the item of the snapshot.
fn stored(store: &DynamoMap, graph: &str) -> Option<items::Attributes> {
    store.get_attributes("look", graph, items::SNAPSHOT, true).unwrap()
}

/// Returns the epoch of the snapshot; 0 if it has no body.
fn stored_epoch(store: &DynamoMap, graph: &str) -> Epoch {
    let item = stored(store, graph).expect("a snapshot");
    let stored = snapshot::Stored::decode(graph, &item).unwrap().expect("of this format");
    stored.map.map_or(Epoch(0), |map| map.epoch())
}

fn put(store: &DynamoMap, item: items::Attributes) {
    let request = store.client().put_item().table_name(&store.table).set_item(Some(item));
    store.requests.wait("edit", request.send()).unwrap().unwrap();
}

#[test]
fn a_start_reads_the_snapshot_and_what_changed_since() {
    let table = Table::start();
    let leader = table.process(2);
    let graph = &new_large(&leader, 1024);
    let (map, requests, units) = table.start_of(graph);
    assert!(requests == 3 && units > 10.0, "{requests} requests, {units} units");
    refresh(&leader, graph);
    assert_eq!(stored_epoch(&leader, graph), map.epoch());
    let (same, requests, units) = table.start_of(graph);
    assert_eq!(same, map);
    assert!(requests == 2 && units < 5.0, "{requests} requests, {units} units");

    // Few changes are on the page, and are no reason to write it again.
    touch(&leader, graph, 0..MOST_CHANGED as u16);
    refresh(&leader, graph);
    assert_eq!(stored_epoch(&leader, graph), map.epoch());
    let known = leader.load(graph, Some(&map)).unwrap();
    let (newer, requests, units) = table.start_of(graph);
    assert_eq!(newer, known);
    assert!(requests == 2 && units < 5.0, "{requests} requests, {units} units");

    // If more changed, more of the newest items are read.
    touch(&leader, graph, 0..300);
    let known = leader.load(graph, Some(&known)).unwrap();
    let (newer, requests, units) = table.start_of(graph);
    assert_eq!(newer, known);
    assert!(requests == 4 && units < 12.0, "{requests} requests, {units} units");
    refresh(&leader, graph);
    assert_eq!(stored_epoch(&leader, graph), known.epoch());
    let (newer, requests, _) = table.start_of(graph);
    assert_eq!((newer, requests), (known.clone(), 2));

    // Loads of items, as those of the release before, do not see it.
    let all = leader.pages(&Selection::changed_since(graph, Epoch(0), true), None).unwrap();
    assert_eq!(all.len(), known.item_count());
    let beats = (leader.heartbeats(graph).unwrap().len(), leader.checkpoints(graph).unwrap().len());
    assert_eq!((beats, leader.releases(graph).unwrap().len()), ((0, 0), 0));
    assert!(leader.upgrade(graph).unwrap().is_none() && leader.lease(graph, SEQUENCER).unwrap().is_none());
}

#[test]
fn a_split_changes_what_the_snapshot_has() {
    let table = Table::start();
    let leader = table.process(2);
    let graph = &new_large(&leader, 128);
    refresh(&leader, graph);
    let into = tidegraph_types::PartitionCount::new(256).unwrap();
    leader.change(graph, None, &[Change::BeginSplit { into }]).unwrap();
    let known = leader.load(graph, None).unwrap();
    assert_eq!(known.graph().splits.into, Some(into));
    assert_eq!(table.start_of(graph).0, known);
    change_all(&leader, graph, &(256..512).map(|p| place(p, 1)).collect::<Vec<_>>()).unwrap();
    let known = leader.load(graph, Some(&known)).unwrap();
    assert_eq!((table.start_of(graph).0, known.held().count()), (known.clone(), 384));
    refresh(&leader, graph);
    assert_eq!(stored_epoch(&leader, graph), known.epoch());
    leader.change(graph, Some(known.epoch()), &[Change::CompleteSplit { into }]).unwrap();
    let (after, requests, _) = table.start_of(graph);
    assert_eq!((after.graph().partitions, requests), (into, 2));
}

#[test]
fn a_small_map_has_none_and_costs_nothing_more() {
    let table = Table::start();
    let leader = table.process(2);
    let graph = &new_large(&leader, 64);
    let map = leader.load(graph, None).unwrap();
    let before = leader.usage();
    leader.refresh_snapshot(graph, &map).unwrap();
    assert_eq!(leader.usage(), before);
    assert!(stored(&leader, graph).is_none());
    let (same, requests, units) = table.start_of(graph);
    assert_eq!((same, requests), (map.clone(), 1));
    let whole = table.process(1);
    whole.pages(&Selection::changed_since(graph, Epoch(0), false), None).unwrap();
    assert_eq!(units, whole.usage().read_units);
    // At the bound there is one.
    let nodes = (3..=FIRST_PAGE - map.item_count() + 2).map(register).collect::<Vec<_>>();
    change_all(&leader, graph, &nodes).unwrap();
    assert_eq!(leader.load(graph, None).unwrap().item_count(), FIRST_PAGE);
    refresh(&leader, graph);
    assert_ne!(stored_epoch(&leader, graph), Epoch(0));
}

/// A start reads all items then, and the next leader writes another snapshot.
#[test]
fn a_snapshot_that_cannot_be_used_is_left_out_and_replaced() {
    let table = Table::start();
    let leader = table.process(2);
    let graph = &new_large(&leader, 256);
    let map = leader.load(graph, None).unwrap();
    refresh(&leader, graph);
    let good = stored(&leader, graph).unwrap();
    let Some(AttributeValue::B(body)) = good.get(BODY) else { panic!("{good:?}") };
    let bytes = |bytes: &[u8]| Some(AttributeValue::B(Blob::new(bytes)));
    let mut flipped = body.as_ref().to_vec();
    flipped[100] ^= 16;
    let text = |text: &str| Some(AttributeValue::S(text.into()));
    let edits = [
        (BODY, bytes(&flipped)),
        (BODY, bytes(&body.as_ref()[..200])),
        (BODY, bytes(b"")),
        (BODY, None),
        (BODY, text("nonsense")),
        (EPOCH, Some(number(map.epoch().0 - 1))),
        (EPOCH, Some(number(99_999))),
        (EPOCH, text("one")),
        (EPOCH, None),
        (FORMAT_KEY, Some(number(2))),
        (FORMAT_KEY, None),
        (INCARNATION, None),
        (INCARNATION, Some(number(1))),
    ];
    for (attribute, value) in edits {
        let what = format!("{attribute}: {value:?}");
        put(&leader, good.clone());
        assert_eq!(table.start_of(graph).1, 2);
        edit(&leader, graph, items::SNAPSHOT, attribute, value);
        let (same, requests, _) = table.start_of(graph);
        assert_eq!((same, requests), (map.clone(), 3), "{what}");
        let next = table.process(3);
        refresh(&next, graph);
        assert_eq!(stored_epoch(&leader, graph), map.epoch(), "{what}");
        let (same, requests, _) = table.start_of(graph);
        assert_eq!((same, requests), (map.clone(), 2), "{what}");
    }
    // The process that wrote it looks again after a while.
    put(&leader, good);
    table.process(3).remove("edit", graph, items::SNAPSHOT).unwrap();
    refresh(&leader, graph);
    assert!(stored(&leader, graph).is_none());
    table.clock.advance(LOOK_EVERY);
    refresh(&leader, graph);
    assert_eq!(stored_epoch(&leader, graph), map.epoch());
}

#[test]
fn an_item_that_is_not_as_in_the_snapshot_is_believed_first() {
    let table = Table::start();
    let leader = table.process(2);
    let graph = &new_large(&leader, 256);
    refresh(&leader, graph);
    // A new endpoint, without a change: edited by hand. It is on the page, because it changed last.
    leader.change(graph, None, &[Change::SetNode { node: id(1), state: NodeState::Up }]).unwrap();
    leader.remove("edit", graph, items::SNAPSHOT).unwrap();
    refresh(&table.process(3), graph);
    edit(&leader, graph, "map#node#node-001", "endpoint", Some(AttributeValue::S("10.9.9.9:1".into())));
    let (map, requests, _) = table.start_of(graph);
    assert_eq!(map.node(&id(1)).unwrap().endpoint, "10.9.9.9:1");
    // Page and snapshot, both once more with strong consistency, then all other items.
    assert_eq!(requests, 5);
}

#[test]
fn two_leaders_never_replace_a_newer_snapshot() {
    let table = Table::start();
    let (old, new) = (table.process(2), table.process(3));
    let graph = &new_large(&old, 256);
    refresh(&old, graph);
    let kept = old.adopt(graph).unwrap().expect("it is there");
    touch(&old, graph, 0..100);
    let before = old.load(graph, None).unwrap();
    touch(&new, graph, 100..200);
    refresh(&new, graph);
    let newest = new.load(graph, None).unwrap();
    assert_eq!(stored_epoch(&new, graph), newest.epoch());
    // The old one was stopped after it read the map.
    assert!(!old.put_snapshot(graph, &kept.incarnation, &before).unwrap());
    assert!(!old.put_snapshot(graph, &kept.incarnation, &newest).unwrap());
    assert_eq!(stored_epoch(&new, graph), newest.epoch());
    // It forgets what it knew, and takes over what is there.
    old.refresh_snapshot(graph, &before).unwrap();
    touch(&old, graph, 0..100);
    refresh(&old, graph);
    refresh(&old, graph);
    assert_eq!(stored_epoch(&new, graph), old.load(graph, None).unwrap().epoch());
    // Two that both find none write one each, and the snapshot of one of them stays.
    old.remove("edit", graph, items::SNAPSHOT).unwrap();
    let (first, second) = (table.process(4), table.process(5));
    std::thread::scope(|scope| {
        scope.spawn(|| refresh(&first, graph));
        scope.spawn(|| refresh(&second, graph));
    });
    refresh(&first, graph);
    let (map, requests, _) = table.start_of(graph);
    assert_eq!((map.epoch(), requests), (stored_epoch(&new, graph), 2));
}

/// The next graph of the same name has as many changes at the same epochs, so neither of them shows the difference.
#[test]
fn the_snapshot_of_a_dropped_graph_is_never_used_for_the_next_one() {
    let table = Table::start();
    let (leader, paused, operator) = (table.process(2), table.process(3), table.process(4));
    let sleeper = table.process(5);
    let first = Graph { name: "again".into(), ..properties(256) };
    let graph = first.name.as_str();
    operator.create_graph(&first).unwrap();
    fill(&operator, graph, 256);
    let seen = leader.load(graph, None).unwrap();
    // One process is stopped before it writes the first snapshot, one when it knows it.
    let first_ever = paused.adopt(graph).unwrap().expect("it is written");
    assert_eq!(stored_epoch(&operator, graph), Epoch(0));
    assert_eq!(table.start_of(graph).0, seen);
    refresh(&leader, graph);
    refresh(&sleeper, graph);
    let stale = stored(&operator, graph).expect("a snapshot");
    touch(&operator, graph, 0..200);
    let known = leader.load(graph, Some(&seen)).unwrap();

    operator.begin_drop(graph).unwrap();
    // A leader that has not noticed writes nothing any more.
    let refused = leader.refresh_snapshot(graph, &known).unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    operator.finish_drop(graph).unwrap();
    assert!(operator.items_of("look", graph).unwrap().is_empty());
    assert!(matches!(table.process(1).load(graph, None), Err(Error::NotFound { .. })));

    operator.create_graph(&first).unwrap();
    // The other node has each replica.
    let nodes = [register(2), register(1)];
    let places = (0..256).map(|p| place(p, 2 - usize::from(p % 2)));
    change_all(&operator, graph, &nodes.into_iter().chain(places).collect::<Vec<_>>()).unwrap();
    let next = operator.load(graph, None).unwrap();
    assert_eq!((next.epoch(), next.changes()), (seen.epoch(), seen.changes()));
    assert_ne!(next, seen);
    assert!(!paused.put_snapshot(graph, &first_ever.incarnation, &seen).unwrap());
    assert!(stored(&operator, graph).is_none());
    // The next graph has its own snapshot, of an earlier epoch than what the others know.
    refresh(&table.process(7), graph);
    touch(&operator, graph, 0..200);
    let next = operator.load(graph, None).unwrap();
    assert_eq!((next.epoch(), next.changes()), (known.epoch(), known.changes()));
    assert!(!paused.put_snapshot(graph, &first_ever.incarnation, &known).unwrap());
    // Its own snapshot is of another graph, though all counts are right.
    let refused = sleeper.refresh_snapshot(graph, &known).unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    assert_eq!(stored_epoch(&operator, graph), seen.epoch());
    assert_eq!(table.start_of(graph).0, next);
    refresh(&leader, graph);
    assert_eq!((stored_epoch(&operator, graph), table.start_of(graph).0), (next.epoch(), next.clone()));

    // Even if the old one were there: a replica that lags shows it, or somebody puts it back.
    put(&operator, stale.clone());
    assert_eq!(table.start_of(graph).0, next);
    touch(&operator, graph, 0..2);
    assert_eq!(table.start_of(graph).0, operator.load(graph, Some(&next)).unwrap());
    refresh(&table.process(6), graph);
    assert_eq!(stored_epoch(&operator, graph), operator.load(graph, None).unwrap().epoch());
}

/// A process that marks the graph for its first snapshot while the graph is being dropped leaves nothing that the next
/// graph could read.
#[test]
fn a_snapshot_without_a_body_may_outlive_its_graph() {
    let table = Table::start();
    let (leader, operator) = (table.process(2), table.process(3));
    let first = Graph { name: "again".into(), ..properties(256) };
    leader.create_graph(&first).unwrap();
    fill(&leader, "again", 256);
    let seen = leader.load("again", None).unwrap();
    assert!(leader.heartbeats("again").unwrap().is_empty());
    operator.begin_drop("again").unwrap();
    operator.finish_drop("again").unwrap();
    let kept = leader.adopt("again").unwrap().expect("it is written");
    assert!(matches!(leader.refresh_snapshot("again", &seen), Err(Error::NotFound { .. })));
    leader.create_graph(&first).unwrap();
    assert_eq!(table.start_of("again").0.nodes().count(), 0);
    change_all(&leader, "again", &[register(1), register(2), register(3)]).unwrap();
    change_all(&leader, "again", &(0..256).map(|p| place(p, 3)).collect::<Vec<_>>()).unwrap();
    refresh(&leader, "again");
    let item = stored(&leader, "again").expect("a snapshot");
    assert_eq!(item.get(INCARNATION), Some(&AttributeValue::S(kept.incarnation)));
    let (map, requests, _) = table.start_of("again");
    assert_eq!((map, requests), (leader.load("again", None).unwrap(), 2));
}

/// Shows MAP-1.
#[test]
fn starts_during_changes_and_refreshes_are_whole() {
    let table = Table::start();
    let writer = table.process(2);
    let graph = &new_large(&writer, 256);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..40 {
                touch(&writer, graph, (0..40).map(|p| (p * 6 + round) % 256));
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        scope.spawn(|| {
            let leader = table.process(3);
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                refresh(&leader, graph);
            }
        });
        scope.spawn(|| {
            let reader = table.process(4);
            let mut newest = Epoch(0);
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                let map = reader.load(graph, None).unwrap();
                assert!(map.is_torn().is_none() && map.epoch() >= newest, "{} {newest}", map.epoch());
                newest = map.epoch();
            }
        });
    });
    assert_eq!(table.start_of(graph).0, writer.load(graph, None).unwrap());
}
