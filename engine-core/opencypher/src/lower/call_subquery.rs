//! `CALL { … }`: a query that runs for each row.
//!
//! The variables of the query around it stay in the rows, but the subquery sees only those that it imports. The others are
//! in its scope without a name, so that no operator drops them.

use super::clause_order::{Role, is_unit};
use super::scope::Scope;
use super::{Lowering, Origin, Projected, Variable, already_declared};
use crate::ast::{Clause, ClauseKind, ExprKind, Imports, Projection, Subquery};
use crate::fault::{Fault, Result};
use tidegraph_plan::{ApplyKind, Expr, Op, Slot};

impl<'a> Lowering<'a> {
    /// Lowers a subquery over the rows of `input`, and declares its columns.
    pub(super) fn call_subquery(&mut self, input: Op, subquery: &'a Subquery, place: u32) -> Result<Op> {
        if let Some(batches) = &subquery.batches {
            return Err(self.misplaced_batches(batches.place.0));
        }
        let (plan, columns) = self.subquery_rows(subquery, place)?;
        let input = Box::new(input);
        let Some(columns) = columns else {
            return self.op(Op::Apply { input, plan: Box::new(plan), kind: ApplyKind::Discard });
        };
        let slots: Vec<Slot> = columns.iter().map(|column| column.slot).collect();
        for Projected { name, slot, types } in columns {
            self.declare(name, slot, types, Origin::Clause);
        }
        let kind = if subquery.optional { ApplyKind::Optional(slots) } else { ApplyKind::Cross };
        self.op(Op::Apply { input, plan: Box::new(plan), kind })
    }

    /// Returns the plan of a subquery, whose rows keep the slots of the outer variables, and its columns.
    pub(super) fn subquery_rows(
        &mut self,
        subquery: &'a Subquery,
        place: u32,
    ) -> Result<(Op, Option<Vec<Projected<'a>>>)> {
        if is_unit(subquery) && subquery.optional {
            return Err(Fault::syntax(place, "OPTIONAL CALL needs a subquery that ends with RETURN"));
        }
        let outer = self.scope.clone();
        let visible = self.visible_inside(subquery)?;
        let imported = subquery.imports.is_none().then_some(&outer);
        let (plan, columns) = self.inside(|this| {
            this.scope = visible;
            let (op, columns) = this.query(&subquery.query, Role::Call, imported)?;
            let Some(mut columns) = columns else { return Ok((op, None)) };
            this.drop_imported(subquery, &outer, &mut columns);
            let mut kept = this.outer_slots();
            let mut op = op;
            let mut bindings = vec![];
            for column in &mut columns {
                if outer.find(column.name).is_some() {
                    let message = format!("variable `{}` is already declared", column.name);
                    return Err(Fault::syntax(place, message));
                }
                // A slot of the outer query would become null with the column.
                if subquery.optional && kept.contains(&column.slot) {
                    let slot = this.slot();
                    bindings.push((slot, Expr::Slot(column.slot)));
                    column.slot = slot;
                }
            }
            if !bindings.is_empty() {
                op = this.op(Op::Let { input: Box::new(op), bindings })?;
            }
            kept.extend(columns.iter().map(|column| column.slot));
            kept.sort_unstable();
            kept.dedup();
            Ok((this.op(Op::Keep { input: Box::new(op), slots: kept })?, Some(columns)))
        })?;
        Ok((plan, columns))
    }

    /// Returns the scope at the start of a subquery: all variables, but only those that it imports have names.
    fn visible_inside(&self, subquery: &'a Subquery) -> Result<Scope<'a>> {
        self.limits.spend(self.scope.len())?;
        let names = match &subquery.imports {
            None => &[][..],
            Some(Imports::All) => return Ok(self.scope.clone().entered()),
            Some(Imports::Names(names)) => names,
        };
        for (at, name) in names.iter().enumerate() {
            self.resolve(&name.text, name.place.0)?;
            self.limits.spend(at)?;
            if names[..at].iter().any(|other| other.text == name.text) {
                return Err(already_declared(name));
            }
        }
        self.limits.spend(names.len().saturating_mul(self.scope.len()))?;
        let hidden = |variable: &Variable<'a>| {
            let is_seen = names.iter().any(|name| name.text == variable.name);
            Variable { name: if is_seen { variable.name } else { "" }, ..variable.clone() }
        };
        let scope: Scope<'a> = self.scope.iter().map(hidden).collect();
        Ok(scope.with_records_of(&self.scope).entered())
    }

    /// Imports the variables of a WITH at the start of a subquery, and returns the clauses after it.
    pub(super) fn import(&mut self, clauses: &'a [Clause], outer: &Scope<'a>) -> Result<&'a [Clause]> {
        let [Clause { kind: ClauseKind::With(projection), place }, rest @ ..] = clauses else {
            return Ok(clauses);
        };
        if !is_import(projection) {
            return Ok(clauses);
        }
        let plain = !projection.distinct
            && projection.order.is_empty()
            && projection.skip.is_none()
            && projection.limit.is_none()
            && projection.predicate.is_none();
        if !plain {
            let message = "a WITH that imports variables into a subquery takes names only, \
                           no DISTINCT, ORDER BY, SKIP, LIMIT or WHERE";
            return Err(Fault::syntax(place.0, message));
        }
        let mut imported: Vec<Variable<'a>> = vec![];
        if projection.star {
            imported.extend(outer.iter().filter(|variable| !variable.name.is_empty()).cloned());
        }
        for item in &projection.items {
            let ExprKind::Variable(name) = &item.expr.kind else { continue };
            let Some(variable) = outer.find(name) else {
                let message = format!("variable `{name}` is not defined");
                return Err(Fault::syntax(item.expr.place.0, message));
            };
            imported.push(variable.clone());
        }
        for variable in imported {
            self.scope.push(variable);
        }
        Ok(rest)
    }

    /// Removes the imported variables that `RETURN *` names.
    fn drop_imported(&self, subquery: &Subquery, outer: &Scope<'a>, columns: &mut Vec<Projected<'a>>) {
        let last = subquery.query.parts.first().and_then(|part| part.clauses.last());
        let Some(Clause { kind: ClauseKind::Return(projection), .. }) = last else { return };
        if projection.star && subquery.imports.is_some() {
            let named = |name: &str| {
                projection.items.iter().any(|item| match &item.alias {
                    Some(alias) => alias.text == name,
                    None => item.text == name,
                })
            };
            let is_imported = |column: &Projected<'a>| {
                outer.find(column.name).is_some_and(|variable| variable.slot == column.slot)
            };
            columns.retain(|column| named(column.name) || !is_imported(column));
        }
    }

    /// Returns the error that `IN TRANSACTIONS` stands where it cannot.
    fn misplaced_batches(&self, place: u32) -> Fault {
        let message = if self.level > 0 {
            "CALL { … } IN TRANSACTIONS is not allowed inside a subquery"
        } else {
            "CALL { … } IN TRANSACTIONS is allowed once in a query, and not in a query with UNION"
        };
        Fault::syntax(place, message)
    }
}

/// Whether a WITH only names variables.
fn is_import(projection: &Projection) -> bool {
    projection.items.iter().all(|item| {
        let ExprKind::Variable(name) = &item.expr.kind else { return false };
        item.alias.as_ref().is_none_or(|alias| alias.text == *name)
    })
}
