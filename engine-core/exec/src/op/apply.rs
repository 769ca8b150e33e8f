//! Subplans for each row: apply and bind.
//!
//! A subplan runs over a whole outer batch at once. The origin of an inner row is the number of its outer row.

use super::aggregate::Counted;
use super::{Boxed, Done, Feed, Growth, Operator, Want, build, same_inputs};
use crate::{Batch, Column, Context, Result};
use std::sync::Arc;
use tidegraph_plan::{ApplyKind, BindKind, Op, Slot};
use tidegraph_types::Value;

/// A subplan, built once and fed one batch after the other.
pub(super) struct Subplan<'p> {
    root: Boxed<'p>,
    /// Whether it writes: then it must run to its end, even if its rows are not needed.
    writes: bool,
    /// Whether it reads what it writes, so that each outer row must see the writes of those before it.
    row_by_row: bool,
}

impl<'p> Subplan<'p> {
    pub(super) fn new(plan: &'p Op, measured: bool) -> Result<Self> {
        let writes = plan.writes();
        Ok(Self { root: build(plan, measured)?, writes, row_by_row: writes && plan.reads_graph() })
    }

    /// Starts again with the rows of a batch as origins.
    pub(super) fn start(&mut self, outer: &Batch, ctx: &Context<'_>) {
        self.root.feed(ctx, Feed::each_row(outer));
    }

    /// Starts again with some rows of a batch; their numbers in the batch are the origins.
    pub(super) fn start_rows(&mut self, outer: &Batch, rows: &[u32], ctx: &Context<'_>) {
        let mut batch = if rows.len() == outer.len { outer.clone() } else { outer.gather(rows) };
        batch.origin = (outer.len > 1).then(|| Arc::new(rows.to_vec()));
        self.root.feed(ctx, Feed::new(batch, outer.len));
    }

    pub(super) fn next(&mut self, ctx: &Context<'_>, rows: usize) -> Result<Option<Batch>> {
        self.root.next(ctx, Want { rows, done: None })
    }

    /// Finds the outer rows that have an inner row. Reads no more than that needs.
    pub(super) fn exists(&mut self, outer: &Batch, ctx: &Context<'_>) -> Result<Done> {
        let mut found = Done::new(outer.len);
        self.first(outer, ctx, &mut found, |_, _, _| {})?;
        Ok(found)
    }

    /// Calls `take` with the first inner row of each outer row.
    fn first(
        &mut self,
        outer: &Batch,
        ctx: &Context<'_>,
        found: &mut Done,
        mut take: impl FnMut(u32, &Batch, usize),
    ) -> Result<()> {
        self.start(outer, ctx);
        let mut growth = Growth::default();
        while self.writes || !found.all() {
            let want = Want { rows: growth.next(), done: (!self.writes).then_some(&*found) };
            let Some(batch) = self.root.next(ctx, want)? else { break };
            ctx.check()?;
            for row in 0..batch.len {
                let origin = batch.origin_of(row);
                if found.mark(origin) {
                    take(origin, &batch, row);
                }
            }
        }
        Ok(())
    }
}

/// Gives inner rows the origins of their outer rows.
pub(super) fn with_outer_origin(mut inner: Batch, outer: &Batch) -> Batch {
    inner.origin = outer
        .origin
        .as_ref()
        .map(|origins| Arc::new((0..inner.len).map(|row| origins[inner.origin_of(row) as usize]).collect()));
    inner
}

/// Runs a subplan for each row and yields rows by the kind of apply.
pub(super) struct Apply<'p> {
    input: Boxed<'p>,
    plan: Subplan<'p>,
    kind: &'p ApplyKind,
    /// Whether the subplan yields its rows in the order of the outer rows.
    in_order: bool,
    current: Option<Current>,
}

/// The outer batch whose inner rows the operator yields now.
struct Current {
    outer: Batch,
    matched: Vec<bool>,
    /// Outer rows below this were yielded, with inner rows or without.
    passed: usize,
    ended: bool,
    /// The next outer row to start, if the subplan runs row by row.
    next_row: usize,
}

impl<'p> Apply<'p> {
    pub(super) fn new(input: Boxed<'p>, plan: &'p Op, kind: &'p ApplyKind, measured: bool) -> Result<Self> {
        Ok(Self {
            input,
            plan: Subplan::new(plan, measured)?,
            kind,
            in_order: is_in_order(plan),
            current: None,
        })
    }

    /// Returns inner rows of the current outer batch.
    fn inner(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let Some(current) = &mut self.current else { return Ok(None) };
        let optional = match self.kind {
            ApplyKind::Optional(slots) => Some(slots.as_slice()),
            _ => None,
        };
        if !current.ended {
            let mut next = self.plan.next(ctx, want.rows)?;
            while next.is_none() && self.plan.row_by_row && current.next_row < current.outer.len {
                ctx.check()?;
                self.plan.start_rows(&current.outer, &[current.next_row as u32], ctx);
                current.next_row += 1;
                next = self.plan.next(ctx, want.rows)?;
            }
            if let Some(inner) = next {
                return Ok(Some(match optional {
                    None => with_outer_origin(inner, &current.outer),
                    Some(slots) => current.with_unmatched(inner, slots, self.in_order),
                }));
            }
            current.ended = true;
            if let Some(slots) = optional {
                let unmatched = current.unmatched_below(current.outer.len);
                if !unmatched.is_empty() {
                    let origin = current.outer.gather(&unmatched);
                    return Ok(Some(nulled(origin, slots)));
                }
            }
        }
        Ok(None)
    }
}

/// Sets the optional slots of outer rows to null.
fn nulled(mut rows: Batch, slots: &[Slot]) -> Batch {
    for slot in slots {
        rows.set(*slot, Column::Constant(Value::Null, rows.len));
    }
    rows
}

impl Current {
    /// Returns the outer rows below `end` that have no inner row and were not yielded yet.
    fn unmatched_below(&mut self, end: usize) -> Vec<u32> {
        let rows = (self.passed..end).filter(|row| !self.matched[*row]).map(|row| row as u32).collect();
        self.passed = self.passed.max(end);
        rows
    }

    /// Adds to inner rows the outer rows without inner rows that belong before and between them.
    fn with_unmatched(&mut self, inner: Batch, slots: &[Slot], in_order: bool) -> Batch {
        for row in 0..inner.len {
            self.matched[inner.origin_of(row) as usize] = true;
        }
        if !in_order {
            return with_outer_origin(inner, &self.outer);
        }
        let last = inner.origin_of(inner.len - 1) as usize;
        let unmatched = self.unmatched_below(last);
        if unmatched.is_empty() {
            return with_outer_origin(inner, &self.outer);
        }
        let mut order: Vec<(u32, u32)> =
            (0..inner.len).map(|row| (inner.origin_of(row), row as u32)).collect();
        order.extend(unmatched.iter().enumerate().map(|(at, row)| (*row, (inner.len + at) as u32)));
        order.sort_by_key(|(origin, _)| *origin);
        let rows: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
        let nulls = nulled(self.outer.gather(&unmatched), slots);
        Batch::concat(vec![with_outer_origin(inner, &self.outer), nulls]).gather(&rows)
    }
}

/// Whether a plan yields its rows in the order of their origins.
fn is_in_order(op: &Op) -> bool {
    match op {
        Op::VarExpand { .. } | Op::QuantifiedPath { .. } | Op::Repeat { .. } | Op::Match { .. } => false,
        Op::Aggregate { .. }
        | Op::Sort { .. }
        | Op::Top { .. }
        | Op::Tail { .. }
        | Op::ChoosePaths { .. } => true,
        Op::Apply { input, plan, kind } => {
            is_in_order(input) && (!matches!(kind, ApplyKind::Cross) || is_in_order(plan))
        }
        other => other.input().is_none_or(is_in_order),
    }
}

impl Operator for Apply<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(batch) = self.inner(ctx, want)? {
                return Ok(Some(batch));
            }
            self.current = None;
            let Some(outer) = self.input.next(ctx, want)? else { return Ok(None) };
            match self.kind {
                ApplyKind::Cross | ApplyKind::Optional(_) => {
                    let mut next_row = 0;
                    if self.plan.row_by_row && outer.len > 0 {
                        self.plan.start_rows(&outer, &[0], ctx);
                        next_row = 1;
                    } else {
                        self.plan.start(&outer, ctx);
                    }
                    let matched = vec![false; outer.len];
                    self.current = Some(Current { outer, matched, passed: 0, ended: false, next_row });
                }
                ApplyKind::Semi | ApplyKind::Anti => {
                    let found = self.plan.exists(&outer, ctx)?;
                    let wanted = matches!(self.kind, ApplyKind::Semi);
                    let rows: Vec<u32> =
                        (0..outer.len as u32).filter(|row| found.is_done(*row) == wanted).collect();
                    if !rows.is_empty() {
                        return Ok(Some(outer.select(&rows)));
                    }
                }
                ApplyKind::Discard => {
                    let parts = if self.plan.row_by_row { outer.len } else { 1 };
                    for row in 0..parts {
                        if self.plan.row_by_row {
                            self.plan.start_rows(&outer, &[row as u32], ctx);
                        } else {
                            self.plan.start(&outer, ctx);
                        }
                        while self.plan.next(ctx, crate::batch::BATCH_ROWS)?.is_some() {
                            ctx.check()?;
                        }
                    }
                    return Ok(Some(outer));
                }
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.input.feed(ctx, feed);
    }
}

/// Runs a subplan for each row and binds its result.
pub(super) struct Bind<'p> {
    input: Boxed<'p>,
    plan: Subplan<'p>,
    /// Set if the subplan is an expand or a scan whose rows are only counted.
    counted: Option<Counted<'p>>,
    out: Slot,
    kind: BindKind,
    /// The operator of the plan.
    op: &'p Op,
    /// The slots that the subplan reads, once they are needed; `None` if it may answer otherwise each time.
    inputs: Option<Option<Vec<Slot>>>,
}

impl<'p> Bind<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op, measured: bool) -> Result<Self> {
        let Op::Bind { plan, out, kind, .. } = op else {
            return Err(crate::Error::Plan("not a bind".to_owned()));
        };
        let counted = if *kind == BindKind::Count { Counted::of(plan, measured)? } else { None };
        let plan = Subplan::new(plan, measured)?;
        Ok(Self { input, plan, counted, out: *out, kind: *kind, op, inputs: None })
    }

    /// Returns the values for all rows. Rows for which the subplan answers the same share one answer.
    fn values(&mut self, outer: &Batch, ctx: &Context<'_>) -> Result<Column> {
        // To count edges or vertices takes no more time than to compare rows.
        if outer.len > 1 && self.counted.is_none() {
            let op = self.op;
            let inputs = self.inputs.get_or_insert_with(|| op.bind_inputs());
            ctx.spend(outer.len)?;
            let groups = inputs.as_ref().and_then(|inputs| same_inputs::groups(outer, inputs));
            if let Some(groups) = groups {
                let column = self.column(&outer.gather(&groups.firsts), ctx)?;
                return Ok(column.gather(&groups.of));
            }
        }
        self.column(outer, ctx)
    }

    fn column(&mut self, outer: &Batch, ctx: &Context<'_>) -> Result<Column> {
        let rows = outer.len;
        Ok(match self.kind {
            BindKind::Exists => {
                let found = self.plan.exists(outer, ctx)?;
                Column::Values((0..rows as u32).map(|row| Value::Bool(found.is_done(row))).collect())
            }
            BindKind::First(slot) => {
                let mut values = vec![Value::Unbound; rows];
                let mut found = Done::new(rows);
                self.plan.first(outer, ctx, &mut found, |origin, batch, row| {
                    values[origin as usize] = batch.value(slot, row);
                })?;
                Column::from_values(values)
            }
            BindKind::Collect(slot) => {
                let mut lists: Vec<Vec<Value>> = vec![vec![]; rows];
                let mut charged = 0;
                self.plan.start(outer, ctx);
                while let Some(batch) = self.plan.next(ctx, crate::batch::BATCH_ROWS)? {
                    ctx.check()?;
                    let bytes = batch.column(slot).map_or(0, |column| column.bytes()) + 40 * batch.len;
                    ctx.memory.charge(bytes)?;
                    charged += bytes;
                    for row in 0..batch.len {
                        lists[batch.origin_of(row) as usize].push(batch.value(slot, row));
                    }
                }
                // From here on the lists belong to a batch; the operator that keeps the batch charges it.
                ctx.memory.release(charged);
                Column::Values(lists.into_iter().map(Value::list).collect())
            }
            BindKind::Count => {
                let mut counts = vec![0_u64; rows];
                if let Some(counted) = &mut self.counted {
                    counted.feed(ctx, Feed::each_row(outer));
                    while counted.next(ctx, |origin, rows| counts[origin as usize] += rows)? {}
                } else {
                    self.plan.start(outer, ctx);
                    while let Some(batch) = self.plan.next(ctx, crate::batch::BATCH_ROWS)? {
                        ctx.check()?;
                        for row in 0..batch.len {
                            counts[batch.origin_of(row) as usize] += 1;
                        }
                    }
                }
                let long = |n: u64| Value::Long(i64::try_from(n).unwrap_or(i64::MAX));
                Column::Values(counts.into_iter().map(long).collect())
            }
        })
    }
}

impl Operator for Bind<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        let Some(mut batch) = self.input.next(ctx, want)? else { return Ok(None) };
        ctx.check()?;
        let column = self.values(&batch, ctx)?;
        batch.set(self.out, column);
        Ok(Some(batch))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}
