//! Pages in the spill file: damage, failures, reuse of space, memory accounting.

pub(super) use super::super::spill::evict::Evicted;
use super::super::spill::{Error, PageMemory, lost};
use super::*;
use crate::store::MemoryBudget;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, Disk, FaultyDisk, RealClock};

/// Makes rows that can be evicted to a disk that fails on request, without a memory limit for readers.
pub(super) fn rows() -> (Rows, FaultyDisk) {
    let disk = FaultyDisk::new(1);
    let budget =
        MemoryBudget { bytes: 1 << 40, disk: Arc::new(disk.clone()), dir: "dir".into(), process_bytes: None };
    let rows = Rows { table: PageTable::new(Arc::new(PageMemory::new(Some(budget)))), ..Rows::default() };
    (rows, disk)
}

fn long(n: u64) -> Value {
    Value::string(format!("{n} is the number of a text that is longer than what fits in place"))
}

fn fill(rows: &mut Rows, owners: u64) {
    for owner in 0..owners {
        rows.create(1, owner, &format!("an id of its own {owner}"), &[1], &[]);
        rows.set(1, owner, 10, Cardinality::Single, &long(owner));
    }
    rows.reclaim(1);
}

/// Evicts every page that may go, used or not.
fn evict(rows: &mut Rows) -> u64 {
    rows.evict().bytes + rows.evict().bytes
}

fn file(disk: &FaultyDisk) -> std::path::PathBuf {
    let files = disk.list(Path::new("dir")).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    Path::new("dir").join(&files[0].name)
}

#[test]
fn pages_go_and_come_back_as_they_were() {
    let (mut rows, _) = rows();
    fill(&mut rows, 3000);
    let before: Vec<_> = (0..3000).map(|owner| rows.see(1, owner)).collect();
    let resident = rows.table.memory().resident();
    assert_eq!(
        resident,
        rows.bytes().properties as u64 + rows.bytes().vertices as u64 + rows.bytes().ids as u64
            - rows.table.bytes() as u64
            - rows.pages.page_state_bytes() as u64
    );
    assert_eq!(evict(&mut rows), resident);
    assert_eq!(rows.table.memory().resident(), 0);
    let spilled = rows.table.memory().spilled();
    assert!(spilled > 0);
    for (owner, before) in before.iter().enumerate() {
        assert_eq!(&rows.see(1, owner as u64), before);
    }
    assert_eq!(rows.table.memory().resident(), resident, "what comes back takes what it took");
    // Unchanged pages are not written again; changed pages free their place.
    evict(&mut rows);
    assert_eq!(rows.table.memory().spilled(), spilled);
    rows.set(2, 5, 10, Cardinality::Single, &long(0));
    assert!(rows.table.memory().spilled() < spilled);
    assert_eq!(rows.see(1, 5), before[5]);
    rows.reclaim(2);
    evict(&mut rows);
    assert_eq!(rows.table.memory().spilled(), spilled);
    assert_eq!(rows.see(2, 5).unwrap().cells[0].2, format!("{:?}", long(0)));
}

#[test]
fn pages_with_versions_stay_unless_one_version_brought_all_of_them() {
    let (mut rows, _) = rows();
    for owner in 0..100 {
        rows.create(5, owner, "id", &[1], &[]);
    }
    assert!(evict(&mut rows) > 0, "all rows came at version 5");
    for (version, there) in [(4, false), (5, true), (6, true)] {
        assert_eq!(rows.see(version, 7).is_some(), there, "at {version}");
        assert_eq!(rows.scan(version, &[], &[], 1000).len(), if there { 100 } else { 0 }, "at {version}");
    }
    rows.remove(6, 7);
    rows.set(6, 8, 10, Cardinality::Single, &long(8));
    assert_eq!(evict(&mut rows), 0, "versions 5 and 6 see other rows");
    for (version, there) in [(4, 0), (5, 100), (6, 99)] {
        assert_eq!(rows.scan(version, &[], &[], 1000).len(), there, "at {version}");
    }
    assert_eq!(rows.see(4, 8), None);
    rows.reclaim(6);
    assert!(evict(&mut rows) > 0);
    assert_eq!(rows.scan(6, &[], &[], 1000).len(), 99);
    assert_eq!(
        rows.scan(6, &[], &[PropertyPredicate { key: Token(10), test: Test::Exists, sole: false }], 10),
        [8]
    );
}

#[test]
fn damage_in_the_file_is_an_error_that_names_it() {
    let (mut rows, disk) = rows();
    fill(&mut rows, 200);
    evict(&mut rows);
    let path = file(&disk);
    let bytes = disk.contents(&path).unwrap().len();
    let before = rows.scan(1, &[], &[], 1000);
    for at in (0..bytes).step_by(bytes / 300) {
        disk.flip(&path, at, 0x10);
        let guard = pin();
        // Padding after an image may change unnoticed; any other damage is found.
        for number in (0..rows.table.end()).filter(|number| rows.table.whereabouts(*number).1) {
            let peeked = rows.table.peek(number, bytes::Texts::All, &guard).is_some();
            match lost::take() {
                None => assert!(peeked),
                Some(error @ Error::Damaged { .. }) => {
                    assert!(error.to_string().contains("dir/spill-"), "{error}");
                    assert!(error.to_string().contains("at byte "), "{error}");
                    assert!(!peeked);
                }
                Some(error) => panic!("{error}"),
            }
        }
        disk.flip(&path, at, 0x10);
    }
    disk.flip(&path, 30, 1);
    let place = rows.places[&0];
    assert_eq!(rows.see(1, 0), None);
    assert!(matches!(lost::take(), Some(Error::Damaged { offset: 0, .. })));
    let guard = pin();
    assert!(rows.table.bring_to_write(place.page(), &guard).is_none());
    assert!(rows.table.memory().broken().is_some(), "nothing may be written after this");
    disk.flip(&path, 30, 1);
    assert_eq!(rows.scan(1, &[], &[], 1000), before);
}

#[test]
fn a_disk_that_fails_takes_no_page_and_loses_none() {
    let (mut rows, disk) = rows();
    fill(&mut rows, 2000);
    let before = rows.scan(1, &[], &[], 5000);
    disk.set_space(Some(10_000));
    evict(&mut rows);
    let stuck = rows.table.memory().stuck().expect("the disk is full");
    assert!(stuck.to_string().contains("no space left"), "{stuck}");
    assert_eq!(rows.scan(1, &[], &[], 5000), before);
    disk.set_space(None);
    evict(&mut rows);
    assert!(rows.table.memory().stuck().is_none());
    disk.fail_reads(true);
    assert_eq!(rows.see(1, 1999), None);
    let error = lost::take().expect("reads fail");
    assert!(error.to_string().contains("cannot be read"), "{error}");
    disk.fail_reads(false);
    assert_eq!(rows.scan(1, &[], &[], 5000), before);
    assert!(rows.see(1, 1999).is_some());
}

#[test]
fn space_in_the_file_is_used_anew() {
    let (mut rows, disk) = rows();
    let clock = RealClock::new();
    fill(&mut rows, 1000);
    evict(&mut rows);
    let path = file(&disk);
    let first = disk.contents(&path).unwrap().len();
    for version in 2..40 {
        for owner in 0..1000 {
            rows.set(version, owner, 10, Cardinality::Single, &long(version));
        }
        rows.reclaim(version);
        evict(&mut rows);
        // Guards of other tests delay the reuse of a place.
        for _ in 0..100 {
            pin().flush();
            clock.sleep(Duration::from_micros(200));
        }
    }
    let last = disk.contents(&path).unwrap().len();
    assert!(last < 20 * first, "{first} bytes became {last}");
    assert_eq!(rows.see(39, 500).unwrap().cells[0].2, format!("{:?}", long(39)));
}
