//! Searches for the cheapest order in which the edges of a connected pattern are followed.
//!
//! A set of followed edges has the same rows whatever their order: the product of the candidates of its vertices and of
//! the chance that each edge joins its two ends. So dynamic programming over sets of edges finds the best order: each
//! step costs the edges that it looks at, and a set keeps the cheapest way to get there. The chance of an edge comes
//! from the mean degrees of both of its ends. Where two edges of the same kind meet at a vertex, a hub brings more pairs
//! than the mean tells; [`Edge::spread`] is that factor for one of the two.
//!
//! Edges between a new vertex and several that are bound are followed together, too: the executor intersects their lists
//! (`passes/cycles.rs`), so that the rows of the first of them alone are never made.
//!
//! If the matches are only counted, edges at the rim of the pattern need no rows if they come last
//! ([`Graph::order_for_count`]).
//!
//! Source of the approach: Moerkotte and Neumann, "Dynamic programming strikes back", SIGMOD 2008; restricted to orders
//! that grow one connected part, because an expansion needs a bound end.

use tidegraph_types::Str;

/// Largest number of edges for which all sets are tried: 1,024 sets.
pub(super) const MOST_EDGES: usize = 10;

/// Cost of an edge of two lists that are intersected, by that of an edge that becomes a row.
const MERGED: f64 = 0.25;
/// A list that is this many times as long as another one is searched instead of read.
const SEARCHED: f64 = 8.0;

/// A vertex of the pattern.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Whether it is bound before the first edge is followed.
    pub is_bound: bool,
    /// Vertices that pass its own conditions; 1 if it is bound.
    pub rows: f64,
    /// Vertices that a start there looks at.
    pub work: f64,
    /// Whether a candidate has conditions, so that following an edge to it reads it.
    pub is_tested: bool,
}

/// An edge of the pattern.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    /// Its vertices: left and right.
    pub ends: [usize; 2],
    /// Edges looked at when it is followed from its left, and from its right end.
    pub fan: [f64; 2],
    /// Chance that it joins two vertices with the labels of its ends, and passes its own conditions.
    pub chance: f64,
    /// At its left, and at its right end: the factor by which two edges of this kind at one vertex are more, or fewer,
    /// than two independent ones, as a square root.
    pub spread: [f64; 2],
    /// Labels; two edges with the same labels are of one kind.
    pub labels: Vec<Str>,
    /// Whether it is one edge of the graph, so that its list can be intersected with others.
    pub is_plain: bool,
}

/// A condition over two vertices.
#[derive(Clone, Debug)]
pub(super) struct Join {
    pub nodes: [usize; 2],
    /// The share of the pairs that passes.
    pub share: f64,
}

/// A connected pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub joins: Vec<Join>,
}

/// An order: the vertex to start from, unless vertices are bound, and the edges as they are followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Order {
    pub start: Option<usize>,
    pub edges: Vec<usize>,
}

/// The cheapest way to follow a set of edges.
#[derive(Clone, Copy)]
struct Way {
    cost: f64,
    rows: f64,
    /// The edges that were followed last, as a set.
    last: usize,
    /// The vertex where these meet, if they are several.
    meeting: Option<usize>,
    /// The vertex where the way started.
    start: Option<usize>,
}

impl Graph {
    /// Returns the cheapest order; `None` if no edge can be followed, or there are more than [`MOST_EDGES`].
    pub fn order(&self) -> Option<Order> {
        let count = self.edges.len();
        if count == 0 || count > MOST_EDGES {
            return None;
        }
        let mut ways: Vec<Option<Way>> = vec![None; 1 << count];
        let begin = |start| (self.bound(start), 1.0, 0.0, start);
        let starts: Vec<_> = if self.nodes.iter().any(|node| node.is_bound) {
            vec![begin(None)]
        } else {
            let of = |at: usize| (self.bound(Some(at)), self.nodes[at].rows, self.nodes[at].work, Some(at));
            (0..self.nodes.len()).map(of).collect()
        };
        for (bound, rows, cost, start) in starts {
            self.extend(&mut ways, 0, &bound, Way { cost, rows, last: 0, meeting: None, start });
        }
        for set in 1..ways.len() {
            if let Some(way) = ways[set] {
                let mut bound = self.bound(way.start);
                for edge in (0..count).filter(|edge| set & 1 << edge != 0) {
                    self.edges[edge].ends.iter().for_each(|end| bound[*end] = true);
                }
                self.extend(&mut ways, set, &bound, way);
            }
        }
        let (mut set, mut edges) = (ways.len() - 1, vec![]);
        let start = ways[set]?.start;
        while set != 0 {
            let Way { last, meeting, .. } = ways[set]?;
            edges.extend(self.in_order(last, meeting).into_iter().rev());
            set &= !last;
        }
        edges.reverse();
        Some(Order { start, edges })
    }

    /// Returns the cheapest of two orders for a pattern whose matches are only counted: that of [`Self::order`], and one
    /// in which the edges `last` come last, the first of them at the very end. `last` are the edges whose matches can be
    /// counted without rows, as long as no other edges come after them.
    pub fn order_for_count(&self, last: &[usize]) -> Option<Order> {
        let usual = self.order()?;
        let core: Vec<usize> = (0..self.edges.len()).filter(|edge| !last.contains(edge)).collect();
        if last.is_empty() || core.is_empty() {
            return Some(usual);
        }
        let edges = core.iter().map(|edge| self.edges[*edge].clone()).collect();
        let graph = Self { nodes: self.nodes.clone(), edges, joins: self.joins.clone() };
        let Some(order) = graph.order() else { return Some(usual) };
        let edges = order.edges.iter().map(|at| core[*at]).chain(last.iter().rev().copied()).collect();
        let other = Order { start: order.start, edges };
        let at_end = usual.edges.iter().rev().take_while(|edge| last.contains(edge)).count();
        let is_cheaper = self.cost(&other, last.len()) < self.cost(&usual, at_end);
        Some(if is_cheaper { other } else { usual })
    }

    /// Returns the cost of an order whose last edges are counted without rows. `counted`: the number of those.
    fn cost(&self, order: &Order, counted: usize) -> f64 {
        let (mut rows, mut cost) =
            order.start.map_or((1.0, 0.0), |at| (self.nodes[at].rows, self.nodes[at].work));
        let (mut bound, mut set) = (self.bound(order.start), 0);
        let (mut left, last) = order.edges.split_at(order.edges.len().saturating_sub(counted));
        while let [index, others @ ..] = left {
            let (steps, vertex) = self.meeting(*index, others, &bound);
            let (after, looked_at) = match vertex {
                Some(vertex) => self.meet(steps, vertex, set, &bound, rows),
                None => self.follow(*index, set, &bound, rows),
            };
            cost += rows + looked_at;
            rows = after;
            set |= steps;
            self.edges[*index].ends.iter().for_each(|end| bound[*end] = true);
            left = left.get(steps.count_ones() as usize..).unwrap_or_default();
        }
        cost + rows * last.len() as f64
    }

    /// Returns the set of an edge and those after it that end at its new vertex, and this vertex if there are any.
    fn meeting(&self, index: usize, after: &[usize], bound: &[bool]) -> (usize, Option<usize>) {
        let vertex = match self.edges[index].ends {
            [left, right] if bound[left] && !bound[right] => right,
            [left, right] if bound[right] && !bound[left] => left,
            _ => return (1 << index, None),
        };
        let arms = self.arms(vertex, bound);
        if arms & 1 << index == 0 {
            return (1 << index, None);
        }
        let others = after.iter().take_while(|edge| arms & 1 << **edge != 0);
        let steps = others.fold(1 << index, |steps, edge| steps | 1 << edge);
        (steps, (steps != 1 << index).then_some(vertex))
    }

    /// Returns the set of the edges between a vertex and bound ones whose lists can be intersected.
    fn arms(&self, vertex: usize, bound: &[bool]) -> usize {
        let is_arm = |edge: &Edge| {
            let [left, right] = edge.ends;
            edge.is_plain && (left == vertex && bound[right] || right == vertex && bound[left])
        };
        (0..self.edges.len()).filter(|edge| is_arm(&self.edges[*edge])).fold(0, |arms, edge| arms | 1 << edge)
    }

    /// Returns the edges of a set, in the order in which they are followed to the vertex where they meet: the one with the
    /// fewest edges first.
    fn in_order(&self, set: usize, vertex: Option<usize>) -> Vec<usize> {
        let mut edges: Vec<usize> = (0..self.edges.len()).filter(|edge| set & 1 << edge != 0).collect();
        if let Some(vertex) = vertex {
            let fan = |edge: &usize| self.edges[*edge].fan[self.far_end(*edge, vertex)];
            edges.sort_by(|a, b| fan(a).total_cmp(&fan(b)));
        }
        edges
    }

    /// Returns which end of an edge, 0 or 1, is not this vertex.
    fn far_end(&self, edge: usize, vertex: usize) -> usize {
        usize::from(self.edges[edge].ends[0] == vertex)
    }

    /// Returns the rows after edges to a new vertex are followed together, and the edges looked at. Each list is read once
    /// and then kept; a row costs the merge of its lists.
    fn meet(&self, arms: usize, vertex: usize, set: usize, bound: &[bool], rows: f64) -> (f64, f64) {
        let (mut after, mut seen, mut now) = (rows, set, bound.to_vec());
        let (mut read, mut all, mut least) = (0.0, 0.0, f64::INFINITY);
        let edges = self.in_order(arms, Some(vertex));
        for &index in &edges {
            let edge = &self.edges[index];
            let far = self.far_end(index, vertex);
            let list = edge.fan[far] * self.pairs(edge, far, set);
            let node = &self.nodes[edge.ends[far]];
            read += list * if node.is_bound { rows } else { rows.min(node.rows) };
            all += list;
            least = least.min(list);
            (after, _) = self.follow(index, seen, &now, after);
            seen |= 1 << index;
            now[vertex] = true;
        }
        let merged = all.min(SEARCHED * least * edges.len() as f64);
        let tested = if self.nodes[vertex].is_tested { after } else { 0.0 };
        (after, read + MERGED * rows * merged + tested)
    }

    fn bound(&self, start: Option<usize>) -> Vec<bool> {
        (0..self.nodes.len()).map(|at| self.nodes[at].is_bound || start == Some(at)).collect()
    }

    /// Returns the rows after an edge is followed, and the edges looked at.
    fn follow(&self, index: usize, set: usize, bound: &[bool], rows: f64) -> (f64, f64) {
        let edge = &self.edges[index];
        let [left, right] = edge.ends.map(|end| bound[end]);
        let (looked_at, candidates) = match (left, right) {
            // An edge between two bound vertices is looked up, at most by a walk over the edges of one of them.
            (true, true) => (rows * (1.0 + edge.fan[0].min(edge.fan[1]).min(1.0)), 1.0),
            (true, false) => self.steps(edge, 0, set, rows),
            (false, _) => self.steps(edge, 1, set, rows),
        };
        let mut after = rows * candidates * edge.chance * self.pairs(edge, 0, set) * self.pairs(edge, 1, set);
        for join in &self.joins {
            let [a, b] = join.nodes.map(|node| bound[node]);
            let now = join.nodes.map(|node| bound[node] || edge.ends.contains(&node));
            if !(a && b) && now == [true, true] {
                after *= join.share;
            }
        }
        (after, looked_at)
    }

    /// Follows each other edge with a bound end after a set of edges, and all edges to each new vertex together.
    fn extend(&self, ways: &mut [Option<Way>], set: usize, bound: &[bool], way: Way) {
        let mut offer = |last: usize, meeting, (rows, looked_at): (f64, f64)| {
            let cost = way.cost + way.rows + looked_at;
            let into = &mut ways[set | last];
            if into.is_none_or(|known| cost < known.cost) {
                *into = Some(Way { cost, rows, last, meeting, start: way.start });
            }
        };
        for (index, edge) in self.edges.iter().enumerate() {
            if set & 1 << index != 0 || !edge.ends.iter().any(|end| bound[*end]) {
                continue;
            }
            offer(1 << index, None, self.follow(index, set, bound, way.rows));
        }
        for vertex in (0..self.nodes.len()).filter(|vertex| !bound[*vertex]) {
            let arms = self.arms(vertex, bound) & !set;
            if arms.count_ones() > 1 {
                offer(arms, Some(vertex), self.meet(arms, vertex, set, bound, way.rows));
            }
        }
    }

    /// Returns the cost of following an edge from one of its ends, and the candidates at the other one.
    fn steps(&self, edge: &Edge, from: usize, set: usize, rows: f64) -> (f64, f64) {
        let other = &self.nodes[edge.ends[1 - from]];
        let found = rows * edge.fan[from] * self.pairs(edge, from, set);
        (if other.is_tested { 2.0 * found } else { found }, other.rows)
    }

    /// Returns the factor for pairs of this edge and others of its kind that meet at one of its ends.
    fn pairs(&self, edge: &Edge, end: usize, set: usize) -> f64 {
        let vertex = edge.ends[end];
        let mut others = (0..self.edges.len()).filter(|other| set & 1 << other != 0).flat_map(|other| {
            let other = &self.edges[other];
            let meets = (0..2).filter(|at| other.ends[*at] == vertex && other.labels == edge.labels);
            meets.map(|at| other.spread[at])
        });
        match (others.next(), others.next()) {
            (None, _) => 1.0,
            // The second of a kind completes the first pair.
            (Some(first), None) => first * edge.spread[end],
            _ => edge.spread[end],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(rows: f64) -> Node {
        Node { is_bound: false, rows, work: rows, is_tested: false }
    }

    /// An edge of `total` edges between `left` and `right` vertices.
    fn edge(graph: &Graph, left: usize, right: usize, total: f64) -> Edge {
        let rows = [left, right].map(|end| graph.nodes[end].rows);
        Edge {
            ends: [left, right],
            fan: rows.map(|rows| total / rows),
            chance: total / rows[0] / rows[1],
            spread: [1.0; 2],
            labels: vec![format!("{total}").into()],
            is_plain: true,
        }
    }

    fn graph(rows: &[f64], edges: &[(usize, usize, f64)]) -> Graph {
        let mut graph = Graph { nodes: rows.iter().map(|rows| node(*rows)).collect(), ..Graph::default() };
        graph.edges = edges.iter().map(|(left, right, total)| edge(&graph, *left, *right, *total)).collect();
        graph
    }

    #[test]
    fn a_chain_starts_at_its_small_end() {
        let graph = graph(&[1e6, 1e4, 10.0], &[(0, 1, 1e6), (1, 2, 1e4)]);
        assert_eq!(graph.order(), Some(Order { start: Some(2), edges: vec![1, 0] }));
    }

    #[test]
    fn the_fewest_rows_at_the_start_are_not_always_the_cheapest_order() {
        // Ten vertices with a million edges each, or a hundred with one edge each.
        let graph = graph(&[10.0, 1e6, 100.0], &[(0, 1, 1e7), (1, 2, 100.0)]);
        assert_eq!(graph.order(), Some(Order { start: Some(2), edges: vec![1, 0] }));
    }

    #[test]
    fn a_cycle_is_closed_before_it_grows() {
        let graph = graph(&[1e4, 1e4, 1e4, 1e4], &[(2, 3, 1e6), (0, 1, 1e5), (1, 2, 1e5), (2, 0, 1e5)]);
        let order = graph.order().expect("an order");
        assert_eq!(order.edges.last(), Some(&0), "{order:?}");
    }

    #[test]
    fn lists_that_are_intersected_make_no_rows_of_one_of_them() {
        // A thousand buyers and sellers, who know few of each other; each has bought from, or sold to, many shops.
        let edges = [(0, 1, 2e3), (0, 2, 1e5), (1, 2, 1e5)];
        let mut shops = graph(&[1e3, 1e3, 1e4], &edges);
        let intersected = shops.order().expect("an order");
        assert_eq!(intersected.edges[0], 0, "{intersected:?}");
        assert!(shops.cost(&intersected, 0) < 3.5e5);
        // Step by step, the rows of the second step cost more than the lists.
        shops.edges.iter_mut().for_each(|edge| edge.is_plain = false);
        assert!(shops.cost(&intersected, 0) > 7e5);
    }

    #[test]
    fn an_order_whose_last_steps_meet_is_preferred() {
        // Two chains from a to d over b and c: `a` has many edges to both. Followed one by one, the cheapest order goes
        // around the cycle; intersected, the two far ends come first.
        let edges = [(0, 1, 1e6), (0, 2, 1e6), (1, 3, 3e4), (2, 3, 3e4)];
        let cycle = graph(&[1e4, 1e4, 1e4, 1e4], &edges);
        let order = cycle.order().expect("an order");
        let mut last = order.edges[2..].to_vec();
        last.sort_unstable();
        assert_eq!(last, [0, 1], "{order:?}");
    }

    #[test]
    fn the_order_of_writing_does_not_matter() {
        let rows = [1e5, 3e3, 2e4, 700.0, 1e5];
        let edges = [(0, 1, 2e5), (1, 2, 5e4), (2, 3, 9e3), (3, 4, 1e5), (4, 0, 4e5), (1, 3, 1e3)];
        let followed = |edges: &[(usize, usize, f64)]| {
            let order = graph(&rows, edges).order().expect("an order");
            order.edges.into_iter().map(|edge| edges[edge].2 as u64).collect::<Vec<_>>()
        };
        let mut turned = edges;
        let expected = followed(&edges);
        for _ in 0..edges.len() {
            turned.rotate_left(1);
            assert_eq!(followed(&turned), expected);
        }
        turned.reverse();
        assert_eq!(followed(&turned.map(|(left, right, total)| (right, left, total))), expected);
    }

    #[test]
    fn hubs_are_met_late() {
        let mut graph = graph(&[1e4, 1e4, 1e4], &[(0, 1, 1e5), (1, 2, 1e5), (2, 0, 1.5e5)]);
        for (edge, spread) in graph.edges.iter_mut().zip([5.0, 5.0, 1.0]) {
            (edge.spread, edge.labels) = ([spread; 2], vec![format!("{}", spread as u32).into()]);
        }
        // The edges of the first two meet at hubs, so that one of them closes the triangle.
        assert_eq!(graph.order().expect("an order").edges[..2].iter().filter(|edge| **edge == 2).count(), 1);
    }

    #[test]
    fn edges_that_are_only_counted_come_last_if_that_is_cheaper() {
        // Two hops among a thousand vertices, of which one has ten tags; the tags first multiply all later rows.
        let chain = graph(&[1e3, 1e3, 1e3, 1e4], &[(0, 1, 2e4), (1, 2, 2.1e4), (2, 3, 1e4)]);
        let order = chain.order_for_count(&[2]).expect("an order");
        assert_eq!(order.edges.last(), Some(&2));
        assert!(chain.cost(&order, 1) < chain.cost(&order, 0));
        // A start at the only tag saves more.
        let rare = graph(&[1e3, 1e3, 1e3, 1.0], &[(0, 1, 2e4), (1, 2, 2.1e4), (2, 3, 2.0)]);
        assert_eq!(rare.order_for_count(&[2]).expect("an order").start, Some(3));
        // Nothing is left without them.
        assert_eq!(chain.order_for_count(&[2, 1, 0]), chain.order());
        assert_eq!(chain.order_for_count(&[]), chain.order());
    }

    #[test]
    fn bound_vertices_need_no_start() {
        let mut graph = graph(&[1.0, 1e4, 1e4], &[(1, 2, 1e5), (0, 1, 10.0)]);
        graph.nodes[0].is_bound = true;
        assert_eq!(graph.order(), Some(Order { start: None, edges: vec![1, 0] }));
        graph.edges.truncate(1);
        assert_eq!(graph.order(), None);
    }
}
