//! Lowers `Match`: chooses the vertex where a pattern starts, and the order in which its edges are followed.
//!
//! Clauses that follow each other become one pattern first ([`clauses`]).
//! Vertices that an earlier clause bound, or that the query names by id, come first. Then dynamic programming finds the
//! order of the edges that are connected to them, or else the start and the order of the next connected part
//! ([`search`]), from estimates of rows ([`super::estimate`]). Parts with many edges are ordered greedily: from the vertex
//! with the fewest candidates, and then along the edge that multiplies rows least. Each condition is checked as soon as its slots are bound. The scan
//! itself checks those that storage can test ([`conditions`]); their operands may come from earlier rows.

mod clauses;
mod conditions;
mod conjuncts;
mod part;
mod path_search;
mod rim;
mod search;

use super::estimate::Estimate;
use super::{Knowledge, implied};
use crate::op::ScanTest;
use crate::{
    Comparison, Expr, Function, Length, MatchPattern, Op, PatternBody, PatternEdge, PatternNode, Plan,
    ScanCondition, ScanFilter, Slot, Stopped,
};
pub(super) use conditions::test_of;
use conditions::{Tested, is_operand, join};
use conjuncts::Conjuncts;
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_types::{Direction, Str, Value};

/// Lowers every `Match` of the plan.
///
/// # Errors
/// [`Stopped`] if a limit of the knowledge was reached.
pub fn run(plan: &mut Plan, knowledge: &Knowledge<'_>) -> Result<(), Stopped> {
    let mut slots = plan.slots;
    walk(&mut plan.root, knowledge, &mut slots, None)?;
    plan.slots = slots;
    Ok(())
}

/// Lowers an operator and those below it. `used`: the slots that operators above it look at, if they only count its rows.
fn walk(
    op: &mut Op,
    knowledge: &Knowledge<'_>,
    slots: &mut u32,
    used: Option<BTreeSet<Slot>>,
) -> Result<(), Stopped> {
    path_search::run(op, knowledge, slots)?;
    if let Op::Match { input, pattern } = op {
        clauses::join(input, pattern);
    }
    let mut of_input = rim::used_of_input(op, used.as_ref());
    for child in op.children_mut() {
        walk(child, knowledge, slots, of_input.take())?;
    }
    if let Op::Match { .. } = op
        && let Op::Match { input, pattern } = std::mem::replace(op, Op::Argument)
    {
        let mut lowering = Lowering::new(*input, pattern, knowledge, slots);
        lowering.used_above = used;
        *op = lowering.run()?;
    }
    Ok(())
}

struct Lowering<'a> {
    op: Op,
    nodes: Vec<PatternNode>,
    edges: Vec<PatternEdge>,
    pattern_paths: Vec<crate::NamedPath>,
    /// Conditions that are not checked yet.
    conjuncts: Conjuncts,
    /// Slots of this pattern that are not bound yet.
    unbound: BTreeSet<Slot>,
    /// The vertex of each slot.
    node_of: BTreeMap<Slot, usize>,
    /// The edges at each vertex.
    edges_at: Vec<Vec<usize>>,
    node_done: Vec<bool>,
    /// The labels of each vertex, for estimates: those of the pattern, or those of a vertex that was bound before it.
    labels: Vec<Vec<Str>>,
    /// The cost of each vertex as a start, as far as it was estimated since a condition on the vertex became testable.
    starts: Vec<Option<Start>>,
    /// The side to follow each edge from and its cost, estimated anew when one of its ends is bound.
    sides: Vec<Option<(bool, f64)>>,
    /// For each vertex, the ids by which it was looked up, if the query gives them.
    named: Vec<Option<Vec<Str>>>,
    edge_done: Vec<bool>,
    /// The slots that operators above the pattern look at, if they only count its matches.
    used_above: Option<BTreeSet<Slot>>,
    /// The clause of each edge.
    clauses: Vec<u32>,
    /// Slots of the edges, or lists of edges, matched so far, with their labels and their clause.
    used: Vec<(Slot, Vec<Str>, u32)>,
    knowledge: &'a Knowledge<'a>,
    slots: &'a mut u32,
}

/// The cost of a vertex to start from.
#[derive(Clone, Copy)]
struct Start {
    rows: f64,
    work: f64,
    ids: Option<usize>,
}

/// The ids for a look-up of vertices.
struct Ids {
    looked_up: Expr,
    /// The ids, if the query gives them as constants.
    known: Option<Vec<Str>>,
    /// Whether the look-up finds exactly the vertices that pass the condition.
    exact: bool,
}

impl<'a> Lowering<'a> {
    fn new(input: Op, pattern: MatchPattern, knowledge: &'a Knowledge<'a>, slots: &'a mut u32) -> Self {
        let node_slots = pattern.nodes.iter().filter(|n| !n.bound).map(|n| n.slot);
        let edge_slots = pattern.edges.iter().filter(|e| !e.bound).map(|e| e.slot);
        let bodies = pattern.edges.iter().filter_map(|edge| edge.body.as_ref());
        let lists = bodies.flat_map(|body| body.groups.iter().map(|(_, list)| *list));
        let path_slots = pattern.paths.iter().map(|p| p.slot);
        let unbound = node_slots.chain(edge_slots).chain(lists).chain(path_slots).collect();
        let mut conjuncts = Conjuncts::default();
        if let Some(predicate) = pattern.predicate {
            conjuncts.push_all(predicate, &unbound);
        }
        let mut edges_at = vec![vec![]; pattern.nodes.len()];
        for (index, edge) in pattern.edges.iter().enumerate() {
            edges_at[edge.left].push(index);
            edges_at[edge.right].push(index);
        }
        Self {
            op: input,
            node_of: pattern.nodes.iter().enumerate().map(|(index, node)| (node.slot, index)).collect(),
            edges_at,
            node_done: vec![false; pattern.nodes.len()],
            labels: vec![],
            starts: vec![None; pattern.nodes.len()],
            sides: vec![None; pattern.edges.len()],
            named: vec![None; pattern.nodes.len()],
            edge_done: vec![false; pattern.edges.len()],
            nodes: pattern.nodes,
            edges: pattern.edges,
            pattern_paths: pattern.paths,
            conjuncts,
            unbound,
            used_above: None,
            clauses: pattern.clauses,
            used: vec![],
            knowledge,
            slots,
        }
    }

    fn run(mut self) -> Result<Op, Stopped> {
        let limits = self.knowledge.limits;
        let parts = self.nodes.len() + self.edges.len();
        self.labels = self.nodes.iter().map(|node| self.estimated_labels(node)).collect();
        for index in 0..self.nodes.len() {
            if self.nodes[index].bound {
                let slot = self.nodes[index].slot;
                self.filter(Expr::Not(Box::new(Expr::IsNull(Box::new(Expr::Slot(slot))))));
                self.finish_node(index, true);
            }
        }
        self.check();
        // Look up single vertices first: an edge with both ends bound can be followed from the end with fewer edges.
        while let Some(index) = self.next_single() {
            limits.spend(parts)?;
            self.start(index);
        }
        for index in 0..self.edges.len() {
            if self.edges[index].bound && self.edges[index].length.is_none() {
                self.take_bound_edge(index);
            }
        }
        loop {
            // The next edge excludes those before it, and what follows may need them all.
            limits.spend(parts)?;
            limits.charge(2 * self.used.len() * size_of::<Slot>() + size_of::<Op>())?;
            if let Some(next) = self.search(None)? {
                next.edges.into_iter().try_for_each(|index| self.follow(index))?;
            } else if let Some(index) = self.next_edge() {
                self.follow(index)?;
            } else if let Some(index) = self.next_start() {
                let next = self.search(Some(index))?;
                self.start(next.as_ref().and_then(|next| next.start).unwrap_or(index));
                next.into_iter().flat_map(|next| next.edges).try_for_each(|index| self.follow(index))?;
            } else {
                break;
            }
        }
        for path in std::mem::take(&mut self.pattern_paths) {
            self.bind_path(&path);
        }
        self.check();
        Ok(self.op)
    }

    /// Returns the labels of a vertex, for estimates.
    fn estimated_labels(&self, node: &PatternNode) -> Vec<Str> {
        if !node.bound || !node.labels.is_empty() {
            return node.labels.clone();
        }
        implied::labels(&self.op, node.slot, &Estimate::new(self.knowledge))
    }

    fn fresh(&mut self) -> Slot {
        *self.slots += 1;
        Slot(*self.slots - 1)
    }

    fn wrap(&mut self, make: impl FnOnce(Box<Op>) -> Op) {
        let input = std::mem::replace(&mut self.op, Op::Argument);
        self.op = make(Box::new(input));
    }

    fn filter(&mut self, predicate: Expr) {
        self.wrap(|input| match *input {
            Op::Filter { input, predicate: before } => Op::Filter { input, predicate: before.and(predicate) },
            other => Op::Filter { input: Box::new(other), predicate },
        });
    }

    fn ready(&self, expr: &Expr) -> bool {
        let mut ready = true;
        expr.for_each_slot(&mut |slot| ready &= !self.unbound.contains(&slot));
        ready
    }

    /// Checks the conditions whose slots are all bound now.
    fn check(&mut self) {
        let now = self.conjuncts.take_ready();
        if !now.is_empty() {
            self.filter(now.into_iter().reduce(Expr::and).unwrap_or(Expr::And(vec![])));
        }
    }

    /// Adds a condition. The starts at other vertices that it names may cost less from now on.
    fn require(&mut self, condition: Expr) {
        condition.for_each_slot(&mut |slot| {
            if let Some(node) = self.node_of.get(&slot) {
                self.starts[*node] = None;
            }
        });
        self.conjuncts.push_all(condition, &self.unbound);
    }

    /// Notes that a slot is bound now. Conditions that use it may become tests of other vertices.
    fn bind(&mut self, slot: Slot) {
        if !self.unbound.remove(&slot) {
            return;
        }
        for other in self.conjuncts.bind(slot) {
            if let Some(node) = self.node_of.get(&other) {
                self.starts[*node] = None;
            }
        }
    }

    /// Marks a vertex as bound, and checks its labels (unless a scan did) and properties.
    fn finish_node(&mut self, index: usize, check_labels: bool) {
        self.node_done[index] = true;
        let node = self.nodes[index].clone();
        self.bind(node.slot);
        for edge in std::mem::take(&mut self.edges_at[index]) {
            self.sides[edge] = Some(self.cheaper_side(&self.edges[edge]));
            self.edges_at[index].push(edge);
        }
        if check_labels && !node.labels.is_empty() {
            self.filter(Expr::HasLabels(Box::new(Expr::Slot(node.slot)), node.labels));
        }
        // The value of a property may use other slots of the pattern, so that the test becomes a condition.
        for (key, value) in node.properties {
            self.require(equals(Expr::Property(Box::new(Expr::Slot(node.slot)), key), value));
        }
    }

    // ---- starting

    /// Returns the cost of a start at a vertex, from the last estimate if it still holds.
    fn start_of(&mut self, index: usize) -> Start {
        if let Some(known) = self.starts[index] {
            return known;
        }
        let start = self.estimated_start(&self.nodes[index]);
        self.starts[index] = Some(start);
        start
    }

    fn estimated_start(&self, node: &PatternNode) -> Start {
        let mut own = self.conjuncts.of(node.slot);
        if let Some((number, _)) = own.find(|(_, c)| self.id_operand(c, node.slot).is_some()) {
            return Start { rows: 1.0, work: 1.0, ids: Some(number) };
        }
        let estimate = Estimate::new(self.knowledge);
        let all = estimate.vertices(&node.labels);
        let (mut rows, mut work) = (all, all);
        let mut tested = |key: &Str, test: &ScanTest| {
            let (share, by_index) = estimate.share(&node.labels, key, test);
            rows *= share;
            if by_index {
                work = work.min(all * share);
            }
        };
        let equal_to = |value: &Expr| self.ready(value) && is_operand(value);
        for (key, value) in &node.properties {
            tested(
                key,
                &ScanTest::Equals(if equal_to(value) { value.clone() } else { Expr::literal(Value::Null) }),
            );
        }
        for (_, conjunct) in self.conjuncts.of(node.slot) {
            if let Some(found) = test_of(conjunct, node.slot).filter(|found| self.all_ready(&found.test)) {
                tested(&found.key, &found.test);
            }
        }
        let lesson = self.knowledge.lessons.map_or(1.0, |lessons| lessons.of_vertex(node.slot));
        Start { rows: (rows * lesson).min(all), work, ids: None }
    }

    fn all_ready(&self, test: &ScanTest) -> bool {
        test.exprs().into_iter().all(|operand| self.ready(operand))
    }

    fn next_start(&mut self) -> Option<usize> {
        let mut best: Option<(usize, Start)> = None;
        for index in (0..self.nodes.len()).filter(|&i| !self.node_done[i]).collect::<Vec<_>>() {
            let start = self.start_of(index);
            let is_better = |best: &Start| {
                start.rows.total_cmp(&best.rows).then(start.work.total_cmp(&best.work)).is_lt()
            };
            if best.as_ref().is_none_or(|(_, best)| is_better(best)) {
                best = Some((index, start));
            }
        }
        best.map(|(index, _)| index)
    }

    /// Returns an unbound vertex with an edge to follow, whose id a condition gives.
    fn next_single(&self) -> Option<usize> {
        let is_single = |index: &usize| {
            let slot = self.nodes[*index].slot;
            let of_one = |conjunct: &Expr| matches!(conjunct, Expr::Compare(..));
            let mut own = self.conjuncts.of(slot).filter(|(_, conjunct)| of_one(conjunct));
            own.any(|(_, conjunct)| self.id_operand(conjunct, slot).is_some())
        };
        let has_edge = |index: &usize| self.edges_at[*index].iter().any(|edge| !self.edges[*edge].bound);
        (0..self.nodes.len()).filter(|&index| !self.node_done[index]).filter(has_edge).find(is_single)
    }

    fn start(&mut self, index: usize) {
        let node = self.nodes[index].clone();
        let start = self.start_of(index);
        if let Some(number) = start.ids {
            let found = self.conjuncts.get(number).and_then(|conjunct| self.id_operand(conjunct, node.slot));
            if let Some(ids) = found {
                self.named[index] = ids.known;
                self.wrap(|input| Op::LookupVertices { input, ids: ids.looked_up, out: node.slot });
                if ids.exact {
                    self.conjuncts.remove(number);
                }
            }
            self.finish_node(index, true);
        } else {
            let filter = self.filter_of(index);
            self.wrap(|input| Op::ScanVertices { input, out: node.slot, filter, columns: vec![] });
            self.finish_node(index, false);
        }
        self.check();
    }

    /// Returns the ids in `id(slot) = e` or `id(slot) IN e`, if `e` can be computed now.
    fn id_operand(&self, conjunct: &Expr, slot: Slot) -> Option<Ids> {
        let is_id = |e: &Expr| matches!(e, Expr::Call(Function::Id, args) if args[..] == [Expr::Slot(slot)]);
        let (operand, of_list) = match conjunct {
            Expr::Compare(Comparison::Equal, a, b) if is_id(a) => (b, false),
            Expr::Compare(Comparison::Equal, a, b) if is_id(b) => (a, false),
            Expr::In(a, b) if is_id(a) => (b, true),
            _ => return None,
        };
        let known = texts(operand);
        let texts = Expr::Call(Function::IdTexts, vec![(**operand).clone()]);
        let found = |looked_up, exact| Some(Ids { looked_up, known, exact });
        match &**operand {
            // `id(n) = 1` is never true, but a look-up would treat the number as text, so that only text is looked up.
            Expr::Literal(value) if !of_list => value.as_str().and_then(|_| found((**operand).clone(), true)),
            // A client may send an id as a number.
            Expr::Parameter(_) if !of_list => found((**operand).clone(), true),
            // Equal ids in a list are one vertex. An operand from a row may be of any type, so that a filter compares
            // it again.
            other if is_operand(other) && self.ready(other) => found(texts, of_list),
            _ => None,
        }
    }

    /// Returns the filter of a scan for a vertex. Conditions that the scan checks exactly need no further check.
    fn filter_of(&mut self, index: usize) -> ScanFilter {
        let slot = self.nodes[index].slot;
        for (key, value) in std::mem::take(&mut self.nodes[index].properties) {
            self.require(equals(Expr::Property(Box::new(Expr::Slot(slot)), key), value));
        }
        let labels = self.nodes[index].labels.iter().map(|label| vec![label.clone()]).collect();
        let mut filter = ScanFilter { labels, ..ScanFilter::default() };
        let mut checked = vec![];
        for (number, conjunct) in self.conjuncts.of(slot) {
            if let Some(labels) = one_of_labels(conjunct, slot) {
                filter.labels.push(labels);
                checked.push(number);
                continue;
            }
            match test_of(conjunct, slot).filter(|found| self.all_ready(&found.test)) {
                Some(Tested { key, test, exact: None }) => filter.predicates.push((key, test)),
                Some(Tested { key, test, exact: Some(sole) }) => {
                    let new = ScanCondition { key, test, sole, condition: conjunct.clone() };
                    let joined = filter.conditions.iter_mut().any(|there| join(there, &new));
                    if !joined {
                        filter.conditions.push(new);
                    }
                    checked.push(number);
                }
                None => {}
            }
        }
        for number in checked {
            self.conjuncts.remove(number);
        }
        filter
    }

    // ---- edges

    fn next_edge(&self) -> Option<usize> {
        let cost = |index: usize| {
            let edge = &self.edges[index];
            let both = self.node_done[edge.left] && self.node_done[edge.right];
            match (self.edge_done[index], self.sides[index], edge.needs_both_ends()) {
                (true, ..) | (_, None, _) => None,
                // Every edge that may bind one of its ends comes first.
                (_, _, true) => both.then_some(f64::MAX),
                (_, Some((_, rows)), false) => Some(rows * if both { 0.01 } else { 1.0 }),
            }
        };
        let costs = (0..self.edges.len()).filter_map(|index| Some((index, cost(index)?)));
        costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index)
    }

    /// Returns whether an edge with a bound end is better followed from its left end, and the rows for each input row
    /// then.
    fn cheaper_side(&self, edge: &PatternEdge) -> (bool, f64) {
        let estimate = Estimate::new(self.knowledge);
        let rows = |from_left: bool| {
            let from = if from_left { edge.left } else { edge.right };
            let named = self.named[from].as_deref();
            self.node_done[from].then(|| estimate.fan_out(edge, from_left, &self.labels, named))
        };
        match (rows(true), rows(false)) {
            (Some(left), Some(right)) if right < left => (false, right),
            (Some(left), _) => (true, left),
            (None, right) => (false, right.unwrap_or(f64::MAX)),
        }
    }

    fn follow(&mut self, index: usize) -> Result<(), Stopped> {
        let mut edge = self.edges[index].clone();
        // A shortest path is searched from its left end.
        let from_left = match edge.shortest {
            Some(_) => self.node_done[edge.left],
            None => self.sides[index].is_some_and(|(from_left, _)| from_left),
        };
        let (from, to) = if from_left { (edge.left, edge.right) } else { (edge.right, edge.left) };
        let into = self.node_done[to];
        let direction = if from_left { edge.direction } else { edge.direction.reversed() };
        let (from, to_slot) = (self.nodes[from].slot, self.nodes[to].slot);
        // An edge list that an earlier clause bound is compared with the edges found.
        let slot = if edge.bound { self.fresh() } else { edge.slot };
        let labels = edge.labels.clone();
        match (edge.length, edge.shortest) {
            (Some(length), _) if edge.body.is_some() => {
                let exclude = self.may_coincide(index);
                let ends = (from, to_slot, into);
                if let Some(body) = edge.body.take() {
                    self.repeat(*body, length, ends, from_left, slot, exclude)?;
                }
            }
            (Some(length), Some(which)) => {
                let edge_filter = self.edge_filter(&edge);
                self.wrap(|input| Op::ShortestPath {
                    input,
                    from,
                    to: to_slot,
                    direction,
                    labels,
                    length,
                    which,
                    edges: slot,
                    edge_filter,
                });
            }
            (Some(length), None) => {
                let edge_filter = self.edge_filter(&edge);
                let exclude = self.may_coincide(index);
                self.wrap(|input| Op::VarExpand {
                    input,
                    from,
                    direction,
                    labels,
                    length,
                    edges: Some(slot),
                    to: to_slot,
                    into,
                    edge_filter,
                    exclude,
                    ends_only: false,
                });
                if !from_left {
                    let reversed = Expr::Call(Function::Reverse, vec![Expr::Slot(slot)]);
                    self.wrap(|input| Op::Let { input, bindings: vec![(slot, reversed)] });
                }
            }
            (None, _) => {
                self.wrap(|input| Op::Expand {
                    input,
                    from,
                    direction,
                    labels,
                    edge: Some(slot),
                    to: Some(to_slot),
                    into,
                    loops_once: true,
                    keep: None,
                });
                let others = self.may_coincide(index);
                if !others.is_empty() {
                    self.filter(Expr::Unused(slot, others));
                }
                for (key, value) in edge.properties.clone() {
                    self.require(equals(Expr::Property(Box::new(Expr::Slot(slot)), key), value));
                }
            }
        }
        if edge.bound {
            self.filter(equals(Expr::Slot(slot), Expr::Slot(edge.slot)));
        }
        self.used.push((slot, edge.labels, self.clause(index)));
        self.bind(edge.slot);
        self.edge_done[index] = true;
        if !into {
            self.finish_node(to, true);
        }
        self.check();
        Ok(())
    }

    /// Follows a quantified path pattern from one of its ends, which binds that end of each repetition.
    fn repeat(
        &mut self,
        body: PatternBody,
        length: Length,
        (from, to, into): (Slot, Slot, bool),
        from_left: bool,
        edges: Slot,
        exclude: Vec<Slot>,
    ) -> Result<(), Stopped> {
        let PatternBody { mut plan, first, last, steps, groups, selection, repeats } = body;
        let (first, last) = if from_left { (first, last) } else { (last, first) };
        let ends = bind_start(&mut plan, first, last);
        walk(&mut plan, self.knowledge, self.slots, None)?;
        let Some((first, last)) = ends else { return Ok(()) };
        let lists: Vec<Slot> = groups.iter().map(|(_, list)| *list).collect();
        self.wrap(|input| Op::QuantifiedPath {
            input,
            from,
            to,
            into,
            body: Box::new(plan),
            first,
            last,
            steps,
            length,
            reversed: !from_left,
            edges: Some(edges),
            groups,
            exclude,
            repeats,
            selection,
            uses: None,
        });
        lists.into_iter().for_each(|list| self.bind(list));
        Ok(())
    }

    /// Returns the clause of an edge.
    fn clause(&self, index: usize) -> u32 {
        self.clauses.get(index).copied().unwrap_or_default()
    }

    /// Returns the edges, and lists of edges, of the same clause matched so far that may hold the edge that an edge of the
    /// pattern matches.
    fn may_coincide(&self, index: usize) -> Vec<Slot> {
        let (labels, clause) = (&self.edges[index].labels, self.clause(index));
        let others = self.used.iter().filter(|(_, other, of)| *of == clause && overlap(labels, other));
        others.map(|(slot, ..)| *slot).collect()
    }

    /// Whether two edges of the pattern must differ, and could match the same edge otherwise.
    fn may_be_same(&self, a: usize, b: usize) -> bool {
        self.clause(a) == self.clause(b) && overlap(&self.edges[a].labels, &self.edges[b].labels)
    }

    fn edge_filter(&mut self, edge: &PatternEdge) -> Option<(Slot, Box<Expr>)> {
        if edge.properties.is_empty() && edge.filter.is_none() {
            return None;
        }
        let (local, filter) = match edge.filter.clone() {
            Some((local, filter)) => (local, Some(filter)),
            None => (self.fresh(), None),
        };
        let tests = edge.properties.iter().map(|(key, value)| {
            equals(Expr::Property(Box::new(Expr::Slot(local)), key.clone()), value.clone())
        });
        let tests = tests.chain(filter);
        Some((local, Box::new(tests.reduce(Expr::and).unwrap_or(Expr::And(vec![])))))
    }

    /// Takes the ends of an edge that an earlier clause bound, without a search.
    fn take_bound_edge(&mut self, index: usize) {
        let edge = self.edges[index].clone();
        self.edge_done[index] = true;
        let slot = Expr::Slot(edge.slot);
        self.filter(Expr::Not(Box::new(Expr::IsNull(Box::new(slot.clone())))));
        if !edge.labels.is_empty() {
            self.filter(Expr::HasAnyLabel(Box::new(slot.clone()), edge.labels.clone()));
        }
        let call = |function| Expr::Call(function, vec![slot.clone()]);
        let (source, target) = (call(Function::StartNode), call(Function::EndNode));
        let (left, right) = match edge.direction {
            Direction::Out => (source, target),
            Direction::In => (target, source),
            Direction::Both => {
                // Both orders of the ends, but only one for a loop.
                let pair = self.fresh();
                let forward = Expr::List(vec![source.clone(), target.clone()]);
                let backward = Expr::List(vec![target.clone(), source.clone()]);
                let both = Expr::Case {
                    branches: vec![(equals(source, target), Expr::List(vec![forward.clone()]))],
                    otherwise: Box::new(Expr::List(vec![forward, backward])),
                };
                self.wrap(|input| Op::Unwind { input, list: both, out: pair });
                let item = |n: i64| Expr::Index(Box::new(Expr::Slot(pair)), Box::new(Expr::literal(n)));
                (item(0), item(1))
            }
        };
        for (node, end) in [(edge.left, left), (edge.right, right)] {
            let node_slot = self.nodes[node].slot;
            if self.node_done[node] {
                self.filter(equals(Expr::Slot(node_slot), end));
            } else {
                self.wrap(|input| Op::Let { input, bindings: vec![(node_slot, end)] });
                self.finish_node(node, true);
            }
        }
        for (key, value) in edge.properties.clone() {
            self.require(equals(Expr::Property(Box::new(slot.clone()), key), value));
        }
        self.used.push((edge.slot, edge.labels, self.clause(index)));
        self.check();
    }

    fn bind_path(&mut self, path: &crate::NamedPath) {
        let mut at = path.start;
        let mut args = vec![Expr::Slot(self.nodes[at].slot)];
        for &(index, forward) in &path.edges {
            let edge = &self.edges[index];
            let slot = Expr::Slot(edge.slot);
            args.push(if edge.length.is_some() && !forward {
                Expr::Call(Function::Reverse, vec![slot])
            } else {
                slot
            });
            at = if forward { edge.right } else { edge.left };
            args.push(Expr::Slot(self.nodes[at].slot));
        }
        let made = Expr::Call(Function::MakePath, args);
        self.wrap(|input| Op::Let { input, bindings: vec![(path.slot, made)] });
        self.bind(path.slot);
    }
}

/// Whether an edge can have a label of both sets; an empty set stands for all labels.
fn overlap(a: &[Str], b: &[Str]) -> bool {
    a.is_empty() || b.is_empty() || a.iter().any(|label| b.contains(label))
}

/// Marks a vertex of the pattern at the bottom of a plan as bound. Returns the slots of this vertex and of another one.
fn bind_start(plan: &mut Op, first: usize, last: usize) -> Option<(Slot, Slot)> {
    let mut op = plan;
    loop {
        if let Op::Match { pattern, .. } = op {
            let last = pattern.nodes.get(last)?.slot;
            let first = pattern.nodes.get_mut(first)?;
            first.bound = true;
            return Some((first.slot, last));
        }
        op = op.children_mut().into_iter().next()?;
    }
}

/// Returns the labels of `n:A OR n:B`.
fn one_of_labels(conjunct: &Expr, slot: Slot) -> Option<Vec<Str>> {
    let label = |part: &Expr| match part {
        Expr::HasLabels(base, labels) if **base == Expr::Slot(slot) && labels.len() == 1 => {
            labels.first().cloned()
        }
        _ => None,
    };
    match conjunct {
        Expr::Or(parts) if !parts.is_empty() => parts.iter().map(label).collect(),
        _ => None,
    }
}

/// Returns the strings of a constant operand.
fn texts(operand: &Expr) -> Option<Vec<Str>> {
    let text = |expr: &Expr| match expr {
        Expr::Literal(value) => value.as_str().map(Str::from),
        _ => None,
    };
    match operand {
        Expr::List(items) => items.iter().map(text).collect(),
        one => text(one).map(|one| vec![one]),
    }
}

pub(super) fn equals(a: Expr, b: Expr) -> Expr {
    Expr::compare(Comparison::Equal, a, b)
}

#[cfg(test)]
mod tests;
