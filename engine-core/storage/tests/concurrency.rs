//! STO-1 and STO-2 beside a writer. Readers at pinned versions see money move round a ring while its sum never
//! changes, and edges move from vertex to vertex while their number never changes.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_apl::{Apl, At, Cursor, Expand, Expansion, Projection, VertexRead, VertexRows, VertexScan};
use tidegraph_platform::{ManualClock, Objects, RealClock};
use tidegraph_storage::checkpoint::restore_newest;
use tidegraph_storage::{CheckpointMeta, Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value, Version,
};

const RING: usize = 64;
const START: i64 = 100;
const KEY: Token = Token(1);
const LABEL: Token = Token(2);
const MOVING: Token = Token(3);
const TRANSFERS: u64 = 10_000;

fn at(version: Version) -> At {
    At { version, epoch: Epoch(0) }
}

fn set(gui: Gui, amount: i64) -> Mutation {
    let write = PropertyWrite { key: KEY, cardinality: Cardinality::Single, value: Value::Long(amount) };
    Mutation::SetVertexProperty { gui, write }
}

fn check(store: &Store, guis: &[Gui], version: Version) {
    let mut rows = VertexRows::default();
    let read = VertexRead { properties: Projection::Keys(vec![KEY]), ..VertexRead::default() };
    store.vertices(at(version), &read, guis, &mut rows).unwrap();
    assert!(rows.present.iter().all(|present| *present));
    let sum: i64 = rows.cells.iter().filter_map(|cell| cell.value.as_i64()).sum();
    assert_eq!(sum, START * RING as i64, "sum at {version}");

    // STO-2: every moving edge is seen exactly once from each end.
    for direction in [Direction::Out, Direction::In] {
        let labels = Some(vec![MOVING]);
        let request = Expand { labels, max_rows: 10, ..Expand::all(direction) };
        let (mut cursor, mut sids) = (Cursor::default(), Vec::new());
        loop {
            let mut out = Expansion::default();
            let next = store.expand(at(version), &request, guis, cursor, &mut out).unwrap();
            sids.extend(out.sid);
            match next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        assert_eq!(sids.len(), 2 * RING, "moving edges at {version}");
        let mut degrees = Vec::new();
        store.degrees(at(version), &request, guis, &mut degrees).unwrap();
        assert_eq!(degrees.iter().sum::<u64>(), 2 * RING as u64);
    }

    let (mut found, mut cursor) = (Vec::new(), Default::default());
    let scan = VertexScan { labels: vec![vec![LABEL]], predicates: vec![], max_rows: 9 };
    while let Some(next) = store.scan_vertices(at(version), &scan, cursor, &mut found).unwrap() {
        cursor = next;
        found.sort_unstable();
    }
    assert_eq!(found.len(), RING, "members at {version}");
}

fn ring(store: &Store) -> Vec<Gui> {
    let hasher = store.config().hasher;
    let ids: Vec<Str> = (0..RING).map(|i| Str::from(format!("account-{i}"))).collect();
    let guis: Vec<Gui> = ids.iter().map(|id| hasher.gui(id)).collect();
    let mut mutations: Vec<Mutation> = ids
        .into_iter()
        .zip(&guis)
        .map(|(id, &gui)| Mutation::CreateVertex { gui, id, labels: vec![LABEL], properties: vec![] })
        .collect();
    mutations.extend(guis.iter().map(|&gui| set(gui, START)));
    // All of these edges start at one vertex, which makes it a hub.
    for i in 0..2 * RING {
        let edge = Edge { sid: Sid(1 + i as u64), source: guis[0], target: guis[1], label: MOVING };
        mutations.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
    }
    store.apply(Version(1), &mutations);
    store.publish(Version(1));
    guis
}

/// Writes at least `TRANSFERS` versions, and more until `enough` or a limit, since `enough` never comes if a reader
/// has failed.
fn write(store: &Store, guis: &[Gui], clock: Option<&ManualClock>, enough: impl Fn() -> bool) {
    let mut amounts = vec![START; RING];
    let mut edges: Vec<Edge> = (0..2 * RING as u64)
        .map(|i| Edge { sid: Sid(1 + i), source: guis[0], target: guis[1], label: MOVING })
        .collect();
    let mut random = 7_u64;
    for version in 2_u64.. {
        if version > 50 * TRANSFERS || (version > TRANSFERS && enough()) {
            return;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (from, amount) = ((random >> 33) as usize % RING, (random >> 50) as i64 % 20);
        let to = (from + 1) % RING;
        amounts[from] -= amount;
        amounts[to] += amount;
        let index = (random >> 40) as usize % edges.len();
        let old = edges[index];
        // Mostly between the first few vertices, so that the hubs keep changing.
        let end =
            |bits: u64| guis[if bits.is_multiple_of(4) { bits as usize % RING } else { bits as usize % 3 }];
        let new = Edge {
            sid: Sid(1_000 + version),
            source: end(random >> 35),
            target: end(random >> 45),
            label: MOVING,
        };
        edges[index] = new;
        let mutations = [
            set(guis[from], amounts[from]),
            Mutation::DeleteEdge { edge: old, id: None },
            set(guis[to], amounts[to]),
            Mutation::CreateEdge { edge: new, id: None, properties: vec![] },
        ];
        store.apply(Version(version), &mutations);
        store.publish(Version(version));
        if let Some(clock) = clock {
            clock.advance(Duration::from_millis(5));
        }
    }
}

#[test]
fn readers_see_whole_versions_while_a_writer_goes_on() {
    let clock = Arc::new(ManualClock::default());
    let config = StoreConfig { window: Duration::from_millis(50), ..StoreConfig::new(clock.clone()) };
    let store = Store::new(config);
    let guis = ring(&store);
    let (done, checks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let pin = store.pin_published();
                    for _ in 0..3 {
                        check(&store, &guis, pin.version());
                    }
                    checks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            let objects = Objects::memory().unwrap();
            while !done.load(Ordering::Relaxed) {
                let version = store.pin_published().version();
                let Ok(manifest) = store.checkpoint(version, &objects, "c", CheckpointMeta::default()) else {
                    continue;
                };
                let restored = restore_newest(store.config(), &objects, "c").unwrap().unwrap();
                assert_eq!(restored.manifest, manifest);
                check(&restored.store, &guis, version);
            }
        });
        write(&store, &guis, Some(&clock), || checks.load(Ordering::Relaxed) > 50);
        done.store(true, Ordering::Relaxed);
    });
    check(&store, &guis, store.published());
}

#[test]
fn everything_old_is_forgotten_along_the_way() {
    let config = StoreConfig { window: Duration::ZERO, ..StoreConfig::new(Arc::new(RealClock::new())) };
    let store = Store::new(config);
    let guis = ring(&store);
    write(&store, &guis, None, || true);
    // Reclaiming keeps up: the remaining versions do not grow with the number of writes.
    let left = store.memory().versions;
    assert!(left < 200_000, "{left} bytes of old versions are left");
    check(&store, &guis, store.published());
}
