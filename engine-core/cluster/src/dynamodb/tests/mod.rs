//! The suite against DynamoDB Local, and tests that need a real table.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

mod server;
mod snapshots;

use super::*;
use crate::testing::{id, map_test_suite, new_graph, register};
use crate::{AppliedVersions, SEQUENCER};
use aws_sdk_dynamodb::types::AttributeValue;
use server::Server;
use tidegraph_platform::{RealClock, SeededRandom};
use tidegraph_types::{PartitionId, Version};

fn open(options: &DynamoOptions) -> DynamoMap {
    DynamoMap::open(options, Arc::new(RealClock::new()), Arc::new(SeededRandom::new(1))).unwrap()
}

fn patient(server: &Server) -> DynamoOptions {
    // Generous timeouts, for a busy machine.
    DynamoOptions {
        attempt_timeout: Duration::from_secs(30),
        change_timeout: Duration::from_secs(120),
        ..DynamoOptions::local(server.endpoint())
    }
}

#[test]
fn behaves_as_a_map() {
    let server = Server::start();
    let store = open(&patient(&server));
    let missing = store.load("g", None).unwrap_err();
    assert_eq!(missing.to_string(), "there is no table for the map: create it first");
    store.create_tables().unwrap();
    store.create_tables().unwrap();
    let store: Arc<dyn MapStore> = Arc::new(store);
    map_test_suite(&store);
    let other = DynamoOptions { table_prefix: "other-".into(), ..patient(&server) };
    assert!(matches!(open(&other).load("g", None), Err(Error::NotFound { .. })));
}

/// Sets or removes an attribute of an item directly in the table.
fn edit(store: &DynamoMap, graph: &str, key: &str, attribute: &str, value: Option<AttributeValue>) {
    let request = store.client().update_item().table_name(&store.table);
    let request = request
        .set_key(Some(items::key(graph, key)))
        .expression_attribute_names("#a", attribute)
        .update_expression(if value.is_some() { "SET #a = :v" } else { "REMOVE #a" })
        .set_expression_attribute_values(value.map(|value| [(":v".to_owned(), value)].into()));
    store.requests.wait("edit", request.send()).unwrap().unwrap();
}

#[test]
fn an_item_edited_to_nonsense_is_refused_by_name() {
    let server = Server::start();
    let store = open(&patient(&server));
    store.create_tables().unwrap();
    let text = |text: &str| Some(AttributeValue::S(text.into()));
    let replicas = |node: &str, state: &str| {
        let state = AttributeValue::S(state.into());
        Some(AttributeValue::M([(node.to_owned(), state)].into()))
    };
    let (graph_key, partition) = (items::GRAPH_KEY, "map#part#00001");
    let node = "map#node#node-001";
    let edits = [
        (node, "state", text("upp"), "unknown variant"),
        (node, "state", None, "missing field"),
        (node, "colour", text("red"), "unknown field"),
        (node, "capacityBytes", text("many"), ""),
        (node, "changes", text("one"), "is no number"),
        (partition, "replicas", replicas("node-001", "asleep"), "unknown variant"),
        (partition, "replicas", replicas("nobody", "serving"), "there is no node nobody"),
        (partition, "replicas", replicas("a#b", "serving"), "node id"),
        (partition, "replicas", Some(AttributeValue::L(vec![])), ""),
        (partition, "changes", Some(number(7)), "the graph has 3"),
        (graph_key, "partitions", Some(number(3)), "not a power of two"),
        (graph_key, "partitions", Some(number(1)), "no such partition"),
        (graph_key, "name", text("other"), "it is of graph other"),
        (graph_key, "changedAt", Some(number(1)), "an item has epoch"),
        ("map#part#7", "replicas", text("x"), "is no number"),
    ];
    for (key, attribute, value, expected) in edits {
        let graph = &new_graph(&store, 4);
        let add = |p| Change::AddReplica { partition: PartitionId(p), node: id(1) };
        store.change(graph, None, &[register(1), add(1), add(2)]).unwrap();
        store.load(graph, None).unwrap();
        edit(&store, graph, key, attribute, value.clone());
        if key == "map#part#7" {
            edit(&store, graph, key, "changedAt", Some(number(2)));
        }
        let refused = store.load(graph, None).unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{key} {attribute}: {refused}");
        assert!(refused.to_string().contains(expected), "{key} {attribute}: {refused}");
        assert!(refused.to_string().contains(graph.as_str()), "{refused}");
    }
    let graph = &new_graph(&store, 4);
    edit(&store, graph, "lease#sequencer", "holder", text("me"));
    assert!(matches!(store.lease(graph, SEQUENCER), Err(Error::Damaged { .. })));
    edit(&store, graph, "beat#node-001", "applied", text("7:9-1"));
    assert!(matches!(store.heartbeats(graph), Err(Error::Damaged { .. })));
    edit(&store, graph, "checkpoint#x", "version", Some(number(1)));
    assert!(matches!(store.checkpoints(graph), Err(Error::Damaged { .. })));
}

#[test]
fn a_transaction_is_made_again_if_another_one_or_an_earlier_attempt_of_it_was_faster() {
    use aws_sdk_dynamodb::types::error as refusals;
    let cancelled = |code: &str| {
        let reason = CancellationReason::builder().code(code).build();
        let cancelled = refusals::TransactionCanceledException::builder().cancellation_reasons(reason);
        TransactWriteItemsError::TransactionCanceledException(cancelled.build())
    };
    let unknown = refusals::IdempotentParameterMismatchException::builder().build();
    let under_way = refusals::TransactionInProgressException::builder().build();
    for (refusal, repeated) in [
        (cancelled("ConditionalCheckFailed"), true),
        (cancelled("TransactionConflict"), true),
        (cancelled("ValidationError"), false),
        (TransactWriteItemsError::TransactionInProgressException(under_way), true),
        (TransactWriteItemsError::IdempotentParameterMismatchException(unknown), true),
    ] {
        assert_eq!(may_be_repeated(&refusal), repeated, "{refusal:?}");
    }
}

#[test]
fn a_table_that_does_not_answer_is_an_error_in_time() {
    let server = Server::start();
    let store = open(&patient(&server));
    store.create_tables().unwrap();
    let graph = &new_graph(&store, 4);
    let known = store.load(graph, None).unwrap();
    let hasty = DynamoOptions {
        attempt_timeout: Duration::from_millis(100),
        attempts: 2,
        ..DynamoOptions::local(server.endpoint())
    };
    let hasty = open(&hasty);
    server.pause(true);
    let away = hasty.load(graph, Some(&known)).unwrap_err();
    assert!(away.will_pass() && matches!(away, Error::Unavailable { .. }), "{away}");
    assert!(hasty.change(graph, None, &[register(1)]).unwrap_err().will_pass());
    server.pause(false);
    // The change may or may not have been made. Repeating the call makes it.
    store.change(graph, None, &[register(1)]).unwrap();
    assert!(store.load(graph, Some(&known)).unwrap().node(&id(1)).is_some());
    let nobody = open(&DynamoOptions { attempts: 1, ..DynamoOptions::local("http://127.0.0.1:1") });
    assert!(nobody.load("g", None).unwrap_err().will_pass());
}

/// Whatever step is the last one of a process that drops a graph, another one goes on; and other graphs stay as they are.
#[test]
fn a_graph_is_dropped_in_steps_that_can_be_repeated() {
    let server = Server::start();
    let store = open(&patient(&server));
    store.create_tables().unwrap();
    let (kept, dropped) = (&new_graph(&store, 4), &new_graph(&store, 4));
    let place = [register(1), Change::AddReplica { partition: PartitionId(1), node: id(1) }];
    let beat = |counter| Heartbeat {
        generation: 1,
        counter,
        disk_full: false,
        used_bytes: 0,
        applied: AppliedVersions::default(),
        stuck: vec![],
    };
    for graph in [kept, dropped] {
        store.change(graph, None, &place).unwrap();
        store.heartbeat(graph, &id(1), &beat(1)).unwrap();
    }
    let before = store.load(kept, None).unwrap();
    let other = open(&patient(&server));
    let known = other.load(dropped, None).unwrap();
    let refused = store.finish_drop(dropped).unwrap_err();
    assert!(matches!(refused, Error::Conflict { .. }), "{refused}");
    assert!(matches!(store.begin_drop("nobody"), Err(Error::NotFound { .. })));

    let graph = (*known).graph().clone();
    assert_eq!(store.begin_drop(dropped).unwrap(), graph);
    assert_eq!(other.begin_drop(dropped).unwrap(), graph);
    assert!(store.is_dropping(dropped).unwrap() && !store.is_dropping(kept).unwrap());
    // A process that knows the map learns of it, and changes nothing any more.
    for gone in [
        other.load(dropped, Some(&known)).unwrap_err(),
        other.load(dropped, None).unwrap_err(),
        other.change(dropped, None, &[register(2)]).unwrap_err(),
        other.create_graph(&graph).unwrap_err(),
    ] {
        assert!(matches!(&gone, Error::NotFound { .. }), "{gone}");
        assert!(gone.to_string().contains("being dropped"), "{gone}");
    }
    let signs = store.signs_of_life(dropped).unwrap();
    assert_eq!((signs.len(), &signs), (1, &store.signs_of_life(dropped).unwrap()));
    store.heartbeat(kept, &id(1), &beat(2)).unwrap();
    assert_eq!(signs, store.signs_of_life(dropped).unwrap());

    // A process that died in the middle has removed some of the items.
    store.remove("edit", dropped, "map#node#node-001").unwrap();
    assert_eq!(other.begin_drop(dropped).unwrap(), graph);
    other.finish_drop(dropped).unwrap();
    other.finish_drop(dropped).unwrap();
    assert!(store.items_of("look", dropped).unwrap().is_empty());
    assert!(matches!(store.begin_drop(dropped), Err(Error::NotFound { .. })));
    assert_eq!(store.load(kept, None).unwrap(), before);
    // The name is free.
    other.create_graph(&graph).unwrap();
    assert_eq!(store.load(dropped, None).unwrap().nodes().count(), 0);
}

/// Processes that did not look while the graph was being dropped do not go on in the next one of its name.
#[test]
fn a_graph_that_is_made_again_is_another_one_for_those_that_knew_the_first() {
    let server = Server::start();
    let store = open(&patient(&server));
    store.create_tables().unwrap();
    let name = &new_graph(&store, 4);
    let (reader, writer) = (open(&patient(&server)), open(&patient(&server)));
    let place = [register(1), Change::AddReplica { partition: PartitionId(1), node: id(1) }];
    store.change(name, None, &place).unwrap();
    let checkpoint = |version| Checkpoint {
        partition: PartitionId(1),
        version: Version(version),
        prefix: format!("checkpoints/p00001/{version}"),
    };
    writer.note_checkpoint(name, &checkpoint(70)).unwrap();
    let known = reader.load(name, None).unwrap();
    let is_gone = |when: &str| {
        for _ in 0..2 {
            let gone = reader.load(name, Some(&known)).unwrap_err();
            assert!(matches!(gone, Error::NotFound { .. }), "{when}: {gone}");
        }
    };
    let note_fails = |when: &str, left: usize| {
        let refused = writer.note_checkpoint(name, &checkpoint(90)).unwrap_err();
        assert!(matches!(refused, Error::NotFound { .. }), "{when}: {refused}");
        let keys = |reads: Vec<Read>| reads.into_iter().map(|read| read.key).collect::<Vec<_>>();
        let items = keys(store.items_of("look", name).unwrap());
        assert_eq!(items.len(), left, "{when}: {items:?}");
    };
    let graph = store.begin_drop(name).unwrap();
    note_fails("while it is being dropped", 4);
    is_gone("while it is being dropped");
    store.finish_drop(name).unwrap();
    note_fails("when it is gone", 0);
    is_gone("when it is gone");
    store.create_graph(&graph).unwrap();
    note_fails("when it is made again", 1);
    is_gone("at a lower epoch");
    let mut next = store.load(name, None).unwrap();
    while next.epoch() < known.epoch() {
        store.change(name, None, &[register(2)]).unwrap();
        next = store.load(name, Some(&next)).unwrap();
    }
    is_gone("at the same epoch");
    store.change(name, None, &place).unwrap();
    is_gone("at a higher epoch");
    let now = store.load(name, Some(&next)).unwrap();
    assert_ne!(now.epoch(), next.epoch());
    // Its properties may be others too.
    store.begin_drop(name).unwrap();
    store.finish_drop(name).unwrap();
    store.create_graph(&Graph { replication_factor: 3, ..graph }).unwrap();
    is_gone("with other properties");
    let after = reader.load(name, None).unwrap();
    assert_eq!(reader.load(name, Some(&after)).unwrap(), after);
    store.note_checkpoint(name, &checkpoint(5)).unwrap();
    store.note_checkpoint(name, &checkpoint(4)).unwrap();
    assert_eq!(store.checkpoints(name).unwrap(), [checkpoint(5)]);
}

#[test]
fn little_is_read_when_little_changed() {
    let server = Server::start();
    let store = open(&patient(&server));
    store.create_tables().unwrap();
    let graph = &new_graph(&store, 1024);
    store.change(graph, None, &[register(1)]).unwrap();
    let all: Vec<Change> =
        (0..1024).map(|p| Change::AddReplica { partition: PartitionId(p), node: id(1) }).collect();
    crate::change_all(&store, graph, &all).unwrap();
    let known = store.load(graph, None).unwrap();
    let mut before = store.usage();
    let mut spent = |what: &dyn Fn()| {
        what();
        let now = store.usage();
        let spent = (now.requests - before.requests, now.read_units - before.read_units);
        before = now;
        spent
    };
    let (requests, units) = spent(&|| assert_eq!(store.load(graph, None).unwrap(), known));
    // There is no snapshot: the first page, a look for it, and the rest.
    assert!(requests == 3 && units > 5.0, "{requests} requests, {units} units");
    let (requests, units) =
        spent(&|| assert!(Arc::ptr_eq(&store.load(graph, Some(&known)).unwrap(), &known)));
    assert!(requests == 1 && units <= 1.0, "{requests} requests, {units} units");
    let state = crate::ReplicaState::CatchingUp;
    let change = Change::SetReplica { partition: PartitionId(5), node: id(1), state };
    spent(&|| assert!(store.change(graph, None, std::slice::from_ref(&change)).is_ok()));
    let (requests, units) =
        spent(&|| assert_eq!(store.load(graph, Some(&known)).unwrap().epoch(), Epoch(known.epoch().0 + 1)));
    assert!(requests == 1 && units <= 1.0, "{requests} requests, {units} units");
    let applied = AppliedVersions((0..1024).map(|p| (PartitionId(p), Version(9))).collect());
    let beat =
        Heartbeat { generation: 1, counter: 1, disk_full: false, used_bytes: 0, applied, stuck: vec![] };
    let writes = store.usage().write_units;
    store.heartbeat(graph, &id(1), &beat).unwrap();
    assert!(store.usage().write_units - writes <= 1.0);
}
