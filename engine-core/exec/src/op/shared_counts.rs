//! Numbers of vertices that the threads of a query have computed, for all of them.
//!
//! A thread looks here for what it does not know itself, and adds what it computes. So each number is computed about once,
//! and threads meet only where both need a new one.
//!
//! What must never happen: threads share numbers that differ, so only requests that write nothing share any.

use crate::Context;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidegraph_types::Gui;

/// Parts of a table, each behind a lock.
const SHARDS: usize = 64;
/// Bytes of a number in a table.
const ENTRY_BYTES: usize = 2 * size_of::<(Gui, u64)>();
/// The part of the memory that is left that all tables may take.
const PART: u64 = 16;

/// The tables of a query.
pub(crate) struct SharedCounts {
    /// By what is counted: an address in the plan, which all threads have.
    tables: Mutex<FxHashMap<usize, Arc<SharedNumbers>>>,
    room: Arc<AtomicUsize>,
}

impl SharedCounts {
    /// Makes tables within a part of the memory that is left.
    pub(super) fn within(ctx: &Context<'_>) -> Self {
        let most = usize::try_from(ctx.memory.left() / PART).unwrap_or(usize::MAX) / ENTRY_BYTES;
        Self { tables: Mutex::default(), room: Arc::new(AtomicUsize::new(most)) }
    }

    /// Returns a table.
    pub(super) fn of(&self, origin: usize) -> Arc<SharedNumbers> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
            Arc::new(SharedNumbers { shards, room: self.room.clone() })
        };
        tables.entry(origin).or_insert_with(new).clone()
    }
}

/// Numbers of vertices.
pub(super) struct SharedNumbers {
    shards: Box<[Mutex<FxHashMap<Gui, u64>>]>,
    /// Numbers that may still be added, to all tables together.
    room: Arc<AtomicUsize>,
}

impl SharedNumbers {
    fn shard(&self, vertex: Gui) -> &Mutex<FxHashMap<Gui, u64>> {
        // The bits that the tables use less.
        &self.shards[(FxBuildHasher.hash_one(vertex) >> 32) as usize % SHARDS]
    }

    /// Moves the vertices whose numbers are known to a table of a thread.
    pub(super) fn move_known(&self, vertices: &mut Vec<Gui>, known: &mut FxHashMap<Gui, u64>) {
        vertices.retain(|vertex| {
            let shard = self.shard(*vertex).lock().unwrap_or_else(PoisonError::into_inner);
            let number = shard.get(vertex).copied();
            drop(shard);
            if let Some(number) = number {
                known.insert(*vertex, number);
            }
            number.is_none()
        });
    }

    /// Adds numbers, as far as there is room and memory. Returns the bytes that were charged for them.
    pub(super) fn add(&self, numbers: impl ExactSizeIterator<Item = (Gui, u64)>, ctx: &Context<'_>) -> usize {
        let count = numbers.len();
        let taken = |room: usize| room.checked_sub(count);
        let bytes = count * ENTRY_BYTES;
        if ctx.memory.charge(bytes).is_err() {
            return 0;
        }
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_err() {
            ctx.memory.release(bytes);
            return 0;
        }
        for (vertex, number) in numbers {
            self.shard(vertex).lock().unwrap_or_else(PoisonError::into_inner).insert(vertex, number);
        }
        bytes
    }
}
