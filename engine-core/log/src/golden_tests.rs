//! Bytes that released versions wrote, and their content as JSON: `contracts/golden/log-v1.{bin,json}`.
//!
//! `TIDEGRAPH_BLESS=1 cargo test -p tidegraph-log golden` writes them again. Do so only
//! for a new format: files of old formats stay, and stay readable.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]

use crate::record::{self, PREFIX_BYTES, Prefix, Signal};
use crate::testing::read_all;
use crate::{Body, FileLog, FileLogOptions, LogStore, Record};
use prost_reflect::{DescriptorPool, DynamicMessage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_platform::FaultyDisk;
use tidegraph_types::point::Crs;
use tidegraph_types::{
    Cardinality, Change, Changed, Changes, Edge, Epoch, Gui, IndexDefinition, Mutation, Point, PropertyWrite,
    RequestId, ShardId, Sid, Temporal, Token, Value, Version, temporal,
};
use tidegraph_wire::frame::{self, FrameReader};

fn contracts() -> PathBuf {
    Path::new("../../contracts").to_owned()
}

/// Returns records of one epoch in the first shard, whose versions count from 1.
fn numbered(epoch: Epoch, bodies: impl IntoIterator<Item = Body>) -> Vec<Record> {
    let record = |(version, body)| Record { shard: ShardId(0), epoch, version: Version(version), body };
    (1..).zip(bodies).map(record).collect()
}

/// Returns a record of each kind, with a mutation of each kind and a value of each kind.
fn records() -> Vec<Record> {
    let at = "2026-11-21T12:00:00.000000001Z".parse().unwrap();
    let values = [
        Value::Bool(true),
        Value::Byte(-128),
        Value::Short(-32_768),
        Value::Int(-1),
        Value::Long(i64::MIN),
        Value::Float(1.5),
        Value::Double(-0.0),
        Value::string("grüße"),
        Value::DateTime(at),
    ];
    let cardinalities = [Cardinality::Single, Cardinality::Set, Cardinality::List];
    let properties = (0..).zip(values).map(|(i, value)| PropertyWrite {
        key: Token(10 + i),
        cardinality: cardinalities[i as usize % 3],
        value,
    });
    let edge = Edge { sid: Sid(1000), source: Gui(1), target: Gui(u64::MAX), label: Token(2) };
    let write = PropertyWrite { key: Token(3), cardinality: Cardinality::Set, value: Value::Int(5) };
    let mutations = vec![
        Mutation::CreateVertex {
            gui: Gui(1),
            id: "v1".into(),
            labels: vec![Token(0), Token(1)],
            properties: properties.collect(),
        },
        Mutation::AddLabels { gui: Gui(1), labels: vec![Token(4)] },
        Mutation::RemoveLabels { gui: Gui(1), labels: vec![Token(0)] },
        Mutation::SetVertexProperty { gui: Gui(1), write },
        Mutation::RemoveVertexProperty { gui: Gui(1), key: Token(3), value: Some(Value::Int(5)) },
        Mutation::RemoveVertexProperty { gui: Gui(1), key: Token(3), value: None },
        Mutation::CreateEdge {
            edge,
            id: Some("e1".into()),
            properties: vec![(Token(5), Value::Double(0.5))],
        },
        Mutation::SetEdgeProperty { edge, key: Token(5), value: Value::Double(0.25) },
        Mutation::RemoveEdgeProperty { edge, key: Token(5) },
        Mutation::DeleteEdge { edge, id: Some("e1".into()) },
        Mutation::DeleteVertex { gui: Gui(1), edges_left: false },
        Mutation::AddException { id: "collides".into(), gui: Gui(77) },
    ];
    let assigned = vec![(Token(0), "Person".into()), (Token(1), "Employee".into())];
    let bodies = [
        Body::EpochStart,
        Body::Tokens { assigned },
        Body::Commit { mutations, next_sid: Sid(1001), request: None, changes: None },
        Body::Load {
            load_id: "load-1".into(),
            segments: vec!["loads/load-1/0000.seg".into()],
            next_sid: Sid(5000),
        },
    ];
    numbered(Epoch(3), bodies)
}

/// Returns records with mutations of kinds that are newer than the first file.
fn index_records() -> Vec<Record> {
    let index = IndexDefinition {
        name: "by email".into(),
        label: Token(1),
        key: Token(2),
        unique: true,
        unchecked: false,
    };
    let mutations = vec![Mutation::DefineIndex { index }, Mutation::DropIndex { name: "by email".into() }];
    let bodies =
        [Body::EpochStart, Body::Commit { mutations, next_sid: Sid(1), request: None, changes: None }];
    numbered(Epoch(1), bodies)
}

fn reset_records() -> Vec<Record> {
    let bodies = [
        Body::EpochStart,
        Body::Commit { mutations: vec![Mutation::Reset], next_sid: Sid(1), request: None, changes: None },
    ];
    numbered(Epoch(1), bodies)
}

/// Returns records with a value of each type that is newer than the first file.
fn value_records() -> Vec<Record> {
    let date = temporal::parse_date("1815-12-10").unwrap();
    let time = temporal::parse_local_time("12:34:56.000000789").unwrap();
    let zoned = |text: &str| {
        temporal::zoned(temporal::parse_zoned(text).unwrap().resolve(&jiff::tz::TimeZone::UTC).unwrap())
    };
    let duration = |text: &str| Temporal::Duration(Arc::new(temporal::Duration::parse(text).unwrap()));
    let point = |crs, coordinates: &[f64]| Value::Point(Arc::new(Point::new(crs, coordinates).unwrap()));
    let values = [
        Value::Temporal(Temporal::Date(date)),
        Value::Temporal(Temporal::LocalTime(time)),
        Value::Temporal(Temporal::Time(temporal::parse_time("12:34-02:30").unwrap())),
        Value::Temporal(Temporal::LocalDateTime(date.to_datetime(time))),
        zoned("2024-03-31T02:30+01:00"),
        zoned("2024-03-31T03:30[Europe/Berlin]"),
        Value::Temporal(duration("P14M-3DT-4.5S")),
        point(Crs::Cartesian, &[1.5, -2.0]),
        point(Crs::Wgs843d, &[12.5, 55.7, 3.0]),
        Value::list(vec![]),
        Value::list(vec!["a".into(), "b".into()]),
        Value::list(vec![Value::Temporal(Temporal::Date(date))]),
    ];
    let properties = (0..).zip(values).map(|(i, value)| PropertyWrite {
        key: Token(10 + i),
        cardinality: Cardinality::Single,
        value,
    });
    let mutations = vec![Mutation::CreateVertex {
        gui: Gui(1),
        id: "v1".into(),
        labels: vec![Token(0)],
        properties: properties.collect(),
    }];
    let bodies =
        [Body::EpochStart, Body::Commit { mutations, next_sid: Sid(1), request: None, changes: None }];
    numbered(Epoch(1), bodies)
}

fn meta_records() -> Vec<Record> {
    let meta = |of, nth, value| Mutation::SetMetaProperty {
        gui: Gui(1),
        key: Token(2),
        of,
        nth,
        meta_key: Token(3),
        value,
    };
    let mutations =
        vec![meta("Ada".into(), 0, Some("public".into())), meta(Value::Int(7), 2, Some(Value::Double(0.5)))];
    let removed = vec![meta(Value::Int(7), 2, None)];
    let bodies = [
        Body::EpochStart,
        Body::Commit { mutations, next_sid: Sid(1), request: None, changes: None },
        Body::Commit { mutations: removed, next_sid: Sid(1), request: None, changes: None },
    ];
    numbered(Epoch(1), bodies)
}

/// Returns records with the fields that were added for the fleet: ids of requests, and
/// SIDs that other processes hold.
fn fleet_records() -> Vec<Record> {
    let mutations = vec![Mutation::DeleteVertex { gui: Gui(1), edges_left: false }];
    let request = Some(RequestId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff));
    let bodies = [
        Body::EpochStart,
        Body::Reserve { next_sid: Sid(65_537) },
        Body::Commit { mutations, next_sid: Sid(1), request, changes: None },
    ];
    numbered(Epoch(1), bodies)
}

/// Returns the file as JSON: fixed fields by name, bodies as protobuf's own JSON, decoded
/// without the code under test.
fn describe(bytes: &[u8]) -> serde_json::Value {
    let root = contracts().join("proto");
    let files = protox::compile([root.join("tidegraph/v1/log.proto")], [root]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    let body = pool.get_message_by_name("tidegraph.v1.LogBody").unwrap();
    let header = crate::file::FileHeader::parse(&bytes[..36]).unwrap();
    let mut frames = FrameReader::at(&bytes[36..], 36);
    let mut records = Vec::new();
    loop {
        let offset = frames.offset();
        let Some(payload) = frames.next_frame().unwrap() else { break };
        let prefix = Prefix::parse(payload).unwrap();
        records.push(serde_json::json!({
            "offset": offset,
            "shard": prefix.shard,
            "epoch": prefix.epoch,
            "version": prefix.version,
            "durable_bytes": prefix.durable_bytes,
            "body": DynamicMessage::decode(body.clone(), &payload[PREFIX_BYTES..]).unwrap(),
        }));
    }
    serde_json::json!({
        "format": crate::file::FORMATS.newest,
        "shard": header.shard,
        "first_version": header.first,
        "epoch": header.epoch,
        "records": records,
    })
}

#[test]
fn golden_file_of_format_1() {
    golden("log-v1", &records());
}

#[test]
fn golden_file_of_indexes() {
    golden("log-v1-indexes", &index_records());
}

#[test]
fn golden_file_of_a_reset() {
    golden("log-v1-reset", &reset_records());
}

#[test]
fn golden_file_of_temporal_values_points_and_lists() {
    golden("log-v1-values", &value_records());
}

#[test]
fn golden_file_of_meta_properties() {
    golden("log-v1-meta", &meta_records());
}

/// The messages of one of several shards. Kafka stores them without frames; here they are in the frames of a file.
#[test]
fn golden_file_of_one_shard_of_several() {
    let (shard, epoch) = (ShardId(1), Epoch(3));
    let signal = |signal, complete, out: &mut Vec<u8>| {
        let prefix = Prefix { shard, epoch, version: Version(0), durable_bytes: complete };
        record::encode_signal(signal, prefix, out).unwrap();
    };
    let part = |version, mutations, places: &[u32], complete, out: &mut Vec<u8>| {
        let body = Body::Commit { mutations, next_sid: Sid(7), request: None, changes: None };
        let record = Record { shard, epoch, version: Version(version), body };
        record::encode_part(&record, places, complete, out).unwrap();
    };
    let deleted = |gui| Mutation::DeleteVertex { gui: Gui(gui), edges_left: false };
    let mut payloads: Vec<Vec<u8>> = vec![Vec::new(); 5];
    signal(Signal::Fence, 4, &mut payloads[0]);
    let begun = Record { shard, epoch, version: Version(5), body: Body::EpochStart };
    record::encode_part(&begun, &[], 4, &mut payloads[1]).unwrap();
    part(6, vec![], &[], 5, &mut payloads[2]);
    part(7, vec![deleted(1), deleted(2)], &[1, 300], 5, &mut payloads[3]);
    signal(Signal::Mark, 7, &mut payloads[4]);
    let mut written = crate::file::FileHeader { shard, first: Version(5), epoch }.to_bytes().to_vec();
    payloads.iter().for_each(|payload| frame::write_frame(&mut written, payload).unwrap());
    let golden = compared("log-v1-shards", &written);
    let mut frames = FrameReader::at(&golden[36..], 36);
    let mut next = || frames.next_frame().unwrap().unwrap().to_vec();
    assert_eq!(record::decode_signal(&next()[PREFIX_BYTES..]).unwrap(), Signal::Fence);
    assert_eq!(record::decode_part(&next()[PREFIX_BYTES..]).unwrap(), (Body::EpochStart, vec![]));
    next();
    let (body, places) = record::decode_part(&next()[PREFIX_BYTES..]).unwrap();
    let expected = Body::Commit {
        mutations: vec![deleted(1), deleted(2)],
        next_sid: Sid(7),
        request: None,
        changes: None,
    };
    assert_eq!((body, places), (expected, vec![1, 300]));
    let mark = next();
    assert_eq!(record::decode_signal(&mark[PREFIX_BYTES..]).unwrap(), Signal::Mark);
    assert_eq!(Prefix::parse(&mark).unwrap().durable_bytes, 7);
    assert!(record::decode_body(&mark[PREFIX_BYTES..]).is_err(), "it is no record");
}

/// Returns records that say what they change, for the change stream.
fn change_records() -> Vec<Record> {
    let change = |removed, id: &str, what| Change { removed, id: id.into(), what };
    let list = vec![
        change(true, "e1", Changed::EdgeProperty(Token(5), Value::Double(0.5))),
        change(true, "e1", Changed::Edge { label: Token(2), from: "a".into(), to: "b".into() }),
        change(false, "a", Changed::VertexLabel(Some(Token(0)))),
        change(true, "a", Changed::VertexLabel(None)),
        change(false, "a", Changed::VertexProperty(Token(3), "grüße".into())),
    ];
    let mutations = vec![Mutation::AddLabels { gui: Gui(1), labels: vec![Token(0)] }];
    let body = |changes| Body::Commit {
        mutations: mutations.clone(),
        next_sid: Sid(1),
        request: None,
        changes: Some(changes),
    };
    let bodies =
        [Body::EpochStart, body(Changes { taken_ms: 1_795_000_000_123, list }), body(Changes::default())];
    numbered(Epoch(1), bodies)
}

#[test]
fn golden_file_of_changes() {
    golden("log-v1-changes", &change_records());
}

#[test]
fn golden_file_of_the_fleet() {
    golden("log-v1-fleet", &fleet_records());
}

fn golden(name: &str, records: &[Record]) {
    let path = Path::new("/log").join("00000000000000000001.log");
    let open = |disk: &FaultyDisk| {
        FileLog::open(Arc::new(disk.clone()), Path::new("/log"), ShardId(0), FileLogOptions::default())
            .unwrap()
    };
    let disk = FaultyDisk::new(0);
    let mut log = open(&disk);
    log.append(&records[..1]).unwrap();
    log.append(&records[1..]).unwrap();
    drop(log);
    let written = disk.contents(&path).unwrap();
    let golden = compared(name, &written);

    let disk = FaultyDisk::new(0);
    open(&disk);
    disk.put(&path, &golden);
    // Debug text, because values of different width are equal.
    assert_eq!(format!("{:?}", read_all(&mut open(&disk), 1).unwrap()), format!("{records:?}"));
}

/// Checks that a golden file has the content of its JSON, and that this version writes the same bytes.
fn compared(name: &str, written: &[u8]) -> Vec<u8> {
    let file = |kind| contracts().join(format!("golden/{name}.{kind}"));
    let (bin, json) = (file("bin"), file("json"));
    if std::env::var_os("TIDEGRAPH_BLESS").is_some() {
        std::fs::create_dir_all(contracts().join("golden")).unwrap();
        std::fs::write(&bin, written).unwrap();
        let text = serde_json::to_string_pretty(&describe(written)).unwrap();
        std::fs::write(&json, text + "\n").unwrap();
    }
    let golden = std::fs::read(&bin).unwrap();
    let described: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(describe(&golden), described);

    assert!(written == golden, "this version writes other bytes than format 1");
    golden
}
