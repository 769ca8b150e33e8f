//! `branch`, and `choose` with an `option(any)`: a traverser takes each option whose pick fits.
//!
//! The choice is computed once for each traverser. Each option has a condition on the choice; the options are part of the
//! stream, like the branches of `union`.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, not, wrong_arguments};
use crate::ast::{ArgKind, Constant, Step, StepName};
use crate::compile::branch::{join_branches, stateful};
use crate::compile::filter::Subject;
use crate::compile::predicate::Operands;
use tidegraph_plan::{Comparison, Expr, Function, Op, Slot};
use tidegraph_types::Value;

/// The condition of an option.
enum Pick {
    If(Expr),
    Any,
    None,
    Unproductive,
}

impl Compiler {
    /// `branch(traversal).option(pick, traversal)…`. `first_only`: an option is not taken if one before it fits.
    pub(super) fn options<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        first_only: bool,
        dest: Option<Slot>,
    ) -> Result<()> {
        let [choice] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        let at = Subject::current(flow, step)?;
        let value = match &choice.kind {
            ArgKind::Traversal(steps) => self.child_value(flow, steps, at)?,
            ArgKind::Constant(_) => {
                let by = self.by(step, &step.args)?;
                self.by_value(flow, &by, at.expr, at.kind)?
            }
            _ => return Err(wrong_arguments(step)),
        };
        let productive = value.productive;
        let choice = self.slot_of(flow, value.expr);
        let mut options: Vec<(Pick, &'a [Step<'t>])> = vec![];
        for option in cursor.take_all(StepName::Option) {
            let (pick, plan) = match option.args.as_slice() {
                // Without a pick, every traverser takes it.
                [plan] => (Pick::Any, plan),
                [key, plan] => (self.pick(flow, choice, &key.kind, key)?, plan),
                _ => return Err(wrong_arguments(option)),
            };
            options.push((pick, plan.steps().ok_or_else(|| wrong_arguments(option))?));
        }
        let handles_unproductive = options.iter().any(|(pick, _)| matches!(pick, Pick::Unproductive));
        let missing = if productive { Expr::literal(false) } else { super::is_null(Expr::Slot(choice)) };
        let known = |test: Expr| call(Function::Coalesce, vec![test, Expr::literal(false)]);
        let mut fits: Vec<Expr> = vec![];
        let mut conditions: Vec<(Slot, Option<Expr>, bool)> = vec![];
        for (pick, _) in &options {
            let slot = self.fresh();
            let (condition, is_none) = match pick {
                Pick::If(test) => {
                    let mut all = vec![known(test.clone())];
                    if first_only {
                        all.extend(fits.iter().cloned().map(not));
                    }
                    fits.push(Expr::Slot(slot));
                    (Some(Expr::And(all)), false)
                }
                Pick::Any => (Some(Expr::literal(true)), false),
                Pick::Unproductive => (Some(missing.clone()), false),
                Pick::None => (None, true),
            };
            conditions.push((slot, condition, is_none));
        }
        for (slot, condition, is_none) in &conditions {
            if let (Some(condition), false) = (condition, is_none) {
                flow.bind(*slot, condition.clone());
            }
        }
        for (slot, _, _) in conditions.iter().filter(|(.., is_none)| *is_none) {
            let mut none: Vec<Expr> = fits.iter().cloned().map(not).collect();
            if handles_unproductive {
                none.push(not(missing.clone()));
            }
            flow.bind(*slot, Expr::And(none));
        }
        let slots: Vec<Slot> = conditions.iter().map(|(slot, ..)| *slot).collect();
        let out = self.or_fresh(dest);
        let gathered = if !flow.scope.single && options.iter().any(|(_, steps)| stateful(steps)) {
            Some(self.gather(flow, &slots))
        } else {
            None
        };
        let (mut branches, mut ends) = (vec![], vec![]);
        for ((_, steps), slot) in options.into_iter().zip(slots) {
            let mut child = self.branch(flow, gathered.as_ref());
            child.filter(Expr::Slot(slot));
            self.steps(&mut child, steps, Some(out))?;
            ends.push(child.scope);
            branches.push(child.op);
        }
        if branches.is_empty() {
            flow.drop_rows();
            flow.scope.cur = Some(out);
            return Ok(());
        }
        flow.wrap(|input| Op::Union { input, branches });
        join_branches(flow, &ends, out);
        flow.scope.single = false;
        Ok(())
    }

    /// Returns the condition of a pick. A traversal picks the choices for which it has a result.
    fn pick<'a, 't>(
        &mut self,
        flow: &mut Flow,
        choice: Slot,
        kind: &'a ArgKind<'t>,
        key: &'a crate::ast::Arg<'t>,
    ) -> Result<Pick> {
        let value = Expr::Slot(choice);
        Ok(match kind {
            ArgKind::Constant(Constant::None) => Pick::None,
            ArgKind::Constant(Constant::Any) => Pick::Any,
            ArgKind::Constant(Constant::Unproductive) => Pick::Unproductive,
            ArgKind::Predicate(predicate) => {
                Pick::If(self.predicate_expr(predicate, &value, &mut Operands::Value)?)
            }
            ArgKind::Traversal(steps) => {
                let scope = flow.scope.clone();
                flow.scope.cur = Some(choice);
                flow.scope.kind = ObjectKind::Unknown;
                flow.scope.near = None;
                let condition = self.condition(flow, steps)?;
                flow.scope = scope;
                let bound = not(super::is_null(Expr::Slot(choice)));
                Pick::If(Expr::And(vec![bound, condition]))
            }
            ArgKind::Value(Value::Null) => Pick::If(super::is_null(value)),
            _ => Pick::If(Expr::compare(Comparison::Equal, value, self.expr(key)?)),
        })
    }
}
