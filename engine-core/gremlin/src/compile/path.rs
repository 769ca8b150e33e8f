//! `path`, `simplePath`, `cyclicPath`.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::compile::by::By;
use tidegraph_plan::{
    AggregateItem, AggregateKind, Arithmetic, BindKind, Branch, Comparison, Expr, Function, ListFunction, Op,
    Quantifier, Slot,
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
        let mut ends = [Expr::Literal(Value::Null), Expr::Literal(Value::Null)];
        let mut bys = vec![];
        while let Some(next) = cursor.peek() {
            let end = match next.name {
                StepName::By => {
                    bys.push(next);
                    cursor.next += 1;
                    continue;
                }
                StepName::From => &mut ends[0],
                // A step to vertices has a direction.
                StepName::To if !super::step::moves(next) => &mut ends[1],
                _ => break,
            };
            let [Arg { kind: ArgKind::Text(label), .. }] = next.args.as_slice() else {
                return Err(wrong_arguments(next));
            };
            *end = text(label);
            cursor.next += 1;
        }
        let mut whole = Expr::Slot(path);
        if ends.iter().any(|end| *end != Expr::Literal(Value::Null)) {
            let [from, to] = ends;
            whole = call(Function::PathPart, vec![whole, from, to]);
        }
        let mapped = if bys.is_empty() { whole } else { self.mapped_path(flow, whole, &bys)? };
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
    fn mapped_path(&mut self, flow: &mut Flow, path: Expr, steps: &[&Step<'_>]) -> Result<Expr> {
        let (mapped, may_lack) = self.mapped_objects(flow, path, steps)?;
        if may_lack {
            let variable = self.fresh();
            flow.filter(Expr::Quantified {
                quantifier: Quantifier::None,
                variable,
                list: Box::new(call(Function::Unfold, vec![Expr::Slot(mapped)])),
                predicate: Box::new(is_null(Expr::Slot(variable))),
            });
        }
        Ok(Expr::Slot(mapped))
    }

    /// Applies the `by()`s to the objects of the path in turn. An object without a result is left out.
    pub(super) fn shortened_path(
        &mut self,
        flow: &mut Flow,
        path: Expr,
        steps: &[&Step<'_>],
    ) -> Result<Expr> {
        let (mapped, may_lack) = self.mapped_objects(flow, path, steps)?;
        if !may_lack {
            return Ok(Expr::Slot(mapped));
        }
        let (accumulator, variable) = (self.fresh(), self.fresh());
        let longer = call(Function::PathAppend, vec![Expr::Slot(accumulator), Expr::Slot(variable)]);
        Ok(Expr::Reduce {
            accumulator,
            start: Box::new(Expr::Literal(Value::Unbound)),
            variable,
            list: Box::new(call(Function::Unfold, vec![Expr::Slot(mapped)])),
            step: Box::new(Expr::Case {
                branches: vec![(is_null(Expr::Slot(variable)), Expr::Slot(accumulator))],
                otherwise: Box::new(longer),
            }),
        })
    }

    /// Applies the `by()`s to the objects of the path in turn. Returns the slot of the new path, and whether it may have nulls
    /// in place of objects without a result.
    fn mapped_objects(&mut self, flow: &mut Flow, path: Expr, steps: &[&Step<'_>]) -> Result<(Slot, bool)> {
        let bys = steps.iter().map(|step| self.by(step, &step.args)).collect::<Result<Vec<_>>>()?;
        let objects = match self.pure_mapping(flow, &bys)? {
            Some(mapping) => mapping(call(Function::Unfold, vec![path])),
            None => {
                // Each object's value needs a subplan.
                let mut child = flow.child();
                let value = self.value_in_turn(&mut child, path, &bys)?;
                // The list around it keeps a null, which is tested below.
                let pair = Expr::List(vec![Expr::Slot(value)]);
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
        };
        let out = self.slot_of(flow, objects);
        let may_lack = |by: &By<'_, '_>| !matches!(by, By::Identity | By::Token(_));
        Ok((out, self.productive_by.is_none() && bys.iter().any(may_lack)))
    }

    /// Unwinds the objects of a path in a subplan, and binds the value of each object's own `by()`.
    fn value_in_turn(&mut self, child: &mut Flow, path: Expr, bys: &[By<'_, '_>]) -> Result<Slot> {
        let (pair, object, position, value) = (self.fresh(), self.fresh(), self.fresh(), self.fresh());
        let list = call(Function::Lists(ListFunction::Index), vec![path]);
        child.op = Op::Unwind { input: Box::new(Op::Argument), list, out: pair };
        let part = |at: i64| Expr::Index(Box::new(Expr::Slot(pair)), Box::new(Expr::literal(at)));
        child.bind(object, part(0));
        child.bind(position, part(1));
        let count = Expr::literal(i64::try_from(bys.len()).unwrap_or(i64::MAX));
        let mut branches = vec![];
        for (by, number) in bys.iter().zip(0_i64..) {
            let mut branch = child.child();
            let computed = self.by_value(&mut branch, by, Expr::Slot(object), ObjectKind::Unknown)?;
            branch.bind(value, computed.expr);
            let turn =
                Expr::Arithmetic(Arithmetic::Modulo, Box::new(Expr::Slot(position)), Box::new(count.clone()));
            let condition = Expr::compare(Comparison::Equal, turn, Expr::literal(number));
            branches.push(Branch { condition, plan: branch.op });
        }
        child.wrap(|input| Op::Choose { input, branches, otherwise: None });
        Ok(value)
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
