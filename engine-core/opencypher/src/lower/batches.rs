//! `CALL { … } IN TRANSACTIONS`: three plans instead of one.

use super::clause_order::{self, Role, is_unit};
use super::scope::CsvRecord;
use super::types::Types;
use super::{Lowering, Origin, Projected};
use crate::ast::{Clause, ClauseKind, Name, Query, SingleQuery, Subquery};
use crate::fault::{Fault, Result};
use tidegraph_plan::{
    ApplyKind, BatchedPlan, Column, DEFAULT_RETRY_S, Expr, Limits, Op, Plan, Procedures, ROWS_PARAMETER, Slot,
};
use tidegraph_types::{Str, Value};

/// A column that goes from one plan to the next.
#[derive(Clone, Copy)]
struct Carried<'a> {
    /// The variable; `None`: the column is a part of the record of LOAD CSV, first its number and then its file.
    name: Option<&'a str>,
    types: Types,
}

impl<'a> Carried<'a> {
    fn variable(name: &'a str, types: Types) -> Self {
        Self { name: Some(name), types }
    }
}

/// Lowers a query with such a subquery. `None`: it has none.
pub(crate) fn lower(
    query: &Query,
    procedures: &Procedures,
    limits: &Limits<'_>,
) -> Result<Option<BatchedPlan>> {
    let [part] = &query.parts[..] else { return Ok(None) };
    let found = part.clauses.iter().position(|clause| match &clause.kind {
        ClauseKind::Subquery(subquery) => subquery.batches.is_some(),
        _ => false,
    });
    let Some((at, clause)) = found.and_then(|at| Some((at, part.clauses.get(at)?))) else { return Ok(None) };
    let ClauseKind::Subquery(subquery) = &clause.kind else { return Ok(None) };
    let Some(batches) = &subquery.batches else { return Ok(None) };
    clause_order::check(&part.clauses, Role::Query)?;
    let place = clause.place.0;

    let (input, carried) = before(part, at, procedures, limits)?;
    if input.root.writes() {
        let message = "CALL { … } IN TRANSACTIONS after an updating clause is not allowed";
        return Err(Fault::syntax(batches.place.0, message));
    }
    let mut lowering = Lowering::new(procedures, limits);
    let positive = |value: &Value| matches!(value, Value::Long(1..));
    if let Some(tree) = &batches.concurrency {
        lowering.number(tree, "the number of CONCURRENT TRANSACTIONS is a positive integer", positive)?;
    }
    let size = &batches.size;
    let size = size
        .as_ref()
        .map(|tree| lowering.number(tree, "the number of ROWS of a batch is a positive integer", positive));
    let size = size.transpose()?;
    let retry_s = match &batches.retry {
        None => None,
        Some(None) => Some(Expr::literal(DEFAULT_RETRY_S)),
        Some(Some(tree)) => {
            let expected = "the time of RETRY is a positive number of seconds";
            Some(
                lowering
                    .number(tree, expected, |value| value.as_f64().is_some_and(|seconds| seconds > 0.0))?,
            )
        }
    };
    let (batch, carried) = inside(lowering, subquery, &carried, place)?;
    let after = part.clauses.get(at + 1..).unwrap_or_default();
    let rest = if after.is_empty() {
        None
    } else {
        Some(rest(after, &carried, batches.status.as_ref(), procedures, limits)?)
    };
    let with_limit = |plan: Plan| Plan { timeout: query.timeout, ..plan };
    Ok(Some(BatchedPlan {
        input: with_limit(input),
        batch: with_limit(batch),
        rest: rest.map(with_limit),
        reports: batches.status.is_some(),
        size,
        retry_s,
        on_error: batches.on_error,
    }))
}

/// Lowers the clauses before the subquery, and returns the variables in scope after them.
fn before<'a>(
    part: &'a SingleQuery,
    at: usize,
    procedures: &'a Procedures,
    limits: &'a Limits<'a>,
) -> Result<(Plan, Vec<Carried<'a>>)> {
    let mut lowering = Lowering::new(procedures, limits);
    let clauses = part.clauses.get(..at).unwrap_or_default();
    let (root, _) = lowering.clauses(Op::Argument, clauses)?;
    let (mut columns, mut carried): (Vec<Column>, Vec<Carried<'a>>) = (vec![], vec![]);
    for (position, variable) in lowering.scope.iter().enumerate() {
        let is_visible = lowering.find(variable.name).is_some_and(|found| std::ptr::eq(found, variable));
        limits.spend(1 + position / 64)?;
        if is_visible {
            columns.push(Column { name: variable.name.into(), slot: variable.slot });
            carried.push(Carried::variable(variable.name, variable.types));
        }
    }
    if let Some(CsvRecord { number, file }) = lowering.scope.record {
        for (slot, types) in [(number, Types::INTEGER), (file, Types::STRING)] {
            columns.push(Column { name: Str::default(), slot });
            carried.push(Carried { name: None, types });
        }
    }
    Ok((lowering.plan_of_rows(root, columns)?, carried))
}

/// Lowers the subquery over rows from the parameter.
fn inside<'a>(
    mut lowering: Lowering<'a>,
    subquery: &'a Subquery,
    carried: &[Carried<'a>],
    place: u32,
) -> Result<(Plan, Vec<Carried<'a>>)> {
    let (op, mut columns) = lowering.rows_of_parameter(carried)?;
    let (plan, yielded) = lowering.subquery_rows(subquery, place)?;
    let kind = match &yielded {
        None => ApplyKind::Discard,
        Some(yielded) if subquery.optional => ApplyKind::Optional(yielded.iter().map(|c| c.slot).collect()),
        Some(_) => ApplyKind::Cross,
    };
    debug_assert_eq!(yielded.is_none(), is_unit(subquery));
    let root = lowering.op(Op::Apply { input: Box::new(op), plan: Box::new(plan), kind })?;
    let mut after = carried.to_vec();
    for Projected { name, slot, types } in yielded.unwrap_or_default() {
        columns.push(Column { name: name.into(), slot });
        after.push(Carried::variable(name, types));
    }
    Ok((lowering.plan_of_rows(root, columns)?, after))
}

/// Lowers the clauses after the subquery over rows from the parameter.
fn rest<'a>(
    clauses: &'a [Clause],
    carried: &[Carried<'a>],
    status: Option<&'a Name>,
    procedures: &'a Procedures,
    limits: &'a Limits<'a>,
) -> Result<Plan> {
    let mut lowering = Lowering::new(procedures, limits);
    let mut all = carried.to_vec();
    if let Some(status) = status {
        if carried.iter().any(|column| column.name == Some(&*status.text)) {
            return Err(super::already_declared(status));
        }
        all.push(Carried::variable(&status.text, Types::MAP));
    }
    let (op, _) = lowering.rows_of_parameter(&all)?;
    let (root, columns) = lowering.clauses(op, clauses)?;
    let columns = columns.unwrap_or_default();
    let columns = columns.into_iter().map(|c| Column { name: c.name.into(), slot: c.slot }).collect();
    Ok(Plan { root, slots: lowering.slots, columns, timeout: None, seed: None, references: false })
}

/// Lowers a query over rows from the parameter, which have these columns.
pub(crate) fn over_rows(query: &Query, columns: &[&str], limits: &Limits<'_>) -> Result<Plan> {
    let Some(part) = query.parts.first() else { return Err(Fault::syntax(0, "no query")) };
    clause_order::check(&part.clauses, Role::Query)?;
    let carried: Vec<Carried<'_>> = columns.iter().map(|name| Carried::variable(name, Types::DATA)).collect();
    rest(&part.clauses, &carried, None, Procedures::builtin(), limits)
}

impl<'a> Lowering<'a> {
    /// Reads rows from the parameter, and declares their columns.
    fn rows_of_parameter(&mut self, carried: &[Carried<'a>]) -> Result<(Op, Vec<Column>)> {
        let row = self.slot();
        let list = Expr::Parameter(Str::new_static(ROWS_PARAMETER));
        let rows = self.op(Op::Unwind { input: Box::new(Op::Argument), list, out: row })?;
        let mut bindings: Vec<(Slot, Expr)> = vec![];
        let mut columns = vec![];
        let mut record = vec![];
        for (at, Carried { name, types }) in carried.iter().enumerate() {
            let slot = self.slot();
            let position = Box::new(Expr::literal(at as i64));
            bindings.push((slot, Expr::Index(Box::new(Expr::Slot(row)), position)));
            match name {
                Some(name) => self.declare(name, slot, *types, Origin::Clause),
                None => record.push(slot),
            }
            columns.push(Column { name: name.unwrap_or_default().into(), slot });
        }
        if let [number, file] = record[..] {
            self.scope.record = Some(CsvRecord { number, file });
        }
        if bindings.is_empty() {
            return Ok((rows, columns));
        }
        Ok((self.op(Op::Let { input: Box::new(rows), bindings })?, columns))
    }

    /// Returns a plan that yields its rows, also if they have no columns: then each has one that nothing reads.
    fn plan_of_rows(&mut self, mut root: Op, mut columns: Vec<Column>) -> Result<Plan> {
        if columns.is_empty() {
            let slot = self.slot();
            root = self.op(Op::Let { input: Box::new(root), bindings: vec![(slot, Expr::literal(true))] })?;
            columns.push(Column { name: Str::default(), slot });
        }
        Ok(Plan { root, slots: self.slots, columns, timeout: None, seed: None, references: false })
    }

    /// Lowers a number of `IN TRANSACTIONS`: a literal that `is_valid`, or a parameter.
    fn number(
        &mut self,
        tree: &'a crate::ast::Expr,
        expected: &str,
        is_valid: fn(&Value) -> bool,
    ) -> Result<Expr> {
        match self.value(tree)? {
            value @ Expr::Parameter(_) => Ok(value),
            Expr::Literal(value) if is_valid(&value) => Ok(Expr::Literal(value)),
            _ => Err(Fault::syntax(tree.place.0, format!("{expected} or a parameter"))),
        }
    }
}
