//! Opens a log of one file and reads it. Checksums are not compared in a build for fuzzing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Arc;
use tidegraph_log::{FileLog, FileLogOptions, LogStore};
use tidegraph_platform::{Disk, FaultyDisk};
use tidegraph_types::{ShardId, Version};

fuzz_target!(|bytes: &[u8]| {
    let disk = FaultyDisk::new(1);
    let dir = Path::new("/log");
    disk.create_dir_all(dir).expect("a directory in memory");
    let mut file = disk.open_append(&dir.join(format!("{:020}.log", 1))).expect("a file in memory");
    file.append(bytes).expect("bytes in memory");
    drop(file);
    let open = || FileLog::open(Arc::new(disk.clone()), dir, ShardId(0), FileLogOptions::default());
    let Ok(mut log) = open() else { return };
    let (first, tail) = (log.first(), log.tail());
    let read = |log: &mut FileLog| {
        let records = log.read_from(first.unwrap_or(Version(1))).ok()?;
        Some(records.map_while(Result::ok).map(|record| record.version).collect::<Vec<_>>())
    };
    let versions = read(&mut log);
    // What one recovery left is what the next one finds.
    drop(log);
    let mut again = open().expect("a recovered log opens");
    assert_eq!((again.first(), again.tail()), (first, tail));
    assert_eq!(read(&mut again), versions);
});
