//! The language-neutral plan. The front ends translate Gremlin and openCypher to it, and `exec` runs it. There is only
//! this form: the optimiser rewrites a plan into a plan of the same operators, and no separate physical plan follows.
//!
//! **Rows and slots.** A plan turns rows into rows. A row is a set of slots ([`Slot`]), each with a value or without
//! one (`Value::Unbound`). Each openCypher variable has a slot. So have the current object of a Gremlin traverser, each
//! of its `as()` labels, its path, and the vertex that the last edge step came from.
//!
//! **Subplans.** An operator may hold subplans. The leaf of a subplan is [`Op::Argument`], which yields the outer rows
//! with all their slots. The executor runs a subplan over a whole batch of outer rows and records the outer row of each
//! inner row (its *origin*). Stateful operators in a subplan (aggregate, sort, distinct, slice, tail) work for each
//! origin separately: `by(out().count())` is an aggregate in a subplan and yields one row for each outer row.
//!
//! **Flow.** text → front end (`gremlin`, `opencypher`) → [`Plan`] → [`passes::optimize`] → `exec`. Each pass
//! is a file in `passes/`; [`passes::Trace`] shows the plan after each. A `Plan` prints as indented text (`display`),
//! which the golden tests compare.
//!
//! **Invariants.** Front ends evaluate nothing. Every operator is open to both languages.

mod batches;
mod digest;
pub mod display;
pub mod error;
pub mod expr;
mod limits;
pub mod op;
pub mod passes;
pub mod pattern;
mod procedure;
mod top;
mod types;
pub mod visit;

pub use batches::{BatchedPlan, DEFAULT_BATCH_ROWS, DEFAULT_RETRY_S, OnError, ROWS_PARAMETER};
pub use digest::{Digest, DigestItem, EdgeStep};
pub use error::FrontEndError;
pub use expr::{
    AggregateKind, Arithmetic, Between, Comparison, DateUnit, Expr, Function, ListFunction, Operator,
    Quantifier, TemporalType,
};
pub use limits::{Limits, Stopped};
pub use op::{
    AggregateItem, Algorithm, ApplyKind, Arm, BindKind, Branch, Collected, Column, CountChoices, CountStep,
    Drawn, Op, PathPart, Plan, PropertyAssignment, Register, RepeatTest, ScanColumn, ScanCondition,
    ScanFilter, ScanTest, Slot, SortKey, TotalOrder,
};
pub use pattern::{
    Length, MatchPattern, NamedPath, PatternBody, PatternEdge, PatternNode, Selection, Shortest,
};
pub use procedure::{
    Argument, BadProcedure, Body, Builtin, CallError, CallRows, Field, Function as ProcedureFunction,
    Procedure, Procedures, Signature,
};
pub use top::{FirstKey, TopEdges, TopVertices};
pub use types::{GremlinType, TypeTest, ValueType};
