//! `withSack` and `sack`: a value that each traverser carries.
//!
//! The sack is a slot of the request, which `sack(operator)` writes. Before the first write, and after a reducing step, a
//! traverser has the value of `withSack`.
//!
//! `barrier()` merges traversers that differ in their sacks only, if `withSack` has an operator for them. Elsewhere rows stay apart
//! until an optimiser pass may merge them, which no answer shows.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, SourceCall, Step, StepName};
use crate::compile::by::By;
use crate::compile::lists::operator_of;
use crate::compile::reduce::item;
use crate::fault::Fault;
use tidegraph_plan::{AggregateKind, Arithmetic, Expr, Function, Op, Operator, Slot};
use tidegraph_types::Value;

/// Returns the operator that a constant stands for.
pub(super) fn operator(arg: &Arg<'_>) -> Option<Operator> {
    arg.constant().and_then(operator_of)
}

/// Combines all values of a list, from a first value on.
pub(super) fn combined(compiler: &mut Compiler, operator: Operator, start: Expr, list: Expr) -> Expr {
    let (accumulator, variable) = (compiler.fresh(), compiler.fresh());
    let step = vec![Expr::Slot(accumulator), Expr::Slot(variable)];
    Expr::Reduce {
        accumulator,
        start: Box::new(start),
        variable,
        list: Box::new(list),
        step: Box::new(call(Function::Operate(operator), step)),
    }
}

impl Compiler {
    /// `g.withSack(value)`
    pub(super) fn with_sack(&mut self, step: &Step<'_, SourceCall>) -> Result<()> {
        match step.args.as_slice() {
            [value] => {
                self.sack_start = Some(self.expr(value)?);
                Ok(())
            }
            [value, merge] => {
                self.sack_start = Some(self.expr(value)?);
                self.sack_merge = Some(operator(merge).ok_or_else(|| wrong_arguments(step))?);
                Ok(())
            }
            [_, _, _] => Err(Fault::unsupported(step.at, "withSack() with an operator that splits")),
            _ => Err(wrong_arguments(step)),
        }
    }

    /// Returns the slot that `sack(operator)` writes.
    fn sack_slot(&mut self) -> Slot {
        match self.sack {
            Some(slot) => slot,
            None => {
                let slot = self.fresh();
                self.sack = Some(slot);
                slot
            }
        }
    }

    /// Returns the sack of a traverser.
    fn held_sack(&mut self) -> Expr {
        let slot = self.sack_slot();
        let start = self.sack_start.clone().unwrap_or(Expr::Literal(Value::Null));
        Expr::Case { branches: vec![(Expr::IsBound(slot), Expr::Slot(slot))], otherwise: Box::new(start) }
    }

    /// `barrier()` with sacks that merge, or without bulk: traversers that nothing else tells apart become one. With bulk, as many
    /// rows as before go on, because a row is one traverser.
    pub(super) fn merge_traversers(&mut self, flow: &mut Flow) {
        // The vertex before an edge tells no traversers apart, unless a step such as `otherV` asks for paths.
        if self.path.is_none() {
            flow.scope.near = None;
        }
        let merge = self.sack_merge.map(|operator| (operator, self.sack_slot(), self.fresh()));
        let mut keys = self.live_slots(flow, &[]);
        let count = self.fresh();
        let mut items = vec![item(count, AggregateKind::CountRows, vec![])];
        if let Some((_, sack, sacks)) = merge {
            keys.retain(|slot| *slot != sack);
            items.push(item(sacks, AggregateKind::CollectAll, vec![self.held_sack()]));
        }
        // A `Distinct` would compare with the rows of all rounds in the body of a repeat.
        let keys = keys.into_iter().map(|slot| (slot, Expr::Slot(slot))).collect();
        flow.wrap(|input| Op::Aggregate { input, keys, items });
        if let Some((operator, sack, sacks)) = merge {
            let first = call(Function::Head, vec![Expr::Slot(sacks)]);
            let rest = call(Function::ListTail, vec![Expr::Slot(sacks)]);
            let merged = combined(self, operator, first, rest);
            flow.bind(sack, merged);
        }
        if !self.one_bulk {
            let list = call(Function::Range, vec![Expr::literal(1_i64), Expr::Slot(count)]);
            let out = self.fresh();
            flow.wrap(|input| Op::Unwind { input, list, out });
        }
    }

    /// `barrier(normSack)`: divides the sack of each traverser by the sum of all sacks.
    pub(super) fn norm_sack(&mut self, flow: &mut Flow) {
        let (sack, held) = (self.sack_slot(), self.held_sack());
        let number = Expr::Arithmetic(Arithmetic::Multiply, Box::new(held), Box::new(Expr::literal(1.0)));
        let value = self.slot_of(flow, number);
        let slots = self.live_slots(flow, &[value]);
        let (rows, total, row) = (self.fresh(), self.fresh(), self.fresh());
        let each = Expr::List(slots.iter().map(|slot| Expr::Slot(*slot)).collect());
        let items = vec![
            item(rows, AggregateKind::Collect, vec![each]),
            item(total, AggregateKind::Sum, vec![Expr::Slot(value)]),
        ];
        flow.wrap(|input| Op::Aggregate { input, keys: vec![], items });
        flow.wrap(|input| Op::Unwind { input, list: Expr::Slot(rows), out: row });
        for (slot, index) in slots.iter().zip(0_i64..) {
            flow.bind(*slot, Expr::Index(Box::new(Expr::Slot(row)), Box::new(Expr::literal(index))));
        }
        let share =
            Expr::Arithmetic(Arithmetic::Divide, Box::new(Expr::Slot(value)), Box::new(Expr::Slot(total)));
        flow.bind(sack, share);
    }

    /// `sack()`, `sack(operator).by(…)`
    pub(super) fn sack(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let cur = flow.cur(step)?;
        let (slot, held) = (self.sack_slot(), self.held_sack());
        let operator = match step.args.as_slice() {
            [] => {
                let out = self.or_fresh(dest);
                flow.bind(out, held);
                flow.set_current(out, ObjectKind::Unknown);
                return Ok(());
            }
            [arg @ Arg { kind: ArgKind::Constant(_), .. }] => {
                operator(arg).ok_or_else(|| wrong_arguments(step))?
            }
            _ => return Err(wrong_arguments(step)),
        };
        let by = match self.single_by(step, cursor.take_all(StepName::By))? {
            [] => By::Identity,
            [by, ..] => self.by(by, &by.args)?,
        };
        let value = self.by_value(flow, &by, Expr::Slot(cur), flow.scope.kind)?;
        let other = self.slot_of(flow, value.expr);
        if !value.productive {
            flow.filter(not(is_null(Expr::Slot(other))));
        }
        flow.bind(slot, call(Function::Operate(operator), vec![held, Expr::Slot(other)]));
        Ok(())
    }
}
