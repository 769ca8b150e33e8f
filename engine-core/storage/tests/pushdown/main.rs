//! Requests that storage answers in an optimised way give the same answers as the simplest requests.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "searches")]
mod bottom_up;

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegraph_apl::testing::FallbacksOnly;
use tidegraph_apl::{
    Apl, At, Cursor, Expand, Expansion, PropertyPredicate, Reservoir, Sample, ScanCursor, Test, TopEdges,
    VertexScan,
};
use tidegraph_platform::ManualClock;
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, Gui, GuiHasher, IndexDefinition, Mutation, PartitionCount,
    PropertyWrite, Sid, Token, Value, Version,
};

const LABELS: [Token; 3] = [Token(1), Token(2), Token(3)];
const KEYS: [Token; 2] = [Token(10), Token(11)];

fn at(version: u64) -> At {
    At { version: Version(version), epoch: Epoch(0) }
}

fn gui(n: usize) -> Gui {
    GuiHasher::default().gui(&format!("v{n}"))
}

fn store(partitions: u16) -> Store {
    let mut config = StoreConfig::new(Arc::new(ManualClock::default()));
    config.partitions = PartitionCount::new(partitions).unwrap();
    Store::new(config)
}

fn value(random: &mut StdRng) -> Value {
    match random.random_range(0..6) {
        0 => Value::string(format!("text {}", random.random_range(0..5))),
        1 => Value::Double(f64::from(random.random_range(0..20)) / 2.0),
        _ => Value::Long(random.random_range(0..40)),
    }
}

fn write(random: &mut StdRng) -> PropertyWrite {
    let cardinality = if random.random_bool(0.8) { Cardinality::Single } else { Cardinality::Set };
    PropertyWrite { key: *KEYS.choose(random).unwrap(), cardinality, value: value(random) }
}

fn change(random: &mut StdRng, vertices: usize) -> Mutation {
    let n = random.random_range(0..vertices);
    let gui = gui(n);
    match random.random_range(0..7) {
        0 => Mutation::CreateVertex {
            gui,
            id: format!("v{n}").into(),
            labels: labels(random),
            properties: vec![],
        },
        1 => Mutation::DeleteVertex { gui, edges_left: true },
        2 => Mutation::AddLabels { gui, labels: labels(random) },
        3 => Mutation::RemoveLabels { gui, labels: labels(random) },
        4 => Mutation::RemoveVertexProperty { gui, key: *KEYS.choose(random).unwrap(), value: None },
        _ => Mutation::SetVertexProperty { gui, write: write(random) },
    }
}

fn labels(random: &mut StdRng) -> Vec<Token> {
    LABELS.into_iter().filter(|_| random.random_bool(0.4)).collect()
}

fn index(name: &str, label: Token, key: Token) -> Mutation {
    Mutation::DefineIndex {
        index: IndexDefinition { name: name.into(), label, key, unique: false, unchecked: false },
    }
}

fn test(random: &mut StdRng) -> Test {
    match random.random_range(0..5) {
        0 | 1 => Test::Equals(value(random)),
        2 => Test::Within((0..3).map(|_| value(random)).collect()),
        3 => Test::StartsWith("text".into()),
        _ => {
            let low = random.random_range(0..40);
            Test::Range {
                low: Some((Value::Long(low), random.random_bool(0.5))),
                high: random.random_bool(0.7).then(|| (Value::Long(low + 4), random.random_bool(0.5))),
            }
        }
    }
}

fn scan(random: &mut StdRng) -> VertexScan {
    let groups: &[&[&[Token]]] = &[
        &[],
        &[],
        &[&LABELS[..1]],
        &[&LABELS[..2]],
        &[&LABELS],
        &[&LABELS[..1], &LABELS[1..2]],
        &[&LABELS[1..], &LABELS[..2]],
    ];
    let predicates = (0..random.random_range(1..3))
        .map(|_| PropertyPredicate {
            key: *KEYS.choose(random).unwrap(),
            test: test(random),
            sole: random.random_bool(0.5),
        })
        .collect();
    let labels = groups.choose(random).unwrap().iter().map(|group| group.to_vec()).collect();
    VertexScan { labels, predicates, max_rows: *[1, 3, 1000].choose(random).unwrap() }
}

/// Returns everything that a scan finds; `between` runs between two calls.
fn found(store: &Store, version: u64, scan: &VertexScan, mut between: impl FnMut()) -> Vec<Gui> {
    let (mut found, mut cursor) = (Vec::new(), Some(ScanCursor::default()));
    while let Some(from) = cursor {
        cursor = store.scan_vertices(at(version), scan, from, &mut found).unwrap();
        between();
    }
    found.sort_unstable();
    found
}

fn counted(store: &Store, version: u64, scan: &VertexScan) -> u64 {
    let (mut count, mut cursor) = (0, Some(ScanCursor::default()));
    while let Some(from) = cursor {
        cursor = store.count_vertices(at(version), scan, from, &mut count).unwrap();
    }
    count
}

fn sampled(store: &Store, version: u64, scan: &VertexScan, sample: Sample) -> Vec<Gui> {
    let (mut taken, mut cursor) = (Reservoir::new(sample), Some(ScanCursor::default()));
    while let Some(from) = cursor {
        cursor = store.sample_vertices(at(version), scan, from, &mut taken).unwrap();
    }
    taken.items
}

#[test]
fn indexes_counts_and_samples_agree_with_rows() {
    for seed in 0..6 {
        let random = &mut StdRng::seed_from_u64(seed);
        // The same changes with and without indexes (STO-3); the pins keep every version.
        let vertices = 600;
        let (rows, indexed) = (store(4), store(4));
        let mut pins = Vec::new();
        let mut version = 0;
        let mut apply = |version: &mut u64, mutations: &[Mutation], extra: &[Mutation]| {
            *version += 1;
            rows.apply(Version(*version), mutations);
            indexed.apply(Version(*version), &[mutations, extra].concat());
            [&rows, &indexed].into_iter().for_each(|store| store.publish(Version(*version)));
            pins.push([&rows, &indexed].map(Store::pin_published));
        };
        let all: Vec<Mutation> = (0..vertices)
            .map(|n| Mutation::CreateVertex {
                gui: gui(n),
                id: format!("v{n}").into(),
                labels: labels(random),
                properties: (0..2).map(|_| write(random)).collect(),
            })
            .collect();
        apply(&mut version, &all, &[index("a", LABELS[0], KEYS[0]), index("b", LABELS[1], KEYS[0])]);
        apply(&mut version, &[], &[index("c", LABELS[2], KEYS[1])]);
        indexed.fill_indexes(&|| false).unwrap();
        for round in 0..60 {
            let changes: Vec<Mutation> = (0..20).map(|_| change(random, vertices)).collect();
            apply(&mut version, &changes, &[]);
            for _ in 0..10 {
                let (scan, seen) = (scan(random), random.random_range(3..=version));
                let expected = found(&rows, seen, &scan, || ());
                let place = format!("{scan:?} at {seen}, seed {seed}, round {round}");
                assert_eq!(found(&indexed, seen, &scan, || ()), expected, "{place}");
                assert_eq!(counted(&indexed, seen, &scan), expected.len() as u64, "{place}");
                assert_eq!(counted(&rows, seen, &scan), expected.len() as u64, "{place}");
                let mut taken = sampled(&indexed, seen, &scan, Sample { count: 5, seed });
                taken.sort_unstable();
                taken.dedup();
                assert_eq!(taken.len(), expected.len().min(5), "{place}");
                assert!(taken.iter().all(|gui| expected.binary_search(gui).is_ok()), "{place}");
            }
        }
        // An index is dropped, or created, in the middle of a scan.
        for name in ["a", "c"] {
            let scan = VertexScan {
                labels: vec![],
                predicates: vec![PropertyPredicate::any(KEYS[usize::from(name == "c")], test(random))],
                max_rows: 1,
            };
            let expected = found(&rows, version, &scan, || ());
            let mut once = Some(name);
            let seen = version;
            let divided = found(&indexed, seen, &scan, || {
                if let Some(name) = once.take() {
                    apply(
                        &mut version,
                        &[],
                        &[Mutation::DropIndex { name: name.into() }, index("d", LABELS[2], KEYS[0])],
                    );
                    indexed.fill_indexes(&|| false).unwrap();
                }
            });
            assert_eq!(divided, expected, "{scan:?}, seed {seed}");
        }
    }
}

/// Creates a hub with loops, edges in both directions and weights of all kinds, and a few small vertices.
fn hub(edges: u64) -> (Store, BTreeMap<u64, Edge>) {
    let store = store(2);
    let random = &mut StdRng::seed_from_u64(11);
    let mut mutations: Vec<Mutation> = (0..50)
        .map(|n| Mutation::CreateVertex {
            gui: gui(n),
            id: format!("v{n}").into(),
            labels: vec![],
            properties: vec![],
        })
        .collect();
    let mut all = BTreeMap::new();
    for sid in 1..=edges {
        let (mut source, mut target) = (gui(0), gui(random.random_range(0..50)));
        if sid % 3 == 0 {
            std::mem::swap(&mut source, &mut target);
        }
        let edge = Edge { sid: Sid(sid), source, target, label: LABELS[(sid % 2) as usize] };
        let weight = match random.random_range(0..4) {
            0 => vec![],
            1 => vec![(KEYS[0], Value::string("heavy"))],
            _ => vec![(KEYS[0], Value::Double(random.random_range(0.0..1.0)))],
        };
        all.insert(sid, edge);
        mutations.push(Mutation::CreateEdge { edge, id: None, properties: weight });
    }
    store.apply(Version(1), &mutations);
    store.publish(Version(1));
    let gone: Vec<Mutation> =
        (1..edges / 10).map(|n| Mutation::DeleteEdge { edge: all[&(n * 7)], id: None }).collect();
    let pin = store.pin_published();
    store.apply(Version(2), &gone);
    store.publish(Version(2));
    drop(pin);
    (store, all)
}

fn requests() -> Vec<Expand> {
    let mut requests = Vec::new();
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        for labels in [None, Some(vec![LABELS[1]])] {
            for loops_once in [false, true] {
                requests.push(Expand {
                    direction,
                    labels: labels.clone(),
                    max_rows: 500,
                    loops_once,
                    neighbours_only: false,
                });
            }
        }
    }
    requests
}

#[test]
fn samples_of_edges_are_edges() {
    let (store, _) = hub(6_000);
    let frontier: Vec<Gui> = (0..50).map(gui).chain([Gui(5)]).collect();
    for version in [1, 2] {
        for request in requests() {
            let mut all = Expansion::default();
            let whole = Expand { max_rows: u32::MAX, ..request.clone() };
            assert_eq!(
                store.expand(at(version), &whole, &frontier, Cursor::default(), &mut all).unwrap(),
                None
            );
            let rows: Vec<_> = (0..all.len()).map(|index| all.at(index)).collect();
            for count in [0, 1, 20, 100_000] {
                let sample = Sample { count, seed: 3 };
                let mut taken = Expansion::default();
                store.sample_edges(at(version), &request, sample, &frontier, &mut taken).unwrap();
                for row in 0..frontier.len() as u32 {
                    let of_row = |rows: &Expansion| rows.row.iter().filter(|r| **r == row).count();
                    assert_eq!(of_row(&taken), of_row(&all).min(count as usize), "{request:?} of {row}");
                }
                let mut sids: Vec<_> =
                    (0..taken.len()).map(|i| (taken.row[i], taken.sid[i], taken.outgoing[i])).collect();
                sids.sort_unstable();
                sids.dedup();
                assert_eq!(sids.len(), taken.len(), "each once");
                assert!((0..taken.len()).all(|index| rows.contains(&taken.at(index))), "{request:?}");
                let mut plain = Expansion::default();
                FallbacksOnly(&store)
                    .sample_edges(at(version), &request, sample, &frontier, &mut plain)
                    .unwrap();
                assert_eq!(plain.len(), taken.len());
            }
        }
    }
}

#[test]
fn edges_that_come_first_are_those_of_the_plain_answer() {
    let (store, _) = hub(6_000);
    let frontier: Vec<Gui> = (0..50).map(gui).collect();
    for request in requests() {
        for (descending, count, each) in
            [(true, 3, false), (false, 10, true), (true, 0, true), (false, 4, false)]
        {
            let top = TopEdges { key: KEYS[0], descending, count, each };
            let mut cursor = Some(Cursor::default());
            while let Some(from) = cursor {
                let (mut best, mut plain) = (Expansion::default(), Expansion::default());
                cursor = store.top_edges(at(2), &request, &top, &frontier, from, &mut best).unwrap();
                let next = FallbacksOnly(&store)
                    .top_edges(at(2), &request, &top, &frontier, from, &mut plain)
                    .unwrap();
                assert_eq!((cursor, &best), (next, &plain), "{request:?} {top:?}");
            }
        }
    }
}
