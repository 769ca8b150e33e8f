//! STO-2: a graph split into stores of one partition each answers like the same graph in one store.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IteratorRandom};
use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use tidegraph_apl::{
    Apl, At, Cursor, EdgeCandidates, EdgeRead, EdgeRows, EdgeScan, Expand, Expansion, Projection, ScanCursor,
    Statistics, VertexRead, VertexRows,
};
use tidegraph_platform::Clock;
use tidegraph_platform::{ManualClock, Objects};
use tidegraph_storage::{CheckpointMeta, Scope, Store, StoreConfig, checkpoint};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, Gui, GuiHasher, IndexDefinition, Mutation, PartitionCount,
    PartitionId, PropertyWrite, Sid, Str, Token, Value, Version,
};

const PARTITIONS: u16 = 4;
/// Few bits, so that ids collide.
const BITS: u32 = 5;
const IDS: usize = 60;

fn config() -> StoreConfig {
    StoreConfig {
        partitions: PartitionCount::new(PARTITIONS).unwrap(),
        hasher: GuiHasher::with_bits(BITS),
        ..StoreConfig::new(Arc::new(ManualClock::default()))
    }
}

fn parts() -> Vec<Store> {
    let partitions = PartitionCount::new(PARTITIONS).unwrap();
    let scope = |partition| Scope { partitions, partition };
    partitions.all().map(|partition| Store::new(config().of_partition(scope(partition)))).collect()
}

/// Makes transactions that a sequencer would accept.
struct Writer {
    random: StdRng,
    version: Version,
    placed: BTreeMap<Str, (Gui, u64)>,
    live: BTreeSet<Gui>,
    edges: BTreeMap<Sid, (Edge, Option<Str>)>,
    next_sid: u64,
}

impl Writer {
    fn new(seed: u64) -> Self {
        let hasher = GuiHasher::with_bits(BITS);
        let mut placed: BTreeMap<Str, (Gui, u64)> = BTreeMap::new();
        for n in 0..IDS {
            let id = Str::from(format!("v{n}"));
            let taken = |gui| placed.values().any(|(other, _)| *other == gui);
            let salt = (0..).find(|salt| !taken(hasher.salted(&id, *salt))).unwrap();
            let gui = hasher.salted(&id, salt);
            placed.insert(id, (gui, salt));
        }
        Self {
            random: StdRng::seed_from_u64(seed),
            version: Version(0),
            placed,
            live: BTreeSet::new(),
            edges: BTreeMap::new(),
            next_sid: 1,
        }
    }

    fn write(&mut self) -> PropertyWrite {
        let cardinality = if self.random.random_bool(0.7) { Cardinality::Single } else { Cardinality::Set };
        let value = Value::Long(self.random.random_range(0..20));
        PropertyWrite { key: Token(10 + self.random.random_range(0..3)), cardinality, value }
    }

    fn one(&mut self, out: &mut Vec<Mutation>) {
        let kind = self.random.random_range(0..10);
        let edge = self.edges.values().choose(&mut self.random).cloned();
        match kind {
            0..3 => {
                let (id, (gui, salt)) = self.placed.iter().choose(&mut self.random).unwrap();
                let (id, gui, salt) = (id.clone(), *gui, *salt);
                if salt > 0 {
                    out.push(Mutation::AddException { id: id.clone(), gui });
                }
                let properties = vec![self.write()];
                self.live.insert(gui);
                out.push(Mutation::CreateVertex { gui, id, labels: vec![Token(1)], properties });
            }
            3..6 if !self.live.is_empty() => {
                let mut end = || *self.live.iter().choose(&mut self.random).unwrap();
                let (source, target) = (end(), end());
                let edge = Edge { sid: Sid(self.next_sid), source, target, label: Token(5 + kind % 2) };
                let id = self.random.random_bool(0.5).then(|| Str::from(format!("e{}", self.next_sid)));
                self.next_sid += 1;
                self.edges.insert(edge.sid, (edge, id.clone()));
                let properties = if kind == 5 { vec![(Token(20), Value::Long(7))] } else { vec![] };
                out.push(Mutation::CreateEdge { edge, id, properties });
            }
            6 => {
                let Some(gui) = self.live.iter().copied().choose(&mut self.random) else { return };
                self.live.remove(&gui);
                let of = |edge: &Edge| edge.source == gui || edge.target == gui;
                let gone: Vec<_> = self.edges.values().filter(|(edge, _)| of(edge)).cloned().collect();
                self.edges.retain(|_, (edge, _)| !of(edge));
                let edges_left = self.random.random_bool(0.5);
                if !edges_left {
                    out.extend(gone.into_iter().map(|(edge, id)| Mutation::DeleteEdge { edge, id }));
                }
                out.push(Mutation::DeleteVertex { gui, edges_left });
            }
            7 => {
                let Some((edge, id)) = edge else { return };
                self.edges.remove(&edge.sid);
                out.push(Mutation::DeleteEdge { edge, id });
            }
            8 => {
                let Some((edge, _)) = edge else { return };
                let value = Value::Long(self.random.random_range(0..20));
                out.push(Mutation::SetEdgeProperty { edge, key: Token(20), value });
            }
            _ => {
                let Some(gui) = self.live.iter().copied().choose(&mut self.random) else { return };
                let write = self.write();
                out.push(Mutation::SetVertexProperty { gui, write });
            }
        }
    }

    fn transaction(&mut self) -> Vec<Mutation> {
        self.version = self.version.next();
        let mut mutations = Vec::new();
        (0..self.random.random_range(1..6)).for_each(|_| self.one(&mut mutations));
        mutations
    }
}

fn at(version: Version) -> At {
    At { version, epoch: Epoch(0) }
}

type Links = Vec<(Direction, Gui, Sid, Token)>;

/// Returns everything known of the vertices of a store, and of edges that begin in it, sorted.
fn all_of(store: &Store, version: Version, guis: &[Gui]) -> Vec<String> {
    let at = at(version);
    let mut all = Vec::new();
    let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: true };
    let (mut rows, mut degrees) = (VertexRows::default(), Vec::new());
    store.vertices(at, &read, guis, &mut rows).unwrap();
    let both = Expand { loops_once: true, ..Expand::all(Direction::Both) };
    store.degrees(at, &both, guis, &mut degrees).unwrap();
    for (row, gui) in guis.iter().enumerate() {
        let mut links: Links = Vec::new();
        for direction in [Direction::Out, Direction::In] {
            let mut found = Expansion::default();
            store.expand(at, &Expand::all(direction), &[*gui], Cursor::default(), &mut found).unwrap();
            links.extend((0..found.len()).map(|n| {
                let link = found.at(n);
                (direction, link.neighbour, link.sid, link.label)
            }));
        }
        links.sort_by_key(|(direction, gui, sid, _)| (*direction == Direction::In, *gui, *sid));
        let mut cells: Vec<String> = rows.cells_of(row).iter().map(|cell| format!("{cell:?}")).collect();
        cells.sort();
        let (id, labels, degree) = (&rows.ids[row], rows.labels_of(row), degrees[row]);
        let first = rows.first_cell_of(row);
        let meta = rows.meta_of(first..first + rows.cells_of(row).len());
        let meta: Vec<String> = meta.iter().map(|one| format!("{:?} {:?}", one.key, one.value)).collect();
        all.push(format!(
            "{gui} {meta:?} {} {id} {labels:?} {cells:?} {degree} {links:?}",
            rows.present[row]
        ));
    }
    all
}

fn edges_of(store: &Store, version: Version) -> Vec<String> {
    let (mut edges, mut cursor) = (Vec::new(), Some(ScanCursor::default()));
    while let Some(from) = cursor {
        let scan = EdgeScan { max_rows: 50, ..EdgeScan::default() };
        cursor = store.scan_edge_rows(at(version), &scan, from, &mut edges).unwrap();
    }
    let read = EdgeRead { ids: true, properties: Projection::All };
    let mut rows = EdgeRows::default();
    store.edges(at(version), &read, &edges, &mut rows).unwrap();
    let row = |(row, edge): (usize, &Edge)| format!("{edge:?} {} {:?}", rows.ids[row], rows.cells_of(row));
    edges.iter().enumerate().map(row).collect()
}

fn same(whole: &Store, parts: &[Store], writer: &Writer, version: Version) {
    let guis: Vec<Gui> = writer.placed.values().map(|(gui, _)| *gui).collect();
    let (mut vertices, mut edges) = (0, Vec::new());
    for part in parts {
        let here: Vec<Gui> = guis.iter().copied().filter(|gui| part.holds(*gui)).collect();
        assert_eq!(all_of(part, version, &here), all_of(whole, version, &here), "at version {version}");
        let ids: Vec<Str> =
            writer.placed.iter().filter(|(_, (gui, _))| part.holds(*gui)).map(|(id, _)| id.clone()).collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        part.resolve_vertices(at(version), &ids, &mut ours).unwrap();
        whole.resolve_vertices(at(version), &ids, &mut theirs).unwrap();
        assert_eq!(ours, theirs, "at version {version}");
        vertices += here.len();
        edges.extend(edges_of(part, version));
    }
    assert_eq!(vertices, guis.len(), "each vertex is in one partition");
    let mut expected = edges_of(whole, version);
    edges.sort();
    expected.sort();
    assert_eq!(edges, expected, "at version {version}");
}

/// Expects that the id of each edge leads to the edge, once, in the store that has the entry of the id.
fn same_ids_of_edges(parts: &[Store], writer: &Writer) {
    let mut found = 0;
    for (edge, id) in writer.edges.values() {
        let Some(id) = id else { continue };
        let hash = GuiHasher::with_bits(BITS).edge_id(id);
        let part = parts.iter().find(|part| part.holds(hash)).unwrap();
        let mut candidates = EdgeCandidates::default();
        part.edge_candidates(at(writer.version), std::slice::from_ref(id), &mut candidates).unwrap();
        let places = candidates.of_row(0).filter(|place| *place == (edge.source, edge.sid));
        assert_eq!(places.count(), 1, "{id} of {edge:?}");
        found += 1;
    }
    assert!(found > 3, "{found} edges have ids");
}

fn totals(parts: &[Store]) -> (u64, u64) {
    parts.iter().map(Store::totals).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[test]
fn parts_answer_as_the_whole() {
    for seed in 0..8 {
        let (whole, parts, mut writer) = (Store::new(config()), parts(), Writer::new(seed));
        for _ in 0..300 {
            let mutations = writer.transaction();
            for store in parts.iter().chain([&whole]) {
                store.apply(writer.version, &mutations);
                store.publish(writer.version);
            }
        }
        same(&whole, &parts, &writer, writer.version);
        same(&whole, &parts, &writer, Version(writer.version.0 / 2));
        assert_eq!(totals(&parts), whole.totals(), "seed {seed}");
        assert_eq!(whole.totals(), (writer.live.len() as u64, writer.edges.len() as u64), "seed {seed}");
        assert!(writer.edges.len() > 20, "seed {seed} makes edges");
    }
}

#[test]
fn each_part_has_a_checkpoint_of_its_own() {
    let (whole, parts, mut writer) = (Store::new(config()), parts(), Writer::new(99));
    let objects = Objects::memory().unwrap();
    let batch = |stores: &[&Store], writer: &mut Writer| {
        for _ in 0..150 {
            let mutations = writer.transaction();
            for store in stores {
                store.apply(writer.version, &mutations);
                store.publish(writer.version);
            }
        }
    };
    let all: Vec<&Store> = parts.iter().chain([&whole]).collect();
    batch(&all, &mut writer);
    let prefix = |number: usize| format!("checkpoints/p{number:05}");
    for (number, part) in parts.iter().enumerate() {
        let meta =
            CheckpointMeta { graph: "g".into(), epoch: Epoch(1), next_sid: writer.next_sid, tokens: vec![] };
        part.checkpoint(writer.version, &objects, &prefix(number), meta).unwrap();
    }
    let restored: Vec<Store> = (0..parts.len())
        .map(|number| {
            let config =
                StoreConfig { scope: parts[number].config().scope, ..parts[number].config().clone() };
            checkpoint::restore_newest(&config, &objects, &prefix(number)).unwrap().unwrap().store
        })
        .collect();
    let all: Vec<&Store> = restored.iter().chain([&whole]).collect();
    batch(&all, &mut writer);
    same(&whole, &restored, &writer, writer.version);
    same_ids_of_edges(&restored, &writer);
    assert_eq!(totals(&restored), whole.totals());
}

/// An entry of an edge id is mostly in another store than the source of its edge, which alone knows whether the edge is
/// there.
#[test]
fn a_checkpoint_keeps_ids_of_edges_that_begin_in_other_parts() {
    let (parts, mut writer) = (parts(), Writer::new(3));
    let objects = Objects::memory().unwrap();
    let apply = |stores: &[Store], log: &[(Version, Vec<Mutation>)]| {
        for (version, mutations) in log {
            for store in stores {
                store.apply(*version, mutations);
                store.publish(*version);
            }
        }
    };
    let mut log = |count: usize| -> Vec<_> {
        let all = (0..count).map(|_| {
            let mutations = writer.transaction();
            (writer.version, mutations)
        });
        all.collect()
    };
    let (before, after) = (log(200), log(40));
    apply(&parts, &before);
    let checkpointed = before.last().unwrap().0;
    // Written while the log goes on.
    apply(&parts, &after);
    let meta = || CheckpointMeta { graph: "g".into(), epoch: Epoch(1), next_sid: 1, tokens: vec![] };
    let restored: Vec<Store> = (0..parts.len())
        .map(|number| {
            let prefix = format!("checkpoints/p{number:05}");
            parts[number].checkpoint(checkpointed, &objects, &prefix, meta()).unwrap();
            checkpoint::restore_newest(parts[number].config(), &objects, &prefix).unwrap().unwrap().store
        })
        .collect();
    apply(&restored, &after);
    same_ids_of_edges(&parts, &writer);
    same_ids_of_edges(&restored, &writer);
}

#[test]
fn a_checkpoint_of_another_partition_is_refused() {
    let (parts, objects) = (parts(), Objects::memory().unwrap());
    let prefix = |number: usize| format!("checkpoints/p{number:05}");
    // Both are empty, so only the manifest distinguishes them.
    for (number, part) in parts.iter().enumerate() {
        let meta = CheckpointMeta { graph: "g".into(), epoch: Epoch(1), next_sid: 1, tokens: vec![] };
        part.checkpoint(Version(0), &objects, &prefix(number), meta).unwrap();
    }
    for object in objects.list(&prefix(0)).unwrap() {
        let bytes = objects.get(&object.path).unwrap();
        objects.put(&object.path.replace(&prefix(0), &prefix(1)), bytes.to_vec()).unwrap();
    }
    let refused =
        checkpoint::restore_newest(parts[1].config(), &objects, &prefix(1)).unwrap_err().to_string();
    assert!(refused.contains(&format!("{}/manifest-", prefix(1))), "{refused}");
    assert!(refused.contains("it holds partition 0 of"), "{refused}");
    let of_all = StoreConfig { scope: None, ..parts[1].config().clone() };
    assert!(checkpoint::restore_newest(&of_all, &objects, &prefix(0)).is_err(), "it is not the whole graph");
    assert!(checkpoint::restore_newest(parts[0].config(), &objects, &prefix(0)).unwrap().is_some());
}

#[test]
fn a_load_is_divided_like_transactions() {
    let (whole, parts, mut writer) = (Store::new(config()), parts(), Writer::new(5));
    // As in a load: one kind of mutation after the other, exceptions first.
    let mut mutations: Vec<Mutation> = (0..2_000).flat_map(|_| writer.transaction()).collect();
    let gone: BTreeSet<Gui> = mutations
        .iter()
        .filter_map(|m| if let Mutation::DeleteVertex { gui, .. } = m { Some(*gui) } else { None })
        .collect();
    assert!(!gone.is_empty());
    mutations.retain(|m| {
        matches!(
            m,
            Mutation::AddException { .. } | Mutation::CreateVertex { .. } | Mutation::CreateEdge { .. }
        )
    });
    let rank = |m: &Mutation| match m {
        Mutation::AddException { .. } => 0,
        Mutation::CreateVertex { .. } => 1,
        _ => 2,
    };
    mutations.sort_by_key(rank);
    let version = Version(1);
    for store in parts.iter().chain([&whole]) {
        let outcome = store.apply_load_block(version, &mutations);
        assert!(outcome.edges_created > 100, "{outcome:?}");
        store.publish(version);
    }
    same(&whole, &parts, &writer, version);
    assert_eq!(totals(&parts), whole.totals());
}

/// Returns the partitions into which those of `parts` are split, each restored from the newest checkpoint of the
/// partition from which it comes.
fn children(objects: &Objects, count: u16) -> Vec<Store> {
    let partitions = PartitionCount::new(count).unwrap();
    let child = |partition: PartitionId| {
        let config = config().of_partition(Scope { partitions, partition });
        let prefix = format!("checkpoints/p{:05}", partition.0 & (PARTITIONS - 1));
        checkpoint::restore_newest(&config, objects, &prefix).unwrap().unwrap().store
    };
    partitions.all().map(child).collect()
}

fn write_checkpoints(parts: &[Store], objects: &Objects, writer: &Writer) {
    for part in parts {
        let partition = part.config().scope.unwrap().partition;
        let meta =
            CheckpointMeta { graph: "g".into(), epoch: Epoch(1), next_sid: writer.next_sid, tokens: vec![] };
        part.checkpoint(writer.version, objects, &format!("checkpoints/p{:05}", partition.0), meta).unwrap();
    }
}

/// Meta-properties of a vertex, so that rows have parts outside of columns.
fn annotated(writer: &Writer) -> Vec<Mutation> {
    let each = writer.live.iter().flat_map(|gui| {
        let (gui, key, value) = (*gui, Token(30), Value::string("a text that is longer than what fits"));
        let write = PropertyWrite { key, cardinality: Cardinality::Set, value: value.clone() };
        let meta = Some(Value::Long(gui.0 as i64));
        [
            Mutation::SetVertexProperty { gui, write },
            Mutation::SetMetaProperty { gui, key, of: value, nth: 0, meta_key: Token(31), value: meta },
        ]
    });
    each.collect()
}

#[test]
fn partitions_are_restored_from_the_checkpoint_of_the_one_they_come_from() {
    for (seed, count) in [(1, 8), (2, 16), (3, 64)] {
        let (whole, parts, mut writer) = (Store::new(config()), parts(), Writer::new(seed));
        let objects = Objects::memory().unwrap();
        let apply = |stores: &[&Store], writer: &Writer, mutations: &[Mutation]| {
            for store in stores {
                store.apply(writer.version, mutations);
                store.publish(writer.version);
            }
        };
        let all: Vec<&Store> = parts.iter().chain([&whole]).collect();
        for _ in 0..300 {
            let mutations = writer.transaction();
            apply(&all, &writer, &mutations);
        }
        writer.version = writer.version.next();
        apply(&all, &writer, &annotated(&writer));
        let index = IndexDefinition {
            name: "ages".into(),
            label: Token(1),
            key: Token(10),
            unique: false,
            unchecked: false,
        };
        writer.version = writer.version.next();
        apply(&all, &writer, &[Mutation::DefineIndex { index: index.clone() }]);
        write_checkpoints(&parts, &objects, &writer);
        let from = writer.version;
        let split = children(&objects, count);
        let all: Vec<&Store> = split.iter().chain([&whole]).collect();
        for _ in 0..100 {
            let mutations = writer.transaction();
            apply(&all, &writer, &mutations);
        }
        for version in from.0..=writer.version.0 {
            same(&whole, &split, &writer, Version(version));
        }
        assert_eq!(totals(&split), whole.totals(), "seed {seed}");
        let counts: Vec<Statistics> = split.iter().map(Store::counts).collect();
        let sum = |of: fn(&Statistics) -> &Vec<(Token, u64)>| {
            let mut sums: BTreeMap<Token, u64> = BTreeMap::new();
            counts.iter().flat_map(of).for_each(|(token, count)| *sums.entry(*token).or_default() += count);
            sums.retain(|_, count| *count > 0);
            sums.into_iter().collect::<Vec<_>>()
        };
        let expected = whole.counts();
        let there = |list: &[(Token, u64)]| list.iter().copied().filter(|(_, n)| *n > 0).collect::<Vec<_>>();
        assert_eq!(sum(|counts| &counts.vertices_by_label), there(&expected.vertices_by_label));
        assert_eq!(sum(|counts| &counts.edges_by_label), there(&expected.edges_by_label));
        let mut exceptions: Vec<(Str, Gui)> = split.iter().flat_map(Store::exceptions).collect();
        let mut expected = whole.exceptions();
        exceptions.sort();
        expected.sort();
        assert!(!expected.is_empty(), "seed {seed}: ids collide");
        assert_eq!(exceptions, expected, "each exception is in one partition");
        for store in &split {
            store.fill_indexes(&|| false).unwrap();
            assert!(store.indexes().iter().all(|known| known.complete && known.definition == index));
        }
        let entries = |store: &Store| store.indexes().iter().map(|index| index.entries).sum::<usize>();
        whole.fill_indexes(&|| false).unwrap();
        assert_eq!(split.iter().map(entries).sum::<usize>(), entries(&whole), "seed {seed}");
        // They write checkpoints of their own, which are whole, and others split those again.
        let objects = Objects::memory().unwrap();
        write_checkpoints(&split, &objects, &writer);
        let again: Vec<Store> = split
            .iter()
            .map(|store| {
                let partition = store.config().scope.unwrap().partition;
                let prefix = format!("checkpoints/p{:05}", partition.0);
                checkpoint::restore_newest(store.config(), &objects, &prefix).unwrap().unwrap().store
            })
            .collect();
        let finer = PartitionCount::new(4 * count).unwrap();
        let finer: Vec<Store> = finer
            .all()
            .map(|partition| {
                let config = config().of_partition(Scope { partitions: finer, partition });
                let prefix = format!("checkpoints/p{:05}", partition.0 & (count - 1));
                checkpoint::restore_newest(&config, &objects, &prefix).unwrap().unwrap().store
            })
            .collect();
        for stores in [&again, &finer] {
            same(&whole, stores, &writer, writer.version);
        }
    }
}

/// The vertices of the larger partition are read first, and then all of it: one place is enough for both, and both keep
/// to a bandwidth.
#[test]
fn all_reads_of_a_partition_that_comes_from_another_keep_to_the_limits() {
    let (parts, mut writer) = (parts(), Writer::new(4));
    for _ in 0..300 {
        let mutations = writer.transaction();
        for part in &parts {
            part.apply(writer.version, &mutations);
            part.publish(writer.version);
        }
    }
    let objects = Objects::memory().unwrap();
    write_checkpoints(&parts, &objects, &writer);
    let clock = Arc::new(ManualClock::default());
    // 1 KiB a second.
    let reads = checkpoint::RestoreReads::new(NonZeroUsize::MIN);
    let reads = Arc::new(reads.with_bandwidth(NonZeroU32::MIN, clock.clone()));
    let seconds = |count| {
        let partitions = PartitionCount::new(count).unwrap();
        let config = config().of_partition(Scope { partitions, partition: PartitionId(0) });
        let (config, before) = (StoreConfig { reads: reads.clone(), ..config }, clock.now());
        checkpoint::restore_newest(&config, &objects, "checkpoints/p00000").unwrap().unwrap();
        (clock.now() - before).as_secs_f64()
    };
    // The first 8 MiB may be read at once.
    let restores = (0..10_000).position(|_| seconds(PARTITIONS) > 0.0);
    assert!(restores.is_some_and(|restores| restores > 0), "{restores:?}");
    let (own, larger) = (seconds(PARTITIONS), seconds(2 * PARTITIONS));
    assert!(own >= 1.0, "{own} s");
    assert!(larger > own + 0.9 && larger < 2.0 * own, "{larger} s, {own} s for the partition itself");
}

#[test]
fn a_partition_takes_no_more_memory_than_its_share_of_the_one_it_comes_from() {
    let partitions = PartitionCount::new(PARTITIONS).unwrap();
    let hasher = GuiHasher::default();
    let config = |partitions, partition| {
        let config = StoreConfig::new(Arc::new(ManualClock::default()));
        StoreConfig { hasher, ..config }.of_partition(Scope { partitions, partition })
    };
    let parent = Store::new(config(partitions, PartitionId(0)));
    let vertices = (0..100_000).map(|n| {
        let id = Str::from(format!("v{n}"));
        let write = |key, value| PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value };
        let properties = vec![write(10, Value::Long(n)), write(11, Value::string(format!("name of {n}")))];
        Mutation::CreateVertex { gui: hasher.gui(&id), id, labels: vec![Token(1)], properties }
    });
    parent.apply_load_block(Version(1), &vertices.collect::<Vec<_>>());
    parent.publish(Version(1));
    let objects = Objects::memory().unwrap();
    let meta = CheckpointMeta { graph: "g".into(), epoch: Epoch(1), next_sid: 1, tokens: vec![] };
    parent.checkpoint(Version(1), &objects, "p", meta).unwrap();
    let eight = PartitionCount::new(8 * PARTITIONS).unwrap();
    let child = |number| {
        let config = config(eight, PartitionId(number * PARTITIONS));
        checkpoint::restore_newest(&config, &objects, "p").unwrap().unwrap().store
    };
    let children: Vec<Store> = (0..8).map(child).collect();
    assert_eq!(children.iter().map(|child| child.totals().0).sum::<u64>(), parent.totals().0);
    let (all, one) = (parent.memory_use().in_memory, children[0].memory_use().in_memory);
    // With the places of the larger partition it would take nearly as much as that one.
    assert!(one < all / 4, "{one} of {all} bytes");
}
