//! The suite of the `Apl` trait. A store with one partition is the reference for all others.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_apl::At;
use tidegraph_apl::testing::{TestGraph, agree};
use tidegraph_platform::ManualClock;
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Epoch, GuiHasher, IndexDefinition, Mutation, PartitionCount, Version};

fn store(partitions: u16, hasher: GuiHasher, graph: &TestGraph, indexes: &[Mutation]) -> Store {
    let partitions = PartitionCount::new(partitions).unwrap();
    let clock = Arc::new(ManualClock::default());
    let store = Store::new(StoreConfig { partitions, hasher, ..StoreConfig::new(clock) });
    for (version, mutations) in (1..).map(Version).zip(&graph.transactions) {
        let indexes = if version == Version(1) { indexes } else { &[] };
        store.apply(version, &[mutations, indexes].concat());
        store.publish(version);
    }
    store
}

#[test]
fn stores_agree_however_many_partitions_and_indexes_they_have() {
    for (seed, bits) in [(1, 64), (2, 6)] {
        let hasher = GuiHasher::with_bits(bits);
        let graph = TestGraph::new(seed, hasher, 120, 700);
        let plain = store(1, hasher, &graph, &[]);
        let index = |label, key, name: &str| {
            let index = IndexDefinition { name: name.into(), label, key, unique: false, unchecked: false };
            Mutation::DefineIndex { index }
        };
        let [label, other, _] = TestGraph::LABELS;
        let indexes = [index(label, TestGraph::KEYS[0], "a"), index(other, TestGraph::KEYS[0], "b")];
        let indexed = store(4, hasher, &graph, &indexes);
        indexed.fill_indexes(&|| false).unwrap();
        for version in 1..=graph.transactions.len() as u64 {
            let at = At { version: Version(version), epoch: Epoch(0) };
            agree(&plain, &store(8, hasher, &graph, &[]), at, &graph);
            agree(&plain, &indexed, at, &graph);
        }
    }
}
