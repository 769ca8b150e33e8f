//! Patterns and subqueries inside expressions: each becomes a plan whose result is bound to a slot.

use super::clause_order::Role;
use super::expression::{expect, item_types};
use super::pattern::Names;
use super::types::Types;
use super::{Lowering, Origin, Pending, Projected, Typed};
use crate::ast::{Expr as Tree, Name, PathPattern, Query};
use crate::fault::{Fault, Result};
use std::slice::from_ref;
use tidegraph_plan::{BindKind, Expr, Function, NamedPath, Op, Quantifier, Shortest, Slot};
use tidegraph_types::Value;

impl<'a> Lowering<'a> {
    /// Runs `lower` in a scope of its own inside the current one.
    pub(super) fn inside<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let scope = self.scope.clone();
        let pending = std::mem::take(&mut self.pending);
        let replacements = std::mem::take(&mut self.replacements);
        let outer = std::mem::replace(&mut self.outer, scope.len());
        self.scope = std::mem::take(&mut self.scope).entered();
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
            this.matched_rows(Op::Argument, from_ref(path), matched)
        })
    }

    /// `EXISTS { … }`
    pub(super) fn exists(&mut self, query: &'a Query) -> Result<Typed> {
        let plan = self.subquery_plan(query)?;
        Ok(Typed::new(self.bind(plan, BindKind::Exists), Types::BOOL))
    }

    /// `COUNT { … }`
    pub(super) fn count(&mut self, query: &'a Query) -> Result<Typed> {
        let plan = self.subquery_plan(query)?;
        Ok(Typed::new(self.bind(plan, BindKind::Count), Types::INTEGER))
    }

    /// `COLLECT { … }`
    pub(super) fn collect(&mut self, query: &'a Query, place: u32) -> Result<Typed> {
        let (plan, columns) = self.inside(|this| this.query(query, Role::SubqueryPart, None))?;
        let [Projected { slot, .. }] = columns.unwrap_or_default()[..] else {
            let message = "COLLECT { … } takes a query that returns one column";
            return Err(Fault::syntax(place, message));
        };
        Ok(Typed::new(self.bind(plan, BindKind::Collect(slot)), Types::LIST))
    }

    /// Returns the plan of the query in braces.
    pub(super) fn subquery_plan(&mut self, query: &'a Query) -> Result<Op> {
        Ok(self.inside(|this| this.query(query, Role::Subquery, None))?.0)
    }

    /// A comprehension with subqueries over its variable: the items become rows.
    pub(super) fn comprehension_of_rows(
        &mut self,
        variable: &'a Name,
        list: &'a Tree,
        filter: Option<&'a Tree>,
        map: Option<&'a Tree>,
    ) -> Result<Typed> {
        let list_value = self.expr(list)?;
        expect(&list_value, Types::LIST, list, "a list comprehension")?;
        let (list, item) = (list_value.expr.clone(), item_types(&list_value));
        let (plan, out) = self.inside(|this| {
            let mut op = this.items_as_rows(variable, list, item)?;
            if let Some(filter) = filter {
                let conditions = this.conditions(filter)?;
                op = this.filter(op, conditions)?;
            }
            let value = match map {
                Some(map) => this.value(map)?,
                None => Expr::Slot(this.resolve(&variable.text, variable.place.0)?.0),
            };
            this.bound_to_slot(op, value)
        })?;
        let items = self.bind(plan, BindKind::Collect(out));
        Ok(Typed::new(null_if_null(list_value.expr, items), Types::LIST))
    }

    /// `all(x IN list WHERE …)` with a subquery over its variable.
    pub(super) fn quantified_rows(
        &mut self,
        quantifier: Quantifier,
        variable: &'a Name,
        list: &'a Tree,
        predicate: &'a Tree,
    ) -> Result<Typed> {
        let list_value = self.expr(list)?;
        expect(&list_value, Types::LIST, list, "a quantifier")?;
        let (list, item) = (list_value.expr.clone(), item_types(&list_value));
        let (plan, out) = self.inside(|this| {
            let op = this.items_as_rows(variable, list, item)?;
            let value = this.boolean(predicate)?;
            this.bound_to_slot(op, value)
        })?;
        let list = Box::new(self.bind(plan, BindKind::Collect(out)));
        let variable = self.slot();
        let predicate = Box::new(Expr::Slot(variable));
        let quantified = Expr::Quantified { quantifier, variable, list, predicate };
        Ok(Typed::new(null_if_null(list_value.expr, quantified), Types::BOOL))
    }

    /// Returns a plan with a row for each item of a list. The variable may hide one of the outer query.
    fn items_as_rows(&mut self, variable: &'a Name, list: Expr, item: Types) -> Result<Op> {
        let out = self.slot();
        self.declare(&variable.text, out, item, Origin::Alias);
        self.op(Op::Unwind { input: Box::new(Op::Argument), list, out })
    }

    /// Binds a value to a slot after the subqueries in it.
    fn bound_to_slot(&mut self, op: Op, value: Expr) -> Result<(Op, Slot)> {
        let op = self.bind_pending(op)?;
        if let Expr::Slot(slot) = value {
            return Ok((op, slot));
        }
        let out = self.slot();
        Ok((self.op(Op::Let { input: Box::new(op), bindings: vec![(out, value)] })?, out))
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
            this.bound_to_slot(op, value)
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
            Ok((this.matched_rows(Op::Argument, from_ref(path), matched)?, slot))
        })?;
        if path.shortest == Some(Shortest::All) {
            return Ok(Typed::new(self.bind(plan, BindKind::Collect(out)), Types::LIST));
        }
        let first = self.bind(plan, BindKind::First(out));
        // Without a path the slot stays unbound, which this expression turns into null.
        Ok(Typed::new(Expr::Call(Function::Coalesce, vec![first]), Types::PATH))
    }
}

/// Returns null if the list is null, or else the value.
fn null_if_null(list: Expr, value: Expr) -> Expr {
    let branches = vec![(Expr::IsNull(Box::new(list)), Expr::Literal(Value::Null))];
    Expr::Case { branches, otherwise: Box::new(value) }
}
