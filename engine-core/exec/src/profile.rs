//! Measures of the operators of a request: rows, calls, time, and messages to other processes.

use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tidegraph_apl::Traffic;
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
    /// What its requests moved between processes, without those of the operators below it and of the subplans in it.
    pub traffic: Traffic,
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
    /// The same for messages.
    below_traffic: Cell<Traffic>,
    measures: RefCell<FxHashMap<OpKey, Measure>>,
}

/// A call of an operator that has begun.
pub(crate) struct Begun {
    at: Duration,
    /// The time below the operator that called.
    outer: Duration,
    traffic: Traffic,
    outer_traffic: Traffic,
}

impl<'c> Profile<'c> {
    /// Makes an empty profile. `now` is the caller's monotonic clock.
    #[must_use]
    pub fn new(now: &'c (dyn Fn() -> Duration + Sync)) -> Self {
        Self { now, below: Cell::default(), below_traffic: Cell::default(), measures: RefCell::default() }
    }

    /// Returns what an operator of the request's plan did. `None`: it was not run by itself, because another operator
    /// did its work, or because no row came to it.
    #[must_use]
    pub fn measure(&self, op: &Op) -> Option<Measure> {
        self.measures.borrow().get(&OpKey::of(op)).copied()
    }

    /// Returns what the requests of all operators moved so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.below_traffic.get()
    }

    /// `traffic`: what the request moved so far.
    pub(crate) fn begin(&self, traffic: Traffic) -> Begun {
        Begun {
            at: (self.now)(),
            outer: self.below.take(),
            traffic,
            outer_traffic: self.below_traffic.take(),
        }
    }

    /// `traffic`: what the request moved so far.
    pub(crate) fn end(&self, begun: Begun, key: OpKey, rows: u64, traffic: Traffic) {
        let whole = (self.now)().saturating_sub(begun.at);
        let moved = traffic.since(begun.traffic);
        let mut measures = self.measures.borrow_mut();
        let measure = measures.entry(key).or_default();
        measure.calls += 1;
        measure.rows += rows;
        measure.time += whole.saturating_sub(self.below.get());
        measure.traffic += moved.since(self.below_traffic.get());
        self.below.set(begun.outer + whole);
        self.below_traffic.set(begun.outer_traffic + moved);
    }
}
