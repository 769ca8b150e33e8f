//! The shortest paths that match a pattern of several parts, found by a search.
//!
//! A *state* is a vertex with a place in the pattern: the part, and the number of its repetitions as far as it matters. The
//! search goes from state to state breadth first, by numbers of edges, and reads the edges of each state once. It keeps
//! how states are linked ([`space`]), and follows the links back from each end to the start to find the paths
//! ([`trace`]). So it costs what the states and links cost, however many paths there are.
//!
//! What leads to a state first leads to the shortest walks, but such a walk may use an edge twice, at two places of the
//! pattern, where the pattern does not allow that. And a selector may want more paths than the shortest. Then the search
//! goes on with all lengths of walks to each state ([`lengths`]), and follows back those of each length. If the paths that
//! there are at all are few, it enumerates them instead ([`enumerate`]).
//!
//! Several rows of the input are searched together, so that one request reads the edges of the states of all. Memory is
//! charged for states, links, and the paths that wait to be yielded. Each loop looks at the time limit.

mod enumerate;
mod lengths;
mod places;
mod space;
mod trace;

use super::compute;
use super::expand::Frontier;
use super::{Boxed, Feed, Operator, Want, build};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use lengths::Lengths;
use places::Places;
use space::Space;
use std::sync::Arc;
use tidegraph_plan::{Op, PathPart, Slot};
use tidegraph_types::{Gui, Value};
use trace::{By, Found, Wanted};

/// States that a subplan gets at once.
const FRONTIER: usize = 64 * BATCH_ROWS;
/// Values in the lists of one batch, unless a single row has more.
const BATCH_VALUES: usize = 64 * BATCH_ROWS;
/// A search of several rows with more states starts again with fewer rows.
const MOST_STATES: usize = 1 << 18;

/// Yields a row for each chosen path.
pub(super) struct PathSearch<'p> {
    input: Boxed<'p>,
    search: Search<'p>,
    /// The rows of the input, and the first of them that was not searched yet.
    batch: Option<(Batch, usize)>,
    /// Rows to search together next.
    rows: usize,
    /// How many of the found paths were yielded.
    yielded: usize,
}

impl<'p> PathSearch<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op, measured: bool) -> Result<Self> {
        let Op::PathSearch { from, to, into, parts, reversed, repeats, count, groups, uses, .. } = op else {
            return Err(Error::Plan("not a search of paths".to_owned()));
        };
        if parts.is_empty() || parts.iter().any(|part| part.steps.is_empty()) {
            return Err(Error::Plan("a part of a path without an edge".to_owned()));
        }
        let search = Search {
            parts,
            from: *from,
            to: *to,
            into: *into,
            reversed: *reversed,
            trail: !*repeats,
            count: *count,
            groups: *groups,
            uses: uses.as_deref(),
            places: Places::of(parts),
            bodies: parts.iter().map(|_| None).collect(),
            measured,
            space: Space::default(),
            ends: vec![],
            found: vec![],
        };
        Ok(Self { input, search, batch: None, rows: 1, yielded: 0 })
    }

    /// Searches the next rows of the batch. Fewer, if they have too many states.
    fn search(&mut self, ctx: &Context<'_>) -> Result<()> {
        let Some((batch, next)) = &mut self.batch else { return Ok(()) };
        self.yielded = 0;
        loop {
            let end = batch.len.min(*next + self.rows);
            self.search.clear(ctx);
            if self.search.run(batch, *next as u32..end as u32, ctx)? {
                *next = end;
                break;
            }
            self.rows = (self.rows / 8).max(1);
        }
        if self.search.space.states.len() < MOST_STATES / 4 {
            self.rows = (2 * self.rows).min(BATCH_ROWS);
        }
        Ok(())
    }
}

impl Operator for PathSearch<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            let Some((batch, next)) = &self.batch else {
                let Some(batch) = self.input.next(ctx, want)? else {
                    self.search.clear(ctx);
                    return Ok(None);
                };
                self.batch = Some((batch, 0));
                continue;
            };
            if self.yielded < self.search.found.len() {
                let (rows, taken) = self.search.rows(batch, self.yielded, want.rows, ctx)?;
                self.yielded += taken;
                return Ok(Some(rows));
            }
            if *next >= batch.len {
                self.batch = None;
            } else {
                self.search(ctx)?;
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.search.clear(ctx);
        self.yielded = 0;
        self.batch = None;
        self.input.feed(ctx, feed);
    }
}

/// An end that paths of one row lead to.
struct End {
    state: u32,
    row: u32,
    /// Paths, or lengths, chosen so far.
    taken: u32,
    /// Paths of all lengths below this one were looked for.
    traced: u32,
    open: bool,
}

/// The search of some rows.
struct Search<'p> {
    parts: &'p [PathPart],
    from: Slot,
    to: Slot,
    into: bool,
    reversed: bool,
    /// Whether no edge may occur twice.
    trail: bool,
    count: u32,
    groups: bool,
    uses: Option<&'p [Slot]>,
    places: Places,
    bodies: Vec<Option<Boxed<'p>>>,
    measured: bool,
    space: Space,
    ends: Vec<End>,
    found: Vec<Found>,
}

impl<'p> Search<'p> {
    /// Forgets everything, and lets the subplans release what they hold.
    fn clear(&mut self, ctx: &Context<'_>) {
        self.space.clear(ctx);
        self.ends.clear();
        self.found = vec![];
        for body in self.bodies.iter_mut().flatten() {
            body.feed(ctx, Feed::new(Batch::default(), 0));
        }
    }

    /// Finds the chosen paths of these rows. Returns `false` if several rows have too many states.
    fn run(&mut self, batch: &Batch, rows: std::ops::Range<u32>, ctx: &Context<'_>) -> Result<bool> {
        let several = rows.len() > 1;
        self.start(batch, rows, ctx)?;
        let (mut level, mut lengths): (u32, Option<Lengths>) = (0, None);
        loop {
            ctx.check()?;
            let known = self.ends.len();
            let fresh = self.settle(batch, level, ctx)?;
            if let Some(lengths) = &mut lengths {
                lengths.collect(&mut self.space, level, ctx)?;
                self.trace_lengths(lengths, level, ctx)?;
            } else {
                for at in known..self.ends.len() {
                    self.trace_end(at, level, By::First, ctx)?;
                }
            }
            let all_full = self.into && self.space.open_rows == 0;
            if all_full {
                break;
            }
            // A bound end that wants more paths: what else is as near may be enough, the rest of the graph is not needed.
            if lengths.is_none() && self.into && self.ends.iter().any(|end| end.open) {
                lengths = Some(Lengths::up_to(&mut self.space, level, ctx)?);
            }
            self.expand(batch, &fresh, level, ctx)?;
            if let Some(lengths) = &mut lengths {
                lengths.propagate(&self.space, level, ctx)?;
            }
            if several && self.space.states.len() > MOST_STATES {
                return Ok(false);
            }
            let waiting = lengths.as_ref().and_then(Lengths::next);
            let Some(next) = self.space.next_level() else {
                self.finish(lengths, ctx)?;
                break;
            };
            level = waiting.map_or(next, |other| other.min(next));
        }
        self.found.sort_by_key(|found| (found.row, found.length));
        Ok(true)
    }

    /// Adds the vertices where the search of each row starts.
    fn start(&mut self, batch: &Batch, rows: std::ops::Range<u32>, ctx: &Context<'_>) -> Result<()> {
        let all = Frontier::of(batch, self.from, "following a path")?;
        for (at, vertex) in all.vertices().iter().enumerate() {
            let row = all.row(at as u32);
            if rows.contains(&row) {
                self.space.add_start(row, *vertex, ctx)?;
            }
        }
        Ok(())
    }

    /// Returns the states that walks of this length reach first, after steps to the next parts.
    fn settle(&mut self, batch: &Batch, level: u32, ctx: &Context<'_>) -> Result<Vec<u32>> {
        let mut fresh = self.space.take_level(level);
        for part in 0..self.parts.len() {
            let leaving: Vec<u32> = fresh
                .iter()
                .copied()
                .filter(|state| self.places.leaves(self.space.states[*state as usize].place, part))
                .collect();
            for piece in leaving.chunks(FRONTIER) {
                ctx.check()?;
                for state in self.passing(batch, part, piece, ctx)? {
                    let (row, vertex) = self.space.of(state);
                    let place = self.places.entry(part + 1);
                    let (next, is_shorter) =
                        self.space.link(state, (row, place, vertex), level, None, ctx)?;
                    if is_shorter {
                        fresh.push(next);
                    }
                }
            }
        }
        let last = self.places.last();
        for state in &fresh {
            let number = self.ends.len() as u32;
            let reached = &mut self.space.states[*state as usize];
            if reached.place == last {
                reached.end = number;
                self.ends.push(End { state: *state, row: reached.row, taken: 0, traced: 0, open: true });
            }
        }
        Ok(fresh)
    }

    /// Returns those of the states at the end of a part whose vertices are what they have to be there.
    fn passing(&self, batch: &Batch, part: usize, states: &[u32], ctx: &Context<'_>) -> Result<Vec<u32>> {
        let mut states = states.to_vec();
        if self.into && part + 1 == self.parts.len() {
            let ends = batch.column(self.to);
            states.retain(|state| {
                let (row, vertex) = self.space.of(*state);
                ends.and_then(|column| column.vertex(row as usize)) == Some(vertex)
            });
        }
        let Some(check) = &self.parts[part].check else { return Ok(states) };
        if states.is_empty() {
            return Ok(states);
        }
        let rows = self.outer_rows(batch, &states, self.parts[part].end);
        let passing = compute::filter(check, &rows, ctx)?;
        Ok(passing.into_iter().map(|at| states[at as usize]).collect())
    }

    /// Returns the rows of some states, with their vertices in a slot.
    fn outer_rows(&self, batch: &Batch, states: &[u32], slot: Slot) -> Batch {
        let (rows, vertices): (Vec<u32>, Vec<Gui>) = states.iter().map(|state| self.space.of(*state)).unzip();
        let mut outer = match self.uses {
            Some(uses) => batch.gather_slots(&rows, uses),
            None => batch.gather(&rows),
        };
        outer.origin = None;
        outer.set(slot, Column::Vertices(vertices));
        outer
    }

    /// Links the states that were reached first with those that one more repetition leads to.
    fn expand(&mut self, batch: &Batch, fresh: &[u32], level: u32, ctx: &Context<'_>) -> Result<()> {
        for part in 0..self.parts.len() {
            let going_on: Vec<u32> = fresh
                .iter()
                .copied()
                .filter(|state| {
                    let state = &self.space.states[*state as usize];
                    self.places.next(state.place, part).is_some() && !self.space.is_done(state.row)
                })
                .collect();
            for piece in going_on.chunks(FRONTIER) {
                self.expand_piece(batch, part, piece, level, ctx)?;
            }
        }
        Ok(())
    }

    fn expand_piece(
        &mut self,
        batch: &Batch,
        part: usize,
        states: &[u32],
        level: u32,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let parts = self.parts;
        let PathPart { body, first, last, steps, groups, .. } = &parts[part];
        let starts = self.outer_rows(batch, states, *first);
        let mut running = match self.bodies[part].take() {
            Some(running) => running,
            None => build(body, self.measured)?,
        };
        running.feed(ctx, Feed::each_row(&starts));
        while let Some(found) = running.next(ctx, Want::ALL)? {
            ctx.check()?;
            let column = |slot: Slot| match found.column(slot) {
                Some(column) => Arc::clone(column),
                None => Arc::new(Column::Constant(Value::Null, found.len)),
            };
            let chunk = self.space.add_chunk(
                steps.iter().map(|slot| column(*slot)).collect(),
                groups.iter().map(|(slot, _)| column(*slot)).collect(),
                ctx,
            )?;
            let Some(ends) = found.column(*last) else { continue };
            for at in 0..found.len {
                ctx.spend(1)?;
                let from = states[found.origin_of(at) as usize];
                let Some(vertex) = ends.vertex(at) else { continue };
                let state = &self.space.states[from as usize];
                let Some(place) = self.places.next(state.place, part) else { continue };
                let (key, length) = ((state.row, place, vertex), level + steps.len() as u32);
                let (to, is_shorter) = self.space.link(from, key, length, Some((chunk, at as u32)), ctx)?;
                if is_shorter {
                    self.space.wait(to, length);
                }
            }
        }
        self.bodies[part] = Some(running);
        Ok(())
    }

    /// Follows the walks of a length to the ends that have any.
    fn trace_lengths(&mut self, lengths: &Lengths, level: u32, ctx: &Context<'_>) -> Result<bool> {
        let mut closed = false;
        for state in lengths.current() {
            let at = self.space.states[*state as usize].end as usize;
            if self.ends.get(at).is_some_and(|end| end.open && end.traced <= level) {
                self.trace_end(at, level, By::Lengths(lengths), ctx)?;
                closed |= !self.ends[at].open;
            }
        }
        Ok(closed)
    }

    /// Adds the paths of a length to an end, as far as they are chosen.
    fn trace_end(&mut self, at: usize, length: u32, by: By<'_>, ctx: &Context<'_>) -> Result<()> {
        let end = &mut self.ends[at];
        let most = if self.groups { usize::MAX } else { (self.count - end.taken) as usize };
        let wanted = Wanted { state: end.state, length, most, by, trail: self.trail };
        let found = trace::follow(&mut self.space, &self.places, &wanted, &mut self.found, ctx)?;
        end.traced = length + 1;
        end.taken += if self.groups { u32::from(found > 0) } else { found as u32 };
        if end.taken >= self.count {
            end.open = false;
            if self.into {
                self.space.set_done(end.row);
            }
        }
        Ok(())
    }

    /// Finds the other paths, once all states are linked.
    fn finish(&mut self, lengths: Option<Lengths>, ctx: &Context<'_>) -> Result<()> {
        if !self.ends.iter().any(|end| end.open) {
            return Ok(());
        }
        let mut useful = self.leading_to_open(ctx)?;
        if self.trail && self.enumerate(&useful, ctx)? {
            return Ok(());
        }
        let longest = if self.trail { self.space.edges(ctx)? } else { u32::MAX };
        let mut lengths = match lengths {
            Some(lengths) => lengths,
            None => Lengths::new(&mut self.space, ctx)?,
        };
        while let Some(level) = lengths.next().filter(|level| *level <= longest) {
            ctx.check()?;
            lengths.keep(&useful);
            lengths.collect(&mut self.space, level, ctx)?;
            if self.trace_lengths(&lengths, level, ctx)? {
                if !self.ends.iter().any(|end| end.open) {
                    break;
                }
                useful = self.leading_to_open(ctx)?;
            }
            lengths.propagate(&self.space, level, ctx)?;
        }
        Ok(())
    }

    /// Returns for each state whether walks lead from it to an end that wants more paths.
    fn leading_to_open(&self, ctx: &Context<'_>) -> Result<Vec<bool>> {
        ctx.memory.ensure(self.space.states.len())?;
        let mut leads = vec![false; self.space.states.len()];
        let mut waiting: Vec<u32> = self.ends.iter().filter(|end| end.open).map(|end| end.state).collect();
        waiting.iter().for_each(|state| leads[*state as usize] = true);
        while let Some(state) = waiting.pop() {
            for link in self.space.links_into(state) {
                ctx.spend(1)?;
                if !std::mem::replace(&mut leads[link.from as usize], true) {
                    waiting.push(link.from);
                }
            }
        }
        Ok(leads)
    }

    /// Makes rows of found paths from one on; returns their number too.
    fn rows(&self, batch: &Batch, from: usize, most: usize, ctx: &Context<'_>) -> Result<(Batch, usize)> {
        let slots = |part: &PathPart| 2 + part.groups.len() + part.steps.len();
        let width: usize = self.parts.iter().map(slots).sum();
        let mut values = 0;
        let fits = |found: &&Found| {
            let before = values;
            values += width * (1 + found.steps.len());
            before == 0 || values <= BATCH_VALUES
        };
        let most = most.clamp(1, BATCH_ROWS);
        let piece: Vec<&Found> = self.found[from..].iter().take(most).take_while(fits).collect();
        ctx.memory.ensure(values * size_of::<Value>())?;
        ctx.spend(values)?;
        let rows: Vec<u32> = piece.iter().map(|found| found.row).collect();
        let mut out = batch.gather(&rows);
        for (number, part) in self.parts.iter().enumerate() {
            if part.end != self.to || !self.into {
                out.set(part.end, Column::Vertices(piece.iter().map(|found| found.ends[number]).collect()));
            }
            if let Some(slot) = part.edges {
                out.set(slot, self.edges_of(&piece, number, part.length.is_none()));
            }
            for (group, (_, slot)) in part.groups.iter().enumerate() {
                let lists = piece.iter().map(|found| Value::list(self.values(found, number, Some(group))));
                out.set(*slot, Column::Values(lists.collect()));
            }
        }
        Ok((out, piece.len()))
    }

    /// Returns the edge of a part in each path, or the list of its edges.
    fn edges_of(&self, piece: &[&Found], part: usize, is_one: bool) -> Column {
        let values = piece.iter().map(|found| {
            let mut edges = self.values(found, part, None);
            if is_one { edges.pop().unwrap_or(Value::Null) } else { Value::list(edges) }
        });
        if is_one { Column::from_values(values.collect()) } else { Column::Values(values.collect()) }
    }

    /// Returns the values of a group in the repetitions of a part; `None`: their edges.
    fn values(&self, found: &Found, part: usize, group: Option<usize>) -> Vec<Value> {
        let mut values = vec![];
        let mut add = |(of, chunk, row): &(u32, u32, u32)| {
            if *of as usize == part {
                let chunk = &self.space.chunks[*chunk as usize];
                let columns = match group {
                    Some(group) => &chunk.groups[group..=group],
                    None => &chunk.steps[..],
                };
                values.extend(columns.iter().map(|column| column.get(*row as usize)));
            }
        };
        // They were found from the end to the start.
        if self.reversed {
            found.steps.iter().for_each(&mut add);
        } else {
            found.steps.iter().rev().for_each(&mut add);
        }
        values
    }
}
