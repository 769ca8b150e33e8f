//! Conditions on a shortest path of the same MATCH.
//!
//! A condition on each relationship (`all(r IN relationships(p) WHERE …)`) goes into the search. For any other condition
//! the shortest path that satisfies it may be longer than the one that a search finds: then the paths of each length are
//! enumerated, the short ones first, until some satisfy it.

use super::Lowering;
use super::matching::Conditions;
use super::pattern::{Matched, renamed, require};
use crate::fault::{Fault, Result};
use tidegraph_plan::{
    BindKind, Comparison, Expr, Function, Length, MatchPattern, NamedPath, Op, PatternBody, PatternEdge,
    Quantifier, Shortest, Slot, SortKey, TotalOrder,
};

/// Lengths that are tried one by one, before all longer paths are compared.
const LENGTHS: u32 = 24;

impl Lowering<'_> {
    /// Returns a plan with a row for each match of a pattern with shortest paths.
    pub(super) fn shortest_rows(&mut self, input: Op, mut matched: Matched, place: u32) -> Result<Op> {
        let mut conditions = matched.conditions;
        let shortest = searched(&matched.pattern);
        let mut about = vec![];
        for condition in conditions.take_plain() {
            let Some(edge) = edge_of(&condition, &matched.pattern, &shortest) else {
                require(&mut matched.pattern, condition);
                continue;
            };
            match each_edge(&condition, &matched.pattern, edge) {
                Some((item, test)) => add_filter(&mut matched.pattern.edges[edge], item, test),
                None => about.push((edge, condition)),
            }
        }
        let named = |edge: &usize| self.may_be_named(&matched.pattern, *edge);
        let with_subqueries = conditions.have_subqueries() && shortest.iter().any(named);
        if about.is_empty() && !with_subqueries {
            let op = self.op(Op::Match { input: Box::new(input), pattern: matched.pattern })?;
            return self.filter(op, conditions);
        }
        let [edge] = shortest[..] else {
            let construct = "WHERE on one of several shortest paths of the same MATCH (put WITH between)";
            return Err(Fault::unsupported(place, construct));
        };
        let about = about.into_iter().map(|(_, condition)| condition).collect();
        self.enumerated(input, matched.pattern, edge, about, conditions)
    }

    /// Whether conditions can name the path, or the relationships, of a shortest path.
    fn may_be_named(&self, pattern: &MatchPattern, edge: usize) -> bool {
        let slot = pattern.edges[edge].slot;
        self.scope.iter().any(|variable| variable.slot == slot)
            || pattern.paths.iter().any(|path| path.edges.iter().any(|(at, _)| *at == edge))
    }

    /// Finds the rest of the pattern first, and then for each of its rows the paths in the order of their lengths.
    fn enumerated(
        &mut self,
        input: Op,
        mut pattern: MatchPattern,
        at: usize,
        about: Vec<Expr>,
        conditions: Conditions,
    ) -> Result<Op> {
        let mut edge = pattern.edges.remove(at);
        let Some(which) = edge.shortest.take() else { return Ok(input) };
        let has_edge = |path: &NamedPath| path.edges.iter().any(|(edge, _)| *edge == at);
        let (own, mut others): (Vec<_>, Vec<_>) = pattern.paths.drain(..).partition(has_edge);
        for (index, _) in others.iter_mut().flat_map(|path| &mut path.edges) {
            *index -= usize::from(*index > at);
        }
        pattern.paths = others;
        let mut ends = [pattern.nodes[edge.left].clone(), pattern.nodes[edge.right].clone()];
        for end in &mut ends {
            end.bound = true;
            end.labels.clear();
            end.properties.clear();
        }
        let is_loop = edge.left == edge.right;
        let (left, right) = (0, usize::from(!is_loop));
        (edge.left, edge.right) = (left, right);
        let rest = self.op(Op::Match { input: Box::new(input), pattern })?;

        let mut inner = MatchPattern { nodes: ends.into(), ..MatchPattern::default() };
        inner.nodes.truncate(right + 1);
        inner.paths =
            own.into_iter().map(|path| NamedPath { start: left, edges: vec![(0, true)], ..path }).collect();
        for condition in about {
            require(&mut inner, condition);
        }
        let Length { min, max } = edge.length.unwrap_or(Length { min: 1, max: Some(1) });
        let slot = edge.slot;
        inner.edges = vec![edge];
        // The plans of the lengths differ in nothing else.
        let mut any_length = self.op(Op::Match { input: Box::new(Op::Argument), pattern: inner })?;
        any_length = self.filter(any_length, conditions)?;
        let last = max.unwrap_or(u32::MAX);
        let bytes = weight(&any_length);
        let mut branches = vec![];
        let tried = last.min(min.saturating_add(LENGTHS - 1));
        for length in min..=tried {
            self.limits.charge(bytes)?;
            let mut paths = any_length.clone();
            set_length(&mut paths, Length { min: length, max: Some(length) });
            branches.push(if which == Shortest::One { first_row(paths) } else { paths });
        }
        if tried < last {
            set_length(&mut any_length, Length { min: tried + 1, max });
            branches.push(self.shortest_of(any_length, slot, which)?);
        }
        self.op(Op::Coalesce { input: Box::new(rest), branches })
    }

    /// Returns the rows of a plan with the shortest list in `edges`: one of them, or all.
    fn shortest_of(&mut self, plan: Op, edges: Slot, which: Shortest) -> Result<Op> {
        let length = || Expr::Call(Function::Size, vec![Expr::Slot(edges)]);
        let keys = vec![SortKey { expr: length(), order: TotalOrder::OpenCypher, descending: false }];
        let all = plan.clone();
        let sorted = Op::Sort { input: Box::new(plan), keys };
        if which == Shortest::One {
            return self.op(first_row(sorted));
        }
        let (found, least) = (self.slot(), self.slot());
        let measured = Op::Let { input: Box::new(sorted), bindings: vec![(found, length())] };
        let (input, plan) = (Box::new(Op::Argument), Box::new(measured));
        let bind = self.op(Op::Bind { input, plan, out: least, kind: BindKind::First(found) })?;
        let (input, plan) = (Box::new(bind), Box::new(all));
        let rows = self.op(Op::Apply { input, plan, kind: tidegraph_plan::ApplyKind::Cross })?;
        let predicate = Expr::compare(Comparison::Equal, length(), Expr::Slot(least));
        self.op(Op::Filter { input: Box::new(rows), predicate })
    }
}

/// Returns about how many bytes a plan takes.
fn weight(op: &Op) -> usize {
    fn of_expr(expr: &Expr) -> usize {
        size_of::<Expr>() + expr.children().into_iter().map(of_expr).sum::<usize>()
    }
    let pattern = match op {
        Op::Match { pattern, .. } => pattern.predicate.as_ref().map_or(0, of_expr),
        _ => 0,
    };
    let exprs: usize = op.exprs().into_iter().map(of_expr).sum();
    size_of::<Op>() + pattern + exprs + op.children().into_iter().map(weight).sum::<usize>()
}

fn first_row(plan: Op) -> Op {
    Op::Slice { input: Box::new(plan), skip: None, limit: Some(Expr::literal(1_i64)) }
}

/// Sets the length of the only edge of the pattern at the bottom of a plan.
fn set_length(plan: &mut Op, length: Length) {
    let mut op = plan;
    loop {
        if let Op::Match { pattern, .. } = op {
            if let [edge] = &mut pattern.edges[..] {
                edge.length = Some(length);
            }
            return;
        }
        let Some(input) = op.children_mut().into_iter().next() else { return };
        op = input;
    }
}

/// Returns the edges of a pattern that are shortest paths.
fn searched(pattern: &MatchPattern) -> Vec<usize> {
    pattern.edges.iter().enumerate().filter_map(|(at, edge)| edge.shortest.map(|_| at)).collect()
}

/// Whether a condition is about a path of the pattern, and not only about its ends.
pub(super) fn is_about_path(condition: &Expr, pattern: &MatchPattern) -> bool {
    let lists = |body: &PatternBody, slot: Slot| body.groups.iter().any(|(_, list)| *list == slot);
    let is_of = |edge: &PatternEdge, slot: Slot| {
        edge.slot == slot || edge.body.as_ref().is_some_and(|body| lists(body, slot))
    };
    let mut found = false;
    condition.for_each_slot(&mut |slot| {
        found |= pattern.edges.iter().any(|edge| is_of(edge, slot));
        found |= pattern.paths.iter().any(|path| path.slot == slot);
    });
    found
}

/// Returns the shortest path that a condition is about.
fn edge_of(condition: &Expr, pattern: &MatchPattern, shortest: &[usize]) -> Option<usize> {
    let mut found = None;
    condition.for_each_slot(&mut |slot| {
        let path = pattern.paths.iter().find(|path| path.slot == slot);
        let of_path =
            path.and_then(|path| path.edges.iter().map(|(at, _)| *at).find(|at| shortest.contains(at)));
        let of_edge = shortest.iter().copied().find(|at| pattern.edges[*at].slot == slot);
        found = found.or(of_path).or(of_edge);
    });
    found
}

/// Returns the test that a condition makes of each relationship of a shortest path, over a local slot.
fn each_edge(condition: &Expr, pattern: &MatchPattern, edge: usize) -> Option<(Slot, Expr)> {
    let Expr::Quantified { quantifier, variable, list, predicate } = condition else { return None };
    let is_path = |slot: Slot| {
        let path = pattern.paths.iter().find(|path| path.slot == slot);
        path.is_some_and(|path| path.edges[..] == [(edge, true)])
    };
    let of_edges = match &**list {
        Expr::Slot(slot) => *slot == pattern.edges[edge].slot,
        Expr::Call(Function::Relationships, args) => {
            matches!(args[..], [Expr::Slot(slot)] if is_path(slot))
        }
        _ => false,
    };
    if !of_edges || edge_of(predicate, pattern, &[edge]).is_some() {
        return None;
    }
    match quantifier {
        Quantifier::All => Some((*variable, (**predicate).clone())),
        Quantifier::None => Some((*variable, Expr::Not(predicate.clone()))),
        Quantifier::Any | Quantifier::Single => None,
    }
}

/// Adds a test of each relationship.
fn add_filter(edge: &mut PatternEdge, item: Slot, test: Expr) {
    edge.filter = Some(match edge.filter.take() {
        None => (item, test),
        Some((local, before)) => (local, before.and(renamed(test, item, local))),
    });
}
