//! Shared by all operators that follow edges: label tokens, and conditions on edges.

use super::compute;
use crate::{Batch, Column, Context, Result};
use tidegraph_apl::Expand;
use tidegraph_plan::{Expr, Slot};
use tidegraph_types::{Direction, Edge, Gui, Sid, Str, Value};

/// Which edges to follow.
pub(super) struct Follow<'p> {
    labels: &'p [Str],
    request: Expand,
    /// Whether the graph has all the labels; it never loses one.
    resolved: bool,
}

impl<'p> Follow<'p> {
    pub(super) fn new(direction: Direction, labels: &'p [Str], loops_once: bool) -> Self {
        let request = Expand { loops_once, ..Expand::all(direction) };
        Self { labels, request, resolved: labels.is_empty() }
    }

    /// Asks only for the vertices at the other ends, not for the edges.
    pub(super) fn neighbours_only(mut self) -> Self {
        self.request.neighbours_only = true;
        self
    }

    /// Looks up the labels; returns `false` if no edge can match.
    pub(super) fn resolve(&mut self, frontier: &[Gui], ctx: &Context<'_>) -> bool {
        if !self.resolved {
            let tokens = tidegraph_apl::tokens_of(ctx.view.catalog(), self.labels);
            self.resolved = tokens.len() == self.labels.len();
            self.request.labels = Some(tokens);
        }
        if !self.resolved {
            ctx.view.record_unknown_edge_label(self.request.direction, frontier);
        }
        self.request.labels.as_ref().is_none_or(|tokens| !tokens.is_empty())
    }

    /// Returns the request for at most `max_rows` rows.
    pub(super) fn request(&mut self, max_rows: usize) -> &Expand {
        self.request.max_rows = u32::try_from(max_rows.max(1)).unwrap_or(u32::MAX);
        &self.request
    }

    /// Whether edges are followed in one direction only.
    pub(super) fn is_directed(&self) -> bool {
        self.request.direction != Direction::Both
    }

    /// Whether an edge is among those that are followed from a vertex.
    pub(super) fn follows(&self, edge: Edge, from: Gui) -> bool {
        let is_labelled = self.request.labels.as_ref().is_none_or(|labels| labels.contains(&edge.label));
        is_labelled
            && match self.request.direction {
                Direction::Out => edge.source == from,
                Direction::In => edge.target == from,
                Direction::Both => edge.source == from || edge.target == from,
            }
    }

    /// Returns the same edges, followed from their other ends.
    pub(super) fn reversed(&self) -> Self {
        let request = Expand { direction: self.request.direction.reversed(), ..self.request.clone() };
        Self { labels: self.labels, request, resolved: self.resolved }
    }
}

/// Whether a row holds an edge in one of these slots, each of which has an edge or a list of edges.
pub(super) fn holds_edge(batch: &Batch, slots: &[Slot], row: u32, sid: Sid) -> bool {
    slots.iter().filter_map(|slot| batch.column(*slot)).any(|column| match &**column {
        Column::Edges(edges) => edges[row as usize].sid == sid,
        other => match other.get(row as usize) {
            Value::List(items) => items.iter().any(|v| v.as_edge().is_some_and(|e| e.sid == sid)),
            value => value.as_edge().is_some_and(|e| e.sid == sid),
        },
    })
}

/// A predicate that each edge must satisfy: local slot of the edge, predicate.
pub(super) struct EdgeFilter<'p> {
    slot: Slot,
    predicate: &'p Expr,
    /// The other slots that the predicate uses.
    uses: Vec<Slot>,
}

impl<'p> EdgeFilter<'p> {
    pub(super) fn new(filter: &'p (Slot, Box<Expr>)) -> Self {
        let mut uses = vec![];
        filter.1.for_each_slot(&mut |slot| {
            if slot != filter.0 && !uses.contains(&slot) {
                uses.push(slot);
            }
        });
        Self { slot: filter.0, predicate: &filter.1, uses }
    }

    /// Returns which of the edges pass; `rows` are their outer rows.
    pub(super) fn passing(
        &self,
        outer: &Batch,
        rows: &[u32],
        edges: Vec<Edge>,
        ctx: &Context<'_>,
    ) -> Result<Vec<u32>> {
        if edges.is_empty() {
            return Ok(vec![]);
        }
        let mut batch = outer.gather_slots(rows, &self.uses);
        batch.set(self.slot, Column::Edges(edges));
        compute::filter(self.predicate, &batch, ctx)
    }
}
