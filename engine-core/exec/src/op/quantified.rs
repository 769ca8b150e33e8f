//! Quantified path patterns: walks that repeat a subplan, in which no edge occurs twice unless the pattern allows it.
//!
//! The search is depth first, by pieces, as in `var_expand`. Level 0 is the input batch. Level n holds a piece of the
//! walks of n repetitions, and the subplan that extends them, which stops after each piece until the walks of that piece
//! have been yielded and extended. So memory is bounded by the length of the walks times a batch, however many walks
//! there are. A walk holds the values of its last repetition and the walk that it extends.
//!
//! With a selection (`SHORTEST 2`) the search is breadth first: each level is complete, so that walks are found in the
//! order of their lengths; all levels are kept, charged to the query.
//!
//! Walks end, because each repetition has an edge and no edge occurs twice; but their number grows exponentially with
//! the edges. Each step looks at the time limit. Where edges may occur again, a bound of the length ends walks, or a
//! selection that follows each vertex only once.

mod selection;

use super::compute;
use super::expand::Frontier;
use super::walk::holds_edge;
use super::{Boxed, Feed, Operator, Want, build};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use selection::Chosen;
use std::sync::Arc;
use tidegraph_plan::{Length, Op, Slot};
use tidegraph_types::{Gui, Value};

/// Bytes to charge for an operator of a subplan.
const OPERATOR_BYTES: usize = 512;
/// Values in the lists of one batch, unless a single row has more.
const BATCH_VALUES: usize = 64 * BATCH_ROWS;
/// Subplans that are kept for the next walks.
const SPARE: usize = 8;

/// Yields a row for each walk whose number of repetitions is within bounds.
pub(super) struct QuantifiedPath<'p> {
    input: Boxed<'p>,
    from: Slot,
    to: Slot,
    into: bool,
    body: &'p Op,
    body_bytes: usize,
    measured: bool,
    first: Slot,
    last: Slot,
    steps: &'p [Slot],
    length: Length,
    reversed: bool,
    edges: Option<Slot>,
    groups: &'p [(Slot, Slot)],
    exclude: &'p [Slot],
    repeats: bool,
    uses: Option<&'p [Slot]>,
    chosen: Option<Chosen<'p>>,
    batch: Option<Batch>,
    levels: Vec<Level<'p>>,
    /// Walks of the deepest level that end where they must.
    waiting: Vec<u32>,
    /// How many of them were yielded.
    yielded: usize,
    spare: Vec<Boxed<'p>>,
}

/// Walks of one number of repetitions.
struct Level<'p> {
    /// The last vertex of each walk.
    vertices: Vec<Gui>,
    /// The walk of the level above that each walk extends; at level 0 the walk itself.
    parent: Vec<u32>,
    /// The row of the batch.
    row: Vec<u32>,
    /// The edges of the last repetition.
    steps: Vec<Arc<Column>>,
    /// The values of the last repetition that lists collect.
    groups: Vec<Arc<Column>>,
    /// Extends the walks; `None` before the first piece.
    body: Option<Boxed<'p>>,
    /// Bytes charged.
    bytes: usize,
}

impl Level<'_> {
    /// Returns the bytes of the walks.
    fn own_bytes(&self) -> usize {
        let columns = self.steps.iter().chain(&self.groups);
        columns.map(|column| column.bytes()).sum::<usize>()
            + self.vertices.len() * (size_of::<Gui>() + 2 * size_of::<u32>())
    }

    /// Adds walks that were not extended yet to such walks.
    fn append(&mut self, other: Self) {
        self.vertices.extend(other.vertices);
        self.parent.extend(other.parent);
        self.row.extend(other.row);
        let columns = self.steps.iter_mut().chain(&mut self.groups);
        for (column, more) in columns.zip(other.steps.into_iter().chain(other.groups)) {
            append(column, &more);
        }
    }

    /// Keeps some walks that were not extended yet.
    fn keep(&mut self, kept: &[u32]) {
        self.vertices = kept.iter().map(|walk| self.vertices[*walk as usize]).collect();
        self.parent = kept.iter().map(|walk| self.parent[*walk as usize]).collect();
        self.row = kept.iter().map(|walk| self.row[*walk as usize]).collect();
        for column in self.steps.iter_mut().chain(&mut self.groups) {
            *column = Arc::new(column.gather(kept));
        }
    }
}

/// Adds the values of a column to another one, in place if they are of the same kind.
fn append(column: &mut Arc<Column>, more: &Column) {
    match (Arc::make_mut(column), more) {
        (Column::Vertices(all), Column::Vertices(more)) => all.extend(more),
        (Column::Edges(all), Column::Edges(more)) => all.extend(more),
        (all, more) => {
            let values = (0..all.len()).map(|at| all.get(at)).chain((0..more.len()).map(|at| more.get(at)));
            *all = Column::Values(values.collect());
        }
    }
}

impl<'p> QuantifiedPath<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op, measured: bool) -> Result<Self> {
        let Op::QuantifiedPath {
            from,
            to,
            into,
            body,
            first,
            last,
            steps,
            length,
            reversed,
            edges,
            groups,
            exclude,
            repeats,
            selection,
            uses,
            ..
        } = op
        else {
            return Err(Error::Plan("not a quantified path".to_owned()));
        };
        if steps.is_empty() {
            return Err(Error::Plan("a repetition without an edge".to_owned()));
        }
        Ok(Self {
            input,
            from: *from,
            to: *to,
            into: *into,
            body,
            body_bytes: operators(body) * OPERATOR_BYTES,
            measured,
            first: *first,
            last: *last,
            steps,
            length: *length,
            reversed: *reversed,
            edges: *edges,
            groups,
            exclude,
            repeats: *repeats,
            uses: uses.as_deref(),
            chosen: selection
                .as_ref()
                .map(|selection| Chosen::new(selection, *length, steps.len(), *repeats)),
            batch: None,
            levels: vec![],
            waiting: vec![],
            yielded: 0,
            spare: vec![],
        })
    }

    fn begin(&mut self, batch: Batch, ctx: &Context<'_>) -> Result<()> {
        let frontier = Frontier::of(&batch, self.from, "following a path")?;
        let vertices = frontier.vertices().to_vec();
        let row = (0..vertices.len() as u32).map(|index| frontier.row(index)).collect();
        let parent = (0..vertices.len() as u32).collect();
        self.batch = Some(batch);
        if let Some(chosen) = &mut self.chosen {
            chosen.clear(ctx);
        }
        self.push(Level { vertices, parent, row, steps: vec![], groups: vec![], body: None, bytes: 0 }, ctx)
    }

    /// Adds a level, whose walks wait to be yielded if they are long enough.
    fn push(&mut self, mut level: Level<'p>, ctx: &Context<'_>) -> Result<()> {
        let bytes = level.own_bytes() + self.body_bytes;
        ctx.memory.charge(bytes)?;
        level.bytes = bytes;
        self.levels.push(level);
        (self.waiting, self.yielded) = (vec![], 0);
        if self.levels.len() as u64 > u64::from(self.length.min) {
            self.waiting = self.ending()?;
        }
        Ok(())
    }

    /// Removes the deepest level, and keeps its subplan for other walks.
    fn pop(&mut self, ctx: &Context<'_>) {
        let Some(level) = self.levels.pop() else { return };
        ctx.memory.release(level.bytes);
        if let Some(mut body) = level.body {
            // The subplan releases what it holds.
            body.feed(ctx, Feed::new(Batch::default(), 0));
            if self.spare.len() < SPARE {
                self.spare.push(body);
            }
        }
    }

    /// Returns the walks of the deepest level that end where they must.
    fn ending(&self) -> Result<Vec<u32>> {
        let (Some(batch), Some(level)) = (&self.batch, self.levels.last()) else { return Ok(vec![]) };
        let target = batch.column(self.to).filter(|_| self.into);
        let mut walks = Vec::with_capacity(level.vertices.len());
        for (walk, gui) in level.vertices.iter().enumerate() {
            let row = level.row[walk] as usize;
            let ends = match target {
                None => !self.into,
                Some(column) => match column.vertex(row) {
                    Some(wanted) => wanted == *gui,
                    None if column.is_null(row) => false,
                    None => return Err(Error::of_type("following a path", "a vertex", &column.get(row))),
                },
            };
            if ends {
                walks.push(walk as u32);
            }
        }
        Ok(walks)
    }

    /// Returns the next piece of walks that extend those of the deepest level, which may be empty; `None` if there are no
    /// more.
    fn extend(&mut self, ctx: &Context<'_>) -> Result<Option<Level<'p>>> {
        let depth = self.levels.len() - 1;
        let is_longest = self.length.max.is_some_and(|max| depth as u64 >= u64::from(max));
        let (Some(batch), Some(top)) = (&self.batch, self.levels.last_mut()) else { return Ok(None) };
        if is_longest || top.vertices.is_empty() {
            return Ok(None);
        }
        let body = match &mut top.body {
            Some(body) => body,
            none => {
                let mut body = match self.spare.pop() {
                    Some(body) => body,
                    None => build(self.body, self.measured)?,
                };
                let mut starts = match self.uses {
                    Some(uses) => batch.gather_slots(&top.row, uses),
                    None => batch.gather(&top.row),
                };
                starts.origin = None;
                starts.set(self.first, Column::Vertices(top.vertices.clone()));
                body.feed(ctx, Feed::each_row(&starts));
                none.insert(body)
            }
        };
        let Some(found) = body.next(ctx, Want::ALL)? else { return Ok(None) };
        self.level_of(&found, ctx).map(Some)
    }

    /// Returns the walks that repetitions make longer, without those that would use an edge twice.
    fn level_of(&self, found: &Batch, ctx: &Context<'_>) -> Result<Level<'p>> {
        let mut level = Level {
            vertices: vec![],
            parent: vec![],
            row: vec![],
            steps: vec![],
            groups: vec![],
            body: None,
            bytes: 0,
        };
        let mut kept = vec![];
        let (Some(top), Some(last)) = (self.levels.last(), found.column(self.last)) else { return Ok(level) };
        for at in 0..found.len {
            ctx.spend(self.levels.len() * self.steps.len())?;
            let parent = found.origin_of(at);
            let row = top.row[parent as usize];
            let Some(vertex) = last.vertex(at) else { continue };
            if self.is_used(found, at, parent, row) {
                continue;
            }
            level.vertices.push(vertex);
            level.parent.push(parent);
            level.row.push(row);
            kept.push(at as u32);
        }
        let column = |slot: Slot| match found.column(slot) {
            Some(column) if kept.len() == found.len => Arc::clone(column),
            Some(column) => Arc::new(column.gather(&kept)),
            None => Arc::new(Column::Constant(Value::Null, kept.len())),
        };
        level.steps = self.steps.iter().map(|slot| column(*slot)).collect();
        level.groups = self.groups.iter().map(|(slot, _)| column(*slot)).collect();
        Ok(level)
    }

    /// Whether the walk, or the rest of the pattern, has an edge of a repetition already.
    fn is_used(&self, found: &Batch, at: usize, parent: u32, row: u32) -> bool {
        self.steps.iter().filter_map(|slot| found.column(*slot)?.edge(at)).any(|edge| {
            let mut walk = parent as usize;
            let before = if self.repeats { &[] } else { &self.levels[1..] };
            for level in before.iter().rev() {
                if level.steps.iter().any(|step| step.edge(walk).is_some_and(|e| e.sid == edge.sid)) {
                    return true;
                }
                walk = level.parent[walk] as usize;
            }
            self.batch.as_ref().is_some_and(|batch| holds_edge(batch, self.exclude, row, edge.sid))
        })
    }

    /// Returns the rows of the next walks that wait.
    fn piece(&mut self, ctx: &Context<'_>) -> Result<Option<Batch>> {
        while self.yielded < self.waiting.len() {
            ctx.check()?;
            let depth = self.levels.len() - 1;
            let lists = self.groups.len() + if self.edges.is_some() { self.steps.len() } else { 0 };
            let width = 1 + depth * (1 + lists);
            let end = self.waiting.len().min(self.yielded + (BATCH_VALUES / width).clamp(1, BATCH_ROWS));
            let mut piece = self.waiting[self.yielded..end].to_vec();
            self.yielded = end;
            let mut chosen = self.chosen.take();
            let rows = self.piece_rows(chosen.as_mut(), &mut piece, width, ctx);
            self.chosen = chosen;
            if let Some(rows) = rows? {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// Makes rows of the walks of a piece that the selection chooses. `width`: values of a row.
    fn piece_rows(
        &self,
        chosen: Option<&mut Chosen<'p>>,
        piece: &mut Vec<u32>,
        width: usize,
        ctx: &Context<'_>,
    ) -> Result<Option<Batch>> {
        let (Some(batch), Some(level)) = (&self.batch, self.levels.last()) else { return Ok(None) };
        let Some(chosen) = chosen else {
            return self.rows_of(batch, level, piece, width, ctx).map(Some);
        };
        let depth = (self.levels.len() - 1) as u32;
        let key = |walk: u32| (level.row[walk as usize], level.vertices[walk as usize]);
        piece.retain(|walk| !chosen.is_full(key(*walk), depth));
        let mut kept = Vec::with_capacity(piece.len());
        let Some(accept) = &chosen.selection.accept else {
            for walk in piece.iter() {
                if chosen.take(key(*walk), depth, ctx)? {
                    kept.push(*walk);
                }
            }
            let rows = (!kept.is_empty()).then(|| self.rows_of(batch, level, &kept, width, ctx));
            return rows.transpose();
        };
        if piece.is_empty() {
            return Ok(None);
        }
        let rows = self.rows_of(batch, level, piece, width, ctx)?;
        for row in compute::filter(accept, &rows, ctx)? {
            if chosen.take(key(piece[row as usize]), depth, ctx)? {
                kept.push(row);
            }
        }
        Ok((!kept.is_empty()).then(|| rows.select(&kept)))
    }

    /// Adds the next level as a whole, or removes all levels if there is none: so walks are found in the order of their
    /// numbers of repetitions.
    fn broaden(&mut self, ctx: &Context<'_>) -> Result<()> {
        let mut next: Option<Level<'p>> = None;
        let mut charged = 0;
        while let Some(mut level) = self.extend(ctx)? {
            ctx.check()?;
            self.prune(&mut level, ctx)?;
            if level.vertices.is_empty() {
                continue;
            }
            let bytes = level.own_bytes();
            ctx.memory.charge(bytes)?;
            charged += bytes;
            match &mut next {
                None => next = Some(level),
                Some(next) => next.append(level),
            }
        }
        ctx.memory.release(charged);
        match next {
            Some(level) => self.push(level, ctx),
            None => {
                while !self.levels.is_empty() {
                    self.pop(ctx);
                }
                Ok(())
            }
        }
    }

    /// Drops walks that lead to no path that the selection would choose.
    fn prune(&mut self, level: &mut Level<'p>, ctx: &Context<'_>) -> Result<()> {
        let (Some(chosen), Some(batch)) = (&mut self.chosen, &self.batch) else { return Ok(()) };
        let depth = self.levels.len() as u32;
        let target = batch.column(self.to).filter(|_| self.into);
        let from = batch.column(self.from);
        let mut kept = Vec::with_capacity(level.vertices.len());
        for walk in 0..level.vertices.len() {
            ctx.spend(1)?;
            let (row, vertex) = (level.row[walk], level.vertices[walk]);
            let end = target.and_then(|column| column.vertex(row as usize));
            if end.is_some_and(|end| chosen.is_full((row, end), depth)) {
                continue;
            }
            let returns = end.is_none() || end == from.and_then(|column| column.vertex(row as usize));
            if chosen.reach((row, vertex), depth, !returns, ctx)? {
                kept.push(walk as u32);
            }
        }
        if kept.len() < level.vertices.len() {
            level.keep(&kept);
        }
        Ok(())
    }

    /// Makes rows of some walks of the deepest level. `width`: values of a row.
    fn rows_of(
        &self,
        batch: &Batch,
        level: &Level<'p>,
        piece: &[u32],
        width: usize,
        ctx: &Context<'_>,
    ) -> Result<Batch> {
        let values = piece.len() * width;
        ctx.memory.ensure(values * size_of::<Value>())?;
        ctx.spend(values)?;
        let rows: Vec<u32> = piece.iter().map(|walk| level.row[*walk as usize]).collect();
        let mut out = batch.gather(&rows);
        let (mut edges, mut groups) = (vec![], vec![vec![]; self.groups.len()]);
        for walk in piece {
            let repetitions = self.repetitions(*walk);
            if self.edges.is_some() {
                edges.push(self.list_of(&repetitions, None));
            }
            for (number, lists) in groups.iter_mut().enumerate() {
                lists.push(self.list_of(&repetitions, Some(number)));
            }
        }
        if let Some(slot) = self.edges {
            out.set(slot, Column::Values(edges));
        }
        for ((_, slot), lists) in self.groups.iter().zip(groups) {
            out.set(*slot, Column::Values(lists));
        }
        if !self.into {
            let ends = piece.iter().map(|walk| level.vertices[*walk as usize]).collect();
            out.set(self.to, Column::Vertices(ends));
        }
        Ok(out)
    }

    /// Returns the list of the values of a group in these repetitions; `None`: of their edges.
    fn list_of(&self, repetitions: &[(usize, u32)], group: Option<usize>) -> Value {
        let mut values = Vec::with_capacity(repetitions.len());
        for (number, walk) in repetitions {
            let level = &self.levels[*number];
            let columns = match group {
                Some(group) => &level.groups[group..=group],
                None => &level.steps[..],
            };
            values.extend(columns.iter().map(|column| column.get(*walk as usize)));
        }
        Value::list(values)
    }

    /// Returns the repetitions of a walk of the deepest level, from left to right: level, and walk of that level.
    fn repetitions(&self, walk: u32) -> Vec<(usize, u32)> {
        let mut walk = walk;
        let mut found = Vec::with_capacity(self.levels.len() - 1);
        for (number, level) in self.levels.iter().enumerate().skip(1).rev() {
            found.push((number, walk));
            walk = level.parent[walk as usize];
        }
        if !self.reversed {
            found.reverse();
        }
        found
    }
}

/// Counts the operators of a plan.
fn operators(op: &Op) -> usize {
    1 + op.children().into_iter().map(operators).sum::<usize>()
}

impl Operator for QuantifiedPath<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(batch) = self.piece(ctx)? {
                return Ok(Some(batch));
            }
            if self.levels.is_empty() {
                let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
                self.begin(batch, ctx)?;
                continue;
            }
            if self.chosen.is_some() {
                self.broaden(ctx)?;
                continue;
            }
            match self.extend(ctx)? {
                None => self.pop(ctx),
                Some(level) if level.vertices.is_empty() => {}
                Some(level) => self.push(level, ctx)?,
            }
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        while !self.levels.is_empty() {
            self.pop(ctx);
        }
        if let Some(chosen) = &mut self.chosen {
            chosen.clear(ctx);
        }
        self.waiting.clear();
        self.batch = None;
        self.input.feed(ctx, feed);
    }
}
