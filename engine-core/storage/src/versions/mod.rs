//! The versions that can be read: from the oldest that is pinned or inside the window, up to the published one.
//!
//! A reader starts at the newest version. That version stays readable for the window after a newer one superseded it,
//! pinned or not. The limit only moves up.
//!
//! Readers pin without a lock: they put the version into a free slot, and then check whether the limit was moving
//! past it. The thread that moves the limit does so under the lock and in the opposite order: it announces the new
//! limit (`limit`), then reads all slots. So at least one of the two sees the other. A reader that sees a limit
//! beyond its version waits for the lock once. Readers that find no free slot take the lock too.
//!
//! What must never happen: a version reclaimed while its pin lives (STO-1). `tests/pins` checks all orders of the
//! steps of two readers and a writer, with all values that a weak memory model allows, by compiling this file with
//! loom's atomics.

use crate::pin_sync::{AtomicU64, Mutex, MutexGuard, Ordering, SLOTS, fence, first_slot};
use crossbeam_utils::CachePadded;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_apl::Error;
use tidegraph_types::Version;

/// Number of marks that divide a window.
const MARKS: u32 = 64;

/// The readable versions, with their pins.
pub(crate) struct Versions {
    published: AtomicU64,
    oldest: AtomicU64,
    /// Equals `oldest`, or the version that `oldest` is being moved to.
    limit: AtomicU64,
    window: Duration,
    /// Pinned versions plus one; 0 marks a free slot.
    slots: Box<[CachePadded<AtomicU64>]>,
    state: Mutex<PinState>,
}

#[derive(Default)]
struct PinState {
    /// Pins that found no free slot, by version.
    pins: BTreeMap<Version, usize>,
    /// Some published versions with the time of their publication, oldest first.
    marks: VecDeque<(Version, Duration)>,
    /// The newest version with the time of its publication.
    newest: (Version, Duration),
}

/// Keeps a version readable until it is dropped.
#[derive(Debug)]
pub struct Pin {
    version: Version,
    /// `None` if the pin is counted under the lock.
    slot: Option<usize>,
    versions: Arc<Versions>,
}

impl std::fmt::Debug for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Versions({}..={})", self.oldest(), self.published())
    }
}

/// Yields in tests, at the points where two threads could miss each other.
fn meet_others() {
    #[cfg(test)]
    std::thread::yield_now();
}

impl Versions {
    /// Starts with one version, published at time `now`.
    pub fn new(start: Version, window: Duration, now: Duration) -> Self {
        let state = PinState { newest: (start, now), ..PinState::default() };
        let mut slots = Vec::new();
        slots.resize_with(SLOTS, || CachePadded::new(AtomicU64::new(0)));
        Self {
            published: AtomicU64::new(start.0),
            oldest: AtomicU64::new(start.0),
            limit: AtomicU64::new(start.0),
            window,
            slots: slots.into_boxed_slice(),
            state: Mutex::new(state),
        }
    }

    /// Returns the newest version that can be read.
    pub fn published(&self) -> Version {
        Version(self.published.load(Ordering::Acquire))
    }

    /// Returns the oldest version that can be read.
    pub fn oldest(&self) -> Version {
        Version(self.oldest.load(Ordering::Acquire))
    }

    /// STO-1: checks that a version can be read now.
    ///
    /// # Errors
    ///
    /// [`Error::Behind`] if it is not published, [`Error::TooOld`] if it may have been reclaimed.
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

    /// Pins a version.
    ///
    /// # Errors
    ///
    /// The same as [`Self::check`].
    pub fn pin(self: &Arc<Self>, version: Version) -> Result<Pin, Error> {
        self.check(version)?;
        if let Some(pin) = self.pin_in_slot(version) {
            return Ok(pin);
        }
        let mut state = self.state.lock();
        self.check(version)?;
        Ok(self.pin_under_lock(&mut state, version))
    }

    /// Pins the newest version.
    pub fn pin_published(self: &Arc<Self>) -> Pin {
        if let Some(pin) = self.pin_in_slot(self.published()) {
            return pin;
        }
        let mut state = self.state.lock();
        self.pin_under_lock(&mut state, self.published())
    }

    fn pin_in_slot(self: &Arc<Self>, version: Version) -> Option<Pin> {
        meet_others();
        let first = first_slot();
        let slot = (first..SLOTS).chain(0..first).find(|slot| {
            let slot = &self.slots[*slot];
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, version.0 + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        })?;
        // STO-1: pairs with the fence of `advance`. Either `advance` sees this pin, or this thread sees its limit.
        fence(Ordering::SeqCst);
        meet_others();
        if self.limit.load(Ordering::SeqCst) > version.0 {
            self.slots[slot].store(0, Ordering::Release);
            return None;
        }
        Some(Pin { version, slot: Some(slot), versions: self.clone() })
    }

    /// Counts a pin. The lock keeps the limit in place, and the version is not below it.
    fn pin_under_lock(self: &Arc<Self>, state: &mut MutexGuard<'_, PinState>, version: Version) -> Pin {
        *state.pins.entry(version).or_default() += 1;
        Pin { version, slot: None, versions: self.clone() }
    }

    /// Makes a version readable, and moves the oldest one up. Ignores versions below the newest one.
    pub fn publish(&self, version: Version, now: Duration) {
        let mut state = self.state.lock();
        if version < self.published() {
            return;
        }
        let step = self.window / MARKS;
        let (last, at) = state.newest;
        if state.marks.back().is_none_or(|(_, marked)| at.saturating_sub(*marked) >= step) {
            state.marks.push_back((last, at));
        }
        state.newest = (version, now);
        self.published.store(version.0, Ordering::Release);
        self.advance(&mut state, now);
    }

    /// Moves the oldest version up as far as pins and the window allow, and returns it.
    pub fn move_on(&self, now: Duration) -> Version {
        self.advance(&mut self.state.lock(), now);
        self.oldest()
    }

    /// Moves the oldest version up as far as pins allow, whatever the window, and returns it.
    pub fn forget_window(&self) -> Version {
        let mut state = self.state.lock();
        let (newest, _) = state.newest;
        state.marks.push_back((newest, Duration::ZERO));
        // Marks without a time expire at once.
        let marks = std::mem::take(&mut state.marks);
        state.marks = marks.into_iter().map(|(version, _)| (version, Duration::ZERO)).collect();
        self.advance(&mut state, self.window);
        self.oldest()
    }

    fn advance(&self, state: &mut PinState, now: Duration) {
        // A version is superseded when the next one is published. All versions before an expired mark were superseded
        // before the mark's time.
        let before = self.oldest();
        let mut oldest = before;
        let outdated = |at: Duration| at.saturating_add(self.window) <= now;
        while let Some((version, _)) = state.marks.front().copied().filter(|(_, at)| outdated(*at)) {
            oldest = oldest.max(version);
            state.marks.pop_front();
        }
        if outdated(state.newest.1) {
            oldest = oldest.max(state.newest.0);
        }
        if oldest == before {
            return;
        }
        self.limit.store(oldest.0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        meet_others();
        let noted = state.pins.first_key_value().map(|(version, _)| version.0);
        let pins = self.slots.iter().filter_map(|slot| slot.load(Ordering::SeqCst).checked_sub(1));
        if let Some(pinned) = pins.chain(noted).min().map(Version)
            && pinned < oldest
        {
            // STO-1: a pin holds an older version. The mark is tried again once the pin has gone.
            state.marks.push_front((oldest, Duration::ZERO));
            // For a moment a slot may hold a version from before the last move, which its reader then takes back.
            oldest = pinned.max(before);
        }
        self.oldest.store(oldest.0, Ordering::SeqCst);
        self.limit.store(oldest.0, Ordering::SeqCst);
    }
}

impl Pin {
    /// Returns the pinned version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        // Under the lock: `advance` reads the slots one after the other, and could miss a pin that moves between two
        // of them.
        self.versions.pin_under_lock(&mut self.versions.state.lock(), self.version)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let Some(slot) = self.slot else {
            let mut state = self.versions.state.lock();
            if let Some(count) = state.pins.get_mut(&self.version) {
                *count -= 1;
                if *count == 0 {
                    state.pins.remove(&self.version);
                }
            }
            return;
        };
        self.versions.slots[slot].store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
