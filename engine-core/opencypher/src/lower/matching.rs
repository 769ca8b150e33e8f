//! MATCH, OPTIONAL MATCH and WHERE.

use super::pattern::{Matched, Names, require};
use super::{Lowering, Pending, aggregate, shortest};
use crate::ast::{Choice, Expr as Tree, ExprKind, PathPattern};
use crate::fault::{Fault, Result};
use tidegraph_plan::{ApplyKind, Arithmetic, Expr, Function, Op, Slot};

/// A conjunct of a WHERE that runs a subquery.
enum Test {
    /// A row passes if the plan yields a row for it; negated (`true`), if it yields none.
    Rows(Op, bool),
    /// A row passes if the expression is true after these subqueries are bound.
    True(Vec<Pending>, Expr),
}

/// A WHERE, split at its ANDs.
#[derive(Default)]
pub(super) struct Conditions {
    plain: Vec<Expr>,
    tests: Vec<Test>,
}

impl Conditions {
    /// Removes and returns the conditions without subqueries.
    pub fn take_plain(&mut self) -> Vec<Expr> {
        std::mem::take(&mut self.plain)
    }

    /// Adds a condition that is computed after its subqueries are bound.
    pub fn after(&mut self, pending: Vec<Pending>, condition: Expr) {
        self.tests.push(Test::True(pending, condition));
    }

    /// Whether a condition has a subquery.
    pub fn have_subqueries(&self) -> bool {
        !self.tests.is_empty()
    }
}

impl<'a> Lowering<'a> {
    /// `[OPTIONAL] MATCH patterns [WHERE predicate]`
    pub(super) fn match_clause(
        &mut self,
        input: Op,
        optional: bool,
        patterns: &'a [PathPattern],
        predicate: Option<&'a Tree>,
    ) -> Result<Op> {
        if !optional {
            return Ok(self.match_rows(input, patterns, predicate)?.0);
        }
        let (plan, new) = self.match_rows(Op::Argument, patterns, predicate)?;
        self.op(Op::Apply { input: Box::new(input), plan: Box::new(plan), kind: ApplyKind::Optional(new) })
    }

    /// Returns a plan with a row for each match that satisfies the predicate, and the slots of the new variables.
    pub(super) fn match_rows(
        &mut self,
        input: Op,
        patterns: &'a [PathPattern],
        predicate: Option<&'a Tree>,
    ) -> Result<(Op, Vec<Slot>)> {
        let mut matched = self.match_pattern(patterns, Names::New)?;
        let mut chosen = Conditions::default();
        if let Some(predicate) = predicate {
            let conditions =
                if patterns.iter().any(|path| path.selector) { &mut chosen } else { &mut matched.conditions };
            self.add_conditions(predicate, conditions)?;
        }
        // A selector chooses among all paths between two vertices: only conditions on these may come first.
        for condition in chosen.take_plain() {
            let about_path = match patterns.iter().any(|path| path.picks.is_some()) {
                false => shortest::is_about_path(&condition, &matched.pattern),
                true => !is_about_ends(&condition, &matched),
            };
            let conditions = if about_path { &mut chosen } else { &mut matched.conditions };
            conditions.plain.push(condition);
        }
        let new = matched.new.clone();
        let op = self.matched_rows(input, patterns, matched)?;
        Ok((self.filter(op, chosen)?, new))
    }

    /// Returns a plan with a row for each match of a pattern that satisfies its conditions.
    pub(super) fn matched_rows(
        &mut self,
        input: Op,
        patterns: &'a [PathPattern],
        mut matched: Matched,
    ) -> Result<Op> {
        // GQL: whether two paths share a relationship would depend on the choice, and the choice on that.
        let picks = patterns.iter().find_map(|path| Some((path, path.picks?)));
        if let Some((path, _)) = picks.filter(|(path, _)| patterns.len() > 1 && path.repeats) {
            let construct =
                "SHORTEST or ANY over a path of several parts beside other paths of the same MATCH";
            return Err(Fault::unsupported(path.place.0, construct));
        }
        let chooses = |path: &&PathPattern| (path.choice.is_some() || path.picks.is_some()) && !path.repeats;
        if let Some(path) = patterns.iter().find(chooses).filter(|_| patterns.len() > 1) {
            let message = "a selector beside other paths of the same MATCH is not allowed, expected \
                           MATCH REPEATABLE ELEMENTS, or a MATCH for each path";
            return Err(Fault::syntax(path.place.0, message));
        }
        if let Some(place) = patterns.iter().find(|path| path.shortest.is_some()).map(|path| path.place.0) {
            return self.shortest_rows(input, matched, place);
        }
        for condition in matched.conditions.take_plain() {
            require(&mut matched.pattern, condition);
        }
        let Some((_, choice)) = picks else {
            let op = self.op(Op::Match { input: Box::new(input), pattern: matched.pattern })?;
            return self.filter(op, matched.conditions);
        };
        self.picked_rows(input, matched, choice)
    }

    /// Returns a plan with a row for each path that a selector picks of all paths, for each row of the input.
    fn picked_rows(&mut self, input: Op, matched: Matched, Choice { count, groups }: Choice) -> Result<Op> {
        let ends = [matched.nodes.first(), matched.nodes.last()];
        let nodes = &matched.pattern.nodes;
        let by =
            ends.into_iter().flatten().filter_map(|end| Some(Expr::Slot(nodes.get(*end)?.slot))).collect();
        let edges = &matched.pattern.edges;
        let fixed = edges.iter().filter(|edge| edge.length.is_none()).count();
        let size = |slot| Expr::Call(Function::Size, vec![Expr::Slot(slot)]);
        let sizes = edges.iter().filter(|edge| edge.length.is_some()).map(|edge| size(edge.slot));
        let length = sizes.fold(Expr::literal(fixed as i64), |sum, size| {
            Expr::Arithmetic(Arithmetic::Add, Box::new(sum), Box::new(size))
        });
        let all = self.op(Op::Match { input: Box::new(Op::Argument), pattern: matched.pattern })?;
        let all = Box::new(self.filter(all, matched.conditions)?);
        let plan = self.op(Op::ChoosePaths { input: all, by, length, count, groups })?;
        if input == Op::Argument {
            return Ok(plan);
        }
        self.op(Op::Apply { input: Box::new(input), plan: Box::new(plan), kind: ApplyKind::Cross })
    }

    /// Lowers a WHERE.
    pub(super) fn conditions(&mut self, predicate: &'a Tree) -> Result<Conditions> {
        let mut conditions = Conditions::default();
        self.add_conditions(predicate, &mut conditions)?;
        Ok(conditions)
    }

    pub(super) fn add_conditions(&mut self, tree: &'a Tree, conditions: &mut Conditions) -> Result<()> {
        if let ExprKind::And(all) = &tree.kind {
            return all.iter().try_for_each(|tree| self.add_conditions(tree, conditions));
        }
        let mut found = None;
        tree.any_aggregate(&mut found);
        if let Some(place) = found {
            return Err(Fault::syntax(place, "aggregation is not allowed in WHERE"));
        }
        let (subject, negated) = match &tree.kind {
            ExprKind::Not(operand) => (&**operand, true),
            _ => (tree, false),
        };
        if let Some(plan) = self.existence(subject)? {
            conditions.tests.push(Test::Rows(plan, negated));
            return Ok(());
        }
        let before = std::mem::take(&mut self.pending);
        let condition = self.boolean(tree)?;
        let pending = std::mem::replace(&mut self.pending, before);
        if pending.is_empty() {
            conditions.plain.push(condition);
        } else {
            conditions.tests.push(Test::True(pending, condition));
        }
        Ok(())
    }

    /// Returns the plan of an expression that asks whether there are rows.
    fn existence(&mut self, tree: &'a Tree) -> Result<Option<Op>> {
        let path = match &tree.kind {
            ExprKind::Exists(query) => return self.subquery_plan(query).map(Some),
            ExprKind::Pattern(path) => path,
            ExprKind::Call { name, args, .. } if name.eq_ignore_ascii_case("exists") => match &args[..] {
                [Tree { kind: ExprKind::Pattern(path), .. }] => path,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        if path.shortest.is_some() {
            return Ok(None);
        }
        self.pattern_plan(path).map(Some)
    }

    /// Drops rows that do not satisfy the conditions.
    pub(super) fn filter(&mut self, mut op: Op, conditions: Conditions) -> Result<Op> {
        let mut plain = conditions.plain;
        let predicate = if plain.len() > 1 { Some(Expr::And(plain)) } else { plain.pop() };
        if let Some(predicate) = predicate {
            op = self.op(Op::Filter { input: Box::new(op), predicate })?;
        }
        for test in conditions.tests {
            op = match test {
                Test::Rows(plan, negated) => {
                    let kind = if negated { ApplyKind::Anti } else { ApplyKind::Semi };
                    self.op(Op::Apply { input: Box::new(op), plan: Box::new(plan), kind })?
                }
                Test::True(pending, predicate) => {
                    self.pending = pending;
                    let input = Box::new(self.bind_pending(op)?);
                    self.op(Op::Filter { input, predicate })?
                }
            };
        }
        Ok(op)
    }
}

/// Whether a condition is about no element of a pattern other than the ends of its path.
fn is_about_ends(condition: &Expr, matched: &Matched) -> bool {
    let ends = [matched.nodes.first(), matched.nodes.last()];
    let is_end = |slot: Slot| {
        let mut nodes = ends.iter().filter_map(|end| matched.pattern.nodes.get(*(*end)?));
        nodes.any(|node| node.slot == slot)
    };
    let mut only_ends = true;
    condition.for_each_slot(&mut |slot| only_ends &= is_end(slot) || !matched.new.contains(&slot));
    only_ends
}

impl Tree {
    /// Returns the place of the first aggregate anywhere in the expression.
    fn any_aggregate(&self, found: &mut Option<u32>) {
        if found.is_none() && aggregate::is_aggregate(self) {
            *found = Some(self.place.0);
        }
        self.for_each_child(&mut |child| child.any_aggregate(found));
    }
}
