//! Local copies of checkpoints: what they spare, and that no damage of them changes a restore.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use tidegraph_apl::{Apl, At, Projection, VertexRead, VertexRows};
use tidegraph_platform::{FaultyDisk, ManualClock, Objects};
use tidegraph_storage::checkpoint::{Kept, LocalCopies, RestoreReads, restore_newest};
use tidegraph_storage::{CheckpointMeta, Manifest, Store, StoreConfig};
use tidegraph_types::{Epoch, Gui, GuiHasher, Mutation, PartitionCount, Token, Version};

fn config(copies: Option<&Arc<LocalCopies>>) -> StoreConfig {
    StoreConfig {
        partitions: PartitionCount::new(2).unwrap(),
        copies: copies.cloned(),
        ..StoreConfig::new(Arc::new(ManualClock::default()))
    }
}

fn gui(number: u64) -> Gui {
    GuiHasher::default().gui(&number.to_string())
}

fn add(store: &Store, version: u64, vertices: std::ops::Range<u64>) {
    let create = |number: u64| Mutation::CreateVertex {
        gui: gui(number),
        id: number.to_string().as_str().into(),
        labels: vec![Token(1)],
        properties: vec![],
    };
    store.apply(Version(version), &vertices.map(create).collect::<Vec<_>>());
    store.publish(Version(version));
}

fn checkpoint(store: &Store, version: u64, objects: &Objects) -> Manifest {
    let meta = CheckpointMeta { graph: "g".into(), next_sid: 1, ..CheckpointMeta::default() };
    store.checkpoint(Version(version), objects, "c", meta).unwrap()
}

/// Checks that a store has these vertices and the one after them not.
fn check(store: &Store, version: u64, vertices: u64) {
    let at = At { version: Version(version), epoch: Epoch(0) };
    let read = VertexRead { ids: true, labels: false, properties: Projection::None, meta: false };
    let mut rows = VertexRows::default();
    let guis: Vec<Gui> = (0..=vertices).map(gui).collect();
    store.vertices(at, &read, &guis, &mut rows).unwrap();
    // A vertex that is not there has an empty row.
    let expected = (0..vertices).map(|number| number.to_string()).chain([String::new()]);
    assert!(rows.ids.iter().map(|id| &**id).eq(expected.collect::<Vec<_>>().iter().map(|id| &**id)));
}

fn never() -> bool {
    false
}

fn keep(copies: &LocalCopies, manifest: &Manifest, from: &Objects) -> Kept {
    copies.keep(manifest, from, &RestoreReads::default(), &never).unwrap()
}

/// Two checkpoints of which the second uses objects of the first, and copies of what it needs in a store.
fn copied() -> (Objects, Objects, Manifest) {
    let (objects, near) = (Objects::memory().unwrap(), Objects::memory().unwrap());
    let store = Store::new(config(None));
    add(&store, 1, 0..3_000);
    checkpoint(&store, 1, &objects);
    add(&store, 2, 3_000..3_010);
    let manifest = checkpoint(&store, 2, &objects);
    assert!(manifest.objects().count() > 2, "it builds on the checkpoint before");
    let copies = LocalCopies::open(near.clone()).unwrap();
    assert_eq!(keep(&copies, &manifest, &objects), Kept::All);
    assert_eq!(copies.bytes(), manifest.objects().map(|object| object.bytes).sum::<u64>());
    (objects, near, manifest)
}

fn opened(near: &Objects) -> Arc<LocalCopies> {
    Arc::new(LocalCopies::open(near.clone()).unwrap())
}

#[test]
fn a_restore_reads_the_manifest_and_nothing_else_from_the_object_store() {
    let (objects, near, manifest) = copied();
    for object in manifest.objects() {
        objects.delete(&object.path).unwrap();
    }
    assert!(restore_newest(&config(None), &objects, "c").is_err(), "the objects are gone");
    let restored = restore_newest(&config(Some(&opened(&near))), &objects, "c").unwrap().unwrap();
    check(&restored.store, 2, 3_010);
    // The next checkpoint cannot build on objects that are gone: it writes everything.
    let next = Objects::memory().unwrap();
    add(&restored.store, 3, 3_010..3_011);
    checkpoint(&restored.store, 3, &next);
    check(&restore_newest(&config(None), &next, "c").unwrap().unwrap().store, 3, 3_011);
}

#[test]
fn what_has_no_copy_is_read_from_the_object_store() {
    let (objects, near, manifest) = copied();
    for object in manifest.objects() {
        near.delete(&object.path).unwrap();
        let restored = restore_newest(&config(Some(&opened(&near))), &objects, "c").unwrap().unwrap();
        check(&restored.store, 2, 3_010);
    }
    assert_eq!(opened(&near).bytes(), 0);
}

#[test]
fn a_damaged_copy_is_forgotten_and_read_again() {
    let (objects, near, manifest) = copied();
    let all: Vec<_> = manifest.objects().cloned().collect();
    let mut found = 0;
    for object in &all {
        let whole = near.get(&object.path).unwrap();
        for at in (0..whole.len()).step_by(whole.len().div_ceil(40).max(1)) {
            let mut flipped = whole.to_vec();
            flipped[at] ^= 1;
            for damaged in [flipped, whole[..at].to_vec(), vec![0; whole.len()]] {
                near.put(&object.path, damaged).unwrap();
                let copies = opened(&near);
                let restored = restore_newest(&config(Some(&copies)), &objects, "c").unwrap().unwrap();
                assert!(restored.refused.is_empty(), "a copy never refuses a checkpoint");
                check(&restored.store, 2, 3_010);
                let is_gone = near.get(&object.path).is_err();
                found += usize::from(is_gone);
                // Then the next look copies the object again.
                assert_eq!(keep(&copies, &manifest, &objects), Kept::All);
                if is_gone {
                    assert_eq!(near.get(&object.path).unwrap(), whole);
                }
                near.put(&object.path, whole.clone()).unwrap();
            }
        }
    }
    assert!(found > all.len() * 40, "chunks that nobody uses are not read: {found}");
}

#[test]
fn copies_that_vanish_or_are_of_another_graph_do_no_harm() {
    let (objects, near, manifest) = copied();
    let copies = opened(&near);
    for object in manifest.objects() {
        near.delete(&object.path).unwrap();
    }
    let restored = restore_newest(&config(Some(&copies)), &objects, "c").unwrap().unwrap();
    assert!(restored.refused.is_empty());
    check(&restored.store, 2, 3_010);
    // Another graph had objects of the same names and sizes.
    let other = Objects::memory().unwrap();
    let store = Store::new(config(None));
    add(&store, 1, 10_000..13_000);
    checkpoint(&store, 1, &other);
    add(&store, 2, 13_000..13_010);
    for object in checkpoint(&store, 2, &other).objects() {
        near.put(&object.path, other.get(&object.path).unwrap()).unwrap();
    }
    let restored = restore_newest(&config(Some(&opened(&near))), &objects, "c").unwrap().unwrap();
    check(&restored.store, 2, 3_010);
}

#[test]
fn a_damaged_object_is_still_refused() {
    let (objects, near, manifest) = copied();
    let own = &manifest.partitions[0].objects[0];
    let mut bytes = objects.get(&own.path).unwrap().to_vec();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    objects.put(&own.path, bytes.clone()).unwrap();
    near.put(&own.path, bytes).unwrap();
    let restored = restore_newest(&config(Some(&opened(&near))), &objects, "c").unwrap().unwrap();
    assert_eq!((restored.manifest.version, restored.refused.len()), (Version(1), 1));
    assert!(restored.refused[0].error.to_string().contains(&own.path));
    check(&restored.store, 1, 3_000);
}

/// Copies on a disk that has some bytes free, of which they leave some.
fn on_disk(near: &Objects, free: u64, left_free: u64) -> LocalCopies {
    let disk = FaultyDisk::new(1);
    disk.set_space(Some(free));
    LocalCopies::open(near.clone()).unwrap().on_disk(Arc::new(disk), PathBuf::from("/copies"), left_free)
}

#[test]
fn copies_leave_room_and_what_is_not_needed_goes() {
    let (objects, near, manifest) = copied();
    let size = opened(&near).bytes();
    let with_room = |bytes: u64| on_disk(&near, bytes, 0);
    // Half of what would be free without the copies is less than they take.
    let largest = manifest.objects().map(|object| object.bytes).max().unwrap();
    with_room(size / 2).retain(|_| true);
    let left = opened(&near).bytes();
    assert!(left < size && size - left >= largest, "the largest goes first: {left} of {size}");
    assert_eq!(keep(&with_room(0), &manifest, &objects), Kept::NoRoom);
    assert_eq!(keep(&with_room(10 * size), &manifest, &objects), Kept::All);
    let kept = &manifest.partitions[1].objects[0];
    with_room(10 * size).retain(|object| object == kept.path);
    let listed = near.list("").unwrap();
    assert!(listed.iter().map(|object| &object.path).eq([&kept.path]));
}

#[test]
fn copies_leave_the_bytes_free_that_their_node_needs() {
    let (objects, near, manifest) = copied();
    let size = opened(&near).bytes();
    let free = 10 * size;
    assert!(!on_disk(&near, free, free).make_room());
    assert_eq!(opened(&near).bytes(), size);
    let largest = manifest.objects().map(|object| object.bytes).max().unwrap();
    let copies = on_disk(&near, free, free + 1);
    assert!(copies.make_room());
    let left = copies.bytes();
    assert_eq!((left, opened(&near).bytes()), (size - largest, size - largest), "one is enough");
    // What was removed is copied again only if it leaves enough.
    assert_eq!(keep(&on_disk(&near, free, free - largest + 1), &manifest, &objects), Kept::NoRoom);
    assert_eq!(opened(&near).bytes(), left);
    assert_eq!(keep(&on_disk(&near, free, free - largest), &manifest, &objects), Kept::All);
    assert!(on_disk(&near, 0, 2 * size).make_room());
    assert_eq!(opened(&near).bytes(), 0, "more than they take is needed");
}

#[test]
fn copying_stops_between_parts_and_goes_on_later() {
    let (objects, near, manifest) = copied();
    opened(&near).retain(|_| false);
    let copies = opened(&near);
    let looks = Cell::new(0);
    let second = || {
        looks.set(looks.get() + 1);
        looks.get() > 1
    };
    let kept = copies.keep(&manifest, &objects, &RestoreReads::default(), &second).unwrap();
    assert_eq!((kept, near.list("").unwrap().len()), (Kept::Stopped, 1));
    assert_eq!(keep(&copies, &manifest, &objects), Kept::All);
    objects.delete(&manifest.partitions[0].objects[0].path).unwrap();
    copies.retain(|_| false);
    let error = copies.keep(&manifest, &objects, &RestoreReads::default(), &never).unwrap_err();
    assert!(error.to_string().contains(&manifest.partitions[0].objects[0].path), "{error}");
}
