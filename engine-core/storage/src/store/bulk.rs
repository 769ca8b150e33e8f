//! Loads: many mutations of one version, as the segments of a bulk load have them.
//!
//! Vertices and what edges hold go to their pages at once. The links of edges wait until there are many, and then each
//! list of adjacency is written once, at its exact size. What waits is bounded: by a fixed amount, or by a part of what
//! the graph's adjacency takes already, so that a large load has few rounds. A mutation that has to know the
//! adjacency (a deletion, say) makes what waits be written first.
//!
//! What must never happen: an edge of which one end has a link and the other has not; a load left without
//! [`BulkLoad::finish`] and published.

use super::Store;
use super::locked::GROUP;
use crate::partition::{Open, Partition, Tally, Waiting, Writer};
use crossbeam_epoch::{Guard, pin};
use parking_lot::MutexGuard;
use tidegraph_types::{Edge, Mutation, Str, Token, Value, Version};

/// Mutations that are applied together, with their partitions opened once.
const PIECE: usize = 4096;
/// Links that may wait in any graph: 32 MiB of them.
const FEWEST_WAITING: usize = (32 << 20) / size_of::<Waiting>();
/// The part of the adjacency's bytes that links may wait in, if that is more.
const WAITING_PART: usize = 4;

/// What became of a load, or of a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadOutcome {
    /// Vertices that were made.
    pub vertices_created: u64,
    /// Vertices that were there: labels were added and properties written.
    pub vertices_merged: u64,
    /// Edges that were made.
    pub edges_created: u64,
    /// Edges whose user-chosen id was there, between the same vertices: properties were written.
    pub edges_merged: u64,
    /// Edges without effect: an end is missing, or their id belongs to an edge elsewhere.
    pub edges_refused: u64,
}

/// A load that is being applied; nobody else writes meanwhile. See the module.
#[must_use = "edges wait until the load is finished"]
pub struct BulkLoad<'s> {
    store: &'s Store,
    version: Version,
    /// For each partition.
    waiting: Vec<Vec<Waiting>>,
    waiting_links: usize,
    most_waiting: usize,
    outcome: LoadOutcome,
    _writing: MutexGuard<'s, Version>,
}

impl std::fmt::Debug for BulkLoad<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkLoad")
            .field("version", &self.version)
            .field("waiting_links", &self.waiting_links)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Begins to apply a load. Merges vertices that are there (as [`Store::apply`] does) and edges whose user-chosen
    /// id is there. Nothing is visible before [`Store::publish`].
    pub fn begin_load(&self, version: Version) -> BulkLoad<'_> {
        let mut writing = self.applied.lock();
        debug_assert!(version >= *writing, "version {version} comes after {writing}");
        *writing = version;
        BulkLoad {
            store: self,
            version,
            waiting: self.partitions.iter().map(|_| Vec::new()).collect(),
            waiting_links: 0,
            most_waiting: FEWEST_WAITING,
            outcome: LoadOutcome::default(),
            _writing: writing,
        }
    }

    /// Applies a whole load, or a part of one that is to be written at once; all parts of a load have one version.
    pub fn apply_load_block(&self, version: Version, mutations: &[Mutation]) -> LoadOutcome {
        let mut load = self.begin_load(version);
        load.apply(mutations);
        load.finish()
    }
}

impl BulkLoad<'_> {
    /// Applies some mutations, in order.
    pub fn apply(&mut self, mutations: &[Mutation]) {
        let mut tally = Tally::default();
        let mut w = Writer { version: self.version, bulk: true, tally: &mut tally };
        let mut rest = mutations;
        while let Some(first) = rest.first() {
            // A run of one kind may be taken in another order; kinds may not pass each other.
            let kind = std::mem::discriminant(first);
            let length = rest.iter().take(PIECE).take_while(|m| std::mem::discriminant(*m) == kind).count();
            let (run, after) = rest.split_at(length);
            match first {
                Mutation::CreateVertex { .. } => self.vertices(&mut w, run),
                Mutation::CreateEdge { .. } => self.edges(&mut w, run),
                _ => run.iter().for_each(|mutation| self.other(&mut w, mutation)),
            }
            rest = after;
            self.store.make_room();
        }
        self.store.note_lost();
        self.store.make_room_anew();
        self.store.count(tally);
    }

    /// Writes what waits. Answers what became of the load.
    pub fn finish(mut self) -> LoadOutcome {
        self.write_lists();
        self.store.make_room_anew();
        self.outcome
    }

    /// Writes the lists that links wait for.
    fn write_lists(&mut self) {
        let mut tally = Tally::default();
        let w = Writer { version: self.version, bulk: true, tally: &mut tally };
        let mut bytes = 0;
        for (partition, waiting) in self.store.partitions.iter().zip(&mut self.waiting) {
            let mut open = partition.open();
            if !waiting.is_empty() {
                open.load_links(&w, waiting);
            }
            bytes += open.adjacency_bytes();
        }
        self.waiting_links = 0;
        self.most_waiting = FEWEST_WAITING.max(bytes / WAITING_PART / size_of::<Waiting>());
    }

    fn other(&mut self, w: &mut Writer<'_>, mutation: &Mutation) {
        let reads_adjacency = match mutation {
            Mutation::SetEdgeProperty { edge, .. } => {
                let source = self.store.partitions[self.store.number(edge.source)].open();
                !source.has_edge_row(edge.sid, &pin())
            }
            Mutation::DeleteVertex { .. } | Mutation::DeleteEdge { .. } => true,
            _ => false,
        };
        if reads_adjacency && self.waiting_links > 0 {
            self.write_lists();
        }
        self.store.apply_one(w, mutation);
    }

    fn vertices(&mut self, w: &mut Writer<'_>, run: &[Mutation]) {
        let store = self.store;
        let number = |mutation: &Mutation| match mutation {
            Mutation::CreateVertex { gui, .. } => Some(store.number(*gui)),
            _ => None,
        };
        let mut order: Vec<(usize, u32)> =
            (0..).zip(run).filter_map(|(index, mutation)| Some((number(mutation)?, index))).collect();
        // By partition, and in the order given within each.
        order.sort_unstable();
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let partition = &store.partitions[group[0].0];
            let mut open = partition.open();
            for some in group.chunks(GROUP) {
                let guis = || {
                    some.iter().filter_map(|(_, index)| match &run[*index as usize] {
                        Mutation::CreateVertex { gui, .. } => Some(*gui),
                        _ => None,
                    })
                };
                let guard = pin();
                guis().for_each(|gui| partition.prefetch_index(gui, &guard));
                guis().for_each(|gui| _ = partition.prefetch_node(gui, &guard));
                // What rows that change retire is freed by pinning anew: no guard is held over several of them.
                drop(guard);
                for (_, index) in some {
                    let mutation = &run[*index as usize];
                    let Mutation::CreateVertex { gui, id, labels, properties } = mutation else { continue };
                    let mut watch = store.watch(mutation);
                    if let Some(watch) = &mut watch {
                        watch.before = watch.look(&open);
                    }
                    if open.load_vertex(w, *gui, id, labels, properties) {
                        self.outcome.vertices_created += 1;
                    } else {
                        self.outcome.vertices_merged += 1;
                    }
                    if let Some(watch) = watch {
                        store.changed(w, watch, &open);
                    }
                }
                store.make_room_in(&mut open);
            }
        }
    }

    fn edges(&mut self, w: &mut Writer<'_>, run: &[Mutation]) {
        let store = self.store;
        let edges: Vec<NewEdge<'_>> =
            run.iter().filter_map(|mutation| NewEdge::of(store, mutation)).collect();
        let mut partitions: Vec<Open<'_>> = store.partitions.iter().map(Partition::open).collect();
        // Those whose id may be taken, by an edge before or of the run, wait until the rest is there.
        let mut again: Vec<&NewEdge<'_>> = Vec::new();
        let mut tally = EdgeTally::default();
        for group in edges.chunks(GROUP) {
            let guard = &pin();
            group.iter().for_each(|new| new.prefetch_indexes(&partitions, guard));
            group.iter().for_each(|new| new.prefetch_nodes(&partitions, guard));
            for new in group {
                if new.id_hash.is_some_and(|hash| partitions[new.id_home].has_edge_id(hash, guard)) {
                    again.push(new);
                    continue;
                }
                let source = partitions[new.source].present(new.edge.source, guard);
                let target = partitions[new.target].present(new.edge.target, guard);
                let (Some(source), Some(target)) = (source, target) else {
                    self.outcome.edges_refused += 1;
                    continue;
                };
                self.waiting[new.source].push(Waiting::out(source, new.edge));
                self.waiting[new.target].push(Waiting::inward(target, new.edge));
                self.waiting_links += 2;
                partitions[new.source].load_edge(w, new.edge.sid, new.id, new.properties, guard);
                if let Some(hash) = new.id_hash {
                    partitions[new.id_home].add_edge_id(w, hash, new.edge.source, new.edge.sid);
                }
                tally.add(w, new.edge.label);
                self.outcome.edges_created += 1;
            }
        }
        tally.finish(w);
        drop(partitions);
        if !again.is_empty() {
            self.write_lists();
            again.into_iter().for_each(|new| self.edge_again(w, new));
        }
        if self.waiting_links > self.most_waiting {
            self.write_lists();
        }
    }

    /// Merges an edge into the one that has its id; makes it if there is none.
    fn edge_again(&mut self, w: &mut Writer<'_>, new: &NewEdge<'_>) {
        let store = self.store;
        let ends = |edge: &Edge| (edge.source, edge.target, edge.label);
        match new.id.and_then(|id| store.live_edge_with_id(id)) {
            Some(there) if ends(&there) == ends(new.edge) => {
                self.outcome.edges_merged += 1;
                let mut source = store.partitions[new.source].open();
                for (key, value) in new.properties {
                    source.set_edge_property(w, &there, *key, value);
                }
            }
            Some(_) => self.outcome.edges_refused += 1,
            // The id was of an edge that is gone, or only its hash was the same.
            None if store.create_edge(w, new.edge, new.id, new.properties) => self.outcome.edges_created += 1,
            None => self.outcome.edges_refused += 1,
        }
    }
}

/// An edge of a load, with the partitions that it concerns.
struct NewEdge<'m> {
    edge: &'m Edge,
    id: Option<&'m Str>,
    properties: &'m [(Token, Value)],
    source: usize,
    target: usize,
    id_home: usize,
    id_hash: Option<u64>,
}

impl<'m> NewEdge<'m> {
    fn of(store: &Store, mutation: &'m Mutation) -> Option<Self> {
        let Mutation::CreateEdge { edge, id, properties } = mutation else { return None };
        let (source, target) = (store.number(edge.source), store.number(edge.target));
        let id_hash = id.as_ref().map(|id| store.config.hasher.edge_id(id));
        let id_home = id_hash.map_or(source, |hash| store.number(hash));
        let (id, id_hash) = (id.as_ref(), id_hash.map(|hash| hash.0));
        Some(Self { edge, id, properties, source, target, id_home, id_hash })
    }

    /// Asks for all lines that are found without another one.
    fn prefetch_indexes(&self, partitions: &[Open<'_>], guard: &Guard) {
        partitions[self.source].prefetch_index(self.edge.source, guard);
        partitions[self.target].prefetch_index(self.edge.target, guard);
        if let Some(hash) = self.id_hash {
            partitions[self.id_home].prefetch_edge_id(hash, guard);
        }
        if self.id.is_some() || !self.properties.is_empty() {
            partitions[self.source].prefetch_edge_index(self.edge.sid, guard);
        }
    }

    fn prefetch_nodes(&self, partitions: &[Open<'_>], guard: &Guard) {
        partitions[self.source].prefetch_node(self.edge.source, guard);
        partitions[self.target].prefetch_node(self.edge.target, guard);
    }
}

/// Counts edges of one label in a row together.
#[derive(Default)]
struct EdgeTally {
    label: Token,
    count: i64,
}

impl EdgeTally {
    fn add(&mut self, w: &mut Writer<'_>, label: Token) {
        if self.label != label {
            self.finish(w);
            self.label = label;
        }
        self.count += 1;
    }

    fn finish(&mut self, w: &mut Writer<'_>) {
        if self.count > 0 {
            w.edges(self.label, std::mem::take(&mut self.count));
        }
    }
}
