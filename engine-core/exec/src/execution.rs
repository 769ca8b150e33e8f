//! One request from plan to outcome.

use crate::batch::Batch;
use crate::op::{Boxed, Feed, Growth, Want, build};
use crate::value::{ReadAhead, materialize};
use crate::view::Counters;
use crate::{Context, Error, Result};
use std::collections::VecDeque;
use tidegraph_plan::Plan;
use tidegraph_types::{CommitRequest, Value};

/// What a request comes to besides its rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// What is to be committed; `None`: nothing changed. Rows must not be answered before it is.
    pub commit: Option<CommitRequest>,
    /// What changed.
    pub counters: Counters,
    /// Rows answered.
    pub rows: u64,
    /// Most memory in use at one time.
    pub peak_memory_bytes: u64,
}

/// A running request. Rows are pulled until there are none; then `finish` gives the outcome.
pub struct Execution<'p, 'a> {
    plan: &'p Plan,
    ctx: Context<'a>,
    root: Boxed<'p>,
    writes: bool,
    growth: Growth,
    /// All batches of a plan that writes: elements are answered as they are when all is written.
    drained: Option<VecDeque<Batch>>,
    ended: bool,
    rows: u64,
}

impl<'p, 'a> Execution<'p, 'a> {
    /// Builds the operators. The context's view must be recording if the plan writes (`plan.root.writes()`).
    pub fn new(plan: &'p Plan, mut ctx: Context<'a>) -> Result<Self> {
        ctx.ahead = ctx.view.is_far().then(|| ReadAhead::of(plan));
        let mut root = build(&plan.root)?;
        let batch = Batch::unbound(1, plan.slots as usize);
        root.feed(&ctx, Feed { batch, origins: 1, fresh: true });
        let writes = plan.root.writes();
        Ok(Self { plan, ctx, root, writes, growth: Growth::default(), drained: None, ended: false, rows: 0 })
    }

    /// The context that the request runs in.
    #[must_use]
    pub fn context(&self) -> &Context<'a> {
        &self.ctx
    }

    /// The next rows of the answer, in the order of the plan's columns, handles replaced by data; `None` at the end.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<Value>>>> {
        while let Some(batch) = self.next_batch()? {
            if self.plan.columns.is_empty() {
                continue;
            }
            self.rows += batch.len as u64;
            if self.rows > self.ctx.limits.result_rows {
                return Err(Error::Limit { what: "result rows", allowed: self.ctx.limits.result_rows });
            }
            let mut rows: Vec<Vec<Value>> =
                (0..batch.len).map(|_| Vec::with_capacity(self.plan.columns.len())).collect();
            for column in &self.plan.columns {
                match batch.column(column.slot) {
                    Some(values) => {
                        rows.iter_mut().enumerate().for_each(|(at, row)| row.push(values.get(at)));
                    }
                    None => rows.iter_mut().for_each(|row| row.push(Value::Unbound)),
                }
            }
            materialize(&mut rows, &self.ctx)?;
            return Ok(Some(rows));
        }
        Ok(None)
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        self.ctx.check()?;
        if self.writes && self.drained.is_none() {
            let mut all = VecDeque::new();
            while let Some(batch) = self.pull()? {
                if !self.plan.columns.is_empty() {
                    self.ctx.memory.charge(batch.bytes())?;
                    all.push_back(batch);
                }
            }
            self.drained = Some(all);
        }
        match &mut self.drained {
            Some(all) => Ok(all.pop_front()),
            None => self.pull(),
        }
    }

    fn pull(&mut self) -> Result<Option<Batch>> {
        if self.ended {
            return Ok(None);
        }
        let want = Want { rows: self.growth.next(), done: None };
        let batch = self.root.next(&self.ctx, want)?;
        self.ended = batch.is_none();
        Ok(batch)
    }

    /// Runs what is left for its effects, checks what must hold at the end, and gives the outcome.
    pub fn finish(mut self) -> Result<Outcome> {
        if self.writes {
            while self.next_batch()?.is_some() {}
        }
        let (commit, counters) = self.ctx.view.commit_request()?;
        Ok(Outcome { commit, counters, rows: self.rows, peak_memory_bytes: self.ctx.memory.peak() })
    }

    /// All rows and the outcome. The rows are charged to the request's memory.
    pub fn run_to_end(mut self) -> Result<(Vec<Vec<Value>>, Outcome)> {
        let mut all = vec![];
        while let Some(rows) = self.next_rows()? {
            let bytes: usize =
                rows.iter().flatten().map(|value| size_of::<Value>() + value.heap_bytes()).sum();
            self.ctx.memory.charge(bytes + rows.len() * size_of::<Vec<Value>>())?;
            all.extend(rows);
        }
        Ok((all, self.finish()?))
    }
}
