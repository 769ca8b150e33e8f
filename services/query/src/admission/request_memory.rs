//! The memory of a request before its query starts.

use super::Admission;
use std::sync::Arc;
use tidegraph_engine::{PoolExhausted, Reservation};

/// A request up to this size is not counted: the number of connections limits how many of them there are.
const SMALL_REQUEST_BYTES: usize = 16 << 10;

/// The memory of a request's bytes and of what they are read into, as part of the memory of all queries.
#[derive(Debug, Default)]
pub struct RequestMemory {
    bytes: usize,
    reserved: Option<Arc<Reservation>>,
}

impl RequestMemory {
    /// Counts `bytes` in all, before they are taken.
    ///
    /// # Errors
    ///
    /// If the queries leave no memory for it.
    pub fn grow_to(&mut self, bytes: usize, admission: &Admission) -> Result<(), PoolExhausted> {
        self.bytes = self.bytes.max(bytes);
        if self.bytes <= SMALL_REQUEST_BYTES {
            return Ok(());
        }
        let reserved = self.reserved.get_or_insert_with(|| admission.memory.reserve());
        reserved.grow_to(self.bytes as u64)
    }

    /// Counts `more` bytes, before they are taken.
    ///
    /// # Errors
    ///
    /// If the queries leave no memory for them.
    pub fn grow(&mut self, more: usize, admission: &Admission) -> Result<(), PoolExhausted> {
        self.grow_to(self.bytes.saturating_add(more), admission)
    }

    /// Returns the memory, to be held as long as the query has its parameters; `None` for a small request.
    #[must_use]
    pub fn reserved(&self) -> Option<Arc<Reservation>> {
        self.reserved.clone()
    }
}
