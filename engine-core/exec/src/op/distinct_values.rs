//! Values of distinct aggregates that do not fit into memory: they go to files, and each is added once when all rows have
//! been read.
//!
//! A file has them in the order of their arrival again, so that `collect(DISTINCT …)` and sums of floats are those of
//! memory.

use super::Want;
use crate::spill::Arrivals;
use crate::value::Accumulator;
use crate::{Column, Context, Result};
use std::sync::Arc;
use tidegraph_types::Value;

/// The values that wait of the aggregates of one group.
#[derive(Default)]
pub(super) struct DistinctValues(Option<Arrivals>);

impl DistinctValues {
    /// Whether no value waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Takes the values that wait in the accumulators.
    pub(super) fn take(&mut self, accumulators: &mut [Accumulator], ctx: &Context<'_>) -> Result<()> {
        let (mut items, mut values) = (vec![], vec![]);
        for (item, accumulator) in accumulators.iter_mut().enumerate() {
            let waiting = accumulator.take_waiting();
            items.extend(waiting.iter().map(|_| Value::Long(item as i64)));
            values.extend(waiting);
        }
        if values.is_empty() {
            return Ok(());
        }
        let rows: Vec<u32> = (0..values.len() as u32).collect();
        let keys = [items, values].map(|values| Arc::new(Column::Values(values)));
        let arrivals = self.0.get_or_insert_with(|| Arrivals::new(keys.len()));
        arrivals.push(&keys, keys.iter().map(Some), &rows, ctx)
    }

    /// Adds each value that was taken to its accumulator, once.
    pub(super) fn finish(&mut self, accumulators: &mut [Accumulator], ctx: &Context<'_>) -> Result<()> {
        self.take(accumulators, ctx)?;
        let Some(arrivals) = self.0.take() else { return Ok(()) };
        // No value in the file is among them.
        accumulators.iter_mut().for_each(|accumulator| accumulator.forget_seen(ctx));
        let mut firsts = arrivals.firsts(ctx)?;
        while let Some(batch) = firsts.next(Want::ALL, ctx)? {
            ctx.check()?;
            let [Some(items), Some(values)] = &batch.columns[..] else { continue };
            for row in 0..batch.len {
                let item = items.get(row).as_i64().and_then(|item| usize::try_from(item).ok());
                if let Some(accumulator) = item.and_then(|item| accumulators.get_mut(item)) {
                    accumulator.add_value(&values.get(row), ctx)?;
                }
            }
        }
        firsts.clear(ctx);
        Ok(())
    }

    /// Drops all values.
    pub(super) fn clear(&mut self, ctx: &Context<'_>) {
        if let Some(mut arrivals) = self.0.take() {
            arrivals.clear(ctx);
        }
    }
}
