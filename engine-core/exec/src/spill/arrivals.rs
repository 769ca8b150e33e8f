//! Rows that belong together by their keys, where the keys do not fit into memory.

use super::{KeyOrder, Sorted, Sorter};
use crate::op::Want;
use crate::{Batch, Column, Context, Result};
use std::sync::Arc;
use tidegraph_types::Value;

/// Rows with keys and the number of their arrival. Sorted by the keys, equal ones meet; what is made of them is sorted by
/// the number again, so that the result is in the order that it has in memory.
pub(crate) struct Arrivals {
    keys: usize,
    rows: Sorter,
    arrived: i64,
}

impl Arrivals {
    /// Makes an empty collection of rows with this number of keys.
    pub(crate) fn new(keys: usize) -> Self {
        Self { keys, rows: Sorter::new(vec![KeyOrder::PLAIN; keys], None, 1), arrived: 0 }
    }

    /// Adds some rows of a batch: the columns of their keys, and others.
    pub(crate) fn push<'c>(
        &mut self,
        keys: &[Arc<Column>],
        others: impl Iterator<Item = Option<&'c Arc<Column>>>,
        rows: &[u32],
        ctx: &Context<'_>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let end = self.arrived + rows.len() as i64;
        let numbers = Column::Values((self.arrived..end).map(Value::Long).collect());
        self.arrived = end;
        let gathered = |column: &Arc<Column>| Arc::new(column.gather(rows));
        let mut columns: Vec<Option<Arc<Column>>> = keys.iter().map(gathered).map(Some).collect();
        columns.push(Some(Arc::new(numbers)));
        columns.extend(others.map(|column| column.map(gathered)));
        self.rows.push(Batch { len: rows.len(), columns, origin: None }, ctx)
    }

    /// Drops all rows.
    pub(crate) fn clear(&mut self, ctx: &Context<'_>) {
        self.rows.clear(ctx);
    }

    /// Calls `each` with the rows, sorted by keys and then by arrival, and for each whether it is the first with its keys.
    /// The columns are the keys, the number of arrival, and the others.
    pub(crate) fn grouped(
        mut self,
        ctx: &Context<'_>,
        mut each: impl FnMut(&Batch, &[bool]) -> Result<()>,
    ) -> Result<()> {
        let mut sorted = self.rows.finish(false, ctx)?;
        let mut last: Vec<Value> = vec![];
        while let Some(batch) = sorted.next(Want::ALL, ctx)? {
            ctx.check()?;
            let keys: Vec<&Arc<Column>> = batch.columns.iter().take(self.keys).flatten().collect();
            let mut are_first = Vec::with_capacity(batch.len);
            for row in 0..batch.len {
                let is_first = last.is_empty()
                    || keys.iter().zip(&last).any(|(column, value)| column.get(row) != *value);
                if is_first {
                    last = keys.iter().map(|column| column.get(row)).collect();
                }
                are_first.push(is_first);
            }
            each(&batch, &are_first)?;
        }
        Ok(())
    }

    /// Returns the first row of each group without its keys, in the order of arrival.
    pub(crate) fn firsts(self, ctx: &Context<'_>) -> Result<Sorted> {
        let keys = self.keys;
        let mut firsts = Sorter::new(vec![KeyOrder::PLAIN], None, 1);
        self.grouped(ctx, |batch, are_first| {
            let rows: Vec<u32> = (0..batch.len as u32).filter(|row| are_first[*row as usize]).collect();
            if rows.is_empty() {
                return Ok(());
            }
            let mut batch = batch.gather(&rows);
            batch.columns.drain(..keys);
            firsts.push(batch, ctx)
        })?;
        firsts.finish(true, ctx)
    }
}
