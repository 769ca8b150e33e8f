//! The number of matches of a tree of steps from a vertex, without rows.
//!
//! A step counts the edges of a vertex, each as often as the product of what the further steps count at its other end. The
//! weight of an end does not depend on the way there, so it is kept for the next edge that leads to the same vertex. A
//! pattern without cycles then costs as much as its edges, however many matches it has. Source of the idea: Yannakakis,
//! "Algorithms for acyclic database schemes", VLDB 1981.
//!
//! What must never happen: a kept number is used after the request changed the graph.

use super::compute;
use super::labels::LabelTest;
use super::shared_counts::{SharedCounts, SharedNumbers};
use super::walk::Follow;
use crate::batch::BATCH_ROWS;
use crate::{Context, Result};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_plan::{CountStep, Expr, Slot};
use tidegraph_types::Gui;

/// Edges per call to storage.
pub(super) const READ_ROWS: usize = 8 * BATCH_ROWS;
/// The part of the memory that is left that the kept numbers of one step may take.
const KEPT_PART: u64 = 8;
/// Vertices after which numbers are kept no longer for a while if few of them were asked for again...
const TRIED: u64 = 4 * BATCH_ROWS as u64;
/// ...namely fewer than one out of this many.
const WORTH_KEEPING: u64 = 4;
/// The while is this many times as long as the attempt, and the next attempt is four times as long: where there are many
/// vertices, few come twice in a short time.
const PAUSE: u64 = 3;

/// A condition on the ends of a step.
enum Condition<'p> {
    Labels(LabelTest<'p>),
    Other(Slot, &'p Expr),
}

/// A step that is counted.
pub(super) struct Counted<'p> {
    pub follow: Follow<'p>,
    condition: Option<Condition<'p>>,
    then: Vec<Counted<'p>>,
    optional: bool,
    /// The step in the plan, by which threads know that they count the same.
    origin: usize,
    /// The weights of ends.
    weights: Kept,
    found: Expansion,
}

impl<'p> Counted<'p> {
    pub fn new(step: &'p CountStep) -> Self {
        let CountStep { direction, labels, loops_once, condition, then, optional } = step;
        Self {
            follow: Follow::new(*direction, labels, *loops_once).neighbours_only(),
            condition: condition.as_ref().map(|(slot, test)| match LabelTest::of(test) {
                Some(test) => Condition::Labels(test.led_by(*direction, labels)),
                None => Condition::Other(*slot, test),
            }),
            then: then.iter().map(Self::new).collect(),
            optional: *optional,
            origin: std::ptr::from_ref(step).addr(),
            weights: Kept::default(),
            found: Expansion::default(),
        }
    }

    /// Whether each edge counts once, so that storage counts them. Drops a test of labels that every end passes.
    pub fn is_plain(&mut self, ctx: &Context<'_>) -> bool {
        if let Some(Condition::Labels(labels)) = &mut self.condition
            && labels.is_implied(ctx)
        {
            labels.clear(ctx);
            self.condition = None;
        }
        self.condition.is_none() && self.then.is_empty()
    }

    /// Whether a vertex without any counts once.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Shares numbers with other threads, of a request that only reads.
    pub fn share(&mut self, shared: &SharedCounts, ctx: &Context<'_>) {
        self.weights.share(shared, self.origin, ctx);
        self.then.iter_mut().for_each(|step| step.share(shared, ctx));
    }

    /// Ends the sharing.
    pub fn unshare(&mut self, ctx: &Context<'_>) {
        self.weights.unshare(ctx);
        self.then.iter_mut().for_each(|step| step.unshare(ctx));
    }

    /// Forgets all numbers.
    pub fn clear(&mut self, ctx: &Context<'_>) {
        self.weights.clear(ctx);
        if let Some(Condition::Labels(labels)) = &mut self.condition {
            labels.clear(ctx);
        }
        self.then.iter_mut().for_each(|step| step.clear(ctx));
    }

    /// Returns the number for each vertex, before the rule of an optional step.
    pub fn count(&mut self, vertices: &[Gui], ctx: &Context<'_>) -> Result<Vec<u64>> {
        if vertices.is_empty() || !self.follow.resolve(vertices, ctx) {
            return Ok(vec![0; vertices.len()]);
        }
        let mut counts = Vec::with_capacity(vertices.len());
        if self.is_plain(ctx) {
            ctx.view.degrees(self.follow.request(usize::MAX), vertices, &mut counts)?;
            return Ok(counts);
        }
        counts.resize(vertices.len(), 0_u64);
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            ctx.check()?;
            let mut found = std::mem::take(&mut self.found);
            found.clear();
            cursor = ctx.view.expand(self.follow.request(READ_ROWS), vertices, from, &mut found)?;
            let weights = self.weights(&found.neighbour, ctx)?;
            for (row, weight) in found.row.iter().zip(weights) {
                let count = &mut counts[*row as usize];
                *count = count.saturating_add(weight);
            }
            self.found = found;
        }
        Ok(counts)
    }

    /// Returns how often an edge to each of these vertices counts.
    pub fn weights(&mut self, ends: &[Gui], ctx: &Context<'_>) -> Result<Vec<u64>> {
        if self.is_plain(ctx) {
            return Ok(vec![1; ends.len()]);
        }
        let mut kept = std::mem::take(&mut self.weights);
        let weights = kept.get(ends, ctx, |ends| self.weigh(ends, ctx));
        self.weights = kept;
        weights
    }

    fn weigh(&mut self, ends: &[Gui], ctx: &Context<'_>) -> Result<Vec<u64>> {
        let mut weights = match &mut self.condition {
            Some(Condition::Labels(labels)) => labels.passes(ends, ctx)?,
            Some(Condition::Other(slot, test)) => compute::test_vertices(*slot, test, ends, ctx)?,
            None => vec![1; ends.len()],
        };
        let mut passing: Vec<u32> = (0..ends.len() as u32).filter(|row| weights[*row as usize] > 0).collect();
        for step in &mut self.then {
            let vertices: Vec<Gui> = passing.iter().map(|row| ends[*row as usize]).collect();
            let counts = step.count(&vertices, ctx)?;
            for (row, count) in passing.iter().zip(counts) {
                let weight = &mut weights[*row as usize];
                *weight = weight.saturating_mul(if step.optional { count.max(1) } else { count });
            }
            passing.retain(|row| weights[*row as usize] > 0);
        }
        Ok(weights)
    }
}

/// Numbers of vertices, kept as long as many of them are asked for again.
#[derive(Default)]
pub(super) struct Kept {
    of: FxHashMap<Gui, u64>,
    /// Numbers asked for since an attempt to keep them began, and those among them that were not known.
    asked: u64,
    fresh: u64,
    /// Attempts that were given up.
    given_up: u32,
    /// Numbers that will be asked for before the next attempt.
    pause: u64,
    charged: usize,
    /// The same numbers, as far as any thread has computed them.
    shared: Option<Arc<SharedNumbers>>,
    /// Bytes that are charged for those of them that it has added.
    added: usize,
}

impl Kept {
    /// Shares the numbers with other threads that compute the same ones, which have the same origin.
    pub fn share(&mut self, shared: &SharedCounts, origin: usize, ctx: &Context<'_>) {
        if self.shared.is_none() {
            let shared = shared.of(origin);
            self.added += shared.add(self.of.iter().map(|(vertex, number)| (*vertex, *number)), ctx);
            self.shared = Some(shared);
        }
    }

    /// Ends the sharing.
    pub fn unshare(&mut self, ctx: &Context<'_>) {
        self.shared = None;
        ctx.memory.release(std::mem::take(&mut self.added));
    }

    /// Forgets all numbers.
    pub fn clear(&mut self, ctx: &Context<'_>) {
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.of = FxHashMap::default();
    }

    /// Returns the number of each vertex. `compute` is asked for those that are not known, each once.
    pub fn get(
        &mut self,
        vertices: &[Gui],
        ctx: &Context<'_>,
        mut compute: impl FnMut(&[Gui]) -> Result<Vec<u64>>,
    ) -> Result<Vec<u64>> {
        if self.pause > 0 {
            self.pause = self.pause.saturating_sub(vertices.len() as u64);
            return compute(vertices);
        }
        let tried = TRIED << (2 * self.given_up).min(32);
        if self.asked > tried && self.fresh > self.asked - self.asked / WORTH_KEEPING {
            self.clear(ctx);
            self.given_up += 1;
            self.pause = PAUSE * self.asked;
            (self.asked, self.fresh) = (0, 0);
            return compute(vertices);
        }
        let room = ctx.memory.left() + self.charged as u64;
        if self.charged as u64 > room / KEPT_PART {
            self.clear(ctx);
        }
        let mut missing: Vec<Gui> = vertices.iter().copied().filter(|v| !self.of.contains_key(v)).collect();
        missing.sort_unstable();
        missing.dedup();
        self.asked += vertices.len() as u64;
        if !missing.is_empty() {
            let bytes = missing.len() * 2 * size_of::<(Gui, u64)>();
            ctx.memory.charge(bytes)?;
            self.charged += bytes;
            if let Some(shared) = &self.shared {
                shared.move_known(&mut missing, &mut self.of);
            }
        }
        self.fresh += missing.len() as u64;
        if !missing.is_empty() {
            let numbers = compute(&missing)?;
            if let Some(shared) = &self.shared {
                self.added += shared.add(missing.iter().copied().zip(numbers.iter().copied()), ctx);
            }
            self.of.extend(missing.into_iter().zip(numbers));
        }
        Ok(vertices.iter().map(|vertex| self.of.get(vertex).copied().unwrap_or_default()).collect())
    }
}
