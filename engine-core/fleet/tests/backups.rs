//! A graph is backed up while it is written, and restored to any version from the newest checkpoint to the cut, with all
//! that was acknowledged at that version and nothing else.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

#[path = "support/backups.rs"]
mod fixture;
mod support;

use fixture::{
    Done, PARTITIONS, alone, check_restored, checkpointing, graph, load, number, place, small, source,
    target, two_at_once, write,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{GRAPH, TestFleet, ask};
use tidegraph_cluster::{Graph, MapStore, Rebalance, SplitStage};
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::backup::{
    Archive, Backup, BackupCheckpoint, Backups, CopiedObject, LogObject, Mark, Point, Retention, Source,
    Target,
};
use tidegraph_log::archive::{ArchiveReader, ArchiveWriter, Entry};
use tidegraph_log::{Body, LogBackend, Record};
use tidegraph_storage::checkpoint::Manifest;
use tidegraph_types::{
    ElementIds, Epoch, GremlinSettings, Gui, Mutation, PartitionCount, RequestId, ShardId, Sid, Version,
};

#[test]
fn a_graph_is_restored_as_it_was_at_each_version_while_it_is_written() {
    for shards in [1, 3] {
        let fleet = TestFleet::start_sharded(shards, PARTITIONS, 2, 2, 64, checkpointing(40));
        let _maintenance = fleet.maintain();
        let (database, _worker) = fleet.worker();
        ask(&database, OpenCypher, "CREATE CONSTRAINT only_n FOR (o:Only) REQUIRE o.n IS UNIQUE").unwrap();
        ask(&database, OpenCypher, "CREATE (:Only {n: 1})").unwrap();
        load(&database, 0..30);
        let (_objects, backups) = place();
        let mut writes: Vec<u64> = (0..50).map(|n| write(&database, n)).collect();
        fleet.wait_until("there are checkpoints", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
        let before = writes.last().copied().unwrap();
        load(&database, 30..60);
        let loaded = ask(&database, OpenCypher, "RETURN 1").unwrap().version.0;
        let stop = AtomicBool::new(false);
        let (written, backup) = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                (50..)
                    .take_while(|_| !stop.load(Ordering::Relaxed))
                    .map(|n| write(&database, n))
                    .collect::<Vec<_>>()
            });
            let backup = source(&fleet, shards).back_up(&backups, two_at_once());
            stop.store(true, Ordering::Relaxed);
            (writing.join().unwrap(), backup.unwrap())
        });
        writes.extend(written);
        let done = Done { writes, load: (before, loaded) };
        assert!(backup.version >= loaded, "what was acknowledged before is there");
        let verified = backups.verify(&alone(&backup)).unwrap();
        assert_eq!(verified.bytes, backup.bytes());
        assert_eq!(backups.find(Point::Newest).unwrap().backup, backup);
        for version in [backup.version, backup.earliest, (backup.version + backup.earliest) / 2] {
            check_restored(&backups, &alone(&backup), version, shards, &done);
        }
        // The records of a backup are whole, so the restored log may have other shards.
        check_restored(&backups, &alone(&backup), backup.version, 4 - shards, &done);
    }
}

#[test]
fn a_graph_without_checkpoints_is_restored_from_its_log() {
    let fleet = TestFleet::start(PARTITIONS, 2, 2, 64, checkpointing(u64::MAX));
    let (database, _worker) = fleet.worker();
    load(&database, 0..20);
    (0..4).for_each(|n| assert!(write(&database, n) > 0));
    let last = write(&database, 4);
    let (_objects, backups) = place();
    let backup = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    assert_eq!((backup.earliest, backup.checkpoints.len()), (0, 0));
    assert!(backup.version >= last);
    assert!(backup.objects.iter().any(|object| object.path.starts_with("loads/")));
    let mut restored = TestFleet::without_graph(graph(1), checkpointing(5));
    target(&restored, graph(1)).restore(&backups, &alone(&backup), Version(last - 1), 1).unwrap();
    restored.start_processes(2);
    let (database, _worker) = restored.worker();
    assert_eq!(number(&database, "MATCH (w:W) RETURN count(w)"), 8);
    assert_eq!(number(&database, "MATCH (p:Person) RETURN sum(p.n)"), 190);
}

#[test]
fn a_graph_that_was_split_is_restored_as_it_was() {
    let fleet = TestFleet::start(PARTITIONS, 2, 2, 64, checkpointing(10));
    let (database, _worker) = fleet.worker();
    load(&database, 0..30);
    (0..20).for_each(|n| assert!(write(&database, n) > 0));
    fleet.wait_until("there are checkpoints", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
    let (rebalance, into) = (Rebalance::new(fleet.map.clone(), GRAPH), PartitionCount::new(16).unwrap());
    rebalance.begin_split(into).unwrap();
    fleet.wait_until("readers turn", |_| {
        rebalance.advance_split(into, 64, 8).unwrap().stage == SplitStage::Turned
    });
    rebalance.drop_former_partitions().unwrap();
    let graph = fleet.map.load(GRAPH, None).unwrap().graph().settled();
    assert_eq!((graph.partitions, graph.created_with().get()), (into, PARTITIONS));
    // At first, checkpoints of the partitions before the split may be copied; later those of the ones after it.
    let (_objects, backups) = place();
    for (n, own) in [(20, false), (21, true)] {
        let last = (0..15).map(|_| write(&database, n)).max().unwrap();
        if own {
            fleet.wait_until("each has its own", |fleet| {
                let noted = fleet.map.checkpoints(GRAPH).unwrap();
                noted.iter().filter(|noted| graph.layout().number(noted.partition).is_some()).count() == 16
            });
        }
        let source = Source { graph: graph.clone(), ..source(&fleet, 1) };
        let backup = source.back_up(&backups, two_at_once()).unwrap();
        assert!(backup.version >= last);
        if own {
            assert!(backup.checkpoints.iter().all(|found| found.partition >= 16), "{:?}", backup.checkpoints);
        }
        let mut restored = TestFleet::without_graph(graph.clone(), checkpointing(5));
        target(&restored, graph.clone()).restore(&backups, &alone(&backup), Version(last), 3).unwrap();
        restored.start_processes(2);
        let (there, _worker) = restored.worker();
        for text in [
            "MATCH (w:W) RETURN count(w)",
            "MATCH ()-[t:TO]->() RETURN sum(t.n)",
            "MATCH (p:Person) RETURN sum(p.n)",
        ] {
            assert_eq!(number(&there, text), number(&database, text), "{text}");
        }
    }
}

#[test]
fn a_clone_has_its_own_name() {
    let fleet = TestFleet::start(PARTITIONS, 2, 2, 64, checkpointing(3));
    let (database, _worker) = fleet.worker();
    (0..10).for_each(|n| assert!(write(&database, n) > 0));
    fleet.wait_until("there are checkpoints", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
    let (_objects, backups) = place();
    let backup = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    let other = Graph { name: "other".into(), replication_factor: 1, ..graph(2) };
    let clone = TestFleet::without_graph(other.clone(), checkpointing(3));
    target(&clone, other).restore(&backups, &alone(&backup), Version(backup.version), 2).unwrap();
    assert_eq!(clone.map.load("other", None).unwrap().graph().replication_factor, 1);
    for checkpoint in &backup.checkpoints {
        let manifest = Manifest::read(&clone.objects, &checkpoint.manifest).unwrap();
        assert_eq!((manifest.graph.as_str(), manifest.version.0), ("other", checkpoint.version));
    }
}

#[test]
fn a_restore_keeps_what_gremlin_means() {
    let (_fleet, _objects, backups, backup) = small();
    let gremlin = GremlinSettings { ids: ElementIds::Typed, ..GremlinSettings::default() };
    let other = Graph { gremlin, ..graph(1) };
    let clone = TestFleet::without_graph(other.clone(), checkpointing(3));
    let refused =
        target(&clone, other).restore(&backups, &alone(&backup), Version(backup.version), 2).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("ids typed") && refused.contains("ids strings"), "{refused}");
}

#[test]
fn a_graph_that_is_there_is_not_overwritten() {
    let (fleet, _objects, backups, backup) = small();
    let version = Version(backup.version);
    let refused =
        |target: Target| target.restore(&backups, &alone(&backup), version, 2).unwrap_err().to_string();
    assert!(refused(target(&fleet, graph(1))).contains("there is a graph \"g\" in the map"));
    let empty = || TestFleet::without_graph(graph(1), checkpointing(5));
    let used = Target { log_is_new: false, ..target(&empty(), graph(1)) };
    assert!(refused(used).contains("the topic of the log of graph \"g\" has messages"));
    for taken in
        ["checkpoints/p00000/n0-1/manifest-00000000000000000001-000000", "loads/x/v-p00000-000000.seg"]
    {
        let fleet = empty();
        fleet.objects.put(taken, "x").unwrap();
        let error = refused(target(&fleet, graph(1)));
        assert!(error.contains(taken) && error.contains("give an empty bucket"), "{error}");
        assert_eq!(fleet.objects.list("").unwrap().len(), 1, "nothing was written");
    }
    let other = Graph { partitions: PartitionCount::new(8).unwrap(), ..graph(1) };
    assert!(refused(target(&empty(), other)).contains("has 8 partitions, and should have 4 partitions"));
}

#[test]
fn a_backup_that_is_not_whole_says_what_it_lacks_and_changes_nothing() {
    let (_fleet, objects, backups, backup) = small();
    let version = Version(backup.version);
    let folder = format!("a/b/{GRAPH}/data/{}/", backup.name);
    for object in backup.stored() {
        let path = format!("{folder}{}", object.path);
        let bytes = objects.get(&path).unwrap();
        let fleet = TestFleet::without_graph(graph(1), checkpointing(5));
        let name = object.path.strip_prefix("objects/").unwrap_or(&object.path);
        let refused = || {
            target(&fleet, graph(1)).restore(&backups, &alone(&backup), version, 2).unwrap_err().to_string()
        };
        objects.delete(&path).unwrap();
        for error in [refused(), backups.verify(&alone(&backup)).unwrap_err().to_string()] {
            assert!(error.contains(&format!("{} is missing", object.path)), "{error}");
        }
        objects.put(&path, bytes.slice(1..)).unwrap();
        assert!(refused().contains(&format!("{} has {} bytes", object.path, bytes.len() - 1)));
        assert!(fleet.objects.list("").unwrap().is_empty() && fleet.map.load(GRAPH, None).is_err());
        let mut other = bytes.to_vec();
        *other.last_mut().unwrap() ^= 1;
        objects.put(&path, other).unwrap();
        let error = backups.verify(&alone(&backup)).unwrap_err().to_string();
        assert!(error.contains(&object.path), "{error}");
        assert!(refused().contains(name));
        assert!(fleet.map.load(GRAPH, None).is_err(), "no process starts from it");
        objects.put(&path, bytes).unwrap();
    }
    backups.verify(&alone(&backup)).unwrap();
}

#[test]
fn a_restore_that_died_is_repeated_and_another_one_is_refused() {
    let (source_fleet, _objects, backups, backup) = small();
    let second = source(&source_fleet, 1).back_up(&backups, two_at_once()).unwrap();
    let version = Version(backup.version);
    let mut fleet = TestFleet::without_graph(graph(1), checkpointing(5));
    let broken = Target { log: Arc::new(NoLog), ..target(&fleet, graph(1)) };
    assert!(broken.restore(&backups, &alone(&backup), version, 2).is_err());
    assert!(fleet.objects.list("checkpoints/").unwrap().len() > 4);
    let last = Version(second.version);
    let other = target(&fleet, graph(1)).restore(&backups, &alone(&second), last, 2).unwrap_err().to_string();
    assert!(other.contains("restore.json") && other.contains(&backup.name), "{other}");
    target(&fleet, graph(1)).restore(&backups, &alone(&backup), version, 2).unwrap();
    assert!(fleet.objects.list("restore.json").unwrap().is_empty());
    fleet.start_processes(2);
    let (database, _worker) = fleet.worker();
    assert_eq!(number(&database, "MATCH (w:W) RETURN count(w)"), 20);
}

/// Brokers that do not answer.
struct NoLog;

impl LogBackend for NoLog {
    fn open(&self, _epoch: Epoch) -> Result<Box<dyn tidegraph_log::LogStore>, tidegraph_log::Error> {
        Err(tidegraph_log::Error::poisoned("the brokers are away"))
    }

    fn follow(
        &self,
        _shard: tidegraph_types::ShardId,
        _after: tidegraph_log::Position,
    ) -> Box<dyn tidegraph_log::Follower> {
        panic!("a restore does not read the log")
    }
}

#[test]
fn versions_and_formats_that_no_backup_has_are_named() {
    let (_fleet, objects, backups, backup) = small();
    let error = backups.find(Point::Version(Version(backup.version + 1))).unwrap_err().to_string();
    let range = format!("has versions {} to {}", backup.earliest, backup.version);
    assert!(error.contains(&range) && error.contains(&backup.name), "{error}");
    assert!(backups.find(Point::Version(Version(backup.earliest))).is_ok());
    let error = backups.find(Point::Time(0)).unwrap_err().to_string();
    assert!(error.contains("has the time 1970-01-01T00:00:00Z"), "{error}");
    assert!(backups.read("none").unwrap_err().to_string().contains("there is no backup \"none\""));
    let none = Backups::new(objects.clone(), "", GRAPH).unwrap();
    assert!(none.find(Point::Newest).unwrap_err().to_string().contains("there is none"));
    assert!(Backups::new(objects.clone(), "a/../b", GRAPH).unwrap_err().to_string().contains("a/../b"));
    // One of a later release.
    let path = format!("a/b/{GRAPH}/manifests/{}.json", backup.name);
    let text = String::from_utf8(objects.get(&path).unwrap().to_vec()).unwrap();
    objects.put(&path, text.replacen("\"format\": 1", "\"format\": 9", 1)).unwrap();
    for error in [backups.read(&backup.name).unwrap_err(), backups.find(Point::Newest).unwrap_err()] {
        assert!(error.to_string().contains("has format 9, this release reads 1"), "{error}");
    }
    assert!(backups.list().unwrap()[0].backup.is_err());
    let days = Retention { keep: None, keep_days: Some(1) };
    assert!(backups.retain(days, i64::MAX).unwrap().backups.is_empty(), "it is not removed either");
    assert!(objects.head(&path).is_ok());
}

#[test]
fn old_backups_are_removed_whole_and_the_newest_one_stays() {
    let (fleet, objects, backups, first) = small();
    let (database, _worker) = fleet.worker();
    write(&database, 100);
    let more: Vec<Backup> = (0..3)
        .map(|_| {
            // Names have whole seconds.
            std::thread::sleep(Duration::from_millis(1_100));
            source(&fleet, 1).back_up(&backups, two_at_once()).unwrap()
        })
        .collect();
    let names = || backups.list().unwrap().into_iter().map(|listed| listed.name).collect::<Vec<_>>();
    assert_eq!(names().len(), 4);
    let now = more[2].begun_ms;
    assert!(
        backups.retain(Retention::default(), i64::MAX).unwrap().backups.is_empty(),
        "without a rule nothing goes"
    );
    let recent = Retention { keep: Some(3), keep_days: Some(1) };
    assert!(backups.retain(recent, now).unwrap().backups.is_empty(), "each rule keeps some");
    assert_eq!(
        backups.retain(Retention { keep: Some(3), keep_days: None }, now).unwrap().backups,
        std::slice::from_ref(&first.name)
    );
    assert_eq!(names(), more.iter().map(|backup| backup.name.clone()).collect::<Vec<_>>());
    assert!(objects.list(&format!("a/b/{GRAPH}/data/{}/", first.name)).unwrap().is_empty());
    let long_after = now + 40 * 86_400_000;
    // What a backup left behind that died.
    objects.put(&format!("a/b/{GRAPH}/data/20200101T000000Z-00000000/log/1"), "x").unwrap();
    let days = Retention { keep: None, keep_days: Some(30) };
    assert_eq!(backups.retain(days, long_after).unwrap().backups.len(), 2);
    assert_eq!(names(), [more[2].name.clone()], "the newest one stays");
    assert!(objects.list(&format!("a/b/{GRAPH}/data/2020")).unwrap().is_empty());
    backups.verify(&alone(&more[2])).unwrap();
}

/// A backup of format 1.
fn first_format() -> Backup {
    let path = "checkpoints/p00001/i-0abc-1/manifest-00000000000000000007-000000";
    Backup {
        name: "20261126T050000Z-1f0c9a3e".into(),
        graph: graph(2),
        release: "0.1.0".into(),
        begun_ms: 1_795_669_200_000,
        cut_ms: 1_795_669_201_903,
        earliest: 7,
        earliest_ms: Some(1_795_669_199_500),
        version: 9,
        epoch: 3,
        checkpoints: vec![BackupCheckpoint { partition: 1, version: 7, manifest: path.into() }],
        log: vec![LogObject {
            path: "log/00000000000000000001".into(),
            first: 1,
            last: 9,
            first_ms: None,
            bytes: 512,
            crc32c: 0xdead_beef,
        }],
        objects: vec![CopiedObject { path: path.into(), bytes: 211, crc32c: 7 }],
    }
}

/// An archive of format 1.
fn first_archive() -> Archive {
    Archive {
        series: "20261126T050000Z-1f0c9a3e".into(),
        release: "0.1.0".into(),
        after: Mark { version: 9, epoch: 3, written_ms: None },
        end: Mark { version: 11, epoch: 4, written_ms: Some(1_795_669_499_000) },
        cut_ms: 1_795_669_500_000,
        log: LogObject {
            path: "log/00000000000000000010-00000000000000000011-deadbeef".into(),
            first: 10,
            last: 11,
            first_ms: Some(1_795_669_300_000),
            bytes: 512,
            crc32c: 0xdead_beef,
        },
        objects: vec![CopiedObject { path: "loads/x/v-p00000-000000.seg".into(), bytes: 211, crc32c: 7 }],
    }
}

/// Records with times and without.
fn first_records() -> Vec<Entry> {
    let record =
        |version, body| Record { shard: ShardId(0), epoch: Epoch(3), version: Version(version), body };
    let mutations = vec![Mutation::DeleteVertex { gui: Gui(77), edges_left: false }];
    let commit = Body::Commit { mutations, next_sid: Sid(5), request: Some(RequestId(9)), changes: None };
    vec![
        Entry { record: record(1, Body::EpochStart), written_ms: None },
        Entry { record: record(2, commit), written_ms: Some(1_795_669_199_500) },
    ]
}

/// Compares what this release writes with a golden file; writes the file again if `TIDEGRAPH_BLESS` is set. Do so only for
/// a new format.
fn golden(name: &str, written: &[u8]) -> Vec<u8> {
    let path = format!("../../contracts/golden/{name}");
    if std::env::var_os("TIDEGRAPH_BLESS").is_some() {
        std::fs::write(&path, written).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    assert!(written == golden, "this release writes other bytes than {name}");
    golden
}

#[test]
fn golden_files_of_format_1_are_read_and_written() {
    let manifest = golden("backup-v1.json", &first_format().encode().unwrap());
    assert_eq!(Backup::decode("backup-v1.json", &manifest).unwrap(), first_format());
    let manifest = golden("archive-manifest-v1.json", &first_archive().encode().unwrap());
    assert_eq!(Archive::decode("archive-manifest-v1.json", &manifest).unwrap(), first_archive());
    let mut writer = ArchiveWriter::new(Vec::new());
    first_records().iter().for_each(|entry| writer.append(entry).unwrap());
    let archive = golden("archive-v1.bin", &writer.finish().unwrap());
    let mut reader = ArchiveReader::new(&archive[..], "archive-v1.bin").unwrap();
    let read: Vec<Entry> = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
    assert_eq!(read, first_records());
}
