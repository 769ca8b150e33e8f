//! Vertices where edges of several bound vertices meet: the last steps of a cycle.
//!
//! Each arm has a cache with the edges of the vertices that it has met, sorted by the vertex at the other end. A row is
//! an intersection of one list of each arm: the shortest list leads, and the others are searched forward from where the
//! last search ended, so that a list of many edges costs little beside one of few. Source: Ngo, Porat, Ré and Rudra,
//! "Worst-case optimal join algorithms", PODS 2012; the search is that of Bentley and Yao, "An almost optimal algorithm
//! for unbounded searching", Information Processing Letters 5 (1976).
//!
//! A batch goes step by step instead, as the plan has it too, if the lists to read are much longer than those of the arm
//! that the steps would follow, or do not fit the cache; and always in a view that records what it reads, so that a
//! transaction depends on no more vertices than its text names.
//!
//! What must never happen: a kept list is used after the request changed the graph.

use super::lists::{Lists, count_edges};
use super::walk::Follow;
use super::{Boxed, Feed, Operator, Want};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, Error, Result};
use smallvec::SmallVec;
use std::ops::Range;
use tidegraph_plan::{CountChoices, Op, Slot};
use tidegraph_types::{Edge, Gui, Sid, Value};

/// Edges of the kept lists of one arm, at most.
const MOST_KEPT: u64 = 1 << 20;
/// The part of the memory that is left that the lists of one arm may take.
const KEPT_PART: u64 = 8;
/// A batch goes step by step if the lists to read have more edges than this many times those that the steps would
/// follow...
const WORTH_READING: u64 = 16;
/// ...and than this.
const CHEAP_TO_READ: u64 = 4_096;
/// A list is searched, not walked along, if it is longer than this many times the other one.
const SKEW: usize = 8;
/// Choices, or elements of lists, between two checks whether the request must stop.
const CHECK_EVERY: u64 = 1 << 16;

/// Yields a row for each choice of an edge from each arm that meet at one vertex, or the number of them.
pub(super) struct Intersect<'p> {
    input: Boxed<'p>,
    steps: Boxed<'p>,
    arms: Vec<Arm<'p>>,
    to: Slot,
    count: Option<&'p CountChoices>,
    keep: Option<&'p [Slot]>,
    /// The generation of the view that the lists show.
    generation: u64,
    /// Number of origins of the feed.
    origins: usize,
    current: Current,
    /// What was looked at since the last check.
    looked_at: u64,
    /// Whether the lists outlive the input, which is one partition of several.
    keeps: bool,
}

struct Arm<'p> {
    from: Slot,
    follow: Follow<'p>,
    edge: Option<Slot>,
    lists: Lists,
}

/// What is left of the last input batch.
enum Current {
    Nothing,
    /// The steps yield its rows.
    Steps,
    Rows(Rows),
}

/// A batch whose rows are intersected.
struct Rows {
    batch: Batch,
    /// The rows with a vertex in each arm, and those vertices, arm by arm in each row.
    rows: Vec<u32>,
    ends: Vec<Gui>,
    /// The next of those rows.
    next: usize,
    /// Where lists of the row before meet, and the next choice of the first of them.
    meetings: Vec<Meeting>,
    choice: u64,
    charged: usize,
}

/// A vertex where lists meet: its edges in the list of each arm.
type Meeting = (Gui, SmallVec<[Range<u32>; 2]>);

/// Calls a function for each vertex that two sorted lists share, with its places in both.
fn meet_two(lists: [&[Gui]; 2], mut visit: impl FnMut(Gui, [Range<usize>; 2]) -> Result<()>) -> Result<()> {
    let [left, right] = lists;
    let (mut at, mut other) = (0, 0);
    let skewed = |long: &[Gui], short: &[Gui]| long.len() / SKEW > short.len();
    let (seek_left, seek_right) = (skewed(left, right), skewed(right, left));
    while let (Some(&a), Some(&b)) = (left.get(at), right.get(other)) {
        if a == b {
            let same = |list: &[Gui], from: usize| {
                from + 1 + list[from + 1..].iter().take_while(|gui| **gui == a).count()
            };
            let (end, other_end) = (same(left, at), same(right, other));
            visit(a, [at..end, other..other_end])?;
            (at, other) = (end, other_end);
        } else if seek_left {
            at = seek(left, at, b);
            other += usize::from(b < a);
        } else if seek_right {
            other = seek(right, other, a);
            at += usize::from(a < b);
        } else {
            // Without a branch that cannot be predicted.
            (at, other) = (at + usize::from(a < b), other + usize::from(b < a));
        }
    }
    Ok(())
}

/// Returns the first index from `from` on whose vertex is not below `wanted`: steps that double, then a binary search.
fn seek(list: &[Gui], from: usize, wanted: Gui) -> usize {
    let (mut low, mut step) = (from, 1);
    while list.get(low + step - 1).is_some_and(|gui| *gui < wanted) {
        low += step;
        step *= 2;
    }
    let high = (low + step).min(list.len());
    low.min(high) + list[low.min(high)..high].partition_point(|gui| *gui < wanted)
}

impl<'p> Intersect<'p> {
    pub(super) fn new(input: Boxed<'p>, steps: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::Intersect { arms, to, count, keep, .. } = op else {
            return Err(Error::Plan("not an intersection".to_owned()));
        };
        let looks_at = |index: usize| match count {
            None => true,
            Some(count) => {
                count.except.get(index).is_some_and(|except| !except.is_empty())
                    || count.differ.iter().any(|(a, b)| index == *a || index == *b)
            }
        };
        let arms = arms.iter().enumerate().map(|(index, arm)| {
            let edge = arm.edge.filter(|_| looks_at(index));
            let follow = Follow::new(arm.direction, &arm.labels, arm.loops_once);
            let follow = if edge.is_none() { follow.neighbours_only() } else { follow };
            Arm { from: arm.from, follow, edge, lists: Lists::default() }
        });
        Ok(Self {
            input,
            steps,
            arms: arms.collect(),
            to: *to,
            count: count.as_ref(),
            keep: keep.as_deref(),
            generation: 0,
            origins: 1,
            current: Current::Nothing,
            looked_at: 0,
            keeps: false,
        })
    }

    /// Returns the rows that have a vertex in each arm.
    fn rows(&self, batch: Batch) -> Result<Rows> {
        let (mut rows, mut ends) = (vec![], vec![]);
        let columns: Option<Vec<_>> = self.arms.iter().map(|arm| batch.column(arm.from)).collect();
        for row in 0..batch.len {
            let Some(columns) = &columns else { break };
            let before = ends.len();
            for column in columns {
                match column.vertex(row) {
                    Some(vertex) => ends.push(vertex),
                    None if column.is_null(row) => {}
                    None => return Err(Error::of_type("following an edge", "a vertex", &column.get(row))),
                }
            }
            if ends.len() - before == columns.len() {
                rows.push(row as u32);
            } else {
                ends.truncate(before);
            }
        }
        Ok(Rows { batch, rows, ends, next: 0, meetings: vec![], choice: 0, charged: 0 })
    }

    /// Reads the lists that the rows need, unless step by step is better.
    fn read(&mut self, rows: &Rows, want: Want<'_>, ctx: &Context<'_>) -> Result<bool> {
        if std::mem::replace(&mut self.generation, ctx.view.generation()) != self.generation {
            self.forget(ctx);
        }
        if ctx.view.is_recording() {
            return Ok(false);
        }
        let width = self.arms.len();
        // Who wants few rows may need only the first edges.
        let mut worth = if want.rows < BATCH_ROWS { CHEAP_TO_READ } else { u64::MAX };
        for index in 0..width {
            let arm = &mut self.arms[index];
            let of_arm = || rows.ends.iter().skip(index).step_by(width).copied();
            let mut missing = arm.lists.missing(of_arm());
            let mut edges = count_edges(&mut arm.follow, &missing, ctx)?;
            let room = ctx.memory.left() + arm.lists.charged() as u64;
            let most = MOST_KEPT.min(room / KEPT_PART / Lists::bytes_of_edge(arm.edge.is_some()) as u64);
            if arm.lists.len() + edges > most {
                arm.lists.clear(ctx);
                missing = arm.lists.missing(of_arm());
                edges = count_edges(&mut arm.follow, &missing, ctx)?;
            }
            if edges > most.min(worth) {
                return Ok(false);
            }
            arm.lists.read(&mut arm.follow, arm.edge.is_some(), &missing, &|_, _| true, ctx)?;
            if index == 0 {
                let followed: u64 = of_arm().map(|vertex| arm.lists.range(vertex).len() as u64).sum();
                worth = CHEAP_TO_READ.saturating_add(followed.saturating_mul(WORTH_READING));
            }
        }
        Ok(true)
    }

    /// Calls a function for each vertex where the lists of some vertices meet, with its edges in them.
    fn meet(
        &self,
        ends: &[Gui],
        looked_at: &mut u64,
        mut visit: impl FnMut(Gui, &[Range<u32>]) -> Result<()>,
    ) -> Result<()> {
        let ranges: SmallVec<[Range<u32>; 4]> =
            self.arms.iter().zip(ends).map(|(arm, vertex)| arm.lists.range(*vertex)).collect();
        let lists: SmallVec<[&[Gui]; 4]> =
            self.arms.iter().zip(&ranges).map(|(arm, range)| arm.lists.neighbours(range)).collect();
        if let [left, right] = lists[..] {
            let looked = if left.len().min(right.len()) * SKEW < left.len().max(right.len()) {
                left.len().min(right.len())
            } else {
                left.len() + right.len()
            };
            *looked_at += looked as u64;
            return meet_two([left, right], |vertex, [left, right]| {
                let place = |of: &Range<u32>, range: Range<usize>| {
                    of.start + range.start as u32..of.start + range.end as u32
                };
                visit(vertex, &[place(&ranges[0], left), place(&ranges[1], right)])
            });
        }
        let Some(lead) = (0..lists.len()).min_by_key(|index| lists[*index].len()) else { return Ok(()) };
        *looked_at += lists[lead].len() as u64;
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, lists.len());
        let mut found: SmallVec<[Range<u32>; 4]> = SmallVec::from_elem(0..0, lists.len());
        'candidates: while let Some(&candidate) = lists[lead].get(at[lead]) {
            for index in 0..lists.len() {
                let (list, begin) = (lists[index], &mut at[index]);
                if index != lead {
                    *begin = seek(list, *begin, candidate);
                    match list.get(*begin) {
                        Some(other) if *other == candidate => {}
                        Some(other) => {
                            at[lead] = seek(lists[lead], at[lead], *other);
                            continue 'candidates;
                        }
                        None => return Ok(()),
                    }
                }
            }
            for index in 0..lists.len() {
                let begin = at[index];
                let same = lists[index][begin..].iter().take_while(|gui| **gui == candidate).count();
                at[index] = begin + same;
                let first = ranges[index].start + begin as u32;
                found[index] = first..first + same as u32;
            }
            visit(candidate, &found)?;
        }
        Ok(())
    }

    /// Returns the rows of the current batch that have choices, with their number.
    fn count_rows(&mut self, rows: &Rows, count: &CountChoices, ctx: &Context<'_>) -> Result<Option<Batch>> {
        let width = self.arms.len();
        let mut looked_at = std::mem::take(&mut self.looked_at);
        let (mut out_rows, mut counts) = (vec![], vec![]);
        let mut barred = Barred { except: vec![SmallVec::new(); width], ..Barred::default() };
        for (row, ends) in rows.rows.iter().zip(rows.ends.chunks_exact(width)) {
            barred.set(&rows.batch, *row, ends, count);
            let (mut total, mut chosen_from) = (0_u64, 0_u64);
            self.meet(ends, &mut looked_at, |vertex, ranges| {
                let found = if barred.concern(vertex) {
                    self.choices(ranges, &barred, &mut SmallVec::new(), &mut chosen_from, ctx)?
                } else {
                    ranges.iter().map(|range| range.len() as u64).fold(1, u64::saturating_mul)
                };
                total = total.saturating_add(found);
                Ok(())
            })?;
            if total > 0 {
                out_rows.push(*row);
                counts.push(Value::Long(i64::try_from(total).unwrap_or(i64::MAX)));
            }
            if looked_at >= CHECK_EVERY {
                looked_at = 0;
                ctx.check()?;
            }
        }
        self.looked_at = looked_at;
        Ok((!out_rows.is_empty()).then(|| {
            let mut out = match self.keep {
                Some(keep) => rows.batch.gather_slots(&out_rows, keep),
                None => rows.batch.gather(&out_rows),
            };
            out.set(count.out, Column::Values(counts));
            out
        }))
    }

    /// Counts the choices of an edge for each of the other arms.
    fn choices(
        &self,
        ranges: &[Range<u32>],
        barred: &Barred,
        chosen: &mut SmallVec<[Sid; 4]>,
        looked_at: &mut u64,
        ctx: &Context<'_>,
    ) -> Result<u64> {
        let index = chosen.len();
        let (Some(range), Some(arm)) = (ranges.get(index), self.arms.get(index)) else { return Ok(1) };
        if arm.edge.is_none() {
            chosen.push(Sid::default());
            let others = self.choices(ranges, barred, chosen, looked_at, ctx)?;
            chosen.pop();
            return Ok(others.saturating_mul(range.len() as u64));
        }
        let mut total = 0_u64;
        for edge in arm.lists.edges(range) {
            *looked_at += 1;
            if looked_at.is_multiple_of(CHECK_EVERY) {
                ctx.check()?;
            }
            let is_taken = barred.differ.iter().any(|(a, b)| match (*a == index, *b == index) {
                (true, _) => chosen.get(*b) == Some(&edge.sid),
                (_, true) => chosen.get(*a) == Some(&edge.sid),
                _ => false,
            });
            if is_taken || barred.except[index].contains(&edge.sid) {
                continue;
            }
            chosen.push(edge.sid);
            total = total.saturating_add(self.choices(ranges, barred, chosen, looked_at, ctx)?);
            chosen.pop();
        }
        Ok(total)
    }

    /// Returns the next rows of the current batch; none at its end.
    fn take(&mut self, rows: &mut Rows, want: Want<'_>, ctx: &Context<'_>) -> Result<Option<Batch>> {
        let width = self.arms.len();
        let limit = want.rows.min(BATCH_ROWS);
        let mut looked_at = std::mem::take(&mut self.looked_at);
        let (mut out_rows, mut to) = (vec![], vec![]);
        let mut edges: Vec<Vec<Edge>> = vec![vec![]; width];
        while out_rows.len() < limit {
            let Some((vertex, ranges)) = rows.meetings.last() else {
                let Some(&row) = rows.rows.get(rows.next) else { break };
                let ends = &rows.ends[rows.next * width..(rows.next + 1) * width];
                rows.next += 1;
                if want.wants(rows.batch.origin_of(row as usize)) {
                    let meetings = &mut rows.meetings;
                    self.meet(ends, &mut looked_at, |vertex, ranges| {
                        meetings.push((vertex, ranges.iter().cloned().collect()));
                        Ok(())
                    })?;
                    meetings.reverse();
                    let bytes = meetings.capacity() * size_of::<Meeting>();
                    if bytes > rows.charged {
                        ctx.memory.charge(bytes - rows.charged)?;
                        rows.charged = bytes;
                    }
                }
                if looked_at >= CHECK_EVERY {
                    looked_at = 0;
                    ctx.check()?;
                }
                continue;
            };
            let at = rows.next - 1;
            out_rows.push(rows.rows[at]);
            to.push(*vertex);
            let mut choice = rows.choice;
            for (index, range) in ranges.iter().enumerate().rev() {
                let (nth, rest) = (choice % range.len() as u64, choice / range.len() as u64);
                choice = rest;
                let arm = &self.arms[index];
                if arm.edge.is_some() {
                    let edge = arm.lists.edges(range)[nth as usize];
                    edges[index].push(edge.edge(rows.ends[at * width + index], *vertex));
                }
            }
            rows.choice += 1;
            if rows.choice >= ranges.iter().map(|range| range.len() as u64).product() {
                rows.choice = 0;
                rows.meetings.pop();
            }
        }
        self.looked_at = looked_at;
        Ok((!out_rows.is_empty()).then(|| {
            let mut out = match self.keep {
                Some(keep) => rows.batch.gather_slots(&out_rows, keep),
                None => rows.batch.gather(&out_rows),
            };
            out.set(self.to, Column::Vertices(to));
            for (arm, edges) in self.arms.iter().zip(edges) {
                if let Some(edge) = arm.edge {
                    out.set(edge, Column::Edges(edges));
                }
            }
            out
        }))
    }

    fn forget(&mut self, ctx: &Context<'_>) {
        self.arms.iter_mut().for_each(|arm| arm.lists.clear(ctx));
    }

    /// Gives back what the current batch holds.
    fn leave(&mut self, ctx: &Context<'_>) {
        if let Current::Rows(rows) = std::mem::replace(&mut self.current, Current::Nothing) {
            ctx.memory.release(rows.charged);
        }
    }

    /// Returns the next rows of the current batch; none at its end.
    fn go_on(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => Ok(None),
            Current::Steps => {
                let batch = self.steps.next(ctx, want)?;
                if batch.is_some() {
                    self.current = Current::Steps;
                }
                Ok(batch)
            }
            Current::Rows(mut rows) => {
                if let Some(count) = self.count {
                    return self.count_rows(&rows, count, ctx);
                }
                let batch = self.take(&mut rows, want, ctx);
                self.current = Current::Rows(rows);
                if !matches!(batch, Ok(Some(_))) {
                    self.leave(ctx);
                }
                batch
            }
        }
    }
}

/// Which edges the arms of a row must not use.
#[derive(Default)]
struct Barred {
    /// For each arm, edges that it must not use.
    except: Vec<SmallVec<[Sid; 4]>>,
    /// The vertices where the arms meet those edges.
    at: SmallVec<[Gui; 4]>,
    /// Pairs of arms that could use one edge and must not: those of one vertex, because an edge has two ends, and one of
    /// them is where the arms meet.
    differ: SmallVec<[(usize, usize); 2]>,
}

impl Barred {
    fn set(&mut self, batch: &Batch, row: u32, ends: &[Gui], count: &CountChoices) {
        self.at.clear();
        for ((except, slots), vertex) in self.except.iter_mut().zip(&count.except).zip(ends) {
            except.clear();
            let mut add = |edge: Edge| {
                if edge.source == *vertex || edge.target == *vertex {
                    except.push(edge.sid);
                    self.at.push(if edge.source == *vertex { edge.target } else { edge.source });
                }
            };
            for column in slots.iter().filter_map(|slot| batch.column(*slot)) {
                match column.edge(row as usize) {
                    Some(edge) => add(edge),
                    None => {
                        let value = column.get(row as usize);
                        value.as_slice().into_iter().flatten().filter_map(Value::as_edge).for_each(&mut add);
                    }
                }
            }
        }
        self.differ.clear();
        self.differ.extend(count.differ.iter().filter(|(a, b)| ends[*a] == ends[*b]).copied());
    }

    /// Whether an arm may not use some edge to a vertex.
    fn concern(&self, vertex: Gui) -> bool {
        !self.differ.is_empty() || self.at.contains(&vertex)
    }
}

impl Operator for Intersect<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(out) = self.go_on(ctx, want)? {
                return Ok(Some(out));
            }
            let Some(batch) = self.input.next(ctx, want)? else {
                if !self.keeps {
                    self.forget(ctx);
                }
                return Ok(None);
            };
            let rows = self.rows(batch)?;
            let width = self.arms.len();
            let mut can_match = !rows.rows.is_empty();
            for (index, arm) in self.arms.iter_mut().enumerate() {
                let of_arm: Vec<Gui> = rows.ends.iter().skip(index).step_by(width).copied().collect();
                can_match &= arm.follow.resolve(&of_arm, ctx);
            }
            if !can_match {
                continue;
            }
            self.current = if self.read(&rows, want, ctx)? {
                Current::Rows(rows)
            } else {
                let feed = Feed::new(rows.batch, self.origins);
                self.steps.feed(ctx, feed);
                Current::Steps
            };
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        self.leave(ctx);
        self.origins = feed.origins;
        if std::mem::replace(&mut self.keeps, feed.partition.is_some()) && !self.keeps {
            self.forget(ctx);
        }
        self.input.feed(ctx, feed);
    }
}
