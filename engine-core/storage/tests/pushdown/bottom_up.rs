//! Bottom-up steps and whole searches give the same answers as simpler requests.

use super::{LABELS, at, gui, requests, store};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_apl::searches::{BottomUp, Explored, Parents, Searches, VertexSet, breadth_first};
use tidegraph_apl::testing::FallbacksOnly;
use tidegraph_apl::{Apl, Cursor, Error, Expand, Expansion, ScanCursor};
use tidegraph_storage::Store;
use tidegraph_types::{Direction, Edge, Gui, Mutation, Sid, Version};

fn vertex(n: usize) -> Mutation {
    Mutation::CreateVertex { gui: gui(n), id: format!("v{n}").into(), labels: vec![], properties: vec![] }
}

fn create(edge: Edge) -> Mutation {
    Mutation::CreateEdge { edge, id: None, properties: vec![] }
}

/// A changing graph with pins of its versions.
struct Changing {
    store: Store,
    random: StdRng,
    vertices: usize,
    edges: Vec<Edge>,
    next: u64,
    version: u64,
    pins: Vec<tidegraph_storage::Pin>,
}

impl Changing {
    fn new(seed: u64, vertices: usize, edges: usize) -> Self {
        let (store, random) = (store(4), StdRng::seed_from_u64(seed));
        let mut graph = Self { store, random, vertices, edges: vec![], next: 1, version: 0, pins: vec![] };
        let mut all: Vec<Mutation> = (0..vertices).map(vertex).collect();
        all.extend((0..edges).map(|_| create(graph.edge())));
        graph.apply(&all);
        graph
    }

    /// Returns a random edge: a tenth of the vertices have no edge, a tenth of the edges
    /// are at the first vertex, and some edges are loops.
    fn edge(&mut self) -> Edge {
        let most = self.vertices * 9 / 10;
        let mut end = || if self.random.random_bool(0.05) { 0 } else { self.random.random_range(0..most) };
        let (source, target) = (gui(end()), gui(end()));
        let edge =
            Edge { sid: Sid(self.next), source, target, label: *LABELS.choose(&mut self.random).unwrap() };
        self.next += 1;
        self.edges.push(edge);
        edge
    }

    fn apply(&mut self, mutations: &[Mutation]) {
        self.version += 1;
        self.store.apply(Version(self.version), mutations);
        self.store.publish(Version(self.version));
        self.pins.push(self.store.pin_published());
    }

    /// Adds and removes edges, and vertices with all their edges.
    fn change(&mut self, count: usize) {
        let mut mutations = vec![];
        for _ in 0..count {
            let edge = self.edges.swap_remove(self.random.random_range(0..self.edges.len()));
            mutations.push(Mutation::DeleteEdge { edge, id: None });
            mutations.push(create(self.edge()));
        }
        self.apply(&mutations);
    }
}

/// Returns the neighbours of every vertex that has neighbours.
fn adjacency(store: &Store, version: u64, request: &Expand, vertices: usize) -> BTreeMap<Gui, Vec<Gui>> {
    let all: Vec<Gui> = (0..vertices).map(gui).collect();
    let whole = Expand { max_rows: u32::MAX, neighbours_only: false, ..request.clone() };
    let mut out = Expansion::default();
    assert_eq!(store.expand(at(version), &whole, &all, Cursor::default(), &mut out).unwrap(), None);
    let mut lists: BTreeMap<Gui, Vec<Gui>> = BTreeMap::new();
    for index in 0..out.len() {
        lists.entry(all[out.row[index] as usize]).or_default().push(out.neighbour[index]);
    }
    lists
}

/// Returns the whole answer of a step; `between` runs between two calls.
fn whole(
    apl: &dyn Searches,
    version: u64,
    step: &BottomUp<'_>,
    explored: &mut Explored,
    mut between: impl FnMut(),
) -> Parents {
    let (mut all, mut cursor) = (Parents::default(), Some(ScanCursor::default()));
    while let Some(from) = cursor {
        cursor = apl.bottom_up(at(version), step, explored, from, &mut all).unwrap();
        between();
    }
    all
}

fn sorted(guis: &[Gui]) -> Vec<Gui> {
    let mut guis = guis.to_vec();
    guis.sort_unstable();
    guis
}

/// Compares a step with the simple answer, and checks each parent.
fn compare(store: &Store, version: u64, step: &BottomUp<'_>, vertices: usize) -> Parents {
    let place =
        format!("{:?} inverse {} at {version}, {} in the set", step.edges, step.inverse, step.set.len());
    let ours = whole(store, version, step, &mut Explored::default(), || ());
    let plain = whole(&FallbacksOnly(store), version, step, &mut Explored::default(), || ());
    assert_eq!(sorted(&ours.vertex), sorted(&plain.vertex), "{place}");
    assert_eq!(sorted(&ours.rest), sorted(&plain.rest), "{place}");
    let lists = adjacency(store, version, step.edges, vertices);
    let reached = |gui: Gui| step.set.contains(gui) != step.inverse;
    let expected: Vec<Gui> = (lists.iter())
        .filter(|(gui, near)| !reached(**gui) && near.iter().any(|near| reached(*near)))
        .map(|(gui, _)| *gui)
        .collect();
    assert_eq!(sorted(&ours.vertex), expected, "each once, {place}");
    for (vertex, parent) in ours.vertex.iter().zip(&ours.parent) {
        assert!(lists[vertex].contains(parent) && reached(*parent), "{vertex} {parent} {place}");
    }
    let columns = [ours.sid.len(), ours.label.len(), ours.outgoing.len()];
    if step.edges.neighbours_only {
        assert_eq!(columns, [0; 3]);
    } else {
        assert_eq!(columns, [ours.len(); 3]);
        for index in 0..ours.len() {
            let (vertex, parent) = (ours.vertex[index], ours.parent[index]);
            let (source, target) = if ours.outgoing[index] { (vertex, parent) } else { (parent, vertex) };
            let edge = Edge { sid: ours.sid[index], source, target, label: ours.label[index] };
            let mut rows = tidegraph_apl::EdgeRows::default();
            store.edges(at(version), &tidegraph_apl::EdgeRead::default(), &[edge], &mut rows).unwrap();
            assert!(rows.present[0], "{edge:?} {place}");
            assert!(step.edges.labels.as_ref().is_none_or(|labels| labels.contains(&edge.label)), "{place}");
        }
    }
    ours
}

#[test]
fn a_step_is_that_of_the_plain_answer_at_every_version() {
    let mut graph = Changing::new(5, 600, 9_000);
    (0..4).for_each(|_| graph.change(300));
    let all: Vec<Gui> = (0..graph.vertices).map(gui).collect();
    let mut found = 0;
    for version in 1..=graph.version {
        for (number, request) in requests().into_iter().enumerate() {
            for (size, with_hub) in [(0, false), (1, true), (7, false), (300, true), (595, true)] {
                let mut set: VertexSet = all.choose_multiple(&mut graph.random, size).copied().collect();
                if with_hub {
                    set.insert(gui(0));
                } else {
                    set.remove(gui(0));
                }
                let (max_rows, neighbours_only) = ([1, 7, 500][number % 3], number % 2 == 0);
                let edges = Expand { max_rows, neighbours_only, ..request.clone() };
                for inverse in [false, true] {
                    if !inverse || edges.direction == Direction::Both {
                        let step = BottomUp {
                            edges: &edges,
                            set: &set,
                            inverse,
                            follows: false,
                            rest: number % 4 < 2,
                        };
                        found += compare(&graph.store, version, &step, graph.vertices).len();
                    }
                }
            }
        }
    }
    assert!(found > 10_000, "{found}");
}

#[test]
fn a_hub_is_left_and_gone_on_with() {
    // More edges than one guard covers, in both directions, with hits only at the ends or nowhere.
    let store = store(1);
    let edges = 140_000_u64;
    let mut mutations: Vec<Mutation> = (0..60).map(vertex).collect();
    for sid in 1..=edges {
        let other = gui(if sid == edges { 51 } else { 1 + sid as usize % 50 });
        let (source, target) = if sid % 2 == 0 { (gui(0), other) } else { (other, gui(0)) };
        mutations.push(create(Edge { sid: Sid(sid), source, target, label: LABELS[0] }));
    }
    store.apply(Version(1), &mutations);
    store.publish(Version(1));
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        for (inside, hits) in [(51, direction != Direction::In), (55, false)] {
            let set: VertexSet = [gui(inside)].into_iter().collect();
            let edges = Expand { max_rows: 3, ..Expand::all(direction) };
            let step = BottomUp { edges: &edges, set: &set, inverse: false, follows: false, rest: true };
            let ours = compare(&store, 1, &step, 60);
            assert_eq!(ours.vertex.contains(&gui(0)), hits, "{direction:?}");
            assert_eq!(ours.rest.contains(&gui(0)), !hits, "{direction:?}");
        }
    }
}

#[test]
fn a_step_sees_its_version_while_others_are_written() {
    let mut graph = Changing::new(8, 500, 6_000);
    graph.change(100);
    let (seen, all) = (graph.version, (0..graph.vertices).map(gui).collect::<Vec<_>>());
    let edges = Expand { max_rows: 5, ..Expand::all(Direction::Both) };
    let mut explored = Explored::default();
    let mut set: VertexSet = all.choose_multiple(&mut graph.random, 3).copied().collect();
    let mut follows = false;
    for _ in 0..6 {
        let step = BottomUp { edges: &edges, set: &set, inverse: false, follows, rest: true };
        let expected = whole(&FallbacksOnly(&graph.store), seen, &step, &mut Explored::default(), || ());
        let (mut all, mut cursor) = (Parents::default(), Some(ScanCursor::default()));
        while let Some(from) = cursor {
            cursor = graph.store.bottom_up(at(seen), &step, &mut explored, from, &mut all).unwrap();
            // Edges of the version are deleted, others are created, new slots are used,
            // and data that no version needs is reclaimed.
            graph.change(3);
            let n = graph.vertices;
            graph.vertices += 1;
            graph.apply(&[vertex(n)]);
            graph.store.reclaim(1 << 16);
        }
        assert_eq!(sorted(&all.vertex), sorted(&expected.vertex));
        assert_eq!(sorted(&all.rest), sorted(&expected.rest));
        all.vertex.iter().for_each(|gui| assert!(set.insert(*gui)));
        follows = true;
    }
    assert!(set.len() > 400, "the search reached {}", set.len());
    assert!(explored.left().is_some());
}

/// Returns the distance of each vertex, and whether some were reached by a bottom-up step.
fn search(apl: &dyn Searches, version: u64, request: &Expand, start: Gui) -> (BTreeMap<Gui, u32>, bool) {
    let (mut depths, mut up) = (BTreeMap::from([(start, 0)]), false);
    let searched: Result<(), Error> =
        breadth_first(apl, at(version), request, &[start, start], &mut |found| {
            assert_eq!(found.vertices.len(), found.parents.len());
            for (vertex, parent) in found.vertices.iter().zip(found.parents) {
                assert_eq!(depths[parent] + 1, found.depth, "{parent} of {vertex}");
                assert_eq!(depths.insert(*vertex, found.depth), None, "{vertex} twice");
            }
            up |= found.upwards;
            Ok(true)
        });
    searched.unwrap();
    (depths, up)
}

#[test]
fn a_search_reaches_what_a_plain_one_does_in_as_many_steps() {
    let mut graph = Changing::new(21, 4_000, 70_000);
    graph.change(2_000);
    let mut ways = BTreeSet::new();
    for version in [1, 2] {
        for request in requests() {
            let lists = adjacency(&graph.store, version, &request, graph.vertices);
            for start in [gui(0), gui(17), gui(3_999)] {
                let mut expected = BTreeMap::from([(start, 0)]);
                let mut level = vec![start];
                while !level.is_empty() {
                    let near =
                        level.iter().flat_map(|gui| lists.get(gui).into_iter().flatten().map(|n| (*gui, *n)));
                    let mut next = vec![];
                    for (from, near) in near {
                        let depth = expected[&from] + 1;
                        if let std::collections::btree_map::Entry::Vacant(new) = expected.entry(near) {
                            new.insert(depth);
                            next.push(near);
                        }
                    }
                    level = next;
                }
                let (ours, up) = search(&graph.store, version, &request, start);
                assert_eq!(ours, expected, "{request:?} from {start} at {version}");
                assert_eq!(search(&FallbacksOnly(&graph.store), version, &request, start).0, expected);
                if up {
                    ways.insert((request.direction as u8, request.labels.is_some()));
                }
            }
        }
    }
    assert!(ways.iter().any(|(_, some)| !some) && ways.len() >= 3, "steps up were taken: {ways:?}");
}

#[test]
fn a_search_ends_when_its_caller_says_so() {
    let graph = Changing::new(3, 4_000, 70_000);
    for (most, fails) in [(1, false), (3, false), (2, true)] {
        let mut calls = 0;
        let ended: Result<(), Error> =
            breadth_first(&graph.store, at(1), &Expand::all(Direction::Both), &[gui(1)], &mut |found| {
                calls += 1;
                assert!(found.bytes > 0);
                match calls < most {
                    true => Ok(true),
                    false if fails => Err(Error::Unavailable("enough".to_owned())),
                    false => Ok(false),
                }
            });
        assert_eq!((calls, ended.is_err()), (most, fails));
    }
}
