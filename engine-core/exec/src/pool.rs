//! The memory that all requests of a process share.
//!
//! Roles: [`MemoryPool`] is the budget; a [`Reservation`] is the part of it that one request, or one answer that is
//! not sent yet, holds. A request's [`Memory`](crate::Memory) grows its reservation; dropping the reservation gives
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
    "all queries and unsent answers together hold {used_bytes} bytes, and this query, which holds {held_bytes}, needs \
     {asked_bytes} more: the limit for all of them is {limit_bytes} (--query-memory-total), of which {kept_bytes} are \
     kept for small queries; send the query again later"
)]
pub struct PoolExhausted {
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
}

impl MemoryPool {
    /// Makes an empty pool.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Arc<Self> {
        Arc::new(Self { limit_bytes, used_bytes: AtomicU64::new(0), refusals: AtomicU64::new(0) })
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
        let kept_bytes = self.pool.kept_bytes();
        let allowed = self.pool.limit_bytes - if bytes > SMALL_BYTES { kept_bytes } else { 0 };
        let more = rounded - held_bytes;
        let fits = |used: u64| used.checked_add(more).filter(|sum| *sum <= allowed);
        match self.pool.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.held_bytes.store(rounded, Ordering::Relaxed);
                Ok(())
            }
            Err(used_bytes) => {
                self.pool.refusals.fetch_add(1, Ordering::Relaxed);
                let (limit_bytes, asked_bytes) = (self.pool.limit_bytes, bytes - held_bytes);
                Err(PoolExhausted { limit_bytes, kept_bytes, used_bytes, held_bytes, asked_bytes })
            }
        }
    }

    /// Reserves at least `bytes`, even beyond the limit: for the answer to a write that is committed, which cannot be
    /// refused any more.
    pub fn force_to(&self, bytes: u64) {
        let held = self.bytes();
        if bytes > held {
            self.pool.used_bytes.fetch_add(bytes - held, Ordering::Relaxed);
            self.held_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Gives back what is far above `bytes`.
    pub fn shrink_to(&self, bytes: u64) {
        let held = self.bytes();
        let needed = bytes.checked_next_multiple_of(STEP_BYTES).unwrap_or(bytes);
        if held > needed.saturating_add(SLACK_BYTES) {
            self.held_bytes.store(needed, Ordering::Relaxed);
            self.pool.used_bytes.fetch_sub(held - needed, Ordering::Relaxed);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.pool.used_bytes.fetch_sub(self.bytes(), Ordering::Relaxed);
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
