//! Bodies of snapshots: the same map comes back, damage is refused, and the size of a large one.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use super::*;
use crate::testing::{graph, id, register};
use crate::{Change, MapStore, MemoryMap, NodeState, Registration, Role, change_all};
use proptest::prelude::*;
use std::path::Path;
use tidegraph_platform::{Random, SeededRandom};
use tidegraph_types::PartitionCount;

/// Makes a map by changes, each at an epoch of its own. Its graph is called `g`.
fn made(partitions: u16, changes: &[Change]) -> PartitionMap {
    let store = MemoryMap::default();
    store.create_graph(&Graph { name: "g".into(), ..graph(partitions) }).unwrap();
    for change in changes {
        store.change("g", None, std::slice::from_ref(change)).unwrap();
    }
    (*store.load("g", None).unwrap()).clone()
}

fn add(partition: u16, node: usize) -> Change {
    Change::AddReplica { partition: PartitionId(partition), node: id(node) }
}

fn small() -> PartitionMap {
    let up = Change::SetNode { node: id(1), state: NodeState::Up };
    let catches_up = |state| Change::SetReplica { partition: PartitionId(3), node: id(2), state };
    let split = Change::BeginSplit { into: PartitionCount::new(8).unwrap() };
    let drop = Change::DropReplica { partition: PartitionId(9), node: id(1) };
    let first = [register(1), register(2), up, add(0, 1), add(3, 2), add(3, 1)];
    let then =
        [catches_up(ReplicaState::CatchingUp), catches_up(ReplicaState::Serving), split, add(9, 1), drop];
    made(4, &[&first[..], &then].concat())
}

fn text(bytes: &[u8]) -> serde_json::Value {
    let mut text = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn packed(text: &serde_json::Value) -> Vec<u8> {
    let mut compressor = GzEncoder::new(Vec::new(), Compression::fast());
    compressor.write_all(text.to_string().as_bytes()).unwrap();
    compressor.finish().unwrap()
}

/// `TIDEGRAPH_BLESS=1` writes the golden files again. Do so only for a new format.
#[test]
fn golden_file_of_format_1() {
    // A graph of the release before incarnations.
    let map = small().of_incarnation(None);
    let file = |kind| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../contracts/golden/map-snapshot-v1.{kind}"))
    };
    let written = encode(&map).unwrap();
    if std::env::var_os("TIDEGRAPH_BLESS").is_some() {
        std::fs::write(file("bin"), &written).unwrap();
        std::fs::write(file("json"), format!("{:#}\n", text(&written))).unwrap();
    }
    let golden = std::fs::read(file("bin")).unwrap();
    assert_eq!(decode("g", map.epoch(), &golden).unwrap(), map);
    let described: serde_json::Value = serde_json::from_slice(&std::fs::read(file("json")).unwrap()).unwrap();
    assert_eq!((text(&golden), text(&written)), (described.clone(), described));
}

#[test]
fn a_body_that_is_cut_or_changed_is_refused() {
    let map = small();
    let good = encode(&map).unwrap();
    for length in 0..good.len() {
        assert!(decode("g", map.epoch(), &good[..length]).is_err(), "{length} bytes");
    }
    // The ten bytes of the header name the time and the program that wrote it.
    for at in 10..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(decode("g", map.epoch(), &bad).is_err(), "byte {at}");
    }
    for (graph, epoch) in [("h", map.epoch()), ("g", Epoch(map.epoch().0 + 1))] {
        let refused = decode(graph, epoch, &good).unwrap_err().to_string();
        assert!(refused.contains("it is of graph g"), "{refused}");
    }
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::copy(&mut std::io::repeat(b' ').take(MOST_TEXT + 10), &mut bomb).unwrap();
    let refused = decode("g", map.epoch(), &bomb.finish().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("bytes or more"), "{refused}");
}

#[test]
fn a_body_that_contradicts_itself_is_refused() {
    let map = small();
    let good = text(&encode(&map).unwrap());
    let edits = [
        ("/changes", serde_json::json!(1), "the items have"),
        ("/nodes/0/id", serde_json::json!("a#b"), "node id"),
        ("/nodes/0/changedAt", serde_json::json!(99), "an item has epoch 99"),
        ("/nodes/0/node/state", serde_json::json!("asleep"), "unknown variant"),
        ("/nodes/0/node", serde_json::json!({"zone": "a"}), "missing field"),
        ("/graph/partitions", serde_json::json!(3), "not a power of two"),
        ("/graph/colour", serde_json::json!("red"), "unknown field"),
        ("/partitions/numbers/0", serde_json::json!(5), "the graph has no partition"),
        ("/partitions/changes", serde_json::json!([]), "columns of"),
        ("/partitions/nodes/0/0", serde_json::json!(2), "there is no node 2"),
        ("/partitions/states/0", serde_json::json!([]), "other states than replicas"),
    ];
    for (pointer, value, expected) in edits {
        let mut bad = good.clone();
        match bad.pointer_mut(pointer) {
            Some(place) => *place = value,
            None => {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                bad.pointer_mut(parent).unwrap()[name] = value;
            }
        }
        let refused = decode("g", map.epoch(), &packed(&bad)).unwrap_err().to_string();
        assert!(refused.contains(expected), "{pointer}: {refused}");
    }
    assert_eq!(decode("g", map.epoch(), &packed(&good)).unwrap(), map);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_map_comes_back(nodes in 1usize..9, replicas in prop::collection::vec((0u16..32, 1usize..9), 0..80)) {
        let registered = (1..=nodes).map(register);
        let placed = replicas.iter().filter(|(_, node)| *node <= nodes).map(|(p, node)| add(*p, *node));
        let map = made(32, &registered.chain(placed).collect::<Vec<_>>());
        prop_assert_eq!(decode("g", map.epoch(), &encode(&map).unwrap()).unwrap(), map);
    }
}

/// A map of 300 nodes on AWS whose partitions have three replicas each in drawn places, and whose items changed last at
/// drawn epochs: what compresses least.
#[test]
fn a_large_map_is_a_fraction_of_an_item() {
    let (partitions, nodes) = (4096u16, 300usize);
    let random = SeededRandom::new(7);
    let ids: Vec<NodeId> =
        (0..nodes).map(|_| NodeId::new(&format!("i-0{:016x}", random.next_u64())).unwrap()).collect();
    let registrations = ids.iter().enumerate().map(|(n, id)| {
        Change::Register(Registration {
            id: id.clone(),
            zone: format!("us-east-1{}", ["a", "b", "c"][n % 3]),
            endpoint: format!("10.42.{}.{}:7600", n / 250, random.below(250)),
            capacity_bytes: 937_000_000_000,
            roles: [Role::Storage, Role::Sequencer].into(),
        })
    });
    let mut changes: Vec<Change> = registrations.collect();
    let mut held = Vec::new();
    for partition in (0..partitions).map(PartitionId) {
        for zone in 0..3 {
            let node = ids[random.below(nodes as u64 / 3) as usize * 3 + zone].clone();
            changes.push(Change::AddReplica { partition, node: node.clone() });
            held.push((partition, node));
        }
    }
    let store = MemoryMap::default();
    store.create_graph(&Graph { name: "g".into(), ..graph(partitions) }).unwrap();
    change_all(&store, "g", &changes).unwrap();
    let placed = (*store.load("g", None).unwrap()).clone();
    // Replicas change their states in a drawn order, each at an epoch of its own.
    for _ in 0..3 * held.len() {
        let (partition, node) = held[random.below(held.len() as u64) as usize].clone();
        let map = store.load("g", None).unwrap();
        let state = map.replicas(partition).iter().find(|replica| replica.node == node).unwrap().state;
        drop(map);
        let state = match state {
            ReplicaState::Restoring => ReplicaState::CatchingUp,
            _ => ReplicaState::Serving,
        };
        store.change("g", None, &[Change::SetReplica { partition, node, state }]).unwrap();
    }
    let map = store.load("g", None).unwrap();
    let bytes = encode(&map).unwrap();
    assert_eq!(decode("g", map.epoch(), &bytes).unwrap(), *map);
    assert!(bytes.len() < 64 << 10, "{} bytes", bytes.len());
    println!("{} bytes when new, {} later", encode(&placed).unwrap().len(), bytes.len());
}
