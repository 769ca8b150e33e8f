//! `branch`, and `choose` with an `option(any)`: a traverser takes each option whose pick fits.
//!
//! The choice is computed once for each traverser. Each option has a condition on the choice; the options are part of the
//! stream, like the branches of `union`.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::compile::branch::stateful;
use crate::compile::filter::Subject;
use crate::compile::predicate::Operands;
use tidegraph_plan::{Comparison, Expr, Function, Slot};
use tidegraph_types::Value;

/// The condition of an option.
enum Pick {
    If(Expr),
    Any,
    None,
    Unproductive,
}

/// An option: its pick and its steps.
type Choice<'a, 't> = (Pick, &'a [Step<'t>]);

/// Returns a condition that is never null.
fn known(test: Expr) -> Expr {
    call(Function::Coalesce, vec![test, Expr::literal(false)])
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
        let choice = self.slot_of(flow, value.expr);
        let missing = if value.productive { Expr::literal(false) } else { is_null(Expr::Slot(choice)) };
        let mut options: Vec<Choice<'a, 't>> = vec![];
        for option in cursor.take_all(StepName::Option) {
            let (pick, plan) = match option.args.as_slice() {
                // Without a pick, every traverser takes it.
                [plan] => (Pick::Any, plan),
                [key, plan] => (self.pick(flow, choice, key)?, plan),
                _ => return Err(wrong_arguments(option)),
            };
            options.push((pick, plan.steps().ok_or_else(|| wrong_arguments(option))?));
        }
        let conditions = self.conditions(flow, &options, &missing, first_only);
        let out = self.or_fresh(dest);
        if options.is_empty() {
            flow.drop_rows();
            flow.scope.cur = Some(out);
            return Ok(());
        }
        let is_stateful = options.iter().any(|(_, steps)| stateful(steps, self.version));
        let gathered = (!flow.scope.single && is_stateful).then(|| self.gather(flow, &conditions));
        let taken = conditions.into_iter().map(Expr::Slot).zip(options.into_iter().map(|(_, steps)| steps));
        self.run_each(flow, taken, gathered.as_ref(), out)
    }

    /// Binds for each option whether the traverser takes it. `missing`: the choice has no value.
    fn conditions(
        &mut self,
        flow: &mut Flow,
        options: &[Choice<'_, '_>],
        missing: &Expr,
        first_only: bool,
    ) -> Vec<Slot> {
        let slots: Vec<Slot> = options.iter().map(|_| self.fresh()).collect();
        let mut fits: Vec<Expr> = vec![];
        for ((pick, _), slot) in options.iter().zip(&slots) {
            let condition = match pick {
                Pick::If(test) => {
                    let mut all = vec![known(test.clone())];
                    if first_only {
                        all.extend(fits.iter().cloned().map(not));
                    }
                    fits.push(Expr::Slot(*slot));
                    Expr::And(all)
                }
                Pick::Any => Expr::literal(true),
                Pick::Unproductive => missing.clone(),
                Pick::None => continue,
            };
            flow.bind(*slot, condition);
        }
        let mut none: Vec<Expr> = fits.into_iter().map(not).collect();
        if options.iter().any(|(pick, _)| matches!(pick, Pick::Unproductive)) {
            none.push(not(missing.clone()));
        }
        for ((pick, _), slot) in options.iter().zip(&slots) {
            if matches!(pick, Pick::None) {
                flow.bind(*slot, Expr::And(none.clone()));
            }
        }
        slots
    }

    /// Returns the condition of a pick. A traversal picks the choices for which it has a result.
    fn pick(&mut self, flow: &mut Flow, choice: Slot, key: &Arg<'_>) -> Result<Pick> {
        let value = Expr::Slot(choice);
        Ok(match &key.kind {
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
                let bound = not(is_null(Expr::Slot(choice)));
                Pick::If(Expr::And(vec![bound, condition]))
            }
            ArgKind::Value(Value::Null) => Pick::If(is_null(value)),
            _ => Pick::If(Expr::compare(Comparison::Equal, value, self.expr(key)?)),
        })
    }
}
