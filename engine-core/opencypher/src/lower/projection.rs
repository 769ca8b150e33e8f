//! WITH and RETURN: items, grouping, DISTINCT, ORDER BY, SKIP, LIMIT and the WHERE of WITH, in this order.

use super::scope::{CsvRecord, Scope};
use super::types::Types;
use super::{Lowering, Origin, Projected, Replacement, Typed, Variable, aggregate};
use crate::ast::{Expr as Tree, ExprKind, Projection};
use crate::fault::{Fault, Result};
use std::collections::BTreeSet;
use tidegraph_plan::{AggregateItem, AggregateKind, BindKind, Expr, Op, Slot, SortKey, TotalOrder};
use tidegraph_types::Value;

/// An item with its name. Without a tree it is a variable that `*` brought in.
struct Named<'a> {
    name: &'a str,
    tree: Option<&'a Tree>,
    grouped: bool,
}

const GROUPED_HINT: &str =
    "beside an aggregation only grouping keys can be used: project it as an item of its own";
const LATER_HINT: &str = "after DISTINCT or an aggregation only what is projected can be used";

impl<'a> Lowering<'a> {
    /// Lowers a projection. `with`: other slots are unbound afterwards. The caller changes the scope.
    pub(super) fn projection(
        &mut self,
        input: Op,
        projection: &'a Projection,
        offset: u32,
        with: bool,
    ) -> Result<(Op, Vec<Projected<'a>>)> {
        let before = self.scope.clone();
        let items = self.items(projection, offset, with)?;
        let aggregated = items.iter().any(|i| i.grouped);
        let (mut op, columns, keeps_all) =
            if aggregated { self.group(input, &items)? } else { self.compute(input, &items)? };
        self.scope.clone_from(&before);
        if with {
            self.refuse_other_meanings(projection, &columns)?;
        }
        let slots: Vec<Slot> = columns.iter().map(|c| c.slot).collect();
        if projection.distinct {
            let by = slots.iter().copied().map(Expr::Slot).collect();
            op = self.op(Op::Distinct { input: Box::new(op), by })?;
        }

        // ORDER BY and WHERE see the aliases and, unless rows were merged, the variables from before.
        let merged = aggregated || projection.distinct;
        if merged {
            self.scope.truncate(self.outer);
        }
        for (item, column) in items.iter().zip(&columns) {
            self.limits.spend(before.len())?;
            // `WITH a` and `WITH a AS b` keep the meaning of `a`.
            let same =
                before.iter().rev().find(|v| v.name == item.name).is_none_or(|v| v.slot == column.slot);
            let origin = if same { Origin::Clause } else { Origin::Alias };
            self.declare(item.name, column.slot, column.types, origin);
        }
        self.hint = merged.then_some(LATER_HINT);
        for (item, column) in items.iter().zip(&columns) {
            if let Some(tree) = item.tree {
                self.replacements.push(Replacement { tree, slot: column.slot, types: column.types });
            }
        }
        if !projection.order.is_empty() {
            let mut keys = Vec::with_capacity(projection.order.len());
            for item in &projection.order {
                let expr = self.sort_key(&item.expr)?;
                keys.push(SortKey { expr, order: TotalOrder::OpenCypher, descending: item.descending });
            }
            op = self.bind_pending(op)?;
            op = self.op(Op::Sort { input: Box::new(op), keys })?;
        }
        let replacements = std::mem::take(&mut self.replacements);
        let after = std::mem::take(&mut self.scope);
        if projection.skip.is_some() || projection.limit.is_some() {
            let skip = self.row_count(projection.skip.as_ref(), "SKIP")?;
            let limit = self.row_count(projection.limit.as_ref(), "LIMIT")?;
            op = self.op(Op::Slice { input: Box::new(op), skip, limit })?;
        }
        self.scope = after;
        self.replacements = replacements;
        if let Some(predicate) = &projection.predicate {
            let conditions = self.conditions(predicate)?;
            op = self.filter(op, conditions)?;
        }
        self.replacements.clear();
        self.hint = None;
        self.scope = before;
        if aggregated {
            self.scope.forget_record();
        }
        if with && !keeps_all {
            let mut kept = slots;
            kept.extend(self.scope.record.iter().flat_map(CsvRecord::slots));
            kept.extend(self.outer_slots());
            let mut seen = BTreeSet::new();
            kept.retain(|slot| seen.insert(*slot));
            op = self.op(Op::Keep { input: Box::new(op), slots: kept })?;
        }
        Ok((op, columns))
    }

    /// Refuses a WITH in a subquery that gives another meaning to a variable of an outer query.
    fn refuse_other_meanings(&self, projection: &Projection, columns: &[Projected<'a>]) -> Result<()> {
        for column in columns {
            let outer = self.scope.iter().take(self.outer).rev().find(|v| v.name == column.name);
            if outer.is_none_or(|outer| outer.slot == column.slot) {
                continue;
            }
            let message = format!(
                "variable `{}` of the outer query cannot be declared again in a subquery, expected another name",
                column.name
            );
            let aliases = projection.items.iter().filter_map(|item| item.alias.as_ref());
            let place = aliases.filter(|alias| alias.text == column.name).map(|alias| alias.place.0).next();
            return Err(Fault::syntax(place.unwrap_or(self.place), message));
        }
        Ok(())
    }

    /// Returns the items with their names, with `*` expanded.
    fn items(&mut self, projection: &'a Projection, offset: u32, with: bool) -> Result<Vec<Named<'a>>> {
        let mut items: Vec<Named<'a>> = vec![];
        let mut names: BTreeSet<&'a str> = BTreeSet::new();
        if projection.star {
            // The last of several variables of one name is the visible one.
            for variable in self.scope.iter().rev() {
                if !variable.name.is_empty()
                    && names.insert(variable.name)
                    && !matches!(variable.origin, Origin::Local(_))
                {
                    items.push(Named { name: variable.name, tree: None, grouped: false });
                }
            }
            items.reverse();
            if items.is_empty() && !with {
                return Err(Fault::syntax(
                    offset,
                    "RETURN * without variables, expected at least one in scope",
                ));
            }
        }
        for item in &projection.items {
            let name = item.alias.as_ref().map_or(&item.text, |a| &a.text);
            if !names.insert(name) {
                let place = item.alias.as_ref().map_or(item.expr.place.0, |a| a.place.0);
                return Err(Fault::syntax(place, format!("column `{name}` stands twice in the projection")));
            }
            items.push(Named { name, tree: Some(&item.expr), grouped: aggregate::contains(&item.expr) });
        }
        Ok(items)
    }

    fn item(&mut self, item: &Named<'a>) -> Result<Typed> {
        match item.tree {
            Some(tree) => self.expr(tree),
            None => {
                let (slot, types) = self.resolve(item.name, 0)?;
                Ok(Typed::new(Expr::Slot(slot), types))
            }
        }
    }

    /// Lowers items without aggregation, which are computed row by row.
    fn compute(&mut self, input: Op, items: &[Named<'a>]) -> Result<(Op, Vec<Projected<'a>>, bool)> {
        let mut bindings = vec![];
        let mut columns = Vec::with_capacity(items.len());
        for item in items {
            let value = self.item(item)?;
            let slot = match value.expr {
                Expr::Slot(slot) => slot,
                expr => {
                    let slot = self.slot();
                    bindings.push((slot, expr));
                    slot
                }
            };
            columns.push(Projected { name: item.name, slot, types: value.types });
        }
        let mut op = self.bind_pending(input)?;
        if !bindings.is_empty() {
            op = self.op(Op::Let { input: Box::new(op), bindings })?;
        }
        Ok((op, columns, false))
    }

    /// Lowers items of which some aggregate; the others are the grouping keys. Also returns whether exactly the columns
    /// are bound.
    fn group(&mut self, input: Op, items: &[Named<'a>]) -> Result<(Op, Vec<Projected<'a>>, bool)> {
        let mut keys: Vec<(Slot, Expr)> = vec![];
        let mut aggregates: Vec<AggregateItem> = vec![];
        let mut key_columns: Vec<Option<(Slot, Types)>> = Vec::with_capacity(items.len());
        let mut replacements: Vec<Replacement<'a>> = vec![];
        let outer_slots = self.outer_slots();
        let scope: Scope<'a> = self.scope[..self.outer].iter().cloned().collect();
        let mut scope = scope.with_records_of(&self.scope);
        scope.forget_record();

        for item in items {
            if item.grouped {
                key_columns.push(None);
                continue;
            }
            let value = self.item(item)?;
            self.limits.spend(2 * keys.len())?;
            let slot = match (&value.expr, keys.iter().find(|(_, e)| *e == value.expr)) {
                // The slot that already holds the expression, or a new one.
                (_, Some((slot, _))) if !matches!(value.expr, Expr::Literal(_)) => *slot,
                (Expr::Slot(slot), _) => *slot,
                _ => self.slot(),
            };
            if !keys.iter().any(|(s, _)| *s == slot) {
                keys.push((slot, value.expr));
            }
            key_columns.push(Some((slot, value.types)));
            let name = match item.tree.map(|t| &t.kind) {
                Some(ExprKind::Variable(name)) => name.as_str(),
                Some(_) => {
                    if let Some(tree) = item.tree.filter(|t| is_simple_key(t)) {
                        replacements.push(Replacement { tree, slot, types: value.types });
                    }
                    continue;
                }
                None => item.name,
            };
            scope.push(Variable { name, slot, types: value.types, origin: Origin::Clause });
        }
        for item in items.iter().filter(|i| i.grouped) {
            let Some(tree) = item.tree else { continue };
            let mut found = vec![];
            aggregate::for_each(tree, &mut |call| found.push(call));
            for call in found {
                self.limits.spend(replacements.len())?;
                if replacements.iter().any(|r| r.tree == call) {
                    continue;
                }
                let out = self.slot();
                let aggregate = self.aggregate(call, out)?;
                let types = match aggregate.kind {
                    AggregateKind::CountRows | AggregateKind::Count => Types::INTEGER,
                    AggregateKind::Collect => Types::LIST,
                    _ => Types::ANY,
                };
                aggregates.push(aggregate);
                replacements.push(Replacement { tree: call, slot: out, types });
            }
        }
        let input = self.bind_pending(input)?;
        let bound = keys.len() + aggregates.len();
        let mut op = self.aggregate_rows(input, keys, aggregates, &outer_slots)?;

        // Items that are computed from keys and aggregates.
        self.scope = scope;
        self.replacements = replacements;
        self.hint = Some(GROUPED_HINT);
        let mut bindings = vec![];
        let mut columns: Vec<Projected<'a>> = Vec::with_capacity(items.len());
        for (item, key) in items.iter().zip(key_columns) {
            let (slot, types) = match (key, item.tree) {
                (Some(key), _) => key,
                (None, Some(tree)) => match self.expr(tree)? {
                    Typed { expr: Expr::Slot(slot), types } => (slot, types),
                    Typed { expr, types } => {
                        let slot = self.slot();
                        bindings.push((slot, expr));
                        (slot, types)
                    }
                },
                (None, None) => continue,
            };
            columns.push(Projected { name: item.name, slot, types });
        }
        self.hint = None;
        op = self.bind_pending(op)?;
        let mut distinct: Vec<Slot> = columns.iter().map(|c| c.slot).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let keeps_all = bindings.is_empty() && distinct.len() == bound && outer_slots.is_empty();
        if !bindings.is_empty() {
            op = self.op(Op::Let { input: Box::new(op), bindings })?;
        }
        Ok((op, columns, keeps_all))
    }

    /// Aggregates rows, and keeps the slots of the outer queries, which are the same in all rows of an outer row.
    fn aggregate_rows(
        &mut self,
        input: Op,
        mut keys: Vec<(Slot, Expr)>,
        items: Vec<AggregateItem>,
        outer: &[Slot],
    ) -> Result<Op> {
        let without_keys = keys.is_empty();
        if !without_keys {
            let known: BTreeSet<Slot> = keys.iter().map(|(slot, _)| *slot).collect();
            let missing = outer.iter().filter(|slot| !known.contains(slot));
            keys.extend(missing.map(|slot| (*slot, Expr::Slot(*slot))));
        }
        let outs: Vec<Slot> = items.iter().map(|item| item.out).collect();
        let rows = self.op(Op::Aggregate { input: Box::new(input), keys, items })?;
        if !without_keys || outer.is_empty() {
            return Ok(rows);
        }
        // One row for each outer row, even without input: its values are bound beside the outer slots.
        let (packed, list) = (self.slot(), self.slot());
        let values = Expr::List(outs.iter().map(|slot| Expr::Slot(*slot)).collect());
        let rows = self.op(Op::Let { input: Box::new(rows), bindings: vec![(packed, values)] })?;
        let (input, plan) = (Box::new(Op::Argument), Box::new(rows));
        let bind = self.op(Op::Bind { input, plan, out: list, kind: BindKind::First(packed) })?;
        let item = |at: usize| Expr::Index(Box::new(Expr::Slot(list)), Box::new(Expr::literal(at as i64)));
        let bindings = outs.iter().enumerate().map(|(at, slot)| (*slot, item(at))).collect();
        self.op(Op::Let { input: Box::new(bind), bindings })
    }

    /// Lowers an item of ORDER BY. The projection must compute every aggregation in it.
    fn sort_key(&mut self, tree: &'a Tree) -> Result<Expr> {
        if !aggregate::contains(tree) || self.replacements.iter().any(|r| r.tree == tree) {
            return self.value(tree);
        }
        // Beside an aggregation the rule for items holds: only variables and their properties may be grouping keys.
        let all = self.replacements.clone();
        let simple = |r: &Replacement<'_>| aggregate::contains(r.tree) || is_simple_key(r.tree);
        self.replacements.retain(simple);
        let value = self.value(tree);
        self.replacements = all;
        value
    }

    /// Lowers the number after SKIP or LIMIT, which sees no variables.
    fn row_count(&mut self, tree: Option<&'a Tree>, clause: &'static str) -> Result<Option<Expr>> {
        let Some(tree) = tree else { return Ok(None) };
        let fault = |found: String| {
            let message = format!("found {found} after {clause}, expected a non-negative integer");
            Err(Fault::syntax(tree.place.0, message))
        };
        let hint = self.hint.replace("SKIP and LIMIT are the same for all rows");
        let value = self.expr(tree)?;
        self.hint = hint;
        if !self.pending.is_empty() {
            return fault("a subquery".into());
        }
        if let Expr::Literal(Value::Long(number)) = value.expr
            && number < 0
        {
            return fault(number.to_string());
        }
        if let Expr::Literal(Value::Null) = value.expr {
            return fault("null".into());
        }
        if !value.types.meets(Types::INTEGER) {
            return fault(value.types.describe());
        }
        Ok(Some(value.expr))
    }
}

/// A grouping key that may stand beside an aggregation: a variable or a property of one.
fn is_simple_key(tree: &Tree) -> bool {
    match &tree.kind {
        ExprKind::Variable(_) => true,
        ExprKind::Property(base, _) => is_simple_key(base),
        _ => false,
    }
}
