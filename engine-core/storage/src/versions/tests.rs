//! Windows, pins and marks on real threads. `tests/pins` checks all orders of a few steps.

use super::*;

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[test]
fn a_version_stays_for_the_window_after_it_was_superseded() {
    let versions = Versions::new(Version(0), seconds(60), seconds(0));
    versions.publish(Version(1), seconds(10));
    versions.publish(Version(2), seconds(100));
    assert_eq!(versions.oldest(), Version(1), "1 was superseded only now");
    assert_eq!(versions.move_on(seconds(159)), Version(1));
    assert_eq!(versions.move_on(seconds(160)), Version(2));
    assert!(matches!(versions.check(Version(1)), Err(Error::TooOld { oldest: Version(2), .. })));
    assert!(matches!(versions.check(Version(3)), Err(Error::Behind { applied: Version(2), .. })));
}

#[test]
fn a_pin_holds_and_its_end_lets_go() {
    let versions = Arc::new(Versions::new(Version(0), seconds(0), seconds(0)));
    versions.publish(Version(1), seconds(1));
    let pin = versions.pin(Version(1)).unwrap();
    let other = pin.clone();
    for v in 2..10 {
        versions.publish(Version(v), seconds(v));
        assert_eq!(versions.oldest(), Version(1));
    }
    drop(pin);
    assert_eq!(versions.move_on(seconds(10)), Version(1));
    assert_eq!(other.version(), Version(1));
    drop(other);
    assert_eq!(versions.move_on(seconds(10)), Version(9));
    assert!(versions.pin(Version(8)).is_err());
    assert_eq!(versions.pin_published().version(), Version(9));
}

#[test]
fn more_pins_than_slots_hold_too() {
    let versions = Arc::new(Versions::new(Version(0), seconds(0), seconds(0)));
    let mut pins: Vec<Pin> = (0..2 * SLOTS).map(|_| versions.pin_published()).collect();
    versions.publish(Version(1), seconds(1));
    while let Some(pin) = pins.pop() {
        assert_eq!(versions.move_on(seconds(2)), Version(0));
        assert_eq!(pin.version(), Version(0));
    }
    assert_eq!(versions.move_on(seconds(2)), Version(1));
}

#[test]
fn no_pinned_version_is_forgotten_while_the_limit_moves() {
    let (newest, readers) = if cfg!(miri) { (60, 2) } else { (50_000, 3) };
    let versions = Arc::new(Versions::new(Version(0), seconds(0), seconds(0)));
    std::thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                loop {
                    let pin = versions.pin_published();
                    let again = versions.pin(pin.version()).unwrap();
                    for _ in 0..3 {
                        assert!(versions.oldest() <= pin.version());
                    }
                    drop(pin);
                    assert!(versions.oldest() <= again.version());
                    if again.version().0 == newest {
                        return;
                    }
                }
            });
        }
        for version in 1..=newest {
            versions.publish(Version(version), seconds(version));
        }
    });
    assert_eq!(versions.move_on(seconds(newest + 1)), Version(newest));
}

#[test]
fn a_clock_that_leaps_takes_nothing_from_who_reads() {
    let year = 365 * 24 * 3600;
    let versions = Arc::new(Versions::new(Version(0), seconds(60), seconds(0)));
    let pin = versions.pin_published();
    versions.publish(Version(1), seconds(1));
    versions.publish(Version(2), seconds(year));
    assert_eq!(versions.oldest(), pin.version());
    // With a clock that goes backwards, which ours does not, nothing is reclaimed and nothing breaks.
    versions.publish(Version(3), seconds(2));
    assert_eq!(versions.oldest(), pin.version());
    drop(pin);
    assert!(versions.move_on(seconds(2 * year)) >= Version(2));
    assert_eq!(versions.published(), Version(3));
}

#[test]
fn many_publishes_keep_few_marks() {
    // Miri has time for fewer versions.
    let millis = if cfg!(miri) { 1000 } else { 10 };
    let (last, window) = (1_000_000 / millis, 60_000 / millis);
    let versions = Versions::new(Version(0), seconds(60), seconds(0));
    for v in 1..last {
        versions.publish(Version(v), Duration::from_millis(v * millis));
    }
    assert!(versions.state.lock().marks.len() < 80);
    let lag = last - 1 - versions.oldest().0;
    assert!((window..window + window / 20).contains(&lag), "{lag}");
}
