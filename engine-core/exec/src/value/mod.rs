//! Computes expressions, functions and aggregates over batches, and replaces handles by data in answers.
//!
//! Roles: [`Evaluator::prepare`] walks the expressions of an operator, reads what they need of the elements in a batch
//! with one call for each slot, and returns a [`Prepared`]. That computes a value for a row (`eval`), a column
//! (`eval_column`), or the rows that pass (`eval_filter`). [`Accumulator`] is one aggregate of one group.
//! [`materialize`] replaces handles in result rows by data.
//!
//! Flow: `need` (which elements, which properties) → `elements` (read them) → `eval` (expressions) → `call` and
//! the modules of each kind of function (`arithmetic`, `text`, `gremlin_text`, `text_of`, `number`, `convert`, `cast`,
//! `list`, `collection`, `local`, `operate`, `two_lists`, `path`, `record`, `temporal`, `point`).
//!
//! What must never happen: a call to storage for each row of a slot; a panic, whatever the expression and its values;
//! a rounded or wrapped integer; a value larger than the request's memory limit that is made before it is charged.

mod aggregate;
mod ahead;
mod arithmetic;
mod big;
mod call;
mod cast;
mod collection;
mod column;
mod compare;
mod convert;
mod elements;
mod error;
mod eval;
mod gremlin_text;
mod list;
mod local;
mod materialize;
mod members;
mod need;
mod number;
mod operate;
mod path;
mod pattern;
mod point;
mod property;
mod record;
mod shape;
mod signature;
mod size;
mod sorted;
mod temporal;
#[cfg(test)]
mod tests;
mod text;
mod text_of;
mod two_lists;
mod types;

pub use aggregate::Accumulator;
pub(crate) use aggregate::{times, too_many_rows};
pub(crate) use ahead::ReadAhead;
pub use column::{Evaluator, Prepared};
pub use error::Error;
pub use materialize::materialize;
pub(crate) use need::reads_same_elements;
pub(crate) use operate::call as joined;
pub use pattern::Patterns;
pub(crate) use sorted::sorted_rows;
pub(crate) use types::has_type;

use tidegraph_types::Value;

/// Returns the bytes of a value, with what it holds outside of itself.
pub(crate) fn size_of_value(value: &Value) -> usize {
    size_of::<Value>() + value.heap_bytes()
}

/// Returns the error that a register, which is to have entries, is no map.
pub(crate) fn not_a_map(value: &Value) -> crate::Error {
    Error::of_type("a side effect with groups", "a map", value).into()
}
