//! Readers of a log beside its writer.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_log::testing::{SharedLog, commit};
use tidegraph_log::{
    Error, FileLog, FileLogOptions, FirstShard, Follow, Follower, LogBackend, LogStore, MemoryLog,
};
use tidegraph_platform::FaultyDisk;
use tidegraph_types::{Epoch, ShardId, Version};

const TEXT: &str = "some text that fills a file";

/// A log with its readers, if the log itself gives none.
type Opened = (Box<dyn LogStore>, Option<Arc<dyn Follow>>);

fn files(disk: &FaultyDisk) -> FileLog {
    let options = FileLogOptions { file_bytes: 2000, ..FileLogOptions::default() };
    FileLog::open(Arc::new(disk.clone()), Path::new("/log"), ShardId(0), options).unwrap()
}

/// Returns the versions of the records that are left.
fn rest(follower: &mut dyn Follower) -> Vec<u64> {
    std::iter::from_fn(|| follower.next(Duration::ZERO).unwrap()).map(|record| record.version.0).collect()
}

fn follows_appends_and_begins_anywhere(log: &mut dyn LogStore, readers: &dyn Follow) {
    let mut follower = readers.follow(Version(0));
    assert_eq!(follower.next(Duration::ZERO).unwrap(), None);
    let mut begun = vec![];
    for version in 1..=100 {
        log.append(&[commit(version, 1, TEXT)]).unwrap();
        assert_eq!(follower.next(Duration::ZERO).unwrap(), Some(commit(version, 1, TEXT)));
        assert_eq!(follower.next(Duration::ZERO).unwrap(), None);
        if version % 9 == 0 {
            begun.push((version, readers.follow(Version(version / 2))));
        }
    }
    for (version, mut follower) in begun {
        assert_eq!(rest(&mut *follower), (version / 2 + 1..=100).collect::<Vec<_>>());
    }
}

#[test]
fn readers_of_files_follow_appends_and_begin_anywhere() {
    let disk = FaultyDisk::new(1);
    let mut log = files(&disk);
    let readers = log.readers().unwrap();
    follows_appends_and_begins_anywhere(&mut log, &*readers);
    drop(log);
    // Another process has another index.
    let log = files(&disk);
    let readers = log.readers().unwrap();
    for after in [0, 1, 57, 98, 100] {
        assert_eq!(rest(&mut *readers.follow(Version(after))), (after + 1..=100).collect::<Vec<_>>());
    }
}

#[test]
fn readers_of_memory_follow_appends_and_begin_anywhere() {
    let mut log = MemoryLog::new(ShardId(0));
    let readers = log.readers().unwrap();
    follows_appends_and_begins_anywhere(&mut log, &*readers);
}

#[test]
fn readers_of_a_shared_log_follow_appends_and_begin_anywhere() {
    let shared = SharedLog::new();
    let mut log = LogBackend::open(&shared, Epoch(1)).unwrap();
    follows_appends_and_begins_anywhere(&mut *log, &FirstShard(Arc::new(shared)));
}

#[test]
fn a_reader_of_a_trimmed_version_learns_where_the_log_begins() {
    let shared = SharedLog::new();
    let disk = FaultyDisk::new(1);
    let (files, memory) = (files(&disk), MemoryLog::new(ShardId(0)));
    let logs: [Opened; 3] = [
        (LogBackend::open(&shared, Epoch(1)).unwrap(), Some(Arc::new(FirstShard(Arc::new(shared))))),
        (Box::new(files), None),
        (Box::new(memory), None),
    ];
    for (mut log, readers) in logs {
        for version in 1..=100 {
            log.append(&[commit(version, 1, TEXT)]).unwrap();
        }
        let readers = readers.or_else(|| log.readers()).unwrap();
        let mut behind = readers.follow(Version(2));
        log.trim(Version(60)).unwrap();
        let first = log.first().unwrap();
        assert!(first > Version(30));
        for follower in [&mut behind, &mut readers.follow(Version(3))] {
            let error = follower.next(Duration::ZERO).unwrap_err();
            assert!(matches!(error, Error::Trimmed { first: found, .. } if found == first), "{error}");
        }
        assert_eq!(rest(&mut *readers.follow(Version(first.0 - 1))), (first.0..=100).collect::<Vec<_>>());
    }
}

#[test]
fn a_reader_sees_nothing_of_a_refused_append() {
    let disk = FaultyDisk::new(1);
    let mut log = files(&disk);
    log.append(&[commit(1, 1, "a")]).unwrap();
    let mut follower = log.readers().unwrap().follow(Version(0));
    assert_eq!(rest(&mut *follower), [1]);
    assert!(log.append(&[commit(9, 1, "out of order")]).is_err());
    assert_eq!(follower.next(Duration::ZERO).unwrap(), None);
    log.append(&[commit(2, 1, "b")]).unwrap();
    assert_eq!(follower.next(Duration::ZERO).unwrap(), Some(commit(2, 1, "b")));
}
