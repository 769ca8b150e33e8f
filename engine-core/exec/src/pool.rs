//! The memory that all requests of a process share.
//!
//! Roles: [`MemoryPool`] is the budget, or the part of one that a graph of several may use ([`MemoryPool::part`]); a
//! [`Reservation`] is what one request, or one answer that is not sent yet, holds of it. A request's [`Memory`](crate::Memory) grows its reservation; dropping the reservation gives
//! everything back.
//!
//! What must never happen: a few large requests that leave nothing for small ones. Reservations above [`SMALL_BYTES`]
//! cannot take the last eighth of the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_types::ErrorCode;

/// Reservations grow in steps of this size, so that requests seldom write to the counter that all of them share.
const STEP_BYTES: u64 = 64 << 10;
/// A reservation keeps up to this many bytes that it does not need: requests often free memory that they take again.
const SLACK_BYTES: u64 = 1 << 20;
/// Largest reservation that may use the whole budget.
pub const SMALL_BYTES: u64 = 1 << 20;

/// The memory for all requests is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "all queries and unsent answers {}together hold {used_bytes} bytes, and this query, which holds {held_bytes}, needs \
     {asked_bytes} more: the limit for all of them is {limit_bytes} ({}), of which {kept_bytes} are \
     kept for small queries; send the query again later",
    if *.is_part { "of this graph " } else { "" },
    if *.is_part { "--graph-quota" } else { "--query-memory-total" }
)]
pub struct PoolExhausted {
    /// Whether the budget is the part of one graph.
    pub is_part: bool,
    /// Limit of all requests together.
    pub limit_bytes: u64,
    /// The part of the limit that only small reservations may use.
    pub kept_bytes: u64,
    /// Bytes that all requests held.
    pub used_bytes: u64,
    /// Bytes that this request held.
    pub held_bytes: u64,
    /// Bytes that it needed in addition.
    pub asked_bytes: u64,
}

impl PoolExhausted {
    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        ErrorCode::MemoryLimitExceeded
    }
}

/// A budget of memory for all requests of a process.
///
/// ```
/// use tidegraph_exec::MemoryPool;
///
/// let pool = MemoryPool::new(1 << 20);
/// let (first, second) = (pool.reserve(), pool.reserve());
/// first.grow_to(800_000)?;
/// assert!(second.grow_to(800_000).is_err());
/// drop(first);
/// second.grow_to(800_000)?;
/// # Ok::<(), tidegraph_exec::PoolExhausted>(())
/// ```
#[derive(Debug)]
pub struct MemoryPool {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    refusals: AtomicU64,
    /// The budget of which this is a part. What is reserved here is reserved there too.
    whole: Option<Arc<MemoryPool>>,
}

impl MemoryPool {
    /// Makes an empty pool.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Arc<Self> {
        Self::within(limit_bytes, None)
    }

    /// Makes a part of this pool with a limit of its own.
    #[must_use]
    pub fn part(self: &Arc<Self>, limit_bytes: u64) -> Arc<Self> {
        Self::within(limit_bytes, Some(self.clone()))
    }

    fn within(limit_bytes: u64, whole: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { limit_bytes, used_bytes: AtomicU64::new(0), refusals: AtomicU64::new(0), whole })
    }

    /// Returns the pool of which this is a part, or this one if it is none.
    #[must_use]
    pub fn whole(&self) -> &Self {
        self.whole.as_deref().unwrap_or(self)
    }

    /// Makes an empty reservation.
    #[must_use]
    pub fn reserve(self: &Arc<Self>) -> Arc<Reservation> {
        Arc::new(Reservation { pool: self.clone(), held_bytes: AtomicU64::new(0) })
    }

    /// Returns the limit of all reservations together, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Returns the sum of all reservations, in bytes.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Returns how often a reservation could not grow.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Returns the part of the limit that only small reservations may use.
    fn kept_bytes(&self) -> u64 {
        self.limit_bytes / 8
    }

    /// Takes `more` bytes for a reservation that then has `bytes`.
    fn take(&self, more: u64, bytes: u64) -> Result<(), PoolExhausted> {
        let kept_bytes = self.kept_bytes();
        let allowed = self.limit_bytes - if bytes > SMALL_BYTES { kept_bytes } else { 0 };
        let fits = |used: u64| used.checked_add(more).filter(|sum| *sum <= allowed);
        if let Err(used_bytes) = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            let (limit_bytes, is_part) = (self.limit_bytes, self.whole.is_some());
            let (held_bytes, asked_bytes) = (0, more);
            return Err(PoolExhausted {
                is_part,
                limit_bytes,
                kept_bytes,
                used_bytes,
                held_bytes,
                asked_bytes,
            });
        }
        let Some(whole) = &self.whole else { return Ok(()) };
        whole.take(more, bytes).inspect_err(|_| {
            self.used_bytes.fetch_sub(more, Ordering::Relaxed);
        })
    }

    /// Takes bytes beyond the limit.
    fn force(&self, more: u64) {
        self.used_bytes.fetch_add(more, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.force(more);
        }
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }
}

/// A part of a [`MemoryPool`]. One thread at a time changes it.
#[derive(Debug)]
pub struct Reservation {
    pool: Arc<MemoryPool>,
    held_bytes: AtomicU64,
}

impl Reservation {
    /// Returns the reserved bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Makes an empty reservation in the same pool.
    #[must_use]
    pub fn sibling(&self) -> Arc<Self> {
        self.pool.reserve()
    }

    /// Makes sure that at least `bytes` are reserved.
    ///
    /// # Errors
    ///
    /// [`PoolExhausted`] if the pool does not have them; the reservation stays as it was.
    pub fn grow_to(&self, bytes: u64) -> Result<(), PoolExhausted> {
        let held_bytes = self.bytes();
        if bytes <= held_bytes {
            return Ok(());
        }
        let rounded = bytes.checked_next_multiple_of(STEP_BYTES).unwrap_or(bytes);
        let asked_bytes = bytes - held_bytes;
        let of_this = |refused| PoolExhausted { held_bytes, asked_bytes, ..refused };
        self.pool.take(rounded - held_bytes, bytes).map_err(of_this)?;
        self.held_bytes.store(rounded, Ordering::Relaxed);
        Ok(())
    }

    /// Reserves at least `bytes`, even beyond the limit: for the answer to a write that is committed, which cannot be
    /// refused any more.
    pub fn force_to(&self, bytes: u64) {
        let held = self.bytes();
        if bytes > held {
            self.pool.force(bytes - held);
            self.held_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Gives back what is far above `bytes`.
    pub fn shrink_to(&self, bytes: u64) {
        let held = self.bytes();
        let needed = bytes.checked_next_multiple_of(STEP_BYTES).unwrap_or(bytes);
        if held > needed.saturating_add(SLACK_BYTES) {
            self.held_bytes.store(needed, Ordering::Relaxed);
            self.pool.give_back(held - needed);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.pool.give_back(self.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Memory};

    #[test]
    fn large_reservations_leave_room_for_small_ones() {
        let pool = MemoryPool::new(16 << 20);
        let large: Vec<_> = (0..4).map(|_| pool.reserve()).collect();
        let refused = large.iter().find_map(|each| each.grow_to(4 << 20).err()).unwrap();
        assert_eq!((refused.limit_bytes, refused.kept_bytes), (16 << 20, 2 << 20));
        assert_eq!((refused.used_bytes, refused.held_bytes, refused.asked_bytes), (12 << 20, 0, 4 << 20));
        assert_eq!(pool.refusals(), 1);
        let small: Vec<_> = (0..4).map(|_| pool.reserve()).collect();
        small.iter().for_each(|each| each.grow_to(SMALL_BYTES).unwrap());
        assert_eq!(pool.used_bytes(), pool.limit_bytes());
        drop((large, small));
        assert_eq!(pool.used_bytes(), 0);
    }

    #[test]
    fn a_part_has_a_limit_of_its_own_and_takes_from_the_whole() {
        let pool = MemoryPool::new(16 << 20);
        let part = pool.part(8 << 20);
        let (here, there) = (part.reserve(), pool.reserve());
        here.grow_to(4 << 20).unwrap();
        assert_eq!((part.used_bytes(), pool.used_bytes()), (4 << 20, 4 << 20));
        let refused = here.grow_to(8 << 20).unwrap_err();
        assert!(refused.is_part && refused.to_string().contains("of this graph"), "{refused}");
        assert_eq!(
            (refused.limit_bytes, refused.used_bytes, refused.held_bytes),
            (8 << 20, 4 << 20, 4 << 20)
        );
        there.grow_to(10 << 20).unwrap();
        // The part would have it, and the whole has not.
        let refused = here.grow_to(5 << 20).unwrap_err();
        assert!(!refused.is_part && refused.to_string().contains("--query-memory-total"), "{refused}");
        assert_eq!((part.used_bytes(), pool.used_bytes()), (4 << 20, 14 << 20));
        assert_eq!((part.refusals(), pool.refusals()), (1, 1));
        here.force_to(9 << 20);
        assert_eq!((part.used_bytes(), pool.used_bytes()), (9 << 20, 19 << 20));
        here.shrink_to(0);
        assert_eq!((part.used_bytes(), pool.used_bytes()), (0, 10 << 20));
        here.sibling().grow_to(1).unwrap();
        drop((here, there));
        assert_eq!((part.used_bytes(), pool.used_bytes()), (0, 0));
        assert_eq!(part.whole().limit_bytes(), pool.whole().limit_bytes());
    }

    #[test]
    fn memory_of_a_request_is_taken_from_the_pool_and_given_back() {
        let pool = MemoryPool::new(8 << 20);
        let held = pool.reserve();
        let memory = Memory::drawing(4 << 20, Some(held.clone()));
        memory.charge(3 << 20).unwrap();
        assert_eq!(pool.used_bytes(), 3 << 20);
        // The limit of the request itself comes first.
        assert!(matches!(memory.charge(2 << 20), Err(Error::Memory { .. })));
        let other = Memory::drawing(8 << 20, Some(pool.reserve()));
        other.charge(4 << 20).unwrap();
        assert!(matches!(memory.charge(512 << 10), Err(Error::AllMemory(_))));
        assert_eq!((memory.used(), pool.used_bytes()), (3 << 20, 7 << 20));
        memory.release(3 << 20);
        assert_eq!(pool.used_bytes(), 4 << 20);
        other.release(100);
        assert_eq!(pool.used_bytes(), 4 << 20, "little is kept");
        drop((memory, other, held));
        assert_eq!(pool.used_bytes(), 0);
    }

    #[test]
    fn many_threads_never_exceed_the_limit() {
        let pool = MemoryPool::new(10 * STEP_BYTES);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let held = pool.reserve();
                        let _ = held.grow_to(3 * STEP_BYTES);
                        assert!(pool.used_bytes() <= pool.limit_bytes());
                    }
                });
            }
        });
        assert_eq!(pool.used_bytes(), 0);
    }
}
