//! Calls of procedures.

use super::{Boxed, Feed, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Result, procedure};
use std::sync::Arc;
use tidegraph_plan::{Expr, Procedure, Slot};
use tidegraph_types::Value;

/// Rows of one call.
type Rows = Arc<Vec<Vec<Value>>>;

/// Calls a procedure for each row, and yields a row for each of its rows.
pub(super) struct CallProcedure<'p> {
    input: Boxed<'p>,
    procedure: Procedure,
    args: &'p [Expr],
    yields: &'p [(usize, Slot)],
    /// The rows of the only call, if there are no arguments that could make a difference.
    only: Option<Rows>,
    current: Option<Current>,
}

/// The batch whose calls the operator yields now.
struct Current {
    batch: Batch,
    calls: Vec<Rows>,
    row: usize,
    /// Number of rows of this call that were yielded.
    taken: usize,
}

impl<'p> CallProcedure<'p> {
    pub(super) fn new(
        input: Boxed<'p>,
        procedure: Procedure,
        args: &'p [Expr],
        yields: &'p [(usize, Slot)],
    ) -> Self {
        Self { input, procedure, args, yields, only: None, current: None }
    }

    fn calls(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<Vec<Rows>> {
        if self.args.is_empty() {
            let only = match self.only.take() {
                Some(only) => only,
                None => self.call(&[], ctx)?,
            };
            self.only = Some(Arc::clone(&only));
            return Ok(vec![only; batch.len]);
        }
        let columns = compute::columns(self.args, batch, ctx)?;
        (0..batch.len)
            .map(|row| self.call(&columns.iter().map(|column| column.get(row)).collect::<Vec<_>>(), ctx))
            .collect()
    }

    /// Calls the procedure, and charges its rows, which stay charged to the end of the request.
    fn call(&self, args: &[Value], ctx: &Context<'_>) -> Result<Rows> {
        ctx.check()?;
        let rows = procedure::call(self.procedure, args, ctx)?;
        let bytes = rows.iter().flatten().map(|value| size_of::<Value>() + value.heap_bytes()).sum();
        ctx.memory.charge(bytes)?;
        Ok(Arc::new(rows))
    }
}

impl Current {
    /// Returns up to `limit` rows, each the number of its input row and a row of its call.
    fn take(&mut self, limit: usize) -> (Vec<u32>, Vec<&[Value]>) {
        let (mut numbers, mut rows) = (vec![], vec![]);
        while self.row < self.calls.len() && numbers.len() < limit {
            let all = &self.calls[self.row];
            let end = all.len().min(self.taken + limit - numbers.len());
            rows.extend(all[self.taken..end].iter().map(Vec::as_slice));
            numbers.resize(rows.len(), self.row as u32);
            self.taken = end;
            if end == all.len() {
                self.row += 1;
                self.taken = 0;
            }
        }
        (numbers, rows)
    }
}

impl Operator for CallProcedure<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(mut current) = self.current.take() {
                let (numbers, rows) = current.take(want.rows.min(BATCH_ROWS));
                if numbers.is_empty() {
                    continue;
                }
                let columns: Vec<Column> = (self.yields.iter())
                    .map(|(at, _)| {
                        let value = |row: &&[Value]| row.get(*at).cloned().unwrap_or(Value::Null);
                        Column::from_values(rows.iter().map(value).collect())
                    })
                    .collect();
                let mut batch = current.batch.gather(&numbers);
                for ((_, slot), column) in self.yields.iter().zip(columns) {
                    batch.set(*slot, column);
                }
                self.current = Some(current);
                return Ok(Some(batch));
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            let calls = self.calls(&batch, ctx)?;
            self.current = Some(Current { batch, calls, row: 0, taken: 0 });
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.input.feed(ctx, feed);
    }
}
