//! Loads: what becomes of vertices and edges that are there already, come twice, or lack an end.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{Apl, At, EdgeRead, EdgeRows, Projection, VertexRead, VertexRows};
use tidegraph_platform::ManualClock;
use tidegraph_storage::{LoadOutcome, Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Edge, Epoch, Gui, GuiHasher, Mutation, PropertyWrite, Sid, Str, Token, Value, Version,
};

fn gui(id: &str) -> Gui {
    GuiHasher::default().gui(id)
}

fn vertex(id: &str) -> Mutation {
    Mutation::CreateVertex { gui: gui(id), id: id.into(), labels: vec![Token(1)], properties: vec![] }
}

fn edge(sid: u64, id: Option<&str>, source: &str, target: &str) -> Mutation {
    Mutation::CreateEdge {
        edge: Edge { sid: Sid(sid), source: gui(source), target: gui(target), label: Token(2) },
        id: id.map(Str::from),
        properties: vec![(Token(3), Value::Long(sid as i64))],
    }
}

#[test]
fn outcome_tells_what_was_made_merged_and_refused() {
    let store = Store::new(StoreConfig::new(Arc::new(ManualClock::default())));
    store.apply(Version(1), &[vertex("a"), vertex("b"), edge(1, Some("old"), "a", "b")]);
    store.publish(Version(1));
    let outcome = store.apply_load_block(
        Version(2),
        &[
            vertex("b"),
            vertex("c"),
            vertex("c"),
            edge(2, None, "a", "c"),
            edge(3, Some("old"), "a", "b"),
            edge(4, Some("old"), "b", "a"),
            edge(5, Some("twice"), "a", "nobody"),
            edge(6, Some("twice"), "c", "b"),
            edge(7, Some("twice"), "c", "b"),
            edge(8, None, "nobody", "a"),
        ],
    );
    let expected = LoadOutcome {
        vertices_created: 1,
        vertices_merged: 2,
        edges_created: 2,
        edges_merged: 2,
        edges_refused: 3,
    };
    assert_eq!(outcome, expected);
    // Nothing of it shows before it is published, and all of it after.
    let at = |version| At { version: Version(version), epoch: Epoch(0) };
    let ids = ["old".into(), "twice".into()];
    let (mut before, mut after) = (Vec::new(), Vec::new());
    store.resolve_edges(at(1), &ids, &mut before).unwrap();
    assert_eq!((before[0].map(|edge| edge.sid), before[1]), (Some(Sid(1)), None));
    assert!(store.resolve_edges(at(2), &ids, &mut after).is_err());
    store.publish(Version(2));
    store.resolve_edges(at(2), &ids, &mut after).unwrap();
    let found: Vec<Edge> = after.into_iter().flatten().collect();
    assert_eq!(found.iter().map(|edge| edge.sid).collect::<Vec<_>>(), [Sid(1), Sid(6)]);
    let mut rows = EdgeRows::default();
    let read = EdgeRead { ids: false, properties: Projection::All };
    for (version, values) in [(1, vec![1]), (2, vec![3, 7])] {
        rows.clear();
        store.edges(at(version), &read, &found, &mut rows).unwrap();
        let shown: Vec<i64> = rows.cells.iter().filter_map(|cell| cell.value.as_i64()).collect();
        assert_eq!(shown, values, "at version {version}");
    }
    let statistics = store.statistics();
    assert_eq!((statistics.vertices, statistics.edges), (3, 3));
    assert_eq!(statistics.edges_by_label, [(Token(2), 3)]);
}

const REPEATED: usize = 500;
const REPEATS: u64 = 200;

/// A row of each vertex, with a text that depends on the round.
fn rows(round: u64) -> Vec<Mutation> {
    let write = |key, value| PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value };
    let row = |n: usize| Mutation::CreateVertex {
        gui: gui(&format!("v{n}")),
        id: format!("v{n}").into(),
        labels: vec![Token(1)],
        properties: vec![write(3, Value::Long(n as i64)), write(4, Value::string(format!("{round:0>2000}")))],
    };
    (0..REPEATED).map(row).collect()
}

/// What older versions take after each vertex was loaded so many times, and after nobody needs them. `text` tells the
/// round whose text a repetition has.
fn versions_kept(text: impl Fn(u64) -> u64) -> (usize, usize) {
    let clock = Arc::new(ManualClock::default());
    let store = Store::new(StoreConfig::new(clock.clone()));
    store.apply(Version(1), &rows(0));
    store.publish(Version(1));
    clock.advance(Duration::from_secs(600));
    store.reclaim(usize::MAX);
    let pin = store.pin_published();
    for round in 1..=REPEATS {
        store.apply_load_block(Version(2), &rows(text(round)));
    }
    store.publish(Version(2));
    let kept = store.memory().versions;
    let read = VertexRead { properties: Projection::Keys(vec![Token(4)]), ..VertexRead::default() };
    let frontier: Vec<Gui> = (0..REPEATED).map(|n| gui(&format!("v{n}"))).collect();
    for (version, round) in [(1, 0), (2, text(REPEATS))] {
        let mut out = VertexRows::default();
        store
            .vertices(At { version: Version(version), epoch: Epoch(0) }, &read, &frontier, &mut out)
            .unwrap();
        assert_eq!(out.cells.len(), REPEATED);
        let expected = Value::string(format!("{round:0>2000}"));
        assert!(out.cells.iter().all(|cell| cell.value == expected), "at version {version}");
    }
    drop(pin);
    clock.advance(Duration::from_secs(600));
    store.reclaim(usize::MAX);
    (kept, store.memory().versions)
}

/// What partitions keep ready for notes of what is to be forgotten.
const NOTES: usize = 100_000;

#[test]
fn rows_that_change_nothing_keep_no_older_version() {
    let (kept, after) = versions_kept(|_| 0);
    assert!(kept < NOTES, "{kept} bytes");
    assert!(after < NOTES, "{after} bytes");
}

#[test]
fn a_value_that_changes_many_times_in_a_load_keeps_one_older_version() {
    let (kept, after) = versions_kept(|round| round);
    assert!(kept > REPEATED * 2_000, "{kept} bytes: the old texts");
    // A history, room for a few steps, and the text that was replaced.
    assert!(kept < REPEATED * (64 + 4 * 64 + 2_300) + NOTES, "{kept} bytes");
    assert!(after < NOTES, "{after} bytes");
}
