//! Calls of procedures.

use super::compute::{self, Columns};
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::procedure::{self, CallResult};
use crate::{Batch, Column, Context, Result};
use std::sync::Arc;
use tidegraph_plan::{Expr, Procedure, Slot};
use tidegraph_types::Value;

/// Calls a procedure for each row, and yields a row for each of its rows.
pub(super) struct CallProcedure<'p> {
    input: Boxed<'p>,
    procedure: &'p Procedure,
    args: &'p [Expr],
    yields: &'p [(usize, Slot)],
    /// The rows of the only call, if there are no arguments that could make a difference. They stay charged to the end of
    /// the request.
    only: Option<Arc<CallResult>>,
    current: Option<Current>,
}

/// The batch whose calls the operator yields now.
struct Current {
    batch: Batch,
    /// The arguments of all calls.
    args: Columns,
    row: usize,
    /// The call for this row, once it was made.
    call: Option<Arc<CallResult>>,
    /// Number of rows of this call that were yielded.
    taken: usize,
}

impl<'p> CallProcedure<'p> {
    pub(super) fn new(
        input: Boxed<'p>,
        procedure: &'p Procedure,
        args: &'p [Expr],
        yields: &'p [(usize, Slot)],
    ) -> Self {
        Self { input, procedure, args, yields, only: None, current: None }
    }

    /// Calls the procedure for a row of the batch.
    fn call(&mut self, current: &Current, ctx: &Context<'_>) -> Result<Arc<CallResult>> {
        if let Some(only) = &self.only {
            return Ok(Arc::clone(only));
        }
        let args = current.args.iter().map(|column| column.get(current.row)).collect();
        let call = Arc::new(procedure::call(self.procedure, args, ctx)?);
        if self.args.is_empty() {
            self.only = Some(Arc::clone(&call));
        }
        Ok(call)
    }

    /// Returns up to `limit` rows of a batch: the number of the input row of each, and a column for each yield.
    fn take(
        &mut self,
        current: &mut Current,
        limit: usize,
        ctx: &Context<'_>,
    ) -> Result<(Vec<u32>, Vec<Vec<Value>>)> {
        let mut numbers: Vec<u32> = vec![];
        let mut columns: Vec<Vec<Value>> = vec![vec![]; self.yields.len()];
        while current.row < current.batch.len && numbers.len() < limit {
            let call = match current.call.take() {
                Some(call) => call,
                None => self.call(current, ctx)?,
            };
            let end = call.rows.len().min(current.taken + limit - numbers.len());
            let rows = call.rows.get(current.taken..end).unwrap_or_default();
            numbers.resize(numbers.len() + rows.len(), current.row as u32);
            for (column, (at, _)) in columns.iter_mut().zip(self.yields) {
                column.extend(rows.iter().map(|row| row.get(*at).cloned().unwrap_or(Value::Null)));
            }
            current.taken = end;
            if end == call.rows.len() {
                current.row += 1;
                current.taken = 0;
                if self.only.is_none() {
                    ctx.memory.release(call.bytes);
                }
            } else {
                current.call = Some(call);
            }
        }
        Ok((numbers, columns))
    }
}

impl Operator for CallProcedure<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(mut current) = self.current.take() {
                let (numbers, columns) = self.take(&mut current, want.rows.min(BATCH_ROWS), ctx)?;
                if numbers.is_empty() {
                    continue;
                }
                let mut batch = current.batch.gather(&numbers);
                for ((_, slot), column) in self.yields.iter().zip(columns) {
                    batch.set(*slot, Column::from_values(column));
                }
                self.current = Some(current);
                return Ok(Some(batch));
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            let args = compute::columns(self.args, &batch, ctx)?;
            self.current = Some(Current { batch, args, row: 0, call: None, taken: 0 });
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if let Some(Current { call: Some(call), .. }) = self.current.take()
            && self.only.is_none()
        {
            ctx.memory.release(call.bytes);
        }
        self.input.feed(ctx, feed);
    }
}
