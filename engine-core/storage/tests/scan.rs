//! Scans that find nothing: one call visits a bounded number of records, and all calls together visit all of them.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_apl::{Apl, At, EdgeScan, Error, PropertyPredicate, ScanCursor, Test, VertexScan};
use tidegraph_platform::ManualClock;
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Edge, Epoch, Gui, GuiHasher, Mutation, PartitionCount, PropertyWrite, Sid, Token, Value,
    Version,
};

const LABEL: Token = Token(1);
const KEY: Token = Token(2);
const VERTICES: usize = 200_000;
/// A generous limit of the records that one call may visit.
const MOST_VISITED: usize = 100_000;
const AT: At = At { version: Version(1), epoch: Epoch(0) };

fn gui(n: usize) -> Gui {
    GuiHasher::default().gui(&format!("v{n}"))
}

fn store(partitions: u16, mutations: &[Mutation]) -> Store {
    let mut config = StoreConfig::new(Arc::new(ManualClock::default()));
    config.partitions = PartitionCount::new(partitions).unwrap();
    let store = Store::new(config);
    store.apply_load_block(Version(1), mutations);
    store.publish(Version(1));
    store
}

fn vertex(n: usize) -> Mutation {
    let value = Value::Long(n as i64);
    let properties = vec![PropertyWrite { key: KEY, cardinality: Cardinality::Single, value }];
    Mutation::CreateVertex { gui: gui(n), id: format!("v{n}").into(), labels: vec![LABEL], properties }
}

/// Returns the number of calls and all their results.
fn calls<T>(
    mut scan: impl FnMut(ScanCursor, &mut Vec<T>) -> Result<Option<ScanCursor>, Error>,
) -> (usize, Vec<T>) {
    let (mut calls, mut found, mut cursor) = (0, Vec::new(), Some(ScanCursor::default()));
    while let Some(from) = cursor {
        cursor = scan(from, &mut found).unwrap();
        calls += 1;
    }
    (calls, found)
}

fn equals(n: usize) -> Vec<PropertyPredicate> {
    vec![PropertyPredicate::any(KEY, Test::Equals(Value::Long(n as i64)))]
}

#[test]
fn a_scan_of_vertices_comes_back_though_nothing_passes() {
    let vertices: Vec<Mutation> = (0..VERTICES).map(vertex).collect();
    for partitions in [1, 64] {
        let store = store(partitions, &vertices);
        for labels in [vec![], vec![vec![LABEL]]] {
            let mut scan = VertexScan { labels, predicates: equals(VERTICES), max_rows: 1000 };
            let (times, found) = calls(|from, out| store.scan_vertices(AT, &scan, from, out));
            assert_eq!(found, []);
            assert!(times > VERTICES / MOST_VISITED, "{times} calls in {partitions} partitions");
            scan.predicates = equals(VERTICES - 1);
            let (_, found) = calls(|from, out| store.scan_vertices(AT, &scan, from, out));
            assert_eq!(found, [gui(VERTICES - 1)]);
            scan.predicates.clear();
            let (_, mut found) = calls(|from, out| store.scan_vertices(AT, &scan, from, out));
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), VERTICES);
        }
    }
}

#[test]
fn a_scan_of_edges_comes_back_though_nothing_passes() {
    // The edges of one vertex, or of all.
    for sources in [1, VERTICES] {
        let mut mutations: Vec<Mutation> = (0..VERTICES).map(vertex).collect();
        mutations.extend((0..VERTICES).map(|n| {
            let edge = Edge { sid: Sid(n as u64), source: gui(n % sources), target: gui(n), label: LABEL };
            let properties = vec![(KEY, Value::Long(n as i64))];
            Mutation::CreateEdge { edge, id: None, properties }
        }));
        let store = store(8, &mutations);
        let mut scan = EdgeScan { labels: None, predicates: equals(VERTICES), max_rows: 1000 };
        let (times, found) = calls(|from, out| store.scan_edge_rows(AT, &scan, from, out));
        assert_eq!(found, []);
        assert!(times > VERTICES / MOST_VISITED, "{times} calls");
        scan.labels = Some(vec![KEY]);
        assert_eq!(calls(|from, out| store.scan_edge_rows(AT, &scan, from, out)).1, []);
        scan = EdgeScan { labels: Some(vec![LABEL]), predicates: vec![], max_rows: 1000 };
        let (_, mut found) = calls(|from, out| store.scan_edge_rows(AT, &scan, from, out));
        found.sort_unstable_by_key(|edge| edge.sid);
        found.dedup();
        assert_eq!(found.len(), VERTICES);
    }
}
