//! Aggregation on several threads: each takes the partitions of the first scan one at a time, and makes groups of their
//! rows.
//!
//! A query begins on its own thread. If it takes long, other threads take the partitions that are left, and the groups of
//! each are merged in the order of the partitions: so the answer is the one that a single thread gives. Sums of
//! floats may differ in their last digits, because they are added in another order.
//!
//! What must never happen: an error of one partition hides that of an earlier one; groups of threads that do not fit
//! into memory end a query that fits if its thread does all of it.

use super::Feed;
use super::aggregate::{Aggregate, Group};
use super::shared_counts::SharedCounts;
use crate::context::Helpers;
use crate::{Batch, Context, Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidegraph_plan::Op;

/// The groups of a partition, and whether the account of this query's own thread was charged for them.
struct Part {
    groups: Vec<Group>,
    is_own: bool,
}

impl Part {
    fn bytes(&self) -> usize {
        self.groups.iter().map(bytes_of).sum()
    }
}

fn bytes_of(group: &Group) -> usize {
    group.bytes() + group.accumulators.iter().map(|accumulator| accumulator.charged()).sum::<usize>()
}

/// What threads share while they work.
struct Work<'p> {
    op: &'p Op,
    slots: usize,
    partitions: u16,
    /// What threads have counted.
    counts: Arc<SharedCounts>,
    next: AtomicU16,
    /// Whether a partition failed, so that later ones are not needed.
    stop: AtomicBool,
    done: Vec<Mutex<Option<Result<Part>>>>,
}

impl Work<'_> {
    /// Takes the next partition.
    fn take(&self) -> Option<u16> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|next| *next < self.partitions)
    }

    /// Helps on another thread.
    fn help(&self, ctx: &Context<'_>) {
        // Without the operators, the partitions are left to the query's own thread.
        let Ok(mut worker) = Aggregate::new(self.op, false) else { return };
        worker.slots = self.slots;
        self.run(&mut worker, ctx, false);
    }

    /// Works on partitions until there are none. The operators below the worker keep what they have read of the graph and
    /// counted from one partition to the next.
    fn run(&self, worker: &mut Aggregate<'_>, ctx: &Context<'_>, is_own: bool) {
        worker.is_part = true;
        worker.shared = Some(self.counts.clone());
        while let Some(partition) = self.take() {
            let part = worker.part(partition, ctx);
            if part.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            let done = part.map(|groups| Part { groups, is_own });
            if let Some(place) = self.done.get(usize::from(partition)) {
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            }
        }
        worker.is_part = false;
        worker.shared = None;
    }
}

impl Aggregate<'_> {
    /// Makes the groups of a partition, which stay charged. There are no groups before.
    fn part(&mut self, partition: u16, ctx: &Context<'_>) -> Result<Vec<Group>> {
        self.begin(ctx);
        self.feed_partition(partition, ctx);
        let added = self.add_all(ctx, &mut |_| {});
        if let Err(error) = added {
            self.drop_groups(ctx);
            return Err(error);
        }
        Ok(self.take_groups().groups)
    }

    /// Adds all rows of the input, on several threads if it takes long.
    pub(super) fn in_parts(&mut self, helpers: &dyn Helpers, ctx: &Context<'_>) -> Result<()> {
        let partitions = helpers.partitions();
        let counts = Arc::new(SharedCounts::within(ctx));
        let work = Work {
            op: self.op,
            slots: self.slots,
            partitions,
            counts,
            next: AtomicU16::new(0),
            stop: AtomicBool::new(false),
            done: (0..partitions).map(|_| Mutex::new(None)).collect(),
        };
        // Partitions before this one are in the groups of this operator.
        let mut first_shared = 0;
        let mut result = Ok(());
        helpers.beside(&|ctx| work.help(ctx), &mut |start| {
            let mut started = false;
            while !started && let Some(partition) = work.take() {
                first_shared = partition + 1;
                self.feed_partition(partition, ctx);
                result = self.add_all(ctx, &mut |all_in_memory| {
                    if !started && all_in_memory && helpers.is_long() {
                        start();
                        started = true;
                    }
                });
                if result.is_err() {
                    work.stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
            if self.overflow.is_some() || !self.waiting.is_empty() {
                work.stop.store(true, Ordering::Relaxed);
                return;
            }
            let first = self.take_groups();
            work.run(self, ctx, true);
            self.put_groups(first);
        });
        result?;
        // The operators below need no longer keep anything.
        self.feed_input(Feed::new(Batch::unbound(0, self.slots), 1), ctx);
        let all = work.done.into_iter().skip(usize::from(first_shared));
        let all: Vec<Option<Result<Part>>> =
            all.map(|done| done.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
        let own: usize = all.iter().flatten().flatten().filter(|part| part.is_own).map(Part::bytes).sum();
        let mut parts = vec![];
        for done in all {
            match done {
                Some(Ok(part)) => parts.push(part),
                Some(Err(Error::Memory { .. } | Error::AllMemory(_))) | None => return self.alone(own, ctx),
                Some(Err(error)) => return Err(error),
            }
        }
        if parts.is_empty() {
            // This thread has done all of it.
            return Ok(());
        }
        let more: usize = parts.iter().filter(|part| !part.is_own).map(Part::bytes).sum();
        let is_much = ctx.memory.used() + more as u64 > ctx.limits.memory_bytes / 8 * 5;
        // Rows or values of the first partitions may have gone to files after other threads began.
        let in_files = self.overflow.is_some() || !self.waiting.is_empty();
        if in_files || is_much || ctx.memory.charge(more).is_err() {
            drop(parts);
            return self.alone(own, ctx);
        }
        parts.into_iter().flat_map(|part| part.groups).try_for_each(|group| self.merge(group, ctx))
    }

    /// Begins again, on this thread only: there, rows beyond its memory go to files. `own`: bytes that are charged for parts.
    fn alone(&mut self, own: usize, ctx: &Context<'_>) -> Result<()> {
        ctx.memory.release(own);
        self.start_over(ctx);
        self.add_all(ctx, &mut |_| {})
    }

    /// Adds a group that is charged already.
    fn merge(&mut self, group: Group, ctx: &Context<'_>) -> Result<()> {
        let place = match self.keys.is_empty() {
            true => Some(0),
            false => self.index.get(&(0, group.keys.clone())).copied(),
        };
        let bytes = group.bytes();
        match place.and_then(|place| self.groups.get_mut(place)) {
            Some(known) => {
                ctx.memory.release(bytes);
                for (accumulator, later) in known.accumulators.iter_mut().zip(group.accumulators) {
                    accumulator.merge(later, ctx)?;
                }
            }
            None => {
                self.charged += bytes;
                self.index.insert((0, group.keys.clone()), self.groups.len());
                self.groups.push(group);
            }
        }
        Ok(())
    }
}
