//! Loads: many mutations of one version, as the segments of a bulk load have them.
//!
//! Vertices, and the ids and properties of edges, go to their pages at once. The links of edges are collected until
//! there are many, and then each adjacency list is written once, at its exact size. The collected links are bounded
//! by a fixed size or by the size of the graph's adjacency, so that a large load has few rounds. A mutation that
//! needs the adjacency, such as a deletion, makes the collected links be written first.
//!
//! A run of mutations of one kind is divided among the cores by partition, so each partition has one writer at a
//! time. Edges concern three partitions, in three steps (`edges`): look up both ends without opening a partition;
//! take ids in the partition of their hash; let each partition take its own rows and links.
//!
//! What must never happen: an edge with a link at one end only (STO-2); a load that is published without
//! [`BulkLoad::finish`].

use super::reading::GROUP;
use super::{Generation, Store};
use crate::parallel::run_parallel;
use crate::partition::{Open, Partition, PendingLink, PendingLinks, Tally, Writer};
use crossbeam_epoch::{Guard, pin};
use parking_lot::MutexGuard;
use std::sync::Arc;
use tidegraph_types::{Edge, Gui, Mutation, PropertyWrite, Str, Token, Value, Version};

/// Number of mutations that are applied together, with each partition opened once.
const PIECE: usize = 1 << 16;
/// Number of vertices or edges that justify another thread.
const ITEMS_PER_THREAD: usize = 1 << 13;
/// Bytes of links that may be collected in any graph, and the share of a memory budget that they may use.
const FEWEST_WAITING: usize = 64 << 20;
const PART_OF_BUDGET: u64 = 32;
/// Stands for the partition of an end that another store holds.
const ELSEWHERE: usize = usize::MAX;
/// Number of links that justify another thread.
const LINKS_PER_THREAD: usize = 1 << 15;

/// Counts of a load, or of a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadOutcome {
    /// Vertices that were created.
    pub vertices_created: u64,
    /// Vertices that existed: labels were added and properties written.
    pub vertices_merged: u64,
    /// Edges that were created.
    pub edges_created: u64,
    /// Edges whose user-chosen id existed between the same vertices: properties were written.
    pub edges_merged: u64,
    /// Edges without effect: an end is missing, or another edge has their id.
    pub edges_refused: u64,
}

/// A load in progress. It holds the write lock of the store.
#[must_use = "edges wait until the load is finished"]
pub struct BulkLoad<'s> {
    store: Arc<Generation>,
    version: Version,
    /// Whether single values that elements have stay.
    keeps: bool,
    /// Collected links, by partition.
    waiting: Vec<PendingLinks>,
    waiting_links: usize,
    most_waiting: usize,
    /// Whether lists were written.
    wrote: bool,
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
    /// Starts a load. Merges vertices that exist, as [`Store::apply`] does, and edges whose user-chosen id exists.
    /// Nothing is visible before [`Store::publish`].
    pub fn begin_load(&self, version: Version) -> BulkLoad<'_> {
        let writing = self.begin_to_apply(version);
        let store = self.newest().share().clone();
        store.note_changes();
        BulkLoad {
            version,
            keeps: false,
            waiting: store.partitions.iter().map(|_| PendingLinks::default()).collect(),
            waiting_links: 0,
            most_waiting: store.most_waiting(0),
            store,
            wrote: false,
            outcome: LoadOutcome::default(),
            _writing: writing,
        }
    }

    /// Applies a whole load, or a part of one that should be written at once. All parts of a load have the same
    /// version.
    pub fn apply_load_block(&self, version: Version, mutations: &[Mutation]) -> LoadOutcome {
        let mut load = self.begin_load(version);
        load.apply(mutations);
        load.finish()
    }
}

impl Generation {
    /// Returns how many links may be collected where adjacency has `adjacency_bytes`: as many bytes again, so that
    /// all rounds of a load together copy only a small multiple of what it adds.
    fn most_waiting(&self, adjacency_bytes: usize) -> usize {
        let bytes = adjacency_bytes.max(FEWEST_WAITING);
        let most = self.page_memory.budget().map_or(usize::MAX, |budget| (budget / PART_OF_BUDGET) as usize);
        bytes.min(most.max(1 << 20)) / size_of::<PendingLink>()
    }
}

impl BulkLoad<'_> {
    /// Says whether the load keeps the single-cardinality values that elements have. Otherwise it replaces them.
    ///
    /// The load replaces values under uniqueness constraints in both cases: it has checked its own values, together
    /// with the labels that it adds, and not those that a transaction wrote meanwhile (TXN-3).
    pub fn keep_values(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// Applies mutations in order.
    pub fn apply(&mut self, mutations: &[Mutation]) {
        let mut tally = Tally::default();
        let replaced = self.store.keys_of_constraints();
        let keeps = self.keeps.then_some(replaced.as_slice());
        let mut w = Writer { version: self.version, bulk: true, keeps, tally: &mut tally };
        let mut rest = mutations;
        while let Some(first) = rest.first() {
            // A run of one kind may be reordered, but kinds keep their order.
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
        self.store.make_room_after_recount();
        self.store.count(tally);
    }

    /// Writes the links that are still collected, and returns the counts of the load.
    pub fn finish(mut self) -> LoadOutcome {
        self.write_lists(true);
        self.store.make_room_after_recount();
        self.outcome
    }

    /// Writes the lists of the collected links, several partitions in parallel. `last` says that no further round
    /// will rewrite them.
    fn write_lists(&mut self, last: bool) {
        let (version, wrote) = (self.version, self.wrote || self.waiting_links > 0);
        let work = |(partition, waiting): (&Partition, &mut PendingLinks)| {
            let mut tally = Tally::default();
            let w = Writer { version, bulk: true, keeps: None, tally: &mut tally };
            let mut open = partition.open();
            if !waiting.is_empty() {
                open.load_links(&w, waiting);
            }
            if wrote && last {
                open.close_holes();
            }
            open.adjacency_bytes()
        };
        let threads = self.waiting_links / LINKS_PER_THREAD;
        let pairs = self.store.partitions.iter().zip(&mut self.waiting).collect();
        let bytes = run_parallel(threads, pairs, work).into_iter().sum();
        (self.waiting_links, self.wrote) = (0, wrote);
        self.most_waiting = self.store.most_waiting(bytes);
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
            self.write_lists(false);
        }
        self.store.apply_one(w, mutation);
    }

    fn vertices(&mut self, w: &mut Writer<'_>, run: &[Mutation]) {
        let store = &*Arc::clone(&self.store);
        let mut of_partition: Vec<Vec<NewVertex<'_>>> = store.partitions.iter().map(|_| Vec::new()).collect();
        for mutation in run {
            if let Some(new) = NewVertex::of(mutation).filter(|new| store.holds(new.gui)) {
                of_partition[store.number(new.gui)].push(new);
            }
        }
        let works = store.partitions.iter().zip(of_partition).filter(|(_, some)| !some.is_empty()).collect();
        let (version, keeps) = (w.version, w.keeps);
        let done = run_parallel(run.len() / ITEMS_PER_THREAD, works, |(partition, some)| {
            let mut tally = Tally::default();
            let mut w = Writer { version, bulk: true, keeps, tally: &mut tally };
            let created = store.load_vertices(&mut w, partition, &some);
            (tally, created, some.len() as u64)
        });
        for (tally, created, all) in done {
            w.tally.add(tally);
            self.outcome.vertices_created += created;
            self.outcome.vertices_merged += all - created;
        }
    }

    fn edges(&mut self, w: &mut Writer<'_>, run: &[Mutation]) {
        let store = &*Arc::clone(&self.store);
        let (threads, version) = (run.len() / ITEMS_PER_THREAD, w.version);
        if !self.waiting.iter().all(|pending| pending.fits(2 * run.len())) {
            self.write_lists(false);
        }
        // Look up both ends of each edge.
        let pieces = run.chunks(ITEMS_PER_THREAD).enumerate().collect();
        let mut pieces =
            run_parallel(threads, pieces, |(number, piece)| (number, NewEdge::all(store, piece)));
        pieces.sort_unstable_by_key(|(number, _)| *number);
        let mut edges: Vec<NewEdge<'_>> = pieces.into_iter().flat_map(|(_, edges)| edges).collect();
        self.outcome.edges_refused += (run.len() - edges.len()) as u64;
        // Edges whose id may be taken, by an older edge or one of this run, wait until the others are stored.
        let mut again: Vec<NewEdge<'_>> = Vec::new();
        if store.config.scope.is_some() {
            // The edge that has an id may be in another store; the load made sure that no edge has it.
            let tally = &mut Tally::default();
            let w = Writer { version, bulk: true, keeps: None, tally };
            let mut open = store.partitions[0].open();
            for new in &edges {
                let home = new.id_hash.filter(|hash| store.holds(Gui(*hash)));
                home.into_iter().for_each(|hash| open.add_edge_id(&w, hash, new.edge.source, new.edge.sid));
            }
        } else if edges.iter().any(|new| new.id_hash.is_some()) {
            let works = store.numbers_of(&edges, |new| [new.id_hash.map(|_| new.id_home), None]);
            let taken = run_parallel(threads, works, |(home, some)| {
                store.partitions[home].open().take_edge_ids(version, &edges, &some)
            });
            let mut taken: Vec<u32> = taken.into_iter().flatten().collect();
            taken.sort_unstable();
            again.extend(taken.iter().map(|index| edges[*index as usize]));
            let mut number = 0;
            edges.retain(|_| {
                number += 1;
                taken.binary_search(&(number - 1)).is_err()
            });
        }
        let works = store.numbers_of(&edges, |new| [Some(new.source), Some(new.target)]);
        let mut waiting: Vec<Option<&mut PendingLinks>> = self.waiting.iter_mut().map(Some).collect();
        let works =
            works.into_iter().filter_map(|(number, some)| Some((number, some, waiting[number].take()?)));
        run_parallel(threads, works.collect(), |(number, some, pending)| {
            store.load_edges(version, number, &edges, &some, pending);
        });
        let mut tally = EdgeTally::default();
        let begin_here = edges.iter().filter(|new| new.source != ELSEWHERE);
        let created = begin_here.map(|new| tally.add(w, new.edge.label)).count();
        tally.finish(w);
        self.waiting_links += 2 * edges.len();
        self.outcome.edges_created += created as u64;
        if !again.is_empty() {
            self.write_lists(false);
            again.into_iter().for_each(|new| self.edge_again(w, &new));
        }
        if self.waiting_links > self.most_waiting {
            self.write_lists(false);
        }
    }

    /// Merges an edge into the one that has its id, or creates it if there is none.
    fn edge_again(&mut self, w: &mut Writer<'_>, new: &NewEdge<'_>) {
        let store = &*Arc::clone(&self.store);
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
            // The id belonged to an edge that is gone, or another id has the same hash.
            None if store.create_edge(w, new.edge, new.id, new.properties) => self.outcome.edges_created += 1,
            None => self.outcome.edges_refused += 1,
        }
    }
}

impl Generation {
    /// Creates vertices of one partition or merges into those that exist. Returns how many were created.
    fn load_vertices(&self, w: &mut Writer<'_>, partition: &Partition, some: &[NewVertex<'_>]) -> u64 {
        let mut created = 0;
        let mut open = partition.open();
        for group in some.chunks(GROUP) {
            let guard = pin();
            group.iter().for_each(|new| partition.prefetch_index(new.gui, &guard));
            group.iter().for_each(|new| _ = partition.prefetch_node(new.gui, &guard));
            // Pinning again frees what changed rows retire, so no guard is held over several of them.
            drop(guard);
            for new in group {
                let mut update = self.index_update(new.mutation);
                if let Some(update) = &mut update {
                    update.before = update.indexed_values(&open);
                }
                created += u64::from(open.load_vertex(w, new.gui, new.id, new.labels, new.properties));
                if let Some(update) = update {
                    self.update_indexes(w, update, &open);
                }
            }
            self.make_room_in(&mut open);
        }
        self.note_lost();
        created
    }

    /// Stores the share of one partition: rows and links of edges that begin there, links of edges that end there.
    fn load_edges(
        &self,
        version: Version,
        number: usize,
        edges: &[NewEdge<'_>],
        some: &[u32],
        pending: &mut PendingLinks,
    ) {
        let mut tally = Tally::default();
        let mut w = Writer { version, bulk: true, keeps: None, tally: &mut tally };
        let mut open = self.partitions[number].open();
        for group in some.chunks(GROUP) {
            let group = || group.iter().map(|index| &edges[*index as usize]);
            let guard = &pin();
            group().filter(|new| new.source == number).for_each(|new| new.prefetch_row(&open, guard));
            for new in group() {
                if new.source == number {
                    pending.push(PendingLink::out(new.source_slot, new.edge));
                    open.load_edge(&mut w, new.edge.sid, new.id, new.properties, guard);
                }
                if new.target == number {
                    pending.push(PendingLink::inward(new.target_slot, new.edge));
                }
            }
            self.make_room_in(&mut open);
        }
        self.note_lost();
    }

    /// Returns, for each partition that edges concern, the indexes of these edges in order.
    fn numbers_of(
        &self,
        edges: &[NewEdge<'_>],
        concerns: impl Fn(&NewEdge<'_>) -> [Option<usize>; 2],
    ) -> Vec<(usize, Vec<u32>)> {
        let mut places: Vec<(usize, Vec<u32>)> =
            (0..self.partitions.len()).map(|p| (p, Vec::new())).collect();
        for (place, new) in (0..).zip(edges) {
            let [one, other] = concerns(new).map(|number| number.filter(|number| *number != ELSEWHERE));
            one.into_iter().chain(other.filter(|_| one != other)).for_each(|p| places[p].1.push(place));
        }
        places.retain(|(_, places)| !places.is_empty());
        places
    }
}

impl Open<'_> {
    /// Takes the edge ids that hash to this partition. Returns the edges whose id may be taken already.
    fn take_edge_ids(&mut self, version: Version, edges: &[NewEdge<'_>], some: &[u32]) -> Vec<u32> {
        let mut tally = Tally::default();
        let w = Writer { version, bulk: true, keeps: None, tally: &mut tally };
        let mut taken = Vec::new();
        for group in some.chunks(GROUP) {
            let guard = &pin();
            let hashes = || group.iter().filter_map(|place| Some((*place, edges[*place as usize].id_hash?)));
            hashes().for_each(|(_, hash)| self.prefetch_edge_id(hash, guard));
            for (place, hash) in hashes() {
                if self.has_edge_id(hash, guard) {
                    taken.push(place);
                } else {
                    let edge = edges[place as usize].edge;
                    self.add_edge_id(&w, hash, edge.source, edge.sid);
                }
            }
        }
        taken
    }
}

/// A vertex of a load.
struct NewVertex<'m> {
    mutation: &'m Mutation,
    gui: Gui,
    id: &'m Str,
    labels: &'m [Token],
    properties: &'m [PropertyWrite],
}

impl<'m> NewVertex<'m> {
    fn of(mutation: &'m Mutation) -> Option<Self> {
        let Mutation::CreateVertex { gui, id, labels, properties } = mutation else { return None };
        Some(Self { mutation, gui: *gui, id, labels, properties })
    }
}

/// An edge of a load whose ends exist, with the partitions that it concerns.
#[derive(Clone, Copy)]
struct NewEdge<'m> {
    edge: &'m Edge,
    id: Option<&'m Str>,
    properties: &'m [(Token, Value)],
    source: usize,
    source_slot: u32,
    target: usize,
    target_slot: u32,
    id_home: usize,
    id_hash: Option<u64>,
}

impl<'m> NewEdge<'m> {
    /// Returns the edges of some mutations whose ends exist, in order.
    fn all(store: &Generation, some: &'m [Mutation]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::with_capacity(some.len());
        let mut found = 0;
        for group in some.chunks(GROUP) {
            let guard = &pin();
            all.extend(group.iter().filter_map(|mutation| Self::of(store, mutation)));
            let ends = |new: &Self| {
                [
                    (store.partitions.get(new.source), new.edge.source),
                    (store.partitions.get(new.target), new.edge.target),
                ]
            };
            let here = |(partition, gui)| Some((partition?, gui));
            let each = || all[found..].iter().flat_map(ends).filter_map(here);
            each().for_each(|(partition, gui)| partition.prefetch_index(gui, guard));
            each().for_each(|(partition, gui)| _ = partition.prefetch_node(gui, guard));
            let mut kept = found;
            for index in found..all.len() {
                let mut new = all[index];
                let [source, target] = ends(&new).map(|(partition, gui)| match partition {
                    Some(partition) => partition.present(gui, guard),
                    None => Some(u32::MAX),
                });
                if let (Some(source), Some(target)) = (source, target) {
                    (new.source_slot, new.target_slot) = (source, target);
                    all[kept] = new;
                    kept += 1;
                }
            }
            all.truncate(kept);
            found = kept;
        }
        all
    }

    fn of(store: &Generation, mutation: &'m Mutation) -> Option<Self> {
        let Mutation::CreateEdge { edge, id, properties } = mutation else { return None };
        let number = |gui| if store.holds(gui) { store.number(gui) } else { ELSEWHERE };
        let (source, target) = (number(edge.source), number(edge.target));
        let id_hash = id.as_ref().map(|id| store.config.hasher.edge_id(id));
        let id_home = id_hash.map_or(source, |hash| store.number(hash));
        let (id, id_hash) = (id.as_ref(), id_hash.map(|hash| hash.0));
        Some(Self { edge, id, properties, source, source_slot: 0, target, target_slot: 0, id_home, id_hash })
    }

    /// Prefetches the index line where the edge's row, if it has one, will be entered.
    fn prefetch_row(&self, source: &Partition, guard: &Guard) {
        if self.id.is_some() || !self.properties.is_empty() {
            source.prefetch_edge_index(self.edge.sid, guard);
        }
    }
}

/// Counts consecutive edges of one label together.
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
