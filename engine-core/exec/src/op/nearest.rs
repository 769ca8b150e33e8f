//! Paths of the least sum of distances between two bound vertices: Dijkstra's search from the first vertex.
//!
//! The search goes on from the vertex that is nearest so far, whose edges the subplan reads, and stops where nothing left can lead
//! to the last vertex as near as what was found. Rows with the same first vertex, which follow each other, go on with one
//! search. Each vertex keeps the edges by which it is reached with the least sum; paths are assembled from these.

use super::apply::Subplan;
use super::shortest::end_of_path;
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use tidegraph_plan::{Op, Slot};
use tidegraph_types::{Edge, Gui, Value};

/// Estimated bytes of a vertex that the search reached: its entries in the table and in the heap.
const BYTES_PER_VERTEX: usize = 2 * size_of::<(Gui, Reached)>() + 2 * size_of::<Next>();

/// Yields a row for each nearest path.
pub(super) struct NearestPath<'p> {
    input: Boxed<'p>,
    slots: Slots,
    steps: Subplan<'p>,
    search: Option<Search>,
    current: Option<(Batch, usize)>,
    /// Paths of the current row that were not yielded yet.
    paths: Vec<Vec<Edge>>,
    charged: usize,
}

/// Parts of the operator.
struct Slots {
    from: Slot,
    to: Slot,
    at: Slot,
    edge: Slot,
    distance: Slot,
    most: Option<f64>,
    edges: Slot,
}

/// A vertex to which the search may go next.
#[derive(Clone, Copy)]
struct Next(f64, Gui);

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Next {}

struct Reached {
    distance: f64,
    is_settled: bool,
    /// The vertices before it on its nearest paths, each with the edge from there.
    before: SmallVec<[(Gui, Edge); 1]>,
}

/// A search from one vertex.
struct Search {
    from: Gui,
    reached: FxHashMap<Gui, Reached>,
    next: BinaryHeap<Reverse<Next>>,
    charged: usize,
}

impl Search {
    fn new(from: Gui) -> Self {
        let start = Reached { distance: 0.0, is_settled: false, before: SmallVec::new() };
        let reached = std::iter::once((from, start)).collect();
        Self { from, reached, next: std::iter::once(Reverse(Next(0.0, from))).collect(), charged: 0 }
    }

    /// Searches until no other path to a vertex can be as near as the nearest one.
    fn reach(
        &mut self,
        to: Gui,
        steps: &mut Subplan<'_>,
        slots: &Slots,
        width: usize,
        ctx: &Context<'_>,
    ) -> Result<()> {
        while let Some(Reverse(Next(distance, _))) = self.next.peek() {
            ctx.check()?;
            if self.reached.get(&to).is_some_and(|found| *distance > found.distance) {
                return Ok(());
            }
            let Some(Reverse(Next(distance, vertex))) = self.next.pop() else { return Ok(()) };
            let Some(reached) = self.reached.get_mut(&vertex) else { continue };
            if std::mem::replace(&mut reached.is_settled, true) {
                continue;
            }
            let mut row = Batch::unbound(1, width);
            row.set(slots.at, Column::Vertices(vec![vertex]));
            steps.start(&row, ctx);
            while let Some(batch) = steps.next(ctx, BATCH_ROWS)? {
                ctx.check()?;
                for row in 0..batch.len {
                    let (edge, length) = step_of(&batch, row, slots)?;
                    let end = if edge.source == vertex { edge.target } else { edge.source };
                    self.relax(end, distance + length, (vertex, edge), slots.most, ctx)?;
                }
            }
        }
        Ok(())
    }

    fn relax(
        &mut self,
        vertex: Gui,
        distance: f64,
        by: (Gui, Edge),
        most: Option<f64>,
        ctx: &Context<'_>,
    ) -> Result<()> {
        if most.is_some_and(|most| distance > most) {
            return Ok(());
        }
        let known = self.reached.get_mut(&vertex);
        let bytes = if known.is_some() { size_of::<(Gui, Edge)>() } else { BYTES_PER_VERTEX };
        match known {
            Some(known) if distance > known.distance => return Ok(()),
            Some(known) if distance == known.distance => {
                ctx.memory.charge(bytes)?;
                known.before.push(by);
            }
            Some(known) => {
                ctx.memory.charge(bytes)?;
                known.distance = distance;
                known.before = SmallVec::from_iter([by]);
                self.next.push(Reverse(Next(distance, vertex)));
            }
            None => {
                ctx.memory.charge(bytes)?;
                let reached = Reached { distance, is_settled: false, before: SmallVec::from_iter([by]) };
                self.reached.insert(vertex, reached);
                self.next.push(Reverse(Next(distance, vertex)));
            }
        }
        self.charged += bytes;
        Ok(())
    }

    /// Returns the nearest paths to a vertex, and the bytes that were charged for them.
    fn paths(&self, to: Gui, ctx: &Context<'_>) -> Result<(Vec<Vec<Edge>>, usize)> {
        let (mut paths, mut charged) = (vec![], 0);
        if !self.reached.contains_key(&to) {
            return Ok((paths, charged));
        }
        // The way back from the last vertex: each vertex with the number of its next edge, and the edges so far.
        let (mut way, mut edges) = (vec![(to, 0)], Vec::<Edge>::new());
        let mut on_way = FxHashSet::from_iter([to]);
        while let Some((vertex, next)) = way.last_mut() {
            ctx.spend(1)?;
            let before = match self.reached.get(vertex) {
                Some(reached) if *vertex != self.from => reached.before.get(*next),
                _ => None,
            };
            if *vertex == self.from {
                let bytes = size_of::<Vec<Edge>>() + size_of_val(edges.as_slice());
                ctx.memory.charge(bytes)?;
                charged += bytes;
                paths.push(edges.iter().rev().copied().collect());
            }
            match before {
                Some((previous, edge)) => {
                    *next += 1;
                    // Edges without a distance may lead in circles.
                    if on_way.insert(*previous) {
                        way.push((*previous, 0));
                        edges.push(*edge);
                    }
                }
                None => {
                    on_way.remove(vertex);
                    way.pop();
                    edges.pop();
                }
            }
        }
        paths.reverse();
        Ok((paths, charged))
    }
}

/// Returns the edge of a row of the subplan, and its distance.
fn step_of(batch: &Batch, row: usize, slots: &Slots) -> Result<(Edge, f64)> {
    let Some(edge) = batch.column(slots.edge).and_then(|edges| edges.edge(row)) else {
        return Err(Error::of_type("a shortest path", "an edge", &batch.value(slots.edge, row)));
    };
    let distance = batch.value(slots.distance, row);
    match distance.as_f64() {
        Some(length) if length >= 0.0 => Ok((edge, length)),
        _ => Err(Error::of_type("the distance of an edge", "a number that is not negative", &distance)),
    }
}

impl<'p> NearestPath<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op, measured: bool) -> Result<Self> {
        let Op::NearestPath { from, to, steps, at, edge, distance, most, edges, .. } = op else {
            return Err(Error::Plan("not a nearest path".to_owned()));
        };
        let slots = Slots {
            from: *from,
            to: *to,
            at: *at,
            edge: *edge,
            distance: *distance,
            most: *most,
            edges: *edges,
        };
        let steps = Subplan::new(steps, measured)?;
        Ok(Self { input, slots, steps, search: None, current: None, paths: vec![], charged: 0 })
    }

    fn drop_search(&mut self, ctx: &Context<'_>) {
        if let Some(search) = self.search.take() {
            ctx.memory.release(search.charged);
        }
    }

    /// Finds the paths of the current row, and goes on to the next.
    fn search(&mut self, ctx: &Context<'_>) -> Result<()> {
        let Some((batch, row)) = &mut self.current else { return Ok(()) };
        let (from, to) =
            (end_of_path(batch, self.slots.from, *row)?, end_of_path(batch, self.slots.to, *row)?);
        *row += 1;
        let width = batch.columns.len();
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        if self.search.as_ref().is_none_or(|search| search.from != from) {
            self.drop_search(ctx);
        }
        let search = self.search.get_or_insert_with(|| Search::new(from));
        search.reach(to, &mut self.steps, &self.slots, width, ctx)?;
        (self.paths, self.charged) = search.paths(to, ctx)?;
        self.paths.reverse();
        Ok(())
    }
}

impl Operator for NearestPath<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            let Some((batch, row)) = &self.current else {
                let Some(batch) = self.input.next(ctx, want)? else {
                    self.drop_search(ctx);
                    return Ok(None);
                };
                self.current = Some((batch, 0));
                continue;
            };
            if !self.paths.is_empty() {
                let count = self.paths.len().min(want.rows).min(BATCH_ROWS);
                let rows = vec![*row as u32 - 1; count];
                let list = |path: Vec<Edge>| Value::list(path.into_iter().map(Value::Edge).collect());
                let lists = (0..count).filter_map(|_| self.paths.pop()).map(list).collect();
                let mut out = batch.gather(&rows);
                out.set(self.slots.edges, Column::Values(lists));
                return Ok(Some(out));
            }
            ctx.memory.release(std::mem::take(&mut self.charged));
            if *row >= batch.len {
                self.current = None;
            } else {
                self.search(ctx)?;
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.current = None;
        self.paths.clear();
        ctx.memory.release(std::mem::take(&mut self.charged));
        self.drop_search(ctx);
        self.input.feed(ctx, feed);
    }
}
