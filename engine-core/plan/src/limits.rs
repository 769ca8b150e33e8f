//! The limits under which a text becomes a plan.
//!
//! Parsers, lowering and passes call [`Limits::spend`] where they loop over something that a text makes long, and
//! [`Limits::charge`] before they make parts of a tree or a plan. So a text that would take too long, or more memory
//! than a request may use, ends like a query that reaches its limit.

use std::cell::Cell;
use tidegraph_types::ErrorCode;

/// Steps of work between two checks: below a millisecond.
const STEPS_PER_CHECK: usize = 4_096;

/// Why planning ended before there was a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stopped {
    /// The caller asked planning to end. It knows whether the time limit passed or the request was cancelled.
    #[error("the query was stopped while it was planned")]
    Interrupted,
    /// The syntax tree and the plan need more memory than the request may use.
    #[error(
        "the query needs more than its memory limit of {limit_bytes} bytes to be planned: \
         pass long lists as parameters, split the query, or raise the limit"
    )]
    Memory {
        /// The memory limit of the request.
        limit_bytes: u64,
    },
    /// All queries of the service together use the memory that they may use.
    #[error("all queries together use their memory (--query-memory-total): send the query again later")]
    AllMemory,
}

impl Stopped {
    /// Returns the code that a client sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Interrupted => ErrorCode::Cancelled,
            Self::Memory { .. } => ErrorCode::QueryLimitExceeded,
            Self::AllMemory => ErrorCode::MemoryLimitExceeded,
        }
    }
}

/// What planning may use.
///
/// ```
/// use tidegraph_plan::{Limits, Stopped};
///
/// let limits = Limits::new(100, &|| true);
/// assert_eq!(limits.charge(80), Ok(()));
/// assert_eq!(limits.charge(30), Err(Stopped::Memory { limit_bytes: 100 }));
/// ```
pub struct Limits<'a> {
    go_on: &'a dyn Fn() -> bool,
    limit_bytes: u64,
    /// Takes memory that all requests share; returns whether there is room for this many bytes of this request.
    take: Option<&'a dyn Fn(u64) -> bool>,
    used_bytes: Cell<u64>,
    steps: Cell<usize>,
}

impl<'a> Limits<'a> {
    /// Makes limits: `limit_bytes` bounds the memory. Planning calls `go_on` often, and ends if it returns `false`.
    #[must_use]
    pub fn new(limit_bytes: u64, go_on: &'a dyn Fn() -> bool) -> Self {
        Self { go_on, limit_bytes, take: None, used_bytes: Cell::new(0), steps: Cell::new(0) }
    }

    /// Takes the memory also from what all requests share. `take` returns whether there is room for this many bytes of
    /// this request.
    #[must_use]
    pub fn taking(mut self, take: &'a dyn Fn(u64) -> bool) -> Self {
        self.take = Some(take);
        self
    }

    /// Returns limits that are never reached, for texts of the program itself.
    #[must_use]
    pub fn none() -> Self {
        Self::new(u64::MAX, &|| true)
    }

    /// Counts steps of work, and checks from time to time whether planning may go on.
    ///
    /// # Errors
    /// [`Stopped::Interrupted`] if the caller wants planning to end.
    pub fn spend(&self, steps: usize) -> Result<(), Stopped> {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(if steps < STEPS_PER_CHECK { steps } else { 0 });
        if steps < STEPS_PER_CHECK || (self.go_on)() { Ok(()) } else { Err(Stopped::Interrupted) }
    }

    /// Counts memory that is about to be used, and one step of work.
    ///
    /// # Errors
    /// [`Stopped::Memory`] over the limit, [`Stopped::AllMemory`] over that of all requests, and those of [`Limits::spend`].
    pub fn charge(&self, bytes: usize) -> Result<(), Stopped> {
        let used = self.used_bytes.get().saturating_add(bytes as u64);
        if used > self.limit_bytes {
            return Err(Stopped::Memory { limit_bytes: self.limit_bytes });
        }
        if self.take.is_some_and(|take| !take(used)) {
            return Err(Stopped::AllMemory);
        }
        self.used_bytes.set(used);
        self.spend(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spend_and_charge_end_planning_when_the_caller_asks() {
        let going = Cell::new(true);
        let go_on = || going.get();
        let limits = Limits::new(u64::MAX, &go_on);
        assert_eq!(limits.spend(10 * STEPS_PER_CHECK), Ok(()));
        going.set(false);
        let stopped = (0..STEPS_PER_CHECK).find_map(|_| limits.charge(1).err());
        assert_eq!(stopped, Some(Stopped::Interrupted));
        assert_eq!(limits.spend(usize::MAX), Err(Stopped::Interrupted));
    }
}
