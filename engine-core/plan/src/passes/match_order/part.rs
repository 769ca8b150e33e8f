//! The part of a pattern that is connected to a bound vertex, or to the vertex where the next part starts, as the graph
//! that [`super::search`] orders.

use super::Lowering;
use super::search::{Edge, Graph, Join, MOST_EDGES, Node, Order};
use crate::passes::estimate::Estimate;
use crate::{Comparison, Expr, Function, Slot, Stopped};
use std::collections::BTreeMap;

/// Share of the pairs of vertices that an equality between them is assumed to pass.
const JOINED: f64 = 0.05;
/// Share of the edges that a condition on an edge is assumed to pass.
const EDGE_CONDITION: f64 = 0.2;

/// What is followed next: vertices and edges by their numbers in the pattern.
pub(super) struct Next {
    pub start: Option<usize>,
    pub edges: Vec<usize>,
}

impl Lowering<'_> {
    /// Searches the order of the edges that are connected to the bound vertices or, if there are none, to a vertex.
    /// `None` if there are no such edges, or too many for a search.
    ///
    /// # Errors
    /// [`Stopped`] if a limit of the knowledge was reached.
    pub(super) fn search(&mut self, start: Option<usize>) -> Result<Option<Next>, Stopped> {
        let Some((edges, nodes)) = self.part(start) else { return Ok(None) };
        self.knowledge.limits.spend(2 * (1 << edges.len()) * edges.len())?;
        let graph = self.graph(&edges, &nodes);
        let rim: Vec<usize> =
            self.rim(&edges).iter().filter_map(|edge| edges.iter().position(|of| of == edge)).collect();
        Ok(graph.order_for_count(&rim).map(|Order { start, edges: order }| {
            let of_node = |at: usize| nodes.iter().find(|(_, number)| **number == at).map(|(node, _)| *node);
            Next { start: start.and_then(of_node), edges: order.into_iter().map(|at| edges[at]).collect() }
        }))
    }

    /// Returns the edges of the part, and its vertices with their numbers in it.
    fn part(&self, start: Option<usize>) -> Option<(Vec<usize>, BTreeMap<usize, usize>)> {
        let mut found = BTreeMap::new();
        let mut edges = vec![];
        let mut waiting: Vec<usize> = match start {
            Some(start) => vec![start],
            None => (0..self.nodes.len()).filter(|node| self.node_done[*node]).collect(),
        };
        let mut seen = vec![false; self.nodes.len()];
        waiting.iter().for_each(|node| seen[*node] = true);
        while let Some(node) = waiting.pop() {
            for &index in &self.edges_at[node] {
                let edge = &self.edges[index];
                if self.edge_done[index] || edge.needs_both_ends() || edges.contains(&index) {
                    continue;
                }
                edges.push(index);
                if edges.len() > MOST_EDGES {
                    return None;
                }
                for end in [edge.left, edge.right] {
                    if !std::mem::replace(&mut seen[end], true) {
                        waiting.push(end);
                    }
                }
            }
        }
        // Numbers do not depend on where the walk began.
        edges.sort_unstable();
        for edge in &edges {
            for end in [self.edges[*edge].left, self.edges[*edge].right] {
                let number = found.len();
                found.entry(end).or_insert(number);
            }
        }
        (!edges.is_empty()).then_some((edges, found))
    }

    fn graph(&mut self, edges: &[usize], numbers: &BTreeMap<usize, usize>) -> Graph {
        let mut by_number: Vec<(usize, usize)> =
            numbers.iter().map(|(node, number)| (*number, *node)).collect();
        by_number.sort_unstable();
        let nodes = by_number.into_iter().map(|(_, node)| self.part_node(node)).collect();
        let edges: Vec<Edge> = edges.iter().map(|edge| self.part_edge(*edge, numbers)).collect();
        let joins = self.joins(numbers);
        Graph { nodes, edges, joins }
    }

    fn part_node(&mut self, index: usize) -> Node {
        if self.node_done[index] {
            return Node { is_bound: true, rows: 1.0, work: 0.0, is_tested: false };
        }
        let start = self.start_of(index);
        let node = &self.nodes[index];
        let is_tested = !node.labels.is_empty()
            || !node.properties.is_empty()
            || self.conjuncts.of(node.slot).next().is_some();
        Node { is_bound: false, rows: start.rows, work: start.work, is_tested }
    }

    fn part_edge(&self, index: usize, numbers: &BTreeMap<usize, usize>) -> Edge {
        let edge = &self.edges[index];
        let estimate = Estimate::new(self.knowledge);
        let fan = [true, false].map(|from_left| {
            let from = if from_left { edge.left } else { edge.right };
            estimate.fan_out(edge, from_left, &self.labels, self.named[from].as_deref())
        });
        let slots = [edge.left, edge.right].map(|end| self.nodes[end].slot);
        let lessons = [(slots[0], slots[1]), (slots[1], slots[0])]
            .map(|(from, to)| self.knowledge.lessons.map_or(1.0, |lessons| lessons.of_edge(from, to)));
        // Whichever end it was followed from, the rows were those of both.
        let [of_left, of_right] = lessons;
        let lesson = if of_left == 1.0 { of_right } else { of_left };
        let conditions = edge.properties.len() + self.conjuncts.of(edge.slot).count();
        Edge {
            ends: [edge.left, edge.right].map(|end| numbers.get(&end).copied().unwrap_or_default()),
            fan: [fan[0] * of_left, fan[1] * of_right],
            chance: estimate.chance(edge, fan) * lesson * EDGE_CONDITION.powi(conditions.min(3) as i32),
            spread: [true, false].map(|at_left| estimate.spread(edge, at_left, &self.labels)),
            labels: edge.labels.clone(),
            is_plain: edge.length.is_none() && edge.body.is_none() && edge.shortest.is_none() && !edge.bound,
        }
    }

    /// Returns the equalities between two vertices of the part.
    fn joins(&self, numbers: &BTreeMap<usize, usize>) -> Vec<Join> {
        let mut joins = vec![];
        for (&node, &number) in numbers {
            for (_, condition) in self.conjuncts.of(self.nodes[node].slot) {
                let Expr::Compare(Comparison::Equal, a, b) = condition else { continue };
                let ends = [a, b].map(|side| Some(*numbers.get(self.node_of.get(&vertex_of(side)?)?)?));
                // Each of them is found at both of its vertices.
                if let [Some(a), Some(b)] = ends
                    && a.min(b) == number
                    && a != b
                {
                    joins.push(Join { nodes: [a, b], share: JOINED });
                }
            }
        }
        joins
    }
}

/// Returns the slot of the vertex in `n.key` or `id(n)`.
fn vertex_of(expr: &Expr) -> Option<Slot> {
    match expr {
        Expr::Property(base, _) => vertex_of(base),
        Expr::Call(Function::Id, args) => vertex_of(args.first()?),
        Expr::Slot(slot) => Some(*slot),
        _ => None,
    }
}
