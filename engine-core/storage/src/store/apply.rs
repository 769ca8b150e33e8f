//! Writing: which partitions a mutation concerns, in which order, and loads in pieces.

use super::Store;
use super::locked::GROUP;
use crate::adjacency::Link;
use crate::partition::{EdgeIdEntry, Open, Tally, Writer};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};
use tidegraph_types::{Edge, Gui, Mutation, PropertyWrite, Str, Token, Value, Version};

/// Mutations of a load that are applied together, partition by partition.
const LOAD_PIECE: usize = 2048;

/// What became of a block of a load.
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

impl std::ops::AddAssign for LoadOutcome {
    fn add_assign(&mut self, other: Self) {
        self.vertices_created += other.vertices_created;
        self.vertices_merged += other.vertices_merged;
        self.edges_created += other.edges_created;
        self.edges_merged += other.edges_merged;
        self.edges_refused += other.edges_refused;
    }
}

/// An edge of a load.
struct NewEdge<'m> {
    edge: &'m Edge,
    id: Option<&'m Str>,
    properties: &'m [(Token, Value)],
    done: bool,
}

impl Store {
    /// Applies the mutations of one committed transaction. Versions never go down from call to call. Nothing is
    /// visible before [`Store::publish`]. A mutation of what is not there, or an edge without one of its ends, has no
    /// effect.
    pub fn apply(&self, version: Version, mutations: &[Mutation]) {
        let mut applied = self.applied.lock();
        debug_assert!(version >= *applied, "version {version} comes after {applied}");
        *applied = version;
        let mut tally = Tally::default();
        let mut writer = Writer { version, bulk: false, tally: &mut tally };
        let mut rest = mutations;
        while let Some((first, more)) = rest.split_first() {
            rest = more;
            let Mutation::SetVertexProperty { gui, write } = first else {
                self.apply_one(&mut writer, first);
                continue;
            };
            // What is written to one vertex in a row is one change of it.
            let mut writes: SmallVec<[&PropertyWrite; 8]> = smallvec![write];
            while let Some((Mutation::SetVertexProperty { gui: next, write }, more)) = rest.split_first()
                && next == gui
            {
                writes.push(write);
                rest = more;
            }
            self.set_properties(&mut writer, *gui, &writes);
        }
        self.count(tally);
        let (oldest, budget) = (self.versions.oldest(), 256 + 8 * mutations.len());
        self.indexes.reclaim(oldest, budget);
        self.reclaim_one(oldest, budget);
    }

    /// Applies a block of a bulk load; all blocks of a load have one version. Takes the mutations in pieces, partition
    /// by partition, so that readers get in between. Merges vertices that are there (as `apply` does) and edges whose
    /// user-chosen id is there.
    pub fn apply_load_block(&self, version: Version, mutations: &[Mutation]) -> LoadOutcome {
        let mut applied = self.applied.lock();
        debug_assert!(version >= *applied, "version {version} comes after {applied}");
        *applied = version;
        let mut outcome = LoadOutcome::default();
        let mut tally = Tally::default();
        let mut writer = Writer { version, bulk: true, tally: &mut tally };
        let mut rest = mutations;
        while let Some(first) = rest.first() {
            // A run of one kind may be taken in another order; kinds may not pass each other.
            let kind = std::mem::discriminant(first);
            let length =
                rest.iter().take(LOAD_PIECE).take_while(|m| std::mem::discriminant(*m) == kind).count();
            let (run, after) = rest.split_at(length);
            match first {
                Mutation::CreateVertex { .. } => self.load_vertices(&mut writer, run, &mut outcome),
                Mutation::CreateEdge { .. } => self.load_edges(&mut writer, run, &mut outcome),
                _ => run.iter().for_each(|mutation| self.apply_one(&mut writer, mutation)),
            }
            rest = after;
        }
        self.count(tally);
        outcome
    }

    pub(super) fn number(&self, gui: Gui) -> usize {
        usize::from(self.config.partitions.of(gui).0)
    }

    fn apply_one(&self, w: &mut Writer<'_>, mutation: &Mutation) {
        let Some(mut watch) = self.watch(mutation) else { return self.change(w, mutation) };
        let partition = &self.partitions[self.number(watch.gui())];
        watch.before = watch.look(partition);
        self.change(w, mutation);
        self.changed(w, watch, partition);
    }

    fn set_properties(&self, w: &mut Writer<'_>, gui: Gui, writes: &[&PropertyWrite]) {
        let partition = &self.partitions[self.number(gui)];
        let watch = self.watch_writes(gui, writes).map(|mut watch| {
            watch.before = watch.look(partition);
            watch
        });
        partition.open().set_properties(w, gui, writes);
        if let Some(watch) = watch {
            self.changed(w, watch, partition);
        }
    }

    fn change(&self, w: &mut Writer<'_>, mutation: &Mutation) {
        let write = |gui: Gui| self.partitions[self.number(gui)].open();
        match mutation {
            Mutation::CreateVertex { gui, id, labels, properties } => {
                write(*gui).create_vertex(w, *gui, id, labels, properties);
            }
            Mutation::DeleteVertex { gui } => {
                // Its edges were to go before it; if some did not, they must not outlive it.
                let edges = self.partitions[self.number(*gui)].open().live_edges(*gui);
                for edge in &edges {
                    self.delete_edge(w, edge);
                }
                write(*gui).delete_vertex(w, *gui);
            }
            Mutation::AddLabels { gui, labels } => write(*gui).add_labels(w, *gui, labels),
            Mutation::RemoveLabels { gui, labels } => write(*gui).remove_labels(w, *gui, labels),
            Mutation::SetVertexProperty { gui, write: value } => {
                write(*gui).set_properties(w, *gui, &[value]);
            }
            Mutation::RemoveVertexProperty { gui, key, value } => {
                write(*gui).remove_property(w, *gui, *key, value.as_ref());
            }
            Mutation::CreateEdge { edge, id, properties } => {
                self.create_edge(w, edge, id.as_ref(), properties);
            }
            Mutation::DeleteEdge { edge, .. } => self.delete_edge(w, edge),
            Mutation::SetEdgeProperty { edge, key, value } => {
                write(edge.source).set_edge_property(w, edge, *key, value);
            }
            Mutation::RemoveEdgeProperty { edge, key } => {
                write(edge.source).remove_edge_property(w, edge, *key);
            }
            Mutation::AddException { id, gui } => {
                self.add_exceptions(&[(id.clone(), *gui)]);
            }
            Mutation::DefineIndex { index } => self.define_index(index, w.version),
            Mutation::DropIndex { name } => self.indexes.drop_index(name),
        }
    }

    fn create_edge(
        &self,
        w: &mut Writer<'_>,
        edge: &Edge,
        id: Option<&Str>,
        properties: &[(Token, Value)],
    ) -> bool {
        let write = |gui: Gui| self.partitions[self.number(gui)].open();
        if !write(edge.target).add_in(w, edge) {
            return false;
        }
        if !write(edge.source).add_out(w, edge, id, properties) {
            write(edge.target).remove_in(w, edge);
            return false;
        }
        if let Some(id) = id {
            let hash = self.config.hasher.edge_id(id);
            write(hash).add_edge_id(hash.0, edge.source, edge.sid);
        }
        true
    }

    fn delete_edge(&self, w: &mut Writer<'_>, edge: &Edge) {
        let write = |gui: Gui| self.partitions[self.number(gui)].open();
        let Some(id) = write(edge.source).remove_out(w, edge) else { return };
        write(edge.target).remove_in(w, edge);
        if let Some(id) = id {
            let hash = self.config.hasher.edge_id(&id);
            write(hash).remove_edge_id(w, hash.0, edge.sid);
        }
    }

    /// Calls `each` for every item, grouped by partition, the partition opened once for its group.
    fn by_partition<T>(
        &self,
        items: &mut [T],
        gui: impl Fn(&T) -> Option<Gui>,
        mut each: impl FnMut(&mut Open<'_>, &mut T),
    ) {
        let mut order: Vec<(u16, u32)> = (0..)
            .zip(items.iter())
            .filter_map(|(index, item)| Some((self.config.partitions.of(gui(item)?).0, index)))
            .collect();
        // By partition, and in the order given within each.
        order.sort_unstable();
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let mut partition = self.partitions[usize::from(group[0].0)].open();
            for some in group.chunks(GROUP) {
                // The misses of several look-ups overlap.
                let guis = || some.iter().filter_map(|(_, index)| gui(&items[*index as usize]));
                guis().for_each(|gui| partition.prefetch_index(gui));
                guis().for_each(|gui| partition.prefetch_node(gui));
                guis().for_each(|gui| partition.prefetch_adjacency(gui));
                for (_, index) in some {
                    each(&mut partition, &mut items[*index as usize]);
                }
            }
        }
    }

    /// Calls `each` for every vertex that items belong to, with their indexes; the partition is opened once for all of
    /// its vertices.
    fn by_vertex<T>(
        &self,
        items: &mut [T],
        gui: impl Fn(&T) -> Option<Gui>,
        mut each: impl FnMut(&mut Open<'_>, Gui, &mut [T], &[u32]),
    ) {
        let mut order: Vec<(u16, Gui, u32)> = (0..)
            .zip(items.iter())
            .filter_map(|(index, item)| gui(item).map(|gui| (self.config.partitions.of(gui).0, gui, index)))
            .collect();
        order.sort_unstable();
        let indexes: Vec<u32> = order.iter().map(|(_, _, index)| *index).collect();
        let mut vertices: Vec<(u16, Gui, usize, usize)> = Vec::new();
        let mut start = 0;
        for some in order.chunk_by(|a, b| a.1 == b.1) {
            vertices.push((some[0].0, some[0].1, start, start + some.len()));
            start += some.len();
        }
        for group in vertices.chunk_by(|a, b| a.0 == b.0) {
            let mut partition = self.partitions[usize::from(group[0].0)].open();
            for some in group.chunks(GROUP) {
                some.iter().for_each(|(_, gui, _, _)| partition.prefetch_index(*gui));
                some.iter().for_each(|(_, gui, _, _)| partition.prefetch_node(*gui));
                some.iter().for_each(|(_, gui, _, _)| partition.prefetch_adjacency(*gui));
                for &(_, gui, from, to) in some {
                    each(&mut partition, gui, items, &indexes[from..to]);
                }
            }
        }
    }

    fn load_vertices(&self, w: &mut Writer<'_>, run: &[Mutation], outcome: &mut LoadOutcome) {
        let mut run: Vec<&Mutation> = run.iter().collect();
        let gui = |mutation: &&Mutation| match mutation {
            Mutation::CreateVertex { gui, .. } => Some(*gui),
            _ => None,
        };
        self.by_partition(&mut run, gui, |partition, mutation| {
            if let Mutation::CreateVertex { gui, id, labels, properties } = mutation {
                let mut watch = self.watch(mutation);
                if let Some(watch) = &mut watch {
                    watch.before = watch.look(partition);
                }
                if partition.create_vertex(w, *gui, id, labels, properties) {
                    outcome.vertices_created += 1;
                } else {
                    outcome.vertices_merged += 1;
                }
                if let Some(watch) = watch {
                    self.changed(w, watch, partition);
                }
            }
        });
    }

    fn load_edges(&self, w: &mut Writer<'_>, run: &[Mutation], outcome: &mut LoadOutcome) {
        let mut new: Vec<NewEdge<'_>> = Vec::with_capacity(run.len());
        // Those whose id is taken, or comes a second time in the run, wait until the rest is there.
        let mut again: Vec<NewEdge<'_>> = Vec::new();
        let known = self.known_edge_ids(run);
        let mut in_run: FxHashSet<&Str> = FxHashSet::default();
        for (mutation, known) in run.iter().zip(known) {
            let Mutation::CreateEdge { edge, id, properties } = mutation else { continue };
            let item = NewEdge { edge, id: id.as_ref(), properties, done: false };
            if known || item.id.is_some_and(|id| !in_run.insert(id)) {
                again.push(item);
            } else {
                new.push(item);
            }
        }
        let mut links: Vec<Link> = Vec::new();
        self.by_vertex(
            &mut new,
            |item| Some(item.edge.target),
            |partition, target, items, some| {
                links.clear();
                links.extend(some.iter().map(|&index| {
                    let edge = items[index as usize].edge;
                    Link { neighbour: edge.source, sid: edge.sid, label: edge.label }
                }));
                let done = partition.load_in(w, target, &mut links);
                some.iter().for_each(|&index| items[index as usize].done = done);
            },
        );
        let mut orphans = Vec::new();
        self.by_vertex(
            &mut new,
            |item| item.done.then_some(item.edge.source),
            |partition, source, items, some| {
                links.clear();
                links.extend(some.iter().map(|&index| {
                    let edge = items[index as usize].edge;
                    Link { neighbour: edge.target, sid: edge.sid, label: edge.label }
                }));
                let done = partition.load_out(w, source, &mut links);
                for &index in some {
                    let item = &mut items[index as usize];
                    item.done = done;
                    if done {
                        partition.add_content(w, item.edge, item.id, item.properties);
                    } else {
                        orphans.push(*item.edge);
                    }
                }
            },
        );
        for edge in orphans {
            self.partitions[self.number(edge.target)].open().remove_in(w, &edge);
        }
        let hash =
            |item: &NewEdge<'_>| item.id.filter(|_| item.done).map(|id| self.config.hasher.edge_id(id));
        self.by_partition(&mut new, hash, |partition, item| {
            if let Some(hash) = hash(item) {
                partition.add_edge_id(hash.0, item.edge.source, item.edge.sid);
            }
        });
        for item in &new {
            if item.done {
                outcome.edges_created += 1;
            } else {
                outcome.edges_refused += 1;
            }
        }
        for item in &again {
            let ends = |edge: &Edge| (edge.source, edge.target, edge.label);
            match item.id.and_then(|id| self.live_edge_with_id(id)) {
                Some(there) if ends(&there) == ends(item.edge) => {
                    outcome.edges_merged += 1;
                    let mut source = self.partitions[self.number(there.source)].open();
                    for (key, value) in item.properties {
                        source.set_edge_property(w, &there, *key, value);
                    }
                }
                Some(_) => outcome.edges_refused += 1,
                // The first of its id had no place.
                None if self.create_edge(w, item.edge, item.id, item.properties) => {
                    outcome.edges_created += 1
                }
                None => outcome.edges_refused += 1,
            }
        }
    }

    /// For each edge of a run, whether a live edge has its user-chosen id already.
    fn known_edge_ids(&self, run: &[Mutation]) -> Vec<bool> {
        let mut known = vec![false; run.len()];
        let mut candidates: Vec<(usize, Gui)> = Vec::new();
        for (index, mutation) in run.iter().enumerate() {
            if let Mutation::CreateEdge { id: Some(id), .. } = mutation {
                candidates.push((index, self.config.hasher.edge_id(id)));
            }
        }
        candidates.sort_unstable_by_key(|(_, hash)| self.config.partitions.of(*hash));
        let mut found: Vec<EdgeIdEntry> = Vec::new();
        for group in candidates.chunk_by(|a, b| self.number(a.1) == self.number(b.1)) {
            found.clear();
            let partition = &self.partitions[self.number(group[0].1)];
            let mut hits = Vec::new();
            for &(index, hash) in group {
                let before = found.len();
                partition.edge_id_candidates(hash.0, &mut found);
                if found.len() > before {
                    hits.push(index);
                }
            }
            for index in hits {
                if let Mutation::CreateEdge { id: Some(id), .. } = &run[index] {
                    known[index] = self.live_edge_with_id(id).is_some();
                }
            }
        }
        known
    }

    fn live_edge_with_id(&self, id: &Str) -> Option<Edge> {
        let hash = self.config.hasher.edge_id(id);
        let mut candidates = Vec::new();
        self.partitions[self.number(hash)].edge_id_candidates(hash.0, &mut candidates);
        candidates.iter().find_map(|candidate| {
            let source = self.partitions[self.number(candidate.source)].open();
            source
                .has_edge_with_id(candidate.sid, id)
                .then(|| source.live_edge(candidate.source, candidate.sid))
                .flatten()
        })
    }
}
