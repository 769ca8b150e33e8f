//! Tests of the faulty disk itself, and the suite that every disk must pass.

use super::*;

fn read(disk: &dyn Disk, path: &Path, offset: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    disk.open_read(path, offset).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Checks what every disk must do.
pub(crate) fn disk_suite(disk: &dyn Disk, root: &Path) {
    let dir = root.join("a/b");
    disk.create_dir_all(&dir).unwrap();
    disk.create_dir_all(&dir).unwrap();
    let (one, two) = (dir.join("1"), dir.join("2"));
    let mut file = disk.open_append(&one).unwrap();
    assert!(file.is_empty().unwrap());
    file.append(b"hello ").unwrap();
    file.append(b"world").unwrap();
    file.sync_data().unwrap();
    assert_eq!(read(disk, &one, 6), b"world");
    file.truncate(5).unwrap();
    file.append(b"!").unwrap();
    assert_eq!(file.len().unwrap(), 6);
    assert_eq!(read(disk, &one, 0), b"hello!");
    disk.open_append(&two).unwrap().append(b"x").unwrap();
    let info = |name: &str, bytes| FileInfo { name: name.into(), bytes };
    assert_eq!(disk.list(&dir).unwrap(), [info("1", 6), info("2", 1)]);
    disk.rename(&two, &dir.join("0")).unwrap();
    disk.remove(&one).unwrap();
    disk.sync_dir(&dir).unwrap();
    assert_eq!(disk.list(&dir).unwrap(), [info("0", 1)]);
    assert_eq!(disk.remove(&one).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(disk.list(&root.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    let lock = disk.lock(&dir.join("lock")).unwrap();
    assert_eq!(disk.lock(&dir.join("lock")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    disk.lock(&dir.join("lock")).unwrap();
}

fn opened(seed: u64) -> (FaultyDisk, PathBuf, Box<dyn DiskFile>) {
    let disk = FaultyDisk::new(seed);
    disk.create_dir_all(Path::new("/d")).unwrap();
    let path = PathBuf::from("/d/f");
    let file = disk.open_append(&path).unwrap();
    (disk, path, file)
}

#[test]
fn files_behave() {
    disk_suite(&FaultyDisk::new(1), Path::new("/root"));
}

#[test]
fn what_was_synced_survives_every_crash() {
    let (mut torn, mut gone) = (0, 0);
    for seed in 0..200 {
        let (disk, path, mut file) = opened(seed);
        file.append(&[1; 700]).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        file.append(&[2; 2000]).unwrap();
        disk.open_append(Path::new("/d/g")).unwrap();
        disk.crash();
        assert!(file.append(b"x").is_err());
        let bytes = disk.contents(&path).unwrap();
        assert_eq!(bytes[..700], [1; 700], "seed {seed}");
        assert!(bytes[700..].iter().all(|b| [0, 2].contains(b)), "seed {seed}");
        torn += i32::from(bytes.len() > 700 && bytes.len() < 2700);
        gone += i32::from(disk.contents(Path::new("/d/g")).is_none());
    }
    assert!(torn > 20 && gone > 20, "{torn} {gone}");
}

#[test]
fn a_full_disk_takes_a_part() {
    let (disk, path, mut file) = opened(1);
    disk.set_space(Some(3));
    assert!(file.append(b"hello").unwrap_err().is_full());
    assert_eq!(disk.contents(&path).unwrap(), b"hel");
    file.truncate(0).unwrap();
    file.append(b"abc").unwrap();
    assert!(file.append(b"d").is_err());
}

#[test]
fn what_a_failed_sync_lost_stays_lost() {
    let mut lost = 0;
    for seed in 0..50 {
        let (disk, path, mut file) = opened(seed);
        disk.sync_dir(Path::new("/d")).unwrap();
        file.append(b"hello").unwrap();
        disk.fail_syncs(1);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        assert_eq!(disk.contents(&path).unwrap(), b"hello");
        disk.crash();
        lost += i32::from(disk.contents(&path).unwrap() != b"hello");
    }
    assert!(lost > 5, "{lost}");
}

#[test]
fn a_crash_on_schedule() {
    let (disk, _, mut file) = opened(3);
    disk.crash_after(2);
    file.append(b"one").unwrap();
    assert!(file.append(b"two").is_err());
    assert!(file.sync_data().is_err());
    assert!(disk.list(Path::new("/d")).is_err());
    disk.crash();
    disk.list(Path::new("/d")).unwrap();
}
