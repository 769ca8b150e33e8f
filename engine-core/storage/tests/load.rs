//! Loads with vertices and edges that exist already, repeat, or lack an end.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use rand::{Rng, SeedableRng, rngs::StdRng};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::{
    Apl, At, Cursor, EdgeRead, EdgeRows, Expand, Expansion, Projection, ScanCursor, VertexRead, VertexRows,
    VertexScan,
};
use tidegraph_platform::{ManualClock, Objects, RealDisk};
use tidegraph_storage::checkpoint::restore_newest;
use tidegraph_storage::{CheckpointMeta, LoadOutcome, MemoryBudget, Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, Gui, GuiHasher, IndexDefinition, Mutation, PartitionCount,
    PropertyWrite, Sid, Str, Token, Value, Version,
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
    // Nothing of the load is visible before it is published, and everything is visible afterwards.
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

/// Makes a row for each vertex, with a text that depends on the round.
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

/// Returns the bytes of older versions after each vertex was loaded several times, and the
/// bytes left once no reader needs them. `text` returns the round whose text a repetition has.
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

#[test]
fn a_load_leaves_no_versions_of_rows_and_older_versions_without_it() {
    let store = Store::new(StoreConfig::new(Arc::new(ManualClock::default())));
    store.apply(Version(1), &[vertex("a"), vertex("b"), edge(1, Some("old"), "a", "b")]);
    store.publish(Version(1));
    let pin = store.pin_published();
    let before = store.memory().versions;
    let mut load: Vec<Mutation> = (0..20_000).map(|n| vertex(&format!("v{n}"))).collect();
    load.extend((0..20_000).map(|n| edge(n + 2, Some(&format!("e{n}")), &format!("v{n}"), "a")));
    store.apply_load_block(Version(2), &load);
    store.publish(Version(2));
    // Only rows that share one of three pages with older rows are kept. All rows would take two megabytes.
    let kept = store.memory().versions - before;
    assert!(kept < 4 * 1024 * 64, "{kept} bytes of older versions");
    let scan = VertexScan { labels: vec![vec![Token(1)]], predicates: vec![], max_rows: u32::MAX };
    let names: [Str; 2] = ["v19999".into(), "b".into()];
    let sees = |store: &Store, version: Version| {
        let at = At { version, epoch: Epoch(0) };
        let (mut found, mut vertices, mut edges) = (Vec::new(), Vec::new(), Vec::new());
        let cursor = store.scan_vertices(at, &scan, ScanCursor::default(), &mut found).unwrap();
        assert_eq!(cursor, None);
        store.resolve_vertices(at, &names, &mut vertices).unwrap();
        store.resolve_edges(at, &["e19999".into(), "old".into()], &mut edges).unwrap();
        (found.len(), vertices.iter().map(Option::is_some).collect::<Vec<_>>(), edges[0].is_some())
    };
    let (old, new) = ((2, vec![false, true], false), (20_002, vec![true, true], true));
    assert_eq!(sees(&store, pin.version()), old);
    assert_eq!(sees(&store, Version(2)), new);
    // Checkpoints of both versions contain the same.
    for (version, expected) in [(pin.version(), old), (Version(2), new)] {
        let objects = Objects::memory().unwrap();
        store.checkpoint(version, &objects, "c", CheckpointMeta::default()).unwrap();
        let config = StoreConfig::new(Arc::new(ManualClock::default()));
        let restored = restore_newest(&config, &objects, "c").unwrap().unwrap().store;
        assert_eq!(sees(&restored, version), expected);
    }
}

/// Bytes that partitions reserve for notes.
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
    // Room for a history, a few steps, and the replaced text.
    assert!(kept < REPEATED * (64 + 4 * 64 + 2_300) + NOTES, "{kept} bytes");
    assert!(after < NOTES, "{after} bytes");
}

/// Vertices of a random graph; the first of them have most of the edges.
const VERTICES: u64 = 600;

/// Returns blocks of mutations of a random graph: vertices, edges with and without ids
/// and properties, changes in between, and deletions, which depend on earlier blocks.
fn random_blocks(random: &mut StdRng) -> Vec<Vec<Mutation>> {
    let id = |n: u64| format!("v{n}");
    let vertices = (0..VERTICES).map(|n| Mutation::CreateVertex {
        gui: gui(&id(n)),
        id: id(n).into(),
        labels: vec![Token(1), Token(1 + n as u32 % 3)],
        properties: (0..n as u32 % 4)
            .map(|key| PropertyWrite {
                key: Token(key),
                cardinality: if key == 3 { Cardinality::Set } else { Cardinality::Single },
                value: if n % 5 == 0 {
                    Value::string("a text of some length, not inline")
                } else {
                    Value::Long(n as i64)
                },
            })
            .collect(),
    });
    let mut blocks = vec![vertices.collect::<Vec<_>>()];
    let mut edges: Vec<(Edge, Option<Str>)> = Vec::new();
    for _ in 0..12 {
        let mut block = Vec::new();
        for _ in 0..1500 {
            let near = |random: &mut StdRng| {
                if random.random_bool(0.2) { 0 } else { random.random_range(0..VERTICES + 3) }
            };
            let (source, target) = (near(random), near(random));
            let sid = edges.len() as u64 + 1;
            let label = Token(random.random_range(2..5));
            let edge = Edge { sid: Sid(sid), source: gui(&id(source)), target: gui(&id(target)), label };
            let edge_id = random.random_bool(0.3).then(|| Str::from(format!("e{sid}")));
            let properties =
                if random.random_bool(0.3) { vec![(Token(9), Value::Long(sid as i64))] } else { vec![] };
            edges.push((edge, edge_id.clone()));
            block.push(Mutation::CreateEdge { edge, id: edge_id, properties });
        }
        for _ in 0..random.random_range(0..4) {
            let (edge, id) = edges[random.random_range(0..edges.len())].clone();
            block.push(match random.random_range(0..4) {
                0 => Mutation::DeleteEdge { edge, id },
                1 => Mutation::SetEdgeProperty { edge, key: Token(8), value: Value::Bool(true) },
                2 => Mutation::RemoveEdgeProperty { edge, key: Token(9) },
                _ => Mutation::DeleteVertex { gui: edge.target, edges_left: true },
            });
        }
        blocks.push(block);
    }
    blocks
}

/// Returns everything that a store holds of the random graph, in a canonical order.
fn shown(store: &Store, version: u64) -> String {
    let at = At { version: Version(version), epoch: Epoch(0) };
    let frontier: Vec<Gui> = (0..VERTICES).map(|n| gui(&format!("v{n}"))).collect();
    let mut text = String::new();
    let mut rows = VertexRows::default();
    let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
    store.vertices(at, &read, &frontier, &mut rows).unwrap();
    for (row, one) in frontier.iter().enumerate() {
        if !rows.present[row] {
            continue;
        }
        writeln!(text, "{} {:?} {:?}", rows.ids[row], rows.labels_of(row), rows.cells_of(row)).unwrap();
        let mut out = Expansion::default();
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            cursor = store
                .expand(at, &Expand::all(Direction::Both), std::slice::from_ref(one), from, &mut out)
                .unwrap();
        }
        let owner = [*one];
        let mut edges: Vec<(Edge, bool)> =
            (0..out.len()).map(|row| (out.edge(row, &owner), out.outgoing[row])).collect();
        edges.sort_unstable_by_key(|(edge, outgoing)| (edge.sid, *outgoing));
        let handles: Vec<Edge> = edges.iter().map(|(edge, _)| *edge).collect();
        let mut cells = EdgeRows::default();
        store.edges(at, &EdgeRead { ids: true, properties: Projection::All }, &handles, &mut cells).unwrap();
        for (row, edge) in edges.iter().enumerate() {
            writeln!(text, "  {edge:?} {:?} {:?}", cells.ids[row], cells.cells_of(row)).unwrap();
        }
    }
    text
}

#[test]
fn a_load_makes_what_its_mutations_make_one_by_one() {
    for seed in 0..3 {
        let random = &mut StdRng::seed_from_u64(seed);
        let blocks = random_blocks(random);
        let stores: [Store; 2] =
            std::array::from_fn(|_| Store::new(StoreConfig::new(Arc::new(ManualClock::default()))));
        // Some of the graph exists before, and transactions continue after it.
        let before = random.random_range(0..4);
        for (number, block) in blocks.iter().enumerate().take(before) {
            for store in &stores {
                store.apply(Version(number as u64 + 1), block);
                store.publish(Version(number as u64 + 1));
            }
        }
        let version = Version(20);
        let mut load = stores[0].begin_load(version);
        let mut rest = &blocks[before..];
        while let Some((block, more)) = rest.split_first() {
            load.apply(block);
            stores[1].apply(version, block);
            rest = more;
            if rest.len() == 2 {
                break;
            }
        }
        load.finish();
        assert_eq!(shown(&stores[0], before as u64), shown(&stores[1], before as u64), "seed {seed} before");
        for store in &stores {
            store.publish(version);
        }
        for (number, block) in (21..).zip(rest) {
            for store in &stores {
                store.apply(Version(number), block);
                store.publish(Version(number));
            }
        }
        for version in [before as u64, 20, 22] {
            let [loaded, applied] = [0, 1].map(|store| shown(&stores[store], version));
            assert!(version < 20 || loaded.len() > 100_000, "{} bytes", loaded.len());
            let differs = loaded.lines().zip(applied.lines()).find(|(a, b)| a != b);
            assert!(
                differs.is_none() && loaded.len() == applied.len(),
                "seed {seed} at {version}: {differs:?}"
            );
        }
        assert_eq!(stores[0].totals(), stores[1].totals(), "seed {seed}");
        assert_eq!(stores[0].statistics().edges_by_label, stores[1].statistics().edges_by_label);
    }
}

/// A load in many rounds: this budget lets it collect at most about twenty thousand edges.
#[test]
fn rounds_of_a_load_make_what_its_mutations_make_and_leave_no_holes() {
    const EDGES: u64 = 400_000;
    let id = |n: u64| format!("v{n}");
    let mut random = StdRng::seed_from_u64(7);
    // Few vertices have most of the edges.
    let mut skewed = || (random.random::<f64>().powi(4) * (VERTICES + 1) as f64) as u64;
    let mut edges: Vec<Mutation> = Vec::new();
    for sid in 1..=EDGES {
        // One in several thousand ends does not exist.
        let (source, target) = (skewed(), skewed());
        let label = Token(2 + (sid % 3) as u32);
        let edge = Edge { sid: Sid(sid), source: gui(&id(source)), target: gui(&id(target)), label };
        let edge_id = (sid % 5 == 0).then(|| Str::from(format!("e{sid}")));
        let properties = if sid % 7 == 0 { vec![(Token(9), Value::Long(sid as i64))] } else { vec![] };
        edges.push(Mutation::CreateEdge { edge, id: edge_id, properties });
    }
    let vertices: Vec<Mutation> = (0..VERTICES).map(|n| vertex(&id(n))).collect();
    let version = Version(1);
    for partitions in [1, 8] {
        let directory = tempfile::tempdir().unwrap();
        let config = StoreConfig {
            partitions: PartitionCount::new(partitions).unwrap(),
            ..StoreConfig::new(Arc::new(ManualClock::default()))
        };
        let memory = MemoryBudget {
            bytes: 32 << 20,
            disk: Arc::new(RealDisk),
            dir: directory.path().to_owned(),
            process_bytes: None,
        };
        let applied = Store::new(config.clone());
        let loaded = Store::new(StoreConfig { memory: Some(memory), ..config });
        let mut load = loaded.begin_load(version);
        load.apply(&vertices);
        edges.chunks(10_000).for_each(|some| load.apply(some));
        let outcome = load.finish();
        applied.apply(version, &vertices);
        applied.apply(version, &edges);
        [&loaded, &applied].into_iter().for_each(|store| store.publish(version));
        assert_eq!(outcome.edges_created + outcome.edges_refused, EDGES);
        assert!(outcome.edges_refused > 0 && outcome.edges_merged == 0, "{outcome:?}");
        assert_eq!(loaded.totals(), applied.totals());
        let [one, other] = [&loaded, &applied].map(|store| shown(store, 1));
        let differs = one.lines().zip(other.lines()).find(|(a, b)| a != b);
        assert!(differs.is_none() && one.len() == other.len(), "{partitions} partitions: {differs:?}");
        let memory = loaded.memory();
        let (all, free) = (memory.adjacency, memory.adjacency_free);
        // A quarter of the used bytes and 1 MiB may be free. Without closing holes it was half.
        let most = (all - free) / 4 + (1 << 20);
        assert!(partitions > 1 || free <= most, "{free} bytes of {all} are free");
    }
}

#[test]
fn a_load_that_keeps_values_replaces_only_those_of_constraints() {
    let write = |key, value| PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value };
    let made = |id: &str, properties| Mutation::CreateVertex {
        gui: gui(id),
        id: id.into(),
        labels: vec![Token(1)],
        properties,
    };
    let index =
        IndexDefinition { name: "c".into(), label: Token(9), key: Token(6), unique: true, unchecked: false };
    for keeps in [true, false] {
        let store = Store::new(StoreConfig::new(Arc::new(ManualClock::default())));
        let set = PropertyWrite { cardinality: Cardinality::Set, ..write(5, Value::Long(1)) };
        let old =
            vec![write(3, Value::Long(1)), write(4, Value::string("old")), set, write(6, Value::Long(1))];
        let define = Mutation::DefineIndex { index: index.clone() };
        store.apply(Version(1), &[define, made("a", old), vertex("b"), edge(1, Some("e"), "a", "b")]);
        store.publish(Version(1));
        let set = PropertyWrite { cardinality: Cardinality::Set, ..write(5, Value::Long(2)) };
        // Key 3 changes its type, and key 7 is new.
        let new = vec![
            write(3, Value::string("new")),
            write(4, Value::string("new")),
            set,
            write(6, Value::Long(2)),
            write(7, Value::Long(2)),
        ];
        let there = Edge { sid: Sid(1), source: gui("a"), target: gui("b"), label: Token(2) };
        let mut load = store.begin_load(Version(2));
        load.keep_values(keeps);
        load.apply(&[
            made("a", new),
            Mutation::SetEdgeProperty { edge: there, key: Token(3), value: Value::Long(2) },
            Mutation::SetEdgeProperty { edge: there, key: Token(4), value: Value::Long(2) },
        ]);
        load.finish();
        store.publish(Version(2));
        let at = At { version: Version(2), epoch: Epoch(0) };
        let (mut rows, mut edges) = (VertexRows::default(), EdgeRows::default());
        let read = VertexRead { properties: Projection::All, ..VertexRead::default() };
        store.vertices(at, &read, &[gui("a")], &mut rows).unwrap();
        let mut found: Vec<(u32, Value)> =
            rows.cells_of(0).iter().map(|cell| (cell.key.0, cell.value.clone())).collect();
        found.sort_by_key(|(key, _)| *key);
        let (number, text) = (Value::Long(1), |text| Value::string(text));
        let expected = [
            (3, if keeps { number } else { text("new") }),
            (4, text(if keeps { "old" } else { "new" })),
            (5, Value::Long(1)),
            (5, Value::Long(2)),
            (6, Value::Long(2)),
            (7, Value::Long(2)),
        ];
        assert_eq!(found, expected);
        store.edges(at, &EdgeRead { ids: false, properties: Projection::All }, &[there], &mut edges).unwrap();
        let mut found: Vec<_> = edges.cells.iter().map(|cell| (cell.key.0, cell.value.as_i64())).collect();
        found.sort_unstable();
        assert_eq!(found, [(3, Some(if keeps { 1 } else { 2 })), (4, Some(2))]);
    }
}
