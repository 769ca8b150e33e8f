//! Operators on single rows: filter, let, keep, unwind.

use super::labels::{LabelTest, edges_to};
use super::{Boxed, Feed, Growth, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::value::Evaluator;
use crate::{Batch, Column, Context, Result};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::Arc;
use tidegraph_plan::{Expr, Function, Op, Slot};
use tidegraph_types::Value;

/// Yields the rows for which a predicate is true.
pub(super) struct Filter<'p> {
    input: Boxed<'p>,
    predicate: &'p Expr,
    /// The tests of labels in the predicate, and what else is in it. Labels of a vertex whose properties the predicate
    /// reads, too, are read with these.
    labels: Vec<LabelTest<'p>>,
    rest: Option<Expr>,
    growth: Growth,
    /// Whether the answers outlive the input, which is one partition of several.
    keeps: bool,
}

impl<'p> Filter<'p> {
    /// Makes the operator of `Op::Filter`; `below` is the input's plan.
    pub(super) fn new(input: Boxed<'p>, below: &'p Op, predicate: &'p Expr) -> Self {
        let all = match predicate {
            Expr::And(all) => &all[..],
            one => std::slice::from_ref(one),
        };
        let (mut labels, mut rest) = (vec![], vec![]);
        for test in all {
            match LabelTest::of(test) {
                Some(test) if !all.iter().any(|other| reads_property(other, test.slot)) => {
                    labels.push(match edges_to(below, test.slot) {
                        Some((direction, edges)) => test.led_by(direction, edges),
                        None => test,
                    });
                }
                _ => rest.push(test.clone()),
            }
        }
        let rest = rest.into_iter().reduce(Expr::and);
        Self { input, predicate, labels, rest, growth: Growth::default(), keeps: false }
    }

    /// Returns the rows of a batch that pass, if there are any.
    fn passing(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<Option<Batch>> {
        let (batch, rest) = match self.labelled(batch, ctx)? {
            None => return Ok(None),
            Some((batch, None)) => return Ok(Some(batch)),
            Some((batch, Some(rest))) => (batch, rest),
        };
        let kept = compute::filter(rest, &batch, ctx)?;
        Ok((!kept.is_empty()).then(|| batch.select(&kept)))
    }

    /// Returns the rows of a batch that pass, if there are any, with the values of an expression, which reads elements that
    /// the predicate reads, too.
    fn passing_with(
        &mut self,
        batch: Batch,
        expr: &Expr,
        ctx: &Context<'_>,
    ) -> Result<Option<(Batch, Arc<Column>)>> {
        let (batch, rest) = match self.labelled(batch, ctx)? {
            None => return Ok(None),
            Some((batch, None)) => {
                let column = compute::column(expr, &batch, ctx)?;
                return Ok(Some((batch, column)));
            }
            Some((batch, Some(rest))) => (batch, rest),
        };
        let prepared = Evaluator::prepare(&[rest, expr], &batch, ctx)?;
        let kept = prepared.eval_filter(0)?;
        if kept.is_empty() {
            return Ok(None);
        }
        let column = prepared.eval_rows(1, &kept)?;
        drop(prepared);
        Ok(Some((batch.select(&kept), column)))
    }

    /// Returns the rows of a batch that pass the tests of labels which are made apart, if there are any, and what is left of
    /// the predicate.
    fn labelled(&mut self, mut batch: Batch, ctx: &Context<'_>) -> Result<Option<(Batch, Option<&Expr>)>> {
        let has_vertices = |label: &LabelTest<'_>| {
            batch.column(label.slot).is_some_and(|column| matches!(**column, Column::Vertices(_)))
        };
        if self.labels.is_empty() || !self.labels.iter().all(has_vertices) {
            return Ok(Some((batch, Some(self.predicate))));
        }
        for label in &mut self.labels {
            if label.is_implied(ctx) {
                continue;
            }
            let Some(column) = batch.column(label.slot).cloned() else { continue };
            let Column::Vertices(vertices) = &*column else { continue };
            let passes = label.passes(vertices, ctx)?;
            let kept: Vec<u32> = (0..batch.len as u32).filter(|row| passes[*row as usize] > 0).collect();
            if kept.is_empty() {
                return Ok(None);
            }
            if kept.len() < batch.len {
                batch = batch.select(&kept);
            }
        }
        Ok(Some((batch, self.rest.as_ref())))
    }

    /// Returns the next batch of the input; `None` at the end.
    fn pull(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        // It is unknown how many rows pass, so a caller that wants few rows must not cause small batches below.
        let rows = want.rows.max(self.growth.next());
        let batch = self.input.next(ctx, want.rows(rows))?;
        match batch {
            Some(_) => ctx.check()?,
            None if !self.keeps => self.labels.iter_mut().for_each(|label| label.clear(ctx)),
            None => {}
        }
        Ok(batch)
    }

    /// Returns the next rows that pass, with the values of an expression, which reads elements that the predicate reads, too.
    pub(super) fn next_with(
        &mut self,
        ctx: &Context<'_>,
        want: Want<'_>,
        expr: &Expr,
    ) -> Result<Option<(Batch, Arc<Column>)>> {
        while let Some(batch) = self.pull(ctx, want)? {
            if let Some(passing) = self.passing_with(batch, expr, ctx)? {
                return Ok(Some(passing));
            }
        }
        Ok(None)
    }
}

/// Whether an expression reads a property of the vertex in a slot.
fn reads_property(expr: &Expr, slot: Slot) -> bool {
    match expr {
        Expr::Property(base, _) if **base == Expr::Slot(slot) => true,
        other => other.children().into_iter().any(|child| reads_property(child, slot)),
    }
}

impl Operator for Filter<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        while let Some(batch) = self.pull(ctx, want)? {
            if let Some(passing) = self.passing(batch, ctx)? {
                return Ok(Some(passing));
            }
        }
        Ok(None)
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.growth = Growth::default();
        if std::mem::replace(&mut self.keeps, feed.partition.is_some()) && !self.keeps {
            self.labels.iter_mut().for_each(|label| label.clear(ctx));
        }
        self.input.feed(ctx, feed);
    }
}

/// Bindings of slots one after the other.
pub(super) struct Runs<'p> {
    bindings: &'p [(Slot, Expr)],
    /// Runs of bindings that do not use each other; a run is computed at once.
    runs: Vec<Range<usize>>,
}

impl<'p> Runs<'p> {
    pub(super) fn of(bindings: &'p [(Slot, Expr)]) -> Self {
        let mut runs = vec![];
        let mut start = 0;
        let mut run: FxHashSet<Slot> = FxHashSet::default();
        for (index, (slot, expr)) in bindings.iter().enumerate() {
            let mut depends = run.contains(slot);
            expr.for_each_slot(&mut |used| depends |= run.contains(&used));
            if depends {
                runs.push(start..index);
                start = index;
                run.clear();
            }
            run.insert(*slot);
        }
        runs.push(start..bindings.len());
        Self { bindings, runs }
    }

    /// Binds the slots of a batch, except that of the binding with the number `known`, which is bound already.
    pub(super) fn bind(&self, batch: &mut Batch, known: Option<usize>, ctx: &Context<'_>) -> Result<()> {
        for run in &self.runs {
            let bindings = || run.clone().filter(|at| known != Some(*at)).map(|at| &self.bindings[at]);
            let columns = compute::columns(bindings().map(|(_, expr)| expr), batch, ctx)?;
            for ((slot, _), column) in bindings().zip(columns) {
                batch.set_shared(*slot, column);
            }
        }
        Ok(())
    }
}

/// Binds slots one after the other.
pub(super) struct Let<'p> {
    input: Boxed<'p>,
    runs: Runs<'p>,
}

impl<'p> Let<'p> {
    pub(super) fn new(input: Boxed<'p>, bindings: &'p [(Slot, Expr)]) -> Self {
        Self { input, runs: Runs::of(bindings) }
    }
}

impl Operator for Let<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let Some(mut batch) = self.input.next(ctx, want)? else { return Ok(None) };
        self.runs.bind(&mut batch, None, ctx)?;
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

/// Unbinds all slots except some.
pub(super) struct Keep<'p> {
    input: Boxed<'p>,
    slots: FxHashSet<Slot>,
}

impl<'p> Keep<'p> {
    pub(super) fn new(input: Boxed<'p>, slots: &'p [Slot]) -> Self {
        Self { input, slots: slots.iter().copied().collect() }
    }
}

impl Operator for Keep<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let Some(mut batch) = self.input.next(ctx, want)? else { return Ok(None) };
        for (index, column) in batch.columns.iter_mut().enumerate() {
            if column.is_some() && !self.slots.contains(&Slot(index as u32)) {
                *column = None;
            }
        }
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

/// Yields a row for each item of a list.
pub(super) struct Unwind<'p> {
    input: Boxed<'p>,
    list: &'p Expr,
    out: Slot,
    current: Option<Unwinding>,
}

/// A batch whose lists are partly unwound.
struct Unwinding {
    batch: Batch,
    lists: Lists,
    /// Bytes charged for computed lists.
    charged: usize,
    row: usize,
    item: usize,
}

/// The lists of a batch.
enum Lists {
    /// Computed lists.
    Computed(Arc<Column>),
    /// The `range(…)` of each row, which is never made as a list: a batch of long ranges would not fit into memory.
    Ranges(Vec<Steps>),
}

/// The numbers of a range.
#[derive(Clone, Copy)]
struct Steps {
    start: i64,
    step: i64,
    len: usize,
}

impl Steps {
    /// Reads the arguments of `range`; `None` if `range` refuses them, and then the caller runs it for its error.
    fn of(args: &[Value]) -> Option<Self> {
        if args.iter().any(Value::is_null) {
            return Some(Self { start: 0, step: 1, len: 0 });
        }
        let (start, end) = (args.first()?.as_i64()?, args.get(1)?.as_i64()?);
        let step = args.get(2).map_or(Some(1), Value::as_i64)?;
        let steps = i128::from(end).checked_sub(i128::from(start))?.checked_div(i128::from(step))?;
        let is_empty = if step > 0 { end < start } else { end > start };
        let len = if is_empty { 0 } else { usize::try_from(steps + 1).ok()? };
        Some(Self { start, step, len })
    }
}

impl Lists {
    fn of(list: &Expr, batch: &Batch, ctx: &Context<'_>) -> Result<Self> {
        if let Expr::Call(Function::Range, args) = list {
            let columns =
                args.iter().map(|arg| compute::column(arg, batch, ctx)).collect::<Result<Vec<_>>>()?;
            let steps = |row| Steps::of(&columns.iter().map(|column| column.get(row)).collect::<Vec<_>>());
            if let Some(ranges) = (0..batch.len).map(steps).collect() {
                return Ok(Self::Ranges(ranges));
            }
        }
        Ok(Self::Computed(compute::column(list, batch, ctx)?))
    }
}

impl<'p> Unwind<'p> {
    pub(super) fn new(input: Boxed<'p>, list: &'p Expr, out: Slot) -> Self {
        Self { input, list, out, current: None }
    }

    /// Drops the current batch.
    fn end(&mut self, ctx: &Context<'_>) {
        if let Some(current) = self.current.take() {
            ctx.memory.release(current.charged);
        }
    }
}

impl Unwinding {
    /// Returns up to `limit` rows and items, and advances.
    fn take(&mut self, limit: usize, want: Want<'_>) -> (Vec<u32>, Vec<Value>) {
        let (mut rows, mut values) = (vec![], vec![]);
        while self.row < self.batch.len && rows.len() < limit {
            let wanted = want.wants(self.batch.origin_of(self.row));
            let lists = match &self.lists {
                Lists::Computed(lists) => lists,
                Lists::Ranges(ranges) => {
                    let Steps { start, step, len } = ranges[self.row];
                    let end = if wanted { len.min(self.item + limit - rows.len()) } else { len };
                    if wanted {
                        // No overflow: both ends of the range are 64-bit numbers.
                        let number =
                            |item: usize| Value::Long(start.wrapping_add((item as i64).wrapping_mul(step)));
                        values.extend((self.item..end).map(number));
                        rows.resize(values.len(), self.row as u32);
                    }
                    self.item = end;
                    if end < len {
                        return (rows, values);
                    }
                    self.row += 1;
                    self.item = 0;
                    continue;
                }
            };
            let value = lists.get(self.row);
            match value.as_slice() {
                Some(items) if wanted => {
                    let end = items.len().min(self.item + limit - rows.len());
                    values.extend_from_slice(&items[self.item..end]);
                    rows.resize(values.len(), self.row as u32);
                    self.item = end;
                    if end < items.len() {
                        return (rows, values);
                    }
                }
                None if wanted && !value.is_null() => {
                    values.push(value);
                    rows.push(self.row as u32);
                }
                _ => {}
            }
            self.row += 1;
            self.item = 0;
        }
        (rows, values)
    }
}

impl Operator for Unwind<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(current) = &mut self.current {
                let (rows, values) = current.take(want.rows.min(BATCH_ROWS), want);
                if !rows.is_empty() {
                    let mut batch = current.batch.gather(&rows);
                    batch.set(self.out, Column::from_values(values));
                    return Ok(Some(batch));
                }
                self.end(ctx);
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            let lists = Lists::of(self.list, &batch, ctx)?;
            let charged = match &lists {
                Lists::Computed(lists) if !matches!(self.list, Expr::Slot(_)) => lists.heap_bytes(),
                _ => 0,
            };
            ctx.memory.charge(charged)?;
            self.current = Some(Unwinding { batch, lists, charged, row: 0, item: 0 });
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.end(ctx);
        self.input.feed(ctx, feed);
    }
}
