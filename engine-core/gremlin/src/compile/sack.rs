//! `withSack` and `sack`: a value that each traverser carries.
//!
//! The sack is a slot of the request, which `sack(operator)` writes. Before the first write, and after a reducing step, a
//! traverser has the value of `withSack`.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, SourceCall, Step, StepName};
use crate::compile::by::By;
use crate::compile::lists::operator_of;
use crate::fault::Fault;
use tidegraph_plan::{Expr, Function, Operator, Slot};
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
            [_, _] | [_, _, _] => Err(Fault::unsupported(step.at, "withSack() with an operator")),
            _ => Err(wrong_arguments(step)),
        }
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
        let slot = match self.sack {
            Some(slot) => slot,
            None => {
                let slot = self.fresh();
                self.sack = Some(slot);
                slot
            }
        };
        let start = self.sack_start.clone().unwrap_or(Expr::Literal(Value::Null));
        let held = Expr::Case {
            branches: vec![(Expr::IsBound(slot), Expr::Slot(slot))],
            otherwise: Box::new(start),
        };
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
