//! The file log on disks that fail. A failing seed is printed; set the range of the test to that seed to replay it.

use crate::testing::{commit, log_test_suite, read_all};
use crate::{Error, FileLog, FileLogOptions, LogStore, Record, Recovery, Tail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, Disk, FaultyDisk, Random, RealClock, RealDisk, SeededRandom};
use tidegraph_types::{
    Cardinality, Epoch, ErrorCode, Gui, Mutation, PropertyWrite, ShardId, Token, Value, Version,
};

const DIR: &str = "/log";

fn open(disk: &FaultyDisk, file_bytes: u64) -> Result<FileLog, Error> {
    open_with(disk, FileLogOptions { file_bytes, ..FileLogOptions::default() })
}

/// Opens a log that syncs only when it is told to, or when it has to.
fn open_late(disk: &FaultyDisk, file_bytes: u64) -> Result<FileLog, Error> {
    open_with(
        disk,
        FileLogOptions {
            file_bytes,
            sync_every: Some(Duration::from_secs(3600)),
            ..FileLogOptions::default()
        },
    )
}

fn open_with(disk: &FaultyDisk, options: FileLogOptions) -> Result<FileLog, Error> {
    FileLog::open(Arc::new(disk.clone()), Path::new(DIR), ShardId(0), options)
}

fn file(first: u64) -> PathBuf {
    Path::new(DIR).join(format!("{first:020}.log"))
}

#[test]
fn behaves_as_a_log() {
    for file_bytes in [1, 1000, 64 << 20] {
        log_test_suite(|| Box::new(open(&FaultyDisk::new(1), file_bytes).unwrap()));
        log_test_suite(|| Box::new(open_late(&FaultyDisk::new(1), file_bytes).unwrap()));
    }
}

#[test]
fn behaves_as_a_log_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    log_test_suite(|| {
        count.set(count.get() + 1);
        let dir = dir.path().join(count.get().to_string());
        let options = FileLogOptions { file_bytes: 2000, ..FileLogOptions::default() };
        Box::new(FileLog::open(Arc::new(RealDisk), &dir, ShardId(0), options).unwrap())
    });
}

#[test]
fn one_sync_for_one_append() {
    let disk = FaultyDisk::new(1);
    let mut log = open(&disk, 64 << 20).unwrap();
    log.append(&[commit(1, 1, "a")]).unwrap();
    let before = disk.syncs();
    let records: Vec<_> = (2..100).map(|v| commit(v, 1, "b")).collect();
    log.append(&records).unwrap();
    assert_eq!(disk.syncs() - before, 1);
}

#[test]
fn a_second_process_is_kept_out() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk, 1000).unwrap();
    assert!(matches!(open(&disk, 1000), Err(Error::InUse(_))));
    drop(log);
    open(&disk, 1000).unwrap();
}

#[test]
fn goes_on_after_a_clean_restart() {
    let disk = FaultyDisk::new(1);
    for version in 1..=30 {
        let mut log = open(&disk, 500).unwrap();
        assert_eq!(log.recovery(), Recovery::default());
        assert_eq!(log.tail().map_or(0, |t| t.version.0), version - 1);
        log.append(&[commit(version, 1, "a")]).unwrap();
        assert_eq!(read_all(&mut log, 1).unwrap().len() as u64, version);
    }
    assert!(disk.list(Path::new(DIR)).unwrap().len() > 3);
}

/// Every acknowledged record survives; no record appears that was not appended; refused records stay away.
/// Shows LOG-1, LOG-2 and LOG-3.
#[test]
fn crashes_anywhere() {
    for seed in 0..400 {
        let run = std::panic::catch_unwind(|| crashes_with_seed(seed));
        assert!(run.is_ok(), "seed {seed} fails; replay it with `crashes_with_seed({seed})`");
    }
}

fn crashes_with_seed(seed: u64) {
    let disk = FaultyDisk::new(seed);
    let random = SeededRandom::new(!seed);
    // Records that are certainly in the log; their first version is `base`.
    let (mut base, mut acknowledged) = (1, Vec::<Record>::new());
    for life in 0..6 {
        disk.crash_after(1 + random.below(60));
        let mut in_doubt = Vec::new();
        if let Ok(mut log) = open(&disk, 100 + random.below(3000)) {
            in_doubt = live(&mut log, &disk, &random, &mut base, &mut acknowledged, life);
        }
        disk.crash();
        let mut log = open(&disk, 1000).unwrap();
        let first = log.first().map_or(1, |v| v.0);
        assert!(first <= base, "versions from {base} on were not trimmed, the log begins at {first}");
        let found = read_all(&mut log, base).unwrap();
        assert!(found.len() >= acknowledged.len(), "{} of {} acknowledged", found.len(), acknowledged.len());
        assert_eq!(found[..acknowledged.len()], acknowledged);
        let more = &found[acknowledged.len()..];
        assert!(in_doubt.starts_with(more), "life {life}: {more:?} appeared, in doubt were {in_doubt:?}");
        acknowledged = found;
        assert_eq!(log.tail().map_or(0, |t| t.version.0), base - 1 + acknowledged.len() as u64);
    }
}

/// Returns the next records to append, and may make the disk full or failing.
fn some_records(disk: &FaultyDisk, random: &SeededRandom, next: u64, life: u64) -> Vec<Record> {
    let record = |i| {
        let mark = format!("{life}-{}", random.next_u64());
        commit(next + i, life, &mark.repeat(1 + random.below(40) as usize))
    };
    let records = (0..1 + random.below(4)).map(record).collect();
    disk.set_space(random.one_in(4).then(|| random.below(800)));
    disk.fail_syncs(u32::from(random.one_in(20)));
    records
}

/// Calls `tried` every millisecond until it returns something.
fn eventually<T>(mut tried: impl FnMut() -> Option<T>) -> T {
    let clock = RealClock::new();
    let found = (0..120_000).find_map(|_| {
        tried().or_else(|| {
            clock.sleep(Duration::from_millis(1));
            None
        })
    });
    found.expect("it did not happen within 120 s")
}

/// Appends until the machine goes down or the log is poisoned; returns the records that may or may not be in the log.
fn live(
    log: &mut FileLog,
    disk: &FaultyDisk,
    random: &SeededRandom,
    base: &mut u64,
    acknowledged: &mut Vec<Record>,
    life: u64,
) -> Vec<Record> {
    loop {
        let next = *base + acknowledged.len() as u64;
        let batch = some_records(disk, random, next, life);
        match log.append(&batch) {
            Ok(()) => acknowledged.extend(batch),
            // Nothing of the append was written.
            Err(Error::Full(_) | Error::Io(_)) => {}
            Err(Error::Poisoned { .. }) => {
                assert!(matches!(log.append(&batch), Err(Error::Poisoned { .. })));
                return batch;
            }
            Err(other) => panic!("{other}"),
        }
        if disk.list(Path::new(DIR)).is_err() {
            return Vec::new();
        }
        if random.one_in(8) {
            let below = *base + random.below(acknowledged.len() as u64 + 1);
            // A trim that fails may have removed some files, so all versions that it may delete count as deleted.
            let _ = log.trim(Version(below));
            acknowledged.drain(..(below - *base) as usize);
            *base = below;
        }
    }
}

/// A log that syncs late loses no synced record, and of the other records only the end.
/// Shows LOG-5.
#[test]
fn crashes_anywhere_between_late_syncs() {
    let lost: usize = (0..400)
        .map(|seed| {
            let run = std::panic::catch_unwind(|| crashes_late_with_seed(seed));
            run.unwrap_or_else(|_| {
                panic!("seed {seed} fails; replay it with `crashes_late_with_seed({seed})`")
            })
        })
        .sum();
    assert!(lost > 100, "only {lost} answered records were lost: crashes came after syncs");
}

/// Returns the number of acknowledged records that were lost.
fn crashes_late_with_seed(seed: u64) -> usize {
    let disk = FaultyDisk::new(seed);
    let random = SeededRandom::new(!seed);
    let (mut there, mut lost) = (Vec::<Record>::new(), 0);
    for life in 0..6 {
        disk.crash_after(1 + random.below(80));
        let mut log = open_late(&disk, 100 + random.below(6000)).ok();
        // Records found at the last start are durable, and those that the last sync covered.
        let mut synced = there.len();
        let mut in_doubt = Vec::new();
        while let Some(log) = &mut log {
            let next = there.len() as u64 + 1;
            let batch = some_records(&disk, &random, next, life);
            match log.append(&batch) {
                Ok(()) => there.extend(batch),
                Err(Error::Full(_) | Error::Io(_)) => {}
                Err(Error::Poisoned { .. }) => {
                    assert!(matches!(log.append(&batch), Err(Error::Poisoned { .. })));
                    assert!(matches!(log.sync(), Err(Error::Poisoned { .. })));
                    in_doubt = batch;
                    break;
                }
                Err(other) => panic!("{other}"),
            }
            if disk.list(Path::new(DIR)).is_err() {
                break;
            }
            if random.one_in(5) && log.sync().is_ok() {
                synced = there.len();
            }
        }
        // The machine goes down while the log is open: no sync follows.
        disk.crash();
        drop(log);
        let found = read_all(&mut open(&disk, 1000).unwrap(), 1).unwrap();
        assert!(found.len() >= synced, "life {life}: {} of {synced} synced", found.len());
        let tried = [there.as_slice(), &in_doubt].concat();
        assert!(
            tried.starts_with(&found),
            "life {life}: {} records are not the first of those tried",
            found.len()
        );
        lost += there.len().saturating_sub(found.len());
        there = found;
    }
    lost
}

#[test]
fn a_late_log_syncs_by_itself_and_at_its_end() {
    let disk = FaultyDisk::new(1);
    let soon = FileLogOptions { sync_every: Some(Duration::from_millis(1)), ..FileLogOptions::default() };
    let mut log = open_with(&disk, soon).unwrap();
    assert!(log.syncs_later());
    for version in 1..=3 {
        let before = disk.syncs();
        log.append(&[commit(version, 1, "a")]).unwrap();
        eventually(|| (disk.syncs() > before).then_some(()));
    }
    // A sync is counted when it begins. All syncs are complete when the drop returns.
    drop(log);
    disk.crash();
    let mut log = open_late(&disk, 64 << 20).unwrap();
    log.append(&[commit(4, 2, "a")]).unwrap();
    drop(log);
    disk.crash();
    assert_eq!(read_all(&mut open(&disk, 1000).unwrap(), 1).unwrap().len(), 4);
}

/// Shows LOG-5.
#[test]
fn a_late_log_whose_sync_failed_takes_no_more() {
    let disk = FaultyDisk::new(1);
    let soon = FileLogOptions { sync_every: Some(Duration::from_millis(1)), ..FileLogOptions::default() };
    let mut log = open_with(&disk, soon).unwrap();
    log.append(&[commit(1, 1, "a")]).unwrap();
    disk.fail_syncs(1);
    let mut versions = 2..;
    let error = eventually(|| log.append(&[commit(versions.next()?, 1, "a")]).err());
    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
}

/// However slow the disk is, the unsynced bytes are bounded.
/// Shows LOG-5.
#[test]
fn a_late_log_syncs_when_many_bytes_wait() {
    let disk = FaultyDisk::new(1);
    let mut log = open_late(&disk, 1 << 30).unwrap();
    let text = "a".repeat(1 << 20);
    for version in 1..=70 {
        log.append(&[commit(version, 1, &text)]).unwrap();
    }
    disk.crash();
    drop(log);
    let found = read_all(&mut open(&disk, 1 << 30).unwrap(), 1).unwrap().len();
    assert!(found >= 70 - 33, "{found} of 70 MiB are left");
}

/// The process that wrote the end of the file died before its sync. The process that opens the file syncs it before
/// anybody reads it.
/// Shows LOG-2.
#[test]
fn records_found_at_opening_are_durable() {
    let disk = FaultyDisk::new(7);
    let mut log = open_late(&disk, 64 << 20).unwrap();
    log.append(&[commit(1, 1, "a"), commit(2, 1, "b")]).unwrap();
    // Only the process dies: the system has its writes, and its lock is free.
    std::mem::forget(log);
    disk.free_locks();
    let mut log = open(&disk, 64 << 20).unwrap();
    assert_eq!(read_all(&mut log, 1).unwrap().len(), 2);
    disk.crash();
    drop(log);
    assert_eq!(read_all(&mut open(&disk, 64 << 20).unwrap(), 1).unwrap().len(), 2);
}

/// If any byte is damaged, recovery reports it, unless the byte is in the last append,
/// where damage looks like a torn tail.
/// Shows LOG-3.
#[test]
fn every_damaged_byte_is_noticed() {
    let records: Vec<_> = (1..=6).map(|v| commit(v, 1, "some text")).collect();
    let make = || {
        let disk = FaultyDisk::new(1);
        let mut log = open(&disk, 350).unwrap();
        log.append(&records[..1]).unwrap();
        log.append(&records[1..3]).unwrap();
        log.append(&records[3..4]).unwrap();
        log.append(&records[4..]).unwrap();
        disk
    };
    let files = make().list(Path::new(DIR)).unwrap();
    assert_eq!(files.len(), 2, "{files:?}");
    let (mut corrupt, mut cut) = (0, 0);
    for (index, info) in files.iter().enumerate() {
        for byte in 0..info.bytes as usize {
            let disk = make();
            let path = Path::new(DIR).join(&info.name);
            disk.flip(&path, byte, 1 << (byte % 8));
            let before = disk.contents(&path);
            match open(&disk, 350).and_then(|mut log| read_all(&mut log, 1)) {
                Ok(found) => {
                    assert_eq!(index, 1, "byte {byte} of {}", info.name);
                    assert_eq!(found, records[..found.len()]);
                    assert!(found.len() >= 4, "byte {byte} of {}: {} records", info.name, found.len());
                    cut += 1;
                }
                Err(Error::Corrupt { file, .. }) => {
                    assert_eq!(file, path);
                    assert_eq!(disk.contents(&path), before, "a damaged file was changed");
                    corrupt += 1;
                }
                Err(other) => panic!("byte {byte} of {}: {other}", info.name),
            }
        }
    }
    assert!(corrupt > 300 && cut > 50, "{corrupt} {cut}");
}

/// Shows LOG-3.
#[test]
fn a_torn_tail_is_cut_and_counted() {
    let disk = FaultyDisk::new(1);
    let mut log = open(&disk, 64 << 20).unwrap();
    log.append(&[commit(1, 1, "a")]).unwrap();
    drop(log);
    let whole = disk.contents(&file(1)).unwrap();
    // Half a frame, zeros, and random bytes.
    for tail in [whole[36..60].to_vec(), vec![0; 5000], vec![0xff; 100]] {
        disk.put(&file(1), &[whole.clone(), tail.clone()].concat());
        let mut log = open(&disk, 64 << 20).unwrap();
        assert_eq!(log.recovery(), Recovery { torn_bytes: tail.len() as u64, torn_files: 0 });
        assert_eq!(read_all(&mut log, 1).unwrap(), [commit(1, 1, "a")]);
        drop(log);
        assert_eq!(disk.contents(&file(1)).unwrap(), whole);
    }
}

/// Shows LOG-3.
#[test]
fn a_missing_file_is_noticed() {
    let disk = FaultyDisk::new(1);
    let mut log = open(&disk, 1).unwrap();
    for version in 1..=4 {
        log.append(&[commit(version, 1, "a")]).unwrap();
    }
    drop(log);
    disk.remove(&file(2)).unwrap();
    let mut log = open(&disk, 1).unwrap();
    let error = read_all(&mut log, 1).unwrap_err();
    assert!(error.to_string().contains("begins with version 3 instead of 2"), "{error}");
    assert_eq!(error.code(), tidegraph_types::ErrorCode::Corrupt);
    assert_eq!(read_all(&mut log, 3).unwrap().len(), 2);
}

#[test]
fn a_record_of_a_newer_release_stops_the_reader() {
    // Field 31 of a record, of a mutation and of a value: kinds that this version does not know.
    let unknown = [0xfa, 0x01, 0x00];
    let within = |field: u8, bytes: &[u8]| [&[field << 3 | 2, bytes.len() as u8][..], bytes].concat();
    let value = within(5, &within(2, &within(3, &unknown)));
    let bodies = [
        ("LogBody", unknown.to_vec()),
        ("Mutation", within(1, &within(1, &unknown))),
        ("Value", within(1, &within(1, &value))),
    ];
    for (message, body) in bodies {
        let disk = FaultyDisk::new(1);
        let mut log = open(&disk, 64 << 20).unwrap();
        log.append(&[commit(1, 1, "a")]).unwrap();
        drop(log);
        let whole = disk.contents(&file(1)).unwrap();
        let mut bytes = whole.clone();
        tidegraph_wire::frame::write_frame_with(&mut bytes, |out| {
            out.extend(0_u16.to_le_bytes());
            [1, 2, whole.len() as u64].iter().for_each(|number: &u64| out.extend(number.to_le_bytes()));
            out.extend(&body);
        })
        .unwrap();
        disk.put(&file(1), &bytes);
        // The record is whole, so it is not cut, and no reader may skip it.
        let mut log = open(&disk, 64 << 20).unwrap();
        assert_eq!(log.tail().unwrap().version, Version(2));
        assert_eq!(log.recovery(), Recovery::default());
        let mut records = log.read_from(Version(1)).unwrap();
        assert_eq!(records.next().unwrap().unwrap(), commit(1, 1, "a"));
        let error = records.next().unwrap().unwrap_err();
        assert!(matches!(error, Error::Newer { version: Version(2), .. }), "{error}");
        let text = error.to_string();
        let place = format!("at byte {}", whole.len());
        for part in ["record of version 2 in log file", place.as_str(), message, "newer version"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(records.next().is_none());
        drop(records);
        assert_eq!(disk.contents(&file(1)).unwrap(), bytes);
    }
}

/// Twenty records in several files, the newest last.
fn several_files(disk: &FaultyDisk) -> Vec<PathBuf> {
    let mut log = open(disk, 300).unwrap();
    (1..=20).for_each(|version| log.append(&[commit(version, 1, "a")]).unwrap());
    let files = disk.list(Path::new(DIR)).unwrap();
    let files: Vec<_> = files.iter().filter(|file| file.name.ends_with(".log")).collect();
    assert!(files.len() > 3, "{files:?}");
    files.iter().map(|file| Path::new(DIR).join(&file.name)).collect()
}

fn accepting(disk: &FaultyDisk, checkpoint: Option<Tail>, version: u64) -> Result<FileLog, Error> {
    open_with(
        disk,
        FileLogOptions { checkpoint, accept_loss: Some(Version(version)), ..FileLogOptions::default() },
    )
}

/// Shows LOG-3.
#[test]
fn missing_files_are_told_and_their_loss_can_be_accepted() {
    for lost in 1..=3 {
        let disk = FaultyDisk::new(1);
        let files = several_files(&disk);
        let (kept, removed) = files.split_at(files.len() - lost);
        removed.iter().for_each(|file| disk.remove(file).unwrap());
        let before = disk.list(Path::new(DIR)).unwrap();
        let error = open(&disk, 300).unwrap_err();
        let Error::Lost { tail, left, least, .. } = error else { panic!("{error}") };
        assert_eq!(file(tail.0 + 1), removed[0], "the tail is where the first missing file began");
        assert_eq!((left, file(least.0)), (tail, removed[lost - 1].clone()));
        assert!(error.to_string().contains(&format!("--accept-loss {left}")), "{error}");
        // Another version is not what the user would get.
        for wrong in [0, tail.0 - 1, tail.0 + 1, least.0] {
            assert!(matches!(accepting(&disk, None, wrong), Err(Error::Lost { .. })), "{wrong}");
        }
        assert_eq!(disk.list(Path::new(DIR)).unwrap(), before, "nothing was changed");
        let mut log = accepting(&disk, None, left.0).unwrap();
        assert_eq!(log.tail().map(|tail| tail.version), Some(left));
        log.append(&[commit(left.0 + 1, 2, "b")]).unwrap();
        drop(log);
        let mut log = open(&disk, 300).unwrap();
        assert_eq!(read_all(&mut log, 1).unwrap().len() as u64, left.0 + 1, "{} files", kept.len());
    }
}

#[test]
fn a_log_that_does_not_reach_its_checkpoint_has_lost_files() {
    let checkpoint = Some(Tail { version: Version(15), epoch: Epoch(1) });
    let with_checkpoint =
        |disk: &FaultyDisk| open_with(disk, FileLogOptions { checkpoint, ..FileLogOptions::default() });
    for kept in 0..=1 {
        let disk = FaultyDisk::new(1);
        assert_eq!(with_checkpoint(&disk).unwrap_err().code(), ErrorCode::Corrupt, "an empty log");
        let files = several_files(&disk);
        assert_eq!(with_checkpoint(&disk).unwrap().tail().unwrap().version, Version(20));
        files[kept..].iter().for_each(|file| disk.remove(file).unwrap());
        disk.remove(Path::new("/log.end")).unwrap();
        let error = with_checkpoint(&disk).unwrap_err();
        let Error::Lost { left: Version(15), .. } = error else { panic!("{error}") };
        let log = accepting(&disk, checkpoint, 15).unwrap();
        assert_eq!(log.tail(), checkpoint);
        drop(log);
        // It goes on behind the checkpoint, and what was left before it is kept under another name.
        let mut log = with_checkpoint(&disk).unwrap();
        assert_eq!(log.tail(), checkpoint);
        log.append(&[commit(16, 2, "b")]).unwrap();
        assert_eq!(read_all(&mut log, 16).unwrap(), [commit(16, 2, "b")]);
        let aside = disk.list(Path::new(DIR)).unwrap().iter().filter(|f| f.name.ends_with(".lost")).count();
        assert_eq!(aside, kept);
    }
}

#[test]
fn a_damaged_mark_is_told() {
    let disk = FaultyDisk::new(1);
    several_files(&disk);
    for bytes in [&b"TIDEEND"[..], &[7; 20], &[7; 21]] {
        disk.put(Path::new("/log.end"), bytes);
        let error = open(&disk, 300).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }) && error.to_string().contains("/log.end"), "{error}");
    }
}

#[test]
fn another_format_or_shard_is_refused() {
    let disk = FaultyDisk::new(1);
    open(&disk, 1000).unwrap().append(&[commit(1, 1, "a")]).unwrap();
    let other = FileLog::open(Arc::new(disk.clone()), Path::new(DIR), ShardId(1), FileLogOptions::default());
    assert!(other.unwrap_err().to_string().contains("belongs to shard 0"));
    let mut bytes = disk.contents(&file(1)).unwrap();
    bytes[8] = 2;
    let crc = crc32c::crc32c(&bytes[..32]);
    bytes[32..36].copy_from_slice(&crc.to_le_bytes());
    disk.put(&file(1), &bytes);
    let refused = open(&disk, 1000).unwrap_err().to_string();
    assert!(refused.contains("has format 2, this release reads 1: a newer release wrote it"), "{refused}");
}

/// Shows LOG-1.
#[test]
fn a_full_disk_stops_writes_until_there_is_room() {
    let disk = FaultyDisk::new(1);
    let mut log = open(&disk, 64 << 20).unwrap();
    log.append(&[commit(1, 1, "a")]).unwrap();
    disk.set_space(Some(50));
    let error = log.append(&[commit(2, 1, "b")]).unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert_eq!(read_all(&mut log, 1).unwrap(), [commit(1, 1, "a")]);
    disk.set_space(None);
    log.append(&[commit(2, 1, "c")]).unwrap();
    assert_eq!(read_all(&mut log, 2).unwrap(), [commit(2, 1, "c")]);
}

/// Shows LOG-2.
#[test]
fn a_failed_sync_poisons() {
    let disk = FaultyDisk::new(1);
    let mut log = open(&disk, 64 << 20).unwrap();
    log.append(&[commit(1, 1, "a")]).unwrap();
    disk.fail_syncs(1);
    for _ in 0..2 {
        let error = log.append(&[commit(2, 1, "b")]).unwrap_err();
        assert!(error.to_string().contains("cannot sync file /log/00000000000000000001.log"), "{error}");
        assert!(matches!(error, Error::Poisoned { .. }));
    }
    assert_eq!(read_all(&mut log, 1).unwrap(), [commit(1, 1, "a")]);
}

/// After a failed sync, the system shows pages that the disk does not have, and later syncs succeed without them. A
/// process that starts anew must not build on such pages. Shows LOG-2.
#[test]
fn a_restart_after_a_failed_sync_does_not_trust_what_it_reads() {
    for seed in 0..50 {
        for acknowledged in [1, 2] {
            let disk = FaultyDisk::new(seed);
            let mut log = open(&disk, 64 << 20).unwrap();
            (1..=acknowledged).for_each(|version| log.append(&[commit(version, 1, "a")]).unwrap());
            disk.fail_syncs(1);
            log.append(&[commit(acknowledged + 1, 1, "b")]).unwrap_err();
            drop(log);
            let mut log = open(&disk, 64 << 20).unwrap();
            let next = log.tail().unwrap().version.0 + 1;
            log.append(&[commit(next, 2, "acknowledged")]).unwrap();
            let before = read_all(&mut log, 1).unwrap();
            drop(log);
            disk.crash();
            assert_eq!(read_all(&mut open(&disk, 64 << 20).unwrap(), 1).unwrap(), before, "seed {seed}");
        }
    }
}

#[test]
fn an_unreadable_file_is_not_cut() {
    let disk = FaultyDisk::new(1);
    open(&disk, 1000).unwrap().append(&[commit(1, 1, "a")]).unwrap();
    let before = disk.contents(&file(1));
    disk.fail_reads(true);
    assert!(matches!(open(&disk, 1000), Err(Error::Io(_))));
    assert_eq!(disk.contents(&file(1)), before);
}

#[test]
fn a_record_that_cannot_be_encoded_is_refused() {
    let disk = FaultyDisk::new(1);
    let mut log = open(&disk, 1000).unwrap();
    let write = PropertyWrite { key: Token(1), cardinality: Cardinality::Single, value: Value::Null };
    let mut record = commit(2, 1, "b");
    record.body = crate::Body::Commit {
        mutations: vec![Mutation::SetVertexProperty { gui: Gui(1), write }],
        next_sid: tidegraph_types::Sid(0),
        request: None,
        changes: None,
    };
    let error = log.append(&[commit(1, 1, "a"), record]).unwrap_err();
    assert!(matches!(error, Error::Encode { version: Version(2), .. }), "{error}");
    log.append(&[commit(1, 1, "c")]).unwrap();
    assert_eq!(read_all(&mut log, 1).unwrap(), [commit(1, 1, "c")]);
}
