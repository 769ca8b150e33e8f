//! Groups and their aggregates.
//!
//! Without keys there is one group for each origin, with rows or without. Rows that are only counted are not made: a
//! `count(*)` directly above an expand adds up degrees, and above a scan storage counts.

mod by_integer;

use super::buffer::Pieces;
use super::distinct_values::DistinctValues;
use super::expand::Frontier;
use super::scan::CountedScan;
use super::shared_counts::SharedCounts;
use super::walk::Follow;
use super::{Boxed, Feed, Operator, Want, build, compute};
use crate::batch::BATCH_ROWS;
use crate::spill::{Arrivals, KeyOrder, Sorted, Sorter};
use crate::value::Accumulator;
use crate::{Batch, Column, Context, Error, Result};
use by_integer::{ByInteger, IntegerKeys};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegraph_plan::{AggregateItem, AggregateKind, Expr, Op, Slot};
use tidegraph_types::Value;

pub(super) type Keys = SmallVec<[Value; 2]>;
type Accumulators = SmallVec<[Accumulator; 2]>;

/// The input of an aggregate.
enum Source<'p> {
    Rows(Boxed<'p>),
    Counted(Counted<'p>),
}

/// An operator whose rows are only counted, by storage.
pub(super) enum Counted<'p> {
    /// An expand: degrees.
    Edges(Degrees<'p>),
    /// A scan.
    Vertices(CountedScan<'p>),
}

impl<'p> Counted<'p> {
    /// Makes the counter of an operator; `None` if storage cannot count its rows.
    pub(super) fn of(op: &'p Op, measured: bool) -> Result<Option<Self>> {
        if let Op::ScanVertices { input, out, filter, .. } = op {
            let is_first = matches!(**input, Op::Argument);
            let input = build(input, measured)?;
            return Ok(Some(Self::Vertices(CountedScan::new(input, *out, filter, is_first))));
        }
        Ok(Degrees::of(op, measured)?.map(Self::Edges))
    }

    /// Calls `add` with origin and number of rows for each input row; returns `false` at the end.
    pub(super) fn next(&mut self, ctx: &Context<'_>, add: impl FnMut(u32, u64)) -> Result<bool> {
        match self {
            Self::Edges(edges) => edges.next(ctx, add),
            Self::Vertices(vertices) => vertices.next(ctx, add),
        }
    }

    pub(super) fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        match self {
            Self::Edges(edges) => edges.feed(ctx, feed),
            Self::Vertices(vertices) => vertices.feed(ctx, feed),
        }
    }
}

/// Counts the rows of an expand without making them.
pub(super) struct Degrees<'p> {
    input: Boxed<'p>,
    from: Slot,
    follow: Follow<'p>,
}

impl<'p> Degrees<'p> {
    /// Makes the counter of an expand; `None` if its rows are not exactly its edges.
    pub(super) fn of(op: &'p Op, measured: bool) -> Result<Option<Self>> {
        let Op::Expand { input, from, direction, labels, into: false, loops_once, .. } = op else {
            return Ok(None);
        };
        let follow = Follow::new(*direction, labels, *loops_once);
        Ok(Some(Self { input: build(input, measured)?, from: *from, follow }))
    }

    /// Calls `add` with origin and number of edges for each row; returns `false` at the end.
    pub(super) fn next(&mut self, ctx: &Context<'_>, mut add: impl FnMut(u32, u64)) -> Result<bool> {
        let Some(batch) = self.input.next(ctx, Want::ALL)? else { return Ok(false) };
        ctx.check()?;
        let frontier = Frontier::of(&batch, self.from, "following an edge")?;
        let vertices = frontier.vertices();
        if !vertices.is_empty() && self.follow.resolve(vertices, ctx) {
            let mut degrees = Vec::with_capacity(vertices.len());
            ctx.view.degrees(self.follow.request(usize::MAX), vertices, &mut degrees)?;
            for (index, degree) in degrees.into_iter().enumerate() {
                add(batch.origin_of(frontier.row(index as u32) as usize), degree);
            }
        }
        Ok(true)
    }

    pub(super) fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.input.feed(ctx, feed);
    }
}

pub(super) struct Group {
    pub(super) origin: u32,
    pub(super) keys: Keys,
    pub(super) accumulators: Accumulators,
}

impl Group {
    /// Bytes of the group and of its entry in the index, apart from what its accumulators keep.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.keys, self.accumulators.len())
    }
}

fn bytes_of(keys: &Keys, items: usize) -> usize {
    let heap: usize = keys.iter().map(|v| size_of::<Value>() + v.heap_bytes()).sum();
    2 * heap + size_of::<Group>() + items * size_of::<Accumulator>() + 56
}

/// The groups of an aggregation.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    index: FxHashMap<(u32, Keys), usize>,
    by_integer: ByInteger,
    charged: usize,
}

/// Groups that are done: the number of the group in the order of arrival, the keys, and the results.
struct Ready {
    columns: Vec<Vec<Value>>,
}

impl Ready {
    fn add(&mut self, (number, group): (i64, Group), ctx: &Context<'_>) {
        let number = std::iter::once(Value::Long(number));
        let results = group.accumulators.into_iter().map(|one| one.finish(ctx));
        let values = number.chain(group.keys).chain(results);
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value);
        }
    }

    /// Returns the rows of the groups, with the number before the slots; `None` if there are none.
    fn take(&mut self, aggregate: &Aggregate<'_>) -> Option<Batch> {
        let len = self.columns.first().map_or(0, Vec::len);
        if len == 0 {
            return None;
        }
        let mut columns = self.columns.iter_mut().map(|column| Column::from_values(std::mem::take(column)));
        let number = columns.next().map(Arc::new);
        let mut out = Batch::unbound(len, aggregate.slots);
        for (slot, column) in aggregate.out_slots().zip(columns) {
            out.set(slot, column);
        }
        out.columns.insert(0, number);
        Some(out)
    }
}

/// Groups rows by keys. Groups that do not fit into half of the request's memory are made of rows in files, after the
/// others. Values of distinct aggregates that do not fit go to files, too.
pub(super) struct Aggregate<'p> {
    pub(super) op: &'p Op,
    source: Source<'p>,
    pub(super) keys: &'p [(Slot, Expr)],
    items: &'p [AggregateItem],
    pub(super) groups: Vec<Group>,
    /// Groups by origin and keys.
    pub(super) index: FxHashMap<(u32, Keys), usize>,
    /// The same by a single integer key, if all rows have one origin: saves making keys.
    by_integer: ByInteger,
    origins: usize,
    pub(super) slots: usize,
    pub(super) charged: usize,
    /// Whether threads may share the work.
    splits: bool,
    /// Whether its groups are only those of a part of the rows.
    pub(super) is_part: bool,
    /// What the operators below share with those of other threads.
    pub(super) shared: Option<Arc<SharedCounts>>,
    /// Rows of groups that are not in memory, with the arguments of the aggregates.
    pub(super) overflow: Option<Arrivals>,
    /// Whether the groups in memory take no more rows for now: all go to the overflow.
    is_frozen: bool,
    /// Values of distinct aggregates that do not fit into memory, without keys.
    pub(super) waiting: DistinctValues,
    pieces: Option<Pieces>,
    /// The groups of the overflow.
    rest: Option<Sorted>,
}

impl<'p> Aggregate<'p> {
    pub(super) fn new(op: &'p Op, measured: bool) -> Result<Self> {
        let Op::Aggregate { input, keys, items } = op else {
            return Err(Error::Plan("not an aggregation".to_owned()));
        };
        let counted = if op.counts_in_storage() { Counted::of(input, measured)? } else { None };
        let source = match counted {
            Some(counted) => Source::Counted(counted),
            None => Source::Rows(build(input, measured)?),
        };
        Ok(Self {
            op,
            source,
            keys,
            items,
            groups: vec![],
            index: FxHashMap::default(),
            by_integer: ByInteger::default(),
            origins: 1,
            slots: 0,
            charged: 0,
            splits: false,
            is_part: false,
            shared: None,
            overflow: None,
            is_frozen: false,
            waiting: DistinctValues::default(),
            pieces: None,
            rest: None,
        })
    }

    /// The slots of the keys, and those of the results.
    fn out_slots(&self) -> impl Iterator<Item = Slot> {
        self.keys.iter().map(|(slot, _)| *slot).chain(self.items.iter().map(|item| item.out))
    }

    fn accumulators(&self) -> Accumulators {
        let new = |item: &AggregateItem| {
            let new = Accumulator::new(item.kind, item.distinct).weighted(item.weighted);
            new.null_of_nulls(item.empty_is_unbound)
        };
        self.items.iter().map(new).collect()
    }

    /// Returns the group of a row; makes it for the first row. `None`: there is no memory for it, and its rows go to files.
    fn group(&mut self, origin: u32, keys: Keys, ctx: &Context<'_>) -> Result<Option<usize>> {
        if self.keys.is_empty() {
            return Ok(Some(origin as usize));
        }
        let key = (origin, keys);
        if let Some(index) = self.index.get(&key) {
            return Ok(Some(*index));
        }
        if self.overflow.is_some() {
            return Ok(None);
        }
        let bytes = bytes_of(&key.1, self.items.len());
        let may_spill = self.may_spill(ctx);
        let is_full = may_spill && (self.charged + bytes) as u64 > ctx.limits.memory_bytes / 2;
        let charged = if is_full { Ok(()) } else { ctx.memory.charge(bytes) };
        if is_full || may_spill && charged.is_err() {
            self.overflow = Some(Arrivals::new(self.keys.len()));
            return Ok(None);
        }
        charged?;
        self.charged += bytes;
        let index = self.groups.len();
        let accumulators = self.accumulators();
        self.groups.push(Group { origin, keys: key.1.clone(), accumulators });
        self.index.insert(key, index);
        Ok(Some(index))
    }

    fn add(&mut self, batch: &Batch, ctx: &Context<'_>) -> Result<()> {
        let exprs = (self.keys.iter().map(|(_, e)| e)).chain(self.items.iter().flat_map(|item| &item.args));
        let columns = compute::columns(exprs, batch, ctx)?;
        let (keys, args) = columns.split_at(self.keys.len());
        if keys.is_empty() && batch.origin.is_none() {
            let mut rest = args;
            let accumulators = &mut self.groups[0].accumulators;
            for (item, accumulator) in self.items.iter().zip(accumulators.iter_mut()) {
                let (own, after) = rest.split_at(item.args.len());
                accumulator.add_all(own, batch.len, ctx)?;
                rest = after;
            }
            return self.waiting.take(accumulators, ctx);
        }
        // What groups collect may grow, too. Where values of distinct aggregates go to files of their own, two merges need
        // memory at a time.
        let eighths = if self.items.iter().any(|item| item.distinct) { 3 } else { 5 };
        if self.may_spill(ctx) && ctx.memory.used() > ctx.limits.memory_bytes / 8 * eighths {
            self.is_frozen = true;
        }
        if self.is_frozen {
            let overflow = self.overflow.get_or_insert_with(|| Arrivals::new(self.keys.len()));
            let rows: Vec<u32> = (0..batch.len as u32).collect();
            return overflow.push(keys, args.iter().map(Some), &rows, ctx);
        }
        let mut over = vec![];
        let mut values: SmallVec<[Value; 2]> = SmallVec::new();
        let integers = IntegerKeys::of(keys, batch);
        let only_counts =
            self.items.iter().all(|item| item.kind == AggregateKind::CountRows && !item.weighted);
        // Rows of each group in this batch, unless there are many groups.
        let mut rows = if only_counts && self.groups.len() <= BATCH_ROWS {
            vec![0_u64; self.groups.len() + batch.len]
        } else {
            vec![]
        };
        for row in 0..batch.len {
            let integer = integers.as_ref().and_then(|integers| integers.get(row));
            let group = match integer.and_then(|integer| self.by_integer.get(integer)) {
                Some(group) => group,
                None => {
                    let row_keys = keys.iter().map(|column| column.get(row)).collect();
                    let Some(group) = self.group(batch.origin_of(row), row_keys, ctx)? else {
                        over.push(row as u32);
                        continue;
                    };
                    if let Some(integer) = integer {
                        self.by_integer.insert(integer, group);
                    }
                    group
                }
            };
            if let Some(rows) = rows.get_mut(group) {
                *rows += 1;
                continue;
            }
            let accumulators = &mut self.groups[group].accumulators;
            let mut rest = args;
            for (item, accumulator) in self.items.iter().zip(accumulators) {
                let (own, after) = rest.split_at(item.args.len());
                values.clear();
                values.extend(own.iter().map(|column| column.get(row)));
                accumulator.add(&values, ctx)?;
                rest = after;
            }
        }
        for (group, rows) in self.groups.iter_mut().zip(rows).filter(|(_, rows)| *rows > 0) {
            group.accumulators.iter_mut().for_each(|accumulator| accumulator.add_count(rows));
        }
        match &mut self.overflow {
            Some(overflow) => overflow.push(keys, args.iter().map(Some), &over, ctx),
            None => Ok(()),
        }
    }

    /// Makes the groups whose rows are in files, one at a time. Those that are in memory and no longer took rows go on.
    fn rest(&mut self, overflow: Arrivals, ctx: &Context<'_>) -> Result<Sorted> {
        let mut sorter = Sorter::new(vec![KeyOrder::PLAIN], None, 1);
        let mut ready = Ready { columns: vec![vec![]; 1 + self.keys.len() + self.items.len()] };
        let mut group: Option<(i64, Group)> = None;
        let mut waiting = DistinctValues::default();
        let keys = self.keys.len();
        let mut held: Vec<Option<Group>> = std::mem::take(&mut self.groups).into_iter().map(Some).collect();
        let after_held = held.len() as i64;
        overflow.grouped(ctx, |batch, are_first| {
            let value = |at: usize, row: usize| {
                batch
                    .columns
                    .get(at)
                    .and_then(Option::as_ref)
                    .map_or(Value::Unbound, |column| column.get(row))
            };
            for (row, is_first) in are_first.iter().enumerate() {
                if *is_first {
                    if let Some(mut ended) = group.take() {
                        waiting.finish(&mut ended.1.accumulators, ctx)?;
                        ready.add(ended, ctx);
                    }
                    let key: (u32, Keys) = (0, (0..keys).map(|at| value(at, row)).collect());
                    let place = self.index.get(&key).copied();
                    let known = place.and_then(|at| held.get_mut(at)).and_then(Option::take);
                    let mut begun = match (place, known) {
                        (Some(place), Some(known)) => (place as i64, known),
                        _ => {
                            let number = value(keys, row).as_i64().unwrap_or_default();
                            let accumulators = self.accumulators();
                            (after_held + number, Group { origin: 0, keys: key.1, accumulators })
                        }
                    };
                    begun.1.accumulators.iter_mut().for_each(Accumulator::let_values_wait);
                    group = Some(begun);
                }
                let Some((_, Group { accumulators, .. })) = &mut group else { continue };
                let mut at = keys + 1;
                for (item, accumulator) in self.items.iter().zip(accumulators) {
                    let own: SmallVec<[Value; 2]> =
                        (at..at + item.args.len()).map(|at| value(at, row)).collect();
                    accumulator.add(&own, ctx)?;
                    at += item.args.len();
                }
            }
            if let Some((_, Group { accumulators, .. })) = &mut group {
                waiting.take(accumulators, ctx)?;
            }
            sorter.push_some(ready.take(self), ctx)
        })?;
        if let Some((_, Group { accumulators, .. })) = &mut group {
            waiting.finish(accumulators, ctx)?;
        }
        let ended = held.into_iter().enumerate().filter_map(|(at, held)| Some((at as i64, held?)));
        for (count, group) in group.into_iter().chain(ended).enumerate() {
            ready.add(group, ctx);
            if count % BATCH_ROWS == BATCH_ROWS - 1 {
                ctx.check()?;
                sorter.push_some(ready.take(self), ctx)?;
            }
        }
        sorter.push_some(ready.take(self), ctx)?;
        self.index.clear();
        ctx.memory.release(std::mem::take(&mut self.charged));
        sorter.finish(true, ctx)
    }

    /// Whether groups may go to files. With several origins their groups would have to come in turns.
    fn may_spill(&self, ctx: &Context<'_>) -> bool {
        self.uses_files(ctx) && !self.keys.is_empty()
    }

    fn uses_files(&self, ctx: &Context<'_>) -> bool {
        ctx.spill_files().is_some() && self.origins == 1 && !self.is_part
    }

    fn drain(&mut self, ctx: &Context<'_>) -> Result<Pieces> {
        self.begin(ctx);
        match ctx.helpers.filter(|_| self.splits && !ctx.view.has_computed()) {
            Some(helpers) => self.in_parts(helpers, ctx)?,
            None => self.add_all(ctx, &mut |_| {})?,
        }
        self.finish(ctx)
    }

    /// Makes the groups that are there without rows.
    pub(super) fn begin(&mut self, ctx: &Context<'_>) {
        if self.keys.is_empty() {
            let uses_files = self.uses_files(ctx);
            for origin in 0..self.origins as u32 {
                let mut accumulators = self.accumulators();
                if uses_files {
                    accumulators.iter_mut().for_each(Accumulator::let_values_wait);
                }
                self.groups.push(Group { origin, keys: Keys::new(), accumulators });
            }
        }
    }

    /// Adds all rows of the input. Calls `between` after each batch of them, with whether all groups are in memory.
    pub(super) fn add_all(&mut self, ctx: &Context<'_>, between: &mut dyn FnMut(bool)) -> Result<()> {
        if let Source::Counted(counted) = &mut self.source {
            let mut counts = vec![0_u64; self.origins];
            while counted.next(ctx, |origin, rows| counts[origin as usize] += rows)? {
                between(true);
            }
            for (group, count) in self.groups.iter_mut().zip(counts) {
                group.accumulators.iter_mut().for_each(|accumulator| accumulator.add_count(count));
            }
            return Ok(());
        }
        while let Source::Rows(input) = &mut self.source {
            let Some(batch) = input.next(ctx, Want::ALL)? else { break };
            ctx.check()?;
            self.add(&batch, ctx)?;
            between(self.overflow.is_none() && self.waiting.is_empty());
        }
        Ok(())
    }

    /// Removes all groups, which stay charged.
    pub(super) fn take_groups(&mut self) -> Groups {
        Groups {
            groups: std::mem::take(&mut self.groups),
            index: std::mem::take(&mut self.index),
            by_integer: std::mem::take(&mut self.by_integer),
            charged: std::mem::take(&mut self.charged),
        }
    }

    /// Puts groups back that were taken.
    pub(super) fn put_groups(&mut self, Groups { groups, index, by_integer, charged }: Groups) {
        (self.groups, self.index, self.by_integer, self.charged) = (groups, index, by_integer, charged);
    }

    /// Drops all groups.
    pub(super) fn drop_groups(&mut self, ctx: &Context<'_>) {
        let Groups { groups, charged, .. } = self.take_groups();
        let held: usize = groups.iter().flat_map(|group| &group.accumulators).map(|one| one.charged()).sum();
        ctx.memory.release(charged + held);
    }

    /// Drops all groups and feeds the input all rows again.
    pub(super) fn start_over(&mut self, ctx: &Context<'_>) {
        self.drop_groups(ctx);
        self.is_frozen = false;
        if let Some(mut overflow) = self.overflow.take() {
            overflow.clear(ctx);
        }
        self.waiting.clear(ctx);
        self.begin(ctx);
        self.feed_input(Feed::new(Batch::unbound(1, self.slots), 1), ctx);
    }

    pub(super) fn feed_input(&mut self, feed: Feed, ctx: &Context<'_>) {
        match &mut self.source {
            Source::Rows(input) => input.feed(ctx, feed),
            Source::Counted(counted) => counted.feed(ctx, feed),
        }
    }

    /// Feeds the input the rows of one partition of its first scan.
    pub(super) fn feed_partition(&mut self, partition: u16, ctx: &Context<'_>) {
        let feed = Feed {
            partition: Some(partition),
            shared: self.shared.clone(),
            ..Feed::new(Batch::unbound(1, self.slots), 1)
        };
        self.feed_input(feed, ctx);
    }

    fn finish(&mut self, ctx: &Context<'_>) -> Result<Pieces> {
        if self.is_frozen {
            return Ok(Pieces::default());
        }
        self.index.clear();
        self.by_integer.clear();
        let mut groups = std::mem::take(&mut self.groups);
        if self.keys.is_empty() {
            if let [group] = &mut groups[..] {
                self.waiting.finish(&mut group.accumulators, ctx)?;
            }
            groups.retain(|group| {
                let empty = |(item, a): (&AggregateItem, &Accumulator)| item.empty_is_unbound && a.is_empty();
                !self.items.iter().zip(&group.accumulators).any(empty)
            });
        } else if self.origins > 1 {
            groups.sort_by_key(|group| group.origin);
        }
        let mut columns: Vec<Vec<Value>> =
            (0..self.keys.len() + self.items.len()).map(|_| Vec::with_capacity(groups.len())).collect();
        let mut origins = Vec::with_capacity(groups.len());
        for group in groups {
            origins.push(group.origin);
            let values = group.keys.into_iter().chain(group.accumulators.into_iter().map(|a| a.finish(ctx)));
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        ctx.memory.release(std::mem::take(&mut self.charged));
        let mut out = Batch::unbound(origins.len(), self.slots);
        for (slot, column) in self.out_slots().zip(columns) {
            out.set(slot, Column::from_values(column));
        }
        self.yielded(out, origins, ctx)
    }

    fn yielded(&self, mut out: Batch, origins: Vec<u32>, ctx: &Context<'_>) -> Result<Pieces> {
        if self.origins > 1 {
            out.origin = Some(Arc::new(origins));
        }
        let rows = (0..out.len as u32).collect();
        Pieces::new(out, rows, ctx)
    }
}

impl Operator for Aggregate<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        if self.pieces.is_none() {
            self.pieces = Some(self.drain(ctx)?);
        }
        // The groups in memory come first.
        if let Some(batch) = self.pieces.as_mut().and_then(|pieces| pieces.next(want, ctx)) {
            return Ok(Some(batch));
        }
        if let Some(overflow) = self.overflow.take() {
            self.rest = Some(self.rest(overflow, ctx)?);
        }
        self.rest.as_mut().map_or(Ok(None), |rest| rest.next(want, ctx))
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.groups.clear();
        self.index.clear();
        self.by_integer.clear();
        ctx.memory.release(std::mem::take(&mut self.charged));
        if let Some(mut pieces) = self.pieces.take() {
            pieces.clear(ctx);
        }
        self.is_frozen = false;
        if let Some(mut overflow) = self.overflow.take() {
            overflow.clear(ctx);
        }
        if let Some(mut rest) = self.rest.take() {
            rest.clear(ctx);
        }
        self.waiting.clear(ctx);
        self.origins = feed.origins.max(1);
        self.slots = feed.batch.columns.len();
        // Storage counts the vertices of a label faster than threads begin.
        let is_quick =
            matches!(&self.source, Source::Counted(Counted::Vertices(scan)) if !scan.tests_properties());
        self.splits = ctx.helpers.is_some() && feed.is_root() && !is_quick && self.op.split_scan().is_some();
        self.feed_input(feed, ctx);
    }
}
