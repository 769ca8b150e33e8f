//! The log of a graph is archived behind its backups, and the graph is restored to any version that a backup or an archive
//! has, and to no other one.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

#[path = "support/backups.rs"]
mod fixture;
#[path = "support/gate.rs"]
mod gate;
mod support;

use fixture::{
    Done, PARTITIONS, alone, check_restored, checkpointing, graph, load, number, place, small, source,
    target, two_at_once, write,
};
use gate::Gate;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{GRAPH, TestFleet, ask};
use tidegraph_cluster::{MapStore, Rebalance, SplitStage};
use tidegraph_engine::Database;
use tidegraph_engine::Language::OpenCypher;
use tidegraph_fleet::Worker;
use tidegraph_fleet::backup::{
    Archive, ArchiveConfig, Archiver, Backup, Backups, History, LeaderArchive, Mark, Point, Retention, Source,
};
use tidegraph_fleet::role::ArchivePosition;
use tidegraph_log::archive::{ArchiveReader, ArchiveWriter};
use tidegraph_platform::Objects;
use tidegraph_types::{PartitionCount, Version};

fn archiver(fleet: &TestFleet, shards: u16, backups: &Backups) -> Archiver {
    archiver_of(fleet, shards, backups, ArchiveConfig::default())
}

fn archiver_of(fleet: &TestFleet, shards: u16, backups: &Backups, config: ArchiveConfig) -> Archiver {
    Archiver::new(source(fleet, shards), backups.clone(), config, Arc::default())
}

/// Archives what there is, and returns the archives that were written.
fn archive(fleet: &TestFleet, shards: u16, backups: &Backups) -> Vec<Archive> {
    let turn = archiver(fleet, shards, backups).archive_all().unwrap();
    assert!(turn.is_at_end);
    turn.written
}

fn manifest_of(archive: &Archive) -> String {
    format!("a/b/{GRAPH}/archives/manifests/{}/{:020}.json", archive.series, archive.log.first)
}

fn folder_of(archive: &Archive) -> String {
    format!("a/b/{GRAPH}/archives/data/{}/", archive.series)
}

/// Names of backups have whole seconds.
fn next_second() {
    std::thread::sleep(Duration::from_millis(1_100));
}

/// A graph with a backup, and some archives of writes behind it.
struct Archived {
    fleet: TestFleet,
    database: Arc<Database>,
    _worker: Arc<Worker>,
    objects: Arc<Objects>,
    backups: Backups,
    backup: Backup,
    archives: Vec<Archive>,
}

fn archived(pieces: usize) -> Archived {
    let (fleet, objects, backups, backup) = small();
    let (database, worker) = fleet.worker();
    let archives = (0..pieces).flat_map(|piece| {
        (0..5).for_each(|n| assert!(write(&database, 100 * (piece + 1) + n) > 0));
        archive(&fleet, 1, &backups)
    });
    let archives: Vec<Archive> = archives.collect();
    assert_eq!(archives.len(), pieces);
    Archived { fleet, database, _worker: worker, objects, backups, backup, archives }
}

/// Restores a version of a graph that [`archived`] made, and returns its number of vertices `:W`.
fn restored_count(backups: &Backups, history: &History, version: Version) -> i64 {
    let mut fleet = TestFleet::without_graph(graph(1), checkpointing(5));
    target(&fleet, graph(1)).restore(backups, history, version, 2).unwrap();
    fleet.start_processes(2);
    let (database, _worker) = fleet.worker();
    number(&database, "MATCH (w:W) RETURN count(w)")
}

/// Tries to restore, and returns why not. Nothing may be written.
fn refused(backups: &Backups, point: Point) -> String {
    let fleet = TestFleet::without_graph(graph(1), checkpointing(5));
    let restore = || {
        let history = backups.find(point)?;
        let version = backups.version_at(&history, point)?;
        target(&fleet, graph(1)).restore(backups, &history, version, 2)
    };
    let error = restore().unwrap_err().to_string();
    assert!(fleet.objects.list("").unwrap().is_empty() && fleet.map.load(GRAPH, None).is_err(), "{error}");
    error
}

#[test]
fn a_graph_is_restored_to_versions_between_two_backups() {
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
        let first = source(&fleet, shards).back_up(&backups, two_at_once()).unwrap();
        // Writers run while it is archived, with a load whose segments the archive takes.
        let stop = AtomicBool::new(false);
        let (written, before, loaded) = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                (50..)
                    .take_while(|_| !stop.load(Ordering::Relaxed))
                    .map(|n| write(&database, n))
                    .collect::<Vec<_>>()
            });
            archive(&fleet, shards, &backups);
            let before = ask(&database, OpenCypher, "RETURN 1").unwrap().version.0;
            load(&database, 30..60);
            let loaded = ask(&database, OpenCypher, "RETURN 1").unwrap().version.0;
            archive(&fleet, shards, &backups);
            stop.store(true, Ordering::Relaxed);
            (writing.join().unwrap(), before, loaded)
        });
        writes.extend(written);
        archive(&fleet, shards, &backups);
        let between = *writes.last().unwrap();
        // What the archive has must do without the log and the segments.
        fleet.wait_until("there are checkpoints of the load", |fleet| {
            write(&database, 2_000_000);
            fleet.map.checkpoints(GRAPH).unwrap().iter().all(|noted| noted.version.0 > between)
        });
        next_second();
        let second = source(&fleet, shards).back_up(&backups, two_at_once()).unwrap();
        assert!(second.earliest > between, "the second backup has none of the versions");
        let done = Done { writes, load: (before, loaded) };
        for version in [first.version, first.version + 1, before, loaded, between] {
            let history = backups.find(Point::Version(Version(version))).unwrap();
            assert_eq!(history.backup, first);
            check_restored(&backups, &history, version, shards, &done);
        }
        // The archive goes on behind the second backup, and the shards of the restored log may differ.
        let history = backups.history(&first.name).unwrap();
        assert!(history.archives.iter().any(|archive| !archive.objects.is_empty()));
        check_restored(&backups, &history, between, 4 - shards, &done);
        backups.verify(&history).unwrap();
    }
}

#[test]
fn the_newest_version_of_all_is_that_of_the_archive() {
    let Archived { database, fleet, backups, backup, archives, .. } = archived(2);
    let end = archives[1].end.version;
    assert!(archives[0].after.version == backup.version && archives[1].after == archives[0].end);
    assert!(archive(&fleet, 1, &backups).is_empty(), "nothing was written since");
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!((newest.version().0, newest.archives.len()), (end, 2));
    assert_eq!(restored_count(&backups, &newest, newest.version()), 40);
    assert_eq!(restored_count(&backups, &newest, Version(archives[0].end.version)), 30);
    // A second backup continues the same series, and needs only what is behind it.
    next_second();
    write(&database, 1_000);
    archive(&fleet, 1, &backups);
    let second = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    write(&database, 1_001);
    let last = archive(&fleet, 1, &backups);
    assert_eq!(last[0].series, backup.name);
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!((&newest.backup, newest.archives.len()), (&second, 1));
    assert_eq!(restored_count(&backups, &newest, newest.version()), 44);
    assert_eq!(backups.history(&backup.name).unwrap().archives.len(), 4);
    assert!(backups.find(Point::Version(Version(end))).unwrap().version().0 >= end);
    let histories = backups.histories().unwrap();
    let ends: Vec<u64> = histories.into_iter().map(|listed| listed.history.unwrap().version().0).collect();
    assert_eq!(ends, [last[0].end.version; 2]);
    let beyond = refused(&backups, Point::Version(Version(last[0].end.version + 1)));
    assert!(beyond.contains(&format!("{} with its archives has versions", second.name)), "{beyond}");
}

#[test]
fn many_records_make_several_archives_of_a_bounded_size() {
    let (fleet, _objects, backups, backup) = small();
    let (database, _worker) = fleet.worker();
    (0..60).for_each(|n| assert!(write(&database, n) > 0));
    let config = ArchiveConfig { object_bytes: 2_000, ..ArchiveConfig::default() };
    let written = archiver_of(&fleet, 1, &backups, config).archive_all().unwrap().written;
    assert!(written.len() > 3, "{}", written.len());
    assert!(written.iter().all(|archive| archive.log.bytes < 4_000));
    let history = backups.history(&backup.name).unwrap();
    assert_eq!(history.archives, written);
    assert_eq!(backups.verify(&history).unwrap().archives, written.len());
    let inside = Version(written[1].end.version);
    let needed = backups.find(Point::Version(inside)).unwrap();
    assert_eq!(needed.archives, written[..2]);
    assert_eq!(restored_count(&backups, &needed, inside), restored_count(&backups, &history, inside));
}

#[test]
fn an_archive_that_is_missing_cut_or_damaged_is_refused_by_name_before_anything_is_written() {
    let Archived { objects, backups, backup, archives, .. } = archived(3);
    let [first, second, third] = archives.as_slice() else { panic!("{archives:?}") };
    let (newest, inside) = (Point::Newest, Point::Version(Version(second.end.version - 1)));
    let before = Point::Version(Version(first.end.version));
    let is_fine = || {
        let history = backups.find(before).unwrap();
        assert_eq!(restored_count(&backups, &history, Version(first.end.version)), 30);
    };
    // The manifest is missing, damaged, or of a later release.
    let manifest = manifest_of(second);
    let bytes = objects.get(&manifest).unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    objects.delete(&manifest).unwrap();
    for point in [newest, inside] {
        let error = refused(&backups, point);
        assert!(
            error.contains(&manifest) && error.contains("is missing: the next archive begins"),
            "{error}"
        );
        assert!(error.contains(&format!("up to version {}", first.end.version)), "{error}");
    }
    for (changed, says) in [
        (text.replacen("\"bytes\": ", "\"bytes\": 1", 1), "its checksum does not match"),
        (text.replacen("\"format\": 1", "\"format\": 9", 1), "has format 9, this release reads 1"),
        (text[..text.len() / 2].to_owned(), "cannot be read"),
    ] {
        objects.put(&manifest, changed).unwrap();
        for point in [newest, inside] {
            let error = refused(&backups, point);
            assert!(error.contains(&manifest) && error.contains(says), "{error}");
        }
        let broken = backups.verify(&backups.history(&backup.name).unwrap()).unwrap_err().to_string();
        assert!(broken.contains(&manifest), "{broken}");
    }
    is_fine();
    objects.put(&manifest, bytes).unwrap();
    // The records are missing, cut, or damaged.
    let records = format!("{}{}", folder_of(second), second.log.path);
    let bytes = objects.get(&records).unwrap();
    let mut damaged = bytes.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    objects.delete(&records).unwrap();
    let all = |says: &str| {
        for error in [
            refused(&backups, newest),
            refused(&backups, inside),
            backups.verify(&backups.history(&backup.name).unwrap()).unwrap_err().to_string(),
        ] {
            assert!(error.contains(&second.log.path) && error.contains(says), "{error}");
        }
    };
    all("is missing");
    objects.put(&records, bytes.slice(..bytes.len() - 3)).unwrap();
    all("bytes, and should have");
    objects.put(&records, damaged).unwrap();
    assert!(refused(&backups, newest).contains(&second.log.path));
    is_fine();
    objects.put(&records, bytes).unwrap();
    assert_eq!(restored_count(&backups, &backups.find(newest).unwrap(), Version(third.end.version)), 50);
}

#[test]
fn a_point_of_a_named_backup_needs_no_archive_behind_it() {
    let Archived { objects, backups, backup, archives, .. } = archived(3);
    objects.delete(&format!("{}{}", folder_of(&archives[2]), archives[2].log.path)).unwrap();
    let point = Point::Version(Version(archives[1].end.version));
    let history = backups.history(&backup.name).unwrap().up_to(point);
    assert_eq!(history.archives, archives[..2]);
    let version = backups.version_at(&history, point).unwrap();
    assert_eq!(restored_count(&backups, &history, version), 40);
    assert!(refused(&backups, Point::Newest).contains(&archives[2].log.path));
}

#[test]
fn segments_of_a_load_are_in_the_archive_and_are_missed_by_name() {
    let (fleet, objects, backups, _backup) = small();
    let (database, _worker) = fleet.worker();
    load(&database, 0..30);
    let written = archive(&fleet, 1, &backups);
    let segment = written[0].objects.iter().find(|object| object.path.ends_with(".seg")).unwrap();
    assert!(written[0].objects.iter().any(|object| object.path.starts_with("jobs/")));
    let copy = format!("{}objects/{}", folder_of(&written[0]), segment.path);
    let bytes = objects.get(&copy).unwrap();
    objects.delete(&copy).unwrap();
    assert!(refused(&backups, Point::Newest).contains(&segment.path));
    objects.put(&copy, bytes).unwrap();
    let newest = backups.find(Point::Newest).unwrap();
    let mut restored = TestFleet::without_graph(graph(1), checkpointing(5));
    target(&restored, graph(1)).restore(&backups, &newest, newest.version(), 2).unwrap();
    restored.start_processes(2);
    let (there, _worker) = restored.worker();
    assert_eq!(number(&there, "MATCH (p:Person) RETURN sum(p.n)"), 435);
}

#[test]
fn segments_that_were_removed_too_early_are_a_gap_that_the_next_backup_closes() {
    let (fleet, _objects, backups, backup) = small();
    let (database, _worker) = fleet.worker();
    let before = write(&database, 50);
    load(&database, 0..30);
    let after = write(&database, 51);
    // To the archiver, the objects of the graph are gone.
    let without = Source { objects: Arc::new(Objects::memory().unwrap()), ..source(&fleet, 1) };
    let mut archiver = Archiver::new(without, backups.clone(), ArchiveConfig::default(), Arc::default());
    let error = archiver.archive_all().unwrap_err().to_string();
    assert!(error.contains("loads/") && error.contains(".seg"), "{error}");
    // What comes before the load is archived, and the load is not passed over.
    let end = backups.find(Point::Newest).unwrap().version().0;
    assert!((before..after).contains(&end), "{before} {end} {after}");
    for error in [archiver.turn().unwrap_err(), archiver.archive_all().unwrap_err()] {
        let error = error.to_string();
        assert!(error.contains("segments of the load") && error.contains("make one"), "{error}");
    }
    next_second();
    let next = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    assert!(next.version >= after && next.name != backup.name);
    write(&database, 52);
    let written = archiver.archive_all().unwrap().written;
    assert_eq!((written[0].series.as_str(), written[0].after.version), (next.name.as_str(), next.version));
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!(restored_count(&backups, &newest, newest.version()), 26);
}

#[test]
fn a_trimmed_log_is_a_gap_that_is_told_and_that_the_next_backup_closes() {
    let Archived { fleet, database, backups, backup, archives, .. } = archived(1);
    let end = archives[0].end.version;
    (0..20).for_each(|n| assert!(write(&database, 200 + n) > 0));
    let lost = write(&database, 300);
    fleet.wait_until("there are checkpoints", |fleet| {
        write(&database, 301);
        fleet.map.checkpoints(GRAPH).unwrap().iter().all(|noted| noted.version.0 > lost)
    });
    fleet.log.trim(Version(lost));
    let mut archiver = archiver(&fleet, 1, &backups);
    for error in [archiver.archive_all().unwrap_err(), archiver.turn().unwrap_err()] {
        let error = error.to_string();
        assert!(error.contains(&format!("trimmed, and begins with version {lost}")), "{error}");
        assert!(
            error.contains(&format!("ends with version {end} ")) && error.contains("make one"),
            "{error}"
        );
    }
    next_second();
    let next = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    let last = write(&database, 302);
    let turn = archiver.archive_all().unwrap();
    assert_eq!(turn.gap, Some((Version(end), Version(next.earliest))));
    assert_eq!((turn.written.len(), turn.written[0].series.as_str()), (1, next.name.as_str()));
    // On both sides of the gap, everything can be restored; in it, nothing.
    assert_eq!(backups.find(Point::Version(Version(end))).unwrap().backup, backup);
    assert_eq!(backups.find(Point::Version(Version(last))).unwrap().backup, next);
    let error = refused(&backups, Point::Version(Version(end + 1)));
    assert!(error.contains(&format!("has versions {} to {end}", backup.earliest)), "{error}");
}

#[test]
fn a_backup_that_is_not_whole_does_not_keep_the_archive_from_following_another_one() {
    let fleet = TestFleet::start(PARTITIONS, 2, 2, 64, checkpointing(40));
    let (database, _worker) = fleet.worker();
    (0..50).for_each(|n| assert!(write(&database, n) > 0));
    fleet.wait_until("there are checkpoints", |fleet| fleet.map.checkpoints(GRAPH).unwrap().len() == 4);
    // Too few for another checkpoint, so the backup has records.
    (50..55).for_each(|n| assert!(write(&database, n) > 0));
    let (objects, backups) = place();
    let first = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    write(&database, 100);
    next_second();
    let second = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    write(&database, 101);
    let last = first.log.last().unwrap();
    let path = format!("a/b/{GRAPH}/data/{}/{}", first.name, last.path);
    let bytes = objects.get(&path).unwrap();
    let mut damaged = bytes.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    for bad in [None, Some(damaged), Some(bytes[..bytes.len() - 3].to_vec()), Some(vec![])] {
        match bad {
            None => objects.delete(&path).unwrap(),
            Some(bad) => objects.put(&path, bad).unwrap(),
        }
        let archive = archive(&fleet, 1, &backups).remove(0);
        assert_eq!((archive.series.as_str(), archive.after.version), (second.name.as_str(), second.version));
        objects.delete(&manifest_of(&archive)).unwrap();
    }
    // If the first one is whole, it is the one to follow.
    objects.put(&path, bytes).unwrap();
    assert_eq!(archive(&fleet, 1, &backups)[0].series, first.name);
}

#[test]
fn without_a_backup_nothing_is_archived() {
    let fleet = TestFleet::start(PARTITIONS, 2, 2, 64, checkpointing(3));
    let (database, _worker) = fleet.worker();
    write(&database, 1);
    let (objects, backups) = place();
    let error = archiver(&fleet, 1, &backups).archive_all().unwrap_err().to_string();
    assert!(error.contains("no backup of graph \"g\"") && error.contains("make one first"), "{error}");
    assert!(objects.list("").unwrap().is_empty());
}

#[test]
fn two_archivers_write_one_series() {
    let (fleet, _objects, backups, backup) = small();
    let (database, _worker) = fleet.worker();
    let stop = AtomicBool::new(false);
    let config = ArchiveConfig { object_bytes: 1_500, every: Duration::ZERO, ..ArchiveConfig::default() };
    let (written, last) = std::thread::scope(|scope| {
        let archiving: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut archiver = archiver_of(&fleet, 1, &backups, config);
                    let mut written = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        written.extend(archiver.turn().unwrap().written);
                    }
                    written.extend(archiver.archive_all().unwrap().written);
                    written
                })
            })
            .collect();
        let last = (0..150).map(|n| write(&database, n)).max().unwrap();
        stop.store(true, Ordering::Relaxed);
        let all = archiving.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>();
        (all, last)
    });
    let history = backups.history(&backup.name).unwrap();
    let mut all: Vec<Archive> = written.into_iter().flatten().collect();
    all.sort_by_key(|archive| archive.log.first);
    assert_eq!(history.archives, all, "each archive was written by one of them");
    assert!(history.version().0 >= last);
    backups.verify(&history).unwrap();
    assert_eq!(restored_count(&backups, &history, history.version()), 320);
}

/// The state of a load changes until it has ended, and each archiver copies it when it writes its archive.
#[test]
fn the_state_of_a_load_in_an_archive_stays_as_its_manifest_says() {
    let (fleet, objects, backups, backup) = small();
    let (database, _worker) = fleet.worker();
    load(&database, 0..30);
    write(&database, 100);
    // It has read the load, and writes its archive after another one did.
    let mut slower = archiver(&fleet, 1, &backups);
    assert!(slower.turn().unwrap().written.is_empty());
    let written = archive(&fleet, 1, &backups);
    let is_state = |object: &&tidegraph_fleet::backup::CopiedObject| object.path.starts_with("jobs/");
    let state = written[0].objects.iter().find(is_state).unwrap();
    let mut changed = fleet.objects.get(&state.path).unwrap().to_vec();
    changed.push(b' ');
    fleet.objects.put(&state.path, changed).unwrap();
    assert!(slower.cut().unwrap().is_empty(), "the other one was faster");
    let history = backups.history(&backup.name).unwrap();
    assert_eq!(history.archives, written);
    backups.verify(&history).unwrap();
    // An archiver that died left a copy and no manifest: the next one takes the copy as it is.
    objects.delete(&manifest_of(&written[0])).unwrap();
    let again = archive(&fleet, 1, &backups);
    assert_eq!(again[0].objects, written[0].objects);
    backups.verify(&backups.history(&backup.name).unwrap()).unwrap();
}

#[test]
fn an_archiver_that_died_is_continued_and_what_it_left_is_removed_later() {
    let Archived { fleet, database, objects, backups, backup, archives, .. } = archived(1);
    // It died after the records, before the manifest.
    (0..3).for_each(|n| assert!(write(&database, 500 + n) > 0));
    let second = archive(&fleet, 1, &backups).remove(0);
    let left = format!("{}{}", folder_of(&second), second.log.path);
    objects.delete(&manifest_of(&second)).unwrap();
    assert_eq!(backups.find(Point::Newest).unwrap().version().0, archives[0].end.version);
    (0..3).for_each(|n| assert!(write(&database, 600 + n) > 0));
    let again = archive(&fleet, 1, &backups).remove(0);
    assert_eq!((again.after, again.log.first), (archives[0].end, second.log.first));
    assert!(again.end.version > second.end.version);
    let history = backups.history(&backup.name).unwrap();
    assert_eq!(restored_count(&backups, &history, history.version()), 42);
    let rules = Retention { keep: Some(1), keep_days: None };
    backups.retain(rules, backup.begun_ms).unwrap();
    assert!(objects.head(&left).is_ok(), "an archiver may still be about to write its manifest");
    assert_eq!(backups.retain(rules, backup.begun_ms + 2 * 86_400_000).unwrap().archives, 0);
    assert!(objects.head(&left).is_err());
    backups.verify(&backups.history(&backup.name).unwrap()).unwrap();
}

#[test]
fn archives_go_with_the_backups_that_need_them() {
    let Archived { fleet, database, objects, backups, backup, archives, .. } = archived(3);
    write(&database, 700);
    next_second();
    let second = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    write(&database, 701);
    let last = archive(&fleet, 1, &backups).remove(0);
    assert!(last.after.version < second.version && last.end.version > second.version);
    let both = Retention { keep: Some(2), keep_days: None };
    assert_eq!(backups.retain(both, second.begun_ms).unwrap().archives, 0);
    let removed = backups.retain(Retention { keep: Some(1), keep_days: None }, second.begun_ms).unwrap();
    assert_eq!((removed.backups, removed.archives), (vec![backup.name.clone()], 3));
    for archive in &archives {
        assert!(objects.head(&manifest_of(archive)).is_err());
        assert!(objects.head(&format!("{}{}", folder_of(archive), archive.log.path)).is_err());
    }
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!(newest.archives, [last]);
    assert_eq!(restored_count(&backups, &newest, newest.version()), 54);
    // The series ends at a gap: then it goes as a whole.
    fleet.wait_until("there are checkpoints", |fleet| {
        write(&database, 702);
        fleet.map.checkpoints(GRAPH).unwrap().iter().all(|noted| noted.version > newest.version())
    });
    fleet.log.trim(newest.version().next());
    next_second();
    let third = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    write(&database, 703);
    assert_eq!(archive(&fleet, 1, &backups)[0].series, third.name);
    let removed = backups.retain(Retention { keep: Some(1), keep_days: None }, third.begun_ms).unwrap();
    assert_eq!((removed.backups.len(), removed.archives), (1, 1));
    assert!(objects.list(&format!("a/b/{GRAPH}/archives/data/{}/", backup.name)).unwrap().is_empty());
    backups.verify(&backups.find(Point::Newest).unwrap()).unwrap();
}

/// Records and segments say nothing of partitions, so they may have been written for others than those of the backup.
#[test]
fn a_graph_that_was_split_behind_its_backup_is_restored_with_the_partitions_of_the_backup() {
    let (fleet, _objects, backups, backup) = small();
    let (database, _worker) = fleet.worker();
    let (rebalance, into) = (Rebalance::new(fleet.map.clone(), GRAPH), PartitionCount::new(16).unwrap());
    rebalance.begin_split(into).unwrap();
    fleet.wait_until("readers turn", |_| {
        rebalance.advance_split(into, 64, 8).unwrap().stage == SplitStage::Turned
    });
    rebalance.drop_former_partitions().unwrap();
    load(&database, 0..30);
    ask(&database, OpenCypher, "MATCH (p:Person), (w:W {n: 3}) CREATE (p)-[:TO {n: p.n}]->(w)").unwrap();
    let split = fleet.map.load(GRAPH, None).unwrap().graph().settled();
    assert_eq!(split.partitions, into);
    let of_split = Source { graph: split, ..source(&fleet, 1) };
    Archiver::new(of_split, backups.clone(), ArchiveConfig::default(), Arc::default()).archive_all().unwrap();
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!((newest.backup.graph.partitions.get(), &newest.backup), (PARTITIONS, &backup));
    let mut restored = TestFleet::without_graph(graph(1), checkpointing(5));
    target(&restored, graph(1)).restore(&backups, &newest, newest.version(), 2).unwrap();
    restored.start_processes(2);
    let (there, _worker) = restored.worker();
    for text in [
        "MATCH (w:W) RETURN count(w)",
        "MATCH ()-[t:TO]->() RETURN count(t)",
        "MATCH ()-[t:TO]->() RETURN sum(t.n)",
        "MATCH (p:Person) RETURN sum(p.n)",
    ] {
        assert_eq!(number(&there, text), number(&database, text), "{text}");
    }
}

/// A fleet with the graph as it was at the end of an archive.
fn restored_to_the_end_of(backups: &Backups, archive: &Archive) -> TestFleet {
    let version = Version(archive.end.version);
    let history = backups.find(Point::Version(version)).unwrap();
    let mut restored = TestFleet::without_graph(graph(1), checkpointing(5));
    target(&restored, graph(1)).restore(backups, &history, version, 2).unwrap();
    restored.start_processes(2);
    restored
}

/// A restored graph gives versions anew. Its archive must not continue that of the graph that was lost.
#[test]
fn a_restored_graph_is_archived_behind_a_backup_of_its_own() {
    let Archived { backups, backup, archives, .. } = archived(2);
    let restored = restored_to_the_end_of(&backups, &archives[0]);
    let (database, _worker) = restored.worker();
    let mut archiver = archiver(&restored, 1, &backups);
    // Its log ends before the archive does.
    let error = archiver.archive_all().unwrap_err().to_string();
    assert!(error.contains("another log") && error.contains("make one"), "{error}");
    // It has other records of the same versions.
    while write(&database, 900) <= archives[1].end.version + 2 {}
    let error = archiver.archive_all().unwrap_err().to_string();
    assert!(error.contains("another log") && error.contains("make one"), "{error}");
    assert_eq!(backups.find(Point::Newest).unwrap().version().0, archives[1].end.version);
    next_second();
    let own = source(&restored, 1).back_up(&backups, two_at_once()).unwrap();
    write(&database, 901);
    let written = archiver.archive_all().unwrap().written;
    assert_eq!((written[0].series.as_str(), written[0].after.version), (own.name.as_str(), own.version));
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!((&newest.backup, newest.archives.len()), (&own, 1));
    let count = number(&database, "MATCH (w:W) RETURN count(w)");
    assert_eq!(restored_count(&backups, &newest, newest.version()), count);
    // The backup of the lost graph still has its own archives.
    assert_eq!(backups.history(&backup.name).unwrap().archives, archives);
}

/// Until an archiver follows its backup, the newest series is that of the graph that was lost.
#[test]
fn the_first_backup_of_a_restored_graph_has_none_of_the_archives_before() {
    let Archived { backups, backup, archives, .. } = archived(2);
    let restored = restored_to_the_end_of(&backups, &archives[0]);
    next_second();
    let own = source(&restored, 1).back_up(&backups, two_at_once()).unwrap();
    assert!(own.version < archives[1].end.version);
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!((&newest.backup, newest.archives.len()), (&own, 0));
    backups.verify(&newest).unwrap();
    backups.verify(&backups.history(&own.name).unwrap()).unwrap();
    assert_eq!(restored_count(&backups, &newest, newest.version()), 30);
    // Versions above it are those of the graph that was lost.
    let lost = backups.find(Point::Version(Version(archives[1].end.version))).unwrap();
    assert_eq!((&lost.backup, lost.archives.len()), (&backup, 2));
}

/// Records of another log under the names of an archive are refused, also if all checksums are right.
#[test]
fn an_archive_of_another_log_is_refused() {
    let Archived { fleet, database, objects, backups, archives, .. } = archived(1);
    let manifest = manifest_of(&archives[0]);
    let mut other = archives[0].clone();
    other.after = Mark { epoch: other.after.epoch + 1, ..other.after };
    objects.put(&manifest, other.encode().unwrap()).unwrap();
    let error = refused(&backups, Point::Newest);
    assert!(error.contains("is of another log") && error.contains(&other.log.path), "{error}");
    objects.put(&manifest, archives[0].encode().unwrap()).unwrap();
    // A backup in the middle of an archive is compared with the record that the archive has.
    write(&database, 800);
    next_second();
    let second = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    write(&database, 801);
    let last = archive(&fleet, 1, &backups).remove(0);
    assert!(last.after.version < second.version && last.end.version > second.version);
    let path = format!("{}{}", folder_of(&last), last.log.path);
    let records = objects.get(&path).unwrap();
    let mut reader = ArchiveReader::new(&records[..], "records").unwrap();
    let mut writer = ArchiveWriter::new(Vec::new());
    while let Some(mut entry) = reader.next_entry().unwrap() {
        entry.record.epoch.0 += 1;
        writer.append(&entry).unwrap();
    }
    objects.put(&path, writer.finish().unwrap()).unwrap();
    let error = refused(&backups, Point::Newest);
    assert!(error.contains("is of another log") && error.contains(&last.log.path), "{error}");
    backups.verify(&alone(&second)).unwrap();
}

/// A fleet whose log keeps nothing that is not needed, with a backup.
fn trimming() -> (TestFleet, Backups, Backup) {
    let mut fleet = TestFleet::without_graph(graph(1), checkpointing(3));
    fleet.candidate.asked_again = 0;
    fleet.map.create_graph(&graph(1)).unwrap();
    fleet.start_processes(2);
    let (database, _worker) = fleet.worker();
    (0..10).for_each(|n| assert!(write(&database, n) > 0));
    let (_objects, backups) = place();
    let backup = source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    (fleet, backups, backup)
}

/// Writes until each partition has a checkpoint above a version.
fn write_until_checkpoints(fleet: &TestFleet, database: &Database, above: u64) {
    fleet.wait_until("each partition has a newer checkpoint", |fleet| {
        write(database, 50);
        let noted = fleet.map.checkpoints(GRAPH).unwrap();
        noted.len() == 4 && noted.iter().all(|noted| noted.version.0 > above)
    });
}

#[test]
fn the_sequencer_archives_and_trims_only_what_is_archived() {
    let (fleet, backups, backup) = trimming();
    let (database, _worker) = fleet.worker();
    let maintenance = fleet.maintain();
    let position = Arc::<ArchivePosition>::default();
    maintenance.wait_for(position.clone());
    let first = fleet.log.first();
    // Nobody has said up to where the log is archived.
    write_until_checkpoints(&fleet, &database, backup.version + 20);
    write_until_checkpoints(&fleet, &database, backup.version + 40);
    assert_eq!(fleet.log.first(), first);
    let stop = Arc::<AtomicBool>::default();
    let config = ArchiveConfig { every: Duration::from_millis(50), ..ArchiveConfig::default() };
    let archiver = Archiver::new(source(&fleet, 1), backups.clone(), config, stop.clone());
    let (candidate, clock) = (fleet.leading(), fleet.clock.clone());
    let mut archive = LeaderArchive::start(archiver, candidate, position.clone(), clock, stop).unwrap();
    fleet.wait_until("the log is archived and trimmed", |fleet| {
        write(&database, 51);
        fleet.log.first() > first
    });
    let trimmed = fleet.log.first();
    assert!(trimmed <= position.get(), "the record with which the archive ends stays");
    let last = write(&database, 52);
    fleet.wait_until("all is archived", |_| {
        backups.find(Point::Newest).is_ok_and(|newest| newest.version().0 >= last)
    });
    archive.stop();
    let newest = backups.find(Point::Newest).unwrap();
    assert_eq!(newest.backup, backup);
    backups.verify(&newest).unwrap();
    let count = number(&database, "MATCH (w:W) RETURN count(w)");
    assert_eq!(restored_count(&backups, &newest, newest.version()), count);
}

#[test]
fn the_lag_of_the_archive_grows_while_segments_of_a_load_are_copied() {
    let mut fleet = TestFleet::without_graph(graph(1), checkpointing(5));
    let (objects, gate) = Gate::objects();
    fleet.objects = objects;
    fleet.map.create_graph(&graph(1)).unwrap();
    fleet.start_processes(2);
    let (database, _worker) = fleet.worker();
    write(&database, 1);
    let (_objects, backups) = place();
    source(&fleet, 1).back_up(&backups, two_at_once()).unwrap();
    load(&database, 0..30);
    let loaded = ask(&database, OpenCypher, "RETURN 1").unwrap().version;
    fleet.wait_until("all replicas have the load", |fleet| {
        fleet.members.iter().all(|member| member.node.applied() >= loaded)
    });
    gate.close(".seg");
    let (stop, position) = (Arc::<AtomicBool>::default(), Arc::<ArchivePosition>::default());
    let config = ArchiveConfig { every: Duration::ZERO, ..ArchiveConfig::default() };
    let archiver = Archiver::new(source(&fleet, 1), backups.clone(), config, stop.clone());
    let (candidate, clock) = (fleet.leading(), fleet.clock.clone());
    let archive = LeaderArchive::start(archiver, candidate, position.clone(), clock, stop).unwrap();
    fleet.wait_until("a segment is being copied", |_| gate.waiting() > 0);
    let lag = || position.lag(fleet.clock.now());
    let before = lag();
    fleet.wait_until("the lag grows", |_| lag() > before);
    assert!(before > Duration::ZERO && gate.waiting() > 0);
    gate.open();
    fleet.wait_until("the load is archived", |_| position.get() >= loaded);
    fleet.wait_until("there is no lag", |_| lag() == Duration::ZERO);
    drop(archive);
}

#[test]
fn a_log_that_nobody_archives_is_trimmed_in_the_end() {
    let (fleet, _backups, backup) = trimming();
    let (database, _worker) = fleet.worker();
    let maintenance = fleet.maintain_holding(Duration::ZERO);
    maintenance.wait_for(Arc::default());
    let first = fleet.log.first();
    write_until_checkpoints(&fleet, &database, backup.version + 20);
    fleet.wait_until("the log is trimmed", |fleet| {
        write(&database, 51);
        fleet.log.first() > first
    });
}
