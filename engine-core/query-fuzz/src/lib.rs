//! Random queries of both languages, checked against evaluators that walk lists.
//!
//! Roles: [`graph`] draws small graphs; [`cypher`] and [`gremlin`] each draw queries as trees, write them as text, and
//! evaluate the trees in the most naive way; [`campaign`] gives each query to the engine and to the evaluator, compares
//! the answers (and the graphs after a write), and makes a query that differs smaller; [`metamorphic`] compares answers
//! of the engine with each other, on graphs that are too large for the evaluators; [`concurrent`] runs statements beside
//! each other and compares them with every serial order.
//!
//! Everything is drawn from a seed, so a seed replays a run. The evaluators share no code with the engine: they use its
//! values only to read its answers.

pub mod campaign;
pub mod concurrent;
pub mod cypher;
pub mod graph;
pub mod gremlin;
pub mod metamorphic;
pub mod value;

use std::cell::Cell;

/// Why a reference evaluator gives no answer.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The query takes too many steps or rows.
    TooMuch,
    /// The query has no defined answer, or the evaluator does not know a part of it.
    Wrong(String),
}

/// Bounds the work of one evaluation.
#[derive(Debug)]
pub struct Budget(Cell<u32>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(300_000))
    }
}

impl Budget {
    const MAX_ROWS: usize = 3_000;

    fn step(&self) -> Result<(), Stop> {
        self.0.set(self.0.get().checked_sub(1).ok_or(Stop::TooMuch)?);
        Ok(())
    }

    fn rows(&self, count: usize) -> Result<(), Stop> {
        self.step()?;
        if count > Self::MAX_ROWS { Err(Stop::TooMuch) } else { Ok(()) }
    }
}
