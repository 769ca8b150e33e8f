//! MATCH, OPTIONAL MATCH and WHERE.

use super::pattern::{Names, require};
use super::{Lowering, Pending, aggregate};
use crate::ast::{Expr as Tree, ExprKind, PathPattern};
use crate::fault::{Fault, Result};
use tidegraph_plan::{ApplyKind, Expr, Op, Slot};

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
        let mut conditions = Conditions::default();
        if let Some(predicate) = predicate {
            refuse_on_shortest(patterns, predicate)?;
            conditions = self.conditions(predicate)?;
        }
        for condition in conditions.plain.drain(..) {
            require(&mut matched.pattern, condition);
        }
        let op = self.op(Op::Match { input: Box::new(input), pattern: matched.pattern })?;
        Ok((self.filter(op, conditions)?, matched.new))
    }

    /// Lowers a WHERE.
    pub(super) fn conditions(&mut self, predicate: &'a Tree) -> Result<Conditions> {
        let mut conditions = Conditions::default();
        self.add_conditions(predicate, &mut conditions)?;
        Ok(conditions)
    }

    fn add_conditions(&mut self, tree: &'a Tree, conditions: &mut Conditions) -> Result<()> {
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
            ExprKind::Exists(clauses) => return self.subquery_plan(clauses).map(Some),
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

impl Tree {
    /// Returns the place of the first aggregate anywhere in the expression.
    fn any_aggregate(&self, found: &mut Option<u32>) {
        if found.is_none() && aggregate::is_aggregate(self) {
            *found = Some(self.place.0);
        }
        self.for_each_child(&mut |child| child.any_aggregate(found));
    }
}

/// Refuses a WHERE over a shortest path. The search runs before the WHERE, and the shortest path that satisfies a
/// condition may be a longer one than the search finds.
fn refuse_on_shortest(patterns: &[PathPattern], predicate: &Tree) -> Result<()> {
    for path in patterns.iter().filter(|p| p.shortest.is_some()) {
        let edges = path.edges.iter().filter_map(|e| e.variable.as_ref());
        for name in path.variable.iter().chain(edges) {
            let uses = |tree: &Tree| match &tree.kind {
                ExprKind::Variable(text) => *text == name.text,
                // `any` does not search subqueries, so that each of them is refused.
                ExprKind::Exists(_) | ExprKind::Count(_) => true,
                ExprKind::Pattern(path) => path.edges.iter().any(|e| e.variable.is_some()),
                _ => false,
            };
            if predicate.any(&uses) {
                let construct = "WHERE on the path of a shortestPath() of the same MATCH (put WITH between)";
                return Err(Fault::unsupported(predicate.place.0, construct));
            }
        }
    }
    Ok(())
}
