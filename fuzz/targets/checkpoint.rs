//! Restores a checkpoint of one partition. Checksums are not compared in a build for fuzzing.
//!
//! The input is the manifest, behind its length as two bytes, and the object of the partition.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegraph_platform::Objects;
use tidegraph_storage::CheckpointMeta;
use tidegraph_storage::checkpoint::restore_newest;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let Some((manifest, partition)) = rest.split_at_checked(u16::from_le_bytes(*length).into()) else {
        return;
    };
    let objects = Objects::memory().expect("objects in memory");
    let number = "00000000000000000003-000000";
    for (path, content) in
        [(format!("c/manifest-{number}"), manifest), (format!("c/data-{number}/partition-00000"), partition)]
    {
        objects.put(&path, content.to_vec()).expect("objects in memory");
    }
    let Ok(Some(restored)) = restore_newest(&tidegraph_fuzz::config(), &objects, "c") else { return };
    // A store that was restored can be read, and written as a checkpoint.
    let version = restored.store.published();
    let again = Objects::memory().expect("objects in memory");
    let _ = restored.store.checkpoint(version, &again, "c", CheckpointMeta::default());
});
