//! Patterns and subqueries inside expressions: each becomes a plan whose result is bound to a slot.

use super::clause_order::{self, Role};
use super::pattern::Names;
use super::types::Types;
use super::{Lowering, Pending, Typed};
use crate::ast::{Clause, Expr as Tree, PathPattern};
use crate::fault::{Fault, Result};
use std::slice::from_ref;
use tidegraph_plan::{BindKind, Expr, Function, NamedPath, Op, Shortest};

impl<'a> Lowering<'a> {
    /// Runs `lower` in a scope of its own inside the current one.
    pub(super) fn inside<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let scope = self.scope.clone();
        let pending = std::mem::take(&mut self.pending);
        let replacements = std::mem::take(&mut self.replacements);
        let outer = std::mem::replace(&mut self.outer, scope.len());
        self.level += 1;
        let result = lower(self)?;
        self.level -= 1;
        self.outer = outer;
        self.scope = scope;
        self.pending = pending;
        self.replacements = replacements;
        Ok(result)
    }

    /// Adds a plan to those that are bound before the current operator, and returns the slot of its result.
    fn bind(&mut self, plan: Op, kind: BindKind) -> Expr {
        let out = self.slot();
        self.pending.push(Pending { out, plan, kind });
        Expr::Slot(out)
    }

    /// Lowers the test whether a pattern, whose variables are all bound, has a match.
    pub(super) fn pattern_predicate(&mut self, path: &'a PathPattern) -> Result<Expr> {
        let plan = self.pattern_plan(path)?;
        Ok(self.bind(plan, BindKind::Exists))
    }

    /// Returns a plan with a row for each match of a pattern whose variables are all bound.
    pub(super) fn pattern_plan(&mut self, path: &'a PathPattern) -> Result<Op> {
        self.inside(|this| {
            let matched = this.match_pattern(from_ref(path), Names::Known)?;
            this.op(Op::Match { input: Box::new(Op::Argument), pattern: matched.pattern })
        })
    }

    /// `EXISTS { … }`
    pub(super) fn exists(&mut self, clauses: &'a [Clause]) -> Result<Typed> {
        let plan = self.subquery_plan(clauses)?;
        Ok(Typed::new(self.bind(plan, BindKind::Exists), Types::BOOL))
    }

    /// `COUNT { … }`
    pub(super) fn count(&mut self, clauses: &'a [Clause]) -> Result<Typed> {
        let plan = self.subquery_plan(clauses)?;
        Ok(Typed::new(self.bind(plan, BindKind::Count), Types::INTEGER))
    }

    /// Returns the plan of the clauses in braces.
    pub(super) fn subquery_plan(&mut self, clauses: &'a [Clause]) -> Result<Op> {
        clause_order::check(clauses, Role::Subquery)?;
        self.inside(|this| Ok(this.clauses(Op::Argument, clauses)?.0))
    }

    /// `[(a)-->(b) WHERE filter | map]`
    pub(super) fn pattern_comprehension(
        &mut self,
        path: &'a PathPattern,
        filter: Option<&'a Tree>,
        map: &'a Tree,
    ) -> Result<Typed> {
        let (plan, out) = self.inside(|this| {
            let op = this.match_rows(Op::Argument, from_ref(path), filter)?.0;
            let value = this.value(map)?;
            let op = this.bind_pending(op)?;
            if let Expr::Slot(slot) = value {
                return Ok((op, slot));
            }
            let out = this.slot();
            Ok((this.op(Op::Let { input: Box::new(op), bindings: vec![(out, value)] })?, out))
        })?;
        Ok(Typed::new(self.bind(plan, BindKind::Collect(out)), Types::LIST))
    }

    /// `shortestPath(…)` as a value: a path or null; `allShortestPaths(…)`: a list of paths.
    pub(super) fn shortest_path(&mut self, path: &'a PathPattern) -> Result<Typed> {
        let (plan, out) = self.inside(|this| {
            let mut matched = this.match_pattern(from_ref(path), Names::Known)?;
            let [start, _] = matched.nodes[..] else {
                return Err(Fault::syntax(
                    path.place.0,
                    "shortestPath() takes a pattern of one relationship",
                ));
            };
            let slot = this.slot();
            matched.pattern.paths.push(NamedPath { slot, start, edges: vec![(0, true)] });
            let input = Box::new(Op::Argument);
            Ok((this.op(Op::Match { input, pattern: matched.pattern })?, slot))
        })?;
        if path.shortest == Some(Shortest::All) {
            return Ok(Typed::new(self.bind(plan, BindKind::Collect(out)), Types::LIST));
        }
        let first = self.bind(plan, BindKind::First(out));
        // Without a path the slot stays unbound, which this expression turns into null.
        Ok(Typed::new(Expr::Call(Function::Coalesce, vec![first]), Types::PATH))
    }
}
