//! Places, shares and bandwidth of reads.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegraph_platform::{ManualClock, Objects};

const MIB: u64 = 1 << 20;

fn reads(most: usize) -> Arc<RestoreReads> {
    Arc::new(RestoreReads::new(NonZeroUsize::new(most).unwrap()))
}

/// An object of `bytes` bytes that differ from their neighbours.
fn object(bytes: u64) -> Objects {
    let objects = Objects::memory().unwrap();
    objects.put("o", (0..bytes).map(|at| (at % 251) as u8).collect::<Vec<_>>()).unwrap();
    objects
}

fn of(objects: &Objects) -> Sources<'_> {
    Sources { objects, copies: None }
}

/// Ranges of `each` bytes up to `bytes`.
fn ranges<'r>(bytes: u64, each: u64) -> impl Iterator<Item = (&'r str, Range<u64>)> {
    (0..bytes / each).map(move |number| ("o", number * each..(number + 1) * each))
}

fn taken(reads: &RestoreReads) -> usize {
    reads.places.lock().taken
}

#[test]
fn parts_come_whole_and_in_order() {
    let (objects, reads) = (object(1000), reads(4));
    let all = [0..10, 10..10, 990..1000, 5..600];
    let mut ahead = reads.ahead(of(&objects), all.iter().map(|range| ("o", range.clone())));
    for range in &all {
        let part = ahead.next_part().unwrap().unwrap();
        assert_eq!(&part[..], range.clone().map(|at| (at % 251) as u8).collect::<Vec<_>>());
        assert!(taken(&reads) <= 4);
    }
    assert!(ahead.next_part().unwrap().is_none());
    drop(ahead);
    let places = reads.places.lock();
    assert_eq!((places.taken, places.restores), (0, 0));
}

#[test]
fn one_restore_takes_all_places_and_two_share_them() {
    let (objects, reads) = (object(1000), reads(8));
    let mut first = reads.ahead(of(&objects), ranges(1000, 10));
    drop(first.next_part().unwrap());
    assert_eq!((first.started.len(), taken(&reads)), (7, 7), "eight less the part that was used");
    let mut second = reads.ahead(of(&objects), ranges(1000, 10));
    for _ in 0..20 {
        assert!(first.next_part().unwrap().is_some());
        assert!(second.next_part().unwrap().is_some());
        assert!(taken(&reads) <= 8);
    }
    assert_eq!(
        (first.started.len(), second.started.len()),
        (3, 3),
        "four each, less the parts that were used"
    );
    drop(first);
    assert_eq!(taken(&reads), 3, "reads of a restore that ended are given up");
    assert!(second.next_part().unwrap().is_some());
    assert_eq!(second.started.len(), 7);
}

#[test]
fn many_restores_with_few_places_all_end() {
    for most in [1, 2, 5] {
        let (objects, reads) = (object(1000), reads(most));
        let (parts, highest) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut ahead = reads.ahead(of(&objects), ranges(1000, 20));
                    while let Some(part) = ahead.next_part().unwrap() {
                        highest.fetch_max(taken(&reads), Ordering::Relaxed);
                        parts.fetch_add(part.len() / 20, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(parts.into_inner(), 8 * 50);
        let highest = highest.into_inner();
        assert!((1..=most).contains(&highest), "{highest} parts at once, {most} are allowed");
        assert_eq!(taken(&reads), 0);
    }
}

#[test]
fn reads_keep_to_a_bandwidth() {
    let objects = object(81 * MIB);
    let clock = Arc::new(ManualClock::default());
    let limited = |clock: &Arc<ManualClock>| {
        let reads = RestoreReads::new(NonZeroUsize::new(16).unwrap());
        Arc::new(reads.with_bandwidth(NonZeroU32::new(10 * 1024).unwrap(), clock.clone()))
    };
    // Two restores share the bandwidth, and the last part is larger than a burst.
    let reads = limited(&clock);
    let parts =
        [("o", 0..8 * MIB), ("o", 8 * MIB..16 * MIB), ("o", 16 * MIB..20 * MIB), ("o", 20 * MIB..40 * MIB)];
    let mut both = [(); 2].map(|()| reads.ahead(of(&objects), parts.iter().cloned()));
    let mut bytes = 0;
    for _ in 0..parts.len() {
        for ahead in &mut both {
            bytes += ahead.next_part().unwrap().unwrap().len() as u64;
        }
    }
    assert_eq!(bytes, 80 * MIB);
    let seconds = clock.now().as_secs_f64();
    // 80 MiB, of which the burst of 8 MiB costs nothing: 7.2 s, give or take a rounding.
    assert!((7.19..7.5).contains(&seconds), "{seconds} s");
    // After a pause there is one burst, not more.
    clock.advance(Duration::from_secs(3600));
    let before = clock.now();
    let mut one = reads.ahead(of(&objects), ranges(80 * MIB, 8 * MIB));
    while one.next_part().unwrap().is_some() {}
    let seconds = (clock.now() - before).as_secs_f64();
    assert!((7.19..7.5).contains(&seconds), "{seconds} s");
}

#[test]
fn short_and_missing_objects_are_errors() {
    let (objects, reads) = (object(100), reads(4));
    let mut ahead = reads.ahead(of(&objects), [("o", 0..50), ("o", 90..110), ("o", 0..1)].into_iter());
    assert_eq!(ahead.next_part().unwrap().unwrap().len(), 50);
    let error = ahead.next_part().map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::Damaged { object, offset: 100, .. } if object == "o"), "{error}");
    drop(ahead);
    let mut ahead = reads.ahead(of(&objects), std::iter::once(("gone", 0..1)));
    let error = ahead.next_part().map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::Object { object, .. } if object == "gone"), "{error}");
    drop(ahead);
    assert_eq!((taken(&reads), reads.places.lock().restores), (0, 0));
}
