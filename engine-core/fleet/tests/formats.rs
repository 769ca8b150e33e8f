//! Each release reads what the release before it wrote, and `contracts/releases.json` says what each line of releases
//! writes. These tests fail if a format gets a new version, and the reader of the old version or the golden file is
//! missing.

#![allow(clippy::disallowed_methods, reason = "a test reaches the machine itself")]
#![allow(clippy::unwrap_used)]

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_cluster::Lineage;
use tidegraph_fleet::backup::{self, Archive, Backup};
use tidegraph_log::archive::{self, ArchiveReader};
use tidegraph_log::{FileLog, FileLogOptions, LogStore};
use tidegraph_platform::{ManualClock, Objects, RealDisk};
use tidegraph_storage::StoreConfig;
use tidegraph_storage::checkpoint::{Format, restore_newest};
use tidegraph_types::{Formats, PartitionCount, ShardId};
use tidegraph_wire::segment::{self, SegmentReader};

/// A line of releases, and the version of each format that it writes.
#[derive(Clone, Debug, Deserialize)]
struct Written {
    line: String,
    follows: Option<String>,
    #[serde(flatten)]
    versions: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct Releases {
    lines: Vec<Written>,
}

fn contracts(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts").join(path)
}

fn lines() -> Vec<Written> {
    let text = std::fs::read_to_string(contracts("releases.json")).unwrap();
    serde_json::from_str::<Releases>(&text).unwrap().lines
}

/// What this build reads and writes of each format.
fn ours() -> BTreeMap<&'static str, Formats> {
    BTreeMap::from([
        ("protocol", tidegraph_remote::PROTOCOLS),
        ("log", tidegraph_log::FORMATS),
        ("archive", archive::FORMATS),
        ("segment", segment::FORMATS),
        ("checkpoint", Format::formats()),
        ("backup", backup::FORMATS),
    ])
}

/// Says what is wrong with a build that is of the last of these lines, and has these formats.
fn wrong(lines: &[Written], ours: &BTreeMap<&'static str, Formats>, lineage: Lineage) -> Vec<String> {
    let mut found = Vec::new();
    let Some(this) = lines.last() else { return vec!["there is no line of releases".into()] };
    let line = lineage.release.line().to_string();
    if this.line != line {
        found.push(format!(
            "the build is of line {line}, and releases.json ends with {}: add its line",
            this.line
        ));
    }
    let before = lines.len().checked_sub(2).map(|at| &lines[at]);
    let follows = lineage.follows.map(|line| line.to_string());
    if this.follows != follows || this.follows.as_ref() != before.map(|before| &before.line) {
        found.push(format!(
            "line {line} follows {:?} in releases.json, {follows:?} in Lineage::THIS, and stands after {:?}",
            this.follows,
            before.map(|before| &before.line)
        ));
    }
    if this.versions.keys().map(String::as_str).ne(ours.keys().copied().collect::<Vec<_>>()) {
        found.push(format!("line {line} names other formats than the code: {:?}", this.versions.keys()));
    }
    for (name, formats) in ours {
        if let Some(written) = this.versions.get(*name).filter(|written| **written != formats.newest) {
            let text = "a new version of a format begins a line of releases";
            found.push(format!("{line} writes {name} {written}, the code writes {}: {text}", formats.newest));
        }
        for one in [Some(this), before].into_iter().flatten() {
            if let Some(written) = one.versions.get(*name).filter(|written| !formats.reads(**written)) {
                found
                    .push(format!("{} writes {name} {written}, and the code reads {formats} only", one.line));
            }
        }
    }
    found
}

#[test]
fn this_release_reads_what_it_and_the_one_before_write() {
    assert_eq!(wrong(&lines(), &ours(), Lineage::THIS), Vec::<String>::new());
}

/// The check itself, with a next release that does not exist yet.
#[test]
fn a_format_that_loses_its_reader_is_found() {
    use tidegraph_cluster::{Line, Release};
    let first = lines().remove(0);
    let mut second = Written { line: "0.2".into(), follows: Some("0.1".into()), ..first.clone() };
    second.versions.insert("checkpoint".into(), 3);
    let lines = [first, second];
    let next = Lineage {
        release: Release { major: 0, minor: 2, patch: 0 },
        follows: Some(Line { major: 0, minor: 1 }),
    };
    let with = |checkpoint| {
        let mut ours = ours();
        ours.insert("checkpoint", checkpoint);
        ours
    };
    assert_eq!(wrong(&lines, &with(Formats::new(2, 3)), next), Vec::<String>::new());
    let lost = wrong(&lines, &with(Formats::only(3)), next);
    assert_eq!(lost, ["0.1 writes checkpoint 2, and the code reads 3 only"]);
    let early = wrong(&lines[..1], &with(Formats::new(2, 3)), Lineage::THIS);
    assert!(early[0].contains("0.1 writes checkpoint 2, the code writes 3"), "{early:?}");
    assert!(!wrong(&lines, &with(Formats::new(2, 3)), Lineage::THIS).is_empty());
}

/// Reads the golden file of every version that this build reads; a version without one fails.
#[test]
fn there_is_a_golden_file_of_every_version_that_is_read() {
    for (name, formats) in ours() {
        for version in formats.oldest..=formats.newest {
            match name {
                // Frames of APL requests and answers, whose messages the protocol carries.
                "protocol" => assert!(contracts("golden/apl-v1.json").exists()),
                "log" => read_log(&golden("log", version, ".bin")),
                "archive" => {
                    let bytes = std::fs::read(golden("archive", version, ".bin")).unwrap();
                    let mut reader = ArchiveReader::new(&bytes[..], "golden").unwrap();
                    assert!(reader.next_entry().unwrap().is_some());
                }
                "segment" => {
                    let bytes = std::fs::read(golden("segment", version, ".bin")).unwrap();
                    let mut reader = SegmentReader::open(&bytes[..]).unwrap();
                    assert!(reader.next_block().unwrap().is_some());
                }
                "checkpoint" => {
                    let objects = Objects::local(&golden("checkpoint", version, "")).unwrap();
                    let config = StoreConfig {
                        partitions: PartitionCount::new(2).unwrap(),
                        ..StoreConfig::new(Arc::new(ManualClock::default()))
                    };
                    let restored = restore_newest(&config, &objects, "c").unwrap().unwrap();
                    assert!(restored.refused.is_empty(), "{:?}", restored.refused);
                    assert_eq!(u32::from(restored.manifest.format.number()), version);
                }
                "backup" => {
                    let bytes = std::fs::read(golden("backup", version, ".json")).unwrap();
                    Backup::decode("golden", &bytes).unwrap();
                    // Manifests of archives have the formats of backups.
                    let bytes = std::fs::read(golden("archive-manifest", version, ".json")).unwrap();
                    Archive::decode("golden", &bytes).unwrap();
                }
                other => panic!("{other} has no golden file: add it here"),
            }
        }
    }
}

fn golden(name: &str, version: u32, ending: &str) -> PathBuf {
    contracts(&format!("golden/{name}-v{version}{ending}"))
}

/// Opens a log of the one file, as a daemon that starts.
fn read_log(file: &Path) {
    let home = tempfile::tempdir().unwrap();
    let shard = home.path().join("log");
    std::fs::create_dir(&shard).unwrap();
    std::fs::copy(file, shard.join("00000000000000000001.log")).unwrap();
    let log = FileLog::open(Arc::new(RealDisk), &shard, ShardId(0), FileLogOptions::default()).unwrap();
    assert!(log.tail().is_some_and(|tail| tail.version.0 > 1));
}
