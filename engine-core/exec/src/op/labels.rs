//! Tests of the labels of many vertices.
//!
//! To read the labels of a vertex takes some dependent reads of memory. So answers are kept while vertices come twice; and
//! once a query has tested many vertices, those that have the labels are scanned into a set, if they are not many more.
//! Nothing is tested where storage knows that the edges which lead to the vertices lead only to those with the labels.
//!
//! What must never happen: a kept answer is used after the request changed the graph, or the scan makes a transaction
//! depend on all vertices with the labels.

use super::compute;
use super::counted::Kept;
use crate::batch::BATCH_ROWS;
use crate::view::ScanState;
use crate::{Context, Result};
use rustc_hash::FxHashSet;
use tidegraph_apl::VertexScan;
use tidegraph_plan::{Expr, Op, Slot};
use tidegraph_types::{Direction, Gui, Str};

/// Tests after which a scan is considered.
const MANY: u64 = 8 * BATCH_ROWS as u64;
/// Vertices with the labels for each test that was made, up to which a scan is worth its cost.
const WORTH_SCANNING: u64 = 16;
/// The part of the memory that is left that the set may take.
const SET_PART: u64 = 8;

/// Operators below a filter that are looked at for the edges to a vertex. A plan may be as deep as a query is long.
const MOST_OPERATORS: usize = 64;

/// A test of labels of the vertices in a slot.
pub(super) struct LabelTest<'p> {
    pub slot: Slot,
    test: &'p Expr,
    labels: &'p [Str],
    /// The edges that lead to every vertex that is tested: their direction from its other end, and their labels.
    led_by: Option<(Direction, &'p [Str])>,
    /// Whether those edges lead only to vertices that pass, once that is known.
    implied: Option<bool>,
    /// 1 for a vertex that passes, else 0.
    answers: Kept,
    /// The vertices that have the labels, once they were scanned.
    members: Option<FxHashSet<Gui>>,
    charged: usize,
    /// Number of tests that were made, and the number at which a scan is considered next.
    tested: u64,
    next_look: u64,
    /// The generation of the view that the answers show.
    generation: u64,
}

impl<'p> LabelTest<'p> {
    /// Makes the test of an expression; `None` if it does anything else than test the labels of a slot.
    pub fn of(test: &'p Expr) -> Option<Self> {
        let Expr::HasLabels(base, labels) = test else { return None };
        let Expr::Slot(slot) = **base else { return None };
        let answers = Kept::default();
        let (members, charged, tested, next_look, generation) = (None, 0, 0, MANY, 0);
        let (led_by, implied) = (None, None);
        Some(Self {
            slot,
            test,
            labels,
            led_by,
            implied,
            answers,
            members,
            charged,
            tested,
            next_look,
            generation,
        })
    }

    /// Says that an edge of one of these labels leads to every vertex that will be tested; no labels: any edge.
    pub fn led_by(mut self, direction: Direction, edge_labels: &'p [Str]) -> Self {
        self.led_by = Some((direction, edge_labels));
        self
    }

    /// Returns whether every vertex passes because of the edges that lead to it. It holds for the rest of the request.
    pub fn is_implied(&mut self, ctx: &Context<'_>) -> bool {
        let Self { led_by, labels, implied, .. } = self;
        *implied.get_or_insert_with(|| {
            led_by.is_some_and(|(direction, edges)| ctx.view.ends_have(direction, edges, labels))
        })
    }

    /// Forgets all answers.
    pub fn clear(&mut self, ctx: &Context<'_>) {
        self.answers.clear(ctx);
        self.members = None;
        ctx.memory.release(std::mem::take(&mut self.charged));
    }

    /// Returns 1 for each vertex that passes and 0 for the others.
    pub fn passes(&mut self, vertices: &[Gui], ctx: &Context<'_>) -> Result<Vec<u64>> {
        if std::mem::replace(&mut self.generation, ctx.view.generation()) != self.generation {
            self.clear(ctx);
        }
        if self.members.is_none() && self.tested >= self.next_look {
            self.next_look = self.tested.saturating_mul(2);
            self.scan(ctx)?;
        }
        if let Some(members) = &self.members {
            return Ok(vertices.iter().map(|vertex| u64::from(members.contains(vertex))).collect());
        }
        let Self { slot, test, answers, tested, .. } = self;
        answers.get(vertices, ctx, |vertices| {
            *tested += vertices.len() as u64;
            compute::test_vertices(*slot, test, vertices, ctx)
        })
    }

    /// Scans the vertices with the labels, if that is worth it and the request does not write.
    fn scan(&mut self, ctx: &Context<'_>) -> Result<()> {
        if ctx.view.is_recording() || ctx.view.is_far() || ctx.view.generation() != 0 {
            return Ok(());
        }
        let tokens = tidegraph_apl::tokens_of(ctx.view.catalog(), self.labels);
        if tokens.len() != self.labels.len() {
            return Ok(());
        }
        let labels = tokens.into_iter().map(|token| vec![token]).collect();
        let scan = VertexScan { labels, predicates: vec![], max_rows: 8 * BATCH_ROWS as u32 };
        let count = ctx.view.count_vertices(&scan, None, &|| ctx.check())?;
        let bytes = count.saturating_mul(2 * size_of::<Gui>() as u64);
        if count > self.tested.saturating_mul(WORTH_SCANNING) || bytes > ctx.memory.left() / SET_PART {
            return Ok(());
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        ctx.memory.charge(bytes)?;
        self.charged += bytes;
        let mut members = FxHashSet::default();
        members.reserve(usize::try_from(count).unwrap_or_default());
        let (mut state, mut found, mut more) = (ScanState::default(), vec![], true);
        while more {
            ctx.check()?;
            found.clear();
            more = ctx.view.scan_vertices(&scan, &mut state, &mut found)?;
            members.extend(found.iter().copied());
        }
        self.answers.clear(ctx);
        self.members = Some(members);
        Ok(())
    }
}

/// Returns the edges of which one leads to the vertex in a slot, in every row of an operator: their direction and labels.
pub(super) fn edges_to(op: &Op, slot: Slot) -> Option<(Direction, &[Str])> {
    let mut op = op;
    for _ in 0..MOST_OPERATORS {
        op = match op {
            Op::Expand { to: Some(to), direction, labels, .. } if *to == slot => {
                return Some((*direction, labels));
            }
            Op::Expand { from, direction, labels, .. } if *from == slot => {
                return Some((direction.reversed(), labels));
            }
            Op::Intersect { arms, to, .. } if *to == slot => {
                return arms.first().map(|arm| (arm.direction, &arm.labels[..]));
            }
            // The slot stays what it was below, unless the operator binds it.
            Op::Expand { input, .. } | Op::Intersect { input, .. } | Op::Filter { input, .. } => input,
            Op::CountEdges { input, out, .. } if *out != slot => input,
            Op::Let { input, bindings } if bindings.iter().all(|(bound, _)| *bound != slot) => input,
            Op::Keep { input, slots } if slots.contains(&slot) => input,
            _ => return None,
        };
    }
    None
}
