//! Steps that convert to a type, and steps over dates.

use super::{Compiler, Flow, ObjectKind, Result, call, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step};
use crate::compile::filter::Subject;
use tidegraph_plan::{Arithmetic, DateUnit, Expr, Function, GremlinType, Slot};
use tidegraph_types::Value;

impl Compiler {
    /// `asNumber()`, `asNumber(GType)`
    pub(super) fn as_number(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        use GremlinType as T;
        let kind = match step.args.as_slice() {
            [] => None,
            [
                Arg {
                    kind:
                        ArgKind::Type(
                            kind @ (T::Byte
                            | T::Short
                            | T::Int
                            | T::Long
                            | T::BigInt
                            | T::Float
                            | T::Double
                            | T::BigDecimal),
                        ),
                    ..
                },
            ] => Some(*kind),
            _ => return Err(wrong_arguments(step)),
        };
        self.converted(flow, step, Function::AsNumber(kind), vec![], dest)
    }

    /// `dateAdd(DT, count)`
    pub(super) fn date_add(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let [unit, count] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        let unit = match unit.constant() {
            Some(Constant::Second) => DateUnit::Second,
            Some(Constant::Minute) => DateUnit::Minute,
            Some(Constant::Hour) => DateUnit::Hour,
            Some(Constant::Day) => DateUnit::Day,
            _ => return Err(wrong_arguments(step)),
        };
        let count = self.integer(count)?;
        self.converted(flow, step, Function::DateAdd(unit), vec![count], dest)
    }

    /// `dateDiff(date)`, `dateDiff(traversal)`
    pub(super) fn date_diff(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let object = Subject::current(flow, step)?;
        let other = match step.args.as_slice() {
            [Arg { kind: ArgKind::Traversal(steps), .. }] => self.child_value(flow, steps, object)?.expr,
            [arg @ Arg { kind: ArgKind::Value(Value::DateTime(_) | Value::Null), .. }]
            | [arg @ Arg { kind: ArgKind::Now | ArgKind::Variable(_), .. }] => self.expr(arg)?,
            _ => return Err(wrong_arguments(step)),
        };
        let mut difference = call(Function::DateDiff, vec![Expr::Slot(flow.cur(step)?), other]);
        if self.version.date_differences_are_seconds() {
            let second = Box::new(Expr::literal(1_000_i64));
            difference = Expr::Arithmetic(Arithmetic::Divide, Box::new(difference), second);
        }
        let out = self.or_fresh(dest);
        flow.bind(out, difference);
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }

    /// Makes the result of a function of the current object and of more arguments the current object.
    fn converted(
        &mut self,
        flow: &mut Flow,
        step: &Step<'_>,
        function: Function,
        more: Vec<Expr>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let mut args = vec![Expr::Slot(flow.cur(step)?)];
        args.extend(more);
        let out = self.or_fresh(dest);
        flow.bind(out, call(function, args));
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }
}
