//! `path`, `simplePath`, `cyclicPath`.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Step, StepName};
use crate::compile::by::By;
use crate::fault::Fault;
use tidegraph_plan::{
    AggregateItem, AggregateKind, Arithmetic, BindKind, Comparison, Expr, Function, Op, Quantifier, Slot,
};
use tidegraph_types::Value;

impl Compiler {
    pub(super) fn path_step(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        if !step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        flow.cur(step)?;
        let Some(path) = self.path else { return Err(wrong_arguments(step)) };
        let bys = cursor.take_all(StepName::By);
        if let Some(next) = cursor.peek().filter(|s| matches!(s.name, StepName::From | StepName::To)) {
            return Err(Fault::unsupported(next.at, format!("{}().{}()", step.name, next.name)));
        }
        let mapped = if bys.is_empty() { Expr::Slot(path) } else { self.mapped_path(flow, path, bys)? };
        if step.name == StepName::Path {
            let out = self.or_fresh(dest);
            flow.bind(out, mapped);
            flow.set_current(out, ObjectKind::Unknown);
        } else {
            let simple = call(Function::PathIsSimple, vec![mapped]);
            flow.filter(if step.name == StepName::SimplePath { simple } else { not(simple) });
        }
        Ok(())
    }

    /// Applies the `by()`s to the objects of the path in turn. If one of them has no result, the row is dropped.
    fn mapped_path(&mut self, flow: &mut Flow, path: Slot, steps: &[Step<'_>]) -> Result<Expr> {
        let bys = self.bys(steps)?;
        let objects = match (bys.as_slice(), self.pure_mapping(flow, &bys)?) {
            (_, Some(mapping)) => mapping(call(Function::Unfold, vec![Expr::Slot(path)])),
            ([by], None) => {
                // Each object's value needs a subplan.
                let item = self.fresh();
                let mut child = flow.child();
                let list = call(Function::Unfold, vec![Expr::Slot(path)]);
                child.op = Op::Unwind { input: Box::new(Op::Argument), list, out: item };
                let value = self.by_value(&mut child, by, Expr::Slot(item), ObjectKind::Unknown)?;
                // The list around it keeps a null, which is tested below.
                let pair = Expr::List(vec![value.expr]);
                let all = self.fresh();
                child.wrap(|input| Op::Aggregate {
                    input,
                    keys: vec![],
                    items: vec![AggregateItem {
                        out: all,
                        kind: AggregateKind::Collect,
                        args: vec![pair],
                        distinct: false,
                        empty_is_unbound: false,
                        weighted: false,
                    }],
                });
                let plan = Box::new(child.op);
                let pairs = self.fresh();
                flow.wrap(|input| Op::Bind { input, plan, out: pairs, kind: BindKind::First(all) });
                let (accumulator, variable) = (self.fresh(), self.fresh());
                let first = call(Function::Head, vec![Expr::Slot(variable)]);
                Expr::Reduce {
                    accumulator,
                    start: Box::new(Expr::Literal(Value::Unbound)),
                    variable,
                    list: Box::new(Expr::Slot(pairs)),
                    step: Box::new(call(Function::PathAppend, vec![Expr::Slot(accumulator), first])),
                }
            }
            _ => {
                let at = steps.first().map_or(0, |s| s.at);
                return Err(Fault::unsupported(at, "path() with several by() of this form"));
            }
        };
        let out = self.slot_of(flow, objects);
        if bys.iter().any(|by| !matches!(by, By::Identity | By::Token(_))) {
            let variable = self.fresh();
            flow.filter(Expr::Quantified {
                quantifier: Quantifier::None,
                variable,
                list: Box::new(call(Function::Unfold, vec![Expr::Slot(out)])),
                predicate: Box::new(is_null(Expr::Slot(variable))),
            });
        }
        Ok(Expr::Slot(out))
    }

    /// Returns the mapping as an expression over the list of objects. `None`: a `by()` needs a subplan.
    fn pure_mapping(
        &mut self,
        flow: &Flow,
        bys: &[By<'_, '_>],
    ) -> Result<Option<impl FnOnce(Expr) -> Expr + use<>>> {
        let (accumulator, variable) = (self.fresh(), self.fresh());
        let mut values = vec![];
        for by in bys {
            // Ask before compiling: compiling a child twice at each level would take exponential time.
            if let By::Traversal(steps) = by
                && !self.is_pure(flow, steps)?
            {
                return Ok(None);
            }
            let value = self.by_value(&mut flow.child(), by, Expr::Slot(variable), ObjectKind::Unknown)?;
            values.push(value.expr);
        }
        let count = values.len();
        let value = if count == 1 {
            values.remove(0)
        } else {
            // The number of objects so far selects the `by()`.
            let done = call(
                Function::Coalesce,
                vec![call(Function::CountLocal, vec![Expr::Slot(accumulator)]), Expr::literal(0_i64)],
            );
            let modulus = Expr::literal(i64::try_from(count).unwrap_or(1));
            let turn = Expr::Arithmetic(Arithmetic::Modulo, Box::new(done), Box::new(modulus));
            let last = values.pop().unwrap_or(Expr::Literal(Value::Null));
            let branches = values
                .into_iter()
                .zip(0_i64..)
                .map(|(value, i)| (Expr::compare(Comparison::Equal, turn.clone(), Expr::literal(i)), value))
                .collect();
            Expr::Case { branches, otherwise: Box::new(last) }
        };
        Ok(Some(move |list| Expr::Reduce {
            accumulator,
            start: Box::new(Expr::Literal(Value::Unbound)),
            variable,
            list: Box::new(list),
            step: Box::new(call(Function::PathAppend, vec![Expr::Slot(accumulator), value])),
        }))
    }
}
