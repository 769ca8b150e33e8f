//! One request, from its plan to its rows and its commit request.

use crate::batch::Batch;
use crate::op::{Boxed, Feed, Growth, Want, build};
use crate::spill::Queue;
use crate::value::{ReadAhead, materialize};
use crate::view::{Carried, Counters};
use crate::{Context, Error, Result};
use tidegraph_plan::Plan;
use tidegraph_types::{CommitRequest, Value};

/// The result of a request apart from its rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// What to commit before the rows may be answered; `None` if nothing changed.
    pub commit: Option<CommitRequest>,
    /// Counts of what changed.
    pub counters: Counters,
    /// Number of rows answered.
    pub rows: u64,
    /// Peak memory that was charged to the request, including its rows.
    pub peak_memory_bytes: u64,
}

/// A running request: [`Execution::run`] runs it to its end; a caller that streams calls [`Execution::next_rows`] until
/// there are none, [`Execution::release_rows`] when it has passed rows on, and then [`Execution::finish`].
pub struct Execution<'p, 'a> {
    plan: &'p Plan,
    ctx: Context<'a>,
    root: Boxed<'p>,
    writes: bool,
    growth: Growth,
    /// All batches of a plan that writes: rows show the elements as they are after the last write.
    drained: Option<Queue>,
    ended: bool,
    row_count: u64,
    /// Bytes charged for the rows that were returned and not released.
    rows_bytes: u64,
    keeps_handles: bool,
}

impl<'p, 'a> Execution<'p, 'a> {
    /// Builds the operators of a plan. The context's view must record its reads if the plan writes
    /// (`plan.root.writes()`).
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] if the plan holds an operator that must be lowered before it can run.
    pub fn new(plan: &'p Plan, mut ctx: Context<'a>) -> Result<Self> {
        ctx.ahead = ctx.view.is_far().then(|| ReadAhead::of(plan));
        if let Some(seed) = plan.seed {
            ctx.seed(seed);
        }
        let mut root = build(&plan.root, ctx.profile.is_some())?;
        let batch = Batch::unbound(1, plan.slots as usize);
        root.feed(&ctx, Feed::new(batch, 1));
        let writes = plan.root.writes();
        Ok(Self {
            plan,
            ctx,
            root,
            writes,
            growth: Growth::default(),
            drained: None,
            ended: false,
            row_count: 0,
            rows_bytes: 0,
            keeps_handles: false,
        })
    }

    /// The context that the request runs in.
    #[must_use]
    pub fn context(&self) -> &Context<'a> {
        &self.ctx
    }

    /// Makes rows keep the handles of elements, so that they can be parameters of another request.
    pub fn keep_handles(&mut self) {
        self.keeps_handles = true;
    }

    /// Runs the request to its end; returns all rows and the summary.
    ///
    /// # Errors
    ///
    /// The same as [`Execution::next_rows`] and [`Execution::finish`].
    pub fn run(mut self) -> Result<(Vec<Vec<Value>>, Summary)> {
        Ok((self.rows()?, self.finish()?))
    }

    /// Returns all rows that are left.
    ///
    /// # Errors
    ///
    /// The same as [`Execution::next_rows`].
    pub fn rows(&mut self) -> Result<Vec<Vec<Value>>> {
        let mut rows = vec![];
        while let Some(more) = self.next_rows()? {
            if rows.is_empty() {
                rows = more;
            } else {
                rows.extend(more);
            }
        }
        Ok(rows)
    }

    /// Returns the next rows of the answer, with a value for each column of the plan and data instead of handles;
    /// `None` at the end.
    ///
    /// Rows are charged to the request's memory before they are made, and stay charged until
    /// [`Execution::release_rows`].
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] and [`Error::Rows`] at the request's limits, [`Error::Stopped`] if the caller's interrupt says
    /// so, [`Error::Storage`] if storage does not answer, and the errors of the plan's operators and expressions. The
    /// request cannot continue after an error.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<Value>>>> {
        while let Some(batch) = self.next_batch()? {
            if !self.plan.columns.is_empty() {
                return self.rows_of(&batch).map(Some);
            }
        }
        Ok(None)
    }

    /// Releases the memory of all rows that were returned: the caller has passed them on.
    pub fn release_rows(&mut self) {
        self.ctx.memory.release(std::mem::take(&mut self.rows_bytes) as usize);
    }

    /// Makes the rows of a batch, within the limits.
    fn rows_of(&mut self, batch: &Batch) -> Result<Vec<Vec<Value>>> {
        let columns = &self.plan.columns;
        self.row_count += batch.len as u64;
        let limit = self.ctx.limits.result_rows;
        if self.row_count > limit {
            return Err(Error::Rows { limit });
        }
        let used = self.ctx.memory.used();
        let row_bytes = size_of::<Vec<Value>>() + columns.len() * size_of::<Value>();
        let bound = columns.iter().filter_map(|column| batch.column(column.slot));
        let heap_bytes: usize = bound.map(|values| values.heap_bytes()).sum();
        self.ctx.memory.charge(batch.len * row_bytes + heap_bytes)?;
        let mut rows: Vec<Vec<Value>> = (0..batch.len).map(|_| Vec::with_capacity(columns.len())).collect();
        for column in columns {
            match batch.column(column.slot) {
                Some(values) => rows.iter_mut().enumerate().for_each(|(at, row)| row.push(values.get(at))),
                None => rows.iter_mut().for_each(|row| row.push(Value::Unbound)),
            }
        }
        if !self.keeps_handles {
            materialize(&mut rows, self.plan.references, &self.ctx)?;
        }
        self.rows_bytes += self.ctx.memory.used().saturating_sub(used);
        Ok(rows)
    }

    /// Performs all writes of the plan before its first row is asked for. Does nothing if the plan only reads.
    ///
    /// # Errors
    ///
    /// The same as [`Execution::next_rows`].
    pub fn perform_writes(&mut self) -> Result<()> {
        if self.writes && self.drained.is_none() {
            let mut all = Queue::default();
            while let Some(batch) = self.pull()? {
                if !self.plan.columns.is_empty() {
                    all.push(batch, &self.ctx)?;
                }
            }
            self.drained = Some(all);
        }
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        self.ctx.check()?;
        self.perform_writes()?;
        match &mut self.drained {
            Some(all) => all.pop(&self.ctx),
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

    /// Performs the writes that are left, and returns what the transaction carries to its next request.
    ///
    /// # Errors
    ///
    /// The same as [`Execution::next_rows`].
    pub fn carry(mut self) -> Result<Carried> {
        self.perform_writes()?;
        Ok(self.ctx.view.carry())
    }

    /// Ends a request before its last row, also after an error, and returns what the transaction carries to its next
    /// request; `None` if only a part of the request's writes was performed.
    #[must_use]
    pub fn stop(self) -> Option<Carried> {
        let is_whole = !self.writes || self.drained.is_some();
        is_whole.then(|| self.ctx.view.carry())
    }

    /// Performs the writes that are left, checks what must hold at the end of a request, and returns the summary.
    ///
    /// # Errors
    ///
    /// The same as [`Execution::next_rows`]; [`Error::VertexHasEdges`] if a vertex was deleted that still has edges,
    /// [`Error::NotUnique`] if two vertices would share a value that a constraint declares unique.
    pub fn finish(mut self) -> Result<Summary> {
        if self.writes {
            while self.next_batch()?.is_some() {}
        }
        let (commit, counters) = self.ctx.view.commit_request()?;
        Ok(Summary { commit, counters, rows: self.row_count, peak_memory_bytes: self.ctx.memory.peak() })
    }
}
