//! Reads parts of checkpoints ahead of the restores that need them.
//!
//! Roles: [`RestoreReads`] bounds the parts that all restores of a process hold in memory, and their bandwidth.
//! [`ReadAhead`] is the queue of one restore: it starts reads in the order of the parts and hands the parts out in that
//! order.
//!
//! Flow: a restore takes a place for each part before it starts to read it, and gives the place back when it has used
//! the part. While other restores run, it takes no more than its share of the places. It waits for a place, or for
//! bandwidth, only while it has no part in flight.
//!
//! What must never happen: two restores wait for each other. A restore that waits for a place holds none.

use super::copies::Sources;
use super::manifest::{damaged, object_error};
use crate::Error;
use bytes::Bytes;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::{Clock, Pending, metric};

/// Adjacent chunks are read together, up to this number of bytes.
pub(super) const READ_BYTES: u64 = 8 << 20;

/// Bytes of one cell of the limiter.
const CELL_BYTES: u64 = 1 << 10;

/// Most bytes that may be read at once after a pause, in cells: one part.
const BURST_CELLS: NonZeroU32 = NonZeroU32::new((READ_BYTES / CELL_BYTES) as u32).unwrap();

/// Number of parts that are read at once by default.
const READS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// How much all restores of a process read at the same time.
pub struct RestoreReads {
    most: NonZeroUsize,
    bandwidth: Option<Bandwidth>,
    places: Mutex<Places>,
    freed: Condvar,
}

#[derive(Default)]
struct Places {
    taken: usize,
    restores: usize,
}

impl Default for RestoreReads {
    /// Reads 16 parts at once, without a limit of bandwidth.
    fn default() -> Self {
        Self::new(READS)
    }
}

impl fmt::Debug for RestoreReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestoreReads").field("most", &self.most).finish_non_exhaustive()
    }
}

impl RestoreReads {
    /// Reads at most `most` parts of about 8 MiB at once, so all restores together hold about `most` times 8 MiB of
    /// parts. A chunk that is larger than that is one part.
    #[must_use]
    pub fn new(most: NonZeroUsize) -> Self {
        Self { most, bandwidth: None, places: Mutex::default(), freed: Condvar::new() }
    }

    /// Also keeps to a bandwidth in KiB a second, with bursts of 8 MiB.
    #[must_use]
    pub fn with_bandwidth(self, kib_per_second: NonZeroU32, clock: Arc<dyn Clock>) -> Self {
        Self { bandwidth: Some(Bandwidth::new(kib_per_second, clock)), ..self }
    }

    /// Begins the reads of one restore, in the order of `parts`: the path of an object and a range in it.
    pub(super) fn ahead<'r, P>(self: &'r Arc<Self>, sources: Sources<'r>, parts: P) -> ReadAhead<'r, P>
    where
        P: Iterator<Item = (&'r str, Range<u64>)>,
    {
        self.places.lock().restores += 1;
        ReadAhead { reads: self, sources, parts, next: None, started: VecDeque::new() }
    }

    /// Whether any restore of the process reads.
    pub fn are_in_use(&self) -> bool {
        self.places.lock().restores > 0
    }

    /// Takes a place for a restore that holds `held` of them. If it holds none, this waits for one.
    fn take(self: &Arc<Self>, held: usize) -> Option<Place> {
        let mut places = self.places.lock();
        while held == 0 && places.taken >= self.most.get() {
            self.freed.wait(&mut places);
        }
        let share = (self.most.get() / places.restores.max(1)).max(1);
        if held >= share || places.taken >= self.most.get() {
            return None;
        }
        places.taken += 1;
        Some(Place(self.clone()))
    }

    /// Waits until `bytes` may be read; if `waits` is false, returns whether they may be read now.
    pub(super) fn allow(&self, bytes: u64, waits: bool) -> bool {
        self.bandwidth.as_ref().is_none_or(|bandwidth| bandwidth.allow(bytes, waits))
    }
}

/// The memory of one part.
struct Place(Arc<RestoreReads>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.places.lock().taken -= 1;
        // Each waiting restore holds no place, so any of them may have it.
        self.0.freed.notify_one();
    }
}

/// A part that was read. Its place is free again when it is dropped, which the borrow forces before the next part.
pub(super) struct Part<'a> {
    bytes: Bytes,
    _place: Place,
    _ahead: PhantomData<&'a mut ()>,
}

impl Deref for Part<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The reads of one restore.
pub(super) struct ReadAhead<'r, P> {
    reads: &'r Arc<RestoreReads>,
    sources: Sources<'r>,
    parts: P,
    /// A part that had no place or no bandwidth yet.
    next: Option<(&'r str, Range<u64>)>,
    started: VecDeque<Started<'r>>,
}

struct Started<'r> {
    object: &'r str,
    range: Range<u64>,
    /// `None`: the range is empty.
    pending: Option<Pending<Bytes>>,
    is_copy: bool,
    place: Place,
}

impl<'r, P: Iterator<Item = (&'r str, Range<u64>)>> ReadAhead<'r, P> {
    /// Starts as many reads as possible.
    fn start(&mut self) -> Result<(), Error> {
        while let Some((object, range)) = self.next.take().or_else(|| self.parts.next()) {
            let held = self.started.len();
            let Some(place) = self.reads.take(held) else {
                self.next = Some((object, range));
                break;
            };
            let copies = self.sources.copies_with(object);
            let bytes = range.end.saturating_sub(range.start);
            // The bandwidth is that of the network.
            if copies.is_none() && !self.reads.allow(bytes, held == 0) {
                self.next = Some((object, range));
                break;
            }
            let pending = match range.is_empty() {
                true => None,
                false => {
                    let from = copies.unwrap_or(self.sources.objects);
                    Some(from.start_range(object, range.clone()).map_err(object_error(object))?)
                }
            };
            self.started.push_back(Started { object, range, pending, is_copy: copies.is_some(), place });
        }
        Ok(())
    }

    /// Returns the next part, exactly as long as its range.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the object ends before the range does, [`Error::Object`] if it cannot be read.
    pub fn next_part(&mut self) -> Result<Option<Part<'_>>, Error> {
        self.start()?;
        let Some(Started { object, range, pending, is_copy, place }) = self.started.pop_front() else {
            return Ok(None);
        };
        let bytes = match pending {
            Some(pending) => pending.wait().map_err(object_error(object))?,
            None => Bytes::new(),
        };
        metric::restored(if is_copy { "copies" } else { "objects" }, bytes.len() as u64);
        match range.end.saturating_sub(range.start) == bytes.len() as u64 {
            true => Ok(Some(Part { bytes, _place: place, _ahead: PhantomData })),
            false => Err(damaged(object, range.start + bytes.len() as u64, "the object ends here")),
        }
    }
}

impl<P> Drop for ReadAhead<'_, P> {
    fn drop(&mut self) {
        self.reads.places.lock().restores -= 1;
    }
}

/// A token bucket of bytes.
struct Bandwidth {
    limiter: RateLimiter<NotKeyed, InMemoryState, LimiterClock, NoOpMiddleware<Nanos>>,
    clock: LimiterClock,
}

/// The clock of the limiter.
#[derive(Clone)]
struct LimiterClock(Arc<dyn Clock>);

impl governor::clock::Clock for LimiterClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.now().into()
    }
}

impl Bandwidth {
    fn new(kib_per_second: NonZeroU32, clock: Arc<dyn Clock>) -> Self {
        let quota = Quota::per_second(kib_per_second).allow_burst(BURST_CELLS);
        let clock = LimiterClock(clock);
        Self { limiter: RateLimiter::direct_with_clock(quota, clock.clone()), clock }
    }

    /// Takes the cells of some bytes. Without `waits`, takes none and returns false if they are not there.
    fn allow(&self, bytes: u64, waits: bool) -> bool {
        let mut cells = bytes.div_ceil(CELL_BYTES);
        if cells > u64::from(BURST_CELLS.get()) && !waits {
            return false;
        }
        // The bucket holds the cells of one part, so a larger one takes them in turns.
        while let Some(some) = NonZeroU32::new(cells.min(BURST_CELLS.get().into()) as u32) {
            match self.limiter.check_n(some) {
                Ok(Ok(())) => cells -= u64::from(some.get()),
                Ok(Err(early)) if waits => {
                    let now = governor::clock::Clock::now(&self.clock);
                    // At least a little, so that rounding does not make this spin.
                    self.clock.0.sleep(early.wait_time_from(now).max(Duration::from_millis(1)));
                }
                Ok(Err(_)) => return false,
                // The quota's burst is this large.
                Err(_) => return true,
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "reads_tests.rs"]
mod tests;
