//! Checkpoints: the golden file of format 2, damage of every kind, aborted attempts, hubs.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_apl::{Apl, At, Cursor, Expand, Expansion, Projection, VertexRead, VertexRows};
use tidegraph_platform::{ManualClock, Objects};
use tidegraph_storage::checkpoint::{Format, prune, prune_below, restore_newest};
use tidegraph_storage::{CheckpointMeta, Error, Manifest, Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, ErrorCode, Gui, GuiHasher, Mutation, PartitionCount, PropertyWrite,
    Sid, Str, Temporal, Token, Value, Version,
};

fn config() -> StoreConfig {
    StoreConfig {
        partitions: PartitionCount::new(2).unwrap(),
        hasher: GuiHasher::default(),
        ..StoreConfig::new(Arc::new(ManualClock::default()))
    }
}

fn gui(id: &str) -> Gui {
    GuiHasher::default().gui(id)
}

fn vertex(id: &str, labels: &[u32], properties: &[(u32, Cardinality, Value)]) -> Mutation {
    Mutation::CreateVertex {
        gui: gui(id),
        id: id.into(),
        labels: labels.iter().copied().map(Token).collect(),
        properties: properties
            .iter()
            .map(|(key, cardinality, value)| PropertyWrite {
                key: Token(*key),
                cardinality: *cardinality,
                value: value.clone(),
            })
            .collect(),
    }
}

fn edge(sid: u64, source: &str, target: &str) -> Edge {
    Edge { sid: Sid(sid), source: gui(source), target: gui(target), label: Token(3) }
}

fn meta() -> CheckpointMeta {
    CheckpointMeta {
        graph: "people".into(),
        epoch: Epoch(7),
        next_sid: 900,
        tokens: [(1, "Person"), (2, "City"), (3, "LIVES_IN"), (4, "name"), (5, "born")]
            .map(|(token, name)| (Token(token), Str::from(name)))
            .to_vec(),
    }
}

/// Makes a small graph with every type of value.
fn sample() -> Store {
    let store = Store::new(config());
    let single = Cardinality::Single;
    let moment = "2024-02-29T12:00:00.000000001Z".parse().map(Value::DateTime).unwrap();
    store.apply(
        Version(41),
        &[
            vertex(
                "ada",
                &[1],
                &[
                    (4, single, "Ada".into()),
                    (5, single, moment),
                    (6, Cardinality::Set, Value::Int(1)),
                    (6, Cardinality::Set, Value::Int(2)),
                    (7, Cardinality::List, true.into()),
                    (7, Cardinality::List, true.into()),
                    (8, single, Value::Byte(-1)),
                    (9, single, Value::Short(-300)),
                    (10, single, Value::Long(i64::MIN)),
                    (11, single, Value::Float(1.5)),
                    (12, single, Value::Double(-0.1)),
                    (15, single, Value::Temporal(Temporal::Date("-000044-03-15".parse().unwrap()))),
                    (
                        16,
                        single,
                        Value::Temporal(Temporal::LocalDateTime("2024-02-29T23:59:59.5".parse().unwrap())),
                    ),
                ],
            ),
            vertex("london", &[2, 1], &[]),
            vertex("nowhere", &[], &[]),
            Mutation::CreateEdge {
                edge: edge(1, "ada", "london"),
                id: Some("e-1".into()),
                properties: vec![(Token(5), Value::Int(1840))],
            },
            Mutation::CreateEdge { edge: edge(2, "ada", "ada"), id: None, properties: vec![] },
            Mutation::AddException { id: "other".into(), gui: Gui(99) },
            note("ada", 4, "Ada".into(), 0, 13, "public".into()),
            note("ada", 7, true.into(), 1, 14, Value::Int(1840)),
            note("ada", 7, true.into(), 1, 13, Value::Double(0.5)),
        ],
    );
    store.publish(Version(41));
    store
}

/// Makes a meta-property.
fn note(id: &str, key: u32, of: Value, nth: u32, meta_key: u32, value: Value) -> Mutation {
    let (key, meta_key, value) = (Token(key), Token(meta_key), Some(value));
    Mutation::SetMetaProperty { gui: gui(id), key, of, nth, meta_key, value }
}

fn check_sample(store: &Store) {
    let at = At { version: Version(41), epoch: Epoch(0) };
    let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: true };
    let mut rows = VertexRows::default();
    store.vertices(at, &read, &[gui("ada"), gui("london"), gui("nowhere")], &mut rows).unwrap();
    assert_eq!(rows.ids, ["ada", "london", "nowhere"]);
    assert_eq!(rows.labels_of(1), [Token(2), Token(1)]);
    let shown: Vec<String> =
        rows.cells_of(0).iter().map(|c| format!("{} {:?} {:?}", c.key, c.cardinality, c.value)).collect();
    assert_eq!(
        shown,
        [
            "4 Single String(\"Ada\")",
            "5 Single DateTime(2024-02-29T12:00:00.000000001Z)",
            "6 Set Int(1)",
            "6 Set Int(2)",
            "7 List Bool(true)",
            "7 List Bool(true)",
            "8 Single Byte(-1)",
            "9 Single Short(-300)",
            "10 Single Long(-9223372036854775808)",
            "11 Single Float(1.5)",
            "12 Single Double(-0.1)",
            "15 Single Temporal(Date(-000044-03-15))",
            "16 Single Temporal(LocalDateTime(2024-02-29T23:59:59.5))"
        ]
    );
    let shown: Vec<String> =
        rows.meta.iter().map(|meta| format!("{} {} {:?}", meta.cell, meta.key, meta.value)).collect();
    assert_eq!(shown, ["0 13 String(\"public\")", "5 14 Int(1840)", "5 13 Double(0.5)"]);
    check_elements(store, at, 3);
}

const GOLDEN: &str = "../../contracts/golden/checkpoint-v2";

/// Writes two checkpoints: of the sample, and a newer one that builds upon it.
fn write_two(objects: &Objects) -> Store {
    let store = sample();
    store.checkpoint(Version(41), objects, "c", meta()).unwrap();
    store.apply(Version(42), &[vertex("late", &[1], &[])]);
    store.publish(Version(42));
    store.checkpoint(Version(42), objects, "c", meta()).unwrap();
    store
}

fn two() -> Objects {
    let objects = Objects::memory().unwrap();
    write_two(&objects);
    objects
}

fn check_both(store: &Store) {
    let at = At { version: Version(42), epoch: Epoch(0) };
    check_elements(store, at, 4);
    let mut rows = VertexRows::default();
    let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
    store.vertices(at, &read, &[gui("late")], &mut rows).unwrap();
    assert_eq!((&rows.ids[..], rows.labels_of(0)), (&["late".into()][..], &[Token(1)][..]));
}

#[test]
fn golden_checkpoints_of_format_2_are_read() {
    if std::env::var_os("TIDEGRAPH_WRITE_GOLDEN").is_some() {
        write_two(&Objects::local(GOLDEN.as_ref()).unwrap());
    }
    let objects = Objects::local(GOLDEN.as_ref()).unwrap();
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
    check_both(&restored.store);
    let Manifest { graph, version, epoch, next_sid, tokens, .. } = restored.manifest;
    assert_eq!((version, graph.as_str()), (Version(42), "people"));
    assert_eq!((epoch, next_sid, tokens), (meta().epoch, meta().next_sid, meta().tokens));
}

#[test]
fn the_bytes_of_format_2_do_not_change() {
    let golden = Objects::local(GOLDEN.as_ref()).unwrap();
    let objects = two();
    let ours = objects.list("c/").unwrap();
    assert_eq!(ours.len(), 6);
    for object in ours {
        let (ours, theirs) = (objects.get(&object.path).unwrap(), golden.get(&object.path).unwrap());
        assert_eq!(ours, theirs, "{}", object.path);
    }
}

#[test]
fn every_flipped_bit_and_every_truncation_is_found() {
    let objects = two();
    let listed: Vec<String> = objects.list("c/").unwrap().into_iter().map(|object| object.path).collect();
    let mut outcomes = [0; 3];
    for object in &listed {
        let newest = object.contains("0042-");
        let whole = objects.get(object).unwrap();
        let mut damaged = Vec::new();
        for at in 0..whole.len() {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << (at % 8);
            damaged.push(bytes);
            damaged.push(whole[..at].to_vec());
        }
        damaged.push([&whole[..], b"x"].concat());
        for bytes in damaged {
            objects.put(object, bytes.clone()).unwrap();
            let (refused, outcome) = match restore_newest(&config(), &objects, "c") {
                Ok(Some(restored)) if restored.manifest.version == Version(42) => {
                    // The newer checkpoint needs no chunk of it.
                    assert!(!newest);
                    check_both(&restored.store);
                    (None, 0)
                }
                Ok(Some(restored)) => {
                    assert!(newest, "{object} is in both");
                    check_sample(&restored.store);
                    let [refused] = &restored.refused[..] else { panic!("{:?}", restored.refused) };
                    assert!(refused.manifest.contains("0042-"));
                    (restored.refused.into_iter().next().map(|refused| refused.error), 1)
                }
                Ok(None) => panic!("there are checkpoints"),
                // Both checkpoints use the object.
                Err(error) => {
                    assert!(!newest);
                    (Some(error), 2)
                }
            };
            outcomes[outcome] += 1;
            if let Some(error) = refused {
                assert_eq!(error.code(), ErrorCode::Corrupt);
                assert!(error.to_string().contains(object.as_str()), "{object}: {error}");
                if let Error::Damaged { offset, .. } = error {
                    assert!(offset <= whole.len() as u64);
                    assert!(error.to_string().contains(&format!("at byte {offset}")));
                }
            }
        }
        objects.put(object, whole).unwrap();
    }
    assert!(outcomes.iter().all(|count| *count > 100), "{outcomes:?}");
    assert_eq!(restore_newest(&config(), &objects, "c").unwrap().unwrap().manifest.version, Version(42));
}

/// Returns the bytes of the objects that a checkpoint wrote itself, and the number of older ones that it uses.
fn own_bytes(manifest: &Manifest) -> (u64, usize) {
    let own = manifest.partitions.iter().map(|partition| partition.objects[0].bytes).sum();
    (own, manifest.partitions.iter().map(|partition| partition.objects.len() - 1).sum())
}

/// Makes a graph of many vertices, each with a property and two edges.
fn ring(vertices: u64) -> Store {
    let store = Store::new(config());
    let id = |n: u64| format!("v{}", n % vertices);
    let all = (0..vertices).map(|n| vertex(&id(n), &[1], &[(4, Cardinality::Single, Value::Long(n as i64))]));
    store.apply(Version(1), &all.collect::<Vec<_>>());
    let edges = (0..vertices * 2).map(|n| Mutation::CreateEdge {
        edge: edge(n + 1, &id(n / 2), &id(n / 2 + 1 + n % 2)),
        id: (n % 5 == 0).then(|| format!("e{n}").into()),
        properties: vec![],
    });
    store.apply(Version(1), &edges.collect::<Vec<_>>());
    store.publish(Version(1));
    store
}

fn set_property(id: &str, value: i64) -> Mutation {
    let write = PropertyWrite { key: Token(4), cardinality: Cardinality::Single, value: Value::Long(value) };
    Mutation::SetVertexProperty { gui: gui(id), write }
}

fn value_of(store: &Store, id: &str) -> Option<Value> {
    let at = At { version: store.published(), epoch: Epoch(0) };
    let read = VertexRead { properties: Projection::All, ..VertexRead::default() };
    let mut rows = VertexRows::default();
    store.vertices(at, &read, &[gui(id)], &mut rows).unwrap();
    rows.cells_of(0).iter().map(|cell| cell.value.clone()).next()
}

fn check_elements(store: &Store, at: At, vertices: u64) {
    let mut edges = Vec::new();
    store.resolve_edges(at, &["e-1".into(), "e-2".into()], &mut edges).unwrap();
    assert_eq!(edges, [Some(edge(1, "ada", "london")), None]);
    assert_eq!((store.statistics().vertices, store.statistics().edges), (vertices, 2));
    assert_eq!(store.exceptions(), [("other".into(), Gui(99))]);
}

#[test]
fn only_what_changed_is_written_also_after_a_restart() {
    let (objects, store) = (Objects::memory().unwrap(), ring(20_000));
    let (whole, older) = own_bytes(&store.checkpoint(Version(1), &objects, "c", meta()).unwrap());
    assert_eq!(older, 0);
    let same = store.checkpoint(Version(1), &objects, "c", meta()).unwrap();
    let (nothing, older) = own_bytes(&same);
    assert!(nothing < whole / 20 && older == 2, "{nothing} of {whole}");
    store.apply(Version(2), &[set_property("v7", -7)]);
    store.publish(Version(2));
    let (little, older) = own_bytes(&store.checkpoint(Version(2), &objects, "c", meta()).unwrap());
    assert!(little > nothing && little < whole / 10 && older == 2, "{little} of {whole}");
    // A restart in between makes no difference.
    let mut store = restore_newest(&config(), &objects, "c").unwrap().unwrap().store;
    for version in 3..6 {
        let late = format!("late{version}");
        let edge = edge(100_000 + version, &late, "v9");
        store.apply(
            Version(version),
            &[
                set_property("v7", -(version as i64)),
                vertex(&late, &[1], &[]),
                Mutation::CreateEdge { edge, id: Some(late.as_str().into()), properties: vec![] },
            ],
        );
        store.publish(Version(version));
        let manifest = store.checkpoint(Version(version), &objects, "c", meta()).unwrap();
        let (little, older) = own_bytes(&manifest);
        assert!(little < whole / 5 && older >= 2, "{little} of {whole}");
        prune(&objects, "c", 1).unwrap();
        let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
        assert_eq!((&restored.manifest, restored.refused.len()), (&manifest, 0));
        assert_eq!(restored.store.counts(), store.counts());
        assert_eq!(value_of(&restored.store, "v7"), Some(Value::Long(-(version as i64))));
        assert_eq!(value_of(&restored.store, "v8"), Some(Value::Long(8)));
        let at = At { version: Version(version), epoch: Epoch(0) };
        let mut edges = Vec::new();
        restored.store.resolve_edges(at, &[late.as_str().into(), "e5".into()], &mut edges).unwrap();
        assert!(edges.iter().all(Option::is_some), "{edges:?}");
        store = restored.store;
    }
    // At another location everything is written.
    let elsewhere = Objects::memory().unwrap();
    let (all, older) = own_bytes(&store.checkpoint(Version(5), &elsewhere, "c", meta()).unwrap());
    assert!(all > whole * 9 / 10 && older == 0, "{all} of {whole}");
}

#[test]
fn what_is_written_again_is_told_from_what_is_new() {
    let (objects, store) = (Objects::memory().unwrap(), ring(20_000));
    let checkpoint = |version: u64, changes: Vec<Mutation>| {
        store.apply(Version(version), &changes);
        store.publish(Version(version));
        let manifest = store.checkpoint(Version(version), &objects, "c", meta()).unwrap();
        (own_bytes(&manifest).0, store.rewritten_bytes())
    };
    store.checkpoint(Version(1), &objects, "c", meta()).unwrap();
    assert_eq!(store.rewritten_bytes(), 0);
    let value = |n: u64| (4, Cardinality::Single, Value::Long(n as i64));
    let new = (0..20_000).map(|n| vertex(&format!("new{n}"), &[1], &[value(n)])).collect();
    let (written, again) = checkpoint(2, new);
    assert!(again < written / 4, "{again} of {written}");
    let everywhere = (0..20_000).map(|n| set_property(&format!("v{n}"), -1)).collect();
    let (written, again) = checkpoint(3, everywhere);
    assert!(again > written * 9 / 10, "{again} of {written}");
    let (_, again) = checkpoint(4, vec![]);
    assert_eq!(again, 0);
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap().store;
    assert_eq!(restored.rewritten_bytes(), 0);
}

#[test]
fn old_objects_do_not_pile_up() {
    let vertices = 20_000;
    let (objects, store) = (Objects::memory().unwrap(), ring(vertices));
    let (whole, _) = own_bytes(&store.checkpoint(Version(1), &objects, "c", meta()).unwrap());
    for version in 2..60 {
        // Changes another part of the graph each time.
        let first = version * 997;
        let changes =
            (first..first + 300).map(|n| set_property(&format!("v{}", n % vertices), version as i64));
        store.apply(Version(version), &changes.collect::<Vec<_>>());
        store.publish(Version(version));
        let manifest = store.checkpoint(Version(version), &objects, "c", meta()).unwrap();
        prune(&objects, "c", 1).unwrap();
        assert!(manifest.partitions.iter().all(|partition| partition.objects.len() <= 16));
        let stored: u64 = objects.list("c/").unwrap().iter().map(|object| object.bytes).sum();
        assert!(stored < whole * 5 / 2, "{stored} bytes are kept for a graph of {whole}");
    }
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap().store;
    for n in (0..vertices).step_by(777) {
        let id = format!("v{n}");
        assert_eq!(value_of(&restored, &id), value_of(&store, &id));
    }
}

#[test]
fn a_missing_object_refuses_its_checkpoint() {
    let objects = two();
    let manifest = Manifest::latest(&objects, "c").unwrap().unwrap();
    assert_eq!(manifest.version, Version(42));
    let missing = &manifest.partitions[1].objects[0].path;
    objects.delete(missing).unwrap();
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
    assert_eq!(restored.manifest.version, Version(41));
    assert!(restored.refused[0].error.to_string().contains("partition-00001"), "{:?}", restored.refused);
    // If none is left, that is an error, not an empty graph.
    objects.delete(&restored.manifest.partitions[0].objects[0].path).unwrap();
    assert!(restore_newest(&config(), &objects, "c").is_err());
    assert!(restore_newest(&config(), &objects, "elsewhere").unwrap().is_none());
}

#[test]
fn another_format_is_named() {
    let objects = two();
    let manifest = Manifest::latest(&objects, "c").unwrap().unwrap();
    assert_eq!(manifest.format, Format::WRITTEN);
    let partition = &manifest.partitions[0].objects[0].path;
    for object in [&manifest.object, partition] {
        let whole = objects.get(object).unwrap();
        for format in [1, 3] {
            let mut bytes = whole.to_vec();
            bytes[7] = format;
            objects.put(object, bytes).unwrap();
            let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
            let error = &restored.refused[0].error;
            assert!(matches!(error, Error::UnknownFormat { found, .. } if *found == u32::from(format)));
            let text = error.to_string();
            assert!(text.contains(&format!("{object} has format {format}, this release reads 2")), "{text}");
        }
        objects.put(object, whole).unwrap();
    }
    assert!(restore_newest(&config(), &objects, "c").unwrap().unwrap().refused.is_empty());
}

/// The error names the object, and its source is the error of the other crate.
#[test]
fn damage_keeps_its_cause() {
    let objects = two();
    let manifest = Manifest::latest(&objects, "c").unwrap().unwrap();
    let mut bytes = objects.get(&manifest.object).unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    objects.put(&manifest.object, bytes).unwrap();
    let error = Manifest::read(&objects, &manifest.object).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap();
    let cause = cause.downcast_ref::<tidegraph_wire::Error>();
    assert!(matches!(cause, Some(tidegraph_wire::Error::BadChecksum { .. })), "{error}");
}

#[test]
fn prune_keeps_the_newest_and_removes_leftovers() {
    let objects = two();
    objects.put("c/data-00000000000000000040-000000/partition-00000", "left over").unwrap();
    objects.put("c/data-00000000000000000043-000000/partition-00000", "under way").unwrap();
    assert_eq!(prune(&objects, "c", 2).unwrap(), 1);
    // The older manifest is deleted. Objects that the newer one uses stay.
    let manifest = Manifest::latest(&objects, "c").unwrap().unwrap();
    let (_, older) = own_bytes(&manifest);
    assert_eq!(prune(&objects, "c", 1).unwrap(), 3 - older);
    let left: Vec<_> = objects.list("c/").unwrap().into_iter().map(|object| object.path).collect();
    assert_eq!(left.len(), 4 + older, "{left:?}");
    assert!(restore_newest(&config(), &objects, "c").unwrap().is_some());
    // A damaged manifest is no reason to remove the complete one.
    objects.put("c/manifest-00000000000000000044-000000", "rubbish").unwrap();
    prune(&objects, "c", 1).unwrap();
    assert_eq!(restore_newest(&config(), &objects, "c").unwrap().unwrap().manifest.version, Version(42));
}

/// The checkpoint of version 42 builds on that of 41: objects below 42 belong to it.
#[test]
fn what_a_newer_checkpoint_uses_is_not_below_it() {
    let objects = two();
    let paths =
        || -> Vec<String> { objects.list("c/").unwrap().into_iter().map(|object| object.path).collect() };
    let used: Vec<String> = {
        let manifest = Manifest::latest(&objects, "c").unwrap().unwrap();
        manifest
            .partitions
            .into_iter()
            .flat_map(|partition| partition.objects)
            .map(|object| object.path)
            .collect()
    };
    assert!(used.iter().any(|path| path.contains("data-00000000000000000041")), "{used:?}");
    objects.put("c/data-00000000000000000043-000000/partition-00000", "under way").unwrap();
    assert!(prune_below(&objects, "c", Version(42), false).unwrap() > 0);
    let left = paths();
    assert!(used.iter().all(|path| left.contains(path)), "{used:?} {left:?}");
    assert_eq!(restore_newest(&config(), &objects, "c").unwrap().unwrap().manifest.version, Version(42));
    // A process that is writing may build on the newest, and its own objects are not in a manifest yet.
    assert_eq!(prune_below(&objects, "c", Version(50), true).unwrap(), 0);
    assert_eq!(paths(), left);
    assert_eq!(prune_below(&objects, "c", Version(50), false).unwrap(), left.len());
    assert_eq!(paths(), Vec::<String>::new());
    objects.put("c/data-00000000000000000043-000000/partition-00000", "the first, under way").unwrap();
    assert_eq!(prune_below(&objects, "c", Version(50), true).unwrap(), 0);
}

#[test]
fn a_version_can_be_written_again_and_never_overwrites() {
    let (objects, store) = (Objects::memory().unwrap(), sample());
    let first = store.checkpoint(Version(41), &objects, "c", meta()).unwrap();
    let second = store.checkpoint(Version(41), &objects, "c/", meta()).unwrap();
    assert!(first.object < second.object);
    assert_eq!(objects.list("c/").unwrap().len(), 6);
    assert_eq!(Manifest::latest(&objects, "c").unwrap().unwrap(), second);
    let error = store.checkpoint(Version(42), &objects, "c", meta()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
}

#[test]
fn a_hub_goes_over_many_blocks() {
    let store = Store::new(config());
    let mut mutations = vec![vertex("ada", &[1], &[(4, Cardinality::Single, "Ada".into())])];
    for i in 0..20_000_u64 {
        let id = format!("v{}", i % 100);
        if i < 100 {
            mutations.push(vertex(&id, &[2], &[]));
        }
        let edge = Edge { label: Token(3 + (i % 2) as u32), ..edge(i + 1, "ada", &id) };
        mutations.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
    }
    store.apply(Version(1), &mutations);
    store.publish(Version(1));
    let objects = Objects::memory().unwrap();
    store.checkpoint(Version(1), &objects, "c", meta()).unwrap();
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap().store;
    let at = At { version: Version(1), epoch: Epoch(0) };
    let mut out = Expansion::default();
    let request = Expand::all(Direction::Out);
    assert_eq!(restored.expand(at, &request, &[gui("ada")], Cursor::default(), &mut out).unwrap(), None);
    assert_eq!(out.len(), 20_000);
    assert_eq!(restored.counts(), store.counts());
}
