//! The language-neutral plan: what Gremlin and openCypher are translated to, and what `exec` runs.
//!
//! **Rows and slots.** A plan turns rows into rows. A row is a set of slots ([`Slot`]), each holding a value or
//! nothing (`Value::Unbound`). An openCypher variable is a slot; so is a Gremlin traverser's current object, each
//! `as()` label, its path, and the vertex that the last edge step came from.
//!
//! **Subplans.** An operator may hold subplans, whose leaf is [`Op::Argument`]: it yields the outer rows, with all
//! their slots. The executor runs a subplan over a whole batch of outer rows at once and keeps track of which outer
//! row each inner row comes from (its *origin*). Everything stateful in a subplan (aggregate, sort, distinct, slice,
//! tail) works per origin: `by(out().count())` is an aggregate in a subplan and yields one row for each outer row.
//!
//! **Flow.** text → front end (`gremlin`, `opencypher`) → [`Plan`] → [`passes::optimize`] (a file each in `passes/`) →
//! `exec`. `Plan` prints as indented text (`display`), the form of the golden tests.
//!
//! What must never happen: a front end that evaluates anything itself, or an operator that only one language can use.

pub mod display;
pub mod error;
pub mod expr;
pub mod op;
pub mod passes;
pub mod pattern;
mod top;
pub mod visit;

pub use error::FrontEndError;
pub use expr::{AggregateKind, Arithmetic, Comparison, Expr, Function, Quantifier};
pub use op::{
    AggregateItem, ApplyKind, BindKind, Branch, Column, Op, Plan, PropertyAssignment, RepeatTest,
    ScanCondition, ScanFilter, ScanTest, Slot, SortKey, TotalOrder,
};
pub use pattern::{Length, MatchPattern, NamedPath, PatternEdge, PatternNode, Shortest};
pub use top::TopEdges;
