//! Measures of the operators of a request: rows, calls and time.

use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tidegraph_plan::Op;

/// What an operator did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Measure {
    /// How often it was asked for rows.
    pub calls: u64,
    /// Number of rows that it yielded.
    pub rows: u64,
    /// Time that it took itself, without the operators below it and the subplans in it.
    pub time: Duration,
}

/// An operator of a plan, as long as the plan is where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct OpKey(usize);

impl OpKey {
    pub(crate) fn of(op: &Op) -> Self {
        Self(std::ptr::from_ref(op).addr())
    }
}

/// Measures of a running request. A request that has one runs slower: it reads the clock twice for each batch of each
/// operator.
pub struct Profile<'c> {
    now: &'c (dyn Fn() -> Duration + Sync),
    /// Time of the operators that ended since the innermost running one began.
    below: Cell<Duration>,
    measures: RefCell<FxHashMap<OpKey, Measure>>,
}

/// A call of an operator that has begun.
pub(crate) struct Begun {
    at: Duration,
    /// The time below the operator that called.
    outer: Duration,
}

impl<'c> Profile<'c> {
    /// Makes an empty profile. `now` is the caller's monotonic clock.
    #[must_use]
    pub fn new(now: &'c (dyn Fn() -> Duration + Sync)) -> Self {
        Self { now, below: Cell::default(), measures: RefCell::default() }
    }

    /// Returns what an operator of the request's plan did. `None`: it was not run by itself, because another operator
    /// did its work, or because no row came to it.
    #[must_use]
    pub fn measure(&self, op: &Op) -> Option<Measure> {
        self.measures.borrow().get(&OpKey::of(op)).copied()
    }

    pub(crate) fn begin(&self) -> Begun {
        Begun { at: (self.now)(), outer: self.below.take() }
    }

    pub(crate) fn end(&self, begun: Begun, key: OpKey, rows: u64) {
        let whole = (self.now)().saturating_sub(begun.at);
        let mut measures = self.measures.borrow_mut();
        let measure = measures.entry(key).or_default();
        measure.calls += 1;
        measure.rows += rows;
        measure.time += whole.saturating_sub(self.below.get());
        self.below.set(begun.outer + whole);
    }
}
