//! Makes a search of the choice of the shortest paths that match a pattern ([`Op::PathSearch`]).
//!
//! Otherwise all paths that match are found and compared, and their number grows exponentially with their length. A search
//! goes from one end of the pattern, and knows at each vertex only how far it is in the pattern. So each condition has
//! to be about one vertex of the path, about one edge and the vertices at it, or about the ends. If there is another one, or
//! an element that an earlier clause bound, the choice stays as it is.

use super::{Lowering, Start, bind_start, equals};
use crate::passes::Knowledge;
use crate::{Expr, Function, Length, MatchPattern, Op, PathPart, PatternEdge, PatternNode, Slot, Stopped};
use std::collections::BTreeSet;

/// Places in a pattern that a search tells apart at most; each number of repetitions that matters is one.
const MOST_PLACES: u64 = 256;
/// An end with at most this many candidates is bound before the search, which then stops at that end.
const FEW: f64 = 4.0;

/// Replaces an operator that chooses among all matches of a path, if a search can find them.
pub(super) fn run(op: &mut Op, knowledge: &Knowledge<'_>, slots: &mut u32) -> Result<(), Stopped> {
    let (input, pattern, count, groups) = match &*op {
        Op::ChoosePaths { input, count, groups, .. } => match &**input {
            Op::Match { input, pattern } if **input == Op::Argument => (&**input, pattern, *count, *groups),
            _ => return Ok(()),
        },
        Op::Match { input, pattern } => match &pattern.edges[..] {
            // The others are searched by the operator for quantified paths, which needs no memory for edges.
            [PatternEdge { body: Some(body), length: Some(length), .. }] => match &body.selection {
                Some(selection)
                    if selection.accept.is_none()
                        && (pattern.edges[0].needs_both_ends() || length.min > 1) =>
                {
                    (&**input, pattern, selection.count, selection.groups)
                }
                _ => return Ok(()),
            },
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    knowledge.limits.spend(pattern.nodes.len() + pattern.edges.len())?;
    let Some(path) = Path::of(pattern) else { return Ok(()) };
    let Some(repeats) = path.repeats() else { return Ok(()) };
    let mut slots_now = *slots;
    let fits = |length: &Length| u64::from(length.max.unwrap_or(length.min)) + 1;
    let places: u64 = pattern.edges.iter().map(|edge| edge.length.as_ref().map_or(2, fits)).sum();
    if places > MOST_PLACES {
        return Ok(());
    }
    knowledge.limits.charge(pattern.edges.len() * (size_of::<PathPart>() + 2 * size_of::<Op>()))?;
    let sides = path.sides(knowledge, &mut slots_now);
    let Some((ends, parts)) = path.split(sides, &mut slots_now) else { return Ok(()) };
    let (from, to) = path.ends(sides);
    let mut made = Op::PathSearch {
        input: Box::new(Op::Match { input: Box::new(input.clone()), pattern: ends }),
        from,
        to,
        into: sides.into,
        parts,
        reversed: !sides.from_left,
        repeats,
        count,
        groups,
        uses: None,
    };
    let named: Vec<_> = pattern.paths.iter().map(|named| (named.slot, path.made())).collect();
    if !named.is_empty() {
        made = Op::Let { input: Box::new(made), bindings: named };
    }
    *slots = slots_now;
    *op = made;
    Ok(())
}

/// Where a search starts.
#[derive(Clone, Copy)]
struct Sides {
    from_left: bool,
    /// Whether the other end is bound first.
    into: bool,
}

/// A pattern that is one path.
struct Path<'p> {
    pattern: &'p MatchPattern,
    /// Indices of the vertices from left to right.
    nodes: Vec<usize>,
    /// Slots that the pattern binds.
    own: BTreeSet<Slot>,
    conditions: Vec<&'p Expr>,
}

impl<'p> Path<'p> {
    /// Returns `None` if the pattern is no single path, or if elements other than its ends are bound.
    fn of(pattern: &'p MatchPattern) -> Option<Self> {
        let mut nodes = vec![pattern.edges.first()?.left];
        for edge in &pattern.edges {
            if Some(&edge.left) != nodes.last() || edge.bound || edge.shortest.is_some() {
                return None;
            }
            nodes.push(edge.right);
        }
        let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
        let inner = &nodes[1..nodes.len() - 1];
        let mut different: BTreeSet<usize> = inner.iter().copied().collect();
        let is_simple =
            different.len() == inner.len() && !different.contains(&first) && !different.contains(&last);
        let is_free = inner.iter().all(|node| !pattern.nodes[*node].bound);
        different.extend([first, last]);
        let is_own = |path: &crate::NamedPath| {
            path.start == first
                && path.edges.iter().copied().eq((0..pattern.edges.len()).map(|at| (at, true)))
        };
        if !is_simple
            || !is_free
            || different.len() != pattern.nodes.len()
            || !pattern.paths.iter().all(is_own)
        {
            return None;
        }
        let bodies = pattern.edges.iter().filter_map(|edge| edge.body.as_ref());
        let own = (pattern.nodes.iter().filter(|node| !node.bound).map(|node| node.slot))
            .chain(pattern.edges.iter().map(|edge| edge.slot))
            .chain(bodies.flat_map(|body| body.groups.iter().map(|(_, list)| *list)))
            .chain(pattern.paths.iter().map(|path| path.slot))
            .collect();
        let mut conditions = vec![];
        pattern.predicate.iter().for_each(|all| split_and(all, &mut conditions));
        if conditions.iter().any(|condition| condition.is_random()) {
            return None;
        }
        Some(Self { pattern, nodes, own, conditions })
    }

    /// Whether an edge may occur twice. `None`: some may and some may not.
    fn repeats(&self) -> Option<bool> {
        let edges = &self.pattern.edges;
        let clause = |at: usize| self.pattern.clauses.get(at).copied().unwrap_or_default();
        let clauses: BTreeSet<u32> = (0..edges.len()).map(clause).collect();
        let of_body =
            |edge: &PatternEdge| edge.length.map(|_| edge.body.as_ref().is_some_and(|body| body.repeats));
        let of_parts: BTreeSet<bool> = edges.iter().filter_map(of_body).collect();
        let (apart, together) = (clauses.len() == edges.len(), clauses.len() == 1);
        match (of_parts.contains(&true), of_parts.contains(&false)) {
            (_, false) if apart => Some(true),
            (false, _) if together => Some(false),
            _ => None,
        }
    }

    fn slot(&self, place: usize) -> Slot {
        self.pattern.nodes[self.nodes[place]].slot
    }

    fn is_loop(&self) -> bool {
        self.nodes.first() == self.nodes.last()
    }

    /// Returns the slots of the ends: where the search starts, and the other one.
    fn ends(&self, sides: Sides) -> (Slot, Slot) {
        let (left, right) = (self.slot(0), self.slot(self.nodes.len() - 1));
        if sides.from_left { (left, right) } else { (right, left) }
    }

    /// Returns the slots of the pattern that a condition uses, if it uses no slot that is bound in a part only.
    fn used(&self, condition: &Expr) -> BTreeSet<Slot> {
        let mut used = BTreeSet::new();
        condition.for_each_slot(&mut |slot| {
            if self.own.contains(&slot) {
                used.insert(slot);
            }
        });
        used
    }

    fn sides(&self, knowledge: &Knowledge<'_>, slots: &mut u32) -> Sides {
        if self.is_loop() {
            return Sides { from_left: true, into: true };
        }
        let mut start = |place: usize| {
            let node = &self.pattern.nodes[self.nodes[place]];
            if node.bound {
                return (0.0, true);
            }
            let only = BTreeSet::from([node.slot]);
            let own = self.conditions.iter().filter(|condition| self.used(condition) == only);
            let predicate = own.map(|condition| (*condition).clone()).reduce(Expr::and);
            let is_tested = predicate.is_some() || !node.properties.is_empty();
            let pattern = MatchPattern { nodes: vec![node.clone()], predicate, ..MatchPattern::default() };
            let Start { rows, .. } = Lowering::new(Op::Argument, pattern, knowledge, slots).start_of(0);
            (rows, is_tested && rows <= FEW)
        };
        let (left, right) = (start(0), start(self.nodes.len() - 1));
        let from_left = left.0 <= right.0;
        Sides { from_left, into: if from_left { right.1 } else { left.1 } }
    }

    /// Returns the pattern of the ends that are bound first, and the parts in the order of the search. `None` if a condition
    /// is about other elements than a search knows at one place.
    fn split(&self, sides: Sides, slots: &mut u32) -> Option<(MatchPattern, Vec<PathPart>)> {
        let (from, to) = self.ends(sides);
        let known = if sides.into { BTreeSet::from([from, to]) } else { BTreeSet::from([from]) };
        let edges = &self.pattern.edges;
        let mut of_ends: Option<Expr> = None;
        let mut of_nodes: Vec<Option<Expr>> = self.nodes.iter().map(|_| None).collect();
        let mut of_edges: Vec<Option<Expr>> = edges.iter().map(|_| None).collect();
        for condition in &self.conditions {
            let used: BTreeSet<Slot> = self.used(condition).difference(&known).copied().collect();
            let place = match used.first() {
                None => {
                    add(&mut of_ends, (*condition).clone());
                    continue;
                }
                Some(first) if used.len() == 1 => {
                    (0..self.nodes.len()).find(|place| self.slot(*place) == *first)
                }
                _ => None,
            };
            if let Some(place) = place {
                add(&mut of_nodes[place], (*condition).clone());
                continue;
            }
            let at = (0..edges.len()).find(|at| {
                let near = [edges[*at].slot, self.slot(*at), self.slot(at + 1)];
                edges[*at].length.is_none() && used.iter().all(|slot| near.contains(slot))
            })?;
            add(&mut of_edges[at], (*condition).clone());
        }
        let ends = self.end_pattern(sides, of_ends);
        let mut order: Vec<usize> = (0..edges.len()).collect();
        if !sides.from_left {
            order.reverse();
        }
        let mut parts = Vec::with_capacity(edges.len());
        for (number, at) in order.into_iter().enumerate() {
            let mut part = self.part(at, of_edges[at].take(), sides, &known, slots)?;
            let place = if sides.from_left { at + 1 } else { at };
            part.end = self.slot(place);
            let is_bound = sides.into && number + 1 == edges.len();
            part.check = if is_bound { None } else { self.check(place, of_nodes[place].take(), &known)? };
            parts.push(part);
        }
        Some((ends, parts))
    }

    fn end_pattern(&self, sides: Sides, predicate: Option<Expr>) -> MatchPattern {
        let mut places = vec![if sides.from_left { 0 } else { self.nodes.len() - 1 }];
        if sides.into && !self.is_loop() {
            places.push(if sides.from_left { self.nodes.len() - 1 } else { 0 });
        }
        let nodes = places.into_iter().map(|place| self.pattern.nodes[self.nodes[place]].clone()).collect();
        MatchPattern { nodes, predicate, ..MatchPattern::default() }
    }

    /// Returns what a vertex where a part ends has to be; the outer `None` if a property depends on others of the path.
    fn check(&self, place: usize, condition: Option<Expr>, known: &BTreeSet<Slot>) -> Option<Option<Expr>> {
        let PatternNode { slot, labels, properties, .. } = &self.pattern.nodes[self.nodes[place]];
        let vertex = || Box::new(Expr::Slot(*slot));
        let mut check = (!labels.is_empty()).then(|| Expr::HasLabels(vertex(), labels.clone()));
        for (key, value) in properties {
            if !self.used(value).is_subset(known) {
                return None;
            }
            add(&mut check, equals(Expr::Property(vertex(), key.clone()), value.clone()));
        }
        condition.into_iter().for_each(|condition| add(&mut check, condition));
        Some(check)
    }

    /// Returns an edge as a part, without its end.
    fn part(
        &self,
        at: usize,
        condition: Option<Expr>,
        sides: Sides,
        known: &BTreeSet<Slot>,
        slots: &mut u32,
    ) -> Option<PathPart> {
        let edge = &self.pattern.edges[at];
        let (length, edges) = (edge.length, Some(edge.slot));
        let (end, check) = (edge.slot, None);
        if let Some(body) = &edge.body {
            let mut plan = body.plan.clone();
            let (first, last) =
                if sides.from_left { (body.first, body.last) } else { (body.last, body.first) };
            let (first, last) = bind_start(&mut plan, first, last)?;
            let (steps, groups) = (body.steps.clone(), body.groups.clone());
            return Some(PathPart { body: plan, first, last, steps, length, edges, groups, end, check });
        }
        let mut fresh = || {
            *slots += 1;
            Slot(*slots - 1)
        };
        let (left, right, step) = (fresh(), fresh(), fresh());
        let mut predicate = condition;
        if let Some((local, test)) = &edge.filter {
            let mut used = self.used(test);
            used.remove(local);
            if !used.is_subset(known) {
                return None;
            }
            add(&mut predicate, renamed(test.clone(), *local, step));
        }
        if edge.properties.iter().any(|(_, value)| !self.used(value).is_subset(known)) {
            return None;
        }
        if length.is_none() {
            let near = [(edge.slot, step), (self.slot(at), left), (self.slot(at + 1), right)];
            for (of_path, of_body) in near {
                predicate = predicate.map(|test| renamed(test, of_path, of_body));
            }
        }
        let node = |slot: Slot, bound: bool| PatternNode { slot, bound, labels: vec![], properties: vec![] };
        let pattern = MatchPattern {
            nodes: vec![node(left, sides.from_left), node(right, !sides.from_left)],
            edges: vec![PatternEdge {
                slot: step,
                left: 0,
                right: 1,
                length: None,
                filter: None,
                ..edge.clone()
            }],
            predicate,
            ..MatchPattern::default()
        };
        let body = Op::Match { input: Box::new(Op::Argument), pattern };
        let (first, last) = if sides.from_left { (left, right) } else { (right, left) };
        Some(PathPart { body, first, last, steps: vec![step], length, edges, groups: vec![], end, check })
    }

    /// Returns the expression of the path.
    fn made(&self) -> Expr {
        let mut args = vec![Expr::Slot(self.slot(0))];
        for (at, edge) in self.pattern.edges.iter().enumerate() {
            args.extend([Expr::Slot(edge.slot), Expr::Slot(self.slot(at + 1))]);
        }
        Expr::Call(Function::MakePath, args)
    }
}

fn split_and<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match expr {
        Expr::And(all) => all.iter().for_each(|part| split_and(part, parts)),
        other => parts.push(other),
    }
}

fn add(condition: &mut Option<Expr>, more: Expr) {
    *condition = Some(match condition.take() {
        Some(before) => before.and(more),
        None => more,
    });
}

/// Returns an expression with another number for a slot.
fn renamed(mut expr: Expr, from: Slot, to: Slot) -> Expr {
    fn rename(expr: &mut Expr, from: Slot, to: Slot) {
        match expr {
            Expr::Slot(slot) | Expr::IsBound(slot) if *slot == from => *slot = to,
            Expr::Unused(edge, others) => {
                for slot in std::iter::once(edge).chain(others).filter(|slot| **slot == from) {
                    *slot = to;
                }
            }
            _ => {}
        }
        expr.children_mut().into_iter().for_each(|child| rename(child, from, to));
    }
    rename(&mut expr, from, to);
    expr
}
