//! Which versions can be read: from the oldest one that is pinned or inside the window up to the published one.
//!
//! A version that a reader starts at is the newest then, and stays readable for the window after a newer one took its
//! place, pinned or not. The limit moves only up, and only under this lock, so that a pin that was given holds.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegraph_apl::Error;
use tidegraph_types::Version;

/// How many marks a window is divided into.
const MARKS: u32 = 64;

pub(crate) struct Versions {
    published: AtomicU64,
    oldest: AtomicU64,
    window: Duration,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    pins: BTreeMap<Version, usize>,
    /// Some of the published versions and when that was, oldest first.
    marks: VecDeque<(Version, Duration)>,
    /// The newest one and when it was published.
    newest: (Version, Duration),
}

/// Keeps a version readable until it is dropped.
#[derive(Debug)]
pub struct Pin {
    version: Version,
    versions: Arc<Versions>,
}

impl std::fmt::Debug for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Versions({}..={})", self.oldest(), self.published())
    }
}

impl Versions {
    pub fn new(start: Version, window: Duration, now: Duration) -> Self {
        let book = Book { newest: (start, now), ..Book::default() };
        Self {
            published: AtomicU64::new(start.0),
            oldest: AtomicU64::new(start.0),
            window,
            book: Mutex::new(book),
        }
    }

    pub fn published(&self) -> Version {
        Version(self.published.load(Ordering::Acquire))
    }

    pub fn oldest(&self) -> Version {
        Version(self.oldest.load(Ordering::Acquire))
    }

    pub fn check(&self, asked: Version) -> Result<(), Error> {
        let (applied, oldest) = (self.published(), self.oldest());
        if asked > applied {
            return Err(Error::Behind { applied, asked });
        }
        if asked < oldest {
            return Err(Error::TooOld { oldest, asked });
        }
        Ok(())
    }

    pub fn pin(self: &Arc<Self>, version: Version) -> Result<Pin, Error> {
        let mut book = self.book.lock();
        self.check(version)?;
        *book.pins.entry(version).or_default() += 1;
        Ok(Pin { version, versions: self.clone() })
    }

    pub fn pin_published(self: &Arc<Self>) -> Pin {
        let mut book = self.book.lock();
        let version = self.published();
        *book.pins.entry(version).or_default() += 1;
        Pin { version, versions: self.clone() }
    }

    pub fn publish(&self, version: Version, now: Duration) {
        let mut book = self.book.lock();
        if version < self.published() {
            return;
        }
        let step = self.window / MARKS;
        let (last, at) = book.newest;
        if book.marks.back().is_none_or(|(_, marked)| at.saturating_sub(*marked) >= step) {
            book.marks.push_back((last, at));
        }
        book.newest = (version, now);
        self.published.store(version.0, Ordering::Release);
        self.advance(&mut book, now);
    }

    /// Moves the oldest version up as far as pins and window allow and answers it.
    pub fn move_on(&self, now: Duration) -> Version {
        self.advance(&mut self.book.lock(), now);
        self.oldest()
    }

    fn advance(&self, book: &mut Book, now: Duration) {
        // A version is superseded when the next one is published; a mark that is older than the window stands for
        // one that everything before was superseded by.
        let mut oldest = self.oldest();
        let outdated = |at: Duration| at.saturating_add(self.window) <= now;
        while let Some((version, _)) = book.marks.front().copied().filter(|(_, at)| outdated(*at)) {
            oldest = oldest.max(version);
            book.marks.pop_front();
        }
        if outdated(book.newest.1) {
            oldest = oldest.max(book.newest.0);
        }
        if let Some((&pinned, _)) = book.pins.first_key_value() {
            if pinned < oldest {
                // Not now: remember it for when the pin is gone.
                book.marks.push_front((oldest, Duration::ZERO));
            }
            oldest = oldest.min(pinned);
        }
        self.oldest.fetch_max(oldest.0, Ordering::AcqRel);
    }
}

impl Pin {
    /// The version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        *self.versions.book.lock().pins.entry(self.version).or_default() += 1;
        Self { version: self.version, versions: self.versions.clone() }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut book = self.versions.book.lock();
        if let Some(count) = book.pins.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                book.pins.remove(&self.version);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn many_publishes_keep_few_marks() {
        let versions = Versions::new(Version(0), seconds(60), seconds(0));
        for v in 1..100_000_u64 {
            versions.publish(Version(v), Duration::from_millis(v * 10));
        }
        assert!(versions.book.lock().marks.len() < 80);
        let lag = 99_999 - versions.oldest().0;
        assert!((6_000..6_300).contains(&lag), "{lag}");
    }
}
