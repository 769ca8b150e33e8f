//! Evaluates expressions over whole batches, with short cuts for shapes that need no value for each row.

use super::compare::{compare, holds};
use super::elements::Elements;
use super::eval::truth;
use super::members::Members;
use super::need::Needs;
use super::size;
use crate::batch::shares;
use crate::{Batch, Column, Context, Result};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;
use tidegraph_plan::{Comparison, Expr, Slot};
use tidegraph_types::{Str, Token, Value};

/// Computed values of at least this many bytes are charged to the request's memory.
const CHARGED_BYTES: usize = 1024;

/// Prepares expressions for a batch.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator;

impl Evaluator {
    /// Reads what the expressions need of the batch's elements.
    ///
    /// # Errors
    ///
    /// `Error::Value` if a function is called with a wrong number of arguments, `Error::Storage` if storage does not
    /// answer, `Error::Memory` if the data exceeds the request's limit.
    pub fn prepare<'p, 'a>(
        exprs: &[&'p Expr],
        batch: &'p Batch,
        ctx: &'p Context<'a>,
    ) -> Result<Prepared<'p, 'a>> {
        let mut needs = Needs::default();
        for expr in exprs {
            needs.add(expr)?;
        }
        let prepared = Prepared {
            exprs: SmallVec::from_slice(exprs),
            batch,
            ctx,
            elements: Elements::read(ctx, batch, &needs.slots, needs.by_value())?,
            charged: Cell::new(0),
            members: Members::default(),
        };
        // A single row can read on demand.
        if batch.len > 1 {
            for (expr, items) in needs.others {
                prepared.warm(expr, items)?;
            }
        }
        Ok(prepared)
    }

    /// Computes an expression that uses no slots, such as a limit or a number of rounds.
    ///
    /// # Errors
    ///
    /// The errors of the expression.
    pub fn constant(expr: &Expr, ctx: &Context<'_>) -> Result<Value> {
        let batch = Batch::unbound(1, 0);
        Self::prepare(&[expr], &batch, ctx)?.eval(0, 0)
    }
}

/// Expressions of one batch, ready to be computed. An expression is identified by its place in the list that
/// [`Evaluator::prepare`] got.
pub struct Prepared<'p, 'a> {
    exprs: SmallVec<[&'p Expr; 4]>,
    pub(super) batch: &'p Batch,
    pub(super) ctx: &'p Context<'a>,
    pub(super) elements: Elements<'p, 'a>,
    /// Bytes of large computed values. They are released when this is dropped: an operator that keeps a value longer
    /// charges it itself.
    pub(super) charged: Cell<usize>,
    /// Lists that rows ask for items.
    pub(super) members: Members,
}

impl Drop for Prepared<'_, '_> {
    fn drop(&mut self) {
        self.ctx.memory.release(self.charged.get() + self.members.bytes());
    }
}

impl Prepared<'_, '_> {
    /// Computes an expression in a row.
    ///
    /// # Errors
    ///
    /// The errors of the expression.
    pub fn eval(&self, expr: usize, row: usize) -> Result<Value> {
        Ok(self.value(self.exprs[expr], row, None)?.into_owned())
    }

    /// Whether an expression is true in a row; null is not true.
    ///
    /// # Errors
    ///
    /// The errors of the expression, and `Error::Value` if the value is neither a boolean nor null.
    pub fn eval_truth(&self, expr: usize, row: usize) -> Result<bool> {
        Ok(self.truth(self.exprs[expr], row, None)? == Some(true))
    }

    /// Computes an expression in all rows. A slot's column is shared, a constant is one value.
    ///
    /// # Errors
    ///
    /// The errors of the expression.
    pub fn eval_column(&self, expr: usize) -> Result<Arc<Column>> {
        if let Expr::Slot(slot) = self.exprs[expr]
            && let Some(column) = self.batch.column(*slot)
        {
            return Ok(Arc::clone(column));
        }
        self.eval_among(expr, None)
    }

    /// Computes an expression in some rows, in their order.
    ///
    /// # Errors
    ///
    /// The errors of the expression.
    pub fn eval_rows(&self, expr: usize, rows: &[u32]) -> Result<Arc<Column>> {
        if rows.len() == self.batch.len {
            return self.eval_column(expr);
        }
        if let Expr::Slot(slot) = self.exprs[expr]
            && let Some(column) = self.batch.column(*slot)
        {
            return Ok(Arc::new(column.gather(rows)));
        }
        self.eval_among(expr, Some(rows))
    }

    /// Computes an expression in the rows of `among`; `None` for all rows.
    fn eval_among(&self, expr: usize, among: Option<&[u32]>) -> Result<Arc<Column>> {
        let rows = among.map_or(self.batch.len, <[u32]>::len);
        let expr = self.exprs[expr];
        match expr {
            Expr::Slot(_) => return Ok(Arc::new(Column::Constant(Value::Unbound, rows))),
            Expr::Literal(_) | Expr::Parameter(_) => {
                let value = self.value(expr, 0, None)?.into_owned();
                return Ok(Arc::new(Column::Constant(value, rows)));
            }
            Expr::Property(base, key) => {
                if let Expr::Slot(slot) = &**base
                    && let Some(values) = self.properties(*slot, key, among)?
                {
                    return Ok(Arc::new(Column::Values(values)));
                }
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(rows);
        for at in 0..rows {
            let row = among.map_or(at, |among| among[at] as usize);
            self.ctx.spend(1)?;
            let before = self.charged.get();
            let value = self.value(expr, row, None)?.into_owned();
            // Only the value itself is kept.
            if self.charged.get() > before {
                self.release_to(before);
                values.push(self.account(value)?);
            } else {
                values.push(value);
            }
        }
        Ok(Arc::new(Column::from_values(values)))
    }

    /// Returns the rows in which an expression is true, ascending.
    ///
    /// # Errors
    ///
    /// The same as [`Prepared::eval_truth`].
    pub fn eval_filter(&self, expr: usize) -> Result<Vec<u32>> {
        let expr = self.exprs[expr];
        let mut rows: Option<Vec<u32>> = None;
        match expr {
            // Part by part: each part runs its own fast path over the rows that the parts before it left. A part does
            // not run in a row in which an earlier part is false, so it fails only where AND fails.
            Expr::And(parts) => {
                for part in parts {
                    let left = self.filter(part, rows.as_deref())?;
                    if left.is_empty() {
                        return Ok(left);
                    }
                    rows = Some(left);
                }
                Ok(rows.unwrap_or_else(|| (0..self.batch.len as u32).collect()))
            }
            other => self.filter(other, None),
        }
    }

    /// Returns the rows of `among` (`None` for all rows) in which an expression is true.
    fn filter(&self, expr: &Expr, among: Option<&[u32]>) -> Result<Vec<u32>> {
        let mut kept = Vec::new();
        let before = self.charged.get();
        let mut each = |passes: &mut dyn FnMut(usize) -> Result<bool>| -> Result<()> {
            let mut add = |row: u32| -> Result<()> {
                self.ctx.spend(1)?;
                if passes(row as usize)? {
                    kept.push(row);
                }
                self.release_to(before);
                Ok(())
            };
            match among {
                Some(rows) => rows.iter().try_for_each(|row| add(*row)),
                None => (0..self.batch.len as u32).try_for_each(add),
            }
        };
        if let Some(kept) = self.filter_vertices(expr, among)? {
            return Ok(kept);
        }
        if let Some((slot, key, comparison, constant)) = self.property_test(expr) {
            let token = self.elements.token(key);
            each(&mut |row| {
                let Some(record) = self.elements.in_slot(self.batch, slot, row) else {
                    return Ok(self.truth(expr, row, None)? == Some(true));
                };
                if let Some(value) = token.and_then(|token| record.single(token)) {
                    return Ok(compare(self.ctx, comparison, value, constant)? == Some(true));
                }
                let value = record.read(self.ctx, key, token)?;
                Ok(compare(self.ctx, comparison, &value, constant)? == Some(true))
            })?;
        } else {
            each(&mut |row| match expr {
                Expr::Slot(_) | Expr::Literal(_) | Expr::Parameter(_) => {
                    Ok(truth(&*self.value(expr, row, None)?, "a condition")? == Some(true))
                }
                _ => Ok(self.truth(expr, row, None)? == Some(true)),
            })?;
        }
        Ok(kept)
    }

    /// Tests labels, or one property against a constant, of a slot that holds a vertex in every row: names are looked up
    /// once, and no value is made. Returns `None` for any other test.
    fn filter_vertices(&self, expr: &Expr, among: Option<&[u32]>) -> Result<Option<Vec<u32>>> {
        let select = |passes: &mut dyn FnMut(usize) -> Result<bool>| -> Result<Option<Vec<u32>>> {
            let rows = among.map_or(self.batch.len, <[u32]>::len);
            self.ctx.spend(rows)?;
            let mut kept = Vec::with_capacity(rows);
            for at in 0..rows {
                let row = among.map_or(at as u32, |among| among[at]);
                if passes(row as usize)? {
                    kept.push(row);
                }
            }
            Ok(Some(kept))
        };
        let otherwise = |row: usize| Ok(self.truth(expr, row, None)? == Some(true));
        if let Expr::HasLabels(base, labels) = expr
            && let Expr::Slot(slot) = **base
            && let Some(vertices) = self.elements.vertices_in(self.batch, slot)
        {
            let tokens: SmallVec<[Option<Token>; 2]> =
                labels.iter().map(|label| self.elements.token(label)).collect();
            return select(&mut |row| match vertices.labels(row) {
                Some(own) => Ok(tokens.iter().all(|token| token.is_some_and(|token| own.contains(&token)))),
                None => otherwise(row),
            });
        }
        if let Some((slot, key, comparison, constant)) = self.property_test(expr)
            && let Some(vertices) = self.elements.vertices_in(self.batch, slot)
            && let Some(token) = self.elements.token(key)
        {
            let whole = constant.as_i64();
            return select(&mut |row| match (vertices.single(row, token), whole) {
                (Some(Value::Long(value)), Some(whole)) => Ok(holds(comparison, value.cmp(&whole))),
                (Some(value), _) => Ok(compare(self.ctx, comparison, value, constant)? == Some(true)),
                (None, _) => otherwise(row),
            });
        }
        Ok(None)
    }

    /// Recognises `slot.key <comparison> constant` and `constant <comparison> slot.key`.
    fn property_test<'s>(&'s self, expr: &'s Expr) -> Option<(Slot, &'s Str, Comparison, &'s Value)> {
        let Expr::Compare(comparison, left, right) = expr else { return None };
        let constant = |expr: &'s Expr| match expr {
            Expr::Literal(value) => Some(value),
            Expr::Parameter(name) => self.ctx.parameters.get(name),
            _ => None,
        };
        let property = |expr: &'s Expr| match expr {
            Expr::Property(base, key) => match &**base {
                Expr::Slot(slot) => Some((*slot, key)),
                _ => None,
            },
            _ => None,
        };
        if let (Some((slot, key)), Some(value)) = (property(left), constant(right)) {
            return Some((slot, key, *comparison, value));
        }
        let (Some((slot, key)), Some(value)) = (property(right), constant(left)) else { return None };
        let turned = match comparison {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => *same,
        };
        Some((slot, key, turned, value))
    }

    /// Returns a property of a slot's elements in the rows of `among` (`None` for all rows); `None` if a row holds no
    /// element.
    fn properties(&self, slot: Slot, key: &Str, among: Option<&[u32]>) -> Result<Option<Vec<Value>>> {
        let token = self.elements.token(key);
        let vertices = self.elements.vertices_in(self.batch, slot).zip(token);
        let rows = among.map_or(self.batch.len, <[u32]>::len);
        let mut values = Vec::with_capacity(rows);
        for at in 0..rows {
            let row = among.map_or(at, |among| among[at] as usize);
            if let Some(value) = vertices.and_then(|(vertices, token)| vertices.single(row, token)) {
                values.push(value.clone());
                continue;
            }
            let Some(record) = self.elements.in_slot(self.batch, slot, row) else { return Ok(None) };
            values.push(record.read(self.ctx, key, token)?);
        }
        Ok(Some(values))
    }

    /// Reads the elements that an expression returns, for all rows at once. Errors of the expression are left to its
    /// evaluation.
    fn warm(&self, expr: &Expr, items: bool) -> Result<()> {
        let mut values = Vec::with_capacity(self.batch.len);
        for row in 0..self.batch.len {
            match self.value(expr, row, None) {
                Ok(value) => values.push(value),
                Err(crate::Error::Value(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.elements.warm(values.iter().map(|value| &**value), items)
    }

    /// Charges a computed value if it is large.
    pub(super) fn account(&self, value: Value) -> Result<Value> {
        let bytes = size::heap_bytes(&value, self.ctx.memory.left())?;
        if bytes >= CHARGED_BYTES {
            self.charge(bytes)?;
        }
        Ok(value)
    }

    /// Charges an item that is about to be added to a list after the item `before`. Items that share their memory with
    /// the one before count once.
    pub(super) fn charge_item(&self, item: &Value, before: Option<&Value>) -> Result<()> {
        let shared = before.is_some_and(|before| shares(before, item));
        let held = if shared { 0 } else { size::heap_bytes_of_item(item, self.ctx.memory.left())? };
        self.charge(size_of::<Value>() + held)
    }

    fn charge(&self, bytes: usize) -> Result<()> {
        self.ctx.spend(bytes / 64)?;
        self.ctx.memory.charge(bytes)?;
        self.charged.set(self.charged.get() + bytes);
        Ok(())
    }

    /// Releases what was charged since `charged` was `before`.
    pub(super) fn release_to(&self, before: usize) {
        self.ctx.memory.release(self.charged.get().saturating_sub(before));
        self.charged.set(before);
    }
}
