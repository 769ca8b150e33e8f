//! STO-1: pins of versions under loom, in every order of the steps of a few threads and
//! with every value that a weak memory model allows. `src/versions/mod.rs` is compiled
//! here with loom's atomics and lock, and with two slots.
//!
//! This is a program of its own because loom's atomics work only inside a model.

// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used)]

#[path = "../../src/versions/mod.rs"]
#[allow(dead_code, reason = "the store uses more of it")]
mod versions;

mod pin_sync {
    //! Replaces the module of the same name in the crate.

    pub(crate) use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

    /// Few slots, so that readers share slots and run out of them.
    pub(crate) const SLOTS: usize = 2;

    /// All readers begin with the same slot.
    pub(crate) fn first_slot() -> usize {
        0
    }

    /// Like the real lock, which has no poisoning.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(of: T) -> Self {
            Self(loom::sync::Mutex::new(of))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

use std::sync::Arc;
use std::time::Duration;
use tidegraph_types::Version;
use versions::Versions;

const NO_WINDOW: Duration = Duration::ZERO;

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// Runs a model in all orders, and prints their number.
fn model(name: &str, preemptions: usize, of: impl Fn() + Sync + Send + 'static) {
    let orders = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = orders.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        of();
    });
    println!("{name}: {} orders", orders.load(std::sync::atomic::Ordering::Relaxed));
}

/// A reader pins while the limit moves on twice.
fn a_pin_against_a_moving_limit() {
    let versions = Arc::new(Versions::new(Version(0), NO_WINDOW, seconds(0)));
    let reader = {
        let versions = versions.clone();
        loom::thread::spawn(move || {
            let pin = versions.pin_published();
            assert!(versions.oldest() <= pin.version(), "{versions:?} without {:?}", pin.version());
            let again = versions.pin(pin.version());
            assert!(again.is_ok(), "what is pinned can be pinned again: {versions:?}");
            drop(pin);
            assert!(again.is_ok_and(|again| versions.oldest() <= again.version()));
        })
    };
    versions.publish(Version(1), seconds(1));
    versions.publish(Version(2), seconds(2));
    reader.join().unwrap();
    assert_eq!(versions.move_on(seconds(3)), Version(2), "nothing holds it any more");
}

/// Two readers, which share slots, and a writer.
fn two_readers_and_a_writer() {
    let versions = Arc::new(Versions::new(Version(0), NO_WINDOW, seconds(0)));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let versions = versions.clone();
            loom::thread::spawn(move || {
                let pin = versions.pin_published();
                assert!(versions.oldest() <= pin.version(), "{versions:?} without {:?}", pin.version());
            })
        })
        .collect();
    versions.publish(Version(1), seconds(1));
    for reader in readers {
        reader.join().unwrap();
    }
    assert_eq!(versions.move_on(seconds(2)), Version(1), "nothing holds it any more");
}

/// More pins than slots, one of them cloned, while the limit moves.
fn pins_under_the_lock() {
    let versions = Arc::new(Versions::new(Version(0), NO_WINDOW, seconds(0)));
    let held: Vec<_> = (0..2).map(|_| versions.pin_published()).collect();
    let reader = {
        let versions = versions.clone();
        loom::thread::spawn(move || {
            let pin = versions.pin_published();
            let copy = pin.clone();
            drop(pin);
            assert!(versions.oldest() <= copy.version(), "{versions:?} without {:?}", copy.version());
        })
    };
    versions.publish(Version(1), seconds(1));
    assert_eq!(versions.oldest(), Version(0), "two pins hold it");
    drop(held);
    reader.join().unwrap();
    assert_eq!(versions.move_on(seconds(2)), Version(1), "nothing holds it any more");
}

fn main() {
    // Test runners ask for this list before they run the tests.
    if std::env::args().any(|argument| argument == "--list") {
        if !std::env::args().any(|argument| argument == "--ignored") {
            println!("every_order: test");
        }
        return;
    }
    model("a pin against a moving limit", 3, a_pin_against_a_moving_limit);
    model("two readers and a writer", 2, two_readers_and_a_writer);
    model("pins under the lock", 3, pins_under_the_lock);
}
