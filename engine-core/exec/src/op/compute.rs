//! Values of expressions for operators, with short cuts for slots and constants.

use crate::value::{Evaluator, Prepared};
use crate::{Batch, Column, Context, Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;
use tidegraph_plan::{Expr, Slot};
use tidegraph_types::{Gui, Value};

/// Columns of an operator's expressions.
pub(super) type Columns = SmallVec<[Arc<Column>; 4]>;

/// The values of an expression in all rows.
pub(super) fn column(expr: &Expr, batch: &Batch, ctx: &Context<'_>) -> Result<Arc<Column>> {
    match expr {
        Expr::Slot(slot) => Ok(slot_column(*slot, batch)),
        Expr::Literal(value) => Ok(Arc::new(Column::Constant(value.clone(), batch.len))),
        _ => Evaluator::prepare(&[expr], batch, ctx)?.eval_column(0),
    }
}

/// Returns the values of several expressions in all rows; reads the elements that they need once.
pub(super) fn columns<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    batch: &Batch,
    ctx: &Context<'_>,
) -> Result<Columns> {
    let exprs: SmallVec<[&Expr; 4]> = exprs.into_iter().collect();
    match exprs[..] {
        [] => Ok(Columns::new()),
        [one] => Ok(SmallVec::from_iter([column(one, batch, ctx)?])),
        _ => {
            let prepared: Prepared<'_, '_> = Evaluator::prepare(&exprs, batch, ctx)?;
            (0..exprs.len()).map(|index| prepared.eval_column(index)).collect()
        }
    }
}

fn slot_column(slot: Slot, batch: &Batch) -> Arc<Column> {
    match batch.column(slot) {
        Some(column) => Arc::clone(column),
        None => Arc::new(Column::Constant(Value::Unbound, batch.len)),
    }
}

/// The rows in which a predicate is true.
pub(super) fn filter(predicate: &Expr, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<u32>> {
    Evaluator::prepare(&[predicate], batch, ctx)?.eval_filter(0)
}

/// Returns 1 for each of the vertices that passes a predicate over the slot of the vertex, and 0 for the others.
pub(super) fn test_vertices(
    slot: Slot,
    predicate: &Expr,
    vertices: &[Gui],
    ctx: &Context<'_>,
) -> Result<Vec<u64>> {
    let mut batch = Batch::unbound(vertices.len(), slot.0 as usize + 1);
    batch.set(slot, Column::Vertices(vertices.to_vec()));
    let mut passes = vec![0; vertices.len()];
    filter(predicate, &batch, ctx)?.into_iter().for_each(|row| passes[row as usize] = 1);
    Ok(passes)
}

/// Computes a number of rows or rounds, which must be an integer of at least 0.
pub(super) fn count(place: &'static str, expr: &Expr, ctx: &Context<'_>) -> Result<u64> {
    let value = Evaluator::constant(expr, ctx)?;
    match value.as_i64().map(u64::try_from) {
        Some(Ok(count)) => Ok(count),
        _ => Err(Error::of_type(place, "an integer that is not negative", &value)),
    }
}

/// Whether an expression uses a slot.
pub(super) fn uses_slots(expr: &Expr) -> bool {
    let mut any = false;
    expr.for_each_slot(&mut |_| any = true);
    any
}
