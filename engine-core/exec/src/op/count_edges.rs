//! The number of times that a step of a pattern starts at a vertex, instead of a row for each.
//!
//! Edges that a row must not use, and edges to vertices where the step must not end, are taken off what all edges of the
//! vertex count, or, if the vertices of a batch have few edges, left out of an addition.

use super::counted::{Counted, Kept, READ_ROWS};
use super::expand::Frontier;
use super::pairs::{EdgeFinder, Pair};
use super::walk::{Follow, holds_edge};
use super::{Boxed, Feed, Operator, Want};
use crate::{Batch, Column, Context, Error, Result, value};
use smallvec::SmallVec;
use tidegraph_apl::{Cursor, Expansion};
use tidegraph_plan::{CountStep, Op, Slot};
use tidegraph_types::{Edge, Gui, Value};

/// Mean number of edges of a row up to which the edges are added up.
const FEW_EDGES: u64 = 16;

/// Yields the rows whose vertex is the start of the step, with their number.
pub(super) struct CountEdges<'p> {
    input: Boxed<'p>,
    from: Slot,
    step: Counted<'p>,
    except: &'p [Slot],
    except_ends: &'p [Slot],
    /// Finds the edges to `except_ends`.
    finder: EdgeFinder<'p>,
    /// Reads the edges that are added up.
    follow: Follow<'p>,
    found: Expansion,
    /// The numbers of vertices.
    counts: Kept,
    /// The step in the plan, by which threads know that they count the same.
    origin: usize,
    /// The generation of the view that the numbers show.
    generation: u64,
    out: Slot,
    /// Whether the numbers outlive the input, which is one partition of several.
    keeps: bool,
}

impl<'p> CountEdges<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::CountEdges { from, step, except, except_ends, out, .. } = op else {
            return Err(Error::Plan("not a count of edges".to_owned()));
        };
        let CountStep { direction, labels, loops_once, .. } = step;
        Ok(Self {
            input,
            from: *from,
            step: Counted::new(step),
            except,
            except_ends,
            finder: EdgeFinder::new(Follow::new(*direction, labels, *loops_once), false),
            follow: Follow::new(*direction, labels, *loops_once),
            found: Expansion::default(),
            counts: Kept::default(),
            // The step may have the same address.
            origin: std::ptr::from_ref(op).addr() + 1,
            generation: 0,
            out: *out,
            keeps: false,
        })
    }

    /// Forgets what was read of the graph.
    fn forget(&mut self, ctx: &Context<'_>) {
        self.counts.clear(ctx);
        self.step.clear(ctx);
        self.finder.forget(ctx);
    }

    /// Returns the counts of vertices, with all edges.
    fn counts(&mut self, vertices: &[Gui], ctx: &Context<'_>) -> Result<Vec<u64>> {
        if self.step.is_plain(ctx) {
            return self.step.count(vertices, ctx);
        }
        let Self { step, counts, .. } = self;
        counts.get(vertices, ctx, |vertices| step.count(vertices, ctx))
    }

    /// Returns the counts by adding up the edges of each row; `None` if there are many edges.
    fn added_up(
        &mut self,
        batch: &Batch,
        rows: &[u32],
        vertices: &[Gui],
        ctx: &Context<'_>,
    ) -> Result<Option<Vec<u64>>> {
        if vertices.is_empty() || !self.follow.resolve(vertices, ctx) {
            return Ok(Some(vec![0; vertices.len()]));
        }
        let mut degrees = Vec::with_capacity(vertices.len());
        ctx.view.degrees(self.follow.request(usize::MAX), vertices, &mut degrees)?;
        if degrees.iter().sum::<u64>() > FEW_EDGES * vertices.len() as u64 {
            return Ok(None);
        }
        // Rows that count nothing whatever their edges are.
        let mut counts = vec![1; vertices.len()];
        let pairs = self.excepted_pairs(batch, rows, vertices, &mut counts);
        let is_off: Vec<bool> = counts.iter_mut().map(|count| std::mem::replace(count, 0) == 0).collect();
        let own = |at: u32| {
            let begin = pairs.partition_point(|(of, _)| *of < at);
            pairs[begin..].iter().take_while(move |(of, _)| *of == at).map(|(_, [_, end])| *end)
        };
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            ctx.check()?;
            let mut found = std::mem::take(&mut self.found);
            found.clear();
            cursor = ctx.view.expand(self.follow.request(READ_ROWS), vertices, from, &mut found)?;
            let weights = self.step.weights(&found.neighbour, ctx)?;
            for (edge, weight) in weights.into_iter().enumerate() {
                let (at, end, sid) = (found.row[edge], found.neighbour[edge], found.sid[edge]);
                let is_excepted = is_off[at as usize]
                    || own(at).any(|other| other == end)
                    || holds_edge(batch, self.except, rows[at as usize], sid);
                if !is_excepted {
                    let count: &mut u64 = &mut counts[at as usize];
                    *count = count.saturating_add(weight);
                }
            }
            self.found = found;
        }
        Ok(Some(counts))
    }

    /// Returns the distinct edges that a row must not use and that are among those that are counted at its vertex.
    fn excepted(&self, batch: &Batch, row: usize, vertex: Gui) -> SmallVec<[Edge; 4]> {
        let mut found: SmallVec<[Edge; 4]> = SmallVec::new();
        let mut add = |edge: Edge| {
            if self.step.follow.follows(edge, vertex) && !found.iter().any(|other| other.sid == edge.sid) {
                found.push(edge);
            }
        };
        for column in self.except.iter().filter_map(|slot| batch.column(*slot)) {
            match column.edge(row) {
                Some(edge) => add(edge),
                None => {
                    let value = column.get(row);
                    value.as_slice().into_iter().flatten().filter_map(Value::as_edge).for_each(&mut add);
                }
            }
        }
        found
    }

    /// Takes off what a row must not use. `rows` and `vertices` are those of the counts.
    fn take_off(
        &mut self,
        batch: &Batch,
        rows: &[u32],
        vertices: &[Gui],
        counts: &mut [u64],
        ctx: &Context<'_>,
    ) -> Result<()> {
        // The number of a count, an end, and the number of edges to it.
        let mut off: Vec<(u32, Gui, u64)> = vec![];
        let pairs = self.excepted_pairs(batch, rows, vertices, counts);
        let has_pairs = self.finder.read(&pairs, ctx)?;
        let own = |at: usize| {
            let begin = pairs.partition_point(|(of, _)| (*of as usize) < at);
            pairs[begin..].iter().take_while(move |(of, _)| *of as usize == at).map(|(_, [_, end])| *end)
        };
        if has_pairs {
            off.extend(pairs.iter().map(|(at, pair)| (*at, pair[1], self.finder.count(*pair))));
        }
        if !self.except.is_empty() {
            for (at, (row, vertex)) in rows.iter().zip(vertices).enumerate() {
                for edge in self.excepted(batch, *row as usize, *vertex) {
                    let end = if edge.source == *vertex { edge.target } else { edge.source };
                    // All edges to such an end are taken off already.
                    if !own(at).any(|other| other == end) {
                        off.push((at as u32, end, 1));
                    }
                }
            }
        }
        off.retain(|(.., edges)| *edges > 0);
        let ends: Vec<Gui> = off.iter().map(|(_, end, _)| *end).collect();
        for ((at, _, edges), weight) in off.into_iter().zip(self.step.weights(&ends, ctx)?) {
            let count = &mut counts[at as usize];
            *count = count.saturating_sub(edges.saturating_mul(weight));
        }
        Ok(())
    }

    /// Returns the distinct pairs of a vertex and one where its step must not end, in the order of the counts. A row in
    /// which such a vertex is null counts nothing.
    fn excepted_pairs(&self, batch: &Batch, rows: &[u32], vertices: &[Gui], counts: &mut [u64]) -> Vec<Pair> {
        let mut pairs: Vec<Pair> = vec![];
        if self.except_ends.is_empty() {
            return pairs;
        }
        for (at, (row, vertex)) in rows.iter().zip(vertices).enumerate() {
            for slot in self.except_ends {
                let column = batch.column(*slot);
                match column.and_then(|column| column.vertex(*row as usize)) {
                    Some(end) => {
                        let pair = (at as u32, [*vertex, end]);
                        let mut own = pairs.iter().rev().take_while(|(of, _)| *of == at as u32);
                        if !own.any(|other| *other == pair) {
                            pairs.push(pair);
                        }
                    }
                    None if column.is_none_or(|column| column.is_null(*row as usize)) => counts[at] = 0,
                    // Another value differs from every vertex.
                    None => {}
                }
            }
        }
        pairs
    }

    /// Returns the rows of a batch that count, with their numbers.
    fn counted(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<Option<Batch>> {
        if std::mem::replace(&mut self.generation, ctx.view.generation()) != self.generation {
            self.counts.clear(ctx);
            self.step.clear(ctx);
        }
        let frontier = Frontier::of(&batch, self.from, "following an edge")?;
        let vertices = frontier.vertices();
        let rows: Vec<u32> = (0..vertices.len() as u32).map(|index| frontier.row(index)).collect();
        let takes_off = !self.except.is_empty() || !self.except_ends.is_empty();
        // On other machines the edges cost more than their number.
        let adds_up = takes_off && !(ctx.view.is_far() && self.except_ends.is_empty());
        let added_up = if adds_up { self.added_up(&batch, &rows, vertices, ctx)? } else { None };
        let counts = match added_up {
            Some(counts) => counts,
            None => {
                let mut counts = self.counts(vertices, ctx)?;
                if takes_off {
                    self.take_off(&batch, &rows, vertices, &mut counts, ctx)?;
                }
                counts
            }
        };
        let (rows, counts) = if self.step.is_optional() {
            // A null vertex has no edges.
            let mut all = vec![1; batch.len];
            rows.iter().zip(counts).for_each(|(row, count)| all[*row as usize] = count.max(1));
            ((0..batch.len as u32).collect(), all)
        } else {
            let counted = rows.into_iter().zip(counts).filter(|(_, count)| *count > 0);
            counted.unzip::<u32, u64, Vec<_>, Vec<_>>()
        };
        if rows.is_empty() {
            return Ok(None);
        }
        // A sum or product that does not fit stays at the largest number.
        let long = |count: u64| i64::try_from(count).map(Value::Long).map_err(|_| value::too_many_rows());
        let counts = counts.into_iter().map(long).collect::<Result<_>>()?;
        let mut out = batch.select(&rows);
        out.set(self.out, Column::Values(counts));
        Ok(Some(out))
    }
}

impl Operator for CountEdges<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            let Some(batch) = self.input.next(ctx, want)? else {
                if !self.keeps {
                    self.forget(ctx);
                }
                return Ok(None);
            };
            if let Some(out) = self.counted(batch, ctx)? {
                return Ok(Some(out));
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if std::mem::replace(&mut self.keeps, feed.partition.is_some()) && !self.keeps {
            self.forget(ctx);
            self.counts.unshare(ctx);
            self.step.unshare(ctx);
        }
        if let Some(shared) = &feed.shared {
            self.counts.share(shared, self.origin, ctx);
            self.step.share(shared, ctx);
        }
        self.input.feed(ctx, feed);
    }
}
