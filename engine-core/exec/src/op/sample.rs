//! A uniform sample of a scan, drawn by storage while it scans, so that other vertices are not listed.
//!
//! It replaces a sort by random keys of which only the first rows are used. The sort runs nevertheless if several rows
//! share one sample, if storage cannot test all conditions, or if the sample is too large to be drawn at once.

use super::buffer::Pieces;
use super::scan::{Source, Vertices};
use super::{Boxed, Feed, Operator, Want, compute};
use crate::{Batch, Column, Context, Result};
use tidegraph_apl::{Reservoir, Sample};
use tidegraph_plan::{Expr, Function, ScanColumn, ScanFilter, Slot};
use tidegraph_types::Value;

/// Largest sample that storage draws; the sort makes larger ones.
const MAX_DRAWN: u64 = 1 << 16;

/// Yields for each row a sample of the vertices that pass, with some of their properties.
pub(super) struct SampledScan<'p> {
    /// The sort, for all other cases.
    sorted: Boxed<'p>,
    out: Slot,
    columns: &'p [ScanColumn],
    source: Vertices<'p>,
    count: &'p Expr,
    /// The input, before the first row is yielded.
    fed: Option<Feed>,
    /// The vertices that storage drew; `None` if the sort runs.
    pieces: Option<Pieces>,
}

impl<'p> SampledScan<'p> {
    pub(super) fn new(
        sorted: Boxed<'p>,
        out: Slot,
        filter: &'p ScanFilter,
        columns: &'p [ScanColumn],
        count: &'p Expr,
    ) -> Self {
        Self { sorted, out, columns, source: Vertices::new(filter), count, fed: None, pieces: None }
    }

    /// Draws the sample of each row; `None` if the sort must run.
    fn draw(&mut self, outer: &Batch, ctx: &Context<'_>) -> Result<Option<Pieces>> {
        let count = compute::count("sample()", self.count, ctx)?;
        let count = match u32::try_from(count) {
            Ok(small) if count <= MAX_DRAWN => small,
            _ => return Ok(None),
        };
        let (mut rows, mut guis) = (vec![], vec![]);
        for row in 0..outer.len {
            if !self.source.begin(outer, row, ctx)? {
                continue;
            }
            if !self.source.unchecked.is_empty() {
                return Ok(None);
            }
            let mut sample = Reservoir::new(Sample { count, seed: ctx.draw() });
            ctx.view.sample_vertices(&self.source.scan, &mut sample, &|| ctx.check())?;
            rows.resize(rows.len() + sample.items.len(), row as u32);
            guis.extend(sample.items);
        }
        let mut batch = outer.gather(&rows);
        batch.set(self.out, Column::Vertices(guis));
        let value = |column: &ScanColumn| {
            let (vertex, key) = (Expr::Slot(self.out), column.key.clone());
            if column.each {
                Expr::Call(Function::PropertyValues, vec![vertex, Expr::Literal(Value::String(key))])
            } else {
                Expr::Property(Box::new(vertex), key)
            }
        };
        let values: Vec<Expr> = self.columns.iter().map(value).collect();
        let values = compute::columns(&values, &batch, ctx)?;
        for (ScanColumn { slot, .. }, column) in self.columns.iter().zip(values) {
            batch.set_shared(*slot, column);
        }
        let order = (0..batch.len as u32).collect();
        Pieces::new(batch, order, ctx).map(Some)
    }
}

impl Operator for SampledScan<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if let Some(feed) = self.fed.take() {
            let alone = (0..feed.batch.len).all(|row| feed.batch.origin_of(row) as usize == row);
            self.pieces = if alone { self.draw(&feed.batch, ctx)? } else { None };
            if self.pieces.is_none() {
                self.sorted.feed(ctx, feed);
            }
        }
        match &mut self.pieces {
            Some(pieces) => Ok(pieces.next(want, ctx)),
            None => self.sorted.next(ctx, want),
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if let Some(mut pieces) = self.pieces.take() {
            pieces.clear(ctx);
        }
        self.fed = Some(feed);
    }
}
