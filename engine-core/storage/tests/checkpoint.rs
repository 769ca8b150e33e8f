//! Checkpoints: the golden file of format 1, damage of every kind, attempts that broke off, hubs.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use tidegraph_apl::{Apl, At, Cursor, Expand, Expansion, Projection, VertexRead, VertexRows};
use tidegraph_platform::{ManualClock, Objects};
use tidegraph_storage::checkpoint::{prune, restore_newest};
use tidegraph_storage::{CheckpointMeta, Error, Manifest, Store, StoreConfig};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, ErrorCode, Gui, GuiHasher, Mutation, PartitionCount, PropertyWrite,
    Sid, Str, Token, Value, Version,
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

/// A small graph with every type of value.
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
        ],
    );
    store.publish(Version(41));
    store
}

fn check_sample(store: &Store) {
    let at = At { version: Version(41), epoch: Epoch(0) };
    let read = VertexRead { ids: true, labels: true, properties: Projection::All };
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
            "12 Single Double(-0.1)"
        ]
    );
    let mut edges = Vec::new();
    store.resolve_edges(at, &["e-1".into(), "e-2".into()], &mut edges).unwrap();
    assert_eq!(edges, [Some(edge(1, "ada", "london")), None]);
    assert_eq!((store.statistics().vertices, store.statistics().edges), (3, 2));
    assert_eq!(store.exceptions(), [("other".into(), Gui(99))]);
}

#[test]
fn golden_checkpoint_of_format_1_is_read() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts/golden/checkpoint-v1");
    if std::env::var_os("TIDEGRAPH_WRITE_GOLDEN").is_some() {
        let objects = Objects::local(golden.as_ref()).unwrap();
        sample().checkpoint(Version(41), &objects, "c", meta()).unwrap();
    }
    let objects = Objects::local(golden.as_ref()).unwrap();
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
    check_sample(&restored.store);
    let Manifest { graph, version, epoch, next_sid, tokens, .. } = restored.manifest;
    assert_eq!((version, graph.as_str()), (Version(41), "people"));
    assert_eq!((epoch, next_sid, tokens), (meta().epoch, meta().next_sid, meta().tokens));
}

#[test]
fn the_bytes_of_format_1_do_not_change() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts/golden/checkpoint-v1");
    let golden = Objects::local(golden.as_ref()).unwrap();
    let objects = Objects::memory().unwrap();
    sample().checkpoint(Version(41), &objects, "c", meta()).unwrap();
    for object in objects.list("c/").unwrap() {
        let (ours, theirs) = (objects.get(&object.path).unwrap(), golden.get(&object.path).unwrap());
        assert_eq!(ours, theirs, "{}", object.path);
    }
}

/// Two checkpoints: of the sample, and one that is newer.
fn two() -> Objects {
    let objects = Objects::memory().unwrap();
    let store = sample();
    store.checkpoint(Version(41), &objects, "c", meta()).unwrap();
    store.apply(Version(42), &[vertex("late", &[1], &[])]);
    store.publish(Version(42));
    store.checkpoint(Version(42), &objects, "c", meta()).unwrap();
    objects
}

#[test]
fn every_flipped_bit_and_every_truncation_is_found() {
    let objects = two();
    let newest: Vec<String> = objects
        .list("c/")
        .unwrap()
        .into_iter()
        .map(|object| object.path)
        .filter(|path| path.contains("0042-"))
        .collect();
    assert_eq!(newest.len(), 3);
    for object in &newest {
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
            let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
            assert_eq!(restored.manifest.version, Version(41), "the one before is used");
            check_sample(&restored.store);
            let [refused] = &restored.refused[..] else { panic!("{:?}", restored.refused) };
            assert!(refused.manifest.contains("0042-"));
            assert_eq!(refused.error.code(), ErrorCode::Corrupt);
            if let Error::Damaged { object: named, offset, .. } = &refused.error {
                assert_eq!(named, object);
                assert!(*offset <= whole.len() as u64);
                assert!(refused.error.to_string().contains(&format!("at byte {offset}")));
            }
        }
        objects.put(object, whole).unwrap();
    }
    assert_eq!(restore_newest(&config(), &objects, "c").unwrap().unwrap().manifest.version, Version(42));
}

#[test]
fn a_missing_object_refuses_its_checkpoint() {
    let objects = two();
    let manifest = Manifest::latest(&objects, "c").unwrap().unwrap();
    assert_eq!(manifest.version, Version(42));
    objects.delete(&manifest.partitions[1].object).unwrap();
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
    assert_eq!(restored.manifest.version, Version(41));
    assert!(restored.refused[0].error.to_string().contains("partition-00001"), "{:?}", restored.refused);
    // And when nothing is left, that is an error, not an empty graph.
    objects.delete(&restored.manifest.partitions[0].object).unwrap();
    assert!(restore_newest(&config(), &objects, "c").is_err());
    assert!(restore_newest(&config(), &objects, "elsewhere").unwrap().is_none());
}

#[test]
fn a_newer_format_is_named() {
    let objects = two();
    let manifest = Manifest::latest(&objects, "c").unwrap().unwrap();
    let mut bytes = objects.get(&manifest.object).unwrap().to_vec();
    bytes[7] = 2;
    objects.put(&manifest.object, bytes).unwrap();
    let restored = restore_newest(&config(), &objects, "c").unwrap().unwrap();
    let text = restored.refused[0].error.to_string();
    assert!(text.contains("has format 2, this release reads 1"), "{text}");
}

#[test]
fn prune_keeps_the_newest_and_removes_leftovers() {
    let objects = two();
    objects.put("c/data-00000000000000000040-000000/partition-00000", "left over").unwrap();
    objects.put("c/data-00000000000000000043-000000/partition-00000", "under way").unwrap();
    assert_eq!(prune(&objects, "c", 2).unwrap(), 1);
    assert_eq!(prune(&objects, "c", 1).unwrap(), 3);
    let left: Vec<_> = objects.list("c/").unwrap().into_iter().map(|object| object.path).collect();
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(restore_newest(&config(), &objects, "c").unwrap().is_some());
    // A damaged manifest is no reason to throw the whole one away.
    objects.put("c/manifest-00000000000000000044-000000", "rubbish").unwrap();
    prune(&objects, "c", 1).unwrap();
    assert_eq!(restore_newest(&config(), &objects, "c").unwrap().unwrap().manifest.version, Version(42));
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
    assert_eq!(restored.statistics(), store.statistics());
}
