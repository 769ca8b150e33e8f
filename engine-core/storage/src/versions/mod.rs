//! Which versions can be read: from the oldest one that is pinned or inside the window up to the published one.
//!
//! A version that a reader starts at is the newest then, and stays readable for the window after a newer one took its
//! place, pinned or not. The limit moves only up.
//!
//! Readers pin without a lock: they put the version into a free slot and then look whether the limit was moving past it
//! just then. Who moves the limit does it under the lock and in the opposite order: it says how far it means to go
//! (`limit`), then looks at all slots. So at least one of the two sees the other, and a reader that sees a limit beyond its
//! version waits for the lock, once. More readers than slots take the lock too.
//!
//! What must never happen: a version forgotten while its pin lives. `tests/pins` tries all orders of the steps of two
//! readers and a writer, with all values that a weak memory may show, by compiling this file with loom's atomics.

use crate::pin_sync::{AtomicU64, Mutex, MutexGuard, Ordering, SLOTS, fence, first_slot};
use crossbeam_utils::CachePadded;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::Error;
use tidegraph_types::Version;

/// How many marks a window is divided into.
const MARKS: u32 = 64;

pub(crate) struct Versions {
    published: AtomicU64,
    oldest: AtomicU64,
    /// `oldest`, or while it is being moved: where to.
    limit: AtomicU64,
    window: Duration,
    /// Pinned versions and one, 0: free.
    slots: Box<[CachePadded<AtomicU64>]>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// Pins that found no slot.
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
    /// `None`: noted in the book.
    slot: Option<usize>,
    versions: Arc<Versions>,
}

impl std::fmt::Debug for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Versions({}..={})", self.oldest(), self.published())
    }
}

/// In tests: lets other threads go on where two of them could miss each other.
fn meet_others() {
    #[cfg(test)]
    std::thread::yield_now();
}

impl Versions {
    pub fn new(start: Version, window: Duration, now: Duration) -> Self {
        let book = Book { newest: (start, now), ..Book::default() };
        let mut slots = Vec::new();
        slots.resize_with(SLOTS, || CachePadded::new(AtomicU64::new(0)));
        Self {
            published: AtomicU64::new(start.0),
            oldest: AtomicU64::new(start.0),
            limit: AtomicU64::new(start.0),
            window,
            slots: slots.into_boxed_slice(),
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
        self.check(version)?;
        if let Some(pin) = self.pin_in_slot(version) {
            return Ok(pin);
        }
        let mut book = self.book.lock();
        self.check(version)?;
        Ok(self.pin_in_book(&mut book, version))
    }

    pub fn pin_published(self: &Arc<Self>) -> Pin {
        if let Some(pin) = self.pin_in_slot(self.published()) {
            return pin;
        }
        let mut book = self.book.lock();
        self.pin_in_book(&mut book, self.published())
    }

    fn pin_in_slot(self: &Arc<Self>, version: Version) -> Option<Pin> {
        meet_others();
        let first = first_slot();
        let slot = (first..SLOTS).chain(0..first).find(|slot| {
            let slot = &self.slots[*slot];
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, version.0 + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        })?;
        // Against the fence of `advance`: it sees this pin, or this sees its limit.
        fence(Ordering::SeqCst);
        meet_others();
        if self.limit.load(Ordering::SeqCst) > version.0 {
            self.slots[slot].store(0, Ordering::Release);
            return None;
        }
        Some(Pin { version, slot: Some(slot), versions: self.clone() })
    }

    /// The lock keeps the limit where it is, and the version is not below it.
    fn pin_in_book(self: &Arc<Self>, book: &mut MutexGuard<'_, Book>, version: Version) -> Pin {
        *book.pins.entry(version).or_default() += 1;
        Pin { version, slot: None, versions: self.clone() }
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

    /// Moves the oldest version up as far as pins allow, whatever the window says, and answers it.
    pub fn forget_window(&self) -> Version {
        let mut book = self.book.lock();
        let (newest, _) = book.newest;
        book.marks.push_back((newest, Duration::ZERO));
        // A mark that is as old as can be stands for all before it.
        let marks = std::mem::take(&mut book.marks);
        book.marks = marks.into_iter().map(|(version, _)| (version, Duration::ZERO)).collect();
        self.advance(&mut book, self.window);
        self.oldest()
    }

    fn advance(&self, book: &mut Book, now: Duration) {
        // A version is superseded when the next one is published; a mark that is older than the window stands for
        // one that everything before was superseded by.
        let before = self.oldest();
        let mut oldest = before;
        let outdated = |at: Duration| at.saturating_add(self.window) <= now;
        while let Some((version, _)) = book.marks.front().copied().filter(|(_, at)| outdated(*at)) {
            oldest = oldest.max(version);
            book.marks.pop_front();
        }
        if outdated(book.newest.1) {
            oldest = oldest.max(book.newest.0);
        }
        if oldest == before {
            return;
        }
        self.limit.store(oldest.0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        meet_others();
        let noted = book.pins.first_key_value().map(|(version, _)| version.0);
        let pins = self.slots.iter().filter_map(|slot| slot.load(Ordering::SeqCst).checked_sub(1));
        if let Some(pinned) = pins.chain(noted).min().map(Version)
            && pinned < oldest
        {
            // Not now: remember it for when the pin is gone.
            book.marks.push_front((oldest, Duration::ZERO));
            // A slot may hold for a moment what its reader read before the last move, and takes back.
            oldest = pinned.max(before);
        }
        self.oldest.store(oldest.0, Ordering::SeqCst);
        self.limit.store(oldest.0, Ordering::SeqCst);
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
        // Under the lock: who looks at the slots one after the other could miss a pin that goes from one to another.
        self.versions.pin_in_book(&mut self.versions.book.lock(), self.version)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let Some(slot) = self.slot else {
            let mut book = self.versions.book.lock();
            if let Some(count) = book.pins.get_mut(&self.version) {
                *count -= 1;
                if *count == 0 {
                    book.pins.remove(&self.version);
                }
            }
            return;
        };
        self.versions.slots[slot].store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
